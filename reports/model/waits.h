/* waits.h: which waits had nothing to wait for, or waited for more than they had to, by place; how
 * their time divides. */
#ifndef WEIR_REPORTS_WAITS_H
#define WEIR_REPORTS_WAITS_H

#include "reports/model/sites.h"
#include "reports/model/wait_log.h"

/* Operations of devices by which waits of a trace that is not resolved are divided, at most: about a second. */
enum { WR_JUDGED_WORK = 400000 };

/* Whether waits can be judged. *pass: what has to take all events in order of time before wr_wait_truth_load(), open;
 * NULL: nothing. m->finished must be there. */
weir_status wr_wait_truth_begin(wr_model *m, const wr_events *events, wr_wait_pass **pass);

/* Fills m->waits, of `sums` those of redundant and wider waits, and why the devices of
 * m->device_times were idle; these and m->total must be there. */
weir_status wr_wait_truth_load(wr_model *m, wr_site_sums *sums, const wr_events *events,
                               wr_wait_pass *pass);
void wr_wait_truth_free(wr_wait_truth *t);

#endif
