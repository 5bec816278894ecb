/* launch.c: launching kernels, and what can be asked and set of one.
 *
 * kernel<<<grid, block, shared, stream>>>(...) is compiled to a push of the configuration, the
 * evaluation of the arguments and a call of the stub, which pops the configuration and launches.
 * Arguments can launch kernels themselves, hence a stack, one a thread. */
#include "cuda/sim/runtime/register.h"

/* ---- the configuration of a launch to come --------------------------------------------------- */

struct configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};

enum { NESTED = 16 };
static __thread struct {
  struct configuration item[NESTED];
  unsigned depth;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream)
{
  if (pushed.depth == NESTED) return (unsigned)rt_note(cudaErrorLaunchMaxDepthExceeded);
  pushed.item[pushed.depth++] = (struct configuration){grid, block, shared, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
  if (pushed.depth == 0) return rt_note(cudaErrorMissingConfiguration);
  const struct configuration *c = &pushed.item[--pushed.depth];
  *grid = c->grid;
  *block = c->block;
  *shared = c->shared;
  *(cudaStream_t *)stream = c->stream;
  return cudaSuccess;
}

/* ---- launches -------------------------------------------------------------------------------- */

static bool is_empty_dim(dim3 d)
{
  return d.x == 0 || d.y == 0 || d.z == 0;
}

/* The driver calls a shape beyond the device's limits an invalid value, the runtime an invalid
 * configuration. Only asked after a failure. */
static cudaError_t shape_error(cudaError_t e, dim3 grid, dim3 block)
{
  const unsigned asked[] = {block.x, block.y, block.z, block.x * block.y * block.z,
                            grid.x,  grid.y,  grid.z};
  const CUdevice_attribute limit[] = {
      CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
      CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
      CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  CUdevice device;
  int most;
  if (e != cudaErrorInvalidValue || rt_drv->CtxGetDevice(&device) != CUDA_SUCCESS) return e;
  for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++)
    if (rt_drv->DeviceGetAttribute(&most, limit[i], device) == CUDA_SUCCESS &&
        asked[i] > (unsigned)most)
      return cudaErrorInvalidConfiguration;
  return e;
}

static cudaError_t launch_kernel(const struct rt_driver *d, bool cooperative, CUkernel kernel,
                                 dim3 grid, dim3 block, void **arguments, size_t shared,
                                 cudaStream_t stream)
{
  CUfunction f = (CUfunction)kernel; /* documented: a launch takes either */
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  if (is_empty_dim(grid) || is_empty_dim(block) || shared > UINT32_MAX)
    return cudaErrorInvalidConfiguration;
  CUresult r = cooperative
                   ? d->LaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y,
                                                block.z, (unsigned)shared, stream, arguments)
                   : d->LaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     (unsigned)shared, stream, arguments, NULL);
  return shape_error(rt_result(r), grid, block);
}

static cudaError_t launch_runtime(const struct rt_driver *d, bool cooperative, const void *function,
                                  dim3 grid, dim3 block, void **arguments, size_t shared,
                                  cudaStream_t stream)
{
  CUkernel kernel;
  cudaError_t e = rt_kernel(function, &kernel);
  return e ? e : launch_kernel(d, cooperative, kernel, grid, block, arguments, shared, stream);
}

/* Launch attributes are the driver's by other names. */
_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "same structure");
_Static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value), "same");

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *c)
{
  return (CUlaunchConfig){.gridDimX = c->gridDim.x,
                          .gridDimY = c->gridDim.y,
                          .gridDimZ = c->gridDim.z,
                          .blockDimX = c->blockDim.x,
                          .blockDimY = c->blockDim.y,
                          .blockDimZ = c->blockDim.z,
                          .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
                          .hStream = c->stream,
                          .attrs = (CUlaunchAttribute *)c->attrs,
                          .numAttrs = c->numAttrs};
}

static cudaError_t launch_ex(const struct rt_driver *d, const cudaLaunchConfig_t *c,
                             const void *function, void **arguments)
{
  CUkernel kernel;
  if (!c) return cudaErrorInvalidValue;
  cudaError_t e = rt_kernel(function, &kernel);
  if (e) return e;
  if (is_empty_dim(c->gridDim) || is_empty_dim(c->blockDim) || c->dynamicSmemBytes > UINT32_MAX)
    return cudaErrorInvalidConfiguration;
  CUlaunchConfig config = driver_config(c);
  return shape_error(rt_result(d->LaunchKernelEx(&config, (CUfunction)kernel, arguments, NULL)),
                     c->gridDim, c->blockDim);
}

RT_BODY_BOTH_OF(__cudaLaunchKernel, _ptsz,
                (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                 cudaStream_t stream),
                launch_kernel(d, false, (CUkernel)kernel, grid, block, arguments, shared, stream))
