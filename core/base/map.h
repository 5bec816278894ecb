/* map.h: a small hash map from a 64-bit number to a 64-bit number (open addressing, linear probing,
 * grows by doubling, no removal). For the reading side: it uses malloc. */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct weir_map_slot {
  uint64_t key; /* meaningful when `used` */
  uint64_t value;
  bool used;
} weir_map_slot;

/* Zero-initialised is empty. */
typedef struct weir_map {
  weir_map_slot *slots; /* owned, power of two of them */
  size_t capacity;
  size_t count;
} weir_map;

/* The value of `key` (borrowed, valid until the next weir_map_put), NULL when it is not there. */
uint64_t *weir_map_get(const weir_map *map, uint64_t key);

/* Stores. Errors: ENOMEM, the map is unchanged. */
weir_status weir_map_put(weir_map *map, uint64_t key, uint64_t value);

void weir_map_free(weir_map *map);

#endif
