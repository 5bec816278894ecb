/* names.h: what kernels are called. A NAME record is written the first time a handle is launched
 * (or made by name) in a spool; the event itself carries the handle only. */
#ifndef WEIR_INTERPOSE_NAMES_H
#define WEIR_INTERPOSE_NAMES_H

#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"

/* Handles met lately, mixed with the epoch they were named in: a guess that saves the look-up. */
#define WEIR_NAMED_SLOTS 256u
extern _Atomic uint64_t kernel_named[WEIR_NAMED_SLOTS];

static inline uint32_t kernel_named_slot(uint64_t handle)
{
  return (uint32_t)(handle >> 4 ^ handle >> 12) % WEIR_NAMED_SLOTS;
}

void kernel_name_launch_slow(hook_call *c, uint64_t handle, uint64_t mixed);

/* Before the launch of `handle` is recorded. */
WEIR_INLINE void kernel_name_launch(hook_call *c, uint64_t handle)
{
  uint64_t mixed = handle ^ (uint64_t)c->thread->epoch << 40;
  uint64_t seen =
      atomic_load_explicit(&kernel_named[kernel_named_slot(handle)], memory_order_relaxed);
  if (__builtin_expect(seen != mixed, 0)) kernel_name_launch_slow(c, handle, mixed);
}

/* The handle was made by that name; it runs what `kernel` runs. */
void kernel_name_set(hook_call *c, uint64_t handle, const char *name);
void kernel_name_of_kernel(hook_call *c, uint64_t handle, uint64_t kernel);

#endif
