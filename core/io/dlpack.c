/* dlpack.c: see core/weir/dlpack.h.
 *
 * A tensor that was given away is one allocation: the struct of either version, shape and strides,
 * and what gives it all back. Its memory is kept by a count of the storage, and a block of device
 * memory is exported as well, so that weir_memory_pause() leaves it where it is.
 *
 * What comes in is checked as any file is: another library fills it in, and may be wrong. */
#include <stdlib.h>
#include <string.h>
#include "core/stream/async_error.h"
#include "core/memory/devices.h"
#include "core/tensor/tensor.h"
#include "core/weir/dlpack.h"

static const struct row {
  uint8_t code, bits;
} rows[WEIR_DTYPES] = {
    [WEIR_UINT8] = {WEIR_DLPACK_UINT, 8},         [WEIR_INT8] = {WEIR_DLPACK_INT, 8},
    [WEIR_INT16] = {WEIR_DLPACK_INT, 16},         [WEIR_INT32] = {WEIR_DLPACK_INT, 32},
    [WEIR_INT64] = {WEIR_DLPACK_INT, 64},         [WEIR_FLOAT16] = {WEIR_DLPACK_FLOAT, 16},
    [WEIR_FLOAT32] = {WEIR_DLPACK_FLOAT, 32},     [WEIR_FLOAT64] = {WEIR_DLPACK_FLOAT, 64},
    [WEIR_COMPLEX64] = {WEIR_DLPACK_COMPLEX, 64}, [WEIR_BOOL] = {WEIR_DLPACK_BOOL, 8},
    [WEIR_BFLOAT16] = {WEIR_DLPACK_BFLOAT, 16}};

/* ---- giving ---------------------------------------------------------------------------------- */

typedef struct given {
  union {
    weir_dlpack versioned;
    weir_dlpack_unversioned plain;
  } as;                    /* first: the consumer's pointer is to it */
  tensor_storage *storage; /* a count */
  void *block;             /* exported; NULL: none */
  int64_t size[WEIR_MAX_DIMS], stride[WEIR_MAX_DIMS];
} given;

static void drop_export(given *g)
{
  if (g->block) (void)weir_memory_unexport(g->block);
  storage_release(g->storage);
  free(g);
}

static void delete_versioned(weir_dlpack *self)
{
  if (self) drop_export(self->manager_ctx);
}

static void delete_plain(weir_dlpack_unversioned *self)
{
  if (self) drop_export(self->manager_ctx);
}

/* The backend's handle of a stream as DLPack numbers it. */
static void *handle_of(intptr_t stream)
{
  bool legacy = stream == WEIR_DLPACK_STREAM_NONE || stream == WEIR_DLPACK_STREAM_LEGACY;
  return legacy ? NULL : (void *)stream;
}

/* The consumer's stream waits for what is now in the current one. */
static weir_status make_wait(weir_device device, intptr_t stream)
{
  attached_device *d = attached_device_of(device);
  weir_status st = d ? WEIR_OK : attach_device(device, &d);
  if (st) return st;
  const mem_heap *h = current_heap(d);
  const weir_backend *b = h->pool->backend;
  void *event, *consumer = handle_of(stream);
  if (h->stream == consumer) return WEIR_OK;
  if ((st = b->event_create(b->self, &event))) return st;
  st = b->event_record(b->self, event, h->stream);
  if (!st) st = b->event_wait(b->self, consumer, event);
  (void)b->event_destroy(b->self, event);
  return st;
}

static weir_status make_ready(const weir_tensor *t, intptr_t stream)
{
  if (stream < WEIR_DLPACK_STREAM_NO_SYNC)
    return fail_invalid("%lld is not a stream", (long long)stream);
  if (stream == WEIR_DLPACK_STREAM_NO_SYNC) return WEIR_OK;
  if (device_of_tensor(t).type == WEIR_DEVICE_CUDA) return make_wait(device_of_tensor(t), stream);
  if (stream == WEIR_DLPACK_STREAM_NONE) return WEIR_OK;
  return fail_invalid("the tensor is on the cpu, which has no streams");
}

