/* order_facts.h: waits of streams for events, and the order that the legacy default stream makes, which nothing needs: what comes
 * before and after touches no common memory, and could run at one time (order_span.h).
 *
 * A process is followed from one time at which all is complete to the next. Of the *spans* between, those count of which all is
 * known: one thread queues launches whose access sets are known (access_facts.h), copies and memsets of device
 * memory, page-locked and pageable memory, in blocks whose allocation was seen. Where a span is not known, or the order of a
 * wait is needed in it, the place of the wait needs it in all others too: it is in no row. A process is not followed on
 * from what may touch any memory: managed, mapped, imported or given memory, textures, memory allocated in stream order. */
#ifndef WEIR_REPORTS_ORDER_FACTS_H
#define WEIR_REPORTS_ORDER_FACTS_H

#include "reports/findings/access_facts.h"
#include "reports/findings/fact_table.h"

enum { WR_POINTERS_BYTES = 65536 /* of a copy that may bring a table of pointers, at most */ };

typedef struct wr_order_facts {
  /* private */
  struct wr_order_state *state; /* owned; NULL: the trace has nothing to look for */
} wr_order_facts;

/* Closed by wr_order_close() whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_order_open(wr_order_facts *x, const wr_events *events);
void wr_order_close(wr_order_facts *x);

/* Events in order of start, some at a time. */
weir_status wr_order_take(wr_order_facts *x, const wr_event events[], size_t count);

/* After all: adds the rows of ORDER_UNNEEDED. */
weir_status wr_order_end(wr_order_facts *x, wr_fact_tables *tables);

#endif
