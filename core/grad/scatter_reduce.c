/* scatter_reduce.c: derivatives of scatter_reduce: what several elements became one by a sum, a
 * product, a mean or the largest or smallest of them.
 *
 * Words. self: what is scattered into. source: as many elements as there are indices. lost: places
 * of self that some index writes, where self itself does not count. */
#include "core/grad/tape.h"

#define G      (k->g[0])
#define DIM    ((int)k->n->r.n[0])
#define OP     ((weir_scatter_op)k->n->r.n[1])
#define WITH   (k->n->r.n[2] != 0) /* self counts */
#define PLACES (operand(k, 2))

static const weir_tensor *gathered(rule_run *k, const weir_tensor *t)
{
  const weir_tensor *index = PLACES;
  return c_gather(k->c, t, DIM, index);
}

/* t plus, at their places, the source's elements. */
static const weir_tensor *with_added(rule_run *k, const weir_tensor *t, const weir_tensor *source)
{
  const weir_tensor *index = PLACES;
  return c_call(k->c, weir_scatter_add, t, DIM, index, source);
}

static const weir_tensor *multiplied(rule_run *k, const weir_tensor *t, const weir_tensor *source)
{
  const weir_tensor *index = PLACES;
  return c_call(k->c, weir_scatter_reduce, t, DIM, index, source, WEIR_SCATTER_PROD, WITH);
}

static const weir_tensor *filled_like(rule_run *k, const weir_tensor *t, double value)
{
  return c_call(k->c, weir_full_like, t, weir_float(value), NULL);
}

/* What is read of the source: as much as there are indices. */
static const weir_tensor *used_source(rule_run *k)
{
  const weir_tensor *source = operand(k, 1), *index = PLACES;
  for (int d = 0; d < (k->c->st ? 0 : index->dims); d++) {
    if (source->size[d] == index->size[d]) continue;
    source = c_call(k->c, weir_narrow, source, d, 0, index->size[d]);
    if (k->c->st) return NULL;
  }
  return source;
}

/* To self, without what is lost. */
static void give_self(rule_run *k, const weir_tensor *t)
{
  const weir_tensor *index = PLACES;
  if (!WITH) {
    t = c_call(k->c, weir_scatter_value, t, DIM, index, weir_int(0));
  }
  give(k, 0, t);
}

/* How many elements each is the mean of, at least 1. */
static const weir_tensor *numbers_of_terms(rule_run *k)
{
  const weir_tensor *index = PLACES;
  if (k->c->st) return NULL;
  grad_meta m = k->n->of[1];
  m.shape = weir_tensor_shape(index);
  const weir_tensor *ones = c_add_s(k->c, zeros_of(k, &m), 1);
  const weir_tensor *count = with_added(k, filled_like(k, G, WITH), ones);
  return c_maximum_s(k->c, count, 1);
}

static void linear_back(rule_run *k)
{
  const weir_tensor *g = G;
  if (OP == WEIR_SCATTER_MEAN) g = c_div(k->c, g, numbers_of_terms(k));
  if (wants_gradient(k, 0)) give_self(k, g);
  if (wants_gradient(k, 1)) give_written(k, gathered(k, g));
}

/* Whether a place has more than one 0 of the source; `count`: how many there are. */
static bool has_several(rule_run *k, const weir_tensor *count)
{
  weir_scalar truth = {.dtype = WEIR_BOOL};
  const weir_tensor *is = c_gt_s(k->c, count, 1);
  is = c_any(k->c, is);
  c_do(k->c, weir_item(&truth, is));
  return !k->c->st && truth.i;
}

/* The product of the others than those at `at` along the dimension. */
static const weir_tensor *without(rule_run *k, const weir_tensor *self, const weir_tensor *source,
                                  int64_t at)
{
  const weir_tensor *index = PLACES;
  const weir_tensor *one = filled_like(k, source, 1);
  one = c_narrow(k->c, one, DIM, at, 1);
  source = c_call(k->c, weir_slice_scatter, source, one, DIM, at, at + 1, 1);
  const weir_tensor *product = multiplied(k, self, source);
  return c_gather(k->c, product, DIM, c_narrow(k->c, index, DIM, at, 1));
}

