/* reduce.cu: reductions: weir_reduce.
 *
 * Each output has `lanes` threads of one block. A thread folds every lanes-th element into an
 * accumulator; then halves of the lanes fold into the other halves, always in the same order, so
 * that a result is the same bits every time. Where there are too few outputs to keep the device
 * busy, gridDim.y blocks share an output and leave their accumulators in memory, and a second
 * launch of the same kernel folds these.
 *
 * Sums of floating point carry what rounding lost (Knuth's two-sum), so their error does not grow
 * with the count. float16 and bfloat16 are summed as float.
 */
#include "cuda/kernels/op.h"

/* ---- accumulators: nothing(), add(element, its place), fold(another), result() ----------------
 */

template <typename M> struct sum_of {
  M sum, lost;
  WEIR_IN void nothing() { sum = lost = 0; }
  WEIR_IN void add(M x, int64_t)
  {
    if constexpr (integral<M>) {
      sum = plus(sum, x);
    } else {
      M now = sum + x, other = now - sum;
      lost += (sum - (now - other)) + (x - other);
      sum = now;
    }
  }
  WEIR_IN void fold(const sum_of &o)
  {
    add(o.sum, 0);
    lost = plus(lost, o.lost);
  }
  WEIR_IN M result(const k_reduce &a) const
  {
    M all = is_finite(lost) ? plus(sum, lost) : sum;
    if constexpr (!integral<M>)
      if (a.op == WEIR_REDUCE_MEAN) return all / (M)a.each;
    return all;
  }
};

template <> struct sum_of<c64> {
  sum_of<float> re, im;
  WEIR_IN void nothing()
  {
    re.nothing();
    im.nothing();
  }
  WEIR_IN void add(c64 x, int64_t)
  {
    re.add(x.re, 0);
    im.add(x.im, 0);
  }
  WEIR_IN void fold(const sum_of &o)
  {
    re.fold(o.re);
    im.fold(o.im);
  }
  WEIR_IN c64 result(const k_reduce &a) const { return c64{re.result(a), im.result(a)}; }
};

template <typename M> struct product_of {
  M product;
  WEIR_IN void nothing() { product = to<M>(1); }
  WEIR_IN void add(M x, int64_t) { product = times(product, x); }
  WEIR_IN void fold(const product_of &o) { product = times(product, o.product); }
  WEIR_IN M result(const k_reduce &) const { return product; }
};

/* ALL and ANY: how many elements are true, and how many are not. */
struct truth_of {
  int64_t yes, no;
  WEIR_IN void nothing() { yes = no = 0; }
  WEIR_IN void add(b8 x, int64_t)
  {
    if (x.value)
      yes++;
    else
      no++;
  }
  WEIR_IN void fold(const truth_of &o)
  {
    yes += o.yes;
    no += o.no;
  }
  WEIR_IN b8 result(const k_reduce &a) const
  {
    return b8{(uint8_t)(a.op == WEIR_REDUCE_ANY ? yes != 0 : no == 0)};
  }
};

/* The largest, or the smallest as it were negated; NaN before all; the first of equals. */
template <typename M, bool LEAST> struct extreme_of {
  M value;
  int64_t at; /* -1: none yet */
  WEIR_IN void nothing()
  {
    value = 0;
    at = -1;
  }
  WEIR_IN void add(M x, int64_t place)
  {
    bool better = LEAST ? x < value : x > value, same = x == value;
    if constexpr (!integral<M>) {
      bool nan = x != x, was = value != value;
      better = was ? false : better || nan;
      same = same || (nan && was);
    }
    if (at >= 0 && !better && !(same && place < at)) return;
    value = x;
    at = place;
  }
  WEIR_IN void fold(const extreme_of &o)
  {
    if (o.at >= 0) add(o.value, o.at);
  }
  WEIR_IN M result(const k_reduce &) const { return value; }
};

