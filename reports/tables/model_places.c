/* model_places.c: a model's lists of places in the program, with whole stacks; its ranges, graphs
 * and named memory.
 *
 * * A place is one of the program's, with what was called there; `callers` is the heaviest stack
 * that leads to it, and `stacks` has the heaviest of them, with their sums. */
#include <stdlib.h>
#include "reports/base/util.h"
#include "reports/model/sites.h"
#include "reports/tables/build.h"
#include "reports/tables/record.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* What a list of places has beside sums and places, or'ed. */
enum { OF_DEVICE = 1, OF_CALLS = 2, OF_COPIES = 4 };

static void add_frames(const wr_model *m, wr_named_table *t, const wr_site_stack *x)
{
  wr_table_put_texts(t);
  for (uint32_t i = 0; i < x->count; i++) {
    const wr_frame_name *f = &m->frames[x->frames[i]];
    char *text = f->file                  ? wr_format("%s (%s:%d)", f->function, f->file, f->line)
                 : f->known && *f->module ? wr_format("%s (%s)", f->function, f->module)
                                          : wr_format("%s", f->function);
    if (text)
      wr_table_add_text(t, text);
    else
      t->of->failed = true;
    free(text);
  }
}

static void put_place_sums(wr_named_table *t, const wr_sums *s)
{
  WR_PUT(t, s->calls, s->bytes, s->ns);
}

