/* tape.c: nodes made of records, and what tensors state of theirs.
 *
 * A node is made before an operation in place runs, and after one that makes something new: only
 * then is there a result to be kept. Of operands that an operation in place is about to write, what
 * the rule needs is copied. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/lock.h"
#include "core/grad/tape.h"
#include "core/stream/async_error.h"
#include "core/tensor/loop.h"

pthread_mutex_t grad_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t next_sequence = 1, next_hook = 1;

grad_meta meta_of(const weir_tensor *t)
{
  bool turned = t->dims == 2 && !t->dense && t->stride[0] == 1 && t->stride[1] == t->size[0];
  return (grad_meta){shape_of_tensor(t), t->dtype, device_of_tensor(t), turned};
}

/* ---- life ------------------------------------------------------------------------------------ */

weir_status node_new(grad_node **out, int inputs)
{
  size_t n = (size_t)inputs;
  size_t bytes = sizeof(grad_node) + n * (sizeof(grad_meta) + sizeof(grad_edge)) +
                 (n + RECORD_OUTS) * sizeof(grad_kept);
  grad_node *node = calloc(1, bytes);
  *out = node;
  if (!node) return fail_memory("a node of the graph (%zu bytes)", bytes);
  atomic_init(&node->refs, 1);
  node->inputs = inputs;
  node->sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
  node->of = (grad_meta *)(node + 1);
  node->edge = (grad_edge *)(node->of + n);
  node->kept = (grad_kept *)(node->edge + n);
  return WEIR_OK;
}

void node_forget(grad_node *n)
{
  for (int i = 0; i < n->inputs + RECORD_OUTS; i++) {
    weir_tensor *t = n->kept[i].t;
    if (t && i < n->inputs) atomic_fetch_sub_explicit(&t->kept, 1, memory_order_relaxed);
    weir_tensor_drop(&n->kept[i].t);
  }
  n->kept_gone = n->keeps;
  if (n->inner) node_forget(n->inner);
}

static bool last_count(grad_node *n)
{
  return atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) == 1;
}

static void free_hooks(grad_node *n)
{
  while (n->hooks) {
    grad_hook *h = n->hooks;
    n->hooks = h->next;
    if (h->destroy) h->destroy(h->context);
    free(h);
  }
}

/* A graph may be as deep as memory: what a node held last is put on a list. */
void node_release(grad_node *n)
{
  static __thread grad_node *ended __attribute__((tls_model("initial-exec")));
  static __thread bool within __attribute__((tls_model("initial-exec")));
  if (!n || !last_count(n)) return;
  n->next = ended;
  ended = n;
  if (within) return;
  within = true;
  while (ended) {
    grad_node *now = ended;
    ended = now->next;
    node_forget(now);
    for (int i = 0; i < now->inputs; i++)
      node_release(now->edge[i].node);
    for (int i = 0; i < RECORD_OUTS; i++)
      weir_tensor_drop(&now->grad[i]);
    free_hooks(now);
    node_release(now->inner);
    free(now->history);
    free(now);
  }
  within = false;
}

/* ---- making ---------------------------------------------------------------------------------- */

void node_attach(weir_tensor *t, grad_node *n, int output)
{
  grad_node *before = t->node;
  t->node = node_retain(n);
  t->output = (uint32_t)output;
  t->extras = true;
  t->renewed |= atomic_load_explicit(&t->kept, memory_order_relaxed) > 0;
  node_release(before);
}

static weir_status keep_operand(grad_node *n, const record *r, int i)
{
  grad_kept *kept = &n->kept[i];
  const weir_tensor *t = r->in[i];
  bool written = r->in_place && t->storage == r->out[0]->storage;
  n->keeps = true;
  if (written) {
    WEIR_UNRECORDED;
    TRY(weir_clone(&kept->t, t));
  } else {
    kept->t = weir_tensor_retain((weir_tensor *)t);
  }
  atomic_fetch_add_explicit(&kept->t->kept, 1, memory_order_relaxed);
  kept->version = kept->t->storage->version;
  return WEIR_OK;
}

static weir_status keep_result(grad_node *n, const record *r, int i)
{
  grad_kept *kept = &n->kept[n->inputs + i];
  n->keeps = true;
  if (!r->out[i]) return WEIR_OK;
  weir_status st = tensor_alias(&kept->t, r->out[i]);
  if (!st) kept->version = kept->t->storage->version;
  return st;
}

/* Edges and metas; the bits of what is to be kept. */
static unsigned connect(grad_node *n, const record *r)
{
  unsigned bits = 0;
  for (int i = 0; i < n->inputs; i++) {
    const weir_tensor *t = r->in[i];
    if (!t) {
      if (i < 32) n->numbers |= 1u << i;
      continue;
    }
    n->of[i] = meta_of(t);
    if (!t->node) continue;
    n->edge[i] = (grad_edge){node_retain(t->node), t->output};
    if (i < 3) bits |= n->rule->keeps[i];
  }
  return bits;
}

