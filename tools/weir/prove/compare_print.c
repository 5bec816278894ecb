/* compare_print.c: what weir compare prints about its runs: first whether they agree, then a
 * line a mode, then a verdict. Of several runs the median counts, and the spread is shown. A run
 * of a mode is compared with the bare run of its turn, so that a machine that slows down slows
 * both: the median of these ratios, and an interval that holds the true median with the
 * confidence that is printed (by order statistics, for whatever distribution). A mode is called
 * quicker when that interval, at 95 % or more, is below 1, or when all of its runs were quicker
 * than all bare ones. One run each gives no verdict. What a mode waits is compared with what the
 * observed program waits, for of the bare one nobody knows. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/base/units.h"
#include "reports/write/grid.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/prove/compare.h"

typedef struct spread {
  uint64_t median, least, most;
} spread;

static int by_ratio(const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

/* Returns the spread of a member of the figures, given by its offset, over the runs of a mode. */
static spread spread_of(const comparison *c, unsigned mode, size_t member)
{
  uint64_t *all = cmd_alloc(c->runs * sizeof *all);
  for (unsigned i = 0; i < c->runs; i++) {
    const run_figures *f = &c->figures[mode * c->runs + i];
    memcpy(&all[i], (const char *)f + member, sizeof *all);
  }
  qsort(all, c->runs, sizeof *all, by_ratio);
  uint64_t low = all[(c->runs - 1) / 2], high = all[c->runs / 2];
  spread s = {low + (high - low) / 2, all[0], all[c->runs - 1]};
  free(all);
  return s;
}

#define FIGURE(c, mode, member) spread_of(c, mode, offsetof(run_figures, member))

/* The ratio of a mode's times to the bare ones. */
typedef struct ratio {
  double median, low, high;
  double confidence; /* that the true median is in [low, high]; 0: of one run nothing is known */
} ratio;

