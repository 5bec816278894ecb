/* process.c: pids with a proof of identity, from /proc and pidfds. */
#include "tools/weir/collect/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns what follows the command's closing parenthesis in /proc/PID/stat, field 3 on. NULL: there
 * is no such process. */
static const char *stat_fields(pid_t pid, char *buffer, size_t size)
{
  char path[40];
  (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  ssize_t n = read(fd, buffer, size - 1);
  (void)close(fd);
  if (n <= 0) return NULL;
  buffer[n] = 0;
  char *end = strrchr(buffer, ')'); /* the name before it may hold anything, parentheses too */
  return end && end[1] == ' ' ? end + 2 : NULL;
}

uint64_t process_start_time(pid_t pid)
{
  char buffer[1024];
  const char *at = stat_fields(pid, buffer, sizeof buffer);
  for (int field = 3; at && field < 22; field++) {
    at = strchr(at, ' ');
    if (at) at++;
  }
  return at ? strtoull(at, NULL, 10) : 0;
}

pid_t process_parent(pid_t pid)
{
  char buffer[1024];
  const char *at = stat_fields(pid, buffer, sizeof buffer);
  return at && at[1] == ' ' ? (pid_t)strtol(at + 2, NULL, 10) : 0;
}

char process_state(pid_t pid)
{
  char buffer[1024];
  const char *at = stat_fields(pid, buffer, sizeof buffer);
  return at ? *at : 0;
}

int process_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec */
#else
  (void)pid;
  return -1;
#endif
}

bool process_alive(pid_t pid, uint64_t start_time)
{
  char state = process_state(pid);
  return state && state != 'Z' && state != 'X' && process_start_time(pid) == start_time;
}
