/* control.c: the answering side of control.h.
 *
 * A client is *reading* its request in until the newline has come, then its reply is *written*.
 * Whatever it does, the collector waits for it nowhere: descriptors do not block, a request has
 * CONTROL_LINE bytes at most, and a client of which nothing has come, or gone, for IDLE_NS is
 * closed. A timer in the set of descriptors ends the collector's sleep for that. What a client
 * sends after its line is not read. */
#include "tools/weir/collect/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/weir/base/cmd.h"

#define IDLE_NS UINT64_C(2000000000)
#define S_NS    UINT64_C(1000000000)

enum { BACKLOG = 128, VERBS = 16, LISTENER = CONTROL_CLIENTS, TIMER = CONTROL_CLIENTS + 1 };

typedef struct client {
  int fd;             /* -1: none */
  uint64_t moved_ns;  /* CLOCK_MONOTONIC when a byte last came or went */
  size_t count, sent; /* of the request so far; of the reply, all of it and what has gone */
  char *reply;        /* owned; NULL: the request is not whole */
  char line[CONTROL_LINE];
} client;

typedef struct verb {
  const char *name; /* borrowed */
  control_handler handler;
  void *context;
} verb;

struct control {
  const char *dir; /* borrowed */
  int listener, epoll, timer;
  bool bound; /* the socket's name is there */
  verb verbs[VERBS];
  client clients[CONTROL_CLIENTS];
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool add_to_set(const control *c, int fd, uint32_t number, uint32_t events)
{
  struct epoll_event e = {.events = events, .data.u32 = number};
  return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

/* The folder's path may be longer than an address has room for: it is given by a descriptor. */
static bool bind_in(control *c)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int folder = open(c->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" CONTROL_SOCKET,
                 folder);
  c->bound = bind(c->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
             fchmodat(folder, CONTROL_SOCKET, 0600, 0) == 0;
  (void)close(folder);
  return c->bound;
}

control *control_new(const char *dir)
{
  control *c = cmd_alloc(sizeof *c);
  c->dir = dir;
  for (int i = 0; i < CONTROL_CLIENTS; i++)
    c->clients[i].fd = -1;
  c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  c->epoll = epoll_create1(EPOLL_CLOEXEC);
  c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (c->listener >= 0 && c->epoll >= 0 && c->timer >= 0 && bind_in(c) &&
      listen(c->listener, BACKLOG) == 0 && add_to_set(c, c->listener, LISTENER, EPOLLIN) &&
      add_to_set(c, c->timer, TIMER, EPOLLIN))
    return c;
  control_free(c);
  return NULL;
}

int control_fd(const control *c)
{
  return c->epoll;
}

void control_on(control *c, const char *name, control_handler handler, void *context)
{
  verb *free_one = NULL;
  for (int i = VERBS; i-- > 0;) {
    verb *v = &c->verbs[i];
    if (!v->handler) free_one = v;
    if (!v->handler || strcmp(v->name, name) != 0) continue;
    *v = (verb){name, handler, context};
    return;
  }
  if (free_one) *free_one = (verb){name, handler, context};
}

/* ---- one client ------------------------------------------------------------------------------ */

static void drop_client(client *k)
{
  (void)close(k->fd);
  free(k->reply);
  k->fd = -1;
  k->reply = NULL;
}

static void send_reply(control *c, client *k)
{
  while (k->sent < k->count) {
    ssize_t n = send(k->fd, k->reply + k->sent, k->count - k->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      drop_client(k);
      return;
    }
    k->sent += (size_t)n;
    k->moved_ns = clock_monotonic_ns();
  }
  if (k->sent == k->count) {
    drop_client(k);
    return;
  }
  struct epoll_event e = {.events = EPOLLOUT, .data.u32 = (uint32_t)(k - c->clients)};
  if (epoll_ctl(c->epoll, EPOLL_CTL_MOD, k->fd, &e) != 0) drop_client(k);
}

/* Returns the value of a hexadecimal digit, -1: it is none. */
static int digit_of(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Decodes a word in place. Returns false when it is not well formed, or has a NUL in it. */
static bool decode_word(char *word)
{
  char *to = word;
  for (const char *at = word; *at; at++) {
    if (*at != '%') {
      *to++ = *at;
      continue;
    }
    int high = digit_of(at[1]), low = high < 0 ? -1 : digit_of(at[2]);
    if (low < 0 || !(high << 4 | low)) return false;
    *to++ = (char)(high << 4 | low);
    at += 2;
  }
  *to = 0;
  return true;
}

/* Cuts a line into words. Returns how many; 0: it is no request. */
static unsigned cut_words(char *line, char *words[CONTROL_WORDS])
{
  unsigned count = 0;
  for (char *at = line; at;) {
    char *blank = strchr(at, ' ');
    if (blank) *blank = 0;
    if (count == CONTROL_WORDS || !*at || !decode_word(at)) return 0;
    words[count++] = at;
    at = blank ? blank + 1 : NULL;
  }
  return count;
}

static const verb *find_verb(const control *c, const char *name)
{
  for (int i = 0; i < VERBS; i++)
    if (c->verbs[i].handler && !strcmp(c->verbs[i].name, name)) return &c->verbs[i];
  return NULL;
}

/* Prints what the request's handler answers. Returns whether it did what was asked. */
static bool answer_line(const control *c, char *line, FILE *out)
{
  char *words[CONTROL_WORDS];
  unsigned count = cut_words(line, words);
  const verb *v = count ? find_verb(c, words[0]) : NULL;
  if (v) return v->handler(v->context, out, count - 1, words + 1);
  (void)fputs(count ? "this collector does not serve that request\n" : "this is no request\n", out);
  return false;
}

/* The line is whole, with a NUL in the place of its newline. */
static void answer_client(control *c, client *k)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  bool good = out && answer_line(c, k->line, out);
  bool whole = out && !ferror(out);
  whole = out && fclose(out) == 0 && whole;
  if (whole) k->reply = cmd_format("%s\n%s", good ? "ok" : "no", text);
  free(text);
  if (!whole) {
    drop_client(k);
    return;
  }
  k->count = strlen(k->reply);
  k->sent = 0;
  k->moved_ns = clock_monotonic_ns();
  send_reply(c, k);
}

static void read_request(control *c, client *k)
{
  ssize_t n = recv(k->fd, k->line + k->count, sizeof k->line - k->count, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  char *newline = n > 0 ? memchr(k->line + k->count, '\n', (size_t)n) : NULL;
  k->moved_ns = clock_monotonic_ns();
  if (n > 0) k->count += (size_t)n;
  const bool ended = n <= 0 || (!newline && k->count == sizeof k->line) ||
                     (newline && memchr(k->line, 0, (size_t)(newline - k->line)));
  if (ended) {
    drop_client(k);
  } else if (newline) {
    *newline = 0;
    answer_client(c, k);
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void set_timer(const control *c)
{
  uint64_t first = UINT64_MAX;
  for (int i = 0; i < CONTROL_CLIENTS; i++)
    if (c->clients[i].fd >= 0 && c->clients[i].moved_ns < first) first = c->clients[i].moved_ns;
  struct itimerspec t = {{0, 0}, {0, 0}};
  if (first != UINT64_MAX) {
    first += IDLE_NS;
    t.it_value = (struct timespec){(time_t)(first / S_NS), (long)(first % S_NS)};
  }
  (void)timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void drop_silent(control *c)
{
  const uint64_t now = clock_monotonic_ns();
  for (int i = 0; i < CONTROL_CLIENTS; i++)
    if (c->clients[i].fd >= 0 && now - c->clients[i].moved_ns >= IDLE_NS)
      drop_client(&c->clients[i]);
}

/* Returns a free place for a client, or that of who is silent for longest. */
static client *client_place(control *c)
{
  client *oldest = &c->clients[0];
  for (int i = 0; i < CONTROL_CLIENTS; i++) {
    client *k = &c->clients[i];
    if (k->fd < 0) return k;
    if (k->moved_ns < oldest->moved_ns) oldest = k;
  }
  drop_client(oldest);
  return oldest;
}

static bool may_ask(int fd)
{
  struct ucred who;
  socklen_t bytes = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
         (who.uid == geteuid() || who.uid == 0);
}

/* Accepts one connection. Returns false when none is waiting. */
static bool admit_client(control *c)
{
  int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return false;
  if (!may_ask(fd)) {
    (void)close(fd);
    return true;
  }
  client *k = client_place(c);
  k->fd = fd;
  k->moved_ns = clock_monotonic_ns();
  k->count = k->sent = 0;
  if (add_to_set(c, fd, (uint32_t)(k - c->clients), EPOLLIN))
    read_request(c, k);
  else
    drop_client(k);
  return true;
}

static void serve_client(control *c, client *k)
{
  if (k->fd < 0) return;
  if (k->reply)
    send_reply(c, k);
  else
    read_request(c, k);
}

void control_serve(control *c)
{
  struct epoll_event events[CONTROL_CLIENTS + 2];
  uint64_t ticks;
  int n = epoll_wait(c->epoll, events, sizeof events / sizeof *events, 0);
  if (n <= 0) return;
  for (int i = 0; i < n; i++)
    if (events[i].data.u32 < CONTROL_CLIENTS) serve_client(c, &c->clients[events[i].data.u32]);
  (void)!read(c->timer, &ticks, sizeof ticks);
  drop_silent(c);
  for (int i = 0; i < CONTROL_CLIENTS && admit_client(c); i++) {
  }
  set_timer(c);
}

void control_free(control *c)
{
  if (!c) return;
  for (int i = 0; i < CONTROL_CLIENTS; i++)
    if (c->clients[i].fd >= 0) drop_client(&c->clients[i]);
  if (c->bound) {
    char *name = cmd_format("%s/" CONTROL_SOCKET, c->dir);
    (void)unlink(name);
    free(name);
  }
  if (c->timer >= 0) (void)close(c->timer);
  if (c->listener >= 0) (void)close(c->listener);
  if (c->epoll >= 0) (void)close(c->epoll);
  free(c);
}
