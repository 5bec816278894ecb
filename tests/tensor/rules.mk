# tests/tensor: tensors on the cpu and on the software device.
#   test_cpu    without a driver: what a program without CUDA sees
#   the others  libweir-cuda.so opened by the engine, the driver's own functions beside

TENT        := $(O)/tests/tensor
TENT_SUITES := $(addprefix $(TENT)/,test_dtype test_create test_view test_convert test_copy test_async test_order test_print test_life test_scope test_format test_faults)
TENT_SUITES += $(TENT)/test_host_cache
TENT_OBJS   := $(sort $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS)) $(call objs,tests/tensor/rig.c tests/cuda/rig.c)

TESTS      += $(TENT_SUITES) $(TENT)/test_cpu
VALGRIND_TESTS += $(TENT)/test_cpu
ONE_THREAD += $(addprefix tests/tensor/,test_dtype test_print)

# Its allocations, and the engine's, are the suite's own.
TENT_WRAP   := $(call wrap,malloc posix_memalign strndup free)
TENT_LIBS   := $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so $(SIM)/libweir-twins.so

$(eval $(call one_program,$(TENT)/suites,$(filter-out $(TENT)/test_faults,$(TENT_SUITES)),$(TENT_OBJS) $(TENT_LIBS),$$(SIM_LINK)))
$(eval $(call one_program,$(TENT)/suites_faults,$(TENT)/test_faults,$(TENT_OBJS) $(TENT_LIBS),$$(TENT_WRAP) $$(SIM_LINK)))

$(TENT)/test_cpu: $(OBJ)/tests/tensor/test_cpu.o $(LIB)/libweir.so $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $< -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../../lib' $(CHECK_LIBS) -pthread
