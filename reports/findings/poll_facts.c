/* poll_facts.c: see poll_facts.h.
 *
 * A wait by questions with pauses ends when the question after the last pause returns: the work was
 * complete at some time in that pause. It counts for a thread that has queued work since its last
 * such wait: a thread that only watches delays nothing. Of an event it counts where that is the one
 * recorded last, with no work queued after it: else the device has more to do, and is not late. */
#include "reports/findings/poll_facts.h"

enum { LEAST_POLLS = 64 /* in a row, that are a fact */ };

static int64_t end_of(const wr_fact_call *c)
{
  int64_t span = c->duration > (int64_t)c->b ? c->duration : (int64_t)c->b;
  return c->time + span;
}

weir_status wr_poll_take(wr_fact_tables *tables, wr_poll_state *h, const wr_common *t,
                         const wr_fact_call *c)
{
  bool sane = c->bytes <= INT64_MAX / 2 && c->b <= INT64_MAX / 2;
  h->polls = sane ? (int64_t)c->bytes + 1 : 0;
  if (!sane) return WEIR_OK;
  h->asked = c->a, h->stream = t->stream;
  h->start = c->time, h->end = end_of(c);
  if (h->polls < LEAST_POLLS) return WEIR_OK;
  const int64_t v[] = {c->id, t->id, h->polls, c->duration, h->end - h->start};
  return wr_fact_add(tables, WR_FACT_POLLED, v);
}

weir_status wr_poll_end(wr_fact_tables *tables, wr_poll_state *h, const wr_common *t,
                        const wr_fact_call *c)
{
  bool same = h->polls && h->asked == c->a && h->stream == t->stream && c->time >= h->end;
  bool last = !c->a || h->recorded == c->a, counts = same && last && h->queued;
  const int64_t v[] = {c->id, t->id, h->polls + 1, c->time - h->start, c->time - h->end};
  h->polls = 0, h->queued = false;
  return counts ? wr_fact_add(tables, WR_FACT_LATE_WAIT, v) : WEIR_OK;
}
