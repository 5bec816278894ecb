/* test_tables.c: the reports in tables. Their numbers are the summary's, in each of four
 * formats, and however they are grouped; filters apply to all of a table, or it says that it is
 * of the whole run. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/write/grid.h"
#include "reports/tables/table.h"
#include "reports/tables/tables.h"
#include "reports/write/report.h"
#include "reports/write/write.h"
#include "tests/reports/synth.h"

#define HOST (int)WEIR_DEVICE_NONE

__asm__(".pushsection .rodata\n"
        "tables_schema: .incbin \"reports/SCHEMA.md\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char tables_schema[];

static const char *const reports[] = {"transfers", "waits",    "memory",  "leaks", "devices",
                                      "idle",      "coverage", "summary", "cache", "findings"};
enum { REPORTS = sizeof reports / sizeof *reports };

/* ---- a trace of all kinds of things ---------------------------------------------------------- */

enum { WRITER = 5 }; /* the thread that writes what devices did */
static uint32_t last_number;

/* The call that thread n makes next, at that time, was such an operation of a device. */
static void any_device_time(int n, uint64_t at, int kind, int copy, uint64_t bytes)
{
  uint64_t zero = spool_current()->clock_first.mono_ns, ticks = spool_current()->clock_first.ticks;
  uint64_t start = zero + at + synth_below(2000);
  device_operation o = {.kind = (uint8_t)kind,
                        .device = (uint8_t)synth_below(2),
                        .copy = (uint8_t)copy,
                        .bytes = bytes,
                        .correlation = ++last_number,
                        .start = start,
                        .end = start + 1 + synth_below(900)};
  ck_assert(synth_extended(n, WEIR_EV_CORRELATION, last_number, ticks + at, "", 0));
  ck_assert(synth_extended(WRITER, WEIR_EV_DEVICE_WORK, 0, 0, &o, sizeof(o)));
}

static bool device_times; /* of the trace that is made */

static void any_copy(int n, uint64_t at, uint32_t stack)
{
  static const int kinds[] = {WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD, WEIR_COPY_PTOP,
                              WEIR_COPY_HTOH};
  int copy = kinds[synth_below(5)], device = (int)synth_below(2);
  bool to = copy != WEIR_COPY_DTOH && copy != WEIR_COPY_HTOH;
  bool from = copy != WEIR_COPY_HTOD && copy != WEIR_COPY_HTOH;
  int host = synth_below(2) ? WEIR_MEM_PAGEABLE : WEIR_MEM_PINNED;
  trace_event e = {
      .kind = WEIR_EV_COPY,
      .api = synth_api(synth_below(2) ? "cudaMemcpyAsync" : "cudaMemcpy"),
      .flags = (uint8_t)(WEIR_EVF_RUNTIME | synth_below(4)),
      .status = synth_below(20) == 0,
      .bytes = synth_below(8) ? synth_below(1 << 14) : synth_below(1 << 23),
      .copy_kind = (uint8_t)copy,
      .device = (uint8_t)(to ? device : HOST),
      .src_device = (uint8_t)(from ? copy == WEIR_COPY_PTOP ? 1 - device : device : HOST),
      .mem = (uint8_t)((to ? WEIR_MEM_DEVICE : host) | (from ? WEIR_MEM_DEVICE : host) << 4),
      .stream = synth_below(4),
      .stack = stack};
  if (synth_below(20) == 0) e.flags |= WEIR_EVF_CAPTURE;
  if (device_times && !e.status && !(e.flags & WEIR_EVF_CAPTURE))
    any_device_time(n, at, WEIR_DEVICE_COPY, copy, e.bytes);
  synth_event(n, at, 10 + synth_below(900), e);
}

static void any_wait(int n, uint64_t at, uint32_t stack)
{
  static const char *const names[] = {"cudaEventSynchronize", "cudaStreamSynchronize",
                                      "cudaDeviceSynchronize"};
  static const uint8_t types[] = {WEIR_SYNC_EVENT, WEIR_SYNC_STREAM, WEIR_SYNC_CONTEXT};
  size_t i = synth_below(3);
  synth_event(n, at, 10 + synth_below(900),
              (trace_event){.kind = WEIR_EV_SYNC,
                            .api = synth_api(names[i]),
                            .flags = WEIR_EVF_RUNTIME,
                            .sync_type = types[i],
                            .device = (uint8_t)synth_below(2),
                            .src_device = WEIR_DEVICE_NONE,
                            .stream = 1 + synth_below(3),
                            .stack = stack});
}

static void any_memory(int n, uint64_t at, uint32_t stack)
{
  static const int mems[] = {WEIR_MEM_DEVICE, WEIR_MEM_DEVICE, WEIR_MEM_MANAGED, WEIR_MEM_PINNED};
  int mem = mems[synth_below(4)];
  if (synth_below(3) == 0) {
    synth_free(n, at, 20, 0x10000 + synth_below(50) * 0x1000);
    return;
  }
  synth_event(
      n, at, 20,
      (trace_event){.kind = WEIR_EV_ALLOC,
                    .api = synth_api(mem == WEIR_MEM_PINNED ? "cudaMallocHost" : "cudaMalloc"),
                    .flags = WEIR_EVF_RUNTIME,
                    .a = 0x10000 + synth_below(50) * 0x1000,
                    .bytes = 1 + synth_below(1 << 20),
                    .device = (uint8_t)(mem == WEIR_MEM_PINNED ? HOST : (int)synth_below(2)),
                    .src_device = WEIR_DEVICE_NONE,
                    .mem = (uint8_t)mem,
                    .stack = stack});
}

/* `events` of them, a microsecond apart, on four threads; the first makes a context, and
 * addresses are handed out again without a free. */
