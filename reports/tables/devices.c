/* devices.c: weir report devices, idle and coverage: of the whole run, as the summary has them. */
#include <stdlib.h>
#include <string.h>
#include "reports/model/model.h"
#include "reports/base/units.h"
#include "reports/tables/build.h"
#include "reports/whole/whole.h"

static weir_status with_model(const wr_build *b, void (*add)(const wr_build *, const wr_model *))
{
  wr_model m = {0};
  weir_status s = wr_whole_model(&m, b->db, 1);
  if (s) return s;
  add(b, &m);
  wr_model_free(&m);
  return WEIR_OK;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* A total of devices that is a column: name, title, type. The tables' columns are members of JSON's
 * `devices`. */
typedef struct device_column {
  wr_column column;
  size_t offset;
} device_column;

#define OF_DEVICE(name, title, type, extra)                                                        \
  {                                                                                                \
    {#name, title, type, extra}, offsetof(wr_device_totals, name)                                  \
  }
#define CALLS(name, title) OF_DEVICE(name, title, WR_COLUMN_COUNT, 2)
#define SIZE(name, title)  OF_DEVICE(name, title, WR_COLUMN_BYTES, 0)

static uint64_t total_at(const wr_device_totals *t, size_t offset)
{
  uint64_t n;
  memcpy(&n, (const char *)t + offset, sizeof(n));
  return n;
}

static void add_device_table(const wr_build *b, const wr_model *m, const char *name,
                             const char *title, const device_column *of, size_t count)
{
  wr_column columns[20] = {{"device", "device", WR_COLUMN_TEXT, 0},
                           {"name", "name", WR_COLUMN_TEXT, 3}};
  for (size_t i = 0; i < count; i++)
    columns[2 + i] = of[i].column;
  columns[2 + count] = (wr_column){"product", "product", WR_COLUMN_TEXT, WR_IN_JSON};
  columns[3 + count] = (wr_column){"label", "label", WR_COLUMN_TEXT, WR_IN_JSON};
  wr_named_table *t = wr_table_of_run(wr_tables_add(b->t, name, title, columns, 4 + count));
  for (int d = 0; d < WR_HOST; d++) {
    const wr_device *x = &m->devices[d];
    if (!x->seen) continue;
    wr_table_row(t);
    wr_put_device(t, d);
    wr_table_put_text(t, x->label ? x->label : x->name);
    for (size_t i = 0; i < count; i++)
      wr_table_put(t, total_at(&x->total, of[i].offset));
    wr_table_put_text(t, x->name);
    wr_table_put_text(t, x->label);
  }
}

void wr_add_devices(const wr_build *b, const wr_model *m)
{
  static const device_column memory[] = {
      SIZE(peak_bytes, "peak"),
      OF_DEVICE(peak_at_ns, "at", WR_COLUMN_MOMENT, 1),
      SIZE(alloc_bytes, "allocated"),
      CALLS(alloc_calls, "allocations"),
      CALLS(free_calls, "frees"),
      SIZE(live_at_exit_bytes, "never freed"),
      OF_DEVICE(weir_reserved_peak_bytes, "libweir's peak", WR_COLUMN_BYTES, 4)};
  static const device_column copies[] = {
      SIZE(h2d_bytes, "from the host"), CALLS(h2d_calls, "copies"),
      SIZE(d2h_bytes, "to the host"),   CALLS(d2h_calls, "copies"),
      SIZE(d2d_bytes, "within"),        CALLS(d2d_calls, "copies"),
      SIZE(p2p_in_bytes, "from peers"), CALLS(p2p_in_calls, "copies"),
      SIZE(p2p_out_bytes, "to peers"),  CALLS(p2p_out_calls, "copies")};
  static const device_column work[] = {
      OF_DEVICE(launches, "launches", WR_COLUMN_COUNT, 0),
      CALLS(memset_calls, "memsets"),
      SIZE(memset_bytes, "set"),
      CALLS(sync_explicit_calls, "waits asked for"),
      {{"sync_explicit_host_ns", "host time in them", WR_COLUMN_HOST_NS, 0},
       offsetof(wr_device_totals, sync_explicit_ns)}};
  static const device_column taken[] = {SIZE(code_peak_bytes, "code, peak"),
                                        SIZE(code_bytes, "code"),
                                        CALLS(code_blocks, "blocks"),
                                        CALLS(code_frees, "ended"),
                                        SIZE(code_live_at_exit_bytes, "code left"),
                                        SIZE(context_peak_bytes, "contexts, peak"),
                                        SIZE(context_bytes, "contexts"),
                                        CALLS(context_blocks, "blocks"),
                                        CALLS(context_frees, "ended"),
                                        SIZE(context_live_at_exit_bytes, "contexts left")};
#define ADD(name, title, of) add_device_table(b, m, name, title, of, sizeof(of) / sizeof *(of))
  ADD("devices", "Devices", memory);
  ADD("device_copies", "Copies", copies);
  ADD("device_work", "Launches, memsets, waits", work);
  ADD("device_taken", "Taken by code and contexts", taken);
#undef ADD
}

/* ---- device times ---------------------------------------------------------------------------- */

static void add_busy(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {
      {"device", "device", WR_COLUMN_TEXT, 0},
      {"span_device_ns", "first to last operation", WR_COLUMN_DEVICE_NS, 0},
      {"busy_device_ns", "device time busy", WR_COLUMN_DEVICE_NS, 0},
      {"idle_device_ns", "device time idle", WR_COLUMN_DEVICE_NS, 0},
      {"share_idle", "idle", WR_COLUMN_SHARE, 0},
      {"copy_device_ns", "copying", WR_COLUMN_DEVICE_NS, 1},
      {"kernel_device_ns", "in kernels", WR_COLUMN_DEVICE_NS, 1},
      {"overlap_device_ns", "in both", WR_COLUMN_DEVICE_NS, 2},
      {"queue_full_host_ns", "launch queue full", WR_COLUMN_HOST_NS, WR_IN_JSON}};
  const wr_device_times *d = &m->device_times;
  if (!d->count) wr_note_no_device_times(b, d, "");
  if (d->lost_calls)
    wr_tables_note(b->t, "%s without device operations: a process ended before these were had.",
                   wr_counted(d->lost_calls, "call", "calls").text);
  if (!d->count) return;
  wr_named_table *t = WR_RUN_TABLE(b->t, "busy", "Device time", columns);
  for (size_t i = 0; i < d->count; i++) {
    const wr_device_time *x = &d->device[i];
    uint64_t idle = x->span_ns > x->busy_ns ? x->span_ns - x->busy_ns : 0;
    wr_table_row(t);
    wr_put_device(t, x->device);
    wr_table_put(t, x->span_ns);
    wr_table_put(t, x->busy_ns);
    wr_table_put(t, idle);
    wr_table_put_share(t, idle, x->span_ns);
    wr_table_put(t, x->copy_ns);
    wr_table_put(t, x->kernel_ns);
    wr_table_put(t, x->overlap_ns);
    wr_table_put_if(t, m->waits.divided, x->full_ns);
  }
  if (d->no_kernels)
    wr_tables_note(b->t, "Kernels of a process were not observed (weir run --device-times=all): "
                         "where a device seems idle one may have run.");
}

static void add_devices_and_times(const wr_build *b, const wr_model *m)
{
  wr_add_devices(b, m);
  add_busy(b, m);
}

weir_status wr_build_devices(const wr_build *b)
{
  return with_model(b, add_devices_and_times);
}

/* ---- idle ------------------------------------------------------------------------------------ */

static const char *const causes[WR_IDLE_CAUSES] = {
#define CAUSE(id, value, name) [value] = name,
    WR_IDLE_MAP(CAUSE)
#undef CAUSE
};

static void put_gap_causes(wr_named_table *t, const wr_idle_gap *g)
{
  static const wr_column columns[] = {
      {"cause", "cause", WR_COLUMN_TEXT, 0},
      {"idle_device_ns", "device time idle", WR_COLUMN_DEVICE_NS, 0}};
  wr_named_table *rows = wr_table_put_rows(t, columns, sizeof columns / sizeof *columns);
  for (int i = 0; i < WR_IDLE_CAUSES; i++) {
    wr_table_row(rows);
    wr_table_put_text(rows, causes[i]);
    wr_table_put(rows, g->ns[i]);
  }
}

static void put_gap(wr_named_table *t, int device, const wr_idle_gap *g)
{
  int most = 0;
  for (int i = 1; i < WR_IDLE_CAUSES; i++)
    if (g->ns[i] > g->ns[most]) most = i;
  wr_table_row(t);
  wr_put_device(t, device);
  wr_table_put(t, (uint64_t)g->end - (uint64_t)g->start);
  wr_table_put(t, g->start > 0 ? (uint64_t)g->start : 0);
  wr_table_put_text(t, causes[most]);
  wr_table_put(t, g->ns[most]);
  wr_table_put_text(t, g->function);
  wr_table_put(t, (uint64_t)g->end);
  put_gap_causes(t, g);
}

static const char *undivided_words(wr_unjudged why)
{
  switch (why) {
  case WR_UNJUDGED_UNFINISHED:
    return "the trace is not complete";
  case WR_UNJUDGED_VERSION:
    return "the trace is of an older Weir";
  case WR_UNJUDGED_WORK:
    return "there are more than 400,000 operations ('weir resolve' works it out)";
  default:
    return "the trace was resolved by another Weir ('weir resolve --again' works it out)";
  }
}

void wr_add_idle(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {
      {"device", "device", WR_COLUMN_TEXT, 0},
      {"cause", "cause", WR_COLUMN_TEXT, 0},
      {"function", "host in", WR_COLUMN_TEXT, 0},
      {"idle_device_ns", "device time idle", WR_COLUMN_DEVICE_NS, 0},
      {"share_of_span", "of its time", WR_COLUMN_SHARE, 0}};
  static const wr_column gaps[] = {
      {"device", "device", WR_COLUMN_TEXT, 0},
      {"idle_device_ns", "device time idle", WR_COLUMN_DEVICE_NS, 0},
      {"start_ns", "began at", WR_COLUMN_MOMENT, 0},
      {"cause", "most for", WR_COLUMN_TEXT, 0},
      {"cause_device_ns", "device time for that", WR_COLUMN_DEVICE_NS, 1},
      {"function", "host in", WR_COLUMN_TEXT, 0},
      {"end_ns", "ended at", WR_COLUMN_MOMENT, WR_IN_JSON},
      {"causes", "device time of each cause", WR_COLUMN_ROWS, WR_IN_JSON}};
  const wr_device_times *d = &m->device_times;
  add_busy(b, m);
  if (!d->count) return;
  if (!m->waits.divided) {
    wr_tables_note(b->t, "Why devices were idle is not known: %s.",
                   undivided_words(m->waits.why_undivided));
    return;
  }
  wr_named_table *t = WR_RUN_TABLE(b->t, "idle", "Idle time by cause", columns);
  for (size_t i = 0; i < d->count; i++) {
    for (size_t k = 0; k < d->device[i].idle_count; k++) {
      const wr_idle_part *x = &d->device[i].idle[k];
      wr_table_row(t);
      wr_put_device(t, d->device[i].device);
      wr_table_put_text(t, causes[x->cause]);
      wr_table_put_text(t, x->function);
      wr_table_put(t, x->ns);
      wr_table_put_share(t, x->ns, d->device[i].span_ns);
    }
  }
  t = WR_RUN_TABLE(b->t, "longest_idle", "Longest idle times", gaps);
  for (size_t i = 0; i < d->count; i++)
    for (size_t k = 0; k < d->device[i].gap_count; k++)
      put_gap(t, d->device[i].device, &d->device[i].gap[k]);
}

weir_status wr_build_idle(const wr_build *b)
{
  return with_model(b, wr_add_idle);
}

/* ---- coverage -------------------------------------------------------------------------------- */

static void put_counted(wr_named_table *t, const char *what, const char *name, uint64_t n)
{
  wr_table_row(t);
  wr_table_put_text(t, what);
  wr_table_put(t, n);
  wr_table_put_text(t, name);
}

static void add_passed(const wr_build *b, const wr_coverage *c)
{
  static const wr_column columns[] = {{"function", "function", WR_COLUMN_TEXT, 0},
                                      {"why", "why", WR_COLUMN_TEXT, 0}};
  static const char *const why[] = {[WEIR_API_UNREACHED] = "not recorded",
                                    [WEIR_API_ASKS] = "only asks",
                                    [WEIR_API_SETS] = "only sets",
                                    [WEIR_API_BELOW] = "what it calls is recorded"};
  wr_named_table *t = WR_RUN_TABLE(b->t, "passed_through",
                                   "Functions that were looked up and let through", columns);
  for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
    for (size_t k = 0; why[i] && k < c->passed[i].count; k++) {
      wr_table_row(t);
      wr_table_put_text(t, c->passed[i].names[k]);
      wr_table_put_text(t, why[i]);
    }
  }
}

static void add_files(const wr_build *b, const wr_coverage *c)
{
  static const wr_column columns[] = {{"path", "file", WR_COLUMN_TEXT, 0},
                                      {"why", "why", WR_COLUMN_TEXT, 0},
                                      {"count", "runs", WR_COLUMN_COUNT, 0}};
  wr_named_table *t = wr_table_of_run(
      wr_tables_add(b->t, "modules_without_names", "Files without names of functions", columns, 2));
  for (size_t i = 0; i < c->lacking_count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, c->lacking[i].path);
    wr_table_put_text(t, c->lacking[i].why);
  }
  t = wr_table_of_run(wr_tables_add(b->t, "modules_embedding_cudart",
                                    "Files with a runtime linked in", columns, 1));
  for (size_t i = 0; i < c->embedding_count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, c->embedding[i]);
  }
  t = wr_table_of_run(
      wr_tables_add(b->t, "unseen_programs", "Programs that ran without Weir", columns, 3));
  for (size_t i = 0; i < c->unseen_count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, *c->unseen[i].path ? c->unseen[i].path : "(others)");
    wr_table_put_text(t, c->unseen[i].why);
    wr_table_put(t, c->unseen[i].count);
  }
}

