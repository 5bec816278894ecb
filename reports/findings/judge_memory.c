/* judge_memory.c: the judges (judge.h) of allocations and frees. */
#include "reports/findings/judge.h"
#include <stdlib.h>
#include "core/trace/event.h"

/* An allocation in stream order has a pool, and is cheap; one of the engine's comes out of its caches. */
static bool is_dear(const wr_case *c, const wr_common *t)
{
  return !(t->flags & WEIR_EVF_ASYNC) && !wr_case_of_weir(c, t);
}

/* ---- 16: the same memory taken and freed again and again ------------------------------------- */

/* By family: ns of its shortest free; -1: it has too few that were taken again. */
static int64_t *least_frees(wr_case *c)
{
  int64_t pairs = wr_case_limit(c, "min_pairs");
  int64_t *least = wr_case_array(c, wr_case_count(c, WR_FACT_PAIR_GROUP), sizeof(*least));
  if (!least) return NULL;
  WR_EACH(c, PAIR_GROUP, pair_group, g)
  {
    least[g->id] = g->again + 1 >= pairs ? g->least_free_ns : -1;
  }
  return least;
}

/* Of memory that was freed: the event, ns of it and of the allocation. */
typedef struct taken {
  int64_t free, free_ns, alloc_ns;
} taken;

/* What a free takes by itself: of one that had to wait for the device, what the wait did not take, where that is known;
 * else no more than the shortest of its family, or than a few allocations. */
static int64_t own_free_ns(wr_case *c, const taken *b, int64_t shortest, int64_t free_cost)
{
  wr_wait_time_row t;
  if (!(wr_case_wait_bits(c, b->free) & WR_WAIT_PENDING)) return b->free_ns;
  if (wr_case_wait_time(c, b->free, &t) && !t.unknown) return b->free_ns - t.working;
  return wr_least(shortest, wr_times(free_cost, b->alloc_ns));
}

void wr_judge_repeated_allocation(wr_case *c)
{
  int64_t free_cost = wr_case_limit(c, "free_cost"), *least = least_frees(c);
  WR_EACH(c, PAIR, pair, p)
  {
    const wr_common *t = wr_case_common(c, p->template);
    if (!p->again || least[p->family] < 0 || !is_dear(c, t)) continue;
    int64_t own_ns =
        own_free_ns(c, &(taken){p->free, p->free_ns, p->alloc_ns}, least[p->family], free_cost);
    wr_case_find(c, &(wr_found){.event = p->alloc,
                                .template = p->template,
                                .cost = p->alloc_ns + p->free_ns,
                                .saving = p->alloc_ns + own_ns,
                                .related_saving = own_ns,
                                .related = p->free,
                                .removed = t->flags & WEIR_EVF_CACHED,
                                .certainty = c->rule->certainty});
  }
  free(least);
}

/* ---- 16: and right after that of another size ------------------------------------------------ */

typedef struct resized_place { /* rows of one stack and thread */
  int64_t times, most;         /* bytes of the largest block */
  double bytes;                /* of all */
} resized_place;

typedef struct resized_rows {
  int64_t next, most_between;
  uint64_t least_families;
  hash_map families; /* by process and stack: how many */
  hash_map at;       /* by stack and thread: its place */
  resized_place *place;
  size_t capacity;
} resized_rows;

static uint64_t stack_key(int64_t who, int64_t stack)
{
  return hash_mix(hash_mix(29, (uint64_t)who), (uint64_t)stack);
}

/* The place of a row, made where there is none; NULL: it is of no account, or out of memory. */
static resized_place *resized_at(wr_case *c, resized_rows *x, const wr_fact_resized *r)
{
  bool added;
  const wr_common *t = wr_case_common(c, r->template);
  if (r->next - r->free > x->next || r->others <= x->most_between || !t->stack) return NULL;
  const uint64_t *families = hash_map_get(&x->families, stack_key(t->process, t->stack));
  if (!families || *families < x->least_families) return NULL;
  uint64_t *place = hash_map_place(&x->at, stack_key(t->thread, t->stack), &added);
  if (!place || !wr_grow(&x->place, &x->capacity, x->at.count, sizeof(*x->place))) {
    c->status = wr_db_out_of_memory(c->db);
    return NULL;
  }
  if (added) x->place[ *place = x->at.count - 1] = (resized_place){0};
  return &x->place[*place];
}

