/* util.h: the small things reports are built with: a hash map of numbers, growing arrays, clean
 * text, files that are files.
 *
 * Everything here reports lack of memory by its return value and words nothing. */
#ifndef WEIR_REPORTS_UTIL_H
#define WEIR_REPORTS_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A map from 64-bit keys to 64-bit values; open addressing, linear probing, shifting deletion.
 * All zero is an empty map. */
typedef struct wr_map {
  struct wr_slot *slots;
  size_t mask; /* slots - 1, 0 while there are none */
  size_t used;
} wr_map;

/* The value of `key`, or NULL. Valid until the next set or delete. */
uint64_t *wr_map_get(const wr_map *m, uint64_t key);

/* Finds or makes `key`; a new value is 0 (*added tells, may be NULL). NULL: out of memory. */
uint64_t *wr_map_put(wr_map *m, uint64_t key, bool *added);
void wr_map_delete(wr_map *m, uint64_t key);
void wr_map_free(wr_map *m);

/* Walks the map: *at starts at 0; false at the end. The map must not change meanwhile. */
bool wr_map_next(const wr_map *m, size_t *at, uint64_t *key, uint64_t **value);

/* Mixes a number into a hash, well enough to serve as a key itself. */
static inline uint64_t wr_mix(uint64_t hash, uint64_t x)
{
  hash = (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15);
  hash ^= hash >> 32;
  hash *= UINT64_C(0xd6e8feb86659fd93);
  return hash ^ hash >> 29;
}

/* Makes room for `need` elements of `size` bytes in the array at *array. False: out of memory. */
bool wr_grow(void *array, size_t *capacity, size_t need, size_t size);

/* A new copy of `bytes` of text, cut at the first NUL: what is not UTF-8 becomes '?', and, where
 * `printable`, control characters too (terminals obey them). NULL: out of memory. */
char *wr_text(const char *text, size_t bytes, bool printable);

/* Opens a file that somebody else has named, for reading: only a regular one of 1 to `most` bytes,
 * so that no pipe is waited for and no device touched. *file: what is open. -1: errno. */
int wr_open_regular(const char *path, uint64_t most, struct stat *file);

/* A new string, printf style. NULL: out of memory. */
char *wr_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
