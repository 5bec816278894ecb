/* judge_copies.c: the judges (judge.h) of copies and memsets. */
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/judge.h"

/* 3: A copy to a device whose memory is freed, with nothing between that can have read it. */
void wr_judge_unused_transfer(wr_case *c)
{
  WR_EACH(c, UNREAD, unread, u)
  {
    wr_case_find(c, &(wr_found){.event = u->event,
                                .template = u->template,
                                .cost = u->duration,
                                .saving = u->duration,
                                .bytes = u->bytes,
                                .related = u->free,
                                .certainty = c->rule->certainty});
  }
  WR_EACH(c, UPLOADED_FOR_NONE, uploaded_for_none, u)
  {
    wr_case_find(c, &(wr_found){.event = u->event,
                                .template = u->template,
                                .cost = u->duration,
                                .saving = u->duration,
                                .bytes = u->bytes,
                                .related = u->free,
                                .certainty = WR_LIKELY});
  }
}

/* 23: What the next copy or memset writes again before anything can have read it; in another stream it may run first.
 * The second walk is of those with launches between, which are handed other memory. */
void wr_judge_dead_write(wr_case *c)
{
  WR_EACH(c, OVERWRITTEN, overwritten, o)
  {
    wr_case_find(c, &(wr_found){.event = o->event,
                                .template = o->template,
                                .cost = o->duration,
                                .saving = o->duration,
                                .bytes = o->bytes,
                                .related = o->next,
                                .certainty = o->same_stream ? WR_CERTAIN : WR_POSSIBLE});
  }
  WR_EACH(c, WRITTEN_OVER, written_over, o)
  {
    wr_case_find(c, &(wr_found){.event = o->event,
                                .template = o->template,
                                .cost = o->duration,
                                .saving = o->duration,
                                .bytes = o->bytes,
                                .related = o->next,
                                .certainty = o->same_stream ? WR_LIKELY : WR_POSSIBLE});
  }
}

/* ---- 6 to 8: copies that could be made another way ------------------------------------------- */

/* 6: The host waits for it, and then goes on by itself for a while. */
void wr_judge_blocking_copy(wr_case *c)
{
  int64_t min_bytes = wr_case_limit(c, "min_bytes"), min_ns = wr_case_limit(c, "min_ns");
  WR_EACH(c, BLOCKING_COPY, blocking_copy, b)
  {
    if (b->bytes <= min_bytes || b->null || b->gap < min_ns || b->duration < min_ns) continue;
    wr_case_find(c, &(wr_found){.event = b->event,
                                .template = b->template,
                                .cost = b->duration,
                                .saving = wr_least(b->duration, b->gap),
                                .bytes = b->bytes,
                                .certainty = c->rule->certainty});
  }
}

/* The trace has times of the device: the SELECT of the rule goes by those. */
static bool is_timed(wr_case *c)
{
  int64_t timed = 0;
  if (!c->status && wr_db_has_table(c->db, "device_work"))
    c->status = wr_db_number(c->db, "SELECT EXISTS(SELECT 1 FROM main.device_work)", &timed);
  return timed;
}

/* 7: One of many small ones: in one buffer it takes what the link takes. */
void wr_judge_tiny_copies(wr_case *c)
{
  int64_t link = wr_case_limit(c, "link");
  c->declines = is_timed(c);
  if (c->declines) return;
  WR_EACH(c, SMALL_COPY, small_copy, s)
  {
    wr_case_find(c, &(wr_found){.event = s->event,
                                .template = s->template,
                                .cost = s->duration,
                                .saving = s->duration - wr_over(s->bytes, link),
                                .bytes = s->bytes,
                                .certainty = c->rule->certainty});
  }
}

/* 8: One row of a matrix of as many rows. */
void wr_judge_rows_one_by_one(wr_case *c)
{
  int64_t min_rows = wr_case_limit(c, "min_rows"), link = wr_case_limit(c, "link");
  c->declines = is_timed(c);
  if (c->declines) return;
  bool *tall = wr_case_array(c, wr_case_count(c, WR_FACT_ROW_MATRIX), sizeof(*tall));
  if (!tall) return;
  WR_EACH(c, ROW_MATRIX, row_matrix, m)
  {
    tall[m->id] = m->rows + 1 >= min_rows;
  }
  WR_EACH(c, ROW_COPY, row_copy, r)
  {
    if (!tall[r->matrix]) continue;
    wr_case_find(c, &(wr_found){.event = r->event,
                                .template = r->template,
                                .cost = r->duration,
                                .saving = r->duration - wr_over(r->bytes, link),
                                .bytes = r->bytes,
                                .certainty = c->rule->certainty});
  }
  free(tall);
}

/* ---- 9: through the host --------------------------------------------------------------------- */

enum { NEAR = 16 /* events between two copies, of which each is looked at */ };

