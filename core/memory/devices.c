/* devices.c: see devices.h. Opening a device at its first use, and attaching one by hand. */
#include "core/memory/devices.h"

#include <stdlib.h>
#include "core/backend/plugin.h"
#include "core/base/require.h"
#include "core/memory/host.h"
#include "core/memory/tags.h"
#include "core/trace/notify.h"

weir_attached weir_devices[WEIR_DEVICES];
__thread weir_now weir_current __attribute__((tls_model("initial-exec")));

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER; /* attach, detach */

weir_heap *weir_now_again(weir_attached *d, weir_now_stream *s)
{
  weir_pool *p = atomic_load_explicit(&d->pool, memory_order_acquire);
  bool there = false;
  if (!p) return NULL;
  pthread_mutex_lock(&p->lock);
  uint64_t generation = atomic_load(&d->generation);
  for (unsigned i = 0; i < p->heap_count && !there; i++)
    there = weir_heaps[p->numbers[i]] == s->heap && s->heap->serial == s->serial && !s->heap->left;
  pthread_mutex_unlock(&p->lock);
  s->generation = generation;
  if (!there) s->heap = NULL;
  return there ? s->heap : d->plain;
}

/* ---- devices --------------------------------------------------------------------------------- */

static weir_status attach(const weir_backend *backend, const char *conf)
{
  weir_config config = weir_config_default;
  weir_attached *d = &weir_devices[backend->index];
  weir_notify_start();
  if (d->pool) return weir_fail(WEIR_EINVAL, "cuda:%d has a backend already", backend->index);
  weir_status st = weir_config_parse(&config, "WEIR_ALLOC_CONF", getenv("WEIR_ALLOC_CONF"));
  if (!st) st = weir_config_parse(&config, "conf", conf);
  weir_pool *p = NULL;
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
  weir_tags_forget();
  weir_tcache_forget();
  weir_meta_forget();
}

/* Memory that a device's own work needs, in the stream's order. */
static weir_status workspace(void **out, uint64_t bytes, int device, void *stream)
{
  weir_pool *pool;
  weir_heap *heap;
  weir_status st = weir_pool_of(WEIR_CUDA_AT(device), &pool);
  if (!st) st = weir_pool_heap(pool, stream, &heap);
  return st ? st : weir_tcache_malloc(heap, bytes, out);
}

/* Before any device is opened, by us or by hand. */
static __attribute__((constructor)) void at_load(void)
{
  weir_device_workspace(workspace, weir_tcache_free);
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

weir_status weir_memory_attach(const weir_backend *backend, const char *conf)
{
  WEIR_REQUIRE(backend);
  if (backend->index < 0 || backend->index >= WEIR_DEVICES)
    return weir_fail(WEIR_EINVAL, "a backend's index is from 0 to %d", WEIR_DEVICES - 1);
  if (weir_device_forked()) return WEIR_ECUDA;
  pthread_mutex_lock(&attach_lock);
  weir_status st = attach(backend, conf);
  pthread_mutex_unlock(&attach_lock);
  return st;
}

weir_status weir_device_detach(weir_device device, weir_status (*end)(weir_pool *pool))
{
  if (weir_device_forked()) return WEIR_ECUDA;
  pthread_mutex_lock(&attach_lock);
  weir_attached *at = weir_attached_of(device);
  weir_status st =
      at ? end(at->pool)
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
