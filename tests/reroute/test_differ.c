/* test_differ.c: random programs give the same bytes and the same return codes, rerouted or not. */
#include <stdio.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#ifndef SEEDS
#define SEEDS AT_LEVEL(12, 50, 1000)
#endif

enum { TRACED = 12 };

#define STAGED "select count(*) from event where kind = 3 and flags & 128"

static const int threads[] = {1, 2, 5};
static const char *const limits[] = {"0", "3M", "64M", "1G"};

/* The first seeds: under weir run, and their traces looked at. */
static void traced(int seed, const char *program)
{
  static const char *const modes[] = {"strict", "relaxed"};
  char bare[4096];
  outcome *o = sh_status(0, "WEIR_SIM_DEVICES=2 LD_LIBRARY_PATH=$BUILD/lib/sim %s", program);
  ck_assert_int_eq((int)strlen(o->out), 17 * threads[seed % 3]);
  (void)snprintf(bare, sizeof bare, "%s", o->out);
  for (int m = 0; m < 2; m++) {
    o = sh_status(
        0,
        "WEIR_STAGING=on WEIR_CACHE_LIMIT=%s $WEIR run --force -o t.db --sim=2 --stacks=off "
        "--mode=%s -- %s",
        limits[seed % 4], modes[m], program);
    ck_assert_msg(strcmp(o->out, bare) == 0, "seed %d, %s:\n%sbare:\n%s", seed, modes[m], o->out,
                  bare);
    if (seed % 4 == 3)
      ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 1 and flags & 64"), 0);
    if (seed >= 3) continue;
    ck_assert_int_gt(ask("t.db", STAGED), 0);
    if (seed == 0) ck_assert_int_gt(ask("t.db", STAGED " and copy = 10"), 0);
  }
}

/* The rest: preloaded only, the three runs side by side. */
static void preloaded(int seed, const char *program)
{
  const outcome *o =
      sh("mkdir -p -m 700 spools\n"
         "export WEIR_SIM_DEVICES=2 LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_STAGING=on "
         "WEIR_CACHE_LIMIT=%s "
         "WEIR_STACKS=off WEIR_SPOOL_DIR=$PWD/spools\n"
         "for mode in strict relaxed; do\n"
         "  (WEIR_MODE=$mode LD_PRELOAD=$BUILD/lib/libweir-preload.so %s; echo $?) > $mode &\n"
         "done\n"
         "(%s; echo $?) > bare\n"
         "wait; rm -rf spools; cmp bare strict && cmp bare relaxed && cat bare",
         limits[seed % 4], program, program);
  ck_assert_msg(o->status == 0, "seed %d: %s%s", seed, o->out, o->err);
  ck_assert_int_eq((int)strlen(o->out), 17 * threads[seed % 3] + 2);
}

START_TEST(a_random_program_gives_the_same_bytes_and_codes_in_each_mode)
{
  char program[256];
  int n = threads[_i % 3], steps = (_i < TRACED ? 400 : 100) / n;
  (void)snprintf(program, sizeof program, "$BUILD/tests/reroute/differ %d %d %d", _i, n, steps);
  if (_i < TRACED)
    traced(_i, program);
  else
    preloaded(_i, program);
}
END_TEST

#if TEST_LEVEL > 0
START_TEST(a_copy_of_more_than_a_gib_between_devices_is_staged)
{
  static const char *const modes[] = {"strict", "relaxed"};
  const outcome *o = sh_status(0,
                               "WEIR_STAGING=on $WEIR run --force -o t.db --sim=2 --mode=%s -- "
                               "$BUILD/tests/reroute/subject large_peer",
                               modes[_i]);
  ck_assert_str_eq(o->out, "wrong: 0\n");
  ck_assert_int_eq(ask("t.db", STAGED " and copy = 10"), 2);
}
END_TEST
#endif

int main(void)
{
  Suite *s = suite_create("reroute/differ");
  TCase *c = tcase_create("differ");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_random_program_gives_the_same_bytes_and_codes_in_each_mode, 0, SEEDS);
#if TEST_LEVEL > 0
  tcase_add_loop_test(c, a_copy_of_more_than_a_gib_between_devices_is_staged, 0, 2);
#endif
  suite_add_tcase(s, c);
  return run_suite(s);
}
