/* solver.c: factorisations of matrices by cuSOLVER, opened at run time.
 *
 * As cuBLAS is (blas.c): the library is looked for at the first factorisation, by the loader,
 * newest first; it has no place in the engine's own needs. Unlike a product, a factorisation has no
 * kernel of the engine's: where the library is missing, or refuses a handle for the device, that is
 * an error which reports it (ENOTSUP), for nothing is done on the cpu unasked.
 *
 * A call takes a handle of the device that no other call has, sets the stream, and puts it back.
 * What cuSOLVER works in is the allocator's, taken and released in the stream's order; room on the
 * host, which it seldom wants, is freed when the stream is done. It writes info as 32 bits: into
 * the low half of what the caller has set to 0. A batch goes matrix by matrix. Triangles are solved
 * by cuBLAS. cuSOLVER's 64-bit interface is of CUDA 11.1 and later; orgqr is of the older one.
 *
 * This has been run on the software device alone, with tests/cuda/cusolver.c in cuSOLVER's place:
 * by NVIDIA's declarations and its documentation, on no GPU yet.
 *
 * Words. room: what cuSOLVER works in. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "cuda/backend/launch.h"

enum { SOLVER_HANDLES = 4, SOLVER_DEVICES = 64 };
enum { SOLVE_PLAIN = 0, TRIANGLE_LOWER = 0, TRIANGLE_UPPER = 1, WITH_VECTORS = 1 };
enum { SOLVER_32F = 0, SOLVER_64F = 1 }; /* cudaDataType */
enum { SPARE_BYTES = 256 };              /* of room: an info that shows nothing */

/* X(function, parameters): of cusolverDn. */
#define SOLVER_CALLS(X)                                                                            \
  X(Create, (void **handle))                                                                       \
  X(Destroy, (void *handle))                                                                       \
  X(SetStream, (void *handle, void *stream))                                                       \
  X(CreateParams, (void **params))                                                                 \
  X(DestroyParams, (void *params))                                                                 \
  X(Xgetrf_bufferSize, (void *handle, void *params, int64_t m, int64_t n, int type, const void *a, \
                        int64_t lda, int compute, size_t *room, size_t *host))                     \
  X(Xgetrf, (void *handle, void *params, int64_t m, int64_t n, int type, void *a, int64_t lda,     \
             int64_t *pivots, int compute, void *room, size_t bytes, void *host,                   \
             size_t host_bytes, int *info))                                                        \
  X(Xgetrs,                                                                                        \
    (void *handle, void *params, int turned, int64_t n, int64_t k, int type, const void *a,        \
     int64_t lda, const int64_t *pivots, int type_b, void *b, int64_t ldb, int *info))             \
  X(Xpotrf_bufferSize, (void *handle, void *params, int triangle, int64_t n, int type,             \
                        const void *a, int64_t lda, int compute, size_t *room, size_t *host))      \
  X(Xpotrf, (void *handle, void *params, int triangle, int64_t n, int type, void *a, int64_t lda,  \
             int compute, void *room, size_t bytes, void *host, size_t host_bytes, int *info))     \
  X(Xgeqrf_bufferSize,                                                                             \
    (void *handle, void *params, int64_t m, int64_t n, int type, const void *a, int64_t lda,       \
     int type_tau, const void *tau, int compute, size_t *room, size_t *host))                      \
  X(Xgeqrf, (void *handle, void *params, int64_t m, int64_t n, int type, void *a, int64_t lda,     \
             int type_tau, void *tau, int compute, void *room, size_t bytes, void *host,           \
             size_t host_bytes, int *info))                                                        \
  X(Sorgqr_bufferSize,                                                                             \
    (void *handle, int m, int n, int k, const void *a, int lda, const void *tau, int *elements))   \
  X(Dorgqr_bufferSize,                                                                             \
    (void *handle, int m, int n, int k, const void *a, int lda, const void *tau, int *elements))   \
  X(Sorgqr, (void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *room,     \
             int elements, int *info))                                                             \
  X(Dorgqr, (void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *room,     \
             int elements, int *info))                                                             \
  X(Xsyevd_bufferSize,                                                                             \
    (void *handle, void *params, int vectors, int triangle, int64_t n, int type, const void *a,    \
     int64_t lda, int type_values, const void *values, int compute, size_t *room, size_t *host))   \
  X(Xsyevd, (void *handle, void *params, int vectors, int triangle, int64_t n, int type, void *a,  \
             int64_t lda, int type_values, void *values, int compute, void *room, size_t bytes,    \
             void *host, size_t host_bytes, int *info))                                            \
  X(Xgesvd_bufferSize, (void *handle, void *params, signed char job_u, signed char job_vt,         \
                        int64_t m, int64_t n, int type, const void *a, int64_t lda, int type_s,    \
                        const void *s, int type_u, const void *u, int64_t ldu, int type_vt,        \
                        const void *vt, int64_t ldvt, int compute, size_t *room, size_t *host))    \
  X(Xgesvd, (void *handle, void *params, signed char job_u, signed char job_vt, int64_t m,         \
             int64_t n, int type, void *a, int64_t lda, int type_s, void *s, int type_u, void *u,  \
             int64_t ldu, int type_vt, void *vt, int64_t ldvt, int compute, void *room,            \
             size_t bytes, void *host, size_t host_bytes, int *info))

