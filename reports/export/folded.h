/* folded.h: what calls cost by stack, a line each: "outermost;...;innermost;function 123", as
 * flamegraph.pl and its like read. */
#ifndef WEIR_REPORTS_EXPORT_FOLDED_H
#define WEIR_REPORTS_EXPORT_FOLDED_H

#include <stdio.h>
#include "reports/export/profile.h"

/* Stacks of which `weight` is 0 are left out. Errors: those of profile_open(), EIO. */
weir_status folded_export(FILE *out, const char *trace, profile_weight weight);

#endif
