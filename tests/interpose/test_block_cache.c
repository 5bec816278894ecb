/* test_block_cache.c: the cache of whole blocks: exact blocks, no reuse before work is complete,
 * bounds, failures, and a random program against a model. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "interpose/reroute/block_cache.h"
#include "tests/memory/fake.h"
#include "tests/memory/rig.h"

static fake f;
static block_cache *w;

static struct {
  unsigned count[BLOCK_CACHE_TRIM + 1];
  uint64_t bytes;
} told; /* of what was given back */

static void on_given(void *self, const block_cache_freed *g)
{
  ck_assert_ptr_eq(self, f.backend.self);
  (void)__atomic_add_fetch(&told.count[g->why], 1, __ATOMIC_RELAXED);
  (void)__atomic_add_fetch(&told.bytes, g->bytes, __ATOMIC_RELAXED);
}

static void open_block_cache(uint64_t capacity, uint64_t keep, uint64_t decay)
{
  block_cache_options o = {.keep_bytes = keep, .decay_ms = decay, .on_given = on_given};
  memset(&told, 0, sizeof told);
  fake_init(&f, capacity, 0);
  ck_assert_int_eq(block_cache_open(&w, &f.backend, &o), WEIR_OK);
}

/* Everything the program had is freed by now. */
static void close_block_cache(void)
{
  block_cache_counters s;
  for (int i = 0; i < 8; i++)
    fake_release(&f, i);
  ck_assert_int_eq(block_cache_trim(w, 0), WEIR_OK);
  block_cache_get_stats(w, &s);
  ck_assert_uint_eq(s.live + s.idle + s.waiting, 0);
  ck_assert_uint_eq(s.live_bytes + s.idle_bytes + s.waiting_bytes, 0);
  ck_assert_uint_eq(f.used, 0);
  ck_assert_uint_eq(told.bytes, s.given_back);
  block_cache_abandon(w);
  fake_fini(&f);
}

static uint64_t allocate_from_block_cache(uint64_t bytes, bool want_hit)
{
  uint64_t at;
  bool hit;
  ck_assert_msg(block_cache_malloc(w, bytes, &at, &hit) == WEIR_OK, "%s", weir_error_message());
  ck_assert_int_eq(hit, want_hit);
  return at;
}

/* A free by one of the two ways and the other in turn. */
static weir_status free_somehow(uint64_t at, void *const *streams, unsigned count, bool *full)
{
  static __thread unsigned turn;
  block_cache_block b = block_cache_find(at);
  if (turn++ & 1) return block_cache_free(at, streams, count, full);
  return block_cache_release(&b, streams, count, clock_ticks(), full);
}

static bool free_to_block_cache(uint64_t at, int stream)
{
  bool full = false;
  void *handle = stream >= 0 ? fake_handle(&f, stream) : NULL;
  ck_assert_int_eq(free_somehow(at, &handle, stream >= 0, &full), WEIR_OK);
  return full;
}

static block_cache_counters block_cache_stats(void)
{
  block_cache_counters s;
  block_cache_get_stats(w, &s);
  return s;
}

START_TEST(a_freed_block_serves_the_next_request_of_its_size_class_whole)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t a = allocate_from_block_cache(3 * MIB, false),
           b = allocate_from_block_cache(1000, false);
  ck_assert_uint_eq(f.used, 4 * MIB + 1024);
  free_to_block_cache(a, -1);
  free_to_block_cache(b, -1);
  ck_assert_uint_eq(allocate_from_block_cache(4 * MIB, true), a);
  ck_assert_uint_eq(allocate_from_block_cache(513, true), b);
  ck_assert_uint_ne(allocate_from_block_cache(MIB, false), a);
  ck_assert_uint_ne(allocate_from_block_cache(1025, false), b);
  ck_assert_uint_eq(block_cache_stats().hits, 2);
  block_cache_abandon(w);
  fake_fini(&f);
}
END_TEST

