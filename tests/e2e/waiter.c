/* waiter.c: random programs of streams, events and waits, whose streams are held back; what each
 * wait had to wait for goes into a file.
 *
 *   waiter FIRST COUNT FILE [words]
 *
 * Programs FIRST to FIRST + COUNT - 1, one after the other, on up to two devices and four
 * threads, of which one at a time goes on. How streams are held: hold.h; words: as on a real
 * device. A stream is held before its first work and released when something waits for that
 * work: so what the oracle calls pending is, and a wait that it calls redundant is made while
 * all is held, and would last for ever if it were not. Lines of FILE: pending (0, 1),
 * operations, bytes, streams. */
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/e2e/hold.h"
#include "tests/e2e/wait_oracle.h"

enum { DEVICES = 2, THREADS = 4, STREAMS = 4, EVENTS = 5, STEPS = 40, BLOCK = 4096 };
enum { DEFAULT_STREAM = STREAMS, THREAD_STREAM, PLACES }; /* places beside a device's own streams */

typedef struct mark { /* an event */
  CUevent handle;
  int stream, node; /* recorded: there; -1, NO_NODE: not yet */
  bool timed;
} mark;

typedef struct device {
  CUcontext context;
  CUdeviceptr memory;
  void *pinned;
  CUstream handle[STREAMS];
  int stream[STREAMS], legacy, per_thread[THREADS]; /* of the oracle's */
  mark events[EVENTS];
} device;

static device devices[DEVICES];
static char pageable[BLOCK];
static FILE *out;
static uint64_t rng;
static int seed, step, turn; /* turn: the thread that goes on */
static int device_count;
static holder held;
static sem_t go[THREADS], gone;

static void check_call(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return;
  (void)fprintf(stderr, "program %d, step %d: %s: %d\n", seed, step, what, (int)r);
  exit(1);
}

#define CHECK(call) check_call(call, #call)

