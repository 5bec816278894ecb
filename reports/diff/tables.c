/* tables.c: a diff, and what came of a budget, as named tables. See report.h.
 *
 * Of the run, every metric that one of the traces has a value of; of devices, sites and ranges what
 * changed, the largest change first. Every list says what it leaves out. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/base/util.h"
#include "reports/diff/report.h"

enum { TOP = 5 };

typedef struct diff_builder {
  wr_tables *t;
  const wr_diff *d;
  size_t top;
  bool any_width;
} diff_builder;

/* ---- cells ----------------------------------------------------------------------------------- */

/* A value in the units of its metric: "12.0 MiB", "3", "1.50 ms". */
static wr_word in_unit(wr_metric m, uint64_t value)
{
  switch (wr_metric_rows[m].unit) {
  case WR_UNIT_BYTES:
    return wr_bytes(value);
  case WR_UNIT_TIME:
    return wr_duration(value);
  case WR_UNIT_COUNT:
    break;
  }
  return wr_count(value);
}

static wr_word change_of(wr_metric m, uint64_t a, uint64_t b)
{
  wr_word w = {"="};
  if (a != b)
    (void)snprintf(w.text, sizeof(w.text), "%c%.60s", b > a ? '+' : '-',
                   in_unit(m, b > a ? b - a : a - b).text);
  return w;
}

/* "+5.0 %" of what A had. */
static wr_word share_of(uint64_t a, uint64_t b)
{
  wr_word w = {""};
  if (a && a != b)
    (void)snprintf(w.text, sizeof(w.text), "%+.1f %%", 100 * ((double)b / (double)a - 1));
  return w;
}

/* "12 → 3", or where they are equal "12". */
static void put_both(wr_named_table *t, wr_metric m, const wr_pair *x)
{
  uint64_t a = wr_subject_value(x->a, m), b = wr_subject_value(x->b, m);
  if (a == b)
    wr_table_put_words(t, "%s", in_unit(m, a).text);
  else
    wr_table_put_words(t, "%s → %s", in_unit(m, a).text, in_unit(m, b).text);
}

/* "230", "226…237": the first and the last. */
static wr_word lines_words(const wr_lines *l)
{
  wr_word w = {""};
  if (l && l->count == 1) (void)snprintf(w.text, sizeof(w.text), ":%d", l->line[0]);
  if (l && l->count > 1)
    (void)snprintf(w.text, sizeof(w.text), ":%d…%d", l->line[0], l->line[l->count - 1]);
  return w;
}

/* A function, its file, and its lines; of both sides, where they differ. */
typedef struct side {
  const char *file; /* NULL: not known, or not there */
  const wr_lines *lines;
} side;

/* "  FILE:230", "  FILE:230 → :240", "  OLD:230 → NEW:240" (new). */
static char *path_words(const diff_builder *x, const side *a, const side *b)
{
  wr_word in_a = lines_words(a->lines), in_b = lines_words(b->lines);
  const char *from = a->file, *to = b->file;
  if (!*in_a.text && *in_b.text) from = NULL;
  if (!*in_b.text && *in_a.text) to = NULL;
  bool moved = from && to && strcmp(from, to) != 0;
  bool both = from && to && (moved || strcmp(in_a.text, in_b.text) != 0);
  if (from && !x->any_width) from = wr_short_path(from);
  if (to && !x->any_width) to = wr_short_path(to);
  if (!both) return wr_format("  %s%s", from ? from : to, from ? in_a.text : in_b.text);
  return wr_format("  %s%s → %s%s", from, in_a.text, moved ? to : "", in_b.text);
}

static void put_spot(const diff_builder *x, wr_named_table *t, const char *function,
                     const char *module, const side *a, const side *b)
{
  char *kept = a->file || b->file  ? path_words(x, a, b)
               : module && *module ? wr_format("  (%s)", module)
                                   : wr_format("%s", "");
  if (!kept) x->t->failed = true;
  wr_table_put_kept(t, function, kept ? kept : "");
  free(kept);
}

