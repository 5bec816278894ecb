/* report.c: see report.h. */
#include "reports/write/report.h"
#include "reports/model/open.h"
#include "reports/tables/tables.h"
#include "reports/write/write.h"

weir_status report_tables(FILE *out, const char *name, const char *trace, const report_settings *o)
{
  wr_input in;
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  in.db.symbols = o->symbols;
  wr_tables t = {0};
  st = wr_tables_build(&t, name, &in.db, o);
  wr_input_close(&in);
  if (!st) st = wr_tables_write(out, &t, o);
  wr_tables_free(&t);
  return st;
}
