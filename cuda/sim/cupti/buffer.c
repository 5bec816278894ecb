/* buffer.c: the client's buffers: asked for, filled, and given back by a flush or by a thread of
 * this library's.
 *
 * One buffer is filled at a time; one that is full waits in `full` for the thread. A client that
 * gives no buffer loses the record, which is counted. The client's functions are called without
 * the lock; `busy` and `asking` say that somebody is in one. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
  uint8_t *start;
  size_t bytes, used;
  size_t records, most; /* in it, and that may be; most 0: any number */
};

enum { FULL_MAX = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct buffer filling; /* start NULL: none */
static struct buffer full[FULL_MAX];
static unsigned full_count;
static bool asking;             /* a thread is in request() */
static unsigned busy;           /* threads in complete() */
static size_t dropped, offered; /* records */
static bool running, stopping;  /* the thread */
static pthread_t thread;
static __thread bool in_client; /* this thread is in one of the client's functions */

/* ---- giving back ----------------------------------------------------------------------------- */

static void set_aside(void) /* locked */
{
  if (!filling.start) return;
  if (full_count < FULL_MAX)
    full[full_count++] = filling;
  else
    dropped += filling.records;
  filling.start = NULL;
  pthread_cond_broadcast(&changed);
}

static void give_back_one(void) /* locked; full_count is not 0 */
{
  struct buffer b = full[0];
  CUpti_BuffersCallbackCompleteFunc f = complete;
  memmove(full, full + 1, --full_count * sizeof *full);
  if (!f) return;
  busy++;
  pthread_mutex_unlock(&lock);
  in_client = true;
  f(NULL, 0, b.start, b.bytes, b.used);
  in_client = false;
  pthread_mutex_lock(&lock);
  busy--;
  pthread_cond_broadcast(&changed);
}

static void *give_back_full(void *unused)
{
  (void)unused;
  pthread_mutex_lock(&lock);
  while (!stopping) {
    if (full_count)
      give_back_one();
    else
      pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* It takes no signal that is the program's business. */
static void start_thread(void) /* locked */
{
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  if (!running) running = pthread_create(&thread, NULL, give_back_full, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

CUptiResult sim_flush(void)
{
  if (in_client) return CUPTI_ERROR_INVALID_OPERATION;
  if (sim_faults()->flush_hangs) sim_hang("a flush");
  uint64_t began = sim_client_now();
  pthread_mutex_lock(&lock);
  bool ready = request != NULL;
  if (filling.start && filling.used) set_aside();
  while (full_count)
    give_back_one();
  while (busy)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  if (!ready) return CUPTI_ERROR_INVALID_OPERATION;
  sim_record_flush(began, sim_client_now());
  return CUPTI_SUCCESS;
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool has_room(size_t bytes) /* locked */
{
  return filling.start && filling.bytes - filling.used >= bytes &&
         (!filling.most || filling.records < filling.most);
}

/* Asks the client for a buffer, one thread at a time. */
static void ask(void) /* locked */
{
  struct buffer b = {0};
  CUpti_BuffersCallbackRequestFunc f = request;
  asking = true;
  pthread_mutex_unlock(&lock);
  bool before = in_client;
  in_client = true;
  f(&b.start, &b.bytes, &b.most);
  in_client = before;
  if (!b.start && sim_faults()->null_crashes) sim_crash("no buffer came");
  pthread_mutex_lock(&lock);
  asking = false;
  filling = b;
  pthread_cond_broadcast(&changed);
}

static bool make_room(size_t bytes) /* locked */
{
  bool asked = false;
  while (!has_room(bytes)) {
    if (asking) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    if (asked || !request) return false;
    set_aside();
    ask();
    asked = true;
  }
  return true;
}

void sim_put(const void *record, size_t bytes)
{
  pthread_mutex_lock(&lock);
  uint32_t every = sim_faults()->drop;
  if ((every && ++offered % every == 0) || !make_room(bytes)) {
    dropped++;
  } else {
    memcpy(filling.start + filling.used, record, bytes);
    filling.used += bytes;
    filling.records++;
    if (!running) start_thread();
  }
  pthread_mutex_unlock(&lock);
}

/* ---- CUPTI's functions ----------------------------------------------------------------------- */

CUPTI_API CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc on_request, CUpti_BuffersCallbackCompleteFunc on_complete)
{
  if (!on_request || !on_complete) return CUPTI_ERROR_INVALID_PARAMETER;
  pthread_mutex_lock(&lock);
  set_aside();
  while (full_count && complete) /* they are the other client's */
    give_back_one();
  request = on_request;
  complete = on_complete;
  pthread_mutex_unlock(&lock);
  return CUPTI_SUCCESS;
}

/* "If the dropped record counter is read it is reset to zero"; contexts and streams do not matter,
 * all buffers being global. */
CUPTI_API CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                                 size_t *count)
{
  (void)context, (void)stream;
  if (!count) return CUPTI_ERROR_INVALID_PARAMETER;
  pthread_mutex_lock(&lock);
  *count = dropped;
  dropped = 0;
  pthread_mutex_unlock(&lock);
  return CUPTI_SUCCESS;
}

void sim_buffers_end(void)
{
  pthread_mutex_lock(&lock);
  bool was_running = running && !in_client;
  set_aside();
  while (full_count && complete)
    give_back_one();
  stopping = was_running;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  if (was_running) pthread_join(thread, NULL);
  pthread_mutex_lock(&lock);
  running = running && !was_running;
  stopping = false;
  full_count = 0;
  filling.start = NULL;
  request = NULL;
  complete = NULL;
  pthread_mutex_unlock(&lock);
}

/* In a forked child there is no thread and no client. */
static void in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&changed, NULL);
  request = NULL;
  complete = NULL;
  filling.start = NULL;
  full_count = busy = 0;
  asking = running = stopping = false;
}

__attribute__((constructor)) static void watch_forks(void)
{
  pthread_atfork(NULL, NULL, in_child);
}
