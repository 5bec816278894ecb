/* prove.c: weir prove: what a finding's fix really gains, measured.
 *
 * The program is run once, observed, and its findings are looked for. Then it is run in rounds
 * (rounds.h): observed, as it is, and with each fix that Weir can make by itself, one at a time: a
 * mode and a part of what it reroutes, which the rule of the finding names
 * (reports/findings/rule.h, "prove"). A round's gain is the difference of its own two runs, so
 * that a machine that slows down slows both; recording costs both the same. A program whose own
 * output changes is refused: what a fix does to it could not be seen. */
#include "tools/weir/prove/prove.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/reroutes.h"
#include "reports/model/open.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/guess.h"

typedef struct work {
  proving p;
  char **asked; /* ids or numbers of findings; borrowed */
  unsigned asked_count;
  rounds_way *ways;  /* owned, with their reroutes' modes */
  const char *rules; /* NULL: none but ours */
  bool json;
} work;

/* ---- which findings -------------------------------------------------------------------------- */

/* Returns a rule by its id or number. NULL: there is none. */
static const wr_rule *find_rule(const wr_rules *rules, const char *name)
{
  long number = 0;
  bool is_number = cmd_number(name, 1, 999999, &number);
  for (size_t i = 0; i < rules->count; i++)
    if (!strcmp(rules->rule[i].id, name) || (is_number && rules->rule[i].number == number))
      return &rules->rule[i];
  return NULL;
}

static void refuse_name(const cmd *c, const wr_rules *rules, const char *name)
{
  guess g = {.word = name};
  for (size_t i = 0; i < rules->count; i++)
    guess_offer(&g, rules->rule[i].id);
  (void)guess_refuse(c, &g, "finding", "; 'weir report findings' has their names");
}

/* Checks before all runs that no name is wrong. */
static bool check_names(const cmd *c, const work *w)
{
  wr_rules rules;
  bool good = wr_rules_load(&rules, w->rules) == WEIR_OK;
  if (!good) cmd_message("%s.", weir_error_message());
  for (unsigned i = 0; good && i < w->asked_count; i++) {
    good = find_rule(&rules, w->asked[i]) != NULL;
    if (!good) refuse_name(c, &rules, w->asked[i]);
  }
  wr_rules_free(&rules);
  return good;
}

static proof *proof_of(proving *p, const wr_rule *rule)
{
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].rule == rule) return &p->proofs[i];
  p->proofs[p->count] = (proof){.rule = rule, .verdict = PROVE_NONE};
  return &p->proofs[p->count++];
}

static bool is_unjudged(const wr_findings *f, const wr_rule *rule)
{
  for (size_t i = 0; i < f->unjudged_count; i++)
    if (f->unjudged[i].rule == rule) return true;
  return false;
}

static bool is_asked(const work *w, const wr_rule *rule)
{
  for (unsigned i = 0; i < w->asked_count; i++)
    if (find_rule(&w->p.findings.rules, w->asked[i]) == rule) return true;
  return !w->asked_count;
}

/* Makes a proof for each rule that was asked for, in that order, or else for each that has
 * findings. */
static void take_findings(work *w)
{
  proving *p = &w->p;
  const wr_findings *f = &p->findings;
  p->proofs = cmd_alloc((f->rules.count + 1) * sizeof *p->proofs);
  for (unsigned i = 0; i < w->asked_count; i++)
    (void)proof_of(p, find_rule(&f->rules, w->asked[i]));
  for (size_t i = 0; i < f->count; i++) {
    if (!is_asked(w, f->finding[i].rule)) continue;
    proof *x = proof_of(p, f->finding[i].rule);
    if (!x->first) x->first = &f->finding[i];
    x->estimate_ns += f->finding[i].saving_ns;
    x->count += f->finding[i].count;
    x->verdict = x->rule->prove ? PROVE_NO_GAIN : PROVE_CANNOT;
  }
  for (unsigned i = 0; i < p->count; i++)
    if (!p->proofs[i].first && is_unjudged(f, p->proofs[i].rule))
      p->proofs[i].verdict = PROVE_UNJUDGED;
}

/* Loads the findings of a trace. Those that are asked for by name are taken whatever they cost. */
static bool load_trace_findings(work *w, const char *trace)
{
  wr_input in;
  const wr_findings_settings settings = {
      .rules = w->rules, .min = w->asked_count ? (wr_min_cost){.share = -1} : (wr_min_cost){0}};
  weir_status st = wr_input_open(&in, trace);
  if (!st) {
    st = wr_findings_load(&w->p.findings, &in.db, &settings);
    wr_input_close(&in);
  }
  if (st) cmd_message("%s.", weir_error_message());
  if (!st && w->p.findings.unavailable) cmd_message("%s.", w->p.findings.unavailable);
  return !st && !w->p.findings.unavailable;
}

/* ---- their fixes ----------------------------------------------------------------------------- */

