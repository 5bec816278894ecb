/* memo.h: what became of what: a map from pointers to pointers, for walks over modules that meet
 * the same thing twice. For one thread; all zero is an empty one. */
#ifndef WEIR_NN_MEMO_H
#define WEIR_NN_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/status.h"

typedef struct weir_memo {
  struct {
    const void *key; /* NULL: free */
    void *value;
  } * slot;           /* `room` of them, owned; NULL: none yet */
  size_t count, room; /* room: a power of two, at least twice count */
} weir_memo;

/* The value's place; NULL: the key is not there. Valid until the next put. */
void **weir_memo_get(const weir_memo *m, const void *key);
/* A key that is not there yet, and not NULL. Errors: ENOMEM. */
weir_status weir_memo_put(weir_memo *m, const void *key, void *value);
void weir_memo_free(weir_memo *m);

#endif
