/* mode.h: what Weir may do in this process beside writing down what it sees. */
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

/* Bits of core/base/reroutes.h that a rerouting mode has in this process; written at the start, ahead
 * of the program's first call. */
extern unsigned process_reroutes;

static inline bool process_reroutes_have(unsigned which)
{
  return process_reroutes & which;
}

#endif
