/* device_log.h: how waits divide, and why devices were idle, where a trace has device times: what
 * devices did is brought together with the model of queues and with the calls, in order of time, for
 * the sweep (reports/queues/sweep.h). Each part lies in a log of runs, so that memory is bounded. */
#ifndef WEIR_REPORTS_DEVICE_LOG_H
#define WEIR_REPORTS_DEVICE_LOG_H

#include "core/trace/event.h"
#include "reports/import/run_log.h"
#include "reports/import/schema.h"
#include "reports/queues/queues.h"
#include "reports/queues/sweep.h"

typedef struct wr_device_log {
  bool any;            /* there are device times; else nothing is kept */
  wr_run_log moments;  /* wr_sweep_moment */
  wr_run_log labels;   /* which operation of a queue an event is */
  uint8_t *timed;      /* bit by event: all its operations have times; owned */
  int64_t first, last; /* events that have a bit */
  bool graphs_whole;   /* of launches of graphs all was observed */
  const wr_db *db;     /* borrowed */
} wr_device_log;

/* Looks for device times. Errors: ENOMEM, ECORRUPT. */
weir_status wr_device_log_open(wr_device_log *l, const wr_db *db, const char *beside);
void wr_device_log_close(wr_device_log *l);

/* Of a call that is work: WR_HOW_TIMED, WR_HOW_HOST_ONLY or 0; `host`: a function of the host's. */
unsigned wr_device_log_how(const wr_device_log *l, int64_t id, const trace_event *e, bool host);

/* A call of the host's; `queues`: it puts work into a queue. */
void wr_device_log_call(wr_device_log *l, int64_t id, int64_t start, int64_t end,
                        const trace_event *e, bool queues);

/* What the model of queues says: of a wait, of work, of what is complete. */
void wr_device_log_wait(wr_device_log *l, const wr_queues *m, const wr_wait_verdict *v);
void wr_device_log_work(wr_device_log *l, const wr_queues *m, const wr_queue_call *c,
                        uint32_t queue, uint64_t number);
void wr_device_log_done(wr_device_log *l, uint32_t queue, uint64_t number, int64_t time);

/* Hands all to the taker. Errors: ENOMEM, EIO, those of the taker. */
weir_status wr_device_log_sweep(wr_device_log *l, const wr_sweep_taker *taker);

#endif
