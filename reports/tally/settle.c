/* settle.c: memory events in order of time: which free ends which block, and what is live. The
 * rules are those of import/lifetime.c, in which the whole trace is at hand; here an event may be
 * late (tally.h).
 *
 * Two processors' clocks agree to within a tremor, and an allocator can hand memory on within less.
 * So an address that is allocated while it is live was most likely freed just before: its block is
 * marked as one that replaced another, and a free of another thread's within the tremor is the
 * other one's. So is a free that was called before the block was allocated. */
#include <stdlib.h>
#include "reports/tally/private.h"
#include "reports/tally/probe.h"

/* ---- accounts -------------------------------------------------------------------------------- */

static bool is_device_side(const wr_tally_block *b)
{
  return b->kind != WEIR_EV_HOSTREG && b->mem != WEIR_MEM_PAGEABLE && b->mem != WEIR_MEM_PINNED &&
         b->mem != WEIR_MEM_HOST && b->mem != WEIR_MEM_IMPORTED;
}

static void change_account(wr_tally *t, unsigned device, unsigned class, const wr_tally_block *b,
                           bool begins)
{
  bool added;
  wr_tally_account *a = wr_place(&t->s.account, wr_key_of_small(device + 1, class), &added);
  if (!a) return; /* there is room for all that there can be */
  a->device = (uint16_t)device;
  a->class = (uint16_t) class;
  if (!begins) {
    a->live -= b->bytes;
    a->blocks--;
    return;
  }
  a->allocs++;
  a->blocks++;
  a->bytes += b->bytes;
  a->live += b->bytes;
  if (a->live <= a->peak) return;
  a->peak = a->live;
  a->peak_time = b->time;
}

unsigned wr_accounts_of(const wr_tally_block *b, wr_account_place out[3])
{
  const bool side = is_device_side(b);
  const unsigned device = side ? b->device : WEIR_DEVICE_NONE;
  out[0] = (wr_account_place){device, b->kind == WEIR_EV_HOSTREG ? WR_ACCOUNT_REGISTERED : b->mem};
  out[1] = (wr_account_place){device, WR_ACCOUNT_DEVICE_SIDE};
  out[2] = (wr_account_place){WR_ALL_DEVICES, WR_ACCOUNT_DEVICE_SIDE};
  return side ? 3 : 1;
}

