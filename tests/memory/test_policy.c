/* test_policy.c: the whole-block policy, and limits under it: what a program that holds pointers of
 * its own may rely on: a block is one segment of the driver's, of the exact size, never cut, joined
 * or moved, and reused only when its work is complete or on its own stream. */
#include <stdio.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

static rig r;

static void start_whole_block_rig(uint64_t capacity, const char *more)
{
  char conf[80];
  (void)snprintf(conf, sizeof conf, "whole_block:on%s", more);
  rig_start(&r, capacity, 2 * MIB, conf); /* VMM is there, and not used */
}

static uint64_t expected(uint64_t bytes)
{
  uint64_t unit = bytes <= MIB ? 512 : 2 * MIB;
  return (bytes + unit - 1) / unit * unit;
}

START_TEST(sizes_are_exact_and_every_block_is_a_segment)
{
  start_whole_block_rig(4096 * MIB, "");
  static const uint64_t sizes[] = {1,       511,          512,     513,     100 * KIB + 1,
                                   MIB - 1, MIB,          MIB + 1, 2 * MIB, 2 * MIB + 1,
                                   7 * MIB, 300 * MIB - 1};
  enum { N = sizeof sizes / sizeof *sizes };
  void *at[N];
  uint64_t sum = 0;
  for (int i = 0; i < N; i++) {
    at[i] = rig_malloc(&r, 1, sizes[i]);
    sum += expected(sizes[i]);
    ck_assert_uint_eq(block(page_map_find((uint64_t)at[i]))->bytes, expected(sizes[i]));
    ck_assert_uint_eq(r.f.used, sum); /* as the driver sees it: nothing more was taken */
    ck_assert_int_eq(RIG_STAT(&r, segment), i + 1);
  }
  ck_assert_uint_eq(r.f.pages, 0);
  for (int i = 0; i < N; i++)
    rig_free(&r, at[i]);
  ck_assert_int_eq(RIG_STAT(&r, segment), N);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_uint_eq(r.f.used, 0);
  rig_stop(&r);
}
END_TEST

START_TEST(a_block_serves_its_own_size_only)
{
  start_whole_block_rig(512 * MIB, "");
  void *a = rig_malloc(&r, 1, 4 * MIB), *s = rig_malloc(&r, 1, 2048);
  rig_free(&r, a);
  rig_free(&r, s);
  static const uint64_t others[] = {2 * MIB, 6 * MIB, 1024, 2049, 4096};
  for (int i = 0; i < 5; i++) {
    void *b = rig_malloc(&r, 1, others[i]);
    ck_assert(b != a && b != s);
    rig_free(&r, b);
  }
  ck_assert_ptr_eq(rig_malloc(&r, 1, 3 * MIB), a); /* the same class */
  ck_assert_ptr_eq(rig_malloc(&r, 1, 1537), s);
  rig_free(&r, a);
  rig_free(&r, s);
  rig_stop(&r);
}
END_TEST

START_TEST(neighbours_are_never_joined)
{
  start_whole_block_rig(512 * MIB, "");
  enum { N = 40 };
  void *at[N];
  for (int i = 0; i < N; i++)
    at[i] = rig_malloc(&r, 0, 2 * MIB);
  for (int i = 0; i < N; i++)
    rig_free(&r, at[i]);
  (void)epoch_sync(r.p);
  rig_free(&r, rig_malloc(&r, 1, 60 * MIB));
  ck_assert_int_eq(RIG_STAT(&r, segment), N + 1);
  for (int i = 0; i < N; i++) { /* each is still there, whole, at its address */
    const mem_block *b = NULL;
    for (unsigned k = 0; k < r.p->head_count; k++)
      if (block(r.p->heads[k])->address == (uint64_t)at[i]) b = block(r.p->heads[k]);
    ck_assert_ptr_nonnull(b);
    ck_assert(b->bytes == 2 * MIB && !b->left && !b->right);
  }
  rig_stop(&r);
}
END_TEST

