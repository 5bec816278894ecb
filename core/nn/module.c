/* module.c: modules: making, counting, adding, calling. */
#include "core/nn/hooks.h"
#include "core/tensor/announce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir/grad.h"
#include "core/weir/trace.h"

static weir_status no_module_memory(const weir_module_class *kind)
{
  return fail_memory("a module %s", kind->name);
}

weir_status weir_module_new(weir_module **out, const weir_module_class *kind, void *data)
{
  WEIR_REQUIRE_OUT(out, kind);
  weir_module *m = kind->name ? calloc(1, sizeof *m) : NULL;
  *out = m;
  if (!m) {
    if (kind->destroy && data) kind->destroy(data);
    return kind->name ? no_module_memory(kind) : fail_invalid("a module's class has no name");
  }
  atomic_init(&m->refs, 1);
  atomic_init(&m->training, true);
  m->kind = kind;
  m->data = data;
  return WEIR_OK;
}

weir_module *weir_module_retain(weir_module *m)
{
  if (m) atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
  return m;
}

static void destroy_module(weir_module *m)
{
  for (size_t i = 0; i < m->slots; i++) {
    weir_tensor_release(m->slot[i].t);
    free(m->slot[i].name);
  }
  for (size_t i = 0; i < m->children; i++) {
    weir_module_release(m->child[i].m);
    free(m->child[i].name);
  }
  if (!m->origin && m->kind->destroy && m->data) m->kind->destroy(m->data);
  weir_module_release(m->origin);
  module_hooks_release(m->hooks);
  free(m->slot);
  free(m->child);
  free(m->label);
  free(m);
}

void weir_module_release(weir_module *m)
{
  if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1) destroy_module(m);
}

void weir_module_drop(weir_module **m)
{
  if (!m) return;
  weir_module_release(*m);
  *m = NULL;
}

const char *weir_module_name(const weir_module *m)
{
  return m ? m->kind->name : "";
}

void *weir_module_data(const weir_module *m)
{
  return m ? m->data : NULL;
}

