# Tools: the weir command, benchmarks, and what packs and installs the rest.

-include $(wildcard tools/examples/rules.mk)

REPLAY_OBJS := $(call objs,$(sort $(wildcard tools/replay/*.c))) $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(OBJ)/core/io/pickle.o
TOOLS_SRCS := $(sort $(wildcard tools/weir/*.c tools/weir/*/*.c))
TOOLS_OBJS := $(call objs,$(TOOLS_SRCS))
EXTRA_tools = $(call pkg_cflags,sqlite3 jansson libdw)

# Wanted beside the program when it runs somewhere else (make bundle): DT_RPATH, not RUNPATH, because
# it also serves the libraries that our libraries need, and weir's own must not be mixed with others.
TOOLS_RPATH := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../lib/weir'
TOOLS_LIBS   = $(REPORTS_LIBS) -lpthread -ldl

$(BIN)/weir: $(sort $(TOOLS_OBJS) $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS)) $(SAN_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) $(TOOLS_RPATH) -o $@.new $^ $(TOOLS_LIBS)
	@mv $@.new $@

weir: $(if $(REPORTS_OBJS),$(BIN)/weir)
tools: weir
all: tools
.PHONY: weir tools

# ---- the manual: sections 3 and 7 are made from core/weir, and from the pages of rules -----------

