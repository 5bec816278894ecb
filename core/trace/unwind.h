/* unwind.h: the seam through which a stack is unwound: an array is filled with return addresses.
 *
 * libunwind's unw_backtrace, opened with RTLD_LOCAL from the folder of this library or from the
 * system, glibc's backtrace() where it is missing. stack_init() (stack.h) chooses, and stack.h has
 * what must be called around dlclose(); who cannot do that calls weir_unwind_here(). */
#ifndef WEIR_TRACE_UNWIND_H
#define WEIR_TRACE_UNWIND_H

#include <stddef.h>
#include <stdint.h>

enum { WEIR_UNWIND_SPARE = 24 }; /* frames of ours at the top at most */

typedef int capture_function(void **frames, int count);
typedef int flush_function(void *space, uintptr_t low, uintptr_t high);

enum { WEIR_UNWIND_SKIPS = 4 }; /* ranges */

typedef struct unwind_state {
  _Atomic(capture_function *) capture; /* NULL: off */
  flush_function *flush;               /* NULL: the unwinder has no cache of its own */
  void **space;                        /* libunwind's unw_local_addr_space */
  const void *library;                 /* an address in libunwind's data */
  ptrdiff_t cache_at;     /* of a thread's frame cache in libunwind's TLS block; -1: not found */
  _Atomic unsigned spare; /* frames of ours seen at the top at most: captured beyond the depth */
  unsigned depth;         /* frames recorded at most */
  uintptr_t skip[WEIR_UNWIND_SKIPS][2];
  unsigned skips;
  _Atomic uint32_t closing; /* dlclose() calls under way */
  _Atomic uint64_t unloads; /* dlpi_subs when the caches were last flushed: the epoch */
} unwind_state;

extern unwind_state unwind_backend;

typedef struct object_loads {
  uint64_t adds, subs; /* objects loaded and unloaded so far, by the loader's count */
} object_loads;

struct dl_phdr_info;
object_loads object_loads_now(void);
/* Reads the same counts from what dl_iterate_phdr() hands its visitor. */
void object_loads_read(object_loads *out, const struct dl_phdr_info *info, size_t size);

/* Captures what is above our own frames: the first *first of them are ours. Returns how many there
 * are in all; `frames` has room for depth + WEIR_UNWIND_SPARE. */
int weir_unwind(void **frames, int *first);

/* Begins a new epoch if the loader has unmapped something since the last. */
void unwind_flush(void);
/* Empties this thread's own cache of frames: once an epoch, before its first capture. */
void unwind_forget(void);
/* Empties it, too, and gives its memory back to the system: libunwind makes a table of 256 KiB a
 * thread and fills all of it, of which a few dozen entries are ever used. */
void unwind_thin(void);

/* weir_unwind() for a caller who does: at most `room` frames into `frames`, innermost first, without
 * null ones; 0 when off. Keeps errno. */
unsigned weir_unwind_told(uint64_t *frames, unsigned room);

/* The same for a caller that does not learn of dlclose(): asks the loader each time. */
unsigned weir_unwind_here(uint64_t *frames, unsigned room);

#endif
