/* findings.c: see findings.h. A search from its begin, over the walk that finds the facts, to the findings in order and what
 * they save together. */
#include "reports/findings/findings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/findings/search.h"
#include "reports/findings/source.h"
#include "reports/model/complete.h"
#include "reports/model/device_times.h"
#include "reports/model/waits.h"

enum {
  RULE_MS = 10000,
  RULE_EVENTS = 1000000, /* for as many, and for each as many more */
  MOST_CLOCK_NS = 10000, /* that a read of the clock takes */
  ROW_BYTES = 8,         /* that a row of an event takes at least */
  STEP = 1 << 16         /* events between two words of progress */
};

/* ---- what the trace has ----------------------------------------------------------------------- */

/* By their last number, and no more than the file has room for: that number is what it says. */
static weir_status count_events(wr_search *x)
{
  int64_t pages = 0, page_bytes = 0;
  weir_status s = wr_db_number(x->db, "SELECT max(id) FROM event_row", &x->events);
  if (!s) s = wr_db_number(x->db, "PRAGMA main.page_count", &pages);
  if (!s) s = wr_db_number(x->db, "PRAGMA main.page_size", &page_bytes);
  if (x->events > pages * page_bytes / ROW_BYTES) x->events = pages * page_bytes / ROW_BYTES;
  return s;
}

/* `wait_detail` and what goes with it; of a trace that is not resolved they are made in the walk that finds the facts: by the
 * model that takes it too, or else here. */
static weir_status find_waits(wr_search *x)
{
  int64_t work = 0, made = 0;
  weir_status s = count_events(x);
  int64_t times = x->events > RULE_EVENTS ? (x->events - 1) / RULE_EVENTS + 1 : 1;
  x->rule_ms = x->settings->rule_ms ? x->settings->rule_ms : RULE_MS;
  x->rule_ms *= times < 1000 ? times : 1000;
  if (!s) s = wr_db_number(x->db, "SELECT max(rowid) FROM device_work", &work);
  bool known = wr_db_has_column(x->db, "wait_detail", "before_legacy") &&
               wr_db_has_table(x->db, "wait_time") && wr_db_has_table(x->db, "device_gap") &&
               wr_db_has_table(x->db, "device_idle");
  if (s || known || (x->with_model && !wr_db_has_table(x->db, "wait_detail"))) return s;
  s = wr_db_number(x->db, "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'wait_detail'",
                   &made);
  return s || made ? s : wr_wait_begin(&x->waits, x->calls, true, work <= WR_JUDGED_WORK);
}

static weir_status has_rows(wr_search *x, const char *table, const char *query, bool *out)
{
  int64_t any = 0;
  if (!wr_db_has_table(x->db, table)) return WEIR_OK;
  weir_status s = wr_db_number(x->db, query, &any);
  *out = any != 0;
  return s;
}

/* An option that was given is not advised. */
static weir_status find_untimed(wr_search *x)
{
  wr_device_times t;
  weir_status s = wr_device_times_load(&t, x->db);
  if (s) return s;
  if (wr_device_times_asked(&t) && !(x->untimed = wr_device_times_none(&t)))
    s = wr_search_no_memory(x);
  wr_device_times_free(&t);
  return s;
}

enum { APIS = 1 << 16 };

