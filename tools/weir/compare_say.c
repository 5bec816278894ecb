/* compare_say.c: what weir compare says of its runs: first whether they agree, then a line a mode,
 * then a verdict. Of several runs the median counts, and the spread is shown; a mode is called
 * quicker only when all of its runs were quicker than all bare ones. What it waits is set beside
 * what the observed program waits, for of the bare one nobody knows. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "reports/grid.h"
#include "tools/weir/cmd.h"
#include "tools/weir/compare.h"

typedef struct spread {
  uint64_t median, least, most;
} spread;

static int by_size(const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

/* Of a member of the figures, given by its place in them, over the runs of a mode. */
static spread of(const comparison *c, unsigned mode, size_t member)
{
  uint64_t *all = cmd_alloc(c->runs * sizeof *all);
  for (unsigned i = 0; i < c->runs; i++) {
    const weir_figures *f = &c->figures[mode * c->runs + i];
    memcpy(&all[i], (const char *)f + member, sizeof *all);
  }
  qsort(all, c->runs, sizeof *all, by_size);
  uint64_t low = all[(c->runs - 1) / 2], high = all[c->runs / 2];
  spread s = {low + (high - low) / 2, all[0], all[c->runs - 1]};
  free(all);
  return s;
}

#define OF(c, mode, member) of(c, mode, offsetof(weir_figures, member))

bool compare_agree(const comparison *c)
{
  return c->varies.there || !c->differs.there;
}

/* ---- words -------------------------------------------------------------------------------------
 */

