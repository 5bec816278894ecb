# Tests: every folder's suites, and the targets that run them. A suite is one executable; it is named
# in TESTS (quick: make test), TESTS_ALL (slow: make test-all only) or TESTS_LONG (repetition: make
# test-long only) by its folder's rules.mk. A suite test_NAME.c that looks at tests/level.h can be built
# as test_NAME_all and test_NAME_long too: the same checks, more often.

TESTS     :=
TESTS_ALL :=
TESTS_LONG :=
TEST_TOOLS := # built before any suite runs, whichever they are: victims, plug-ins, traces
# test-all only. Suites that a sanitizer build cannot host, because they load the preload library, which
# is never instrumented, into programs that are (these suites run with an instrumented weir, and all else
# plain); what valgrind runs (valgrind 3.19 ends by an assertion of its own in programs that map and
# unmap many files, as all that write spools do, and has no room where the software device's memory
# lies); make targets that fuzz for FUZZ_SECONDS.
NOT_ASAN       :=
NOT_TSAN       :=
# Suites that start no thread: ThreadSanitizer has nothing to look for. Slow ones whose threads meet in
# places where those of other suites meet too: ThreadSanitizer has them in make test-long. The threads
# that weir starts are those of reports, which suites of reports have: with weir alone instrumented, the suite
# of its signal handlers is run. Suites of the
# preload library alone: with another weir around it they would try the same again.
# And what make test-long alone has instrumented: under AddressSanitizer, programs for make check-gpu, whose
# rows other suites hold; around weir, suites that ask little or nothing of weir itself, and those of which
# a shorter one asks the same.
ONE_THREAD     :=
ASAN_AGAIN     := tests/gpu/test_gpu
AROUND_AGAIN   := $(addprefix tests/tools/test_,deps install public) tests/ops/test_fuzz tests/io/test_numpy \
                  tests/innocents/test_programs_all tests/findings/test_variants
TSAN_AGAIN     := tests/gpu/test_gpu tests/cuda/test_faults tests/cuda/test_compute tests/examples/test_examples \
                  $(addprefix tests/ops/test_,elementwise more faults devices) tests/cuda/test_copy \
                  $(addprefix tests/tensor/test_,create view convert copy faults) \
                  $(addprefix tests/device/test_cpu_,gemm map) tests/memory/test_snapshot \
                  $(addprefix tests/sim_rt/test_,runtime_static runtime_ptds launch_static launch_ptds)
AROUND_TSAN    := tests/tools/test_run
NOT_AROUND     :=
VALGRIND_TESTS :=
FUZZ_TARGETS   :=
# What nvcc makes and no sanitizer changes: a sanitizer's tree has copies of the plain tree's.
SAME_PLAIN     := $(KERNELS:%=$(KERNELS_OBJ)/%.fatbin) $(EX_CUDA:%=$(OBJ)/$(EX_DIR)/%.o) \
                  $(OBJ)/$(EX_DIR)/driver_kernels.fatbin $(EXAMPLES_STATIC)

CHECK_LIBS  = $(call pkg_libs,check)
# clang: attributes that gcc alone has are left out there, and variadic macros may be called without more.
EXTRA_tests = -Wno-unknown-attributes -Wno-gnu-zero-variadic-macro-arguments $(call pkg_cflags,check sqlite3) $(CUDAINC) $(if $(SAN),$(if $(filter $(QUICK_TO_COMPILE),$<),-O0))

