/* convert.c: the same elements elsewhere: on another device, of another dtype, page-locked.
 *
 * Where nothing changes and no copy is asked for, the result is the tensor itself, counted once
 * more. A new one lies in memory in the order in which the old one does. */
#include "core/stream/async_error.h"
#include "core/tensor/announce.h"
#include "core/tensor/create.h"

/* ---- like another ---------------------------------------------------------------------------- */

/* Dense strides of t's shape, with t's dimensions in their order, the largest strides first. Where
 * two cannot be distinguished (a dimension that is repeated, or sizes of 1) they keep their
 * order. */
static void strides_like(const weir_tensor *t, int64_t *stride)
{
  int order[WEIR_MAX_DIMS]; /* the fastest first */
  int64_t step = 1;
  for (int i = 0; i < t->dims; i++)
    order[i] = t->dims - 1 - i;
  for (int i = 1; i < t->dims; i++)
    for (int at = i, below = i - 1; below >= 0; below--) {
      int64_t x = t->stride[order[below]], y = t->stride[order[at]];
      if (!x || !y) continue;
      if (x < y) break;
      if (x == y && t->size[order[below]] <= t->size[order[at]]) continue;
      int moved = order[below];
      order[below] = order[at];
      order[at] = moved;
      at = below;
    }
  for (int i = 0; i < t->dims; i++) {
    int64_t size = t->size[order[i]];
    stride[order[i]] = step;
    step *= size ? size : 1;
  }
}

/* Whether t's elements fill their memory, in whatever order. */
static bool has_dense_strides(const weir_tensor *t)
{
  int64_t dense[WEIR_MAX_DIMS];
  strides_like(t, dense);
  for (int i = 0; i < t->dims; i++)
    if (t->size[i] != 1 && t->stride[i] != dense[i]) return false;
  return true;
}

weir_status tensor_new_like(weir_tensor **out, const weir_tensor *t, weir_dtype dtype,
                            weir_device device, bool pinned)
{
  int64_t stride[WEIR_MAX_DIMS];
  tensor_storage *s;
  weir_shape shape = weir_tensor_shape(t);
  int64_t numel;
  if (!t->numel) return tensor_new(out, dtype, device, pinned, shape);
  *out = NULL;
  TRY(shape_numel(&numel, shape, dtype));
  TRY(storage_new(&s, (uint64_t)numel * itemsize(dtype), device, pinned));
  bool own = t->dense || has_dense_strides(t);
  if (!own) strides_like(t, stride);
  weir_status st = tensor_make(out, s, dtype, shape, own ? t->stride : stride, 0);
  if (!st) announce_made(*out);
  return st;
}

/* ---- conversion ------------------------------------------------------------------------------ */

static weir_status copied(weir_tensor **out, const weir_tensor *t, const tensor_spec *s,
                          bool non_blocking)
{
  weir_status st = format_new_like(out, t, s->dtype, s->device, s->pinned, s->format);
  if (!st && (st = weir_copy_(*out, t, non_blocking))) weir_tensor_drop(out);
  return st;
}

static weir_status itself(weir_tensor **out, const weir_tensor *t)
{
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}

/* t's own, for a copy. */
static tensor_spec spec_of_tensor(const weir_tensor *t)
{
  return (tensor_spec){.dtype = t->dtype, .device = device_of_tensor(t)};
}

/* Whether t is what `s` states. */
static bool is_already(const weir_tensor *t, const tensor_spec *s)
{
  return s->dtype == t->dtype && weir_device_equal(s->device, device_of_tensor(t)) &&
         (!s->pinned || storage_pinned(t->storage)) &&
         (s->format == WEIR_PRESERVE_FORMAT || s->format == format_of(t));
}

weir_status weir_to(weir_tensor **out, const weir_tensor *t, const weir_options *options)
{
  WEIR_OP(out, t);
  static const weir_options none;
  const weir_options *o = options ? options : &none;
  tensor_spec s = spec_of_tensor(t);
  if (o->device.type) s.device = device_resolve(o->device);
  if (o->dtype) s.dtype = o->dtype;
  s.pinned = o->pin_memory;
  weir_status st = format_from(&s.format, o);
  if (!st && (unsigned)s.dtype >= WEIR_DTYPES) st = fail_invalid("%d is not a dtype", (int)s.dtype);
  if (st) return st;
  if (!o->copy && is_already(t, &s)) return itself(out, t);
  /* to the host without waiting there must be page-locked memory to copy to: torch makes it, too */
  if (o->non_blocking && s.device.type == WEIR_DEVICE_CPU && weir_tensor_is_cuda(t))
    s.pinned = true;
  return copied(out, t, &s, o->non_blocking);
}

weir_status weir_cuda(weir_tensor **out, const weir_tensor *t, weir_device device,
                      bool non_blocking)
{
  WEIR_OP(out, t);
  if (device.type == WEIR_DEVICE_UNSET) device = WEIR_CUDA;
  if (device.type != WEIR_DEVICE_CUDA) return fail_invalid("Invalid device, must be cuda device");
  return weir_to(out, t, &(weir_options){.device = device, .non_blocking = non_blocking});
}

weir_status weir_cpu(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  return weir_to(out, t, &(weir_options){.device = WEIR_CPU});
}

weir_status weir_to_dtype(weir_tensor **out, const weir_tensor *t, weir_dtype dtype)
{
  WEIR_OP(out, t);
  return weir_to(out, t, &(weir_options){.dtype = dtype});
}

weir_status weir_to_type(weir_tensor **out, const weir_tensor *t, const char *type,
                         bool non_blocking)
{
  WEIR_OP(out, t, type);
  weir_options o = {.non_blocking = non_blocking};
  TRY(weir_type_parse(&o.dtype, &o.device, type));
  if (o.device.type == device_of_tensor(t).type) o.device = device_of_tensor(t);
  return weir_to(out, t, &o);
}

weir_status weir_clone(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  tensor_spec s = spec_of_tensor(t);
  return copied(out, t, &s, false);
}

weir_status weir_contiguous(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  if (t->dense) return itself(out, t);
  weir_status st = tensor_new_beside(out, t, weir_tensor_shape(t));
  if (!st && (st = weir_copy_(*out, t, false))) weir_tensor_drop(out);
  return st;
}

weir_status weir_pin_memory(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  if (weir_tensor_is_cuda(t))
    return fail_invalid("cannot pin '%s' only dense CPU tensors can be pinned",
                        weir_tensor_type(t));
  if (storage_pinned(t->storage)) return itself(out, t);
  tensor_spec s = spec_of_tensor(t);
  s.pinned = true;
  return copied(out, t, &s, false);
}