static const char *any_trace(uint64_t seed, uint64_t events)
{
  synth_seed(UINT64_C(0x2545f4914f6cdd1d) * (seed + 1));
  device_times = seed & 1;
  last_number = 0;
  synth_open(synth_dir());
  trace_event observed = {.a = WEIR_DEVICE_FACT_OBSERVED,
                          .start = spool_current()->clock_first.ticks};
  if (device_times)
    ck_assert(spool_writer_extended(synth_thread(WRITER), WEIR_EV_DEVICE_FACT, &observed,
                                    "copies and kernels", 18));
  for (int n = 0; n < 4; n++)
    for (uint32_t s = 1; s < 30; s++) {
      uint64_t frames[] = {0xa0 + s % 12, 0xb0 + s, 0xc0};
      synth_stack(n, s, frames, 3);
    }
  for (uint64_t i = 0; i < events; i++) {
    int n = (int)synth_below(4);
    uint64_t what = synth_below(8), at = 1000 + i * 1000;
    uint32_t stack = (uint32_t)synth_below(30) | 1U << 24; /* of context 1 */
    if (what < 3)
      any_copy(n, at, stack);
    else if (what < 5)
      any_wait(n, at, stack);
    else if (what < 7)
      any_memory(n, at, stack);
    else if (device_times)
      any_device_time(n, at, WEIR_DEVICE_KERNEL, 0, 0);
    if (what == 7)
      synth_event(n, at, 30,
                  (trace_event){.kind = WEIR_EV_LAUNCH,
                                .api = synth_api("cudaLaunchKernel"),
                                .flags = WEIR_EVF_RUNTIME,
                                .device = (uint8_t)synth_below(2),
                                .src_device = WEIR_DEVICE_NONE,
                                .stream = synth_below(3),
                                .stack = stack});
  }
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  return synth_import("t.db", one);
}

/* ---- reports of it --------------------------------------------------------------------------- */

static char *print_tables(const char *what, const char *trace, report_settings o)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  weir_status s = report_tables(f, what, trace, &o);
  ck_assert_msg(s == WEIR_OK, "%s: %s", what, weir_error_message());
  (void)fclose(f);
  return text;
}

static json_t *tables_of(const char *what, const char *trace, report_settings o)
{
  json_error_t error;
  o.format = WEIR_REPORT_JSON_1;
  char *text = print_tables(what, trace, o);
  json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  ck_assert_msg(j != NULL, "%s in: %s", error.text, text);
  free(text);
  ck_assert_str_eq(json_string_value(json_object_get(j, "schema")), "weir-tables/1");
  ck_assert_str_eq(json_string_value(json_object_get(j, "report")), what);
  return j;
}

static const char *text_of(const json_t *object, const char *name)
{
  return json_string_value(json_object_get(object, name));
}

static const json_t *find_table(const json_t *report, const char *name)
{
  size_t i;
  json_t *t;
  json_array_foreach(json_object_get(report, "tables"), i, t)
  {
    if (!strcmp(text_of(t, "name"), name)) return t;
  }
  ck_abort_msg("no table %s", name);
}

/* A column's sum; of rows whose column `where` is `is`, where that is not NULL. */
static int64_t sum_rows(const json_t *report, const char *table, const char *column,
                        const char *where, const char *is)
{
  size_t i;
  json_t *row;
  int64_t sum = 0;
  json_array_foreach(json_object_get(find_table(report, table), "rows"), i, row)
  {
    if (where && strcmp(text_of(row, where), is) != 0) continue;
    ck_assert_ptr_nonnull(json_object_get(row, column));
    sum += json_integer_value(json_object_get(row, column));
  }
  return sum;
}

/* ---- the same numbers as the summary --------------------------------------------------------- */

static void expect_copies(const json_t *r, const json_t *summary, const char *by_table)
{
  static const char *const directions[] = {"h2d", "d2h", "d2d", "p2p", "h2h"};
  int64_t calls = 0, bytes = 0;
  for (int i = 0; i < 5; i++) {
    char name[32];
    (void)snprintf(name, sizeof(name), "%s_calls", directions[i]);
    calls += synth_total(summary, name);
    ck_assert_int_eq(sum_rows(r, "transfers", "calls", "direction", directions[i]),
                     synth_total(summary, name));
    ck_assert_int_eq(sum_rows(r, "sizes", "calls", "direction", directions[i]),
                     synth_total(summary, name));
    ck_assert_int_eq(sum_rows(r, "matrix", "calls", "direction", directions[i]),
                     synth_total(summary, name));
    (void)snprintf(name, sizeof(name), "%s_bytes", directions[i]);
    bytes += synth_total(summary, name);
    ck_assert_int_eq(sum_rows(r, "transfers", "bytes", "direction", directions[i]),
                     synth_total(summary, name));
    ck_assert_int_eq(sum_rows(r, "sizes", "bytes", "direction", directions[i]),
                     synth_total(summary, name));
  }
  ck_assert_int_eq(sum_rows(r, by_table, "calls", NULL, NULL), calls);
  ck_assert_int_eq(sum_rows(r, by_table, "bytes", NULL, NULL), bytes);
}

static void expect_waits(const json_t *r, const json_t *summary, const char *by_table)
{
  static const struct {
    const char *what, *column, *calls, *ns;
  } rows[] = {{"asked for", "explicit", "sync_explicit_calls", "sync_explicit_ns"},
              {"in calls that may wait", "implicit", "sync_implicit_calls", "sync_implicit_ns"}};
  const json_t *waits = json_object_get(summary, "waits");
  for (int i = 0; i < 2; i++) {
    char column[64];
    ck_assert_int_gt(synth_total(summary, rows[i].calls), 0);
    ck_assert_int_eq(sum_rows(r, "waits", "calls", "what", rows[i].what),
                     synth_total(summary, rows[i].calls));
    ck_assert_int_eq(sum_rows(r, "waits", "host_ns", "what", rows[i].what),
                     synth_total(summary, rows[i].ns));
    (void)snprintf(column, sizeof(column), "%s_calls", rows[i].column);
    ck_assert_int_eq(sum_rows(r, by_table, column, NULL, NULL),
                     synth_total(summary, rows[i].calls));
    (void)snprintf(column, sizeof(column), "%s_host_ns", rows[i].column);
    ck_assert_int_eq(sum_rows(r, by_table, column, NULL, NULL), synth_total(summary, rows[i].ns));
  }
  ck_assert_int_eq(sum_rows(r, by_table, "redundant_host_ns", NULL, NULL),
                   json_integer_value(json_object_get(waits, "redundant_ns")));
  ck_assert_int_eq(sum_rows(r, by_table, "wider_calls", NULL, NULL),
                   json_integer_value(json_object_get(waits, "wider_calls")));
}