static void put_site(const diff_builder *x, wr_named_table *t, const wr_pair *pair, wr_lines_of of)
{
  const wr_subject *s = pair->b ? pair->b : pair->a;
  put_spot(x, t, s->name, s->known ? s->module : NULL, /* else its name has the module */
           &(side){pair->a ? pair->a->file : NULL, pair->a ? &pair->a->lines[of] : NULL},
           &(side){pair->b ? pair->b->file : NULL, pair->b ? &pair->b->lines[of] : NULL});
}

/* ---- the traces ------------------------------------------------------------------------------ */

static void add_trace(wr_named_table *t, const char *letter, const wr_figures *f)
{
  wr_table_before(t, false, "%s  %s  %s", letter, f->path, f->command);
  if (!f->finished) wr_table_before(t, true, "%s is not complete: its run has not ended", letter);
  if (f->nameless)
    wr_table_before(
        t, true,
        "%s of %s without a name: its program or library is gone, or was built anew since."
        " --symbols says where one is; 'weir resolve' ahead of that keeps the names",
        wr_counted(f->nameless, "site", "sites").text, letter);
}

/* ---- the run and devices --------------------------------------------------------------------- */

#define OF_BOTH_SIDES                                                                              \
  {"metric", "metric", WR_COLUMN_TEXT, WR_RIGID}, {"a", "A", WR_COLUMN_NUMBER, 0},                 \
      {"b", "B", WR_COLUMN_NUMBER, 0}, {"change", "change", WR_COLUMN_NUMBER, 0},                  \
  {                                                                                                \
    "of_a", "of A", WR_COLUMN_NUMBER, 0                                                            \
  }

static void put_metric(const wr_diff *d, wr_named_table *t, wr_metric m, const wr_pair *x)
{
  uint64_t a = wr_subject_value(x->a, m), b = wr_subject_value(x->b, m);
  bool known = !d->a.unknown[m] && !d->b.unknown[m];
  wr_table_put_text(t, wr_metric_rows[m].name);
  wr_table_put_words(t, "%s", d->a.unknown[m] ? "not known" : in_unit(m, a).text);
  wr_table_put_words(t, "%s", d->b.unknown[m] ? "not known" : in_unit(m, b).text);
  wr_table_put_words(t, "%s", known ? change_of(m, a, b).text : "");
  wr_table_put_words(t, "%s", known ? share_of(a, b).text : "");
}

/* One side has a value, and one side can have one. */
static bool is_worth_a_row(const wr_diff *d, wr_metric m, const wr_pair *x)
{
  if (d->a.unknown[m] && d->b.unknown[m]) return false;
  return wr_subject_value(x->a, m) || wr_subject_value(x->b, m);
}

static void add_run_metrics(const diff_builder *x)
{
  static const wr_column columns[] = {OF_BOTH_SIDES};
  wr_named_table *t = WR_TABLE(x->t, "run", "Run", columns);
  wr_table_aside(t, "times are host time");
  for (wr_metric m = 0; m < WR_METRICS; m++) {
    if (!is_worth_a_row(x->d, m, &x->d->pair[0])) continue;
    wr_table_row(t);
    put_metric(x->d, t, m, &x->d->pair[0]);
  }
}

static const wr_subject *any_of(const wr_pair *x)
{
  return x->a ? x->a : x->b;
}

/* With one device all is the run's. */
static void add_devices(const diff_builder *x)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_NUMBER, 0}, OF_BOTH_SIDES};
  size_t devices = 0;
  for (size_t i = 0; i < x->d->count; i++)
    devices += any_of(&x->d->pair[i])->of == WR_OF_DEVICE;
  if (devices < 2) return;
  wr_named_table *t = WR_TABLE(x->t, "devices", "Devices", columns);
  wr_table_look(t, WR_QUIET);
  wr_table_aside(t, "what changed");
  for (size_t i = 0; i < x->d->count; i++) {
    const wr_pair *pair = &x->d->pair[i];
    const wr_subject *any = any_of(pair);
    for (wr_metric m = 0; any->of == WR_OF_DEVICE && m < WR_METRICS; m++) {
      if (!(wr_metric_rows[m].of & WR_OF_DEVICE)) continue;
      if (wr_subject_value(pair->a, m) == wr_subject_value(pair->b, m)) continue;
      wr_table_row(t);
      wr_table_put(t, (uint64_t)any->device);
      put_metric(x->d, t, m, pair);
    }
  }
  if (t && !t->rows) wr_table_after(t, false, "Nothing changed.");
}

