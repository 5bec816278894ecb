/* perfetto.h: a trace as ui.perfetto.dev opens it: Perfetto's protobuf, with a track for each
 * thread and each stream of a device, live memory of each device as a counter, and flows from
 * calls to what devices did for them. */
#ifndef WEIR_REPORTS_EXPORT_PERFETTO_H
#define WEIR_REPORTS_EXPORT_PERFETTO_H

#include <stdio.h>
#include "core/base/status.h"

/* Errors: those of timeline_walk() and wr_input_open(), EIO. */
weir_status perfetto_export(FILE *out, const char *trace);

#endif
