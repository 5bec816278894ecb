/* backward.c: going back through a graph.
 *
 * First all nodes that can be reached are counted: how many edges lead to each. Then nodes run
 * whose edges have all brought their gradients, the latest made first, as torch's do; what a node's
 * rule gives goes along its edges and is added up where several meet. All of this is the run's own:
 * other threads may go through the same nodes. A leaf's gradient is added to under grad_lock.
 *
 * Words. visit: a node in this run. ready: all its edges have been gone along. */
#include <stdlib.h>
#include "core/base/lock.h"
#include "core/base/map.h"
#include "core/grad/tape.h"
#include "core/tensor/autocast.h"

typedef struct visit {
  grad_node *node;                /* a count */
  uint32_t waits;                 /* edges that have not been gone along */
  bool needed;                    /* of weir_grad(): an input is below it */
  weir_tensor *grad[RECORD_OUTS]; /* owned */
} visit;

/* Asked for by weir_grad(). */
typedef struct wanted {
  const grad_node *node;
  uint32_t output;
  weir_tensor *grad; /* owned */
} wanted;

typedef struct grad_run {
  visit *all; /* owned */
  size_t count, room;
  hash_map at;   /* a node's place in `all`, plus 1 */
  size_t *ready; /* owned; a heap, the latest made first; as large as all */
  size_t ready_count;
  bool retain_graph, create_graph;
  wanted *want; /* borrowed; NULL: leaves gather */
  int wanted;
} grad_run;

static weir_status no_room(void)
{
  return weir_fail(WEIR_ENOMEM, "no host memory to go back through the graph");
}

/* ---- finding nodes --------------------------------------------------------------------------- */

/* *out: its place. */
static weir_status visit_of(size_t *out, grad_run *run, grad_node *n)
{
  uint64_t *place = hash_map_place(&run->at, (uint64_t)(uintptr_t)n, NULL);
  if (!place) return no_room();
  if (!*place) {
    if (run->count == run->room) {
      size_t room = run->room ? 2 * run->room : 64;
      visit *more = realloc(run->all, room * sizeof *more);
      if (!more) {
        hash_map_remove(&run->at, (uint64_t)(uintptr_t)n);
        return no_room();
      }
      run->all = more;
      run->room = room;
    }
    run->all[run->count++] = (visit){.node = node_retain(n)};
    *place = run->count;
  }
  *out = *place - 1;
  return WEIR_OK;
}

/* All nodes that can be reached from those that are there: they come after. */
static weir_status find_nodes(grad_run *run)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < run->count && !st; i++) {
    grad_node *n = run->all[i].node;
    for (int e = 0; e < n->inputs && !st; e++) {
      size_t at = 0;
      if (!n->edge[e].node) continue;
      st = visit_of(&at, run, n->edge[e].node);
      if (!st) run->all[at].waits++;
    }
  }
  if (st) return st;
  run->ready = calloc(run->count + 1, sizeof *run->ready);
  return run->ready ? WEIR_OK : no_room();
}

static int later(const void *a, const void *b)
{
  const visit *const *x = a, *const *y = b;
  return (*x)->node->sequence < (*y)->node->sequence   ? -1
         : (*x)->node->sequence > (*y)->node->sequence ? 1
                                                       : 0;
}

static visit *visit_at(const grad_run *run, const grad_node *n)
{
  return &run->all[*hash_map_get(&run->at, (uint64_t)(uintptr_t)n) - 1];
}

/* Of weir_grad(): nodes that have an input below them; operands' are made before results'. */
static weir_status mark_needed(grad_run *run)
{
  visit **order = calloc(run->count, sizeof(visit *));
  if (!order) return no_room();
  for (size_t i = 0; i < run->count; i++)
    order[i] = &run->all[i];
  qsort(order, run->count, sizeof(visit *), later);
  for (size_t i = 0; i < run->count; i++) {
    grad_node *n = order[i]->node;
    for (int w = 0; w < run->wanted; w++)
      order[i]->needed |= run->want[w].node == n;
    for (int e = 0; e < n->inputs; e++)
      if (n->edge[e].node) order[i]->needed |= visit_at(run, n->edge[e].node)->needed;
  }
  free(order);
  return WEIR_OK;
}

/* ---- what is ready --------------------------------------------------------------------------- */

