/* run_rule.c: one rule: whether the trace has what it needs, then its rows, by SQL or by a judge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/findings/search.h"

enum { ROWS = 1 << 26 /* of one rule, at most */ };

/* What a row may have; README.md says what they mean. */
enum column {
  EVENT,
  COST,
  SAVING,
  BYTES,
  COUNT,
  CERTAINTY,
  DEVICE,
  REMOVED,
  RELATED,
  TEMPLATE,
  RELATED_SAVING,
  COLUMNS
};
static const char *const column_names[COLUMNS] = {
    "event",   "cost_ns",  "saving_ns",        "bytes", "count", "certainty", "device", "removed",
    "related", "template", "related_saving_ns"};

static weir_status not_judged(wr_search *x, const wr_rule *rule, const char *why)
{
  wr_findings *f = x->f;
  if (!wr_grow(&f->unjudged, &f->unjudged_capacity, f->unjudged_count + 1, sizeof(*f->unjudged)))
    return wr_search_no_memory(x);
  char *text = wr_text(why, strlen(why), true);
  if (!text) return wr_search_no_memory(x);
  f->unjudged[f->unjudged_count++] = (wr_unjudged_rule){rule, text};
  return WEIR_OK;
}

static weir_status cannot_judge(wr_search *x, const wr_rule *rule, const char *why)
{
  return rule->file ? weir_fail(WEIR_EINVAL, "%s: %s", rule->file, why) : not_judged(x, rule, why);
}

/* What SQLite reports of a rule. */
static weir_status rule_failed(wr_search *x, const wr_rule *rule)
{
  int code = sqlite3_errcode(x->db->handle) & 0xff;
  char why[160];
  const char *limit = wr_guard_limit(&x->guard, code);
  bool late = wr_guard_late(&x->guard);
  if (code == SQLITE_NOMEM && !limit) return wr_search_no_memory(x);
  if (x->settings->stop && *x->settings->stop)
    return weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path);
  if (late)
    (void)snprintf(why, sizeof(why), "it takes more than %g s of a processor",
                   (double)x->rule_ms / 1000);
  else if (x->guard.refused[0])
    (void)snprintf(why, sizeof(why), "a rule may not %s", x->guard.refused);
  else if (limit)
    (void)snprintf(why, sizeof(why), "%s", limit);
  else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_IOERR)
    return wr_db_fail(x->db, "reading");
  else
    (void)snprintf(why, sizeof(why), "%s", sqlite3_errmsg(x->db->handle));
  x->f->late += late;
  return cannot_judge(x, rule, why);
}

/* *found: SQL of the rule, ready; NULL: it cannot judge this trace, which has been noted. */
static weir_status prepare_rule(wr_search *x, const wr_rule *rule, sqlite3_stmt **found)
{
  const char *rest = NULL;
  sqlite3_stmt *q = NULL;
  *found = NULL;
  if (sqlite3_prepare_v2(x->db->handle, rule->sql, -1, &q, &rest)) return rule_failed(x, rule);
  if (!q || rest[strspn(rest, " \n\r\t;")] || !sqlite3_stmt_readonly(q)) {
    sqlite3_finalize(q);
    return cannot_judge(x, rule, "it is not one SELECT");
  }
  for (int i = 1; i <= sqlite3_bind_parameter_count(q); i++) {
    const char *name = sqlite3_bind_parameter_name(q, i);
    bool known = name && !strcmp(name, ":duration_ns");
    if (known) sqlite3_bind_int64(q, i, (sqlite3_int64)x->f->duration_ns);
    if (name && !strcmp(name, ":clock_more")) sqlite3_bind_int64(q, i, x->clock_more), known = true;
    for (int t = 0; name && t < rule->thresholds; t++) {
      if (strcmp(name, rule->threshold[t].name) != 0) continue;
      sqlite3_bind_int64(q, i, rule->threshold[t].value);
      known = true;
    }
    if (known) continue;
    weir_status s = cannot_judge(x, rule, "its SQL has a parameter that is no threshold");
    sqlite3_finalize(q);
    return s;
  }
  *found = q;
  return WEIR_OK;
}

static bool find_columns(sqlite3_stmt *q, int columns[COLUMNS], char why[96])
{
  for (int c = 0; c < COLUMNS; c++)
    columns[c] = -1;
  for (int i = 0, c; i < sqlite3_column_count(q); i++) {
    const char *name = sqlite3_column_name(q, i);
    for (c = 0; c < COLUMNS && name && strcmp(name, column_names[c]) != 0; c++)
      ;
    (void)snprintf(why, 96, "column %.48s is none that a rule has", name ? name : "?");
    if (c == COLUMNS || !name) return false;
    columns[c] = i;
  }
  (void)snprintf(why, 96, "its SELECT has no column event");
  return columns[EVENT] >= 0;
}

static bool ended(wr_search *x)
{
  return wr_guard_late(&x->guard) || (x->settings->stop && *x->settings->stop);
}

