/* extract_copy.c: copies and memsets: how many bytes, from where to where, and whether the host
 * waits.
 *
 * A *side* is one end of a copy. What the call itself says about an end (the function's name, a
 * kind, a memory type) is believed; where it says nothing (cudaMemcpyDefault, cuMemcpy, unified)
 * the end is looked up in the pointer map, and in the driver when the map does not know it. A
 * copy's direction follows from its ends; between two devices it is peer to peer. Managed memory
 * counts as device.
 *
 * Bytes are payload: width * height * depth, no pitch. */
#include "interpose/record/extract.h"

#include "interpose/record/event_fill.h"
#include "interpose/record/subscriber.h"

enum said { HOST, DEVICE, EITHER, ARRAY };

/* Ahead of anything that is asked about a copy or a memset. */
static void copy_begins(const weir_call *c)
{
  if (!c->thread->last_context) weir_driver_was_used(c, WEIR_EV_COPY);
  weir_context_trusted(c->thread);
}

typedef struct side {
  uint64_t at;    /* address or array handle */
  uint8_t mem;    /* weir_mem */
  uint8_t device; /* WEIR_DEVICE_NONE: host, or not known */
  bool on_device; /* for the direction */
  weir_tag tag;   /* 0: not known */
} side;

/* The driver's word on an address that the map does not know: memory made by a way we do not wrap.
 * A question that fails means memory CUDA was not told of. */
