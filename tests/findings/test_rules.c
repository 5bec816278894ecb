/* test_rules.c: rules that a user, or somebody else, has written: what they may do is find. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

static void make_trace(void)
{
  enter_scratch();
  sh_status(0,
            "$WEIR run --force -o t.db --mode=observe --sim -- $BUILD/tests/findings/waster leak");
  sh_status(0, "mkdir rules");
}

static const char head[] = "-- id: own\n-- title: A rule of mine\n-- fix: Mend it.\n";

/* What `weir report findings --rules` ends with, of a rule of this SQL. */
static outcome *judge_with(int status, const char *sql)
{
  FILE *f = fopen("rules/own.sql", "w");
  ck_assert(f && fprintf(f, "%s%s", head, sql) > 0 && !fclose(f));
  return sh_status(status, "$WEIR report findings --min-cost 0ns --possible --rules rules t.db");
}

static void refused(const char *sql, const char *why)
{
  outcome *o = judge_with(1, sql);
  ck_assert_msg(strstr(o->err, why) && strstr(o->err, "own.sql"), "%s: %s", sql, o->err);
}

START_TEST(a_rule_of_ones_own_finds)
{
  const char *out =
      judge_with(0, "-- threshold: least 3 rows\nSELECT id AS event, 7 AS cost_ns FROM"
                    " event_row LIMIT :least\n")
          ->out;
  ck_assert_msg(strstr(out, "A rule of mine") && strstr(out, "Mend it."), "%s", out);
}
END_TEST

/* The first 20 of 44 operations save next to nothing. */
START_TEST(where_savings_differ_widely_the_least_of_them_is_printed)
{
  const char *rows =
      "-- certainty: certain\nSELECT 1000000 + i AS event, CASE WHEN i <= 20 THEN %d ELSE 50000 END"
      " AS cost_ns FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
      " FROM n WHERE i < 44) SELECT i FROM n)";
  char sql[400];
  (void)snprintf(sql, sizeof sql, rows, 1000);
  const char *out = judge_with(0, sql)->out;
  ck_assert_msg(strstr(out, "saves at least ") && strstr(out, "together about "), "%s", out);
  (void)snprintf(sql, sizeof sql, rows, 50000);
  out = judge_with(0, sql)->out;
  ck_assert_msg(strstr(out, "saves up to 2.20 ms (2.20 ms to 2.20 ms, "), "%s", out);
}
END_TEST

START_TEST(a_rule_with_the_id_of_weirs_takes_its_place)
{
  sh_status(0, "printf '%%s\\n' '-- id: leak' '-- title: My own leak' '-- fix: No.'"
               " 'SELECT 1 AS event' >rules/own.sql");
  const char *out =
      sh_status(0, "$WEIR report findings --min-cost 0ns --possible --rules rules t.db")->out;
  ck_assert(strstr(out, "My own leak") && !strstr(out, "never freed"));
}
END_TEST

/* A rule of one's own has no page, one in the place of Weir's neither. */
START_TEST(a_report_names_the_pages_of_what_it_found)
{
  const char *report = "$WEIR report findings --min-cost 0ns";
  const char *line = "sed -n 's/^ *What they mean: weir explain//p'";
  outcome *o = sh_status(0, "%s t.db | %s | tee asked | tr ' ' '\\n' | grep -cx leak; wc -l <asked",
                         report, line);
  ck_assert_str_eq(o->out, "1\n1\n");
  sh_status(0, "$WEIR explain $(cat asked) | grep -q '^leak (24): '");
  judge_with(0, "SELECT id AS event, 7 AS cost_ns FROM event_row");
  o = sh_status(0, "%s --rules rules t.db | %s | cmp - asked", report, line);
  sh_status(0, "sed -i 's/^-- id: own/-- id: leak/' rules/own.sql");
  o = sh_status(0, "%s --possible --rules rules t.db >all; grep 'A rule of mine' all; %s <all",
                report, line);
  ck_assert(strstr(o->out, "A rule of mine") && !strstr(o->out, "leak"));
  o = sh_status(
      0,
      "$WEIR report findings --min-cost 1000s,1000GiB t.db >none; grep -c 'Nothing was found' none;"
      " %s <none; $WEIR report t.db | %s",
      line, line);
  ck_assert_str_eq(o->out, "1\n");
}
END_TEST

/* No trace has its calls, so its SELECT, which fails, is not run. */
START_TEST(a_rule_is_not_run_where_no_call_is_of_its_kinds)
{
  const char *bad = "-- calls: t.kind = 99\nSELECT abs(-9223372036854775808) AS event\n";
  ck_assert_ptr_null(strstr(judge_with(0, bad)->out, "A rule of mine"));
  refused("-- calls: t.kind = 1\nSELECT abs(-9223372036854775808) AS event\n", "overflow");
  refused("-- calls: t.kind = 99)) FROM event_row; SELECT (EXISTS (SELECT 1\n"
          "SELECT 1 AS event\n",
          "own.sql");
}
END_TEST

