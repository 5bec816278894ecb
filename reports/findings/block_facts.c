/* block_facts.c: see block_facts.h. Blocks stay known after they are freed, until another has their address. Beyond
 * WR_RECORDS_MOST addresses all are forgotten, as groups are, of which the rows are made before that; what belongs to a group
 * that was forgotten is in no fact. */
#include "reports/findings/block_facts.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum {
  MOST_BORN = 1 << 20,
  MOST_RANGES = 1 << 20, /* of each set of a process's */
  SOON = 4,              /* events from a free to an allocation */
  BRIEF = 2,             /* allocations between, of which a pair has fewer */
  MAPPED = 2,            /* cudaHostAllocMapped, cudaHostRegisterMapped */
  COMBINED = 4           /* cudaHostAllocWriteCombined */
};

typedef struct block {
  uint64_t key;  /* of its address */
  int64_t alloc; /* 0: it has been freed */
  uint64_t address, bytes, pool;
  int64_t duration;
  uint64_t part, allocs, resets; /* of the process, when it was made */
  int64_t group;
  uint32_t born; /* its place in `born` of the process */
  uint32_t common;
  bool again;          /* one of its group had been freed and not been replaced */
  uint32_t copied_out; /* copies to the host from its address */
} block;

typedef struct pair_group { /* allocations of one place, size and device */
  uint64_t key;
  uint64_t again, brief;
  uint64_t live, most; /* most: of those that lived at once */
  int64_t first_brief, least_free;
  uint32_t common; /* of one of them */
} pair_group;

#define ADD(f, fact, ...) wr_fact_add((f)->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "finding facts of allocations: out of host memory");
}

/* ---- uses ------------------------------------------------------------------------------------ */

/* A use, copy or memset: those of the part that older blocks outlived in part are early. */
static weir_status end_part(wr_block_facts *f, wr_process_state *x)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < x->early; i++) {
    const wr_born *b = &x->born[i];
    if (b->alloc && f->common[b->common].thread == x->freed_by)
      st = ADD(f, EARLY_BLOCK, b->alloc, f->common[b->common].id, (int64_t)b->bytes);
  }
  x->born_count = x->early = 0;
  x->parts++;
  return st;
}

weir_status wr_block_use(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                         const wr_fact_call *c)
{
  if (t->what & WR_IS_USE) {
    if (x->untouched.count) wr_ranges_clear(&x->untouched);
  } else if (x->untouched.count) {
    wr_ranges_drop(&x->untouched, c->a, c->bytes);
    if (t->kind == WEIR_EV_COPY) wr_ranges_drop(&x->untouched, c->b, c->bytes);
  }
  if (t->kind == WEIR_EV_COPY && x->apart.count) {
    wr_ranges_drop(&x->apart, c->a, c->bytes);
    wr_ranges_drop(&x->apart, c->b, c->bytes);
  }
  return end_part(f, x);
}

/* ---- memory that others may use -------------------------------------------------------------- */

static weir_status give_range(wr_process_state *x, uint64_t begin, uint64_t bytes, int64_t alloc)
{
  return wr_given_put(&x->given, begin, bytes, alloc) ? WEIR_OK : out_of_memory();
}

static weir_status give_block(wr_block_facts *f, wr_process_state *x, const block *b)
{
  const wr_range *known = wr_ranges_find(&x->given.ranges, b->address, b->bytes);
  if (known && known->value == b->alloc) return WEIR_OK;
  weir_status st = give_range(x, b->address, b->bytes, b->alloc);
  return st ? st : ADD(f, GIVEN_BLOCK, b->alloc);
}

static bool lives(const wr_block_facts *f, const wr_process_state *x, const block *b,
                  const wr_common *t)
{
  return b->alloc && b->resets == x->resets && f->common[b->common].process == t->process;
}

/* The block with that address; of one whose allocation was not seen so many bytes from there. */
static weir_status give_address(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                                uint64_t address, uint64_t bytes)
{
  const block *b = wr_records_find(&f->block, hash_mix(t->seed, address), sizeof(*b));
  if (b && lives(f, x, b, t)) return give_block(f, x, b);
  const wr_range *known = wr_ranges_find(&x->given.ranges, address, 1);
  if (known && (known->value || known->begin == address))
    return WEIR_OK; /* it has been asked for */
  for (size_t i = 0; i < f->block.count; i++) {
    b = wr_records_at(&f->block, i, sizeof(*b));
    if (address - b->address < b->bytes && lives(f, x, b, t)) return give_block(f, x, b);
  }
  if (wr_given_has(&x->given, address, bytes)) return WEIR_OK;
  return give_range(x, address, bytes ? bytes : 1, 0);
}

