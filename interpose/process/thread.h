/* thread.h: the inside of the preload library: what a wrapper, the look-up filters and the process
 * life cycle know of each other.
 *
 * A *row* is one exported CUDA symbol we wrap (interpose/table/hooks.tsv). A *bank* is one copy of
 * a CUDA library in the process: the driver is one bank, each major of the runtime another, since a
 * program may hold two runtimes whose functions of one name differ. A row's wrapper exists once a
 * bank, and so does its *real* pointer.
 *
 * A wrapper's outermost call in a thread owns the event; calls beneath it (the runtime calling the
 * driver, a library calling the runtime) find depth > 0 and go straight through. */
#ifndef WEIR_INTERPOSE_THREAD_H
#define WEIR_INTERPOSE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/event.h"
#include "core/trace/spool.h"
#include "core/trace/stack.h"

enum weir_bank {                       /* which library a real pointer belongs to */
                 WEIR_BANK_DRIVER = 0, /* libcuda.so.1 */
                 WEIR_BANK_RT11 = 1,   /* libcudart.so.11.0 */
                 WEIR_BANK_RT12 = 2,   /* libcudart.so.12 */
                 WEIR_BANK_RT13 = 3,   /* libcudart.so.13 */
                 WEIR_BANKS = 4
};

/* One wrapped symbol of one bank. The array weir_rows[] is generated; rows of a bank are
 * contiguous. */
typedef struct weir_row {
  const char *name;      /* exported symbol */
  void *wrapper;         /* our function of the same type */
  _Atomic(void *) *real; /* where the wrapper finds the original; NULL inside: not resolved yet */
  uint16_t api;          /* core/trace/api.def */
  uint8_t bank;          /* enum weir_bank */
} weir_row;

/* ---- thread state (life cycle: process.c) ---------------------------------------------------- */

typedef struct weir_thread {
  uint32_t depth;        /* hooked calls this thread is inside of; 0: the next owns its event */
  uint32_t epoch;        /* of the process: a fork makes everything below stale */
  weir_writer writer;    /* its pen */
  weir_stacks *stacks;   /* its stack table */
  uint64_t last_context; /* CUcontext seen last, and what it means, so that it is asked for once */
  uint8_t last_context_number, last_device;
  uint8_t named;         /* THREAD record written */
  uint32_t context_age;  /* weir_context_age when last_context was asked for (context.h) */
  uint8_t context_trust; /* events that may still go by last_context without asking */
  uintptr_t outermost;   /* where on the stack the call is that owns the event; depth 0: stale */
  uintptr_t inner_start; /* the CUDA library that called last within a call (nested.c), and */
  size_t inner_bytes;    /* its size; 0: none yet */
  bool hushed;           /* within a call of libweir's own (engine.c) */
} weir_thread;

extern __thread weir_thread weir_self __attribute__((tls_model("initial-exec")));

/* The process is recording. False before set-up, when set-up failed (the reason is in the drop
 * count), and in a sanitizer's or debugger's way. Relaxed loads are enough. */
extern _Atomic bool weir_recording;

/* Slow path of the first outermost call in a process, a fork's child or a thread: spool, collector,
 * unwinder, thread key. Returns whether this thread can record now. Keeps errno. */
bool weir_thread_start(weir_thread *t);

/* Whether the call this thread is said to be inside of was left by longjmp(), asked by one that is
 * not inside of it by its place on the stack. Then depth is 0. Keeps errno. */
bool weir_call_abandoned(weir_thread *t);

/* A hooked call was made within another, from `site`, which is not in the library that last did so.
 * Keeps errno; a signal handler may be the caller. */
void weir_called_within(weir_thread *t, const void *site);

/* Current epoch: 1 in the first process image, one more after each fork. */
extern _Atomic uint32_t weir_process_epoch;

static inline bool weir_thread_ready(weir_thread *t)
{
  if (__builtin_expect(t->epoch == atomic_load_explicit(&weir_process_epoch, memory_order_relaxed),
                       1))
    return atomic_load_explicit(&weir_recording, memory_order_relaxed);
  return weir_thread_start(t);
}

/* ---- loader's side (elf.c, lookup.c) --------------------------------------------------------- */

/* The loader's own functions, found by an ELF look-up of ours before anything can be called. */
extern void *(*weir_real_dlsym)(void *, const char *);
extern void *(*weir_real_dlvsym)(void *, const char *, const char *);
extern void *(*weir_real_dlopen)(const char *, int);
extern int (*weir_real_dlclose)(void *);

