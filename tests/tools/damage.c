/* damage.c: see damage.h. */
#include "tests/tools/damage.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PAGE = 4096, NAME = 128, MOST_BYTES = 64 << 20 /* a table grows to */ };

typedef struct damage {
  sqlite3 *db;
  uint64_t *state;
  char *what;
  unsigned room;
  char table[NAME], column[NAME];
} damage;

uint64_t damage_draw(uint64_t *state, uint64_t below)
{
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return (*state >> 11) % below;
}

static uint64_t draw_below(const damage *d, uint64_t below)
{
  return damage_draw(d->state, below);
}

/* What is done, as one who looks for the cause wants to read it. */
__attribute__((format(printf, 2, 3))) static void note(damage *d, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  int n = vsnprintf(d->what, d->room, format, list);
  va_end(list);
  unsigned used = n < 0 ? 0 : (unsigned)n < d->room ? (unsigned)n : d->room ? d->room - 1 : 0;
  d->what += used;
  d->room -= used;
}

/* As sqlite3_mprintf() has it. What SQLite refuses is left undone: the next has its turn. */
static void run_sql(damage *d, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list);
  va_end(list);
  int code = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
  note(d, "  %s%.300s\n", code ? "(refused) " : "", sql);
  sqlite3_free(sql);
}

/* One of the names a query has, at random; false: it has none. */
static bool pick(const damage *d, char *name, const char *query)
{
  sqlite3_stmt *q = NULL;
  uint64_t count = 0;
  if (sqlite3_prepare_v2(d->db, query, -1, &q, NULL)) return false;
  while (sqlite3_step(q) == SQLITE_ROW)
    if (sqlite3_column_text(q, 0) && draw_below(d, ++count) == 0)
      (void)snprintf(name, NAME, "%s", (const char *)sqlite3_column_text(q, 0));
  sqlite3_finalize(q);
  return count > 0;
}

static bool pick_table(damage *d)
{
  return pick(d, d->table, "SELECT name FROM sqlite_schema WHERE type = 'table'");
}

static bool pick_column(damage *d)
{
  char query[2 * NAME];
  if (!pick_table(d)) return false;
  (void)sqlite3_snprintf(sizeof query, query, "SELECT name FROM pragma_table_info(%Q)", d->table);
  return pick(d, d->column, query);
}

/* ---- values ---------------------------------------------------------------------------------- */

static const char *const values[] = {
    "NULL",
    "0",
    "-1",
    "1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "4611686018427387904",
    "4294967296",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "255",
    "1e300",
    "-1e300",
    "9e999",
    "-9e999",
    "1e18",
    "0.5",
    "''",
    "'text'",
    "'12x'",
    "'1e400'",
    "x''",
    "x'00ff'",
    "x'ff00fe'",
    "cast(x'c328a0ffe280ae' AS TEXT)",
    "cast(x'61e28028' AS TEXT)",
    "cast(x'610062' AS TEXT)",
    "'<script>alert(1)</script><!-- ]]> &lt; \"'' '",
    "char(27) || ']0;title' || char(7) || char(27) || '[2J' || char(155) || '31m'",
    "'a' || char(13, 10) || 'b' || char(8232, 8238, 65279, 0xfffe)",
    "'x''; DROP TABLE meta; --'",
    "'%s%n%n%1000000d'",
    "'=cmd|'' /C calc''!A0'",
    "'../../../../../../etc/passwd'",
    "'/dev/zero'",
    "'/proc/self/fd/0'",
    "printf('%.*c', 10485760, 'x')",
    "printf('%.*c', 70000, '\"')",
    "zeroblob(10485760)",
    "replace(printf('%.*c', 50000, 'x'), 'x', 'a<b>::')",
    "'_Z' || replace(printf('%.*c', 5000, 'x'), 'x', 'N1a')",
};

/* Of the row's own, and of other rows: ids that lead in circles, and orders that are none. */
static const char *const expressions[] = {
    "-\"%w\"",
    "\"%w\" + 1",
    "\"%w\" * 1000003",
    "\"%w\" + 4611686018427387904",
    "\"%w\" %% 3",
    "\"%w\" || 'x'",
    "cast(\"%w\" AS TEXT)",
    "cast(\"%w\" AS BLOB)",
    "\"%w\" * 1.5",
    "(SELECT min(\"%w\") FROM t)",
    "(SELECT max(\"%w\") FROM t)",
    "(SELECT max(\"%w\") FROM t) - \"%w\"",
    "(SELECT \"%w\" FROM t ORDER BY random() LIMIT 1)",
    "rowid",
    "-rowid",
    "rowid %% 5 + 1",
    "rowid + 1",
    "rowid - 1",
};

