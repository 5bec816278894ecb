/* ops.c: see ops.h. */
#include "tools/replay/ops.h"
#include <stdlib.h>
#include <string.h>

static weir_status list_out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "reading operations: out of host memory");
}

weir_status rp_ops_heap(rp_ops *ops, uint64_t key, uint16_t *heap)
{
  uint64_t *number = hash_map_place(&ops->heap_of, key, NULL);
  if (!number) return list_out_of_memory();
  if (!*number) {
    if (ops->heaps == RP_HEAPS_MAX)
      return weir_fail(WEIR_ECORRUPT, "memory of more than %u devices", RP_HEAPS_MAX);
    if (!wr_grow(&ops->live, &ops->live_capacity, ops->heaps + 1, sizeof *ops->live))
      return list_out_of_memory();
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
  if (!wr_grow(&ops->op, &ops->capacity, ops->count + 1, sizeof *ops->op))
    return list_out_of_memory();
  if (!ops->count) ops->begin = op.time;
  op.time = op.time > ops->begin ? op.time - ops->begin : 0;
  if (ops->count && op.time < ops->op[ops->count - 1].time) op.time = ops->op[ops->count - 1].time;
  ops->op[ops->count++] = op;
  return WEIR_OK;
}

/* Of an address that is handed out no more. */
#define GONE UINT64_MAX

static weir_status check_bytes(const rp_ops *ops, const rp_op *op)
{
  if (op->bytes > RP_BYTES_MAX)
    return weir_fail(WEIR_ECORRUPT, "an allocation of %llu bytes", (unsigned long long)op->bytes);
  return ops->blocks + (uint64_t)ops->held_count < UINT32_MAX
             ? WEIR_OK
             : weir_fail(WEIR_ECORRUPT, "more than 2^32 allocations");
}

/* The number of held block i until all are known, and back. */
static uint32_t held_number(size_t i)
{
  return UINT32_MAX - (uint32_t)i;
}

static weir_status append_held(rp_ops *ops, rp_op op, uint32_t *block)
{
  weir_status st = check_bytes(ops, &op);
  if (st) return st;
  if (!wr_grow(&ops->held, &ops->held_capacity, ops->held_count + 1, sizeof *ops->held))
    return list_out_of_memory();
  op.kind = RP_ALLOC;
  op.time = 0;
  op.stack = 0; /* of its allocation nothing is known */
  ops->held_bytes += op.bytes;
  *block = held_number(ops->held_count);
  ops->held[ops->held_count++] = op;
  return WEIR_OK;
}

weir_status rp_ops_free(rp_ops *ops, rp_op op)
{
  bool added;
  if (!op.address) return WEIR_OK;
  uint64_t *place = hash_map_place(&ops->live[op.heap], op.address, &added);
  weir_status st = WEIR_OK;
  if (!place) return list_out_of_memory();
  op.kind = RP_FREE;
  if (added ? !op.bytes : *place == GONE) {
    *place = GONE;
    ops->unmatched++;
    return WEIR_OK;
  }
  if (added) {
    st = append_held(ops, op, &op.block);
  } else {
    op.block = ops->op[*place].block;
    op.bytes = ops->op[*place].bytes;
  }
  *place = GONE;
  return st ? st : append_op(ops, op);
}

weir_status rp_ops_alloc(rp_ops *ops, rp_op op)
{
  if (!op.address || !op.bytes) return WEIR_OK;
  weir_status st = check_bytes(ops, &op);
  if (st) return st;
  const uint64_t *there = hash_map_get(&ops->live[op.heap], op.address);
  if (there && *there != GONE) {
    st = rp_ops_free(ops, op);
    if (st) return st;
    ops->replaced++;
  }
  uint64_t *place = hash_map_place(&ops->live[op.heap], op.address, NULL);
  if (!place) return list_out_of_memory();
  *place = ops->count;
  op.kind = RP_ALLOC;
  op.block = ops->blocks++;
  return append_op(ops, op);
}

weir_status rp_ops_request(rp_ops *ops, rp_op op)
{
  if (!op.bytes) return WEIR_OK;
  op.kind = RP_REQUEST;
  op.block = 0;
  weir_status st = check_bytes(ops, &op);
  if (!st) st = append_op(ops, op);
  if (st) return st;
  ops->requests++;
  if (op.bytes > ops->request_most) ops->request_most = op.bytes;
  return WEIR_OK;
}

weir_status rp_ops_hold(rp_ops *ops, rp_op op)
{
  uint32_t block;
  if (!op.address || !op.bytes) return WEIR_OK;
  const uint64_t *place = hash_map_get(&ops->live[op.heap], op.address);
  if (place && *place != GONE) return WEIR_OK;
  if (place) { /* it cannot have been there all the time */
    op.time = ops->count ? ops->begin + ops->op[ops->count - 1].time : 0;
    return rp_ops_alloc(ops, op);
  }
  uint64_t *held = hash_map_place(&ops->live[op.heap], op.address, NULL);
  if (!held) return list_out_of_memory();
  *held = 0; /* known, whichever operation it is */
  return append_held(ops, op, &block);
}

weir_status rp_ops_finish(rp_ops *ops)
{
  size_t held = ops->held_count;
  if (!held) return WEIR_OK;
  if (!wr_grow(&ops->op, &ops->capacity, ops->count + held, sizeof *ops->op))
    return list_out_of_memory();
  memmove(ops->op + held, ops->op, ops->count * sizeof *ops->op);
  memcpy(ops->op, ops->held, held * sizeof *ops->op);
  ops->count += held;
  ops->blocks += (uint32_t)held;
  for (size_t i = 0; i < ops->count; i++) {
    rp_op *op = &ops->op[i];
    if (i < held)
      op->block = (uint32_t)i;
    else if (op->kind != RP_REQUEST)
      op->block =
          op->block > held_number(held) ? UINT32_MAX - op->block : op->block + (uint32_t)held;
  }
  free(ops->held);
  ops->held = NULL;
  ops->held_capacity = 0;
  return WEIR_OK;
}

void rp_ops_clear(rp_ops *ops)
{
  for (uint32_t i = 0; i < ops->heaps; i++)
    hash_map_free(&ops->live[i]);
  free(ops->live);
  free(ops->held);
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
