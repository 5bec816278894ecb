/* facts.c: see facts.h. Calls come in the order in which they began; an allocation counts from its return, and is held
 * until then. What is remembered is bounded: addresses beyond MOST_PLACES are forgotten all at once, so that a trace of any
 * length is judged in little memory, and at worst less is found. */
#include "reports/findings/facts.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/handle_facts.h"
#include "reports/findings/ranges.h"
#include "reports/findings/storm_facts.h"
#include "reports/findings/stream_facts.h"
#include "reports/findings/thread_facts.h"

enum {
  MOST_PLACES = 1 << 20,
  MAPPED = 2,  /* cudaHostAllocMapped, cudaHostRegisterMapped */
  COMBINED = 4 /* cudaHostAllocWriteCombined */
};

/* ---- state ----------------------------------------------------------------------------------- */

typedef struct place { /* what was last seen at an address */
  uint64_t count;      /* of reads or writes of the process by then */
  int64_t event, duration;
  union {
    uint64_t stream, bytes;
  };
  uint32_t before; /* the place's earlier copy, or NONE */
  uint32_t common;
} place;

typedef struct places { /* by address */
  hash_map at;
  place *place;
  size_t count, capacity;
} places;

typedef struct live_block {
  int64_t alloc;
  uint64_t part, allocs; /* of the process, when it was made */
  size_t born;           /* its index in process.born */
  uint64_t address, bytes, pool;
  int64_t duration;
  uint64_t epoch;
  uint64_t group; /* of pair_group */
  bool again;     /* one of its group had been freed and not been replaced */
  size_t common;
} live_block;

typedef struct process {
  uint64_t reads, reads_or_frees, writes, parts, allocs, epoch, waits;
  int64_t *born; /* owned: allocations of the part that goes on; 0: freed again */
  size_t born_count, born_capacity, early;
  wr_ranges untouched; /* allocations since which nothing can have used them */
  wr_given given;
  wr_ranges apart;    /* page-locked memory that no copy has touched: kernels may */
  wr_ranges combined; /* page-locked memory that is write-combined */
  bool shares;        /* it has memory that host and kernels both touch, or may */
} process;

typedef struct pair_group { /* allocations of one place, size and device */
  int64_t process, stack;
  uint64_t again, brief;
  uint64_t live, most; /* most: of those that lived at once */
  int64_t first_brief, least_free;
} pair_group;

typedef struct wr_facts_pass {
  wr_facts *f;
  const wr_db *db;
  wr_fact_call
      *held; /* owned: allocations that have not returned; a heap, the first to return first */
  size_t held_count, held_capacity;
  wr_thread_facts threads;
  wr_stream_facts streams;
  wr_storm_facts storms;
  wr_handle_facts handles;
  hash_map by_process, by_thread, by_group, by_pointer;
  hash_map by_event; /* the last wait for an event */
  process *process;
  size_t process_count, process_capacity;
  wr_thread_state *thread;
  size_t thread_count, thread_capacity;
  live_block *block;
  size_t block_count, block_capacity;
  pair_group *group;
  size_t group_count, group_capacity;
  places written, copied, read; /* for overwritten, unread, reread */
  places alike;                 /* for repeated_copy: count: times, event: the first */
  places sent;                  /* for sent_back, of the host: count: direction */
  int64_t families;             /* before those */
} pass;

#define NONE UINT32_MAX

static weir_status no_memory(const pass *p)
{
  return wr_db_out_of_memory(p->db);
}

