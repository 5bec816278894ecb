/* prove.c: weir prove: what a fix of Weir's at a finding's place really gains, measured.
 *
 * The program is run once, recorded, and its findings are looked for: a rule at a place is a
 * candidate, and where Weir has a fix of its own for it (reports/findings/rule.h, "prove") that is
 * tried there alone, by a file of fixes. Then the program is run in rounds (rounds.h): as it is,
 * with each fix that is still undecided, and with all of them, in an order drawn at random, each
 * run recorded. Where one is no gain, those that were proven are tried together at the end. A
 * round's gain is the difference of its own two runs, so that a machine that slows down slows both.
 * A program whose own output changes is refused: what a fix does to it could not be seen. */
#include "tools/weir/prove/prove.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "reports/model/open.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/guess.h"

typedef struct work {
  proving p;
  char **asked; /* ids or numbers of findings; borrowed */
  unsigned asked_count;
  const char *rules;  /* NULL: none but ours */
  const char *output; /* where what was proven is written; NULL: nowhere */
  const char *apply;  /* the fixes that are proven again; NULL: of findings */
  rule_list *fixes;   /* owned: these */
  unsigned pairs;     /* 0: until it is decided */
  uint64_t until;     /* ns, monotonic: no round begins after it */
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

static bool same_site(const wr_finding_site *a, const wr_finding_site *b)
{
  if (!a || !b) return a == b;
  return a->line == b->line && !strcmp(a->function, b->function) &&
         (a->file && b->file ? !strcmp(a->file, b->file) : a->file == b->file);
}

/* Of a rule that Weir has no fix for, all places are one. */
static proof *proof_of(proving *p, const wr_rule *rule, const wr_finding_site *site)
{
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].rule == rule && (!rule->prove || same_site(p->proofs[i].site, site)))
      return &p->proofs[i];
  p->proofs[p->count] = (proof){.rule = rule, .site = site, .verdict = PROVE_NONE};
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

/* Adds a finding at one of its places, which has that part of it. */
static void take_site(proving *p, const wr_finding *f, const wr_finding_site *site)
{
  bool part = f->sites > 1 && f->cost_ns && site;
  double share = part ? (double)site->cost_ns / (double)f->cost_ns : 1;
  proof *x = proof_of(p, f->rule, site);
  if (!x->first) x->first = f;
  x->estimate_ns += (uint64_t)((double)f->saving_ns * share);
  x->count += part ? site->count : f->count;
}

static int by_estimate(const void *left, const void *right)
{
  const proof *a = left, *b = right;
  if (a->estimate_ns != b->estimate_ns) return a->estimate_ns < b->estimate_ns ? 1 : -1;
  return a->rule->number - b->rule->number;
}

static bool has_finding(const wr_findings *f, const wr_rule *rule)
{
  for (size_t i = 0; i < f->count; i++)
    if (f->finding[i].rule == rule) return true;
  return false;
}

/* Makes a proof for each place of each rule that was asked for, or else of each that has findings.
 */
static void take_findings(work *w)
{
  proving *p = &w->p;
  const wr_findings *f = &p->findings;
  size_t most = w->asked_count + 1;
  for (size_t i = 0; i < f->count; i++)
    most += f->finding[i].sites + 1;
  p->proofs = cmd_alloc(most * sizeof *p->proofs);
  for (size_t i = 0; i < f->count; i++) {
    const wr_finding *x = &f->finding[i];
    if (!is_asked(w, x->rule)) continue;
    for (size_t k = 0; k < x->sites; k++)
      if (x->site[k].cost_ns || x->site[k].count || !k) take_site(p, x, &x->site[k]);
    if (!x->sites) take_site(p, x, NULL);
  }
  for (unsigned i = 0; i < p->count; i++)
    candidate_make(p, &p->proofs[i]);
  qsort(p->proofs, p->count, sizeof *p->proofs, by_estimate);
  for (unsigned i = 0; i < w->asked_count; i++) {
    const wr_rule *rule = find_rule(&f->rules, w->asked[i]);
    if (has_finding(f, rule)) continue;
    proof_of(p, rule, NULL)->verdict = is_unjudged(f, rule) ? PROVE_UNJUDGED : PROVE_NONE;
  }
}

/* Loads the findings of a trace. Those that are asked for by name are taken whatever they cost. */
static bool load_trace_findings(work *w, const char *trace)
{
  wr_input in;
  const wr_findings_settings settings = {
      .rules = w->rules,
      .min = w->asked_count || w->apply ? (wr_min_cost){.share = -1} : (wr_min_cost){0}};
  weir_status st = wr_input_open(&in, trace);
  if (!st) {
    st = wr_findings_load(&w->p.findings, &in.db, &settings);
    if (!st && !spots_load(&w->p.places, &in.db)) {
      wr_input_close(&in);
      return false;
    }
    wr_input_close(&in);
  }
  if (st) cmd_message("%s.", weir_error_message());
  if (!st && w->p.findings.unavailable) cmd_message("%s.", w->p.findings.unavailable);
  return !st && !w->p.findings.unavailable;
}

