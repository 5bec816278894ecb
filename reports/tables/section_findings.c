/* section_findings.c: findings: as sentences for people, in the order of what they save, and in a
 * table. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/base/util.h"
#include "reports/findings/findings.h"
#include "reports/tables/build.h"
#include "reports/tables/sections.h"
#include "reports/whole/whole.h"

enum {
  SUMMARY_FINDINGS = 5,
  UNJUDGED_ROWS = 4,
  EXPLAINED_RULES = 6,
  SMALL_LINES = 6,
  SMALL_TIMES = 8
};

typedef struct findings_section {
  wr_tables *t;
  wr_named_table *to;
  bool possible; /* those that are possible in full, too */
} findings_section;

#define LINE(x, ...) wr_table_before((x)->to, WR_PLAIN, __VA_ARGS__)

/* What is printed of a saving: the least there is where no more is sure, else the most. */
typedef struct bound {
  bool least;
  uint64_t ns;
} bound;

static bound bound_of(const wr_finding *f)
{
  bool wide = f->spread && f->low_ns && f->low_ns < f->saving_ns / 2;
  return wide ? (bound){true, f->low_ns} : (bound){f->least || f->later_ns, f->saving_ns};
}

/* What the run gains at most, where a device's time is behind the calls; 0: not known apart from the saving. */
static uint64_t most_of(const wr_finding *f)
{
  if (!f->later_ns) return 0;
  const uint64_t known = f->saving_ns ? f->saving_ns : f->cost_ns;
  return known > UINT64_MAX - f->later_ns ? UINT64_MAX : known + f->later_ns;
}

static const char *name_bound(bound b)
{
  return b.least ? "at least" : "up to";
}

/* "scale<float>, add and 2 kernels more", or nothing. */
static void print_kernels(FILE *to, const wr_finding *f)
{
  for (size_t i = 0; i < f->kernels; i++)
    (void)fprintf(to, "%s%s", i ? ", " : "", f->kernel[i]);
  if (f->more_kernels) (void)fprintf(to, " and %s more", COUNTED(f->more_kernels, "kernel"));
}

/* ", up to 22.4 ms (5.1 % of the run)", or nothing. */
static void print_most(FILE *to, const wr_findings *all, const wr_finding *f)
{
  const uint64_t most = most_of(f);
  if (most)
    (void)fprintf(to, ", up to %s (%s of the run)", DURATION(most),
                  wr_percent(most, all->duration_ns).text);
}

/* "saves up to 12.3 ms (11.8 to 12.7 ms, 4.1 % of the run) of 14.0 ms, 2.00 MiB moved, 400 times,
 * device 0, kernel scale<float>" */
static char *costs(const wr_findings *all, const wr_finding *f)
{
  char *text = NULL;
  size_t bytes = 0;
  const bound b = bound_of(f);
  FILE *to = open_memstream(&text, &bytes);
  if (!to) return NULL;
  if (f->saving_ns) (void)fprintf(to, "saves %s %s (", name_bound(b), DURATION(b.ns));
  if (f->saving_ns && f->spread)
    (void)fprintf(to, "%s to %s, ", DURATION(f->low_ns), DURATION(f->high_ns));
  if (f->saving_ns) (void)fprintf(to, "%s of the run)", wr_percent(b.ns, all->duration_ns).text);
  if (f->saving_ns) print_most(to, all, f);
  if (!f->saving_ns && f->later_ns)
    (void)fprintf(to, "takes %s", DURATION(f->cost_ns)), print_most(to, all, f),
        (void)fprintf(to, " with the device's time; whether the run gains it is not known");
  else if (f->cost_ns > f->saving_ns && !f->later_ns)
    (void)fprintf(to,
                  f->saving_ns ? " of the %s it takes"
                               : "takes %s; whether the run gains it is not known",
                  DURATION(f->cost_ns));
  if (f->saving_bytes)
    (void)fprintf(to, "%s%s %s", f->cost_ns || f->saving_ns ? ", " : "", BYTES(f->saving_bytes),
                  f->rule->holds ? "held" : "moved");
  (void)fprintf(to, ", %s", COUNTED(f->count, "time"));
  if (f->device >= 0) (void)fprintf(to, ", device %d", f->device);
  if (f->range && *f->range) (void)fprintf(to, ", range %s", f->range);
  if (f->kernels) (void)fprintf(to, f->kernels > 1 ? ", kernels " : ", kernel ");
  print_kernels(to, f);
  return fclose(to) ? NULL : text;
}