static struct {
#define SOLVER_MEMBER(name, parameters) int(*name) parameters;
  SOLVER_CALLS(SOLVER_MEMBER)
#undef SOLVER_MEMBER
} solver;

typedef struct solver_handle {
  void *handle, *params;
} solver_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried, there; /* lock, as all below */
static char why[160];     /* there is none */
static struct {
  solver_handle of[SOLVER_HANDLES]; /* idle ones */
  int count;
} pools[SOLVER_DEVICES];

/* ---- the library ----------------------------------------------------------------------------- */

static bool take_solver(void *library)
{
#define SOLVER_ROW(name, parameters)                                                               \
  *(void **)&solver.name = dlsym(library, "cusolverDn" #name);                                     \
  if (!solver.name) return false;
  SOLVER_CALLS(SOLVER_ROW)
#undef SOLVER_ROW
  return true;
}

/* Lock held. */
static void open_solver(void)
{
  static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11"};
  tried = true;
  (void)snprintf(why, sizeof why, "neither %s nor %s can be opened", names[0], names[1]);
  for (int i = 0; i < 2 && !there; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) continue;
    there = take_solver(library);
    if (!there) (void)snprintf(why, sizeof why, "%s lacks a function", names[i]);
  }
}

static void solver_destroy(const solver_handle *h)
{
  if (h->params) (void)solver.DestroyParams(h->params);
  if (h->handle) (void)solver.Destroy(h->handle);
}

/* Within the context. False: none is to be had, and *refused, 0: `why`, gives the reason. */
static bool solver_take(int device, solver_handle *h, int *refused)
{
  *h = (solver_handle){NULL, NULL};
  *refused = 0;
  pthread_mutex_lock(&lock);
  if (!tried) open_solver();
  bool can = there;
  if (can && pools[device].count) *h = pools[device].of[--pools[device].count];
  pthread_mutex_unlock(&lock);
  if (h->handle || !can) return can;
  *refused = solver.Create(&h->handle);
  if (!*refused) *refused = solver.CreateParams(&h->params);
  if (*refused) solver_destroy(h);
  return !*refused;
}

static void solver_give(int device, const solver_handle *h)
{
  pthread_mutex_lock(&lock);
  bool full = pools[device].count == SOLVER_HANDLES;
  if (!full) pools[device].of[pools[device].count++] = *h;
  pthread_mutex_unlock(&lock);
  if (full) solver_destroy(h);
}

/* The device's context ends. */
void cuda_solver_close(const cuda_device_state *d)
{
  CUresult r;
  pthread_mutex_lock(&lock);
  while (pools[d->index].count) {
    solver_handle h = pools[d->index].of[--pools[d->index].count];
    WEIR_CUDA_WITHIN(d, r, (solver_destroy(&h), CUDA_SUCCESS));
    (void)r;
  }
  pthread_mutex_unlock(&lock);
}

/* ---- one request ----------------------------------------------------------------------------- */

typedef struct solver_run {
  const weir_factor *f;
  solver_handle h;
  void *stream;
  int type;          /* cudaDataType */
  int64_t size;      /* bytes of an element */
  void *room, *host; /* owned; NULL: none */
  size_t bytes, host_bytes;
  int elements; /* of orgqr's room */
} solver_run;

/* The bytes of one matrix's U: cuSOLVER's lies apart from a. */
static size_t u_bytes(const solver_run *r)
{
  if (r->f->op != WEIR_FACTOR_SVD) return 0;
  return (size_t)((r->f->m * r->f->n * r->size + 255) / 256 * 256);
}

