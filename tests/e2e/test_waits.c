/* test_waits.c: what Weir says of each wait, and what a second model says that was written from
 * CUDA's documentation alone (wait_oracle.h), of random programs on streams held and released. */
#include <sqlite3.h>
#include <stdio.h>
#include "tests/level.h"
#include "tests/tools/command.h"

enum { PROGRAMS = AT_LEVEL(100, 250, 500) /* of one process */ };
#define RUNS AT_LEVEL(2, 4, 20)

static sqlite3_stmt *waits_of(sqlite3 *db)
{
  sqlite3_stmt *q = NULL;
  ck_assert_int_eq(sqlite3_prepare_v2(db,
                                      "SELECT d.pending, d.operations, d.bytes, d.streams, c.id,"
                                      " c.function FROM wait_detail d JOIN call c USING(id)"
                                      " ORDER BY c.start_ns, c.id",
                                      -1, &q, NULL),
                   SQLITE_OK);
  return q;
}

/* Line by line; how many there are. */
static long compare_waits(FILE *f, sqlite3_stmt *q)
{
  long lines = 0;
  int want[4];
  while (fscanf(f, "%d %d %d %d", &want[0], &want[1], &want[2], &want[3]) == 4) {
    ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
    for (int i = 0; i < 4; i++)
      ck_assert_msg(sqlite3_column_int(q, i) == want[i],
                    "wait %ld, %s, event %lld: %s is %d, the oracle's %d", lines,
                    (const char *)sqlite3_column_text(q, 5), (long long)sqlite3_column_int64(q, 4),
                    sqlite3_column_name(q, i), sqlite3_column_int(q, i), want[i]);
    lines++;
  }
  ck_assert_int_eq(sqlite3_step(q), SQLITE_DONE);
  return lines;
}

/* Run 0 again, on one device whose streams are held as a real device's would be. */
START_TEST(waits_of_random_programs_are_for_what_the_oracle_says)
{
  sqlite3 *db = NULL;
  bool real = _i == RUNS;
  sh_status(
      0, "$WEIR run --force -o t.db --mode=observe --sim=%d -- $BUILD/tests/e2e/waiter %d %d w%s",
      real ? 1 : 2, real ? 1 : 1 + _i * PROGRAMS, PROGRAMS, real ? " words" : "");
  sh_status(0, "$WEIR resolve t.db");
  FILE *f = fopen("w", "r");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_eq(sqlite3_open_v2("t.db", &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  sqlite3_stmt *q = waits_of(db);
  ck_assert_int_gt(compare_waits(f, q), 5 * PROGRAMS);
  sqlite3_finalize(q);
  sqlite3_close(db);
  (void)fclose(f);
  ck_assert_int_gt(ask("t.db", "select count(*) from wait_detail where pending = 0"), PROGRAMS);
  ck_assert_int_gt(ask("t.db", "select count(*) from wait_detail where pending"), PROGRAMS);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("waits");
  TCase *t = tcase_create("oracle");
  tcase_set_timeout(t, 300);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, waits_of_random_programs_are_for_what_the_oracle_says, 0, RUNS + 1);
  suite_add_tcase(s, t);
  return run_suite(s);
}
