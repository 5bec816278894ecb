/* wait_log.h: what each wait of the host had to wait for: the model of queues (reports/queues) is
 * fed with the calls of a trace. Their rows are read once as they are stored, and put in order of
 * time by a log of runs. */
#ifndef WEIR_REPORTS_WAIT_LOG_H
#define WEIR_REPORTS_WAIT_LOG_H

#include "reports/import/schema.h"

/* Makes `wait_detail`, `wait_time`, `device_gap`, `device_idle` and `queue_full` of such a trace, in
 * the caller's transaction, in place of those that are there. `temporary`: tables of this connection's, and nothing is
 * written beside the trace, but in TMPDIR. Not `divide`: `wait_detail` alone, whatever device times there are.
 * Errors: ENOMEM, EIO, ENOSPC, ECORRUPT. */
weir_status wr_wait_write(const wr_db *db, bool temporary, bool divide);

/* The same for who walks over all rows of `event_row` anyway: begin, each row with these columns, end.
 * Whatever becomes of it, it is closed. */
#define WR_WAIT_COLUMNS "id, template, start, duration, a, b, bytes"
typedef struct wr_wait_pass wr_wait_pass;
weir_status wr_wait_begin(wr_wait_pass **out, const wr_db *db, bool temporary, bool divide);
void wr_wait_take(wr_wait_pass *p, sqlite3_value **v);
weir_status wr_wait_end(wr_wait_pass *p);
void wr_wait_close(wr_wait_pass *p);

#endif