/* |x|^p: NORM. In double, so that nothing overflows on the way that has a result. */
struct norm_of {
  sum_of<double> sum;
  WEIR_IN void nothing() { sum.nothing(); }
  WEIR_IN void add_power(double x, double p)
  {
    x = fabs(x);
    sum.add(p == 2 ? x * x : p == 1 ? x : p == 0 ? (double)(x != 0) : pow(x, p), 0);
  }
  WEIR_IN void fold(const norm_of &o) { sum.fold(o.sum); }
  WEIR_IN double result(const k_reduce &a) const
  {
    double all = sum.result(a);
    return a.p == 2 ? sqrt(all) : a.p == 0 || a.p == 1 ? all : pow(all, 1 / a.p);
  }
};

/* VAR, STD: what elements are more than one of them, which is near them all, and their squares. */
struct variance_of {
  sum_of<double> more, squares;
  WEIR_IN void nothing()
  {
    more.nothing();
    squares.nothing();
  }
  WEIR_IN void add_difference(double x)
  {
    more.add(x, 0);
    squares.add(x * x, 0);
  }
  WEIR_IN void fold(const variance_of &o)
  {
    more.fold(o.more);
    squares.fold(o.squares);
  }
  WEIR_IN double mean(const k_reduce &a) const { return more.result(a) / (double)a.each; }
  WEIR_IN double result(const k_reduce &a) const
  {
    double left = (double)a.each - a.p, v = squares.result(a) - more.result(a) * mean(a);
    v = (v < 0 ? 0 : v) / (left > 0 ? left : 0);
    if (!a.each) v = NAN;
    return a.op == WEIR_REDUCE_STD ? sqrt(v) : v;
  }
};

/* ---- places -----------------------------------------------------------------------------------
 */

/* Where numbers are longer than 32 bits: seldom, and slow. */
WEIR_FAR int64_t far_offset(const int64_t *length, const int64_t *stride, int64_t i, int dims)
{
  int64_t offset = 0;
  for (int d = dims - 1; d > 0; d--) {
    offset += i % length[d] * stride[d];
    i /= length[d];
  }
  return offset + i * stride[0];
}

/* Element offset of number i in dimensions from <= d < end, strides as given. */
WEIR_FN int64_t offset_of(const k_reduce &a, int64_t i, int from, int end, const int64_t *stride)
{
  if (end <= from) return 0;
  if (end - from == 1) return i * stride[from];
  if (!a.small) return far_offset(a.length + from, stride + from, i, end - from);
  int64_t offset = 0;
  uint32_t left = (uint32_t)i, k;
  WEIR_ROLLED for (int d = end - 1; d > from; d--)
  {
    left = divided(left, a.size[d], &k);
    offset += (int64_t)k * stride[d];
  }
  return offset + (int64_t)left * stride[from];
}

/* ---- the kernel's body ------------------------------------------------------------------------
 */

enum { HAND = 4 }; /* elements loaded at a time */

/* An element of any dtype, seldom one that is not met often. */
template <typename M> WEIR_FAR M element_of(const void *data, int dtype, int64_t at)
{
  M x = to<M>(0);
  gather<M, 1>(&x, data, dtype, &at, 1);
  return x;
}

template <typename M, typename T>
WEIR_FN void take(M *x, const void *data, const int64_t *at, int count)
{
  WEIR_UNROLL for (int j = 0; j < HAND; j++) if (j < count) x[j] = to<M>(((const T *)data)[at[j]]);
}

template <typename M>
WEIR_FN void take_any(M *x, const void *data, int dtype, const int64_t *at, int count)
{
  if constexpr (std::is_same<M, float>::value) {
    if (dtype == WEIR_FLOAT32) return take<M, float>(x, data, at, count);
    if (dtype == WEIR_FLOAT16) return take<M, f16>(x, data, at, count);
    if (dtype == WEIR_BFLOAT16) return take<M, bf16>(x, data, at, count);
  }
  if constexpr (std::is_same<M, int64_t>::value)
    if (dtype == WEIR_INT64) return take<M, int64_t>(x, data, at, count);
  if constexpr (std::is_same<M, double>::value)
    if (dtype == WEIR_FLOAT64) return take<M, double>(x, data, at, count);
  if constexpr (std::is_same<M, c64>::value)
    if (dtype == WEIR_COMPLEX64) return take<M, c64>(x, data, at, count);
  if constexpr (std::is_same<M, b8>::value)
    if (dtype == WEIR_BOOL) return take<M, b8>(x, data, at, count);
  for (int j = 0; j < HAND; j++)
    if (j < count) x[j] = element_of<M>(data, dtype, at[j]);
}

