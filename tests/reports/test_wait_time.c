/* test_wait_time.c: how the host's time in waits divides, and why devices were idle, on traces made
 * by hand: each rule with its exact ns. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/model/resolve.h"
#include "tests/reports/synth.h"

enum { WRITER = 1 }; /* the thread that writes what devices did */
enum { A = 0x1000, B = 0x2000, E = 0x50 };

static const char *trace;
static uint32_t last_number; /* of device work */

static void observe(const char *what)
{
  trace_event head = {.a = WEIR_DEVICE_FACT_OBSERVED, .start = spool_current()->clock_first.ticks};
  ck_assert(
      spool_writer_extended(synth_thread(WRITER), WEIR_EV_DEVICE_FACT, &head, what, strlen(what)));
}

static void begin_program(const char *observed)
{
  last_number = 0;
  synth_open(synth_dir());
  if (observed) observe(observed);
}

#define ALL "copies and kernels, CUPTI 130001"

static void record_call(int thread, uint64_t at, uint64_t ns, const char *api, trace_event e)
{
  e.api = synth_api(api);
  e.stack = 1u << 24; /* context 1 */
  ck_assert(synth_event(thread, at, ns, e));
}

static void create_stream(uint64_t at, uint64_t stream)
{
  record_call(0, at, 1, "cudaStreamCreateWithFlags",
              (trace_event){.kind = WEIR_EV_STREAM, .a = 1, .b = 1, .stream = stream});
}

static void begin_streams(void)
{
  create_stream(1, A);
  create_stream(3, B);
}

/* The next call of the thread that starts then has device work; its number. */
static uint32_t correlate(int thread, uint64_t at)
{
  uint64_t tick = spool_current()->clock_first.ticks + at;
  ck_assert(synth_extended(thread, WEIR_EV_CORRELATION, ++last_number, tick, "", 0));
  return last_number;
}

static void work(uint32_t number, int device, uint64_t start, uint64_t end, uint64_t queued)
{
  uint64_t zero = spool_current()->clock_first.mono_ns;
  device_operation o = {.kind = WEIR_DEVICE_KERNEL,
                        .device = (uint8_t)device,
                        .correlation = number,
                        .start = start ? zero + start : 0,
                        .end = start ? zero + end : 0,
                        .queued = queued ? zero + queued : 0};
  ck_assert(synth_extended(WRITER, WEIR_EV_DEVICE_WORK, 0, 0, &o, sizeof(o)));
}

/* A launch at `at`, for 5 ns, whose kernel runs from `start` (0: no device time) to `end`. */
static void launch(int thread, uint64_t at, uint64_t stream, uint64_t start, uint64_t end)
{
  uint32_t number = end ? correlate(thread, at) : 0;
  record_call(thread, at, 5, "cudaLaunchKernel",
              (trace_event){.kind = WEIR_EV_LAUNCH, .stream = stream});
  if (number) work(number, 0, start, end, 0);
}

static void sync_stream(int thread, uint64_t at, uint64_t until, uint64_t stream)
{
  record_call(thread, at, until - at, "cudaStreamSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .copy = WEIR_SYNC_STREAM, .stream = stream});
}

static void sync_device(uint64_t at, uint64_t until)
{
  record_call(0, at, until - at, "cudaDeviceSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .copy = WEIR_SYNC_CONTEXT});
}

static void resolve(void)
{
  const resolve_settings settings = {0};
  resolve_counts counts;
  ck_assert_msg(resolve_trace(trace, &settings, &counts) == WEIR_OK, "%s", weir_error_message());
}

static void finish(void)
{
  const char *one[] = {synth_spool(), NULL};
  synth_close();
  trace = synth_import("t.db", one);
  resolve();
}

static int64_t part(int n, const char *column)
{
  char sql[200];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT ifnull((SELECT %s FROM wait_time ORDER BY id LIMIT 1 OFFSET %d), -1)",
                 column, n);
  return synth_number(trace, sql);
}

/* The nth wait, from 0: its parts are these, and all of its duration. */
static void parts(int n, int64_t working, int64_t other, int64_t idle, int64_t unknown)
{
  ck_assert_int_eq(part(n, "working_ns"), working);
  ck_assert_int_eq(part(n, "other_ns"), other);
  ck_assert_int_eq(part(n, "idle_ns"), idle);
  ck_assert_int_eq(part(n, "unknown_ns"), unknown);
  ck_assert_int_eq(part(n, "(SELECT duration FROM event WHERE event.id = wait_time.id)"),
                   working + other + idle + unknown);
}

static int64_t idle_ns(const char *cause, const char *api)
{
  char sql[300];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT ifnull(sum(i.ns), 0) FROM device_idle i JOIN idle_cause c ON c.id ="
                 " i.cause LEFT JOIN api a ON a.id = i.api WHERE c.name = '%s'"
                 " AND ifnull(a.name, '') = '%s'",
                 cause, api);
  return synth_number(trace, sql);
}