/* For each of the source the product of the others, whose derivative is right where several are 0:
 * a product for each place of the dimension. */
static const weir_tensor *products_of_others(rule_run *k, const weir_tensor *self,
                                             const weir_tensor *source)
{
  weir_tensor *all = NULL;
  int64_t length = source->dims ? source->size[DIM] : 1;
  for (int64_t i = 0; i < length && !k->c->st; i++) {
    int mark = k->c->count;
    weir_tensor *joined = NULL;
    const weir_tensor *part = without(k, self, source, i);
    if (!k->c->st && all)
      k->c->st = weir_cat(&joined, (const weir_tensor *[]){all, part}, 2, DIM);
    else if (!k->c->st)
      joined = weir_tensor_retain((weir_tensor *)part);
    weir_tensor_release(all);
    all = joined;
    calc_drop(k->c, mark);
  }
  return calc_keep(k->c, k->c->st, &all);
}

/* Of self the product of the source; of the source that of the others: where it is the one 0 among
 * them the product without it. */
static void product_back(rule_run *k)
{
  const weir_tensor *self = operand(k, 0), *source = used_source(k), *result = outcome(k, 0);
  if (k->c->st) return;
  if (wants_gradient(k, 0)) {
    const weir_tensor *safe = c_where(k->c, c_eq_s(k->c, self, 0), filled_like(k, self, 1), self);
    give_self(k, c_div(k->c, c_mul(k->c, G, multiplied(k, safe, source)), safe));
  }
  if (!wants_gradient(k, 1)) return;
  const weir_tensor *zero = c_eq_s(k->c, source, 0), *ones = filled_like(k, source, 1);
  grad_meta m = k->n->of[0];
  const weir_tensor *count = with_added(k, zeros_of(k, &m), c_to_dtype(k->c, zero, m.dtype));
  if (k->create_graph && source->dims && has_several(k, count)) {
    give_written(k, c_mul(k->c, gathered(k, G), products_of_others(k, self, source)));
    return;
  }
  const weir_tensor *single = c_logical_and(k->c, zero, c_eq_s(k->c, gathered(k, count), 1));
  const weir_tensor *rest = multiplied(k, self, c_where(k->c, single, ones, source));
  const weir_tensor *through =
      c_div(k->c, gathered(k, c_mul(k->c, G, result)), c_where(k->c, zero, ones, source));
  give_written(k, c_where(k->c, single, gathered(k, c_mul(k->c, G, rest)), through));
}

/* Shared by all that are equal to it, self among them even where it does not count, as torch has
 * it. */
static void largest_back(rule_run *k)
{
  const weir_tensor *self = operand(k, 0), *source = used_source(k), *result = outcome(k, 0);
  const weir_tensor *own = c_eq(k->c, self, result),
                    *theirs = c_eq(k->c, source, gathered(k, result));
  if (k->c->st) return;
  const weir_tensor *count = with_added(k, c_to_dtype(k->c, own, k->n->meta[0].dtype),
                                        c_to_dtype(k->c, theirs, k->n->meta[0].dtype));
  const weir_tensor *part = c_div(k->c, G, count);
  if (wants_gradient(k, 0)) give_self(k, c_masked(k->c, own, part));
  if (wants_gradient(k, 1)) give_written(k, c_masked(k->c, theirs, gathered(k, part)));
}

void scatter_reduce_back(rule_run *k)
{
  if (OP == WEIR_SCATTER_PROD)
    product_back(k);
  else if (OP == WEIR_SCATTER_AMAX || OP == WEIR_SCATTER_AMIN)
    largest_back(k);
  else
    linear_back(k);
}
