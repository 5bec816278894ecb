/* test_graph.c: private pools: memory that captured graphs keep.
 *
 * A capture is a stream of the scripted device marked as capturing; the device counts what would
 * have broken a capture, and rig_stop() wants none. */
#include <string.h>
#include "core/weir.h"
#include "tests/memory/give_back.h"
#include "tests/memory/rig.h"

static rig r;

static const struct way {
  uint64_t page;
  const char *conf;
} ways[] = {
    {2 * 1024 * 1024, NULL}, {0, NULL}, {0, "whole_block:on"}, {2 * 1024 * 1024, "decay_ms:1"}};
enum { WAYS = sizeof ways / sizeof *ways };

static weir_graph_pool *new_pool(void)
{
  weir_graph_pool *g = NULL;
  pthread_mutex_lock(&r.p->lock);
  ck_assert_int_eq(graph_pool_new(r.p, &g), WEIR_OK);
  pthread_mutex_unlock(&r.p->lock);
  return g;
}

static weir_stream *stream(int i)
{
  return (weir_stream *)rig_stream(&r, i);
}

static void begin_graph_capture(weir_graph_pool *g, int s)
{
  ck_assert_msg(weir_graph_pool_begin(g, stream(s)) == WEIR_OK, "%s", weir_error_message());
  r.f.streams[s].capturing = true;
  rig_check(&r);
}

static void end_graph_capture(weir_graph_pool *g, int s)
{
  r.f.streams[s].capturing = false;
  ck_assert_msg(weir_graph_pool_end(g, stream(s)) == WEIR_OK, "%s", weir_error_message());
  rig_check(&r);
}

static void release(weir_graph_pool *g)
{
  ck_assert_msg(weir_graph_pool_release(g) == WEIR_OK, "%s", weir_error_message());
  rig_check(&r);
}

static weir_graph_pool_stats graph_pool_stats(weir_graph_pool *g)
{
  weir_graph_pool_stats s;
  ck_assert_int_eq(weir_graph_pool_get_stats(&s, g), WEIR_OK);
  return s;
}

static bool inside(const void *piece, const void *at, uint64_t bytes)
{
  return (uint64_t)piece >= (uint64_t)at && (uint64_t)piece < (uint64_t)at + bytes;
}

static void start_graph_rig(uint64_t capacity, int way)
{
  rig_start(&r, capacity, ways[way].page, ways[way].conf);
}

START_TEST(what_is_freed_in_a_capture_serves_the_capture_only)
{
  start_graph_rig(256 * MIB, _i);
  weir_graph_pool *g = new_pool();
  void *before = rig_malloc(&r, 1, 20 * MIB);
  rig_free(&r, before); /* the stream's own memory is not the graph's */
  begin_graph_capture(g, 1);
  char *a = rig_malloc(&r, 1, 20 * MIB);
  ck_assert_ptr_ne(a, before);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 20 * MIB), a);
  rig_free(&r, a);
  void *other = rig_malloc(&r, 2, 20 * MIB);
  ck_assert(!inside(other, a, 20 * MIB));
  end_graph_capture(g, 1);
  void *after = rig_malloc(&r, 1, 20 * MIB);
  ck_assert_ptr_eq(after, _i == 3 ? after : before);
  ck_assert(!inside(after, a, 20 * MIB));
  ck_assert_uint_eq(graph_pool_stats(g).free_bytes, 20 * MIB);
  rig_free(&r, other);
  rig_free(&r, after);
  release(g);
  release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(a_living_pool_gives_nothing_back_whatever_happens)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  void *out;
  begin_graph_capture(g, 1);
  char *a = rig_malloc(&r, 1, 30 * MIB);
  rig_free(&r, a);
  end_graph_capture(g, 1);
  rig_ms += 60000; /* long since idle */
  void *b = rig_malloc(&r, 1, 20 * MIB);
  rig_free(&r, b);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 30 * MIB);
  memset(a, 1, 30 * MIB); /* what a replay does */
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 2), 40 * MIB, &out), WEIR_EOOM);
  rig_check(&r);
  memset(a, 2, 30 * MIB);
  begin_graph_capture(g, 1);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 30 * MIB), a);
  rig_free(&r, a);
  end_graph_capture(g, 1);
  for (int i = 0; i < 3; i++)
    release(g);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 2), 40 * MIB, &out), WEIR_OK);
  rig_free(&r, out);
  rig_stop(&r);
}
END_TEST