static void expect_memory(const json_t *r, const json_t *summary, const char *by_table)
{
  size_t i;
  json_t *d;
  ck_assert_int_eq(sum_rows(r, "peaks", "peak_bytes", "device", "all devices"),
                   synth_total(summary, "peak_bytes"));
  ck_assert_int_eq(sum_rows(r, "peaks", "peak_at_ns", "device", "all devices"),
                   synth_total(summary, "peak_at_ns"));
  ck_assert_int_eq(sum_rows(r, "peaks", "bytes", "device", "all devices"),
                   synth_total(summary, "alloc_bytes"));
  ck_assert_int_eq(sum_rows(r, "peaks", "end_bytes", "device", "all devices"),
                   synth_total(summary, "live_at_exit_bytes"));
  ck_assert_int_eq(sum_rows(r, "memory", "peak_bytes", "memory", "pinned"),
                   synth_total(summary, "pinned_peak_bytes"));
  ck_assert_int_eq(sum_rows(r, by_table, "at_peak_bytes", NULL, NULL),
                   synth_total(summary, "peak_bytes"));
  ck_assert_int_eq(sum_rows(r, by_table, "bytes", NULL, NULL), synth_total(summary, "alloc_bytes"));
  ck_assert_int_eq(sum_rows(r, by_table, "blocks", NULL, NULL),
                   synth_total(summary, "alloc_calls"));
  ck_assert_int_eq(sum_rows(r, by_table, "end_bytes", NULL, NULL),
                   synth_total(summary, "live_at_exit_bytes"));
  ck_assert_int_eq(sum_rows(r, "lifetimes", "blocks", NULL, NULL),
                   synth_total(summary, "alloc_calls"));
  ck_assert_int_eq(sum_rows(r, "live", "allocated_bytes", NULL, NULL),
                   synth_total(summary, "alloc_bytes"));
  json_array_foreach(json_object_get(summary, "devices"), i, d)
  {
    char name[32];
    (void)snprintf(name, sizeof(name), "device %d", (int)i);
    ck_assert_int_eq(sum_rows(r, "peaks", "peak_bytes", "device", name),
                     json_integer_value(json_object_get(d, "peak_bytes")));
  }
}

static void expect_leaks(const json_t *r, const json_t *summary, const char *by_table)
{
  ck_assert_int_gt(synth_total(summary, "live_at_exit_bytes"), 0);
  ck_assert_int_eq(sum_rows(r, by_table, "end_bytes", NULL, NULL),
                   synth_total(summary, "live_at_exit_bytes"));
  ck_assert_int_eq(sum_rows(r, by_table, "end_blocks", NULL, NULL),
                   synth_total(summary, "live_at_exit_blocks"));
  ck_assert_int_eq(sum_rows(r, "leaks", "end_bytes", "memory", "pinned"),
                   synth_total(summary, "pinned_live_at_exit_bytes"));
}

/* Two sums of one table of work against totals. */
static void expect_work(const json_t *r, const json_t *summary, const char *by_table)
{
  static const struct {
    const char *column, *total;
  } columns[] = {{"launches", "launches"},
                 {"allocations", "alloc_calls"},
                 {"alloc_bytes", "alloc_bytes"},
                 {"explicit_host_ns", "sync_explicit_ns"},
                 {"implicit_host_ns", "sync_implicit_ns"}};
  size_t i;
  json_t *row;
  for (i = 0; i < sizeof columns / sizeof *columns; i++)
    ck_assert_int_eq(sum_rows(r, by_table, columns[i].column, NULL, NULL),
                     synth_total(summary, columns[i].total));
  json_array_foreach(json_object_get(find_table(r, "totals"), "rows"), i, row)
  {
    const char *name = text_of(row, "total");
    ck_assert_int_eq(json_integer_value(json_object_get(row, "value")), synth_total(summary, name));
  }
  ck_assert_uint_eq(i, json_object_size(json_object_get(summary, "totals")));
}

START_TEST(however_rows_are_grouped_they_add_up_to_the_summary)
{
  static const char *const names[] = {"",       "site",   "stack",   "module", "range",   "stream",
                                      "device", "thread", "process", "rank",   "function"};
  report_by by = (report_by)_i;
  const char *t = any_trace((uint64_t)_i, 3000), *suffix = _i ? names[_i] : "site";
  json_t *summary = synth_json(t);
  for (int top = 0; top < 4; top += 3) { /* all rows; three, and one of all others */
    report_settings o = {.by = by, .top = top};
    json_t *copies = tables_of("transfers", t, o), *waits = tables_of("waits", t, o),
           *memory = tables_of("memory", t, o), *leaks = tables_of("leaks", t, o),
           *work = tables_of("summary", t, o);
    char name[32];
    (void)snprintf(name, sizeof(name), "transfers_by_%s", suffix);
    expect_copies(copies, summary, name);
    (void)snprintf(name, sizeof(name), "waits_by_%s", suffix);
    expect_waits(waits, summary, name);
    (void)snprintf(name, sizeof(name), "memory_by_%s", suffix);
    expect_memory(memory, summary, name);
    if (top)
      ck_assert_uint_le(json_array_size(json_object_get(find_table(memory, name), "rows")), 4);
    (void)snprintf(name, sizeof(name), "leaks_by_%s", suffix);
    expect_leaks(leaks, summary, name);
    (void)snprintf(name, sizeof(name), "work_by_%s", suffix);
    expect_work(work, summary, name);
    json_decref(copies);
    json_decref(waits);
    json_decref(memory);
    json_decref(leaks);
    json_decref(work);
  }
  json_decref(summary);
}
END_TEST

