/* summary.c: the summary in tables: what its CSV and Markdown are, by whatever is asked for, of
 * the run or a part. */
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/import/lifetime.h"
#include "reports/model/model.h"
#include "reports/tables/build.h"
#include "reports/tables/sections.h"
#include "reports/whole/whole.h"

enum { TOP_PLACES = 20 /* of a list, where no other number is asked for */ };

/* ---- totals ---------------------------------------------------------------------------------- */

static const wr_column total_columns[] = {{"total", "total", WR_COLUMN_TEXT, 0},
                                          {"value", "value", WR_COLUMN_NUMBER, 0},
                                          {"unit", "unit", WR_COLUMN_TEXT, 0}};

static bool ends_with(const char *text, const char *end)
{
  size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

static void put_named_total(wr_named_table *t, const char *name, uint64_t n)
{
  wr_table_row(t);
  wr_table_put_text(t, name);
  wr_table_put(t, n);
  wr_table_put_text(t, ends_with(name, "_at_ns")   ? "ns since the run began"
                       : ends_with(name, "_ns")    ? "ns of host time"
                       : ends_with(name, "_bytes") ? "bytes"
                                                   : "count");
}

static void add_all_totals(const wr_build *b, const wr_totals *x)
{
  wr_named_table *t = WR_TABLE(b->t, "totals", "Totals", total_columns);
  wr_table_look(t, WR_MEMBERS);
#define PUT(name) put_named_total(t, #name, x->name);
  WR_TOTAL_MAP(PUT)
#undef PUT
}

static bool is_launch(const wr_activity_cell *cell)
{
  return cell->common.kind == WEIR_EV_LAUNCH;
}

static bool is_memset(const wr_activity_cell *cell)
{
  return cell->common.kind == WEIR_EV_MEMSET;
}

static bool is_device_alloc(const wr_activity_cell *cell)
{
  return cell->common.kind == WEIR_EV_ALLOC && wr_mem_device_side((int)cell->common.mem);
}

static bool is_host_alloc(const wr_activity_cell *cell)
{
  return cell->common.kind == WEIR_EV_ALLOC && cell->common.mem != WEIR_MEM_IMPORTED &&
         !wr_mem_device_side((int)cell->common.mem);
}

static wr_activity_sums sum_cells(const wr_activity *a, wr_cell_takes takes)
{
  wr_activity_sums all = {0};
  for (size_t i = 0; i < a->count; i++)
    if (takes(&a->cell[i])) wr_activity_add(&all, &a->cell[i].sums);
  return all;
}

/* Those totals that are of calls: of a part of the run there are no others here. */
static void add_part_totals(const wr_build *b, const wr_activity *a)
{
  static const struct {
    const char *calls, *bytes;
    wr_cell_takes takes;
  } kinds[] = {{"alloc_calls", "alloc_bytes", is_device_alloc},
               {"pinned_alloc_calls", "pinned_alloc_bytes", is_host_alloc},
               {"memset_calls", "memset_bytes", is_memset},
               {"launches", NULL, is_launch}};
  wr_named_table *t = WR_TABLE(b->t, "totals", "Totals", total_columns);
  wr_table_look(t, WR_MEMBERS);
  wr_activity_sums waits = sum_cells(a, wr_cell_any);
  char name[32];
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    wr_activity_sums s = sum_cells(a, kinds[i].takes);
    put_named_total(t, kinds[i].calls, s.calls);
    if (kinds[i].bytes) put_named_total(t, kinds[i].bytes, s.bytes);
  }
  for (int d = 0; d < WR_DIRECTIONS; d++) {
    wr_activity_sums s = {0};
    for (size_t i = 0; i < a->count; i++)
      if (wr_cell_copies(&a->cell[i]) && wr_direction_index(a->cell[i].common.copy) == d)
        wr_activity_add(&s, &a->cell[i].sums);
    const char *of = d + 1 == WR_DIRECTIONS ? "other_copy" : wr_direction_names[d];
    (void)snprintf(name, sizeof(name), "%s_calls", of);
    put_named_total(t, name, s.calls);
    (void)snprintf(name, sizeof(name), "%s_bytes", of);
    put_named_total(t, name, s.bytes);
  }
  put_named_total(t, "sync_explicit_calls", waits.explicit_calls);
  put_named_total(t, "sync_explicit_ns", waits.explicit_ns);
  put_named_total(t, "sync_implicit_calls", waits.implicit_calls);
  put_named_total(t, "sync_implicit_ns", waits.implicit_ns);
  put_named_total(t, "init_calls", a->init_calls);
  put_named_total(t, "init_ns", a->init_ns);
}

/* ---- by group -------------------------------------------------------------------------------- */

#define WORK(name, title, type, extra, takes, sum)                                                 \
  {                                                                                                \
    {name, title, type, extra}, WR_MEASURE_SUM, takes, WR_SUM_OF(sum), 0, false                    \
  }

