/* slots.c: see slots.h. */
#include "core/tensor/slots.h"

#include <pthread.h>
#include <stdbool.h>
#include "core/base/compiler.h"

unsigned weir_slots_most = WEIR_ASAN ? 0 : 64;

__thread weir_slot_list weir_slots __attribute__((tls_model("initial-exec")));

static __thread bool ended __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watched; /* there is a key */

static void end_thread(void *list)
{
  (void)list;
  ended = true;
  for (int kind = 0; kind < SLOTS; kind++) {
    weir_slots.most[kind] = weir_slots.count[kind] = 0;
    while (weir_slots.first[kind]) {
      void *slot = weir_slots.first[kind];
      weir_slots.first[kind] = *(void **)slot;
      free(slot);
    }
  }
}

static void prepare(void)
{
  watched = !pthread_key_create(&key, end_thread);
}

/* The list is full, or the thread has none yet. */
__attribute__((cold)) void weir_slot_give_slowly(enum weir_slot kind, void *slot)
{
  if (!weir_slots.most[kind] && !ended && weir_slots_most) {
    pthread_once(&once, prepare);
    if (watched && !pthread_setspecific(key, &weir_slots)) weir_slots.most[kind] = weir_slots_most;
  }
  if (weir_slots.count[kind] < weir_slots.most[kind])
    weir_slot_give(kind, slot);
  else
    free(slot);
}
