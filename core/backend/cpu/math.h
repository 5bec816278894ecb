/* cpu/math.h: functions of float32 that a compiler can vectorise.
 *
 * Most calculate in double, with polynomials that are exact to some 1e-9, so that rounding to
 * float32 is the only error that shows: at most 0.51 units in the last place, everywhere. No
 * branch, no table, no library call. All take a float's value; x + 0x1.8p52 leaves the nearest
 * integer in the low bits. Polynomials without a simple series interpolate at Chebyshev's nodes. */
#ifndef WEIR_BACKEND_CPU_MATH_H
#define WEIR_BACKEND_CPU_MATH_H

#include <math.h>
#include <stdbool.h>
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

/* Infinity and 0 beyond 200 in magnitude, as a float has it. NaN comes through: what is added to
 * its bits is the low ones of another, which are 0. */
CPU_INLINE double cpu_exp(double x)
{
  double k = x * 0x1.71547652b82fep0 + CPU_MAGIC, r = x - (k - CPU_MAGIC) * 0x1.62e42fefa39efp-1;
  double p = 0x1.a124f19fe89acp-13; /* (e^r - 1 - r) / r^2 */
  p = p * r + 0x1.6d43246b523b4p-10;
  p = p * r + 0x1.1110e0f238322p-7;
  p = p * r + 0x1.5554e9063586ep-5;
  p = p * r + 0x1.5555555a78ed4p-3;
  p = p * r + 0x1.0000000b9129bp-1;
  p = p * r + 1;
  p = p * r + 1;
  double e = cpu_double(cpu_bits(p) + (cpu_bits(k) << 52));
  e = x > 200 ? (double)INFINITY : e;
  return x < -200 ? 0 : e;
}

/* ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^e, m in [sqrt(1/2), sqrt(2)). */
CPU_INLINE double cpu_log(double x)
{
  uint64_t u = cpu_bits(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  double e = cpu_double((u >> 52) + 0x4338000000000000u) - (CPU_MAGIC + 1023);
  double m = cpu_double((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  double s = (m - 1) / (m + 1), z = s * s, p = 0x1.ddcf7101b6371p-4;
  p = p * z + 0x1.245c40aecb50cp-3;
  p = p * z + 0x1.9999eb63e783dp-3;
  p = p * z + 0x1.5555554bb1b2fp-2;
  double r = e * 0x1.62e42fefa39efp-1 + 2 * (s + s * z * p);
  r = x < INFINITY ? r : x;
  r = x > 0 ? r : x == 0 ? -INFINITY : (double)NAN;
  return r;
}

CPU_INLINE double cpu_tanh(double x)
{
  double e = cpu_exp(x > 20 ? 40 : 2 * x), z = x * x;
  double near = x * (1 + z * (-1.0 / 3 + z * (2.0 / 15 + z * (-17.0 / 315)))); /* -0 stays */
  return fabs(x) < 0.03 ? near : (e - 1) / (e + 1);
}

CPU_INLINE double cpu_sigmoid(double x)
{
  return 1 / (1 + cpu_exp(-x));
}

/* sin and cos of x less the nearest multiple of pi / 2, |x| <= 2^20; returns the multiple. pi / 2
 * is taken off in two parts, the first of 33 bits. */
CPU_INLINE uint64_t cpu_circle(double x, double *sine, double *cosine)
{
  double k = x * 0x1.45f306dc9c883p-1 + CPU_MAGIC, n = k - CPU_MAGIC;
  double r = x - n * 0x1.921fb544p0 - n * 0x1.0b4611a626331p-34, z = r * r;
  double s = -1.0 / 39916800, c = 1.0 / 479001600;
  s = s * z + 1.0 / 362880;
  c = c * z - 1.0 / 3628800;
  s = s * z - 1.0 / 5040;
  c = c * z + 1.0 / 40320;
  s = s * z + 1.0 / 120;
  c = c * z - 1.0 / 720;
  s = s * z - 1.0 / 6;
  c = c * z + 1.0 / 24;
  *sine = (s * z + 1) * r; /* -0 stays -0 */
  c = c * z - 0.5;
  *cosine = c * z + 1;
  return cpu_bits(k);
}

/* sin(x + quarter pi / 2), |x| <= 2^20. */
CPU_INLINE double cpu_sine(double x, uint64_t quarter)
{
  double s, c;
  uint64_t q = cpu_circle(x, &s, &c) + quarter;
  double y = q & 1 ? c : s;
  return cpu_double(cpu_bits(y) ^ (q & 2) << 62);
}

/* |x| <= 2^20. */
CPU_INLINE double cpu_tan(double x)
{
  double s, c;
  uint64_t q = cpu_circle(x, &s, &c);
  return q & 1 ? -c / s : s / c;
}

/* sin(pi x) / (pi x): the nearest integer is taken off first, exactly. */
CPU_INLINE double cpu_sinc(double x)
{
  double near = x + CPU_MAGIC, r = x - (near - CPU_MAGIC);
  r = fabs(x) < 0x1p50 ? r : x - x;
  double y = cpu_sine(r * 0x1.921fb54442d18p1, 0) / (x * 0x1.921fb54442d18p1);
  y = cpu_double(cpu_bits(y) ^ cpu_bits(near) << 63);
  return x == 0 ? 1 : y;
}

CPU_INLINE double cpu_log1p(double x)
{
  double r = cpu_log(1 + x), near = x - x * x * 0.5;
  return fabs(x) < 0x1p-20 ? near : r;
}

CPU_INLINE double cpu_expm1(double x)
{
  double near = x * (1 + x * (0.5 + x * (1.0 / 6 + x * (1.0 / 24))));
  double e = cpu_exp(x) - 1;
  return fabs(x) < 0.01 ? near : e;
}

CPU_INLINE double cpu_sinh(double x)
{
  double e = cpu_exp(x), z = x * x;
  double near = x * (1 + z * (1.0 / 6 + z * (1.0 / 120 + z * (1.0 / 5040))));
  return fabs(x) < 0.1 ? near : (e - 1 / e) * 0.5;
}

CPU_INLINE double cpu_cosh(double x)
{
  double e = cpu_exp(x);
  return (e + 1 / e) * 0.5;
}

CPU_INLINE double cpu_asinh(double x)
{
  double a = fabs(x), r = cpu_log(a + sqrt(a * a + 1)), near = a - a * a * a * (1.0 / 6);
  return copysign(a < 0x1p-10 ? near : r, x);
}

CPU_INLINE double cpu_acosh(double x)
{
  return x < 1 ? (double)NAN : cpu_log(x + sqrt((x - 1) * (x + 1)));
}

CPU_INLINE double cpu_atanh(double x)
{
  double r = cpu_log((1 + x) / (1 - x)) * 0.5, near = x + x * x * x * (1.0 / 3);
  return fabs(x) < 0x1p-10 ? near : r;
}

/* x in [0, 1]. */
CPU_INLINE double cpu_arc(double x)
{
  double z = x * x, p = 0x1.153ed56f10b71p-10;
  p = p * z - 0x1.ccc30f71c7f9cp-8;
  p = p * z + 0x1.67058e7678bcfp-6;
  p = p * z - 0x1.67dc8deede52ep-5;
  p = p * z + 0x1.11d441ed69f45p-4;
  p = p * z - 0x1.67d5dafeabbdep-4;
  p = p * z + 0x1.c4a3bc440e5b2p-4;
  p = p * z - 0x1.246cdc54ccccbp-3;
  p = p * z + 0x1.9997487e0a8d1p-3;
  p = p * z - 0x1.55554e0e469f1p-2;
  p = p * z + 0x1.fffffffc2a380p-1;
  return p * x;
}

CPU_INLINE double cpu_atan(double x)
{
  double a = fabs(x), r = cpu_arc(a > 1 ? 1 / a : a);
  return copysign(a > 1 ? 0x1.921fb54442d18p0 - r : r, x);
}

CPU_INLINE double cpu_atan2(double y, double x)
{
  double a = fabs(y), b = fabs(x), least = a < b ? a : b, most = a < b ? b : a;
  double t = least / most;
  t = most == 0 ? 0 : t;
  t = least == INFINITY ? 1 : t;
  double r = cpu_arc(t);
  r = a > b ? 0x1.921fb54442d18p0 - r : r;
  r = copysign(1.0, x) < 0 ? 0x1.921fb54442d18p1 - r : r;
  r = ((x != x) | (y != y)) ? (double)NAN : r;
  return copysign(r, y);
}

CPU_INLINE double cpu_asin(double x)
{
  return cpu_atan(x / sqrt((1 - x) * (1 + x)));
}

CPU_INLINE double cpu_acos(double x)
{
  return 2 * cpu_atan(sqrt((1 - x) / (1 + x)));
}

/* erf(x), |x| <= 1. */
CPU_INLINE double cpu_erf_near(double x)
{
  double z = x * x, p = -0x1.445f47d33d87bp-17;
  p = p * z + 0x1.d887505de3ba6p-14;
  p = p * z - 0x1.bccf664d7f763p-11;
  p = p * z + 0x1.562a60ddba6e6p-8;
  p = p * z - 0x1.b829c897922e5p-6;
  p = p * z + 0x1.ce2f08fec14fdp-4;
  p = p * z - 0x1.81274665754c3p-2;
  p = p * z + 0x1.20dd7504045d6p+0;
  return p * x;
}

/* erfc(a), a >= 1: e^(a^2) erfc(a) (1 + 2 a) is a polynomial of (a - 3) / (a + 3). */
CPU_INLINE double cpu_erfc_far(double a)
{
  a = a > 30 ? 30 : a;
  double t = (a - 3) / (a + 3), p = -0x1.7880f33be0cdap-11;
  p = p * t + 0x1.ddc722d0dc46ep-10;
  p = p * t + 0x1.4a594e7bfc5e6p-9;
  p = p * t - 0x1.8536db0aa7620p-6;
  p = p * t + 0x1.17ca4767ed8cfp-4;
  p = p * t - 0x1.e88ceb27d68f3p-4;
  p = p * t + 0x1.09836cdf8baa9p-3;
  p = p * t - 0x1.85a144ff2c01cp-5;
  p = p * t - 0x1.15c084ee627abp-3;
  p = p * t + 0x1.40c522d6edbf4p+0;
  return p * cpu_exp(-a * a) / (1 + 2 * a);
}

CPU_INLINE double cpu_erf(double x)
{
  double a = fabs(x), near = cpu_erf_near(x), r = copysign(1 - cpu_erfc_far(a), x);
  return a < 1 ? near : r;
}

CPU_INLINE double cpu_erfc(double x)
{
  double a = fabs(x), near = 1 - cpu_erf_near(x), r = cpu_erfc_far(a);
  return a < 1 ? near : x < 0 ? 2 - r : r;
}

/* tanh(ln(1 + e^x)) = e (e + 2) / (e (e + 2) + 2), e = e^x. */
CPU_INLINE double cpu_mish_gate(double x)
{
  double e = cpu_exp(x > 60 ? 60 : x), n = e * (e + 2);
  return n / (n + 2);
}

CPU_INLINE double cpu_softplus(double x)
{
  double l = cpu_log1p(cpu_exp(x));
  return x > 100 ? x : l;
}

/* x^y. |x| to the power of y is e^(y ln |x|), turned round for odd y where x is negative; what is
 * not so: 1 where y is 0, or |x| is 1 and y infinite, NaN where a negative number has a power that
 * is no integer. */
CPU_INLINE double cpu_pow(double x, double y)
{
  double a = fabs(x), r = cpu_exp(y * cpu_log(a));
  double whole = (y + CPU_MAGIC) - CPU_MAGIC, pair = (y * 0.5 + CPU_MAGIC) - CPU_MAGIC;
  double part = fabs(whole - y), odd = fabs(whole - 2 * pair); /* 0 or NaN where y is infinite */
  r = fabs(y) == (double)INFINITY ? (a == 1 ? 1 : r) : r;
  double turned = odd == 1 ? -r : r, negative = part > 0 ? r : turned;
  double none = part > 0 ? (double)NAN : turned;
  negative = a > 0 ? (a < (double)INFINITY ? none : negative) : negative;
  r = copysign(1.0, x) < 0 ? negative : r;
  r = x == 1 ? 1 : r;
  return y == 0 ? 1 : r;
}

/* ---- in float ----------------------------------------------------------------------------------
 * Twice as many at a time, where a few units of float's last place do not show (float16, bfloat16),
 * and where PyTorch's own are no nearer: sigmoid, silu, gelu. */

#define CPU_MAGIC_F 0x1.8p23F

CPU_INLINE uint32_t cpu_float_bits(float f)
{
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

CPU_INLINE float cpu_float(uint32_t u)
{
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

CPU_INLINE float cpu_short_log(float x)
{
  bool tiny = x < 0x1p-126F;
  uint32_t u = cpu_float_bits(tiny ? x * 0x1p24F : x) + (0x3f800000U - 0x3f3504f3U);
  float e = (float)((int32_t)(u >> 23) - (tiny ? 151 : 127));
  float m = cpu_float((u & 0x007fffffU) + 0x3f3504f3U), s = (m - 1) / (m + 1), z = s * s;
  float p = 0x1.2ee656p-3F;
  p = p * z + 0x1.997c2ep-3F;
  p = p * z + 0x1.55555cp-2F;
  float r = e * 0x1.62e43p-1F + 2 * (s + s * z * p);
  r = x < INFINITY ? r : x;
  return x > 0 ? r : x == 0 ? -INFINITY : NAN;
}

/* times / (1 + e^-x), at most 2.5 units off. Where x is below -1 the quotient is of numbers 2^32
 * times smaller, so that e^-x overflows only where the result is 0. */
CPU_INLINE float cpu_short_sigmoid(float x, float times)
{
  float t = x > 80 ? -80 : -x, k = t * 0x1.715476p0F + CPU_MAGIC_F, n = k - CPU_MAGIC_F;
  float r = (t - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
  float p = 0x1.6d110ap-10F; /* (e^r - 1 - r) / r^2 */
  p = p * r + 0x1.120b6ep-7F;
  p = p * r + 0x1.55551ap-5F;
  p = p * r + 0x1.5554dcp-3F;
  p = p * r + 0.5F;
  p = 1 + (r + r * r * p);
  uint32_t one = (x < -1 ? 127U - 32 : 127U) << 23;
  float e = p * cpu_float((cpu_float_bits(k) << 23) + one);
  e = t > 110 ? INFINITY : e;
  return times * cpu_float(one) / (cpu_float(one) + e);
}

/* x (1 + erf(x / sqrt(2))) / 2, at most 2.6e-7 |x| off (PyTorch 2.15's: 3.6e-7). The half of erf is
 * x times a quotient of polynomials of x^2, to 1.7e-8, which are such that the sum is 0 at the
 * least x and 1 at the greatest. */
CPU_INLINE float cpu_short_gelu(float x)
{
  float a = x > 5.4F ? 5.4F : x;
  a = a < -5.4F ? -5.4F : a;
  float z = a * a, u = 0x1.ff0a2p-34F, v = 0x1.e4a552p-15F;
  u = u * z - 0x1.7d11e6p-26F;
  u = u * z + 0x1.a02148p-19F;
  u = u * z + 0x1.48029cp-13F;
  u = u * z + 0x1.21a514p-8F;
  u = u * z + 0x1.1b09p-5F;
  u = u * z + 0x1.988450p-2F;
  v = v * z + 0x1.ca96fap-10F;
  v = v * z + 0x1.cf8c82p-6F;
  v = v * z + 0x1.03592cp-2F;
  v = v * z + 1;
  float part = 0.5F + a * u / v;
  part = part < 0 ? 0 : part;
  return x * part;
}

#endif