#define ADD(p, fact, ...)                                                                          \
  wr_fact_add(&(p)->f->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

/* The common part knows the index, once it has been searched for. */
static process *process_of(pass *p, wr_common *t)
{
  bool added;
  if (t->process_index != SIZE_MAX) return &p->process[t->process_index];
  uint64_t *at = hash_map_place(&p->by_process, (uint64_t)t->process, &added);
  if (!at) return NULL;
  if (added) {
    if (!wr_grow(&p->process, &p->process_capacity, p->process_count + 1, sizeof(process))) {
      hash_map_remove(&p->by_process, (uint64_t)t->process);
      return NULL;
    }
    p->process[p->process_count] = (process){0};
    *at = p->process_count++;
  }
  t->process_index = (size_t)*at;
  return &p->process[*at];
}

static wr_thread_state *thread_of(pass *p, wr_common *t)
{
  bool added;
  if (t->thread_index != SIZE_MAX) return &p->thread[t->thread_index];
  uint64_t *at = hash_map_place(&p->by_thread, (uint64_t)t->thread, &added);
  if (!at) return NULL;
  if (added) {
    if (!wr_grow(&p->thread, &p->thread_capacity, p->thread_count + 1, sizeof(wr_thread_state))) {
      hash_map_remove(&p->by_thread, (uint64_t)t->thread);
      return NULL;
    }
    p->thread[p->thread_count] = (wr_thread_state){0};
    *at = p->thread_count++;
  }
  t->thread_index = (size_t)*at;
  return &p->thread[*at];
}

static int64_t template_of(const pass *p, uint32_t common)
{
  return p->f->common[common].id;
}

/* ---- what was at an address ------------------------------------------------------------------ */

static void forget_places(places *x)
{
  hash_map_free(&x->at);
  x->count = 0;
}

/* Puts `now` where the key is; *before: what was there (count of none: UINT64_MAX). */
static weir_status swap_place(pass *p, places *x, uint64_t key, const place *now, place *before)
{
  bool added;
  *before = (place){.count = UINT64_MAX, .before = NONE};
  if (x->count >= MOST_PLACES) forget_places(x);
  uint64_t *at = hash_map_place(&x->at, key, &added);
  if (!at) return no_memory(p);
  if (!added) *before = x->place[*at];
  if (added) {
    if (!wr_grow(&x->place, &x->capacity, x->count + 1, sizeof(place))) return no_memory(p);
    *at = x->count++;
  }
  x->place[*at] = *now;
  return WEIR_OK;
}

static uint64_t address_key(const wr_common *t, uint64_t address, uint64_t bytes)
{
  return hash_mix(hash_mix(hash_mix(3, (uint64_t)t->process), address), bytes);
}

/* A copy or memset of device memory. */
static weir_status see_write(pass *p, const process *x, const wr_common *t, const wr_fact_call *c)
{
  place before, now = {.count = x->reads_or_frees,
                       .event = c->id,
                       .duration = c->duration,
                       .stream = t->stream,
                       .common = (uint32_t)c->common};
  weir_status s = swap_place(p, &p->written, address_key(t, c->a, c->bytes), &now, &before);
  if (s || before.count != now.count) return s;
  return ADD(p, OVERWRITTEN, before.event, c->id, before.stream == now.stream,
             template_of(p, before.common), before.duration, (int64_t)c->bytes);
}

/* A copy to a device; the earlier ones of the same reads hang on it. */
static weir_status see_upload(pass *p, const process *x, const wr_common *t, const wr_fact_call *c)
{
  bool added;
  places *l = &p->copied;
  if (l->count >= MOST_PLACES) forget_places(l);
  uint64_t *at = hash_map_place(&l->at, address_key(t, c->a, 0), &added);
  if (!at || !wr_grow(&l->place, &l->capacity, l->count + 1, sizeof(place))) return no_memory(p);
  bool goes_on = !added && l->place[*at].count == x->reads;
  l->place[l->count] = (place){.count = x->reads,
                               .event = c->id,
                               .duration = c->duration,
                               .bytes = c->bytes,
                               .before = goes_on ? (uint32_t)*at : NONE,
                               .common = (uint32_t)c->common};
  *at = l->count++;
  return WEIR_OK;
}

static weir_status see_free_of_upload(pass *p, const process *x, const wr_common *t,
                                      const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  uint64_t key = address_key(t, c->a, 0), *at = hash_map_get(&p->copied.at, key);
  if (!at) return s;
  for (size_t i = *at; !s && i != NONE && p->copied.place[i].count == x->reads;) {
    const place *l = &p->copied.place[i];
    s = ADD(p, UNREAD, l->event, c->id, template_of(p, l->common), l->duration, (int64_t)l->bytes);
    i = l->before;
  }
  hash_map_remove(&p->copied.at, key);
  return s;
}

static weir_status see_read_back(pass *p, const process *x, const wr_common *t,
                                 const wr_fact_call *c)
{
  place before, now = {.count = x->writes, .event = c->id};
  weir_status s = swap_place(p, &p->read, address_key(t, c->b, c->bytes), &now, &before);
  if (s || before.count != now.count) return s;
  return ADD(p, REREAD, c->id, before.event, t->id, c->duration, (int64_t)c->bytes);
}

static weir_status end_families(pass *p)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < p->alike.count; i++) {
    const place *x = &p->alike.place[i];
    if (x->count > 1)
      s = ADD(p, COPY_FAMILY, p->families + (int64_t)i, (int64_t)x->count, x->event);
  }
  p->families += (int64_t)p->alike.count;
  forget_places(&p->alike);
  return s;
}

/* A copy of pageable memory to a device: again from there, to there, by the same place. */
static weir_status see_again(pass *p, const wr_common *t, const wr_fact_call *c)
{
  bool added;
  places *l = &p->alike;
  weir_status s = l->count >= MOST_PLACES ? end_families(p) : WEIR_OK;
  uint64_t key = hash_mix(hash_mix(address_key(t, c->a, c->bytes), c->b), (uint64_t)t->stack);
  uint64_t *at = s ? NULL : hash_map_place(&l->at, key, &added);
  if (!at) return s ? s : no_memory(p);
  if (!added) {
    l->place[*at].count++;
    return ADD(p, REPEATED_COPY, c->id, p->families + (int64_t)*at, t->id, c->duration,
               (int64_t)c->bytes);
  }
  if (!wr_grow(&l->place, &l->capacity, l->count + 1, sizeof(place))) return no_memory(p);
  *at = l->count;
  l->place[l->count++] = (place){.count = 1, .event = c->id};
  return WEIR_OK;
}

