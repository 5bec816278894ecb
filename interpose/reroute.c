/* reroute.c: see reroute.h. A context's cache is made at its first allocation. A cache is found by
 * the number of the thread's current context, which is asked for anew at each call: it is what the
 * driver would allocate in.
 *
 * What is left to the driver: sizes of 0, allocations and frees while a stream is being captured, a
 * thread without a context, a runtime before 12 whose device is chosen but not yet current, blocks
 * that were shared or that a graph may use, and everything after a sticky error. Why a call was
 * left to the driver, or had to ask it for memory, is said in the call's event (weir_call.why).
 */
#include "interpose/reroute.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "core/memory/whole.h"
#include "interpose/context.h"
#include "interpose/event_fill.h"
#include "interpose/pointers.h"
#include "interpose/poison.h"
#include "interpose/reroute_device.h"
#include "interpose/reroute_stats.h"
#include "interpose/rules.h"
#include "interpose/tools.h"
#include "interpose/work.h"

enum { CACHES = 256, STREAMS = 64 };

/* Page-locked memory is got by four functions with three flags; what one of them gave is handed out
 * by the same with the same flags only. */
enum host_kind { HOST_RT_PLAIN, HOST_RT_FLAGS, HOST_PLAIN, HOST_FLAGS, HOST_KINDS };
enum { HOST_FLAG_VALUES = 8, HOSTS = HOST_KINDS * HOST_FLAG_VALUES };

#define CACHE_MOST (UINT64_C(4) << 30)

typedef struct cache {
  weir_route_device device;
  weir_whole *whole; /* NULL: none yet */
} cache;

_Atomic uint8_t weir_mode;
static weir_route_options options;
static cache caches[CACHES]; /* device memory, by number of context */
static cache hosts[CACHES][HOSTS];
static _Atomic uint32_t hosts_made[CACHES]; /* bitmap of those of a context that there are */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* over making and ending caches */
static uint64_t contexts_gone;                             /* so far; under it */
static _Atomic uint64_t tainted; /* blocks with a serial up to this are never cached */
static _Atomic bool peers;       /* kernels of one device may touch memory of another */
static _Atomic bool broken;      /* a context has an error that stays */

/* ---- caches -----------------------------------------------------------------------------------
 */

void weir_route_start(const weir_route_options *o)
{
  options = *o;
  weir_stage_start(&o->stage);
  if (o->rules) weir_rules_start(o->rules);
  weir_fill_start(o->mode == WEIR_OBSERVE ? WEIR_FILL_NONE : o->fill);
  atomic_store(&weir_mode, (uint8_t)o->mode);
}

void weir_route_forked(void)
{
  atomic_store(&weir_mode, WEIR_OBSERVE);
}

bool weir_route_enter(weir_call *c, int bank, unsigned flags)
{
  weir_thread *t = &weir_self;
  if (t->depth || weir_mode_now() == WEIR_OBSERVE) return false;
  *c = (weir_call){.thread = t,
                   .bank = (uint8_t)bank,
                   .flags = (uint8_t)flags,
                   .start = weir_ticks(),
                   .site = c->site};
  t->depth = 1;
  t->outermost = (uintptr_t)c;
  return true;
}

static uint64_t most_cached(unsigned device)
{
  PFN_cuDeviceTotalMem_v3020 ask = WEIR_HELPER(cuDeviceTotalMem_v2, PFN_cuDeviceTotalMem_v3020);
  size_t total = 0;
  if (options.keep_bytes != UINT64_MAX) return options.keep_bytes;
  if (!ask || ask(&total, (CUdevice)device) != CUDA_SUCCESS) return 0;
  return total / 10 < CACHE_MOST ? total / 10 : CACHE_MOST;
}

