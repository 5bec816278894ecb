/* report.c: reports on what a person gives as a trace. */
#include "reports/render/report.h"
#include <string.h>
#include "core/base/reroutes.h"
#include "reports/model/open.h"
#include "reports/render/render.h"

#include "reports/render/cache_render.h"
#include "reports/render/findings_render.h"

#define TOP_TEXT 5
#define TOP_JSON 20

enum { SUMMARY_RULE_MS = 2000 }; /* what a summary has time for, of each 1 M events */

weir_status report_summary(FILE *out, const char *trace, const report_settings *o)
{
  int top = o->top > 0 ? o->top : o->format == WEIR_REPORT_JSON ? TOP_JSON : TOP_TEXT;
  wr_input in;
  wr_model m = {0};
  wr_findings f = {0};
  wr_findings_settings findings = o->findings;
  findings.rule_ms = SUMMARY_RULE_MS;
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  in.db.symbols = o->symbols;
  s = wr_model_load(&m, &in.db, top);
  if (!s && o->format == WEIR_REPORT_TEXT && m.total.events)
    s = wr_findings_load(&f, &in.db, &findings);
  wr_input_close(&in);
  if (!s)
    s = o->format == WEIR_REPORT_JSON ? wr_render_json(out, &m)
                                      : wr_render_text(out, &m, m.total.events ? &f : NULL, o);
  wr_findings_free(&f);
  wr_model_free(&m);
  return s;
}

weir_status report_findings(FILE *out, const char *trace, const report_settings *o)
{
  wr_input in;
  wr_findings f = {0};
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  in.db.symbols = o->symbols;
  s = wr_findings_load(&f, &in.db, &o->findings);
  wr_input_close(&in);
  if (!s)
    s = o->format == WEIR_REPORT_JSON ? wr_findings_render_json(out, &f, trace)
                                      : wr_findings_render_text(out, &f, trace, o);
  wr_findings_free(&f);
  return s;
}

weir_status report_cache(FILE *out, const char *trace, const report_settings *o)
{
  wr_input in;
  wr_cache c = {0};
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  in.db.symbols = o->symbols;
  s = wr_cache_load(&c, &in.db);
  wr_input_close(&in);
  if (!s)
    s = o->format == WEIR_REPORT_JSON ? wr_cache_render_json(out, &c, trace)
                                      : wr_cache_render_text(out, &c, trace, o);
  wr_cache_free(&c);
  return s;
}

weir_status report_figures(run_figures *out, const char *trace)
{
  wr_input in;
  wr_model m = {0};
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  s = wr_model_load(&m, &in.db, 1);
  wr_input_close(&in);
  if (s) return s;
  const wr_totals *t = &m.total;
  uint64_t done = 0;
  for (size_t i = 0; i < sizeof(m.cache.staging) / sizeof(m.cache.staging[0]); i++)
    done += m.cache.staging[i].copies;
  for (size_t i = 0; i < m.note_count; i++)
    done += !strncmp(m.notes[i], REROUTE_NOTE, strlen(REROUTE_NOTE));
  const wr_cache_side *d = &m.cache.side[WR_CACHE_DEVICE], *p = &m.cache.side[WR_CACHE_PINNED];
  *out = (run_figures){.duration_ns = (uint64_t)m.duration_ns,
                       .waits = t->sync_explicit_calls + t->sync_implicit_calls,
                       .wait_ns = t->sync_explicit_ns + t->sync_implicit_ns,
                       .peak_bytes = m.cache.rerouted ? m.cache.held_peak_bytes : t->peak_bytes,
                       .hits = d->hits + p->hits,
                       .misses = d->misses + p->misses,
                       .rerouted = d->hits + p->hits + m.cache.kept_frees + done,
                       .events = t->events,
                       .failed_calls = t->failed_calls,
                       .dropped = t->dropped};
  wr_model_free(&m);
  return WEIR_OK;
}
