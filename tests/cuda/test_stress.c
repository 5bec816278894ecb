/* test_stress.c: random programs on many threads and streams, with data: a block is filled by a
 * memset on its stream and read back by a later copy, on the same stream or on one that was told
 * of; whoever else touched it meanwhile is found. Streams are held and let go at random. */
#include <stdatomic.h>
#include "tests/cuda/rig.h"
#include "tests/level.h"

enum {
  STEPS = AT_LEVEL(SANITIZED ? 2400 : 6400, 40000, 160000),
  SLOTS = AT_LEVEL(1 << 16, 1 << 18, 1 << 20)
};

enum { THREADS = 64, STREAMS = 12, LIVE = 12, SHARED = 64, SAMPLES = 8 };

static rig r;
static _Atomic int wrong, failed;
static pthread_mutex_t gates = PTHREAD_MUTEX_INITIALIZER;

/* What a copy reads back. Slots are pinned, and used once: nothing has to wait for one. */
typedef struct slot {
  uint32_t word[SAMPLES];
  uint32_t mark;
} slot;

static slot *slots;
static _Atomic unsigned slot_count;

typedef struct piece {
  CUdeviceptr at;
  uint64_t words;
  uint32_t mark;
} piece;

static void keep_cuda_error(CUresult result)
{
  if (result) atomic_store(&failed, (int)result);
}

/* ---- the device, when the allocator waits for it: then nothing is held ----------------------- */

static void open_all(void)
{
  for (int i = 1; i < STREAMS; i++)
    gate_open_all(&r.lanes[i]);
}

static weir_status sync_released(void *self, void *event)
{
  pthread_mutex_lock(&gates);
  open_all();
  weir_status st = r.real->event_sync(self, event);
  pthread_mutex_unlock(&gates);
  return st;
}

static weir_status free_released(void *self, uint64_t address, uint64_t bytes)
{
  pthread_mutex_lock(&gates);
  open_all();
  weir_status st = r.real->source.segment_free(self, address, bytes);
  pthread_mutex_unlock(&gates);
  return st;
}

