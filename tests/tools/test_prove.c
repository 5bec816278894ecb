/* test_prove.c: weir prove, and each reroute by itself. Times are not held: how long a run takes
 * is the machine's; what was run, what the fix did in it, and what is computed of given times
 * are held. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/reroutes.h"
#include "core/trace/event.h"
#include "tests/tools/command.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/prove/interval.h"
#include "tools/weir/prove/prove.h"

#define PROVE  "TMPDIR=$PWD $WEIR prove --sim=2,h100 "
#define WASTER "$BUILD/tests/findings/waster "
#define PYTHON                                                                                     \
  " >json && python3 -c 'import json; p = json.load(open(\"json\")); f = p[\"findings\"];"

static void nothing_is_left(void)
{
  ck_assert_str_eq(sh_status(0, "ls -d weir-prove-* 2>/dev/null | wc -l")->out, "0\n");
}

/* ---- intervals ------------------------------------------------------------------------------- */

static bool is_near(double a, double b)
{
  return fabs(a - b) < 1e-4;
}

START_TEST(the_factor_is_students)
{
  ck_assert(is_near(interval_factor(1), 12.706));
  ck_assert(is_near(interval_factor(4), 2.776));
  ck_assert(is_near(interval_factor(29), 2.045));
  ck_assert(is_near(interval_factor(30), 2.042));
  ck_assert(is_near(interval_factor(59), 2.021));
  ck_assert(is_near(interval_factor(60), 2.000));
  ck_assert(is_near(interval_factor(999), 1.984));
  for (unsigned i = 1; i < 200; i++)
    ck_assert(interval_factor(i + 1) <= interval_factor(i));
}
END_TEST

START_TEST(the_interval_of_differences_is_students)
{
  interval n = interval_of((double[]){10, 12, 11, 13, 9}, 5);
  ck_assert(n.known);
  ck_assert(is_near(n.mean, 11));
  ck_assert(is_near(n.low, 11 - 2.776 * sqrt(2.5 / 5)));
  ck_assert(is_near(n.high, 11 + 2.776 * sqrt(2.5 / 5)));
  n = interval_of((double[]){-3, -1}, 2);
  ck_assert(is_near(n.mean, -2));
  ck_assert(is_near(n.low, -14.706));
  ck_assert(is_near(n.high, 10.706));
  n = interval_of((double[]){7, 7, 7}, 3);
  ck_assert(n.known && is_near(n.low, 7) && is_near(n.high, 7));
}
END_TEST

START_TEST(one_difference_has_no_interval)
{
  interval n = interval_of((double[]){5}, 1);
  ck_assert(!n.known && is_near(n.mean, 5));
  ck_assert(!interval_of(NULL, 0).known);
}
END_TEST

/* ---- verdicts -------------------------------------------------------------------------------- */

void *cmd_alloc(size_t bytes)
{
  void *p = calloc(1, bytes);
  ck_assert_ptr_nonnull(p);
  return p;
}

enum { PAIRS = 5, RUNS = 8 };

/* What a run has without a fix, and what it has less with it; both vary by a hundredth. */
typedef struct judged_run {
  uint64_t calls_ns, steps_ns, run_ns;
  int64_t calls_less, steps_less, run_less;
  uint64_t applied;
  uint64_t least_ns; /* with the fix */
} judged_run;

static const char *step_range[2] = {"", ""}; /* that a step is, without and with the fix */