/* A copy from a device to the host, or of what lies there to a device. */
static weir_status see_host_copy(pass *p, const wr_common *t, const wr_fact_call *c)
{
  place before, now = {.count = (uint64_t)t->copy, .event = c->id, .bytes = c->bytes};
  uint64_t key = address_key(t, t->copy == WEIR_COPY_DTOH ? c->a : c->b, 0);
  if (t->copy == WEIR_COPY_DTOH) return swap_place(p, &p->sent, key, &now, &before);
  const uint64_t *at = hash_map_get(&p->sent.at, key);
  if (!at) return WEIR_OK;
  before = p->sent.place[*at];
  p->sent.place[*at] = now;
  bool same = before.count == WEIR_COPY_DTOH && before.bytes == c->bytes;
  return same ? ADD(p, SENT_BACK, c->id, before.event) : WEIR_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A kernel, copy or memset: those of the part that older blocks outlived in part are early. */
static weir_status end_part(pass *p, process *x)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < x->early; i++)
    if (x->born[i]) s = ADD(p, EARLY_BLOCK, x->born[i]);
  x->born_count = x->early = 0;
  x->parts++;
  return s;
}

/* The group of blocks like this one. */
static weir_status find_group(pass *p, const wr_common *t, live_block *b)
{
  bool added;
  uint64_t key = hash_mix(hash_mix(5, (uint64_t)t->process), (uint64_t)t->stack);
  key = hash_mix(hash_mix(key, (uint64_t)(int64_t)t->own_device), b->bytes);
  uint64_t *at = hash_map_place(&p->by_group, key, &added);
  if (!at) return no_memory(p);
  if (added) {
    if (!wr_grow(&p->group, &p->group_capacity, p->group_count + 1, sizeof(pair_group)))
      return no_memory(p);
    p->group[p->group_count] =
        (pair_group){.process = t->process, .stack = t->stack, .least_free = INT64_MAX};
    *at = p->group_count++;
  }
  b->group = *at;
  return WEIR_OK;
}

static weir_status give_block(pass *p, process *x, const live_block *b)
{
  const wr_range *known = wr_ranges_find(&x->given.ranges, b->address, b->bytes);
  if (known && known->value == b->alloc) return WEIR_OK;
  if (!wr_ranges_put(&x->given.ranges, b->address, b->bytes, b->alloc)) return no_memory(p);
  return ADD(p, GIVEN_BLOCK, b->alloc);
}

static bool lives_in(const pass *p, const process *x, const wr_common *t, const live_block *b)
{
  return b->alloc && b->epoch == x->epoch && p->f->common[b->common].process == t->process;
}

/* The block with that address; of one whose allocation was not seen so many bytes from there. */
static weir_status give_address(pass *p, process *x, const wr_common *t, uint64_t address,
                                uint64_t bytes)
{
  const uint64_t *at = hash_map_get(&p->by_pointer, address_key(t, address, 0));
  if (at && lives_in(p, x, t, &p->block[*at])) return give_block(p, x, &p->block[*at]);
  for (size_t i = 0; i < p->block_count; i++) {
    const live_block *b = &p->block[i];
    if (address - b->address < b->bytes && lives_in(p, x, t, b)) return give_block(p, x, b);
  }
  if (wr_given_has(&x->given, address, bytes)) return WEIR_OK;
  return wr_ranges_put(&x->given.ranges, address, bytes ? bytes : 1, 0) ? WEIR_OK : no_memory(p);
}

static weir_status give_pool(pass *p, process *x, const wr_common *t, uint64_t pool)
{
  weir_status s = hash_map_put(&x->given.pools, pool, 1);
  for (size_t i = 0; !s && i < p->block_count; i++) {
    const live_block *b = &p->block[i];
    bool async = p->f->common[b->common].flags & WEIR_EVF_ASYNC;
    if (async && (!b->pool || b->pool == pool) && lives_in(p, x, t, b)) s = give_block(p, x, b);
  }
  return s;
}

