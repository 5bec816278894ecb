/* sort.c: see sort.h. Keys with the places of their records are sorted by one digit after the
 * other, the least first; then the records move. */
#include "reports/base/sort.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT = 11 /* bits */, MOST_DIGITS = 4, LEAST_RECORDS = 256 };

typedef struct sort_key {
  uint64_t number; /* from the least one on */
  size_t at;       /* place of the record */
} sort_key;

typedef struct sorted_records {
  char *record;
  size_t count, size, key;
} sorted_records;

static int64_t number_at(const sorted_records *x, size_t at)
{
  int64_t n;
  memcpy(&n, x->record + at * x->size + x->key, sizeof(n));
  return n;
}

/* Returns how many digits the numbers have. */
static int fill_keys(const sorted_records *x, sort_key *keys)
{
  int digits = 0;
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (size_t i = 0; i < x->count; i++) {
    int64_t n = number_at(x, i);
    if (n < least) least = n;
    if (n > most) most = n;
  }
  for (size_t i = 0; i < x->count; i++)
    keys[i] = (sort_key){(uint64_t)number_at(x, i) - (uint64_t)least, i};
  for (uint64_t range = (uint64_t)most - (uint64_t)least; range; range >>= DIGIT)
    digits++;
  return digits;
}

static size_t digit_of(const sort_key *key, int shift)
{
  return key->number >> shift & ((1u << DIGIT) - 1);
}

static void sort_digit(const sort_key *from, sort_key *to, size_t count, int shift)
{
  size_t begin[1 << DIGIT] = {0}, before = 0;
  for (size_t i = 0; i < count; i++)
    begin[digit_of(&from[i], shift)]++;
  for (size_t i = 0; i < 1 << DIGIT; i++) {
    size_t n = begin[i];
    begin[i] = before;
    before += n;
  }
  for (size_t i = 0; i < count; i++)
    to[begin[digit_of(&from[i], shift)]++] = from[i];
}

/* keys[i].at: the record that comes to place i. `room`: for one record. */
static void move_records(const sorted_records *x, sort_key *keys, char *room)
{
  for (size_t i = 0; i < x->count; i++) {
    if (keys[i].at == i) continue;
    size_t hole = i;
    memcpy(room, x->record + i * x->size, x->size);
    for (size_t from; (from = keys[hole].at) != i; hole = from) {
      memcpy(x->record + hole * x->size, x->record + from * x->size, x->size);
      keys[hole].at = hole;
    }
    memcpy(x->record + hole * x->size, room, x->size);
    keys[hole].at = hole;
  }
}

bool wr_sort_records(void *records, size_t count, size_t size, size_t key)
{
  const sorted_records x = {records, count, size, key};
  if (count < LEAST_RECORDS) return false;
  sort_key *keys = malloc(2 * count * sizeof(*keys));
  char *room = malloc(size);
  int digits = keys && room ? fill_keys(&x, keys) : MOST_DIGITS + 1;
  bool sorted = digits <= MOST_DIGITS;
  for (int i = 0; sorted && i < digits; i++)
    sort_digit(keys + (i % 2 ? count : 0), keys + (i % 2 ? 0 : count), count, i * DIGIT);
  if (sorted) move_records(&x, keys + (digits % 2 ? count : 0), room);
  free(room);
  free(keys);
  return sorted;
}