static uint64_t most_pinned(void)
{
  uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  if (options.keep_bytes != UINT64_MAX) return options.keep_bytes;
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

static weir_whole *cache_make(cache *k, const weir_thread *t, int host)
{
  pthread_mutex_lock(&making);
  if (!k->whole && !debugged() &&
      weir_route_device_init(&k->device, (CUcontext)(uintptr_t)t->last_context,
                             t->last_context_number, t->last_device, host >= 0)) {
    weir_whole_options o = {.keep_bytes = host >= 0 ? most_pinned() : most_cached(t->last_device),
                            .decay_ms = options.decay_ms,
                            .on_given = weir_stats_given};
    weir_whole *made;
    if (!weir_whole_open(&made, &k->device.backend, &o)) {
      __atomic_store_n(&k->whole, made, __ATOMIC_RELEASE);
      if (host >= 0) atomic_fetch_or(&hosts_made[t->last_context_number], UINT32_C(1) << host);
    }
  }
  pthread_mutex_unlock(&making);
  return k->whole;
}

/* The cache of the thread's context (`host`: of page-locked memory got in that way, -1: of device
 * memory); NULL: none can be had. */
WEIR_INLINE cache *cache_for(int host)
{
  weir_thread *t = &weir_self;
  weir_context_refresh(t);
  unsigned n = t->last_context_number;
  if (__builtin_expect(!n || n >= CACHES - 1, 0)) return NULL;
  cache *k = host < 0 ? &caches[n] : &hosts[n][host];
  if (__builtin_expect(__atomic_load_n(&k->whole, __ATOMIC_ACQUIRE) != NULL, 1)) return k;
  return cache_make(k, t, host) ? k : NULL;
}

WEIR_INLINE cache *cache_here(void)
{
  return cache_for(-1);
}

/* Whose block it is, NULL: nobody's. A cache's device is its first member. */
static cache *cache_of(const weir_whole_block *b)
{
  return b->state == WEIR_WHOLE_NONE ? NULL : b->backend->self;
}

/* What the pointer map says of a cache's memory. */
static weir_tag tag_of(const cache *k)
{
  return weir_tag_make(k->device.host ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                       (unsigned)k->device.backend.index, k->device.number);
}

/* Takes the first out of a copy of hosts_made[]; -1: none is left. */
static int next_host(uint32_t *made)
{
  _Static_assert(HOSTS <= 32, "a bit each");
  if (!*made) return -1;
  int first = __builtin_ctz(*made);
  *made &= *made - 1;
  return first;
}

static void abandon(cache *k)
{
  if (k->whole) weir_whole_abandon(k->whole);
  k->whole = NULL;
}

void weir_route_context_gone(unsigned number)
{
  weir_work_forget_context(number);
  if (!number || number >= CACHES - 1) return;
  weir_stage_context_gone(number);
  weir_fill_context_gone(number);
  weir_poison_context_gone(number);
  pthread_mutex_lock(&making);
  contexts_gone++;
  abandon(&caches[number]);
  uint32_t made = atomic_exchange(&hosts_made[number], 0);
  for (int i; (i = next_host(&made)) >= 0;)
    abandon(&hosts[number][i]);
  atomic_store(&broken, false);
  pthread_mutex_unlock(&making);
}

static bool give_back(weir_whole *w)
{
  weir_whole_stats before, after;
  if (!w) return false;
  weir_whole_get_stats(w, &before);
  if (weir_whole_trim(w, 0)) return false;
  weir_whole_get_stats(w, &after);
  return after.device_frees != before.device_frees;
}

/* Errors after which a context answers nothing else (CUDA Driver API, "the context cannot be
 * used").
 */
static bool stays(int r)
{
  return r == CUDA_ERROR_ECC_UNCORRECTABLE || r == CUDA_ERROR_ILLEGAL_ADDRESS ||
         r == CUDA_ERROR_LAUNCH_TIMEOUT || r == CUDA_ERROR_ASSERT ||
         (r >= CUDA_ERROR_HARDWARE_STACK_ERROR && r <= CUDA_ERROR_LAUNCH_FAILED);
}

/* The runtime keeps the last error of a thread; that of a try which nobody saw is taken away. */
void weir_route_error_gone(int bank)
{
  typedef cudaError_t (*fn)(void);
  fn take = bank == WEIR_BANK_DRIVER
                ? NULL
                : (fn)(uintptr_t)weir_elf_symbol(weir_bank_soname(bank), "cudaGetLastError");
  if (take) (void)take();
}

uint64_t weir_route_cached(void)
{
  weir_whole_stats s;
  const cache *k = cache_here();
  if (!k) return 0;
  weir_whole_get_stats(k->whole, &s);
  return s.idle_bytes + s.waiting_bytes;
}

void weir_route_taint_all(void)
{
  if (weir_mode_now() == WEIR_OBSERVE) return;
  uint64_t last = weir_whole_serial() - 1, seen = atomic_load(&tainted);
  while (seen < last && !atomic_compare_exchange_weak(&tainted, &seen, last))
    ;
  if (seen < last) weir_stats_tainted(0, 0, WEIR_WHY_GRAPH);
}

/* ---- waiting for the device -------------------------------------------------------------------
 */

/* What was freed before a wait for a context began, for all caches of the context. */
typedef struct moment {
  unsigned number;
  uint32_t age, made; /* made: bitmap of `host` */
  uint64_t clock, host[HOSTS];
} moment;

static uint64_t clock_of(const cache *k)
{
  return k->whole ? weir_whole_clock(k->whole) : 0;
}

static void complete(const cache *k, uint64_t clock)
{
  if (clock && k->whole) weir_whole_complete(k->whole, clock);
}

static void wait_begins(moment *m, unsigned number)
{
  uint32_t made = m->made = atomic_load(&hosts_made[number]);
  m->number = number;
  m->clock = clock_of(&caches[number]);
  for (int i; (i = next_host(&made)) >= 0;)
    m->host[i] = clock_of(&hosts[number][i]);
  m->age = weir_work_wait_begins();
}

static void waited(const moment *m)
{
  uint32_t made = m->made;
  weir_work_waited(m->number, m->age);
  complete(&caches[m->number], m->clock);
  for (int i; (i = next_host(&made)) >= 0;)
    complete(&hosts[m->number][i], m->host[i]);
}

/* Waits for all work of the cache's context and tells the caches, where anything in them waits; the
 * driver's answer. */
static CUresult wait_for(const cache *k)
{
  moment m;
  bool tell = weir_mode_now() == WEIR_RELAXED;
  if (tell) wait_begins(&m, k->device.number);
  CUresult r = weir_route_device_wait(&k->device);
  if (r == CUDA_SUCCESS && tell) waited(&m);
  if (stays((int)r)) atomic_store(&broken, true);
  return r;
}

static bool has_waiting(weir_whole *w)
{
  weir_whole_stats s;
  if (w) weir_whole_get_stats(w, &s);
  return w && s.waiting;
}

/* What a context's frees did not wait for, they would have without us: now is the time. The lock is
 * held and let go for the wait, in which the context may go. */
static void wait_for_waiting(unsigned number)
{
  const cache *waiting = has_waiting(caches[number].whole) ? &caches[number] : NULL;
  uint32_t made = atomic_load(&hosts_made[number]);
  for (int i; !waiting && (i = next_host(&made)) >= 0;)
    if (has_waiting(hosts[number][i].whole)) waiting = &hosts[number][i];
  if (!waiting || weir_route_hands_off()) return;
  weir_route_device device = waiting->device;
  uint64_t before = contexts_gone;
  moment m;
  wait_begins(&m, number);
  pthread_mutex_unlock(&making);
  CUresult r = weir_route_device_wait(&device);
  pthread_mutex_lock(&making);
  if (stays((int)r)) atomic_store(&broken, true);
  if (r == CUDA_SUCCESS && before == contexts_gone) waited(&m);
}

/* All cached memory of all contexts goes back, but what work is pending on while nothing may be
 * waited for; whether that was any. Under the lock: another thread may end a context. */
static bool relieve(void)
{
  bool gave = false;
  pthread_mutex_lock(&making);
  for (unsigned i = 1; i < CACHES - 1; i++) {
    wait_for_waiting(i);
    gave |= give_back(caches[i].whole);
    uint32_t made = atomic_load(&hosts_made[i]);
    for (int j; (j = next_host(&made)) >= 0;)
      gave |= give_back(hosts[i][j].whole);
  }
  pthread_mutex_unlock(&making);
  return gave;
}

bool weir_route_failed(int error)
{
  if (weir_mode_now() == WEIR_OBSERVE) return false;
  if (stays(error)) atomic_store(&broken, true);
  return error == CUDA_ERROR_OUT_OF_MEMORY && relieve();
}

/* Work that is pending in other contexts may use the cache's memory, and a free here waits for its
 * own context only: device memory once peer access was enabled, page-locked memory, which every
 * device can reach, once there are two. Copies from one to the other are seen block by block. */
static bool reached(const cache *k)
{
  return k->device.host ? weir_many_devices() : atomic_load_explicit(&peers, memory_order_relaxed);
}

void weir_route_peers(void)
{
  if (!atomic_load_explicit(&peers, memory_order_relaxed)) atomic_store(&peers, true);
}

bool weir_route_hands_off(void)
{
  return atomic_load_explicit(&weir_captures, memory_order_relaxed) != 0 ||
         atomic_load_explicit(&broken, memory_order_relaxed);
}

/* ---- allocating -------------------------------------------------------------------------------
 */

/* A runtime before 12 makes the device that was chosen current at its next call only. */
__attribute__((noinline)) static bool old_runtime_is_elsewhere(void)
{
  typedef cudaError_t (*fn)(int *);
  int device = -1;
  fn ask = (fn)(uintptr_t)weir_elf_symbol(weir_bank_soname(WEIR_BANK_RT11), "cudaGetDevice");
  weir_context_refresh(&weir_self);
  return !ask || ask(&device) != cudaSuccess || device != (int)weir_self.last_device;
}

WEIR_INLINE bool runtime_is_elsewhere(const weir_call *c)
{
  return c->bank == WEIR_BANK_RT11 && old_runtime_is_elsewhere();
}

/* Why the hands are off: false, for what is the driver's. */
static bool left(weir_call *c, weir_reason why)
{
  c->why = (uint8_t)why;
  return false;
}

static weir_reason hands_off_why(void)
{
  return atomic_load(&weir_captures) ? WEIR_WHY_CAPTURE : WEIR_WHY_ERROR;
}

/* The trace's reasons for a miss are the cache's. */
static uint8_t why_missed(uint64_t address)
{
  _Static_assert((int)WEIR_WHOLE_FIRST == (int)WEIR_WHY_FIRST &&
                     (int)WEIR_WHOLE_WAITED_FOR == (int)WEIR_WHY_WAITING &&
                     (int)WEIR_WHOLE_TRIM == (int)WEIR_WHY_TRIM,
                 "one is the other");
  return (uint8_t)weir_whole_find(address).why;
}

/* What has to be in a block is in it; false: it went back, the original has to do it. */
static bool filled(weir_call *c, const cache *k, uint64_t at, uint64_t bytes, bool hit)
{
  bool full;
  CUresult r = weir_fill_device(k->device.number, at, weir_whole_round(bytes), hit);
  if (r == CUDA_SUCCESS) return true;
  (void)weir_route_failed((int)r);
  (void)weir_whole_free(at, NULL, 0, &full);
  return left(c, WEIR_WHY_ERROR);
}

/* Memory that the driver gave to the program itself. */
static void fill_passed(uint64_t at, uint64_t bytes)
{
  if (weir_fill_use != WEIR_FILL_POISON || !at || weir_route_hands_off()) return;
  weir_context_refresh(&weir_self);
  (void)weir_fill_device(weir_self.last_context_number, at, bytes, false);
}

/* There was nothing idle, or what is has to be filled. */
__attribute__((noinline)) static bool serve_slowly(weir_call *c, cache *k, uint64_t bytes,
                                                   uint64_t *address)
{
  bool hit;
  weir_status st = weir_whole_malloc(k->whole, bytes, address, &hit);
  if (st == WEIR_EOOM && relieve()) st = weir_whole_malloc(k->whole, bytes, address, &hit);
  if (st) return left(c, WEIR_WHY_NO_MEMORY);
  if (__builtin_expect(weir_fill_use, 0) && !filled(c, k, *address, bytes, hit)) return false;
  if (hit)
    c->flags |= WEIR_EVF_CACHED;
  else
    c->why = why_missed(*address);
  c->routed = true;
  return true;
}

/* Memory from the cache or for it; false: the original has to do it. */
WEIR_INLINE bool serve(weir_call *c, uint64_t bytes, uint64_t *address)
{
  if (!bytes) return false;
  if (__builtin_expect(weir_fill_use == WEIR_FILL_POISON, 0)) weir_poison_poll();
  if (__builtin_expect(weir_route_hands_off(), 0)) return left(c, hands_off_why());
  if (weir_rules_ask(WEIR_RULES_ALLOC, c->site, bytes) == WEIR_RULE_PASSTHROUGH)
    return left(c, WEIR_WHY_RULE);
  cache *k = runtime_is_elsewhere(c) ? NULL : cache_here();
  if (__builtin_expect(!k, 0)) return left(c, WEIR_WHY_NO_CACHE);
  if (__builtin_expect(weir_fill_use, 0) || !weir_whole_reuse(k->whole, bytes, address))
    return serve_slowly(c, k, bytes, address);
  c->flags |= WEIR_EVF_CACHED;
  c->routed = true;
  return true;
}

/* An allocation by the original that has failed for want of memory is made once more when the
 * caches have given some back. */
#define WITH_RELIEF(c, r, call)                                                                    \
  ((r) = (call), (r) != 0 && weir_route_failed((int)(r)) && ((r) = (call)) == 0                    \
                     ? weir_route_error_gone((c)->bank)                                            \
                     : (void)0)

cudaError_t weir_r_cudaMalloc(weir_call *c, cudaError_t (*real)(void **, size_t), void **out,
                              size_t bytes)
{
  uint64_t at;
  if (!out || !serve(c, bytes, &at)) {
    cudaError_t r;
    WITH_RELIEF(c, r, real(out, bytes));
    if (r == cudaSuccess && out) fill_passed((uint64_t)(uintptr_t)*out, bytes);
    return r;
  }
  *out = (void *)(uintptr_t)at;
  return cudaSuccess;
}

CUresult weir_r_cuMemAlloc(weir_call *c, CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *out,
                           size_t bytes)
{
  uint64_t at;
  if (!out || !serve(c, bytes, &at)) {
    CUresult r;
    WITH_RELIEF(c, r, real(out, bytes));
    if (r == CUDA_SUCCESS && out) fill_passed(*out, bytes);
    return r;
  }
  *out = at;
  return CUDA_SUCCESS;
}

/* ---- pitched: the pitch is the driver's, learnt from its first answer for a width
 * ----------------
 */

enum { PITCHES = 1024 };
static struct pitch {
  _Atomic uint64_t key; /* width << 16 | element size << 8 | context; 0: free */
  _Atomic uint64_t pitch;
} pitches[PITCHES];

static uint64_t pitch_key(uint64_t width, unsigned element)
{
  weir_context_refresh(&weir_self);
  if (!width || width >> 48) return 0;
  return width << 16 | (uint64_t)(element & 255) << 8 | weir_self.last_context_number;
}

static struct pitch *pitch_slot(uint64_t key)
{
  return &pitches[key * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* 0: not known. */
static uint64_t pitch_known(uint64_t key)
{
  struct pitch *p = pitch_slot(key);
  uint64_t pitch = atomic_load_explicit(&p->pitch, memory_order_acquire);
  return key && atomic_load_explicit(&p->key, memory_order_acquire) == key ? pitch : 0;
}

static void pitch_learn(uint64_t key, uint64_t pitch)
{
  struct pitch *p = pitch_slot(key);
  uint64_t none = 0;
  if (!key || atomic_load(&p->pitch)) return; /* taken: a width that shares it is asked each time */
  if (atomic_compare_exchange_strong(&p->pitch, &none, pitch)) atomic_store(&p->key, key);
}

/* Memory for `rows` rows of a width whose pitch is known; 0 in *pitch: the original has to do it.
 */
static bool serve_pitched(weir_call *c, uint64_t key, uint64_t rows, uint64_t *pitch, uint64_t *at)
{
  uint64_t bytes;
  *pitch = pitch_known(key);
  return *pitch && !__builtin_mul_overflow(*pitch, rows, &bytes) && serve(c, bytes, at);
}

cudaError_t weir_r_cudaMallocPitch(weir_call *c,
                                   cudaError_t (*real)(void **, size_t *, size_t, size_t),
                                   void **out, size_t *pitch, size_t width, size_t height)
{
  uint64_t key = pitch_key(width, 0), known, at;
  if (out && pitch && serve_pitched(c, key, height, &known, &at)) {
    *out = (void *)(uintptr_t)at;
    *pitch = known;
    return cudaSuccess;
  }
  cudaError_t r;
  WITH_RELIEF(c, r, real(out, pitch, width, height));
  if (r == cudaSuccess && out && pitch && height) {
    pitch_learn(key, *pitch);
    fill_passed((uint64_t)(uintptr_t)*out, *pitch * height);
  }
  return r;
}

cudaError_t weir_r_cudaMalloc3D(weir_call *c,
                                cudaError_t (*real)(struct cudaPitchedPtr *, struct cudaExtent),
                                struct cudaPitchedPtr *out, struct cudaExtent extent)
{
  uint64_t key = pitch_key(extent.width, 1), known, at, rows;
  if (out && !__builtin_mul_overflow(extent.height, extent.depth, &rows) &&
      serve_pitched(c, key, rows, &known, &at)) {
    *out = (struct cudaPitchedPtr){(void *)(uintptr_t)at, known, extent.width, extent.height};
    return cudaSuccess;
  }
  cudaError_t r;
  WITH_RELIEF(c, r, real(out, extent));
  if (r == cudaSuccess && out && extent.height && extent.depth) {
    pitch_learn(key, out->pitch);
    fill_passed((uint64_t)(uintptr_t)out->ptr, out->pitch * extent.height * extent.depth);
  }
  return r;
}

CUresult weir_r_cuMemAllocPitch(weir_call *c,
                                CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned),
                                CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                unsigned element)
{
  bool sane = element == 4 || element == 8 || element == 16;
  uint64_t key = sane ? pitch_key(width, element) : 0, known, at;
  if (out && pitch && serve_pitched(c, key, height, &known, &at)) {
    *out = at;
    *pitch = known;
    return CUDA_SUCCESS;
  }
  CUresult r;
  WITH_RELIEF(c, r, real(out, pitch, width, height, element));
  if (r == CUDA_SUCCESS && out && pitch && height) {
    pitch_learn(key, *pitch);
    fill_passed(*out, *pitch * height);
  }
  return r;
}

/* ---- freeing ----------------------------------------------------------------------------------
 */

typedef enum fate {
  FATE_KEPT,    /* in the cache: the program's free has succeeded */
  FATE_REAL,    /* the original frees it */
  FATE_FOREIGN, /* not ours */
  FATE_TWICE    /* the program has freed it before */
} fate;

/* strict: as cudaFree, which waits for the work of the context that the memory is in. */
__attribute__((noinline)) static fate keep_strictly(weir_call *c, cache *k,
                                                    const weir_whole_block *b)
{
  bool full;
  uint64_t start = weir_ticks();
  if (wait_for(k) != CUDA_SUCCESS) {
    c->why = WEIR_WHY_ERROR;
    return FATE_REAL;
  }
  uint64_t end = weir_ticks();
  c->waited = end - start;
  return weir_whole_release(b, NULL, 0, end, &full) ? FATE_REAL : FATE_KEPT;
}

WEIR_INLINE fate keep_relaxed(weir_call *c, cache *k, const weir_whole_block *b)
{
  void *streams[STREAMS];
  bool full = false;
  int n = atomic_load_explicit(&weir_recording, memory_order_relaxed)
              ? weir_work_list(k->device.number, streams, STREAMS)
              : -1;
  if (n < 0) return keep_strictly(c, k, b);
  if (weir_whole_release(b, streams, (unsigned)n, c->start, &full)) return FATE_REAL;
  if (n) c->why = WEIR_WHY_PENDING;
  if (!full) return FATE_KEPT;
  uint64_t start = weir_ticks();
  if (wait_for(k) == CUDA_SUCCESS) c->waited = weir_ticks() - start;
  return FATE_KEPT;
}

/* For the event, what is freed: `b` is what was found at the address, in cache `k`. */
WEIR_INLINE void note_freed(weir_call *c, uint64_t address, const weir_whole_block *b,
                            const cache *k)
{
  c->routed = k != NULL;
  if (!k)
    c->held = weir_block_take(address);
  else if (b->state == WEIR_WHOLE_LIVE)
    c->held = (weir_block){address, b->requested, tag_of(k)};
}

static fate keep(weir_call *c, uint64_t address, bool host)
{
  const weir_whole_block b = weir_whole_find(address);
  cache *k = cache_of(&b);
  note_freed(c, address, &b, k);
  if (__builtin_expect(weir_fill_use == WEIR_FILL_POISON, 0)) weir_poison_poll();
  if (!k) return FATE_FOREIGN;
  if (k->device.host != host) return FATE_FOREIGN; /* by the wrong function */
  if (b.state != WEIR_WHOLE_LIVE) return FATE_TWICE;
  if (weir_route_hands_off())
    c->why = (uint8_t)hands_off_why();
  else if (b.serial <= atomic_load(&tainted))
    c->why = WEIR_WHY_GRAPH;
  else if (reached(k))
    c->why = WEIR_WHY_PEER;
  if (c->why) return FATE_REAL;
  fate f = weir_mode_now() == WEIR_RELAXED ? keep_relaxed(c, k, &b) : keep_strictly(c, k, &b);
  if (f != FATE_KEPT) return f;
  c->flags |= WEIR_EVF_CACHED;
  c->held.bytes = b.bytes; /* what is cached */
  return f;
}

/* What the original is given, and what it did. */
static uint64_t to_free(fate f, uint64_t address)
{
  return f == FATE_TWICE ? WEIR_NOBODYS : address;
}

static void freed(fate f, uint64_t address, int error)
{
  if (f != FATE_REAL || error || !weir_whole_forget(address)) return;
  (void)weir_block_take(address);
}

cudaError_t weir_r_cudaFree(weir_call *c, cudaError_t (*real)(void *), void *ptr)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  fate f = keep(c, at, false);
  if (f == FATE_KEPT) return cudaSuccess;
  cudaError_t r = real((void *)(uintptr_t)to_free(f, at));
  freed(f, at, (int)r);
  return r;
}

CUresult weir_r_cuMemFree(weir_call *c, CUresult (*real)(CUdeviceptr), CUdeviceptr ptr)
{
  fate f = keep(c, ptr, false);
  if (f == FATE_KEPT) return CUDA_SUCCESS;
  CUresult r = real(to_free(f, ptr));
  freed(f, ptr, (int)r);
  return r;
}

/* ---- page-locked host memory ------------------------------------------------------------------
 */

/* How to get it, bound to its arguments. */
typedef struct host_way {
  enum host_kind kind;
  unsigned flags;
  union {
    int (*plain)(void **, size_t);
    int (*flagged)(void **, size_t, unsigned);
  } real;
} host_way;

static int host_get(const host_way *h, void **out, size_t bytes)
{
  return h->kind == HOST_RT_PLAIN || h->kind == HOST_PLAIN ? h->real.plain(out, bytes)
                                                           : h->real.flagged(out, bytes, h->flags);
}

/* A block that was got: known from here on as the cache's. It stays the program's own where there
 * is no memory for a record. */
static void host_adopt(weir_call *c, const cache *k, void *ptr, size_t asked)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  if (weir_whole_adopt(k->whole, asked, at)) return;
  weir_block_add((weir_block){at, weir_whole_round(asked), tag_of(k)});
  c->routed = true;
}

