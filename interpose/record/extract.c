/* extract.c: what the arguments of a call mean (extract.h): memory, waits, streams, launches,
 * contexts. Copies and memsets are in extract_copy.c.
 *
 * Invariants: an extractor is called with the thread's depth raised, after the real function has
 * returned; a record that belongs to the event (NAME) is written before the event's slot is taken;
 * the pointer map is kept whether or not the event found room. */
#include "interpose/record/extract.h"

#include "interpose/record/access.h"
#include "interpose/record/context.h"
#include "interpose/record/device_memory.h"
#include "interpose/record/event_fill.h"
#include "interpose/record/names.h"
#include "interpose/record/physical.h"
#include "interpose/record/poll.h"
#include "interpose/record/pools.h"
#include "interpose/record/within.h"
#include "interpose/elf/elf.h"
#include "interpose/record/subscriber.h"

/* ---- memory ---------------------------------------------------------------------------------- */

WEIR_INLINE void remember_block(const hook_call *c, uint64_t ptr, uint64_t bytes, unsigned mem,
                                unsigned device, block_tag more)
{
  if (c->status == CUDA_ERROR_OUT_OF_MEMORY) device_memory_sample(c->thread, false);
  if (c->status != 0) {
    if (c->status == CUDA_ERROR_OUT_OF_MEMORY) device_memory_sample(c->thread, true);
    return;
  }
  if (!ptr || c->routed) return;
  record_subscriber_now()->allocated(ptr);
  if (process_unrecorded) return;
  block_tag tag = block_tag_make(mem, device, c->thread->last_context_number);
  pointer_block_add((pointer_block){ptr, bytes, tag | more});
}

WEIR_INLINE event_fields begin_alloc(hook_call *c, uint64_t ptr, uint64_t bytes, unsigned mem,
                                     unsigned device, block_tag more)
{
  event_fields e = event_begin_here(c, WEIR_EV_ALLOC);
  remember_block(c, ptr, bytes, mem, device, more);
  e.a = ptr;
  e.bytes = bytes;
  event_set_reroute_reason(&e, c->why);
  e.mem = (uint8_t)mem;
  e.device = (uint8_t)(mem == WEIR_MEM_PINNED ? WEIR_DEVICE_NONE : device);
  return e;
}

/* Where nothing is written, the map has the blocks of caches alone: who asks it for one of the
 * program's asks the driver (reroute_tag()). False: the allocation is to be recorded. */
WEIR_INLINE bool alloc_goes_unrecorded(const hook_call *c, uint64_t ptr)
{
  if (__builtin_expect(!process_unrecorded, 1)) return false;
  driver_note_use(c, WEIR_EV_ALLOC);
  if (c->status == 0 && ptr && !c->routed) record_subscriber_now()->allocated(ptr);
  return true;
}

/* Out of memory that counts as another block: a call, which allocates nothing. */
__attribute__((noinline)) static bool alloc_within(hook_call *c, uint64_t ptr, uint64_t bytes)
{
  if (c->status != 0 || !ptr || !within_begins(ptr)) return false;
  extract_call(c, ptr, 0, bytes, WEIR_NO_STREAM);
  return true;
}

/* The device a call without one works on. Who took the memory from a cache has asked already. */
WEIR_INLINE unsigned here(const hook_call *c)
{
  if (!c->routed) {
    driver_note_use(c, WEIR_EV_ALLOC);
    context_refresh(c->thread);
  }
  return c->thread->last_device;
}

void extract_alloc(hook_call *c, extract_word ptr, extract_word bytes, extract_word mem)
{
  if (alloc_goes_unrecorded(c, ptr)) return;
  if (!c->routed && within_is_possible() && alloc_within(c, ptr, bytes)) return;
  event_fields e = begin_alloc(c, ptr, bytes, (unsigned)mem, here(c), 0);
  event_commit(c, &e);
}