START_TEST(small_blocks_pass_by_the_thread_caches_while_a_stream_is_captured)
{
  start_graph_rig(64 * MIB, 0);
  weir_graph_pool *g = new_pool();
  void *cached = rig_malloc(&r, 1, 1000);
  rig_free(&r, cached);
  begin_graph_capture(g, 1);
  void *a = rig_malloc(&r, 1, 1000), *b = rig_malloc(&r, 2, 1000);
  ck_assert_ptr_ne(a, cached);
  ck_assert_uint_eq(graph_pool_stats(g).allocated_bytes, 1024);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 1000), a);
  end_graph_capture(g, 1);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 1000), cached);
  rig_free(&r, a); /* after the capture: back into the pool */
  ck_assert_ptr_ne(rig_malloc(&r, 1, 1000), a);
  ck_assert_uint_eq(graph_pool_stats(g).allocated_bytes, 0);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes_small), 3 * 1024);
  tcache_reclaim(r.p);
  rig_check(&r);
  release(g);
  release(g);
  rig_free(&r, cached);
  rig_free(&r, b);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 1);
  pthread_mutex_lock(&r.p->lock); /* the one whose address nobody kept */
  block_id left = 0;
  for (block_id id = r.p->heads[0]; id; id = block(id)->right)
    if (block_state(block(id)) == BLOCK_LIVE) left = id;
  pthread_mutex_unlock(&r.p->lock);
  rig_free(&r, (void *)block(left)->address);
  rig_stop(&r);
}
END_TEST

START_TEST(all_captures_of_a_device_can_share_a_pool)
{
  start_graph_rig(256 * MIB, _i);
  weir_graph_pool *g = new_pool();
  (void)rig_stream(&r, 3);
  ck_assert_int_eq(weir_graph_pool_begin(g, NULL), WEIR_OK);
  void *eager = rig_malloc(&r, 1, 4 * MIB);
  r.f.streams[1].capturing = r.f.streams[2].capturing = true;
  void *a = rig_malloc(&r, 1, 4 * MIB), *b = rig_malloc(&r, 2, 4 * MIB),
       *c = rig_malloc(&r, 3, 600);
  ck_assert_uint_eq(graph_pool_stats(g).allocated_bytes, 8 * MIB);
  r.f.streams[1].capturing = r.f.streams[2].capturing = false;
  void *d = rig_malloc(&r, 1, 4 * MIB);
  ck_assert_uint_eq(graph_pool_stats(g).allocated_bytes, 8 * MIB);
  ck_assert_int_eq(weir_graph_pool_end(g, stream(1)), WEIR_EINVAL);
  ck_assert_int_eq(weir_graph_pool_end(g, NULL), WEIR_OK);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_free(&r, c);
  rig_free(&r, d);
  rig_free(&r, eager);
  release(g);
  release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(emptying_the_cache_waits_for_nothing_during_a_capture)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  void *freed = rig_malloc(&r, 2, 40 * MIB);
  fake_hold(&r.f, 2);
  fake_submit(&r.f, 2, nothing, NULL);
  rig_free(&r, freed);
  begin_graph_capture(g, 1);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_uint_eq(r.f.syncs, 0);
  ck_assert_uint_eq(r.f.offences, 0);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 40 * MIB);
  end_graph_capture(g, 1);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 0);
  release(g);
  release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(memory_of_a_released_pool_waits_for_the_replays)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  void *out;
  begin_graph_capture(g, 1);
  void *a = rig_malloc(&r, 1, 40 * MIB);
  rig_free(&r, a);
  end_graph_capture(g, 1);
  fake_hold(&r.f, 2);
  (void)rig_stream(&r, 2);
  fake_submit(&r.f, 2, nothing, NULL); /* a replay, in a stream that never allocated */
  release(g);
  release(g);
  ck_assert_int_eq(give_back_unawaited(r.p), WEIR_OK);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 40 * MIB);
  out = rig_malloc(&r, 1, 10 * MIB); /* not even the stream that captured it */
  ck_assert(!inside(out, a, 40 * MIB));
  rig_free(&r, out);
  fake_release(&r.f, 2);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 3), 60 * MIB, &out), WEIR_OK);
  ck_assert_uint_eq(r.f.syncs, 0);
  rig_free(&r, out);
  rig_stop(&r);
}
END_TEST

START_TEST(blocks_may_outlive_the_pool)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  begin_graph_capture(g, 1);
  char *a = rig_malloc(&r, 1, 10 * MIB), *b = rig_malloc(&r, 1, 10 * MIB);
  end_graph_capture(g, 1);
  release(g);
  release(g);
  memset(a, 1, 10 * MIB);
  memset(b, 1, 10 * MIB);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 10 * MIB), a); /* an ordinary block of its stream now */
  rig_free(&r, a);
  rig_free(&r, b);
  void *all = rig_malloc(&r, 2, 60 * MIB);
  rig_free(&r, all);
  rig_stop(&r);
}
END_TEST

