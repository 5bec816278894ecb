/* device_times_render.c: the device times of a model, as text and as JSON. */
#include "reports/render/device_times_render.h"
#include "reports/render/waits_render.h"

enum { IDLE_ROWS = 6 /* of a device */ };

static const char *const causes[WR_IDLE_CAUSES] = {/* of idle time, in JSON */
#define CAUSE_NAME(id, value, name) [value] = name,
                                                   WR_IDLE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
};

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

static const struct {
  const char *name, *words;
} works[WR_WORKS] = {
#define WORK_NAME(id, name, words) {name, words},
    WR_WORK_MAP(WORK_NAME)
#undef WORK_NAME
};

static void print_works(wr_page *p, const wr_device_time *d)
{
  for (int i = 0; i < WR_WORKS; i++) {
    const wr_work_sum *w = &d->work[i];
    if (!w->operations) continue;
    wr_grid_row(&p->grid);
    CELL(p, "GPU %d", d->device);
    CELLS(p, works[i].words, COUNT(w->operations), w->bytes ? BYTES(w->bytes) : "-",
          w->timed ? DURATION(w->busy_ns) : "-",
          w->timed_bytes ? wr_speed(w->timed_bytes, w->busy_ns).text : "-");
  }
}

static void print_device(wr_page *p, const wr_device_time *d, bool all_seen)
{
  if (!d->span_ns) return;
  if (all_seen)
    LINE(p, false, "GPU %d: busy %s of %s (%s), idle %s", d->device, DURATION(d->busy_ns),
         DURATION(d->span_ns), wr_percent(d->busy_ns, d->span_ns).text,
         DURATION(d->span_ns - d->busy_ns));
  else
    LINE(p, false, "GPU %d: seen busy %s of %s (%s), the rest idle or in kernels", d->device,
         DURATION(d->busy_ns), DURATION(d->span_ns), wr_percent(d->busy_ns, d->span_ns).text);
  if (d->overlap_ns)
    LINE(p, false, "GPU %d: of %s in which it copied, kernels ran in %s (%s); %s without overlap",
         d->device, DURATION(d->copy_ns), DURATION(d->overlap_ns),
         wr_percent(d->overlap_ns, d->copy_ns).text, DURATION(d->copy_ns - d->overlap_ns));
  else if (d->copy_ns && all_seen)
    LINE(p, false, "GPU %d: copied in %s, without overlap", d->device, DURATION(d->copy_ns));
}

/* ---- why devices were idle ------------------------------------------------------------------- */

static void idle_row(wr_page *p, const wr_device_time *d, const char *words, const char *function,
                     uint64_t ns)
{
  wr_grid_row(&p->grid);
  CELL(p, "GPU %d", d->device);
  CELLS(p, words, function, DURATION(ns), wr_percent(ns, d->span_ns - d->busy_ns).text);
}

static void print_idle(wr_page *p, const wr_device_time *d)
{
  uint64_t rest = 0;
  for (size_t i = 0; i < d->idle_count; i++) {
    const wr_idle_part *x = &d->idle[i];
    if (i >= IDLE_ROWS)
      rest += x->ns;
    else
      idle_row(p, d, cause_words(x->cause), x->function ? x->function : "-", x->ns);
  }
  if (rest) idle_row(p, d, "… and more", "-", rest);
}

static void print_longest_gap(wr_page *p, const wr_device_time *d)
{
  if (!d->gap_count) return;
  const wr_idle_gap *g = &d->gap[0];
  uint64_t host = g->ns[WR_IDLE_WAITING] + g->ns[WR_IDLE_ELSEWHERE] + g->ns[WR_IDLE_FULL];
  wr_idle_cause most = WR_IDLE_UNKNOWN;
  if (g->ns[WR_IDLE_QUEUED] > g->ns[most]) most = WR_IDLE_QUEUED;
  if (g->ns[WR_IDLE_NO_CALL] > g->ns[most]) most = WR_IDLE_NO_CALL;
  bool called = host > g->ns[most];
  LINE(p, false, "GPU %d was idle the longest for %s, from %s on: mostly %s%s%s", d->device,
       DURATION((uint64_t)g->end - (uint64_t)g->start),
       DURATION(g->start > 0 ? (uint64_t)g->start : 0),
       called ? "the host was in CUDA calls" : cause_words(most),
       called && g->function ? ", the longest in " : "", called && g->function ? g->function : "");
}

static void print_causes(wr_page *p, const wr_device_times *t)
{
  bool any = false;
  for (size_t i = 0; i < t->count; i++)
    any |= t->device[i].idle_count != 0;
  if (!any) return;
  wr_page_heading(p, "Why devices were idle",
                  "device time between a device's first operation and its last one");
  wr_page_begin(p, "llfrr");
  ROW(p, "device", "meanwhile", "function", "device time", "of idle");
  for (size_t i = 0; i < t->count; i++)
    print_idle(p, &t->device[i]);
  wr_page_end(p);
  for (size_t i = 0; i < t->count; i++)
    print_longest_gap(p, &t->device[i]);
}

static void print_full_queues(wr_page *p, const wr_device_times *t)
{
  for (size_t i = 0; i < t->count; i++) {
    const wr_device_time *d = &t->device[i];
    if (!d->full_ns) continue;
    LINE(p, false,
         "GPU %d had a full launch queue for %s of host time in calls that queue work%s%s",
         d->device, DURATION(d->full_ns), d->full_function ? ", the most in " : "",
         d->full_function ? d->full_function : "");
  }
}

