# Suites of the weir command. They run build/bin/weir itself, on the software device.

TOOLS_TESTS     := $(addprefix $(O)/tests/tools/test_,command check completion options explain trace export output stats python inlines compare run install public deps lost users schedules nvml dormant)
TOOLS_TESTS     += $(addprefix $(O)/tests/tools/test_,prove control live watch recorder sample)
TOOLS_TESTS     += $(O)/tests/tools/test_figures
TOOLS_TESTS_ALL := $(addprefix $(O)/tests/tools/test_,scrape agreement bundle called check_ci schedules_all)
TOOLS_TESTS_LONG := $(addprefix $(O)/tests/tools/test_,schedules_long recorder_long outputs)

$(TOOLS_TESTS) $(TOOLS_TESTS_ALL) $(TOOLS_TESTS_LONG): $(O)/tests/tools/test_%: $(OBJ)/tests/tools/test_%.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(sort $^) $(CHECK_LIBS) $(TOOLS_LIBS) -lutil -lm

# It asks for spools itself.
$(O)/tests/tools/test_users: $(CORE_TRACE_WRITER_OBJS)

# The command's parts alone, on folders and sockets of the test's.
WEIR_PARTS := $(OBJ)/tests/tools/weir_main.o \
              $(sort $(filter-out $(OBJ)/tools/weir/main.o,$(TOOLS_OBJS)) $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS))
$(addprefix $(O)/tests/tools/test_,control live sample): $(WEIR_PARTS)
$(O)/tests/tools/test_live: $(OBJ)/tests/reports/synth.o $(CORE_TRACE_WRITER_OBJS)

# The sampler alone, on the stand-in for NVML.
$(O)/tests/tools/test_nvml: $(OBJ)/tools/weir/collect/nvml.o $(CORE_BASE_OBJS) | $(O)/tests/e2e/nvml/libnvidia-ml.so.1

$(O)/tests/tools/test_check $(O)/tests/tools/test_check_ci: | $(addprefix $(O)/examples/,train fixed/train)

# Programs with much to report.
$(O)/tests/tools/test_figures: | $(O)/tests/findings/waster $(O)/tests/e2e/graph_caller $(O)/tests/victims/nvtx/nests $(O)/examples/train

# Which walks a program and its collector through their system calls.
$(addprefix $(O)/tests/tools/test_,schedules schedules_all schedules_long): $(OBJ)/tests/tools/scheduler.o

# Its intervals and verdicts alone; programs that waste.
$(O)/tests/tools/test_prove: $(addprefix $(OBJ)/tools/weir/prove/,interval.o judge.o) | $(O)/tests/findings/waster $(addprefix $(O)/tests/tools/,peers steps)

$(O)/tests/tools/steps: $(OBJ)/tests/victims/nvtx/steps.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcudart -ldl

$(O)/tests/tools/peers: $(OBJ)/tests/tools/peers.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcudart

# A program that has itself recorded or not.
$(O)/tests/tools/test_dormant: | $(O)/tests/tools/spells $(O)/tests/findings/waster
$(O)/tests/tools/spells: $(OBJ)/tests/tools/spells.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcudart -ldl -pthread

$(O)/tests/tools/test_watch $(O)/tests/tools/test_scrape: | $(O)/tests/tools/holder

# Who reads pages of metrics, from PyPI. Where it is not to be had, the test names it.
$(O)/tests/tools/test_scrape: | $(O)/venv/scrape/made
$(O)/venv/scrape/made:
	@mkdir -p $(@D)
	$(say) FETCH $(@D)
	$(Q)if python3 -m venv $(@D) && $(@D)/bin/pip -q install prometheus-client==0.26.0; then touch $@; fi

$(O)/tests/tools/holder: $(OBJ)/tests/tools/holder.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcudart

$(O)/tests/tools/test_recorder $(O)/tests/tools/test_recorder_long: | $(O)/tests/tools/ringer

$(O)/tests/tools/ringer: $(OBJ)/tests/tools/ringer.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcuda -lpthread

$(O)/tests/tools/walker: $(OBJ)/tests/tools/walker.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(CUDA_STUBS) -lcudart

$(O)/tests/tools/victim: $(OBJ)/tests/tools/victim.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -ldl

# A program whose RPATH leads to its own libcudart.
$(O)/tests/tools/own_runtime: $(OBJ)/tests/tools/own_runtime.o tests/tools/own_runtime.c cuda/sim/runtime/libcudart.map
	@mkdir -p $(@D)/own
	$(say) LD $@
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DOWN_RUNTIME -shared -fPIC -Wl,-soname,libcudart.so.13 \
	  -Wl,--version-script=cuda/sim/runtime/libcudart.map -o $(@D)/own/libcudart.so.13 tests/tools/own_runtime.c
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $< $(@D)/own/libcudart.so.13 -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/own'

# A program that no library is loaded into.
$(O)/tests/tools/static_program: tests/tools/static_program.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -O2 -Wall -Wextra -static -nostdlib -ffreestanding -o $@ $<

