/* own_threads.c: see own_threads.h.
 *
 * A main thread that calls pthread_exit() stays as a zombie until the process ends, which libc does
 * when the last thread ends, by exit(0) in that thread. Is that thread one of ours, it goes back to
 * the signals of who started it, since handlers of atexit() run in it. */
#include "interpose/process/own_threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/fork.h"
#include "interpose/process/part.h"

static FORK_STATE _Atomic long own_threads; /* of this image, that have not ended */
static sigset_t starter_signals;            /* blocked where the first was started */

/* "PID (NAME) STATE ...": the state is field 3, the number of threads, the main one among them,
 * field 20. The name may hold anything. */
static bool main_thread_is_gone(const char *stat, long *threads)
{
  const char *at = strrchr(stat, ')');
  if (!at || at[1] != ' ' || at[2] != 'Z') return false;
  for (int field = 2; at && field < 20; field++)
    at = strchr(at + 1, ' ');
  *threads = at ? strtol(at, NULL, 10) : 0;
  return *threads > 0;
}

bool own_threads_are_alone(void)
{
  char text[1024];
  long threads;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  long n = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  text[n > 0 ? n : 0] = 0;
  return main_thread_is_gone(text, &threads) && threads <= 1 + atomic_load(&own_threads);
}

static void *run_own_thread(void *function)
{
  void (*run)(void);
  memcpy((void *)&run, (void *)&function, sizeof run);
  prctl(PR_SET_NAME, "weir");
  run();
  if (own_threads_are_alone()) pthread_sigmask(SIG_SETMASK, &starter_signals, NULL);
  atomic_fetch_sub(&own_threads, 1);
  return NULL;
}

bool own_thread_start(void (*run)(void))
{
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t most, before;
  void *function;
  memcpy((void *)&function, (void *)&run, sizeof function);
  if (pthread_attr_init(&attributes)) return false;
  sigfillset(&most);
  sigdelset(&most, SIGSEGV); /* whose handler may mend the program's memory */
  sigdelset(&most, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &most, &before);
  if (atomic_fetch_add(&own_threads, 1) == 0) starter_signals = before;
  bool ok = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
            pthread_create(&thread, &attributes, run_own_thread, function) == 0;
  if (!ok) atomic_fetch_sub(&own_threads, 1);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  return ok;
}

static void forget_threads(void)
{
  atomic_store(&own_threads, 0);
}

static const process_part part = {.forked = forget_threads};
PROCESS_PART(part);