/* A call that lets others use memory, or that says which memory is which. */
static weir_status see_giving(pass *p, process *x, const wr_common *t, const wr_fact_call *c)
{
  switch (t->giving) {
  case WR_GIVES_BLOCK:
    return give_address(p, x, t, c->a, 1);
  case WR_GIVES_RANGE:
    return give_address(p, x, t, c->a, c->bytes);
  case WR_GIVES_BOUND:
    return give_address(p, x, t, c->b, c->bytes);
  case WR_GIVES_POOL:
    return give_pool(p, x, t, c->a);
  case WR_NAMES_POOL:
    hash_map_remove(&x->given.pools, c->a);
    return WEIR_OK;
  case WR_GIVES_PHYSICAL:
    return wr_given_physical(&x->given, c->a) ? WEIR_OK : no_memory(p);
  case WR_GIVES_BOUND_PHYSICAL:
    return wr_given_physical(&x->given, c->b) ? WEIR_OK : no_memory(p);
  case WR_MAPS_PHYSICAL:
    return wr_given_map(&x->given, c->b, c->a, c->bytes) ? WEIR_OK : no_memory(p);
  case WR_UNMAPS_PHYSICAL:
    wr_ranges_drop(&x->given.ranges, c->a, c->bytes);
    return WEIR_OK;
  case WR_GIVES_NOTHING:
    return WEIR_OK;
  }
  return WEIR_OK;
}

/* Whose memory begins or ends there; what kernels and the host may both look at. */
static weir_status see_owner(pass *p, process *x, const wr_common *t, const wr_fact_call *c)
{
  bool kept = true;
  if (t->kind == WEIR_EV_ALLOC && t->mem == WEIR_MEM_IMPORTED)
    kept = wr_ranges_put(&x->given.ranges, c->a, c->bytes, c->id);
  else if (t->kind == WEIR_EV_ALLOC && t->mem == WEIR_MEM_PHYSICAL)
    hash_map_remove(&x->given.physical, c->a);
  else if (t->kind == WEIR_EV_FREE || t->kind == WEIR_EV_ALLOC)
    wr_ranges_drop(&x->given.ranges, c->a, t->kind == WEIR_EV_FREE ? 1 : c->bytes);
  bool locked = (t->kind == WEIR_EV_ALLOC && t->mem == WEIR_MEM_PINNED) ||
                (t->kind == WEIR_EV_HOSTREG && c->bytes);
  x->shares |=
      (locked && c->b & MAPPED) || (t->kind == WEIR_EV_ALLOC && t->mem == WEIR_MEM_MANAGED);
  if (locked)
    kept &= wr_ranges_put(&x->apart, c->a, c->bytes, c->id);
  else if (t->kind == WEIR_EV_FREE || t->kind == WEIR_EV_HOSTREG)
    wr_ranges_drop(&x->apart, c->a, 1);
  if (locked && t->kind == WEIR_EV_ALLOC && c->b & COMBINED)
    kept &= wr_ranges_put(&x->combined, c->a, c->bytes, c->id);
  else if (x->combined.root && t->kind != WEIR_EV_HOSTREG)
    wr_ranges_drop(&x->combined, c->a, 1);
  return kept ? WEIR_OK : no_memory(p);
}

static weir_status see_alloc(pass *p, process *x, const wr_common *t, const wr_fact_call *c)
{
  bool added;
  if (p->block_count >= MOST_PLACES) hash_map_free(&p->by_pointer), p->block_count = 0;
  live_block b = {.alloc = c->id,
                  .part = x->parts,
                  .allocs = x->allocs++,
                  .address = c->a,
                  .bytes = c->bytes,
                  .pool = t->flags & WEIR_EVF_ASYNC ? c->b : 0};
  weir_status s = find_group(p, t, &b);
  if (s) return s;
  pair_group *g = &p->group[b.group];
  b.again = ++g->live <= g->most;
  if (!b.again) g->most = g->live;
  uint64_t *at = hash_map_place(&p->by_pointer, address_key(t, c->a, 0), &added);
  if (!at) return no_memory(p);
  if (added) {
    if (!wr_grow(&p->block, &p->block_capacity, p->block_count + 1, sizeof(b))) return no_memory(p);
    *at = p->block_count++;
  }
  b.born = x->born_count, b.epoch = x->epoch, b.common = c->common, b.duration = c->duration;
  p->block[*at] = b;
  if (x->born_count < MOST_PLACES) {
    if (!wr_grow(&x->born, &x->born_capacity, x->born_count + 1, sizeof(*x->born)))
      return no_memory(p);
    x->born[x->born_count++] = c->id;
  }
  if (!wr_ranges_put(&x->untouched, c->a, c->bytes, c->id)) return no_memory(p);
  bool of_given = t->flags & WEIR_EVF_ASYNC && x->given.pools.count &&
                  (!c->b || hash_map_get(&x->given.pools, c->b)); /* 0: not known which */
  return of_given ? give_block(p, x, &b) : WEIR_OK;
}

