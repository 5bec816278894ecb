/* whole.c: see whole.h. */
#include "reports/whole/whole.h"

static weir_status load_whole(wr_model *m, wr_findings *f, wr_events *events, int top,
                              const wr_findings_settings *settings, const wr_listener others[],
                              size_t count)
{
  wr_findings_pass *pass = NULL;
  wr_listener all[WR_MODEL_LISTENERS];
  weir_status st = settings ? wr_findings_begin(&pass, f, events, settings) : WEIR_OK;
  size_t listeners = 0;
  if (!st && pass) listeners = wr_findings_listen(pass, all);
  for (size_t i = 0; i < count; i++)
    all[listeners++] = others[i];
  if (!st) st = wr_model_load_with(m, events, top, all, listeners);
  if (!st && pass) st = wr_findings_end(pass);
  wr_findings_close(pass);
  if (!st) return st;
  if (settings) wr_findings_free(f);
  wr_model_free(m);
  return st;
}

static weir_status load_open(wr_model *m, wr_findings *f, const wr_db *db, int top,
                             const wr_findings_settings *settings, bool some)
{
  wr_events events;
  *m = (wr_model){0};
  if (settings) *f = (wr_findings){0};
  weir_status st = wr_events_open(&events, db);
  if (!st && some)
    st = wr_whole_load_with(m, f, &events, top, settings, NULL, 0);
  else if (!st)
    st = load_whole(m, f, &events, top, settings, NULL, 0);
  wr_events_close(&events);
  return st;
}

weir_status wr_whole_load(wr_model *m, wr_findings *f, const wr_db *db, int top,
                          const wr_findings_settings *settings)
{
  return load_open(m, f, db, top, settings, false);
}

weir_status wr_whole_load_some(wr_model *m, wr_findings *f, const wr_db *db, int top,
                               const wr_findings_settings *settings)
{
  return load_open(m, f, db, top, settings, true);
}

weir_status wr_whole_load_with(wr_model *m, wr_findings *f, wr_events *events, int top,
                               const wr_findings_settings *settings, const wr_listener others[],
                               size_t count)
{
  int64_t any = 0;
  weir_status st = WEIR_OK;
  *m = (wr_model){0};
  if (settings) st = wr_db_number(events->db, "SELECT EXISTS(SELECT 1 FROM event)", &any);
  return st ? st : load_whole(m, f, events, top, any ? settings : NULL, others, count);
}
