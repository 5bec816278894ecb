/* sort.c: see sort.h. Records are dealt out into some thousands of parts by the leading bits of
 * their numbers, into which each is copied once; a part of few records is then put in order where
 * it lies, in the processor's cache. Of a part of many records keys with the places of records are
 * sorted by one digit after the other, the least first; then the records move. */
#include "reports/base/sort.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  DIGIT = 11, /* bits */
  MOST_DIGITS = 4,
  LEAST_RECORDS = 256,
  PART_RECORDS = 16, /* of a part, about */
  FEW = 64,          /* records that are put in order one by one */
  MOST_PART_BITS = 15
};

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

/* All of them by their digits. False: out of memory, or there are too many digits. */
static bool sort_by_digits(const sorted_records *x)
{
  sort_key *keys = malloc(2 * x->count * sizeof(*keys));
  char *room = malloc(x->size);
  int digits = keys && room ? fill_keys(x, keys) : MOST_DIGITS + 1;
  bool sorted = digits <= MOST_DIGITS;
  for (int i = 0; sorted && i < digits; i++)
    sort_digit(keys + (i % 2 ? x->count : 0), keys + (i % 2 ? 0 : x->count), x->count, i * DIGIT);
  if (sorted) move_records(x, keys + (digits % 2 ? x->count : 0), room);
  free(room);
  free(keys);
  return sorted;
}

/* One after the other goes to its place among those before it. */
static void sort_few(const sorted_records *x, char *room)
{
  for (size_t i = 1; i < x->count; i++) {
    int64_t n = number_at(x, i);
    size_t to = i;
    while (to && number_at(x, to - 1) > n)
      to--;
    if (to == i) continue;
    char *at = x->record + to * x->size;
    memcpy(room, x->record + i * x->size, x->size);
    memmove(at + x->size, at, (i - to) * x->size);
    memcpy(at, room, x->size);
  }
}

typedef struct record_parts {
  int64_t least;
  int shift; /* of a number above the least, to that of its part */
  size_t count;
  size_t *begin; /* owned: of each part, its first record; then of the next */
  char *record;  /* owned */
} record_parts;

static size_t part_of(const record_parts *p, const sorted_records *x, size_t at)
{
  return ((uint64_t)number_at(x, at) - (uint64_t)p->least) >> p->shift;
}

/* How many parts there are, and what numbers are in each. */
static void choose_parts(record_parts *p, const sorted_records *x)
{
  int64_t least = INT64_MAX, most = INT64_MIN;
  int bits = 0;
  for (size_t i = 0; i < x->count; i++) {
    int64_t n = number_at(x, i);
    if (n < least) least = n;
    if (n > most) most = n;
  }
  uint64_t range = (uint64_t)most - (uint64_t)least;
  while (bits < MOST_PART_BITS && x->count >> bits > PART_RECORDS)
    bits++;
  *p = (record_parts){.least = least};
  while (range >> p->shift >> bits)
    p->shift++;
  p->count = (size_t)(range >> p->shift) + 1;
}

static void deal_records(record_parts *p, const sorted_records *x)
{
  size_t before = 0;
  for (size_t i = 0; i < x->count; i++)
    p->begin[part_of(p, x, i) + 1]++;
  for (size_t i = 0; i < p->count; i++) { /* begin[i + 1]: where the next of part i goes */
    size_t n = p->begin[i + 1];
    p->begin[i + 1] = before;
    before += n;
  }
  for (size_t i = 0; i < x->count; i++)
    memcpy(p->record + p->begin[part_of(p, x, i) + 1]++ * x->size, x->record + i * x->size,
           x->size);
}

/* False: some part could not be sorted. */
static bool sort_parts(const record_parts *p, const sorted_records *x, char *room)
{
  bool sorted = true;
  for (size_t i = 0; sorted && i < p->count; i++) {
    const sorted_records part = {p->record + p->begin[i] * x->size, p->begin[i + 1] - p->begin[i],
                                 x->size, x->key};
    if (part.count <= FEW)
      sort_few(&part, room);
    else
      sorted = sort_by_digits(&part);
  }
  return sorted;
}

bool wr_sort_records(void *records, size_t count, size_t size, size_t key)
{
  const sorted_records x = {records, count, size, key};
  record_parts p;
  if (count < LEAST_RECORDS) return false;
  choose_parts(&p, &x);
  p.begin = calloc(p.count + 1, sizeof(*p.begin));
  p.record = malloc(count * size);
  char *room = malloc(size);
  bool sorted = p.begin && p.record && room;
  if (sorted) deal_records(&p, &x);
  sorted = sorted && sort_parts(&p, &x, room);
  if (sorted) memcpy(records, p.record, count * size);
  free(room);
  free(p.record);
  free(p.begin);
  return sorted;
}
