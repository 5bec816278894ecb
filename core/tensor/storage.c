/* storage.c: the memory of tensors, and where work on a device goes.
 *
 * Memory of the cpu lies right after its tensor_storage: one allocation, one free. Up to SMALL
 * bytes it is as aligned as malloc()'s; beyond, data begins at a multiple of 64. From LARGE bytes
 * on the kernel is asked for huge pages, and blocks are kept when they are released (host_cache.h).
 * Page-locked and device memory come from their pools (weir_pinned_malloc, weir_malloc), which know
 * when what is freed may be used again. */
#include <stdlib.h>
#include "core/base/compiler.h"
#include "core/memory/devices.h"
#include "core/tensor/announce.h"
#include "core/tensor/host_cache.h"
#include "core/tensor/record.h"
#include "core/tensor/slots.h"

enum { ALIGNMENT = 64, SMALL = 512, LARGE = HOST_BLOCK_LEAST };

/* Where data begins in one allocation with its storage. */
enum { HEAD = 64, TINY = SLOT_STORAGE_BYTES - HEAD };
_Static_assert(sizeof(tensor_storage) <= HEAD, "the head of a storage");

/* ---- devices --------------------------------------------------------------------------------- */

weir_device device_resolve(weir_device device)
{
  if (device.type == WEIR_DEVICE_UNSET) device = weir_get_default_device();
  if (device.type == WEIR_DEVICE_CUDA) {
    if (device.index.plus_1 <= 0) device.index.plus_1 = thread_current.device + 1;
  } else if (device.index.plus_1 <= 1) {
    device.index.plus_1 = 0;
  }
  return device;
}

weir_status device_place_of(device_place *out, weir_device device)
{
  if (__builtin_expect(device.type == WEIR_DEVICE_CPU, 1)) {
    *out = (device_place){&weir_cpu_backend, NULL, NULL};
    return WEIR_OK;
  }
  attached_device *d = attached_device_of(device);
  TRY(d ? WEIR_OK : attach_device(device, &d));
  mem_heap *h = current_heap(d);
  *out = (device_place){h->pool->backend, (weir_stream *)h, h->stream};
  if (!out->backend->compute || !out->backend->copy)
    return fail_unsupported("the %s backend of cuda:%d holds memory, but no tensors",
                            out->backend->name, out->backend->index);
  return WEIR_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static weir_status no_storage_memory(uint64_t bytes)
{
  return weir_fail(WEIR_ENOMEM,
                   "DefaultCPUAllocator: can't allocate memory: you tried to allocate %llu bytes",
                   (unsigned long long)bytes);
}

/* With `room` bytes of data after it; NULL: no memory. */
static tensor_storage *storage_alloc(uint64_t room)
{
  tensor_storage *s;
  if (__builtin_expect(room <= TINY && !WEIR_ASAN, 1)) {
    s = slot_take(SLOT_STORAGE);
  } else if (room <= SMALL) {
    s = malloc(HEAD + room);
  } else {
    void *at = NULL;
    if (room > SIZE_MAX - HEAD) return NULL;
    if (room >= LARGE)
      at = host_block_take(HEAD + room);
    else if (posix_memalign(&at, ALIGNMENT, HEAD + room))
      return NULL;
    s = at;
  }
  return s;
}

static weir_status storage_on_host(tensor_storage **out, uint64_t bytes)
{
  tensor_storage *s = storage_alloc(bytes);
  if (!s) return no_storage_memory(bytes);
  *s = (tensor_storage){.refs = 1,
                        .kind = STORAGE_INLINE,
                        .device = WEIR_CPU,
                        .data = bytes ? (char *)s + HEAD : NULL,
                        .bytes = bytes};
  *out = s;
  return WEIR_OK;
}

static weir_status storage_from_pool(tensor_storage **out, uint64_t bytes, weir_device device,
                                     bool pinned)
{
  void *data = NULL;
  weir_status st =
      pinned ? weir_pinned_malloc(&data, bytes) : weir_malloc(&data, bytes, device, NULL);
  if (st) return st;
  tensor_storage *s = storage_alloc(0);
  if (!s) {
    (void)(pinned ? weir_pinned_free(data) : weir_free(data));
    return no_storage_memory(sizeof *s);
  }
  *s = (tensor_storage){.refs = 1,
                        .kind = pinned ? STORAGE_PINNED : STORAGE_DEVICE,
                        .pinned = pinned,
                        .device = device,
                        .data = data,
                        .bytes = bytes};
  *out = s;
  return WEIR_OK;
}

static weir_status check_device(weir_device device)
{
  if (device.type == WEIR_DEVICE_CUDA) return WEIR_OK;
  if (device.type != WEIR_DEVICE_CPU) return fail_invalid("%d is no device type", (int)device.type);
  return device.index.plus_1 ? fail_invalid("CPU device index must be -1 or zero, got %d",
                                            weir_device_index(device))
                             : WEIR_OK;
}

weir_status storage_new(tensor_storage **out, uint64_t bytes, weir_device device, bool pinned)
{
  *out = NULL;
  if (__builtin_expect(device.type == WEIR_DEVICE_CPU && !device.index.plus_1 && !pinned, 1))
    return storage_on_host(out, bytes);
  weir_status st = check_device(device);
  if (!st && pinned && device.type != WEIR_DEVICE_CPU)
    st = fail_invalid("Only dense CPU tensors can be pinned");
  return st ? st : storage_from_pool(out, bytes, device, pinned);
}

weir_status storage_over(tensor_storage **out, void *data, uint64_t bytes, weir_device device,
                         void (*release)(void *context), void *context)
{
  *out = NULL;
  TRY(check_device(device));
  tensor_storage *s = storage_alloc(0);
  if (!s) return no_storage_memory(sizeof *s);
  *s = (tensor_storage){.refs = 1,
                        .kind = STORAGE_OVER,
                        .device = device,
                        .data = data,
                        .bytes = bytes,
                        .release = release,
                        .context = context};
  *out = s;
  return WEIR_OK;
}

bool storage_pinned(const tensor_storage *s)
{
  bool pinned = s->pinned;
  if (s->kind != STORAGE_OVER || s->device.type != WEIR_DEVICE_CPU || pinned) return pinned;
  return !weir_is_pinned(&pinned, s->data) && pinned;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void storage_end(tensor_storage *s)
{
  announce_gone(s);
  if (s->history) tensor_recorder->memory_gone(s);
  switch (s->kind) {
  case STORAGE_PINNED:
    (void)weir_pinned_free(s->data);
    break;
  case STORAGE_DEVICE:
    (void)weir_free(s->data);
    break;
  case STORAGE_OVER:
    if (s->release) s->release(s->context);
    break;
  default:
    break;
  }
  if (s->kind != STORAGE_INLINE || s->bytes <= TINY)
    slot_give(SLOT_STORAGE, s);
  else if (s->bytes >= LARGE)
    host_block_give(s, HEAD + s->bytes);
  else
    free(s);
}

void storage_release(tensor_storage *s)
{
  if (!s) return;
  /* the only count is ours: nobody else can take another */
  if (atomic_load_explicit(&s->refs, memory_order_acquire) != 1 &&
      atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
    return;
  storage_end(s);
}
