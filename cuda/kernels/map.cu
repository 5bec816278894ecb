/* map.cu: elementwise operations: weir_loop.
 *
 * flat: all operands contiguous and of one dtype: 16 bytes of each at a time. strided: any dtypes
 * and strides, an element's place by division; a kernel for each kind of arithmetic. copy: the same
 * for elements that stay as they are. turn: a copy that makes rows of columns, by squares in shared
 * memory, so that both sides are read and written in rows.
 */
#include "cuda/kernels/op.h"

/* ---- flat -------------------------------------------------------------------------------------
 */

template <typename T, int N> struct alignas(sizeof(T) * N) vector_of {
  T element[N];
};

/* T elements at i; a number where there is no memory. */
template <typename T, typename M, int N>
WEIR_FN void load(M *x, const void *data, const k_number &number, int64_t i, bool whole, int left)
{
  if (!data) {
    WEIR_UNROLL for (int j = 0; j < N; j++) x[j] = given<M>(number);
    return;
  }
  const T *from = (const T *)data + i;
  vector_of<T, N> v = {};
  if (whole) {
    v = *(const vector_of<T, N> *)from;
  } else {
    WEIR_UNROLL for (int j = 0; j < N; j++) if (j < left) v.element[j] = from[j];
  }
  WEIR_UNROLL for (int j = 0; j < N; j++) x[j] = to<M>(v.element[j]);
}

template <typename T, typename M, int N>
WEIR_FN void store(void *data, int64_t i, bool whole, int left, const M *x)
{
  T *at = (T *)data + i;
  vector_of<T, N> v;
  WEIR_UNROLL for (int j = 0; j < N; j++) v.element[j] = to<T>(x[j]);
  if (whole) {
    *(vector_of<T, N> *)at = v;
    return;
  }
  WEIR_UNROLL for (int j = 0; j < N; j++) if (j < left) at[j] = v.element[j];
}

template <typename T, typename M, int N> WEIR_FN void flat_elements(const k_flat &a, int64_t i)
{
  int left = a.count - i < N ? (int)(a.count - i) : N;
  bool whole = a.vector && left == N;
  M x[N], y[N];
  load<T, M, N>(x, a.in[0], a.number[0], i, whole, left);
  load<T, M, N>(y, a.in[1], a.number[1], i, whole, left);
  if (a.op == WEIR_OP_RANGE) {
    WEIR_UNROLL for (int j = 0; j < N; j++) x[j] = ranged<M>(a, a.first + i + j);
  } else if (a.op == WEIR_OP_WHERE) {
    WEIR_UNROLL for (int j = 0; j < N; j++) if (j < left) x[j] = a.chosen[i + j] ? x[j] : y[j];
  } else {
    apply<M, N>(a, x, x, y);
  }
  if (a.out_bool)
    store<b8, M, N>(a.out, i, whole, left, x);
  else
    store<T, M, N>(a.out, i, whole, left, x);
}

template <typename T, int N> WEIR_FN void flat(WEIR_PLACE_COMMA const k_flat &a)
{
  int64_t step = (int64_t)gridDim.x * WEIR_THREADS * N;
  WEIR_EACH_THREAD
  {
    int64_t i = ((int64_t)blockIdx.x * WEIR_THREADS + threadIdx.x) * N;
    for (; i < a.count; i += step)
      flat_elements<T, typename math_of<T>::type, N>(a, i);
  }
}