static prove_verdict judge_pairs(const judged_run *j, unsigned pairs, proof *out)
{
  static spot_figures figures[2 * RUNS * 2];
  static run_figures runs[2 * RUNS];
  static difference of[2];
  static proof x;
  proving p = {.r = {.runs = RUNS, .count = 2, .figures = runs, .of = of},
               .proofs = &x,
               .count = 1,
               .figures = figures};
  x = (proof){.way = 1, .pairs = pairs};
  for (unsigned i = 0; i < pairs; i++) {
    uint64_t noise = i % 3; /* of 200 */
    spot_figures *a = &figures[(size_t)i * 2], *b = &figures[(size_t)(RUNS + i) * 2];
    *a = (spot_figures){.calls = 40,
                        .ns = j->calls_ns + j->calls_ns * noise / 200,
                        .steps_ns = j->steps_ns + j->steps_ns * noise / 200};
    *b = (spot_figures){.calls = 40,
                        .ns = j->calls_ns - (uint64_t)j->calls_less,
                        .applied = j->applied,
                        .steps_ns = j->steps_ns ? j->steps_ns - (uint64_t)j->steps_less : 0,
                        .least_ns = j->least_ns};
    (void)snprintf(a->range, sizeof a->range, "%s", step_range[0]);
    (void)snprintf(b->range, sizeof b->range, "%s", step_range[1]);
    runs[i].duration_ns = j->run_ns + j->run_ns * noise / 200;
    runs[RUNS + i].duration_ns = j->run_ns - (uint64_t)j->run_less;
  }
  proof_judge(&p, &x);
  if (out) *out = x;
  return x.verdict;
}

START_TEST(the_steps_around_the_calls_decide)
{
  const judged_run moved = {1000000, 50000000, 100000000, 900000, -100000, 0, 38, 0};
  proof x;
  ck_assert_int_eq(judge_pairs(&moved, PAIRS, &x), PROVE_NO_GAIN);
  ck_assert(x.calls.low > 0 && x.steps.low < 0 && proof_gain(&x)->mean < 1e6);
  const judged_run gained = {9000000, 50000000, 100000000, 8000000, 8000000, 0, 38, 0};
  ck_assert_int_eq(judge_pairs(&gained, PAIRS, &x), PROVE_GAIN);
  ck_assert(x.decided && x.before.ns >= 9000000 && x.after.ns == 1000000 && x.after.applied == 38);
}
END_TEST

START_TEST(where_calls_do_not_repeat_their_own_time_decides)
{
  const judged_run gained = {9000000, 0, 100000000, 8000000, 0, 0, 3, 0};
  proof x;
  ck_assert_int_eq(judge_pairs(&gained, PAIRS, &x), PROVE_GAIN);
  ck_assert(!x.steps.known && proof_gain(&x)->mean > 7.9e6);
}
END_TEST

START_TEST(a_gain_above_what_the_calls_took_is_not_the_fixs)
{
  const judged_run odd = {1000000, 50000000, 100000000, 900000, 20000000, 20000000, 38, 0};
  ck_assert_int_eq(judge_pairs(&odd, PAIRS, NULL), PROVE_ODD);
}
END_TEST

START_TEST(a_fix_that_did_nothing_gains_nothing)
{
  const judged_run unused = {9000000, 50000000, 100000000, 8000000, 8000000, 8000000, 0, 0};
  ck_assert_int_eq(judge_pairs(&unused, PAIRS, NULL), PROVE_UNUSED);
}
END_TEST

START_TEST(a_longer_run_is_no_gain_whatever_the_calls_took)
{
  const judged_run longer = {9000000, 0, 100000000, 8000000, 0, -30000000, 38, 0};
  ck_assert_int_eq(judge_pairs(&longer, PAIRS, NULL), PROVE_LOSS);
}
END_TEST

START_TEST(the_fewest_pairs_decide_what_is_far_above_their_noise_alone)
{
  const judged_run near = {9000000, 50000000, 100000000, 8000000, 1000000, 8000000, 38, 0};
  proof x;
  ck_assert_int_eq(judge_pairs(&near, 3, &x), PROVE_GAIN);
  ck_assert(!x.decided && x.steps.low > 0);
  ck_assert_int_eq(judge_pairs(&near, PAIRS, &x), PROVE_GAIN);
  ck_assert(x.decided);
}
END_TEST