/* "train_step  train.cu:230" (new). NULL: out of memory. */
static char *name_place(const char *function, const char *file, int line)
{
  return file ? wr_format("%s  %s:%d", function, wr_file_name(file), line)
              : wr_format("%s", function);
}

/* "train_step  train.cu:230", of several with the share of each, or "" (new). NULL: out of memory. */
static char *name_callers(const wr_finding_site *s)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  for (size_t i = 0; to && i < s->callers; i++) {
    const wr_finding_caller *c = &s->caller[i];
    char *place = name_place(c->function, c->file, c->line);
    if (!place) {
      (void)fclose(to);
      free(text);
      return NULL;
    }
    (void)fprintf(to, i ? ", %s" : "%s", place);
    if (s->callers > 1 || s->more_callers) (void)fprintf(to, " (%.0f %%)", c->share * 100);
    free(place);
  }
  if (to && s->callers > 1 && s->more_callers)
    (void)fprintf(to, " and %s more", COUNTED(s->more_callers, "caller"));
  return to && !fclose(to) ? text : NULL;
}

static void add_finding_site(const findings_section *x, const wr_finding *f,
                             const wr_finding_site *s)
{
  char *place = name_place(s->function, s->file, s->line), *callers = name_callers(s);
  const char *from = s->callers ? "  ← " : "";
  if (!place || !callers)
    x->t->failed = true;
  else if (!s->count)
    LINE(x, "  with %s", place);
  else if (f->sites - 1 && f->site[1].count)
    LINE(x, "  %s, %s  %s%s%s", DURATION(s->cost_ns), COUNTED(s->count, "time"), place, from,
         callers);
  else
    LINE(x, "  %s%s%s", place, from, callers);
  free(place);
  free(callers);
  if (s->source) wr_table_before(x->to, WR_SOURCE, "      %d | %s", s->line, s->source);
}

static bool sure_of(const wr_finding *f)
{
  return f->certainty != WR_POSSIBLE;
}

/* The numbers that are printed go over those that stand under none. */
static size_t number_of(const wr_findings *all, size_t i)
{
  size_t number = 1;
  while (i--)
    number += !all->finding[i].under;
  return number;
}

/* Where the rule's advice stands, which is printed once among what is sure and once among the
 * rest. */
static size_t first_of_rule(const wr_findings *all, size_t i)
{
  const wr_finding *own = &all->finding[i], *f = all->finding;
  while (f->under || f->rule != own->rule || sure_of(f) != sure_of(own) ||
         strcmp(f->fix, own->fix) != 0)
    f++;
  return (size_t)(f - all->finding);
}

/* "up to 2.09 ms, 39 times; weir run --hash decides" (new). NULL: out of memory. */
static char *short_costs(const wr_finding *f)
{
  const bound b = bound_of(f);
  const uint64_t most = most_of(f);
  const bool held = !f->saving_ns && f->rule->holds;
  return wr_format("%s%s%s%s%s, %s%s%s%s",
                   f->saving_ns ? name_bound(b)
                   : held       ? ""
                                : "of",
                   held ? "" : " ",
                   f->saving_ns ? DURATION(b.ns)
                   : held       ? BYTES(f->saving_bytes)
                                : DURATION(f->cost_ns),
                   most ? ", up to " : "", most ? DURATION(most) : "", COUNTED(f->count, "time"),
                   f->decides ? "; " : "", f->decides ? f->decides : "",
                   f->decides ? " decides" : "");
}

