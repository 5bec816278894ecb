/* cpu/threads.c: the pool of threads that calculate on the cpu.
 *
 * One job at a time: who finds the pool busy does its work alone, which costs nothing but time. The
 * caller works too; pieces are taken from a counter, so that a slow thread takes fewer.
 *
 * A job is published by its seats: a worker that takes one (the number is then its own) has joined,
 * and may read the job until it has added itself to `finished`. The caller, once no piece is left,
 * takes back the seats that are still free and waits for who joined. So a worker that wakes late
 * finds no seat, and costs the caller nothing. A seat's number of an earlier job is as good as one
 * of this: all of a job is read after the seat was taken.
 *
 * Operations come in rows, a few microseconds apart, and a sleeping thread needs tens of them to
 * wake. So workers, and a caller that waits for them, watch for a while before they sleep:
 * SPIN_MOST at most, less the more often nothing came meanwhile, and not at all where there are
 * more threads than processors, or where another thread takes the processor. A program that does
 * something else has its processors to itself after that. A worker that woke on its caller's
 * processor goes to another.
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
#include "core/base/require.h"
#include "core/backend/threads.h"
#include "core/base/clock.h"

enum { WORKERS = 1023, LINE = 64 };
/* Nanoseconds: how long a worker watches for a job, and a caller for its workers; between two looks
 * at the clock: another thread had the processor. */
enum { SPIN_MOST = 100000, SPIN_LEAST = 6250, SPIN_CALLER = 40000, STOLEN = 20000 };
enum { PAUSES = 16 }; /* between two looks at the clock */