START_TEST(a_gain_of_the_steps_that_the_whole_run_lacks_is_not_proven)
{
  const judged_run lacks = {9000000, 50000000, 100000000, 8000000, 8000000, -600000, 38, 0};
  proof x;
  ck_assert_int_eq(judge_pairs(&lacks, PAIRS, &x), PROVE_NO_GAIN);
  ck_assert(x.steps.low > 0 && x.run.mean < 0 && x.run.high > 0);
}
END_TEST

START_TEST(steps_with_a_fix_take_what_their_own_calls_do)
{
  judged_run filled = {90000000, 50000000, 100000000, 80000000, 49990000, 47000000, 38, 0};
  proof x;
  ck_assert_int_eq(judge_pairs(&filled, PAIRS, &x), PROVE_GAIN);
  ck_assert_uint_eq(x.after.steps_ns, 10000);
  filled.least_ns = 3000000;
  ck_assert_int_eq(judge_pairs(&filled, PAIRS, &x), PROVE_GAIN);
  ck_assert_uint_eq(x.after.steps_ns, 3000000);
  ck_assert(x.steps.mean < 47.3e6 && x.steps.mean > 46.9e6);
}
END_TEST

START_TEST(few_pairs_decide_nothing)
{
  const judged_run gained = {9000000, 50000000, 100000000, 8000000, 8000000, 8000000, 38, 0};
  proof x;
  ck_assert_int_eq(judge_pairs(&gained, 1, &x), PROVE_NO_GAIN);
  ck_assert(!x.decided);
  ck_assert_int_eq(judge_pairs(&gained, 2, &x), PROVE_GAIN);
  ck_assert(!x.decided);
  ck_assert_int_eq(judge_pairs(&gained, 3, &x), PROVE_GAIN);
  ck_assert(x.decided);
}
END_TEST

/* Of a rule with two actions one was done at a place whose calls the other does not concern. */
START_TEST(an_action_was_done_where_calls_of_its_kinds_were)
{
  const unsigned streams = 1U << WEIR_EV_STREAM, freed = 1U << WEIR_EV_FREE;
  ck_assert(proof_line_is_done(&(prove_line){.action = REROUTE_STREAMS, .done = streams}));
  ck_assert(!proof_line_is_done(&(prove_line){.action = REROUTE_EVENTS, .done = streams}));
  ck_assert(!proof_line_is_done(&(prove_line){.action = REROUTE_RELAXED, .done = streams}));
  ck_assert(proof_line_is_done(&(prove_line){.action = REROUTE_RELAXED, .done = freed}));
  ck_assert(proof_line_is_done(&(prove_line){.action = REROUTE_DEVICE, .done = freed}));
  ck_assert(!proof_line_is_done(&(prove_line){.action = REROUTE_DEVICE}));
  ck_assert(proof_line_is_done(&(prove_line){.action = REROUTE_POOL})); /* remarks, of no place */
}
END_TEST

/* A range that the runs with the fix have not, or not so often. */
START_TEST(steps_of_different_ranges_are_not_compared)
{
  const judged_run gained = {9000000, 50000000, 100000000, 8000000, 8000000, 8000000, 38, 0};
  proof x;
  step_range[0] = step_range[1] = "step";
  ck_assert_int_eq(judge_pairs(&gained, PAIRS, &x), PROVE_GAIN);
  ck_assert(x.steps.known && x.before.steps_ns);
  ck_assert_str_eq(x.before.range, "step");
  step_range[1] = "layer";
  judge_pairs(&gained, PAIRS, &x);
  step_range[0] = step_range[1] = "";
  ck_assert(!x.steps.known && !x.before.steps_ns);
  ck_assert_str_eq(x.before.range, "");
  ck_assert(is_near(proof_gain(&x)->mean, x.calls.mean));
}
END_TEST

/* ---- fixes ----------------------------------------------------------------------------------- */

static const struct {
  const char *id, *fix;
} fixes[] = {{"repeated-allocation", "strict device"}, {"temporary-allocation", "strict device"},
             {"hidden-wait", "relaxed device"},        {"pageable-async", "strict staging"},
             {"pinned-churn", "strict pinned"},        {"staged-peer", "strict access"},
             {"pool-gives-back", "strict pool"},       {"handle-churn", "strict events,streams"}};

