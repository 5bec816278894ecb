/* part.c: see part.h. */
#include "tools/weir/part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/weir/cmd.h"

static const int fatal[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGXCPU};
enum { FATAL = sizeof fatal / sizeof *fatal };

static const char *volatile being_written; /* NULL: nothing */
static struct sigaction was[FATAL];

/* Handlers are gone by then (SA_RESETHAND): the signal comes again when this returns. */
static void remove_part(int signal)
{
  const char *path = being_written;
  if (path) (void)unlink(path);
  (void)raise(signal);
}

static void catch_signals(void)
{
  struct sigaction a = {.sa_handler = remove_part, .sa_flags = (int)SA_RESETHAND};
  for (int i = 0; i < FATAL; i++)
    if (!sigaction(fatal[i], NULL, &was[i]) && was[i].sa_handler == SIG_DFL)
      (void)sigaction(fatal[i], &a, NULL);
}

static void leave_signals(void)
{
  for (int i = 0; i < FATAL; i++)
    if (was[i].sa_handler == SIG_DFL) (void)sigaction(fatal[i], &was[i], NULL);
}

weir_status part_begin(part_file *p, const char *output, unsigned mode)
{
  *p = (part_file){.output = output, .path = cmd_format("%s.part-%ld", output, (long)getpid())};
  int fd = open(p->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output);
  p->made = true;
  being_written = p->path;
  catch_signals();
  return close(fd) ? weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output) : WEIR_OK;
}

weir_status part_end(part_file *p, weir_status s)
{
  if (!s && rename(p->path, p->output))
    s = weir_fail_errno(WEIR_EIO, errno, "cannot write %s", p->output);
  if (s && p->made) (void)unlink(p->path);
  if (p->made) leave_signals();
  being_written = NULL;
  free(p->path);
  *p = (part_file){0};
  return s;
}
