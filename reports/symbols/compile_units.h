/* compile_units.h: what libdw does not answer by itself of a module's debug information: the unit
 * of an address where the compiler wrote no table of addresses (.debug_aranges; Clang writes
 * none), a function that it wrote inside a namespace or a type (as Clang does), and the whole name
 * of one that has no name for linkers. */
#ifndef WEIR_REPORTS_SYMBOLS_COMPILE_UNITS_H
#define WEIR_REPORTS_SYMBOLS_COMPILE_UNITS_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct wr_unit_range {
  Dwarf_Addr start, end; /* in the module's session */
  Dwarf_Die *unit;       /* the session's */
  Dwarf_Addr bias;       /* address in the unit + bias = address in the session */
} wr_unit_range;

/* A module's compile units by address; all zero, they are not read yet. */
typedef struct wr_units {
  bool read;
  wr_unit_range *range; /* owned; by start */
  size_t count, capacity;
} wr_units;

/* The unit with the code at `address` of the session; NULL: none. */
Dwarf_Die *wr_units_find(wr_units *u, Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias);
void wr_units_free(wr_units *u);

/* The innermost function around `address` of the unit, inlined or not. False: none. */
bool wr_units_function(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *out);

/* "space::(anonymous namespace)::type::function<int>"; new. NULL: it has no name, or it is C. */
char *wr_units_name(Dwarf_Die *unit, Dwarf_Die *function);

#endif
