/* current.c: what is current for a thread: its device and, for each device, a stream.
 *
 * Words. now: a thread's current_state (core/memory/devices.h). guard: what a change brings back.
 *
 * A thread that only ever names its streams costs nothing here: its array of streams is made when
 * it first sets one. A stream may be released, or its device detached, while it is a thread's
 * current stream; an entry therefore carries the stream's serial number and the device's
 * generation, and is never followed before both are known to hold. A guard keeps entries, not
 * streams, for the same reason. */
#include <stdlib.h>
#include "core/backend/plugin.h"
#include "core/memory/devices.h"

static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_current_thread(void *streams)
{
  thread_current.streams = NULL;
  free(streams);
}

static void prepare_current(void)
{
  (void)pthread_key_create(&ended, end_current_thread);
}

/* The thread's entries; NULL: no host memory. */
static current_stream *entries(void)
{
  if (thread_current.streams) return thread_current.streams;
  pthread_once(&once, prepare_current);
  current_stream *s = calloc(WEIR_DEVICES, sizeof *s);
  if (s && pthread_setspecific(ended, s)) {
    free(s);
    s = NULL;
  }
  return thread_current.streams = s;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* NULL: the device has no pool yet. */
static const weir_backend *backend_of(int index)
{
  attached_device *d = attached_device_of(WEIR_CUDA_AT(index));
  mem_pool *p = d ? atomic_load_explicit(&d->pool, memory_order_acquire) : NULL;
  return p ? p->backend : NULL;
}

/* Notifies the device's own runtime, where the backend wants to know. */
static void make_current(int index)
{
  thread_current.device = index;
  const weir_backend *b = backend_of(index);
  if (b && b->make_current) b->make_current(b->self);
}

weir_status weir_set_device(weir_device device)
{
  if (device.type != WEIR_DEVICE_CUDA)
    return fail_invalid("only cuda devices can be made current, not the cpu");
  int index = weir_device_index(device);
  if (index >= WEIR_DEVICES)
    return fail_invalid("invalid device ordinal: cuda:%d, the highest there can be is %d", index,
                        WEIR_DEVICES - 1);
  if (index >= 0) make_current(index);
  return WEIR_OK;
}

weir_status weir_current_device(weir_device *out)
{
  WEIR_REQUIRE(out);
  *out = WEIR_CUDA_AT(thread_current.device);
  return WEIR_OK;
}

weir_status weir_can_access_peer(bool *out, weir_device device, weir_device peer)
{
  WEIR_REQUIRE(out);
  *out = false;
  if (device.type != WEIR_DEVICE_CUDA || peer.type != WEIR_DEVICE_CUDA)
    return fail_invalid("only cuda devices can access each other, not %s and %s",
                        weir_device_name(device), weir_device_name(peer));
  return device_reach((int)device_at(device), (int)device_at(peer), out);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The default stream needs no entry, so setting it needs no memory. */
static weir_status set_stream(mem_heap *h)
{
  int index = h->pool->backend->index;
  attached_device *d = &attached_devices[index];
  current_stream *s = h == d->plain ? thread_current.streams : entries();
  if (!s && h != d->plain) return fail_memory("the current streams");
  if (s) s[index] = (current_stream){h, h->serial, atomic_load(&d->generation)};
  return WEIR_OK;
}

weir_status weir_set_current_stream(weir_stream *stream)
{
  mem_heap *h = (mem_heap *)stream;
  weir_status st = h ? set_stream(h) : WEIR_OK;
  if (h && !st) make_current(h->pool->backend->index);
  return st;
}

weir_status weir_current_stream(weir_stream **out, weir_device device)
{
  WEIR_REQUIRE(out);
  attached_device *d = attached_device_of(device);
  TRY(d ? WEIR_OK : attach_device(device, &d));
  *out = (weir_stream *)current_heap(d);
  return WEIR_OK;
}

/* ---- guards ---------------------------------------------------------------------------------- */

static void keep_current(weir_guard *g, int slot, int index)
{
  const current_stream *s = thread_current.streams;
  if (index < 0 || index >= WEIR_DEVICES) return;
  g->of[slot] = index;
  if (!s) return;
  g->stream[slot] = (weir_stream *)s[index].heap;
  g->serial[slot] = s[index].serial;
  g->generation[slot] = s[index].generation;
}

/* What the program itself made current: device `index` is about to be. */
static void keep_native(weir_guard *g, int index)
{
  const weir_backend *b = backend_of(index);
  if (!b || !b->current) return;
  g->kept = true;
  g->by = index;
  g->native = b->current(b->self);
}

static void bring_device_back(const weir_guard *g)
{
  const weir_backend *b = g->kept ? backend_of(g->by) : NULL;
  if (b && b->bring_back) {
    thread_current.device = g->device;
    b->bring_back(b->self, g->native);
  } else {
    make_current(g->device);
  }
}

void weir_device_enter(weir_guard *out, weir_device device)
{
  if (!out) return;
  *out = (weir_guard){.todo = true, .device = -1, .of = {-1, -1}};
  int index = weir_device_index(device);
  if (device.type != WEIR_DEVICE_CUDA || index < 0) return;
  out->device = thread_current.device;
  keep_native(out, index);
  make_current(index);
}

weir_status weir_stream_enter(weir_guard *out, weir_stream *stream)
{
  WEIR_REQUIRE(out);
  const mem_heap *h = (const mem_heap *)stream;
  *out = (weir_guard){.todo = true, .device = -1, .of = {-1, -1}};
  if (!h) return WEIR_OK;
  int index = h->pool->backend->index, before = thread_current.device;
  weir_guard kept = *out;
  kept.device = before;
  keep_native(&kept, index);
  keep_current(&kept, 0, index);
  if (index != before) keep_current(&kept, 1, before);
  weir_status st = weir_set_current_stream(stream);
  if (!st) *out = kept;
  return st;
}

void weir_guard_leave(weir_guard *g)
{
  if (!g) return;
  for (int i = 0; i < 2; i++)
    if (g->of[i] >= 0 && thread_current.streams)
      thread_current.streams[g->of[i]] =
          (current_stream){(mem_heap *)g->stream[i], g->serial[i], g->generation[i]};
  if (g->device >= 0) bring_device_back(g);
  *g = (weir_guard){.device = -1, .of = {-1, -1}};
}
