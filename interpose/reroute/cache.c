/* cache.c: the caches that rerouted memory comes from and goes back to, and what all of
 * them learn: that work is complete, that memory is short, that a context is gone. A context's
 * cache is made at its first allocation. A cache is found by the number of the thread's current
 * context, which is asked for anew at each call: it is what the driver would allocate in. */
#include "interpose/reroute/context_cache.h"
#include "interpose/reroute/owners.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include "interpose/record/pools.h"
#include "interpose/reroute/access.h"
#include "interpose/reroute/poison.h"
#include "interpose/record/stats.h"
#include "interpose/reroute/cache_rules.h"
#include "interpose/process/tools.h"
#include "interpose/record/work.h"
#include "interpose/elf/elf.h"

#define CACHE_MOST (UINT64_C(4) << 30)

static uint64_t most_kept; /* bytes a context, UINT64_MAX: by the device */
static uint64_t decay_ms;
context_cache context_caches[WEIR_CACHES];
context_cache host_caches[WEIR_CACHES][WEIR_HOSTS];
static _Atomic uint32_t hosts_made[WEIR_CACHES]; /* bitmap of those of a context that there are */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* over making and ending caches */
static uint64_t contexts_gone;                             /* so far; under it */
_Atomic uint64_t tainted_serial;
_Atomic bool peer_access_enabled;
static _Atomic bool broken; /* a context has an error that stays */
#define OWN static __thread __attribute__((tls_model("initial-exec")))
OWN uint64_t moves_seen; /* block_cache_move_count() when this thread last gave all back */
OWN unsigned tries;      /* of its allocation, after the first */

/* ---- caches ---------------------------------------------------------------------------------- */

void context_caches_start(uint64_t keep_bytes, uint64_t decay)
{
  most_kept = keep_bytes;
  decay_ms = decay;
}

static uint64_t most_cached(unsigned device)
{
  PFN_cuDeviceTotalMem_v3020 ask = WEIR_HELPER(cuDeviceTotalMem_v2);
  size_t total = 0;
  if (most_kept != UINT64_MAX) return most_kept;
  if (!ask || ask(&total, (CUdevice)device) != CUDA_SUCCESS) return 0;
  return total / 10 < CACHE_MOST ? total / 10 : CACHE_MOST;
}

static uint64_t most_pinned(void)
{
  uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  if (most_kept != UINT64_MAX) return most_kept;
  return ram / 10 < CACHE_MOST ? ram / 10 : CACHE_MOST;
}

static _Atomic bool watchers_known; /* it was asked whether there is a debugger */

/* Before the first cache and the first staged copy: a debugger may have come since the start, and
 * what another library owns must be known. Under the lock. */
static bool is_watched(void)
{
  owners_find();
  const char *tool = atomic_load(&watchers_known) ? NULL : tool_at_work();
  atomic_store(&watchers_known, true);
  if (!tool) return process_mode_now() == WEIR_OBSERVE;
  atomic_store(&process_mode, WEIR_OBSERVE);
  fill_start(WEIR_FILL_NONE);
  driver_pools_keep(false);
  if (spool_current()) spool_current()->mode = WEIR_OBSERVE;
  tool_report(tool);
  return true;
}

void reroute_make_way(void)
{
  pthread_mutex_lock(&making);
  owners_find();
  pthread_mutex_unlock(&making);
}

bool reroute_is_watched(void)
{
  if (__builtin_expect(!atomic_load_explicit(&watchers_known, memory_order_relaxed), 0)) {
    pthread_mutex_lock(&making);
    (void)is_watched();
    pthread_mutex_unlock(&making);
  }
  return process_mode_now() == WEIR_OBSERVE;
}

/* Memory has gone back to the driver: a fact for the trace. */
static void on_device_free(void *device, const block_cache_freed *given)
{
  const reroute_device *d = device;
  cache_event_write(&(trace_event){.start = given->start,
                                   .cache_fact = WEIR_CACHE_GIVEN_BACK,
                                   .device = d->host ? WEIR_DEVICE_NONE : (uint8_t)d->backend.index,
                                   .mem = d->host ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                                   .a = given->address,
                                   .b = given->why,
                                   .bytes = given->bytes});
}

bool context_cache_make(context_cache *k, const thread_state *t, int host)
{
  if (!process_reroutes_have(host >= 0 ? REROUTE_PINNED : REROUTE_DEVICE)) return false;
  pthread_mutex_lock(&making);
  if (!k->cache && !is_watched() &&
      process_reroutes_have(host >= 0 ? REROUTE_PINNED : REROUTE_DEVICE) &&
      reroute_device_init(&k->device, (CUcontext)(uintptr_t)t->last_context, t->last_context_number,
                          t->last_device, host >= 0)) {
    block_cache_options o = {.keep_bytes = host >= 0 ? most_pinned() : most_cached(t->last_device),
                             .decay_ms = decay_ms,
                             .on_given = on_device_free};
    block_cache *made;
    if (!block_cache_open(&made, &k->device.backend, &o)) {
      __atomic_store_n(&k->cache, made, __ATOMIC_RELEASE);
      if (host >= 0) atomic_fetch_or(&hosts_made[t->last_context_number], UINT32_C(1) << host);
    }
  }
  pthread_mutex_unlock(&making);
  return k->cache != NULL;
}

