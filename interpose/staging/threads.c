/* threads.c: a memcpy shared by a few threads. They are made at the first large copy, take
 * no signals but those that a fault in the program's memory raises, whose handler may mend it, and
 * sleep between copies. One copy has them at a time; another that comes meanwhile
 * is made by its own thread alone. A fork's child has none of them, and never gets here. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include "interpose/staging/staging.h"

enum { HELPERS_MOST = 7, SHARE_LEAST = 128 << 10 };

static struct {
  pthread_mutex_t owner; /* held by who copies with the helpers */
  pthread_mutex_t lock;  /* over the rest */
  pthread_cond_t work, done;
  unsigned helpers;     /* there are */
  unsigned wanted;      /* that shall take part in the current copy */
  unsigned taken, left; /* shares handed out; shares not finished */
  char *dst;
  const char *src;
  size_t bytes, share;
} crew = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

/* Lock held on entry and on return. */
static void copy_share(void)
{
  size_t at = crew.taken++ * crew.share;
  size_t n = crew.bytes - at < crew.share ? crew.bytes - at : crew.share;
  char *dst = crew.dst + at;
  const char *src = crew.src + at;
  pthread_mutex_unlock(&crew.lock);
  memcpy(dst, src, n);
  pthread_mutex_lock(&crew.lock);
  if (!--crew.left) pthread_cond_signal(&crew.done);
}

static bool share_waits(void)
{
  return crew.taken * crew.share < crew.bytes;
}

static void *copy_shares(void *unused)
{
  (void)unused;
  pthread_mutex_lock(&crew.lock);
  for (;;) {
    while (!share_waits())
      pthread_cond_wait(&crew.work, &crew.lock);
    copy_share();
  }
  return NULL;
}

/* Lock held. */
static void start_threads(unsigned helpers)
{
  sigset_t most, was;
  pthread_t t;
  if (crew.helpers >= helpers) return;
  sigfillset(&most);
  sigdelset(&most, SIGSEGV);
  sigdelset(&most, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &most, &was);
  while (crew.helpers < helpers && pthread_create(&t, NULL, copy_shares, NULL) == 0) {
    pthread_detach(t);
    crew.helpers++;
  }
  pthread_sigmask(SIG_SETMASK, &was, NULL);
}

void staging_memcpy(void *dst, const void *src, size_t bytes, unsigned threads)
{
  if (threads > HELPERS_MOST + 1) threads = HELPERS_MOST + 1;
  if (threads < 2 || bytes < 2 * SHARE_LEAST || pthread_mutex_trylock(&crew.owner)) {
    memcpy(dst, src, bytes);
    return;
  }
  pthread_mutex_lock(&crew.lock);
  start_threads(threads - 1);
  crew.dst = dst;
  crew.src = src;
  crew.bytes = bytes;
  crew.share = (bytes / threads + 4095) & ~(size_t)4095;
  crew.taken = 0;
  crew.left = (unsigned)((bytes + crew.share - 1) / crew.share);
  pthread_cond_broadcast(&crew.work);
  while (share_waits())
    copy_share();
  while (crew.left)
    pthread_cond_wait(&crew.done, &crew.lock);
  crew.bytes = 0;
  pthread_mutex_unlock(&crew.lock);
  pthread_mutex_unlock(&crew.owner);
}
