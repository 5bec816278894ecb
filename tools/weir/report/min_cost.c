/* min_cost.c: see min_cost.h. */
#include "tools/weir/report/min_cost.h"

#include <stdlib.h>
#include <string.h>

/* "2ms,0.1%,10MiB": what of these is said; what is not does not count. */
static bool read_min_cost(wr_min_cost *out, const char *value)
{
  static const struct {
    const char *unit;
    double ns, share, bytes;
  } units[] = {{"ns", 1, 0, 0},        {"us", 1e3, 0, 0},      {"ms", 1e6, 0, 0},
               {"s", 1e9, 0, 0},       {"%", 0, 0.01, 0},      {"B", 0, 0, 1},
               {"KiB", 0, 0, 1 << 10}, {"MiB", 0, 0, 1 << 20}, {"GiB", 0, 0, 1 << 30}};
  *out = (wr_min_cost){-1, -1, -1};
  for (bool more = true; more;) {
    char *end;
    double n = strtod(value, &end);
    size_t unit = strcspn(end, ","), i = 0, count = sizeof units / sizeof *units;
    while (i < count && (strlen(units[i].unit) != unit || strncmp(units[i].unit, end, unit) != 0))
      i++;
    if (end == value || i == count || !(n >= 0 && n < 1e9)) return false;
    if (units[i].ns > 0) out->ns = (int64_t)(n * units[i].ns);
    if (units[i].share > 0) out->share = n * units[i].share;
    if (units[i].bytes > 0) out->bytes = (int64_t)(n * units[i].bytes);
    more = end[unit] == ',';
    value = end + unit + 1;
  }
  if (!out->ns && !(out->share > 0 || out->share < 0) && !out->bytes)
    *out = (wr_min_cost){0, -1, -1}; /* all 0 stands for the default */
  return true;
}

bool min_cost_take(const cmd *c, wr_min_cost *out, const char *value)
{
  bool good = read_min_cost(out, value);
  if (!good) cmd_usage(c, "--min-cost takes a cost as 2ms, 0.1%% or 10MiB, not '%s'", value);
  return good;
}
