/* test_policies.c: what each model does, by worked examples; and what every policy must keep to,
 * over random lists. */
#include <stdlib.h>
#include "tests/replay/rig.h"

#define SAME(a, b) ck_assert_uint_eq((a), (b))

/* ---- pytorch --------------------------------------------------------------------------------- */

START_TEST(pytorch_rounds_to_512_bytes_within_segments_of_2_mib)
{
  rig_open(&rp_pytorch, (rp_options){0});
  held a = rig_alloc(1, 0), b = rig_alloc(513, 0), c = rig_alloc(MIB, 0);
  SAME(b.address, a.address + 512);
  SAME(c.address, b.address + 1024);
  SAME(rig_driver.reserved, 2 * MIB);
  SAME(rig_driver.segment_calls, 1);
  rig_close();
}
END_TEST

START_TEST(pytorch_takes_20_mib_for_1_to_10_and_rounds_to_2_mib_from_there)
{
  static const struct {
    uint64_t bytes, segment;
  } rows[] = {{MIB, 2 * MIB},
              {MIB + 1, 20 * MIB},
              {10 * MIB - 512, 20 * MIB},
              {10 * MIB - 511, 10 * MIB}, /* rounded to 10 MiB first */
              {10 * MIB, 10 * MIB},
              {10 * MIB + 1, 12 * MIB},
              {25 * MIB, 26 * MIB}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rig_open(&rp_pytorch, (rp_options){0});
    rig_alloc(rows[i].bytes, 0);
    ck_assert_msg(rig_driver.reserved == rows[i].segment, "row %zu: %llu", i,
                  (unsigned long long)rig_driver.reserved);
    rig_close();
  }
}
END_TEST

START_TEST(pytorch_splits_large_blocks_only_where_more_than_1_mib_is_left)
{
  rig_open(&rp_pytorch, (rp_options){0});
  held a = rig_alloc(25 * MIB, 0); /* 26, and 1 left: whole */
  rig_free(a);
  held b = rig_alloc(24 * MIB, 0); /* 2 left: split */
  held c = rig_alloc(2 * MIB, 0);
  SAME(b.address, a.address);
  SAME(c.address, a.address + 24 * MIB);
  SAME(rig_driver.reserved, 26 * MIB);
  rig_free(b);
  rig_free(c); /* one block again */
  SAME(rig_alloc(26 * MIB, 0).address, a.address);
  SAME(rig_driver.segment_calls, 1);
  rig_close();
}
END_TEST

START_TEST(pytorch_takes_the_smallest_block_that_fits_and_the_lowest_of_equals)
{
  rig_open(&rp_pytorch, (rp_options){0});
  held a = rig_alloc(40 * MIB, 0), b = rig_alloc(36 * MIB, 0), c = rig_alloc(36 * MIB, 0);
  held d = rig_alloc(30 * MIB, 0);
  rig_free(d);
  rig_free(c);
  rig_free(b);
  rig_free(a);
  SAME(rig_alloc(36 * MIB, 0).address, b.address);
  SAME(rig_alloc(36 * MIB, 0).address, c.address);
  SAME(rig_alloc(36 * MIB, 0).address, a.address);
  SAME(rig_driver.segment_calls, 4);
  rig_close();
}
END_TEST

START_TEST(pytorch_keeps_streams_apart)
{
  rig_open(&rp_pytorch, (rp_options){0});
  held a = rig_alloc(30 * MIB, 1);
  rig_free(a);
  rig_alloc(30 * MIB, 2);
  SAME(rig_driver.reserved, 60 * MIB);
  SAME(rig_alloc(30 * MIB, 1).address, a.address);
  rig_close();
}
END_TEST

START_TEST(pytorch_waits_with_an_event_for_another_stream)
{
  rig_open(&rp_pytorch, (rp_options){0});
  held a = rig_alloc(30 * MIB, 1);
  rig_free_on(a, 2);
  SAME(rig_driver.events, 1);
  SAME(rig_alloc(30 * MIB, 1).address, a.address); /* its own stream's again */
  SAME(rig_driver.syncs, 0);
  rig_close();
}
END_TEST