/* Calls of the engine's have functions of its own, which no rule names. */
static weir_status find_engine(wr_search *x)
{
  sqlite3_stmt *q = NULL;
  bool *seen = calloc(APIS, sizeof(*seen)), engine = false;
  weir_status s = seen
                      ? wr_db_prepare(x->db, "SELECT layer = 'weir' FROM main.api WHERE id = ?", &q)
                      : wr_search_no_memory(x);
  for (size_t i = 0; seen && !s && !engine && i < x->calls->count; i++) {
    const int64_t api = x->calls->templates[i].api & (APIS - 1);
    if (seen[api]) continue;
    seen[api] = true;
    sqlite3_bind_int64(q, 1, api);
    int code = sqlite3_step(q);
    engine = code == SQLITE_ROW && sqlite3_column_int(q, 0);
    if (code != SQLITE_ROW && code != SQLITE_DONE) s = wr_db_fail(x->db, "reading");
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  free(seen);
  x->only_cuda = x->finders.weirs_known = !engine;
  return s;
}

/* What was recorded by options of weir run. */
static weir_status find_options(wr_search *x)
{
  weir_status s = has_rows(x, "copy_hash",
                           "SELECT EXISTS(SELECT 1 FROM copy_hash) OR NOT EXISTS(SELECT 1 FROM"
                           " template WHERE kind = 3 AND copy IN (1, 2) AND status = 0)",
                           &x->hashed);
  if (s) return s;
  s = has_rows(x, "device_work", "SELECT EXISTS(SELECT 1 FROM device_work WHERE kind <> 5)",
               &x->timed);
  if (!s && !x->timed) s = find_untimed(x);
  if (!s) s = wr_trace_is_partial(x->db, &x->partial);
  if (!s) s = find_engine(x);
  if (s || !wr_db_has_table(x->db, "range_row")) return s;
  return has_rows(x, "event_range", "SELECT EXISTS(SELECT 1 FROM event_range)", &x->ranges);
}

/* What other work of the machine did to the run. */
static weir_status find_load(wr_search *x)
{
  int64_t starved = 0, preempted = 0;
  if (!wr_db_has_column(x->db, "process", "starved_ns")) return WEIR_OK; /* of an older Weir */
  weir_status s = wr_db_number(
      x->db, "SELECT CAST(min(total(starved_ns), 9e18) AS INTEGER) FROM process", &starved);
  if (!s)
    s = wr_db_number(x->db, "SELECT CAST(min(total(preempted), 9e18) AS INTEGER) FROM process",
                     &preempted);
  x->f->starved_ns = starved > 0 ? (uint64_t)starved : 0;
  x->f->preempted = preempted > 0 ? (uint64_t)preempted : 0;
  return s;
}

/* What is not in the trace, or cannot be, is as rules assume. */
static weir_status find_clock(wr_search *x)
{
  int64_t ns = 0;
  weir_status s = wr_db_number(x->db, "SELECT value FROM meta WHERE key = 'clock_ns'", &ns);
  x->clock_more = ns > 0 && ns < MOST_CLOCK_NS ? ns - WR_CLOCK_NS : 0;
  return s;
}

/* Of a window of a run the time is the window's. It is all of the run where nothing came before it
 * and each process has ended in it. */
static weir_status find_window(wr_search *x)
{
  int64_t length = 0, part = 0;
  weir_status s = wr_db_number(
      x->db,
      "SELECT max((SELECT value FROM meta WHERE key = 'window_end_ns') - value, 1) FROM meta"
      " WHERE key = 'window_start_ns'",
      &length);
  if (s || length <= 0) return s;
  s = wr_db_number(
      x->db,
      wr_db_has_table(x->db, WR_BEFORE_WINDOW)
          ? "SELECT EXISTS(SELECT 1 FROM before_window) OR EXISTS(SELECT 1 FROM process"
            " WHERE ifnull(end_reason, 'unknown') = 'unknown')"
          : "SELECT 0",
      &part);
  x->part = part != 0;
  if (part && (uint64_t)length < x->f->duration_ns) x->f->duration_ns = (uint64_t)length;
  return s;
}

static weir_status find_limits(wr_search *x)
{
  int64_t n = 0;
  weir_status s = wr_db_number(x->db, "SELECT value FROM meta WHERE key = 'duration_ns'", &n);
  x->f->duration_ns = n > 0 ? (uint64_t)n : 1;
  if (!s) s = find_window(x);
  if (!s) s = find_load(x);
  if (!s) s = find_clock(x);
  if (!s)
    s = wr_db_number(x->db,
                     "SELECT max(peak) FROM memory WHERE device IS NULL AND mem IS NULL"
                     " AND NOT registered",
                     &n);
  x->peak_bytes = n > 0 ? (uint64_t)n : 0;
  if (!s)
    s = wr_db_number(x->db, "SELECT value FROM meta WHERE key = 'start_realtime_ns'", &x->began);
  return s ? s : wr_sources_may_be_quoted(x->db, x->settings->quoting, &x->quoted);
}

static weir_status show_calls(void *context, const wr_event events[], size_t more)
{
  (void)events;
  wr_search *x = context;
  const wr_findings_settings *o = x->settings;
  uint64_t before = x->taken / STEP;
  x->taken += more;
  if (x->taken / STEP == before) return WEIR_OK;
  if (o->stop && *o->stop) return weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path);
  uint64_t all = x->events > 0 ? (uint64_t)x->events : 0;
  if (o->progress) o->progress(o->progress_context, "reading calls", x->taken, all);
  return WEIR_OK;
}

