/* section_waits.c: waits for devices: how long, how that time divides, and what is not known of it.
 * All times here are the host's. */
#include <stdlib.h>
#include "reports/base/units.h"
#include "reports/tables/sections.h"

enum { WAIT_ROWS = 6 /* of a kind */, PART_ROWS = 6 };

/* ---- how long -------------------------------------------------------------------------------- */

/* What the waits of a run are part of: of one thread the run, of several what they had together. */
static uint64_t had_time(const wr_model *m)
{
  const wr_totals *t = &m->total;
  uint64_t run = (uint64_t)m->duration_ns;
  if (t->threads != 1) return t->thread_time_ns;
  return run - (t->hashing_ns < run ? t->hashing_ns : 0);
}

/* Functions by the time they waited, the longest first. */
static size_t by_waits(const wr_model *m, bool implicit, const wr_api_row **out)
{
  size_t n = 0;
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *a = &m->apis[i];
    if (!(implicit ? a->implicit_calls : a->sync_calls)) continue;
    size_t at = n++;
    for (; at && (implicit ? out[at - 1]->implicit_ns < a->implicit_ns
                           : out[at - 1]->sync_ns < a->sync_ns);
         at--)
      out[at] = out[at - 1];
    out[at] = a;
  }
  return n;
}

/* Returns how many of them text has no room for. */
static size_t add_wait_functions(const wr_model *m, wr_named_table *t, bool implicit,
                                 const wr_api_row **sorted)
{
  size_t n = by_waits(m, implicit, sorted);
  for (size_t i = 0; i < n; i++) {
    const wr_api_row *a = sorted[i];
    uint64_t calls = implicit ? a->implicit_calls : a->sync_calls;
    uint64_t ns = implicit ? a->implicit_ns : a->sync_ns;
    wr_table_row_for(t, i < WAIT_ROWS ? WR_ROW_ALL : WR_ROW_DATA);
    wr_table_put_text(t, a->name);
    wr_table_put_text(t, implicit ? "implicit" : "explicit");
    WR_PUT(t, calls, ns, ns / calls);
    wr_table_put_share(t, ns, had_time(m));
  }
  return n > WAIT_ROWS ? n - WAIT_ROWS : 0;
}

static void put_waits_aside(wr_named_table *t, const wr_totals *x)
{
  char threads[160] = "", longest[96] = "";
  if (x->threads > 1)
    (void)snprintf(threads, sizeof(threads), " · %s of %s", DURATION(x->thread_time_ns),
                   COUNTED(x->threads, "thread"));
  if (x->sync_explicit_calls > 1)
    (void)snprintf(longest, sizeof(longest), ", the longest %s", DURATION(x->longest_wait_ns));
  wr_table_aside(t, "explicit %s in %s%s · implicit %s in %s%s", DURATION(x->sync_explicit_ns),
                 COUNTED(x->sync_explicit_calls, "call"), longest, DURATION(x->sync_implicit_ns),
                 COUNTED(x->sync_implicit_calls, "call"), threads);
}

/* Explicit waits come first, then implicit ones. */
void wr_section_waiting(const wr_sections *s)
{
  static const wr_column columns[] = {{"function", "function", WR_COLUMN_TEXT, WR_FLEXIBLE},
                                      {"kind", "kind", WR_COLUMN_TEXT, 0},
                                      {"calls", "calls", WR_COLUMN_COUNT, 0},
                                      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
                                      {"mean_host_ns", "mean", WR_COLUMN_HOST_NS, 0},
                                      {"share_of_run", "of the run", WR_COLUMN_SHARE, WR_ROUNDED}};
  const wr_totals *x = &s->m->total;
  if (!x->sync_explicit_calls && !x->sync_implicit_calls) return;
  const wr_api_row **sorted = calloc(s->m->api_count + 1, sizeof(const wr_api_row *));
  if (!sorted) {
    s->t->failed = true;
    return;
  }
  wr_named_table *t = WR_TABLE(s->t, "waits", "Waiting for a device", columns);
  put_waits_aside(t, x);
  if (x->threads > 1) wr_table_title(t, 5, "of thread time");
  size_t left = add_wait_functions(s->m, t, false, sorted);
  left += add_wait_functions(s->m, t, true, sorted);
  if (left) wr_table_after(t, false, "… and %s more", COUNTED(left, "function"));
  free(sorted);
}

/* ---- how it divides -------------------------------------------------------------------------- */

static uint64_t host_time(const wr_wait_part *x)
{
  return x->working_ns + x->other_ns + x->idle_ns + x->unknown_ns;
}

