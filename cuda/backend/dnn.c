/* dnn.c: convolutions by cuDNN, opened at run time.
 *
 * As cuBLAS is (blas.c): looked for by the loader, newest first, at the first convolution that is
 * worth it. Where it is missing, refuses a handle, or states of a convolution that it has nothing
 * for it (NOT_SUPPORTED), *done stays false and the engine convolves by itself. The environment's
 * WEIR_CUDNN, read at the first convolution: "off" opens nothing; "on" takes small ones to it, too,
 * and makes what is missing an error, with the reason. weir_set_blas(WEIR_BLAS_BUILTIN) is for the
 * engine's own kernels here as well.
 *
 * A call takes a handle of the device that no other call has, sets the stream, and puts it back. A
 * handle has the plans of the convolutions that it did last: descriptors, and the algorithms that
 * cuDNN's heuristics advise (cudnnGetConvolution*Algorithm_v7, torch's benchmark = False), quickest
 * first, with their workspaces. A call that has its plan makes no other call of cuDNN than the
 * convolution's. The workspace is the allocator's, had and released in the stream's order; where
 * there is no room for it, the next algorithm is taken.
 *
 * float16 and bfloat16 are summed in float32. float32 is rounded to TF32 where
 * weir_set_allow_tf32() allows that, and not at first: results are those of the engine's kernels to
 * rounding, whether cuDNN is there or not. (torch.backends.cudnn.allow_tf32 is True at first.)
 *
 * The declarations are of the few functions that are needed, as cuDNN 8 and 9 have them. This has
 * been run on the software device alone, with tests/cuda/cudnn.c in cuDNN's place, and on no GPU
 * yet.
 *
 * Words. pass: the output of a convolution, the gradient of its input, or that of its weights. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cuda/backend/launch.h"

enum { DNN_HANDLES = 8, DNN_DEVICES = 64, DNN_PLANS = 32, DNN_ALGORITHMS = 8, DNN_KEY = 23 };
enum { DNN_WORKSPACE_MOST = 1 << 30 }; /* bytes; algorithms that want more are left out */
enum { DATA_FLOAT = 0, DATA_DOUBLE = 1, DATA_HALF = 2, DATA_BFLOAT16 = 9 }; /* cudnnDataType_t */
enum { FORMAT_NCHW = 0, FORMAT_NHWC = 1 };                             /* cudnnTensorFormat_t */
enum { CROSS_CORRELATION = 1 };                                        /* cudnnConvolutionMode_t */
enum { MATH_DEFAULT = 0, MATH_TENSOR_OP = 1, MATH_FMA = 3 };           /* cudnnMathType_t */
enum { ALLOC_FAILED_8 = 2, ARCH_MISMATCH_8 = 6, NOT_SUPPORTED_8 = 9 }; /* status, cuDNN 8 */
enum { NOT_SUPPORTED = 3000, NOT_SUPPORTED_LAST = 3999 };              /* cuDNN 9 */
enum { ALLOC_FAILED_HOST = 4003, ALLOC_FAILED_DEVICE = 4004 };

/* cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t. */
typedef struct dnn_advice {
  int algorithm, status;
  float time;
  size_t workspace;
  int deterministic, math;
  int reserved[3];
} dnn_advice;

/* X(function, parameters): of cudnn. */
#define DNN_CALLS(X)                                                                               \
  X(Create, (void **handle))                                                                       \
  X(Destroy, (void *handle))                                                                       \
  X(SetStream, (void *handle, void *stream))                                                       \
  X(CreateTensorDescriptor, (void **descriptor))                                                   \
  X(DestroyTensorDescriptor, (void *descriptor))                                                   \
  X(SetTensorNdDescriptor,                                                                         \
    (void *descriptor, int type, int dims, const int *size, const int *stride))                    \
  X(CreateFilterDescriptor, (void **descriptor))                                                   \
  X(DestroyFilterDescriptor, (void *descriptor))                                                   \
  X(SetFilterNdDescriptor, (void *descriptor, int type, int format, int dims, const int *size))    \
  X(CreateConvolutionDescriptor, (void **descriptor))                                              \
  X(DestroyConvolutionDescriptor, (void *descriptor))                                              \
  X(SetConvolutionNdDescriptor, (void *descriptor, int axes, const int *pad, const int *stride,    \
                                 const int *dilation, int mode, int compute))                      \
  X(SetConvolutionGroupCount, (void *descriptor, int groups))                                      \
  X(SetConvolutionMathType, (void *descriptor, int math))