static weir_status take_events(void *context, const wr_event events[], size_t count)
{
  wr_search *x = context;
  wr_big_blocks_take(&x->big, events, count);
  if (!x->timed && wr_copy_times_take(&x->copy_times, events, count)) return wr_search_no_memory(x);
  for (size_t i = 0; i < count; i++)
    wr_starts_add(&x->claims.starts, events[i].id, events[i].start);
  weir_status s = wr_order_take(&x->order, events, count);
  if (!s) s = wr_launch_take(&x->launches, events, count);
  return s ? s : wr_facts_take(x->pass, events, count);
}

static weir_status begin_facts(wr_search *x)
{
  wr_facts_settings settings = {.events = x->calls, .timed = x->timed};
  weir_status s = wr_claims_open(&x->claims, x->events);
  if (s) return s;
  return wr_facts_begin(&x->pass, &x->facts, x->db, &settings);
}

static weir_status end_facts(void *context)
{
  wr_search *x = context;
  weir_status s = wr_order_end(&x->order, &x->facts.tables);
  if (!s) s = wr_launch_end(&x->launches);
  if (!s) s = wr_facts_end(x->pass);
  wr_launch_close(&x->launches);
  wr_order_close(&x->order);
  wr_big_blocks_end(&x->big);
  wr_facts_close(x->pass);
  if (!s && x->waits) s = wr_wait_end(x->waits);
  wr_wait_close(x->waits);
  x->pass = NULL, x->waits = NULL;
  x->place_at = calloc(x->facts.count + 1, sizeof(*x->place_at));
  if (s) return s;
  return x->place_at ? wr_search_find_families(x) : wr_search_no_memory(x);
}

size_t wr_findings_listen(wr_findings_pass *x, wr_listener out[])
{
  size_t count = 0;
  out[count++] = (wr_listener){.take_some = show_calls, .context = x};
  if (x->waits)
    out[count++] = (wr_listener){
        .take_some = wr_wait_take_some, .context = x->waits, .in_time = true, .apart = true};
  out[count++] = (wr_listener){
      .take_some = take_events, .end = end_facts, .context = x, .in_time = true, .apart = true};
  return count;
}

/* Those that a rule is about which has them judged in C. */
static weir_status find_big_blocks(wr_search *x)
{
  static const struct {
    const char *judge;
    wr_big_limit (*limit)(wr_case *c);
  } about[WR_BIG_LISTS] = {{"idle-object", wr_idle_object_limit},
                           {"redundant-object", wr_redundant_object_limit}};
  wr_big_limit limits[WR_BIG_LISTS] = {0};
  bool any = false;
  for (size_t i = 0; i < x->f->rules.count; i++) {
    wr_case c = {.rule = &x->f->rules.rule[i]};
    for (size_t k = 0; k < WR_BIG_LISTS; k++)
      if (c.rule->judge && !strcmp(c.rule->judge, about[k].judge))
        limits[k] = about[k].limit(&c), any = true;
  }
  int64_t duration = (int64_t)x->f->duration_ns;
  return any ? wr_big_blocks_open(&x->big, x->calls, duration, limits) : WEIR_OK;
}

