/* rows.c: names and rows: which symbols we wrap, and where their originals are. */
#include <stdatomic.h>
#include <string.h>
#include "interpose/elf/elf.h"
#include "interpose/process/process.h"
#include "interpose/record/context.h"
#include "interpose/record/within.h"
#include "interpose/reroute/owners.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/table/rows.h"

_Static_assert((int)WEIR_ROWS < (int)WEIR_ELF_ID_GET_DEVICE,
               "no row has the number of another symbol");

/* cu[A-Z], cuda[A-Z], __cuda[A-Z]: refuses cublas, cudnn, cufft, curl and all the rest at once. */
static bool looks_ours(const char *n)
{
  if (n[0] == '_' && n[1] == '_') n += 2;
  if (n[0] != 'c' || n[1] != 'u') return false;
  n += 2;
  if (n[0] == 'd' && n[1] == 'a') n += 2;
  return *n >= 'A' && *n <= 'Z';
}

const hook_name *hook_name_find(const char *name)
{
  if (!looks_ours(name)) return NULL;
  uint32_t h = 2166136261u;
  for (const char *p = name; *p; p++)
    h = (h ^ (unsigned char)*p) * 16777619u;
  for (uint32_t i = h % WEIR_NAME_SLOTS; hook_name_slots[i]; i = (i + 1) % WEIR_NAME_SLOTS) {
    const hook_name *n = &hook_names[hook_name_slots[i] - 1];
    if (strcmp(n->name, name) == 0) return n;
  }
  return NULL;
}

const hook_row *hook_row_find(int bank, const char *name)
{
  const hook_name *n = bank >= 0 && bank < WEIR_BANKS ? hook_name_find(name) : NULL;
  return n && n->row[bank] ? &hook_rows[n->row[bank] - 1] : NULL;
}

bool hook_name_is_wrapped(const char *name)
{
  const hook_name *n = hook_name_find(name);
  return n && (n->row[0] | n->row[1] | n->row[2] | n->row[3]);
}

uint16_t hook_api_find(const char *name)
{
  const hook_name *n = hook_name_find(name);
  return n ? n->api : 0;
}

/* Do both addresses lie in one loaded object? dlsym and cuGetProcAddress may name one function by
 * two addresses; a second copy of the library is another function. */
static bool same_object(const void *a, const void *b)
{
  elf_object x, y;
  return elf_object_at(&x, a) && elf_object_at(&y, b) && x.base == y.base;
}

static bool still_loaded(const void *address)
{
  elf_object o;
  return elf_object_at(&o, address);
}

/* A look-up has one answer for a name, unless somebody answers it with a function of another: in
 * the object that has it, no function of that name is this one. */
static bool is_exchanged(const char *name, const void *real)
{
  elf_object o;
  return elf_object_at(&o, real) && elf_object_symbol(&o, name, NULL, WEIR_FIT_FUNCTION) != real;
}

/* The function is in no library of CUDA's: what that library makes of the program's calls is looked
 * at from now on. */
static bool is_anothers(const void *real)
{
  if (cuda_library_of(real) >= 0) return false;
  atomic_store_explicit(&within_possible, true, memory_order_relaxed);
  return true;
}

void *hook_row_bind(const hook_row *row, void *real)
{
  if (!real || real == row->wrapper) return real;
  void *old = NULL;
  if (!atomic_compare_exchange_strong(row->real, &old, real) && old != real &&
      !same_object(old, real)) {
    if (still_loaded(old)) return real;
    atomic_store_explicit(row->real, real, memory_order_release);
  }
  if (row->bank == WEIR_BANK_DRIVER) {
    if (is_anothers(real) && is_exchanged(row->name, real)) owner_of_look_up(row->name, real);
    driver_helpers_retry();
  }
  coverage_add(row->api, WEIR_COVER_LOOKED_UP);
  return row->wrapper;
}

void *hook_row_bind_answer(const hook_row *row, void *real)
{
  const void *shim = elf_startup_shim(row->name);
  return shim && !same_object(shim, real) ? real : hook_row_bind(row, real);
}

void *hook_row_bind_shim(const hook_row *row, void *real)
{
  if (elf_is_the_one(row->bank, row->name, real)) return hook_row_bind(row, real);
  if (is_exchanged(row->name, real)) owner_of_look_up(row->name, real);
  return real;
}

void *hook_row_resolve(const hook_row *row)
{
  void *none = NULL;
  void *real = elf_is_settled(row->bank)
                   ? elf_symbol(cuda_library_soname(row->bank), row->name)
                   : elf_symbol_cached((unsigned)(row - hook_rows), row->bank, row->name);
  /* Not remembered: it is the caller's own, and the library is about to come. */
  if (!real && row->bank == WEIR_BANK_DRIVER) return elf_stand_in(row->name);
  if (!real || real == row->wrapper) return NULL;
  if (!elf_is_settled(row->bank)) return real;
  atomic_compare_exchange_strong(row->real, &none, real);
  (void)is_anothers(real);
  driver_helpers_retry();
  return none ? none : real;
}