/* ---- waits ----------------------------------------------------------------------------------- */

START_TEST(a_wait_is_its_own_work_other_work_and_nothing)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 20, B, 150, 300);
  sync_stream(0, 50, 350, A);
  sync_stream(0, 360, 370, B);
  sync_stream(0, 380, 390, B);
  finish();
  parts(0, 100, 100, 100, 0);
  parts(1, 0, 0, 10, 0);
  parts(2, 0, 0, 10, 0);
}
END_TEST

START_TEST(work_queued_behind_an_event_is_other_work)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  record_call(0, 20, 2, "cudaEventCreateWithFlags",
              (trace_event){.kind = WEIR_EV_EVENT, .a = E, .b = 2});
  record_call(0, 30, 2, "cudaEventRecord",
              (trace_event){.kind = WEIR_EV_EVENT, .a = E, .stream = A});
  launch(0, 40, A, 200, 280);
  record_call(0, 50, 250, "cudaEventSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .copy = WEIR_SYNC_EVENT, .a = E});
  finish();
  parts(0, 100, 80, 70, 0);
}
END_TEST

START_TEST(a_wait_for_a_device_is_for_all_its_streams)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 20, B, 150, 300);
  sync_device(50, 350);
  finish();
  parts(0, 200, 0, 100, 0);
}
END_TEST

START_TEST(another_device_is_no_other_work)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  uint32_t number = correlate(0, 20);
  record_call(0, 20, 5, "cudaLaunchKernel", (trace_event){.kind = WEIR_EV_LAUNCH, .stream = B});
  work(number, 1, 100, 300, 0);
  sync_stream(0, 50, 350, A);
  finish();
  parts(0, 100, 0, 200, 0);
}
END_TEST

START_TEST(two_threads_wait_at_once)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 20, B, 150, 300);
  sync_stream(0, 50, 250, A);
  sync_stream(2, 60, 350, B);
  finish();
  parts(0, 100, 50, 50, 0);
  parts(1, 150, 50, 90, 0);
}
END_TEST

/* The call itself is work that it waits for; of an asynchronous free nothing is known to be done. */
START_TEST(a_copy_that_waits_waits_for_itself_too)
{
  begin_program(ALL);
  launch(0, 10, 1, 100, 200);
  uint32_t number = correlate(0, 50);
  record_call(0, 50, 300, "cudaMemcpy",
              (trace_event){.kind = WEIR_EV_COPY,
                            .copy = WEIR_COPY_DTOH,
                            .mem = WEIR_MEM_PAGEABLE | WEIR_MEM_DEVICE << 4,
                            .bytes = 1000,
                            .flags = WEIR_EVF_IMPLICIT_SYNC,
                            .stream = 1});
  work(number, 0, 220, 320, 0);
  finish();
  parts(0, 200, 0, 100, 0);
}
END_TEST

/* ---- what is not known ----------------------------------------------------------------------- */

