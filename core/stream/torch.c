/* torch.c: the allocator as PyTorch's pluggable one (core/weir/torch.h). PyTorch names streams by
 * their native handles, so each thread keeps the few that it used lately: finding one anew asks the
 * driver whose it is. An entry is believed as long as its device's generation is the same. */
#include "core/weir/torch.h"

#include "core/memory/devices.h"
#include "core/weir/memory.h"

enum { SEEN = 4 };

typedef struct seen {
  void *native;
  weir_stream *stream; /* borrowed; NULL: no entry */
  uint64_t generation; /* the device's, when it was looked up */
  int device;
} seen;

static __thread seen recent[SEEN] __attribute__((tls_model("initial-exec")));

static seen *torch_slot_of(int device, void *native)
{
  uint64_t mixed = ((uint64_t)(uintptr_t)native >> 4) + (unsigned)device;
  return &recent[mixed * UINT64_C(0x9e3779b97f4a7c15) >> 62];
}

static weir_status find_native_stream(int device, void *native, weir_stream **out)
{
  weir_device d = WEIR_CUDA_AT(device);
  if (device < 0 || device >= WEIR_DEVICES)
    return fail_invalid("cuda:%d is none of the %d devices there can be", device, WEIR_DEVICES);
  weir_status st = weir_stream_from_native(out, d, native);
  const attached_device *a = st ? NULL : attached_device_of(d);
  if (a) *torch_slot_of(device, native) = (seen){native, *out, atomic_load(&a->generation), device};
  return st;
}

static weir_status stream_of_torch(int device, void *native, weir_stream **out)
{
  const seen *s = torch_slot_of(device, native);
  const attached_device *a = s->stream ? attached_device_of(WEIR_CUDA_AT(s->device)) : NULL;
  if (__builtin_expect(a && s->native == native && s->device == device &&
                           s->generation ==
                               atomic_load_explicit(&a->generation, memory_order_acquire),
                       1)) {
    *out = s->stream;
    return WEIR_OK;
  }
  return find_native_stream(device, native, out);
}

void *weir_torch_malloc(ssize_t size, int device, void *stream)
{
  weir_stream *s = NULL;
  void *out = NULL;
  if (size < 0) {
    (void)fail_invalid("%lld bytes cannot be allocated", (long long)size);
    return NULL;
  }
  if (stream_of_torch(device, stream, &s)) return NULL;
  return weir_malloc(&out, (size_t)size, WEIR_CUDA_AT(device), s) ? NULL : out;
}

void weir_torch_free(void *ptr, ssize_t size, int device, void *stream)
{
  (void)size, (void)device, (void)stream;
  (void)weir_free(ptr);
}

/* The device is the block's. */
void weir_torch_record_stream(void *ptr, void *stream)
{
  if (!ptr) return;
  weir_stream *s = NULL;
  block_id id = page_map_find((uint64_t)(uintptr_t)ptr);
  if (id && !stream_of_torch(heap_table[block(id)->heap]->pool->backend->index, stream, &s))
    (void)weir_record_stream(ptr, s);
}
