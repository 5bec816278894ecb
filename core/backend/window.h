/* window.h: which places windows see, and with which weights: the arithmetic of weir_pool and
 * weir_resample, compiled alike for hosts and devices, so that both choose the same places.
 *
 * Words. place: of an axis, or of a plane, row by row. span: the places of the input that an output
 * place sees. taps: the places that an interpolated value is made of, and their weights. */
#ifndef WEIR_BACKEND_WINDOW_H
#define WEIR_BACKEND_WINDOW_H

#include <math.h>
#include <stdint.h>
#include "core/backend/compute.h"
#include "core/backend/half.h"

/* ---- pooling --------------------------------------------------------------------------------- */

/* from, from + step, ... below `to`, all inside; of `counted` places, those of the padding too. */
typedef struct window_span {
  int64_t from, to, step, counted;
} window_span;

WEIR_HD window_span window_of(const weir_axis *x, bool adaptive, int64_t o)
{
  window_span s;
  s.step = 1;
  if (adaptive) {
    s.from = o * x->in / x->out;
    s.to = ((o + 1) * x->in + x->out - 1) / x->out;
    s.counted = s.to - s.from;
    return s;
  }
  int64_t end;
  s.step = x->dilation;
  s.from = o * x->stride - x->pad;
  s.to = s.from + (x->kernel - 1) * x->dilation + 1;
  end = x->in + x->pad;
  s.counted = (s.to < end ? s.to : end) - s.from;
  if (s.from < 0) s.from += (-s.from + s.step - 1) / s.step * s.step;
  if (s.to > x->in) s.to = x->in;
  return s;
}

/* Places of the output, *first to *last - 1, that may see place i. */
WEIR_HD void windows_over(const weir_axis *x, bool adaptive, int64_t i, int64_t *first,
                          int64_t *last)
{
  if (adaptive) {
    *first = i * x->out / x->in;
    *last = ((i + 1) * x->out + x->in - 1) / x->in;
    return;
  }
  int64_t reach = (x->kernel - 1) * x->dilation, at = i + x->pad;
  *first = at > reach ? (at - reach + x->stride - 1) / x->stride : 0;
  *last = at / x->stride + 1;
  if (*last > x->out) *last = x->out;
}

/* What a sum over these spans is divided by. */
WEIR_HD int64_t window_divisor(const weir_pool *p, const window_span *z, const window_span *y,
                               const window_span *x)
{
  if (p->divisor) return p->divisor;
  if (p->count_pad) return z->counted * y->counted * x->counted;
  return (z->to - z->from) * (y->to - y->from) * (x->to - x->from);
}

/* ---- interpolation ---------------------------------------------------------------------------
 * In float for all dtypes but float64, as torch has it: a place that falls on the edge between two
 * others falls on torch's side. */

typedef struct window_taps {
  int count;
  int64_t at[4];
  double weight[4];
} window_taps;

/* Input places to one of the output. */
WEIR_HD double resample_scale(const weir_resample *r, int d)
{
  bool nearest = r->kind == WEIR_RESAMPLE_NEAREST || r->kind == WEIR_RESAMPLE_EXACT;
  double s;
  if (r->align && !nearest)
    s = r->out[d] > 1 ? (double)(r->in[d] - 1) / (double)(r->out[d] - 1) : 0;
  else
    s = r->scale[d] > 0 ? r->scale[d] : (double)r->in[d] / (double)r->out[d];
  if (r->dtype == WEIR_FLOAT64 && !nearest) return s;
  if (r->scale[d] > 0 && !(r->align && !nearest)) return (double)(float)s;
  if (r->align && !nearest)
    return r->out[d] > 1 ? (double)((float)(r->in[d] - 1) / (float)(r->out[d] - 1)) : 0;
  return (double)((float)r->in[d] / (float)r->out[d]);
}

WEIR_HD int64_t window_clamped(int64_t at, int64_t size)
{
  return at < 0 ? 0 : at < size ? at : size - 1;
}

/* Where output place o lies in the input. */
WEIR_HD double resample_source(const weir_resample *r, double scale, int64_t o)
{
  bool whole = r->align && r->kind != WEIR_RESAMPLE_NEAREST && r->kind != WEIR_RESAMPLE_EXACT;
  if (r->kind == WEIR_RESAMPLE_NEAREST) return (double)(float)((double)(float)o * scale);
  if (r->kind == WEIR_RESAMPLE_EXACT) return (double)(float)((double)((float)o + 0.5f) * scale);
  if (r->dtype == WEIR_FLOAT64) return whole ? scale * (double)o : scale * ((double)o + 0.5) - 0.5;
  /* a product of floats is exact in double: rounded once, and never fused with what follows */
  if (whole) return (double)(float)(scale * (double)(float)o);
  return (double)((float)(scale * (double)((float)o + 0.5f)) - 0.5f);
}

/* Keys' weights of the four places around, t beyond the second. */
WEIR_HD void cubic_weights(double *w, double t)
{
  const double a = -0.75;
  double u = t + 1, v = 1 - t, x = v + 1;
  w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
  w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
  w[3] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

WEIR_HD window_taps taps_of(const weir_resample *r, int d, double scale, int64_t o)
{
  window_taps t = {1, {0, 0, 0, 0}, {1, 0, 0, 0}};
  double source = resample_source(r, scale, o);
  if (r->kind == WEIR_RESAMPLE_NEAREST || r->kind == WEIR_RESAMPLE_EXACT) {
    t.at[0] = window_clamped((int64_t)floor(source), r->in[d]);
    return t;
  }
  bool linear = r->kind == WEIR_RESAMPLE_LINEAR;
  if (linear && source < 0) source = 0;
  int64_t at = (int64_t)floor(source);
  if (at > r->in[d] - 1) at = r->in[d] - 1;
  double rest = source - (double)at;
  rest = rest < 0 ? 0 : rest > 1 ? 1 : rest;
  if (linear) {
    t.count = 2;
    t.at[0] = at;
    t.at[1] = window_clamped(at + 1, r->in[d]);
    t.weight[0] = 1 - rest;
    t.weight[1] = rest;
    return t;
  }
  t.count = 4;
  cubic_weights(t.weight, rest);
  for (int k = 0; k < 4; k++)
    t.at[k] = window_clamped(at - 1 + k, r->in[d]);
  return t;
}

/* Places of the output, *first to *last - 1, that may be made of place i of axis d. */
WEIR_HD void resampled_over(const weir_resample *r, int d, double scale, int64_t i, int64_t *first,
                            int64_t *last)
{
  *first = 0;
  *last = r->out[d];
  if (!(scale > 0)) return; /* all see the first place */
  double low = ((double)i - 3) / scale - 1, high = ((double)i + 4) / scale + 2;
  if (i < r->in[d] - 1 && high < (double)*last) *last = (int64_t)high + 1;
  if (low > 0) *first = low < (double)*last ? (int64_t)low : *last;
}

/* The sum of the weights with which output place o is made of place i. */
WEIR_HD double tap_weight(const window_taps *t, int64_t i)
{
  double sum = 0;
  for (int k = 0; k < t->count; k++)
    if (t->at[k] == i) sum += t->weight[k];
  return sum;
}

#endif
