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

static void add_work(uint32_t number, int device, uint64_t start, uint64_t end, uint64_t queued)
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
  if (number) add_work(number, 0, start, end, 0);
}

static void sync_stream(int thread, uint64_t at, uint64_t until, uint64_t stream)
{
  record_call(thread, at, until - at, "cudaStreamSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_STREAM, .stream = stream});
}

static void sync_device(uint64_t at, uint64_t until)
{
  record_call(0, at, until - at, "cudaDeviceSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_CONTEXT});
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
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_EVENT, .a = E});
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
  add_work(number, 1, 100, 300, 0);
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

/* The call itself is work that it waits for; of an asynchronous free nothing is known to be
 * done. */
START_TEST(a_copy_that_waits_waits_for_itself_too)
{
  begin_program(ALL);
  launch(0, 10, 1, 100, 200);
  uint32_t number = correlate(0, 50);
  record_call(0, 50, 300, "cudaMemcpy",
              (trace_event){.kind = WEIR_EV_COPY,
                            .copy_kind = WEIR_COPY_DTOH,
                            .mem = WEIR_MEM_PAGEABLE | WEIR_MEM_DEVICE << 4,
                            .bytes = 1000,
                            .flags = WEIR_EVF_IMPLICIT_SYNC,
                            .stream = 1});
  add_work(number, 0, 220, 320, 0);
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
    add_work(number, 0, 100, 200, 0);
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
  synth_change(trace, "UPDATE process SET dropped = 1");
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
  add_work(number, 0, 1200, 1300, 1150); /* the device says when it was queued */
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
                                " + queue_full_ns <> \"end\" - start"),
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

/* Device 0 is busy from 100 to 90000 with the first of 1002 kernels, device 1 idle from 200 to
 * 80000. Each launch takes 5 ns; while there are 1000 that have not begun the stream is full. */
START_TEST(launches_into_a_full_queue_are_a_cause)
{
  begin_program(ALL);
  begin_streams();
  uint32_t other = correlate(0, 5);
  record_call(0, 5, 1, "cudaLaunchKernel",
              (trace_event){.kind = WEIR_EV_LAUNCH, .stream = B, .device = 1});
  add_work(other, 1, 100, 200, 0);
  launch(0, 10, A, 100, 90000);
  for (uint64_t i = 0; i < 1001; i++)
    launch(0, 1000 + 10 * i, A, 90000 + 10 * i, 90005 + 10 * i);
  uint32_t last = correlate(0, 20000);
  record_call(
      0, 20000, 300, "cudaMemcpyAsync",
      (trace_event){.kind = WEIR_EV_COPY, .copy_kind = WEIR_COPY_DTOD, .bytes = 8, .stream = A});
  add_work(last, 0, 200000, 200001, 0);
  record_call(0, 30000, 400, "cudaMalloc", (trace_event){.kind = WEIR_EV_CALL});
  other = correlate(0, 79000);
  record_call(0, 79000, 5, "cudaLaunchKernel",
              (trace_event){.kind = WEIR_EV_LAUNCH, .stream = B, .device = 1});
  add_work(other, 1, 80000, 80010, 0);
  finish();
  /* the last launch but 0, the copy; then device 1's */
  ck_assert_int_eq(synth_number(trace, "SELECT sum(ns) FROM queue_full WHERE device = 0"),
                   5 + 300 + 5);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM queue_full WHERE device <> 0"), 0);
  ck_assert_int_eq(synth_number(trace, "SELECT queue_full_ns FROM device_gap WHERE device = 1"),
                   5 + 300 + 5);
  ck_assert_int_eq(synth_number(trace,
                                "SELECT ns FROM device_idle i JOIN idle_cause c ON c.id = i.cause"
                                " WHERE device = 1 AND name = 'queue_full'"),
                   5 + 300 + 5);
  ck_assert_int_eq(synth_number(trace, "SELECT ns FROM device_idle i JOIN api a ON a.id = i.api"
                                       " WHERE device = 1 AND name = 'cudaMalloc'"),
                   400);
  char *text = synth_text(trace, 100);
  ck_assert_ptr_nonnull(strstr(text, "GPU 0 had a full launch queue for 310 ns of host time"));
  ck_assert_ptr_nonnull(strstr(text, "a launch queue was full"));
  free(text);
}
END_TEST

/* ---- what no device did ---------------------------------------------------------------------- */

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

static const char *const hostile_results[] = {
    "UPDATE device_gap SET start = -9223372036854775807 - 1, \"end\" = 9223372036854775807",
    "UPDATE device_gap SET api = 'x', no_call_ns = -1, queued_ns = 'y', device = 999",
    "UPDATE device_idle SET ns = 9223372036854775807, cause = 99",
    "UPDATE device_idle SET ns = 9223372036854775807",
    "UPDATE device_idle SET ns = -1, device = -1, api = -1",
    "UPDATE wait_time SET working_ns = 9223372036854775807, other_ns = 9223372036854775807",
    "UPDATE wait_time SET working_ns = 'x', other_ns = -9, idle_ns = NULL",
    "UPDATE wait_detail SET pending = 'x', narrower = x'00', covered_by = -1",
    "UPDATE api SET name = NULL",
    "UPDATE api SET name = x'ff00fe'",
    "UPDATE device_gap SET queue_full_ns = 9223372036854775807, host_elsewhere_ns = queue_full_ns",
    "INSERT INTO queue_full VALUES(0, 1, 9223372036854775807), (0, 'x', -1), (-1, 1, 5)",
    "ALTER TABLE device_gap DROP COLUMN queue_full_ns",
    "DROP TABLE queue_full",
    "DROP TABLE device_idle",
    "DROP TABLE wait_time",
    "DELETE FROM device_gap; DELETE FROM wait_time; DELETE FROM idle_cause",
};

START_TEST(hostile_results_make_no_report_fail)
{
  idle_program();
  finish();
  synth_change(trace, hostile_results[_i]);
  json_t *j = synth_json(trace);
  json_decref(j);
  char *text = synth_text(trace, 80);
  free(text);
}
END_TEST

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
      " + host_waiting_ns + host_elsewhere_ns + no_call_ns + queue_full_ns <> \"end\" - start";
  idle_program();
  finish();
  synth_change(trace, hostile[_i]);
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

/* ---- reports --------------------------------------------------------------------------------- */

static int64_t member(const json_t *o, const char *name)
{
  const json_t *n = json_object_get(o, name);
  ck_assert_msg(json_is_integer(n), "%s is missing", name);
  return json_integer_value(n);
}

/* Idle time of that cause in a device's list; -1: none. */
static int64_t reported_idle(const json_t *list, const char *cause, const char *function)
{
  size_t i;
  json_t *x;
  json_array_foreach(list, i, x)
  {
    const char *in = json_string_value(json_object_get(x, "function"));
    if (!strcmp(json_string_value(json_object_get(x, "cause")), cause) &&
        !strcmp(in ? in : "", function))
      return member(x, "ns");
  }
  return -1;
}

static json_t *first_device(const json_t *report)
{
  return json_array_get(json_object_get(report, "device_times"), 0);
}

static void expect_idle(const json_t *device)
{
  const json_t *idle = json_object_get(device, "idle");
  const json_t *gaps = json_object_get(device, "longest_idle"), *gap = json_array_get(gaps, 0);
  ck_assert_int_eq(member(device, "span_ns") - member(device, "busy_ns"), 800 + 100 + 700);
  ck_assert_int_eq(reported_idle(idle, "host_waiting", "cudaStreamSynchronize"), 100);
  ck_assert_int_eq(reported_idle(idle, "host_elsewhere", "cudaMalloc"), 200);
  ck_assert_int_eq(reported_idle(idle, "queued", ""), 95 + 50);
  ck_assert_int_eq(reported_idle(idle, "no_call", ""), 100 + 250 + 50 + 695);
  ck_assert_int_eq(reported_idle(idle, "unknown", ""), -1);
  ck_assert_int_eq(json_array_size(gaps), 3);
  ck_assert_int_eq(member(gap, "start_ns"), 200);
  ck_assert_int_eq(member(gap, "end_ns"), 1000);
  ck_assert_str_eq(json_string_value(json_object_get(gap, "function")), "cudaMalloc");
  ck_assert_int_eq(member(json_object_get(gap, "causes"), "host_elsewhere"), 255);
}

static void expect_division(const json_t *report)
{
  const json_t *divided = json_object_get(json_object_get(report, "waits"), "divided");
  const json_t *functions = json_object_get(divided, "functions"),
               *f = json_array_get(functions, 0);
  ck_assert_int_eq(member(divided, "calls"), 1);
  ck_assert_int_eq(member(divided, "working_ns"), 100);
  ck_assert_int_eq(member(divided, "other_ns"), 0);
  ck_assert_int_eq(member(divided, "idle_ns"), 50 + 100);
  ck_assert_int_eq(member(divided, "unknown_ns"), 0);
  ck_assert_int_eq(json_array_size(functions), 1);
  ck_assert_str_eq(json_string_value(json_object_get(f, "function")), "cudaStreamSynchronize");
  ck_assert_int_eq(member(f, "working_ns"), 100);
}

static void expect_said(const char *text, const char *what)
{
  ck_assert_msg(strstr(text, what) != NULL, "no \"%s\" in: %s", what, text);
}

START_TEST(a_report_says_why_devices_were_idle_and_how_waits_divide)
{
  const char *one[] = {NULL, NULL};
  idle_program();
  synth_close();
  one[0] = synth_spool();
  trace = synth_import("t.db", one);
  for (int resolved = 0; resolved < 2; resolved++) {
    json_t *j = synth_json(trace);
    char *text = synth_text(trace, 100);
    expect_idle(first_device(j));
    expect_division(j);
    ck_assert(json_is_null(json_object_get(json_object_get(j, "device_observation"), "undivided")));
    expect_said(text, "Why devices were idle");
    expect_said(text, "the host was elsewhere    cudaMalloc");
    expect_said(text, "for 800 ns, from 200 ns on: mostly the host was in CUDA calls, the");
    expect_said(text, "What devices did in waits");
    expect_said(text, "of 250 ns: 40 % the device worked on what was waited for, 60 % it was idle");
    free(text);
    json_decref(j);
    resolve();
  }
}
END_TEST

/* Of a process that had its copies alone observed. */
START_TEST(a_report_says_what_of_it_is_not_known)
{
  begin_program("copies, CUPTI 130001");
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 300, B, 0, 0);
  sync_stream(0, 400, 500, B);
  launch(0, 900, A, 1000, 1100);
  finish();
  json_t *j = synth_json(trace), *seen = json_object_get(j, "device_observation");
  char *text = synth_text(trace, 100);
  ck_assert(json_is_true(json_object_get(seen, "kernels_unobserved")));
  ck_assert_int_eq(reported_idle(json_object_get(first_device(j), "idle"), "unknown", ""), 200);
  expect_said(text, "kernels were not observed");
  expect_said(text, "GPU 0: seen busy 200 ns of 1.00 µs (20 %), the rest idle or in kernels");
  ck_assert_ptr_null(strstr(text, "overlap"));
  expect_said(text, "of 100 ns of host time in waits it is not known what devices did");
  free(text);
  json_decref(j);
}
END_TEST

