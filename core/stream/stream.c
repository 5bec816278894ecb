/* stream.c: streams as programs make them, and waiting for them (core/weir/stream.h).
 *
 * A weir_stream is a heap of its device's pool (core/memory/pool.h): a stream's memory and its
 * order are one thing to the allocator. Waits that are inserted here are reported to it, unless one
 * of the two streams is being captured: then the wait is the graph's, and orders nothing that is
 * live.
 *
 * Side streams are made once for each device, priority and place, and shared by all who ask: an
 * entry is believed when the pool still has a heap of that serial number. */
#include "core/base/lock.h"
#include "core/backend/plugin.h"
#include "core/weir/stream.h"

#include "core/stream/async_error.h"
#include "core/stream/stream.h"

enum { SIDES = 32, LEVELS = 8 }; /* of each priority, as torch; priorities distinguished */

static struct side {
  mem_heap *heap;
  uint64_t serial;
} sides[WEIR_DEVICES][LEVELS][SIDES];
static unsigned turns[WEIR_DEVICES][LEVELS];
static pthread_mutex_t sides_lock = PTHREAD_MUTEX_INITIALIZER;

weir_status stream_pool(mem_pool **out, weir_device device)
{
  if (device.type != WEIR_DEVICE_CPU) return pool_of_device(device, out);
  (void)fail_invalid("the cpu has no streams: its work is done when a call returns");
  return WEIR_EINVAL;
}

weir_status stream_or_current(mem_heap **out, weir_stream *stream)
{
  if (device_forked()) return WEIR_ECUDA;
  *out = (mem_heap *)stream;
  if (stream) return WEIR_OK;
  return weir_current_stream((weir_stream **)out, WEIR_CUDA);
}

/* ---- making them ----------------------------------------------------------------------------- */

weir_status weir_stream_from_native(weir_stream **out, weir_device device, void *native)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, stream_pool(&p, device));
  const weir_backend *b = p->backend;
  weir_status st = b->stream_adopt ? b->stream_adopt(b->self, native, &native) : WEIR_OK;
  return st ? st : pool_heap(p, native, (mem_heap **)out);
}

weir_status weir_default_stream(weir_stream **out, weir_device device)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, stream_pool(&p, device));
  return pool_heap(p, NULL, (mem_heap **)out);
}

/* A stream that is the pool's to destroy. */
static weir_status make_stream(mem_heap **out, mem_pool *p, int priority)
{
  const weir_backend *b = p->backend;
  void *native;
  if (!b->stream_create) {
    (void)fail_unsupported("the %s backend makes no streams", b->name);
    return WEIR_ENOTSUP;
  }
  weir_status st = priority && b->stream_create_at ? b->stream_create_at(b->self, priority, &native)
                                                   : b->stream_create(b->self, &native);
  if (st) return st;
  if ((st = pool_heap(p, native, out))) {
    (void)b->stream_destroy(b->self, native);
    return st;
  }
  (*out)->own = true;
  return WEIR_OK;
}

weir_status weir_stream_create(weir_stream **out, weir_device device)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, stream_pool(&p, device));
  return make_stream((mem_heap **)out, p, 0);
}

static bool is_there(mem_pool *p, const struct side *s)
{
  HOLD_LOCK(&p->lock);
  for (unsigned i = 0; i < p->heap_count; i++)
    if (heap_table[p->numbers[i]] == s->heap) return s->heap->serial == s->serial;
  return false;
}

/* The priority that the device makes of it. */
static weir_status nearest(int *priority, const weir_backend *b)
{
  int least = 0, greatest = 0;
  if (*priority > 0)
    return fail_invalid("Expected cuda stream priority to be less than or equal to 0, got %d",
                        *priority);
  weir_status st =
      b->stream_priorities ? b->stream_priorities(b->self, &least, &greatest) : WEIR_OK;
  if (greatest <= -LEVELS) greatest = 1 - LEVELS;
  if (*priority < greatest) *priority = greatest;
  return st;
}

