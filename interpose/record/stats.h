/* stats.h: what happens to a cache and is no call of the program, written to the trace as
 * CACHE events: memory given back, blocks tainted, staging measured. Slow paths only. What one call
 * did (a hit, a miss and why, the wait in a free) its own event has. */
#ifndef WEIR_INTERPOSE_STATS_H
#define WEIR_INTERPOSE_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/event.h"

/* Writes a fact of kind WEIR_EV_CACHE; the duration is from its start until now. */
void cache_event_write(const trace_event *fact);
/* address 0: all blocks that are live. */
void cache_event_tainted(uint64_t address, uint64_t bytes, reroute_reason why);
/* The driver's time in percent of ours (0: could not be measured), and how it was found: by copies
 * of `bytes` from `start` on, or, bytes 0, by an earlier program. */
void cache_event_staging(uint64_t start, unsigned device, copy_kind kind, unsigned percent,
                         uint64_t bytes);
/* A copy to the host, made where `stack` is (0: here), brought back poison: `bytes` of it, the
 * first at `offset` in the block. */
void cache_event_unwritten(uint64_t block, uint64_t offset, uint64_t bytes, uint32_t stack);

/* What libweir has from the driver in all: of a device's memory, or page-locked for it. */
void cache_event_reserved(unsigned device, memory_kind mem, uint64_t bytes);

typedef struct pool_figures { /* of one of the driver's memory pools, in bytes */
  uint64_t reserved, reserved_high;
  uint64_t used, used_high;
  uint64_t threshold; /* that it may keep reserved */
} pool_figures;

/* `from_start`: the device has it by itself, the program did not make it. */
void cache_event_pool(uint64_t start, uint64_t pool, unsigned device, bool from_start,
                      const pool_figures *figures);
void cache_event_pool_ended(uint64_t pool);

/* The driver's word on a device, asked for at `start`. */
void cache_event_device_memory(uint64_t start, unsigned device, uint64_t total, uint64_t free_now);
void cache_event_graphs(uint64_t start, unsigned device, uint64_t reserved, uint64_t used);
/* Between `start` and now, around a call that made `handle`; bytes < 0: given back. */
void cache_event_taken(uint64_t start, unsigned device, taken_by what, uint64_t handle,
                       int64_t bytes);

#endif
