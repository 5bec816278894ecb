/* map.h: a small hash map from a 64-bit number to a 64-bit number (open addressing, linear probing,
 * grows by doubling, no removal). For the reading side: it uses malloc. */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct hash_map_slot {
  uint64_t key; /* meaningful when `used` */
  uint64_t value;
  bool used;
} hash_map_slot;

/* Zero-initialised is empty. */
typedef struct hash_map {
  hash_map_slot *slots; /* owned, power of two of them */
  size_t capacity;
  size_t count;
} hash_map;

/* The value of `key` (borrowed, valid until the next hash_map_put), NULL when it is not there. */
uint64_t *hash_map_get(const hash_map *map, uint64_t key);

/* Stores. Errors: ENOMEM, the map is unchanged. */
weir_status hash_map_put(hash_map *map, uint64_t key, uint64_t value);

void hash_map_free(hash_map *map);

#endif
