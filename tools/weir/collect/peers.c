/* peers.c: see peers.h. A client is *reading* its request in until that is whole, then its reply is
 * *written*. A timer in the set of descriptors ends the collector's sleep when one has been silent
 * for too long. What a client sends after its request is not read. */
#include "tools/weir/collect/peers.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/weir/base/cmd.h"

#define IDLE_NS UINT64_C(2000000000)
#define S_NS    UINT64_C(1000000000)

enum { LISTENER = PEERS, TIMER = PEERS + 1 };

typedef struct peer {
  int fd;             /* -1: none */
  uint64_t moved_ns;  /* CLOCK_MONOTONIC when a byte last came or went */
  size_t count, sent; /* of the request so far; of the reply, all of it and what has gone */
  char *reply;        /* owned; NULL: the request is not whole */
  char request[PEERS_REQUEST + 1];
} peer;

struct peers {
  peers_rules rules;
  int listener, epoll, timer;
  peer peer[PEERS];
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool add_to_set(const peers *p, int fd, uint32_t number)
{
  struct epoll_event e = {.events = EPOLLIN, .data.u32 = number};
  return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

peers *peers_new(int listener, const peers_rules *rules)
{
  peers *p = cmd_alloc(sizeof *p);
  p->rules = *rules;
  p->listener = listener;
  for (int i = 0; i < PEERS; i++)
    p->peer[i].fd = -1;
  p->epoll = epoll_create1(EPOLL_CLOEXEC);
  p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (p->epoll >= 0 && p->timer >= 0 && add_to_set(p, listener, LISTENER) &&
      add_to_set(p, p->timer, TIMER))
    return p;
  peers_free(p);
  return NULL;
}

int peers_fd(const peers *p)
{
  return p->epoll;
}

bool peers_is_own(int fd)
{
  struct ucred who;
  socklen_t bytes = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
         (who.uid == geteuid() || who.uid == 0);
}

/* ---- one client ------------------------------------------------------------------------------ */

static void drop_peer(peer *k)
{
  (void)close(k->fd);
  free(k->reply);
  k->fd = -1;
  k->reply = NULL;
}

static void send_reply(const peers *p, peer *k)
{
  while (k->sent < k->count) {
    ssize_t n = send(k->fd, k->reply + k->sent, k->count - k->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      drop_peer(k);
      return;
    }
    k->sent += (size_t)n;
    k->moved_ns = clock_monotonic_ns();
  }
  if (k->sent == k->count) {
    drop_peer(k);
    return;
  }
  struct epoll_event e = {.events = EPOLLOUT, .data.u32 = (uint32_t)(k - p->peer)};
  if (epoll_ctl(p->epoll, EPOLL_CTL_MOD, k->fd, &e) != 0) drop_peer(k);
}

static void answer_peer(const peers *p, peer *k, size_t bytes)
{
  k->request[bytes] = 0;
  k->reply = p->rules.answer(p->rules.context, k->request, bytes, &k->count);
  k->sent = 0;
  k->moved_ns = clock_monotonic_ns();
  if (k->reply)
    send_reply(p, k);
  else
    drop_peer(k);
}

static void read_request(const peers *p, peer *k)
{
  ssize_t n = recv(k->fd, k->request + k->count, PEERS_REQUEST - k->count, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (n > 0) k->count += (size_t)n;
  k->moved_ns = clock_monotonic_ns();
  const size_t whole = n > 0 ? p->rules.whole(k->request, k->count) : 0;
  if (whole)
    answer_peer(p, k, whole);
  else if (n <= 0 || k->count == PEERS_REQUEST)
    drop_peer(k);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void set_timer(const peers *p)
{
  uint64_t first = UINT64_MAX;
  for (int i = 0; i < PEERS; i++)
    if (p->peer[i].fd >= 0 && p->peer[i].moved_ns < first) first = p->peer[i].moved_ns;
  struct itimerspec t = {{0, 0}, {0, 0}};
  if (first != UINT64_MAX) {
    first += IDLE_NS;
    t.it_value = (struct timespec){(time_t)(first / S_NS), (long)(first % S_NS)};
  }
  (void)timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void drop_silent(peers *p)
{
  const uint64_t now = clock_monotonic_ns();
  for (int i = 0; i < PEERS; i++)
    if (p->peer[i].fd >= 0 && now - p->peer[i].moved_ns >= IDLE_NS) drop_peer(&p->peer[i]);
}

/* Returns a free place for a client, or that of who is silent for longest. */
static peer *peer_place(peers *p)
{
  peer *oldest = &p->peer[0];
  for (int i = 0; i < PEERS; i++) {
    peer *k = &p->peer[i];
    if (k->fd < 0) return k;
    if (k->moved_ns < oldest->moved_ns) oldest = k;
  }
  drop_peer(oldest);
  return oldest;
}

/* Accepts one connection. Returns false when none is waiting. */
static bool admit_peer(peers *p)
{
  int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return false;
  if (p->rules.may_ask && !p->rules.may_ask(fd)) {
    (void)close(fd);
    return true;
  }
  peer *k = peer_place(p);
  k->fd = fd;
  k->moved_ns = clock_monotonic_ns();
  k->count = k->sent = 0;
  if (add_to_set(p, fd, (uint32_t)(k - p->peer)))
    read_request(p, k);
  else
    drop_peer(k);
  return true;
}

static void serve_peer(const peers *p, peer *k)
{
  if (k->fd < 0) return;
  if (k->reply)
    send_reply(p, k);
  else
    read_request(p, k);
}

void peers_serve(peers *p)
{
  struct epoll_event events[PEERS + 2];
  uint64_t ticks;
  int n = epoll_wait(p->epoll, events, sizeof events / sizeof *events, 0);
  if (n <= 0) return;
  for (int i = 0; i < n; i++)
    if (events[i].data.u32 < PEERS) serve_peer(p, &p->peer[events[i].data.u32]);
  (void)!read(p->timer, &ticks, sizeof ticks);
  drop_silent(p);
  for (int i = 0; i < PEERS && admit_peer(p); i++) {
  }
  set_timer(p);
}

void peers_free(peers *p)
{
  if (!p) return;
  for (int i = 0; i < PEERS; i++)
    if (p->peer[i].fd >= 0) drop_peer(&p->peer[i]);
  if (p->timer >= 0) (void)close(p->timer);
  if (p->listener >= 0) (void)close(p->listener);
  if (p->epoll >= 0) (void)close(p->epoll);
  free(p);
}
