/* names.h: what code addresses are called, for history's stacks.
 *
 * By the symbol tables of the objects' own files (.symtab, else .dynsym), read when an object is
 * first asked about; static functions have names so where a program is not stripped. Files are
 * input like any: every number in them is checked. Nothing here knows source lines: Weir's reports
 * do, with libdw, which is not for a program's process.
 *
 * Known limit: a library that was unloaded since an address was captured has no name for it, or
 * another library that lies there now gives one of its own. */
#ifndef WEIR_MEMORY_NAMES_H
#define WEIR_MEMORY_NAMES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct code_names code_names;

typedef struct code_name {
  const char *function; /* borrowed from the names; "??": unknown */
  const char *object;   /* borrowed; path of the object, "": unknown */
  uint64_t offset;      /* of the address in the object, bytes */
  bool ours;            /* the allocator's own code, as far as that can be known */
} code_name;

/* Of the objects loaded now; NULL: no host memory. */
code_names *names_new(void);
void names_free(code_names *n);
/* `address` is a return address: what is named is the call before it. */
code_name names_find(code_names *n, uint64_t address);

#endif
