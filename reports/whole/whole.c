/* whole.c: see whole.h. */
#include "reports/whole/whole.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/model/open.h"
#include "reports/model/sites.h"
#include "reports/whole/kept.h"
#include "reports/whole/shapes.h"

enum { KEEP_RULE_MS = 2000 /* of each 1 M events, as a summary has it */ };

/* ---- what is kept ---------------------------------------------------------------------------- */

static void cut_rows(wr_tensor_place *p, int top)
{
  if (p->module_count > (size_t)top) p->module_count = (size_t)top;
  if (p->tensor_count > (size_t)top) p->tensor_count = (size_t)top;
}

static void cut_lists(wr_model *m, int top)
{
  wr_sites *const lists[] = {&m->alloc, &m->copy, &m->sync,  &m->redundant,
                             &m->wider, &m->leak, &m->asked, &m->taken};
  m->top = top;
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
    wr_sites_cut(lists[i], top);
  for (int i = 0; i < 256; i++)
    wr_sites_cut(&m->devices[i].owners, top);
  for (size_t i = 0; i < m->tensors.count; i++)
    cut_rows(&m->tensors.place[i], top);
}

/* What shape.h does not ask. */
static bool is_sound(const wr_model *m)
{
  for (size_t i = 1; i <= m->graphs.places; i++)
    if (!m->graphs.place || !m->graphs.place[i]) return false;
  for (size_t i = 0; i < m->split_count; i++)
    if (!m->split[i].direction || !m->split[i].memory) return false;
  for (size_t i = 0; i < m->api_count; i++)
    if (!m->apis[i].layer || !m->apis[i].category) return false;
  return m->cache.mode && m->finished;
}

static bool take_model(wr_model *m, const wr_db *db, int top)
{
  *m = (wr_model){0};
  if (!wr_kept_any(db) || top < 0) return false;
  m->path = wr_text(db->path, strlen(db->path), true);
  if (m->path && wr_kept_read(db, WR_KEPT_MODEL, &wr_model_shape, m) && is_sound(m)) {
    cut_lists(m, top);
    return true;
  }
  wr_model_free(m);
  return false;
}

static void quote_lines(wr_finding *f, int64_t began)
{
  for (size_t i = 0; i < f->sites; i++) {
    wr_finding_site *s = &f->site[i];
    s->source = wr_source_line(s->file, s->line, began, s->built);
  }
}

/* What is not kept of a finding. */
static void complete_finding(wr_finding *f, bool quoted, int64_t began)
{
  f->fix = f->driver_fix ? f->driver_fix : f->rule->fix;
  if (f->decides) f->decides = f->rule->decides;
  if (quoted) quote_lines(f, began);
}

static bool complete_findings(wr_findings *f, const wr_db *db, const wr_findings_settings *settings)
{
  bool quoted = false;
  int64_t began = 0;
  if (wr_sources_may_be_quoted(db, settings->quoting, &quoted) ||
      wr_db_number(db, "SELECT value FROM meta WHERE key = 'start_realtime_ns'", &began))
    return false;
  for (size_t i = 0; i < f->count; i++)
    complete_finding(&f->finding[i], quoted, began);
  for (size_t i = 0; i < f->removed_count; i++)
    complete_finding(&f->removed[i], quoted, began);
  return true;
}

static bool has_default_rules(const wr_findings_settings *o)
{
  const wr_min_cost *min = &o->min;
  return !o->rules && !min->ns && !min->bytes && !(min->share > 0 || min->share < 0);
}

static bool take_findings(wr_findings *f, const wr_db *db, const wr_findings_settings *settings)
{
  *f = (wr_findings){.min = WR_MIN_COST};
  if (!has_default_rules(settings) || !wr_kept_any(db)) return false;
  if (!wr_rules_load(&f->rules, NULL) &&
      wr_kept_read(db, WR_KEPT_FINDINGS, &wr_findings_shape, f) && f->duration_ns &&
      complete_findings(f, db, settings))
    return true;
  wr_findings_free(f);
  return false;
}

static bool take_whole(wr_model *m, wr_findings *f, const wr_db *db, int top,
                       const wr_findings_settings *settings)
{
  if (settings && !take_findings(f, db, settings)) return false;
  if (take_model(m, db, top)) return true;
  if (settings) wr_findings_free(f);
  return false;
}

/* ---- computed -------------------------------------------------------------------------------- */

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

static weir_status compute_with(wr_model *m, wr_findings *f, wr_events *events, int top,
                                const wr_findings_settings *settings, const wr_listener others[],
                                size_t count)
{
  int64_t any = 0;
  weir_status st = WEIR_OK;
  *m = (wr_model){0};
  if (settings) st = wr_db_number(events->db, "SELECT EXISTS(SELECT 1 FROM event)", &any);
  return st ? st : load_whole(m, f, events, top, any ? settings : NULL, others, count);
}

