/* poison.c: see poison.h. The host's memory is read by process_vm_readv(), for which an address
 * that is not there any more is an error and no fault. */
#include "interpose/reroute/poison.h"

#include <errno.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/reroute/fill.h"
#include "interpose/record/stats.h"

enum { LATER = 64, WORD = 8, CHUNK = 4096 };

typedef struct later { /* a copy that was not complete */
  poison_copy copy;
  const thread_state *owner; /* NULL: free */
  CUevent done;              /* of the driver's; owned */
  unsigned number;           /* of the context */
  uint32_t stack;            /* of the owner's, where the copy was made */
} later;

static later laters[LATER];
static unsigned next_victim;
static const thread_state no_thread; /* owns what a thread has left at its end: events */
static _Atomic bool left;            /* there may be such */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- looking --------------------------------------------------------------------------------- */

typedef struct search {
  uint64_t first, bytes; /* address on the device, bytes of pattern */
  uint64_t run;          /* words of pattern in a row so far */
  uint64_t need;         /* words in a row that are proof */
} search;

static void search_words(search *s, const uint64_t *word, size_t count, uint64_t address)
{
  for (size_t i = 0; i < count; i++) {
    if (word[i] != fill_pattern()) {
      s->run = 0;
      continue;
    }
    if (++s->run < s->need) continue;
    if (!s->bytes) s->first = address + i * WORD - (s->need - 1) * WORD;
    s->bytes += (s->run == s->need ? s->need : 1) * WORD;
  }
}

static bool read_host(uint64_t host, void *to, size_t bytes)
{
  struct iovec from = {(void *)(uintptr_t)host, bytes}, into = {to, bytes};
  return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == (ssize_t)bytes;
}

static void search_row(search *s, uint64_t device, uint64_t host, uint64_t width)
{
  uint64_t words[CHUNK / WORD], skip = (WORD - device % WORD) % WORD;
  if (width < skip + WORD) return;
  uint64_t left = (width - skip) / WORD;
  s->run = 0;
  s->need = left > 1 ? 2 : 1;
  device += skip, host += skip;
  while (left) {
    size_t n = left < CHUNK / WORD ? (size_t)left : CHUNK / WORD;
    if (!read_host(host, words, n * WORD)) return;
    search_words(s, words, n, device);
    device += n * WORD, host += n * WORD, left -= n;
  }
}

static bool search_copy(search *s, const poison_copy *c)
{
  *s = (search){0};
  for (uint64_t row = 0; row < c->rows; row++)
    search_row(s, c->device + row * c->device_pitch, c->host + row * c->host_pitch, c->width);
  return s->bytes != 0;
}

static uint64_t base_of(uint64_t address)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  CUdeviceptr base = 0;
  return ask && ask(&base, NULL, address) == CUDA_SUCCESS && base ? base : address;
}

/* `stack` 0: here. `driver`: it may be asked. */
static void report_poison(const poison_copy *c, uint32_t stack, bool driver)
{
  search s;
  if (!search_copy(&s, c)) return;
  uint64_t base = driver ? base_of(s.first) : c->device;
  cache_event_unwritten(base, s.first - base, s.bytes, stack);
}

void poison_check(const poison_copy *copy)
{
  int saved = errno;
  report_poison(copy, 0, true);
  errno = saved;
}

/* ---- later ----------------------------------------------------------------------------------- */

static void drop_pending(later *l)
{
  PFN_cuEventDestroy_v4000 destroy = WEIR_HELPER(cuEventDestroy_v2);
  if (l->done && destroy) (void)destroy(l->done);
  *l = (later){0};
}

static uint64_t host_bytes(const poison_copy *c)
{
  return (c->rows - 1) * c->host_pitch + c->width;
}

/* What a newer copy writes over is no older copy's any more. A place for one: of all, if need be,
 * the one that has waited longest. */
static later *pending_slot(const poison_copy *c)
{
  later *found = NULL;
  for (int i = 0; i < LATER; i++) {
    later *l = &laters[i];
    if (l->owner == &no_thread) drop_pending(l);
    if (l->owner && l->copy.host < c->host + host_bytes(c) &&
        c->host < l->copy.host + host_bytes(&l->copy))
      drop_pending(l);
    if (!l->owner && !found) found = l;
  }
  if (found) return found;
  found = &laters[next_victim++ % LATER];
  drop_pending(found);
  return found;
}

void poison_check_later(const poison_copy *copy, CUstream stream)
{
  PFN_cuEventCreate_v2000 create = WEIR_HELPER(cuEventCreate);
  PFN_cuEventRecord_v2000 record = WEIR_HELPER(cuEventRecord);
  thread_state *t = &thread_self;
  later l = {.copy = *copy, .owner = t, .number = t->last_context_number};
  int saved = errno;
  if (!create || !record || !capture_step_begin()) return;
  CUresult r = create(&l.done, CU_EVENT_DISABLE_TIMING);
  bool made = r == CUDA_SUCCESS;
  if (made) r = record(l.done, stream);
  capture_step_end();
  if (!made) return;
  if (r == CUDA_SUCCESS) {
    if (thread_ready(t)) l.stack = stack_capture(&t->stacks, &t->writer);
    pthread_mutex_lock(&lock);
    *pending_slot(copy) = l;
    pthread_mutex_unlock(&lock);
  } else {
    drop_pending(&l);
  }
  errno = saved;
}

static bool is_complete(CUevent event)
{
  PFN_cuEventQuery_v2000 query = WEIR_HELPER(cuEventQuery);
  if (!query || !capture_step_begin()) return false;
  CUresult r = query(event);
  capture_step_end();
  return r != CUDA_ERROR_NOT_READY;
}

/* The next of the thread's that is complete is taken out; `end`: or not, and its event, which only
 * the driver can destroy, stays for another thread's call. */
static bool check_pending(later *out, bool end)
{
  bool found = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < LATER && !found; i++) {
    later *l = &laters[i];
    if (l->owner != &thread_self) continue;
    found = end || is_complete(l->done);
    if (!found) continue;
    *out = *l;
    l->owner = &no_thread;
    if (end) {
      atomic_store(&left, true);
    } else {
      l->done = NULL;
      drop_pending(l);
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static void drop_all_pending(void)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < LATER; i++)
    if (laters[i].owner == &no_thread) drop_pending(&laters[i]);
  atomic_store(&left, false);
  pthread_mutex_unlock(&lock);
}

void poison_poll(void)
{
  int saved = errno;
  later l;
  if (capture_live()) return;
  if (atomic_load_explicit(&left, memory_order_relaxed)) drop_all_pending();
  while (check_pending(&l, false)) {
    report_poison(&l.copy, l.stack, true);
    drop_pending(&l);
  }
  errno = saved;
}

void poison_flush(void)
{
  int saved = errno;
  later l;
  if (fill_in_use != WEIR_FILL_POISON) return;
  while (check_pending(&l, true))
    report_poison(&l.copy, l.stack, false);
  errno = saved;
}

void poison_context_gone(unsigned number)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < LATER; i++)
    if (laters[i].owner && laters[i].number == number) laters[i] = (later){0};
  pthread_mutex_unlock(&lock);
}
