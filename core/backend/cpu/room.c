/* cpu/room.c: room for panels of matrices, kept for the next who asks: new memory would cost a
 * fault for each of its pages. One block of KEEP_BYTES at most, and some smaller ones, for threads
 * that multiply at the same time; who finds them taken has one of his own. */
#include <stdatomic.h>
#include <stdlib.h>
#include "core/backend/cpu/gemm.h"

enum {
  KEEP_BYTES = 32 << 20,
  KEEP_SMALL = 1 << 20, /* bytes of all but the first */
  KEPT = 16
};

static _Atomic(cpu_room *) kept[KEPT];

static bool is_small_room(size_t bytes)
{
  return bytes <= KEEP_SMALL;
}

cpu_room *cpu_room_take(size_t bytes)
{
  for (int i = is_small_room(bytes); i < (is_small_room(bytes) ? KEPT : 1); i++) {
    if (!atomic_load_explicit(&kept[i], memory_order_relaxed)) continue;
    cpu_room *r = atomic_exchange(&kept[i], NULL);
    if (r && r->bytes >= bytes) return r;
    free(r);
  }
  cpu_room *r =
      bytes > PTRDIFF_MAX ? NULL : aligned_alloc(64, (sizeof *r + bytes + 63) & ~(size_t)63);
  if (r) r->bytes = bytes;
  return r;
}

void cpu_room_give(cpu_room *r)
{
  if (is_small_room(r->bytes)) {
    for (int i = 1; i < KEPT; i++) {
      cpu_room *none = NULL;
      if (atomic_compare_exchange_strong(&kept[i], &none, r)) return;
    }
  } else if (r->bytes <= KEEP_BYTES) {
    r = atomic_exchange(&kept[0], r);
  }
  free(r);
}

static __attribute__((destructor)) void room_end(void)
{
  for (int i = 0; i < KEPT; i++)
    free(atomic_exchange(&kept[i], NULL));
}