/* Of a rule's number, what can be: no rule and no trace makes a sum run over. */
static uint64_t positive(sqlite3_stmt *q, int column, uint64_t otherwise)
{
  if (column < 0 || sqlite3_column_type(q, column) == SQLITE_NULL) return otherwise;
  int64_t n = sqlite3_column_int64(q, column);
  return n > 0 ? (uint64_t)n : 0;
}

static weir_status read_row(wr_search *x, const wr_rule *rule, sqlite3_stmt *q,
                            const int columns[COLUMNS], wr_search_row *r)
{
  *r = (wr_search_row){.event = sqlite3_column_int64(q, columns[EVENT]),
                       .cost = positive(q, columns[COST], 0),
                       .bytes = positive(q, columns[BYTES], 0),
                       .count = positive(q, columns[COUNT], 1),
                       .certainty = rule->certainty,
                       .device = WR_OF_NO_DEVICE,
                       .removed = positive(q, columns[REMOVED], 0) != 0,
                       .related = (int64_t)positive(q, columns[RELATED], 0)};
  if (r->cost > x->f->duration_ns) r->cost = x->f->duration_ns;
  r->saving = positive(q, columns[SAVING], r->cost);
  if (r->saving > x->f->duration_ns) r->saving = x->f->duration_ns;
  r->related_saving = positive(q, columns[RELATED_SAVING], 0);
  if (columns[CERTAINTY] >= 0 && sqlite3_column_type(q, columns[CERTAINTY]) != SQLITE_NULL &&
      !wr_certainty_read((const char *)sqlite3_column_text(q, columns[CERTAINTY]), &r->certainty))
    r->certainty = WR_POSSIBLE;
  if (columns[TEMPLATE] >= 0)
    r->common = wr_facts_common(&x->facts, sqlite3_column_int64(q, columns[TEMPLATE]));
  weir_status s = wr_search_look_up(x, r->event, &r->common, &r->place, &r->device, &r->range_name);
  if (columns[DEVICE] >= 0)
    r->device = sqlite3_column_type(q, columns[DEVICE]) == SQLITE_NULL
                    ? WR_OF_NO_DEVICE
                    : sqlite3_column_int(q, columns[DEVICE]) & 255;
  return s;
}

static weir_status take_rows(wr_search *x, const wr_rule *rule, sqlite3_stmt *q)
{
  int columns[COLUMNS], code = SQLITE_DONE;
  char why[96];
  wr_search_row r;
  weir_status s = WEIR_OK;
  if (!find_columns(q, columns, why)) return cannot_judge(x, rule, why);
  for (size_t rows = 0; !s && (code = sqlite3_step(q)) == SQLITE_ROW; rows++) {
    if (rows == ROWS) {
      return cannot_judge(x, rule, "it finds more than 67,108,864 operations");
    }
    s = read_row(x, rule, q, columns, &r);
    if (!s) s = wr_search_add_row(x, rule, &r);
  }
  if (s && !ended(x)) return s; /* it can be ended while a row is looked at, too */
  return !s && code == SQLITE_DONE ? wr_search_finish_groups(x, rule) : rule_failed(x, rule);
}

void wr_search_show_progress(void *context)
{
  wr_search *x = context;
  const wr_findings_settings *o = x->settings;
  const wr_rules *rules = &x->f->rules;
  if (o->progress)
    o->progress(o->progress_context, rules->rule[x->running].id, x->running, rules->count);
}

/* ---- a rule by a function in C --------------------------------------------------------------- */

static weir_status take_found(void *context, const wr_found *found)
{
  wr_search *x = context;
  return wr_search_add_found(x, &x->f->rules.rule[x->running], found);
}

static weir_status go_on(void *context)
{
  wr_search *x = context;
  wr_search_show_progress(x);
  return x->settings->stop && *x->settings->stop
             ? weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path)
             : WEIR_OK;
}

static weir_status run_judge(wr_search *x, const wr_rule *rule, bool *declined)
{
  wr_case c = {.rule = rule,
               .facts = &x->facts,
               .finders = &x->finders,
               .big = &x->big,
               .duration = (int64_t)x->f->duration_ns,
               .clock_more = x->clock_more,
               .db = x->db,
               .take = take_found,
               .go_on = go_on,
               .context = x};
  weir_status s = wr_case_run(&c, wr_judge_of(rule->judge));
  *declined = c.declines;
  if (!c.lacks) return s || *declined ? s : wr_search_finish_groups(x, rule);
  char why[80];
  (void)snprintf(why, sizeof(why), "its judge needs a threshold %s", c.lacks);
  return cannot_judge(x, rule, why);
}

/* The table that a rule needs and the trace has not, or none of it; NULL: all are there. */
static const char *lacking(wr_search *x, const wr_rule *rule, char name[64])
{
  for (const char *at = rule->needs ? rule->needs : ""; *at;) {
    size_t n = strcspn(at, " ");
    (void)snprintf(name, 64, "%.*s", (int)(n < 63 ? n : 63), at);
    at += n + strspn(at + n, " ");
    bool has = wr_db_has_table(x->db, name) || !strcmp(name, WR_RULE_WHOLE_RUN);
    if (!has && !sqlite3_table_column_metadata(x->db->handle, "temp", name, NULL, NULL, NULL, NULL,
                                               NULL, NULL))
      has = true;
    has = has || wr_fact_is_table(&x->facts.tables, name);
    if (!has) return name;
  }
  return NULL;
}

