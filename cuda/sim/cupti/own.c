/* own.c: the device memory that CUPTI takes for itself: with the fault `allocates`, buffers as its
 * documents describe them (3 of 3.2 MB when kinds are enabled in a context, and more by a thread of
 * its own), which stay. Functions of the driver are looked up, as the real library does. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <dlfcn.h>
#include <string.h>

enum { BUFFERS = 3, BUFFER_BYTES = 3200000 };

static _Atomic bool done;
static CUcontext context; /* that was current */

static CUresult allocate_own(unsigned count)
{
  CUresult (*f)(CUdeviceptr *, size_t) = NULL;
  CUresult r = CUDA_SUCCESS;
  CUdeviceptr kept;
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
  memcpy(&f, &found, sizeof f);
  for (unsigned i = 0; f && r == CUDA_SUCCESS && i < count; i++)
    r = f(&kept, BUFFER_BYTES);
  return r;
}

static void *allocate_in_thread(void *library)
{
  CUresult (*f)(CUcontext) = NULL;
  void *found = dlsym(library, "cuCtxSetCurrent");
  memcpy(&f, &found, sizeof f);
  if (f && f(context) == CUDA_SUCCESS) (void)allocate_own(1);
  return NULL;
}

void sim_allocate_own(void)
{
  CUresult (*f)(CUcontext *) = NULL;
  pthread_t thread;
  if (!sim_faults()->allocates || atomic_exchange(&done, true)) return;
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = dlsym(library, "cuCtxGetCurrent");
  memcpy(&f, &found, sizeof f);
  if (!f || f(&context) != CUDA_SUCCESS || !context || allocate_own(BUFFERS) != CUDA_SUCCESS)
    return;
  if (pthread_create(&thread, NULL, allocate_in_thread, library) == 0)
    (void)pthread_join(thread, NULL);
}
