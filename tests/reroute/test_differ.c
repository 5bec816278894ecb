/* test_differ.c: random programs give the same bytes and the same return codes, rerouted or not. */
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

#ifndef SEEDS
#define SEEDS 12
#endif

enum {
  TRACED = 12
}; /* first seeds: under weir run, their traces looked at; the rest preloaded only */

/* Runs the program in a mode; what it wrote. */
static const char *rerouted(int seed, const char *mode, const char *program)
{
  static const char *const limits[] = {"0", "3M", "64M", "1G"};
  const char *limit = limits[seed % 4];
  outcome *o;
  if (seed < TRACED)
    o = sh_status(0,
                  "WEIR_STAGING=on WEIR_CACHE_LIMIT=%s $WEIR run -o t.db --sim --stacks=off "
                  "--mode=%s -- %s",
                  limit, mode, program);
  else
    o = sh_status(0,
                  "mkdir -p -m 700 spools; WEIR_STAGING=on WEIR_CACHE_LIMIT=%s WEIR_MODE=%s "
                  "WEIR_STACKS=off WEIR_SPOOL_DIR=$PWD/spools LD_LIBRARY_PATH=$BUILD/lib/sim "
                  "LD_PRELOAD=$BUILD/lib/libweir-preload.so %s",
                  limit, mode, program);
  return o->out;
}

START_TEST(a_random_program_gives_the_same_bytes_and_codes_in_each_mode)
{
  static const int threads[] = {1, 2, 5};
  static const char *const modes[] = {"strict", "relaxed"};
  char bare[4096], program[256];
  int n = threads[_i % 3], steps = (_i < TRACED ? 400 : 120) / n;
  (void)snprintf(program, sizeof program, "$BUILD/tests/reroute/differ %d %d %d", _i, n, steps);
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim %s", program);
  ck_assert_int_eq((int)strlen(o->out), 17 * n);
  (void)snprintf(bare, sizeof bare, "%s", o->out);
  for (int m = 0; m < 2; m++) {
    const char *out = rerouted(_i, modes[m], program);
    ck_assert_msg(strcmp(out, bare) == 0, "seed %d, %s:\n%sbare:\n%s", _i, modes[m], out, bare);
    if (_i % 4 == 3 && _i < TRACED)
      ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 1 and flags & 64"), 0);
    if (_i < 3)
      ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 3 and flags & 128"), 0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/differ");
  TCase *c = tcase_create("differ");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_random_program_gives_the_same_bytes_and_codes_in_each_mode, 0, SEEDS);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
