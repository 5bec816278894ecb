/* model_tables.c: a model in tables: what "weir-report/2" has of a summary beside its totals, work
 * and functions, all of it. A table that has a row for each struct of a list says in its columns
 * which fields they are. */
#include "reports/tables/build.h"
#include "reports/tables/record.h"

#define COUNT_OF(of, field, name, title)                                                           \
  WR_RECORD(of, field, NUMBER, name, title, WR_COLUMN_COUNT, 0)
#define BYTES_OF(of, field, name, title)                                                           \
  WR_RECORD(of, field, NUMBER, name, title, WR_COLUMN_BYTES, 0)
#define TIME_OF(of, field, name, title)                                                            \
  WR_RECORD(of, field, NUMBER, name, title, WR_COLUMN_HOST_NS, 0)
#define TEXT_OF(of, field, name, title) WR_RECORD(of, field, TEXT, name, title, WR_COLUMN_TEXT, 0)
#define TRUTH_OF(of, field, name, title)                                                           \
  WR_RECORD(of, field, TRUTH, name, title, WR_COLUMN_TRUTH, 0)

/* ---- the run --------------------------------------------------------------------------------- */

static void add_run(const wr_build *b, const wr_model *m)
{
  static const wr_record columns[] = {
      TRUTH_OF(wr_model, finished, "complete", "complete"),
      TEXT_OF(wr_model, command, "command", "command"),
      TEXT_OF(wr_model, version, "weir_version", "Weir"),
      WR_RECORD(wr_model, start_realtime_ns, NUMBER, "start_realtime_ns", "began, since 1970",
                WR_COLUMN_NUMBER, 0),
      TIME_OF(wr_model, duration_ns, "duration_ns", "time"),
      TEXT_OF(wr_model, no_gpu, "no_gpu", "no GPU"),
      WR_RECORD(wr_model, window_start_ns, KNOWN, "window_start_ns", "window from",
                WR_COLUMN_MOMENT, 0),
      WR_RECORD(wr_model, window_end_ns, KNOWN, "window_end_ns", "window to", WR_COLUMN_MOMENT, 0),
      TEXT_OF(wr_model, window_reason, "window_reason", "window asked for by"),
      COUNT_OF(wr_model, before_calls, "before_calls", "calls before the window"),
      TEXT_OF(wr_model, coverage.unknown_name, "unknown_function", "first unknown function")};
  wr_named_table *t = WR_RECORDS(b->t, "run", "Run", columns);
  wr_table_look(t, WR_OBJECT);
  WR_RECORD_ROW(t, columns, m);
}

static void add_processes(const wr_build *b, const wr_model *m)
{
  static const wr_record columns[] = {
      WR_RECORD(wr_process_row, pid, NUMBER, "pid", "pid", WR_COLUMN_ID, 0),
      TEXT_OF(wr_process_row, exe, "exe", "program"),
      TEXT_OF(wr_process_row, command, "command", "command"),
      TEXT_OF(wr_process_row, mode, "mode", "mode"),
      WR_RECORD(wr_process_row, start, NUMBER, "start_ns", "began at", WR_COLUMN_MOMENT, 0),
      COUNT_OF(wr_process_row, events, "events", "events"),
      COUNT_OF(wr_process_row, dropped, "dropped", "dropped"),
      WR_RECORD(wr_process_row, end_detail, KNOWN, "end_detail", "status or signal",
                WR_COLUMN_NUMBER, 0),
      WR_RECORD(wr_process_row, end, NUMBER, "end_ns", "ended at", WR_COLUMN_MOMENT, 0),
      TEXT_OF(wr_process_row, end_reason, "end_reason", "ended by")};
  const size_t all = sizeof columns / sizeof *columns, always = all - 2;
  wr_named_table *t = WR_RECORDS(b->t, "processes", "Processes", columns);
  for (size_t i = 0; i < m->process_count; i++) {
    wr_table_row(t); /* one that runs has neither an end nor a reason */
    wr_record_put(t, columns, m->processes[i].ended ? all : always, &m->processes[i]);
  }
}