/* Sum of a member over the works of JSON's device_times, or over another list of each of its
 * devices. */
static int64_t sum_times(const json_t *summary, const char *list, const char *member)
{
  size_t i;
  json_t *d, *x;
  int64_t sum = 0;
  json_array_foreach(json_object_get(summary, "device_times"), i, d)
  {
    size_t k;
    if (!list) sum += json_integer_value(json_object_get(d, member));
    json_array_foreach(list ? json_object_get(d, list) : NULL, k, x) sum +=
        json_integer_value(json_object_get(x, member));
  }
  return sum;
}

START_TEST(times_of_devices_are_the_summarys)
{
  const char *t = any_trace(7, 2500);
  report_settings o = {0};
  json_t *summary = synth_json(t), *idle = tables_of("idle", t, o),
         *copies = tables_of("transfers", t, o), *waits = tables_of("waits", t, o);
  const json_t *divided = json_object_get(json_object_get(summary, "waits"), "divided");
  ck_assert_int_gt(sum_times(summary, "idle", "ns"), 0);
  ck_assert_int_eq(sum_rows(idle, "idle", "idle_device_ns", NULL, NULL),
                   sum_times(summary, "idle", "ns"));
  ck_assert_int_eq(sum_rows(idle, "busy", "busy_device_ns", NULL, NULL),
                   sum_times(summary, NULL, "busy_ns"));
  ck_assert_int_eq(sum_rows(copies, "overlap", "overlap_device_ns", NULL, NULL),
                   sum_times(summary, NULL, "overlap_ns"));
  ck_assert_int_eq(sum_rows(copies, "transfers", "device_ns", NULL, NULL),
                   synth_number(t, "SELECT sum(\"end\" - start) FROM device_work WHERE kind = 1"));
  ck_assert_int_eq(sum_rows(copies, "transfers_by_site", "device_ns", NULL, NULL),
                   sum_rows(copies, "transfers", "device_ns", NULL, NULL));
  ck_assert_int_gt(json_integer_value(json_object_get(divided, "working_ns")), 0);
  ck_assert_int_eq(sum_rows(waits, "waits_by_site", "working_host_ns", NULL, NULL),
                   json_integer_value(json_object_get(divided, "working_ns")));
  ck_assert_int_eq(sum_rows(waits, "waits_by_site", "idle_host_ns", NULL, NULL),
                   json_integer_value(json_object_get(divided, "idle_ns")));
  json_decref(summary);
  json_decref(idle);
  json_decref(copies);
  json_decref(waits);
}
END_TEST

START_TEST(devices_and_coverage_are_the_summarys)
{
  const char *t = any_trace(8, 1500);
  report_settings o = {0};
  json_t *summary = synth_json(t), *devices = tables_of("devices", t, o),
         *coverage = tables_of("coverage", t, o);
  size_t i, k, c;
  json_t *d, *table, *column, *row;
  size_t compared = 0;
  json_array_foreach(json_object_get(devices, "tables"), i, table)
  {
    json_array_foreach(json_object_get(table, "rows"), k, row)
    {
      d = json_array_get(json_object_get(summary, "devices"), k);
      json_array_foreach(json_object_get(table, "columns"), c, column)
      {
        const char *name = text_of(column, "name");
        if (!strcmp(text_of(column, "type"), "text")) continue;
        ck_assert_int_eq(json_integer_value(json_object_get(row, name)),
                         json_integer_value(json_object_get(d, strcmp(name, "sync_explicit_host_ns")
                                                                   ? name
                                                                   : "sync_explicit_ns")));
        compared++;
      }
    }
  }
  ck_assert_uint_eq(compared, 2 * 32);
  ck_assert_int_eq(sum_rows(coverage, "coverage", "count", "what", "events"),
                   synth_total(summary, "events"));
  ck_assert_int_eq(sum_rows(coverage, "coverage", "count", "what", "events without a stack"),
                   json_integer_value(json_object_get(json_object_get(summary, "coverage"),
                                                      "events_without_stack")));
  json_decref(summary);
  json_decref(devices);
  json_decref(coverage);
}
END_TEST

/* ---- the same numbers in all formats --------------------------------------------------------- */

/* One field of CSV, whose end *at is moved behind; the quotes are taken off. */
static char *csv_field(const char **at)
{
  char *out = calloc(strlen(*at) + 1, 1);
  size_t n = 0;
  const char *s = *at;
  if (*s == '"') {
    for (s++; *s; s++) {
      if (*s == '"' && s[1] != '"') break;
      if (*s == '"') s++;
      out[n++] = *s;
    }
    s++;
  } else {
    while (*s && *s != ',' && *s != '\n')
      out[n++] = *s++;
  }
  *at = *s == ',' ? s + 1 : s;
  return out;
}

/* What a spreadsheet would take for a formula has an apostrophe in front. */
static void expect_csv_text(const char *field, const char *text)
{
  bool formula = *text && strchr("=+-@", *text);
  ck_assert(!formula || *field == '\'');
  ck_assert_str_eq(field + formula, text);
}

static void expect_csv_value(const json_t *value, const char *type, const char **csv)
{
  char *field = csv_field(csv);
  if (!strcmp(type, "place")) {
    char *file = csv_field(csv), *line = csv_field(csv);
    if (json_is_null(value)) {
      ck_assert_str_eq(field, "");
    } else {
      const char *function = text_of(value, "function"), *path = text_of(value, "file");
      expect_csv_text(field, function);
      ck_assert_str_eq(file, path ? path : "");
      ck_assert_int_eq(path ? atoi(line) : 0, json_integer_value(json_object_get(value, "line")));
    }
    free(file);
    free(line);
  } else if (json_is_null(value)) {
    ck_assert_str_eq(field, "");
  } else if (json_is_string(value)) {
    expect_csv_text(field, json_string_value(value));
  } else if (json_is_integer(value)) {
    ck_assert_int_eq(strtoll(field, NULL, 10), json_integer_value(value));
  } else {
    ck_assert(fabs(strtod(field, NULL) - json_real_value(value)) <=
              1e-12 * fabs(json_real_value(value)));
  }
  free(field);
}

