/* scope.c: what surrounds a call into the driver.
 *
 * The context is the device's primary one, shared with the program's own CUDA runtime, which uses
 * it too. Every call makes it current and gives the thread back as it was, so that neither the
 * program's current device nor its stack of contexts shows that we were there.
 *
 * Capture. While a thread captures a stream into a graph, calls such as cuMemAlloc() and
 * cuEventQuery() are "potentially unsafe" and would end the capture; they are safe here, because
 * nothing of ours is meant to be replayed. So every call runs with the thread's mode RELAXED
 * (cuThreadExchangeStreamCaptureMode). What stays forbidden is to record in a capturing stream, or
 * in the legacy stream while any blocking stream captures: stream_capturing() knows both. */
#include "cuda/backend/device.h"

CUresult cuda_enter_context(const cuda_device_state *d, cuda_scope *s)
{
  const engine_listener *l = cuda_core_calls->listener;
  CUcontext now = NULL;
  bool all = s->suspended, suspended = l && l->suspend(s);
  CUresult r = weir_cuda.cuCtxGetCurrent(&now);
  s->pushed = !r && now != d->context;
  if (s->pushed) r = weir_cuda.cuCtxPushCurrent(d->context);
  if (!r) {
    s->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    r = weir_cuda.cuThreadExchangeStreamCaptureMode(&s->mode);
    if (r && s->pushed) (void)weir_cuda.cuCtxPopCurrent(&now);
  }
  s->suspended = suspended && all && !r;
  if (suspended && !s->suspended) l->resume();
  return r;
}

/* Pops may return "error codes from previous, asynchronous launches" and still have popped: what is
 * current shows it. */
static void pop_context(const cuda_device_state *d)
{
  CUcontext now = NULL;
  if (!weir_cuda.cuCtxPopCurrent(&now)) return;
  if (!weir_cuda.cuCtxGetCurrent(&now) && now == d->context) (void)weir_cuda.cuCtxPopCurrent(&now);
}

void cuda_leave_context(const cuda_device_state *d, cuda_scope *s)
{
  const engine_listener *l = cuda_core_calls->listener;
  bool suspended = s->suspended || (l && l->suspend(s));
  if (weir_cuda.cuThreadExchangeStreamCaptureMode(&s->mode))
    (void)weir_cuda.cuThreadExchangeStreamCaptureMode(&s->mode);
  if (s->pushed) pop_context(d);
  if (suspended) l->resume();
}
