/* correlated.h: the functions of the driver whose work has records. Their numbers as CUPTI's
 * callbacks, from first to last: all between are such functions. */
#ifndef WEIR_INTERPOSE_ACTIVITY_CORRELATED_H
#define WEIR_INTERPOSE_ACTIVITY_CORRELATED_H

#define CORRELATED_COPIES(X)                                                                       \
  X(cuMemcpyHtoD, cu64MemsetD2D32)                                                                 \
  X(cuMemsetD8Async, cu64MemsetD2D32Async)                                                         \
  X(cu64Memcpy2D, cu64Memcpy2DAsync)                                                               \
  X(cuMemcpy_v2, cuMemsetD2D32_v2)                                                                 \
  X(cuMemcpyHtoD_v2, cuMemcpyHtoAAsync_v2)                                                         \
  X(cuMemcpy, cuMemcpyAsync)                                                                       \
  X(cuMemcpyPeer, cuMemcpy3DPeerAsync)                                                             \
  X(cuMemcpyHtoD_v2_ptds, cuMemsetD2D32_v2_ptds)                                                   \
  X(cuMemcpyAsync_ptsz, cuMemsetD2D32Async_ptsz)                                                   \
  X(cuGraphLaunch, cuGraphLaunch_ptsz)                                                             \
  X(cuMemcpyBatchAsync, cuMemcpy3DBatchAsync_ptsz)                                                 \
  X(cuMemcpyBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz)

#define CORRELATED_KERNELS(X)                                                                      \
  X(cuLaunch, cuLaunchGridAsync)                                                                   \
  X(cuLaunchKernel, cuLaunchKernel)                                                                \
  X(cuLaunchKernel_ptsz, cuLaunchKernel_ptsz)                                                      \
  X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz)                                     \
  X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice)                    \
  X(cuLaunchKernelEx, cuLaunchKernelEx_ptsz)

#endif
