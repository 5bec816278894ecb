/* storm_facts.c: see storm_facts.h.
 *
 * A *storm* is what a thread launches between two calls of other kinds. Its launches are counted by kernel and
 * stack. It is over when the thread waits, which shows how long the device took for it as well; where the thread queues
 * a copy or the like first, the wait that follows still does, less what the copy takes. */
#include "reports/findings/storm_facts.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum { LINK = 25 /* bytes a ns that a copy moves */ };

/* The thread's state; NULL: out of memory. */
static wr_storm_state *state_of(wr_storm_facts *f, size_t thread)
{
  size_t had = f->capacity;
  if (thread < had) return &f->thread[thread];
  if (!wr_grow(&f->thread, &f->capacity, thread + 1, sizeof(*f->thread))) return NULL;
  memset(f->thread + had, 0, (f->capacity - had) * sizeof(*f->thread));
  return &f->thread[thread];
}

/* `until`: the end of the wait for all of it; 0: it is not waited for. */
static weir_status end_storm(wr_storm_facts *f, wr_storm_state *h, int64_t until)
{
  weir_status st = WEIR_OK;
  int64_t copies = (int64_t)(h->moved / LINK);
  int64_t span = (until ? until : h->until) - h->from;
  if (until) span = span > copies ? span - copies : 0;
  for (int i = 0; !st && i < h->runs; i++) {
    const wr_storm_run *r = &h->run[i];
    const int64_t v[] = {r->first, r->last,    (int64_t)r->launches, (int64_t)h->total,
                         span,     until != 0, (int64_t)r->threads,  r->template,
                         r->ns};
    if (r->launches >= WR_LEAST_STORM) st = wr_fact_add(f->tables, WR_FACT_STORM, v);
  }
  h->runs = 0;
  h->total = h->moved = 0;
  h->closed = false;
  return st;
}

static void count_launch(wr_storm_state *h, const wr_common *t, const wr_event *e)
{
  wr_storm_run *r = h->run;
  if (!h->total++) h->from = e->start;
  h->until = e->start + e->ns;
  for (int i = 0; i < h->runs; i++, r++)
    if (r->template == t->id && r->function == e->a) break;
  if (r == h->run + WR_STORM_KINDS) return;
  if (r == h->run + h->runs) {
    *r = (wr_storm_run){
        .template = t->id, .function = e->a, .threads = e->bytes & INT64_MAX, .first = e->id};
    h->runs++;
  }
  r->launches++;
  r->last = e->id;
  r->ns += e->ns;
}

/* The host waits for what it has queued. */
static bool waits(const wr_common *t)
{
  if (t->kind == WEIR_EV_SYNC) return t->asked;
  bool implied = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_FREE || t->kind == WEIR_EV_MEMSET;
  return implied && t->flags & WEIR_EVF_IMPLICIT_SYNC &&
         !(t->kind == WEIR_EV_COPY && t->flags & WEIR_EVF_ASYNC);
}

weir_status wr_storm_take(wr_storm_facts *f, size_t thread, const wr_common *t, const wr_event *e)
{
  weir_status st = WEIR_OK;
  bool launch = t->kind == WEIR_EV_LAUNCH;
  bool moves = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET;
  if (!launch && thread >= f->capacity) return st; /* it has launched nothing */
  wr_storm_state *h = state_of(f, thread);
  if (!h) return weir_fail(WEIR_ENOMEM, "finding storms of launches: out of host memory");
  if (launch) {
    if (h->closed) st = end_storm(f, h, 0);
    count_launch(h, t, e);
  } else if (h->total && waits(t)) {
    if (moves) h->moved += e->bytes;
    st = end_storm(f, h, e->start + e->ns);
  } else if (h->total && (moves || t->kind == WEIR_EV_SYNC || t->kind == WEIR_EV_CALL)) {
    h->moved += t->kind == WEIR_EV_COPY ? e->bytes : 0;
    h->closed = true;
  }
  return st;
}

weir_status wr_storm_facts_end(wr_storm_facts *f)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < f->capacity; i++)
    st = end_storm(f, &f->thread[i], 0);
  return st;
}

void wr_storm_facts_free(wr_storm_facts *f)
{
  free(f->thread);
  *f = (wr_storm_facts){.tables = f->tables};
}
