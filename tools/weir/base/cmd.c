/* cmd.c: messages, memory, numbers, siblings: what every command needs. */
#include "tools/weir/base/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "core/base/image.h"
#include "core/base/status.h"
#include "reports/base/escape.h"
#include "reports/base/util.h"

/* ---- messages -------------------------------------------------------------------------------- */

static const char *log_path; /* NULL: stderr */

void cmd_log_to(const char *path)
{
  log_path = path;
}

/* Opens the log. In a folder that others may write in, its name may be a link of theirs, or their
 * file: then there is no log. */
static FILE *open_log(void)
{
  struct stat info;
  int fd =
      open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
           0600);
  if (fd < 0) return NULL;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
      info.st_nlink == 1)
    return fdopen(fd, "a");
  (void)close(fd);
  return NULL;
}

static void print_message(const char *format, va_list args)
{
  char text[2048];
  FILE *to = log_path ? open_log() : stderr;
  if (!to) return;
  (void)vsnprintf(text, sizeof text, format, args);
  char *shown = wr_show_unseen(wr_text(text, sizeof text, true));
  (void)fprintf(to, "weir: %s\n",
                shown ? shown : ""); /* one write: lines of several processes stay whole */
  free(shown);
  if (to != stderr) (void)fclose(to);
}

void cmd_message(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  print_message(format, args);
  va_end(args);
}

/* Returns the processor that a program is built for where that is why it cannot run, else NULL. */
static const char *foreign_processor(const char *program, const struct utsname *own)
{
  char path[PATH_MAX];
  const char *name = NULL;
  if (image_find(path, sizeof path, program, getenv("PATH"))) name = image_processor(path);
  return name && *name && strcmp(name, own->machine) != 0 ? name : NULL;
}

int cmd_cannot_run(const char *program, int error)
{
  struct utsname own;
  const char *processor = NULL;
  if (error == ENOEXEC && uname(&own) == 0) processor = foreign_processor(program, &own);
  if (processor)
    cmd_message("cannot run '%s': it is built for %s, and this machine is %s.", program, processor,
                own.machine);
  else
    cmd_message("cannot run '%s': %s.", program, strerror(error));
  return error == ENOENT || error == ENOTDIR ? CMD_NOT_FOUND : CMD_CANNOT_RUN;
}

int cmd_exec(char **argv)
{
  char path[PATH_MAX];
  if (image_find(path, sizeof path, argv[0], getenv("PATH")) && image_processor(path))
    (void)execv(path, argv);
  else
    (void)execvp(argv[0], argv);
  return errno;
}

int cmd_usage(const cmd *c, const char *format, ...)
{
  char text[1024];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (c)
    cmd_message("%s (see 'weir help %s').", text, c->name);
  else
    cmd_message("%s (see 'weir help').", text);
  return CMD_USAGE;
}

int cmd_failed(void)
{
  cmd_message("%s.", weir_error_message());
  return CMD_FAILED;
}

bool cmd_chatty(void)
{
  static int chatty = -1;
  if (chatty < 0) chatty = isatty(STDERR_FILENO);
  return chatty && !log_path;
}

/* ---- memory and text ------------------------------------------------------------------------- */

static void *check_memory(void *p)
{
  if (p) return p;
  cmd_message("out of memory.");
  exit(CMD_RUN_FAILED);
}

void *cmd_alloc(size_t bytes)
{
  return check_memory(calloc(1, bytes));
}

void *cmd_grow(void *array, unsigned *room, unsigned count, size_t size)
{
  if (count < *room) return array;
  *room = *room ? *room * 2 : 16;
  return check_memory(reallocarray(array, *room, size));
}

char *cmd_format(const char *format, ...)
{
  va_list args;
  char *text = NULL;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0) text = NULL;
  va_end(args);
  return check_memory(text);
}

bool cmd_number(const char *text, long low, long high, long *out)
{
  char *end;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  *out = strtol(text, &end, 10);
  return !errno && !*end && *out >= low && *out <= high;
}

char *cmd_grouped(char *buffer, uint64_t n)
{
  char digits[24];
  int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = 0;
  return buffer;
}

char *cmd_sibling(const char *relative)
{
  char exe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (n <= 0) return NULL;
  exe[n] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(exe, '/');
    if (!slash) return NULL;
    *slash = 0;
  }
  return cmd_format("%s/%s", exe, relative);
}
