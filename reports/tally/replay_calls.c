/* replay_calls.c: the calls that are still of account when a window begins, as records again.
 *
 * Within a thread they come by their start, with the pushes of the ranges that are open among them:
 * so a call is within those of its ranges that are still open. */
#include <stdlib.h>
#include <string.h>
#include "reports/tally/probe.h"
#include "reports/tally/replaying.h"

enum { ALLOC_NODE = 10, /* CUgraphNodeType */ A_NS = 4 /* ticks that are one, of any clock */ };
enum { ORDER_REPLACED, ORDER_CALL, ORDER_RANGE };

static bool list_early(wr_replay *r, const wr_call *call, uint8_t range_fact, uint32_t order)
{
  if (r->count == r->room) {
    const uint32_t room = r->room ? r->room * 2 : 256;
    wr_early *more = realloc(r->early, room * sizeof *more);
    if (!more) return false;
    r->early = more;
    r->room = room;
  }
  r->early[r->count++] = (wr_early){*call, range_fact, order};
  return true;
}

/* ---- what is listed -------------------------------------------------------------------------- */

/* What made a block. Of a graph's block the launch, which its other blocks have, too. */
static wr_call call_of_block(const wr_tally_block *b)
{
  wr_call call = {.start = b->start,
                  .ticks = b->time > b->start ? b->time - b->start : 0,
                  .a = b->address,
                  .b = b->b,
                  .bytes = b->bytes,
                  .stream = b->stream,
                  .stack = b->stack,
                  .thread = b->thread,
                  .api = b->api,
                  .kind = b->kind,
                  .flags = b->flags,
                  .device = b->device,
                  .src_device = b->src_device,
                  .detail = b->detail,
                  .mem = b->mem,
                  .context = b->context};
  if (!b->of_graph) return call;
  call.kind = WEIR_EV_CALL;
  call.a = b->b;
  call.b = call.bytes = 0;
  call.device = b->src_device;
  call.src_device = WEIR_DEVICE_NONE;
  call.mem = 0;
  return call;
}

static wr_call call_of_pending(const wr_pending *p)
{
  return (wr_call){.start = p->start,
                   .ticks = p->ticks,
                   .a = p->address,
                   .b = p->about,
                   .bytes = p->bytes,
                   .stream = p->stream,
                   .stack = p->stack,
                   .thread = p->thread,
                   .api = p->api,
                   .kind = p->kind,
                   .flags = p->flags,
                   .device = p->device,
                   .src_device = p->src_device,
                   .detail = p->reason,
                   .mem = p->mem,
                   .context = p->context};
}

static bool list_blocks(wr_replay *r, const wr_table *table, uint32_t order)
{
  bool good = true;
  for (uint32_t i = 0; i < table->count && good; i++) {
    const wr_call call = call_of_block(wr_table_at(table, i));
    good = list_early(r, &call, 0, order);
  }
  return good;
}

static bool list_others(wr_replay *r)
{
  const wr_tally_state *s = &r->t->s;
  bool good = true;
  for (uint32_t i = 0; i < s->context.count && good; i++)
    good = list_early(r, &((wr_tally_context *)wr_table_at(&s->context, i))->call, 0, ORDER_CALL);
  for (uint32_t i = 0; i < s->stream.count && good; i++)
    good = list_early(r, &((wr_tally_stream *)wr_table_at(&s->stream, i))->call, 0, ORDER_CALL);
  for (uint32_t i = 0; i < s->gauge.count && good; i++)
    good = list_early(r, &((wr_tally_gauge *)wr_table_at(&s->gauge, i))->call, 0, ORDER_CALL);
  for (uint32_t i = 0; i < s->pending.count && good; i++) {
    const wr_pending *p = wr_table_at(&s->pending, i);
    const wr_call call = call_of_pending(p);
    if (p->kind && p->kind != WEIR_EV_GRAPH) good = list_early(r, &call, 0, ORDER_CALL);
  }
  return good;
}

