/* test_pinned_stress.c: pinned memory under failures and under many threads: every Nth failure of
 * registration, of the device's own allocation, of host memory and of events; every small schedule
 * of allocating, using and freeing on two devices; and random programs whose work in streams reads
 * what the host wrote: whoever else was given the memory is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory/host.h"
#include "core/weir.h"
#include "tests/level.h"
#include "tests/memory/rig.h"

static fake f[2];
static const weir_device cuda[2] = {WEIR_CUDA_INIT(0), WEIR_CUDA_INIT(1)};

static void attach(int i, const char *conf)
{
  fake_init(&f[i], 64 * MIB, 2 * MIB);
  f[i].backend.index = i;
  ck_assert_msg(weir_memory_attach(&f[i].backend, conf) == WEIR_OK, "%s", weir_error_message());
}

static void detach(int i)
{
  ck_assert_msg(weir_memory_detach(cuda[i]) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f[i]));
  fake_fini(&f[i]);
}

static mem_pool *pool_of(void *ptr)
{
  return heap_table[block(page_map_find((uint64_t)ptr))->heap]->pool;
}

static int64_t figure(const char *name)
{
  int64_t value = -1;
  ck_assert_int_eq(weir_pinned_stat(&value, name), WEIR_OK);
  return value;
}

/* ---- failures -------------------------------------------------------------------------------- */

enum { SLOTS = 16 };

static mem_pool *pools[2]; /* by flags: plain, write-combined; those that were seen */

static void check_all(void)
{
  for (int i = 0; i < 2; i++) {
    const char *wrong = pools[i] ? pool_check(pools[i]) : NULL;
    ck_assert_msg(!wrong, "%s", wrong);
  }
}

static bool allocate(void **at, uint64_t *seed, int i)
{
  uint64_t kind = rig_random(seed) % 8, bytes = 1 + rig_random(seed) % (kind ? 200 * KIB : 5 * MIB);
  bool combined = rig_random(seed) % 4 == 0;
  void *out = at;
  (void)i;
  weir_status st =
      weir_pinned_malloc_flags(&out, bytes, cuda[0], combined ? WEIR_PINNED_WRITE_COMBINED : 0);
  if (st) {
    ck_assert_ptr_eq(out, at);
    return false;
  }
  *at = out;
  pools[combined] = pool_of(out);
  *(volatile char *)out = 1;
  ((volatile char *)out)[bytes - 1] = 1;
  ck_assert(fake_pinned(&f[0], out, bytes));
  return true;
}

/* A program that meets every path; failures are allowed everywhere. How many calls failed. */
static int program(void)
{
  void *at[SLOTS] = {0};
  uint64_t seed = 21;
  int failed = 0;
  for (int i = 0; i < 70; i++) {
    int k = (int)(rig_random(&seed) % SLOTS), s = (int)(rig_random(&seed) % 3);
    weir_stream *stream;
    if (weir_stream_from_native(&stream, cuda[0], fake_handle(&f[0], s))) {
      failed++;
      continue;
    }
    if (at[k]) {
      fake_submit(&f[0], s, nothing, NULL);
      if (i % 3) failed += weir_record_stream(at[k], stream) != WEIR_OK;
      ck_assert_int_eq(weir_pinned_free(at[k]), WEIR_OK);
      at[k] = NULL;
    } else {
      failed += !allocate(&at[k], &seed, i);
    }
    if (i % 20 == 19) failed += weir_pinned_empty_cache() != WEIR_OK;
    check_all();
  }
  for (int k = 0; k < SLOTS; k++)
    if (at[k]) ck_assert_int_eq(weir_pinned_free(at[k]), WEIR_OK);
  check_all();
  return failed;
}

/* The background thread counts as well. */
static uint64_t operations(fake *device)
{
  pthread_mutex_lock(&device->lock);
  uint64_t n = device->operations;
  pthread_mutex_unlock(&device->lock);
  return n;
}

/* The whole life with operation n from the first pinned memory on failing; false: there was none.
 */
