/* test_explain.c: weir explain: a page for each rule, which has all headings and names no rule that
 * is not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

/* The ids of all rules and of all pages, one a line, sorted. */
static const char rule_ids[] =
    "sed -n 's/^-- id: //p' $WEIR_SOURCE/reports/findings/rules/*.sql | sort";
static const char page_ids[] =
    "cd $WEIR_SOURCE/reports/findings/explain && ls | sed -n 's/[.]md$//p' | sort";

static const char *const headings[] = {"What it finds", "Why it costs", "How to be sure",
                                       "How to fix it", "When to leave it"};
enum { HEADINGS = sizeof headings / sizeof *headings };

START_TEST(each_rule_has_a_page_and_each_page_a_rule)
{
  outcome *rules = sh_status(0, "%s", rule_ids), *pages = sh_status(0, "%s", page_ids);
  ck_assert_ptr_nonnull(strstr(rules->out, "pageable-async\n"));
  ck_assert_str_eq(rules->out, pages->out);
}
END_TEST

START_TEST(each_page_is_printed_with_all_headings_in_order)
{
  outcome *o = sh_status(
      0, "%s >ids; while read -r id; do $WEIR explain $id >$id.txt || echo $id; done <ids",
      rule_ids);
  ck_assert_str_eq(o->out, "");
  outcome *all =
      sh_status(0,
                "printf '%%s\\n' '%s' '%s' '%s' '%s' '%s' >want; while read -r id; do"
                " grep -x -f want $id.txt | cmp - want || echo $id;"
                " head -1 $id.txt | grep -q \"^$id ([1-9][0-9]*): \" || echo $id; done <ids 2>&1",
                headings[0], headings[1], headings[2], headings[3], headings[4]);
  ck_assert_str_eq(all->out, "");
}
END_TEST

/* What stands in marks of code and looks like an id, with '-' and small letters alone, is one. */
START_TEST(a_page_names_no_rule_that_is_not_there)
{
  outcome *o =
      sh_status(0,
                "%s >ids; cat $WEIR_SOURCE/reports/findings/explain/*.md |"
                " grep -o '`[a-z]*-[a-z-]*`' | tr -d '`' | sort -u >named; comm -23 named ids",
                rule_ids);
  ck_assert_str_eq(o->out, "");
  sh_status(0, "grep -qx duplicate-transfer named");
}
END_TEST

/* The limits of a rule by their names, and what decides: they are in the rule's file. */
START_TEST(a_page_names_all_limits_of_its_rule_and_what_decides)
{
  outcome *o = sh_status(
      0, "cd $WEIR_SOURCE/reports/findings; n=0\n"
         "for rule in rules/*.sql; do\n"
         "  id=$(sed -n 's/^-- id: //p' $rule); page=$(tr '\\n' ' ' <explain/$id.md)\n"
         "  names() { case $page in *\"$1\"*) n=$((n + 1)) ;; *) echo \"$id lacks $1\" ;; esac; }\n"
         "  for t in $(sed -n 's/^-- threshold: \\([a-z_]*\\) .*/\\1/p' $rule); do names "
         "\"\\`$t\\`\"; done\n"
         "  ! grep -q '^-- prove: ' $rule || names \"\\`weir prove $id -- PROGRAM\\`\"\n"
         "  ! grep -q '^-- decides: ' $rule || names \"$(sed -n 's/^-- decides: //p' $rule)\"\n"
         "  ! grep -q '^-- needs: copy_hash' $rule || names 'weir run --hash'\n"
         "  ! grep -q '^-- needs: device_' $rule || names 'weir run --device-times=all'\n"
         "done; test $n -gt 80 || echo only $n");
  ck_assert_str_eq(o->out, "");
}
END_TEST

START_TEST(the_list_has_number_name_title_of_each_rule)
{
  sh_status(0, "%s >ids", rule_ids);
  outcome *o = sh_status(
      0, "$WEIR explain --width 0 >list; cut -c5- list | sed 's/ .*//' | sort | diff - ids");
  ck_assert_str_eq(o->out, "");
  o = sh_status(0, "grep pageable-async list");
  ck_assert_str_eq(o->out,
                   " 5  pageable-async                Asynchronous copy of pageable memory, "
                   "which the host waits in\n");
}
END_TEST

START_TEST(a_number_has_the_pages_of_all_its_rules)
{
  outcome *o = sh_status(0, "$WEIR explain 9 | grep -o '^[a-z-]* (9)'");
  ck_assert_str_eq(o->out, "peer-bounce (9)\nthrough-the-host (9)\n");
  o = sh_status(0, "$WEIR explain 5 leak | grep -o '^[a-z-]* ([0-9]*)'");
  ck_assert_str_eq(o->out, "pageable-async (5)\nleak (24)\n");
}
END_TEST

START_TEST(an_unknown_rule_is_refused_and_nothing_printed)
{
  outcome *o = sh_status(2, "$WEIR explain leak pageble-async");
  ck_assert_str_eq(o->out, "");
  ck_assert_ptr_nonnull(strstr(o->err, "no rule 'pageble-async': did you mean 'pageable-async'?"));
  o = sh_status(2, "$WEIR explain 99");
  ck_assert_ptr_nonnull(strstr(o->err, "no rule '99'; 'weir explain' lists them"));
}
END_TEST

