/* pager.c: see pager.h. The pager is run by the shell, as others run PAGER; one that cannot be run
 * (127) has shown nothing, and what it was to show is printed. One that the user leaves before
 * the end is no error. */
#include "tools/weir/report/pager.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a text has more lines than the terminal; false where there is no terminal. */
static bool is_long(const char *text, size_t bytes)
{
  struct winsize size;
  size_t lines = 0;
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
    return false;
  for (const char *at = text; (at = memchr(at, '\n', bytes - (size_t)(at - text))); at++)
    lines++;
  return lines >= size.ws_row;
}

static void write_whole(int fd, const char *text, size_t bytes)
{
  while (bytes) {
    ssize_t n = write(fd, text, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return; /* the user has seen enough */
    text += n, bytes -= (size_t)n;
  }
}

/* Runs the pager. Returns the exit status of its command. */
static int run_pager(const char *command, const char *text, size_t bytes)
{
  int ends[2], status = 0;
  if (pipe(ends)) return 127;
  pid_t pid = fork();
  if (pid == 0) {
    (void)dup2(ends[0], STDIN_FILENO);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)setenv("LESS", "FRX", 0); /* colours as they are, the text stays on the screen */
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  (void)close(ends[0]);
  void (*before)(int) = signal(SIGPIPE, SIG_IGN);
  if (pid > 0) write_whole(ends[1], text, bytes);
  (void)close(ends[1]);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  (void)signal(SIGPIPE, before);
  return pid < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

void pager_show(const char *text, size_t bytes)
{
  const char *command = getenv("PAGER");
  if (!command) command = "less";
  (void)fflush(stdout);
  if (*command && strcmp(command, "cat") != 0 && is_long(text, bytes) &&
      run_pager(command, text, bytes) != 127)
    return;
  (void)fwrite(text, 1, bytes, stdout);
}
