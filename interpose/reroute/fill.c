/* fill.c: see fill.h. Zeros are a memset. The pattern is eight bytes long, which no memset can do
 * in one go: its first page comes from the host, and what is filled is copied after itself, twice
 * as much each time. Each context has a stream for it, which several threads may use at once. */
#include "interpose/reroute/fill.h"

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"

enum { CONTEXTS = 256, SEED_WORDS = 512 };

fill_kind fill_in_use;
static uint64_t seed[SEED_WORDS]; /* the pattern, repeated */
static CUstream streams[CONTEXTS];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* Each half is a NaN as a float (0x7ff in front), and so is the whole as a double; the other bits
 * are this process's own, so that no data of the program's look like it. */
void fill_start(fill_kind use)
{
  uint64_t bits = 0;
  fill_in_use = use;
  if (use != WEIR_FILL_POISON) return;
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits)
    bits = (clock_ticks() ^ (uint64_t)getpid() << 40) * UINT64_C(0x9e3779b97f4a7c15);
  for (int i = 0; i < SEED_WORDS; i++)
    seed[i] = (bits & UINT64_C(0x000fffff000fffff)) | UINT64_C(0x7ff000007ff00000);
}

uint64_t fill_pattern(void)
{
  return seed[0];
}

static CUresult stream_of_fill(unsigned number, CUstream *stream)
{
  PFN_cuStreamCreate_v2000 create = WEIR_HELPER(cuStreamCreate);
  CUresult r = CUDA_SUCCESS;
  if (!create || number >= CONTEXTS) return CUDA_ERROR_NOT_SUPPORTED;
  pthread_mutex_lock(&making);
  if (!streams[number]) r = create(&streams[number], CU_STREAM_NON_BLOCKING);
  *stream = streams[number];
  pthread_mutex_unlock(&making);
  return r;
}

static CUresult poison(CUstream stream, uint64_t address, uint64_t bytes)
{
  PFN_cuMemcpyHtoDAsync_v3020 up = WEIR_HELPER(cuMemcpyHtoDAsync_v2);
  PFN_cuMemcpyDtoDAsync_v3020 on = WEIR_HELPER(cuMemcpyDtoDAsync_v2);
  uint64_t done = bytes < sizeof seed ? bytes : sizeof seed;
  if (!up || !on) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult r = up(address, seed, done, stream);
  for (uint64_t n; r == CUDA_SUCCESS && done < bytes; done += n) {
    n = done < bytes - done ? done : bytes - done;
    r = on(address + done, address, n, stream);
  }
  return r;
}

static CUresult zero_block(CUstream stream, uint64_t address, uint64_t bytes)
{
  PFN_cuMemsetD8Async_v3020 set = WEIR_HELPER(cuMemsetD8Async);
  return set ? set(address, 0, bytes, stream) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fill_device_memory(unsigned number, uint64_t address, uint64_t bytes, bool recycled)
{
  PFN_cuStreamSynchronize_v2000 wait = WEIR_HELPER(cuStreamSynchronize);
  CUstream stream = NULL;
  if (fill_in_use == WEIR_FILL_NONE || (fill_in_use == WEIR_FILL_ZERO && !recycled))
    return CUDA_SUCCESS;
  if (!wait) return CUDA_ERROR_NOT_SUPPORTED;
  capture_relaxed mode = capture_relax();
  CUresult r = stream_of_fill(number, &stream);
  if (r == CUDA_SUCCESS)
    r = fill_in_use == WEIR_FILL_ZERO ? zero_block(stream, address, bytes)
                                      : poison(stream, address, bytes);
  if (r == CUDA_SUCCESS) r = wait(stream);
  capture_relax_end(&mode);
  return r;
}

void fill_context_gone(unsigned number)
{
  pthread_mutex_lock(&making);
  if (number < CONTEXTS) streams[number] = NULL;
  pthread_mutex_unlock(&making);
}
