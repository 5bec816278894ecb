/* extract_copy.c: copies and memsets: how many bytes, from where to where, and whether the host
 * waits.
 *
 * A *side* is what an end of a copy (copy_args.h) turns out to be. What the call itself specifies
 * of it is believed; where it specifies nothing (cudaMemcpyDefault, cuMemcpy, unified) the end is
 * looked up in the pointer map, and in the driver when the map does not know it. A copy's
 * direction follows from its sides; between two devices it is peer to peer. Managed memory counts
 * as device.
 *
 * Bytes are payload: width * height * depth, no pitch. */
#include "interpose/record/extract.h"

#include "interpose/record/copy_sites.h"
#include "interpose/record/device_memory.h"
#include "interpose/record/graph.h"
#include "interpose/record/subscriber.h"

/* Before anything that is asked about a copy or a memset. */
WEIR_INLINE void copy_begins(const hook_call *c)
{
  if (!c->thread->last_context) driver_note_use(c, WEIR_EV_COPY);
  context_refresh_trusted(c->thread);
}

typedef struct side {
  uint64_t at;    /* address or array handle */
  uint8_t mem;    /* memory_kind */
  uint8_t device; /* WEIR_DEVICE_NONE: host, or not known */
  bool on_device; /* for the direction */
  block_tag tag;  /* 0: not known */
} side;

/* The driver's word on an address that the map does not know: memory made by a way we do not wrap.
 * A question that fails means memory CUDA does not know of. */
static side query_driver_side(const hook_call *c, uint64_t at)
{
  side s = {at, WEIR_MEM_PAGEABLE, WEIR_DEVICE_NONE, false, 0};
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  CUmemorytype type = 0;
  unsigned managed = 0;
  int device = -1;
  if (!ask || ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS || !type) return s;
  if (ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) != CUDA_SUCCESS) managed = 0;
  s.on_device = managed || type != CU_MEMORYTYPE_HOST;
  s.mem = managed ? WEIR_MEM_MANAGED : s.on_device ? WEIR_MEM_DEVICE : WEIR_MEM_PINNED;
  if (!s.on_device) return s;
  bool known = ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) == CUDA_SUCCESS && device >= 0;
  s.device = (uint8_t)(known ? (unsigned)device : c->thread->last_device);
  return s;
}

static side array_side(const hook_call *c, uint64_t handle)
{
  block_tag tag = pointer_block_at(handle).tag;
  uint8_t device = (uint8_t)(tag ? block_tag_device(tag) : c->thread->last_device);
  return (side){handle, WEIR_MEM_ARRAY, device, true, 0};
}

static side memory_side(const hook_call *c, uint64_t at, enum copy_end end)
{
  block_tag tag = pointer_tag(at);
  if (!tag && end != COPY_HOST && end != COPY_DEVICE) return query_driver_side(c, at);
  side s = {at, (uint8_t)block_tag_mem(tag), WEIR_DEVICE_NONE, end == COPY_DEVICE, tag};
  bool ours = s.mem == WEIR_MEM_DEVICE || s.mem == WEIR_MEM_MANAGED;
  if (end != COPY_HOST && end != COPY_DEVICE) s.on_device = ours;
  if (!tag) s.mem = end == COPY_HOST ? WEIR_MEM_PAGEABLE : WEIR_MEM_DEVICE;
  if (s.on_device) s.device = (uint8_t)(ours ? block_tag_device(tag) : c->thread->last_device);
  return s;
}

/* A symbol is named by its host shadow, which is no address of device memory: it is recorded as it
 * was given, on the current device. */
static side side_of(const hook_call *c, uint64_t at, enum copy_end end)
{
  if (__builtin_expect(end < COPY_ARRAY, 1)) return memory_side(c, at, end);
  if (end == COPY_ARRAY) return array_side(c, at);
  if (end == COPY_SYMBOL) return (side){at, WEIR_MEM_DEVICE, c->thread->last_device, true, 0};
  if (end == COPY_NONE) return (side){0, WEIR_MEM_UNKNOWN, WEIR_DEVICE_NONE, false, 0};
  return memory_side(c, at, COPY_EITHER);
}

