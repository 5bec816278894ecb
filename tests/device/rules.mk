# tests/device: devices, streams and events where there is no CUDA, or a scripted device (tests/memory/fake.c).

DEVICE_TEST_OBJS := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(call objs,tests/memory/fake.c)
DEVICE_TESTS     := $(addprefix $(O)/tests/device/,test_device)

TESTS += $(DEVICE_TESTS)

$(DEVICE_TESTS): $(O)/tests/device/%: $(OBJ)/tests/device/%.o $(DEVICE_TEST_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -lm -ldl -pthread