static weir_status see_pair(pass *p, const process *x, const live_block *b,
                            const wr_fact_call *freed)
{
  const wr_common *t = &p->f->common[b->common];
  uint64_t between = x->allocs - 1 - b->allocs;
  pair_group *g = &p->group[b->group];
  g->live--;
  if (wr_given_has(&x->given, b->address, b->bytes)) return WEIR_OK;
  g->again += b->again;
  if (freed->duration < g->least_free) g->least_free = freed->duration;
  if (between < 2) {
    if (!g->brief++) g->first_brief = b->alloc;
  }
  return ADD(p, PAIR, b->alloc, freed->id, (int64_t)b->group, (int64_t)b->again, (int64_t)between,
             t->id, b->duration, freed->duration);
}

static weir_status see_free(pass *p, process *x, const wr_common *t, const wr_fact_call *c)
{
  uint64_t key = address_key(t, c->a, 0), *at = hash_map_get(&p->by_pointer, key);
  if (!at || p->block[*at].epoch != x->epoch || !p->block[*at].alloc) return WEIR_OK;
  live_block b = p->block[*at];
  p->block[*at].alloc = 0;
  weir_status s = see_pair(p, x, &b, c);
  if (!s && b.part == x->parts && b.born < x->born_count) {
    if (x->born[b.born] == b.alloc) x->born[b.born] = 0;
  } else if (!s && b.part != x->parts) {
    if (x->born_count && !wr_given_has(&x->given, b.address, b.bytes))
      s = ADD(p, LATE_FREE, c->id, b.alloc, t->id, (int64_t)b.bytes);
    x->early = x->born_count;
  }
  const wr_range *u = wr_ranges_find(&x->untouched, c->a, 1);
  if (!s && u && u->value == b.alloc) s = ADD(p, UNTOUCHED, b.alloc, c->id);
  wr_ranges_drop(&x->untouched, c->a, 1);
  return s;
}

/* ---- waits for events ------------------------------------------------------------------------ */