# Interpreters' memory, by version; t: without the lock. Never instrumented.
FAKE_PYTHONS := $(addprefix $(O)/tests/tools/fake_python_,3.13 3.13t 3.14 3.14t)
$(FAKE_PYTHONS): tests/tools/fake_python.c | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -std=gnu11 -O1 -fno-optimize-sibling-calls -Wall -Wextra $(CUDAINC) -DMINOR=$(patsubst %t,%,$(subst .,,$(suffix $@))) \
	  -DFREE=$(if $(filter %t,$@),1,0) -rdynamic -o $@ $< -L$(CUDA_STUBS) -lcuda -pthread

TEST_TOOLS += $(O)/bench/bench

EXTRA_tests/tools/fake_python.c = -DMINOR=14 -DFREE=1 -Wno-missing-prototypes # for the linter

# Never instrumented, always optimised; by Clang too where it is.
INLINES      := $(O)/tests/tools/inlines $(if $(shell command -v clang++),$(O)/tests/tools/inlines_clang)
INLINES_CXX   = $(CXX)
$(O)/tests/tools/inlines_clang: INLINES_CXX = clang++
$(INLINES): tests/tools/inlines.cc | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) CXX $@
	$(Q)$(INLINES_CXX) -std=c++17 -O2 -g -Wall -Wextra -Werror $(CUDAINC) -o $@ $< -L$(CUDA_STUBS) -lcudart

# Starts a program by each function of libc's that can.
$(O)/tests/tools/starter: tests/tools/starter.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -O2 -Wall -Wextra -D_GNU_SOURCE -o $@ $<

$(O)/tests/tools/libother_clock.so: tests/tools/other_clock.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -O2 -Wall -Wextra -shared -fPIC -o $@ $<

EXTRA_tests/tools/victim.c = -Wno-pedantic

TESTS      += $(TOOLS_TESTS)
NOT_ASAN   += $(TOOLS_TESTS:$(O)/%=%)
NOT_TSAN   += $(TOOLS_TESTS:$(O)/%=%)
TESTS_ALL  += $(TOOLS_TESTS_ALL)
TESTS_LONG += $(TOOLS_TESTS_LONG)
$(TOOLS_TESTS) $(TOOLS_TESTS_ALL) $(TOOLS_TESTS_LONG): | $(O)/tests/reroute/trap \
  $(addprefix $(O)/tests/tools/,walker own_runtime static_program starter victim libother_clock.so) $(FAKE_PYTHONS) $(INLINES)

# All that reads traces, over damaged ones, for FUZZ_SECONDS: weir as the sanitizer's tree has it, but for its main().
FUZZ_TARGETS    += fuzz-trace
FUZZ_SEED       ?= 1
FUZZ_TRACES     := $(addprefix $(O)/tests/tools/fuzz/,random.db graph.db short.db train.db pipeline.db)
FUZZ_TRACE_OBJS := $(call objs,tests/tools/fuzz_trace.c tests/tools/damage.c) $(WEIR_PARTS)

$(OBJ)/tests/tools/weir_main.o: tools/weir/main.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (weir_main)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_tools) -Wno-missing-prototypes -Dmain=weir_main -c $< -o $@

tools_comma := ,
$(O)/tests/tools/fuzz_trace: $(FUZZ_TRACE_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) $(addprefix -Wl$(tools_comma)--wrap=,sqlite3_open_v2 sqlite3_progress_handler wr_guard_time) \
	  -o $@ $^ $(TOOLS_LIBS)

$(O)/tests/tools/fuzz/random.db: FUZZ_RUN = --sim=2 --device-times=all --hash -o $@ -- $(O)/tests/e2e/random_caller 3 1 60 $@.counts
$(O)/tests/tools/fuzz/graph.db: FUZZ_RUN = --sim --device-times=all -o $@ -- $(O)/tests/e2e/graph_caller random 1
$(O)/tests/tools/fuzz/short.db: FUZZ_RUN = --sim -o $@ -- $(O)/tests/e2e/shortage 100000000
$(O)/tests/tools/fuzz/train.db: FUZZ_RUN = --sim=2 --hash --mode=strict -o $@ -- $(O)/examples/train 3
$(O)/tests/tools/fuzz/pipeline.db: FUZZ_RUN = --sim --device-times=all -o $@ -- $(O)/examples/pipeline
$(FUZZ_TRACES): $(BIN)/weir | $(addprefix $(O)/tests/e2e/,random_caller graph_caller shortage) $(addprefix $(O)/examples/,train pipeline)
	@mkdir -p $(@D)
	$(Q)$(BIN)/weir run --force $(FUZZ_RUN) >$@.log 2>&1 || { cat $@.log; exit 1; }

fuzz-trace: $(FUZZ_TRACES)
	@$(MAKE) -s O=$(O)/asan SAN=address,undefined CFLAGS="-O1 -g1" $(O)/asan/tests/tools/fuzz_trace
	@$(O)/asan/tests/tools/fuzz_trace $(FUZZ_SECONDS) $(FUZZ_SEED) $(FUZZ_TRACES)
.PHONY: fuzz-trace
