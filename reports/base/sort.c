/* sort.c: see sort.h. Records are dealt out into some thousands of parts by the leading bits of
 * their numbers, into which each is copied once; a part of few records is then put in order where
 * it lies, in the processor's cache, and one of many dealt out again. */
#include "reports/base/sort.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  LEAST_RECORDS = 256,
  PART_RECORDS = 8, /* of a part, about */
  FEW = 32,         /* records that are put in order one by one */
  MOST_PART_BITS = 15
};

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

/* What it is called with mostly, without a call. */
static inline void copy_record(char *to, const char *from, size_t size)
{
  switch (size) {
  case 16:
    memcpy(to, from, 16);
    break;
  case 24:
    memcpy(to, from, 24);
    break;
  case 32:
    memcpy(to, from, 32);
    break;
  case 48:
    memcpy(to, from, 48);
    break;
  default:
    memcpy(to, from, size);
  }
}

/* One after the other goes to its place among those before it. `room`: for one record. */
static void sort_few(const sorted_records *x, char *room)
{
  for (size_t i = 1; i < x->count; i++) {
    int64_t n = number_at(x, i);
    char *at = x->record + i * x->size;
    if (number_at(x, i - 1) <= n) continue;
    copy_record(room, at, x->size);
    for (size_t to = i; to && number_at(x, to - 1) > n; to--, at -= x->size)
      copy_record(at, at - x->size, x->size);
    copy_record(at, room, x->size);
  }
}

typedef struct record_parts {
  int64_t least;
  uint64_t range; /* from there to the largest */
  int shift;      /* of a number above the least, to that of its part */
  size_t count;
  size_t *begin; /* owned: of each part, its first record; then of the next */
  char *record;  /* owned: where they are dealt to */
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
  while (bits < MOST_PART_BITS && x->count >> bits > PART_RECORDS)
    bits++;
  *p = (record_parts){.least = least, .range = (uint64_t)most - (uint64_t)least};
  while (p->range >> p->shift >> bits)
    p->shift++;
  p->count = (size_t)(p->range >> p->shift) + 1;
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
    copy_record(p->record + p->begin[part_of(p, x, i) + 1]++ * x->size, x->record + i * x->size,
                x->size);
}

static bool sort_many(const sorted_records *x, char *room);

/* False: some part could not be sorted. */
static bool sort_parts(const record_parts *p, const sorted_records *x, char *room)
{
  bool sorted = true;
  for (size_t i = 0; sorted && i < p->count; i++) {
    const sorted_records part = {x->record + p->begin[i] * x->size, p->begin[i + 1] - p->begin[i],
                                 x->size, x->key};
    if (part.count <= FEW)
      sort_few(&part, room);
    else
      sorted = sort_many(&part, room);
  }
  return sorted;
}

/* A part has a part of the bits that all have, so that this comes to an end. False: out of
 * memory. */
static bool sort_many(const sorted_records *x, char *room)
{
  record_parts p;
  choose_parts(&p, x);
  if (!p.range) return true;
  p.begin = calloc(p.count + 1, sizeof(*p.begin));
  p.record = malloc(x->count * x->size);
  bool sorted = p.begin && p.record;
  if (sorted) {
    deal_records(&p, x);
    memcpy(x->record, p.record, x->count * x->size);
  }
  free(p.record);
  sorted = sorted && sort_parts(&p, x, room);
  free(p.begin);
  return sorted;
}

bool wr_sort_records(void *records, size_t count, size_t size, size_t key)
{
  const sorted_records x = {records, count, size, key};
  if (count < LEAST_RECORDS) return false;
  char *room = malloc(size);
  bool sorted = room && sort_many(&x, room);
  free(room);
  return sorted;
}
