/* copy.c: which copies are staged (staging.h), and how each of CUDA's copy functions says
 * what it copies. Whatever is not plainly a copy between pageable memory and one allocation of the
 * current context is the driver's; so is one that failed, whose error the driver then words itself.
 */
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/reroute/poison.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/rules.h"
#include "interpose/staging/staging.h"

/* ---- what may be staged ---------------------------------------------------------------------- */

static bool driver_knows(uint64_t at)
{
  PFN_cuPointerGetAttribute_v4000 ask =
      WEIR_HELPER(cuPointerGetAttribute, PFN_cuPointerGetAttribute_v4000);
  CUmemorytype type = 0;
  return !ask || ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_ERROR_INVALID_VALUE;
}

/* Memory that CUDA was not told of, from its first byte to its last. */
static bool pageable(uint64_t at, uint64_t bytes)
{
  return !weir_pointer_tag(at) && !weir_pointer_tag(at + bytes - 1) && !driver_knows(at) &&
         !driver_knows(at + bytes - 1);
}

/* All of it in one allocation of the thread's context. */
static bool on_device(uint64_t at, uint64_t bytes)
{
  PFN_cuMemGetAddressRange_v3020 ask =
      WEIR_HELPER(cuMemGetAddressRange_v2, PFN_cuMemGetAddressRange_v3020);
  weir_tag tag = weir_pointer_tag(at);
  CUdeviceptr base = 0;
  size_t size = 0;
  if (weir_tag_mem(tag) != WEIR_MEM_DEVICE) return false;
  if (weir_tag_context(tag) != weir_self.last_context_number) return false;
  return ask && ask(&base, &size, at) == CUDA_SUCCESS && at - base <= size &&
         bytes <= size - (at - base);
}

/* The program's own call, to be made for a part of what it copies. */
typedef struct own_call {
  int (*part)(const struct own_call *o, uint64_t dst, uint64_t src, size_t bytes);
  void (*real)(void);
  uint64_t of_dst, of_src; /* what it says of the ends: contexts or devices; or the kind */
  void *stream;
} own_call;

typedef struct wanted {
  uint64_t dst, src, dst_pitch, src_pitch, width, rows; /* bytes; rows 1: in one dimension */
  enum weir_kind kind;                                  /* to, from or DEFAULT */
  uint64_t stream;
  bool waits;           /* the synchronous form */
  const own_call *call; /* NULL: it cannot be one between devices; borrowed */
} wanted;

/* Bytes from the first to the last; false: too many to be true. */
static bool span(uint64_t pitch, const wanted *w, uint64_t *bytes)
{
  return !__builtin_mul_overflow(pitch, w->rows - 1, bytes) &&
         !__builtin_add_overflow(*bytes, w->width, bytes);
}

static bool fits(const wanted *w, bool to)
{
  uint64_t host, device, all;
  if (!w->width || !w->rows || __builtin_mul_overflow(w->width, w->rows, &all)) return false;
  if (all < WEIR_STAGE_MIN || (w->rows > 1 && (w->dst_pitch < w->width || w->src_pitch < w->width)))
    return false;
  if (!span(to ? w->src_pitch : w->dst_pitch, w, &host) ||
      !span(to ? w->dst_pitch : w->src_pitch, w, &device))
    return false;
  return pageable(to ? w->src : w->dst, host) && on_device(to ? w->dst : w->src, device);
}

