/* planes.c: derivatives of pools and of planes in other sizes. Both are linear, but for which
 * places are the largest: the way back of the way back is the operation itself. */
#include "core/grad/tape.h"
#include "core/ops/ops.h"

#define G (k->g[0])
#define N (k->n->r.n)

/* To where the largest was; to be differentiated by scatter_add, which has a derivative. */
void max_places_back(rule_run *k)
{
  if (!k->create_graph) {
    pooling p;
    const weir_tensor *taken = operand(k, 2);
    pool_of_record(&p, N);
    p.max = true;
    give(k, 0, c_call(k->c, pool_back, G, taken, &p));
    return;
  }
  const weir_shape *in = &k->n->of[0].shape, *out = &k->n->meta[0].shape;
  int64_t planes = 1, from = 1, to = 1;
  grad_meta m = k->n->of[0];
  for (int d = 0; d < in->count; d++) {
    bool inner = d >= in->count - (int)N[0];
    planes *= inner ? 1 : in->size[d];
    from *= inner ? in->size[d] : 1;
    to *= inner ? out->size[d] : 1;
  }
  m.shape = weir_shape(planes, from);
  const weir_tensor *places = c_reshape(k->c, operand(k, 2), weir_shape(planes, to));
  const weir_tensor *g = c_reshape(k->c, G, weir_shape(planes, to));
  const weir_tensor *sum = zeros_of(k, &m);
  if (k->c->st) return;
  const weir_tensor *all = c_call(k->c, weir_scatter_add, sum, 1, places, g);
  if (all) give(k, 0, c_reshape(k->c, all, *in));
}

void average_pool_back(rule_run *k)
{
  pooling p;
  pool_of_record(&p, N);
  give(k, 0, c_call(k->c, pool_back, G, NULL, &p));
}

void average_pool_again(rule_run *k)
{
  pooling p;
  pool_of_record(&p, N);
  give(k, 0, c_call(k->c, pool_run, NULL, G, &p));
}

void resample_back(rule_run *k)
{
  weir_resample r;
  int axes = resample_of_record(&r, N);
  r.back = !r.back;
  give(k, 0, c_call(k->c, resample_run, G, &r, axes));
}