static weir_status give_pool(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                             uint64_t pool)
{
  weir_status st = hash_map_put(&x->given.pools, pool, 1);
  for (size_t i = 0; !st && i < f->block.count; i++) {
    const block *b = wr_records_at(&f->block, i, sizeof(*b));
    bool async = f->common[b->common].flags & WEIR_EVF_ASYNC;
    if (async && (!b->pool || b->pool == pool) && lives(f, x, b, t)) st = give_block(f, x, b);
  }
  return st;
}

weir_status wr_block_give(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                          const wr_fact_call *c)
{
  switch (t->giving) {
  case WR_GIVES_BLOCK:
    return give_address(f, x, t, c->a, 1);
  case WR_GIVES_RANGE:
    return give_address(f, x, t, c->a, c->bytes);
  case WR_GIVES_BOUND:
    return give_address(f, x, t, c->b, c->bytes);
  case WR_GIVES_POOL:
    return give_pool(f, x, t, c->a);
  case WR_NAMES_POOL:
    hash_map_remove(&x->given.pools, c->a);
    return WEIR_OK;
  case WR_GIVES_PHYSICAL:
    return wr_given_physical(&x->given, c->a) ? WEIR_OK : out_of_memory();
  case WR_GIVES_BOUND_PHYSICAL:
    return wr_given_physical(&x->given, c->b) ? WEIR_OK : out_of_memory();
  case WR_MAPS_PHYSICAL:
    return wr_given_map(&x->given, c->b, c->a, c->bytes) ? WEIR_OK : out_of_memory();
  case WR_UNMAPS_PHYSICAL:
    wr_ranges_drop(&x->given.ranges, c->a, c->bytes);
    return WEIR_OK;
  case WR_GIVES_NOTHING:
    return WEIR_OK;
  }
  return WEIR_OK;
}

void wr_block_reset(wr_process_state *x)
{
  x->resets++;
  wr_ranges_clear(&x->untouched);
  wr_ranges_clear(&x->given.ranges);
}

weir_status wr_block_own(wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  bool kept = true, alloc = t->kind == WEIR_EV_ALLOC, frees = t->kind == WEIR_EV_FREE;
  if (alloc && t->mem == WEIR_MEM_IMPORTED)
    kept = wr_given_put(&x->given, c->a, c->bytes, c->id);
  else if (alloc && t->mem == WEIR_MEM_PHYSICAL)
    hash_map_remove(&x->given.physical, c->a);
  else if (alloc || frees)
    wr_ranges_drop(&x->given.ranges, c->a, frees ? 1 : c->bytes);
  bool locked = (alloc && t->mem == WEIR_MEM_PINNED) || (t->kind == WEIR_EV_HOSTREG && c->bytes);
  x->shares |= (locked && c->b & MAPPED) || (alloc && t->mem == WEIR_MEM_MANAGED);
  if (locked && x->apart.count >= MOST_RANGES) {
    x->shares = true;
    wr_ranges_clear(&x->apart);
  }
  if (locked)
    kept &= wr_ranges_put(&x->apart, c->a, c->bytes, c->id);
  else if (!alloc)
    wr_ranges_drop(&x->apart, c->a, 1);
  if (x->combined.count >= MOST_RANGES) wr_ranges_clear(&x->combined);
  if (locked && alloc && c->b & COMBINED)
    kept &= wr_ranges_put(&x->combined, c->a, c->bytes, c->id);
  else if (alloc || frees)
    wr_ranges_drop(&x->combined, c->a, 1);
  return kept ? WEIR_OK : out_of_memory();
}

/* ---- allocations ----------------------------------------------------------------------------- */

static weir_status end_groups(wr_block_facts *f)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < f->group.count; i++) {
    const pair_group *g = wr_records_at(&f->group, i, sizeof(*g));
    const wr_common *t = &f->common[g->common];
    st = ADD(f, PAIR_GROUP, f->groups + (int64_t)i, t->process, t->stack, (int64_t)g->again,
             (int64_t)g->brief, g->first_brief, g->least_free);
  }
  f->groups += (int64_t)f->group.count;
  wr_records_clear(&f->group);
  return st;
}

/* The group of blocks like this one has one more. */
static weir_status join_group(wr_block_facts *f, const wr_common *t, block *b)
{
  bool added;
  weir_status st = f->group.count >= WR_RECORDS_MOST ? end_groups(f) : WEIR_OK;
  if (st) return st;
  pair_group *g = wr_records_place(&f->group, hash_mix(t->site, b->bytes), sizeof(*g), &added);
  if (!g) return out_of_memory();
  if (added) *g = (pair_group){.key = g->key, .least_free = INT64_MAX, .common = b->common};
  b->again = ++g->live <= g->most;
  if (!b->again) g->most = g->live;
  b->group = f->groups + (g - (pair_group *)f->group.record);
  return WEIR_OK;
}

