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
