/* control_ask.c: the asking side of control.h: which collectors of this user's run, and what one
 * of them answers.
 *
 * A folder is found by its name, its owner and its mode, as weir recover finds it; whether its
 * collector runs shows when it is asked. What it answers is text of a size that has a bound. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/trace/spool.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/base/environment.h"
#include "tools/weir/collect/control.h"
#include "tools/weir/collect/spool_list.h"

enum { MOST_REPLY = 64 << 20, FIND_MS = 5000 };

/* ---- a request ------------------------------------------------------------------------------- */

static int connect_to(const char *dir)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder < 0) return -1;
  (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" CONTROL_SOCKET,
                 folder);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    (void)close(fd);
    fd = -1;
  }
  (void)close(folder);
  return fd;
}

/* Writes the request's line (new). NULL: it is too long for one. */
static char *request_line(const char *const *words)
{
  static const char digits[] = "0123456789ABCDEF";
  char line[CONTROL_LINE + 4], *at = line;
  for (unsigned i = 0; words[i]; i++) {
    if (i) *at++ = ' ';
    for (const char *from = words[i]; *from; from++) {
      const unsigned char c = (unsigned char)*from;
      if (at - line >= CONTROL_LINE - 4) return NULL;
      const bool plain = c > ' ' && c != '%' && c != 127;
      *at++ = plain ? (char)c : '%';
      if (!plain) *at++ = digits[c >> 4], *at++ = digits[c & 15];
    }
    if (at - line >= CONTROL_LINE - 4) return NULL;
  }
  *at++ = '\n';
  return cmd_format("%.*s", (int)(at - line), line);
}

static bool send_line(int fd, const char *line)
{
  for (size_t left = strlen(line); left;) {
    ssize_t n = send(fd, line, left, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    line += n;
    left -= (size_t)n;
  }
  return true;
}

/* Reads to the end. Returns the text (new), NULL: it did not come whole. */
static char *read_reply(int fd, int timeout_ms)
{
  size_t count = 0, room = 4096;
  char *text = cmd_alloc(room);
  for (;;) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    ssize_t n = ready > 0 ? recv(fd, text + count, room - count - 1, 0) : -1;
    if (n < 0 && ready > 0 && errno == EINTR) continue;
    if (n < 0 || count >= MOST_REPLY) break;
    count += (size_t)n;
    text[count] = 0;
    if (!n) return text;
    if (room - count > 1) continue;
    char *more = realloc(text, room *= 2);
    if (!more) break;
    text = more;
  }
  free(text);
  return NULL;
}

static pid_t pid_of_peer(int fd)
{
  struct ucred who;
  socklen_t bytes = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 ? who.pid : 0;
}

control_answer control_ask(const char *dir, const char *const *words, int timeout_ms)
{
  control_answer a = {.text = cmd_format("%s", "")};
  char *line = request_line(words);
  int fd = line ? connect_to(dir) : -1;
  if (fd >= 0) a.collector = pid_of_peer(fd);
  char *reply = fd >= 0 && send_line(fd, line) ? read_reply(fd, timeout_ms) : NULL;
  if (fd >= 0) (void)close(fd);
  free(line);
  a.reached = reply && (!strncmp(reply, "ok\n", 3) || !strncmp(reply, "no\n", 3));
  a.good = a.reached && reply[0] == 'o';
  if (a.reached) {
    free(a.text);
    a.text = cmd_format("%s", reply + 3);
  }
  free(reply);
  return a;
}

/* ---- who can be asked ------------------------------------------------------------------------ */

/* Reads the path of the trace that the collector of a folder writes. */
static void read_trace_path(const char *dir, char *path, size_t bytes)
{
  char *name = cmd_format("%s/" WEIR_SPOOL_COLLECTOR, dir);
  int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = fd >= 0 ? read(fd, path, bytes - 1) : 0;
  path[n > 0 ? n : 0] = 0;
  if (fd >= 0) (void)close(fd);
  free(name);
}

static bool is_named_for_us(const char *name)
{
  unsigned uid;
  return sscanf(name, "weir-%u-", &uid) == 1 && uid == (unsigned)geteuid();
}

void control_each(bool (*visit)(void *context, const char *dir, const char *trace), void *context)
{
  const char *places[ENVIRONMENT_SPOOL_PLACES];
  size_t count = environment_spool_places(places);
  bool more = true;
  for (size_t i = 0; i < count && more; i++) {
    DIR *d = opendir(places[i]);
    for (struct dirent *e; d && more && (e = readdir(d));) {
      char trace[PATH_MAX];
      if (!is_named_for_us(e->d_name)) continue;
      char *dir = cmd_format("%s/%s", places[i], e->d_name);
      if (spool_folder_is_ours(dir)) {
        read_trace_path(dir, trace, sizeof trace);
        more = visit(context, dir, trace);
      }
      free(dir);
    }
    if (d) (void)closedir(d);
  }
}

typedef struct search {
  const char *trace; /* its true path; NULL: a pid is meant */
  long pid;
  char *found; /* owned */
} search;

bool control_records(const char *dir, long pid)
{
  DIR *d = opendir(dir);
  bool found = false;
  for (struct dirent *e; d && !found && (e = readdir(d));)
    found = spool_is_name(e->d_name) && strtol(e->d_name, NULL, 10) == pid;
  if (d) (void)closedir(d);
  return found;
}

static bool is_collected_by(const char *dir, long pid)
{
  int fd = connect_to(dir);
  bool same = fd >= 0 && pid_of_peer(fd) == pid;
  if (fd >= 0) (void)close(fd);
  return same;
}

static bool look_for(void *context, const char *dir, const char *trace)
{
  search *s = context;
  bool found = s->trace ? !strcmp(s->trace, trace)
                        : control_records(dir, s->pid) || is_collected_by(dir, s->pid);
  if (found) s->found = cmd_format("%s", dir);
  return !found;
}

char *control_find(const char *operand)
{
  search s = {0};
  char *path = NULL;
  if (!cmd_number(operand, 1, INT32_MAX, &s.pid)) {
    path = realpath(operand, NULL);
    if (!path) {
      cmd_message("cannot find %s: %s.", operand, strerror(errno));
      return NULL;
    }
    s.trace = path;
  }
  control_each(look_for, &s);
  if (!s.found && s.trace)
    cmd_message("%s is not being written by a collector of yours on this machine; 'weir ps' lists "
                "what is.",
                operand);
  else if (!s.found)
    cmd_message("process %ld does not run under Weir, or is not yours; 'weir ps' lists what does.",
                s.pid);
  free(path);
  return s.found;
}

int control_command(const char *operand, const char *const *words, int timeout_ms)
{
  char *dir = control_find(operand);
  if (!dir) return CMD_FAILED;
  control_answer a = control_ask(dir, words, timeout_ms);
  if (!a.reached)
    cmd_message("the collector of %s does not answer: it ended, or it is stopped.", operand);
  else if (!a.good)
    cmd_message("%.*s.", (int)strcspn(a.text, "\n"), a.text);
  else
    (void)fputs(a.text, stdout);
  free(dir);
  int status = a.good ? 0 : CMD_FAILED;
  free(a.text);
  return status;
}