/* Whether a fact, a table of the trace or a temporary one is there and has no row. */
static weir_status is_empty(wr_search *x, const char *name, bool *empty)
{
  int64_t any = 1;
  size_t rows = 0;
  if (wr_fact_rows(&x->facts.tables, name, &rows)) {
    *empty = !rows;
    return WEIR_OK;
  }
  bool temporary = !sqlite3_table_column_metadata(x->db->handle, "temp", name, NULL, NULL, NULL,
                                                  NULL, NULL, NULL);
  if (!temporary && !wr_db_has_table(x->db, name)) return WEIR_OK;
  char *sql =
      wr_format("SELECT EXISTS(SELECT 1 FROM %s.\"%s\")", temporary ? "temp" : "main", name);
  weir_status s = sql ? wr_db_number(x->db, sql, &any) : wr_search_no_memory(x);
  free(sql);
  *empty = !any;
  return s;
}

/* *any: false: a table without whose rows the rule finds nothing has none. */
static weir_status has_rule_rows(wr_search *x, const wr_rule *rule, bool *any)
{
  weir_status s = WEIR_OK;
  for (const char *at = rule->rows ? rule->rows : ""; !s && *any && *at;) {
    char name[64];
    bool empty = false;
    size_t n = strcspn(at, " ");
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), at);
    at += n + strspn(at + n, " ");
    s = is_empty(x, name, &empty);
    *any = !empty;
  }
  return s;
}

/* *any: false: no call of the trace can be what the rule finds. */
static weir_status has_calls(wr_search *x, const wr_rule *rule, bool *any)
{
  sqlite3_stmt *q = NULL;
  const char *rest = NULL;
  if (!rule->calls) return WEIR_OK;
  if (!x->has_calls) {
    x->has_calls = calloc(x->f->rules.count, sizeof(*x->has_calls));
    if (!x->has_calls) return wr_search_no_memory(x);
    wr_rule_calls_find(x->calls, &x->f->rules, x->has_calls);
  }
  const wr_rule_calls known = x->has_calls[rule - x->f->rules.rule];
  *any = known == WR_CALLS_SOME;
  if (known != WR_CALLS_UNKNOWN) return WEIR_OK;
  char *sql = wr_format("SELECT EXISTS (SELECT 1 FROM template t WHERE (%s))", rule->calls);
  if (!sql) return wr_search_no_memory(x);
  bool good = !sqlite3_prepare_v2(x->db->handle, sql, -1, &q, &rest) && q && !*rest;
  weir_status s = WEIR_OK;
  if (good && sqlite3_step(q) == SQLITE_ROW)
    *any = sqlite3_column_int(q, 0);
  else
    *any = false, s = rule_failed(x, rule);
  sqlite3_finalize(q);
  free(sql);
  return s;
}

/* The condition on calls; and the SELECT, if it is asked. */
static weir_status run_sql(wr_search *x, const wr_rule *rule, bool select, bool *any)
{
  sqlite3_stmt *q = NULL;
  weir_status s = wr_guard_raise(&x->guard, x->db);
  if (!s) wr_guard_time(&x->guard, x->rule_ms);
  if (!s) s = has_calls(x, rule, any);
  if (!s && *any && select) s = prepare_rule(x, rule, &q);
  if (!s && q) s = take_rows(x, rule, q);
  sqlite3_finalize(q);
  wr_guard_lower(&x->guard);
  return s;
}

weir_status wr_search_run_rule(wr_search *x, const wr_rule *rule)
{
  char name[64], why[128];
  if (x->partial && !rule->partial) return not_judged(x, rule, WR_NEEDS_ALL_CALLS);
  const char *table = lacking(x, rule, name);
  if (x->part && rule->needs && strstr(rule->needs, WR_RULE_WHOLE_RUN))
    return not_judged(x, rule, "it needs the whole run, and the trace is a window of it");
  if (!table && !x->hashed && rule->needs && strstr(rule->needs, "copy_hash"))
    return not_judged(x, rule, "no copy was hashed (weir run --hash)");
  if (!table && !x->timed && rule->needs && strstr(rule->needs, "device_"))
    return not_judged(x, rule,
                      x->untimed ? x->untimed : "no device times (weir run --device-times=all)");
  if (table) {
    (void)snprintf(why, sizeof(why), "the trace has no %s", table);
    return not_judged(x, rule, why);
  }
  bool any = true, declined = false;
  weir_status s = has_rule_rows(x, rule, &any);
  if (!s && any && (rule->calls || !rule->judge)) s = run_sql(x, rule, !rule->judge, &any);
  if (!s && any && rule->judge) s = run_judge(x, rule, &declined);
  if (!s && declined && rule->sql[strspn(rule->sql, " \n\r\t")]) s = run_sql(x, rule, true, &any);
  wr_search_forget_groups(x);
  return s;
}