/* As the records of ranges have it. */
static wr_call call_of_range(const wr_replay *r, const wr_open_range *o)
{
  const wr_tally_name *name = o->name ? wr_table_find(&r->t->s.name, o->name) : NULL;
  return (wr_call){.start = o->start,
                   .a = name ? name->handle : 0,
                   .b = o->payload,
                   .bytes = o->number,
                   .stream = o->domain,
                   .thread = o->thread,
                   .kind = WEIR_EV_RANGE,
                   .mem = o->payload_type};
}

static bool list_ranges(wr_replay *r)
{
  const wr_tally_state *s = &r->t->s;
  bool good = true;
  for (uint32_t i = 0; i < s->thread.count; i++) {
    const wr_tally_thread *thread = wr_table_at(&s->thread, i);
    for (uint32_t depth = 0; depth < thread->open && good; depth++) {
      const wr_open_range *o =
          wr_table_find(&s->range, wr_key_of(WR_OF_OPEN, thread->serial, depth));
      wr_call call = o ? call_of_range(r, o) : (wr_call){0};
      call.thread = thread->serial;
      if (o) good = list_early(r, &call, WEIR_RANGE_PUSH, ORDER_RANGE + depth);
    }
  }
  for (uint32_t i = 0; i < s->range.count && good; i++) {
    const wr_open_range *o = wr_table_at(&s->range, i);
    wr_call call = call_of_range(r, o);
    if (o->started == 2) call.thread = r->home; /* the end of one whose start is still to come */
    if (o->started)
      good = list_early(r, &call, o->started == 2 ? WEIR_RANGE_END : WEIR_RANGE_START, ORDER_RANGE);
  }
  return good;
}

static int by_thread_and_start(const void *left, const void *right)
{
  const wr_early *a = left, *b = right;
  if (a->call.thread != b->call.thread) return a->call.thread < b->call.thread ? -1 : 1;
  if (a->call.start != b->call.start) return a->call.start < b->call.start ? -1 : 1;
  return (a->order > b->order) - (a->order < b->order);
}

static bool is_same_launch(const wr_early *a, const wr_early *b)
{
  return a->call.kind == WEIR_EV_CALL && b->call.kind == WEIR_EV_CALL &&
         a->call.thread == b->call.thread && a->call.start == b->call.start &&
         a->call.api == b->call.api && a->call.a == b->call.a;
}

/* ---- taken out of the sums ------------------------------------------------------------------- */

static void subtract(uint64_t *from, uint64_t what)
{
  *from -= what < *from ? what : *from;
}

/* What one of two has not the other has. */
static void subtract_of_both(uint64_t *one, uint64_t *other, uint64_t what)
{
  const uint64_t here = what < *one ? what : *one;
  *one -= here;
  if (other) subtract(other, what - here);
}

static wr_tally_total *find_total(const wr_tally *t, const wr_call *c, uint64_t stack)
{
  const wr_tally_total x = {.stack = stack,
                            .api = c->api,
                            .kind = c->kind,
                            .flags = c->flags & WR_TOTAL_FLAGS,
                            .detail = c->detail,
                            .mem = c->mem,
                            .device = c->device,
                            .src_device = c->src_device};
  return wr_table_find(&t->s.total, wr_total_key(&x));
}

/* A call is in the total of its stack, or in that of all whose stacks went, where its own went, too;
 * which of both it is in cannot be seen. */
static void take_out_of_totals(const wr_replay *r)
{
  for (uint32_t i = 0; i < r->count; i++) {
    const wr_call *c = &r->early[i].call;
    if (r->early[i].range_fact) continue;
    wr_tally_total *own = find_total(r->t, c, c->stack),
                   *rest = find_total(r->t, c, WR_STACK_FORGOTTEN);
    if (!own) own = rest, rest = NULL;
    if (!own) continue;
    subtract_of_both(&own->count, rest ? &rest->count : NULL, 1);
    subtract_of_both(&own->bytes, rest ? &rest->bytes : NULL, c->bytes);
    subtract_of_both(&own->ticks, rest ? &rest->ticks : NULL, c->ticks);
  }
}