/* Takes the first out of a copy of hosts_made[]; -1: none is left. */
static int next_host(uint32_t *made)
{
  _Static_assert(WEIR_HOSTS <= 32, "a bit each");
  if (!*made) return -1;
  int first = __builtin_ctz(*made);
  *made &= *made - 1;
  return first;
}

static void abandon_cache(context_cache *k)
{
  if (k->cache) block_cache_abandon(k->cache);
  k->cache = NULL;
}

void reroute_context_gone(unsigned number)
{
  if (!number || number >= WEIR_CACHES - 1) return;
  staging_context_gone(number);
  peer_access_context_gone(number);
  fill_context_gone(number);
  poison_context_gone(number);
  reroute_device_gone(number);
  pthread_mutex_lock(&making);
  contexts_gone++;
  abandon_cache(&context_caches[number]);
  uint32_t made = atomic_exchange(&hosts_made[number], 0);
  for (int i; (i = next_host(&made)) >= 0;)
    abandon_cache(&host_caches[number][i]);
  atomic_store(&broken, false);
  pthread_mutex_unlock(&making);
}

/* `waiting`: too, what could not be waited for. */
static void trim_cache(block_cache *w, bool waiting)
{
  if (!w) return;
  (void)block_cache_trim(w, 0);
  if (waiting) (void)block_cache_trim_waiting(w);
}

/* Errors after which a context answers nothing else: "the process must be terminated" (cuda.h,
 * CUresult; some are newer than the headers may be). */
static bool is_sticky_error(int r)
{
  enum { CONTAINED = 226, TENSOR_MEMORY_LEAK = 721, MPS_CLIENT_TERMINATED = 810, EXTERNAL = 911 };
  return r == CUDA_ERROR_ECC_UNCORRECTABLE || r == CONTAINED || r == CUDA_ERROR_ILLEGAL_ADDRESS ||
         r == CUDA_ERROR_LAUNCH_TIMEOUT || r == CUDA_ERROR_ASSERT ||
         (r >= CUDA_ERROR_HARDWARE_STACK_ERROR && r <= CUDA_ERROR_LAUNCH_FAILED) ||
         r == TENSOR_MEMORY_LEAK || r == MPS_CLIENT_TERMINATED || r == EXTERNAL;
}

/* The runtime keeps the last error of a thread; that of a try which nobody saw is taken away. */
void reroute_retry_succeeded(int bank)
{
  typedef cudaError_t (*fn)(void);
  fn take = bank == WEIR_BANK_DRIVER
                ? NULL
                : (fn)(uintptr_t)elf_symbol(cuda_library_soname(bank), "cudaGetLastError");
  if (take) (void)take();
  tries = 0;
}

void reroute_taint_all(bool tell)
{
  if (process_mode_now() == WEIR_OBSERVE) return;
  uint64_t last = block_cache_serial() - 1, seen = atomic_load(&tainted_serial);
  while (seen < last && !atomic_compare_exchange_weak(&tainted_serial, &seen, last))
    ;
  if (seen < last && tell) cache_event_tainted(0, 0, WEIR_WHY_GRAPH);
}

/* ---- waiting for the device ------------------------------------------------------------------ */

static uint64_t clock_of(const context_cache *k)
{
  return k->cache ? block_cache_clock(k->cache) : 0;
}

static void complete_until(const context_cache *k, uint64_t clock)
{
  if (clock && k->cache) block_cache_complete(k->cache, clock);
}

void wait_mark_begin(wait_mark *m, unsigned number)
{
  uint32_t made = m->made = atomic_load(&hosts_made[number]);
  m->number = number;
  m->clock = clock_of(&context_caches[number]);
  for (int i; (i = next_host(&made)) >= 0;)
    m->host[i] = clock_of(&host_caches[number][i]);
  m->age = work_wait_begins();
}

void wait_mark_end(const wait_mark *m)
{
  uint32_t made = m->made;
  work_waited(m->number, m->age);
  complete_until(&context_caches[m->number], m->clock);
  for (int i; (i = next_host(&made)) >= 0;)
    complete_until(&host_caches[m->number][i], m->host[i]);
}

/* Waits for all work of the cache's context and informs the caches, where anything in them waits;
 * the driver's answer. */
CUresult context_cache_wait(const context_cache *k)
{
  wait_mark m;
  bool tell = process_mode_now() == WEIR_RELAXED;
  if (tell) wait_mark_begin(&m, k->device.number);
  CUresult r = reroute_device_wait(&k->device);
  if (r == CUDA_SUCCESS && tell) wait_mark_end(&m);
  if (is_sticky_error((int)r)) atomic_store(&broken, true);
  return r;
}

