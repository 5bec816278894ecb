/* follow.c: see follow.h. Every part of the name is opened in the folder before it, so that a link
 * which is put there meanwhile is looked at as well. */
#include "reports/base/follow.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { MOST_LINKS = 40 /* as Linux has it */, PROC_MAGIC = 0x9fa0 /* statfs(2) */ };

typedef struct walk {
  wr_followed *f;
  char rest[PATH_MAX]; /* what is left of the name */
  int links;           /* followed so far */
} walk;

static int refuse_step(int error)
{
  errno = error;
  return -1;
}

/* The folder becomes this one, which is open. */
static void enter_folder(walk *w, int folder)
{
  if (w->f->folder >= 0) (void)close(w->f->folder);
  w->f->folder = folder;
}

static bool is_in_proc(int fd)
{
  struct statfs fs;
  return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_MAGIC;
}

/* The name that a link (open) has in it is put in front of what is left. */
static int take_link(walk *w, int link, const char *left)
{
  char target[PATH_MAX], rest[2 * PATH_MAX];
  ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
  if (n < 0) return -1;
  target[n] = '\0';
  if (++w->links > MOST_LINKS) return refuse_step(ELOOP);
  int bytes = snprintf(rest, sizeof(rest), "%s%s%s", target, *left ? "/" : "", left);
  if (bytes >= (int)sizeof(w->rest)) return refuse_step(ENAMETOOLONG);
  memcpy(w->rest, rest, (size_t)bytes + 1);
  if (target[0] != '/') return 0;
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;
  enter_folder(w, root);
  return 0;
}

/* One part of the name, which is open. 1: it was the last, 0: not yet, -1: errno. */
static int follow_part(walk *w, int part, const char *left)
{
  struct stat file;
  if (fstat(part, &file)) return -1;
  if (S_ISLNK(file.st_mode)) {
    w->f->foreign = file.st_uid != geteuid() && file.st_uid != 0;
    if (w->f->foreign) return refuse_step(EPERM);
    w->f->process = !*left && is_in_proc(part);
    return w->f->process ? 1 : take_link(w, part, left);
  }
  if (!*left) return 1;
  int folder = openat(part, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  enter_folder(w, folder);
  memmove(w->rest, left, strlen(left) + 1);
  return 0;
}

/* The next part, as follow_part() has it. */
static int follow_step(walk *w)
{
  const char *at = w->rest + strspn(w->rest, "/");
  size_t bytes = strcspn(at, "/");
  const char *left = at + bytes;
  bool folder = *left == '/'; /* "name/" is a folder's */
  left += strspn(left, "/");
  if (!bytes) return refuse_step(EISDIR);
  if (bytes > NAME_MAX) return refuse_step(ENAMETOOLONG);
  memcpy(w->f->name, at, bytes);
  w->f->name[bytes] = '\0';
  if (!*left && (folder || !strcmp(w->f->name, ".") || !strcmp(w->f->name, "..")))
    return refuse_step(EISDIR);
  int part = openat(w->f->folder, w->f->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (part < 0) return errno == ENOENT && !*left ? 1 : -1;
  int status = follow_part(w, part, left);
  int error = errno;
  (void)close(part);
  errno = error;
  return status;
}

int wr_follow(const char *path, wr_followed *f)
{
  walk w = {.f = f};
  int status = 0;
  *f = (wr_followed){.folder = -1};
  if (!*path) return refuse_step(ENOENT);
  if (strlen(path) >= sizeof(w.rest)) return refuse_step(ENAMETOOLONG);
  memcpy(w.rest, path, strlen(path) + 1);
  f->folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (f->folder < 0) return -1;
  while (!status)
    status = follow_step(&w);
  if (status > 0) return 0;
  int error = errno;
  enter_folder(&w, -1);
  return refuse_step(error);
}
