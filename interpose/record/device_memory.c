/* device_memory.c: see device_memory.h. The driver is asked under a lock; who finds it taken leaves
 * the asking to the one who has it. */
#include "interpose/record/device_memory.h"

#include <pthread.h>
#include "core/base/clock.h"
#include "interpose/record/capture.h"
#include "interpose/record/context.h"
#include "interpose/record/stats.h"

enum { INTERVAL_MS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over what follows */
static uint64_t last_free[WEIR_DEVICE_NONE];             /* as the trace was told; +1, 0: not yet */
static _Atomic uint32_t asked_ms;                        /* coarse clock */

/* Lock held, no capture live. */
static void sample(unsigned device)
{
  PFN_cuMemGetInfo_v3020 ask = WEIR_HELPER(cuMemGetInfo_v2);
  size_t free_now = 0, total = 0;
  uint64_t start = clock_ticks();
  if (!ask || ask(&free_now, &total) != CUDA_SUCCESS || free_now > total || !total) return;
  atomic_store_explicit(&asked_ms, clock_coarse_ms(), memory_order_relaxed);
  if (last_free[device] == free_now + 1) return;
  last_free[device] = free_now + 1;
  cache_event_device_memory(start, device, total, free_now);
}

static bool is_due(void)
{
  return clock_coarse_ms() - atomic_load_explicit(&asked_ms, memory_order_relaxed) >= INTERVAL_MS;
}

void device_memory_sample(thread_state *t, bool due)
{
  if ((due && !is_due()) || pthread_mutex_trylock(&lock)) return;
  if (capture_step_begin()) {
    context_refresh(t);
    if (t->last_device != WEIR_DEVICE_NONE) sample(t->last_device);
    capture_step_end();
  }
  pthread_mutex_unlock(&lock);
}

void device_memory_forked(void)
{
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  lock = unlocked;
  for (unsigned i = 0; i < WEIR_DEVICE_NONE; i++)
    last_free[i] = 0;
}
