/* shared.c: recorded changes in place of memory that tensors share.
 *
 * What was calculated of one tensor of a memory changes when another is written. As torch's
 * CopySlices, a change of a view is one of the whole: the memory gets a history, the node that has
 * all its elements in a row as its result. A change in place of t adds a node to it, which takes
 * the gradient of the whole apart: what lies in t goes through the operation's own rule, the rest
 * to what was there before. Tensors of the memory learn of it when they are next asked
 * (history_refresh): their node becomes t's part of the whole.
 *
 * Before the first change each tensor of a memory has its own node, or none. They are views of one
 * base: up the nodes of views from any of them is the base's, and where it lies was written down by
 * the view next to it (layout_of_base). So the first history begins there.
 *
 * Life. A history belongs to its memory, and ends with the last tensor of it but those that only
 * nodes hold: these may be the history's own.
 *
 * Words. whole: all elements of a memory, in a row. layout: where a tensor lies in its whole.
 * family: tensors of a memory but for what detach() set apart; each has its own history. */
#include <stdlib.h>
#include <string.h>
#include "core/base/lock.h"
#include "core/grad/tape.h"

#define G (k->g[0])
#define N (k->n->r.n)

/* A layout, as in record.n: strides first. */
enum { OFFSET = WEIR_MAX_DIMS, WHOLE, DIMS, SIZES, LAYOUT = SIZES + WEIR_MAX_DIMS };
_Static_assert((int)LAYOUT <= (int)RECORD_NUMBERS, "a layout in a record");

typedef struct grad_history {
  struct grad_history *next; /* owned: another family's */
  uint32_t family;
  uint32_t version; /* of the storage, after the last change */
  grad_node *node;  /* a count: whose result is the whole */
  weir_dtype dtype; /* of its elements */
} grad_history;

static pthread_mutex_t history_lock = PTHREAD_MUTEX_INITIALIZER; /* over lists */

static weir_shape shape_in(const int64_t *n)
{
  return weir_shape_of((int)n[DIMS], n + SIZES);
}

static void layout_of(int64_t *n, const weir_tensor *t)
{
  const tensor_storage *s = t->storage;
  int64_t each = (int64_t)itemsize(t->dtype);
  for (int d = 0; d < t->dims; d++)
    n[d] = t->stride[d], n[SIZES + d] = t->size[d];
  n[DIMS] = t->dims;
  n[OFFSET] = t->data ? (t->data - (char *)s->data) / each : 0;
  n[WHOLE] = (int64_t)s->bytes / each;
}

/* Whether several of its elements may be one. */
static bool may_overlap(const int64_t *n)
{
  bool used[WEIR_MAX_DIMS] = {false};
  int64_t reach = 0;
  for (int i = 0; i < n[DIMS]; i++) {
    int next = -1;
    for (int d = 0; d < n[DIMS]; d++)
      if (!used[d] && n[SIZES + d] > 1 && (next < 0 || n[d] < n[next])) next = d;
    if (next < 0) return false;
    if (n[next] <= reach) return true;
    used[next] = true;
    reach += n[next] * (n[SIZES + next] - 1);
  }
  return false;
}

/* ---- between a part and the whole ------------------------------------------------------------ */

static weir_status recorded_as(weir_tensor **out, enum record_kind kind,
                               const weir_tensor *const *in, int inputs, const int64_t *n)
{
  record r = {.kind = kind, .inputs = inputs, .in = in};
  memcpy(r.n, n, LAYOUT * sizeof *n);
  return record_made(out, &r, WEIR_OK);
}

static weir_status part_view(weir_tensor **out, const weir_tensor *whole, const int64_t *n)
{
  return tensor_part(out, whole, (int)n[DIMS], n + SIZES, n, n[OFFSET]);
}

/* The part of a whole, which is dense. */
static weir_status part_of_whole(weir_tensor **out, const weir_tensor *whole, const int64_t *n)
{
  weir_status st = part_view(out, whole, n);
  return st || !recorded(whole) ? st : recorded_as(out, RECORD_STRIDED, &whole, 1, n);
}

