/* bias.c: the slow side of bias.h: the mutex, and giving and taking the bias. */
#include "core/base/bias.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  RUN = 1024,     /* what a barrier costs is saved by fewer than these */
  THREADS = 1024, /* that can ever have a bias */
  YIELDS = 64
};

static bias_thread no_thread, threads[THREADS];
static _Atomic uint32_t known; /* of them given out */
__thread bias_thread *bias_self __attribute__((tls_model("initial-exec"))) = &no_thread;

static bool barrier(int command)
{
#if WEIR_TSAN
  (void)command;
  return true;
#else
  return syscall(__NR_membarrier, command, 0, 0) == 0;
#endif
}

/* Whoever was let in by the bias has left it. The barrier cannot fail: the bias was given in a
 * process that had registered. */
static void revoke_bias(biased_lock *b, const bias_thread *owner)
{
  atomic_store_explicit(&b->owner, NULL, WEIR_BIAS_ORDER);
  (void)barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  atomic_signal_fence(memory_order_seq_cst);
  /* It is in for a moment; where it is held up, perhaps by ourselves with a higher priority on its
   * processor, yielding would not let it run. */
  for (unsigned n = 0; atomic_load(&owner->inside); n++)
    if (n < YIELDS)
      (void)sched_yield();
    else
      (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void give_bias(biased_lock *b)
{
  if (bias_self == &no_thread) {
    uint32_t n = atomic_load(&known);
    while (n < THREADS && !atomic_compare_exchange_weak(&known, &n, n + 1))
      ;
    if (n == THREADS) return;
    bias_self = &threads[n];
  }
  if (barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    atomic_store_explicit(&b->owner, bias_self, WEIR_BIAS_ORDER);
}

void bias_lock_slow(biased_lock *b)
{
  const void *me = &bias_self;
  (void)pthread_mutex_lock(&b->mutex);
  const bias_thread *owner = atomic_load_explicit(&b->owner, memory_order_relaxed);
  if (owner) revoke_bias(b, owner);
  if (b->last != me) {
    b->last = me;
    b->run = 0;
  } else if (++b->run >= RUN) {
    b->run = 0;
    give_bias(b);
  }
}