static bool run_pinned_failing_op(uint64_t n, bool and_after, weir_status error, const char *conf)
{
  memset(pools, 0, sizeof pools);
  attach(0, conf);
  uint64_t before = operations(&f[0]);
  fake_fail(&f[0], n, and_after, error);
  fake_hold(&f[0], 2);
  (void)program();
  fake_release(&f[0], 2);
  fake_fail(&f[0], 0, false, WEIR_OK);
  bool met = operations(&f[0]) - before >= n;
  ck_assert_int_eq(program(), 0); /* and now all is well again */
  ck_assert_int_eq(figure("requested_bytes.current"), 0);
  detach(0);
  ck_assert_uint_eq(host_pool_locked(), 0);
  return met;
}

static const weir_status errors[] = {WEIR_EOOM, WEIR_ECUDA, WEIR_ENOMEM};
static const char *const ways[] = {"pinned_ahead:off", "pinned_ahead:on",
                                   "pinned_use_cuda_host_register:off,pinned_ahead:off"};

/* Address space of the process, bytes. */
static uint64_t address_space(void)
{
  unsigned long long pages = 0;
  FILE *in = fopen("/proc/self/statm", "re");
  ck_assert(in && fscanf(in, "%llu", &pages) == 1);
  ck_assert_int_eq(fclose(in), 0);
  return pages * 4096;
}

START_TEST(every_failure_leaves_working_pools)
{
  uint64_t n = 1, before = 0;
  while (run_pinned_failing_op(n, false, errors[_i / 3], ways[_i % 3]))
    if (++n == 3) before = address_space();
  ck_assert_uint_ge(n, 20);
  /* Threads in the background leave stacks, and sanitizers' memory is their own. */
  if (_i % 3 != 1 && !SANITIZED) ck_assert_uint_lt(address_space(), before + 1 * MIB);
}
END_TEST

START_TEST(a_device_that_is_gone_leaves_working_pools)
{
  uint64_t n = 1;
  while (run_pinned_failing_op(n, true, errors[_i / 3], ways[_i % 3]))
    n += 2;
}
END_TEST

/* A device whose end fails can be ended again. */
START_TEST(ending_can_be_tried_again)
{
  bool met = true;
  for (uint64_t n = 1; met; n++) {
    void *a, *b;
    attach(0, "pinned_ahead:off");
    ck_assert_int_eq(weir_pinned_malloc(&a, 3 * MIB), WEIR_OK);
    ck_assert_int_eq(weir_pinned_malloc_flags(&b, 1000, cuda[0], WEIR_PINNED_WRITE_COMBINED),
                     WEIR_OK);
    ck_assert_int_eq(weir_pinned_free(a), WEIR_OK);
    ck_assert_int_eq(weir_pinned_free(b), WEIR_OK);
    fake_fail(&f[0], n, false, WEIR_ECUDA);
    met = weir_memory_detach(cuda[0]) != WEIR_OK;
    fake_fail(&f[0], 0, false, WEIR_OK);
    if (met) {
      detach(0);
    } else {
      ck_assert(fake_clean(&f[0]));
      fake_fini(&f[0]);
    }
  }
}
END_TEST

/* ---- every small schedule ---------------------------------------------------------------------
 * Two blocks in memory that holds just two, one stream on each of two devices, both held: every
 * order of allocating, using, freeing and letting one piece of work run, up to a bound. The host
 * writes a block's number when it gets it; work that reads another number has seen a reuse. */

enum { DEPTH = AT_LEVEL(SANITIZED ? 5 : 6, 7, 8) };

enum { ACTIONS = 10, READS = 64 };

static struct model {
  uint64_t *at[2], number[2], numbers;
  struct reading {
    const uint64_t *at;
    uint64_t number;
  } reads[READS];
  int read;
  bool wrong;
} m;

static void read_number(void *argument)
{
  const struct reading *r = argument;
  if (*r->at != r->number) m.wrong = true;
}

static bool model_malloc(int b)
{
  void *out;
  if (m.at[b]) return false;
  ck_assert_msg(weir_pinned_malloc(&out, 1 * MIB) == WEIR_OK, "%s", weir_error_message());
  m.at[b] = out;
  *m.at[b] = m.number[b] = ++m.numbers;
  return true;
}

static bool model_free(int b)
{
  if (!m.at[b]) return false;
  ck_assert_int_eq(weir_pinned_free(m.at[b]), WEIR_OK);
  m.at[b] = NULL;
  return true;
}

