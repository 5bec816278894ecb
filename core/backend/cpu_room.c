/* cpu_room.c: room for panels of matrices, kept for the next who asks: new memory would cost a fault
 * for each of its pages. One block, of KEEP_BYTES at most; who finds it taken has one of his own. */
#include <stdatomic.h>
#include <stdlib.h>
#include "core/backend/cpu_gemm.h"

enum { KEEP_BYTES = 32 << 20 };

static _Atomic(cpu_room *) kept;

cpu_room *cpu_room_take(size_t bytes)
{
  cpu_room *r = atomic_exchange(&kept, NULL);
  if (r && r->bytes >= bytes) return r;
  free(r);
  r = bytes > PTRDIFF_MAX ? NULL : aligned_alloc(64, (sizeof *r + bytes + 63) & ~(size_t)63);
  if (r) r->bytes = bytes;
  return r;
}

void cpu_room_give(cpu_room *r)
{
  if (r->bytes <= KEEP_BYTES) r = atomic_exchange(&kept, r);
  free(r);
}

static __attribute__((destructor)) void room_end(void)
{
  free(atomic_exchange(&kept, NULL));
}