START_TEST(a_fix_alone_takes_its_waste_away)
{
  sh_status(0,
            PROVE "--pairs 1 --format json %s -- " WASTER "%s" PYTHON
                  "assert p[\"schema\"] == \"weir-prove/2\" and p[\"simulated\"], p;"
                  "assert p[\"varies\"] is None and p[\"unfixed_ns\"] > 0, p; x = f[0];"
                  "assert x[\"pairs\"] == 1 and p[\"driver\"] == 13000, p;"
                  "assert (x[\"id\"], x[\"prove\"]) == (\"%s\", \"%s\"), x;"
                  "assert x[\"applied\"] > 0 and x[\"saving_ns\"] > 0 and x[\"count\"] > 0, x;"
                  "assert x[\"without\"][\"calls\"] >= x[\"count\"] / 2, x;"
                  "assert x[\"difference\"] is None and x[\"verdict\"] == \"not proven\", x;"
                  "assert x[\"gain_low_ns\"] is None and x[\"gain_high_ns\"] is None, x;"
                  "assert x[\"site\"][\"function\"], x'",
            fixes[_i].id, fixes[_i].id, fixes[_i].id, fixes[_i].fix);
  nothing_is_left();
}
END_TEST

START_TEST(every_rule_with_a_fix_is_tried)
{
  const outcome *o =
      sh_status(0, "grep -l '^-- prove: ' $WEIR_SOURCE/reports/findings/rules/*.sql |"
                   " wc -l");
  ck_assert_int_eq(atoi(o->out), (int)(sizeof fixes / sizeof *fixes));
}
END_TEST

/* In each step there are four layers, in each epoch so many steps. */
static const struct {
  const char *program, *range;
} ranged[] = {{"within 16", "step"}, /* not an epoch, of which there are four, and not a layer */
              {"within 4", "layer"}, /* of 16 steps there are too few */
              {"outside 16", ""}};

START_TEST(the_steps_are_the_ranges_that_the_program_has_around_the_calls)
{
  sh_status(0,
            PROVE
            "--pairs 1 --format json repeated-allocation -- $BUILD/tests/tools/steps %s" PYTHON
            "x = f[0]; assert x[\"decided_by\"] == \"steps\", x;"
            "assert (x[\"step_range\"] or \"\") == \"%s\", x;"
            "assert 0 < x[\"without\"][\"steps_ns\"] <= p[\"unfixed_ns\"], x'",
            ranged[_i].program, ranged[_i].range);
  const outcome *o = sh_status(
      0, PROVE "--pairs 1 repeated-allocation -- $BUILD/tests/tools/steps %s", ranged[_i].program);
  char *line = NULL;
  ck_assert_int_gt(asprintf(&line, "  the steps, each a range %s, ", ranged[_i].range), 0);
  ck_assert_msg(strstr(o->out, ranged[_i].range[0] ? line : "  the steps around them ") != NULL,
                "%s", o->out);
  free(line);
}
END_TEST

/* A program with two wastes, which writes down how it was run. */
#define BOTH                                                                                       \
  "sh -c 'echo $WEIR_MODE ${WEIR_APPLY##*/} >>log; set -e;"                                        \
  " " WASTER "repeated-allocation; " WASTER "pinned-churn; echo done'"

START_TEST(each_round_runs_the_program_as_it_is_and_with_each_fix)
{
  sh_status(0, PROVE "--pairs 2 --format json pinned-churn 16 -- " BOTH PYTHON
                     "assert {x[\"id\"] for x in f} == {\"pinned-churn\", \"repeated-allocation\"},"
                     " f; assert all(x[\"gain_low_ns\"] <= x[\"gain_ns\"] <= x[\"gain_high_ns\"]"
                     " for x in f), f'");
  sh_status(0, "tail -n +2 log >rest; n=$(($(wc -l <rest) / 2)); head -n $n rest | sort >a;"
               " tail -n $n rest | sort >b; cmp a b && test $n -ge 3 &&"
               " test $(sort -u a | wc -l) -eq $n && grep -qx observe a && grep -qx fixes-2 a");
}
END_TEST

