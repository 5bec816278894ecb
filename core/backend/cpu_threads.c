/* cpu_threads.c: the pool of threads that calculate on the cpu.
 *
 * One job at a time: who finds the pool busy does its work alone, which costs nothing but time. The
 * caller works too; pieces are taken from a counter, so that a slow thread takes fewer. Workers
 * sleep on a condition. `serial` moves with every job; a worker that wakes late finds `now` empty
 * and sleeps on.
 *
 * Threads are started by the first job that wants them, block all signals, and end when the library
 * goes (its destructor joins them). After a fork the child has none and starts its own: all state
 * is set to zero there, whoever held the locks. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/backend/threads.h"

enum { WORKERS = 1023 };

typedef struct job {
  parallel_part part;
  void *arg;
  int64_t count, grain;
  _Atomic int64_t next; /* the first element nobody has taken */
  int room;             /* workers that may still join; under lock */
  int joined;           /* workers that have; under lock */
} job;

static struct {
  pthread_mutex_t busy; /* held by who has a job here */
  pthread_mutex_t lock; /* guards all below */
  pthread_cond_t work, done;
  job *now;
  uint64_t serial;
  int workers, inside; /* started; working on `now` */
  bool closing;
  pthread_t thread[WORKERS];
} pool = {.busy = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static _Atomic int threads; /* 0: not asked yet */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool within __attribute__((tls_model("initial-exec"))); /* in a part */
static __thread int self __attribute__((tls_model("initial-exec")));    /* in a job: which */

/* ---- how many -------------------------------------------------------------------------------- */

static int count_cores(void)
{
  cpu_set_t set;
  const char *text = getenv("WEIR_NUM_THREADS");
  long n = text ? strtol(text, NULL, 10) : 0;
  if (n < 1) n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  return n < 1 ? 1 : n > WORKERS + 1 ? WORKERS + 1 : (int)n;
}

int weir_get_num_threads(void)
{
  int n = atomic_load_explicit(&threads, memory_order_relaxed), none = 0;
  if (n) return n;
  n = count_cores();
  return atomic_compare_exchange_strong(&threads, &none, n) ? n : none;
}

weir_status weir_set_num_threads(int n)
{
  if (n < 1) return weir_fail(WEIR_EINVAL, "expected positive number of threads, got %d", n);
  atomic_store(&threads, n > WORKERS + 1 ? WORKERS + 1 : n);
  return WEIR_OK;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void take_pieces(job *j)
{
  int64_t from;
  within = true;
  while ((from = atomic_fetch_add_explicit(&j->next, j->grain, memory_order_relaxed)) < j->count)
    j->part(j->arg, from, from + j->grain < j->count ? from + j->grain : j->count);
  within = false;
}

static void *worker(void *unused)
{
  uint64_t seen = 0;
  (void)unused;
  pthread_mutex_lock(&pool.lock);
  while (!pool.closing) {
    if (pool.serial == seen || !pool.now || !pool.now->room) {
      seen = pool.serial;
      pthread_cond_wait(&pool.work, &pool.lock);
      continue;
    }
    job *j = pool.now;
    seen = pool.serial;
    j->room--;
    self = ++j->joined;
    pool.inside++;
    pthread_mutex_unlock(&pool.lock);
    take_pieces(j);
    pthread_mutex_lock(&pool.lock);
    if (!--pool.inside) pthread_cond_signal(&pool.done);
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

static void fork_child(void)
{
  pthread_mutex_init(&pool.busy, NULL);
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.work, NULL);
  pthread_cond_init(&pool.done, NULL);
  pool.now = NULL;
  pool.workers = pool.inside = 0;
}

static void watch_forks(void)
{
  (void)pthread_atfork(NULL, NULL, fork_child);
}

/* Starts what is missing; under lock. Where the system gives no more threads, fewer do. */
static void start_workers(int wanted)
{
  sigset_t all, before;
  if (pool.closing || pool.workers >= wanted) return;
  (void)pthread_once(&once, watch_forks);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  while (pool.workers < wanted && !pthread_create(&pool.thread[pool.workers], NULL, worker, NULL))
    pool.workers++;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static __attribute__((destructor)) void end_workers(void)
{
  pthread_mutex_lock(&pool.lock);
  pool.closing = true;
  pthread_cond_broadcast(&pool.work);
  int n = pool.workers;
  pool.workers = 0;
  pthread_mutex_unlock(&pool.lock);
  for (int i = 0; i < n; i++)
    (void)pthread_join(pool.thread[i], NULL);
}

static void share_job(job *j)
{
  pthread_mutex_lock(&pool.lock);
  start_workers(weir_get_num_threads() - 1);
  pool.now = j;
  pool.serial++;
  for (int i = 0; i < j->room && i < pool.workers; i++)
    pthread_cond_signal(&pool.work);
  pthread_mutex_unlock(&pool.lock);
  take_pieces(j);
  pthread_mutex_lock(&pool.lock);
  pool.now = NULL;
  while (pool.inside)
    pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
}

/* Also within a part of another job: numbers count within the innermost. */
static void run_alone(int64_t count, parallel_part part, void *arg)
{
  int before = self;
  self = 0;
  if (count > 0) part(arg, 0, count);
  self = before;
}

int parallel_self(void)
{
  return self;
}

void parallel_for_most(int most, int64_t count, int64_t grain, parallel_part part, void *arg)
{
  int n = count <= grain || within ? 1 : weir_get_num_threads();
  if (n > most) n = most;
  if (n == 1 || pthread_mutex_trylock(&pool.busy)) {
    run_alone(count, part, arg);
    return;
  }
  int64_t pieces = (count - 1) / grain;
  job j = {.part = part, .arg = arg, .count = count, .grain = grain};
  j.room = pieces < n - 1 ? (int)pieces : n - 1;
  share_job(&j);
  pthread_mutex_unlock(&pool.busy);
}

void parallel_for(int64_t count, int64_t grain, parallel_part part, void *arg)
{
  parallel_for_most(WORKERS + 1, count, grain, part, arg);
}