/* Code is left as it is; it is indented by four. */
START_TEST(paragraphs_are_filled_to_the_width)
{
  outcome *o =
      sh_status(0, "for w in 40 60 80; do for id in leak pageable-async launch-storm; do"
                   " $WEIR explain --width $w $id | grep -v '^    ' | LC_ALL=C.UTF-8 awk -v w=$w"
                   " '{ gsub(/µ/, \"u\") } length($0) > w'; done; done");
  ck_assert_str_eq(o->out, "");
  sh_status(0, "$WEIR explain leak >a; $WEIR explain --width 80 leak >b; cmp a b;"
               " $WEIR explain --width 40 leak >c; test $(wc -l <c) -gt $(wc -l <a)");
  sh_status(
      0,
      "for f in a c; do grep -v '^$' $f | tr -s ' \\n' '  ' >$f.words; done; cmp a.words c.words");
}
END_TEST

/* The words of a page as Markdown are those of its file. */
START_TEST(markdown_is_the_page_itself)
{
  sh_status(0, "$WEIR explain --format markdown leak | sed '1,4d; s/^###/##/' >a;"
               " cmp a $WEIR_SOURCE/reports/findings/explain/leak.md");
  outcome *o = sh_status(
      0, "$WEIR explain --format markdown >all; sed -n 's/^## //p' all | sort >b; %s | diff - b",
      rule_ids);
  ck_assert_str_eq(o->out, "");
  o = sh_status(0, "grep -c '^# ' all; test $(grep -c '^### ' all) -eq $(($(wc -l <b) * 5))");
  ck_assert_str_eq(o->out, "1\n");
}
END_TEST

/* One text for the command, the document and the manual. */
START_TEST(document_and_manual_are_of_the_same_pages)
{
  sh_status(0, "$WEIR explain --format markdown >all;"
               " sed '/^## The programs of each rule$/,$d' $WEIR_SOURCE/tools/doc/findings.md |"
               " sed '$d' | cmp - all");
  outcome *o = sh_status(0,
                         "mkdir man; $WEIR_SOURCE/tools/scripts/findings.py --man man 1.2; "
                         "sed -n 's/^[.]SH \\([a-z\\\\-]*\\) ([0-9]*)$/\\1/p' "
                         "man/weir-findings.7 | tr -d '\\\\' | sort >named; %s | diff - named;"
                         " grep -c '^[.]SS When to leave it' man/weir-findings.7",
                         rule_ids);
  int pages = atoi(sh_status(0, "wc -l <named")->out);
  ck_assert_int_gt(pages, 40);
  ck_assert_int_eq(atoi(o->out), pages);
}
END_TEST

START_TEST(a_document_of_other_pages_is_refused)
{
  sh_status(0, "mkdir -p x/tools/doc x/tools/scripts x/reports/findings x/tests/victims && cd x &&"
               " cp $WEIR_SOURCE/tools/scripts/findings.py tools/scripts &&"
               " cp $WEIR_SOURCE/tools/doc/findings.md $WEIR_SOURCE/tools/doc/savings.tsv"
               " tools/doc &&"
               " cp -r $WEIR_SOURCE/tests/victims/findings tests/victims &&"
               " cp -r $WEIR_SOURCE/reports/findings/rules $WEIR_SOURCE/reports/findings/explain"
               " reports/findings && tools/scripts/findings.py --check");
  outcome *o = sh_status(1, "cd x && echo More. >>reports/findings/explain/leak.md;"
                            " tools/scripts/findings.py --check");
  ck_assert_ptr_nonnull(strstr(o->err, "tools/doc/findings.md is not what"));
  sh_status(0, "cd x && tools/scripts/findings.py && tools/scripts/findings.py --check");
  o = sh_status(1, "cd x && rm reports/findings/explain/leak.md; tools/scripts/findings.py");
  ck_assert_str_eq(o->err, "reports/findings/explain/leak.md: is missing\n");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("explain");
  TCase *t = tcase_create("pages");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, each_rule_has_a_page_and_each_page_a_rule);
  tcase_add_test(t, each_page_is_printed_with_all_headings_in_order);
  tcase_add_test(t, a_page_names_no_rule_that_is_not_there);
  tcase_add_test(t, a_page_names_all_limits_of_its_rule_and_what_decides);
  tcase_add_test(t, the_list_has_number_name_title_of_each_rule);
  tcase_add_test(t, a_number_has_the_pages_of_all_its_rules);
  tcase_add_test(t, an_unknown_rule_is_refused_and_nothing_printed);
  tcase_add_test(t, paragraphs_are_filled_to_the_width);
  tcase_add_test(t, markdown_is_the_page_itself);
  tcase_add_test(t, document_and_manual_are_of_the_same_pages);
  tcase_add_test(t, a_document_of_other_pages_is_refused);
  suite_add_tcase(s, t);
  return run_suite(s);
}