/* The call that sent bytes back; *place: where those of its stack are counted: how many, times 2^32, and how many of them in so
 * little time that the host cannot have changed much. False: it is too small. */
static bool find_bounce(wr_case *c, const wr_fact_sent_back *s, hash_map *at, wr_call_row *back,
                        uint64_t **place)
{
  const wr_call_row *e = wr_case_call(c, s->event);
  if (!e || e->bytes < wr_case_limit(c, "min_bytes")) return false;
  *back = *e;
  uint64_t key = hash_mix(hash_mix(29, (uint64_t)e->common->process), (uint64_t)e->common->stack);
  *place = hash_map_place(at, key, NULL);
  if (!*place) c->status = wr_db_out_of_memory(c->db);
  return *place;
}

/* Of the time between the calls what the thread had to itself: all of it, where they are not of one thread or far apart. */
static int64_t own_time(wr_case *c, const wr_fact_sent_back *s, const wr_call_row *away,
                        const wr_call_row *back)
{
  int64_t gap = wr_sum(wr_sum(back->start, -away->start), -away->duration);
  if (away->common->thread != back->common->thread || s->event - s->earlier > NEAR) return gap;
  for (int64_t id = s->earlier + 1; id < s->event; id++) {
    const wr_call_row *e = wr_case_call(c, id);
    bool within = e && e->common->thread == back->common->thread && e->start < back->start;
    if (within) gap = wr_sum(gap, -e->duration);
  }
  return gap;
}

static void count_bounces(wr_case *c, hash_map *at)
{
  int64_t max_gap = wr_case_limit(c, "max_gap");
  WR_EACH(c, SENT_BACK, sent_back, s)
  {
    wr_call_row back;
    uint64_t *place;
    if (!find_bounce(c, s, at, &back, &place)) continue;
    const wr_call_row *e = wr_case_call(c, s->earlier);
    if (!e) continue;
    const wr_call_row away = *e;
    int64_t gap = own_time(c, s, &away, &back);
    bool brief = gap <= max_gap && wr_times(gap, 50) < back.bytes;
    *place += (UINT64_C(1) << 32) + brief;
  }
}

/* What the run gains without it: of one that returns before it is made, what the link takes, since a call that queues the
 * copy on the device comes in its place. */
static int64_t gain_of_copy(const wr_call_row *e, int64_t link)
{
  return e->common->flags & WEIR_EVF_ASYNC ? wr_over(e->bytes, link) : e->duration;
}

/* Of hashed copies it is known what came back, which the SELECT looks at. */
void wr_judge_through_the_host(wr_case *c)
{
  hash_map at = {0};
  int64_t min_times = wr_case_limit(c, "min_times"), hashed = 1;
  int64_t small_times = wr_case_limit(c, "small_times"), large = wr_case_limit(c, "large");
  int64_t slowest = wr_case_limit(c, "slowest"), link = wr_case_limit(c, "link");
  if (wr_db_has_table(c->db, "copy_hash") && !c->status)
    c->status = wr_db_number(c->db, "SELECT EXISTS(SELECT 1 FROM main.copy_hash)", &hashed);
  c->declines = hashed != 0;
  if (hashed) return;
  count_bounces(c, &at);
  WR_EACH(c, SENT_BACK, sent_back, s)
  {
    wr_call_row back;
    uint64_t *place;
    if (!find_bounce(c, s, &at, &back, &place)) continue;
    int64_t times = (int64_t)(*place >> 32), brief = (int64_t)(*place & UINT32_MAX);
    if (times < (back.bytes < large ? small_times : min_times)) continue;
    bool waits = wr_case_wait_bits(c, s->event) & WR_WAIT_PENDING;
    int64_t gain = gain_of_copy(&back, link), takes = gain > back.duration ? gain : back.duration;
    int64_t own = waits ? wr_over(back.bytes, slowest) : gain;
    wr_case_find(c, &(wr_found){.event = s->event,
                                .template = back.common->id,
                                .cost = takes,
                                .saving = wr_least(gain, own),
                                .bytes = back.bytes,
                                .related = s->earlier,
                                .certainty = brief * 2 >= times ? WR_LIKELY : WR_POSSIBLE});
  }
  hash_map_free(&at);
}

/* ---- 30: slow for their kind ----------------------------------------------------------------- */

enum { MOST_RANK = 16 };

typedef struct
    copy_class { /* copies of a process in one direction, between the same memory and devices */
  double fastest[MOST_RANK]; /* bytes a ns, the fastest first */
  int64_t copies;
} copy_class;

typedef struct copy_place { /* of a kind, the copies of one stack */
  size_t kind;              /* from 1; 0: not looked for yet */
  int64_t copies;
  double best;
} copy_place;

typedef struct speeds {
  int64_t min_bytes, min_copies, rank;
  hash_map by_kind, by_place;
  copy_class *kind;   /* owned */
  copy_place *place;  /* owned */
  uint32_t *place_of; /* owned: by facts.common, from 1 */
  size_t kinds, kind_capacity, places, place_capacity;
} speeds;

