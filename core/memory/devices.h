/* devices.h: the devices that have a pool, by index, and how a call finds its pool and its stream.
 *
 * A thread's current streams are one array behind one pointer (core/stream/current.c), NULL for a
 * thread that never set one. An entry is believed as long as its device's generation is what it was
 * when the entry was looked at; detaching a device and releasing a stream move the generation on.
 */
#ifndef WEIR_MEMORY_DEVICES_H
#define WEIR_MEMORY_DEVICES_H

#include "core/memory/pool.h"
#include "core/weir/device.h"

enum { WEIR_DEVICES = 64 };

typedef struct weir_attached {
  _Atomic(weir_pool *) pool; /* NULL: no backend */
  weir_heap *plain;          /* of the default stream */
  _Atomic uint64_t generation;
  _Atomic uint64_t life; /* one more whenever it is detached: what was made on it is gone */
  bool opened;           /* by us at the first use, not attached by hand */
} weir_attached;

typedef struct weir_now_stream {
  weir_heap *heap;     /* NULL: the default stream */
  uint64_t serial;     /* the heap's, when it was set */
  uint64_t generation; /* the device's, when the heap was last looked at */
} weir_now_stream;

typedef struct weir_now {
  int device;               /* current index, >= 0 */
  weir_now_stream *streams; /* owned; WEIR_DEVICES of them, or NULL */
} weir_now;

extern weir_attached weir_devices[WEIR_DEVICES];
extern __thread weir_now weir_current __attribute__((tls_model("initial-exec")));

/* The entry is old: looks whether its stream is still there. */
weir_heap *weir_now_again(weir_attached *d, weir_now_stream *s);
/* The device has no pool yet: opens it, where it is a CUDA device of this machine. */
weir_status weir_attach_now(weir_device device, weir_attached **out);
/* weir_memory_detach(), whose pool `end` ends. */
weir_status weir_device_detach(weir_device device, weir_status (*end)(weir_pool *pool));

static inline unsigned weir_device_at(weir_device d)
{
  return (unsigned)(d.index.plus_1 <= 0 ? weir_current.device : d.index.plus_1 - 1);
}

/* Declares p, the pool that `find` (weir_pool_of(device, &p) or its like) finds, or returns. */
#define FIND_POOL(p, find)                                                                         \
  weir_pool *p;                                                                                    \
  do {                                                                                             \
    weir_status found_ = (find);                                                                   \
    if (found_) return found_;                                                                     \
  } while (0)

/* NULL: no such device, or it has no pool. */
static inline weir_attached *weir_attached_of(weir_device d)
{
  unsigned i = weir_device_at(d);
  if (__builtin_expect(d.type != WEIR_DEVICE_CUDA || i >= WEIR_DEVICES, 0)) return NULL;
  return atomic_load_explicit(&weir_devices[i].pool, memory_order_acquire) ? &weir_devices[i]
                                                                           : NULL;
}

/* The calling thread's current stream of the device; NULL: its entry is old, weir_now_heap() knows.
 */
static inline weir_heap *weir_now_seen(const weir_attached *d)
{
  const weir_now_stream *s = weir_current.streams;
  if (__builtin_expect(!s, 1)) return d->plain;
  s += d - weir_devices;
  if (!s->heap) return d->plain;
  return s->generation == atomic_load_explicit(&d->generation, memory_order_acquire) ? s->heap
                                                                                     : NULL;
}

static inline weir_heap *weir_now_heap(weir_attached *d)
{
  weir_heap *h = weir_now_seen(d);
  return __builtin_expect(h != NULL, 1)
             ? h
             : weir_now_again(d, &weir_current.streams[d - weir_devices]);
}

#endif
