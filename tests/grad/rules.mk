# tests/grad: derivatives, on the cpu and on the software device. The engine is linked in; its requests
# of host memory are the suite's own.

GRADT        := $(O)/tests/grad
GRADT_SUITES := $(addprefix $(GRADT)/,test_grad)
GRADT_OBJS   := $(sort $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS)) $(call objs,tests/tensor/rig.c tests/cuda/rig.c)
GRADT_WRAP   := $(call wrap,malloc calloc realloc posix_memalign free)

TESTS += $(GRADT_SUITES)

$(GRADT_SUITES): $(GRADT)/%: $(OBJ)/tests/grad/%.o $(GRADT_OBJS) $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so $(SIM)/libweir-twins.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) $(GRADT_WRAP) -o $@ $(filter %.o,$^) $(SIM_LINK)
