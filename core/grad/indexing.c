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
  weir_tensor *o = NULL;
  bool larger = false;
  if (k->c.st) return;
  for (int d = 0; d < t->dims && t->dims == s->count; d++) {
    padding[2 * (t->dims - 1 - d) + 1] = s->size[d] - t->size[d];
    larger |= s->size[d] > t->size[d];
  }
  if (larger) {
    weir_status st = weir_pad(&o, t, padding, 2 * t->dims, WEIR_PAD_CONSTANT, weir_int(0));
    t = calc_keep(&k->c, st, &o);
  }
  give(k, 1, k->c.st ? NULL : c_reshape(k, t, *s));
}

/* ---- slices ---------------------------------------------------------------------------------- */

static const weir_tensor *slices_at(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *index = where_of(k);
  return calc_keep(&k->c, k->c.st ? k->c.st : weir_index_select(&o, G, DIM, index), &o);
}

static const weir_tensor *without_slices(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *index = where_of(k);
  weir_status st = k->c.st;
  return calc_keep(&k->c, st ? st : weir_index_fill(&o, G, DIM, index, weir_int(0)), &o);
}

static void embedding_back(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *indices = where_of(k);
  const int64_t *n = k->n->r.n;
  if (k->c.st) return;
  weir_status st = weir_embedding_dense_backward(&o, G, indices, n[0], n[1], n[2]);
  give(k, 0, calc_keep(&k->c, st, &o));
}

static void index_select_back(rule_run *k)
{
  weir_tensor *o = NULL, *sum = c_zeros(k, &k->n->of[0]);
  const weir_tensor *index = where_of(k);
  if (k->c.st) return;
  if (k->create_graph) {
    give(k, 0, calc_keep(&k->c, weir_index_add(&o, sum, DIM, index, G), &o));
    return;
  }
  k->c.st = weir_index_add_(sum, DIM, index, G);
  give(k, 0, sum);
}

static void index_add_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) give_written(k, slices_at(k));
}

static void index_copy_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, without_slices(k));
  if (wants_gradient(k, 1)) give_written(k, slices_at(k));
}

/* ---- elements -------------------------------------------------------------------------------- */

/* n[1]: the dimension is not in the result; n[2]: indices may count from the end. */
static void gather_back(rule_run *k)
{
  weir_tensor *o = NULL, *own = NULL, *wrapped = NULL, *sum = c_zeros(k, &k->n->of[0]);
  const weir_tensor *index = where_of(k), *g = G;
  if (!k->c.st && N[1] && sum->dims) {
    g = calc_keep(&k->c, weir_unsqueeze(&o, g, DIM), &o);
    if (!k->c.st) index = calc_keep(&k->c, weir_unsqueeze(&own, index, DIM), &own);
  }
  if (!k->c.st && N[2]) {
    weir_status st = weir_remainder_scalar(&wrapped, index, weir_int(sum->size[DIM]));
    index = calc_keep(&k->c, st, &wrapped);
  }
  if (k->c.st) return;
  if (k->create_graph) {
    weir_tensor *made = NULL;
    give(k, 0, calc_keep(&k->c, weir_scatter_add(&made, sum, DIM, index, g), &made));
    return;
  }
  k->c.st = weir_scatter_add_(sum, DIM, index, g);
  give(k, 0, sum);
}

static const weir_tensor *elements_at(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *index = where_of(k);
  return calc_keep(&k->c, k->c.st ? k->c.st : weir_gather(&o, G, DIM, index), &o);
}

static void scatter_back(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *index = where_of(k);
  if (k->c.st) return;
  if (wants_gradient(k, 0))
    give(k, 0, calc_keep(&k->c, weir_scatter_value(&o, G, DIM, index, weir_int(0)), &o));
  if (wants_gradient(k, 1)) give_written(k, elements_at(k));
}

static void scatter_add_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) give_written(k, elements_at(k));
}

/* ---- by number ------------------------------------------------------------------------------- */

static void take_back(rule_run *k)
{
  weir_tensor *o = NULL, *zeros = c_zeros(k, &k->n->of[0]);
  const weir_tensor *index = where_of(k);
  weir_status st = k->c.st;
  give(k, 0, calc_keep(&k->c, st ? st : weir_put(&o, zeros, index, G, true), &o));
}

