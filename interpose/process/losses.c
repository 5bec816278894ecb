/* losses.c: what a process reports at its end of what its trace lacks: one line, whatever its
 * stderr is.
 *
 * A collector holds a lock on a file in the folder of spools for as long as it lives, and takes
 * the folder away when it ends well. So a folder whose lock is free lost its collector. The file
 * appears locked, by a rename: a collector that is only just starting is not taken for dead. Under
 * `weir run` dropped events are the collector's to report; without it there is no terminal, and
 * the process does it. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/trace/spool.h"
#include "interpose/process/process.h"

static int open_in_directory(const char *directory, const char *name, int flags)
{
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/%s", directory, name);
  if (n < 0 || n >= (int)sizeof path) return -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

enum collector_state { COLLECTOR_NONE, COLLECTOR_LIVES, COLLECTOR_GONE };

static enum collector_state read_collector_state(const char *directory)
{
  int fd = open_in_directory(directory, WEIR_SPOOL_COLLECTOR, O_RDONLY);
  if (fd < 0) return COLLECTOR_NONE;
  bool gone = syscall(SYS_flock, fd, LOCK_SH | LOCK_NB) == 0;
  syscall(SYS_close, fd);
  return gone ? COLLECTOR_GONE : COLLECTOR_LIVES;
}

/* Only one process of the tree reports it. */
static bool claim_message(const char *directory)
{
  int fd = open_in_directory(directory, WEIR_SPOOL_REPORTED, O_WRONLY | O_CREAT | O_EXCL);
  if (fd >= 0) syscall(SYS_close, fd);
  return fd >= 0;
}

void process_print_losses(const char *directory, bool automatic)
{
  spool_header *h = spool_current();
  if (!h) return;
  enum collector_state state = read_collector_state(directory);
  uint64_t dropped = atomic_load(&h->dropped);
  if (dropped && (automatic || state != COLLECTOR_LIVES))
    process_say("%llu events of this process were dropped (%s): its report says which numbers are "
                "lower bounds.",
                (unsigned long long)dropped, spool_drop_reason((int)atomic_load(&h->drop_errno)));
  if (state == COLLECTOR_GONE && claim_message(directory))
    process_say(
        "the collector of this trace is gone: the events are kept in %s; `weir recover %s` adds "
        "them to the trace.",
        directory, directory);
}
