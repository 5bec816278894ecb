/* product.c: derivatives of products, convolution, softmax and normalised rows.
 *
 * A convolution's with regard to its input is one itself, of the gradient, spread by the stride,
 * with the weights turned; with regard to the weights it is made of products (core/ops/conv.c), or,
 * where it is recorded, of convolutions of the input with the gradient, images and channels
 * exchanged. */
#include "core/grad/tape.h"
#include "core/ops/ops.h"

#define G (k->g[0])
#define N (k->n->r.n)

/* ---- matrices -------------------------------------------------------------------------------- */

/* A vector as a matrix of one row, or column. */
static const weir_tensor *as_matrix(rule_run *k, const weir_tensor *t, bool column)
{
  if (k->c->st || t->dims > 1) return t;
  return c_reshape(k->c, t, column ? weir_shape(t->size[0], 1) : weir_shape(1, t->size[0]));
}

/* All but the last dimension as rows. */
static const weir_tensor *as_rows(rule_run *k, const weir_tensor *t)
{
  if (k->c->st || t->dims <= 2) return t;
  int64_t columns = t->size[t->dims - 1];
  return c_reshape(k->c, t, weir_shape(columns ? t->numel / columns : 0, columns));
}

static weir_shape product_shape(const weir_shape *a, const weir_shape *b)
{
  int64_t m = a->count > 1 ? a->size[a->count - 2] : 1;
  int64_t n = b->count > 1 ? b->size[b->count - 1] : 1;
  weir_shape batch = weir_shape_of(a->count > 2 ? a->count - 2 : 0, a->size);
  (void)shape_broadcast(&batch, b->size, b->count > 2 ? b->count - 2 : 0);
  batch.size[batch.count++] = m;
  batch.size[batch.count++] = n;
  return batch;
}

/* t through alpha, where that is not 1. */
static const weir_tensor *scaled_by(rule_run *k, const weir_tensor *t, double alpha)
{
  return alpha == 1 ? t : c_mul_s(k->c, t, alpha);
}

/* a through g's rows, as b lies in memory: what a leaf's transposed view gets is then the leaf's
 * own. */
static const weir_tensor *right_factor(rule_run *k, const weir_tensor *a, const weir_tensor *g,
                                       bool turned)
{
  if (turned) return c_transpose(k->c, c_matmul(k->c, c_transpose(k->c, g, -1, -2), a), -1, -2);
  return c_matmul(k->c, c_transpose(k->c, a, -1, -2), g);
}

/* Of operands a and b, numbers `ia` and `ia` + 1 of the node, whose product times alpha it is. */
static void product_back(rule_run *k, int ia, double alpha)
{
  const weir_shape *sa = &k->n->of[ia].shape, *sb = &k->n->of[ia + 1].shape;
  const weir_tensor *g = c_reshape(k->c, G, product_shape(sa, sb));
  bool folds = sb->count == 2 && sa->count > 2;
  if (wants_gradient(k, ia)) {
    const weir_tensor *b = as_matrix(k, c_conj(k->c, operand(k, ia + 1)), true);
    const weir_tensor *ga = c_matmul(k->c, g, c_transpose(k->c, b, -1, -2));
    if (sa->count == 1)
      ga = k->c->st ? NULL : c_sum_mask(k->c, ga, (1u << (ga->dims - 1)) - 1, false);
    give(k, ia, scaled_by(k, ga, alpha));
  }
  if (wants_gradient(k, ia + 1)) {
    const weir_tensor *a = as_matrix(k, c_conj(k->c, operand(k, ia)), false);
    if (folds) a = as_rows(k, a), g = as_rows(k, g);
    const weir_tensor *gb =
        right_factor(k, a, g, k->n->of[ia + 1].turned && k->n->of[ia].shape.count > 1);
    if (sb->count == 1) {
      gb = k->c->st ? NULL : c_sum_mask(k->c, gb, (1u << (gb->dims - 2)) - 1, false);
      gb = k->c->st ? NULL : c_reshape(k->c, gb, *sb);
    }
    give(k, ia + 1, scaled_by(k, gb, alpha));
  }
}

void matmul_back(rule_run *k)
{
  product_back(k, 0, 1);
}

