/* storm_facts.c: see storm_facts.h.
 *
 * A *storm* is what a thread launches between two calls of other kinds. Its launches are counted by kernel and
 * stack. It is over when the thread waits, which shows how long the device took for it as well; where the thread queues
 * a copy or the like first, the wait that follows still does, less what the copy takes.
 *
 * Launches of one kernel by one stack, each of which the thread waits for before the next, are a storm of their own. */
#include "reports/findings/storm_facts.h"
#include "core/trace/event.h"

enum { LINK = 25 /* bytes a ns that a copy moves */ };

/* `whole`: the first launch of all `total`. */
static weir_status add_storm(wr_storm_facts *f, const wr_storm_run *r, uint64_t total, int64_t span,
                             int waited, int64_t whole)
{
  if (r->launches < WR_LEAST_STORM) return WEIR_OK;
  const int64_t v[] = {r->first, r->last, (int64_t)r->launches, (int64_t)total,
                       span,     waited,  (int64_t)r->threads,  r->template,
                       r->ns,    whole};
  return wr_fact_add(f->tables, WR_FACT_STORM, v);
}

/* Launches of several kernels, none of which makes a storm. */
static weir_status add_mixed(wr_storm_facts *f, const wr_storm_state *h, int64_t span, int waited)
{
  for (int i = 0; i < h->runs; i++)
    if (h->run[i].launches >= WR_LEAST_STORM) return WEIR_OK;
  if (h->total < WR_LEAST_STORM) return WEIR_OK;
  const int64_t v[] = {h->run[0].first, h->last, h->run[0].template, (int64_t)h->total, span,
                       waited,          h->ns,   (int64_t)h->most};
  return wr_fact_add(f->tables, WR_FACT_MIXED_STORM, v);
}

/* `until`: the end of the wait for all of it; 0: it is not waited for. */
static weir_status end_storm(wr_storm_facts *f, wr_storm_state *h, int64_t until)
{
  weir_status st = WEIR_OK;
  int64_t copies = (int64_t)(h->moved / LINK);
  int64_t span = (until ? until : h->until) - h->from;
  if (until) span = span > copies ? span - copies : 0;
  int waited = until ? WR_STORM_WAITED : WR_STORM_NOT_WAITED;
  for (int i = 0; !st && i < h->runs; i++)
    st = add_storm(f, &h->run[i], h->total, span, waited, h->run[0].first);
  if (!st && h->runs > 1) st = add_mixed(f, h, span, waited);
  h->runs = 0;
  h->total = h->moved = 0;
  h->ns = 0, h->most = 0;
  h->closed = false;
  return st;
}

static bool is_of_run(const wr_storm_run *r, const wr_common *t, const wr_fact_call *c)
{
  return r->site == t->site && r->stream == t->stream && r->function == c->a;
}

/* ---- each waited for by itself ---------------------------------------------------------------- */

static weir_status end_apart(wr_storm_facts *f, wr_storm_state *h)
{
  const wr_storm_run r = h->apart;
  h->apart = (wr_storm_run){0};
  return r.launches ? add_storm(f, &r, r.launches, h->apart_until - h->apart_from,
                                WR_STORM_EACH_WAITED, r.first)
                    : WEIR_OK;
}

/* The thread waits for one launch, until then. */
static void add_apart(wr_storm_state *h, int64_t until)
{
  const wr_storm_run *one = &h->run[0];
  wr_storm_run *r = &h->apart;
  h->apart_until = until;
  if (!r->launches) {
    *r = *one;
    h->apart_from = h->from;
    return;
  }
  r->launches++;
  r->last = one->last;
  r->ns += one->ns;
}

static bool goes_on_apart(const wr_storm_state *h, const wr_common *t, const wr_fact_call *c)
{
  return !h->total && is_of_run(&h->apart, t, c);
}

/* ---- launches --------------------------------------------------------------------------------- */

static void count_launch(wr_storm_state *h, const wr_common *t, const wr_fact_call *c)
{
  wr_storm_run *r = h->run;
  if (!h->total++) h->from = c->time;
  h->until = c->time + c->duration;
  h->last = c->id, h->ns += c->duration;
  if ((c->bytes & INT64_MAX) > h->most) h->most = c->bytes & INT64_MAX;
  for (int i = 0; i < h->runs; i++, r++)
    if (is_of_run(r, t, c)) break;
  if (r == h->run + WR_STORM_KINDS) return;
  if (r == h->run + h->runs) {
    *r = (wr_storm_run){.template = t->id,
                        .site = t->site,
                        .stream = t->stream,
                        .function = c->a,
                        .threads = c->bytes & INT64_MAX,
                        .first = c->id};
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

static weir_status take_launch(wr_storm_facts *f, wr_storm_state *h, const wr_common *t,
                               const wr_fact_call *c)
{
  weir_status st = h->closed ? end_storm(f, h, 0) : WEIR_OK;
  if (!st && h->apart.launches && !goes_on_apart(h, t, c)) st = end_apart(f, h);
  count_launch(h, t, c);
  return st;
}

weir_status wr_storm_take(wr_storm_facts *f, wr_storm_state *h, const wr_common *t,
                          const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  bool moves = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET, wait = waits(t);
  bool queues = moves || t->kind == WEIR_EV_SYNC || t->kind == WEIR_EV_CALL;
  if (t->kind == WEIR_EV_LAUNCH) return take_launch(f, h, t, c);
  if (wait && t->kind == WEIR_EV_SYNC && h->total == 1 && !h->closed)
    add_apart(h, c->time + c->duration);
  else if (h->apart.launches && (wait || queues))
    st = end_apart(f, h);
  if (st || !h->total || !(wait || queues)) return st;
  if (wait ? moves : t->kind == WEIR_EV_COPY) h->moved += c->bytes;
  if (wait) return end_storm(f, h, c->time + c->duration);
  h->closed = true;
  return st;
}

weir_status wr_storm_end(wr_storm_facts *f, wr_storm_state *h)
{
  weir_status st = end_storm(f, h, 0);
  return st ? st : end_apart(f, h);
}