static weir_reason why_not_host(const weir_call *c, size_t bytes)
{
  if (weir_route_hands_off()) return hands_off_why();
  if (weir_rules_ask(WEIR_RULES_ALLOC, c->site, bytes) == WEIR_RULE_PASSTHROUGH)
    return WEIR_WHY_RULE;
  return runtime_is_elsewhere(c) ? WEIR_WHY_NO_CACHE : WEIR_WHY_NONE;
}

static int host_alloc(weir_call *c, const host_way *h, void **out, size_t bytes)
{
  uint64_t at;
  bool mine = out && bytes && h->flags < HOST_FLAG_VALUES;
  weir_reason why = mine ? why_not_host(c, bytes) : WEIR_WHY_NONE;
  const cache *k = mine && !why ? cache_for((int)(h->kind * HOST_FLAG_VALUES + h->flags)) : NULL;
  if (mine && !k) (void)left(c, why ? why : WEIR_WHY_NO_CACHE);
  if (!k) {
    int r;
    WITH_RELIEF(c, r, host_get(h, out, bytes));
    return r;
  }
  if (weir_whole_reuse(k->whole, bytes, &at)) {
    *out = (void *)(uintptr_t)at;
    if (weir_fill_use == WEIR_FILL_ZERO) memset(*out, 0, bytes);
    c->flags |= WEIR_EVF_CACHED;
    c->routed = true;
    return 0;
  }
  int r = host_get(h, out, weir_whole_round(bytes));
  if (r == 0) {
    host_adopt(c, k, *out, bytes);
    c->why = why_missed((uint64_t)(uintptr_t)*out);
    return 0;
  }
  (void)weir_route_failed(r);
  if (r == CUDA_ERROR_OUT_OF_MEMORY && (r = host_get(h, out, bytes)) == 0)
    weir_route_error_gone(c->bank);
  return r;
}