/* Of each pass; a and b are the descriptors of what it reads, c of what it writes. */
typedef struct dnn_pass {
  int (*advise)(void *handle, void *a, void *b, void *conv, void *c, int most, int *count,
                dnn_advice *out);
  int (*measure)(void *handle, void *a, void *b, void *conv, void *c, int algorithm, size_t *bytes);
  int (*run)(void *handle, const void *alpha, void *a, const void *a_data, void *b,
             const void *b_data, void *conv, int algorithm, void *room, size_t bytes,
             const void *beta, void *c, void *c_data);
} dnn_pass;

static struct {
#define DNN_MEMBER(name, parameters) int(*name) parameters;
  DNN_CALLS(DNN_MEMBER)
#undef DNN_MEMBER
  dnn_pass pass[3]; /* by enum weir_conv_pass */
} dnn;

/* What a convolution is, without its tensors. */
typedef struct dnn_plan {
  int64_t key[DNN_KEY];
  weir_convolution of; /* its tensors are of no use any more */
  bool there;
  void *x, *w, *y, *conv; /* owned descriptors */
  int count, math;        /* math: that conv has now */
  struct {
    int algorithm, math;
    size_t workspace;
  } use[DNN_ALGORITHMS];
} dnn_plan;

typedef struct dnn_handle {
  void *handle;
  int next; /* plan that is given up next */
  dnn_plan plan[DNN_PLANS];
} dnn_handle;

enum dnn_mode { DNN_AUTO, DNN_OFF, DNN_ON };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum dnn_mode mode; /* lock, as all below; once read it stays */
static bool mode_read, tried, there;
static char why[160]; /* there is none */
static struct {
  dnn_handle *of[DNN_HANDLES]; /* idle ones */
  int count, refused;          /* refused: the status that no handle can be had for; 0: none */
} pools[DNN_DEVICES];

/* ---- the library ----------------------------------------------------------------------------- */

static bool take_passes(void *library)
{
  static const char *const names[3] = {"Forward", "BackwardData", "BackwardFilter"};
  static const char *const forms[3] = {"cudnnGetConvolution%sAlgorithm_v7",
                                       "cudnnGetConvolution%sWorkspaceSize", "cudnnConvolution%s"};
  for (int i = 0; i < 9; i++) {
    char text[80];
    (void)snprintf(text, sizeof text, forms[i % 3], names[i / 3]);
    void *found = dlsym(library, text);
    dnn_pass *p = &dnn.pass[i / 3];
    if (!found) return false;
    *(i % 3 == 0   ? (void **)&p->advise
      : i % 3 == 1 ? (void **)&p->measure
                   : (void **)&p->run) = found;
  }
  return true;
}