weir_status module_skeleton(weir_module **out, weir_module *m)
{
  void *data = m->data;
  bool own = m->kind->clone && m->data;
  weir_status st = own ? m->kind->clone(&data, m->data) : WEIR_OK;
  *out = NULL;
  if (st) return st;
  weir_module *copy = calloc(1, sizeof *copy);
  if (!copy) {
    if (own && m->kind->destroy) m->kind->destroy(data);
    return no_module_memory(m->kind);
  }
  atomic_init(&copy->refs, 1);
  atomic_init(&copy->training, atomic_load(&m->training));
  copy->kind = m->kind;
  copy->data = data;
  copy->hooks = module_hooks_retain(m->hooks);
  copy->origin = own ? NULL : weir_module_retain(m);
  copy->slot = calloc(m->slots + 1, sizeof *copy->slot);
  copy->child = calloc(m->children + 1, sizeof *copy->child);
  copy->label = m->label ? strdup(m->label) : NULL;
  bool whole = copy->slot && copy->child && !copy->label == !m->label;
  for (size_t i = 0; whole && i < m->slots; i++, copy->slots++) {
    copy->slot[i] =
        (module_slot){strdup(m->slot[i].name), NULL, m->slot[i].what, m->slot[i].persistent};
    whole = copy->slot[i].name;
  }
  for (size_t i = 0; whole && i < m->children; i++, copy->children++)
    whole = (copy->child[i].name = strdup(m->child[i].name));
  if (!whole) {
    weir_module_release(copy);
    return no_module_memory(m->kind);
  }
  *out = copy;
  return WEIR_OK;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static bool taken(const weir_module *m, const char *name)
{
  for (size_t i = 0; i < m->slots; i++)
    if (!strcmp(m->slot[i].name, name)) return true;
  for (size_t i = 0; i < m->children; i++)
    if (!strcmp(m->child[i].name, name)) return true;
  return false;
}

/* torch's rules for the names of parameters, buffers and modules. */
static weir_status check_name(const weir_module *m, const char *kind, const char *name)
{
  if (!name || !*name) return fail_invalid("%s name can't be empty string \"\"", kind);
  if (strchr(name, '.')) return fail_invalid("%s name can't contain \".\", got: %s", kind, name);
  if (taken(m, name)) return fail_invalid("attribute '%s' already exists", name);
  return WEIR_OK;
}

/* Room for one more of `size` bytes, and a copy of the name. */
static weir_status make_slot_room(void **array, size_t count, size_t size, char **copy,
                                  const char *name)
{
  void *larger = realloc(*array, (count + 1) * size);
  if (larger) *array = larger;
  *copy = larger ? strdup(name) : NULL;
  return *copy ? WEIR_OK : weir_fail(WEIR_ENOMEM, "no host memory to add '%s' to a module", name);
}

static weir_status add_tensor(weir_module *m, const char *name, weir_tensor *t, module_slot like)
{
  weir_status st = check_name(m, like.what == WEIR_BUFFERS ? "buffer" : "parameter", name);
  void *array = m->slot;
  if (!st) st = make_slot_room(&array, m->slots, sizeof *m->slot, &like.name, name);
  m->slot = array;
  if (!st && t && like.what == WEIR_PARAMETERS &&
      weir_dtype_is_floating_point(weir_tensor_dtype(t)))
    st = weir_requires_grad_(t, true);
  if (st) {
    free(like.name);
    weir_tensor_release(t);
    return st;
  }
  if (t) (void)weir_tensor_set_name(t, name);
  like.t = t;
  m->slot[m->slots++] = like;
  return WEIR_OK;
}

weir_status weir_module_add_parameter(weir_module *m, const char *name, weir_tensor *t)
{
  if (!m || !name) weir_tensor_release(t);
  WEIR_REQUIRE(m, name);
  if (!weir_tensor_is_leaf(t) && t) {
    weir_tensor_release(t);
    return fail_invalid("Cannot assign non-leaf Tensor to parameter '%s'. Model parameters must be "
                        "created explicitly. To express '%s' as a function of another Tensor, "
                        "compute the value in the forward() method.",
                        name, name);
  }
  return add_tensor(m, name, t, (module_slot){.what = WEIR_PARAMETERS, .persistent = true});
}

weir_status weir_module_add_buffer(weir_module *m, const char *name, weir_tensor *t,
                                   bool persistent)
{
  if (!m || !name) weir_tensor_release(t);
  WEIR_REQUIRE(m, name);
  return add_tensor(m, name, t, (module_slot){.what = WEIR_BUFFERS, .persistent = persistent});
}

static weir_status contains(bool *out, const weir_module *m, const weir_module *wanted)
{
  module_walk w;
  weir_status st = module_walk_list(&w, m, WALK_MODULES | WALK_MODULES_ONCE);
  *out = false;
  for (size_t i = 0; !st && i < w.count; i++)
    *out = *out || w.item[i].module == wanted;
  module_walk_free(&w);
  return st;
}

/* What calls of a child are called: its name, after that of a module which is never called itself,
 * as a ModuleList. For messages and traces, so that one that cannot be is no failure. */
static void label_child(const weir_module *m, weir_module *child, const char *name)
{
  const char *above = m->label && !m->kind->forward ? m->label : "";
  size_t room = strlen(above) + strlen(name) + 2;
  if (child->label) return;
  child->label = malloc(room);
  if (!child->label) return;
  (void)snprintf(child->label, room, "%s%s%s", above, *above ? "." : "", name);
  for (size_t i = 0; i < child->children && !child->kind->forward; i++) {
    module_child *below = &child->child[i];
    if (!below->m->label || strcmp(below->m->label, below->name) != 0) continue;
    free(below->m->label);
    below->m->label = NULL;
    label_child(child, below->m, below->name);
  }
}

/* Tensors below the child are called by their paths from `m` on, with its own label; the same
 * holds. */
static void name_tensors(const weir_module *m, const weir_module *child, const char *name)
{
  module_walk w;
  char text[64];
  const char *above = m->label ? m->label : "";
  weir_status st = module_walk_list(&w, child, WEIR_PARAMETERS | WEIR_BUFFERS | WALK_TENSORS_ONCE);
  for (size_t i = 0; !st && i < w.count; i++) {
    (void)snprintf(text, sizeof text, "%s%s%s.%s", above, *above ? "." : "", name, w.item[i].path);
    st = weir_tensor_set_name(w.item[i].slot->t, text);
  }
  module_walk_free(&w);
}

weir_status weir_module_add(weir_module *m, const char *name, weir_module *child)
{
  if (!m || !name) weir_module_release(child);
  WEIR_REQUIRE(m, name);
  bool within = false;
  char *copy = NULL;
  weir_status st = check_name(m, "module", name);
  if (!child) return st ? st : fail_invalid("weir_module_add: module '%s' is NULL", name);
  if (!st) st = contains(&within, child, m);
  if (!st && within)
    st = fail_invalid("module '%s' (%s) has the module it is added to within itself", name,
                      child->kind->name);
  void *array = m->child;
  if (!st) st = make_slot_room(&array, m->children, sizeof *m->child, &copy, name);
  m->child = array;
  if (st) {
    weir_module_release(child);
    return st;
  }
  m->child[m->children++] = (module_child){copy, child};
  label_child(m, child, name);
  name_tensors(m, child, name);
  return WEIR_OK;
}

/* ---- calling --------------------------------------------------------------------------------- */

/* A forward of the program's own that states that all went well. */
static __attribute__((cold)) weir_status no_output(const weir_module *m)
{
  char path[WEIR_TENSOR_TEXT];
  module_path_text(path);
  return fail_invalid("Module [%s] returned success from its forward without an output (%s)",
                      m->kind->name, path);
}

__thread module_watcher *module_watched;

weir_status module_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in, int count)
{
  weir_module_path_push(m->label ? m->label : m->kind->name);
  weir_status st = m->kind->forward(out, m, in, count);
  if (!st && !*out) st = no_output(m);
  weir_module_path_pop();
  if (__builtin_expect(module_watched != NULL, 0) && !st)
    module_watched->called(module_watched->user, m, *out);
  if (st) *out = NULL; /* whatever a failed forward has left there */
  return st;
}

weir_status weir_module_call_many(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                  int count)
{
  WEIR_REQUIRE_OUT(out, m);
  if (count) WEIR_REQUIRE(in);
  if (!m->kind->forward)
    return fail_unsupported("Module [%s] is missing the required \"forward\" function",
                            m->kind->name);
  return __builtin_expect(m->hooks != NULL, 0) ? module_call_hooked(out, m, in, count)
                                               : module_forward(out, m, in, count);
}

weir_status weir_module_call(weir_tensor **out, weir_module *m, weir_tensor *in)
{
  WEIR_REQUIRE_OUT(out, m, in);
  return weir_module_call_many(out, m, &in, 1);
}

void weir_module_train(weir_module *m, bool training)
{
  if (!m) return;
  atomic_store(&m->training, training);
  for (size_t i = 0; i < m->children; i++)
    weir_module_train(m->child[i].m, training);
}

void weir_module_eval(weir_module *m)
{
  weir_module_train(m, false);
}

bool weir_module_is_training(const weir_module *m)
{
  return m && atomic_load(&m->training);
}