static side ask_driver(const weir_call *c, uint64_t at)
{
  side s = {at, WEIR_MEM_PAGEABLE, WEIR_DEVICE_NONE, false, 0};
  PFN_cuPointerGetAttribute_v4000 ask =
      WEIR_HELPER(cuPointerGetAttribute, PFN_cuPointerGetAttribute_v4000);
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

static side array_side(const weir_call *c, uint64_t handle)
{
  weir_tag tag = weir_block_at(handle).tag;
  uint8_t device = (uint8_t)(tag ? weir_tag_device(tag) : c->thread->last_device);
  return (side){handle, WEIR_MEM_ARRAY, device, true, 0};
}

static side side_of(const weir_call *c, uint64_t at, enum said said)
{
  if (said == ARRAY) return array_side(c, at);
  weir_tag tag = weir_pointer_tag(at);
  if (!tag && said == EITHER) return ask_driver(c, at);
  side s = {at, (uint8_t)weir_tag_mem(tag), WEIR_DEVICE_NONE, said == DEVICE, tag};
  bool ours = s.mem == WEIR_MEM_DEVICE || s.mem == WEIR_MEM_MANAGED;
  if (said == EITHER) s.on_device = ours;
  if (!tag) s.mem = said == HOST ? WEIR_MEM_PAGEABLE : WEIR_MEM_DEVICE;
  if (s.on_device) s.device = (uint8_t)(ours ? weir_tag_device(tag) : c->thread->last_device);
  return s;
}

static weir_copy_kind direction(const side *dst, const side *src)
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
static bool copy_waits(const weir_fill *e, const side *dst, const side *src)
{
  if (e->bytes == 0 || (dst->on_device && src->on_device)) return false;
  if (!(e->flags & WEIR_EVF_ASYNC)) return true;
  if (!dst->on_device && !src->on_device) return true;
  return (dst->on_device ? src : dst)->mem == WEIR_MEM_PAGEABLE;
}

/* The context whose work the copy is: its stream's. "A memory copy will succeed even if it is
 * issued to a stream that is not associated to the current device" (CUDA C++ Programming Guide). */
static unsigned works_in(const weir_call *c, uint64_t stream)
{
  PFN_cuStreamGetCtx_v9020 ask;
  CUcontext of = NULL;
  unsigned now = c->thread->last_context_number;
  if (__builtin_expect(!weir_many_devices(), 1) || stream <= WEIR_STREAM_PER_THREAD) return now;
  if (weir_mode_now() == WEIR_OBSERVE) return now;
  ask = WEIR_HELPER(cuStreamGetCtx, PFN_cuStreamGetCtx_v9020);
  if (!ask || !weir_step_begin()) return now;
  CUresult r = ask((CUstream)(uintptr_t)stream, &of);
  weir_step_end();
  if (r != CUDA_SUCCESS) return now;
  return weir_context_number((uint64_t)(uintptr_t)of);
}

/* The driver's copy, in a context that the memory is not of: a free, which looks at the work of the
 * memory's own context, would not outlast it. */
static void reached(const weir_call *c, const side *s, unsigned works)
{
  unsigned context = weir_tag_context(s->tag);
  if (__builtin_expect(!context || context == works, 1)) return;
  if (weir_mode_now() == WEIR_OBSERVE || c->status || c->flags & WEIR_EVF_STAGED) return;
  if (s->mem == WEIR_MEM_DEVICE || s->mem == WEIR_MEM_PINNED)
    record_subscriber_now()->shared(s->at, WEIR_WHY_PEER);
}

/* The event of a copy; the sides were found with the thread's context already asked for. */
static void record(weir_call *c, side dst, side src, uint64_t bytes, uint64_t stream)
{
  unsigned works = works_in(c, stream);
  reached(c, &dst, works);
  reached(c, &src, works);
  weir_fill e = weir_begin_here(c, WEIR_EV_COPY);
  e.a = dst.at;
  e.b = src.at;
  e.bytes = bytes;
  e.mem = (uint8_t)(dst.mem | src.mem << 4);
  e.device = dst.device;
  e.src_device = src.device;
  e.copy = (uint8_t)direction(&dst, &src);
  if (c->status == 0 && copy_waits(&e, &dst, &src)) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  weir_set_work_in(&e, stream, works);
  weir_commit(c, &e);
}

static enum said kind_dst(uint64_t kind)
{
  if (kind == WEIR_KIND_HTOD || kind == WEIR_KIND_DTOD) return DEVICE;
  return kind == WEIR_KIND_HTOH || kind == WEIR_KIND_DTOH ? HOST : EITHER;
}

static enum said kind_src(uint64_t kind)
{
  if (kind == WEIR_KIND_DTOH || kind == WEIR_KIND_DTOD) return DEVICE;
  return kind == WEIR_KIND_HTOH || kind == WEIR_KIND_HTOD ? HOST : EITHER;
}

void weir_x_copy(weir_call *c, weir_word dst, weir_word src, weir_word bytes, weir_word kind,
                 weir_word stream, weir_word arrays)
{
  copy_begins(c);
  side to = side_of(c, dst, arrays & 1 ? ARRAY : kind_dst(kind));
  side from = side_of(c, src, arrays & 2 ? ARRAY : kind_src(kind));
  record(c, to, from, bytes, stream);
}

/* A symbol is named by its host shadow, which is no address of device memory: it is recorded as it
 * was given, on the current device. */
void weir_x_copy_symbol(weir_call *c, weir_word dst, weir_word src, weir_word bytes, weir_word kind,
                        weir_word to, weir_word stream)
{
  copy_begins(c);
  side symbol = {to ? dst : src, WEIR_MEM_DEVICE, c->thread->last_device, true, 0};
  side other = to ? side_of(c, src, kind_src(kind)) : side_of(c, dst, kind_dst(kind));
  record(c, to ? symbol : other, to ? other : symbol, bytes, stream);
}

/* ---- copies described by a structure --------------------------------------------------------- */

static side typed_side(const weir_call *c, CUmemorytype type, const void *host, uint64_t device,
                       CUarray array)
{
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    return side_of(c, (uint64_t)(uintptr_t)host, HOST);
  case CU_MEMORYTYPE_ARRAY:
    return array_side(c, (uint64_t)(uintptr_t)array);
  case CU_MEMORYTYPE_DEVICE:
    return side_of(c, device, DEVICE);
  default:
    return side_of(c, device, EITHER); /* CU_MEMORYTYPE_UNIFIED */
  }
}

static void record_nothing(weir_call *c, uint64_t stream)
{
  side none = {0, WEIR_MEM_UNKNOWN, WEIR_DEVICE_NONE, false, 0};
  copy_begins(c);
  record(c, none, none, 0, stream);
}

/* The ends of a CUDA_MEMCPY2D, 3D or 3D_PEER, of either ABI: the names of their fields are the
 * same. */
#define TYPED_SIDES(c, p)                                                                          \
  side dst = typed_side(c, (p)->dstMemoryType, (p)->dstHost, (p)->dstDevice, (p)->dstArray);       \
  side src = typed_side(c, (p)->srcMemoryType, (p)->srcHost, (p)->srcDevice, (p)->srcArray)

