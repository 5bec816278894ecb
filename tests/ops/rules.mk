# tests/ops: operations on tensors.
#   test_NAME_cpu  on the cpu
#   test_NAME      on the cpu and two software devices
#   test_fuzz      the library beside NumPy, through Python

OPST        := $(O)/tests/ops
OPST_OBJS   := $(sort $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS)) $(call objs,tests/tensor/rig.c tests/cuda/rig.c)
OPST_SUITES := $(addprefix $(OPST)/,test_elementwise test_linalg test_more test_reduce test_shape test_faults test_devices test_graphs test_elementwise_cpu test_linalg_cpu test_more_cpu test_reduce_cpu test_shape_cpu test_faults_cpu)
OPST_SUITES += $(addprefix $(OPST)/,test_rows test_rows_cpu)
OPST_SUITES += $(addprefix $(OPST)/,test_order test_order_cpu)
OPST_SUITES += $(addprefix $(OPST)/,test_functions test_functions_cpu)
OPST_SUITES += $(OPST)/test_sequence
OPST_SUITES += $(addprefix $(OPST)/,test_indexing test_indexing_cpu)
OPST_SUITES += $(addprefix $(OPST)/,test_nn test_nn_cpu)
OPST_LIBS   := $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so $(SIM)/libweir-twins.so

TESTS          += $(OPST_SUITES)
VALGRIND_TESTS += $(addprefix $(OPST)/,test_elementwise_cpu test_linalg_cpu test_more_cpu test_reduce_cpu test_shape_cpu test_faults_cpu)
VALGRIND_TESTS += $(OPST)/test_rows_cpu
VALGRIND_TESTS += $(OPST)/test_functions_cpu
VALGRIND_TESTS += $(OPST)/test_order_cpu
VALGRIND_TESTS += $(OPST)/test_indexing_cpu
VALGRIND_TESTS += $(OPST)/test_nn_cpu

$(OBJ)/tests/ops/test_%_cpu.o: tests/ops/test_%.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (cpu)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_tests) -DCPU_ONLY -c $< -o $@

# Its allocations, and the engine's, are the suite's own.
OPST_FAULTS := $(addprefix $(OPST)/,test_faults test_faults_cpu)
OPST_WRAP   := $(call wrap,malloc calloc realloc aligned_alloc posix_memalign free)

$(eval $(call one_program,$(OPST)/suites,$(filter-out $(OPST_FAULTS),$(OPST_SUITES)),$(OPST_OBJS) $(OPST_LIBS),$$(SIM_LINK)))
$(foreach t,$(OPST_FAULTS),$(eval $(call one_program,$(t:$(OPST)/test_%=$(OPST)/suites_%),$(t),$(OPST_OBJS) $(OPST_LIBS),$$(OPST_WRAP) $$(SIM_LINK))))

$(OPST)/test_fuzz: $(OBJ)/tests/ops/test_fuzz.o $(OBJ)/tests/tools/command.o $(LIB)/libweir.so $(LIB)/libweir-cuda.so $(SIM)/libcuda.so.1 $(SIM)/libweir-twins.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) $(CHECK_LIBS) $(call pkg_libs,sqlite3)

TESTS_ALL += $(OPST)/test_fuzz
NOT_ASAN  += tests/ops/test_fuzz
NOT_TSAN  += tests/ops/test_fuzz
