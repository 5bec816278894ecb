/* build.c: see build.h. */
#include "reports/tables/build.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

bool wr_cell_copies(const wr_activity_cell *cell)
{
  return cell->common.kind == WEIR_EV_COPY;
}

bool wr_cell_any(const wr_activity_cell *cell)
{
  (void)cell;
  return true;
}

weir_status wr_build_grouped(const wr_build *b, const wr_activity *a, const char *name,
                             const char *title, const wr_measure *measures, size_t count)
{
  wr_groups g;
  weir_status s = wr_groups_open(&g, b->db, b->o->by);
  if (s) return s;
  char *whole = wr_format("%s_by_%s", name, wr_by_name(g.by));
  char *heading = wr_format("%s by %s", title, wr_by_name(g.by));
  if (whole && heading)
    s = wr_grouped_table(b->t, whole, heading, &g, a, measures, count, b->top);
  else
    s = wr_db_out_of_memory(b->db);
  free(whole);
  free(heading);
  wr_groups_close(&g);
  return s;
}

void wr_note_no_device_times(const wr_build *b, const wr_device_times *t, const char *then)
{
  char *none = wr_device_times_none(t);
  wr_tables_note(b->t, "D%s%s.", none ? none + 1 : "evice times are not there", then);
  free(none);
}
