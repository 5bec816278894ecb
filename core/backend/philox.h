/* philox.h: random numbers that are the same, bit for bit, on every device.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11)
 * turns a 64-bit key, the seed, and a 128-bit counter into a block of four 32-bit words. A stream
 * is the blocks with counters 0, 1, 2, ... A request for `count` elements at `offset` takes blocks
 * offset to offset + philox_blocks(count) - 1; element i takes half of one: words 2 (i % 2)
 * and 2 (i % 2) + 1 of block offset + i / 2. So an element's number depends on its place alone, and
 * any thread can calculate any element.
 *
 * This file compiles as C, C++ and CUDA C++. From words to numbers it uses what IEEE 754 defines to
 * the last bit only: + - * / and sqrt in double, each rounded by itself. No function of a math
 * library, no fused multiply-add: hosts compile with -ffp-contract=off, devices use the _rn
 * intrinsics, which are never contracted.
 *
 *   UNIFORM    u is the top bits of the 64, as many as the dtype has digits (float64 53, float32
 * 24, float16 11, bfloat16 8; others 53): every u below 1 is exact. a + (b - a) u rounded to the
 * dtype; where rounding gives b, a. NORMAL     Box and Muller's cosine: a + b sqrt(-2 ln((w0 + 1) /
 * 2^32)) cos(2 pi w1 / 2^32); at most 6.66 standard deviations from the mean. INTEGER    a +
 * floor(w (b - a) / 2^64): each has its share to 2^-64. BERNOULLI  53 bits' u < a.
 */
#ifndef WEIR_BACKEND_PHILOX_H
#define WEIR_BACKEND_PHILOX_H

#include <math.h>
#include <stdint.h>
#include "core/backend/compute.h"
#include "core/backend/half.h"

#ifdef __CUDA_ARCH__
#define WEIR_RN_ADD(x, y) __dadd_rn(x, y)
#define WEIR_RN_MUL(x, y) __dmul_rn(x, y)
#define WEIR_RN_DIV(x, y) __ddiv_rn(x, y)
#define WEIR_RN_SQRT(x)   __dsqrt_rn(x)
#else
#define WEIR_RN_ADD(x, y) ((x) + (y))
#define WEIR_RN_MUL(x, y) ((x) * (y))
#define WEIR_RN_DIV(x, y) ((x) / (y))
#define WEIR_RN_SQRT(x)   sqrt(x)
#endif

/* So that a host's compiler can make vectors of the loop around. */
#if defined(__clang__) && !defined(__CUDACC__)
#define WEIR_UNROLL_10 _Pragma("clang loop unroll_count(10)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define WEIR_UNROLL_10 _Pragma("GCC unroll 10")
#else
#define WEIR_UNROLL_10
#endif

typedef struct philox_block {
  uint32_t word[4];
} philox_block;

/* Blocks that `count` elements use up. */
WEIR_HD uint64_t philox_blocks(int64_t count)
{
  return ((uint64_t)count + 1) / 2;
}

WEIR_HD philox_block philox_of(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                               uint32_t k1)
{
  philox_block b;
  WEIR_UNROLL_10
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u; /* the golden ratio, and sqrt(3) - 1 below */
    k1 += 0xbb67ae85u;
  }
  b.word[0] = c0, b.word[1] = c1, b.word[2] = c2, b.word[3] = c3;
  return b;
}

WEIR_HD philox_block philox(uint64_t seed, uint64_t counter)
{
  return philox_of((uint32_t)counter, (uint32_t)(counter >> 32), 0, 0, (uint32_t)seed,
                   (uint32_t)(seed >> 32));
}

/* ---- from words to numbers --------------------------------------------------------------------
 */

/* The natural logarithm of an integer from 1 to 2^32: x = m 2^e with m in [sqrt(1/2), sqrt(2)),
 * ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172, by its series. */
