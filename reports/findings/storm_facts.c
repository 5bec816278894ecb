/* storm_facts.c: see storm_facts.h.
 *
 * A *storm* is what a thread launches between two calls of other kinds. Its launches are counted by kernel and
 * stack. It is over when the thread waits, which shows how long the device took for it as well; where the thread queues
 * a copy or the like first, the wait that follows still does, less what the copy takes. */
#include "reports/findings/storm_facts.h"
#include "core/trace/event.h"

enum { LINK = 25 /* bytes a ns that a copy moves */ };

/* `until`: the end of the wait for all of it; 0: it is not waited for. */
static weir_status end_storm(wr_storm_facts *f, wr_storm_state *h, int64_t until)
{
  weir_status st = WEIR_OK;
  int64_t copies = (int64_t)(h->moved / LINK);
  int64_t span = (until ? until : h->until) - h->from;
  if (until) span = span > copies ? span - copies : 0;
  for (int i = 0; !st && i < h->runs; i++) {
    const wr_storm_run *r = &h->run[i];
    if (r->launches < WR_LEAST_STORM) continue;
    const int64_t v[] = {r->first, r->last,    (int64_t)r->launches, (int64_t)h->total,
                         span,     until != 0, (int64_t)r->threads,  r->template,
                         r->ns};
    st = wr_fact_add(f->tables, WR_FACT_STORM, v);
  }
  h->runs = 0;
  h->total = h->moved = 0;
  h->closed = false;
  return st;
}

static void count_launch(wr_storm_state *h, const wr_common *t, const wr_fact_call *c)
{
  wr_storm_run *r = h->run;
  if (!h->total++) h->from = c->time;
  h->until = c->time + c->duration;
  for (int i = 0; i < h->runs; i++, r++)
    if (r->template == t->id && r->function == c->a) break;
  if (r == h->run + WR_STORM_KINDS) return;
  if (r == h->run + h->runs) {
    *r = (wr_storm_run){
        .template = t->id, .function = c->a, .threads = c->bytes & INT64_MAX, .first = c->id};
    h->runs++;
  }
  r->launches++;
  r->last = c->id;
  r->ns += c->duration;
}

/* The host waits for what it has queued. */
static bool waits(const wr_common *t)
{
  if (t->kind == WEIR_EV_SYNC) return t->asked;
  bool implied = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_FREE || t->kind == WEIR_EV_MEMSET;
  return implied && t->flags & WEIR_EVF_IMPLICIT_SYNC &&
         !(t->kind == WEIR_EV_COPY && t->flags & WEIR_EVF_ASYNC);
}

weir_status wr_storm_take(wr_storm_facts *f, wr_storm_state *h, const wr_common *t,
                          const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  bool moves = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET;
  if (t->kind == WEIR_EV_LAUNCH) {
    if (h->closed) st = end_storm(f, h, 0);
    count_launch(h, t, c);
  } else if (h->total && waits(t)) {
    if (moves) h->moved += c->bytes;
    st = end_storm(f, h, c->time + c->duration);
  } else if (h->total && (moves || t->kind == WEIR_EV_SYNC || t->kind == WEIR_EV_CALL)) {
    h->moved += t->kind == WEIR_EV_COPY ? c->bytes : 0;
    h->closed = true;
  }
  return st;
}

weir_status wr_storm_end(wr_storm_facts *f, wr_storm_state *h)
{
  return end_storm(f, h, 0);
}
