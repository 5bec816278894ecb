/* state.c: moving modules between devices and dtypes, and their state as tensors by name.
 *
 * Both are whole or not at all: everything that can fail by its arguments, for want of memory or in
 * a file is done on the side first. Of moving, only pointers are then exchanged; of loading, only
 * copies within a device remain, which a device that has failed alone can refuse. */
#include "core/nn/module.h"
#include "core/tensor/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- moving ---------------------------------------------------------------------------------- */

/* How a walk's tensors are made anew; `old` has those that are made already. */
typedef struct mover {
  weir_options options;
  bool to_cuda; /* by weir_cuda(), which has errors of its own */
  bool real;    /* complex numbers keep their dtype */
} mover;

/* A parameter that required a gradient before requires one again, with the one that it has. (Not as
 * complex numbers, which have none.) */
static weir_status follow_gradient(weir_tensor *now, const weir_tensor *t, const mover *how)
{
  weir_options like = {.dtype = weir_tensor_dtype(now), .device = weir_tensor_device(now)};
  weir_tensor *grad = NULL, *was = weir_tensor_grad(t);
  if (!weir_tensor_requires_grad(t) || !weir_dtype_is_floating_point(like.dtype)) return WEIR_OK;
  like.non_blocking = how->options.non_blocking;
  weir_status st = weir_requires_grad_(now, true);
  if (!st && was) st = weir_to(&grad, was, &like);
  if (!st && grad) st = weir_tensor_set_grad(now, grad);
  weir_tensor_release(grad);
  return st;
}

static weir_status move_one(weir_tensor **out, const weir_tensor *t, const mover *how)
{
  weir_options o = how->options;
  weir_dtype dtype = weir_tensor_dtype(t);
  weir_status st;
  if (!weir_dtype_is_floating_point(dtype) && (how->real || !weir_dtype_is_complex(dtype)))
    o.dtype = WEIR_DTYPE_NONE;
  if (o.memory_format > WEIR_CONTIGUOUS_FORMAT &&
      weir_tensor_dim(t) != (o.memory_format == WEIR_CHANNELS_LAST ? 4 : 5))
    o.memory_format = WEIR_PRESERVE_FORMAT;
  st = how->to_cuda ? weir_cuda(out, t, o.device, o.non_blocking) : weir_to(out, t, &o);
  if (st || *out == t) return st;
  (void)weir_tensor_set_name(*out, weir_tensor_name(t));
  st = follow_gradient(*out, t, how);
  if (st) weir_tensor_drop(out);
  return st;
}

/* made[i] becomes what item i's tensor is to be, one count each: the same tensor where several
 * items have the same. */
static weir_status move_list(weir_tensor **made, const module_walk *w, const mover *how)
{
  pointer_memo moved = {0};
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < w->count; i++) {
    weir_tensor *t = w->item[i].slot->t;
    void *before = pointer_memo_get(&moved, t);
    if (before)
      made[i] = weir_tensor_retain(before);
    else if (!(st = move_one(&made[i], t, how)))
      st = pointer_memo_put(&moved, t, made[i]);
  }
  hash_map_free(&moved);
  return st;
}

static weir_status move_module(weir_module *m, const mover *how)
{
  WEIR_UNRECORDED;
  module_walk w;
  weir_tensor **made = NULL;
  weir_status st = module_walk_list(&w, m, WEIR_PARAMETERS | WEIR_BUFFERS | WALK_MODULES_ONCE);
  if (!st) made = calloc(w.count + 1, sizeof(weir_tensor *));
  if (!st && !made) st = weir_fail(WEIR_ENOMEM, "no host memory to move %zu tensors", w.count);
  if (made) st = move_list(made, &w, how);
  for (size_t i = 0; made && i < w.count; i++) {
    module_slot *s = w.item[i].slot;
    weir_tensor *unwanted = st ? made[i] : s->t;
    if (!st) s->t = made[i];
    weir_tensor_release(unwanted);
  }
  free(made);
  module_walk_free(&w);
  return st;
}

weir_status weir_module_to(weir_module *m, const weir_options *options)
{
  WEIR_REQUIRE(m);
  weir_dtype dtype = options ? options->dtype : WEIR_DTYPE_NONE;
  if (!options) return WEIR_OK;
  if (options->copy || options->pin_memory)
    return fail_invalid("a module is moved in place: copy and pin_memory have no meaning");
  if (dtype && !weir_dtype_is_floating_point(dtype) && !weir_dtype_is_complex(dtype))
    return fail_invalid(
        "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=weir.%s",
        weir_dtype_name(dtype));
  return move_module(m, &(mover){.options = *options});
}