START_TEST(another_stream_gets_it_only_when_its_work_is_complete)
{
  start_whole_block_rig(64 * MIB, "");
  fake_hold(&r.f, 1);
  void *a = rig_malloc(&r, 1, 8 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, a);
  void *b = rig_malloc(&r, 2, 8 * MIB);
  ck_assert_ptr_ne(a, b);
  void *c = rig_malloc(&r, 1, 8 * MIB); /* its own stream at once */
  ck_assert_ptr_eq(a, c);
  rig_free(&r, c);
  fake_release(&r.f, 1);
  ck_assert_ptr_eq(rig_malloc(&r, 2, 8 * MIB), a);
  ck_assert_uint_eq(r.f.waits + r.f.syncs, 0); /* nothing was put into the program's streams */
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(streams_that_used_it_are_waited_for)
{
  start_whole_block_rig(64 * MIB, "");
  void *a = rig_malloc(&r, 1, 8 * MIB);
  fake_hold(&r.f, 2);
  fake_submit(&r.f, 2, nothing, NULL);
  ck_assert_int_eq(pool_use(a, rig_stream(&r, 2)), WEIR_OK);
  rig_free(&r, a);
  void *b = rig_malloc(&r, 1, 8 * MIB);
  ck_assert_ptr_ne(a, b);
  fake_release(&r.f, 2);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 8 * MIB), a);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(the_cache_gives_way_before_memory_is_out)
{
  start_whole_block_rig(64 * MIB, "");
  void *at[8], *out;
  for (int i = 0; i < 8; i++)
    at[i] = rig_malloc(&r, i % 3, 8 * MIB);
  for (int i = 0; i < 8; i++)
    rig_free(&r, at[i]);
  void *all = rig_malloc(&r, 1, 64 * MIB); /* as the bare driver would give */
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 1, &out), WEIR_EOOM);
  rig_check(&r);
  rig_free(&r, all);
  rig_stop(&r);
}
END_TEST

START_TEST(limits_hold_whatever_the_policy)
{
  static const char *const conf[] = {"", ",limit_mb:40"};
  start_whole_block_rig(100 * MIB, conf[_i]);
  if (!_i) r.p->fraction = 0.4;
  void *out, *a = rig_malloc(&r, 1, 30 * MIB);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 20 * MIB, &out), WEIR_EOOM);
  weir_oom_info o;
  ck_assert_int_eq(weir_memory_last_oom(&o), WEIR_OK);
  ck_assert_int_eq(o.reason, _i ? WEIR_OOM_BUDGET : WEIR_OOM_FRACTION);
  rig_free(&r, a);
  void *b = rig_malloc(&r, 1, 40 * MIB); /* the cached one goes for it */
  ck_assert_uint_eq(r.f.used, 40 * MIB);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(tags_are_counted_whatever_the_policy)
{
  start_whole_block_rig(64 * MIB, "");
  tag_now = 3;
  void *a = rig_malloc(&r, 1, 20 * MIB);
  tag_now = 0;
  void *b = rig_malloc(&r, 1, 30 * MIB), *out;
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 20 * MIB, &out), WEIR_EOOM);
  weir_oom_info o;
  ck_assert_int_eq(weir_memory_last_oom(&o), WEIR_OK);
  ck_assert_uint_eq(o.tag_count, 2);
  ck_assert_uint_eq(o.tags[0].bytes, 30 * MIB);
  ck_assert_uint_eq(o.tags[1].bytes, 20 * MIB);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(steady_state_makes_no_call_and_reuses_addresses)
{
  start_whole_block_rig(1024 * MIB, "");
  enum { N = 24 };
  void *at[N], *first[N];
  uint64_t calls = 0;
  for (int round = 0; round < 12; round++) {
    if (round == 2) calls = r.f.operations;
    for (int i = 0; i < N; i++) {
      at[i] = rig_malloc(&r, i % 2, (uint64_t)(i + 1) * (i % 3 ? 2 * MIB : 1000));
      if (!round) first[i] = at[i];
      ck_assert_ptr_eq(at[i], first[i]);
    }
    for (int i = 0; i < N; i++)
      rig_free(&r, at[i]);
  }
  ck_assert_uint_eq(r.f.operations, calls);
  rig_stop(&r);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("policy");
  TCase *t = tcase_create("whole blocks");
  tcase_add_test(t, sizes_are_exact_and_every_block_is_a_segment);
  tcase_add_test(t, a_block_serves_its_own_size_only);
  tcase_add_test(t, neighbours_are_never_joined);
  tcase_add_test(t, another_stream_gets_it_only_when_its_work_is_complete);
  tcase_add_test(t, streams_that_used_it_are_waited_for);
  tcase_add_test(t, the_cache_gives_way_before_memory_is_out);
  tcase_add_loop_test(t, limits_hold_whatever_the_policy, 0, 2);
  tcase_add_test(t, tags_are_counted_whatever_the_policy);
  tcase_add_test(t, steady_state_makes_no_call_and_reuses_addresses);
  suite_add_tcase(s, t);
  return rig_run(s);
}
