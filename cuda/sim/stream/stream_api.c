/* stream_api.c: what a program does with streams; the queue itself is stream.c. */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- handles --------------------------------------------------------------------------------- */

/* The calling thread's default stream of its current context, made at first use. The thread holds a
 * reference; streams of contexts that have ended are dropped on the way. */
static CUstream per_thread_of(CUcontext context)
{
  struct sim_thread *t = sim_self;
  for (uint32_t i = 0; i < t->stream_count;) {
    CUstream s = t->streams[i];
    if (__atomic_load_n((uint32_t *)&s->magic, __ATOMIC_ACQUIRE) != SIM_STREAM) {
      t->streams[i] = t->streams[--t->stream_count];
      sim_stream_unref(s);
      continue;
    }
    if (s->context == context) return s;
    i++;
  }
  CUstream *more = realloc(t->streams, (t->stream_count + 1) * sizeof(void *));
  if (!more) return NULL;
  t->streams = more;
  CUstream s = sim_stream_new(context, 0, 0, true);
  if (!s) return NULL;
  sim_stream_ref(s);
  t->streams[t->stream_count++] = s;
  return s;
}

CUresult sim_stream_find(CUstream handle, CUstream *stream)
{
  if (handle == CU_STREAM_PER_THREAD || handle == CU_STREAM_LEGACY || !handle) {
    SIM_NEED_CONTEXT(c);
    *stream = handle == CU_STREAM_PER_THREAD ? per_thread_of(c) : c->legacy;
    if (*stream) return CUDA_SUCCESS;
    return handle == CU_STREAM_PER_THREAD ? CUDA_ERROR_OUT_OF_MEMORY
                                          : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (!sim_arena_has(&sim_streams, handle)) return CUDA_ERROR_INVALID_HANDLE;
  *stream = handle;
  return (CUresult)atomic_load_explicit(&handle->context->error, memory_order_acquire);
}

__attribute__((visibility("default"))) uint32_t weir_sim_stream_id(void *context, void *stream,
                                                                   bool per_thread)
{
  CUcontext c = context ? context : sim_self ? sim_self->current : NULL;
  CUstream s = stream;
  if (!c || !sim_arena_has(&sim_contexts, c)) return 0;
  if (!s && per_thread) s = CU_STREAM_PER_THREAD;
  if (s == CU_STREAM_PER_THREAD) {
    s = sim_self ? per_thread_of(c) : NULL;
  } else if (!s || s == CU_STREAM_LEGACY) {
    s = c->legacy;
  }
  return s && sim_arena_has(&sim_streams, s) ? (uint32_t)s->id : 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

CUresult sim_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
  SIM_NEED_CONTEXT(c);
  if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  /* "If the priority is outside the range ... it will be clamped" */
  priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  CUstream s = sim_stream_new(c, flags, priority, false);
  if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
  *stream = s;
  return CUDA_SUCCESS;
}

SIM_ENTRY(cuStreamCreate, sim_cuStreamCreateWithPriority(phStream, Flags, 0))

CUresult sim_cuStreamDestroy_v2(CUstream stream)
{
  if (!sim_arena_has(&sim_streams, stream) || stream->is_default) return CUDA_ERROR_INVALID_HANDLE;
  sim_stream_close(stream);
  return CUDA_SUCCESS;
}

/* ---- waiting --------------------------------------------------------------------------------- */

CUresult sim_cuStreamQuery(CUstream stream)
{
  SIM_FIND_STREAM(s, stream);
  error = sim_queue_barred(s);
  if (!error) error = sim_unsafe();
  return error ? error : sim_stream_settle(s, true);
}

CUresult sim_cuStreamSynchronize(CUstream stream)
{
  SIM_FIND_STREAM(s, stream);
  error = sim_queue_barred(s);
  if (!error) error = sim_unsafe();
  if (error) return error;
  sim_stream_ref(s);
  error = sim_stream_settle(s, false);
  sim_stream_unref(s);
  return error;
}

/* ---- what a stream states of itself
 * ------------------------------------------------------------ */

SIM_ASSIGN(cuStreamGetPriority, SIM_NEED(priority);
           SIM_FIND_STREAM(s, hStream), *priority, s->priority)
SIM_ASSIGN(cuStreamGetFlags, SIM_NEED(flags); SIM_FIND_STREAM(s, hStream), *flags, s->flags)
SIM_ASSIGN(cuStreamGetId, SIM_NEED(streamId); SIM_FIND_STREAM(s, hStream), *streamId, s->id)
SIM_ASSIGN(cuStreamGetDevice, SIM_NEED(device);
           SIM_FIND_STREAM(s, hStream), *device, s->context->device->ordinal)
SIM_ASSIGN(cuStreamGetCtx, SIM_NEED(pctx); SIM_FIND_STREAM(s, hStream), *pctx, s->context)

CUresult sim_cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
  if (green) *green = NULL;
  return sim_cuStreamGetCtx(stream, context);
}

