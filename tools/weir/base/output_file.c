/* output_file.c: see output_file.h. */
#include "tools/weir/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/base/follow.h"
#include "tools/weir/base/cmd.h"

/* One output, from its name to its end. */
typedef struct output_file {
  const char *path; /* as given, borrowed */
  wr_followed at;   /* where that leads; folder -1: weir has it open already */
  int fd;           /* what is written: the part, or what is there; -1: none */
  bool straight;    /* what is there is written as it is */
  int part_folder;  /* -1: there is no part */
  char *part;       /* owned: its name in there */
} output_file;

/* ---- signals --------------------------------------------------------------------------------- */

static const int fatal[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGXCPU};
enum { FATAL = sizeof fatal / sizeof *fatal };

static const output_file *volatile being_written; /* its part; NULL: none */
static struct sigaction was[FATAL];

/* Handlers are gone by then (SA_RESETHAND): the signal comes again when this returns. */
static void remove_part(int signal)
{
  const output_file *f = being_written;
  if (f) (void)unlinkat(f->part_folder, f->part, 0);
  (void)raise(signal);
}

static void catch_signals(const output_file *f)
{
  struct sigaction a = {.sa_handler = remove_part, .sa_flags = (int)SA_RESETHAND};
  being_written = f;
  for (int i = 0; i < FATAL; i++)
    if (!sigaction(fatal[i], NULL, &was[i]) && was[i].sa_handler == SIG_DFL)
      (void)sigaction(fatal[i], &a, NULL);
}

static void leave_signals(void)
{
  for (int i = 0; i < FATAL; i++)
    if (was[i].sa_handler == SIG_DFL) (void)sigaction(fatal[i], &was[i], NULL);
  being_written = NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static weir_status fail_output(const output_file *f, const char *doing, int error)
{
  weir_status st = error == ENOSPC || error == EDQUOT ? WEIR_ENOSPC : WEIR_EIO;
  if (f->at.foreign)
    return weir_fail(WEIR_EIO, "cannot write %s: a link on the way is another user's", f->path);
  if (output_is_stdout(f->path)) return weir_fail(st, "cannot write to stdout");
  return weir_fail_errno(st, error, "%s %s", doing, f->path);
}

/* Returns the descriptor that a name means. -1: it is the name of a file. */
static int descriptor_named(const char *path)
{
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
  long n;
  if (output_is_stdout(path) || !strcmp(path, "/dev/stdout")) return STDOUT_FILENO;
  if (!strcmp(path, "/dev/stderr")) return STDERR_FILENO;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    size_t bytes = strlen(folders[i]);
    if (!strncmp(path, folders[i], bytes) && cmd_number(path + bytes, 0, INT_MAX, &n))
      return (int)n;
  }
  return -1;
}

/* Takes an open descriptor, which goes on where earlier output of stdout ends. */
static weir_status take_descriptor(output_file *f, int fd)
{
  f->straight = true;
  (void)fflush(stdout);
  f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  return f->fd < 0 ? fail_output(f, "cannot write", errno) : WEIR_OK;
}

static weir_status take_as_it_is(output_file *f)
{
  struct stat file;
  int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | (f->at.process ? O_TRUNC : O_NOFOLLOW);
  f->straight = true;
  f->fd = openat(f->at.folder, f->at.name, flags);
  if (f->fd < 0 || fstat(f->fd, &file)) return fail_output(f, "cannot write", errno);
  if (S_ISREG(file.st_mode) && !f->at.process)
    return weir_fail(WEIR_EIO, "cannot write %s: it was replaced meanwhile", f->path);
  return WEIR_OK;
}

/* Makes a new file in this folder, which the output closes. */
static weir_status begin_part(output_file *f, int folder, const char *base, unsigned mode)
{
  f->part_folder = folder;
  f->part = cmd_format("%s.part-%ld", base, (long)getpid());
  if (folder < 0) return fail_output(f, "cannot write", errno);
  int fd = openat(folder, f->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) {
    weir_status st = fail_output(f, "cannot write", errno);
    (void)close(folder);
    f->part_folder = -1;
    return st;
  }
  catch_signals(f);
  if (f->fd >= 0)
    (void)close(fd); /* it is copied by its name */
  else
    f->fd = fd;
  return WEIR_OK;
}

