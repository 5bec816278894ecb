/* named.h: what a weir_tensors is (core/weir/io.h). */
#ifndef WEIR_IO_NAMED_H
#define WEIR_IO_NAMED_H

#include "core/tensor/tensor.h"

typedef struct named_item {
  char *name;  /* owned */
  void *value; /* a weir_tensor with a count of its own, or text of its own */
} named_item;

/* Zero-initialised is empty. */
typedef struct named_list {
  named_item *items;  /* owned; room for half of `room` */
  uint32_t *table;    /* owned; place + 1, 0: empty; `room` of them */
  size_t count, room; /* room: a power of two, or 0 */
} named_list;

struct weir_tensors {
  named_list tensors, metadata;
  named_list skipped; /* each has text of its own: what it is */
};

/* Something of a file that no tensor was made of; a name that is there already stays as it is.
 * Errors: ENOMEM. */
weir_status tensors_skip(weir_tensors *set, const char *name, const char *kind);

/* NULL: there is none (borrowed, until the next named_add). */
named_item *named_find(const named_list *l, const char *name);
/* After all others; the name is new and is copied, `value` is stolen unless it fails. Errors:
 * ENOMEM. */
weir_status named_add(named_list *l, const char *name, void *value);
/* Names and tables; values are the caller's. */
void named_free(named_list *l);

#endif
