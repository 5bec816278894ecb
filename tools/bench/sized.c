/* sized.c: spools of a million events each, written with the writer that programs use, and
 * traces of them.
 *
 * All events come from 200 call sites with stacks of 16 frames. MIX_STEPS is one thread that
 * repeats ten calls. MIX_HALF is eight threads that take turns, so that events of all lie side
 * by side as in a program whose threads run at one time. A thread's calls follow each other in its own time, which runs
 * faster than they are written: no two of them are under way at once. */
#include "tools/bench/sized.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/trace/api.h"
#include "core/trace/spool.h"

enum {
  SITES = 200,
  THREADS = 8,
  STREAMS = 3,
  LIVE = 256 /* blocks a thread */,
  TURN = 128, /* events */
  GAP = 500   /* ticks between two calls of a thread */
};

static uint16_t api_of(const char *name)
{
  for (uint32_t i = 1; i < api_total; i++)
    if (!strcmp(api_row(i)->name, name)) return (uint16_t)i;
  return 0;
}

static void write_stacks(spool_writer *w)
{
  for (uint32_t id = 1; id <= SITES; id++) {
    uint64_t frames[16];
    trace_event head = {.a = id, .bytes = 16};
    for (int k = 0; k < 16; k++)
      frames[k] = UINT64_C(0x400000) + id * 64u + (unsigned)k * 4096u;
    (void)spool_writer_extended(w, WEIR_EV_STACK, &head, frames, sizeof frames);
  }
}

/* An event, but for what it is, of so many ticks; `now`, the thread's time, becomes that of its next call. */
static void begin_event(trace_event *e, uint8_t kind, uint16_t api, uint64_t site, uint64_t *now,
                        uint64_t ticks)
{
  memset(e, 0, sizeof *e);
  e->kind = kind;
  e->api = api;
  e->start = *now;
  e->stack = ((uint32_t)(site % SITES) + 1) | 1u << 24; /* context 1: waits are judged */
  e->src_device = WEIR_DEVICE_NONE;
  e->mem = WEIR_MEM_DEVICE;
  event_set_duration(e, ticks);
  *now += ticks + GAP;
}

/* ---- MIX_STEPS ------------------------------------------------------------------------------- */

static void make_step_event(trace_event *e, uint64_t n, const uint16_t *apis, uint64_t *now)
{
  uint64_t step = n / 10, pointer = UINT64_C(0x10000000000) + step % 4096 * 65536;
  static const uint8_t kinds[10] = {WEIR_EV_ALLOC, WEIR_EV_COPY,   WEIR_EV_LAUNCH, WEIR_EV_LAUNCH,
                                    WEIR_EV_SYNC,  WEIR_EV_LAUNCH, WEIR_EV_COPY,   WEIR_EV_SYNC,
                                    WEIR_EV_COPY,  WEIR_EV_FREE};
  begin_event(e, kinds[n % 10], apis[kinds[n % 10]], n, now, 2000);
  e->a = pointer;
  e->bytes = e->kind == WEIR_EV_SYNC ? 0 : 65536;
  if (e->kind == WEIR_EV_COPY || e->kind == WEIR_EV_LAUNCH) e->stream = WEIR_STREAM_LEGACY;
  if (e->kind == WEIR_EV_COPY) {
    e->copy_kind = WEIR_COPY_HTOD;
    e->mem = WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4;
    e->b = UINT64_C(0x7f0000000000) + n % 1024 * 4096;
  } else if (e->kind == WEIR_EV_SYNC) {
    e->sync_type = WEIR_SYNC_CONTEXT;
    e->mem = 0;
  }
}

static bool write_steps(uint64_t events)
{
  const uint16_t apis[] = {[WEIR_EV_ALLOC] = api_of("cuMemAlloc_v2"),
                           [WEIR_EV_FREE] = api_of("cuMemFree_v2"),
                           [WEIR_EV_COPY] = api_of("cuMemcpyHtoD_v2"),
                           [WEIR_EV_SYNC] = api_of("cuCtxSynchronize"),
                           [WEIR_EV_LAUNCH] = api_of("cuLaunchKernel")};
  spool_writer w = {0};
  uint64_t now = clock_ticks();
  write_stacks(&w);
  for (uint64_t n = 0; n < events; n++) {
    trace_event *e = spool_writer_slots(&w, 1);
    if (!e) return false;
    make_step_event(e, n, apis, &now);
    spool_writer_commit(&w, 1);
  }
  spool_writer_release(&w);
  return true;
}

/* ---- MIX_HALF -------------------------------------------------------------------------------- */

/* What a thread calls, again and again: of twenty calls ten allocate or free. */
typedef enum half_call {
  ALLOC,
  FREE,
  UPLOAD,
  UPLOAD_ASYNC,
  READ_BACK,
  SET,
  LAUNCH,
  WAIT_STREAM,
  WAIT_ALL,
  HALF_CALLS
} half_call;