/* Leaves first, then the latest made. */
static uint64_t urgency(const grad_run *run, size_t place)
{
  const grad_node *n = run->all[place].node;
  return n->rule ? n->sequence : UINT64_MAX;
}

static void swap_places(size_t *a, size_t *b)
{
  size_t t = *a;
  *a = *b;
  *b = t;
}

static void ready_push(grad_run *run, size_t place)
{
  size_t at = run->ready_count++;
  run->ready[at] = place;
  for (; at && urgency(run, run->ready[(at - 1) / 2]) < urgency(run, run->ready[at]);
       at = (at - 1) / 2)
    swap_places(&run->ready[at], &run->ready[(at - 1) / 2]);
}

static size_t ready_pop(grad_run *run)
{
  size_t top = run->ready[0], at = 0;
  run->ready[0] = run->ready[--run->ready_count];
  for (;;) {
    size_t most = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < run->ready_count; child++)
      if (urgency(run, run->ready[child]) > urgency(run, run->ready[most])) most = child;
    if (most == at) return top;
    swap_places(&run->ready[at], &run->ready[most]);
    at = most;
  }
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* It has no other owner, and may be written. */
static bool is_own(const weir_tensor *t)
{
  return t->dense && !t->node && atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
         atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1;
}

/* *sum becomes it and `more` (stolen). */
static weir_status add_up(weir_tensor **sum, weir_tensor *more)
{
  weir_tensor *both = NULL;
  weir_status st = WEIR_OK;
  if (!*sum) {
    *sum = more;
    return WEIR_OK;
  }
  if (is_own(*sum)) {
    st = weir_add_(*sum, more);
  } else {
    st = weir_add(&both, *sum, more);
    if (!st) weir_tensor_release(*sum);
    if (!st) *sum = both;
  }
  weir_tensor_release(more);
  return st;
}

/* In the order in which they were registered; *grad is exchanged. */
static weir_status run_hooks(grad_node *n, uint32_t output, weir_tensor **grad)
{
  weir_status st = WEIR_OK;
  for (const grad_hook *h = n->hooks; h && !st;) {
    const grad_hook *next = h->next;
    weir_tensor *other = NULL;
    if (h->output == output) st = h->call(&other, *grad, h->context);
    if (other) {
      weir_tensor_release(*grad);
      *grad = other;
    }
    h = next;
  }
  return st;
}

/* What is left with a tensor: its own, dense. *grad may be stolen. */
static weir_status own_gradient(weir_tensor **out, weir_tensor **grad, bool create_graph)
{
  if (create_graph || is_own(*grad)) {
    *out = *grad;
    *grad = NULL;
    return WEIR_OK;
  }
  weir_status st = tensor_new_beside(out, *grad, weir_tensor_shape(*grad));
  if (!st && (st = weir_copy_(*out, *grad, false))) weir_tensor_drop(out);
  return st;
}

static weir_status gather_gradient(grad_node *leaf, weir_tensor **grad, bool create_graph)
{
  weir_tensor *sum = NULL;
  HOLD_LOCK(&grad_lock);
  if (!leaf->grad[0]) return own_gradient(&leaf->grad[0], grad, create_graph);
  if (!create_graph) return weir_add_(leaf->grad[0], *grad);
  TRY(weir_add(&sum, leaf->grad[0], *grad));
  weir_tensor_release(leaf->grad[0]);
  leaf->grad[0] = sum;
  return WEIR_OK;
}

static weir_status arrived(grad_run *run, visit *v, uint32_t output)
{
  grad_node *n = v->node;
  weir_tensor **grad = &v->grad[output], *kept = NULL;
  weir_status st = run_hooks(n, output, grad);
  for (int w = 0; w < run->wanted && !st; w++)
    if (run->want[w].node == n && run->want[w].output == output && !run->want[w].grad)
      run->want[w].grad = weir_tensor_retain(*grad);
  if (st || run->want || !n->rule || !n->retains[output]) return st;
  weir_tensor *shown = weir_tensor_retain(*grad);
  st = own_gradient(&kept, &shown, run->create_graph);
  weir_tensor_release(shown);
  if (st) return st;
  weir_tensor_release(n->grad[output]);
  n->grad[output] = kept;
  return WEIR_OK;
}

