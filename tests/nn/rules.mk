# tests/nn: modules, layers, data loading, data parallelism, on the cpu and on the software device. The
# engine is linked in; libweir-cuda.so is opened by it, as in tests/cuda.

NNT        := $(O)/tests/nn
NNT_SUITES := $(patsubst tests/nn/%.c,$(NNT)/%,$(sort $(wildcard tests/nn/test_*.c)))
NNT_OBJS   := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS) $(call objs,tests/nn/rig.c)

TESTS += $(NNT_SUITES)

$(NNT_SUITES): $(NNT)/%: $(OBJ)/tests/nn/%.o $(NNT_OBJS) $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -rdynamic -o $@ $(filter %.o,$^) $(SIM)/libcuda.so.1 \
	  -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../../lib/sim:$$ORIGIN/../../lib' $(CHECK_LIBS) -lm -ldl -pthread
