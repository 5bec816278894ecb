/* hooks.h: hooks of modules, as module.c sees them: a list that a module shares with its
 * replicas. */
#ifndef WEIR_NN_HOOKS_H
#define WEIR_NN_HOOKS_H

#include "core/nn/module.h"

/* NULL is NULL, and nothing. */
module_hooks *module_hooks_retain(module_hooks *list);
void module_hooks_release(module_hooks *list);
/* weir_module_call_many() of a module that has some. */
weir_status module_call_hooked(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                               int count);
/* The call without hooks. After an error *out is NULL. */
weir_status module_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in, int count);

#endif
