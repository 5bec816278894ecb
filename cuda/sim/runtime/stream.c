/* stream.c: streams, events and host functions: nearly all are the driver's call of the same name.
 */
#include <stdlib.h>
#include "cuda/sim/runtime/rt.h"

/* NULL and the two special handles name default streams, which nobody created. */
static bool created(cudaStream_t stream)
{
  return stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
}

static cudaError_t create_runtime_stream(cudaStream_t *out, unsigned int flags)
{
  return out ? rt_result(rt_drv->StreamCreate(out, flags)) : cudaErrorInvalidValue;
}

static cudaError_t create_event(cudaEvent_t *out, unsigned int flags)
{
  const unsigned int known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  return out && !(flags & ~known) ? rt_result(rt_drv->EventCreate(out, flags))
                                  : cudaErrorInvalidValue;
}

RT_BODY(cudaStreamCreate, create_runtime_stream(pStream, cudaStreamDefault))
RT_BODY(cudaStreamCreateWithFlags, create_runtime_stream(pStream, flags))
RT_BODY(cudaStreamCreateWithPriority,
        pStream ? rt_result(rt_drv->StreamCreateWithPriority(pStream, flags, priority))
                : cudaErrorInvalidValue)
RT_BODY(cudaStreamDestroy,
        created(stream) ? rt_result(rt_drv->StreamDestroy(stream)) : cudaErrorInvalidResourceHandle)
RT_BODY_BOTH(cudaStreamWaitEvent, _ptsz,
             event ? rt_result(d->StreamWaitEvent(stream, event, flags))
                   : cudaErrorInvalidResourceHandle)

RT_BODY(cudaEventCreate, create_event(event, cudaEventDefault))
RT_BODY(cudaEventCreateWithFlags, create_event(event, flags))
#define NEED(event, call) ((event) ? rt_result(call) : cudaErrorInvalidResourceHandle)
RT_BODY(cudaEventDestroy, NEED(event, rt_drv->EventDestroy(event)))
RT_BODY(cudaEventQuery, NEED(event, rt_drv->EventQuery(event)))
RT_BODY(cudaEventSynchronize, NEED(event, rt_drv->EventSynchronize(event)))
RT_BODY(cudaEventElapsedTime,
        !ms ? cudaErrorInvalidValue : NEED(start && end, rt_drv->EventElapsedTime(ms, start, end)))
RT_BODY_BOTH(cudaEventRecord, _ptsz, NEED(event, d->EventRecord(event, stream)))
RT_BODY_BOTH(cudaEventRecordWithFlags, _ptsz,
             NEED(event, d->EventRecordWithFlags(event, stream, flags)))

/* ---- calls back into the program ------------------------------------------------------------- */

RT_BODY_BOTH(cudaLaunchHostFunc, _ptsz,
             fn ? rt_result(d->LaunchHostFunc(stream, fn, userData)) : cudaErrorInvalidValue)

/* The driver calls back with its own error number: carry the program's function through. */
struct callback {
  cudaStreamCallback_t function;
  void *data;
};

static void CUDA_CB call_back(CUstream stream, CUresult result, void *data)
{
  struct callback c = *(struct callback *)data;
  free(data);
  c.function(stream, rt_result(result), c.data);
}

static cudaError_t add_callback(const struct rt_driver *d, cudaStream_t stream,
                                cudaStreamCallback_t function, void *data, unsigned int flags)
{
  if (!function || flags) return cudaErrorInvalidValue;
  struct callback *c = malloc(sizeof *c);
  if (!c) return cudaErrorMemoryAllocation;
  *c = (struct callback){function, data};
  cudaError_t e = rt_result(d->StreamAddCallback(stream, call_back, c, 0));
  if (e) free(c);
  return e;
}

RT_BODY_BOTH(cudaStreamAddCallback, _ptsz, add_callback(d, stream, callback, userData, flags))
