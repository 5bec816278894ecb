/* indexing.c: derivatives of what chooses elements by index tensors, masks and order.
 *
 * What was read from a place gives its gradient back to it: reading and adding are each other's
 * derivative. Of what is written over nothing comes back. Operands are, of all of them: what is
 * read or changed, what is written (or none), where. */
#include "core/grad/tape.h"

#define G   (k->g[0])
#define N   (k->n->r.n)
#define DIM ((int)N[0])

static const weir_tensor *where_of(rule_run *k)
{
  return operand(k, 2);
}

void give_written(rule_run *k, const weir_tensor *t)
{
  const weir_shape *s = &k->n->of[1].shape;
  int64_t padding[2 * WEIR_MAX_DIMS] = {0};
  bool larger = false;
  if (k->c->st) return;
  for (int d = 0; d < t->dims && t->dims == s->count; d++) {
    padding[2 * (t->dims - 1 - d) + 1] = s->size[d] - t->size[d];
    larger |= s->size[d] > t->size[d];
  }
  if (larger) {
    t = c_call(k->c, weir_pad, t, padding, 2 * t->dims, WEIR_PAD_CONSTANT, weir_int(0));
  }
  give(k, 1, k->c->st ? NULL : c_reshape(k->c, t, *s));
}

/* ---- slices ---------------------------------------------------------------------------------- */

static const weir_tensor *slices_at(rule_run *k)
{
  const weir_tensor *index = where_of(k);
  return c_index_select(k->c, G, DIM, index);
}

static const weir_tensor *without_slices(rule_run *k)
{
  const weir_tensor *index = where_of(k);
  return c_call(k->c, weir_index_fill, G, DIM, index, weir_int(0));
}

void embedding_back(rule_run *k)
{
  const weir_tensor *indices = where_of(k);
  const int64_t *n = k->n->r.n;
  if (k->c->st) return;
  give(k, 0, c_call(k->c, weir_embedding_dense_backward, G, indices, n[0], n[1], n[2]));
}

void index_select_back(rule_run *k)
{
  weir_tensor *sum = zeros_of(k, &k->n->of[0]);
  const weir_tensor *index = where_of(k);
  if (k->c->st) return;
  if (k->create_graph) {
    give(k, 0, c_call(k->c, weir_index_add, sum, DIM, index, G));
    return;
  }
  k->c->st = weir_index_add_(sum, DIM, index, G);
  give(k, 0, sum);
}

void index_add_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) give_written(k, slices_at(k));
}

void index_copy_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, without_slices(k));
  if (wants_gradient(k, 1)) give_written(k, slices_at(k));
}

/* ---- elements -------------------------------------------------------------------------------- */

/* n[1]: the dimension is not in the result; n[2]: indices may count from the end. */
void gather_back(rule_run *k)
{
  weir_tensor *sum = zeros_of(k, &k->n->of[0]);
  const weir_tensor *index = where_of(k), *g = G;
  if (!k->c->st && N[1] && sum->dims) {
    g = c_unsqueeze(k->c, g, DIM);
    if (!k->c->st) index = c_unsqueeze(k->c, index, DIM);
  }
  if (!k->c->st && N[2]) {
    index = c_call(k->c, weir_remainder_scalar, index, weir_int(sum->size[DIM]));
  }
  if (k->c->st) return;
  if (k->create_graph) {
    give(k, 0, c_call(k->c, weir_scatter_add, sum, DIM, index, g));
    return;
  }
  k->c->st = weir_scatter_add_(sum, DIM, index, g);
  give(k, 0, sum);
}

static const weir_tensor *elements_at(rule_run *k)
{
  const weir_tensor *index = where_of(k);
  return c_gather(k->c, G, DIM, index);
}

void scatter_back(rule_run *k)
{
  const weir_tensor *index = where_of(k);
  if (k->c->st) return;
  if (wants_gradient(k, 0))
    give(k, 0, c_call(k->c, weir_scatter_value, G, DIM, index, weir_int(0)));
  if (wants_gradient(k, 1)) give_written(k, elements_at(k));
}

void scatter_add_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) give_written(k, elements_at(k));
}

/* ---- by number ------------------------------------------------------------------------------- */

void take_back(rule_run *k)
{
  weir_tensor *zeros = zeros_of(k, &k->n->of[0]);
  const weir_tensor *index = where_of(k);
  give(k, 0, c_call(k->c, weir_put, zeros, index, G, true));
}

/* n[0]: it adds. */
void put_back(rule_run *k)
{
  const weir_tensor *index = where_of(k);
  if (k->c->st) return;
  if (wants_gradient(k, 0) && N[0]) give(k, 0, G);
  if (wants_gradient(k, 0) && !N[0]) {
    grad_meta m = k->n->of[0];
    m.shape = weir_tensor_shape(index);
    const weir_tensor *zeros = zeros_of(k, &m);
    give(k, 0, c_call(k->c, weir_put, G, index, zeros, false));
  }
  if (wants_gradient(k, 1) && !k->c->st) give_written(k, c_call(k->c, weir_take, G, index));
}

