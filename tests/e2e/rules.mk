# End to end: programs under the built weir, their own count held against the trace.
# One victim in two builds: the runtime shared, and the runtime stand-in linked in.

E2E      := $(O)/tests/e2e
E2E_OBJ  := $(OBJ)/tests/e2e
E2E_WARN := -Wno-deprecated-declarations # it calls what CUDA has deprecated, too

E2E_VICTIM := $(call objs,$(addprefix tests/e2e/,random_caller.c random_ops.c random_table.c)) $(E2E_OBJ)/random_ops_ptds.o $(E2E_OBJ)/random_table_ptds.o $(E2E_OBJ)/kernels.o

EXTRA_tests/e2e/random_ops.c   = $(E2E_WARN)
EXTRA_tests/e2e/random_table.c = $(E2E_WARN)

$(E2E_OBJ)/random_%_ptds.o: tests/e2e/random_%.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (per-thread default stream)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_tests) $(E2E_WARN) \
	  -DCUDA_API_PER_THREAD_DEFAULT_STREAM -c $< -o $@

$(E2E_OBJ)/kernels.o: tests/e2e/kernels.cu cuda/sim/weir_kernel.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(EX_NVCC) -gencode arch=compute_75,code=compute_75 -c $< -o $@

# Linked by the host's compiler, with what nvcc would add: nvcc takes a list of sanitizers apart.
E2E_LINK = $(CXX) $(CFLAGS) $(LDSAN) -Wl,'$(EX_TWIN)'

$(E2E)/random_caller: $(E2E_VICTIM)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

$(E2E)/random_caller_static: $(E2E_VICTIM) $(RT_STATIC)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $(E2E_VICTIM) $(SIM)/libweir_sim_cudart_static.a -o $@ \
	  -L$(CUDA_STUBS) -lcuda -ldl -lpthread

$(E2E)/test_counts: $(E2E_OBJ)/test_counts.o
$(E2E)/test_counts_all: $(E2E_OBJ)/test_counts_all.o
$(E2E)/test_counts_long: $(E2E_OBJ)/test_counts_long.o
$(E2E)/test_counts $(E2E)/test_counts_all $(E2E)/test_counts_long: $(E2E_OBJ)/compare.o $(OBJ)/tests/tools/command.o $(call objs,core/trace/api.c)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

$(E2E)/graph_caller: $(E2E_OBJ)/graph_caller.o $(E2E_OBJ)/kernels.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lpthread

$(E2E)/graph_caller_static: $(E2E_OBJ)/graph_caller.o $(E2E_OBJ)/kernels.o $(RT_STATIC)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $(E2E_OBJ)/graph_caller.o $(E2E_OBJ)/kernels.o $(SIM)/libweir_sim_cudart_static.a -o $@ \
	  -L$(CUDA_STUBS) -lcuda -ldl -lpthread

# Names of memory are an extension of NVTX that came with CUDA 12.3's headers.
ifneq ($(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExtMem.h),)
$(E2E)/namer: $(E2E_OBJ)/namer.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcudart -ldl -lpthread

$(E2E)/test_named: $(E2E_OBJ)/test_named.o $(OBJ)/tests/tools/command.o | $(E2E)/namer
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

$(E2E)/namer: | $(CUDA_STUBS)/libcuda.so
TESTS    += $(E2E)/test_named
NOT_ASAN += tests/e2e/test_named
NOT_TSAN += tests/e2e/test_named
endif

$(E2E)/poller: $(E2E_OBJ)/poller.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcudart -lcuda -ldl -lpthread

$(E2E)/asker: $(E2E_OBJ)/asker.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcudart -lcuda -ldl -lpthread

$(E2E)/asker_static: $(E2E_OBJ)/asker.o $(RT_STATIC)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CXX) $(CFLAGS) $(LDSAN) -o $@ $(E2E_OBJ)/asker.o $(SIM)/libweir_sim_cudart_static.a \
	  -L$(CUDA_STUBS) -lcuda -ldl -lpthread

$(E2E)/test_asked: $(E2E_OBJ)/test_asked.o
$(E2E)/test_asked_all: $(E2E_OBJ)/test_asked_all.o
$(E2E)/test_asked_long: $(E2E_OBJ)/test_asked_long.o

