/* announce.h: tensors notify whoever listens (core/trace/notify.h) that they are made, named and
 * gone. For storage.c and tensor.c. */
#ifndef WEIR_TENSOR_ANNOUNCE_H
#define WEIR_TENSOR_ANNOUNCE_H

#include "core/trace/notify.h"
#include "core/tensor/tensor.h"

void announce_tensor(enum tensor_fact_kind fact, const tensor_storage *s, const weir_tensor *t);

/* The first tensor of new memory. */
static inline void announce_made(const weir_tensor *t)
{
  if (__builtin_expect(active_listener != NULL, 0))
    announce_tensor(WEIR_TENSOR_MADE, t->storage, t);
}

static inline void announce_named(const weir_tensor *t)
{
  if (__builtin_expect(active_listener != NULL, 0))
    announce_tensor(WEIR_TENSOR_NAMED, t->storage, t);
}

/* The last count of memory of ours. */
static inline void announce_gone(const tensor_storage *s)
{
  if (__builtin_expect(active_listener != NULL, 0)) announce_tensor(WEIR_TENSOR_GONE, s, NULL);
}

/* Where in its modules the thread is: "net.conv1", "" nowhere; cut. Another thread that works for
 * this one pushes it whole. */
void module_path_text(char out[WEIR_TENSOR_TEXT]);

#endif