/* The heaviest stacks of a site, and the sums of those left out. */
static void put_stacks(const wr_model *m, wr_named_table *t, const wr_site *x)
{
  static const wr_column columns[] = {{"calls", "calls", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
                                      {"implicit", "may wait", WR_COLUMN_TRUTH, 0},
                                      {"callers", "stack", WR_COLUMN_TEXTS, 0}};
  size_t shown = x->stack_count < (size_t)m->top ? x->stack_count : (size_t)m->top;
  wr_named_table *rows = wr_table_put_rows(t, columns, sizeof columns / sizeof *columns);
  wr_sums rest = {0};
  for (size_t i = 0; i < x->stack_count; i++) {
    const wr_site_stack *s = &x->stacks[i];
    if (i >= shown) {
      rest.calls += s->sums.calls, rest.bytes += s->sums.bytes, rest.ns += s->sums.ns;
      continue;
    }
    wr_table_row(rows);
    put_place_sums(rows, &s->sums);
    wr_table_put(rows, s->implicit);
    if (rows) add_frames(m, rows, s);
  }
  wr_table_put(t, x->stack_count - shown);
  put_place_sums(t, &rest);
}

static void put_place(const wr_model *m, wr_named_table *t, const wr_site *x, int device, int what)
{
  wr_table_row(t);
  if (what & OF_DEVICE) wr_put_device(t, device);
  put_place_sums(t, &(wr_sums){x->calls, x->bytes, x->ns});
  if (what & OF_CALLS) wr_table_put_text(t, x->api);
  if (what & OF_COPIES) {
    wr_table_put_text(t, wr_direction_name(x->direction));
    wr_table_put_text(t, wr_mem_name(x->src_mem));
    wr_table_put_text(t, wr_mem_name(x->mem));
  }
  wr_table_put_place(t, x->function, x->file, x->line);
  wr_table_module(t, x->module);
  wr_table_put(t, x->implicit);
  if (t && x->stack_count)
    add_frames(m, t, &x->stacks[0]);
  else
    wr_table_put_texts(t);
  put_stacks(m, t, x);
}

static wr_named_table *add_list(const wr_build *b, const char *name, const char *title, int what)
{
  wr_column columns[16];
  size_t n = 0;
  if (what & OF_DEVICE) columns[n++] = (wr_column){"device", "device", WR_COLUMN_TEXT, 0};
  columns[n++] = (wr_column){"calls", "calls", WR_COLUMN_COUNT, 0};
  columns[n++] = (wr_column){"bytes", "bytes", WR_COLUMN_BYTES, 0};
  columns[n++] = (wr_column){"host_ns", "host time", WR_COLUMN_HOST_NS, 0};
  if (what & OF_CALLS) columns[n++] = (wr_column){"function", "function", WR_COLUMN_TEXT, 0};
  if (what & OF_COPIES) {
    columns[n++] = (wr_column){"direction", "direction", WR_COLUMN_TEXT, 0};
    columns[n++] = (wr_column){"source_memory", "from", WR_COLUMN_TEXT, 0};
    columns[n++] = (wr_column){"destination_memory", "to", WR_COLUMN_TEXT, 0};
  }
  columns[n++] = (wr_column){"place", "called in", WR_COLUMN_PLACE, 0};
  columns[n++] = (wr_column){"implicit", "may wait", WR_COLUMN_TRUTH, WR_IN_DATA};
  columns[n++] = (wr_column){"callers", "heaviest stack", WR_COLUMN_TEXTS, WR_IN_JSON};
  columns[n++] = (wr_column){"stacks", "stacks", WR_COLUMN_ROWS, WR_IN_JSON};
  columns[n++] = (wr_column){"more_stacks", "stacks left out", WR_COLUMN_COUNT, WR_IN_JSON};
  columns[n++] = (wr_column){"more_calls", "calls in them", WR_COLUMN_COUNT, WR_IN_JSON};
  columns[n++] = (wr_column){"more_bytes", "bytes in them", WR_COLUMN_BYTES, WR_IN_JSON};
  columns[n++] = (wr_column){"more_host_ns", "host time in them", WR_COLUMN_HOST_NS, WR_IN_JSON};
  wr_named_table *t = wr_table_of_run(wr_tables_add(b->t, name, title, columns, n));
  wr_table_look(t, WR_DETAIL);
  return t;
}

static void add_owners(const wr_build *b, const wr_model *m)
{
  wr_named_table *t = add_list(b, "peak_owners", "At the peak of each device", OF_DEVICE);
  for (int d = 0; d < WR_HOST; d++)
    for (size_t i = 0; m->devices[d].seen && i < m->devices[d].owners.count; i++)
      put_place(m, t, &m->devices[d].owners.site[i], d, OF_DEVICE);
}

void wr_add_model_places(const wr_build *b, const wr_model *m)
{
  static const wr_column more[] = {{"list", "list", WR_COLUMN_TEXT, 0},
                                   {"places", "places left out", WR_COLUMN_COUNT, 0},
                                   {"calls", "calls", WR_COLUMN_COUNT, 0},
                                   {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                   {"host_ns", "host time", WR_COLUMN_HOST_NS, 0}};
  const struct {
    const char *name, *title;
    int what;
    const wr_sites *list;
  } lists[] = {
      {"alloc_places", "Places that allocate", OF_CALLS, &m->alloc},
      {"copy_places", "Places that copy", OF_CALLS | OF_COPIES, &m->copy},
      {"wait_places", "Places that wait", OF_CALLS, &m->sync},
      {"redundant_waits", "Waits that an earlier one had covered", OF_CALLS, &m->redundant},
      {"wider_waits", "Waits for a whole device", OF_CALLS, &m->wider},
      {"live_at_exit", "Live at exit", 0, &m->leak},
      {"taken_at_exit", "Code and contexts live at exit", 0, &m->taken},
      {"asked_places", "Asked again and again", OF_CALLS, &m->asked}};
  const size_t count = sizeof lists / sizeof *lists;
  add_owners(b, m);
  for (size_t i = 0; i < count; i++) {
    wr_named_table *t = add_list(b, lists[i].name, lists[i].title, lists[i].what);
    for (size_t k = 0; k < lists[i].list->count; k++)
      put_place(m, t, &lists[i].list->site[k], 0, lists[i].what);
  }
  wr_named_table *t = WR_RUN_TABLE(b->t, "more_places", "Places left out", more);
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, lists[i].name);
    wr_table_put(t, lists[i].list->all - lists[i].list->count);
    put_place_sums(t, &lists[i].list->rest);
  }
}

/* ---- ranges, graphs, names ------------------------------------------------------------------- */

