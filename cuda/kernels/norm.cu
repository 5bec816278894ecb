/* norm.cu: normalised rows, and what comes back through them: weir_norm_request.
 *
 * A block has WEIR_THREADS / lanes rows, `lanes` threads each. All of a row's threads fold what
 * theirs come to in shared memory, always in the same order: first for the mean, then for the
 * squares of what elements differ from it by, and on the way back for the gradient and its product
 * with the normalised elements. Elements are read again for each, which their caches make cheap.
 * Forward, nothing reads an element of another thread once elements are written: the result may lie
 * where the operand does. */
#include "cuda/kernels/op.h"

/* What a row has in common. */
template <typename M> struct row_form {
  M mean, times; /* normalised: (x - mean) times */
  M less, slope; /* backward: means of the gradient, and of its product with the normalised */
};

/* Where the row's weights begin; which of them element i has. */
WEIR_FN int64_t first_weight(const weir_norm_request &q, int64_t row)
{
  return row % q.groups * (q.each / q.inner);
}

WEIR_FN int64_t weight_of(const weir_norm_request &q, int64_t i)
{
  if (q.inner == 1) return i;
  return q.each <= UINT32_MAX ? (int64_t)((uint32_t)i / (uint32_t)q.inner) : i / q.inner;
}

/* The gradient of a normalised element. */
template <typename T, typename M>
WEIR_FN M weighed(const weir_norm_request &q, int64_t row, int64_t i)
{
  M g = to<M>(((const T *)q.grad)[row * q.each + i]);
  return q.weight ? g * ((const M *)q.weight)[first_weight(q, row) + weight_of(q, i)] : g;
}

/* What a thread's elements come to. step 0: themselves; 1: squares; 2: gradients; 3: their
 * products. */
template <typename T, typename M>
WEIR_FN M part_of(const weir_norm_request &q, const row_form<M> &f, int64_t row, int lane,
                  int lanes, int step)
{
  const T *x = (const T *)q.in + row * q.each;
  M sum = 0;
  for (int64_t i = lane; i < q.each; i += lanes) {
    M y = to<M>(x[i]) - f.mean;
    if (step == 0)
      sum += y;
    else if (step == 1)
      sum += y * y;
    else if (step == 2)
      sum += weighed<T, M>(q, row, i);
    else
      sum += weighed<T, M>(q, row, i) * y * f.times;
  }
  return sum;
}

/* What follows from a step's sum. */
template <typename M>
WEIR_FN void take_sum(const weir_norm_request &q, row_form<M> *f, M sum, int step)
{
  M mean = sum / (M)q.each;
  if (step == 0)
    f->mean = mean;
  else if (step == 1)
    f->times = 1 / sqrt(mean + (M)q.eps);
  else if (step == 2)
    f->less = mean;
  else
    f->slope = mean;
}

template <typename T, typename M>
WEIR_FN void write_norm(const weir_norm_request &q, const row_form<M> &f, int64_t row, int lane,
                        int lanes)
{
  const T *x = (const T *)q.in + row * q.each;
  const M *weight = (const M *)q.weight, *bias = (const M *)q.bias;
  T *out = (T *)q.out + row * q.each;
  int64_t first = first_weight(q, row);
  for (int64_t i = lane; i < q.each; i += lanes) {
    M y = (to<M>(x[i]) - f.mean) * f.times;
    if (q.grad) {
      out[i] = to<T>(f.times * (weighed<T, M>(q, row, i) - f.less - y * f.slope));
      continue;
    }
    if (weight) y *= weight[first + weight_of(q, i)];
    if (bias) y += bias[first + weight_of(q, i)];
    out[i] = to<T>(y);
  }
}

/* Whether a step is one of the request's. */
WEIR_FN bool has_step(const weir_norm_request &q, int step)
{
  if (q.kind == WEIR_NORM_AFFINE) return false;
  if (step >= 2 && !q.grad) return false;
  return step == 1 || step == 3 || q.kind == WEIR_NORM_LAYER;
}

template <typename T, typename M> WEIR_FN void norm(WEIR_PLACE_COMMA const k_norm &a)
{
  WEIR_SHARED M parts[WEIR_THREADS];
  WEIR_SHARED row_form<M> forms[WEIR_THREADS];
  int group = WEIR_THREADS / a.lanes; /* rows of a block */
  int64_t first = (int64_t)blockIdx.x * group;
  WEIR_PHASE
  {
    if ((int)threadIdx.x < group) forms[threadIdx.x] = row_form<M>{0, 1, 0, 0};
  }
  for (int step = 0; step < 4; step++) {
    if (!has_step(a.of, step)) continue;
    WEIR_PHASE
    {
      int lane = threadIdx.x % a.lanes, mine = threadIdx.x / a.lanes;
      parts[threadIdx.x] = first + mine < a.of.rows
                               ? part_of<T, M>(a.of, forms[mine], first + mine, lane, a.lanes, step)
                               : 0;
    }
    for (int half = a.lanes / 2; half; half /= 2) {
      WEIR_PHASE
      {
        if ((int)threadIdx.x % a.lanes < half) parts[threadIdx.x] += parts[threadIdx.x + half];
      }
    }
    WEIR_PHASE
    {
      if (threadIdx.x % a.lanes == 0)
        take_sum(a.of, &forms[threadIdx.x / a.lanes], parts[threadIdx.x], step);
    }
  }
  WEIR_EACH_THREAD
  {
    int lane = threadIdx.x % a.lanes, mine = threadIdx.x / a.lanes;
    if (first + mine < a.of.rows) write_norm<T, M>(a.of, forms[mine], first + mine, lane, a.lanes);
  }
}

#define WEIR_K_NORM(name, type, math)                                                              \
  WEIR_BLOCK_KERNEL(weir_rows_norm_##name, WEIR_THREADS, WEIR_GIVEN k_norm a)                      \
  {                                                                                                \
    norm<type, math>(WEIR_HERE_COMMA a);                                                           \
  }
WEIR_K_NORM(float16, f16, float)
WEIR_K_NORM(bfloat16, bf16, float)
WEIR_K_NORM(float32, float, float)
WEIR_K_NORM(float64, double, double)
