/* weir_kernel.h: a kernel written once, for the GPU and for the software device.
 *
 *   #include "cuda/sim/weir_kernel.h"
 *
 *   WEIR_KERNEL(axpy, int n, float a, const float *x, float *y)
 *   {
 *     int i = blockIdx.x * blockDim.x + threadIdx.x;
 *     if (i < n) y[i] += a * x[i];
 *   }
 *
 * nvcc's device pass sees `extern "C" __global__ void axpy(...)` with this body and nothing else:
 * on a GPU the program is what it would be without this header. nvcc's host pass, and a C++14
 * compiler alone (for a program that only uses the driver API), see the body a second time as a
 * host function, and the exported object `weir_twin_axpy` (twin.h) with which the software device
 * finds and runs it. The sizes of the arguments are taken from the parameters' types.
 *
 * The program must export its twins: link with -rdynamic, or with
 *   -Wl,--export-dynamic-symbol='weir_twin_*'      (nvcc: after -Xlinker)
 *
 * A kernel may use: threadIdx, blockIdx, blockDim, gridDim, any parameters that can be copied byte
 * by byte, and functions that are __host__ __device__ (as the math library's are); a function of
 * its own that looks at threadIdx must be given what it needs as an argument. It writes what no
 * other thread of the launch reads or writes. Not: __syncthreads() and all that makes threads wait
 * or talk (__shared__ memory, warp functions, atomics, cooperative groups), since threads run one
 * after the other here; __device__ and
 * __constant__ variables, whose host shadows the twin would see; CUDA's texture and surface
 * functions (weir_texture.h has some that can be). A condition of a graph is set with
 * weir_graph_set_conditional(handle, value), which is cudaGraphSetConditional() on a GPU.
 *
 * A kernel whose threads share memory is written in phases, and has a fixed number of threads:
 *
 *   WEIR_BLOCK_KERNEL(sums, 256, const float *x, float *sum)
 *   {
 *     WEIR_SHARED float part[256];
 *     WEIR_PHASE { part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x]; }
 *     for (int half = 128; half; half /= 2)
 *       WEIR_PHASE if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
 *     WEIR_EACH_THREAD if (threadIdx.x == 0) sum[blockIdx.x] = part[0];
 *   }
 *
 * On a GPU a phase is its statement with __syncthreads() after it, and WEIR_EACH_THREAD the
 * statement alone; here both are a loop over the block's threads, and the body runs once a block.
 * Between phases stands only what is the same for all threads. `continue` leaves a phase for this
 * thread, `break` and `return` are not allowed in one. A thread keeps what it needs in a later
 * phase in a WEIR_PRIVATE(type, name, threads), which a phase takes with WEIR_MINE(name). A
 * template of such bodies takes WEIR_PLACE_COMMA first, and is called with WEIR_HERE_COMMA.
 */
#ifndef WEIR_SIM_KERNEL_H
#define WEIR_SIM_KERNEL_H

#ifdef __CUDA_ARCH__ /* device pass */

#define WEIR_KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define WEIR_BLOCK_KERNEL(name, threads, ...)                                                      \
  extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define WEIR_SHARED                       __shared__
#define WEIR_PHASE                        for (bool weir_more = true; weir_more; weir_more = false, __syncthreads())
#define WEIR_EACH_THREAD                  for (bool weir_more = true; weir_more; weir_more = false)
#define WEIR_PRIVATE(type, name, threads) type name
#define WEIR_MINE(name)                   name
#define WEIR_PLACE_COMMA
#define WEIR_HERE_COMMA
#define weir_graph_set_conditional cudaGraphSetConditional

#else

#include <stddef.h>
#include <stdint.h>
#include <utility>
#include "cuda/sim/twin.h"

struct weir_index {
  unsigned int x, y, z;
};

/* A twin's first parameters: they have the names of the GPU's built-in variables, and hide them. */
#define WEIR_PLACE                                                                                 \
  const struct weir_index &gridDim __attribute__((unused)),                                        \
      const struct weir_index &blockDim __attribute__((unused)),                                   \
      const struct weir_index &blockIdx __attribute__((unused)),                                   \
      const struct weir_index &threadIdx __attribute__((unused))

#define WEIR_PLACE_COMMA WEIR_PLACE,
#define WEIR_HERE_COMMA  gridDim, blockDim, blockIdx, threadIdx,