static weir_status unmap_released(void *self, uint64_t address, uint64_t bytes)
{
  pthread_mutex_lock(&gates);
  open_all();
  weir_status st = r.real->source.unmap(self, address, bytes);
  pthread_mutex_unlock(&gates);
  return st;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool allocate(piece *p, int stream, uint64_t bytes, uint32_t mark)
{
  void *out;
  weir_status st = weir_tcache_malloc(r.lanes[stream].heap, bytes, &out);
  if (st == WEIR_EOOM) return false;
  weir_ok(st);
  *p = (piece){(CUdeviceptr)(uintptr_t)out, bytes / 4, mark};
  keep_cuda_error(cuMemsetD32Async(p->at, mark, p->words, r.lanes[stream].stream));
  return true;
}

/* Frees after the last use, on the block's stream or on another that was told of. */
static void finish(const piece *p, int stream, int other, CUevent told)
{
  void *at = (void *)(uintptr_t)p->at;
  unsigned n = atomic_fetch_add(&slot_count, 1);
  if (other != stream) {
    keep_cuda_error(cuEventRecord(told, r.lanes[stream].stream));
    keep_cuda_error(cuStreamWaitEvent(r.lanes[other].stream, told, 0));
    weir_ok(pool_use(at, r.lanes[other].heap));
  }
  if (n < SLOTS) {
    slots[n].mark = p->mark;
    for (int i = 0; i < SAMPLES; i++)
      keep_cuda_error(cuMemcpyDtoHAsync(&slots[n].word[i],
                                        p->at + 4 * (p->words - 1) * (unsigned)i / 7 / 4 * 4, 4,
                                        r.lanes[other].stream));
  }
  weir_ok(weir_tcache_free(at));
}

static struct box {
  pthread_mutex_t lock;
  piece p;
  int stream;
  bool full;
} boxes[SHARED]; /* blocks that change hands between threads */

/* Puts a block into a box and frees what was there. */
static void exchange(const piece *p, int stream, uint64_t *seed, CUevent told)
{
  struct box *b = &boxes[rig_random(seed) % SHARED];
  pthread_mutex_lock(&b->lock);
  struct box old = {.p = b->p, .stream = b->stream, .full = b->full};
  b->p = *p;
  b->stream = stream;
  b->full = true;
  pthread_mutex_unlock(&b->lock);
  if (!old.full) return;
  int other = rig_random(seed) % 4 ? old.stream : (int)(rig_random(seed) % STREAMS);
  finish(&old.p, old.stream, other, told);
}

static uint64_t some_bytes(uint64_t *seed)
{
  uint64_t kind = rig_random(seed) % 16;
  return 8 + rig_random(seed) % (kind < 12 ? 8 * KIB : kind < 15 ? 200 * KIB : 3 * MIB);
}

typedef struct worker {
  pthread_t id;
  uint64_t seed;
  CUevent told;
  piece mine[LIVE];
  int home[LIVE]; /* stream, -1: no block */
} worker;

static void step_lane_worker(worker *w)
{
  uint64_t *seed = &w->seed;
  int k = (int)(rig_random(seed) % LIVE), s = (int)(rig_random(seed) % STREAMS);
  if (w->home[k] >= 0) {
    if (rig_random(seed) % 4 == 0)
      exchange(&w->mine[k], w->home[k], seed, w->told);
    else
      finish(&w->mine[k], w->home[k], rig_random(seed) % 8 ? w->home[k] : s, w->told);
    w->home[k] = -1;
  } else if (allocate(&w->mine[k], s, some_bytes(seed), (uint32_t)rig_random(seed))) {
    w->home[k] = s;
  }
  uint64_t what = rig_random(seed) % 200;
  if (what < 4) {
    lane *l = &r.lanes[1 + rig_random(seed) % (STREAMS - 1)];
    pthread_mutex_lock(&gates);
    if (what)
      gate_open_all(l);
    else
      gate_add(l);
    pthread_mutex_unlock(&gates);
  }
  if (what == 5) weir_ok(weir_pool_empty(r.p));
}

static void *run_lane_worker(void *argument)
{
  worker *w = argument;
  keep_cuda_error(cuCtxSetCurrent(r.context));
  keep_cuda_error(cuEventCreate(&w->told, CU_EVENT_DISABLE_TIMING));
  for (int i = 0; i < STEPS / THREADS * 4; i++)
    step_lane_worker(w);
  for (int k = 0; k < LIVE; k++)
    if (w->home[k] >= 0) finish(&w->mine[k], w->home[k], w->home[k], w->told);
  return NULL;
}

static void run_threads(int threads)
{
  static worker workers[THREADS];
  for (int i = 0; i < SHARED; i++)
    pthread_mutex_init(&boxes[i].lock, NULL);
  for (int i = 0; i < threads; i++) {
    workers[i].seed = (uint64_t)(i + 1) * 977;
    memset(workers[i].home, -1, sizeof workers[i].home);
    ck_assert_int_eq(pthread_create(&workers[i].id, NULL, run_lane_worker, &workers[i]), 0);
  }
  for (int i = 0; i < threads; i++)
    pthread_join(workers[i].id, NULL);
  for (int i = 0; i < SHARED; i++)
    if (boxes[i].full) finish(&boxes[i].p, boxes[i].stream, boxes[i].stream, workers[0].told);
  open_all();
  ok(cuCtxSynchronize());
  for (unsigned n = 0; n < slot_count && n < SLOTS; n++)
    for (int i = 0; i < SAMPLES; i++)
      wrong += slots[n].word[i] != slots[n].mark;
}

static const struct way {
  const char *conf;
  int threads;
} ways[] = {{NULL, THREADS},
            {"limit_mb:40", 8}, /* tight: waits, stitches, syncs, errors */
            {"expandable_segments:False", 16},
            {"limit_mb:64,decay_ms:1", 4},
            {"limit_mb:512,whole_block:on", 8}};

START_TEST(threads_never_meet_in_a_block)
{
  const struct way *w = &ways[_i];
  rig_open(&r);
  rig_lanes(&r, STREAMS);
  r.backend.event_sync = sync_released;
  r.backend.source.segment_free = free_released;
  if (r.backend.source.unmap) r.backend.source.unmap = unmap_released;
  ok(cuMemHostAlloc((void **)&slots, SLOTS * sizeof *slots, 0));
  rig_pool(&r, w->conf);
  run_threads(w->threads);
  ck_assert_int_eq(failed, 0);
  ck_assert_int_eq(wrong, 0);
  ck_assert_uint_gt(slot_count, STEPS / THREADS * (unsigned)w->threads);
  rig_check(&r);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 0);
  ck_assert_int_eq(RIG_STAT(&r, requested_bytes), 0);
  rig_end(&r);
}
END_TEST

int main(void)
{
  static const TTest *tests[2];
  tests[0] = threads_never_meet_in_a_block;
  return rig_run("cuda/stress", tests, (int)(sizeof ways / sizeof *ways));
}
