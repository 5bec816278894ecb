/* test_report.c: a summary's numbers, against an oracle that counts for itself, and against what
 * people ask Nsight's views. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

#define HOST (int)WEIR_DEVICE_NONE

static const char *import_synth_spool(void)
{
  const char *one[] = {synth_spool(), NULL};
  return synth_import("t.db", one);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

typedef struct oracle {
  int64_t calls[11], bytes[11]; /* by copy kind */
  int64_t memsets, memset_bytes, waits, wait_ns, implicit, implicit_ns, launches, failed, captured,
      events;
  int64_t pageable_bytes;
} oracle;

static const int kinds[] = {WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD, WEIR_COPY_PTOP,
                            WEIR_COPY_HTOH};

static void random_copy(oracle *o, trace_event *e, uint64_t ns)
{
  int copy = kinds[synth_below(5)], other = (int)synth_below(2);
  bool to_device = copy != WEIR_COPY_DTOH && copy != WEIR_COPY_HTOH;
  bool from_device = copy != WEIR_COPY_HTOD && copy != WEIR_COPY_HTOH;
  int host_mem = synth_below(2) ? WEIR_MEM_PAGEABLE : WEIR_MEM_PINNED;
  e->kind = WEIR_EV_COPY;
  e->copy_kind = (uint8_t)copy;
  e->api = synth_api("cudaMemcpy");
  e->device = (uint8_t)(to_device ? other : HOST);
  e->src_device = (uint8_t)(from_device ? copy == WEIR_COPY_PTOP ? 1 - other : other : HOST);
  e->mem = (uint8_t)((to_device ? WEIR_MEM_DEVICE : host_mem) |
                     (from_device ? WEIR_MEM_DEVICE : host_mem) << 4);
  if (e->status || e->flags & WEIR_EVF_CAPTURE) return;
  o->calls[copy]++;
  o->bytes[copy] += (int64_t)e->bytes;
  if (host_mem == WEIR_MEM_PAGEABLE && copy <= WEIR_COPY_DTOH)
    o->pageable_bytes += (int64_t)e->bytes;
  if (e->flags & WEIR_EVF_IMPLICIT_SYNC) o->implicit++, o->implicit_ns += (int64_t)ns;
}

static void random_sync(oracle *o, trace_event *e, uint64_t ns)
{
  e->kind = WEIR_EV_SYNC;
  e->sync_type = (uint8_t)(1 + synth_below(5));
  e->api = synth_api("cudaStreamSynchronize");
  e->flags &= (uint8_t)~WEIR_EVF_IMPLICIT_SYNC;
  if (e->status || e->flags & WEIR_EVF_CAPTURE) return;
  if (e->sync_type == WEIR_SYNC_STREAM_WAIT || e->sync_type == WEIR_SYNC_QUERY) return;
  o->waits++;
  o->wait_ns += (int64_t)ns;
}

static void random_event(oracle *o, uint64_t at)
{
  uint64_t ns = 10 + synth_below(900);
  trace_event e = {.flags = WEIR_EVF_RUNTIME,
                   .device = (uint8_t)synth_below(2),
                   .src_device = HOST,
                   .bytes = synth_below(1 << 20),
                   .stream = synth_below(4)};
  if (synth_below(20) == 0) e.status = 1;
  if (synth_below(20) == 0) e.flags |= WEIR_EVF_CAPTURE;
  if (synth_below(3) == 0) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  o->events++;
  o->failed += e.status != 0;
  o->captured += e.flags & WEIR_EVF_CAPTURE && !e.status;
  bool done = !e.status && !(e.flags & WEIR_EVF_CAPTURE);
  switch (synth_below(4)) {
  case 0:
    random_copy(o, &e, ns);
    break;
  case 1:
    random_sync(o, &e, ns);
    break;
  case 2:
    e.kind = WEIR_EV_MEMSET, e.api = synth_api("cudaMemset"),
    e.flags &= (uint8_t)~WEIR_EVF_IMPLICIT_SYNC;
    if (done) o->memsets++, o->memset_bytes += (int64_t)e.bytes;
    break;
  default:
    e.kind = WEIR_EV_LAUNCH, e.api = synth_api("cudaLaunchKernel"),
    e.flags &= (uint8_t)~WEIR_EVF_IMPLICIT_SYNC;
    o->launches += done;
  }
  synth_event((int)synth_below(8), at, ns, e);
}

