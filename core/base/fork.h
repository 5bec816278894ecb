/* fork.h: what a forked child writes at once.
 *
 * The first write to a page costs a child a fault, a page and a copy; a program may fork thousands.
 * So state that each child writes lies side by side, and what need not be written is not. Nothing
 * that is written often belongs here, since what is read at every call is its neighbour. */
#ifndef WEIR_BASE_FORK_H
#define WEIR_BASE_FORK_H

#include <pthread.h>

#define FORK_STATE __attribute__((section("fork_state")))

/* In a forked child: whoever held it is not there. */
static inline void lock_reset(pthread_mutex_t *mutex)
{
  const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  if (mutex->__data.__lock) *mutex = unlocked; /* glibc's word: 0 where it is free */
}

#endif
