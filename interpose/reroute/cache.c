/* cache.c: the caches that rerouted memory comes from and goes back to, and what all of
 * them are told: that work is complete, that memory is short, that a context is gone. A context's
 * cache is made at its first allocation. A cache is found by the number of the thread's current
 * context, which is asked for anew at each call: it is what the driver would allocate in. */
#include "interpose/reroute/within.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include "interpose/reroute/poison.h"
#include "interpose/record/stats.h"
#include "interpose/reroute/rules.h"
#include "interpose/process/tools.h"
#include "interpose/record/work.h"
#include "interpose/elf/elf.h"

#define CACHE_MOST (UINT64_C(4) << 30)

static uint64_t most_kept; /* bytes a context, UINT64_MAX: by the device */
static uint64_t decay_ms;
weir_cache weir_caches[WEIR_CACHES];
weir_cache weir_host_caches[WEIR_CACHES][WEIR_HOSTS];
static _Atomic uint32_t hosts_made[WEIR_CACHES]; /* bitmap of those of a context that there are */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* over making and ending caches */
static uint64_t contexts_gone;                             /* so far; under it */
_Atomic uint64_t weir_tainted;
_Atomic bool weir_peers;
static _Atomic bool broken; /* a context has an error that stays */
#define OWN static __thread __attribute__((tls_model("initial-exec")))
OWN uint64_t given_seen; /* weir_whole_given_so_far() when this thread last gave all back */
OWN unsigned tries;      /* of its allocation, after the first */

/* ---- caches ---------------------------------------------------------------------------------- */

void weir_caches_start(uint64_t keep_bytes, uint64_t decay)
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

/* Ahead of the first cache and the first staged copy: a debugger may have come since the start.
 * Under the lock. */
static bool debugged(void)
{
  const char *tool = atomic_load(&watchers_known) ? NULL : weir_tool_at_work();
  atomic_store(&watchers_known, true);
  if (!tool) return weir_mode_now() == WEIR_OBSERVE;
  atomic_store(&weir_mode, WEIR_OBSERVE);
  weir_fill_start(WEIR_FILL_NONE);
  if (weir_spool_current()) weir_spool_current()->mode = WEIR_OBSERVE;
  weir_tool_say(tool);
  return true;
}

bool weir_route_watched(void)
{
  if (__builtin_expect(!atomic_load_explicit(&watchers_known, memory_order_relaxed), 0)) {
    pthread_mutex_lock(&making);
    (void)debugged();
    pthread_mutex_unlock(&making);
  }
  return weir_mode_now() == WEIR_OBSERVE;
}

/* Memory has gone back to the driver: a fact for the trace. */
static void on_given(void *device, const weir_whole_given *given)
{
  const weir_route_device *d = device;
  weir_stats_write(
      &(weir_trace_event){.start = given->start,
                          .copy = WEIR_CACHE_GIVEN_BACK,
                          .device = d->host ? WEIR_DEVICE_NONE : (uint8_t)d->backend.index,
                          .mem = d->host ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                          .a = given->address,
                          .b = given->why,
                          .bytes = given->bytes});
}