static void expect_totals(const oracle *o, const json_t *j)
{
  static const char *const names[] = {"h2d", "d2h", "d2d", "p2p", "h2h"};
  char name[32];
  for (int i = 0; i < 5; i++) {
    (void)snprintf(name, sizeof(name), "%s_calls", names[i]);
    ck_assert_int_eq(synth_total(j, name), o->calls[kinds[i]]);
    (void)snprintf(name, sizeof(name), "%s_bytes", names[i]);
    ck_assert_int_eq(synth_total(j, name), o->bytes[kinds[i]]);
  }
  ck_assert_int_eq(synth_total(j, "memset_calls"), o->memsets);
  ck_assert_int_eq(synth_total(j, "memset_bytes"), o->memset_bytes);
  ck_assert_int_eq(synth_total(j, "sync_explicit_calls"), o->waits);
  ck_assert_int_eq(synth_total(j, "sync_explicit_ns"), o->wait_ns);
  ck_assert_int_eq(synth_total(j, "sync_implicit_calls"), o->implicit);
  ck_assert_int_eq(synth_total(j, "sync_implicit_ns"), o->implicit_ns);
  ck_assert_int_eq(synth_total(j, "launches"), o->launches);
  ck_assert_int_eq(synth_total(j, "events"), o->events);
  ck_assert_int_eq(synth_total(j, "failed_calls"), o->failed);
  ck_assert_int_eq(synth_total(j, "captured_events"), o->captured);
  ck_assert_int_eq(synth_total(j, "dropped"), 0);
}

/* Sums of a member over an array of the report. */
static int64_t sum_of(const json_t *j, const char *array, const char *member)
{
  size_t i;
  json_t *row;
  int64_t sum = 0;
  json_array_foreach(json_object_get(j, array), i, row) sum +=
      json_integer_value(json_object_get(row, member));
  return sum;
}

/* The parts of a report must add up to its totals. */
static void expect_parts(const json_t *j)
{
  ck_assert_int_eq(sum_of(j, "devices", "h2d_bytes"), synth_total(j, "h2d_bytes"));
  ck_assert_int_eq(sum_of(j, "devices", "d2h_bytes"), synth_total(j, "d2h_bytes"));
  ck_assert_int_eq(sum_of(j, "devices", "d2d_bytes"), synth_total(j, "d2d_bytes"));
  ck_assert_int_eq(sum_of(j, "devices", "p2p_in_bytes"), synth_total(j, "p2p_bytes"));
  ck_assert_int_eq(sum_of(j, "devices", "p2p_out_bytes"), synth_total(j, "p2p_bytes"));
  ck_assert_int_eq(sum_of(j, "devices", "launches"), synth_total(j, "launches"));
  ck_assert_int_eq(sum_of(j, "apis", "calls"), synth_total(j, "events"));
  ck_assert_int_eq(sum_of(j, "apis", "errors"), synth_total(j, "failed_calls"));
  ck_assert_int_eq(sum_of(j, "apis", "sync_ns"), synth_total(j, "sync_explicit_ns"));
  ck_assert_int_eq(sum_of(j, "apis", "implicit_ns"), synth_total(j, "sync_implicit_ns"));
  int64_t copies = synth_total(j, "h2d_bytes") + synth_total(j, "d2h_bytes") +
                   synth_total(j, "d2d_bytes") + synth_total(j, "p2p_bytes") +
                   synth_total(j, "h2h_bytes");
  ck_assert_int_eq(sum_of(j, "matrix", "bytes"), copies);
  ck_assert_int_eq(sum_of(j, "host_memory", "bytes"),
                   synth_total(j, "h2d_bytes") + synth_total(j, "d2h_bytes"));
}