cudaError_t weir_r_cudaMallocHost(weir_call *c, cudaError_t (*real)(void **, size_t), void **out,
                                  size_t bytes)
{
  host_way h = {.kind = HOST_RT_PLAIN, .real.plain = (int (*)(void **, size_t))(uintptr_t)real};
  return (cudaError_t)host_alloc(c, &h, out, bytes);
}

CUresult weir_r_cuMemAllocHost(weir_call *c, CUresult (*real)(void **, size_t), void **out,
                               size_t bytes)
{
  host_way h = {.kind = HOST_PLAIN, .real.plain = (int (*)(void **, size_t))(uintptr_t)real};
  return (CUresult)host_alloc(c, &h, out, bytes);
}

cudaError_t weir_r_cudaHostAlloc(weir_call *c, cudaError_t (*real)(void **, size_t, unsigned),
                                 void **out, size_t bytes, unsigned flags)
{
  host_way h = {
      HOST_RT_FLAGS, flags, {.flagged = (int (*)(void **, size_t, unsigned))(uintptr_t)real}};
  return (cudaError_t)host_alloc(c, &h, out, bytes);
}

CUresult weir_r_cuMemHostAlloc(weir_call *c, CUresult (*real)(void **, size_t, unsigned),
                               void **out, size_t bytes, unsigned flags)
{
  host_way h = {
      HOST_FLAGS, flags, {.flagged = (int (*)(void **, size_t, unsigned))(uintptr_t)real}};
  return (CUresult)host_alloc(c, &h, out, bytes);
}

