/* cublas.c: a cuBLAS for the software device, which NVIDIA's refuses: the functions that the engine
 * calls, by NVIDIA's own declarations. Its soname is libcublas.so.13's, so that who has opened it
 * has it found under that name.
 *
 * It is as strict as the documentation of cuBLAS: a context, leading dimensions of at least the
 * stored rows, a workspace that is aligned and was set after the stream (setting the stream takes
 * it away), matrices of one dtype and the compute type that goes with it. It waits for the stream
 * and then calculates on the host: not for captures. */
typedef int there_may_be_nothing;

#if __has_include(<cublas_v2.h>)
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include "core/backend/half.h"

struct cublasContext {
  CUcontext context;
  CUstream stream;
  void *workspace; /* NULL: not set since the stream was */
  cublasMath_t mode;
};

static _Atomic int create_status, gemm_status; /* what the next calls answer; 0: they work */
static _Atomic unsigned multiplied;

/* For the test: what creating a handle and multiplying answer from now on; products so far. */
void strict_cublas_answer(int create, int gemm);
unsigned strict_cublas_products(void);
void strict_cublas_answer(int create, int gemm)
{
  atomic_store(&create_status, create);
  atomic_store(&gemm_status, gemm);
}

unsigned strict_cublas_products(void)
{
  return atomic_load(&multiplied);
}

/* ---- handles --------------------------------------------------------------------------------- */

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
  CUcontext now = NULL;
  if (atomic_load(&create_status)) return (cublasStatus_t)atomic_load(&create_status);
  if (cuCtxGetCurrent(&now) || !now) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = calloc(1, sizeof **handle);
  if (!*handle) return CUBLAS_STATUS_ALLOC_FAILED;
  (*handle)->context = now;
  (*handle)->mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
  handle->stream = (CUstream)stream;
  handle->workspace = NULL;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
  if ((uintptr_t)workspace % 256 || bytes < 4 << 20) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct value {
  double real, imaginary;
} value;

static value load_matrix_value(const void *at, cudaDataType type, long long i)
{
  switch ((int)type) {
  case CUDA_R_16F:
    return (value){(double)float16_to_float(((const uint16_t *)at)[i]), 0};
  case CUDA_R_16BF:
    return (value){(double)bfloat16_to_float(((const uint16_t *)at)[i]), 0};
  case CUDA_R_32F:
    return (value){(double)((const float *)at)[i], 0};
  case CUDA_C_32F:
    return (value){(double)((const float *)at)[2 * i], (double)((const float *)at)[2 * i + 1]};
  default:
    return (value){((const double *)at)[i], 0};
  }
}

static void store_matrix_value(void *at, cudaDataType type, long long i, value v)
{
  switch ((int)type) {
  case CUDA_R_16F:
    ((uint16_t *)at)[i] = float_to_float16((float)v.real);
    break;
  case CUDA_R_16BF:
    ((uint16_t *)at)[i] = float_to_bfloat16((float)v.real);
    break;
  case CUDA_C_32F:
    ((float *)at)[2 * i + 1] = (float)v.imaginary;
    ((float *)at)[2 * i] = (float)v.real;
    break;
  case CUDA_R_32F:
    ((float *)at)[i] = (float)v.real;
    break;
  default:
    ((double *)at)[i] = v.real;
  }
}

static void add_product(value *sum, value a, value b)
{
  sum->real += a.real * b.real - a.imaginary * b.imaginary;
  sum->imaginary += a.real * b.imaginary + a.imaginary * b.real;
}

/* The type of alpha and beta, and what is multiplied in; false: no such combination. */
static int compute_fits(cudaDataType type, cublasComputeType_t compute, cudaDataType *scale)
{
  *scale = type == CUDA_R_64F || type == CUDA_C_32F ? type : CUDA_R_32F;
  if (type == CUDA_R_64F) return compute == CUBLAS_COMPUTE_64F;
  if (type == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F_FAST_TF32) return 1;
  return compute == CUBLAS_COMPUTE_32F &&
         (type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_C_32F);
}