#define NUMBER_OF(of, field, name, title, type, how)                                               \
  WR_RECORD(of, field, NUMBER, name, title, WR_COLUMN_##type, how)

static void add_ranges(const wr_build *b, const wr_named_ranges *r)
{
  static const wr_record columns[] = {
      WR_RECORD(wr_range_sum, domain, TEXT, "domain", "domain", WR_COLUMN_TEXT, 0),
      WR_RECORD(wr_range_sum, text, TEXT, "text", "range", WR_COLUMN_TEXT, 0),
      NUMBER_OF(wr_range_sum, ranges, "ranges", "count", COUNT, 0),
      NUMBER_OF(wr_range_sum, open, "open", "never ended", COUNT, WR_IN_DATA),
      NUMBER_OF(wr_range_sum, ns, "host_ns", "time", HOST_NS, 0),
      NUMBER_OF(wr_range_sum, calls, "calls", "calls", COUNT, 0),
      NUMBER_OF(wr_range_sum, copies, "copies", "copies", COUNT, 0),
      NUMBER_OF(wr_range_sum, copy_bytes, "copy_bytes", "copied", BYTES, 0),
      NUMBER_OF(wr_range_sum, waits, "waits", "waits", COUNT, 0),
      NUMBER_OF(wr_range_sum, wait_ns, "wait_host_ns", "waiting", HOST_NS, 0),
      NUMBER_OF(wr_range_sum, launches, "launches", "launches", COUNT, 0),
      NUMBER_OF(wr_range_sum, device_ns, "device_ns", "on device", DEVICE_NS, 0),
      NUMBER_OF(wr_range_sum, allocs, "allocations", "allocations", COUNT, 0),
      NUMBER_OF(wr_range_sum, alloc_bytes, "alloc_bytes", "allocated", BYTES, 0),
      NUMBER_OF(wr_range_sum, peak_bytes, "peak_bytes", "peak", BYTES, 0)};
  wr_named_table *t = WR_RECORDS(b->t, "ranges", "Ranges", columns);
  for (size_t i = 0; i < r->count; i++)
    WR_RECORD_ROW(t, columns, &r->sum[i]);
}

static void put_graph_place(wr_named_table *t, const wr_graphs *g, size_t place)
{
  wr_table_put_text(t, place && place <= g->places ? g->place[place] : "?");
}

static void add_graphs(const wr_build *b, const wr_graphs *g)
{
  static const wr_record columns[] = {
      NUMBER_OF(wr_graph_sum, launches, "launches", "launches", COUNT, 0),
      NUMBER_OF(wr_graph_sum, unknown, "unknown", "of unknown contents", COUNT, 0),
      NUMBER_OF(wr_graph_sum, graphs, "graphs", "graphs", COUNT, 0),
      NUMBER_OF(wr_graph_sum, updates, "updates", "updates", COUNT, 0),
      NUMBER_OF(wr_graph_sum, kernels, "kernels", "kernels", COUNT, 0),
      NUMBER_OF(wr_graph_sum, copies, "copies", "copies", COUNT, 0),
      NUMBER_OF(wr_graph_sum, copy_bytes, "copy_bytes", "copied", BYTES, 0),
      NUMBER_OF(wr_graph_sum, memsets, "memsets", "memsets", COUNT, 0),
      NUMBER_OF(wr_graph_sum, maybe, "may_have_run", "may have run", COUNT, 0),
      WR_RECORD(wr_graph_sum, launched, NUMBER, "launched_in", "launched in", WR_COLUMN_TEXT, 0),
      WR_RECORD(wr_graph_sum, captured, NUMBER, "captured_in", "captured in", WR_COLUMN_TEXT, 0),
      WR_RECORD(wr_graph_sum, made, NUMBER, "made_in", "made in", WR_COLUMN_TEXT, 0)};
  const size_t numbers = sizeof columns / sizeof *columns - 3;
  wr_named_table *t = WR_RECORDS(b->t, "graphs", "Graphs", columns);
  for (size_t i = 0; i < g->count; i++) {
    const wr_graph_sum *x = &g->sum[i];
    wr_table_row(t);
    wr_record_put(t, columns, numbers, x);
    put_graph_place(t, g, x->launched);
    if (x->captured)
      put_graph_place(t, g, x->captured);
    else
      wr_table_put_none(t);
    put_graph_place(t, g, x->made);
  }
}

static void add_named(const wr_build *b, const wr_named *n)
{
  static const wr_record columns[] = {
      WR_RECORD(wr_named_sum, name, TEXT, "name", "name", WR_COLUMN_TEXT, 0),
      WR_RECORD(wr_named_sum, device, DEVICE, "device", "device", WR_COLUMN_TEXT, 0),
      NUMBER_OF(wr_named_sum, blocks, "blocks", "blocks", COUNT, 0),
      NUMBER_OF(wr_named_sum, bytes, "bytes", "allocated", BYTES, 0),
      NUMBER_OF(wr_named_sum, peak_bytes, "peak_bytes", "peak", BYTES, 0),
      NUMBER_OF(wr_named_sum, live_bytes, "live_at_exit_bytes", "live at exit", BYTES, 0),
      WR_RECORD(wr_named_sum, name, TEXT, "memory", "memory", WR_COLUMN_TEXT, 0)};
  const size_t plain = sizeof columns / sizeof *columns - 1;
  wr_named_table *t = WR_RECORDS(b->t, "named_memory", "Named memory", columns);
  for (size_t i = 0; i < n->count; i++) {
    wr_table_row(t);
    wr_record_put(t, columns, plain, &n->sum[i]);
    wr_table_put_text(t, wr_mem_name(n->sum[i].mem));
  }
}

void wr_add_model_calls(const wr_build *b, const wr_model *m)
{
  add_ranges(b, &m->ranges);
  add_graphs(b, &m->graphs);
  add_named(b, &m->named);
}