START_TEST(work_without_times_may_be_what_is_waited_for)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 20, A, 0, 0); /* not observed */
  launch(0, 30, B, 150, 300);
  sync_stream(0, 50, 350, A);
  sync_stream(0, 360, 370, A);
  finish();
  parts(0, 100, 0, 0, 200);
  parts(1, 0, 0, 10, 0); /* the wait has said that it is complete */
}
END_TEST

START_TEST(work_without_usable_times_has_none)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 20, A, 0, 1); /* a start of 0 */
  sync_stream(0, 50, 350, A);
  finish();
  parts(0, 100, 0, 0, 200);
}
END_TEST

START_TEST(another_stream_s_work_without_times_may_be_other_work)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 30, B, 0, 0);
  launch(0, 35, 1, 200, 240);
  sync_stream(0, 50, 350, A);
  finish();
  parts(0, 100, 40, 0, 160);
}
END_TEST

/* Operations of a stream run one behind the other. */
START_TEST(work_ahead_of_what_has_begun_is_over)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 0, 0);
  launch(0, 20, A, 100, 200);
  sync_stream(0, 50, 350, A);
  finish();
  parts(0, 100, 0, 150, 50);
}
END_TEST

START_TEST(what_the_host_does_in_a_stream_is_no_device_s_work)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  record_call(0, 20, 5, "cudaLaunchHostFunc", (trace_event){.kind = WEIR_EV_CALL, .stream = A});
  record_call(0, 30, 5, "cudaFreeAsync",
              (trace_event){.kind = WEIR_EV_FREE, .a = 0x9000, .stream = A});
  sync_stream(0, 50, 350, A);
  finish();
  parts(0, 100, 0, 200, 0);
}
END_TEST

/* The kernels of a graph are not observed where its copies are. */
START_TEST(a_graph_is_whole_where_kernels_are_observed)
{
  for (int all = 0; all < 2; all++) {
    begin_program(all ? ALL : "copies, CUPTI 130001");
    begin_streams();
    uint32_t number = correlate(0, 10);
    record_call(0, 10, 5, "cudaGraphLaunch", (trace_event){.kind = WEIR_EV_CALL, .stream = A});
    work(number, 0, 100, 200, 0);
    sync_stream(0, 50, 350, A);
    finish();
    parts(0, 100, 0, all ? 200 : 0, all ? 0 : 200);
    if (!all) synth_clean();
  }
}
END_TEST

START_TEST(of_a_program_with_lost_events_all_is_unknown)
{
  begin_program(ALL);
  launch(0, 10, 1, 100, 200);
  sync_device(50, 350);
  finish();
  parts(0, 100, 0, 200, 0);
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(trace, &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db, "UPDATE process SET dropped = 1", NULL, NULL, NULL), 0);
  sqlite3_close(db);
  resolve();
  parts(0, 0, 0, 0, 300);
}
END_TEST

START_TEST(without_device_times_nothing_is_said)
{
  begin_program(NULL);
  launch(0, 10, 1, 0, 0);
  sync_device(50, 350);
  finish();
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM wait_detail"), 1);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM wait_time"), 0);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM device_gap"), 0);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM device_idle"), 0);
}
END_TEST

/* ---- idle devices ---------------------------------------------------------------------------- */

/* Kernels at 100-200, 1000-1100, 1200-1300, 2000-2010: idle from 200 to 1000, 1100 to 1200 and 1300
 * to 2000. */
static void idle_program(void)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  sync_stream(0, 50, 300, A);                                                  /* 100 */
  record_call(0, 400, 250, "cudaMalloc", (trace_event){.kind = WEIR_EV_CALL}); /* 250 */
  record_call(2, 500, 50, "cudaFuncSetAttribute", (trace_event){.kind = WEIR_EV_CALL});
  launch(0, 900, A, 1000, 1100); /* called from 900 to 905: queued for 95 */
  uint32_t number = correlate(0, 950);
  record_call(0, 950, 5, "cudaLaunchKernel", (trace_event){.kind = WEIR_EV_LAUNCH, .stream = A});
  work(number, 0, 1200, 1300, 1150); /* the device says when it was queued */
  launch(0, 1995, A, 2000, 2010);
}