/* Adds elements of g to places of the whole, several perhaps to one. */
static weir_status add_to_places(weir_tensor *whole, const weir_tensor *g, const int64_t *n)
{
  WEIR_TENSOR all = NULL, part = NULL, places = NULL, row = NULL;
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(g)};
  weir_status st = weir_arange(&all, weir_int(0), weir_int(n[WHOLE]), weir_int(1), &o);
  if (!st) st = part_view(&part, all, n);
  if (!st) st = weir_reshape(&places, part, weir_shape(-1));
  if (!st) st = weir_reshape(&row, g, weir_shape(-1));
  return st ? st : weir_index_add_(whole, 0, places, row);
}

/* Zeros, with g in its place. */
static weir_status whole_of(weir_tensor **out, const weir_tensor *g, const int64_t *n)
{
  WEIR_TENSOR part = NULL;
  bool records = recorded(g);
  WEIR_UNRECORDED;
  weir_status st = weir_zeros(out, weir_shape(n[WHOLE]), OPTIONS_ON(g, g->dtype));
  if (!st && g->numel && may_overlap(n))
    st = add_to_places(*out, g, n);
  else if (!st && !(st = part_view(&part, *out, n)))
    st = weir_copy_(part, g, false);
  if (st) weir_tensor_drop(out);
  return st || !records ? st : recorded_as(out, RECORD_STRIDED_BACK, &g, 1, n);
}