START_TEST(pytorch_releases_whole_cached_segments_when_the_device_is_full)
{
  rig_open(&rp_pytorch, (rp_options){.capacity = 64 * MIB});
  rig_free(rig_alloc(40 * MIB, 0));
  rig_alloc(50 * MIB, 0);
  SAME(rig_driver.reserved, 50 * MIB);
  SAME(rig_driver.segment_calls, 4); /* malloc, malloc refused, free, malloc */
  SAME(rig_driver.syncs, 1);
  rig_no_room(20 * MIB, 0);
  rig_alloc(12 * MIB, 0); /* and goes on */
  rig_close();
}
END_TEST

START_TEST(pytorch_cannot_release_a_segment_that_is_partly_used)
{
  rig_open(&rp_pytorch, (rp_options){.capacity = 30 * MIB});
  held a = rig_alloc(2 * MIB, 0); /* of 20 */
  rig_no_room(12 * MIB, 1);
  rig_free(a);
  rig_alloc(12 * MIB, 1);
  SAME(rig_driver.reserved, 12 * MIB);
  rig_close();
}
END_TEST

START_TEST(pytorch_max_split_size_keeps_oversize_blocks_whole)
{
  rig_open(&rp_pytorch, (rp_options){.max_split_size = 32 * MIB});
  held a = rig_alloc(40 * MIB, 0);
  rig_free(a);
  rig_alloc(30 * MIB, 0); /* smaller than the limit: not from the oversize one */
  SAME(rig_driver.reserved, 70 * MIB);
  held c = rig_alloc(32 * MIB, 0); /* within 20 MiB, and not split */
  SAME(c.address, a.address);
  rig_free(c);
  SAME(rig_alloc(40 * MIB, 0).address, a.address);
  held d = rig_alloc(60 * MIB, 0);
  rig_free(d);
  rig_alloc(40 * MIB, 0); /* 60 is 20 too large */
  SAME(rig_driver.reserved, 170 * MIB);
  rig_close();
}
END_TEST

START_TEST(pytorch_max_split_size_gives_back_only_as_much_as_is_needed)
{
  rig_open(&rp_pytorch, (rp_options){.capacity = 200 * MIB, .max_split_size = 32 * MIB});
  held a = rig_alloc(40 * MIB, 0), b = rig_alloc(50 * MIB, 0), c = rig_alloc(60 * MIB, 0);
  rig_free(a);
  rig_free(b);
  rig_free(c);
  rig_alloc(100 * MIB, 0); /* 150 + 100: the largest two make it up */
  SAME(rig_driver.reserved, 140 * MIB);
  SAME(rig_driver.syncs, 2);
  SAME(rig_alloc(40 * MIB, 0).address, a.address);
  rig_close();
}
END_TEST

START_TEST(pytorch_refuses_a_max_split_size_up_to_20_mib)
{
  void *heap = NULL;
  rp_driver d = {.capacity = RP_UNLIMITED};
  ck_assert_int_eq(rp_pytorch.open(&heap, &d, &(rp_options){.max_split_size = 20 * MIB}),
                   WEIR_EINVAL);
}
END_TEST

START_TEST(pytorch_collects_garbage_above_the_threshold)
{
  rig_open(&rp_pytorch, (rp_options){.capacity = 100 * MIB, .gc_threshold = 0.5});
  held a = rig_alloc(30 * MIB, 0), b = rig_alloc(26 * MIB, 0);
  rig_free(a);
  rig_free(b);
  rig_alloc(40 * MIB, 0);
  SAME(rig_driver.reserved, 40 * MIB);
  SAME(rig_driver.syncs, 2);
  rig_close();
}
END_TEST

START_TEST(pytorch_collects_only_what_is_older_than_the_average)
{
  rig_open(&rp_pytorch, (rp_options){.capacity = 200 * MIB, .gc_threshold = 0.38});
  held old = rig_alloc(30 * MIB, 0), young = rig_alloc(26 * MIB, 0);
  rig_free(old);
  rig_free(rig_alloc(22 * MIB, 1)); /* searches age what is free; another's segment, made young */
  rig_free(rig_alloc(22 * MIB, 1));
  rig_free(young);
  rig_alloc(40 * MIB, 0); /* 78 reserved, 76 allowed: the oldest goes */
  SAME(rig_driver.reserved, (26 + 22 + 40) * MIB);
  SAME(rig_alloc(26 * MIB, 0).address, young.address);
  rig_close();
}
END_TEST