static int host_free(weir_call *c, int (*real)(void *), void *ptr)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  fate f = keep(c, at, true);
  if (f == FATE_KEPT) return 0;
  int r = real((void *)(uintptr_t)to_free(f, at));
  freed(f, at, r);
  return r;
}

cudaError_t weir_r_cudaFreeHost(weir_call *c, cudaError_t (*real)(void *), void *ptr)
{
  return (cudaError_t)host_free(c, (int (*)(void *))(uintptr_t)real, ptr);
}

CUresult weir_r_cuMemFreeHost(weir_call *c, CUresult (*real)(void *), void *ptr)
{
  return (CUresult)host_free(c, (int (*)(void *))(uintptr_t)real, ptr);
}

/* ---- left to the driver ------------------------------------------------------------------------
 */

/* A stream-ordered free of memory from cudaMalloc is the driver's business. */
static fate leave_to_driver(weir_call *c, uint64_t address)
{
  const weir_whole_block b = weir_whole_find(address);
  const cache *k = cache_of(&b);
  note_freed(c, address, &b, k);
  if (!k) return FATE_FOREIGN;
  c->why = WEIR_WHY_ORDERED;
  return b.state == WEIR_WHOLE_LIVE ? FATE_REAL : FATE_TWICE;
}

cudaError_t weir_r_cudaFreeAsync(weir_call *c, cudaError_t (*real)(void *, cudaStream_t), void *ptr,
                                 cudaStream_t stream)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  fate f = leave_to_driver(c, at);
  cudaError_t r = real((void *)(uintptr_t)to_free(f, at), stream);
  freed(f, at, (int)r);
  return r;
}

