/* extract.c: what the arguments of a call mean (extract.h): memory, waits, streams, launches,
 * contexts. Copies and memsets are in extract_copy.c.
 *
 * Invariants: an extractor is called with the thread's depth raised, after the real function has
 * returned; a record beside the event (NAME) is written before the event's slot is taken; the
 * pointer map is kept whether or not the event found room. */
#include "interpose/record/extract.h"

#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/record/names.h"
#include "interpose/record/pools.h"
#include "interpose/elf/elf.h"
#include "interpose/record/subscriber.h"

/* ---- memory ---------------------------------------------------------------------------------- */

WEIR_INLINE void remember(const weir_call *c, uint64_t ptr, uint64_t bytes, unsigned mem,
                          unsigned device, weir_tag more)
{
  if (c->status != 0 || !ptr || c->routed) return;
  record_subscriber_now()->allocated(ptr);
  weir_tag tag = weir_tag_make(mem, device, c->thread->last_context_number);
  weir_block_add((weir_block){ptr, bytes, tag | more});
}

WEIR_INLINE weir_fill begin_alloc(weir_call *c, uint64_t ptr, uint64_t bytes, unsigned mem,
                                  unsigned device, weir_tag more)
{
  weir_fill e = weir_begin_here(c, WEIR_EV_ALLOC);
  remember(c, ptr, bytes, mem, device, more);
  e.a = ptr;
  e.bytes = bytes;
  e.copy = c->why;
  e.mem = (uint8_t)mem;
  e.device = (uint8_t)(mem == WEIR_MEM_PINNED ? WEIR_DEVICE_NONE : device);
  return e;
}

/* The device a call without one works on. Who took the memory from a cache has asked already. */
WEIR_INLINE unsigned here(const weir_call *c)
{
  if (!c->routed) {
    weir_driver_was_used(c, WEIR_EV_ALLOC);
    weir_context_refresh(c->thread);
  }
  return c->thread->last_device;
}

void weir_x_alloc(weir_call *c, weir_word ptr, weir_word bytes, weir_word mem)
{
  weir_fill e = begin_alloc(c, ptr, bytes, (unsigned)mem, here(c), 0);
  weir_commit(c, &e);
}

/* Bytes of a pitched allocation are those it takes: pitch * rows. */
void weir_x_alloc_pitch(weir_call *c, weir_word ptr, weir_word pitch, weir_word rows,
                        weir_word width)
{
  weir_fill e = begin_alloc(c, ptr, (pitch ? pitch : width) * rows, WEIR_MEM_DEVICE, here(c), 0);
  e.b = pitch;
  weir_commit(c, &e);
}

void weir_x_alloc_3d(weir_call *c, const struct cudaPitchedPtr *out, weir_word width,
                     weir_word rows)
{
  bool good = c->status == 0 && out;
  weir_x_alloc_pitch(c, good ? (uint64_t)(uintptr_t)out->ptr : 0, good ? out->pitch : 0, rows,
                     width);
}

/* The driver's word on where a new block is. */
static unsigned device_of(const weir_call *c, uint64_t ptr)
{
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  int device = -1;
  unsigned now = here(c);
  if (!weir_many_devices() || c->status != 0 || !ptr || !ask) return now;
  if (ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr) != CUDA_SUCCESS) return now;
  return device >= 0 && device < (int)WEIR_DEVICE_NONE ? (unsigned)device : now;
}

/* A pool, and a stream, may belong to another device than the thread's. */
void weir_x_alloc_async(weir_call *c, weir_word ptr, weir_word bytes, weir_word stream,
                        weir_word pool)
{
  unsigned device = pool || stream > WEIR_STREAM_PER_THREAD ? device_of(c, ptr) : here(c);
  weir_fill e = begin_alloc(c, ptr, bytes, WEIR_MEM_DEVICE, device, WEIR_TAG_POOL);
  e.b = pool;
  weir_set_stream(&e, stream);
  if (c->status == 0) weir_pool_used(device, pool);
  weir_commit(c, &e);
}

/* Calls that are about a pool itself. `held`, which no free is using, keeps whether it was known.
 */
void weir_x_pool_trim(weir_call *c, weir_word pool, weir_word bytes)
{
  if (c->status == 0) weir_pool_trimmed(pool);
  weir_x_call(c, pool, 0, bytes, WEIR_NO_STREAM);
}

