/* peers.h: clients of a socket that a collector has: each sends one request, gets one reply and is
 * closed.
 *
 * Whatever a client does, nobody waits for it: descriptors do not block, a request is of a length
 * that has a bound, and a client of which nothing has come, or gone, for 2 s is closed. At most
 * PEERS are there at once; the one that is silent for longest makes room. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_PEERS_H
#define WEIR_TOOLS_WEIR_COLLECT_PEERS_H

#include <stdbool.h>
#include <stddef.h>

enum { PEERS = 32, PEERS_REQUEST = 8192 /* bytes of a request, its end included */ };

typedef struct peers peers;

typedef struct peers_rules {
  /* Whether who is connected may ask at all. NULL: everybody. */
  bool (*may_ask)(int fd);
  /* Returns the length of the request that `text` begins with, 0 while it is not whole. */
  size_t (*whole)(const char *text, size_t bytes);
  /* Returns the reply (new) to a request, which may be changed and ends with a NUL that is not of
   * it, and the reply's length. NULL: none. */
  char *(*answer)(void *context, char *request, size_t bytes, size_t *reply_bytes);
  void *context;
} peers_rules;

/* Serves a listening socket that does not block, and that it closes at the end. New; NULL: it cannot
 * be, and the socket is closed. */
peers *peers_new(int listener, const peers_rules *rules);

/* Returns a descriptor that is readable (poll) when peers_serve() has something to do. */
int peers_fd(const peers *p);

/* Accepts, reads, answers, closes. */
void peers_serve(peers *p);

void peers_free(peers *p); /* may be NULL */

/* Whether a Unix socket's client is of this user or root, as the kernel has it. */
bool peers_is_own(int fd);

#endif