START_TEST(findings_of_one_fix_share_its_runs)
{
  sh_status(0,
            PROVE "--pairs 1 --format json repeated-allocation temporary-allocation -- " BOTH PYTHON
                  "a, b = f; assert b[\"verdict\"] == \"not found\" or"
                  " a[\"gain_ns\"] == b[\"gain_ns\"], f'");
  ck_assert_str_eq(sh_status(0, "sort log")->out, "fixes-1\nobserve\nobserve\n");
}
END_TEST

START_TEST(without_names_all_findings_are_taken)
{
  sh_status(0, PROVE "--pairs 1 --format json -- " WASTER "pinned-churn" PYTHON
                     "assert \"pinned-churn\" in [x[\"id\"] for x in f], f'");
}
END_TEST

START_TEST(the_text_has_a_line_a_finding_in_80_columns)
{
  const outcome *o =
      sh_status(0, PROVE "--pairs 2 pinned-churn redundant-wait -- " WASTER "pinned-churn");
  ck_assert_str_eq(o->err, "");
  const char *head = strstr(o->out, "\n  finding "), *row = strstr(o->out, "\n  pinned-churn ");
  ck_assert_msg(head && row && head < row, "%s", o->out);
  ck_assert_msg(!strncmp(o->out, "  Host time, runs without and", 29), "%s", o->out);
  ck_assert_msg(strstr(o->out, "The device is simulated (Weir Software Device)") != NULL, "%s",
                o->out);
  ck_assert_msg(strstr(row, "\n    2 pairs; its calls ") != NULL, "%s", o->out);
  ck_assert_msg(strstr(row, "redundant-wait: the recorded run has no such finding.") != NULL, "%s",
                o->out);
  for (const char *at = o->out; *at; at += strcspn(at, "\n") + 1) {
    size_t columns = 0;
    for (const char *c = at; *c && *c != '\n'; c++)
      columns += (*c & 0xc0) != 0x80;
    ck_assert_msg(columns <= 80, "%s", at);
  }
}
END_TEST

/* ---- files of fixes -------------------------------------------------------------------------- */

/* The loop pins and unpins alone: what the fix gains is most of the run. */
#define PROVEN PROVE "--time 100 -o out.fixes "

START_TEST(what_is_proven_is_written_and_can_be_applied)
{
  const outcome *o = sh_status(0, PROVEN "pinned-churn -- " WASTER "pinned-churn");
  ck_assert_msg(strstr(o->out, "  proven") != NULL, "%s", o->out);
  sh_status(0, "grep -q '^proof gain=[0-9.]*ms\\.\\.[0-9.]*ms pairs=[0-9]* driver=13\\.0"
               " date=20[0-9-]* card=Weir Software Device$' out.fixes && tail -n 1 out.fixes | "
               "grep -qx end");
  sh_status(0, "grep -q '^fix pinned module=waster function=pinned_churn at=[0-9a-f]*+0x[0-9a-f]*$'"
               " out.fixes");
  o = sh_status(0, "$WEIR run --sim=2,h100 --apply out.fixes -o t.db -- " WASTER "pinned-churn");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64"), 0);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64 AND mem <> 2"), 0);
}
END_TEST

#define AGAIN "proof driver=13.0\nfix pinned module=waster function=%s at=00112233+0x10\nend\n"

static void write_text(const char *path, const char *format, const char *word)
{
  FILE *f = fopen(path, "w");
  ck_assert(f && fprintf(f, format, word) > 0 && fclose(f) == 0);
}

