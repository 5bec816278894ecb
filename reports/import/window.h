/* window.h: spools of which a recorder kept the last records alone.
 *
 * Next to such a spool lies a tally of all that came before (reports/tally/replay.h). An importer
 * takes what that delivers first and then the spool from there on, so that a trace begins with what
 * was still of account, at its own times; what is in totals alone goes into the tables
 * before_window, before_window_memory and before_window_context. Their folder may have a note of
 * why and when the window was asked for: lines "key value" in the file WR_WINDOW_NOTE. */
#ifndef WEIR_REPORTS_IMPORT_WINDOW_H
#define WEIR_REPORTS_IMPORT_WINDOW_H

#include "reports/import/importer.h"

/* Known keys: reason, a text; end_ns, CLOCK_MONOTONIC. */
#define WR_WINDOW_NOTE ".window"

/* Whether a tally is next to the spool, which is added now: notes that, and what the folder says.
 * Errors: ECORRUPT (the note), EINVAL: the trace has it already. */
weir_status wr_window_look(wr_spool *s, bool known);

/* Takes what came before the spool's records, once, before its first drain. */
weir_status wr_window_begin(wr_spool *s);

/* Writes the meta rows, when all is in. */
weir_status wr_window_finish(const trace_importer *im);

#endif
