# tests/reports: suites of the importer and the reports, on synthetic spools.

REPORTS_TEST_OBJS := $(REPORTS_OBJS) $(OBJ)/core/base/json.o $(sort $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS)) \
                     $(call objs,tests/reports/synth.c tests/reports/own_program.c tests/reports/beside_trace.c tests/reports/random_program.c tests/reports/recorder.c tests/tools/damage.c)
REPORTS_TESTS     := $(addprefix $(O)/tests/reports/,test_import test_import_faults test_lifetime test_report test_sites test_cache \
                     test_report_hostile test_listing test_resolve test_queues test_symbolize test_schema test_tensors \
                     test_sweep test_wait_time test_device_work test_range test_graph_records test_copy_hash test_asked test_access test_handed test_launches)
REPORTS_TESTS     += $(addprefix $(O)/tests/reports/,test_findings test_judges test_hashes test_facts test_records test_guard test_pack test_spread test_gains test_order_span test_rows test_events test_relay test_blocks test_wait_rows test_in_use test_page test_tables test_diff test_tally test_window)
REPORTS_TESTS     += $(addprefix $(O)/tests/reports/test_,whole metrics)

TESTS      += $(REPORTS_TESTS)
ONE_THREAD += $(filter-out %/test_guard %/test_relay,$(REPORTS_TESTS:$(O)/%=%))

# The build id shows that a file was changed. Both suites that look at their own symbols have functions of the
# same name.
REPORTS_LINK = -Wl,--build-id $(CHECK_LIBS) $(REPORTS_LIBS) -pthread
$(eval $(call one_program,$(O)/tests/reports/suites,$(filter-out %/test_symbolize,$(REPORTS_TESTS)),$(REPORTS_TEST_OBJS),$$(REPORTS_LINK)))
$(eval $(call one_program,$(O)/tests/reports/suites_symbolize,$(O)/tests/reports/test_symbolize,$(REPORTS_TEST_OBJS),$$(REPORTS_LINK)))
$(addprefix $(OBJ)/tests/reports/,test_schema.o test_tables.o): reports/SCHEMA.md

# Looked at, never run: what the linker puts behind main() has no lines.
$(O)/tests/victims/symbols/endless: tests/victims/symbols/endless.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(CC) -O2 -g -o $@ $<

$(O)/tests/reports/test_symbolize: | $(O)/tests/victims/symbols/endless