/* `whole` with `part`, NULL: with zeros, in its place. */
static weir_status whole_with(weir_tensor **out, const weir_tensor *whole, const weir_tensor *part,
                              const int64_t *n)
{
  WEIR_TENSOR place = NULL;
  const weir_tensor *in[2] = {whole, part};
  bool records = recorded_any(in, 2);
  WEIR_UNRECORDED;
  weir_status st = weir_clone(out, whole);
  if (!st) st = part_view(&place, *out, n);
  if (!st) st = part ? weir_copy_(place, part, false) : weir_zero_(place);
  if (st) weir_tensor_drop(out);
  return st || !records ? st : recorded_as(out, RECORD_STRIDED_SCATTER, in, 2, n);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const weir_tensor *c_part_of(rule_run *k, const weir_tensor *whole)
{
  const weir_tensor *dense = c_contiguous(k->c, whole);
  return c_call(k->c, part_of_whole, dense, N);
}

static const weir_tensor *c_whole_with(rule_run *k, const weir_tensor *whole,
                                       const weir_tensor *part)
{
  const weir_tensor *dense = c_contiguous(k->c, whole);
  return c_call(k->c, whole_with, dense, part, N);
}

GIVES(strided, c_call(k->c, whole_of, G, N))

void strided_again(rule_run *k)
{
  give(k, 0, c_part_of(k, G));
}

GIVES_BOTH(strided_scatter, c_whole_with(k, G, NULL), c_part_of(k, G))

static weir_status part_node(grad_node **out, grad_node *whole, const int64_t *n, weir_dtype dtype,
                             weir_device device);

/* Runs the operation's own rule of the part of the gradient; found: what the rule gives,
 * counted. */
static void run_inner(rule_run *k, weir_tensor **found)
{
  grad_node *inner = k->n->inner, *as = NULL;
  int before = k->c->count;
  rule_run in = {.c = k->c, .n = inner, .out = found, .create_graph = k->create_graph};
  in.g[0] = c_part_of(k, G);
  if (!k->c->st && k->create_graph)
    k->c->st = part_node(&as, (grad_node *)k->n, N, inner->meta[0].dtype, inner->meta[0].device);
  in.as = as;
  if (!k->c->st && inner->rule->run) inner->rule->run(&in);
  calc_drop(k->c, before);
  node_release(as);
}

/* What the rule gave is what this node gives, but of the operand that was changed: its gradient is
 * put in the place of the part's. */
void copy_slices_back(rule_run *k)
{
  int inputs = k->n->inputs;
  weir_tensor **found = calloc((size_t)inputs, sizeof(weir_tensor *));
  if (!found) {
    k->c->st = weir_fail(WEIR_ENOMEM, "no host memory to go back through the graph");
  } else {
    run_inner(k, found);
    for (int i = 1; i < inputs; i++)
      give(k, i, found[i]);
    const weir_tensor *part = found[0];
    if (part && !k->c->st && part->dtype != G->dtype) part = c_to_dtype(k->c, part, G->dtype);
    if (wants_gradient(k, 0)) give(k, 0, c_whole_with(k, G, part));
  }
  for (int i = 0; found && i < inputs; i++)
    weir_tensor_release(found[i]);
  free(found);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static grad_meta whole_meta(const int64_t *n, weir_dtype dtype, weir_device device)
{
  return (grad_meta){.shape = weir_shape(n[WHOLE]), .dtype = dtype, .device = device};
}

/* A node of that kind, with no edges yet. */
static weir_status layout_node(grad_node **out, enum record_kind kind, int inputs, const int64_t *n)
{
  TRY(node_new(out, inputs));
  (*out)->r.kind = kind;
  memcpy((*out)->r.n, n, LAYOUT * sizeof *n);
  (*out)->rule = rule_of(&(*out)->r);
  (*out)->outputs = 1;
  return WEIR_OK;
}

/* Of a tensor that lies in a whole. */
static weir_status part_node(grad_node **out, grad_node *whole, const int64_t *n, weir_dtype dtype,
                             weir_device device)
{
  TRY(layout_node(out, RECORD_STRIDED, 1, n));
  (*out)->meta[0] = (grad_meta){.shape = shape_in(n), .dtype = dtype, .device = device};
  (*out)->of[0] = whole_meta(n, dtype, device);
  (*out)->edge[0] = (grad_edge){node_retain(whole), 0};
  return WEIR_OK;
}

/* Up the nodes of views: the base's result, and where it lies. */
static grad_edge layout_of_base(int64_t *n, const weir_tensor *t)
{
  grad_edge base = {t->node, t->output};
  layout_of(n, t);
  while (is_view_node(base.node)) {
    const grad_node *v = base.node;
    const weir_shape *s = &v->of[0].shape;
    for (int d = 0; d < s->count; d++)
      n[d] = v->r.n[VIEW_STRIDES + d], n[SIZES + d] = s->size[d];
    n[DIMS] = s->count;
    n[OFFSET] = v->r.n[VIEW_OFFSET];
    base = v->edge[0];
  }
  return base;
}

/* The first history: of the whole that the base lies in. */
static weir_status first_whole(grad_node **out, const weir_tensor *t)
{
  int64_t n[LAYOUT] = {0};
  grad_edge base = layout_of_base(n, t);
  TRY(layout_node(out, RECORD_STRIDED_BACK, 1, n));
  (*out)->meta[0] = whole_meta(n, t->dtype, device_of_tensor(t));
  (*out)->of[0] =
      (grad_meta){.shape = shape_in(n), .dtype = t->dtype, .device = device_of_tensor(t)};
  (*out)->edge[0] = (grad_edge){node_retain(base.node), base.output};
  return WEIR_OK;
}

/* ---- histories ------------------------------------------------------------------------------- */

/* Under history_lock. */
static grad_history *history_of(const weir_tensor *t)
{
  grad_history *h = t->storage->history;
  while (h && h->family != t->family)
    h = h->next;
  return h;
}

/* *out: a count of what the whole is before t is changed; NULL: it has no history. */
static weir_status whole_before(grad_node **out, const weir_tensor *t)
{
  *out = NULL;
  {
    HOLD_LOCK(&history_lock);
    grad_history *h = history_of(t);
    if (h) *out = node_retain(h->node);
  }
  return *out || !t->node ? WEIR_OK : first_whole(out, t);
}

bool memory_is_shared(const weir_tensor *t)
{
  const tensor_storage *s = t->storage;
  uint32_t sharing = atomic_load_explicit(&s->refs, memory_order_relaxed) -
                     atomic_load_explicit(&s->aliases, memory_order_relaxed);
  return s->history || sharing > 1;
}

/* The node of the whole; whole: what it was, a count that is stolen. */
static weir_status wrap(grad_node **out, const weir_tensor *t, grad_node *inner, grad_node *whole)
{
  int64_t n[LAYOUT] = {0};
  layout_of(n, t);
  TRY(layout_node(out, RECORD_COPY_SLICES, inner->inputs, n));
  grad_node *made = *out;
  made->meta[0] = made->of[0] = whole_meta(n, t->dtype, device_of_tensor(t));
  made->edge[0] = (grad_edge){whole, 0};
  for (int i = 1; i < inner->inputs; i++) {
    made->of[i] = inner->of[i];
    made->edge[i] = inner->edge[i];
    if (made->edge[i].node) (void)node_retain(made->edge[i].node);
  }
  made->inner = inner;
  made->history = calloc(1, sizeof *made->history);
  if (made->history) return WEIR_OK;
  made->inner = NULL, made->edge[0].node = NULL;
  node_release(made);
  return fail_memory("the history of a tensor");
}

weir_status shared_change(grad_node **out, const record *r, const grad_rule *rule)
{
  const weir_tensor *t = r->out[0];
  grad_node *whole = NULL, *inner = NULL;
  weir_status st = whole_before(&whole, t);
  if (!st) st = node_of(&inner, r, rule);
  if (!st) st = wrap(out, t, inner, whole);
  if (!st) return WEIR_OK;
  *out = NULL;
  node_release(inner);
  node_release(whole);
  return st;
}

void shared_changed(grad_node *n, weir_tensor *self)
{
  grad_node *before;
  {
    HOLD_LOCK(&history_lock);
    grad_history *h = history_of(self);
    if (!h) {
      h = n->history;
      n->history = NULL;
      *h = (grad_history){self->storage->history, self->family, 0, NULL, self->dtype};
      self->storage->history = h;
    }
    before = h->node;
    h->node = node_retain(n);
    h->version = self->storage->version;
  }
  node_release(before);
}

/* ---- tensors of a memory with a history ------------------------------------------------------ */

weir_status history_refresh(weir_tensor *t)
{
  grad_node *whole = NULL, *made;
  uint32_t version = 0;
  int64_t n[LAYOUT] = {0};
  if (t->alias) return WEIR_OK;
  {
    HOLD_LOCK(&history_lock);
    grad_history *h = history_of(t);
    if (!h || (int32_t)(h->version - t->seen) <= 0) return WEIR_OK;
    if (h->dtype != t->dtype) return check_created(t, true);
    whole = node_retain(h->node);
    version = h->version;
  }
  layout_of(n, t);
  weir_status st = check_created(t, true);
  if (!st) st = part_node(&made, whole, n, t->dtype, device_of_tensor(t));
  node_release(whole);
  if (st) return st;
  node_attach(t, made, 0);
  t->seen = version;
  node_release(made);
  return WEIR_OK;
}

static void free_histories(grad_history *h)
{
  while (h) {
    grad_history *next = h->next;
    node_release(h->node);
    free(h);
    h = next;
  }
}

/* From here on t counts as one of those that nodes keep. */
void history_view_gone(weir_tensor *t)
{
  tensor_storage *s = t->storage;
  grad_history *ended = NULL;
  if (t->alias) return;
  {
    HOLD_LOCK(&history_lock);
    t->alias = t->extras = true;
    uint32_t aliases = atomic_fetch_add_explicit(&s->aliases, 1, memory_order_relaxed) + 1;
    if (aliases == atomic_load_explicit(&s->refs, memory_order_relaxed)) {
      ended = s->history;
      s->history = NULL;
    }
  }
  free_histories(ended);
}

void history_memory_gone(tensor_storage *s)
{
  grad_history *ended = s->history;
  s->history = NULL;
  free_histories(ended);
}
