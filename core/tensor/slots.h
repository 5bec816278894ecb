/* slots.h: memory for small things that come and go: tensors, and the storage of few elements.
 *
 * A thread keeps up to weir_slots_most of each kind that it gave back, in a list of its own: no
 * lock, no atomic. What is given back in another thread than it was taken in just changes lists.
 * A thread that ends frees its list, and keeps none from then on. Under AddressSanitizer there are
 * no lists, so that it sees what is used after it was released. */
#ifndef WEIR_TENSOR_SLOTS_H
#define WEIR_TENSOR_SLOTS_H

#include <stdlib.h>

enum weir_slot { SLOT_TENSOR, SLOT_STORAGE, SLOTS };

enum {
  SLOT_TENSOR_BYTES = 176,
  SLOT_STORAGE_BYTES = 128 /* the head of a storage, and 64 bytes of elements */
};

typedef struct weir_slot_list {
  void *first[SLOTS]; /* each begins with the next */
  unsigned count[SLOTS], most[SLOTS];
} weir_slot_list;

extern __thread weir_slot_list weir_slots __attribute__((tls_model("initial-exec")));
extern unsigned weir_slots_most; /* a thread's, from when it first gives one back */

void weir_slot_give_slowly(enum weir_slot kind, void *slot);

/* NULL: no memory. */
static inline void *weir_slot_take(enum weir_slot kind)
{
  void *slot = weir_slots.first[kind];
  if (__builtin_expect(!slot, 0))
    return malloc(kind == SLOT_TENSOR ? SLOT_TENSOR_BYTES : SLOT_STORAGE_BYTES);
  weir_slots.first[kind] = *(void **)slot;
  weir_slots.count[kind]--;
  return slot;
}

static inline void weir_slot_give(enum weir_slot kind, void *slot)
{
  if (__builtin_expect(weir_slots.count[kind] >= weir_slots.most[kind], 0)) {
    weir_slot_give_slowly(kind, slot);
    return;
  }
  *(void **)slot = weir_slots.first[kind];
  weir_slots.first[kind] = slot;
  weir_slots.count[kind]++;
}

#endif
