/* session.c: see session.h. */
#include "interpose/activity/session.h"

#include <stdatomic.h>

static bool is_shared(const cupti_session *s)
{
  return atomic_load(&s->place) == SESSION_SHARED;
}

static CUptiResult subscribe_shared(cupti_session *s, CUpti_CallbackFunc callback)
{
  cupti_subscriber_params params = {.bytes = offsetof(cupti_subscriber_params, padding) +
                                             sizeof params.padding,
                                    .name = "Weir",
                                    .allows_others = 1};
  return s->library->by_subscriber.cuptiSubscribe_v2(&s->subscriber, callback, NULL, &params);
}

CUptiResult session_open(cupti_session *s, CUpti_CallbackFunc callback, session_company company)
{
  CUptiResult r = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  session_place place = SESSION_SHARED;
  if (company != SESSION_MUST_BE_ALONE && !(s->library->gates & CUPTI_GATE_ALONE))
    r = subscribe_shared(s, callback);
  if (r != CUPTI_SUCCESS && company != SESSION_MUST_SHARE) {
    place = SESSION_ALONE;
    r = s->library->cuptiSubscribe(&s->subscriber, callback, NULL);
  }
  atomic_store(&s->place, r == CUPTI_SUCCESS ? place : SESSION_CLOSED);
  s->count += r == CUPTI_SUCCESS;
  return r;
}

static CUptiResult register_buffers(const cupti_session *s, const session_buffers *buffers)
{
  const cupti_library *l = s->library;
  return is_shared(s) ? l->by_subscriber.cuptiActivityRegisterCallbacks_v2(
                            s->subscriber, buffers->request_v2, buffers->complete_v2)
                      : l->cuptiActivityRegisterCallbacks(buffers->request, buffers->complete);
}

static CUptiResult enable_kind(const cupti_session *s, CUpti_ActivityKind kind)
{
  const cupti_library *l = s->library;
  return is_shared(s) ? l->by_subscriber.cuptiActivityEnable_v2(s->subscriber, kind, NULL)
                      : l->cuptiActivityEnable(kind);
}

CUptiResult session_enable(cupti_session *s, const session_buffers *buffers,
                           const CUpti_ActivityKind *kinds, unsigned count)
{
  CUptiResult r = register_buffers(s, buffers);
  s->kinds = kinds;
  s->kinds_enabled = 0;
  while (r == CUPTI_SUCCESS && s->kinds_enabled < count) {
    r = enable_kind(s, kinds[s->kinds_enabled]);
    s->kinds_enabled += r == CUPTI_SUCCESS;
  }
  return r;
}

void session_disable(cupti_session *s)
{
  const cupti_library *l = s->library;
  for (unsigned i = 0; i < s->kinds_enabled; i++)
    (void)(is_shared(s) ? l->by_subscriber.cuptiActivityDisable_v2(s->subscriber, s->kinds[i], NULL)
                        : l->cuptiActivityDisable(s->kinds[i]));
  s->kinds_enabled = 0;
}

void session_close(cupti_session *s)
{
  if (atomic_load(&s->place) == SESSION_CLOSED) return;
  (void)s->library->cuptiUnsubscribe(s->subscriber);
  atomic_store(&s->place, SESSION_CLOSED);
}

static bool reads_by_subscriber(const cupti_session *s)
{
  return is_shared(s) && !(s->library->gates & CUPTI_GATE_NO_READERS_V2);
}

CUptiResult session_next_record(const cupti_session *s, uint8_t *buffer, size_t bytes,
                                CUpti_Activity **record)
{
  const cupti_library *l = s->library;
  return reads_by_subscriber(s)
             ? l->by_subscriber.cuptiActivityGetNextRecord_v2(s->subscriber, buffer, bytes, record)
             : l->cuptiActivityGetNextRecord(buffer, bytes, record);
}

CUptiResult session_dropped(const cupti_session *s, size_t *count)
{
  const cupti_library *l = s->library;
  return reads_by_subscriber(s)
             ? l->by_subscriber.cuptiActivityGetNumDroppedRecords_v2(s->subscriber, NULL, 0, count)
             : l->cuptiActivityGetNumDroppedRecords(NULL, 0, count);
}

CUptiResult session_clock(const cupti_session *s, uint64_t *ns)
{
  const cupti_library *l = s->library;
  return reads_by_subscriber(s) ? l->by_subscriber.cuptiGetTimestamp_v2(s->subscriber, ns)
                                : l->cuptiGetTimestamp(ns);
}
