/* test_guard.c: what a statement of a rule's may take, where SQLite itself looks at no clock:
 * within a row. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "reports/findings/guard.h"

/* Half as long as a value may be. */
#define HALF "printf('%.*c', 8000, 'a')"
/* 35 million comparisons, which only end when they are all made. */
#define SLOW_PART  "(" HALF " LIKE '%' || printf('%.*c', 900, 'a') || 'b')"
#define SLOW       SLOW_PART " + " SLOW_PART " + " SLOW_PART " + " SLOW_PART " + " SLOW_PART
#define COUNTED_TO "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "

typedef struct guarded {
  wr_db db;
  wr_guard guard;
  int rows; /* that the SQL function row() was called for */
} guarded;

static void count_row(sqlite3_context *context, int count, sqlite3_value **value)
{
  (void)count, (void)value;
  ++*(int *)sqlite3_user_data(context);
  sqlite3_result_int(context, 1);
}

static void raise_guard(guarded *g)
{
  *g = (guarded){.db.path = "trace"};
  ck_assert_int_eq(sqlite3_open(":memory:", &g->db.handle), SQLITE_OK);
  ck_assert_int_eq(
      sqlite3_create_function(g->db.handle, "row", 0, SQLITE_UTF8, &g->rows, count_row, NULL, NULL),
      SQLITE_OK);
  ck_assert_int_eq(wr_guard_raise(&g->guard, &g->db), WEIR_OK);
  wr_guard_time(&g->guard, 600000);
}

/* Runs a statement to its end: what that is, in SQLite's numbers. */
static int end_of(guarded *g, const char *sql)
{
  sqlite3_stmt *q = NULL;
  int code = sqlite3_prepare_v2(g->db.handle, sql, -1, &q, NULL);
  while (!code || code == SQLITE_ROW)
    code = sqlite3_step(q);
  sqlite3_finalize(q);
  return code;
}

static void lower_guard(guarded *g)
{
  wr_guard_lower(&g->guard);
  wr_guard_free(&g->guard);
  ck_assert_int_eq(end_of(g, "SELECT length(zeroblob(100000000))"), SQLITE_DONE);
  ck_assert_int_eq(sqlite3_hard_heap_limit64(-1), 0);
  ck_assert_int_eq(sqlite3_close(g->db.handle), SQLITE_OK);
}

START_TEST(a_value_is_no_longer_than_it_may_be)
{
  static const char *const long_ones[] = {
      "SELECT hex(zeroblob(1000000000))", "SELECT instr(zeroblob(200000000), 'b')",
      "SELECT replace(" HALF ", 'a', 'aaa')",
      "SELECT group_concat(" HALF ") FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3)"};
  guarded g;
  raise_guard(&g);
  for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
    int code = end_of(&g, long_ones[i]);
    ck_assert_msg(code == SQLITE_TOOBIG, "%s: %d", long_ones[i], code);
  }
  ck_assert_ptr_nonnull(strstr(wr_guard_limit(&g.guard, SQLITE_TOOBIG), "16 KiB"));
  ck_assert_int_eq(end_of(&g, "SELECT length(" HALF ")"), SQLITE_DONE);
  lower_guard(&g);
}
END_TEST

START_TEST(what_a_statement_keeps_is_bounded)
{
  guarded g;
  raise_guard(&g);
  ck_assert_ptr_null(wr_guard_limit(&g.guard, SQLITE_NOMEM)); /* it is the machine that has none */
  ck_assert_int_eq(end_of(&g, COUNTED_TO "SELECT json_group_array(" HALF ") FROM n"), SQLITE_NOMEM);
  ck_assert_ptr_nonnull(wr_guard_limit(&g.guard, SQLITE_NOMEM));
  lower_guard(&g);
}
END_TEST

/* In 10,000 instructions, between two looks of SQLite's at the clock, are some 600 rows of
 * these, each of which takes longer than the statement may. */
START_TEST(a_statement_ends_between_two_looks_at_the_clock)
{
  guarded g;
  raise_guard(&g);
  wr_guard_time(&g.guard, 20);
  ck_assert_int_eq(end_of(&g, COUNTED_TO "SELECT row() + " SLOW " FROM n"), SQLITE_INTERRUPT);
  ck_assert(wr_guard_late(&g.guard));
  ck_assert_int_lt(g.rows, 300);
  wr_guard_time(&g.guard, 600000); /* the next has its own */
  ck_assert(!wr_guard_late(&g.guard));
  ck_assert_int_eq(end_of(&g, "SELECT row() + " SLOW), SQLITE_DONE);
  lower_guard(&g);
}
END_TEST

/* What is done for a row, as looking a place up, is not the statement's. */
START_TEST(no_time_passes_in_a_pause)
{
  guarded g;
  raise_guard(&g);
  wr_guard_time(&g.guard, 20);
  wr_guard_pause(&g.guard);
  ck_assert_int_eq(end_of(&g, "SELECT " SLOW " + " SLOW " + length(zeroblob(1000000))"),
                   SQLITE_DONE);
  wr_guard_go_on(&g.guard);
  ck_assert(!wr_guard_late(&g.guard));
  ck_assert_int_eq(end_of(&g, "SELECT length(zeroblob(1000000))"), SQLITE_TOOBIG);
  lower_guard(&g);
}
END_TEST

START_TEST(a_row_calls_so_many_functions)
{
  char sql[4096] = "SELECT 1";
  for (int i = 0; i < WR_GUARD_FUNCTIONS; i++)
    strcat(sql, " + hex(1)");
  guarded g;
  raise_guard(&g);
  strcat(sql, " + max(1, 2) + abs(1)");
  ck_assert_int_eq(end_of(&g, sql), SQLITE_DONE);
  wr_guard_time(&g.guard, 600000);
  strcat(sql, " + hex(1)");
  ck_assert_int_eq(end_of(&g, sql), SQLITE_ERROR);
  ck_assert_str_eq(g.guard.refused, "call more than 100 functions");
  lower_guard(&g);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("guard");
  TCase *tc = tcase_create("guard");
  tcase_set_timeout(tc, 0);
  tcase_add_test(tc, a_value_is_no_longer_than_it_may_be);
  tcase_add_test(tc, what_a_statement_keeps_is_bounded);
  tcase_add_test(tc, a_statement_ends_between_two_looks_at_the_clock);
  tcase_add_test(tc, no_time_passes_in_a_pause);
  tcase_add_test(tc, a_row_calls_so_many_functions);
  suite_add_tcase(suite, tc);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
