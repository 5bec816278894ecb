/* prove_print.c: what weir prove prints about its runs: first whether anything could be proven,
 * then a line a finding and place: what a fix in the source can gain, as its findings estimate, and
 * what Weir's fix gained; then, of each, where it is, what its calls and the whole run took without
 * and with the fix, and in how many calls it was done; what Weir cannot remove by itself, and how
 * to. All times are of the host. */
#include "tools/weir/prove/prove.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "reports/write/layout.h"
#include "tools/weir/base/cmd.h"

static const char *prove_verdict_name(prove_verdict v)
{
  static const char *const names[] = {
      [PROVE_GAIN] = "proven",     [PROVE_NO_GAIN] = "not proven",
      [PROVE_LOSS] = "slower",     [PROVE_DIFFERS] = "output differs",
      [PROVE_UNUSED] = "not used", [PROVE_CANNOT] = "cannot",
      [PROVE_NONE] = "not found",  [PROVE_UNJUDGED] = "not judged",
      [PROVE_ODD] = "not its own", [PROVE_LEFT] = "not tried"};
  return names[v];
}

static const char *const unknown = "-";

/* ---- words ----------------------------------------------------------------------------------- */

/* Writes a difference, as "-1.23 ms". */
static wr_word signed_duration(double ns)
{
  wr_word magnitude = wr_duration((uint64_t)(ns < 0 ? -ns : ns)), out;
  (void)snprintf(out.text, sizeof out.text, "%s%.*s", ns < 0 ? "-" : "", (int)sizeof out.text - 2,
                 magnitude.text);
  return out;
}

