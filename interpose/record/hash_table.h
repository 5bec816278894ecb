/* hash_table.h: a lock-free hash table of 64-bit keys, for what the preload library must remember
 * of a program: blocks by address, kernels by handle, host stubs by address.
 *
 * Any number of threads; no lock, no malloc, nothing to repair after fork(). Open addressing with a
 * bounded probe: a key lives in one of PROBE slots of one *level*; when those are taken a level
 * eight times larger is mapped after it, so nothing is ever moved and a reader never waits. A slot
 * whose key was removed is a tombstone and is taken by the next key that hashes there.
 *
 * One key is not inserted by two threads at a time (a program can't be given one address twice);
 * the table stays sound if it is, and then holds either value. */
#ifndef WEIR_INTERPOSE_HASH_TABLE_H
#define WEIR_INTERPOSE_HASH_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEIR_TABLE_LEVELS 7 /* 1 Ki slots, then x8: 256 Mi at the last */

typedef struct hash_entry {
  _Atomic uint64_t key;  /* 0: never used; WEIR_TABLE_GONE: removed */
  _Atomic uint64_t x, y; /* the user's two words */
} hash_entry;

typedef struct hash_table {
  _Atomic(hash_entry *) level[WEIR_TABLE_LEVELS];
} hash_table;

/* The entry of `key`, or NULL. Lives until it is removed. */
hash_entry *hash_table_find(hash_table *t, uint64_t key);

/* Finds or makes the entry; its words are set. NULL: no memory. Key 0 and ~0 are refused. */
hash_entry *hash_table_put(hash_table *t, uint64_t key, uint64_t x, uint64_t y);

/* The two halves of it, for who has to do something between: finds the entry, *there, or claims
 * one, whose words are set then. */
hash_entry *hash_table_claim(hash_table *t, uint64_t key, bool *there);
void hash_entry_set(hash_entry *e, uint64_t x, uint64_t y);

/* Removes the entry and returns its words, of which y is not 0. False when it is not there, or is
 * only about to be. */
bool hash_table_take(hash_table *t, uint64_t key, uint64_t *x, uint64_t *y);

/* Removes the entry likewise, but only if its second word is `y`. */
bool hash_table_take_as(hash_table *t, uint64_t key, uint64_t *x, uint64_t y);

/* Calls `visit` for each entry; one that comes or goes meanwhile may be seen or not. */
void hash_table_each(hash_table *t,
                     void (*visit)(void *context, uint64_t key, uint64_t x, uint64_t y),
                     void *context);

#endif
