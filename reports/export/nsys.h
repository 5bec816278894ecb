/* nsys.h: a trace as Nsight Systems exports one to SQLite.
 *
 * A trace has views of those names. Some tools list tables alone, change them, or ask for rowids:
 * for these the export has tables, those that Weir knows nothing for among them, empty, and
 * functions by the names that people search for. Call chains have the names of functions as reports
 * have them (symbolize.h). */
#ifndef WEIR_REPORTS_NSYS_H
#define WEIR_REPORTS_NSYS_H

#include "core/base/status.h"

/* Writes the trace (or spool) `trace` to the new file `output`. Errors: those of wr_input_open(),
 * EIO, ENOSPC; a file begun is left to the caller. */
weir_status nsys_export(const char *trace, const char *output);

#endif
