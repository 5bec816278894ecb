/* spool_server.c: the answering side of core/trace/spool_request.h.
 *
 * Whoever asks may be another user, and hostile. It is known by what the kernel keeps of its
 * connection, not by what it writes: a process is answered only while it descends from the program
 * that is recorded. It gets a descriptor of an empty file, which becomes the spool of its own
 * pid, or of a spool whose key it knows, which only the process has that mapped its header (or
 * is, like us, its owner). What it writes there is read as any spool is: as damage, until it is
 * checked. The folder's budget is not for it, since a number in there would stop everybody's
 * recording. */
#include "tools/weir/collect/spool_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/trace/spool.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/process.h"

enum {
  BACKLOG = 128,
  MOST_ASKERS = 256, /* at once; the oldest makes room */
  MOST_ANCESTORS = 1000,
  MOST_NAMES = 1000 /* of one process */
};

typedef struct asker {
  int fd;     /* its connection, -1: none */
  pid_t pid;  /* its process */
  bool given; /* it has the file PID-N.unfinished */
  uint32_t n;
  uint64_t turn; /* when it came: who has the smallest is the oldest */
} asker;

struct spool_server {
  const char *dir; /* borrowed */
  pid_t ancestor;
  uint64_t start_time; /* of the ancestor */
  int listener, epoll;
  uint64_t turns;
  asker askers[MOST_ASKERS];
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool add_to_epoll(const spool_server *s, int fd, uint32_t number)
{
  struct epoll_event e = {.events = EPOLLIN, .data.u32 = number};
  return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

spool_server *spool_server_new(const char *dir, pid_t ancestor, uint64_t start_time)
{
  struct sockaddr_un address;
  socklen_t bytes = spool_request_address(&address, dir, strlen(dir));
  spool_server *s = cmd_alloc(sizeof *s);
  *s = (spool_server){.dir = dir, .ancestor = ancestor, .start_time = start_time, .epoll = -1};
  for (int i = 0; i < MOST_ASKERS; i++)
    s->askers[i].fd = -1;
  s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (s->listener >= 0 && s->epoll >= 0 &&
      bind(s->listener, (struct sockaddr *)&address, bytes) == 0 &&
      listen(s->listener, BACKLOG) == 0 && add_to_epoll(s, s->listener, MOST_ASKERS))
    return s;
  spool_server_free(s);
  return NULL;
}

int spool_server_fd(const spool_server *s)
{
  return s->epoll;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* New. */
static char *spool_name(const spool_server *s, pid_t pid, uint32_t n, const char *suffix)
{
  return cmd_format("%s/%d-%u%s", s->dir, (int)pid, n, suffix);
}

static bool is_whole(const char *path)
{
  spool_reader *r;
  if (spool_reader_open(&r, path, false) != WEIR_OK) return false;
  spool_reader_close(r);
  return true;
}

/* Renames a file, unless the new name is taken. Returns 0 or an errno. */
static int rename_new(const char *from, const char *to)
{
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (access(to, F_OK) == 0) return EEXIST; /* a file system without NOREPLACE */
  return rename(from, to) == 0 ? 0 : errno;
}

/* Gives the asker's file its name once the header is whole; else the asker is no more, and it is
 * removed. */
static void publish(const spool_server *s, const asker *a)
{
  char *from = spool_name(s, a->pid, a->n, WEIR_SPOOL_UNBORN);
  char *to = spool_name(s, a->pid, a->n, WEIR_SPOOL_SUFFIX);
  if (!is_whole(from) || rename_new(from, to) != 0) (void)unlink(from);
  free(from);
  free(to);
}

static void dismiss(const spool_server *s, asker *a)
{
  (void)close(a->fd);
  a->fd = -1;
  if (a->given) publish(s, a);
}

/* ---- answering ------------------------------------------------------------------------------- */

static void answer(const asker *a, int fd, spool_answer what)
{
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {{0}};
  struct iovec data = {&what, sizeof what};
  struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
  if (fd >= 0) {
    m.msg_control = control.bytes;
    m.msg_controllen = sizeof control.bytes;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  (void)!sendmsg(a->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Makes an empty file for the asker. Returns -1 and sets errno where it cannot. */
static int make_file(const spool_server *s, asker *a)
{
  int fd = -1;
  for (a->n = 0; fd < 0 && a->n < MOST_NAMES; a->n++) {
    char *whole = spool_name(s, a->pid, a->n, WEIR_SPOOL_SUFFIX);
    char *unborn = spool_name(s, a->pid, a->n, WEIR_SPOOL_UNBORN);
    errno = EEXIST;
    if (access(whole, F_OK) != 0)
      fd = open(unborn, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = errno;
    free(whole);
    free(unborn);
    errno = error;
    if (fd >= 0 || error != EEXIST) break;
  }
  a->given = fd >= 0;
  return fd;
}

static int open_in_folder(const spool_server *s, const spool_request *r, const char *suffix)
{
  char *path = spool_name(s, (pid_t)r->pid, r->n, suffix);
  int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), error = errno;
  free(path);
  errno = error;
  return fd;
}

/* Opens the file of a spool whose key is known. Returns -1 and sets errno where it cannot. A new
 * spool may be whole and still have its first name. */
static int open_asked_spool(const spool_server *s, const spool_request *r)
{
  static const uint8_t none[SPOOL_KEY];
  uint8_t key[SPOOL_KEY];
  int fd = open_in_folder(s, r, WEIR_SPOOL_SUFFIX);
  if (fd < 0 && errno == ENOENT) fd = open_in_folder(s, r, WEIR_SPOOL_UNBORN);
  if (fd < 0) return -1;
  if (pread(fd, key, sizeof key, offsetof(spool_header, key)) == sizeof key &&
      memcmp(key, none, sizeof key) != 0 && memcmp(key, r->key, sizeof key) == 0)
    return fd;
  (void)close(fd);
  errno = EACCES;
  return -1;
}

/* Answers one request. Returns false when the connection is to be closed. */
static bool answer_request(const spool_server *s, asker *a, const spool_request *r)
{
  spool_answer what = {.pid = (uint32_t)a->pid};
  bool new = r->what == REQUEST_NEW;
  int fd = -1;
  errno = EINVAL;
  if (r->version == REQUEST_VERSION && new && !a->given)
    fd = make_file(s, a);
  else if (r->version == REQUEST_VERSION && r->what == REQUEST_AGAIN)
    fd = open_asked_spool(s, r);
  what.error = fd < 0 ? errno : 0;
  what.n = new ? a->n : r->n;
  answer(a, fd, what);
  if (fd >= 0) (void)close(fd);
  return new &&fd >= 0;
}

static void serve_asker(const spool_server *s, asker *a)
{
  spool_request r;
  ssize_t n = recv(a->fd, &r, sizeof r, MSG_DONTWAIT | MSG_TRUNC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n != sizeof r || !answer_request(s, a, &r)) dismiss(s, a);
}

/* ---- who asks -------------------------------------------------------------------------------- */

/* Its parents are asked for one after the other: who is not of the tree ends at init. */
static bool is_of_tree(const spool_server *s, pid_t pid)
{
  for (int i = 0; i < MOST_ANCESTORS && pid > 0; i++) {
    if (pid == s->ancestor) return process_start_time(pid) == s->start_time;
    pid = process_parent(pid);
  }
  return false;
}

/* Returns a free place for a connection, or that of the oldest one. */
static asker *make_place(spool_server *s)
{
  asker *oldest = &s->askers[0];
  for (int i = 0; i < MOST_ASKERS; i++) {
    asker *a = &s->askers[i];
    if (a->fd < 0) return a;
    if (a->turn < oldest->turn) oldest = a;
  }
  dismiss(s, oldest);
  return oldest;
}

/* Accepts one connection. Returns false when none is waiting. */
static bool admit(spool_server *s)
{
  struct ucred who;
  socklen_t bytes = sizeof who;
  int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return false;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || !is_of_tree(s, who.pid)) {
    (void)close(fd);
    return true;
  }
  asker *a = make_place(s);
  *a = (asker){.fd = fd, .pid = who.pid, .turn = s->turns++};
  if (add_to_epoll(s, fd, (uint32_t)(a - s->askers)))
    serve_asker(s, a);
  else
    dismiss(s, a);
  return true;
}

void spool_server_serve(spool_server *s)
{
  struct epoll_event events[32];
  int n = epoll_wait(s->epoll, events, sizeof events / sizeof *events, 0);
  for (int i = 0; i < n; i++) {
    uint32_t number = events[i].data.u32;
    if (number < MOST_ASKERS && s->askers[number].fd >= 0) serve_asker(s, &s->askers[number]);
  }
  for (int i = 0; i < MOST_ASKERS && admit(s); i++) {
  }
}

void spool_server_free(spool_server *s)
{
  if (!s) return;
  for (int i = 0; i < MOST_ASKERS; i++)
    if (s->askers[i].fd >= 0) dismiss(s, &s->askers[i]);
  if (s->listener >= 0) (void)close(s->listener);
  if (s->epoll >= 0) (void)close(s->epoll);
  free(s);
}
