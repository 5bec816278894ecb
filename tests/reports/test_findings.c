/* test_findings.c: what findings add up to, and rules that do not end. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "reports/findings/findings.h"
#include "reports/findings/fix.h"
#include "reports/findings/kernel_names.h"
#include "reports/findings/place_name.h"
#include "reports/model/open.h"
#include "reports/write/report.h"
#include "tests/reports/synth.h"

enum { DURATION = 1000000 };

static char folder[600];

/* Three waits in a ms, each for nothing that any rule of Weir's knows. */
static const char *make_trace(void)
{
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  for (int i = 0; i < 3; i++)
    synth_event(0, (uint64_t)i * 1000, 500,
                (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuInit")});
  synth_event(0, DURATION - 500, 500,
              (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuInit")});
  synth_close();
  one[0] = synth_spool();
  (void)snprintf(folder, sizeof folder, "%s/rules", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  return synth_import("t.db", one);
}

static void write_rule(const char *id, const char *sql)
{
  char path[700];
  (void)snprintf(path, sizeof path, "%s/%s.sql", folder, id);
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_gt(fprintf(f, "-- id: %s\n-- title: T\n-- fix: F\n%s", id, sql), 0);
  ck_assert_int_eq(fclose(f), 0);
}

static weir_status judge_trace_with(wr_findings *f, const char *trace,
                                    const wr_findings_settings *settings)
{
  wr_input in;
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  weir_status s = wr_findings_load(f, &in.db, settings);
  wr_input_close(&in);
  return s;
}

START_TEST(an_operation_that_two_rules_find_is_saved_once)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("one", "SELECT 1 AS event, 500 AS cost_ns, 64 AS bytes"
                    " UNION ALL SELECT 2, 300, 0");
  write_rule("two", "SELECT 1 AS event, 800 AS cost_ns, 64 AS bytes, 200 AS saving_ns");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 2);
  ck_assert_uint_eq(f.saving_ns, 500 + 300);
  ck_assert_uint_eq(f.moved_bytes, 64);
  ck_assert_str_eq(f.finding[0].rule->id, "one");
  ck_assert_uint_eq(f.finding[0].saving_ns, 800);
  ck_assert_uint_eq(f.finding[1].saving_ns, 200);
  ck_assert_uint_eq(f.finding[1].cost_ns, 800);
  ck_assert_uint_eq(f.finding[0].added_ns, 800);
  ck_assert_uint_eq(f.finding[1].added_ns, 0);
  wr_findings_free(&f);
}
END_TEST

/* 300 of what the first saves are the second event's, which another rule finds. */
START_TEST(time_of_a_related_event_is_saved_once)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("one", "SELECT 1 AS event, 500 AS cost_ns, 2 AS related, 300 AS related_saving_ns");
  write_rule("two", "SELECT 2 AS event, 350 AS cost_ns");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 2);
  ck_assert_uint_eq(f.finding[0].saving_ns, 500);
  ck_assert_uint_eq(f.finding[1].saving_ns, 350);
  ck_assert_uint_eq(f.saving_ns, 200 + 350);
  wr_findings_free(&f);
}
END_TEST

/* What a rule saves where a read of the clock took so long; NULL: nothing is known. */
static uint64_t saving_of_clock(const char *clock_ns)
{
  wr_findings f;
  char change[128];
  const char *trace = make_trace();
  write_rule("one", "-- threshold: clock 20 ns\nSELECT 1 AS event, 500 AS cost_ns,"
                    " 500 - (:clock + :clock_more) AS saving_ns");
  (void)snprintf(change, sizeof change, "INSERT INTO meta VALUES('clock_ns', %s)", clock_ns);
  if (clock_ns) synth_change(trace, change);
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 1);
  const uint64_t saving = f.finding[0].saving_ns;
  wr_findings_free(&f);
  synth_clean();
  return saving;
}

START_TEST(what_measuring_adds_goes_by_the_clock_of_the_run)
{
  ck_assert_uint_eq(saving_of_clock(NULL), 480);
  ck_assert_uint_eq(saving_of_clock("14"), 480);
  ck_assert_uint_eq(saving_of_clock("26"), 468);
  ck_assert_uint_eq(saving_of_clock("8"), 486);
}
END_TEST

START_TEST(a_clock_that_cannot_be_counts_for_nothing)
{
  ck_assert_uint_eq(saving_of_clock("-5"), 480);
  ck_assert_uint_eq(saving_of_clock("0"), 480);
  ck_assert_uint_eq(saving_of_clock("9223372036854775807"), 480);
  ck_assert_uint_eq(saving_of_clock("'soon'"), 480);
}
END_TEST

/* Twenty operations that take 1 us, and one that was interrupted. */
START_TEST(an_interrupted_operation_stands_for_no_other)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("one",
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 21)"
             " SELECT i AS event, CASE i WHEN 7 THEN 500000 ELSE 1000 END AS cost_ns FROM n");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 1);
  ck_assert_uint_eq(f.finding[0].cost_ns, 20 * 1000 + 500000);
  ck_assert_uint_eq(f.finding[0].saving_ns, 21 * 1000);
  ck_assert_uint_eq(f.finding[0].slow_count, 1);
  ck_assert_uint_eq(f.finding[0].slow_ns, 500000 - 1000);
  ck_assert(f.finding[0].spread && f.finding[0].low_ns == 21 * 1000 &&
            f.finding[0].high_ns == 21 * 1000);
  ck_assert_uint_eq(f.saving_ns, 21 * 1000);
  ck_assert_uint_eq(f.sure_saving_ns, f.finding[0].certainty == WR_POSSIBLE ? 0 : 21 * 1000);
  wr_findings_free(&f);
}
END_TEST

/* Half of what each saves is another event's time; one was interrupted. */
START_TEST(an_interrupted_operation_of_two_events_stands_for_no_other)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule(
      "one",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 2 FROM n WHERE i < 41)"
      " SELECT i AS event, CASE i WHEN 7 THEN 500000 ELSE 1000 END AS cost_ns, i + 1 AS related,"
      " CASE i WHEN 7 THEN 250000 ELSE 500 END AS related_saving_ns FROM n");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 1);
  ck_assert_uint_eq(f.finding[0].saving_ns, 21 * 1000);
  ck_assert_uint_eq(f.finding[0].added_ns, 21 * 1000);
  ck_assert(f.finding[0].spread && f.finding[0].low_ns == 21 * 1000 &&
            f.finding[0].high_ns == 21 * 1000);
  wr_findings_free(&f);
}
END_TEST

