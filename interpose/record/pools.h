/* pools.h: what is in the driver's own memory pools, those of cudaMallocAsync, written to the
 * trace.
 *
 * The pools are left to the driver in every mode; it counts what it has reserved for each and how
 * much of that is in use. A pool is *known* from its first use on. Its figures are asked for then,
 * at a thread's 1st, 2nd, 4th, 8th ... allocation or free in a pool, at most every 100 ms between
 * these, where the program waits for its context (or, every 10 ms at most, for a stream), and when
 * a pool is trimmed or ends. They are written where they have changed. Never while a stream is
 * being captured, and never at the program's end, where nothing of ours calls CUDA: what came
 * after the last of these moments is not seen. */
#ifndef WEIR_INTERPOSE_POOLS_H
#define WEIR_INTERPOSE_POOLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/record/record.h"

/* Something was allocated or freed in a pool since the figures were asked for last. */
extern _Atomic bool driver_pools_touched;

/* The program has allocated from a pool; 0: from the one that the device has now. */
void driver_pool_used(const hook_call *c, unsigned device, uint64_t pool);
/* The program has freed memory of some pool. */
void driver_pool_freed(void);
/* The program has waited: for a context, or for less. */
void driver_pools_sample_now(bool context);

WEIR_INLINE void driver_pools_waited(bool context)
{
  if (__builtin_expect(atomic_load_explicit(&driver_pools_touched, memory_order_relaxed), 0))
    driver_pools_sample_now(context);
}

/* The program has trimmed the pool. */
void driver_pool_trimmed(uint64_t pool);
/* The program is about to end the pool, whose last figures are written now. False: it was not
 * known. */
bool driver_pool_ends(uint64_t pool);
/* The program has ended the pool: its handle is nobody's any more. */
void driver_pool_ended(uint64_t pool);

/* From now on a pool without a release threshold gets one at a call for which the subscriber is in
 * favour (subscriber.h): it keeps all it has. */
void driver_pools_keep(bool on);
/* Memory is short: what such pools keep goes back. False: there was none. */
bool driver_pools_trim_kept(void);

/* Devices have other pools now than those they had. */
void driver_pools_moved(void);
/* A device is about to be reset; has been. */
void driver_pools_device_ends(void);
void driver_pools_device_gone(unsigned device);
/* Forgets the parent's state, in a forked child. */
void driver_pools_forked(void);

#endif
