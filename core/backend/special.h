/* special.h: functions that C's library lacks, in double, the same bits on every device.
 *
 * Compiles as C, C++ and CUDA C++. Sources: S. Winitzki, "A handy approximation for the error
 * function and its inverse" (2008), for where the search for erfinv begins; Abramowitz and Stegun,
 * 6.3.5, 6.3.7 and 6.3.18, for digamma. */
#ifndef WEIR_BACKEND_SPECIAL_H
#define WEIR_BACKEND_SPECIAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/backend/half.h"

/* The y of erf(y) = x: a beginning that is right to 2e-3, then two of Halley's steps, each of which
 * cubes the error. Near 1 what is missing to 1 is compared, which is exact. */
WEIR_HD double special_erfinv(double x)
{
  double a = fabs(x), rest = 1 - a;
  if (!(a < 1)) return a == 1 ? copysign((double)INFINITY, x) : (double)NAN;
  double l = log(rest * (1 + a)), t = 4.330746750799873 + l / 2;
  double y = sqrt(sqrt(t * t - l / 0.147) - t);
  for (int i = 0; i < 2; i++) {
    double off = a > 0.5 ? rest - erfc(y) : erf(y) - a;
    double u = off / (1.1283791670955126 * exp(-y * y));
    y -= u / (1 + y * u);
  }
  return copysign(y, x);
}

/* The derivative of ln gamma: by recurrence to where the series of 1/x^2 is exact to double;
 * negative x by reflection. At 0 it is infinite, at negative integers NaN. */
WEIR_HD double special_digamma(double x)
{
  double reflected = 0, sum = 0;
  if (x == 0) return copysign((double)INFINITY, -x);
  if (x < 0) {
    double part = x - rint(x);
    if (!(fabs(part) > 0)) return (double)NAN;
    reflected = 3.141592653589793 / tan(3.141592653589793 * part);
    x = 1 - x;
  }
  while (x < 10) {
    sum -= 1 / x;
    x += 1;
  }
  double z = 1 / (x * x), series = 1.0 / 12;
  series = series - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132))));
  series += z * z * z * z * z * (-691.0 / 32760 + z / 12);
  return sum + log(x) - 0.5 / x - z * series - reflected;
}

/* Of what is not negative. */
WEIR_HD uint64_t special_gcd(uint64_t a, uint64_t b)
{
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Without its sign. */
WEIR_HD uint64_t special_size(int64_t x)
{
  return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* The same of sizes as C's abs() leaves them in their dtype: the least integer keeps its sign, so
 * remainders do, and the result may, as torch's. */
WEIR_HD int64_t special_gcd_signed(int64_t x, int64_t y)
{
  if (x >= 0 && y >= 0) return (int64_t)special_gcd((uint64_t)x, (uint64_t)y);
  while (x) {
    int64_t was = x;
    x = y % x; /* x is -1 only where y is not the least integer */
    y = was;
  }
  return y;
}

/* The next float16 or bfloat16 after x on the way to y, both as bits. infinity: its bits. */
WEIR_HD uint16_t special_next(uint16_t x, uint16_t y, uint16_t infinity)
{
  uint16_t size_x = (uint16_t)(x & 0x7fff), size_y = (uint16_t)(y & 0x7fff);
  if (size_x > infinity) return x;
  if (size_y > infinity || x == y) return y;
  if (!(size_x | size_y)) return y;
  if (!size_x) return (uint16_t)((y & 0x8000) | 1);
  bool away = ((x ^ y) & 0x8000) == 0 && size_y > size_x;
  return (uint16_t)(away ? x + 1 : x - 1);
}

#endif