CUresult weir_r_cuMemFreeAsync(weir_call *c, CUresult (*real)(CUdeviceptr, CUstream),
                               CUdeviceptr ptr, CUstream stream)
{
  fate f = leave_to_driver(c, ptr);
  CUresult r = real(to_free(f, ptr), stream);
  freed(f, ptr, (int)r);
  return r;
}

/* ---- waits and streams ------------------------------------------------------------------------
 */

/* The program's own wait for a context settles all that was waiting, at no cost. */
static CUresult wait_by(CUresult (*real)(void))
{
  moment m;
  weir_context_refresh(&weir_self);
  bool tell = weir_mode_now() == WEIR_RELAXED && weir_self.last_context_number;
  if (tell) wait_begins(&m, weir_self.last_context_number);
  CUresult r = real();
  if (r == CUDA_SUCCESS && tell) waited(&m);
  (void)weir_route_failed((int)r);
  if (weir_fill_use == WEIR_FILL_POISON) weir_poison_poll();
  return r;
}

CUresult weir_r_sync(weir_call *c, CUresult (*real)(void))
{
  (void)c;
  return wait_by(real);
}

cudaError_t weir_r_sync_rt(weir_call *c, cudaError_t (*real)(void))
{
  (void)c;
  return (cudaError_t)wait_by((CUresult(*)(void))(uintptr_t)real);
}

