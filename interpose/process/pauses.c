/* pauses.c: usleep, nanosleep, clock_nanosleep, sched_yield, and select of no file, which the program
 * calls to let time pass. How long they take is added up for the thread: a loop that asks whether
 * work is complete is either a wait with pauses or one with other work between the questions, and
 * the calls of CUDA alone look the same (record/extract.c). libc's other functions, and those that
 * call the kernel themselves, are not seen: then a wait counts as one with other work.
 *
 * A signal's handler may call these, and so may a vfork()ed child: nothing is done here but an
 * addition to a word of the thread's own. */
#include <errno.h>
#include <sched.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"
#include "interpose/process/thread.h"

/* As found; the first call may come before set-up. */
#define REAL(name) (loader_find(), real_pause.name)

static int end_pause(uint64_t start, int result)
{
  thread_self.paused += clock_ticks() - start;
  return result;
}

/* A function that libc lacks. */
static int fail_unresolved(void)
{
  errno = ENOSYS;
  return -1;
}

WEIR_BODY int our_usleep(useconds_t us)
{
  int (*real)(useconds_t) = REAL(usleep);
  uint64_t start = clock_ticks();
  return end_pause(start, real ? real(us) : fail_unresolved());
}
WEIR_ENTRY(usleep, our_usleep);

WEIR_BODY int our_nanosleep(const struct timespec *time, struct timespec *left)
{
  int (*real)(const struct timespec *, struct timespec *) = REAL(nanosleep);
  uint64_t start = clock_ticks();
  return end_pause(start, real ? real(time, left) : fail_unresolved());
}
WEIR_ENTRY(nanosleep, our_nanosleep);

WEIR_BODY int our_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                                  struct timespec *left)
{
  int (*real)(clockid_t, int, const struct timespec *, struct timespec *) = REAL(clock_nanosleep);
  uint64_t start = clock_ticks();
  return end_pause(start, real ? real(clock, flags, time, left) : ENOSYS);
}
WEIR_ENTRY(clock_nanosleep, our_clock_nanosleep);

WEIR_BODY int our_sched_yield(void)
{
  int (*real)(void) = REAL(sched_yield);
  uint64_t start = clock_ticks();
  return end_pause(start, real ? real() : fail_unresolved());
}
WEIR_ENTRY(sched_yield, our_sched_yield);

/* Of files it waits for them, which is no pause. */
WEIR_BODY int our_select(int files, fd_set *in, fd_set *out, fd_set *other, struct timeval *time)
{
  int (*real)(int, fd_set *, fd_set *, fd_set *, struct timeval *) = REAL(select);
  if (!real) return fail_unresolved();
  if (files) return real(files, in, out, other, time);
  uint64_t start = clock_ticks();
  return end_pause(start, real(files, in, out, other, time));
}
WEIR_ENTRY(select, our_select);