void weir_x_pool_set(weir_call *c, weir_word pool, weir_word device)
{
  if (c->status == 0) weir_pools_moved();
  weir_x_call(c, pool, device, 0, WEIR_NO_STREAM);
}

void weir_x_pool_destroy_before(weir_call *c, weir_word pool)
{
  c->held.bytes = weir_pool_ends(pool);
}

void weir_x_pool_destroy(weir_call *c, weir_word pool)
{
  if (c->status == 0 && c->held.bytes)
    weir_pool_ended(pool);
  else
    weir_pools_moved(); /* a pool that stays is met again at its next use */
  weir_x_call(c, pool, 0, 0, WEIR_NO_STREAM);
}

/* CUDA C++ Programming Guide, "Implicit Synchronization": a page-locked host memory allocation
 * keeps work before and after it from running together. */
void weir_x_alloc_host(weir_call *c, weir_word ptr, weir_word bytes, weir_word flags)
{
  weir_fill e = begin_alloc(c, ptr, bytes, WEIR_MEM_PINNED, here(c), 0);
  e.b = flags;
  if (c->status == 0 && !(c->flags & WEIR_EVF_CACHED)) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  weir_commit(c, &e);
}

uint64_t weir_format_bytes(CUarray_format format, unsigned channels)
{
  unsigned f = (unsigned)format;
  switch (f) {
  case CU_AD_FORMAT_UNSIGNED_INT8:
  case CU_AD_FORMAT_SIGNED_INT8:
    return channels;
  case CU_AD_FORMAT_UNSIGNED_INT16:
  case CU_AD_FORMAT_SIGNED_INT16:
  case CU_AD_FORMAT_HALF:
    return 2u * channels;
  case CU_AD_FORMAT_UNSIGNED_INT32:
  case CU_AD_FORMAT_SIGNED_INT32:
  case CU_AD_FORMAT_FLOAT:
    return 4u * channels;
  case CU_AD_FORMAT_UNORM_INT_101010_2:
    return 4;
  }
  /* {U,S}NORM_INT{8,16}X{1,2,4}: twelve values in a row, channels in the name. */
  if (f < CU_AD_FORMAT_UNORM_INT8X1 || f > CU_AD_FORMAT_SNORM_INT16X4) return 0;
  unsigned i = f - CU_AD_FORMAT_UNORM_INT8X1;
  return (UINT64_C(1) << i % 3) << (i / 3 & 1);
}

/* Bytes of an array and its mipmap levels. Layers and cube faces (in `depth`) do not shrink. */
static uint64_t array_bytes(uint64_t element, uint64_t w, uint64_t h, uint64_t d, uint64_t levels,
                            uint64_t flags)
{
  uint64_t sum = 0;
  bool layers = flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  for (uint64_t l = 0; l < levels && l < 64; l++) {
    sum += element * w * (h ? h : 1) * (d ? d : 1);
    w = w > 1 ? w / 2 : w;
    h = h > 1 ? h / 2 : h;
    if (!layers) d = d > 1 ? d / 2 : d;
  }
  return sum;
}

void weir_x_alloc_array(weir_call *c, weir_word handle, weir_word element, weir_word width,
                        weir_word height, weir_word depth, weir_word levels, weir_word flags)
{
  weir_fill e = weir_begin(c, WEIR_EV_ALLOC);
  remember(c, handle, 0, WEIR_MEM_ARRAY, c->thread->last_device,
           (weir_tag)(element & 1023) << WEIR_TAG_ELEMENT);
  e.a = handle;
  e.bytes = array_bytes(element, width, height, depth, levels, flags);
  e.mem = WEIR_MEM_ARRAY;
  e.device = c->thread->last_device;
  weir_commit(c, &e);
}

/* A free takes its block out ahead of the real one (pointers.h), and puts it back when that fails.
 */
void weir_x_free_before(weir_call *c, weir_word ptr)
{
  c->held = weir_block_take(ptr);
}

