/* correlate.c: the number of a driver call goes ahead of the event that the call is part of.
 *
 * CUPTI calls back at the entry of the functions below, in the program's thread, with the number
 * that the device's operations will bear. The thread is inside a wrapper then, whose event will
 * begin with the tick that the wrapper's call has noted, and which it writes when the call returns:
 * so the thread writes number and tick now, into its own chunk. A call made in no wrapper (of a
 * library in another namespace) has no event. CUDA is not to be called in signal handlers; a
 * handler that interrupts the writing of an event, and does, would damage that event. */
#include "interpose/activity/observer.h"

#include <errno.h>
#include <cupti_driver_cbid.h>
#include "interpose/record/record.h"

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

typedef struct id_range {
  uint16_t first, last;
} id_range;

/* Functions whose work has records; the numbers between first and last are all such. */
static const id_range copies[] = {{ID(cuMemcpyHtoD), ID(cu64MemsetD2D32)},
                                  {ID(cuMemsetD8Async), ID(cu64MemsetD2D32Async)},
                                  {ID(cu64Memcpy2D), ID(cu64Memcpy2DAsync)},
                                  {ID(cuMemcpy_v2), ID(cuMemsetD2D32_v2)},
                                  {ID(cuMemcpyHtoD_v2), ID(cuMemcpyHtoAAsync_v2)},
                                  {ID(cuMemcpy), ID(cuMemcpyAsync)},
                                  {ID(cuMemcpyPeer), ID(cuMemcpy3DPeerAsync)},
                                  {ID(cuMemcpyHtoD_v2_ptds), ID(cuMemsetD2D32_v2_ptds)},
                                  {ID(cuMemcpyAsync_ptsz), ID(cuMemsetD2D32Async_ptsz)},
                                  {ID(cuGraphLaunch), ID(cuGraphLaunch_ptsz)},
                                  {ID(cuMemcpyBatchAsync), ID(cuMemcpy3DBatchAsync_ptsz)},
                                  {ID(cuMemcpyBatchAsync_v2), ID(cuMemcpy3DBatchAsync_v2_ptsz)}};
static const id_range kernels[] = {
    {ID(cuLaunch), ID(cuLaunchGridAsync)},
    {ID(cuLaunchKernel), ID(cuLaunchKernel)},
    {ID(cuLaunchKernel_ptsz), ID(cuLaunchKernel_ptsz)},
    {ID(cuLaunchCooperativeKernel), ID(cuLaunchCooperativeKernel_ptsz)},
    {ID(cuLaunchCooperativeKernelMultiDevice), ID(cuLaunchCooperativeKernelMultiDevice)},
    {ID(cuLaunchKernelEx), ID(cuLaunchKernelEx_ptsz)}};

/* A number that this CUPTI has not is refused, and nothing is lost. */
static void enable_ranges(const cupti_library *l, CUpti_SubscriberHandle subscriber,
                          const id_range *ranges, size_t count)
{
  for (size_t i = 0; i < count; i++)
    for (uint32_t id = ranges[i].first; id <= ranges[i].last; id++)
      (void)l->cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

void correlate_enable(const cupti_library *l, CUpti_SubscriberHandle subscriber, bool with_kernels)
{
  enable_ranges(l, subscriber, copies, sizeof copies / sizeof *copies);
  if (with_kernels) enable_ranges(l, subscriber, kernels, sizeof kernels / sizeof *kernels);
}

void CUPTIAPI correlate_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data)
{
  const CUpti_CallbackData *call = data;
  thread_state *t = &thread_self;
  (void)unused, (void)id;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || call->callbackSite != CUPTI_API_ENTER) return;
  if (!t->depth || !t->outermost || t->recording_suspended) return;
  if (!observer_is_wanted() || !thread_ready(t)) return;
  const hook_call *c = (const hook_call *)t->outermost;
  trace_event head = {.start = c->start,
                      .a = call->correlationId,
                      .b = c->start,
                      .device = WEIR_DEVICE_NONE,
                      .src_device = WEIR_DEVICE_NONE};
  int kept = errno;
  (void)spool_writer_extended(&t->writer, WEIR_EV_CORRELATION, &head, "", 0);
  errno = kept;
}
