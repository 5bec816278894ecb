# reports: spools in, a trace out; a trace in, a report out. Who links it adds
#   $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS) and $(REPORTS_LIBS)

REPORTS_OBJS := $(call objs,$(sort $(wildcard reports/*/*.c)))
REPORTS_LIBS := $(call pkg_libs,sqlite3) $(call pkg_libs,jansson) $(call pkg_libs,libdw) $(call pkg_libs,libelf) $(call pkg_libs,zlib) -ldl -lm

EXTRA_reports := $(call pkg_cflags,sqlite3) $(call pkg_cflags,jansson) $(call pkg_cflags,libdw) $(call pkg_cflags,libelf) $(call pkg_cflags,zlib) $(if $(SAN),,-fomit-frame-pointer)

$(OBJ)/reports/import/schema.o: reports/import/schema.sql
$(OBJ)/reports/stats/reports.o: reports/stats/reports.sql

# Weir's own rules, linked in as text: each ended by a NUL, and all by another.
RULES_TEXT  := $(OBJ)/reports/findings/findings_rules.txt
RULES_FILES := $(sort $(wildcard reports/findings/rules/*.sql))
EXTRA_reports/findings/rule.c := -Wa,-I$(OBJ)/reports/findings

$(RULES_TEXT): $(RULES_FILES) reports/findings/rules
	@mkdir -p $(@D)
	$(say) RULES $@
	$(Q)for f in $(RULES_FILES); do cat $$f && printf '\0' || exit 1; done >$@

$(OBJ)/reports/findings/rule.o: $(RULES_TEXT)

# What their findings mean, a page a rule: its id, a NUL, the page, a NUL; another ends all.
EXPLAIN_TEXT  := $(OBJ)/reports/findings/findings_explain.txt
EXPLAIN_FILES := $(sort $(wildcard reports/findings/explain/*.md))
EXTRA_reports/findings/explain.c := -Wa,-I$(OBJ)/reports/findings

$(EXPLAIN_TEXT): $(EXPLAIN_FILES) reports/findings/explain
	@mkdir -p $(@D)
	$(say) EXPLAIN $@
	$(Q)for f in $(EXPLAIN_FILES); do basename $$f .md | tr '\n' '\0' && cat $$f && printf '\0' || exit 1; done >$@

$(OBJ)/reports/findings/explain.o: $(EXPLAIN_TEXT)

# The page that `weir report --html` writes, without its data: HTML, style and scripts, one text.
PAGE_SHELL := $(OBJ)/reports/page/page_shell.html
PAGE_PARTS := $(shell sed -n 's/^[a-z]* \(.*\)$$/reports\/page\/\1/p' reports/page/parts.txt)
EXTRA_reports/page/shell.c := -Wa,-I$(OBJ)/reports/page

$(PAGE_SHELL): reports/page/join.py reports/page/parts.txt reports/page/app/page.html $(PAGE_PARTS) $(wildcard reports/page/vendor/*/LICENSE)
	@mkdir -p $(@D)
	$(say) PAGE $@
	$(Q)reports/page/join.py reports/page/parts.txt $@

$(OBJ)/reports/page/shell.o: $(PAGE_SHELL)

reports: $(REPORTS_OBJS)
all: reports
.PHONY: reports