/* What one matrix takes. */
static int ask_room(solver_run *r)
{
  const weir_factor *f = r->f;
  void *h = r->h.handle, *p = r->h.params;
  int t = r->type, least = (int)(f->m < f->n ? f->m : f->n), failed = 0;
  size_t *bytes = &r->bytes, *host = &r->host_bytes;
  switch (f->op) {
  case WEIR_FACTOR_LU:
  case WEIR_FACTOR_SOLVE:
    return solver.Xgetrf_bufferSize(h, p, f->m, f->n, t, f->a, f->m, t, bytes, host);
  case WEIR_FACTOR_CHOLESKY:
    return solver.Xpotrf_bufferSize(h, p, TRIANGLE_UPPER, f->n, t, f->a, f->n, t, bytes, host);
  case WEIR_FACTOR_QR:
    failed = solver.Xgeqrf_bufferSize(h, p, f->m, f->n, t, f->a, f->m, t, f->c, t, bytes, host);
    if (!failed)
      failed = (t == SOLVER_32F ? solver.Sorgqr_bufferSize : solver.Dorgqr_bufferSize)(
          h, (int)f->m, (int)f->k, least, f->b, (int)f->m, f->c, &r->elements);
    if ((size_t)r->elements * (size_t)r->size > *bytes)
      *bytes = (size_t)r->elements * (size_t)r->size;
    return failed;
  case WEIR_FACTOR_EIGH:
    return solver.Xsyevd_bufferSize(h, p, WITH_VECTORS, f->upper, f->n, t, f->a, f->n, t, f->b, t,
                                    bytes, host);
  case WEIR_FACTOR_SVD:
    return solver.Xgesvd_bufferSize(h, p, 'S', 'S', f->m, f->n, t, f->a, f->m, t, f->b, t, f->a,
                                    f->m, t, f->c, f->n, t, bytes, host);
  default:
    return 0;
  }
}

static int solve_one_system(solver_run *r, char *a, char *b, int64_t *pivots, int *info, int *spare)
{
  const weir_factor *f = r->f;
  int failed = 0;
  if (f->op != WEIR_FACTOR_LU_SOLVE)
    failed = solver.Xgetrf(r->h.handle, r->h.params, f->m, f->n, r->type, a, f->m, pivots, r->type,
                           r->room, r->bytes, r->host, r->host_bytes, info);
  if (failed || f->op == WEIR_FACTOR_LU) return failed;
  return solver.Xgetrs(r->h.handle, r->h.params, SOLVE_PLAIN, f->n, f->k, r->type, a, f->n, pivots,
                       r->type, b, f->n, spare);
}

static int orthogonalise_one(solver_run *r, char *a, char *b, char *c, int *info, int *spare)
{
  const weir_factor *f = r->f;
  int64_t least = f->m < f->n ? f->m : f->n;
  int failed = solver.Xgeqrf(r->h.handle, r->h.params, f->m, f->n, r->type, a, f->m, r->type, c,
                             r->type, r->room, r->bytes, r->host, r->host_bytes, info);
  if (failed) return failed;
  CUresult copied =
      weir_cuda.cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)b, (CUdeviceptr)(uintptr_t)a,
                                  (size_t)(f->m * least * r->size), r->stream);
  if (copied) return -(int)copied;
  return (r->type == SOLVER_32F ? solver.Sorgqr : solver.Dorgqr)(
      r->h.handle, (int)f->m, (int)f->k, (int)least, b, (int)f->m, c, r->room, r->elements, spare);
}

static int svd_one_matrix(solver_run *r, char *a, char *b, char *c, int *info)
{
  const weir_factor *f = r->f;
  char *u = (char *)r->room + r->bytes + SPARE_BYTES;
  int t = r->type;
  int failed = solver.Xgesvd(r->h.handle, r->h.params, 'S', 'S', f->m, f->n, t, a, f->m, t, b, t, u,
                             f->m, t, c, f->n, t, r->room, r->bytes, r->host, r->host_bytes, info);
  if (failed) return failed;
  return -(int)weir_cuda.cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)a, (CUdeviceptr)(uintptr_t)u,
                                           (size_t)(f->m * f->n * r->size), r->stream);
}

