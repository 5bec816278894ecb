/* test_reuse.c: memory and streams: never handed out while work may touch it.
 *
 * First the reuse order, step by step, on held streams. Then a model checker: every schedule of a
 * small program up to a bound, each run from the start on a fresh pool. A schedule is a string of
 * actions (malloc, launch, free, record_stream, depend, step a stream); work carries an owner mark
 * of its block, and finds out when it runs whether the block had become somebody else's. A capture
 * keeps the work that its stream was given meanwhile, and a replay submits it again, any number of
 * times, also after the blocks were freed. */
#include <stdio.h>
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

static rig r;

static void start_reuse_rig(uint64_t capacity, const char *conf)
{
  rig_start(&r, capacity, 2 * MIB, conf);
}

START_TEST(the_same_stream_reuses_at_once)
{
  start_reuse_rig(64 * MIB, NULL);
  fake_hold(&r.f, 1);
  void *a = rig_malloc(&r, 1, 3 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 3 * MIB), a);
  ck_assert_uint_eq(r.f.records + r.f.waits + r.f.syncs, 0);
  rig_free(&r, a);
  fake_release(&r.f, 1);
  rig_stop(&r);
}
END_TEST

START_TEST(another_stream_reuses_what_is_complete_and_grows_beside_what_is_not)
{
  start_reuse_rig(64 * MIB, NULL);
  fake_hold(&r.f, 1);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, a);
  void *b = rig_malloc(&r, 2, 4 * MIB);
  ck_assert_ptr_ne(a, b);
  fake_release(&r.f, 1);
  void *c = rig_malloc(&r, 2, 4 * MIB);
  ck_assert_ptr_eq(a, c);
  ck_assert_uint_eq(r.f.waits + r.f.syncs, 0);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 8 * MIB);
  rig_free(&r, b);
  rig_free(&r, c);
  rig_stop(&r);
}
END_TEST

START_TEST(a_known_dependency_is_used)
{
  start_reuse_rig(64 * MIB, NULL);
  fake_hold(&r.f, 1);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, a);
  fake_depend(&r.f, 2, 1);
  epoch_depend(rig_stream(&r, 2), rig_stream(&r, 1));
  ck_assert_ptr_eq(rig_malloc(&r, 2, 4 * MIB), a);
  ck_assert_uint_eq(r.f.waits + r.f.syncs, 0);
  rig_free(&r, a);
  fake_release(&r.f, 1);
  rig_stop(&r);
}
END_TEST

START_TEST(a_wait_comes_before_a_sync)
{
  start_reuse_rig(8 * MIB, NULL);
  fake_hold(&r.f, 1);
  void *a = rig_malloc(&r, 1, 6 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 2, 6 * MIB), a);
  ck_assert_uint_eq(r.f.waits, 1);
  ck_assert_uint_eq(r.f.syncs, 0);
  rig_free(&r, a);
  fake_release(&r.f, 1);
  rig_stop(&r);
}
END_TEST

START_TEST(a_wait_is_preferred_above_the_soft_limit)
{
  start_reuse_rig(64 * MIB, "soft_limit_mb:8");
  fake_hold(&r.f, 1);
  void *a = rig_malloc(&r, 1, 6 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 2, 6 * MIB), a);
  void *b = rig_malloc(&r, 2, 6 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 12 * MIB);
  rig_free(&r, a);
  rig_free(&r, b);
  fake_release(&r.f, 1);
  rig_stop(&r);
}
END_TEST

START_TEST(pieces_of_busy_streams_are_had_by_a_sync)
{
  start_reuse_rig(8 * MIB, NULL);
  void *a[4];
  for (int i = 0; i < 4; i++)
    a[i] = rig_malloc(&r, 1 + i % 2, 2 * MIB);
  for (int i = 1; i <= 2; i++) {
    fake_hold(&r.f, i);
    fake_submit(&r.f, i, nothing, NULL);
  }
  for (int i = 0; i < 4; i++)
    rig_free(&r, a[i]);
  void *all = rig_malloc(&r, 3, 8 * MIB);
  ck_assert_uint_gt(r.f.syncs, 0);
  rig_free(&r, all);
  rig_stop(&r);
}
END_TEST

