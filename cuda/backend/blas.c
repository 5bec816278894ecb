/* blas.c: products of matrices by cuBLAS, opened at run time.
 *
 * The library is looked for at the first product that is worth it, for it takes a second and some
 * hundred MiB: by the loader, newest first. Where it is missing, or refuses a handle for a device
 * (a driver that is too old for it, a driver that is not NVIDIA's), products are the engine's own;
 * so is one that it states the device cannot do (CUBLAS_STATUS_NOT_SUPPORTED, ARCH_MISMATCH), of
 * which it has enqueued nothing. Who asked for cuBLAS (WEIR_BLAS_VENDOR) gets the reason as an
 * error. A handle that cannot be had now may be had later: the device has no memory left, or a
 * capture is underway, in which what making one takes may be forbidden (pytorch issue 99397).
 *
 * A call takes a handle of the device that no other call has, sets stream and workspace, and puts
 * it back. The workspace is the allocator's, had and given back in the stream's order: so calls in
 * several streams share none, a captured call's is its graph's, and results are the same bits every
 * time. Matrices here are row by row, cuBLAS's column by column: it is asked for C's transpose.
 *
 * The declarations are of the few functions that are needed (cuBLAS Library, v2 API; CUDA 12, 13).
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include "cuda/backend/launch.h"

enum { HANDLES = 16, BLAS_DEVICES = 64 };
enum { OP_N, OP_T };                                              /* cublasOperation_t */
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, R_16BF = 14 }; /* cudaDataType */
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_TF32 = 77 };   /* cublasComputeType_t */
enum { MATH_DEFAULT = 0, MATH_TF32 = 3, MATH_FULL_SUMS = 16 };    /* cublasMath_t */
enum { GEMM_DEFAULT = -1 };                                       /* cublasGemmAlgo_t */
enum { ALLOC_FAILED = 3, ARCH_MISMATCH = 8, NOT_SUPPORTED = 15 }; /* cublasStatus_t */

/* X(function, its version's suffix, parameters). */
#define BLAS_CALLS(X)                                                                              \
  X(Create, "cublasCreate_v2", (void **handle))                                                    \
  X(Destroy, "cublasDestroy_v2", (void *handle))                                                   \
  X(SetStream, "cublasSetStream_v2", (void *handle, void *stream))                                 \
  X(SetWorkspace, "cublasSetWorkspace_v2", (void *handle, void *workspace, size_t bytes))          \
  X(SetMathMode, "cublasSetMathMode", (void *handle, int mode))                                    \
  X(GemmStridedBatchedEx, "cublasGemmStridedBatchedEx",                                            \
    (void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *a,  \
     int atype, int lda, long long stepa, const void *b, int btype, int ldb, long long stepb,      \
     const void *beta, void *c, int ctype, int ldc, long long stepc, int batch, int compute,       \
     int algorithm))                                                                               \
  X(Strsm, "cublasStrsm_v2",                                                                       \
    (void *handle, int side, int triangle, int turned, int unit, int m, int n, const void *alpha,  \
     const void *a, int lda, void *b, int ldb))                                                    \
  X(Dtrsm, "cublasDtrsm_v2",                                                                       \
    (void *handle, int side, int triangle, int turned, int unit, int m, int n, const void *alpha,  \
     const void *a, int lda, void *b, int ldb))

static struct {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
  BLAS_CALLS(MEMBER)
#undef MEMBER
} blas;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried, there; /* lock, as all below */
static char why[160];     /* there is none */
static struct {
  void *handle[HANDLES]; /* idle ones */
  int count, refused;    /* refused: cublasStatus_t that no handle can be had for; 0: none */
} pools[BLAS_DEVICES];

static bool take_entries(void *library)
{
#define ROW(name, symbol, parameters)                                                              \
  *(void **)&blas.name = dlsym(library, symbol);                                                   \
  if (!blas.name) return false;
  BLAS_CALLS(ROW)
#undef ROW
  return true;
}

/* Lock held. */
static void open_blas(void)
{
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
  tried = true;
  (void)snprintf(why, sizeof why, "neither %s nor %s can be opened", names[0], names[1]);
  for (int i = 0; i < 2 && !there; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) continue;
    there = take_entries(library);
    if (!there) (void)snprintf(why, sizeof why, "%s lacks a function", names[i]);
  }
}

/* ---- handles --------------------------------------------------------------------------------- */