#define WEIR_K_FLAT(name, type, elements)                                                          \
  WEIR_BLOCK_KERNEL(weir_flat_##name, WEIR_THREADS, WEIR_GIVEN k_flat a)                           \
  {                                                                                                \
    flat<type, elements>(WEIR_HERE_COMMA a);                                                       \
  }
WEIR_K_FLAT(int32, int32_t, 4)
WEIR_K_FLAT(int64, int64_t, 2)
WEIR_K_FLAT(float16, f16, 8)
WEIR_K_FLAT(bfloat16, bf16, 8)
WEIR_K_FLAT(float32, float, 4)
WEIR_K_FLAT(float64, double, 2)
WEIR_K_FLAT(complex64, c64, 2)

/* ---- strided ----------------------------------------------------------------------------------
 */

/* The places of elements i, i + WEIR_THREADS, ...: of out, the inputs, the condition. */
struct places {
  int32_t out[WEIR_EACH], in[2][WEIR_EACH], chosen[WEIR_EACH];
};

WEIR_FN void find(const k_strided &a, uint32_t i, int j, places *at)
{
  int32_t out = 0, x = 0, y = 0, c = 0;
  WEIR_UNROLL for (int d = WEIR_DIMS - 1; d >= 0; d--)
  {
    if (d >= a.dims) continue;
    uint32_t k = i;
    if (d) i = divided(i, a.size[d], &k);
    out += (int32_t)k * a.out.stride[d];
    x += (int32_t)k * a.in[0].stride[d];
    y += (int32_t)k * a.in[1].stride[d];
    c += (int32_t)k * a.chosen.stride[d];
  }
  at->out[j] = out;
  at->in[0][j] = x;
  at->in[1][j] = y;
  at->chosen[j] = c;
}

template <typename M>
WEIR_FN void input(M *x, const k_operand &o, const k_number &number, const int32_t *at, int count,
                   int compute)
{
  WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) x[j] = given<M>(number);
  if (!o.data) return;
  if (std::is_same<M, int64_t>::value && compute == WEIR_BOOL) {
    b8 truth[WEIR_EACH]; /* a half is not 0, though cut to an integer it is */
    gather<b8, WEIR_EACH>(truth, o.data, o.dtype, at, count);
    WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) x[j] = to<M>(truth[j]);
    return;
  }
  gather<M, WEIR_EACH>(x, o.data, o.dtype, at, count);
  if (o.dtype == compute) return;
  WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) x[j] = narrowed(x[j], compute);
}

template <typename M> WEIR_FN void strided_elements(const k_strided &a, uint32_t first)
{
  uint32_t left = (a.count - first + WEIR_THREADS - 1) / WEIR_THREADS;
  int count = left < WEIR_EACH ? (int)left : WEIR_EACH;
  M x[WEIR_EACH], y[WEIR_EACH];
  places at;
  WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) if (j < count)
      find(a, first + (uint32_t)j * WEIR_THREADS, j, &at);
  input(x, a.in[0], a.number[0], at.in[0], count, a.compute);
  input(y, a.in[1], a.number[1], at.in[1], count, a.compute);
  if (a.op == WEIR_OP_RANGE) {
    WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) x[j] =
        ranged<M>(a, a.first + first + (int64_t)j * WEIR_THREADS);
  } else if (a.op == WEIR_OP_WHERE) {
    const uint8_t *chosen = (const uint8_t *)a.chosen.data;
    WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) if (j < count) x[j] =
        chosen[at.chosen[j]] ? x[j] : y[j];
  } else {
    apply<M, WEIR_EACH>(a, x, x, y);
  }
  WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++) x[j] = narrowed(x[j], a.compute);
  scatter<M, WEIR_EACH>(a.out.data, a.out.dtype, at.out, count, x);
}

template <typename M> WEIR_FN void strided(WEIR_PLACE_COMMA const k_strided &a)
{
  WEIR_EACH_THREAD
  {
    uint32_t step = gridDim.x * WEIR_THREADS * WEIR_EACH;
    uint32_t i = blockIdx.x * WEIR_THREADS * WEIR_EACH + threadIdx.x;
    for (; i < a.count; i = i + step < i ? a.count : i + step)
      strided_elements<M>(a, i);
  }
}