static void describe_dlpack(weir_dlpack_tensor *to, given *g, const weir_tensor *t)
{
  weir_device device = device_of_tensor(t);
  bool host = device.type == WEIR_DEVICE_CPU;
  *to = (weir_dlpack_tensor){
      .data = t->numel ? t->data : NULL, .ndim = t->dims, .shape = g->size, .strides = g->stride};
  to->device.type = !host                        ? WEIR_DLPACK_CUDA
                    : storage_pinned(t->storage) ? WEIR_DLPACK_CUDA_HOST
                                                 : WEIR_DLPACK_CPU;
  to->device.index = host ? 0 : weir_device_index(device);
  to->dtype.code = rows[t->dtype].code;
  to->dtype.bits = rows[t->dtype].bits;
  to->dtype.lanes = 1;
  memcpy(g->size, t->size, t->dims * sizeof *g->size);
  memcpy(g->stride, t->stride, t->dims * sizeof *g->stride);
}

/* t's description is written to `tensor`, which lies in *out. */
static weir_status export_tensor(given **out, const weir_tensor *t, intptr_t stream, size_t tensor)
{
  weir_status st = make_ready(t, stream);
  if (st) return st;
  given *g = calloc(1, sizeof *g);
  if (!g) return fail_memory("a tensor given away");
  if (t->storage->kind == STORAGE_DEVICE && t->storage->data) {
    g->block = t->storage->data;
    if ((st = weir_memory_export(g->block))) {
      free(g);
      return st;
    }
  }
  g->storage = t->storage;
  atomic_fetch_add_explicit(&g->storage->refs, 1, memory_order_relaxed);
  describe_dlpack((weir_dlpack_tensor *)(void *)((char *)g + tensor), g, t);
  *out = g;
  return WEIR_OK;
}

static weir_status export_or_copy(given **out, const weir_tensor *t, const weir_dlpack_options *o,
                                  size_t tensor)
{
  WEIR_TENSOR copy = NULL;
  weir_status st = o->copy ? weir_clone(&copy, t) : WEIR_OK;
  return st ? st : export_tensor(out, copy ? copy : t, o->stream, tensor);
}

weir_status weir_to_dlpack(weir_dlpack **out, const weir_tensor *t,
                           const weir_dlpack_options *options)
{
  WEIR_OP(out, t);
  weir_dlpack_options o = options ? *options : (weir_dlpack_options){0};
  given *g = NULL;
  weir_status st = export_or_copy(&g, t, &o, offsetof(given, as.versioned.tensor));
  if (st || !g) return st;
  weir_dlpack *d = &g->as.versioned;
  d->version.major = WEIR_DLPACK_MAJOR;
  d->version.minor = WEIR_DLPACK_MINOR;
  d->manager_ctx = g;
  d->deleter = delete_versioned;
  d->flags = (o.read_only ? WEIR_DLPACK_READ_ONLY : 0) | (o.copy ? WEIR_DLPACK_IS_COPIED : 0);
  *out = d;
  return WEIR_OK;
}