START_TEST(a_block_is_never_split_for_a_smaller_request)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t a = allocate_from_block_cache(8 * MIB, false);
  free_to_block_cache(a, -1);
  uint64_t b = allocate_from_block_cache(2 * MIB, false);
  ck_assert(b < a || b >= a + 8 * MIB);
  free_to_block_cache(b, -1);
  close_block_cache();
}
END_TEST

START_TEST(a_block_is_not_reused_before_the_named_streams_are_done)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  uint64_t a = allocate_from_block_cache(2 * MIB, false);
  free_to_block_cache(a, 1);
  ck_assert_int_eq(block_cache_find(a).state, BLOCK_CACHE_WAITING);
  uint64_t b = allocate_from_block_cache(2 * MIB, false);
  ck_assert_uint_ne(a, b);
  fake_release(&f, 1);
  ck_assert_uint_eq(allocate_from_block_cache(2 * MIB, true), a);
  ck_assert_uint_eq(f.syncs, 0);
  free_to_block_cache(a, -1);
  free_to_block_cache(b, -1);
  close_block_cache();
}
END_TEST

START_TEST(one_marker_covers_all_frees_before_it)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t at[16];
  fake_hold(&f, 1);
  for (int i = 0; i < 16; i++)
    at[i] = allocate_from_block_cache(512, false);
  for (int i = 0; i < 16; i++)
    free_to_block_cache(at[i], 1);
  fake_release(&f, 1);
  for (int i = 0; i < 16; i++)
    (void)allocate_from_block_cache(512, true);
  ck_assert_uint_eq(f.records, 1);
  for (int i = 0; i < 16; i++)
    free_to_block_cache(at[i], -1);
  close_block_cache();
}
END_TEST

START_TEST(a_wait_for_everything_settles_earlier_frees_and_no_later_one)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  uint64_t a = allocate_from_block_cache(512, false), b = allocate_from_block_cache(1024, false);
  free_to_block_cache(a, 1);
  uint64_t clock = block_cache_clock(w);
  free_to_block_cache(b, 1);
  block_cache_complete(w, clock);
  ck_assert_int_eq(block_cache_find(a).state, BLOCK_CACHE_IDLE);
  ck_assert_int_eq(block_cache_find(b).state, BLOCK_CACHE_WAITING);
  ck_assert_uint_eq(f.records, 0);
  close_block_cache();
}
END_TEST

START_TEST(nothing_is_recorded_or_asked_while_a_capture_is_live)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  f.streams[1].capturing = true;
  uint64_t a = allocate_from_block_cache(512, false);
  free_to_block_cache(a, 1);
  uint64_t b = allocate_from_block_cache(512, false);
  ck_assert_uint_eq(f.records + f.queries, 0);
  f.streams[1].capturing = false;
  ck_assert_uint_eq(allocate_from_block_cache(512, true), a);
  free_to_block_cache(a, -1);
  free_to_block_cache(b, -1);
  close_block_cache();
}
END_TEST

START_TEST(a_stream_that_ended_busy_is_waited_for_by_later_frees)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t a = allocate_from_block_cache(512, false);
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  ck_assert_int_eq(block_cache_stream_ends(w, fake_handle(&f, 1), true), WEIR_OK);
  free_to_block_cache(a, 2);
  uint64_t b = allocate_from_block_cache(512, false);
  ck_assert_uint_ne(a, b);
  fake_release(&f, 1);
  ck_assert_uint_eq(allocate_from_block_cache(512, true), a);
  free_to_block_cache(a, -1);
  free_to_block_cache(b, -1);
  close_block_cache();
}
END_TEST

START_TEST(the_handle_of_an_ended_stream_may_mean_another)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t a = allocate_from_block_cache(512, false), b = allocate_from_block_cache(1024, false);
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  free_to_block_cache(a, 1);
  ck_assert_int_eq(block_cache_stream_ends(w, fake_handle(&f, 1), true), WEIR_OK);
  fake_release(&f, 1);
  fake_hold(&f, 1); /* the new stream of that handle */
  fake_submit(&f, 1, nothing, NULL);
  free_to_block_cache(b, 1);
  ck_assert_uint_eq(allocate_from_block_cache(512, true), a);
  ck_assert_int_eq(block_cache_find(b).state, BLOCK_CACHE_WAITING);
  free_to_block_cache(a, -1);
  close_block_cache();
}
END_TEST

