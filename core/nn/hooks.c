/* hooks.c: hooks of modules: what the program has called before and after a module's forward, and
 * as gradients go back through it (torch.nn.Module's register_forward_pre_hook and its kin).
 *
 * A module has its hooks in one list, which its replicas have, too; a module without costs a test
 * of a pointer for each call. One that is taken away while hooks are called is marked, and freed
 * when none is.
 *
 * Gradients. Where a gradient is asked for, what goes into the module and what comes out are views
 * (nodes of the tape of their own), whose hooks wait there: the output's keeps the gradient that
 * comes, the input's is called when all that the module did has contributed. Several inputs that
 * require gradients are views of one row of all their elements, so that their gradients are whole
 * at once. Both share a `module_pass`, which lives as long as the graph. */
#include "core/nn/hooks.h"
#include <stdlib.h>
#include "core/grad/tape.h"
#include "core/weir/ops.h"

typedef struct module_hook {
  struct module_hook *next;
  uint64_t id;
  weir_module_hook_kind kind;
  bool gone; /* taken away while hooks were called */
  weir_module_hook call;
  void *user;                  /* the hook's; ended by destroy */
  void (*destroy)(void *user); /* NULL: nothing ends it */
} module_hook;

struct module_hooks {
  _Atomic uint32_t refs;    /* the module, its replicas, passes */
  _Atomic uint32_t walkers; /* who calls hooks now */
  module_hook *first;       /* owned, in the order they were registered */
};

static _Atomic uint64_t next_module_hook = 1;

/* ---- the list -------------------------------------------------------------------------------- */

static void free_module_hook(module_hook *h)
{
  if (h->destroy) h->destroy(h->user);
  free(h);
}

module_hooks *module_hooks_retain(module_hooks *list)
{
  if (list) atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
  return list;
}

void module_hooks_release(module_hooks *list)
{
  if (!list || atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) != 1) return;
  while (list->first) {
    module_hook *h = list->first;
    list->first = h->next;
    free_module_hook(h);
  }
  free(list);
}

/* Frees what was taken away, unless hooks are called now. */
static void sweep_hooks(module_hooks *list)
{
  if (atomic_load(&list->walkers)) return;
  for (module_hook **at = &list->first; *at;) {
    module_hook *h = *at;
    if (!h->gone) {
      at = &h->next;
      continue;
    }
    *at = h->next;
    free_module_hook(h);
  }
}

static weir_status no_room_for_hook(void)
{
  return fail_memory("a hook of a module");
}

weir_status weir_module_register_hook(uint64_t *id, weir_module *m, weir_module_hook_kind kind,
                                      weir_module_hook hook, void *user,
                                      void (*destroy)(void *user))
{
  if ((!m || !hook) && destroy) destroy(user);
  WEIR_REQUIRE(m, hook);
  module_hook *h = (unsigned)kind <= WEIR_HOOK_BACKWARD ? malloc(sizeof *h) : NULL;
  if (h && !m->hooks && (m->hooks = calloc(1, sizeof *m->hooks))) atomic_init(&m->hooks->refs, 1);
  if (!h || !m->hooks) {
    free(h);
    if (destroy) destroy(user);
    return (unsigned)kind <= WEIR_HOOK_BACKWARD
               ? no_room_for_hook()
               : fail_invalid("weir_module_register_hook: there is no kind %d", (int)kind);
  }
  *h = (module_hook){.id = atomic_fetch_add(&next_module_hook, 1),
                     .kind = kind,
                     .call = hook,
                     .user = user,
                     .destroy = destroy};
  module_hook **at = &m->hooks->first;
  sweep_hooks(m->hooks);
  while (*at)
    at = &(*at)->next;
  *at = h;
  if (id) *id = h->id;
  return WEIR_OK;
}

void weir_module_remove_hook(weir_module *m, uint64_t id)
{
  if (!m || !m->hooks) return;
  for (module_hook *h = m->hooks->first; h; h = h->next)
    h->gone |= h->id == id;
  sweep_hooks(m->hooks);
}

static bool has_hook(const module_hooks *list, weir_module_hook_kind kind)
{
  for (const module_hook *h = list->first; h; h = h->next)
    if (h->kind == kind && !h->gone) return true;
  return false;
}

/* ---- calling --------------------------------------------------------------------------------- */

/* *t was `before`; what a hook has put in its place stays, nothing is no change. */
static void take_replacement(weir_tensor **t, weir_tensor *before)
{
  if (!*t)
    *t = before;
  else if (*t != before)
    weir_tensor_release(before);
}

/* Calls h with what is counted here, which it may exchange. */
static weir_status run_hook(const module_hook *h, weir_module *m, weir_tensor **in, int count,
                            weir_tensor **out)
{
  weir_tensor *was = out ? *out : NULL;
  weir_tensor **before = malloc(((size_t)count + 1) * sizeof(weir_tensor *));
  if (!before) return no_room_for_hook();
  for (int i = 0; i < count; i++)
    before[i] = in[i];
  weir_status st = h->call(m, in, count, out, h->user);
  for (int i = 0; i < count; i++)
    take_replacement(&in[i], before[i]);
  if (out) take_replacement(out, was);
  free(before);
  return st;
}

