/* load.c: what the machine's other work did to the process, counted by the system and read once, when the process ends: how
 * often a thread that ran had its processor taken, and how long threads that could run waited for one. Calls that took longer
 * than their like for that are no saving of the program's. What a process has that is killed is not known. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/trace/spool.h"
#include "interpose/process/process.h"

enum { MOST_THREADS = 256, LINE = 128 };

/* The second number of /proc/self/task/TID/schedstat, ns; 0: the system does not count. */
static uint64_t starved_of(int tasks, const char *tid)
{
  char path[64], line[LINE];
  if (snprintf(path, sizeof path, "%s/schedstat", tid) >= (int)sizeof path) return 0;
  int fd = (int)syscall(SYS_openat, tasks, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = (ssize_t)syscall(SYS_read, fd, line, sizeof line - 1);
  syscall(SYS_close, fd);
  if (n <= 0) return 0;
  char *end = NULL;
  line[n] = 0;
  (void)strtoull(line, &end, 10);
  return strtoull(end, NULL, 10);
}

/* Without opendir(), which takes memory of the program's. */
static uint64_t starved_threads(void)
{
  _Alignas(8) char entries[4096];
  uint64_t ns = 0;
  long n;
  int tasks =
      (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tasks < 0) return 0;
  for (int threads = 0; (n = syscall(SYS_getdents64, tasks, entries, sizeof entries)) > 0;)
    for (long at = 0; at < n && threads < MOST_THREADS;) {
      const struct dirent64 *e = (const struct dirent64 *)(const void *)(entries + at);
      if (e->d_name[0] != '.') ns += starved_of(tasks, e->d_name), threads++;
      at += e->d_reclen;
    }
  syscall(SYS_close, tasks);
  return ns;
}

void process_note_load(void)
{
  spool_header *h = spool_current();
  struct rusage own;
  if (!h || getrusage(RUSAGE_SELF, &own)) return;
  atomic_store(&h->preempted, (uint64_t)own.ru_nivcsw);
  atomic_store(&h->starved_ns, starved_threads());
  atomic_store(&h->load_known, 1);
}
