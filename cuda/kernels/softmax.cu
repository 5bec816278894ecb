/* softmax.cu: softmax, its logarithm, and what comes back through both: weir_softmax_request.
 *
 * A row is `each` elements, `inner` apart; a block has WEIR_THREADS / lanes rows, `lanes` threads
 * each. A thread goes through its elements once for what the row has in common, all of a row's
 * threads fold theirs in shared memory, always in the same order, and a second time for the result:
 * two reads and a write, whatever the row's length. Rows whose elements lie apart (inner > 1) are
 * side by side in a block, so that neighbouring threads read neighbouring elements.
 *
 * Forward, a row's largest element and the sum of exponentials are found together (Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", 2018): a larger element scales down the
 * sum so far. Nothing reads an element of another thread, and each is read before it is written:
 * the result may lie where an operand does.
 */
#include "cuda/kernels/op.h"

/* What a row has in common. Forward: the largest, and the sum of exp(x - largest). Backward:
 * sum. */
template <typename M> struct row_total {
  M largest, sum;
};

/* exp(from - to), 1 where both are the same infinity. */
template <typename M> WEIR_FN M scale_between(M from, M to)
{
  return from == to ? (M)1 : exp(from - to);
}

template <typename M> WEIR_FN void add_element(row_total<M> *r, M x)
{
  if (x > r->largest) {
    r->sum = r->sum * exp(r->largest - x) + 1;
    r->largest = x;
  } else {
    r->sum += scale_between(x, r->largest);
  }
}

template <typename M> WEIR_FN void fold_total(row_total<M> *r, const row_total<M> &o, bool forward)
{
  if (!forward) {
    r->sum += o.sum;
    return;
  }
  M most = r->largest > o.largest ? r->largest : o.largest;
  r->sum = r->sum * scale_between(r->largest, most) + o.sum * scale_between(o.largest, most);
  r->largest = most;
}

/* The first element of row `row`. */
WEIR_FN int64_t row_base(const weir_softmax_request &s, int64_t row)
{
  return s.inner == 1 ? row * s.each : row / s.inner * s.each * s.inner + row % s.inner;
}

template <typename T, typename M>
WEIR_FN row_total<M> total_of(const weir_softmax_request &s, int64_t base, int lane, int lanes)
{
  const T *in = (const T *)s.in + base, *grad = (const T *)s.grad + base;
  row_total<M> r = {-(M)INFINITY, 0};
  for (int64_t i = lane; i < s.each; i += lanes) {
    int64_t at = i * s.inner;
    if (!s.grad)
      add_element(&r, to<M>(in[at]));
    else
      r.sum += s.logarithm ? to<M>(grad[at]) : to<M>(grad[at]) * to<M>(in[at]);
  }
  return r;
}

template <typename T, typename M>
WEIR_FN void write_row(const weir_softmax_request &s, const row_total<M> &r, int64_t base, int lane,
                       int lanes)
{
  const T *in = (const T *)s.in + base, *grad = (const T *)s.grad + base;
  T *out = (T *)s.out + base;
  M sum = r.sum + (r.largest - r.largest); /* NaN where the largest is an infinity */
  M part = s.grad ? r.sum : s.logarithm ? log(sum) : 1 / sum;
  for (int64_t i = lane; i < s.each; i += lanes) {
    int64_t at = i * s.inner;
    M x = to<M>(in[at]);
    if (!s.grad)
      x = s.logarithm ? x - r.largest - part : exp(x - r.largest) * part;
    else if (s.logarithm)
      x = to<M>(grad[at]) - exp(x) * part;
    else
      x = x * (to<M>(grad[at]) - part);
    out[at] = to<T>(x);
  }
}

template <typename T, typename M> WEIR_FN void softmax(WEIR_PLACE_COMMA const k_softmax &a)
{
  WEIR_SHARED row_total<M> totals[WEIR_THREADS];
  int group = WEIR_THREADS / a.lanes; /* rows of a block */
  int64_t first = (int64_t)blockIdx.x * group, rows = a.of.outer * a.of.inner;
  bool across = a.of.inner > 1;
  WEIR_PHASE
  {
    int lane = across ? threadIdx.x / group : threadIdx.x % a.lanes;
    int mine = across ? threadIdx.x % group : threadIdx.x / a.lanes;
    row_total<M> r = {-(M)INFINITY, 0};
    if (first + mine < rows) r = total_of<T, M>(a.of, row_base(a.of, first + mine), lane, a.lanes);
    totals[mine * a.lanes + lane] = r;
  }
  for (int half = a.lanes / 2; half; half /= 2) {
    WEIR_PHASE
    {
      int lane = threadIdx.x % a.lanes;
      if (lane < half)
        fold_total(&totals[threadIdx.x], totals[threadIdx.x + half], a.of.grad == NULL);
    }
  }
  WEIR_EACH_THREAD
  {
    int lane = across ? threadIdx.x / group : threadIdx.x % a.lanes;
    int mine = across ? threadIdx.x % group : threadIdx.x / a.lanes;
    if (first + mine < rows)
      write_row<T, M>(a.of, totals[mine * a.lanes], row_base(a.of, first + mine), lane, a.lanes);
  }
}

#define WEIR_K_SOFTMAX(name, type, math)                                                           \
  WEIR_BLOCK_KERNEL(weir_softmax_##name, WEIR_THREADS, WEIR_GIVEN k_softmax a)                     \
  {                                                                                                \
    softmax<type, math>(WEIR_HERE_COMMA a);                                                        \
  }
WEIR_K_SOFTMAX(float16, f16, float)
WEIR_K_SOFTMAX(bfloat16, bf16, float)
WEIR_K_SOFTMAX(float32, float, float)
WEIR_K_SOFTMAX(float64, double, double)