static const uint8_t half_round[20] = {
    ALLOC, ALLOC, UPLOAD, LAUNCH, FREE,   ALLOC, UPLOAD_ASYNC, LAUNCH, FREE,      WAIT_STREAM,
    ALLOC, SET,   FREE,   LAUNCH, UPLOAD, FREE,  ALLOC,        FREE,   READ_BACK, WAIT_ALL};

static const struct {
  const char *api;
  uint8_t kind, flags, detail, mem;
} half_calls[HALF_CALLS] = {
    [ALLOC] = {"cuMemAlloc_v2", WEIR_EV_ALLOC, 0, 0, WEIR_MEM_DEVICE},
    [FREE] = {"cuMemFree_v2", WEIR_EV_FREE, WEIR_EVF_IMPLICIT_SYNC, 0, WEIR_MEM_DEVICE},
    [UPLOAD] = {"cuMemcpyHtoD_v2", WEIR_EV_COPY, WEIR_EVF_IMPLICIT_SYNC, WEIR_COPY_HTOD,
                WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4},
    [UPLOAD_ASYNC] = {"cuMemcpyHtoDAsync_v2", WEIR_EV_COPY, WEIR_EVF_ASYNC, WEIR_COPY_HTOD,
                      WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4},
    [READ_BACK] = {"cuMemcpyDtoH_v2", WEIR_EV_COPY, WEIR_EVF_IMPLICIT_SYNC, WEIR_COPY_DTOH,
                   WEIR_MEM_PAGEABLE | WEIR_MEM_DEVICE << 4},
    [SET] = {"cuMemsetD8Async", WEIR_EV_MEMSET, WEIR_EVF_ASYNC, 0, WEIR_MEM_DEVICE},
    [LAUNCH] = {"cuLaunchKernel", WEIR_EV_LAUNCH, WEIR_EVF_ASYNC, 0, 0},
    [WAIT_STREAM] = {"cuStreamSynchronize", WEIR_EV_SYNC, 0, WEIR_SYNC_STREAM, 0},
    [WAIT_ALL] = {"cuCtxSynchronize", WEIR_EV_SYNC, 0, WEIR_SYNC_CONTEXT, 0},
};

/* A thread of a program, which writes when it is its turn. */
typedef struct half_thread {
  sem_t turn, *next;
  unsigned number;
  uint64_t events, rng, now;
  struct {
    uint64_t pointer, bytes;
  } live[LIVE];   /* pointer 0: none */
  unsigned taken; /* allocations so far */
} half_thread;