/* The address of a bank's symbol, without dl* calls, our library and locks of ours; NULL when none
 * is loaded. `soname` is the bank's. For a driver or runtime symbol called through our export: what
 * the caller's reference would be bound to without us. */
void *weir_elf_symbol(const char *soname, const char *symbol);

/* The same, and remembered for this caller until something is unloaded: for calls where several
 * copies are loaded. `id` is the symbol's: an index in weir_rows[], or a number of the caller's own
 * below 2048 that is none. */
void *weir_elf_symbol_again(unsigned id, int bank, const char *symbol);

/* Whether an answer of weir_elf_symbol() for this bank holds for every caller. False: several
 * copies of the library are loaded and the answer was for the caller at hand, so it must not be
 * remembered. */
bool weir_elf_settled(int bank);

/* The bank of the object that holds `address`, or -1 when it is none we know. Asks the soname, and
 * for a runtime packed under another name the version its symbols have. */
int weir_bank_of(const void *address);

/* ---- hooks' side (hooks.gen.c, proc_address.c) ----------------------------------------------- */

extern const weir_row weir_rows[];
extern const uint32_t weir_row_count;

/* The row of an exact symbol name in a bank; NULL: not wrapped. No lock, malloc or syscall, and a
 * name that does not begin with "cu" or "__cuda" is refused within a few instructions. */
const weir_row *weir_row_find(int bank, const char *name);

/* True if the name is wrapped in any bank: what dlsym's filter asks first. */
bool weir_name_is_ours(const char *name);

/* The api number of a CUDA function we know but may not wrap (0: no CUDA function). Slow is fine.
 */
uint16_t weir_api_find(const char *name);

/* Remembers `real` as the original of the row, counts the look-up in the coverage, and returns what
 * the asker gets: the wrapper. `real` equal to the wrapper itself is returned unchanged. */
void *weir_row_offer(const weir_row *row, void *real);

/* The soname that a bank's symbols live in: "libcuda.so.1", "libcudart.so.13", ... */
const char *weir_bank_soname(int bank);

/* Resolves a row called through our exported symbol: weir_elf_symbol() in the bank's soname. NULL:
 * nothing loaded has it (the wrapper then returns the "not found" error of its layer). */
void *weir_row_resolve(const weir_row *row);

/* ---- exports (owned by the loader's side, used by hooks.gen.c) ------------------------------- */

/* Exports a wrapper under its CUDA name, bound to one bank by a version node
 * (interpose/exports.map). The order of the nodes there is the whole trick: a program linked with
 * libcudart.so.13 asks for cudaMalloc@libcudart.so.13 and gets that bank's wrapper; an unversioned
 * reference to cuInit may bind to the oldest node, weir_driver; dlsym() never sees a hidden version
 * ("@", not "@@"), so that only a look-up that would succeed without us succeeds with us; and an
 * unversioned reference to a runtime symbol (an object with cudart linked in) passes us by.
 * Wrappers are static or hidden; every exported name goes through this macro, once a row:
 * WEIR_EXPORT(w_rt13_cudaMalloc, cudaMalloc, WEIR_NODE_RT13). */
#define WEIR_NODE_DRIVER "weir_driver"
#define WEIR_NODE_RT11   "libcudart.so.11.0"
#define WEIR_NODE_RT12   "libcudart.so.12"
#define WEIR_NODE_RT13   "libcudart.so.13"
#define WEIR_EXPORT(wrapper, symbol, node)                                                         \
  __asm__(".globl weir_x_" #wrapper "\n.type weir_x_" #wrapper                                     \
          ", %function\n.set weir_x_" #wrapper ", " #wrapper "\n.symver weir_x_" #wrapper          \
          ", " #symbol "@" node ", remove\n")

/* weir_row_offer(): where *real already holds another address that is still loaded (a second copy
 * of one soname, a shim in front of it), the newcomer is returned as it is, not wrapped. dlclose()
 * sets *real back to NULL when its object is gone (lookup.c). */

/* Coverage bits of an api (WEIR_COVER_*), kept in the process and copied to every spool it opens,
 * so that look-ups before the first event count too. Any thread, no lock. */
void weir_cover(uint16_t api, uint8_t bits);

/* Forgets the addresses of the driver's functions that the hooks call for themselves: to be called
 * after a dlclose() that unloaded something. They are found again at the next need. */
void weir_helpers_forget(void);

/* Counts a look-up of a cu* name or version nobody knows; the first name is kept. */
void weir_cover_unknown(const char *name);

#endif
