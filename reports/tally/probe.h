/* probe.h: where a key is or would be in a table's slots. */
#ifndef WEIR_REPORTS_TALLY_PROBE_H
#define WEIR_REPORTS_TALLY_PROBE_H

#include <string.h>
#include "reports/tally/table.h"

static inline uint64_t wr_key_at(const wr_table *t, uint32_t i)
{
  return *(const uint64_t *)wr_table_at(t, i);
}

static inline uint32_t wr_home(const wr_table *t, uint64_t key)
{
  return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & t->mask;
}

/* The table has slots, and a free one. */
static inline uint32_t wr_probe(const wr_table *t, uint64_t key)
{
  uint32_t at = wr_home(t, key);
  while (t->slot[at] && wr_key_at(t, t->slot[at] - 1) != key)
    at = (at + 1) & t->mask;
  return at;
}

/* wr_table_find() and wr_table_place(), in line: for every event. */
static inline void *wr_find(const wr_table *t, uint64_t key)
{
  if (!t->slot) return NULL;
  const uint32_t i = t->slot[wr_probe(t, key)];
  return i ? wr_table_at(t, i - 1) : NULL;
}

static inline void *wr_place(wr_table *t, uint64_t key, bool *added)
{
  *added = false;
  if (!t->slot) return NULL;
  const uint32_t at = wr_probe(t, key);
  if (t->slot[at]) return wr_table_at(t, t->slot[at] - 1);
  if (t->count == t->room) return NULL;
  char *entry = wr_table_at(t, t->count);
  memset(entry, 0, t->size);
  memcpy(entry, &key, sizeof key);
  t->slot[at] = ++t->count;
  *added = true;
  return entry;
}

#endif