/* The device that a call names is believed; a context determines it where the map does not. */
static void device_from_context(side *s, const copy_args *a, uint64_t owner)
{
  if (a->owners == COPY_DEVICES && owner < WEIR_DEVICE_NONE) s->device = (uint8_t)owner;
  if (a->owners != COPY_CONTEXTS || !owner || !s->on_device || s->tag) return;
  unsigned device = context_device(owner);
  if (device != WEIR_DEVICE_NONE) s->device = (uint8_t)device;
}

static copy_kind direction(const side *dst, const side *src)
{
  if (!dst->on_device) return src->on_device ? WEIR_COPY_DTOH : WEIR_COPY_HTOH;
  if (!src->on_device) return WEIR_COPY_HTOD;
  bool two = dst->device != src->device && dst->device != WEIR_DEVICE_NONE &&
             src->device != WEIR_DEVICE_NONE;
  return two ? WEIR_COPY_PTOP : WEIR_COPY_DTOD;
}

/* CUDA's "API synchronization behavior" (runtime and driver manuals), memcpy. Synchronous form:
 * from and to host memory the function waits ("a stream sync is performed before the copy is
 * initiated" even for pageable sources); "from device memory to device memory, no host-side
 * synchronization is performed". Asynchronous form: pageable host memory "might be synchronous with
 * respect to host", and host to host "is fully synchronous". */
static bool copy_waits(const copy_args *a, const event_fields *e, const side *dst, const side *src)
{
  if (e->bytes == 0 || (dst->on_device && src->on_device)) return false;
  if (a->blocking) return true;
  if (!dst->on_device && !src->on_device) return true;
  return (dst->on_device ? src : dst)->mem == WEIR_MEM_PAGEABLE;
}

__attribute__((noinline)) static unsigned ask_working_context(unsigned now, uint64_t stream)
{
  PFN_cuStreamGetCtx_v9020 ask;
  CUcontext of = NULL;
  if (process_mode_now() == WEIR_OBSERVE) return now;
  ask = WEIR_HELPER(cuStreamGetCtx);
  if (!ask || !capture_step_begin()) return now;
  CUresult r = ask((CUstream)(uintptr_t)stream, &of);
  capture_step_end();
  if (r != CUDA_SUCCESS) return now;
  return context_number((uint64_t)(uintptr_t)of);
}

/* The context whose work the copy is: its stream's. "A memory copy will succeed even if it is
 * issued to a stream that is not associated to the current device" (CUDA C++ Programming Guide). */
WEIR_INLINE unsigned working_context(const hook_call *c, uint64_t stream)
{
  unsigned now = c->thread->last_context_number;
  if (__builtin_expect(!context_many_devices(), 1) || stream <= WEIR_STREAM_PER_THREAD) return now;
  return ask_working_context(now, stream);
}

/* The driver's copy, in a context that the memory is not of: a free, which looks at the work of the
 * memory's own context, would not outlast it. */
static void note_shared_memory(const hook_call *c, const side *s, unsigned works)
{
  unsigned context = block_tag_context(s->tag);
  if (__builtin_expect(!context || context == works, 1)) return;
  if (process_mode_now() == WEIR_OBSERVE || c->status || c->flags & WEIR_EVF_STAGED) return;
  if (s->mem == WEIR_MEM_DEVICE || s->mem == WEIR_MEM_PINNED)
    record_subscriber_now()->shared(s->at, WEIR_WHY_PEER);
}

WEIR_INLINE void note_shared_end(const hook_call *c, uint64_t at, unsigned works)
{
  block_tag tag = at ? pointer_tag(at) : 0;
  if (!tag) return;
  const side s = {.at = at, .mem = (uint8_t)block_tag_mem(tag), .tag = tag};
  note_shared_memory(c, &s, works);
}

