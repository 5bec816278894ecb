/* data.c: a diff, and what came of a budget, as tables for programs: of "weir-report/2" (SCHEMA.md,
 * "Reports in tables"). See report.h.
 *
 * A column that ends in _a is of the trace before, one in _b of the one after; null: it is not
 * known, or the trace has no such device, site, range or finding. */
#include "reports/base/util.h"
#include "reports/diff/report.h"

static const wr_column values[] = {{"metric", "metric", WR_COLUMN_TEXT, 0},
                                   {"a", "A", WR_COLUMN_NUMBER, 0},
                                   {"b", "B", WR_COLUMN_NUMBER, 0}};

static const wr_column site_lines[] = {{"trace", "trace", WR_COLUMN_TEXT, 0},
                                       {"of", "of", WR_COLUMN_TEXT, 0},
                                       {"line", "line", WR_COLUMN_NUMBER, 0}};

/* ---- the traces ------------------------------------------------------------------------------ */

static void put_trace(wr_named_table *t, const char *side, const wr_figures *f)
{
  wr_table_row(t);
  wr_table_put_text(t, side);
  wr_table_put_text(t, f->path);
  wr_table_put_text(t, f->command);
  WR_PUT(t, f->finished, f->judged);
}

static wr_named_table *add_traces(wr_tables *t, const char *report, const wr_figures *of)
{
  static const wr_column columns[] = {{"side", "side", WR_COLUMN_TEXT, 0},
                                      {"trace", "trace", WR_COLUMN_TEXT, 0},
                                      {"command", "command", WR_COLUMN_TEXT, 0},
                                      {"complete", "complete", WR_COLUMN_TRUTH, 0},
                                      {"findings_judged", "findings", WR_COLUMN_TRUTH, 0}};
  t->report = report;
  if (!(t->trace = wr_format("%s", of->path))) t->failed = true;
  return WR_TABLE(t, "traces", "Traces", columns);
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* A row for each metric that the subject can have. */
static void put_metrics(wr_named_table *t, const wr_diff *d, const wr_pair *x)
{
  int of = (x->a ? x->a : x->b)->of;
  for (wr_metric m = 0; m < WR_METRICS; m++) {
    if (!(wr_metric_rows[m].of & of)) continue;
    wr_table_row(t);
    wr_table_put_text(t, wr_metric_rows[m].name);
    wr_table_put_if(t, x->a && !d->a.unknown[m], wr_subject_value(x->a, m));
    wr_table_put_if(t, x->b && !d->b.unknown[m], wr_subject_value(x->b, m));
  }
}

static void put_lines(wr_named_table *t, const char *trace, const char *of, const wr_lines *l)
{
  for (size_t i = 0; l && i < l->count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, trace);
    wr_table_put_text(t, of);
    wr_table_put(t, (uint64_t)l->line[i]);
  }
}

static void put_site_lines(wr_named_table *t, const char *trace, const wr_subject *x)
{
  static const char *const of[] = {[WR_LINES_PEAK] = "peak",
                                   [WR_LINES_LEAKS] = "leaks",
                                   [WR_LINES_COPIES] = "transfers",
                                   [WR_LINES_WAITS] = "waits",
                                   [WR_LINES_ALLOCS] = "allocations"};
  for (int i = 0; x && i < WR_LINES_LISTS; i++)
    put_lines(t, trace, of[i], &x->lines[i]);
}

/* What a subject is called, in the columns of its table. */
static void put_subject(wr_named_table *t, const wr_pair *x)
{
  const wr_subject *any = x->b ? x->b : x->a;
  if (any->of == WR_OF_DEVICE) wr_table_put(t, (uint64_t)any->device);
  if (any->of == WR_OF_RANGE) wr_table_put_text(t, any->domain);
  if (any->of != WR_OF_DEVICE) wr_table_put_text(t, any->name);
  if (any->of != WR_OF_SITE) return;
  wr_table_put_text(t, any->module);
  wr_table_put_text(t, x->a ? x->a->file : NULL);
  wr_table_put_text(t, x->b ? x->b->file : NULL);
  wr_named_table *lines = wr_table_put_rows(t, site_lines, 3);
  put_site_lines(lines, "a", x->a);
  put_site_lines(lines, "b", x->b);
}

static void put_subjects(wr_named_table *t, const wr_diff *d, int of)
{
  for (size_t i = 0; i < d->count; i++) {
    const wr_pair *x = &d->pair[i];
    if ((x->a ? x->a : x->b)->of != of) continue;
    wr_table_row(t);
    put_subject(t, x);
    WR_PUT(t, x->a != NULL, x->b != NULL);
    put_metrics(wr_table_put_rows(t, values, 3), d, x);
  }
}

#define OF_A_PAIR                                                                                  \
  {"in_a", "in A", WR_COLUMN_TRUTH, 0}, {"in_b", "in B", WR_COLUMN_TRUTH, 0},                      \
  {                                                                                                \
    "metrics", "metrics", WR_COLUMN_ROWS, 0                                                        \
  }

