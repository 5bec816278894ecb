/* waits_render.c: how the time in waits divides, waits that were not needed, waits for more than
 * they had to wait for; as text and as JSON. All times here are the host's. */
#include "reports/render/waits_render.h"
#include "reports/render/text_sites.h"

enum { PART_ROWS = 6 };

static uint64_t host_time(const wr_wait_part *x)
{
  return x->working_ns + x->other_ns + x->idle_ns + x->unknown_ns;
}

static const char *or_dash(uint64_t ns, const char *text)
{
  return ns ? text : "-";
}

static void part_row(wr_page *p, const char *name, const wr_wait_part *x)
{
  ROW(p, name, COUNT(x->calls), DURATION(host_time(x)),
      or_dash(x->working_ns, DURATION(x->working_ns)), or_dash(x->other_ns, DURATION(x->other_ns)),
      or_dash(x->idle_ns, DURATION(x->idle_ns)), or_dash(x->unknown_ns, DURATION(x->unknown_ns)));
}

static void print_parts(wr_page *p, const wr_wait_truth *t)
{
  size_t shown = t->part_count < PART_ROWS ? t->part_count : PART_ROWS;
  wr_wait_part rest = t->all;
  wr_page_begin(p, "frrrrrr");
  ROW(p, "function", "waits", "host time", "working", "other work", "idle", "not known");
  for (size_t i = 0; i < shown; i++) {
    const wr_wait_part *x = &t->part[i];
    part_row(p, *x->function ? x->function : "unknown", x);
    rest.calls -= x->calls, rest.working_ns -= x->working_ns, rest.other_ns -= x->other_ns;
    rest.idle_ns -= x->idle_ns, rest.unknown_ns -= x->unknown_ns;
  }
  char name[96];
  (void)snprintf(name, sizeof(name), "… in %s", COUNTED(t->part_count - shown, "more function"));
  if (shown < t->part_count) part_row(p, name, &rest);
  wr_page_end(p);
}

/* "of 2.00 ms: 50 % the device worked on what was waited for, 50 % it was idle" */
static void print_shares(wr_page *p, const wr_wait_part *x, uint64_t all)
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
  wr_page_line(p, false, text);
}

void wr_wait_parts_section(wr_page *p)
{
  const wr_wait_truth *t = &p->m->waits;
  uint64_t all = host_time(&t->all);
  if (!t->divided || !all) return;
  wr_page_heading(p, "What devices did in waits",
                  "host time, by what the wait's devices did meanwhile");
  print_parts(p, t);
  print_shares(p, &t->all, all);
}

static const wr_site_columns wait_columns = {
    .unit = "waits", .time = true, .function = true, .where = "called in"};

void wr_wait_places_section(wr_page *p)
{
  const wr_wait_truth *t = &p->m->waits;
  char aside[384];
  (void)snprintf(aside, sizeof(aside), "%s of %s, %s of host time",
                 wr_count(t->redundant_calls).text, COUNTED(t->judged_calls, "wait"),
                 DURATION(t->redundant_ns));
  wr_site_table(p, "Waits that an earlier one had covered", aside, &wait_columns, &p->m->redundant);
  if (!t->wider_calls) return;
  (void)snprintf(aside, sizeof(aside),
                 "%s of %s, %s of host time: one stream alone had work; to wait for it, or for an"
                 " event recorded in it, would do",
                 wr_count(t->wider_calls).text, COUNTED(t->judged_calls, "wait"),
                 DURATION(t->wider_ns));
  wr_site_table(p, "Waits for a whole device", aside, &wait_columns, &p->m->wider);
}

/* ---- what is not known ----------------------------------------------------------------------- */

static void print_unjudged(wr_page *p, const char *what, wr_unjudged why)
{
  switch (why) {
  case WR_UNJUDGED_WORK:
    LINE(p, true,
         "%s is not worked out: the trace has too many device operations for a report;"
         " `weir resolve` it",
         what);
    break;
  case WR_UNJUDGED_RESOLVED:
    LINE(p, true, "%s is not in the trace: another version of Weir has resolved it", what);
    break;
  case WR_UNJUDGED_UNFINISHED:
    LINE(p, true, "%s is not known before the trace is finished", what);
    break;
  case WR_UNJUDGED_VERSION:
  case WR_JUDGED:
    break;
  }
}

void wr_unjudged_lines(wr_page *p)
{
  const wr_wait_truth *t = &p->m->waits;
  bool waits = p->m->total.sync_explicit_calls != 0, times = p->m->device_times.count != 0;
  if (waits && t->why) print_unjudged(p, "whether waits were needed", t->why);
  if (times && t->why_undivided) print_unjudged(p, "why devices were idle", t->why_undivided);
  if (t->unknown_calls)
    LINE(p, true,
         "of %s it is not known what they had to wait for: calls of their process are missing, or"
         " an event is another process's or recorded in a graph",
         COUNTED(t->unknown_calls, "wait"));
  if (t->divided && t->all.unknown_ns)
    LINE(p, false,
         "of %s of host time in waits it is not known what devices did: work without device times"
         " may have been under way",
         DURATION(t->all.unknown_ns));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

const char *wr_unjudged_name(wr_unjudged why)
{
  static const char *const names[] = {NULL, "unfinished", "version", "operations", "resolved"};
  return names[why];
}

static void put_number(json_t *o, const char *name, uint64_t n)
{
  json_object_set_new(o, name, json_integer((json_int_t)n));
}

static json_t *part_json(const wr_wait_part *x)
{
  json_t *o = json_object();
  put_number(o, "calls", x->calls);
  put_number(o, "working_ns", x->working_ns);
  put_number(o, "other_ns", x->other_ns);
  put_number(o, "idle_ns", x->idle_ns);
  put_number(o, "unknown_ns", x->unknown_ns);
  return o;
}

static json_t *divided_json(const wr_wait_truth *t)
{
  if (!t->divided) return json_null();
  json_t *o = part_json(&t->all), *list = json_array();
  for (size_t i = 0; i < t->part_count; i++) {
    json_t *part = part_json(&t->part[i]);
    json_object_set_new(part, "function", json_string(t->part[i].function));
    json_array_append_new(list, part);
  }
  json_object_set_new(o, "functions", list);
  return o;
}

json_t *wr_waits_json(const wr_wait_truth *t)
{
  if (!t->judged) return json_null();
  json_t *o = json_object();
  put_number(o, "judged_calls", t->judged_calls);
  put_number(o, "unknown_calls", t->unknown_calls);
  put_number(o, "redundant_calls", t->redundant_calls);
  put_number(o, "redundant_ns", t->redundant_ns);
  put_number(o, "wider_calls", t->wider_calls);
  put_number(o, "wider_ns", t->wider_ns);
  json_object_set_new(o, "divided", divided_json(t));
  return o;
}