static CUstream stream_of(const weir_call *c, const wanted *w)
{
  if (w->stream) return (CUstream)(uintptr_t)w->stream;
  return c->flags & WEIR_EVF_PTDS ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* The ring's events are of the thread's context, and can be recorded in its streams only. */
static bool of_context(CUstream stream)
{
  PFN_cuStreamGetCtx_v9020 ask = WEIR_HELPER(cuStreamGetCtx, PFN_cuStreamGetCtx_v9020);
  CUcontext of = NULL;
  if ((uint64_t)(uintptr_t)stream <= WEIR_STREAM_PER_THREAD) return true;
  return ask && ask(stream, &of) == CUDA_SUCCESS &&
         (uint64_t)(uintptr_t)of == weir_self.last_context;
}

static bool wait_for_stream(CUstream stream)
{
  PFN_cuStreamSynchronize_v2000 wait =
      WEIR_HELPER(cuStreamSynchronize, PFN_cuStreamSynchronize_v2000);
  if (!wait) return false;
  weir_relaxed mode = weir_relax();
  CUresult r = wait(stream);
  weir_relax_end(&mode);
  return r == CUDA_SUCCESS;
}

static bool stage(weir_call *c, const wanted *w)
{
  CUresult r = CUDA_SUCCESS;
  if (weir_route_hands_off() || weir_route_watched()) return false;
  weir_context_refresh(&weir_self);
  bool to = w->kind == WEIR_KIND_HTOD ||
            (w->kind == WEIR_KIND_DEFAULT && weir_tag_mem(weir_pointer_tag(w->dst)));
  if (!fits(w, to)) return false;
  weir_rule_action rule = weir_rules_ask(WEIR_RULES_COPY, c->site, w->width * w->rows);
  if (rule == WEIR_RULE_STAGING_OFF) return false;
  CUstream stream = stream_of(c, w);
  if (!of_context(stream)) return false;
  /* "A stream sync is performed before the copy is initiated" (API synchronization behavior). */
  if (w->waits && !wait_for_stream(stream)) return false;
  weir_stage_copy copy = {.to_device = to,
                          .always = rule == WEIR_RULE_STAGING_ON,
                          .wait = w->waits,
                          .stream = stream,
                          .host = (char *)(uintptr_t)(to ? w->src : w->dst),
                          .host_pitch = to ? w->src_pitch : w->dst_pitch,
                          .device = to ? w->dst : w->src,
                          .device_pitch = to ? w->dst_pitch : w->src_pitch,
                          .width = w->width,
                          .rows = w->rows};
  if (!weir_stage(&copy, weir_self.last_context_number, weir_self.last_device, &r)) return false;
  if (r == CUDA_SUCCESS) c->flags |= WEIR_EVF_STAGED;
  return r == CUDA_SUCCESS;
}

static wanted flat(uint64_t dst, uint64_t src, uint64_t bytes, unsigned kind, uint64_t stream,
                   bool waits)
{
  return (wanted){.dst = dst,
                  .src = src,
                  .width = bytes,
                  .rows = 1,
                  .kind = (enum weir_kind)kind,
                  .stream = stream,
                  .waits = waits};
}

/* ---- between devices ------------------------------------------------------------------------- */

/* All of it in one allocation of a context that has a number. */
static bool in_context(uint64_t at, uint64_t bytes, unsigned *context, unsigned *device)
{
  PFN_cuMemGetAddressRange_v3020 ask =
      WEIR_HELPER(cuMemGetAddressRange_v2, PFN_cuMemGetAddressRange_v3020);
  weir_tag tag = weir_pointer_tag(at);
  CUdeviceptr base = 0;
  size_t size = 0;
  *context = weir_tag_context(tag);
  *device = weir_tag_device(tag);
  return weir_tag_mem(tag) == WEIR_MEM_DEVICE && *context && ask &&
         ask(&base, &size, at) == CUDA_SUCCESS && at - base <= size && bytes <= size - (at - base);
}

static int call_part(const void *how, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
  const own_call *o = how;
  return o->part(o, dst, src, bytes);
}

/* Between two devices. A copy in the legacy default stream, and a synchronous one, has an order
 * with other work of both devices, which the program's own call makes (staging/peer.c). */
static bool stage_peers(weir_call *c, const wanted *w)
{
  unsigned to, from;
  CUresult r;
  if (w->width < WEIR_STAGE_MIN || !w->call) return false;
  if (weir_tag_device(weir_pointer_tag(w->dst)) == weir_tag_device(weir_pointer_tag(w->src)))
    return false;
  weir_stage_peers copy = {
      .dst = w->dst, .src = w->src, .bytes = w->width, .stream = stream_of(c, w), .how = w->call};
  if (w->waits || copy.stream == CU_STREAM_LEGACY) copy.ends = call_part;
  if (weir_route_hands_off() || weir_route_watched() ||
      !in_context(w->dst, w->width, &copy.dst_context, &to) ||
      !in_context(w->src, w->width, &copy.src_context, &from) || to == from)
    return false;
  weir_context_refresh(&weir_self);
  if (!weir_stage_peer(&copy, &r) || r != CUDA_SUCCESS) return false;
  c->flags |= WEIR_EVF_STAGED;
  return true;
}

static bool stage_flat(weir_call *c, const wanted *w)
{
  if (w->width < WEIR_STAGE_MIN || w->kind == WEIR_KIND_HTOH) return false;
  if (w->kind >= WEIR_KIND_DTOD && stage_peers(c, w)) return true;
  return w->kind != WEIR_KIND_DTOD && stage(c, w);
}

/* ---- poison ---------------------------------------------------------------------------------- */

static bool to_host(const wanted *w)
{
  if (!w->width || !w->rows || (w->rows > 1 && w->dst_pitch < w->width)) return false;
  if (w->kind != WEIR_KIND_DEFAULT) return w->kind == WEIR_KIND_DTOH;
  unsigned to = weir_tag_mem(weir_pointer_tag(w->dst));
  return weir_tag_mem(weir_pointer_tag(w->src)) == WEIR_MEM_DEVICE &&
         (to == WEIR_MEM_PINNED || (!to && !driver_knows(w->dst)));
}

/* What such a copy has brought back is looked at. Into memory that the driver knows not, a copy is
 * complete when it returns ("API synchronization behavior"). */
static void look_at(const weir_call *c, const wanted *w)
{
  weir_poison_copy copy = {w->src, w->dst, w->src_pitch, w->dst_pitch, w->width, w->rows};
  if (weir_capture_live()) return;
  weir_poison_poll();
  if (!to_host(w)) return;
  weir_context_refresh(&weir_self);
  if (w->waits || c->flags & WEIR_EVF_STAGED ||
      (!weir_pointer_tag(w->dst) && !driver_knows(w->dst)))
    weir_poison_look(&copy);
  else
    weir_poison_look_later(&copy, stream_of(c, w));
}

static int done(const weir_call *c, const wanted *w, int result)
{
  if (__builtin_expect(weir_fill_use == WEIR_FILL_POISON, 0) && !result) look_at(c, w);
  return result;
}

#define AT(p)     ((uint64_t)(uintptr_t)(p))
#define PTR(a)    ((void *)(uintptr_t)(a))
#define STREAM(s) ((uint64_t)(uintptr_t)(s))

/* The part of an own_call of functions of this type. */
#define PART(name, type, ...)                                                                      \
  static int name(const own_call *o, uint64_t dst, uint64_t src, size_t bytes)                     \
  {                                                                                                \
    return (int)((type)(uintptr_t)o->real)(__VA_ARGS__);                                           \
  }
#define REAL(f) ((void (*)(void))(uintptr_t)(f))

/* ---- the runtime's --------------------------------------------------------------------------- */

PART(part_rt, cudaError_t (*)(void *, const void *, size_t, enum cudaMemcpyKind), PTR(dst),
     PTR(src), bytes, (enum cudaMemcpyKind)o->of_dst)
PART(part_rt_async,
     cudaError_t (*)(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t), PTR(dst),
     PTR(src), bytes, (enum cudaMemcpyKind)o->of_dst, o->stream)

cudaError_t weir_r_cudaMemcpy(weir_call *c,
                              cudaError_t (*real)(void *, const void *, size_t,
                                                  enum cudaMemcpyKind),
                              void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
  const own_call call = {part_rt, REAL(real), kind, 0, NULL};
  wanted w = flat(AT(dst), AT(src), bytes, kind, 0, true);
  w.call = &call;
  return (cudaError_t)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes, kind));
}

