/* whole.h: a trace's numbers and its findings: those that its import kept (kept.h), or by one walk
 * over its events.
 *
 * What is kept is all that default settings give: all places of each list, of which the first are
 * taken; no lines of source, which are quoted of the files that are there. With other settings
 * (db->symbols, db->innermost_sites, rules of the user's, another least cost), with db->anew, and
 * where nothing kept holds any more, all is computed. Both ways give the same. */
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

/* One of them: as wr_model_load(), wr_cache_load(), wr_findings_load(). */
weir_status wr_whole_model(wr_model *m, const wr_db *db, int top);
weir_status wr_whole_cache(wr_cache *c, const wr_db *db);
weir_status wr_whole_findings(wr_findings *f, const wr_db *db,
                              const wr_findings_settings *settings);

/* Computes all of a complete trace, and keeps it there. Of `settings` only `stop` and what shows
 * how far it is count. What is not to be kept is no failure: a trace without events, or whose
 * findings take too long, or too many bytes. Errors: those of wr_input_open(), of what computes,
 * and of wr_change_trace(); the trace is as it was. */
weir_status wr_whole_keep(const char *trace, const wr_findings_settings *settings);

#endif