void addmm_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, scaled_by(k, G, k->n->r.p[0]));
  if (wants_gradient(k, 1) || wants_gradient(k, 2)) product_back(k, 1, k->n->r.p[1]);
}

/* ---- convolution ----------------------------------------------------------------------------- */

static const weir_tensor *convolved(rule_run *k, const weir_tensor *a, const weir_tensor *w,
                                    const weir_conv2d_options *o)
{
  return c_call(k->c, weir_conv2d, a, w, NULL, o);
}

static const weir_tensor *padded(rule_run *k, const weir_tensor *t, const int64_t padding[4])
{
  if (k->c->st || !(padding[0] || padding[1] || padding[2] || padding[3])) return t;
  return c_call(k->c, weir_pad, t, padding, 4, WEIR_PAD_CONSTANT, weir_int(0));
}

/* stride - 1 zeros put between neighbours of dimension `dim`. */
static const weir_tensor *spaced(rule_run *k, const weir_tensor *t, int dim, int64_t stride)
{
  int64_t padding[2 * WEIR_MAX_DIMS] = {0};
  if (k->c->st || stride == 1 || t->size[dim] == 1) return t;
  int64_t size = t->size[dim], whole = (size - 1) * stride + 1;
  weir_shape merged = weir_tensor_shape(t);
  const weir_tensor *split = c_unsqueeze(k->c, t, dim + 1);
  if (!split) return NULL;
  int at = 2 * (split->dims - 1 - (dim + 1));
  padding[at + 1] = stride - 1;
  const weir_tensor *grown =
      c_call(k->c, weir_pad, split, padding, at + 2, WEIR_PAD_CONSTANT, weir_int(0));
  merged.size[dim] = size * stride;
  const weir_tensor *flat = c_reshape(k->c, grown, merged);
  return c_narrow(k->c, flat, dim, 0, whole);
}

/* Weights for the way back: groups x (out, in) exchanged to groups x (in, out), turned around. */
static const weir_tensor *turned_weight(rule_run *k, const weir_tensor *w, int64_t groups)
{
  if (k->c->st) return NULL;
  int64_t outs = w->size[0] / groups, ins = w->size[1], kh = w->size[2], kw = w->size[3];
  const weir_tensor *t = c_reshape(k->c, w, (weir_shape){5, {groups, outs, ins, kh, kw}});
  t = c_reshape(k->c, c_transpose(k->c, t, 1, 2), weir_shape(groups * ins, outs, kh, kw));
  return c_call(k->c, weir_flip, t, (const int[]){2, 3}, 2);
}

/* False: no library of the device's does it. */
static bool input_by_library(rule_run *k, const weir_tensor *g, const weir_tensor *w,
                             const weir_shape *in)
{
  weir_conv2d_options o = {
      .stride = {N[0], N[1]}, .padding = {N[2], N[3]}, .dilation = {N[4], N[5]}, .groups = N[6]};
  const weir_tensor *whole = c_call(k->c, conv2d_input_backward, g, w, *in, &o);
  if (!whole) return k->c->st;
  give(k, 0, c_reshape(k->c, whole, k->n->of[0].shape));
  return true;
}

static void conv_input(rule_run *k, const weir_tensor *g, const weir_shape *in)
{
  const weir_tensor *w = operand(k, 1);
  int64_t padding[4], groups = N[6];
  bool even = true;
  if (k->c->st) return;
  weir_conv2d_options o = {.dilation = {N[4], N[5]}, .groups = groups};
  if (!k->create_graph && input_by_library(k, g, w, in)) return;
  g = spaced(k, spaced(k, g, 2, N[0]), 3, N[1]);
  if (k->c->st) return;
  for (int i = 0; i < 2; i++) { /* so that as many come out as went in */
    int64_t span = N[4 + i] * (w->size[2 + i] - 1), before = span - N[2 + i];
    padding[2 - 2 * i] = before;
    padding[2 - 2 * i + 1] = in->size[2 + i] + span - g->size[2 + i] - before;
    even = even && before >= 0 && padding[2 - 2 * i + 1] == before;
  }
  if (even)
    o.padding[0] = padding[2], o.padding[1] = padding[0];
  else
    g = padded(k, g, padding);
  const weir_tensor *ga = convolved(k, g, turned_weight(k, w, groups), &o);
  give(k, 0, k->c->st ? NULL : c_reshape(k->c, ga, k->n->of[0].shape));
}

