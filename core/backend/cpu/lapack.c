/* cpu/lapack.c: factorisations of matrices by LAPACK, opened at run time.
 *
 * OpenBLAS and MKL have it in addition to their products: the library that cpu/blas.c has opened is
 * asked for it, under the same statement (weir_set_blas). Whoever asks for a library
 * (WEIR_BLAS_VENDOR) gets liblapack.so.3 where that one has none. Small matrices are the engine's
 * own (cpu/factor.c): its functions start at once, and are quicker up to the sizes below. In LAPACK
 * float32 is done in float32, as PyTorch does it.
 *
 * Its interface is Fortran's: everything by address, 32-bit integers, the lengths of texts after
 * the other arguments. Room is had from malloc for each matrix, as much as LAPACK states it
 * likes. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/cpu/gemm.h"
#include "core/backend/threads.h"

typedef const int *int_in;
typedef const char *text_in;

/* X(function without its s or d, parameters). */
#define LAPACK_CALLS(X)                                                                            \
  X(getrf, (int_in m, int_in n, void *a, int_in lda, int *pivots, int *info))                      \
  X(getrs, (text_in turned, int_in n, int_in k, const void *a, int_in lda, int_in pivots, void *b, \
            int_in ldb, int *info, size_t))                                                        \
  X(trsm, (text_in side, text_in upper, text_in turned, text_in unit, int_in n, int_in k,          \
           const void *alpha, const void *a, int_in lda, void *b, int_in ldb, size_t, size_t,      \
           size_t, size_t))                                                                        \
  X(potrf, (text_in upper, int_in n, void *a, int_in lda, int *info, size_t))                      \
  X(geqrf,                                                                                         \
    (int_in m, int_in n, void *a, int_in lda, void *tau, void *work, int_in room, int *info))      \
  X(orgqr, (int_in m, int_in k, int_in count, void *q, int_in ldq, const void *tau, void *work,    \
            int_in room, int *info))                                                               \
  X(syevd, (text_in job, text_in upper, int_in n, void *a, int_in lda, void *values, void *work,   \
            int_in room, int *iwork, int_in iroom, int *info, size_t, size_t))                     \
  X(gesdd, (text_in job, int_in m, int_in n, void *a, int_in lda, void *s, void *u, int_in ldu,    \
            void *vt, int_in ldvt, void *work, int_in room, int *iwork, int *info, size_t))

/* Of float32 and float64. */
static struct lapack {
#define LAPACK_MEMBER(name, parameters) void(*name) parameters;
  LAPACK_CALLS(LAPACK_MEMBER)
#undef LAPACK_MEMBER
} lapack[2];

static const char *opened; /* the library's file; NULL: there is none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int tried[2]; /* in BLAS's library; in LAPACK's own, too: 1: not there, 2: there */

/* From which min(m, n) on a single matrix is quicker by LAPACK: measured against cpu/factor.c by
 * OpenBLAS 0.3.21 on two threads of a Xeon with AVX-512, float64. */
static const uint16_t gains[WEIR_FACTOR_COUNT] = {
    [WEIR_FACTOR_LU] = 40,         [WEIR_FACTOR_SOLVE] = 24,    [WEIR_FACTOR_LU_SOLVE] = 24,
    [WEIR_FACTOR_TRIANGULAR] = 16, [WEIR_FACTOR_CHOLESKY] = 24, [WEIR_FACTOR_QR] = 40,
    [WEIR_FACTOR_EIGH] = 20,       [WEIR_FACTOR_SVD] = 16};

/* ---- opening --------------------------------------------------------------------------------- */