START_TEST(no_operation_costs_more_than_the_run_or_less_than_nothing)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("much", "SELECT 1 AS event, 9223372036854775807 AS cost_ns");
  write_rule("less", "SELECT 2 AS event, -5 AS cost_ns, -7 AS bytes, -1 AS count");
  write_rule("odd", "SELECT NULL AS event, 'x' AS cost_ns, 'sure' AS certainty, -3 AS device");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 3);
  ck_assert_uint_eq(f.saving_ns, f.duration_ns);
  ck_assert_uint_eq(f.finding[0].cost_ns, f.duration_ns);
  ck_assert_uint_eq(f.moved_bytes, 0);
  wr_findings_free(&f);
}
END_TEST

/* The first costs most of the run, and the run gains next to nothing without it. */
START_TEST(a_finding_counts_by_what_it_saves_and_by_its_cost_where_that_is_not_known)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("little", "SELECT 1 AS event, 900000 AS cost_ns, 50 AS saving_ns");
  write_rule("much", "SELECT 2 AS event, 2000 AS cost_ns");
  write_rule("unknown", "SELECT 3 AS event, 5000 AS cost_ns, 0 AS saving_ns");
  wr_findings_settings settings = {.rules = folder, .min = {1000, -1, -1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 2);
  ck_assert_str_eq(f.finding[0].rule->id, "much");
  ck_assert_str_eq(f.finding[1].rule->id, "unknown");
  ck_assert_uint_eq(f.small_count, 1);
  ck_assert_str_eq(f.small[0].rule->id, "little");
  wr_findings_free(&f);
}
END_TEST

/* The trace has no device times. */
START_TEST(savings_of_the_host_alone_are_the_least_that_a_run_gains)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("host", "-- least: untimed\nSELECT 1 AS event, 500 AS cost_ns");
  write_rule("most", "-- least: never\nSELECT 2 AS event, 400 AS cost_ns");
  write_rule("half", "-- least: always\nSELECT 3 AS event, 300 AS cost_ns");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 3);
  ck_assert(f.finding[0].least && !f.finding[1].least && f.finding[2].least);
  wr_findings_free(&f);
  write_rule("host", "-- least: often\nSELECT 1 AS event");
  ck_assert_int_eq(judge_trace_with(&f, trace, &settings), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "least cannot be 'often'"));
}
END_TEST

static void launch_at(uint64_t us, uint8_t device)
{
  synth_event(0, us * 1000, 5000,
              (trace_event){.kind = WEIR_EV_LAUNCH,
                            .api = synth_api("cudaLaunchKernel"),
                            .flags = WEIR_EVF_RUNTIME,
                            .device = device});
}

static void wait_at(uint64_t us, uint64_t duration_us, uint8_t device)
{
  synth_event(0, us * 1000, duration_us * 1000,
              (trace_event){.kind = WEIR_EV_SYNC,
                            .api = synth_api("cudaDeviceSynchronize"),
                            .flags = WEIR_EVF_RUNTIME,
                            .sync_type = WEIR_SYNC_CONTEXT,
                            .device = device});
}

/* A wait of 1 ms, a launch 10 us later, and 490 us after the first wait another one: what the run gains without the
 * first, us. */
