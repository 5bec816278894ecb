/* thin.cu: products of few rows: weir_gemm where A has at most WEIR_K_THIN rows (or, with both
 * transposed and C written across, B as few columns): a vector by a matrix, a small batch by a
 * layer's weights. Such a product reads each element of B once and does little with it, so memory
 * is what it takes time for: no tiles, B goes from memory into registers once, for all rows.
 *
 * A block makes a few columns of C (gemm.c states how many), each by as many threads as there are
 * for it: where B lies along k (transb) they read it side by side, else columns lie side by side.
 * Four elements of B are on their way at once in each thread. The parts of a sum meet in shared
 * memory, always in the same order. */
#include "cuda/kernels/op.h"

enum { AT_ONCE = 4 };

template <typename M> struct partial_sums {
  M at[WEIR_K_THIN][WEIR_THREADS];
};

/* Adds the products of `COUNT` elements of B, `step` apart in k. */
template <typename T, typename M, int COUNT>
WEIR_FN void add_products(const k_gemm &g, M *sum, const T *a, const T *b, int64_t j, int64_t p,
                          int step)
{
  M v[COUNT];
  WEIR_UNROLL for (int u = 0; u < COUNT; u++)
  {
    int64_t q = p + (int64_t)u * step;
    v[u] = to<M>(b[g.transb ? j * g.ldb + q : q * g.ldb + j]);
  }
  WEIR_UNROLL for (int r = 0; r < WEIR_K_THIN; r++)
  {
    if (r >= g.m) continue;
    WEIR_UNROLL for (int u = 0; u < COUNT; u++)
    {
      int64_t q = p + (int64_t)u * step;
      sum[r] = plus(sum[r], times(to<M>(a[g.transa ? q * g.lda + r : r * g.lda + q]), v[u]));
    }
  }
}

template <typename T, typename M> WEIR_FN void thin(WEIR_PLACE_COMMA const k_gemm &g)
{
  typedef partial_sums<M> sums_type;
  WEIR_SHARED alignas(16) sums_type sums;
  int across = g.across, parts = WEIR_THREADS / across;
  int64_t column0 = (int64_t)blockIdx.x * across, matrix = g.first + blockIdx.z;
  const T *a = (const T *)g.a + matrix * g.stepa, *b = (const T *)g.b + matrix * g.stepb;
  WEIR_PHASE
  {
    int t = (int)threadIdx.x, part = g.transb ? t % parts : t / across;
    int64_t j = column0 + (g.transb ? t / parts : t % across), p = part;
    M sum[WEIR_K_THIN];
    WEIR_UNROLL for (int r = 0; r < WEIR_K_THIN; r++) sum[r] = to<M>(0);
    if (j < g.n) {
      for (; p + (AT_ONCE - 1) * parts < g.k; p += AT_ONCE * parts)
        add_products<T, M, AT_ONCE>(g, sum, a, b, j, p, parts);
      for (; p < g.k; p += parts)
        add_products<T, M, 1>(g, sum, a, b, j, p, parts);
    }
    WEIR_UNROLL for (int r = 0; r < WEIR_K_THIN; r++) sums.at[r][t] = sum[r];
  }
  WEIR_EACH_THREAD
  {
    int column = (int)threadIdx.x % across, row = (int)threadIdx.x / across;
    int64_t j = column0 + column;
    if (row >= WEIR_K_THIN || row >= g.m || j >= g.n) continue;
    M sum = to<M>(0);
    for (int q = 0; q < parts; q++)
      sum = plus(sum, sums.at[row][g.transb ? column * parts + q : q * across + column]);
    T *c = (T *)g.c + matrix * g.stepc + (g.flipped ? j * g.ldc + row : row * g.ldc + j);
    if (g.scaled) sum = times(given<M>(g.alpha), sum);
    if (g.has_beta) sum = plus(sum, times(given<M>(g.beta), to<M>(*c)));
    *c = to<T>(sum);
  }
}

#define WEIR_K_THIN_KERNEL(name, type, math)                                                       \
  WEIR_BLOCK_KERNEL(weir_thin_##name, WEIR_THREADS, WEIR_GIVEN k_gemm g)                           \
  {                                                                                                \
    thin<type, math>(WEIR_HERE_COMMA g);                                                           \
  }
WEIR_K_THIN_KERNEL(float32, float, float)
WEIR_K_THIN_KERNEL(float16, f16, float)
WEIR_K_THIN_KERNEL(bfloat16, bf16, float)
WEIR_K_THIN_KERNEL(float64, double, double)
WEIR_K_THIN_KERNEL(complex64, c64, c64)
