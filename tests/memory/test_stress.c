/* test_stress.c: random programs on many threads and streams, with data patterns: every block is
 * filled by work on its stream and read back by later work; whoever else touched it meanwhile is
 * found. */
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/memory/rig.h"

enum { STEPS = AT_LEVEL(SANITIZED ? 300 : 2000, 20000, 160000) };
enum { FUZZ = AT_LEVEL(SANITIZED ? 4000 : 40000, 1000000, 10000000) };
enum { FUZZ_CHECK = AT_LEVEL(10, 1000, 5000) };

enum { THREADS = 64, STREAMS = 12, LIVE = 12, SHARED = 64 };

static rig r;
static _Atomic bool wrong;

typedef struct piece {
  uint64_t *at;
  uint64_t words, mark;
} piece;

static void mark_piece(void *argument)
{
  const piece *p = argument;
  for (uint64_t i = 0; i < p->words; i += 64)
    p->at[i] = p->mark + i;
}

static void verify(void *argument)
{
  piece *p = argument;
  for (uint64_t i = 0; i < p->words; i += 64)
    if (p->at[i] != p->mark + i) wrong = true;
  free(p);
}

static piece *allocate(int stream, uint64_t bytes, uint64_t mark)
{
  void *out;
  weir_status st = weir_tcache_malloc(r.s[stream], bytes, &out);
  if (st) {
    ck_assert_int_eq(st, WEIR_EOOM);
    return NULL;
  }
  piece *p = malloc(sizeof *p);
  *p = (piece){out, bytes / 8, mark};
  fake_submit(&r.f, stream, mark_piece, p);
  return p;
}

/* Frees after the last use, on the block's stream or on another that was told of. */
static void finish(piece *p, int stream, int other)
{
  void *at = p->at;
  if (other != stream) {
    fake_depend(&r.f, other, stream);
    ck_assert_int_eq(pool_use(at, r.s[other]), WEIR_OK);
  }
  fake_submit(&r.f, other, verify, p);
  ck_assert_int_eq(weir_tcache_free(at), WEIR_OK);
}

static struct box {
  pthread_mutex_t lock;
  piece *p;
  int stream;
} boxes[SHARED]; /* blocks that change hands between threads */

/* Puts a block into a box and frees what was there. */
static void exchange(piece *p, int stream, uint64_t *seed)
{
  struct box *b = &boxes[rig_random(seed) % SHARED];
  pthread_mutex_lock(&b->lock);
  piece *old = b->p;
  int from = b->stream;
  b->p = p;
  b->stream = stream;
  pthread_mutex_unlock(&b->lock);
  if (old) finish(old, from, rig_random(seed) % 4 ? from : (int)(rig_random(seed) % STREAMS));
}

static uint64_t some_bytes(uint64_t *seed)
{
  uint64_t kind = rig_random(seed) % 16;
  return 8 + rig_random(seed) % (kind < 12 ? 8 * KIB : kind < 15 ? 200 * KIB : 3 * MIB);
}

static void step_pool_pieces(piece **mine, int *home, uint64_t *seed)
{
  int k = (int)(rig_random(seed) % LIVE), s = (int)(rig_random(seed) % STREAMS);
  if (mine[k]) {
    if (rig_random(seed) % 4 == 0)
      exchange(mine[k], home[k], seed);
    else
      finish(mine[k], home[k], rig_random(seed) % 8 ? home[k] : s);
    mine[k] = NULL;
  } else if ((mine[k] = allocate(s, some_bytes(seed), rig_random(seed)))) {
    home[k] = s;
  }
  uint64_t what = rig_random(seed) % 200;
  if (what == 0) fake_hold(&r.f, s);
  if (what < 4) fake_release(&r.f, (int)(rig_random(seed) % STREAMS));
  if (what == 5) ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
}

static void *worker(void *number)
{
  uint64_t seed = (uint64_t)(uintptr_t)number * 977;
  piece *mine[LIVE] = {0};
  int home[LIVE];
  for (int i = 0; i < STEPS / THREADS * 8; i++)
    step_pool_pieces(mine, home, &seed);
  for (int k = 0; k < LIVE; k++)
    if (mine[k]) finish(mine[k], home[k], home[k]);
  return NULL;
}

static void run_threads(int threads)
{
  pthread_t ids[THREADS];
  for (int i = 0; i < SHARED; i++)
    pthread_mutex_init(&boxes[i].lock, NULL);
  for (int i = 0; i < STREAMS; i++)
    (void)rig_stream(&r, i);
  for (int i = 0; i < threads; i++)
    ck_assert_int_eq(pthread_create(&ids[i], NULL, worker, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  for (int i = 0; i < SHARED; i++)
    if (boxes[i].p) finish(boxes[i].p, boxes[i].stream, boxes[i].stream);
  for (int i = 0; i < FAKE_STREAMS; i++)
    fake_release(&r.f, i);
}

static const struct way {
  uint64_t capacity, page;
  const char *conf;
  int threads;
} ways[] = {{4096 * MIB, 2 * MIB, NULL, THREADS},
            {40 * MIB, 2 * MIB, NULL, 8}, /* tight: waits, stitches, syncs, errors */
            {4096 * MIB, 0, NULL, 16},
            {64 * MIB, 2 * MIB, "decay_ms:1", 4},
            {512 * MIB, 0, "whole_block:on", 8}}; /* a segment a block: few enough mappings */

START_TEST(threads_never_meet_in_a_block)
{
  const struct way *w = &ways[_i];
  rig_start(&r, w->capacity, w->page, w->conf);
  run_threads(w->threads);
  ck_assert(!wrong);
  rig_check(&r);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 0);
  ck_assert_int_eq(RIG_STAT(&r, requested_bytes), 0);
  rig_stop(&r);
}
END_TEST

START_TEST(invariants_hold_after_every_operation)
{
  static piece *mine[LIVE];
  static int home[LIVE];
  uint64_t seed = 11 + (uint64_t)_i;
  const struct way *w = &ways[_i];
  rig_start(&r, w->capacity, w->page, w->conf);
  for (int i = 0; i < SHARED; i++)
    pthread_mutex_init(&boxes[i].lock, NULL);
  for (int i = 0; i < STREAMS; i++)
    (void)rig_stream(&r, i);
  for (int i = 0; i < FUZZ / 5; i++) {
    step_pool_pieces(mine, home, &seed);
    rig_ms += i % 3 == 0;
    if (FUZZ <= 40000 ? i % FUZZ_CHECK == 0 || i < 2000 : i % FUZZ_CHECK == 0) rig_check(&r);
  }
  for (int k = 0; k < LIVE; k++)
    if (mine[k]) finish(mine[k], home[k], home[k]);
  for (int i = 0; i < SHARED; i++)
    if (boxes[i].p) finish(boxes[i].p, boxes[i].stream, boxes[i].stream);
  for (int i = 0; i < FAKE_STREAMS; i++)
    fake_release(&r.f, i);
  ck_assert(!wrong);
  rig_stop(&r);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("stress");
  TCase *t = tcase_create("random");
  tcase_set_timeout(t, 800);
  tcase_add_loop_test(t, threads_never_meet_in_a_block, 0, 5);
  tcase_add_loop_test(t, invariants_hold_after_every_operation, 0, 5);
  suite_add_tcase(s, t);
  return rig_run(s);
}
