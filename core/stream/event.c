/* event.c: events of programs (core/weir/stream.h).
 *
 * An event is made on the device of its first record. It remembers the stream and the epoch of its
 * latest record, so that a stream that waits for it is known, to the allocator, to run after what
 * had been freed by then. When its device is detached the backend's event is gone with it (`life`),
 * and the event is as if it had never been recorded. */
#include <stdlib.h>
#include "core/base/lock.h"
#include "core/stream/async_error.h"
#include "core/backend/plugin.h"
#include "core/stream/stream.h"
#include "core/weir/stream.h"

struct weir_event {
  weir_event_options options;
  void *native;                /* owned; the backend's, NULL: not made yet */
  const weir_backend *backend; /* borrowed; of its device */
  uint64_t life;               /* of the device, when it was made */
  bool captured;               /* its latest record is a graph's */
  uint16_t number;             /* heap that it was recorded in, and that heap's serial */
  uint64_t serial;
  uint64_t epoch; /* of that heap; all of it is covered */
  uint64_t count; /* operations noted on the device by then: async_error.h */
};

weir_status weir_event_new(weir_event **out, const weir_event_options *options)
{
  WEIR_REQUIRE(out);
  weir_event *e = calloc(1, sizeof *e);
  *out = e;
  if (!e) return fail_memory("an event");
  if (options) e->options = *options;
  return WEIR_OK;
}

/* Whether the backend has it: else it counts as never recorded. */
static bool is_made(weir_event *e)
{
  if (e->native && atomic_load(&attached_devices[e->backend->index].life) != e->life)
    e->native = NULL;
  return e->native != NULL;
}

void weir_event_release(weir_event *event)
{
  if (!event) return;
  if (!device_forked() && is_made(event))
    (void)event->backend->event_destroy(event->backend->self, event->native);
  free(event);
}

/* The device's default stream: whom asynchronous errors are asked of. */
static weir_stream *plain_of(const weir_event *e)
{
  return (weir_stream *)attached_devices[e->backend->index].plain;
}

static weir_status create_event_native(weir_event *e, const weir_backend *b)
{
  unsigned flags = (e->options.enable_timing ? WEIR_EVENT_TIMING : 0u) |
                   (e->options.blocking ? WEIR_EVENT_BLOCKING : 0u);
  if (flags && !b->event_create_as)
    return fail_unsupported("events of the %s backend neither measure time nor sleep", b->name);
  void *native;
  weir_status st =
      flags ? b->event_create_as(b->self, flags, &native) : b->event_create(b->self, &native);
  if (st) return st;
  e->backend = b;
  e->life = atomic_load(&attached_devices[b->index].life);
  e->native = native;
  return WEIR_OK;
}

static weir_status record_event_native(weir_event *e, mem_heap *h)
{
  const weir_backend *b = e->backend;
  bool captured = epoch_capturing(h);
  uint64_t count = async_count((weir_stream *)h);
  pthread_mutex_lock(&h->pool->lock);
  uint64_t epoch = captured ? 0 : epoch_close(h);
  weir_status st = b->event_record(b->self, e->native, h->stream);
  pthread_mutex_unlock(&h->pool->lock);
  if (st) return st;
  e->captured = captured;
  e->number = h->number;
  e->serial = h->serial;
  e->epoch = epoch;
  e->count = count;
  return WEIR_OK;
}

weir_status weir_event_record(weir_event *event, weir_stream *stream)
{
  WEIR_OP_ON(event);
  mem_heap *h;
  weir_status st = stream_or_current(&h, stream);
  if (st) return st;
  const weir_backend *b = h->pool->backend;
  if (h->left) return fail_invalid("the stream has been released");
  if (is_made(event) && event->backend != b)
    return fail_invalid("Event device %d does not match recording stream's device %d.",
                        event->backend->index, b->index);
  bool fresh = !event->native;
  if (fresh) st = create_event_native(event, b);
  if (!st && (st = record_event_native(event, h)) && fresh) { /* of no device yet */
    (void)b->event_destroy(b->self, event->native);
    event->native = NULL;
  }
  return async_error((weir_stream *)h, "record", st);
}

