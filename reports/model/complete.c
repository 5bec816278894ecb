/* complete.c: see complete.h. */
#include "reports/model/complete.h"

weir_status wr_incomplete_processes(const wr_db *db, weir_status (*row)(void *, sqlite3_stmt *),
                                    void *context)
{
  static const char lost[] = "SELECT id FROM main.process WHERE dropped > 0 OR damaged_chunks > 0"
                             " OR bytes_cut > 0 OR nested_calls > 0";
  static const char left_out[] = "SELECT id FROM main.process WHERE unrecorded_spans > 0";
  weir_status s = wr_db_each(db, lost, row, context);
  if (s || !wr_db_has_column(db, "process", "unrecorded_spans")) return s; /* of an older Weir */
  return wr_db_each(db, left_out, row, context);
}

weir_status wr_trace_is_partial(const wr_db *db, bool *out)
{
  int64_t any = 0;
  *out = false;
  if (!wr_db_has_column(db, "process", "unrecorded_spans")) return WEIR_OK;
  weir_status s = wr_db_number(
      db, "SELECT EXISTS(SELECT 1 FROM main.process WHERE unrecorded_spans > 0)", &any);
  *out = any != 0;
  return s;
}
