/* order_span.c: see order_span.h. Both questions are a pass over the operations of the span. */
#include "reports/findings/order_span.h"
#include <stdlib.h>
#include "reports/base/util.h"

/* The legacy default stream waits for a stream, or that for it. */
static bool is_legacy_order(const wr_span *s, uint32_t a, uint32_t b)
{
  return (s->stream[a].legacy && s->stream[b].blocking) ||
         (s->stream[b].legacy && s->stream[a].blocking);
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct clock { /* of each stream the operations that come before */
  uint32_t of[WR_SPAN_STREAMS];
} clock;

typedef struct order { /* by what is left out of it, or by nothing */
  wr_span_without without;
  clock stream[WR_SPAN_STREAMS], host, *event;
} order;

static void join(clock *to, const clock *from)
{
  for (int i = 0; i < WR_SPAN_STREAMS; i++)
    if (to->of[i] < from->of[i]) to->of[i] = from->of[i];
}

static bool has_all(const clock *c, const clock *of)
{
  int i = 0;
  while (i < WR_SPAN_STREAMS && c->of[i] >= of->of[i])
    i++;
  return i == WR_SPAN_STREAMS;
}

static void begin_operation(const wr_span *s, order *o, uint32_t stream)
{
  join(&o->stream[stream], &o->host);
  for (uint32_t i = 0; !o->without.legacy && i < s->streams; i++)
    if (i != stream && is_legacy_order(s, i, stream)) join(&o->stream[stream], &o->stream[i]);
}

static void order_host(const wr_span *s, order *o, const wr_span_op *p)
{
  if (p->kind == WR_SPAN_HOST_FOR_EVENT) join(&o->host, &o->event[p->slot]);
  if (p->kind == WR_SPAN_HOST_FOR_STREAM) {
    begin_operation(s, o, p->stream);
    join(&o->host, &o->stream[p->stream]);
  }
  for (uint32_t i = 0; p->kind == WR_SPAN_HOST_FOR_CONTEXT && i < s->streams; i++)
    if (s->stream[i].context == p->slot) join(&o->host, &o->stream[i]);
}

static void order_operation(const wr_span *s, order *o, const wr_span_op *p)
{
  clock *own = &o->stream[p->stream];
  if (p->kind > WR_SPAN_STREAM_WAITS) {
    order_host(s, o, p);
    return;
  }
  begin_operation(s, o, p->stream);
  if (p->kind == WR_SPAN_WORK) own->of[p->stream]++;
  if (p->kind == WR_SPAN_RECORD) o->event[p->slot] = *own;
  if (p->kind == WR_SPAN_STREAM_WAITS && !(o->without.places >> p->place & 1))
    join(own, &o->event[p->slot]);
}

/* What work shares blocks with and came before, does so still. `last`: of a block, the last operation of each stream that
 * names it. */
static bool keeps_order(const wr_span *s, const order *now, order *other, clock *last,
                        const wr_span_op *p)
{
  const clock *own = &now->stream[p->stream];
  clock *left = &other->stream[p->stream];
  for (uint32_t k = 0; k < p->named; k++) {
    clock *of = &last[s->named[p->first + k]];
    for (uint32_t i = 0; i < s->streams; i++) {
      if (i == p->stream || own->of[i] < of->of[i] || left->of[i] >= of->of[i]) continue;
      if (!other->without.legacy) return false;
      left->of[i] = of->of[i]; /* an event would have it wait */
    }
    of->of[p->stream] = own->of[p->stream];
  }
  return true;
}

static bool keeps_orders(const wr_span *s, order *now, order *other, clock *last)
{
  bool kept = true;
  for (size_t i = 0; kept && i < s->ops; i++) {
    const wr_span_op *p = &s->op[i];
    order_operation(s, now, p);
    order_operation(s, other, p);
    if (p->kind == WR_SPAN_WORK) kept = keeps_order(s, now, other, last, p);
    if (p->kind == WR_SPAN_WORK && p->waits) {
      join(&now->host, &now->stream[p->stream]);
      join(&other->host, &other->stream[p->stream]);
    }
    kept = kept && has_all(&other->host, &now->host);
  }
  return kept;
}

bool wr_span_holds(const wr_span *s, wr_span_without without)
{
  order *both = calloc(2, sizeof(*both));
  clock *events = calloc((size_t)2 * s->events + 1, sizeof(*events)),
        *last = calloc((size_t)s->blocks + 1, sizeof(*last));
  bool holds = both && events && last;
  if (holds) {
    both[0].event = events, both[1].event = events + s->events;
    both[1].without = without;
    holds = keeps_orders(s, &both[0], &both[1], last);
  }
  free(both);
  free(events);
  free(last);
  return holds;
}

/* ---- time ------------------------------------------------------------------------------------ */

enum {
  GAPS = 8,
  CALL_NS =
      2000 /* of the host, that a call takes which queues something: more is Weir's, or a wait */
};

typedef struct gap {
  int64_t from, until;
} gap;

typedef struct engine { /* free from `free` on, and in the last gaps before */
  int64_t free;
  gap gap[GAPS];
  uint32_t gaps;
} engine;

typedef struct timeline {
  wr_span_without without;
  int64_t stream[WR_SPAN_STREAMS], host, last; /* last: when the last of all is complete */
  int64_t *event;
  int64_t (
      *block)[WR_SPAN_STREAMS]; /* when each stream's last operation that names it is complete */
  engine engine[WR_SPAN_DEVICES * WR_SPAN_ENGINES];
} timeline;

/* Puts an operation where the engine is free first. Returns when it ends. */
static int64_t occupy(engine *e, int64_t ready, int64_t ns)
{
  for (uint32_t i = 0; i < GAPS; i++) {
    gap *g = &e->gap[i];
    int64_t from = g->from > ready ? g->from : ready;
    if (g->until - from < ns || g->until <= from) continue;
    g->from = wr_sum(from, ns);
    return g->from;
  }
  if (ready > e->free) e->gap[e->gaps++ % GAPS] = (gap){e->free, ready};
  e->free = wr_sum(ready > e->free ? ready : e->free, ns);
  return e->free;
}

static int64_t latest_ns(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static int64_t call_ns(const wr_span_op *p)
{
  return p->ns < CALL_NS ? p->ns : CALL_NS;
}

/* When a stream can begin with what is queued now. */
static int64_t time_of_stream(const wr_span *s, const timeline *t, uint32_t stream)
{
  int64_t at = t->stream[stream];
  for (uint32_t i = 0; !t->without.legacy && i < s->streams; i++)
    if (i != stream && is_legacy_order(s, i, stream)) at = latest_ns(at, t->stream[i]);
  return at;
}

static void time_work(const wr_span *s, timeline *t, const wr_span_op *p)
{
  int64_t ready = latest_ns(time_of_stream(s, t, p->stream), t->host);
  for (uint32_t k = 0; t->without.legacy && k < p->named; k++)
    for (uint32_t i = 0; i < s->streams; i++)
      ready = latest_ns(ready, t->block[s->named[p->first + k]][i]);
  int64_t end = occupy(&t->engine[p->engine], ready, p->device_ns);
  t->stream[p->stream] = end, t->last = latest_ns(t->last, end);
  for (uint32_t k = 0; t->without.legacy && k < p->named; k++)
    t->block[s->named[p->first + k]][p->stream] = end;
  t->host = p->waits ? latest_ns(t->host, end) : wr_sum(t->host, call_ns(p));
}

static void time_host(const wr_span *s, timeline *t, const wr_span_op *p)
{
  t->host = wr_sum(t->host, call_ns(p));
  if (p->kind == WR_SPAN_HOST_FOR_EVENT) t->host = latest_ns(t->host, t->event[p->slot]);
  if (p->kind == WR_SPAN_HOST_FOR_STREAM)
    t->host = latest_ns(t->host, time_of_stream(s, t, p->stream));
  for (uint32_t i = 0; p->kind == WR_SPAN_HOST_FOR_CONTEXT && i < s->streams; i++)
    if (s->stream[i].context == p->slot) t->host = latest_ns(t->host, t->stream[i]);
}

static void time_operation(const wr_span *s, timeline *t, const wr_span_op *p)
{
  if (p->kind == WR_SPAN_WORK) {
    time_work(s, t, p);
  } else if (p->kind > WR_SPAN_STREAM_WAITS) {
    time_host(s, t, p);
  } else {
    t->host = wr_sum(t->host, call_ns(p));
    int64_t at = time_of_stream(s, t, p->stream);
    if (p->kind == WR_SPAN_RECORD)
      t->event[p->slot] = at;
    else if (!(t->without.places >> p->place & 1))
      t->stream[p->stream] = latest_ns(at, t->event[p->slot]);
  }
}

int64_t wr_span_time(const wr_span *s, wr_span_without without)
{
  timeline *t = calloc(1, sizeof(*t));
  int64_t *events = calloc((size_t)s->events + 1, sizeof(*events)), end = -1, ended = 0;
  int64_t(*blocks)[WR_SPAN_STREAMS] = calloc((size_t)s->blocks + 1, sizeof(*blocks));
  if (t && events && blocks) {
    t->without = without, t->event = events, t->block = blocks;
    for (size_t i = 0; i < s->ops; i++) {
      const wr_span_op *p = &s->op[i];
      if (i && p->start > ended) t->host = wr_sum(t->host, p->start - ended);
      ended = p->start + p->ns;
      time_operation(s, t, p);
    }
    end = latest_ns(t->host, t->last);
  }
  free(t);
  free(events);
  free(blocks);
  return end;
}