weir_status weir_to_dlpack_unversioned(weir_dlpack_unversioned **out, const weir_tensor *t,
                                       const weir_dlpack_options *options)
{
  WEIR_OP(out, t);
  weir_dlpack_options o = options ? *options : (weir_dlpack_options){0};
  given *g = NULL;
  if (o.read_only)
    return fail_invalid("an unversioned DLPack tensor cannot say that it is read-only");
  weir_status st = export_or_copy(&g, t, &o, offsetof(given, as.plain.tensor));
  if (st || !g) return st;
  weir_dlpack_unversioned *d = &g->as.plain;
  d->manager_ctx = g;
  d->deleter = delete_plain;
  *out = d;
  return WEIR_OK;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static weir_status dtype_of(weir_dtype *out, const weir_dlpack_tensor *d)
{
  for (int i = 1; i < WEIR_DTYPES && d->dtype.lanes == 1; i++)
    if (rows[i].code == d->dtype.code && rows[i].bits == d->dtype.bits) {
      *out = (weir_dtype)i;
      return WEIR_OK;
    }
  return fail_unsupported("a DLPack type of code %u, %u bits and %u lanes has no dtype",
                          d->dtype.code, d->dtype.bits, d->dtype.lanes);
}

static weir_status device_of_dlpack(weir_device *out, const weir_dlpack_tensor *d)
{
  switch (d->device.type) {
  case WEIR_DLPACK_CPU:
  case WEIR_DLPACK_CUDA_HOST:
    *out = WEIR_CPU;
    return WEIR_OK;
  case WEIR_DLPACK_CUDA:
  case WEIR_DLPACK_CUDA_MANAGED:
    if (d->device.index < 0) break;
    *out = WEIR_CUDA_AT(d->device.index);
    attached_device *a = attached_device_of(*out);
    return a ? WEIR_OK : attach_device(*out, &a);
  default:
    break;
  }
  return fail_unsupported("a DLPack tensor of device type %d, index %d, is on no device of Weir's",
                          d->device.type, d->device.index);
}

static weir_status shape_of_dlpack(weir_shape *out, int64_t *numel, const weir_dlpack_tensor *d,
                                   weir_dtype dtype)
{
  if (d->ndim > WEIR_MAX_DIMS)
    return fail_unsupported("a DLPack tensor of %d dimensions; %d are the most", d->ndim,
                            WEIR_MAX_DIMS);
  if (d->ndim < 0 || (d->ndim && !d->shape))
    return fail_invalid("a DLPack tensor of %d dimensions without a shape", d->ndim);
  *out = weir_shape_of(d->ndim, d->shape);
  return shape_numel(numel, *out, dtype);
}

/* Elements from the first to after the last. */
static weir_status extent_of(uint64_t *out, const weir_dlpack_tensor *d, int64_t numel, size_t item)
{
  int64_t last = 0, step, bytes;
  if (!d->strides) {
    *out = (uint64_t)numel;
    return WEIR_OK;
  }
  for (int i = 0; i < d->ndim; i++)
    if (d->strides[i] < 0)
      return fail_invalid(
          "a DLPack tensor with stride %lld in dimension %d: negative strides are not supported",
          (long long)d->strides[i], i);
  for (int i = 0; numel && i < d->ndim; i++)
    if (__builtin_mul_overflow(d->shape[i] - 1, d->strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return fail_invalid("the strides of a DLPack tensor overflow in dimension %d", i);
  if (__builtin_mul_overflow(last, (int64_t)item, &bytes) || bytes > INT64_MAX - (int64_t)item)
    return fail_invalid("the strides of a DLPack tensor overflow");
  *out = numel ? (uint64_t)last + 1 : 0;
  return WEIR_OK;
}

/* Of complex numbers the host reads the parts by themselves, a device's kernels do not. */
static weir_status data_of(char **out, const weir_dlpack_tensor *d, int64_t numel, uint64_t extent,
                           size_t item)
{
  bool host = d->device.type == WEIR_DLPACK_CPU || d->device.type == WEIR_DLPACK_CUDA_HOST;
  char *data = d->data;
  uintptr_t at, end;
  *out = NULL;
  if (!numel) return WEIR_OK;
  if (!data) return fail_invalid("a DLPack tensor of %lld elements without data", (long long)numel);
  if (__builtin_add_overflow((uintptr_t)data, d->byte_offset, &at) ||
      __builtin_add_overflow(at, extent * item, &end))
    return fail_invalid("the byte_offset %llu of a DLPack tensor is beyond all memory",
                        (unsigned long long)d->byte_offset);
  *out = data + d->byte_offset;
  size_t align = host && d->dtype.code == WEIR_DLPACK_COMPLEX ? item / 2 : item;
  if (align && (uintptr_t)*out % align)
    return fail_invalid("the data of a DLPack tensor at %p is not aligned to %zu bytes",
                        (void *)*out, align);
  return WEIR_OK;
}

static weir_status import_tensor(weir_tensor **out, const weir_dlpack_tensor *d,
                                 void (*release)(void *context), void *context)
{
  weir_dtype dtype = WEIR_DTYPE_NONE;
  weir_device device = WEIR_CPU;
  weir_shape shape = {0};
  tensor_storage *s = NULL;
  int64_t numel = 0;
  uint64_t extent = 0;
  char *data = NULL;
  weir_status st = dtype_of(&dtype, d);
  size_t item = itemsize(dtype);
  if (!st) st = shape_of_dlpack(&shape, &numel, d, dtype);
  if (!st) st = extent_of(&extent, d, numel, item);
  if (!st) st = data_of(&data, d, numel, extent, item);
  if (!st) st = device_of_dlpack(&device, d);
  if (!st) st = storage_over(&s, data, extent * item, device, NULL, NULL);
  if (st || !s) return st;
  s->pinned = d->device.type == WEIR_DLPACK_CUDA_HOST;
  TRY(tensor_make(out, s, dtype, shape, d->strides, 0));
  s->release = release; /* only now: of what fails, nobody is notified */
  s->context = context;
  return WEIR_OK;
}

/* The copy is done: its source may go. */
static weir_status settle_dlpack(const weir_tensor *t)
{
  device_place p;
  if (device_of_tensor(t).type == WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = device_place_of(&p, device_of_tensor(t));
  return st ? st : async_sync(p.stream, "from_dlpack");
}

/* In the place of *t, which is released. */
static weir_status copied(weir_tensor **t, bool copy)
{
  weir_tensor *own = NULL;
  if (!copy || !*t) return WEIR_OK;
  weir_status st = weir_clone(&own, *t);
  if (!st) st = settle_dlpack(own);
  if (st) { /* `from` stays the caller's */
    (*t)->storage->release = NULL;
    weir_tensor_drop(t);
    weir_tensor_release(own);
    return st;
  }
  weir_tensor_release(*t);
  *t = own;
  return WEIR_OK;
}

static void taken_versioned(void *context)
{
  weir_dlpack *d = context;
  if (d->deleter) d->deleter(d);
}

static void taken_plain(void *context)
{
  weir_dlpack_unversioned *d = context;
  if (d->deleter) d->deleter(d);
}

weir_status weir_from_dlpack(weir_tensor **out, weir_dlpack *from,
                             const weir_dlpack_options *options)
{
  WEIR_OP(out, from);
  weir_dlpack_options o = options ? *options : (weir_dlpack_options){0};
  if (from->version.major != WEIR_DLPACK_MAJOR)
    return weir_fail(WEIR_EVERSION, "a tensor of DLPack %u.%u; known is version %d.%d",
                     from->version.major, from->version.minor, WEIR_DLPACK_MAJOR,
                     WEIR_DLPACK_MINOR);
  if (from->flags & WEIR_DLPACK_READ_ONLY && !o.read_only && !o.copy)
    return fail_invalid("the DLPack tensor is read-only, and a tensor can be written: ask for a "
                        "copy, or promise not to write with read_only");
  weir_status st = import_tensor(out, &from->tensor, taken_versioned, from);
  return st ? st : copied(out, o.copy);
}

weir_status weir_from_dlpack_unversioned(weir_tensor **out, weir_dlpack_unversioned *from,
                                         const weir_dlpack_options *options)
{
  WEIR_OP(out, from);
  weir_status st = import_tensor(out, &from->tensor, taken_plain, from);
  return st ? st : copied(out, options && options->copy);
}

weir_status weir_dlpack_stream(intptr_t *out, weir_device device)
{
  WEIR_REQUIRE(out);
  weir_stream *stream;
  void *native;
  *out = WEIR_DLPACK_STREAM_NONE;
  if (device.type == WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = weir_current_stream(&stream, device);
  if (!st) st = weir_stream_native(&native, stream);
  if (!st) *out = native ? (intptr_t)native : WEIR_DLPACK_STREAM_LEGACY;
  return st;
}
