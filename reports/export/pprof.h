/* pprof.h: what calls cost by stack, as pprof reads it: a gzip file of one message Profile. */
#ifndef WEIR_REPORTS_EXPORT_PPROF_H
#define WEIR_REPORTS_EXPORT_PPROF_H

#include <stdio.h>
#include "core/base/status.h"

/* Errors: those of profile_open(), EIO. */
weir_status pprof_export(FILE *out, const char *trace);

#endif
