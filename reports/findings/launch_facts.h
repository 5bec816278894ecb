/* launch_facts.h: what becomes of the contents of blocks of device memory, by what launches may write: of a kernel that is named
 * as C++ names it the types of its parameters say so (kernel_params.h), and by its access set each word of a launch is one of a
 * parameter.
 *
 * Contents have numbers. Blocks of one number hold the same bytes; a number that was never seen before is one of
 * which nothing is known. An upload whose bytes were hashed, a memset and a copy of a whole block have a number by what
 * they write. A launch gives the blocks that it may write numbers by the kernel, its parameters and what they held before:
 * so a launch is the same again where it gives its blocks the numbers that it gave them the last time. A kernel that writes
 * memory which nothing has written before cannot use what it held.
 *
 * A process is not followed that makes memory which others, textures or graphs reach (order_facts.h has the list), or
 * of which calls are missing. */
#ifndef WEIR_REPORTS_FINDINGS_LAUNCH_FACTS_H
#define WEIR_REPORTS_FINDINGS_LAUNCH_FACTS_H

#include "reports/findings/access_facts.h"
#include "reports/findings/fact_table.h"

typedef struct wr_launch_facts {
  /* private */
  struct wr_launch_state *state; /* owned; NULL: the trace has nothing to look for */
} wr_launch_facts;

/* Closed by wr_launch_close() whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_launch_open(wr_launch_facts *x, const wr_events *events, wr_fact_tables *tables);
void wr_launch_close(wr_launch_facts *x);

/* Events in order of start, some at a time: adds rows as they are seen. */
weir_status wr_launch_take(wr_launch_facts *x, const wr_event events[], size_t count);

/* After all. */
weir_status wr_launch_end(wr_launch_facts *x);

#endif
