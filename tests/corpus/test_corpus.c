/* test_corpus.c: what must be true of the corpus: it is the same on every run, its traces keep the
 * rules of a list, and they are the programs README.md says they are. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "tools/replay/read.h"
#include "tools/replay/replay.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
  const char *name;
  uint64_t live_min, live_max; /* MiB at the peak, from the shapes */
  unsigned streams, threads;
  double ratio;     /* most that Weir may reserve: 1.05 in training, 1.10 where sizes are drawn */
  bool steady;      /* asks for nothing in the last third */
  unsigned misfits; /* allocations that fail on a device 98 % live: README.md */
} rows[] = {
    {"transformer", 9000, 10500, 1, 1, 1.05, true, 0},
    {"checkpoint", 7000, 8000, 1, 1, 1.05, true, 0},
    {"sharded", 3000, 4000, 2, 1, 1.05, false, 0},
    {"images", 3500, 5500, 1, 1, 1.05, true, 0},
    {"serving", 13000, 30000, 1, 1, 1.10, true, 0},
    {"graphs", 1000, 4000, 1, 1, 1.10, true, 0},
    {"side-stream", 9000, 10500, 2, 1, 1.05, true, 0},
    {"threads", 1000, 3000, 256, 16, 1.10, false, 15},
    {"pipeline", 60, 200, 4, 4, 1.10, false, 1},
};

static const char *build_folder_or_default(void)
{
  const char *path = getenv("WEIR_BUILD");
  return path ? path : "build";
}

static void read_trace(rp_ops *ops, int row)
{
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/corpus/%s.csv", build_folder_or_default(), rows[row].name);
  ck_assert_msg(rp_read(ops, path) == WEIR_OK, "%s", weir_error_message());
}

static unsigned different(const rp_ops *ops, bool threads)
{
  hash_map seen = {0};
  for (size_t i = 0; i < ops->count; i++)
    ck_assert_ptr_nonnull(
        hash_map_place(&seen, threads ? ops->op[i].thread : ops->op[i].stream, NULL));
  unsigned count = (unsigned)seen.count;
  hash_map_free(&seen);
  return count;
}

START_TEST(a_trace_keeps_the_rules_and_is_what_it_says)
{
  rp_ops ops = {0};
  rp_result r;
  read_trace(&ops, _i);
  ck_assert_uint_eq(ops.unmatched, 0);
  ck_assert_uint_eq(ops.replaced, 0);
  ck_assert_uint_eq(ops.count, 2 * (size_t)ops.blocks); /* all is freed at the end */
  ck_assert_uint_eq(different(&ops, false), rows[_i].streams);
  ck_assert_uint_eq(different(&ops, true), rows[_i].threads);
  ck_assert_int_eq(rp_replay(&r, &ops, &rp_malloc, &(rp_options){0}), WEIR_OK);
  ck_assert_uint_ge(r.peak_live / MIB, rows[_i].live_min);
  ck_assert_uint_le(r.peak_live / MIB, rows[_i].live_max);
  rp_ops_clear(&ops);
}
END_TEST

START_TEST(every_policy_runs_every_trace)
{
  rp_ops ops = {0};
  rp_result r;
  read_trace(&ops, _i);
  for (const rp_policy *const *p = rp_policies; *p; p++) {
    ck_assert_int_eq(rp_replay(&r, &ops, *p, &(rp_options){0}), WEIR_OK);
    ck_assert_uint_eq(r.operations, ops.count);
    ck_assert_uint_eq(r.failed, 0);
    ck_assert_uint_ge(r.peak_reserved, r.peak_live);
  }
  rp_ops_clear(&ops);
}
END_TEST

START_TEST(weir_reserves_no_more_than_any_peer)
{
  rp_ops ops = {0};
  rp_result ours, r;
  read_trace(&ops, _i);
  ck_assert_int_eq(rp_replay(&ours, &ops, &rp_weir, &(rp_options){0}), WEIR_OK);
  ck_assert_msg(rp_ratio(&ours) <= rows[_i].ratio, "%.3f", rp_ratio(&ours));
  enum { PEERS = 3 };
  const rp_policy *const peers[PEERS] = {&rp_pytorch, &rp_pytorch_expandable, &rp_rmm_pool};
  for (int i = 0; i < PEERS; i++) {
    ck_assert_int_eq(rp_replay(&r, &ops, peers[i], &(rp_options){0}), WEIR_OK);
    ck_assert_msg(ours.peak_reserved <= r.peak_reserved, "%s: %.1f MiB, weir %.1f MiB",
                  peers[i]->name, (double)r.peak_reserved / MIB, (double)ours.peak_reserved / MIB);
  }
  ck_assert_uint_eq(ours.syncs + ours.stream_waits, 0);
  rp_ops_clear(&ops);
}
END_TEST