static struct {
  pthread_mutex_t busy; /* held by who has a job here */
  pthread_mutex_t lock; /* guards the conditions, and what is started */
  pthread_cond_t work, done;
  /* The job: written by the caller before its seats are. */
  parallel_part part;
  void *arg;
  int64_t count, grain;
  int workers;                         /* started */
  _Atomic int processor;               /* the last caller's */
  _Atomic int watching;                /* workers that look for a seat */
  _Atomic int asleep;                  /* those that wait for `work` */
  _Atomic bool closing;                /* the library goes */
  _Atomic bool waiting;                /* the caller, for `done` */
  _Atomic bool may_watch;              /* there are as many processors as threads */
  _Alignas(LINE) _Atomic int64_t next; /* the first element that is not taken */
  _Alignas(LINE) _Atomic int seats;    /* workers that may still join */
  _Atomic int finished;                /* workers that have joined and are through */
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

static int processors(void)
{
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static int count_cores(void)
{
  const char *text = getenv("WEIR_NUM_THREADS");
  long n = text ? strtol(text, NULL, 10) : 0;
  if (n < 1) n = processors();
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
  if (n < 1) return fail_invalid("expected positive number of threads, got %d", n);
  atomic_store(&threads, n > WORKERS + 1 ? WORKERS + 1 : n);
  return WEIR_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static inline void pause_processor(void)
{
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Whether `*watched` became anything but `value` within `ns`. Where others want the processor, they
 * get it: what is awaited may be theirs to do. */
static bool watch(_Atomic int *watched, int value, uint64_t ns)
{
  uint64_t begin = clock_monotonic_ns(), before, at = begin;
  do {
    for (int i = 0; i < PAUSES; i++) {
      if (atomic_load_explicit(watched, memory_order_relaxed) != value) return true;
      pause_processor();
    }
    before = at;
    at = clock_monotonic_ns();
  } while (at - before < STOLEN && at - begin < ns);
  return false;
}

static bool has_seats(void)
{
  return atomic_load(&pool.seats) > 0 || atomic_load(&pool.closing);
}

/* A worker's way to the next job, which it watches for `*spin` ns: less the next time, unless it
 * gets a seat then. Not on the caller's own processor, as a worker that was just woken may be. */
static void wait_for_seats(uint64_t *spin)
{
  bool elsewhere = sched_getcpu() != atomic_load_explicit(&pool.processor, memory_order_relaxed);
  if (*spin && elsewhere && atomic_load_explicit(&pool.may_watch, memory_order_relaxed)) {
    atomic_fetch_add(&pool.watching, 1);
    bool came = watch(&pool.seats, 0, *spin);
    atomic_fetch_sub(&pool.watching, 1);
    *spin = *spin / 2 < SPIN_LEAST ? SPIN_LEAST : *spin / 2;
    if (came) return;
  }
  pthread_mutex_lock(&pool.lock);
  atomic_fetch_add(&pool.asleep, 1);
  while (!has_seats())
    pthread_cond_wait(&pool.work, &pool.lock);
  atomic_fetch_sub(&pool.asleep, 1);
  pthread_mutex_unlock(&pool.lock);
}

/* The caller's, for `joined` workers. */
static void wait_for_workers(int joined)
{
  int finished = atomic_load(&pool.finished);
  bool spin = atomic_load_explicit(&pool.may_watch, memory_order_relaxed);
  while (finished != joined && spin) {
    spin = watch(&pool.finished, finished, SPIN_CALLER);
    finished = atomic_load(&pool.finished);
  }
  if (finished == joined) return;
  pthread_mutex_lock(&pool.lock);
  atomic_store(&pool.waiting, true);
  while (atomic_load(&pool.finished) != joined)
    pthread_cond_wait(&pool.done, &pool.lock);
  atomic_store(&pool.waiting, false);
  pthread_mutex_unlock(&pool.lock);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void take_pieces(void)
{
  int64_t from;
  within = true;
  while ((from = atomic_fetch_add_explicit(&pool.next, pool.grain, memory_order_relaxed)) <
         pool.count)
    pool.part(pool.arg, from, from + pool.grain < pool.count ? from + pool.grain : pool.count);
  within = false;
}

/* A seat's number, 0: there is none. */
static int take_seat(void)
{
  int seat = atomic_load(&pool.seats);
  while (seat > 0 && !atomic_compare_exchange_weak(&pool.seats, &seat, seat - 1))
    continue;
  return seat;
}

/* A thread that wakes another expects it elsewhere. Where the kernel puts it on the same processor
 * none the less (it gathers threads on few of a virtual machine's, or finds another's cache too
 * far), the two would take turns for as long as a job lasts, until the load is balanced: 3 ms. */
static void leave_callers_processor(void)
{
  int at = sched_getcpu();
  cpu_set_t allowed, others;
  if (at < 0 || at != atomic_load_explicit(&pool.processor, memory_order_relaxed)) return;
  if (!atomic_load_explicit(&pool.may_watch, memory_order_relaxed)) return;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
  others = allowed;
  CPU_CLR((size_t)at, &others);
  if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
    (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

static void *worker(void *unused)
{
  uint64_t spin = SPIN_MOST;
  (void)unused;
  while (!atomic_load(&pool.closing)) {
    if (!(self = take_seat())) {
      wait_for_seats(&spin);
      continue;
    }
    spin = SPIN_MOST;
    leave_callers_processor();
    take_pieces();
    atomic_fetch_add(&pool.finished, 1);
    if (!atomic_load(&pool.waiting)) continue;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.done);
    pthread_mutex_unlock(&pool.lock);
    spin = 0; /* the caller may need this very processor */
  }
  return NULL;
}

static void fork_child_of_threads(void)
{
  pthread_mutex_init(&pool.busy, NULL);
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.work, NULL);
  pthread_cond_init(&pool.done, NULL);
  pool.workers = 0;
  atomic_store(&pool.seats, 0);
  atomic_store(&pool.watching, 0);
  atomic_store(&pool.asleep, 0);
  atomic_store(&pool.waiting, false);
}

static void watch_forks_of_threads(void)
{
  (void)pthread_atfork(NULL, NULL, fork_child_of_threads);
}

/* Starts what is missing; under busy. Where the system gives no more threads, fewer do. */
static void start_workers(int wanted)
{
  sigset_t all, before;
  if (pool.workers >= wanted) return;
  (void)pthread_once(&once, watch_forks_of_threads);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&pool.lock);
  while (!atomic_load(&pool.closing) && pool.workers < wanted &&
         !pthread_create(&pool.thread[pool.workers], NULL, worker, NULL))
    pool.workers++;
  pthread_mutex_unlock(&pool.lock);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  atomic_store(&pool.may_watch, pool.workers < processors());
}

static __attribute__((destructor)) void end_workers(void)
{
  pthread_mutex_lock(&pool.lock);
  atomic_store(&pool.closing, true);
  pthread_cond_broadcast(&pool.work);
  int n = pool.workers;
  pthread_mutex_unlock(&pool.lock);
  for (int i = 0; i < n; i++)
    (void)pthread_join(pool.thread[i], NULL);
}

/* Workers that watch come by themselves. One that has just stopped to looks once more before it
 * sleeps (has_seats), after it announced that: both cannot miss the other. */
static void wake_workers(int wanted)
{
  if (!atomic_load(&pool.asleep)) return;
  wanted -= atomic_load(&pool.watching);
  if (wanted <= 0) return;
  pthread_mutex_lock(&pool.lock);
  for (int asleep = atomic_load(&pool.asleep); wanted > 0 && asleep > 0; wanted--, asleep--)
    pthread_cond_signal(&pool.work);
  pthread_mutex_unlock(&pool.lock);
}

static void share_job(int room)
{
  start_workers(weir_get_num_threads() - 1);
  atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
  atomic_store_explicit(&pool.finished, 0, memory_order_relaxed);
  atomic_store_explicit(&pool.processor, sched_getcpu(), memory_order_relaxed);
  atomic_store(&pool.seats, room);
  wake_workers(room);
  take_pieces();
  wait_for_workers(room - atomic_exchange(&pool.seats, 0));
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

bool parallel_at_once(void)
{
  static _Atomic uint64_t last;
  if (within || weir_get_num_threads() == 1) return false;
  uint64_t at = clock_monotonic_ns();
  uint64_t before = atomic_exchange_explicit(&last, at, memory_order_relaxed);
  return at - before < SPIN_MOST || atomic_load_explicit(&pool.watching, memory_order_relaxed) > 0;
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
  pool.part = part, pool.arg = arg, pool.count = count, pool.grain = grain;
  share_job(pieces < n - 1 ? (int)pieces : n - 1);
  pthread_mutex_unlock(&pool.busy);
}

void parallel_for(int64_t count, int64_t grain, parallel_part part, void *arg)
{
  parallel_for_most(WORKERS + 1, count, grain, part, arg);
}