/* What people ask an Nsight export, word for word; each must be the report's number. */
static void expect_nsight(const oracle *o, const char *t, const json_t *j)
{
  static const struct {
    const char *total, *sql;
  } queries[] = {
      {"h2d_bytes",
       "SELECT COALESCE(SUM(bytes),0) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1"},
      {"d2h_calls", "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN ENUM_CUDA_MEMCPY_OPER o"
                    " ON o.id = m.copyKind WHERE o.label = 'Device-to-Host'"},
      {"d2d_bytes",
       "SELECT COALESCE(SUM(bytes),0) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 8"},
      {"p2p_bytes",
       "SELECT COALESCE(SUM(bytes),0) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 10"
       " AND srcDeviceId <> dstDeviceId"},
      {"memset_bytes", "SELECT COALESCE(SUM(bytes),0) FROM CUPTI_ACTIVITY_KIND_MEMSET"},
      {"sync_explicit_ns",
       "SELECT COALESCE(SUM(s.end - s.start),0) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s"
       " JOIN ENUM_CUPTI_SYNC_TYPE t ON t.id = s.syncType WHERE t.label <> 'Stream wait sync'"},
      {"sync_explicit_calls",
       "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION WHERE syncType <> 2"},
      {"events",
       "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId"},
      {"failed_calls", "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE returnValue <> 0"}};
  for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
    ck_assert_int_eq(synth_number(t, queries[i].sql), synth_total(j, queries[i].total));
  ck_assert_int_eq(
      synth_number(t, "SELECT COALESCE(SUM(m.bytes),0) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN"
                      " ENUM_CUDA_MEM_KIND k ON k.id = CASE m.copyKind WHEN 1 THEN m.srcKind"
                      " ELSE m.dstKind END WHERE k.label = 'Pageable' AND m.copyKind IN (1,2)"),
      o->pageable_bytes);
  ck_assert_int_eq(
      synth_number(t, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN"
                      " CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = m.correlationId"
                      " WHERE r.start = m.start AND r.end = m.end"),
      synth_number(t, "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY"));
  ck_assert_int_eq(synth_number(t, "SELECT COUNT(DISTINCT globalTid & 0xFFFFFF) FROM"
                                   " CUPTI_ACTIVITY_KIND_RUNTIME"),
                   synth_number(t, "SELECT COUNT(DISTINCT tid) FROM thread"));
  ck_assert_int_eq(synth_number(t, "SELECT globalPid / 0x1000000 % 0x1000000 FROM PROCESSES"),
                   synth_number(t, "SELECT pid FROM process"));
}

START_TEST(totals_parts_and_nsight_queries_agree_with_the_oracle)
{
  oracle o = {0};
  synth_seed(UINT64_C(0x2545f4914f6cdd1d) * (uint64_t)(_i + 1));
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 6000; i++)
    random_event(&o, i * 1000);
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_str_eq(json_string_value(json_object_get(j, "schema")), "weir-report/1");
  expect_totals(&o, j);
  expect_parts(j);
  expect_nsight(&o, t, j);
  json_decref(j);
}
END_TEST

START_TEST(memory_events_in_nsights_view_are_the_reports)
{
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 100; i++)
    synth_alloc(0, 100 + i * 100, 10, 0x1000 * (i + 1), 10 + i, (int)(i & 1),
                i % 10 == 9 ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE);
  for (uint64_t i = 0; i < 80; i++)
    synth_free(1, 20000 + i * 100, 10, 0x1000 * (i + 1));
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_int_eq(
      synth_number(t, "SELECT SUM(bytes) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 2"
                      " AND memoryOperationType = 0"),
      synth_total(j, "alloc_bytes"));
  ck_assert_int_eq(
      synth_number(t, "SELECT COUNT(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 2"
                      " AND memoryOperationType = 1"),
      synth_total(j, "free_calls"));
  ck_assert_int_eq(
      synth_number(t, "SELECT SUM(bytes) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 1"
                      " AND memoryOperationType = 0"),
      synth_total(j, "pinned_alloc_bytes"));
  ck_assert_int_eq(
      synth_number(
          t, "SELECT MAX(live) FROM (SELECT SUM(CASE memoryOperationType WHEN 0 THEN bytes ELSE"
             " -bytes END) OVER (ORDER BY start, memoryOperationType DESC) AS live FROM"
             " CUDA_GPU_MEMORY_USAGE_EVENTS WHERE memKind = 2)"),
      synth_total(j, "peak_bytes"));
  json_decref(j);
}
END_TEST

START_TEST(no_cuda_calls_is_said_plainly)
{
  synth_open(synth_dir());
  synth_close();
  const char *t = import_synth_spool();
  char *text = synth_text(t, 100);
  ck_assert_ptr_nonnull(strstr(text, "no CUDA calls"));
  free(text);
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "events"), 0);
  ck_assert_int_eq(synth_total(j, "peak_bytes"), 0);
  ck_assert_uint_eq(json_array_size(json_object_get(j, "processes")), 1);
  json_decref(j);
}
END_TEST

