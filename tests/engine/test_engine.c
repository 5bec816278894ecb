/* test_engine.c: libweir in a program that runs under Weir: its blocks are the program's
 * allocations, what it has from the driver is its own, and nothing is counted twice. */
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

static const char *const modes[] = {"observe", "strict", "relaxed"};
/* Pages; segments of cudaMalloc; segments of whole blocks. */
static const char *const confs[] = {"", "expandable_segments:False", "whole_block:True"};

static char totals[65536]; /* of the report: a line each */

static void read_report(void)
{
  const outcome *o =
      sh_status(0, "$WEIR report --format json t.db | python3 -c 'import json, sys\n"
                   "for item in json.load(sys.stdin)[\"totals\"].items(): print(*item)'");
  memcpy(totals, o->out, sizeof totals);
}

static long long report(const char *member)
{
  char line[128];
  long long value = -1;
  (void)snprintf(line, sizeof line, "\n%s ", member);
  const char *at = !strncmp(totals, line + 1, strlen(line) - 1) ? totals : strstr(totals, line);
  ck_assert_msg(at && sscanf(at, "%*s %lld", &value) == 1, "%s is not in\n%s", member, totals);
  return value;
}

static void none_but_the_blocks(void)
{
  static const char inner[] = "select count(*) from event e join api a on a.id = e.api where "
                              "e.kind in (1, 2, 11) and a.layer <> 'weir'";
  ck_assert_int_eq(ask("t.db", inner), 0);
  ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 13 and copy = 5"), 0);
  ck_assert_int_eq(ask("t.db", "select count(*) from event where flags & 64"), 0);
}

START_TEST(the_example_counts_once_in_every_mode)
{
  sh_status(0, "$WEIR run --force -o t.db --sim --mode=%s -- $BUILD/examples/memory", modes[_i]);
  none_but_the_blocks();
  read_report();
  ck_assert_int_eq(report("alloc_calls"), 2);
  ck_assert_int_eq(report("alloc_bytes"), 64 << 20);
  ck_assert_int_eq(report("free_calls"), 2);
  ck_assert_int_eq(report("peak_bytes"), 64 << 20);
  ck_assert_int_eq(report("live_at_exit_bytes"), 0);
  ck_assert_int_eq(report("unmatched_frees"), 0);
  ck_assert_int_eq(report("failed_calls"), 1); /* a petabyte */
  ck_assert_int_eq(report("weir_reserved_peak_bytes"), 64 << 20);
}
END_TEST

/* The program's line of a kind of memory: calls, bytes, frees; and what was left and the peak,
 * where one thread ran: an address goes from thread to thread within less than the trace's clock
 * tells. */
static void check_kind(const char *tally, const char *kind, const char *prefix, bool alone)
{
  static const char *const members[] = {"alloc_calls", "alloc_bytes", "free_calls",
                                        "live_at_exit_bytes", "peak_bytes"};
  long long said[5];
  char name[64];
  const char *at = strstr(tally, kind);
  ck_assert(at && sscanf(at, "%*s %lld %lld %lld %lld %lld", &said[0], &said[1], &said[2], &said[3],
                         &said[4]) == 5);
  for (int i = 0; i < (alone ? 5 : 3); i++) {
    (void)snprintf(name, sizeof name, "%s%s", prefix, members[i]);
    ck_assert_msg(report(name) == said[i], "%s: %lld, the program says %lld", name, report(name),
                  said[i]);
  }
}

START_TEST(blocks_and_leaks_are_what_the_program_counted)
{
  static const int threads[] = {1, 8};
  int n = threads[_i & 1];
  static char tally[65536];
  const char *mode = modes[_i / 2 % 3], *conf = confs[_i / 6];
  const outcome *o = sh_status(0,
                               "WEIR_ALLOC_CONF=%s $WEIR run --force -o t.db --sim --mode=%s -- "
                               "$BUILD/tests/engine/client %d %d %d",
                               conf, mode, _i, n, 1200 / n);
  (void)snprintf(tally, sizeof tally, "%s", o->out);
  none_but_the_blocks();
  read_report();
  check_kind(tally, "device", "", n == 1);
  check_kind(tally, "pinned", "pinned_", n == 1);
  if (n > 1) return;
  ck_assert_int_eq(report("unmatched_frees"), 0);
  ck_assert_int_ge(report("weir_reserved_peak_bytes"), report("peak_bytes"));
  ck_assert_int_ge(report("weir_pinned_reserved_peak_bytes"), report("pinned_peak_bytes"));
}
END_TEST

START_TEST(the_pluggable_pair_is_an_allocator)
{
  sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/engine/client torch");
  sh_status(0, "$WEIR run --force -o t.db --sim --mode=%s -- $BUILD/tests/engine/client torch",
            modes[_i]);
  none_but_the_blocks();
  read_report();
  ck_assert_int_eq(report("alloc_calls"), 5);
  ck_assert_int_eq(report("live_at_exit_bytes"), 0);
  /* the copies' ends are what the blocks are */
  ck_assert_int_eq(ask("t.db", "select count(*) from event where kind = 3 and copy = 1 and mem = 3"
                               " and src_mem = 1"),
                   1);
  ck_assert_int_eq(ask("t.db", "select count(*) from event where kind = 3 and copy = 8 and mem = 3"
                               " and src_mem = 3"),
                   1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("engine");
  TCase *c = tcase_create("engine");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, the_example_counts_once_in_every_mode, 0, 3);
  tcase_add_loop_test(c, blocks_and_leaks_are_what_the_program_counted, 0, 18);
  tcase_add_loop_test(c, the_pluggable_pair_is_an_allocator, 0, 3);
  suite_add_tcase(s, c);
  return run_suite(s);
}
