/* find.c: entries found, placed and removed (table.h): what every event does, without allocating.
 */
#include "reports/tally/probe.h"

void *wr_table_find(const wr_table *t, uint64_t key)
{
  return wr_find(t, key);
}

void *wr_table_place(wr_table *t, uint64_t key, bool *added)
{
  return wr_place(t, key, added);
}

static void free_slot(wr_table *t, uint32_t hole)
{
  for (uint32_t i = (hole + 1) & t->mask; t->slot[i]; i = (i + 1) & t->mask) {
    uint32_t want = wr_home(t, wr_key_at(t, t->slot[i] - 1));
    if (((i - want) & t->mask) < ((i - hole) & t->mask)) continue; /* nearer home than the hole */
    t->slot[hole] = t->slot[i];
    hole = i;
  }
  t->slot[hole] = 0;
}

void wr_table_remove(wr_table *t, void *entry)
{
  uint32_t i = (uint32_t)(((char *)entry - t->entry) / t->size), last = t->count - 1;
  free_slot(t, wr_probe(t, wr_key_at(t, i)));
  if (i != last) {
    uint32_t at = wr_probe(t, wr_key_at(t, last));
    memcpy(entry, wr_table_at(t, last), t->size);
    t->slot[at] = i + 1;
  }
  t->count = last;
}