/* All that is done where nothing is written: a free must outlast the work. An end that is no
 * address is 0. */
static void note_work_alone(const hook_call *c, uint64_t dst, uint64_t src, uint64_t stream)
{
  copy_begins(c);
  unsigned works = working_context(c, stream);
  note_shared_end(c, dst, works);
  note_shared_end(c, src, works);
  if (process_mode_now() == WEIR_RELAXED) work_note(works, stream_of_call(c->flags, stream));
}

static uint64_t address_of_end(uint64_t at, uint8_t end)
{
  return end == COPY_ARRAY || end == COPY_SYMBOL ? 0 : at;
}

/* Bytes an element of the array takes: remembered from its creation, else the driver's word. */
static uint64_t element_bytes(uint64_t at, enum copy_end end)
{
  if (end != COPY_ARRAY) return 1;
  uint64_t element = block_tag_element(pointer_block_at(at).tag);
  PFN_cuArray3DGetDescriptor_v3020 ask = WEIR_HELPER(cuArray3DGetDescriptor_v2);
  CUDA_ARRAY3D_DESCRIPTOR d;
  if (!element && ask && ask(&d, (CUarray)(uintptr_t)at) == CUDA_SUCCESS)
    element = extract_format_bytes(d.Format, d.NumChannels);
  return element ? element : 1;
}

static uint64_t payload(const copy_args *a)
{
  uint64_t bytes = a->width * a->height * a->depth;
  if (__builtin_expect(!a->elements, 1)) return bytes;
  uint64_t dst = element_bytes(a->dst, (enum copy_end)a->dst_end);
  uint64_t src = element_bytes(a->src, (enum copy_end)a->src_end);
  return bytes * (dst > src ? dst : src);
}

WEIR_INLINE void resolve_sides(const hook_call *c, const copy_args *a, side *dst, side *src)
{
  *dst = side_of(c, a->dst, (enum copy_end)a->dst_end);
  *src = side_of(c, a->src, (enum copy_end)a->src_end);
  if (__builtin_expect(a->owners != COPY_NO_OWNERS, 0)) {
    device_from_context(dst, a, a->dst_owner);
    device_from_context(src, a, a->src_owner);
  }
}

WEIR_INLINE void fill_copy(event_fields *e, const copy_args *a, const side *dst, const side *src)
{
  e->a = dst->at;
  e->b = src->at;
  e->bytes = payload(a);
  e->mem = (uint8_t)(dst->mem | src->mem << 4);
  e->device = dst->device;
  e->src_device = src->device;
  event_set_copy_kind(e, direction(dst, src));
}

void record_copy(hook_call *c, const copy_args *a)
{
  side dst, src;
  uint64_t stack;
  if (__builtin_expect(process_unrecorded, 0)) {
    note_work_alone(c, address_of_end(a->dst, a->dst_end), address_of_end(a->src, a->src_end),
                    a->stream);
    return;
  }
  copy_begins(c);
  resolve_sides(c, a, &dst, &src);
  unsigned works = working_context(c, a->stream);
  note_shared_memory(c, &dst, works);
  note_shared_memory(c, &src, works);
  event_fields e = event_begin_here(c, WEIR_EV_COPY);
  fill_copy(&e, a, &dst, &src);
  if (c->status == 0 && copy_waits(a, &e, &dst, &src)) {
    e.flags |= WEIR_EVF_IMPLICIT_SYNC;
    device_memory_waited(c);
  }
  event_set_work_in(&e, a->stream, works);
  if (!event_prepare(c, &e, &stack)) return;
  copy_show(c, &e, a, stack);
  event_write(c, &e, stack);
}

void copy_describe(const hook_call *c, const copy_args *a, event_fields *e)
{
  side dst, src;
  resolve_sides(c, a, &dst, &src);
  fill_copy(e, a, &dst, &src);
}

