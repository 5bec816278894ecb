/* api.c: core/weir/memory.h over the pools. */
#include "core/base/given.h"
#include "core/weir/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/stream/late.h"
#include "core/backend/plugin.h"
#include "core/memory/devices.h"
#include "core/memory/history.h"
#include "core/memory/host.h"
#include "core/memory/tags.h"
#include "core/trace/notify.h"

weir_attached weir_devices[WEIR_DEVICES];

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER; /* attach, detach, tags */
static char tags[WEIR_TAGS][32] = {"untagged"};
static unsigned tag_count = 1;

/* ---- devices ----------------------------------------------------------------------------------
 */

static weir_status attach(const weir_backend *backend, const char *conf)
{
  weir_config config = weir_config_default;
  weir_attached *d = &weir_devices[backend->index];
  weir_told_start();
  if (d->pool) return weir_fail(WEIR_EINVAL, "cuda:%d has a backend already", backend->index);
  weir_status st = weir_config_parse(&config, "WEIR_ALLOC_CONF", getenv("WEIR_ALLOC_CONF"));
  if (!st) st = weir_config_parse(&config, "conf", conf);
  weir_pool *p = NULL;
  weir_late_forget(backend->index);
  if (!st) st = weir_pool_new(&p, backend, &config);
  if (!st && (st = weir_pool_heap(p, NULL, &d->plain))) (void)weir_pool_free(p);
  if (!st && config.pinned_limit_bytes) atomic_store(&weir_host_limit, config.pinned_limit_bytes);
  if (!st) atomic_store_explicit(&d->pool, p, memory_order_release);
  return st;
}

/* A forked child keeps nothing of its parent's: no pool, no block, no lock. */
static void forget_devices(void)
{
  pthread_mutex_init(&attach_lock, NULL);
  for (int i = 0; i < WEIR_DEVICES; i++)
    atomic_store(&weir_devices[i].pool, NULL);
  weir_front_forget();
  weir_meta_forget();
}

/* attach_lock held. */
static weir_status open_cuda(int i)
{
  const weir_backend *backend;
  if (i < WEIR_DEVICES && weir_devices[i].pool) return WEIR_OK; /* somebody was faster */
  weir_device_on_fork = forget_devices;
  weir_status st = weir_device_open(i, &backend);
  if (st) return st;
  if ((st = attach(backend, NULL)))
    (void)weir_device_close(i);
  else
    weir_devices[i].opened = true;
  return st;
}

__attribute__((cold)) weir_status weir_attach_now(weir_device d, weir_attached **out)
{
  if (d.type != WEIR_DEVICE_CUDA)
    return weir_fail(WEIR_EINVAL, "the caching allocator serves cuda devices, not the cpu");
  if (weir_device_forked()) return WEIR_ECUDA;
  int i = (int)weir_device_at(d);
  pthread_mutex_lock(&attach_lock);
  weir_status st = open_cuda(i);
  pthread_mutex_unlock(&attach_lock);
  if (!st) *out = &weir_devices[i];
  return st;
}

weir_status weir_pool_of(weir_device device, weir_pool **out)
{
  weir_attached *d = weir_attached_of(device);
  weir_status st = d ? WEIR_OK : weir_attach_now(device, &d);
  if (!st) *out = atomic_load(&d->pool);
  return st;
}

/* Finds the device's pool or returns. */
#define POOL_OF(device, p)                                                                         \
  weir_attached *at_ = weir_attached_of(device);                                                   \
  weir_status there_ = at_ ? WEIR_OK : weir_attach_now(device, &at_);                              \
  if (there_) return there_;                                                                       \
  weir_pool *p = at_->pool

weir_status weir_memory_attach(const weir_backend *backend, const char *conf)
{
  WEIR_GIVEN(backend);
  if (backend->index < 0 || backend->index >= WEIR_DEVICES)
    return weir_fail(WEIR_EINVAL, "a backend's index is from 0 to %d", WEIR_DEVICES - 1);
  if (weir_device_forked()) return WEIR_ECUDA;
  pthread_mutex_lock(&attach_lock);
  weir_status st = attach(backend, conf);
  pthread_mutex_unlock(&attach_lock);
  return st;
}

