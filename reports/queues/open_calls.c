/* open_calls.c: calls that are under way, and what they show at their ends. See queues.c. */
#include "reports/queues/private.h"

static inline void complete_shown(wr_queues *m, const open_call *o, int64_t end)
{
  for (size_t i = 0; i < o->shown; i++) {
    const done_point *p = &o->shows[i];
    queue *q = m->queues[p->queue];
    if (p->number <= q->done) continue;
    m->shown++;
    q->done = p->number;
    q->done_bytes = p->bytes;
    q->done_by = q->home->done_by = o->id;
    q->tally->stale = true;
    watch_done(m, p->queue, end);
    if (q->now.last == q->done) wr_queues_retire_queue(m, p->queue);
  }
}

static void clear_any(wr_queues *m, uint32_t place)
{
  m->queues[place]->after.any = false;
  wr_queues_retire_queue(m, place);
}

/* It changes its queue no more. */
static inline void leave_queue(wr_queues *m, open_call *o)
{
  queue *q = m->queues[o->queue - 1];
  q->home->open--;
  if (o->before)
    m->open[o->before - 1].next = o->next;
  else
    q->open_call = o->next;
  if (o->next) m->open[o->next - 1].before = o->before;
}

/* What the queue or the context that it covers waited for and was not seen is complete, too. */
static void clear_covered(wr_queues *m, const open_call *o)
{
  if (o->clear_queue) clear_any(m, o->clear_queue - 1);
  for (size_t i = 0; o->clear_context && i < m->contexts[o->clear_context - 1]->count; i++) {
    queue *q = m->queues[m->contexts[o->clear_context - 1]->active[i]];
    if (q->now.last == q->done) q->after.any = false;
  }
}

/* What else than the queue that it changes the call is about. */
static void end_call(wr_queues *m, open_call *o, int64_t end)
{
  if (o->event) m->events[o->event - 1].askers--;
  complete_shown(m, o, end);
  if (o->calls == m->calls) clear_covered(m, o); /* nothing was called meanwhile */
}

/* Closes the call that ends first. */
static inline void close_first(wr_queues *m)
{
  int64_t end = m->ends[m->open_first];
  uint16_t closed = m->opened[m->open_first++];
  open_call *o = &m->open[closed];
  if (o->queue) leave_queue(m, o);
  if (o->shown | o->event | o->clear_queue | o->clear_context) end_call(m, o, end);
  m->unopened[m->unopened_count++] = closed;
}

void wr_queues_close_some(wr_queues *m, int64_t time)
{
  do
    close_first(m);
  while (any_open(m) && m->ends[m->open_first] <= time);
  if (!any_open(m)) m->open_first = m->open_end = 0;
}

void wr_queues_make_place(wr_queues *m)
{
  if (!m->unopened_count) close_first(m);
  uint32_t count = m->open_end - m->open_first;
  memmove(m->opened, m->opened + m->open_first, count * sizeof(*m->opened));
  memmove(m->ends, m->ends + m->open_first, count * sizeof(*m->ends));
  m->open_first = 0;
  m->open_end = count;
}

bool wr_queues_begin_showing_queue(wr_queues *m, open_call *o, uint32_t place)
{
  const queue *q = m->queues[place];
  done_point own = sure_queue(m, place, o->thread);
  size_t count = q->after.count && !contended(m, place, o->thread) ? q->after.count : 0, i = 0;
  for (; i < count && q->after.at[i].queue < place; i++)
    if (!show_point(m, o, q->after.at[i].queue, q->after.at[i].sure, q->after.at[i].sure_bytes))
      return false;
  if (!show_point(m, o, place, own.number, own.bytes)) return false;
  for (; i < count; i++)
    if (!show_point(m, o, q->after.at[i].queue, q->after.at[i].sure, q->after.at[i].sure_bytes))
      return false;
  return true;
}

bool wr_queues_begin_showing(wr_queues *m, open_call *o)
{
  for (size_t i = 0; i < m->set.count; i++) {
    const wr_point *p = &m->set.at[i];
    if (!show_point(m, o, p->queue, p->sure, p->sure_bytes)) return false;
  }
  return true;
}

static int by_queue(const void *left, const void *right)
{
  const done_point *a = left, *b = right;
  return (a->queue > b->queue) - (a->queue < b->queue);
}

static void order_shown(open_call *o)
{
  if (o->shown > FEW_QUEUES) qsort(o->shows, o->shown, sizeof(*o->shows), by_queue);
  for (size_t i = 1; i < o->shown; i++) {
    done_point p = o->shows[i];
    size_t k = i;
    for (; k && o->shows[k - 1].queue > p.queue; k--)
      o->shows[k] = o->shows[k - 1];
    o->shows[k] = p;
  }
}

bool wr_queues_begin_showing_whole(wr_queues *m, open_call *o, uint32_t of)
{
  const context *x = m->contexts[of];
  for (size_t i = 0; i < x->count; i++) {
    done_point p = sure_queue(m, x->active[i], o->thread);
    if (!show_point(m, o, p.queue, p.number, p.bytes)) return false;
  }
  order_shown(o);
  return true;
}
