/* section_transfers.c: copies and memsets, by the host's calls, and by devices' times. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/tables/sections.h"

enum { ROUTE_ROWS = 12, IDLE_ROWS = 6 /* of a device */ };

/* ---- by calls -------------------------------------------------------------------------------- */

static const char *end_words(int device, char out[24])
{
  if (device == WR_HOST)
    (void)snprintf(out, 24, "host");
  else
    (void)snprintf(out, 24, "GPU %d", device);
  return out;
}

static void add_routes(const wr_sections *s, wr_named_table *t)
{
  for (size_t i = 0; i < s->m->route_count; i++) {
    const wr_route *r = &s->m->routes[i];
    char from[24], to[24];
    wr_table_row(t);
    wr_table_put_words(t, "%s → %s", end_words(r->src, from), end_words(r->dst, to));
    WR_PUT(t, r->calls, r->bytes, r->bytes / r->calls);
    wr_table_put_speed(t, r->timed_bytes, r->timed_ns);
  }
  wr_table_most(t, ROUTE_ROWS, "pair", "pairs");
}

/* "host → device, from: pageable 1.00 MiB (50 %) · pinned 1.00 MiB (50 %)" */
static void add_host_memory(const wr_sections *s)
{
  const wr_model *m = s->m;
  wr_named_table *t = wr_tables_add_sentences(s->t, "host_memory", "");
  for (int d = 0; d < 2; d++) {
    char text[512] = "";
    uint64_t whole = d ? m->total.d2h_bytes : m->total.h2d_bytes;
    for (size_t i = 0; i < m->split_count; i++) {
      const wr_host_split *x = &m->split[i];
      if (strcmp(x->direction, d ? "d2h" : "h2d") != 0) continue;
      size_t used = strlen(text);
      (void)snprintf(text + used, sizeof(text) - used, "%s%s %s (%s)", *text ? " · " : "",
                     x->memory, BYTES(x->bytes), wr_percent(x->bytes, whole).text);
    }
    if (*text)
      wr_table_before(t, false, "%s %s", d ? "device → host, into:" : "host → device, from:", text);
  }
}

void wr_section_transfers(const wr_sections *s)
{
  static const wr_column columns[] = {{"route", "from → to", WR_COLUMN_TEXT, WR_RIGID},
                                      {"calls", "copies", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"mean_bytes", "mean", WR_COLUMN_BYTES, 0},
                                      {"bytes_per_second", "speed", WR_COLUMN_SPEED, 0}};
  const wr_totals *x = &s->m->total;
  if (s->m->route_count || x->memset_calls || x->other_copy_calls) {
    wr_named_table *t = WR_TABLE(s->t, "transfers", "Transfers", columns);
    wr_table_aside(t, "speed: by host time, of calls that return when the copy is done");
    add_routes(s, t);
    if (x->other_copy_calls) {
      wr_table_row(t);
      wr_table_put_text(t, "unknown");
      WR_PUT(t, x->other_copy_calls, x->other_copy_bytes);
      wr_table_skip(t, 2);
    }
    if (x->memset_calls) {
      wr_table_row(t);
      wr_table_put_text(t, "memset");
      WR_PUT(t, x->memset_calls, x->memset_bytes, x->memset_bytes / x->memset_calls);
    }
  }
  add_host_memory(s);
}

/* ---- by devices ------------------------------------------------------------------------------ */

static const char *const work_words[WR_WORKS] = {
#define WORK_WORDS(id, name, words) words,
    WR_WORK_MAP(WORK_WORDS)
#undef WORK_WORDS
};

static void add_works(wr_named_table *t, const wr_device_time *d)
{
  for (int i = 0; i < WR_WORKS; i++) {
    const wr_work_sum *w = &d->work[i];
    if (!w->operations) continue;
    wr_table_row(t);
    wr_table_put_words(t, "GPU %d", d->device);
    wr_table_put_text(t, work_words[i]);
    WR_PUT(t, w->operations, w->bytes);
    wr_table_put_if(t, w->timed, w->busy_ns);
    wr_table_put_speed(t, w->timed_bytes, w->timed_bytes ? w->busy_ns : 0);
  }
}