/* Those that stand under a finding, which is about the same calls; what is possible has no advice here. */
static void add_under(const findings_section *x, const wr_findings *all, size_t lead)
{
  for (size_t i = lead + 1; i < all->count && all->finding[i].under; i++) {
    const wr_finding *f = &all->finding[i];
    char *text = short_costs(f);
    if (!text) x->t->failed = true;
    LINE(x, "  also: %s (%s, %s, %s)%s%s", f->rule->title, f->rule->id,
         wr_certainty_name(f->certainty), text ? text : "", sure_of(f) ? ". " : "",
         sure_of(f) ? f->fix : "");
    free(text);
  }
}

static void add_finding(const findings_section *x, const wr_findings *all, size_t i)
{
  const wr_finding *f = &all->finding[i];
  char *text = costs(all, f);
  if (!text) x->t->failed = true;
  wr_table_before(x->to, WR_STRONG, "%zu. %s", number_of(all, i), f->rule->title);
  LINE(x, "  %s: %s", wr_certainty_name(f->certainty), text ? text : "");
  free(text);
  if (f->slow_ns && f->slow_ns >= f->saving_ns / 4)
    LINE(x, "  not counted: %s, by which %llu of them took longer than the rest do",
         DURATION(f->slow_ns), (unsigned long long)f->slow_count);
  const uint64_t added = f->added_ns + f->added_later_ns, saving = f->saving_ns + f->later_ns;
  if (i && f->saving_ns && added < saving / 20 * 19)
    LINE(x,
         added ? "  of it %s remain once those above are done"
               : "  nothing of it remains once those above are done",
         DURATION(added));
  for (size_t at = 0; at < f->sites; at++)
    add_finding_site(x, f, &f->site[at]);
  if (f->more_sites) LINE(x, "  … and %s more", COUNTED(f->more_sites, "place"));
  size_t first = first_of_rule(all, i);
  if (first == i)
    LINE(x, "  %s", f->fix);
  else
    LINE(x, "  As %zu.", number_of(all, first));
  add_under(x, all, i);
}

/* "repeated-upload  train_step  train.cu:230  of 8.81 ms, 32 times; weir run --hash decides" */
static void add_line(const findings_section *x, const wr_findings *all, size_t i)
{
  const wr_finding *f = &all->finding[i];
  const wr_finding_site *s = &f->site[0];
  char *place = name_place(s->function, s->file, s->line), *text = short_costs(f);
  if (!place || !text) x->t->failed = true;
  LINE(x, "%zu. %s  %s  %s", number_of(all, i), f->rule->id, place ? place : "", text ? text : "");
  free(place);
  free(text);
  add_under(x, all, i);
}

/* How many of the findings, which are in order, are sure or stand under one that is: those that come first. */
static size_t count_sure(const wr_findings *f)
{
  size_t sure = 0;
  while (sure < f->count && (f->finding[sure].under || sure_of(&f->finding[sure])))
    sure++;
  return sure;
}

/* Where the findings from `first` to before `end` are over `most` that stand under none; *left: how many of these follow. */
static size_t end_of_most(const wr_findings *f, size_t first, size_t end, size_t most, size_t *left)
{
  size_t shown = 0, last = end;
  for (size_t i = first; i < end; i++)
    if (!f->finding[i].under && shown++ == most) last = i;
  *left += shown > most ? shown - most : 0;
  return last;
}

/* Those that are possible stand apart, a line each, and never among those that are sure. */
static void add_possible(const findings_section *x, const wr_findings *f, size_t first, size_t end)
{
  if (first == end) return;
  if (x->possible)
    LINE(x, "Possible, which the calls alone do not tell:");
  else
    LINE(x, "Possible, which the calls alone do not tell (--possible: in full):");
  for (size_t i = first; i < end; i++) {
    if (f->finding[i].under) continue;
    if (x->possible)
      add_finding(x, f, i);
    else
      add_line(x, f, i);
  }
}