/* Ahead of the end of a stream that may have work: all caches of the context mark it. */
static void stream_ends(uint64_t stream)
{
  weir_context_refresh(&weir_self);
  unsigned n = weir_self.last_context_number;
  if (weir_mode_now() != WEIR_RELAXED || stream <= WEIR_STREAM_PER_THREAD || !n || n >= CACHES - 1)
    return;
  bool busy = weir_work_busy(n, stream);
  void *handle = (void *)(uintptr_t)stream;
  weir_status st = WEIR_OK;
  if (cache_here()) st = weir_whole_stream_ends(caches[n].whole, handle, busy);
  uint32_t made = atomic_load(&hosts_made[n]);
  for (int i; !st && (i = next_host(&made)) >= 0;)
    if (hosts[n][i].whole) st = weir_whole_stream_ends(hosts[n][i].whole, handle, busy);
  if (st) weir_work_unseen("a stream with work ended and could not be marked");
  weir_work_forget_stream(n, stream);
}

cudaError_t weir_r_cudaStreamDestroy(weir_call *c, cudaError_t (*real)(cudaStream_t),
                                     cudaStream_t stream)
{
  (void)c;
  stream_ends((uint64_t)(uintptr_t)stream);
  return real(stream);
}

CUresult weir_r_cuStreamDestroy(weir_call *c, CUresult (*real)(CUstream), CUstream stream)
{
  (void)c;
  stream_ends((uint64_t)(uintptr_t)stream);
  return real(stream);
}

