/* relay.c: see relay.h.
 *
 * The ring has one writer, the walk, and a reader a listener. `sent` and each reader's `taken`
 * count batches and only grow: a batch is the walk's until it is sent, and the walk's again when
 * all have taken it. A listener that failed goes on as if it took batches, so that the walk need
 * not wait for it; the walk learns of it with its next batch. */
#include "reports/events/relay.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  BATCHES = 8, /* in the ring: 2 MiB of events */
  EVENTS = 4096,
  MESSAGE = 512 /* bytes that one has at most (weir_fail()) */
};

typedef struct batch {
  size_t count;
  wr_event event[EVENTS];
} batch;

typedef struct reader {
  struct wr_relay *relay;
  const wr_listener *listener; /* borrowed */
  pthread_t thread;
  uint64_t taken; /* batches; by `lock` of the relay */
  weir_status status;
  char message[MESSAGE];
} reader;

struct wr_relay {
  pthread_mutex_t lock;
  pthread_cond_t sending, taking;
  uint64_t sent; /* batches; by `lock` */
  bool ended;    /* nothing more is sent; by `lock` */
  bool failed;   /* a listener; by `lock` */
  size_t readers;
  reader reader[WR_LISTENERS];
  batch *ring;   /* owned; [BATCHES] */
  size_t filled; /* events in the batch that is not sent yet */
};

/* ---- the listeners' threads ------------------------------------------------------------------- */

static weir_status take_batch(const wr_listener *l, const batch *b)
{
  weir_status st = l->take_some ? l->take_some(l->context, b->event, b->count) : WEIR_OK;
  for (size_t i = 0; !st && l->take && i < b->count; i++)
    st = l->take(l->context, &b->event[i]);
  return st;
}

static void take_until(reader *r, uint64_t sent)
{
  for (uint64_t at = r->taken; !r->status && at < sent; at++) {
    r->status = take_batch(r->listener, &r->relay->ring[at % BATCHES]);
    if (r->status) (void)snprintf(r->message, sizeof(r->message), "%s", weir_error_message());
  }
}

static void *read_batches(void *context)
{
  reader *r = context;
  wr_relay *x = r->relay;
  pthread_mutex_lock(&x->lock);
  for (;;) {
    while (r->taken == x->sent && !x->ended)
      pthread_cond_wait(&x->sending, &x->lock);
    if (r->taken == x->sent) break;
    uint64_t sent = x->sent;
    pthread_mutex_unlock(&x->lock);
    take_until(r, sent);
    pthread_mutex_lock(&x->lock);
    r->taken = sent;
    x->failed |= r->status != WEIR_OK;
    pthread_cond_signal(&x->taking);
  }
  pthread_mutex_unlock(&x->lock);
  return NULL;
}

/* ---- the walk --------------------------------------------------------------------------------- */

static uint64_t least_taken(const wr_relay *x)
{
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < x->readers; i++)
    if (x->reader[i].taken < least) least = x->reader[i].taken;
  return least;
}

/* Sends the batch that is filled, and waits for the room of the next. */
static bool send_filled(wr_relay *x)
{
  if (!x->filled) return true;
  pthread_mutex_lock(&x->lock);
  x->ring[x->sent % BATCHES].count = x->filled;
  x->sent++;
  x->filled = 0;
  pthread_cond_broadcast(&x->sending);
  while (x->sent - least_taken(x) == BATCHES)
    pthread_cond_wait(&x->taking, &x->lock);
  bool failed = x->failed;
  pthread_mutex_unlock(&x->lock);
  return !failed;
}

bool wr_relay_send(wr_relay *x, const wr_event events[], size_t count)
{
  while (count) {
    size_t room = EVENTS - x->filled, some = count < room ? count : room;
    memcpy(&x->ring[x->sent % BATCHES].event[x->filled], events, some * sizeof(*events));
    x->filled += some;
    events += some, count -= some;
    if (x->filled == EVENTS && !send_filled(x)) return false;
  }
  return true;
}

/* ---- open, close ------------------------------------------------------------------------------ */

/* Signals are the other threads'. */
static bool start_reader(reader *r)
{
  sigset_t all, was;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &was);
  int error = pthread_create(&r->thread, NULL, read_batches, r);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
  return !error;
}

wr_relay *wr_relay_open(const wr_listener listeners[], size_t count)
{
  wr_relay *x = count <= WR_LISTENERS ? calloc(1, sizeof(*x)) : NULL;
  if (!x) return NULL;
  x->ring = malloc(BATCHES * sizeof(*x->ring));
  pthread_mutex_init(&x->lock, NULL);
  pthread_cond_init(&x->sending, NULL);
  pthread_cond_init(&x->taking, NULL);
  for (bool up = x->ring; up && x->readers < count;) {
    reader *r = &x->reader[x->readers];
    *r = (reader){.relay = x, .listener = &listeners[x->readers]};
    up = start_reader(r);
    x->readers += up;
  }
  if (x->readers == count) return x;
  (void)wr_relay_close(x);
  return NULL;
}

weir_status wr_relay_close(wr_relay *x)
{
  weir_status st = WEIR_OK;
  if (x->readers) (void)send_filled(x);
  pthread_mutex_lock(&x->lock);
  x->ended = true;
  pthread_cond_broadcast(&x->sending);
  pthread_mutex_unlock(&x->lock);
  for (size_t i = 0; i < x->readers; i++) {
    reader *r = &x->reader[i];
    (void)pthread_join(r->thread, NULL);
    if (r->status && !st) st = weir_fail(r->status, "%s", r->message);
  }
  pthread_cond_destroy(&x->taking);
  pthread_cond_destroy(&x->sending);
  pthread_mutex_destroy(&x->lock);
  free(x->ring);
  free(x);
  return st;
}