START_TEST(a_fix_is_proven_again_of_another_build)
{
  write_text("old.fixes", AGAIN, "pinned_churn");
  const outcome *o = sh_status(0, PROVEN "--apply old.fixes -- " WASTER
                                         "pinned-churn && ! grep 00112233 out.fixes");
  ck_assert_msg(strstr(o->out, "  pinned-churn ") && strstr(o->out, "  proven"), "%s", o->out);
}
END_TEST

START_TEST(a_fix_whose_place_is_gone_fails)
{
  write_text("old.fixes", AGAIN, "another_function");
  const outcome *o = sh_status(1, PROVE "--apply old.fixes -- " WASTER "pinned-churn");
  ck_assert_msg(strstr(o->out, "1 of the fixes (the first in line 2) has no place in the recorded"),
                "%s", o->out);
  write_text("old.fixes", "%s", "nonsense");
  o = sh_status(1, PROVE "--apply old.fixes -- touch ran");
  ck_assert_msg(!strncmp(o->err, "weir: old.fixes:1: 'nonsense': expected", 39), "%s", o->err);
  sh_status(1, "test -e ran");
}
END_TEST

START_TEST(nothing_is_written_where_nothing_is_proven)
{
  const outcome *o =
      sh_status(0, PROVE "--pairs 1 -o out.fixes pinned-churn -- " WASTER "pinned-churn");
  ck_assert_str_eq(o->err, "weir: out.fixes is not written: nothing was proven.\n");
  sh_status(1, "test -e out.fixes");
}
END_TEST

/* ---- what cannot be proven ------------------------------------------------------------------- */

START_TEST(a_program_whose_output_changes_is_refused)
{
  const outcome *o = sh_status(1, PROVE "--pairs 3 pinned-churn -- sh -c '" WASTER "pinned-churn;"
                                        " echo x >>count; wc -l <count'");
  ck_assert_msg(!strncmp(o->out, "  The program's own output varies from run to run", 49), "%s",
                o->out);
  ck_assert_ptr_nonnull(strstr(o->out, "No fix can be proven"));
  ck_assert_ptr_nonnull(strstr(o->out, "not run"));
  sh_status(0, "test $(wc -l <count) -le 3"); /* a run with the fix may have come between */
}
END_TEST

START_TEST(a_fix_that_changes_the_output_is_not_proven)
{
  const outcome *o = sh_status(1, PROVE "--pairs 1 pinned-churn -- sh -c '" WASTER
                                        "pinned-churn; echo ${WEIR_APPLY##*/}'");
  ck_assert_msg(strstr(o->out, "output differs") != NULL, "%s", o->out);
  ck_assert_ptr_nonnull(strstr(o->out, "stdout differs first at byte 0, in line"));
  ck_assert_ptr_nonnull(strstr(o->out, "  then: fixes-1\n"));
}
END_TEST

START_TEST(a_fix_that_changes_the_end_is_not_proven)
{
  sh_status(1, PROVE "--pairs 1 --format json pinned-churn -- sh -c '" WASTER "pinned-churn;"
                     " [ -z \"$WEIR_APPLY\" ] || exit 3'");
}
END_TEST

START_TEST(a_finding_without_a_fix_of_weirs_is_named_with_its_own)
{
  const outcome *o = sh_status(0, PROVE "redundant-wait -- sh -c '" WASTER "redundant-wait;"
                                        " echo x >>count'");
  const char *row = strstr(o->out, "\n  redundant-wait ");
  ck_assert_msg(row && strstr(row, "  cannot: no fix\n") != NULL, "%s", o->out);
  ck_assert_msg(strstr(row, "'weir report findings' shows how.\n") != NULL, "%s", o->out);
  ck_assert_str_eq(sh_status(0, "wc -l <count")->out, "1\n");
}
END_TEST

START_TEST(a_program_that_fails_has_nothing_to_prove)
{
  const outcome *o = sh_status(1, PROVE "-- sh -c 'exit 4'");
  ck_assert_msg(strstr(o->out, "fails by itself (exit status 4)") != NULL, "%s", o->out);
}
END_TEST

