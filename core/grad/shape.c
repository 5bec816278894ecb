/* shape.c: derivatives of views, copies, and what joins, turns, repeats and pads. */
#include "core/grad/tape.h"

#define G (k->g[0])
#define N (k->n->r.n)

static const weir_shape *shape_of_operand(const rule_run *k)
{
  return &k->n->of[0].shape;
}

GIVES(view, c_reshape(k->c, G, *shape_of_operand(k)))

/* Who runs it sums what was repeated. */
GIVES(expand, c_sum_to(k->c, G, shape_of_operand(k)))

void permute_back(rule_run *k)
{
  int order[WEIR_MAX_DIMS] = {0};
  for (int i = 0; i < shape_of_operand(k)->count; i++)
    order[N[i]] = i;
  give(k, 0, c_permute(k->c, G, order));
}

/* The gradient, made of G by changes in place that were not recorded: `kind` states what they
 * were. */
static void give_linear(rule_run *k, weir_tensor *made, enum record_kind kind)
{
  if (!k->c->st && k->create_graph && G->node) {
    record r = {.kind = kind, .inputs = 1, .in = &G, .out = {made}};
    for (int i = 0; i < RECORD_NUMBERS; i++)
      r.n[i] = N[i];
    k->c->st = tensor_recorder->made(&r);
  }
  give(k, 0, made);
}

/* Copies G to a part of zeros: the gradient. */
static void give_part(rule_run *k, weir_tensor *zeros, weir_status st, weir_tensor *part,
                      enum record_kind kind)
{
  (void)calc_keep(k->c, st, &part);
  if (!k->c->st) {
    WEIR_UNRECORDED;
    k->c->st = weir_copy_(part, G, false);
  }
  give_linear(k, zeros, kind);
}

/* After the last of `count` elements of a slice, whatever its operand has beyond them. */
static int64_t end_of_slice(const rule_run *k, int64_t count)
{
  return count ? N[1] + (count - 1) * N[2] + 1 : N[1];
}

void slice_back(rule_run *k)
{
  int dim = (int)N[0];
  int64_t size = shape_of_operand(k)->size[dim], rest, padding[2 * WEIR_MAX_DIMS] = {0};
  weir_tensor *zeros, *part = NULL;
  if (N[2] == 1) {
    rest = size - N[1] - G->size[dim];
    padding[2 * (G->dims - 1 - dim)] = N[1];
    padding[2 * (G->dims - 1 - dim) + 1] = rest;
    give(k, 0, c_call(k->c, weir_pad, G, padding, 2 * G->dims, WEIR_PAD_CONSTANT, weir_int(0)));
    return;
  }
  zeros = zeros_of(k, &k->n->of[0]);
  if (!zeros) return;
  weir_status st = weir_slice(&part, zeros, dim, N[1], end_of_slice(k, G->size[dim]), N[2]);
  give_part(k, zeros, st, part, RECORD_SLICE_BACK);
}

void select_back(rule_run *k)
{
  int dim = (int)N[0];
  int64_t size = shape_of_operand(k)->size[dim], padding[2 * WEIR_MAX_DIMS] = {0};
  const weir_tensor *g = c_unsqueeze(k->c, G, dim);
  if (!g) return;
  padding[2 * (g->dims - 1 - dim)] = N[1];
  padding[2 * (g->dims - 1 - dim) + 1] = size - N[1] - 1;
  give(k, 0, c_call(k->c, weir_pad, g, padding, 2 * g->dims, WEIR_PAD_CONSTANT, weir_int(0)));
}

/* One place of all windows after the other. */
void unfold_back(rule_run *k)
{
  int dim = (int)N[0];
  weir_tensor *sum = zeros_of(k, &k->n->of[0]);
  if (!sum) return;
  if (!shape_of_operand(k)->count) {
    give(k, 0, c_reshape(k->c, G, *shape_of_operand(k)));
    return;
  }
  WEIR_UNRECORDED;
  for (int64_t i = 0; i < N[1] && !k->c->st; i++) {
    int mark = k->c->count;
    int64_t end = i + (G->size[dim] - 1) * N[2] + 1;
    weir_tensor *part = c_call(k->c, weir_slice, sum, dim, i, end, N[2]);
    const weir_tensor *g = c_select(k->c, G, -1, i);
    c_do(k->c, weir_add_(part, g));
    calc_drop(k->c, mark);
  }
  give_linear(k, sum, RECORD_UNFOLD_BACK);
}

void diagonal_back(rule_run *k)
{
  weir_tensor *zeros = zeros_of(k, &k->n->of[0]), *part = NULL;
  if (!zeros) return;
  weir_status st = weir_diagonal(&part, zeros, N[0], (int)N[1], (int)N[2]);
  give_part(k, zeros, st, part, RECORD_DIAGONAL_BACK);
}

/* ---- in place -------------------------------------------------------------------------------- */

GIVES_BOTH(copy, zeros_of(k, &k->n->of[0]), G)
GIVES(fill, zeros_of(k, &k->n->of[0]))

/* ---- joined ---------------------------------------------------------------------------------- */

static bool was_skipped(const grad_meta *m)
{
  return m->shape.count == 1 && !m->shape.size[0];
}

void cat_back(rule_run *k)
{
  int dim = (int)N[0];
  int64_t from = 0;
  for (int i = 0; i < k->n->inputs && !k->c->st; i++) {
    const grad_meta *m = &k->n->of[i];
    int mark = k->c->count;
    if (was_skipped(m)) continue;
    int64_t size = m->shape.size[dim];
    if (wants_gradient(k, i)) {
      give(k, i, c_narrow(k->c, G, dim, from, size));
      calc_drop(k->c, mark);
    }
    from += size;
  }
}

