/* chrome.h: a trace as chrome://tracing, ui.perfetto.dev and their like read it: Chrome's JSON. */
#ifndef WEIR_REPORTS_EXPORT_CHROME_H
#define WEIR_REPORTS_EXPORT_CHROME_H

#include <stdio.h>
#include "core/base/status.h"

/* Errors: those of timeline_walk() and wr_input_open(), EIO. */
weir_status chrome_export(FILE *out, const char *trace);

#endif
