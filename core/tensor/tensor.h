/* tensor.h: what a tensor is inside, and what the parts of core/tensor are to each other.
 *
 * A tensor is small and never changes its shape once others can see it; what it is made of is its
 * storage's. Both are counted apart: a view is a tensor with a storage that has one count more.
 *
 * Words. storage: memory with one owner, who is asked to take it back with the last count. place: a
 * device ready for work: its backend, and the stream that is current for the calling thread.
 * op: one of compute.h's requests. dense: without holes, in row-major order (contiguous). */
#ifndef WEIR_TENSOR_TENSOR_H
#define WEIR_TENSOR_TENSOR_H

#include <stdatomic.h>
#include "core/backend/backend.h"
#include "core/weir.h"

/* Who takes a storage's memory back. */
enum storage_kind {
  STORAGE_INLINE, /* the cpu: right after the struct, with it */
  STORAGE_PINNED, /* weir_pinned_free() */
  STORAGE_DEVICE, /* weir_free(), which knows the stream */
  STORAGE_OVER    /* release(context) */
};

typedef struct tensor_storage {
  _Atomic uint32_t refs;
  uint8_t kind;             /* enum storage_kind */
  bool pinned;              /* our page-locked host memory; of STORAGE_OVER ask storage_pinned() */
  _Atomic uint32_t version; /* changes in place so far */
  _Atomic uint32_t aliases; /* of `refs`: of tensors that nodes alone hold, and do not change */
  weir_device device;       /* with its index */
  void *data;               /* by `kind`; NULL: no bytes */
  uint64_t bytes;
  void (*release)(void *context); /* STORAGE_OVER; NULL: nobody */
  void *context;                  /* its owner's */
  struct grad_history *history;   /* owned: recorded changes in place of memory that is shared
                                   * (record.h); NULL: none */
} tensor_storage;

/* How a tensor came to share another's memory, where that states whether it may be changed in place
 * by an operation that is recorded. */
enum view_created {
  VIEW_PLAIN,    /* a view, or none */
  VIEW_NO_GRAD,  /* while recording was off */
  VIEW_AS_OTHER, /* whose elements are of another dtype: changes of it are not recorded */
  VIEW_OF_PARTS, /* of one of those below */
  VIEW_UNBIND,   /* one of the results of a function that gives several views */
  VIEW_SPLIT,
  VIEW_SPLIT_SIZES
};

struct weir_tensor {
  _Atomic uint32_t refs;
  uint8_t dtype, dims;
  bool dense;
  bool extras;             /* it has, or had, a name or a node, or is an alias */
  tensor_storage *storage; /* a count of its own */
  char *data;              /* the first element */
  int64_t numel;
  int64_t size[WEIR_MAX_DIMS], stride[WEIR_MAX_DIMS]; /* elements */
  char *name;                                         /* owned; NULL: none */
  struct grad_node *node; /* a count of its own: what it was calculated by, or, of a leaf, where its
                           * gradient gathers; NULL: it requires none (record.h) */
  uint32_t output;        /* which result of the node it is */
  bool alias;             /* one of storage->aliases */
  uint8_t created;        /* enum view_created */
  uint16_t part;          /* which of several views */
  uint32_t family;        /* detach() begins another: the rest know nothing of its changes */
  uint32_t seen;          /* the version of the storage that `node` holds for; of a view at least */
  _Atomic uint32_t kept;  /* of `refs`: those of nodes that need its elements */
  bool renewed;           /* `node` became another while nodes kept it */
};

static inline weir_device device_of_tensor(const weir_tensor *t)
{
  return t->storage->device;
}

static inline weir_shape shape_of_tensor(const weir_tensor *t)
{
  return weir_shape_of(t->dims, t->size);
}

/* Options for a new tensor on t's device. */
#define OPTIONS_ON(t, type) (&(weir_options){.dtype = (type), .device = device_of_tensor(t)})

/* size[from] times all up to size[to - 1]; 1 of none. */
static inline int64_t sizes_product(const int64_t *size, int from, int to)
{
  int64_t product = 1;
  for (int i = from; i < to; i++)
    product *= size[i];
  return product;
}