/* Of one group: channels are images, images are channels, the gradient is the kernel. */
static const weir_tensor *conv_group(rule_run *k, const weir_tensor *a, const weir_tensor *g,
                                     const weir_shape *w)
{
  weir_conv2d_options o = {
      .stride = {N[4], N[5]}, .padding = {N[2], N[3]}, .dilation = {N[0], N[1]}};
  const weir_tensor *wide = convolved(k, c_contiguous(k->c, c_transpose(k->c, a, 0, 1)),
                                      c_contiguous(k->c, c_transpose(k->c, g, 0, 1)), &o);
  for (int i = 0; i < 2 && !k->c->st; i++) {
    wide = c_call(k->c, weir_narrow, wide, 2 + i, 0, w->size[2 + i]);
  }
  return c_transpose(k->c, wide, 0, 1);
}

static void conv_weight(rule_run *k, const weir_tensor *a, const weir_tensor *g)
{
  const weir_shape *w = &k->n->of[1].shape;
  int64_t groups = N[6], outs = w->size[0] / groups, ins = w->size[1];
  if (!k->create_graph) {
    weir_conv2d_options o = {.stride = {N[0], N[1]},
                             .padding = {N[2], N[3]},
                             .dilation = {N[4], N[5]},
                             .groups = groups};
    give(k, 1, c_call(k->c, conv2d_weight_backward, a, g, *w, &o));
    return;
  }
  if (groups == 1) {
    give(k, 1, conv_group(k, a, g, w));
    return;
  }
  weir_tensor *sum = NULL;
  for (int64_t i = 0; i < groups && !k->c->st; i++) {
    int mark = k->c->count;
    weir_tensor *joined = NULL;
    const weir_tensor *pa = c_narrow(k->c, a, 1, i * ins, ins);
    const weir_tensor *pg = c_narrow(k->c, g, 1, i * outs, outs);
    const weir_tensor *part = k->c->st ? NULL : conv_group(k, pa, pg, w);
    c_do(k->c, weir_cat(&joined, (const weir_tensor *[]){sum ? sum : part, part}, sum ? 2 : 1, 0));
    calc_drop(k->c, mark);
    weir_tensor_release(sum);
    sum = joined;
  }
  give(k, 1, sum);
  weir_tensor_release(sum);
}

