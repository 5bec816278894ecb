/* scan.cu: running reductions: weir_scan.
 *
 * Where lines are one element after the other (inner is 1), a block takes a line, or a part of one,
 * WEIR_SCAN_CHUNK elements at a time: each thread a few neighbours, then all threads' totals in
 * shared memory, each step from twice as far. Else each thread has a line, or a part of one, and
 * neighbouring threads neighbouring lines. Lines that are too few to keep the device busy are cut
 * into parts: one launch for what each comes to, one for what is before each, one for the elements.
 * The order in which accumulators are put together depends on sizes alone.
 */
#include "cuda/kernels/op.h"

enum { SCAN_HAND = 4, SCAN_CHUNK = SCAN_HAND * WEIR_THREADS };

/* ---- accumulators: nothing(), take(element, its place), fold(what comes after), value() -------
 */

template <typename M> struct running_sum {
  M sum;
  WEIR_IN void nothing() { sum = 0; }
  WEIR_IN void take(M x, int64_t) { sum = plus(sum, x); }
  WEIR_IN void fold(const running_sum &o) { sum = plus(sum, o.sum); }
  WEIR_IN M value() const { return sum; }
};

template <typename M> struct running_product {
  M product;
  WEIR_IN void nothing() { product = 1; }
  WEIR_IN void take(M x, int64_t) { product = times(product, x); }
  WEIR_IN void fold(const running_product &o) { product = times(product, o.product); }
  WEIR_IN M value() const { return product; }
};

struct running_complex_sum {
  c128 sum;
  WEIR_IN void nothing() { sum = c128{0, 0}; }
  WEIR_IN void take(c64 x, int64_t) { fold(running_complex_sum{wide(x)}); }
  WEIR_IN void fold(const running_complex_sum &o)
  {
    sum = c128{sum.re + o.sum.re, sum.im + o.sum.im};
  }
  WEIR_IN c64 value() const { return rounded(sum); }
};

