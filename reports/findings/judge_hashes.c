/* judge_hashes.c: the judges (judge.h) of copies whose bytes were hashed. Both read hash_step in its order, and remember of each
 * address the last call that touched it, and of each payload on each device the last copy. Where rows are missing they decline,
 * and the SELECT of the rule is asked. */
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/judge.h"

enum { MOST_GIVEN = 1 << 20, UNIFORM_BYTES = 4096 /* and more: rule 28's */ };

/* A row of hash_step, and what its template has. */
typedef struct hashed_step {
  const wr_fact_hash_step *row;
  const wr_template *t;
  bool copy, touches; /* touches: it begins, ends or writes device memory at its address */
} hashed_step;

static bool is_of_host(int64_t mem)
{
  return mem == WEIR_MEM_PAGEABLE || mem == WEIR_MEM_PINNED || mem == WEIR_MEM_HOST;
}

/* False: it has no template. */
static bool read_step(const wr_case *c, const wr_fact_hash_step *row, hashed_step *s)
{
  const wr_events *events = c->facts->events;
  size_t at = wr_events_template(events, row->template);
  if (at >= events->count) return false;
  s->row = row;
  s->t = &events->templates[at];
  s->copy = s->t->kind == WEIR_EV_COPY;
  s->touches = !s->copy || !is_of_host(s->t->mem);
  return true;
}

static bool is_uniform(const wr_fact_hash_step *row)
{
  return row->payload & 1;
}

/* Copies of memory that others may use. */
static void find_given(wr_case *c, hash_map *given)
{
  c->declines |= c->facts->hashes_partial || wr_case_count(c, WR_FACT_GIVEN_COPY) > MOST_GIVEN;
  if (c->declines) return;
  WR_EACH(c, GIVEN_COPY, given_copy, g)
  {
    if (!c->status) c->status = hash_map_put(given, (uint64_t)g->event, 1);
  }
}

static bool is_given(const hash_map *given, int64_t event)
{
  return given->count && hash_map_get(given, (uint64_t)event);
}

/* The key of a payload on a device. */
static uint64_t payload_key(const wr_fact_hash_step *row, int64_t device)
{
  return hash_mix(hash_mix(41, (uint64_t)row->payload), (uint64_t)device);
}

/* ---- 1: to a device again -------------------------------------------------------------------- */

typedef struct last_touch { /* of an address */
  int64_t event, payload, writes;
} last_touch;

/* Of the same bytes on the device the copy before, 0 none; from now on it is this one. */
static int64_t copy_before(wr_case *c, hash_map *last, const hashed_step *s)
{
  uint64_t *place = hash_map_place(last, payload_key(s->row, s->t->device), NULL);
  if (!place) c->status = wr_db_out_of_memory(c->db);
  int64_t before = place ? (int64_t)*place : 0;
  if (place) *place = (uint64_t)s->row->event;
  return before;
}

/* Of a copy's time what it takes by itself: the rest it waits for work before it, which is waited for without it, too. */
static int64_t own_time(wr_case *c, const wr_fact_hash_step *row)
{
  return wr_least(row->duration, wr_sum(wr_case_limit(c, "own"), row->bytes));
}

/* `here`: the touch of its address before; 0 none. */
static void judge_again(wr_case *c, hash_map *last, const hashed_step *s, const last_touch *here)
{
  const wr_fact_hash_step *row = s->row;
  bool same = here->payload == row->payload, uniform = is_uniform(row);
  if (!same && row->bytes < wr_case_limit(c, "min_bytes")) return;
  int64_t earlier = copy_before(c, last, s);
  if ((uniform && row->bytes >= UNIFORM_BYTES) || (!same && (!earlier || uniform))) return;
  wr_certainty certainty = !same                             ? WR_POSSIBLE
                           : row->writes - here->writes == 1 ? WR_CERTAIN
                                                             : WR_LIKELY;
  wr_case_find(c, &(wr_found){.event = row->event,
                              .template = row->template,
                              .cost = row->duration,
                              .saving = own_time(c, row),
                              .bytes = row->bytes,
                              .related = same ? here->event : earlier,
                              .certainty = certainty});
}