/* A wait for an event; and a question of how long it was up to there, which needs such a wait. */
static weir_status see_event(pass *p, const wr_thread_state *h, const wr_common *t,
                             const wr_fact_call *c)
{
  uint64_t process = hash_mix(13, (uint64_t)t->process);
  if (t->kind == WEIR_EV_SYNC) {
    if (p->by_event.count >= MOST_PLACES) hash_map_free(&p->by_event);
    return hash_map_put(&p->by_event, hash_mix(process, c->a), (uint64_t)c->id);
  }
  weir_status s = h->wait ? ADD(p, TIMED_WAIT, h->wait) : WEIR_OK;
  for (int i = 0; !s && i < 2; i++) {
    uint64_t key = hash_mix(process, i ? c->b : c->a), *at = hash_map_get(&p->by_event, key);
    if (at && (int64_t)*at != h->wait) s = ADD(p, TIMED_WAIT, (int64_t)*at);
    hash_map_remove(&p->by_event, key);
  }
  return s;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool of_host(int mem)
{
  return mem == WEIR_MEM_PAGEABLE || mem == WEIR_MEM_PINNED || mem == WEIR_MEM_HOST;
}

/* A copy or memset. What it does to memory that others may use is nothing to be judged. */
static weir_status see_moved(pass *p, const process *x, const wr_common *t, const wr_fact_call *c)
{
  weir_status s = WEIR_OK;
  bool copy = t->kind == WEIR_EV_COPY, up = copy && t->copy == WEIR_COPY_HTOD,
       back = copy && t->copy == WEIR_COPY_DTOH;
  bool device = t->mem == WEIR_MEM_DEVICE && c->bytes, locked = t->src_mem == WEIR_MEM_PINNED;
  bool host = t->src_mem == WEIR_MEM_PAGEABLE || t->src_mem == WEIR_MEM_HOST || locked;
  if (wr_given_has(&x->given, c->a, c->bytes) || (copy && wr_given_has(&x->given, c->b, c->bytes)))
    return copy ? ADD(p, GIVEN_COPY, c->id) : s;
  if (device) s = see_write(p, x, t, c);
  if (!s && up && device) s = see_upload(p, x, t, c);
  if (!s && up && host && c->bytes) s = see_again(p, t, c);
  if (!s && back && t->src_mem == WEIR_MEM_DEVICE) s = see_read_back(p, x, t, c);
  if (!s && back && x->combined.root && wr_ranges_find(&x->combined, c->a, c->bytes))
    s = ADD(p, COMBINED_READ, c->id, t->id, c->duration, (int64_t)c->bytes);
  return !s && (up || back) ? see_host_copy(p, t, c) : s;
}

static weir_status see_memory(pass *p, process *x, const wr_common *t, const wr_fact_call *c)
{
  bool captured = t->flags & WEIR_EVF_CAPTURE, device = t->mem == WEIR_MEM_DEVICE && !captured;
  weir_status s = WEIR_OK;
  if (t->kind == WEIR_EV_ALLOC && device) s = see_alloc(p, x, t, c);
  if (t->kind == WEIR_EV_FREE && !captured) {
    s = see_free_of_upload(p, x, t, c);
    if (!s) s = see_free(p, x, t, c);
  }
  bool write = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET;
  return !s && write && !captured ? see_moved(p, x, t, c) : s;
}

static weir_status see_use(pass *p, process *x, const wr_common *t, const wr_fact_call *c)
{
  bool work = t->kind == WEIR_EV_LAUNCH || t->kind == WEIR_EV_CALL || t->flags & WEIR_EVF_CAPTURE;
  bool moves = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET;
  if (work) wr_ranges_clear(&x->untouched);
  if (moves && !work && x->untouched.root) {
    wr_ranges_drop(&x->untouched, c->a, c->bytes);
    if (t->kind == WEIR_EV_COPY) wr_ranges_drop(&x->untouched, c->b, c->bytes);
  }
  if (t->kind == WEIR_EV_COPY && x->apart.root) {
    wr_ranges_drop(&x->apart, c->a, c->bytes);
    wr_ranges_drop(&x->apart, c->b, c->bytes);
  }
  return work || moves ? end_part(p, x) : WEIR_OK;
}

static void count_reads(process *x, const wr_common *t)
{
  bool captured = t->flags & WEIR_EVF_CAPTURE, copy = t->kind == WEIR_EV_COPY;
  bool work = t->kind == WEIR_EV_LAUNCH || t->kind == WEIR_EV_CALL;
  if (t->kind == WEIR_EV_RESET) {
    x->epoch++;
    wr_ranges_clear(&x->untouched);
    wr_ranges_clear(&x->given.ranges);
  }
  bool counts = t->kind <= WEIR_EV_MEMSET || work || t->kind == WEIR_EV_RESET;
  if (!counts) return;
  bool reads = work || (copy && !of_host(t->src_mem)) || captured;
  x->reads += reads;
  x->reads_or_frees += reads || t->kind == WEIR_EV_FREE;
  x->writes += !copy || !of_host(t->mem);
}

static weir_status see_call(pass *p, const wr_fact_call *c)
{
  wr_common *t = &p->f->common[c->common];
  process *x = process_of(p, t);
  wr_thread_state *h = thread_of(p, t);
  if (!x || !h) return no_memory(p);
  weir_status s = see_use(p, x, t, c);
  if (s || !t->succeeded) return s;
  count_reads(x, t);
  if (t->times || (t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_EVENT))
    s = see_event(p, h, t, c);
  if (!s && t->giving) s = see_giving(p, x, t, c);
  bool begins = t->kind == WEIR_EV_ALLOC && !(t->flags & WEIR_EVF_CAPTURE);
  if (!s && (begins || t->kind == WEIR_EV_HOSTREG)) s = see_owner(p, x, t, c);
  if (!s) s = see_memory(p, x, t, c);
  if (!s && t->kind == WEIR_EV_FREE && !(t->flags & WEIR_EVF_CAPTURE)) s = see_owner(p, x, t, c);
  bool shared = x->shares || x->apart.root || x->given.ranges.root;
  if (!s) s = wr_thread_take(&p->threads, h, t, c, shared);
  return s ? s : wr_stream_take(&p->streams, t, c, &x->waits);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* What is live at the end, and untouched. */
static weir_status end_process(pass *p, process *x)
{
  weir_status s = WEIR_OK;
  for (const wr_range *u; !s && (u = wr_ranges_any(&x->untouched)) != NULL;) {
    const int64_t v[] = {u->value, 0};
    s = wr_fact_add_null(&p->f->tables, WR_FACT_UNTOUCHED, v);
    wr_ranges_drop(&x->untouched, u->begin, 1);
  }
  return s;
}

static weir_status end_all(pass *p)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < p->thread_count; i++)
    s = wr_thread_end(&p->threads, &p->thread[i]);
  for (size_t i = 0; !s && i < p->process_count; i++)
    s = end_process(p, &p->process[i]);
  if (!s) s = end_families(p);
  if (!s) s = wr_thread_facts_end(&p->threads);
  if (!s) s = wr_storm_facts_end(&p->storms);
  if (!s) s = wr_handle_facts_end(&p->handles);
  for (size_t i = 0; !s && i < p->group_count; i++) {
    const pair_group *g = &p->group[i];
    s = ADD(p, PAIR_GROUP, (int64_t)i, g->process, g->stack, (int64_t)g->again, (int64_t)g->brief,
            g->first_brief, g->least_free);
  }
  for (size_t i = 0; !s && i < p->f->count; i++) {
    const wr_common *t = &p->f->common[i];
    if (!t->calls) continue;
    s = ADD(p, TEMPLATE_USE, t->id, (int64_t)t->calls, (int64_t)t->small, (int64_t)t->ns,
            (int64_t)t->bytes, (int64_t)t->most, t->first, (int64_t)t->longest);
  }
  return s;
}