/* n[0]: it adds. */
static void put_back(rule_run *k)
{
  weir_tensor *o = NULL, *taken = NULL;
  const weir_tensor *index = where_of(k);
  if (k->c.st) return;
  if (wants_gradient(k, 0) && N[0]) give(k, 0, G);
  if (wants_gradient(k, 0) && !N[0]) {
    grad_meta m = k->n->of[0];
    m.shape = weir_tensor_shape(index);
    const weir_tensor *zeros = c_zeros(k, &m);
    weir_status st = k->c.st;
    give(k, 0, calc_keep(&k->c, st ? st : weir_put(&o, G, index, zeros, false), &o));
  }
  if (wants_gradient(k, 1) && !k->c.st)
    give_written(k, calc_keep(&k->c, weir_take(&taken, G, index), &taken));
}

/* ---- masks, views ---------------------------------------------------------------------------- */

static void masked_fill_back(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *mask = where_of(k);
  if (k->c.st) return;
  if (wants_gradient(k, 0))
    give(k, 0, calc_keep(&k->c, weir_masked_fill(&o, G, mask, weir_int(0)), &o));
  if (wants_gradient(k, 1)) give(k, 1, c_where(k, mask, G));
}

/* ---- running reductions ---------------------------------------------------------------------- */

static const weir_tensor *turned(rule_run *k, const weir_tensor *t)
{
  weir_tensor *o = NULL;
  int dim = DIM;
  if (k->c.st || !t->dims) return t;
  return calc_keep(&k->c, weir_flip(&o, t, &dim, 1), &o);
}

/* The sum of all from each place on. */
static void cumsum_back(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *g = turned(k, G);
  give(k, 0, turned(k, calc_keep(&k->c, k->c.st ? k->c.st : weir_cumsum(&o, g, DIM), &o)));
}

/* A dimension's places from `from` on, of t; NULL where there is none or after an error. */
static const weir_tensor *places_from(rule_run *k, const weir_tensor *t, int64_t from,
                                      int64_t length)
{
  weir_tensor *o = NULL;
  weir_status st = k->c.st;
  return calc_keep(&k->c, st ? st : weir_narrow(&o, t, DIM, from, length), &o);
}

static const weir_tensor *joined(rule_run *k, const weir_tensor *a, const weir_tensor *b)
{
  weir_tensor *o = NULL;
  weir_status st = k->c.st;
  return calc_keep(&k->c, st ? st : weir_cat(&o, (const weir_tensor *[]){a, b}, 2, DIM), &o);
}

/* s of which s[i] = g[i] + step[i] s[i + 1], the last g itself: by doubling, as each s[i] already has
 * its first `off` terms and step[i] the product of as many. Differentiable, exact where a step is 0. */
static const weir_tensor *carried_back(rule_run *k, const weir_tensor *g, const weir_tensor *step)
{
  int64_t length = g->size[DIM];
  for (int64_t off = 1; off < length && !k->c.st; off *= 2) {
    int64_t rest = length - off, next = length - 2 * off;
    const weir_tensor *far = c_mul(k, step, places_from(k, g, off, rest));
    const weir_tensor *near = c_add(k, places_from(k, g, 0, rest), far);
    g = joined(k, near, places_from(k, g, rest, off));
    if (next > 0) step = c_mul(k, places_from(k, step, 0, next), places_from(k, step, off, next));
  }
  return g;
}

/* The product of all before each place, times what each later factor carries of later gradients. */
static void cumprod_back(rule_run *k)
{
  weir_tensor *o = NULL;
  const weir_tensor *a = operand(k, 0), *product = outcome(k, 0);
  if (k->c.st) return;
  int64_t length = a->dims && a->numel ? a->size[DIM] : 1;
  if (length == 1) {
    give(k, 0, G);
    return;
  }
  const weir_tensor *one = places_from(k, a, 0, 1);
  one = calc_keep(&k->c, k->c.st ? k->c.st : weir_ones_like(&o, one, NULL), &o);
  const weir_tensor *before = joined(k, one, places_from(k, product, 0, length - 1));
  const weir_tensor *step = places_from(k, a, 1, length - 1);
  if (!k->c.st) give(k, 0, c_mul(k, before, carried_back(k, G, step)));
}

/* e^(x - r) times what is carried by e^(r - the next r), which is 1 at most. */
static void logcumsumexp_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0), *r = outcome(k, 0), *sum = G;
  if (k->c.st) return;
  int64_t length = a->dims && a->numel ? a->size[DIM] : 1;
  if (length > 1) {
    const weir_tensor *now = places_from(k, r, 0, length - 1);
    const weir_tensor *next = places_from(k, r, 1, length - 1);
    const weir_tensor *step = c_exp(k, c_sub(k, now, next));
    if (!k->c.st) sum = carried_back(k, G, step);
  }
  give(k, 0, c_mul(k, c_exp(k, c_sub(k, a, r)), sum));
}