/* Bytes of a pitched allocation are those it takes: pitch * rows. */
void extract_alloc_pitch(hook_call *c, extract_word ptr, extract_word pitch, extract_word rows,
                         extract_word width)
{
  uint64_t bytes = (pitch ? pitch : width) * rows;
  if (!c->routed && within_is_possible() && alloc_within(c, ptr, bytes)) return;
  event_fields e = begin_alloc(c, ptr, bytes, WEIR_MEM_DEVICE, here(c), 0);
  e.b = pitch;
  event_commit(c, &e);
}

void extract_alloc_3d(hook_call *c, const struct cudaPitchedPtr *out, extract_word width,
                      extract_word rows)
{
  bool good = c->status == 0 && out;
  extract_alloc_pitch(c, good ? (uint64_t)(uintptr_t)out->ptr : 0, good ? out->pitch : 0, rows,
                      width);
}

unsigned extract_device_of(const hook_call *c, uint64_t ptr)
{
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  int device = -1;
  unsigned now = here(c);
  if (!context_many_devices() || c->status != 0 || !ptr || !ask) return now;
  if (ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr) != CUDA_SUCCESS) return now;
  return device >= 0 && device < (int)WEIR_DEVICE_NONE ? (unsigned)device : now;
}

/* A pool, and a stream, may belong to another device than the thread's. */
void extract_alloc_async(hook_call *c, extract_word ptr, extract_word bytes, extract_word stream,
                         extract_word pool)
{
  if (!c->routed && within_is_possible() && alloc_within(c, ptr, bytes)) return;
  unsigned device = pool || stream > WEIR_STREAM_PER_THREAD ? extract_device_of(c, ptr) : here(c);
  event_fields e = begin_alloc(c, ptr, bytes, WEIR_MEM_DEVICE, device, WEIR_TAG_POOL);
  e.b = pool;
  event_set_stream(&e, stream);
  if (c->status == 0) driver_pool_used(c, device, pool);
  event_commit(c, &e);
}

/* Calls that are about a pool itself. `held`, which no free is using, keeps whether it was known.
 */
void extract_pool_trim(hook_call *c, extract_word pool, extract_word bytes)
{
  if (c->status == 0) driver_pool_trimmed(pool);
  extract_call(c, pool, 0, bytes, WEIR_NO_STREAM);
}

void extract_pool_set(hook_call *c, extract_word pool, extract_word device)
{
  if (c->status == 0) driver_pools_moved();
  extract_call(c, pool, device, 0, WEIR_NO_STREAM);
}

void extract_pool_destroy_before(hook_call *c, extract_word pool)
{
  c->held.bytes = driver_pool_ends(pool);
}

void extract_pool_destroy(hook_call *c, extract_word pool)
{
  if (c->status == 0 && c->held.bytes)
    driver_pool_ended(pool);
  else
    driver_pools_moved(); /* a pool that stays is met again at its next use */
  extract_call(c, pool, 0, 0, WEIR_NO_STREAM);
}

/* CUDA C++ Programming Guide, "Implicit Synchronization": a page-locked host memory allocation
 * keeps work before and after it from running together. */
void extract_alloc_host(hook_call *c, extract_word ptr, extract_word bytes, extract_word flags)
{
  if (!c->routed && within_is_possible() && alloc_within(c, ptr, bytes)) return;
  event_fields e = begin_alloc(c, ptr, bytes, WEIR_MEM_PINNED, here(c), 0);
  e.b = flags;
  if (c->status == 0 && !(c->flags & WEIR_EVF_CACHED)) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  event_commit(c, &e);
}

uint64_t extract_format_bytes(CUarray_format format, unsigned channels)
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

/* Bytes of an array and its mipmap levels. Layers and cube faces (in `depth`) do not shrink. What
 * is sparse, or mapped later, has none of its own: it lies in memory that the program creates
 * (cuMemCreate), which is counted there. */
