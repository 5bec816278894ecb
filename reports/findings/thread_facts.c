/* thread_facts.c: see thread_facts.h. */
#include "reports/findings/thread_facts.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

#define ADD(f, fact, ...) wr_fact_add((f)->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "finding facts of threads: out of host memory");
}

/* ---- rows of a matrix ------------------------------------------------------------------------ */

static weir_status add_held(wr_thread_facts *f, const wr_thread_state *h, const wr_held_call *row)
{
  return ADD(f, ROW_COPY, row->event, (int64_t)h->matrix, row->template, row->duration,
             (int64_t)h->bytes);
}

/* A matrix has a number from its fourth row on. */
static weir_status keep_row(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                            const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  wr_held_call row = {c->id, t->id, c->duration};
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

/* Copies at one stride, one behind the other, are the rows of a matrix. */
static weir_status see_row(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                           const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  if (c->bytes && c->bytes <= INT64_MAX) {
    bool alike =
        h->any && t->copy == h->copy && c->bytes == h->bytes && t->stream == h->stream &&
        (t->copy == WEIR_COPY_HTOD || t->copy == WEIR_COPY_DTOH || t->copy == WEIR_COPY_DTOD);
    int64_t da = (int64_t)(c->a - h->a), db = (int64_t)(c->b - h->b);
    bool goes_on = alike && h->steps && da == h->da && db == h->db;
    if (alike && as_far(da, c->bytes) && as_far(db, c->bytes)) {
      if (!goes_on) end_matrix(f, h);
      s = keep_row(f, h, t, c);
    }
    h->steps = h->any;
    h->da = da, h->db = db;
  }
  h->any = true;
  h->a = c->a, h->b = c->b, h->bytes = c->bytes, h->stream = t->stream, h->copy = t->copy;
  return s;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static weir_status end_wait(wr_thread_facts *f, wr_thread_state *h, const wr_fact_call *next)
{
  if (!h->ahead || !h->followed) return WEIR_OK;
  const int64_t v[] = {h->wait,          h->gap,           next ? next->time - h->wait_end : 0,
                       h->wait_template, h->wait_duration, h->shared};
  return next ? wr_fact_add(f->tables, WR_FACT_WAIT_AHEAD, v)
              : wr_fact_add_null(f->tables, WR_FACT_WAIT_AHEAD, v);
}

/* A copy that returns when all earlier work of its stream is complete. */
static bool waits_in_copy(const wr_common *t)
{
  bool whole =
      t->copy == WEIR_COPY_DTOH || (t->copy == WEIR_COPY_HTOD && !(t->flags & WEIR_EVF_ASYNC));
  return t->kind == WEIR_EV_COPY && whole &&
         (t->flags & (WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_CAPTURE | WEIR_EVF_STAGED)) ==
             WEIR_EVF_IMPLICIT_SYNC;
}

/* What the thread calls first behind its last wait. */
static weir_status follow_wait(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                               const wr_fact_call *c)
{
  bool copies_on =
           t->copy == WEIR_COPY_HTOD || t->copy == WEIR_COPY_DTOD || t->copy == WEIR_COPY_PTOP,
       waits = waits_in_copy(t);
  bool moves_on = t->kind == WEIR_EV_MEMSET || t->kind == WEIR_EV_LAUNCH ||
                  (t->kind == WEIR_EV_COPY && copies_on);
  h->followed = true;
  h->ahead = moves_on && !waits && !(t->flags & WEIR_EVF_CAPTURE);
  h->gap = c->time - h->wait_end;
  if (!waits) return WEIR_OK;
  return ADD(f, WAIT_COPY, h->wait, h->gap, c->id, h->wait_template, h->wait_duration, h->shared);
}

/* A wait, and what the host calls behind it. */
static weir_status see_order(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                             const wr_fact_call *c, bool shared)
{
  weir_status s = WEIR_OK;
  if (h->wait && !h->followed && t->kind != WEIR_EV_SYNC) s = follow_wait(f, h, t, c);
  if (s || (t->kind != WEIR_EV_SYNC && !waits_in_copy(t))) return s;
  s = end_wait(f, h, c);
  h->wait = t->kind == WEIR_EV_SYNC ? c->id : 0, h->wait_end = c->time + c->duration;
  h->wait_template = t->id, h->wait_duration = c->duration;
  h->ahead = h->followed = false;
  h->shared = shared;
  return s;
}

/* ---- a call ---------------------------------------------------------------------------------- */

weir_status wr_thread_take(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                           const wr_fact_call *c, bool shared)
{
  bool queue = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET || t->kind == WEIR_EV_LAUNCH ||
               t->kind == WEIR_EV_CALL;
  bool waits =
      t->kind == WEIR_EV_SYNC &&
      (t->copy == WEIR_SYNC_EVENT || t->copy == WEIR_SYNC_STREAM || t->copy == WEIR_SYNC_CONTEXT);
  weir_status s = WEIR_OK;
  if (queue && !(t->flags & (WEIR_EVF_CAPTURE | WEIR_EVF_BATCH))) s = see_row(f, h, t, c);
  return !s && (queue || waits) ? see_order(f, h, t, c, shared) : s;
}

weir_status wr_thread_end(wr_thread_facts *f, wr_thread_state *h)
{
  end_matrix(f, h);
  return end_wait(f, h, NULL);
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
