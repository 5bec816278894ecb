/* formats.h: a trace in the words of other programs. Errors of all: those of wr_input_open(),
 * timeline_walk() or profile_open(), EIO. */
#ifndef WEIR_REPORTS_EXPORT_FORMATS_H
#define WEIR_REPORTS_EXPORT_FORMATS_H

#include "reports/export/profile.h"

/* Perfetto's protobuf, as ui.perfetto.dev opens it, with a track for each thread and each stream of
 * a device, live memory of each device as a counter, and flows from calls to what devices did for
 * them. */
weir_status perfetto_export(FILE *out, const char *trace);

/* Chrome's JSON, as chrome://tracing, ui.perfetto.dev and their like read it. */
weir_status chrome_export(FILE *out, const char *trace);

/* What calls cost by stack, a line each: "outermost;...;innermost;function 123", as flamegraph.pl
 * and its like read. Stacks of which `weight` is 0 are left out. */
weir_status folded_export(FILE *out, const char *trace, profile_weight weight);

/* The same as speedscope.app opens it, a profile a weight; as pprof reads it, a gzip file of one
 * message Profile; as profiler.firefox.com opens it, a thread a weight. */
weir_status speedscope_export(FILE *out, const char *trace);
weir_status pprof_export(FILE *out, const char *trace);
weir_status firefox_export(FILE *out, const char *trace);

/* Writes the trace (or spool) `trace` to the new file `output` as Nsight Systems exports one to
 * SQLite; a file begun is left to the caller. Error also: ENOSPC.
 *
 * A trace has views of those names. Some tools list tables alone, change them, or ask for rowids:
 * for these the export has tables, those that Weir knows nothing for among them, empty, and
 * functions by the names that people search for. Call chains have the names of functions as reports
 * have them (symbolize.h). */
weir_status nsys_export(const char *trace, const char *output);

#endif