START_TEST(two_graphs_share_a_pool_until_the_last_is_gone)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  begin_graph_capture(g, 1);
  void *a = rig_malloc(&r, 1, 30 * MIB);
  rig_free(&r, a);
  end_graph_capture(g, 1);
  release(g); /* the handle: the first graph still uses it */
  begin_graph_capture(g, 2);
  ck_assert_ptr_eq(rig_malloc(&r, 2, 30 * MIB), a); /* another stream of the pool, work complete */
  rig_free(&r, a);
  end_graph_capture(g, 2);
  ck_assert_uint_eq(graph_pool_stats(g).uses, 2);
  release(g);
  void *out;
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 60 * MIB, &out), WEIR_EOOM);
  release(g);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 60 * MIB, &out), WEIR_OK);
  rig_free(&r, out);
  rig_stop(&r);
}
END_TEST

START_TEST(pools_are_apart_from_each_other)
{
  start_graph_rig(256 * MIB, _i);
  weir_graph_pool *g[2] = {new_pool(), new_pool()};
  ck_assert_uint_ne(graph_pool_stats(g[0]).id, graph_pool_stats(g[1]).id);
  begin_graph_capture(g[0], 1);
  begin_graph_capture(g[1], 2);
  char *a = rig_malloc(&r, 1, 20 * MIB);
  rig_free(&r, a);
  char *b = rig_malloc(&r, 2, 20 * MIB);
  ck_assert(!inside(b, a, 20 * MIB));
  end_graph_capture(g[0], 1);
  begin_graph_capture(g[1], 1);
  char *c = rig_malloc(&r, 1, 20 * MIB);
  ck_assert(!inside(c, a, 20 * MIB));
  end_graph_capture(g[1], 1);
  end_graph_capture(g[1], 2);
  rig_free(&r, b);
  rig_free(&r, c);
  for (int i = 0; i < 5; i++)
    release(g[i % 2 || i == 4]);
  rig_stop(&r);
}
END_TEST

START_TEST(a_block_other_streams_used_waits_for_the_end_of_their_capture)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  begin_graph_capture(g, 1);
  r.f.streams[2].capturing = true; /* forked into the capture */
  void *a = rig_malloc(&r, 1, 10 * MIB);
  ck_assert_int_eq(pool_use(a, rig_stream(&r, 2)), WEIR_OK);
  rig_free(&r, a);
  void *b = rig_malloc(&r, 1, 10 * MIB);
  ck_assert_ptr_ne(a, b);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 20 * MIB);
  r.f.streams[2].capturing = false;
  end_graph_capture(g, 1);
  begin_graph_capture(g, 1);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 10 * MIB), a);
  end_graph_capture(g, 1);
  rig_free(&r, a);
  rig_free(&r, b);
  for (int i = 0; i < 3; i++)
    release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(a_capture_without_a_pool_is_not_disturbed)
{
  start_graph_rig(24 * MIB, _i);
  void *out, *keep = rig_malloc(&r, 1, 4 * MIB), *plain = rig_malloc(&r, 0, 4 * MIB);
  fake_hold(&r.f, 2);
  void *busy = rig_malloc(&r, 2, 8 * MIB);
  fake_submit(&r.f, 2, nothing, NULL);
  r.f.streams[1].capturing = true;
  rig_free(&r, busy);
  rig_free(&r, plain);
  rig_free(&r, keep);
  /* Steals, waits and syncs are tried in vain; the device counts each that breaks the capture. */
  void *a = rig_malloc(&r, 1, 4 * MIB);
  (void)weir_tcache_malloc(rig_stream(&r, 1), 20 * MIB, &out);
  rig_check(&r);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_uint_eq(r.f.waits, 0);
  ck_assert_uint_eq(r.f.offences, 0);
  r.f.streams[1].capturing = false;
  rig_free(&r, a);
  fake_release(&r.f, 2);
  rig_stop(&r);
}
END_TEST

