# tests/memory: suites of the device allocator, on the scripted device (fake.c).

MEMORY_TEST_OBJS := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(call objs,tests/memory/fake.c tests/memory/rig.c)
MEMORY_TESTS     := $(addprefix $(O)/tests/memory/,test_fake test_pool test_reuse test_lend test_faults test_graph test_pause test_oom test_policy test_callback test_current test_api test_stats test_snapshot test_history test_pinned test_pinned_stress test_stress)
MEMORY_TESTS_ALL := $(addprefix $(O)/tests/memory/,test_stress_all test_pinned_stress_all)
MEMORY_TESTS_LONG := $(addprefix $(O)/tests/memory/,test_stress_long test_pinned_stress_long)

TESTS     += $(MEMORY_TESTS)
TESTS_ALL += $(MEMORY_TESTS_ALL)
TESTS_LONG += $(MEMORY_TESTS_LONG)

$(eval $(call one_program,$(O)/tests/memory/suites,$(MEMORY_TESTS),$(MEMORY_TEST_OBJS),$$(CHECK_LIBS) -lm -pthread))
$(eval $(call one_program,$(O)/tests/memory/suites_all,$(MEMORY_TESTS_ALL),$(MEMORY_TEST_OBJS),$$(CHECK_LIBS) -lm -pthread))
$(eval $(call one_program,$(O)/tests/memory/suites_long,$(MEMORY_TESTS_LONG),$(MEMORY_TEST_OBJS),$$(CHECK_LIBS) -lm -pthread))
ONE_THREAD += $(addprefix tests/memory/,test_faults test_fake test_policy)