WEIR_HD double philox_ln(uint64_t x)
{
  double d;
  uint64_t u = 0x4330000000000000u | x; /* 2^52 + x */
  memcpy(&d, &u, sizeof d);
  d = WEIR_RN_ADD(d, -0x1p52);
  memcpy(&u, &d, sizeof u);
  u += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu; /* 1 and sqrt(1/2) */
  int32_t e = (int32_t)(u >> 52) - 0x3ff;
  u = (u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
  memcpy(&d, &u, sizeof d);
  double s = WEIR_RN_DIV(WEIR_RN_ADD(d, -1.0), WEIR_RN_ADD(d, 1.0)), z = WEIR_RN_MUL(s, s);
  double p = 1.0 / 21;
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 19);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 17);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 15);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 13);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 11);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 9);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 7);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 5);
  p = WEIR_RN_ADD(WEIR_RN_MUL(p, z), 1.0 / 3);
  p = WEIR_RN_MUL(WEIR_RN_MUL(p, z), s);
  double m = WEIR_RN_MUL(2.0, WEIR_RN_ADD(s, p));
  return WEIR_RN_ADD(WEIR_RN_MUL((double)e, 0x1.62e42fefa39efp-1), m);
}

/* cos(2 pi w / 2^32): the quadrant by w's top bits, the rest, |x| <= pi / 4, by the series. */
WEIR_HD double philox_cos(uint32_t w)
{
  uint32_t quadrant = (w + 0x20000000u) >> 30;
  int32_t rest = (int32_t)(w - (quadrant << 30));
  double x = WEIR_RN_MUL((double)rest, 0x1.921fb54442d18p-30), z = WEIR_RN_MUL(x, x);
  double s = 1.0 / 355687428096000.0, c = 1.0 / 20922789888000.0; /* 1 / 17!, 1 / 16! */
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), -1.0 / 1307674368000.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), -1.0 / 87178291200.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), 1.0 / 6227020800.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), 1.0 / 479001600.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), -1.0 / 39916800.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), -1.0 / 3628800.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), 1.0 / 362880.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), 1.0 / 40320.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), -1.0 / 5040.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), -1.0 / 720.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), 1.0 / 120.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), 1.0 / 24.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(s, z), -1.0 / 6.0);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), -1.0 / 2.0);
  s = WEIR_RN_ADD(WEIR_RN_MUL(WEIR_RN_MUL(s, z), x), x);
  c = WEIR_RN_ADD(WEIR_RN_MUL(c, z), 1.0);
  double r = quadrant & 1u ? s : c;
  return quadrant == 1u || quadrant == 2u ? -r : r;
}

WEIR_HD double philox_normal(uint32_t w0, uint32_t w1)
{
  double ln = WEIR_RN_ADD(philox_ln((uint64_t)w0 + 1), -32 * 0x1.62e42fefa39efp-1);
  ln = ln > 0.0 ? 0.0 : ln; /* rounding, near 1 */
  return WEIR_RN_MUL(WEIR_RN_SQRT(WEIR_RN_MUL(-2.0, ln)), philox_cos(w1));
}

