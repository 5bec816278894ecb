/* step_facts.c: see step_facts.h.
 *
 * A host that reads what a copy brought needs time between its calls. That time is added up, so
 * that the next copy to the same memory shows how much there was. Where CUDA itself reads the
 * memory, as the source of a copy, nothing is concluded. */
#include "reports/findings/step_facts.h"
#include "core/base/map.h"
#include "core/trace/event.h"

enum { READ = 10 /* bytes a ns that a host reads and uses, at most */ };

/* A copy to the host, and the one before it to the same memory. */
static weir_status take_result(wr_fact_tables *tables, wr_step_state *h, const wr_common *t,
                               const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  unsigned at = (unsigned)(hash_mix(29, c->a) % WR_RESULTS);
  wr_result *r = &h->result[at];
  int64_t own = h->own - r->own;
  bool same =
      h->results >> at & 1 && r->address == c->a && r->bytes == c->bytes && r->template == t->id;
  if (same && own < (int64_t)(r->bytes / READ)) {
    const int64_t v[] = {r->event,          c->id,   own,       r->template, r->duration,
                         (int64_t)r->bytes, r->wait, r->wait_ns};
    st = wr_fact_add(tables, WR_FACT_BRIEF_RESULT, v);
  }
  *r = (wr_result){c->a, c->bytes, c->id, t->id, c->duration, h->own, 0, 0};
  h->results |= 1U << at;
  h->unwaited = t->flags & WEIR_EVF_IMPLICIT_SYNC ? 0 : at + 1;
  return st;
}

/* The wait right after a copy to the host is as much longer as the copy takes. */
static void wait_result(wr_step_state *h, const wr_common *t, const wr_fact_call *c)
{
  bool waits = t->kind == WEIR_EV_SYNC && t->asked && t->copy != WEIR_SYNC_STREAM_WAIT;
  if (waits && h->unwaited) {
    wr_result *r = &h->result[h->unwaited - 1];
    r->wait = c->id, r->wait_ns = c->duration;
  }
  h->unwaited = 0;
}

/* The memory is the source of a copy: what was brought there is used. */
static void use_result(wr_step_state *h, const wr_fact_call *c)
{
  for (unsigned left = h->results; left; left &= left - 1) {
    int at = __builtin_ctz(left);
    const wr_result *r = &h->result[at];
    if (c->b - r->address < r->bytes || r->address - c->b < c->bytes) h->results &= ~(1U << at);
  }
}

/* What was set last served for nothing: `next` sets another, or follows where all is as it was. */
static weir_status add_turn(wr_fact_tables *tables, const wr_step_state *h, int64_t next)
{
  const int64_t v[] = {h->set, next, h->set_template, h->set_ns};
  return wr_fact_add(tables, WR_FACT_DEVICE_TURN, v);
}

static weir_status take_device(wr_fact_tables *tables, wr_step_state *h, const wr_common *t,
                               const wr_fact_call *c)
{
  weir_status st = h->set ? add_turn(tables, h, c->id) : WEIR_OK;
  if (!h->set) h->device_before = h->device;
  h->turns = h->set != 0;
  h->set = c->id, h->set_template = t->id, h->set_ns = c->duration;
  h->device = c->a + 1;
  return st;
}

/* Another call is the first after some that set the device. */
static weir_status end_turns(wr_fact_tables *tables, wr_step_state *h, const wr_fact_call *c)
{
  bool same = h->set && h->turns && h->device == h->device_before;
  weir_status st = same ? add_turn(tables, h, c->id) : WEIR_OK;
  h->set = 0;
  return st;
}

/* ---- numbers that the host waits for --------------------------------------------------------- */

/* A copy of a few bytes to the host: it waits by itself, or the thread's next call does. */
static void begin_scalar(wr_step_state *h, const wr_common *t, const wr_fact_call *c)
{
  bool waits = !(t->flags & WEIR_EVF_ASYNC) || t->flags & WEIR_EVF_IMPLICIT_SYNC;
  h->scalar = (wr_scalar){.event = c->id,
                          .template = t->id,
                          .duration = c->duration,
                          .end = waits ? c->time + c->duration : 0,
                          .stream = t->stream,
                          .launches = h->launches,
                          .again = h->again,
                          .crossed = h->crossed};
  h->launches = h->first = h->again = h->crossed = 0;
}

