/* test_pinned.c: pinned host memory: sizes, chunks, gating by recorded work, budgets, flags, fork.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/memory/devices.h"
#include "core/base/host_memory.h"
#include "core/memory/host.h"
#include "core/weir.h"
#include "tests/memory/rig.h"

static fake f[2];
static const weir_device cuda[2] = {WEIR_CUDA_INIT(0), WEIR_CUDA_INIT(1)};

static void attach(int i, const char *conf)
{
  fake_init(&f[i], 256 * MIB, 2 * MIB);
  f[i].backend.index = i;
  ck_assert_msg(weir_memory_attach(&f[i].backend, conf) == WEIR_OK, "%s", weir_error_message());
}

static void detach(int i)
{
  ck_assert_msg(weir_memory_detach(cuda[i]) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f[i]));
  fake_fini(&f[i]);
  if (i == 0) ck_assert_uint_eq(host_pool_locked(), 0);
}

static void *get_flags(size_t bytes, unsigned flags)
{
  void *out = NULL;
  ck_assert_msg(weir_pinned_malloc_flags(&out, bytes, cuda[0], flags) == WEIR_OK, "%s",
                weir_error_message());
  return out;
}

static mem_pool *pool_of(void *ptr)
{
  return heap_table[block(page_map_find((uint64_t)ptr))->heap]->pool;
}

static void check_block_pool(void *ptr)
{
  const char *wrong = pool_check(pool_of(ptr));
  ck_assert_msg(!wrong, "%s", wrong);
}

static void *allocate_pinned_checked(size_t bytes)
{
  void *out = get_flags(bytes, 0);
  check_block_pool(out);
  return out;
}

static void free_pinned(void *ptr)
{
  ck_assert_msg(weir_pinned_free(ptr) == WEIR_OK, "%s", weir_error_message());
}

static int64_t figure(const char *name)
{
  int64_t value = -1;
  ck_assert_msg(weir_pinned_stat(&value, name) == WEIR_OK, "%s", weir_error_message());
  return value;
}

/* The chunks of its pool: without the list of pools, which whoever empties them holds. */
static int64_t chunks_of(void *ptr)
{
  weir_memory_stats all;
  mem_pool *p = pool_of(ptr);
  pthread_mutex_lock(&p->lock);
  pool_stats(p, &all);
  pthread_mutex_unlock(&p->lock);
  return all.segment;
}

static weir_stream *stream(int device, int i)
{
  weir_stream *s;
  ck_assert_int_eq(weir_stream_from_native(&s, cuda[device], fake_handle(&f[device], i)), WEIR_OK);
  return s;
}

static void record_stream_use(void *ptr, int device, int i)
{
  ck_assert_msg(weir_record_stream(ptr, stream(device, i)) == WEIR_OK, "%s", weir_error_message());
}

/* Work on stream i that is not complete before the stream is let go. */
static void keep_busy(int device, int i)
{
  fake_hold(&f[device], i);
  fake_submit(&f[device], i, nothing, NULL);
}

static void empty_pinned_cache(void)
{
  ck_assert_msg(weir_pinned_empty_cache() == WEIR_OK, "%s", weir_error_message());
}

/* ---- sizes and chunks ------------------------------------------------------------------------ */

START_TEST(without_a_device_there_is_no_pinned_memory)
{
  void *out = f;
  weir_device none = WEIR_CUDA_AT(WEIR_DEVICES - 1); /* whatever this machine has */
  ck_assert_int_ne(weir_pinned_malloc_flags(&out, 8, none, 0), WEIR_OK);
  ck_assert_msg(strstr(weir_error_message(), "CUDA") || strstr(weir_error_message(), "device"),
                "%s", weir_error_message());
  ck_assert_int_eq(weir_pinned_malloc_flags(&out, 8, WEIR_CPU, 0), WEIR_EINVAL);
  bool is = true;
  ck_assert_int_eq(weir_is_pinned(&is, f), WEIR_OK);
  ck_assert(!is);
}
END_TEST

START_TEST(nothing_is_null_and_freeing_null_is_nothing)
{
  attach(0, NULL);
  void *out = f;
  ck_assert_int_eq(weir_pinned_malloc(&out, 0), WEIR_OK);
  ck_assert_ptr_null(out);
  ck_assert_int_eq(weir_pinned_free(NULL), WEIR_OK);
  ck_assert_int_eq(weir_pinned_malloc_flags(&out, 8, cuda[0], 8), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "write-combined 4"));
  detach(0);
}
END_TEST

