/* turn_facts.h: the facts about streams and devices that a thread keeps in turn: it queues work in one, waits until that
 * has brought its results, and only then queues work in another. */
#ifndef WEIR_REPORTS_TURN_FACTS_H
#define WEIR_REPORTS_TURN_FACTS_H

#include "core/trace/event.h"
#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

/* A wait, or a copy that waits, for all that the thread has queued, which is in one stream. */
typedef struct wr_turn {
  int64_t event, template, duration, end; /* event 0: none */
  uint64_t stream, up, back;              /* bytes of its copies to the device and to the host */
  int device;
  bool turned; /* work in another stream or device came next */
} wr_turn;

/* What is remembered of a thread. Zero-initialised it has queued nothing. */
typedef struct wr_turn_state {
  wr_turn last;
  uint64_t stream, up, back; /* of what is queued and not waited for */
  uint64_t first;            /* stream of the first turn of the round, */
  int device, first_device;  /* and its device */
  bool pending, several;     /* something is queued; in several streams or devices */
} wr_turn_state;

/* The thread's next call of those that queue something or wait, in order of time. Errors: EIO, ENOMEM. */
weir_status wr_turn_take(wr_fact_tables *tables, wr_turn_state *x, const wr_common *t,
                         const wr_fact_call *c);

/* Whether the call changes nothing: most launches. */
static inline bool wr_turn_pass(const wr_turn_state *x, const wr_common *t)
{
  return t->kind == WEIR_EV_LAUNCH && x->pending && x->stream == t->stream &&
         x->device == t->device;
}

#endif
