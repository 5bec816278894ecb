/* others.cu: random numbers and im2col: weir_random, weir_im2col. */
#include "cuda/kernels/number.h"

#include "core/backend/philox.h"

/* A thread makes the two elements of a block of words at a time (philox.h). */
WEIR_FN void random_pair(const weir_random &r, uint64_t seed, uint64_t offset, int64_t pair)
{
  bool places = r.kind == WEIR_RANDOM_PERMUTATION;
  philox_block b = philox(seed, offset + (places ? 0 : (uint64_t)pair));
  int64_t at[2] = {2 * pair, 2 * pair + 1};
  double x[2];
  if (!places)
    WEIR_UNROLL for (int j = 0; j < 2; j++) x[j] =
        philox_number(r.kind, r.dtype, r.a, r.b, b.word[2 * j], b.word[2 * j + 1]);
  if (places)
    WEIR_ROLLED for (int j = 0; j < 2; j++) x[j] =
        at[j] < r.count ? (double)philox_place(b, (int64_t)r.a, (int)r.b, at[j]) : 0;
  scatter<double, 2>(r.out, r.dtype, at, at[1] < r.count ? 2 : 1, x);
}

WEIR_BLOCK_KERNEL(weir_random_any, WEIR_THREADS, WEIR_GIVEN k_random a)
{
  WEIR_EACH_THREAD
  {
    int64_t pairs = (a.of.count + 1) / 2, step = (int64_t)gridDim.x * WEIR_THREADS;
    uint64_t seed = a.of.base ? a.of.base[0] : a.of.seed;
    uint64_t offset = a.of.base ? a.of.offset + a.of.base[1] : a.of.offset;
    for (int64_t i = (int64_t)blockIdx.x * WEIR_THREADS + threadIdx.x; i < pairs; i += step)
      random_pair(a.of, seed, offset, i);
  }
}

/* An element of out at a time, neighbours side by side. Images and channels are both planes:
 * out[plane][r][s][y][x]. */
template <typename T> WEIR_FN void im2col_element(const k_im2col &a, uint32_t i)
{
  uint32_t x, y, s, r, p = divided(i, a.ox, &x);
  p = divided(p, a.oy, &y);
  p = divided(p, a.s, &s);
  p = divided(p, a.r, &r);
  int64_t row = (int64_t)y * a.stride[0] - a.pad[0] + (int64_t)r * a.dilation[0];
  int64_t column = (int64_t)x * a.stride[1] - a.pad[1] + (int64_t)s * a.dilation[1];
  bool inside = row >= 0 && row < a.h && column >= 0 && column < a.w;
  const T *plane = (const T *)a.in + p * a.plane;
  ((T *)a.out)[i] = inside ? plane[row * a.w + column] : (T)0;
}

#define WEIR_K_IM2COL(bytes, type)                                                                 \
  WEIR_BLOCK_KERNEL(weir_im2col_##bytes, WEIR_THREADS, WEIR_GIVEN k_im2col a)                      \
  {                                                                                                \
    WEIR_EACH_THREAD                                                                               \
    {                                                                                              \
      uint32_t step = gridDim.x * WEIR_THREADS, i = blockIdx.x * WEIR_THREADS + threadIdx.x;       \
      for (; i < a.count; i += step)                                                               \
        im2col_element<type>(a, i);                                                                \
    }                                                                                              \
  }
WEIR_K_IM2COL(1, uint8_t)
WEIR_K_IM2COL(2, uint16_t)
WEIR_K_IM2COL(4, uint32_t)
WEIR_K_IM2COL(8, uint64_t)