/* What is taken from all elements of a variance first: the output's first one. */
template <typename M> WEIR_FN double origin_of(const k_reduce &a, int64_t base)
{
  if (!a.each) return 0;
  double first = (double)element_of<M>(a.elements, a.in_dtype, base);
  return is_finite(first) ? first : 0;
}

template <typename M, typename A>
WEIR_FN void add_element(const k_reduce &a, A *sum, M x, int64_t place, double origin)
{
  if constexpr (std::is_same<A, norm_of>::value)
    sum->add_power((double)x, a.p);
  else if constexpr (std::is_same<A, variance_of>::value)
    sum->add_difference((double)x - origin);
  else
    sum->add(x, place);
  (void)origin;
}

template <typename M> WEIR_FN M without_nan(const k_reduce &a, M x)
{
  if constexpr (std::is_floating_point<M>::value)
    if (a.op == WEIR_REDUCE_NANSUM && x != x) return 0;
  return x;
}

/* Elements begin, begin + step, ... below end. */
template <typename M, typename A>
WEIR_FN void add_elements(const k_reduce &a, A *sum, int64_t base, int64_t begin, int64_t end,
                          int64_t step)
{
  bool narrow = a.in_dtype != a.compute;
  double origin = 0;
  if constexpr (std::is_same<A, variance_of>::value) origin = origin_of<M>(a, base);
  for (int64_t r = begin; r < end; r += step * HAND) {
    M x[HAND];
    int64_t at[HAND];
    int64_t left = (end - r + step - 1) / step;
    int count = left < HAND ? (int)left : HAND;
    WEIR_UNROLL for (int j = 0; j < HAND; j++) at[j] =
        j < count ? base + offset_of(a, r + j * step, a.kept, a.dims, a.in_stride) : base;
    take_any<M>(x, a.in, a.in_dtype, at, count);
    WEIR_UNROLL for (int j = 0; j < HAND; j++) if (j < count) add_element(
        a, sum, narrow ? narrowed(x[j], a.compute) : without_nan(a, x[j]), r + j * step, origin);
  }
}

template <typename M, typename A>
WEIR_FN void accumulate(const k_reduce &a, A *sum, int64_t output, int lane, int64_t part,
                        int64_t parts)
{
  sum->nothing();
  if (output >= a.outputs) return;
  if (a.parts_in) {
    const A *from = (const A *)a.in;
    for (int64_t p = lane; p < a.parts_in; p += a.lanes)
      sum->fold(from[p * a.outputs + output]);
    return;
  }
  int64_t base = offset_of(a, output, 0, a.kept, a.in_stride);
  add_elements<M>(a, sum, base, part * a.lanes + lane, a.each, parts * a.lanes);
}

template <typename M, typename A>
WEIR_FN void finish(const k_reduce &a, const A &sum, int64_t output, int64_t part)
{
  if (a.parts) {
    ((A *)a.parts)[part * a.outputs + output] = sum;
    return;
  }
  int64_t at = offset_of(a, output, 0, a.kept, a.out_stride);
  int64_t place = -1;
  if constexpr (std::is_same<A, extreme_of<M, false>>::value ||
                std::is_same<A, extreme_of<M, true>>::value)
    place = sum.at;
  if (a.op == WEIR_REDUCE_ARGMAX || a.op == WEIR_REDUCE_ARGMIN) {
    scatter<int64_t, 1>(a.out, a.out_dtype, &at, 1, &place);
    return;
  }
  if constexpr (std::is_same<A, truth_of>::value)
    if (a.op == WEIR_REDUCE_NONZERO)
      return scatter<int64_t, 1>(a.out, a.out_dtype, &at, 1, &sum.yes);
  auto value = sum.result(a);
  scatter<decltype(value), 1>(a.out, a.out_dtype, &at, 1, &value);
  if (!a.index) return;
  at = offset_of(a, output, 0, a.kept, a.index_stride);
  if constexpr (std::is_same<A, variance_of>::value) {
    double mean = sum.mean(a) + origin_of<M>(a, offset_of(a, output, 0, a.kept, a.in_stride));
    scatter<double, 1>(a.index, a.out_dtype, &at, 1, &mean);
  } else {
    ((int64_t *)a.index)[at] = place;
  }
}

