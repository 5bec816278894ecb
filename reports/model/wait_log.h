/* wait_log.h: what each wait of the host had to wait for: the model of queues (reports/queues) is
 * fed with the calls of a trace, in order of time. */
#ifndef WEIR_REPORTS_WAIT_LOG_H
#define WEIR_REPORTS_WAIT_LOG_H

#include "reports/events/events.h"

/* Makes `wait_detail`, `wait_time`, `device_gap`, `device_idle` and `queue_full` of such a trace,
 * in the caller's transaction, in place of those that are there. `temporary`: tables of this
 * connection's, and nothing is written next to the trace, but in TMPDIR. Not `divide`:
 * `wait_detail` alone, whatever device times there are. Errors: ENOMEM, EIO, ENOSPC, ECORRUPT. */
weir_status wr_wait_write(const wr_db *db, bool temporary, bool divide);

/* The same for who walks over all events in order of time anyway: begin, each event, end. The
 * events are borrowed until it is closed, whatever became of it. */
typedef struct wr_wait_pass wr_wait_pass;
typedef struct wr_wait_sum { /* waits of one template that were asked for */
  uint64_t judged, unknown;
  uint64_t redundant, redundant_ns;
  uint64_t wider, wider_ns;
} wr_wait_sum;
weir_status wr_wait_begin(wr_wait_pass **out, const wr_events *events, bool temporary, bool divide);
weir_status wr_wait_take(void *p, const wr_event *e); /* a wr_event_fn */
weir_status wr_wait_take_some(void *p, const wr_event events[], size_t count);
weir_status wr_wait_end(wr_wait_pass *p);
void wr_wait_close(wr_wait_pass *p);

/* After the end, by template; borrowed. */
const wr_wait_sum *wr_wait_sums(const wr_wait_pass *p);

#endif