cudaError_t weir_r_cudaMemcpyAsync(weir_call *c,
                                   cudaError_t (*real)(void *, const void *, size_t,
                                                       enum cudaMemcpyKind, cudaStream_t),
                                   void *dst, const void *src, size_t bytes,
                                   enum cudaMemcpyKind kind, cudaStream_t stream)
{
  const own_call call = {part_rt_async, REAL(real), kind, 0, stream};
  wanted w = flat(AT(dst), AT(src), bytes, kind, STREAM(stream), false);
  w.call = &call;
  return (cudaError_t)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes, kind, stream));
}

static bool stage_rows(weir_call *c, const wanted *w)
{
  return w->kind != WEIR_KIND_HTOH && w->kind != WEIR_KIND_DTOD && stage(c, w);
}

cudaError_t weir_r_cudaMemcpy2D(weir_call *c,
                                cudaError_t (*real)(void *, size_t, const void *, size_t, size_t,
                                                    size_t, enum cudaMemcpyKind),
                                void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                size_t width, size_t rows, enum cudaMemcpyKind kind)
{
  wanted w = {AT(dst), AT(src), dst_pitch, src_pitch, width, rows, (enum weir_kind)kind,
              0,       true,    NULL};
  return (cudaError_t)done(
      c, &w, stage_rows(c, &w) ? 0 : (int)real(dst, dst_pitch, src, src_pitch, width, rows, kind));
}

cudaError_t
weir_r_cudaMemcpy2DAsync(weir_call *c,
                         cudaError_t (*real)(void *, size_t, const void *, size_t, size_t, size_t,
                                             enum cudaMemcpyKind, cudaStream_t),
                         void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  wanted w = {AT(dst),        AT(src), dst_pitch, src_pitch, width, rows, (enum weir_kind)kind,
              STREAM(stream), false,   NULL};
  return (cudaError_t)done(
      c, &w,
      stage_rows(c, &w) ? 0 : (int)real(dst, dst_pitch, src, src_pitch, width, rows, kind, stream));
}