START_TEST(a_block_lies_in_one_registration)
{
  attach(0, NULL);
  uint64_t seed = 3;
  void *at[200];
  for (int i = 0; i < 200; i++) {
    size_t bytes = 1 + rig_random(&seed) % (i % 10 ? 300 * KIB : 5 * MIB);
    at[i] = allocate_pinned_checked(bytes);
    ck_assert_uint_eq((uint64_t)at[i] % 512, 0);
    ck_assert(fake_pinned(&f[0], at[i], bytes));
    memset(at[i], i, bytes);
  }
  for (int i = 0; i < 200; i++) {
    ck_assert_int_eq(*(unsigned char *)at[i], i);
    free_pinned(at[i]);
  }
  detach(0);
}
END_TEST

START_TEST(sizes_waste_at_most_an_eighth_and_nothing_from_64_mib)
{
  attach(0, "pinned_ahead:off");
  for (size_t bytes = 512; bytes < 40 * MIB; bytes += bytes / 5 + 77) {
    void *at = allocate_pinned_checked(bytes);
    uint64_t given = (uint64_t)figure("active_bytes.current");
    ck_assert_msg(given >= bytes && (given - bytes) * 8 <= bytes + 8 * 512, "%zu got %llu", bytes,
                  (unsigned long long)given);
    free_pinned(at);
  }
  empty_pinned_cache();
  void *at = allocate_pinned_checked(64 * MIB + 4097);
  ck_assert_int_eq(figure("active_bytes.current"), 64 * MIB + 8192);
  ck_assert_int_eq(figure("allocated_bytes.current"), 64 * MIB + 8192);
  free_pinned(at);
  detach(0);
}
END_TEST

START_TEST(a_size_is_served_again_from_the_thread)
{
  attach(0, "pinned_ahead:off");
  void *at = allocate_pinned_checked(70000);
  free_pinned(at);
  int64_t before = (int64_t)f[0].calls;
  for (int i = 0; i < 1000; i++) {
    void *again = get_flags(66000 + (size_t)i, 0);
    ck_assert_ptr_eq(again, at);
    free_pinned(again);
  }
  ck_assert_int_eq((int64_t)f[0].calls, before);
  detach(0);
}
END_TEST

START_TEST(all_freed_memory_becomes_whole_again_and_goes_back)
{
  attach(0, NULL);
  uint64_t seed = 9;
  void *at[300];
  for (int i = 0; i < 300; i++)
    at[i] = allocate_pinned_checked(1 + rig_random(&seed) % (100 * KIB));
  for (int i = 0; i < 300; i += 2)
    free_pinned(at[i]);
  for (int i = 1; i < 300; i += 2)
    free_pinned(at[i]);
  ck_assert_int_eq(figure("active_bytes.current"), 0);
  empty_pinned_cache();
  empty_pinned_cache(); /* what was made ahead meanwhile */
  ck_assert_int_eq(figure("requested_bytes.current"), 0);
  detach(0);
}
END_TEST

START_TEST(a_small_request_leaves_a_large_idle_chunk_alone)
{
  attach(0, "pinned_ahead:off");
  void *large = allocate_pinned_checked(48 * MIB);
  free_pinned(large);
  void *small = allocate_pinned_checked(1000);
  ck_assert(small < large || (char *)small >= (char *)large + 48 * MIB);
  empty_pinned_cache();
  ck_assert_int_eq(figure("allocated_bytes.current"), 2 * MIB);
  free_pinned(small);
  empty_pinned_cache();
  free_pinned(allocate_pinned_checked(48 * MIB)); /* but before an error it is cut */
  f[0].pinned_capacity = f[0].pinned_bytes;
  large = allocate_pinned_checked(40 * MIB);
  small = allocate_pinned_checked(1000);
  ck_assert_int_eq(figure("allocations.current"), 1);
  f[0].pinned_capacity = 0;
  free_pinned(small);
  free_pinned(large);
  detach(0);
}
END_TEST

START_TEST(interior_pointers_are_pinned)
{
  attach(0, NULL);
  char *at = allocate_pinned_checked(3 * MIB);
  bool is = false;
  ck_assert_int_eq(weir_is_pinned(&is, at), WEIR_OK);
  ck_assert(is);
  ck_assert_int_eq(weir_is_pinned(&is, at + 3 * MIB - 1), WEIR_OK);
  ck_assert(is);
  ck_assert_int_eq(weir_is_pinned(&is, &is), WEIR_OK);
  ck_assert(!is);
  ck_assert_int_eq(weir_is_pinned(&is, NULL), WEIR_OK);
  ck_assert(!is);
  void *other;
  ck_assert_int_eq(f[0].backend.source.host_alloc(&f[0], 4096, 0, &other), WEIR_OK);
  ck_assert_int_eq(weir_is_pinned(&is, other), WEIR_OK);
  ck_assert(is); /* the backend knows */
  ck_assert_int_eq(f[0].backend.source.host_free(&f[0], other, 4096), WEIR_OK);
  free_pinned(at);
  detach(0);
}
END_TEST

