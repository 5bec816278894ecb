/* signals.c: how signals reach the program when weir stands between it and its parent.
 *
 * Program and weir share a process group. What the terminal sends (^C, ^\, ^Z, a new window size)
 * goes to the whole group: the program has it already, and weir does nothing. What somebody sends
 * to weir's pid is meant for the program, and is sent on. The two differ in who sent it:
 * the kernel (SI_KERNEL) or a process. One case cannot be detected: a process that sends to the
 * whole group by kill(-PGID); the program then gets it twice. One kernel signal has to be sent
 * on: SIGHUP, when weir leads the session, goes to the leader alone.
 *
 * ^Z: the program decides whether it stops; when it has, weir stops with it, so that the shell, who
 * waits for weir, sees the job stopped. fg continues both.
 *
 * A signal that was ignored when weir started (nohup, background jobs of plain shells) stays
 * ignored by both. */
#include "tools/weir/run/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/process.h"

static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGWINCH, SIGTSTP, SIGCONT};
enum { FORWARDED = sizeof forwarded / sizeof *forwarded };

static _Atomic pid_t program; /* where signals go; 0: nowhere */
static _Atomic unsigned interrupts;
static _Atomic bool ended, finishing, continued;
static int wake = -1; /* eventfd */
static sigset_t ours, before;

static bool ends_a_program(int signal)
{
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

static void forward_signal(int signal, const siginfo_t *si)
{
  pid_t to = program;
  bool from_kernel = si->si_code == SI_KERNEL;
  if (!to || si->si_pid == to) return; /* what the program sent, to its group, it has as well */
  if (from_kernel && !(signal == SIGHUP && getsid(0) == getpid())) return;
  (void)kill(to, signal);
}

static void on_signal(int signal, siginfo_t *si, void *unused)
{
  int saved = errno;
  uint64_t one = 1;
  (void)unused;
  if (signal == SIGCONT) {
    continued = true;
  } else if (signal == SIGCHLD) {
    /* only to wake */
  } else if (!ended) {
    forward_signal(signal, si);
  } else if (ends_a_program(signal)) {
    if (finishing && interrupts) {
      struct sigaction plain = {.sa_handler = SIG_DFL};
      (void)sigaction(signal, &plain, NULL);
      (void)raise(signal); /* delivered when this handler returns */
    }
    interrupts++;
  }
  (void)!write(wake, &one, sizeof one);
  errno = saved;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

void signals_hold(void)
{
  (void)sigemptyset(&ours);
  (void)sigaddset(&ours, SIGCHLD);
  for (int i = 0; i < FORWARDED; i++)
    (void)sigaddset(&ours, forwarded[i]);
  (void)sigprocmask(SIG_BLOCK, &ours, &before);
}

void signals_in_child(void)
{
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

bool signals_begin(pid_t to)
{
  struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
  act.sa_mask = ours;
  wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    cmd_message("cannot make an eventfd: %s.", strerror(errno));
    return false;
  }
  program = to;
  (void)sigaction(SIGCHLD, &act, NULL);
  for (int i = 0; i < FORWARDED; i++)
    if (sigaction(forwarded[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      (void)sigaction(forwarded[i], &act, NULL);
  signals_resume();
  return true;
}

int signals_fd(void)
{
  return wake;
}

/* fg continues the whole group; somebody who continues weir alone means the program. */
static void continue_program(void)
{
  pid_t to = program;
  if (atomic_exchange(&continued, false) && to && process_state(to) == 'T') (void)kill(to, SIGCONT);
}

void signals_handled(void)
{
  uint64_t n;
  while (read(wake, &n, sizeof n) > 0) {
  }
  continue_program();
}

void signals_pause(void)
{
  (void)sigprocmask(SIG_BLOCK, &ours, NULL);
}
void signals_resume(void)
{
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_program_ended(void)
{
  program = 0;
  ended = true;
}

unsigned signals_interrupts(void)
{
  return interrupts;
}
void signals_finishing(void)
{
  finishing = true;
}

/* ---- job control ----------------------------------------------------------------------------- */

static bool in_foreground(void)
{
  int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (tty < 0) return false;
  bool yes = tcgetpgrp(tty) == getpgrp();
  (void)close(tty);
  return yes;
}

void signals_stop_too(int signal)
{
  struct sigaction plain = {.sa_handler = SIG_DFL}, old;
  sigset_t stop;
  /* SIGSTOP is somebody's private doing, and a background job was stopped together with us. */
  if (signal == SIGSTOP || !in_foreground()) return;
  (void)sigaction(SIGTSTP, &plain, &old);
  (void)sigemptyset(&stop);
  (void)sigaddset(&stop, SIGTSTP);
  (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
  (void)raise(SIGTSTP); /* the kernel ignores it where no shell is there to continue us */
  (void)sigaction(SIGTSTP, &old, NULL);
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  continue_program();
}

void signals_die_of(int signal)
{
  struct sigaction plain = {.sa_handler = SIG_DFL};
  sigset_t all;
  (void)sigaction(signal, &plain, NULL);
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_UNBLOCK, &all, NULL);
  (void)raise(signal);
}
