/* access.h: which memory a launch is handed: its *access set*.
 *
 * The parameters of a launch are read as its kernel has them: how many there are, and how long each
 * is, the driver states (cuFuncGetParamInfo, of 12.4); a buffer of parameters (`extra`) has its length.
 * Of their 8-byte words at multiples of 8, those that point into blocks which are known make the
 * set. A set is written once (an ACCESS record) and has a number, which the event of each launch
 * with that set has (event.h). Number 0: it is not known what the launch is handed. A pointer that
 * lies in device memory is in no set.
 *
 * A set has of each word the parameter that it is in, so that a report can find in the kernel's
 * name whether the kernel may write what it points to. All bytes of the parameters are hashed, too:
 * where a kernel is handed a set again with other bytes, that is written once.
 *
 * Nothing is read but what the driver states is there. A kernel whose parameters it does not know of,
 * and a handle that was not seen when it was handed out, are not asked about: the number is 0.
 *
 * Hot: a launch hashes its words, and finds the number by that in a table of guesses. Only where
 * the table has none are the words looked up (pointers.h). A word outside the bounds of all blocks
 * counts as 0, so that a size or a step that changes with each launch does not make it another.
 * Blocks that come make all guesses stale, since a word may point into them: their count is part of
 * the hash. */
#ifndef WEIR_INTERPOSE_RECORD_ACCESS_H
#define WEIR_INTERPOSE_RECORD_ACCESS_H

#include "interpose/record/event_fill.h"

/* What a handle of a kernel is, which decides whom to ask for its parameters. */
typedef enum access_handle {
  WEIR_HANDLE_UNMET = 0, /* it was not seen when it was handed out */
  WEIR_HANDLE_STUB = 1,  /* a function of the host, registered for a kernel */
  WEIR_HANDLE_KERNEL = 2,
  WEIR_HANDLE_FUNCTION = 3
} access_handle;

extern bool access_wanted; /* WEIR_ACCESS; set before the first event */

/* A handle is handed out: it may be another kernel's than before. */
void access_met(uint64_t handle, access_handle what);

/* Code goes: handles may come back for other kernels. */
void access_forget_all(void);

/* In a forked child, whose spool has no sets. */
void access_forked(void);

/* The number of the set of a launch that has succeeded: `args` has a pointer to each parameter,
 * `extra` is that of cuLaunchKernel. 0: not known. May write a record: before the event's slot is
 * taken. */
uint32_t access_find_set(hook_call *c, uint64_t function, uint64_t args, uint64_t extra);

/* The same of a node of a graph, whose handle the driver returned or the program gave: its kind is
 * asked for anew, since nobody was seen handing it out. */
uint32_t access_find_node_set(hook_call *c, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel);

WEIR_INLINE uint32_t access_of_launch(hook_call *c, uint64_t function, uint64_t args,
                                      uint64_t extra)
{
  if (__builtin_expect(!access_wanted, 0) || c->status) return 0;
  return access_find_set(c, function, args, extra);
}

/* Puts the number into the bytes in which a launch has nothing else (event_access_set()). */
WEIR_INLINE void event_set_access(event_fields *e, uint32_t set)
{
  e->detail = set & 255u;
  e->mem = set >> 8 & 255u;
  e->src_device = (set >> 16 & 255u) ^ WEIR_DEVICE_NONE;
}

#endif
