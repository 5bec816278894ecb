/* slab.c: where a host pool's memory comes from: slabs, chunks, registration.
 *
 * A slab is 64 MiB of address space, aligned to 2 MiB so that the kernel may back it with huge
 * pages. Chunks are cut off its front: half of what is in use, from 2 to 32 MiB, so that a program
 * that pins little pins little more than it asked for. Requests above 32 MiB get a chunk of their
 * own size. A chunk is made in three steps with no lock held: name the memory node it shall be
 * on, touch its pages (several threads where it is large; page faults are most of the cost), lock
 * it by one host_register. Who asks first makes the first chunk and waits for that alone; the next
 * one is made in the background, and again the next when that is first used. Who wants memory
 * meanwhile waits for the chunk that is being made if it is large enough; if making it fails, who
 * waits tries for itself and gets the error. All that a chunk needs in our tables is spoken for
 * before it is made, so that nothing can fail afterwards.
 *
 * Fork. Private memory is shared with a child until one of them writes. Were it the parent, it
 * would get a copy of the page, while the device goes on with the old one. Linux copies at the fork
 * instead since 5.9, but only pages that a driver took by pin_user_pages, which NVIDIA's module
 * does where the kernel has it (kernel-open/nvidia/os-mlock.c) and older ones don't. So slabs are
 * MADV_WIPEONFORK: the parent keeps its pages, the child sees zeros there. MADV_DONTFORK, which
 * ibv_fork_init(3) uses for the same reason, would crash a child that looks; it serves where the
 * kernel has no WIPEONFORK (before 4.14). Memory that the device made is inherited as its driver
 * has it. In the child the pools serve nobody: CUDA cannot be used there. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/host_memory.h"
#include "core/base/lock.h"
#include "core/memory/back.h"
#include "core/memory/host.h"

enum { HUGE_PAGE = 2 << 20, PAGE = 4096, SLAB = 64 << 20, PIECE = 16 << 20, CREW_MOST = 8 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

_Atomic uint64_t host_pool_limit;
static _Atomic uint64_t locked;    /* bytes of all chunks, those in the making included */
static _Atomic uint64_t untouched; /* of them: in the making, so perhaps not charged to us yet */

static void time_add(host_timing *t, uint64_t us)
{
  if (!t->count || us < t->min) t->min = us;
  if (us > t->max) t->max = us;
  t->total += us;
  t->count++;
}

uint64_t host_pool_locked(void)
{
  return atomic_load(&locked);
}

/* ---- the table of chunks --------------------------------------------------------------------- */

static struct range {
  uint64_t address, bytes;
} * table; /* owned; by address */
static size_t table_count, table_room, table_spoken;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* The first range that ends after `address`. Lock held. */
static size_t table_find(uint64_t address)
{
  size_t from = 0, to = table_count;
  while (from < to) {
    size_t at = (from + to) / 2;
    if (table[at].address + table[at].bytes > address)
      to = at;
    else
      from = at + 1;
  }
  return from;
}

static weir_status table_speak(const weir_source *s, void *self)
{
  HOLD_LOCK(&table_lock);
  if (table_count + table_spoken == table_room) {
    size_t room = table_room ? 2 * table_room : 64;
    TRY(s->host_commit ? s->host_commit(self, room * sizeof *table) : WEIR_OK);
    struct range *more = realloc(table, room * sizeof *table);
    if (!more) return fail_memory("the list of pinned chunks");
    table = more;
    table_room = room;
  }
  table_spoken++;
  return WEIR_OK;
}

/* Uses up what was spoken for; bytes 0: gives it back. */
static void table_put(uint64_t address, uint64_t bytes)
{
  HOLD_LOCK(&table_lock);
  table_spoken--;
  if (bytes) {
    size_t at = table_find(address);
    memmove(table + at + 1, table + at, (table_count - at) * sizeof *table);
    table[at] = (struct range){address, bytes};
    table_count++;
  }
}

static void table_remove(uint64_t address)
{
  HOLD_LOCK(&table_lock);
  size_t at = table_find(address);
  table_count--;
  memmove(table + at, table + at + 1, (table_count - at) * sizeof *table);
  if (!table_count && !table_spoken) {
    free(table);
    table = NULL;
    table_room = 0;
  }
}