weir_status weir_stream_new(weir_stream **out, weir_device device, int priority)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, stream_pool(&p, device));
  weir_status st = nearest(&priority, p->backend);
  if (st) return st;
  int index = p->backend->index, level = -priority;
  HOLD_LOCK(&sides_lock);
  struct side *s = &sides[index][level][turns[index][level] % SIDES];
  if (!s->heap || !is_there(p, s)) {
    st = make_stream(&s->heap, p, priority);
    if (!st) s->serial = s->heap->serial;
    if (!st) s->heap->side = true;
    if (st) s->heap = NULL;
  }
  *out = (weir_stream *)s->heap;
  turns[index][level] += !st;
  return st;
}

weir_status weir_stream_release(weir_stream *stream)
{
  WEIR_REQUIRE(stream);
  mem_heap *h = (mem_heap *)stream;
  mem_pool *p = h->pool;
  const weir_backend *b = p->backend;
  if (!h->stream) return fail_invalid("the default stream stays as long as its device");
  if (h->side)
    return fail_invalid("a stream of weir_stream_new() is shared and stays as long as its device; "
                        "weir_stream_create() makes one to be released");
  pthread_mutex_lock(&p->lock);
  weir_status st = epoch_leave(h);
  if (!st && h->own && !(st = b->stream_destroy(b->self, h->stream))) h->own = false;
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < WEIR_DEVICES; i++)
    if (atomic_load(&attached_devices[i].pool) == p) attached_devices[i].generation++;
  return st;
}

/* ---- what one is ----------------------------------------------------------------------------- */

weir_status weir_stream_native(void **out, weir_stream *stream)
{
  WEIR_REQUIRE(out, stream);
  *out = ((mem_heap *)stream)->stream;
  return WEIR_OK;
}

weir_status weir_stream_device(weir_device *out, weir_stream *stream)
{
  WEIR_REQUIRE(out, stream);
  *out = WEIR_CUDA_AT(((mem_heap *)stream)->pool->backend->index);
  return WEIR_OK;
}

static weir_status no_priorities(const weir_backend *b)
{
  return fail_unsupported("streams of the %s backend have no priorities", b->name);
}

weir_status weir_stream_priority(int *out, weir_stream *stream)
{
  WEIR_REQUIRE(out, stream);
  const mem_heap *h = (const mem_heap *)stream;
  if (device_forked()) return WEIR_ECUDA;
  const weir_backend *b = h->pool->backend;
  return b->stream_priority ? b->stream_priority(b->self, h->stream, out) : no_priorities(b);
}

weir_status weir_stream_priority_range(int *least, int *greatest, weir_device device)
{
  WEIR_REQUIRE(least, greatest);
  FIND_POOL(p, stream_pool(&p, device));
  const weir_backend *b = p->backend;
  return b->stream_priorities ? b->stream_priorities(b->self, least, greatest) : no_priorities(b);
}

/* ---- waiting --------------------------------------------------------------------------------- */

weir_status weir_stream_waited(weir_stream *waiter, weir_stream *waited)
{
  WEIR_REQUIRE(waiter, waited);
  mem_heap *a = (mem_heap *)waiter, *b = (mem_heap *)waited;
  if (device_forked()) return WEIR_ECUDA;
  if (a->pool != b->pool) return fail_invalid("the two streams are not of one device");
  HOLD_LOCK(&a->pool->lock);
  epoch_depend(a, b);
  return WEIR_OK;
}

