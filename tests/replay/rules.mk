# tests/replay: suites of tools/replay.

REPLAY_TEST_OBJS := $(sort $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS) \
                    $(call objs,tests/replay/rig.c tests/reports/synth.c tests/tools/command.c))
REPLAY_TESTS     := $(addprefix $(O)/tests/replay/,test_policies test_lists test_fit)

TESTS      += $(REPLAY_TESTS)
ONE_THREAD += $(REPLAY_TESTS:$(O)/%=%)

$(eval $(call one_program,$(O)/tests/replay/suites,$(REPLAY_TESTS),$(REPLAY_TEST_OBJS),$$(CHECK_LIBS) $$(REPORTS_LIBS) -pthread))
