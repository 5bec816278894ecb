/* gemm.cu: products of matrices: weir_gemm.
 *
 * A block makes a tile of C; a thread SIDE x SIDE of its elements, in groups of 4 x 4 that lie
 * apart, so that neighbours read neighbouring shared memory. Slices of A and B, DEEP long, pass
 * through shared memory in two buffers: while one is multiplied, the next is on its way in
 * registers, so one barrier a slice is enough. float16 and bfloat16 are multiplied as float.
 */
#include "cuda/kernels/op.h"

enum { DEEP = 8, PAD = 4 /* keeps rows apart in the banks of shared memory */ };

template <typename M> struct alignas(16) four {
  M of[4];
};

template <typename M, int TILE> struct slice {
  M at[DEEP][TILE + PAD];
};

/* What a thread keeps: its elements of C, and of the next slices. */
template <typename T, typename M, int SIDE, int LOADS> struct kept {
  M sum[SIDE][SIDE];
  T a[LOADS], b[LOADS];
};

/* Place of load i of thread t in a slice: along the slice where memory lies so, else across it. */
template <int TILE> WEIR_FN void place(uint32_t t, int i, bool along_deep, int *deep, int *across)
{
  *deep = along_deep ? (int)t % DEEP : (int)t / TILE + i * (WEIR_THREADS / TILE);
  *across = along_deep ? (int)t / DEEP + i * (WEIR_THREADS / DEEP) : (int)t % TILE;
}

/* Elements of the slice that begins at k0, of the rows (columns) from `first` on; 0 outside. */
template <typename T, int TILE, int LOADS>
WEIR_FN void fetch(T *x, const T *from, int64_t ld, bool along_deep, uint32_t t, int64_t k0,
                   int64_t k, int64_t first, int64_t count)
{
  WEIR_UNROLL for (int i = 0; i < LOADS; i++)
  {
    int deep, across;
    place<TILE>(t, i, along_deep, &deep, &across);
    int64_t row = first + across, column = k0 + deep;
    bool inside = row < count && column < k;
    x[i] = inside ? from[along_deep ? row * ld + column : column * ld + row] : T{};
  }
}

template <typename T, typename M, int TILE, int LOADS>
WEIR_FN void put(slice<M, TILE> *s, const T *x, bool along_deep, uint32_t t)
{
  WEIR_UNROLL for (int i = 0; i < LOADS; i++)
  {
    int deep, across;
    place<TILE>(t, i, along_deep, &deep, &across);
    s->at[deep][across] = to<M>(x[i]);
  }
}

/* Element i of a thread, of TILE. */
template <int TILE, int SIDE> WEIR_FN int element(int thread, int i)
{
  return i / 4 * (TILE / (SIDE / 4)) + thread * 4 + i % 4;
}

template <typename M, int TILE, int SIDE>
WEIR_FN void multiply(M (*sum)[SIDE], const slice<M, TILE> &a, const slice<M, TILE> &b, uint32_t t)
{
  int row = (int)t / (TILE / SIDE), column = (int)t % (TILE / SIDE);
  WEIR_UNROLL for (int d = 0; d < DEEP; d++)
  {
    four<M> x[SIDE / 4], y[SIDE / 4];
    WEIR_UNROLL for (int g = 0; g < SIDE / 4; g++)
    {
      x[g] = *(const four<M> *)&a.at[d][element<TILE, SIDE>(row, 4 * g)];
      y[g] = *(const four<M> *)&b.at[d][element<TILE, SIDE>(column, 4 * g)];
    }
    WEIR_UNROLL for (int i = 0; i < SIDE; i++)
    {
      WEIR_UNROLL for (int j = 0; j < SIDE; j++) sum[i][j] =
          plus(sum[i][j], times(x[i / 4].of[i % 4], y[j / 4].of[j % 4]));
    }
  }
}

template <typename T, typename M, int TILE, int SIDE>
WEIR_FN void finish(const k_gemm &g, const M (*sum)[SIDE], T *c, uint32_t t, int64_t row0,
                    int64_t column0)
{
  int row = (int)t / (TILE / SIDE), column = (int)t % (TILE / SIDE);
  M alpha = given<M>(g.alpha), beta = given<M>(g.beta);
  WEIR_UNROLL for (int i = 0; i < SIDE; i++)
  {
    int64_t y = row0 + element<TILE, SIDE>(row, i);
    if (y >= g.m) continue;
    WEIR_UNROLL for (int j = 0; j < SIDE; j++)
    {
      int64_t x = column0 + element<TILE, SIDE>(column, j);
      if (x >= g.n) continue;
      T *at = c + y * g.ldc + x;
      M v = g.scaled ? times(alpha, sum[i][j]) : sum[i][j];
      if (g.has_beta) v = plus(v, times(beta, to<M>(*at)));
      *at = to<T>(v);
    }
  }
}