template <typename M, typename A> WEIR_FN void reduce(WEIR_PLACE_COMMA const k_reduce &a)
{
  WEIR_SHARED A sums[WEIR_THREADS];
  int group = WEIR_THREADS / a.lanes; /* outputs of a block */
  int64_t first = (int64_t)blockIdx.x * group;
  WEIR_PHASE
  {
    int lane = a.across ? threadIdx.x / group : threadIdx.x % a.lanes;
    int mine = a.across ? threadIdx.x % group : threadIdx.x / a.lanes;
    A sum;
    accumulate<M>(a, &sum, first + mine, lane, blockIdx.y, gridDim.y);
    sums[mine * a.lanes + lane] = sum;
  }
  for (int half = a.lanes / 2; half; half /= 2) {
    WEIR_PHASE
    {
      int lane = threadIdx.x % a.lanes;
      if (lane < half) sums[threadIdx.x].fold(sums[threadIdx.x + half]);
    }
  }
  WEIR_EACH_THREAD
  {
    int64_t output = first + threadIdx.x;
    if ((int)threadIdx.x < group && output < a.outputs)
      finish<M>(a, sums[threadIdx.x * a.lanes], output, blockIdx.y);
  }
}

#define WEIR_K_REDUCE(name, type, accumulator)                                                     \
  WEIR_BLOCK_KERNEL(weir_##name, WEIR_THREADS, WEIR_GIVEN k_reduce a)                              \
  {                                                                                                \
    typedef accumulator accumulator_type;                                                          \
    static_assert(sizeof(accumulator_type) <= WEIR_PART_BYTES, "");                                \
    reduce<type, accumulator_type>(WEIR_HERE_COMMA a);                                             \
  }
#define WEIR_K_EXTREME(name, type)                                                                 \
  WEIR_BLOCK_KERNEL(weir_max_##name, WEIR_THREADS, WEIR_GIVEN k_reduce a)                          \
  {                                                                                                \
    reduce<type, extreme_of<type, false>>(WEIR_HERE_COMMA a);                                      \
  }                                                                                                \
  WEIR_BLOCK_KERNEL(weir_min_##name, WEIR_THREADS, WEIR_GIVEN k_reduce a)                          \
  {                                                                                                \
    reduce<type, extreme_of<type, true>>(WEIR_HERE_COMMA a);                                       \
  }
WEIR_K_REDUCE(sum_integer, int64_t, sum_of<int64_t>)
WEIR_K_REDUCE(sum_float32, float, sum_of<float>)
WEIR_K_REDUCE(sum_float64, double, sum_of<double>)
WEIR_K_REDUCE(sum_complex64, c64, sum_of<c64>)
WEIR_K_REDUCE(product_integer, int64_t, product_of<int64_t>)
WEIR_K_REDUCE(product_float32, float, product_of<float>)
WEIR_K_REDUCE(product_float64, double, product_of<double>)
WEIR_K_REDUCE(product_complex64, c64, product_of<c64>)
WEIR_K_REDUCE(truth, b8, truth_of)
WEIR_K_REDUCE(norm_float32, float, norm_of)
WEIR_K_REDUCE(norm_float64, double, norm_of)
WEIR_K_REDUCE(var_float32, float, variance_of)
WEIR_K_REDUCE(var_float64, double, variance_of)
WEIR_K_EXTREME(integer, int64_t)
WEIR_K_EXTREME(float32, float)
WEIR_K_EXTREME(float64, double)