/* "NULL if the stream is not associated with any green context" */
SIM_ASSIGN(cuStreamGetGreenCtx, SIM_NEED(phCtx); SIM_FIND_STREAM(s, hStream), *phCtx, NULL)

CUresult sim_cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute,
                                  CUstreamAttrValue *value)
{
  if (!value || (unsigned)attribute >= CU_LAUNCH_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_STREAM(s, stream);
  *value = s->attributes[attribute];
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = s->priority;
  return CUDA_SUCCESS;
}

/* An access policy is a hint; what it states is checked as the documentation of
 * CUaccessPolicyWindow does. */
static bool window_is_legal(const struct sim_device *d, const CUaccessPolicyWindow *w)
{
  int most = sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  return w->num_bytes <= (size_t)most && w->hitRatio >= 0 && w->hitRatio <= 1 &&
         (unsigned)w->hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
         (unsigned)w->missProp <= CU_ACCESS_PROPERTY_STREAMING;
}

CUresult sim_cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
                                  const CUstreamAttrValue *value)
{
  if (!value || (unsigned)attribute >= CU_LAUNCH_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_STREAM(s, stream);
  if (attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW &&
      !window_is_legal(s->context->device, &value->accessPolicyWindow))
    return CUDA_ERROR_INVALID_VALUE;
  s->attributes[attribute] = *value;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) s->priority = value->priority;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
  SIM_FIND_STREAM(from, src);
  CUstream to;
  error = sim_stream_find(dst, &to);
  if (error) return error;
  memmove(to->attributes, from->attributes, sizeof to->attributes);
  return CUDA_SUCCESS;
}

/* ---- host functions -------------------------------------------------------------------------- */

struct host_op {
  struct sim_op op;
  CUhostFn function;         /* cuLaunchHostFunc, or */
  CUstreamCallback callback; /* cuStreamAddCallback */
  CUstream stream;           /* as the program named it */
  void *data;
};

static void run_host(struct sim_op *op, CUstream s)
{
  struct host_op *h = (struct host_op *)op;
  sim_self->gate = SIM_GATE_CALLBACK;
  if (h->function)
    h->function(h->data);
  else
    h->callback(h->stream, (CUresult)atomic_load(&s->context->error), h->data);
  sim_self->gate = 0;
}

/* A callback is notified of an error; a host function "will not be called in the event of an
 * error". */
static CUresult add_host(CUstream stream, struct host_op what)
{
  SIM_FIND_STREAM(s, stream);
  if (what.function && sim_capturing(s)) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};
    p.host = (CUDA_HOST_NODE_PARAMS_v2){.fn = what.function, .userData = what.data};
    return sim_capture_add(s, &p);
  }
  struct host_op *h = sim_op_new(sizeof *h, run_host);
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  h->function = what.function;
  h->callback = what.callback;
  h->stream = stream;
  h->data = what.data;
  h->op.always = what.callback != NULL;
  return sim_submit(s, &h->op, SIM_QUEUE, NULL);
}

SIM_CHECKED(cuLaunchHostFunc, SIM_NEED(fn),
            add_host(hStream, (struct host_op){.function = fn, .data = userData}))
SIM_CHECKED(cuStreamAddCallback, SIM_NEED(callback && !flags),
            add_host(hStream, (struct host_op){.callback = callback, .data = userData}))

struct sim_op *sim_host_node_op(const CUDA_HOST_NODE_PARAMS_v2 *p)
{
  struct host_op *h = sim_op_new(sizeof *h, run_host);
  if (!h) return NULL;
  h->function = p->fn;
  h->data = p->userData;
  return &h->op;
}