/* A trace that is not resolved, with more operations of devices than a report goes through: waits
 * are judged by the calls all the same. */
START_TEST(a_report_of_very_many_operations_says_that_it_leaves_them_out)
{
  idle_program();
  const char *one[] = {synth_spool(), NULL};
  synth_close();
  trace = synth_import("t.db", one);
  synth_change(trace,
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
               " INSERT INTO device_work(process, kind, device, start, \"end\")"
               " SELECT 1, 3, 0, 3000 + i, 3001 + i FROM n");
  json_t *j = synth_json(trace), *waits = json_object_get(j, "waits");
  const json_t *seen = json_object_get(j, "device_observation");
  char *text = synth_text(trace, 0);
  ck_assert_int_eq(member(waits, "judged_calls"), 1);
  ck_assert(json_is_null(json_object_get(waits, "divided")));
  ck_assert(json_is_null(json_object_get(first_device(j), "idle")));
  ck_assert_str_eq(json_string_value(json_object_get(seen, "undivided")), "operations");
  expect_said(text, "why devices were idle is not worked out");
  free(text);
  json_decref(j);
}
END_TEST

/* Two streams have work, then one: to wait for that one had been enough. */
/* All there is is then that stream's. */
START_TEST(a_wait_for_a_device_with_one_stream_is_not_too_wide)
{
  begin_program(ALL);
  begin_streams();
  for (int i = 0; i < 3; i++) {
    launch(0, 1000 * i + 10, A, 1000 * i + 100, 1000 * i + 200);
    sync_device(1000 * i + 50, 1000 * i + 300);
  }
  finish();
  json_t *j = synth_json(trace);
  char *text = synth_text(trace, 0);
  ck_assert_int_eq(member(json_object_get(j, "waits"), "judged_calls"), 3);
  ck_assert_int_eq(member(json_object_get(j, "waits"), "wider_calls"), 0);
  ck_assert_ptr_null(strstr(text, "Waits for a whole device"));
  free(text);
  json_decref(j);
}
END_TEST

