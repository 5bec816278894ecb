/* prove_print.c: what weir prove prints about its runs: first whether anything could be proven,
 * then a line a finding: the saving that its findings estimate, and what the fix gained; then
 * what Weir cannot remove by itself, and how to. All times are of the host: how long the program
 * ran. */
#include "tools/weir/prove/prove.h"

#include <jansson.h>
#include <stdio.h>

#include "reports/write/layout.h"
#include "tools/weir/base/cmd.h"

static const char *prove_verdict_name(prove_verdict v)
{
  static const char *const names[] = {
      [PROVE_GAIN] = "proven",     [PROVE_NO_GAIN] = "not proven",
      [PROVE_LOSS] = "slower",     [PROVE_DIFFERS] = "output differs",
      [PROVE_UNUSED] = "not used", [PROVE_CANNOT] = "cannot",
      [PROVE_NONE] = "not found",  [PROVE_UNJUDGED] = "not judged"};
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

static void print_proof_row(wr_layout *page, const proving *p, const proof *x)
{
  wr_grid_row(&page->grid);
  CELLS(page, x->rule->id, x->first ? DURATION(x->estimate_ns) : unknown);
  if (!x->way || !p->reached)
    CELLS(page, unknown, unknown);
  else
    CELLS(page, signed_duration(x->gain.mean).text);
  if (x->way && p->reached && x->gain.known)
    CELL(page, "%s – %s", signed_duration(x->gain.low).text, signed_duration(x->gain.high).text);
  else if (x->way && p->reached)
    CELLS(page, unknown);
  CELLS(page, x->way && !p->reached ? "not run" : prove_verdict_name(x->verdict));
}

static void print_proof_table(wr_layout *page, const proving *p)
{
  wr_layout_begin(page, "lrrrl");
  ROW(page, "finding", "estimate", "gain", "at 95 %", "");
  for (unsigned i = 0; i < p->count; i++)
    print_proof_row(page, p, &p->proofs[i]);
  wr_layout_end(page);
}

/* Prints the lines below a finding. */
static void print_remark(wr_layout *page, const proving *p, const proof *x)
{
  switch (x->verdict) {
  case PROVE_DIFFERS:
    print_difference(page, x->rule->id, &p->r.of[x->way]);
    LINE(page, false, "%s: its fix is not proven: the program does something else with it.",
         x->rule->id);
    break;
  case PROVE_UNUSED:
    LINE(page, false, "%s: Weir's fix (%s) found nothing to do: what there is, it cannot take.",
         x->rule->id, x->rule->prove);
    break;
  case PROVE_CANNOT:
    LINE(page, false, "%s: Weir cannot remove this one: %s", x->rule->id, x->rule->fix);
    break;
  case PROVE_NONE:
    LINE(page, false, "%s: the recorded run has no such finding.", x->rule->id);
    break;
  case PROVE_UNJUDGED:
    LINE(page, false, "%s: the recorded run could not be judged by it.", x->rule->id);
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
  } else if (!p->count)
    LINE(page, false, "The recorded run has no finding: there is nothing to prove.");
  return p->r.end || !p->count;
}

void prove_print_text(const proving *p)
{
  wr_layout *page = cmd_alloc(sizeof *page);
  *page = (wr_layout){.out = stdout, .width = 80};
  if (!print_refusal(page, p)) {
    if (p->reached)
      LINE(page, false, "Host time, %u %s of runs without and with one fix each; without: %s.",
           p->r.runs, p->r.runs == 1 ? "pair" : "pairs", DURATION(prove_unfixed_ns(p)));
    print_proof_table(page, p);
    for (unsigned i = 0; i < p->count; i++)
      print_remark(page, p, &p->proofs[i]);
    if (p->reached && p->r.runs < 2)
      LINE(page, false, "One pair gives no interval, and proves no gain (-n 5 or more does).");
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
  if (!x->first || !x->first->sites) return json_null();
  const wr_finding_site *s = &x->first->site[0];
  json_t *o = json_object();
  json_object_set_new(o, "function", json_string(s->function));
  json_object_set_new(o, "file", s->file ? json_string(s->file) : json_null());
  json_object_set_new(o, "line", s->file ? json_integer(s->line) : json_null());
  return o;
}

static json_t *json_proof(const proving *p, const proof *x)
{
  json_t *o = json_object();
  bool measured = x->way && p->reached, interval = measured && x->gain.known;
  json_object_set_new(o, "rule", json_integer(x->rule->number));
  json_object_set_new(o, "id", json_string(x->rule->id));
  json_object_set_new(o, "fix", json_string(x->rule->fix));
  json_object_set_new(o, "prove", x->rule->prove ? json_string(x->rule->prove) : json_null());
  json_object_set_new(o, "count", json_quantity(x->count));
  json_object_set_new(o, "site", json_site(x));
  json_object_set_new(o, "saving_ns", x->first ? json_quantity(x->estimate_ns) : json_null());
  json_object_set_new(o, "gain_ns", measured ? json_real(x->gain.mean) : json_null());
  json_object_set_new(o, "gain_low_ns", interval ? json_real(x->gain.low) : json_null());
  json_object_set_new(o, "gain_high_ns", interval ? json_real(x->gain.high) : json_null());
  json_object_set_new(o, "applied", measured ? json_quantity(x->applied) : json_null());
  json_object_set_new(o, "difference",
                      measured ? run_difference_json(&p->r.of[x->way], NULL) : json_null());
  json_object_set_new(
      o, "verdict",
      json_string(x->way && !p->reached ? "not run" : prove_verdict_name(x->verdict)));
  return o;
}

bool prove_print_json(const proving *p)
{
  json_t *o = json_object(), *list = json_array();
  char end[64];
  run_end_words(p->r.end, end);
  json_object_set_new(o, "schema", json_string("weir-prove/1"));
  json_object_set_new(o, "pairs", json_quantity(p->r.runs));
  json_object_set_new(o, "confidence", json_real(0.95));
  json_object_set_new(o, "end", json_string(end));
  json_object_set_new(o, "unfixed_ns",
                      p->reached ? json_quantity(prove_unfixed_ns(p)) : json_null());
  json_object_set_new(o, "varies", run_difference_json(&p->r.varies, NULL));
  json_object_set_new(o, "others_share",
                      p->reached && p->r.others >= 0 ? json_real(p->r.others) : json_null());
  for (unsigned i = 0; i < p->count; i++)
    json_array_append_new(list, json_proof(p, &p->proofs[i]));
  bool good = !json_object_set_new(o, "findings", list) &&
              !json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) &&
              putchar('\n') != EOF;
  json_decref(o);
  return good;
}
