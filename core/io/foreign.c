/* foreign.c: see foreign.h.
 *
 * Elements are converted on the cpu, in two steps: to the nearest dtype of ours that loses nothing
 * for the dtype that is asked for, then by weir_to(). Of uint64 there is none for all: integers
 * take its bits, as a cast in C does, and floats are rounded once, to the float that the narrow
 * ones are rounded from in PyTorch as well. Formats: "FP8 Formats for Deep Learning" (Micikevicius
 * et al., 2022). */
#include "core/io/foreign.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name[3]; /* by enum foreign_format; NULL: the format has none */
  size_t bytes;
} kinds[] = {
    [FOREIGN_NONE] = {{NULL, NULL, NULL}, 0},
    [FOREIGN_UINT16] = {{"U16", "u2", "uint16"}, 2},
    [FOREIGN_UINT32] = {{"U32", "u4", "uint32"}, 4},
    [FOREIGN_UINT64] = {{"U64", "u8", "uint64"}, 8},
    [FOREIGN_E4M3] = {{"F8_E4M3", NULL, "float8_e4m3fn"}, 1},
    [FOREIGN_E5M2] = {{"F8_E5M2", NULL, "float8_e5m2"}, 1},
    [FOREIGN_OTHER] = {{NULL, NULL, NULL}, 0},
};

enum foreign_kind foreign_find(enum foreign_format format, const char *name)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].name[format] && !strcmp(kinds[i].name[format], name)) return (enum foreign_kind)i;
  return FOREIGN_NONE;
}

size_t foreign_size(enum foreign_kind kind)
{
  return kinds[kind].bytes;
}

bool foreign_asked(enum foreign_kind kind, const weir_options *options)
{
  return options && (options->as_bytes || (options->dtype && kind != FOREIGN_OTHER));
}

