/* step_facts.h: the facts about what a thread does by itself from call to call: results that it had
 * too little time to read, devices that it made current for nothing. */
#ifndef WEIR_REPORTS_STEP_FACTS_H
#define WEIR_REPORTS_STEP_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

enum {
  WR_RESULTS = 16,        /* destinations that are remembered of a thread */
  WR_RESULT_BYTES = 4096, /* of a copy to the host, at least, that counts as one */
  WR_SCALAR_BYTES = 64    /* of one of a number or a few, at most */
};

typedef struct wr_result { /* copy to the host */
  uint64_t address, bytes;
  int64_t event, template, duration;
  int64_t own;           /* as `own` of the thread, when it was made */
  int64_t wait, wait_ns; /* of one that does not wait, the wait right after it; 0: none */
} wr_result;

/* A few bytes that came to the host, and what came before it since the one before. */
typedef struct wr_scalar {
  int64_t event, template, duration; /* event 0: none */
  int64_t wait, end;       /* wait 0: it waits by itself; end: of what waited, 0 not yet */
  uint64_t stream;         /* the copy's */
  int64_t launches, again; /* since the one before: launches; calls of what came first */
  int64_t crossed;         /* larger copies between host and device */
  bool queued, waited,
      stays; /* after it: something other than a launch; a wait after `end`; one that is needed without it */
} wr_scalar;

/* What is remembered of a thread. Zero-initialised it has called nothing. */
typedef struct wr_step_state {
  int64_t own, until;                /* ns so far between calls; end of the last call */
  wr_result result[WR_RESULTS];      /* by a hash of their addresses */
  unsigned results;                  /* which of them there are, a bit for each */
  unsigned unwaited;                 /* the last of them, from 1, with nothing after it; 0: none */
  int64_t set, set_template, set_ns; /* the last call, where it set the device; 0: it did not */
  uint64_t device, device_before;    /* 1 more than is set, and was before `set`; 0: unknown */
  wr_scalar scalar;                  /* the last of the thread's */
  int64_t launches, again, crossed;  /* as there, since it */
  int64_t first; /* template of the first launch or larger upload since it; 0: none */
  bool turns;    /* two calls and more end with `set` */
} wr_step_state;

/* A call of WR_STEPS_ON, or after one that set the device, as wr_step_take() has it. */
weir_status wr_step_see(wr_fact_tables *tables, wr_step_state *h, const wr_common *t,
                        const wr_fact_call *c);

/* The thread's next call, in order of time. Errors: EIO, ENOMEM. */
static inline weir_status wr_step_take(wr_fact_tables *tables, wr_step_state *h, const wr_common *t,
                                       const wr_fact_call *c)
{
  if (c->time > h->until) h->own += c->time - h->until;
  if (c->time + c->duration > h->until) h->until = c->time + c->duration;
  return h->set || t->what & WR_STEPS_ON ? wr_step_see(tables, h, t, c) : WEIR_OK;
}

#endif