WEIR_INLINE weir_fill begin_free(weir_call *c, uint64_t ptr, unsigned mem)
{
  weir_fill e = c->routed ? weir_begin_often(c, WEIR_EV_FREE) : weir_begin(c, WEIR_EV_FREE);
  weir_tag tag = c->held.tag;
  if (c->status != 0 && tag && !c->routed) weir_block_add(c->held);
  e.a = ptr;
  e.bytes = c->held.bytes;
  e.mem = (uint8_t)(tag ? weir_tag_mem(tag) : mem);
  bool host = e.mem == WEIR_MEM_PINNED;
  e.device = (uint8_t)(host  ? WEIR_DEVICE_NONE
                       : tag ? weir_tag_device(tag)
                             : c->thread->last_device);
  return e;
}

/* cuMemFree: "will not perform any implicit synchronization when the pointer was allocated with
 * cuMemAllocAsync or cuMemAllocFromPoolAsync ... For all other pointers, this API may perform
 * implicit synchronization" (cuda.h; cudaFree says the same). Arrays and page-locked memory: no
 * word there, and the driver does as for device memory. */
WEIR_INLINE void mark_free(const weir_call *c, weir_fill *e)
{
  e->b = c->waited;
  e->copy = c->why;
  if (c->flags & WEIR_EVF_CACHED && !c->waited) return; /* relaxed: did not wait */
  if (e->a && c->status == 0 && !(c->held.tag & WEIR_TAG_POOL)) e->flags |= WEIR_EVF_IMPLICIT_SYNC;
}

/* `mem`: what the function frees where the block is not known. */
void weir_x_free(weir_call *c, weir_word ptr, weir_word mem)
{
  weir_fill e = begin_free(c, ptr, (unsigned)mem);
  mark_free(c, &e);
  weir_commit(c, &e);
}

void weir_x_free_async(weir_call *c, weir_word ptr, weir_word stream)
{
  weir_fill e = begin_free(c, ptr, WEIR_MEM_DEVICE);
  weir_set_stream(&e, stream);
  if (c->status == 0) weir_pool_freed();
  weir_commit(c, &e);
}

void weir_x_host_register(weir_call *c, weir_word ptr, weir_word bytes, weir_word flags)
{
  weir_fill e = weir_begin(c, WEIR_EV_HOSTREG);
  remember(c, ptr, bytes, WEIR_MEM_PINNED, c->thread->last_device, 0);
  e.a = ptr;
  e.b = flags;
  e.bytes = bytes;
  e.mem = WEIR_MEM_PINNED;
  weir_commit(c, &e);
}

void weir_x_host_unregister(weir_call *c, weir_word ptr)
{
  weir_fill e = weir_begin(c, WEIR_EV_HOSTREG);
  if (c->status != 0 && c->held.tag) weir_block_add(c->held);
  e.a = ptr;
  e.mem = WEIR_MEM_PINNED;
  weir_commit(c, &e);
}

/* ---- waits, streams, events ------------------------------------------------------------------ */

void weir_x_sync(weir_call *c, weir_word type, weir_word event, weir_word context)
{
  weir_fill e = weir_begin_often(c, WEIR_EV_SYNC);
  if (type != WEIR_SYNC_QUERY) weir_pools_waited(type == WEIR_SYNC_CONTEXT);
  e.copy = (uint8_t)type;
  e.a = event;
  e.device = c->thread->last_device;
  if (context) weir_set_context(&e, context);
  weir_commit(c, &e);
}

void weir_x_sync_stream(weir_call *c, weir_word type, weir_word stream, weir_word event)
{
  weir_fill e = weir_begin_often(c, WEIR_EV_SYNC);
  if (type == WEIR_SYNC_STREAM) weir_pools_waited(false);
  e.copy = (uint8_t)type;
  e.a = event;
  e.device = c->thread->last_device;
  weir_set_stream(&e, stream);
  weir_commit(c, &e);
}

void weir_x_stream(weir_call *c, weir_word stream, weir_word create, weir_word flags)
{
  weir_fill e = weir_begin(c, WEIR_EV_STREAM);
  e.a = create;
  e.b = flags;
  e.stream = stream;
  e.device = c->thread->last_device;
  weir_commit(c, &e);
}

void weir_x_capture_begin(weir_call *c, weir_word stream, weir_word mode, weir_word graph)
{
  weir_fill e = weir_begin(c, WEIR_EV_CALL);
  e.a = graph;
  e.b = mode;
  e.device = c->thread->last_device;
  weir_set_stream(&e, stream);
  e.flags &= ~(unsigned)WEIR_EVF_CAPTURE; /* it begins the capture, and is none of what is in it */
  weir_commit(c, &e);
}

