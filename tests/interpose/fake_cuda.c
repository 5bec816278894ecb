/* fake_cuda.c: libraries that export what libcuda.so.1 and libcudart.so.N export and do next to
 * nothing: each function counts its call and returns the status the test has set. Those that give
 * something out (here) give what the test has put into `fake`; the others are in fake_symbols.c.
 * Built once as the driver (FAKE_DRIVER) and once for each major of the runtime (FAKE_RUNTIME). */
#include "tests/interpose/fake_cuda.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_state fake;

int fake_answer(const char *name)
{
  __atomic_fetch_add(&fake.calls, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&fake.last, name, __ATOMIC_RELAXED);
  if (fake.inside) fake.inside();
  return fake.status;
}

/* First argument: where a 64-bit handle or address goes. */
#define GIVES(symbol)                                                                              \
  EXPORT int symbol(uint64_t *out);                                                                \
  int symbol(uint64_t *out)                                                                        \
  {                                                                                                \
    int status = fake_answer(#symbol);                                                             \
    if (out) *out = status ? UINT64_C(0xdeaddeaddead) : fake.give;                                 \
    return status;                                                                                 \
  }

#define GIVES_PITCH(symbol)                                                                        \
  EXPORT int symbol(uint64_t *out, size_t *pitch);                                                 \
  int symbol(uint64_t *out, size_t *pitch)                                                         \
  {                                                                                                \
    int status = fake_answer(#symbol);                                                             \
    if (out) *out = fake.give;                                                                     \
    if (pitch) *pitch = fake.pitch;                                                                \
    return status;                                                                                 \
  }

#ifdef FAKE_DRIVER

GIVES(cuMemAlloc_v2)
GIVES(cuMemAllocManaged)
GIVES(cuIpcOpenMemHandle_v2)
GIVES(cuMemPoolImportPointer)
GIVES(cuExternalMemoryGetMappedBuffer)
GIVES(cuExternalMemoryGetMappedMipmappedArray)
GIVES(cuMulticastCreate)
GIVES(cuMemCreate)
GIVES(cuMemRetainAllocationHandle)
GIVES(cuMemImportFromShareableHandle)
GIVES(cuMemAddressReserve)
GIVES(cuMemAllocAsync)
GIVES(cuMemAllocFromPoolAsync)
GIVES(cuMemAllocHost_v2)
GIVES(cuMemHostAlloc)
GIVES(cuArrayCreate_v2)
GIVES(cuArray3DCreate_v2)
GIVES(cuStreamCreate)
GIVES(cuEventCreate)
GIVES(cuCtxCreate_v2)
GIVES(cuModuleLoadData)
GIVES(cuLibraryLoadFromFile)
GIVES(cuDevicePrimaryCtxRetain)
GIVES(cuModuleGetFunction)
GIVES(cuLibraryGetKernel)
GIVES(cuKernelGetFunction)
GIVES_PITCH(cuMemAllocPitch_v2)

EXPORT int cuCtxGetCurrent(uint64_t *context);
int cuCtxGetCurrent(uint64_t *context)
{
  *context = fake.context;
  return 0;
}

EXPORT int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
  *device = fake.device;
  return fake.context ? 0 : 201;
}

EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address);
int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
  int status = fake_answer("cuMemGetAddressRange_v2");
  if (base) *base = address;
  if (bytes) *bytes = fake.range;
  return status;
}

EXPORT int cuMemGetInfo_v2(size_t *bytes, size_t *total);
int cuMemGetInfo_v2(size_t *bytes, size_t *total)
{
  if (bytes) *bytes = fake.free;
  if (total) *total = fake.total;
  return 0;
}

EXPORT int cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value);
int cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value)
{
  (void)device;
  *value =
      attribute == 2 ? fake.graphs_reserved : fake.graphs_reserved / 2; /* CUgraphMem_attribute */
  return 0;
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device);
int cuDeviceGetName(char *name, int bytes, int device)
{
  if (name) strncpy(name, device ? "Fake Two" : "Fake One", (size_t)bytes);
  return 0;
}

EXPORT int cuDeviceGetPCIBusId(char *bus, int bytes, int device);
int cuDeviceGetPCIBusId(char *bus, int bytes, int device)
{
  strncpy(bus, device ? "0000:3B:00.0" : "0000:1A:00.0", (size_t)bytes);
  return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
  if (bytes) *bytes = (size_t)(device + 1) << 30;
  return 0;
}

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE 2, IS_MANAGED 8, DEVICE_ORDINAL 9. */
EXPORT int cuPointerGetAttribute(void *data, int attribute, uint64_t address);
int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
  fake.asked++;
  if (address < fake.ask_low || address >= fake.ask_high) return 1;
  int value = attribute == 2 ? fake.ask_type : attribute == 8 ? fake.ask_managed : fake.ask_device;
  memcpy(data, &value, sizeof value);
  return 0;
}

EXPORT int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
  fake.asked++;
  *status = (uint64_t)(uintptr_t)stream == fake.capturing;
  return 0;
}

/* CU_AD_FORMAT_FLOAT, four channels. */
EXPORT int cuArray3DGetDescriptor_v2(fake_descriptor *d, uint64_t array);
int cuArray3DGetDescriptor_v2(fake_descriptor *d, uint64_t array)
{
  (void)array;
  *d = (fake_descriptor){8, 8, 8, 0x20, 4, 0};
  return 0;
}

/* No pools. */
EXPORT int cuDeviceGetMemPool(uint64_t *pool, int device);
int cuDeviceGetMemPool(uint64_t *pool, int device)
{
  (void)pool, (void)device;
  return 801;
}