#define COPY_STRUCTURE(name, type, payload)                                                        \
  void weir_x_##name(weir_call *c, const type *p, weir_word stream)                                \
  {                                                                                                \
    if (!p) {                                                                                      \
      record_nothing(c, stream);                                                                   \
      return;                                                                                      \
    }                                                                                              \
    copy_begins(c);                                                                                \
    TYPED_SIDES(c, p);                                                                             \
    record(c, dst, src, payload, stream);                                                          \
  }

COPY_STRUCTURE(copy_2d, CUDA_MEMCPY2D, (uint64_t)p->WidthInBytes * p->Height)
COPY_STRUCTURE(copy_2d_v1, CUDA_MEMCPY2D_v1, (uint64_t)p->WidthInBytes * p->Height)
COPY_STRUCTURE(copy_3d, CUDA_MEMCPY3D, (uint64_t)p->WidthInBytes * p->Height * p->Depth)
COPY_STRUCTURE(copy_3d_v1, CUDA_MEMCPY3D_v1, (uint64_t)p->WidthInBytes * p->Height * p->Depth)

/* The context of a peer copy's end says which device it is on, where the map does not. */
static void place(side *s, uint64_t context)
{
  unsigned device = context ? weir_context_device(context) : WEIR_DEVICE_NONE;
  if (!s->on_device || weir_pointer_tag(s->at) || device == WEIR_DEVICE_NONE) return;
  s->device = (uint8_t)device;
}

void weir_x_copy_3d_peer(weir_call *c, const CUDA_MEMCPY3D_PEER *p, weir_word stream)
{
  if (!p) {
    record_nothing(c, stream);
    return;
  }
  copy_begins(c);
  TYPED_SIDES(c, p);
  place(&dst, (uint64_t)(uintptr_t)p->dstContext);
  place(&src, (uint64_t)(uintptr_t)p->srcContext);
  record(c, dst, src, p->WidthInBytes * p->Height * p->Depth, stream);
}

/* Bytes an element of the array takes: remembered from its creation, else the driver's word. */
static uint64_t element_bytes(const void *array)
{
  uint64_t element = weir_tag_element(weir_block_at((uint64_t)(uintptr_t)array).tag);
  PFN_cuArray3DGetDescriptor_v3020 ask =
      WEIR_HELPER(cuArray3DGetDescriptor_v2, PFN_cuArray3DGetDescriptor_v3020);
  CUDA_ARRAY3D_DESCRIPTOR d;
  if (!element && ask && ask(&d, (CUarray)(uintptr_t)array) == CUDA_SUCCESS)
    element = weir_format_bytes(d.Format, d.NumChannels);
  return element ? element : 1;
}

/* cudaMemcpy3D's extent is in bytes, or in elements of the array where one takes part. */
static uint64_t extent_bytes(struct cudaExtent e, const void *dst_array, const void *src_array)
{
  const void *array = dst_array ? dst_array : src_array;
  return e.width * e.height * e.depth * (array ? element_bytes(array) : 1);
}

static side parms_side(const weir_call *c, const void *array, const void *ptr, enum said said)
{
  if (array) return array_side(c, (uint64_t)(uintptr_t)array);
  return side_of(c, (uint64_t)(uintptr_t)ptr, said);
}

void weir_x_copy_3d_parms(weir_call *c, const struct cudaMemcpy3DParms *p, weir_word stream)
{
  if (!p) {
    record_nothing(c, stream);
    return;
  }
  copy_begins(c);
  side dst = parms_side(c, p->dstArray, p->dstPtr.ptr, kind_dst(p->kind));
  side src = parms_side(c, p->srcArray, p->srcPtr.ptr, kind_src(p->kind));
  record(c, dst, src, extent_bytes(p->extent, p->dstArray, p->srcArray), stream);
}

/* ---- between devices the caller names -------------------------------------------------------- */

static side device_side(const weir_call *c, uint64_t at, uint64_t device)
{
  side s = side_of(c, at, DEVICE);
  if (device < WEIR_DEVICE_NONE) s.device = (uint8_t)device;
  return s;
}

