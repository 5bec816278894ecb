/* window.cu: pooling and interpolation: weir_pool, weir_resample. A thread makes one element of
 * what is written at a time, from all that it is made of; window.h has which places these are.
 * Nothing is added to by two threads, so that sums have one order. */
#include "cuda/kernels/number.h"

#include "core/backend/window.h"

/* Element i of planes of these sizes: its plane, which is returned, and its places. */
template <typename A> WEIR_FN int64_t place_of(const A &a, uint32_t i, int64_t *at)
{
  uint32_t x, y, z, plane = divided(i, a.x, &x);
  plane = divided(plane, a.y, &y);
  plane = divided(plane, a.z, &z);
  at[0] = z;
  at[1] = y;
  at[2] = x;
  return plane;
}

/* ---- pooling --------------------------------------------------------------------------------- */

template <typename T> WEIR_FN T lowest_of()
{
  if constexpr (std::is_same<T, f16>::value)
    return f16{0xfc00};
  else if constexpr (std::is_same<T, bf16>::value)
    return bf16{0xff80};
  else
    return (T)-INFINITY;
}

WEIR_FN int64_t lowest_integer(int dtype)
{
  return dtype == WEIR_UINT8   ? 0
         : dtype == WEIR_INT8  ? INT8_MIN
         : dtype == WEIR_INT16 ? INT16_MIN
         : dtype == WEIR_INT32 ? INT32_MIN
                               : INT64_MIN;
}

/* Elements of one type, known or (void) named by p.dtype. */
template <typename T, typename M>
WEIR_FN M pool_load(const weir_pool &p, const void *data, int64_t at)
{
  if constexpr (std::is_same<T, void>::value) {
    M x[1] = {0};
    gather<M, 1>(x, data, p.dtype, &at, 1);
    return x[0];
  } else {
    return to<M>(((const T *)data)[at]);
  }
}

template <typename T, typename M> WEIR_FN void pool_store(const weir_pool &p, int64_t at, M x)
{
  if constexpr (std::is_same<T, void>::value)
    scatter<M, 1>(p.to, p.dtype, &at, 1, &x);
  else
    ((T *)p.to)[at] = to<T>(x);
}

template <typename T> WEIR_FN void pool_store_lowest(const weir_pool &p, int64_t at)
{
  if constexpr (std::is_same<T, void>::value)
    pool_store<T, int64_t>(p, at, lowest_integer(p.dtype));
  else
    ((T *)p.to)[at] = lowest_of<T>();
}

template <typename T, typename M>
WEIR_FN void pool_max(const weir_pool &p, uint32_t i, int64_t first, const window_span *s)
{
  int64_t rows = p.axis[1].in, columns = p.axis[2].in, place = -1;
  M most = 0;
  for (int64_t z = s[0].from; z < s[0].to; z += s[0].step)
    for (int64_t y = s[1].from; y < s[1].to; y += s[1].step)
      for (int64_t x = s[2].from; x < s[2].to; x += s[2].step) {
        int64_t at = (z * rows + y) * columns + x;
        M v = pool_load<T, M>(p, p.from, first + at);
        if (place < 0 || v > most || v != v) {
          most = v;
          place = at;
        }
      }
  if (place < 0)
    pool_store_lowest<T>(p, i);
  else
    pool_store<T, M>(p, i, most);
  if (place < 0) place = (s[0].from * rows + s[1].from) * columns + s[2].from;
  if (p.index) p.index[i] = place;
}

template <typename T, typename M>
WEIR_FN void pool_average(const weir_pool &p, uint32_t i, int64_t first, const window_span *s)
{
  int64_t rows = p.axis[1].in, columns = p.axis[2].in;
  bool none = s[0].from >= s[0].to || s[1].from >= s[1].to || s[2].from >= s[2].to;
  M sum = 0;
  for (int64_t z = s[0].from; z < s[0].to; z++)
    for (int64_t y = s[1].from; y < s[1].to; y++)
      for (int64_t x = s[2].from; x < s[2].to; x++)
        sum += pool_load<T, M>(p, p.from, first + (z * rows + y) * columns + x);
  pool_store<T, M>(p, i, none ? (M)0 : sum / (M)window_divisor(&p, &s[0], &s[1], &s[2]));
}

template <typename T, typename M>
WEIR_FN void pool_back(const weir_pool &p, uint32_t i, int64_t plane, const int64_t *at)
{
  int64_t first[3], last[3], place = (at[0] * p.axis[1].in + at[1]) * p.axis[2].in + at[2];
  M sum = 0;
  for (int d = 0; d < 3; d++)
    windows_over(&p.axis[d], p.adaptive, at[d], &first[d], &last[d]);
  for (int64_t z = first[0]; z < last[0]; z++)
    for (int64_t y = first[1]; y < last[1]; y++)
      for (int64_t x = first[2]; x < last[2]; x++) {
        int64_t o = ((plane * p.axis[0].out + z) * p.axis[1].out + y) * p.axis[2].out + x;
        if (p.kind == WEIR_POOL_MAX_BACK) {
          if (p.index[o] == place) sum += pool_load<T, M>(p, p.from, o);
          continue;
        }
        window_span s[3] = {window_of(&p.axis[0], p.adaptive, z),
                            window_of(&p.axis[1], p.adaptive, y),
                            window_of(&p.axis[2], p.adaptive, x)};
        sum += pool_load<T, M>(p, p.from, o) / (M)window_divisor(&p, &s[0], &s[1], &s[2]);
      }
  pool_store<T, M>(p, i, sum);
}

