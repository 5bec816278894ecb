/* turn_facts.c: see turn_facts.h. A turn ends with a wait for the one stream that has work of the thread's. Where work is in
 * several, nothing is in turn until the thread has waited for all of a context. Turns of as many streams as come before the
 * first one comes again are a round: all of them could go on at one time, so that its last turn gains nothing. */
#include "reports/findings/turn_facts.h"
#include "reports/base/util.h"

enum {
  READ = 10,           /* bytes a ns that a host reads and uses, at most */
  LEAST_GAP_NS = 20000 /* after a wait, in which the host is taken to have read nothing */
};

/* The host has what it waited for. */
static bool is_wait(const wr_common *t)
{
  return t->kind == WEIR_EV_SYNC && t->asked && t->copy != WEIR_SYNC_QUERY &&
         t->copy != WEIR_SYNC_STREAM_WAIT;
}

static bool copy_waits(const wr_common *t)
{
  return t->kind == WEIR_EV_COPY && t->copy == WEIR_COPY_DTOH &&
         t->flags & WEIR_EVF_IMPLICIT_SYNC && !(t->flags & WEIR_EVF_STAGED);
}

static bool covers(const wr_turn_state *x, const wr_common *t)
{
  if (t->device >= 0 && x->device >= 0 && t->device != x->device) return false;
  bool one = t->kind == WEIR_EV_COPY || t->copy == WEIR_SYNC_STREAM;
  return !one || t->stream == x->stream;
}

/* What was queued is done: a turn, if it was in one stream. */
static void end_turn(wr_turn_state *x, const wr_common *t, const wr_fact_call *c)
{
  x->last = (wr_turn){.event = x->several ? 0 : c->id,
                      .template = t->id,
                      .duration = c->duration,
                      .end = c->time + c->duration,
                      .stream = x->stream,
                      .up = x->up,
                      .back = x->back,
                      .device = x->device};
  x->pending = x->several = false;
}

/* The host has had no time to look at what the last turn brought, and the next is of another stream or device. */
static bool is_turned(const wr_turn *l, const wr_common *t, const wr_fact_call *c)
{
  int64_t gap = c->time - l->end, read = (int64_t)(l->back / READ);
  bool other = t->stream != l->stream || t->device != l->device;
  return l->event && l->back && other && gap < (read > LEAST_GAP_NS ? read : LEAST_GAP_NS);
}

/* The round goes on; else another one begins. */
static bool goes_on(wr_turn_state *x, const wr_common *t, const wr_fact_call *c)
{
  bool again = t->stream == x->first && t->device == x->first_device;
  if (!again && is_turned(&x->last, t, c)) return true;
  x->first = t->stream, x->first_device = t->device;
  return false;
}

static void queue_work(wr_turn_state *x, const wr_common *t, const wr_fact_call *c)
{
  if (!x->pending) {
    x->last.turned = goes_on(x, t, c);
    x->stream = t->stream, x->device = t->device;
    x->up = x->back = 0;
    x->pending = true;
  }
  x->several |= t->stream != x->stream || t->device != x->device;
  if (t->kind != WEIR_EV_COPY) return;
  if (t->copy == WEIR_COPY_HTOD) x->up += c->bytes;
  if (t->copy == WEIR_COPY_DTOH) x->back += c->bytes;
}

/* A wait for what may be all that is queued. */
static weir_status see_wait(wr_fact_tables *tables, wr_turn_state *x, const wr_common *t,
                            const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  const wr_turn l = x->last;
  bool whole = t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_CONTEXT;
  if (!x->pending) {
    if (l.event) x->last.end = c->time + c->duration;
    return st;
  }
  if (!covers(x, t) || (x->several && !whole)) {
    x->several = true;
    return st;
  }
  if (l.event && l.turned && !x->several) {
    const int64_t v[] = {l.event,     c->id,         l.template,      l.duration,
                         c->duration, (int64_t)l.up, (int64_t)l.back, l.device != x->device};
    st = wr_fact_add(tables, WR_FACT_TURN, v);
  }
  end_turn(x, t, c);
  return st;
}

weir_status wr_turn_take(wr_fact_tables *tables, wr_turn_state *x, const wr_common *t,
                         const wr_fact_call *c)
{
  if (is_wait(t)) return see_wait(tables, x, t, c);
  if (!t->device_work) return WEIR_OK;
  queue_work(x, t, c);
  return copy_waits(t) ? see_wait(tables, x, t, c) : WEIR_OK;
}
