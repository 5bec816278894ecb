/* thread_facts.c: see thread_facts.h. */
#include "reports/findings/thread_facts.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum {
  LARGE_BYTES = 1 << 20, /* of a large copy, at least */
  ROWS_OF_A_MATRIX = 8,  /* copies at one stride: what they waste is another fact */
  SMALL_GAP_NS = 50000,  /* from a small copy to the next: fewer */
  LEAST_PAGEABLE =
      4096, /* bytes of a copy of pageable memory to the host, which waits however small it is */
  SLOW_NS = 20000,  /* of a call that keeps the host: at least */
  SLOWEST_COPY = 4, /* bytes a ns: what a copy takes beyond that it has waited */
  BRIEF_PART = 16   /* of the time before it: a wait below that is brief */
};

/* `in_thread` of a template. */
enum {
  LARGE = 1 << 0, /* a large copy, if it has as many bytes */
  QUEUES =
      1
      << 1, /* it queues something: neither captured, nor a further one of a batch; see WR_THREAD_LAUNCHES */
  STRIDED = 1 << 2,     /* that may be a row of a matrix */
  ALONE = 1 << 3,       /* it queues something or waits; as QUEUES */
  GAPS = 1 << 4,        /* it may end or begin a gap; see WR_THREAD_ENDS_GAP */
  MAY_WAIT = 1 << 5,    /* the host waits in it, or may */
  MOVES = 1 << 6,       /* copy or memset */
  PAGEABLE = 1 << 7,    /* asynchronous copy of pageable memory */
  HIDES = 1 << 8,       /* it may wait, and is neither a copy nor a wait */
  TURNS = 1 << 9,       /* copy, free or wait, that is no further one of a batch; see there */
  BLOCKING = 1 << 10,   /* synchronous copy of page-locked memory to a device, of those */
  ORDERS = 1 << 11,     /* it queues something, or is a wait that was asked for */
  COPY_WAITS = 1 << 12, /* a copy that returns when all earlier work of its stream is done */
  WAITS = 1 << 13,      /* that, or a wait */
  FREE_WAITS = 1 << 14, /* a free that would wait where the wait before it did not */
  GOES_ON = 1 << 15     /* work that does not wait by itself */
};

#define ADD(f, fact, ...) wr_fact_add((f)->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "finding facts of threads: out of host memory");
}

static wr_held_call held_call(const wr_common *t, const wr_fact_call *c)
{
  return (wr_held_call){c->id, t->id, c->duration, (int64_t)c->bytes};
}

/* ---- rows of a matrix ------------------------------------------------------------------------ */

static weir_status add_held(wr_thread_facts *f, const wr_thread_state *h, const wr_held_call *row)
{
  return ADD(f, ROW_COPY, row->event, (int64_t)h->matrix, row->template, row->duration, row->bytes);
}

/* A matrix has a number from its fourth row on. */
static weir_status keep_row(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                            const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  wr_held_call row = held_call(t, c);
  if (h->rows < WR_LEAST_ROWS) h->held[h->rows] = row;
  if (++h->rows > WR_LEAST_ROWS) return add_held(f, h, &row);
  if (h->rows < WR_LEAST_ROWS) return s;
  if (!wr_grow(&f->matrix, &f->matrix_capacity, f->matrices + 1, sizeof(*f->matrix)))
    return out_of_memory();
  h->matrix = f->matrices++;
  for (int i = 0; !s && i < WR_LEAST_ROWS; i++)
    s = add_held(f, h, &h->held[i]);
  return s;
}

static void end_matrix(wr_thread_facts *f, wr_thread_state *h)
{
  if (h->rows >= WR_LEAST_ROWS) f->matrix[h->matrix] = h->rows;
  h->rows = 0;
}

static bool as_far(int64_t d, uint64_t bytes)
{
  uint64_t far = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
  return far >= bytes;
}