/* ---- sites and ranges ------------------------------------------------------------------------ */

static uint64_t distance(const wr_pair *x, wr_metric m)
{
  uint64_t a = wr_subject_value(x->a, m), b = wr_subject_value(x->b, m);
  return a > b ? a - b : b - a;
}

typedef struct ordering {
  wr_metric first, second;
} ordering;

static int by_change(const void *left, const void *right, void *context)
{
  const ordering *o = context;
  const wr_pair *const *a = left, *const *b = right;
  uint64_t x = distance(*a, o->first), y = distance(*b, o->first);
  if (x == y) x = distance(*a, o->second), y = distance(*b, o->second);
  if (x != y) return x < y ? 1 : -1;
  return *a < *b ? -1 : *a > *b;
}

static bool has_changed(const wr_pair *x, int of, const ordering *o)
{
  if (any_of(x)->of != of) return false;
  if (of != WR_OF_RANGE) return distance(x, o->first) || distance(x, o->second);
  for (wr_metric m = 0; m < WR_METRICS; m++)
    if (distance(x, m)) return true;
  return false;
}

/* The subjects of this kind that changed, the largest change first (new), and how many are
 * shown. */
static const wr_pair **changed(const diff_builder *b, int of, ordering o, size_t *count,
                               size_t *shown)
{
  const wr_pair **list = calloc(b->d->count + 1, sizeof(const wr_pair *));
  *count = 0;
  if (!list) b->t->failed = true;
  for (size_t i = 0; list && i < b->d->count; i++)
    if (has_changed(&b->d->pair[i], of, &o)) list[(*count)++] = &b->d->pair[i];
  if (list && *count > 1) qsort_r(list, *count, sizeof(const wr_pair *), by_change, &o);
  *shown = *count <= b->top + 1 ? *count : b->top; /* "1 more" is no shorter */
  return list;
}

static const struct by_site {
  const char *name, *title, *first_title, *second_title; /* NULL: one value alone */
  ordering by;
  wr_lines_of lines;
} by_site[] = {{"peak_by_site",
                "Live at the peak, by site",
                "bytes",
                NULL,
                {WR_METRIC_PEAK, WR_METRIC_PEAK},
                WR_LINES_PEAK},
               {"leaks_by_site",
                "Live at exit, by site",
                "bytes",
                "blocks",
                {WR_METRIC_LEAK_BYTES, WR_METRIC_LEAKS},
                WR_LINES_LEAKS},
               {"transfers_by_site",
                "Transfers, by site",
                "bytes",
                "copies",
                {WR_METRIC_COPY_BYTES, WR_METRIC_COPIES},
                WR_LINES_COPIES},
               {"waits_by_site",
                "Waits, by site",
                "waits",
                "host time",
                {WR_METRIC_WAITS, WR_METRIC_WAIT_TIME},
                WR_LINES_WAITS},
               {"allocations_by_site",
                "Allocations, by site",
                "allocations",
                "bytes",
                {WR_METRIC_ALLOCS, WR_METRIC_ALLOC_BYTES},
                WR_LINES_ALLOCS}};