/* ---- a node ---------------------------------------------------------------------------------- */

/* The gradient of an operand as it must be: its shape, dtype and device. *grad is exchanged. */
static weir_status conform(rule_run *k, weir_tensor **grad, const grad_meta *meta)
{
  const weir_tensor *t = c_sum_to(k->c, *grad, &meta->shape);
  if (!k->c->st && t->dtype != meta->dtype) t = c_to_dtype(k->c, t, meta->dtype);
  if (!k->c->st && !weir_device_equal(device_of_tensor(t), meta->device)) {
    t = c_call(k->c, weir_to, t, &(weir_options){.device = meta->device});
  }
  if (k->c->st || t == *grad) return k->c->st;
  (void)weir_tensor_retain((weir_tensor *)t);
  weir_tensor_release(*grad);
  *grad = (weir_tensor *)t;
  return WEIR_OK;
}

/* Gives what the rule gave to the nodes of operands. */
static weir_status hand_on(grad_run *run, rule_run *k)
{
  const grad_node *n = k->n;
  weir_status st = k->c->st;
  for (int i = 0; i < n->inputs; i++) {
    if (!n->edge[i].node) continue;
    visit *to = visit_at(run, n->edge[i].node);
    weir_tensor *grad = k->out[i];
    k->out[i] = NULL;
    if (grad && !st && (!run->want || to->needed)) {
      st = conform(k, &grad, &n->of[i]);
      calc_drop(k->c, 0);
      if (!st) {
        st = add_up(&to->grad[n->edge[i].output], grad);
        grad = NULL;
      }
    }
    weir_tensor_release(grad);
    if (!--to->waits) ready_push(run, (size_t)(to - run->all));
  }
  return st;
}

static weir_status run_rule(grad_run *run, visit *v)
{
  grad_node *n = v->node;
  weir_tensor **out = calloc((size_t)n->inputs + 1, sizeof(weir_tensor *));
  bool any = false, skip = run->want && !v->needed;
  if (!out) return no_room();
  CALC(c);
  rule_run k = {.c = c, .n = n, .out = out, .create_graph = run->create_graph};
  for (int i = 0; i < RECORD_OUTS; i++) {
    k.g[i] = v->grad[i];
    any |= v->grad[i] != NULL;
  }
  if (any && !skip && n->rule->run) n->rule->run(&k);
  calc_drop(c, 0);
  for (int i = 0; i < RECORD_OUTS; i++)
    weir_tensor_drop(&v->grad[i]);
  if (!run->retain_graph) node_forget(n);
  weir_status st = hand_on(run, &k);
  for (int i = 0; i < n->inputs; i++)
    weir_tensor_release(out[i]);
  free(out);
  return st;
}

static weir_status run_visit(grad_run *run, size_t place)
{
  visit *v = &run->all[place];
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < RECORD_OUTS && !st; i++)
    if (v->grad[i]) st = arrived(run, v, i);
  if (st) return st;
  if (v->node->rule) return run_rule(run, v);
  if (v->grad[0] && !run->want) st = gather_gradient(v->node, &v->grad[0], run->create_graph);
  weir_tensor_drop(&v->grad[0]);
  return st;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static weir_status check_root(const weir_tensor *t, const weir_tensor *gradient, int i)
{
  text_buffer one, two;
  TRY(node_current(t));
  if (!t->node)
    return fail_invalid("element %d of tensors does not require grad and does not have a grad_fn",
                        i);
  if (!gradient && t->numel == 1 && t->dtype == WEIR_COMPLEX64)
    return fail_invalid(
        "grad can be implicitly created only for real scalar outputs but got weir.complex64");
  if (!gradient)
    return t->numel == 1 ? WEIR_OK
                         : fail_invalid("grad can be implicitly created only for scalar outputs");
  bool same = gradient->dims == t->dims;
  for (int d = 0; same && d < t->dims; d++)
    same = gradient->size[d] == t->size[d];
  return same ? WEIR_OK
              : fail_invalid("Mismatch in shape: grad_output[%d] has a shape of %s and output[%d] "
                             "has a shape of %s.",
                             i, shape_format(&one, weir_tensor_shape(gradient)), i,
                             shape_format(&two, weir_tensor_shape(t)));
}