static uint64_t array_bytes(uint64_t element, uint64_t w, uint64_t h, uint64_t d, uint64_t levels,
                            uint64_t flags)
{
  uint64_t sum = 0;
  bool layers = flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  if (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) return 0;
  for (uint64_t l = 0; l < levels && l < 64; l++) {
    sum += element * w * (h ? h : 1) * (d ? d : 1);
    w = w > 1 ? w / 2 : w;
    h = h > 1 ? h / 2 : h;
    if (!layers) d = d > 1 ? d / 2 : d;
  }
  return sum;
}

static void alloc_array(hook_call *c, uint64_t handle, uint64_t element, uint64_t bytes,
                        unsigned mem)
{
  event_fields e = event_begin(c, WEIR_EV_ALLOC);
  remember_block(c, handle, 0, WEIR_MEM_ARRAY, c->thread->last_device,
                 (block_tag)(element & WEIR_TAG_ELEMENT_MOST) << WEIR_TAG_ELEMENT);
  e.a = handle;
  e.bytes = bytes;
  e.mem = (uint8_t)mem;
  e.device = c->thread->last_device;
  event_commit(c, &e);
}

void extract_alloc_array(hook_call *c, extract_word handle, extract_word element,
                         extract_word width, extract_word height, extract_word depth,
                         extract_word levels, extract_word flags)
{
  uint64_t bytes = array_bytes(element, width, height, depth, levels, flags);
  alloc_array(c, handle, element, bytes, WEIR_MEM_ARRAY);
}

/* Of memory that is another API's; freed like any other array. */
void extract_import_array(hook_call *c, extract_word handle, extract_word element,
                          extract_word width, extract_word height, extract_word depth,
                          extract_word levels, extract_word flags)
{
  uint64_t bytes = array_bytes(element, width, height, depth, levels, flags);
  alloc_array(c, handle, element, bytes, WEIR_MEM_IMPORTED);
}

/* A free takes its block out before the real one (pointers.h), and puts it back when that fails.
 */
void extract_free_before(hook_call *c, extract_word ptr)
{
  c->held = block_take(ptr);
}

/* Of a block of memory that counts as another: a call, which frees nothing. */
__attribute__((noinline)) static void free_within(hook_call *c, uint64_t ptr)
{
  if (c->status != 0) within_put_back(c->held);
  extract_call(c, ptr, 0, 0, WEIR_NO_STREAM);
}

static inline bool frees_within(const hook_call *c)
{
  return !c->routed && __builtin_expect(c->held.tag & WEIR_TAG_WITHIN, 0);
}

/* What a free that failed took out. */
WEIR_INLINE void put_back_failed(const hook_call *c)
{
  if (c->status != 0 && c->held.tag && !c->routed) pointer_block_add(c->held);
}

WEIR_INLINE event_fields begin_free(hook_call *c, uint64_t ptr, unsigned mem)
{
  event_fields e = c->routed ? event_begin_frequent(c, WEIR_EV_FREE) : event_begin(c, WEIR_EV_FREE);
  block_tag tag = c->held.tag;
  put_back_failed(c);
  e.a = ptr;
  e.bytes = c->held.bytes;
  e.mem = (uint8_t)(tag ? block_tag_mem(tag) : mem);
  bool host = e.mem == WEIR_MEM_PINNED;
  e.device = (uint8_t)(host  ? WEIR_DEVICE_NONE
                       : tag ? block_tag_device(tag)
                             : c->thread->last_device);
  return e;
}

/* cuMemFree: "will not perform any implicit synchronization when the pointer was allocated with
 * cuMemAllocAsync or cuMemAllocFromPoolAsync ... For all other pointers, this API may perform
 * implicit synchronization" (cuda.h; cudaFree has the same). Arrays and page-locked memory: no
 * word there, and the driver does as for device memory. */
WEIR_INLINE void mark_free(const hook_call *c, event_fields *e)
{
  e->b = c->waited;
  event_set_reroute_reason(e, c->why);
  if (c->flags & WEIR_EVF_CACHED && !c->waited) return; /* relaxed: did not wait */
  if (e->a && c->status == 0 && !(c->held.tag & WEIR_TAG_POOL)) e->flags |= WEIR_EVF_IMPLICIT_SYNC;
}