static weir_status begin_output(output_file *f, const char *path, unsigned mode)
{
  struct stat file, own;
  *f = (output_file){.path = path, .at.folder = -1, .fd = -1, .part_folder = -1};
  int named = descriptor_named(path);
  if (named >= 0) return take_descriptor(f, named);
  if (wr_follow(path, &f->at)) return fail_output(f, "cannot write", errno);
  bool there =
      fstatat(f->at.folder, f->at.name, &file, f->at.process ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !fstat(STDOUT_FILENO, &own) && own.st_dev == file.st_dev &&
      own.st_ino == file.st_ino)
    return take_descriptor(f, STDOUT_FILENO); /* replaced, what was printed would be gone */
  if (f->at.process || (there && !S_ISREG(file.st_mode))) return take_as_it_is(f);
  return begin_part(f, fcntl(f->at.folder, F_DUPFD_CLOEXEC, 3), f->at.name, mode);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Who reads has had enough, as head has: we end as any program does whose pipe is closed. */
static void end_by_pipe(void)
{
  if (signal(SIGPIPE, SIG_DFL) != SIG_ERR) (void)raise(SIGPIPE);
}

static weir_status end_output(output_file *f, weir_status st)
{
  bool made = f->part_folder >= 0;
  if (!st && !f->straight && renameat(f->part_folder, f->part, f->at.folder, f->at.name))
    st = fail_output(f, "cannot write", errno);
  if (made && (st || f->straight)) (void)unlinkat(f->part_folder, f->part, 0);
  if (made) leave_signals();
  if (made) (void)close(f->part_folder);
  if (f->at.folder >= 0) (void)close(f->at.folder);
  free(f->part);
  return st;
}

/* Flushes the stream. Returns WEIR_OK, or an error with its reason. `ended`: the reader of a pipe
 * has closed it. */
static weir_status close_stream(const output_file *f, FILE *out, weir_status st, bool *ended)
{
  bool bad = fflush(out) || ferror(out);
  int error = errno;
  *ended = bad && error == EPIPE;
  if (fclose(out) && !bad) bad = true, error = errno;
  return bad && (!st || output_is_stdout(f->path)) ? fail_output(f, "writing", error) : st;
}

weir_status output_write(const char *path, unsigned mode,
                         weir_status (*write)(FILE *out, const void *context), const void *context)
{
  output_file f;
  bool ended = false;
  weir_status st = begin_output(&f, path, mode);
  void (*pipe)(int) = f.straight ? signal(SIGPIPE, SIG_IGN) : SIG_ERR;
  FILE *out = st ? NULL : fdopen(f.fd, "w");
  if (!st && !out) st = fail_output(&f, "cannot write", errno);
  if (!out && f.fd >= 0) (void)close(f.fd);
  if (!st) st = write(out, context);
  if (out) st = close_stream(&f, out, st, &ended);
  st = end_output(&f, st);
  if (pipe != SIG_ERR) (void)signal(SIGPIPE, pipe);
  if (ended && pipe == SIG_DFL) end_by_pipe();
  return st;
}

/* ---- by name --------------------------------------------------------------------------------- */

/* Copies what was made elsewhere to where it is to be. */
static weir_status copy_part(const output_file *f)
{
  char buffer[65536];
  ssize_t n = 0, put = 0;
  int fd = openat(f->part_folder, f->part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  while (fd >= 0 && put >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0)
    for (ssize_t done = 0; done < n && put >= 0; done += put)
      put = write(f->fd, buffer + done, (size_t)(n - done));
  int error = errno;
  if (fd >= 0) (void)close(fd);
  return fd < 0 || n < 0 || put < 0 ? fail_output(f, "writing", error) : WEIR_OK;
}

weir_status output_make(const char *path, unsigned mode,
                        weir_status (*make)(const char *file, const void *context),
                        const void *context)
{
  output_file f;
  weir_status st = begin_output(&f, path, mode);
  const char *folder = getenv("TMPDIR");
  if (!st && f.straight)
    st = begin_part(&f, open(folder && *folder ? folder : "/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC),
                    "weir", 0600);
  char *file = st ? NULL : cmd_format("/proc/self/fd/%d/%s", f.part_folder, f.part);
  if (!st) st = make(file, context);
  if (!st && f.straight) st = copy_part(&f);
  if (f.fd >= 0 && close(f.fd) && !st) st = fail_output(&f, "writing", errno);
  free(file);
  return end_output(&f, st);
}

bool output_is_stdout(const char *path)
{
  return !strcmp(path, "-");
}

bool output_is_same(const char *path, const char *other)
{
  struct stat a, b;
  return !output_is_stdout(path) && !stat(path, &a) && !stat(other, &b) && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}
