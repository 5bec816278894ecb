/* other_clock.c: a library that stands in for clock_gettime() and is 65 years ahead, as libfaketime
 * can be. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *out)
{
  int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) out->tv_sec += 65L * 365 * 86400;
  return result;
}
