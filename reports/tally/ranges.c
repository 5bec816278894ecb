/* ranges.c: NVTX ranges that are open. A thread's pushes are found by their depth, starts by their
 * number in the process, since their end may come from another thread, and before them. */
#include "reports/tally/private.h"

enum {
  MOST_DEEP = 4096,   /* pushed by a thread; NVTX ends before: more is damage */
  MOST_ENDED = 65536, /* ends that wait for their start, and ranges started */
  ENDED_FIRST = 2     /* wr_open_range.started */
};

static uint64_t key_at_depth(const wr_tally_thread *thread, uint32_t depth)
{
  return wr_key_of(WR_OF_OPEN, thread->serial, depth);
}

static void describe_range(wr_tally *t, wr_open_range *o, const wr_tally_thread *thread,
                           const trace_event *e)
{
  wr_tally_name *name =
      wr_table_find(&t->s.name, wr_key_of(WR_OF_RANGE_NAME, thread->serial, (uint32_t)e->a));
  if (name && e->start > name->used) name->used = e->start;
  o->name = name ? name->key : 0;
  o->number = e->bytes;
  o->start = e->start;
  o->payload = e->b;
  o->payload_type = e->mem;
  o->thread = thread->serial;
  o->domain = (uint32_t)e->stream;
}

static weir_status push_range(wr_tally *t, wr_tally_thread *thread, const trace_event *e)
{
  bool added;
  if (thread->open >= MOST_DEEP) return WEIR_OK;
  wr_open_range *o = wr_table_place(&t->s.range, key_at_depth(thread, thread->open), &added);
  if (!o) return wr_tally_no_room(t);
  describe_range(t, o, thread, e);
  thread->open++;
  return WEIR_OK;
}

/* A range within the one that is popped, of the same domain, whose own pop was lost, ends with it.
 */
static bool ends_with(const wr_open_range *o, const trace_event *pop)
{
  return o->number == pop->bytes || (o->number > pop->bytes && o->domain == (uint32_t)pop->stream);
}

static void pop_range(wr_tally *t, wr_tally_thread *thread, const trace_event *e)
{
  uint32_t at = thread->open, kept;
  for (; at; at--) {
    const wr_open_range *o = wr_table_find(&t->s.range, key_at_depth(thread, at - 1));
    if (o && o->number == e->bytes) break;
  }
  if (!at) return; /* its push was lost */
  kept = at - 1;
  for (uint32_t i = at - 1; i < thread->open; i++) {
    bool added;
    wr_open_range *o = wr_table_find(&t->s.range, key_at_depth(thread, i));
    if (!o) continue;
    wr_open_range was = *o;
    wr_table_remove(&t->s.range, o);
    if (ends_with(&was, e)) continue;
    was.key = key_at_depth(thread, kept++);
    o = wr_table_place(&t->s.range, was.key, &added); /* the room of the one removed */
    if (o) *o = was;
  }
  thread->open = kept;
}

static weir_status start_range(wr_tally *t, const wr_tally_thread *thread, const trace_event *e)
{
  bool added;
  const uint64_t key = wr_key_of_one(WR_OF_STARTED, e->bytes);
  wr_open_range *o = wr_table_find(&t->s.range, key);
  if (!e->bytes) return WEIR_OK; /* of a tool that has no numbers */
  if (o && o->started == ENDED_FIRST) {
    wr_table_remove(&t->s.range, o);
    return WEIR_OK;
  }
  if (t->s.range.count >= MOST_ENDED) return WEIR_OK;
  o = wr_table_place(&t->s.range, key, &added);
  if (!o) return wr_tally_no_room(t);
  describe_range(t, o, thread, e);
  o->started = 1;
  return WEIR_OK;
}

static weir_status end_range(wr_tally *t, const trace_event *e)
{
  bool added;
  const uint64_t key = wr_key_of_one(WR_OF_STARTED, e->bytes);
  wr_open_range *o = wr_table_find(&t->s.range, key);
  if (!e->bytes) return WEIR_OK;
  if (o) {
    if (o->started == 1) wr_table_remove(&t->s.range, o);
    return WEIR_OK;
  }
  if (t->s.range.count >= MOST_ENDED) return WEIR_OK;
  o = wr_table_place(&t->s.range, key, &added);
  if (!o) return wr_tally_no_room(t);
  o->number = e->bytes;
  o->started = ENDED_FIRST;
  o->start = e->start;
  return WEIR_OK;
}

weir_status wr_tally_range(wr_tally *t, wr_tally_thread *thread, const trace_event *e)
{
  if (e->start > wr_facts(t)->latest_range) wr_facts(t)->latest_range = e->start;
  switch (e->range_fact) {
  case WEIR_RANGE_PUSH:
    return push_range(t, thread, e);
  case WEIR_RANGE_POP:
    pop_range(t, thread, e);
    return WEIR_OK;
  case WEIR_RANGE_START:
    return start_range(t, thread, e);
  case WEIR_RANGE_END:
    return end_range(t, e);
  default:
    return WEIR_OK; /* a mark is over at once */
  }
}
