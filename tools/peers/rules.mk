# Weir's models and Weir beside the real allocators of PyTorch and RMM: see README.md. Not part of
# any build or test: it fetches 0.6 GB.

PEERS := $(O)/peers

$(PEERS)/venv/peers: tools/peers/setup.sh
	@mkdir -p $(@D)
	$(say) FETCH $(PEERS)/venv
	$(Q)$< $(PEERS)
	@touch $@

# Each peer's headers and libraries, as its own documentation builds a client.
PEERS_CXX  = $(CXX) -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -I. $(CUDAINC)
PEERS_RPATH := -Wl,-rpath,'$$ORIGIN/torch/lib' -Wl,-rpath,'$$ORIGIN/librmm/lib64' -Wl,-rpath,'$$ORIGIN/rapids_logger/lib64'

$(PEERS)/pytorch.so: tools/peers/pytorch.cc tools/peers/peer.h $(PEERS)/venv/peers
	$(say) CXX $<
	$(Q)$(PEERS_CXX) -std=c++20 -isystem $(PEERS)/torch/include -o $@ $< \
	  -L$(PEERS)/torch/lib -lc10_cuda -lc10 $(PEERS_RPATH)

$(PEERS)/rmm.so: tools/peers/rmm.cc tools/peers/peer.h $(PEERS)/venv/peers $(SIM)/libcudart.so.13
	$(say) CXX $<
	$(Q)$(PEERS_CXX) -std=c++17 -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE \
	  -isystem $(PEERS)/librmm/include -isystem $(PEERS)/librmm/include/rapids \
	  -isystem $(PEERS)/rapids_logger/include -o $@ $< -L$(PEERS)/librmm/lib64 -lrmm \
	  -L$(PEERS)/rapids_logger/lib64 -lrapids_logger -L$(SIM) -lcudart $(PEERS_RPATH)

$(PEERS)/weir.so: $(call objs,tools/peers/weir.c) $(LIB)/libweir.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(CFLAGS) -o $@ $(filter %.o,$^) -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../lib' -lpthread

$(PEERS)/peers: $(sort $(call objs,tools/peers/peers.c) $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS)) $(SIM)/libcudart.so.13
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) $(TOOLS_LIBS) -L$(SIM) -lcudart

EXTRA_tools/peers/peers.c = -Wno-pedantic $(CUDAINC)

bench-peers: $(PEERS)/peers $(PEERS)/pytorch.so $(PEERS)/rmm.so $(PEERS)/weir.so $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so corpus ## the real allocators of PyTorch and RMM: their time, and how faithful our models are (fetches 0.6 GB)
	@tools/peers/peers.sh "$(abspath $(O))" "$(CUDA_HOME)" $(CORPUS)

.PHONY: bench-peers