START_TEST(cached_bytes_stay_below_the_bound)
{
  open_block_cache(64 * MIB, 8 * MIB, 0);
  uint64_t at[8];
  for (int i = 0; i < 8; i++)
    at[i] = allocate_from_block_cache(2 * MIB, false);
  for (int i = 0; i < 8; i++) {
    ck_assert(!free_to_block_cache(at[i], -1));
    ck_assert_uint_le(block_cache_stats().idle_bytes, 8 * MIB);
  }
  ck_assert_uint_eq(block_cache_stats().idle_bytes, 8 * MIB);
  ck_assert_uint_eq(f.used, 8 * MIB);
  close_block_cache();
}
END_TEST

START_TEST(more_waiting_than_may_be_kept_is_said)
{
  open_block_cache(64 * MIB, 3 * MIB, 0);
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  uint64_t a = allocate_from_block_cache(2 * MIB, false),
           b = allocate_from_block_cache(2 * MIB, false);
  ck_assert(!free_to_block_cache(a, 1));
  ck_assert(free_to_block_cache(b, 1));
  close_block_cache();
}
END_TEST

START_TEST(a_bound_of_nothing_keeps_nothing)
{
  open_block_cache(64 * MIB, 0, 0);
  free_to_block_cache(allocate_from_block_cache(512, false), -1);
  ck_assert_uint_eq(f.used, 0);
  close_block_cache();
}
END_TEST

START_TEST(out_of_memory_comes_only_after_all_idle_memory_went_back)
{
  uint64_t at;
  bool hit;
  open_block_cache(16 * MIB, 16 * MIB, 0);
  uint64_t a = allocate_from_block_cache(6 * MIB, false),
           b = allocate_from_block_cache(6 * MIB, false);
  free_to_block_cache(a, -1);
  uint64_t c = allocate_from_block_cache(10 * MIB, false);
  ck_assert_uint_eq(block_cache_stats().idle, 0);
  ck_assert_int_eq(block_cache_malloc(w, 2 * MIB, &at, &hit), WEIR_EOOM);
  free_to_block_cache(b, -1);
  free_to_block_cache(c, -1);
  close_block_cache();
}
END_TEST

static void missed(uint64_t at, block_cache_reason why)
{
  ck_assert_int_eq(block_cache_find(at).why, why);
}

START_TEST(a_miss_says_why)
{
  open_block_cache(16 * MIB, 6 * MIB, 0);
  fake_hold(&f, 1);
  uint64_t a = allocate_from_block_cache(4 * MIB, false),
           b = allocate_from_block_cache(4 * MIB, false), c = allocate_from_block_cache(512, false);
  missed(a, BLOCK_CACHE_FIRST);
  missed(b, BLOCK_CACHE_IN_USE);
  missed(c, BLOCK_CACHE_FIRST);
  free_to_block_cache(a, 1);
  a = allocate_from_block_cache(4 * MIB, false);
  missed(a, BLOCK_CACHE_WAITED_FOR);
  fake_release(&f, 1);
  free_to_block_cache(allocate_from_block_cache(4 * MIB, true), -1);
  missed(allocate_from_block_cache(4 * MIB, true), BLOCK_CACHE_HIT);
  free_to_block_cache(b, -1);
  free_to_block_cache(a, -1); /* 8 MiB are more than may be kept */
  ck_assert_uint_eq(told.count[BLOCK_CACHE_LIMIT], 1);
  allocate_from_block_cache(4 * MIB, true);
  b = allocate_from_block_cache(4 * MIB, false);
  missed(b, BLOCK_CACHE_LIMIT);
  free_to_block_cache(c, -1);
  uint64_t d = allocate_from_block_cache(2 * MIB, false);
  ck_assert_uint_eq(told.count[BLOCK_CACHE_TRIM], 0);
  uint64_t e = allocate_from_block_cache(2 * MIB, false); /* no room but what the idle block has */
  ck_assert_uint_eq(told.count[BLOCK_CACHE_TRIM], 1);
  free_to_block_cache(d, -1);
  missed(allocate_from_block_cache(512, false), BLOCK_CACHE_TRIM);
  (void)e;
  block_cache_abandon(w);
  fake_fini(&f);
}
END_TEST