void memset_describe(const hook_call *c, uint64_t dst, uint64_t bytes, event_fields *e)
{
  side to = side_of(c, dst, COPY_DEVICE);
  e->a = dst;
  e->bytes = bytes;
  e->mem = to.mem;
  e->device = to.device;
}

/* ---- memsets --------------------------------------------------------------------------------- */

/* "The synchronous memset functions are asynchronous with respect to the host except when the
 * target is pinned host memory or a Unified Memory region" (API synchronization behavior). */
void extract_memset(hook_call *c, extract_word dst, extract_word bytes, extract_word value,
                    extract_word stream)
{
  if (__builtin_expect(process_unrecorded, 0)) {
    note_work_alone(c, dst, 0, stream);
    return;
  }
  copy_begins(c);
  side to = side_of(c, dst, COPY_DEVICE);
  unsigned works = working_context(c, stream);
  note_shared_memory(c, &to, works);
  event_fields e = event_begin_here(c, WEIR_EV_MEMSET);
  e.a = dst;
  e.b = value;
  e.bytes = bytes;
  e.mem = to.mem;
  e.device = to.device;
  bool host_sees = to.mem == WEIR_MEM_PINNED || to.mem == WEIR_MEM_MANAGED;
  bool blocking = c->status == 0 && bytes && !(e.flags & WEIR_EVF_ASYNC);
  if (host_sees && blocking) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  event_set_work_in(&e, stream, works);
  event_commit(c, &e);
}

/* ---- batches: one call, an event a copy ------------------------------------------------------ */

static void record_nothing(hook_call *c, uint64_t stream)
{
  const copy_args none = {.stream = stream, .dst_end = COPY_NONE, .src_end = COPY_NONE};
  record_copy(c, &none);
}

void extract_copy_batch(hook_call *c, const CUdeviceptr *dsts, const CUdeviceptr *srcs,
                        const size_t *sizes, extract_word count, extract_word stream)
{
  if (!dsts || !srcs || !sizes || !count) record_nothing(c, stream);
  for (extract_word i = 0; dsts && srcs && sizes && i < count; i++) {
    copy_args a = copy_args_plain(dsts[i], srcs[i], sizes[i], WEIR_KIND_DEFAULT, 0, stream, false);
    if (i) c->flags |= WEIR_EVF_BATCH;
    record_copy(c, &a);
  }
}

void extract_copy_3d_batch(hook_call *c, const CUDA_MEMCPY3D_BATCH_OP *list, extract_word count,
                           extract_word stream)
{
  if (!list || !count) record_nothing(c, stream);
  for (extract_word i = 0; list && i < count; i++) {
    copy_args a = copy_args_batch_op(&list[i], stream);
    if (i) c->flags |= WEIR_EVF_BATCH;
    record_copy(c, &a);
  }
}

/* Hints on ranges of managed memory, and decompressions: no copies of the program's, but each with
 * its bytes. */
static void record_item(hook_call *c, extract_word i, uint64_t a, uint64_t b, uint64_t bytes,
                        uint64_t stream)
{
  if (i) c->flags |= WEIR_EVF_BATCH;
  extract_call(c, a, b, bytes, stream);
}

void extract_call_batch(hook_call *c, const CUdeviceptr *dsts, const size_t *sizes,
                        extract_word count, extract_word b, extract_word stream)
{
  if (!dsts || !sizes || !count) extract_call(c, 0, b, 0, stream);
  for (extract_word i = 0; dsts && sizes && i < count; i++)
    record_item(c, i, dsts[i], b, sizes[i], stream);
}

void extract_decompress(hook_call *c, const CUmemDecompressParams *params, extract_word count,
                        extract_word stream)
{
  if (!params || !count) extract_call(c, 0, 0, 0, stream);
  for (extract_word i = 0; params && i < count; i++)
    record_item(c, i, (uint64_t)(uintptr_t)params[i].dst, (uint64_t)(uintptr_t)params[i].src,
                params[i].dstNumBytes, stream);
}