START_TEST(a_process_without_calls_among_others_is_named)
{
  char first[512];
  synth_open(synth_dir());
  synth_close();
  (void)snprintf(first, sizeof(first), "%s", synth_spool());
  synth_open(synth_dir());
  synth_sync(0, 100, 10, WEIR_SYNC_CONTEXT);
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  char *text = synth_text(synth_import("t.db", both), 100);
  ck_assert_ptr_nonnull(strstr(text, "no CUDA calls"));
  ck_assert_ptr_nonnull(strstr(text, "cudaDeviceSynchronize"));
  free(text);
}
END_TEST

START_TEST(an_empty_trace_has_a_report)
{
  const char *none[] = {NULL};
  const char *t = synth_import("t.db", none);
  char *text = synth_text(t, 0);
  ck_assert_ptr_nonnull(strstr(text, "no CUDA calls"));
  free(text);
  json_decref(synth_json(t));
}
END_TEST

START_TEST(a_spool_serves_where_a_trace_is_wanted)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 77, 0, WEIR_MEM_DEVICE);
  synth_close();
  json_t *j = synth_json(synth_spool());
  ck_assert_int_eq(synth_total(j, "alloc_bytes"), 77);
  ck_assert_str_eq(json_string_value(json_object_get(j, "trace")), synth_spool());
  json_decref(j);
}
END_TEST

/* While its collector polls, a trace answers queries and has a report that says that it is
 * unfinished. */
START_TEST(a_trace_in_the_making_has_a_report_with_lifetimes)
{
  trace_importer *im = NULL;
  char t[512];
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 500, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 200, 10, 0x2000, 700, 0, WEIR_MEM_DEVICE);
  synth_free(0, 300, 10, 0x1000);
  (void)snprintf(t, sizeof(t), "%s/live.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "peak_bytes"), 1200);
  ck_assert_int_eq(synth_total(j, "live_at_exit_bytes"), 700);
  ck_assert_int_eq(synth_total(j, "free_calls"), 1);
  ck_assert(json_is_false(json_object_get(j, "complete")));
  json_decref(j);
  synth_close();
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "peak_bytes"), 1200);
  ck_assert(json_is_true(json_object_get(j, "complete")));
  json_decref(j);
}
END_TEST

/* ---- times ----------------------------------------------------------------------------------- */

static json_t *route(const json_t *j, int src, int dst) /* -1: the host */
{
  size_t i;
  json_t *r;
  json_array_foreach(json_object_get(j, "matrix"), i, r)
  {
    const json_t *s = json_object_get(r, "src"), *d = json_object_get(r, "dst");
    if ((json_is_null(s) ? -1 : json_integer_value(s)) == src &&
        (json_is_null(d) ? -1 : json_integer_value(d)) == dst)
      return r;
  }
  ck_abort_msg("no copies from %d to %d", src, dst);
}

/* Calls that return before their copy is done, one after the other: 5 GB in 2 us. */
START_TEST(a_call_that_does_not_wait_for_its_copy_tells_no_speed)
{
  const uint64_t big = 5000000000;
  synth_open(synth_dir());
  synth_copy(0, 1000, 2000, WEIR_COPY_DTOD, big, 0, 0, WEIR_MEM_DEVICE, WEIR_MEM_DEVICE, 0);
  synth_copy(0, 4000, 2000, WEIR_COPY_PTOP, big, 1, 0, WEIR_MEM_DEVICE, WEIR_MEM_DEVICE, 0);
  synth_copy(0, 7000, 2000, WEIR_COPY_HTOD, 65536, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PAGEABLE,
             WEIR_EVF_IMPLICIT_SYNC); /* as small ones do */
  synth_copy(0, 10000, 2000, WEIR_COPY_HTOD, big, 1, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PAGEABLE,
             WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_ASYNC);
  synth_copy(0, 13000, 1000, WEIR_COPY_DTOH, 1000000, HOST, 0, WEIR_MEM_PAGEABLE, WEIR_MEM_DEVICE,
             WEIR_EVF_IMPLICIT_SYNC);
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  const int silent[][2] = {{0, 0}, {0, 1}, {-1, 0}, {-1, 1}};
  for (size_t i = 0; i < 4; i++) {
    json_t *r = route(j, silent[i][0], silent[i][1]);
    ck_assert_msg(json_is_null(json_object_get(r, "bytes_per_second")), "%d to %d", silent[i][0],
                  silent[i][1]);
    ck_assert_int_eq(json_integer_value(json_object_get(r, "timed_ns")), 0);
  }
  ck_assert_double_eq_tol(json_real_value(json_object_get(route(j, 0, -1), "bytes_per_second")),
                          1e12, 1);
  json_decref(j);
  char *text = synth_text(t, 100);
  ck_assert_ptr_null(strstr(text, "2500 GB/s"));
  free(text);
}
END_TEST

