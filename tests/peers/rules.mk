# Weir beside the published builds of others, PyTorch and RMM: see README.md. Not part of any other
# target: it fetches 0.6 GB, or 3 GB.

PEERS := $(O)/peers

$(PEERS)/venv/peers: tests/peers/setup.sh
	@mkdir -p $(@D)
	$(say) FETCH $(PEERS)/venv
	$(Q)$< $(PEERS)
	@touch $@

# Each peer's headers and libraries, as its own documentation builds a client.
PEERS_CXX  = $(CXX) -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -I. $(CUDAINC)
PEERS_RPATH := -Wl,-rpath,'$$ORIGIN/torch/lib' -Wl,-rpath,'$$ORIGIN/librmm/lib64' -Wl,-rpath,'$$ORIGIN/rapids_logger/lib64'

$(PEERS)/pytorch.so: tests/peers/pytorch.cc tests/peers/peer.h $(PEERS)/venv/peers
	$(say) CXX $<
	$(Q)$(PEERS_CXX) -std=c++20 -isystem $(PEERS)/torch/include -o $@ $< \
	  -L$(PEERS)/torch/lib -lc10_cuda -lc10 $(PEERS_RPATH)

$(PEERS)/rmm.so: tests/peers/rmm.cc tests/peers/peer.h $(PEERS)/venv/peers $(SIM)/libcudart.so.13
	$(say) CXX $<
	$(Q)$(PEERS_CXX) -std=c++17 -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE \
	  -isystem $(PEERS)/librmm/include -isystem $(PEERS)/librmm/include/rapids \
	  -isystem $(PEERS)/rapids_logger/include -o $@ $< -L$(PEERS)/librmm/lib64 -lrmm \
	  -L$(PEERS)/rapids_logger/lib64 -lrapids_logger -L$(SIM) -lcudart $(PEERS_RPATH)

$(PEERS)/weir.so: $(call objs,tests/peers/weir.c) $(LIB)/libweir.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(CFLAGS) -o $@ $(filter %.o,$^) -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../lib' -lpthread

$(PEERS)/peers: $(sort $(call objs,tests/peers/peers.c) $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS)) $(SIM)/libcudart.so.13
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) $(TOOLS_LIBS) -L$(SIM) -lcudart

EXTRA_tests/peers/peers.c = -Wno-pedantic $(CUDAINC)

bench-peers: $(PEERS)/peers $(PEERS)/pytorch.so $(PEERS)/rmm.so $(PEERS)/weir.so $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so corpus ## the real allocators of PyTorch and RMM, then bench-speed: times, and how faithful our models are (fetches 3 GB)
	@tests/peers/peers.sh "$(abspath $(O))" "$(CUDA_HOME)" $(CORPUS)
	@$(MAKE) bench-speed

# Operations beside PyTorch's on the cpu.
$(PEERS)/%.o: tests/peers/%.cc tests/peers/speed.h $(PEERS)/venv/client
	$(say) CXX $<
	$(Q)$(CXX) -O2 -g -std=c++20 -Wall -Wextra -Werror -I. $(CUDAINC) -isystem $(PEERS)/torch/include \
	  -isystem $(PEERS)/torch/include/torch/csrc/api/include -c -o $@ $<

$(PEERS)/speed: $(PEERS)/speed.o $(PEERS)/speed_training.o $(LIB)/libweir.so
	$(say) LD $@
	$(Q)$(CXX) -o $@ $(filter %.o,$^) -L$(PEERS)/torch/lib -L$(LIB) \
	  -lweir -ltorch_cpu -lc10 -Wl,-rpath,'$$ORIGIN/torch/lib' -Wl,-rpath,'$$ORIGIN/../lib'

bench-speed: $(PEERS)/speed $(SIM)/libcudart.so.13 ## operations beside PyTorch's on the cpu, 1 and 2 threads; prints a table, writes build/peers/speed.json (fetches 3 GB; ROWS="softmax conv2d": only these)
	@LD_LIBRARY_PATH="$(SIM)" $(PEERS)/speed --json $(PEERS)/speed.json $(ROWS)

# PyTorch as a client of the software device.
$(PEERS)/venv/client: tests/peers/setup.sh
	@mkdir -p $(@D)
	$(say) FETCH $(PEERS)/venv
	$(Q)$< $(PEERS) client
	@touch $@

# The parts `driver` and `ucx` need none of PyTorch's.
CASES        ?=
PEERS_CLIENT = $(if $(filter-out driver ucx,$(or $(CASES),all)),$(PEERS)/venv/client)

test-peers: all $(PEERS_CLIENT) $(CUDA_STUBS)/libcuda.so $(O)/tests/e2e/graph_caller $(O)/tests/e2e/random_caller ## PyTorch's published CUDA build on the software device, NVIDIA's driver library, UCX's hooks, bare and under Weir (fetches 3 GB)
	@CC="$(CC)" CUDA_HOME="$(CUDA_HOME)" CUDA_LIB="$(CUDA_LIB)" tests/peers/run.sh "$(O)" $(CASES)

.PHONY: bench-peers bench-speed test-peers
