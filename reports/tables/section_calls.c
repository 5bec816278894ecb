/* section_calls.c: functions, NVTX ranges and graphs, and the places in the program that call. */
#include <stdlib.h>
#include "reports/base/units.h"
#include "reports/tables/sections.h"

enum { FUNCTION_ROWS = 10, KERNEL_ROWS = 10, RANGE_ROWS = 12, GRAPH_ROWS = 12 };

/* ---- functions ------------------------------------------------------------------------------- */

/* A function's calls, or the first ones of them that brought up a context. */
typedef struct function_row {
  const wr_api_row *of;
  bool init;
  uint64_t calls, errors, bytes, ns, longest;
} function_row;

static int by_ns(const void *left, const void *right)
{
  const function_row *a = left, *b = right;
  if (a->ns != b->ns) return a->ns < b->ns ? 1 : -1;
  return a->of != b->of ? (a->of > b->of) - (a->of < b->of) : a->init - b->init;
}

static size_t function_rows(const wr_model *m, function_row *out)
{
  size_t n = 0;
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *a = &m->apis[i];
    bool later = a->calls > a->init_calls;
    if (a->counted) continue; /* wr_section_places() has all of its calls */
    if (a->init_calls)
      out[n++] = (function_row){.of = a,
                                .init = true,
                                .calls = a->init_calls,
                                .errors = later ? 0 : a->errors,
                                .bytes = a->init_bytes,
                                .ns = a->init_ns,
                                .longest = a->init_max_ns};
    if (later)
      out[n++] = (function_row){.of = a,
                                .calls = a->calls - a->init_calls,
                                .errors = a->errors,
                                .bytes = a->bytes - a->init_bytes,
                                .ns = a->ns - a->init_ns,
                                .longest = a->later_max_ns};
  }
  qsort(out, n, sizeof(*out), by_ns);
  return n;
}

/* The place that most of its time was in; how much of it, where there are several. */
static void put_function_place(wr_named_table *t, const function_row *r)
{
  const wr_api_row *a = r->of;
  if (r->init || !a->place) return;
  uint64_t ns = a->ns - a->init_ns;
  wr_put_frame(t, a->place);
  if (a->places > 1 && ns) wr_table_lead(t, "%s in ", wr_percent(a->place_ns, ns).text);
}

void wr_section_functions(const wr_sections *s)
{
  static const wr_column columns[] = {
      {"function", "function", WR_COLUMN_TEXT, 0},
      {"calls", "calls", WR_COLUMN_COUNT, 0},
      {"errors", "failed", WR_COLUMN_COUNT, WR_ZERO_DASH},
      {"bytes", "bytes", WR_COLUMN_BYTES, WR_ZERO_DASH},
      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
      {"mean_host_ns", "mean", WR_COLUMN_HOST_NS, 0},
      {"longest_host_ns", "longest", WR_COLUMN_HOST_NS, 0},
      {"place", "called in", WR_COLUMN_PLACE, WR_WITH_FOLDER | WR_BELOW}};
  const wr_model *m = s->m;
  function_row *rows = calloc(2 * m->api_count + 1, sizeof(*rows));
  size_t n = rows ? function_rows(m, rows) : 0;
  if (!rows) s->t->failed = true;
  wr_named_table *t = WR_TABLE(s->t, "functions", "Functions", columns);
  if (m->total.launches)
    wr_table_aside(t, "%s", OF(m->total.launches, "kernel launch", "kernel launches"));
  for (size_t i = 0; i < n; i++) {
    const function_row *r = &rows[i];
    wr_table_row(t);
    wr_table_put_words(t, r->init ? "initialisation, in %s" : "%s", r->of->name);
    WR_PUT(t, r->calls, r->errors, r->bytes, r->ns, r->ns / r->calls, r->longest);
    put_function_place(t, r);
  }
  wr_table_most(t, FUNCTION_ROWS, NULL, NULL);
  free(rows);
}

/* ---- kernels --------------------------------------------------------------------------------- */

