/* test_pool.c: blocks, sizes, growth, coalescing, giving back: one stream, invariants after every
 * operation. */
#include <string.h>
#include "tests/memory/rig.h"

static const struct way {
  uint64_t page;
  const char *conf;
} ways[] = {{2 * 1024 * 1024, NULL},
            {0, NULL},
            {2 * 1024 * 1024, "expandable_segments:off"},
            {0, "max_split_size_mb:20"},
            {0, "whole_block:on"},
            {2 * 1024 * 1024, "roundup_power2_divisions:4"}};
enum { WAYS = sizeof ways / sizeof *ways };

static rig r;

START_TEST(waste_is_bounded)
{
  rig_start(&r, 1024 * MIB, 2 * MIB, NULL);
  uint64_t last = 0;
  for (uint64_t bytes = 1; bytes < 64 * MIB; bytes += 1 + bytes / 300) {
    uint64_t size = round_request(r.p, bytes);
    ck_assert_uint_ge(size, bytes);
    ck_assert_uint_eq(size % 512, 0);
    ck_assert_uint_ge(size, last);
    double waste = (double)(size - bytes) / (double)bytes;
    if (bytes >= 64 * KIB) ck_assert_double_le(waste, 0.032);
    if (bytes >= 4 * KIB) ck_assert_double_le(waste, 0.125 + 512.0 / (double)bytes / 8);
    if (bytes <= MIB) ck_assert_uint_eq(bytes_of_class[class_of_units[(bytes + 511) / 512]], size);
    last = size;
  }
  rig_stop(&r);
}
END_TEST

START_TEST(many_blocks_of_one_size_waste_nothing)
{
  enum { N = 100, BYTES = 1243 * 512 }; /* between two classes */
  char *at[N];
  rig_start(&r, 512 * MIB, 2 * MIB, NULL);
  for (int i = 0; i < N; i++)
    at[i] = rig_malloc(&r, 0, BYTES - 300);
  ck_assert_uint_eq(round_request(r.p, BYTES - 300), BYTES);
  ck_assert_uint_gt(round_request(r.p, BYTES - 512), BYTES); /* its neighbours keep their class */
  uint64_t waste = (uint64_t)RIG_STAT(&r, allocated_bytes) - (uint64_t)N * BYTES;
  ck_assert_uint_le(waste, (uint64_t)32 * 5 * 512); /* of the first ones */
  rig_free(&r, at[N - 1]);
  ck_assert_ptr_eq(rig_malloc(&r, 0, BYTES), at[N - 1]); /* kept by the thread, as of any class */
  ck_assert_uint_eq(block_records[page_map_find((uint64_t)at[N - 1])].bytes, BYTES);
  for (int i = 0; i < N; i++)
    rig_free(&r, at[i]);
  rig_stop(&r);
}
END_TEST

START_TEST(blocks_are_apart_and_writable)
{
  rig_start(&r, 512 * MIB, ways[_i].page, ways[_i].conf);
  enum { N = 60 };
  char *at[N];
  uint64_t bytes[N], seed = 7;
  for (int i = 0; i < N; i++) {
    bytes[i] = 1 + rig_random(&seed) % (i % 3 ? 40 * KIB : 3 * MIB);
    at[i] = rig_malloc(&r, 0, bytes[i]);
    ck_assert_uint_eq((uintptr_t)at[i] % 512, 0);
    memset(at[i], i, bytes[i]);
  }
  for (int i = 0; i < N; i++) {
    ck_assert_int_eq(at[i][0], i);
    ck_assert(!memcmp(at[i], at[i] + 1, bytes[i] - 1));
    rig_free(&r, at[i]);
  }
  rig_stop(&r);
}
END_TEST

START_TEST(all_freed_coalesces_fully)
{
  rig_start(&r, 512 * MIB, ways[_i].page, ways[_i].conf);
  enum { N = 300 };
  void *at[N];
  uint64_t seed = 3;
  for (int i = 0; i < N; i++)
    at[i] = rig_malloc(&r, i % 3, 1 + rig_random(&seed) % (i % 5 ? 64 * KIB : 2 * MIB));
  for (int i = 0; i < N; i++) {
    int j = (int)(rig_random(&seed) % N);
    void *t = at[i];
    at[i] = at[j];
    at[j] = t;
  }
  for (int i = 0; i < N; i++)
    rig_free(&r, at[i]);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 0);
  ck_assert_int_eq(RIG_STAT(&r, requested_bytes), 0);
  pthread_mutex_lock(&r.p->lock);
  tcache_reclaim(r.p);
  epoch_poll(r.p, true, NULL);
  epoch_retire(r.p, NULL);
  for (unsigned i = 0; i < r.p->head_count; i++) { /* every range is one block, and holes */
    const mem_block *b = block(r.p->heads[i]);
    ck_assert(!b->right || block_state(b) != block_state(block(b->right)));
    ck_assert(r.p->space || !b->right);
  }
  pthread_mutex_unlock(&r.p->lock);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  rig_check(&r);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 0);
  ck_assert_uint_eq(r.f.used, 0);
  rig_stop(&r);
}
END_TEST