START_TEST(nothing_is_recorded_between_begin_and_the_capture)
{
  start_graph_rig(64 * MIB, 0);
  weir_graph_pool *g = new_pool();
  rig_free(&r, rig_malloc(&r, 1, 4 * MIB));
  rig_free(&r, rig_malloc(&r, 0, 4 * MIB));
  ck_assert_int_eq(weir_graph_pool_begin(g, stream(1)), WEIR_OK);
  rig_free(&r, rig_malloc(&r, 1, 4 * MIB));
  uint64_t before = r.f.records;
  void *a = rig_malloc(&r, 2, 40 * MIB); /* would ask both streams */
  ck_assert_uint_eq(r.f.records, before);
  rig_free(&r, a);
  ck_assert_int_eq(weir_graph_pool_end(g, stream(1)), WEIR_OK);
  rig_free(&r, rig_malloc(&r, 3, 41 * MIB));
  ck_assert_uint_gt(r.f.records, before);
  release(g);
  release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(budgets_hold_for_private_pools_too)
{
  rig_start(&r, 256 * MIB, ways[_i].page, "limit_mb:50");
  weir_graph_pool *g = new_pool();
  void *out;
  begin_graph_capture(g, 1);
  void *a = rig_malloc(&r, 1, 30 * MIB);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 30 * MIB, &out), WEIR_EOOM);
  end_graph_capture(g, 1);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 30 * MIB, &out), WEIR_EOOM);
  r.p->fraction = 0.125;
  begin_graph_capture(g, 1);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 10 * MIB, &out), WEIR_EOOM);
  end_graph_capture(g, 1);
  r.p->fraction = 1;
  rig_free(&r, a);
  for (int i = 0; i < 3; i++)
    release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(a_captured_request_takes_what_is_idle_elsewhere)
{
  start_graph_rig(64 * MIB, _i);
  weir_graph_pool *g = new_pool();
  rig_free(&r, rig_malloc(&r, 2, 60 * MIB)); /* cached by another stream */
  begin_graph_capture(g, 1);
  void *a = rig_malloc(&r, 1, 50 * MIB);
  end_graph_capture(g, 1);
  rig_free(&r, a);
  release(g);
  release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(wrong_calls_are_refused_and_change_nothing)
{
  start_graph_rig(64 * MIB, 0);
  weir_graph_pool *g = new_pool(), *h = new_pool();
  ck_assert_int_eq(weir_graph_pool_end(g, stream(1)), WEIR_EINVAL);
  begin_graph_capture(g, 1);
  ck_assert_int_eq(weir_graph_pool_begin(g, stream(1)), WEIR_EINVAL);
  ck_assert_int_eq(weir_graph_pool_begin(h, stream(1)), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "the stream allocates to a private pool already");
  ck_assert_int_eq(weir_graph_pool_end(h, stream(1)), WEIR_EINVAL);
  release(g);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "is being allocated to"));
  void *a = rig_malloc(&r, 1, 4 * MIB);
  end_graph_capture(g, 1);
  ck_assert_int_eq(pool_free(r.p), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "2 private pools of graphs were not released");
  fake_hold(&r.f, 1);
  fake_submit(&r.f, 1, nothing, NULL);
  release(g);
  ck_assert_int_eq(weir_graph_pool_begin(g, stream(1)), WEIR_EINVAL); /* dying */
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_EINVAL);
  fake_release(&r.f, 1);
  release(h);
  rig_free(&r, a);
  static rig other;
  rig_start(&other, 64 * MIB, 2 * MIB, NULL);
  h = new_pool();
  ck_assert_int_eq(weir_graph_pool_begin(h, (weir_stream *)rig_stream(&other, 1)), WEIR_EINVAL);
  release(h);
  rig_stop(&other);
  rig_stop(&r);
}
END_TEST

START_TEST(there_can_be_many_captures_up_to_a_limit)
{
  start_graph_rig(256 * MIB, 0);
  weir_graph_pool *g = new_pool();
  for (int i = 1; i <= CAPTURES; i++)
    begin_graph_capture(g, i);
  ck_assert_int_eq(weir_graph_pool_begin(g, stream(CAPTURES + 1)), WEIR_ELIMIT);
  for (int i = 1; i <= CAPTURES; i++)
    rig_free(&r, rig_malloc(&r, i, MIB));
  for (int i = 1; i <= CAPTURES; i++) {
    end_graph_capture(g, i);
    release(g);
  }
  release(g);
  rig_stop(&r);
}
END_TEST