static uint64_t random_of(half_thread *t)
{
  uint64_t z = (t->rng += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  return z ^ z >> 31;
}

/* Blocks of 512 bytes to 2 MiB, more of the small ones; an address is used again once its block
 * is free. */
static void take_sized_block(half_thread *t, trace_event *e)
{
  unsigned slot = t->taken++ % LIVE;
  for (unsigned i = 0; i < LIVE && t->live[slot].pointer; i++)
    slot = (slot + 1) % LIVE;
  uint64_t r = random_of(t), bytes = UINT64_C(512) << r % 13;
  t->live[slot].pointer = UINT64_C(0x10000000000) + ((uint64_t)t->number * LIVE + slot) * (2 << 20);
  t->live[slot].bytes = bytes;
  e->a = t->live[slot].pointer;
  e->bytes = bytes;
}

/* Ends most often a block that is young. */
static unsigned live_block(half_thread *t)
{
  uint64_t r = random_of(t);
  unsigned slot = (t->taken + LIVE - 1 - (unsigned)(r % (r & 4096 ? 8 : LIVE / 2))) % LIVE;
  for (unsigned i = 0; i < LIVE && !t->live[slot].pointer; i++)
    slot = (slot + LIVE - 1) % LIVE;
  return slot;
}

static void make_half_event(half_thread *t, trace_event *e, uint64_t n, const uint16_t *apis)
{
  half_call call = half_round[n % 20];
  begin_event(e, half_calls[call].kind, apis[call], n % 20 + n / 20 % 10 * 20, &t->now,
              1000 + random_of(t) % 4000);
  e->flags = half_calls[call].flags;
  e->detail = half_calls[call].detail;
  e->mem = half_calls[call].mem;
  bool none = call == WAIT_ALL || call == ALLOC || call == FREE;
  bool legacy = call == UPLOAD || call == READ_BACK;
  e->stream = none ? 0 : legacy ? WEIR_STREAM_LEGACY : 0x5000 + (t->number + n / 20) % STREAMS;
  unsigned slot = live_block(t);
  uint64_t host = UINT64_C(0x7f0000000000) + random_of(t) % 1024 * 4096;
  if (call == ALLOC) {
    take_sized_block(t, e);
  } else if (call == LAUNCH) {
    e->a = 0x400000 + n % 7 * 64;
    e->b = 1; /* a grid of one block */
    e->bytes = 256;
  } else if (e->kind != WEIR_EV_SYNC) {
    e->a = call == READ_BACK ? host : t->live[slot].pointer;
    e->b = call == READ_BACK ? t->live[slot].pointer : e->kind == WEIR_EV_COPY ? host : 0;
    e->bytes = call == FREE ? 0 : t->live[slot].bytes;
    if (call == READ_BACK) e->device = WEIR_DEVICE_NONE, e->src_device = 0;
    if (call == FREE) t->live[slot].pointer = 0;
  }
}

static void *run_half_thread(void *data)
{
  half_thread *t = data;
  uint16_t apis[HALF_CALLS];
  spool_writer w = {0};
  for (int i = 0; i < HALF_CALLS; i++)
    apis[i] = api_of(half_calls[i].api);
  for (uint64_t n = 0; n < t->events; n++) {
    if (n % TURN == 0) (void)sem_wait(&t->turn);
    if (n == 0) write_stacks(&w);
    trace_event *e = spool_writer_slots(&w, 1);
    if (!e) _exit(1); /* the others would wait for ever for their turns */
    make_half_event(t, e, n, apis);
    spool_writer_commit(&w, 1);
    if (n % TURN == TURN - 1 || n + 1 == t->events) (void)sem_post(t->next);
  }
  spool_writer_release(&w);
  return NULL;
}

static bool write_half(uint64_t events)
{
  half_thread *threads = calloc(THREADS, sizeof *threads);
  uint64_t now = clock_ticks();
  pthread_t handles[THREADS];
  bool good = threads != NULL;
  for (unsigned i = 0; i < THREADS && good; i++) {
    threads[i].number = i;
    threads[i].rng = i;
    threads[i].now = now + i * GAP;
    threads[i].events = events / THREADS;
    threads[i].next = &threads[(i + 1) % THREADS].turn;
    (void)sem_init(&threads[i].turn, 0, i == 0);
  }
  for (unsigned i = 0; i < THREADS && good; i++)
    if (pthread_create(&handles[i], NULL, run_half_thread, &threads[i]) != 0) _exit(1);
  for (unsigned i = 0; i < THREADS && good; i++)
    (void)pthread_join(handles[i], NULL);
  free(threads);
  return good;
}

/* ---- spools and traces ----------------------------------------------------------------------- */

/* In a child of its own, since a process has one spool. */
static int write_spool(const char *folder, sized_mix mix)
{
  clock_init();
  spool_options o = {.directory = folder,
                     .limit_bytes = UINT64_C(16) << 30,
                     .api_count = api_total,
                     .api_hash = api_table_hash(api_total)};
  if (spool_open(&o) != WEIR_OK) return 1;
  bool good = mix == MIX_STEPS ? write_steps(SIZED_EVENTS) : write_half(SIZED_EVENTS);
  spool_close();
  return !good;
}

bool sized_spools(const char *folder, int count, sized_mix mix)
{
  if (mkdir(folder, 0700) < 0 && errno != EEXIST) return false;
  for (int i = 0; i < count; i++) {
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(write_spool(folder, mix));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) return false;
  }
  return true;
}

static bool make_sized(sized_trace *t, sized_mix mix)
{
  const char *folder = bench_text("%s/spools-%d", bench_scratch, t->millions);
  (void)snprintf(t->path, sizeof t->path, "%s/%d-%d.db", bench_scratch, t->millions, (int)mix);
  const char *const argv[] = {
      bench_text("%s/bin/weir", bench_build), "import", "--force", folder, "-o", t->path, NULL};
  bool good = sized_spools(folder, t->millions, mix) &&
              bench_run(NULL, &t->import_wall, &t->import_kib, argv);
  t->import_cpu = bench_cpu_seconds;
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, NULL});
  return good;
}

const sized_trace *sized_trace_of(measured *m, const row *r, int millions, sized_mix mix)
{
  static sized_trace traces[MIXES][4] = {
      {{.millions = 1}, {.millions = 10}, {.millions = 30}, {.millions = 100}},
      {{.millions = 1}, {.millions = 10}, {.millions = 30}, {.millions = 100}},
  };
  sized_trace *t = traces[mix];
  while (t->millions != millions)
    t++;
  int largest = mix == MIX_STEPS ? 10 : 1;
  if (millions > largest && !bench_asked) {
    m->absent = true;
    (void)snprintf(m->note, sizeof m->note, "ROWS=%s measures it, with %d MiB of disk", r->name,
                   150 * millions);
    return NULL;
  }
  if (!t->made) t->made = make_sized(t, mix);
  if (t->made) return t;
  bench_give_up(m, "the trace could not be made");
  return NULL;
}