START_TEST(steady_state_calls_nothing)
{
  rig_start(&r, 512 * MIB, ways[_i].page, ways[_i].conf);
  enum { N = 40 };
  void *at[N];
  uint64_t calls = 0;
  for (int round = 0; round < 20; round++) {
    if (round == 4) calls = r.f.operations; /* no marker is wanted any more */
    for (int i = 0; i < N; i++)
      at[i] = rig_malloc(&r, i % 2, 600 + (uint64_t)i * 37 * KIB);
    for (int i = 0; i < N; i++)
      rig_free(&r, at[i * 7 % N]);
  }
  ck_assert_uint_eq(r.f.operations, calls);
  rig_stop(&r);
}
END_TEST

/* Four times the device, twice, and then segments. */
START_TEST(a_pool_lives_with_the_address_space_there_is)
{
  static const uint64_t limits[] = {0, 2047 * MIB, 1023 * MIB}, spaces[] = {2048, 1024, 0};
  rig_start(&r, 512 * MIB, 2 * MIB, NULL);
  ck_assert_int_eq(pool_free(r.p), WEIR_OK);
  r.f.space_limit = limits[_i];
  ck_assert_int_eq(pool_new(&r.p, &r.f.backend, NULL), WEIR_OK);
  ck_assert_uint_eq(r.p->space, spaces[_i] * MIB);
  void *all = rig_malloc(&r, 0, 500 * MIB);
  rig_check(&r);
  if (!spaces[_i]) {
    ck_assert_int_eq(pool_pause(r.p, 0, false), WEIR_ENOTSUP);
    ck_assert_ptr_nonnull(strstr(weir_error_message(), "(no address space for pages)"));
  }
  rig_free(&r, all);
  rig_stop(&r);
}
END_TEST

START_TEST(only_what_is_needed_is_mapped)
{
  rig_start(&r, 1024 * MIB, 2 * MIB, NULL);
  void *a = rig_malloc(&r, 0, 3 * MIB), *b = rig_malloc(&r, 0, 3 * MIB),
       *c = rig_malloc(&r, 0, 64 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 70 * MIB);
  rig_free(&r, c);
  void *d = rig_malloc(&r, 0, 100 * MIB); /* extends the free range */
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 106 * MIB);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_free(&r, d);
  rig_stop(&r);
}
END_TEST

START_TEST(pieces_are_stitched_until_nearly_all_is_used)
{
  rig_start(&r, 256 * MIB, 2 * MIB, NULL);
  enum { N = 128 };
  void *at[N];
  for (int i = 0; i < N; i++)
    at[i] = rig_malloc(&r, 0, 2 * MIB);
  for (int i = 0; i < N; i += 2)
    rig_free(&r, at[i]);
  void *large = rig_malloc(&r, 0, 128 * MIB); /* live + request = capacity, in 64 pieces */
  memset(large, 1, 128 * MIB);
  ck_assert_int_gt(RIG_STAT(&r, num_stitches), 0);
  ck_assert_uint_eq(r.f.used, 256 * MIB);
  rig_free(&r, large);
  for (int i = 1; i < N; i += 2)
    rig_free(&r, at[i]);
  rig_stop(&r);
}
END_TEST

START_TEST(freed_twice_and_foreign_pointers_are_refused)
{
  rig_start(&r, 512 * MIB, ways[_i].page, ways[_i].conf);
  char *small = rig_malloc(&r, 0, 1000), *large = rig_malloc(&r, 0, 5 * MIB);
  ck_assert_int_eq(weir_tcache_free(small + 512), WEIR_EINVAL);
  ck_assert_int_eq(weir_tcache_free(&r), WEIR_EINVAL);
  ck_assert_int_eq(weir_tcache_free((void *)UINTPTR_MAX), WEIR_EINVAL);
  rig_free(&r, small);
  rig_free(&r, large);
  ck_assert_int_eq(weir_tcache_free(small), WEIR_EINVAL);
  ck_assert_int_eq(weir_tcache_free(large), WEIR_EINVAL);
  rig_check(&r);
  rig_stop(&r);
}
END_TEST

