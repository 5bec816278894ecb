/* scalar_type.h: what torch calls a dtype in messages: "Float". */
#ifndef WEIR_BACKEND_SCALAR_TYPE_H
#define WEIR_BACKEND_SCALAR_TYPE_H

#include "core/weir/dtype.h"

/* NULL: WEIR_DTYPE_NONE. */
static inline const char *scalar_type(weir_dtype dtype)
{
  static const char *const names[WEIR_DTYPES] = {
      [WEIR_UINT8] = "Byte",    [WEIR_INT8] = "Char",        [WEIR_INT16] = "Short",
      [WEIR_INT32] = "Int",     [WEIR_INT64] = "Long",       [WEIR_FLOAT16] = "Half",
      [WEIR_FLOAT32] = "Float", [WEIR_FLOAT64] = "Double",   [WEIR_COMPLEX64] = "ComplexFloat",
      [WEIR_BOOL] = "Bool",     [WEIR_BFLOAT16] = "BFloat16"};
  return names[dtype];
}

#endif