/* What rules may read besides the trace. Views are made for a user's rules: Weir's own go by
 * templates. */
static weir_status make_views(wr_search *x)
{
  if (!x->settings->rules) return wr_schema_stand_ins(x->db);
  weir_status s = wr_schema_kind_views(x->db);
  return s ? s : wr_schema_streams_view(x->db);
}

static weir_status prepare_search(wr_search *x)
{
  weir_status s = make_views(x);
  if (!s) s = find_waits(x);
  if (!s) s = find_options(x);
  if (!s) s = find_limits(x);
  if (!s) s = find_big_blocks(x);
  if (!s) s = wr_order_open(&x->order, x->calls);
  if (!s) s = wr_launch_open(&x->launches, x->calls, &x->facts.tables);
  return s ? s : begin_facts(x);
}

static weir_status prepare_rules(wr_search *x)
{
  weir_status s = wr_symbols_open(&x->symbols, x->db);
  if (!s) s = wr_kernel_names_open(&x->kernels, x->db);
  return s ? s
           : wr_db_prepare(x->db,
                           x->ranges ? "SELECT e.template,"
                                       " (SELECT r.name FROM event_range n CROSS JOIN range_row r"
                                       " ON r.id = n.range WHERE n.event = e.id)"
                                       " FROM event_row e WHERE e.id = ?"
                                     : "SELECT template, NULL FROM event_row WHERE id = ?",
                           &x->about);
}

void wr_findings_close(wr_findings_pass *x)
{
  if (!x) return;
  sqlite3_finalize(x->about);
  wr_symbols_close(x->symbols);
  for (size_t i = 0; i < x->place_count; i++)
    wr_frame_name_free(&x->places[i].name);
  free(x->places);
  free(x->groups);
  free(x->tallies);
  free(x->callers);
  free(x->samples);
  wr_kernel_names_close(&x->kernels);
  hash_map_free(&x->by_stack);
  hash_map_free(&x->called_from);
  hash_map_free(&x->by_place);
  wr_facts_close(x->pass);
  wr_wait_close(x->waits);
  wr_guard_free(&x->guard);
  wr_claims_close(&x->claims);
  wr_finders_close(&x->finders);
  wr_big_blocks_close(&x->big);
  wr_order_close(&x->order);
  wr_launch_close(&x->launches);
  wr_facts_free(&x->facts);
  wr_copy_times_close(&x->copy_times);
  free(x->later.piece);
  free(x->place_at);
  free(x->family_at);
  free(x->cells);
  free(x->used);
  free(x->families);
  free(x->has_calls);
  free(x->untimed);
  free(x);
}

/* How much the run gains by it, as a part of its time, or of the most memory; where that is nothing, what it costs. */
static double weight(const wr_findings *all, const wr_finding *f)
{
  double time = ((double)f->saving_ns + (double)f->later_ns + (double)f->cost_ns * 1e-6) /
                (double)all->duration_ns;
  return f->rule->holds ? time + (double)f->saving_bytes * 1e-12 : time;
}

/* What is not known to gain anything comes last. */
static bool saves_something(const wr_finding *f)
{
  return f->saving_ns || f->rule->holds;
}

static int by_site(const wr_finding *a, const wr_finding *b)
{
  if (!a->sites || !b->sites) return !a->sites - !b->sites;
  const wr_finding_site *x = &a->site[0], *y = &b->site[0];
  return wr_search_by_name(x->file, x->function, x->line, y->file, y->function, y->line);
}

static int by_weight(const void *left, const void *right, void *all)
{
  const wr_finding *a = left, *b = right;
  bool sure = a->certainty != WR_POSSIBLE;
  if (sure != (b->certainty != WR_POSSIBLE)) return sure ? -1 : 1;
  if (saves_something(a) != saves_something(b)) return saves_something(a) ? -1 : 1;
  double x = weight(all, a), y = weight(all, b);
  if (x < y || x > y) return x < y ? 1 : -1;
  if (a->rule != b->rule) return a->rule < b->rule ? -1 : 1;
  if (a->saving_bytes != b->saving_bytes) return a->saving_bytes < b->saving_bytes ? 1 : -1;
  if (a->certainty != b->certainty) return a->certainty < b->certainty ? -1 : 1;
  return by_site(a, b);
}

