/* compare.c: a victim's own tally held against the report of its trace. */
#include "tests/e2e/compare.h"

#include <check.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load_json_or_fail(const char *path)
{
  json_error_t why;
  json_t *j = json_load_file(path, 0, &why);
  ck_assert_msg(j != NULL, "%s: line %d: %s", path, why.line, why.text);
  return j;
}

typedef struct differences {
  char text[8192];
  size_t used;
} differences;

static void differ(differences *d, const char *what, const char *field, json_int_t want,
                   json_int_t got)
{
  if (want == got || d->used > sizeof d->text - 256) return;
  int n = snprintf(d->text + d->used, sizeof d->text - d->used,
                   "\n  %s%s: the program counted %lld, the trace has %lld", what, field,
                   (long long)want, (long long)got);
  if (n > 0) d->used += (size_t)n;
}

static json_t *find_api(json_t *apis, const char *name)
{
  size_t i;
  json_t *row;
  json_array_foreach(apis, i, row)
  {
    const char *n = json_string_value(json_object_get(row, "function"));
    if (n && strcmp(n, name) == 0) return row;
  }
  return NULL;
}

static json_int_t number(const json_t *row, const char *field)
{
  return json_integer_value(json_object_get(row, field));
}

static void compare_names(differences *d, json_t *tallied, json_t *reported)
{
  size_t i;
  json_t *row;
  json_array_foreach(tallied, i, row)
  {
    const char *name = json_string_value(json_object_get(row, "name"));
    const json_t *got = find_api(reported, name);
    differ(d, name, " calls", number(row, "calls"), number(got, "calls"));
    differ(d, name, " errors", number(row, "errors"), number(got, "errors"));
  }
}

void compare_tally(const char *tally_path, const char *report_path, bool names)
{
  json_t *tally = load_json_or_fail(tally_path), *report = load_json_or_fail(report_path);
  json_t *want = json_object_get(tally, "totals"), *got = json_object_get(report, "totals");
  differences d = {"", 0};
  const char *key;
  json_t *value;
  json_object_foreach(want, key, value)
  {
    ck_assert_msg(json_is_integer(json_object_get(got, key)), "the report has no total %s", key);
    differ(&d, "", key, json_integer_value(value), number(got, key));
  }
  differ(&d, "", "dropped", 0, number(got, "dropped"));
  if (names)
    compare_names(&d, json_object_get(tally, "apis"), json_object_get(report, "functions"));
  ck_assert_msg(d.used == 0, "%s", d.text);
  json_decref(tally);
  json_decref(report);
}

/* ---- what the device did --------------------------------------------------------------------- */

/* CUPTI tells copies of arrays apart, the tally does not. */
static const char done_by_device[] =
    "SELECT CASE kind WHEN 2 THEN 'memset' ELSE CASE copy WHEN 1 THEN 'h2d' WHEN 3 THEN 'h2d'"
    " WHEN 2 THEN 'd2h' WHEN 4 THEN 'd2h' WHEN 9 THEN 'h2h' WHEN 10 THEN 'p2p' ELSE 'd2d' END END"
    " || ' ' || bytes AS move FROM device_work WHERE kind IN (1, 2) ORDER BY move";

