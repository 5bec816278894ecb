# tests/core: suites of the core. test_spool_hostile_long goes over every byte and every cut.

CORE_TEST_OBJS := $(sort $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS)) \
                  $(call objs,core/base/bias.c tests/core/support.c tests/core/sample.c)
CORE_TESTS     := $(addprefix $(O)/tests/core/,test_base test_bias test_held test_rules test_spool test_spool_faults test_spool_hostile test_stack)
CORE_TESTS_ALL := $(O)/tests/core/test_spool_hostile_all
CORE_TESTS_LONG := $(O)/tests/core/test_spool_hostile_long

TESTS     += $(CORE_TESTS)
ONE_THREAD += tests/core/test_rules
TESTS_ALL += $(CORE_TESTS_ALL)
TESTS_LONG += $(CORE_TESTS_LONG)

$(CORE_TESTS) $(CORE_TESTS_ALL) $(CORE_TESTS_LONG): $(O)/tests/core/%: $(OBJ)/tests/core/%.o $(CORE_TEST_OBJS)
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

# The reader under libFuzzer, for FUZZ_SECONDS; fuzz_spool is the same target, which only reads the seeds.
FUZZ_TARGETS   += fuzz-spool
FUZZ_SECONDS   ?= 60
FUZZ_CC        ?= clang
CORE_FUZZ      := $(O)/tests/core/fuzz
CORE_FUZZ_SRCS := tests/core/fuzz_spool.c core/trace/spool_reader.c core/base/map.c core/base/status.c core/base/clock.c
VALGRIND_TESTS += $(O)/tests/core/test_base

$(CORE_FUZZ)/seed_spool: tests/core/seed_spool.c tests/core/fuzz_spool.h core/trace/spool.h core/trace/event.h
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS) $(CFLAGS) -o $@ $<

$(CORE_FUZZ)/seeds: $(CORE_FUZZ)/seed_spool
	@rm -rf $@ && mkdir -p $@
	$(Q)$< $@

$(CORE_FUZZ)/fuzz_spool_alone: $(CORE_FUZZ_SRCS) $(wildcard core/trace/*.h core/base/*.h tests/core/fuzz_spool.h)
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) -std=gnu11 $(WARN) $(CPPFLAGS) $(CFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all \
	  -DFUZZ_ALONE -o $@ $(CORE_FUZZ_SRCS)

$(CORE_FUZZ)/fuzz_spool: $(CORE_FUZZ_SRCS) $(wildcard core/trace/*.h core/base/*.h tests/core/fuzz_spool.h)
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(FUZZ_CC) -std=gnu11 $(WARN) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer,address,undefined \
	  -fno-sanitize-recover=all -o $@ $(CORE_FUZZ_SRCS)

fuzz-spool: $(CORE_FUZZ)/seeds $(CORE_FUZZ)/fuzz_spool_alone $(if $(shell command -v $(FUZZ_CC)),$(CORE_FUZZ)/fuzz_spool)
	@ASAN_OPTIONS=detect_leaks=0 $(CORE_FUZZ)/fuzz_spool_alone $(CORE_FUZZ)/seeds/*
	@if [ -x $(CORE_FUZZ)/fuzz_spool ]; then mkdir -p $(CORE_FUZZ)/corpus && cd $(CORE_FUZZ) && \
	  ./fuzz_spool -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -verbosity=0 corpus seeds; \
	  else echo "fuzz-spool: $(FUZZ_CC) is not installed (apt-get install clang); only the seeds were read" >&2; exit 1; fi
.PHONY: fuzz-spool