static bool take_dnn(void *library)
{
#define DNN_ROW(name, parameters)                                                                  \
  *(void **)&dnn.name = dlsym(library, "cudnn" #name);                                             \
  if (!dnn.name) return false;
  DNN_CALLS(DNN_ROW)
#undef DNN_ROW
  return take_passes(library);
}

/* Lock held. */
static void read_mode(void)
{
  const char *text = getenv("WEIR_CUDNN");
  mode = text && !strcasecmp(text, "off")  ? DNN_OFF
         : text && !strcasecmp(text, "on") ? DNN_ON
                                           : DNN_AUTO;
  mode_read = true;
}

/* Lock held. */
static void open_dnn(void)
{
  static const char *const names[] = {"libcudnn.so.9", "libcudnn.so.8"};
  tried = true;
  (void)snprintf(why, sizeof why, "neither %s nor %s can be opened", names[0], names[1]);
  for (int i = 0; i < 2 && !there; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) continue;
    there = take_dnn(library);
    if (!there) (void)snprintf(why, sizeof why, "%s lacks a function", names[i]);
  }
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void plan_end(dnn_plan *p)
{
  if (p->x) (void)dnn.DestroyTensorDescriptor(p->x);
  if (p->y) (void)dnn.DestroyTensorDescriptor(p->y);
  if (p->w) (void)dnn.DestroyFilterDescriptor(p->w);
  if (p->conv) (void)dnn.DestroyConvolutionDescriptor(p->conv);
  *p = (dnn_plan){.there = false};
}

static int data_type(weir_dtype dtype)
{
  return dtype == WEIR_FLOAT32    ? DATA_FLOAT
         : dtype == WEIR_FLOAT64  ? DATA_DOUBLE
         : dtype == WEIR_FLOAT16  ? DATA_HALF
         : dtype == WEIR_BFLOAT16 ? DATA_BFLOAT16
                                  : -1;
}

/* Images and their channels, as they lie. */
static int describe_tensor(void *descriptor, const weir_convolution *c, int64_t planes,
                           const int64_t *size)
{
  int dims = c->axes + 2, sizes[5] = {(int)c->n, (int)planes}, strides[5], step = 1;
  for (int i = 0; i < c->axes; i++)
    sizes[2 + i] = (int)size[i];
  if (c->channels_last) strides[1] = 1, step = sizes[1];
  for (int i = dims - 1; i >= 0; i--) {
    if (c->channels_last && i == 1) continue;
    strides[i] = step;
    step *= sizes[i];
  }
  return dnn.SetTensorNdDescriptor(descriptor, data_type(c->dtype), dims, sizes, strides);
}

static int describe_weights(void *descriptor, const weir_convolution *c)
{
  int sizes[5] = {(int)(c->outs * c->groups), (int)c->channels};
  for (int i = 0; i < c->axes; i++)
    sizes[2 + i] = (int)c->kernel[i];
  return dnn.SetFilterNdDescriptor(descriptor, data_type(c->dtype),
                                   c->channels_last ? FORMAT_NHWC : FORMAT_NCHW, c->axes + 2,
                                   sizes);
}

/* As torch chooses it. */
static int first_math(const weir_convolution *c)
{
  if (c->dtype == WEIR_FLOAT16) return MATH_TENSOR_OP;
  return c->dtype == WEIR_FLOAT32 && !c->tf32 ? MATH_FMA : MATH_DEFAULT;
}

static int describe_convolution(dnn_plan *p)
{
  const weir_convolution *c = &p->of;
  int pad[3], stride[3], dilation[3];
  for (int i = 0; i < c->axes; i++) {
    pad[i] = (int)c->pad[i];
    stride[i] = (int)c->stride[i];
    dilation[i] = (int)c->dilation[i];
  }
  int r = dnn.SetConvolutionNdDescriptor(p->conv, c->axes, pad, stride, dilation, CROSS_CORRELATION,
                                         c->dtype == WEIR_FLOAT64 ? DATA_DOUBLE : DATA_FLOAT);
  if (!r) r = dnn.SetConvolutionGroupCount(p->conv, (int)c->groups);
  p->math = first_math(c);
  return r ? r : dnn.SetConvolutionMathType(p->conv, p->math);
}

static int describe_all(dnn_plan *p)
{
  const weir_convolution *c = &p->of;
  int r = dnn.CreateTensorDescriptor(&p->x);
  if (!r) r = dnn.CreateTensorDescriptor(&p->y);
  if (!r) r = dnn.CreateFilterDescriptor(&p->w);
  if (!r) r = dnn.CreateConvolutionDescriptor(&p->conv);
  if (!r) r = describe_tensor(p->x, c, c->groups * c->channels, c->size);
  if (!r) r = describe_tensor(p->y, c, c->groups * c->outs, c->result);
  if (!r) r = describe_weights(p->w, c);
  return r ? r : describe_convolution(p);
}

/* The descriptors in a pass's order; data: the tensors', likewise. */
static void in_order(const dnn_plan *p, const weir_convolution *c, void *descriptor[3],
                     void *data[3])
{
  bool forward = c->pass == WEIR_CONV_FORWARD, input = c->pass == WEIR_CONV_BACKWARD_INPUT;
  descriptor[0] = input ? p->w : p->x, data[0] = input ? c->w : c->x;
  descriptor[1] = forward ? p->w : p->y, data[1] = forward ? c->w : c->y;
  descriptor[2] = forward ? p->y : input ? p->x : p->w;
  data[2] = forward ? c->y : input ? c->x : c->w;
}

static int set_math(dnn_plan *p, int math)
{
  int r = p->math == math ? 0 : dnn.SetConvolutionMathType(p->conv, math);
  if (!r) p->math = math;
  return r;
}

/* The algorithms that may be used, in cuDNN's order. */
static int choose_algorithm(void *h, dnn_plan *p)
{
  dnn_advice advice[DNN_ALGORITHMS];
  void *d[3], *data[3];
  int count = 0;
  in_order(p, &p->of, d, data);
  const dnn_pass *pass = &dnn.pass[p->of.pass];
  int r = pass->advise(h, d[0], d[1], p->conv, d[2], DNN_ALGORITHMS, &count, advice);
  for (int i = 0; i < count && !r; i++) {
    size_t bytes = 0;
    int math = first_math(&p->of) == MATH_FMA ? MATH_FMA : advice[i].math;
    if (advice[i].status || (p->of.deterministic && !advice[i].deterministic)) continue;
    if (set_math(p, math) ||
        pass->measure(h, d[0], d[1], p->conv, d[2], advice[i].algorithm, &bytes))
      continue;
    if (bytes > DNN_WORKSPACE_MOST) continue;
    p->use[p->count].algorithm = advice[i].algorithm;
    p->use[p->count].math = math;
    p->use[p->count++].workspace = bytes;
  }
  return r || p->count ? r : NOT_SUPPORTED;
}

/* All that a plan depends on. */
static void key_of_convolution(int64_t key[DNN_KEY], const weir_convolution *c)
{
  const int64_t *const triples[] = {c->size, c->kernel, c->result, c->stride, c->pad, c->dilation};
  int64_t flags = c->channels_last | c->tf32 << 1 | c->deterministic << 2;
  key[0] = flags | (int64_t)c->axes << 8 | (int64_t)c->pass << 16 | (int64_t)c->dtype << 24;
  key[1] = c->n, key[2] = c->groups, key[3] = c->channels, key[4] = c->outs;
  for (int i = 0; i < 6; i++)
    memcpy(&key[5 + 3 * i], triples[i], 3 * sizeof *key);
}

/* The handle's plan for c; NULL: *refused is cuDNN's status. Within the context. */
static dnn_plan *plan_of(dnn_handle *h, const weir_convolution *c, int *refused)
{
  int64_t key[DNN_KEY];
  key_of_convolution(key, c);
  for (int i = 0; i < DNN_PLANS; i++)
    if (h->plan[i].there && !memcmp(h->plan[i].key, key, sizeof key)) return &h->plan[i];
  dnn_plan *p = &h->plan[h->next];
  h->next = (h->next + 1) % DNN_PLANS;
  plan_end(p);
  memcpy(p->key, key, sizeof key);
  p->of = *c;
  *refused = describe_all(p);
  if (!*refused) *refused = choose_algorithm(h->handle, p);
  p->there = !*refused;
  if (*refused) plan_end(p);
  return *refused ? NULL : p;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* All but h's own memory. Within the context. */
static void dnn_destroy(dnn_handle *h)
{
  for (int i = 0; i < DNN_PLANS; i++)
    plan_end(&h->plan[i]);
  (void)dnn.Destroy(h->handle);
}

static bool is_full(int status)
{
  return status == ALLOC_FAILED_8 || status == ALLOC_FAILED_HOST || status == ALLOC_FAILED_DEVICE;
}

static bool is_unsupported(int status)
{
  return status == NOT_SUPPORTED_8 || status == ARCH_MISMATCH_8 ||
         (status >= NOT_SUPPORTED && status <= NOT_SUPPORTED_LAST);
}

/* Whether a handle that was refused is refused for good. Within the context. */
static bool for_good(int refused, void *stream)
{
  CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
  if (is_full(refused)) return false;
  return !weir_cuda.cuStreamIsCapturing(stream, &now) && now == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Within the context, the library being there. NULL: *refused is why. */
static dnn_handle *dnn_take(int device, void *stream, int *refused)
{
  dnn_handle *h = NULL;
  pthread_mutex_lock(&lock);
  *refused = pools[device].refused;
  if (!*refused && pools[device].count) h = pools[device].of[--pools[device].count];
  pthread_mutex_unlock(&lock);
  if (h || *refused) return h;
  *refused = ALLOC_FAILED_HOST;
  if (!(h = calloc(1, sizeof *h))) return NULL;
  *refused = dnn.Create(&h->handle);
  if (!*refused) return h;
  free(h);
  if (for_good(*refused, stream)) {
    pthread_mutex_lock(&lock);
    pools[device].refused = *refused;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void dnn_give(const cuda_device_state *d, dnn_handle *h)
{
  CUresult r;
  int device = d->index;
  pthread_mutex_lock(&lock);
  bool full = pools[device].count == DNN_HANDLES;
  if (!full) pools[device].of[pools[device].count++] = h;
  pthread_mutex_unlock(&lock);
  if (!full) return;
  WEIR_CUDA_WITHIN(d, r, (dnn_destroy(h), CUDA_SUCCESS));
  (void)r;
  free(h);
}

/* The device's context ends. */
void cuda_dnn_close(const cuda_device_state *d)
{
  CUresult r;
  pthread_mutex_lock(&lock);
  while (pools[d->index].count) {
    dnn_handle *h = pools[d->index].of[--pools[d->index].count];
    WEIR_CUDA_WITHIN(d, r, (dnn_destroy(h), CUDA_SUCCESS));
    (void)r;
    free(h);
  }
  pools[d->index].refused = 0;
  pthread_mutex_unlock(&lock);
}

/* ---- a convolution --------------------------------------------------------------------------- */

/* Sizes are 32 bits in cuDNN; images of more than 2^31 elements it takes in parts, which are not
 * asked for here. */
static bool fits_dnn(const weir_convolution *c)
{
  int64_t in = c->n, out = c->n, weights = c->outs;
  bool good = data_type(c->dtype) >= 0 && c->axes >= 2 && c->axes <= 3;
  good = good && !__builtin_mul_overflow(in, c->groups * c->channels, &in) &&
         !__builtin_mul_overflow(out, c->groups * c->outs, &out) &&
         !__builtin_mul_overflow(weights, c->groups * c->channels, &weights);
  for (int i = 0; i < c->axes && good; i++)
    good = !__builtin_mul_overflow(in, c->size[i], &in) &&
           !__builtin_mul_overflow(out, c->result[i], &out) &&
           !__builtin_mul_overflow(weights, c->kernel[i], &weights) && c->pad[i] <= INT_MAX &&
           c->stride[i] <= INT_MAX && c->dilation[i] <= INT_MAX;
  return good && in > 0 && out > 0 && weights > 0 && in <= INT_MAX && out <= INT_MAX &&
         weights <= INT_MAX;
}

/* Products of two elements that a pass adds up. */
static double work_of(const weir_convolution *c)
{
  double work = (double)c->n * (double)c->groups * (double)c->outs * (double)c->channels;
  for (int i = 0; i < c->axes; i++)
    work *= (double)c->result[i] * (double)c->kernel[i];
  return work;
}

bool cuda_convolves(void *self, const weir_convolution *c)
{
  const cuda_device_state *d = self;
  bool small = work_of(c) < 0x1p20;
  if (c->blas == WEIR_BLAS_BUILTIN || !fits_dnn(c)) return false;
  pthread_mutex_lock(&lock);
  if (!mode_read) read_mode();
  bool wanted = mode == DNN_ON || (mode == DNN_AUTO && !small);
  if (wanted && !tried) open_dnn();
  bool can = wanted && (mode == DNN_ON || (there && !pools[d->index].refused));
  pthread_mutex_unlock(&lock);
  return can;
}

static weir_status dnn_missing(const cuda_device_state *d, int refused)
{
  if (refused)
    return cuda_unsupported("convolution: cuDNN was asked for (WEIR_CUDNN=on), and cudnnCreate "
                            "failed on cuda:%d: status %d",
                            d->index, refused);
  return cuda_unsupported("convolution: cuDNN was asked for (WEIR_CUDNN=on), and %s", why);
}

/* By one of the plan's algorithms. Within the context. */
static int run_algorithm(dnn_handle *h, dnn_plan *p, const weir_convolution *c, void *stream, int i,
                         void *room)
{
  static const union {
    float f;
    double d;
  } ones[2] = {{.f = 1}, {.d = 1}}, zeros[2] = {{.f = 0}, {.d = 0}};
  int wide = c->dtype == WEIR_FLOAT64;
  void *d[3], *data[3];
  in_order(p, c, d, data);
  int r = dnn.SetStream(h->handle, stream);
  if (!r) r = set_math(p, p->use[i].math);
  if (r) return r;
  return dnn.pass[c->pass].run(h->handle, &ones[wide], d[0], data[0], d[1], data[1], p->conv,
                               p->use[i].algorithm, room, p->use[i].workspace, &zeros[wide], d[2],
                               data[2]);
}

/* *failed: cuDNN's status of the algorithm that was tried last, 0: it was done. */
static weir_status run_plan(cuda_device_state *d, void *stream, dnn_handle *h, dnn_plan *p,
                            const weir_convolution *c, int *failed)
{
  weir_status st = WEIR_OK;
  *failed = NOT_SUPPORTED;
  for (int i = 0; i < p->count; i++) {
    void *room = NULL;
    CUresult r = CUDA_SUCCESS;
    size_t bytes = p->use[i].workspace;
    st = bytes ? cuda_core_calls->allocate(&room, bytes, d->index, stream) : WEIR_OK;
    if (st == WEIR_ENOMEM || st == WEIR_EOOM) continue;
    if (st) return st;
    WEIR_CUDA_SEEN(d, r, (*failed = run_algorithm(h, p, c, stream, i, room), CUDA_SUCCESS));
    if (room) st = cuda_core_calls->release(room);
    if (r) return driver_fail(r, "convolution: entering cuda:%d", d->index);
    if (st || (!is_unsupported(*failed) && !is_full(*failed))) return st;
  }
  return st;
}

/* What is left where cuDNN has not done it: the engine's own, or an error. */
static weir_status without_dnn(const cuda_device_state *d, int status)
{
  if (mode != DNN_ON) return WEIR_OK;
  return cuda_unsupported("convolution: cuDNN was asked for (WEIR_CUDNN=on), and cannot do this "
                          "one on cuda:%d: status %d",
                          d->index, status);
}

weir_status cuda_convolve(void *self, void *stream, const weir_convolution *c, bool *done)
{
  cuda_device_state *d = self;
  dnn_handle *h = NULL;
  dnn_plan *p = NULL;
  int refused = 0, failed = 0;
  CUresult r;
  *done = false;
  if (!there) return dnn_missing(d, 0);
  WEIR_CUDA_WITHIN(d, r, (h = dnn_take(d->index, stream, &refused), CUDA_SUCCESS));
  if (r) return driver_fail(r, "convolution: entering cuda:%d", d->index);
  if (!h) return mode == DNN_ON ? dnn_missing(d, refused) : WEIR_OK;
  WEIR_CUDA_WITHIN(d, r, (p = plan_of(h, c, &refused), CUDA_SUCCESS));
  weir_status st = WEIR_OK;
  if (r) st = driver_fail(r, "convolution: entering cuda:%d", d->index);
  if (p) st = run_plan(d, stream, h, p, c, &failed);
  dnn_give(d, h);
  if (!r && !p) return without_dnn(d, refused);
  if (st == WEIR_ENOMEM || st == WEIR_EOOM) return mode == DNN_ON ? st : WEIR_OK;
  if (st) return st;
  if (is_unsupported(failed) || is_full(failed)) return without_dnn(d, failed);
  *done = true;
  if (failed)
    return cuda_fail_as(WEIR_ECUDA, "convolution: cuDNN failed on cuda:%d: status %d", d->index,
                        failed);
  return WEIR_OK;
}