static void say_end(int status, char out[64])
{
  if (WIFEXITED(status))
    (void)snprintf(out, 64, "exit status %d", WEXITSTATUS(status));
  else
    (void)snprintf(out, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static const char *or_end(const char *line)
{
  return *line ? line : "(nothing)";
}

/* Where a run differs from the first; three lines at most. */
static void print_difference(const difference *d)
{
  char expected[64], found[64];
  if (d->status) {
    say_end(d->expected_end, expected);
    say_end(d->found_end, found);
    printf("  bare ended with %s, %s with %s\n", expected, compare_modes[d->mode], found);
    return;
  }
  printf("  stdout differs first at byte %llu, in line %llu:\n    bare: %s\n    %s: %s\n",
         (unsigned long long)d->offset, (unsigned long long)d->line, or_end(d->expected),
         compare_modes[d->mode], or_end(d->found));
}

/* The quickest mode whose runs are all quicker than all bare ones; 0: none, or none that one run
 * each could tell. */
static unsigned quickest(const comparison *c)
{
  spread base = OF(c, COMPARE_BARE, duration_ns);
  unsigned best = 0;
  if (c->runs < 2) return 0;
  for (unsigned m = COMPARE_OBSERVE + 1; m < COMPARE_MODES; m++) {
    spread s = OF(c, m, duration_ns);
    if (s.most >= base.least) continue;
    if (!best || s.median < OF(c, best, duration_ns).median) best = m;
  }
  return best;
}

/* What the quickest mode saves. */
static void say_saved(const comparison *c, unsigned best, char *out, size_t room)
{
  double base = (double)OF(c, COMPARE_BARE, duration_ns).median;
  uint64_t before = OF(c, COMPARE_OBSERVE, wait_ns).median, after = OF(c, best, wait_ns).median;
  int n = snprintf(out, room, "%s takes %.2f of the bare time (median of %u)", compare_modes[best],
                   (double)OF(c, best, duration_ns).median / base, c->runs);
  if (n < 0 || (size_t)n >= room || after >= before) return;
  (void)snprintf(out + n, room - (size_t)n, " and waits %s less for the device",
                 wr_duration(before - after).text);
}

/* The waits that a mode does without, though that saves no time that could be told; "": none. */
static void say_fewer(const comparison *c, char *out, size_t room)
{
  uint64_t least = OF(c, COMPARE_OBSERVE, waits).median;
  out[0] = 0;
  for (unsigned m = COMPARE_OBSERVE + 1; m < COMPARE_MODES; m++) {
    uint64_t fewer = OF(c, COMPARE_OBSERVE, waits).median - OF(c, m, waits).median;
    if (OF(c, m, waits).median >= least) continue;
    least = OF(c, m, waits).median;
    (void)snprintf(out, room, ", though %s waits %s times less", compare_modes[m],
                   wr_count(fewer).text);
  }
}

static void verdict(const comparison *c, char *out, size_t room)
{
  const char *agree = c->varies.there ? "its output varies by itself and was not compared"
                                      : "output and exit status are the same in all runs";
  unsigned best = quickest(c);
  char saved[160] = "";
  if (best)
    say_saved(c, best, saved, sizeof saved);
  else
    say_fewer(c, saved, sizeof saved);
  if (!compare_agree(c))
    (void)snprintf(out, room,
                   "%s is not what the bare program is: do not use it for this program%s",
                   compare_modes[c->differs.mode],
                   c->runs > 1 ? "" : " (-n 2 or more tells whether its output varies by itself)");
  else if (!OF(c, COMPARE_OBSERVE, events).median)
    (void)snprintf(out, room, "no CUDA calls were seen: there is nothing to compare; %s", agree);
  else if (best)
    (void)snprintf(out, room, "%s; %s", saved, agree);
  else if (c->runs < 2)
    (void)snprintf(out, room, "one run each says little of time (-n 3 says more); %s", agree);
  else
    (void)snprintf(out, room, "no mode is quicker beyond the spread of the runs%s; %s", saved,
                   agree);
}

/* ---- text --------------------------------------------------------------------------------------
 */

static void mode_row(const comparison *c, wr_grid *g, unsigned m)
{
  spread time = OF(c, m, duration_ns);
  uint64_t hits = OF(c, m, hits).median, misses = OF(c, m, misses).median;
  wr_grid_row(g);
  wr_grid_cell(g, "%s", compare_modes[m]);
  wr_grid_cell(g, "%s", wr_duration(time.median).text);
  wr_grid_cell(g, "%s – %s", wr_duration(time.least).text, wr_duration(time.most).text);
  if (m == COMPARE_BARE) {
    for (int i = 0; i < 4; i++)
      wr_grid_cell(g, "-");
    return;
  }
  wr_grid_cell(g, "%s", wr_count(OF(c, m, waits).median).text);
  wr_grid_cell(g, "%s", wr_duration(OF(c, m, wait_ns).median).text);
  wr_grid_cell(g, "%s", wr_bytes(OF(c, m, peak_bytes).median).text);
  wr_grid_cell(g, "%s", hits + misses ? wr_percent(hits, hits + misses).text : "-");
}

void compare_print_text(const comparison *c)
{
  static const char *const titles[] = {"mode",   "time",        "from – to", "waits",
                                       "waited", "peak memory", "hits"};
  wr_grid *g = cmd_alloc(sizeof *g);
  char text[256], end[64];
  if (c->varies.there) {
    printf("The program's own output varies from run to run:\n");
    print_difference(&c->varies);
  } else if (c->differs.there) {
    printf("The runs do not agree:\n");
    print_difference(&c->differs);
  }
  say_end(c->end, end);
  if (c->end) printf("The program ended with %s.\n", end);
  g->align = "lrrrrrr";
  wr_grid_row(g);
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
    wr_grid_cell(g, "%s", titles[i]);
  for (unsigned m = 0; m < COMPARE_MODES; m++)
    mode_row(c, g, m);
  wr_grid_print(stdout, g, 100, true, false);
  verdict(c, text, sizeof text);
  printf("%s\n", text);
  free(g);
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static json_t *number(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static json_t *json_difference(const difference *d)
{
  if (!d->there) return json_null();
  json_t *o = json_object();
  char expected[64], found[64];
  say_end(d->expected_end, expected);
  say_end(d->found_end, found);
  json_object_set_new(o, "mode", json_string(compare_modes[d->mode]));
  json_object_set_new(o, "run", number(d->run));
  json_object_set_new(o, "expected_end", json_string(expected));
  json_object_set_new(o, "found_end", json_string(found));
  json_object_set_new(o, "offset", number(d->offset));
  json_object_set_new(o, "line", number(d->line));
  json_object_set_new(o, "expected", json_string(d->expected));
  json_object_set_new(o, "found", json_string(d->found));
  return o;
}

static json_t *json_mode(const comparison *c, unsigned m)
{
  json_t *o = json_object();
  spread time = OF(c, m, duration_ns);
  uint64_t hits = OF(c, m, hits).median, misses = OF(c, m, misses).median;
  json_object_set_new(o, "mode", json_string(compare_modes[m]));
  json_object_set_new(o, "median_ns", number(time.median));
  json_object_set_new(o, "least_ns", number(time.least));
  json_object_set_new(o, "most_ns", number(time.most));
  if (m == COMPARE_BARE) return o; /* nobody looked at the rest */
  json_object_set_new(o, "waits", number(OF(c, m, waits).median));
  json_object_set_new(o, "wait_ns", number(OF(c, m, wait_ns).median));
  json_object_set_new(o, "peak_bytes", number(OF(c, m, peak_bytes).median));
  json_object_set_new(o, "hits", number(hits));
  json_object_set_new(o, "misses", number(misses));
  json_object_set_new(o, "hit_rate",
                      hits + misses ? json_real((double)hits / (double)(hits + misses))
                                    : json_null());
  return o;
}

bool compare_print_json(const comparison *c)
{
  json_t *o = json_object(), *inner = json_object(), *modes = json_array();
  char text[256], end[64];
  verdict(c, text, sizeof text);
  say_end(c->end, end);
  json_object_set_new(inner, "runs", number(c->runs));
  json_object_set_new(inner, "agree", json_boolean(compare_agree(c)));
  json_object_set_new(inner, "end", json_string(end));
  json_object_set_new(inner, "difference", json_difference(&c->differs));
  json_object_set_new(inner, "varies", json_difference(&c->varies));
  for (unsigned m = 0; m < COMPARE_MODES; m++)
    json_array_append_new(modes, json_mode(c, m));
  json_object_set_new(inner, "modes", modes);
  json_object_set_new(inner, "verdict", json_string(text));
  bool good = !json_object_set_new(o, "compare", inner) && !json_dumpf(o, stdout, JSON_INDENT(2)) &&
              putchar('\n') != EOF;
  json_decref(o);
  return good;
}