static void in_context(int n, uint64_t at, uint64_t ns, const char *api, event_kind kind,
                       unsigned context, int device)
{
  bool waits = kind == WEIR_EV_ALLOC || kind == WEIR_EV_FREE;
  synth_event(n, at, ns,
              (trace_event){.kind = (uint8_t)kind,
                            .api = synth_api(api),
                            .flags = WEIR_EVF_RUNTIME | (waits ? WEIR_EVF_IMPLICIT_SYNC : 0),
                            .sync_type = kind == WEIR_EV_SYNC ? WEIR_SYNC_CONTEXT : 0,
                            .bytes = kind == WEIR_EV_ALLOC ? 64 : 0,
                            .a = at,
                            .mem = WEIR_MEM_PINNED,
                            .device = (uint8_t)device,
                            .src_device = HOST,
                            .stack = context << 24});
}

static int64_t of_api(const json_t *j, const char *name, const char *member)
{
  size_t i;
  json_t *a;
  json_array_foreach(json_object_get(j, "apis"), i,
                     a) if (!strcmp(json_string_value(json_object_get(a, "name")),
                                    name)) return json_integer_value(json_object_get(a, member));
  ck_abort_msg("%s is not there", name);
}

/* The first call into a context makes it; two threads that come at once both wait for it. What
 * comes later, on whatever thread, is a call like others, until a reset. */
START_TEST(the_making_of_a_context_is_initialisation_and_no_wait)
{
  synth_open(synth_dir());
  in_context(0, 1000, 500000, "cudaHostAlloc", WEIR_EV_ALLOC, 1, HOST);
  in_context(1, 2000, 500000, "cudaDeviceSynchronize", WEIR_EV_SYNC, 1, 0);
  in_context(0, 600000, 70, "cudaHostAlloc", WEIR_EV_ALLOC, 1, HOST);
  in_context(1, 700000, 30, "cudaDeviceSynchronize", WEIR_EV_SYNC, 1, 0);
  in_context(2, 800000, 5, "cudaFreeHost", WEIR_EV_FREE, 1, HOST); /* its thread's first */
  in_context(0, 900000, 100, "cudaDeviceReset", WEIR_EV_RESET, 0, 0);
  in_context(0, 1000000, 300000, "cudaDeviceSynchronize", WEIR_EV_SYNC, 1, 0);
  in_context(0, 2000000, 40, "cudaDeviceSynchronize", WEIR_EV_SYNC, 1, 0);
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "init_calls"), 3);
  ck_assert_int_eq(synth_total(j, "init_ns"), 1300000);
  ck_assert_int_eq(synth_total(j, "sync_implicit_ns"), 75);
  ck_assert_int_eq(synth_total(j, "sync_implicit_calls"), 2);
  ck_assert_int_eq(synth_total(j, "sync_explicit_ns"), 70);
  ck_assert_int_eq(synth_total(j, "longest_wait_ns"), 40); /* 300 us were initialisation */
  ck_assert_int_eq(synth_total(j, "sync_explicit_calls"), 2);
  ck_assert_int_eq(of_api(j, "cudaHostAlloc", "ns"), 500070);
  ck_assert_int_eq(of_api(j, "cudaHostAlloc", "init_ns"), 500000);
  ck_assert_int_eq(of_api(j, "cudaHostAlloc", "implicit_ns"), 70);
  ck_assert_int_eq(of_api(j, "cudaDeviceSynchronize", "init_calls"), 2);
  ck_assert_int_eq(synth_total(j, "pinned_alloc_calls"), 2); /* the allocation counts */
  json_decref(j);
  char *text = synth_text(t, 100);
  ck_assert_ptr_nonnull(strstr(text, "initialisation, in cudaHostAlloc"));
  free(text);
}
END_TEST

/* Who asks for a context by name has the time; the first call into it is one like others. The end
 * of one context is not the other's. */
