/* table.c: see table.h. Linear probing, at most half of the slots in use, removal by shifting. This
 * file allocates; what is on the way of every event does not call what does. */
#include "reports/tally/table.h"

#include <stdlib.h>
#include <string.h>
#include "reports/tally/probe.h"

enum { LEAST = 64, MOST = 1u << 30 /* entries */ };

static bool grow_entries(wr_table *t, uint32_t more)
{
  uint64_t room = t->room ? t->room : LEAST;
  if (more > MOST - t->count) return false;
  while (room < (uint64_t)t->count + more)
    room *= 2;
  if (room == t->room) return true;
  char *entry = realloc(t->entry, (size_t)room * t->size);
  if (!entry) return false;
  t->entry = entry;
  t->room = (uint32_t)room;
  return true;
}

bool wr_array_room(wr_table *t, uint32_t more)
{
  return more <= t->room - t->count || grow_entries(t, more);
}

static bool make_slots(wr_table *t)
{
  uint32_t slots = LEAST;
  while (slots < 2 * (uint64_t)t->room)
    slots *= 2;
  uint32_t *slot = calloc(slots, sizeof *slot);
  if (!slot) return false;
  free(t->slot);
  t->slot = slot;
  t->mask = slots - 1;
  for (uint32_t i = 0; i < t->count; i++)
    slot[wr_probe(t, wr_key_at(t, i))] = i + 1;
  return true;
}

bool wr_table_room(wr_table *t, uint32_t more)
{
  if (more <= t->room - t->count && t->slot) return true;
  return grow_entries(t, more) && make_slots(t);
}

bool wr_table_index(wr_table *t)
{
  const uint32_t count = t->count;
  t->count = 0;
  if (!wr_table_room(t, count)) return false;
  for (; t->count < count; t->count++) {
    uint64_t key = wr_key_at(t, t->count);
    uint32_t at = wr_probe(t, key);
    if (!key || t->slot[at]) return false;
    t->slot[at] = t->count + 1;
  }
  return true;
}

void wr_table_free(wr_table *t)
{
  free(t->entry);
  free(t->slot);
  *t = (wr_table){.size = t->size};
}
