/* record.h: one hooked call, from the wrapper's first line to the committed event.
 *
 * The outermost call of a thread owns the event; and so does each call of virtual memory that
 * another library makes within it (within.h). call_enter() (table/wrap.h) finds whether this is
 * such a call; the real function runs between call_forward() and call_returned(); an extractor
 * (extract.c) then asks for the event, fills what is its own, and commits it. Nothing here locks,
 * allocates or reads the environment; errno is what the real function left. */
#ifndef WEIR_INTERPOSE_RECORD_H
#define WEIR_INTERPOSE_RECORD_H

#include <errno.h>
#include "core/base/clock.h"
#include "core/trace/event.h"
#include "interpose/elf/bank.h"
#include "interpose/process/recording.h"
#include "interpose/process/thread.h"
#include "interpose/record/pointers.h"

/* Values of cudaMemcpyKind; the driver's functions have theirs in the name. */
enum memcpy_kind {
  WEIR_KIND_HTOH = 0,
  WEIR_KIND_HTOD = 1,
  WEIR_KIND_DTOH = 2,
  WEIR_KIND_DTOD = 3,
  WEIR_KIND_DEFAULT = 4 /* by what the pointers point to */
};

#define WEIR_NO_STREAM UINT64_MAX /* the call has nothing to do with a stream */

/* CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, and the runtime's error of the same number and
 * meaning: what a wrapper answers when nothing in the process has the original. */
#define WEIR_NOT_FOUND 302

typedef struct hook_call {
  thread_state *thread;
  uint64_t start;     /* ticks when the real function was called */
  uint64_t end;       /* ticks when it returned */
  pointer_block held; /* of a free: the block it takes out, put back if it fails */
  uint16_t api;       /* core/trace/api.def */
  uint16_t status;    /* CUresult or cudaError_t */
  uint8_t flags;      /* WEIR_EVF_* that follow from the function alone */
  uint8_t bank;       /* enum cuda_library */
  bool routed;        /* memory of a cache: the pointer map knows it as long as the cache has it */
  uint8_t why;        /* reroute_reason: why a rerouted call did not take the way through a cache */
  uint64_t waited;    /* ticks of it that a rerouted free waited for the device */
  const void *site;   /* of a routed row, and of one that takes from a pool: where it returns to */
  bool inner;     /* of a row of virtual memory: it is made within another call (table/wrap.h) */
  int kept_errno; /* what the real function left */
  int *errno_at;  /* the thread's errno */
} hook_call;

/* The generated file is too large for the compiler's taste to inline these by itself. */
#define WEIR_INLINE static inline __attribute__((always_inline))

/* Whether the call is made within another of the same thread, by its place on the stack: stacks
 * grow down, and what is called from a call is below it. */
WEIR_INLINE bool call_is_within(const hook_call *c, thread_state *t)
{
  return t->depth && ((uintptr_t)c < t->outermost || !call_was_abandoned(t));
}

/* Begins a call that is within no other. True: it owns its event, and call_leave() must follow. */
WEIR_INLINE bool call_begin_outermost(hook_call *c, thread_state *t, uint16_t api, unsigned flags,
                                      int bank)
{
  if (!thread_ready(t)) return false;
  t->depth = 1;
  t->outermost = (uintptr_t)c;
  t->beneath = NULL;
  uint32_t steered = recording_word();
  if (__builtin_expect(steered != t->recording, 0)) recording_change(t, steered);
  c->thread = t;
  c->api = api;
  c->flags = (uint8_t)flags;
  c->bank = (uint8_t)bank;
  c->held.tag = 0;
  c->waited = 0;
  c->routed = false;
  c->why = WEIR_WHY_NONE;
  return true;
}

/* Ticks; 0 where nothing is written. */
WEIR_INLINE uint64_t call_clock(void)
{
  return __builtin_expect(process_unrecorded, 0) ? 0 : clock_ticks();
}

WEIR_INLINE void call_forward(hook_call *c)
{
  c->start = call_clock();
}

WEIR_INLINE void call_returned(hook_call *c, uint32_t status)
{
  c->end = call_clock();
  c->status = (uint16_t)status;
  c->errno_at = &errno;
  c->kept_errno = *c->errno_at;
}

WEIR_INLINE void call_leave(hook_call *c)
{
  *c->errno_at = c->kept_errno;
  c->thread->depth = 0;
}

#endif
