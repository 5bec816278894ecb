/* test_check.c: weir diff and weir check as a CI job has them: exit statuses, what they write.
 * No limit here is one of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define RUN "$WEIR run --force --sim --mode=observe -o "
#define TWO_LOOPS                                                                                  \
  RUN "a.db -- $BUILD/examples/train 3 >a.out && " RUN                                             \
      "b.db -- $BUILD/examples/fixed/train 3 >b.out"

static void expect(const char *text, const char *words)
{
  ck_assert_msg(strstr(text, words) != NULL, "'%s' is not in\n%.3000s", words, text);
}

START_TEST(the_wastes_of_a_loop_are_gone_in_the_mended_one)
{
  sh_status(0, TWO_LOOPS " && cmp a.out b.out"); /* it trains the same */
  sh_status(0,
            "$WEIR diff a.db b.db >out && grep -q '^  leaks.count  *1  *0  *-1  *-100.0 %%$' out &&"
            " grep -q '^  gone  possible *4.00 KiB  - *leak ' out &&"
            " grep -q ' train_step  tools/examples/train.cu:58…59$' out");
  sh_status(
      0, "$WEIR diff -f json/1 a.db b.db | python3 -c 'import json, sys; d = json.load(sys.stdin);"
         "assert d[\"schema\"] == \"weir-diff/1\";"
         "r = d[\"run\"]; assert r[\"leaks.bytes\"] == {\"a\": 4096, \"b\": 0};"
         "assert r[\"waits.explicit.count\"] == {\"a\": 960, \"b\": 3};"
         "assert r[\"transfers.d2h.bytes\"][\"b\"] == 12;"
         "s = {x[\"function\"]: x for x in d[\"sites\"]};"
         "assert s[\"train_step\"][\"b\"] is None;"
         "f = s[\"device_floats\"]; assert f[\"a\"][\"lines\"][\"allocations\"] != "
         "f[\"b\"][\"lines\"][\"allocations\"];"
         "assert [x[\"state\"] for x in d[\"findings\"] if x[\"id\"] == \"leak\"] == [\"gone\"]'");
  sh_status(0, "$WEIR diff -f json a.db b.db | python3 -c 'import json, sys;"
               "d = json.load(sys.stdin); assert d[\"schema\"] == \"weir-report/2\";"
               "r = {x[\"metric\"]: x for x in d[\"metrics\"]};"
               "assert (r[\"leaks.bytes\"][\"a\"], r[\"leaks.bytes\"][\"b\"]) == (4096, 0);"
               "s = {x[\"function\"]: x for x in d[\"site_metrics\"]};"
               "assert not s[\"train_step\"][\"in_b\"];"
               "l = [{x[\"line\"] for x in s[\"device_floats\"][\"lines\"] if x[\"trace\"] == side}"
               " for side in \"ab\"]; assert all(l) and l[0] != l[1]'");
  sh_status(0, "$WEIR diff --fail-on 'leaks>0,waits>+0,site \"train_step\": waits>0' a.db b.db");
  sh_status(1, "$WEIR diff --fail-on 'leaks>0,peak>+5%%' b.db a.db >out");
  sh_status(0, "grep -q '^  MET  *leaks>0  *4.00 KiB (4,096 B)  *> 0 B$' out &&"
               " grep -q '^  not met  *peak>+5%%  *7.44 KiB ' out");
}
END_TEST

START_TEST(what_costs_less_than_is_asked_for_is_no_finding)
{
  sh_status(0, TWO_LOOPS);
  sh_status(0,
            "for cost in 1ns 0ms,0%%,0B 900GiB; do $WEIR diff -f json --min-cost $cost a.db b.db |"
            " python3 -c 'import json, sys; "
            "print(len(json.load(sys.stdin)[\"finding_changes\"]))'; done >n;"
            " test $(sed -n 1p n) -gt 0 && test $(sed -n 2p n) -ge $(sed -n 1p n) &&"
            " test $(sed -n 3p n) = 0");
  sh_status(
      0, "echo 'findings.count == 0' >budget; $WEIR check --budget budget --min-cost 900GiB a.db");
  sh_status(1, "$WEIR check --budget budget --min-cost 0ms a.db");
}
END_TEST