/* Numbers the things with that key from 1; 0: out of memory. */
static size_t number_of_key(hash_map *map, uint64_t key, size_t *count)
{
  bool added;
  uint64_t *at = hash_map_place(map, key, &added);
  if (at && added) *at = ++*count;
  return at ? (size_t)*at : 0;
}

/* The place of the copies of a template; NULL: out of memory. */
static copy_place *place_of_copies(wr_case *c, speeds *s, const wr_common *t)
{
  size_t at = (size_t)(t - c->facts->common), kinds = s->kinds, places = s->places;
  if (s->place_of[at]) return &s->place[s->place_of[at] - 1];
  const wr_template *x = &c->facts->events->templates[at];
  uint64_t key = hash_mix(hash_mix(31, (uint64_t)x->process),
                          (uint64_t)(x->copy << 16 | x->mem << 8 | x->src_mem));
  key = hash_mix(key, (uint64_t)(x->device << 16 | x->src_device));
  size_t kind = number_of_key(&s->by_kind, key, &s->kinds);
  size_t place = number_of_key(&s->by_place, hash_mix(key, (uint64_t)x->stack), &s->places);
  if (!kind || !place || !wr_grow(&s->kind, &s->kind_capacity, s->kinds, sizeof(*s->kind)) ||
      !wr_grow(&s->place, &s->place_capacity, s->places, sizeof(*s->place))) {
    c->status = wr_db_out_of_memory(c->db);
    return NULL;
  }
  if (s->kinds > kinds) s->kind[kind - 1] = (copy_class){0};
  if (s->places > places) s->place[place - 1] = (copy_place){.kind = kind};
  s->place_of[at] = (uint32_t)place;
  return &s->place[place - 1];
}

static double rate_of(const wr_fact_large_copy *l)
{
  return (double)l->bytes / (double)(l->duration > 1 ? l->duration : 1);
}

/* A copy that had nothing to wait for, in which the host waits: what it takes is the copy's own time. */
static copy_place *timed_copy(wr_case *c, speeds *s, const wr_fact_large_copy *l)
{
  const wr_common *t = wr_case_common(c, l->template);
  if (l->bytes < s->min_bytes || t->flags & WEIR_EVF_ASYNC || t->copy == WEIR_COPY_PTOP)
    return NULL;
  unsigned bits = wr_case_wait_bits(c, l->event) & (WR_WAIT_KNOWN | WR_WAIT_PENDING);
  return bits == WR_WAIT_KNOWN ? place_of_copies(c, s, t) : NULL;
}

static void count_speed(copy_class *k, double rate, int64_t rank)
{
  k->copies++;
  for (int64_t i = 0; i < rank; i++) {
    if (k->fastest[i] >= rate) continue;
    double slower = k->fastest[i];
    k->fastest[i] = rate;
    rate = slower;
  }
}

static void count_speeds(wr_case *c, speeds *s)
{
  WR_EACH(c, LARGE_COPY, large_copy, l)
  {
    copy_place *p = timed_copy(c, s, l);
    if (!p) continue;
    double rate = rate_of(l);
    p->copies++;
    if (rate > p->best) p->best = rate;
    count_speed(&s->kind[p->kind - 1], rate, s->rank);
  }
}

static void find_slow(wr_case *c, speeds *s)
{
  WR_EACH(c, LARGE_COPY, large_copy, l)
  {
    const copy_place *p = timed_copy(c, s, l);
    const copy_class *k = p ? &s->kind[p->kind - 1] : NULL;
    if (!k || k->copies < s->rank || p->copies < s->min_copies) continue;
    double reached = k->fastest[s->rank - 1];
    int64_t took = l->duration > 1 ? l->duration : 1;
    if (!(p->best * 2 < reached)) continue;
    wr_case_find(c, &(wr_found){.event = l->event,
                                .template = l->template,
                                .cost = took,
                                .saving = (int64_t)((double)took - (double)l->bytes / reached),
                                .bytes = l->bytes,
                                .certainty = WR_POSSIBLE});
  }
}

/* Of a trace that has times of the device the SELECT is asked, which goes by those. */
void wr_judge_slow_link(wr_case *c)
{
  speeds s = {.min_bytes = wr_case_limit(c, "min_bytes"),
              .min_copies = wr_case_limit(c, "min_copies"),
              .rank = wr_case_limit(c, "rank")};
  c->declines = is_timed(c) || s.rank < 1 || s.rank > MOST_RANK;
  s.place_of = c->declines ? NULL : wr_case_array(c, c->facts->count, sizeof(*s.place_of));
  if (s.place_of) {
    count_speeds(c, &s);
    find_slow(c, &s);
  }
  hash_map_free(&s.by_kind);
  hash_map_free(&s.by_place);
  free(s.kind);
  free(s.place);
  free(s.place_of);
}
