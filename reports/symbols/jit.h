/* jit.h: names of code that a process made itself, in no module: from the files that JIT compilers
 * write for perf, the map (/tmp/perf-PID.map) and the dump (/tmp/jit-PID.dump). */
#ifndef WEIR_REPORTS_JIT_H
#define WEIR_REPORTS_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct jit_symbol {
  uint64_t start, bytes;
  size_t order; /* of being written: a later one takes an earlier one's place */
  char *name;   /* owned, but where it moved */
  bool moved;   /* the name is another's */
} jit_symbol;

/* Zero-initialised is empty. */
typedef struct jit_symbols {
  jit_symbol *symbols; /* owned, sorted by start */
  size_t count, capacity;
} jit_symbols;

/* Reads what there is of the process `pid`: in `folder`, NULL none, or else in /tmp. A file counts
 * when user `uid` (-1: ours) or root has made it, and is no link to another. What cannot be read is
 * left out. */
void jit_symbols_read(jit_symbols *j, int64_t pid, int64_t uid, const char *folder);

/* The name of what is at `address` (borrowed); NULL: none. */
const char *jit_symbols_find(const jit_symbols *j, uint64_t address);

void jit_symbols_free(jit_symbols *j);

#endif