/* Whether one of the `count` findings in front is of that rule. */
static bool names_rule(const wr_findings *f, size_t count, const wr_rule *rule)
{
  for (size_t i = 0; i < count; i++)
    if (f->finding[i].rule == rule) return true;
  return false;
}

/* "What they mean: weir explain pageable-async hidden-wait"; a user's own rules have no page. */
static void add_explanations(const findings_section *x, const wr_findings *f)
{
  char *text = NULL;
  size_t bytes = 0, count = 0;
  FILE *to = open_memstream(&text, &bytes);
  for (size_t i = 0; to && i < f->count && count < EXPLAINED_RULES; i++) {
    const wr_rule *rule = f->finding[i].rule;
    if (rule->file || names_rule(f, i, rule)) continue;
    (void)fprintf(to, " %s", rule->id);
    count++;
  }
  if (!to || fclose(to) != 0)
    x->t->failed = true;
  else if (count)
    LINE(x, "What they mean: weir explain%s", text);
  free(text);
}

/* "redundant-wait  main  train.cu:148  22.8 µs, 597 times" */
static void add_small_line(const findings_section *x, const wr_small_finding *s)
{
  uint64_t ns = (s->saving_ns ? s->saving_ns : s->cost_ns) + s->later_ns;
  char *place = name_place(s->function, s->file, s->line);
  if (!place) x->t->failed = true;
  LINE(x, "  %s  %s  %s, %s%s", s->rule->id, place ? place : "",
       ns || !s->rule->holds ? DURATION(ns) : BYTES(s->saving_bytes), COUNTED(s->count, "time"),
       s->several ? ", and other places" : "");
  free(place);
}

/* What comes again may weigh more where a step of the program is shorter. */
static bool has_line(const wr_findings *f, size_t i)
{
  return i < SMALL_LINES && f->small[i].count >= SMALL_TIMES;
}

/* The ids of those without a line (new). */
static char *other_small_ids(const wr_findings *f)
{
  char *text = NULL;
  size_t bytes = 0, count = 0;
  FILE *to = open_memstream(&text, &bytes);
  for (size_t i = 0; to && i < f->small_count; i++)
    if (!has_line(f, i)) (void)fprintf(to, "%s%s", count++ ? ", " : "", f->small[i].rule->id);
  return to && !fclose(to) ? text : NULL;
}

/* "Too small to be listed (--min-cost 0ns: in full): dead-write", and a line each of those that come often. */
static void add_small(const findings_section *x, const wr_findings *f)
{
  if (!f->small_count) return;
  char *others = other_small_ids(f);
  if (!others) x->t->failed = true;
  LINE(x, "Too small to be listed (--min-cost 0ns: in full):%s%s", others && *others ? " " : "",
       others ? others : "");
  free(others);
  for (size_t i = 0; i < f->small_count; i++)
    if (has_line(f, i)) add_small_line(x, &f->small[i]);
}

/* Rules that would need the calls which were left out of the trace. */
static size_t count_partial(const wr_findings *f)
{
  size_t count = 0;
  for (size_t i = 0; i < f->unjudged_count; i++)
    count += strcmp(f->unjudged[i].why, WR_NEEDS_ALL_CALLS) == 0;
  return count;
}

/* "1 ms or 0.5 % of the run" */
static void add_none(const findings_section *x, const wr_findings *f)
{
  const wr_min_cost *m = &f->min;
  const size_t partial = count_partial(f);
  char share[32] = "";
  if (partial)
    LINE(x, "%s not looked for: they need all calls of the run, and some were not recorded.",
         OF(partial, "rule was", "rules were"));
  if (partial >= f->rules.count) return;
  if (m->share >= 0) (void)snprintf(share, sizeof(share), "%g %% of the run", m->share * 100);
  if (m->ns > 0)
    LINE(x, "Nothing was found that costs %s%s%s.", DURATION((uint64_t)m->ns), *share ? " or " : "",
         share);
  else
    LINE(x, "Nothing was found%s%s.", *share ? " that costs " : "", share);
}

