/* cusolver.c: a cuSOLVER for the software device, which NVIDIA's refuses: the functions that the
 * engine calls, by NVIDIA's own declarations. Its soname is libcusolver.so.12's, so that who has
 * opened it has it found under that name.
 *
 * It is as strict as the documentation: a context, a stream, leading dimensions of at least the
 * rows, parameters, room of at least the size that was said, on the device and on the host, one
 * data type. It waits for the stream and then calculates on the host, by the plainest
 * algorithms, none of which is the engine's: elimination by rows, reflections of whole matrices,
 * Jacobi's rotations. */
typedef int there_may_be_no_solver;

#if __has_include(<cusolverDn.h>)
#pragma GCC visibility push(default)
#include <cuda.h>
#include <cusolverDn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1000, HOST_ROOM = 24 }; /* bytes that it says it wants */

struct cusolverDnContext {
  CUcontext context;
  CUstream stream;
};

struct cusolverDnParams {
  int made;
};

static _Atomic int create_status; /* what the next call answers; 0: it works */
static _Atomic unsigned factorised;

/* For the test: what creating a handle answers from now on; factorisations so far. */
void strict_cusolver_answer(int create);
unsigned strict_cusolver_calls(void);
void strict_cusolver_answer(int create)
{
  atomic_store(&create_status, create);
}

unsigned strict_cusolver_calls(void)
{
  return atomic_load(&factorised);
}

/* ---- handles --------------------------------------------------------------------------------- */

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
  CUcontext now = NULL;
  if (atomic_load(&create_status)) return (cusolverStatus_t)atomic_load(&create_status);
  if (cuCtxGetCurrent(&now) || !now) return CUSOLVER_STATUS_NOT_INITIALIZED;
  *handle = calloc(1, sizeof **handle);
  if (!*handle) return CUSOLVER_STATUS_ALLOC_FAILED;
  (*handle)->context = now;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
  free(handle);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
  handle->stream = (CUstream)stream;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params)
{
  *params = calloc(1, sizeof **params);
  if (!*params) return CUSOLVER_STATUS_ALLOC_FAILED;
  (*params)->made = 1;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t params)
{
  free(params);
  return CUSOLVER_STATUS_SUCCESS;
}

static int real_type(cudaDataType t)
{
  return t == CUDA_R_32F || t == CUDA_R_64F;
}

/* What all of them look at first. */
static cusolverStatus_t begin(cusolverDnHandle_t handle, cusolverDnParams_t params, cudaDataType t,
                              cudaDataType compute, int leads)
{
  CUcontext now = NULL;
  if (!params || params->made != 1) return CUSOLVER_STATUS_INVALID_VALUE;
  if (cuCtxGetCurrent(&now) || now != handle->context) return CUSOLVER_STATUS_INTERNAL_ERROR;
  if (!real_type(t) || t != compute || !leads) return CUSOLVER_STATUS_INVALID_VALUE;
  return cuStreamSynchronize(handle->stream) ? CUSOLVER_STATUS_EXECUTION_FAILED
                                             : CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t size_said(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cudaDataType t, cudaDataType compute, int leads, size_t *room,
                                  size_t *host)
{
  cusolverStatus_t st = begin(handle, params, t, compute, leads);
  *room = ROOM, *host = HOST_ROOM;
  return st;
}

/* Also whether there is the room that was said; it is written over. */
static cusolverStatus_t begin_in_room(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                      cudaDataType t, cudaDataType compute, int leads, void *room,
                                      size_t bytes, void *host, size_t host_bytes)
{
  if (!room || bytes < ROOM || !host || host_bytes < HOST_ROOM)
    return CUSOLVER_STATUS_INVALID_VALUE;
  cusolverStatus_t st = begin(handle, params, t, compute, leads);
  if (st) return st;
  memset(room, 0xff, ROOM);
  memset(host, 0xff, HOST_ROOM);
  atomic_fetch_add(&factorised, 1);
  return st;
}

/* ---- matrices: of doubles, column by column -------------------------------------------------- */

static double *load_columns(const void *a, cudaDataType t, int64_t m, int64_t n, int64_t lda)
{
  double *x = malloc((size_t)(m * n + 1) * sizeof *x);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++)
      x[j * m + i] = t == CUDA_R_32F ? (double)((const float *)a)[j * lda + i]
                                     : ((const double *)a)[j * lda + i];
  return x;
}

