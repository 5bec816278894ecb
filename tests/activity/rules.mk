# tests/activity: device times by CUPTI, against the software device's.

ACTIVITYT      := $(O)/tests/activity
ACTIVITY_TESTS := $(ACTIVITYT)/test_activity

$(ACTIVITY_TESTS): $(ACTIVITYT)/test_%: $(OBJ)/tests/activity/test_%.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3) -lutil

# Programs to be run, without a sanitizer: theirs is preloaded. One opens CUPTI, one is linked with it.
$(ACTIVITYT)/worker: tests/activity/worker.c | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -std=gnu11 -O1 -Wall -Wextra -Werror $(CUDAINC) -isystem $(dir $(CUPTI_HEADER)) -o $@ $< -L$(CUDA_STUBS) -lcuda -ldl -lpthread

$(ACTIVITYT)/worker_linked: tests/activity/worker.c $(LIB)/sim/libcupti.so.13 | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -std=gnu11 -O1 -Wall -Wextra -Werror -DWORKER_LINKED $(CUDAINC) -isystem $(dir $(CUPTI_HEADER)) -o $@ $< -L$(CUDA_STUBS) -lcuda \
	  $(LIB)/sim/libcupti.so.13 -ldl -lpthread

# What the program may bring instead of the device's own CUPTI.
$(ACTIVITYT)/other/libcupti.so.13: tests/activity/other_cupti.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -std=gnu11 -O1 -Wall -Wextra -Werror -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

ifneq ($(CUPTI_HEADER),)
TESTS    += $(ACTIVITY_TESTS)
NOT_ASAN += $(ACTIVITY_TESTS:$(O)/%=%)
NOT_TSAN += $(ACTIVITY_TESTS:$(O)/%=%)
$(ACTIVITY_TESTS): | $(ACTIVITYT)/worker $(ACTIVITYT)/worker_linked $(ACTIVITYT)/other/libcupti.so.13 $(O)/examples/stencil
check-gpu: $(ACTIVITYT)/worker $(ACTIVITYT)/worker_linked
endif

# What the linter must know.
EXTRA_tests/activity/worker.c = $(CUDAINC) $(if $(CUPTI_HEADER),-isystem $(dir $(CUPTI_HEADER)))
