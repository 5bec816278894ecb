/* waits.h: which waits had nothing to wait for, or waited for more than they had to, by place; how
 * their time divides. */
#ifndef WEIR_REPORTS_WAITS_H
#define WEIR_REPORTS_WAITS_H

#include "reports/model/sites.h"

/* Operations of devices by which waits of a trace that is not resolved are divided, at most: about a second. */
enum { WR_JUDGED_WORK = 400000 };

/* Fills m->waits, of `sums` those of redundant and wider waits, and why the devices of
 * m->device_times were idle; these and m->total must be there. */
weir_status wr_wait_truth_load(wr_model *m, wr_site_sums *sums, wr_events *events);
void wr_wait_truth_free(wr_wait_truth *t);

#endif