bool host_pool_owns(uint64_t address)
{
  HOLD_LOCK(&table_lock);
  size_t at = table_find(address);
  return at < table_count && table[at].address <= address;
}

/* ---- address space --------------------------------------------------------------------------- */

/* Where even this fails (a process at its limit of mappings), the memory goes back at least. */
static void unmap_pages(char *at, uint64_t bytes)
{
  if (bytes && munmap(at, bytes)) (void)madvise(at, bytes, MADV_DONTNEED);
}

static char *map_aligned(uint64_t bytes)
{
  uint64_t all = bytes + HUGE_PAGE;
  char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return NULL;
  char *from = (char *)page_up((uint64_t)at, HUGE_PAGE);
  unmap_pages(at, (uint64_t)(from - at));
  unmap_pages(from + bytes, (uint64_t)(at + all - (from + bytes)));
  (void)madvise(from, bytes, MADV_HUGEPAGE);
  if (madvise(from, bytes, MADV_WIPEONFORK)) (void)madvise(from, bytes, MADV_DONTFORK);
  return from;
}

/* Cuts a chunk off the tail, or makes a slab. Lock held. */
static weir_status cut_chunk(host_pool *s, uint64_t bytes, host_job *j)
{
  if ((uint64_t)(s->end - s->tail) < bytes || bytes > HOST_CHUNK) {
    const weir_source *from = &s->pool->backend->source;
    uint64_t slab = bytes > HOST_CHUNK ? bytes : SLAB;
    TRY(from->host_commit(s, slab));
    char *at = map_aligned(slab);
    if (!at)
      return weir_fail_errno(WEIR_EOOM, errno, "no %.2f MiB of address space to pin", to_mib(slab));
    if (bytes > HOST_CHUNK) {
      j->at = at;
      return WEIR_OK;
    }
    unmap_pages(s->tail, (uint64_t)(s->end - s->tail));
    s->tail = at;
    s->end = at + slab;
  }
  j->at = s->tail;
  s->tail += bytes;
  return WEIR_OK;
}

/* ---- first touch ----------------------------------------------------------------------------- */

typedef struct crew {
  host_job *job;
  _Atomic uint64_t next; /* piece */
  _Atomic int error;     /* errno */
  bool move;             /* run on the node's processors: the kernel was not notified of the node */
} crew;

static int populate_pages(char *at, uint64_t bytes)
{
  if (!madvise(at, bytes, MADV_POPULATE_WRITE)) return 0;
  if (errno != EINVAL) return errno;
  for (uint64_t i = 0; i < bytes; i += PAGE)
    *(volatile char *)(at + i) = 0;
  return 0;
}

static void touch_pieces(crew *c)
{
  uint64_t at, error;
  while ((at = atomic_fetch_add(&c->next, 1) * PIECE) < c->job->bytes) {
    uint64_t left = c->job->bytes - at;
    if ((error = (uint64_t)populate_pages(c->job->at + at, left < PIECE ? left : PIECE)))
      atomic_store(&c->error, (int)error);
  }
}

static void *crew_member(void *argument)
{
  crew *c = argument;
  cpu_set_t cpus;
  if (c->move && host_node_cpus(c->job->node, &cpus))
    (void)sched_setaffinity(0, sizeof cpus, &cpus);
  touch_pieces(c);
  return NULL;
}

/* A thread no signal of the program ends up in. */
static int thread_start(pthread_t *out, bool detached, void *(*run)(void *), void *argument)
{
  sigset_t all, before;
  pthread_attr_t how;
  int error = pthread_attr_init(&how);
  if (error) return error;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  if (detached) (void)pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
  error = pthread_create(out, &how, run, argument);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&how);
  return error;
}

static unsigned crew_size(const host_job *j)
{
  uint64_t most = j->host->device->config.pinned_threads, pieces = page_up(j->bytes, PIECE) / PIECE;
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (!most) most = cpus < CREW_MOST ? (uint64_t)cpus : CREW_MOST;
  if (j->bytes < 2 * (uint64_t)PIECE) pieces = 1;
  return (unsigned)(pieces < most ? pieces : most);
}

