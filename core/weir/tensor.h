/* tensor.h: tensors that live on devices. Included by weir.h.
 *
 * A tensor is a shape, strides and a dtype over a storage: memory on the cpu, page-locked or not,
 * or on a CUDA device. Views share the storage. Tensors are counted: every *out of a weir_tensor is
 * new, give it back with weir_tensor_release(); the last tensor of a storage gives the memory back
 * to its allocator, in the order of the stream it was allocated for, waiting for nothing. Counting
 * is safe from any thread; whoever changes a tensor's elements while others read it must order the
 * two, as with any memory.
 *
 * Semantics are those of PyTorch's tensors (its documentation as of 2.8, "CUDA semantics" above
 * all): operations on a CUDA device enqueue in the current stream and return, a result is where its
 * operands are, and copies that are not non_blocking are complete when they return. Errors are
 * worded as PyTorch words them.
 *
 * Outputs come first, a weir_status is returned. A function that failed has changed nothing and
 * leaves *out NULL. */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MAX_DIMS 8

typedef struct weir_tensor weir_tensor;

/* Sizes, outermost first. count 0: a tensor of one element without dimensions. */
typedef struct weir_shape {
  int count;
  int64_t size[WEIR_MAX_DIMS];
} weir_shape;

/* The shape with `count` sizes (borrowed). More than WEIR_MAX_DIMS are an error where the shape is
 * used. */
static inline weir_shape weir_shape_of(int count, const int64_t *size)
{
  weir_shape s = {count, {0}};
  for (int i = 0; i < count && i < WEIR_MAX_DIMS; i++)
    s.size[i] = size[i];
  return s;
}