START_TEST(whole_blocks_are_never_split)
{
  rig_start(&r, 512 * MIB, 2 * MIB, "whole_block:on");
  void *a = rig_malloc(&r, 0, 64 * MIB);
  rig_free(&r, a);
  void *b = rig_malloc(&r, 0, 5 * MIB), *c = rig_malloc(&r, 0, 64 * MIB);
  ck_assert_ptr_eq(a, c);
  ck_assert_ptr_ne(a, b);
  ck_assert_int_eq(RIG_STAT(&r, segment), 2);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 70 * MIB);
  rig_free(&r, b);
  rig_free(&r, c);
  rig_stop(&r);
}
END_TEST

START_TEST(idle_memory_decays_without_a_sync)
{
  rig_start(&r, 512 * MIB, ways[_i].page, ways[_i].conf);
  rig_free(&r, rig_malloc(&r, 1, 40 * MIB));
  rig_ms += 9000;
  rig_free(&r, rig_malloc(&r, 0, 3 * MIB));
  ck_assert_int_ge(RIG_STAT(&r, reserved_bytes), 40 * MIB);
  rig_ms += 3000;
  void *a = rig_malloc(&r, 0, 100 * MIB), *b = rig_malloc(&r, 0, 30 * MIB);
  ck_assert_int_lt(RIG_STAT(&r, reserved_bytes), 160 * MIB);
  ck_assert_uint_eq(r.f.syncs, 0);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(metadata_is_small)
{
  rig_start(&r, 2048 * MIB, 2 * MIB, NULL);
  enum { N = 20000 };
  static void *at[N];
  static const uint64_t sizes[] = {512, 4 * KIB, 16 * KIB, 64 * KIB};
  for (int k = 0; k < 4; k++) {
    uint64_t before = meta_bytes();
    for (int i = 0; i < N; i++)
      ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 0), sizes[k], &at[i]), WEIR_OK);
    ck_assert_uint_le(meta_bytes() - before, 96 * N + 16 * KIB);
    for (int i = 0; i < N; i++)
      ck_assert_int_eq(weir_tcache_free(at[i]), WEIR_OK);
    ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  }
  rig_check(&r);
  rig_stop(&r);
}
END_TEST

/* A record that only the page map knows. */
static block_id bare_block(uint64_t address)
{
  ck_assert_int_eq(block_ensure(r.p, 1), WEIR_OK);
  block_id id = block_new();
  block(id)->address = address;
  block(id)->class = 7;
  page_map_put(id);
  return id;
}

START_TEST(the_page_map_finds_what_one_segment_cannot_hold)
{
  rig_start(&r, 512 * MIB, 2 * MIB, NULL);
  enum { N = MAP_SLOTS + 100, APART = 0xfff };
  static block_id ids[N];
  uint64_t address = UINT64_C(1) << 46;
  for (int i = 0; i < N; i++, address += UNIT) {
    while (map_hash(address) >> MAP_SEGMENT_AT & APART)
      address += UNIT;
    ids[i] = bare_block(address);
  }
  ck_assert_uint_lt(atomic_load(&page_map_shape) >> 32, APART);
  for (int round = 0; round < 3; round++) { /* all there, every third gone, all gone */
    for (int i = 0; i < N; i++) {
      bool gone = round == 2 || (round == 1 && i % 3 == 0);
      if (gone && ids[i]) {
        address = block(ids[i])->address;
        page_map_remove(ids[i]);
        block_drop(ids[i]);
        ids[i] = 0;
        ck_assert_uint_eq(page_map_find(address), 0);
      }
    }
    for (int i = 0; i < N; i++)
      if (ids[i]) ck_assert_uint_eq(page_map_find(block(ids[i])->address), ids[i]);
  }
  rig_stop(&r);
}
END_TEST