weir_status weir_memory_detach(weir_device device)
{
  if (weir_device_forked()) return WEIR_ECUDA;
  pthread_mutex_lock(&attach_lock);
  weir_attached *at = weir_attached_of(device);
  weir_status st =
      at ? weir_host_device_ends(at->pool)
         : weir_fail(WEIR_EINVAL, "nothing is attached as cuda:%u", weir_device_at(device));
  if (at && !st) {
    at->generation++;
    at->life++;
    at->pool = NULL;
    if (at->opened) st = weir_device_close((int)(at - weir_devices));
    at->opened = false;
  }
  pthread_mutex_unlock(&attach_lock);
  return st;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

/* Whatever is not the plain case of weir_malloc(). */
static __attribute__((noinline)) weir_status malloc_odd(void **out, size_t bytes,
                                                        weir_device device, weir_stream *stream)
{
  weir_attached *d = weir_attached_of(device);
  if (!d) {
    weir_status st = weir_attach_now(device, &d);
    if (st) return st;
  }
  weir_heap *h = stream ? (weir_heap *)stream : weir_now_heap(d);
  if (h->pool != d->pool)
    return weir_fail(WEIR_EINVAL, "the stream is not of device cuda:%u", weir_device_at(device));
  if (bytes) return weir_front_malloc(h, bytes, out);
  *out = NULL;
  return WEIR_OK;
}

static inline __attribute__((always_inline)) weir_status
malloc_plain(void **out, size_t bytes, weir_device device, weir_stream *stream)
{
  const weir_attached *d = weir_attached_of(device);
  weir_heap *h = stream ? (weir_heap *)stream : d ? weir_now_seen(d) : NULL;
  if (__builtin_expect(d && h && bytes && h->pool == d->pool, 1))
    return weir_front_malloc(h, bytes, out);
  return malloc_odd(out, bytes, device, stream);
}

/* The handle of the stream that a call of these arguments allocates for. */
static uint64_t native_of(weir_device device, const weir_stream *stream)
{
  weir_attached *d = weir_attached_of(device);
  const weir_heap *h = stream ? (const weir_heap *)stream : d ? weir_now_heap(d) : NULL;
  return h ? (uint64_t)(uintptr_t)h->stream : 0;
}

/* Somebody listens: the call is told, with what came of it. */
static __attribute__((noinline)) weir_status malloc_told(void **out, size_t bytes,
                                                         weir_device device, weir_stream *stream)
{
  const weir_listener *l = weir_listening;
  weir_told call;
  bool told = l && l->begin(&call);
  weir_status st = malloc_plain(out, bytes, device, stream);
  if (told)
    l->end(&call, &(weir_told_block){.api = WEIR_TOLD_MALLOC,
                                     .status = weir_told_status(st),
                                     .address = st ? 0 : (uint64_t)(uintptr_t)*out,
                                     .bytes = bytes,
                                     .stream = native_of(device, stream),
                                     .device = (int)weir_device_at(device)});
  return st;
}

weir_status weir_malloc(void **out, size_t bytes, weir_device device, weir_stream *stream)
{
  WEIR_GIVEN(out);
  if (__builtin_expect(weir_listening != NULL, 0)) return malloc_told(out, bytes, device, stream);
  return malloc_plain(out, bytes, device, stream);
}

static __attribute__((noinline)) weir_status free_told(void *ptr)
{
  const weir_listener *l = weir_listening;
  weir_told call;
  weir_told_block what = weir_told_free(ptr);
  bool told = l && l->begin(&call);
  weir_status st = weir_front_free(ptr);
  what.api = WEIR_TOLD_FREE;
  what.status = weir_told_status(st);
  if (told) l->end(&call, &what);
  return st;
}

weir_status weir_free(void *ptr)
{
  if (__builtin_expect(weir_listening != NULL, 0)) return ptr ? free_told(ptr) : WEIR_OK;
  return ptr ? weir_front_free(ptr) : WEIR_OK;
}

weir_status weir_record_stream(void *ptr, weir_stream *stream)
{
  WEIR_GIVEN(stream);
  weir_status st = ptr ? weir_pool_use(ptr, (weir_heap *)stream) : WEIR_OK;
  return st && weir_device_forked() ? WEIR_ECUDA : st;
}

weir_status weir_memory_empty_cache(weir_device device)
{
  POOL_OF(device, p);
  return weir_pool_empty(p);
}

weir_status weir_memory_trim(weir_device device, uint64_t keep_bytes)
{
  POOL_OF(device, p);
  uint64_t before = weir_history_enter(p, false);
  pthread_mutex_lock(&p->lock);
  weir_front_reclaim(p);
  weir_epoch_poll(p, true, NULL);
  weir_epoch_pending(p);
  weir_epoch_retire(p, NULL);
  uint64_t more = p->reserved > keep_bytes ? p->reserved - keep_bytes : 0;
  weir_status st = more ? weir_back_trim(p, p->clock(), more, false) : WEIR_OK;
  pthread_mutex_unlock(&p->lock);
  weir_history_leave(before);
  return st;
}

weir_status weir_memory_set_fraction(weir_device device, double fraction)
{
  POOL_OF(device, p);
  if (!(fraction >= 0 && fraction <= 1))
    return weir_fail(WEIR_EINVAL, "Invalid fraction value: %g%s. Allowed range: 0~1", fraction,
                     fraction > -1e5 && fraction < 1e5 && fraction == (int)fraction ? ".0" : "");
  pthread_mutex_lock(&p->lock);
  p->fraction = fraction;
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

weir_status weir_memory_on_oom(weir_device device, bool (*ask)(void *user, uint64_t bytes),
                               void *user)
{
  POOL_OF(device, p);
  pthread_mutex_lock(&p->lock);
  p->oom = ask;
  p->oom_user = user;
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

const char *weir_tag_name(unsigned tag)
{
  return tags[tag % WEIR_TAGS];
}

unsigned weir_tag_number(const char *name)
{
  pthread_mutex_lock(&attach_lock);
  unsigned i = 0;
  while (i < tag_count && strncmp(tags[i], name, sizeof tags[i] - 1) != 0)
    i++;
  if (i == tag_count) i = WEIR_TAGS;
  pthread_mutex_unlock(&attach_lock);
  return i;
}

weir_status weir_memory_set_tag(const char *tag)
{
  weir_status st = WEIR_OK;
  unsigned i = 0;
  if (!tag) {
    weir_tag_now = 0;
    return WEIR_OK;
  }
  pthread_mutex_lock(&attach_lock);
  for (i = 1; i < tag_count && strncmp(tags[i], tag, sizeof tags[i] - 1) != 0; i++)
    ;
  if (i == WEIR_TAGS)
    st = weir_fail(WEIR_ELIMIT, "there are %d tags already, the most there can be", WEIR_TAGS - 1);
  else if (i == tag_count)
    (void)snprintf(tags[tag_count++], sizeof tags[0], "%s", tag);
  pthread_mutex_unlock(&attach_lock);
  if (!st) weir_tag_now = i;
  return st;
}

weir_status weir_memory_largest_free_block(uint64_t *out, weir_device device, weir_stream *stream)
{
  WEIR_GIVEN(out);
  POOL_OF(device, p);
  weir_heap *h = stream ? (weir_heap *)stream : weir_now_heap(at_);
  *out = 0;
  pthread_mutex_lock(&p->lock);
  weir_front_reclaim(p);
  uint64_t own = weir_heap_largest(h), idle = weir_heap_largest(&p->common[HEAP_IDLE]);
  *out = own > idle ? own : idle;
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}
