/* copy_times.c: see copy_times.h. The walk over the events keeps the copies and the waits; which wait covers which copies
 * follows from `wait_detail` once all are there. */
#include "reports/findings/copy_times.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum {
  MOST = 1 << 20, /* copies, and waits: of what comes later nothing is known */
  LINK = 25,      /* bytes a ns, where none were measured */
  LARGE = 65536   /* bytes, of fewer what each copy takes by itself would count */
};

/* Copies of one stream that no wait has covered yet. */
typedef struct wr_copy_stream {
  int64_t process;
  uint32_t first, last; /* places from 1; 0 none */
} wr_copy_stream;

static weir_status no_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "what copies take: out of host memory");
}

void wr_copy_times_close(wr_copy_times *x)
{
  free(x->copy);
  free(x->wait);
  free(x->pace);
  free(x->stream);
  free(x->of_copy);
  hash_map_free(&x->by_id);
  hash_map_free(&x->by_pace);
  hash_map_free(&x->by_stream);
  *x = (wr_copy_times){0};
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_transfer(const wr_template *t)
{
  return t->kind == WEIR_EV_COPY && (t->copy == WEIR_COPY_HTOD || t->copy == WEIR_COPY_DTOH);
}

static bool is_behind_its_call(const wr_template *t)
{
  int64_t host = t->copy == WEIR_COPY_HTOD ? t->src_mem : t->mem;
  return is_transfer(t) && host == WEIR_MEM_PINNED && t->flags & WEIR_EVF_ASYNC &&
         !(t->flags & (WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_STAGED));
}

/* Pageable memory is slower. False: out of memory. */
static bool find_pace(wr_copy_times *x, const wr_template *t, uint32_t *out)
{
  bool added, up = t->copy == WEIR_COPY_HTOD;
  uint64_t key = hash_mix(hash_mix(71, (uint64_t)t->process), (uint64_t)t->copy);
  key = hash_mix(hash_mix(key, (uint64_t)(up ? t->src_mem : t->mem)),
                 (uint64_t)(up ? t->device : t->src_device));
  uint64_t *at = hash_map_place(&x->by_pace, key, &added);
  if (!at || !wr_grow(&x->pace, &x->pace_capacity, x->paces + 1, sizeof(*x->pace))) return false;
  if (added) x->pace[ *at = x->paces++] = (wr_copy_pace){0};
  *out = (uint32_t)*at;
  return true;
}

static uint64_t stream_key(int64_t process, uint64_t stream)
{
  return hash_mix(hash_mix(72, (uint64_t)process), stream);
}

static bool keep_copy(wr_copy_times *x, const wr_event *e)
{
  uint32_t pace;
  if (x->copies == MOST) return true;
  if (!find_pace(x, e->t, &pace) ||
      !wr_grow(&x->copy, &x->copy_capacity, x->copies + 1, sizeof(*x->copy)) ||
      !wr_grow(&x->of_copy, &x->keys_capacity, x->copies + 1, sizeof(*x->of_copy)))
    return false;
  bool added;
  uint64_t key = stream_key(e->t->process, (uint64_t)e->t->stream);
  uint64_t *at = hash_map_place(&x->by_stream, key, &added);
  if (!at || !wr_grow(&x->stream, &x->stream_capacity, x->streams + 1, sizeof(*x->stream)))
    return false;
  if (added) x->stream[ *at = x->streams++] = (wr_copy_stream){.process = e->t->process};
  x->of_copy[x->copies] = *at;
  x->copy[x->copies++] = (wr_copy_time){.id = e->id,
                                        .start = e->start,
                                        .duration = e->ns,
                                        .bytes = e->bytes,
                                        .pace = pace,
                                        .thread = (uint32_t)e->t->thread,
                                        .up = e->t->copy == WEIR_COPY_HTOD};
  return !hash_map_put(&x->by_id, (uint64_t)e->id, x->copies);
}

static bool keep_wait(wr_copy_times *x, const wr_event *e)
{
  uint32_t pace = 0;
  bool transfer = is_transfer(e->t);
  if (x->waits == MOST) return true;
  if ((transfer && !find_pace(x, e->t, &pace)) ||
      !wr_grow(&x->wait, &x->wait_capacity, x->waits + 1, sizeof(*x->wait)))
    return false;
  x->wait[x->waits++] = (wr_covering_wait){.id = e->id,
                                           .start = e->start,
                                           .ns = e->ns,
                                           .process = e->t->process,
                                           .bytes = transfer ? e->bytes : 0,
                                           .pace = transfer ? pace + 1 : 0,
                                           .thread = (uint32_t)e->t->thread};
  return true;
}

weir_status wr_copy_times_take(wr_copy_times *x, const wr_event events[], size_t count)
{
  bool good = true;
  for (size_t i = 0; good && i < count; i++) {
    const wr_template *t = events[i].t;
    if (!t->done) continue;
    if (is_behind_its_call(t))
      good = keep_copy(x, &events[i]);
    else if (t->asked || t->implicit)
      good = keep_wait(x, &events[i]);
  }
  return good ? WEIR_OK : no_memory();
}

/* ---- which wait covers what ------------------------------------------------------------------ */

static void take_pace(double *per_ns, uint64_t bytes, int64_t ns)
{
  double now = ns > 0 && bytes >= LARGE ? (double)bytes / (double)ns : 0;
  if (now > *per_ns) *per_ns = now;
}

/* Copies that began before the wait; of its own thread, those up to the last operation that it waits for. Returns how many. */
static uint64_t take_covered(wr_copy_times *x, wr_copy_stream *s, uint32_t wait, int64_t youngest)
{
  const wr_covering_wait *w = &x->wait[wait];
  uint64_t covered = 0;
  for (; s->first; covered++) {
    wr_copy_time *c = &x->copy[s->first - 1];
    if (c->thread == w->thread && c->id > youngest) return covered;
    s->first = c->next;
    c->wait = wait + 1;
    wr_copy_pace *p = &x->pace[c->pace];
    if (!p->bytes) p->first = c->start;
    p->bytes += c->bytes;
  }
  return covered;
}

/* All that it covers was copied by its end. */
static void end_wait(wr_copy_times *x, const wr_covering_wait *w, bool alone)
{
  for (size_t i = 0; i < x->paces; i++) {
    wr_copy_pace *p = &x->pace[i];
    const int64_t ns = w->start + w->ns - p->first;
    if (p->bytes) take_pace(alone ? &p->per_ns : &p->least, p->bytes, ns);
    p->bytes = 0;
  }
}

static void judge_wait(wr_copy_times *x, uint32_t at, const wr_wait_row *row)
{
  const wr_covering_wait *w = &x->wait[at];
  uint64_t covered = 0;
  if (!row->pending) {
    if (w->pace) take_pace(&x->pace[w->pace - 1].per_ns, w->bytes, w->ns);
    return;
  }
  const uint64_t *one = hash_map_get(&x->by_stream, stream_key(w->process, row->stream));
  if (row->streams == 1 && one) covered = take_covered(x, &x->stream[*one], at, row->other);
  for (size_t i = 0; row->streams > 1 && i < x->streams; i++)
    if (x->stream[i].process == w->process)
      covered += take_covered(x, &x->stream[i], at, row->other);
  if (covered) end_wait(x, w, covered == row->operations && !w->pace);
}

/* A copy is queued. */
static void queue_copy(wr_copy_times *x, size_t at)
{
  wr_copy_stream *s = &x->stream[x->of_copy[at]];
  if (s->first)
    x->copy[s->last - 1].next = (uint32_t)at + 1;
  else
    s->first = (uint32_t)at + 1;
  s->last = (uint32_t)at + 1;
}

static void cover_all(wr_copy_times *x, wr_case *c)
{
  size_t queued = 0;
  for (size_t i = 0; !c->status && i < x->waits; i++) {
    while (queued < x->copies && x->copy[queued].start < x->wait[i].start)
      queue_copy(x, queued++);
    const wr_wait_row *row = wr_case_wait(c, x->wait[i].id);
    if (row && row->known) judge_wait(x, (uint32_t)i, row);
  }
}

/* What the run gains without a wait, as the fact has it. */
static void find_wait_gains(wr_copy_times *x, wr_case *c)
{
  hash_map by_id = {0};
  for (size_t i = 0; !c->status && i < x->waits; i++)
    c->status = hash_map_put(&by_id, (uint64_t)x->wait[i].id, i);
  WR_EACH(c, WAIT_AHEAD, wait_ahead, a)
  {
    const uint64_t *at = hash_map_get(&by_id, (uint64_t)a->event);
    if (at) x->wait[*at].gain = wr_least(a->gain, x->wait[*at].ns);
  }
  hash_map_free(&by_id);
  wr_pack_reader_free(&c->reader);
}

/* Bytes a ns; 0: not known. */
static double pace_of(const wr_copy_pace *p)
{
  if (p->per_ns > 0 || p->least <= 0) return p->per_ns;
  return p->least > LINK ? p->least : LINK;
}

weir_status wr_copy_times_end(wr_copy_times *x, wr_case *c)
{
  if (!x->copies) return WEIR_OK;
  cover_all(x, c);
  find_wait_gains(x, c);
  for (size_t i = 0; i < x->copies; i++) {
    wr_copy_time *m = &x->copy[i];
    const double per_ns = pace_of(&x->pace[m->pace]);
    if (!m->wait || per_ns <= 0) continue;
    const double ns = (double)m->bytes / per_ns, most = (double)x->wait[m->wait - 1].ns;
    m->device_ns = (int64_t)(ns < most ? ns : most);
  }
  return c->status;
}

const wr_copy_time *wr_copy_times_find(const wr_copy_times *x, int64_t event)
{
  const uint64_t *at = x->copies ? hash_map_get(&x->by_id, (uint64_t)event) : NULL;
  return at ? &x->copy[*at - 1] : NULL;
}
