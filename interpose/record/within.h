/* within.h: blocks that another library hands out of memory which is known already: of a mapping of
 * its own (a saver that takes memory away and gives it back), of a block that it has for all. The
 * memory counts once, as what the library made of it; the program's calls are events without
 * memory. */
#ifndef WEIR_INTERPOSE_WITHIN_H
#define WEIR_INTERPOSE_WITHIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/record/pointers.h"

/* A function of CUDA's leads to another library (table/rows.c). Until then nothing below is
 * asked. */
extern _Atomic bool within_possible;

static inline bool within_is_possible(void)
{
  return __builtin_expect(atomic_load_explicit(&within_possible, memory_order_relaxed), 0);
}

/* An allocation has returned this address. True: it lies in memory that is known. */
bool within_begins(uint64_t address);

/* What a free of the address takes out: of such a block WEIR_TAG_WITHIN, else what the pointer map
 * has. within_put_back(): the free has failed. */
pointer_block within_take(uint64_t address);
void within_put_back(pointer_block block);

static inline pointer_block block_take(uint64_t address)
{
  return within_is_possible() ? within_take(address) : pointer_block_remove(address);
}

#endif