static void count_resized(wr_case *c, resized_rows *x)
{
  WR_EACH(c, PAIR_GROUP, pair_group, g)
  {
    uint64_t *families = hash_map_place(&x->families, stack_key(g->process, g->stack), NULL);
    if (families) ++*families;
    if (!families) c->status = wr_db_out_of_memory(c->db);
  }
  WR_EACH(c, RESIZED, resized, r)
  {
    resized_place *place = resized_at(c, x, r);
    if (!place) continue;
    place->times++, place->bytes += (double)r->bytes;
    if (r->bytes > place->most) place->most = r->bytes;
  }
}

/* What a block of its own costs is little next to a long life. */
static wr_certainty of_resized(wr_case *c, const wr_fact_resized *r, int64_t saving, int64_t life)
{
  int64_t start = 0;
  const wr_call_row *e = wr_case_call(c, r->alloc);
  if (e) start = e->start;
  const wr_call_row *end = e ? wr_case_call(c, r->free) : NULL;
  bool lives = end && wr_times(saving, life) < wr_sum(end->start, -start);
  return lives ? WR_POSSIBLE : c->rule->certainty;
}

void wr_judge_resized_allocation(wr_case *c)
{
  int64_t min_times = wr_case_limit(c, "min_times"), free_cost = wr_case_limit(c, "free_cost"),
          life = wr_case_limit(c, "life");
  resized_rows x = {.next = wr_case_limit(c, "next"),
                    .most_between = wr_case_limit(c, "most_between"),
                    .least_families = (uint64_t)min_times / 2};
  count_resized(c, &x);
  WR_EACH(c, RESIZED, resized, r)
  {
    const resized_place *place = r->again ? NULL : resized_at(c, &x, r);
    if (!place || place->times < min_times) continue;
    if ((double)place->most > 2 * (place->bytes / (double)place->times)) continue;
    int64_t own_ns =
        own_free_ns(c, &(taken){r->free, r->free_ns, r->alloc_ns}, r->free_ns, free_cost);
    int64_t saving = r->alloc_ns + own_ns;
    wr_case_find(c, &(wr_found){.event = r->alloc,
                                .template = r->template,
                                .cost = r->alloc_ns + r->free_ns,
                                .saving = saving,
                                .related = r->free,
                                .certainty = of_resized(c, r, saving, life)});
  }
  hash_map_free(&x.families);
  hash_map_free(&x.at);
  free(x.place);
}

/* ---- 17: memory for a moment, of another size each time -------------------------------------- */

enum { MOST_OF_A_SIZE = 7 /* of one size: of more it is rule 16's */ };

typedef struct brief_place { /* families of one stack */
  int64_t pairs;             /* brief ones */
  int64_t first;             /* the first allocation of these */
} brief_place;

/* The place of a family's stack; NULL: out of memory. */
static brief_place *place_of(wr_case *c, hash_map *at, brief_place *places,
                             const wr_fact_pair_group *g)
{
  bool added;
  uint64_t key = hash_mix(hash_mix(19, (uint64_t)g->process), (uint64_t)g->stack);
  uint64_t *place = hash_map_place(at, key, &added);
  if (!place) c->status = wr_db_out_of_memory(c->db);
  if (!place) return NULL;
  if (added) places[ *place = at->count - 1].first = INT64_MAX;
  return &places[*place];
}

/* By family: its place, from 1; 0: it has no brief pair, or too many. */
static uint32_t *brief_families(wr_case *c, brief_place *places)
{
  hash_map at = {0};
  uint32_t *family = wr_case_array(c, wr_case_count(c, WR_FACT_PAIR_GROUP), sizeof(*family));
  if (!family) return NULL;
  WR_EACH(c, PAIR_GROUP, pair_group, g)
  {
    brief_place *place = g->brief ? place_of(c, &at, places, g) : NULL;
    if (!place) continue;
    place->pairs += g->brief;
    place->first = wr_least(place->first, g->first_brief);
    if (g->brief <= MOST_OF_A_SIZE) family[g->id] = (uint32_t)(place - places) + 1;
  }
  hash_map_free(&at);
  return family;
}