/* When an event began that the walk has not passed by. */
static weir_status find_start(void *context, int64_t event, int64_t *start)
{
  wr_search *x = context;
  wr_case c = {.facts = &x->facts, .finders = &x->finders, .db = x->db};
  const wr_call_row *call = wr_case_call(&c, event);
  *start = !call ? WR_NO_TIME : call->start > 0 ? call->start : 0;
  return c.status;
}

/* What the gains are of each finding, and of all. */
static void take_gains(wr_search *x, const wr_gains *gains)
{
  for (size_t i = 0; i < x->f->count; i++) {
    wr_finding *f = &x->f->finding[i];
    const wr_gain *g = &gains->gain[i];
    f->added_ns = g->added;
    f->spread = wr_gain_interval(g, &f->low_ns, &f->high_ns);
    x->f->saving_ns = wr_capped_sum(x->f->saving_ns, g->added);
    if (f->certainty != WR_POSSIBLE)
      x->f->sure_saving_ns = wr_capped_sum(x->f->sure_saving_ns, g->added);
  }
}

/* Findings are in order. */
static weir_status add_up(wr_search *x)
{
  wr_gains gains;
  size_t *rank = calloc(x->f->count + 1, sizeof(*rank));
  wr_overlaps overlaps;
  bool open = wr_gains_open(&gains, x->f->count);
  open &= wr_overlaps_open(&overlaps, x->f);
  weir_status s = open && rank ? WEIR_OK : wr_search_no_memory(x);
  for (size_t i = 0; rank && !s && i < x->f->count; i++) {
    rank[x->f->finding[i].made] = i;
    gains.gain[i].queued = x->timed && x->f->finding[i].rule->queued;
  }
  wr_claims_end end = {.rank = rank,
                       .gains = &gains,
                       .overlaps = &overlaps,
                       .duration = x->f->duration_ns,
                       .find_start = find_start,
                       .context = x};
  if (!s) s = wr_claims_add_up(&x->claims, &end);
  if (!s) wr_gains_end(&gains);
  if (!s) take_gains(x, &gains);
  if (!s) s = wr_search_add_later_up(x, rank);
  if (!s && !wr_overlaps_end(&overlaps, x->f)) s = wr_search_no_memory(x);
  x->f->moved_bytes = end.moved_bytes;
  wr_gains_close(&gains);
  wr_overlaps_close(&overlaps);
  free(rank);
  return s;
}

static int small_by_cost(const void *left, const void *right)
{
  const wr_small_finding *a = left, *b = right;
  uint64_t of_a = (a->saving_ns ? a->saving_ns : a->cost_ns) + a->later_ns,
           of_b = (b->saving_ns ? b->saving_ns : b->cost_ns) + b->later_ns;
  if (of_a != of_b) return of_a < of_b ? 1 : -1;
  return strcmp(a->rule->id, b->rule->id);
}

static weir_status go_on_with_copies(void *context)
{
  wr_search *x = context;
  return x->settings->stop && *x->settings->stop
             ? weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path)
             : WEIR_OK;
}

/* What devices take for copies, once it is known which wait covers which. */
static weir_status end_copy_times(wr_search *x)
{
  wr_case c = {.facts = &x->facts,
               .finders = &x->finders,
               .db = x->db,
               .go_on = go_on_with_copies,
               .context = x};
  return wr_copy_times_end(&x->copy_times, &c);
}

weir_status wr_findings_end(wr_findings_pass *x)
{
  const wr_findings_settings *o = x->settings;
  weir_status s = prepare_rules(x);
  if (!s) s = end_copy_times(x);
  for (; !s && x->running < x->f->rules.count; x->running++)
    s = wr_search_run_rule(x, &x->f->rules.rule[x->running]);
  if (!s && x->f->count)
    qsort_r(x->f->finding, x->f->count, sizeof(*x->f->finding), by_weight, x->f);
  if (x->f->small_count) qsort(x->f->small, x->f->small_count, sizeof(*x->f->small), small_by_cost);
  if (!s) s = add_up(x);
  if (o->progress) o->progress(o->progress_context, NULL, 0, 0);
  return s;
}