/* Of a fact, of a table of the trace. What is no table is not asked for rows. */
START_TEST(a_rule_is_not_run_where_a_table_has_no_rows)
{
#define BAD "SELECT abs(-9223372036854775808) AS event\n"
  static const char *const not_run[] = {"-- rows: reread\n" BAD, "-- rows: graph_change\n" BAD,
                                        "-- rows: event_row reread\n" BAD,
                                        "-- rows: reread\n-- judge: unused-allocation\n"};
  for (size_t i = 0; i < sizeof not_run / sizeof *not_run; i++)
    ck_assert_ptr_null(strstr(judge_with(0, not_run[i])->out, "A rule of mine"));
  refused("-- rows: event_row template_use\n" BAD, "overflow");
  refused("-- rows: copy\n" BAD, "overflow");
  refused("-- rows: nothing\n" BAD, "overflow");
  refused("-- rows: storm\"\n" BAD, "rows cannot be 'storm\"'");
#undef BAD
}
END_TEST

/* As a user's own, which fail where Weir's would not be judged, and without what leaves them out. */
START_TEST(all_selects_of_weirs_can_be_prepared)
{
  sh_status(
      0,
      "rm -f rules/own.sql; for f in $(ls $WEIR_SOURCE/reports/findings/rules); do"
      " awk '/^-- (rows|calls): /{left = 1; next} left && /^--   /{next} {left = 0} 1'"
      " $WEIR_SOURCE/reports/findings/rules/$f >rules/$f; done; test $(ls rules | wc -l) -gt 50");
  sh_status(0, "$WEIR report findings --rules rules t.db");
  sh_status(0, "sed -i 's/FROM reread/FROM unread_by_nobody/' rules/04-redundant-read-back.sql");
  ck_assert(strstr(sh_status(1, "$WEIR report findings --rules rules t.db")->err,
                   "no such table: unread_by_nobody"));
  sh_status(0, "rm -rf rules && mkdir rules");
}
END_TEST

START_TEST(an_interrupt_ends_a_report_and_leaves_no_file)
{
  FILE *f = fopen("rules/own.sql", "w");
  ck_assert(f &&
            fprintf(f,
                    "%sWITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                    " SELECT i AS event FROM n ORDER BY i",
                    head) > 0 &&
            !fclose(f));
  sh_status(0, "mkdir own-tmp");
  sh_status(130, "TMPDIR=$PWD/own-tmp timeout --preserve-status -s INT 1"
                 " $WEIR report findings --rules rules t.db");
  ck_assert_str_eq(sh_status(0, "ls -A own-tmp")->out, "");
}
END_TEST

START_TEST(a_rule_of_ones_own_may_name_a_judge)
{
  judge_with(0, "-- holds: bytes\n-- threshold: min_bytes 1 bytes\n-- judge: unused-allocation\n");
  refused("-- judge: unused-allocation\n", "needs a threshold min_bytes");
  refused("-- judge: nobody\n", "there is no judge 'nobody'");
}
END_TEST

START_TEST(a_rule_may_read_and_nothing_else)
{
  refused("DELETE FROM event_row", "a rule may not do anything but read");
  refused("PRAGMA user_version", "a rule may not do anything but read");
  refused("ATTACH 'x' AS y", "a rule may not do anything but read");
  refused("SELECT 1 AS event FROM pragma_database_list", "a rule may not");
  refused("SELECT count(sql) AS event FROM sqlite_schema", "a rule may not read sqlite_");
  refused("SELECT load_extension(char(120)) AS event", "load_extension");
  ck_assert_int_eq(sh("test -e x")->status, 256);
}
END_TEST

/* However long one row would take. */
START_TEST(a_rule_takes_no_more_than_it_may)
{
  refused("SELECT hex(zeroblob(1000000000)) AS event", "a value of more than 16 KiB");
  refused("SELECT instr(zeroblob(200000000), 'b') AS event", "a value of more than 16 KiB");
}
END_TEST

