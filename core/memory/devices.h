/* devices.h: the devices that have a pool, by index, and how a call finds its pool and its stream.
 *
 * A thread's current streams are one array that one pointer leads to (core/stream/current.c), NULL
 * for a thread that never set one. An entry is believed as long as its device's generation is what
 * it was when the entry was looked at; detaching a device and releasing a stream move the
 * generation on. */
#ifndef WEIR_MEMORY_DEVICES_H
#define WEIR_MEMORY_DEVICES_H

#include "core/memory/pool.h"
#include "core/weir/device.h"

enum { WEIR_DEVICES = 64 };

typedef struct attached_device {
  _Atomic(mem_pool *) pool; /* NULL: no backend */
  mem_heap *plain;          /* of the default stream */
  _Atomic uint64_t generation;
  _Atomic uint64_t life; /* one more whenever it is detached: what was made on it is gone */
  bool opened;           /* by us at the first use, not attached by hand */
} attached_device;

typedef struct current_stream {
  mem_heap *heap;      /* NULL: the default stream */
  uint64_t serial;     /* the heap's, when it was set */
  uint64_t generation; /* the device's, when the heap was last looked at */
} current_stream;

typedef struct current_state {
  int device;              /* current index, >= 0 */
  current_stream *streams; /* owned; WEIR_DEVICES of them, or NULL */
} current_state;

extern attached_device attached_devices[WEIR_DEVICES];
extern __thread current_state thread_current __attribute__((tls_model("initial-exec")));

/* The entry is old: looks whether its stream is still there. */
mem_heap *current_heap_refresh(attached_device *d, current_stream *s);
/* The device has no pool yet: opens it, where it is a CUDA device of this machine. */
weir_status attach_device(weir_device device, attached_device **out);
/* weir_memory_detach(), whose pool `end` ends. */
weir_status device_detach(weir_device device, weir_status (*end)(mem_pool *pool));

static inline unsigned device_at(weir_device d)
{
  return (unsigned)(d.index.plus_1 <= 0 ? thread_current.device : d.index.plus_1 - 1);
}

/* Declares p, the pool that `find` (pool_of_device(device, &p) or its like) finds, or returns. */
#define FIND_POOL(p, find)                                                                         \
  mem_pool *p;                                                                                     \
  do {                                                                                             \
    weir_status found_ = (find);                                                                   \
    if (found_) return found_;                                                                     \
  } while (0)

/* NULL: no such device, or it has no pool. */
static inline attached_device *attached_device_of(weir_device d)
{
  unsigned i = device_at(d);
  if (__builtin_expect(d.type != WEIR_DEVICE_CUDA || i >= WEIR_DEVICES, 0)) return NULL;
  return atomic_load_explicit(&attached_devices[i].pool, memory_order_acquire)
             ? &attached_devices[i]
             : NULL;
}

/* The calling thread's current stream of the device; NULL: its entry is old, current_heap() knows.
 */
static inline mem_heap *current_heap_seen(const attached_device *d)
{
  const current_stream *s = thread_current.streams;
  if (__builtin_expect(!s, 1)) return d->plain;
  s += d - attached_devices;
  if (!s->heap) return d->plain;
  return s->generation == atomic_load_explicit(&d->generation, memory_order_acquire) ? s->heap
                                                                                     : NULL;
}

static inline mem_heap *current_heap(attached_device *d)
{
  mem_heap *h = current_heap_seen(d);
  return __builtin_expect(h != NULL, 1)
             ? h
             : current_heap_refresh(d, &thread_current.streams[d - attached_devices]);
}

#endif