static void print_difference(wr_layout *page, const char *what, const difference *d)
{
  char expected[64], found[64];
  if (d->status) {
    run_end_words(d->expected_end, expected);
    run_end_words(d->found_end, found);
    LINE(page, false, "%s: it ends with %s instead of %s", what, found, expected);
    return;
  }
  LINE(page, false, "%s: stdout differs first at byte %llu, in line %llu:", what,
       (unsigned long long)d->offset, (unsigned long long)d->line);
  LINE(page, false, "  as it was: %s", run_line_words(d->expected));
  LINE(page, false, "  then: %s", run_line_words(d->found));
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_measured(const proving *p, const proof *x)
{
  return x->way && p->reached && x->pairs;
}

static void print_interval(wr_layout *page, const interval *g)
{
  CELLS(page, signed_duration(g->mean).text);
  if (g->known)
    CELL(page, "%s – %s", signed_duration(g->low).text, signed_duration(g->high).text);
  else
    CELLS(page, unknown);
}

static void print_proof_row(wr_layout *page, const proving *p, const proof *x)
{
  wr_grid_row(&page->grid);
  CELLS(page, x->rule ? x->rule->id : "all together",
        x->first ? DURATION(x->estimate_ns) : unknown);
  if (is_measured(p, x))
    print_interval(page, proof_gain(x));
  else
    CELLS(page, unknown, unknown);
  CELLS(page, x->way && !is_measured(p, x)                ? "not run"
              : x->verdict == PROVE_CANNOT && !x->why_not ? "cannot: no fix"
                                                          : prove_verdict_name(x->verdict));
}

static void print_proof_table(wr_layout *page, const proving *p)
{
  wr_layout_begin(page, "lrrrl");
  ROW(page, "finding", "source can", "Weir gains", "at 95 %", "");
  for (unsigned i = 0; i < p->count; i++)
    print_proof_row(page, p, &p->proofs[i]);
  if (p->all.way) print_proof_row(page, p, &p->all);
  wr_layout_end(page);
}

/* Prints where a proof is, and what was measured there. */
static void print_measured(wr_layout *page, const proving *p, const proof *x)
{
  const wr_finding_site *s = x->site;
  const interval *g = proof_gain(x);
  if (s && s->file)
    LINE(page, false, "%s at %s, %s:%d", x->rule->id, s->function, s->file, s->line);
  else
    LINE(page, false, "%s%s%s", x->rule ? x->rule->id : "all together", s ? " at " : "",
         s ? s->function : "");
  if (!is_measured(p, x)) return;
  LINE(page, false, "  %u %s; its calls %s → %s, done by Weir in %llu of %llu", x->pairs,
       x->pairs == 1 ? "pair" : "pairs", DURATION(x->before.ns), DURATION(x->after.ns),
       (unsigned long long)x->after.applied, (unsigned long long)x->after.calls);
  if (x->before.steps_ns && x->before.range[0])
    LINE(page, false, "  the steps, each a range %s, %s → %s (pace of their quickest quarter)",
         x->before.range, DURATION(x->before.steps_ns), DURATION(x->after.steps_ns));
  else if (x->before.steps_ns)
    LINE(page, false, "  the steps around them %s → %s (pace of their quickest quarter)",
         DURATION(x->before.steps_ns), DURATION(x->after.steps_ns));
  else
    LINE(page, false, "  they do not repeat often enough to compare the steps around them");
  LINE(page, false, "  the whole run: gain %s%s%s%s%s%s", signed_duration(x->run.mean).text,
       x->run.known ? " (" : "", x->run.known ? signed_duration(x->run.low).text : "",
       x->run.known ? " – " : "", x->run.known ? signed_duration(x->run.high).text : "",
       x->run.known ? ")" : "");
  if (x->verdict == PROVE_NO_GAIN && g->known)
    LINE(page, false, "  this machine's noise in %u pairs hides a gain below %s", x->pairs,
         signed_duration((g->high - g->low) / 2).text);
}

/* Prints the lines below a finding. */
static void print_remark(wr_layout *page, const proving *p, const proof *x)
{
  const char *id = x->rule ? x->rule->id : "all together";
  if (x->way) print_measured(page, p, x);
  switch (x->verdict) {
  case PROVE_DIFFERS:
    print_difference(page, id, &p->r.of[x->way]);
    LINE(page, false, "%s: its fix is not proven: the program does something else with it.", id);
    break;
  case PROVE_UNUSED:
    LINE(page, false, "%s: Weir's fix (%s) found nothing to do: what there is, it cannot take.", id,
         x->rule ? x->rule->prove : "all");
    break;
  case PROVE_ODD:
    LINE(page, false,
         "%s: the gain is more than the calls took that the fix can change: it is not "
         "the fix's.",
         id);
    break;
  case PROVE_CANNOT:
    if (x->why_not) LINE(page, false, "%s: Weir cannot: %s", id, x->why_not);
    break;
  case PROVE_LEFT:
    LINE(page, false, "%s: not tried, as %d others matter more; name it to have it tried.", id,
         PROVE_WAYS);
    break;
  case PROVE_NONE:
    LINE(page, false, "%s: the recorded run has no such finding.", id);
    break;
  case PROVE_UNJUDGED:
    LINE(page, false, "%s: the recorded run could not be judged by it.", id);
    break;
  default:
    break;
  }
}

/* Prints why there was nothing to prove, or no proof. Returns false when there was one. */
static bool print_refusal(wr_layout *page, const proving *p)
{
  char end[64];
  run_end_words(p->r.end, end);
  if (p->r.end)
    LINE(page, false, "The program fails by itself (%s): there is nothing to prove.", end);
  else if (p->r.varies.there) {
    print_difference(page, "The program's own output varies from run to run", &p->r.varies);
    LINE(page, false, "No fix can be proven: whether it keeps the output cannot be seen.");
  } else if (!p->count && !p->gone)
    LINE(page, false, "The recorded run has no finding: there is nothing to prove.");
  if (p->gone)
    LINE(page, false, "%u of the fixes (the first in line %u) %s no place in the recorded run.",
         p->gone, p->gone_line, p->gone == 1 ? "has" : "have");
  return p->r.end || !p->count;
}

static bool has_source_fix(const proving *p)
{
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].verdict == PROVE_CANNOT) return true;
  return false;
}

static bool has_one_pair(const proving *p)
{
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].pairs == 1 && p->proofs[i].verdict == PROVE_NO_GAIN) return true;
  return false;
}