static void take_out_of_accounts(const wr_replay *r, const wr_table *blocks)
{
  for (uint32_t i = 0; i < blocks->count; i++) {
    const wr_tally_block *b = wr_table_at(blocks, i);
    wr_account_place places[3];
    for (unsigned k = 0, count = wr_accounts_of(b, places); k < count; k++) {
      wr_tally_account *a =
          wr_table_find(&r->t->s.account, wr_key_of_small(places[k].device + 1, places[k].class));
      if (!a) continue;
      subtract(&a->allocs, 1);
      subtract(&a->bytes, b->bytes);
    }
  }
}

weir_status wr_replay_list_calls(wr_replay *r)
{
  const wr_tally_state *s = &r->t->s;
  uint32_t kept = 0;
  if (!list_blocks(r, &s->replaced, ORDER_REPLACED) || !list_blocks(r, &s->block, ORDER_CALL) ||
      !list_others(r) || !list_ranges(r))
    return wr_replay_no_memory(r);
  if (r->count) qsort(r->early, r->count, sizeof *r->early, by_thread_and_start);
  for (uint32_t i = 0; i < r->count; i++)
    if (!kept || !is_same_launch(&r->early[kept - 1], &r->early[i])) r->early[kept++] = r->early[i];
  r->count = kept;
  take_out_of_totals(r);
  take_out_of_accounts(r, &s->replaced);
  take_out_of_accounts(r, &s->block);
  for (uint32_t i = 0; i < r->count; i++) {
    uint32_t id;
    if (!wr_replay_stack(r, r->early[i].call.thread, r->early[i].call.stack, &id))
      return wr_replay_no_memory(r);
  }
  return WEIR_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static weir_status deliver_graph(wr_replay *r, uint32_t thread, uint64_t time, uint64_t exec,
                                 uint64_t about, uint8_t fact, bool whole)
{
  const trace_event head = {.kind = WEIR_EV_GRAPH,
                            .start = time,
                            .a = exec,
                            .b = about,
                            .graph_fact = fact,
                            .mem = whole};
  return wr_replay_extended(r, thread, &head);
}

static bool put_nodes(wr_replay *r, uint32_t first, uint32_t count)
{
  bool good = true;
  for (uint32_t i = 0; i < count && good; i++) {
    const wr_node *n = wr_table_at(&r->t->s.node, first + i);
    good = wr_replay_put(r, &n->info, sizeof n->info);
  }
  return good;
}

/* A graph as it is, from `time` on. */
static weir_status deliver_graph_state(wr_replay *r, const wr_tally_graph *g, uint64_t time)
{
  if (g->known && !put_nodes(r, g->first, g->count)) return wr_replay_no_memory(r);
  weir_status st =
      deliver_graph(r, g->thread, time, g->exec, g->graph, WEIR_GRAPH_MADE, g->known != 0);
  for (uint32_t i = 0; i < g->count && g->known && !st; i++) {
    const wr_node *n = wr_table_at(&r->t->s.node, g->first + i);
    if (n->disabled)
      st = deliver_graph(r, g->thread, time, g->exec, n->info.node, WEIR_GRAPH_DISABLED, true);
  }
  return st;
}

static int by_launch(const void *left, const void *right)
{
  const wr_tally_block *a = *(const wr_tally_block *const *)left,
                       *b = *(const wr_tally_block *const *)right;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  if (a->b != b->b) return a->b < b->b ? -1 : 1;
  return (a->address > b->address) - (a->address < b->address);
}

static uint32_t list_graph_blocks(const wr_table *table, const wr_tally_block **out)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < table->count; i++) {
    const wr_tally_block *b = wr_table_at(table, i);
    if (!b->of_graph) continue;
    if (out) out[count] = b;
    count++;
  }
  return count;
}

