/* diff_render.c: a diff as text and as Markdown. See diff_render.h.
 *
 * Of the run, every metric that one of the traces has a value of; of devices, sites and ranges what
 * changed, the largest change first. Every list says what it leaves out. */
#include "reports/render/diff_render.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { TOP = 5 };

/* ---- cells ----------------------------------------------------------------------------------- */

wr_word wr_in_unit(wr_metric m, uint64_t value)
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
                   wr_in_unit(m, b > a ? b - a : a - b).text);
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
static void both_cell(wr_page *p, wr_metric m, const wr_pair *x)
{
  uint64_t a = wr_subject_value(x->a, m), b = wr_subject_value(x->b, m);
  if (a == b)
    CELL(p, "%s", wr_in_unit(m, a).text);
  else
    CELL(p, "%s → %s", wr_in_unit(m, a).text, wr_in_unit(m, b).text);
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

/* The last two parts of a path: enough to find it, short enough to read. */
static const char *short_path(const char *path)
{
  const char *part = wr_file_name(path);
  if (part < path + 2) return part;
  for (part--; part > path && part[-1] != '/';)
    part--;
  return part;
}

/* A function, its file, and its lines; of both sides, where they differ. */
typedef struct side {
  const char *file; /* NULL: not known, or not there */
  const wr_lines *lines;
} side;

/* "  FILE:230", "  FILE:230 → :240", "  OLD:230 → NEW:240" (new). */
static char *path_words(const wr_page *p, const side *a, const side *b)
{
  wr_word in_a = lines_words(a->lines), in_b = lines_words(b->lines);
  const char *from = a->file, *to = b->file;
  if (!*in_a.text && *in_b.text) from = NULL;
  if (!*in_b.text && *in_a.text) to = NULL;
  bool moved = from && to && strcmp(from, to) != 0;
  bool both = from && to && (moved || strcmp(in_a.text, in_b.text) != 0);
  if (from && p->width > 0) from = short_path(from);
  if (to && p->width > 0) to = short_path(to);
  if (!both) return wr_format("  %s%s", from ? from : to, from ? in_a.text : in_b.text);
  return wr_format("  %s%s → %s%s", from, in_a.text, moved ? to : "", in_b.text);
}

static void place_cell(wr_page *p, const char *function, const char *module, const side *a,
                       const side *b)
{
  char *kept = a->file || b->file  ? path_words(p, a, b)
               : module && *module ? wr_format("  (%s)", module)
                                   : wr_format("%s", "");
  if (!kept) p->failed = true;
  wr_grid_cell_kept(&p->grid, function, kept ? kept : "");
  free(kept);
}

static void site_cell(wr_page *p, const wr_pair *x, wr_lines_of of)
{
  const wr_subject *s = x->b ? x->b : x->a;
  place_cell(p, s->name, s->known ? s->module : NULL, /* else its name has the module */
             &(side){x->a ? x->a->file : NULL, x->a ? &x->a->lines[of] : NULL},
             &(side){x->b ? x->b->file : NULL, x->b ? &x->b->lines[of] : NULL});
}

/* ---- the run and devices --------------------------------------------------------------------- */

static const char *known_or(const wr_figures *f, wr_metric m, const char *value)
{
  return f->unknown[m] ? "not known" : value;
}

static void metric_cells(wr_page *p, const wr_diff *d, wr_metric m, const wr_pair *x)
{
  uint64_t a = wr_subject_value(x->a, m), b = wr_subject_value(x->b, m);
  bool known = !d->a.unknown[m] && !d->b.unknown[m];
  CELLS(p, wr_metric_rows[m].name, known_or(&d->a, m, wr_in_unit(m, a).text),
        known_or(&d->b, m, wr_in_unit(m, b).text), known ? change_of(m, a, b).text : "",
        known ? share_of(a, b).text : "");
}

/* One side has a value, and one side can have one. */
static bool is_worth_a_row(const wr_diff *d, wr_metric m, const wr_pair *x)
{
  if (d->a.unknown[m] && d->b.unknown[m]) return false;
  return wr_subject_value(x->a, m) || wr_subject_value(x->b, m);
}

static void print_run(wr_sheet *s, const wr_diff *d)
{
  wr_sheet_heading(s, "Run", "times are host time");
  wr_sheet_begin(s, "lrrrr");
  ROW(&s->page, "metric", "A", "B", "change", "of A");
  for (int m = 0; m < WR_METRICS; m++) {
    if (!is_worth_a_row(d, (wr_metric)m, &d->pair[0])) continue;
    wr_grid_row(&s->page.grid);
    metric_cells(&s->page, d, (wr_metric)m, &d->pair[0]);
  }
  wr_sheet_end(s);
}

/* With one device all is the run's. */
static void print_devices(wr_sheet *s, const wr_diff *d)
{
  size_t devices = 0, rows = 0;
  for (size_t i = 0; i < d->count; i++)
    devices += (d->pair[i].a ? d->pair[i].a : d->pair[i].b)->of == WR_OF_DEVICE;
  if (devices < 2) return;
  wr_sheet_heading(s, "Devices", "what changed");
  wr_sheet_begin(s, "rlrrrr");
  ROW(&s->page, "device", "metric", "A", "B", "change", "of A");
  for (size_t i = 0; i < d->count; i++) {
    const wr_pair *x = &d->pair[i];
    const wr_subject *any = x->a ? x->a : x->b;
    for (int m = 0; any->of == WR_OF_DEVICE && m < WR_METRICS; m++) {
      if (!(wr_metric_rows[m].of & WR_OF_DEVICE)) continue;
      if (wr_subject_value(x->a, (wr_metric)m) == wr_subject_value(x->b, (wr_metric)m)) continue;
      wr_grid_row(&s->page.grid);
      CELL(&s->page, "%d", any->device);
      metric_cells(&s->page, d, (wr_metric)m, x);
      rows++;
    }
  }
  if (rows)
    wr_sheet_end(s);
  else
    wr_grid_clear(&s->page.grid), wr_sheet_line(s, false, "Nothing changed.");
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
  if ((x->a ? x->a : x->b)->of != of) return false;
  if (of != WR_OF_RANGE) return distance(x, o->first) || distance(x, o->second);
  for (int m = 0; m < WR_METRICS; m++)
    if (distance(x, (wr_metric)m)) return true;
  return false;
}

/* The subjects of this kind that changed, the largest change first (new). */
static const wr_pair **changed(wr_sheet *s, const wr_diff *d, int of, ordering o, size_t *count)
{
  const wr_pair **list = calloc(d->count + 1, sizeof(const wr_pair *));
  *count = 0;
  if (!list) s->page.failed = true;
  for (size_t i = 0; list && i < d->count; i++)
    if (has_changed(&d->pair[i], of, &o)) list[(*count)++] = &d->pair[i];
  if (list && *count > 1) qsort_r(list, *count, sizeof(const wr_pair *), by_change, &o);
  return list;
}

static size_t shown_of(const wr_sheet *s, size_t count)
{
  size_t top = s->page.top > 0 ? (size_t)s->page.top : TOP;
  return count <= top + 1 ? count : top; /* "1 more" is no shorter */
}

static const struct by_site {
  const char *title, *first_title, *second_title;
  ordering by;
  wr_lines_of lines;
} by_site[] = {
    {"Live at the peak, by site", "bytes", NULL, {WR_METRIC_PEAK, WR_METRIC_PEAK}, WR_LINES_PEAK},
    {"Live at exit, by site",
     "bytes",
     "blocks",
     {WR_METRIC_LEAK_BYTES, WR_METRIC_LEAKS},
     WR_LINES_LEAKS},
    {"Transfers, by site",
     "bytes",
     "copies",
     {WR_METRIC_COPY_BYTES, WR_METRIC_COPIES},
     WR_LINES_COPIES},
    {"Waits, by site",
     "waits",
     "host time",
     {WR_METRIC_WAITS, WR_METRIC_WAIT_TIME},
     WR_LINES_WAITS},
    {"Allocations, by site",
     "allocations",
     "bytes",
     {WR_METRIC_ALLOCS, WR_METRIC_ALLOC_BYTES},
     WR_LINES_ALLOCS}};

static void print_by_site(wr_sheet *s, const wr_diff *d, const struct by_site *how)
{
  wr_page *p = &s->page;
  size_t count, shown;
  const wr_pair **list = changed(s, d, WR_OF_SITE, how->by, &count);
  if (list && count) {
    shown = shown_of(s, count);
    wr_sheet_heading(s, how->title, NULL);
    wr_sheet_begin(s, how->second_title ? "rrf" : "rf");
    ROW(p, how->first_title);
    if (how->second_title) CELL(p, "%s", how->second_title);
    CELL(p, "site");
    for (size_t i = 0; i < shown; i++) {
      wr_grid_row(&p->grid);
      both_cell(p, how->by.first, list[i]);
      if (how->second_title) both_cell(p, how->by.second, list[i]);
      site_cell(p, list[i], how->lines);
    }
    wr_sheet_end(s);
    if (count > shown)
      wr_sheet_line(s, false, "… and %s more that changed (--top)", COUNTED(count - shown, "site"));
  }
  free(list);
}

static void range_row(wr_page *p, const wr_pair *x)
{
  const wr_subject *any = x->a ? x->a : x->b;
  wr_grid_row(&p->grid);
  both_cell(p, WR_METRIC_DURATION, x);
  both_cell(p, WR_METRIC_WAITS, x);
  both_cell(p, WR_METRIC_COPY_BYTES, x);
  both_cell(p, WR_METRIC_PEAK, x);
  CELL(p, "%s%s%s%s", any->domain, *any->domain ? "/" : "", any->name,
       !x->a   ? " (only in B)"
       : !x->b ? " (only in A)"
               : "");
}

static void print_ranges(wr_sheet *s, const wr_diff *d)
{
  size_t count, shown;
  const wr_pair **list =
      changed(s, d, WR_OF_RANGE, (ordering){WR_METRIC_DURATION, WR_METRIC_WAITS}, &count);
  if (list && count) {
    shown = shown_of(s, count);
    wr_sheet_heading(s, "Ranges", "host time, and what was called within");
    wr_sheet_begin(s, "rrrrf");
    ROW(&s->page, "time", "waits", "copied", "peak", "range");
    for (size_t i = 0; i < shown; i++)
      range_row(&s->page, list[i]);
    wr_sheet_end(s);
    if (count > shown)
      wr_sheet_line(s, false, "… and %s that changed (--top)",
                    COUNTED(count - shown, "more range"));
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

static void waste_row(wr_page *p, const wr_waste_pair *x)
{
  const wr_wasted *w = x->b ? x->b : x->a;
  bool time = (x->a && x->a->saving_ns) || (x->b && x->b->saving_ns);
  if (!w) return; /* a pair has a side */
  wr_grid_row(&p->grid);
  CELLS(p, wr_fate_name(x->fate), wr_certainty_name(w->certainty), waste_words(x->a, time).text,
        waste_words(x->b, time).text, w->rule->id);
  if (*w->function)
    place_cell(p, w->function, NULL, &(side){x->a ? x->a->file : NULL, x->a ? &x->a->lines : NULL},
               &(side){x->b ? x->b->file : NULL, x->b ? &x->b->lines : NULL});
  else
    CELL(p, "several places");
}

static void print_findings(wr_sheet *s, const wr_diff *d)
{
  size_t of[WR_UNJUDGED + 1] = {0};
  char aside[200];
  for (size_t i = 0; i < d->waste_count; i++)
    of[d->waste[i].fate]++;
  (void)snprintf(aside, sizeof(aside),
                 "by rule and site: %zu gone, %zu new, %zu stay; what each saves at most",
                 of[WR_GONE], of[WR_NEW], of[WR_STAYS]);
  wr_sheet_heading(s, "Findings", d->waste_count ? aside : NULL);
  if (!d->a.judged)
    wr_sheet_line(s, true, "A's are not known: %s", d->a.unknown[WR_METRIC_FINDINGS]);
  if (!d->b.judged)
    wr_sheet_line(s, true, "B's are not known: %s", d->b.unknown[WR_METRIC_FINDINGS]);
  if (!d->waste_count && d->a.judged && d->b.judged) wr_sheet_line(s, false, "Neither has any.");
  if (!d->waste_count) return;
  wr_sheet_begin(s, "llrrlf");
  ROW(&s->page, "", "", "A", "B", "rule", "site");
  for (size_t i = 0; i < d->waste_count; i++)
    waste_row(&s->page, &d->waste[i]);
  wr_sheet_end(s);
  if (of[WR_UNJUDGED])
    wr_sheet_line(s, false, "not judged: of the other trace the rule could say nothing");
}

/* ---- conditions ------------------------------------------------------------------------------ */

wr_word wr_limit_words(const wr_verdict *v)
{
  wr_word w;
  const wr_condition *c = v->condition;
  bool minus = v->limit < 0;
  long double size = minus ? -v->limit : v->limit;
  uint64_t whole = size < 1.8e19L ? (uint64_t)size : UINT64_MAX;
  bool exact = wr_metric_rows[c->metric].unit != WR_UNIT_COUNT || size <= (long double)whole;
  if (exact)
    (void)snprintf(w.text, sizeof(w.text), "%s %s%.50s", wr_comparison_text(c->comparison),
                   minus ? "-" : "", wr_in_unit(c->metric, whole).text);
  else
    (void)snprintf(w.text, sizeof(w.text), "%s %s%.2Lf", wr_comparison_text(c->comparison),
                   minus ? "-" : "", size);
  return w;
}

/* `exact`: to the last byte, where a limit is exceeded: it may be by a few. */
static wr_word value_words(const wr_verdict *v, bool exact)
{
  wr_word w = wr_in_unit(v->condition->metric, v->value);
  bool rounded = wr_metric_rows[v->condition->metric].unit == WR_UNIT_BYTES && v->value >= 1024;
  size_t used = strlen(w.text);
  if (exact && rounded)
    (void)snprintf(w.text + used, sizeof(w.text) - used, " (%.30s B)", wr_count(v->value).text);
  return w;
}

static void print_notes(wr_sheet *s, const wr_verdicts *v)
{
  for (size_t i = 0; i < v->count; i++)
    if (v->verdict[i].note)
      wr_sheet_line(s, !v->verdict[i].known, "%s: %s", v->verdict[i].condition->text,
                    v->verdict[i].note);
}

static void print_conditions(wr_sheet *s, const wr_diff *d)
{
  const wr_verdicts *v = &d->verdicts;
  char aside[96];
  if (!v->count) return;
  (void)snprintf(aside, sizeof(aside), "%zu of %zu met", v->met, v->count);
  wr_sheet_heading(s, "Conditions to fail on", aside);
  wr_sheet_begin(s, "lfrr");
  ROW(&s->page, "", "condition", "B", "fails if");
  for (size_t i = 0; i < v->count; i++) {
    const wr_verdict *x = &v->verdict[i];
    ROW(&s->page,
        !x->known ? "not known"
        : x->met  ? "MET"
                  : "not met",
        x->condition->text, x->known ? value_words(x, x->met).text : "-",
        x->known ? wr_limit_words(x).text : "-");
  }
  wr_sheet_end(s);
  print_notes(s, v);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static wr_sheet sheet_of(FILE *out, const wr_diff_settings *o)
{
  bool markdown = o->format == WR_DIFF_MARKDOWN;
  return (wr_sheet){.page = {.out = out,
                             .width = markdown                        ? 0
                                      : o->width > 0 && o->width < 40 ? 40
                                                                      : o->width,
                             .top = o->top,
                             .color = o->color && !markdown},
                    .markdown = markdown};
}

static weir_status sheet_done(wr_sheet *s, const char *path)
{
  if (!wr_page_done(&s->page))
    return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", path);
  if (ferror(s->page.out) || fflush(s->page.out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", path);
  return WEIR_OK;
}

static void print_trace(wr_sheet *s, const char *letter, const wr_figures *f)
{
  wr_sheet_line(s, false, "%s  %s  %s", letter, f->path, f->command);
  if (!f->finished) wr_sheet_line(s, true, "%s is not complete: its run has not ended", letter);
  if (f->nameless)
    wr_sheet_line(
        s, true,
        "%s of %s without a name: its program or library is gone, or was built anew since."
        " --symbols says where one is; 'weir resolve' ahead of that keeps the names",
        COUNTED(f->nameless, "site"), letter);
}

weir_status wr_diff_render(FILE *out, const wr_diff *d, const wr_diff_settings *o)
{
  wr_sheet s = sheet_of(out, o);
  if (o->format == WR_DIFF_JSON) return wr_diff_render_json(out, d);
  if (s.markdown) (void)fputs("## weir diff\n", out);
  print_trace(&s, "A", &d->a);
  print_trace(&s, "B", &d->b);
  print_run(&s, d);
  print_devices(&s, d);
  print_findings(&s, d);
  for (size_t i = 0; i < sizeof(by_site) / sizeof(by_site[0]); i++)
    print_by_site(&s, d, &by_site[i]);
  print_ranges(&s, d);
  print_conditions(&s, d);
  return sheet_done(&s, d->b.path);
}

weir_status wr_check_render(FILE *out, const wr_checked *c, const wr_diff_settings *o)
{
  const wr_verdicts *v = c->verdicts;
  wr_sheet s = sheet_of(out, o);
  char aside[128];
  (void)snprintf(aside, sizeof(aside), "%s, %zu kept, %zu exceeded, %zu not known",
                 COUNTED(v->count, "limit"), v->met, v->count - v->met - v->unknown, v->unknown);
  if (s.markdown) (void)fputs("## weir check\n", out);
  wr_sheet_line(&s, false, "%s  %s", c->figures->path, c->figures->command);
  if (!c->figures->finished)
    wr_sheet_line(&s, true, "the trace is not complete: its run has not ended");
  wr_sheet_heading(&s, c->budget, aside);
  wr_sheet_begin(&s, "lrfr");
  ROW(&s.page, "", "line", "limit", "value");
  for (size_t i = 0; i < v->count; i++) {
    const wr_verdict *x = &v->verdict[i];
    ROW(&s.page,
        !x->known ? "not known"
        : x->met  ? "kept"
                  : "EXCEEDED",
        COUNT(x->condition->line), x->condition->text,
        x->known ? value_words(x, !x->met).text : "-");
  }
  wr_sheet_end(&s);
  print_notes(&s, v);
  return sheet_done(&s, c->figures->path);
}