EXPORT int cuFuncGetName(const char **name, uint64_t function);
int cuFuncGetName(const char **name, uint64_t function)
{
  (void)function;
  *name = fake.function_name;
  return fake.function_name ? 0 : 400;
}

EXPORT int cuKernelGetName(const char **name, uint64_t kernel);
int cuKernelGetName(const char **name, uint64_t kernel)
{
  (void)kernel;
  *name = fake.function_name;
  return fake.function_name ? 0 : 400;
}

static int param_info(size_t index, size_t *offset, size_t *bytes)
{
  fake.param_asks++;
  if (fake.param_status) return fake.param_status;
  if (index >= sizeof fake.param_bytes / sizeof *fake.param_bytes || !fake.param_bytes[index])
    return 1; /* CUDA_ERROR_INVALID_VALUE */
  *offset = 0;
  *bytes = fake.param_bytes[index];
  return 0;
}

EXPORT int cuFuncGetParamInfo(uint64_t function, size_t index, size_t *offset, size_t *bytes);
int cuFuncGetParamInfo(uint64_t function, size_t index, size_t *offset, size_t *bytes)
{
  return function ? param_info(index, offset, bytes) : 400;
}

EXPORT int cuKernelGetParamInfo(uint64_t kernel, size_t index, size_t *offset, size_t *bytes);
int cuKernelGetParamInfo(uint64_t kernel, size_t index, size_t *offset, size_t *bytes)
{
  return kernel ? param_info(index, offset, bytes) : 400;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
  (void)device, *flags = 0, *active = fake.active;
  return 0;
}

/* The real look-up: the test says what the driver has, by name, version and flags. */
static int lookup(const char *name, void **out, int version, uint64_t flags)
{
  fake.calls++;
  if (fake.status) return fake.status;
  void *p = fake.resolve ? fake.resolve(name, version, flags) : NULL;
  if (out) *out = p;
  return p ? 0 : 500;
}

EXPORT int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
  fake.last = "cuGetProcAddress";
  return lookup(name, out, version, flags);
}

EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                               int *status);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
  fake.last = "cuGetProcAddress_v2";
  int r = lookup(name, out, version, flags);
  if (status) *status = r ? 1 : 0;
  return r;
}

#else

GIVES(cudaMalloc)
GIVES(cudaMallocManaged)
GIVES(cudaIpcOpenMemHandle)
GIVES(cudaMallocAsync)
GIVES(cudaMallocFromPoolAsync)
GIVES(cudaMallocHost)
GIVES(cudaHostAlloc)
GIVES(cudaMallocArray)
GIVES(cudaMalloc3DArray)
GIVES(cudaStreamCreate)
GIVES(cudaEventCreate)
GIVES(__cudaGetKernel)
GIVES_PITCH(cudaMallocPitch)

typedef struct pitched {
  uint64_t ptr;
  size_t pitch, xsize, ysize;
} pitched;

EXPORT int cudaMalloc3D(pitched *out);
int cudaMalloc3D(pitched *out)
{
  int status = fake_answer("cudaMalloc3D");
  if (out) *out = (pitched){fake.give, fake.pitch, 0, 0};
  return status;
}

EXPORT int cudaGetFuncBySymbol(uint64_t *function, uint64_t stub);
int cudaGetFuncBySymbol(uint64_t *function, uint64_t stub)
{
  int status = fake_answer("cudaGetFuncBySymbol");
  if (!status && stub != fake.registered) status = fake.last_error = 98;
  if (!status && function) *function = fake.give;
  return status;
}

EXPORT int cudaPeekAtLastError(void);
int cudaPeekAtLastError(void)
{
  return fake.last_error;
}

EXPORT int cudaGetLastError(void);
int cudaGetLastError(void)
{
  int was = fake.last_error;
  fake.last_error = 0;
  return was;
}

EXPORT int cudaGetDevice(int *device);
int cudaGetDevice(int *device)
{
  if (device) *device = fake.device;
  return 0;
}

EXPORT int cudaRuntimeGetVersion(int *version);
int cudaRuntimeGetVersion(int *version)
{
  if (version) *version = FAKE_RUNTIME * 1000;
  return 0;
}

static int resolve_entry_point(const char *name, void **out, int version, uint64_t flags,
                               int *status)
{
  fake.calls++;
  void *p = fake.resolve ? fake.resolve(name, version, flags) : NULL;
  if (out) *out = p;
  if (status) *status = p ? 0 : 1;
  return fake.status;
}

EXPORT int cudaGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status);
int cudaGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status)
{
  return resolve_entry_point(name, out, FAKE_RUNTIME * 1000, flags, status);
}

EXPORT int cudaGetDriverEntryPoint_ptsz(const char *name, void **out, uint64_t flags, int *status);
int cudaGetDriverEntryPoint_ptsz(const char *name, void **out, uint64_t flags, int *status)
{
  return resolve_entry_point(name, out, FAKE_RUNTIME * 1000, flags | 2, status);
}

EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **out, int version,
                                            uint64_t flags, int *status);
int cudaGetDriverEntryPointByVersion(const char *name, void **out, int version, uint64_t flags,
                                     int *status)
{
  return resolve_entry_point(name, out, version, flags, status);
}

EXPORT int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **out, int version,
                                                 uint64_t flags, int *status);
int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **out, int version, uint64_t flags,
                                          int *status)
{
  return resolve_entry_point(name, out, version, flags | 2, status);
}

#endif
