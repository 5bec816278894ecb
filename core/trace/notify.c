/* notify.c: see notify.h. The weak symbol is the preload library's, which the loader puts first. */
#include "core/trace/notify.h"
#include "core/base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include "core/base/clock.h"
#include "core/weir/memory.h"

#pragma weak weir_note_engine

const engine_listener *active_listener;

typedef struct segment_watch {
  weir_memory_callback call;
  void *user;                 /* the program's */
  struct segment_watch *next; /* the one before: a call of it may be under way, so it stays */
} segment_watch;

_Atomic(segment_watch *) memory_watch;

static struct {
  pthread_mutex_t lock;
  const engine_listener *preload, *own; /* static; NULL: not there */
  segment_watch *all;                   /* every callback there was */
} listeners = {.lock = PTHREAD_MUTEX_INITIALIZER};

const engine_listener *notify_preload(void)
{
  return listeners.preload;
}

unsigned notify_status(weir_status st)
{
  switch (st) {
  case WEIR_OK:
    return 0;
  case WEIR_EINVAL:
    return 1; /* cudaErrorInvalidValue */
  case WEIR_EOOM:
    return 2; /* cudaErrorMemoryAllocation */
  default:
    return 999; /* cudaErrorUnknown */
  }
}

/* ---- several listeners ----------------------------------------------------------------------- */

static void notify_program(const block_notice *what)
{
  segment_watch *w = atomic_load_explicit(&memory_watch, memory_order_acquire);
  bool alloc = what->api == WEIR_NOTICE_MALLOC || what->api == WEIR_NOTICE_PINNED_MALLOC;
  if (!w || what->status || !what->address) return;
  weir_memory_event e = {.action = alloc ? WEIR_MEMORY_ALLOC : WEIR_MEMORY_FREE,
                         .device = what->device < 0 ? WEIR_CPU : WEIR_CUDA_AT(what->device),
                         .address = (void *)(uintptr_t)what->address,
                         .bytes = alloc ? what->bytes : what->freed,
                         .stream = (void *)(uintptr_t)what->stream};
  w->call(w->user, &e);
}

void notify_segment(int device, bool came, uint64_t address, uint64_t bytes)
{
  segment_watch *w = atomic_load_explicit(&memory_watch, memory_order_acquire);
  if (!w) return;
  weir_memory_event e = {.action = came ? WEIR_MEMORY_SEGMENT_MAP : WEIR_MEMORY_SEGMENT_UNMAP,
                         .device = device < 0 ? WEIR_CPU : WEIR_CUDA_AT(device),
                         .address = (void *)(uintptr_t)address,
                         .bytes = bytes};
  w->call(w->user, &e);
}

static bool begin_notice(engine_notice *call)
{
  call->passed_on = listeners.preload && listeners.preload->begin(call);
  call->start = clock_ticks();
  return true;
}

static void end_notice(engine_notice *call, const block_notice *what)
{
  if (call->passed_on) listeners.preload->end(call, what);
  const engine_listener *own = __atomic_load_n(&listeners.own, __ATOMIC_ACQUIRE);
  if (own) own->end(call, what);
  notify_program(what);
}

static void tensor(const tensor_notice *what)
{
  if (listeners.preload) listeners.preload->tensor(what);
  const engine_listener *own = __atomic_load_n(&listeners.own, __ATOMIC_ACQUIRE);
  if (own) own->tensor(what);
}

/* Lock held. */
static void choose_listener(void)
{
  static const engine_listener several = {
      .begin = begin_notice, .end = end_notice, .tensor = tensor};
  bool more = listeners.own || atomic_load(&memory_watch);
  __atomic_store_n(&active_listener, more ? &several : listeners.preload, __ATOMIC_RELEASE);
}

/* Before main(), so that tensors of the cpu, which opens no device, are announced as well. */
static __attribute__((constructor)) void at_load(void)
{
  notify_start();
}

void notify_start(void)
{
  if (!weir_note_engine) return;
  HOLD_LOCK(&listeners.lock);
  listeners.preload = weir_note_engine(WEIR_LISTENER_VERSION);
  choose_listener();
}

bool notify_record(const engine_listener *own)
{
  HOLD_LOCK(&listeners.lock);
  bool free = !own || !listeners.preload;
  if (free) __atomic_store_n(&listeners.own, own, __ATOMIC_RELEASE);
  choose_listener();
  return free;
}

weir_status weir_memory_set_callback(weir_memory_callback callback, void *user)
{
  segment_watch *w = callback ? malloc(sizeof *w) : NULL;
  if (callback && !w) return weir_fail(WEIR_ENOMEM, "no host memory for a callback");
  HOLD_LOCK(&listeners.lock);
  if (w) {
    *w = (segment_watch){callback, user, listeners.all};
    listeners.all = w;
  }
  atomic_store_explicit(&memory_watch, w, memory_order_release);
  choose_listener();
  return WEIR_OK;
}