/* ---- the driver's ---------------------------------------------------------------------------- */

PART(part_driver, CUresult (*)(CUdeviceptr, CUdeviceptr, size_t), dst, src, bytes)
PART(part_driver_async, CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream), dst, src, bytes,
     o->stream)

CUresult weir_r_cuMemcpy(weir_call *c, CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t),
                         CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
  const own_call call = {part_driver, REAL(real), 0, 0, NULL};
  wanted w = flat(dst, src, bytes, WEIR_KIND_DEFAULT, 0, true);
  w.call = &call;
  return (CUresult)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes));
}

CUresult weir_r_cuMemcpyAsync(weir_call *c,
                              CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t, CUstream),
                              CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
  const own_call call = {part_driver_async, REAL(real), 0, 0, stream};
  wanted w = flat(dst, src, bytes, WEIR_KIND_DEFAULT, STREAM(stream), false);
  w.call = &call;
  return (CUresult)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes, stream));
}

CUresult weir_r_cuMemcpyDtoD(weir_call *c, CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t),
                             CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
  const own_call call = {part_driver, REAL(real), 0, 0, NULL};
  wanted w = flat(dst, src, bytes, WEIR_KIND_DTOD, 0, true);
  w.call = &call;
  return stage_flat(c, &w) ? CUDA_SUCCESS : real(dst, src, bytes);
}

CUresult weir_r_cuMemcpyDtoDAsync(weir_call *c,
                                  CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t, CUstream),
                                  CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
  const own_call call = {part_driver_async, REAL(real), 0, 0, stream};
  wanted w = flat(dst, src, bytes, WEIR_KIND_DTOD, STREAM(stream), false);
  w.call = &call;
  return stage_flat(c, &w) ? CUDA_SUCCESS : real(dst, src, bytes, stream);
}

CUresult weir_r_cuMemcpyHtoD(weir_call *c, CUresult (*real)(CUdeviceptr, const void *, size_t),
                             CUdeviceptr dst, const void *src, size_t bytes)
{
  wanted w = flat(dst, AT(src), bytes, WEIR_KIND_HTOD, 0, true);
  return (CUresult)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes));
}

CUresult weir_r_cuMemcpyHtoDAsync(weir_call *c,
                                  CUresult (*real)(CUdeviceptr, const void *, size_t, CUstream),
                                  CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
  wanted w = flat(dst, AT(src), bytes, WEIR_KIND_HTOD, STREAM(stream), false);
  return (CUresult)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes, stream));
}

CUresult weir_r_cuMemcpyDtoH(weir_call *c, CUresult (*real)(void *, CUdeviceptr, size_t), void *dst,
                             CUdeviceptr src, size_t bytes)
{
  wanted w = flat(AT(dst), src, bytes, WEIR_KIND_DTOH, 0, true);
  return (CUresult)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes));
}

CUresult weir_r_cuMemcpyDtoHAsync(weir_call *c,
                                  CUresult (*real)(void *, CUdeviceptr, size_t, CUstream),
                                  void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
  wanted w = flat(AT(dst), src, bytes, WEIR_KIND_DTOH, STREAM(stream), false);
  return (CUresult)done(c, &w, stage_flat(c, &w) ? 0 : (int)real(dst, src, bytes, stream));
}

/* Between host memory and device memory, neither an array; false: it is another kind of copy. */
static bool structure(const CUDA_MEMCPY2D *p, uint64_t stream, bool waits, wanted *w)
{
  if (!p) return false;
  bool to = p->srcMemoryType == CU_MEMORYTYPE_HOST && p->dstMemoryType == CU_MEMORYTYPE_DEVICE;
  bool from = p->srcMemoryType == CU_MEMORYTYPE_DEVICE && p->dstMemoryType == CU_MEMORYTYPE_HOST;
  if (!to && !from) return false;
  *w = (wanted){.dst_pitch = p->dstPitch ? p->dstPitch : p->WidthInBytes,
                .src_pitch = p->srcPitch ? p->srcPitch : p->WidthInBytes,
                .width = p->WidthInBytes,
                .rows = p->Height,
                .kind = to ? WEIR_KIND_HTOD : WEIR_KIND_DTOH,
                .stream = stream,
                .waits = waits};
  w->dst = (to ? p->dstDevice : AT(p->dstHost)) + p->dstY * w->dst_pitch + p->dstXInBytes;
  w->src = (to ? AT(p->srcHost) : p->srcDevice) + p->srcY * w->src_pitch + p->srcXInBytes;
  return true;
}