static void find_brief(wr_case *c, const uint32_t *family, const brief_place *places)
{
  int64_t most_between = wr_case_limit(c, "most_between"), pairs = wr_case_limit(c, "min_pairs");
  int64_t free_cost = wr_case_limit(c, "free_cost");
  WR_EACH(c, PAIR, pair, p)
  {
    const brief_place *place = family[p->family] ? &places[family[p->family] - 1] : NULL;
    if (!place || p->others > most_between || place->pairs < pairs || p->alloc == place->first)
      continue;
    const wr_common *t = wr_case_common(c, p->template);
    if (!is_dear(c, t)) continue;
    int64_t own_ns =
        own_free_ns(c, &(taken){p->free, p->free_ns, p->alloc_ns}, p->free_ns, free_cost);
    wr_case_find(c, &(wr_found){.event = p->alloc,
                                .template = p->template,
                                .cost = p->alloc_ns + p->free_ns,
                                .saving = p->alloc_ns + own_ns,
                                .related_saving = own_ns,
                                .related = p->free,
                                .removed = t->flags & WEIR_EVF_CACHED,
                                .certainty = c->rule->certainty});
  }
}

void wr_judge_temporary_allocation(wr_case *c)
{
  brief_place *places = wr_case_array(c, wr_case_count(c, WR_FACT_PAIR_GROUP), sizeof(*places));
  uint32_t *family = places ? brief_families(c, places) : NULL;
  if (family) find_brief(c, family, places);
  free(places);
  free(family);
}

/* ---- 18 to 20: memory held for nothing ------------------------------------------------------- */

/* 18: Nothing that can have used it came in its life. */
void wr_judge_unused_allocation(wr_case *c)
{
  int64_t min_bytes = wr_case_limit(c, "min_bytes");
  WR_EACH(c, UNTOUCHED, untouched, u)
  {
    if (u->bytes < min_bytes) continue;
    wr_case_find(c, &(wr_found){.event = u->event,
                                .template = u->template,
                                .bytes = u->bytes,
                                .related = u->null ? 0 : u->free,
                                .certainty = c->rule->certainty});
  }
}

/* ---- 19, 20: what a place does often -------------------------------------------------------- */

enum { OFTEN = 4 /* of so many calls of a place once */, FEW = 8 /* calls: each counts */ };

typedef struct often { /* rows of a fact by template */
  wr_case *c;
  uint32_t *rows; /* owned, as facts.common */
} often;

static void count_row(const often *o, int64_t template)
{
  const wr_common *t = wr_case_common(o->c, template);
  if (o->rows && t) o->rows[t - o->c->facts->common]++;
}

/* Where a place does it now and then, other threads came between: it is no order of the program's. */
static bool is_often(const often *o, int64_t template)
{
  const wr_common *t = wr_case_common(o->c, template);
  return o->rows && t &&
         (t->calls < FEW || (uint64_t)o->rows[t - o->c->facts->common] * OFTEN >= t->calls);
}

/* 19: Older memory was freed between it and its first use. */
void wr_judge_early_allocation(wr_case *c)
{
  often o = {c, wr_case_array(c, c->facts->count, sizeof(*o.rows))};
  WR_EACH(c, EARLY_BLOCK, early_block, b)
  {
    count_row(&o, b->template);
  }
  WR_EACH(c, EARLY_BLOCK, early_block, b)
  {
    if (!is_often(&o, b->template)) continue;
    wr_case_find(c, &(wr_found){.event = b->event,
                                .template = b->template,
                                .bytes = b->bytes,
                                .certainty = c->rule->certainty});
  }
  free(o.rows);
}

/* What another thread took meanwhile follows from no order of this one's. */
static bool is_of_one_thread(const wr_case *c, const wr_fact_late_free *f)
{
  return wr_case_common(c, f->taken)->thread == wr_case_common(c, f->template)->thread;
}

/* 20: Other memory was taken between its last use and its free. */
void wr_judge_late_free(wr_case *c)
{
  often o = {c, wr_case_array(c, c->facts->count, sizeof(*o.rows))};
  WR_EACH(c, LATE_FREE, late_free, f)
  {
    count_row(&o, f->template);
  }
  WR_EACH(c, LATE_FREE, late_free, f)
  {
    if (!is_often(&o, f->template) || !is_of_one_thread(c, f)) continue;
    wr_case_find(c, &(wr_found){.event = f->event,
                                .template = f->template,
                                .bytes = f->bytes,
                                .related = f->alloc,
                                .certainty = c->rule->certainty});
  }
  free(o.rows);
}