/* Each answers with a number that must be 0. */
static const struct {
  const char *what, *query;
} device_rules[] = {
    {"without times, or ending before it begins, or begun before it was queued",
     "SELECT count(*) FROM device_work WHERE kind <> 5 AND (start IS NULL OR \"end\" IS NULL OR"
     " \"end\" < start OR queued > start)"},
    {"of no call, or of no stream",
     "SELECT count(*) FROM device_work WHERE kind <> 5 AND (event IS NULL OR stream IS NULL)"},
    {"begun before what was ahead of it in its stream ended",
     "SELECT count(*) FROM (SELECT start, lag(\"end\") OVER (PARTITION BY process, context, stream"
     " ORDER BY start, \"end\") AS before FROM device_work WHERE kind <> 5) WHERE start < before"},
    {"begun before what its thread had put into the stream earlier",
     "SELECT count(*) FROM (SELECT w.start, lag(w.start) OVER (PARTITION BY e.thread, e.context,"
     " e.stream ORDER BY e.id, w.start) AS before FROM device_work w JOIN event e ON e.id = "
     "w.event)"
     " WHERE start < before"},
    {"calls whose bytes are not those of their device work",
     "WITH done AS (SELECT event, count(*) AS n, sum(bytes) AS bytes FROM device_work"
     " WHERE kind IN (1, 2) GROUP BY event), asked AS (SELECT ifnull(call, id) AS event,"
     " count(*) AS n, sum(bytes) AS bytes FROM (SELECT id, call, bytes, status, captured FROM copy"
     " UNION ALL SELECT id, NULL, bytes, status, captured FROM memset)"
     " WHERE status = 0 AND NOT captured AND bytes > 0 GROUP BY 1)"
     " SELECT count(*) FROM asked LEFT JOIN done USING (event)"
     " WHERE done.n IS NOT asked.n OR done.bytes IS NOT asked.bytes"},
    {"unobserved, lost, untimed or incomplete",
     "SELECT count(*) FROM device_fact WHERE fact NOT IN ('observed', 'ended')"},
};

static sqlite3_int64 ask_number(sqlite3 *db, const char *query)
{
  sqlite3_stmt *q = NULL;
  ck_assert_msg(sqlite3_prepare_v2(db, query, -1, &q, NULL) == SQLITE_OK, "%s: %s", query,
                sqlite3_errmsg(db));
  ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
  sqlite3_int64 n = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return n;
}

static int compare_strings(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **sorted_strings(json_t *array)
{
  size_t i;
  json_t *x;
  const char **text = calloc(json_array_size(array) + 1, sizeof *text);
  ck_assert_ptr_nonnull(text);
  json_array_foreach(array, i, x) text[i] = json_string_value(x);
  qsort(text, json_array_size(array), sizeof *text, compare_strings);
  return text;
}

static void compare_moves(sqlite3 *db, json_t *moves)
{
  sqlite3_stmt *q = NULL;
  const char **want = sorted_strings(moves);
  ck_assert_int_eq(sqlite3_prepare_v2(db, done_by_device, -1, &q, NULL), SQLITE_OK);
  for (size_t i = 0; i <= json_array_size(moves); i++) {
    const char *got =
        sqlite3_step(q) == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    ck_assert_msg(got ? want[i] && strcmp(got, want[i]) == 0 : !want[i],
                  "of the device's work, sorted, number %zu is %s, the program's is %s", i,
                  got ? got : "missing", want[i] ? want[i] : "missing");
  }
  sqlite3_finalize(q);
  free((void *)want);
}

void compare_device_work(const char *tally_path, const char *trace, bool kernels)
{
  sqlite3 *db = NULL;
  json_t *tally = load_json_or_fail(tally_path);
  ck_assert_int_eq(sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  for (size_t i = 0; i < sizeof device_rules / sizeof *device_rules; i++) {
    sqlite3_int64 n = ask_number(db, device_rules[i].query);
    ck_assert_msg(n == 0, "device work %s: %lld", device_rules[i].what, (long long)n);
  }
  compare_moves(db, json_object_get(tally, "moves"));
  ck_assert_int_eq(ask_number(db, "SELECT count(*) FROM device_work WHERE kind = 3"),
                   kernels ? number(json_object_get(tally, "totals"), "launches") : 0);
  sqlite3_close(db);
  json_decref(tally);
}

static char seen[1024][64];
static unsigned seen_count;

bool remembered_name(const char *name)
{
  for (unsigned i = 0; i < seen_count; i++)
    if (strcmp(seen[i], name) == 0) return true;
  return false;
}

void remember_names(const char *tally_path)
{
  json_t *tally = load_json_or_fail(tally_path);
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(tally, "apis"), i, row)
  {
    const char *name = json_string_value(json_object_get(row, "name"));
    if (remembered_name(name) || seen_count == sizeof seen / sizeof *seen) continue;
    strncpy(seen[seen_count++], name, sizeof *seen - 1);
  }
  json_decref(tally);
}
