/* metrics.c: see metrics.h. */
#include "reports/diff/metrics.h"
#include <string.h>

const wr_metric_row wr_metric_rows[WR_METRICS] = {
#define ROW(id, name, member, unit, of) [WR_METRIC_##id] = {name, member, WR_UNIT_##unit, of},
    WR_METRIC_MAP(ROW)
#undef ROW
};

static bool find_member(const char *name, size_t bytes, wr_metric *out)
{
  for (int m = 0; m < WR_METRICS; m++) {
    const char *member = wr_metric_rows[m].member;
    if (!member || strlen(member) != bytes || strncmp(member, name, bytes) != 0) continue;
    *out = (wr_metric)m;
    return true;
  }
  return false;
}

bool wr_metric_find(const char *name, size_t bytes, wr_metric *out)
{
  static const char *const endings[] = {"", ".bytes", ".count", ".time"};
  for (size_t e = 0; e < sizeof(endings) / sizeof(endings[0]); e++) {
    for (int m = 0; m < WR_METRICS; m++) {
      const char *row = wr_metric_rows[m].name;
      if (strlen(row) < bytes || strncmp(row, name, bytes) != 0) continue;
      if (strcmp(row + bytes, endings[e]) != 0) continue;
      *out = (wr_metric)m;
      return true;
    }
  }
  return find_member(name, bytes, out);
}

bool wr_metric_is_of_findings(wr_metric m)
{
  return m == WR_METRIC_CERTAIN || m == WR_METRIC_LIKELY || m == WR_METRIC_POSSIBLE ||
         m == WR_METRIC_FINDINGS;
}
