/* half.h: float16 and bfloat16 as bits, to and from float32, without any machine's instructions;
 * and how floating point becomes integers.
 *
 * Compiles as C, C++ and CUDA C++ and gives the same bits everywhere: rounding is to nearest, ties
 * to even; subnormals count; what is too large becomes infinity; a NaN becomes the quiet NaN 0x7e00
 * (0x7fc0) with its sign. Nothing branches, so that loops of them vectorise, and nothing depends on
 * the processor's treatment of subnormals.
 */
#ifndef WEIR_BACKEND_HALF_H
#define WEIR_BACKEND_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define WEIR_HD static __host__ __device__ __forceinline__
#else
#define WEIR_HD static inline __attribute__((always_inline, unused))
#endif

WEIR_HD uint32_t float_bits(float f)
{
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

WEIR_HD float bits_float(uint32_t u)
{
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

WEIR_HD float float16_to_float(uint16_t h)
{
  uint32_t magnitude = h & 0x7fffu, normal = (magnitude << 13) + (112u << 23);
  uint32_t tiny = float_bits((float)(int32_t)magnitude * 0x1p-24f);
  uint32_t u = magnitude < 0x400u ? tiny : normal;
  u |= magnitude >= 0x7c00u ? 0x7f800000u : 0;
  u |= magnitude > 0x7c00u ? 0x00400000u : 0; /* quiet, as processors' instructions make it */
  return bits_float(u | (uint32_t)(h & 0x8000u) << 16);
}

WEIR_HD uint16_t float_to_float16(float f)
{
  uint32_t bits = float_bits(f), u = bits & 0x7fffffffu;
  uint32_t normal = (u + 0xfffu + (u >> 13 & 1u) - (112u << 23)) >> 13;
  /* the unit of 0.5f's last place is the smallest float16: the sum is rounded to it */
  uint32_t tiny = float_bits(bits_float(u) + 0.5f) - float_bits(0.5f);
  uint32_t r = u < 0x38800000u ? tiny : normal;
  r = u >= 0x47800000u ? 0x7c00u : r;
  r = u > 0x7f800000u ? 0x7e00u : r;
  return (uint16_t)(r | (bits >> 16 & 0x8000u));
}

WEIR_HD float bfloat16_to_float(uint16_t h)
{
  return bits_float((uint32_t)h << 16);
}

WEIR_HD uint16_t float_to_bfloat16(float f)
{
  uint32_t bits = float_bits(f);
  uint32_t r = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  r = (bits & 0x7fffffffu) > 0x7f800000u ? (0x7fc0u | (bits >> 16 & 0x8000u)) : r;
  return (uint16_t)r;
}

/* A number cut towards zero. What is no int64 (NaN too) is the most negative one. */
WEIR_HD int64_t double_to_int64(double d)
{
  return d > -0x1p63 && d < 0x1p63 ? (int64_t)d : (int64_t)((uint64_t)1 << 63);
}

#endif