/* A value or an expression (new, of sqlite3_free()). */
static char *draw_value(const damage *d)
{
  if (draw_below(d, 3)) return sqlite3_mprintf("%s", values[draw_below(d, COUNT(values))]);
  char format[2 * NAME] = "";
  const char *text = expressions[draw_below(d, COUNT(expressions))], *t = strstr(text, "FROM t");
  if (t)
    (void)sqlite3_snprintf(sizeof format, format, "%.*sFROM main.\"%w\"%s", (int)(t - text), text,
                           d->table, t + 6);
  return sqlite3_mprintf(t ? format : text, d->column, d->column);
}

/* Which rows: all, some, one, the first, the last. */
static const char *draw_rows(const damage *d)
{
  static const char *const rows[] = {
      "1",
      "abs(random()) % 2",
      "abs(random()) % 10 = 0",
      "rowid = (SELECT min(rowid) FROM t)",
      "rowid = (SELECT max(rowid) FROM t)",
      "rowid % 7 = 3",
      "rowid = 1 + abs(random()) % (SELECT max(rowid) FROM t)",
  };
  return rows[draw_below(d, COUNT(rows))];
}

static void run_where(damage *d, const char *head)
{
  const char *rows = draw_rows(d), *t = strstr(rows, "FROM t)");
  if (!t)
    run_sql(d, "%s WHERE %s", head, rows);
  else
    run_sql(d, "%s WHERE %.*sFROM main.\"%w\")", head, (int)(t - rows), rows, d->table);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void change_rows(damage *d)
{
  if (!pick_column(d)) return;
  char *value = draw_value(d);
  char *head =
      sqlite3_mprintf("UPDATE OR REPLACE main.\"%w\" SET \"%w\" = %s", d->table, d->column, value);
  run_where(d, head);
  sqlite3_free(head);
  sqlite3_free(value);
}

/* Of events, whose rows have most to say. */
static void change_events(damage *d)
{
  static const char *const tables[] = {"event_row", "template", "block_row", "stack_frame",
                                       "frame",     "module",   "name",      "device_work"};
  char query[2 * NAME];
  (void)snprintf(d->table, NAME, "%s", tables[draw_below(d, COUNT(tables))]);
  (void)sqlite3_snprintf(sizeof query, query, "SELECT name FROM pragma_table_info(%Q)", d->table);
  if (!pick(d, d->column, query)) return;
  char *value = draw_value(d);
  char *head =
      sqlite3_mprintf("UPDATE OR REPLACE main.\"%w\" SET \"%w\" = %s", d->table, d->column, value);
  run_where(d, head);
  sqlite3_free(head);
  sqlite3_free(value);
}

static void delete_rows(damage *d)
{
  if (!pick_table(d)) return;
  char *head = sqlite3_mprintf("DELETE FROM main.\"%w\"", d->table);
  run_where(d, head);
  sqlite3_free(head);
}

/* Rows of drawn values, where a program's trace has none. */
static void insert_rows(damage *d)
{
  if (!pick_table(d)) return;
  sqlite3_stmt *q = NULL;
  char *list = sqlite3_mprintf("NULL");
  char *query = sqlite3_mprintf("SELECT 1 FROM pragma_table_info(%Q) LIMIT -1 OFFSET 1", d->table);
  if (!sqlite3_prepare_v2(d->db, query, -1, &q, NULL))
    while (sqlite3_step(q) == SQLITE_ROW) {
      char *more = draw_below(d, 4)
                       ? sqlite3_mprintf("%s, abs(random()) %% %d", list,
                                         (int)(1 + draw_below(d, draw_below(d, 2) ? 8 : 100000)))
                       : sqlite3_mprintf("%s, %s", list, values[draw_below(d, COUNT(values))]);
      sqlite3_free(list);
      list = more;
    }
  sqlite3_finalize(q);
  sqlite3_free(query);
  run_sql(d,
          "INSERT OR REPLACE INTO main.\"%w\" SELECT %s FROM (WITH RECURSIVE r(n) AS (SELECT 1"
          " UNION ALL SELECT n + 1 FROM r WHERE n < %d) SELECT n FROM r)",
          d->table, list, (int)(1 + draw_below(d, 40)));
  sqlite3_free(list);
}

/* The events, several times over, later and later. */
static void multiply_events(damage *d)
{
  run_sql(d,
          "INSERT OR IGNORE INTO event_row SELECT id + (SELECT max(id) FROM event_row), template, "
          "start + %d,"
          " duration, a, b, bytes FROM event_row",
          (int)draw_below(d, 1000000));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void drop_table(damage *d)
{
  if (pick_table(d)) run_sql(d, "DROP TABLE main.\"%w\"", d->table);
}

#define ENDLESS                                                                                    \
  "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS id, n AS start "    \
  "FROM r"

#define ENDLESS_VIEW ("CREATE VIEW main.\"%w\" AS " ENDLESS)

/* Something else in its place, with the columns that it had or others. */
static void replace_table(damage *d)
{
  if (!pick_table(d)) return;
  static const char *const others[] = {
      "CREATE VIEW main.\"%w\" AS SELECT * FROM fuzz_kept",
      ENDLESS_VIEW,
      "CREATE VIEW main.\"%w\" AS SELECT a.* FROM fuzz_kept a, fuzz_kept b, fuzz_kept c",
      "CREATE TABLE main.\"%w\" AS SELECT * FROM fuzz_kept",
      "CREATE TABLE main.\"%w\"(id INTEGER PRIMARY KEY)",
      "CREATE TABLE main.\"%w\"(x, y, z)",
      "CREATE VIRTUAL TABLE main.\"%w\" USING fts5(id, start, name)",
      "CREATE VIRTUAL TABLE main.\"%w\" USING rtree(id, start, name)",
      "CREATE VIRTUAL TABLE main.\"%w\" USING fts3tokenize",
      "CREATE TABLE main.\"%w\"(id INTEGER PRIMARY KEY, start AS (zeroblob(300000000)))",
      "CREATE TABLE main.\"%w\"(id, start, PRIMARY KEY(start, id)) WITHOUT ROWID",
  };
  run_sql(d, "PRAGMA legacy_alter_table = ON");
  run_sql(d, "ALTER TABLE main.\"%w\" RENAME TO fuzz_kept", d->table);
  run_sql(d, others[draw_below(d, COUNT(others))], d->table);
}

/* A column that is calculated when it is read, of values as long as SQLite allows. */
static void generate_column(damage *d)
{
  static const char *const columns[] = {"hex(zeroblob(200000000))",
                                        "zeroblob(500000000)",
                                        "printf('%.*c', 100000000, 'x')",
                                        "1 / 0",
                                        "id",
                                        "abs(id)"};
  if (!pick_column(d)) return;
  run_sql(d, "ALTER TABLE main.\"%w\" RENAME COLUMN \"%w\" TO fuzz_old", d->table, d->column);
  run_sql(d, "ALTER TABLE main.\"%w\" ADD COLUMN \"%w\" AS (%s)", d->table, d->column,
          columns[draw_below(d, COUNT(columns))]);
}

static void change_schema(damage *d)
{
  if (!pick_column(d)) return;
  switch (draw_below(d, 7)) {
  case 0:
    run_sql(d, "ALTER TABLE main.\"%w\" RENAME COLUMN \"%w\" TO fuzz_renamed", d->table, d->column);
    break;
  case 1:
    run_sql(d, "PRAGMA writable_schema = ON");
    run_sql(d, "UPDATE sqlite_schema SET sql = replace(sql, %Q, 'fuzz_' || %Q) WHERE name = %Q",
            d->column, d->column, d->table);
    break;
  case 2:
    run_sql(d, "PRAGMA writable_schema = ON");
    run_sql(d,
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE type = "
            "'table'"
            " ORDER BY random() LIMIT 1) WHERE name = %Q",
            d->table);
    break;
  case 3:
    run_sql(d, "PRAGMA writable_schema = ON");
    run_sql(d, "DELETE FROM sqlite_schema WHERE type IN ('view', 'index') AND abs(random()) %% 2");
    break;
  case 4:
    run_sql(d, "PRAGMA user_version = %d", draw_below(d, 3) ? 1 : (int)draw_below(d, 4));
    break;
  case 5:
    run_sql(d, "CREATE INDEX fuzz_index ON \"%w\"(abs(\"%w\"))", d->table, d->column);
    break;
  default:
    run_sql(d, "PRAGMA writable_schema = ON");
    run_sql(d,
            "UPDATE sqlite_schema SET name = 'fuzz_table', tbl_name = 'fuzz_table' WHERE name = %Q",
            d->table);
    break;
  }
}

/* Triggers, and views of Weir's names that are others. */
static void add_trigger(damage *d)
{
  static const char *const when[] = {"INSERT", "DELETE", "UPDATE"};
  static const char *const views[] = {"event", "call", "block",       "wait",        "copy",
                                      "range", "site", "source_line", "wait_detail", "device_gap"};
  if (!pick_table(d)) return;
  for (size_t i = 0; i < COUNT(when); i++)
    run_sql(d,
            "CREATE TRIGGER IF NOT EXISTS \"fuzz_%w_%s\" AFTER %s ON \"%w\" BEGIN INSERT INTO "
            "fuzz_written"
            " VALUES(1); END",
            d->table, when[i], when[i], d->table);
  const char *view = views[draw_below(d, COUNT(views))];
  run_sql(d, "DROP VIEW IF EXISTS \"%w\"", view);
  run_sql(d, "CREATE VIEW \"%w\" AS " ENDLESS, view);
}

int64_t damage_written(const char *path)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  int64_t rows = -1;
  if (!sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) &&
      !sqlite3_prepare_v2(db, "SELECT count(*) FROM fuzz_written", -1, &q, NULL) &&
      sqlite3_step(q) == SQLITE_ROW)
    rows = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return rows;
}