struct running_complex_product {
  c128 product;
  WEIR_IN void nothing() { product = c128{1, 0}; }
  WEIR_IN void take(c64 x, int64_t) { fold(running_complex_product{wide(x)}); }
  WEIR_IN void fold(const running_complex_product &o)
  {
    c128 x = product, y = o.product;
    product = c128{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }
  WEIR_IN c64 value() const { return rounded(product); }
};

/* As core/backend/cpu/scan.c's log_add(): the first NaN stays. */
WEIR_FAR double log_added(double a, double b)
{
  double least = isnan(a) || a < b ? a : b, most = isnan(a) || a > b ? a : b;
  if (isnan(b)) return b;
  return least != most || isfinite(least) ? most + log1p(exp(least - most)) : a;
}

struct running_log_sum {
  double sum;
  WEIR_IN void nothing() { sum = -INFINITY; }
  WEIR_IN void take(double x, int64_t) { sum = log_added(x, sum); }
  WEIR_IN void fold(const running_log_sum &o) { sum = log_added(o.sum, sum); }
  WEIR_IN double value() const { return sum; }
};

/* The last of equals; NaN before all. */
template <typename M, bool LEAST> struct running_extreme {
  M best;
  int64_t at; /* -1: none yet */
  WEIR_IN void nothing()
  {
    best = 0;
    at = -1;
  }
  WEIR_IN void take(M x, int64_t place)
  {
    bool better = LEAST ? x <= best : x >= best;
    if constexpr (!integral<M>) better = x != x || (best == best && better);
    if (at >= 0 && !better) return;
    best = x;
    at = place;
  }
  WEIR_IN void fold(const running_extreme &o)
  {
    if (o.at >= 0) take(o.best, o.at);
  }
  WEIR_IN M value() const { return best; }
};

/* ---- elements --------------------------------------------------------------------------------
 */

template <typename M, typename A>
WEIR_FN void store_running(const weir_scan &s, const A &sum, int64_t at)
{
  M value = sum.value();
  scatter<M, 1>(s.out, s.dtype, &at, 1, &value);
  if constexpr (std::is_same<A, running_extreme<M, false>>::value ||
                std::is_same<A, running_extreme<M, true>>::value)
    s.index[at] = sum.at;
}

template <typename M> WEIR_FN M element_at(const weir_scan &s, int64_t at)
{
  M x = to<M>(0);
  gather<M, 1>(&x, s.in, s.dtype, &at, 1);
  return x;
}

/* A part of a line, element by element. */
template <typename M, typename A> WEIR_FN void scan_alone(const k_scan &a, int64_t number)
{
  int64_t line = number % a.lines, part = number / a.lines, inner = a.of.inner;
  int64_t from = part * a.piece, end = from + a.piece < a.of.length ? from + a.piece : a.of.length;
  int64_t base = line / inner * a.of.length * inner + line % inner;
  A sum;
  sum.nothing();
  if (a.stage == WEIR_K_SCAN_ELEMENTS && a.parts) sum = ((const A *)a.parts)[number];
  for (int64_t i = from; i < end; i++) {
    int64_t at = base + i * inner;
    sum.take(element_at<M>(a.of, at), i);
    if (a.stage == WEIR_K_SCAN_ELEMENTS) store_running<M>(a.of, sum, at);
  }
  if (a.stage == WEIR_K_SCAN_TOTALS) ((A *)a.parts)[number] = sum;
}

/* What is before each part of a line takes the place of what it comes to. */
template <typename A> WEIR_FN void scan_parts(const k_scan &a, int64_t line)
{
  A before, *parts = (A *)a.parts;
  before.nothing();
  for (int64_t p = 0; p < a.count; p++) {
    A mine = parts[p * a.lines + line];
    parts[p * a.lines + line] = before;
    before.fold(mine);
  }
}

/* A thread's neighbours of a chunk: what each comes to, counted from the first of them. */
template <typename A> struct scan_hand {
  A sum[SCAN_HAND];
};

template <typename M, typename A>
WEIR_FN void take_hand(const weir_scan &s, scan_hand<A> *hand, int64_t base, int64_t first,
                       int64_t end)
{
  M x[SCAN_HAND];
  int64_t at[SCAN_HAND], left = end - first;
  int count = left < 0 ? 0 : left < SCAN_HAND ? (int)left : SCAN_HAND;
  A sum;
  sum.nothing();
  WEIR_UNROLL for (int j = 0; j < SCAN_HAND; j++) at[j] = base + first + j;
  gather<M, SCAN_HAND>(x, s.in, s.dtype, at, count);
  WEIR_UNROLL for (int j = 0; j < SCAN_HAND; j++)
  {
    if (j < count) sum.take(x[j], first + j);
    hand->sum[j] = sum;
  }
}

template <typename M, typename A>
WEIR_FN void store_hand(const weir_scan &s, const scan_hand<A> &hand, const A &before, int64_t base,
                        int64_t first, int64_t end)
{
  WEIR_UNROLL for (int j = 0; j < SCAN_HAND; j++) if (first + j < end)
  {
    A sum = before;
    sum.fold(hand.sum[j]);
    store_running<M>(s, sum, base + first + j);
  }
}

/* A part of a line by a block. `sums` has two halves, read and written in turn; every thread keeps
 * what is before the chunk. */
template <typename M, typename A>
WEIR_FN void scan_together(WEIR_PLACE_COMMA const k_scan &a, A (*sums)[WEIR_THREADS],
                           int64_t number)
{
  int64_t line = number % a.lines, from = number / a.lines * a.piece, base = line * a.of.length;
  int64_t end = from + a.piece < a.of.length ? from + a.piece : a.of.length;
  WEIR_PRIVATE(scan_hand<A>, hand, WEIR_THREADS);
  WEIR_PRIVATE(A, before, WEIR_THREADS);
  WEIR_EACH_THREAD
  {
    WEIR_MINE(before).nothing();
    if (a.stage == WEIR_K_SCAN_ELEMENTS && a.parts)
      WEIR_MINE(before) = ((const A *)a.parts)[number];
  }
  for (; from < end; from += SCAN_CHUNK) {
    WEIR_PHASE
    {
      take_hand<M>(a.of, &WEIR_MINE(hand), base, from + (int64_t)threadIdx.x * SCAN_HAND, end);
      sums[0][threadIdx.x] = WEIR_MINE(hand).sum[SCAN_HAND - 1];
    }
    int now = 0;
    for (int far = 1; far < WEIR_THREADS; far *= 2, now = 1 - now) {
      WEIR_PHASE
      {
        A sum = sums[now][threadIdx.x];
        if ((int)threadIdx.x >= far) {
          sum = sums[now][threadIdx.x - far];
          sum.fold(sums[now][threadIdx.x]);
        }
        sums[1 - now][threadIdx.x] = sum;
      }
    }
    WEIR_PHASE
    {
      A start = WEIR_MINE(before);
      if (threadIdx.x) start.fold(sums[now][threadIdx.x - 1]);
      if (a.stage == WEIR_K_SCAN_ELEMENTS)
        store_hand<M>(a.of, WEIR_MINE(hand), start, base, from + (int64_t)threadIdx.x * SCAN_HAND,
                      end);
      WEIR_MINE(before).fold(sums[now][WEIR_THREADS - 1]);
    }
  }
  WEIR_EACH_THREAD
  {
    if (!threadIdx.x && a.stage == WEIR_K_SCAN_TOTALS) ((A *)a.parts)[number] = WEIR_MINE(before);
  }
}

template <typename M, typename A> WEIR_FN void scan(WEIR_PLACE_COMMA const k_scan &a)
{
  WEIR_SHARED A sums[2][WEIR_THREADS];
  bool each = a.of.inner > 1 || a.stage == WEIR_K_SCAN_STARTS;
  int64_t count = a.stage == WEIR_K_SCAN_STARTS ? a.lines : a.lines * a.count;
  if (!each)
    for (int64_t b = blockIdx.x; b < count; b += gridDim.x)
      scan_together<M>(WEIR_HERE_COMMA a, sums, b);
  WEIR_EACH_THREAD
  {
    int64_t step = (int64_t)gridDim.x * WEIR_THREADS;
    int64_t i = (int64_t)blockIdx.x * WEIR_THREADS + threadIdx.x;
    for (; each && i < count; i += step)
      if (a.stage == WEIR_K_SCAN_STARTS)
        scan_parts<A>(a, i);
      else
        scan_alone<M, A>(a, i);
  }
}

#define WEIR_K_SCAN(name, type, ...)                                                               \
  WEIR_BLOCK_KERNEL(weir_scan_##name, WEIR_THREADS, WEIR_GIVEN k_scan a)                           \
  {                                                                                                \
    typedef __VA_ARGS__ accumulator_type;                                                          \
    static_assert(sizeof(accumulator_type) <= WEIR_PART_BYTES, "");                                \
    scan<type, accumulator_type>(WEIR_HERE_COMMA a);                                               \
  }
WEIR_K_SCAN(sum_integer, int64_t, running_sum<int64_t>)
WEIR_K_SCAN(sum_real, double, running_sum<double>)
WEIR_K_SCAN(sum_complex, c64, running_complex_sum)
WEIR_K_SCAN(product_integer, int64_t, running_product<int64_t>)
WEIR_K_SCAN(product_real, double, running_product<double>)
WEIR_K_SCAN(product_complex, c64, running_complex_product)
WEIR_K_SCAN(log_sum_real, double, running_log_sum)
WEIR_K_SCAN(last_max_integer, int64_t, running_extreme<int64_t, false>)
WEIR_K_SCAN(last_max_real, double, running_extreme<double, false>)
WEIR_K_SCAN(last_min_integer, int64_t, running_extreme<int64_t, true>)
WEIR_K_SCAN(last_min_real, double, running_extreme<double, true>)