START_TEST(each_kind_of_memory_is_freed_by_its_own_function)
{
  attach(0, NULL);
  void *host = allocate_pinned_checked(1000), *device;
  ck_assert_int_eq(weir_malloc(&device, 1000, cuda[0], NULL), WEIR_OK);
  ck_assert_int_eq(weir_free(host), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "weir_pinned_free"));
  ck_assert_int_eq(weir_pinned_free(device), WEIR_EINVAL);
  ck_assert_int_eq(weir_pinned_free((char *)host + 512), WEIR_EINVAL);
  ck_assert_int_eq(weir_free(device), WEIR_OK);
  free_pinned(host);
  ck_assert_int_eq(weir_pinned_free(host), WEIR_EINVAL);
  detach(0);
}
END_TEST

/* ---- recorded work --------------------------------------------------------------------------- */

/* Whether a request of the size gets the address; takes all other memory there is. */
static bool comes_back(void *old, size_t bytes)
{
  void *at[64];
  bool found = false;
  int n = 0;
  while (n < 64 && !found && !weir_pinned_malloc(&at[n], bytes))
    found = at[n++] == old;
  while (n)
    free_pinned(at[--n]);
  return found;
}

START_TEST(memory_in_use_by_recorded_work_is_not_handed_out)
{
  attach(0, "pinned_ahead:off,pinned_limit_mb:8");
  attach(1, NULL);
  size_t bytes = _i ? 1000 * KIB : 1500 * KIB;
  void *at = allocate_pinned_checked(bytes);
  keep_busy(0, 1);
  keep_busy(0, 2);
  keep_busy(1, 3);
  record_stream_use(at, 0, 1);
  record_stream_use(at, 0, 2);
  record_stream_use(at, 0, 2);
  record_stream_use(at, 1, 3);
  free_pinned(at);
  f[0].syncs = f[1].syncs = 0;
  for (int left = 3; left; left--) {
    ck_assert_int_gt(figure("pending_bytes.current"), 0);
    void *other = allocate_pinned_checked(bytes); /* without a wait: there is room */
    ck_assert_ptr_ne(other, at);
    free_pinned(other);
    fake_release(&f[left == 1], left == 1 ? 3 : 4 - left - 0);
    if (left == 3) ck_assert(!f[0].streams[1].held);
  }
  ck_assert_uint_eq(f[0].syncs + f[1].syncs, 0);
  ck_assert(comes_back(at, bytes));
  ck_assert_int_eq(figure("pending_bytes.current"), 0);
  ck_assert_int_eq(weir_pinned_set_limit(0), WEIR_OK);
  detach(1);
  detach(0);
}
END_TEST

