/* min_cost.h: --min-cost: what a finding must cost to be one. */
#ifndef WEIR_TOOLS_WEIR_REPORT_MIN_COST_H
#define WEIR_TOOLS_WEIR_REPORT_MIN_COST_H

#include "reports/findings/findings.h"
#include "tools/weir/base/cmd.h"

#define MIN_COST_HELP "leave out findings below 2ms, 0.1% or 10MiB (default 1ms,0.5%,1MiB)"

/* "2ms,0.1%,10MiB": a kind of cost that is not there does not count. False after cmd_usage(). */
bool min_cost_take(const cmd *c, wr_min_cost *out, const char *value);

#endif