static bool take_functions(void *library)
{
#define LAPACK_ROW(name, parameters)                                                               \
  *(void **)&lapack[0].name = dlsym(library, "s" #name "_");                                       \
  *(void **)&lapack[1].name = dlsym(library, "d" #name "_");                                       \
  if (!lapack[0].name || !lapack[1].name) return false;
  LAPACK_CALLS(LAPACK_ROW)
#undef LAPACK_ROW
  return true;
}

/* asked: LAPACK's own library is looked for, too. */
static bool open_lapack(bool asked)
{
  static const char file[] = "liblapack.so.3";
  int now = atomic_load_explicit(&tried[asked], memory_order_acquire);
  if (now) return now == 2;
  pthread_mutex_lock(&lock);
  const char *name = NULL;
  void *blas = opened ? NULL : cpu_blas_library(&name);
  if (blas && take_functions(blas)) opened = name;
  void *library = !opened && asked ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library && take_functions(library)) opened = file;
  atomic_store_explicit(&tried[asked], opened ? 2 : 1, memory_order_release);
  pthread_mutex_unlock(&lock);
  return opened;
}

static bool lapack_there(void)
{
  weir_blas which = weir_get_blas();
  return which != WEIR_BLAS_BUILTIN && open_lapack(which == WEIR_BLAS_VENDOR) &&
         (which == WEIR_BLAS_VENDOR || cpu_blas_library(NULL));
}

const char *weir_cpu_lapack_name(void)
{
  return lapack_there() ? opened : "builtin";
}

bool cpu_lapack_wanted(const weir_factor *f)
{
  int64_t least = f->m < f->n ? f->m : f->n;
  bool asked = weir_get_blas() == WEIR_BLAS_VENDOR;
  if (!asked && least < gains[f->op]) return false;
  if (f->m > INT_MAX || f->n > INT_MAX || f->k > INT_MAX) return false;
  return asked || lapack_there();
}

/* ---- one matrix ------------------------------------------------------------------------------ */

typedef struct lapack_run {
  const weir_factor *f;
  const struct lapack *l;
  size_t size;          /* bytes of an element */
  _Atomic bool no_room; /* malloc failed */
} lapack_run;

/* The matrices of one place in the batch. */
typedef struct lapack_one {
  char *a, *b, *c;
  int m, n, k, least;
  int64_t *pivots; /* of LU and what it solves */
} lapack_one;

/* The size that a query has left in its first element. */
static int room_of(const lapack_run *r, const void *wants)
{
  return r->size == sizeof(float) ? (int)ceilf(*(const float *)wants) : (int)*(const double *)wants;
}

static bool finite_elements(const lapack_run *r, const void *a, int64_t count)
{
  bool is = true;
  for (int64_t i = 0; i < count; i++)
    is &= r->size == sizeof(float) ? isfinite(((const float *)a)[i]) != 0
                                   : isfinite(((const double *)a)[i]) != 0;
  return is;
}

static int64_t lapack_lu(lapack_run *r, const lapack_one *x)
{
  int info = 0, *pivots = malloc((size_t)x->least * sizeof *pivots);
  if (!pivots) {
    r->no_room = true;
    return 0;
  }
  bool made = r->f->op == WEIR_FACTOR_LU_SOLVE;
  for (int i = 0; i < x->least && made; i++)
    pivots[i] = (int)x->pivots[i];
  if (!made) r->l->getrf(&x->m, &x->n, x->a, &x->m, pivots, &info);
  for (int i = 0; i < x->least && !made; i++)
    x->pivots[i] = pivots[i];
  int solved = 0;
  if (!info && r->f->op != WEIR_FACTOR_LU)
    r->l->getrs("N", &x->n, &x->k, x->a, &x->n, pivots, x->b, &x->n, &solved, 1);
  free(pivots);
  return info;
}

static void lapack_triangle(const lapack_run *r, const lapack_one *x)
{
  const float one = 1;
  const double wide_one = 1;
  const void *alpha = r->size == sizeof one ? (const void *)&one : &wide_one;
  r->l->trsm("L", r->f->upper ? "U" : "L", "N", r->f->unit ? "U" : "N", &x->n, &x->k, alpha, x->a,
             &x->n, x->b, &x->n, 1, 1, 1, 1);
}

static int64_t lapack_qr(lapack_run *r, const lapack_one *x)
{
  double wants[2] = {0, 0};
  int info = 0, query = -1;
  r->l->geqrf(&x->m, &x->n, x->a, &x->m, x->c, &wants[0], &query, &info);
  r->l->orgqr(&x->m, &x->k, &x->least, x->b, &x->m, x->c, &wants[1], &query, &info);
  int one = room_of(r, &wants[0]), two = room_of(r, &wants[1]), room = one > two ? one : two;
  void *work = malloc((size_t)room * r->size);
  if (!work) {
    r->no_room = true;
    return 0;
  }
  r->l->geqrf(&x->m, &x->n, x->a, &x->m, x->c, work, &room, &info);
  memcpy(x->b, x->a, (size_t)x->m * (size_t)x->least * r->size);
  r->l->orgqr(&x->m, &x->k, &x->least, x->b, &x->m, x->c, work, &room, &info);
  free(work);
  return 0;
}

static int64_t lapack_eigh(lapack_run *r, const lapack_one *x)
{
  double wants = 0;
  const char *upper = r->f->upper ? "U" : "L";
  int info = 0, query = -1, iwants = 0;
  if (!finite_elements(r, x->a, (int64_t)x->n * x->n)) return -1;
  r->l->syevd("V", upper, &x->n, x->a, &x->n, x->b, &wants, &query, &iwants, &query, &info, 1, 1);
  int room = room_of(r, &wants);
  size_t bytes = ((size_t)room * r->size + 15) / 16 * 16;
  char *work = malloc(bytes + (size_t)iwants * sizeof(int));
  if (!work) {
    r->no_room = true;
    return 0;
  }
  int *iwork = (int *)(void *)(work + bytes);
  r->l->syevd("V", upper, &x->n, x->a, &x->n, x->b, work, &room, iwork, &iwants, &info, 1, 1);
  free(work);
  return info;
}

/* U overwrites a. */
static int64_t lapack_svd(lapack_run *r, const lapack_one *x)
{
  double wants = 0;
  int info = 0, query = -1, one = 1, none = 0;
  if (!finite_elements(r, x->a, (int64_t)x->m * x->n)) return -1;
  r->l->gesdd("O", &x->m, &x->n, x->a, &x->m, x->b, &wants, &one, x->c, &x->n, &wants, &query,
              &none, &info, 1);
  int room = room_of(r, &wants);
  size_t bytes = ((size_t)room * r->size + 15) / 16 * 16;
  char *work = malloc(bytes + 8 * (size_t)x->n * sizeof(int));
  if (!work) {
    r->no_room = true;
    return 0;
  }
  int *iwork = (int *)(void *)(work + bytes);
  double unused = 0;
  r->l->gesdd("O", &x->m, &x->n, x->a, &x->m, x->b, &unused, &one, x->c, &x->n, work, &room, iwork,
              &info, 1);
  free(work);
  return info;
}

static int64_t lapack_one_matrix(lapack_run *r, int64_t at)
{
  const weir_factor *f = r->f;
  int64_t least = f->m < f->n ? f->m : f->n;
  int64_t b = f->op == WEIR_FACTOR_QR                                 ? f->m * f->k
              : f->op == WEIR_FACTOR_EIGH || f->op == WEIR_FACTOR_SVD ? f->n
                                                                      : f->n * f->k;
  int64_t c = f->op == WEIR_FACTOR_QR ? least : f->n * f->n;
  int64_t size = (int64_t)r->size;
  lapack_one x = {.a = (char *)f->a + at * f->m * f->n * size, .m = (int)f->m, .n = (int)f->n};
  x.k = (int)f->k, x.least = (int)least;
  if (f->b) x.b = (char *)f->b + at * b * size;
  if (f->c) x.c = (char *)f->c + at * c * size;
  int info = 0;
  switch (f->op) {
  case WEIR_FACTOR_TRIANGULAR:
    lapack_triangle(r, &x);
    return 0;
  case WEIR_FACTOR_CHOLESKY:
    r->l->potrf("U", &x.n, x.a, &x.n, &info, 1);
    return info;
  case WEIR_FACTOR_QR:
    return lapack_qr(r, &x);
  case WEIR_FACTOR_EIGH:
    return lapack_eigh(r, &x);
  case WEIR_FACTOR_SVD:
    return lapack_svd(r, &x);
  default:
    x.pivots = f->pivots + at * least;
    return lapack_lu(r, &x);
  }
}

static void some_lapack_matrices(void *arg, int64_t from, int64_t to)
{
  lapack_run *r = arg;
  for (int64_t i = from; i < to; i++)
    r->f->info[i] = lapack_one_matrix(r, i);
}

/* A batch of many goes by our threads, each with the library to itself. */
weir_status cpu_lapack(const weir_factor *f)
{
  bool many = f->batch >= weir_get_num_threads() && f->batch > 1;
  size_t size = f->dtype == WEIR_FLOAT32 ? sizeof(float) : sizeof(double);
  lapack_run r = {.f = f, .l = &lapack[f->dtype == WEIR_FLOAT64], .size = size};
  if (!open_lapack(true))
    return fail_unsupported("a LAPACK library was asked for (WEIR_BLAS_VENDOR) and none can be "
                            "opened: libopenblas.so.0, libmkl_rt.so.2, liblapack.so.3");
  cpu_blas_threads(many ? 1 : weir_get_num_threads());
  if (many)
    parallel_for(f->batch, 1, some_lapack_matrices, &r);
  else
    some_lapack_matrices(&r, 0, f->batch);
  return r.no_room ? fail_memory("what LAPACK works in") : WEIR_OK;
}
