/* mode.h: what Weir may do in this process besides writing down what it sees. */
#ifndef WEIR_INTERPOSE_MODE_H
#define WEIR_INTERPOSE_MODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/reroutes.h"

enum process_mode { WEIR_OBSERVE, WEIR_STRICT, WEIR_RELAXED };

/* What was asked for; OBSERVE in a fork's child whose parent had contexts, which are gone, and
 * where nothing is recorded. */
extern _Atomic uint8_t process_mode;

static inline enum process_mode process_mode_now(void)
{
  return (enum process_mode)atomic_load_explicit(&process_mode, memory_order_relaxed);
}

/* Bits of core/base/reroutes.h that a rerouting mode has in this process: those of the start,
 * without those that are left to other libraries (interpose/reroute/owners.h). */
extern _Atomic unsigned process_reroutes;

/* Those that are: the answers of these libraries are the program's, errors included. */
extern _Atomic unsigned process_left;

static inline bool process_left_have(unsigned which)
{
  return atomic_load_explicit(&process_left, memory_order_relaxed) & which;
}

static inline bool process_reroutes_have(unsigned which)
{
  return atomic_load_explicit(&process_reroutes, memory_order_relaxed) & which;
}

#endif