static weir_status current_operands(const record *r)
{
  weir_status st = WEIR_OK;
  for (int i = 0; i < r->inputs && !st; i++)
    if (r->in[i]) st = node_current(r->in[i]);
  return st;
}

weir_status node_of(grad_node **out, const record *r, const grad_rule *rule)
{
  grad_node *n;
  weir_status st = current_operands(r);
  *out = NULL;
  if (!st) st = node_new(&n, r->inputs);
  if (st) return st;
  n->rule = rule;
  n->r = *r;
  n->r.in = NULL;
  for (int i = 0; i < RECORD_OUTS; i++) {
    if (r->out[i]) n->meta[i] = meta_of(r->out[i]);
    if (r->out[i]) n->outputs = i + 1;
    n->r.out[i] = NULL;
  }
  unsigned bits = connect(n, r);
  for (int i = 0; i < n->inputs && i < KEEP_OUTS && !st; i++)
    if (bits >> i & 1 && r->in[i]) st = keep_operand(n, r, i);
  for (int i = 0; i < RECORD_OUTS && !st; i++)
    if (bits >> (KEEP_OUTS + i) & 1) st = keep_result(n, r, i);
  if (st)
    node_release(n);
  else
    *out = n;
  return st;
}

/* torch writes "View" of "ViewBackward0" in sentences. */
static int stem_length(const char *name)
{
  const char *end = strstr(name, "Backward");
  return (int)(end ? (size_t)(end - name) : strlen(name));
}

/* The operation in words: the public function that was called, or the row of a table; NULL:
 * neither. */
static const char *name_of_operation(const record *r)
{
#define NAME_ROW(name, text, ...) text,
  static const char *const elementwise[] = {WEIR_OPS(NAME_ROW)};
  static const char *const reductions[] = {WEIR_REDUCE_OPS(NAME_ROW)};
#undef NAME_ROW
  if (op_called) return op_called;
  return r->kind == RECORD_ELEMENTWISE ? elementwise[r->op]
         : r->kind == RECORD_REDUCE    ? reductions[r->op]
                                       : NULL;
}

static weir_status rule_for(const grad_rule **out, const record *r)
{
  *out = rule_of(r);
  if (*out && (*out)->run && rule_lacks_complex(*out, r))
    return fail_unsupported("derivative for %.*s of complex numbers is not implemented",
                            stem_length((*out)->name), (*out)->name);
  if (*out) return WEIR_OK;
  const char *called = name_of_operation(r);
  return fail_unsupported("derivative for %s%s is not implemented", called ? "weir_" : "",
                          called ? called : "an operation");
}

static bool has_gradient(const weir_tensor *t)
{
  return dtype_is_floating(t->dtype) || t->dtype == WEIR_COMPLEX64;
}

/* Of a view: where its operand lies. What a library function made with recording off is one that
 * the caller made with it on. */
static void note_operand(grad_node *n, const record *r)
{
  const weir_tensor *t = r->in[0];
  weir_tensor *out = r->out[0];
  int64_t each = (int64_t)itemsize(t->dtype);
  if (out->storage != t->storage) return;
  for (int d = 0; d < t->dims; d++)
    n->r.n[VIEW_STRIDES + d] = t->stride[d];
  n->r.n[VIEW_OFFSET] = t->data ? (t->data - (char *)t->storage->data) / each : 0;
  n->r.n[VIEW_SHARES] = true;
  out->created = t->created > VIEW_OF_PARTS ? VIEW_OF_PARTS : t->created;
}

static weir_status record_new(const record *r)
{
  const grad_rule *rule;
  grad_node *n;
  weir_status st = rule_for(&rule, r);
  if (st || !rule->run || !has_gradient(r->out[0])) return st;
  TRY(node_of(&n, r, rule));
  if (r->kind >= RECORD_SHAPE && r->kind <= RECORD_DIAGONAL) note_operand(n, r);
  for (int i = 0; i < RECORD_OUTS; i++)
    if (r->out[i] && has_gradient(r->out[i])) node_attach(r->out[i], n, i);
  node_release(n);
  return WEIR_OK;
}

/* ---- in place -------------------------------------------------------------------------------- */

/* Whether the node is that of views alone, down to a leaf. */
static bool views_of_leaf(const grad_node *n)
{
  while (is_view_node(n))
    n = n->edge[0].node;
  return !n->rule;
}

