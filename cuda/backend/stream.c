/* stream.c: streams by priority, waiting for them, and the events of programs.
 *
 * What a program makes and waits for is its own work, so the preload library sees it. */
#include "cuda/backend/device.h"

static weir_status create_at(void *self, int priority, void **stream)
{
  CUstream s = NULL;
  WEIR_CUDA_CALL_SEEN(d, self, r,
                      weir_cuda.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, priority));
  if (!r) *stream = s;
  return driver_fail(r, "cuStreamCreateWithPriority of priority %d on cuda:%d", priority, d->index);
}

static weir_status priority_of(void *self, void *stream, int *priority)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuStreamGetPriority(stream, priority));
  return driver_fail(r, "cuStreamGetPriority of %p on cuda:%d", stream, d->index);
}

static weir_status priorities(void *self, int *least, int *greatest)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuCtxGetStreamPriorityRange(least, greatest));
  return driver_fail(r, "cuCtxGetStreamPriorityRange on cuda:%d", d->index);
}

static weir_status device_sync(void *self)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuCtxSynchronize());
  return cuda_index_fault(d, driver_fail(r, "waiting for cuda:%d", d->index));
}

static weir_status stream_sync(void *self, void *stream)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuStreamSynchronize(stream));
  return cuda_index_fault(d, driver_fail(r, "waiting for a stream of cuda:%d", d->index));
}

static weir_status stream_query(void *self, void *stream, bool *complete)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuStreamQuery(stream));
  *complete = r == CUDA_SUCCESS;
  return r == CUDA_ERROR_NOT_READY ? WEIR_OK
                                   : driver_fail(r, "asking a stream of cuda:%d", d->index);
}

/* ---- events ---------------------------------------------------------------------------------- */

static weir_status event_create_as(void *self, unsigned flags, void **event)
{
  CUevent e = NULL;
  unsigned how = (flags & WEIR_EVENT_TIMING ? 0u : CU_EVENT_DISABLE_TIMING) |
                 (flags & WEIR_EVENT_BLOCKING ? CU_EVENT_BLOCKING_SYNC : 0u);
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuEventCreate(&e, how));
  if (!r) *event = e;
  return driver_fail(r, "cuEventCreate on cuda:%d", d->index);
}

static weir_status event_elapsed(void *self, void *start, void *end, float *ms)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuEventElapsedTime(ms, start, end));
  return driver_fail(r, "cuEventElapsedTime on cuda:%d", d->index);
}

void cuda_streams(weir_backend *b)
{
  b->stream_create_at = create_at;
  b->stream_priority = priority_of;
  b->stream_priorities = priorities;
  b->device_sync = device_sync;
  b->stream_sync = stream_sync;
  b->stream_query = stream_query;
  b->event_create_as = event_create_as;
  b->event_elapsed = event_elapsed;
}