CUresult weir_r_cuMemcpy2D(weir_call *c, CUresult (*real)(const CUDA_MEMCPY2D *),
                           const CUDA_MEMCPY2D *p)
{
  wanted w;
  if (!structure(p, 0, true, &w)) return real(p);
  return (CUresult)done(c, &w, stage(c, &w) ? 0 : (int)real(p));
}

CUresult weir_r_cuMemcpy2DAsync(weir_call *c, CUresult (*real)(const CUDA_MEMCPY2D *, CUstream),
                                const CUDA_MEMCPY2D *p, CUstream stream)
{
  wanted w;
  if (!structure(p, STREAM(stream), false, &w)) return real(p, stream);
  return (CUresult)done(c, &w, stage(c, &w) ? 0 : (int)real(p, stream));
}

/* ---- between devices: the call says which they are ------------------------------------------- */

PART(part_peer_rt, cudaError_t (*)(void *, int, const void *, int, size_t), PTR(dst),
     (int)o->of_dst, PTR(src), (int)o->of_src, bytes)
PART(part_peer_rt_async, cudaError_t (*)(void *, int, const void *, int, size_t, cudaStream_t),
     PTR(dst), (int)o->of_dst, PTR(src), (int)o->of_src, bytes, o->stream)
PART(part_peer, CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t), dst,
     PTR(o->of_dst), src, PTR(o->of_src), bytes)
PART(part_peer_async,
     CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream), dst,
     PTR(o->of_dst), src, PTR(o->of_src), bytes, o->stream)

static bool stage_devices(weir_call *c, const own_call *call, bool waits, uint64_t dst,
                          uint64_t src, size_t bytes)
{
  wanted w = flat(dst, src, bytes, WEIR_KIND_DTOD, STREAM(call->stream), waits);
  w.call = call;
  return call->of_dst == weir_tag_device(weir_pointer_tag(dst)) &&
         call->of_src == weir_tag_device(weir_pointer_tag(src)) && stage_peers(c, &w);
}

cudaError_t weir_r_cudaMemcpyPeer(weir_call *c,
                                  cudaError_t (*real)(void *, int, const void *, int, size_t),
                                  void *dst, int dst_device, const void *src, int src_device,
                                  size_t bytes)
{
  const own_call call = {part_peer_rt, REAL(real), (unsigned)dst_device, (unsigned)src_device,
                         NULL};
  return stage_devices(c, &call, true, AT(dst), AT(src), bytes)
             ? cudaSuccess
             : real(dst, dst_device, src, src_device, bytes);
}

cudaError_t weir_r_cudaMemcpyPeerAsync(
    weir_call *c, cudaError_t (*real)(void *, int, const void *, int, size_t, cudaStream_t),
    void *dst, int dst_device, const void *src, int src_device, size_t bytes, cudaStream_t stream)
{
  const own_call call = {part_peer_rt_async, REAL(real), (unsigned)dst_device, (unsigned)src_device,
                         stream};
  return stage_devices(c, &call, false, AT(dst), AT(src), bytes)
             ? cudaSuccess
             : real(dst, dst_device, src, src_device, bytes, stream);
}

static bool stage_contexts(weir_call *c, const own_call *call, bool waits, uint64_t dst,
                           uint64_t src, size_t bytes)
{
  wanted w = flat(dst, src, bytes, WEIR_KIND_DTOD, STREAM(call->stream), waits);
  w.call = call;
  return weir_context_number(call->of_dst) == weir_tag_context(weir_pointer_tag(dst)) &&
         weir_context_number(call->of_src) == weir_tag_context(weir_pointer_tag(src)) &&
         stage_peers(c, &w);
}

CUresult weir_r_cuMemcpyPeer(
    weir_call *c, CUresult (*real)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t),
    CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)
{
  const own_call call = {part_peer, REAL(real), AT(dst_context), AT(src_context), NULL};
  return stage_contexts(c, &call, true, dst, src, bytes)
             ? CUDA_SUCCESS
             : real(dst, dst_context, src, src_context, bytes);
}

CUresult weir_r_cuMemcpyPeerAsync(weir_call *c,
                                  CUresult (*real)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext,
                                                   size_t, CUstream),
                                  CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                  CUcontext src_context, size_t bytes, CUstream stream)
{
  const own_call call = {part_peer_async, REAL(real), AT(dst_context), AT(src_context), stream};
  return stage_contexts(c, &call, false, dst, src, bytes)
             ? CUDA_SUCCESS
             : real(dst, dst_context, src, src_context, bytes, stream);
}
