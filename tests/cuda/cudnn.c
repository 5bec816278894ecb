/* cudnn.c: a cuDNN for the software device: the functions that the engine calls, by NVIDIA's own
 * declarations. Its soname is libcudnn.so.9, so that who has opened it has it found under that
 * name.
 *
 * It is as strict as the documentation of cuDNN: a context, tensors that the convolution gives, no
 * element twice, an algorithm and a math type that its heuristics have named, a workspace of at
 * least what was said, aligned. It sums in double, waits for the stream, and calculates on the
 * host: not for captures that are launched. Algorithm 0 is not there; 1 wants a workspace, and
 * does not give the same bits every time; 2 wants more than any device has; 3 wants nothing. */
typedef int there_may_be_nothing;

#if __has_include(<cudnn.h>)
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cudnn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/half.h"

enum { AXES = 3, WANTED = 64 << 20 };

struct cudnnContext {
  CUcontext context;
  CUstream stream;
};
struct cudnnTensorStruct {
  cudnnDataType_t type;
  int dims, size[AXES + 2], stride[AXES + 2];
};
struct cudnnFilterStruct {
  struct cudnnTensorStruct as; /* with strides */
};
struct cudnnConvolutionStruct {
  int axes, pad[AXES], stride[AXES], dilation[AXES], groups;
  cudnnMathType_t math;
  cudnnDataType_t compute;
};

/* What the function of this name answers from now on; NULL: all work. */
static _Atomic(const char *) failing;
static _Atomic int status;
static _Atomic unsigned runs, found, living;
static _Atomic int last_algorithm, last_math, last_layout; /* layout: 1: channels last */

void strict_cudnn_answer(const char *function, int with);
unsigned strict_cudnn_count(const char *what);
void strict_cudnn_answer(const char *function, int with)
{
  atomic_store(&status, with);
  atomic_store(&failing, function);
}

unsigned strict_cudnn_count(const char *what)
{
  return !strcmp(what, "runs")        ? atomic_load(&runs)
         : !strcmp(what, "found")     ? atomic_load(&found)
         : !strcmp(what, "living")    ? atomic_load(&living)
         : !strcmp(what, "algorithm") ? (unsigned)atomic_load(&last_algorithm)
         : !strcmp(what, "math")      ? (unsigned)atomic_load(&last_math)
                                      : (unsigned)atomic_load(&last_layout);
}

static int fails(const char *function)
{
  const char *now = atomic_load(&failing);
  return now && !strcmp(now, function);
}
#define MAY_FAIL                                                                                   \
  if (fails(__func__)) return (cudnnStatus_t)atomic_load(&status)

/* ---- handles and descriptors ----------------------------------------------------------------- */

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
  CUcontext now = NULL;
  MAY_FAIL;
  if (cuCtxGetCurrent(&now) || !now) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = calloc(1, sizeof **handle);
  if (!*handle) return (cudnnStatus_t)CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  (*handle)->context = now;
  atomic_fetch_add(&living, 1);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
  atomic_fetch_sub(&living, 1);
  free(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
  MAY_FAIL;
  handle->stream = (CUstream)stream;
  return CUDNN_STATUS_SUCCESS;
}

#define DESCRIPTOR(Name, type)                                                                     \
  cudnnStatus_t cudnnCreate##Name##Descriptor(type *out)                                           \
  {                                                                                                \
    MAY_FAIL;                                                                                      \
    *out = calloc(1, sizeof **out);                                                                \
    if (!*out) return (cudnnStatus_t)CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;           \
    atomic_fetch_add(&living, 1);                                                                  \
    return CUDNN_STATUS_SUCCESS;                                                                   \
  }                                                                                                \
  cudnnStatus_t cudnnDestroy##Name##Descriptor(type d)                                             \
  {                                                                                                \
    atomic_fetch_sub(&living, 1);                                                                  \
    free(d);                                                                                       \
    return CUDNN_STATUS_SUCCESS;                                                                   \
  }
