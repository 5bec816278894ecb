/* stack.h: call stacks as small numbers.
 *
 * A stack is captured as raw return addresses through one seam (libunwind's unw_backtrace opened
 * with RTLD_LOCAL from the folder of this library, glibc's backtrace() where it is missing) and
 * interned per thread: the first time a thread sees a stack it writes a STACK record and gives it
 * the next id, from then on the event carries the id. Ids are of a thread and an epoch: dlclose
 * starts a new epoch, since addresses may then mean something else, and so does a reader that has
 * forgotten stacks (spool_steering). Ids go on counting through epochs, and after 2^24 - 1 from 1 again: a STACK record whose id was seen before redefines it
 * from there on.
 *
 * Whoever sees a new stack first looks whether libraries came or went since the process last wrote
 * its module map, and writes MODULE records for the difference. Only one thread does so at a time
 * and no other waits for it, so a MODULE may come a little later than a STACK of another thread
 * that needs it. */
#ifndef WEIR_TRACE_STACK_H
#define WEIR_TRACE_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/spool.h"
#include "core/trace/unwind.h"

#define WEIR_STACK_MAX_DEPTH 128

typedef struct stack_table stack_table; /* one thread's table; mapped memory, not malloc */

/* Picks the unwinder: libunwind.so.8 in `beside` (a folder, may be NULL), then on the system, then
 * backtrace(). `real_dlopen` and `real_dlsym`: the loader's own, so that our hooks are not called.
 * Once a process. Returns its name for the coverage record: "libunwind", "backtrace", "off". */
const char *stack_init(const char *beside, void *(*real_dlopen)(const char *, int),
                       void *(*real_dlsym)(void *, const char *), unsigned depth);

/* The name of the unwinder in use now: what stack_init() returned, or "backtrace" after a
 * libunwind whose caches we cannot flush was given up at an unloading. */
const char *stack_unwinder(void);

/* Frames inside [start, end) are ours and are left out at the top. At most 4 ranges. */
void stack_skip_range(uintptr_t start, uintptr_t end);

/* What may be made of a stack before it is interned. Runs in the capture, so by its rules. */
typedef struct stack_rewriter {
  /* Puts other numbers in place of addresses, at most `room` of them, and returns how many there
   * are. *more: they follow from more than the addresses. */
  unsigned (*rewrite)(uint64_t *frames, unsigned count, unsigned room, bool *more, spool_writer *w);
  /* All that they follow from but for the addresses, as a number: while it is the same, rewrite()
   * makes the same of the same addresses. For stacks with *more alone. 0: not known now. */
  uint64_t (*sign)(spool_writer *w);
} stack_rewriter;

/* From now on stacks go through `rewriter`. Before the first capture. */
void stack_rewrite_with(const stack_rewriter *rewriter);

/* Whether there is anything for stack_capture() to do. */
static inline bool stack_capture_on(void)
{
  return atomic_load_explicit(&unwind_backend.capture, memory_order_relaxed) != NULL;
}

/* The id of the caller's stack, writing its STACK (and any new MODULE) record first;
 * WEIR_STACK_NONE when off or dropped. `*table` is created on first use. */
uint32_t stack_capture(stack_table **table, spool_writer *w);

/* To be called around the real dlclose(): a library may be going, and has perhaps gone. When one
 * has, caches are flushed and a new epoch begins, for every thread by its next capture, including
 * captures between the two calls (destructors, other threads). Any thread; nests.
 * stack_unloaded() alone serves where nobody can capture in between. */
void stack_unloading(void);
void stack_unloaded(void);

/* Captures of this table that were known by their words (stack_path.h) and not unwound. */
uint64_t stack_known(const stack_table *table);

/* Gives the thread's table back (thread exit). */
void stack_release(stack_table **table);

/* In a forked child, whose table is its parent's: what is small is used again, emptied by the next
 * capture; what is large, of which each page would be copied, is given back. */
void stack_forked(stack_table **table);

#endif
