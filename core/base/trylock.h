/* trylock.h: a guard nobody ever waits for.
 *
 * For work that one thread may do for all (writing the module map, refreshing a clock pair): who
 * finds the guard taken goes on without. The word holds the owner's epoch, so that in a forked
 * child, whose epoch is new, a guard left taken by a thread that does not exist there counts as
 * free. */
#ifndef WEIR_BASE_TRYLOCK_H
#define WEIR_BASE_TRYLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t trylock; /* 0: free; else the epoch of the process that took it */

/* `epoch` is not 0. */
static inline bool trylock_take(trylock *guard, uint32_t epoch)
{
  uint32_t seen = atomic_load_explicit(guard, memory_order_relaxed);
  if (seen == epoch) return false;
  return atomic_compare_exchange_strong_explicit(guard, &seen, epoch, memory_order_acquire,
                                                 memory_order_relaxed);
}

static inline void trylock_leave(trylock *guard)
{
  atomic_store_explicit(guard, 0, memory_order_release);
}

#endif