static int at_least(int ld, int rows)
{
  return ld >= (rows > 1 ? rows : 1);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType atype, int lda, long long stepa, const void *b,
    cudaDataType btype, int ldb, long long stepb, const void *beta, void *c, cudaDataType ctype,
    int ldc, long long stepc, int batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
  CUcontext now = NULL;
  cudaDataType scale;
  int ta = transa != CUBLAS_OP_N, tb = transb != CUBLAS_OP_N;
  if (atomic_load(&gemm_status)) return (cublasStatus_t)atomic_load(&gemm_status);
  if (cuCtxGetCurrent(&now) || now != handle->context) return CUBLAS_STATUS_INTERNAL_ERROR;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || !at_least(lda, ta ? k : m) ||
      !at_least(ldb, tb ? n : k) || !at_least(ldc, m) || algorithm != CUBLAS_GEMM_DEFAULT)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (atype != btype || atype != ctype || !compute_fits(atype, compute, &scale))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!handle->workspace || cuStreamSynchronize(handle->stream))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  value by = load_matrix_value(alpha, scale, 0), keep = load_matrix_value(beta, scale, 0);
  for (long long z = 0; z < batch; z++)
    for (long long i = 0; i < m; i++)
      for (long long j = 0; j < n; j++) {
        value sum = {0, 0}, out = {0, 0};
        for (long long l = 0; l < k; l++)
          add_product(&sum,
                      load_matrix_value(a, atype, z * stepa + (ta ? i * lda + l : l * lda + i)),
                      load_matrix_value(b, btype, z * stepb + (tb ? l * ldb + j : j * ldb + l)));
        add_product(&out, by, sum);
        if (keep.real != 0 || keep.imaginary != 0)
          add_product(&out, keep, load_matrix_value(c, ctype, z * stepc + j * ldc + i));
        store_matrix_value(c, ctype, z * stepc + j * ldc + i, out);
      }
  atomic_fetch_add(&multiplied, 1);
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- triangles ------------------------------------------------------------------------------- */

static cublasStatus_t solve_triangle(cublasHandle_t handle, int upper, int unit, int m, int n,
                                     cudaDataType type, const void *alpha, const void *a, int lda,
                                     void *b, int ldb)
{
  CUcontext now = NULL;
  if (cuCtxGetCurrent(&now) || now != handle->context) return CUBLAS_STATUS_INTERNAL_ERROR;
  if (!at_least(lda, m) || !at_least(ldb, m) || load_matrix_value(alpha, type, 0).real != 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!handle->workspace || cuStreamSynchronize(handle->stream))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int j = 0; j < n; j++)
    for (int step = 0; step < m; step++) {
      int i = upper ? m - 1 - step : step;
      value x = load_matrix_value(b, type, (long long)j * ldb + i);
      for (int k = upper ? i + 1 : 0; k < (upper ? m : i); k++)
        x.real -= load_matrix_value(a, type, (long long)k * lda + i).real *
                  load_matrix_value(b, type, (long long)j * ldb + k).real;
      if (!unit) x.real /= load_matrix_value(a, type, (long long)i * lda + i).real;
      store_matrix_value(b, type, (long long)j * ldb + i, x);
    }
  return CUBLAS_STATUS_SUCCESS;
}

#define TRSM(letter, type, data)                                                                   \
  cublasStatus_t cublas##letter##trsm_v2(                                                          \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t triangle,                     \
      cublasOperation_t turned, cublasDiagType_t diagonal, int m, int n, const type *alpha,        \
      const type *a, int lda, type *b, int ldb)                                                    \
  {                                                                                                \
    if (side != CUBLAS_SIDE_LEFT || turned != CUBLAS_OP_N) return CUBLAS_STATUS_INVALID_VALUE;     \
    return solve_triangle(handle, triangle == CUBLAS_FILL_MODE_UPPER,                              \
                          diagonal == CUBLAS_DIAG_UNIT, m, n, data, alpha, a, lda, b, ldb);        \
  }
TRSM(S, float, CUDA_R_32F)
TRSM(D, double, CUDA_R_64F)
#endif