static void add_busy(wr_named_table *t, const wr_device_time *d, bool all_seen)
{
  if (!d->span_ns) return;
  if (all_seen)
    wr_table_after(t, false, "GPU %d: busy %s of %s (%s), idle %s", d->device, DURATION(d->busy_ns),
                   DURATION(d->span_ns), wr_percent(d->busy_ns, d->span_ns).text,
                   DURATION(d->span_ns - d->busy_ns));
  else
    wr_table_after(t, false, "GPU %d: seen busy %s of %s (%s), the rest idle or in kernels",
                   d->device, DURATION(d->busy_ns), DURATION(d->span_ns),
                   wr_percent(d->busy_ns, d->span_ns).text);
  if (d->overlap_ns)
    wr_table_after(
        t, false, "GPU %d: of %s in which it copied, kernels ran in %s (%s); %s without overlap",
        d->device, DURATION(d->copy_ns), DURATION(d->overlap_ns),
        wr_percent(d->overlap_ns, d->copy_ns).text, DURATION(d->copy_ns - d->overlap_ns));
  else if (d->copy_ns && all_seen)
    wr_table_after(t, false, "GPU %d: copied in %s, without overlap", d->device,
                   DURATION(d->copy_ns));
}

/* What device times there are not. */
static void add_unseen_work(wr_named_table *t, const wr_device_times *d)
{
  if (d->unavailable) wr_table_after(t, true, "device times are not all there: %s", d->unavailable);
  if (d->yields)
    wr_table_after(t, true, "the program used CUPTI itself: %s without device times, in %s",
                   DURATION(d->yielded_ns), OF(d->yields, "stretch", "stretches"));
  if (d->dropped) wr_table_after(t, true, "%s lost", COUNTED(d->dropped, "device operation"));
  if (d->untimed)
    wr_table_after(t, true, "%s without times", COUNTED(d->untimed, "device operation"));
  if (d->unmatched)
    wr_table_after(t, false, "%s of no recorded call", COUNTED(d->unmatched, "device operation"));
  if (d->no_kernels && d->count)
    wr_table_after(t, false,
                   "kernels were not observed: where a device seems idle one may have run"
                   " (--device-times=all)");
  if (d->lost_calls)
    wr_table_after(t, true, "%s without device operations: %s ended before these were had",
                   COUNTED(d->lost_calls, "call"), OF(d->incomplete, "process", "processes"));
}

static void add_full_queues(wr_named_table *t, const wr_device_times *d)
{
  for (size_t i = 0; i < d->count; i++) {
    const wr_device_time *x = &d->device[i];
    if (!x->full_ns) continue;
    wr_table_after(
        t, false, "GPU %d had a full launch queue for %s of host time in calls that queue work%s%s",
        x->device, DURATION(x->full_ns), x->full_function ? ", the most in " : "",
        x->full_function ? x->full_function : "");
  }
}

/* ---- why devices were idle ------------------------------------------------------------------- */

static const char *cause_words(wr_idle_cause cause)
{
  switch (cause) {
  case WR_IDLE_QUEUED:
    return "between launches: queued";
  case WR_IDLE_WAITING:
    return "the host was waiting";
  case WR_IDLE_ELSEWHERE:
    return "the host was elsewhere";
  case WR_IDLE_NO_CALL:
    return "no CUDA call";
  case WR_IDLE_FULL:
    return "a launch queue was full";
  default:
    return "not known";
  }
}

static void put_idle(wr_named_table *t, const wr_device_time *d, wr_row_kind kind,
                     const char *words, const char *function, uint64_t ns)
{
  wr_table_row_for(t, kind);
  wr_table_put_words(t, "GPU %d", d->device);
  wr_table_put_text(t, words);
  wr_table_put_text(t, function ? function : "-");
  wr_table_put(t, ns);
  wr_table_put_share(t, ns, d->span_ns - d->busy_ns);
}