/* ---- fixes that are proven again ------------------------------------------------------------- */

/* Whether the file has the line of a proof, in whichever build, and which of its lines that is. */
static bool is_in_fixes(const rule_list *fixes, const prove_line *l, bool *is_met)
{
  char *function = fixes_word(l->at->function), *module = fixes_word(l->at->module);
  bool found = false;
  for (unsigned k = 0; k < fixes->count; k++) {
    const rule_entry *r = &fixes->rule[k];
    if (r->fix == l->action && !strcmp(r->function, function) && !strcmp(r->module, module))
      found = is_met[k] = true;
  }
  free(function), free(module);
  return found;
}

/* Keeps of the proofs the lines that the file has, and counts those of it that are in none. */
static void keep_applied(work *w)
{
  proving *p = &w->p;
  bool *is_met = cmd_alloc((w->fixes->count + 1) * sizeof *is_met);
  unsigned kept = 0;
  for (unsigned i = 0; i < p->count; i++) {
    proof *x = &p->proofs[i];
    unsigned lines = 0;
    for (unsigned l = 0; l < x->lines; l++)
      if (is_in_fixes(w->fixes, &x->line[l], is_met)) x->line[lines++] = x->line[l];
    x->lines = lines;
    if (lines)
      p->proofs[kept++] = *x;
    else
      free(x->watched);
  }
  p->count = kept;
  for (unsigned k = w->fixes->count; k-- > 0;) {
    if (is_met[k]) continue;
    p->gone++;
    p->gone_line = w->fixes->rule[k].line;
  }
  free(is_met);
}

/* ---- ways ------------------------------------------------------------------------------------ */

static bool same_lines(const proof *a, const proof *b)
{
  bool same = a->lines == b->lines;
  for (unsigned i = 0; same && i < a->lines; i++)
    same = a->line[i].action == b->line[i].action && a->line[i].at == b->line[i].at;
  return same;
}

/* Adds a way with the fixes of these proofs. Returns false after a message. */
static bool add_way(proving *p, const char *name, const proof *const *list)
{
  unsigned way = p->r.count;
  char *file = cmd_format("fixes-%u", way);
  p->files[way] = rounds_file(&p->r, file);
  free(file);
  p->ways[way] = (rounds_way){.name = name, .mode = "fixes", .apply = p->files[way]};
  p->r.count++;
  return fixes_write(p->files[way], p, list, false);
}

/* Gives each proof that has a fix its way: one of its own, or that of another with the same fix. */
static bool take_ways(proving *p)
{
  p->ways[0] = (rounds_way){.name = "as it is", .mode = "observe"};
  p->r.ways = p->ways;
  p->r.count = 1;
  for (unsigned i = 0; i < p->count; i++) {
    proof *x = &p->proofs[i];
    const proof *const list[] = {x, NULL};
    if (x->verdict != PROVE_NO_GAIN || !x->lines) continue;
    for (unsigned k = 0; k < i && !x->way; k++)
      if (p->proofs[k].way && same_lines(&p->proofs[k], x)) x->way = p->proofs[k].way;
    if (x->way) continue;
    if (p->r.count > PROVE_WAYS) {
      x->verdict = PROVE_LEFT;
      continue;
    }
    x->way = p->r.count;
    if (!add_way(p, x->rule->id, list)) return false;
  }
  return true;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static bool look_at_lines(const proving *p, proof *x, const char *trace)
{
  enum { PLACES = 64 };
  spot_place *places = cmd_alloc(PLACES * sizeof *places);
  bool good = true;
  for (unsigned i = 0; good && i < x->lines; i++) {
    unsigned n = proof_line_places(p, &x->line[i], places, PLACES);
    good = spots_done(&x->line[i].done, trace, places, n);
  }
  free(places);
  return good;
}

/* Measures what a run has at the places of the proofs that it is a run of. */
static bool look_at_run(void *context, unsigned way, unsigned run, const char *trace)
{
  proving *p = context;
  const spot_place **sets = cmd_alloc((p->count + 1) * sizeof(void *));
  unsigned *lengths = cmd_alloc((p->count + 1) * sizeof *lengths);
  for (unsigned i = 0; i <= p->count; i++) {
    const proof *x = i < p->count ? &p->proofs[i] : &p->all;
    sets[i] = x->watched;
    lengths[i] = x->way && (!way || way == x->way) ? x->watched_count : 0;
  }
  spot_figures *to = &p->figures[((size_t)way * p->r.runs + run) * (p->count + 1)];
  uint64_t *took = &p->r.figures[(size_t)way * p->r.runs + run].duration_ns;
  bool good = spots_measure(to, took, trace, sets, lengths, p->count + 1);
  for (unsigned i = 0; good && way && i < p->count; i++)
    if (p->proofs[i].way == way) good = look_at_lines(p, &p->proofs[i], trace);
  free(sets), free(lengths);
  return good;
}

/* Whether one that is tried is no gain: all together are not what will be proven then. */
static bool one_is_out(const proving *p)
{
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].way && p->proofs[i].decided && p->proofs[i].verdict != PROVE_GAIN) return true;
  return false;
}