static uint64_t gain_before(uint64_t next_us, uint8_t device)
{
  wr_findings f;
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  launch_at(0, 0);
  wait_at(10, 1000, 0);
  launch_at(1020, device);
  wait_at(1500, next_us, device);
  synth_close();
  one[0] = synth_spool();
  (void)snprintf(folder, sizeof folder, "%s/rules", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  const char *trace = synth_import("t.db", one);
  write_rule("one", "SELECT event, duration AS cost_ns, gain AS saving_ns FROM wait_ahead");
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  size_t at = 0;
  while (at < f.count && strcmp(f.finding[at].rule->id, "one") != 0)
    at++;
  ck_assert_uint_lt(at, f.count);
  ck_assert_uint_eq(f.finding[at].cost_ns, 1000000);
  uint64_t gain = f.finding[at].saving_ns / 1000;
  wr_findings_free(&f);
  synth_clean();
  return gain;
}

/* Where the next wait is short, the host had more to do than the device; where it is long, only what the host does until it
 * has queued the launch counts; another device could have worked meanwhile. */
START_TEST(without_a_wait_a_run_gains_what_the_host_or_another_device_could_do_meanwhile)
{
  ck_assert_uint_eq(gain_before(5, 0), 490);
  ck_assert_uint_eq(gain_before(500, 0), 15);
  ck_assert_uint_eq(gain_before(300, 1), 490 + 300);
  ck_assert_uint_eq(gain_before(2000, 1), 1000);
}
END_TEST

enum { LATER_ROUNDS = 32, BEHIND_BYTES = 1 << 20, LATER_NS = 40000 };

/* Of the process's first context, so that it is known what waits wait for. */
static void call_later(uint64_t us, uint64_t ns, trace_event e)
{
  e.flags |= WEIR_EVF_RUNTIME;
  e.stack |= UINT32_C(1) << 24;
  e.stream = WEIR_STREAM_LEGACY;
  synth_event(0, us * 1000, ns, e);
}

static void copy_later(uint64_t us)
{
  call_later(us, 1000,
             (trace_event){.kind = WEIR_EV_COPY,
                           .api = synth_api("cudaMemcpyAsync"),
                           .flags = WEIR_EVF_ASYNC,
                           .a = 0x7f0000000000,
                           .b = 0x7e0000000000,
                           .bytes = BEHIND_BYTES,
                           .copy_kind = WEIR_COPY_HTOD,
                           .src_device = WEIR_DEVICE_NONE,
                           .mem = WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4});
}

static void wait_later(uint64_t us, uint64_t ns)
{
  call_later(us, ns,
             (trace_event){.kind = WEIR_EV_SYNC,
                           .api = synth_api("cudaStreamSynchronize"),
                           .sync_type = WEIR_SYNC_STREAM});
}

/* A page-locked copy of 40 us whose call takes 1 us, which is waited for alone; then rounds of such a copy, a kernel, a wait
 * that long. `change`: of the trace, or NULL. Rules "one" and "two" find the copies of the rounds, by these keys. */
static void judge_later(wr_findings *f, uint64_t wait_us, const char *keys, const char *change)
{
  const char *one[] = {NULL, NULL};
  char sql[400];
  synth_open(synth_dir());
  copy_later(10);
  wait_later(20, LATER_NS - 10000);
  for (uint64_t i = 1; i <= LATER_ROUNDS; i++) {
    copy_later(i * 1000);
    call_later(i * 1000 + 10, 5000,
               (trace_event){.kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel")});
    wait_later(i * 1000 + 20, wait_us * 1000);
  }
  synth_close();
  one[0] = synth_spool();
  (void)snprintf(folder, sizeof folder, "%s/rules", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  const char *trace = synth_import("t.db", one);
  if (change) synth_change(trace, change);
  (void)snprintf(sql, sizeof sql,
                 "-- certainty: likely\n%sSELECT e.id AS event, e.duration AS cost_ns, e.bytes"
                 " FROM event_row e CROSS JOIN template t ON t.id = e.template"
                 " WHERE t.kind = $COPY AND e.id > 2",
                 keys);
  write_rule("one", sql);
  write_rule("two", sql);
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_str_eq(f->finding[0].rule->id, "one");
  ck_assert_uint_eq(f->finding[0].saving_ns, LATER_ROUNDS * 1000);
}

START_TEST(of_an_asynchronous_copy_a_run_gains_the_call_up_to_what_the_device_takes)
{
  wr_findings f;
  judge_later(&f, 100, "-- later: copy\n", NULL);
  ck_assert_uint_eq(f.finding[0].later_ns, LATER_ROUNDS * LATER_NS);
  ck_assert_uint_eq(f.finding[0].added_later_ns, LATER_ROUNDS * LATER_NS);
  ck_assert_str_eq(f.finding[1].rule->id, "two");
  ck_assert_uint_eq(f.finding[1].later_ns, LATER_ROUNDS * LATER_NS);
  ck_assert_uint_eq(f.finding[1].added_later_ns, 0);
  ck_assert_uint_eq(f.sure_saving_ns, LATER_ROUNDS * (1000 + LATER_NS));
  wr_findings_free(&f);
}
END_TEST

START_TEST(a_run_gains_no_more_of_a_copy_than_the_host_waits_for_it)
{
  wr_findings f;
  judge_later(&f, 15, "-- later: copy\n", NULL);
  ck_assert_uint_eq(f.finding[0].later_ns, LATER_ROUNDS * 15000);
  wr_findings_free(&f);
}
END_TEST

START_TEST(what_a_device_takes_is_for_rules_that_ask_in_traces_without_its_times)
{
  wr_findings f;
  judge_later(&f, 100, "", NULL);
  ck_assert_uint_eq(f.finding[0].later_ns, 0);
  wr_findings_free(&f);
  synth_clean();
  judge_later(&f, 100, "-- later: copy\n",
              "INSERT INTO device_work(event, device, kind, start, \"end\") VALUES(1, 0, 1, 1, 2)");
  ck_assert_uint_eq(f.finding[0].later_ns, 0);
  wr_findings_free(&f);
}
END_TEST

enum { GRAPH_STEPS = 40 };

/* Steps that are a graph each, made anew before its launch if `anew`, of which each is waited for by an event; then the host
 * works for 100 us. `ahead`: the next one is launched first. Returns the ns that rule 57 finds them to save. */
static uint64_t saving_of_graphs_in_turn(bool ahead, bool anew)
{
  wr_findings f;
  uint64_t saving = 0;
  const uint64_t frame = 0x5000;
  const wr_findings_settings settings = {.min = {0, -1, 1}};
  synth_open(synth_dir());
  synth_stack(0, 1, &frame, 1);
  for (uint64_t i = 1; i <= GRAPH_STEPS; i++) {
    if (anew)
      call_later(i * 300 - 10, 5000,
                 (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cudaGraphInstantiate")});
    call_later(i * 300, 5000,
               (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cudaGraphLaunch")});
    call_later(i * 300 + 6, 500,
               (trace_event){
                   .kind = WEIR_EV_EVENT, .api = synth_api("cudaEventRecord"), .a = 0x100 + i % 2});
    if (ahead && i == 1) continue;
    call_later(i * 300 + 10, 120000,
               (trace_event){.kind = WEIR_EV_SYNC,
                             .api = synth_api("cudaEventSynchronize"),
                             .sync_type = WEIR_SYNC_EVENT,
                             .stack = 1,
                             .a = 0x100 + (i - ahead) % 2});
  }
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  const char *trace = synth_import("t.db", one);
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  for (size_t i = 0; i < f.count; i++)
    if (!strcmp(f.finding[i].rule->id, "host-and-device-in-turn")) saving += f.finding[i].saving_ns;
  wr_findings_free(&f);
  synth_clean();
  return saving;
}

START_TEST(graphs_each_waited_for_at_once_are_in_turn_with_the_host)
{
  ck_assert_uint_eq(saving_of_graphs_in_turn(false, false), (GRAPH_STEPS - 1) * 120000);
  ck_assert_uint_eq(saving_of_graphs_in_turn(false, true), (GRAPH_STEPS - 1) * 120000);
  ck_assert_uint_eq(saving_of_graphs_in_turn(true, false), 0);
}
END_TEST

enum { STORMS = 10, NOT_FOUND = -1 };

/* Ten times so many launches of a kernel, each waited for before the next, then a copy: how sure it is that they are a
 * storm. */
static int certainty_of_storm(int launches, int memory)
{
  wr_findings f;
  const wr_findings_settings settings = {.min = {0, -1, 1}};
  uint64_t at = 100;
  int found = NOT_FOUND;
  synth_open(synth_dir());
  synth_alloc(0, 1000, 10, 0x700000000, 4096, 0, memory);
  for (int i = 0; i < STORMS; i++, at += 100) {
    for (int k = 0; k < launches; k++, at += 30) {
      launch_at(at, 0);
      wait_at(at + 6, 10, 0);
    }
    synth_copy(0, at * 1000, 20000, WEIR_COPY_DTOH, 64, WEIR_DEVICE_NONE, 0, WEIR_MEM_PAGEABLE,
               WEIR_MEM_DEVICE, WEIR_EVF_IMPLICIT_SYNC);
  }
  const char *trace = synth_import_this();
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  for (size_t i = 0; i < f.count; i++)
    if (!strcmp(f.finding[i].rule->id, "launch-storm")) {
      found = f.finding[i].certainty;
      ck_assert_uint_eq(f.finding[i].count, (uint64_t)(STORMS * (launches - 1)));
      ck_assert_uint_le(f.finding[i].saving_ns, (uint64_t)(STORMS * launches) * 5000);
    }
  wr_findings_free(&f);
  synth_clean();
  return found;
}

/* Where the host may look at what a kernel wrote before it launches the next, it is not sure. */
START_TEST(short_kernels_each_waited_for_are_a_storm)
{
  ck_assert_int_eq(certainty_of_storm(16, WEIR_MEM_DEVICE), WR_LIKELY);
  ck_assert_int_eq(certainty_of_storm(16, WEIR_MEM_MANAGED), WR_POSSIBLE);
  ck_assert_int_eq(certainty_of_storm(7, WEIR_MEM_DEVICE), NOT_FOUND);
}
END_TEST

/* Two places at which as much is wasted; `sql`: the rows of both. */
static void places_of(const char *sql, char first[64], char second[64])
{
  wr_findings f;
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  for (uint32_t id = 1; id <= 2; id++)
    synth_stack(0, id, (uint64_t[]){UINT64_C(0x5000) * id}, 1);
  for (uint32_t i = 0; i < 4; i++)
    synth_event(
        0, i * 1000, 500,
        (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuInit"), .stack = i % 2 + 1});
  synth_close();
  one[0] = synth_spool();
  (void)snprintf(folder, sizeof folder, "%s/rules", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  const char *trace = synth_import("t.db", one);
  write_rule("one", sql);
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(&f, trace, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(f.count, 2);
  ck_assert_uint_eq(f.finding[0].sites, 2);
  (void)snprintf(first, 64, "%s %s", f.finding[0].site[0].function, f.finding[0].site[1].function);
  (void)snprintf(second, 64, "%s %s", f.finding[1].site[0].function, f.finding[1].site[1].function);
  wr_findings_free(&f);
  synth_clean();
}

#define ROWS "SELECT column1 AS event, 100 AS cost_ns, column2 AS related FROM (VALUES "

START_TEST(in_which_order_a_rule_finds_its_rows_changes_nothing)
{
  char first[2][64], second[2][64];
  places_of(ROWS "(1, 2), (2, 1), (3, 1), (4, 2))", first[0], second[0]);
  places_of(ROWS "(4, 2), (3, 1), (2, 1), (1, 2))", first[1], second[1]);
  ck_assert_str_eq(first[0], first[1]);
  ck_assert_str_eq(second[0], second[1]);
  ck_assert_str_ne(first[0], second[0]);
}
END_TEST

/* A frame of the user's, in a file that all have in common, or one of a library's. */
static void name_frame(uint32_t i, const char *function, uint32_t line)
{
  char payload[128];
  const char *file =
      strncmp(function, "library", 7) != 0 ? "/home/fill.cu" : "/usr/include/library.hpp";
  python_frame_info info = {.line = line,
                            .function_bytes = (uint16_t)strlen(function),
                            .file_bytes = (uint16_t)strlen(file)};
  memcpy(payload, &info, sizeof info);
  int n = snprintf(payload + sizeof info, sizeof payload - sizeof info, "%s%s", function, file);
  synth_extended(0, WEIR_EV_PYTHON_FRAME, WEIR_PYTHON_FRAME_FIRST + i, 0, payload,
                 sizeof info + (size_t)n);
}

/* Row n of each rule is of an event whose place is function[n] in line[n] of one file. */
static void judge_lines(wr_findings *f, const char *const *function, const uint32_t *line,
                        uint32_t count)
{
  synth_open(synth_dir());
  for (uint32_t i = 0; i < count; i++) {
    name_frame(i, function[i], line[i]);
    synth_stack(0, i + 1, (uint64_t[]){WEIR_PYTHON_FRAME_FIRST + i}, 1);
    synth_event(0, i * 1000, 500,
                (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuInit"), .stack = i + 1});
  }
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(f, synth_import_this(), &settings) == WEIR_OK, "%s",
                weir_error_message());
}

static void make_rules_folder(void)
{
  (void)snprintf(folder, sizeof folder, "%s/rules", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
}

START_TEST(instantiations_of_a_template_are_one_place)
{
  wr_findings f;
  const char *const functions[] = {"ns::fill<float>(float*)",
                                   "ns::fill<std::pair<int, int>>(long)",
                                   "ns::fill<int>(int*)",
                                   "ns::take<float>(int)",
                                   "<lambda>",
                                   "<module>"};
  make_rules_folder();
  write_rule("one", "SELECT id AS event, 100 * id * id AS cost_ns, 8 AS bytes FROM event_row");
  judge_lines(&f, functions, (const uint32_t[]){7, 7, 8, 7, 9, 9}, 6);
  ck_assert_uint_eq(f.count, 5);
  ck_assert_str_eq(f.finding[0].site[0].function, "<module>");
  ck_assert_str_eq(f.finding[1].site[0].function, "<lambda>");
  ck_assert_str_eq(f.finding[2].site[0].function, "ns::take<float>(int)");
  ck_assert_str_eq(f.finding[4].site[0].function, "ns::fill");
  ck_assert_uint_eq(f.finding[4].cost_ns, 500);
  ck_assert_uint_eq(f.finding[4].saving_bytes, 16);
  ck_assert_uint_eq(f.finding[4].count, 2);
  wr_findings_free(&f);
}
END_TEST

/* ---- callers --------------------------------------------------------------------------------- */

enum { HELPER, AGAIN, BLOCK, FIRST, SECOND, THIRD, FOURTH, MAIN, FRAMES };

/* Event n is of the n-th stack: up to three of the frames above, innermost first, then main(). */
static const char *call_from(const int (*stacks)[3], uint32_t count)
{
  static const struct {
    const char *function;
    uint32_t line;
  } frames[FRAMES] = {{"upload<float>(float*)", 5},
                      {"upload<float>(float*)", 6},
                      {"library_copy", 7},
                      {"train", 10},
                      {"train", 20},
                      {"check", 30},
                      {"load", 40},
                      {"main", 50}};
  synth_open(synth_dir());
  for (uint32_t i = 0; i < FRAMES; i++)
    name_frame(i, frames[i].function, frames[i].line);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t at[4] = {0};
    uint32_t depth = 0;
    while (depth < 3 && stacks[i][depth] >= 0)
      at[depth] = WEIR_PYTHON_FRAME_FIRST + (uint64_t)stacks[i][depth], depth++;
    at[depth++] = WEIR_PYTHON_FRAME_FIRST + MAIN;
    synth_stack(0, i + 1, at, depth);
    synth_event(0, i * 1000, 500,
                (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuInit"), .stack = i + 1});
  }
  return synth_import_this();
}

/* What each event costs is `cost` of its id. */
static void judge_callers(wr_findings *f, const int (*stacks)[3], uint32_t count, const char *cost)
{
  char sql[128];
  make_rules_folder();
  (void)snprintf(sql, sizeof sql, "SELECT id AS event, %s AS cost_ns FROM event_row", cost);
  write_rule("one", sql);
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(f, call_from(stacks, count), &settings) == WEIR_OK, "%s",
                weir_error_message());
}

static void has_caller(const wr_finding_site *s, size_t i, const char *function, int line,
                       uint64_t per_cent, uint64_t count)
{
  ck_assert_msg(i < s->callers, "%zu callers", s->callers);
  const wr_finding_caller *c = &s->caller[i];
  ck_assert_str_eq(c->function, function);
  ck_assert_int_eq(c->line, line);
  ck_assert_uint_eq(c->count, count);
  ck_assert_msg((uint64_t)(c->share * 100 + 0.5) == per_cent, "%g", c->share);
}

START_TEST(a_helper_has_the_caller_that_most_of_its_cost_is_of)
{
  wr_findings f;
  const int stacks[][3] = {{HELPER, FIRST, -1}, {HELPER, THIRD, -1}, {HELPER, FIRST, THIRD}};
  judge_callers(&f, stacks, 3, "CASE id WHEN 2 THEN 399 ELSE 299 END");
  ck_assert_uint_eq(f.count, 1);
  const wr_finding_site *s = &f.finding[0].site[0];
  ck_assert_str_eq(s->function, "upload<float>(float*)");
  ck_assert_uint_eq(s->callers, 1);
  has_caller(s, 0, "train", 10, 60, 2);
  ck_assert_uint_eq(s->more_callers, 1);
  wr_findings_free(&f);
}
END_TEST

START_TEST(a_helper_of_which_no_caller_has_most_has_three)
{
  wr_findings f;
  const int stacks[][3] = {
      {HELPER, FIRST, -1}, {HELPER, SECOND, -1}, {HELPER, THIRD, -1}, {HELPER, FOURTH, -1}};
  judge_callers(&f, stacks, 4, "CASE id WHEN 2 THEN 499 WHEN 4 THEN 299 ELSE 99 END");
  ck_assert_uint_eq(f.count, 1);
  const wr_finding_site *s = &f.finding[0].site[0];
  ck_assert_uint_eq(s->callers, 3);
  has_caller(s, 0, "train", 20, 50, 1);
  has_caller(s, 1, "load", 40, 30, 1);
  has_caller(s, 2, "check", 30, 10, 1); /* weighs what the other "train" does */
  ck_assert_uint_eq(s->more_callers, 1);
  wr_findings_free(&f);
}
END_TEST

START_TEST(callers_are_not_the_function_itself_or_a_librarys)
{
  wr_findings f;
  const int stacks[][3] = {{HELPER, AGAIN, FIRST}, {HELPER, BLOCK, FIRST}};
  judge_callers(&f, stacks, 2, "100");
  ck_assert_uint_eq(f.count, 1);
  ck_assert_uint_eq(f.finding[0].site[0].callers, 1);
  has_caller(&f.finding[0].site[0], 0, "train", 10, 100, 2);
  wr_findings_free(&f);
}
END_TEST

START_TEST(what_is_in_main_has_no_caller)
{
  wr_findings f;
  const int stacks[][3] = {{-1, -1, -1}, {FIRST, -1, -1}};
  judge_callers(&f, stacks, 2, "CASE id WHEN 1 THEN 400 ELSE 300 END");
  ck_assert_uint_eq(f.count, 2);
  ck_assert_str_eq(f.finding[0].site[0].function, "main");
  ck_assert_uint_eq(f.finding[0].site[0].callers, 0);
  ck_assert_uint_eq(f.finding[1].site[0].callers, 1);
  has_caller(&f.finding[1].site[0], 0, "main", 50, 100, 1);
  wr_findings_free(&f);
}
END_TEST

static char *findings_text(const char *trace)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  ck_assert_ptr_nonnull(to);
  report_settings o = {.width = 100, .findings = {.rules = folder, .min = {0, -1, 1}}};
  ck_assert_msg(report_summary(to, trace, &o) == WEIR_OK, "%s", weir_error_message());
  ck_assert_int_eq(fclose(to), 0);
  return text;
}

START_TEST(a_report_prints_what_a_run_gains_at_least_with_what_it_gains_at_most)
{
  wr_findings f;
  judge_later(&f, 100, "-- later: copy\n", NULL);
  wr_findings_free(&f);
  char path[700];
  (void)snprintf(path, sizeof path, "%s/t.db", synth_dir());
  char *text = findings_text(path);
  ck_assert_msg(strstr(text, "saves at least 32.0 µs (32.0 µs to 32.0 µs, ") != NULL, "%s", text);
  ck_assert_msg(strstr(text, "of the run), up to 1.31 ms (") != NULL, "%s", text);
  ck_assert_msg(strstr(text, "together up to 1.31 ms to be saved") != NULL, "%s", text);
  free(text);
}
END_TEST

START_TEST(text_has_the_callers_next_to_the_place)
{
  const int one[][3] = {{HELPER, FIRST, -1}, {FIRST, -1, -1}},
            two[][3] = {{HELPER, FIRST, -1}, {HELPER, THIRD, -1}};
  make_rules_folder();
  write_rule("one", "-- certainty: likely\nSELECT id AS event, 100 AS cost_ns FROM event_row");
  char *text = findings_text(call_from(one, 2));
  ck_assert_msg(strstr(text, "upload<float>(float*)  fill.cu:5  ← train  fill.cu:10\n") != NULL,
                "%s", text);
  free(text);
  synth_clean();
  make_rules_folder();
  write_rule("one", "-- certainty: likely\nSELECT id AS event, 100 AS cost_ns FROM event_row");
  text = findings_text(call_from(two, 2));
  ck_assert_msg(strstr(text, "← check  fill.cu:30 (50 %), train  fill.cu:10 (50 %)") != NULL, "%s",
                text);
  free(text);
}
END_TEST

/* ---- kernels --------------------------------------------------------------------------------- */

static void short_name_is(const char *name, const char *expected)
{
  wr_demangler d = {0};
  wr_demangler_open(&d);
  char *text = wr_kernel_short_name(&d, name);
  ck_assert_str_eq(text, expected);
  free(text);
  wr_demangler_close(&d);
}

START_TEST(a_kernel_is_named_without_its_namespace_and_parameters)
{
  wr_demangler d = {0};
  wr_demangler_open(&d);
  char *text = wr_demangle(&d, "_Z1fv");
  wr_demangler_close(&d);
  short_name_is("plain", "plain");
  if (!text) return; /* without libstdc++ */
  free(text);
  short_name_is("_Z5saxpyPf", "saxpy");
  short_name_is("_ZN2ns5scaleIfEEvPfi", "scale<float>");
  short_name_is("_ZN12_GLOBAL__N_15scaleEPf", "scale");
  short_name_is("_Z5scaleISt4pairIS0_IS0_IS0_IiiEiEiEiEEvT_", "scale<…>");
}
END_TEST

/* Launch n is of kernel[n], each waited for, all at one place; what a user's rule finds of it. */
static wr_finding judge_kernels(wr_findings *f, const char *kernels, const char *sql)
{
  static const char *const names[] = {"first", "second", "third", "fourth"};
  make_rules_folder();
  write_rule("one", sql);
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 4; i++)
    synth_extended(0, WEIR_EV_NAME, 'a' + i, WEIR_NAME_KERNEL, names[i], strlen(names[i]));
  for (uint32_t i = 0; kernels[i]; i++) {
    synth_event(0, i * 1000 + 100, 100,
                (trace_event){.kind = WEIR_EV_LAUNCH,
                              .api = synth_api("cudaLaunchKernel"),
                              .a = (uint64_t)kernels[i],
                              .stream = WEIR_STREAM_LEGACY,
                              .stack = 1U << 24}); /* context 1 */
    synth_event(0, i * 1000 + 500, 100,
                (trace_event){.kind = WEIR_EV_SYNC,
                              .api = synth_api("cudaDeviceSynchronize"),
                              .sync_type = WEIR_SYNC_CONTEXT,
                              .stack = 1U << 24});
  }
  wr_findings_settings settings = {.rules = folder, .min = {0, -1, 1}};
  ck_assert_msg(judge_trace_with(f, synth_import_this(), &settings) == WEIR_OK, "%s",
                weir_error_message());
  for (size_t i = 0; i < f->count; i++)
    if (!strcmp(f->finding[i].rule->id, "one")) return f->finding[i];
  ck_abort_msg("nothing is found");
}

#define NAMED "-- names: kernels\n"
#define LAUNCHES                                                                                   \
  "SELECT e.id AS event, 100 AS cost_ns FROM event_row e JOIN template t ON t.id = e.template "    \
  "WHERE t.kind = $LAUNCH"
#define WAITS                                                                                      \
  "SELECT e.id AS event, 100 AS cost_ns FROM event_row e JOIN template t ON t.id = e.template "    \
  "WHERE t.kind = $WAIT"

START_TEST(a_finding_names_the_kernels_that_it_launches_most)
{
  wr_findings f;
  wr_finding one = judge_kernels(&f, "bbbbaaacd", NAMED LAUNCHES);
  ck_assert_uint_eq(one.kernels, 3);
  ck_assert_str_eq(one.kernel[0], "second");
  ck_assert_str_eq(one.kernel[1], "first");
  ck_assert_str_eq(one.kernel[2], "fourth");
  ck_assert_uint_eq(one.more_kernels, 1);
  wr_findings_free(&f);
}
END_TEST

START_TEST(a_wait_names_the_kernel_that_it_waits_for_last)
{
  wr_findings f;
  wr_finding one = judge_kernels(&f, "bbb", NAMED WAITS);
  ck_assert_uint_eq(one.kernels, 1);
  ck_assert_str_eq(one.kernel[0], "second");
  ck_assert_uint_eq(one.more_kernels, 0);
  wr_findings_free(&f);
}
END_TEST

START_TEST(kernels_are_named_where_the_rule_asks_and_half_of_them_are_known)
{
  wr_findings f;
  ck_assert_uint_eq(judge_kernels(&f, "bbb", LAUNCHES).kernels, 0);
  wr_findings_free(&f);
  synth_clean();
  ck_assert_uint_eq(judge_kernels(&f, "bbxx", NAMED LAUNCHES).kernels, 1);
  wr_findings_free(&f);
  synth_clean();
  ck_assert_uint_eq(judge_kernels(&f, "bxx", NAMED LAUNCHES).kernels, 0);
  wr_findings_free(&f);
}
END_TEST

START_TEST(which_operations_are_asked_for_their_kernels_depends_on_no_order)
{
  enum { EVENTS = 1000 };
  wr_kernel_samples up = {0}, down = {0};
  for (int64_t i = 1; i <= EVENTS; i++) {
    wr_kernel_samples_take(&up, i);
    wr_kernel_samples_take(&down, EVENTS + 1 - i);
  }
  ck_assert_uint_eq(up.count, WR_KERNEL_SAMPLES);
  for (size_t i = 0; i < up.count; i++)
    ck_assert_int_eq(up.of[i].event, down.of[i].event);
}
END_TEST

#define EVENTS(certainty, saving, which)                                                           \
  "-- certainty: " certainty "\nSELECT id AS event, " saving                                       \
  " AS saving_ns, 400 AS cost_ns FROM event_row WHERE " which

/* Events 1 to 10 are of one line, the other two of the next. */
static void judge_two_lines(wr_findings *f)
{
  const char *functions[12];
  uint32_t lines[12];
  for (uint32_t i = 0; i < 12; i++)
    functions[i] = "step", lines[i] = 7 + i / 10;
  judge_lines(f, functions, lines, 12);
}

static void stands(const wr_findings *f, size_t i, const char *id, size_t under, uint64_t added)
{
  ck_assert_msg(i < f->count, "there are %zu", f->count);
  const wr_finding *x = &f->finding[i];
  ck_assert_str_eq(x->rule->id, id);
  ck_assert_msg(x->under == under && x->added_ns == added, "%s: under %zu, adds %llu", id, x->under,
                (unsigned long long)x->added_ns);
}

START_TEST(of_the_same_operations_of_a_line_the_surest_finding_leads)
{
  wr_findings f;
  make_rules_folder();
  write_rule("surest", EVENTS("certain", "100", "id <= 10"));
  write_rule("gains-more", EVENTS("likely", "300", "id <= 9"));
  write_rule("of-two", EVENTS("possible", "50", "id <= 2"));
  write_rule("without-gain", EVENTS("possible", "0", "id <= 10"));
  write_rule("elsewhere", EVENTS("likely", "200", "id > 10"));
  judge_two_lines(&f);
  ck_assert_uint_eq(f.count, 5);
  stands(&f, 0, "surest", 0, 1000);
  stands(&f, 1, "gains-more", 1, 1800);
  stands(&f, 2, "of-two", 1, 0);
  stands(&f, 3, "without-gain", 1, 0);
  stands(&f, 4, "elsewhere", 0, 400);
  ck_assert_uint_eq(f.saving_ns, 9 * 300 + 100 + 2 * 200);
  ck_assert_uint_eq(f.sure_saving_ns, f.saving_ns);
  wr_findings_free(&f);
}
END_TEST

START_TEST(findings_of_other_operations_of_a_line_stand_apart)
{
  wr_findings f;
  make_rules_folder();
  write_rule("first", EVENTS("certain", "100", "id <= 5"));
  write_rule("others", EVENTS("certain", "90", "id > 5 AND id <= 10"));
  write_rule("of-two-more", EVENTS("possible", "300", "id <= 2"));
  judge_two_lines(&f);
  ck_assert_uint_eq(f.count, 3);
  for (size_t i = 0; i < f.count; i++)
    ck_assert_uint_eq(f.finding[i].under, 0);
  wr_findings_free(&f);
}
END_TEST

START_TEST(a_report_prints_a_finding_as_a_line_of_the_one_it_stands_under)
{
  wr_findings f;
  make_rules_folder();
  write_rule("surest", EVENTS("certain", "100", "id <= 10"));
  write_rule("gains-more", EVENTS("likely", "300", "id <= 9"));
  write_rule("elsewhere", EVENTS("likely", "200", "id > 10"));
  judge_two_lines(&f);
  wr_findings_free(&f);
  char *text = NULL, trace[700];
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  report_settings settings = {.findings = {.rules = folder, .min = {0, -1, 1}}};
  (void)snprintf(trace, sizeof trace, "%s/t.db", synth_dir());
  ck_assert_int_eq(report_findings(to, trace, &settings), WEIR_OK);
  ck_assert_int_eq(fclose(to), 0);
  const char *first = strstr(text, "1. T"), *second = strstr(text, "2. T"),
             *also = strstr(text, "also: T (gains-more, likely, up to 2.70 µs, 9 times). F");
  ck_assert_msg(first && also && second && first < also && also < second, "%s", text);
  ck_assert_msg(!strstr(text, "3. T"), "%s", text);
  free(text);
}
END_TEST

START_TEST(a_stem_has_no_arguments_and_no_parameters)
{
  static const struct {
    const char *function, *stem;
  } stems[] = {{"main", "main"},
               {"a::b<c<d>, (e)1>::f<(g)2>(h<i>) const", "a::b::f const"},
               {"operator<< <int>(x&)", "operator<<"},
               {"box<int>::operator()(int)", "box::operator()"},
               {"box<int>::operator->()", "box::operator->"},
               {"(anonymous namespace)::f<int>(int)", "(anonymous namespace)::f"},
               {"cooperator<int>", "cooperator"},
               {"<T as U>::f", "<T as U>::f"},
               {"f<int", "f<int"},
               {"<listcomp>", "<listcomp>"},
               {"", ""}};
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
    char *stem = wr_place_stem(stems[i].function);
    ck_assert_str_eq(stem, stems[i].stem);
    free(stem);
  }
}
END_TEST

START_TEST(a_rule_that_does_not_end_is_ended)
{
  wr_findings f;
  const char *trace = make_trace();
  write_rule("endless", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                        " SELECT count(*) AS event FROM n");
  wr_findings_settings settings = {.rules = folder, .rule_ms = 50};
  ck_assert_int_eq(judge_trace_with(&f, trace, &settings), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "endless.sql: it takes more than 0.05 s"));
}
END_TEST

/* Rules have more time in longer traces; how long one is, is not what it says. */
START_TEST(numbers_that_a_trace_has_no_room_for_give_rules_no_time)
{
  wr_findings f;
  const char *trace = make_trace();
  synth_change(trace, "UPDATE event_row SET id = 9223372036854775807"
                      " WHERE id = (SELECT max(id) FROM event_row)");
  write_rule("endless", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                        " SELECT count(*) AS event FROM n");
  wr_findings_settings settings = {.rules = folder, .rule_ms = 20};
  ck_assert_int_eq(judge_trace_with(&f, trace, &settings), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "endless.sql: it takes more than 0.02 s"));
}
END_TEST

START_TEST(a_stop_ends_a_rule)
{
  wr_findings f;
  int stop = 1;
  const char *trace = make_trace();
  write_rule("endless", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                        " SELECT count(*) AS event FROM n");
  wr_findings_settings settings = {.rules = folder, .stop = &stop};
  ck_assert_int_eq(judge_trace_with(&f, trace, &settings), WEIR_EIO);
}
END_TEST

/* ---- what is advised ------------------------------------------------------------------------- */

/* Blocks of one size, allocated and freed in turn by the functions of a layer; what is advised. */
static void advice_for(const char *alloc, const char *release, uint8_t flags, char *out,
                       size_t bytes)
{
  enum { TIMES = 64, STEP = 10000 };
  const char *spools[] = {NULL, NULL};
  synth_open(synth_dir());
  for (int i = 0; i < TIMES; i++) {
    trace_event e = {.kind = WEIR_EV_ALLOC,
                     .api = synth_api(alloc),
                     .flags = flags,
                     .a = 0x7f0000000000,
                     .bytes = 1 << 20,
                     .mem = WEIR_MEM_DEVICE};
    synth_event(0, (uint64_t)i * STEP, STEP / 4, e);
    e.kind = WEIR_EV_FREE, e.api = synth_api(release);
    synth_event(0, (uint64_t)i * STEP + STEP / 2, STEP / 4, e);
  }
  synth_close();
  spools[0] = synth_spool();
  wr_findings f;
  wr_findings_settings settings = {.min = {0, -1, 1}};
  ck_assert_int_eq(judge_trace_with(&f, synth_import("t.db", spools), &settings), WEIR_OK);
  *out = 0;
  for (size_t i = 0; i < f.count; i++)
    if (!strcmp(f.finding[i].rule->id, "repeated-allocation"))
      (void)snprintf(out, bytes, "%s", f.finding[i].fix);
  wr_findings_free(&f);
}

START_TEST(advice_names_the_functions_that_the_program_calls)
{
  char text[512];
  advice_for("cudaMalloc", "cudaFree", WEIR_EVF_RUNTIME, text, sizeof text);
  ck_assert_msg(strstr(text, " cudaMallocAsync();") != NULL, "%s", text);
  synth_clean();
  advice_for("cuMemAlloc_v2", "cuMemFree_v2", 0, text, sizeof text);
  ck_assert_msg(strstr(text, " cuMemAllocAsync();") && !strstr(text, "cuda"), "%s", text);
}
END_TEST

START_TEST(each_rules_advice_has_the_drivers_names)
{
  wr_rules rules;
  ck_assert_int_eq(wr_rules_load(&rules, NULL), WEIR_OK);
  for (size_t i = 0; i < rules.count; i++) {
    char *fix = wr_fix_for_driver(rules.rule[i].fix);
    ck_assert_ptr_nonnull(fix);
    ck_assert_msg(!strstr(fix, "cuda"), "%s: %s", rules.rule[i].id, fix);
    for (char *at = strstr(fix, "cu"); at; at = strstr(at + 1, "cu")) {
      char name[64];
      if ((at > fix && at[-1] != ' ') || at[2] < 'A' || at[2] > 'Z') continue;
      (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " ().,;:"), at);
      ck_assert_msg(synth_api(name) != 0, "%s: %s is none", rules.rule[i].id, name);
    }
    free(fix);
  }
  wr_rules_free(&rules);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/findings");
  TCase *t = tcase_create("sums");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, an_operation_that_two_rules_find_is_saved_once);
  tcase_add_test(t, what_measuring_adds_goes_by_the_clock_of_the_run);
  tcase_add_test(t, a_clock_that_cannot_be_counts_for_nothing);
  tcase_add_test(t, an_interrupted_operation_stands_for_no_other);
  tcase_add_test(t, time_of_a_related_event_is_saved_once);
  tcase_add_test(t, an_interrupted_operation_of_two_events_stands_for_no_other);
  tcase_add_test(t, no_operation_costs_more_than_the_run_or_less_than_nothing);
  tcase_add_test(t, a_finding_counts_by_what_it_saves_and_by_its_cost_where_that_is_not_known);
  tcase_add_test(t, savings_of_the_host_alone_are_the_least_that_a_run_gains);
  tcase_add_test(t, without_a_wait_a_run_gains_what_the_host_or_another_device_could_do_meanwhile);
  tcase_add_test(t, short_kernels_each_waited_for_are_a_storm);
  tcase_add_test(t, in_which_order_a_rule_finds_its_rows_changes_nothing);
  tcase_add_test(t, instantiations_of_a_template_are_one_place);
  tcase_add_test(t, a_helper_has_the_caller_that_most_of_its_cost_is_of);
  tcase_add_test(t, a_helper_of_which_no_caller_has_most_has_three);
  tcase_add_test(t, callers_are_not_the_function_itself_or_a_librarys);
  tcase_add_test(t, what_is_in_main_has_no_caller);
  tcase_add_test(t, text_has_the_callers_next_to_the_place);
  tcase_add_test(t, a_kernel_is_named_without_its_namespace_and_parameters);
  tcase_add_test(t, a_finding_names_the_kernels_that_it_launches_most);
  tcase_add_test(t, a_wait_names_the_kernel_that_it_waits_for_last);
  tcase_add_test(t, kernels_are_named_where_the_rule_asks_and_half_of_them_are_known);
  tcase_add_test(t, which_operations_are_asked_for_their_kernels_depends_on_no_order);
  tcase_add_test(t, of_the_same_operations_of_a_line_the_surest_finding_leads);
  tcase_add_test(t, findings_of_other_operations_of_a_line_stand_apart);
  tcase_add_test(t, a_report_prints_a_finding_as_a_line_of_the_one_it_stands_under);
  tcase_add_test(t, a_stem_has_no_arguments_and_no_parameters);
  tcase_add_test(t, a_rule_that_does_not_end_is_ended);
  tcase_add_test(t, numbers_that_a_trace_has_no_room_for_give_rules_no_time);
  tcase_add_test(t, a_stop_ends_a_rule);
  tcase_add_test(t, graphs_each_waited_for_at_once_are_in_turn_with_the_host);
  tcase_add_test(t, of_an_asynchronous_copy_a_run_gains_the_call_up_to_what_the_device_takes);
  tcase_add_test(t, a_run_gains_no_more_of_a_copy_than_the_host_waits_for_it);
  tcase_add_test(t, what_a_device_takes_is_for_rules_that_ask_in_traces_without_its_times);
  tcase_add_test(t, a_report_prints_what_a_run_gains_at_least_with_what_it_gains_at_most);
  tcase_add_test(t, advice_names_the_functions_that_the_program_calls);
  tcase_add_test(t, each_rules_advice_has_the_drivers_names);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