START_TEST(the_page_map_finds_everything_while_it_grows)
{
  rig_start(&r, 512 * MIB, 2 * MIB, NULL);
  enum { N = 40000 };
  static block_id ids[N];
  uint64_t seed = 5, base = UINT64_C(1) << 45;
  for (int i = 0; i < N; i++) {
    ids[i] = bare_block(base + (uint64_t)i * (i % 2 ? UNIT : 2 * MIB) + (i % 2 ? MIB : 0) * 1024);
    for (int k = 0; k < 4; k++) {
      block_id id = ids[rig_random(&seed) % (uint64_t)(i + 1)];
      ck_assert_uint_eq(page_map_find(block(id)->address), id);
      ck_assert_uint_eq(page_map_find(block(id)->address + 8), 0);
    }
  }
  for (int i = 0; i < N; i++) {
    ck_assert_uint_eq(page_map_find(block(ids[i])->address), ids[i]);
    page_map_remove(ids[i]);
    block_drop(ids[i]);
  }
  rig_stop(&r);
}
END_TEST

START_TEST(the_peak_is_exact_on_one_thread)
{
  rig_start(&r, 512 * MIB, 2 * MIB, NULL);
  void *at[8];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 8; i++)
      at[i] = rig_malloc(&r, 0, 64 * KIB);
    void *large = rig_malloc(&r, 0, 4 * MIB);
    rig_free(&r, large);
    for (int i = 0; i < 8; i++)
      rig_free(&r, at[i]);
  }
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes_peak), 8 * 64 * KIB + 4 * MIB);
  rig_stop(&r);
}
END_TEST

static void no_work(void *argument)
{
  (void)argument;
}

/* A tensor is released while its kernel is queued, another while a second stream uses it. */
START_TEST(emptying_the_cache_waits_for_queued_work_on_freed_memory)
{
  rig_start(&r, 64 * MIB, ways[_i].page, ways[_i].conf);
  void *own = rig_malloc(&r, 1, 4 * MIB), *shared = rig_malloc(&r, 2, 6 * MIB);
  for (int i = 1; i <= 3; i++) {
    (void)rig_stream(&r, i);
    fake_hold(&r.f, i);
    fake_submit(&r.f, i, no_work, NULL);
  }
  ck_assert_int_eq(pool_use(shared, rig_stream(&r, 3)), WEIR_OK);
  rig_free(&r, own);
  rig_free(&r, shared);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 0);
  ck_assert_uint_eq(r.f.used, 0);
  ck_assert_uint_gt(r.f.syncs, 0);
  rig_stop(&r);
}
END_TEST

START_TEST(emptying_the_cache_waits_for_nothing_that_touches_live_memory_alone)
{
  rig_start(&r, 64 * MIB, ways[_i].page, ways[_i].conf);
  void *live = rig_malloc(&r, 1, 4 * MIB), *freed = rig_malloc(&r, 2, 6 * MIB);
  fake_hold(&r.f, 1);
  fake_submit(&r.f, 1, no_work, NULL);
  rig_free(&r, freed);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_uint_eq(r.f.syncs, 0);
  fake_release(&r.f, 1);
  rig_free(&r, live);
  rig_stop(&r);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("pool");
  TCase *t = tcase_create("one stream");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, waste_is_bounded);
  tcase_add_test(t, many_blocks_of_one_size_waste_nothing);
  tcase_add_loop_test(t, blocks_are_apart_and_writable, 0, WAYS);
  tcase_add_loop_test(t, all_freed_coalesces_fully, 0, 4);
  tcase_add_loop_test(t, steady_state_calls_nothing, 0, WAYS);
  tcase_add_loop_test(t, a_pool_lives_with_the_address_space_there_is, 0, 3);
  tcase_add_test(t, only_what_is_needed_is_mapped);
  tcase_add_test(t, pieces_are_stitched_until_nearly_all_is_used);
  tcase_add_loop_test(t, freed_twice_and_foreign_pointers_are_refused, 0, WAYS);
  tcase_add_test(t, whole_blocks_are_never_split);
  tcase_add_loop_test(t, idle_memory_decays_without_a_sync, 0, 2);
  tcase_add_test(t, metadata_is_small);
  tcase_add_test(t, the_page_map_finds_what_one_segment_cannot_hold);
  tcase_add_test(t, the_page_map_finds_everything_while_it_grows);
  tcase_add_test(t, the_peak_is_exact_on_one_thread);
  tcase_add_loop_test(t, emptying_the_cache_waits_for_queued_work_on_freed_memory, 0, WAYS);
  tcase_add_loop_test(t, emptying_the_cache_waits_for_nothing_that_touches_live_memory_alone, 0,
                      WAYS);
  suite_add_tcase(s, t);
  return rig_run(s);
}