static void add_notes(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {{"note", "note", WR_COLUMN_TEXT, 0}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "trace_notes", "Notes of the trace", columns);
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < m->note_count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, m->notes[i]);
  }
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void add_routes(const wr_build *b, const wr_model *m)
{
  static const wr_record columns[] = {
      WR_RECORD(wr_route, src, DEVICE, "source", "from", WR_COLUMN_TEXT, 0),
      WR_RECORD(wr_route, dst, DEVICE, "destination", "to", WR_COLUMN_TEXT, 0),
      COUNT_OF(wr_route, calls, "calls", "copies"),
      BYTES_OF(wr_route, bytes, "bytes", "bytes"),
      BYTES_OF(wr_route, timed_bytes, "waited_bytes", "of calls that wait"),
      TIME_OF(wr_route, timed_ns, "waited_host_ns", "host time of these"),
      WR_RECORD(wr_route, bytes, NUMBER, "waited_bytes_per_second", "speed", WR_COLUMN_SPEED, 0)};
  const size_t plain = sizeof columns / sizeof *columns - 1;
  wr_named_table *t = WR_RECORDS(b->t, "routes", "Copies by route", columns);
  for (size_t i = 0; i < m->route_count; i++) {
    wr_table_row(t);
    wr_record_put(t, columns, plain, &m->routes[i]);
    wr_table_put_speed(t, m->routes[i].timed_bytes, m->routes[i].timed_ns);
  }
}

static void add_host_memory(const wr_build *b, const wr_model *m)
{
  static const wr_record columns[] = {
      TEXT_OF(wr_host_split, direction, "direction", "direction"),
      TEXT_OF(wr_host_split, memory, "memory", "memory"),
      COUNT_OF(wr_host_split, calls, "calls", "copies"),
      BYTES_OF(wr_host_split, bytes, "bytes", "bytes"),
      COUNT_OF(wr_host_split, async_calls, "async_calls", "asynchronous")};
  wr_named_table *t = WR_RECORDS(b->t, "host_memory", "Host memory of copies", columns);
  for (size_t i = 0; i < m->split_count; i++)
    WR_RECORD_ROW(t, columns, &m->split[i]);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static const wr_record part_columns[] = {
    COUNT_OF(wr_wait_part, calls, "calls", "waits"),
    TIME_OF(wr_wait_part, working_ns, "working_host_ns", "working"),
    TIME_OF(wr_wait_part, other_ns, "other_host_ns", "other work"),
    TIME_OF(wr_wait_part, idle_ns, "idle_host_ns", "idle"),
    TIME_OF(wr_wait_part, unknown_ns, "unknown_host_ns", "not known"),
    TEXT_OF(wr_wait_part, function, "function", "function")};

static void add_wait_parts(const wr_build *b, const wr_wait_truth *w)
{
  const size_t sums = sizeof part_columns / sizeof *part_columns - 1;
  wr_named_table *t =
      wr_record_add(b->t, "divided", "What devices did in waits", part_columns, sums);
  wr_table_look(t, WR_OBJECT);
  wr_table_row(t);
  wr_record_put(t, part_columns, sums, &w->all);
  t = WR_RECORDS(b->t, "wait_parts", "What devices did in waits, by function", part_columns);
  for (size_t i = 0; i < w->part_count; i++)
    WR_RECORD_ROW(t, part_columns, &w->part[i]);
}

/* Tables that are not there: it is not known. */
static void add_waits(const wr_build *b, const wr_wait_truth *w)
{
  static const wr_record columns[] = {
      COUNT_OF(wr_wait_truth, judged_calls, "judged_calls", "waits"),
      COUNT_OF(wr_wait_truth, unknown_calls, "unknown_calls", "not known"),
      COUNT_OF(wr_wait_truth, redundant_calls, "redundant_calls", "for nothing"),
      TIME_OF(wr_wait_truth, redundant_ns, "redundant_host_ns", "host time for nothing"),
      COUNT_OF(wr_wait_truth, wider_calls, "wider_calls", "too wide"),
      TIME_OF(wr_wait_truth, wider_ns, "wider_host_ns", "host time too wide")};
  if (!w->judged) return;
  wr_named_table *t = WR_RECORDS(b->t, "judged", "What waits had to wait for", columns);
  wr_table_look(t, WR_OBJECT);
  WR_RECORD_ROW(t, columns, w);
  if (w->divided) add_wait_parts(b, w);
}

/* ---- device times ---------------------------------------------------------------------------- */

static const char *const work_names[WR_WORKS] = {
#define WORK_NAME(id, name, words) name,
    WR_WORK_MAP(WORK_NAME)
#undef WORK_NAME
};

static void add_works(const wr_build *b, const wr_device_times *d)
{
  static const wr_column columns[] = {
      {"device", "device", WR_COLUMN_TEXT, 0},
      {"work", "work", WR_COLUMN_TEXT, 0},
      {"operations", "count", WR_COLUMN_COUNT, 0},
      {"timed_operations", "with times", WR_COLUMN_COUNT, 0},
      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
      {"timed_bytes", "with times", WR_COLUMN_BYTES, 0},
      {"busy_device_ns", "device time", WR_COLUMN_DEVICE_NS, 0},
      {"device_bytes_per_second", "speed by device time", WR_COLUMN_SPEED, 0}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "operations", "Device time by kind of work", columns);
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < d->count; i++) {
    for (int k = 0; k < WR_WORKS; k++) {
      const wr_work_sum *w = &d->device[i].work[k];
      if (!w->operations) continue;
      wr_table_row(t);
      wr_put_device(t, d->device[i].device);
      wr_table_put_text(t, work_names[k]);
      WR_PUT(t, w->operations, w->timed, w->bytes, w->timed_bytes, w->busy_ns);
      wr_table_put_speed(t, w->timed_bytes, w->timed_bytes ? w->busy_ns : 0);
    }
  }
}