static void add_by_site(const diff_builder *x, const struct by_site *how)
{
  size_t count, shown;
  const wr_pair **list = changed(x, WR_OF_SITE, how->by, &count, &shown);
  const wr_column columns[] = {{"first", how->first_title, WR_COLUMN_NUMBER, 0},
                               {"second", how->second_title, WR_COLUMN_NUMBER, 0},
                               {"site", "site", WR_COLUMN_TEXT, WR_FLEXIBLE}};
  const wr_column one[] = {columns[0], columns[2]};
  if (list && count) {
    wr_named_table *t = how->second_title ? WR_TABLE(x->t, how->name, how->title, columns)
                                          : WR_TABLE(x->t, how->name, how->title, one);
    for (size_t i = 0; i < shown; i++) {
      wr_table_row(t);
      put_both(t, how->by.first, list[i]);
      if (how->second_title) put_both(t, how->by.second, list[i]);
      put_site(x, t, list[i], how->lines);
    }
    if (count > shown)
      wr_table_after(t, false, "… and %s more that changed (--top)",
                     wr_counted(count - shown, "site", "sites").text);
  }
  free(list);
}

static void add_ranges(const diff_builder *x)
{
  static const wr_metric values[] = {WR_METRIC_DURATION, WR_METRIC_WAITS, WR_METRIC_COPY_BYTES,
                                     WR_METRIC_PEAK};
  static const wr_column columns[] = {{"time", "time", WR_COLUMN_NUMBER, 0},
                                      {"waits", "waits", WR_COLUMN_NUMBER, 0},
                                      {"copied", "copied", WR_COLUMN_NUMBER, 0},
                                      {"peak", "peak", WR_COLUMN_NUMBER, 0},
                                      {"range", "range", WR_COLUMN_TEXT, WR_FLEXIBLE}};
  size_t count, shown;
  const wr_pair **list =
      changed(x, WR_OF_RANGE, (ordering){WR_METRIC_DURATION, WR_METRIC_WAITS}, &count, &shown);
  if (list && count) {
    wr_named_table *t = WR_TABLE(x->t, "ranges", "Ranges", columns);
    wr_table_aside(t, "host time, and what was called within");
    for (size_t i = 0; i < shown; i++) {
      const wr_subject *any = any_of(list[i]);
      wr_table_row(t);
      for (size_t m = 0; m < sizeof(values) / sizeof(values[0]); m++)
        put_both(t, values[m], list[i]);
      wr_table_put_words(t, "%s%s%s%s", any->domain, *any->domain ? "/" : "", any->name,
                         !list[i]->a   ? " (only in B)"
                         : !list[i]->b ? " (only in A)"
                                       : "");
    }
    if (count > shown)
      wr_table_after(t, false, "… and %s that changed (--top)",
                     wr_counted(count - shown, "more range", "more ranges").text);
  }
  free(list);
}

/* ---- findings -------------------------------------------------------------------------------- */

static wr_word waste_words(const wr_wasted *w, bool time)
{
  wr_word none = {"-"};
  if (!w) return none;
  return time ? wr_duration(w->saving_ns) : wr_bytes(w->saving_bytes);
}

static void put_waste(const diff_builder *b, wr_named_table *t, const wr_waste_pair *x)
{
  const wr_wasted *w = x->b ? x->b : x->a;
  bool time = (x->a && x->a->saving_ns) || (x->b && x->b->saving_ns);
  if (!w) return; /* a pair has a side */
  wr_table_row(t);
  wr_table_put_text(t, wr_fate_name(x->fate));
  wr_table_put_text(t, wr_certainty_name(w->certainty));
  wr_table_put_words(t, "%s", waste_words(x->a, time).text);
  wr_table_put_words(t, "%s", waste_words(x->b, time).text);
  wr_table_put_text(t, w->rule->id);
  if (*w->function)
    put_spot(b, t, w->function, NULL, &(side){x->a ? x->a->file : NULL, x->a ? &x->a->lines : NULL},
             &(side){x->b ? x->b->file : NULL, x->b ? &x->b->lines : NULL});
  else
    wr_table_put_text(t, "several places");
}