/* `mem`: what the function frees where the block is not known. */
void extract_free(hook_call *c, extract_word ptr, extract_word mem)
{
  if (frees_within(c)) {
    free_within(c, ptr);
    return;
  }
  if (__builtin_expect(process_unrecorded, 0)) {
    driver_note_use(c, WEIR_EV_FREE);
    put_back_failed(c);
    return;
  }
  event_fields e = begin_free(c, ptr, (unsigned)mem);
  mark_free(c, &e);
  event_commit(c, &e);
}

void extract_free_async(hook_call *c, extract_word ptr, extract_word stream)
{
  if (frees_within(c)) {
    free_within(c, ptr);
    return;
  }
  event_fields e = begin_free(c, ptr, WEIR_MEM_DEVICE);
  event_set_stream(&e, stream);
  if (c->status == 0) driver_pool_freed();
  event_commit(c, &e);
}

void extract_host_register(hook_call *c, extract_word ptr, extract_word bytes, extract_word flags)
{
  event_fields e = event_begin(c, WEIR_EV_HOSTREG);
  remember_block(c, ptr, bytes, WEIR_MEM_PINNED, c->thread->last_device, 0);
  e.a = ptr;
  e.b = flags;
  e.bytes = bytes;
  e.mem = WEIR_MEM_PINNED;
  event_commit(c, &e);
}

void extract_host_unregister(hook_call *c, extract_word ptr)
{
  event_fields e = event_begin(c, WEIR_EV_HOSTREG);
  if (c->status != 0 && c->held.tag) within_put_back(c->held);
  e.a = ptr;
  e.mem = WEIR_MEM_PINNED;
  event_commit(c, &e);
}

/* ---- waits, streams, events ------------------------------------------------------------------ */

/* Of a question whether work is complete: between it and the thread's last one there were pauses and
 * nothing else to speak of, a 16th of the time at most. Of one that was answered "not complete" it
 * is left out: many of them are one event. */
WEIR_INLINE unsigned question_flags(const hook_call *c)
{
  thread_state *t = c->thread;
  uint64_t between = c->start - t->questioned, paused = t->paused;
  t->questioned = c->end;
  t->paused = 0;
  bool all = paused && paused <= between && between - paused <= between / 16;
  return all && c->status == 0 ? WEIR_EVF_PAUSED : 0;
}

void extract_sync(hook_call *c, extract_word type, extract_word event, extract_word context)
{
  event_fields e = event_begin_frequent(c, WEIR_EV_SYNC);
  if (type != WEIR_SYNC_QUERY) {
    driver_pools_waited(type == WEIR_SYNC_CONTEXT);
    device_memory_waited(c);
  }
  if (type == WEIR_SYNC_QUERY) e.flags |= question_flags(c);
  event_set_sync_type(&e, (sync_type)type);
  e.a = event;
  e.device = c->thread->last_device;
  if (context) event_set_context(&e, context);
  if (type == WEIR_SYNC_QUERY && c->status == WEIR_NOT_READY)
    poll_commit(c, &e);
  else
    event_commit(c, &e);
}

void extract_sync_stream(hook_call *c, extract_word type, extract_word stream, extract_word event)
{
  event_fields e = event_begin_frequent(c, WEIR_EV_SYNC);
  if (type == WEIR_SYNC_STREAM) {
    driver_pools_waited(false);
    device_memory_waited(c);
  }
  if (type == WEIR_SYNC_QUERY) e.flags |= question_flags(c);
  event_set_sync_type(&e, (sync_type)type);
  e.a = event;
  e.device = c->thread->last_device;
  event_set_stream(&e, stream);
  if (type == WEIR_SYNC_QUERY && c->status == WEIR_NOT_READY)
    poll_commit(c, &e);
  else
    event_commit(c, &e);
}

