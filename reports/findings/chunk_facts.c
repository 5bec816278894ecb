/* chunk_facts.c: see chunk_facts.h. A round that anything else is in is none. */
#include "reports/findings/chunk_facts.h"
#include "core/trace/event.h"
#include "reports/base/util.h"

enum { HOST_SPEED = 40 /* bytes a ns, that a host writes at most */ };

static bool is_host(int mem)
{
  return mem == WEIR_MEM_PINNED || mem == WEIR_MEM_PAGEABLE;
}

static bool is_upload(const wr_common *t)
{
  return t->kind == WEIR_EV_COPY && t->copy == WEIR_COPY_HTOD && is_host(t->src_mem);
}

static bool is_fetch(const wr_common *t)
{
  return t->kind == WEIR_EV_COPY && t->copy == WEIR_COPY_DTOH && is_host(t->mem);
}

/* Work of the device's, of which the host waits for none. */
static bool is_work(const wr_common *t)
{
  return t->launches_graph ||
         (t->device_work && (t->kind != WEIR_EV_COPY || t->copy == WEIR_COPY_DTOD));
}

static bool is_wait(const wr_common *t)
{
  return t->kind == WEIR_EV_SYNC && (t->copy == WEIR_SYNC_STREAM || t->copy == WEIR_SYNC_CONTEXT);
}

/* What is copied is no result of late. */
static bool is_new(const wr_chunk_state *x, const wr_fact_call *c)
{
  for (uint32_t i = 0; i < WR_CHUNK_RESULTS; i++) {
    const wr_chunk_result *r = &x->result[i];
    if (c->b - r->at < r->bytes || r->at - c->b < c->bytes) return false;
  }
  return true;
}

/* The copy begins another round of the same, of another chunk. */
static bool goes_on(const wr_chunk_state *x, const wr_common *t, const wr_fact_call *c)
{
  return x->phase == WR_CHUNK_FETCHED && t == x->first && c->b != x->source && is_new(x, c);
}

/* The host cannot have written the chunk since the last round. */
static bool is_quick(const wr_chunk_state *x, const wr_fact_call *c)
{
  return c->time - x->end < (int64_t)(c->bytes / HOST_SPEED);
}

static void begin_round(wr_chunk_state *x, const wr_common *t, const wr_fact_call *c)
{
  x->phase = WR_CHUNK_UPLOADED, x->first = t, x->event = c->id, x->source = c->b;
  x->up_ns = x->back_ns = 0, x->back = 0;
  x->up_bytes = x->back_bytes = 0;
  x->locked = true;
}

static weir_status see_upload(wr_fact_tables *tables, wr_chunk_state *x, const wr_common *t,
                              const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  bool within = x->phase == WR_CHUNK_UPLOADED && t->stream == x->first->stream;
  if (goes_on(x, t, c))
    st = wr_fact_add(tables, WR_FACT_CHUNK,
                     (const int64_t[]){x->event, x->back, t->id, x->up_ns, x->back_ns,
                                       (int64_t)x->up_bytes, (int64_t)x->back_bytes, x->locked,
                                       is_quick(x, c)});
  if (!within && c->bytes <= WR_SMALL_BYTES)
    x->phase = WR_CHUNK_NONE;
  else if (!within)
    begin_round(x, t, c);
  x->up_ns = wr_sum(x->up_ns, c->duration), x->up_bytes += c->bytes;
  x->locked &= t->src_mem == WEIR_MEM_PINNED;
  return st;
}

static void see_fetch(wr_chunk_state *x, const wr_common *t, const wr_fact_call *c)
{
  bool waits = t->flags & WEIR_EVF_IMPLICIT_SYNC;
  if (x->phase < WR_CHUNK_LAUNCHED || t->stream != x->first->stream) {
    x->phase = WR_CHUNK_NONE;
    return;
  }
  if (!x->back) x->back = c->id;
  x->phase = waits ? WR_CHUNK_FETCHED : WR_CHUNK_FETCHING;
  x->back_ns = wr_sum(x->back_ns, c->duration), x->back_bytes += c->bytes;
  x->locked &= t->mem == WEIR_MEM_PINNED;
  x->result[x->results++ % WR_CHUNK_RESULTS] = (wr_chunk_result){c->a, c->bytes};
}

weir_status wr_chunk_take(wr_fact_tables *tables, wr_chunk_state *x, const wr_common *t,
                          const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  bool own = x->phase != WR_CHUNK_NONE && t->stream == x->first->stream;
  if (is_upload(t)) {
    st = see_upload(tables, x, t, c);
  } else if (is_fetch(t)) {
    see_fetch(x, t, c);
  } else if (is_work(t) && own && x->phase <= WR_CHUNK_LAUNCHED) {
    x->phase = WR_CHUNK_LAUNCHED;
  } else if (is_wait(t) && x->phase >= WR_CHUNK_LAUNCHED) {
    x->back_ns = wr_sum(x->back_ns, c->duration);
    if (x->phase == WR_CHUNK_FETCHING) x->phase = WR_CHUNK_FETCHED;
  } else {
    x->phase = WR_CHUNK_NONE;
  }
  x->end = c->time + c->duration;
  return st;
}
