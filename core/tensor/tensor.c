/* tensor.c: tensors' life, and what they state of themselves.
 *
 * A tensor that one count holds is its holder's alone, so giving the last count back needs no
 * atomic subtraction: nobody else could be adding one. Sizes and strides beyond `dims` are not
 * set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory/devices.h"
#include "core/tensor/announce.h"
#include "core/tensor/record.h"
#include "core/tensor/slots.h"

enum { NAME_BYTES = 64 };

/* ---- shapes ---------------------------------------------------------------------------------- */

const char *shape_format(text_buffer *out, weir_shape shape)
{
  int count = shape.count < WEIR_MAX_DIMS ? shape.count : WEIR_MAX_DIMS;
  size_t used = 0, room = sizeof out->at;
  out->at[used++] = '[';
  for (int i = 0; i < count; i++)
    used += (size_t)snprintf(out->at + used, room - used, i ? ", %lld" : "%lld",
                             (long long)shape.size[i]);
  out->at[used++] = ']';
  out->at[used] = 0;
  return out->at;
}

weir_status check_dim_count(int dims)
{
  if (dims >= 0 && dims <= WEIR_MAX_DIMS) return WEIR_OK;
  return fail_invalid("a tensor has 0 to %d dimensions, not %d", WEIR_MAX_DIMS, dims);
}

weir_status drop_parts(weir_tensor **out, int count, weir_status st)
{
  while (st && count--)
    weir_tensor_drop(&out[count]);
  return st;
}

static __attribute__((cold)) weir_status bad_shape(weir_shape s, weir_dtype dtype)
{
  text_buffer text;
  if ((unsigned)dtype >= WEIR_DTYPES || !dtype)
    return fail_invalid("%d is not a dtype", (int)dtype);
  if (check_dim_count(s.count)) return WEIR_EINVAL;
  for (int i = 0; i < s.count; i++)
    if (s.size[i] < 0)
      return fail_invalid("Trying to create tensor with negative dimension %lld: %s",
                          (long long)s.size[i], shape_format(&text, s));
  return fail_invalid("Storage size calculation overflowed with sizes=%s", shape_format(&text, s));
}

weir_status shape_numel(int64_t *out, weir_shape shape, weir_dtype dtype)
{
  int64_t n = 1, most = (int64_t)weir_dtype_size(dtype); /* as if no size were 0 */
  bool bad = shape.count < 0 || shape.count > WEIR_MAX_DIMS || !most;
  for (int i = 0; !bad && i < shape.count; i++) {
    int64_t size = shape.size[i];
    bad = size < 0 || __builtin_mul_overflow(most, size ? size : 1, &most);
    n *= bad ? 0 : size;
  }
  if (__builtin_expect(bad, 0)) return bad_shape(shape, dtype);
  *out = n;
  return WEIR_OK;
}