void extract_stream(hook_call *c, extract_word stream, extract_word create, extract_word flags)
{
  event_fields e = event_begin(c, WEIR_EV_STREAM);
  e.a = create;
  e.b = flags;
  e.stream = stream;
  e.device = c->thread->last_device;
  event_commit(c, &e);
}

void extract_capture_begin(hook_call *c, extract_word stream, extract_word mode, extract_word graph)
{
  event_fields e = event_begin(c, WEIR_EV_CALL);
  e.a = graph;
  e.b = mode;
  e.device = c->thread->last_device;
  event_set_stream(&e, stream);
  e.flags &= ~(unsigned)WEIR_EVF_CAPTURE; /* it begins the capture, and is none of what is in it */
  event_commit(c, &e);
}

void extract_capture_end(hook_call *c, extract_word stream, extract_word graph)
{
  extract_call(c, graph, 0, 0, stream);
}

void extract_event(hook_call *c, extract_word event, extract_word b)
{
  event_fields e = event_begin(c, WEIR_EV_EVENT);
  e.a = event;
  e.b = b;
  e.device = c->thread->last_device;
  event_commit(c, &e);
}

void extract_event_record(hook_call *c, extract_word event, extract_word stream, extract_word flags)
{
  event_fields e = event_begin_frequent(c, WEIR_EV_EVENT);
  e.a = event;
  e.b = flags;
  e.device = c->thread->last_device;
  event_set_stream(&e, stream);
  event_commit(c, &e);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Grid packed: x in 32 bits, y and z in 16 each, which are their limits. */
static event_fields begin_launch(hook_call *c, uint64_t function, const uint64_t g[3],
                                 uint64_t threads, uint32_t access)
{
  kernel_name_launch(c, function);
  c->thread->launches++;
  event_fields e = event_begin_frequent(c, WEIR_EV_LAUNCH);
  e.a = function;
  e.b = (g[0] & UINT32_MAX) | (g[1] & 0xffff) << 32 | (g[2] & 0xffff) << 48;
  e.bytes = g[0] * g[1] * g[2] * threads;
  e.device = c->thread->last_device;
  event_set_access(&e, access);
  return e;
}

/* All that is done where nothing is written: a relaxed free must outlast the launch. */
static void note_launch_alone(hook_call *c, uint64_t stream)
{
  if (!c->thread->last_context) driver_note_use(c, WEIR_EV_LAUNCH);
  context_refresh_trusted(c->thread);
  if (process_mode_now() == WEIR_RELAXED)
    work_note(c->thread->last_context_number, stream_of_call(c->flags, stream));
}

void extract_launch(hook_call *c, extract_word function, extract_word gx, extract_word gy,
                    extract_word gz, extract_word bx, extract_word by, extract_word bz,
                    extract_word stream, extract_word args, extract_word extra)
{
  if (__builtin_expect(process_unrecorded, 0)) {
    note_launch_alone(c, stream);
    return;
  }
  uint32_t access = access_of_launch(c, function, args, extra);
  event_fields e = begin_launch(c, function, (uint64_t[]){gx, gy, gz}, bx * by * bz, access);
  event_set_work(&e, stream);
  event_commit(c, &e);
}

void extract_launch_config(hook_call *c, extract_word function, const CUlaunchConfig *g,
                           extract_word args, extract_word extra)
{
  static const CUlaunchConfig none;
  if (!g) g = &none;
  extract_launch(c, function, g->gridDimX, g->gridDimY, g->gridDimZ, g->blockDimX, g->blockDimY,
                 g->blockDimZ, (extract_word)g->hStream, args, extra);
}

void extract_launch_config_rt(hook_call *c, extract_word function, const cudaLaunchConfig_t *g,
                              extract_word args)
{
  static const cudaLaunchConfig_t none;
  if (!g) g = &none;
  extract_launch(c, function, g->gridDim.x, g->gridDim.y, g->gridDim.z, g->blockDim.x,
                 g->blockDim.y, g->blockDim.z, (extract_word)g->stream, args, 0);
}

/* One call, a launch on each of several devices. */
void extract_launch_multi(hook_call *c, const CUDA_LAUNCH_PARAMS *list, extract_word count)
{
  static const CUDA_LAUNCH_PARAMS none;
  if (!list || !count) list = &none, count = 1;
  for (extract_word i = 0; i < count; i++) {
    const CUDA_LAUNCH_PARAMS *p = &list[i];
    if (i) c->flags |= WEIR_EVF_BATCH;
    extract_launch(c, (extract_word)p->function, p->gridDimX, p->gridDimY, p->gridDimZ,
                   p->blockDimX, p->blockDimY, p->blockDimZ, (extract_word)p->hStream,
                   (extract_word)p->kernelParams, 0);
  }
}

static void name_handle(hook_call *c, uint64_t handle, const char *name, uint64_t owner,
                        access_handle what)
{
  if (c->status == 0) {
    access_met(handle, what);
    kernel_name_set(c, handle, name);
  }
  extract_call(c, handle, owner, 0, WEIR_NO_STREAM);
}

void extract_named(hook_call *c, extract_word handle, const char *name, extract_word owner)
{
  name_handle(c, handle, name, owner, WEIR_HANDLE_FUNCTION);
}

void extract_named_kernel(hook_call *c, extract_word handle, const char *name, extract_word owner)
{
  name_handle(c, handle, name, owner, WEIR_HANDLE_KERNEL);
}

void extract_named_like(hook_call *c, extract_word handle, extract_word like)
{
  if (c->status == 0) {
    access_met(handle, WEIR_HANDLE_FUNCTION);
    kernel_name_of_kernel(c, handle, like);
  }
  extract_call(c, handle, like, 0, WEIR_NO_STREAM);
}

void extract_named_list(hook_call *c, const CUkernel *kernels, extract_word count,
                        extract_word owner)
{
  for (extract_word i = 0; c->status == 0 && kernels && i < count; i++) {
    uint64_t kernel = (uint64_t)(uintptr_t)kernels[i];
    access_met(kernel, WEIR_HANDLE_KERNEL);
    kernel_name_of_kernel(c, kernel, kernel);
  }
  extract_call(c, 0, owner, count, WEIR_NO_STREAM);
}

/* ---- devices and contexts -------------------------------------------------------------------- */

void extract_context(hook_call *c, extract_word a, extract_word device, extract_word b)
{
  event_fields e = event_begin(c, WEIR_EV_CONTEXT);
  e.a = a;
  e.b = b;
  e.device = device < WEIR_DEVICE_NONE ? (uint8_t)device : c->thread->last_device;
  event_commit(c, &e);
}

void extract_peer_access(hook_call *c, extract_word a, extract_word b)
{
  if (c->status == 0) record_subscriber_now()->peers_enabled();
  extract_context(c, a, WEIR_DEVICE_NONE, b);
}

/* The handle may be a destroyed context's, come back for another device. */
void extract_context_made(hook_call *c, extract_word context, extract_word device, extract_word b)
{
  unsigned known = context_device(context);
  if (context && known != WEIR_DEVICE_NONE && known != device) context_forget(context);
  extract_context(c, context, device, b);
  device_memory_measured(c, WEIR_TAKEN_CONTEXT, context, (unsigned)device);
}

/* Where a context is current: another of the same device may be made. */
void extract_context_made_before(hook_call *c)
{
  device_memory_measure(c);
}

void extract_code_before(hook_call *c)
{
  device_memory_measure(c);
  access_forget_all();
}

void extract_code(hook_call *c, extract_word a, extract_word b, extract_word bytes)
{
  extract_call(c, a, b, bytes, WEIR_NO_STREAM);
  device_memory_measured(c, WEIR_TAKEN_CODE, a, WEIR_DEVICE_NONE);
}

/* A context besides the primary one. */
void extract_context_own(hook_call *c, extract_word context, extract_word device, extract_word b)
{
  extract_context_made(c, context, device, b);
  context_set_own(context);
}

void extract_context_destroy(hook_call *c, extract_word context)
{
  unsigned number = context_number(context), device = context_device(context);
  access_forget_all();
  if (c->status == 0 && number) {
    pointer_blocks_drop(block_tag_make(0, 0, 255), block_tag_make(0, 0, number));
    context_forget(context);
  }
  event_fields e = event_begin(c, WEIR_EV_RESET);
  e.a = context;
  e.bytes = 1;
  e.device = (uint8_t)device;
  e.context = number; /* of the context that is gone: its blocks carry this number */
  event_commit(c, &e);
}

/* What was allocated in the primary context, and in those that are not known. */
static void drop_blocks_of_device(unsigned device, unsigned primary)
{
  if (!primary) {
    pointer_blocks_drop(block_tag_make(0, 255, 0), block_tag_make(0, device, 0));
    return;
  }
  const unsigned numbers[] = {0, primary, 255};
  for (int i = 0; i < 3; i++)
    pointer_blocks_drop(block_tag_make(0, 255, 255), block_tag_make(0, device, numbers[i]));
}

/* Contexts that the program made itself stay, and what is in them. */
void extract_reset(hook_call *c, extract_word device)
{
  unsigned primary = context_primary((unsigned)device);
  access_forget_all();
  if (c->status == 0) {
    driver_pools_device_gone((unsigned)device);
    drop_blocks_of_device((unsigned)device, primary);
    physical_mark_again((unsigned)device);
    context_forget_device((unsigned)device);
  }
  event_fields e = event_begin(c, WEIR_EV_RESET);
  e.a = primary;
  e.device = device < WEIR_DEVICE_NONE ? (uint8_t)device : WEIR_DEVICE_NONE;
  event_commit(c, &e);
}

/* The last release of a primary context destroys it; only the driver counts. */
void extract_primary_release(hook_call *c, extract_word device)
{
  PFN_cuDevicePrimaryCtxGetState_v7000 ask = WEIR_HELPER(cuDevicePrimaryCtxGetState);
  unsigned flags = 0;
  int active = 1;
  if (c->status == 0 && ask && ask((CUdevice)device, &flags, &active) == CUDA_SUCCESS && !active)
    extract_reset(c, device);
  else
    extract_context(c, 0, device, 0);
}

/* The runtime resets the device the thread is on, which only the runtime knows when the thread has
 * no context. Kept in `held`, which no free is using. */
void extract_reset_current_before(hook_call *c)
{
  typedef cudaError_t (*fn)(int *);
  context_refresh(c->thread);
  driver_pools_device_ends();
  device_memory_sample(c->thread, false);
  c->held.bytes = c->thread->last_device;
  if (c->held.bytes != WEIR_DEVICE_NONE || !atomic_load(&driver_ready)) return;
  fn ask = (fn)(uintptr_t)elf_symbol(cuda_library_soname(c->bank), "cudaGetDevice");
  int device = -1;
  if (ask && ask(&device) == cudaSuccess && device >= 0) c->held.bytes = (uint64_t)device;
}

void extract_reset_current(hook_call *c)
{
  extract_reset(c, c->held.bytes);
}

/* Whatever the driver answers: another tool may have the profiler, and the program means the same. */
void extract_profiler(hook_call *c, extract_word start)
{
  recording_profiler(start);
  extract_call(c, 0, 0, 0, WEIR_NO_STREAM);
}

/* ---- anything else --------------------------------------------------------------------------- */

void extract_call(hook_call *c, extract_word a, extract_word b, extract_word bytes,
                  extract_word stream)
{
  event_fields e = event_begin(c, WEIR_EV_CALL);
  e.a = a;
  e.b = b;
  e.bytes = bytes;
  e.device = c->thread->last_device;
  if (stream != WEIR_NO_STREAM) {
    c->thread->launches++;
    event_set_work(&e, stream);
  }
  event_commit(c, &e);
}
