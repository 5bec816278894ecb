/* slots.h: memory for small things that come and go: tensors, and the storage of few elements.
 *
 * A thread keeps up to slot_list_most of each kind that it gave back, in a list of its own: no
 * lock, no atomic. What is given back in another thread than it was taken in just changes lists.
 * A thread that ends frees its list, and keeps none from then on. Under AddressSanitizer there are
 * no lists, so that it sees what is used after it was released. */
#ifndef WEIR_TENSOR_SLOTS_H
#define WEIR_TENSOR_SLOTS_H

#include <stdlib.h>

enum slot_kind { SLOT_TENSOR, SLOT_STORAGE, SLOTS };

enum {
  SLOT_TENSOR_BYTES = 200,
  SLOT_STORAGE_BYTES = 128 /* the head of a storage, and 64 bytes of elements */
};

typedef struct slot_list {
  void *first[SLOTS]; /* each begins with the next */
  unsigned count[SLOTS], most[SLOTS];
} slot_list;

extern __thread slot_list thread_slot_list __attribute__((tls_model("initial-exec")));
extern unsigned slot_list_most; /* a thread's, from when it first gives one back */

void slot_give_slow(enum slot_kind kind, void *slot);

/* NULL: no memory. */
static inline void *slot_take(enum slot_kind kind)
{
  void *slot = thread_slot_list.first[kind];
  if (__builtin_expect(!slot, 0))
    return malloc(kind == SLOT_TENSOR ? SLOT_TENSOR_BYTES : SLOT_STORAGE_BYTES);
  thread_slot_list.first[kind] = *(void **)slot;
  thread_slot_list.count[kind]--;
  return slot;
}

static inline void slot_give(enum slot_kind kind, void *slot)
{
  if (__builtin_expect(thread_slot_list.count[kind] >= thread_slot_list.most[kind], 0)) {
    slot_give_slow(kind, slot);
    return;
  }
  *(void **)slot = thread_slot_list.first[kind];
  thread_slot_list.first[kind] = slot;
  thread_slot_list.count[kind]++;
}

#endif
