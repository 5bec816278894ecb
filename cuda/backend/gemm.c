/* gemm.c: products of matrices (weir_gemm): by cuBLAS where it is (blas.c), else by the kernels of
 * cuda/kernels/gemm.cu, in tiles of 128 x 128, or of 64 x 64 where these would leave processors
 * idle. Where C has few rows or few columns (thin.cu) a tile would be mostly nothing, and reading
 * the one large matrix is all the work: it is read once, by as many blocks as can be. */
#include "cuda/backend/launch.h"

static const struct product {
  int16_t large, small; /* kernels, tiles of 128 and 64; -1: none */
  int16_t thin;         /* few rows; -1: none */
} products[WEIR_DTYPES] = {
#define BOTH(name)  WEIR_KERNEL_gemm_##name, WEIR_KERNEL_gemm_small_##name, WEIR_KERNEL_thin_##name
#define ONE(name)   -1, WEIR_KERNEL_gemm_##name, WEIR_KERNEL_thin_##name
#define WHOLE(name) -1, WEIR_KERNEL_gemm_##name, -1
    [WEIR_UINT8] = {WHOLE(uint8)},      [WEIR_INT8] = {WHOLE(int8)},
    [WEIR_INT16] = {WHOLE(int16)},      [WEIR_INT32] = {WHOLE(int32)},
    [WEIR_INT64] = {WHOLE(int64)},      [WEIR_FLOAT16] = {BOTH(float16)},
    [WEIR_BFLOAT16] = {BOTH(bfloat16)}, [WEIR_FLOAT32] = {BOTH(float32)},
    [WEIR_FLOAT64] = {ONE(float64)},    [WEIR_COMPLEX64] = {ONE(complex64)}};

static int64_t tiles(const weir_gemm *g, int64_t tile)
{
  return ((g->m + tile - 1) / tile) * ((g->n + tile - 1) / tile);
}

static k_number factor(const weir_gemm *g, double x)
{
  weir_number n = {.dtype = WEIR_FLOAT64, .f = x};
  return k_number_of(&n, g->dtype);
}

static k_gemm argument(const weir_gemm *g)
{
  return (k_gemm){.a = g->a,
                  .b = g->b,
                  .c = g->c,
                  .m = g->m,
                  .n = g->n,
                  .k = g->k,
                  .lda = g->lda,
                  .ldb = g->ldb,
                  .ldc = g->ldc,
                  .stepa = g->stepa,
                  .stepb = g->stepb,
                  .stepc = g->stepc,
                  .transa = g->transa,
                  .transb = g->transb,
                  .alpha = factor(g, g->alpha),
                  .beta = factor(g, g->beta),
                  .has_beta = g->beta != 0,
                  .scaled = g->alpha != 1};
}

/* C's transpose is B's by A's. */
static void flip(k_gemm *a)
{
  k_gemm was = *a;
  a->a = was.b, a->lda = was.ldb, a->stepa = was.stepb, a->transa = !was.transb;
  a->b = was.a, a->ldb = was.lda, a->stepb = was.stepa, a->transb = !was.transa;
  a->m = was.n, a->n = was.m, a->flipped = 1;
}

/* Columns that a block of a thin product makes: fewer where there are not enough blocks for all
 * processors, but as many as lie in the 32 bytes that memory gives at least. */
static int32_t columns_of(cuda_device_state *d, const k_gemm *a)
{
  int32_t across = a->transb ? 8 : 16, least = a->transb ? 1 : 8;
  while (across > 1 && (across > least || across > a->n) &&
         (a->n + across - 1) / across < cuda_processors(d))
    across /= 2;
  return across;
}

static weir_status builtin(cuda_device_state *d, void *stream, const weir_gemm *g)
{
  const struct product *p = &products[g->dtype];
  bool large = p->large >= 0 && tiles(g, 128) * g->batch >= cuda_processors(d);
  bool thin = p->thin >= 0 && (g->m <= WEIR_K_THIN || g->n <= WEIR_K_THIN);
  k_gemm a = argument(g);
  if (thin && g->n < g->m) flip(&a);
  int64_t blocks = tiles(g, large ? 128 : 64), most = 65535;
  a.across = thin ? columns_of(d, &a) : 0;
  if (thin) blocks = (a.n + a.across - 1) / a.across;
  if (blocks > INT32_MAX)
    return cuda_unsupported("matmul: a product of %lld x %lld is too large", (long long)g->m,
                            (long long)g->n);
  weir_status st = WEIR_OK;
  for (; a.first < g->batch && !st; a.first += most) {
    int64_t left = g->batch - a.first;
    launch_grid grid = {(uint32_t)blocks, 1, (uint32_t)(left < most ? left : most)};
    enum kernel_id k = (enum kernel_id)(thin ? p->thin : large ? p->large : p->small);
    st = cuda_launch(d, stream, k, grid, &a, "matmul");
  }
  return st;
}

weir_status cuda_gemm(void *self, void *stream, const weir_gemm *g)
{
  bool done = false;
  if (!products[g->dtype].small) return cuda_no_kernel("addmm_impl", g->dtype);
  weir_status st = cuda_blas(self, stream, g, &done);
  return st || done ? st : builtin(self, stream, g);
}
