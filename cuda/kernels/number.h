/* number.h: what elements are, how they become each other, and the arithmetic on them.
 *
 * element: as it lies in memory (float16 is f16); math: what is calculated in: int32_t, int64_t,
 * float, double or c64. to<T>() converts as the rest of Weir does: floating point to integers by
 * way of int64, towards zero; to float16 and bfloat16 by way of float, to nearest even; complex to
 * anything else by its real part; to bool, whether it is not 0.
 */
#ifndef WEIR_CUDA_KERNELS_NUMBER_H
#define WEIR_CUDA_KERNELS_NUMBER_H

#include <math.h>
#include <type_traits>
#include "core/backend/half.h"
#include "cuda/kernels/kernel.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};
struct b8 {
  uint8_t value; /* 0 or 1; what is not 0 counts as true */
};
struct c64 {
  float re, im;
};

/* ---- conversion -------------------------------------------------------------------------------
 */

#ifdef __CUDA_ARCH__
WEIR_FN float plain(f16 x)
{
  return __half2float(__ushort_as_half(x.bits));
}
WEIR_FN float plain(bf16 x)
{
  return bfloat16_to_float(x.bits);
}
WEIR_FN f16 to_f16(float x)
{
  return f16{__half_as_ushort(__float2half_rn(x))};
}
WEIR_FN bf16 to_bf16(float x)
{
  return bf16{__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}
#else
WEIR_FN float plain(f16 x)
{
  return float16_to_float(x.bits);
}
WEIR_FN float plain(bf16 x)
{
  return bfloat16_to_float(x.bits);
}
WEIR_FN f16 to_f16(float x)
{
  return f16{float_to_float16(x)};
}
WEIR_FN bf16 to_bf16(float x)
{
  return bf16{float_to_bfloat16(x)};
}
#endif
WEIR_FN int32_t plain(b8 x)
{
  return x.value != 0;
}
WEIR_FN float plain(c64 x)
{
  return x.re;
}
template <typename T> WEIR_FN T plain(T x)
{
  return x;
}

template <typename T> WEIR_FN bool is_true(T x)
{
  return plain(x) != 0;
}
WEIR_FN bool is_true(c64 x)
{
  return x.re != 0 || x.im != 0;
}

template <typename T, typename S> WEIR_FN T to_plain(S x)
{
  if constexpr (std::is_floating_point<S>::value && std::is_integral<T>::value)
    return (T)double_to_int64((double)x);
  else
    return (T)x;
}

template <typename T, typename S> WEIR_FN T to(S x)
{
  if constexpr (std::is_same<T, S>::value)
    return x;
  else if constexpr (std::is_same<T, b8>::value)
    return b8{(uint8_t)is_true(x)};
  else if constexpr (std::is_same<T, f16>::value)
    return to_f16((float)plain(x));
  else if constexpr (std::is_same<T, bf16>::value)
    return to_bf16((float)plain(x));
  else if constexpr (std::is_same<T, c64>::value)
    return c64{(float)plain(x), 0};
  else
    return to_plain<T>(plain(x));
}

/* What a dtype is calculated in where its kernel knows it. */
template <typename T> struct math_of {
  typedef T type;
};
template <> struct math_of<f16> {
  typedef float type;
};
template <> struct math_of<bf16> {
  typedef float type;
};
template <> struct math_of<b8> {
  typedef int32_t type;
};

template <typename M> WEIR_FN M given(const k_number &n)
{
  if constexpr (std::is_same<M, c64>::value)
    return c64{n.c[0], n.c[1]};
  else if constexpr (std::is_integral<M>::value)
    return (M)n.i;
  else
    return (M)n.d;
}

/* ---- elements of a dtype known at run time ----------------------------------------------------
 * offset[j] states where element j is, in elements; elements from `count` on are left alone. */

#define WEIR_K_DTYPES(X)                                                                           \
  X(UINT8, uint8_t)                                                                                \
  X(INT8, int8_t)                                                                                  \
  X(INT16, int16_t)                                                                                \
  X(INT32, int32_t)                                                                                \
  X(INT64, int64_t)                                                                                \
  X(FLOAT16, f16)                                                                                  \
  X(FLOAT32, float)                                                                                \
  X(FLOAT64, double)                                                                               \
  X(COMPLEX64, c64)                                                                                \
  X(BOOL, b8)                                                                                      \
  X(BFLOAT16, bf16)

template <typename M, int N, typename I>
WEIR_FN void gather(M *x, const void *data, int dtype, const I *offset, int count)
{
  switch (dtype) {
#define CASE(name, type)                                                                           \
  case WEIR_##name:                                                                                \
    WEIR_UNROLL for (int j = 0; j < N; j++) if (j < count) x[j] =                                  \
        to<M>(((const type *)data)[offset[j]]);                                                    \
    break;
    WEIR_K_DTYPES(CASE)
#undef CASE
  default:
    break;
  }
}

template <typename M, int N, typename I>
WEIR_FN void scatter(void *data, int dtype, const I *offset, int count, const M *x)
{
  switch (dtype) {
#define CASE(name, type)                                                                           \
  case WEIR_##name:                                                                                \
    WEIR_UNROLL for (int j = 0; j < N; j++) if (j < count)((type *)data)[offset[j]] =              \
        to<type>(x[j]);                                                                            \
    break;
    WEIR_K_DTYPES(CASE)
#undef CASE
  default:
    break;
  }
}

/* As the dtype could hold it. */
template <typename M> WEIR_FN M narrowed(M x, int dtype)
{
  if constexpr (std::is_same<M, float>::value) {
    if (dtype == WEIR_FLOAT16) return plain(to_f16(x));
    if (dtype == WEIR_BFLOAT16) return plain(to_bf16(x));
  }
  if constexpr (std::is_same<M, int64_t>::value) {
    if (dtype == WEIR_BOOL) return x != 0;
    if (dtype == WEIR_UINT8) return (uint8_t)x;
    if (dtype == WEIR_INT8) return (int8_t)x;
    if (dtype == WEIR_INT16) return (int16_t)x;
    if (dtype == WEIR_INT32) return (int32_t)x;
  }
  return x;
}

#endif