/* Whether a handle that was refused is refused for good. Within the context. */
static bool for_good(int refused, void *stream)
{
  CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
  if (refused == ALLOC_FAILED) return false;
  return !weir_cuda.cuStreamIsCapturing(stream, &now) && now == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Within the context. NULL: none is to be had, and *refused, 0: `why`, gives the reason. */
static void *handle_take(int device, void *stream, int *refused)
{
  void *h = NULL;
  pthread_mutex_lock(&lock);
  if (!tried) open_blas();
  bool can = there && !pools[device].refused;
  if (can && pools[device].count) h = pools[device].handle[--pools[device].count];
  *refused = pools[device].refused;
  pthread_mutex_unlock(&lock);
  if (h || !can) return h;
  *refused = blas.Create(&h);
  if (!*refused) return h;
  if (for_good(*refused, stream)) {
    pthread_mutex_lock(&lock);
    pools[device].refused = *refused;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void handle_give(int device, void *h)
{
  pthread_mutex_lock(&lock);
  bool full = pools[device].count == HANDLES;
  if (!full) pools[device].handle[pools[device].count++] = h;
  pthread_mutex_unlock(&lock);
  if (full) (void)blas.Destroy(h);
}

/* The device's context ends. */
void cuda_blas_close(const cuda_device_state *d)
{
  CUresult r;
  pthread_mutex_lock(&lock);
  while (pools[d->index].count) {
    void *h = pools[d->index].handle[--pools[d->index].count];
    WEIR_CUDA_WITHIN(d, r, (CUresult)blas.Destroy(h));
    (void)r;
  }
  pools[d->index].refused = 0;
  pthread_mutex_unlock(&lock);
}

/* ---- a product ------------------------------------------------------------------------------- */

typedef union factor {
  float f[2];
  double d;
} factor;

static factor factor_of(weir_dtype dtype, double x)
{
  return dtype == WEIR_FLOAT64 ? (factor){.d = x} : (factor){.f = {(float)x, 0}};
}

static int type_of(weir_dtype dtype)
{
  return dtype == WEIR_FLOAT16     ? R_16F
         : dtype == WEIR_BFLOAT16  ? R_16BF
         : dtype == WEIR_FLOAT32   ? R_32F
         : dtype == WEIR_FLOAT64   ? R_64F
         : dtype == WEIR_COMPLEX64 ? C_32F
                                   : -1;
}

static int blas_mode_of(const weir_gemm *g)
{
  bool half = g->dtype == WEIR_FLOAT16 || g->dtype == WEIR_BFLOAT16;
  if (half) return g->reduced_precision ? MATH_DEFAULT : MATH_FULL_SUMS;
  return g->tf32 && g->dtype == WEIR_FLOAT32 ? MATH_TF32 : MATH_DEFAULT;
}

static int multiply_by_blas(void *h, const weir_gemm *g)
{
  factor alpha = factor_of(g->dtype, g->alpha), beta = factor_of(g->dtype, g->beta);
  int type = type_of(g->dtype), compute = g->dtype == WEIR_FLOAT64 ? COMPUTE_64F : COMPUTE_32F;
  if (g->tf32 && g->dtype == WEIR_FLOAT32) compute = COMPUTE_TF32;
  return blas.GemmStridedBatchedEx(h, g->transb ? OP_T : OP_N, g->transa ? OP_T : OP_N, (int)g->n,
                                   (int)g->m, (int)g->k, &alpha, g->b, type, (int)g->ldb, g->stepb,
                                   g->a, type, (int)g->lda, g->stepa, &beta, g->c, type,
                                   (int)g->ldc, g->stepc, (int)g->batch, compute, GEMM_DEFAULT);
}

/* Within the context. */
static int with_handle(void *h, void *stream, const weir_gemm *g, void *room, size_t bytes)
{
  int r = blas.SetStream(h, stream);
  if (!r) r = blas.SetWorkspace(h, room, bytes);
  if (!r) r = blas.SetMathMode(h, blas_mode_of(g));
  return r ? r : multiply_by_blas(h, g);
}

static bool fits_blas(const weir_gemm *g)
{
  const int64_t sizes[] = {g->m, g->n, g->k, g->batch, g->lda, g->ldb, g->ldc};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] > INT_MAX || sizes[i] < 1) return false;
  return type_of(g->dtype) >= 0;
}

/* NVIDIA advises 32 MiB from compute capability 9.0 on, and 4 MiB before. */
static size_t workspace_of(const cuda_device_state *d)
{
  int major = 0;
  (void)weir_cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                       d->device);
  return (size_t)(major >= 9 ? 32 : 4) << 20;
}

