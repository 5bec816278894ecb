/* waits.c: weir report waits: host time in waits that were asked for and in calls that may wait, by
 * function and by whatever is asked for, with what devices did meanwhile; and the longest of
 * them. */
#include <stdlib.h>
#include "reports/base/units.h"
#include "reports/tables/build.h"

enum { LONGEST = 10 /* single waits that are listed */ };

static wr_activity_sums sum_all(const wr_activity *a)
{
  wr_activity_sums all = {0};
  for (size_t i = 0; i < a->count; i++)
    wr_activity_add(&all, &a->cell[i].sums);
  return all;
}

static void put_total(wr_named_table *t, const char *what, uint64_t calls, uint64_t ns, bool known,
                      uint64_t whole)
{
  wr_table_row(t);
  wr_table_put_text(t, what);
  if (!known) {
    for (int i = 0; i < 3; i++)
      wr_table_put_none(t);
    return;
  }
  wr_table_put(t, calls);
  wr_table_put(t, ns);
  wr_table_put_share(t, ns, whole);
}

static void add_totals(const wr_build *b, const wr_activity *a)
{
  static const wr_column columns[] = {{"what", "what", WR_COLUMN_TEXT, 0},
                                      {"calls", "calls", WR_COLUMN_COUNT, 0},
                                      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
                                      {"share_of_waits", "of both", WR_COLUMN_SHARE, 1}};
  wr_activity_sums s = sum_all(a);
  uint64_t both = s.explicit_ns + s.implicit_ns;
  wr_named_table *t =
      wr_tables_add(b->t, "waits", "Waits", columns, sizeof columns / sizeof *columns);
  put_total(t, "asked for", s.explicit_calls, s.explicit_ns, true, both);
  put_total(t, "in calls that may wait", s.implicit_calls, s.implicit_ns, true, both);
  put_total(t, "asked for with nothing to wait for", s.redundant_calls, s.redundant_ns, a->judged,
            both);
  put_total(t, "asked for of all streams where one had work", s.wider_calls, s.wider_ns, a->judged,
            both);
}

static void add_parts_of_waits(const wr_build *b, const wr_activity *a)
{
  static const wr_column columns[] = {{"what", "what devices did", WR_COLUMN_TEXT, 0},
                                      {"host_ns", "host time waiting", WR_COLUMN_HOST_NS, 0},
                                      {"share_of_waits", "of it", WR_COLUMN_SHARE, 0}};
  if (!a->divided) return;
  wr_activity_sums s = sum_all(a);
  const struct {
    const char *what;
    uint64_t ns;
  } parts[] = {{"worked on what was waited for", s.working_ns},
               {"worked on something else", s.other_ns},
               {"nothing", s.idle_ns},
               {"not known", s.unknown_ns}};
  uint64_t all = s.working_ns + s.other_ns + s.idle_ns + s.unknown_ns;
  wr_named_table *t = wr_tables_add(b->t, "meanwhile", "What devices did while the host waited",
                                    columns, sizeof columns / sizeof *columns);
  for (int i = 0; i < 4; i++) {
    wr_table_row(t);
    wr_table_put_text(t, parts[i].what);
    wr_table_put(t, parts[i].ns);
    wr_table_put_share(t, parts[i].ns, all);
  }
}

static weir_status add_longest(const wr_build *b, const wr_activity *a, wr_groups *g)
{
  static const wr_column columns[] = {
      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0}, {"start_ns", "began at", WR_COLUMN_MOMENT, 0},
      {"function", "function", WR_COLUMN_TEXT, 0},    {"thread", "thread", WR_COLUMN_TEXT, 3},
      {"device", "device", WR_COLUMN_TEXT, 4},        {"place", "in", WR_COLUMN_PLACE, 0}};
  wr_named_table *t = wr_tables_add(b->t, "longest", "Longest single waits", columns,
                                    sizeof columns / sizeof *columns);
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < a->waits; i++) {
    const wr_long_wait *w = &a->wait[i];
    wr_frame_name place;
    s = wr_group_place(g, w->common.stack, &place);
    if (s) break;
    wr_table_row(t);
    wr_table_put(t, w->ns);
    wr_table_put(t, w->start > 0 ? (uint64_t)w->start : 0);
    wr_table_put_text(t, wr_group_function(g, w->common.api));
    wr_table_put_text(t, wr_group_thread(g, w->common.thread));
    wr_put_device(t, w->common.device);
    wr_table_put_place(t, place.function, place.file, place.line);
    wr_frame_name_free(&place);
  }
  return s;
}