template <typename T, typename M> WEIR_FN void pool_element(const k_pool &a, uint32_t i)
{
  int64_t at[3], plane = place_of(a, i, at);
  const weir_pool &p = a.of;
  if (p.kind >= WEIR_POOL_AVERAGE_BACK) {
    if constexpr (!std::is_same<T, void>::value) pool_back<T, M>(p, i, plane, at);
    return;
  }
  window_span s[3];
  for (int d = 0; d < 3; d++)
    s[d] = window_of(&p.axis[d], p.adaptive, at[d]);
  int64_t first = plane * p.axis[0].in * p.axis[1].in * p.axis[2].in;
  if (p.kind == WEIR_POOL_MAX)
    pool_max<T, M>(p, i, first, s);
  else
    pool_average<T, M>(p, i, first, s);
}

#define WEIR_K_POOL(name, type, math)                                                              \
  WEIR_BLOCK_KERNEL(weir_pool_##name, WEIR_THREADS, WEIR_GIVEN k_pool a)                           \
  {                                                                                                \
    WEIR_EACH_THREAD                                                                               \
    {                                                                                              \
      uint32_t step = gridDim.x * WEIR_THREADS, i = blockIdx.x * WEIR_THREADS + threadIdx.x;       \
      for (; i < a.count; i += step)                                                               \
        pool_element<type, math>(a, i);                                                            \
    }                                                                                              \
  }
WEIR_K_POOL(integer, void, int64_t)
WEIR_K_POOL(float16, f16, float)
WEIR_K_POOL(bfloat16, bf16, float)
WEIR_K_POOL(float32, float, float)
WEIR_K_POOL(float64, double, double)

/* ---- interpolation --------------------------------------------------------------------------- */

template <typename T, typename M>
WEIR_FN void resample_forwards(const k_resample &a, uint32_t i, int64_t plane, const int64_t *at)
{
  const weir_resample &r = a.of;
  window_taps t[3];
  for (int d = 0; d < 3; d++)
    t[d] = taps_of(&r, d, a.scale[d], at[d]);
  const T *in = (const T *)r.from + plane * r.in[0] * r.in[1] * r.in[2];
  if (r.kind == WEIR_RESAMPLE_NEAREST || r.kind == WEIR_RESAMPLE_EXACT) {
    ((T *)r.to)[i] = in[(t[0].at[0] * r.in[1] + t[1].at[0]) * r.in[2] + t[2].at[0]];
    return;
  }
  M sum = 0;
  for (int z = 0; z < t[0].count; z++)
    for (int y = 0; y < t[1].count; y++) {
      M part = 0;
      for (int x = 0; x < t[2].count; x++)
        part += to<M>(in[(t[0].at[z] * r.in[1] + t[1].at[y]) * r.in[2] + t[2].at[x]]) *
                (M)t[2].weight[x];
      sum += part * (M)(t[0].weight[z] * t[1].weight[y]);
    }
  ((T *)r.to)[i] = to<T>(sum);
}

template <typename T, typename M>
WEIR_FN void resample_given_back(const k_resample &a, uint32_t i, int64_t plane, const int64_t *at)
{
  const weir_resample &r = a.of;
  int64_t first[3], last[3];
  M sum = 0;
  for (int d = 0; d < 3; d++)
    resampled_over(&r, d, a.scale[d], at[d], &first[d], &last[d]);
  for (int64_t z = first[0]; z < last[0]; z++) {
    window_taps tz = taps_of(&r, 0, a.scale[0], z);
    double wz = tap_weight(&tz, at[0]);
    for (int64_t y = first[1]; y < last[1] && wz != 0; y++) {
      window_taps ty = taps_of(&r, 1, a.scale[1], y);
      double wy = tap_weight(&ty, at[1]) * wz;
      const T *from = (const T *)r.from + ((plane * r.out[0] + z) * r.out[1] + y) * r.out[2];
      for (int64_t x = first[2]; x < last[2] && wy != 0; x++) {
        window_taps tx = taps_of(&r, 2, a.scale[2], x);
        sum += to<M>(from[x]) * (M)(tap_weight(&tx, at[2]) * wy);
      }
    }
  }
  ((T *)r.to)[i] = to<T>(sum);
}

template <typename T, typename M> WEIR_FN void resample_element(const k_resample &a, uint32_t i)
{
  int64_t at[3], plane = place_of(a, i, at);
  if (a.of.back)
    resample_given_back<T, M>(a, i, plane, at);
  else
    resample_forwards<T, M>(a, i, plane, at);
}

#define WEIR_K_RESAMPLE(name, type, math)                                                          \
  WEIR_BLOCK_KERNEL(weir_resample_##name, WEIR_THREADS, WEIR_GIVEN k_resample a)                   \
  {                                                                                                \
    WEIR_EACH_THREAD                                                                               \
    {                                                                                              \
      uint32_t step = gridDim.x * WEIR_THREADS, i = blockIdx.x * WEIR_THREADS + threadIdx.x;       \
      for (; i < a.count; i += step)                                                               \
        resample_element<type, math>(a, i);                                                        \
    }                                                                                              \
  }
WEIR_K_RESAMPLE(uint8, uint8_t, float)
WEIR_K_RESAMPLE(float16, f16, float)
WEIR_K_RESAMPLE(bfloat16, bf16, float)
WEIR_K_RESAMPLE(float32, float, float)
WEIR_K_RESAMPLE(float64, double, double)
