/* collector_start.c: starts `weir collect` so that the program can't notice.
 *
 * The program may wait() for any child, count SIGCHLDs or be a child subreaper, so the collector
 * must never be a child of its: an intermediate process, cloned with exit signal 0 (which plain
 * wait() does not see), starts the collector and ends, and the collector goes to init. A subreaper
 * would get it instead, so the program is none for that moment. Process 1 of a container gets it in
 * any case, as it gets all orphans.
 *
 * Both processes run in the program's memory while the calling thread is stopped (CLONE_VM and
 * CLONE_VFORK, as posix_spawn does), on stacks of ours and with all signals blocked: no copy of a
 * large program's page tables, no atfork handlers, no malloc. What they do to their signals goes to
 * the kernel itself: a library that stands in for sigaction() would keep its books in that memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "interpose/process/process.h"

#define STACK_BYTES (64u << 10)
#define MOST_FDS    65536 /* closed one by one where close_range is missing */
#define MOST_STARTS 3     /* while what we start is killed before it is the collector */

/* What both processes work on; shared memory, so errors come back in it. */
typedef struct start {
  const char *program;
  char *const *arguments;
  char *const *environment;
  char *collector_stack; /* its top */
  volatile int error;    /* errno of whatever failed, EINTR: somebody killed it, 0: running */
} start;

static void close_descriptors(void)
{
  struct rlimit limit;
  rlim_t end = MOST_FDS;

#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0) return;
#endif
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < end) end = limit.rlim_cur;
  for (rlim_t fd = 3; fd < end; fd++)
    syscall(SYS_close, (int)fd);
}

/* The collector process, up to its exec. SIGTERM and SIGHUP, which batch systems and service
 * managers send to all of a job, are not for it: the program is about to end, and then so does it.
 */
static int become_collector(void *context)
{
  start *s = context;
  /* As the kernel knows them: SIG_DFL, SIG_IGN, the empty set. */
  static const uint64_t standard[8], ignored[8] = {1}, no_signals;

  for (int n = 1; n < NSIG; n++)
    syscall(SYS_rt_sigaction, n, n == SIGTERM || n == SIGHUP ? ignored : standard, NULL,
            sizeof no_signals);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof no_signals);
  long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  for (int fd = 0; null >= 0 && fd < 3; fd++)
    if (fd != null) dup2((int)null, fd);
  close_descriptors();
  s->error = 0;
  syscall(SYS_execve, s->program, s->arguments, s->environment); /* ours is no program's exec */
  s->error = errno;
  syscall(SYS_exit_group, 127);
  return 127;
}

/* The process in between. */
static int detach_collector(void *context)
{
  start *s = context;

  setsid();
  if (clone(become_collector, s->collector_stack, CLONE_VM | CLONE_VFORK, s) < 0) s->error = errno;
  syscall(SYS_exit_group, 0);
  return 0;
}

static void run_detached(start *s, char *stack)
{
  int reaper = 0;

  prctl(PR_GET_CHILD_SUBREAPER, &reaper);
  if (reaper) prctl(PR_SET_CHILD_SUBREAPER, 0);
  pid_t pid = clone(detach_collector, stack, CLONE_VM | CLONE_VFORK, s);
  if (pid < 0)
    s->error = errno;
  else
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
      ;
  if (reaper) prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The environment but LD_PRELOAD, in memory of `room` pointers. */
static void copy_environment(char **out, size_t room)
{
  size_t used = 0;

  for (char **e = environ; e && *e && used + 1 < room; e++)
    if (strncmp(*e, "LD_PRELOAD=", 11) != 0) out[used++] = *e;
  out[used] = NULL;
}

int process_start_collector(const char *program, const char *directory, const char *output, int pid)
{
  char number[16];
  const char *const arguments[] = {
      "weir", "collect", "--spool-dir", directory, "--pid", number, *output ? "--output" : NULL,
      output, NULL};
  size_t count = 1, bytes;
  sigset_t all, before;
  start s = {.program = program, .arguments = (char *const *)(uintptr_t)arguments, .error = EINTR};
  char *memory;

  if (access(program, X_OK) != 0) return errno;
  (void)snprintf(number, sizeof number, "%d", pid);
  for (char **e = environ; e && *e; e++)
    count++;
  bytes = 2 * STACK_BYTES + count * sizeof(char *);
  memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return errno;
  s.environment = (char **)(void *)(memory + 2 * STACK_BYTES);
  copy_environment((char **)(void *)(memory + 2 * STACK_BYTES), count);
  s.collector_stack = memory + 2 * STACK_BYTES;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int tries = 0; tries < MOST_STARTS && s.error == EINTR; tries++)
    run_detached(&s, memory + STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  munmap(memory, bytes);
  return s.error;
}