static bool is_wanted(const work *w, const proof *x, bool singly)
{
  if (!x->way || w->pairs) return x->way != 0;
  return !x->decided && (x != &w->p.all || !singly || !one_is_out(&w->p));
}

static void judge_wanted(proving *p, proof *x, const bool *wanted)
{
  if (!x->way || !wanted[x->way]) return;
  x->pairs++;
  proof_judge(p, x);
}

/* Runs rounds of the program as it is, of the proofs that are not decided (`singly`) and of all
 * together, until all are, the time is up, or there were enough. Returns 0, or the status to end
 * with. */
static int run_pairs(work *w, bool singly, unsigned from)
{
  proving *p = &w->p;
  unsigned most = w->pairs ? w->pairs : p->r.runs - from, count = singly ? p->count : 0;
  for (unsigned run = from; run < from + most; run++) {
    bool wanted[PROVE_WAYS + 2] = {false}, any = is_wanted(w, &p->all, singly);
    wanted[p->all.way] = any;
    for (unsigned i = 0; i < count; i++)
      if (is_wanted(w, &p->proofs[i], singly)) wanted[p->proofs[i].way] = any = true;
    if (!any || (!w->pairs && run > from && clock_monotonic_ns() > w->until)) break;
    wanted[0] = true;
    int status = rounds_round(&p->r, run, wanted);
    if (status || p->r.varies.there) return status;
    for (unsigned i = 0; i < count; i++)
      judge_wanted(p, &p->proofs[i], wanted);
    judge_wanted(p, &p->all, wanted);
  }
  return 0;
}

static void watch_too(proof *all, const proof *x)
{
  for (unsigned i = 0; i < x->watched_count; i++) {
    all->watched =
        cmd_grow(all->watched, &all->watched_room, all->watched_count, sizeof *all->watched);
    all->watched[all->watched_count++] = x->watched[i];
  }
}

/* Puts those of one verdict together as one way, the last; p->all.way stays 0 where they are fewer
 * than two ways. Returns false after a message. */
static bool put_together(proving *p, prove_verdict verdict)
{
  const proof **list = cmd_alloc((p->count + 1) * sizeof(void *));
  unsigned n = 0, ways = 0, last = p->all.way ? p->all.way : p->r.count;
  bool good = true;
  free(p->all.watched);
  p->all = (proof){.verdict = PROVE_NO_GAIN};
  for (unsigned i = 0; i < p->count; i++) {
    const proof *x = &p->proofs[i];
    if (!x->way || x->verdict != verdict) continue;
    ways += !n || list[n - 1]->way != x->way;
    list[n++] = x;
    watch_too(&p->all, x);
  }
  if (ways > 1) {
    p->r.count = last;
    free(p->files[last]);
    good = add_way(p, "all together", list);
    p->all.way = last;
  }
  free(list);
  return good;
}

/* All that were proven, together, unless that is what was run with them. */
static int run_all(work *w)
{
  proving *p = &w->p;
  bool same = p->all.way != 0;
  for (unsigned i = 0; i < p->count; i++) {
    if (p->proofs[i].pairs > p->from) p->from = p->proofs[i].pairs;
    same &= !p->proofs[i].way || p->proofs[i].verdict == PROVE_GAIN;
  }
  if (same || !p->all.way) {
    p->from = 0;
    return 0;
  }
  p->r.of[p->all.way] = (difference){0};
  if (p->all.pairs > p->from) p->from = p->all.pairs;
  if (!put_together(p, PROVE_GAIN)) return CMD_FAILED;
  return p->all.way && p->from < p->r.runs ? run_pairs(w, false, p->from) : 0;
}