void conv2d_back(rule_run *k)
{
  const weir_shape *s = &k->n->of[0].shape;
  weir_shape in = *s;
  const weir_tensor *g = G;
  if (s->count == 3) {
    in = weir_shape(1, s->size[0], s->size[1], s->size[2]);
    g = c_reshape(k->c, g, weir_shape(1, G->size[0], G->size[1], G->size[2]));
  }
  if (wants_gradient(k, 0)) conv_input(k, g, &in);
  if (wants_gradient(k, 1)) {
    const weir_tensor *a = operand(k, 0);
    if (s->count == 3) a = c_reshape(k->c, a, in);
    conv_weight(k, a, g);
  }
  if (k->n->inputs > 2 && wants_gradient(k, 2)) give(k, 2, c_sum_mask(k->c, g, 13, false));
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void soft_back(rule_run *k, bool logarithm)
{
  const weir_tensor *r = outcome(k, 0);
  uint32_t mask = k->n->meta[0].shape.count ? 1u << N[0] : 0;
  if (k->c->st) return;
  if (!k->create_graph) {
    give(k, 0, c_call(k->c, softmax_backward, G, r, (int)N[0], logarithm));
    return;
  }
  if (logarithm)
    give(k, 0, c_sub(k->c, G, c_mul(k->c, c_exp(k->c, r), c_sum_mask(k->c, G, mask, true))));
  else
    give(k, 0, c_mul(k->c, r, c_sub(k->c, G, c_sum_mask(k->c, c_mul(k->c, G, r), mask, true))));
}

void softmax_back(rule_run *k)
{
  soft_back(k, false);
}

void log_softmax_back(rule_run *k)
{
  soft_back(k, true);
}

void logsumexp_back(rule_run *k)
{
  weir_shape s = k->n->of[0].shape;
  for (int d = 0; d < s.count; d++)
    if (N[0] >> d & 1) s.size[d] = 1;
  const weir_tensor *a = operand(k, 0), *r = c_reshape(k->c, outcome(k, 0), s);
  give(k, 0, c_mul(k->c, c_reshape(k->c, G, s), c_exp(k->c, c_sub(k->c, a, r))));
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* t, of the wide dtype, as (images, groups, channels of a group, places of a channel). */
static const weir_tensor *as_channels(rule_run *k, const weir_tensor *t, weir_dtype wide)
{
  return c_reshape(k->c, c_to_dtype(k->c, t, wide),
                   weir_shape(N[1] / N[3], N[3], N[2] / N[4], N[4]));
}

enum { ROWS = 12, PARAMETERS = 9 }; /* masks: what a row has; what shares a weight */

static const weir_tensor *row_means(rule_run *k, const weir_tensor *t)
{
  return c_mul_s(k->c, c_sum_mask(k->c, t, ROWS, true), 1 / (double)N[2]);
}

/* x without what it is more by and times what it is less by; that is *rstd. */
static const weir_tensor *normal_rows(rule_run *k, const weir_tensor *x, const weir_tensor **rstd)
{
  if (N[0] == WEIR_NORM_LAYER) x = c_sub(k->c, x, row_means(k, x));
  const weir_tensor *var = row_means(k, c_mul(k->c, x, x));
  *rstd = c_pow_s(k->c, c_add_s(k->c, var, k->n->r.p[0]), -0.5);
  return c_mul(k->c, x, *rstd);
}

/* By operations that are recorded, too. */
static void norm_input(rule_run *k, const weir_tensor *x, const weir_tensor *g)
{
  const weir_tensor *rstd, *w = is_number(k, 1) ? NULL : operand(k, 1);
  weir_dtype wide = x ? x->dtype : WEIR_FLOAT32;
  const weir_tensor *y = normal_rows(k, x, &rstd);
  if (w)
    g = c_mul(k->c, g,
              c_reshape(k->c, c_to_dtype(k->c, w, wide), weir_shape(N[3], N[2] / N[4], 1)));
  const weir_tensor *rest = c_mul(k->c, y, row_means(k, c_mul(k->c, g, y)));
  if (N[0] == WEIR_NORM_LAYER) rest = c_add(k->c, rest, row_means(k, g));
  const weir_tensor *back = c_mul(k->c, rstd, c_sub(k->c, g, rest));
  give(k, 0, c_to_dtype(k->c, c_reshape(k->c, back, k->n->of[0].shape), k->n->of[0].dtype));
}

static void norm_parameter(rule_run *k, int i, const weir_tensor *t)
{
  const weir_tensor *sum = c_sum_mask(k->c, t, PARAMETERS, false);
  give(k, i, c_to_dtype(k->c, c_reshape(k->c, sum, k->n->of[i].shape), k->n->of[i].dtype));
}

void rows_norm_back(rule_run *k)
{
  const weir_tensor *rstd, *y = NULL;
  weir_dtype d = k->n->of[0].dtype, wide = d == WEIR_FLOAT64 ? d : WEIR_FLOAT32;
  bool input = wants_gradient(k, 0), weight = k->n->inputs > 1 && wants_gradient(k, 1);
  const weir_tensor *a = input || weight ? operand(k, 0) : NULL, *w = NULL;
  const weir_tensor *g = as_channels(k, G, wide);
  if (input && k->create_graph) norm_input(k, as_channels(k, a, wide), g);
  if (input && !k->create_graph) {
    if (!is_number(k, 1)) w = operand(k, 1);
    give(k, 0, c_call(k->c, norm_back, G, a, w, N, k->n->r.p[0]));
  }
  if (weight && k->create_graph) y = normal_rows(k, as_channels(k, a, wide), &rstd);
  if (weight && !k->create_graph) {
    a = c_to_dtype(k->c, a, wide);
    y = as_channels(k, c_call(k->c, norm_alone, a, N, k->n->r.p[0]), wide);
  }
  if (weight) norm_parameter(k, 1, c_mul(k->c, g, y));
  if (k->n->inputs > 2 && wants_gradient(k, 2)) norm_parameter(k, 2, g);
}