/* Each run has other addresses; what is compared has names. */
START_TEST(two_runs_of_a_program_have_the_same_sites)
{
  sh_status(0, RUN "a.db -- $VICTIM repeat 3 && " RUN "b.db -- $VICTIM repeat 3");
  sh_status(
      0, "$WEIR diff -f json/1 a.db b.db | python3 -c 'import json, sys; d = json.load(sys.stdin);"
         "assert d[\"sites\"];"
         "assert all(x[\"a\"] and x[\"b\"] for x in d[\"sites\"]), d[\"sites\"];"
         "assert all(v[\"a\"] == v[\"b\"] for x in d[\"sites\"] + [{\"metrics\": d[\"run\"]}]"
         " for n, v in x[\"metrics\"].items() if n[-5:] != \".time\" and n != \"duration\""
         " and n[:7] != \"finding\")'");
}
END_TEST

/* As whoever builds in one place has it; with the names stored ahead, nothing is lost. */
START_TEST(a_program_that_was_built_anew_since_is_said)
{
  sh_status(0, "cp $VICTIM p; " RUN "a.db -- ./p repeat 3 && cp a.db b.db && $WEIR resolve b.db &&"
               " cp $BUILD/examples/train p && $WEIR diff a.db b.db >out");
  sh_status(0,
            "grep -q '^  [0-9]* sites\\{0,1\\} of A without a name: ' out && ! grep ' of B ' out &&"
            " grep -q '  allocate_and_free_once ' out");
}
END_TEST

START_TEST(exit_statuses_say_whether_there_is_an_answer)
{
  sh_status(0, RUN "t.db -- $VICTIM repeat 3; echo text >text; echo 'peak <= 0' >b");
  sh_status(0, "$WEIR diff t.db t.db");
  sh_status(1, "$WEIR diff --fail-on 'waits>+0,waits>=+0' t.db t.db");
  sh_status(1, "$WEIR diff --fail-on 'cache.hits>0' t.db t.db"); /* not known */
  sh_status(1, "$WEIR check --budget b t.db");
  static const char *const wrong[] = {"diff t.db",
                                      "diff t.db t.db t.db",
                                      "diff -f xml t.db t.db",
                                      "diff --fail-on 'peak>5%%' t.db t.db",
                                      "diff --top 0 t.db t.db",
                                      "diff --symbols absent t.db t.db",
                                      "diff text t.db",
                                      "diff t.db absent.db",
                                      "check t.db",
                                      "check --budget b",
                                      "check --budget b t.db t.db",
                                      "check --budget absent t.db",
                                      "check --budget text t.db",
                                      "check --budget b text",
                                      "check --budget b --junit t.db t.db",
                                      "check --budget b --markdown b t.db",
                                      "check --budget b --junit absent/x t.db"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char line[200];
    (void)snprintf(line, sizeof line, "$WEIR %s", wrong[i]);
    outcome *o = sh_status(2, line, 0);
    ck_assert_msg(strchr(o->err, '\n') && !strchr(strchr(o->err, '\n') + 1, '\n'), "%s: %s", line,
                  o->err);
  }
  sh_status(0, "test -s t.db && grep -q peak b && ! ls | grep part");
  if (access("/dev/full", W_OK) == 0) sh_status(2, "$WEIR diff t.db t.db >/dev/full");
}
END_TEST

START_TEST(what_is_no_trace_gets_the_sentence_of_a_report)
{
  sh_status(0, RUN "t.db -- $VICTIM repeat 3; echo text >text; echo 'peak <= 0' >b;"
                   " head -c 5000 t.db >cut; sqlite3 other 'CREATE TABLE x(y)'");
  sh_status(0, "for f in text cut other absent .; do $WEIR report $f 2>want;"
               " $WEIR diff $f t.db 2>got; cmp want got || exit;"
               " $WEIR diff t.db $f 2>got; cmp want got || exit;"
               " $WEIR check --budget b $f 2>got; cmp want got || exit; done");
}
END_TEST