START_TEST(no_finding_is_said)
{
  const outcome *o = sh_status(0, PROVE "-- true");
  ck_assert_str_eq(o->out, "  The recorded run has no finding: there is nothing to prove.\n");
}
END_TEST

START_TEST(wrong_use_is_said_ahead_of_any_run)
{
  ck_assert_ptr_nonnull(
      strstr(sh_status(2, PROVE "nonsense -- touch ran")->err, "there is no finding 'nonsense'"));
  ck_assert_ptr_nonnull(strstr(sh_status(2, PROVE "leak")->err, "PROGRAM' is missing"));
  ck_assert_ptr_nonnull(strstr(sh_status(2, PROVE "--pairs 0 -- touch ran")->err, "--pairs takes"));
  sh_status(1, "test -e ran");
  sh_status(127, PROVE "-- ./nothing");
  nothing_is_left();
}
END_TEST

/* ---- one reroute by itself ------------------------------------------------------------------- */

#define CACHED "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64 AND mem = "

START_TEST(a_cache_that_is_not_named_is_not_used)
{
  sh_status(0, "$WEIR run -o d.db --sim --reroute=device -- " BOTH);
  ck_assert_int_gt(ask("d.db", CACHED "3"), 0);
  ck_assert_int_eq(ask("d.db", CACHED "2"), 0);
  sh_status(0, "$WEIR run -o p.db --sim --reroute=pinned -- " BOTH);
  ck_assert_int_eq(ask("p.db", CACHED "3"), 0);
  ck_assert_int_gt(ask("p.db", CACHED "2"), 0);
  sh_status(0, "$WEIR run -o n.db --sim --reroute=none -- " BOTH);
  ck_assert_int_eq(ask("n.db", CACHED "3"), 0);
  ck_assert_int_eq(ask("n.db", CACHED "2"), 0);
}
END_TEST

START_TEST(copies_are_staged_where_staging_is_named)
{
  static const char staged[] = "SELECT count(*) FROM event WHERE kind = 3 AND flags & 128";
  sh_status(0, "WEIR_STAGING=on $WEIR run -o s.db --sim --reroute=staging -- " WASTER
               "pageable-async");
  ck_assert_int_gt(ask("s.db", staged), 0);
  sh_status(0,
            "WEIR_STAGING=on $WEIR run -o d.db --sim --reroute=device -- " WASTER "pageable-async");
  ck_assert_int_eq(ask("d.db", staged), 0);
}
END_TEST

#define NOTES "SELECT count(*) FROM note WHERE text LIKE 'done by Weir: "

/* What is not asked for is not done, in no mode. */
START_TEST(access_and_pools_are_changed_where_they_are_named)
{
  sh_status(0, "$WEIR run -o a.db --sim=2 --reroute=access,pool -- sh -c 'set -e; " WASTER
               "staged-peer; " WASTER "pool-gives-back'");
  ck_assert_int_eq(ask("a.db", NOTES "peer access of device 0 to device 1'"), 1);
  ck_assert_int_eq(ask("a.db", NOTES "peer access of device 1 to device 0'"), 1);
  ck_assert_int_eq(ask("a.db", NOTES "a pool of device 0 keeps its memory'"), 1);
  sh_status(0, "$WEIR run -o d.db --sim=2 -- sh -c 'set -e; " WASTER "staged-peer; " WASTER
               "pool-gives-back'");
  ck_assert_int_eq(ask("d.db", NOTES "%'"), 0);
}
END_TEST

START_TEST(a_pool_with_a_threshold_is_left_as_it_is)
{
  sh_status(0, "$WEIR run -o t.db --sim --reroute=pool -- " WASTER "pool-gives-back twin");
  ck_assert_int_eq(ask("t.db", NOTES "%'"), 0);
}
END_TEST

