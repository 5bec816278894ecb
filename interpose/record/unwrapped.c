/* unwrapped.c: see unwrapped.h. A function nobody wrapped is handed out through a thunk: an entry
 * (elf/entry.h) and three instructions (thunks.S) that raise two flags and go on to it. They
 * change no argument, and it takes the program, not us, for its caller. Each thunk is bound to one
 * function for good. */
#include "interpose/record/unwrapped.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include "core/base/fork.h"
#include "interpose/process/mode.h"

/* thunks.S */
extern const char thunk_code[];     /* THUNKS pieces of code of THUNK_BYTES */
extern void *thunk_targets[THUNKS]; /* where each goes */
extern uint8_t thunk_taken[THUNKS]; /* it was taken; written by the thunk, as is: */
extern uint8_t thunk_any_taken;

static char names[THUNKS][64];
static unsigned used;
static _Atomic bool too_many; /* were looked up for the thunks there are */
static FORK_STATE pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *thunk_at(unsigned i)
{
  return (void *)(uintptr_t)(thunk_code + (size_t)i * THUNK_BYTES);
}

static bool is_thunk(const void *function)
{
  uintptr_t at = (uintptr_t)function - (uintptr_t)thunk_code;
  return at < (uintptr_t)THUNKS * THUNK_BYTES;
}

void *unwrapped_watch(const char *name, void *real)
{
  unsigned i = 0;
  if (process_mode_now() != WEIR_RELAXED || !real || is_thunk(real)) return real;
  pthread_mutex_lock(&lock);
  while (i < used && thunk_targets[i] != real)
    i++;
  if (i == used && used < THUNKS) {
    (void)snprintf(names[i], sizeof names[i], "%s", name);
    thunk_targets[i] = real;
    used++;
  }
  pthread_mutex_unlock(&lock);
  if (i < THUNKS) return thunk_at(i);
  atomic_store(&too_many, true);
  __atomic_store_n(&thunk_any_taken, 1, __ATOMIC_RELEASE);
  return real;
}

void unwrapped_forked(void)
{
  lock_reset(&lock);
}

bool unwrapped_overflowed(void)
{
  return atomic_load(&too_many);
}

const char *unwrapped_called(void)
{
  if (!__atomic_load_n(&thunk_any_taken, __ATOMIC_ACQUIRE)) return NULL;
  for (unsigned i = 0; i < THUNKS; i++)
    if (__atomic_load_n(&thunk_taken[i], __ATOMIC_ACQUIRE)) return names[i];
  return "an unknown function";
}
