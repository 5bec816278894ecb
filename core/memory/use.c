/* use.c: USE records: what holds a block back after it was freed. See export.c and pause.c. */
#include "core/memory/pool.h"

/* The block's use of that kind (and stream), 0: none. */
block_id block_use_find(const mem_block *b, unsigned kind, uint16_t heap)
{
  block_id u = b->uses;
  while (u && (block(u)->class != kind || block(u)->heap != heap))
    u = block(u)->next;
  return u;
}

block_id block_use_add(mem_block *b, unsigned kind, uint16_t heap)
{
  block_id u = block_new();
  block_set(block(u), BLOCK_USE);
  block(u)->class = (uint8_t)kind;
  block(u)->heap = heap;
  block(u)->next = b->uses;
  b->uses = u;
  return u;
}

void block_use_drop(mem_block *b, block_id use)
{
  block_id *at = &b->uses;
  while (*at != use)
    at = &block(*at)->next;
  *at = block(use)->next;
  block_drop(use);
}
