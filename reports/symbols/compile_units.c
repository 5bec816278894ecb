/* compile_units.c: see compile_units.h. */
#include "reports/symbols/compile_units.h"
#include <dwarf.h>
#include <stdlib.h>
#include "reports/base/util.h"

/* ---- the unit of an address ------------------------------------------------------------------ */

static bool add_unit(wr_units *u, Dwarf_Die *unit, Dwarf_Addr bias)
{
  Dwarf_Addr base = 0, start = 0, end = 0;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
    if (!start || start >= end) continue; /* 0: the linker has left it out */
    if (!wr_grow(&u->range, &u->capacity, u->count + 1, sizeof *u->range)) return false;
    u->range[u->count++] = (wr_unit_range){start + bias, end + bias, unit, bias};
  }
  return true;
}

static int by_range_start(const void *left, const void *right)
{
  const wr_unit_range *a = left, *b = right;
  return (a->start > b->start) - (a->start < b->start);
}

/* Out of memory there are fewer names. */
static void read_units(wr_units *u, Dwfl_Module *module)
{
  Dwarf_Addr bias = 0;
  u->read = true;
  for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(module, unit, &bias));)
    if (!add_unit(u, unit, bias)) break;
  if (u->count) qsort(u->range, u->count, sizeof *u->range, by_range_start);
}

/* libdwfl counts what lies between two pieces of a unit to it: the C runtime's _start, between
 * main() and what else its file has. The line table's last row before it would then be its line. A
 * unit without ranges is believed. */
static bool has_code_at(Dwarf_Die *unit, Dwarf_Addr address)
{
  Dwarf_Addr base = 0, start = 0, end = 0;
  bool any = false;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
    if (start && start <= address && address < end) return true;
    any = true;
  }
  return !any;
}

Dwarf_Die *wr_units_find(wr_units *u, Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
  Dwarf_Die *unit = dwfl_module_addrdie(module, address, bias);
  if (unit && has_code_at(unit, address - *bias)) return unit;
  if (!u->read) read_units(u, module);
  size_t low = 0, high = u->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (u->range[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low || address >= u->range[low - 1].end) return NULL;
  *bias = u->range[low - 1].bias;
  return u->range[low - 1].unit;
}

void wr_units_free(wr_units *u)
{
  free(u->range);
  *u = (wr_units){0};
}

/* ---- the function of an address -------------------------------------------------------------- */

enum { DEEPEST = 64 };

/* *out is set where something is found, and left otherwise. */
static bool innermost_in(Dwarf_Die *scope, Dwarf_Addr address, int depth, Dwarf_Die *out)
{
  Dwarf_Die child;
  if (depth == DEEPEST || dwarf_child(scope, &child)) return false;
  do {
    switch (dwarf_tag(&child)) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
      if (dwarf_haspc(&child, address) <= 0) break;
      *out = child;
      (void)innermost_in(&child, address, depth + 1, out);
      return true;
    case DW_TAG_lexical_block:
      if (dwarf_haspc(&child, address) <= 0) break;
      return innermost_in(&child, address, depth + 1, out);
    case DW_TAG_namespace:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
      if (innermost_in(&child, address, depth + 1, out)) return true;
      break;
    default:
      break;
    }
  } while (!dwarf_siblingof(&child, &child));
  return false;
}

bool wr_units_function(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *out)
{
  return innermost_in(unit, address, 0, out);
}

/* ---- whole names ----------------------------------------------------------------------------- */

static bool is_c(Dwarf_Die *unit)
{
  switch (dwarf_srclang(unit)) {
  case DW_LANG_C:
  case DW_LANG_C89:
  case DW_LANG_C99:
  case DW_LANG_C11:
    return true;
  default:
    return false;
  }
}

/* Where a function was declared, of which this is a body or a copy that was inlined. */
static void find_declaration(Dwarf_Die *function)
{
  Dwarf_Attribute a;
  for (int i = 0; i < 4; i++) {
    Dwarf_Die next;
    if (!dwarf_attr(function, DW_AT_abstract_origin, &a) &&
        !dwarf_attr(function, DW_AT_specification, &a))
      return;
    if (!dwarf_formref_die(&a, &next)) return;
    *function = next;
  }
}

/* What a scope adds to the names in it; NULL: nothing. */
static const char *scope_name(Dwarf_Die *scope)
{
  const char *name;
  switch (dwarf_tag(scope)) {
  case DW_TAG_namespace:
    name = dwarf_diename(scope);
    return name ? name : "(anonymous namespace)";
  case DW_TAG_class_type:
  case DW_TAG_structure_type:
  case DW_TAG_union_type:
    name = dwarf_diename(scope);
    return name ? name : "{unnamed type}";
  case DW_TAG_subprogram:
    return dwarf_diename(scope);
  default:
    return NULL;
  }
}

char *wr_units_name(Dwarf_Die *unit, Dwarf_Die *function)
{
  Dwarf_Die declared = *function, *scopes = NULL;
  if (is_c(unit)) return NULL;
  find_declaration(&declared);
  const char *own = dwarf_diename(&declared);
  char *name = own ? wr_format("%s", own) : NULL;
  int n = name ? dwarf_getscopes_die(&declared, &scopes) : 0;
  for (int i = 1; name && i < n; i++) {
    const char *outer = scope_name(&scopes[i]);
    char *longer = outer ? wr_format("%s::%s", outer, name) : NULL;
    if (!outer) continue;
    free(name);
    name = longer;
  }
  free(scopes);
  return name;
}