/* The upper 64 bits of a product. */
WEIR_HD uint64_t philox_scale(uint64_t a, uint64_t b)
{
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* x as the dtype can hold it. float16 and bfloat16 by way of float32, as everywhere. */
WEIR_HD double philox_round(double x, weir_dtype dtype)
{
  if (dtype == WEIR_FLOAT32) return (float)x;
  if (dtype == WEIR_FLOAT16) return float16_to_float(float_to_float16((float)x));
  if (dtype == WEIR_BFLOAT16) return bfloat16_to_float(float_to_bfloat16((float)x));
  return x;
}

WEIR_HD int philox_digits(weir_dtype dtype)
{
  return dtype == WEIR_FLOAT32 ? 24 : dtype == WEIR_FLOAT16 ? 11 : dtype == WEIR_BFLOAT16 ? 8 : 53;
}

/* The element that has words w0 and w1, as a number that `dtype` can hold (UNIFORM and NORMAL;
 * integers are whole). a and b as in weir_random. */
WEIR_HD double philox_number(weir_random_kind kind, weir_dtype dtype, double a, double b,
                             uint32_t w0, uint32_t w1)
{
  int digits = philox_digits(kind == WEIR_RANDOM_BERNOULLI ? WEIR_FLOAT64 : dtype);
  double all = WEIR_RN_ADD(WEIR_RN_MUL((double)w0, 0x1p21), (double)(w1 >> 11)); /* exact */
  double whole = digits == 53 ? all : (double)(w0 >> (digits < 32 ? 32 - digits : 0));
  if (kind == WEIR_RANDOM_NORMAL)
    return philox_round(WEIR_RN_ADD(a, WEIR_RN_MUL(b, philox_normal(w0, w1))), dtype);
  if (kind == WEIR_RANDOM_INTEGER) {
    int64_t low = (int64_t)a;
    uint64_t range = (uint64_t)(int64_t)b - (uint64_t)low;
    return (double)(int64_t)((uint64_t)low + philox_scale((uint64_t)w0 << 32 | w1, range));
  }
  if (kind == WEIR_RANDOM_BERNOULLI) return whole * 0x1p-53 < a ? 1.0 : 0.0;
  double unit = digits == 53 ? 0x1p-53 : digits == 24 ? 0x1p-24 : digits == 11 ? 0x1p-11 : 0x1p-8;
  double u = WEIR_RN_MUL(whole, unit);
  double x = WEIR_RN_ADD(a, WEIR_RN_MUL(WEIR_RN_ADD(b, -a), u));
  x = philox_round(x, dtype);
  return x >= philox_round(b, dtype) && b > a ? philox_round(a, dtype) : x;
}

/* ---- permutations -----------------------------------------------------------------------------
 * Element i is i enciphered: a Feistel network over as many bits as numbers below n have, its keys
 * the words of the request's first block, again and again until the result is below n ("cycle
 * walking"; Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Any thread
 * can calculate any element; nothing is sorted. Few bits take more rounds. */

WEIR_HD uint32_t philox_mix(uint32_t x, uint32_t key)
{
  x ^= key; /* Murmur3's last step */
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

WEIR_HD int philox_rounds(int bits)
{
  return bits < 20 ? 24 : 12;
}

/* Of the upper and of the lower half of `bits`. */
WEIR_HD void philox_masks(int bits, uint32_t *high, uint32_t *low)
{
  *low = ((uint32_t)1 << bits / 2) - 1;
  *high = ((uint32_t)1 << (bits - bits / 2)) - 1;
}

WEIR_HD uint32_t philox_key(philox_block b, int round, int second)
{
  return b.word[(round & 2) + second] + (uint32_t)round * 0x9e3779b9u;
}

/* Odd permutations, too: half of the time 0 and 1 change places. */
WEIR_HD int64_t philox_turned(philox_block b, int64_t x)
{
  bool turn = x < 2 && (philox_mix(~0u, b.word[0] ^ b.word[3]) & 1);
  return turn ? 1 - x : x;
}

WEIR_HD int64_t philox_place(philox_block b, int64_t n, int bits, int64_t i)
{
  uint32_t high, low;
  philox_masks(bits, &high, &low);
  do {
    uint32_t right = (uint32_t)i & low, left = (uint32_t)(i >> bits / 2);
    for (int round = 0; round < philox_rounds(bits); round += 2) {
      left ^= philox_mix(right, philox_key(b, round, 0)) & high;
      right ^= philox_mix(left, philox_key(b, round, 1)) & low;
    }
    i = philox_turned(b, (int64_t)((uint64_t)left << bits / 2 | right));
  } while (i >= n);
  return i;
}

/* Element i of a request. */
WEIR_HD double philox_element(const weir_random *r, int64_t i)
{
  philox_block b = philox(r->seed, r->offset + (uint64_t)i / 2);
  uint32_t w0 = i & 1 ? b.word[2] : b.word[0], w1 = i & 1 ? b.word[3] : b.word[1];
  return philox_number(r->kind, r->dtype, r->a, r->b, w0, w1);
}

#endif