static void add_findings(const diff_builder *x)
{
  static const wr_column columns[] = {
      {"state", "", WR_COLUMN_TEXT, WR_RIGID}, {"certainty", "", WR_COLUMN_TEXT, WR_RIGID},
      {"a", "A", WR_COLUMN_NUMBER, 0},         {"b", "B", WR_COLUMN_NUMBER, 0},
      {"rule", "rule", WR_COLUMN_TEXT, 0},     {"site", "site", WR_COLUMN_TEXT, WR_FLEXIBLE}};
  const wr_diff *d = x->d;
  size_t of[WR_UNJUDGED + 1] = {0};
  for (size_t i = 0; i < d->waste_count; i++)
    of[d->waste[i].fate]++;
  wr_named_table *t = WR_TABLE(x->t, "findings", "Findings", columns);
  wr_table_look(t, WR_QUIET);
  if (d->waste_count)
    wr_table_aside(t, "by rule and site: %zu gone, %zu new, %zu stay; what each saves at most",
                   of[WR_GONE], of[WR_NEW], of[WR_STAYS]);
  if (!d->a.judged)
    wr_table_before(t, true, "A's are not known: %s", d->a.unknown[WR_METRIC_FINDINGS]);
  if (!d->b.judged)
    wr_table_before(t, true, "B's are not known: %s", d->b.unknown[WR_METRIC_FINDINGS]);
  if (!d->waste_count && d->a.judged && d->b.judged) wr_table_before(t, false, "Neither has any.");
  for (size_t i = 0; i < d->waste_count; i++)
    put_waste(x, t, &d->waste[i]);
  if (of[WR_UNJUDGED])
    wr_table_after(t, false, "not judged: of the other trace the rule could say nothing");
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* What a value was compared with: "<= 12.0 GiB". */
static wr_word limit_words(const wr_verdict *v)
{
  wr_word w;
  const wr_condition *c = v->condition;
  bool minus = v->limit < 0;
  long double size = minus ? -v->limit : v->limit;
  uint64_t whole = size < 1.8e19L ? (uint64_t)size : UINT64_MAX;
  bool exact = wr_metric_rows[c->metric].unit != WR_UNIT_COUNT || size <= (long double)whole;
  if (exact)
    (void)snprintf(w.text, sizeof(w.text), "%s %s%.50s", wr_comparison_text(c->comparison),
                   minus ? "-" : "", in_unit(c->metric, whole).text);
  else
    (void)snprintf(w.text, sizeof(w.text), "%s %s%.2Lf", wr_comparison_text(c->comparison),
                   minus ? "-" : "", size);
  return w;
}

/* `exact`: to the last byte, where a limit is exceeded: it may be by a few. */
static wr_word value_words(const wr_verdict *v, bool exact)
{
  wr_word w = in_unit(v->condition->metric, v->value);
  bool rounded = wr_metric_rows[v->condition->metric].unit == WR_UNIT_BYTES && v->value >= 1024;
  size_t used = strlen(w.text);
  if (exact && rounded)
    (void)snprintf(w.text + used, sizeof(w.text) - used, " (%.30s B)", wr_count(v->value).text);
  return w;
}

static void add_verdict_notes(wr_named_table *t, const wr_verdicts *v)
{
  for (size_t i = 0; i < v->count; i++)
    if (v->verdict[i].note)
      wr_table_after(t, !v->verdict[i].known, "%s: %s", v->verdict[i].condition->text,
                     v->verdict[i].note);
}

static void add_conditions(const diff_builder *x)
{
  static const wr_column columns[] = {{"state", "", WR_COLUMN_TEXT, WR_RIGID},
                                      {"condition", "condition", WR_COLUMN_TEXT, WR_FLEXIBLE},
                                      {"b", "B", WR_COLUMN_NUMBER, 0},
                                      {"limit", "fails if", WR_COLUMN_NUMBER, 0}};
  const wr_verdicts *v = &x->d->verdicts;
  if (!v->count) return;
  wr_named_table *t = WR_TABLE(x->t, "conditions", "Conditions to fail on", columns);
  wr_table_aside(t, "%zu of %zu met", v->met, v->count);
  for (size_t i = 0; i < v->count; i++) {
    const wr_verdict *one = &v->verdict[i];
    wr_table_row(t);
    wr_table_put_text(t, !one->known ? "not known" : one->met ? "MET" : "not met");
    wr_table_put_text(t, one->condition->text);
    wr_table_put_words(t, "%s", one->known ? value_words(one, one->met).text : "-");
    wr_table_put_words(t, "%s", one->known ? limit_words(one).text : "-");
  }
  add_verdict_notes(t, v);
}

/* ---- all ------------------------------------------------------------------------------------- */

void wr_diff_tables(wr_tables *t, const wr_diff *d, int top, bool any_width)
{
  diff_builder x = {t, d, top > 0 ? (size_t)top : TOP, any_width};
  t->report = "weir diff";
  if (!(t->trace = wr_format("%s", d->b.path))) t->failed = true;
  wr_named_table *traces = wr_tables_add_sentences(t, "traces", "");
  add_trace(traces, "A", &d->a);
  add_trace(traces, "B", &d->b);
  add_run_metrics(&x);
  add_devices(&x);
  add_findings(&x);
  for (size_t i = 0; i < sizeof(by_site) / sizeof(by_site[0]); i++)
    add_by_site(&x, &by_site[i]);
  add_ranges(&x);
  add_conditions(&x);
}

/* "leaks.bytes is 64.0 KiB (65536 B), and the limit is == 0 B" */
static void put_exceeded(wr_named_table *t, const wr_verdict *v)
{
  static const char *const units[] = {
      [WR_UNIT_BYTES] = " B)", [WR_UNIT_COUNT] = "", [WR_UNIT_TIME] = " ns)"};
  const wr_metric_row *m = &wr_metric_rows[v->condition->metric];
  char exact[32] = "";
  if (m->unit != WR_UNIT_COUNT)
    (void)snprintf(exact, sizeof(exact), " (%llu", (unsigned long long)v->value);
  wr_table_put_words(t, "%s is %s%s%s, and the limit is %s", m->name,
                     in_unit(v->condition->metric, v->value).text, exact, units[m->unit],
                     limit_words(v).text);
}

void wr_check_tables(wr_tables *t, const wr_checked *c)
{
  static const wr_column columns[] = {
      {"state", "", WR_COLUMN_TEXT, WR_RIGID},        {"line", "line", WR_COLUMN_NUMBER, 0},
      {"name", "limit", WR_COLUMN_TEXT, WR_FLEXIBLE}, {"value", "value", WR_COLUMN_NUMBER, 0},
      {"failure", "", WR_COLUMN_TEXT, WR_IN_DATA},    {"type", "", WR_COLUMN_TEXT, WR_IN_DATA}};
  const wr_verdicts *v = c->verdicts;
  t->report = "weir check";
  if (!(t->trace = wr_format("%s", c->figures->path))) t->failed = true;
  wr_named_table *head = wr_tables_add_sentences(t, "trace", "");
  wr_table_before(head, false, "%s  %s", c->figures->path, c->figures->command);
  if (!c->figures->finished)
    wr_table_before(head, true, "the trace is not complete: its run has not ended");
  wr_named_table *limits = WR_TABLE(t, "limits", c->budget, columns);
  wr_table_aside(limits, "%s, %zu kept, %zu exceeded, %zu not known",
                 wr_counted(v->count, "limit", "limits").text, v->met,
                 v->count - v->met - v->unknown, v->unknown);
  for (size_t i = 0; i < v->count; i++) {
    const wr_verdict *x = &v->verdict[i];
    wr_table_row(limits);
    wr_table_put_text(limits, !x->known ? "not known" : x->met ? "kept" : "EXCEEDED");
    wr_table_put(limits, x->condition->line);
    wr_table_put_text(limits, x->condition->text);
    wr_table_put_words(limits, "%s", x->known ? value_words(x, !x->met).text : "-");
    if (x->met) continue;
    if (x->known)
      put_exceeded(limits, x);
    else
      wr_table_put_text(limits, x->note);
    wr_table_put_text(limits, x->known ? "exceeded" : "not known");
  }
  add_verdict_notes(limits, v);
}
