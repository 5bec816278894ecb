/* table.h: entries in one array, found by the key that each begins with.
 *
 * Room is made apart from use: what adds an entry only takes what wr_table_room() has made, so that
 * it allocates nothing and cannot fail half-way. An entry's place changes when another is removed
 * or room is made. */
#ifndef WEIR_REPORTS_TALLY_TABLE_H
#define WEIR_REPORTS_TALLY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised but for `size` is empty. */
typedef struct wr_table {
  char *entry;    /* owned */
  uint32_t *slot; /* owned; index + 1 of an entry, 0: free. Of an array without keys NULL */
  uint32_t count, room;
  uint32_t mask; /* slots - 1 */
  uint32_t size; /* bytes of an entry */
} wr_table;

/* The entry of a key (borrowed), NULL: there is none. */
void *wr_table_find(const wr_table *t, uint64_t key);

/* Finds or makes it; a new one is zeros but for its key. NULL: no room has been made. */
void *wr_table_place(wr_table *t, uint64_t key, bool *added);

/* The last entry takes its place. */
void wr_table_remove(wr_table *t, void *entry);

/* Room for so many more entries. False: out of memory. */
bool wr_table_room(wr_table *t, uint32_t more);

/* The same of an array without keys. */
bool wr_array_room(wr_table *t, uint32_t more);

/* Makes the slots of entries that were put there by hand. False: out of memory, or two have the
 * same key, or one has none. */
bool wr_table_index(wr_table *t);

void wr_table_free(wr_table *t);

/* Entry i. */
static inline void *wr_table_at(const wr_table *t, uint32_t i)
{
  return t->entry + (size_t)i * t->size;
}

#endif
