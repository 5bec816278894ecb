/* test_host_cache.c: large blocks of host memory are used again, for their size, within a bound. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/compiler.h"
#include "core/tensor/host_cache.h"
#include "tests/tensor/rig.h"

/* Nothing is kept where a tool watches memory. */
static bool is_kept(void)
{
  const char *preload = getenv("LD_PRELOAD");
  return !WEIR_ASAN && !(preload && strstr(preload, "vgpreload"));
}

static weir_host_cache_stats host_stats(void)
{
  weir_host_cache_stats s;
  weir_ok(weir_host_cache_get_stats(&s));
  return s;
}

static weir_tensor *bytes_on_host(uint64_t bytes)
{
  weir_tensor *t;
  weir_options o = as(WEIR_UINT8, cpu);
  weir_ok(weir_empty(&t, weir_shape((int64_t)bytes), &o));
  return t;
}

START_TEST(a_large_block_is_used_again_for_its_size)
{
  weir_tensor *t = bytes_on_host(5 * MIB);
  const void *data = weir_tensor_data(t);
  weir_ok(weir_zero_(t));
  weir_tensor_release(t);
  if (!is_kept()) {
    ck_assert_uint_eq(host_stats().kept_bytes, 0);
    return;
  }
  weir_host_cache_stats before = host_stats();
  ck_assert_uint_ge(before.kept_bytes, 5 * MIB);
  weir_tensor *other = bytes_on_host(9 * MIB);
  ck_assert_uint_eq(host_stats().hits, before.hits);
  ck_assert_uint_eq(host_stats().misses, before.misses + 1);
  weir_tensor *again = bytes_on_host(5 * MIB + 4096); /* the same whole grains */
  ck_assert_ptr_eq(weir_tensor_data(again), data);
  ck_assert_uint_eq(host_stats().hits, before.hits + 1);
  ck_assert_uint_eq(host_stats().kept_bytes, 0);
  weir_tensor_release(other);
  weir_tensor_release(again);
  ck_assert_uint_ge(host_stats().kept_bytes, 14 * MIB);
  weir_ok(weir_host_cache_empty());
  ck_assert_uint_eq(host_stats().kept_bytes, 0);
  ck_assert_uint_eq(host_stats().released, before.released + 2);
}
END_TEST

/* A program's results of 1e6 bytes cost no page faults after the first. */
START_TEST(a_block_is_used_again_with_less_than_an_eighth_more)
{
  for (uint64_t bytes = HOST_BLOCK_LEAST; bytes < 9 * MIB; bytes += bytes / 3) {
    weir_ok(weir_host_cache_empty());
    weir_tensor_release(bytes_on_host(bytes));
    uint64_t kept = host_stats().kept_bytes;
    ck_assert(!is_kept() || (kept >= bytes && kept <= bytes + bytes / 8 + 4096));
    weir_host_cache_stats before = host_stats();
    weir_tensor_release(bytes_on_host(bytes));
    if (is_kept()) ck_assert_uint_eq(host_stats().hits, before.hits + 1);
  }
}
END_TEST

START_TEST(small_blocks_are_the_c_librarys)
{
  weir_host_cache_stats before = host_stats();
  weir_tensor_release(bytes_on_host(HOST_BLOCK_LEAST - 1));
  ck_assert_mem_eq(&before, &(weir_host_cache_stats){0}, sizeof before);
  ck_assert_uint_eq(host_stats().misses, 0);
}
END_TEST

START_TEST(no_more_is_kept_than_the_limit)
{
  weir_tensor *t[4];
  weir_ok(weir_host_cache_set_limit(16 * MIB));
  for (int i = 0; i < 4; i++)
    t[i] = bytes_on_host((uint64_t)(5 + i) * MIB);
  for (int i = 0; i < 4; i++) {
    weir_tensor_release(t[i]);
    ck_assert_uint_le(host_stats().kept_bytes, 16 * MIB);
  }
  if (is_kept()) ck_assert_uint_ge(host_stats().kept_bytes, 8 * MIB); /* the newest */
  weir_tensor_release(bytes_on_host(20 * MIB));
  ck_assert_uint_le(host_stats().kept_bytes, 16 * MIB);
  weir_ok(weir_host_cache_set_limit(0));
  ck_assert_uint_eq(host_stats().kept_bytes, 0);
  weir_tensor_release(bytes_on_host(5 * MIB));
  ck_assert_uint_eq(host_stats().kept_bytes, 0);
}
END_TEST

START_TEST(what_is_not_used_is_given_back_in_time)
{
  weir_tensor_release(bytes_on_host(6 * MIB));
  for (int i = 0; i < 1100; i++)
    weir_tensor_release(bytes_on_host(5 * MIB));
  ck_assert_uint_lt(host_stats().kept_bytes, 6 * MIB);
  if (is_kept()) ck_assert_uint_eq(host_stats().released, 1);
}
END_TEST

static void *take_and_give(void *unused)
{
  for (int i = 0; i < 400; i++) {
    uint64_t bytes = (uint64_t)(4 + i % 3) * (i % 2 ? MIB : 10 << 10);
    char *block = host_block_take(bytes);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % 4096, 0);
    block[0] = block[bytes - 1] = (char)i; /* nobody else has it */
    ck_assert_int_eq(block[0], (char)i);
    host_block_give(block, bytes);
  }
  return unused;
}

START_TEST(threads_never_have_the_same_block)
{
  pthread_t threads[4];
  weir_ok(weir_host_cache_set_limit(20 * MIB));
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_le(host_stats().kept_bytes, 20 * MIB);
  ck_assert_uint_eq(host_stats().hits + host_stats().misses, 1600);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_large_block_is_used_again_for_its_size,
                                a_block_is_used_again_with_less_than_an_eighth_more,
                                small_blocks_are_the_c_librarys,
                                no_more_is_kept_than_the_limit,
                                what_is_not_used_is_given_back_in_time,
                                threads_never_have_the_same_block,
                                NULL};
  return rig_run("tensor/host_cache", tests, 1);
}