/* The gradient that a run begins with. */
static weir_status begin_root(grad_run *run, const weir_tensor *t, const weir_tensor *gradient)
{
  weir_tensor *grad = NULL;
  size_t at;
  weir_options o = {.dtype = t->dtype, .device = device_of_tensor(t)};
  weir_status st = visit_of(&at, run, t->node);
  if (!st)
    st = gradient ? weir_to(&grad, gradient, &o) : weir_ones(&grad, weir_tensor_shape(t), &o);
  return st ? st : add_up(&run->all[at].grad[t->output], grad);
}

static void end_grad_run(grad_run *run)
{
  for (size_t i = 0; i < run->count; i++) {
    for (int o = 0; o < RECORD_OUTS; o++)
      weir_tensor_drop(&run->all[i].grad[o]);
    node_release(run->all[i].node);
  }
  free(run->all);
  free(run->ready);
  hash_map_free(&run->at);
}

static weir_status go_back(grad_run *run, const weir_tensor *const *roots, int count,
                           const weir_tensor *const *gradients)
{
  weir_grad_guard guard __attribute__((cleanup(weir_grad_guard_leave))) =
      weir_guard_of_grad(run->create_graph);
  (void)guard;
  WEIR_NO_AUTOCAST;
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++)
    st = check_root(roots[i], gradients ? gradients[i] : NULL, i);
  for (int i = 0; i < count && !st; i++)
    st = begin_root(run, roots[i], gradients ? gradients[i] : NULL);
  if (!st) st = find_nodes(run);
  if (!st && run->want) st = mark_needed(run);
  for (size_t i = 0; i < run->count && !st; i++)
    if (!run->all[i].waits) ready_push(run, i);
  while (run->ready_count && !st)
    st = run_visit(run, ready_pop(run));
  end_grad_run(run);
  return st;
}

weir_status weir_backward(const weir_tensor *t, const weir_tensor *gradient, bool retain_graph)
{
  WEIR_REQUIRE(t);
  grad_run run = {.retain_graph = retain_graph};
  return go_back(&run, &t, 1, gradient ? &gradient : NULL);
}

/* ---- weir_grad ------------------------------------------------------------------------------- */

static weir_status check_inputs(wanted *want, const weir_tensor *const *inputs, int of)
{
  for (int i = 0; i < of; i++) {
    if (!inputs[i]) return fail_invalid("weir_grad: input %d is NULL", i);
    TRY(node_current(inputs[i]));
    if (!inputs[i]->node)
      return fail_invalid("One of the differentiated Tensors does not require grad");
    want[i] = (wanted){inputs[i]->node, inputs[i]->output, NULL};
  }
  return WEIR_OK;
}

static weir_status check_used(const wanted *want, int of, bool allow_unused)
{
  for (int i = 0; i < of && !allow_unused; i++)
    if (!want[i].grad)
      return fail_invalid("One of the differentiated Tensors appears to not have been used in the "
                          "graph. Set allow_unused=True if this is the desired behavior.");
  return WEIR_OK;
}

weir_status weir_grad(weir_tensor **out, const weir_tensor *const *outputs, int count,
                      const weir_tensor *const *inputs, int of, const weir_grad_options *options)
{
  static const weir_grad_options none;
  WEIR_REQUIRE(out, outputs, inputs);
  const weir_grad_options *o = options ? options : &none;
  for (int i = 0; i < of; i++)
    out[i] = NULL;
  if (count < 1 || of < 1) return fail_invalid("grad requires non-empty inputs and outputs.");
  for (int i = 0; i < count; i++)
    if (!outputs[i]) return fail_invalid("weir_grad: output %d is NULL", i);
  wanted *want = calloc((size_t)of, sizeof *want);
  if (!want) return no_room();
  grad_run run = {.retain_graph = o->retain_graph || o->create_graph,
                  .create_graph = o->create_graph,
                  .want = want,
                  .wanted = of};
  weir_status st = check_inputs(want, inputs, of);
  if (!st) st = go_back(&run, outputs, count, o->grad_outputs);
  if (!st) st = check_used(want, of, o->allow_unused);
  for (int i = 0; i < of; i++)
    if (st)
      weir_tensor_release(want[i].grad);
    else
      out[i] = want[i].grad;
  free(want);
  return st;
}