static int by_double(const void *left, const void *right)
{
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

/* Returns how many of the n ordered ratios may be left out at each end, for 95 % where n allows it,
 * and the confidence that leaves. The median is below the k-th with the probability that fewer than
 * k of n throws of a coin are heads. */
static unsigned left_out(unsigned n, double *confidence)
{
  double term = 1, below;
  unsigned k = 0;
  for (unsigned i = 0; i < n; i++)
    term /= 2; /* of no head at all */
  below = term;
  *confidence = 1 - 2 * below;
  for (unsigned i = 1; i < n / 2; i++) {
    term = term * (n - i + 1) / i;
    if (1 - 2 * (below + term) < 0.95) break;
    below += term;
    k = i;
    *confidence = 1 - 2 * below;
  }
  return k;
}

static ratio ratio_of(const comparison *c, unsigned mode)
{
  double *all = cmd_alloc(c->runs * sizeof *all);
  ratio r = {0};
  for (unsigned i = 0; i < c->runs; i++) {
    uint64_t bare = c->figures[i].duration_ns;
    all[i] = (double)c->figures[mode * c->runs + i].duration_ns / (double)(bare ? bare : 1);
  }
  qsort(all, c->runs, sizeof *all, by_double);
  unsigned k = left_out(c->runs, &r.confidence);
  r.median = (all[(c->runs - 1) / 2] + all[c->runs / 2]) / 2;
  r.low = all[k];
  r.high = all[c->runs - 1 - k];
  free(all);
  return r;
}

/* Where the program's own output varies, its ends still count, if they do not. */
static bool compare_agree(const comparison *c)
{
  if (!c->differs.there) return true;
  return c->varies.there && (c->varies.status || !c->differs.status);
}

bool compare_good(const comparison *c)
{
  return compare_agree(c) && !c->end;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Prints where a run differs from the first, in three lines at most. */
static void print_difference(const comparison *c, const difference *d)
{
  char expected[64], found[64];
  if (d->status) {
    run_end_words(d->expected_end, expected);
    run_end_words(d->found_end, found);
    printf("  bare ended with %s, %s with %s\n", expected, c->ways[d->mode].name, found);
    return;
  }
  printf("  stdout differs first at byte %llu, in line %llu:\n    bare: %s\n    %s: %s\n",
         (unsigned long long)d->offset, (unsigned long long)d->line, run_line_words(d->expected),
         c->ways[d->mode].name, run_line_words(d->found));
}

static bool is_quicker(const comparison *c, unsigned mode)
{
  ratio r = ratio_of(c, mode);
  if (c->runs < 2) return false;
  return FIGURE(c, mode, duration_ns).most < FIGURE(c, COMPARE_BARE, duration_ns).least ||
         (r.confidence >= 0.95 && r.high < 1);
}

/* Returns the quickest mode that surely is. 0: none is. */
static unsigned quickest(const comparison *c)
{
  unsigned best = 0;
  for (unsigned m = COMPARE_OBSERVE + 1; m < COMPARE_MODES; m++)
    if (is_quicker(c, m) && (!best || ratio_of(c, m).median < ratio_of(c, best).median)) best = m;
  return best;
}

/* Writes what the quickest mode saves. */
static void print_saved(const comparison *c, unsigned best, char *out, size_t room)
{
  ratio r = ratio_of(c, best);
  uint64_t before = FIGURE(c, COMPARE_OBSERVE, wait_ns).median,
           after = FIGURE(c, best, wait_ns).median;
  int n = snprintf(out, room, "%s takes %.2f of the bare time (%.2f to %.2f at %.0f %%, %u runs)",
                   c->ways[best].name, r.median, r.low, r.high, r.confidence * 100, c->runs);
  if (n < 0 || (size_t)n >= room || after >= before) return;
  (void)snprintf(out + n, room - (size_t)n, " and waits %s less for the device",
                 wr_duration(before - after).text);
}

/* Writes how many waits a mode does without, though no saving could be measured. "": none. */
static void print_fewer(const comparison *c, char *out, size_t room)
{
  uint64_t least = FIGURE(c, COMPARE_OBSERVE, waits).median;
  out[0] = 0;
  for (unsigned m = COMPARE_OBSERVE + 1; m < COMPARE_MODES; m++) {
    uint64_t fewer = FIGURE(c, COMPARE_OBSERVE, waits).median - FIGURE(c, m, waits).median;
    if (FIGURE(c, m, waits).median >= least) continue;
    least = FIGURE(c, m, waits).median;
    (void)snprintf(out, room, ", though %s waits %s times less", c->ways[m].name,
                   wr_count(fewer).text);
  }
}

/* Returns false when there is none; `out` has the reason. */
static bool print_conclusion(const comparison *c, char *out, size_t room)
{
  const char *agree = c->varies.there ? "its output varies by itself and was not compared"
                                      : "output and exit status are the same in all runs";
  unsigned best = quickest(c);
  char saved[160] = "", end[64];
  if (best)
    print_saved(c, best, saved, sizeof saved);
  else
    print_fewer(c, saved, sizeof saved);
  run_end_words(c->end, end);
  if (c->runs < 2)
    (void)snprintf(out, room, "one run each gives no verdict (-n 3 or more does); %s",
                   !compare_agree(c) ? "the runs do not agree" : agree);
  else if (!compare_agree(c))
    (void)snprintf(out, room, "%s is not what the bare program is: do not use it for this program",
                   c->ways[c->differs.mode].name);
  else if (c->end)
    (void)snprintf(out, room, "the program fails by itself (%s): there is nothing to compare; %s",
                   end, agree);
  else if (!FIGURE(c, COMPARE_OBSERVE, events).median)
    (void)snprintf(out, room, "no CUDA calls were seen: there is nothing to compare; %s", agree);
  else if (best)
    (void)snprintf(out, room, "%s; %s", saved, agree);
  else
    (void)snprintf(out, room, "no mode is surely quicker%s; %s", saved, agree);
  return c->runs > 1;
}

/* Whether other processes used much of the machine meanwhile. */
static bool machine_was_loaded(const comparison *c)
{
  return c->others > 0.1;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void mode_row(const comparison *c, wr_grid *g, unsigned m)
{
  spread time = FIGURE(c, m, duration_ns);
  uint64_t hits = FIGURE(c, m, hits).median, misses = FIGURE(c, m, misses).median;
  wr_grid_row(g);
  WR_CELLS(g, c->ways[m].name, wr_duration(time.median).text);
  wr_grid_cell(g, "%s – %s", wr_duration(time.least).text, wr_duration(time.most).text);
  if (m == COMPARE_BARE) {
    WR_CELLS(g, "-", "-", "-", "-", "-", "-");
    return;
  }
  ratio r = ratio_of(c, m);
  wr_grid_cell(g, "%.2f", r.median);
  if (c->runs > 1)
    wr_grid_cell(g, "%.2f – %.2f", r.low, r.high);
  else
    wr_grid_cell(g, "-");
  WR_CELLS(g, wr_count(FIGURE(c, m, waits).median).text,
           wr_duration(FIGURE(c, m, wait_ns).median).text,
           wr_bytes(FIGURE(c, m, peak_bytes).median).text,
           hits + misses ? wr_percent(hits, hits + misses).text : "-");
}

void compare_print_text(const comparison *c)
{
  char confidence[32] = "interval";
  wr_grid *g = cmd_alloc(sizeof *g);
  char text[320], end[64];
  if (c->runs > 1)
    (void)snprintf(confidence, sizeof confidence, "at %.0f %%",
                   ratio_of(c, COMPARE_OBSERVE).confidence * 100);
  if (c->varies.there) {
    printf("The program's own output varies from run to run:\n");
    print_difference(c, &c->varies);
  } else if (c->differs.there) {
    printf("The runs do not agree:\n");
    print_difference(c, &c->differs);
  }
  run_end_words(c->end, end);
  if (c->end) printf("The program ended with %s.\n", end);
  g->align = "lrrrrrrrr";
  wr_grid_row(g);
  WR_CELLS(g, "mode", "time", "from – to", "of bare", confidence, "waits", "waited", "peak memory",
           "hits");
  for (unsigned m = 0; m < COMPARE_MODES; m++)
    mode_row(c, g, m);
  wr_grid_print(stdout, g, 100, true, false);
  (void)print_conclusion(c, text, sizeof text);
  printf("%s\n", text);
  if (machine_was_loaded(c))
    printf("the machine was loaded: others had %.0f %% of its processors' time meanwhile\n",
           c->others * 100);
  free(g);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_count(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static json_t *json_difference(const comparison *c, const difference *d)
{
  return run_difference_json(d, c->ways[d->mode].name);
}

static json_t *json_mode(const comparison *c, unsigned m)
{
  json_t *o = json_object();
  spread time = FIGURE(c, m, duration_ns);
  uint64_t hits = FIGURE(c, m, hits).median, misses = FIGURE(c, m, misses).median;
  json_object_set_new(o, "mode", json_string(c->ways[m].name));
  json_object_set_new(o, "median_ns", json_count(time.median));
  json_object_set_new(o, "least_ns", json_count(time.least));
  json_object_set_new(o, "most_ns", json_count(time.most));
  if (m == COMPARE_BARE) return o; /* nobody looked at the rest */
  ratio r = ratio_of(c, m);
  json_object_set_new(o, "of_bare", json_real(r.median));
  json_object_set_new(o, "of_bare_low", c->runs > 1 ? json_real(r.low) : json_null());
  json_object_set_new(o, "of_bare_high", c->runs > 1 ? json_real(r.high) : json_null());
  json_object_set_new(o, "confidence", c->runs > 1 ? json_real(r.confidence) : json_null());
  json_object_set_new(o, "waits", json_count(FIGURE(c, m, waits).median));
  json_object_set_new(o, "wait_ns", json_count(FIGURE(c, m, wait_ns).median));
  json_object_set_new(o, "peak_bytes", json_count(FIGURE(c, m, peak_bytes).median));
  json_object_set_new(o, "hits", json_count(hits));
  json_object_set_new(o, "misses", json_count(misses));
  json_object_set_new(o, "hit_rate",
                      hits + misses ? json_real((double)hits / (double)(hits + misses))
                                    : json_null());
  return o;
}

bool compare_print_json(const comparison *c)
{
  json_t *o = json_object(), *inner = json_object(), *modes = json_array();
  char text[320], end[64];
  bool known = print_conclusion(c, text, sizeof text);
  run_end_words(c->end, end);
  json_object_set_new(inner, "runs", json_count(c->runs));
  json_object_set_new(inner, "agree", json_boolean(compare_agree(c)));
  json_object_set_new(inner, "end", json_string(end));
  json_object_set_new(inner, "difference", json_difference(c, &c->differs));
  json_object_set_new(inner, "varies", json_difference(c, &c->varies));
  for (unsigned m = 0; m < COMPARE_MODES; m++)
    json_array_append_new(modes, json_mode(c, m));
  json_object_set_new(inner, "modes", modes);
  json_object_set_new(inner, "verdict", known ? json_string(text) : json_null());
  json_object_set_new(inner, "no_verdict", known ? json_null() : json_string(text));
  json_object_set_new(inner, "others_share", c->others < 0 ? json_null() : json_real(c->others));
  json_object_set_new(inner, "loaded", json_boolean(machine_was_loaded(c)));
  bool good = !json_object_set_new(o, "compare", inner) &&
              !json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) &&
              putchar('\n') != EOF;
  json_decref(o);
  return good;
}
