/* scope.c: see scope.h. */
#include "reports/tables/scope.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/base/units.h"

bool wr_scope_process(const wr_scope *s, int64_t process)
{
  return !s->by_process || hash_map_get(&s->processes, (uint64_t)process);
}

bool wr_scope_has(const wr_scope *s, int64_t process, int64_t start, int64_t range)
{
  if (!s->any) return true;
  if (start < s->from || start >= s->to || !wr_scope_process(s, process)) return false;
  return !s->by_range || (range && hash_map_get(&s->ranges, (uint64_t)range));
}

/* ---- processes ------------------------------------------------------------------------------- */

static weir_status find_processes(wr_scope *s, const wr_db *db, long pid)
{
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, "SELECT id FROM process WHERE pid = ?", &q);
  if (st) return st;
  sqlite3_bind_int64(q, 1, pid);
  int code = SQLITE_DONE;
  while (!st && (code = sqlite3_step(q)) == SQLITE_ROW)
    st = hash_map_put(&s->processes, (uint64_t)sqlite3_column_int64(q, 0), 1);
  if (!st && code != SQLITE_DONE) st = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  if (!st && !s->processes.count)
    st = weir_fail(WEIR_EINVAL, "%s has no process %ld", db->path, pid);
  return st;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

typedef struct range_search {
  wr_scope *scope;
  const wr_db *db;
  hash_map parents; /* of ranges of another text: row -> row of the one around it */
  bool started;     /* one that is started and ended, not pushed, has the text */
} range_search;

/* id, parent, kind, whether it has the text */
static weir_status take_range(void *context, sqlite3_stmt *q)
{
  range_search *x = context;
  uint64_t id = (uint64_t)sqlite3_column_int64(q, 0);
  bool pushed = sqlite3_column_int(q, 2) == 1, named = sqlite3_column_int(q, 3) != 0;
  if (named && !pushed) x->started = true;
  if (!pushed) return WEIR_OK;
  weir_status s = named ? hash_map_put(&x->scope->ranges, id, 1)
                        : hash_map_put(&x->parents, id, (uint64_t)sqlite3_column_int64(q, 1));
  return s ? wr_db_out_of_memory(x->db) : WEIR_OK;
}

/* Ranges that are nested in one that has the text are in the scope too. A damaged trace may have
 * rings of them: each is left once it was met. */
static weir_status add_nested(range_search *x)
{
  uint64_t id, *parent;
  for (size_t at = 0; hash_map_next(&x->parents, &at, &id, &parent);) {
    uint64_t up = id;
    for (int depth = 0; depth < 4096; depth++) {
      const uint64_t *above = hash_map_get(&x->parents, up);
      if (!above) break;
      up = *above;
      if (!hash_map_get(&x->scope->ranges, up)) continue;
      if (hash_map_put(&x->scope->ranges, id, 1)) return wr_db_out_of_memory(x->db);
      break;
    }
  }
  return WEIR_OK;
}

static weir_status find_ranges(wr_scope *s, const wr_db *db, const char *text)
{
  range_search x = {.scope = s, .db = db};
  sqlite3_stmt *q = NULL;
  if (!wr_db_has_table(db, "range_row") || !wr_db_has_table(db, "range_name") ||
      !wr_db_has_table(db, "event_range"))
    return weir_fail(WEIR_EINVAL, "%s has no ranges", db->path);
  weir_status st = wr_db_prepare(db,
                                 "SELECT r.id, r.parent, r.kind, n.text IS ?1 FROM range_row r"
                                 " LEFT JOIN range_name n ON n.id = r.name",
                                 &q);
  if (st) return st;
  sqlite3_bind_text(q, 1, text, -1, SQLITE_STATIC);
  int code = SQLITE_DONE;
  while (!st && (code = sqlite3_step(q)) == SQLITE_ROW)
    st = take_range(&x, q);
  if (!st && code != SQLITE_DONE) st = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  bool any = s->ranges.count != 0;
  if (!st) st = add_nested(&x);
  hash_map_free(&x.parents);
  char *name = st || any ? NULL : wr_text(text, strlen(text), true);
  if (name)
    st =
        weir_fail(WEIR_EINVAL,
                  x.started ? "%s: what was done in range '%s' is not known: it was not pushed but "
                              "started"
                            : "%s has no range '%s'",
                  db->path, name);
  free(name);
  return st;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int64_t moment_of(const report_time *t, int64_t duration, int64_t otherwise)
{
  double ns = t->percent ? t->at / 100 * (double)duration : t->at;
  if (!t->set) return otherwise;
  return ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

weir_status wr_scope_open(wr_scope *s, const wr_db *db, const report_settings *o)
{
  *s = (wr_scope){.by_process = o->process != 0, .by_range = o->range != NULL};
  weir_status st =
      wr_db_number(db, "SELECT value FROM meta WHERE key = 'duration_ns'", &s->duration);
  int64_t end = 0;
  if (!st) st = wr_db_number(db, "SELECT max(\"end\") FROM process", &end);
  if (end > s->duration) s->duration = end;
  if (s->duration < 0) s->duration = 0;
  s->from = moment_of(&o->from, s->duration, INT64_MIN);
  s->to = moment_of(&o->to, s->duration, INT64_MAX);
  s->any = o->from.set || o->to.set || o->process || o->range;
  if (!st && s->from >= s->to)
    st = weir_fail(WEIR_EINVAL, "--from must be before --to: nothing lies between them");
  if (!st && s->by_process) st = find_processes(s, db, o->process);
  if (!st && s->by_range) st = find_ranges(s, db, o->range);
  if (st) wr_scope_close(s);
  return st;
}

void wr_scope_close(wr_scope *s)
{
  hash_map_free(&s->processes);
  hash_map_free(&s->ranges);
}

char *wr_scope_words(const wr_scope *s, const report_settings *o)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  if (!to) return NULL;
  const char *between = "";
  if (o->from.set || o->to.set) {
    (void)fprintf(to, "what began");
    if (o->from.set)
      (void)fprintf(to, " from %s", wr_duration(s->from > 0 ? (uint64_t)s->from : 0).text);
    if (o->to.set) (void)fprintf(to, " to %s", wr_duration(s->to > 0 ? (uint64_t)s->to : 0).text);
    (void)fprintf(to, " of the run");
    between = ", ";
  }
  if (o->process) (void)fprintf(to, "%sprocess %ld", between, o->process), between = ", ";
  if (o->range) (void)fprintf(to, "%swithin ranges '%s'", between, o->range);
  char *words = fclose(to) ? NULL : wr_text(text, bytes, true);
  free(text);
  return words;
}
