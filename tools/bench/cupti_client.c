/* cupti_client.c: what CUPTI itself costs a program whose device times are recorded.
 *
 * The same kinds of records, callbacks for the same functions, buffers of the same size, a flush as
 * often; but its callback does nothing, and what comes in buffers goes unread. What Weir's client
 * takes beyond this is Weir's own. */
#include "tools/bench/cupti_client.h"

#include <stddef.h>
#if defined(__has_include) && __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include "interpose/activity/correlated.h"

enum { BUFFERS = 8, BUFFER_BYTES = 1 << 20, FLUSH_NS = 500000000 };

#define FUNCTIONS(X)                                                                               \
  X(cuptiSubscribe)                                                                                \
  X(cuptiEnableCallback)                                                                           \
  X(cuptiActivityRegisterCallbacks)                                                                \
  X(cuptiActivityEnable)                                                                           \
  X(cuptiActivityFlushAll)

static struct {
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} cupti;

static uint8_t buffer[BUFFERS][BUFFER_BYTES] __attribute__((aligned(64)));
static uint8_t *ready[BUFFERS];
static int ready_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool find_functions(void)
{
  void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
#define FIND(name)                                                                                 \
  *(void **)&cupti.name = dlsym(library, #name);                                                   \
  if (!cupti.name) return false;
  FUNCTIONS(FIND)
#undef FIND
  return true;
}

static void CUPTIAPI ignore_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
  (void)unused, (void)domain, (void)id, (void)data;
}

static void CUPTIAPI request_buffer(uint8_t **at, size_t *bytes, size_t *most)
{
  pthread_mutex_lock(&lock);
  *at = ready_count ? ready[--ready_count] : NULL;
  pthread_mutex_unlock(&lock);
  *bytes = *at ? BUFFER_BYTES : 0;
  *most = 0;
}

static void CUPTIAPI complete_buffer(CUcontext context, uint32_t stream, uint8_t *at, size_t bytes,
                                     size_t valid)
{
  (void)context, (void)stream, (void)bytes, (void)valid;
  pthread_mutex_lock(&lock);
  ready[ready_count++] = at;
  pthread_mutex_unlock(&lock);
}

static void *flush_for_ever(void *unused)
{
  const struct timespec period = {0, FLUSH_NS};
  (void)unused;
  for (;;) {
    (void)nanosleep(&period, NULL);
    (void)cupti.cuptiActivityFlushAll(0);
  }
  return NULL;
}

typedef struct id_range {
  uint32_t first, last;
} id_range;

#define RANGE(first, last) {CUPTI_DRIVER_TRACE_CBID_##first, CUPTI_DRIVER_TRACE_CBID_##last},
static const id_range copies[] = {CORRELATED_COPIES(RANGE){1, 0}};
static const id_range launches[] = {CORRELATED_KERNELS(RANGE){1, 0}};
#undef RANGE

static void enable_callbacks(CUpti_SubscriberHandle subscriber, const id_range *range)
{
  for (; range->first <= range->last; range++)
    for (uint32_t id = range->first; id <= range->last; id++)
      (void)cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

static bool enable_kinds(bool kernels)
{
  static const CUpti_ActivityKind all[] = {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                           CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD,
                                           CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
  for (int i = 0; i < (kernels ? 5 : 3); i++)
    if (cupti.cuptiActivityEnable(all[i])) return false;
  return true;
}

bool cupti_client_start(bool kernels)
{
  CUpti_SubscriberHandle subscriber;
  pthread_t thread;
  for (int i = 0; i < BUFFERS; i++)
    complete_buffer(NULL, 0, buffer[i], 0, 0);
  if (!find_functions() || cupti.cuptiSubscribe(&subscriber, ignore_call, NULL)) return false;
  enable_callbacks(subscriber, copies);
  if (kernels) enable_callbacks(subscriber, launches);
  return !cupti.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer) &&
         enable_kinds(kernels) && !pthread_create(&thread, NULL, flush_for_ever, NULL);
}
#else
bool cupti_client_start(bool kernels)
{
  (void)kernels;
  return false;
}
#endif