/* The lock of `waited`'s pool is held, so that nobody records its mark again in between. */
static weir_status wait_now(mem_heap *waiter, mem_heap *waited)
{
  const weir_backend *b = waited->pool->backend, *own = waiter->pool->backend;
  bool live = waiter->pool == waited->pool && !epoch_capturing(waited);
  uint64_t epoch = live ? epoch_close(waited) : 0;
  weir_status st = waited->mark ? WEIR_OK : b->event_create(b->self, &waited->mark);
  if (!st) st = b->event_record(b->self, waited->mark, waited->stream);
  if (!st) st = own->event_wait(own->self, waiter->stream, waited->mark);
  if (!st && live && !epoch_capturing(waiter)) epoch_learn(waiter, waited, epoch, true);
  return st;
}

weir_status weir_stream_wait_stream(weir_stream *stream, weir_stream *other)
{
  WEIR_OP_HERE;
  mem_heap *waiter, *waited;
  weir_status st = stream_or_current(&waiter, stream);
  if (!st) st = stream_or_current(&waited, other);
  if (st || waiter == waited) return st;
  if (epoch_capturing(waited) && (st = graph_join(waiter, waited))) return st;
  pthread_mutex_lock(&waited->pool->lock);
  st = waited->left || waiter->left ? fail_invalid("the stream has been released")
                                    : wait_now(waiter, waited);
  pthread_mutex_unlock(&waited->pool->lock);
  return async_error((weir_stream *)waiter, "wait_stream", st);
}

weir_status weir_stream_query(bool *out, weir_stream *stream)
{
  WEIR_OP_ON(out);
  mem_heap *h;
  *out = false;
  TRY(stream_or_current(&h, stream));
  const weir_backend *b = h->pool->backend;
  if (epoch_capturing(h))
    return fail_invalid("stream_query: operation not permitted when stream is capturing");
  if (!b->stream_query)
    return fail_unsupported("streams of the %s backend cannot be asked", b->name);
  uint64_t count = async_count((weir_stream *)h);
  weir_status st = b->stream_query(b->self, h->stream, out);
  if (!st && *out) async_complete((weir_stream *)h, count);
  return async_error((weir_stream *)h, "query", st);
}

weir_status weir_stream_synchronize(weir_stream *stream)
{
  WEIR_OP_HERE;
  mem_heap *h;
  weir_status st = stream_or_current(&h, stream);
  return st ? st : async_sync((weir_stream *)h, "synchronize");
}

/* Calls `one` for every stream of the pool until one fails. Lock held. */
static weir_status each_stream(mem_pool *p, weir_status (*one)(mem_heap *h))
{
  weir_status st = WEIR_OK;
  for (unsigned i = 0; i < p->heap_count && !st; i++)
    if (!heap_table[p->numbers[i]]->left) st = one(heap_table[p->numbers[i]]);
  return st;
}

static weir_status not_captured(mem_heap *h)
{
  return epoch_capturing(h)
             ? fail_invalid("synchronize: operation not permitted when stream is capturing")
             : WEIR_OK;
}

static weir_status sync_one(mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  if (b->stream_sync) return b->stream_sync(b->self, h->stream);
  return fail_unsupported("the %s backend waits for no stream", b->name);
}

weir_status weir_synchronize(weir_device device)
{
  WEIR_OP_HERE;
  mem_pool *p;
  weir_stream *plain;
  if (device.type == WEIR_DEVICE_CPU) return WEIR_OK;
  if (device.type == WEIR_DEVICE_UNSET) device = WEIR_CUDA;
  TRY(stream_pool(&p, device));
  TRY(weir_default_stream(&plain, device));
  const weir_backend *b = p->backend;
  uint64_t count = async_count(plain);
  pthread_mutex_lock(&p->lock);
  weir_status st = each_stream(p, not_captured);
  if (!st && !b->device_sync) st = each_stream(p, sync_one);
  pthread_mutex_unlock(&p->lock);
  if (!st && b->device_sync) st = b->device_sync(b->self);
  if (st) return async_error(plain, "synchronize", st);
  pthread_mutex_lock(&p->lock);
  for (unsigned i = 0; i < p->heap_count; i++)
    async_complete((weir_stream *)heap_table[p->numbers[i]], count);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}