/* Copies at one stride, one after the other, are the rows of a matrix. */
static weir_status see_row(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                           const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  int64_t da = (int64_t)(c->a - h->a), db = (int64_t)(c->b - h->b);
  if (!(t->in_thread & STRIDED)) {
    h->any = false;
    return s;
  }
  if (c->bytes && c->bytes <= INT64_MAX) {
    bool alike = h->any && t->copy == h->copy && c->bytes == h->bytes && t->stream == h->stream;
    if (alike && as_far(da, c->bytes) && as_far(db, c->bytes)) {
      if (!h->steps || da != h->da || db != h->db) end_matrix(f, h);
      s = keep_row(f, h, t, c);
    }
    h->steps = h->any;
    h->da = da, h->db = db;
  }
  h->any = true;
  h->a = c->a, h->b = c->b, h->bytes = c->bytes, h->stream = t->stream, h->copy = t->copy;
  return s;
}

/* ---- small copies ---------------------------------------------------------------------------- */

static weir_status add_small(wr_thread_facts *f, const wr_held_call *x)
{
  return ADD(f, SMALL_COPY, x->event, x->template, x->duration, x->bytes);
}

/* The copy has one like it right before it. */
static weir_status keep_small(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                              const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  wr_held_call x = held_call(t, c);
  if (++h->smalls > WR_LEAST_SMALL) return add_small(f, &x);
  h->small[h->small_count++] = x;
  if (h->smalls < WR_LEAST_SMALL) return s;
  for (size_t i = 0; !s && i < h->small_count; i++)
    s = add_small(f, &h->small[i]);
  return s;
}

/* Copies of one direction, each shortly after the one before it, with no call between that queues
 * something or waits. */
static weir_status see_small(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                             const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  bool copy = t->kind == WEIR_EV_COPY;
  if (copy && c->bytes && c->bytes <= WR_SMALL_BYTES && h->rows < ROWS_OF_A_MATRIX) {
    if (h->copied && h->copied_to == t->copy && h->copied_of <= WR_SMALL_BYTES &&
        c->time - h->copied_at < SMALL_GAP_NS)
      s = keep_small(f, h, t, c);
    else
      h->smalls = 1, h->small_count = 0;
  }
  h->copied = copy;
  if (!copy) return s;
  h->copied_to = t->copy;
  h->copied_of = c->bytes, h->copied_at = c->time + c->duration;
  return s;
}

/* ---- runs of small copies or memsets ----------------------------------------------------------- */

/* As many as make them small copies (above) are that, and no run. */
static weir_status end_run(wr_thread_facts *f, wr_run *r)
{
  const wr_run x = *r;
  *r = (wr_run){0};
  bool copies = x.copy && x.moves >= WR_LEAST_SMALL;
  if (x.moves < WR_LEAST_RUN || copies || x.rows) return WEIR_OK;
  return ADD(f, SHORT_RUN, x.first, x.last, x.template, x.moves, x.ns, x.bytes);
}