$(E2E)/test_polls: $(E2E_OBJ)/test_polls.o
$(E2E)/test_polls_all: $(E2E_OBJ)/test_polls_all.o
$(E2E)/test_polls_long: $(E2E_OBJ)/test_polls_long.o
$(E2E)/test_polls $(E2E)/test_polls_all $(E2E)/test_polls_long $(E2E)/test_asked $(E2E)/test_asked_all $(E2E)/test_asked_long: \
    $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

$(E2E)/test_graphs: $(E2E_OBJ)/test_graphs.o
$(E2E)/test_graphs_all: $(E2E_OBJ)/test_graphs_all.o
$(E2E)/test_graphs_long: $(E2E_OBJ)/test_graphs_long.o
$(E2E)/test_graphs $(E2E)/test_graphs_all $(E2E)/test_graphs_long: $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

$(E2E)/ticker: $(E2E_OBJ)/ticker.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcudart -lpthread

# What stands in for NVML.
$(E2E)/nvml/libnvidia-ml.so.1: tests/e2e/nvml.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -O2 -std=c11 -D_GNU_SOURCE -Wall -Wextra -shared -fPIC -Wl,-soname,$(@F) -o $@ $<

$(E2E)/segments $(E2E)/shortage $(E2E)/importer $(E2E)/loader $(E2E)/nvml_caller: $(E2E)/%: $(E2E_OBJ)/%.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcuda

$(E2E)/waiter: $(call objs,$(addprefix tests/e2e/,waiter.c wait_oracle.c))
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcuda -ldl -lpthread
$(E2E)/waiter: | $(CUDA_STUBS)/libcuda.so

$(E2E)/test_waits: $(E2E_OBJ)/test_waits.o
$(E2E)/test_waits_all: $(E2E_OBJ)/test_waits_all.o
$(E2E)/test_waits_long: $(E2E_OBJ)/test_waits_long.o
E2E_WAITS := $(E2E)/test_waits $(E2E)/test_waits_all $(E2E)/test_waits_long
$(E2E_WAITS): $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)
$(E2E_WAITS): | $(E2E)/waiter
NOT_ASAN   += tests/e2e/test_waits
NOT_TSAN   += tests/e2e/test_waits
TESTS      += $(E2E)/test_waits
TESTS_ALL  += $(E2E)/test_waits_all
TESTS_LONG += $(E2E)/test_waits_long

$(E2E)/idler: $(E2E_OBJ)/idler.o $(E2E_OBJ)/kernels.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -ldl -lpthread

$(E2E)/test_idle: $(E2E_OBJ)/test_idle.o
$(E2E)/test_idle_all: $(E2E_OBJ)/test_idle_all.o
$(E2E)/test_idle_long: $(E2E_OBJ)/test_idle_long.o
E2E_IDLE := $(E2E)/test_idle $(E2E)/test_idle_all $(E2E)/test_idle_long
$(E2E_IDLE): $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)
ifneq ($(CUPTI_HEADER),) # or the software device has no device times
$(E2E_IDLE): | $(E2E)/idler $(O)/examples/stencil $(O)/examples/pipeline
NOT_ASAN   += tests/e2e/test_idle
NOT_TSAN   += tests/e2e/test_idle
TESTS      += $(E2E)/test_idle
TESTS_ALL  += $(E2E)/test_idle_all
TESTS_LONG += $(E2E)/test_idle_long
endif

# Without libxxhash's header there is nothing to hold against.
ifneq ($(XXHASH),)
$(E2E)/hasher: $(E2E_OBJ)/hasher.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcudart -lpthread

$(E2E)/test_copy_hash: $(E2E_OBJ)/test_copy_hash.o
$(E2E)/test_copy_hash_all: $(E2E_OBJ)/test_copy_hash_all.o
$(E2E)/test_copy_hash_long: $(E2E_OBJ)/test_copy_hash_long.o
E2E_HASHES := $(E2E)/test_copy_hash $(E2E)/test_copy_hash_all $(E2E)/test_copy_hash_long
$(E2E_HASHES): $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)
$(E2E_HASHES): | $(E2E)/hasher
$(E2E)/hasher: | $(CUDA_STUBS)/libcuda.so
TESTS      += $(E2E)/test_copy_hash
TESTS_ALL  += $(E2E)/test_copy_hash_all
TESTS_LONG += $(E2E)/test_copy_hash_long
NOT_ASAN   += tests/e2e/test_copy_hash
NOT_TSAN   += tests/e2e/test_copy_hash
endif

