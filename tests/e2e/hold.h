/* hold.h: holding a stream back, and letting it go, on any device.
 *
 * The software device does it by itself (cuda/sim/control.h). Elsewhere, or where it is asked for,
 * the stream is made to wait for a word of page-locked memory (cuStreamWaitValue32): that is work,
 * which the program has to count. */
#ifndef WEIR_TESTS_E2E_HOLD_H
#define WEIR_TESTS_E2E_HOLD_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

enum { HOLD_WORDS = 1024 };

typedef struct holder {
  int (*hold)(void *), (*release)(void *); /* NULL: by words */
  uint32_t *words;                         /* 0: held */
  CUstream streams[HOLD_WORDS];            /* what waits for the word, NULL: none */
} holder;

/* Needs a context. */
static inline CUresult hold_open(holder *h, bool by_words)
{
  void *driver = by_words ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
  *h = (holder){.hold = NULL};
  if (driver) h->hold = (int (*)(void *))(uintptr_t)dlsym(driver, "weir_sim_hold");
  if (driver) h->release = (int (*)(void *))(uintptr_t)dlsym(driver, "weir_sim_release");
  if (h->hold && h->release) return CUDA_SUCCESS;
  h->hold = NULL;
  return cuMemHostAlloc((void **)&h->words, HOLD_WORDS * sizeof *h->words,
                        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

/* Whether a hold is itself work in the stream. */
static inline bool hold_is_work(const holder *h)
{
  return !h->hold;
}

static inline CUresult hold_stream(holder *h, CUstream s)
{
  CUdeviceptr p = 0;
  int i = 0;
  if (h->hold) return (CUresult)h->hold(s);
  while (i < HOLD_WORDS && h->streams[i])
    i++;
  if (i == HOLD_WORDS) return CUDA_ERROR_OUT_OF_MEMORY;
  h->streams[i] = s;
  __atomic_store_n(&h->words[i], 0, __ATOMIC_SEQ_CST);
  CUresult r = cuMemHostGetDevicePointer(&p, &h->words[i], 0);
  return r ? r : cuStreamWaitValue32(s, p, 1, CU_STREAM_WAIT_VALUE_EQ);
}

/* Also of a stream that is destroyed, whose work goes on. A word that was waited for is not used
 * again: the device may be still to read it. */
static inline CUresult hold_release(holder *h, CUstream s)
{
  if (h->hold) return (CUresult)h->release(s);
  for (int i = 0; i < HOLD_WORDS; i++)
    if (h->streams[i] == s && !__atomic_load_n(&h->words[i], __ATOMIC_SEQ_CST))
      __atomic_store_n(&h->words[i], 1, __ATOMIC_SEQ_CST);
  return CUDA_SUCCESS;
}

/* Nothing is queued any more: all words can be used again. */
static inline void hold_reuse(holder *h)
{
  for (int i = 0; i < HOLD_WORDS; i++)
    h->streams[i] = NULL;
}

#endif
