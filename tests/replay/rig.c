/* rig.c: see rig.h. */
#include "tests/replay/rig.h"

rp_driver rig_driver;
static const rp_policy *rig_policy;
static void *rig_heap;

void rig_open(const rp_policy *policy, rp_options options)
{
  rig_driver = (rp_driver){.capacity = options.capacity ? options.capacity : RP_UNLIMITED};
  rig_policy = policy;
  ck_assert_int_eq(policy->open(&rig_heap, &rig_driver, &options), WEIR_OK);
}

void rig_close(void)
{
  rig_policy->close(rig_heap);
}

held rig_alloc(uint64_t bytes, uint64_t stream)
{
  held h = {.op = {.bytes = bytes, .stream = stream}};
  ck_assert_int_eq(rig_policy->alloc(rig_heap, &h.op, &h.block, &h.address), WEIR_OK);
  ck_assert_uint_ne(h.address, 0);
  return h;
}

void rig_no_room(uint64_t bytes, uint64_t stream)
{
  held h = {.op = {.bytes = bytes, .stream = stream}};
  ck_assert_int_eq(rig_policy->alloc(rig_heap, &h.op, &h.block, &h.address), WEIR_EOOM);
}

void rig_free(held h)
{
  rig_free_on(h, h.op.stream);
}

void rig_free_on(held h, uint64_t stream)
{
  h.op.kind = RP_FREE;
  h.op.stream = stream;
  ck_assert_int_eq(rig_policy->free(rig_heap, &h.op, h.block), WEIR_OK);
}

static uint64_t xorshift_below(uint64_t *state, uint64_t below)
{
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (*state * UINT64_C(0x2545f4914f6cdd1d) >> 11) % below;
}

void rig_random(rp_ops *ops, uint64_t seed, size_t count, unsigned streams, unsigned heaps)
{
  enum { LIVE = 400 };
  rp_op live[LIVE] = {{0}};
  uint64_t next = 4096, state = seed * 2 + 1;
  for (size_t i = 0; i < count; i++) {
    rp_op *one = &live[xorshift_below(&state, LIVE)];
    if (one->address) {
      rp_op gone = *one;
      gone.time = i * 1000;
      if (xorshift_below(&state, 4) == 0) gone.stream = xorshift_below(&state, streams) * 16;
      ck_assert_int_eq(rp_ops_free(ops, gone), WEIR_OK);
      *one = (rp_op){0};
      continue;
    }
    uint64_t top = UINT64_C(1) << xorshift_below(&state, 27);
    *one = (rp_op){.time = i * 1000,
                   .address = next,
                   .bytes = 1 + xorshift_below(&state, top),
                   .stream = xorshift_below(&state, streams) * 16,
                   .thread = (uint32_t)xorshift_below(&state, 4)};
    next += 4096;
    ck_assert_int_eq(rp_ops_heap(ops, xorshift_below(&state, heaps), &one->heap), WEIR_OK);
    ck_assert_int_eq(rp_ops_alloc(ops, *one), WEIR_OK);
  }
}