START_TEST(idle_time_has_a_cause_each_ns)
{
  idle_program();
  finish();
  ck_assert_int_eq(idle_ns("host_waiting", "cudaStreamSynchronize"), 100);
  ck_assert_int_eq(idle_ns("host_elsewhere", "cudaMalloc"), 200);
  ck_assert_int_eq(idle_ns("host_elsewhere", "cudaFuncSetAttribute"), 50);
  ck_assert_int_eq(idle_ns("host_elsewhere", "cudaLaunchKernel"), 5 + 5);
  ck_assert_int_eq(idle_ns("queued", ""), 95 + 50);
  ck_assert_int_eq(idle_ns("unknown", ""), 0);
  ck_assert_int_eq(idle_ns("no_call", ""), 100 + 250 + 50 + 695);
  ck_assert_int_eq(synth_number(trace, "SELECT sum(ns) FROM device_idle"), 800 + 100 + 700);
}
END_TEST

START_TEST(gaps_are_whole_and_name_a_function)
{
  idle_program();
  finish();
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM device_gap"), 3);
  ck_assert_int_eq(synth_number(trace, "SELECT \"end\" - start FROM device_gap WHERE start = 200"),
                   800);
  ck_assert_int_eq(synth_number(trace,
                                "SELECT count(*) FROM device_gap g JOIN api a ON a.id = g.api"
                                " WHERE start = 200 AND a.name = 'cudaMalloc'"
                                " AND host_waiting_ns = 100 AND host_elsewhere_ns = 255"
                                " AND no_call_ns = 350 AND queued_ns = 95"),
                   1);
  ck_assert_int_eq(synth_number(trace,
                                "SELECT count(*) FROM device_gap WHERE unknown_ns + queued_ns"
                                " + host_waiting_ns + host_elsewhere_ns + no_call_ns"
                                " <> \"end\" - start"),
                   0);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM device_gap g JOIN device_work w"
                                       " ON w.id = g.work AND w.start = g.\"end\""),
                   3);
}
END_TEST

START_TEST(idle_time_with_work_without_times_is_unknown)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 300, B, 0, 0);
  sync_stream(0, 400, 500, B);
  launch(0, 900, A, 1000, 1100);
  finish();
  ck_assert_int_eq(idle_ns("unknown", ""), 200);
  ck_assert_int_eq(idle_ns("queued", ""), 95);
  ck_assert_int_eq(idle_ns("host_elsewhere", "cudaLaunchKernel"), 5);
  ck_assert_int_eq(idle_ns("no_call", ""), 500);
}
END_TEST

/* ---- what no device did ---------------------------------------------------------------------- */

static void change(const char *sql)
{
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(trace, &db), SQLITE_OK);
  ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                sqlite3_errmsg(db));
  sqlite3_close(db);
}

static const char *const hostile[] = {
    "UPDATE device_work SET \"end\" = start - 50 WHERE id % 2",
    "UPDATE device_work SET \"end\" = 9223372036854775807",
    "UPDATE device_work SET start = -9223372036854775807 - 1",
    "UPDATE device_work SET start = -9223372036854775807, \"end\" = 9223372036854775807",
    "UPDATE device_work SET start = -2305843009213693952, \"end\" = 2305843009213693952",
    ("UPDATE device_work SET start = -2305843009213693952, \"end\" = start WHERE id = 1;"
     " UPDATE device_work SET start = 2305843009213693952, \"end\" = start WHERE id > 1"),
    "UPDATE device_work SET start = 'x', \"end\" = x'00', queued = 'y', event = 'z'",
    "UPDATE device_work SET device = -1; UPDATE device_work SET device = 999 WHERE id = 1",
    "UPDATE device_work SET queued = -9223372036854775807 - 1, device = 254",
    "UPDATE device_work SET kind = 77, event = -3",
    ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
     " INSERT INTO device_work(process, event, kind, device, start, \"end\")"
     " SELECT 1, i % 9, 3, i % 2, i % 7, 2000 - i % 5 FROM n"),
    "UPDATE event_row SET start = 9223372036854775807 - 60",
    "UPDATE event_row SET start = -9223372036854775807",
    "UPDATE event_row SET duration = 9223372036854775807",
    "UPDATE event_row SET duration = -5, b = 9223372036854775807",
    "UPDATE event_row SET start = 0, duration = 1000",
    "UPDATE template SET api = 65000, device = 255, context = 300, stream = -1",
    "UPDATE template SET status = 65536, flags = -1",
    "UPDATE event_row SET id = id + 4611686018427387904",
    "UPDATE event_row SET id = -id",
    "DELETE FROM device_fact; UPDATE device_work SET correlation = NULL",
};

