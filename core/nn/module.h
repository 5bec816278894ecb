/* module.h: what a module is inside, and walks over a tree of modules.
 *
 * Words. slot: the place of a tensor in a module, a parameter's or a buffer's; its tensor may be
 * NULL. item: what a walk meets: a slot or a module, and its dotted path. Modules form a graph
 * without cycles: a child may have several parents. */
#ifndef WEIR_NN_MODULE_H
#define WEIR_NN_MODULE_H

#include <stdatomic.h>
#include "core/base/require.h"
#include "core/nn/memo.h"
#include "core/weir/module.h"

typedef struct module_slot {
  char *name;      /* owned */
  weir_tensor *t;  /* a count of its own; NULL: not there */
  int what;        /* WEIR_PARAMETERS or WEIR_BUFFERS */
  bool persistent; /* part of the state */
} module_slot;

typedef struct module_child {
  char *name;     /* owned */
  weir_module *m; /* a count of its own */
} module_child;

typedef struct module_hooks module_hooks; /* hooks.h */

struct weir_module {
  _Atomic uint32_t refs;
  _Atomic bool training;
  const weir_module_class *kind; /* borrowed */
  void *data;                    /* its class's; ended with the module unless origin's */
  char *label;                   /* owned: the first name it was added under; NULL: none */
  weir_module *origin;           /* of a replica that shares its data: a count; else NULL */
  module_slot *slot;             /* owned, in the order they were added */
  size_t slots;
  module_child *child; /* owned, in the order they were added */
  size_t children;
  module_hooks *hooks; /* a count; NULL: none */
};

extern const weir_module_class module_list_class; /* ModuleList's */

/* What a list has, in addition to WEIR_PARAMETERS and WEIR_BUFFERS. */
enum {
  WALK_STATE = 4,         /* of them only those that are part of the state */
  WALK_MODULES = 8,       /* the modules themselves, no slots */
  WALK_MODULES_ONCE = 16, /* each module under its first path only */
  WALK_TENSORS_ONCE = 32  /* each tensor under its first path only */
};

typedef struct walk_item {
  char *path;        /* owned; "" for the root */
  module_slot *slot; /* in `module`; NULL: the item is the module */
  weir_module *module;
} walk_item;

typedef struct module_walk {
  walk_item *item; /* owned */
  size_t count, room;
} module_walk;

/* Slots that have a tensor, or modules. *out must be given to module_walk_free(), also on failure.
 * Errors: ENOMEM. */
weir_status module_walk_list(module_walk *out, const weir_module *m, int what);
void module_walk_free(module_walk *w);

/* Who hears of each module that the thread has called, and what it made (borrowed). NULL: none. */
typedef struct module_watcher {
  void (*called)(void *user, const weir_module *m, const weir_tensor *out);
  void *user; /* borrowed */
} module_watcher;
extern __thread module_watcher *module_watched;

/* The slot at a dotted path, with a tensor or without; NULL: there is none. */
module_slot *module_slot_at(const weir_module *m, const char *path);
/* A module of the same class, with room for as many slots and children, names copied, tensors and
 * children NULL: replicas. Its data is cloned, or m's. Errors: ENOMEM, the clone's. */
weir_status module_skeleton(weir_module **out, weir_module *m);

#endif
