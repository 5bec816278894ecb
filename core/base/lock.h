/* lock.h: a mutex that is held to the end of the block it was taken in: whatever leaves the block
 * gives it back, after what is returned has been worked out. */
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

#include <pthread.h>

static inline pthread_mutex_t *lock_take(pthread_mutex_t *mutex)
{
  (void)pthread_mutex_lock(mutex);
  return mutex;
}

static inline void lock_give_back(pthread_mutex_t **mutex)
{
  (void)pthread_mutex_unlock(*mutex);
}

#define HOLD_LOCK(mutex)                                                                           \
  pthread_mutex_t *lock_held __attribute__((cleanup(lock_give_back), unused)) = lock_take(mutex)

#endif