START_TEST(a_recorded_stream_holds_the_block_back)
{
  start_reuse_rig(64 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  fake_hold(&r.f, 2);
  fake_submit(&r.f, 2, nothing, NULL);
  ck_assert_int_eq(pool_use(a, rig_stream(&r, 2)), WEIR_OK);
  ck_assert_int_eq(pool_use(a, rig_stream(&r, 2)), WEIR_OK);
  rig_free(&r, a);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 4 * MIB);
  void *b = rig_malloc(&r, 1, 4 * MIB);
  ck_assert_ptr_ne(a, b);
  fake_release(&r.f, 2);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 4 * MIB), a);
  ck_assert_uint_eq(r.f.syncs, 0);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(one_marker_serves_many_frees)
{
  start_reuse_rig(256 * MIB, NULL);
  void *a[40];
  for (int i = 0; i < 40; i++)
    a[i] = rig_malloc(&r, 1, 2 * MIB);
  for (int i = 0; i < 40; i++)
    rig_free(&r, a[i]);
  uint64_t before = r.f.records;
  void *b = rig_malloc(&r, 2, 80 * MIB);
  ck_assert_uint_eq(r.f.records - before, 1);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(nothing_is_recorded_in_a_stream_under_capture)
{
  start_reuse_rig(64 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  r.f.streams[1].capturing = true;
  rig_free(&r, a);
  void *b = rig_malloc(&r, 2, 4 * MIB); /* the fake fails a record in a captured stream */
  ck_assert_ptr_ne(a, b);
  r.f.streams[1].capturing = false;
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(a_side_stream_used_once_strands_nothing)
{
  start_reuse_rig(1024 * MIB, NULL);
  void *side = rig_malloc(&r, 1, 100 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  rig_free(&r, side);
  void *a = rig_malloc(&r, 2, 60 * MIB), *b = rig_malloc(&r, 2, 40 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 100 * MIB);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

static void release_rig_stream(int stream)
{
  ck_assert_msg(weir_stream_release((weir_stream *)rig_stream(&r, stream)) == WEIR_OK, "%s",
                weir_error_message());
  r.s[stream] = NULL;
  rig_check(&r);
}

/* At most 1 % of what a stream used once had is missing to the others: here nothing. */
START_TEST(a_stream_that_is_released_strands_nothing)
{
  start_reuse_rig(100 * MIB, NULL);
  enum { N = 30 };
  void *at[N];
  uint64_t seed = 1;
  for (int i = 0; i < N; i++)
    at[i] = rig_malloc(&r, 1, 1 + rig_random(&seed) % (i % 2 ? 6 * MIB : 200 * KIB));
  fake_hold(&r.f, 1);
  fake_submit(&r.f, 1, nothing, NULL);
  for (int i = 0; i < N - 1; i++)
    rig_free(&r, at[i]);
  release_rig_stream(1);
  uint64_t records = r.f.records;
  void *busy = rig_malloc(&r, 2, MIB); /* the work is not complete: nothing of it is taken */
  ck_assert_int_eq(RIG_STAT(&r, allocation), 2);
  fake_release(&r.f, 1);
  rig_free(&r, busy);
  rig_free(&r, at[N - 1]); /* freed after its stream is gone */
  void *all = rig_malloc(&r, 2, 100 * MIB);
  ck_assert_uint_le(r.f.records, records + 1); /* none in the stream that may be destroyed */
  ck_assert_uint_eq(r.f.syncs, 0);
  rig_free(&r, all);
  rig_stop(&r);
}
END_TEST

START_TEST(streams_may_come_and_go_without_end)
{
  start_reuse_rig(64 * MIB, NULL);
  void *kept = NULL;
  for (int i = 0; i < 3 * HEAPS; i++) {
    void *at;
    ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 1), 700, &at), WEIR_OK);
    ck_assert_int_eq(weir_stream_release((weir_stream *)r.s[1]), WEIR_OK);
    r.s[1] = NULL;
    if (kept) ck_assert_int_eq(weir_tcache_free(kept), WEIR_OK);
    kept = at;
  }
  rig_check(&r);
  ck_assert_uint_le(r.p->heap_count, 3);
  rig_free(&r, kept);
  rig_stop(&r);
}
END_TEST

START_TEST(a_released_stream_is_refused_and_its_heap_waits_for_its_work)
{
  start_reuse_rig(64 * MIB, NULL);
  mem_heap *old = rig_stream(&r, 1);
  void *out, *a = rig_malloc(&r, 1, 2 * MIB), *b = rig_malloc(&r, 2, 2 * MIB);
  fake_hold(&r.f, 1);
  fake_submit(&r.f, 1, nothing, NULL);
  ck_assert_int_eq(weir_stream_release((weir_stream *)rig_stream(&r, 0)), WEIR_EINVAL);
  r.f.streams[1].capturing = true;
  ck_assert_int_eq(weir_stream_release((weir_stream *)old), WEIR_EINVAL);
  r.f.streams[1].capturing = false;
  fake_fail(&r.f, 1, false, WEIR_ECUDA);
  ck_assert_int_eq(weir_stream_release((weir_stream *)old), WEIR_ECUDA);
  release_rig_stream(1);
  ck_assert_int_eq(weir_stream_release((weir_stream *)old), WEIR_EINVAL);
  ck_assert_int_eq(weir_tcache_malloc(old, 100, &out), WEIR_EINVAL);
  ck_assert_int_eq(pool_use(b, old), WEIR_EINVAL);
  ck_assert_ptr_ne(rig_stream(&r, 3), old); /* its work is still running */
  fake_release(&r.f, 1);
  ck_assert_ptr_eq(rig_stream(&r, 4), old);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 4, 2 * MIB), a);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

/* ---- the model checker ------------------------------------------------------------------------
 * Two streams, both held; blocks of 2 or 4 MiB on a device of 6 MiB, so that every step of the
 * reuse order is needed. owner[page] is who may touch a page: set when a block is handed out, as
 * seen by the stream's own order; a launch carries the number its block had. */

enum { MODEL_BLOCKS = 2 };

typedef struct launch {
  uint64_t *at; /* the block's first and last word of every page */
  uint64_t bytes;
  uint64_t number; /* the owner's */
  bool first;      /* writes; later work of the same owner must find what it wrote */
} launch;

enum { MODEL_GRAPH = 16, MODEL_WORK = 192 };

static struct model {
  void *at[MODEL_BLOCKS];
  uint64_t bytes[MODEL_BLOCKS], number[MODEL_BLOCKS];
  int home[MODEL_BLOCKS];
  enum { PLAIN, GRAPH, ORPHAN } ours[MODEL_BLOCKS]; /* orphan: its graph is gone */
  launch work[MODEL_WORK];
  int launched;
  weir_graph_pool *graph;
  launch captured[MODEL_GRAPH]; /* of all graphs of the pool, in their order */
  int captures;
  bool capturing;
  uint64_t numbers;
  bool wrong;
} m;

static void check_and_mark_block(void *argument)
{
  const launch *l = argument;
  for (uint64_t i = 0; i < l->bytes / 8; i += MIB / 8) {
    if (!l->first && l->at[i] != l->number) m.wrong = true;
    l->at[i] = l->number;
  }
}

static void submit(int stream, int b, bool first)
{
  if (m.capturing && stream == 1) {
    m.captured[m.captures++] = (launch){(uint64_t *)m.at[b], m.bytes[b], m.number[b], first};
    return;
  }
  launch *l = &m.work[m.launched++];
  *l = (launch){(uint64_t *)m.at[b], m.bytes[b], m.number[b], first};
  fake_submit(&r.f, stream, check_and_mark_block, l);
}

static bool do_malloc(int b, int stream)
{
  if (m.at[b]) return false;
  if (m.captures > MODEL_GRAPH - 3 && m.capturing) return false;
  m.bytes[b] = (uint64_t)(b + 1) * 2 * MIB;
  weir_status st = weir_tcache_malloc(rig_stream(&r, stream), m.bytes[b], &m.at[b]);
  rig_check(&r);
  ck_assert(!st || (st == WEIR_EOOM && m.graph)); /* only what a graph keeps may be missing */
  if (st) m.at[b] = NULL;
  if (st) return false;
  m.ours[b] = m.capturing && stream == 1 ? GRAPH : PLAIN;
  m.number[b] = ++m.numbers;
  m.home[b] = stream;
  submit(stream, b, true);
  return true;
}

static bool do_free(int b)
{
  if (!m.at[b]) return false;
  /* The latest work that may still see the block. What a capture uses must not be freed unless it
   * is the capture's; what a graph wrote, only its next replay may look at. */
  if (m.ours[b] == (m.capturing && m.home[b] == 1 ? GRAPH : PLAIN)) submit(m.home[b], b, false);
  rig_free(&r, m.at[b]);
  m.at[b] = NULL;
  return true;
}

/* Uses a block on the other stream, ordered after its home by an event, told by record_stream. */
static bool do_share(int b)
{
  if (!m.at[b] || m.capturing || m.ours[b]) return false;
  int other = 3 - m.home[b];
  fake_depend(&r.f, other, m.home[b]);
  epoch_depend(rig_stream(&r, other), rig_stream(&r, m.home[b]));
  ck_assert_int_eq(pool_use(m.at[b], rig_stream(&r, other)), WEIR_OK);
  submit(other, b, false);
  return true;
}

static bool do_capture(void)
{
  mem_heap *h = rig_stream(&r, 1);
  if (m.capturing) {
    m.capturing = r.f.streams[1].capturing = false;
    return weir_graph_pool_end(m.graph, (weir_stream *)h) == WEIR_OK;
  }
  if (!m.graph) {
    pthread_mutex_lock(&r.p->lock);
    ck_assert_int_eq(graph_pool_new(r.p, &m.graph), WEIR_OK);
    pthread_mutex_unlock(&r.p->lock);
  }
  m.capturing = r.f.streams[1].capturing = true;
  return weir_graph_pool_begin(m.graph, (weir_stream *)h) == WEIR_OK;
}

/* All graphs once, in stream 2. */
static bool do_replay(void)
{
  if (m.capturing || !m.captures || m.launched + m.captures > MODEL_WORK - 8) return false;
  for (int i = 0; i < m.captures; i++) {
    launch *l = &m.work[m.launched++];
    *l = m.captured[i];
    fake_submit(&r.f, 2, check_and_mark_block, l);
  }
  return true;
}

/* All graphs and the handle are gone. */
static bool do_release(void)
{
  if (m.capturing || !m.graph) return false;
  weir_graph_pool_stats s;
  (void)rig_stream(&r, 2);
  ck_assert_int_eq(weir_graph_pool_get_stats(&s, m.graph), WEIR_OK);
  for (; s.uses; s.uses--)
    ck_assert_int_eq(weir_graph_pool_release(m.graph), WEIR_OK);
  m.graph = NULL;
  m.captures = 0;
  for (int b = 0; b < MODEL_BLOCKS; b++)
    if (m.ours[b] == GRAPH) m.ours[b] = ORPHAN;
  return true;
}

/* False: the action makes no sense here, so the schedule is another's prefix. */
static bool try_reuse_action(int action)
{
  if (action < 4) return do_malloc(action / 2, 1 + action % 2);
  if (action < 6) return do_free(action - 4);
  if (action < 8) return do_share(action - 6);
  if (action < 10) return fake_step(&r.f, action - 7);
  if (action == 10) return r.f.streams[1].held ? fake_release(&r.f, 1), true : false;
  if (action == 11) return weir_pool_empty(r.p) == WEIR_OK;
  if (action == 12) return do_capture();
  return action == 13 ? do_replay() : do_release();
}

enum { MODEL_ACTIONS = 15, PLAIN_ACTIONS = 12 };

static void finish_model(void)
{
  if (m.capturing) (void)do_capture();
  (void)do_replay();
  for (int b = 0; b < MODEL_BLOCKS; b++)
    (void)do_free(b);
  (void)do_release();
  fake_release(&r.f, 2);
  fake_release(&r.f, 1);
  rig_stop(&r);
}

static bool run_schedule(const int *actions, int count)
{
  memset(&m, 0, sizeof m);
  start_reuse_rig(6 * MIB, NULL);
  fake_hold(&r.f, 1);
  fake_hold(&r.f, 2);
  bool sense = true;
  for (int i = 0; i < count && sense; i++)
    sense = try_reuse_action(actions[i]);
  finish_model();
  return sense;
}

static int schedules;

/* The actions that meet in graphs: malloc on either stream, frees, steps, capture, replay, release.
 */
static const int graph_actions[] = {0, 3, 4, 5, 8, 9, 12, 13, 14};
static const int plain_actions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void explore(const int *some, int of, int *actions, int count, int bound)
{
  for (int k = 0; k < of; k++) {
    actions[count] = some[k];
    bool sense = run_schedule(actions, count + 1);
    schedules += sense;
    if (m.wrong) {
      char text[64] = "";
      for (int i = 0; i <= count; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", actions[i]);
      ck_abort_msg("memory in use was handed out: schedule %s", text);
    }
    if (sense && count + 1 < bound) explore(some, of, actions, count + 1, bound);
  }
}

START_TEST(no_schedule_hands_out_memory_in_use)
{
  int actions[16];
  schedules = 0;
  explore(plain_actions, PLAIN_ACTIONS, actions, 0, SANITIZED ? 4 : 5);
  ck_assert_int_gt(schedules, SANITIZED ? 300 : 3000);
}
END_TEST

START_TEST(no_schedule_hands_out_what_a_graph_may_touch)
{
  int actions[16];
  schedules = 0;
  explore(graph_actions, sizeof graph_actions / sizeof *graph_actions, actions, 0,
          SANITIZED ? 5 : 6);
  ck_assert_int_gt(schedules, SANITIZED ? 300 : 3000);
}
END_TEST

/* Longer schedules, drawn at random. */
START_TEST(random_schedules_hand_out_no_memory_in_use)
{
  uint64_t seed = (uint64_t)_i + 1;
  for (int round = 0; round < (SANITIZED ? 60 : 600); round++) {
    memset(&m, 0, sizeof m);
    start_reuse_rig(6 * MIB, round % 2 ? NULL : "soft_limit_mb:4");
    fake_hold(&r.f, 1);
    fake_hold(&r.f, 2);
    for (int i = 0; i < 40 && m.launched < MODEL_WORK - 8; i++)
      (void)try_reuse_action((int)(rig_random(&seed) % MODEL_ACTIONS));
    finish_model();
    ck_assert(!m.wrong);
  }
}
END_TEST

/* The checker can fail: an allocator told of a wait that was never made hands out memory in use. */
START_TEST(the_checker_sees_a_missing_wait)
{
  memset(&m, 0, sizeof m);
  start_reuse_rig(6 * MIB, NULL);
  fake_hold(&r.f, 1);
  fake_hold(&r.f, 2);
  (void)do_malloc(1, 1);
  (void)do_free(1);
  epoch_depend(rig_stream(&r, 2), rig_stream(&r, 1)); /* a lie */
  (void)do_malloc(1, 2);
  (void)fake_step(&r.f, 2);
  (void)fake_step(&r.f, 1);
  (void)fake_step(&r.f, 1);
  (void)do_free(1);
  fake_release(&r.f, 2);
  fake_release(&r.f, 1);
  rig_stop(&r);
  ck_assert(m.wrong);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reuse");
  TCase *t = tcase_create("order");
  tcase_add_test(t, the_same_stream_reuses_at_once);
  tcase_add_test(t, another_stream_reuses_what_is_complete_and_grows_beside_what_is_not);
  tcase_add_test(t, a_known_dependency_is_used);
  tcase_add_test(t, a_wait_comes_before_a_sync);
  tcase_add_test(t, a_wait_is_preferred_above_the_soft_limit);
  tcase_add_test(t, pieces_of_busy_streams_are_had_by_a_sync);
  tcase_add_test(t, a_recorded_stream_holds_the_block_back);
  tcase_add_test(t, one_marker_serves_many_frees);
  tcase_add_test(t, nothing_is_recorded_in_a_stream_under_capture);
  tcase_add_test(t, a_side_stream_used_once_strands_nothing);
  tcase_add_test(t, a_stream_that_is_released_strands_nothing);
  tcase_add_test(t, streams_may_come_and_go_without_end);
  tcase_add_test(t, a_released_stream_is_refused_and_its_heap_waits_for_its_work);
  suite_add_tcase(s, t);
  t = tcase_create("model");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, no_schedule_hands_out_memory_in_use);
  tcase_add_test(t, no_schedule_hands_out_what_a_graph_may_touch);
  tcase_add_loop_test(t, random_schedules_hand_out_no_memory_in_use, 0, 4);
  tcase_add_test(t, the_checker_sees_a_missing_wait);
  suite_add_tcase(s, t);
  return rig_run(s);
}