START_TEST(a_double_free_and_a_strange_pointer_are_refused)
{
  bool full;
  open_block_cache(16 * MIB, 16 * MIB, 0);
  uint64_t a = allocate_from_block_cache(512, false);
  free_to_block_cache(a, -1);
  ck_assert_int_eq(block_cache_free(a, NULL, 0, &full), WEIR_EINVAL);
  ck_assert_int_eq(block_cache_free(a + 256, NULL, 0, &full), WEIR_EINVAL);
  ck_assert_int_eq(block_cache_find(a + 256).state, BLOCK_CACHE_NONE);
  close_block_cache();
}
END_TEST

START_TEST(a_block_is_released_once_and_as_the_allocation_it_was_found_as)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  bool full;
  uint64_t a = allocate_from_block_cache(512, false);
  block_cache_block first = block_cache_find(a), none = block_cache_find(a + 8);
  ck_assert_ptr_eq(first.backend, &f.backend);
  ck_assert_int_eq(block_cache_release(&first, NULL, 0, 0, &full), WEIR_OK);
  ck_assert_int_eq(block_cache_release(&first, NULL, 0, 0, &full), WEIR_EINVAL);
  ck_assert_int_eq(block_cache_release(&none, NULL, 0, 0, &full), WEIR_EINVAL);
  ck_assert_uint_eq(allocate_from_block_cache(512, true), a);
  ck_assert_int_eq(block_cache_release(&first, NULL, 0, 0, &full), WEIR_EINVAL);
  ck_assert_int_eq(block_cache_find(a).state, BLOCK_CACHE_LIVE);
  free_to_block_cache(a, -1);
  close_block_cache();
}
END_TEST

/* The device's own free may wait for work that the program does not wait for in an allocation. */
START_TEST(old_memory_goes_back_when_the_program_frees_or_waits_not_when_it_allocates)
{
  open_block_cache(64 * MIB, 64 * MIB, 1);
  free_to_block_cache(allocate_from_block_cache(2 * MIB, false), -1);
  for (uint32_t since = clock_coarse_ms(); clock_coarse_ms() - since < 2;)
    ;
  uint64_t small = allocate_from_block_cache(512, false), at;
  ck_assert(!block_cache_reuse(w, 4 * MIB, &at));
  ck_assert_uint_eq(told.count[BLOCK_CACHE_DECAY], 0);
  block_cache_age(w);
  ck_assert_uint_eq(told.count[BLOCK_CACHE_DECAY], 1);
  ck_assert_uint_eq(block_cache_stats().idle_bytes, 0);
  free_to_block_cache(small, -1);
  close_block_cache();
}
END_TEST

START_TEST(idle_memory_goes_back_in_time_though_no_clock_is_read)
{
  open_block_cache(64 * MIB, 64 * MIB, 3);
  bool full;
  uint64_t old = allocate_from_block_cache(1024, false), at = allocate_from_block_cache(512, false);
  free_to_block_cache(old, -1);
  while (block_cache_find(old).state != BLOCK_CACHE_NONE) {
    block_cache_block b = block_cache_find(at);
    ck_assert_int_eq(block_cache_release(&b, NULL, 0, clock_ticks(), &full), WEIR_OK);
    if (!block_cache_reuse(w, 512, &at)) at = allocate_from_block_cache(512, false);
  }
  ck_assert_uint_ge(told.count[BLOCK_CACHE_DECAY], 1);
  free_to_block_cache(at, -1);
  close_block_cache();
}
END_TEST

