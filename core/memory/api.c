/* api.c: core/weir/memory.h over the pools. */
#include "core/backend/plugin.h"
#include "core/base/lock.h"
#include "core/memory/devices.h"
#include "core/memory/history.h"
#include "core/memory/host.h"
#include "core/memory/pause.h"
#include "core/trace/notify.h"
#include "core/weir/pools.h"

weir_status weir_memory_detach(weir_device device)
{
  return device_detach(device, host_pool_device_ends);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Whatever is not the plain case of weir_malloc(). */
static __attribute__((noinline)) weir_status malloc_odd(void **out, size_t bytes,
                                                        weir_device device, weir_stream *stream)
{
  attached_device *d = attached_device_of(device);
  if (!d) {
    TRY(attach_device(device, &d));
  }
  mem_heap *h = stream ? (mem_heap *)stream : current_heap(d);
  if (h->pool != d->pool)
    return fail_invalid("the stream is not of device cuda:%u", device_at(device));
  if (bytes) return weir_tcache_malloc(h, bytes, out);
  *out = NULL;
  return WEIR_OK;
}

static inline __attribute__((always_inline)) weir_status
malloc_plain(void **out, size_t bytes, weir_device device, weir_stream *stream)
{
  const attached_device *d = attached_device_of(device);
  mem_heap *h = stream ? (mem_heap *)stream : d ? current_heap_seen(d) : NULL;
  if (__builtin_expect(d && h && bytes && h->pool == d->pool, 1))
    return weir_tcache_malloc(h, bytes, out);
  return malloc_odd(out, bytes, device, stream);
}

/* The handle of the stream that a call of these arguments allocates for. */
static uint64_t native_of(weir_device device, const weir_stream *stream)
{
  attached_device *d = attached_device_of(device);
  const mem_heap *h = stream ? (const mem_heap *)stream : d ? current_heap(d) : NULL;
  return h ? (uint64_t)(uintptr_t)h->stream : 0;
}

/* Somebody listens: it is notified of the call, with what came of it. */
static __attribute__((noinline)) weir_status
malloc_notified(void **out, size_t bytes, weir_device device, weir_stream *stream)
{
  const engine_listener *l = active_listener;
  engine_notice call;
  bool notified = l && l->begin(&call);
  weir_status st = malloc_plain(out, bytes, device, stream);
  if (notified)
    l->end(&call, &(block_notice){.api = WEIR_NOTICE_MALLOC,
                                  .status = notify_status(st),
                                  .address = st ? 0 : (uint64_t)(uintptr_t)*out,
                                  .bytes = bytes,
                                  .stream = native_of(device, stream),
                                  .device = (int)device_at(device)});
  return st;
}

weir_status weir_malloc(void **out, size_t bytes, weir_device device, weir_stream *stream)
{
  WEIR_REQUIRE(out);
  if (__builtin_expect(active_listener != NULL, 0))
    return malloc_notified(out, bytes, device, stream);
  return malloc_plain(out, bytes, device, stream);
}

weir_status weir_free(void *ptr)
{
  if (__builtin_expect(active_listener != NULL, 0))
    return ptr ? notify_of_free(ptr, WEIR_NOTICE_FREE, weir_tcache_free) : WEIR_OK;
  return ptr ? weir_tcache_free(ptr) : WEIR_OK;
}

weir_status weir_record_stream(void *ptr, weir_stream *stream)
{
  WEIR_REQUIRE(stream);
  weir_status st = ptr ? pool_use(ptr, (mem_heap *)stream) : WEIR_OK;
  return st && device_forked() ? WEIR_ECUDA : st;
}

weir_status weir_memory_empty_cache(weir_device device)
{
  FIND_POOL(p, pool_of_device(device, &p));
  return weir_pool_empty(p);
}

weir_status weir_memory_trim(weir_device device, uint64_t keep_bytes)
{
  FIND_POOL(p, pool_of_device(device, &p));
  return pool_trim(p, keep_bytes);
}

weir_status weir_memory_set_fraction(weir_device device, double fraction)
{
  FIND_POOL(p, pool_of_device(device, &p));
  if (!(fraction >= 0 && fraction <= 1))
    return fail_invalid("Invalid fraction value: %g%s. Allowed range: 0~1", fraction,
                        fraction > -1e5 && fraction < 1e5 && fraction == (int)fraction ? ".0" : "");
  HOLD_LOCK(&p->lock);
  p->fraction = fraction;
  return WEIR_OK;
}

weir_status weir_memory_on_oom(weir_device device, bool (*ask)(void *user, uint64_t bytes),
                               void *user)
{
  FIND_POOL(p, pool_of_device(device, &p));
  HOLD_LOCK(&p->lock);
  p->oom = ask;
  p->oom_user = user;
  return WEIR_OK;
}

weir_status weir_memory_largest_free_block(uint64_t *out, weir_device device, weir_stream *stream)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, pool_of_device(device, &p));
  mem_heap *h = stream ? (mem_heap *)stream : current_heap(attached_device_of(device));
  *out = 0;
  HOLD_LOCK(&p->lock);
  tcache_reclaim(p);
  uint64_t own = heap_largest(h), idle = heap_largest(&p->common[HEAP_IDLE]);
  *out = own > idle ? own : idle;
  return WEIR_OK;
}

/* ---- history, pauses, private pools ---------------------------------------------------------- */

weir_status weir_memory_record_history(weir_device device, weir_history_mode mode,
                                       weir_history_context context, uint64_t max_entries)
{
  FIND_POOL(p, pool_of_device(device, &p));
  return history_set(p, mode, context, max_entries);
}

weir_status weir_memory_annotate(weir_device device, const char *name, bool begin)
{
  WEIR_REQUIRE(name);
  FIND_POOL(p, pool_of_device(device, &p));
  history_annotate(p, name, begin);
  return WEIR_OK;
}

weir_status weir_memory_history_info(weir_history_info *out, weir_device device)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, pool_of_device(device, &p));
  history_figures(p, out);
  return WEIR_OK;
}

static weir_status tag_of(const char *name, unsigned *tag)
{
  *tag = name ? tag_number(name) : ALL_TAGS;
  if (!name || *tag < WEIR_TAGS) return WEIR_OK;
  return fail_invalid("no thread ever set the tag %s", name);
}

weir_status weir_memory_pause(weir_device device, const char *tag, bool save)
{
  FIND_POOL(p, pool_of_device(device, &p));
  unsigned number;
  TRY(tag_of(tag, &number));
  HOLD_LOCK(&p->lock);
  return pool_pause(p, number, save);
}

weir_status weir_memory_resume(weir_device device, const char *tag, uint64_t *lost_bytes)
{
  FIND_POOL(p, pool_of_device(device, &p));
  unsigned number;
  uint64_t some;
  TRY(tag_of(tag, &number));
  HOLD_LOCK(&p->lock);
  return pool_resume(p, number, lost_bytes ? lost_bytes : &some);
}

weir_status weir_graph_pool_create(weir_graph_pool **out, weir_device device)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, pool_of_device(device, &p));
  HOLD_LOCK(&p->lock);
  return graph_pool_new(p, out);
}