/* ---- pytorch-expandable ---------------------------------------------------------------------- */

START_TEST(expandable_grows_one_segment_by_pages)
{
  rig_open(&rp_pytorch_expandable, (rp_options){0});
  held a = rig_alloc(MIB, 0), b = rig_alloc(MIB, 0), c = rig_alloc(MIB, 0);
  SAME(b.address, a.address + MIB);
  SAME(c.address, b.address + MIB);
  SAME(rig_driver.reserved, 4 * MIB);
  SAME(rig_driver.segment_calls, 2);
  held d = rig_alloc(3 * MIB, 0), e = rig_alloc(30 * MIB, 0);
  SAME(e.address, d.address + 3 * MIB); /* 17 were free, and 20 are mapped behind them */
  SAME(rig_driver.reserved, 44 * MIB);
  SAME(rig_driver.segment_calls, 4);
  rig_free(d);
  rig_free(e);
  SAME(rig_alloc(40 * MIB, 0).address, d.address);
  SAME(rig_driver.segment_calls, 4);
  rig_close();
}
END_TEST

START_TEST(expandable_prefers_a_hole_to_the_end_that_can_grow)
{
  rig_open(&rp_pytorch_expandable, (rp_options){0});
  held a = rig_alloc(15 * MIB, 0);
  rig_alloc(3 * MIB, 0);
  rig_alloc(10 * MIB, 0); /* 12 of 40 left at the end */
  rig_free(a);
  SAME(rig_alloc(10 * MIB, 0).address, a.address);
  rig_close();
}
END_TEST

START_TEST(expandable_unmaps_free_whole_pages_when_the_device_is_full)
{
  rig_open(&rp_pytorch_expandable, (rp_options){.capacity = 60 * MIB});
  held a = rig_alloc(3 * MIB, 1), b = rig_alloc(30 * MIB, 1);
  rig_free(b);
  rig_alloc(30 * MIB, 2); /* 40 more, 20 there: the page from 20 to 40 goes */
  SAME(rig_driver.reserved, 60 * MIB);
  SAME(rig_driver.segment_calls, 5);
  SAME(rig_driver.syncs, 1);
  SAME(rig_alloc(17 * MIB, 1).address, a.address + 3 * MIB); /* the rest of the first page */
  rig_no_room(2 * MIB, 1);
  rig_close();
}
END_TEST

START_TEST(expandable_maps_a_gap_again_before_the_end)
{
  rig_open(&rp_pytorch_expandable, (rp_options){.capacity = 80 * MIB});
  held a = rig_alloc(20 * MIB, 1), b = rig_alloc(20 * MIB, 1), c = rig_alloc(20 * MIB, 1);
  rig_free(b);
  held d = rig_alloc(40 * MIB, 2); /* unmaps b's page */
  rig_free(d);
  SAME(rig_alloc(20 * MIB, 1).address, b.address);
  (void)a, (void)c;
  rig_close();
}
END_TEST

START_TEST(expandable_keeps_a_request_larger_than_the_device_out)
{
  rig_open(&rp_pytorch_expandable, (rp_options){.capacity = 40 * MIB});
  rig_no_room(50 * MIB, 0);
  SAME(rig_driver.reserved, 0);
  rig_alloc(40 * MIB, 0);
  rig_close();
}
END_TEST

/* ---- rmm-pool -------------------------------------------------------------------------------- */

START_TEST(rmm_rounds_to_256_bytes_and_doubles_its_pool)
{
  rig_open(&rp_rmm_pool, (rp_options){0});
  rig_alloc(1, 0); /* 256 */
  SAME(rig_driver.reserved, 256);
  rig_alloc(1, 0); /* as much as there is: 256 */
  SAME(rig_driver.reserved, 512);
  rig_alloc(1, 0); /* 512, 256 of them left */
  SAME(rig_driver.reserved, 1024);
  rig_alloc(257 - 1, 0);
  SAME(rig_driver.reserved, 1024);
  SAME(rig_driver.segment_calls, 3);
  rig_close();
}
END_TEST