/* The host launches more, some time after it had the number. Where what comes first of a step came several times before,
 * the number is not asked for in each step. */
static weir_status end_scalar(wr_fact_tables *tables, wr_step_state *h, const wr_fact_call *c)
{
  const wr_scalar s = h->scalar;
  h->scalar.event = 0;
  if (!s.end || s.again != 1) return WEIR_OK;
  int64_t gap = s.stays ? 0 : c->time - s.end;
  const int64_t v[] = {s.event, s.wait, gap, s.template, s.duration, s.launches, s.crossed};
  return wr_fact_add(tables, WR_FACT_SCALAR_STEP, v);
}

/* A further wait, for a stream of which the thread has queued nothing since it had the number: it takes no time, and the first
 * one that follows a copy which waits by itself goes with the copy. Another one stays where the number is not copied, and the
 * host is then not further ahead. */
static void wait_again(wr_scalar *s, const wr_common *t, const wr_fact_call *c)
{
  bool nothing = !s->queued && t->copy == WEIR_SYNC_STREAM && t->stream == s->stream;
  if (!nothing) s->event = 0;
  s->stays |= s->wait || s->waited;
  s->waited = true;
  s->end = c->time + c->duration;
}

/* The wait for it. Where the host waits for more before it launches, it would do so without the number. */
static void wait_scalar(wr_step_state *h, const wr_common *t, const wr_fact_call *c)
{
  wr_scalar *s = &h->scalar;
  if (!t->asked || t->copy == WEIR_SYNC_STREAM_WAIT || !s->event) return;
  if (s->end) {
    wait_again(s, t, c);
    return;
  }
  s->wait = c->id, s->end = c->time + c->duration;
  s->duration += c->duration;
}

/* What a step can begin with. */
static void begin_step(wr_step_state *h, const wr_common *t)
{
  if (!h->first) h->first = t->id;
  h->again += h->first == t->id;
}

/* A larger copy between host and device: only an upload that the host does not wait for leaves the number. */
static void cross(wr_step_state *h, const wr_common *t)
{
  bool waits = !(t->flags & WEIR_EVF_ASYNC) || t->flags & WEIR_EVF_IMPLICIT_SYNC;
  h->crossed++;
  if (waits || t->what & WR_BACK || !h->scalar.end) h->scalar.event = 0;
  if (t->what & WR_UP) begin_step(h, t);
}

/* A call that queues something or waits. */
static weir_status see_scalar(wr_fact_tables *tables, wr_step_state *h, const wr_common *t,
                              const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  bool copy = t->kind == WEIR_EV_COPY, crosses = t->what & (WR_UP | WR_BACK);
  if (copy && t->what & WR_BACK && c->bytes <= WR_SCALAR_BYTES) {
    begin_scalar(h, t, c);
  } else if (t->kind == WEIR_EV_SYNC) {
    wait_scalar(h, t, c);
  } else if (t->kind == WEIR_EV_LAUNCH || t->kind == WEIR_EV_CALL) { /* or of a graph */
    if (h->scalar.event) st = end_scalar(tables, h, c);
    h->launches++;
    begin_step(h, t);
  } else {
    h->scalar.queued = true;
    if (copy && crosses) cross(h, t);
  }
  return st;
}

weir_status wr_step_see(wr_fact_tables *tables, wr_step_state *h, const wr_common *t,
                        const wr_fact_call *c)
{
  if (t->what & WR_SETS_DEVICE) return take_device(tables, h, t, c);
  weir_status st = end_turns(tables, h, c);
  if (!st && t->what & WR_ORDERS) st = see_scalar(tables, h, t, c);
  if (h->unwaited && t->what & WR_ORDERS) wait_result(h, t, c);
  bool moves = t->what & WR_IS_MOVE && !(t->what & WR_CAPTURED);
  if (!moves || t->kind != WEIR_EV_COPY || !(t->what & WR_SUCCEEDED)) return st;
  if (t->what & WR_FROM_HOST) use_result(h, c);
  bool back = t->what & WR_BACK && c->bytes >= WR_RESULT_BYTES;
  return back && !st ? take_result(tables, h, t, c) : st;
}
