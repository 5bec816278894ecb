/* thread.h: what the preload library keeps for each thread of the program, and the epoch of the
 * process that shows a thread when that is stale. The life cycle is process.c's.
 *
 * A thread's outermost hooked call owns the event; calls beneath it (the runtime calling the
 * driver, a library calling the runtime) find depth > 0 and go straight through.
 */
#ifndef WEIR_INTERPOSE_THREAD_H
#define WEIR_INTERPOSE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/spool.h"
#include "core/trace/stack.h"

typedef struct thread_state {
  uint32_t depth;        /* hooked calls this thread is inside of; 0: the next owns its event.
                            CALL_LEFT_OUT: of one that is not recorded (recording.h) */
  uint32_t epoch;        /* of the process: a fork makes everything below stale */
  uint32_t passes;       /* 1: calls that need not be recorded go straight to the original */
  uint32_t recording;    /* spool_recording, as it was when the thread looked last */
  uint32_t passed;       /* calls left out that are in no count so far */
  spool_writer writer;   /* its pen */
  stack_table *stacks;   /* its stack table */
  uint64_t last_context; /* CUcontext seen last, and what it means, so that it is asked for once */
  uint8_t last_context_number, last_device;
  uint8_t named;            /* THREAD record written */
  uint32_t context_age;     /* context_age when last_context was asked for (context.h) */
  uint8_t context_trust;    /* events that may still go by last_context without asking */
  uint32_t waits;           /* for a device (device_memory.h) */
  uintptr_t outermost;      /* where on the stack the call is that owns the event; depth 0: stale */
  uintptr_t inner_start;    /* the CUDA library that called last within a call (nested.c), and */
  size_t inner_bytes;       /* its size; 0: none yet */
  uint64_t inner_block[2];  /* a block that a copy's destination, and its source, was last inside of
                               (interpose/reroute/bounds.c); 0: none */
  bool recording_suspended; /* within a call of libweir's own (engine.c) */
  struct hook_call
      *beneath;         /* a runtime's call that leaves its rerouting to the driver's call in it */
  uint64_t beneath_key; /* the size or address by which that one is known (table/wrap.h) */
  struct asked_table *asked; /* its calls that ask, counted (record/asked.h); NULL: none yet */
  uint32_t launches;         /* launches, and other calls that queue, that it has recorded */
  uint64_t questioned;       /* ticks when its last cudaEventQuery or cudaStreamQuery returned */
  uint64_t paused;           /* ticks that it slept or yielded since then (pauses.c) */
} thread_state;

extern __thread thread_state thread_self __attribute__((tls_model("initial-exec")));

/* The process is recording. False before set-up, when set-up failed (the reason is in the drop
 * count), and in a sanitizer's or debugger's way. Relaxed loads are enough. */
extern _Atomic bool process_recording;

/* Calls are looked at as if they were recorded, and nothing is written: fixes are applied
 * (interpose/reroute/places.h) and nobody asked for a trace. Set before anything is recorded. */
extern bool process_unrecorded;

/* Slow path of the first outermost call in a process, a fork's child or a thread: spool, collector,
 * unwinder, thread key. Returns whether this thread can record now. Keeps errno. */
bool thread_start(thread_state *t);

/* Whether the call this thread is recorded as inside of was left by longjmp(), asked by one that is
 * not inside of it by its place on the stack. Then depth is 0. Keeps errno. */
bool call_was_abandoned(thread_state *t);

/* Current epoch: 1 in the first process image, one more after each fork. */
extern _Atomic uint32_t process_epoch;

static inline bool thread_ready(thread_state *t)
{
  if (__builtin_expect(t->epoch == atomic_load_explicit(&process_epoch, memory_order_relaxed), 1))
    return atomic_load_explicit(&process_recording, memory_order_relaxed);
  return thread_start(t);
}

#endif