START_TEST(before_an_error_recorded_work_is_waited_for)
{
  attach(0, "pinned_ahead:off,pinned_limit_mb:4");
  void *at = allocate_pinned_checked(3 * MIB);
  keep_busy(0, 1);
  record_stream_use(at, 0, 1);
  free_pinned(at);
  uint64_t syncs = f[0].syncs;
  void *again = allocate_pinned_checked(3 * MIB);
  ck_assert_ptr_eq(again, at);
  ck_assert_uint_eq(f[0].syncs, syncs + 1);
  free_pinned(again);
  ck_assert_int_eq(weir_pinned_set_limit(0), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(work_recorded_in_a_capture_keeps_memory_until_it_ends)
{
  attach(0, "pinned_ahead:off,pinned_limit_mb:8");
  void *at = allocate_pinned_checked(3 * MIB);
  f[0].streams[1].capturing = true;
  record_stream_use(at, 0, 1);
  free_pinned(at);
  ck_assert(!comes_back(at, 3 * MIB));
  f[0].streams[1].capturing = false;
  ck_assert(comes_back(at, 3 * MIB));
  ck_assert_int_eq(weir_pinned_set_limit(0), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(a_released_stream_holds_what_it_used_until_it_is_through)
{
  attach(0, "pinned_ahead:off,pinned_limit_mb:8");
  void *at = allocate_pinned_checked(3 * MIB);
  keep_busy(0, 1);
  record_stream_use(at, 0, 1);
  ck_assert_int_eq(weir_stream_release(stream(0, 1)), WEIR_OK);
  free_pinned(at);
  void *other = allocate_pinned_checked(3 * MIB);
  ck_assert_ptr_ne(other, at);
  free_pinned(other);
  ck_assert_int_gt(figure("pending_bytes.current"), 0);
  fake_release(&f[0], 1);
  ck_assert(comes_back(at, 3 * MIB));
  ck_assert_int_eq(weir_pinned_set_limit(0), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(a_device_may_end_before_memory_that_it_used)
{
  attach(0, NULL);
  attach(1, NULL);
  void *live = allocate_pinned_checked(1000), *freed = allocate_pinned_checked(3 * MIB);
  record_stream_use(live, 1, 1);
  record_stream_use(live, 0, 1);
  record_stream_use(freed, 1, 2);
  keep_busy(1, 2);
  free_pinned(freed);
  detach(1); /* waits for its work */
  attach(1, NULL);
  free_pinned(live);
  fake_release(&f[1], 2);
  detach(1);
  empty_pinned_cache();
  detach(0);
}
END_TEST

START_TEST(a_device_with_live_pinned_memory_stays)
{
  attach(0, NULL);
  void *at = allocate_pinned_checked(1000), *flagged = get_flags(1000, WEIR_PINNED_PORTABLE);
  ck_assert_int_eq(weir_memory_detach(cuda[0]), WEIR_EINVAL);
  free_pinned(at);
  ck_assert_int_eq(weir_memory_detach(cuda[0]), WEIR_EINVAL);
  free_pinned(allocate_pinned_checked(5000)); /* and serves on */
  free_pinned(flagged);
  detach(0);
}
END_TEST

/* ---- flags and ways -------------------------------------------------------------------------- */

START_TEST(write_combined_memory_is_the_devices_own_and_apart)
{
  attach(0, NULL);
  void *plain = allocate_pinned_checked(1000),
       *combined = get_flags(1000, WEIR_PINNED_WRITE_COMBINED);
  ck_assert_ptr_ne(pool_of(plain), pool_of(combined));
  free_pinned(combined);
  void *more[100];
  for (int i = 0; i < 100; i++) {
    more[i] = allocate_pinned_checked(1000);
    ck_assert_ptr_ne(more[i], combined);
  }
  bool is = false;
  ck_assert_int_eq(weir_is_pinned(&is, combined), WEIR_OK);
  ck_assert(is);
  for (int i = 0; i < 100; i++)
    free_pinned(more[i]);
  free_pinned(plain);
  detach(0);
}
END_TEST

START_TEST(each_set_of_flags_reaches_the_device)
{
  attach(0, "pinned_ahead:off");
  for (unsigned flags = 0; flags < 8; flags++) {
    void *at = get_flags(1000, flags);
    const fake_range *r = &f[0].pinned[f[0].pinned_count - 1];
    ck_assert_uint_eq(r->flags, flags);
    ck_assert_int_eq(r->made, (flags & WEIR_PINNED_WRITE_COMBINED) != 0);
    free_pinned(at);
  }
  detach(0);
}
END_TEST

START_TEST(a_device_without_registration_makes_the_memory)
{
  fake_init(&f[0], 256 * MIB, 0);
  if (!_i) f[0].backend.source.host_register = NULL;
  ck_assert_int_eq(weir_memory_attach(&f[0].backend, _i ? "pinned_use_cuda_host_register:off" : ""),
                   WEIR_OK);
  void *at = allocate_pinned_checked(100 * KIB);
  ck_assert(f[0].pinned[0].made);
  memset(at, 1, 100 * KIB);
  free_pinned(at);
  detach(0);
}
END_TEST

START_TEST(what_a_device_cannot_is_said)
{
  void *out;
  fake_init(&f[0], 256 * MIB, 0);
  f[0].backend.source.host_alloc = NULL;
  ck_assert_int_eq(weir_memory_attach(&f[0].backend, NULL), WEIR_OK);
  ck_assert_int_eq(weir_pinned_malloc_flags(&out, 8, cuda[0], WEIR_PINNED_WRITE_COMBINED),
                   WEIR_ENOTSUP);
  free_pinned(allocate_pinned_checked(8));
  detach(0);
  fake_init(&f[0], 256 * MIB, 0);
  f[0].backend.source.host_alloc = NULL;
  f[0].backend.source.host_register = NULL;
  ck_assert_int_eq(weir_memory_attach(&f[0].backend, NULL), WEIR_OK);
  ck_assert_int_eq(weir_pinned_malloc(&out, 8), WEIR_ENOTSUP);
  detach(0);
}
END_TEST

/* ---- the background -------------------------------------------------------------------------- */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static int gate_passed, gate_open; /* registrations that came, and that may go on */

static void gate(fake *at, uint64_t bytes)
{
  (void)at;
  (void)bytes;
  pthread_mutex_lock(&gate_lock);
  int mine = ++gate_passed;
  pthread_cond_broadcast(&gate_moved);
  while (gate_open < mine)
    pthread_cond_wait(&gate_moved, &gate_lock);
  pthread_mutex_unlock(&gate_lock);
}

static void gate_wait(int passed)
{
  pthread_mutex_lock(&gate_lock);
  while (gate_passed < passed)
    pthread_cond_wait(&gate_moved, &gate_lock);
  pthread_mutex_unlock(&gate_lock);
}

static void gate_set(int open)
{
  pthread_mutex_lock(&gate_lock);
  gate_open = open;
  pthread_cond_broadcast(&gate_moved);
  pthread_mutex_unlock(&gate_lock);
}

static void *take_the_rest(void *bytes)
{
  return get_flags(*(size_t *)bytes, 0);
}

START_TEST(the_first_chunk_serves_while_the_next_is_registered)
{
  attach(0, NULL);
  gate_passed = 0;
  gate_open = 1;
  f[0].on_register = gate;
  void *first = allocate_pinned_checked(1 * MIB); /* and the next chunk is held at the gate */
  gate_wait(2);
  void *small = allocate_pinned_checked(1000); /* from the first chunk */
  ck_assert_uint_eq(f[0].registrations, 1);
  size_t bytes = 2 * MIB;
  pthread_t other;
  ck_assert_int_eq(pthread_create(&other, NULL, take_the_rest, &bytes), 0);
  free_pinned(allocate_pinned_checked(1000)); /* nobody holds a lock meanwhile */
  if (_i) {                                   /* it fails: who waits tries itself */
    fake_fail(&f[0], 1, false, WEIR_EOOM);
    gate_set(2);
    gate_wait(3);
  }
  gate_set(1 << 20);
  void *large;
  ck_assert_int_eq(pthread_join(other, &large), 0);
  ck_assert(fake_pinned(&f[0], large, bytes));
  free_pinned(large);
  free_pinned(small);
  free_pinned(first);
  detach(0);
}
END_TEST

static void *empty_all(void *unused)
{
  empty_pinned_cache();
  return unused;
}

START_TEST(nobody_waits_while_chunks_are_unlocked)
{
  pthread_t other;
  attach(0, "pinned_ahead:off");
  void *small = allocate_pinned_checked(1000);
  free_pinned(allocate_pinned_checked(20 * MIB));
  gate_passed = gate_open = 0;
  f[0].on_unregister = gate;
  ck_assert_int_eq(pthread_create(&other, NULL, empty_all, NULL), 0);
  gate_wait(1);
  void *at[30]; /* one chunk more than there is */
  for (int i = 0; i < 30; i++)
    at[i] = allocate_pinned_checked(100 * KIB);
  ck_assert_uint_eq(f[0].pinned_count, 3); /* the unlocked one still counts for the device */
  ck_assert_int_eq(chunks_of(at[0]), 2);
  gate_set(1 << 20);
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  for (int i = 0; i < 30; i++)
    free_pinned(at[i]);
  free_pinned(small);
  detach(0);
}
END_TEST

START_TEST(memory_whose_work_is_over_is_used_before_more_is_locked)
{
  attach(0, NULL);
  for (int i = 0; i < 20000; i++) {
    void *at = get_flags(4096, 0);
    record_stream_use(at, 0, 1);
    free_pinned(at);
  }
  ck_assert_int_le(figure("allocated_bytes.peak"), 6 * MIB);
  detach(0);
}
END_TEST

START_TEST(failing_ahead_is_nobodys_error)
{
  attach(0, NULL);
  f[0].pinned_capacity = 2 * MIB;
  void *at = allocate_pinned_checked(1 * MIB);
  free_pinned(at);
  ck_assert_int_eq(weir_memory_detach(cuda[0]), WEIR_OK); /* waits for the background */
  ck_assert_uint_eq(f[0].registrations, 1);
  ck_assert(fake_clean(&f[0]));
  fake_fini(&f[0]);
}
END_TEST

START_TEST(large_memory_is_touched_by_several_threads)
{
  attach(0, "pinned_num_register_threads:3,pinned_ahead:off");
  unsigned char *at = allocate_pinned_checked(80 * MIB), seen = 0;
  for (size_t i = 0; i < 80 * MIB; i += 4096)
    seen |= at[i];
  ck_assert_uint_eq(seen, 0);
  ck_assert_uint_eq(f[0].registrations, 1);
  free_pinned(at);
  detach(0);
}
END_TEST

START_TEST(a_node_is_a_wish)
{
  attach(0, NULL);
  f[0].node = _i; /* 0 there is, 700 there is not */
  if (_i) f[0].node = 700;
  free_pinned(allocate_pinned_checked(3 * MIB));
  detach(0);
}
END_TEST

/* ---- going back ------------------------------------------------------------------------------ */

static uint32_t clock_ms(void)
{
  return rig_ms;
}

START_TEST(idle_chunks_go_back_after_a_while_without_a_wait)
{
  attach(0, "decay_ms:1000,pinned_ahead:off");
  void *small = allocate_pinned_checked(1000), *large = allocate_pinned_checked(20 * MIB);
  mem_pool *p = pool_of(small);
  pthread_mutex_lock(&p->lock);
  rig_ms = p->clock();
  p->clock = clock_ms;
  p->decayed = rig_ms;
  pthread_mutex_unlock(&p->lock);
  keep_busy(0, 1);
  record_stream_use(large, 0, 1);
  free_pinned(large);
  rig_ms += 5000;
  void *other = allocate_pinned_checked(3 * MIB);
  ck_assert_int_ge(figure("allocated_bytes.current"), 20 * MIB); /* in flight: it stays */
  fake_release(&f[0], 1);
  free_pinned(allocate_pinned_checked(15 * MIB)); /* now it is known to be idle */
  rig_ms += 5000;
  void *more = allocate_pinned_checked(30 * MIB);
  ck_assert_int_lt(figure("allocated_bytes.current"), 45 * MIB);
  ck_assert_uint_eq(f[0].syncs, 0);
  ck_assert_int_gt(figure("num_host_free"), 0);
  free_pinned(more);
  free_pinned(other);
  free_pinned(small);
  detach(0);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

START_TEST(the_budget_is_kept_and_named)
{
  attach(0, "pinned_limit_mb:16");
  void *at[64], *out;
  int n = 0;
  weir_status st;
  while ((st = weir_pinned_malloc(&out, 900 * KIB)) == WEIR_OK) {
    at[n++] = out;
    ck_assert_uint_le(host_pool_locked(), 16 * MIB);
    ck_assert_int_lt(n, 64);
  }
  ck_assert_int_eq(st, WEIR_EOOM);
  ck_assert_int_ge(n, 14);
  const char *all[] = {"0.88 MiB", "the budget", "budget 16.00", "live ", "RLIMIT_MEMLOCK"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    ck_assert_msg(strstr(weir_error_message(), all[i]) != NULL, "%s", weir_error_message());
  check_block_pool(at[0]);
  ck_assert_int_eq(figure("num_ooms"), 1);
  ck_assert_int_eq(figure("limit_bytes"), 16 * MIB);
  ck_assert_int_eq(weir_pinned_malloc(&out, UINT64_C(1) << 50), WEIR_EOOM);
  while (n)
    free_pinned(at[--n]);
  free_pinned(allocate_pinned_checked(15 * MIB)); /* idle chunks make room */
  ck_assert_int_eq(weir_pinned_set_limit(0), WEIR_OK);
  free_pinned(allocate_pinned_checked(17 * MIB));
  detach(0);
}
END_TEST

static char root[64];

static void write_file(const char *path, const char *text)
{
  char full[256];
  (void)snprintf(full, sizeof full, "%s%s", root, path);
  for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    (void)mkdir(full, 0700);
    *at = '/';
  }
  FILE *out = fopen(full, "w");
  ck_assert_ptr_nonnull(out);
  (void)fputs(text, out);
  ck_assert_int_eq(fclose(out), 0);
}

static void make_root(void)
{
  (void)snprintf(root, sizeof root, "/tmp/weir-root-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
  host_root = root;
}

static void drop_root(void)
{
  char command[96];
  (void)snprintf(command, sizeof command, "rm -rf %s", root);
  ck_assert_int_eq(system(command), 0);
  host_root = "";
}

START_TEST(a_machine_without_memory_is_asked_for_none)
{
  make_root();
  write_file("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    4096 kB\n");
  attach(0, "pinned_ahead:off");
  void *at = allocate_pinned_checked(3 * MIB), *out;
  ck_assert_int_eq(weir_pinned_malloc(&out, 5 * MIB), WEIR_EOOM);
  ck_assert_msg(strstr(weir_error_message(), "available on the machine 4.00") != NULL, "%s",
                weir_error_message());
  free_pinned(at);
  detach(0);
  drop_root();
}
END_TEST

START_TEST(the_tightest_control_group_counts)
{
  host_room r;
  make_root();
  write_file("/proc/self/cgroup", "3:cpu:/x\n0::/a/b\n");
  write_file("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write_file("/sys/fs/cgroup/a/b/memory.current", "100\n");
  write_file("/sys/fs/cgroup/a/memory.max", "10000\n");
  write_file("/sys/fs/cgroup/a/memory.current", "9000\n");
  write_file("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 3000\nactive_file 1000\n");
  write_file("/sys/fs/cgroup/memory.max", "20000\n");
  write_file("/sys/fs/cgroup/memory.current", "9000\n");
  host_room_read(&r);
  ck_assert_uint_eq(r.cgroup_limit, 10000);
  ck_assert_uint_eq(r.cgroup_used, 5000);
  ck_assert_uint_eq(r.available, UINT64_MAX);
  ck_assert_uint_eq(r.nodes, 1);
  write_file("/proc/self/cgroup", "3:cpu:/x\n4:memory:/of/the/machine\n0::/gone\n");
  write_file("/sys/fs/cgroup/memory.max", "max\n");
  write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
  write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "7500\n");
  write_file("/sys/fs/cgroup/memory/memory.stat",
             "inactive_file 7\ntotal_inactive_file 500\ntotal_active_file 0\n");
  host_room_read(&r);
  ck_assert_uint_eq(r.cgroup_limit, 8000);
  ck_assert_uint_eq(r.cgroup_used, 7000);
  drop_root();
}
END_TEST

START_TEST(nodes_and_their_processors_are_read)
{
  host_room r;
  cpu_set_t cpus;
  make_root();
  write_file("/sys/devices/system/node/has_memory", "0-1,3\n");
  write_file("/sys/devices/system/node/node3/cpulist", "2,8-10\n");
  write_file("/sys/devices/system/node/node1/cpulist", "\n");
  host_room_read(&r);
  ck_assert_uint_eq(r.nodes, 3);
  ck_assert(host_node_cpus(3, &cpus));
  ck_assert_int_eq(CPU_COUNT(&cpus), 4);
  ck_assert(CPU_ISSET(2, &cpus) && CPU_ISSET(10, &cpus) && !CPU_ISSET(7, &cpus));
  ck_assert(!host_node_cpus(1, &cpus));
  ck_assert(!host_node_cpus(9, &cpus));
  /* Memory is made on a machine of several nodes, whatever this one is. */
  write_file("/sys/devices/system/node/node0/cpulist", "0\n");
  attach(0, NULL);
  f[0].node = 3;
  free_pinned(allocate_pinned_checked(3 * MIB));
  detach(0);
  drop_root();
}
END_TEST

/* ---- figures --------------------------------------------------------------------------------- */

START_TEST(the_figures_tell_what_happened)
{
  attach(0, "pinned_ahead:off");
  void *a = allocate_pinned_checked(1000), *b = get_flags(3 * MIB, WEIR_PINNED_PORTABLE);
  ck_assert_int_eq(figure("active_requests.current"), 2);
  ck_assert_int_eq(figure("active_bytes.current"), 1024 + 3 * MIB);
  ck_assert_int_eq(figure("requested_bytes.current"), 1000 + 3 * MIB);
  ck_assert_int_eq(figure("allocations.current"), 2);
  ck_assert_int_eq(figure("allocated_bytes.current"), 2 * MIB + 4 * MIB);
  ck_assert_int_eq(figure("num_host_alloc"), 2);
  ck_assert_int_eq(figure("host_alloc_time.count"), 2);
  ck_assert_int_ge(figure("host_alloc_time.max"), figure("host_alloc_time.avg"));
  ck_assert_int_ge(figure("host_alloc_time.avg"), figure("host_alloc_time.min"));
  uint64_t largest;
  ck_assert_int_eq(weir_pinned_largest_free_block(&largest), WEIR_OK);
  ck_assert_uint_eq(largest, 2 * MIB - 1024);
  free_pinned(b);
  ck_assert_int_eq(figure("active_bytes.peak"), 1024 + 3 * MIB);
  ck_assert_int_eq(weir_pinned_reset_peak(), WEIR_OK);
  ck_assert_int_eq(figure("active_bytes.peak"), 1024);
  ck_assert_int_eq(figure("active_requests.freed"), 1);
  free_pinned(a);
  empty_pinned_cache();
  ck_assert_int_eq(figure("num_host_free"), 2);
  ck_assert_int_eq(figure("allocated_bytes.freed"), 6 * MIB);
  ck_assert_int_eq(figure("allocations.peak"), 2);
  char *text;
  ck_assert_int_eq(weir_pinned_summary(&text), WEIR_OK);
  ck_assert_ptr_nonnull(strstr(text, "host_alloc_time.total"));
  free(text);
  int64_t value;
  ck_assert_int_eq(weir_pinned_stat(&value, "nonsense"), WEIR_EINVAL);
  weir_pinned_stats all;
  ck_assert_int_eq(weir_pinned_get_stats(&all), WEIR_OK);
  ck_assert_int_eq(all.allocated_bytes, 0);
  detach(0);
}
END_TEST

/* ---- fork ------------------------------------------------------------------------------------ */

static int in_child(unsigned char *at)
{
  void *out;
  bool is = true;
  weir_pinned_stats all;
  if (at[0] != 0 || at[3 * MIB - 1] != 0) return 1; /* zeros, and no crash */
  at[0] = 9;
  if (weir_pinned_malloc(&out, 1000) != WEIR_ENOTSUP) return 2;
  if (weir_pinned_free(at) != WEIR_OK) return 3;
  if (weir_is_pinned(&is, at) != WEIR_OK || is) return 4;
  if (weir_pinned_get_stats(&all) != WEIR_ENOTSUP) return 5;
  if (weir_pinned_empty_cache() != WEIR_ENOTSUP) return 6;
  return 0;
}

START_TEST(a_forked_child_sees_zeros_and_the_parent_keeps_its_memory)
{
  attach(0, NULL);
  unsigned char *at = allocate_pinned_checked(3 * MIB);
  memset(at, 7, 3 * MIB);
  pid_t child = fork();
  if (!child) _exit(in_child(at));
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
  ck_assert_int_eq(at[0], 7);
  ck_assert_int_eq(at[3 * MIB - 1], 7);
  free_pinned(at);
  free_pinned(allocate_pinned_checked(1000));
  detach(0);
}
END_TEST

static void add_memory(TCase *t)
{
  tcase_add_test(t, without_a_device_there_is_no_pinned_memory);
  tcase_add_test(t, nothing_is_null_and_freeing_null_is_nothing);
  tcase_add_test(t, a_block_lies_in_one_registration);
  tcase_add_test(t, sizes_waste_at_most_an_eighth_and_nothing_from_64_mib);
  tcase_add_test(t, a_size_is_served_again_from_the_thread);
  tcase_add_test(t, all_freed_memory_becomes_whole_again_and_goes_back);
  tcase_add_test(t, a_small_request_leaves_a_large_idle_chunk_alone);
  tcase_add_test(t, interior_pointers_are_pinned);
  tcase_add_test(t, each_kind_of_memory_is_freed_by_its_own_function);
  tcase_add_loop_test(t, memory_in_use_by_recorded_work_is_not_handed_out, 0, 2);
  tcase_add_test(t, before_an_error_recorded_work_is_waited_for);
  tcase_add_test(t, work_recorded_in_a_capture_keeps_memory_until_it_ends);
  tcase_add_test(t, a_released_stream_holds_what_it_used_until_it_is_through);
  tcase_add_test(t, a_device_may_end_before_memory_that_it_used);
  tcase_add_test(t, a_device_with_live_pinned_memory_stays);
}

static void add_ways(TCase *t)
{
  tcase_add_test(t, write_combined_memory_is_the_devices_own_and_apart);
  tcase_add_test(t, each_set_of_flags_reaches_the_device);
  tcase_add_loop_test(t, a_device_without_registration_makes_the_memory, 0, 2);
  tcase_add_test(t, what_a_device_cannot_is_said);
  tcase_add_loop_test(t, the_first_chunk_serves_while_the_next_is_registered, 0, 2);
  tcase_add_test(t, nobody_waits_while_chunks_are_unlocked);
  tcase_add_test(t, memory_whose_work_is_over_is_used_before_more_is_locked);
  tcase_add_test(t, failing_ahead_is_nobodys_error);
  tcase_add_test(t, large_memory_is_touched_by_several_threads);
  tcase_add_loop_test(t, a_node_is_a_wish, 0, 2);
  tcase_add_test(t, idle_chunks_go_back_after_a_while_without_a_wait);
  tcase_add_test(t, the_budget_is_kept_and_named);
  tcase_add_test(t, a_machine_without_memory_is_asked_for_none);
  tcase_add_test(t, the_tightest_control_group_counts);
  tcase_add_test(t, nodes_and_their_processors_are_read);
  tcase_add_test(t, the_figures_tell_what_happened);
  tcase_add_test(t, a_forked_child_sees_zeros_and_the_parent_keeps_its_memory);
}

int main(void)
{
  Suite *s = suite_create("pinned");
  TCase *t = tcase_create("pinned");
  tcase_set_timeout(t, 120);
  add_memory(t);
  add_ways(t);
  suite_add_tcase(s, t);
  return rig_run(s);
}