START_TEST(a_device_hands_out_private_pools)
{
  fake f;
  weir_graph_pool *g;
  weir_stream *s;
  void *out = NULL;
  const weir_device cuda0 = WEIR_CUDA_AT(0);
  ck_assert_int_ne(weir_graph_pool_create(&g, cuda0), WEIR_OK);
  fake_init(&f, 64 * MIB, 2 * MIB);
  ck_assert_int_eq(weir_memory_attach(&f.backend, NULL), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_create(&g, cuda0), WEIR_OK);
  ck_assert_int_eq(weir_stream_from_native(&s, cuda0, fake_handle(&f, 1)), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_begin(g, s), WEIR_OK);
  WEIR_WITH_STREAM(s) ck_assert_int_eq(weir_malloc(&out, 100, cuda0, NULL), WEIR_OK);
  ck_assert_uint_eq(graph_pool_stats(g).allocated_bytes, 512);
  ck_assert_int_eq(weir_graph_pool_end(g, s), WEIR_OK);
  ck_assert_int_eq(weir_memory_detach(cuda0), WEIR_EINVAL);
  ck_assert_int_eq(weir_free(out), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  ck_assert_msg(weir_memory_detach(cuda0) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = SANITIZED ? 60 : 400 };

static void churn_stream_heap(int s, uint64_t *seed)
{
  void *at[12];
  for (int i = 0; i < 12; i++) {
    uint64_t bytes = 1 + rig_random(seed) % (i % 4 ? 5000 : 3 * MIB);
    ck_assert_int_eq(weir_tcache_malloc(r.s[s], bytes, &at[i]), WEIR_OK);
    *(volatile char *)at[i] = 1;
  }
  for (int i = 0; i < 12; i++)
    ck_assert_int_eq(weir_tcache_free(at[i]), WEIR_OK);
}

/* Half of the threads capture on streams of their own, the others allocate on one that is shared.
 */
static void *worker(void *number)
{
  int s = (int)(uintptr_t)number;
  uint64_t seed = (uint64_t)s;
  for (int i = 0; i < ROUNDS; i++) {
    if (s % 2) {
      churn_stream_heap(2, &seed);
      continue;
    }
    weir_graph_pool *g = new_pool();
    ck_assert_int_eq(weir_graph_pool_begin(g, (weir_stream *)r.s[s]), WEIR_OK);
    churn_stream_heap(s, &seed);
    ck_assert_int_eq(weir_graph_pool_end(g, (weir_stream *)r.s[s]), WEIR_OK);
    churn_stream_heap(s, &seed);
    ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
    ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  }
  return NULL;
}

START_TEST(threads_capture_beside_threads_that_do_not)
{
  pthread_t id[THREADS];
  /* A released pool waits for the captures of other streams: memory enough for many. */
  rig_start(&r, 16384 * MIB, 2 * MIB, NULL);
  for (int i = 1; i <= THREADS; i++)
    (void)rig_stream(&r, i);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&id[i], NULL, worker, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(id[i], NULL), 0);
  rig_check(&r);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 0);
  rig_stop(&r);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("graph");
  TCase *t = tcase_create("private pools");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, what_is_freed_in_a_capture_serves_the_capture_only, 0, WAYS);
  tcase_add_loop_test(t, a_living_pool_gives_nothing_back_whatever_happens, 0, WAYS);
  tcase_add_test(t, small_blocks_pass_by_the_thread_caches_while_a_stream_is_captured);
  tcase_add_loop_test(t, all_captures_of_a_device_can_share_a_pool, 0, WAYS);
  tcase_add_loop_test(t, memory_of_a_released_pool_waits_for_the_replays, 0, WAYS);
  tcase_add_loop_test(t, emptying_the_cache_waits_for_nothing_during_a_capture, 0, WAYS);
  tcase_add_loop_test(t, blocks_may_outlive_the_pool, 0, WAYS);
  tcase_add_loop_test(t, two_graphs_share_a_pool_until_the_last_is_gone, 0, WAYS);
  tcase_add_loop_test(t, pools_are_apart_from_each_other, 0, WAYS);
  tcase_add_loop_test(t, a_block_other_streams_used_waits_for_the_end_of_their_capture, 0, WAYS);
  tcase_add_loop_test(t, a_capture_without_a_pool_is_not_disturbed, 0, WAYS);
  tcase_add_test(t, nothing_is_recorded_between_begin_and_the_capture);
  tcase_add_loop_test(t, budgets_hold_for_private_pools_too, 0, 2);
  tcase_add_loop_test(t, a_captured_request_takes_what_is_idle_elsewhere, 0, WAYS);
  tcase_add_test(t, wrong_calls_are_refused_and_change_nothing);
  tcase_add_test(t, there_can_be_many_captures_up_to_a_limit);
  tcase_add_test(t, a_device_hands_out_private_pools);
  tcase_add_test(t, threads_capture_beside_threads_that_do_not);
  suite_add_tcase(s, t);
  return rig_run(s);
}