static const char *unjudged_name(wr_unjudged why)
{
  static const char *const names[] = {NULL, "unfinished", "version", "operations", "resolved"};
  return names[why];
}

static void add_observation(const wr_build *b, const wr_model *m)
{
  static const wr_record columns[] = {
      TEXT_OF(wr_device_times, observed, "observed", "observed"),
      TEXT_OF(wr_device_times, unavailable, "unavailable", "not observed"),
      COUNT_OF(wr_device_times, yields, "yields", "stretches of the program's own"),
      TIME_OF(wr_device_times, yielded_ns, "yielded_ns", "in them"),
      COUNT_OF(wr_device_times, dropped, "dropped", "lost"),
      COUNT_OF(wr_device_times, untimed, "untimed", "without times"),
      COUNT_OF(wr_device_times, unmatched, "unmatched", "of no call"),
      COUNT_OF(wr_device_times, incomplete, "incomplete_processes", "incomplete processes"),
      COUNT_OF(wr_device_times, lost_calls, "lost_calls", "calls without operations"),
      TRUTH_OF(wr_device_times, no_kernels, "kernels_unobserved", "kernels not observed"),
      TEXT_OF(wr_device_times, observed, "undivided", "idle times not known")};
  const size_t plain = sizeof columns / sizeof *columns - 1;
  const wr_device_times *d = &m->device_times;
  wr_named_table *t = WR_RECORDS(b->t, "device_observation", "Device times", columns);
  wr_table_look(t, WR_OBJECT);
  wr_table_row(t);
  wr_record_put(t, columns, plain, d);
  wr_table_put_text(t, d->count ? unjudged_name(m->waits.why_undivided) : NULL);
}

/* ---- all ------------------------------------------------------------------------------------- */

void wr_add_model(const wr_build *b, const wr_model *m)
{
  add_run(b, m);
  wr_add_devices(b, m);
  wr_build_memory_of_run(b, m);
  add_routes(b, m);
  add_host_memory(b, m);
  add_waits(b, &m->waits);
  wr_add_model_places(b, m);
  wr_add_model_calls(b, m);
  wr_add_idle(b, m);
  add_works(b, &m->device_times);
  add_observation(b, m);
  wr_add_cache(b, &m->cache);
  add_processes(b, m);
  add_notes(b, m);
  wr_add_coverage(b, m);
}