static void add_removed(const findings_section *x, const wr_findings *f)
{
  for (size_t i = 0; i < f->removed_count; i++) {
    const wr_finding *r = &f->removed[i];
    uint64_t bytes = r->rule->holds ? 0 : r->saving_bytes;
    LINE(x,
         bytes ? "Removed by Weir in this run: %s (%s), %s, %s"
               : "Removed by Weir in this run: %s (%s), %s",
         r->rule->title, r->rule->id, COUNTED(r->count, "time"), BYTES(bytes));
    for (size_t at = 0; at < r->sites; at++)
      add_finding_site(x, r, &r->site[at]);
    if (r->more_sites) LINE(x, "  … and %s more", COUNTED(r->more_sites, "place"));
    LINE(x, "  %s", r->fix);
  }
}

/* The ids of the rules from `i` on that could not judge for the same reason (new). */
static char *unjudged_ids(const wr_findings *f, size_t i, size_t *count)
{
  const wr_unjudged_rule *first = &f->unjudged[i];
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  for (*count = 0; to && i < f->unjudged_count; i++) {
    if (strcmp(f->unjudged[i].why, first->why) != 0) continue;
    (void)fprintf(to, "%s%s", (*count)++ ? ", " : "", f->unjudged[i].rule->id);
  }
  return to && !fclose(to) ? text : NULL;
}

static bool reason_is_new(const wr_findings *f, size_t i)
{
  for (size_t before = 0; before < i; before++)
    if (!strcmp(f->unjudged[before].why, f->unjudged[i].why)) return false;
  return true;
}

/* A line a reason. */
static void add_unjudged(const findings_section *x, const wr_findings *f)
{
  size_t lines = 0, rules = 0, count;
  for (size_t i = 0; i < f->unjudged_count && lines < UNJUDGED_ROWS; i++) {
    if (!reason_is_new(f, i)) continue;
    char *ids = unjudged_ids(f, i, &count);
    if (!ids) x->t->failed = true;
    LINE(x, "Not looked for: %s: %s", ids ? ids : "", f->unjudged[i].why);
    free(ids);
    lines++, rules += count;
  }
  if (f->unjudged_count > rules)
    LINE(x, "… nor %s more", COUNTED(f->unjudged_count - rules, "rule"));
}

/* In a summary: what an option of weir run records lets more rules find; a line an option. */
static void add_options(const findings_section *x, const wr_findings *f)
{
  static const struct {
    const char *option, *finds;
  } options[] = {{"--hash", "the same bytes copied again, and bytes that are all alike"},
                 {"--device-times=all", "when a device was idle, and what never ran at one time"}};
  for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
    size_t count = 0;
    for (size_t i = 0; i < f->unjudged_count; i++)
      count += strstr(f->unjudged[i].why, options[o].option) != NULL;
    if (count)
      LINE(x, "weir run %s finds more: %s (%s)", options[o].option, options[o].finds,
           COUNTED(count, "rule"));
  }
}

/* Other work of the machine explains what was not counted. */
static void add_load(const findings_section *x, const wr_findings *f)
{
  bool slow = false;
  for (size_t i = 0; i < f->count; i++)
    slow |= f->finding[i].slow_ns && f->finding[i].slow_ns >= f->finding[i].saving_ns / 4;
  if (slow && f->starved_ns)
    LINE(x,
         "The machine had other work: threads of the run waited %s for a processor, and lost one "
         "%s, "
         "which may explain what is not counted.",
         DURATION(f->starved_ns), COUNTED(f->preempted, "time"));
}

/* Of what is sure, a finding may gain more than what is added up of it. */
static bool any_least(const wr_findings *f)
{
  bool any = false;
  for (size_t i = 0; i < f->count; i++)
    any |= sure_of(&f->finding[i]) && f->finding[i].saving_ns && bound_of(&f->finding[i]).least &&
           !f->finding[i].later_ns;
  return any;
}