/* Within the context. 0, cuSOLVER's status, or less than 0: the driver's. */
static int factor_one_matrix(solver_run *r, int64_t at)
{
  const weir_factor *f = r->f;
  int64_t least = f->m < f->n ? f->m : f->n;
  int64_t b_count = f->op == WEIR_FACTOR_QR                                 ? f->m * f->k
                    : f->op == WEIR_FACTOR_EIGH || f->op == WEIR_FACTOR_SVD ? f->n
                                                                            : f->n * f->k;
  int64_t c_count = f->op == WEIR_FACTOR_QR ? least : f->n * f->n;
  char *a = (char *)f->a + at * f->m * f->n * r->size;
  char *b = f->b ? (char *)f->b + at * b_count * r->size : NULL;
  char *c = f->c ? (char *)f->c + at * c_count * r->size : NULL;
  int *info = (int *)(void *)(f->info + at), *spare = (int *)(void *)((char *)r->room + r->bytes);
  switch (f->op) {
  case WEIR_FACTOR_CHOLESKY:
    return solver.Xpotrf(r->h.handle, r->h.params, TRIANGLE_UPPER, f->n, r->type, a, f->n, r->type,
                         r->room, r->bytes, r->host, r->host_bytes, info);
  case WEIR_FACTOR_QR:
    return orthogonalise_one(r, a, b, c, info, spare);
  case WEIR_FACTOR_EIGH:
    return solver.Xsyevd(r->h.handle, r->h.params, WITH_VECTORS, f->upper, f->n, r->type, a, f->n,
                         r->type, b, r->type, r->room, r->bytes, r->host, r->host_bytes, info);
  case WEIR_FACTOR_SVD:
    return svd_one_matrix(r, a, b, c, info);
  default:
    return solve_one_system(r, a, b, f->pivots + at * least, info, spare);
  }
}

/* Within the context. */
static int factor_batch(solver_run *r)
{
  int failed = 0;
  for (int64_t i = 0; i < r->f->batch && !failed; i++)
    failed = factor_one_matrix(r, i);
  if (!r->host) return failed;
  CUresult waited = weir_cuda.cuStreamSynchronize(r->stream);
  return failed ? failed : -(int)waited;
}

static weir_status solver_failed(const cuda_device_state *d, CUresult r, int failed)
{
  if (r || failed < 0)
    return driver_fail(r ? r : (CUresult)-failed, "factorisation on cuda:%d", d->index);
  if (failed)
    return cuda_fail_as(WEIR_ECUDA, "cuSOLVER failed on cuda:%d: status %d", d->index, failed);
  return WEIR_OK;
}

/* The handle is had. */
static weir_status run_solver(cuda_device_state *d, solver_run *r)
{
  CUresult entered;
  int failed = 0;
  WEIR_CUDA_WITHIN(d, entered,
                   (failed = solver.SetStream(r->h.handle, r->stream),
                    failed = failed ? failed : ask_room(r), CUDA_SUCCESS));
  weir_status st = solver_failed(d, entered, failed);
  if (st) return st;
  r->bytes = (r->bytes + 255) / 256 * 256;
  if (r->host_bytes && !(r->host = malloc(r->host_bytes)))
    return cuda_fail_as(WEIR_ENOMEM, "no host memory for what cuSOLVER works in (%zu bytes)",
                        r->host_bytes);
  st =
      cuda_core_calls->allocate(&r->room, r->bytes + SPARE_BYTES + u_bytes(r), d->index, r->stream);
  if (!st) {
    WEIR_CUDA_SEEN(d, entered, (failed = factor_batch(r), CUDA_SUCCESS));
    weir_status given_back = cuda_core_calls->release(r->room);
    st = solver_failed(d, entered, failed);
    if (!st) st = given_back;
  }
  free(r->host);
  return st;
}

bool cuda_factor_narrow(void *self, const weir_factor *f)
{
  (void)self, (void)f;
  return true;
}

weir_status cuda_factor(void *self, void *stream, const weir_factor *f)
{
  cuda_device_state *d = self;
  CUresult entered;
  int refused = 0;
  bool had = false, narrow = f->dtype == WEIR_FLOAT32;
  solver_run r = {.f = f, .stream = stream, .type = narrow ? SOLVER_32F : SOLVER_64F};
  r.size = narrow ? (int64_t)sizeof(float) : (int64_t)sizeof(double);
  if (f->m > INT_MAX || f->n > INT_MAX || f->k > INT_MAX)
    return cuda_unsupported("a matrix of more than 2^31 rows or columns is factorised");
  if (f->op == WEIR_FACTOR_TRIANGULAR) return cuda_blas_triangles(d, stream, f);
  WEIR_CUDA_WITHIN(d, entered, (had = solver_take(d->index, &r.h, &refused), CUDA_SUCCESS));
  if (entered) return driver_fail(entered, "factorisation: entering cuda:%d", d->index);
  if (!had && refused)
    return cuda_unsupported("factorisations on CUDA devices are cuSOLVER's, and cusolverDnCreate "
                            "failed on cuda:%d: status %d",
                            d->index, refused);
  if (!had) return cuda_unsupported("factorisations on CUDA devices are cuSOLVER's, and %s", why);
  weir_status st = run_solver(d, &r);
  solver_give(d->index, &r.h);
  return st;
}