static int run_rounds(work *w)
{
  proving *p = &w->p;
  unsigned ways = p->r.count;
  enum { MOST = 400 };
  p->r.runs = w->pairs ? 2 * w->pairs : MOST;
  p->figures = cmd_alloc((size_t)(ways + 1) * p->r.runs * (p->count + 1) * sizeof *p->figures);
  p->r.look = look_at_run;
  p->r.context = p;
  if (!put_together(p, PROVE_NO_GAIN)) return CMD_FAILED;
  rounds_start(&p->r);
  int status = run_pairs(w, true, 0);
  if (!status && !p->r.varies.there) status = run_all(w);
  rounds_over(&p->r);
  p->reached = !status && !p->r.varies.there;
  return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Writes the file of what was proven, unless all of it together is something else. */
static bool write_proven(const work *w)
{
  const proving *p = &w->p;
  const proof **list = cmd_alloc((p->count + 1) * sizeof(void *));
  unsigned n = 0;
  bool apart = p->all.way && (p->all.verdict == PROVE_DIFFERS || p->all.verdict == PROVE_LOSS);
  for (unsigned i = 0; i < p->count; i++)
    if (p->proofs[i].verdict == PROVE_GAIN) list[n++] = &p->proofs[i];
  bool good = true;
  if (!n || apart)
    cmd_message("%s is not written: %s.", w->output,
                n ? "what was proven one by one is no gain together" : "nothing was proven");
  else
    good = fixes_write(w->output, p, list, true);
  free(list);
  return good;
}

static int print_proofs(const work *w)
{
  const proving *p = &w->p;
  bool good = !p->r.end && !p->r.varies.there && !p->gone;
  for (unsigned i = 0; i < p->count; i++)
    good &= w->apply ? p->proofs[i].verdict == PROVE_GAIN : p->proofs[i].verdict != PROVE_DIFFERS;
  good &= !p->all.way || p->all.verdict != PROVE_DIFFERS;
  if (!w->json) {
    prove_print_text(p);
  } else if (!prove_print_json(p)) {
    cmd_message("cannot print what was proven.");
    return CMD_FAILED;
  }
  if (w->output && !write_proven(w)) return CMD_FAILED;
  return good ? 0 : CMD_FAILED;
}

/* Runs the program as often as it needs. Returns the status to end with. */
static int prove_all(work *w)
{
  static const rounds_way recorded = {.name = "as it is", .mode = "observe"};
  proving *p = &w->p;
  char *trace = NULL;
  p->r.ways = &recorded, p->r.count = 1;
  int status = rounds_begin(&p->r) ? rounds_record(&p->r, &trace) : CMD_FAILED;
  if (!status && !p->r.end && !load_trace_findings(w, trace)) status = CMD_FAILED;
  free(trace);
  if (status) return status;
  p->driver = environment_driver_version(&p->r.sim);
  p->simulated = p->r.sim.sim || (p->places.card && strstr(p->places.card, "Software Device"));
  take_findings(w);
  if (w->apply) keep_applied(w);
  if (!take_ways(p)) return CMD_FAILED;
  if (p->r.count > 1 && !p->r.end) status = run_rounds(w);
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

static void clear_work(work *w)
{
  proving *p = &w->p;
  rounds_end(&p->r);
  wr_findings_free(&p->findings);
  spots_free(&p->places);
  for (unsigned i = 0; i < p->count; i++)
    free(p->proofs[i].watched);
  for (unsigned i = 0; i < PROVE_WAYS + 2; i++)
    free(p->files[i]);
  free(p->all.watched);
  free(p->proofs);
  free(p->figures);
  free(w->fixes);
}

static bool read_applied(work *w)
{
  if (!w->apply) return true;
  w->fixes = cmd_alloc(sizeof *w->fixes);
  if (fix_list_read(w->fixes, w->apply) == WEIR_OK) return true;
  cmd_message("%s.", weir_error_message());
  return false;
}

int prove_main(const cmd *c, int argc, char **argv)
{
  work w = {.p.r = {.command = "prove", .steady = true, .light = true}};
  int split = program_place(argc, argv);
  cmd_line line = {.read = environment_read_sim, .context = &w.p.r.sim};
  int at = cmd_parse(c, split, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  w.pairs = (unsigned)cmd_number_of(&line, OPT_PAIRS, 0);
  w.until = clock_monotonic_ns() + (uint64_t)cmd_number_of(&line, OPT_TIME, 60) * 1000000000;
  w.json = line.value[OPT_TEXT_OR_JSON].number;
  w.rules = line.value[OPT_RULES].text;
  w.output = line.value[OPT_PROVE_OUTPUT].text;
  w.apply = line.value[OPT_PROVE_APPLY].text;
  if (split + 1 >= argc) return cmd_usage(c, "which program? '-- PROGRAM' is missing");
  w.asked = argv + at, w.asked_count = (unsigned)(split - at);
  if (w.apply && w.asked_count)
    return cmd_usage(c, "--apply names the fixes: no FINDING next to it");
  w.p.r.argv = argv + split + 1; /* NULL-terminated, as argv is */
  if (!check_names(c, &w)) return CMD_USAGE;
  int status = read_applied(&w) ? prove_all(&w) : CMD_FAILED;
  clear_work(&w);
  return status;
}