/* A rule may name any judge: a user's file as well. */
static weir_status find_judges(const wr_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++) {
    const wr_rule *r = &rules->rule[i];
    if (r->judge && !wr_judge_of(r->judge))
      return weir_fail(WEIR_EINVAL, "%s: there is no judge '%s'", r->file ? r->file : r->id,
                       r->judge);
  }
  return WEIR_OK;
}

/* *out: NULL where nothing is judged. */
static weir_status begin_search(wr_search **out, wr_findings *f, const wr_events *events,
                                const wr_findings_settings *settings, bool with_model)
{
  int64_t finished = 0;
  const wr_db *db = events->db;
  bool least = settings->min.ns || settings->min.bytes || settings->min.share != 0;
  *out = NULL;
  *f = (wr_findings){.min = least ? settings->min : WR_MIN_COST};
  weir_status s = wr_rules_load(&f->rules, settings->rules);
  if (!s) s = find_judges(&f->rules);
  if (!s) s = wr_db_number(db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!s && db->schema < 2)
    f->unavailable = "the trace is of an older Weir";
  else if (!s && finished != 1)
    f->unavailable = "the trace is not complete";
  if (s || f->unavailable) return s;
  wr_search *x = *out = calloc(1, sizeof(*x));
  if (!x) return wr_db_out_of_memory(db);
  *x = (wr_search){
      .f = f, .db = db, .settings = settings, .calls = events, .with_model = with_model};
  x->guard = (wr_guard){.facts = &x->facts.tables,
                        .stop = settings->stop,
                        .tick = wr_search_show_progress,
                        .tick_context = x};
  return prepare_search(x);
}

weir_status wr_findings_begin(wr_findings_pass **out, wr_findings *f, const wr_events *events,
                              const wr_findings_settings *settings)
{
  return begin_search(out, f, events, settings, true);
}

weir_status wr_findings_load(wr_findings *f, const wr_db *db, const wr_findings_settings *settings)
{
  wr_events events;
  wr_search *x = NULL;
  *f = (wr_findings){0};
  weir_status s = wr_events_open(&events, db);
  if (!s) s = begin_search(&x, f, &events, settings, false);
  if (!s && x) {
    wr_listener listeners[WR_FINDINGS_LISTENERS];
    s = wr_events_listen(&events, listeners, wr_findings_listen(x, listeners));
    if (!s) s = wr_findings_end(x);
  }
  wr_findings_close(x);
  wr_events_close(&events);
  if (s) wr_findings_free(f);
  return s;
}

static void finding_free(wr_finding *f)
{
  for (size_t i = 0; i < f->sites; i++) {
    free(f->site[i].function);
    free(f->site[i].file);
    free(f->site[i].source);
    for (size_t c = 0; c < f->site[i].callers; c++) {
      free(f->site[i].caller[c].function);
      free(f->site[i].caller[c].file);
    }
  }
  for (size_t i = 0; i < f->kernels; i++)
    free(f->kernel[i]);
  free(f->range);
  free(f->driver_fix);
}

void wr_findings_free(wr_findings *f)
{
  for (size_t i = 0; i < f->count; i++)
    finding_free(&f->finding[i]);
  for (size_t i = 0; i < f->unjudged_count; i++)
    free(f->unjudged[i].why);
  for (size_t i = 0; i < f->removed_count; i++)
    finding_free(&f->removed[i]);
  free(f->finding);
  free(f->removed);
  free(f->unjudged);
  for (size_t i = 0; i < f->small_count; i++) {
    free(f->small[i].function);
    free(f->small[i].file);
  }
  free(f->small);
  wr_rules_free(&f->rules);
  *f = (wr_findings){0};
}
