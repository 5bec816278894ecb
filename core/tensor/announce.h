/* announce.h: tensors tell whoever listens (core/trace/notify.h) that they are made, named and
 * gone. For storage.c and tensor.c. */
#ifndef WEIR_TENSOR_ANNOUNCE_H
#define WEIR_TENSOR_ANNOUNCE_H

#include "core/trace/notify.h"
#include "core/tensor/tensor.h"

void weir_announce_tensor(enum weir_tensor_fact fact, const weir_storage *s, const weir_tensor *t);

/* The first tensor of new memory. */
static inline void weir_announce_made(const weir_tensor *t)
{
  if (__builtin_expect(weir_listening != NULL, 0))
    weir_announce_tensor(WEIR_TENSOR_MADE, t->storage, t);
}

static inline void weir_announce_named(const weir_tensor *t)
{
  if (__builtin_expect(weir_listening != NULL, 0))
    weir_announce_tensor(WEIR_TENSOR_NAMED, t->storage, t);
}

/* The last count of memory of ours. */
static inline void weir_announce_gone(const weir_storage *s)
{
  if (__builtin_expect(weir_listening != NULL, 0)) weir_announce_tensor(WEIR_TENSOR_GONE, s, NULL);
}

/* Where in its modules the thread is: "net.conv1", "" nowhere; cut. Another thread that works for
 * this one pushes it whole. */
void weir_module_path_text(char out[WEIR_TENSOR_TEXT]);

#endif