/* The next call that queues something or waits. */
static weir_status see_run(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                           const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  wr_run *r = &h->run;
  bool copy = t->kind == WEIR_EV_COPY, set = t->kind == WEIR_EV_MEMSET;
  bool crosses = copy && (t->copy == WEIR_COPY_HTOD || t->copy == WEIR_COPY_DTOH);
  bool small = (crosses || set) && c->bytes && c->bytes <= WR_SMALL_BYTES;
  int what = small ? t->kind << 8 | (copy ? t->copy : 0) : 0;
  bool goes_on =
      what && what == r->what && t->stream == r->stream && c->time - r->end < SMALL_GAP_NS;
  if (!goes_on && r->moves) s = end_run(f, r);
  if (!small || s) {
    r->what = 0;
    return s;
  }
  if (!r->moves++) {
    r->first = c->id, r->template = t->id, r->what = what, r->stream = t->stream, r->copy = copy;
  } else {
    r->ns = wr_sum(r->ns, c->duration), r->bytes = wr_sum(r->bytes, (int64_t)c->bytes);
  }
  r->last = c->id, r->end = c->time + c->duration;
  r->rows |= copy && h->rows >= ROWS_OF_A_MATRIX;
  return s;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

static bool is_open(const wr_thread_state *h, wr_gap_fact which)
{
  return h->gap_row[which].open;
}

/* Of one that is open. */
static weir_status close_gap(wr_thread_facts *f, wr_thread_state *h, wr_gap_fact which,
                             const wr_fact_call *next)
{
  static const wr_fact facts[WR_GAP_FACTS] = {WR_FACT_PAGEABLE_COPY, WR_FACT_BLOCKING_COPY,
                                              WR_FACT_HIDDEN_WAIT};
  wr_gap_row *row = &h->gap_row[which];
  const wr_held_call *x = &row->call;
  row->open = false;
  const int64_t v[] = {x->event, next ? next->time - row->end : 0, x->template, x->duration,
                       x->bytes};
  return wr_fact_add_either(f->tables, facts[which], v, !next);
}

static void open_gap(wr_thread_state *h, wr_gap_fact which, const wr_common *t,
                     const wr_fact_call *c)
{
  h->gap_row[which] =
      (wr_gap_row){.open = true, .end = c->time + c->duration, .call = held_call(t, c)};
}

/* Calls that keep the thread, and how long it then goes on by itself. */
static weir_status see_gaps(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                            const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  unsigned in = t->in_thread;
  bool waited = in & MAY_WAIT && (!(in & MOVES) || c->bytes); /* a call of `wait_detail` */
  bool large = c->bytes > WR_SMALL_BYTES, slow = c->duration >= SLOW_NS;
  if (waited && is_open(h, WR_GAP_HIDDEN_WAIT)) s = close_gap(f, h, WR_GAP_HIDDEN_WAIT, c);
  if (!s && in & (MAY_WAIT | PAGEABLE) && is_open(h, WR_GAP_PAGEABLE_COPY))
    s = close_gap(f, h, WR_GAP_PAGEABLE_COPY, c);
  bool back = t->copy == WEIR_COPY_DTOH && c->bytes >= LEAST_PAGEABLE;
  if (in & PAGEABLE && (large || back)) open_gap(h, WR_GAP_PAGEABLE_COPY, t, c);
  if (in & HIDES && waited && slow) open_gap(h, WR_GAP_HIDDEN_WAIT, t, c);
  if (s || !(in & TURNS)) return s;
  if (is_open(h, WR_GAP_BLOCKING_COPY)) s = close_gap(f, h, WR_GAP_BLOCKING_COPY, c);
  if (in & BLOCKING && large && slow) open_gap(h, WR_GAP_BLOCKING_COPY, t, c);
  return s;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* What the thread waits in the call, of a copy no more than what moving its bytes does not explain. */
static int64_t waited_in(const wr_common *t, const wr_fact_call *c)
{
  int64_t copying = t->kind == WEIR_EV_COPY ? (int64_t)(c->bytes / SLOWEST_COPY) : 0;
  return c->duration - copying;
}

/* ns after the last wait in which the host could have been ahead, had it not waited. Where the next wait takes time, the
 * device has more to do than the host: what that did after it had queued the last of it gains nothing. Another device's
 * work could have gone on meanwhile: *shared_ns, the time of the next wait that is then this one's, too. */
static int64_t host_ahead(const wr_thread_state *h, const wr_common *t, const wr_fact_call *next,
                          int64_t own_ns, int64_t *shared_ns)
{
  int64_t until = next->time - h->wait_end;
  bool other = t->kind == WEIR_EV_SYNC && !h->brings && h->wait_device >= 0 && t->own_device >= 0 &&
               t->own_device != h->wait_device;
  if (other) {
    *shared_ns = wr_least(own_ns, next->duration);
    return until + *shared_ns;
  }
  int64_t waited = waited_in(t, next);
  return waited < SLOW_NS || waited < until / BRIEF_PART ? until : h->queued_end - h->wait_end;
}

/* `next`: the thread's next wait or copy that waits, of template `t`; NULL: none. */
static weir_status end_wait(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                            const wr_fact_call *next)
{
  int64_t own_ns = h->wait_duration - h->wait_shared, gain = own_ns;
  h->wait_shared = 0;
  if (!h->ahead || !h->followed) return WEIR_OK;
  if (next) gain = wr_least(own_ns, host_ahead(h, t, next, own_ns, &h->wait_shared));
  return ADD(f, WAIT_AHEAD, h->wait, h->gap, gain, h->wait_template, h->wait_duration, h->shared);
}

/* What the thread calls first after its last wait. */
static weir_status follow_wait(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                               const wr_fact_call *c)
{
  h->followed = true;
  h->ahead = t->in_thread & GOES_ON;
  h->gap = c->time - h->wait_end;
  if (!(t->in_thread & COPY_WAITS)) return WEIR_OK;
  return ADD(f, WAIT_COPY, h->wait, h->gap, c->id, h->wait_template, h->wait_duration, h->shared,
             t->id, c->duration, (int64_t)c->bytes);
}

/* A copy to the host that waits, after which the host is by itself for a while before it queues more. */
static weir_status see_result(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                              const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  const wr_held_call x = h->result;
  int64_t gap = c->time - h->result_end;
  h->result.event = 0;
  if (x.event && t->in_thread & QUEUES && gap >= SMALL_GAP_NS)
    s = ADD(f, RESULT_COPY, x.event, gap, x.template, x.duration);
  if (!(t->in_thread & COPY_WAITS) || t->copy != WEIR_COPY_DTOH) return s;
  h->result = held_call(t, c);
  h->result_end = c->time + c->duration;
  return s;
}

/* A wait, and what the host calls after it. */
static weir_status see_order(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                             const wr_fact_call *c, bool shared)
{
  weir_status s = WEIR_OK;
  if (h->wait && !h->followed && t->kind != WEIR_EV_SYNC) s = follow_wait(f, h, t, c);
  if (s || !(t->in_thread & WAITS)) {
    h->queued_end = c->time + c->duration;
    h->queues_back |= (t->copy == WEIR_COPY_DTOH && t->kind == WEIR_EV_COPY) || t->launches_graph;
    return s;
  }
  s = end_wait(f, h, t, c);
  h->wait = t->kind == WEIR_EV_SYNC ? c->id : 0;
  h->wait_end = h->queued_end = c->time + c->duration;
  h->wait_template = t->id, h->wait_duration = c->duration, h->wait_device = t->own_device;
  h->brings = h->queues_back, h->queues_back = false;
  h->ahead = h->followed = false;
  h->shared = shared;
  return s;
}

/* ---- what a call is -------------------------------------------------------------------------- */

/* As what it may end or begin gaps. */
static unsigned kind_for_gaps(const wr_common *t)
{
  bool copy = t->kind == WEIR_EV_COPY, sync = t->kind == WEIR_EV_SYNC;
  bool async = t->flags & WEIR_EVF_ASYNC, frees = t->kind == WEIR_EV_FREE;
  bool moves = copy || t->kind == WEIR_EV_MEMSET;
  bool implied = (frees || moves) && t->flags & WEIR_EVF_IMPLICIT_SYNC;
  bool crosses = copy && (t->copy == WEIR_COPY_HTOD || t->copy == WEIR_COPY_DTOH);
  bool pageable = t->mem == WEIR_MEM_PAGEABLE || t->src_mem == WEIR_MEM_PAGEABLE;
  unsigned in = moves ? MOVES : 0;
  if (sync ? t->asked : implied) in |= MAY_WAIT;
  if (crosses && async && pageable) in |= PAGEABLE;
  if (implied && !copy) in |= HIDES;
  if ((copy || frees || sync) && !(t->flags & WEIR_EVF_BATCH)) in |= TURNS;
  if (crosses && t->copy == WEIR_COPY_HTOD && !async && t->src_mem == WEIR_MEM_PINNED)
    in |= BLOCKING;
  return in & (MAY_WAIT | PAGEABLE | TURNS) ? in | GAPS : in;
}

static bool copy_waits(const wr_common *t)
{
  const int64_t flags = WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_CAPTURE | WEIR_EVF_STAGED;
  bool whole =
      t->copy == WEIR_COPY_DTOH || (t->copy == WEIR_COPY_HTOD && !(t->flags & WEIR_EVF_ASYNC));
  return t->kind == WEIR_EV_COPY && whole && (t->flags & flags) == WEIR_EVF_IMPLICIT_SYNC;
}

uint16_t wr_thread_kind(const wr_common *t)
{
  bool copy = t->kind == WEIR_EV_COPY, sync = t->kind == WEIR_EV_SYNC;
  bool queue = t->device_work || t->kind == WEIR_EV_CALL;
  bool captured = t->flags & WEIR_EVF_CAPTURE;
  bool alone = !captured && !(t->flags & WEIR_EVF_BATCH), waits = copy_waits(t);
  bool up = t->copy == WEIR_COPY_HTOD, back = t->copy == WEIR_COPY_DTOH;
  bool across = t->copy == WEIR_COPY_DTOD, peers = t->copy == WEIR_COPY_PTOP;
  unsigned in = captured ? 0 : kind_for_gaps(t);
  if (alone && copy && (up || back || peers) && !(t->flags & WEIR_EVF_STAGED)) in |= LARGE;
  if (alone && queue) in |= QUEUES;
  if (up || back || across) in |= STRIDED;
  if (alone && (queue || sync)) in |= ALONE;
  if ((queue && !t->makes_graph) || t->asked) in |= ORDERS;
  if (waits) in |= COPY_WAITS;
  if (waits || sync) in |= WAITS;
  if (t->kind == WEIR_EV_FREE && !(t->flags & WEIR_EVF_ASYNC) && !captured) in |= FREE_WAITS;
  if (!captured && !waits && t->device_work && (!copy || up || across || peers)) in |= GOES_ON;
  if (t->launches_graph) in |= GOES_ON;
  return (uint16_t)in;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* Other threads may have work in what is waited for: the thread's own is counted. */
static weir_status see_own_work(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                                const wr_fact_call *c)
{
  int64_t queued = h->queued;
  if (t->copy != WEIR_SYNC_STREAM && t->copy != WEIR_SYNC_CONTEXT) return WEIR_OK;
  h->queued = 0;
  return queued ? ADD(f, OWN_WORK, c->id, t->id, c->duration, queued) : WEIR_OK;
}

weir_status wr_thread_take(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                           const wr_fact_call *c, bool shared)
{
  unsigned in = t->in_thread;
  weir_status s = WEIR_OK;
  if (in & LARGE && c->bytes >= LARGE_BYTES)
    s = ADD(f, LARGE_COPY, c->id, t->id, c->duration, (int64_t)c->bytes);
  if (!s && in & QUEUES) s = see_row(f, h, t, c);
  if (!s && in & ALONE) s = see_small(f, h, t, c);
  if (!s && in & ALONE) s = see_run(f, h, t, c);
  if (!s && in & GAPS) s = see_gaps(f, h, t, c);
  if (in & FREE_WAITS) h->followed = true;
  if (!s && t->asked) s = see_own_work(f, h, t, c);
  if (!s && in & ORDERS) s = see_result(f, h, t, c);
  return !s && in & ORDERS ? see_order(f, h, t, c, shared) : s;
}

weir_status wr_thread_end(wr_thread_facts *f, wr_thread_state *h)
{
  weir_status s = WEIR_OK;
  end_matrix(f, h);
  s = end_run(f, &h->run);
  for (int i = 0; !s && i < WR_GAP_FACTS; i++)
    if (is_open(h, (wr_gap_fact)i)) s = close_gap(f, h, (wr_gap_fact)i, NULL);
  return s ? s : end_wait(f, h, NULL, NULL);
}

weir_status wr_thread_facts_end(wr_thread_facts *f)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < f->matrices; i++)
    s = ADD(f, ROW_MATRIX, (int64_t)i, (int64_t)f->matrix[i]);
  return s;
}

void wr_thread_facts_free(wr_thread_facts *f)
{
  free(f->matrix);
  *f = (wr_thread_facts){.tables = f->tables};
}
