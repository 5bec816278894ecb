/* unseen.c: see unseen.h. A function nobody wrapped is handed out behind a passage: three
 * instructions (passages.S) that raise two flags and go on to it. They touch no register that a
 * function may be passed anything in, and it takes the program, not us, for its caller. Each
 * passage is bound to one function for good. */
#include "interpose/record/unseen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include "interpose/process/mode.h"

/* passages.S */
extern const char weir_passages[]; /* WEIR_PASSAGES pieces of code of WEIR_PASSAGE_BYTES */
extern void *weir_passage_to[WEIR_PASSAGES]; /* where each goes */
extern uint8_t weir_passed[WEIR_PASSAGES];   /* it was taken; written by the passage, as is: */
extern uint8_t weir_passed_any;

static char names[WEIR_PASSAGES][64];
static unsigned used;
static _Atomic bool too_many; /* were looked up for the passages there are */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *passage(unsigned i)
{
  return (void *)(uintptr_t)(weir_passages + (size_t)i * WEIR_PASSAGE_BYTES);
}

static bool is_passage(const void *function)
{
  uintptr_t at = (uintptr_t)function - (uintptr_t)weir_passages;
  return at < (uintptr_t)WEIR_PASSAGES * WEIR_PASSAGE_BYTES;
}

void *weir_unseen_offer(const char *name, void *real)
{
  unsigned i = 0;
  if (weir_mode_now() != WEIR_RELAXED || !real || is_passage(real)) return real;
  pthread_mutex_lock(&lock);
  while (i < used && weir_passage_to[i] != real)
    i++;
  if (i == used && used < WEIR_PASSAGES) {
    (void)snprintf(names[i], sizeof names[i], "%s", name);
    weir_passage_to[i] = real;
    used++;
  }
  pthread_mutex_unlock(&lock);
  if (i < WEIR_PASSAGES) return passage(i);
  atomic_store(&too_many, true);
  __atomic_store_n(&weir_passed_any, 1, __ATOMIC_RELEASE);
  return real;
}

void weir_unseen_forked(void)
{
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  lock = unlocked; /* whoever held it is not in this image */
}

bool weir_unseen_too_many(void)
{
  return atomic_load(&too_many);
}

const char *weir_unseen_called(void)
{
  if (!__atomic_load_n(&weir_passed_any, __ATOMIC_ACQUIRE)) return NULL;
  for (unsigned i = 0; i < WEIR_PASSAGES; i++)
    if (__atomic_load_n(&weir_passed[i], __ATOMIC_ACQUIRE)) return names[i];
  return "an unknown function";
}
