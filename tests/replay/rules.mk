# tests/replay: suites of tools/replay.

REPLAY_TEST_OBJS := $(sort $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS) \
                    $(call objs,tests/replay/rig.c tests/reports/synth.c))
REPLAY_TESTS     := $(addprefix $(O)/tests/replay/,test_policies test_lists test_fit)

TESTS      += $(REPLAY_TESTS)
ONE_THREAD += $(REPLAY_TESTS:$(O)/%=%)

$(O)/tests/replay/test_fit: $(OBJ)/tests/tools/command.o

$(REPLAY_TESTS): $(O)/tests/replay/%: $(OBJ)/tests/replay/%.o $(REPLAY_TEST_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(REPORTS_LIBS) -pthread
