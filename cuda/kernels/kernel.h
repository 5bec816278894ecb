/* kernel.h: how the kernels here are written: once, in phases.
 *
 * A kernel is a block's work. Between phases stands what is the same for all threads of the block;
 * a WEIR_PHASE is what each thread does before all go on (a statement, and __syncthreads() after
 * it), WEIR_EACH_THREAD the same with nobody waiting at its end. `continue` ends a phase for a
 * thread; break and return stand in none. What a thread keeps from one phase to the next is
 * WEIR_PRIVATE, and WEIR_MINE() within a phase. Bodies are templates that take WEIR_PLACE_COMMA
 * first and are called with WEIR_HERE_COMMA: on a GPU these are nothing.
 *
 * So written, the body does not depend on threads that run at once: who compiles it for something
 * else than a GPU defines these words himself before this file.
 */
#ifndef WEIR_CUDA_KERNELS_KERNEL_H
#define WEIR_CUDA_KERNELS_KERNEL_H

#include <stdint.h>
#include "cuda/kernels/args.h"

#ifndef WEIR_BLOCK_KERNEL
#define WEIR_BLOCK_KERNEL(name, threads, ...)                                                      \
  extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define WEIR_SHARED                       __shared__
#define WEIR_PHASE                        for (bool weir_more = true; weir_more; weir_more = false, __syncthreads())
#define WEIR_EACH_THREAD                  for (bool weir_more = true; weir_more; weir_more = false)
#define WEIR_PRIVATE(type, name, threads) type name
#define WEIR_MINE(name)                   name
#define WEIR_PLACE_COMMA
#define WEIR_HERE_COMMA
#endif

#ifdef __CUDACC__
#define WEIR_FN     static __device__ __forceinline__
#define WEIR_FAR    static __device__ __noinline__ /* long, seldom: one copy in the code */
#define WEIR_GIVEN  const __grid_constant__
#define WEIR_IN     __device__ __forceinline__ /* a member */
#define WEIR_UNROLL _Pragma("unroll")
#define WEIR_ROLLED _Pragma("unroll 1")
#else
#define WEIR_FN    static inline
#define WEIR_FAR   static inline
#define WEIR_GIVEN const
#define WEIR_IN    inline
#define WEIR_UNROLL
#define WEIR_ROLLED
#endif

/* Quotient and rest. */
WEIR_FN uint32_t divided(uint32_t x, const k_divisor &by, uint32_t *rest)
{
  uint32_t q = (uint32_t)((uint64_t)x * by.magic >> 32);
  q = (q + x) >> by.shift;
  *rest = x - q * by.size;
  return q;
}

#endif