START_TEST(a_context_made_by_name_is_not_made_again_by_its_first_use)
{
  synth_open(synth_dir());
  in_context(0, 100, 400, "cuInit", WEIR_EV_CONTEXT, 0, HOST);
  in_context(0, 1000, 90000, "cuDevicePrimaryCtxRetain", WEIR_EV_CONTEXT, 0, 0);
  in_context(0, 100000, 9000, "cuCtxSynchronize", WEIR_EV_SYNC, 1, 0);
  in_context(0, 110000, 50, "cuDevicePrimaryCtxRetain", WEIR_EV_CONTEXT, 1, 0);
  in_context(0, 120000, 70000, "cuCtxCreate_v4", WEIR_EV_CONTEXT, 2, 0);
  synth_event(0, 200000, 10, (trace_event){.kind = WEIR_EV_RESET, .bytes = 1, .stack = 2u << 24});
  in_context(0, 210000, 600, "cuCtxSynchronize", WEIR_EV_SYNC, 1, 0);
  synth_close();
  json_t *j = synth_json(import_synth_spool());
  ck_assert_int_eq(synth_total(j, "init_calls"), 3);
  ck_assert_int_eq(synth_total(j, "init_ns"), 160400);
  ck_assert_int_eq(synth_total(j, "sync_explicit_ns"), 9600);
  ck_assert_int_eq(synth_total(j, "longest_wait_ns"), 9000);
  ck_assert_int_eq(of_api(j, "cuDevicePrimaryCtxRetain", "init_calls"), 1);
  json_decref(j);
}
END_TEST

/* The largest of all "NN %" in a text. */
static double largest_percentage(const char *text)
{
  double most = -1;
  for (const char *at = text; (at = strstr(at, " %")); at++) {
    const char *digits = at;
    while (digits > text && strchr("0123456789.", digits[-1]))
      digits--;
    double value = strtod(digits, NULL);
    if (digits < at && value > most) most = value;
  }
  return most;
}

START_TEST(waits_of_many_threads_are_a_part_of_their_time)
{
  synth_open(synth_dir());
  for (int n = 0; n < 15; n++)
    for (uint64_t i = 0; i < 10; i++)
      synth_sync(n, 1000000000 * (i + 1), 950000000, WEIR_SYNC_CONTEXT);
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "threads"), 15);
  ck_assert_int_ge(synth_total(j, "thread_time_ns"), INT64_C(15) * 9950000000);
  json_decref(j);
  char *text = synth_text(t, 100);
  ck_assert_ptr_nonnull(strstr(text, "of thread time"));
  ck_assert_double_le(largest_percentage(text), 100);
  ck_assert_double_ge(largest_percentage(text), 80);
  free(text);
}
END_TEST

START_TEST(all_times_are_the_hosts_by_name)
{
  synth_open(synth_dir());
  synth_sync(0, 1000, 950, WEIR_SYNC_CONTEXT);
  synth_copy(0, 3000, 100, WEIR_COPY_DTOH, 10, HOST, 0, WEIR_MEM_PAGEABLE, WEIR_MEM_DEVICE, 0);
  synth_alloc(0, 4000, 5, 0x9000, 10, 0, WEIR_MEM_DEVICE);
  synth_close();
  char *text = synth_text(import_synth_spool(), 100);
  size_t named = 0;
  for (const char *at = text; (at = strstr(at, "host time")); at++)
    named++;
  ck_assert_uint_eq(named, 6); /* transfers, waiting, functions, three lists of places */
  ck_assert_ptr_null(strstr(text, "blocked"));
  free(text);
}
END_TEST

/* What a graph holds ran, as often as the graph was launched: nobody may read that it did not. */
START_TEST(what_was_captured_is_said_to_run_with_its_graphs)
{
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 4; i++)
    synth_copy(0, 1000 + i * 100, 10, WEIR_COPY_HTOD, 1 << 20, 0, HOST, WEIR_MEM_DEVICE,
               WEIR_MEM_PINNED, WEIR_EVF_ASYNC | WEIR_EVF_CAPTURE);
  synth_event(0, 1500, 10,
              (trace_event){.kind = WEIR_EV_LAUNCH,
                            .api = synth_api("cudaLaunchKernel"),
                            .flags = WEIR_EVF_CAPTURE});
  for (uint64_t i = 0; i < 7; i++)
    synth_event(0, 2000 + i * 100, 10,
                (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch")});
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "captured_events"), 5);
  ck_assert_int_eq(synth_total(j, "captured_copies"), 4);
  ck_assert_int_eq(synth_total(j, "captured_copy_bytes"), 4 << 20);
  ck_assert_int_eq(synth_total(j, "captured_launches"), 1);
  ck_assert_int_eq(synth_total(j, "captured_memsets"), 0);
  ck_assert_int_eq(synth_total(j, "graph_launches"), 7);
  ck_assert_int_eq(synth_total(j, "h2d_calls"), 0);
  json_decref(j);
  char *text = synth_text(t, 100);
  ck_assert_ptr_null(strstr(text, "not run"));
  ck_assert_ptr_nonnull(strstr(text, "captured into graphs: 5 operations, of them 4 copies"));
  ck_assert_ptr_nonnull(strstr(text, "1 kernel;"));
  ck_assert_ptr_nonnull(strstr(text, "7 graph launches: what ran in them, copies included"));
  free(text);
}
END_TEST

