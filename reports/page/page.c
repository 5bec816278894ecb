/* page.c: see page.h. The trace is an untrusted file: what is asked are its tables, and each text
 * goes out cleaned. */
#include "reports/page/page.h"
#include <errno.h>
#include "reports/whole/whole.h"
#include "reports/model/open.h"
#include "reports/page/index.h"
#include "reports/page/shell.h"

enum {
  MOST_RULE_MS = 2000 /* of each 1 M events, as a summary has it */
};

typedef struct writer {
  FILE *out;
  const page_settings *settings;
  wr_input in;
  wr_events events;
  uint64_t events_about; /* as many as there are, about */
  wr_model model;
  wr_findings findings;
  page_places places;
  page_calls calls;
  page_memory memory;
  page_columns columns;
} writer;

static void say_step(const writer *w, const char *doing)
{
  if (w->settings->progress) w->settings->progress(w->settings->context, doing, 0, 0);
}

static void say_events(void *context, uint64_t events)
{
  const writer *w = context;
  if (w->settings->progress)
    w->settings->progress(w->settings->context, "calls", events, w->events_about);
}

/* How long the run was, as its model has it, and about how many events there are. */
static weir_status find_extent(writer *w, int64_t *ns)
{
  int64_t last = 0;
  weir_status s = wr_db_number(
      &w->in.db,
      "SELECT max(ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'duration_ns'), 0),"
      " ifnull((SELECT max(\"end\") FROM process), 0))",
      ns);
  if (!s) s = wr_db_number(&w->in.db, "SELECT ifnull(max(id), 0) FROM main.event_row", &last);
  w->events_about = last > 0 ? (uint64_t)last : 0;
  return s;
}

static weir_status begin_calls(writer *w)
{
  int64_t ns = 0;
  weir_status s = find_extent(w, &ns);
  w->calls.progress = say_events;
  w->calls.context = w;
  if (!s) s = page_places_open(&w->places, &w->in.db);
  if (!s) s = wr_events_open(&w->events, &w->in.db);
  if (!s) s = page_calls_begin(&w->calls, &w->events, &w->places, page_bins_of(ns));
  return s ? s : page_memory_begin(&w->memory, &w->calls);
}

static weir_status load_parts(writer *w)
{
  wr_findings_settings o = w->settings->findings;
  o.rule_ms = MOST_RULE_MS;
  if (w->in.db.schema < 2)
    return weir_fail(WEIR_EVERSION, "%s has trace schema 1: a page needs 2", w->in.db.path);
  weir_status s = begin_calls(w);
  if (s) return s;
  const wr_listener listener = page_calls_listener(&w->calls);
  say_step(w, "looking for waste");
  s = wr_whole_load_with(&w->model, &w->findings, &w->events, 1, &o, &listener, 1);
  if (!s) s = page_calls_end(&w->calls);
  say_step(w, "memory");
  return s ? s : page_memory_load(&w->memory, &w->model);
}

static weir_status write_parts(writer *w)
{
  uint64_t packed = 0;
  bool quoted = false;
  weir_status s = wr_sources_may_be_quoted(&w->in.db, w->settings->findings.quoting, &quoted);
  page_parts parts = {.model = &w->model,
                      .places = &w->places,
                      .calls = &w->calls,
                      .memory = &w->memory,
                      .db = &w->in.db,
                      .columns = &w->columns,
                      .findings = w->model.total.events ? &w->findings : NULL,
                      .quoted = quoted};
  say_step(w, "writing");
  (void)fputs(page_shell_before(), w->out);
  (void)fputs("<script type=\"application/json\" id=\"weir-index\">", w->out);
  if (!s) s = page_index_write(w->out, &parts);
  (void)fputs("</script>\n<script type=\"text/plain\" id=\"weir-columns\">", w->out);
  if (!s) s = page_columns_write(w->out, &w->columns, &packed);
  (void)fputs("</script>\n", w->out);
  (void)fputs(page_shell_after(), w->out);
  if (!s && (fflush(w->out) || ferror(w->out)))
    s = weir_fail_errno(errno == ENOSPC ? WEIR_ENOSPC : WEIR_EIO, errno, "writing the page");
  return s;
}

weir_status page_write(FILE *out, const char *trace, const page_settings *settings)
{
  writer w = {.out = out, .settings = settings};
  weir_status s = wr_input_open(&w.in, trace);
  if (s) return s;
  w.in.db.symbols = settings->symbols;
  w.in.db.innermost_sites = settings->innermost_sites;
  w.in.db.anew = settings->anew;
  s = load_parts(&w);
  if (!s) s = write_parts(&w);
  page_columns_free(&w.columns);
  page_memory_free(&w.memory);
  page_calls_free(&w.calls);
  wr_events_close(&w.events);
  page_places_close(&w.places);
  wr_findings_free(&w.findings);
  wr_model_free(&w.model);
  wr_input_close(&w.in);
  return s;
}