void prove_print_text(const proving *p)
{
  wr_layout *page = cmd_alloc(sizeof *page);
  *page = (wr_layout){.out = stdout, .width = 80};
  if (!print_refusal(page, p)) {
    if (p->reached)
      LINE(page, false,
           "Host time, runs without and with each fix, in an order drawn at random; "
           "without: %s.",
           DURATION(prove_unfixed_ns(p)));
    if (p->simulated)
      LINE(page, false, "The device is simulated (%s): a GPU's times are others.",
           p->places.card ? p->places.card : "the software device");
    print_proof_table(page, p);
    for (unsigned i = 0; i < p->count; i++)
      print_remark(page, p, &p->proofs[i]);
    if (p->all.way) print_remark(page, p, &p->all);
    if (has_source_fix(p))
      LINE(page, false, "What Weir cannot, the source can: 'weir report findings' shows how.");
    if (p->reached && has_one_pair(p))
      LINE(page, false, "One pair gives no interval, and proves no gain (--pairs 5 or more does).");
    if (p->reached && p->r.others > 0.1)
      LINE(page, false, "The machine was loaded: others had %.0f %% of its processors' time.",
           p->r.others * 100);
  }
  (void)wr_layout_done(page);
  free(page);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_quantity(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static json_t *json_site(const proof *x)
{
  const wr_finding_site *s = x->site;
  if (!s) return json_null();
  json_t *o = json_object();
  json_object_set_new(o, "function", json_string(s->function));
  json_object_set_new(o, "file", s->file ? json_string(s->file) : json_null());
  json_object_set_new(o, "line", s->file ? json_integer(s->line) : json_null());
  return o;
}

/* Adds PREFIXgain_ns, _low_ns and _high_ns. */
static void add_gain(json_t *o, const char *prefix, const interval *g, bool measured)
{
  const struct {
    const char *name;
    double value;
    bool there;
  } all[] = {{"gain_ns", g->mean, measured},
             {"gain_low_ns", g->low, measured && g->known},
             {"gain_high_ns", g->high, measured && g->known}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char *name = cmd_format("%s%s", prefix, all[i].name);
    json_object_set_new(o, name, all[i].there ? json_real(all[i].value) : json_null());
    free(name);
  }
}

static json_t *json_figures(const spot_figures *f, bool measured)
{
  if (!measured) return json_null();
  json_t *o = json_object();
  json_object_set_new(o, "calls", json_quantity(f->calls));
  json_object_set_new(o, "calls_ns", json_quantity(f->ns));
  json_object_set_new(o, "steps_ns", f->steps_ns ? json_quantity(f->steps_ns) : json_null());
  return o;
}

static json_t *json_proof(const proving *p, const proof *x)
{
  json_t *o = json_object();
  bool measured = is_measured(p, x), steps = measured && x->before.steps_ns;
  const wr_rule *r = x->rule;
  json_object_set_new(o, "rule", r ? json_integer(r->number) : json_null());
  json_object_set_new(o, "id", r ? json_string(r->id) : json_null());
  json_object_set_new(o, "fix", r ? json_string(r->fix) : json_null());
  json_object_set_new(o, "prove", r && r->prove ? json_string(r->prove) : json_null());
  json_object_set_new(o, "why_not", x->why_not ? json_string(x->why_not) : json_null());
  json_object_set_new(o, "count", json_quantity(x->count));
  json_object_set_new(o, "site", json_site(x));
  json_object_set_new(o, "saving_ns", x->first ? json_quantity(x->estimate_ns) : json_null());
  json_object_set_new(o, "pairs", json_quantity(x->pairs));
  json_object_set_new(o, "decided_by",
                      measured ? json_string(steps ? "steps" : "calls") : json_null());
  json_object_set_new(o, "step_range",
                      steps && x->before.range[0] ? json_string(x->before.range) : json_null());
  add_gain(o, "", proof_gain(x), measured);
  add_gain(o, "steps_", &x->steps, steps);
  add_gain(o, "calls_", &x->calls, measured);
  add_gain(o, "run_", &x->run, measured);
  json_object_set_new(o, "without", json_figures(&x->before, measured));
  json_object_set_new(o, "with", json_figures(&x->after, measured));
  json_object_set_new(o, "applied", measured ? json_quantity(x->after.applied) : json_null());
  json_object_set_new(o, "difference",
                      measured ? run_difference_json(&p->r.of[x->way], NULL) : json_null());
  json_object_set_new(
      o, "verdict", json_string(x->way && !measured ? "not run" : prove_verdict_name(x->verdict)));
  return o;
}

bool prove_print_json(const proving *p)
{
  json_t *o = json_object(), *list = json_array();
  char end[64];
  run_end_words(p->r.end, end);
  json_object_set_new(o, "schema", json_string("weir-prove/2"));
  json_object_set_new(o, "simulated", json_boolean(p->simulated));
  json_object_set_new(o, "card", p->places.card ? json_string(p->places.card) : json_null());
  json_object_set_new(o, "driver", p->driver ? json_integer(p->driver) : json_null());
  json_object_set_new(o, "confidence", json_real(0.95));
  json_object_set_new(o, "end", json_string(end));
  json_object_set_new(o, "unfixed_ns",
                      p->reached ? json_quantity(prove_unfixed_ns(p)) : json_null());
  json_object_set_new(o, "varies", run_difference_json(&p->r.varies, NULL));
  json_object_set_new(o, "others_share",
                      p->reached && p->r.others >= 0 ? json_real(p->r.others) : json_null());
  for (unsigned i = 0; i < p->count; i++)
    json_array_append_new(list, json_proof(p, &p->proofs[i]));
  json_object_set_new(o, "together", p->all.way ? json_proof(p, &p->all) : json_null());
  bool good = !json_object_set_new(o, "findings", list) &&
              !json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) &&
              putchar('\n') != EOF;
  json_decref(o);
  return good;
}
