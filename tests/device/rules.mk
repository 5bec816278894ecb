# tests/device: devices, streams and events where there is no CUDA, or a scripted device (tests/memory/fake.c).

DEVICE_TEST_OBJS := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(call objs,tests/memory/fake.c)
DEVICE_TESTS     := $(addprefix $(O)/tests/device/,test_device)

TESTS += $(DEVICE_TESTS)

$(DEVICE_TESTS): $(O)/tests/device/%: $(OBJ)/tests/device/%.o $(DEVICE_TEST_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -lm -ldl -pthread

# The cpu as a device, against references of the tests' own.
CPU_TESTS := $(addprefix $(O)/tests/device/,test_cpu_map test_cpu_reduce test_cpu_copy test_cpu_gemm test_cpu_conv test_cpu_dnn test_cpu_rows test_cpu_threads)
TESTS     += $(CPU_TESTS)

CPU_TESTS_LONG := $(O)/tests/device/test_cpu_map_long
TESTS_LONG     += $(CPU_TESTS_LONG)

CPU_TEST_OBJS := $(call objs,tests/device/reference.c tests/device/functions.c) $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS)

$(eval $(call one_program,$(O)/tests/device/suites,$(CPU_TESTS),$(CPU_TEST_OBJS),$$(CHECK_LIBS) -lm -ldl -pthread))
$(eval $(call one_program,$(O)/tests/device/suites_long,$(CPU_TESTS_LONG),$(CPU_TEST_OBJS),$$(CHECK_LIBS) -lm -ldl -pthread))

# Where oneDNN would be: opened by their paths, found by their soname.
$(O)/tests/device/libdnnl-plain.so $(O)/tests/device/libdnnl-bare.so: $(O)/tests/device/libdnnl-%.so: $(OBJ)/tests/device/dnnl_%.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -shared -Wl,-soname,libdnnl.so.3 -o $@ $^

$(O)/tests/device/test_cpu_dnn: | $(O)/tests/device/libdnnl-plain.so $(O)/tests/device/libdnnl-bare.so

VALGRIND_TESTS += $(addprefix $(O)/tests/device/,test_device test_cpu_threads)
