/* context.c: contexts: made, destroyed, current in a thread, and what they state of themselves.
 *
 * A context's content (streams, memory, modules) can end before its record: the record lives while
 * a thread's stack, a stream or an event still names it, and answers CONTEXT_IS_DESTROYED. A
 * device's primary context keeps its record, and so its handle, for the life of the process; reset
 * empties it and the next retain fills it again. */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t next_id = 1;

/* ---- content --------------------------------------------------------------------------------- */

static void default_limits(CUcontext c)
{
  memset(c->limits, 0, sizeof c->limits);
  c->limits[CU_LIMIT_STACK_SIZE] = 1024;
  c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  c->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  c->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  c->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

static CUresult fill_context(CUcontext c, unsigned flags)
{
  c->flags = flags;
  c->peers = 0;
  c->cache = CU_FUNC_CACHE_PREFER_NONE;
  c->shared = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  default_limits(c);
  c->legacy = sim_stream_new(c, 0, 0, true);
  if (!c->legacy || !sim_overhead_take(c->device, c->device->context_takes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&c->error, CUDA_SUCCESS);
  sim_watch_resource(.event = WEIR_WATCH_CONTEXT_CREATED, .context = c);
  return CUDA_SUCCESS;
}

static CUcontext context_new(struct sim_device *d, bool primary)
{
  CUcontext c = sim_arena_new(&sim_contexts);
  if (!c) return NULL;
  atomic_store(&c->error, CUDA_ERROR_CONTEXT_IS_DESTROYED); /* until it is filled */
  atomic_store(&c->refs, 1);
  c->device = d;
  c->primary = primary;
  c->api_version = 3020;
  c->id = atomic_fetch_add(&next_id, 1);
  pthread_mutex_init(&c->lock, NULL);
  return c;
}

/* A held stream would keep destruction waiting for a release that nobody can send any more. */
static void release_holds(CUcontext c)
{
  pthread_mutex_lock(&c->lock);
  for (CUstream s = c->streams; s; s = s->next) {
    pthread_mutex_lock(&s->lock);
    s->released = s->holds = UINT64_MAX / 2;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
  }
  pthread_mutex_unlock(&c->lock);
}

static void close_streams(CUcontext c)
{
  for (;;) {
    pthread_mutex_lock(&c->lock);
    CUstream s = c->streams;
    while (s && s->closing)
      s = s->next;
    if (s) sim_stream_ref(s);
    pthread_mutex_unlock(&c->lock);
    if (!s) return;
    sim_stream_close(s);
    sim_stream_unref(s);
  }
}

/* Ends the content; calls with this context current answer CONTEXT_IS_DESTROYED from now on. */
static void empty_context(CUcontext c)
{
  sim_watch_resource(.event = WEIR_WATCH_CONTEXT_ENDS, .context = c);
  release_holds(c);
  sim_context_wait(c);
  atomic_store(&c->error, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  pthread_mutex_lock(&c->lock);
  c->legacy = NULL;
  if (c->barrier.stream) sim_stream_unref(c->barrier.stream);
  c->barrier.stream = NULL;
  c->recorder = NULL;
  pthread_mutex_unlock(&c->lock);
  close_streams(c);
  sim_modules_free_of(c);
  sim_ranges_free_of(c);
  sim_overhead_give(c->device, c->device->context_takes);
}

/* ---- a thread's stack ------------------------------------------------------------------------ */

static void pop_current(struct sim_thread *t)
{
  CUcontext c = t->stack[--t->depth];
  t->current = t->depth ? t->stack[t->depth - 1] : NULL;
  sim_context_unref(c);
}

/* The thread ends: its default streams with it, though not their work. */
static void end_thread_streams(struct sim_thread *t)
{
  for (uint32_t i = 0; i < t->stream_count; i++) {
    sim_stream_close(t->streams[i]);
    sim_stream_unref(t->streams[i]);
  }
  t->stream_count = 0;
  while (t->depth)
    pop_current(t);
}

static CUresult push_current(CUcontext c)
{
  struct sim_thread *t = sim_self;
  if (t->depth == t->room) {
    uint32_t room = t->room ? 2 * t->room : 4;
    CUcontext *more = realloc(t->stack, room * sizeof(void *));
    if (!more) return CUDA_ERROR_OUT_OF_MEMORY;
    t->stack = more;
    t->room = room;
  }
  sim_context_ref(c);
  t->leave = end_thread_streams;
  t->stack[t->depth++] = c;
  t->current = c;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext c)
{
  CUresult error = sim_context_check(c);
  return error ? error : push_current(c);
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *c)
{
  if (!sim_self->depth) return CUDA_ERROR_INVALID_CONTEXT;
  if (c) *c = sim_self->current;
  pop_current(sim_self);
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext c)
{
  if (c == sim_self->current) return CUDA_SUCCESS;
  if (c && sim_context_check(c)) return sim_context_check(c);
  if (sim_self->depth) pop_current(sim_self);
  return c ? push_current(c) : CUDA_SUCCESS;
}

SIM_ASSIGN(cuCtxGetCurrent, SIM_NEED(pctx), *pctx, sim_self->current)

/* ---- contexts of the program's own ----------------------------------------------------------- */

static CUresult create_context(CUcontext *out, unsigned flags, CUdevice dev, unsigned api_version)
{
  struct sim_device *d = sim_device(dev);
  if (!out || flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext c = context_new(d, false);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  c->api_version = api_version;
  CUresult error = fill_context(c, flags);
  if (!error) error = push_current(c);
  if (error) {
    sim_context_unref(c);
    return error;
  }
  *out = c;
  return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxCreate_v2, create_context(pctx, flags, dev, 3020))

CUresult sim_cuCtxCreate_v3(CUcontext *c, CUexecAffinityParam *affinity, int count,
                            unsigned int flags, CUdevice dev)
{
  if (affinity || count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create_context(c, flags, dev, 3020);
}

CUresult sim_cuCtxCreate_v4(CUcontext *c, CUctxCreateParams *params, unsigned int flags,
                            CUdevice dev)
{
  if (params && params->numExecAffinityParams) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (params && params->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  return create_context(c, flags, dev, 3020);
}

CUresult sim_cuCtxDestroy_v2(CUcontext c)
{
  CUresult error = sim_context_check(c);
  if (error) return error;
  if (c->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (c == sim_self->current) pop_current(sim_self);
  empty_context(c);
  sim_context_unref(c);
  return CUDA_SUCCESS;
}

/* ---- primary contexts ------------------------------------------------------------------------ */

#define NEED_DEVICE(d, ordinal)                                                                    \
  struct sim_device *d = sim_device(ordinal);                                                      \
  if (!d) return CUDA_ERROR_INVALID_DEVICE

static bool primary_active(const struct sim_device *d)
{
  return d->primary && atomic_load(&d->primary->error) != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice dev)
{
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  NEED_DEVICE(d, dev);
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(sim_devices_lock);
  if (!d->primary) d->primary = context_new(d, true);
  if (!d->primary)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  else if (!primary_active(d))
    error = fill_context(d->primary, d->primary_flags);
  if (!error) {
    d->primary_refs++;
    *c = d->primary;
  }
  return error;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
  NEED_DEVICE(d, dev);
  CUresult error = CUDA_SUCCESS;
  bool last = false;
  pthread_mutex_lock(&sim_devices_lock);
  if (!d->primary_refs)
    error = CUDA_ERROR_INVALID_CONTEXT;
  else
    last = --d->primary_refs == 0 && primary_active(d);
  pthread_mutex_unlock(&sim_devices_lock);
  if (last) empty_context(d->primary);
  return error;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
  NEED_DEVICE(d, dev);
  pthread_mutex_lock(&sim_devices_lock);
  bool active = primary_active(d);
  pthread_mutex_unlock(&sim_devices_lock);
  if (active) empty_context(d->primary);
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
  NEED_DEVICE(d, dev);
  pthread_mutex_lock(&sim_devices_lock);
  bool is_active = primary_active(d);
  if (flags) *flags = is_active ? d->primary->flags : d->primary_flags;
  pthread_mutex_unlock(&sim_devices_lock);
  if (active) *active = is_active;
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
  NEED_DEVICE(d, dev);
  if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_devices_lock);
  d->primary_flags = flags;
  if (primary_active(d)) d->primary->flags = flags;
  return CUDA_SUCCESS;
}

/* ---- what a context states
 * --------------------------------------------------------------------- */

#define FIND_CONTEXT(c) /* NULL: the current one */                                                \
  if (!(c)) (c) = sim_current();                                                                   \
  CUresult error = (c) ? sim_context_check(c) : CUDA_ERROR_INVALID_CONTEXT;                        \
  if (error) return error

SIM_ASSIGN(cuCtxGetDevice, SIM_NEED_CONTEXT(c); SIM_NEED(device), *device, c->device->ordinal)

CUresult sim_cuCtxGetDevice_v2(CUdevice *dev, CUcontext c)
{
  if (!c) return sim_cuCtxGetDevice(dev);
  if (!dev) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_context_check(c);
  if (!error) *dev = c->device->ordinal;
  return error;
}

CUresult sim_cuCtxSynchronize(void)
{
  SIM_NEED_CONTEXT(c);
  CUresult error = sim_capture_bar_context(c);
  return error ? error : sim_context_wait(c);
}

CUresult sim_cuCtxSynchronize_v2(CUcontext c)
{
  if (!c) return sim_cuCtxSynchronize();
  CUresult error = sim_context_check(c);
  if (!error) error = sim_capture_bar_context(c);
  return error ? error : sim_context_wait(c);
}

SIM_ASSIGN(cuCtxGetApiVersion, SIM_NEED(version); FIND_CONTEXT(ctx), *version, ctx->api_version)
SIM_ASSIGN(cuCtxGetId, SIM_NEED(ctxId); FIND_CONTEXT(ctx), *ctxId, ctx->id)
SIM_ASSIGN(cuCtxGetFlags, SIM_NEED_CONTEXT(c); SIM_NEED(flags), *flags, c->flags)
SIM_ASSIGN(cuCtxSetFlags, SIM_NEED_CONTEXT(c);
           SIM_NEED(!(flags & ~(unsigned)CU_CTX_FLAGS_MASK)), c->flags, flags)

CUresult sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
  SIM_NEED_CURRENT();
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

/* "This is purely a performance hint and it can be ignored or clamped depending on the platform",
 * of the two limits of the L2 cache. */
static size_t clamped(const struct sim_device *d, CUlimit limit, size_t value)
{
  size_t most = SIZE_MAX;
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY) most = 128;
  if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
    most = (size_t)sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
  return value < most ? value : most;
}

CUresult sim_cuCtxSetLimit(CUlimit limit, size_t value)
{
  SIM_NEED_CONTEXT(c);
  if ((unsigned)limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED ||
      limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  c->limits[limit] = clamped(c->device, limit, value);
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetLimit(size_t *value, CUlimit limit)
{
  SIM_NEED_CONTEXT(c);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if ((unsigned)limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = c->limits[limit];
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuCtxGetCacheConfig, SIM_NEED_CONTEXT(c); SIM_NEED(pconfig), *pconfig, c->cache)
SIM_ASSIGN(cuCtxSetCacheConfig, SIM_NEED_CONTEXT(c);
           SIM_NEED((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL), c->cache, config)
SIM_ASSIGN(cuCtxGetSharedMemConfig, SIM_NEED_CONTEXT(c); SIM_NEED(pConfig), *pConfig, c->shared)
SIM_ASSIGN(cuCtxSetSharedMemConfig, SIM_NEED_CONTEXT(c);
           SIM_NEED((unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE), c->shared,
           config)
SIM_ENTRY(cuCtxResetPersistingL2Cache, sim_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT)

/* ---- peers ----------------------------------------------------------------------------------- */

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
  SIM_NEED_CONTEXT(c);
  CUresult error = sim_context_check(peer);
  if (error) return error;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (peer->device == c->device) return CUDA_ERROR_INVALID_DEVICE;
  uint32_t bit = UINT32_C(1) << peer->device->ordinal;
  SIM_HOLD(c->lock);
  if (c->peers & bit) error = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  (void)__atomic_or_fetch(&c->peers, bit, __ATOMIC_RELAXED);
  return error;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer)
{
  SIM_NEED_CONTEXT(c);
  CUresult error = sim_context_check(peer);
  if (error) return error;
  uint32_t bit = UINT32_C(1) << peer->device->ordinal;
  SIM_HOLD(c->lock);
  if (!(c->peers & bit)) error = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  (void)__atomic_and_fetch(&c->peers, ~bit, __ATOMIC_RELAXED);
  return error;
}