static void count_block(wr_tally *t, const wr_tally_block *b, bool begins)
{
  wr_account_place places[3];
  for (unsigned i = 0, count = wr_accounts_of(b, places); i < count; i++)
    change_account(t, places[i].device, places[i].class, b, begins);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static wr_space space_of(const wr_pending *p)
{
  if (p->kind == WEIR_EV_HOSTREG) return WR_REGISTRATION;
  if (p->mem == WEIR_MEM_PHYSICAL) return WR_PHYSICAL;
  return p->mem == WEIR_MEM_ARRAY ? WR_ARRAY : WR_ADDRESS;
}

static uint64_t block_key_of(wr_space space, uint64_t address)
{
  return wr_key_of_one((uint64_t)WR_OF_BLOCK + ((uint64_t)space << 5), address);
}

static wr_tally_block *find_block(const wr_tally *t, wr_space space, uint64_t address)
{
  return wr_find(&t->s.block, block_key_of(space, address));
}

/* The block that another has taken the place of: its free may still come. */
static void keep_replaced(wr_tally *t, const wr_tally_block *b)
{
  bool added;
  wr_tally_block *kept = wr_place(&t->s.replaced, b->key, &added);
  if (kept) *kept = *b;
}

static void forget_replaced(wr_tally *t, const wr_tally_block *b)
{
  wr_tally_block *kept = b->replaced ? wr_find(&t->s.replaced, b->key) : NULL;
  if (kept) wr_table_remove(&t->s.replaced, kept);
}

static weir_status begin_block(wr_tally *t, const wr_pending *p, bool of_graph)
{
  const wr_space space = space_of(p);
  bool added;
  if (!wr_table_room(&t->s.block, 1) || !wr_table_room(&t->s.replaced, 1))
    return wr_tally_no_memory(t);
  wr_tally_block *b = wr_place(&t->s.block, block_key_of(space, p->address), &added);
  wr_tally_block fresh = {.key = b->key,
                          .address = p->address,
                          .bytes = p->bytes,
                          .time = p->time,
                          .start = p->start,
                          .stack = p->stack,
                          .thread = p->thread,
                          .api = p->api,
                          .kind = p->kind == WEIR_EV_HOSTREG ? WEIR_EV_HOSTREG : WEIR_EV_ALLOC,
                          .device = p->device,
                          .mem = p->mem,
                          .context = p->context,
                          .space = (uint8_t)space,
                          .replaced = !added,
                          .of_graph = of_graph,
                          .flags = p->flags,
                          .detail = p->reason,
                          .src_device = p->src_device,
                          .b = p->about,
                          .stream = p->stream};
  if (!added) {
    wr_facts(t)->replaced++;
    const bool late = p->time < b->time; /* the one that is there replaced it */
    if (late) fresh.replaced = b->replaced;
    if (late) b->replaced = 1;
    if (!late) count_block(t, b, false);
    keep_replaced(t, late ? &fresh : b);
    if (late) {
      count_block(t, &fresh, true);
      count_block(t, &fresh, false);
      return WEIR_OK;
    }
  }
  *b = fresh;
  if (p->device != WEIR_DEVICE_NONE && p->context) wr_facts(t)->home[p->context] = p->device;
  count_block(t, b, true);
  return WEIR_OK;
}

static void end_block(wr_tally *t, wr_tally_block *b)
{
  count_block(t, b, false);
  forget_replaced(t, b);
  wr_table_remove(&t->s.block, b);
}

static void free_block(wr_tally *t, const wr_pending *p)
{
  const wr_space space = space_of(p);
  wr_tally_block *b = find_block(t, space, p->address);
  if (!b && (space == WR_ADDRESS || space == WR_ARRAY))
    b = find_block(t, space == WR_ARRAY ? WR_ADDRESS : WR_ARRAY, p->address);
  const bool before = b && p->time < b->time;
  const bool tremor = b && p->thread != b->thread && p->time - b->time < t->tremor;
  if (b && b->replaced && (before || tremor)) {
    forget_replaced(t, b);
    b->replaced = 0;
    wr_facts(t)->replaced--;
  } else if (b && !before) {
    end_block(t, b);
  } else {
    wr_facts(t)->unknown_frees++;
  }
}

/* ---- resets ---------------------------------------------------------------------------------- */

/* Pinned memory has no device of its own: it goes with its context's. */
static unsigned home_of(const wr_tally *t, const wr_tally_block *b)
{
  if (b->device != WEIR_DEVICE_NONE || !b->context) return b->device;
  return wr_facts(t)->home[b->context];
}

/* A reset takes the blocks of one context, or those of a device in its primary context; where it is
 * not known which that is, or of what context a block is, those of the device. What cuMemCreate
 * made, or a shareable handle brought, is of no context. */
static bool goes_with_reset(const wr_tally *t, const wr_tally_block *b, const wr_pending *p)
{
  if (b->mem == WEIR_MEM_PHYSICAL || (b->mem == WEIR_MEM_IMPORTED && !b->context)) return false;
  if (p->bytes == 1) return p->context && b->context == p->context;
  bool primary = !p->address || !b->context || b->context == UINT8_MAX || b->context == p->address;
  return primary && p->device != WEIR_DEVICE_NONE && home_of(t, b) == p->device;
}

static void reset_device(wr_tally *t, const wr_pending *p)
{
  const wr_tally_block *b = (const wr_tally_block *)(void *)t->s.block.entry;
  bool concerned = false;
  for (uint32_t i = 0; i < t->s.block.count && !concerned; i++)
    concerned = b[i].device == p->device || b[i].device == WEIR_DEVICE_NONE;
  for (uint32_t i = t->s.block.count;
       concerned && i--;) { /* the last takes a removed one's place */
    wr_tally_block *x = wr_table_at(&t->s.block, i);
    if (goes_with_reset(t, x, p)) end_block(t, x);
  }
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A free of what no launch is known to have allocated is none. */
static weir_status take_of_launch(wr_tally *t, const wr_pending *launch,
                                  const graph_node_info *node, bool free)
{
  wr_pending p = *launch;
  const uint8_t mem = node->mem & 15;
  wr_tally_block *b = find_block(t, WR_ADDRESS, node->a);
  p.kind = WEIR_EV_ALLOC;
  p.about = launch->address;
  p.src_device = launch->device;
  p.address = node->a;
  p.bytes = node->bytes;
  p.device = node->device;
  p.mem = mem <= WEIR_MEM_IMPORTED ? mem : WEIR_MEM_UNKNOWN;
  if (!free) return begin_block(t, &p, true);
  if (b && b->of_graph) end_block(t, b);
  return WEIR_OK;
}

static weir_status take_pending(wr_tally *t, const wr_pending *p)
{
  switch (p->kind) {
  case WEIR_EV_RESET:
    reset_device(t, p);
    return WEIR_OK;
  case WEIR_EV_GRAPH:
    return wr_graph_change(t, p);
  case WEIR_EV_CALL:
    if (p->detail == WR_GRAPH_LAUNCHED) return wr_graph_launched(t, p, take_of_launch);
    wr_graph_destroyed(t, p->address);
    return WEIR_OK;
  default:
    if (!p->address) return WEIR_OK; /* cudaFree(NULL) frees nothing */
    if (p->kind == WEIR_EV_ALLOC || (p->kind == WEIR_EV_HOSTREG && p->bytes))
      return begin_block(t, p, false);
    free_block(t, p);
    return WEIR_OK;
  }
}

/* ---- order ----------------------------------------------------------------------------------- */

static const wr_pending *oldest_of(const wr_tally *t, uint32_t thread)
{
  const wr_tally_thread *x = wr_table_at(&t->s.thread, thread);
  return wr_table_at(&t->s.pending, x->first - 1);
}

static bool is_older(const wr_tally *t, uint32_t a, uint32_t b)
{
  const wr_pending *x = oldest_of(t, a), *y = oldest_of(t, b);
  return x->time != y->time ? x->time < y->time : x->thread < y->thread;
}

static void sink_in_heap(wr_tally *t, uint32_t at)
{
  for (uint32_t child; (child = 2 * at + 1) < t->heap_count; at = child) {
    if (child + 1 < t->heap_count && is_older(t, t->heap[child + 1], t->heap[child])) child++;
    if (!is_older(t, t->heap[child], t->heap[at])) return;
    const uint32_t moved = t->heap[child];
    t->heap[child] = t->heap[at];
    t->heap[at] = moved;
  }
}

static void fill_heap(wr_tally *t, uint64_t before)
{
  const wr_tally_thread *all = (const wr_tally_thread *)(void *)t->s.thread.entry;
  t->heap_count = 0;
  for (uint32_t i = 0; i < t->s.thread.count; i++)
    if (all[i].first && oldest_of(t, i)->time < before) t->heap[t->heap_count++] = i;
  for (uint32_t i = t->heap_count / 2; i--;)
    sink_in_heap(t, i);
}

static bool make_heap_room(wr_tally *t)
{
  if (t->heap_room >= t->s.thread.room) return true;
  uint32_t *heap = realloc(t->heap, t->s.thread.room * sizeof *heap);
  if (!heap) return false;
  t->heap = heap;
  t->heap_room = t->s.thread.room;
  return true;
}

weir_status wr_tally_settle(wr_tally *t, uint64_t before, bool all)
{
  wr_tally_facts *facts = wr_facts(t);
  weir_status st = WEIR_OK;
  if (!t->waiting) return st;
  if (!make_heap_room(t) || !wr_table_room(&t->s.account, 3)) return wr_tally_no_memory(t);
  for (fill_heap(t, before); t->heap_count && !st;) {
    wr_tally_thread *thread = wr_table_at(&t->s.thread, t->heap[0]);
    wr_pending *p = wr_table_at(&t->s.pending, thread->first - 1);
    if (p->kind == WEIR_EV_GRAPH && !p->complete && !all) break; /* more nodes may come */
    if (!wr_table_room(&t->s.account, 3)) return wr_tally_no_memory(t);
    if (p->time < facts->settled) facts->late++;
    if (p->time > facts->settled) facts->settled = p->time;
    st = take_pending(t, p);
    if (st) break;
    wr_pending_drop(t, thread, p);
    if (!thread->first || oldest_of(t, t->heap[0])->time >= before)
      t->heap[0] = t->heap[--t->heap_count];
    sink_in_heap(t, 0);
  }
  return st;
}
