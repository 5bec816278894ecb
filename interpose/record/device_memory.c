/* device_memory.c: see device_memory.h. The driver is asked under a lock; who finds it taken leaves
 * the asking to the one who has it. */
#include "interpose/record/device_memory.h"

#include <pthread.h>
#include "core/base/clock.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/stats.h"

enum { INTERVAL_MS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over what follows */
static uint64_t last_free[WEIR_DEVICE_NONE];             /* as in the trace; +1, 0: not yet */
static _Atomic uint32_t asked_ms;                        /* coarse clock */

typedef struct graph_figures {
  uint64_t reserved, used;
} graph_figures;

static graph_figures last_graphs[WEIR_DEVICE_NONE]; /* as last recorded */
_Atomic bool device_memory_graphs;

static bool ask_graphs(unsigned device, graph_figures *f)
{
  PFN_cuDeviceGetGraphMemAttribute_v11040 ask = WEIR_HELPER(cuDeviceGetGraphMemAttribute);
  cuuint64_t reserved = 0, used = 0;
  CUdevice d = (CUdevice)device;
  bool good = ask && ask(d, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS &&
              ask(d, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS;
  *f = (graph_figures){reserved, used};
  return good;
}

/* The rest: lock held, no capture live. */
static void sample_graphs(unsigned device)
{
  graph_figures now, *last = &last_graphs[device];
  uint64_t start = clock_ticks();
  if (!atomic_load_explicit(&device_memory_graphs, memory_order_relaxed) ||
      !ask_graphs(device, &now))
    return;
  if (now.reserved == last->reserved && now.used == last->used) return;
  *last = now;
  cache_event_graphs(start, device, now.reserved, now.used);
}

static bool ask_device(uint64_t *free_now, uint64_t *total)
{
  PFN_cuMemGetInfo_v3020 ask = WEIR_HELPER(cuMemGetInfo_v2);
  size_t n = 0, all = 0;
  if (!ask || ask(&n, &all) != CUDA_SUCCESS || n > all || !all) return false;
  *free_now = n;
  *total = all;
  return true;
}

static void sample_device_memory(unsigned device)
{
  uint64_t free_now, total, start = clock_ticks();
  if (!ask_device(&free_now, &total)) return;
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
  if (process_unrecorded || (due && !is_due()) || pthread_mutex_trylock(&lock)) return;
  if (capture_step_begin()) {
    context_refresh(t);
    if (t->last_device != WEIR_DEVICE_NONE) {
      sample_graphs(t->last_device);
      sample_device_memory(t->last_device);
    }
    capture_step_end();
  }
  pthread_mutex_unlock(&lock);
}

void device_memory_has_graphs(void)
{
  atomic_store_explicit(&device_memory_graphs, true, memory_order_relaxed);
}

/* ---- what a call took ------------------------------------------------------------------------ */

enum { MOST_IN_VAIN = 16 };

static _Atomic bool measuring;   /* one call at a time: two would count the same */
static _Atomic unsigned in_vain; /* calls in a row that took nothing */

/* How much is free of the device that the thread is on; WEIR_DEVICE_NONE: not known. */
static unsigned ask_free(thread_state *t, uint64_t *free_now)
{
  uint64_t total;
  if (!capture_step_begin()) return WEIR_DEVICE_NONE;
  context_refresh(t);
  unsigned device = t->last_device;
  if (device != WEIR_DEVICE_NONE && !ask_device(free_now, &total)) device = WEIR_DEVICE_NONE;
  capture_step_end();
  return device;
}

/* Kept in `held`, which no free is using; its tag: device + 1, 0: not measured. */
void device_memory_measure(hook_call *c)
{
  if (process_unrecorded || atomic_load_explicit(&in_vain, memory_order_relaxed) >= MOST_IN_VAIN ||
      atomic_exchange_explicit(&measuring, true, memory_order_acquire))
    return;
  c->held.start = clock_ticks();
  unsigned device = ask_free(c->thread, &c->held.bytes);
  if (device != WEIR_DEVICE_NONE)
    c->held.tag = device + 1;
  else
    atomic_store_explicit(&measuring, false, memory_order_release);
}

void device_memory_measured(hook_call *c, taken_by what, uint64_t handle, unsigned device)
{
  uint64_t free_now;
  if (!c->held.tag) return;
  bool there = device == WEIR_DEVICE_NONE || device + 1 == c->held.tag;
  if (c->status == 0 && there && ask_free(c->thread, &free_now) + 1 == c->held.tag) {
    bool took = free_now != c->held.bytes;
    atomic_store_explicit(&in_vain, took ? 0 : atomic_load(&in_vain) + 1, memory_order_relaxed);
    if (took)
      cache_event_taken(c->held.start, c->held.tag - 1, what, handle,
                        (int64_t)(c->held.bytes - free_now));
  }
  c->held.tag = 0;
  atomic_store_explicit(&measuring, false, memory_order_release);
}

void device_memory_forked(void)
{
  atomic_store(&measuring, false);
  atomic_store(&device_memory_graphs, false);
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  lock = unlocked;
  for (unsigned i = 0; i < WEIR_DEVICE_NONE; i++)
    last_free[i] = 0, last_graphs[i] = (graph_figures){0, 0};
}