/* All of a report's tables are in the CSV, in their order, and nothing else is. */
static void expect_csv(const json_t *report, const char *csv)
{
  size_t i, c, r;
  json_t *table, *column, *row;
  json_array_foreach(json_object_get(report, "tables"), i, table)
  {
    char head[80];
    (void)snprintf(head, sizeof(head), "# %s\n", text_of(table, "name"));
    ck_assert(!strncmp(csv, head, strlen(head)));
    csv = strchr(strchr(csv, '\n') + 1, '\n') + 1; /* the names of the columns */
    json_array_foreach(json_object_get(table, "rows"), r, row)
    {
      json_array_foreach(json_object_get(table, "columns"), c, column) expect_csv_value(
          json_object_get(row, text_of(column, "name")), text_of(column, "type"), &csv);
      ck_assert_int_eq(*csv, '\n');
      csv++;
    }
    ck_assert_int_eq(*csv, '\n');
    csv++;
  }
  ck_assert_str_eq(csv, "");
}

/* What people read for a value of JSON. */
static char *words_of(const json_t *value, const char *type)
{
  static const char *const types[] = {"text",
                                      "place",
                                      "count",
                                      "id",
                                      "bytes",
                                      "bytes_change",
                                      "bytes_balance",
                                      "host_ns",
                                      "device_ns",
                                      "moment_ns",
                                      "bytes_per_second",
                                      "share",
                                      "number"};
  wr_value v = {.known = !json_is_null(value)};
  int t = 0;
  while (strcmp(types[t], type) != 0)
    t++;
  if (json_is_integer(value)) v.n = (uint64_t)json_integer_value(value);
  if (json_is_real(value)) v.real = json_real_value(value);
  const char *text = json_is_object(value) ? text_of(value, "function") : json_string_value(value);
  const char *file = json_is_object(value) ? text_of(value, "file") : NULL;
  v.text = text ? strdup(text) : NULL;
  v.file = file ? strdup(file) : NULL;
  if (file) v.line = (int)json_integer_value(json_object_get(value, "line"));
  char *words = wr_value_words(&v, &(wr_column){.type = (wr_column_type)t}, false, NULL);
  free(v.text);
  free(v.file);
  return words;
}

/* Takes `words`, as Markdown or as they are, from what begins at *at. */
static void expect_next(const char **at, const char *words, bool markdown)
{
  *at += strspn(*at, markdown ? " |" : " ");
  for (; *words; words++) {
    if (markdown && **at == '&') { /* "&#60;" */
      ck_assert_int_eq(strtol(*at + 2, (char **)(void *)at, 10), *words);
      ++*at;
      continue;
    }
    ck_assert_msg(**at == *words, "'%.40s' is not '%.40s'", *at, words);
    ++*at;
  }
}

/* Each table's rows as people read them, behind its title. */
static void expect_words(const json_t *report, const char *text, bool markdown)
{
  size_t i, c, r;
  json_t *table, *column, *row;
  json_array_foreach(json_object_get(report, "tables"), i, table)
  {
    char title[100];
    (void)snprintf(title, sizeof(title), "%s%s", markdown ? "\n## " : "\n",
                   text_of(table, "title"));
    const char *at = strstr(text, title);
    ck_assert_msg(at != NULL, "no '%s' in %s", title, text);
    size_t rows = json_array_size(json_object_get(table, "rows"));
    at = strchr(at + 1, '\n') + 1;
    if (rows && markdown) at = strchr(strchr(at + 1, '\n') + 1, '\n') + 1;
    if (rows && !markdown) at = strchr(at, '\n') + 1;
    json_array_foreach(json_object_get(table, "rows"), r, row)
    {
      json_array_foreach(json_object_get(table, "columns"), c, column)
      {
        const json_t *value = json_object_get(row, text_of(column, "name"));
        if (!markdown && json_is_null(value)) { /* "-", or a column that has nothing */
          at += strspn(at, " ");
          at += *at == '-' && (at[1] == ' ' || at[1] == '\n');
          continue;
        }
        char *words = words_of(value, text_of(column, "type"));
        expect_next(&at, words, markdown);
        free(words);
      }
      at += strspn(at, markdown ? " |" : " ");
      ck_assert_msg(*at == '\n', "more in the row: %.60s", at);
      at++;
    }
  }
}

START_TEST(all_formats_have_the_same_numbers)
{
  const char *t = any_trace((uint64_t)_i, 1500);
  for (int i = 0; i < REPORTS; i++) {
    report_settings o = {.top = 5, .by = _i ? (report_by)(_i * 2) : WEIR_BY_NONE};
    json_t *j = tables_of(reports[i], t, o);
    o.format = WEIR_REPORT_CSV;
    char *csv = print_tables(reports[i], t, o);
    expect_csv(j, csv);
    o.format = WEIR_REPORT_MARKDOWN;
    char *markdown = print_tables(reports[i], t, o);
    expect_words(j, markdown, true);
    o.format = WEIR_REPORT_TEXT;
    char *text = print_tables(reports[i], t, o);
    expect_words(j, text, false);
    free(csv);
    free(markdown);
    free(text);
    json_decref(j);
  }
}
END_TEST

START_TEST(one_table_alone_is_plain_csv)
{
  const char *t = any_trace(3, 500);
  report_settings o = {.format = WEIR_REPORT_CSV, .table = "matrix"};
  char *csv = print_tables("transfers", t, o);
  ck_assert(!strncmp(csv, "direction,source,destination,calls,bytes,", 41));
  ck_assert_ptr_null(strchr(csv, '#'));
  ck_assert_ptr_null(strstr(csv, "\n\n"));
  free(csv);
  FILE *nowhere = fopen("/dev/null", "w");
  o.table = "none_such";
  ck_assert_int_eq(report_tables(nowhere, "transfers", t, &o), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "none_such"));
  (void)fclose(nowhere);
}
END_TEST

