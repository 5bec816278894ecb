/* metrics.c: see metrics.h. Of HTTP there is what a scraper needs: GET and HEAD of /metrics, one
 * request a connection. */
#include "tools/weir/collect/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "reports/metrics/page.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/peers.h"

enum { BACKLOG = 128, MOST_TOKEN = 4096, FILE_S = 15 };

struct metrics {
  char *socket_path; /* owned; NULL: there is none */
  char *file;        /* owned; NULL: there is none */
  unsigned mode;
  char *token; /* owned; NULL: none is needed */
  int listener, timer;
  bool warned;
  peers *peers;
  metrics_writer write;
  void *context;
};

/* ---- pages ----------------------------------------------------------------------------------- */

/* Returns a page (new), NULL: out of memory. */
static char *make_page(const metrics *m, bool open_metrics, size_t *bytes)
{
  char *text = NULL;
  FILE *out = open_memstream(&text, bytes);
  if (!out) return NULL;
  m->write(m->context, out, open_metrics);
  bool good = !ferror(out);
  good = fclose(out) == 0 && good;
  if (good) return text;
  free(text);
  return NULL;
}

static bool write_all(int fd, const char *text, size_t bytes)
{
  while (bytes) {
    ssize_t n = write(fd, text, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text += n;
    bytes -= (size_t)n;
  }
  return true;
}

/* A scraper of files takes those named *.prom: one that is not whole has another name. */
static void write_file(metrics *m)
{
  size_t bytes;
  char *page = make_page(m, false, &bytes);
  char *fresh = cmd_format("%s.%d.new", m->file, (int)getpid());
  (void)unlink(fresh);
  int fd = page ? open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
  bool good = fd >= 0 && write_all(fd, page, bytes) && fchmod(fd, (mode_t)m->mode) == 0;
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && good) good = false, error = errno;
  if (good && rename(fresh, m->file) != 0) good = false, error = errno;
  if (!good) (void)unlink(fresh);
  if (!good && !m->warned) cmd_message("cannot write metrics to %s: %s.", m->file, strerror(error));
  m->warned = !good;
  free(fresh);
  free(page);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

/* A request without a body ends with an empty line. */
static size_t head_length(const char *text, size_t bytes)
{
  for (size_t i = 0; i + 1 < bytes; i++) {
    if (text[i] != '\n') continue;
    if (text[i + 1] == '\n') return i + 2;
    if (text[i + 1] == '\r' && i + 2 < bytes && text[i + 2] == '\n') return i + 3;
  }
  return 0;
}

/* Returns the value of a field of a head, and its length; NULL: it is not there. */
static const char *field_of(const char *head, const char *name, size_t *length)
{
  const size_t n = strlen(name);
  for (const char *at = strchr(head, '\n'); at && at[1]; at = strchr(at + 1, '\n')) {
    if (strncasecmp(at + 1, name, n) != 0 || at[1 + n] != ':') continue;
    const char *value = at + 2 + n;
    value += strspn(value, " \t");
    *length = strcspn(value, "\r\n");
    return value;
  }
  return NULL;
}

/* Takes as long whatever the token is. */
static bool is_token(const char *token, const char *given, size_t length)
{
  const size_t n = strlen(token);
  unsigned differ = n != length;
  for (size_t i = 0; i < n && length; i++)
    differ |= (unsigned char)token[i] ^ (unsigned char)given[i < length ? i : length - 1];
  return !differ;
}

static bool is_allowed(const metrics *m, const char *head)
{
  static const char scheme[] = "Bearer ";
  const size_t n = sizeof scheme - 1;
  size_t length;
  if (!m->token) return true;
  const char *value = field_of(head, "Authorization", &length);
  return value && length > n && strncasecmp(value, scheme, n) == 0 &&
         is_token(m->token, value + n, length - n);
}

static bool wants_open_metrics(const char *head)
{
  static const char type[] = "application/openmetrics-text";
  size_t length;
  const char *value = field_of(head, "Accept", &length);
  for (size_t i = 0; value && i + sizeof type - 1 <= length; i++)
    if (strncasecmp(value + i, type, sizeof type - 1) == 0) return true;
  return false;
}

/* Returns a reply (new). */
static char *reply_of(const char *status, const char *more, const char *type, const char *body,
                      bool head_only, size_t *bytes)
{
  char *reply = cmd_format("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                           "Connection: close\r\n\r\n%s",
                           status, type, strlen(body), more, head_only ? "" : body);
  *bytes = strlen(reply);
  return reply;
}

static char *answer_request(void *context, char *head, size_t length, size_t *bytes)
{
  const metrics *m = context;
  const bool get = !strncmp(head, "GET ", 4), only = !strncmp(head, "HEAD ", 5);
  const char *path = head + (only ? 5 : 4);
  size_t page_bytes;
  if (memchr(head, 0, length)) return NULL;
  if (!is_allowed(m, head))
    return reply_of("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "text/plain",
                    "the token of --metrics-token-file is needed\n", only, bytes);
  if (!get && !only)
    return reply_of("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "text/plain",
                    "this page can only be read\n", false, bytes);
  const size_t n = strcspn(path, " ?\r\n");
  if (!(n == 1 && *path == '/') && !(n == 8 && !strncmp(path, "/metrics", 8)))
    return reply_of("404 Not Found", "", "text/plain", "the page is /metrics\n", only, bytes);
  const bool open_metrics = wants_open_metrics(head);
  char *page = make_page(m, open_metrics, &page_bytes);
  if (!page) return NULL;
  char *reply = reply_of("200 OK", "", open_metrics ? WR_OPENMETRICS_TYPE : WR_PROMETHEUS_TYPE,
                         page, only, bytes);
  free(page);
  return reply;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool refuse_place(const char *where, const char *why)
{
  cmd_message("cannot have metrics at %s: %s.", where, why);
  return false;
}

/* A socket that nobody listens at is of a collector that was killed. */
static bool remove_dead_socket(const char *path, const struct sockaddr_un *address)
{
  struct stat info;
  if (lstat(path, &info) != 0) return errno == ENOENT;
  int fd = S_ISSOCK(info.st_mode) && info.st_uid == geteuid()
               ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
               : -1;
  if (fd < 0) {
    errno = EEXIST;
    return false;
  }
  bool dead =
      connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
  (void)close(fd);
  errno = EADDRINUSE;
  return dead && unlink(path) == 0;
}

static bool open_socket(metrics *m, const char *where, const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!*path || strlen(path) >= sizeof address.sun_path)
    return refuse_place(where, "the path of a socket has 1 to 107 bytes");
  memcpy(address.sun_path, path, strlen(path));
  if (!remove_dead_socket(path, &address)) return refuse_place(where, strerror(errno));
  m->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  mode_t before = umask(0177);
  bool bound =
      m->listener >= 0 && bind(m->listener, (struct sockaddr *)&address, sizeof address) == 0;
  int error = errno;
  (void)umask(before);
  if (bound) m->socket_path = cmd_format("%s", path);
  if (bound && listen(m->listener, BACKLOG) == 0) return true;
  return refuse_place(where, strerror(bound ? errno : error));
}

/* Reads the token of a file that only this user can read. */
static bool read_token(metrics *m, const char *path)
{
  char text[MOST_TOKEN + 1];
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = -1;
  if (fd >= 0 && fstat(fd, &info) == 0) {
    if (!S_ISREG(info.st_mode) || info.st_mode & 077 ||
        (info.st_uid != geteuid() && info.st_uid != 0)) {
      (void)close(fd);
      return refuse_place(path, "a token's file is one that only you can read (mode 0600)");
    }
    n = read(fd, text, MOST_TOKEN);
  }
  if (fd >= 0) (void)close(fd);
  if (n < 0) return refuse_place(path, strerror(errno));
  text[n] = 0;
  text[strcspn(text, "\r\n")] = 0;
  if (!*text || strlen(text) == MOST_TOKEN)
    return refuse_place(path, "a token is the file's first line, of 1 to 4095 bytes");
  m->token = cmd_format("%s", text);
  return true;
}

static bool open_port(metrics *m, const metrics_place *place)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  long port;
  int on = 1;
  if (!cmd_number(strchr(place->where, ':') + 1, 1, 65535, &port))
    return refuse_place(place->where, "a port is a number from 1 to 65535");
  if (!place->token_file)
    return refuse_place(place->where,
                        "every user of this machine can ask there: it needs --metrics-token-file");
  if (!read_token(m, place->token_file)) return false;
  address.sin_port = htons((uint16_t)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (m->listener >= 0) (void)setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (m->listener >= 0 && bind(m->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
      listen(m->listener, BACKLOG) == 0)
    return true;
  return refuse_place(place->where, strerror(errno));
}

static bool open_file(metrics *m, const char *where, const char *path)
{
  struct stat info;
  const char *slash = strrchr(path, '/');
  char *folder = slash ? cmd_format("%.*s", (int)(slash - path) + 1, path) : cmd_format(".");
  const bool may = access(folder, W_OK | X_OK) == 0;
  int error = errno;
  free(folder);
  if (!*path || (slash && !slash[1])) return refuse_place(where, "the name of a file is missing");
  if (!may) return refuse_place(where, strerror(error));
  if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
    return refuse_place(where, "what is there is no file");
  m->file = cmd_format("%s", path);
  return true;
}

static bool read_mode(metrics *m, const char *text)
{
  char *end;
  m->mode = 0600;
  if (!text) return true;
  unsigned long mode = strtoul(text, &end, 8);
  if (!*text || *end || *text == '-' || mode > 0777 || !(mode & 0400))
    return refuse_place(text, "a mode is an octal number from 400 to 777");
  m->mode = (unsigned)mode;
  return true;
}

static bool open_place(metrics *m, const metrics_place *place)
{
  static const char unix_name[] = "unix:", file_name[] = "textfile:", port_name[] = "127.0.0.1:";
  const char *where = place->where;
  if (!read_mode(m, place->mode)) return false;
  if (!strncmp(where, unix_name, sizeof unix_name - 1))
    return open_socket(m, where, where + sizeof unix_name - 1);
  if (!strncmp(where, file_name, sizeof file_name - 1))
    return open_file(m, where, where + sizeof file_name - 1);
  if (!strncmp(where, port_name, sizeof port_name - 1)) return open_port(m, place);
  return refuse_place(where, "that is not unix:PATH, textfile:PATH or 127.0.0.1:PORT");
}

metrics *metrics_open(const metrics_place *place)
{
  metrics *m = cmd_alloc(sizeof *m);
  m->listener = m->timer = -1;
  if (open_place(m, place)) return m;
  metrics_close(m);
  return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int metrics_begin(metrics *m, metrics_writer write, void *context)
{
  const peers_rules rules = {m->socket_path ? peers_is_own : NULL, head_length, answer_request, m};
  const struct itimerspec every = {{FILE_S, 0}, {0, 1}};
  m->write = write;
  m->context = context;
  if (m->file) {
    m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (m->timer >= 0) (void)timerfd_settime(m->timer, 0, &every, NULL);
    return m->timer;
  }
  m->peers = peers_new(m->listener, &rules);
  m->listener = -1;
  return m->peers ? peers_fd(m->peers) : -1;
}

void metrics_serve(metrics *m)
{
  uint64_t ticks;
  if (m->peers) peers_serve(m->peers);
  if (m->timer >= 0 && read(m->timer, &ticks, sizeof ticks) == sizeof ticks) write_file(m);
}

void metrics_finish(metrics *m)
{
  if (m->file && m->write) write_file(m);
  peers_free(m->peers);
  m->peers = NULL;
}

void metrics_close(metrics *m)
{
  if (!m) return;
  peers_free(m->peers);
  if (m->listener >= 0) (void)close(m->listener);
  if (m->timer >= 0) (void)close(m->timer);
  if (m->socket_path) (void)unlink(m->socket_path);
  free(m->socket_path);
  free(m->file);
  free(m->token);
  free(m);
}