/* weir_shape(8, 42). Without dimensions: weir_shape_of(0, NULL). */
#ifdef __cplusplus
} /* a template is not C's */
template <class... Sizes> static inline weir_shape weir_shape_sizes_(Sizes... sizes)
{
  const int64_t size[] = {static_cast<int64_t>(sizes)..., 0};
  return weir_shape_of(static_cast<int>(sizeof...(sizes)), size);
}
extern "C" {
#define weir_shape(...) weir_shape_sizes_(__VA_ARGS__)
#else
#define weir_shape(...)                                                                            \
  weir_shape_of((int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                   \
                (const int64_t[]){__VA_ARGS__})
#endif

/* In which order the elements of images lie in memory: row by row, channel after channel; or with
 * an element's channels side by side, as convolutions on GPUs like them: of tensors of 4 dimensions
 * (n, channels, h, w), of 5 (n, channels, d, h, w). Sizes stay as they are, strides change.
 * Operations by element, convolutions and pools give their result the format of what they are
 * of. */
typedef enum weir_memory_format {
  WEIR_PRESERVE_FORMAT, /* as it is in the other tensor; without another, row by row */
  WEIR_CONTIGUOUS_FORMAT,
  WEIR_CHANNELS_LAST,
  WEIR_CHANNELS_LAST_3D
} weir_memory_format;

/* What a new tensor is to be. Zero fields are not given; NULL in their place gives none. */
typedef struct weir_options {
  weir_dtype dtype;   /* not given: the default dtype; of a conversion: stays */
  weir_device device; /* not given: the default device; of a conversion: stays */
  bool pin_memory;    /* creation on the cpu: page-locked */
  bool non_blocking;  /* conversion: need not be complete on return, where memory is page-locked */
  bool copy;          /* conversion: a new tensor even where nothing changes */
  uint8_t memory_format; /* a weir_memory_format; of a module's: of what has as many dimensions */
  bool as_bytes;         /* a file's: what has a dtype that tensors have not is had as uint8 */
} weir_options;

/* ---- defaults ---------------------------------------------------------------------------------
 * Of the process, as torch.set_default_dtype; at first float32 and the cpu. */

WEIR_PUBLIC weir_status weir_set_default_dtype(weir_dtype dtype);
WEIR_PUBLIC weir_dtype weir_get_default_dtype(void);
/* "cuda" without an index is the device that is current when a tensor is made. */
WEIR_PUBLIC weir_status weir_set_default_device(weir_device device);
WEIR_PUBLIC weir_device weir_get_default_device(void);
/* Both at once, by the name of a tensor type ("weir.cuda.FloatTensor"). Errors: EINVAL, "only
 * floating-point types are supported as the default type". */
WEIR_PUBLIC weir_status weir_set_default_tensor_type(const char *type);

/* ---- creation ---------------------------------------------------------------------------------
 * Errors of all: EINVAL (shape, sizes that overflow, dtype, device: reported with numbers), ENOMEM,
 * EOOM and those of the device. */

/* Copies `values` (borrowed: as many as the shape has, of dtype `of`, row by row). options' dtype
 * not given: `of`. */
WEIR_PUBLIC weir_status weir_tensor_from(weir_tensor **out, const void *values, weir_dtype of,
                                         weir_shape shape, const weir_options *options);
/* A tensor over memory of somebody else's (borrowed until `release`(context) is called, with the
 * last tensor of it; NULL: nobody is called). Strides in elements, NULL: contiguous. A device that
 * is not given is the cpu. As torch.from_blob. Errors: also EINVAL (no data, negative strides,
 * memory that is not aligned to an element; on the cpu, of a complex one to its parts). */
WEIR_PUBLIC weir_status weir_tensor_over(weir_tensor **out, void *data, weir_shape shape,
                                         const int64_t *strides, const weir_options *options,
                                         void (*release)(void *context), void *context);
/* Elements as they happen to be; 0; 1. */
WEIR_PUBLIC weir_status weir_empty(weir_tensor **out, weir_shape shape,
                                   const weir_options *options);
WEIR_PUBLIC weir_status weir_zeros(weir_tensor **out, weir_shape shape,
                                   const weir_options *options);
WEIR_PUBLIC weir_status weir_ones(weir_tensor **out, weir_shape shape, const weir_options *options);
/* dtype not given: bool, int64, the default dtype or complex64, by the value. */
WEIR_PUBLIC weir_status weir_full(weir_tensor **out, weir_shape shape, weir_scalar value,
                                  const weir_options *options);
/* start, start + step, ... before end; dtype not given: int64 if all three are integers. */
WEIR_PUBLIC weir_status weir_arange(weir_tensor **out, weir_scalar start, weir_scalar end,
                                    weir_scalar step, const weir_options *options);
/* Uniform in [0, 1); normal with mean 0 and variance 1; from the device's generator. */
WEIR_PUBLIC weir_status weir_rand(weir_tensor **out, weir_shape shape, const weir_options *options);
WEIR_PUBLIC weir_status weir_randn(weir_tensor **out, weir_shape shape,
                                   const weir_options *options);
/* Integers from low to high - 1; dtype not given: int64. */
WEIR_PUBLIC weir_status weir_randint(weir_tensor **out, int64_t low, int64_t high, weir_shape shape,
                                     const weir_options *options);

/* Shape, dtype and device of `like`, what options give instead. */
WEIR_PUBLIC weir_status weir_empty_like(weir_tensor **out, const weir_tensor *like,
                                        const weir_options *options);
WEIR_PUBLIC weir_status weir_zeros_like(weir_tensor **out, const weir_tensor *like,
                                        const weir_options *options);
WEIR_PUBLIC weir_status weir_ones_like(weir_tensor **out, const weir_tensor *like,
                                       const weir_options *options);
WEIR_PUBLIC weir_status weir_full_like(weir_tensor **out, const weir_tensor *like,
                                       weir_scalar value, const weir_options *options);
WEIR_PUBLIC weir_status weir_rand_like(weir_tensor **out, const weir_tensor *like,
                                       const weir_options *options);
WEIR_PUBLIC weir_status weir_randn_like(weir_tensor **out, const weir_tensor *like,
                                        const weir_options *options);
/* dtype and device of `self`, whatever is current: torch's new_*. */
WEIR_PUBLIC weir_status weir_new_empty(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                                       const weir_options *options);
WEIR_PUBLIC weir_status weir_new_zeros(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                                       const weir_options *options);
WEIR_PUBLIC weir_status weir_new_ones(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                                      const weir_options *options);
WEIR_PUBLIC weir_status weir_new_full(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                                      weir_scalar value, const weir_options *options);
WEIR_PUBLIC weir_status weir_new_tensor(weir_tensor **out, const weir_tensor *self,
                                        const void *values, weir_dtype of, weir_shape shape,
                                        const weir_options *options);

/* ---- life and description -------------------------------------------------------------------- */

/* The same tensor once more (new: it has a count of its own). NULL is NULL. */
WEIR_PUBLIC weir_tensor *weir_tensor_retain(weir_tensor *t);
/* Steals t; NULL is nothing. */
WEIR_PUBLIC void weir_tensor_release(weir_tensor *t);
/* For WEIR_TENSOR: releases *t and makes it NULL. */
WEIR_PUBLIC void weir_tensor_drop(weir_tensor **t);
/* WEIR_TENSOR x = NULL, y = NULL; are released at the end of their block. */
typedef weir_tensor *weir_tensor_owned;
#define WEIR_TENSOR __attribute__((cleanup(weir_tensor_drop))) weir_tensor_owned

/* What it is. */
WEIR_PUBLIC weir_dtype weir_tensor_dtype(const weir_tensor *t);
WEIR_PUBLIC weir_device weir_tensor_device(const weir_tensor *t); /* cuda with an index, always */
WEIR_PUBLIC weir_shape weir_tensor_shape(const weir_tensor *t);
WEIR_PUBLIC int weir_tensor_dim(const weir_tensor *t); /* how many dimensions */
/* Size, and stride in elements, of a dimension; negative ones count from the end. Of one there is
 * not: -1, and 0. */
WEIR_PUBLIC int64_t weir_tensor_size(const weir_tensor *t, int dim);
WEIR_PUBLIC int64_t weir_tensor_stride(const weir_tensor *t, int dim);
WEIR_PUBLIC int64_t weir_tensor_numel(const weir_tensor *t); /* elements */
/* Whether elements lie row by row, without holes. */
WEIR_PUBLIC bool weir_tensor_is_contiguous(const weir_tensor *t);
/* Whether they lie in that format, without holes; PRESERVE: row by row. */
WEIR_PUBLIC bool weir_tensor_is_contiguous_format(const weir_tensor *t, weir_memory_format format);
/* Whether it is on a CUDA device; whether it is on the cpu in page-locked memory. */
WEIR_PUBLIC bool weir_tensor_is_cuda(const weir_tensor *t);
WEIR_PUBLIC bool weir_tensor_is_pinned(const weir_tensor *t);
/* The first element (borrowed, as long as the tensor): host memory, or an address on the device. */
WEIR_PUBLIC void *weir_tensor_data(const weir_tensor *t);
/* Whether two share their storage. */
WEIR_PUBLIC bool weir_tensor_shares_storage(const weir_tensor *a, const weir_tensor *b);
/* "weir.cuda.FloatTensor" (borrowed, static). */
WEIR_PUBLIC const char *weir_tensor_type(const weir_tensor *t);
/* A name for messages and traces, copied, cut at 63 bytes; NULL takes it away. */
WEIR_PUBLIC weir_status weir_tensor_set_name(weir_tensor *t, const char *name);
WEIR_PUBLIC const char *weir_tensor_name(const weir_tensor *t); /* borrowed; "" where it has none */
/* Notifies the allocator that work in `stream` uses the tensor's memory: Tensor.record_stream. */
WEIR_PUBLIC weir_status weir_tensor_record_stream(const weir_tensor *t, weir_stream *stream);

/* The one element, converted; waits for the device. Errors: EINVAL, "a Tensor with 3 elements
 * cannot be converted to Scalar". */
WEIR_PUBLIC weir_status weir_item(weir_scalar *out, const weir_tensor *t);
/* All elements, row by row, as `dtype`, into host memory of `bytes` (borrowed); waits. Errors:
 * EINVAL (another size than needed, reported). */
WEIR_PUBLIC weir_status weir_tensor_read(void *out, size_t bytes, weir_dtype dtype,
                                         const weir_tensor *t);

/* ---- conversion -------------------------------------------------------------------------------
 * *out is t itself, counted once more, where nothing changes and no copy is asked for.
 *
 * Elements convert alike on all devices, in all functions: floating point to integers is cut
 * towards zero; what no int64 can hold, infinities and NaN included, is the most negative int64
 * (torch leaves it undefined); shorter integers keep the lowest bits of the int64. To bool: whether
 * it is not 0, so that NaN is true. Of complex numbers the real part. To floating point: to the
 * nearest, ties to even; to float16 and bfloat16 by way of float32. */

/* Of another dtype, on another device, in a copy: as options state. Errors: those of creation, and
 * of the devices' copies. */
WEIR_PUBLIC weir_status weir_to(weir_tensor **out, const weir_tensor *t,
                                const weir_options *options);
/* To the current CUDA device, or the one given: a device whose type is not given is that too.
 * Errors: EINVAL "Invalid device, must be cuda device"; ENOTSUP "Found no NVIDIA driver on your
 * system ...". */
WEIR_PUBLIC weir_status weir_cuda(weir_tensor **out, const weir_tensor *t, weir_device device,
                                  bool non_blocking);
/* On the cpu, complete when it returns. */
WEIR_PUBLIC weir_status weir_cpu(weir_tensor **out, const weir_tensor *t);
/* Of `dtype`, where it is. */
WEIR_PUBLIC weir_status weir_to_dtype(weir_tensor **out, const weir_tensor *t, weir_dtype dtype);
/* By the name of a tensor type: Tensor.type("weir.cuda.HalfTensor"). */
WEIR_PUBLIC weir_status weir_to_type(weir_tensor **out, const weir_tensor *t, const char *type,
                                     bool non_blocking);
/* A copy, always, with the order of dimensions in memory kept. */
WEIR_PUBLIC weir_status weir_clone(weir_tensor **out, const weir_tensor *t);
/* Itself where its elements lie row by row, else a copy that does. */
WEIR_PUBLIC weir_status weir_contiguous(weir_tensor **out, const weir_tensor *t);
/* Itself where its elements lie in the format, else a copy in which they do. Errors: EINVAL,
 * "required rank 4 tensor to use channels_last format"; "preserve memory format is unsupported by
 * the contiguous operator". */
WEIR_PUBLIC weir_status weir_contiguous_format(weir_tensor **out, const weir_tensor *t,
                                               weir_memory_format format);
/* A copy in page-locked memory; itself if it is there already. Errors: EINVAL, "cannot pin
 * 'weir.cuda.FloatTensor' only dense CPU tensors can be pinned". */
WEIR_PUBLIC weir_status weir_pin_memory(weir_tensor **out, const weir_tensor *t);
/* Copies src into t: broadcasts, casts, between any devices, any strides. Errors: EINVAL, "The size
 * of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0". */
WEIR_PUBLIC weir_status weir_copy_(weir_tensor *t, const weir_tensor *src, bool non_blocking);
/* All elements become `value` (EINVAL where the dtype cannot hold it), or 0. */
WEIR_PUBLIC weir_status weir_fill_(weir_tensor *t, weir_scalar value);
WEIR_PUBLIC weir_status weir_zero_(weir_tensor *t);

/* ---- views ------------------------------------------------------------------------------------
 * They share t's storage. Dimensions may be negative: -1 is the last. Errors: EINVAL, "Dimension
 * out of range (expected to be in range of [-2, 1], but got 2)" and torch's others. */

/* One size may be -1. Errors: also "view size is not compatible with input tensor's size and
 * stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...)
 * instead." */
WEIR_PUBLIC weir_status weir_view(weir_tensor **out, const weir_tensor *t, weir_shape shape);
/* A view where one can be, else a copy. */
WEIR_PUBLIC weir_status weir_reshape(weir_tensor **out, const weir_tensor *t, weir_shape shape);
/* Dimensions `from` to `to`, both included, become one: a view where it can be; of one, itself. */
WEIR_PUBLIC weir_status weir_flatten(weir_tensor **out, const weir_tensor *t, int from, int to);
/* The two dimensions of a matrix exchanged; up to one dimension, itself. Errors: more than two. */
WEIR_PUBLIC weir_status weir_t(weir_tensor **out, const weir_tensor *t);
/* Dimensions a and b exchanged. */
WEIR_PUBLIC weir_status weir_transpose(weir_tensor **out, const weir_tensor *t, int a, int b);
/* Dimensions in another order: order[0] of t comes first; as many as t has. */
WEIR_PUBLIC weir_status weir_permute(weir_tensor **out, const weir_tensor *t, const int *order);
/* t[start:end:step] in `dim`; negative places count from the end, places beyond it are the end. */
WEIR_PUBLIC weir_status weir_slice(weir_tensor **out, const weir_tensor *t, int dim, int64_t start,
                                   int64_t end, int64_t step);
/* `length` places from `start` on, in `dim`; all must be there. */
WEIR_PUBLIC weir_status weir_narrow(weir_tensor **out, const weir_tensor *t, int dim, int64_t start,
                                    int64_t length);
/* t[index] in `dim`: one dimension less. */
WEIR_PUBLIC weir_status weir_select(weir_tensor **out, const weir_tensor *t, int dim,
                                    int64_t index);
/* Without dimension `dim`, if its size is 1; with one of size 1 put in before `dim`. */
WEIR_PUBLIC weir_status weir_squeeze(weir_tensor **out, const weir_tensor *t, int dim);
WEIR_PUBLIC weir_status weir_unsqueeze(weir_tensor **out, const weir_tensor *t, int dim);
/* Dimensions of size 1 repeated to the sizes of `shape`, without memory; -1: the size it has; new
 * ones come first. */
WEIR_PUBLIC weir_status weir_expand(weir_tensor **out, const weir_tensor *t, weir_shape shape);
/* At most `chunks` pieces along `dim`; out has room for that many, *count states how many came. */
WEIR_PUBLIC weir_status weir_chunk(weir_tensor **out, int *count, const weir_tensor *t, int chunks,
                                   int dim);
/* Pieces of `size` along `dim`, the last one smaller; out has room for `room`. */
WEIR_PUBLIC weir_status weir_split(weir_tensor **out, int *count, int room, const weir_tensor *t,
                                   int64_t size, int dim);

/* ---- printing -------------------------------------------------------------------------------- */

/* torch's form: "tensor([[ 0.3000,  0.3000]], device='cuda:0')"; more than 1000 elements are
 * summarised with "...". *out is new: free() it. Waits for the device. */
WEIR_PUBLIC weir_status weir_tensor_to_string(char **out, const weir_tensor *t);

typedef struct weir_print_options {
  int precision; /* digits after the point; 4 */
  int threshold; /* elements beyond which it is summarised; 1000 */
  int edgeitems; /* of a summarised dimension, at each end; 3 */
  int linewidth; /* characters; 80 */
  int sci_mode;  /* 1 always, -1 never, 0 as torch decides */
} weir_print_options;

/* Of the process; NULL: as at first. Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_set_print_options(const weir_print_options *options);

#ifdef __cplusplus
}
#endif

#endif