#define WAITS(name, title, type, extra, kind, sum, unknown)                                        \
  {                                                                                                \
    {name, title, type, extra}, kind, wr_cell_any, WR_SUM_OF(sum), 0, unknown                      \
  }

static weir_status add_wait_groups(const wr_build *b, const wr_activity *a, wr_groups *functions)
{
  bool j = !a->judged, d = !a->divided;
  const wr_measure measures[] = {
      WAITS("explicit_host_ns", "host time asked for", WR_COLUMN_HOST_NS, 0, WR_MEASURE_SUM,
            explicit_ns, false),
      WAITS("implicit_host_ns", "host time that may wait", WR_COLUMN_HOST_NS, 0, WR_MEASURE_SUM,
            implicit_ns, false),
      WAITS("explicit_calls", "asked for", WR_COLUMN_COUNT, 1, WR_MEASURE_SUM, explicit_calls,
            false),
      WAITS("implicit_calls", "may wait", WR_COLUMN_COUNT, 1, WR_MEASURE_SUM, implicit_calls,
            false),
      WAITS("longest_host_ns", "longest", WR_COLUMN_HOST_NS, 2, WR_MEASURE_LONGEST, longest_ns,
            false),
      WAITS("redundant_calls", "for nothing", WR_COLUMN_COUNT, 3, WR_MEASURE_SUM, redundant_calls,
            j),
      WAITS("redundant_host_ns", "host time for nothing", WR_COLUMN_HOST_NS, 4, WR_MEASURE_SUM,
            redundant_ns, j),
      WAITS("wider_calls", "too wide", WR_COLUMN_COUNT, 5, WR_MEASURE_SUM, wider_calls, j),
      WAITS("wider_host_ns", "host time too wide", WR_COLUMN_HOST_NS, 6, WR_MEASURE_SUM, wider_ns,
            j),
      WAITS("working_host_ns", "device worked on it", WR_COLUMN_HOST_NS, 7, WR_MEASURE_SUM,
            working_ns, d),
      WAITS("other_host_ns", "worked on else", WR_COLUMN_HOST_NS, 7, WR_MEASURE_SUM, other_ns, d),
      WAITS("idle_host_ns", "did nothing", WR_COLUMN_HOST_NS, 7, WR_MEASURE_SUM, idle_ns, d),
      WAITS("unknown_host_ns", "not known", WR_COLUMN_HOST_NS, 8, WR_MEASURE_SUM, unknown_ns, d)};
  size_t count = sizeof measures / sizeof *measures;
  weir_status s = wr_build_grouped(b, a, "waits", "Waits", measures, count);
  if (s || b->o->by == WEIR_BY_FUNCTION) return s;
  return wr_grouped_table(b->t, "waits_by_function", "Waits by function", functions, a, measures,
                          count, b->top);
}

static void note_undivided(const wr_build *b)
{
  wr_device_times t;
  bool loaded = !wr_device_times_load(&t, b->db);
  if (loaded && !t.count)
    wr_note_no_device_times(b, &t, ": what devices did while the host waited is not known");
  else
    wr_tables_note(b->t, "What devices did while the host waited is not worked out.");
  if (loaded) wr_device_times_free(&t);
}

static void say_unjudged(const wr_build *b, const wr_activity *a)
{
  if (!a->judged)
    wr_tables_note(b->t, "The trace is not complete: what waits had to wait for is not known.");
  else if (!a->divided)
    note_undivided(b);
  if (a->unjudged_calls)
    wr_tables_note(b->t, "Of %s it is not known what they had to wait for.",
                   wr_counted(a->unjudged_calls, "wait", "waits").text);
  if (a->init_calls)
    wr_tables_note(b->t, "Initialisation is no wait: %s that brought up contexts, %s of host time.",
                   wr_counted(a->init_calls, "call", "calls").text, wr_duration(a->init_ns).text);
}

weir_status wr_build_waits(const wr_build *b)
{
  wr_activity a;
  wr_groups g;
  wr_activity_wants wants = {.ranges = b->o->by == WEIR_BY_RANGE,
                             .waits = true,
                             .longest = b->o->top > 0 ? b->o->top : LONGEST};
  weir_status s = wr_activity_load(&a, b->db, b->scope, &wants);
  if (s) return s;
  s = wr_groups_open(&g, b->db, WEIR_BY_FUNCTION);
  if (!s) {
    add_totals(b, &a);
    s = add_wait_groups(b, &a, &g);
    add_parts_of_waits(b, &a);
    if (!s) s = add_longest(b, &a, &g);
    wr_groups_close(&g);
  }
  say_unjudged(b, &a);
  wr_activity_free(&a);
  return s;
}