/* In the place of SQLite's random(), which has another seed each time. */
static void draw_random(sqlite3_context *context, int count, sqlite3_value **arguments)
{
  (void)count, (void)arguments;
  sqlite3_result_int64(context, (int64_t)damage_draw(sqlite3_user_data(context), INT64_MAX));
}

static void damage_rows(damage *d, const char *path)
{
  static void (*const kinds[])(damage *) = {
      change_rows,     change_rows,   change_rows,   change_rows,     change_rows, change_events,
      change_events,   change_events, change_events, change_events,   delete_rows, delete_rows,
      insert_rows,     insert_rows,   insert_rows,   generate_column, add_trigger, add_trigger,
      multiply_events, replace_table, change_schema, drop_table,
  };
  if (sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE, NULL)) return;
  sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, MOST_BYTES);
  sqlite3_create_function(d->db, "random", 0, SQLITE_UTF8, d->state, draw_random, NULL, NULL);
  sqlite3_exec(d->db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY", NULL, NULL, NULL);
  sqlite3_exec(d->db, "PRAGMA max_page_count = 30000; CREATE TABLE fuzz_written(x)", NULL, NULL,
               NULL);
  if (draw_below(
          d, 4)) /* names are looked for in files that are there one time of four: that is slow */
    run_sql(d, "UPDATE module SET path = '/nowhere' || path");
  for (uint64_t n = 1 + draw_below(d, 1 + draw_below(d, 6)); n; n--)
    kinds[draw_below(d, COUNT(kinds))](d);
  sqlite3_close(d->db);
  d->db = NULL;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Pages in the place of others: trees that lead into themselves. */
static void swap_pages(damage *d, int fd, uint64_t pages)
{
  char page[PAGE];
  uint64_t from = draw_below(d, pages), to = 1 + draw_below(d, pages - 1);
  if (pread(fd, page, PAGE, (off_t)(from * PAGE)) != PAGE) return;
  note(d, "  page %d is also page %d\n", (int)from + 1, (int)to + 1);
  if (pwrite(fd, page, PAGE, (off_t)(to * PAGE)) != PAGE) return;
}

static void change_bytes(damage *d, int fd, uint64_t bytes)
{
  for (uint64_t n = 1 + draw_below(d, 20); n; n--) {
    uint64_t at = draw_below(d, 3)   ? draw_below(d, bytes)
                  : draw_below(d, 2) ? draw_below(d, 100)
                                     : draw_below(d, 5 * PAGE) % bytes;
    uint8_t value = (uint8_t)draw_below(d, 256);
    if (at < 16) continue; /* past the first look */
    note(d, "  byte %ld = %d\n", (long)at, value);
    if (pwrite(fd, &value, 1, (off_t)at) != 1) return;
  }
}

static void damage_bytes(damage *d, const char *path)
{
  struct stat file;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  if (!fstat(fd, &file) && file.st_size >= 4 * PAGE) {
    uint64_t bytes = (uint64_t)file.st_size, cut = draw_below(d, bytes);
    switch (draw_below(d, 4)) {
    case 0:
      note(d, "  cut at %ld\n", (long)cut);
      if (ftruncate(fd, (off_t)cut)) break;
      break;
    case 1:
      swap_pages(d, fd, bytes / PAGE);
      break;
    default:
      change_bytes(d, fd, bytes);
      break;
    }
  }
  (void)close(fd);
}

void damage_trace(const char *path, uint64_t *state, char *what, unsigned room)
{
  damage d = {.state = state, .what = what, .room = room};
  uint64_t how = draw_below(&d, 4);
  *what = 0;
  if (how) damage_rows(&d, path);
  if (how == 0 || draw_below(&d, 12) == 0) damage_bytes(&d, path);
}
