/* whole.h: a trace's numbers and its findings, by one walk over its events. */
#ifndef WEIR_REPORTS_WHOLE_H
#define WEIR_REPORTS_WHOLE_H

#include "reports/findings/findings.h"
#include "reports/model/model.h"

/* As wr_model_load() and then wr_findings_load() of the same trace. `settings` NULL: no findings,
 * and `f` may be NULL. Both are empty when it fails. */
weir_status wr_whole_load(wr_model *m, wr_findings *f, const wr_db *db, int top,
                          const wr_findings_settings *settings);

/* The same, but of a trace without events no findings. */
weir_status wr_whole_load_some(wr_model *m, wr_findings *f, const wr_db *db, int top,
                               const wr_findings_settings *settings);

/* The same as this, of open events and in a walk which others listen to, at most
 * WR_MODEL_LISTENERS - WR_FINDINGS_LISTENERS. */
weir_status wr_whole_load_with(wr_model *m, wr_findings *f, wr_events *events, int top,
                               const wr_findings_settings *settings, const wr_listener others[],
                               size_t count);

#endif