# Optimising what a sanitizer adds to a test's own code takes two thirds of its compiler's time. Tests
# that calculate much or look at their own stack are optimised as all else is.
QUICK_TO_COMPILE := $(filter-out $(wildcard tests/*/rig.c tests/*/fake.c tests/reports/synth.c) tests/cuda/test_compute.c, \
                    $(wildcard $(addprefix tests/,$(addsuffix /*.c,cuda io memory nn ops reports sim tensor))))

# $(call one_program,PROGRAM,SUITES,OBJECTS,COMMAND): suites that link the same objects, as one program with
# a name for each (tests/suites.c). OBJECTS may name libraries, as prerequisites; COMMAND is what follows the
# compiler and "-o PROGRAM OBJECTS".
define one_program
$(1): $(2:$(O)/%=$(OBJ)/%.suite.o) $(1:$(O)/%=$(OBJ)/%.main.o) $(3)
	@mkdir -p $$(@D)
	$$(say) LD $$@
	$$(Q)$$(CC) $$(LDSAN) $$(LDFLAGS) -o $$@ $$(sort $$(filter %.o,$$^)) $(4)

$(1:$(O)/%=$(OBJ)/%.main.o): tests/suites.c tests/rules.mk $(wildcard $(dir $(1:$(O)/%=%))rules.mk) | check-tools
	@mkdir -p $$(@D)
	$$(say) CC "tests/suites.c ($(notdir $(1)))"
	$$(Q)$$(CC) $$(BASEFLAGS) $$(CPPFLAGS) $$(CFLAGS) '-DSUITES=$(foreach s,$(2),S($(notdir $(s))))' -c $$< -o $$@

$(2): $(1)
	@ln -f $$< $$@

.SECONDARY: $(2:$(O)/%=$(OBJ)/%.o)
endef

# A suite's object, its main renamed.
$(OBJ)/tests/%.suite.o: $(OBJ)/tests/%.o
	$(Q)objcopy --redefine-sym main=suite_$(notdir $*) $< $@

# What a suite with the engine inside is linked with to run on the software device. DT_RPATH, not RUNPATH:
# it serves the sanitizers' own dlopen, too.
SIM_LINK = -rdynamic $(SIM)/libcuda.so.1 -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../../lib/sim:$$ORIGIN/../../lib' \
           $(CHECK_LIBS) -lm -ldl -pthread

# Functions that a suite has its own of, between the engine and libc: $(call wrap,malloc free).
comma := ,
wrap   = $(addprefix -Wl$(comma)--wrap=,$(1))

include $(wildcard tests/*/rules.mk)

$(OBJ)/tests/%_all.o: tests/%.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (all)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_tests) $(EXTRA_$<) -DTEST_LEVEL=1 -c $< -o $@

$(OBJ)/tests/%_long.o: tests/%.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (long)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(EXTRA_tests) $(EXTRA_$<) -DTEST_LEVEL=2 -c $< -o $@

test: ## set the machine up, build, run the quick suites; ends "N passed, N failed"
	@tools/scripts/deps.sh install build "$(CUDA_HOME)" "$(TOOLKIT)"
	@$(MAKE) test-build
	@$(MAKE) test-suites

test-build: all $(TESTS) $(TEST_TOOLS)
test-suites:
	@WEIR_BUILD="$(abspath $(O))" WEIR_SOURCE="$(CURDIR)" CUDA_HOME="$(CUDA_HOME)" tests/run $(TESTS)

test-all-build: test-build $(TESTS_ALL)
test-all: ## test, and: slow suites, ASan/UBSan/TSan builds, fuzzing, valgrind, clang-tidy, export checks
	@tools/scripts/deps.sh install all "$(CUDA_HOME)" "$(TOOLKIT)"
	@O="$(O)" CUDA_HOME="$(CUDA_HOME)" tests/all

test-long: ## the repetition: more seeds, every byte, longer stress, deep static analysis; ten minutes of fuzzing a target (an hour or two)
	@tools/scripts/deps.sh install all "$(CUDA_HOME)" "$(TOOLKIT)"
	@$(MAKE) test-build $(TESTS_LONG)
	@WEIR_TEST_HANG=7200 WEIR_BUILD="$(abspath $(O))" WEIR_SOURCE="$(CURDIR)" CUDA_HOME="$(CUDA_HOME)" tests/run $(TESTS_LONG)
	@$(MAKE) -k lint-tidy TIDY_DEPTH=deep
	@O="$(O)" CUDA_HOME="$(CUDA_HOME)" LONG=1 ONLY="asan tsan fuzz" FUZZ_SECONDS=600 tests/all

# Not in CI: it needs root, a mirror of Debian's and half an hour.
FRESH ?= $(O)/fresh
test-fresh: ## README's commands, make install and make bundle in a minimal Debian of their own (root; half an hour): FRESH=DIR, COMMIT=HEAD
	@tools/scripts/test-fresh.sh "$(or $(COMMIT),HEAD)" "$(FRESH)"

check-gpu: all ## on a machine with a GPU: examples with and without Weir, calls counted against CUPTI; the allocator
	@O="$(abspath $(O))" CUDA_HOME="$(CUDA_HOME)" tests/gpu/check-gpu.sh

# What tests/all asks: the suites by name, as this make knows them.
print-%:
	@echo $($*)

.PHONY: test test-fresh test-build test-suites test-all test-all-build test-long check-gpu