START_TEST(rmm_takes_the_best_fit_of_its_own_stream)
{
  rig_open(&rp_rmm_pool, (rp_options){.initial_pool_size = MIB});
  held a = rig_alloc(8 * KIB, 0), wall = rig_alloc(256, 0), b = rig_alloc(4 * KIB, 0);
  held wall2 = rig_alloc(256, 0);
  SAME(wall.address, a.address + 8 * KIB);
  rig_free(a);
  rig_free(b);
  SAME(rig_alloc(3 * KIB, 0).address, b.address); /* 4 KiB fits better than 8 and the rest */
  SAME(rig_driver.segment_calls, 1);
  SAME(rig_driver.events, 2);
  SAME(rig_driver.stream_waits, 0);
  rig_free(wall);
  rig_free(wall2);
  rig_close();
}
END_TEST

START_TEST(rmm_takes_another_streams_block_with_a_wait_and_leaves_the_rest_there)
{
  rig_open(&rp_rmm_pool, (rp_options){.initial_pool_size = 64 * KIB});
  held a = rig_alloc(KIB, 5); /* of the default stream's list */
  SAME(rig_driver.stream_waits, 1);
  held b = rig_alloc(KIB, 5);
  SAME(b.address, a.address + KIB);
  SAME(rig_driver.stream_waits, 2);
  SAME(rig_alloc(KIB, 0).address, b.address + KIB); /* the default stream has kept the rest */
  SAME(rig_driver.stream_waits, 2);
  rig_free_on(a, 7); /* last used on 7: into its list */
  SAME(rig_alloc(KIB, 7).address, a.address);
  SAME(rig_driver.stream_waits, 2);
  rig_close();
}
END_TEST

START_TEST(rmm_merges_lists_until_a_block_fits_before_it_grows)
{
  rig_open(&rp_rmm_pool, (rp_options){.initial_pool_size = 8 * KIB});
  held a = rig_alloc(4 * KIB, 1), b = rig_alloc(4 * KIB, 2);
  SAME(b.address, a.address + 4 * KIB);
  SAME(rig_driver.stream_waits, 2);
  rig_free(a);
  rig_free(b);
  SAME(rig_alloc(8 * KIB, 3).address, a.address);
  SAME(rig_driver.stream_waits, 5); /* also for the default stream's list, which is empty */
  SAME(rig_driver.reserved, 8 * KIB);
  rig_close();
}
END_TEST

START_TEST(rmm_joins_nothing_across_upstream_allocations)
{
  for (int first = 0; first < 2; first++) {
    rig_open(&rp_rmm_pool, (rp_options){0});
    held a = rig_alloc(2 * MIB, 0), b = rig_alloc(2 * MIB, 0);
    SAME(b.address, a.address + 2 * MIB); /* neighbours, and of two allocations */
    rig_free(first ? b : a);
    rig_free(first ? a : b);
    rig_alloc(4 * MIB, 0);
    SAME(rig_driver.reserved, 8 * MIB);
    rig_close();
  }
}
END_TEST

START_TEST(rmm_grows_by_half_of_what_is_left_to_its_maximum)
{
  rig_open(&rp_rmm_pool, (rp_options){.maximum_pool_size = 10 * MIB});
  rig_alloc(MIB, 0);
  SAME(rig_driver.reserved, 5 * MIB);
  rig_no_room(6 * MIB, 0);
  rig_alloc(5 * MIB, 0);
  SAME(rig_driver.reserved, 10 * MIB);
  rig_alloc(4 * MIB, 0);
  rig_no_room(256, 0);
  rig_close();
}
END_TEST

START_TEST(rmm_asks_for_half_when_the_driver_refuses)
{
  rig_open(&rp_rmm_pool, (rp_options){.capacity = 10 * MIB});
  rig_alloc(4 * MIB, 0);
  rig_alloc(3 * MIB, 0); /* 4 more, 1 left */
  rig_alloc(2 * MIB, 0); /* 8 refused, 4 refused, 2 */
  SAME(rig_driver.reserved, 10 * MIB);
  SAME(rig_driver.segment_calls, 5);
  rig_close();
}
END_TEST