$(E2E)/test_memory: $(E2E_OBJ)/test_memory.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

# As random_caller, in two builds.
$(E2E)/keeper: $(E2E_OBJ)/keeper.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

$(E2E)/keeper_static: $(E2E_OBJ)/keeper.o $(RT_STATIC)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) $(E2E_OBJ)/keeper.o $(SIM)/libweir_sim_cudart_static.a -o $@ \
	  -L$(CUDA_STUBS) -lcuda -ldl -lpthread

$(E2E)/test_kinds: $(E2E_OBJ)/test_kinds.o
$(E2E)/test_kinds_all: $(E2E_OBJ)/test_kinds_all.o
$(E2E)/test_kinds_long: $(E2E_OBJ)/test_kinds_long.o
E2E_KINDS := $(E2E)/test_kinds $(E2E)/test_kinds_all $(E2E)/test_kinds_long
$(E2E_KINDS): $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)
$(E2E_KINDS): | $(E2E)/keeper $(E2E)/keeper_static
NOT_ASAN   += tests/e2e/test_kinds
NOT_TSAN   += tests/e2e/test_kinds
TESTS      += $(E2E)/test_kinds
TESTS_ALL  += $(E2E)/test_kinds_all
TESTS_LONG += $(E2E)/test_kinds_long

# Reads spools itself, beside the weir command.
$(E2E)/test_tally: $(sort $(call objs,tests/e2e/test_tally.c tests/reports/beside_trace.c tests/tools/command.c reports/base/util.c $(wildcard reports/tally/*.c)) $(CORE_TRACE_READER_OBJS))
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3) -lpthread
$(E2E)/test_tally: | $(addprefix $(E2E)/,keeper graph_caller segments importer random_caller asker) $(addprefix $(O)/examples/,streams memory pipeline)
TESTS    += $(E2E)/test_tally
NOT_ASAN += tests/e2e/test_tally
NOT_TSAN += tests/e2e/test_tally

$(E2E)/test_hardship: $(E2E_OBJ)/test_hardship.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

$(addprefix $(E2E)/,random_caller random_caller_static graph_caller graph_caller_static segments shortage importer loader nvml_caller ticker keeper keeper_static asker_static): | $(CUDA_STUBS)/libcuda.so

TESTS      += $(addprefix $(E2E)/test_,counts graphs hardship memory polls asked)
# An instrumented program under an uninstrumented preload library is what neither sanitizer can host.
NOT_ASAN   += $(addprefix tests/e2e/test_,counts graphs hardship memory polls asked)
NOT_TSAN   += $(addprefix tests/e2e/test_,counts graphs hardship memory polls asked)
TESTS_ALL  += $(E2E)/test_counts_all $(E2E)/test_graphs_all $(E2E)/test_polls_all $(E2E)/test_asked_all
TESTS_LONG += $(E2E)/test_counts_long $(E2E)/test_graphs_long $(E2E)/test_polls_long $(E2E)/test_asked_long
SAME_PLAIN += $(E2E_OBJ)/kernels.o
$(E2E)/test_counts $(E2E)/test_counts_all $(E2E)/test_counts_long: | $(E2E)/random_caller $(E2E)/random_caller_static
$(E2E)/test_memory: | $(E2E)/segments $(E2E)/shortage $(E2E)/graph_caller $(E2E)/importer $(E2E)/loader $(E2E)/nvml_caller $(E2E)/nvml/libnvidia-ml.so.1
$(E2E)/test_hardship: | $(E2E)/ticker
$(E2E)/test_graphs $(E2E)/test_graphs_all $(E2E)/test_graphs_long: | $(E2E)/graph_caller $(E2E)/graph_caller_static
$(E2E)/test_polls $(E2E)/test_polls_all $(E2E)/test_polls_long: | $(E2E)/poller
$(E2E)/test_asked $(E2E)/test_asked_all $(E2E)/test_asked_long: | $(E2E)/asker $(E2E)/asker_static
