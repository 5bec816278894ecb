/* multinomial.c: categories drawn by their probabilities.
 *
 * Made of other operations, on the device that the probabilities are on, in float64.
 *
 * Without replacement, and where one is drawn: a race. Category i arrives at a time that is
 * exponential with rate p[i]; the first to arrive is i with probability p[i] / sum(p), and who
 * arrives next is so among the rest. The largest of p / e are the first, as torch does it.
 *
 * With replacement: where a uniform number of [0, sum(p)) falls in the running sums. u sum(p) is
 * less than sum(p) for every u below 1 of 53 bits, so that there is always a sum above it, and the
 * first sum above it belongs to a category that is not 0.
 *
 * The host reads three numbers, to refuse what is no distribution. */
#include <math.h>
#include "core/ops/ops.h"

static weir_status check_draws(const weir_tensor *p, int64_t n, bool replacement)
{
  weir_dtype d = p->dtype;
  if (p->dims < 1 || p->dims > 2) return fail_invalid("prob_dist must be 1 or 2 dim");
  if (!dtype_is_floating(d))
    return fail_invalid("multinomial only supports floating-point dtypes for input, got: %s",
                        dtype_title(d));
  if (n <= 0) return fail_invalid("cannot sample n_sample <= 0 samples");
  int64_t categories = p->size[p->dims - 1];
  if (!replacement && n > categories)
    return fail_invalid("cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (categories > 1 << 24) return fail_invalid("number of categories cannot exceed 2^24");
  return WEIR_OK;
}

static weir_status least_of(double *out, const weir_tensor *t)
{
  CALC(c);
  weir_scalar number = {0};
  weir_tensor *least = c_call(c, weir_amin, t);
  c_do(c, weir_item(&number, least));
  *out = number.f;
  return c->st;
}

/* p is float64. raced: torch's sentences differ by the method. */
static weir_status check_distribution(const weir_tensor *p, bool raced)
{
  CALC(c);
  double least = 0, least_sum = 0;
  weir_scalar top = {0};
  c->st = least_of(&least, p);
  weir_tensor *most = c_amax(c, p);
  c_do(c, weir_item(&top, most));
  weir_tensor *sums = c_sum_dim(c, p, -1, false);
  c_do(c, least_of(&least_sum, sums));
  if (c->st) return c->st;
  if (raced && !(least >= 0 && top.f < INFINITY))
    return fail_invalid("probability tensor contains either `inf`, `nan` or element < 0");
  if (!(least >= 0))
    return fail_invalid("invalid multinomial distribution (encountering probability entry < 0)");
  if (!(top.f < INFINITY))
    return fail_invalid(
        "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  if (!(least_sum > 0))
    return fail_invalid("invalid multinomial distribution (sum of probabilities <= 0)");
  return WEIR_OK;
}

/* Times are between 2^-54 and 37.5, so that no quotient is NaN, or 0 where p is not. */
static weir_status race(weir_tensor **out, const weir_tensor *p, int64_t n, weir_generator *g)
{
  CALC(c);
  WEIR_TENSOR unused = NULL;
  weir_tensor *times = c_call(c, tensor_new_beside, p, shape_of_tensor(p));
  c_do(c, weir_uniform_(times, 0x1p-54, 1, g));
  c_do(c, weir_log_(times));
  c_do(c, weir_neg_(times));
  c_do(c, weir_clamp_min_(times, weir_float(0x1p-54)));
  weir_tensor *order = c_div(c, p, times);
  if (c->st) return c->st;
  return n == 1 ? weir_argmax_dim(out, order, -1, true)
                : weir_topk(&unused, out, order, n, -1, true);
}

static weir_status draw_again(weir_tensor **out, const weir_tensor *p, int64_t n, weir_generator *g)
{
  CALC(c);
  weir_shape shape = shape_of_tensor(p);
  int64_t categories = p->size[p->dims - 1];
  shape.size[p->dims - 1] = n;
  weir_tensor *sums = c_cumsum(c, p, -1);
  weir_tensor *total = c_call(c, weir_slice, sums, -1, categories - 1, categories, 1);
  weir_tensor *at = c_call(c, tensor_new_beside, p, shape);
  c_do(c, weir_uniform_(at, 0, 1, g));
  c_do(c, weir_mul_(at, total));
  return c->st ? c->st : weir_searchsorted(out, sums, at, true, false);
}

weir_status weir_multinomial(weir_tensor **out, const weir_tensor *probabilities,
                             int64_t num_samples, bool replacement, weir_generator *g)
{
  WEIR_OP(out, probabilities);
  WEIR_UNRECORDED;
  CALC(c);
  bool raced = !replacement || num_samples == 1;
  TRY(check_draws(probabilities, num_samples, replacement));
  weir_shape shape = shape_of_tensor(probabilities);
  int64_t categories = shape.size[shape.count - 1];
  shape.size[shape.count - 1] = num_samples;
  if (shape.count == 2 && !shape.size[0]) {
    return weir_empty(out, shape, OPTIONS_ON(probabilities, WEIR_INT64));
  }
  if (!categories)
    return fail_invalid("invalid multinomial distribution (sum of probabilities <= 0)");
  weir_tensor *p = c_to_dtype(c, probabilities, WEIR_FLOAT64);
  c_do(c, check_distribution(p, raced));
  if (c->st) return c->st;
  return raced ? race(out, p, num_samples, g) : draw_again(out, p, num_samples, g);
}