weir_status weir_module_cuda(weir_module *m, weir_device device)
{
  WEIR_REQUIRE(m);
  return move_module(m, &(mover){.options.device = device, .to_cuda = true});
}

weir_status weir_module_cpu(weir_module *m)
{
  WEIR_REQUIRE(m);
  return move_module(m, &(mover){.options.device = WEIR_CPU});
}

#define MODULE_AS(name, as)                                                                        \
  weir_status weir_module_##name(weir_module *m)                                                   \
  {                                                                                                \
    WEIR_REQUIRE(m);                                                                               \
    return move_module(m, &(mover){.options.dtype = as, .real = true});                            \
  }
MODULE_AS(half, WEIR_FLOAT16)
MODULE_AS(bfloat16, WEIR_BFLOAT16)
MODULE_AS(float, WEIR_FLOAT32)
MODULE_AS(double, WEIR_FLOAT64)

/* ---- training -------------------------------------------------------------------------------- */

weir_status weir_module_parameters(weir_tensor ***out, int *count, const weir_module *m)
{
  WEIR_REQUIRE_OUT(out, count, m);
  module_walk w;
  *count = 0;
  weir_status st = module_walk_list(&w, m, WEIR_PARAMETERS | WALK_MODULES_ONCE | WALK_TENSORS_ONCE);
  weir_tensor **list = st ? NULL : malloc((w.count + 1) * sizeof(weir_tensor *));
  if (!st && !list) st = fail_memory("%zu parameters", w.count);
  for (size_t i = 0; list && i < w.count; i++)
    list[i] = w.item[i].slot->t;
  if (list) *count = (int)w.count;
  *out = list;
  module_walk_free(&w);
  return st;
}

/* Of all, or of none: those before the one that fails are what they were. */
static weir_status require_gradients(weir_tensor *const *list, int count)
{
  bool *was = malloc((size_t)count + 1);
  weir_status st = WEIR_OK;
  int done = 0;
  if (!was) return fail_memory("%d flags", count);
  for (; !st && done < count; done++) {
    was[done] = weir_tensor_requires_grad(list[done]);
    st = weir_requires_grad_(list[done], true);
  }
  while (st && --done > 0)
    if (!was[done - 1]) (void)weir_requires_grad_(list[done - 1], false);
  free(was);
  return st;
}

/* The same: one that is calculated, as a replica's are, is refused before any has changed. */
static weir_status freeze(weir_tensor *const *list, int count)
{
  for (int i = 0; i < count; i++)
    if (!weir_tensor_is_leaf(list[i])) return weir_requires_grad_(list[i], false);
  for (int i = 0; i < count; i++)
    (void)weir_requires_grad_(list[i], false);
  return WEIR_OK;
}

weir_status weir_module_requires_grad_(weir_module *m, bool requires_grad)
{
  WEIR_REQUIRE(m);
  weir_tensor **list;
  int count;
  weir_status st = weir_module_parameters(&list, &count, m);
  if (!st) st = requires_grad ? require_gradients(list, count) : freeze(list, count);
  free(list);
  return st;
}

void weir_module_zero_grad(weir_module *m)
{
  if (!m) return;
  for (size_t i = 0; i < m->slots; i++)
    if (m->slot[i].t && weir_tensor_is_leaf(m->slot[i].t))
      (void)weir_tensor_set_grad(m->slot[i].t, NULL);
  for (size_t i = 0; i < m->children; i++)
    weir_module_zero_grad(m->child[i].m);
}

/* ---- state ----------------------------------------------------------------------------------- */

weir_status weir_module_state(weir_tensors **out, const weir_module *m)
{
  WEIR_REQUIRE_OUT(out, m);
  module_walk w;
  weir_tensors *set = NULL;
  weir_status st = module_walk_list(&w, m, WEIR_PARAMETERS | WEIR_BUFFERS | WALK_STATE);
  if (!st) st = weir_tensors_create(&set);
  for (size_t i = 0; !st && i < w.count; i++)
    st = weir_tensors_put(set, w.item[i].path, w.item[i].slot->t);
  module_walk_free(&w);
  if (st)
    weir_tensors_release(set);
  else
    *out = set;
  return st;
}

/* What is wrong with a state, in torch's words; cut where it is full. */
typedef struct complaint {
  char text[512];
  size_t length;
} complaint;

__attribute__((format(printf, 2, 3))) static void append_complaint(complaint *c, const char *format,
                                                                   ...)
{
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(c->text + c->length, sizeof c->text - c->length, format, arguments);
  va_end(arguments);
  c->length += n > 0 ? (size_t)n : 0;
  if (c->length >= sizeof c->text) c->length = sizeof c->text - 1;
}

