/* report.c: reports on what a person gives as a trace: opened, computed, made into tables,
 * written. */
#include "reports/write/report.h"
#include <string.h>
#include "core/base/reroutes.h"
#include "reports/whole/whole.h"
#include "reports/model/open.h"
#include "reports/base/util.h"
#include "reports/tables/sections.h"
#include "reports/tables/tables.h"
#include "reports/write/write.h"

#define TOP_TEXT 5

enum { SUMMARY_RULE_MS = 2000 }; /* what a summary has time for, of each 1 M events */

/* Takes what is in the tables. `st`: what came of making them. */
static weir_status write_text(FILE *out, weir_status st, wr_tables *t, const char *path,
                              const report_settings *o)
{
  if (!st) st = t->failed ? wr_tables_no_memory(t) : wr_tables_text(out, t, o);
  wr_tables_free(t);
  if (!st && (ferror(out) || fflush(out)))
    st = weir_fail(WEIR_EIO, "the report on %s cannot be written", path);
  return st;
}

static wr_tables headed_tables(const char *name, const char *path)
{
  wr_tables t = {.report = name,
                 .trace = wr_text(path, strlen(path), true),
                 .head = wr_text(path, strlen(path), true)};
  t.failed = !t.trace || !t.head;
  return t;
}

/* As it was before "weir-report/2": of the same tables. */
static weir_status write_old(FILE *out, const char *name, const char *trace,
                             const report_settings *o)
{
  wr_input in;
  wr_tables t = {0};
  report_settings all = *o;
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  all.format = WEIR_REPORT_JSON;
  in.db.symbols = o->symbols;
  in.db.innermost_sites = o->innermost_sites;
  in.db.anew = o->anew;
  st = wr_tables_build(&t, name, &in.db, &all);
  wr_input_close(&in);
  if (!st) st = wr_tables_old(out, &t);
  wr_tables_free(&t);
  return st;
}

weir_status report_summary(FILE *out, const char *trace, const report_settings *o)
{
  if (o->format == WEIR_REPORT_JSON_1) return write_old(out, "summary", trace, o);
  int top = o->top > 0 ? o->top : TOP_TEXT;
  wr_input in;
  wr_model m = {0};
  wr_findings f = {0};
  wr_tables t = {0};
  wr_findings_settings findings = o->findings;
  findings.rule_ms = SUMMARY_RULE_MS;
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  in.db.symbols = o->symbols;
  in.db.innermost_sites = o->innermost_sites;
  in.db.anew = o->anew;
  st = wr_whole_load_some(&m, &f, &in.db, top, &findings);
  wr_input_close(&in);
  if (!st)
    st = write_text(out, wr_sections_build(&t, &m, m.total.events ? &f : NULL, o), &t, m.path, o);
  wr_findings_free(&f);
  wr_model_free(&m);
  return st;
}

weir_status report_findings(FILE *out, const char *trace, const report_settings *o)
{
  if (o->format == WEIR_REPORT_JSON_1) return write_old(out, "findings", trace, o);
  wr_input in;
  wr_findings f = {0};
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  in.db.symbols = o->symbols;
  in.db.innermost_sites = o->innermost_sites;
  in.db.anew = o->anew;
  st = wr_whole_findings(&f, &in.db, &o->findings);
  wr_input_close(&in);
  if (!st) {
    wr_tables t = headed_tables("findings", trace);
    wr_section_findings(&t, &f, o, true);
    st = write_text(out, st, &t, trace, o);
  }
  wr_findings_free(&f);
  return st;
}

weir_status report_cache(FILE *out, const char *trace, const report_settings *o)
{
  if (o->format == WEIR_REPORT_JSON_1) return write_old(out, "cache", trace, o);
  wr_input in;
  wr_cache c = {0};
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  in.db.symbols = o->symbols;
  in.db.innermost_sites = o->innermost_sites;
  in.db.anew = o->anew;
  st = wr_whole_cache(&c, &in.db);
  wr_input_close(&in);
  if (!st) {
    wr_tables t = headed_tables("cache", trace);
    wr_section_caches(&t, &c, o, true);
    st = write_text(out, st, &t, trace, o);
  }
  wr_cache_free(&c);
  return st;
}

weir_status report_tables(FILE *out, const char *name, const char *trace, const report_settings *o)
{
  wr_input in;
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  in.db.symbols = o->symbols;
  in.db.innermost_sites = o->innermost_sites;
  in.db.anew = o->anew;
  wr_tables t = {0};
  st = wr_tables_build(&t, name, &in.db, o);
  wr_input_close(&in);
  if (!st) st = wr_tables_write(out, &t, o);
  wr_tables_free(&t);
  return st;
}

weir_status report_figures(run_figures *out, const char *trace)
{
  wr_input in;
  wr_model m = {0};
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  s = wr_whole_model(&m, &in.db, 1);
  wr_input_close(&in);
  if (s) return s;
  const wr_totals *t = &m.total;
  uint64_t done = 0;
  for (size_t i = 0; i < sizeof(m.cache.staging) / sizeof(m.cache.staging[0]); i++)
    done += m.cache.staging[i].copies;
  for (size_t i = 0; i < m.note_count; i++)
    done += !strncmp(m.notes[i], REROUTE_NOTE, strlen(REROUTE_NOTE));
  const wr_cache_side *d = &m.cache.side[WR_CACHE_DEVICE], *p = &m.cache.side[WR_CACHE_PINNED];
  *out =
      (run_figures){.duration_ns = (uint64_t)m.duration_ns,
                    .waits = t->sync_explicit_calls + t->sync_implicit_calls,
                    .wait_ns = t->sync_explicit_ns + t->sync_implicit_ns,
                    .peak_bytes = m.cache.rerouted ? m.cache.held_peak_bytes : t->peak_bytes,
                    .hits = d->hits + p->hits,
                    .misses = d->misses + p->misses,
                    .rerouted = d->hits + p->hits + m.cache.kept_frees + m.cache.kept_calls + done,
                    .events = t->events,
                    .failed_calls = t->failed_calls,
                    .dropped = t->dropped};
  wr_model_free(&m);
  return WEIR_OK;
}