START_TEST(a_forgotten_block_is_the_programs_alone)
{
  open_block_cache(16 * MIB, 16 * MIB, 0);
  uint64_t a = allocate_from_block_cache(512, false);
  ck_assert(block_cache_forget(a));
  ck_assert(!block_cache_forget(a));
  ck_assert_int_eq(block_cache_find(a).state, BLOCK_CACHE_NONE);
  ck_assert_int_eq(f.backend.source.segment_free(f.backend.self, a, 512), WEIR_OK);
  close_block_cache();
}
END_TEST

START_TEST(a_block_parts_once_ahead_of_a_free_and_stays_when_that_fails)
{
  block_cache_counters s;
  bool full;
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t at = allocate_from_block_cache(3 * MIB, false);
  const block_cache_block b = block_cache_find(at);
  ck_assert(block_cache_detach(&b));
  ck_assert(!block_cache_detach(&b));
  ck_assert_int_eq(block_cache_find(at).state, BLOCK_CACHE_NONE);
  block_cache_reattach(w, &b); /* the free has failed */
  const block_cache_block again = block_cache_find(at);
  ck_assert(again.state == BLOCK_CACHE_LIVE && again.serial == b.serial && again.why == b.why);
  ck_assert(again.requested == 3 * MIB && again.bytes == 4 * MIB);
  ck_assert(block_cache_detach(&again));
  /* the free has succeeded, and the address is another's before it returns */
  ck_assert_int_eq(block_cache_adopt(w, 3 * MIB + 1, at), WEIR_OK);
  ck_assert(!block_cache_detach(&b));
  ck_assert_int_eq(block_cache_find(at).state, BLOCK_CACHE_LIVE);
  block_cache_reattach(w, &b); /* as nobody does: the new one stays what it is */
  ck_assert_uint_eq(block_cache_find(at).requested, 3 * MIB + 1);
  ck_assert_int_eq(block_cache_free(at, NULL, 0, &full), WEIR_OK);
  block_cache_get_stats(w, &s);
  ck_assert_uint_eq(s.live + s.live_bytes, 0);
  ck_assert_uint_eq(s.idle, 1);
  close_block_cache();
}
END_TEST

START_TEST(what_is_waiting_can_be_given_back_without_a_wait)
{
  block_cache_counters s;
  open_block_cache(64 * MIB, 64 * MIB, 0);
  uint64_t at = allocate_from_block_cache(2 * MIB, false), given = block_cache_move_count();
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  free_to_block_cache(at, 1);
  ck_assert_int_eq(block_cache_find(at).state, BLOCK_CACHE_WAITING);
  ck_assert_int_eq(block_cache_trim_waiting(w), WEIR_OK);
  ck_assert_int_eq(block_cache_find(at).state, BLOCK_CACHE_NONE);
  ck_assert_uint_eq(block_cache_move_count(), given + 1);
  ck_assert(!block_cache_is_freeing());
  block_cache_get_stats(w, &s);
  ck_assert_uint_eq(s.waiting + s.waiting_bytes, 0);
  close_block_cache();
}
END_TEST

START_TEST(every_failing_call_leaves_the_cache_working)
{
  for (uint64_t n = 1; n < 40; n++)
    for (int after = 0; after < 2; after++) {
      open_block_cache(64 * MIB, 4 * MIB, 0);
      uint64_t at[12], have = 0;
      fake_fail(&f, n, after, after ? WEIR_EIO : WEIR_EOOM);
      for (int i = 0; i < 12; i++) {
        bool hit, full;
        void *s = fake_handle(&f, i % 3);
        if (block_cache_malloc(w, 512u << i % 4, &at[have], &hit) == WEIR_OK) have++;
        if (i % 2 && have && free_somehow(at[have - 1], &s, 1, &full) == WEIR_OK) have--;
      }
      fake_fail(&f, 0, false, WEIR_OK);
      while (have)
        free_to_block_cache(at[--have], -1);
      uint64_t good = allocate_from_block_cache(3 * MIB, false);
      free_to_block_cache(good, -1);
      close_block_cache();
    }
}
END_TEST

/* ---- a random program ------------------------------------------------------------------------ */

enum { MODEL_BLOCKS = 64, MODEL_STREAMS = 4 };

