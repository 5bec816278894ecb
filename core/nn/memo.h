/* memo.h: what became of what: a map from pointers to pointers, for walks over modules that meet
 * the same thing twice. For one thread; all zero is an empty one. */
#ifndef WEIR_NN_MEMO_H
#define WEIR_NN_MEMO_H

#include "core/base/map.h"

typedef hash_map pointer_memo;

/* NULL: the key is not there. */
static inline void *pointer_memo_get(const pointer_memo *m, const void *key)
{
  const uint64_t *value = hash_map_get(m, (uint64_t)(uintptr_t)key);
  return value ? (void *)(uintptr_t)*value : NULL;
}

/* A value that is not NULL. Errors: ENOMEM. */
static inline weir_status pointer_memo_put(pointer_memo *m, const void *key, const void *value)
{
  if (!hash_map_put(m, (uint64_t)(uintptr_t)key, (uint64_t)(uintptr_t)value)) return WEIR_OK;
  return fail_memory("a walk over modules");
}

#endif
