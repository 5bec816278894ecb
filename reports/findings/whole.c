/* whole.c: see whole.h. */
#include "reports/findings/whole.h"

static weir_status load_both(wr_model *m, wr_findings *f, wr_events *events, int top,
                             const wr_findings_settings *settings)
{
  wr_findings_pass *pass = NULL;
  wr_listener listener = {0};
  weir_status st = wr_findings_begin(&pass, f, events, settings);
  if (!st && pass) listener = wr_findings_listener(pass);
  if (!st) st = wr_model_load_with(m, events, top, &listener, pass != NULL);
  if (!st && pass) st = wr_findings_end(pass);
  wr_findings_close(pass);
  if (!st) return st;
  wr_findings_free(f);
  wr_model_free(m);
  return st;
}

weir_status wr_whole_load(wr_model *m, wr_findings *f, const wr_db *db, int top,
                          const wr_findings_settings *settings)
{
  wr_events events;
  *m = (wr_model){0};
  if (!settings) return wr_model_load(m, db, top);
  *f = (wr_findings){0};
  weir_status st = wr_events_open(&events, db);
  if (!st) st = load_both(m, f, &events, top, settings);
  wr_events_close(&events);
  return st;
}

weir_status wr_whole_load_some(wr_model *m, wr_findings *f, const wr_db *db, int top,
                               const wr_findings_settings *settings)
{
  int64_t any = 0;
  weir_status st =
      settings ? wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM event)", &any) : WEIR_OK;
  return st ? st : wr_whole_load(m, f, db, top, any ? settings : NULL);
}