static void put_part(wr_named_table *t, wr_row_kind kind, const char *name, const wr_wait_part *x)
{
  wr_table_row_for(t, kind);
  wr_table_put_text(t, name);
  WR_PUT(t, x->calls, host_time(x), x->working_ns, x->other_ns, x->idle_ns, x->unknown_ns);
}

static void add_parts(wr_named_table *t, const wr_wait_truth *w)
{
  size_t shown = w->part_count < PART_ROWS ? w->part_count : PART_ROWS;
  wr_wait_part rest = w->all;
  for (size_t i = 0; i < w->part_count; i++) {
    const wr_wait_part *x = &w->part[i];
    put_part(t, i < shown ? WR_ROW_ALL : WR_ROW_DATA, *x->function ? x->function : "unknown", x);
    if (i >= shown) continue;
    rest.calls -= x->calls, rest.working_ns -= x->working_ns, rest.other_ns -= x->other_ns;
    rest.idle_ns -= x->idle_ns, rest.unknown_ns -= x->unknown_ns;
  }
  char name[96];
  (void)snprintf(name, sizeof(name), "… in %s", COUNTED(w->part_count - shown, "more function"));
  if (shown < w->part_count) put_part(t, WR_ROW_TEXT, name, &rest);
}

/* "of 2.00 ms: 50 % the device worked on what was waited for, 50 % it was idle" */
static void add_shares(wr_named_table *t, const wr_wait_part *x, uint64_t all)
{
  const struct {
    uint64_t ns;
    const char *words;
  } parts[] = {{x->working_ns, "the device worked on what was waited for"},
               {x->other_ns, "it did other work"},
               {x->idle_ns, "it was idle"},
               {x->unknown_ns, "it is not known"}};
  char text[512];
  int used = snprintf(text, sizeof(text), "of %s:", DURATION(all));
  bool first = true;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    if (!parts[i].ns) continue;
    used += snprintf(text + used, sizeof(text) - (size_t)used, "%s %s %s", first ? "" : ",",
                     wr_percent(parts[i].ns, all).text, parts[i].words);
    first = false;
  }
  wr_table_after(t, false, "%s", text);
}

void wr_section_wait_parts(const wr_sections *s)
{
  static const wr_column columns[] = {
      {"function", "function", WR_COLUMN_TEXT, 0},
      {"calls", "waits", WR_COLUMN_COUNT, 0},
      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
      {"working_host_ns", "working", WR_COLUMN_HOST_NS, WR_ZERO_DASH},
      {"other_host_ns", "other work", WR_COLUMN_HOST_NS, WR_ZERO_DASH},
      {"idle_host_ns", "idle", WR_COLUMN_HOST_NS, WR_ZERO_DASH},
      {"unknown_host_ns", "not known", WR_COLUMN_HOST_NS, WR_ZERO_DASH}};
  const wr_wait_truth *w = &s->m->waits;
  uint64_t all = host_time(&w->all);
  if (!w->divided || !all) return;
  wr_named_table *t = WR_TABLE(s->t, "wait_parts", "What devices did in waits", columns);
  wr_table_aside(t, "host time, by what the wait's devices did meanwhile");
  add_parts(t, w);
  add_shares(t, &w->all, all);
}

/* ---- what is not known ----------------------------------------------------------------------- */

static void add_why(wr_named_table *t, const char *what, wr_unjudged why)
{
  switch (why) {
  case WR_UNJUDGED_WORK:
    wr_table_before(t, true,
                    "%s is not worked out: the trace has too many device operations for a report;"
                    " `weir resolve` it",
                    what);
    break;
  case WR_UNJUDGED_RESOLVED:
    wr_table_before(t, true, "%s is not in the trace: another version of Weir has resolved it",
                    what);
    break;
  case WR_UNJUDGED_UNFINISHED:
    wr_table_before(t, true, "%s is not known before the trace is finished", what);
    break;
  case WR_UNJUDGED_VERSION:
  case WR_JUDGED:
    break;
  }
}

void wr_add_unjudged(const wr_sections *s, wr_named_table *t)
{
  const wr_wait_truth *w = &s->m->waits;
  bool waits = s->m->total.sync_explicit_calls != 0, times = s->m->device_times.count != 0;
  if (waits && w->why) add_why(t, "whether waits were needed", w->why);
  if (times && w->why_undivided) add_why(t, "why devices were idle", w->why_undivided);
  if (w->unknown_calls)
    wr_table_before(
        t, true,
        "of %s it is not known what they had to wait for: calls of their process are missing, or"
        " an event is another process's or recorded in a graph",
        COUNTED(w->unknown_calls, "wait"));
  if (w->divided && w->all.unknown_ns)
    wr_table_before(
        t, false,
        "of %s of host time in waits it is not known what devices did: work without device times"
        " may have been under way",
        DURATION(w->all.unknown_ns));
}