weir_status dim_resolve(int *out, int dim, int dims)
{
  int room = dims ? dims : 1; /* a tensor without dimensions takes 0 and -1 */
  if (dim < -room || dim >= room)
    return fail_invalid("Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                        -room, room - 1, dim);
  *out = dim < 0 ? dim + room : dim;
  return WEIR_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Row-major strides and the count of elements. */
static inline void fill_dense(weir_tensor *t, int dims, const int64_t *sizes)
{
  uint64_t step = 1; /* a size of 0 elsewhere makes any stride good */
  int64_t numel = 1;
  for (int i = dims - 1; i >= 0; i--) {
    int64_t size = sizes[i];
    t->size[i] = size;
    t->stride[i] = (int64_t)step;
    step *= (uint64_t)(size ? size : 1);
    numel *= size;
  }
  t->numel = numel;
  t->dense = true;
}

static inline void fill_strided(weir_tensor *t, int dims, const int64_t *sizes,
                                const int64_t *strides)
{
  int64_t step = 1, numel = 1;
  bool dense = true;
  for (int i = dims - 1; i >= 0; i--) {
    int64_t size = sizes[i];
    t->size[i] = size;
    t->stride[i] = strides[i];
    dense = dense && (size == 1 || strides[i] == step);
    step *= size;
    numel *= size;
  }
  t->numel = numel;
  t->dense = dense || !numel;
}

_Static_assert(sizeof(weir_tensor) <= SLOT_TENSOR_BYTES, "a tensor in its slot");

/* `storage`'s count is stolen, also on failure. */
static inline weir_status make_tensor(weir_tensor **out, tensor_storage *storage, weir_dtype dtype,
                                      int dims, const int64_t *sizes, const int64_t *strides,
                                      char *data)
{
  weir_tensor *t = slot_take(SLOT_TENSOR);
  if (__builtin_expect(!t, 0)) {
    *out = NULL;
    storage_release(storage);
    (void)fail_memory("a tensor (%zu bytes)", sizeof *t);
    return WEIR_ENOMEM;
  }
  atomic_init(&t->refs, 1);
  t->dtype = (uint8_t)dtype;
  t->dims = (uint8_t)dims;
  t->storage = storage;
  t->extras = false;
  t->name = NULL;
  t->node = NULL;
  t->alias = false;
  t->created = VIEW_PLAIN;
  t->family = t->seen = 0;
  atomic_init(&t->kept, 0);
  t->renewed = false;
  t->data = data;
  if (strides)
    fill_strided(t, dims, sizes, strides);
  else
    fill_dense(t, dims, sizes);
  *out = t;
  return WEIR_OK;
}

weir_status tensor_make(weir_tensor **out, tensor_storage *storage, weir_dtype dtype,
                        weir_shape shape, const int64_t *strides, int64_t offset)
{
  char *data = storage->data;
  if (offset) data += offset * (int64_t)itemsize(dtype);
  return make_tensor(out, storage, dtype, shape.count, shape.size, strides, data);
}

weir_status tensor_new(weir_tensor **out, weir_dtype dtype, weir_device device, bool pinned,
                       weir_shape shape)
{
  int64_t numel = 0;
  tensor_storage *s;
  *out = NULL;
  weir_status st = shape_numel(&numel, shape, dtype);
  if (!st) st = storage_new(&s, (uint64_t)numel * itemsize(dtype), device, pinned);
  if (!st) st = tensor_make(out, s, dtype, shape, NULL, 0);
  if (!st && *out) announce_made(*out);
  return st;
}

/* What a view states of how it came to be. */
static inline void note_view(weir_tensor *view, const weir_tensor *of)
{
  uint8_t created = of->created > VIEW_OF_PARTS ? VIEW_OF_PARTS : of->created;
  view->created = thread_grad_off ? VIEW_NO_GRAD : created;
  view->family = of->family;
  view->seen = atomic_load_explicit(&of->storage->version, memory_order_relaxed);
}

weir_status tensor_part(weir_tensor **out, const weir_tensor *t, int dims, const int64_t *sizes,
                        const int64_t *strides, int64_t offset)
{
  tensor_storage *s = t->storage;
  char *data = t->data; /* NULL: of no bytes */
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  if (data) data += offset * (int64_t)itemsize(t->dtype);
  weir_status st = make_tensor(out, s, t->dtype, dims, sizes, strides, data);
  if (__builtin_expect(!st, 1)) note_view(*out, t);
  return st;
}

weir_status tensor_alias(weir_tensor **out, const weir_tensor *t)
{
  TRY(tensor_part(out, t, t->dims, t->size, t->stride, 0));
  (*out)->extras = (*out)->alias = true;
  atomic_fetch_add_explicit(&t->storage->aliases, 1, memory_order_relaxed);
  return WEIR_OK;
}

weir_status tensor_new_as(weir_tensor **out, weir_dtype dtype, const weir_tensor *like)
{
  tensor_storage *s;
  *out = NULL;
  weir_status st =
      storage_new(&s, (uint64_t)like->numel * itemsize(dtype), device_of_tensor(like), false);
  if (st) return st;
  st = make_tensor(out, s, dtype, like->dims, like->size, NULL, s->data);
  if (!st && *out) announce_made(*out);
  return st;
}

weir_status tensor_view(weir_tensor **out, const weir_tensor *t, weir_shape shape,
                        const int64_t *strides, int64_t offset)
{
  return tensor_part(out, t, shape.count, shape.size, strides, offset);
}

/* ---- counting -------------------------------------------------------------------------------- */

weir_tensor *weir_tensor_retain(weir_tensor *t)
{
  if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}

static __attribute__((cold, noinline)) void release_extras(weir_tensor *t)
{
  free(t->name);
  if (t->node) tensor_recorder->release(t->node);
  if (t->alias) atomic_fetch_sub_explicit(&t->storage->aliases, 1, memory_order_relaxed);
}

/* The caller's is the last count that is not a node's. A node that it has got since then may lead
 * back to those that keep it. */
static __attribute__((cold, noinline)) void left_to_nodes(weir_tensor *t)
{
  if (t->alias) return;
  if (t->renewed) {
    tensor_recorder->release(t->node);
    t->node = NULL;
  }
  if (t->storage->history) {
    tensor_recorder->view_gone(t);
    return;
  }
  t->alias = t->extras = true;
  atomic_fetch_add_explicit(&t->storage->aliases, 1, memory_order_relaxed);
}

void weir_tensor_release(weir_tensor *t)
{
  if (!t) return;
  uint32_t refs = atomic_load_explicit(&t->refs, memory_order_acquire);
  if (refs != 1) {
    if (refs - 1 == atomic_load_explicit(&t->kept, memory_order_relaxed)) left_to_nodes(t);
    if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
  }
  if (__builtin_expect(t->storage->history != NULL, 0)) tensor_recorder->view_gone(t);
  if (__builtin_expect(t->extras, 0)) release_extras(t);
  storage_release(t->storage);
  slot_give(SLOT_TENSOR, t);
}

void weir_tensor_drop(weir_tensor **t)
{
  if (!t) return;
  weir_tensor_release(*t);
  *t = NULL;
}

/* ---- description ----------------------------------------------------------------------------- */

weir_dtype weir_tensor_dtype(const weir_tensor *t)
{
  return t ? t->dtype : WEIR_DTYPE_NONE;
}

weir_device weir_tensor_device(const weir_tensor *t)
{
  return t ? t->storage->device : (weir_device){WEIR_DEVICE_UNSET, {0}};
}

weir_shape weir_tensor_shape(const weir_tensor *t)
{
  return t ? shape_of_tensor(t) : (weir_shape){0, {0}};
}

int weir_tensor_dim(const weir_tensor *t)
{
  return t ? t->dims : 0;
}

/* The place of a dimension, or -1. */
static int dim_index(const weir_tensor *t, int dim)
{
  if (dim < 0) dim += t->dims;
  return dim < t->dims ? dim : -1;
}

int64_t weir_tensor_size(const weir_tensor *t, int dim)
{
  if (!t) return -1;
  int i = dim_index(t, dim);
  return i < 0 ? -1 : t->size[i];
}

int64_t weir_tensor_stride(const weir_tensor *t, int dim)
{
  if (!t) return 0;
  int i = dim_index(t, dim);
  return i < 0 ? 0 : t->stride[i];
}

int64_t weir_tensor_numel(const weir_tensor *t)
{
  return t ? t->numel : 0;
}

bool weir_tensor_is_contiguous(const weir_tensor *t)
{
  return t && t->dense;
}

bool weir_tensor_is_cuda(const weir_tensor *t)
{
  if (!t) return false;
  return t->storage->device.type == WEIR_DEVICE_CUDA;
}

bool weir_tensor_is_pinned(const weir_tensor *t)
{
  if (!t) return false;
  return storage_pinned(t->storage);
}

void *weir_tensor_data(const weir_tensor *t)
{
  if (!t) return NULL;
  return t->data;
}

bool weir_tensor_shares_storage(const weir_tensor *a, const weir_tensor *b)
{
  if (!a || !b) return false;
  return a->storage == b->storage;
}

const char *weir_tensor_type(const weir_tensor *t)
{
  if (!t) return "";
  return weir_type_name(t->dtype, t->storage->device.type);
}

weir_status weir_tensor_set_name(weir_tensor *t, const char *name)
{
  WEIR_REQUIRE(t);
  char *copy = name ? strndup(name, NAME_BYTES - 1) : NULL;
  if (name && !copy) return fail_memory("a tensor's name");
  free(t->name);
  t->name = copy;
  t->extras = true;
  if (copy) announce_named(t);
  return WEIR_OK;
}

const char *weir_tensor_name(const weir_tensor *t)
{
  if (!t) return "";
  return t->name ? t->name : "";
}

weir_status weir_tensor_record_stream(const weir_tensor *t, weir_stream *stream)
{
  WEIR_REQUIRE(t, stream);
  const tensor_storage *s = t->storage;
  bool ours = s->kind == STORAGE_DEVICE || s->kind == STORAGE_PINNED;
  return ours ? weir_record_stream(s->data, stream) : WEIR_OK;
}