typedef struct model_block {
  uint64_t at, bytes;
  uint64_t work[MODEL_STREAMS]; /* of each stream: number of the last work on it */
} model_block;

static uint64_t ran[MODEL_STREAMS], queued[MODEL_STREAMS];

static void count_work_done(void *argument)
{
  ran[(intptr_t)argument]++;
}

static void model_use(model_block *b, int s)
{
  b->work[s] = ++queued[s];
  fake_submit(&f, s, count_work_done, (void *)(intptr_t)s);
}

/* What was freed, by address: handed out again only when its work has run. */
static model_block gone[4096];

static void model_give(model_block *b)
{
  void *streams[MODEL_STREAMS];
  unsigned n = 0;
  bool full;
  for (int s = 0; s < MODEL_STREAMS; s++)
    if (b->work[s] > ran[s]) streams[n++] = fake_handle(&f, s);
  ck_assert_int_eq(free_somehow(b->at, streams, n, &full), WEIR_OK);
  gone[(b->at >> 9) % 4096] = *b;
  b->at = 0;
}

static void model_take(model_block *b, const model_block *all, uint64_t bytes)
{
  bool hit;
  memset(b, 0, sizeof *b);
  if (block_cache_malloc(w, bytes, &b->at, &hit)) return;
  b->bytes = bytes;
  for (int i = 0; i < MODEL_BLOCKS; i++)
    ck_assert(&all[i] == b || !all[i].at || all[i].at + all[i].bytes <= b->at ||
              b->at + bytes <= all[i].at);
  const model_block *was = &gone[(b->at >> 9) % 4096];
  if (hit && was->at == b->at)
    for (int s = 0; s < MODEL_STREAMS; s++)
      ck_assert_uint_le(was->work[s], ran[s]);
}

