/* poll_facts.h: the facts about a thread that asks whether work is complete: questions in a row
 * that were answered "not complete", and what of such a wait came late since the thread paused. */
#ifndef WEIR_REPORTS_POLL_FACTS_H
#define WEIR_REPORTS_POLL_FACTS_H

#include "core/trace/event.h"
#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

/* What is remembered of a thread. Zero-initialised it has called nothing. */
typedef struct wr_poll_state {
  uint64_t asked, stream; /* event, or 0, and stream of the last questions: not complete */
  int64_t start, end;     /* of these questions */
  int64_t polls;          /* 0: none, or the thread has called something else since */
  uint64_t recorded;      /* the event that was recorded last, with no device work queued since */
  bool queued;            /* device work, since the last wait of this kind */
} wr_poll_state;

/* A row is many questions, as many as its bytes and one, that were answered "not complete"; `b`:
 * ns until the last of them returned. Errors: ENOMEM, EIO. */
weir_status wr_poll_take(wr_fact_tables *tables, wr_poll_state *h, const wr_common *t,
                         const wr_fact_call *c);

/* A question that was answered "complete" after a pause (WR_PAUSED). Errors: ENOMEM, EIO. */
weir_status wr_poll_end(wr_fact_tables *tables, wr_poll_state *h, const wr_common *t,
                        const wr_fact_call *c);

/* Another call of the thread: a record of an event, or device work. */
static inline void wr_poll_see(wr_poll_state *h, const wr_common *t, const wr_fact_call *c)
{
  if (t->kind == WEIR_EV_EVENT && !t->object) h->recorded = c->a;
  if (!t->device_work) return;
  h->queued = true;
  h->recorded = 0;
  h->polls = 0;
}

#endif