static void add_subjects(wr_tables *t, const wr_diff *d)
{
  static const wr_column devices[] = {{"device", "device", WR_COLUMN_ID, 0}, OF_A_PAIR};
  static const wr_column sites[] = {
      {"function", "function", WR_COLUMN_TEXT, 0}, {"module", "module", WR_COLUMN_TEXT, 0},
      {"file_a", "file in A", WR_COLUMN_TEXT, 0},  {"file_b", "file in B", WR_COLUMN_TEXT, 0},
      {"lines", "lines", WR_COLUMN_ROWS, 0},       OF_A_PAIR};
  static const wr_column ranges[] = {
      {"domain", "domain", WR_COLUMN_TEXT, 0}, {"text", "range", WR_COLUMN_TEXT, 0}, OF_A_PAIR};
  put_metrics(WR_TABLE(t, "metrics", "Run", values), d, &d->pair[0]);
  put_subjects(WR_TABLE(t, "device_metrics", "Devices", devices), d, WR_OF_DEVICE);
  put_subjects(WR_TABLE(t, "site_metrics", "Sites", sites), d, WR_OF_SITE);
  put_subjects(WR_TABLE(t, "range_metrics", "Ranges", ranges), d, WR_OF_RANGE);
}

/* ---- findings -------------------------------------------------------------------------------- */

#define WASTED(letter, side)                                                                       \
  {"in_" letter, "in " side, WR_COLUMN_TRUTH, 0},                                                  \
      {"certainty_" letter, "certainty in " side, WR_COLUMN_TEXT, 0},                              \
      {"findings_" letter, "findings in " side, WR_COLUMN_COUNT, 0},                               \
      {"count_" letter, "count in " side, WR_COLUMN_COUNT, 0},                                     \
      {"saving_host_ns_" letter, "saving in " side, WR_COLUMN_HOST_NS, 0},                         \
      {"saving_bytes_" letter, "bytes in " side, WR_COLUMN_BYTES, 0},                              \
  {                                                                                                \
    "file_" letter, "file in " side, WR_COLUMN_TEXT, 0                                             \
  }

static void put_wasted(wr_named_table *t, const wr_wasted *w)
{
  wr_table_put(t, w != NULL);
  wr_table_put_text(t, w ? wr_certainty_name(w->certainty) : NULL);
  wr_table_put_if(t, w, w ? w->findings : 0);
  wr_table_put_if(t, w, w ? w->count : 0);
  wr_table_put_if(t, w, w ? w->saving_ns : 0);
  wr_table_put_if(t, w, w ? w->saving_bytes : 0);
  wr_table_put_text(t, w ? w->file : NULL);
}

static void add_waste(wr_tables *t, const wr_diff *d)
{
  static const char *const fates[] = {"gone", "new", "stays", "not_judged"};
  static const wr_column columns[] = {{"state", "state", WR_COLUMN_TEXT, 0},
                                      {"rule", "rule", WR_COLUMN_ID, 0},
                                      {"id", "id", WR_COLUMN_TEXT, 0},
                                      {"title", "title", WR_COLUMN_TEXT, 0},
                                      {"function", "function", WR_COLUMN_TEXT, 0},
                                      WASTED("a", "A"),
                                      WASTED("b", "B"),
                                      {"lines", "lines", WR_COLUMN_ROWS, 0}};
  wr_named_table *found = WR_TABLE(t, "finding_changes", "Findings", columns);
  for (size_t i = 0; i < d->waste_count; i++) {
    const wr_waste_pair *x = &d->waste[i];
    const wr_wasted *any = x->b ? x->b : x->a;
    wr_table_row(found);
    wr_table_put_text(found, fates[x->fate]);
    wr_table_put(found, (uint64_t)any->rule->number);
    wr_table_put_text(found, any->rule->id);
    wr_table_put_text(found, any->rule->title);
    wr_table_put_text(found, *any->function ? any->function : NULL);
    put_wasted(found, x->a);
    put_wasted(found, x->b);
    wr_named_table *lines = wr_table_put_rows(found, site_lines, 3);
    put_lines(lines, "a", any->rule->id, x->a ? &x->a->lines : NULL);
    put_lines(lines, "b", any->rule->id, x->b ? &x->b->lines : NULL);
  }
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void add_verdicts(wr_tables *t, const wr_verdicts *v)
{
  static const wr_column columns[] = {
      {"line", "line", WR_COLUMN_NUMBER, 0},   {"condition", "condition", WR_COLUMN_TEXT, 0},
      {"metric", "metric", WR_COLUMN_TEXT, 0}, {"met", "met", WR_COLUMN_TRUTH, 0},
      {"value", "value", WR_COLUMN_NUMBER, 0}, {"limit", "limit", WR_COLUMN_REAL, 0},
      {"note", "note", WR_COLUMN_TEXT, 0}};
  wr_named_table *conditions = WR_TABLE(t, "conditions", "Conditions", columns);
  for (size_t i = 0; i < v->count; i++) {
    const wr_verdict *x = &v->verdict[i];
    wr_table_row(conditions);
    wr_table_put_if(conditions, x->condition->line > 0, (uint64_t)x->condition->line);
    wr_table_put_text(conditions, x->condition->text);
    wr_table_put_text(conditions, wr_metric_rows[x->condition->metric].name);
    wr_table_put_if(conditions, x->known, x->met);
    wr_table_put_if(conditions, x->known, x->value);
    if (x->known)
      wr_table_put_real(conditions, (double)x->limit);
    else
      wr_table_put_none(conditions);
    wr_table_put_text(conditions, x->note);
  }
}

void wr_diff_data(wr_tables *t, const wr_diff *d)
{
  wr_named_table *traces = add_traces(t, "diff", &d->b);
  put_trace(traces, "a", &d->a);
  put_trace(traces, "b", &d->b);
  add_subjects(t, d);
  add_waste(t, d);
  add_verdicts(t, &d->verdicts);
}

void wr_check_data(wr_tables *t, const wr_checked *c)
{
  put_trace(add_traces(t, "check", c->figures), "b", c->figures);
  add_verdicts(t, c->verdicts);
}