static weir_status check_leaf(const weir_tensor *t)
{
  if (t->node && !t->node->rule)
    return fail_invalid(
        "a leaf Variable that requires grad is being used in an in-place operation.");
  if (t->node && views_of_leaf(t->node))
    return fail_invalid(
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  return WEIR_OK;
}

static const char no_grad_view[] =
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked).";
static const char one_of_views[] =
    " This view is the output of a function that returns multiple views. Such functions do not "
    "allow "
    "the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one.";

/* A view made in no_grad requires no gradient here. torch's states that it does where its base
 * does, has no node, and its gradient goes nowhere; torch refuses to use it once its base was
 * changed, in no_grad too. */
weir_status check_created(const weir_tensor *t, bool indirect)
{
  static const char *const makers[] = {
      [VIEW_UNBIND] = "Unbind", [VIEW_SPLIT] = "Split", [VIEW_SPLIT_SIZES] = "SplitWithSizes"};
  const char *what = indirect ? "its base or another view of its base has been" : "is being";
  const char *why = t->created == VIEW_NO_GRAD ? no_grad_view : one_of_views;
  if (t->created == VIEW_PLAIN) return WEIR_OK;
  if (t->created == VIEW_AS_OTHER)
    return fail_unsupported("a view of complex numbers as real ones, or the reverse, whose memory "
                            "is modified inplace has no derivative in Weir: clone() it first");
  if (!t->node || (t->created == VIEW_NO_GRAD && !t->node->rule))
    return fail_invalid(
        "A view was created in no_grad mode and %s modified inplace with grad mode enabled.%s",
        what, why);
  bool own = t->created <= VIEW_OF_PARTS;
  const char *by = own ? t->node->rule ? t->node->rule->name : "" : makers[t->created];
  int length = stem_length(by);
  unsigned output = own ? t->output : t->part;
  if (t->created == VIEW_NO_GRAD)
    return fail_invalid("Output %u of %.*s is a view of a view which was created in no_grad mode "
                        "and %s modified inplace with grad mode enabled.%s",
                        output, length, by, what, why);
  return fail_invalid("Output %u of %.*s is a view and %s modified inplace.%s", output, length, by,
                      what, why);
}

static weir_status record_change(grad_node **out, const record *r)
{
  const grad_rule *rule;
  weir_tensor *t = r->out[0];
  *out = NULL;
  weir_status st = check_created(t, false);
  if (!st) st = node_current(t);
  if (!st) st = check_leaf(t);
  if (!st) st = rule_for(&rule, r);
  if (st || !has_gradient(t)) return st;
  return memory_is_shared(t) ? shared_change(out, r, rule) : node_of(out, r, rule);
}

static void changed(grad_node *n, weir_tensor *self, bool done)
{
  if (!n) return;
  if (done) {
    grad_node *of = n->inner ? n->inner : n;
    grad_kept *kept = &of->kept[of->inputs];
    if (kept->t) kept->version = kept->t->storage->version;
    if (n->inner)
      shared_changed(n, self);
    else
      node_attach(self, n, 0);
  }
  node_release(n);
}

static weir_status refuse_operation(const char *function, const weir_tensor *self)
{
  weir_status st = self ? node_current(self) : WEIR_OK;
  if (!st && self) st = check_leaf(self);
  const char *prefix = strncmp(function, "weir_", 5) ? "weir_" : "";
  return st ? st : fail_unsupported("derivative for %s%s is not implemented", prefix, function);
}

static const recorder tape = {.made = record_new,
                              .before = record_change,
                              .after = changed,
                              .release = node_release,
                              .refresh = history_refresh,
                              .view_gone = history_view_gone,
                              .memory_gone = history_memory_gone,
                              .is_leaf = weir_tensor_is_leaf,
                              .refuse = refuse_operation};

static __attribute__((constructor)) void set_recorder(void)
{
  tensor_recorder = &tape;
}

/* ---- what tensors state ---------------------------------------------------------------------- */

static weir_status make_leaf(weir_tensor *t)
{
  grad_node *n;
  if (!has_gradient(t))
    return fail_invalid("only Tensors of floating point dtype can require gradients");
  TRY(node_new(&n, 0));
  n->meta[0] = meta_of(t);
  n->outputs = 1;
  t->node = n;
  t->output = 0;
  t->extras = true;
  return WEIR_OK;
}

weir_status weir_requires_grad_(weir_tensor *t, bool requires_grad)
{
  WEIR_REQUIRE(t);
  TRY(node_current(t));
  if (t->node && t->node->rule && !requires_grad)
    return fail_invalid("you can only change requires_grad flags of leaf variables. If you want to "
                        "use a computed variable in a subgraph that doesn't require "
                        "differentiation use var_no_grad = var.detach().");
  if (requires_grad) return t->node ? WEIR_OK : make_leaf(t);
  node_release(t->node);
  t->node = NULL;
  return WEIR_OK;
}

