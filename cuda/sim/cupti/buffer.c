/* buffer.c: the clients' buffers: asked for, filled, and given back by a flush or by a thread of
 * this library's.
 *
 * A client fills one buffer at a time; one that is full waits in `full` for the thread. A client
 * that gives no buffer loses the record, which is counted. Clients' functions are called without
 * the lock; `busy` and `asking` state that a thread is in one. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <signal.h>
#include <string.h>

struct buffer {
  uint8_t *start;
  size_t bytes, used;
  size_t records, most; /* in it, and that may be; most 0: any number */
};

enum { FULL_MAX = 256 };

struct client {
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
  sim_request_v2 request_v2; /* instead of the two above */
  sim_complete_v2 complete_v2;
  struct buffer filling; /* start NULL: none */
  struct buffer full[FULL_MAX];
  unsigned full_count;
  bool asking;             /* a thread is in request() */
  size_t dropped, offered; /* records */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct client clients[SIM_CLIENTS];
static unsigned busy;           /* threads in complete() */
static bool running;            /* the thread, which ends when there is nothing to give back */
static __thread bool in_client; /* this thread is in one of a client's functions */

static bool is_ready(const struct client *c) /* locked */
{
  return c->request || c->request_v2;
}

/* A struct with its own size in front and nothing known next to it. */
static void request_by_v2(sim_request_v2 f, uint8_t **buffer, size_t *bytes, size_t *most)
{
  size_t info[1] = {sizeof info};
  f(buffer, bytes, most, (void *)info);
}

static void complete_by_v2(sim_complete_v2 f, uint8_t *buffer, size_t bytes, size_t valid)
{
  size_t info[4] = {sizeof info}; /* of no thread, and of no layouts that the client chose */
  f(buffer, bytes, valid, (void *)info);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void set_aside(struct client *c) /* locked */
{
  if (!c->filling.start) return;
  if (c->full_count < FULL_MAX)
    c->full[c->full_count++] = c->filling;
  else
    c->dropped += c->filling.records;
  c->filling.start = NULL;
  pthread_cond_broadcast(&changed);
}

static void give_back_one(struct client *c) /* locked; full_count is not 0 */
{
  struct buffer b = c->full[0];
  CUpti_BuffersCallbackCompleteFunc f = c->complete;
  sim_complete_v2 f2 = c->complete_v2;
  memmove(c->full, c->full + 1, --c->full_count * sizeof *c->full);
  if (!f && !f2) return;
  busy++;
  pthread_mutex_unlock(&lock);
  in_client = true;
  if (f2)
    complete_by_v2(f2, b.start, b.bytes, b.used);
  else
    f(NULL, 0, b.start, b.bytes, b.used);
  in_client = false;
  pthread_mutex_lock(&lock);
  busy--;
  pthread_cond_broadcast(&changed);
}

/* False: none had one. */
static bool give_back_any(void) /* locked */
{
  for (int i = 0; i < SIM_CLIENTS; i++)
    if (clients[i].full_count) {
      give_back_one(&clients[i]);
      return true;
    }
  return false;
}

static void give_back_all(struct client *c) /* locked */
{
  set_aside(c);
  while (c->full_count)
    give_back_one(c);
}

static void *give_back_full(void *unused)
{
  (void)unused;
  pthread_mutex_lock(&lock);
  while (give_back_any())
    continue;
  running = false;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* It takes no signal that is the program's business. */
static void start_thread(void) /* locked */
{
  pthread_t thread;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  running = pthread_create(&thread, NULL, give_back_full, NULL) == 0;
  if (running) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

CUptiResult sim_flush(void)
{
  bool ready = false;
  if (in_client) return CUPTI_ERROR_INVALID_OPERATION;
  if (sim_faults()->flush_hangs) sim_hang("a flush");
  uint64_t began = sim_client_now();
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SIM_CLIENTS; i++) {
    ready |= is_ready(&clients[i]);
    if (clients[i].filling.start && clients[i].filling.used) set_aside(&clients[i]);
  }
  while (give_back_any())
    continue;
  while (busy)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  if (!ready) return CUPTI_ERROR_INVALID_OPERATION;
  sim_record_flush(began, sim_client_now());
  return CUPTI_SUCCESS;
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool buffer_has_room(const struct client *c, size_t bytes) /* locked */
{
  const struct buffer *b = &c->filling;
  return b->start && b->bytes - b->used >= bytes && (!b->most || b->records < b->most);
}

/* Asks the client for a buffer, one thread at a time. */
static void ask(struct client *c) /* locked */
{
  struct buffer b = {0};
  CUpti_BuffersCallbackRequestFunc f = c->request;
  sim_request_v2 f2 = c->request_v2;
  c->asking = true;
  pthread_mutex_unlock(&lock);
  bool before = in_client;
  in_client = true;
  if (f2)
    request_by_v2(f2, &b.start, &b.bytes, &b.most);
  else
    f(&b.start, &b.bytes, &b.most);
  in_client = before;
  if (!b.start && sim_faults()->null_crashes) sim_crash("no buffer came");
  pthread_mutex_lock(&lock);
  c->asking = false;
  c->filling = b;
  pthread_cond_broadcast(&changed);
}

static bool make_record_room(struct client *c, size_t bytes) /* locked */
{
  bool asked = false;
  while (!buffer_has_room(c, bytes)) {
    if (c->asking) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    if (asked || !is_ready(c)) return false;
    set_aside(c);
    ask(c);
    asked = true;
  }
  return true;
}

static void put_for_client(struct client *c, const void *record, size_t bytes) /* locked */
{
  uint32_t every = sim_faults()->drop;
  if ((every && ++c->offered % every == 0) || !make_record_room(c, bytes)) {
    c->dropped++;
    return;
  }
  memcpy(c->filling.start + c->filling.used, record, bytes);
  c->filling.used += bytes;
  c->filling.records++;
  if (c->full_count && !running) start_thread();
}

void sim_put(uint32_t wanting, const void *record, size_t bytes)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SIM_CLIENTS; i++)
    if (wanting >> i & 1) put_for_client(&clients[i], record, bytes);
  pthread_mutex_unlock(&lock);
}

/* ---- CUPTI's functions ----------------------------------------------------------------------- */

CUPTI_API CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc on_request, CUpti_BuffersCallbackCompleteFunc on_complete)
{
  if (!on_request || !on_complete) return CUPTI_ERROR_INVALID_PARAMETER;
  if (sim_several()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  pthread_mutex_lock(&lock);
  give_back_all(&clients[0]); /* they are the other client's */
  clients[0].request = on_request;
  clients[0].complete = on_complete;
  pthread_mutex_unlock(&lock);
  return CUPTI_SUCCESS;
}

void sim_register(unsigned client, sim_request_v2 on_request, sim_complete_v2 on_complete)
{
  pthread_mutex_lock(&lock);
  give_back_all(&clients[client]);
  clients[client].request_v2 = on_request;
  clients[client].complete_v2 = on_complete;
  pthread_mutex_unlock(&lock);
}

/* Buffers that have not gone back to it are lost. */
void sim_forget_buffers(unsigned client)
{
  struct client *c = &clients[client];
  pthread_mutex_lock(&lock);
  while (c->asking || busy)
    pthread_cond_wait(&changed, &lock);
  memset(c, 0, sizeof *c);
  pthread_mutex_unlock(&lock);
}

size_t sim_dropped(unsigned client)
{
  pthread_mutex_lock(&lock);
  size_t count = clients[client].dropped;
  clients[client].dropped = 0;
  pthread_mutex_unlock(&lock);
  return count;
}

/* "If the dropped record counter is read it is reset to zero"; contexts and streams do not matter,
 * all buffers being global. */
CUPTI_API CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                                 size_t *count)
{
  (void)context, (void)stream;
  if (!count) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = sim_dropped(0);
  return CUPTI_SUCCESS;
}

void sim_buffers_end(void)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SIM_CLIENTS; i++)
    give_back_all(&clients[i]);
  while (running && !in_client)
    pthread_cond_wait(&changed, &lock);
  for (int i = 0; i < SIM_CLIENTS; i++) {
    struct client *c = &clients[i];
    c->full_count = 0;
    c->filling.start = NULL;
    c->request = NULL;
    c->complete = NULL;
    c->request_v2 = NULL;
    c->complete_v2 = NULL;
  }
  pthread_mutex_unlock(&lock);
}

/* In a forked child there is no thread and no client. */
static void buffers_in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&changed, NULL);
  memset(clients, 0, sizeof clients);
  busy = 0;
  running = false;
}

__attribute__((constructor)) static void watch_forks_of_buffers(void)
{
  pthread_atfork(NULL, NULL, buffers_in_child);
}