static weir_status missing(const cuda_device_state *d, int refused)
{
  if (refused)
    return cuda_unsupported(
        "matmul: cuBLAS was asked for, and cublasCreate failed on cuda:%d: status %d", d->index,
        refused);
  return cuda_unsupported("matmul: cuBLAS was asked for, and %s", why);
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* Within the context. */
static int solve_triangles(void *h, void *stream, const weir_factor *f, void *room, size_t bytes)
{
  factor one = factor_of(f->dtype, 1);
  bool narrow = f->dtype == WEIR_FLOAT32;
  int64_t size = narrow ? (int64_t)sizeof(float) : (int64_t)sizeof(double);
  int n = (int)f->n, k = (int)f->k, r = blas.SetStream(h, stream);
  if (!r) r = blas.SetWorkspace(h, room, bytes);
  if (!r) r = blas.SetMathMode(h, MATH_DEFAULT);
  for (int64_t i = 0; i < f->batch && !r; i++)
    r = (narrow ? blas.Strsm : blas.Dtrsm)(h, 0, f->upper, OP_N, f->unit, n, k, &one,
                                           (const char *)f->a + i * f->n * f->n * size, n,
                                           (char *)f->b + i * f->n * f->k * size, n);
  return r;
}

/* WEIR_FACTOR_TRIANGULAR, whatever products are done by. */
weir_status cuda_blas_triangles(cuda_device_state *d, void *stream, const weir_factor *f)
{
  void *h = NULL, *room = NULL;
  int refused = 0, failed = 0;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, (h = handle_take(d->index, stream, &refused), CUDA_SUCCESS));
  if (r) return driver_fail(r, "solve_triangular: entering cuda:%d", d->index);
  if (!h && refused)
    return cuda_unsupported("triangles on CUDA devices are solved by cuBLAS, and cublasCreate "
                            "failed on cuda:%d: status %d",
                            d->index, refused);
  if (!h) return cuda_unsupported("triangles on CUDA devices are solved by cuBLAS, and %s", why);
  size_t bytes = workspace_of(d);
  weir_status st = cuda_core_calls->allocate(&room, bytes, d->index, stream);
  if (!st) {
    WEIR_CUDA_SEEN(d, r, (failed = solve_triangles(h, stream, f, room, bytes), CUDA_SUCCESS));
    st = cuda_core_calls->release(room);
  }
  handle_give(d->index, h);
  if (r) return driver_fail(r, "solve_triangular: entering cuda:%d", d->index);
  if (failed)
    return cuda_fail_as(WEIR_ECUDA, "solve_triangular: cuBLAS failed on cuda:%d: status %d",
                        d->index, failed);
  return st;
}

/* *done false: it is for the engine's own kernels. */
weir_status cuda_blas(cuda_device_state *d, void *stream, const weir_gemm *g, bool *done)
{
  bool asked = g->blas == WEIR_BLAS_VENDOR;
  double work = (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
  *done = false;
  if (g->blas == WEIR_BLAS_BUILTIN || !fits_blas(g) || (!asked && work < 0x1p20)) return WEIR_OK;
  void *h = NULL, *room = NULL;
  int refused = 0, failed = 0;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, (h = handle_take(d->index, stream, &refused), CUDA_SUCCESS));
  if (r) return driver_fail(r, "matmul: entering cuda:%d", d->index);
  if (!h) return asked ? missing(d, refused) : WEIR_OK;
  size_t bytes = workspace_of(d);
  weir_status st = cuda_core_calls->allocate(&room, bytes, d->index, stream), given_back = WEIR_OK;
  if (!st) {
    WEIR_CUDA_SEEN(d, r, (failed = with_handle(h, stream, g, room, bytes), CUDA_SUCCESS));
    given_back = cuda_core_calls->release(room);
  }
  handle_give(d->index, h);
  if (st) return asked ? st : WEIR_OK; /* no room: the engine's own kernels need none */
  if (r) return driver_fail(r, "matmul: entering cuda:%d", d->index);
  if (!asked && (failed == NOT_SUPPORTED || failed == ARCH_MISMATCH)) return given_back;
  *done = true;
  if (failed)
    return cuda_fail_as(WEIR_ECUDA, "matmul: cublasGemmStridedBatchedEx on cuda:%d: status %d",
                        d->index, failed);
  return given_back;
}