START_TEST(who_enables_peer_access_itself_notices_nothing)
{
  const outcome *o = sh_status(0, "$WEIR run -o o.db --mode=observe"
                                  " --sim=2 -- $BUILD/tests/tools/peers");
  char *bare = strdup(o->out);
  o = sh_status(0, "$WEIR run -o a.db --sim=2 --reroute=access -- $BUILD/tests/tools/peers");
  ck_assert_str_eq(o->out, bare);
  ck_assert_int_eq(ask("a.db", NOTES "%'"), 2);
  free(bare);
}
END_TEST

START_TEST(a_reroute_that_is_none_is_said)
{
  ck_assert_ptr_nonnull(strstr(sh_status(2, "$WEIR run --reroute=device,all -- true")->err,
                               "--reroute=device,all is not known; valid: device, pinned, "));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/prove");
  TCase *t = tcase_create("prove");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, the_factor_is_students);
  tcase_add_test(t, the_interval_of_differences_is_students);
  tcase_add_test(t, one_difference_has_no_interval);
  tcase_add_test(t, the_steps_around_the_calls_decide);
  tcase_add_test(t, where_calls_do_not_repeat_their_own_time_decides);
  tcase_add_test(t, a_gain_above_what_the_calls_took_is_not_the_fixs);
  tcase_add_test(t, a_fix_that_did_nothing_gains_nothing);
  tcase_add_test(t, a_longer_run_is_no_gain_whatever_the_calls_took);
  tcase_add_test(t, the_fewest_pairs_decide_what_is_far_above_their_noise_alone);
  tcase_add_test(t, a_gain_of_the_steps_that_the_whole_run_lacks_is_not_proven);
  tcase_add_test(t, an_action_was_done_where_calls_of_its_kinds_were);
  tcase_add_test(t, steps_with_a_fix_take_what_their_own_calls_do);
  tcase_add_test(t, few_pairs_decide_nothing);
  tcase_add_test(t, steps_of_different_ranges_are_not_compared);
  tcase_add_loop_test(t, the_steps_are_the_ranges_that_the_program_has_around_the_calls, 0,
                      sizeof ranged / sizeof *ranged);
  tcase_add_loop_test(t, a_fix_alone_takes_its_waste_away, 0, sizeof fixes / sizeof *fixes);
  tcase_add_test(t, every_rule_with_a_fix_is_tried);
  tcase_add_test(t, each_round_runs_the_program_as_it_is_and_with_each_fix);
  tcase_add_test(t, findings_of_one_fix_share_its_runs);
  tcase_add_test(t, without_names_all_findings_are_taken);
  tcase_add_test(t, the_text_has_a_line_a_finding_in_80_columns);
  tcase_add_test(t, what_is_proven_is_written_and_can_be_applied);
  tcase_add_test(t, a_fix_is_proven_again_of_another_build);
  tcase_add_test(t, a_fix_whose_place_is_gone_fails);
  tcase_add_test(t, nothing_is_written_where_nothing_is_proven);
  tcase_add_test(t, a_program_whose_output_changes_is_refused);
  tcase_add_test(t, a_fix_that_changes_the_output_is_not_proven);
  tcase_add_test(t, a_fix_that_changes_the_end_is_not_proven);
  tcase_add_test(t, a_finding_without_a_fix_of_weirs_is_named_with_its_own);
  tcase_add_test(t, a_program_that_fails_has_nothing_to_prove);
  tcase_add_test(t, no_finding_is_said);
  tcase_add_test(t, wrong_use_is_said_ahead_of_any_run);
  tcase_add_test(t, a_cache_that_is_not_named_is_not_used);
  tcase_add_test(t, copies_are_staged_where_staging_is_named);
  tcase_add_test(t, access_and_pools_are_changed_where_they_are_named);
  tcase_add_test(t, a_pool_with_a_threshold_is_left_as_it_is);
  tcase_add_test(t, who_enables_peer_access_itself_notices_nothing);
  tcase_add_test(t, a_reroute_that_is_none_is_said);
  suite_add_tcase(s, t);
  return run_suite(s);
}
