/* driver.h: what the small programs on the driver's functions share: a call that fails ends
 * them. */
#ifndef WEIR_TESTS_DRIVER_H
#define WEIR_TESTS_DRIVER_H

#include <cuda.h>
#include <stdio.h>
#include <unistd.h>

static inline void require_success(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return;
  (void)fprintf(stderr, "%s: %d\n", what, (int)r);
  _exit(1);
}

#define CHECK(call) require_success(call, #call)

/* Device 0's primary context, current. */
static inline void begin_on_device(void)
{
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
}

#endif
