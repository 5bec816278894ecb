/* once_facts.h: page-locked memory of which one copy was made in all its life. */
#ifndef WEIR_REPORTS_ONCE_FACTS_H
#define WEIR_REPORTS_ONCE_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"
#include "reports/findings/process_state.h"

enum { WR_ONCE_BYTES = 1 << 20 /* of a block that is followed, at least */ };

/* An allocation of page-locked memory that succeeded; a copy, captured ones too; a free. Each in order of time. Errors:
 * ENOMEM, EIO. */
void wr_once_alloc(wr_process_state *x, const wr_common *t, const wr_fact_call *c);
void wr_once_copy(wr_process_state *x, const wr_common *t, const wr_fact_call *c);
weir_status wr_once_free(wr_fact_tables *tables, wr_process_state *x, const wr_fact_call *c);

/* The process calls no more. */
weir_status wr_once_end(wr_fact_tables *tables, wr_process_state *x);

#endif
