# tests/gpu: what only a machine with a GPU can tell. make check-gpu runs it; make test does not.
# The counting library is built where CUPTI's header and library are.

CUPTI_LIB := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcupti.so $(CUDA_HOME)/extras/CUPTI/lib64/libcupti.so))
CUPTI_INC := $(firstword $(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h))
GPU_COUNT := $(if $(CUPTI_LIB),$(if $(CUPTI_INC),$(O)/tests/gpu/libcupti_count.so))

EXTRA_tests/gpu/cupti_count.c = -isystem $(dir $(CUPTI_INC))

$(O)/tests/gpu/libcupti_count.so: $(OBJ)/tests/gpu/cupti_count.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared -o $@ $< $(CUPTI_LIB) -Wl,-rpath,$(dir $(CUPTI_LIB)) -lpthread

check-gpu: $(GPU_COUNT)

# The allocator's suites for a machine that has a driver and no Check: on libcuda.so.1, wherever the loader
# finds it, with Check inside.
GPU_SUITES := $(addprefix $(O)/tests/gpu/cuda_,backend reuse stress compute)
GPU_CHECK   = $(patsubst -l%,-l:lib%.a,$(filter -lcheck% -lsubunit,$(shell pkg-config --static --libs check 2>/dev/null)))

$(GPU_SUITES): $(O)/tests/gpu/cuda_%: $(OBJ)/tests/cuda/test_%.o $(CUDAT_OBJS) $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(CUDA_LIB)/stubs -lcuda \
	  -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../../lib:$$ORIGIN/../lib' $(GPU_CHECK) -lrt -lm -ldl -pthread

EXTRA_tests/gpu/bandwidth.c = $(CUDAINC)

$(O)/tests/gpu/bandwidth: $(OBJ)/tests/gpu/bandwidth.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< -L$(CUDA_LIB) -lcudart

gpu-suites: $(GPU_SUITES) $(O)/bench/gpu $(O)/tests/gpu/bandwidth $(O)/tests/reroute/trap $(O)/tests/reroute/differ
check-gpu: gpu-suites
TEST_TOOLS += $(GPU_SUITES) $(O)/tests/gpu/bandwidth
.PHONY: gpu-suites
