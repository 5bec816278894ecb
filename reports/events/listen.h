/* listen.h: several who take the events of a trace, by one walk over them.
 *
 * A report states which listeners it needs. Where one of them needs the order of time all get that, and each thread's calls
 * are in their order in any case. How far the others are a listener cannot know: of a trace
 * of more than a few events those that may each have a thread, where the process may use several processors. */
#ifndef WEIR_REPORTS_LISTEN_H
#define WEIR_REPORTS_LISTEN_H

#include "reports/events/events.h"

typedef struct wr_listener {
  wr_event_fn take;                  /* each; or NULL, */
  weir_status (*end)(void *context); /* after the last event; NULL: nothing is to be done */
  void *context;
  bool in_time; /* it needs them in order of start, then of rows */
  bool apart; /* what it takes events with is its own: it may be in a thread of its own (relay.h) */
  wr_events_fn take_some; /* where several cost less at once */
} wr_listener;

enum { WR_LISTENERS = 8 /* of one walk, at most */ };

/* Walks over all events once, then ends the listeners, the first one first. A status of a listener ends it all. Errors: those
 * of listeners, ENOMEM, EIO, ECORRUPT. */
weir_status wr_events_listen(wr_events *x, const wr_listener listeners[], size_t count);

#endif