/* ---- masks, views ---------------------------------------------------------------------------- */

void masked_fill_back(rule_run *k)
{
  const weir_tensor *mask = where_of(k);
  if (k->c->st) return;
  if (wants_gradient(k, 0)) give(k, 0, c_masked_fill(k->c, G, mask, weir_int(0)));
  if (wants_gradient(k, 1)) give(k, 1, c_masked(k->c, mask, G));
}

/* ---- running reductions ---------------------------------------------------------------------- */

static const weir_tensor *turned_around(rule_run *k, const weir_tensor *t)
{
  int dim = DIM;
  if (k->c->st || !t->dims) return t;
  return c_call(k->c, weir_flip, t, &dim, 1);
}

/* The sum of all from each place on. */
void cumsum_back(rule_run *k)
{
  const weir_tensor *g = turned_around(k, G);
  give(k, 0, turned_around(k, c_cumsum(k->c, g, DIM)));
}

/* A dimension's places from `from` on, of t; NULL where there is none or after an error. */
static const weir_tensor *places_from(rule_run *k, const weir_tensor *t, int64_t from,
                                      int64_t length)
{
  return c_narrow(k->c, t, DIM, from, length);
}

static const weir_tensor *joined_parts(rule_run *k, const weir_tensor *a, const weir_tensor *b)
{
  return c_call(k->c, weir_cat, (const weir_tensor *[]){a, b}, 2, DIM);
}

/* s of which s[i] = g[i] + step[i] s[i + 1], the last g itself: by doubling, as each s[i] already
 * has its first `off` terms and step[i] the product of as many. Differentiable, exact where a step
 * is 0. */
static const weir_tensor *carried_back(rule_run *k, const weir_tensor *g, const weir_tensor *step)
{
  int64_t length = g->size[DIM];
  for (int64_t off = 1; off < length && !k->c->st; off *= 2) {
    int64_t rest = length - off, next = length - 2 * off;
    const weir_tensor *far = c_mul(k->c, step, places_from(k, g, off, rest));
    const weir_tensor *near = c_add(k->c, places_from(k, g, 0, rest), far);
    g = joined_parts(k, near, places_from(k, g, rest, off));
    if (next > 0)
      step = c_mul(k->c, places_from(k, step, 0, next), places_from(k, step, off, next));
  }
  return g;
}

/* The product of all before each place, times what each later factor carries of later gradients. */
void cumprod_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0), *product = outcome(k, 0);
  if (k->c->st) return;
  int64_t length = a->dims && a->numel ? a->size[DIM] : 1;
  if (length == 1) {
    give(k, 0, G);
    return;
  }
  const weir_tensor *one = places_from(k, a, 0, 1);
  one = c_ones_like(k->c, one, NULL);
  const weir_tensor *before = joined_parts(k, one, places_from(k, product, 0, length - 1));
  const weir_tensor *step = places_from(k, a, 1, length - 1);
  if (!k->c->st) give(k, 0, c_mul(k->c, before, carried_back(k, G, step)));
}

/* e^(x - r) times what is carried by e^(r - the next r), which is 1 at most. */
void logcumsumexp_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0), *r = outcome(k, 0), *sum = G;
  if (k->c->st) return;
  int64_t length = a->dims && a->numel ? a->size[DIM] : 1;
  if (length > 1) {
    const weir_tensor *now = places_from(k, r, 0, length - 1);
    const weir_tensor *next = places_from(k, r, 1, length - 1);
    const weir_tensor *step = c_exp(k->c, c_sub(k->c, now, next));
    if (!k->c->st) sum = carried_back(k, G, step);
  }
  give(k, 0, c_mul(k->c, c_exp(k->c, c_sub(k->c, a, r)), sum));
}

/* ---- parts replaced -------------------------------------------------------------------------- */

/* A part of t as the operation put one into it, or t with `src` there. */
static const weir_tensor *scattered_part(rule_run *k, const weir_tensor *t, const weir_tensor *src)
{
  const int64_t *n = N;
  calc *c = k->c;
  switch (k->n->r.kind) {
  case RECORD_SELECT_SCATTER:
    return src ? c_call(c, weir_select_scatter, t, src, DIM, n[1]) : c_select(c, t, DIM, n[1]);
  case RECORD_SLICE_SCATTER:
    return src ? c_call(c, weir_slice_scatter, t, src, DIM, n[1], n[2], n[3])
               : c_call(c, weir_slice, t, DIM, n[1], n[2], n[3]);
  default:
    return src ? c_call(c, weir_diagonal_scatter, t, src, n[0], (int)n[1], (int)n[2])
               : c_diagonal(c, t, n[0], (int)n[1], (int)n[2]);
  }
}

void part_scatter_back(rule_run *k)
{
  if (wants_gradient(k, 0)) {
    grad_meta m = k->n->of[1];
    const weir_tensor *none = zeros_of(k, &m);
    give(k, 0, scattered_part(k, G, none));
  }
  if (wants_gradient(k, 1)) give(k, 1, scattered_part(k, G, NULL));
}