START_TEST(weir_asks_for_nothing_in_steady_state)
{
  rp_ops ops = {0};
  rp_result all, part;
  if (!rows[_i].steady) return;
  read_trace(&ops, _i);
  ck_assert_int_eq(rp_replay(&all, &ops, &rp_weir, &(rp_options){0}), WEIR_OK);
  ops.count = ops.count / 3 * 2;
  ck_assert_int_eq(rp_replay(&part, &ops, &rp_weir, &(rp_options){0}), WEIR_OK);
  if (strcmp(rows[_i].name, "serving") != 0)
    ck_assert_uint_eq(part.segment_calls, all.segment_calls);
  ck_assert_uint_le(all.segment_calls - part.segment_calls, 16); /* in a thousand decoding steps */
  rp_ops_clear(&ops);
}
END_TEST

START_TEST(weir_succeeds_while_98_percent_of_the_device_is_live)
{
  rp_ops ops = {0};
  rp_result r;
  read_trace(&ops, _i);
  ck_assert_int_eq(rp_replay(&r, &ops, &rp_weir, &(rp_options){0}), WEIR_OK);
  rp_options tight = {.capacity = r.peak_live * 100 / 98};
  ck_assert_int_eq(rp_replay(&r, &ops, &rp_weir, &tight), WEIR_OK);
  ck_assert_uint_le(r.failed, rows[_i].misfits);
  ck_assert_uint_le(r.peak_reserved, tight.capacity);
  rp_ops_clear(&ops);
}
END_TEST

START_TEST(a_one_shot_stream_strands_one_percent_at_most_in_weir)
{
  rp_ops plain = {0}, side = {0};
  rp_result without, with;
  read_trace(&plain, 0);
  read_trace(&side, 6);
  ck_assert_int_eq(rp_replay(&without, &plain, &rp_weir, &(rp_options){0}), WEIR_OK);
  ck_assert_int_eq(rp_replay(&with, &side, &rp_weir, &(rp_options){0}), WEIR_OK);
  ck_assert_uint_le(with.peak_reserved, without.peak_reserved / 100 * 101);
  rp_ops_clear(&plain);
  rp_ops_clear(&side);
}
END_TEST

/* What of a segment is not used stays with the stream that took it. */
START_TEST(a_one_shot_stream_strands_memory_in_pytorchs_policy)
{
  rp_ops plain = {0}, side = {0};
  rp_result without, with;
  read_trace(&plain, 0);
  read_trace(&side, 6);
  ck_assert_int_eq(rp_replay(&without, &plain, &rp_pytorch, &(rp_options){0}), WEIR_OK);
  ck_assert_int_eq(rp_replay(&with, &side, &rp_pytorch, &(rp_options){0}), WEIR_OK);
  ck_assert_uint_eq(with.peak_live, without.peak_live);
  ck_assert_uint_eq(with.peak_reserved, without.peak_reserved + 2048 * MIB);
  rp_ops_clear(&plain);
  rp_ops_clear(&side);
}
END_TEST

START_TEST(the_generator_writes_the_same_bytes_again)
{
  char line[8192], folder[] = "/tmp/weir-corpus-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(line, sizeof line,
                 "'%s/tests/corpus/generate' %s && for f in %s/*; do "
                 "cmp \"$f\" '%s/corpus/'\"$(basename \"$f\")\" || exit 1; done",
                 build_folder_or_default(), folder, folder, build_folder_or_default());
  int same = system(line); /* NOLINT(cert-env33-c): our own paths */
  (void)snprintf(line, sizeof line, "rm -r %s", folder);
  ck_assert_int_eq(system(line), 0); /* NOLINT(cert-env33-c) */
  ck_assert_int_eq(same, 0);
}
END_TEST

int main(void)
{
  enum { ROWS = sizeof rows / sizeof *rows };
  Suite *s = suite_create("corpus");
  TCase *c = tcase_create("corpus");
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_trace_keeps_the_rules_and_is_what_it_says, 0, ROWS);
  tcase_add_loop_test(c, every_policy_runs_every_trace, 0, ROWS);
  tcase_add_loop_test(c, weir_reserves_no_more_than_any_peer, 0, ROWS);
  tcase_add_loop_test(c, weir_asks_for_nothing_in_steady_state, 0, ROWS);
  tcase_add_loop_test(c, weir_succeeds_while_98_percent_of_the_device_is_live, 0, ROWS);
  tcase_add_test(c, a_one_shot_stream_strands_one_percent_at_most_in_weir);
  tcase_add_test(c, a_one_shot_stream_strands_memory_in_pytorchs_policy);
  tcase_add_test(c, the_generator_writes_the_same_bytes_again);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
