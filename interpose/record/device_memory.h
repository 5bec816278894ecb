/* device_memory.h: how much of a device is in use, by the driver's own word, written to the trace:
 * what the allocations there are held against.
 *
 * The driver is asked where it costs least: when a context is first met, at a thread's 1st, 2nd,
 * 4th, 8th ... wait (a copy that waits is one), after waits that took long (every 100 ms at most),
 * where memory has run out, and before a device is reset. Around a call that loads or unloads
 * code, gives the address of a variable (which may load its module), or makes a context, it is
 * asked twice, and what the device has less of is what the call took; after 16 such calls in a row
 * that took nothing (as where code is loaded when it is first used) no more are measured. Of a
 * process's first context it can not be asked before. Never while a stream is being captured, and
 * never at the program's end, where nothing of ours calls CUDA: what came after the last of these
 * moments is not seen. An allocation or a free asks for nothing. */
#ifndef WEIR_INTERPOSE_DEVICE_MEMORY_H
#define WEIR_INTERPOSE_DEVICE_MEMORY_H

#include "interpose/record/record.h"
#include "interpose/record/stats.h"

enum { DEVICE_MEMORY_LONG_WAIT = 1 << 17 /* ticks: some 50 us */ };

/* Asks about the device of the thread's context, and writes it to the trace where that has
 * changed; `due`: only if it has not been asked about for a while. */
void device_memory_sample(thread_state *t, bool due);

/* The program has waited for the device. */
WEIR_INLINE void device_memory_waited(const hook_call *c)
{
  uint32_t n = ++c->thread->waits;
  bool early = !(n & (n - 1));
  if (__builtin_expect(early || c->end - c->start > DEVICE_MEMORY_LONG_WAIT, 0))
    device_memory_sample(c->thread, !early);
}

/* Surround a call that loads or unloads code or makes a context, in its wrapper. `device`: the
 * call's, or WEIR_DEVICE_NONE: the thread's. */
void device_memory_measure(hook_call *c);
void device_memory_measured(hook_call *c, taken_by what, uint64_t handle, unsigned device);

/* Some graph of the process allocates: a launch of one may change what is live. */
void device_memory_has_graphs(void);
extern _Atomic bool device_memory_graphs;

WEIR_INLINE bool device_memory_is_of_graphs(void)
{
  return atomic_load_explicit(&device_memory_graphs, memory_order_relaxed);
}

/* Forgets the parent's state, in a forked child. */
void device_memory_forked(void);

#endif