static bool model_use(int b, int d)
{
  weir_stream *s;
  if (!m.at[b]) return false;
  ck_assert_int_eq(weir_stream_from_native(&s, cuda[d], fake_handle(&f[d], 1)), WEIR_OK);
  struct reading *r = &m.reads[m.read++];
  *r = (struct reading){m.at[b], m.number[b]};
  fake_submit(&f[d], 1, read_number, r);
  ck_assert_int_eq(weir_record_stream(m.at[b], s), WEIR_OK);
  return true;
}

/* False: the action makes no sense here, so the schedule is another's prefix. */
static bool try_pinned_action(int a)
{
  if (a < 2) return model_malloc(a);
  if (a < 4) return model_free(a - 2);
  if (a < 8) return model_use(a & 1, a >= 6);
  return fake_step(&f[a - 8], 1);
}

static bool run_schedule(const int *actions, int count)
{
  bool sense = true;
  memset(&m, 0, sizeof m);
  fake_hold(&f[0], 1);
  fake_hold(&f[1], 1);
  for (int i = 0; i < count && sense; i++)
    sense = try_pinned_action(actions[i]);
  for (int b = 0; b < 2; b++)
    if (m.at[b]) (void)model_free(b);
  for (int b = 0; b < 2; b++) /* whoever gets it now writes it */
    (void)model_malloc(b);
  fake_release(&f[0], 1);
  fake_release(&f[1], 1);
  for (int b = 0; b < 2; b++)
    (void)model_free(b);
  return sense;
}

static int schedules;

static void explore(int *actions, int count)
{
  for (int a = 0; a < ACTIONS; a++) {
    actions[count] = a;
    if (!run_schedule(actions, count + 1)) continue;
    schedules++;
    ck_assert_msg(!m.wrong, "memory in use was handed out: schedule %d %d %d %d %d %d %d of %d",
                  actions[0], actions[1], actions[2], actions[3], actions[4], actions[5],
                  actions[6], count + 1);
    if (count + 1 < DEPTH) explore(actions, count + 1);
  }
}

START_TEST(no_schedule_hands_out_memory_in_use)
{
  int actions[DEPTH > 7 ? DEPTH : 7] = {_i};
  schedules = 0;
  attach(0, "pinned_ahead:off,pinned_limit_mb:2");
  attach(1, NULL);
  ck_assert(run_schedule(actions, 1));
  explore(actions, 1);
  ck_assert_int_ge(schedules, 100);
  ck_assert_int_eq(weir_pinned_set_limit(0), WEIR_OK);
  detach(1);
  detach(0);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 64, STREAMS = 6, LIVE = 6 };

enum { STEPS = AT_LEVEL(SANITIZED ? 150 : 800, 10000, 40000) };

static _Atomic bool wrong;
static weir_stream *streams[2][STREAMS];

typedef struct piece {
  uint64_t *at;
  uint64_t words, mark;
  int reads; /* works that still read it */
} piece;

/* Under the fake's lock, like all work of its device; a piece is read on one device only. */
static void read_piece(void *argument)
{
  piece *p = argument;
  for (uint64_t i = 0; i < p->words; i += 64)
    if (p->at[i] != p->mark + i) wrong = true;
  if (!--p->reads) free(p);
}

static piece *write_piece(uint64_t *seed)
{
  void *out;
  uint64_t bytes = 8 + rig_random(seed) % (rig_random(seed) % 8 ? 16 * KIB : 600 * KIB);
  weir_status st = weir_pinned_malloc(&out, bytes);
  if (st) {
    ck_assert_int_eq(st, WEIR_EOOM);
    return NULL;
  }
  piece *p = malloc(sizeof *p);
  *p = (piece){out, bytes / 8, rig_random(seed), 0};
  for (uint64_t i = 0; i < p->words; i += 64)
    p->at[i] = p->mark + i;
  return p;
}