void stack_back(rule_run *k)
{
  for (int i = 0; i < k->n->inputs && !k->c->st; i++) {
    int mark = k->c->count;
    if (!wants_gradient(k, i)) continue;
    give(k, i, c_select(k->c, G, (int)N[0], i));
    calc_drop(k->c, mark);
  }
}

/* ---- other orders ---------------------------------------------------------------------------- */

void flip_back(rule_run *k)
{
  int dims[WEIR_MAX_DIMS], count = 0;
  for (int d = 0; d < G->dims; d++)
    if (N[0] >> d & 1) dims[count++] = d;
  give(k, 0, c_call(k->c, weir_flip, G, dims, count));
}

void roll_back(rule_run *k)
{
  int64_t shift = -N[0];
  int dim = (int)N[1];
  give(k, 0, G->dims ? c_call(k->c, weir_roll, G, &shift, &dim, 1) : G);
}

/* Dimension by dimension, from the last: (repeats, size), and the repeats summed. */
void repeat_back(rule_run *k)
{
  const weir_shape *s = shape_of_operand(k);
  const weir_tensor *g = G;
  int lead = g->dims - s->count;
  if (!g->numel) {
    give(k, 0, zeros_of(k, &k->n->of[0]));
    return;
  }
  for (int d = g->dims - 1; d >= lead && !k->c->st; d--) {
    weir_shape split = {3, {1, N[d], s->size[d - lead]}}, merged = weir_tensor_shape(g);
    int64_t rest = 1;
    if (N[d] == 1) continue;
    for (int i = 0; i < d; i++)
      split.size[0] *= g->size[i];
    for (int i = d + 1; i < g->dims; i++)
      rest *= g->size[i];
    split.size[2] *= rest;
    merged.size[d] = s->size[d - lead];
    g = c_reshape(k->c, c_sum_mask(k->c, c_reshape(k->c, g, split), 2, false), merged);
  }
  if (k->c->st || lead < 0) return;
  give(k, 0, c_reshape(k->c, c_sum_mask(k->c, g, (1u << lead) - 1, false), *s));
}

GIVES(triangle, N[1] ? c_tril(k->c, G, N[0]) : c_triu(k->c, G, N[0]))
GIVES(diag_embed, c_diagonal(k->c, G, N[0], (int)N[1], (int)N[2]))

/* ---- borders --------------------------------------------------------------------------------- */

void pad_back(rule_run *k)
{
  int64_t padding[2 * WEIR_MAX_DIMS];
  for (int d = 0; d < G->dims; d++) {
    padding[2 * (G->dims - 1 - d)] = -N[2 * d];
    padding[2 * (G->dims - 1 - d) + 1] = -N[2 * d + 1];
  }
  give(k, 0, c_call(k->c, weir_pad, G, padding, 2 * G->dims, WEIR_PAD_CONSTANT, weir_int(0)));
}

/* Where place `at`, counted from the operand's first element, was taken from. */
static int64_t source_of(int64_t at, int64_t size, weir_pad_mode mode)
{
  if (at >= 0 && at < size) return at;
  if (mode == WEIR_PAD_REPLICATE) return at < 0 ? 0 : size - 1;
  if (mode == WEIR_PAD_REFLECT) return at < 0 ? -at : 2 * size - 2 - at;
  return at < 0 ? at + size : at - size;
}

/* One place of the border after the other is added to where it came from. */
void pad_edge_back(rule_run *k)
{
  int dim = (int)N[0];
  int64_t size = shape_of_operand(k)->size[dim], first = -N[1], end = size + N[2];
  int64_t from = first > 0 ? first : 0, to = end < size ? end : size;
  weir_tensor *sum = zeros_of(k, &k->n->of[0]);
  if (!sum) return;
  WEIR_UNRECORDED;
  for (int64_t at = first; at < end && !k->c->st; at++) {
    bool inner = at >= 0 && at < size;
    int64_t length = inner ? to - from : 1;
    int mark = k->c->count;
    int64_t place = source_of(at, size, (weir_pad_mode)N[3]);
    weir_tensor *part = c_narrow(k->c, sum, dim, place, length);
    const weir_tensor *g = c_narrow(k->c, G, dim, at - first, length);
    c_do(k->c, weir_add_(part, g));
    calc_drop(k->c, mark);
    if (inner) at += length - 1;
  }
  give_linear(k, sum, RECORD_PAD_EDGE_BACK);
}

/* ---- the way back of the way back ------------------------------------------------------------ */

void slice_again(rule_run *k)
{
  int dim = (int)N[0];
  int64_t end = end_of_slice(k, shape_of_operand(k)->size[dim]);
  give(k, 0, c_call(k->c, weir_slice, G, dim, N[1], end, N[2]));
}

void unfold_again(rule_run *k)
{
  give(k, 0, c_call(k->c, weir_unfold, G, (int)N[0], N[1], N[2]));
}

void pad_edge_again(rule_run *k)
{
  int64_t padding[2 * WEIR_MAX_DIMS] = {0};
  int at = 2 * (G->dims - 1 - (int)N[0]);
  padding[at] = N[1], padding[at + 1] = N[2];
  give(k, 0, c_call(k->c, weir_pad, G, padding, at + 2, (weir_pad_mode)N[3], weir_int(0)));
}
