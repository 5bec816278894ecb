# tests/core: suites of the core. test_spool_sweep is test_spool_hostile over every byte and every cut.

CORE_TEST_OBJS := $(sort $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS)) \
                  $(call objs,tests/core/support.c tests/core/sample.c)
CORE_TESTS     := $(addprefix $(O)/tests/core/,test_base test_spool test_spool_faults test_spool_hostile test_stack)
CORE_TESTS_ALL := $(O)/tests/core/test_spool_sweep

TESTS     += $(CORE_TESTS)
TESTS_ALL += $(CORE_TESTS_ALL)

$(OBJ)/tests/core/test_spool_sweep.o: tests/core/test_spool_hostile.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (every byte)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) -DSWEEP_ALL -c $< -o $@

$(CORE_TESTS) $(CORE_TESTS_ALL): $(O)/tests/core/%: $(OBJ)/tests/core/%.o $(CORE_TEST_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -pthread

# Libraries test_stack loads. Built plain: the two plug-ins must have one layout of code.
CORE_PLUGINS := $(addprefix $(O)/tests/core/,plugin_small.so plugin_large.so throws.so)
TEST_TOOLS   += $(CORE_PLUGINS)
PLAIN_SHARED := -shared -fPIC -O1 -g -fomit-frame-pointer -fno-stack-protector

$(O)/tests/core/plugin_small.so: FRAME := 1000
$(O)/tests/core/plugin_large.so: FRAME := 9000
$(O)/tests/core/plugin_small.so $(O)/tests/core/plugin_large.so: tests/core/plugin.c
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(PLAIN_SHARED) -fvisibility=hidden -Wall -Wextra -Werror -DFRAME=$(FRAME) -o $@ $<

$(O)/tests/core/throws.so: tests/core/throws.cc
	@mkdir -p $(@D)
	$(say) CXX $@
	$(Q)$(CXX) $(PLAIN_SHARED) -Wall -Wextra -Werror -o $@ $<

$(O)/tests/core/test_stack: | $(CORE_PLUGINS)
