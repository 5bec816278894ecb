/* register.h: what nvcc's generated code calls at start-up and around a launch. Not in any header a
 * program includes by name; the shapes are those of the Toolkit's crt/host_runtime.h. */
#ifndef WEIR_SIM_RUNTIME_REGISTER_H
#define WEIR_SIM_RUNTIME_REGISTER_H

#include "cuda/sim/runtime/rt.h"

RT_API void **__cudaRegisterFatBinary(void *wrapper);
RT_API void __cudaRegisterFatBinaryEnd(void **handle);
RT_API void __cudaUnregisterFatBinary(void **handle);
RT_API void __cudaRegisterFunction(void **handle, const char *stub, char *device_name,
                                   const char *name, int thread_limit, void *thread, void *block,
                                   void *block_dim, void *grid_dim, int *warp);
RT_API void __cudaRegisterVar(void **handle, char *host, char *device_name, const char *name,
                              int external, size_t bytes, int constant, int global);
RT_API void __cudaRegisterManagedVar(void **handle, void **host, char *device_name,
                                     const char *name, int external, size_t bytes, int constant,
                                     int global);
RT_API char __cudaInitModule(void **handle);
RT_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
RT_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                            struct CUstream_st *stream);
RT_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                              void *stream);
RT_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                      size_t shared, cudaStream_t stream);
RT_API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                           void **arguments, size_t shared, cudaStream_t stream);

#endif