void wr_section_findings(wr_tables *t, const wr_findings *f, const report_settings *o, bool whole)
{
  const findings_section section = {t, wr_tables_add_sentences(t, "findings", "Findings"),
                                    o->possible},
                         *x = &section;
  if (f->sure_saving_ns && f->count)
    wr_table_aside(x->to, "together %s %s to be saved, %s of the run",
                   any_least(f) ? "about" : "up to", DURATION(f->sure_saving_ns),
                   wr_percent(f->sure_saving_ns, f->duration_ns).text);
  if (f->unavailable) {
    LINE(x, "None were looked for: %s.", f->unavailable);
    return;
  }
  size_t most = o->top > 0 ? (size_t)o->top : whole ? SIZE_MAX : SUMMARY_FINDINGS;
  size_t sure = count_sure(f), left = 0, end = end_of_most(f, 0, sure, most, &left);
  for (size_t i = 0; i < end; i++)
    if (!f->finding[i].under) add_finding(x, f, i);
  add_possible(x, f, sure, end_of_most(f, sure, f->count, most, &left));
  if (left) LINE(x, "… and %s more: weir report findings", COUNTED(left, "finding"));
  if (f->interpreters)
    LINE(x, "Places in an interpreter: weir run --python reads the Python program's own frames.");
  if (!f->count) add_none(x, f);
  add_load(x, f);
  add_removed(x, f);
  if (whole) {
    add_small(x, f);
    add_explanations(x, f);
    add_unjudged(x, f);
    return;
  }
  add_options(x, f);
  if (f->late)
    LINE(x, "%s took too long for a summary: weir report findings", COUNTED(f->late, "rule"));
}

/* ---- a table of them ------------------------------------------------------------------------- */

static uint64_t within(uint64_t n)
{
  return n > INT64_MAX ? INT64_MAX : n;
}

static void put_callers(wr_named_table *t, const wr_finding_site *s)
{
  static const wr_column columns[] = {{"place", "in", WR_COLUMN_PLACE, 0},
                                      {"share_of_place", "of the place", WR_COLUMN_SHARE, 0},
                                      {"count", "operations", WR_COLUMN_COUNT, 0}};
  wr_named_table *rows = wr_table_put_rows(t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < s->callers; i++) {
    const wr_finding_caller *c = &s->caller[i];
    wr_table_row(rows);
    wr_table_put_place(rows, c->function, c->file, c->line);
    wr_table_put_real(rows, c->share);
    wr_table_put(rows, within(c->count));
  }
}

static void put_sites(wr_named_table *t, const wr_finding *f)
{
  static const wr_column columns[] = {{"place", "in", WR_COLUMN_PLACE, 0},
                                      {"source", "line", WR_COLUMN_TEXT, 0},
                                      {"cost_host_ns", "costs", WR_COLUMN_HOST_NS, 0},
                                      {"count", "operations", WR_COLUMN_COUNT, 0},
                                      {"called_from", "called from", WR_COLUMN_ROWS, 0},
                                      {"more_callers", "more callers", WR_COLUMN_COUNT, 0}};
  wr_named_table *rows = wr_table_put_rows(t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < f->sites; i++) {
    const wr_finding_site *s = &f->site[i];
    wr_table_row(rows);
    wr_table_put_place(rows, s->function, s->file, s->line);
    wr_table_put_text(rows, s->source);
    WR_PUT(rows, within(s->cost_ns), within(s->count));
    put_callers(rows, s);
    wr_table_put(rows, within(s->more_callers));
  }
}