template <typename T, typename M, int TILE, int SIDE>
WEIR_FN void gemm(WEIR_PLACE_COMMA const k_gemm &g)
{
  const int LOADS = TILE * DEEP / WEIR_THREADS;
  typedef kept<T, M, SIDE, LOADS> kept_type;
  typedef slice<M, TILE> slice_type;
  WEIR_SHARED alignas(16) slice_type sa[2];
  WEIR_SHARED alignas(16) slice_type sb[2];
  WEIR_PRIVATE(kept_type, kept_of, WEIR_THREADS);
  int64_t tiles = (g.n + TILE - 1) / TILE, slices = (g.k + DEEP - 1) / DEEP;
  int64_t row0 = blockIdx.x / tiles * TILE, column0 = blockIdx.x % tiles * TILE;
  int64_t matrix = g.first + blockIdx.z;
  const T *a = (const T *)g.a + matrix * g.stepa, *b = (const T *)g.b + matrix * g.stepb;
  bool deep_a = !g.transa, deep_b = g.transb;
  WEIR_PHASE
  {
    kept_type &me = WEIR_MINE(kept_of);
    WEIR_UNROLL for (int i = 0; i < SIDE * SIDE; i++) me.sum[i / SIDE][i % SIDE] = to<M>(0);
    fetch<T, TILE, LOADS>(me.a, a, g.lda, deep_a, threadIdx.x, 0, g.k, row0, g.m);
    fetch<T, TILE, LOADS>(me.b, b, g.ldb, deep_b, threadIdx.x, 0, g.k, column0, g.n);
    put<T, M, TILE, LOADS>(&sa[0], me.a, deep_a, threadIdx.x);
    put<T, M, TILE, LOADS>(&sb[0], me.b, deep_b, threadIdx.x);
  }
  for (int64_t s = 0; s < slices; s++) {
    int now = (int)(s & 1);
    int64_t k0 = (s + 1) * DEEP;
    WEIR_PHASE
    {
      kept_type &me = WEIR_MINE(kept_of);
      if (s + 1 < slices) {
        fetch<T, TILE, LOADS>(me.a, a, g.lda, deep_a, threadIdx.x, k0, g.k, row0, g.m);
        fetch<T, TILE, LOADS>(me.b, b, g.ldb, deep_b, threadIdx.x, k0, g.k, column0, g.n);
      }
      multiply<M, TILE, SIDE>(me.sum, sa[now], sb[now], threadIdx.x);
      if (s + 1 < slices) {
        put<T, M, TILE, LOADS>(&sa[1 - now], me.a, deep_a, threadIdx.x);
        put<T, M, TILE, LOADS>(&sb[1 - now], me.b, deep_b, threadIdx.x);
      }
    }
  }
  WEIR_EACH_THREAD
  {
    kept_type &me = WEIR_MINE(kept_of);
    finish<T, M, TILE, SIDE>(g, me.sum, (T *)g.c + matrix * g.stepc, threadIdx.x, row0, column0);
  }
}

#define WEIR_K_GEMM(name, type, math, tile, side)                                                  \
  WEIR_BLOCK_KERNEL(weir_gemm_##name, WEIR_THREADS, WEIR_GIVEN k_gemm g)                           \
  {                                                                                                \
    gemm<type, math, tile, side>(WEIR_HERE_COMMA g);                                               \
  }
WEIR_K_GEMM(float32, float, float, 128, 8)
WEIR_K_GEMM(float16, f16, float, 128, 8)
WEIR_K_GEMM(bfloat16, bf16, float, 128, 8)
WEIR_K_GEMM(small_float32, float, float, 64, 4)
WEIR_K_GEMM(small_float16, f16, float, 64, 4)
WEIR_K_GEMM(small_bfloat16, bf16, float, 64, 4)
WEIR_K_GEMM(float64, double, double, 64, 4)
WEIR_K_GEMM(complex64, c64, c64, 64, 4)
WEIR_K_GEMM(uint8, uint8_t, int32_t, 64, 4)
WEIR_K_GEMM(int8, int8_t, int32_t, 64, 4)
WEIR_K_GEMM(int16, int16_t, int32_t, 64, 4)
WEIR_K_GEMM(int32, int32_t, int32_t, 64, 4)
WEIR_K_GEMM(int64, int64_t, int64_t, 64, 4)