static void forget(pass *p)
{
  for (size_t i = 0; i < p->process_count; i++) {
    wr_ranges_clear(&p->process[i].untouched);
    wr_ranges_clear(&p->process[i].apart);
    wr_ranges_clear(&p->process[i].combined);
    wr_given_free(&p->process[i].given);
    free(p->process[i].born);
  }
  wr_thread_facts_free(&p->threads);
  wr_stream_facts_free(&p->streams);
  wr_storm_facts_free(&p->storms);
  wr_handle_facts_free(&p->handles);
  hash_map_free(&p->by_process);
  hash_map_free(&p->by_thread);
  hash_map_free(&p->by_group);
  hash_map_free(&p->by_pointer);
  hash_map_free(&p->by_event);
  forget_places(&p->written);
  forget_places(&p->copied);
  forget_places(&p->read);
  forget_places(&p->alike);
  forget_places(&p->sent);
}

static void count_use(wr_common *t, const wr_fact_call *c)
{
  t->calls++;
  t->ns += (uint64_t)c->duration;
  t->bytes += c->bytes & INT64_MAX;
  t->small += c->bytes >= 1 && c->bytes <= WR_SMALL_BYTES;
  if (c->bytes > t->most) t->most = c->bytes;
  if ((uint64_t)c->duration > t->longest) t->longest = (uint64_t)c->duration;
  if (c->bytes && (!t->first || c->id < t->first)) t->first = c->id;
}

/* A time of an untrusted trace, so that sums of a few cannot overflow: 2^61 ns are 73 years. */
static int64_t sane_time(int64_t ns)
{
  const int64_t most = INT64_C(1) << 61;
  return ns > most ? most : ns < -most ? -most : ns;
}

/* False: the call is nothing that is looked at. */
static bool load_call(const pass *p, const wr_event *e, wr_fact_call *c)
{
  const wr_common *t = &p->f->common[e->at];
  if ((t->kind > WEIR_EV_LAUNCH && t->kind != WEIR_EV_RESET && t->kind != WEIR_EV_CALL &&
       t->kind != WEIR_EV_HOSTREG && !t->times && !(t->flags & WEIR_EVF_CAPTURE)) ||
      t->kind == WEIR_EV_CACHE)
    return false;
  *c = (wr_fact_call){.id = e->id,
                      .time = sane_time(e->start),
                      .a = e->a,
                      .b = e->b,
                      .bytes = e->bytes,
                      .duration = sane_time(e->ns),
                      .common = e->at};
  if (t->kind == WEIR_EV_ALLOC) c->time = sane_time(c->time + c->duration);
  return true;
}

/* ---- allocations that have not returned ------------------------------------------------------ */

static bool is_before(const wr_fact_call *a, const wr_fact_call *b)
{
  return a->time != b->time ? a->time < b->time : a->id < b->id;
}

static weir_status hold_call(pass *p, const wr_fact_call *c)
{
  if (!wr_grow(&p->held, &p->held_capacity, p->held_count + 1, sizeof(*c))) return no_memory(p);
  size_t at = p->held_count++;
  for (; at && is_before(c, &p->held[(at - 1) / 2]); at = (at - 1) / 2)
    p->held[at] = p->held[(at - 1) / 2];
  p->held[at] = *c;
  return WEIR_OK;
}

static wr_fact_call first_held(pass *p)
{
  wr_fact_call first = p->held[0], moved = p->held[--p->held_count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < p->held_count; at = child) {
    if (child + 1 < p->held_count && is_before(&p->held[child + 1], &p->held[child])) child++;
    if (!is_before(&p->held[child], &moved)) break;
    p->held[at] = p->held[child];
  }
  if (p->held_count) p->held[at] = moved;
  return first;
}

static weir_status use_call(pass *p, const wr_fact_call *c)
{
  count_use(&p->f->common[c->common], c);
  return see_call(p, c);
}

/* Those that return before `next`, NULL: all. */
static weir_status use_held(pass *p, const wr_fact_call *next)
{
  weir_status s = WEIR_OK;
  while (!s && p->held_count && (!next || is_before(&p->held[0], next))) {
    wr_fact_call c = first_held(p);
    s = use_call(p, &c);
  }
  return s;
}

/* What does not ask for memory: it need not wait for allocations that have not returned. */
static weir_status take_begun(pass *p, const wr_event *e)
{
  wr_common *t = &p->f->common[e->at];
  weir_status st = t->object ? wr_handle_take(&p->handles, t, e) : WEIR_OK;
  if (st || !t->orders) return st;
  if (!thread_of(p, t)) return no_memory(p);
  wr_event sane = *e;
  sane.start = sane_time(e->start), sane.ns = sane_time(e->ns);
  return wr_storm_take(&p->storms, t->thread_index, t, &sane);
}