void wr_section_kernels(const wr_sections *s)
{
  static const wr_column columns[] = {{"kernel", "kernel", WR_COLUMN_TEXT, 0},
                                      {"launches", "launches", WR_COLUMN_COUNT, 0},
                                      {"device_ns", "device time", WR_COLUMN_DEVICE_NS, 1},
                                      {"mean_device_ns", "mean", WR_COLUMN_DEVICE_NS, 1},
                                      {"longest_device_ns", "longest", WR_COLUMN_DEVICE_NS, 2}};
  const wr_kernels *k = &s->m->kernels;
  wr_named_table *t = WR_RUN_TABLE(s->t, "kernels", "Kernels", columns);
  wr_table_aside(t, "by name; launches by graphs included");
  for (size_t i = 0; i < k->count; i++) {
    const wr_kernel_sum *x = &k->sum[i];
    wr_table_row(t);
    wr_table_put_text(t, x->name ? x->name : "(not known)");
    wr_table_put(t, x->launches);
    wr_table_put_if(t, x->timed, x->device_ns);
    wr_table_put_if(t, x->timed, x->timed ? x->device_ns / x->timed : 0);
    wr_table_put_if(t, x->timed, x->longest_ns);
  }
  wr_table_most(t, wr_sections_rows(s, KERNEL_ROWS), NULL, NULL);
}

/* ---- ranges and graphs ----------------------------------------------------------------------- */

void wr_section_ranges(const wr_sections *s)
{
  static const wr_column columns[] = {
      {"range", "range", WR_COLUMN_TEXT, 0},
      {"ranges", "count", WR_COLUMN_COUNT, 0},
      {"host_ns", "time", WR_COLUMN_HOST_NS, 0},
      {"calls", "calls", WR_COLUMN_COUNT, 0},
      {"copy_bytes", "copied", WR_COLUMN_BYTES, 0},
      {"waits", "waits", WR_COLUMN_COUNT, 0},
      {"wait_host_ns", "waiting", WR_COLUMN_HOST_NS, 0},
      {"launches", "launches", WR_COLUMN_COUNT, 0},
      {"peak_bytes", "peak", WR_COLUMN_BYTES, WR_ZERO_DASH},
      {"device_ns", "on device", WR_COLUMN_DEVICE_NS, WR_ZERO_DASH}};
  const wr_named_ranges *r = &s->m->ranges;
  if (!r->count) return;
  size_t count = sizeof columns / sizeof *columns - !r->device_times;
  wr_named_table *t = wr_tables_add(s->t, "ranges", "By range", columns, count);
  wr_table_aside(t, "NVTX; with what is nested in it");
  for (size_t i = 0; i < r->count; i++) {
    const wr_range_sum *x = &r->sum[i];
    wr_table_row(t);
    wr_table_put_words(t, "%s%s%s", x->domain, *x->domain ? ":" : "",
                       *x->text ? x->text : "(no text)");
    WR_PUT(t, x->ranges, x->ns, x->calls);
    wr_table_put_if(t, x->copies, x->copy_bytes);
    wr_table_put(t, x->waits);
    wr_table_put_if(t, x->waits, x->wait_ns);
    WR_PUT(t, x->launches, x->peak_bytes, x->device_ns);
  }
  wr_table_most(t, wr_sections_rows(s, RANGE_ROWS), NULL, NULL);
}

static const char *graph_place(const wr_graphs *g, size_t place)
{
  return place && place <= g->places ? g->place[place] : "?";
}