/* 1: What is at its address already, or came to the device before. */
void wr_judge_duplicate_transfer(wr_case *c)
{
  hash_map given = {0}, last = {0};
  find_given(c, &given);
  last_touch *touch =
      c->declines ? NULL : wr_case_array(c, c->facts->hash_places + 1, sizeof(*touch));
  for (const wr_fact_hash_step *r = touch ? wr_case_first(c, WR_FACT_HASH_STEP) : NULL; r;
       r = wr_case_next(c)) {
    hashed_step s;
    if (!read_step(c, r, &s) || !s.touches || !r->place) continue;
    last_touch here = touch[r->place];
    touch[r->place] = (last_touch){r->event, r->payload, r->writes};
    if (s.copy && s.t->copy == WEIR_COPY_HTOD && r->payload && !is_given(&given, r->event))
      judge_again(c, &last, &s, &here);
  }
  free(touch);
  hash_map_free(&given);
  hash_map_free(&last);
}

/* ---- 2: to the other side and back ----------------------------------------------------------- */

typedef struct touches { /* of an address */
  int64_t count, start;  /* so far; when the last one began */
  int64_t before;        /* of them those that began earlier */
} touches;

typedef struct last_copy { /* of a payload between the host and a device */
  int64_t event, copy, at; /* at: the number of the device memory's address */
  int64_t writes, touched; /* by then, of the process; and of the address */
} last_copy;

typedef struct trips {
  int64_t min_bytes;
  hash_map given, by_payload; /* by_payload: place in `last` */
  last_copy *last;            /* owned */
  size_t count, capacity;
  touches *at; /* owned */
} trips;

/* Nothing has touched the address between, up to the start of the copy that comes now. */
static bool still_there(const touches *at, const last_copy *out, int64_t start)
{
  return at->count == out->touched || (at->start == start && out->touched >= at->before);
}

static void judge_back(wr_case *c, const hashed_step *s, const last_copy *out, int64_t at)
{
  bool up = s->t->copy == WEIR_COPY_HTOD;
  if (out->copy == s->t->copy || !(up || out->at == at)) return;
  wr_case_find(
      c, &(wr_found){.event = s->row->event,
                     .template = s->row->template,
                     .cost = s->row->duration,
                     .saving = own_time(c, s->row),
                     .bytes = s->row->bytes,
                     .related = out->event,
                     .certainty = s->row->writes - up == out->writes ? WR_CERTAIN : WR_LIKELY});
}

/* The last copy of the same bytes, or a place for it, of which `event` is 0; NULL: out of memory. */
static last_copy *last_of(wr_case *c, trips *x, const hashed_step *s)
{
  bool added;
  int64_t device = s->t->copy == WEIR_COPY_DTOH ? s->t->src_device : s->t->device;
  uint64_t *place = hash_map_place(&x->by_payload, payload_key(s->row, device), &added);
  if (!place || !wr_grow(&x->last, &x->capacity, x->count + 1, sizeof(*x->last))) {
    c->status = wr_db_out_of_memory(c->db);
    return NULL;
  }
  if (added) x->last[ *place = x->count++] = (last_copy){0};
  return &x->last[*place];
}

/* It is between host and device memory, and known to be no memory of others and not all one byte. */
static bool is_trip(const trips *x, const hashed_step *s)
{
  const wr_fact_hash_step *row = s->row;
  bool up = s->t->copy == WEIR_COPY_HTOD && s->touches;
  return s->copy && (up || s->t->copy == WEIR_COPY_DTOH) && row->payload && !is_uniform(row) &&
         row->bytes >= x->min_bytes && !is_given(&x->given, row->event);
}

static void take_trip(wr_case *c, trips *x, const hashed_step *s)
{
  const wr_fact_hash_step *row = s->row;
  int64_t at = s->copy && s->t->copy == WEIR_COPY_DTOH ? row->source : row->place;
  touches *t = &x->at[at];
  last_copy *last = is_trip(x, s) ? last_of(c, x, s) : NULL;
  if (last && last->event && still_there(&x->at[last->at], last, row->start))
    judge_back(c, s, last, at);
  if (s->touches) {
    if (t->start != row->start) t->before = t->count;
    t->start = row->start;
    t->count++;
  }
  if (last) *last = (last_copy){row->event, s->t->copy, at, row->writes, t->count};
}

/* 2: What came from there, or went there, and the memory on the device still has it. */
void wr_judge_round_trip(wr_case *c)
{
  trips x = {.min_bytes = wr_case_limit(c, "min_bytes")};
  find_given(c, &x.given);
  x.at = c->declines ? NULL : wr_case_array(c, c->facts->hash_places + 1, sizeof(*x.at));
  for (const wr_fact_hash_step *r = x.at ? wr_case_first(c, WR_FACT_HASH_STEP) : NULL; r;
       r = wr_case_next(c)) {
    hashed_step s;
    if (read_step(c, r, &s)) take_trip(c, &x, &s);
  }
  free(x.at);
  free(x.last);
  hash_map_free(&x.given);
  hash_map_free(&x.by_payload);
}
