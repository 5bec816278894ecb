/* test_kinds.c: memory of every kind, on many threads: what the keeper's own account says of
 * allocations, bytes, what is live and how much was at most, and what the trace says. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#define SEEDS AT_LEVEL(12, 48, 500)

typedef struct figures {
  char kind[4], device[4];
  long long allocs, bytes, blocks, live, low, high;
} figures;

static sqlite3 *db;

/* The trace's row of a kind on a device; false: it has none. */
static bool find_row(const figures *want, figures *got, long long *peak)
{
  char query[256];
  bool sum = strchr("ST", want->kind[0]), registered = want->kind[0] == 'R';
  sqlite3_stmt *q = NULL;
  (void)snprintf(query, sizeof query,
                 "SELECT allocs, bytes, live_blocks, live, peak FROM memory WHERE mem IS %s AND"
                 " device IS %s AND registered = %d",
                 sum          ? "NULL"
                 : registered ? "2"
                              : want->kind,
                 want->device[0] == '-' ? "NULL" : want->device, registered);
  ck_assert_int_eq(sqlite3_prepare_v2(db, query, -1, &q, NULL), SQLITE_OK);
  bool found = sqlite3_step(q) == SQLITE_ROW;
  got->allocs = sqlite3_column_int64(q, 0);
  got->bytes = sqlite3_column_int64(q, 1);
  got->blocks = sqlite3_column_int64(q, 2);
  got->live = sqlite3_column_int64(q, 3);
  *peak = sqlite3_column_int64(q, 4);
  sqlite3_finalize(q);
  return found;
}

static void compare_figures(const figures *want, bool exact)
{
  figures got;
  long long peak;
  bool found = find_row(want, &got, &peak);
  ck_assert_msg(found, "kind %s, device %s: not in the trace", want->kind, want->device);
  ck_assert_msg(got.allocs == want->allocs && got.bytes == want->bytes &&
                    got.blocks == want->blocks && got.live == want->live,
                "kind %s, device %s: %lld allocations of %lld bytes, %lld of %lld live; the program"
                " counts %lld of %lld, %lld of %lld",
                want->kind, want->device, got.allocs, got.bytes, got.blocks, got.live, want->allocs,
                want->bytes, want->blocks, want->live);
  ck_assert_msg(peak >= want->low && peak <= want->high,
                "kind %s, device %s: a peak of %lld; by the program's account %lld to %lld",
                want->kind, want->device, peak, want->low, want->high);
  if (exact) ck_assert_int_eq(want->low, want->high);
}

/* Line by line, and the trace has no kind beside them. */
static void compare_account(const char *account, bool exact)
{
  figures f;
  int used, lines = 0;
  ck_assert_int_eq(sqlite3_open_v2("t.db", &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  for (; sscanf(account, "%3s %3s %lld %lld %lld %lld %lld %lld\n%n", f.kind, f.device, &f.allocs,
                &f.bytes, &f.blocks, &f.live, &f.low, &f.high, &used) == 8;
       account += used, lines++)
    compare_figures(&f, exact);
  sqlite3_close(db);
  ck_assert_int_gt(lines, 4);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM memory"), lines);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block WHERE how IN (3, 4)"), 0);
}

static void run_keeper(const char *program, int seed)
{
  static const int threads[] = {1, 2, 4, 16};
  static const char *const modes[] = {"observe", "strict", "relaxed"};
  static const char *const ends[] = {"leave", "drop", "reset"};
  int n = threads[seed % 4];
  bool exact = seed / 4 % 2 == 0;
  outcome *o = sh_status(0,
                         "$WEIR run --force -o t.db --sim=%d --mode=%s --stacks=%s --"
                         " $BUILD/tests/e2e/%s %d %d %d %s %s",
                         1 + seed / 2 % 2, modes[seed % 3], seed % 2 ? "off" : "8", program, seed,
                         n, 320 / n, exact ? "each" : "together", ends[seed / 3 % 3]);
  compare_account(o->out, exact);
}

START_TEST(memory_of_every_kind_is_live_and_at_its_peak_as_the_program_counts)
{
  run_keeper("keeper", _i);
}
END_TEST

START_TEST(memory_by_a_runtime_that_is_linked_in_is_as_the_program_counts)
{
  run_keeper("keeper_static", SEEDS + _i);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("kinds");
  TCase *t = tcase_create("account");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, memory_of_every_kind_is_live_and_at_its_peak_as_the_program_counts, 0,
                      SEEDS);
  tcase_add_loop_test(t, memory_by_a_runtime_that_is_linked_in_is_as_the_program_counts, 0, SEEDS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