/* Returns the way that has the fix, made if there is none yet. */
static unsigned way_of(work *w, const char *fix)
{
  size_t mode = strcspn(fix, " ");
  unsigned bits = 0, count = w->p.r.count;
  for (unsigned i = 1; i < count; i++)
    if (!strcmp(w->ways[i].name, fix)) return i;
  (void)reroutes_read(&bits, "prove", fix + mode + 1); /* checked when the rule was read */
  w->ways[count] = (rounds_way){.name = fix,
                                .mode = mode == strlen("strict") ? "strict" : "relaxed",
                                .reroute = fix + mode + 1,
                                .staged = (bits & REROUTE_STAGING) != 0};
  return w->p.r.count++;
}

static void take_fixes(work *w)
{
  proving *p = &w->p;
  w->ways = cmd_alloc((p->count + 1) * sizeof *w->ways);
  w->ways[0] = (rounds_way){.name = "as it is", .mode = "observe"};
  p->r.ways = w->ways;
  p->r.count = 1;
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].first && p->proofs[i].rule->prove)
      p->proofs[i].way = way_of(w, p->proofs[i].rule->prove);
}

/* ---- what came of it ------------------------------------------------------------------------- */

static int by_duration(const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

/* Returns the median over the rounds of a member of a way's figures, of two the lower. */
static uint64_t median_of_rounds(const rounds *r, unsigned way, size_t member)
{
  uint64_t *all = cmd_alloc(r->runs * sizeof *all);
  for (unsigned i = 0; i < r->runs; i++)
    memcpy(&all[i], (const char *)&r->figures[way * r->runs + i] + member, sizeof *all);
  qsort(all, r->runs, sizeof *all, by_duration);
  uint64_t median = all[(r->runs - 1) / 2];
  free(all);
  return median;
}

uint64_t prove_unfixed_ns(const proving *p)
{
  return median_of_rounds(&p->r, 0, offsetof(run_figures, duration_ns));
}

static interval gain_of(const rounds *r, unsigned way)
{
  double *all = cmd_alloc(r->runs * sizeof *all);
  for (unsigned i = 0; i < r->runs; i++)
    all[i] = (double)r->figures[i].duration_ns - (double)r->figures[way * r->runs + i].duration_ns;
  interval gain = interval_of(all, r->runs);
  free(all);
  return gain;
}

static void judge_fixes(proving *p)
{
  for (unsigned i = 0; i < p->count; i++) {
    proof *x = &p->proofs[i];
    if (!x->way) continue;
    x->applied = median_of_rounds(&p->r, x->way, offsetof(run_figures, rerouted));
    x->gain = gain_of(&p->r, x->way);
    x->verdict = p->r.of[x->way].there ? PROVE_DIFFERS
                 : !x->applied         ? PROVE_UNUSED
                 : !x->gain.known      ? PROVE_NO_GAIN
                 : x->gain.low > 0     ? PROVE_GAIN
                 : x->gain.high < 0    ? PROVE_LOSS
                                       : PROVE_NO_GAIN;
  }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print_proofs(const work *w)
{
  const proving *p = &w->p;
  bool good = !p->r.end && !p->r.varies.there;
  for (unsigned i = 0; i < p->count; i++)
    good &= p->proofs[i].verdict != PROVE_DIFFERS;
  if (!w->json) {
    prove_print_text(p);
  } else if (!prove_print_json(p)) {
    cmd_message("cannot print the proofs.");
    return CMD_FAILED;
  }
  return good ? 0 : CMD_FAILED;
}

static int prove_all(work *w)
{
  proving *p = &w->p;
  char *trace = NULL;
  const rounds_way recorded = {.name = "as it is", .mode = "observe"};
  p->r.ways = &recorded, p->r.count = 1;
  int status = rounds_begin(&p->r) ? rounds_record(&p->r, &trace) : CMD_FAILED;
  if (!status && !p->r.end && !load_trace_findings(w, trace)) status = CMD_FAILED;
  free(trace);
  if (status) return status;
  take_findings(w);
  take_fixes(w);
  if (p->r.count > 1 && !p->r.end) {
    status = rounds_run(&p->r);
    p->reached = !status && !p->r.varies.there;
  }
  if (p->reached) judge_fixes(p);
  return status ? status : print_proofs(w);
}

/* Returns where the program begins in FINDING... -- PROGRAM [ARG]... argc: there is none. */
static int program_place(int argc, char **argv)
{
  int at = 1;
  while (at < argc && strcmp(argv[at], "--") != 0)
    at++;
  return at;
}

int prove_main(const cmd *c, int argc, char **argv)
{
  work w = {.p.r = {.command = "prove", .steady = true}};
  int split = program_place(argc, argv);
  cmd_line line = {.read = environment_read_sim, .context = &w.p.r.sim};
  int at = cmd_parse(c, split, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  w.p.r.runs = (unsigned)cmd_number_of(&line, OPT_PAIRS, 5);
  w.json = line.value[OPT_TEXT_OR_JSON].number;
  w.rules = line.value[OPT_RULES].text;
  if (split + 1 >= argc) return cmd_usage(c, "which program? '-- PROGRAM' is missing");
  w.asked = argv + at, w.asked_count = (unsigned)(split - at);
  w.p.r.argv = argv + split + 1; /* NULL-terminated, as argv is */
  if (!check_names(c, &w)) return CMD_USAGE;
  int status = prove_all(&w);
  rounds_end(&w.p.r);
  wr_findings_free(&w.p.findings);
  free(w.p.proofs);
  free(w.ways);
  return status;
}
