/* slots.c: see slots.h. */
#include "core/tensor/slots.h"

#include <pthread.h>
#include <stdbool.h>
#include "core/base/compiler.h"

unsigned slot_list_most = WEIR_ASAN ? 0 : 64;

__thread slot_list thread_slot_list __attribute__((tls_model("initial-exec")));

static __thread bool ended __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watched; /* there is a key */

static void end_slots_thread(void *list)
{
  (void)list;
  ended = true;
  for (int kind = 0; kind < SLOTS; kind++) {
    thread_slot_list.most[kind] = thread_slot_list.count[kind] = 0;
    while (thread_slot_list.first[kind]) {
      void *slot = thread_slot_list.first[kind];
      thread_slot_list.first[kind] = *(void **)slot;
      free(slot);
    }
  }
}

static void prepare_slots(void)
{
  watched = !pthread_key_create(&key, end_slots_thread);
}

/* The list is full, or the thread has none yet. */
__attribute__((cold)) void slot_give_slow(enum slot_kind kind, void *slot)
{
  if (!thread_slot_list.most[kind] && !ended && slot_list_most) {
    pthread_once(&once, prepare_slots);
    if (watched && !pthread_setspecific(key, &thread_slot_list))
      thread_slot_list.most[kind] = slot_list_most;
  }
  if (thread_slot_list.count[kind] < thread_slot_list.most[kind])
    slot_give(kind, slot);
  else
    free(slot);
}