static size_t columns_of(const char *line, size_t bytes)
{
  size_t n = 0;
  for (size_t i = 0; i < bytes; i++)
    n += ((unsigned char)line[i] & 0xc0) != 0x80;
  return n;
}

START_TEST(what_was_let_through_is_said_with_its_reason)
{
  synth_open(synth_dir());
  spool_header *h = spool_current();
  atomic_store(&h->coverage[synth_api("cuMemAlloc_v2")], WEIR_COVER_LOOKED_UP | WEIR_COVER_CALLED);
  atomic_store(&h->coverage[synth_api("cuDeviceGetLuid")], WEIR_COVER_PASSED);
  atomic_store(&h->coverage[synth_api("cuGetErrorName")], WEIR_COVER_PASSED);
  atomic_store(&h->coverage[synth_api("cuFuncSetCacheConfig")], WEIR_COVER_PASSED);
  atomic_store(&h->coverage[synth_api("cudaGraphLaunch")], WEIR_COVER_PASSED);
  atomic_store(&h->coverage[synth_api("cuGetExportTable")], WEIR_COVER_PASSED);
  atomic_store(&h->unknown_lookups, 2);
  strcpy(h->unknown_name, "cuMemAlloc");
  synth_alloc(0, 1000, 5, 0x9000, 10, 0, WEIR_MEM_DEVICE);
  synth_close();
  const char *t = import_synth_spool();
  char *text = synth_text(t, 140);
  ck_assert_ptr_nonnull(strstr(text, "1 is wrapped and 1 passes through unseen"));
  ck_assert_ptr_nonnull(strstr(text, "3 more are not recorded: 2 ask and 1 set"));
  ck_assert_ptr_nonnull(strstr(text, "1 function of the runtime's, seen as the driver's"));
  ck_assert_ptr_nonnull(strstr(text, "passed through: cuGetExportTable\n"));
  ck_assert_ptr_nonnull(strstr(text, "2 look-ups of functions, or of versions of them"));
  free(text);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM coverage c JOIN api a ON a.id=c.api"
                                   " WHERE passed AND unrecorded='asks'"),
                   2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM api WHERE hooked AND unrecorded NOTNULL"
                                   " OR NOT hooked AND unrecorded ISNULL AND layer<>'weir'"),
                   0);
  json_t *report = synth_json(t);
  json_t *why = json_object_get(json_object_get(report, "coverage"), "unrecorded");
  ck_assert_uint_eq(json_array_size(json_object_get(why, "asks")), 2);
  ck_assert_uint_eq(json_array_size(json_object_get(why, "sets")), 1);
  ck_assert_uint_eq(json_array_size(json_object_get(why, "below")), 1);
  json_decref(report);
}
END_TEST

START_TEST(text_keeps_to_its_width_and_says_what_was_lost)
{
  oracle o = {0};
  synth_seed(99);
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 3000; i++)
    random_event(&o, i * 1000);
  spool_drop(1234, 28);
  synth_alloc(0, 4000000, 5, 0x9000, 10, 0, WEIR_MEM_DEVICE);
  synth_close();
  const char *t = import_synth_spool();
  static const int widths[] = {60, 80, 100, 140};
  for (size_t i = 0; i < 4; i++) {
    char *text = synth_text(t, widths[i]), *line = text;
    size_t lines = 0;
    for (; *line; line += strcspn(line, "\n") + 1, lines++)
      ck_assert_uint_le(columns_of(line, strcspn(line, "\n")), (size_t)widths[i]);
    ck_assert_uint_le(lines, 92);
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_nonnull(strstr(text, "1,234 events were dropped"));
    ck_assert_ptr_nonnull(strstr(text, "Live at exit"));
    free(text);
  }
}
END_TEST

