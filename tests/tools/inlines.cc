/* inlines.cc: calls of CUDA from C++ through functions that are inlined and templates. inlines.py
 * finds the line of each call by the word behind it. */
#include <cstddef>
#include <cstdlib>

#include <cuda_runtime.h>

#define INLINED __attribute__((always_inline)) inline
#define CALLED  __attribute__((noinline))
#define NO_TAIL __asm__ volatile("" ::: "memory")

namespace shapes
{
template <typename T, int N> struct pool {
  T *block[N] = {};

  INLINED void take(int i, std::size_t count)
  {
    if (cudaMalloc(&block[i], count * sizeof(T))) std::abort(); // take
  }

  template <typename F> INLINED void each(F &&f)
  {
    for (int i = 0; i < N; i++)
      f(i); // each
  }

  CALLED void fill(std::size_t count)
  {
    each([ this, count ](int i) __attribute__((always_inline)) { // fill
      take(i, count);                                            // lambda
    });
    NO_TAIL;
  }
};

namespace
{
template <typename T> INLINED void copy_in(T *to, const T &value)
{
  if (cudaMemcpy(to, &value, sizeof value, cudaMemcpyHostToDevice)) std::abort(); // copy_in
}
} // namespace

static INLINED void store_one(double *to, double value)
{
  copy_in(to, value); // store_one
}

struct guard {
  double value;
  CALLED explicit guard(double v) : value(v) { NO_TAIL; }
  INLINED ~guard()
  {
    if (cudaDeviceSynchronize()) std::abort(); // guard
  }
};

template <typename... A> CALLED void store(A... all)
{
  guard g(1);
  (store_one(all, g.value), ...); // store
  NO_TAIL;
} // end
} // namespace shapes

int main()
{
  shapes::pool<double, 2> p;
  p.fill(1000);                          // main
  shapes::store(p.block[0], p.block[1]); // then
  NO_TAIL;
  return 0;
}