/* t's elements change, or have. */
static inline void tensor_changes(const weir_tensor *t)
{
  _Atomic uint32_t *version = &t->storage->version;
  atomic_store_explicit(version, atomic_load_explicit(version, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

static inline size_t itemsize(weir_dtype dtype)
{
  static const uint8_t bytes[WEIR_DTYPES] = {
#define WEIR_DTYPE_BYTES(name, value, text, size, type) [WEIR_##name] = size,
      WEIR_DTYPE_MAP(WEIR_DTYPE_BYTES)
#undef WEIR_DTYPE_BYTES
  };
  return bytes[dtype];
}

/* What host memory of elements must be aligned to: the cpu reads the parts of a complex number by
 * themselves. */
static inline size_t host_alignment(weir_dtype dtype)
{
  return dtype == WEIR_COMPLEX64 ? itemsize(dtype) / 2 : itemsize(dtype);
}

/* ---- storage.c: memory ----------------------------------------------------------------------- */

typedef struct device_place {
  const weir_backend *backend;
  weir_stream *stream; /* NULL: the cpu */
  void *native;        /* the backend's handle of it */
} device_place;

/* Where work on `device` goes now. Errors: EINVAL, those of opening it. */
weir_status device_place_of(device_place *out, weir_device device);
/* The device with its index: cuda without one is the current device, cpu:0 is cpu, one that is not
 * given the default device. Whether a CUDA device exists is asked where memory is. */
weir_device device_resolve(weir_device device);

/* *out has one count. On CUDA for the current stream of the device. Errors: EINVAL, ENOMEM, EOOM.
 */
weir_status storage_new(tensor_storage **out, uint64_t bytes, weir_device device, bool pinned);
weir_status storage_over(tensor_storage **out, void *data, uint64_t bytes, weir_device device,
                         void (*release)(void *context), void *context);
/* Whether host memory is page-locked; of somebody else's memory the driver is asked. */
bool storage_pinned(const tensor_storage *s);
/* NULL is nothing. */
void storage_release(tensor_storage *s);

/* ---- tensor.c -------------------------------------------------------------------------------- */

/* A tensor over `storage` (one of its counts is stolen, also on failure), `offset` elements after
 * its start. strides NULL: dense. The shape has been checked. Errors: ENOMEM. */
weir_status tensor_make(weir_tensor **out, tensor_storage *storage, weir_dtype dtype,
                        weir_shape shape, const int64_t *strides, int64_t offset);
/* A dense tensor in new memory, elements as they happen to be. dtype and device are resolved.
 * Errors: EINVAL (shape, overflow), ENOMEM, EOOM. */
weir_status tensor_new(weir_tensor **out, weir_dtype dtype, weir_device device, bool pinned,
                       weir_shape shape);
/* The same, of t's dtype on t's device. */
static inline weir_status tensor_new_beside(weir_tensor **out, const weir_tensor *t,
                                            weir_shape shape)
{
  return tensor_new(out, t->dtype, device_of_tensor(t), false, shape);
}
/* The same, its sizes and strides being those of `like`, which is dense, and its device. dtype:
 * like's or a shorter one. Nothing of it is a struct on the way: what is written in halves and read
 * whole costs as much as all the rest. */
weir_status tensor_new_as(weir_tensor **out, weir_dtype dtype, const weir_tensor *like);
/* A view of t. Errors: ENOMEM. */
weir_status tensor_view(weir_tensor **out, const weir_tensor *t, weir_shape shape,
                        const int64_t *strides, int64_t offset);
/* The same, of sizes and strides that are borrowed for the call. */
weir_status tensor_part(weir_tensor **out, const weir_tensor *t, int dims, const int64_t *sizes,
                        const int64_t *strides, int64_t offset);
/* After a failed call of what makes several tensors: drops the first `count` of out where st is an
 * error; returns st. */
weir_status drop_parts(weir_tensor **out, int count, weir_status st);
/* The same elements once more, for who only reads them. Errors: ENOMEM. */
weir_status tensor_alias(weir_tensor **out, const weir_tensor *t);
/* A shape as torch writes it, "[2, 3]", for messages; returns out->at. */
typedef struct text_buffer {
  char at[WEIR_MAX_DIMS * 24];
} text_buffer;
const char *shape_format(text_buffer *out, weir_shape shape);
/* Elements of a shape. Errors: EINVAL: too many dimensions, a negative size, bytes that overflow.
 */
weir_status shape_numel(int64_t *out, weir_shape shape, weir_dtype dtype);
/* Whether a tensor may have as many dimensions. Errors: EINVAL. */
weir_status check_dim_count(int dims);
/* A dimension counted from the front. Errors: EINVAL, torch's sentence. */
weir_status dim_resolve(int *out, int dim, int dims);

/* ---- loop.c: building and running requests --------------------------------------------------- */

/* t as an operand, its last dimensions aligned with the loop's (broadcast: stride 0). */
weir_operand operand_of(const weir_tensor *t, const weir_loop *l);
/* dims, size and the operands are filled (count is not): sizes are those of `out`. Dimensions are
 * sorted and merged, those of size 1 taken out; then it runs on `device`, in its current stream. An
 * empty loop is nothing. */
weir_status loop_run(weir_device device, weir_loop *l);
/* Refuses, as torch does, to write to a tensor elements of which share memory, or which shares some
 * but not all of its memory with `in` (NULL: is not asked). *copy: `in` may share memory in a way
 * that was not looked into, and must be copied first. Errors: EINVAL. */
weir_status overlap_check(bool *copy, const weir_tensor *out, const weir_tensor *in);

/* ---- number.c -------------------------------------------------------------------------------- */

/* One element of t, converted to a number; waits for the device. */
weir_status scalar_of(weir_scalar *out, const weir_tensor *t);
/* An element in host memory. */
weir_scalar scalar_at(const void *at, weir_dtype dtype);
/* The real part of a number of any kind. */
static inline double scalar_real(weir_scalar v)
{
  return v.dtype == WEIR_FLOAT64 || v.dtype == WEIR_COMPLEX64 ? v.f : (double)v.i;
}
/* v as an element of `dtype` is stored: bool, int64, float64 or complex64 by its kind. Errors:
 * EINVAL "value cannot be converted to type int8_t without overflow". */
weir_status scalar_for(weir_scalar *out, weir_scalar v, weir_dtype dtype);

/* ---- convert.c ------------------------------------------------------------------------------- */

/* A new tensor with t's shape whose dimensions lie in memory in the order of t's: dense, and with
 * t's own strides where t has no holes. As torch's empty_like with preserve_format. */
weir_status tensor_new_like(weir_tensor **out, const weir_tensor *t, weir_dtype dtype,
                            weir_device device, bool pinned);

#endif
