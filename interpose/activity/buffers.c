/* buffers.c: see buffers.h. One lock, held for a few instructions; nothing is mapped or unmapped
 * under it. */
#include "interpose/activity/buffers.h"

#include <pthread.h>
#include <sys/mman.h>

enum {
  READY = 4, /* so many lie ready */
  MOST = 256 /* there are at any time; CUPTI may take one a thread */
};

typedef struct completed_buffer {
  uint8_t *at;
  size_t bytes;
} completed_buffer;

static struct {
  pthread_mutex_t lock;
  uint8_t *ready[MOST];
  int ready_count;
  completed_buffer completed[MOST]; /* a ring */
  int first, completed_count;
  uint8_t *out[MOST]; /* CUPTI has them */
  int out_count;
  int mapped; /* all there are */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t *map_buffer(int populate)
{
  void *p = mmap(NULL, ACTIVITY_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

uint8_t *activity_buffer_map(void)
{
  return map_buffer(0);
}

/* A place for one more, which map_buffer() is to fill. */
static bool reserve_place(int ready_below)
{
  pthread_mutex_lock(&pool.lock);
  bool may = pool.mapped < MOST && pool.ready_count < ready_below;
  pool.mapped += may;
  pthread_mutex_unlock(&pool.lock);
  return may;
}

static void put_ready(uint8_t *buffer)
{
  pthread_mutex_lock(&pool.lock);
  if (buffer)
    pool.ready[pool.ready_count++] = buffer;
  else
    pool.mapped--;
  pthread_mutex_unlock(&pool.lock);
}

static uint8_t *take_beyond(int kept)
{
  uint8_t *buffer = NULL;
  pthread_mutex_lock(&pool.lock);
  if (pool.ready_count > kept) {
    buffer = pool.ready[--pool.ready_count];
    pool.mapped--;
  }
  pthread_mutex_unlock(&pool.lock);
  return buffer;
}

void activity_buffers_prepare(void)
{
  uint8_t *buffer;
  while (reserve_place(READY)) {
    put_ready(buffer = map_buffer(MAP_POPULATE));
    if (!buffer) return;
  }
  while ((buffer = take_beyond(2 * READY)))
    munmap(buffer, ACTIVITY_BUFFER_BYTES);
}

static uint8_t *take_ready(void)
{
  uint8_t *buffer = NULL;
  pthread_mutex_lock(&pool.lock);
  if (pool.ready_count) {
    buffer = pool.ready[--pool.ready_count];
    pool.out[pool.out_count++] = buffer;
  }
  pthread_mutex_unlock(&pool.lock);
  return buffer;
}

uint8_t *activity_buffer_take(bool must)
{
  uint8_t *buffer = take_ready();
  if (!buffer && must && reserve_place(MOST)) {
    put_ready(map_buffer(0));
    buffer = take_ready();
  }
  return buffer;
}

/* False: it was another client's. */
static bool is_back(const uint8_t *buffer)
{
  for (int i = 0; i < pool.out_count; i++) {
    if (pool.out[i] != buffer) continue;
    pool.out[i] = pool.out[--pool.out_count];
    return true;
  }
  return false;
}

void activity_buffer_completed(uint8_t *buffer, size_t bytes)
{
  pthread_mutex_lock(&pool.lock);
  bool ours = is_back(buffer);
  if (ours && bytes && bytes <= ACTIVITY_BUFFER_BYTES)
    pool.completed[(pool.first + pool.completed_count++) % MOST] =
        (completed_buffer){buffer, bytes};
  else if (ours)
    pool.ready[pool.ready_count++] = buffer;
  pthread_mutex_unlock(&pool.lock);
}

uint8_t *activity_buffer_next(size_t *bytes)
{
  completed_buffer b = {NULL, 0};
  pthread_mutex_lock(&pool.lock);
  if (pool.completed_count) {
    b = pool.completed[pool.first];
    pool.first = (pool.first + 1) % MOST;
    pool.completed_count--;
  }
  pthread_mutex_unlock(&pool.lock);
  *bytes = b.bytes;
  return b.at;
}

void activity_buffer_free(uint8_t *buffer)
{
  pthread_mutex_lock(&pool.lock);
  pool.ready[pool.ready_count++] = buffer;
  pthread_mutex_unlock(&pool.lock);
}

int activity_buffers_out(void)
{
  pthread_mutex_lock(&pool.lock);
  int out = pool.out_count;
  pthread_mutex_unlock(&pool.lock);
  return out;
}
