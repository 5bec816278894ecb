/* correlate.c: the number of a driver call goes before the event that the call is part of.
 *
 * CUPTI calls back at the entry of the functions below, in the program's thread, with the number
 * that the device's operations will bear. The thread is inside a wrapper then, whose event will
 * begin with the tick that the wrapper's call has noted, and which it writes when the call returns:
 * so the thread writes number and tick now, into its own chunk. A call made in no wrapper (of a
 * library in another namespace) has no event. CUDA is not to be called in signal handlers; a
 * handler that interrupts the writing of an event, and does, would damage that event. */
#include "interpose/activity/observer.h"

#include <stddef.h>
#include <string.h>
#include <cupti_driver_cbid.h>
#include "interpose/activity/correlated.h"
#include "interpose/record/record.h"

typedef struct id_range {
  uint16_t first, last;
} id_range;

#define RANGE(first, last) {CUPTI_DRIVER_TRACE_CBID_##first, CUPTI_DRIVER_TRACE_CBID_##last},
static const id_range copies[] = {CORRELATED_COPIES(RANGE)};
static const id_range kernels[] = {CORRELATED_KERNELS(RANGE)};
#undef RANGE

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

/* An extended record without a payload is one slot. Where the chunk has none left, or a record is
 * held (held.h), it goes the long way, which keeps errno. */
static void write_correlation(spool_writer *w, uint32_t number, uint64_t start)
{
  trace_event head = {.kind = WEIR_EV_CORRELATION,
                      .start = start,
                      .duration_lo = event_payload_check(NULL, 0),
                      .a = number,
                      .b = start,
                      .device = WEIR_DEVICE_NONE,
                      .src_device = WEIR_DEVICE_NONE};
  if (w->next == w->end) {
    (void)spool_writer_extended(w, WEIR_EV_CORRELATION, &head, "", 0);
    return;
  }
  const size_t commit = offsetof(trace_event, kind); /* which goes last */
  memcpy((char *)w->next + commit, (char *)&head + commit, sizeof head - commit);
  spool_writer_commit(w, 1);
}

void CUPTIAPI correlate_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data)
{
  const CUpti_CallbackData *call = data;
  thread_state *t = &thread_self;
  (void)unused, (void)id;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || call->callbackSite != CUPTI_API_ENTER) return;
  if (!t->depth || t->depth & CALL_LEFT_OUT || !t->outermost || t->recording_suspended) return;
  if (!observer_is_wanted() || !thread_ready(t)) return;
  const hook_call *c = (const hook_call *)t->outermost;
  write_correlation(&t->writer, call->correlationId, c->start);
}