weir_status foreign_refused(enum foreign_kind kind, const char *what, const char *name)
{
  return fail_unsupported("%s is of dtype '%.20s', which no tensor of Weir's has: %s", what, name,
                          kind == FOREIGN_OTHER
                              ? "it can be had as_bytes"
                              : "ask for a dtype to convert it to, or for it as_bytes");
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Dimensions of the array from the innermost in memory on, which are those of a dense tensor. */
static weir_shape shape_in_memory(const file_array *array)
{
  weir_shape shape = array->shape;
  for (int i = 0; array->fortran && i < shape.count; i++)
    shape.size[i] = array->shape.size[shape.count - 1 - i];
  return shape;
}

/* Steals t: with its first `dims` dimensions turned around, where the array lies so. */
static weir_status turn_back(weir_tensor **out, weir_tensor *t, const file_array *array)
{
  int order[WEIR_MAX_DIMS], dims = array->shape.count;
  if (!array->fortran || dims < 2) {
    *out = t;
    return WEIR_OK;
  }
  for (int i = 0; i < weir_tensor_dim(t); i++)
    order[i] = i < dims ? dims - 1 - i : i;
  weir_status st = weir_permute(out, t, order);
  weir_tensor_release(t);
  return st;
}

static weir_status as_bytes(weir_tensor **out, const tensor_file *f, const file_array *array,
                            const weir_options *options)
{
  file_array raw = {WEIR_UINT8,     shape_in_memory(array), array->at,  false,
                    array->swapped, array->foreign,         array->item};
  weir_options o = *options;
  weir_tensor *t;
  o.dtype = WEIR_DTYPE_NONE;
  if (array->item > 1) {
    if (raw.shape.count == WEIR_MAX_DIMS)
      return fail_unsupported("%s: an array of %d dimensions has no room for its bytes", f->path,
                              WEIR_MAX_DIMS);
    raw.shape.size[raw.shape.count++] = (int64_t)array->item;
  }
  weir_status st = file_tensor(&t, f, &raw, &o);
  return st ? st : turn_back(out, t, array);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* What elements are converted to first. */
static weir_dtype wide_dtype(enum foreign_kind kind, weir_dtype asked)
{
  bool real = weir_dtype_is_floating_point(asked) || weir_dtype_is_complex(asked);
  switch (kind) {
  case FOREIGN_UINT16:
    return WEIR_INT32;
  case FOREIGN_UINT32:
    return WEIR_INT64;
  case FOREIGN_UINT64:
    return !real ? WEIR_INT64 : asked == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32;
  default:
    return WEIR_FLOAT32;
  }
}

/* A float of 8 bits: a sign, `8 - 1 - fraction` bits of exponent. */
static float small_float(unsigned bits, enum foreign_kind kind)
{
  int fraction = kind == FOREIGN_E4M3 ? 3 : 2, bias = kind == FOREIGN_E4M3 ? 7 : 15;
  int part = (int)(bits & ((1u << fraction) - 1)), exponent = (int)(bits & 0x7f) >> fraction;
  float sign = bits & 0x80 ? -1.0F : 1.0F;
  if (kind == FOREIGN_E4M3 && (bits & 0x7f) == 0x7f) return copysignf(NAN, sign);
  if (kind == FOREIGN_E5M2 && exponent == 31) return copysignf(part ? NAN : INFINITY, sign);
  if (!exponent) return sign * ldexpf((float)part, 1 - bias - fraction);
  return sign * ldexpf((float)(part + (1 << fraction)), exponent - bias - fraction);
}

static void widen_floats(float *to, const uint8_t *from, int64_t count, enum foreign_kind kind)
{
  float value[256];
  for (unsigned i = 0; i < 256; i++)
    value[i] = small_float(i, kind);
  for (int64_t i = 0; i < count; i++)
    to[i] = value[from[i]];
}

static void widen_uint64(void *to, weir_dtype dtype, const uint64_t *from, int64_t count)
{
  if (dtype == WEIR_INT64)
    memcpy(to, from, (size_t)count * sizeof *from);
  else if (dtype == WEIR_FLOAT64)
    for (int64_t i = 0; i < count; i++)
      ((double *)to)[i] = (double)from[i];
  else
    for (int64_t i = 0; i < count; i++)
      ((float *)to)[i] = (float)from[i];
}

/* `from`: elements on the cpu, aligned. */
static void widen_elements(weir_tensor *to, const void *from, enum foreign_kind kind)
{
  void *out = to->data;
  int64_t count = to->numel;
  if (kind == FOREIGN_UINT16)
    for (int64_t i = 0; i < count; i++)
      ((int32_t *)out)[i] = ((const uint16_t *)from)[i];
  else if (kind == FOREIGN_UINT32)
    for (int64_t i = 0; i < count; i++)
      ((int64_t *)out)[i] = ((const uint32_t *)from)[i];
  else if (kind == FOREIGN_UINT64)
    widen_uint64(out, to->dtype, from, count);
  else
    widen_floats(out, from, count, kind);
}

/* Of dense bytes on the cpu. */
static weir_status convert_dense(weir_tensor **out, const weir_tensor *bytes, weir_shape shape,
                                 enum foreign_kind kind, weir_dtype asked)
{
  weir_status st = tensor_new(out, wide_dtype(kind, asked), WEIR_CPU, false, shape);
  if (!st && (*out)->numel) widen_elements(*out, bytes->data, kind);
  return st;
}

/* Steals t: where the options state, as they state. */
static weir_status put_foreign(weir_tensor **out, weir_tensor *t, const weir_options *options)
{
  weir_options o = {.dtype = options->dtype, .device = device_resolve(options->device)};
  weir_tensor *there = NULL;
  weir_status st = weir_to(&there, t, &o);
  weir_tensor_release(t);
  if (!st && options->pin_memory) {
    st = weir_pin_memory(out, there);
    weir_tensor_release(there);
    return st;
  }
  *out = there;
  return st;
}

static weir_status converted(weir_tensor **out, const tensor_file *f, const file_array *array,
                             const weir_options *options)
{
  WEIR_TENSOR bytes = NULL;
  weir_tensor *wide = NULL, *turned;
  weir_options here = {.device = WEIR_CPU};
  int64_t numel;
  file_array raw = {.dtype = WEIR_UINT8,
                    .at = array->at,
                    .swapped = array->swapped,
                    .foreign = array->foreign,
                    .item = array->item};
  weir_status st = shape_numel(&numel, array->shape, WEIR_INT64); /* none is wider */
  raw.shape = weir_shape(numel * (int64_t)array->item);
  if (!st) st = file_tensor(&bytes, f, &raw, &here);
  if (!st) st = convert_dense(&wide, bytes, shape_in_memory(array), array->foreign, options->dtype);
  if (!st) st = turn_back(&turned, wide, array);
  return st ? st : put_foreign(out, turned, options);
}

weir_status foreign_tensor(weir_tensor **out, const tensor_file *f, const file_array *array,
                           const weir_options *options)
{
  *out = NULL;
  if (options->pin_memory && device_resolve(options->device).type != WEIR_DEVICE_CPU)
    return fail_invalid("only dense CPU tensors can be pinned");
  return options->dtype && array->foreign != FOREIGN_OTHER ? converted(out, f, array, options)
                                                           : as_bytes(out, f, array, options);
}

weir_status foreign_convert(weir_tensor **out, const weir_tensor *bytes, enum foreign_kind kind,
                            const weir_options *options)
{
  WEIR_TENSOR dense = NULL;
  weir_tensor *wide;
  weir_options o = *options;
  weir_shape shape = {weir_tensor_dim(bytes) - (foreign_size(kind) > 1), {0}};
  for (int i = 0; i < shape.count; i++)
    shape.size[i] = bytes->size[i];
  if (!o.device.type) o.device = device_of_tensor(bytes);
  weir_status st = file_dense(&dense, bytes, false);
  if (!st) st = convert_dense(&wide, dense, shape, kind, o.dtype);
  return st ? st : put_foreign(out, wide, &o);
}