static void say_missing(complaint *c, const module_walk *w, const weir_tensors *state)
{
  bool any = false;
  for (size_t i = 0; i < w->count; i++) {
    if (weir_tensors_get(state, w->item[i].path)) continue;
    append_complaint(c, any ? ", \"%s\"" : "\n\tMissing key(s) in state_dict: \"%s\"",
                     w->item[i].path);
    any = true;
  }
  if (any) append_complaint(c, ". ");
}

static void say_unexpected(complaint *c, const weir_module *m, const weir_tensors *state)
{
  bool any = false;
  const char *name;
  for (size_t i = 0; (name = weir_tensors_name(state, i)); i++) {
    const module_slot *s = module_slot_at(m, name);
    if (s && s->t && s->persistent) continue;
    append_complaint(c, any ? ", \"%s\"" : "\n\tUnexpected key(s) in state_dict: \"%s\"", name);
    any = true;
  }
  if (any) append_complaint(c, ". ");
}

static bool same_shape(weir_shape a, weir_shape b)
{
  return a.count == b.count && !memcmp(a.size, b.size, (size_t)a.count * sizeof a.size[0]);
}

static void say_mismatches(complaint *c, const module_walk *w, const weir_tensors *state)
{
  for (size_t i = 0; i < w->count; i++) {
    const weir_tensor *from = weir_tensors_get(state, w->item[i].path);
    if (!from) continue;
    weir_shape theirs = weir_tensor_shape(from), ours = weir_tensor_shape(w->item[i].slot->t);
    if (same_shape(theirs, ours)) continue;
    text_buffer has, wants;
    append_complaint(c,
                     "\n\tsize mismatch for %s: copying a param with shape weir.Size(%s) from "
                     "checkpoint, the shape in current model is weir.Size(%s).",
                     w->item[i].path, shape_format(&has, theirs), shape_format(&wants, ours));
  }
}

/* The state's tensors where and as the module's are: one count each in staged; NULL: the state has
 * none, or it is the module's own. */
static weir_status stage_state(weir_tensor **staged, const module_walk *w,
                               const weir_tensors *state)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < w->count; i++) {
    const weir_tensor *to = w->item[i].slot->t, *from = weir_tensors_get(state, w->item[i].path);
    weir_options o = {.dtype = weir_tensor_dtype(to), .device = weir_tensor_device(to)};
    if (from && from != to) st = weir_to(&staged[i], from, &o);
  }
  return st;
}

static weir_status load_state(const module_walk *w, const weir_tensors *state)
{
  weir_tensor **staged = calloc(w->count + 1, sizeof(weir_tensor *));
  if (!staged) return weir_fail(WEIR_ENOMEM, "no host memory to load %zu tensors", w->count);
  WEIR_UNRECORDED;
  weir_status st = stage_state(staged, w, state);
  for (size_t i = 0; !st && i < w->count; i++)
    if (staged[i]) st = weir_copy_(w->item[i].slot->t, staged[i], false);
  for (size_t i = 0; i < w->count; i++)
    weir_tensor_release(staged[i]);
  free(staged);
  return st;
}

weir_status weir_module_load_state(weir_module *m, const weir_tensors *state, bool strict)
{
  WEIR_REQUIRE(m);
  module_walk w;
  complaint c = {.length = 0};
  weir_status st = module_walk_list(&w, m, WEIR_PARAMETERS | WEIR_BUFFERS | WALK_STATE);
  if (!st && strict) {
    say_missing(&c, &w, state);
    say_unexpected(&c, m, state);
  }
  if (!st) say_mismatches(&c, &w, state);
  if (!st && c.length)
    st = fail_invalid("Error(s) in loading state_dict for %s:%s", m->kind->name, c.text);
  if (!st) st = load_state(&w, state);
  module_walk_free(&w);
  return st;
}

weir_status weir_module_save(const weir_module *m, const char *path)
{
  WEIR_REQUIRE(m, path);
  weir_tensors *set;
  weir_status st = weir_module_state(&set, m);
  if (!st) st = weir_tensors_set_metadata(set, "format", "pt"); /* what PyTorch's tools look for */
  if (!st) st = weir_safetensors_save(path, set);
  weir_tensors_release(set);
  return st;
}

weir_status weir_module_load(weir_module *m, const char *path, bool strict)
{
  WEIR_REQUIRE(m, path);
  weir_tensors *set;
  weir_options host = {.device = WEIR_CPU};
  weir_status st = weir_tensors_load(&set, path, &host);
  if (!st) st = weir_module_load_state(m, set, strict);
  weir_tensors_release(set);
  return st;
}
