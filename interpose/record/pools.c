/* pools.c: see pools.h. The driver is asked under a lock, so that a pool cannot end meanwhile; who
 * finds it taken leaves the asking to the one who has it. Without a call that asks, a use of a pool
 * costs a look at the list of known ones and at the clock. */
#include "interpose/record/pools.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "core/base/fork.h"
#include "core/base/reroutes.h"
#include "interpose/process/process.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/record/stats.h"
#include "interpose/record/subscriber.h"

enum { POOLS = 128, DEVICES = 64, INTERVAL_MS = 100, WAITS_MS = 10 };

typedef struct pool {
  _Atomic uint64_t handle; /* CUmemoryPool; 0: this place is free */
  uint8_t device;          /* ordinal */
  bool from_start;         /* the one that the device had by itself */
  bool tried, kept;        /* it was to keep its memory; its release threshold is ours */
  bool reported;           /* `last` is what the trace has last */
  pool_figures last;
} pool;

_Atomic bool driver_pools_touched;
static _Atomic bool keeping; /* pools without a release threshold get one */

static pool pools[POOLS];
static FORK_STATE _Atomic unsigned count;        /* places that were ever taken */
static FORK_STATE _Atomic uint64_t kept_devices; /* bitmap: the same was to keep its memory */
static FORK_STATE _Atomic uint64_t devices; /* bitmap: the pool that the device has now is known */
static _Atomic uint32_t asked_ms;           /* coarse clock, when the figures were asked for last */
/* Over the pools, and while one is asked. */
static FORK_STATE pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uint32_t uses __attribute__((tls_model("initial-exec")));

static pool *find_pool(uint64_t handle)
{
  unsigned n = atomic_load_explicit(&count, memory_order_acquire);
  for (unsigned i = 0; handle && i < n; i++)
    if (atomic_load_explicit(&pools[i].handle, memory_order_acquire) == handle) return &pools[i];
  return NULL;
}

/* ---- asking; lock held ----------------------------------------------------------------------- */

static bool query_attribute(uint64_t handle, CUmemPool_attribute what, uint64_t *value)
{
  PFN_cuMemPoolGetAttribute_v11020 get = WEIR_HELPER(cuMemPoolGetAttribute);
  cuuint64_t n = 0;
  bool good = get && get((CUmemoryPool)(uintptr_t)handle, what, &n) == CUDA_SUCCESS;
  *value = n;
  return good;
}

static bool query_all(uint64_t handle, pool_figures *f)
{
  return query_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &f->reserved) &&
         query_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &f->reserved_high) &&
         query_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &f->used) &&
         query_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &f->used_high) &&
         query_attribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &f->threshold);
}

static void sample_pool(pool *p)
{
  if (process_unrecorded) return;
  pool_figures now;
  uint64_t start = clock_ticks();
  uint64_t handle = atomic_load_explicit(&p->handle, memory_order_relaxed);
  if (!handle || !query_all(handle, &now)) return;
  if (p->reported && memcmp(&now, &p->last, sizeof now) == 0) return;
  p->reported = true;
  p->last = now;
  cache_event_pool(start, handle, p->device, p->from_start, &now);
}

/* The lock is had at once, and no capture is live: asking is a step (captures.h). */
static bool begin_queries(void)
{
  if (pthread_mutex_trylock(&lock)) return false;
  if (capture_step_begin()) return true;
  pthread_mutex_unlock(&lock);
  return false;
}

static void end_queries(void)
{
  capture_step_end();
  pthread_mutex_unlock(&lock);
}

static void sample_all(void)
{
  unsigned n = atomic_load_explicit(&count, memory_order_relaxed);
  atomic_store_explicit(&asked_ms, clock_coarse_ms(), memory_order_relaxed);
  atomic_store_explicit(&driver_pools_touched, false, memory_order_relaxed);
  for (unsigned i = 0; i < n; i++)
    sample_pool(&pools[i]);
}

