/* test_tally.c: programs on the software device, recorded without a collector: a tally of each spool comes to what its trace
 * says is live, called and open. Memory of every kind that many threads keep and others drop, pools, asynchronous
 * frees, resets, graphs with memory, code, forks. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/reports/beside_trace.h"
#include "tests/tools/command.h"

#define RECORDED                                                                                   \
  "mkdir -m 700 spools && WEIR_SPOOL_DIR=$PWD/spools "                                             \
  "WEIR_STACKS=16 LD_LIBRARY_PATH=$BUILD/lib/sim LD_PRELOAD=$BUILD/lib/libweir-preload.so "

static const char *const programs[] = {
    "$BUILD/tests/e2e/keeper 4 4 80 each drop",
    "$BUILD/tests/e2e/keeper 9 16 20 together leave",
    "$BUILD/tests/e2e/keeper 7 2 160 each reset",
    "$BUILD/tests/e2e/graph_caller memory",
    "$BUILD/tests/e2e/graph_caller explicit",
    "$BUILD/tests/e2e/graph_caller condition",
    "$BUILD/tests/e2e/segments malloc 1",
    "$BUILD/tests/e2e/segments expandable 2",
    "$BUILD/tests/e2e/importer leave",
    "$BUILD/tests/e2e/random_caller 3 4 400 tally.json",
    "$BUILD/tests/e2e/asker fork 1000",
    "$BUILD/examples/streams",
    "$BUILD/examples/memory",
    "$BUILD/examples/pipeline",
};

enum { PROGRAMS = sizeof programs / sizeof *programs };

static void expect_spool_as_trace(const char *spool, bool alone)
{
  spool_reader *reader;
  wr_tally *tally;
  const wr_tally_options options = {.anew = true};
  char sql[512];
  (void)snprintf(sql, sizeof sql, "select id from process where spool like '%%%s'", spool);
  const int process = (int)ask("t.db", sql);
  ck_assert_int_eq(spool_reader_open(&reader, spool, false), WEIR_OK);
  ck_assert_int_eq(wr_tally_open(&tally, reader, spool, &options), WEIR_OK);
  ck_assert_int_eq(wr_tally_drain(tally, true), WEIR_OK);
  expect_as_trace(tally, "t.db", process, 0, BESIDE_STACKS | (alone ? BESIDE_PEAKS : 0));
  wr_tally_close(tally);
  spool_reader_close(reader);
}

START_TEST(a_tally_of_each_spool_of_a_program_is_its_trace)
{
  glob_t found;
  (void)sh(RECORDED "%s >out 2>err", programs[_i]);
  sh_status(0, "$WEIR import --force spools -o t.db");
  ck_assert_msg(glob("spools/*.spool", 0, NULL, &found) == 0, "%s: no spool", programs[_i]);
  ck_assert_int_gt(ask("t.db", "select count(*) from event"), 5);
  for (size_t i = 0; i < found.gl_pathc; i++)
    expect_spool_as_trace(found.gl_pathv[i], found.gl_pathc == 1);
  globfree(&found);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("e2e/tally");
  TCase *t = tcase_create("tally");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, a_tally_of_each_spool_of_a_program_is_its_trace, 0, PROGRAMS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