/* Stores and frees. */
static void store_columns(void *a, cudaDataType t, int64_t m, int64_t n, int64_t lda, double *x)
{
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++)
      if (t == CUDA_R_32F)
        ((float *)a)[j * lda + i] = (float)x[j * m + i];
      else
        ((double *)a)[j * lda + i] = x[j * m + i];
  free(x);
}

static void exchange(double *x, double *y)
{
  double t = *x;
  *x = *y;
  *y = t;
}

/* ---- LU, Cholesky ---------------------------------------------------------------------------- */

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             int64_t m, int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType compute, size_t *room,
                                             size_t *host)
{
  return size_said(handle, params, type, compute, a && n > 0 && lda >= m, room, host);
}

cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                  int64_t n, cudaDataType type, void *a, int64_t lda,
                                  int64_t *pivots, cudaDataType compute, void *room, size_t bytes,
                                  void *host, size_t host_bytes, int *info)
{
  cusolverStatus_t st =
      begin_in_room(handle, params, type, compute, lda >= m, room, bytes, host, host_bytes);
  if (st) return st;
  double *x = load_columns(a, type, m, n, lda);
  *info = 0;
  for (int64_t k = 0; k < m && k < n; k++) {
    int64_t best = k;
    for (int64_t i = k; i < m; i++)
      if (fabs(x[k * m + i]) > fabs(x[k * m + best])) best = i;
    pivots[k] = best + 1;
    for (int64_t j = 0; j < n; j++)
      exchange(&x[j * m + k], &x[j * m + best]);
    if (x[k * m + k] == 0 && !*info) *info = (int)k + 1;
    for (int64_t i = k + 1; i < m && x[k * m + k] != 0; i++) {
      x[k * m + i] /= x[k * m + k];
      for (int64_t j = k + 1; j < n; j++)
        x[j * m + i] -= x[k * m + i] * x[j * m + k];
    }
  }
  store_columns(a, type, m, n, lda, x);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cublasOperation_t turned, int64_t n, int64_t k, cudaDataType type,
                                  const void *a, int64_t lda, const int64_t *pivots,
                                  cudaDataType type_b, void *b, int64_t ldb, int *info)
{
  int fits = lda >= n && ldb >= n && turned == CUBLAS_OP_N;
  cusolverStatus_t st = begin(handle, params, type, type_b, fits);
  if (st) return st;
  double *x = load_columns(a, type, n, n, lda), *y = load_columns(b, type, n, k, ldb);
  for (int64_t c = 0; c < k; c++) {
    double *column = y + c * n;
    for (int64_t i = 0; i < n; i++)
      exchange(&column[i], &column[pivots[i] - 1]);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < i; j++)
        column[i] -= x[j * n + i] * column[j];
    for (int64_t i = n - 1; i >= 0; i--) {
      for (int64_t j = i + 1; j < n; j++)
        column[i] -= x[j * n + i] * column[j];
      column[i] /= x[i * n + i];
    }
  }
  free(x);
  store_columns(b, type, n, k, ldb, y);
  *info = 0;
  atomic_fetch_add(&factorised, 1);
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cublasFillMode_t triangle, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda,
                                             cudaDataType compute, size_t *room, size_t *host)
{
  int fits = a && lda >= n && triangle == CUBLAS_FILL_MODE_UPPER;
  return size_said(handle, params, type, compute, fits, room, host);
}

cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cublasFillMode_t triangle, int64_t n, cudaDataType type, void *a,
                                  int64_t lda, cudaDataType compute, void *room, size_t bytes,
                                  void *host, size_t host_bytes, int *info)
{
  int fits = lda >= n && triangle == CUBLAS_FILL_MODE_UPPER;
  cusolverStatus_t st =
      begin_in_room(handle, params, type, compute, fits, room, bytes, host, host_bytes);
  if (st) return st;
  double *x = load_columns(a, type, n, n, lda);
  *info = 0;
  for (int64_t k = 0; k < n && !*info; k++) {
    if (!(x[k * n + k] > 0)) *info = (int)k + 1;
    double root = sqrt(x[k * n + k]);
    for (int64_t j = k; j < n && !*info; j++)
      x[j * n + k] /= root;
    for (int64_t i = k + 1; i < n && !*info; i++)
      for (int64_t j = i; j < n; j++)
        x[j * n + i] -= x[i * n + k] * x[j * n + k];
  }
  store_columns(a, type, n, n, lda, x);
  return CUSOLVER_STATUS_SUCCESS;
}

/* ---- QR -------------------------------------------------------------------------------------- */

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             int64_t m, int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType type_tau, const void *tau,
                                             cudaDataType compute, size_t *room, size_t *host)
{
  int fits = a && tau && n > 0 && lda >= m && type_tau == type;
  return size_said(handle, params, type, compute, fits, room, host);
}

/* x (m x n) -= tau v (v^T x), v as LAPACK leaves it in column k of q (m x ...). */
static void reflect_all(double *x, const double *q, int64_t m, int64_t n, int64_t k, double tau)
{
  for (int64_t j = 0; j < n; j++) {
    double sum = x[j * m + k];
    for (int64_t i = k + 1; i < m; i++)
      sum += q[k * m + i] * x[j * m + i];
    x[j * m + k] -= tau * sum;
    for (int64_t i = k + 1; i < m; i++)
      x[j * m + i] -= tau * sum * q[k * m + i];
  }
}

cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
                                  int64_t n, cudaDataType type, void *a, int64_t lda,
                                  cudaDataType type_tau, void *tau, cudaDataType compute,
                                  void *room, size_t bytes, void *host, size_t host_bytes,
                                  int *info)
{
  int fits = lda >= m && type_tau == type;
  int64_t least = m < n ? m : n;
  cusolverStatus_t st =
      begin_in_room(handle, params, type, compute, fits, room, bytes, host, host_bytes);
  if (st) return st;
  double *x = load_columns(a, type, m, n, lda), *taus = calloc((size_t)least, sizeof *taus);
  for (int64_t k = 0; k < least; k++) {
    double below = 0, head = x[k * m + k];
    for (int64_t i = k + 1; i < m; i++)
      below += x[k * m + i] * x[k * m + i];
    if (below == 0) continue;
    double norm = sqrt(head * head + below), beta = head < 0 ? norm : -norm;
    taus[k] = (beta - head) / beta;
    for (int64_t i = k + 1; i < m; i++)
      x[k * m + i] /= head - beta;
    x[k * m + k] = beta;
    if (k + 1 < n) reflect_all(x + (k + 1) * m, x, m, n - k - 1, k, taus[k]);
  }
  store_columns(a, type, m, n, lda, x);
  store_columns(tau, type, least, 1, least, taus);
  *info = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t form_q(cusolverDnHandle_t handle, int m, int n, int k, void *a, int lda,
                               cudaDataType type, const void *tau, const void *work, int elements,
                               int *info)
{
  struct cusolverDnParams params = {1};
  int fits = lda >= m && n <= m && k <= n && work && elements >= n;
  cusolverStatus_t st = begin(handle, &params, type, type, fits);
  if (st) return st;
  double *x = load_columns(a, type, m, n, lda), *t = load_columns(tau, type, k, 1, k);
  double *q = calloc((size_t)m * (size_t)n, sizeof *q);
  for (int64_t i = 0; i < n; i++)
    q[i * m + i] = 1;
  for (int64_t i = k - 1; i >= 0; i--)
    reflect_all(q, x, m, n, i, t[i]);
  free(x);
  free(t);
  store_columns(a, type, m, n, lda, q);
  *info = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

#define ORGQR(letter, real, type)                                                                  \
  cusolverStatus_t cusolverDn##letter##orgqr_bufferSize(cusolverDnHandle_t handle, int m, int n,   \
                                                        int k, const real *a, int lda,             \
                                                        const real *tau, int *elements)            \
  {                                                                                                \
    *elements = n;                                                                                 \
    return handle && a && tau && lda >= m && k <= n ? CUSOLVER_STATUS_SUCCESS                      \
                                                    : CUSOLVER_STATUS_INVALID_VALUE;               \
  }                                                                                                \
  cusolverStatus_t cusolverDn##letter##orgqr(cusolverDnHandle_t handle, int m, int n, int k,       \
                                             real *a, int lda, const real *tau, real *work,        \
                                             int elements, int *info)                              \
  {                                                                                                \
    return form_q(handle, m, n, k, a, lda, type, tau, work, elements, info);                       \
  }