START_TEST(hostile_rows_give_no_sum_that_cannot_be)
{
  static const char bad_wait[] =
      "SELECT count(*) FROM wait_time t JOIN event_row e USING(id) WHERE working_ns < 0"
      " OR other_ns < 0 OR idle_ns < 0 OR unknown_ns < 0 OR typeof(working_ns + other_ns + idle_ns"
      " + unknown_ns) <> 'integer' OR working_ns + other_ns + idle_ns + unknown_ns >"
      " max(e.duration, 0)";
  static const char bad_gap[] =
      "SELECT count(*) FROM device_gap WHERE unknown_ns < 0 OR queued_ns < 0"
      " OR host_waiting_ns < 0 OR host_elsewhere_ns < 0 OR no_call_ns < 0 OR unknown_ns + queued_ns"
      " + host_waiting_ns + host_elsewhere_ns + no_call_ns <> \"end\" - start";
  idle_program();
  finish();
  change(hostile[_i]);
  resolve();
  ck_assert_int_eq(synth_number(trace, bad_wait), 0);
  ck_assert_int_eq(synth_number(trace, bad_gap), 0);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM device_idle WHERE ns < 0"), 0);
  ck_assert_int_eq(synth_number(trace, "SELECT (SELECT total(ns) FROM device_idle) ="
                                       " (SELECT total(\"end\" - start) FROM device_gap)"),
                   1);
  json_t *j = synth_json(trace);
  json_decref(j);
  char *text = synth_text(trace, 100);
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/wait_time");
  TCase *t = tcase_create("wait_time");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, a_wait_is_its_own_work_other_work_and_nothing);
  tcase_add_test(t, work_queued_behind_an_event_is_other_work);
  tcase_add_test(t, a_wait_for_a_device_is_for_all_its_streams);
  tcase_add_test(t, another_device_is_no_other_work);
  tcase_add_test(t, two_threads_wait_at_once);
  tcase_add_test(t, a_copy_that_waits_waits_for_itself_too);
  tcase_add_test(t, work_without_times_may_be_what_is_waited_for);
  tcase_add_test(t, work_without_usable_times_has_none);
  tcase_add_test(t, another_stream_s_work_without_times_may_be_other_work);
  tcase_add_test(t, work_ahead_of_what_has_begun_is_over);
  tcase_add_test(t, what_the_host_does_in_a_stream_is_no_device_s_work);
  tcase_add_test(t, a_graph_is_whole_where_kernels_are_observed);
  tcase_add_test(t, of_a_program_with_lost_events_all_is_unknown);
  tcase_add_test(t, without_device_times_nothing_is_said);
  tcase_add_test(t, idle_time_has_a_cause_each_ns);
  tcase_add_test(t, gaps_are_whole_and_name_a_function);
  tcase_add_test(t, idle_time_with_work_without_times_is_unknown);
  tcase_add_loop_test(t, hostile_rows_give_no_sum_that_cannot_be, 0,
                      (int)(sizeof(hostile) / sizeof(hostile[0])));
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