static weir_status load_open(wr_model *m, wr_findings *f, const wr_db *db, int top,
                             const wr_findings_settings *settings, bool some)
{
  wr_events events;
  *m = (wr_model){0};
  if (settings) *f = (wr_findings){0};
  if (take_whole(m, f, db, top, settings)) return WEIR_OK;
  if (settings) *f = (wr_findings){0};
  weir_status st = wr_events_open(&events, db);
  if (!st && some)
    st = compute_with(m, f, &events, top, settings, NULL, 0);
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
  if (!take_whole(m, f, events->db, top, settings)) {
    if (settings) *f = (wr_findings){0};
    return compute_with(m, f, events, top, settings, others, count);
  }
  weir_status st = wr_events_listen(events, others, count);
  if (!st) return st;
  wr_model_free(m);
  if (settings) wr_findings_free(f);
  return st;
}

weir_status wr_whole_model(wr_model *m, const wr_db *db, int top)
{
  return take_model(m, db, top) ? WEIR_OK : wr_model_load(m, db, top);
}

weir_status wr_whole_cache(wr_cache *c, const wr_db *db)
{
  wr_model m;
  if (!take_model(&m, db, 1)) return wr_cache_load(c, db);
  *c = m.cache;
  m.cache = (wr_cache){0};
  wr_model_free(&m);
  return WEIR_OK;
}

weir_status wr_whole_findings(wr_findings *f, const wr_db *db, const wr_findings_settings *settings)
{
  return take_findings(f, db, settings) ? WEIR_OK : wr_findings_load(f, db, settings);
}

/* ---- keeping --------------------------------------------------------------------------------- */

/* Whether there is something that is worth to be kept, and what it was computed of. */
static bool may_keep(const wr_db *db, wr_kept_of *of)
{
  int64_t any = 0, finished = 0;
  return wr_kept_find_now(db, of) &&
         !wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM main.event_row)", &any) && any &&
         !wr_db_number(db, "SELECT value FROM meta WHERE key = 'finished'", &finished) &&
         finished == 1;
}

static weir_status compute_rows(const wr_db *db, const wr_findings_settings *settings,
                                wr_shape_bytes rows[WR_KEPTS])
{
  wr_events events;
  wr_model m = {0};
  wr_findings f = {0};
  weir_status st = wr_events_open(&events, db);
  if (!st) st = load_whole(&m, &f, &events, INT_MAX, settings, NULL, 0);
  wr_events_close(&events);
  if (st) return st;
  for (int i = 0; i < WR_KEPTS; i++)
    rows[i].most = wr_kept_most(db);
  wr_shape_write(&rows[WR_KEPT_MODEL], &wr_model_shape, &m);
  rows[WR_KEPT_FINDINGS].failed = f.late || f.unavailable;
  wr_shape_write(&rows[WR_KEPT_FINDINGS], &wr_findings_shape, &f);
  wr_findings_free(&f);
  wr_model_free(&m);
  return st;
}

/* A trace that a killed process left in WAL mode is put back into the mode of a complete one first, unless it is in use. */
static weir_status open_to_keep(wr_input *in, const char *trace)
{
  weir_status st = wr_input_open(in, trace);
  if (st || in->folder || !wr_kept_is_in_wal(&in->db)) return st;
  wr_input_close(in);
  (void)wr_kept_leave_wal(trace);
  return wr_input_open(in, trace);
}

weir_status wr_whole_keep(const char *trace, const wr_findings_settings *settings)
{
  wr_input in;
  wr_kept_of of;
  wr_shape_bytes rows[WR_KEPTS] = {{0}};
  const wr_findings_settings all = {.quoting = WR_QUOTE_NONE,
                                    .rule_ms = KEEP_RULE_MS,
                                    .stop = settings->stop,
                                    .progress = settings->progress,
                                    .progress_context = settings->progress_context};
  weir_status st = open_to_keep(&in, trace);
  if (st) return st;
  bool may = !in.folder && may_keep(&in.db, &of);
  if (may) st = compute_rows(&in.db, &all, rows);
  wr_input_close(&in);
  if (!st && settings->stop && *settings->stop)
    st = weir_fail(WEIR_EIO, "stopped: %s is as it was", trace);
  if (!st && may && !rows[WR_KEPT_MODEL].failed && !rows[WR_KEPT_FINDINGS].failed)
    st = wr_kept_write(trace, &of, rows);
  for (int i = 0; i < WR_KEPTS; i++)
    free(rows[i].data);
  return st;
}