ORGQR(S, float, CUDA_R_32F)
ORGQR(D, double, CUDA_R_64F)

/* ---- eigenvalues, singular values ------------------------------------------------------------ */

/* Of the angle that makes `off` 0 between p and q. */
static void angle(double p, double q, double off, double *c, double *s)
{
  double t = atan2(2 * off, q - p) / 2;
  *c = cos(t);
  *s = sin(t);
}

static void turn_columns(double *x, int64_t m, int64_t p, int64_t q, double c, double s)
{
  for (int64_t i = 0; i < m; i++) {
    double u = x[p * m + i], v = x[q * m + i];
    x[p * m + i] = c * u - s * v;
    x[q * m + i] = s * u + c * v;
  }
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cusolverEigMode_t job, cublasFillMode_t triangle,
                                             int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType type_w, const void *w,
                                             cudaDataType compute, size_t *room, size_t *host)
{
  int fits = a && w && lda >= n && job == CUSOLVER_EIG_MODE_VECTOR && type_w == type &&
             (triangle == CUBLAS_FILL_MODE_LOWER || triangle == CUBLAS_FILL_MODE_UPPER);
  return size_said(handle, params, type, compute, fits, room, host);
}

/* By columns of v in the order of values, ascending or descending. */
static void put_in_order(double *values, double *v, int64_t m, double *w, int64_t n, int descending)
{
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      if (descending ? values[j] > values[i] : values[j] < values[i]) {
        exchange(&values[i], &values[j]);
        for (int64_t k = 0; k < m; k++)
          exchange(&v[i * m + k], &v[j * m + k]);
        for (int64_t k = 0; k < n && w; k++)
          exchange(&w[i * n + k], &w[j * n + k]);
      }
}

static double *identity_columns(int64_t n)
{
  double *v = calloc((size_t)(n * n), sizeof *v);
  for (int64_t i = 0; i < n; i++)
    v[i * n + i] = 1;
  return v;
}

cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cusolverEigMode_t job, cublasFillMode_t triangle, int64_t n,
                                  cudaDataType type, void *a, int64_t lda, cudaDataType type_w,
                                  void *w, cudaDataType compute, void *room, size_t bytes,
                                  void *host, size_t host_bytes, int *info)
{
  int fits = lda >= n && job == CUSOLVER_EIG_MODE_VECTOR && type_w == type;
  cusolverStatus_t st =
      begin_in_room(handle, params, type, compute, fits, room, bytes, host, host_bytes);
  if (st) return st;
  double *x = load_columns(a, type, n, n, lda), *v = identity_columns(n);
  double *values = malloc((size_t)n * sizeof *values), c, s;
  for (int64_t i = 0; i < n; i++) /* of one triangle the other */
    for (int64_t j = 0; j < i; j++)
      if (triangle == CUBLAS_FILL_MODE_LOWER)
        x[i * n + j] = x[j * n + i];
      else
        x[j * n + i] = x[i * n + j];
  for (int sweep = 0; sweep < 40; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        angle(x[p * n + p], x[q * n + q], x[q * n + p], &c, &s);
        turn_columns(x, n, p, q, c, s);
        for (int64_t i = 0; i < n; i++) {
          double one = x[i * n + p], two = x[i * n + q];
          x[i * n + p] = c * one - s * two;
          x[i * n + q] = s * one + c * two;
        }
        turn_columns(v, n, p, q, c, s);
      }
  for (int64_t i = 0; i < n; i++)
    values[i] = x[i * n + i];
  free(x);
  put_in_order(values, v, n, NULL, n, 0);
  store_columns(a, type, n, n, lda, v);
  store_columns(w, type, n, 1, n, values);
  *info = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             signed char job_u, signed char job_vt, int64_t m,
                                             int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType type_s, const void *s,
                                             cudaDataType type_u, const void *u, int64_t ldu,
                                             cudaDataType type_vt, const void *vt, int64_t ldvt,
                                             cudaDataType compute, size_t *room, size_t *host)
{
  int fits = a && s && u && vt && m >= n && lda >= m && ldu >= m && ldvt >= n && job_u == 'S' &&
             job_vt == 'S' && type_s == type && type_u == type && type_vt == type;
  return size_said(handle, params, type, compute, fits, room, host);
}

cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  signed char job_u, signed char job_vt, int64_t m, int64_t n,
                                  cudaDataType type, void *a, int64_t lda, cudaDataType type_s,
                                  void *s, cudaDataType type_u, void *u, int64_t ldu,
                                  cudaDataType type_vt, void *vt, int64_t ldvt,
                                  cudaDataType compute, void *room, size_t bytes, void *host,
                                  size_t host_bytes, int *info)
{
  int fits = m >= n && lda >= m && ldu >= m && ldvt >= n && job_u == 'S' && job_vt == 'S' &&
             type_s == type && type_u == type && type_vt == type && u != a;
  cusolverStatus_t st =
      begin_in_room(handle, params, type, compute, fits, room, bytes, host, host_bytes);
  if (st) return st;
  double *x = load_columns(a, type, m, n, lda), *v = identity_columns(n), cosine, sine;
  double *values = malloc((size_t)n * sizeof *values),
         *turned = malloc((size_t)(n * n) * sizeof *v);
  for (int sweep = 0; sweep < 40; sweep++)
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < m; i++) {
          pp += x[p * m + i] * x[p * m + i];
          qq += x[q * m + i] * x[q * m + i];
          pq += x[p * m + i] * x[q * m + i];
        }
        angle(pp, qq, pq, &cosine, &sine);
        turn_columns(x, m, p, q, cosine, sine);
        turn_columns(v, n, p, q, cosine, sine);
      }
  for (int64_t j = 0; j < n; j++) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++)
      sum += x[j * m + i] * x[j * m + i];
    values[j] = sqrt(sum);
    for (int64_t i = 0; i < m; i++)
      x[j * m + i] /= values[j];
  }
  put_in_order(values, x, m, v, n, 1);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      turned[i * n + j] = v[j * n + i];
  free(v);
  memset(a, 0xff, (size_t)(m * n) * (type == CUDA_R_32F ? sizeof(float) : sizeof(double)));
  store_columns(u, type, m, n, ldu, x);
  store_columns(vt, type, n, n, ldvt, turned);
  store_columns(s, type, n, 1, n, values);
  *info = 0;
  return CUSOLVER_STATUS_SUCCESS;
}
#endif
