/* attention.c: the derivative of attention.
 *
 * What it calculates on the way is larger than its operands, so it is not kept but calculated
 * again: the weights of a block of rows, and which of them dropout took, from the generator's
 * state. */
#include "core/grad/tape.h"
#include "core/ops/ops.h"

#define G (k->g[0])
#define N (k->n->r.n)

/* ---- attention ------------------------------------------------------------------------------- */

void attention_back(rule_run *k)
{
  const double *p = k->n->r.p;
  attention_saved saved = {.in = {operand(k, 0), operand(k, 1), operand(k, 2)},
                           .mask = is_number(k, 3) ? NULL : operand(k, 3),
                           .causal = N[0] != 0,
                           .scale = p[0],
                           .dropout = p[1],
                           .drawn = {(uint64_t)N[1], (uint64_t)N[2]}};
  weir_tensor *out[3] = {NULL};
  if (k->c->st) return;
  k->c->st = attention_backward(out, G, &saved, k->create_graph);
  for (int i = 0; i < 3; i++) {
    if (wants_gradient(k, i)) give(k, i, out[i]);
    weir_tensor_release(out[i]);
  }
}