static weir_status keep_born(wr_process_state *x, const wr_fact_call *c)
{
  if (x->born_count >= MOST_BORN) return WEIR_OK;
  if (!wr_grow(&x->born, &x->born_capacity, x->born_count + 1, sizeof(*x->born)))
    return out_of_memory();
  x->born[x->born_count++] = (wr_born){c->id, c->bytes, c->common};
  return WEIR_OK;
}

static weir_status keep_untouched(wr_process_state *x, const wr_fact_call *c)
{
  if (x->untouched.count >= MOST_RANGES) wr_ranges_clear(&x->untouched);
  return wr_ranges_put(&x->untouched, c->a, c->bytes, c->id) ? WEIR_OK : out_of_memory();
}

/* What was freed right before is allocated anew at the place of its allocation. */
static weir_status see_next(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                            const wr_fact_call *c)
{
  const wr_just_freed *r = &x->freed;
  const wr_common *of = &f->common[r->common];
  bool near = r->alloc && c->id - r->free <= SOON && of->stack == t->stack;
  weir_status st = near ? ADD(f, RESIZED, r->alloc, r->free, c->id, r->again, r->others, of->id,
                              r->alloc_ns, r->free_ns, r->bytes)
                        : WEIR_OK;
  x->freed.alloc = 0;
  return st;
}

weir_status wr_block_alloc(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                           const wr_fact_call *c)
{
  bool added, async = t->flags & WEIR_EVF_ASYNC;
  if (f->block.count >= WR_RECORDS_MOST) wr_records_clear(&f->block);
  x->seed = t->seed;
  block *b = wr_records_place(&f->block, c->key, sizeof(*b), &added);
  if (!b) return out_of_memory();
  *b = (block){.key = c->key,
               .alloc = c->id,
               .address = c->a,
               .bytes = c->bytes,
               .pool = async ? c->b : 0,
               .duration = c->duration,
               .part = x->parts,
               .allocs = x->allocs++,
               .resets = x->resets,
               .born = (uint32_t)x->born_count,
               .common = c->common};
  weir_status st = see_next(f, x, t, c);
  if (!st) st = join_group(f, t, b);
  if (!st) st = keep_born(x, c);
  if (!st) st = keep_untouched(x, c);
  bool of_given = async && x->given.pools.count &&
                  (!c->b || hash_map_get(&x->given.pools, c->b)); /* 0: not known which */
  return of_given && !st ? give_block(f, x, b) : st;
}

/* ---- frees ----------------------------------------------------------------------------------- */

static weir_status see_pair(wr_block_facts *f, wr_process_state *x, const block *b,
                            const wr_fact_call *freed)
{
  uint64_t between = x->allocs - 1 - b->allocs;
  if (b->group < f->groups) return WEIR_OK;
  pair_group *g = wr_records_at(&f->group, (size_t)(b->group - f->groups), sizeof(*g));
  g->live--;
  if (wr_given_has(&x->given, b->address, b->bytes)) return WEIR_OK;
  g->again += b->again;
  if (freed->duration < g->least_free) g->least_free = freed->duration;
  if (between < BRIEF && !g->brief++) g->first_brief = b->alloc;
  x->freed = (wr_just_freed){.alloc = between < BRIEF ? 0 : b->alloc,
                             .free = freed->id,
                             .again = b->again,
                             .others = (int64_t)between,
                             .alloc_ns = b->duration,
                             .free_ns = freed->duration,
                             .bytes = (int64_t)b->bytes,
                             .common = b->common};
  return ADD(f, PAIR, b->alloc, freed->id, b->group, b->again, (int64_t)between,
             f->common[b->common].id, b->duration, freed->duration);
}

/* Of memory that was taken in this part, or in an earlier one. */
static weir_status see_part(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                            const wr_fact_call *c, const block *b)
{
  weir_status st = WEIR_OK;
  if (b->part == x->parts) {
    if (b->born < x->born_count && x->born[b->born].alloc == b->alloc) x->born[b->born].alloc = 0;
    return st;
  }
  if (x->born_count && !wr_given_has(&x->given, b->address, b->bytes))
    st = ADD(f, LATE_FREE, c->id, b->alloc, t->id, (int64_t)b->bytes, f->common[b->common].id);
  x->early = x->born_count, x->freed_by = t->thread;
  return st;
}

