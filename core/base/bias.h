/* bias.h: a lock that costs next to nothing to the thread that takes it again and again.
 *
 * Most programs allocate on one thread. A lock is *biased* to a thread that has taken it RUN times
 * in a row: from then on that thread enters by a store and a load, with no atomic
 * read-modify-write, until another thread wants in. That one takes the bias away, which costs a
 * barrier on every processor the process runs on (membarrier), and is paid back by a run. Among
 * threads that take turns it is the mutex beneath it.
 *
 * The owner stores `inside`, then reads `owner`; the revoker, who holds the mutex, clears `owner`,
 * then reads `inside`. One of them must see the other, and the barrier between is the revoker's.
 * `inside` is a thread's own, not the lock's: one that was held up on its way in may have lost the
 * bias long ago, and what it then stores may be nobody else's. It lies in memory that outlives the
 * thread, of which there is a bounded amount: threads after that get no bias, and nobody does where
 * the kernel has no membarrier.
 *
 * Not recursive, and a thread is inside of one such lock at a time. After a fork it is the child's
 * only if its thread could have had it, as with a mutex. */
#ifndef WEIR_BASE_BIAS_H
#define WEIR_BASE_BIAS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/compiler.h"

typedef struct bias_thread {        /* who can have a bias; a line of its own, as others read it */
  _Alignas(64) _Atomic bool inside; /* the thread's alone to write: it is in, or just looking */
} bias_thread;

typedef struct biased_lock {
  _Atomic(bias_thread *) owner; /* who enters without the mutex; NULL: nobody */
  pthread_mutex_t mutex;        /* everybody else's way in */
  /* Whose the lock is: */
  bool by_owner;    /* the owner's way; else the mutex is held */
  uint32_t run;     /* times in a row that `last` came by the mutex */
  const void *last; /* who did */
} biased_lock;

#define WEIR_BIAS_INITIALIZER                                                                      \
  {                                                                                                \
    .mutex = PTHREAD_MUTEX_INITIALIZER                                                             \
  }

/* A dummy that owns nothing, until the thread has had a bias. */
extern __thread bias_thread *bias_self __attribute__((tls_model("initial-exec")));

/* The mutex, the bias taken from whoever has it, and given where a run is long enough. */
void bias_lock_slow(biased_lock *b);

#if WEIR_TSAN
#define WEIR_BIAS_ORDER memory_order_seq_cst /* membarrier is nothing a race detector knows */
#else
#define WEIR_BIAS_ORDER memory_order_relaxed
#endif

static inline void bias_lock(biased_lock *b)
{
  bias_thread *me = bias_self;
  if (__builtin_expect(atomic_load_explicit(&b->owner, memory_order_relaxed) == me, 1)) {
    atomic_store_explicit(&me->inside, true, WEIR_BIAS_ORDER);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&b->owner, WEIR_BIAS_ORDER) == me, 1)) {
      b->by_owner = true;
      return;
    }
    atomic_store_explicit(&me->inside, false, memory_order_release);
  }
  bias_lock_slow(b);
}

static inline void bias_unlock(biased_lock *b)
{
  if (__builtin_expect(b->by_owner, 1)) {
    b->by_owner = false;
    atomic_store_explicit(&bias_self->inside, false, memory_order_release);
  } else {
    (void)pthread_mutex_unlock(&b->mutex);
  }
}

#endif
