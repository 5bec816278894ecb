/* ops.c: see ops.h. */
#include "tools/replay/ops.h"
#include <stdlib.h>

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "reading operations: out of host memory");
}

weir_status rp_ops_heap(rp_ops *ops, uint64_t key, uint16_t *heap)
{
  uint64_t *number = hash_map_place(&ops->heap_of, key, NULL);
  if (!number) return out_of_memory();
  if (!*number) {
    if (ops->heaps == RP_HEAPS_MAX)
      return weir_fail(WEIR_ECORRUPT, "memory of more than %u devices", RP_HEAPS_MAX);
    if (!wr_grow(&ops->live, &ops->live_capacity, ops->heaps + 1, sizeof *ops->live))
      return out_of_memory();
    ops->live[ops->heaps] = (hash_map){0};
    *number = ++ops->heaps;
  }
  *heap = (uint16_t)(*number - 1);
  return WEIR_OK;
}

uint64_t rp_ops_heap_key(const rp_ops *ops, uint16_t heap)
{
  uint64_t key = 0, *number = NULL;
  for (size_t at = 0; hash_map_next(&ops->heap_of, &at, &key, &number);)
    if (*number == heap + 1u) return key;
  return 0;
}

static weir_status append_op(rp_ops *ops, rp_op op)
{
  if (!wr_grow(&ops->op, &ops->capacity, ops->count + 1, sizeof *ops->op)) return out_of_memory();
  if (!ops->count) ops->begin = op.time;
  op.time = op.time > ops->begin ? op.time - ops->begin : 0;
  if (ops->count && op.time < ops->op[ops->count - 1].time) op.time = ops->op[ops->count - 1].time;
  ops->op[ops->count++] = op;
  return WEIR_OK;
}

weir_status rp_ops_free(rp_ops *ops, rp_op op)
{
  if (!op.address) return WEIR_OK;
  const uint64_t *place = hash_map_get(&ops->live[op.heap], op.address);
  if (!place) {
    ops->unmatched++;
    return WEIR_OK;
  }
  const rp_op *alloc = &ops->op[*place];
  op.kind = RP_FREE;
  op.block = alloc->block;
  op.bytes = alloc->bytes;
  hash_map_remove(&ops->live[op.heap], op.address);
  return append_op(ops, op);
}

weir_status rp_ops_alloc(rp_ops *ops, rp_op op)
{
  if (!op.address || !op.bytes) return WEIR_OK;
  if (op.bytes > RP_BYTES_MAX)
    return weir_fail(WEIR_ECORRUPT, "an allocation of %llu bytes", (unsigned long long)op.bytes);
  if (ops->blocks == UINT32_MAX) return weir_fail(WEIR_ECORRUPT, "more than 2^32 allocations");
  if (hash_map_get(&ops->live[op.heap], op.address)) {
    weir_status s = rp_ops_free(ops, op);
    if (s) return s;
    ops->replaced++;
  }
  uint64_t *place = hash_map_place(&ops->live[op.heap], op.address, NULL);
  if (!place) return out_of_memory();
  *place = ops->count;
  op.kind = RP_ALLOC;
  op.block = ops->blocks++;
  return append_op(ops, op);
}

void rp_ops_clear(rp_ops *ops)
{
  for (uint32_t i = 0; i < ops->heaps; i++)
    hash_map_free(&ops->live[i]);
  free(ops->live);
  hash_map_free(&ops->heap_of);
  for (size_t i = 0; i < ops->frame_count; i++) {
    free(ops->frame[i].name);
    free(ops->frame[i].file);
  }
  free(ops->frame);
  free(ops->stack);
  free(ops->op);
  *ops = (rp_ops){0};
}
