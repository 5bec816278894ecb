/* wait_log.h: what each wait of the host had to wait for: the model of queues (reports/queues) is
 * fed with the calls of a trace. Their rows are read once as they are stored, and put in order of
 * time by a log of runs. */
#ifndef WEIR_REPORTS_WAIT_LOG_H
#define WEIR_REPORTS_WAIT_LOG_H

#include "reports/import/schema.h"
#include "reports/queues/queues.h"
#include "reports/queues/sweep.h"

/* Calls `verdict` for each call of a complete trace of version 2 in which the host waits or may
 * wait; and the taker, where that is not NULL and there are device times. `beside`: begin of the paths
 * of the files of a long pass (run_log.h). Errors: ENOMEM, EIO, those of `verdict` and the taker. */
weir_status wr_wait_each(const wr_db *db, const char *beside, wr_verdict_fn verdict, void *context,
                         const wr_sweep_taker *taker);

/* Makes `wait_detail`, `wait_time`, `device_gap`, `device_idle` and `queue_full` of such a trace, in
 * the caller's transaction, in place of those that are there. `temporary`: tables of this connection's, and nothing is
 * written beside the trace, but in TMPDIR. Not `divide`: `wait_detail` alone, whatever device times there are. */
weir_status wr_wait_write(const wr_db *db, bool temporary, bool divide);

#endif
