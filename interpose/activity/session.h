/* session.h: one stay of ours with CUPTI: alone, or together with other subscribers where it can
 * have several. */
#ifndef WEIR_INTERPOSE_ACTIVITY_SESSION_H
#define WEIR_INTERPOSE_ACTIVITY_SESSION_H

#include "interpose/activity/library.h"

typedef enum session_place {
  SESSION_CLOSED,
  SESSION_OPENING, /* it may be alone in a moment */
  SESSION_ALONE,
  SESSION_SHARED
} session_place;

typedef struct cupti_session {
  const cupti_library *library;
  CUpti_SubscriberHandle subscriber;
  _Atomic int place;               /* session_place */
  unsigned count;                  /* sessions so far, this one among them */
  const CUpti_ActivityKind *kinds; /* wanted; so many are enabled */
  unsigned kinds_enabled;
} cupti_session;

/* Who may be there with us. */
typedef enum session_company {
  SESSION_ANY,
  SESSION_MUST_BE_ALONE,
  SESSION_MUST_SHARE
} session_company;

CUptiResult session_open(cupti_session *s, CUpti_CallbackFunc callback, session_company company);

typedef struct session_buffers { /* the functions of both forms */
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
  cupti_request_v2 request_v2;
  cupti_complete_v2 complete_v2;
} session_buffers;

/* Records of these kinds from now on, into these buffers. `kinds` stays valid. */
CUptiResult session_enable(cupti_session *s, const session_buffers *buffers,
                           const CUpti_ActivityKind *kinds, unsigned count);
void session_disable(cupti_session *s);

/* No more callbacks. With others what has been recorded is read before. */
void session_close(cupti_session *s);

CUptiResult session_next_record(const cupti_session *s, uint8_t *buffer, size_t bytes,
                                CUpti_Activity **record);
CUptiResult session_dropped(const cupti_session *s, size_t *count);
CUptiResult session_clock(const cupti_session *s, uint64_t *ns);

#endif