/* Our own thread works too, unless it is far from the node. */
static weir_status touch_all(host_job *j)
{
  crew c = {.job = j, .move = j->node >= 0 && !j->bound};
  pthread_t threads[64];
  unsigned count = 0, want = crew_size(j) - !c.move;
  while (count < want && count < 64 && !thread_start(&threads[count], false, crew_member, &c))
    count++;
  if (!c.move || !count) touch_pieces(&c);
  for (unsigned i = 0; i < count; i++)
    (void)pthread_join(threads[i], NULL);
  int error = atomic_load(&c.error);
  if (!error) return WEIR_OK;
  return weir_fail_errno(WEIR_EOOM, error, "the kernel has no %.2f MiB to pin", to_mib(j->bytes));
}

/* The node of the device, or of the processor that asks; -1 where there is but one. */
static int node_wanted(const host_pool *s, unsigned nodes)
{
  const weir_backend *b = s->device->backend;
  unsigned cpu, here;
  int node = nodes > 1 && b->source.numa_node ? b->source.numa_node(b->self) : -1;
  if (node < 0 && nodes > 1 && !syscall(SYS_getcpu, &cpu, &here, NULL)) node = (int)here;
  return node;
}

/* Preferred, not bound: a full node shall not fail us. Containers may forbid mbind(2); then the
 * threads that touch the memory run on the node. */
static void bind_node(host_job *j)
{
  enum { PREFERRED = 1, NODES = 1024, BITS = 8 * sizeof(unsigned long) };
  unsigned long mask[NODES / BITS] = {0};
  if (j->node < 0 || j->node >= NODES) return;
  mask[(unsigned)j->node / BITS] = 1ul << ((unsigned)j->node % BITS);
  j->bound = !syscall(SYS_mbind, j->at, j->bytes, PREFERRED, mask, NODES + 1, 0);
}

/* ---- a chunk's making ------------------------------------------------------------------------ */

/* Takes `bytes` of what may be locked. */
static weir_status room_take(host_job *j)
{
  host_room r;
  uint64_t limit = atomic_load(&host_pool_limit), all = atomic_fetch_add(&locked, j->bytes);
  uint64_t fresh = atomic_fetch_add(&untouched, j->bytes) + j->bytes;
  weir_status st = WEIR_OK;
  host_room_read(&r);
  j->node = node_wanted(j->host, r.nodes);
  if (limit && (all > limit || j->bytes > limit - all))
    st = weir_fail(WEIR_ELIMIT, "the budget of pinned memory is used up");
  else if (fresh > r.available)
    st = weir_fail(WEIR_EOOM, "the machine has only %.2f MiB available", to_mib(r.available));
  else if (r.cgroup_limit != UINT64_MAX && fresh > r.cgroup_limit - r.cgroup_used)
    st = weir_fail(WEIR_EOOM, "the control group has only %.2f MiB left",
                   to_mib(r.cgroup_limit - r.cgroup_used));
  if (!st) return st;
  atomic_fetch_sub(&locked, j->bytes);
  atomic_fetch_sub(&untouched, j->bytes);
  return st;
}

static void note_failure(host_pool *s, weir_status st)
{
  if (st) (void)snprintf(s->why, sizeof s->why, "%s", weir_error_message());
}

/* Speaks for all that a chunk of `bytes` needs. Lock held. On failure nothing has changed. */
static weir_status job_begin(host_pool *s, uint64_t bytes, host_job *j)
{
  mem_pool *p = s->pool;
  *j = (host_job){.host = s, .bytes = bytes, .node = -1};
  weir_status st = block_ensure(p, 1);
  if (!st) st = back_reserve_range(p);
  if (st) return st;
  if (!(st = table_speak(&p->backend->source, s))) {
    if (!(st = room_take(j))) {
      if (!s->registers || !(st = cut_chunk(s, bytes, j))) {
        j->id = block_new();
        return WEIR_OK;
      }
      atomic_fetch_sub(&locked, bytes);
      atomic_fetch_sub(&untouched, bytes);
    }
    table_put(0, 0);
  }
  p->head_spoken--;
  note_failure(s, st);
  return st;
}