/* The waiter's pool knows the stream of the record, if it is still the same. */
static void learn_event(mem_heap *waiter, const weir_event *e)
{
  HOLD_LOCK(&waiter->pool->lock);
  const mem_heap *from = heap_table[e->number];
  if (from && from->pool == waiter->pool && from->serial == e->serial)
    epoch_learn(waiter, from, e->epoch, false);
}

weir_status weir_event_wait(weir_event *event, weir_stream *stream)
{
  WEIR_OP_ON(event);
  mem_heap *h;
  weir_status st = stream_or_current(&h, stream);
  if (st || !is_made(event)) return st;
  const weir_backend *b = h->pool->backend;
  if (h->left) return fail_invalid("the stream has been released");
  const mem_heap *from = event->captured ? heap_table[event->number] : NULL;
  if (from && from->serial == event->serial && (st = graph_join(h, from))) return st;
  st = b->event_wait(b->self, h->stream, event->native);
  if (!st && !event->captured && b == event->backend && !epoch_capturing(h)) learn_event(h, event);
  return async_error((weir_stream *)h, "wait", st);
}

static weir_status askable(weir_event *e)
{
  if (device_forked()) return WEIR_ECUDA;
  if (is_made(e) && e->captured)
    return fail_invalid("operation not permitted on an event last recorded in a capturing stream");
  return WEIR_OK;
}

/* The event is complete: so are the operations noted before it in its stream. */
static void note_good(const weir_event *e)
{
  mem_pool *p = atomic_load(&attached_devices[e->backend->index].pool);
  if (!p) return;
  HOLD_LOCK(&p->lock);
  mem_heap *from = heap_table[e->number];
  if (from && from->pool == p && from->serial == e->serial)
    async_complete((weir_stream *)from, e->count);
}

weir_status weir_event_query(bool *out, weir_event *event)
{
  WEIR_OP_ON(out, event);
  *out = false;
  TRY(askable(event));
  if (!event->native) {
    *out = true;
    return WEIR_OK;
  }
  const weir_backend *b = event->backend;
  weir_status st = b->event_query(b->self, event->native, out);
  if (!st && *out) note_good(event);
  return async_error(plain_of(event), "query", st);
}

weir_status weir_event_synchronize(weir_event *event)
{
  WEIR_OP_ON(event);
  weir_status st = askable(event);
  if (st || !event->native) return st;
  const weir_backend *b = event->backend;
  st = b->event_sync(b->self, event->native);
  if (!st) note_good(event);
  return async_error(plain_of(event), "synchronize", st);
}

static weir_status comparable(weir_event *start, weir_event *end)
{
  if (!start->options.enable_timing || !end->options.enable_timing)
    return fail_invalid(
        "Both events must be created with timing enabled (weir_event_options.enable_timing)");
  if (!is_made(start) || !is_made(end))
    return fail_invalid("Both events must be recorded before calculating elapsed time.");
  if (start->backend != end->backend)
    return fail_invalid(
        "Both events must be on the same device, but they are on cuda:%d and cuda:%d",
        start->backend->index, end->backend->index);
  return WEIR_OK;
}

weir_status weir_event_elapsed_time(double *out, weir_event *start, weir_event *end)
{
  WEIR_OP_ON(out, start, end);
  bool first, second;
  float ms = 0;
  *out = 0;
  TRY(comparable(start, end));
  TRY(weir_event_query(&first, start));
  TRY(weir_event_query(&second, end));
  if (!first || !second)
    return fail_invalid("Both events must be completed before calculating elapsed time.");
  const weir_backend *b = start->backend;
  weir_status st = b->event_elapsed(b->self, start->native, end->native, &ms);
  *out = ms;
  return async_error(plain_of(start), "elapsed_time", st);
}

weir_status weir_event_device(weir_device *out, weir_event *event)
{
  WEIR_REQUIRE(out, event);
  if (!is_made(event))
    return fail_invalid(
        "an event is of the device it is first recorded on, and this one has not been recorded");
  *out = WEIR_CUDA_AT(event->backend->index);
  return WEIR_OK;
}
