/* trim.c: how the pool gives memory back: idle pages, segments, chunks of pinned memory. */
#include "core/memory/back.h"
#include "core/memory/history.h"

/* Takes an idle range out of the books; its record stays. */
static void range_remove(mem_pool *p, block_id id)
{
  vmm_count(p, -(int64_t)block(id)->bytes, -1);
  history_segment(p, ACTION_SEGMENT_FREE, id);
  heap_remove(&p->common[HEAP_IDLE], id);
  unsigned i = 0;
  while (p->heads[i] != id)
    i++;
  p->heads[i] = p->heads[--p->head_count];
}

static weir_status segment_drop(mem_pool *p, block_id id)
{
  const mem_block *b = block(id);
  TRY(p->backend->source.segment_free(p->backend->self, b->address, b->bytes));
  range_remove(p, id);
  block_drop(id);
  return WEIR_OK;
}

/* Unlocking memory takes the machine milliseconds: nobody waits for the pool meanwhile. */
static weir_status chunk_drop(mem_pool *p, block_id id)
{
  uint64_t address = block(id)->address, bytes = block(id)->bytes;
  range_remove(p, id);
  p->head_spoken++;
  pthread_mutex_unlock(&p->lock);
  weir_status st = p->backend->source.segment_free(p->backend->self, address, bytes);
  pthread_mutex_lock(&p->lock);
  p->head_spoken--;
  if (st)
    back_add(p, &p->common[HEAP_IDLE], id, address, bytes);
  else
    block_drop(id);
  return st;
}

/* What of an idle block can be given back. */
static uint64_t droppable(const mem_pool *p, const mem_block *b, uint64_t *from)
{
  *from = b->address;
  if (!has_vmm(p)) return b->left || b->right ? 0 : b->bytes;
  return vmm_whole(p, b, from);
}

static weir_status trim_bin(mem_pool *p, block_id id, uint32_t before, uint64_t *bytes)
{
  uint64_t from;
  for (block_id next; id && *bytes; id = next) {
    next = block(id)->next;
    uint64_t some = droppable(p, block(id), &from);
    if (!some || (int32_t)(block(id)->when - before) > 0) continue;
    if (has_vmm(p) && some > *bytes) some = page_up(*bytes, p->backend->source.page_bytes);
    TRY(has_vmm(p) ? vmm_drop(p, id, from, some) : segment_drop(p, id));
    *bytes -= some < *bytes ? some : *bytes;
  }
  return WEIR_OK;
}

static block_id droppable_chunk(const mem_pool *p, uint32_t before)
{
  const mem_heap *idle = &p->common[HEAP_IDLE];
  uint64_t from;
  for (int f = TLSF_FIRST - 1; f >= 0; f--)
    for (int s = TLSF_SECOND - 1; s >= 0; s--)
      for (block_id id = idle->bins[f][s]; id; id = block(id)->next)
        if (droppable(p, block(id), &from) && (int32_t)(block(id)->when - before) <= 0) return id;
  return 0;
}

/* One chunk after the other, looked for anew because the lock is given back meanwhile. */
static weir_status trim_host(mem_pool *p, uint32_t before, uint64_t bytes)
{
  weir_status st = WEIR_OK;
  block_id id;
  while (!st && bytes && (id = droppable_chunk(p, before))) {
    bytes -= block(id)->bytes < bytes ? block(id)->bytes : bytes;
    st = chunk_drop(p, id);
  }
  return st;
}

weir_status back_trim(mem_pool *p, uint32_t before, uint64_t bytes, bool keep)
{
  const mem_heap *idle = &p->common[HEAP_IDLE];
  (void)stitch_undo(p, NULL, before);
  weir_status st = has_vmm(p) ? back_settle(p) : WEIR_OK;
  if (p->host) return trim_host(p, before, bytes);
  for (int f = TLSF_FIRST - 1; f >= 0 && !st; f--)
    for (int s = TLSF_SECOND - 1; s >= 0 && !st && bytes; s--)
      st = trim_bin(p, idle->bins[f][s], before, &bytes);
  if (!st && has_vmm(p)) st = vmm_unstick(p);
  return st || keep || !has_vmm(p) ? st : vmm_destroy_spare(p);
}