RT_BODY_BOTH(cudaLaunchKernel, _ptsz,
             launch_runtime(d, false, func, gridDim, blockDim, args, sharedMem, stream))
RT_BODY_BOTH(cudaLaunchCooperativeKernel, _ptsz,
             launch_runtime(d, true, func, gridDim, blockDim, args, sharedMem, stream))
RT_BODY_BOTH(cudaLaunchKernelExC, _ptsz, launch_ex(d, config, func, args))

/* ---- about a kernel -------------------------------------------------------------------------- */

/* Fields of cudaFuncAttributes: A(field, CU_FUNC_ATTRIBUTE_...). */
#define ATTRIBUTE_MAP(A)                                                                           \
  A(sharedSizeBytes, SHARED_SIZE_BYTES)                                                            \
  A(constSizeBytes, CONST_SIZE_BYTES)                                                              \
  A(localSizeBytes, LOCAL_SIZE_BYTES)                                                              \
  A(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)                                                     \
  A(numRegs, NUM_REGS)                                                                             \
  A(ptxVersion, PTX_VERSION)                                                                       \
  A(binaryVersion, BINARY_VERSION)                                                                 \
  A(cacheModeCA, CACHE_MODE_CA)                                                                    \
  A(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES)                                      \
  A(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT)                                      \
  A(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET)                                                 \
  A(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH)                                                  \
  A(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT)                                                \
  A(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH)                                                  \
  A(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE)                       \
  A(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED)

/* The kernel of `function` and the device a per-device question is about. */
static cudaError_t kernel_here(const void *function, CUkernel *kernel, CUdevice *device)
{
  cudaError_t e = rt_kernel(function, kernel);
  return e ? e : rt_result(rt_drv->CtxGetDevice(device));
}

static cudaError_t function_attributes(struct cudaFuncAttributes *out, const void *function)
{
  CUkernel kernel;
  CUdevice device;
  int value;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t e = kernel_here(function, &kernel, &device);
  if (e) return e;
  *out = (struct cudaFuncAttributes){0};
/* An attribute a driver does not know stays 0. */
#define A(field, attribute)                                                                        \
  if (rt_drv->KernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_##attribute, kernel, device) == 0)      \
    out->field = (__typeof__(out->field))value;
  ATTRIBUTE_MAP(A)
#undef A
  return cudaSuccess;
}

static cudaError_t set_attribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
  CUkernel kernel;
  CUdevice device;
  cudaError_t e = kernel_here(function, &kernel, &device);
  return e ? e
           : rt_result(rt_drv->KernelSetAttribute((CUfunction_attribute)attribute, value, kernel,
                                                  device));
}

static cudaError_t set_cache(const void *function, enum cudaFuncCache config)
{
  CUkernel kernel;
  CUdevice device;
  cudaError_t e = kernel_here(function, &kernel, &device);
  return e ? e : rt_result(rt_drv->KernelSetCacheConfig(kernel, (CUfunc_cache)config, device));
}

/* One driver call about the kernel of `func` that needs no device. */
#define RT_KERNEL_CALL(name, call)                                                                 \
  RT_API cudaError_t CUDARTAPI name RT_PARAMS_##name                                               \
  {                                                                                                \
    CUkernel kernel;                                                                               \
    cudaError_t e = rt_context();                                                                  \
    if (!e) e = rt_kernel(func, &kernel);                                                          \
    return rt_note(e ? e : rt_result(rt_drv->call));                                               \
  }

#define OCCUPANCY(flags)                                                                           \
  OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, (CUfunction)kernel, blockSize,     \
                                                     dynamicSMemSize, flags)

RT_KERNEL_CALL(cudaFuncGetName, KernelGetName(name, kernel))
RT_KERNEL_CALL(cudaFuncGetParamInfo, KernelGetParamInfo(kernel, paramIndex, paramOffset, paramSize))
RT_KERNEL_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, OCCUPANCY(0))
RT_KERNEL_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, OCCUPANCY(flags))
RT_KERNEL_CALL(cudaOccupancyAvailableDynamicSMemPerBlock,
               OccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, (CUfunction)kernel, numBlocks,
                                                     blockSize))
RT_BODY(cudaFuncGetAttributes, function_attributes(attr, func))
RT_BODY(cudaFuncSetAttribute, set_attribute(func, attr, value))
RT_BODY(cudaFuncSetCacheConfig, set_cache(func, cacheConfig))
RT_DEVICE_CALL(cudaKernelSetAttributeForDevice,
               KernelSetAttribute((CUfunction_attribute)attr, value, (CUkernel)kernel, handle))