#define LIMITS                                                                                     \
  "printf '%%s\\n' '# all' 'launches >= 0' 'peak <= 0' ''"                                         \
  " 'site \"<a>&\\\"b\\\"]]>\": waits == 0' 'range \"\xc3\xa9\xef\xbf\xbe\": waits == 0 # x' "     \
  ">'b<&\"'"

START_TEST(junit_is_read_back_with_what_fails)
{
  sh_status(0, RUN "'t&<.db' -- $VICTIM repeat 3");
  sh_status(0, LIMITS);
  outcome *o = sh_status(1, "$WEIR check --budget 'b<&\"' --junit j.xml --markdown m.md 't&<.db'");
  expect(o->out, "  4 limits, 2 kept, 1 exceeded, 1 not known\n");
  o = sh_status(0, "python3 $WEIR_SOURCE/tests/tools/check.py junit j.xml");
  ck_assert_str_eq(o->out, "4 2\npeak <= 0\nrange \"\xc3\xa9?\": waits == 0\n");
  sh_status(0, "grep -c '^| kept \\|^| EXCEEDED \\|^| not known ' m.md | grep -qx 4");
  sh_status(0, "! grep '<' m.md && test $(stat -c %%a j.xml) = 600");
  /* A link is written through, never replaced. */
  o = sh_status(1, "ln -s j.xml link; ln -s /proc/self/fd/1 out;"
                   " $WEIR check --budget 'b<&\"' --markdown out --junit link 't&<.db'");
  expect(o->out, "b<&\"  4 limits");
  expect(o->out, "## weir check");
  sh_status(0, "test -h link && test -h out && cp j.xml k.xml &&"
               " python3 $WEIR_SOURCE/tests/tools/check.py junit k.xml && ! ls | grep part");
}
END_TEST

/* Each metric of each subject that weir(1) names is one, and no other is. */
START_TEST(the_manual_has_the_metrics_that_there_are)
{
  sh_status(0, RUN "t.db -- $VICTIM repeat 3");
  sh_status(0, "python3 $WEIR_SOURCE/tests/tools/check.py metrics $WEIR_SOURCE/tools/man/weir.1 >m;"
               " test $(wc -l <m) -gt 40");
  sh_status(
      0, "$WEIR diff -f json/1 t.db t.db | python3 -c 'import json, sys; d = json.load(sys.stdin);"
         "m = [l.split() for l in open(\"m\")];"
         "h = {\"run\": d[\"run\"], \"device\": d[\"devices\"][0][\"metrics\"],"
         " \"site\": d[\"sites\"][0][\"metrics\"]};"
         "assert all(list(v) == [l[0] for l in m if k in l] for k, v in h.items()), h'");
  sh_status(0,
            "while read -r metric subjects; do echo \"range \\\"x\\\": $metric == 0\" >one;"
            " case $subjects in *range) cat one >>all;;"
            " *) $WEIR check --budget one absent 2>&1 | grep -q 'a range has no ' || exit 1;; esac;"
            " done <m && test $(wc -l <all) -gt 5");
  sh_status(1, "$WEIR check --budget all t.db");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/check");
  TCase *t = tcase_create("check");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, the_wastes_of_a_loop_are_gone_in_the_mended_one);
  tcase_add_test(t, what_costs_less_than_is_asked_for_is_no_finding);
  tcase_add_test(t, two_runs_of_a_program_have_the_same_sites);
  tcase_add_test(t, a_program_that_was_built_anew_since_is_said);
  tcase_add_test(t, exit_statuses_say_whether_there_is_an_answer);
  tcase_add_test(t, what_is_no_trace_gets_the_sentence_of_a_report);
  tcase_add_test(t, junit_is_read_back_with_what_fails);
  tcase_add_test(t, the_manual_has_the_metrics_that_there_are);
  suite_add_tcase(s, t);
  return run_suite(s);
}