void wr_add_coverage(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {{"what", "what", WR_COLUMN_TEXT, 0},
                                      {"count", "count", WR_COLUMN_COUNT, 0},
                                      {"name", "name", WR_COLUMN_TEXT, WR_IN_JSON}};
  const wr_coverage *c = &m->coverage;
  wr_named_table *t = WR_RUN_TABLE(b->t, "coverage", "What was seen", columns);
  wr_table_look(t, WR_MEMBERS);
  put_counted(t, "events", "events", m->total.events);
  put_counted(t, "functions looked up", "functions_wrapped", c->looked_up);
  put_counted(t, "functions called", "functions_called", c->called);
  put_counted(t, "functions passed through unseen", "functions_passed_through",
              c->passed[WEIR_API_UNREACHED].count);
  put_counted(t, "lookups of unknown functions", "unknown_lookups", c->unknown_lookups);
  put_counted(t, "calls within calls, no events", "nested_calls", c->nested);
  put_counted(t, "ranges too deep, not recorded", "deep_ranges", c->deep);
  put_counted(t, "calls left out, counted", "unrecorded_calls", c->unrecorded);
  put_counted(t, "times that calls were left out", "unrecorded_spans", c->unrecorded_spans);
  put_counted(t, "events without a stack", "events_without_stack", c->stackless);
  put_counted(t, "events dropped", "dropped_events", m->total.dropped);
  put_counted(t, "names and stacks dropped", "dropped_names_and_stacks", c->dropped_extended);
  put_counted(t, "damaged chunks", "damaged_chunks", c->damaged_chunks);
  put_counted(t, "torn records", "torn_records", c->torn);
  put_counted(t, "bytes cut off", "bytes_cut", c->bytes_cut);
  put_counted(t, "launches of graphs of unknown contents", "graph_launches_unknown",
              m->total.graph_launches_unknown);
  add_passed(b, c);
  add_files(b, c);
  if (!m->finished) wr_tables_note(b->t, "The trace is not complete.");
}

weir_status wr_build_coverage(const wr_build *b)
{
  return with_model(b, wr_add_coverage);
}
