/* stream.c: streams, events and host functions: nearly all are the driver's call of the same name.
 */
#include <stdlib.h>
#include "cuda/sim/runtime/rt.h"

/* NULL and the two special handles name default streams, which nobody created. */
static bool created(cudaStream_t stream)
{
  return stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
}

static cudaError_t create(cudaStream_t *out, unsigned int flags)
{
  return out ? rt_result(rt_drv->StreamCreate(out, flags)) : cudaErrorInvalidValue;
}

static cudaError_t create_event(cudaEvent_t *out, unsigned int flags)
{
  const unsigned int known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  return out && !(flags & ~known) ? rt_result(rt_drv->EventCreate(out, flags))
                                  : cudaErrorInvalidValue;
}

RT_BODY(cudaStreamCreate, (cudaStream_t * out), create(out, cudaStreamDefault))
RT_BODY(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned int flags), create(out, flags))
RT_BODY(cudaStreamCreateWithPriority, (cudaStream_t * out, unsigned int flags, int priority),
        out ? rt_result(rt_drv->StreamCreateWithPriority(out, flags, priority))
            : cudaErrorInvalidValue)
RT_BODY(cudaStreamDestroy, (cudaStream_t stream),
        created(stream) ? rt_result(rt_drv->StreamDestroy(stream)) : cudaErrorInvalidResourceHandle)
RT_CALL_BOTH(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),
             StreamGetPriority(stream, priority))
RT_CALL_BOTH(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int *flags),
             StreamGetFlags(stream, flags))
RT_CALL_BOTH(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id),
             StreamGetId(stream, id))
RT_CALL_BOTH(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device),
             StreamGetDevice(stream, device))
RT_CALL_BOTH(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), StreamSynchronize(stream))
RT_CALL_BOTH(cudaStreamQuery, _ptsz, (cudaStream_t stream), StreamQuery(stream))
RT_BODY_BOTH(cudaStreamWaitEvent, _ptsz,
             (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
             event ? rt_result(d->StreamWaitEvent(stream, event, flags))
                   : cudaErrorInvalidResourceHandle)
RT_CALL_BOTH(cudaStreamCopyAttributes, _ptsz, (cudaStream_t dst, cudaStream_t src),
             StreamCopyAttributes(dst, src))
RT_CALL_BOTH(cudaStreamGetAttribute, _ptsz,
             (cudaStream_t stream, cudaLaunchAttributeID a, cudaLaunchAttributeValue *value),
             StreamGetAttribute(stream, (CUstreamAttrID)a, (CUstreamAttrValue *)value))
RT_CALL_BOTH(cudaStreamSetAttribute, _ptsz,
             (cudaStream_t stream, cudaLaunchAttributeID a, const cudaLaunchAttributeValue *value),
             StreamSetAttribute(stream, (CUstreamAttrID)a, (const CUstreamAttrValue *)value))
RT_CALL_BOTH(cudaStreamIsCapturing, _ptsz,
             (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
             StreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
RT_CALL(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
        ThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))

RT_BODY(cudaEventCreate, (cudaEvent_t * out), create_event(out, cudaEventDefault))
RT_BODY(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned int flags), create_event(out, flags))
#define NEED(event, call) ((event) ? rt_result(call) : cudaErrorInvalidResourceHandle)
RT_BODY(cudaEventDestroy, (cudaEvent_t event), NEED(event, rt_drv->EventDestroy(event)))
RT_BODY(cudaEventQuery, (cudaEvent_t event), NEED(event, rt_drv->EventQuery(event)))
RT_BODY(cudaEventSynchronize, (cudaEvent_t event), NEED(event, rt_drv->EventSynchronize(event)))
RT_BODY(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
        !ms ? cudaErrorInvalidValue : NEED(start && end, rt_drv->EventElapsedTime(ms, start, end)))
RT_BODY_BOTH(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
             NEED(event, d->EventRecord(event, stream)))
RT_BODY_BOTH(cudaEventRecordWithFlags, _ptsz,
             (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
             NEED(event, d->EventRecordWithFlags(event, stream, flags)))

/* ---- calls back into the program ------------------------------------------------------------- */

RT_BODY_BOTH(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data),
             function ? rt_result(d->LaunchHostFunc(stream, function, data))
                      : cudaErrorInvalidValue)

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

RT_BODY_BOTH(cudaStreamAddCallback, _ptsz,
             (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned int flags),
             add_callback(d, stream, function, data, flags))