#define WEIR_K_STRIDED(name, type)                                                                 \
  WEIR_BLOCK_KERNEL(weir_strided_##name, WEIR_THREADS, WEIR_GIVEN k_strided a)                     \
  {                                                                                                \
    strided<type>(WEIR_HERE_COMMA a);                                                              \
  }
WEIR_K_STRIDED(integer, int64_t)
WEIR_K_STRIDED(float32, float)
WEIR_K_STRIDED(float64, double)
WEIR_K_STRIDED(complex64, c64)

/* ---- copies of elements as they are -----------------------------------------------------------
 */

template <typename T> WEIR_FN void copy_elements(const k_strided &a, uint32_t first)
{
  T x[WEIR_EACH];
  int32_t out[WEIR_EACH];
  WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++)
  {
    uint32_t i = first + (uint32_t)j * WEIR_THREADS;
    int32_t in = 0;
    out[j] = 0;
    if (i >= a.count || i < first) continue;
    WEIR_UNROLL for (int d = WEIR_DIMS - 1; d >= 0; d--)
    {
      if (d >= a.dims) continue;
      uint32_t k = i;
      if (d) i = divided(i, a.size[d], &k);
      out[j] += (int32_t)k * a.out.stride[d];
      in += (int32_t)k * a.in[0].stride[d];
    }
    x[j] = ((const T *)a.in[0].data)[in];
  }
  WEIR_UNROLL for (int j = 0; j < WEIR_EACH; j++)
  {
    uint32_t i = first + (uint32_t)j * WEIR_THREADS;
    if (i < a.count && i >= first) ((T *)a.out.data)[out[j]] = x[j];
  }
}

template <typename T> WEIR_FN void copy(WEIR_PLACE_COMMA const k_strided &a)
{
  WEIR_EACH_THREAD
  {
    uint32_t step = gridDim.x * WEIR_THREADS * WEIR_EACH;
    uint32_t i = blockIdx.x * WEIR_THREADS * WEIR_EACH + threadIdx.x;
    for (; i < a.count; i = i + step < i ? a.count : i + step)
      copy_elements<T>(a, i);
  }
}

template <typename T> WEIR_FN void turn(WEIR_PLACE_COMMA const k_turn &a)
{
  WEIR_SHARED T square[WEIR_TILE][WEIR_TILE + 1];
  uint32_t across = (a.columns + WEIR_TILE - 1) / WEIR_TILE;
  uint32_t x0 = blockIdx.x % across * WEIR_TILE, y0 = blockIdx.x / across * WEIR_TILE;
  const uint32_t rows = WEIR_THREADS / WEIR_TILE;
  for (uint32_t z = blockIdx.y; z < a.others; z += gridDim.y) {
    int64_t in = 0, out = 0;
    uint32_t i = z;
    for (int d = a.dims - 1; d >= 0; d--) {
      uint32_t k;
      i = divided(i, a.size[d], &k);
      in += k * a.in_stride[d];
      out += k * a.out_stride[d];
    }
    WEIR_PHASE
    {
      uint32_t y = y0 + threadIdx.x % WEIR_TILE;
      for (uint32_t r = threadIdx.x / WEIR_TILE; r < WEIR_TILE; r += rows)
        if (x0 + r < a.columns && y < a.rows)
          square[r][y - y0] = ((const T *)a.in)[in + (x0 + r) * a.in_column + y];
    }
    WEIR_PHASE
    {
      uint32_t x = x0 + threadIdx.x % WEIR_TILE;
      for (uint32_t r = threadIdx.x / WEIR_TILE; r < WEIR_TILE; r += rows)
        if (y0 + r < a.rows && x < a.columns)
          ((T *)a.out)[out + (y0 + r) * a.out_row + x] = square[x - x0][r];
    }
  }
}

#define WEIR_K_COPY(bytes, type)                                                                   \
  WEIR_BLOCK_KERNEL(weir_copy_##bytes, WEIR_THREADS, WEIR_GIVEN k_strided a)                       \
  {                                                                                                \
    copy<type>(WEIR_HERE_COMMA a);                                                                 \
  }                                                                                                \
  WEIR_BLOCK_KERNEL(weir_turn_##bytes, WEIR_THREADS, WEIR_GIVEN k_turn a)                          \
  {                                                                                                \
    turn<type>(WEIR_HERE_COMMA a);                                                                 \
  }
WEIR_K_COPY(1, uint8_t)
WEIR_K_COPY(2, uint16_t)
WEIR_K_COPY(4, uint32_t)
WEIR_K_COPY(8, uint64_t)