void weir_x_capture_end(weir_call *c, weir_word stream, weir_word graph)
{
  weir_x_call(c, graph, 0, 0, stream);
}

/* What the graph does may touch any memory that is live now. */
void weir_x_graph(weir_call *c, weir_word graph, weir_word other)
{
  if (c->status == 0) record_subscriber_now()->graph_made(true);
  weir_x_call(c, graph, other, 0, WEIR_NO_STREAM);
}

void weir_x_event(weir_call *c, weir_word event, weir_word b)
{
  weir_fill e = weir_begin(c, WEIR_EV_EVENT);
  e.a = event;
  e.b = b;
  e.device = c->thread->last_device;
  weir_commit(c, &e);
}

void weir_x_event_record(weir_call *c, weir_word event, weir_word stream, weir_word flags)
{
  weir_fill e = weir_begin_often(c, WEIR_EV_EVENT);
  e.a = event;
  e.b = flags;
  e.device = c->thread->last_device;
  weir_set_stream(&e, stream);
  weir_commit(c, &e);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Grid packed: x in 32 bits, y and z in 16 each, which are their limits. */
static weir_fill begin_launch(weir_call *c, uint64_t function, const uint64_t g[3],
                              uint64_t threads)
{
  weir_name_launch(c, function);
  weir_fill e = weir_begin_often(c, WEIR_EV_LAUNCH);
  e.a = function;
  e.b = (g[0] & UINT32_MAX) | (g[1] & 0xffff) << 32 | (g[2] & 0xffff) << 48;
  e.bytes = g[0] * g[1] * g[2] * threads;
  e.device = c->thread->last_device;
  return e;
}

void weir_x_launch(weir_call *c, weir_word function, weir_word gx, weir_word gy, weir_word gz,
                   weir_word bx, weir_word by, weir_word bz, weir_word stream)
{
  weir_fill e = begin_launch(c, function, (uint64_t[]){gx, gy, gz}, bx * by * bz);
  weir_set_work(&e, stream);
  weir_commit(c, &e);
}

void weir_x_launch_config(weir_call *c, weir_word function, const CUlaunchConfig *g)
{
  static const CUlaunchConfig none;
  if (!g) g = &none;
  weir_x_launch(c, function, g->gridDimX, g->gridDimY, g->gridDimZ, g->blockDimX, g->blockDimY,
                g->blockDimZ, (weir_word)g->hStream);
}

void weir_x_launch_config_rt(weir_call *c, weir_word function, const cudaLaunchConfig_t *g)
{
  static const cudaLaunchConfig_t none;
  if (!g) g = &none;
  weir_x_launch(c, function, g->gridDim.x, g->gridDim.y, g->gridDim.z, g->blockDim.x, g->blockDim.y,
                g->blockDim.z, (weir_word)g->stream);
}

/* One call, a launch on each of several devices. */
void weir_x_launch_multi(weir_call *c, const CUDA_LAUNCH_PARAMS *list, weir_word count)
{
  static const CUDA_LAUNCH_PARAMS none;
  if (!list || !count) list = &none, count = 1;
  for (weir_word i = 0; i < count; i++) {
    const CUDA_LAUNCH_PARAMS *p = &list[i];
    if (i) c->flags |= WEIR_EVF_BATCH;
    weir_x_launch(c, (weir_word)p->function, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
                  p->blockDimY, p->blockDimZ, (weir_word)p->hStream);
  }
}

void weir_x_named(weir_call *c, weir_word handle, const char *name, weir_word owner)
{
  if (c->status == 0) weir_name_given(c, handle, name);
  weir_x_call(c, handle, owner, 0, WEIR_NO_STREAM);
}

void weir_x_named_like(weir_call *c, weir_word handle, weir_word like)
{
  if (c->status == 0) weir_name_of_kernel(c, handle, like);
  weir_x_call(c, handle, like, 0, WEIR_NO_STREAM);
}

void weir_x_named_list(weir_call *c, const CUkernel *kernels, weir_word count, weir_word owner)
{
  for (weir_word i = 0; c->status == 0 && kernels && i < count; i++)
    weir_name_of_kernel(c, (uint64_t)(uintptr_t)kernels[i], (uint64_t)(uintptr_t)kernels[i]);
  weir_x_call(c, 0, owner, count, WEIR_NO_STREAM);
}

/* ---- devices and contexts -------------------------------------------------------------------- */

void weir_x_context(weir_call *c, weir_word a, weir_word device, weir_word b)
{
  weir_fill e = weir_begin(c, WEIR_EV_CONTEXT);
  e.a = a;
  e.b = b;
  e.device = device < WEIR_DEVICE_NONE ? (uint8_t)device : c->thread->last_device;
  weir_commit(c, &e);
}

void weir_x_peer_access(weir_call *c, weir_word a, weir_word b)
{
  if (c->status == 0) record_subscriber_now()->peers_enabled();
  weir_x_context(c, a, WEIR_DEVICE_NONE, b);
}

/* The handle may be a destroyed context's, come back for another device. */
void weir_x_context_made(weir_call *c, weir_word context, weir_word device, weir_word b)
{
  unsigned known = weir_context_device(context);
  if (context && known != WEIR_DEVICE_NONE && known != device) weir_context_forget(context);
  weir_x_context(c, context, device, b);
}

void weir_x_context_destroy(weir_call *c, weir_word context)
{
  unsigned number = weir_context_number(context), device = weir_context_device(context);
  if (c->status == 0 && number) {
    weir_blocks_drop(weir_tag_make(0, 0, 255), weir_tag_make(0, 0, number));
    weir_context_forget(context);
  }
  weir_fill e = weir_begin(c, WEIR_EV_RESET);
  e.a = context;
  e.bytes = 1;
  e.device = (uint8_t)device;
  e.context = number; /* of the context that is gone: its blocks carry this number */
  weir_commit(c, &e);
}

void weir_x_reset(weir_call *c, weir_word device)
{
  if (c->status == 0) {
    weir_pools_device_gone((unsigned)device);
    weir_blocks_drop(weir_tag_make(0, 255, 0), weir_tag_make(0, (unsigned)device, 0));
    weir_context_forget_device((unsigned)device);
  }
  weir_fill e = weir_begin(c, WEIR_EV_RESET);
  e.device = device < WEIR_DEVICE_NONE ? (uint8_t)device : WEIR_DEVICE_NONE;
  weir_commit(c, &e);
}

/* The last release of a primary context destroys it; only the driver counts. */
void weir_x_primary_release(weir_call *c, weir_word device)
{
  PFN_cuDevicePrimaryCtxGetState_v7000 ask = WEIR_HELPER(cuDevicePrimaryCtxGetState);
  unsigned flags = 0;
  int active = 1;
  if (c->status == 0 && ask && ask((CUdevice)device, &flags, &active) == CUDA_SUCCESS && !active)
    weir_x_reset(c, device);
  else
    weir_x_context(c, 0, device, 0);
}

/* The runtime resets the device the thread is on, which only the runtime knows when the thread has
 * no context. Kept in `held`, which no free is using. */
void weir_x_reset_current_before(weir_call *c)
{
  typedef cudaError_t (*fn)(int *);
  weir_context_refresh(c->thread);
  weir_pools_device_ends();
  c->held.bytes = c->thread->last_device;
  if (c->held.bytes != WEIR_DEVICE_NONE || !atomic_load(&weir_driver_ready)) return;
  fn ask = (fn)(uintptr_t)weir_elf_symbol(weir_bank_soname(c->bank), "cudaGetDevice");
  int device = -1;
  if (ask && ask(&device) == cudaSuccess && device >= 0) c->held.bytes = (uint64_t)device;
}

void weir_x_reset_current(weir_call *c)
{
  weir_x_reset(c, c->held.bytes);
}

/* ---- anything else --------------------------------------------------------------------------- */

void weir_x_call(weir_call *c, weir_word a, weir_word b, weir_word bytes, weir_word stream)
{
  weir_fill e = weir_begin(c, WEIR_EV_CALL);
  e.a = a;
  e.b = b;
  e.bytes = bytes;
  e.device = c->thread->last_device;
  if (stream != WEIR_NO_STREAM) weir_set_work(&e, stream);
  weir_commit(c, &e);
}
