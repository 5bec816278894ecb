/* driver.c: opening the driver, and wording its errors. */
#include "cuda/backend/driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

weir_driver weir_cuda;
const cuda_core *cuda_core_calls;

static const struct entry {
  const char *name;
  int version;
  void *at; /* the member of weir_cuda */
} entries[] = {
#define ROW(name, version) {#name, version, &weir_cuda.name},
    WEIR_CUDA_CALLS(ROW)
#undef ROW
};

static weir_status take_entries(PFN_cuGetProcAddress_v12000 look)
{
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    const struct entry *e = &entries[i];
    void *function = NULL;
    CUdriverProcAddressQueryResult found;
    CUresult r = look(e->name, &function, e->version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    if (r || !function)
      return cuda_unsupported("CUDA is not available: the driver has no %s of version %d (error "
                              "%d); Weir needs a driver of CUDA 12.0 or newer",
                              e->name, e->version, (int)r);
    *(void **)e->at = function;
  }
  return WEIR_OK;
}

static const char *hint(CUresult r)
{
  if (r == CUDA_ERROR_NOT_INITIALIZED) return "; was the driver initialised before a fork?";
  if (r == CUDA_ERROR_STUB_LIBRARY)
    return "; the libcuda.so.1 that was found is the Toolkit's stub, which is for linking only";
  return "";
}

static weir_status initialise(void)
{
  CUresult r = weir_cuda.cuInit(0);
  const char *text = NULL;
  if (!r) return WEIR_OK;
  if (r == CUDA_ERROR_NO_DEVICE)
    return cuda_unsupported("CUDA is not available: the driver has no device "
                            "(CUDA_ERROR_NO_DEVICE; is CUDA_VISIBLE_DEVICES set?)");
  (void)weir_cuda.cuGetErrorName(r, &text);
  return cuda_fail_as(WEIR_ECUDA, "CUDA is not available: cuInit: %s (%d)%s", text ? text : "error",
                      (int)r, hint(r));
}

weir_status driver_open(void)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *reason = dlerror();
    return cuda_unsupported("CUDA is not available: Found no NVIDIA driver on your system: %s",
                            reason ? reason : "libcuda.so.1 cannot be opened");
  }
  PFN_cuGetProcAddress_v12000 look;
  *(void **)&look = dlsym(library, "cuGetProcAddress_v2");
  if (!look)
    return cuda_unsupported("CUDA is not available: the driver has no cuGetProcAddress_v2, so it "
                            "is older than CUDA 12.0");
  weir_status st = take_entries(look);
  return st ? st : initialise();
}

weir_status driver_fail(CUresult result, const char *what, ...)
{
  const char *name = NULL, *text = NULL;
  char did[160];
  if (!result) return WEIR_OK;
  va_list arguments;
  va_start(arguments, what);
  (void)vsnprintf(did, sizeof did, what, arguments);
  va_end(arguments);
  (void)weir_cuda.cuGetErrorName(result, &name);
  (void)weir_cuda.cuGetErrorString(result, &text);
  return cuda_fail_as(result == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_EOOM : WEIR_ECUDA,
                      "%s: %s (%d): %s", did, name ? name : "a CUDA error", (int)result,
                      text ? text : "no text");
}
