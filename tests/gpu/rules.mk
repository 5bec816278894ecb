# tests/gpu: what only a machine with a GPU can tell. make check-gpu runs it; make test does not.
# The counting library is built where CUPTI's header and library are.

CUPTI_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcupti.so $(CUDA_HOME)/extras/CUPTI/lib64/libcupti.so))
CUPTI_INC := $(firstword $(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h))
GPU_COUNT := $(if $(CUPTI_LIB),$(if $(CUPTI_INC),$(O)/tests/gpu/libcupti_count.so $(O)/tests/gpu/libcupti_activity.so))

EXTRA_tests/gpu/cupti_count.c = -isystem $(dir $(CUPTI_INC))
EXTRA_tests/gpu/cupti_activity.c = -isystem $(dir $(CUPTI_INC))

$(O)/tests/gpu/libcupti_%.so: $(OBJ)/tests/gpu/cupti_%.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared -o $@ $< $(CUPTI_LIB) -Wl,-rpath,$(dir $(CUPTI_LIB)) -lpthread

# The allocator's suites for a machine that has a driver and no Check: on libcuda.so.1, wherever the loader
# finds it, with Check inside.
GPU_SUITES := $(addprefix $(O)/tests/gpu/cuda_,backend reuse stress compute)
GPU_CHECK   = $(patsubst -l%,-l:lib%.a,$(filter -lcheck% -lsubunit,$(shell pkg-config --static --libs check 2>/dev/null)))

$(GPU_SUITES): $(O)/tests/gpu/cuda_%: $(OBJ)/tests/cuda/test_%.o $(CUDAT_OBJS) $(LIB)/libweir-cuda.so | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcuda \
	  -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../../lib:$$ORIGIN/../lib' $(GPU_CHECK) -lrt -lm -ldl -pthread

GPU_ENGINE := $(O)/tests/gpu/engine $(O)/tests/gpu/overlap

# The engine's rows on a device: a program on libweir.so's exports.
$(O)/tests/gpu/engine: $(call objs,$(addprefix tests/gpu/,engine.c engine_tensors.c engine_order.c engine_models.c)) $(LIB)/libweir.so $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(LIB) -lweir \
	  -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../../lib:$$ORIGIN/../lib' -lm -ldl -pthread

$(O)/tests/gpu/overlap: $(OBJ)/tests/gpu/overlap.o $(LIB)/libweir.so $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $< -L$(LIB) -lweir -Wl,--disable-new-dtags \
	  -Wl,-rpath,'$$ORIGIN/../../lib:$$ORIGIN/../lib' -lm -ldl

EXTRA_tests/gpu/bandwidth.c = $(CUDAINC)

$(O)/tests/gpu/bandwidth: $(OBJ)/tests/gpu/bandwidth.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< -L$(CUDA_STUBS) -lcudart

EXTRA_tests/gpu/memory.c = $(CUDAINC)

$(O)/tests/gpu/memory: $(OBJ)/tests/gpu/memory.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< -L$(CUDA_STUBS) -lcuda

# Programs that count for themselves. The compiler's own libraries are linked in, and in keeper_static
# NVIDIA's runtime is.
GPU_ACCOUNTS := $(addprefix $(O)/tests/e2e/,keeper waiter poller) $(addprefix $(O)/tests/gpu/,graph_caller nests \
  $(if $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a),keeper_static))

$(O)/tests/gpu/graph_caller: $(OBJ)/tests/e2e/graph_caller.o $(OBJ)/tests/e2e/kernels.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) -static-libgcc -static-libstdc++ -o $@ $^ -L$(CUDA_STUBS) -lcudart -lpthread

$(O)/tests/gpu/nests: $(OBJ)/tests/victims/nvtx/nests.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< -L$(CUDA_STUBS) -lcudart -ldl -lpthread

$(O)/tests/gpu/keeper_static: $(OBJ)/tests/e2e/keeper.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< $(CUDA_HOME)/lib64/libcudart_static.a -L$(CUDA_STUBS) -lcuda -ldl -lrt -lpthread

gpu-suites: $(GPU_COUNT) $(GPU_ACCOUNTS) $(GPU_SUITES) $(GPU_ENGINE) $(O)/tests/gpu/memory $(O)/bench/gpu $(O)/bench/gpu_tensor $(O)/tests/gpu/bandwidth $(O)/tests/reroute/trap $(O)/tests/reroute/differ
check-gpu: gpu-suites
.PHONY: gpu-suites

# The same programs on the software device.
TESTS += $(O)/tests/gpu/test_gpu

$(O)/tests/gpu/test_gpu: $(call objs,tests/gpu/test_gpu.c tests/tools/command.c) \
    | $(GPU_SUITES) $(GPU_ENGINE) $(O)/tests/gpu/memory $(O)/tests/gpu/bandwidth $(O)/bench/gpu $(O)/bench/gpu_tensor
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)
