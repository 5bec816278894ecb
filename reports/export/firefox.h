/* firefox.h: what calls cost by stack, as profiler.firefox.com opens it: a thread a weight. */
#ifndef WEIR_REPORTS_EXPORT_FIREFOX_H
#define WEIR_REPORTS_EXPORT_FIREFOX_H

#include <stdio.h>
#include "core/base/status.h"

/* Errors: those of profile_open(), EIO. */
weir_status firefox_export(FILE *out, const char *trace);

#endif
