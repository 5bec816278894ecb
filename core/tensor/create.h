/* create.h: what factories share: what a new tensor is to be, all of it given. */
#ifndef WEIR_TENSOR_CREATE_H
#define WEIR_TENSOR_CREATE_H

#include "core/tensor/format.h"

typedef struct tensor_spec {
  weir_dtype dtype;
  weir_device device; /* with its index */
  bool pinned;
  weir_memory_format format;
} tensor_spec;

/* What options (NULL: none) do not give: `dtype`, and the default device. Errors: EINVAL. */
weir_status tensor_spec_of(tensor_spec *out, const weir_options *options, weir_dtype dtype);
/* What options do not give is as it is in `of`. */
weir_status tensor_spec_like(tensor_spec *out, const weir_options *options, const weir_tensor *of);
weir_status tensor_new_by(weir_tensor **out, const tensor_spec *s, weir_shape shape);

#endif