static bool has_waiting(block_cache *w)
{
  block_cache_counters s;
  if (w) block_cache_get_stats(w, &s);
  return w && s.waiting;
}

void context_caches_age(unsigned number)
{
  uint32_t made = atomic_load(&hosts_made[number]);
  if (context_caches[number].cache) block_cache_age(context_caches[number].cache);
  for (int i; (i = next_host(&made)) >= 0;)
    if (host_caches[number][i].cache) block_cache_age(host_caches[number][i].cache);
}

/* What a context's frees did not wait for, they would have without us: now is the time. The lock is
 * held and let go for the wait, in which the context may go. False: it could not be waited for, as
 * during a capture; what is waiting then goes back by frees of the driver's, which wait themselves.
 */
static bool wait_for_waiting(unsigned number)
{
  const context_cache *waiting =
      has_waiting(context_caches[number].cache) ? &context_caches[number] : NULL;
  uint32_t made = atomic_load(&hosts_made[number]);
  for (int i; !waiting && (i = next_host(&made)) >= 0;)
    if (has_waiting(host_caches[number][i].cache)) waiting = &host_caches[number][i];
  if (!waiting) return true;
  if (reroute_hands_off()) return false;
  reroute_device device = waiting->device;
  uint64_t before = contexts_gone;
  wait_mark m;
  wait_mark_begin(&m, number);
  pthread_mutex_unlock(&making);
  CUresult r = reroute_device_wait(&device);
  pthread_mutex_lock(&making);
  if (is_sticky_error((int)r)) atomic_store(&broken, true);
  if (r == CUDA_SUCCESS && before == contexts_gone) wait_mark_end(&m);
  return r == CUDA_SUCCESS;
}

/* All cached memory of all contexts goes back. Under the lock: another thread may end a context. */
static void trim_all_caches(void)
{
  pthread_mutex_lock(&making);
  for (unsigned i = 1; i < WEIR_CACHES - 1; i++) {
    bool waiting = !wait_for_waiting(i);
    trim_cache(context_caches[i].cache, waiting);
    uint32_t made = atomic_load(&hosts_made[i]);
    for (int j; (j = next_host(&made)) >= 0;)
      trim_cache(host_caches[i][j].cache, waiting);
  }
  pthread_mutex_unlock(&making);
}

/* What other threads are just giving back was freed by the program before: without us it would be
 * there. For a while: the driver's free may wait for work that needs what this thread does next. */
static void wait_for_frees(void)
{
  enum { YIELDS = 64, PAUSES = 50000 };
  for (int i = 0; block_cache_is_freeing() && i < YIELDS + PAUSES; i++)
    if (i < YIELDS)
      (void)sched_yield();
    else
      (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

bool reroute_release_cached(void)
{
  int saved = errno;
  trim_all_caches();
  wait_for_frees();
  uint64_t moves = block_cache_move_count();
  bool more = moves != moves_seen;
  moves_seen = moves;
  more |= driver_pools_trim_kept();
  errno = saved;
  return more;
}

/* Others go on meanwhile: what they free goes into caches again, and a try may come too late for
 * what was given back for it, or too early for what another thread has taken out of a cache since,
 * having freed as much. A thread that has tried so often lives with the driver's answer. */
bool reroute_should_retry(int error)
{
  enum { TRIES = 100 };
  reroute_note_error(error);
  if (error != CUDA_ERROR_OUT_OF_MEMORY || process_mode_now() == WEIR_OBSERVE) return false;
  if (process_left_have(REROUTE_DEVICE)) return false; /* no cache has any of that */
  if (tries < TRIES && reroute_release_cached()) {
    tries++;
    return true;
  }
  tries = 0;
  return false;
}

void reroute_note_error(int error)
{
  if (process_mode_now() != WEIR_OBSERVE && is_sticky_error(error)) atomic_store(&broken, true);
}

void reroute_peers_enabled(void)
{
  if (!atomic_load_explicit(&peer_access_enabled, memory_order_relaxed))
    atomic_store(&peer_access_enabled, true);
}

bool reroute_context_broken(void)
{
  return atomic_load_explicit(&broken, memory_order_relaxed);
}

bool reroute_hands_off(void)
{
  return capture_live() || reroute_context_broken();
}

weir_status context_caches_stream_ends(unsigned number, void *stream, bool busy)
{
  weir_status st = WEIR_OK;
  if (context_cache_here())
    st = block_cache_stream_ends(context_caches[number].cache, stream, busy);
  uint32_t made = atomic_load(&hosts_made[number]);
  for (int i; !st && (i = next_host(&made)) >= 0;)
    if (host_caches[number][i].cache)
      st = block_cache_stream_ends(host_caches[number][i].cache, stream, busy);
  return st;
}