START_TEST(text_keeps_to_its_width)
{
  static const int widths[] = {80, 120, 200};
  const char *t = any_trace(1, 800);
  for (int i = 0; i < REPORTS * 3; i++) {
    report_settings o = {.width = widths[i % 3]};
    char *text = print_tables(reports[i / 3], t, o), *at = text;
    for (char *end;
         (end = strchr(at = strchr(at, '\n') ? strchr(at, '\n') + 1 : at + strlen(at), '\n'));) {
      *end = '\0';
      ck_assert_msg(wr_text_width(at) <= (size_t)o.width, "%zu columns: %s", wr_text_width(at), at);
      *end = '\n';
    }
    free(text);
  }
}
END_TEST

/* ---- filters --------------------------------------------------------------------------------- */

START_TEST(parts_of_the_run_add_up_to_it)
{
  const char *t = any_trace(5, 3000);
  report_settings first = {.to = {true, false, 1.2e6}}, second = {.from = {true, false, 1.2e6}},
                  none = {0};
  json_t *a = tables_of("transfers", t, first), *b = tables_of("transfers", t, second),
         *all = tables_of("transfers", t, none), *wa = tables_of("waits", t, first),
         *wb = tables_of("waits", t, second), *w = tables_of("waits", t, none),
         *ma = tables_of("memory", t, first), *mb = tables_of("memory", t, second),
         *m = tables_of("memory", t, none);
  static const char *const columns[] = {"bytes", "calls", "host_ns"};
  for (int i = 0; i < 3; i++) {
    ck_assert_int_gt(sum_rows(a, "transfers", columns[i], NULL, NULL), 0);
    ck_assert_int_gt(sum_rows(b, "transfers", columns[i], NULL, NULL), 0);
    ck_assert_int_eq(sum_rows(a, "transfers", columns[i], NULL, NULL) +
                         sum_rows(b, "transfers", columns[i], NULL, NULL),
                     sum_rows(all, "transfers", columns[i], NULL, NULL));
  }
  ck_assert_int_eq(sum_rows(wa, "waits", "host_ns", NULL, NULL) +
                       sum_rows(wb, "waits", "host_ns", NULL, NULL),
                   sum_rows(w, "waits", "host_ns", NULL, NULL));
  ck_assert_int_eq(sum_rows(ma, "memory_by_site", "blocks", NULL, NULL) +
                       sum_rows(mb, "memory_by_site", "blocks", NULL, NULL),
                   sum_rows(m, "memory_by_site", "blocks", NULL, NULL));
  ck_assert_int_eq(sum_rows(mb, "peaks", "end_bytes", "device", "all devices"),
                   sum_rows(m, "peaks", "end_bytes", "device", "all devices"));
  /* what is live when the second part begins was live when the first one ended */
  const json_t *live = json_object_get(find_table(ma, "live"), "rows");
  int64_t end = json_integer_value(
      json_object_get(json_array_get(live, json_array_size(live) - 1), "device_bytes"));
  ck_assert_int_eq(end, sum_rows(ma, "peaks", "end_bytes", "device", "all devices"));
  ck_assert_int_ge(sum_rows(mb, "peaks", "peak_bytes", "device", "all devices"), end);
  live = json_object_get(find_table(mb, "live"), "rows");
  const json_t *slice = json_array_get(live, 0);
  ck_assert_int_eq(json_integer_value(json_object_get(slice, "device_bytes")),
                   end + json_integer_value(json_object_get(slice, "change_bytes")));
  ck_assert_ptr_nonnull(json_object_get(a, "only"));
  json_t *reports_made[] = {a, b, all, wa, wb, w, ma, mb, m};
  for (int i = 0; i < 9; i++)
    json_decref(reports_made[i]);
}
END_TEST

START_TEST(what_a_trace_has_not_is_said)
{
  const char *t = any_trace(6, 100);
  FILE *nowhere = fopen("/dev/null", "w");
  report_settings process = {.process = 2147483000}, range = {.range = "none\033[31m"},
                  times = {.from = {true, false, 9}, .to = {true, false, 9}};
  ck_assert_int_eq(report_tables(nowhere, "waits", t, &process), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "has no process 2147483000"));
  ck_assert_int_eq(report_tables(nowhere, "waits", t, &range), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "has no range 'none?[31m'"));
  ck_assert_int_eq(report_tables(nowhere, "memory", t, &times), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "--from must be before --to"));
  (void)fclose(nowhere);
}
END_TEST

/* ---- ranges ---------------------------------------------------------------------------------- */

static void push_range(int n, uint64_t at, uint64_t number, const char *text)
{
  char payload[128];
  range_name head = {.text_bytes = (uint16_t)strlen(text)};
  memcpy(payload, &head, sizeof(head));
  memcpy(payload + sizeof(head), text, head.text_bytes);
  synth_extended(n, WEIR_EV_RANGE_NAME, number, 0, payload, sizeof(head) + head.text_bytes);
  synth_event(
      n, at, 0,
      (trace_event){
          .kind = WEIR_EV_RANGE, .range_fact = WEIR_RANGE_PUSH, .a = number, .bytes = number});
}

static void pop_range(int n, uint64_t at, uint64_t number)
{
  synth_event(n, at, 0,
              (trace_event){.kind = WEIR_EV_RANGE, .range_fact = WEIR_RANGE_POP, .bytes = number});
}

