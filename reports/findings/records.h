/* records.h: an array of records, each found by its key. A record begins with its key, a number of
 * 64 bits that is mixed well (hash_mix), and lies where it was added, so that an array of them is
 * as dense as its records are. Slots of 32 bits find it: each has the number of a record and twelve
 * bits of its key, so that hardly any other record is looked at. There are at most as many records
 * as a slot can number; the user forgets them before, which bounds its memory. */
#ifndef WEIR_REPORTS_FINDINGS_RECORDS_H
#define WEIR_REPORTS_FINDINGS_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WR_RECORDS_MOST = 1 << 20 /* in one array */ };

/* Zero-initialised it is empty. All records of one array have the same size, which each call is
 * passed. */
typedef struct wr_records {
  uint32_t *slot; /* owned; 0: free */
  size_t mask;    /* slots - 1, 0 while there are none */
  size_t count, capacity;
  void *record; /* owned */
  size_t size;  /* of one; 0: there was none yet */
} wr_records;

/* Out of line: more slots, or a larger array. False: out of memory. */
bool wr_records_grow(wr_records *x, size_t size);

/* Forgets all records. */
void wr_records_clear(wr_records *x);
void wr_records_free(wr_records *x);

static inline uint32_t wr_records_tag(uint64_t key)
{
  return ((uint32_t)(key >> 32) | UINT32_C(1) << 31) & ~(uint32_t)(WR_RECORDS_MOST - 1);
}

static inline void *wr_records_at(const wr_records *x, size_t number, size_t size)
{
  return (char *)x->record + number * size;
}

/* The slot of the key, or the free one where it would be. There are slots. */
static inline uint32_t *wr_records_slot(const wr_records *x, uint64_t key, size_t size)
{
  uint32_t tag = wr_records_tag(key);
  for (size_t at = (size_t)key & x->mask;; at = (at + 1) & x->mask) {
    uint32_t *slot = &x->slot[at];
    if (!*slot) return slot;
    size_t number = *slot & (WR_RECORDS_MOST - 1);
    if (*slot - (uint32_t)number == tag && *(const uint64_t *)wr_records_at(x, number, size) == key)
      return slot;
  }
}

/* Brings the slot of a key that is looked for soon. */
static inline void wr_records_fetch(const wr_records *x, uint64_t key)
{
  if (x->mask) __builtin_prefetch(&x->slot[(size_t)key & x->mask]);
}

/* The same of the record, once the slot is there. */
static inline void wr_records_fetch_record(const wr_records *x, uint64_t key)
{
  if (!x->count) return;
  uint32_t slot = x->slot[(size_t)key & x->mask];
  const char *record = wr_records_at(x, slot & (WR_RECORDS_MOST - 1), x->size);
  __builtin_prefetch(record, 1);
  __builtin_prefetch(record + x->size - 1, 1);
}

/* NULL: none has the key. What it returns is there until a record is added. */
static inline void *wr_records_find(const wr_records *x, uint64_t key, size_t size)
{
  if (!x->count) return NULL;
  uint32_t slot = *wr_records_slot(x, key, size);
  return slot ? wr_records_at(x, slot & (WR_RECORDS_MOST - 1), size) : NULL;
}

/* Finds the record, or adds one, of which nothing but the key is set. There are fewer than
 * WR_RECORDS_MOST. NULL: out of memory. */
static inline void *wr_records_place(wr_records *x, uint64_t key, size_t size, bool *added)
{
  *added = false;
  if ((x->count * 2 >= x->mask || x->count == x->capacity) && !wr_records_grow(x, size))
    return NULL;
  uint32_t *slot = wr_records_slot(x, key, size);
  if (*slot) return wr_records_at(x, *slot & (WR_RECORDS_MOST - 1), size);
  *added = true;
  *slot = wr_records_tag(key) | (uint32_t)x->count;
  void *record = wr_records_at(x, x->count++, size);
  *(uint64_t *)record = key;
  return record;
}

#endif