/* ---- parts replaced -------------------------------------------------------------------------- */

/* A part of t as the operation put one into it, or t with `src` there. */
static const weir_tensor *part_of(rule_run *k, const weir_tensor *t, const weir_tensor *src)
{
  weir_tensor *o = NULL;
  const int64_t *n = N;
  weir_status st = k->c.st;
  if (st) return NULL;
  switch (k->n->r.kind) {
  case RECORD_SELECT_SCATTER:
    st = src ? weir_select_scatter(&o, t, src, DIM, n[1]) : weir_select(&o, t, DIM, n[1]);
    break;
  case RECORD_SLICE_SCATTER:
    st = src ? weir_slice_scatter(&o, t, src, DIM, n[1], n[2], n[3])
             : weir_slice(&o, t, DIM, n[1], n[2], n[3]);
    break;
  default:
    st = src ? weir_diagonal_scatter(&o, t, src, n[0], (int)n[1], (int)n[2])
             : weir_diagonal(&o, t, n[0], (int)n[1], (int)n[2]);
  }
  return calc_keep(&k->c, st, &o);
}

static void part_scatter_back(rule_run *k)
{
  if (wants_gradient(k, 0)) {
    grad_meta m = k->n->of[1];
    const weir_tensor *none = c_zeros(k, &m);
    give(k, 0, part_of(k, G, none));
  }
  if (wants_gradient(k, 1)) give(k, 1, part_of(k, G, NULL));
}

static const grad_rule rules[RECORD_KINDS] = {
    [RECORD_INDEX_SELECT] = {"IndexSelectBackward0", index_select_back, {KEEP_C}},
    [RECORD_EMBEDDING] = {"EmbeddingBackward0", embedding_back, {KEEP_C}},
    [RECORD_INDEX_ADD] = {"IndexAddBackward0", index_add_back, {0, KEEP_C}},
    [RECORD_INDEX_COPY] = {"IndexCopyBackward0", index_copy_back, {KEEP_C, KEEP_C}},
    [RECORD_INDEX_FILL] = {"IndexFillBackward0", index_copy_back, {KEEP_C}},
    [RECORD_GATHER] = {"GatherBackward0", gather_back, {KEEP_C}},
    [RECORD_SORT] = {"SortBackward0", gather_back, {KEEP_C}},
    [RECORD_TOPK] = {"TopkBackward0", gather_back, {KEEP_C}},
    [RECORD_KTHVALUE] = {"KthvalueBackward0", gather_back, {KEEP_C}},
    [RECORD_MEDIAN] = {"MedianBackward1", gather_back, {KEEP_C}},
    [RECORD_CUMMAX] = {"CummaxBackward0", gather_back, {KEEP_C}},
    [RECORD_CUMMIN] = {"CumminBackward0", gather_back, {KEEP_C}},
    [RECORD_SCATTER] = {"ScatterBackward0", scatter_back, {KEEP_C, KEEP_C}},
    [RECORD_SCATTER_ADD] = {"ScatterAddBackward0", scatter_add_back, {0, KEEP_C}},
    [RECORD_TAKE] = {"TakeBackward0", take_back, {KEEP_C}},
    [RECORD_PUT] = {"PutBackward0", put_back, {KEEP_C, KEEP_C}},
    [RECORD_MASKED_FILL] = {"MaskedFillBackward0", masked_fill_back, {KEEP_C, KEEP_C}},
    [RECORD_CUMSUM] = {"CumsumBackward0", cumsum_back, {0}},
    [RECORD_CUMPROD] = {"CumprodBackward0", cumprod_back, {KEEP_A | KEEP_OUT}},
    [RECORD_LOGCUMSUMEXP] = {"LogcumsumexpBackward0", logcumsumexp_back, {KEEP_A | KEEP_OUT}},
    [RECORD_SELECT_SCATTER] = {"SelectScatterBackward0", part_scatter_back, {0}},
    [RECORD_SLICE_SCATTER] = {"SliceScatterBackward0", part_scatter_back, {0}},
    [RECORD_DIAGONAL_SCATTER] = {"DiagonalScatterBackward0", part_scatter_back, {0}},
};

const grad_rule *indexing_rule(const record *r)
{
  const grad_rule *rule = &rules[r->kind];
  return rule->name ? rule : scatter_reduce_rule(r);
}