/* ---- growing --------------------------------------------------------------------------------- */

void wr_block_copied_out(wr_block_facts *f, const wr_common *t, const wr_fact_call *c)
{
  block *b = wr_records_find(&f->block, hash_mix(t->seed, c->b), sizeof(*b));
  if (b) b->copied_out++;
}

/* All of a block to all of another one. */
static weir_status see_whole(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                             const wr_fact_call *c, const block *to, const block *from)
{
  if (c->bytes != to->bytes || c->bytes != from->bytes || to == from) return WEIR_OK;
  if (wr_given_has(&x->given, c->a, c->bytes) || wr_given_has(&x->given, c->b, c->bytes))
    return WEIR_OK;
  return ADD(f, WHOLE_COPY, c->id, to->alloc, from->alloc, to->copied_out, t->id, c->duration,
             (int64_t)c->bytes);
}

/* A younger, larger block takes what an older one has: the older is freed, if it was grown. */
weir_status wr_block_copy(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                          const wr_fact_call *c)
{
  const block *to = wr_records_find(&f->block, c->key, sizeof(*to));
  const block *from = wr_records_find(&f->block, hash_mix(t->seed, c->b), sizeof(*from));
  if (!to || !from || !lives(f, x, to, t) || !lives(f, x, from, t)) return WEIR_OK;
  bool all = c->bytes >= from->bytes - from->bytes / 10;
  if (to->bytes == from->bytes) return see_whole(f, x, t, c, to, from);
  if (!all || to->alloc < from->alloc || to->bytes < from->bytes) return WEIR_OK;
  if (f->grown.count >= MOST_BORN) hash_map_free(&f->grown), hash_map_free(&f->grown_to);
  weir_status st = hash_map_put(&f->grown, (uint64_t)from->alloc, (uint64_t)c->id);
  if (!st) st = hash_map_put(&f->grown_to, (uint64_t)from->alloc, (uint64_t)to->alloc);
  return st ? out_of_memory() : st;
}

static weir_status see_grown(wr_block_facts *f, const block *b, const wr_fact_call *freed)
{
  const uint64_t *copy = f->grown.count ? hash_map_get(&f->grown, (uint64_t)b->alloc) : NULL;
  const uint64_t *to = copy ? hash_map_get(&f->grown_to, (uint64_t)b->alloc) : NULL;
  if (!to) return WEIR_OK;
  return ADD(f, GROWN, (int64_t)*copy, (int64_t)*to, freed->id, f->common[b->common].id,
             (int64_t)b->bytes);
}

weir_status wr_block_free(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                          const wr_fact_call *c)
{
  block *b = wr_records_find(&f->block, c->key, sizeof(*b));
  if (!b || b->resets != x->resets || !b->alloc) return WEIR_OK;
  weir_status st = see_pair(f, x, b, c);
  if (!st) st = see_part(f, x, t, c, b);
  if (!st) st = see_grown(f, b, c);
  const wr_range *u = x->untouched.count ? wr_ranges_find(&x->untouched, c->a, 1) : NULL;
  if (u && !st && u->value == b->alloc) {
    const int64_t v[] = {b->alloc, c->id, f->common[b->common].id, (int64_t)b->bytes};
    st = wr_fact_add_either(f->tables, WR_FACT_UNTOUCHED, v, false);
  }
  if (u) wr_ranges_drop(&x->untouched, c->a, 1);
  b->alloc = 0;
  return st;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What lives, and is untouched; the template of a block that has been forgotten is 0. */
weir_status wr_block_end(wr_block_facts *f, wr_process_state *x)
{
  weir_status st = WEIR_OK;
  for (const wr_range *u; !st && (u = wr_ranges_any(&x->untouched)) != NULL;) {
    const block *b = wr_records_find(&f->block, hash_mix(x->seed, u->begin), sizeof(*b));
    bool known = b && b->alloc == u->value;
    const int64_t v[] = {u->value, 0, known ? f->common[b->common].id : 0,
                         (int64_t)(known ? b->bytes : u->end - u->begin)};
    st = wr_fact_add_either(f->tables, WR_FACT_UNTOUCHED, v, true);
    wr_ranges_drop(&x->untouched, u->begin, 1);
  }
  return st;
}

weir_status wr_block_facts_end(wr_block_facts *f)
{
  return end_groups(f);
}

void wr_block_facts_free(wr_block_facts *f)
{
  wr_records_free(&f->block);
  hash_map_free(&f->grown);
  hash_map_free(&f->grown_to);
  wr_records_free(&f->group);
}
