/* fill.h: what is in a block when the program gets it (--zero, --poison).
 *
 * ZERO: memory that a cache hands out again is zeroed, as memory fresh from the driver mostly is.
 * POISON: device memory, recycled and fresh, is filled with a pattern, and what a copy brings back
 * of it to the host is reported (poison.h).
 *
 * A fill is complete when the allocation returns: whatever the program does with the block, in any
 * stream, comes after it. It runs in a stream of ours that waits for no other, on a block whose
 * work is complete. While a stream is being captured nothing is handed out of a cache, so nothing
 * is filled. */
#ifndef WEIR_INTERPOSE_FILL_H
#define WEIR_INTERPOSE_FILL_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/record/cuda_headers.h"

typedef enum fill_kind { WEIR_FILL_NONE, WEIR_FILL_ZERO, WEIR_FILL_POISON } fill_kind;

extern fill_kind fill_in_use; /* set at start */

void fill_start(fill_kind use);

/* Fills device memory of the thread's current context (`number`: of it) by what is in use. */
CUresult fill_device_memory(unsigned number, uint64_t address, uint64_t bytes, bool recycled);

/* The context is gone and our stream in it. */
void fill_context_gone(unsigned number);

/* The eight bytes that poisoned memory repeats from each address that eight divides. */
uint64_t fill_pattern(void);

#endif