START_TEST(a_report_says_where_waits_for_a_device_were_wider_than_needed)
{
  begin_program(ALL);
  begin_streams();
  launch(0, 10, A, 100, 200);
  launch(0, 20, B, 100, 250);
  sync_device(50, 300);
  launch(0, 310, B, 400, 500);
  sync_device(350, 520);
  finish();
  json_t *j = synth_json(trace);
  const json_t *waits = json_object_get(j, "waits");
  const json_t *sites = json_object_get(json_object_get(j, "sites"), "wider_waits");
  char *text = synth_text(trace, 0);
  ck_assert_int_eq(member(waits, "wider_calls"), 1);
  ck_assert_int_eq(member(waits, "wider_ns"), 170);
  ck_assert_int_eq(json_array_size(sites), 1);
  ck_assert_int_eq(member(json_array_get(sites, 0), "calls"), 1);
  ck_assert_int_eq(member(json_array_get(sites, 0), "ns"), 170);
  expect_said(text, "1 of 2 waits, 170 ns of host time: one stream alone had work");
  free(text);
  json_decref(j);
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
  tcase_add_test(t, a_report_says_why_devices_were_idle_and_how_waits_divide);
  tcase_add_test(t, a_report_says_what_of_it_is_not_known);
  tcase_add_test(t, a_report_of_very_many_operations_says_that_it_leaves_them_out);
  tcase_add_test(t, a_report_says_where_waits_for_a_device_were_wider_than_needed);
  tcase_add_test(t, a_wait_for_a_device_with_one_stream_is_not_too_wide);
  tcase_add_test(t, launches_into_a_full_queue_are_a_cause);
  tcase_add_loop_test(t, hostile_rows_give_no_sum_that_cannot_be, 0,
                      (int)(sizeof(hostile) / sizeof(hostile[0])));
  tcase_add_loop_test(t, hostile_results_make_no_report_fail, 0,
                      (int)(sizeof(hostile_results) / sizeof(hostile_results[0])));
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