/* A green context shares the memory of its device's primary context and has streams of its own:
 * what they do is noted for another context than the one that the memory is in. */
static void goes_green(void)
{
  weir_work_unseen("the program uses green contexts");
}

CUresult weir_r_cuGreenCtxStreamCreate(weir_call *c,
                                       CUresult (*real)(CUstream *, CUgreenCtx, unsigned, int),
                                       CUstream *stream, CUgreenCtx green, unsigned flags,
                                       int priority)
{
  (void)c;
  goes_green();
  return real(stream, green, flags, priority);
}

CUresult weir_r_cuCtxFromGreenCtx(weir_call *c, CUresult (*real)(CUcontext *, CUgreenCtx),
                                  CUcontext *context, CUgreenCtx green)
{
  (void)c;
  goes_green();
  return real(context, green);
}

/* ---- questions --------------------------------------------------------------------------------
 */

weir_routed weir_route_look(uint64_t address)
{
  PFN_cuMemGetAddressRange_v3020 ask =
      WEIR_HELPER(cuMemGetAddressRange_v2, PFN_cuMemGetAddressRange_v3020);
  weir_whole_block b = weir_whole_find(address);
  CUdeviceptr base = 0;
  if (b.state == WEIR_WHOLE_NONE) {
    if (!ask || ask(&base, NULL, address) != CUDA_SUCCESS || !base || base == address)
      return (weir_routed){.what = WEIR_ROUTED_NOT};
    b = weir_whole_find(base);
  }
  if (b.state == WEIR_WHOLE_NONE) return (weir_routed){.what = WEIR_ROUTED_NOT};
  /* Past what the program asked for there is nothing that it could know of. */
  bool live = b.state == WEIR_WHOLE_LIVE && address - b.address < b.requested;
  return (weir_routed){live ? WEIR_ROUTED_LIVE : WEIR_ROUTED_CACHED, b.address, b.requested,
                       b.why == WEIR_WHOLE_HIT ? b.serial : 0};
}

void weir_route_taint(uint64_t address, weir_reason why)
{
  weir_routed r = weir_route_look(address);
  if (r.what != WEIR_ROUTED_LIVE || !weir_whole_forget(r.base)) return;
  weir_block b = weir_block_take(r.base);
  weir_stats_tainted(r.base, b.bytes, why);
  b.bytes = r.requested;
  weir_block_add(b);
}