/* What device times there are not. */
static void print_unseen_work(wr_page *p, const wr_device_times *t)
{
  if (t->unavailable) LINE(p, true, "device times are not all there: %s", t->unavailable);
  if (t->yields)
    LINE(p, true, "the program used CUPTI itself: %s without device times, in %s",
         DURATION(t->yielded_ns), OF(t->yields, "stretch", "stretches"));
  if (t->dropped) LINE(p, true, "%s lost", COUNTED(t->dropped, "device operation"));
  if (t->untimed) LINE(p, true, "%s without times", COUNTED(t->untimed, "device operation"));
  if (t->unmatched)
    LINE(p, false, "%s of no recorded call", COUNTED(t->unmatched, "device operation"));
  if (t->no_kernels && t->count)
    LINE(p, false,
         "kernels were not observed: where a device seems idle one may have run"
         " (--device-times=all)");
  if (t->lost_calls)
    LINE(p, true, "%s without device operations: %s ended before these were had",
         COUNTED(t->lost_calls, "call"), OF(t->incomplete, "process", "processes"));
}

void wr_device_times_section(wr_page *p)
{
  const wr_device_times *t = &p->m->device_times;
  if (!t->count && !t->observed && !t->unavailable && !t->yields) return;
  wr_page_heading(p, "Device time", t->observed);
  if (t->count) {
    wr_page_begin(p, "llrrrr");
    ROW(p, "device", "work", "count", "bytes", "device time", "speed");
    for (size_t i = 0; i < t->count; i++)
      print_works(p, &t->device[i]);
    wr_page_end(p);
  }
  for (size_t i = 0; i < t->count; i++)
    print_device(p, &t->device[i], !t->no_kernels);
  print_unseen_work(p, t);
  print_full_queues(p, t);
  print_causes(p, t);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_number(json_t *o, const char *name, uint64_t n)
{
  json_object_set_new(o, name, json_integer((json_int_t)n));
}

static json_t *works_json(const wr_device_time *d)
{
  json_t *all = json_object();
  for (int i = 0; i < WR_WORKS; i++) {
    const wr_work_sum *w = &d->work[i];
    if (!w->operations) continue;
    json_t *o = json_object();
    put_number(o, "operations", w->operations);
    put_number(o, "timed_operations", w->timed);
    put_number(o, "bytes", w->bytes);
    put_number(o, "timed_bytes", w->timed_bytes);
    put_number(o, "busy_ns", w->busy_ns);
    json_object_set_new(all, works[i].name, o);
  }
  return all;
}

static json_t *text_or_null(const char *text)
{
  json_t *string = text ? json_string(text) : NULL;
  return string ? string : json_null();
}

static json_t *idle_json(const wr_device_time *d)
{
  json_t *list = json_array();
  for (size_t i = 0; i < d->idle_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "cause", json_string(causes[d->idle[i].cause]));
    json_object_set_new(o, "function", text_or_null(d->idle[i].function));
    put_number(o, "ns", d->idle[i].ns);
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *gaps_json(const wr_device_time *d)
{
  json_t *list = json_array();
  for (size_t i = 0; i < d->gap_count; i++) {
    const wr_idle_gap *g = &d->gap[i];
    json_t *o = json_object(), *parts = json_object();
    json_object_set_new(o, "start_ns", json_integer(g->start));
    json_object_set_new(o, "end_ns", json_integer(g->end));
    json_object_set_new(o, "function", text_or_null(g->function));
    for (int c = 0; c < WR_IDLE_CAUSES; c++)
      put_number(parts, causes[c], g->ns[c]);
    json_object_set_new(o, "causes", parts);
    json_array_append_new(list, o);
  }
  return list;
}

json_t *wr_device_times_json(const wr_model *m)
{
  const wr_device_times *t = &m->device_times;
  json_t *a = json_array();
  for (size_t i = 0; i < t->count; i++) {
    const wr_device_time *d = &t->device[i];
    json_t *o = json_object();
    put_number(o, "device", (uint64_t)d->device);
    put_number(o, "span_ns", d->span_ns);
    put_number(o, "busy_ns", d->busy_ns);
    put_number(o, "copy_ns", d->copy_ns);
    put_number(o, "kernel_ns", d->kernel_ns);
    put_number(o, "overlap_ns", d->overlap_ns);
    json_object_set_new(o, "work", works_json(d));
    json_object_set_new(o, "queue_full_ns",
                        m->waits.divided ? json_integer((json_int_t)d->full_ns) : json_null());
    json_object_set_new(o, "idle", m->waits.divided ? idle_json(d) : json_null());
    json_object_set_new(o, "longest_idle", m->waits.divided ? gaps_json(d) : json_null());
    json_array_append_new(a, o);
  }
  return a;
}

json_t *wr_device_observation_json(const wr_model *m)
{
  const wr_device_times *t = &m->device_times;
  json_t *o = json_object();
  json_object_set_new(o, "observed", text_or_null(t->observed));
  json_object_set_new(o, "unavailable", text_or_null(t->unavailable));
  put_number(o, "yields", t->yields);
  put_number(o, "yielded_ns", t->yielded_ns);
  put_number(o, "dropped", t->dropped);
  put_number(o, "untimed", t->untimed);
  put_number(o, "unmatched", t->unmatched);
  put_number(o, "incomplete_processes", t->incomplete);
  put_number(o, "lost_calls", t->lost_calls);
  json_object_set_new(o, "kernels_unobserved", json_boolean(t->no_kernels));
  json_object_set_new(o, "undivided",
                      text_or_null(t->count ? wr_unjudged_name(m->waits.why_undivided) : NULL));
  return o;
}