/* Copies from it in one or two streams of a device, then frees it, or does not use it at all. */
static void finish(piece *p, uint64_t *seed)
{
  int d = (int)(rig_random(seed) % 2), a = (int)(rig_random(seed) % STREAMS);
  int b = (int)(rig_random(seed) % STREAMS);
  void *at = p->at;
  p->reads = (int)(rig_random(seed) % 3);
  int reads = p->reads;
  if (!reads) free(p);
  if (reads > 0) ck_assert_int_eq(weir_record_stream(at, streams[d][a]), WEIR_OK);
  if (reads > 1) ck_assert_int_eq(weir_record_stream(at, streams[d][b]), WEIR_OK);
  if (reads > 0) fake_submit(&f[d], a, read_piece, p);
  if (reads > 1) fake_submit(&f[d], b, read_piece, p);
  ck_assert_int_eq(weir_pinned_free(at), WEIR_OK);
}

static _Atomic(piece *) boxes[32]; /* pieces that change hands */

static void step_pinned_pieces(piece **mine, uint64_t *seed)
{
  int k = (int)(rig_random(seed) % LIVE), d = (int)(rig_random(seed) % 2);
  if (!mine[k]) {
    mine[k] = write_piece(seed);
  } else {
    piece *p = mine[k];
    mine[k] = NULL;
    if (rig_random(seed) % 4 == 0) p = atomic_exchange(&boxes[rig_random(seed) % 32], p);
    if (p) finish(p, seed);
  }
  uint64_t what = rig_random(seed) % 150;
  if (what == 0) fake_hold(&f[d], (int)(rig_random(seed) % STREAMS));
  if (what < 5) fake_release(&f[d], (int)(rig_random(seed) % STREAMS));
  if (what == 6) ck_assert_int_eq(weir_pinned_empty_cache(), WEIR_OK);
  if (what == 7) (void)figure("active_bytes.current");
}

static void *worker(void *number)
{
  uint64_t seed = (uint64_t)(uintptr_t)number * 977;
  piece *mine[LIVE] = {0};
  for (int i = 0; i < STEPS; i++)
    step_pinned_pieces(mine, &seed);
  for (int k = 0; k < LIVE; k++)
    if (mine[k]) finish(mine[k], &seed);
  return NULL;
}

static void open_streams(void)
{
  for (int d = 0; d < 2; d++)
    for (int i = 0; i < STREAMS; i++)
      ck_assert_int_eq(weir_stream_from_native(&streams[d][i], cuda[d], fake_handle(&f[d], i)),
                       WEIR_OK);
}

static void let_go(void)
{
  for (int d = 0; d < 2; d++)
    for (int i = 0; i < STREAMS; i++)
      fake_release(&f[d], i);
}

static const struct way {
  const char *conf;
  int threads;
} mixes[] = {{NULL, THREADS},
             {"pinned_limit_mb:12", 8}, /* tight: syncs, trims, errors */
             {"decay_ms:1", 8},
             {"pinned_use_cuda_host_register:off", 8}};

START_TEST(threads_never_meet_in_a_block)
{
  pthread_t ids[THREADS];
  uint64_t seed = 5;
  attach(0, mixes[_i].conf);
  attach(1, NULL);
  open_streams();
  for (int i = 0; i < mixes[_i].threads; i++)
    ck_assert_int_eq(pthread_create(&ids[i], NULL, worker, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < mixes[_i].threads; i++)
    pthread_join(ids[i], NULL);
  for (int i = 0; i < 32; i++)
    if (boxes[i]) finish(boxes[i], &seed);
  let_go();
  ck_assert(!wrong);
  ck_assert_int_eq(figure("requested_bytes.current"), 0);
  ck_assert_int_eq(weir_pinned_empty_cache(), WEIR_OK);
  ck_assert_int_eq(figure("active_requests.current"), 0);
  detach(1);
  detach(0);
  ck_assert_uint_eq(host_pool_locked(), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("pinned stress");
  TCase *t = tcase_create("failures and threads");
  tcase_set_timeout(t, 400);
  tcase_add_loop_test(t, every_failure_leaves_working_pools, 0, 9);
  tcase_add_loop_test(t, a_device_that_is_gone_leaves_working_pools, 0, 9);
  tcase_add_test(t, ending_can_be_tried_again);
  tcase_add_loop_test(t, no_schedule_hands_out_memory_in_use, 0, 2);
  tcase_add_loop_test(t, threads_never_meet_in_a_block, 0, 4);
  suite_add_tcase(s, t);
  return rig_run(s);
}