START_TEST(rmm_refuses_an_initial_pool_that_does_not_fit)
{
  void *heap = NULL;
  rp_driver d = {.capacity = MIB};
  ck_assert_int_eq(rp_rmm_pool.open(&heap, &d, &(rp_options){.initial_pool_size = 2 * MIB}),
                   WEIR_EOOM);
  rp_options o = {.initial_pool_size = MIB, .maximum_pool_size = 256};
  ck_assert_int_eq(rp_rmm_pool.open(&heap, &d, &o), WEIR_EINVAL);
}
END_TEST

/* ---- malloc ---------------------------------------------------------------------------------- */

START_TEST(malloc_shares_pages_below_1_mib_and_gives_empty_ones_back)
{
  rig_open(&rp_malloc, (rp_options){0});
  held a = rig_alloc(1, 0), b = rig_alloc(1, 3);
  SAME(b.address, a.address + 512);
  SAME(rig_driver.reserved, 2 * MIB);
  held c = rig_alloc(MIB + 1, 0);
  SAME(rig_driver.reserved, 4 * MIB);
  rig_free(c);
  rig_free(a);
  SAME(rig_driver.reserved, 2 * MIB);
  rig_free(b);
  SAME(rig_driver.reserved, 0);
  SAME(rig_driver.segment_calls, 6);
  SAME(rig_driver.syncs, 3);
  rig_close();
}
END_TEST

START_TEST(malloc_fills_the_smallest_hole)
{
  rig_open(&rp_malloc, (rp_options){0});
  held a = rig_alloc(4096, 0);
  rig_alloc(512, 0);
  held b = rig_alloc(1024, 0);
  rig_alloc(512, 0);
  rig_free(a);
  rig_free(b);
  SAME(rig_alloc(500, 0).address, b.address);
  SAME(rig_alloc(512, 0).address, b.address + 512);
  SAME(rig_alloc(512, 0).address, a.address);
  rig_close();
}
END_TEST

/* ---- every policy ---------------------------------------------------------------------------- */

typedef struct span {
  uint64_t address, bytes;
} span;

static void check_apart(const span *live, size_t count, span new_one)
{
  for (size_t i = 0; i < count;
       i++) /* not an assertion each: Check writes to a pipe for every one */
    if (live[i].bytes && live[i].address < new_one.address + new_one.bytes &&
        new_one.address < live[i].address + live[i].bytes)
      ck_abort_msg("a byte is handed out twice");
}

/* Runs a list by hand: no two live blocks share a byte, and no more is held than there is. */
static void run_checked(const rp_policy *policy, const rp_ops *ops, rp_options options)
{
  rp_driver d = {.capacity = options.capacity ? options.capacity : RP_UNLIMITED};
  void *heap = NULL, **block = calloc(ops->blocks, sizeof *block);
  span *live = calloc(ops->blocks, sizeof *live);
  uint64_t held_bytes = 0, failed = 0;
  ck_assert_ptr_nonnull(block);
  ck_assert_ptr_nonnull(live);
  ck_assert_int_eq(policy->open(&heap, &d, &options), WEIR_OK);
  for (size_t i = 0; i < ops->count; i++) {
    const rp_op *op = &ops->op[i];
    span *one = &live[op->block];
    if (op->kind == RP_FREE) {
      if (!one->bytes) continue;
      ck_assert_int_eq(policy->free(heap, op, block[op->block]), WEIR_OK);
      held_bytes -= one->bytes;
      *one = (span){0, 0};
      continue;
    }
    span given = {.bytes = op->bytes};
    weir_status s = policy->alloc(heap, op, &block[op->block], &given.address);
    ck_assert(s == WEIR_OK || (s == WEIR_EOOM && options.capacity));
    ck_assert_uint_le(d.reserved, d.capacity);
    failed += s == WEIR_EOOM;
    if (s) continue;
    check_apart(live, ops->blocks, given);
    *one = given;
    held_bytes += given.bytes;
    ck_assert_uint_le(held_bytes, d.reserved);
  }
  ck_assert(!options.capacity || failed < ops->count / 4);
  policy->close(heap);
  free(block);
  free(live);
}

