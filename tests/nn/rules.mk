# tests/nn: modules, layers, data loading, data parallelism, on the cpu and on the software device. The
# engine is linked in; libweir-cuda.so is opened by it, as in tests/cuda.

NNT        := $(O)/tests/nn
NNT_SUITES := $(addprefix $(NNT)/,test_select test_module test_loader test_layers test_more_layers test_loss_layers test_hooks test_transformer \
                                   test_optim test_amp test_parallel)
NNT_OBJS   := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS) $(call objs,tests/nn/rig.c)

# The engine's requests of host memory go through rig.c, which can refuse one.
NNT_WRAP   := $(call wrap,malloc calloc realloc strdup posix_memalign)

TESTS += $(NNT_SUITES)

$(eval $(call one_program,$(NNT)/suites,$(NNT_SUITES),$(NNT_OBJS) $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so $(SIM)/libweir-twins.so,$$(NNT_WRAP) $$(SIM_LINK)))
