/* error.c: error numbers, names and sentences, and the thread's last error.
 *
 * The last error is the runtime's own memory: cudaGetLastError() returns and clears it. A *sticky*
 * error (the context is broken: an illegal address, an assert, a launch failure) is not cleared; it
 * stays with the thread until the device is reset. */
#include "cuda/sim/runtime/rt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static __thread struct {
  cudaError_t error; /* cudaSuccess: none */
  unsigned resets;   /* rt_resets when it was noted: a sticky error ends with a reset */
} last;

cudaError_t rt_result(CUresult result)
{
  switch ((int)result) {
  case 0:
#define E(name, text) case cudaError##name:
#include "cuda/sim/error.def"
#undef E
    return (cudaError_t)result;
  default:
    return cudaErrorUnknown;
  }
}

static bool sticky(cudaError_t e)
{
  switch (e) {
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorContained:
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchTimeout:
  case cudaErrorAssert:
  case cudaErrorHardwareStackError:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorLaunchFailure:
  case cudaErrorTensorMemoryLeak:
  case cudaErrorExternalDevice:
    return true;
  default:
    return false;
  }
}

cudaError_t rt_note(cudaError_t error)
{
  if (error) {
    last.error = error;
    last.resets = atomic_load_explicit(&rt_resets, memory_order_relaxed);
  }
  return error;
}

void rt_forget(void)
{
  last.error = cudaSuccess;
}

RT_API cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
  if (sticky(last.error) && last.resets != atomic_load_explicit(&rt_resets, memory_order_relaxed))
    rt_forget();
  return last.error;
}

RT_API cudaError_t CUDARTAPI cudaGetLastError(void)
{
  cudaError_t e = cudaPeekAtLastError();
  if (!sticky(e)) rt_forget();
  return e;
}

RT_API const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
  switch ((int)error) {
  case cudaSuccess:
    return "cudaSuccess";
#define E(name, text)                                                                              \
  case cudaError##name:                                                                            \
    return "cudaError" #name;
#include "cuda/sim/error.def"
#undef E
  default:
    return "unrecognized error code";
  }
}

RT_API const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
  switch ((int)error) {
  case cudaSuccess:
    return "no error";
#define E(name, text)                                                                              \
  case cudaError##name:                                                                            \
    return text;
#include "cuda/sim/error.def"
#undef E
  default:
    return "unrecognized error code";
  }
}

/* The answer of what is not done: unsupported.c, which knows no type of ours. Reported once a name,
 * on stderr and, under Weir, in the trace. */
int weir_rt_unsupported(int *reported, const char *name);
int weir_rt_unsupported(int *reported, const char *name)
{
  if (__atomic_exchange_n(reported, 1, __ATOMIC_RELAXED))
    return (int)rt_note(cudaErrorNotSupported);
  char text[400];
  int n = snprintf(text, sizeof text,
                   "weir sim: %s is not done by the software device: answers 801 "
                   "(cudaErrorNotSupported)\n",
                   name);
  ssize_t written = write(STDERR_FILENO, text, (size_t)n);
  (void)written;
  text[n - 1] = 0;
  void (*note)(const char *) = NULL;
  *(void **)&note = dlsym(RTLD_DEFAULT, "weir_note");
  if (note) note(text);
  return (int)rt_note(cudaErrorNotSupported);
}