/* All of a kind, in their order. */
static weir_status run_kind(module_hooks *list, weir_module_hook_kind kind, weir_module *m,
                            weir_tensor **in, int count, weir_tensor **out)
{
  weir_status st = WEIR_OK;
  atomic_fetch_add(&list->walkers, 1);
  for (const module_hook *h = list->first; h && !st; h = h->next)
    if (h->kind == kind && !h->gone) st = run_hook(h, m, in, count, out);
  atomic_fetch_sub(&list->walkers, 1);
  return st;
}

static void release_list(weir_tensor **list, int count)
{
  for (int i = 0; list && i < count; i++)
    weir_tensor_release(list[i]);
  free(list);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* A call of a module whose gradients hooks see. */
typedef struct module_pass {
  _Atomic uint32_t refs; /* the call, and the hooks of its views */
  weir_module *m;        /* a count */
  module_hooks *hooks;   /* a count */
  int count;             /* inputs */
  int wanted;            /* of them require a gradient */
  weir_tensor *output;   /* the output's gradient (a count), until the inputs' is there */
  weir_shape shape[];    /* of inputs; count below 0: it requires none */
} module_pass;

static void pass_release(void *data)
{
  module_pass *p = data;
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  weir_tensor_release(p->output);
  weir_module_release(p->m);
  module_hooks_release(p->hooks);
  free(p);
}

static module_pass *pass_new(weir_module *m, weir_tensor *const *in, int count)
{
  module_pass *p = calloc(1, sizeof *p + (size_t)count * sizeof p->shape[0]);
  if (!p) return NULL;
  atomic_init(&p->refs, 1);
  p->m = weir_module_retain(m);
  p->hooks = module_hooks_retain(m->hooks);
  p->count = count;
  for (int i = 0; i < count; i++) {
    bool wants = in[i] && weir_tensor_requires_grad(in[i]);
    p->shape[i] = wants ? weir_tensor_shape(in[i]) : (weir_shape){.count = -1};
    p->wanted += wants;
  }
  return p;
}

/* p (counted once more) waits at t's node. */
static weir_status wait_at(weir_tensor *t, weir_grad_hook hook, module_pass *p)
{
  atomic_fetch_add(&p->refs, 1);
  return grad_hook_owned(t, hook, p, pass_release);
}

/* The gradient of one input, or of all as a row, by inputs: counts, NULL where there is none. */
static weir_status split_gradient(weir_tensor **out, const module_pass *p, const weir_tensor *grad)
{
  int64_t at = 0;
  weir_status st = WEIR_OK;
  for (int i = 0; i < p->count && !st; i++) {
    WEIR_TENSOR part = NULL;
    int64_t size = 1;
    if (p->shape[i].count < 0) continue;
    if (p->wanted == 1) return weir_view(&out[i], grad, p->shape[i]);
    for (int d = 0; d < p->shape[i].count; d++)
      size *= p->shape[i].size[d];
    st = weir_narrow(&part, grad, 0, at, size);
    if (!st) st = weir_reshape(&out[i], part, p->shape[i]);
    at += size;
  }
  return st;
}

/* Tensors as one row of their elements; those of p. */
static weir_status join_rows(weir_tensor **out, const module_pass *p, weir_tensor *const *in)
{
  weir_tensor **row = calloc((size_t)p->count + 1, sizeof(weir_tensor *));
  int rows = 0;
  weir_status st = row ? WEIR_OK : no_room_for_hook();
  for (int i = 0; i < p->count && !st; i++) {
    if (p->shape[i].count < 0) continue;
    st = weir_reshape(&row[rows], in[i], weir_shape(-1));
    rows += !st;
  }
  if (!st) st = weir_cat(out, (const weir_tensor *const *)row, rows, 0);
  release_list(row, p->count);
  return st;
}

/* The inputs' gradients to the hooks; *out is what they put in their place. */
static weir_status show_gradients(weir_tensor **out, module_pass *p, weir_tensor **grads,
                                  weir_tensor **before)
{
  bool changed = false;
  weir_status st = run_kind(p->hooks, WEIR_HOOK_BACKWARD, p->m, grads, p->count, &p->output);
  for (int i = 0; i < p->count; i++)
    changed |= grads[i] != before[i];
  if (st || !changed) return st;
  if (p->wanted > 1) return join_rows(out, p, grads);
  for (int i = 0; i < p->count && !*out; i++)
    *out = weir_tensor_retain(grads[i]);
  return WEIR_OK;
}

/* A weir_grad_hook: all that the module did has contributed. Without a gradient of the output it
 * did not come through the module. */
static weir_status inputs_gradient(weir_tensor **out, const weir_tensor *grad, void *context)
{
  module_pass *p = context;
  size_t room = ((size_t)p->count + 1) * sizeof(weir_tensor *);
  if (!p->output || !has_hook(p->hooks, WEIR_HOOK_BACKWARD)) return WEIR_OK;
  weir_tensor **grads = calloc(1, room), **before = calloc(1, room);
  weir_status st = grads && before ? split_gradient(grads, p, grad) : no_room_for_hook();
  for (int i = 0; grads && before && i < p->count && !st; i++)
    before[i] = weir_tensor_retain(grads[i]); /* else another could come to lie there */
  if (!st) st = show_gradients(out, p, grads, before);
  release_list(grads, p->count);
  release_list(before, p->count);
  weir_tensor_drop(&p->output);
  return st;
}

/* Of a module none of whose inputs requires a gradient: the output's alone is shown. */
static weir_status show_output(module_pass *p)
{
  weir_status st;
  weir_tensor **grads = calloc((size_t)p->count + 1, sizeof(weir_tensor *));
  bool replaced = false;
  if (!grads) return no_room_for_hook();
  st = run_kind(p->hooks, WEIR_HOOK_BACKWARD, p->m, grads, p->count, &p->output);
  for (int i = 0; i < p->count; i++)
    replaced |= grads[i] != NULL;
  if (!st && replaced)
    st = fail_invalid("Backward hook for Modules where no input requires gradient should always "
                      "return None or None for all gradients.");
  release_list(grads, p->count);
  weir_tensor_drop(&p->output);
  return st;
}

/* A weir_grad_hook: the gradient of what came out. */
static weir_status output_gradient(weir_tensor **out, const weir_tensor *grad, void *context)
{
  module_pass *p = context;
  weir_tensor_release(p->output);
  p->output = weir_tensor_retain((weir_tensor *)grad);
  weir_status st = run_kind(p->hooks, WEIR_HOOK_BACKWARD_PRE, p->m, NULL, 0, &p->output);
  if (!st && p->output != grad) *out = weir_tensor_retain(p->output);
  return st || p->wanted ? st : show_output(p);
}

/* Inputs become views whose gradients p waits for. */
static weir_status hook_inputs(module_pass *p, weir_tensor **in)
{
  WEIR_TENSOR row = NULL;
  int64_t at = 0;
  weir_status st = p->wanted > 1 ? join_rows(&row, p, in) : WEIR_OK;
  if (!st && row) st = wait_at(row, inputs_gradient, p);
  for (int i = 0; i < p->count && !st; i++) {
    WEIR_TENSOR part = NULL;
    weir_tensor *seen = NULL;
    if (p->shape[i].count < 0) continue;
    int64_t size = weir_tensor_numel(in[i]);
    if (row) st = weir_narrow(&part, row, 0, at, size);
    if (!st) st = weir_view(&seen, row ? part : in[i], p->shape[i]);
    if (!st && !row) st = wait_at(seen, inputs_gradient, p);
    weir_tensor_release(st ? seen : in[i]);
    if (!st) in[i] = seen;
    at += size;
  }
  return st;
}

static weir_status hook_output(module_pass *p, weir_tensor **out)
{
  weir_tensor *seen = NULL;
  if (!weir_tensor_requires_grad(*out)) return WEIR_OK;
  weir_status st = weir_view(&seen, *out, weir_tensor_shape(*out));
  if (!st) st = wait_at(seen, output_gradient, p);
  if (st) {
    weir_tensor_release(seen);
    return st;
  }
  weir_tensor_release(*out);
  *out = seen;
  return WEIR_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* In torch's order: hooks before, the inputs' views, the forward, hooks after, the output's view.
 * in: counts, which change. */
static weir_status call_in_order(weir_tensor **out, weir_module *m, weir_tensor **in, int count)
{
  module_hooks *list = m->hooks;
  module_pass *p = NULL;
  weir_status st = run_kind(list, WEIR_HOOK_FORWARD_PRE, m, in, count, NULL);
  bool back = weir_is_grad_enabled() &&
              (has_hook(list, WEIR_HOOK_BACKWARD) || has_hook(list, WEIR_HOOK_BACKWARD_PRE));
  if (!st && back && !(p = pass_new(m, in, count))) st = no_room_for_hook();
  if (!st && p) st = hook_inputs(p, in);
  if (!st) st = module_forward(out, m, in, count);
  if (!st) st = run_kind(list, WEIR_HOOK_FORWARD, m, in, count, out);
  if (!st && p) st = hook_output(p, out);
  pass_release(p);
  return st;
}

weir_status module_call_hooked(weir_tensor **out, weir_module *m, weir_tensor *const *in, int count)
{
  weir_tensor **own = malloc(((size_t)count + 1) * sizeof(weir_tensor *));
  if (!own) return no_room_for_hook();
  for (int i = 0; i < count; i++)
    own[i] = weir_tensor_retain(in[i]);
  weir_status st = call_in_order(out, m, own, count);
  if (st) weir_tensor_drop(out);
  release_list(own, count);
  return st;
}
