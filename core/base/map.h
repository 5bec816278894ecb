/* map.h: a hash map from 64-bit numbers to 64-bit numbers: open addressing, linear probing, grows
 * by doubling, shifting deletion. For the reading side: it uses malloc. */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct hash_map_slot hash_map_slot;

/* Zero-initialised is empty. */
typedef struct hash_map {
  hash_map_slot *slots; /* owned, power of two of them */
  size_t mask;          /* slots - 1, 0 while there are none */
  size_t count;
} hash_map;

/* The value of `key` (borrowed, valid until the map changes), NULL when it is not there. */
uint64_t *hash_map_get(const hash_map *map, uint64_t key);

/* Finds or makes `key`; a new value is 0 (*added: whether it is new, may be NULL). NULL: out of
 * memory, the map is unchanged. */
uint64_t *hash_map_place(hash_map *map, uint64_t key, bool *added);

/* Stores. Errors: ENOMEM, the map is unchanged. */
weir_status hash_map_put(hash_map *map, uint64_t key, uint64_t value);

void hash_map_remove(hash_map *map, uint64_t key);
void hash_map_free(hash_map *map);

/* Walks the map: *at starts at 0; false at the end. The map must not change meanwhile. */
bool hash_map_next(const hash_map *map, size_t *at, uint64_t *key, uint64_t **value);

/* Mixes a number into a hash, well enough to serve as a key itself. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t x)
{
  hash = (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15);
  hash ^= hash >> 32;
  hash *= UINT64_C(0xd6e8feb86659fd93);
  return hash ^ hash >> 29;
}

#endif