$(O)/man/made: tools/man/gen.py core/weir.h core/base/status.h core/weir/README.md $(wildcard core/weir/*.h tools/man/examples/*.c) \
  tools/scripts/findings.py $(wildcard reports/findings/explain/*.md reports/findings/rules/*.sql)
	$(say) MAN $(O)/man
	$(Q)$< $(O)/man $(VERSION)
	$(Q)tools/scripts/findings.py --man $(O)/man $(VERSION)
	@touch $@

# For clang-tidy: they include <weir.h>, as a program does.
$(foreach e,tools/examples/newcomer.c $(wildcard tools/man/examples/*.c),$(eval EXTRA_$(e) = -Icore))

man: $(O)/man/made
all: man
.PHONY: man

# ---- style and lint ------------------------------------------------------------------------------

TIDY_SRCS := $(shell tools/scripts/sources.sh tidy)
ALL_HDRS  := $(filter %.h %.def,$(shell tools/scripts/sources.sh c) $(wildcard core/trace/api.def))

format: ## lay out all C and CUDA sources with clang-format
	$(Q)tools/scripts/sources.sh c | xargs clang-format -i

lint: lint-format lint-make lint-shell lint-names lint-walks lint-man lint-schema lint-exports lint-statics lint-floors lint-porting lint-findings check-table lint-tidy ## clang-format (nothing to change), variables of make, clang-tidy, shellcheck, man pages, names of files, walks through the code, names of static functions, the JSON Schema of reports, export lists, which folder may use which, the tables of functions and of PyTorch's names, the document of findings

lint-format:
	$(say) FORMAT "all C and CUDA sources"
	$(Q)tools/scripts/sources.sh c | xargs clang-format --dry-run -Werror

lint-shell:
	$(say) SHELL "all scripts"
	$(Q)tools/scripts/sources.sh sh | xargs shellcheck

lint-names:
	$(say) NAMES "files in comments and pages"
	$(Q)python3 tools/scripts/check-names.py

options: ## write the heads of the lists of options in weir(1) anew, of tools/weir/base/options.def
	$(Q)tools/scripts/options.py

lint-walks:
	$(say) WALKS "steps of walks in pages"
	$(Q)tools/scripts/check-walks.py

lint-man: $(O)/man/made
	$(say) MAN "tools/man"
	$(Q)tools/scripts/options.py --check
	$(Q)mandoc -T lint -W warning tools/man/*.1
	$(Q)find $(O)/man -name '*.[37]' -type f | xargs mandoc -T lint -W warning

lint-schema:
	$(say) SCHEMA "reports/schema"
	$(Q)tools/scripts/report-schema.py --check

lint-exports: all
	$(say) EXPORTS "$(LIB)"
	$(Q)tools/scripts/check-exports.sh "$(O)"

# A variable in a target or a prerequisite counts as it is where the rule is read: one that is set further down
# is nothing there, and what it names is not built.
lint-make:
	$(say) MAKE "variables that are set after their use, or never"
	$(Q)$(MAKE) -n --warn-undefined-variables print-O 2>&1 >/dev/null | { ! grep 'undefined variable'; }

lint-statics:
	$(say) STATICS "names of static functions"
	$(Q)python3 tools/scripts/check-statics.py

lint-floors: all
	$(say) FLOORS "all folders"
	$(Q)CC="$(CC)" python3 tools/scripts/check-floors.py "$(OBJ)"

# PyTorch's names and ours: each has a function and a comparison, or a word on why not.
porting: ## make tools/doc/porting.md of tools/doc/porting.tsv, what libweir exports and what is compared with PyTorch
	$(Q)tools/scripts/porting.py

# What findings mean: one text for the command, the manual and the document.
findings: ## make tools/doc/findings.md of the pages of rules, reports/findings/explain, and of what make savings measured
	$(Q)tools/scripts/findings.py

lint-findings:
	$(say) FINDINGS "tools/doc/findings.md"
	$(Q)tools/scripts/findings.py --check

lint-porting:
	$(say) PORTING "tools/doc/porting.md"
	$(Q)tools/scripts/porting.py --check

# How far the static analyzer follows paths: shallow finds what deep does, but through fewer calls, in
# a quarter of the time. make test-long is deep.
TIDY_DEPTH ?= shallow
TIDY_OBJS  := $(TIDY_SRCS:%=$(O)/lint/$(TIDY_DEPTH)/%.ok)

lint-tidy: $(TIDY_OBJS)

$(O)/lint/$(TIDY_DEPTH)/%.ok: % .clang-tidy tests/.clang-tidy tests/victims/.clang-tidy $(ALL_HDRS) | $(SIMGEN)/stamp $(RT_GEN)/stamp $(SIMCUPTI_GEN)/stamp
	@mkdir -p $(@D)
	$(say) TIDY $<
	$(Q)clang-tidy --quiet $< -- -std=gnu11 $(filter-out -Werror,$(WARN)) $(CPPFLAGS) $(CUDAINC) -Xclang -analyzer-config -Xclang mode=$(TIDY_DEPTH) \
	  $(filter-out -fno-tree-%,$(EXTRA_$(firstword $(subst /, ,$<))) $(EXTRA_$<)) >$@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

# ---- installing ----------------------------------------------------------------------------------

install: all ## copy the programs, libraries, headers and manual below $(DESTDIR)$(PREFIX)
	@tools/scripts/install.sh "$(O)" "$(PREFIX)" "$(DESTDIR)" "$(VERSION)" "$(LIBDIR)"

uninstall: ## remove what install copied there
	@tools/scripts/install.sh --remove "$(PREFIX)" "$(DESTDIR)"

bundle: ## a relocatable archive, with the libraries weir needs beside it
	@tools/scripts/deps.sh need patchelf "a bundle"
	@$(MAKE) all gpu-suites
	@MAKE="$(MAKE)" tools/scripts/bundle.sh "$(O)" "$(VERSION)" "$(ARCH)" "$(CUDA_HOME)"

demo: ## set the machine up, build, run a training loop under Weir and print its report
	@tools/scripts/deps.sh install build "$(CUDA_HOME)" "$(TOOLKIT)"
	@$(MAKE) all
	@tools/scripts/demo.sh "$(O)"

.PHONY: options porting lint-porting findings lint-findings format lint lint-format lint-make lint-shell lint-names lint-walks lint-man lint-schema lint-exports lint-statics lint-floors lint-tidy install uninstall bundle demo

# ---- benchmarks ----------------------------------------------------------------------------------

BENCH_JSON ?= $(O)/bench.json
ROWS       ?=
# What measures the library is linked as a program links it: libweir.so, through its exported functions.
BENCH_WEIR := $(addprefix $(O)/bench/,alloc tensor gpu gpu_tensor)

BENCH_OUTPUT := $(call objs,tools/weir/base/output_file.c tools/weir/base/cmd.c reports/base/follow.c reports/base/escape.c \
                reports/base/util.c)

$(O)/bench/bench: $(sort $(call objs,$(addprefix tools/bench/,bench.c measure.c sized.c) $(addprefix tools/bench/rows_,calls.c findings.c gpu.c memory.c report.c tensor.c trace.c watch.c)) $(BENCH_OUTPUT) $(CORE_TRACE_WRITER_OBJS))
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(call pkg_libs,sqlite3) -lm -ldl -lpthread

$(O)/bench/calls: $(addprefix $(OBJ)/tools/bench/,calls.o cupti_client.o runtime_calls.o)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -rdynamic -o $@ $^ -ldl -lpthread

EXTRA_tools/bench/calls.c = -Wno-pedantic -Wno-unknown-attributes $(CUDAINC)
EXTRA_tools/bench/runtime_calls.c = -Wno-pedantic
EXTRA_tools/bench/cupti_client.c = -Wno-pedantic $(CUDAINC) $(if $(CUPTI_HEADER),-isystem $(dir $(CUPTI_HEADER)))
EXTRA_tools/bench/rows_calls.c = $(CUDAINC) $(if $(CUPTI_HEADER),-isystem $(dir $(CUPTI_HEADER)))

bench: ## set the machine up, build, measure the targets; prints a table, writes build/bench.json (ROWS="call dlsym": only these)
	@tools/scripts/deps.sh install bench "$(CUDA_HOME)" "$(TOOLKIT)"
	@$(MAKE) bench-build
	@$(O)/bench/bench "$(abspath $(O))" "$(BENCH_JSON)" $(ROWS)

# Linked without SQLite: a tally needs none.
$(O)/bench/tally: $(sort $(call objs,tools/bench/tally.c reports/base/util.c $(wildcard reports/tally/*.c)) $(CORE_TRACE_READER_OBJS))
$(O)/bench/scrape: $(sort $(call objs,tools/bench/scrape.c core/base/json.c reports/base/util.c $(wildcard reports/tally/*.c reports/metrics/*.c)) $(CORE_TRACE_READER_OBJS))
$(O)/bench/tally $(O)/bench/scrape:
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ -lpthread

bench-build: all $(addprefix $(O)/bench/,bench calls tally scrape) $(BENCH_WEIR) $(O)/tests/findings/waster

# What findings predict, and what the fixes gain: rows of the bench, kept for the document of findings.
savings: bench-build ## measure what findings predict against the same work without the waste, and put it into tools/doc/findings.md
	@for i in 1 2 3; do $(O)/bench/bench "$(abspath $(O))" $(O)/savings-$$i.json \
	  $$(sed -n 's/^SAVING(\([a-z_]*\),.*/saving-\1/p' tools/bench/savings.def) || test $$? = 1 || exit 1; done
	$(Q)tools/scripts/savings.py $(O)/savings-[123].json
	$(Q)tools/scripts/findings.py

.PHONY: bench bench-build savings

# The pictures of README.md: a real report, drawn, and its page in Chromium. The program lies in /tmp so that no one's folders
# show.
picture: all
	$(Q)cp $(O)/examples/train /tmp/train
	$(Q)$(BIN)/weir run --force --sim=1,h100 --hash --mode=observe -o /tmp/train.db -- /tmp/train >/dev/null
	$(Q)tools/scripts/terminal-svg.py 100 $(BIN)/weir report --no-pager /tmp/train.db >tools/report.svg
	$(Q)$(BIN)/weir report --html -o /tmp/train.html /tmp/train.db
	$(Q)tools/scripts/page-picture.py /tmp/train.html tools/doc/page.png
	$(Q)rm -f /tmp/train /tmp/train.db /tmp/train.html

.PHONY: picture

$(O)/bench/alloc: $(call objs,tests/memory/fake.c)
$(O)/bench/gpu $(O)/bench/gpu_tensor: $(LIB)/libweir-cuda.so
$(BENCH_WEIR): $(O)/bench/%: $(OBJ)/tools/bench/%.o $(LIB)/libweir.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../lib' -ldl -lpthread

EXTRA_tools/bench/alloc.c = -Wno-pedantic
EXTRA_tools/bench/gpu.c = $(CUDAINC) -Wno-pedantic
EXTRA_tools/bench/tensor.c = -O3# the loop it compares with is vectorised