START_TEST(control_characters_of_a_program_do_not_reach_the_terminal)
{
  synth_open(synth_dir());
  synth_extended(0, WEIR_EV_NOTE, 0, 0, "\033[31mred\007", 9);
  synth_extended(0, WEIR_EV_NAME, 0, WEIR_NAME_DEVICE, "\033]0;GPU", 7);
  synth_alloc(0, 100, 5, 0x9000, 10, 0, WEIR_MEM_DEVICE);
  synth_close();
  char *text = synth_text(import_synth_spool(), 100);
  ck_assert_ptr_null(strchr(text, '\033'));
  ck_assert_ptr_null(strchr(text, '\007'));
  free(text);
}
END_TEST

static void check_named(const json_t *named, size_t i, const char *name, const char *memory,
                        int64_t blocks, int64_t bytes, int64_t peak, int64_t live)
{
  const json_t *o = json_array_get(named, i);
  ck_assert_str_eq(json_string_value(json_object_get(o, "name")), name);
  ck_assert_str_eq(json_string_value(json_object_get(o, "memory")), memory);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "blocks")), blocks);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "bytes")), bytes);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "peak_bytes")), peak);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "live_at_exit_bytes")), live);
}

START_TEST(memory_and_devices_that_the_program_named_are_reported_by_name)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 5, 0x9000, 1000, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 200, 5, 0xa000, 3000, 0, WEIR_MEM_DEVICE);
  synth_free(0, 300, 5, 0x9000);
  synth_alloc(0, 400, 5, 0x9000, 500, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 500, 5, 0xb000, 64, (int)WEIR_DEVICE_NONE, WEIR_MEM_PINNED);
  synth_alloc(0, 600, 5, 0xc000, 7, 0, WEIR_MEM_DEVICE); /* has no name */
  synth_close();
  const char *trace = import_synth_spool();
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(trace, &db), SQLITE_OK);
  static const char names[] =
      "INSERT INTO name(process, kind, handle, name, time) VALUES"
      " (1, 'region', 0x9000, 'weights', 150), (1, 'region', 0xa000, 'x', 250),"
      " (1, 'region', 0xa000, 'weights', 260), (1, 'heap', 0x9000, 'weights', 450),"
      " (1, 'region', 0xb000, 'weights', 550), (1, 'region', 0xc000, 'late', 550),"
      " (1, 'device_label', 0, 'old', 10), (1, 'device_label', 0, 'left', 20)";
  ck_assert_int_eq(sqlite3_exec(db, names, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  json_t *report = synth_json(trace);
  const json_t *named = json_object_get(report, "named_memory");
  ck_assert_uint_eq(json_array_size(named), 2);
  check_named(named, 0, "weights", "device", 3, 4500, 4000, 3500);
  check_named(named, 1, "weights", "pinned", 1, 64, 64, 64);
  const json_t *device = json_array_get(json_object_get(report, "devices"), 0);
  ck_assert_str_eq(json_string_value(json_object_get(device, "label")), "left");
  json_decref(report);
  char *text = synth_text(trace, 120);
  ck_assert_ptr_nonnull(strstr(text, "Named memory"));
  ck_assert_ptr_nonnull(strstr(text, "device, GPU 0"));
  ck_assert_ptr_nonnull(strstr(text, "GPU 0 (left)"));
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/report");
  TCase *t = tcase_create("report");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, totals_parts_and_nsight_queries_agree_with_the_oracle, 0, 12);
  tcase_add_test(t, memory_events_in_nsights_view_are_the_reports);
  tcase_add_test(t, memory_and_devices_that_the_program_named_are_reported_by_name);
  tcase_add_test(t, no_cuda_calls_is_said_plainly);
  tcase_add_test(t, a_process_without_calls_among_others_is_named);
  tcase_add_test(t, an_empty_trace_has_a_report);
  tcase_add_test(t, a_spool_serves_where_a_trace_is_wanted);
  tcase_add_test(t, a_trace_in_the_making_has_a_report_with_lifetimes);
  tcase_add_test(t, a_call_that_does_not_wait_for_its_copy_tells_no_speed);
  tcase_add_test(t, the_making_of_a_context_is_initialisation_and_no_wait);
  tcase_add_test(t, a_context_made_by_name_is_not_made_again_by_its_first_use);
  tcase_add_test(t, waits_of_many_threads_are_a_part_of_their_time);
  tcase_add_test(t, all_times_are_the_hosts_by_name);
  tcase_add_test(t, what_was_captured_is_said_to_run_with_its_graphs);
  tcase_add_test(t, what_was_let_through_is_said_with_its_reason);
  tcase_add_test(t, text_keeps_to_its_width_and_says_what_was_lost);
  tcase_add_test(t, control_characters_of_a_program_do_not_reach_the_terminal);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