/* What CSV has no column for. */
static void put_more(wr_named_table *t, const wr_findings *all, const wr_finding *f)
{
  wr_table_put(t, (uint64_t)f->rule->number);
  wr_table_put_text(t, wr_severity_name(f->rule->severity));
  if (all->duration_ns)
    wr_table_put_share(t, f->saving_ns, all->duration_ns);
  else
    wr_table_put_real(t, 0);
  wr_table_put_text(t, f->rule->holds ? "held" : "moved");
  wr_table_put(t, within(f->more_sites));
  WR_PUT(t, within(f->slow_count), within(f->slow_ns), within(f->added_ns));
  wr_table_put_if(t, f->spread, within(f->low_ns));
  wr_table_put_if(t, f->spread, within(f->high_ns));
  wr_table_put(t, f->least || f->later_ns);
  wr_table_put_if(t, most_of(f), within(most_of(f)));
  if (f->device >= 0)
    wr_put_device(t, f->device);
  else
    wr_table_put_none(t);
  wr_table_put_if(t, f->under, f->under);
  wr_table_put_texts(t);
  for (size_t i = 0; i < f->kernels; i++)
    wr_table_add_text(t, f->kernel[i]);
  wr_table_put(t, within(f->more_kernels));
  put_sites(t, f);
}

/* Of the first place, as in text. */
static void put_caller_words(wr_named_table *t, const wr_finding *f)
{
  char *words = f->sites ? name_callers(&f->site[0]) : NULL;
  if (f->sites && !words) t->of->failed = true;
  wr_table_put_text(t, words && *words ? words : NULL);
  free(words);
}

static void put_kernel_words(wr_named_table *t, const wr_finding *f)
{
  char *words = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&words, &bytes);
  if (to) print_kernels(to, f);
  if (!to || fclose(to) != 0) t->of->failed = true;
  wr_table_put_text(t, words && *words ? words : NULL);
  free(words);
}

static void put_finding(wr_named_table *t, const wr_findings *all, const wr_finding *f)
{
  wr_table_row(t);
  wr_table_put_text(t, f->rule->id);
  wr_table_put_text(t, wr_certainty_name(f->certainty));
  wr_table_put(t, f->saving_ns);
  wr_table_put(t, f->cost_ns);
  wr_table_put(t, f->saving_bytes);
  wr_table_put(t, f->count);
  if (f->sites)
    wr_table_put_place(t, f->site[0].function, f->site[0].file, f->site[0].line);
  else
    wr_table_put_none(t);
  put_caller_words(t, f);
  wr_table_put_text(t, f->range);
  put_kernel_words(t, f);
  wr_table_put_text(t, f->rule->title);
  wr_table_put_text(t, f->fix);
  put_more(t, all, f);
}

static void add_removed_table(const wr_build *b, const wr_findings *f)
{
  static const wr_column columns[] = {{"id", "finding", WR_COLUMN_TEXT, 0},
                                      {"count", "operations", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"fix", "fix", WR_COLUMN_TEXT, WR_IN_JSON},
                                      {"sites", "places", WR_COLUMN_ROWS, WR_IN_JSON}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "removed", "Removed by Weir in this run", columns);
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < f->removed_count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, f->removed[i].rule->id);
    WR_PUT(t, within(f->removed[i].count), within(f->removed[i].saving_bytes));
    wr_table_put_text(t, f->removed[i].fix);
    put_sites(t, &f->removed[i]);
  }
}

static void add_unjudged_table(const wr_build *b, const wr_findings *f)
{
  static const wr_column columns[] = {{"id", "finding", WR_COLUMN_TEXT, 0},
                                      {"why", "why", WR_COLUMN_TEXT, 0}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "unjudged", "Not looked for", columns);
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < f->unjudged_count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, f->unjudged[i].rule->id);
    wr_table_put_text(t, f->unjudged[i].why);
  }
}

