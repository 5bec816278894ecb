/* walk.c: walks over a module and all below it; finding by path; printing.
 *
 * A walk meets a module before its children, and they in the order they were added, as torch's
 * named_modules() does. */
#include "core/nn/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct walker {
  module_walk *list;
  int what;
  pointer_memo modules, tensors; /* met, where each is wanted once */
} walker;

/* *out is new. */
static weir_status join_path(char **out, const char *path, const char *name)
{
  size_t length = strlen(path) + strlen(name) + 2;
  *out = malloc(length);
  if (!*out) return fail_memory("the name %s.%s", path, name);
  (void)snprintf(*out, length, "%s%s%s", path, *path && *name ? "." : "", name);
  return WEIR_OK;
}

static weir_status put_item(walker *w, const char *path, const char *name, module_slot *slot,
                            const weir_module *m)
{
  module_walk *list = w->list;
  if (list->count == list->room) {
    size_t room = list->room ? 2 * list->room : 16;
    walk_item *larger = realloc(list->item, room * sizeof *larger);
    if (!larger) return fail_memory("a list of %zu names", room);
    list->item = larger;
    list->room = room;
  }
  char *full;
  weir_status st = join_path(&full, path, name);
  if (!st) list->item[list->count++] = (walk_item){full, slot, (weir_module *)m};
  return st;
}

/* Whether this is the first time; then it is noted. */
static weir_status first_time(bool *out, pointer_memo *met, const void *thing)
{
  *out = !pointer_memo_get(met, thing);
  return *out ? pointer_memo_put(met, thing, thing) : WEIR_OK;
}

static weir_status visit_slot(walker *w, const char *path, const weir_module *m, module_slot *s)
{
  bool wanted = s->t && (w->what & s->what) && (s->persistent || !(w->what & WALK_STATE));
  weir_status st = WEIR_OK;
  if (wanted && (w->what & WALK_TENSORS_ONCE)) st = first_time(&wanted, &w->tensors, s->t);
  return wanted && !st ? put_item(w, path, s->name, s, m) : st;
}

static weir_status visit_module(walker *w, const char *path, const weir_module *m)
{
  bool wanted = true;
  weir_status st = WEIR_OK;
  if (w->what & WALK_MODULES_ONCE) st = first_time(&wanted, &w->modules, m);
  if (st || !wanted) return st;
  if (w->what & WALK_MODULES) st = put_item(w, path, "", NULL, m);
  for (size_t i = 0; !st && i < m->slots; i++)
    st = visit_slot(w, path, m, &m->slot[i]);
  for (size_t i = 0; !st && i < m->children; i++) {
    const module_child *c = &m->child[i];
    char *below;
    st = join_path(&below, path, c->name);
    if (!st && c->m) st = visit_module(w, below, c->m);
    free(below);
  }
  return st;
}

weir_status module_walk_list(module_walk *out, const weir_module *m, int what)
{
  walker w = {.list = out, .what = what};
  *out = (module_walk){0};
  weir_status st = visit_module(&w, "", m);
  hash_map_free(&w.modules);
  hash_map_free(&w.tensors);
  return st;
}

void module_walk_free(module_walk *w)
{
  for (size_t i = 0; i < w->count; i++)
    free(w->item[i].path);
  free(w->item);
  *w = (module_walk){0};
}

/* ---- looking --------------------------------------------------------------------------------- */

static weir_module *child_called(const weir_module *m, const char *name, size_t length)
{
  for (size_t i = 0; i < m->children; i++)
    if (!strncmp(m->child[i].name, name, length) && !m->child[i].name[length]) return m->child[i].m;
  return NULL;
}

/* The module at the path up to its last dot; *last is what follows it. */
static const weir_module *owner_of_slot(const weir_module *m, const char *path, const char **last)
{
  const char *dot;
  for (; m && (dot = strchr(path, '.')); path = dot + 1)
    m = child_called(m, path, (size_t)(dot - path));
  *last = path;
  return m;
}

module_slot *module_slot_at(const weir_module *m, const char *path)
{
  const char *name;
  const weir_module *owner = owner_of_slot(m, path, &name);
  for (size_t i = 0; owner && i < owner->slots; i++)
    if (!strcmp(owner->slot[i].name, name)) return &owner->slot[i];
  return NULL;
}

static weir_tensor *tensor_at(const weir_module *m, const char *path, int what)
{
  const module_slot *s = module_slot_at(m, path);
  return s && s->what == what ? s->t : NULL;
}

weir_tensor *weir_module_parameter(const weir_module *m, const char *path)
{
  if (!m || !path) return NULL;
  return tensor_at(m, path, WEIR_PARAMETERS);
}

weir_tensor *weir_module_buffer(const weir_module *m, const char *path)
{
  if (!m || !path) return NULL;
  return tensor_at(m, path, WEIR_BUFFERS);
}

