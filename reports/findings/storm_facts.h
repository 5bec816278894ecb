/* storm_facts.h: the facts about kernels that a thread launches again and again with nothing
 * between, or nothing but a wait for each: how many, and how long the thread takes from the first of
 * them to the end of the wait for them. */
#ifndef WEIR_REPORTS_STORM_FACTS_H
#define WEIR_REPORTS_STORM_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

enum {
  WR_LEAST_STORM = 8, /* launches of a kernel by a stack, with no other call that queues or waits */
  WR_STORM_KINDS = 8 /* kernels by stack that are counted at one time; launches of others are not */
};

/* Launches of one kernel by one stack in one stream, whatever memory each is handed. */
typedef struct wr_storm_run {
  int64_t template; /* of the first */
  uint64_t site, stream;
  uint64_t function, threads;
  int64_t first, last, ns; /* events; in the launches */
  uint64_t launches;
} wr_storm_run;

/* What is remembered of a thread. Zero-initialised it has launched nothing. */
typedef struct wr_storm_state {
  wr_storm_run run[WR_STORM_KINDS];
  int runs;
  uint64_t total;      /* launches, of all runs and of others */
  int64_t last, ns;    /* of all: the last; in them */
  uint64_t most;       /* threads of one launch */
  int64_t from, until; /* from the first launch to the end of the last */
  uint64_t moved;      /* bytes that asynchronous copies after the launches move */
  bool closed;         /* something else was queued: a wait may follow, a launch begins anew */
  /* launches of one kernel by one stack, each of which the thread waits for by itself */
  wr_storm_run apart;
  int64_t apart_from, apart_until; /* from the first launch to the end of the last wait */
} wr_storm_state;

/* How launches of a storm are waited for. */
enum { WR_STORM_NOT_WAITED, WR_STORM_WAITED, WR_STORM_EACH_WAITED };

/* What all threads have in common. */
typedef struct wr_storm_facts {
  wr_fact_tables *tables; /* borrowed */
} wr_storm_facts;

static inline bool wr_storm_is_on(const wr_storm_state *h)
{
  return h->total || h->apart.launches;
}

/* The thread's next call, which succeeded and is not captured, in order of time; only a launch
 * counts while the thread is in no storm. Errors: EIO, ENOMEM. */
weir_status wr_storm_take(wr_storm_facts *f, wr_storm_state *h, const wr_common *t,
                          const wr_fact_call *c);

/* The thread calls no more. Errors: ENOMEM, EIO. */
weir_status wr_storm_end(wr_storm_facts *f, wr_storm_state *h);

#endif
