/* cpu/blas.c: matrix products by a BLAS library, opened at run time.
 *
 * Looked for at the first product that may be one's; never closed. Its interface is CBLAS with
 * 32-bit integers. An OpenBLAS that does not know the processor takes its kernels for old ones (its
 * core name states which); then Weir's own are several times as fast, and "auto" takes those. So it
 * is with the reference BLAS, which is used where it is asked for only. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include "core/backend/cpu/gemm.h"
#include "core/weir/threads.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* CBLAS's own */

static const struct candidate {
  const char *file;
  const char *threads; /* its function that sets how many */
  bool plain;          /* a reference implementation, or nobody knows */
} candidates[] = {{"libopenblas.so.0", "openblas_set_num_threads", false},
                  {"libmkl_rt.so.2", "MKL_Set_Num_Threads", false},
                  {"libblis.so.4", "bli_thread_set_num_threads", false},
                  {"libcblas.so.3", NULL, true},
                  {"libblas.so.3", NULL, true}};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static struct {
  const struct candidate *is; /* NULL: none was found */
  bool quick;                 /* "auto" takes it */
  void *handle;               /* dlopen's */
  void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                float *, int);
  void (*dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int,
                double, double *, int);
  void (*cgemm)(int, int, int, int, int, int, const void *, const void *, int, const void *, int,
                const void *, void *, int);
  void (*set_threads)(int);
  _Atomic int threads; /* it was given last */
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic int setting = -1; /* enum weir_blas; -1: the environment has not been asked */

/* ---- which ----------------------------------------------------------------------------------- */

weir_status weir_set_blas(weir_blas which)
{
  if (which != WEIR_BLAS_AUTO && which != WEIR_BLAS_BUILTIN && which != WEIR_BLAS_VENDOR)
    return fail_invalid("weir_set_blas: %d is none of auto (0), builtin (1), vendor (2)",
                        (int)which);
  atomic_store(&setting, (int)which);
  return WEIR_OK;
}

weir_blas weir_get_blas(void)
{
  int now = atomic_load_explicit(&setting, memory_order_relaxed), unread = -1;
  if (now >= 0) return (weir_blas)now;
  const char *text = getenv("WEIR_BLAS");
  now = !text                          ? WEIR_BLAS_AUTO
        : !strcasecmp(text, "builtin") ? WEIR_BLAS_BUILTIN
        : !strcasecmp(text, "vendor")  ? WEIR_BLAS_VENDOR
                                       : WEIR_BLAS_AUTO;
  return (weir_blas)(atomic_compare_exchange_strong(&setting, &unread, now) ? now : unread);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Whether OpenBLAS uses what the processor has. */
static bool knows_processor(void *handle)
{
  static const char *const new[] = {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"};
  const char *(*core_name)(void);
  *(void **)&core_name = dlsym(handle, "openblas_get_corename");
#if defined(__x86_64__)
  if (core_name && __builtin_cpu_supports("avx2")) {
    for (size_t i = 0; i < sizeof new / sizeof *new; i++)
      if (!strcasecmp(core_name(), new[i])) return true;
    return false;
  }
#endif
  (void)new;
  return true;
}

static bool open_one(const struct candidate *c)
{
  void *handle = dlopen(c->file, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return false;
  *(void **)&library.sgemm = dlsym(handle, "cblas_sgemm");
  *(void **)&library.dgemm = dlsym(handle, "cblas_dgemm");
  *(void **)&library.cgemm = dlsym(handle, "cblas_cgemm");
  if (!library.sgemm || !library.dgemm || !library.cgemm) {
    (void)dlclose(handle);
    return false;
  }
  if (c->threads) *(void **)&library.set_threads = dlsym(handle, c->threads);
  library.quick = !c->plain && knows_processor(handle);
  library.handle = handle;
  return true;
}

static void open_any(void)
{
  for (int i = 0; i < CANDIDATES && !library.is; i++)
    if (open_one(&candidates[i])) library.is = &candidates[i];
}

static bool blas_wanted(void)
{
  weir_blas which = weir_get_blas();
  if (which == WEIR_BLAS_BUILTIN) return false;
  (void)pthread_once(&once, open_any);
  return library.is && (library.quick || which == WEIR_BLAS_VENDOR);
}

const char *weir_cpu_blas_name(void)
{
  return blas_wanted() ? library.is->file : "builtin";
}

/* ---- products -------------------------------------------------------------------------------- */

void *cpu_blas_library(const char **name)
{
  if (!blas_wanted()) return NULL;
  if (name) *name = library.is->file;
  return library.handle;
}

void cpu_blas_threads(int n)
{
  if (!library.set_threads || atomic_load_explicit(&library.threads, memory_order_relaxed) == n)
    return;
  if (atomic_exchange(&library.threads, n) != n) library.set_threads(n);
}

static bool sizes_fit_int(const weir_gemm *g)
{
  return g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX && g->lda <= INT_MAX &&
         g->ldb <= INT_MAX && g->ldc <= INT_MAX;
}

/* CBLAS wants leading dimensions of at least a row, also where there is one row. */
static int leading(int64_t ld, int64_t row)
{
  return (int)(ld < row ? row : ld);
}

static void call_blas(const weir_gemm *g)
{
  int ta = g->transa ? TRANSPOSED : PLAIN, tb = g->transb ? TRANSPOSED : PLAIN;
  int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  int lda = leading(g->lda, g->transa ? g->m : g->k), ldc = leading(g->ldc, g->n);
  int ldb = leading(g->ldb, g->transb ? g->k : g->n);
  float alpha[2] = {(float)g->alpha, 0}, beta[2] = {(float)g->beta, 0};
  if (g->dtype == WEIR_FLOAT32)
    library.sgemm(ROW_MAJOR, ta, tb, m, n, k, alpha[0], g->a, lda, g->b, ldb, beta[0], g->c, ldc);
  else if (g->dtype == WEIR_FLOAT64)
    library.dgemm(ROW_MAJOR, ta, tb, m, n, k, g->alpha, g->a, lda, g->b, ldb, g->beta, g->c, ldc);
  else
    library.cgemm(ROW_MAJOR, ta, tb, m, n, k, alpha, g->a, lda, g->b, ldb, beta, g->c, ldc);
}

weir_status cpu_gemm_blas(const weir_gemm *g, bool *done)
{
  bool types = g->dtype == WEIR_FLOAT32 || g->dtype == WEIR_FLOAT64 || g->dtype == WEIR_COMPLEX64;
  *done = types && sizes_fit_int(g) && blas_wanted();
  if (*done) {
    cpu_blas_threads(weir_get_num_threads());
    call_blas(g);
  } else if (types && weir_get_blas() == WEIR_BLAS_VENDOR && !library.is)
    return fail_unsupported(
        "a BLAS library was asked for (WEIR_BLAS_VENDOR) and none can be opened: libopenblas.so.0, "
        "libmkl_rt.so.2, libblis.so.4, libcblas.so.3, libblas.so.3");
  return WEIR_OK;
}