/* The graph has only what is still there of this launch; after it, what it has in truth. */
static weir_status deliver_launch(wr_replay *r, const wr_tally_block *const *blocks, uint32_t count)
{
  const wr_tally_block *first = blocks[0];
  for (uint32_t i = 0; i < count; i++) {
    const graph_node_info node = {.node = blocks[i]->address ^ i,
                                  .a = blocks[i]->address,
                                  .bytes = blocks[i]->bytes,
                                  .type = ALLOC_NODE,
                                  .mem = blocks[i]->mem,
                                  .device = blocks[i]->device,
                                  .src_device = WEIR_DEVICE_NONE};
    if (!wr_replay_put(r, &node, sizeof node)) return wr_replay_no_memory(r);
  }
  weir_status st =
      deliver_graph(r, first->thread, first->start, first->b, 0, WEIR_GRAPH_MADE, true);
  const wr_tally_graph *g = wr_table_find(&r->t->s.graph, wr_key_of_one(WR_OF_GRAPH, first->b));
  if (st || !g || g->changed > first->start) return st;
  return deliver_graph_state(r, g, first->start + A_NS);
}

static weir_status deliver_launches(wr_replay *r)
{
  const wr_tally_state *s = &r->t->s;
  const uint32_t replaced = list_graph_blocks(&s->replaced, NULL),
                 all = replaced + list_graph_blocks(&s->block, NULL);
  const wr_tally_block **blocks = all ? malloc(all * sizeof(wr_tally_block *)) : NULL;
  weir_status st = WEIR_OK;
  if (all && !blocks) return wr_replay_no_memory(r);
  if (all) {
    list_graph_blocks(&s->replaced, blocks);
    list_graph_blocks(&s->block, blocks + replaced);
    qsort(blocks, all, sizeof(wr_tally_block *), by_launch);
  }
  for (uint32_t i = 0, end; i < all && !st; i = end) {
    for (end = i + 1; end < all && blocks[end]->thread == blocks[i]->thread &&
                      blocks[end]->start == blocks[i]->start && blocks[end]->b == blocks[i]->b;)
      end++;
    st = deliver_launch(r, blocks + i, end - i);
  }
  free(blocks);
  return st;
}

/* Further nodes of a change that is not complete may come in the spool: it is the last. */
weir_status wr_replay_graphs(wr_replay *r)
{
  const wr_tally_state *s = &r->t->s;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < s->graph.count && !st; i++) {
    const wr_tally_graph *g = wr_table_at(&s->graph, i);
    st = deliver_graph_state(r, g, g->changed);
  }
  if (!st) st = deliver_launches(r);
  for (uint32_t i = 0; i < s->thread.count && !st; i++) {
    const wr_tally_thread *thread = wr_table_at(&s->thread, i);
    for (uint32_t at = thread->first; at && !st;) {
      const wr_pending *p = wr_table_at(&s->pending, at - 1);
      at = p->after;
      if (p->kind != WEIR_EV_GRAPH) continue;
      if (!put_nodes(r, p->first, p->count)) return wr_replay_no_memory(r);
      st = deliver_graph(r, thread->serial, p->start, p->address, p->about, p->detail,
                         p->complete != 0);
    }
  }
  return st;
}

/* ---- delivered ------------------------------------------------------------------------------- */

/* A further item of a batch has the first one of it nowhere. */
static trace_event event_of(const wr_early *e, uint32_t stack)
{
  const wr_call *c = &e->call;
  trace_event out = {.kind = c->kind,
                     .flags = c->flags & (uint8_t)~WEIR_EVF_BATCH,
                     .api = c->api,
                     .start = c->start,
                     .stack = stack | (uint32_t)c->context << 24,
                     .device = c->device,
                     .src_device = c->src_device,
                     .detail = e->range_fact ? e->range_fact : c->detail,
                     .mem = c->mem,
                     .a = c->a,
                     .b = c->b,
                     .bytes = c->bytes,
                     .stream = c->stream};
  event_set_duration(&out, c->ticks);
  return out;
}

weir_status wr_replay_calls(wr_replay *r)
{
  const spool_visitor *v = &r->v->records;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < r->count && !st; i++) {
    const wr_early *e = &r->early[i];
    const wr_tally_thread *thread =
        wr_table_find(&r->t->s.thread, wr_key_of_one(WR_OF_THREAD, e->call.thread));
    uint32_t stack;
    if (!wr_replay_stack(r, e->call.thread, e->call.stack, &stack)) return wr_replay_no_memory(r);
    const trace_event event = event_of(e, stack);
    st = v->event(v->context, e->call.thread, thread ? thread->tid : 0, &event);
  }
  return st;
}