/* A block's threads, one after the other: threadIdx is of the caller's, and 0 at the end. */
struct weir_threads {
  const struct weir_index &block;
  struct weir_index &at;
  bool more;
  uint32_t number; /* of the thread in its block */
  weir_threads(const struct weir_index &size, const struct weir_index &index)
      : block(size), at(const_cast<struct weir_index &>(index)), more(true), number(0)
  {
  }
  void next()
  {
    number++;
    if (++at.x < block.x) return;
    at.x = 0;
    if (++at.y < block.y) return;
    at.y = 0;
    if (++at.z < block.z) return;
    at.z = 0;
    more = false;
  }
};

#define weir_graph_set_conditional weir_condition_set

#define WEIR_SHARED
#define WEIR_PHASE                                                                                 \
  for (weir_threads weir_thread(blockDim, threadIdx); weir_thread.more; weir_thread.next())
#define WEIR_EACH_THREAD                  WEIR_PHASE
#define WEIR_PRIVATE(type, name, threads) type name[threads]
#define WEIR_MINE(name)                   name[weir_thread.number]

static inline const struct weir_index &weir_index_of(const uint32_t *three)
{
  return *(const struct weir_index *)three;
}

/* From the body's type: how its arguments are laid out, and how to call it with them. */
template <typename Body> struct weir_unpack;

template <typename... A>
struct weir_unpack<void(const struct weir_index &, const struct weir_index &,
                        const struct weir_index &, const struct weir_index &, A...)> {
  typedef void body_type(const struct weir_index &, const struct weir_index &,
                         const struct weir_index &, const struct weir_index &, A...);
  static constexpr uint32_t count = sizeof...(A);
  static constexpr uint32_t sizes[sizeof...(A) + 1] = {(uint32_t)sizeof(A)..., 0};
  static constexpr uint32_t alignments[sizeof...(A) + 1] = {(uint32_t)alignof(A)..., 0};

  template <body_type *body, size_t... I>
  static void call(void *const *arguments, const struct weir_twin_thread *t,
                   std::index_sequence<I...>)
  {
    (void)arguments; /* where there are none */
    body(weir_index_of(t->grid), weir_index_of(t->block), weir_index_of(t->block_index),
         weir_index_of(t->thread_index), *(A *)arguments[I]...);
  }

  template <body_type *body>
  static void run(void *const *arguments, const struct weir_twin_thread *t)
  {
    call<body>(arguments, t, std::make_index_sequence<sizeof...(A)>());
  }
};

#define WEIR_TWIN(name, ...) WEIR_TWIN_AS(name, 0, ##__VA_ARGS__)

#define WEIR_TWIN_AS(name, how, ...)                                                               \
  static void weir_body_##name(WEIR_PLACE, ##__VA_ARGS__);                                         \
  extern "C" __attribute__((visibility("default"))) const struct weir_twin weir_twin_##name;       \
  const struct weir_twin weir_twin_##name = {                                                      \
      WEIR_TWIN_VERSION,                                                                           \
      weir_unpack<decltype(weir_body_##name)>::count,                                              \
      weir_unpack<decltype(weir_body_##name)>::sizes,                                              \
      weir_unpack<decltype(weir_body_##name)>::run<weir_body_##name>,                              \
      #name,                                                                                       \
      weir_unpack<decltype(weir_body_##name)>::alignments,                                         \
      how};                                                                                        \
  static void weir_body_##name(WEIR_PLACE, ##__VA_ARGS__)

#ifdef __CUDACC__ /* nvcc's host pass: the kernel's stub too, whose body it makes itself */
#define WEIR_KERNEL(name, ...)                                                                     \
  extern "C" __global__ void name(__VA_ARGS__) {}                                                  \
  WEIR_TWIN(name, ##__VA_ARGS__)
#define WEIR_BLOCK_KERNEL(name, threads, ...)                                                      \
  extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__) {}                       \
  WEIR_TWIN_AS(name, WEIR_TWIN_BLOCK, ##__VA_ARGS__)
#else
#define WEIR_KERNEL(name, ...)                WEIR_TWIN(name, ##__VA_ARGS__)
#define WEIR_BLOCK_KERNEL(name, threads, ...) WEIR_TWIN_AS(name, WEIR_TWIN_BLOCK, ##__VA_ARGS__)
#endif

#endif /* __CUDA_ARCH__ */
#endif