/* Of all findings together, each operation once. */
static void add_savings(const wr_build *b, const wr_findings *f)
{
  static const wr_column columns[] = {
      {"duration_ns", "the run", WR_COLUMN_HOST_NS, 0},
      {"saving_host_ns", "saves at most", WR_COLUMN_HOST_NS, 0},
      {"sure_saving_host_ns", "of certain and likely ones", WR_COLUMN_HOST_NS, 0},
      {"moved_bytes", "moved", WR_COLUMN_BYTES, 0},
      {"unavailable", "not judged", WR_COLUMN_TEXT, 0},
      {"starved_host_ns", "threads waited for a processor", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"preempted", "and lost one, times", WR_COLUMN_COUNT, WR_IN_JSON}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "savings", "All findings together", columns);
  wr_table_look(t, WR_DETAIL | WR_OBJECT);
  wr_table_row(t);
  WR_PUT(t, within(f->duration_ns), within(f->saving_ns), within(f->sure_saving_ns),
         within(f->moved_bytes));
  wr_table_put_text(t, f->unavailable);
  WR_PUT(t, within(f->starved_ns), within(f->preempted));
}

void wr_add_findings(const wr_build *b, const wr_findings *f)
{
  static const wr_column columns[] = {
      {"id", "finding", WR_COLUMN_TEXT, 0},
      {"certainty", "certainty", WR_COLUMN_TEXT, 0},
      {"saving_host_ns", "saves at most (host time)", WR_COLUMN_HOST_NS, 0},
      {"cost_host_ns", "costs (host time)", WR_COLUMN_HOST_NS, 3},
      {"saving_bytes", "bytes", WR_COLUMN_BYTES, 1},
      {"count", "operations", WR_COLUMN_COUNT, 2},
      {"place", "in", WR_COLUMN_PLACE, 0},
      {"callers_in_words", "called from", WR_COLUMN_TEXT, 8 | WR_IN_TEXT},
      {"range", "range", WR_COLUMN_TEXT, 5},
      {"kernels_in_words", "kernels", WR_COLUMN_TEXT, 9 | WR_IN_TEXT},
      {"title", "what", WR_COLUMN_TEXT, 6},
      {"fix", "what to do", WR_COLUMN_TEXT, 7},
      {"rule", "rule", WR_COLUMN_ID, WR_IN_JSON},
      {"severity", "severity", WR_COLUMN_TEXT, WR_IN_JSON},
      {"share_of_run", "of the run", WR_COLUMN_SHARE, WR_IN_JSON},
      {"bytes_are", "bytes are", WR_COLUMN_TEXT, WR_IN_JSON},
      {"more_sites", "more places", WR_COLUMN_COUNT, WR_IN_JSON},
      {"slow_count", "far longer", WR_COLUMN_COUNT, WR_IN_JSON},
      {"slow_host_ns", "of it, in no saving", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"added_host_ns", "beyond those before it", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"low_host_ns", "saves from", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"high_host_ns", "saves up to", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"at_least", "saves that or more", WR_COLUMN_TRUTH, WR_IN_JSON},
      {"at_most_host_ns", "and at most", WR_COLUMN_HOST_NS, WR_IN_JSON},
      {"device", "device", WR_COLUMN_TEXT, WR_IN_JSON},
      {"under", "of the same calls as", WR_COLUMN_COUNT, WR_IN_JSON},
      {"kernel_names", "kernels", WR_COLUMN_TEXTS, WR_IN_JSON},
      {"more_kernels", "more kernels", WR_COLUMN_COUNT, WR_IN_JSON},
      {"sites", "places", WR_COLUMN_ROWS, WR_IN_JSON}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "findings", "Findings", columns);
  for (size_t i = 0; i < f->count; i++)
    put_finding(t, f, &f->finding[i]);
  if (f->unavailable) wr_tables_note(b->t, "Nothing was judged: %s.", f->unavailable);
  add_savings(b, f);
  add_removed_table(b, f);
  add_unjudged_table(b, f);
}

weir_status wr_build_findings(const wr_build *b)
{
  wr_findings f = {0};
  weir_status s = wr_whole_findings(&f, b->db, &b->o->findings);
  if (s) return s;
  wr_add_findings(b, &f);
  wr_findings_free(&f);
  return s;
}
