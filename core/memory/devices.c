/* devices.c: see devices.h. Opening a device at its first use, and attaching one by hand. */
#include "core/memory/devices.h"
#include "core/base/lock.h"

#include <stdlib.h>
#include "core/backend/plugin.h"
#include "core/memory/host.h"
#include "core/memory/tags.h"
#include "core/trace/notify.h"

attached_device attached_devices[WEIR_DEVICES];
__thread current_state thread_current __attribute__((tls_model("initial-exec")));

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER; /* attach, detach */

mem_heap *current_heap_refresh(attached_device *d, current_stream *s)
{
  mem_pool *p = atomic_load_explicit(&d->pool, memory_order_acquire);
  bool there = false;
  if (!p) return NULL;
  pthread_mutex_lock(&p->lock);
  uint64_t generation = atomic_load(&d->generation);
  for (unsigned i = 0; i < p->heap_count && !there; i++)
    there = heap_table[p->numbers[i]] == s->heap && s->heap->serial == s->serial && !s->heap->left;
  pthread_mutex_unlock(&p->lock);
  s->generation = generation;
  if (!there) s->heap = NULL;
  return there ? s->heap : d->plain;
}

/* ---- devices --------------------------------------------------------------------------------- */

static weir_status attach(const weir_backend *backend, const char *conf)
{
  pool_config config = pool_config_default;
  attached_device *d = &attached_devices[backend->index];
  notify_start();
  if (d->pool) return fail_invalid("cuda:%d has a backend already", backend->index);
  weir_status st = pool_config_parse(&config, "WEIR_ALLOC_CONF", getenv("WEIR_ALLOC_CONF"));
  if (!st) st = pool_config_parse(&config, "conf", conf);
  mem_pool *p = NULL;
  if (!st) st = pool_new(&p, backend, &config);
  if (!st && (st = pool_heap(p, NULL, &d->plain))) (void)pool_free(p);
  if (!st && config.pinned_limit_bytes) atomic_store(&host_pool_limit, config.pinned_limit_bytes);
  if (!st) atomic_store_explicit(&d->pool, p, memory_order_release);
  return st;
}

/* A forked child keeps nothing of its parent's: no pool, no block, no lock. */
static void forget_devices(void)
{
  pthread_mutex_init(&attach_lock, NULL);
  for (int i = 0; i < WEIR_DEVICES; i++)
    atomic_store(&attached_devices[i].pool, NULL);
  tags_forget();
  tcache_forget();
  meta_forget();
}

/* Memory that a device's own work needs, in the stream's order. */
static weir_status workspace(void **out, uint64_t bytes, int device, void *stream)
{
  mem_pool *pool;
  mem_heap *heap;
  weir_status st = pool_of_device(WEIR_CUDA_AT(device), &pool);
  if (!st) st = pool_heap(pool, stream, &heap);
  return st ? st : weir_tcache_malloc(heap, bytes, out);
}

/* Before any device is opened, by us or by hand. */
static __attribute__((constructor)) void at_load(void)
{
  device_workspace(workspace, weir_tcache_free);
}

/* attach_lock held. */
static weir_status open_cuda(int i)
{
  const weir_backend *backend;
  if (i < WEIR_DEVICES && attached_devices[i].pool) return WEIR_OK; /* somebody was faster */
  device_on_fork = forget_devices;
  weir_status st = device_open(i, &backend);
  if (st) return st;
  if ((st = attach(backend, NULL)))
    (void)device_close(i);
  else
    attached_devices[i].opened = true;
  return st;
}

__attribute__((cold)) weir_status attach_device(weir_device d, attached_device **out)
{
  if (d.type != WEIR_DEVICE_CUDA)
    return fail_invalid("the caching allocator serves cuda devices, not the cpu");
  if (device_forked()) return WEIR_ECUDA;
  int i = (int)device_at(d);
  pthread_mutex_lock(&attach_lock);
  weir_status st = open_cuda(i);
  pthread_mutex_unlock(&attach_lock);
  if (!st) *out = &attached_devices[i];
  return st;
}

weir_status pool_of_device(weir_device device, mem_pool **out)
{
  attached_device *d = attached_device_of(device);
  weir_status st = d ? WEIR_OK : attach_device(device, &d);
  if (!st) *out = atomic_load(&d->pool);
  return st;
}

weir_status weir_memory_attach(const weir_backend *backend, const char *conf)
{
  WEIR_REQUIRE(backend);
  if (backend->index < 0 || backend->index >= WEIR_DEVICES)
    return fail_invalid("a backend's index is from 0 to %d", WEIR_DEVICES - 1);
  if (device_forked()) return WEIR_ECUDA;
  HOLD_LOCK(&attach_lock);
  return attach(backend, conf);
}

weir_status device_detach(weir_device device, weir_status (*end)(mem_pool *pool))
{
  if (device_forked()) return WEIR_ECUDA;
  HOLD_LOCK(&attach_lock);
  attached_device *at = attached_device_of(device);
  weir_status st =
      at ? end(at->pool) : fail_invalid("nothing is attached as cuda:%u", device_at(device));
  if (at && !st) {
    at->generation++;
    at->life++;
    at->pool = NULL;
    if (at->opened) st = device_close((int)(at - attached_devices));
    at->opened = false;
  }
  return st;
}