DESCRIPTOR(Tensor, cudnnTensorDescriptor_t)
DESCRIPTOR(Filter, cudnnFilterDescriptor_t)
DESCRIPTOR(Convolution, cudnnConvolutionDescriptor_t)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int dims,
                                         const int *size, const int *stride)
{
  MAY_FAIL;
  if (dims < 4 || dims > AXES + 2) return CUDNN_STATUS_BAD_PARAM;
  d->type = type;
  d->dims = dims;
  for (int i = 0; i < dims; i++) {
    if (size[i] < 1 || stride[i] < 1) return CUDNN_STATUS_BAD_PARAM;
    d->size[i] = size[i];
    d->stride[i] = stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dims, const int *size)
{
  int step = 1, last = format == CUDNN_TENSOR_NHWC;
  MAY_FAIL;
  if (dims < 4 || dims > AXES + 2) return CUDNN_STATUS_BAD_PARAM;
  if (format != CUDNN_TENSOR_NCHW && !last) return CUDNN_STATUS_NOT_SUPPORTED;
  d->as.type = type;
  d->as.dims = dims;
  memcpy(d->as.size, size, (size_t)dims * sizeof *size);
  if (last) d->as.stride[1] = 1, step = size[1];
  for (int i = dims - 1; i >= 0; i--) {
    if (last && i == 1) continue;
    d->as.stride[i] = step;
    step *= size[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int axes,
                                              const int *pad, const int *stride,
                                              const int *dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
  MAY_FAIL;
  if (axes < 2 || axes > AXES || mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_BAD_PARAM;
  for (int i = 0; i < axes; i++) {
    if (pad[i] < 0 || stride[i] < 1 || dilation[i] < 1) return CUDNN_STATUS_BAD_PARAM;
    d->pad[i] = pad[i], d->stride[i] = stride[i], d->dilation[i] = dilation[i];
  }
  d->axes = axes;
  d->groups = 1;
  d->compute = compute;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
  MAY_FAIL;
  d->groups = groups;
  return groups < 1 ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
  MAY_FAIL;
  d->math = math;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- what fits ------------------------------------------------------------------------------- */

typedef const struct cudnnTensorStruct *tensor;
typedef const struct cudnnConvolutionStruct *convolution;

static cudnnStatus_t check_fit(tensor x, tensor w, convolution c, tensor y)
{
  int ok = x->dims == c->axes + 2 && w->dims == x->dims && y->dims == x->dims;
  ok = ok && x->type == w->type && x->type == y->type && x->size[0] == y->size[0] &&
       x->size[1] == w->size[1] * c->groups && y->size[1] == w->size[0] &&
       w->size[0] % c->groups == 0;
  for (int i = 0; i < c->axes && ok; i++) {
    int covers = c->dilation[i] * (w->size[2 + i] - 1) + 1;
    int room = x->size[2 + i] + 2 * c->pad[i] - covers;
    ok = room >= 0 && y->size[2 + i] == room / c->stride[i] + 1;
  }
  if (!ok) return CUDNN_STATUS_BAD_PARAM;
  if (c->compute != (x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
    return (cudnnStatus_t)CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
  return CUDNN_STATUS_SUCCESS;
}

#define ADVICE(name, perf, a_type, b_type, c_type, x, w, y)                                        \
  cudnnStatus_t name(cudnnHandle_t handle, const a_type a, const b_type b,                         \
                     const cudnnConvolutionDescriptor_t conv, const c_type c, const int most,      \
                     int *count, perf *out)                                                        \
  {                                                                                                \
    MAY_FAIL;                                                                                      \
    cudnnStatus_t st = check_fit((tensor)(x), (tensor)(w), conv, (tensor)(y));                     \
    (void)handle;                                                                                  \
    if (st) return st;                                                                             \
    if (most < 4) return CUDNN_STATUS_BAD_PARAM;                                                   \
    memset(out, 0, 4 * sizeof *out);                                                               \
    for (int i = 0; i < 4; i++) {                                                                  \
      out[i].algo = i;                                                                             \
      out[i].status = i ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;                       \
      out[i].memory = i == 1 ? WANTED : i == 2 ? (size_t)1 << 50 : 0;                              \
      out[i].determinism = i == 1 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;                 \
      out[i].mathType = conv->math;                                                                \
    }                                                                                              \
    *count = 4;                                                                                    \
    atomic_fetch_add(&found, 1);                                                                   \
    return CUDNN_STATUS_SUCCESS;                                                                   \
  }
ADVICE(cudnnGetConvolutionForwardAlgorithm_v7, cudnnConvolutionFwdAlgoPerf_t,
       cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, a, b, c)
ADVICE(cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnConvolutionBwdDataAlgoPerf_t,
       cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, c, a, b)
ADVICE(cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnConvolutionBwdFilterAlgoPerf_t,
       cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, a, c, b)

static cudnnStatus_t room_of(int algorithm, size_t *bytes)
{
  if (algorithm < 1 || algorithm > 3) return CUDNN_STATUS_NOT_SUPPORTED;
  *bytes = algorithm == 1 ? WANTED : algorithm == 2 ? (size_t)1 << 50 : 0;
  return CUDNN_STATUS_SUCCESS;
}

#define ROOM(name, a_type, b_type, c_type, algorithm)                                              \
  cudnnStatus_t name(cudnnHandle_t handle, const a_type a, const b_type b,                         \
                     const cudnnConvolutionDescriptor_t conv, const c_type c, algorithm which,     \
                     size_t *bytes)                                                                \
  {                                                                                                \
    MAY_FAIL;                                                                                      \
    (void)handle, (void)a, (void)b, (void)conv, (void)c;                                           \
    return room_of((int)which, bytes);                                                             \
  }
ROOM(cudnnGetConvolutionForwardWorkspaceSize, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
     cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t)
ROOM(cudnnGetConvolutionBackwardDataWorkspaceSize, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
     cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t)
ROOM(cudnnGetConvolutionBackwardFilterWorkspaceSize, cudnnTensorDescriptor_t,
     cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t)

/* ---- the work -------------------------------------------------------------------------------- */

static double load_number(const void *at, cudnnDataType_t type, long i)
{
  switch ((int)type) {
  case CUDNN_DATA_HALF:
    return (double)float16_to_float(((const uint16_t *)at)[i]);
  case CUDNN_DATA_BFLOAT16:
    return (double)bfloat16_to_float(((const uint16_t *)at)[i]);
  case CUDNN_DATA_FLOAT:
    return (double)((const float *)at)[i];
  default:
    return ((const double *)at)[i];
  }
}

static void store_number(void *at, cudnnDataType_t type, long i, double v)
{
  switch ((int)type) {
  case CUDNN_DATA_HALF:
    ((uint16_t *)at)[i] = float_to_float16((float)v);
    break;
  case CUDNN_DATA_BFLOAT16:
    ((uint16_t *)at)[i] = float_to_bfloat16((float)v);
    break;
  case CUDNN_DATA_FLOAT:
    ((float *)at)[i] = (float)v;
    break;
  default:
    ((double *)at)[i] = v;
  }
}

static long elements(tensor t)
{
  long n = 1;
  for (int i = 0; i < t->dims; i++)
    n *= t->size[i];
  return n;
}

/* at[] becomes the coordinates of element i; returns its place. */
static long place_in(tensor t, long i, int *at)
{
  long where = 0;
  for (int d = t->dims - 1; d >= 0; d--) {
    at[d] = (int)(i % t->size[d]);
    i /= t->size[d];
    where += (long)at[d] * t->stride[d];
  }
  return where;
}

/* Every product x w of which an element of y is the sum, added to what the pass writes. */
static void add_products(double *sums, int writes, tensor x, const void *xs, tensor w,
                         const void *ws, convolution c, tensor y, const void *ys)
{
  int o[AXES + 2], k[AXES + 2], outs = w->size[0] / c->groups;
  long all = elements(y), window = elements(w) / w->size[0];
  for (long i = 0; i < all; i++) {
    long py = place_in(y, i, o);
    for (long j = window * o[1]; j < window * (o[1] + 1); j++) {
      long pw = place_in(w, j, k), px = 0;
      int inside = 1;
      px = (long)o[0] * x->stride[0] + (long)(o[1] / outs * w->size[1] + k[1]) * x->stride[1];
      for (int d = 0; d < c->axes && inside; d++) {
        int at = o[2 + d] * c->stride[d] - c->pad[d] + k[2 + d] * c->dilation[d];
        inside = at >= 0 && at < x->size[2 + d];
        px += (long)at * x->stride[2 + d];
      }
      if (!inside) continue;
      if (writes == 0) sums[py] += load_number(xs, x->type, px) * load_number(ws, x->type, pw);
      if (writes == 1) sums[px] += load_number(ws, x->type, pw) * load_number(ys, x->type, py);
      if (writes == 2) sums[pw] += load_number(xs, x->type, px) * load_number(ys, x->type, py);
    }
  }
}

static cudnnStatus_t convolve(cudnnHandle_t h, int writes, const void *alpha, const void *beta,
                              tensor x, const void *xs, tensor w, const void *ws, convolution c,
                              tensor y, const void *ys, int algorithm, void *room, size_t bytes)
{
  CUcontext now = NULL;
  tensor out = writes == 0 ? y : writes == 1 ? x : w;
  void *outs = (void *)(uintptr_t)(writes == 0 ? ys : writes == 1 ? xs : ws);
  size_t least = 0;
  cudnnStatus_t st = check_fit(x, w, c, y);
  if (!st) st = room_of(algorithm, &least);
  if (st) return st;
  if (cuCtxGetCurrent(&now) || now != h->context) return CUDNN_STATUS_INTERNAL_ERROR;
  if (bytes < least || (least && ((uintptr_t)room % 16 || !room))) return CUDNN_STATUS_BAD_PARAM;
  if (x->type == CUDNN_DATA_DOUBLE ? *(const double *)alpha != 1 || *(const double *)beta != 0
                                   : *(const float *)alpha != 1 || *(const float *)beta != 0)
    return CUDNN_STATUS_BAD_PARAM;
  if (x->type == CUDNN_DATA_HALF && c->math != CUDNN_TENSOR_OP_MATH) return CUDNN_STATUS_BAD_PARAM;
  if (cuStreamSynchronize(h->stream)) return CUDNN_STATUS_EXECUTION_FAILED;
  double *sums = calloc((size_t)elements(out), sizeof *sums);
  if (!sums) return (cudnnStatus_t)CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  if (least) memset(room, 0x5a, 4096);
  add_products(sums, writes, x, xs, w, ws, c, y, ys);
  for (long i = 0; i < elements(out); i++)
    store_number(outs, x->type, i, sums[i]);
  free(sums);
  atomic_store(&last_algorithm, algorithm);
  atomic_store(&last_math, (int)c->math);
  atomic_store(&last_layout, x->stride[1] == 1 && w->stride[1] == 1 && y->stride[1] == 1);
  atomic_fetch_add(&runs, 1);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x, const void *xs,
                                      const cudnnFilterDescriptor_t w, const void *ws,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *room, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t y, void *ys)
{
  MAY_FAIL;
  return convolve(handle, 0, alpha, beta, x, xs, &w->as, ws, conv, y, ys, (int)algorithm, room,
                  bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w, const void *ws,
                                           const cudnnTensorDescriptor_t y, const void *ys,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *room,
                                           size_t bytes, const void *beta,
                                           const cudnnTensorDescriptor_t x, void *xs)
{
  MAY_FAIL;
  return convolve(handle, 1, alpha, beta, x, xs, &w->as, ws, conv, y, ys, (int)algorithm, room,
                  bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x, const void *xs,
                                             const cudnnTensorDescriptor_t y, const void *ys,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *room,
                                             size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t w, void *ws)
{
  MAY_FAIL;
  return convolve(handle, 2, alpha, beta, x, xs, &w->as, ws, conv, y, ys, (int)algorithm, room,
                  bytes);
}
#endif