void wr_section_graphs(const wr_sections *s)
{
  static const wr_column columns[] = {
      {"launches", "launches", WR_COLUMN_COUNT, 0},
      {"graphs", "graphs", WR_COLUMN_COUNT, 0},
      {"updates", "updates", WR_COLUMN_COUNT, 0},
      {"kernels", "kernels", WR_COLUMN_COUNT, 0},
      {"copy_bytes", "copied", WR_COLUMN_BYTES, 0},
      {"may_have_run", "may have run", WR_COLUMN_COUNT, WR_ZERO_DASH},
      {"launched_in", "launched in", WR_COLUMN_TEXT, WR_FLEXIBLE},
      {"made_in", "captured or made in", WR_COLUMN_TEXT, 0}};
  const wr_graphs *g = &s->m->graphs;
  if (!g->count) return;
  wr_named_table *t = WR_TABLE(s->t, "graphs", "Graphs", columns);
  wr_table_aside(t, "by place; what all launches ran together");
  for (size_t i = 0; i < g->count; i++) {
    const wr_graph_sum *x = &g->sum[i];
    wr_table_row(t);
    WR_PUT(t, x->launches, x->graphs, x->updates, x->kernels);
    wr_table_put_if(t, x->copies, x->copy_bytes);
    wr_table_put(t, x->maybe);
    wr_table_put_text(t, graph_place(g, x->launched));
    wr_table_put_text(t, graph_place(g, x->captured ? x->captured : x->made));
  }
  wr_table_most(t, wr_sections_rows(s, GRAPH_ROWS), NULL, NULL);
}

/* ---- places ---------------------------------------------------------------------------------- */

static const wr_place_columns wait_columns = {
    .unit = "waits", .time = true, .function = true, .where = "called in"};

static void add_wait_places(const wr_sections *s)
{
  const wr_wait_truth *w = &s->m->waits;
  wr_named_table *t = wr_places_table(s, "redundant_waits", "Waits that an earlier one had covered",
                                      &wait_columns, &s->m->redundant);
  wr_table_aside(t, "%s of %s, %s of host time", COUNT(w->redundant_calls),
                 COUNTED(w->judged_calls, "wait"), DURATION(w->redundant_ns));
  if (!w->wider_calls) return;
  t = wr_places_table(s, "wider_waits", "Waits for a whole device", &wait_columns, &s->m->wider);
  wr_table_aside(t,
                 "%s of %s, %s of host time: one stream alone had work; to wait for it, or for an"
                 " event recorded in it, would do",
                 COUNT(w->wider_calls), COUNTED(w->judged_calls, "wait"), DURATION(w->wider_ns));
}

static void add_asked(const wr_sections *s)
{
  static const wr_place_columns asked = {
      .unit = "calls", .time = true, .about = true, .function = true, .where = "called in"};
  wr_named_table *t =
      wr_places_table(s, "asked_places", "Asked again and again", &asked, &s->m->asked);
  wr_table_aside(t,
                 "calls that change nothing, from 64 of a thread at a place on; time estimated, by"
                 " one in 64");
}

void wr_section_places(const wr_sections *s)
{
  static const wr_place_columns copies = {.unit = "copies",
                                          .bytes = true,
                                          .time = true,
                                          .function = true,
                                          .direction = true,
                                          .where = "called in"};
  static const wr_place_columns allocs = {
      .unit = "allocs", .bytes = true, .time = true, .function = true, .where = "called in"};
  wr_places_table(s, "copy_places", "Places that copy", &copies, &s->m->copy);
  wr_places_table(s, "wait_places", "Places that wait", &wait_columns, &s->m->sync);
  add_wait_places(s);
  wr_places_table(s, "alloc_places", "Places that allocate", &allocs, &s->m->alloc);
  add_asked(s);
}

void wr_section_left(const wr_sections *s)
{
  static const wr_place_columns blocks = {.unit = "blocks", .bytes = true, .where = "allocated in"};
  static const wr_place_columns takes = {.unit = "calls", .bytes = true, .where = "called in"};
  const wr_model *m = s->m;
  char part[96] = "";
  wr_named_table *t = wr_places_table(s, "live_at_exit",
                                      m->finished ? "Live at exit" : "Live at the end of the trace",
                                      &blocks, &m->leak);
  if (m->leak.all > m->leak.count)
    (void)snprintf(part, sizeof(part), "; the first %zu of %zu", m->leak.count, m->leak.all);
  wr_table_aside(t, "%s in %s, never freed%s", BYTES(m->total.live_at_exit_bytes),
                 COUNTED(m->total.live_at_exit_blocks, "block"), part);
  wr_places_table(s, "taken_at_exit", "Code and contexts live at exit", &takes, &m->taken);
}