static weir_status add_work(const wr_build *b, const wr_activity *a)
{
  wr_measure measures[] = {
      WORK("host_ns", "host time in calls", WR_COLUMN_HOST_NS, 0, wr_cell_any, host_ns),
      WORK("launches", "launches", WR_COLUMN_COUNT, 0, is_launch, calls),
      WORK("launch_host_ns", "host time launching", WR_COLUMN_HOST_NS, 4, is_launch, host_ns),
      WORK("copies", "copies", WR_COLUMN_COUNT, 0, wr_cell_copies, calls),
      WORK("copy_bytes", "copied", WR_COLUMN_BYTES, 0, wr_cell_copies, bytes),
      WORK("memsets", "memsets", WR_COLUMN_COUNT, 5, is_memset, calls),
      WORK("memset_bytes", "set", WR_COLUMN_BYTES, 6, is_memset, bytes),
      WORK("allocations", "allocations", WR_COLUMN_COUNT, 2, is_device_alloc, calls),
      WORK("alloc_bytes", "allocated", WR_COLUMN_BYTES, 3, is_device_alloc, bytes),
      WORK("explicit_host_ns", "host time in waits", WR_COLUMN_HOST_NS, 1, wr_cell_any,
           explicit_ns),
      WORK("implicit_host_ns", "host time that may wait", WR_COLUMN_HOST_NS, 1, wr_cell_any,
           implicit_ns),
      WORK("device_ns", "device time", WR_COLUMN_DEVICE_NS, 1, wr_cell_any, device_ns)};
  size_t count = sizeof measures / sizeof *measures;
  measures[count - 1].unknown = !a->device_times;
  return wr_build_grouped(b, a, "work", "Work", measures, count);
}

/* ---- functions ------------------------------------------------------------------------------- */

static void add_functions(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {
      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
      {"calls", "calls", WR_COLUMN_COUNT, 0},
      {"errors", "errors", WR_COLUMN_COUNT, 3},
      {"longest_host_ns", "longest", WR_COLUMN_HOST_NS, 2},
      {"bytes", "bytes", WR_COLUMN_BYTES, 1},
      {"explicit_host_ns", "in waits asked for", WR_COLUMN_HOST_NS, 4},
      {"implicit_host_ns", "that may wait", WR_COLUMN_HOST_NS, 4},
      {"layer", "layer", WR_COLUMN_TEXT, 5},
      {"function", "function", WR_COLUMN_TEXT, 0},
      {"place", "called in", WR_COLUMN_PLACE, 5},
      {"category", "category", WR_COLUMN_TEXT, WR_IN_JSON},
      {"explicit_calls", "waits asked for", WR_COLUMN_COUNT, WR_IN_JSON},
      {"implicit_calls", "calls that may wait", WR_COLUMN_COUNT, WR_IN_JSON},
      {"init_calls", "initialisation", WR_COLUMN_COUNT, WR_IN_JSON},
      {"init_host_ns", "host time initialising", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"place_calls", "calls from there", WR_COLUMN_COUNT, WR_IN_JSON},
      {"place_host_ns", "host time from there", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"places", "places", WR_COLUMN_COUNT, WR_IN_JSON}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "functions", "Functions", columns);
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *x = &m->apis[i];
    wr_table_row(t);
    wr_table_put(t, x->ns);
    wr_table_put(t, x->calls);
    wr_table_put(t, x->errors);
    wr_table_put(t, x->max_ns);
    wr_table_put(t, x->bytes);
    wr_table_put(t, x->sync_ns);
    wr_table_put(t, x->implicit_ns);
    wr_table_put_text(t, x->layer);
    wr_table_put_text(t, x->name);
    const wr_frame_name *at = x->place;
    wr_table_put_place(t, at ? at->function : NULL, at ? at->file : NULL, at ? at->line : 0);
    if (at) wr_table_module(t, at->module);
    wr_table_put_text(t, x->category);
    WR_PUT(t, x->sync_calls, x->implicit_calls, x->init_calls, x->init_ns);
    wr_table_put_if(t, at != NULL, x->place_calls);
    wr_table_put_if(t, at != NULL, x->place_ns);
    wr_table_put(t, x->places);
  }
}

/* Totals of the part, and its work by group: by what the events are, which takes a pass over
 * them. */
static weir_status add_activity(const wr_build *b, const wr_model *m)
{
  wr_activity a;
  wr_activity_wants wants = {.ranges = b->o->by == WEIR_BY_RANGE};
  weir_status s = wr_activity_load(&a, b->db, b->scope, &wants);
  if (s) return s;
  if (b->scope->any)
    add_part_totals(b, &a);
  else
    add_all_totals(b, &m->total);
  s = add_work(b, &a);
  wr_activity_free(&a);
  return s;
}

weir_status wr_build_summary(const wr_build *b)
{
  bool all = b->o->format == WEIR_REPORT_JSON, plain = all && !b->scope->any && !b->o->by;
  bool detail = all || (b->o->table && b->o->format != WEIR_REPORT_JSON_1);
  int top = b->o->top > 0 ? b->o->top : TOP_PLACES;
  wr_model m = {0};
  weir_status s =
      wr_whole_model(&m, b->db, detail ? top : 1); /* first: of an incomplete trace it makes much */
  if (s) return s;
  if (plain && !b->o->table)
    add_all_totals(b, &m.total);
  else
    s = add_activity(b, &m);
  if (!s) {
    add_functions(b, &m);
    wr_section_kernels(&(wr_sections){.t = b->t, .m = &m, .top = SIZE_MAX, .top_asked = true});
    if (detail) wr_add_model(b, &m);
  }
  wr_model_free(&m);
  return s;
}