/* No lock held. */
static weir_status job_run(host_job *j)
{
  host_pool *s = j->host;
  const weir_backend *b = s->device->backend;
  uint64_t begin = clock_monotonic_ns();
  weir_status st;
  if (s->registers) {
    bind_node(j);
    st = touch_all(j);
    if (!st) st = b->source.host_register(b->self, j->at, j->bytes, s->flags);
    if (st) unmap_pages(j->at, j->bytes);
  } else {
    void *at = NULL;
    st = b->source.host_alloc(b->self, j->bytes, s->flags, &at);
    j->at = at;
  }
  j->us = (clock_monotonic_ns() - begin) / 1000;
  return st;
}

/* Puts the chunk into the pool, or gives back what was spoken for. Lock held. */
static void job_end(host_job *j, weir_status st)
{
  host_pool *s = j->host;
  mem_pool *p = s->pool;
  atomic_fetch_sub(&untouched, j->bytes);
  p->head_spoken--;
  note_failure(s, st);
  if (st) {
    table_put(0, 0);
    atomic_fetch_sub(&locked, j->bytes);
    block_drop(j->id);
    return;
  }
  table_put((uint64_t)j->at, j->bytes);
  time_add(&s->allocs, j->us);
  back_add(p, &p->common[HEAP_IDLE], j->id, (uint64_t)j->at, j->bytes);
}

/* ---- the background -------------------------------------------------------------------------- */

static void finish_making(host_pool *s)
{
  s->making = 0;
  pthread_cond_broadcast(&s->made);
}

static void *background(void *host)
{
  host_pool *s = host;
  mem_pool *p = s->pool;
  weir_status st = job_run(&s->job);
  HOLD_LOCK(&p->lock);
  job_end(&s->job, st);
  if (!st) s->ahead = (uint64_t)s->job.at;
  finish_making(s);
  return NULL;
}

static uint64_t chunk_bytes(const host_pool *s, uint64_t bytes)
{
  uint64_t used = s->pool->reserved - s->pool->common[HEAP_IDLE].free_bytes;
  uint64_t next = page_up(used / 2, HUGE_PAGE), least = page_up(bytes, HUGE_PAGE);
  if (bytes > HOST_CHUNK) return page_up(bytes, PAGE);
  if (next < HUGE_PAGE) next = HUGE_PAGE;
  if (next > HOST_CHUNK) next = HOST_CHUNK;
  return next > least ? next : least;
}

static void make_ahead(host_pool *s)
{
  pthread_t thread;
  s->ahead = 0;
  if (s->closing || s->making || !s->device->config.pinned_ahead) return;
  if (job_begin(s, chunk_bytes(s, 0), &s->job)) return;
  s->making = s->job.bytes;
  if (!thread_start(&thread, true, background, s)) return;
  if (s->registers) unmap_pages(s->job.at, s->job.bytes);
  job_end(&s->job, weir_fail(WEIR_ENOMEM, "no thread to pin memory ahead"));
  finish_making(s);
}

/* The next chunk is begun when the one that was made in advance is needed. It is not if only nobody
 * had asked whether recorded work is over. */
void host_pool_used(mem_pool *p, uint64_t address)
{
  host_pool *s = p->host;
  if (address != s->ahead) return;
  s->ahead = 0;
  epoch_pending(p);
  if (p->common[HEAP_IDLE].free_bytes <= s->job.bytes) make_ahead(s);
}

/* ---- the pool's source ----------------------------------------------------------------------- */

/* Makes a chunk for a request of `bytes`, without the lock meanwhile. */
static weir_status make_one(host_pool *s, uint64_t bytes)
{
  mem_pool *p = s->pool;
  host_job j;
  uint64_t size = chunk_bytes(s, bytes),
           least = page_up(bytes, bytes > HOST_CHUNK ? PAGE : HUGE_PAGE);
  weir_status st = job_begin(s, size, &j);
  if ((st == WEIR_EOOM || st == WEIR_ELIMIT) && size > least) st = job_begin(s, least, &j);
  if (st) return st;
  bool shared = j.bytes <= HOST_CHUNK, first = shared && !s->making;
  if (first) s->making = j.bytes;
  pthread_mutex_unlock(&p->lock);
  st = job_run(&j);
  pthread_mutex_lock(&p->lock);
  job_end(&j, st);
  if (first) finish_making(s);
  if (!st && shared && !s->ahead) make_ahead(s);
  return st;
}

