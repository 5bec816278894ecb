/* threads.c: a memcpy shared by a few threads. They are made at a large copy, and end when none has
 * come for a while. One copy has them at a time; another that comes meanwhile
 * is made by its own thread alone. A fork's child has none of them, and never gets here. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "interpose/process/own_threads.h"
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

/* Lock held. False: nothing has come for a while. */
static bool wait_for_share(void)
{
  struct timespec until;
  int error = 0;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += WEIR_OWN_THREAD_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  while (!share_waits() && error != ETIMEDOUT)
    error = pthread_cond_timedwait(&crew.work, &crew.lock, &until);
  return share_waits();
}

static void copy_shares(void)
{
  pthread_mutex_lock(&crew.lock);
  while (wait_for_share())
    copy_share();
  crew.helpers--;
  pthread_mutex_unlock(&crew.lock);
}

/* Lock held. */
static void start_threads(unsigned helpers)
{
  while (crew.helpers < helpers && own_thread_start(copy_shares))
    crew.helpers++;
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
