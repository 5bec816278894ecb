/* speedscope.h: what calls cost by stack, as speedscope.app opens it: a profile a weight. */
#ifndef WEIR_REPORTS_EXPORT_SPEEDSCOPE_H
#define WEIR_REPORTS_EXPORT_SPEEDSCOPE_H

#include <stdio.h>
#include "core/base/status.h"

/* Errors: those of profile_open(), EIO. */
weir_status speedscope_export(FILE *out, const char *trace);

#endif
