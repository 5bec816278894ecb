/* rule.c: what rules of derivatives are made of: the operands and results that were kept, and
 * expressions (core/tensor/calc.h) that only derivatives need. */
#include <string.h>
#include "core/grad/tape.h"
#include "core/ops/ops.h"

void give(rule_run *k, int i, const weir_tensor *t)
{
  if (k->c->st || !t) return;
  weir_tensor_release(k->out[i]);
  k->out[i] = weir_tensor_retain((weir_tensor *)t);
}

/* ---- what was kept --------------------------------------------------------------------------- */

static __attribute__((cold)) weir_status say_gone(void)
{
  return fail_invalid("Trying to backward through the graph a second time (or directly access "
                      "saved tensors after they have already been freed). Saved intermediate "
                      "values of the graph are freed when you call .backward() or autograd.grad(). "
                      "Specify retain_graph=True if you need to backward through the graph a "
                      "second time or if you need to access saved tensors after calling backward.");
}

static __attribute__((cold)) weir_status say_changed(const grad_kept *kept, const char *made_by,
                                                     unsigned output)
{
  char by[96] = "";
  text_buffer shape;
  int length = 0; /* torch writes "Add" of "AddBackward0" */
  while (made_by && made_by[length] && strncmp(made_by + length, "Backward", 8) != 0)
    length++;
  if (made_by)
    (void)snprintf(by, sizeof by, ", which is output %u of %.*s,", output, length, made_by);
  return fail_invalid(
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [%s %s]%s is at version %u; expected version %u instead.",
      weir_tensor_type(kept->t), shape_format(&shape, shape_of_tensor(kept->t)), by,
      (unsigned)kept->t->storage->version, (unsigned)kept->version);
}

static const weir_tensor *kept_at(rule_run *k, int at)
{
  const grad_kept *kept = &k->n->kept[at];
  int result = at - k->n->inputs;
  if (k->c->st) return NULL;
  if (k->n->kept_gone || !kept->t) {
    k->c->st = say_gone();
    return NULL;
  }
  if (kept->t->storage->version == kept->version) return kept->t;
  const grad_edge *from = result >= 0 ? NULL : &k->n->edge[at];
  const grad_node *by = from ? from->node : k->n;
  k->c->st = say_changed(kept, by && by->rule ? by->rule->name : NULL,
                         from ? from->output : (unsigned)result);
  return NULL;
}

/* What was kept, as the result of a node: for derivatives of derivatives. */
static const weir_tensor *made_by(rule_run *k, const weir_tensor *t, const grad_node *n,
                                  uint32_t output)
{
  if (!t || !n || !k->create_graph) return t;
  weir_tensor *again = c_call(k->c, tensor_alias, t);
  if (!again) return NULL;
  again->node = node_retain((grad_node *)n);
  again->output = output;
  return again;
}

const weir_tensor *operand(rule_run *k, int i)
{
  const grad_edge *from = &k->n->edge[i];
  return made_by(k, kept_at(k, i), from->node, from->output);
}

const weir_tensor *outcome(rule_run *k, int i)
{
  const weir_tensor *t = kept_at(k, k->n->inputs + i);
  return made_by(k, t, k->as ? k->as : k->n, k->as ? 0 : (uint32_t)i);
}

/* ---- expressions ----------------------------------------------------------------------------- */

const weir_tensor *operand_or_number(rule_run *k, int i)
{
  weir_options options = {.dtype = k->n->meta[0].dtype, .device = k->n->meta[0].device};
  if (!is_number(k, i)) return operand(k, i);
  if (k->c->st) return NULL;
  weir_scalar number = k->n->r.number[i];
  return c_call(k->c, weir_full, weir_shape_of(0, NULL), number, &options);
}

const weir_tensor *c_masked(calc *c, const weir_tensor *condition, const weir_tensor *t)
{
  if (c->st) return NULL;
  elementwise_call e = {.op = WEIR_OP_WHERE, .count = 3, .numbers = 4};
  e.t[0] = condition, e.t[1] = t, e.number[2] = weir_int(0);
  return c_call(c, elementwise_run, &e);
}

const weir_tensor *c_sign(calc *c, const weir_tensor *t)
{
  if (c->st) return NULL;
  weir_dtype d = t->dtype;
  const weir_tensor *above = c_to_dtype(c, c_gt_s(c, t, 0), d),
                    *below = c_to_dtype(c, c_lt_s(c, t, 0), d);
  return c_sub(c, above, below);
}

const weir_tensor *c_sum_mask(calc *c, const weir_tensor *t, uint32_t mask, bool keepdim)
{
  int dims[WEIR_MAX_DIMS], count = 0;
  if (c->st || !mask) return t;
  for (int d = 0; d < t->dims; d++)
    if (mask >> d & 1) dims[count++] = d;
  return c_call(c, weir_sum_dims, t, dims, count, keepdim);
}

weir_tensor *zeros_of(rule_run *k, const grad_meta *like)
{
  weir_options options = {.dtype = like->dtype, .device = like->device};
  return (weir_tensor *)c_call(k->c, weir_zeros, like->shape, &options);
}

const weir_tensor *c_sum_to(calc *c, const weir_tensor *t, const weir_shape *shape)
{
  uint32_t mask = 0;
  if (c->st || !t) return NULL;
  int lead = t->dims - shape->count;
  bool same = !lead;
  for (int d = 0; d < t->dims; d++) {
    bool reduced = d < lead || (shape->size[d - lead] == 1 && t->size[d] != 1);
    if (reduced) mask |= 1u << d;
    same = same && t->size[d] == shape->size[d];
  }
  if (same) return t;
  return c_reshape(c, c_sum_mask(c, t, mask, true), *shape);
}
