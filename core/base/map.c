/* map.c: see map.h. At most three quarters of the slots are used. */
#include "core/base/map.h"

#include <stdlib.h>

static hash_map_slot *probe_map(const hash_map *map, uint64_t key)
{
  size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20);
  for (;; at++) {
    hash_map_slot *slot = &map->slots[at & (map->capacity - 1)];
    if (!slot->used || slot->key == key) return slot;
  }
}

uint64_t *hash_map_get(const hash_map *map, uint64_t key)
{
  if (!map->capacity) return NULL;
  hash_map_slot *slot = probe_map(map, key);
  return slot->used ? &slot->value : NULL;
}

static weir_status grow_map(hash_map *map)
{
  hash_map bigger = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};
  bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
  if (!bigger.slots)
    return weir_fail(WEIR_ENOMEM, "no memory for a map of %zu entries", bigger.capacity);
  for (size_t i = 0; i < map->capacity; i++)
    if (map->slots[i].used) *probe_map(&bigger, map->slots[i].key) = map->slots[i];
  free(map->slots);
  *map = bigger;
  return WEIR_OK;
}

weir_status hash_map_put(hash_map *map, uint64_t key, uint64_t value)
{
  uint64_t *old = hash_map_get(map, key);
  if (old) {
    *old = value;
    return WEIR_OK;
  }
  if ((map->count + 1) * 4 > map->capacity * 3) {
    weir_status status = grow_map(map);
    if (status) return status;
  }
  *probe_map(map, key) = (hash_map_slot){key, value, true};
  map->count++;
  return WEIR_OK;
}

void hash_map_free(hash_map *map)
{
  free(map->slots);
  *map = (hash_map){0};
}