static int random_below(int n)
{
  rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((rng >> 33) % (unsigned)n);
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct target {
  CUstream handle;
  int stream;
} target;

static target stream_at(device *d, int place)
{
  if (place == DEFAULT_STREAM) return (target){CU_STREAM_LEGACY, d->legacy};
  if (place == THREAD_STREAM) return (target){CU_STREAM_PER_THREAD, d->per_thread[turn]};
  return (target){d->handle[place], d->stream[place]};
}

static void make_stream(device *d, int i)
{
  bool apart = random_below(2);
  CHECK(cuStreamCreate(&d->handle[i], apart ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
  d->stream[i] = oracle_stream_new((int)(d - devices), apart ? NON_BLOCKING : BLOCKING);
}

static void end_stream(device *d, int i)
{
  CHECK(cuStreamDestroy(d->handle[i]));
  if (hold_is_work(&held)) CHECK(hold_release(&held, d->handle[i]));
  oracle_stream_at(d->stream[i])->held = NULL; /* its work goes on */
}

/* Default streams are named by numbers that depend on context and thread: they are never held. */
static void hold_back(target t)
{
  oracle_stream *s = oracle_stream_at(t.stream);
  if (s->held || t.handle == CU_STREAM_LEGACY || t.handle == CU_STREAM_PER_THREAD) return;
  CHECK(hold_stream(&held, t.handle));
  oracle_hold(t.stream, t.handle);
  if (hold_is_work(&held)) (void)oracle_act(t.stream, 0, NO_NODE, false);
}

/* Lets run what holds the answer back. */
static void let_run(void)
{
  for (int s; (s = oracle_next_held()) >= 0;) {
    CHECK(hold_release(&held, oracle_stream_at(s)->held));
    oracle_stream_at(s)->held = NULL;
  }
}

static void say_pending(void)
{
  oracle_answer a = oracle_pending();
  (void)fprintf(out, "%d %d %ld %d\n", a.works > 0, a.works, a.bytes, a.streams);
}

/* ---- what a program does --------------------------------------------------------------------- */

static void host_function(void *nothing)
{
  (void)nothing;
}

static void do_work(device *d)
{
  target t = stream_at(d, random_below(PLACES));
  long bytes = 1 + random_below(BLOCK);
  hold_back(t);
  switch (random_below(4)) {
  case 0:
    CHECK(cuMemsetD8Async(d->memory, 1, (size_t)bytes, t.handle));
    break;
  case 1:
    CHECK(cuMemcpyHtoDAsync(d->memory, d->pinned, (size_t)bytes, t.handle));
    break;
  case 2:
    CHECK(cuMemcpyDtoDAsync(d->memory, d->memory + BLOCK, (size_t)bytes, t.handle));
    break;
  default:
    CHECK(cuLaunchHostFunc(t.handle, host_function, NULL));
    bytes = 0;
    break;
  }
  (void)oracle_act(t.stream, bytes, NO_NODE, false);
}

/* Synchronous copies: what they wait for, and what is complete when they return. */
static void do_copy(device *d)
{
  int way = random_below(4);
  target t = stream_at(d, DEFAULT_STREAM);
  size_t bytes = 1 + (size_t)random_below(BLOCK);
  int before = oracle_stream_at(t.stream)->last;
  if (way == 3) { /* "no host-side synchronization is performed" */
    CHECK(cuMemcpyDtoD(d->memory, d->memory + BLOCK, bytes));
    (void)oracle_act(t.stream, (long)bytes, NO_NODE, false);
    return;
  }
  oracle_ask();
  oracle_ask_stream(t.stream);
  say_pending();
  let_run();
  int copy = oracle_act(t.stream, (long)bytes, NO_NODE, false);
  if (way == 0) CHECK(cuMemcpyHtoD(d->memory, pageable, bytes));
  if (way == 1) CHECK(cuMemcpyHtoD(d->memory, d->pinned, bytes));
  if (way == 2) CHECK(cuMemcpyDtoH(pageable, d->memory, bytes));
  oracle_ask();
  oracle_ask_node(way == 0 ? before : copy, false); /* "a stream sync is performed before" */
  oracle_complete();
}

/* Asynchronous copies of pageable memory: back to the host they return when they are complete. */
static void do_pageable(device *d)
{
  target t = stream_at(d, random_below(PLACES));
  size_t bytes = 1 + (size_t)random_below(BLOCK);
  bool back = random_below(2);
  oracle_ask();
  oracle_ask_stream(t.stream);
  say_pending();
  let_run();
  int copy = oracle_act(t.stream, (long)bytes, NO_NODE, false);
  if (back)
    CHECK(cuMemcpyDtoHAsync(pageable, d->memory, bytes, t.handle));
  else
    CHECK(cuMemcpyHtoDAsync(d->memory, pageable, bytes, t.handle));
  oracle_ask();
  if (back) oracle_ask_node(copy, false);
  oracle_complete();
}

static void do_record(device *d)
{
  mark *m = &d->events[random_below(EVENTS)];
  target t = stream_at(d, random_below(PLACES));
  CHECK(cuEventRecord(m->handle, t.handle));
  m->stream = t.stream;
  m->node = oracle_act(t.stream, -1, NO_NODE, false);
}

/* "If cuEventRecord() has not been called, this call acts as if the record has already completed";
 * in the stream of the event there is nothing to wait for. */
static void do_stream_wait(device *d)
{
  const mark *m = &devices[random_below(device_count)].events[random_below(EVENTS)];
  target t = stream_at(d, random_below(PLACES));
  CHECK(cuStreamWaitEvent(t.handle, m->handle, 0));
  (void)oracle_act(t.stream, -1, m->node, m->node == NO_NODE || m->stream == t.stream);
}

static void do_sync_stream(device *d)
{
  target t = stream_at(d, random_below(PLACES));
  oracle_ask();
  oracle_ask_stream(t.stream);
  say_pending();
  let_run();
  CHECK(cuStreamSynchronize(t.handle));
  oracle_complete();
}

static void do_sync_event(void)
{
  const mark *m = &devices[random_below(device_count)].events[random_below(EVENTS)];
  oracle_ask();
  oracle_ask_node(m->node, false);
  say_pending();
  let_run();
  CHECK(cuEventSynchronize(m->handle));
  oracle_complete();
}

static void sync_context(const device *d)
{
  oracle_ask();
  oracle_ask_context((int)(d - devices));
  say_pending();
  let_run();
  CHECK(cuCtxSynchronize());
  oracle_complete();
}

/* "May perform implicit synchronization": it promises nothing. */
static void do_free(const device *d)
{
  CUdeviceptr p = 0;
  oracle_ask();
  oracle_ask_context((int)(d - devices));
  say_pending();
  let_run();
  CHECK(cuMemAlloc(&p, BLOCK));
  CHECK(cuMemFree(p));
}

/* A question that is answered "complete" has said as much as a wait; while work is held it cannot
 * be. */
static void take_answer(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS && oracle_is_held()) check_call(CUDA_ERROR_UNKNOWN, what);
  if (r == CUDA_SUCCESS)
    oracle_complete();
  else if (r != CUDA_ERROR_NOT_READY)
    check_call(r, what);
}

static void do_query(device *d)
{
  target t = stream_at(d, random_below(PLACES));
  const mark *m = &d->events[random_below(EVENTS)], *n = &d->events[random_below(EVENTS)];
  float ms;
  oracle_ask();
  switch (random_below(3)) {
  case 0:
    oracle_ask_stream(t.stream);
    take_answer(cuStreamQuery(t.handle), "cuStreamQuery");
    break;
  case 1:
    oracle_ask_node(m->node, false);
    take_answer(cuEventQuery(m->handle), "cuEventQuery");
    break;
  default:
    if (!m->timed || !n->timed || m->node == NO_NODE || n->node == NO_NODE) return;
    oracle_ask_node(m->node, false);
    oracle_ask_node(n->node, false);
    take_answer(cuEventElapsedTime(&ms, m->handle, n->handle), "cuEventElapsedTime");
    break;
  }
}

static void make_event(mark *m)
{
  *m = (mark){.stream = -1, .node = NO_NODE, .timed = random_below(2)};
  CHECK(cuEventCreate(&m->handle, m->timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
}

static void do_life(device *d)
{
  int i = random_below(STREAMS);
  mark *m = &d->events[random_below(EVENTS)];
  if (random_below(2)) {
    end_stream(d, i);
    make_stream(d, i);
  } else {
    CHECK(cuEventDestroy(m->handle));
    make_event(m);
  }
}

static void do_step(void)
{
  device *d = &devices[random_below(device_count)];
  CHECK(cuCtxSetCurrent(d->context));
  int what = random_below(100);
  if (what < 40)
    do_work(d);
  else if (what < 52)
    do_record(d);
  else if (what < 64)
    do_stream_wait(d);
  else if (what < 74)
    do_sync_stream(d);
  else if (what < 82)
    do_sync_event();
  else if (what < 86)
    sync_context(d);
  else if (what < 90)
    do_copy(d);
  else if (what < 92)
    do_pageable(d);
  else if (what < 94)
    do_free(d);
  else if (what < 98)
    do_query(d);
  else
    do_life(d);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void begin_program(void)
{
  rng = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  oracle_reset();
  hold_reuse(&held);
  for (int i = 0; i < device_count; i++) {
    device *d = &devices[i];
    CHECK(cuCtxSetCurrent(d->context));
    d->legacy = oracle_stream_new(i, LEGACY);
    for (int t = 0; t < THREADS; t++)
      d->per_thread[t] = oracle_stream_new(i, BLOCKING);
    for (int s = 0; s < STREAMS; s++)
      make_stream(d, s);
    for (int e = 0; e < EVENTS; e++)
      make_event(&d->events[e]);
  }
}

static void end_program(void)
{
  for (int i = 0; i < device_count; i++) {
    device *d = &devices[i];
    CHECK(cuCtxSetCurrent(d->context));
    sync_context(d);
    for (int s = 0; s < STREAMS; s++)
      end_stream(d, s);
    for (int e = 0; e < EVENTS; e++)
      CHECK(cuEventDestroy(d->events[e].handle));
  }
}

static void *thread_steps(void *number)
{
  int me = (int)(intptr_t)number;
  for (;;) {
    (void)sem_wait(&go[me]);
    if (turn < 0) return NULL;
    do_step();
    (void)sem_post(&gone);
  }
}

static void run_program(void)
{
  int threads = 1 + seed % THREADS;
  begin_program();
  for (step = 0; step < STEPS; step++) {
    turn = random_below(threads);
    (void)sem_post(&go[turn]);
    (void)sem_wait(&gone);
  }
  end_program();
}

static void begin_device(int i)
{
  device *d = &devices[i];
  CUdevice ordinal;
  CHECK(cuDeviceGet(&ordinal, i));
  CHECK(cuDevicePrimaryCtxRetain(&d->context, ordinal));
  CHECK(cuCtxSetCurrent(d->context));
  CHECK(cuMemAlloc(&d->memory, (size_t)2 * BLOCK));
  CHECK(cuMemAllocHost(&d->pinned, BLOCK));
}

int main(int argc, char **argv)
{
  pthread_t threads[THREADS];
  if (argc != 4 && argc != 5) return 2;
  int first = atoi(argv[1]), count = atoi(argv[2]);
  out = fopen(argv[3], "w");
  if (!out) return 2;
  CHECK(cuInit(0));
  CHECK(cuDeviceGetCount(&device_count));
  if (device_count > DEVICES) device_count = DEVICES;
  for (int i = 0; i < device_count; i++)
    begin_device(i);
  CHECK(hold_open(&held, argc == 5));
  (void)sem_init(&gone, 0, 0);
  for (int t = 0; t < THREADS; t++) {
    (void)sem_init(&go[t], 0, 0);
    if (pthread_create(&threads[t], NULL, thread_steps, (void *)(intptr_t)t)) return 2;
  }
  for (seed = first; seed < first + count; seed++)
    run_program();
  turn = -1;
  for (int t = 0; t < THREADS; t++) {
    (void)sem_post(&go[t]);
    (void)pthread_join(threads[t], NULL);
  }
  return fclose(out) ? 1 : 0;
}