START_TEST(a_range_has_what_was_done_inside_it_alone)
{
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 3; i++) {
    uint64_t at = 1000 + i * 100000;
    push_range(0, at, i * 2 + 1, "step");
    synth_copy(0, at + 1000, 100, WEIR_COPY_HTOD, 1000, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PINNED,
               0);
    push_range(0, at + 2000, i * 2 + 2, "load");
    synth_copy(0, at + 3000, 100, WEIR_COPY_HTOD, 10, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PINNED, 0);
    synth_alloc(0, at + 4000, 10, 0x1000 * (i + 1), 4096, 0, WEIR_MEM_DEVICE);
    pop_range(0, at + 5000, i * 2 + 2);
    pop_range(0, at + 6000, i * 2 + 1);
    synth_copy(0, at + 7000, 100, WEIR_COPY_HTOD, 1, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PINNED, 0);
  }
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  const char *t = synth_import("t.db", one);
  report_settings step = {.range = "step"}, load = {.range = "load"}, by = {.by = WEIR_BY_RANGE};
  json_t *a = tables_of("transfers", t, step), *b = tables_of("transfers", t, load),
         *c = tables_of("transfers", t, by), *m = tables_of("memory", t, load);
  ck_assert_int_eq(sum_rows(a, "transfers", "bytes", NULL, NULL), 3030);
  ck_assert_int_eq(sum_rows(b, "transfers", "bytes", NULL, NULL), 30);
  ck_assert_int_eq(sum_rows(c, "transfers_by_range", "bytes", "range", "step"), 3000);
  ck_assert_int_eq(sum_rows(c, "transfers_by_range", "bytes", "range", "load"), 30);
  ck_assert_int_eq(sum_rows(c, "transfers_by_range", "bytes", "range", "(no range)"), 3);
  ck_assert_int_eq(sum_rows(m, "peaks", "peak_bytes", "device", "all devices"), 3 * 4096);
  json_decref(a);
  json_decref(b);
  json_decref(c);
  json_decref(m);
}
END_TEST

/* A launch of three ranks, the last in two processes, and what launched them. */
START_TEST(a_rank_has_what_all_its_processes_did)
{
  static const char *const ranks[] = {NULL, "0", "1", "2", "2"};
  static char paths[5][600];
  const char *spools[6] = {NULL};
  for (size_t p = 0; p < 5; p++) {
    if (ranks[p]) ck_assert_int_eq(setenv("PMI_RANK", ranks[p], 1), 0);
    synth_open(synth_dir());
    synth_copy(0, 1000, 100, WEIR_COPY_HTOD, 1 << p, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PINNED, 0);
    synth_close();
    (void)snprintf(paths[p], sizeof paths[p], "%s", synth_spool());
    spools[p] = paths[p];
  }
  ck_assert_int_eq(unsetenv("PMI_RANK"), 0);
  const char *t = synth_import("t.db", spools);
  report_settings by = {.by = WEIR_BY_RANK};
  json_t *j = tables_of("transfers", t, by);
  ck_assert_int_eq(sum_rows(j, "transfers_by_rank", "bytes", "rank", "(no rank)"), 1);
  ck_assert_int_eq(sum_rows(j, "transfers_by_rank", "bytes", "rank", "rank 0"), 2);
  ck_assert_int_eq(sum_rows(j, "transfers_by_rank", "bytes", "rank", "rank 1"), 4);
  ck_assert_int_eq(sum_rows(j, "transfers_by_rank", "bytes", "rank", "rank 2"), 8 + 16);
  json_decref(j);
  synth_change(t, "ALTER TABLE process DROP COLUMN rank"); /* of an earlier version */
  j = tables_of("transfers", t, by);
  ck_assert_int_eq(sum_rows(j, "transfers_by_rank", "bytes", "rank", "(no rank)"), 31);
  json_decref(j);
}
END_TEST

/* ---- columns --------------------------------------------------------------------------------- */

START_TEST(time_columns_say_whose_time_they_are)
{
  const char *t = any_trace(2, 300);
  for (int k = 0; k < REPORTS; k++) {
    size_t i, c;
    json_t *table, *column, *j = tables_of(reports[k], t, (report_settings){0});
    json_array_foreach(json_object_get(j, "tables"), i, table)
    {
      json_array_foreach(json_object_get(table, "columns"), c, column)
      {
        const char *type = text_of(column, "type"), *name = text_of(column, "name");
        if (!strcmp(type, "host_ns")) ck_assert_msg(strstr(name, "host_ns") != NULL, "%s", name);
        if (!strcmp(type, "device_ns"))
          ck_assert_msg(strstr(name, "device_ns") != NULL, "%s", name);
      }
    }
    json_decref(j);
  }
}
END_TEST

START_TEST(hostile_names_are_harmless_in_all_formats)
{
  static const char bad[] = "a\033[31m|<b>,\"x\"\n`_\xff";
  wr_tables t = {.report = "test", .trace = strdup("trace")};
  static const wr_column columns[] = {{"name", "name", WR_COLUMN_TEXT, 0},
                                      {"place", "in", WR_COLUMN_PLACE, 0}};
  wr_named_table *x = wr_tables_add(&t, "names", "Names", columns, 2);
  wr_table_row(x);
  wr_table_put_text(x, bad);
  wr_table_put_place(x, bad, bad, 7);
  for (report_format f = WEIR_REPORT_TEXT; f <= WEIR_REPORT_MARKDOWN; f++) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_int_eq(wr_tables_write(out, &t, &(report_settings){.format = f}), WEIR_OK);
    (void)fclose(out);
    ck_assert_ptr_null(strchr(text, '\033'));
    ck_assert_ptr_null(strstr(text, "\xff"));
    if (f == WEIR_REPORT_MARKDOWN) {
      ck_assert_ptr_null(strstr(text, "<b>"));
      ck_assert_ptr_nonnull(strstr(text, "a?&#91;31m&#124;&#60;b&#62;"));
    }
    if (f == WEIR_REPORT_CSV) ck_assert_ptr_nonnull(strstr(text, "\"a?[31m|<b>,\"\"x\"\"?`_?\","));
    free(text);
  }
  wr_tables_free(&t);
}
END_TEST

