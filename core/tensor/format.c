/* format.c: see format.h, and weir_memory_format in core/weir/tensor.h.
 *
 * A format is an order of dimensions from the innermost outwards; a tensor is in it where its
 * strides are those of that order. Nothing of a format is stored: as in PyTorch, strides state
 * it. */
#include "core/stream/async_error.h"
#include "core/tensor/announce.h"
#include "core/tensor/format.h"

enum { MOST_DIMS = 5 };

/* Dimensions from the innermost outwards; NULL: row by row. */
static const int *order_of(weir_memory_format format)
{
  static const int two[] = {1, 3, 2, 0}, three[] = {1, 4, 3, 2, 0};
  return format == WEIR_CHANNELS_LAST ? two : format == WEIR_CHANNELS_LAST_3D ? three : NULL;
}

static int dims_of_format(weir_memory_format format)
{
  return format == WEIR_CHANNELS_LAST ? MOST_DIMS - 1 : MOST_DIMS;
}

static weir_status check_rank(weir_memory_format format, int dims)
{
  if (!order_of(format) || dims == dims_of_format(format)) return WEIR_OK;
  return fail_invalid("required rank %d tensor to use channels_last%s format",
                      dims_of_format(format), format == WEIR_CHANNELS_LAST_3D ? "_3d" : "");
}

weir_status format_from(weir_memory_format *out, const weir_options *options)
{
  *out = options ? (weir_memory_format)options->memory_format : WEIR_PRESERVE_FORMAT;
  if (*out <= WEIR_CHANNELS_LAST_3D) return WEIR_OK;
  return fail_invalid("%d is not a memory format", (int)*out);
}

/* ---- what strides state ---------------------------------------------------------------------- */

bool format_holds(const weir_tensor *t, weir_memory_format format)
{
  const int *order = order_of(format);
  int64_t step = 1;
  if (format <= WEIR_CONTIGUOUS_FORMAT) return t->dense;
  if (!order || t->dims != dims_of_format(format)) return false;
  for (int i = 0; i < t->dims; i++) {
    int64_t size = t->size[order[i]];
    if (size == 1) continue;
    if (t->stride[order[i]] != step) return false;
    step *= size;
  }
  return true;
}

/* Whether strides grow in the format's order. Ambiguous ones do not: images of one element, one
 * channel that is repeated. */
static bool looks_like(const weir_tensor *t, weir_memory_format format)
{
  const int *order = order_of(format);
  int64_t least = 0;
  if (t->dims != dims_of_format(format) || !t->stride[1]) return false;
  for (int i = 0; i < t->dims; i++) {
    int64_t size = t->size[order[i]], stride = t->stride[order[i]];
    if (!size || stride < least || (!order[i] && least == t->stride[1])) return false;
    least = size > 1 ? stride * size : stride;
  }
  return true;
}

weir_memory_format format_of(const weir_tensor *t)
{
  if (t->dims < MOST_DIMS - 1) return WEIR_CONTIGUOUS_FORMAT;
  return looks_like(t, WEIR_CHANNELS_LAST)      ? WEIR_CHANNELS_LAST
         : looks_like(t, WEIR_CHANNELS_LAST_3D) ? WEIR_CHANNELS_LAST_3D
                                                : WEIR_CONTIGUOUS_FORMAT;
}

/* ---- new tensors ----------------------------------------------------------------------------- */

weir_status format_new(weir_tensor **out, weir_dtype dtype, weir_device device, bool pinned,
                       weir_shape shape, weir_memory_format format)
{
  const int *order = order_of(format);
  int64_t stride[WEIR_MAX_DIMS], step = 1, numel;
  tensor_storage *s;
  *out = NULL;
  weir_status st = check_rank(format, shape.count);
  if (!st && !order) return tensor_new(out, dtype, device, pinned, shape);
  if (!st) st = shape_numel(&numel, shape, dtype);
  if (!st) st = storage_new(&s, (uint64_t)numel * itemsize(dtype), device, pinned);
  if (st) return st;
  for (int i = 0; i < shape.count; i++) {
    stride[order[i]] = step;
    step *= shape.size[order[i]]; /* a size of 0 makes those outside of it 0, as torch's */
  }
  st = tensor_make(out, s, dtype, shape, stride, 0);
  if (!st) announce_made(*out);
  return st;
}

weir_status format_new_like(weir_tensor **out, const weir_tensor *t, weir_dtype dtype,
                            weir_device device, bool pinned, weir_memory_format format)
{
  if (format == WEIR_PRESERVE_FORMAT) return tensor_new_like(out, t, dtype, device, pinned);
  return format_new(out, dtype, device, pinned, weir_tensor_shape(t), format);
}

/* A copy in the format. */
static weir_status copy_to_format(weir_tensor **out, const weir_tensor *t,
                                  weir_memory_format format)
{
  weir_status st =
      format_new(out, t->dtype, device_of_tensor(t), false, weir_tensor_shape(t), format);
  if (!st && (st = weir_copy_(*out, t, false))) weir_tensor_drop(out);
  return st;
}

weir_status format_settle(weir_tensor **t, weir_memory_format format)
{
  weir_tensor *made = *t;
  if (!order_of(format) || made->dims != dims_of_format(format) || format_holds(made, format))
    return WEIR_OK;
  weir_status st = copy_to_format(t, made, format);
  weir_tensor_release(made);
  return st;
}

/* ---- public ---------------------------------------------------------------------------------- */

bool weir_tensor_is_contiguous_format(const weir_tensor *t, weir_memory_format format)
{
  return t && format_holds(t, format);
}

weir_status weir_contiguous_format(weir_tensor **out, const weir_tensor *t,
                                   weir_memory_format format)
{
  WEIR_OP(out, t);
  if (format == WEIR_PRESERVE_FORMAT && !t->dense)
    return fail_invalid("preserve memory format is unsupported by the contiguous operator");
  if (format <= WEIR_CONTIGUOUS_FORMAT) return weir_contiguous(out, t);
  if ((unsigned)format > WEIR_CHANNELS_LAST_3D)
    return fail_invalid("%d is not a memory format", (int)format);
  if (!format_holds(t, format)) return copy_to_format(out, t, format);
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}
