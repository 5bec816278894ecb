/* dtype.h: what the elements of a tensor are. Included by weir.h.
 *
 * Names, sizes and rules of promotion are PyTorch's (torch.dtype, torch.promote_types).
 */
#ifndef WEIR_DTYPE_H
#define WEIR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, value, torch's name, bytes of an element, name of the tensor type or "" where torch
 * has none). Values are part of the ABI: never renumber, only append. */
#define WEIR_DTYPE_MAP(X)                                                                          \
  X(UINT8, 1, "uint8", 1, "ByteTensor")                                                            \
  X(INT8, 2, "int8", 1, "CharTensor")                                                              \
  X(INT16, 3, "int16", 2, "ShortTensor")                                                           \
  X(INT32, 4, "int32", 4, "IntTensor")                                                             \
  X(INT64, 5, "int64", 8, "LongTensor")                                                            \
  X(FLOAT16, 6, "float16", 2, "HalfTensor")                                                        \
  X(FLOAT32, 7, "float32", 4, "FloatTensor")                                                       \
  X(FLOAT64, 8, "float64", 8, "DoubleTensor")                                                      \
  X(COMPLEX64, 9, "complex64", 8, "ComplexFloatTensor")                                            \
  X(BOOL, 10, "bool", 1, "BoolTensor")                                                             \
  X(BFLOAT16, 11, "bfloat16", 2, "BFloat16Tensor")

typedef enum weir_dtype {
  WEIR_DTYPE_NONE = 0, /* not given: the default dtype, or the tensor's own */
#define WEIR_DTYPE_ENUM(name, value, text, bytes, type) WEIR_##name = value,
  WEIR_DTYPE_MAP(WEIR_DTYPE_ENUM)
#undef WEIR_DTYPE_ENUM
} weir_dtype;

/* A number for a tensor: bool and integers are in i (sign extended), floating point in f, complex
 * in f and imag. Like Python's numbers it has a kind rather than a dtype. */
typedef struct weir_scalar {
  weir_dtype dtype; /* WEIR_BOOL, WEIR_INT64, WEIR_FLOAT64 or WEIR_COMPLEX64 */
  int64_t i;
  double f, imag;
} weir_scalar;

static inline weir_scalar weir_bool(bool value)
{
  weir_scalar s = {WEIR_BOOL, value, 0, 0};
  return s;
}

static inline weir_scalar weir_int(int64_t value)
{
  weir_scalar s = {WEIR_INT64, value, 0, 0};
  return s;
}

static inline weir_scalar weir_float(double value)
{
  weir_scalar s = {WEIR_FLOAT64, 0, value, 0};
  return s;
}

static inline weir_scalar weir_complex(double real, double imag)
{
  weir_scalar s = {WEIR_COMPLEX64, 0, real, imag};
  return s;
}

enum { WEIR_DTYPES = 12 }; /* one more than the highest value */

/* "float32" (borrowed, static); "none" and "unknown dtype" for what is no dtype. */
WEIR_PUBLIC const char *weir_dtype_name(weir_dtype dtype);
/* Bytes of an element; 0 for what is no dtype. */
WEIR_PUBLIC size_t weir_dtype_size(weir_dtype dtype);
WEIR_PUBLIC bool weir_dtype_is_floating_point(weir_dtype dtype); /* float16, bfloat16, 32, 64 */
WEIR_PUBLIC bool weir_dtype_is_complex(weir_dtype dtype);
/* "float32", "float", "weir.float32", "torch.float32" (float double half byte char short int long
 * bool bfloat16 cfloat are aliases). Errors: EINVAL, the sentence lists the valid ones. */
WEIR_PUBLIC weir_status weir_dtype_parse(weir_dtype *out, const char *text);
/* The dtype both can be converted to, as torch.promote_types(). Errors: EINVAL (no dtype),
 * ENOTSUP (float64 with complex64: there is no complex128 here). */
WEIR_PUBLIC weir_status weir_promote_types(weir_dtype *out, weir_dtype a, weir_dtype b);

/* A tensor type is a dtype on a kind of device: "weir.FloatTensor", "weir.cuda.FloatTensor"; torch.
 * in weir.'s place is taken too. The device has no index. Errors: EINVAL, the sentence lists the
 * valid ones. */
WEIR_PUBLIC weir_status weir_type_parse(weir_dtype *dtype, weir_device *device, const char *text);
/* Its name (borrowed, static). */
WEIR_PUBLIC const char *weir_type_name(weir_dtype dtype, weir_device_type device);

#ifdef __cplusplus
}
#endif

#endif