static void try_sample_all(void)
{
  if (process_unrecorded || !begin_queries()) return;
  sample_all();
  end_queries();
}

/* ---- keeping what pools have ----------------------------------------------------------------- */

void driver_pools_keep(bool on)
{
  atomic_store(&keeping, on);
}

/* One that the program has set a threshold of is left as it is. Lock held. */
static void keep_memory(pool *p, uint64_t handle)
{
  PFN_cuMemPoolSetAttribute_v11020 set = WEIR_HELPER(cuMemPoolSetAttribute);
  uint64_t threshold;
  cuuint64_t all = UINT64_MAX;
  char text[96];
  p->kept =
      set && query_attribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) && !threshold &&
      set((CUmemoryPool)(uintptr_t)handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) == CUDA_SUCCESS;
  (void)snprintf(text, sizeof text, REROUTE_NOTE "a pool of device %u keeps its memory",
                 (unsigned)p->device);
  if (p->kept) weir_note(text);
}

static bool trim_kept(const pool *p)
{
  PFN_cuMemPoolTrimTo_v11020 trim = WEIR_HELPER(cuMemPoolTrimTo);
  uint64_t before, after, handle = atomic_load_explicit(&p->handle, memory_order_relaxed);
  return handle && p->kept && trim &&
         query_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &before) &&
         trim((CUmemoryPool)(uintptr_t)handle, 0) == CUDA_SUCCESS &&
         query_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &after) && after < before;
}

bool driver_pools_trim_kept(void)
{
  bool more = false;
  if (!atomic_load(&keeping) || !begin_queries()) return false;
  for (unsigned i = 0, n = atomic_load(&count); i < n; i++)
    more |= trim_kept(&pools[i]);
  end_queries();
  return more;
}

/* ---- meeting pools --------------------------------------------------------------------------- */

/* One that is not known yet; where there is no place left, it stays so. Lock held. */
static void add_pool(unsigned device, uint64_t handle)
{
  PFN_cuDeviceGetDefaultMemPool_v11020 first = WEIR_HELPER(cuDeviceGetDefaultMemPool);
  CUmemoryPool had = NULL;
  unsigned n = atomic_load_explicit(&count, memory_order_relaxed), i = 0;
  while (i < n && atomic_load_explicit(&pools[i].handle, memory_order_relaxed))
    i++;
  if (i == POOLS || device >= WEIR_DEVICE_NONE) return;
  if (!first || first(&had, (CUdevice)device) != CUDA_SUCCESS) had = NULL;
  pool *p = &pools[i];
  p->device = (uint8_t)device;
  p->from_start = (uint64_t)(uintptr_t)had == handle;
  p->reported = p->tried = p->kept = false;
  atomic_store_explicit(&p->handle, handle, memory_order_release);
  if (i == n) atomic_store_explicit(&count, n + 1, memory_order_release);
  sample_pool(p);
}

static uint64_t bit_of(unsigned device)
{
  return device < DEVICES ? UINT64_C(1) << device : 0;
}

static bool is_known(unsigned device, uint64_t handle)
{
  if (handle) return find_pool(handle) != NULL;
  return !bit_of(device) || atomic_load_explicit(&devices, memory_order_acquire) & bit_of(device);
}

/* Returns the pool that a device has now; 0: not known. */
static uint64_t pool_of_device(unsigned device)
{
  PFN_cuDeviceGetMemPool_v11020 get = WEIR_HELPER(cuDeviceGetMemPool);
  CUmemoryPool now = NULL;
  return get && get(&now, (CUdevice)device) == CUDA_SUCCESS ? (uint64_t)(uintptr_t)now : 0;
}

static void note_first_use(unsigned device, uint64_t handle)
{
  if (!begin_queries()) return; /* the next use will do */
  if (!handle) {
    atomic_fetch_or(&devices, bit_of(device));
    handle = pool_of_device(device);
  }
  if (handle && !find_pool(handle)) add_pool(device, handle);
  end_queries();
}