weir_status wr_facts_take(void *context, const wr_event *e)
{
  wr_fact_call c;
  pass *p = context;
  weir_status s = take_begun(p, e);
  if (s || !load_call(p, e, &c)) return s;
  wr_fact_call begun = c;
  begun.time = sane_time(e->start);
  s = use_held(p, &begun);
  if (s || p->f->common[c.common].kind != WEIR_EV_ALLOC) return s ? s : use_call(p, &c);
  if (p->held_count >= MOST_PLACES) s = use_held(p, NULL);
  return s ? s : hold_call(p, &c);
}

/* ---- templates ------------------------------------------------------------------------------- */

static int ordinal(int64_t device)
{
  return device == WR_HOST ? -1 : (int)device;
}

/* It queues something, or waits: see storm_facts.h. */
static bool orders(const wr_template *t)
{
  bool memory = t->kind >= WEIR_EV_FREE && t->kind <= WEIR_EV_LAUNCH; /* free, copy, memset, wait */
  return t->done && (memory || t->kind == WEIR_EV_CALL);
}

static wr_common common_of(const wr_template *t, const char *function)
{
  int own = ordinal(t->device);
  wr_common c = {.id = t->id,
                 .process = t->process,
                 .thread = t->thread,
                 .stack = t->stack,
                 .stream = (uint64_t)t->stream,
                 .device = own < 0 ? ordinal(t->src_device) : own,
                 .own_device = own,
                 .context = (int)t->context,
                 .kind = (int)t->kind,
                 .copy = (int)t->copy,
                 .mem = (int)t->mem,
                 .src_mem = (int)t->src_mem,
                 .flags = t->flags,
                 .succeeded = t->succeeded,
                 .asked = t->asked,
                 .giving = wr_giving_of(function),
                 .times = function && strstr(function, "EventElapsedTime"),
                 .process_index = SIZE_MAX,
                 .thread_index = SIZE_MAX,
                 .stream_index = SIZE_MAX,
                 .orders = orders(t)};
  if (t->succeeded) wr_handle_call_of(c.kind, function, &c.object, &c.ends);
  return c;
}

/* What calls of these kinds do is known by the names of their functions. */
static weir_status make_common(pass *p)
{
  wr_facts *f = p->f;
  const wr_events *x = f->events;
  sqlite3_stmt *q = NULL;
  f->common = calloc(x->count + 1, sizeof(*f->common));
  if (!f->common) return no_memory(p);
  weir_status s = wr_db_prepare(p->db, "SELECT name FROM main.api WHERE id = ?", &q);
  for (; !s && f->count < x->count; f->count++) {
    const wr_template *t = &x->templates[f->count];
    bool named = t->kind == WEIR_EV_EVENT || t->kind == WEIR_EV_CALL || t->kind == WEIR_EV_CONTEXT;
    if (named) sqlite3_bind_int64(q, 1, t->api);
    named = named && sqlite3_step(q) == SQLITE_ROW;
    f->common[f->count] = common_of(t, named ? (const char *)sqlite3_column_text(q, 0) : NULL);
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  return s;
}

weir_status wr_facts_begin(wr_facts_pass **out, wr_facts *f, const wr_db *db,
                           const wr_facts_settings *settings)
{
  wr_facts_pass *p = *out = malloc(sizeof(*p));
  if (!p) return wr_db_out_of_memory(db);
  *p = (wr_facts_pass){.f = f,
                       .db = db,
                       .threads = {.tables = &f->tables},
                       .streams = {.tables = &f->tables, .timed = settings->timed},
                       .storms = {.tables = &f->tables},
                       .handles = {.tables = &f->tables}};
  f->events = settings->events;
  weir_status s = wr_fact_open(&f->tables);
  return s ? s : make_common(p);
}

weir_status wr_facts_end(wr_facts_pass *p)
{
  weir_status s = use_held(p, NULL);
  if (!s) s = end_all(p);
  return s ? s : wr_fact_make_tables(&p->f->tables, p->db);
}

void wr_facts_close(wr_facts_pass *p)
{
  if (!p) return;
  forget(p);
  free(p->held);
  free(p->process);
  free(p->thread);
  free(p->block);
  free(p->group);
  free(p->written.place);
  free(p->copied.place);
  free(p->read.place);
  free(p->alike.place);
  free(p->sent.place);
  free(p);
}

void wr_facts_free(wr_facts *f)
{
  wr_fact_close(&f->tables);
  free(f->common);
  *f = (wr_facts){0};
}

const wr_common *wr_facts_common(const wr_facts *f, int64_t id)
{
  size_t at = wr_events_template(f->events, id);
  return at < f->count ? &f->common[at] : NULL;
}