static void add_idle(wr_named_table *t, const wr_device_time *d)
{
  uint64_t rest = 0;
  for (size_t i = 0; i < d->idle_count; i++) {
    const wr_idle_part *x = &d->idle[i];
    put_idle(t, d, i < IDLE_ROWS ? WR_ROW_ALL : WR_ROW_DATA, cause_words(x->cause), x->function,
             x->ns);
    if (i >= IDLE_ROWS) rest += x->ns;
  }
  if (rest) put_idle(t, d, WR_ROW_TEXT, "… and more", NULL, rest);
}

static void add_longest_gap(wr_named_table *t, const wr_device_time *d)
{
  if (!d->gap_count) return;
  const wr_idle_gap *g = &d->gap[0];
  uint64_t host = g->ns[WR_IDLE_WAITING] + g->ns[WR_IDLE_ELSEWHERE] + g->ns[WR_IDLE_FULL];
  wr_idle_cause most = WR_IDLE_UNKNOWN;
  if (g->ns[WR_IDLE_QUEUED] > g->ns[most]) most = WR_IDLE_QUEUED;
  if (g->ns[WR_IDLE_NO_CALL] > g->ns[most]) most = WR_IDLE_NO_CALL;
  bool called = host > g->ns[most];
  wr_table_after(t, false, "GPU %d was idle the longest for %s, from %s on: mostly %s%s%s",
                 d->device, DURATION((uint64_t)g->end - (uint64_t)g->start),
                 DURATION(g->start > 0 ? (uint64_t)g->start : 0),
                 called ? "the host was in CUDA calls" : cause_words(most),
                 called && g->function ? ", the longest in " : "",
                 called && g->function ? g->function : "");
}

static void add_causes(const wr_sections *s)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_TEXT, 0},
                                      {"cause", "meanwhile", WR_COLUMN_TEXT, 0},
                                      {"function", "function", WR_COLUMN_TEXT, 0},
                                      {"idle_device_ns", "device time", WR_COLUMN_DEVICE_NS, 0},
                                      {"share_of_idle", "of idle", WR_COLUMN_SHARE, WR_ROUNDED}};
  const wr_device_times *d = &s->m->device_times;
  bool any = false;
  for (size_t i = 0; i < d->count; i++)
    any |= d->device[i].idle_count != 0;
  if (!any) return;
  wr_named_table *t = WR_TABLE(s->t, "idle", "Why devices were idle", columns);
  wr_table_aside(t, "device time between a device's first operation and its last one");
  for (size_t i = 0; i < d->count; i++)
    add_idle(t, &d->device[i]);
  for (size_t i = 0; i < d->count; i++)
    add_longest_gap(t, &d->device[i]);
}

void wr_section_device_times(const wr_sections *s)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_TEXT, WR_RIGID},
                                      {"work", "work", WR_COLUMN_TEXT, WR_RIGID},
                                      {"operations", "count", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, WR_ZERO_DASH},
                                      {"busy_device_ns", "device time", WR_COLUMN_DEVICE_NS, 0},
                                      {"bytes_per_second", "speed", WR_COLUMN_SPEED, 0}};
  const wr_device_times *d = &s->m->device_times;
  if (!d->count && !d->observed && !d->unavailable && !d->yields) return;
  wr_named_table *t = WR_TABLE(s->t, "device_times", "Device time", columns);
  wr_table_look(t, WR_QUIET);
  if (d->observed) wr_table_aside(t, "%s", d->observed);
  for (size_t i = 0; i < d->count; i++)
    add_works(t, &d->device[i]);
  for (size_t i = 0; i < d->count; i++)
    add_busy(t, &d->device[i], !d->no_kernels);
  add_unseen_work(t, d);
  add_full_queues(t, d);
  add_causes(s);
}
