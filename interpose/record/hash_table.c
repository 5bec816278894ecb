/* hash_table.c: see hash_table.h.
 *
 * An entry's words are written after its key is claimed, y last, and a removed entry's y is 0:
 * until the words are there nobody takes the entry, and none of the words of the key before is seen
 * with the new key. Probing past other threads' half-written entries looks at their keys only. */
#include "core/base/pages.h"
#include "interpose/record/hash_table.h"

#include <stddef.h>
#include <sys/mman.h>

#define GONE  UINT64_MAX
#define PROBE 16u

static uint64_t slots_of(unsigned level)
{
  return UINT64_C(1024) << (3 * level);
}

static uint64_t spread_key(uint64_t key)
{
  key ^= key >> 32;
  key *= UINT64_C(0x9e3779b97f4a7c15);
  return key ^ key >> 29;
}

/* The level's slots, mapped on first use. Of two threads that map it at once one gives its own
 * back. */
static hash_entry *level_make(hash_table *t, unsigned level)
{
  hash_entry *e = atomic_load_explicit(&t->level[level], memory_order_acquire);
  if (e) return e;
  uint64_t bytes = slots_of(level) * sizeof(hash_entry);
  hash_entry *mine = pages_alloc(bytes);
  if (!mine) return NULL;
  if (atomic_compare_exchange_strong(&t->level[level], &e, mine)) return mine;
  munmap(mine, bytes);
  return e;
}

/* The n-th slot a key may live in. */
static hash_entry *hash_slot_at(hash_entry *slots, unsigned level, uint64_t hash, unsigned n)
{
  return &slots[(hash + n) & (slots_of(level) - 1)];
}

hash_entry *hash_table_find(hash_table *t, uint64_t key)
{
  uint64_t h = spread_key(key);
  for (unsigned l = 0; l < WEIR_TABLE_LEVELS; l++) {
    hash_entry *slots = atomic_load_explicit(&t->level[l], memory_order_acquire);
    if (!slots) return NULL;
    for (unsigned n = 0; n < PROBE; n++) {
      hash_entry *e = hash_slot_at(slots, l, h, n);
      uint64_t k = atomic_load_explicit(&e->key, memory_order_acquire);
      if (k == key) return e;
      if (k == 0) break;
    }
  }
  return NULL;
}

/* A free slot of the level claimed for the key, or NULL. */
static hash_entry *claim_slot(hash_entry *slots, unsigned level, uint64_t key)
{
  uint64_t h = spread_key(key);
  for (unsigned n = 0; n < PROBE; n++) {
    hash_entry *e = hash_slot_at(slots, level, h, n);
    uint64_t k = atomic_load_explicit(&e->key, memory_order_relaxed);
    while (k == 0 || k == GONE)
      if (atomic_compare_exchange_weak(&e->key, &k, key)) return e;
  }
  return NULL;
}

hash_entry *hash_table_claim(hash_table *t, uint64_t key, bool *there)
{
  uint64_t h = spread_key(key);
  hash_entry *free_slot = NULL;
  *there = false;
  if (key == 0 || key == GONE) return NULL;
  for (unsigned l = 0; l < WEIR_TABLE_LEVELS; l++) {
    hash_entry *slots = atomic_load_explicit(&t->level[l], memory_order_acquire);
    for (unsigned n = 0; slots && n < PROBE; n++) {
      hash_entry *e = hash_slot_at(slots, l, h, n);
      uint64_t k = atomic_load_explicit(&e->key, memory_order_acquire);
      *there = k == key;
      if (*there) return e;
      if (!free_slot && (k == 0 || k == GONE)) free_slot = e;
      if (k == 0) break;
    }
    if (!slots) break;
  }
  uint64_t k = free_slot ? atomic_load_explicit(&free_slot->key, memory_order_relaxed) : key;
  if ((k == 0 || k == GONE) && atomic_compare_exchange_strong(&free_slot->key, &k, key))
    return free_slot;
  hash_entry *e = NULL; /* it went to another */
  for (unsigned l = 0; !e && l < WEIR_TABLE_LEVELS; l++) {
    hash_entry *slots = level_make(t, l);
    if (!slots) return NULL;
    e = claim_slot(slots, l, key);
  }
  return e;
}

void hash_entry_set(hash_entry *e, uint64_t x, uint64_t y)
{
  atomic_store_explicit(&e->x, x, memory_order_relaxed);
  atomic_store_explicit(&e->y, y, memory_order_release);
}

hash_entry *hash_table_put(hash_table *t, uint64_t key, uint64_t x, uint64_t y)
{
  bool there;
  hash_entry *e = hash_table_claim(t, key, &there);
  if (e) hash_entry_set(e, x, y);
  return e;
}

/* Whoever makes y 0 has taken the entry, and with it the key, which no other thread can claim
 * before it is GONE. */
static bool claim_entry(hash_entry *e, uint64_t *x, uint64_t y)
{
  *x = atomic_load_explicit(&e->x, memory_order_relaxed);
  if (!y || !atomic_compare_exchange_strong(&e->y, &y, 0)) return false;
  atomic_store_explicit(&e->key, GONE, memory_order_release);
  return true;
}

bool hash_table_take(hash_table *t, uint64_t key, uint64_t *x, uint64_t *y)
{
  if (key == 0 || key == GONE) return false;
  hash_entry *e = hash_table_find(t, key);
  if (!e) return false;
  *y = atomic_load_explicit(&e->y, memory_order_acquire);
  return claim_entry(e, x, *y);
}

bool hash_table_take_as(hash_table *t, uint64_t key, uint64_t *x, uint64_t y)
{
  if (key == 0 || key == GONE) return false;
  hash_entry *e = hash_table_find(t, key);
  return e && atomic_load_explicit(&e->y, memory_order_acquire) == y && claim_entry(e, x, y);
}

void hash_table_each(hash_table *t,
                     void (*visit)(void *context, uint64_t key, uint64_t x, uint64_t y),
                     void *context)
{
  for (unsigned l = 0; l < WEIR_TABLE_LEVELS; l++) {
    hash_entry *slots = atomic_load_explicit(&t->level[l], memory_order_acquire);
    for (uint64_t i = 0; slots && i < slots_of(l); i++) {
      uint64_t k = atomic_load_explicit(&slots[i].key, memory_order_acquire);
      if (k == 0 || k == GONE) continue;
      visit(context, k, atomic_load_explicit(&slots[i].x, memory_order_relaxed),
            atomic_load_explicit(&slots[i].y, memory_order_acquire));
    }
  }
}
