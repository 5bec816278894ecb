# tests/io: tensors in files.

IO_TEST_OBJS := $(sort $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS) $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS)) \
                $(call objs,tests/io/io.c tests/core/support.c tests/memory/fake.c)
IO_TESTS     := $(addprefix $(O)/tests/io/,test_json test_npy test_safetensors test_dlpack)

TESTS          += $(IO_TESTS)
VALGRIND_TESTS += $(O)/tests/io/test_safetensors
ONE_THREAD     += $(addprefix tests/io/,test_json)

$(IO_TESTS): $(O)/tests/io/%: $(OBJ)/tests/io/%.o $(IO_TEST_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -lm -ldl -pthread