bool weir_cache_make(weir_cache *k, const weir_thread *t, int host)
{
  pthread_mutex_lock(&making);
  if (!k->whole && !debugged() &&
      weir_route_device_init(&k->device, (CUcontext)(uintptr_t)t->last_context,
                             t->last_context_number, t->last_device, host >= 0)) {
    weir_whole_options o = {.keep_bytes = host >= 0 ? most_pinned() : most_cached(t->last_device),
                            .decay_ms = decay_ms,
                            .on_given = on_given};
    weir_whole *made;
    if (!weir_whole_open(&made, &k->device.backend, &o)) {
      __atomic_store_n(&k->whole, made, __ATOMIC_RELEASE);
      if (host >= 0) atomic_fetch_or(&hosts_made[t->last_context_number], UINT32_C(1) << host);
    }
  }
  pthread_mutex_unlock(&making);
  return k->whole != NULL;
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

static void abandon(weir_cache *k)
{
  if (k->whole) weir_whole_abandon(k->whole);
  k->whole = NULL;
}

void weir_route_context_gone(unsigned number)
{
  if (!number || number >= WEIR_CACHES - 1) return;
  weir_stage_context_gone(number);
  weir_fill_context_gone(number);
  weir_poison_context_gone(number);
  weir_route_device_gone(number);
  pthread_mutex_lock(&making);
  contexts_gone++;
  abandon(&weir_caches[number]);
  uint32_t made = atomic_exchange(&hosts_made[number], 0);
  for (int i; (i = next_host(&made)) >= 0;)
    abandon(&weir_host_caches[number][i]);
  atomic_store(&broken, false);
  pthread_mutex_unlock(&making);
}

/* `waiting`: too, what could not be waited for. */
static void give_back(weir_whole *w, bool waiting)
{
  if (!w) return;
  (void)weir_whole_trim(w, 0);
  if (waiting) (void)weir_whole_trim_waiting(w);
}

/* Errors after which a context answers nothing else: "the process must be terminated" (cuda.h,
 * CUresult; some are newer than the headers may be). */
static bool stays(int r)
{
  enum { CONTAINED = 226, TENSOR_MEMORY_LEAK = 721, MPS_CLIENT_TERMINATED = 810, EXTERNAL = 911 };
  return r == CUDA_ERROR_ECC_UNCORRECTABLE || r == CONTAINED || r == CUDA_ERROR_ILLEGAL_ADDRESS ||
         r == CUDA_ERROR_LAUNCH_TIMEOUT || r == CUDA_ERROR_ASSERT ||
         (r >= CUDA_ERROR_HARDWARE_STACK_ERROR && r <= CUDA_ERROR_LAUNCH_FAILED) ||
         r == TENSOR_MEMORY_LEAK || r == MPS_CLIENT_TERMINATED || r == EXTERNAL;
}

/* The runtime keeps the last error of a thread; that of a try which nobody saw is taken away. */
void weir_route_error_gone(int bank)
{
  typedef cudaError_t (*fn)(void);
  fn take = bank == WEIR_BANK_DRIVER
                ? NULL
                : (fn)(uintptr_t)weir_elf_symbol(weir_bank_soname(bank), "cudaGetLastError");
  if (take) (void)take();
  tries = 0;
}

void weir_route_taint_all(bool tell)
{
  if (weir_mode_now() == WEIR_OBSERVE) return;
  uint64_t last = weir_whole_serial() - 1, seen = atomic_load(&weir_tainted);
  while (seen < last && !atomic_compare_exchange_weak(&weir_tainted, &seen, last))
    ;
  if (seen < last && tell) weir_stats_tainted(0, 0, WEIR_WHY_GRAPH);
}

/* ---- waiting for the device ------------------------------------------------------------------ */

static uint64_t clock_of(const weir_cache *k)
{
  return k->whole ? weir_whole_clock(k->whole) : 0;
}

static void complete(const weir_cache *k, uint64_t clock)
{
  if (clock && k->whole) weir_whole_complete(k->whole, clock);
}

void weir_moment_begin(weir_moment *m, unsigned number)
{
  uint32_t made = m->made = atomic_load(&hosts_made[number]);
  m->number = number;
  m->clock = clock_of(&weir_caches[number]);
  for (int i; (i = next_host(&made)) >= 0;)
    m->host[i] = clock_of(&weir_host_caches[number][i]);
  m->age = weir_work_wait_begins();
}

void weir_moment_over(const weir_moment *m)
{
  uint32_t made = m->made;
  weir_work_waited(m->number, m->age);
  complete(&weir_caches[m->number], m->clock);
  for (int i; (i = next_host(&made)) >= 0;)
    complete(&weir_host_caches[m->number][i], m->host[i]);
}

/* Waits for all work of the cache's context and tells the caches, where anything in them waits; the
 * driver's answer. */
CUresult weir_cache_wait(const weir_cache *k)
{
  weir_moment m;
  bool tell = weir_mode_now() == WEIR_RELAXED;
  if (tell) weir_moment_begin(&m, k->device.number);
  CUresult r = weir_route_device_wait(&k->device);
  if (r == CUDA_SUCCESS && tell) weir_moment_over(&m);
  if (stays((int)r)) atomic_store(&broken, true);
  return r;
}

static bool has_waiting(weir_whole *w)
{
  weir_whole_stats s;
  if (w) weir_whole_get_stats(w, &s);
  return w && s.waiting;
}

void weir_caches_age(unsigned number)
{
  uint32_t made = atomic_load(&hosts_made[number]);
  if (weir_caches[number].whole) weir_whole_age(weir_caches[number].whole);
  for (int i; (i = next_host(&made)) >= 0;)
    if (weir_host_caches[number][i].whole) weir_whole_age(weir_host_caches[number][i].whole);
}

/* What a context's frees did not wait for, they would have without us: now is the time. The lock is
 * held and let go for the wait, in which the context may go. False: it could not be waited for, as
 * beside a capture; what is waiting then goes back by frees of the driver's, which wait themselves.
 */
static bool wait_for_waiting(unsigned number)
{
  const weir_cache *waiting = has_waiting(weir_caches[number].whole) ? &weir_caches[number] : NULL;
  uint32_t made = atomic_load(&hosts_made[number]);
  for (int i; !waiting && (i = next_host(&made)) >= 0;)
    if (has_waiting(weir_host_caches[number][i].whole)) waiting = &weir_host_caches[number][i];
  if (!waiting) return true;
  if (weir_route_hands_off()) return false;
  weir_route_device device = waiting->device;
  uint64_t before = contexts_gone;
  weir_moment m;
  weir_moment_begin(&m, number);
  pthread_mutex_unlock(&making);
  CUresult r = weir_route_device_wait(&device);
  pthread_mutex_lock(&making);
  if (stays((int)r)) atomic_store(&broken, true);
  if (r == CUDA_SUCCESS && before == contexts_gone) weir_moment_over(&m);
  return r == CUDA_SUCCESS;
}

/* All cached memory of all contexts goes back. Under the lock: another thread may end a context. */
static void give_all_back(void)
{
  pthread_mutex_lock(&making);
  for (unsigned i = 1; i < WEIR_CACHES - 1; i++) {
    bool waiting = !wait_for_waiting(i);
    give_back(weir_caches[i].whole, waiting);
    uint32_t made = atomic_load(&hosts_made[i]);
    for (int j; (j = next_host(&made)) >= 0;)
      give_back(weir_host_caches[i][j].whole, waiting);
  }
  pthread_mutex_unlock(&making);
}

/* What other threads are just giving back was freed by the program before: without us it would be
 * there. For a while: the driver's free may wait for work that needs what this thread does next. */
static void wait_for_giving(void)
{
  enum { YIELDS = 64, PAUSES = 50000 };
  for (int i = 0; weir_whole_giving() && i < YIELDS + PAUSES; i++)
    if (i < YIELDS)
      (void)sched_yield();
    else
      (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

bool weir_route_relieve(void)
{
  int saved = errno;
  give_all_back();
  wait_for_giving();
  uint64_t given = weir_whole_given_so_far();
  bool more = given != given_seen;
  given_seen = given;
  errno = saved;
  return more;
}

/* Others go on meanwhile: what they free goes into caches again, and a try may come too late for
 * what was given back for it. A thread that has tried so often lives with the driver's answer. */
bool weir_route_failed(int error)
{
  enum { TRIES = 100 };
  weir_route_saw(error);
  if (error != CUDA_ERROR_OUT_OF_MEMORY || weir_mode_now() == WEIR_OBSERVE) return false;
  if (tries < TRIES && weir_route_relieve()) {
    tries++;
    return true;
  }
  tries = 0;
  return false;
}

void weir_route_saw(int error)
{
  if (weir_mode_now() != WEIR_OBSERVE && stays(error)) atomic_store(&broken, true);
}

void weir_route_peers(void)
{
  if (!atomic_load_explicit(&weir_peers, memory_order_relaxed)) atomic_store(&weir_peers, true);
}

bool weir_route_hands_off(void)
{
  return weir_capture_live() || atomic_load_explicit(&broken, memory_order_relaxed);
}

weir_status weir_caches_stream_ends(unsigned number, void *stream, bool busy)
{
  weir_status st = WEIR_OK;
  if (weir_cache_here()) st = weir_whole_stream_ends(weir_caches[number].whole, stream, busy);
  uint32_t made = atomic_load(&hosts_made[number]);
  for (int i; !st && (i = next_host(&made)) >= 0;)
    if (weir_host_caches[number][i].whole)
      st = weir_whole_stream_ends(weir_host_caches[number][i].whole, stream, busy);
  return st;
}