void weir_x_copy_peer(weir_call *c, weir_word dst, weir_word dst_device, weir_word src,
                      weir_word src_device, weir_word bytes, weir_word stream)
{
  copy_begins(c);
  record(c, device_side(c, dst, dst_device), device_side(c, src, src_device), bytes, stream);
}

void weir_x_copy_peer_context(weir_call *c, weir_word dst, weir_word dst_context, weir_word src,
                              weir_word src_context, weir_word bytes, weir_word stream)
{
  copy_begins(c);
  side to = side_of(c, dst, DEVICE), from = side_of(c, src, DEVICE);
  place(&to, dst_context);
  place(&from, src_context);
  record(c, to, from, bytes, stream);
}

void weir_x_copy_3d_peer_parms(weir_call *c, const struct cudaMemcpy3DPeerParms *p,
                               weir_word stream)
{
  if (!p) {
    record_nothing(c, stream);
    return;
  }
  copy_begins(c);
  side dst = parms_side(c, p->dstArray, p->dstPtr.ptr, DEVICE);
  side src = parms_side(c, p->srcArray, p->srcPtr.ptr, DEVICE);
  dst.device = (uint8_t)p->dstDevice;
  src.device = (uint8_t)p->srcDevice;
  record(c, dst, src, extent_bytes(p->extent, p->dstArray, p->srcArray), stream);
}

/* ---- memsets --------------------------------------------------------------------------------- */

/* "The synchronous memset functions are asynchronous with respect to the host except when the
 * target is pinned host memory or a Unified Memory region" (API synchronization behavior). */
void weir_x_memset(weir_call *c, weir_word dst, weir_word bytes, weir_word value, weir_word stream)
{
  copy_begins(c);
  side to = side_of(c, dst, DEVICE);
  unsigned works = works_in(c, stream);
  reached(c, &to, works);
  weir_fill e = weir_begin_here(c, WEIR_EV_MEMSET);
  e.a = dst;
  e.b = value;
  e.bytes = bytes;
  e.mem = to.mem;
  e.device = to.device;
  bool host_sees = to.mem == WEIR_MEM_PINNED || to.mem == WEIR_MEM_MANAGED;
  bool blocking = c->status == 0 && bytes && !(e.flags & WEIR_EVF_ASYNC);
  if (host_sees && blocking) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  weir_set_work_in(&e, stream, works);
  weir_commit(c, &e);
}

/* ---- batches: one call, an event a copy ------------------------------------------------------ */

void weir_x_copy_batch(weir_call *c, const CUdeviceptr *dsts, const CUdeviceptr *srcs,
                       const size_t *sizes, weir_word count, weir_word stream)
{
  if (!dsts || !srcs || !sizes || !count) record_nothing(c, stream);
  for (weir_word i = 0; dsts && srcs && sizes && i < count; i++) {
    if (i) c->flags |= WEIR_EVF_BATCH;
    weir_x_copy(c, dsts[i], srcs[i], sizes[i], WEIR_KIND_DEFAULT, stream, 0);
  }
}

static side operand_side(const weir_call *c, const CUmemcpy3DOperand *o)
{
  return o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY
             ? array_side(c, (uint64_t)(uintptr_t)o->op.array.array)
             : side_of(c, o->op.ptr.ptr, EITHER);
}

/* The extent counts elements where an array is part of the copy, else bytes. */
static uint64_t operand_element(const CUmemcpy3DOperand *o)
{
  if (o->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return 1;
  return element_bytes(o->op.array.array);
}

void weir_x_copy_3d_batch(weir_call *c, const CUDA_MEMCPY3D_BATCH_OP *list, weir_word count,
                          weir_word stream)
{
  if (!list || !count) record_nothing(c, stream);
  for (weir_word i = 0; list && i < count; i++) {
    const CUDA_MEMCPY3D_BATCH_OP *o = &list[i];
    uint64_t a = operand_element(&o->src), b = operand_element(&o->dst);
    if (i) c->flags |= WEIR_EVF_BATCH;
    copy_begins(c);
    record(c, operand_side(c, &o->dst), operand_side(c, &o->src),
           (uint64_t)o->extent.width * o->extent.height * o->extent.depth * (a > b ? a : b),
           stream);
  }
}
