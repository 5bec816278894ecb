/* waits.h: which waits had nothing to wait for, by place. */
#ifndef WEIR_REPORTS_WAITS_H
#define WEIR_REPORTS_WAITS_H

#include "reports/model/sites.h"

/* Fills m->waits, and of `sums` those of redundant waits. m->total must be there. */
weir_status wr_wait_truth_load(wr_model *m, wr_site_sums *sums, const wr_db *db);

#endif
