/* say.c: the messages of the process to its user: a line on the stderr it was started with. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "interpose/process/process.h"

/* What the program was started with as its stderr; mode 0: nothing. */
static struct stat first_stderr;

/* A program that has closed its stderr may have a file or a socket of its own by that number. */
static bool is_first_stderr(void)
{
  struct stat now;

  return first_stderr.st_mode && fstat(2, &now) == 0 && now.st_dev == first_stderr.st_dev &&
         now.st_ino == first_stderr.st_ino;
}

void process_say(const char *format, ...)
{
  char text[1024] = "weir: ";
  int saved = errno, n;
  va_list args;

  if (!is_first_stderr()) {
    errno = saved;
    return;
  }
  va_start(args, format);
  n = vsnprintf(text + 6, sizeof text - 7, format, args);
  va_end(args);
  n = n < 0 ? 0 : n > (int)sizeof text - 8 ? (int)sizeof text - 8 : n;
  text[6 + n] = '\n';
  syscall(SYS_write, 2, text, (size_t)n + 7);
  errno = saved;
}

void process_say_start(void)
{
  if (fstat(2, &first_stderr)) first_stderr.st_mode = 0;
}
