/* export.c: what holds a block back after it was freed: work of other streams (weir_record_stream)
 * and exports.
 *
 * Both are USE records of the block. One with a stream states which stream's work to wait for; one
 * of an export states that somebody we do not know (another process by IPC, another library by
 * DLPack) has the block, as often as it was exported. A block with a USE record is freed under the
 * lock and waits in pool->pending; an exported one is there until its last export ends, so that its
 * memory is never given out, moved, unmapped or paused meanwhile. */
#include "core/base/lock.h"
#include "core/memory/devices.h"
#include "core/weir/pools.h"

/* The live block at ptr. */
static weir_status find_live(const void *ptr, block_id *out)
{
  *out = page_map_find((uint64_t)ptr);
  if (*out && block_state(block(*out)) == BLOCK_LIVE) return WEIR_OK;
  return fail_invalid("%p is not a live block of this allocator", ptr);
}

weir_status pool_use(void *ptr, mem_heap *h)
{
  block_id id;
  weir_status st = find_live(ptr, &id);
  if (st) return st;
  mem_block *b = block(id);
  mem_pool *p = heap_table[b->heap]->pool;
  if (p != h->pool && !p->host)
    return fail_invalid("%p is on device %d, the stream on device %d", ptr, p->backend->index,
                        h->pool->backend->index);
  if (heap_table[b->heap]->clock == h) return WEIR_OK;
  if (h->left) return fail_invalid("the stream has been released");
  HOLD_LOCK(&p->lock);
  if (!block_use_find(b, USE_STREAM, h->number) && !(st = block_ensure(p, 1)))
    (void)block_use_add(b, USE_STREAM, h->number);
  return st;
}

weir_status weir_memory_export(void *ptr)
{
  WEIR_REQUIRE(ptr);
  block_id id;
  weir_status st = find_live(ptr, &id);
  if (st) return st;
  mem_block *b = block(id);
  mem_pool *p = heap_table[b->heap]->pool;
  HOLD_LOCK(&p->lock);
  block_id u = block_use_find(b, USE_EXPORT, 0);
  if (block_use_find(b, USE_PAUSE, 0))
    st = fail_invalid("the block at %p is paused: its memory is not there", ptr);
  else if (!u && !(st = block_ensure(p, 1)))
    u = block_use_add(b, USE_EXPORT, 0);
  if (!st) block(u)->requested++;
  return st;
}

weir_status weir_memory_unexport(void *ptr)
{
  WEIR_REQUIRE(ptr);
  block_id id = page_map_find((uint64_t)ptr);
  if (!id) return fail_invalid("%p is not a block of this allocator", ptr);
  mem_pool *p = heap_table[block(id)->heap]->pool;
  HOLD_LOCK(&p->lock);
  mem_block *b = block(id);
  block_id u = block_use_find(b, USE_EXPORT, 0);
  if (!u) return fail_invalid("the block at %p is not exported", ptr);
  if (--block(u)->requested) return WEIR_OK;
  block_use_drop(b, u);
  if (block_state(b) == BLOCK_PENDING) epoch_pending(p);
  return WEIR_OK;
}

/* ---- streams that are gone ------------------------------------------------------------------- */

static void forget_export(mem_block *b, const uint64_t *gone)
{
  for (block_id u = b->uses, next; u; u = next) {
    next = block(u)->next;
    uint16_t n = block(u)->heap;
    if (block(u)->class == USE_STREAM && gone[n / 64] >> n % 64 & 1) block_use_drop(b, u);
  }
}

void pool_forget(mem_pool *p, const uint64_t *gone)
{
  for (unsigned i = 0; i < p->head_count; i++)
    for (block_id id = p->heads[i]; id; id = block(id)->right)
      if (block(id)->uses) forget_export(block(id), gone);
}
