/* rows.h: which symbols are wrapped, and where their originals are.
 *
 * A *row* is one exported CUDA symbol that is wrapped (hooks.tsv), in one bank (elf/bank.h): a
 * row's wrapper exists once a bank, and so does its *real* pointer.
 */
#ifndef WEIR_INTERPOSE_ROWS_H
#define WEIR_INTERPOSE_ROWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/elf/bank.h"
#include "interpose/elf/entry.h"
#include "interpose/record/cuda_headers.h"

/* One wrapped symbol of one bank. The array hook_rows[] is generated, and indexed by enum
 * hook_row_number (hooks.gen.h); rows of a bank are contiguous. */
typedef struct hook_row {
  const char *name;      /* exported symbol */
  void *wrapper;         /* the entry of our function of the same type */
  _Atomic(void *) *real; /* where the wrapper finds the original; NULL inside: not resolved yet */
  uint16_t api;          /* core/trace/api.def */
  uint8_t bank;          /* enum cuda_library */
} hook_row;

extern const hook_row hook_rows[];
extern const uint32_t hook_row_count;

/* The row of an exact symbol name in a bank; NULL: not wrapped. No lock, malloc or syscall, and a
 * name that does not begin with "cu" or "__cuda" is refused within a few instructions. */
const hook_row *hook_row_find(int bank, const char *name);

/* True if the name is wrapped in any bank: what dlsym's filter asks first. */
bool hook_name_is_wrapped(const char *name);

/* The api number of a CUDA function we know but may not wrap (0: no CUDA function). Slow is fine.
 */
uint16_t hook_api_find(const char *name);

/* Remembers `real` as the original of the row, counts the look-up in the coverage, and returns what
 * the asker gets: the wrapper. `real` equal to the wrapper itself is returned unchanged. Where
 * *real already holds another address that is still loaded (a second copy of one soname, a shim in
 * front of it), the newcomer is returned as it is, not wrapped; dlclose() sets *real back to NULL
 * when its object is gone (loader/lookup.c). */
void *hook_row_bind(const hook_row *row, void *real);

/* The same, where `real` may be another library's that is handed out for the driver's, and is not
 * what references are bound to: then it is returned as it is, and what is rerouted in its place is
 * left to it (interpose/reroute/owners.h). */
void *hook_row_bind_shim(const hook_row *row, void *real);

/* The same, for what cuGetProcAddress answers: where another library's function is what references
 * to the driver's are bound to, the wrapper calls that, and the driver's own is returned as it
 * is. */
void *hook_row_bind_answer(const hook_row *row, void *real);

/* Resolves a row called through our exported symbol: elf_symbol() in the bank's soname. NULL:
 * nothing loaded has it (the wrapper then returns the "not found" error of its layer). */
void *hook_row_resolve(const hook_row *row);

/* Every exported name there is, and where it is wrapped. */
typedef struct hook_name {
  const char *name;
  uint16_t api;
  uint16_t row[WEIR_BANKS]; /* index + 1 in hook_rows, by bank; 0: not wrapped */
} hook_name;

/* One ABI of a driver function as cuGetProcAddress knows it. */
typedef struct hook_abi {
  const char *name;   /* without suffix */
  uint32_t version;   /* CUDA version it came with */
  uint8_t per_thread; /* the per-thread default stream spelling */
  int16_t row;        /* in hook_rows, -1: not wrapped */
  uint16_t api;
} hook_abi;

#define WEIR_NAME_SLOTS 4096u
extern const hook_name hook_names[];
extern const uint16_t hook_name_slots[WEIR_NAME_SLOTS]; /* FNV-1a, linear probing; index + 1 */
extern const hook_abi hook_abis[];                      /* by name, per_thread, version */
extern const uint32_t hook_abi_count;

/* Returns the record of an exact name; NULL: CUDA has no such function. */
const hook_name *hook_name_find(const char *name);

/* ---- cuGetProcAddress and its kin (proc_address.c) ----------------------------------------------
 *
 * Bodies of the wrappers; `real` is the original. They record no event. */
#include "interpose/table/lookups.gen.h"

/* Exports a wrapper's entry under its CUDA name, bound to one bank by a version node
 * (interpose/exports.map). The order of the nodes there is the whole trick: a program linked with
 * libcudart.so.13 asks for cudaMalloc@libcudart.so.13 and gets that bank's wrapper; an unversioned
 * reference to cuInit may bind to the oldest node, weir_driver; dlsym() never sees a hidden version
 * ("@", not "@@"), so that only a look-up that would succeed without us succeeds with us; and an
 * unversioned reference to a runtime symbol (an object with cudart linked in) passes us by.
 * Wrappers are static (WEIR_BODY); every exported name goes through this macro, once a row:
 * WEIR_EXPORT(w13_cudaMalloc, cudaMalloc, WEIR_NODE_RT13) makes the entry weir_e_w13_cudaMalloc. */
#define WEIR_NODE_DRIVER "weir_driver"
#define WEIR_NODE_RT11   "libcudart.so.11.0"
#define WEIR_NODE_RT12   "libcudart.so.12"
#define WEIR_NODE_RT13   "libcudart.so.13"
#define WEIR_EXPORT(wrapper, symbol, node)                                                         \
  WEIR_ENTRY_OWN(weir_e_##wrapper, wrapper);                                                       \
  __asm__(".globl weir_x_" #wrapper "\n.type weir_x_" #wrapper                                     \
          ", %function\n.set weir_x_" #wrapper ", weir_e_" #wrapper "\n.symver weir_x_" #wrapper   \
          ", " #symbol "@" node ", remove\n")

#endif