bool weir_tensor_requires_grad(const weir_tensor *t)
{
  return t && requires_gradient(t);
}

bool weir_tensor_is_leaf(const weir_tensor *t)
{
  return t && !(requires_gradient(t) && t->node && t->node->rule);
}

const char *weir_tensor_grad_fn(const weir_tensor *t)
{
  return t && requires_gradient(t) && t->node && t->node->rule ? t->node->rule->name : "";
}

uint32_t weir_tensor_version(const weir_tensor *t)
{
  return t ? t->storage->version : 0;
}

weir_tensor *weir_tensor_grad(const weir_tensor *t)
{
  return t && requires_gradient(t) && t->node ? t->node->grad[t->output] : NULL;
}

static weir_status check_grad(const weir_tensor *t, const weir_tensor *grad)
{
  grad_meta want = meta_of(t), have = meta_of(grad);
  bool same = want.shape.count == have.shape.count && want.dtype == have.dtype;
  for (int d = 0; same && d < want.shape.count; d++)
    same = want.shape.size[d] == have.shape.size[d];
  if (!same) return fail_invalid("assigned grad has data of a different size or type");
  return weir_device_equal(want.device, have.device)
             ? WEIR_OK
             : fail_invalid("assigned grad has data located on a different device");
}

weir_status weir_tensor_set_grad(weir_tensor *t, weir_tensor *grad)
{
  WEIR_REQUIRE(t);
  weir_status st = node_current(t);
  if (st || (!grad && !t->node)) return st;
  if (!t->node || t->node->rule)
    return fail_invalid("a gradient is set of a leaf that requires one");
  TRY(grad ? check_grad(t, grad) : WEIR_OK);
  HOLD_LOCK(&grad_lock);
  (void)weir_tensor_retain(grad);
  weir_tensor_release(t->node->grad[0]);
  t->node->grad[0] = grad;
  return WEIR_OK;
}

weir_status weir_retain_grad(weir_tensor *t)
{
  WEIR_REQUIRE(t);
  TRY(node_current(t));
  if (!t->node) return fail_invalid("can't retain_grad on Tensor that has requires_grad=False");
  t->node->retains[t->output] = true;
  return WEIR_OK;
}

weir_status weir_detach(weir_tensor **out, const weir_tensor *t)
{
  static _Atomic uint32_t next_family = 1;
  WEIR_REQUIRE_OUT(out, t);
  TRY(tensor_part(out, t, t->dims, t->size, t->stride, 0));
  (*out)->created = VIEW_PLAIN;
  (*out)->family = atomic_fetch_add_explicit(&next_family, 1, memory_order_relaxed);
  return WEIR_OK;
}

/* new: its function and context. */
static weir_status add_grad_hook(uint64_t *id, weir_tensor *t, grad_hook new)
{
  TRY(node_current(t));
  if (!t->node)
    return fail_invalid("cannot register a hook on a tensor that doesn't require gradient");
  grad_hook *h = malloc(sizeof *h);
  if (!h) return fail_memory("a hook");
  *h = new;
  h->output = t->output;
  h->id = atomic_fetch_add(&next_hook, 1);
  if (id) *id = h->id;
  HOLD_LOCK(&grad_lock);
  grad_hook **at = &t->node->hooks;
  while (*at)
    at = &(*at)->next;
  *at = h;
  return WEIR_OK;
}

weir_status weir_register_hook(uint64_t *id, weir_tensor *t, weir_grad_hook hook, void *context)
{
  WEIR_REQUIRE(t, hook);
  return add_grad_hook(id, t, (grad_hook){.call = hook, .context = context});
}

weir_status grad_hook_owned(weir_tensor *t, weir_grad_hook hook, void *context,
                            void (*destroy)(void *context))
{
  weir_status st =
      add_grad_hook(NULL, t, (grad_hook){.call = hook, .context = context, .destroy = destroy});
  if (st) destroy(context);
  return st;
}

void weir_remove_hook(weir_tensor *t, uint64_t id)
{
  if (!t || !t->node) return;
  HOLD_LOCK(&grad_lock);
  for (grad_hook **at = &t->node->hooks; *at; at = &(*at)->next) {
    grad_hook *h = *at;
    if (h->id != id) continue;
    *at = h->next;
    free(h);
    return;
  }
}

/* ---- by thread ------------------------------------------------------------------------------- */

bool weir_is_grad_enabled(void)
{
  return !thread_grad_off;
}

bool weir_set_grad_enabled(bool enabled)
{
  bool was = !thread_grad_off;
  thread_grad_off = !enabled;
  return was;
}

void weir_grad_guard_leave(weir_grad_guard *guard)
{
  if (guard) thread_grad_off = !guard->was;
}
