/* format.h: memory formats: which dimension of an image's lies innermost in memory. */
#ifndef WEIR_TENSOR_FORMAT_H
#define WEIR_TENSOR_FORMAT_H

#include "core/tensor/tensor.h"

/* Whether t's elements lie in the format, without holes. */
bool format_holds(const weir_tensor *t, weir_memory_format format);
/* The format t's strides look like: torch's suggest_memory_format(). Where several fit (sizes of 1)
 * it is CONTIGUOUS. */
weir_memory_format format_of(const weir_tensor *t);
/* A new tensor of t's shape in the format; PRESERVE: in t's own, as tensor_new_like(). Errors:
 * those, EINVAL: the format is of other numbers of dimensions. */
weir_status format_new_like(weir_tensor **out, const weir_tensor *t, weir_dtype dtype,
                            weir_device device, bool pinned, weir_memory_format format);
/* The same of a shape; PRESERVE is CONTIGUOUS. */
weir_status format_new(weir_tensor **out, weir_dtype dtype, weir_device device, bool pinned,
                       weir_shape shape, weir_memory_format format);
/* What an operation on images has made, *t, in `format`, if that is of channels last: a copy in its
 * place. Errors: those of a copy, and *t is released. */
weir_status format_settle(weir_tensor **t, weir_memory_format format);
/* What options state. Errors: EINVAL: no such format. */
weir_status format_from(weir_memory_format *out, const weir_options *options);

#endif
