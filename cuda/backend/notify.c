/* notify.c: what the engine takes from the driver, reported to the preload library where there is
 * one (core/trace/listener.h): ranges of memory, so that it knows what a pointer of the program is,
 * and how much it is in all. */
#include "cuda/backend/device.h"

static const engine_listener *listener(void)
{
  return cuda_core_calls->listener;
}

bool cuda_try_again(CUresult r)
{
  return r == CUDA_ERROR_OUT_OF_MEMORY && listener() && listener()->relieve();
}

/* Within the context. */
void cuda_notify_mapped(const cuda_device_state *d, CUresult r, uint64_t address, uint64_t bytes,
                        memory_kind mem)
{
  if (!r && listener()) listener()->mapped(address, bytes, mem, d->index);
}

void cuda_notify_unmapped(uint64_t address)
{
  if (listener()) listener()->unmapped(address);
}

void cuda_notify_taken(cuda_device_state *d, CUresult r, memory_kind mem, int64_t bytes)
{
  if (r || !listener()) return;
  _Atomic uint64_t *sum = &d->taken[mem == WEIR_MEM_PINNED];
  uint64_t now = atomic_fetch_add(sum, (uint64_t)bytes) + (uint64_t)bytes;
  listener()->reserved(d->index, mem, now);
}
