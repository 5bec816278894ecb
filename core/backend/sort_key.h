/* sort_key.h: elements as unsigned integers whose order is the elements' own.
 *
 * Compiles as C, C++ and CUDA C++. A key is as wide as its element: integers count from their least
 * one; floating point has its sign bit turned round, and below 0 all others, too. -0 has the key of
 * 0; every NaN has the largest key. A key of 32 bits or less and a place below 2^32 are one
 * sort_item: items are all different, so that any way of sorting them keeps equals in order. */
#ifndef WEIR_BACKEND_SORT_KEY_H
#define WEIR_BACKEND_SORT_KEY_H

#include "core/backend/half.h"
#include "core/weir/dtype.h"

/* Of float bits `u`, `width` bits in all; what lies above `infinity` but for the sign is NaN. */
WEIR_HD uint64_t sort_key_float(uint64_t u, int width, uint64_t infinity)
{
  uint64_t sign = (uint64_t)1 << (width - 1), all = sign | (sign - 1), size = u & ~sign;
  if (size > infinity) return all;
  if (!size) return sign;
  return u & sign ? ~u & all : u | sign;
}

/* The key of an element whose bits are `u`. */
WEIR_HD uint64_t sort_key_of(int dtype, uint64_t u)
{
  switch (dtype) {
  case WEIR_BOOL:
    return u != 0;
  case WEIR_INT8:
    return u ^ 0x80;
  case WEIR_INT16:
    return u ^ 0x8000;
  case WEIR_INT32:
    return u ^ 0x80000000U;
  case WEIR_INT64:
    return u ^ (uint64_t)1 << 63;
  case WEIR_FLOAT16:
    return sort_key_float(u, 16, 0x7c00);
  case WEIR_BFLOAT16:
    return sort_key_float(u, 16, 0x7f80);
  case WEIR_FLOAT32:
    return sort_key_float(u, 32, 0x7f800000U);
  case WEIR_FLOAT64:
    return sort_key_float(u, 64, (uint64_t)0x7ff << 52);
  default:
    return u;
  }
}

/* Element number `at`, its bits. */
WEIR_HD uint64_t sort_bits_at(const void *data, int bytes, int64_t at)
{
  switch (bytes) {
  case 1:
    return ((const uint8_t *)data)[at];
  case 2:
    return ((const uint16_t *)data)[at];
  case 4:
    return ((const uint32_t *)data)[at];
  default:
    return ((const uint64_t *)data)[at];
  }
}

/* For the largest first: the keys' order turned round. */
WEIR_HD uint64_t sort_key_turned(uint64_t key, int bytes)
{
  return bytes == 8 ? ~key : ~key & (((uint64_t)1 << 8 * bytes) - 1);
}

#endif