weir_status host_pool_grow(mem_pool *p, const mem_heap *h, uint64_t bytes)
{
  host_pool *s = p->host;
  weir_status st = WEIR_OK;
  block_id id;
  while (!st && (!(id = heap_find(h, bytes)) || !pool_may_take(p, id, bytes))) {
    if (s->making >= bytes && s->making)
      (void)pthread_cond_wait(&s->made, &p->lock);
    else
      st = make_one(s, bytes);
  }
  return st ? st : block_ensure(p, 8); /* the lock was given back: ensure anew */
}

/* No lock held. */
static weir_status chunk_free(void *self, uint64_t address, uint64_t bytes)
{
  host_pool *s = self;
  const weir_backend *b = s->device->backend;
  uint64_t begin = clock_monotonic_ns();
  TRY(s->registers ? b->source.host_unregister(b->self, (void *)address, bytes)
                   : b->source.host_free(b->self, (void *)address, bytes));
  table_remove(address);
  if (s->registers) unmap_pages((char *)address, bytes);
  atomic_fetch_sub(&locked, bytes);
  uint64_t us = (clock_monotonic_ns() - begin) / 1000;
  HOLD_LOCK(&s->pool->lock);
  if (s->ahead == address) s->ahead = 0;
  time_add(&s->frees, us);
  return WEIR_OK;
}

static weir_status host_commit(void *self, uint64_t bytes)
{
  const host_pool *s = self;
  const weir_backend *b = s->device->backend;
  return b->source.host_commit ? b->source.host_commit(b->self, bytes) : WEIR_OK;
}

static weir_status slab_mem_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  (void)self;
  *free_bytes = *total_bytes = UINT64_C(1) << 47; /* all the address space there is */
  return WEIR_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static weir_status choose_way(host_pool *s)
{
  const weir_source *from = &s->device->backend->source;
  bool combined = s->flags & WEIR_HOST_WRITE_COMBINED;
  s->registers =
      from->host_register && !combined && (s->device->config.pinned_register || !from->host_alloc);
  if (s->registers || from->host_alloc) return WEIR_OK;
  return fail_unsupported("device %d cannot pin %shost memory", s->device->backend->index,
                          combined ? "write-combined " : "");
}

weir_status host_pool_new(host_pool **out, mem_pool *device, unsigned flags,
                          const host_pool_calls *calls)
{
  pool_config config = pool_config_default;
  host_pool *s = calloc(1, sizeof *s);
  if (!s) return fail_memory("a pool of pinned memory");
  s->device = device;
  s->flags = flags;
  weir_status st = choose_way(s);
  config.decay_ms = device->config.decay_ms;
  config.expandable = false;
  s->seam = (weir_backend){.name = "pinned", .index = device->backend->index, .self = s};
  s->seam.source = (weir_source){
      .mem_info = slab_mem_info, .segment_free = chunk_free, .host_commit = host_commit};
  if (!st) st = pool_new_host(&s->pool, &s->seam, &config, s, calls);
  if (st) {
    free(s);
    return st;
  }
  pthread_cond_init(&s->made, NULL);
  *out = s;
  return WEIR_OK;
}

void host_pool_settle(host_pool *s, bool closing)
{
  mem_pool *p = s->pool;
  HOLD_LOCK(&p->lock);
  s->closing = closing;
  while (s->making)
    (void)pthread_cond_wait(&s->made, &p->lock);
}

weir_status host_pool_free(host_pool *s)
{
  host_pool_settle(s, true);
  weir_status st = pool_free(s->pool);
  if (st) {
    host_pool_settle(s, false);
    return st;
  }
  unmap_pages(s->tail, (uint64_t)(s->end - s->tail));
  pthread_cond_destroy(&s->made);
  free(s);
  return WEIR_OK;
}