/* Once a pool; and once for what a device has now, until it has another. */
static void keep_pool(unsigned device, uint64_t handle)
{
  const pool *known = handle ? find_pool(handle) : NULL;
  if (handle ? !known || known->tried
             : (atomic_load_explicit(&kept_devices, memory_order_relaxed) & bit_of(device)) != 0)
    return;
  if (!begin_queries()) return; /* the next use will do */
  if (!handle) {
    atomic_fetch_or(&kept_devices, bit_of(device));
    handle = pool_of_device(device);
  }
  pool *p = handle ? find_pool(handle) : NULL;
  if (p && !p->tried) {
    p->tried = true;
    keep_memory(p, handle);
  }
  end_queries();
}

/* ---- what the program does ------------------------------------------------------------------- */

static bool sample_is_due(uint32_t wait_ms)
{
  uint32_t before = atomic_load_explicit(&asked_ms, memory_order_relaxed);
  return clock_coarse_ms() - before >= wait_ms;
}

static void note_pool_use(void)
{
  if (!atomic_load_explicit(&driver_pools_touched, memory_order_relaxed))
    atomic_store_explicit(&driver_pools_touched, true, memory_order_relaxed);
  uint32_t n = ++uses;
  if (!(n & (n - 1)) || sample_is_due(INTERVAL_MS)) try_sample_all();
}

void driver_pool_used(const hook_call *c, unsigned device, uint64_t handle)
{
  if (capture_live()) return;
  if (__builtin_expect(!is_known(device, handle), 0)) note_first_use(device, handle);
  if (__builtin_expect(atomic_load_explicit(&keeping, memory_order_relaxed), 0) &&
      record_subscriber_now()->keeps_pool(c))
    keep_pool(device, handle);
  note_pool_use();
}

void driver_pool_freed(void)
{
  if (atomic_load_explicit(&count, memory_order_relaxed) && !capture_live()) note_pool_use();
}

void driver_pools_sample_now(bool context)
{
  if (context || sample_is_due(WAITS_MS)) try_sample_all();
}

/* Here the lock is waited for: what the call did is to be seen, and the handle ends. */
static void sample_one(uint64_t handle, bool ends)
{
  pthread_mutex_lock(&lock);
  pool *p = find_pool(handle);
  if (p && capture_step_begin()) {
    sample_pool(p);
    capture_step_end();
  }
  if (p && ends) atomic_store_explicit(&p->handle, 0, memory_order_release);
  pthread_mutex_unlock(&lock);
}

void driver_pool_trimmed(uint64_t handle)
{
  if (find_pool(handle)) sample_one(handle, false);
}

bool driver_pool_ends(uint64_t handle)
{
  bool known = find_pool(handle) != NULL;
  if (known) sample_one(handle, true);
  return known;
}

/* A device whose pool it was has its first one again. */
void driver_pool_ended(uint64_t handle)
{
  cache_event_pool_ended(handle);
  driver_pools_moved();
}

void driver_pools_moved(void)
{
  atomic_store(&devices, 0);
  atomic_store(&kept_devices, 0);
}

void driver_pools_device_ends(void)
{
  if (atomic_load(&count)) try_sample_all();
}

void driver_pools_device_gone(unsigned device)
{
  if (!atomic_load(&count)) return;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < POOLS; i++)
    if (pools[i].device == device) atomic_store_explicit(&pools[i].handle, 0, memory_order_release);
  pthread_mutex_unlock(&lock);
  driver_pools_moved();
}

void driver_pools_forked(void)
{
  lock_reset(&lock);
  for (unsigned i = 0, n = atomic_load(&count); i < n; i++)
    atomic_store(&pools[i].handle, 0);
  if (atomic_load(&devices)) driver_pools_moved();
}
