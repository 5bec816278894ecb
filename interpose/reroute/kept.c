/* kept.c: see kept.h. An object's bits change by compare-and-swap, so that of two calls that end it
 * one keeps it, and of two that want it one gets it; a place holds a handle only while its object
 * is away. */
#include "interpose/reroute/kept.h"

#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/reroute/context_cache.h"
#include "interpose/reroute/places.h"
#include "interpose/reroute/reroute.h"

#define TRAITS_BITS 48
#define TRAITS      ((UINT64_C(1) << TRAITS_BITS) - 1)

bool kept_possible(const hook_call *c, unsigned action, unsigned *number)
{
  if (!reroute_applies(c, action) || reroute_hands_off() || reroute_is_watched() ||
      runtime_is_elsewhere(c))
    return false;
  context_refresh(&thread_self);
  *number = thread_self.last_context_number;
  return *number && *number < KEPT_CONTEXTS;
}

void kept_made(kept_objects *k, uint64_t handle, unsigned number, uint64_t traits)
{
  (void)hash_table_put(&k->known, handle, (uint64_t)number << TRAITS_BITS | (traits & TRAITS),
                       KEPT_KNOWN);
}

static uint64_t kept_as(const hash_entry *e)
{
  return atomic_load_explicit(&e->x, memory_order_relaxed);
}

static bool put_in_place(kept_objects *k, uint64_t handle, unsigned number)
{
  for (unsigned i = 0; i < KEPT_EACH; i++) {
    uint64_t none = 0;
    if (!atomic_load_explicit(&k->place[number][i], memory_order_relaxed) &&
        atomic_compare_exchange_strong(&k->place[number][i], &none, handle))
      return true;
  }
  return false;
}

kept_end kept_ended(kept_objects *k, uint64_t handle, bool possible)
{
  hash_entry *e = hash_table_find(&k->known, handle);
  if (!e) return KEPT_NOT;
  uint64_t had = atomic_load(&e->y);
  do {
    if (had & KEPT_AWAY) return KEPT_TWICE;
    if (!had || had & KEPT_SPOILT || !possible) return KEPT_NOT;
  } while (!atomic_compare_exchange_weak(&e->y, &had, KEPT_KNOWN | KEPT_AWAY));
  if (put_in_place(k, handle, (unsigned)(kept_as(e) >> TRAITS_BITS))) return KEPT_NOW;
  atomic_store(&e->y, had);
  return KEPT_NOT;
}

/* Whether the object of a place that was just emptied is the one that is wanted. */
static bool take_if_ready(kept_objects *k, uint64_t handle, uint64_t want,
                          bool (*ready)(uint64_t handle))
{
  uint64_t away = KEPT_KNOWN | KEPT_AWAY;
  hash_entry *e = hash_table_find(&k->known, handle);
  return e && kept_as(e) == want && ready(handle) &&
         atomic_compare_exchange_strong(&e->y, &away, KEPT_KNOWN | KEPT_PRISTINE);
}

uint64_t kept_again(kept_objects *k, unsigned number, uint64_t traits,
                    bool (*ready)(uint64_t handle))
{
  enum { QUESTIONS_MOST = 4 };
  const uint64_t want = (uint64_t)number << TRAITS_BITS | (traits & TRAITS);
  unsigned asked = 0;
  for (unsigned i = 0; i < KEPT_EACH && asked < QUESTIONS_MOST; i++) {
    uint64_t handle = atomic_load_explicit(&k->place[number][i], memory_order_relaxed);
    hash_entry *e = handle ? hash_table_find(&k->known, handle) : NULL;
    if (handle && (!e || kept_as(e) != want)) continue;
    if (!handle || !atomic_compare_exchange_strong(&k->place[number][i], &handle, 0)) continue;
    asked++;
    if (take_if_ready(k, handle, want, ready)) return handle;
    (void)put_in_place(k, handle, number); /* none is free: it stays away, and is the context's */
  }
  return 0;
}

unsigned kept_mark(kept_objects *k, uint64_t handle, unsigned set, unsigned clear)
{
  hash_entry *e = kept_any(k) ? hash_table_find(&k->known, handle) : NULL;
  uint64_t had = e ? atomic_load_explicit(&e->y, memory_order_relaxed) : 0;
  while (had && ((had & set) != set || had & clear) &&
         !atomic_compare_exchange_weak(&e->y, &had, (had | set) & ~(uint64_t)clear))
    ;
  return (unsigned)had;
}

unsigned kept_bits(kept_objects *k, uint64_t handle)
{
  return kept_mark(k, handle, 0, 0);
}

uint64_t kept_traits(kept_objects *k, uint64_t handle)
{
  hash_entry *e = kept_any(k) ? hash_table_find(&k->known, handle) : NULL;
  return e ? kept_as(e) & TRAITS : 0;
}

void kept_gone(kept_objects *k, uint64_t handle)
{
  uint64_t x, y;
  if (kept_any(k)) (void)hash_table_take(&k->known, handle, &x, &y);
}

typedef struct gone_context {
  kept_objects *objects;
  unsigned number;
} gone_context;

static void forget_if_of(void *context, uint64_t handle, uint64_t x, uint64_t y)
{
  const gone_context *g = context;
  if (y && x >> TRAITS_BITS == g->number) kept_gone(g->objects, handle);
}

void kept_context_gone(kept_objects *k, unsigned number)
{
  if (!kept_any(k) || number >= KEPT_CONTEXTS) return;
  hash_table_each(&k->known, forget_if_of, &(gone_context){k, number});
  for (unsigned i = 0; i < KEPT_EACH; i++)
    atomic_store(&k->place[number][i], 0);
}