START_TEST(kinds_and_flags_have_words)
{
  static const char sql[] =
      "-- calls: t.kind = $FREE OR t.kind = $ALLOC\n"
      "SELECT min(e.id) AS event, 'a $COPY' AS certainty -- no $WORD\n"
      "FROM event_row e JOIN template t ON t.id = e.template /* nor $THIS */\n"
      "WHERE t.kind = $ALLOC AND NOT t.flags & ($ASYNC | $CAPTURED) HAVING count(*)\n";
  ck_assert_ptr_nonnull(strstr(judge_with(0, sql)->out, "A rule of mine"));
  refused("SELECT 1 AS event\nFROM template WHERE kind = $ALOC",
          "own.sql: line 5: $ALOC is no word");
  refused("-- certainty: likely\n-- calls: t.kind = $COPIES\nSELECT 1 AS event",
          "own.sql: line 5: $COPIES is no word");
  refused("SELECT $1 AS event", "own.sql: line 4: $1 is no word");
  refused("SELECT $ AS event", "own.sql");
}
END_TEST

START_TEST(what_is_no_rule_is_said)
{
  refused("SELECT 1 AS event; SELECT 2 AS event", "it is not one SELECT");
  refused("SELECT 1 AS other", "column other is none that a rule has");
  refused("SELECT 1 AS bytes", "its SELECT has no column event");
  refused("SELECT :most AS event", "a parameter that is no threshold");
  refused("SELECT absent AS event FROM event_row", "no such column: absent");
  refused("-- severity: dreadful\nSELECT 1 AS event", "severity cannot be");
  refused("-- colour: red\nSELECT 1 AS event", "unknown line");
  refused("-- prove: loose device\nSELECT 1 AS event", "is not MODE REROUTES");
  refused("-- prove: strict\nSELECT 1 AS event", "is not MODE REROUTES");
  refused("-- prove: relaxed all\nSELECT 1 AS event", "is not MODE REROUTES");
  refused("-- threshold: least many\nSELECT 1 AS event", "is not NAME NUMBER UNIT");
  sh_status(0, "rm -f rules/own.sql");
  ck_assert(strstr(sh_status(1, "$WEIR report findings --rules rules t.db")->err, "has no file"));
  ck_assert(strstr(sh_status(1, "$WEIR report findings --rules none t.db")->err, "none"));
  sh_status(0, "mkfifo rules/pipe.sql");
  sh_status(1, "$WEIR report findings --rules rules t.db");
  sh_status(0, "rm rules/pipe.sql");
}
END_TEST

START_TEST(a_view_of_the_traces_own_is_not_asked)
{
  sqlite3 *db = NULL;
  sh_status(0, "cp t.db good.db");
  ck_assert_int_eq(sqlite3_open("t.db", &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db,
                                "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
                                " SELECT i + 1 FROM n) SELECT i FROM n; DROP VIEW copy;"
                                "CREATE VIEW copy AS SELECT * FROM endless",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  sqlite3_close(db);
  refused("SELECT i AS event FROM endless", "a rule may not read endless");
  judge_with(0, "SELECT id AS event FROM copy");
  sh_status(0, "mv good.db t.db");
}
END_TEST

START_TEST(a_cost_is_a_number_with_a_unit)
{
  static const char *const good[] = {"1ms", "0.5%", "3MiB,2us", "0ns"};
  static const char *const bad[] = {"1", "ms", "1 ms", "-1ms", "1ms,", "1e300s", "nanms"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    sh_status(0, "$WEIR report findings --min-cost '%s' t.db", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    sh_status(2, "$WEIR report findings --min-cost '%s' t.db", bad[i]);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("rules");
  TCase *t = tcase_create("own");
  tcase_set_timeout(t, 120);
  tcase_add_unchecked_fixture(t, make_trace, leave_scratch);
  tcase_add_test(t, a_rule_of_ones_own_finds);
  tcase_add_test(t, where_savings_differ_widely_the_least_of_them_is_printed);
  tcase_add_test(t, a_rule_with_the_id_of_weirs_takes_its_place);
  tcase_add_test(t, a_report_names_the_pages_of_what_it_found);
  tcase_add_test(t, a_rule_is_not_run_where_no_call_is_of_its_kinds);
  tcase_add_test(t, a_rule_is_not_run_where_a_table_has_no_rows);
  tcase_add_test(t, all_selects_of_weirs_can_be_prepared);
  tcase_add_test(t, an_interrupt_ends_a_report_and_leaves_no_file);
  tcase_add_test(t, a_rule_of_ones_own_may_name_a_judge);
  tcase_add_test(t, a_rule_may_read_and_nothing_else);
  tcase_add_test(t, a_rule_takes_no_more_than_it_may);
  tcase_add_test(t, kinds_and_flags_have_words);
  tcase_add_test(t, what_is_no_rule_is_said);
  tcase_add_test(t, a_view_of_the_traces_own_is_not_asked);
  tcase_add_test(t, a_cost_is_a_number_with_a_unit);
  suite_add_tcase(s, t);
  return run_suite(s);
}
