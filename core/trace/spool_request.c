/* spool_request.c: the asking side; see spool_request.h. Runs inside the traced program, as
 * spool_writer.c does: system calls alone, and no descriptor is kept. The collector may be busy or
 * stopped: it is waited for a while, and after that not asked again for a while. */
#include "core/trace/spool_request.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/clock.h"

#define PREFIX   "weir-spools-"
#define PAUSE_NS UINT64_C(10000000000) /* without asking, after a collector did not answer */
enum { ANSWER_S = 5 };

static _Atomic uint64_t pause_until; /* CLOCK_MONOTONIC ns; 0: none */

socklen_t spool_request_address(struct sockaddr_un *out, const char *folder, size_t bytes)
{
  static const char digits[] = "0123456789abcdef";
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ (unsigned char)folder[i]) * UINT64_C(0x100000001b3);
  memset(out, 0, sizeof *out);
  out->sun_family = AF_UNIX;
  char *at = out->sun_path + 1; /* after a NUL: no file */
  memcpy(at, PREFIX, sizeof PREFIX - 1);
  at += sizeof PREFIX - 1;
  for (int shift = 60; shift >= 0; shift -= 4)
    *at++ = digits[hash >> shift & 15];
  return (socklen_t)(at - (char *)out);
}

bool spool_request_owner(const char *folder, size_t bytes, uint32_t *uid)
{
  const char *at = folder + bytes;
  uint64_t value = 0;
  while (at > folder && at[-1] != '/')
    at--;
  if (strncmp(at, "weir-", 5) != 0 || at[5] < '0' || at[5] > '9') return false;
  for (at += 5; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
    value = value * 10 + (uint64_t)(*at - '0');
  *uid = (uint32_t)value;
  return *at == '-' && value <= UINT32_MAX;
}

/* Who listens is of this user. The kernel keeps what it was when it began to. */
static bool is_of(int fd, uint32_t uid)
{
  struct ucred who;
  socklen_t bytes = sizeof who;
  return !syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) && who.uid == uid;
}

/* A connection to the folder's collector, or -1 and an errno. */
static int connect_to(const char *folder, size_t folder_bytes)
{
  const struct timeval limit = {.tv_sec = ANSWER_S};
  struct sockaddr_un address;
  uint32_t uid;
  if (!spool_request_owner(folder, folder_bytes, &uid)) {
    errno = ENOENT;
    return -1;
  }
  socklen_t bytes = spool_request_address(&address, folder, folder_bytes);
  int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  (void)syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int error = syscall(SYS_connect, fd, &address, bytes) ? errno : 0;
  if (!error && !is_of(fd, uid)) error = EPERM;
  if (!error) return fd;
  syscall(SYS_close, fd);
  errno = error;
  return -1;
}

bool spool_request_possible(const char *folder, size_t bytes)
{
  int fd = connect_to(folder, bytes);
  if (fd >= 0) syscall(SYS_close, fd);
  return fd >= 0;
}

/* The one descriptor that came with a message, -1: none did. */
static int take_descriptor(struct msghdr *m)
{
  struct cmsghdr *c = CMSG_FIRSTHDR(m);
  int fd = -1;
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
      c->cmsg_len == CMSG_LEN(sizeof fd))
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
  return fd;
}

/* The file, or -1 and an errno. */
static int receive(int connection, spool_answer *answer)
{
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec data = {answer, sizeof *answer};
  struct msghdr m = {.msg_iov = &data,
                     .msg_iovlen = 1,
                     .msg_control = control.bytes,
                     .msg_controllen = sizeof control.bytes};
  long n;
  do
    n = syscall(SYS_recvmsg, connection, &m, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0) return -1;
  int fd = take_descriptor(&m);
  int error = n != sizeof *answer ? EPROTO : answer->error;
  if (!error && fd >= 0) return fd;
  if (fd >= 0) syscall(SYS_close, fd);
  errno = error ? error : EPROTO;
  return -1;
}

static int exchange_with_server(int connection, const spool_request *request, spool_answer *answer)
{
  long n = syscall(SYS_sendto, connection, request, sizeof *request, MSG_NOSIGNAL, NULL, 0);
  if (n == sizeof *request) return receive(connection, answer);
  if (n >= 0) errno = EPROTO;
  return -1;
}

int spool_request_file(const char *folder, size_t bytes, const spool_request *request,
                       spool_answer *answer, int *connection)
{
  uint64_t until = atomic_load_explicit(&pause_until, memory_order_relaxed);
  if (until && clock_monotonic_ns() < until) {
    errno = EAGAIN;
    return -1;
  }
  int asked = connect_to(folder, bytes),
      fd = asked < 0 ? -1 : exchange_with_server(asked, request, answer);
  int error = fd < 0 ? errno : 0;
  if (error == EAGAIN) atomic_store(&pause_until, clock_monotonic_ns() + PAUSE_NS);
  if (connection && fd >= 0)
    *connection = asked;
  else if (asked >= 0)
    syscall(SYS_close, asked);
  errno = error;
  return fd;
}
