/* map.c: see map.h. At most seven tenths of the slots are used. */
#include "core/base/map.h"

#include <stdlib.h>

struct hash_map_slot {
  uint64_t key; /* meaningful when `used` */
  uint64_t value;
  bool used;
};

static size_t home_slot(const hash_map *map, uint64_t key)
{
  return (size_t)hash_mix(0, key) & map->mask;
}

/* Where `key` is or would be; the map has slots. */
static size_t probe_map(const hash_map *map, uint64_t key)
{
  size_t at = home_slot(map, key);
  while (map->slots[at].used && map->slots[at].key != key)
    at = (at + 1) & map->mask;
  return at;
}

uint64_t *hash_map_get(const hash_map *map, uint64_t key)
{
  if (!map->count) return NULL;
  hash_map_slot *slot = &map->slots[probe_map(map, key)];
  return slot->used ? &slot->value : NULL;
}

static bool grow_map(hash_map *map)
{
  size_t slots = map->mask ? (map->mask + 1) * 2 : 64;
  hash_map bigger = {calloc(slots, sizeof(hash_map_slot)), slots - 1, map->count};
  if (!bigger.slots) return false;
  for (size_t i = 0; map->mask && i <= map->mask; i++)
    if (map->slots[i].used) bigger.slots[probe_map(&bigger, map->slots[i].key)] = map->slots[i];
  free(map->slots);
  *map = bigger;
  return true;
}

uint64_t *hash_map_place(hash_map *map, uint64_t key, bool *added)
{
  uint64_t *found = hash_map_get(map, key);
  if (added) *added = false;
  if (found) return found;
  if (map->count * 10 >= map->mask * 7 && !grow_map(map)) return NULL;
  hash_map_slot *slot = &map->slots[probe_map(map, key)];
  *slot = (hash_map_slot){key, 0, true};
  map->count++;
  if (added) *added = true;
  return &slot->value;
}

weir_status hash_map_put(hash_map *map, uint64_t key, uint64_t value)
{
  uint64_t *place = hash_map_place(map, key, NULL);
  if (!place) return weir_fail(WEIR_ENOMEM, "no memory for a map of %zu entries", map->count + 1);
  *place = value;
  return WEIR_OK;
}

void hash_map_remove(hash_map *map, uint64_t key)
{
  if (!map->count) return;
  size_t hole = probe_map(map, key);
  if (!map->slots[hole].used) return;
  for (size_t i = (hole + 1) & map->mask; map->slots[i].used; i = (i + 1) & map->mask) {
    size_t want = home_slot(map, map->slots[i].key);
    if (((i - want) & map->mask) < ((i - hole) & map->mask))
      continue; /* nearer home than the hole */
    map->slots[hole] = map->slots[i];
    hole = i;
  }
  map->slots[hole].used = false;
  map->count--;
}

void hash_map_free(hash_map *map)
{
  free(map->slots);
  *map = (hash_map){0};
}

bool hash_map_next(const hash_map *map, size_t *at, uint64_t *key, uint64_t **value)
{
  for (; map->mask && *at <= map->mask; (*at)++) {
    if (!map->slots[*at].used) continue;
    *key = map->slots[*at].key;
    *value = &map->slots[*at].value;
    (*at)++;
    return true;
  }
  return false;
}
