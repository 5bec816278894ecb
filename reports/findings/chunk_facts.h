/* chunk_facts.h: chunks that a thread uploads, works on and fetches one after the other: a round is copies to the device,
 * launches, copies back, all in one stream, and the host waits for the results. The next round's copy begins before the host can have
 * written what it copies, so that it does not depend on these results: it could have gone to a second buffer meanwhile. */
#ifndef WEIR_REPORTS_CHUNK_FACTS_H
#define WEIR_REPORTS_CHUNK_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/fact_table.h"
#include "reports/findings/facts.h"

enum { WR_CHUNK_RESULTS = 4 /* copies back that are remembered */ };

typedef enum wr_chunk_phase {
  WR_CHUNK_NONE,
  WR_CHUNK_UPLOADED,
  WR_CHUNK_LAUNCHED,
  WR_CHUNK_FETCHING, /* without the host's waiting, yet */
  WR_CHUNK_FETCHED
} wr_chunk_phase;

typedef struct wr_chunk_result { /* host memory that a copy wrote */
  uint64_t at, bytes;
} wr_chunk_result;

/* Of a thread. */
typedef struct wr_chunk_state {
  wr_chunk_phase phase;
  const wr_common *first; /* the round's first upload: what it has in common with others */
  int64_t event, back;    /* of it; of the first copy back */
  int64_t end;            /* of the last call, ns */
  int64_t up_ns,
      back_ns; /* in the uploads; in the copies back, and waits for them and for the launches */
  uint64_t source, up_bytes, back_bytes;
  bool locked; /* all host memory is page-locked */
  wr_chunk_result result[WR_CHUNK_RESULTS];
  uint32_t results;
} wr_chunk_state;

/* The thread's next call of WR_ORDERS. Errors: ENOMEM, EIO. */
weir_status wr_chunk_take(wr_fact_tables *tables, wr_chunk_state *x, const wr_common *t,
                          const wr_fact_call *c);

#endif