/* A table with all that is for people or for programs alone. */
static void add_looks(wr_tables *t)
{
  static const wr_column columns[] = {
      {"calls", "calls", WR_COLUMN_COUNT, WR_ZERO_DASH},
      {"bytes", "bytes", WR_COLUMN_BYTES, WR_ZERO_PLAIN},
      {"share", "share", WR_COLUMN_SHARE, WR_ROUNDED},
      {"left", "left", WR_COLUMN_BALANCE, 0},
      {"hidden", "hidden", WR_COLUMN_COUNT, WR_IN_DATA},
      {"shown", "shown", WR_COLUMN_TEXT, WR_IN_TEXT},
      {"place", "called in", WR_COLUMN_PLACE, WR_WITH_FOLDER | WR_BELOW}};
  wr_named_table *x = WR_TABLE(t, "looks", "Looks", columns);
  wr_table_aside(x, "by %s", "host time");
  wr_table_before(x, false, "a sentence");
  wr_table_after(x, true, "a warning");
  for (uint64_t i = 0; i < 3; i++) {
    wr_table_row(x);
    wr_table_put(x, i);
    wr_table_put(x, i * 1024);
    wr_table_put_share(x, i, 8);
    wr_table_put(x, 0 - i * 2048);
    wr_table_put(x, 77);
    wr_table_put_words(x, "row %d", (int)i);
    wr_table_put_place(x, "f", "/home/me/src/a.c", 7);
    wr_table_lead(x, "63 %% in ");
  }
  wr_table_most(x, 2, "row", "rows");
  wr_table_row_for(x, WR_ROW_TEXT);
  wr_table_put_none(x);
  wr_table_skip(x, 6);
}

static char *written(const wr_tables *t, report_format format, int width)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  const report_settings o = {.format = format, .width = width};
  ck_assert_int_eq(wr_tables_write(out, t, &o), WEIR_OK);
  (void)fclose(out);
  return text;
}

static void expect_written(const wr_tables *t, report_format format, int width,
                           const char *expected)
{
  char *text = written(t, format, width);
  ck_assert_str_eq(text, expected);
  free(text);
}

START_TEST(people_and_programs_are_shown_what_is_theirs)
{
  wr_tables t = {.report = "test", .trace = strdup("trace"), .head = strdup("a headline")};
  add_looks(&t);
  expect_written(&t, WEIR_REPORT_TEXT, 0,
                 "a headline\n\nLooks  by host time\n  a sentence\n"
                 "  calls     bytes  share       left  shown  called in\n"
                 "      -         0  0.0 %          0  row 0  63 % in f  /home/me/src/a.c:7\n"
                 "      1  1.00 KiB   12 %  -2.00 KiB  row 1  63 % in f  /home/me/src/a.c:7\n"
                 "      -\n"
                 "  a warning\n  … and 1 row more\n");
  expect_written(&t, WEIR_REPORT_TEXT, 80,
                 "a headline\n\nLooks  by host time\n  a sentence\n"
                 "               calls     bytes  share       left  shown\n"
                 "                   -         0  0.0 %          0  row 0\n"
                 "    63 % in f  a.c:7\n"
                 "                   1  1.00 KiB   12 %  -2.00 KiB  row 1\n"
                 "    63 % in f  a.c:7\n"
                 "                   -\n  a warning\n  … and 1 row more\n");
  expect_written(&t, WEIR_REPORT_CSV, 0,
                 "# looks\ncalls,bytes,share,left,hidden,place,place_file,place_line\n"
                 "0,0,0,0,77,f,/home/me/src/a.c,7\n"
                 "1,1024,0.125,-2048,77,f,/home/me/src/a.c,7\n"
                 "2,2048,0.25,-4096,77,f,/home/me/src/a.c,7\n\n");
  wr_tables_free(&t);
}
END_TEST

static void expect_documented(const char *name)
{
  char quoted[96];
  const char *section = strstr(tables_schema, "## Reports in tables");
  (void)snprintf(quoted, sizeof(quoted), "`%s`", name);
  ck_assert_msg(strstr(section, quoted) != NULL, "SCHEMA.md does not document %s", name);
}

START_TEST(tables_columns_are_documented)
{
  const char *t = any_trace(9, 300);
  for (int k = 0; k < REPORTS; k++) {
    size_t i, c;
    json_t *table, *column, *j = tables_of(reports[k], t, (report_settings){0});
    json_array_foreach(json_object_get(j, "tables"), i, table)
    {
      expect_documented(text_of(table, "name"));
      json_array_foreach(json_object_get(table, "columns"), c, column)
          expect_documented(text_of(column, "name"));
    }
    json_decref(j);
  }
}
END_TEST

static Suite *tables_suite(void)
{
  Suite *s = suite_create("tables");
  TCase *c = tcase_create("tables");
  tcase_set_timeout(c, 60);
  tcase_add_checked_fixture(c, NULL, synth_clean);
  tcase_add_loop_test(c, however_rows_are_grouped_they_add_up_to_the_summary, 0,
                      WEIR_BY_FUNCTION + 1);
  tcase_add_test(c, times_of_devices_are_the_summarys);
  tcase_add_test(c, devices_and_coverage_are_the_summarys);
  tcase_add_loop_test(c, all_formats_have_the_same_numbers, 0, 5);
  tcase_add_test(c, one_table_alone_is_plain_csv);
  tcase_add_test(c, text_keeps_to_its_width);
  tcase_add_test(c, parts_of_the_run_add_up_to_it);
  tcase_add_test(c, what_a_trace_has_not_is_said);
  tcase_add_test(c, a_range_has_what_was_done_inside_it_alone);
  tcase_add_test(c, a_rank_has_what_all_its_processes_did);
  tcase_add_test(c, time_columns_say_whose_time_they_are);
  tcase_add_test(c, tables_columns_are_documented);
  tcase_add_test(c, hostile_names_are_harmless_in_all_formats);
  tcase_add_test(c, people_and_programs_are_shown_what_is_theirs);
  suite_add_tcase(s, c);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(tables_suite());
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
