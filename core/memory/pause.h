/* pause.h: what pause.c and release.c share: places, and the pages of paused blocks. */
#ifndef WEIR_MEMORY_PAUSE_H
#define WEIR_MEMORY_PAUSE_H

#include <sys/mman.h>
#include "core/memory/pool.h"
#include "core/memory/tags.h"

enum { ALL_TAGS = WEIR_TAGS };
enum { FRESH = 1, DEAD = 2 }; /* a use's stamp: made by the pause underway; of a dead piece */

extern char pause_lost; /* in pool->copies: paused without its contents */

static inline uint64_t page_bytes(const mem_pool *p)
{
  return p->backend->source.page_bytes;
}

static inline uint64_t page_place_of(const mem_pool *p, uint64_t address)
{
  return (address - p->base) / page_bytes(p);
}

static inline uint64_t round_page_down(const mem_pool *p, uint64_t address)
{
  return address & ~(page_bytes(p) - 1);
}

static inline uint64_t round_page_up(const mem_pool *p, uint64_t address)
{
  return round_page_down(p, address + page_bytes(p) - 1);
}

static inline bool paused(const mem_pool *p, uint64_t address)
{
  return p->copies && p->copies[page_place_of(p, address)];
}

/* Paused, and the page has left: true of all paused places but those a failed resume left.
 */
static inline bool page_is_gone(const mem_pool *p, uint64_t address)
{
  return paused(p, address) && !p->pages[page_place_of(p, address)];
}

static inline void forget_copy(mem_pool *p, uint64_t address)
{
  void **copy = &p->copies[page_place_of(p, address)];
  if (*copy && *copy != &pause_lost) {
    (void)munmap(*copy, page_bytes(p));
    p->saved_bytes -= page_bytes(p);
  }
  *copy = NULL;
}

/* Whatever the state: a thread that frees a block reports it (REMOTE) before it waits for our
 * lock. */
static inline block_id pause_of(const mem_block *b)
{
  return b->uses ? block_use_find(b, USE_PAUSE, 0) : 0;
}

#endif
