# reports: spools in, a trace out; a trace in, a report out. Who links it adds
#   $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS) and $(REPORTS_LIBS)

REPORTS_OBJS := $(call objs,$(sort $(wildcard reports/*/*.c)))
REPORTS_LIBS := $(call pkg_libs,sqlite3) $(call pkg_libs,jansson) $(call pkg_libs,libdw) $(call pkg_libs,libelf) -ldl -lm

EXTRA_reports := $(call pkg_cflags,sqlite3) $(call pkg_cflags,jansson) $(call pkg_cflags,libdw) $(call pkg_cflags,libelf)

$(OBJ)/reports/import/schema.o: reports/import/schema.sql

# Weir's own rules, linked in as text: each ended by a NUL, and all by another.
RULES_TEXT  := $(OBJ)/reports/findings/findings_rules.txt
RULES_FILES := $(sort $(wildcard reports/findings/rules/*.sql))
EXTRA_reports/findings/rule.c := -Wa,-I$(OBJ)/reports/findings

$(RULES_TEXT): $(RULES_FILES) reports/findings/rules
	@mkdir -p $(@D)
	$(say) RULES $@
	$(Q)for f in $(RULES_FILES); do cat $$f && printf '\0' || exit 1; done >$@

$(OBJ)/reports/findings/rule.o: $(RULES_TEXT)

reports: $(REPORTS_OBJS)
all: reports
.PHONY: reports