START_TEST(no_random_program_gets_memory_that_work_may_touch)
{
  uint64_t state = (uint64_t)_i;
  model_block b[MODEL_BLOCKS] = {0};
  memset(gone, 0, sizeof gone);
  memset(ran, 0, sizeof ran);
  memset(queued, 0, sizeof queued);
  open_block_cache(32 * MIB, 8 * MIB, 0);
  for (int step = 0; step < 4000; step++) {
    uint64_t r = rig_random(&state);
    model_block *at = &b[r % MODEL_BLOCKS];
    int s = (int)((r >> 8) % MODEL_STREAMS);
    switch (r >> 16 & 7) {
    case 0:
      if (r >> 20 & 1)
        fake_hold(&f, s);
      else
        fake_release(&f, s);
      break;
    case 1:
    case 2:
    case 3:
      if (!at->at)
        model_take(at, b, r >> 24 & 1 ? 1 + (r >> 32) % 4096 : 1 + (r >> 32) % (4 * MIB));
      break;
    case 4:
    case 5:
      if (at->at) model_use(at, s);
      break;
    default:
      if (at->at) model_give(at);
    }
    block_cache_counters now = block_cache_stats();
    ck_assert_uint_eq(now.live_bytes + now.idle_bytes + now.waiting_bytes, f.used);
  }
  for (int i = 0; i < MODEL_BLOCKS; i++)
    if (b[i].at) model_give(&b[i]);
  close_block_cache();
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static void *churn_block_cache(void *argument)
{
  uint64_t state = (uint64_t)(uintptr_t)argument, at[16] = {0};
  for (int i = 0; i < 3000; i++) {
    uint64_t r = rig_random(&state);
    uint64_t *p = &at[r % 16];
    bool hit, full;
    void *s = fake_handle(&f, (int)((r >> 8) % 4));
    if (*p) {
      ck_assert_int_eq(free_somehow(*p, &s, r >> 12 & 1, &full), WEIR_OK);
      *p = 0;
    } else if (block_cache_malloc(w, 512 * (1 + (r >> 16) % 8), p, &hit)) {
      *p = 0;
    }
  }
  for (int i = 0; i < 16; i++)
    if (at[i]) {
      bool full;
      ck_assert_int_eq(block_cache_free(at[i], NULL, 0, &full), WEIR_OK);
    }
  return NULL;
}

static weir_status (*query_of_fake)(void *, void *, bool *);
static unsigned looks;

static void *look_for_others(void *out)
{
  static const uint64_t others[] = {512, UINT64_MAX - 511};
  for (unsigned i = 0; i < 2; i++) {
    *(unsigned *)out += block_cache_find(others[i]).state == BLOCK_CACHE_NONE;
    block_cache_forget_stale(others[i]);
  }
  return NULL;
}

/* The caches' lock is held around the query. */
static weir_status query_while_others_look(void *self, void *event, bool *complete)
{
  pthread_t thread;
  ck_assert_int_eq(pthread_create(&thread, NULL, look_for_others, &looks), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  return query_of_fake(self, event, complete);
}

START_TEST(an_address_of_no_cache_is_passed_while_the_lock_is_held)
{
  open_block_cache(64 * MIB, 64 * MIB, 0);
  query_of_fake = f.backend.event_query;
  f.backend.event_query = query_while_others_look;
  looks = 0;
  free_to_block_cache(allocate_from_block_cache(4096, false), 1);
  (void)block_cache_stats();
  (void)block_cache_stats();
  ck_assert_uint_ge(looks, 2);
  ck_assert_uint_eq(looks % 2, 0);
  close_block_cache();
}
END_TEST

START_TEST(sixteen_threads_share_a_cache)
{
  pthread_t t[16];
  open_block_cache(256 * MIB, 64 * 1024, 0);
  for (uintptr_t i = 0; i < 16; i++)
    ck_assert_int_eq(pthread_create(&t[i], NULL, churn_block_cache, (void *)(i + 1)), 0);
  for (int i = 0; i < 16; i++)
    pthread_join(t[i], NULL);
  close_block_cache();
}
END_TEST

int main(void)
{
  Suite *s = suite_create("interpose/whole");
  TCase *c = tcase_create("whole");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, a_freed_block_serves_the_next_request_of_its_size_class_whole);
  tcase_add_test(c, a_block_is_never_split_for_a_smaller_request);
  tcase_add_test(c, a_block_is_not_reused_before_the_named_streams_are_done);
  tcase_add_test(c, one_marker_covers_all_frees_before_it);
  tcase_add_test(c, a_wait_for_everything_settles_earlier_frees_and_no_later_one);
  tcase_add_test(c, nothing_is_recorded_or_asked_while_a_capture_is_live);
  tcase_add_test(c, a_stream_that_ended_busy_is_waited_for_by_later_frees);
  tcase_add_test(c, the_handle_of_an_ended_stream_may_mean_another);
  tcase_add_test(c, cached_bytes_stay_below_the_bound);
  tcase_add_test(c, more_waiting_than_may_be_kept_is_said);
  tcase_add_test(c, a_bound_of_nothing_keeps_nothing);
  tcase_add_test(c, out_of_memory_comes_only_after_all_idle_memory_went_back);
  tcase_add_test(c, a_miss_says_why);
  tcase_add_test(c, a_double_free_and_a_strange_pointer_are_refused);
  tcase_add_test(c, a_block_is_released_once_and_as_the_allocation_it_was_found_as);
  tcase_add_test(c, old_memory_goes_back_when_the_program_frees_or_waits_not_when_it_allocates);
  tcase_add_test(c, idle_memory_goes_back_in_time_though_no_clock_is_read);
  tcase_add_test(c, a_forgotten_block_is_the_programs_alone);
  tcase_add_test(c, a_block_parts_once_ahead_of_a_free_and_stays_when_that_fails);
  tcase_add_test(c, what_is_waiting_can_be_given_back_without_a_wait);
  tcase_add_test(c, every_failing_call_leaves_the_cache_working);
  tcase_add_loop_test(c, no_random_program_gets_memory_that_work_may_touch, 0, 50);
  tcase_add_test(c, sixteen_threads_share_a_cache);
  tcase_add_test(c, an_address_of_no_cache_is_passed_while_the_lock_is_held);
  suite_add_tcase(s, c);
  return rig_run(s);
}
