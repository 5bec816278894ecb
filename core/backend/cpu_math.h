/* cpu_math.h: functions of float32 that a compiler can vectorise.
 *
 * They calculate in double, with polynomials that are exact to some 1e-11, so that rounding to
 * float32 is the only error that shows: at most 0.51 units in the last place, everywhere. No
 * branch, no table, no library call. All take a float's value; x + 0x1.8p52 leaves the nearest
 * integer in the low bits. */
#ifndef WEIR_DEVICE_CPU_MATH_H
#define WEIR_DEVICE_CPU_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define CPU_INLINE static inline __attribute__((always_inline, unused))
#define CPU_MAGIC  0x1.8p52

CPU_INLINE uint64_t cpu_bits(double d)
{
  uint64_t u;
  memcpy(&u, &d, sizeof u);
  return u;
}

CPU_INLINE double cpu_double(uint64_t u)
{
  double d;
  memcpy(&d, &u, sizeof d);
  return d;
}

/* Beyond 200 in magnitude e^200: infinity and 0 for a float. */
CPU_INLINE double cpu_exp(double x)
{
  x = x > 200 ? 200 : x;
  x = x < -200 ? -200 : x;
  double k = x * 0x1.71547652b82fep0 + CPU_MAGIC, r = x - (k - CPU_MAGIC) * 0x1.62e42fefa39efp-1;
  double p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  return cpu_double(cpu_bits(p) + (cpu_bits(k) << 52));
}

/* ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^e, m in [sqrt(1/2), sqrt(2)). */
CPU_INLINE double cpu_log(double x)
{
  uint64_t u = cpu_bits(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  double e = cpu_double((u >> 52) + 0x4338000000000000u) - (CPU_MAGIC + 1023);
  double m = cpu_double((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  double s = (m - 1) / (m + 1), z = s * s, p = 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  double r = e * 0x1.62e42fefa39efp-1 + 2 * (s + s * z * p);
  r = x < INFINITY ? r : x;
  r = x > 0 ? r : x == 0 ? -INFINITY : (double)NAN;
  return r;
}

CPU_INLINE double cpu_tanh(double x)
{
  double e = cpu_exp(2 * x), z = x * x;
  double near = x * (1 + z * (-1.0 / 3 + z * (2.0 / 15 + z * (-17.0 / 315)))); /* -0 stays */
  return fabs(x) < 0.03 ? near : (e - 1) / (e + 1);
}

CPU_INLINE double cpu_sigmoid(double x)
{
  return 1 / (1 + cpu_exp(-x));
}

/* sin(x + quarter pi / 2), |x| <= 2^20: pi / 2 is taken off in two parts, the first of 33 bits. */
CPU_INLINE double cpu_sine(double x, uint64_t quarter)
{
  double k = x * 0x1.45f306dc9c883p-1 + CPU_MAGIC, n = k - CPU_MAGIC;
  double r = x - n * 0x1.921fb544p0 - n * 0x1.0b4611a626331p-34, z = r * r;
  uint64_t q = cpu_bits(k) + quarter;
  double s = -1.0 / 39916800, c = 1.0 / 479001600;
  s = s * z + 1.0 / 362880;
  c = c * z - 1.0 / 3628800;
  s = s * z - 1.0 / 5040;
  c = c * z + 1.0 / 40320;
  s = s * z + 1.0 / 120;
  c = c * z - 1.0 / 720;
  s = s * z - 1.0 / 6;
  c = c * z + 1.0 / 24;
  s = (s * z + 1) * r; /* -0 stays -0 */
  c = c * z - 0.5;
  c = c * z + 1;
  double y = q & 1 ? c : s;
  return cpu_double(cpu_bits(y) ^ (q & 2) << 62);
}

#endif