weir_module *weir_module_child(const weir_module *m, const char *path)
{
  if (!m || !path) return NULL;
  const char *name;
  if (!*path) return (weir_module *)m;
  const weir_module *owner = owner_of_slot(m, path, &name);
  return owner ? child_called(owner, name, strlen(name)) : NULL;
}

weir_module *weir_module_child_at(const weir_module *m, size_t place, const char **name)
{
  if (!m || place >= m->children) return NULL;
  if (name) *name = m->child[place].name;
  return m->child[place].m;
}

size_t weir_module_children(const weir_module *m)
{
  return m ? m->children : 0;
}

weir_status weir_module_visit(const weir_module *m, int what,
                              weir_status (*visit)(void *user, const char *path, weir_tensor *t),
                              void *user)
{
  WEIR_REQUIRE(m, visit);
  module_walk w;
  int kinds = what & (WEIR_PARAMETERS | WEIR_BUFFERS);
  weir_status st = module_walk_list(&w, m, kinds | WALK_MODULES_ONCE | WALK_TENSORS_ONCE);
  for (size_t i = 0; !st && i < w.count; i++)
    st = visit(user, w.item[i].path, w.item[i].slot->t);
  module_walk_free(&w);
  return st;
}

weir_status weir_module_visit_modules(weir_module *m,
                                      weir_status (*visit)(void *user, const char *path,
                                                           weir_module *child),
                                      void *user)
{
  WEIR_REQUIRE(m, visit);
  module_walk w;
  weir_status st = module_walk_list(&w, m, WALK_MODULES | WALK_MODULES_ONCE);
  for (size_t i = 0; !st && i < w.count; i++)
    st = visit(user, w.item[i].path, w.item[i].module);
  module_walk_free(&w);
  return st;
}

static weir_status count_elements(void *user, const char *path, weir_tensor *t)
{
  (void)path;
  *(int64_t *)user += weir_tensor_numel(t);
  return WEIR_OK;
}

weir_status weir_module_count_parameters(int64_t *out, const weir_module *m)
{
  WEIR_REQUIRE(out, m);
  *out = 0;
  return weir_module_visit(m, WEIR_PARAMETERS, count_elements, out);
}

const weir_module_class module_list_class = {.name = "ModuleList"};

/* ---- printing: torch's Module.__repr__ ------------------------------------------------------- */

static char *module_text(const weir_module *m, int depth);

/* A ModuleList's children: those in a row that print the same are printed once. */
static bool print_list(FILE *f, const weir_module *m, int depth)
{
  char *block = NULL;
  size_t from = 0;
  bool fine = true;
  for (size_t i = 0; fine && i <= m->children; i++) {
    char *text = i < m->children ? module_text(m->child[i].m, depth + 1) : NULL;
    fine = text || i == m->children;
    if (text && block && !strcmp(text, block)) {
      free(text);
      continue;
    }
    if (block && i - from > 1)
      (void)fprintf(f, "\n%*s(%s-%s): %zu x %s", 2 * depth + 2, "", m->child[from].name,
                    m->child[i - 1].name, i - from, block);
    else if (block)
      (void)fprintf(f, "\n%*s(%s): %s", 2 * depth + 2, "", m->child[from].name, block);
    free(block);
    block = text;
    from = i;
  }
  free(block);
  return fine;
}

static bool print_children(FILE *f, const weir_module *m, int depth)
{
  if (m->kind == &module_list_class) return print_list(f, m, depth);
  bool fine = true;
  for (size_t i = 0; fine && i < m->children; i++) {
    char *text = module_text(m->child[i].m, depth + 1);
    fine = text != NULL;
    if (fine) (void)fprintf(f, "\n%*s(%s): %s", 2 * depth + 2, "", m->child[i].name, text);
    free(text);
  }
  return fine;
}

/* False: no host memory. */
static bool print_module(FILE *f, const weir_module *m, int depth)
{
  char extra[256] = "";
  if (m->kind->describe) m->kind->describe(extra, sizeof extra, m);
  (void)fprintf(f, "%s(", m->kind->name);
  if (!m->children) return fprintf(f, "%s)", extra) > 0;
  if (*extra) (void)fprintf(f, "\n%*s%s", 2 * depth + 2, "", extra);
  bool fine = print_children(f, m, depth);
  return fprintf(f, "\n%*s)", 2 * depth, "") > 0 && fine;
}

/* New, to be freed; NULL: no host memory. */
static char *module_text(const weir_module *m, int depth)
{
  char *text = NULL;
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  bool fine = f && print_module(f, m, depth) && !ferror(f);
  if (f && fclose(f)) fine = false;
  if (fine) return text;
  free(text);
  return NULL;
}

weir_status weir_module_to_string(char **out, const weir_module *m)
{
  WEIR_REQUIRE_OUT(out, m);
  *out = module_text(m, 0);
  if (*out) return WEIR_OK;
  return weir_fail(WEIR_ENOMEM, "no host memory to print a module %s", m->kind->name);
}