START_TEST(every_policy_keeps_blocks_apart)
{
  const rp_options options[] = {{0},
                                {.capacity = 600 * MIB},
                                {.capacity = 900 * MIB, .max_split_size = 32 * MIB},
                                {.capacity = 900 * MIB, .gc_threshold = 0.6},
                                {.capacity = 700 * MIB, .maximum_pool_size = 700 * MIB}};
  for (const rp_policy *const *p = rp_policies; *p; p++)
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
      rp_ops ops = {0};
      rig_random(&ops, 17 + i, 4000, 1 + (unsigned)i, 1);
      run_checked(*p, &ops, options[i]);
      rp_ops_clear(&ops);
    }
}
END_TEST

START_TEST(every_policy_is_found_by_its_name_and_no_other)
{
  for (const rp_policy *const *p = rp_policies; *p; p++)
    ck_assert_ptr_eq(rp_policy_find((*p)->name), *p);
  ck_assert_ptr_null(rp_policy_find("all"));
  ck_assert_ptr_null(rp_policy_find(""));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("replay/policies");
  TCase *c = tcase_create("policies");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, pytorch_rounds_to_512_bytes_within_segments_of_2_mib);
  tcase_add_test(c, pytorch_takes_20_mib_for_1_to_10_and_rounds_to_2_mib_from_there);
  tcase_add_test(c, pytorch_splits_large_blocks_only_where_more_than_1_mib_is_left);
  tcase_add_test(c, pytorch_takes_the_smallest_block_that_fits_and_the_lowest_of_equals);
  tcase_add_test(c, pytorch_keeps_streams_apart);
  tcase_add_test(c, pytorch_waits_with_an_event_for_another_stream);
  tcase_add_test(c, pytorch_releases_whole_cached_segments_when_the_device_is_full);
  tcase_add_test(c, pytorch_cannot_release_a_segment_that_is_partly_used);
  tcase_add_test(c, pytorch_max_split_size_keeps_oversize_blocks_whole);
  tcase_add_test(c, pytorch_max_split_size_gives_back_only_as_much_as_is_needed);
  tcase_add_test(c, pytorch_refuses_a_max_split_size_up_to_20_mib);
  tcase_add_test(c, pytorch_collects_garbage_above_the_threshold);
  tcase_add_test(c, pytorch_collects_only_what_is_older_than_the_average);
  tcase_add_test(c, expandable_grows_one_segment_by_pages);
  tcase_add_test(c, expandable_prefers_a_hole_to_the_end_that_can_grow);
  tcase_add_test(c, expandable_unmaps_free_whole_pages_when_the_device_is_full);
  tcase_add_test(c, expandable_maps_a_gap_again_before_the_end);
  tcase_add_test(c, expandable_keeps_a_request_larger_than_the_device_out);
  tcase_add_test(c, rmm_rounds_to_256_bytes_and_doubles_its_pool);
  tcase_add_test(c, rmm_takes_the_best_fit_of_its_own_stream);
  tcase_add_test(c, rmm_takes_another_streams_block_with_a_wait_and_leaves_the_rest_there);
  tcase_add_test(c, rmm_merges_lists_until_a_block_fits_before_it_grows);
  tcase_add_test(c, rmm_joins_nothing_across_upstream_allocations);
  tcase_add_test(c, rmm_grows_by_half_of_what_is_left_to_its_maximum);
  tcase_add_test(c, rmm_asks_for_half_when_the_driver_refuses);
  tcase_add_test(c, rmm_refuses_an_initial_pool_that_does_not_fit);
  tcase_add_test(c, malloc_shares_pages_below_1_mib_and_gives_empty_ones_back);
  tcase_add_test(c, malloc_fills_the_smallest_hole);
  tcase_add_test(c, every_policy_keeps_blocks_apart);
  tcase_add_test(c, every_policy_is_found_by_its_name_and_no_other);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
