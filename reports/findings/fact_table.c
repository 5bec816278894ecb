/* fact_table.c: see fact_table.h. A table has no index, but for those that begin with an id: by that
 * one row is found. A fact is a module of its name (an eponymous virtual table), which costs next to
 * nothing until a statement names it. */
#include "reports/findings/fact_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/import/run_log.h"

enum { BY_ID = 1 };

typedef struct fact_spec {
  const char *name, *columns;
  int count, nullable; /* columns; which of them, from 1, can be NULL; 0 none */
  bool keyed;          /* the first is an id, and they ascend */
} fact_spec;

#define COLUMNS_OF(table) (int)(sizeof(wr_fact_##table) / sizeof(int64_t))
#define SPEC(NAME, table, keyed, ...)                                                              \
  [WR_FACT_##NAME] = {#table, #__VA_ARGS__, COLUMNS_OF(table), 0, keyed},
#define NULL_SPEC(NAME, table, nullable, ...)                                                      \
  [WR_FACT_##NAME] = {#table, #__VA_ARGS__, COLUMNS_OF(table) - 1, nullable, false},
static const fact_spec specs[WR_FACTS] = {WR_FACT_MAP(SPEC, NULL_SPEC)};

#define FITS(NAME, table, keyed, ...)                                                              \
  _Static_assert(sizeof(wr_fact_##table) / sizeof(int64_t) <= WR_PACK_COLUMNS,                     \
                 "columns of " #table);
WR_FACT_MAP(FITS, FITS)

/* ---- rows ------------------------------------------------------------------------------------ */

weir_status wr_fact_open(wr_fact_tables *t)
{
  *t = (wr_fact_tables){.beside = wr_run_path()};
  for (int i = 0; i < WR_FACTS; i++)
    t->pack[i] =
        (wr_pack){.columns = specs[i].count + (specs[i].nullable != 0), .keyed = specs[i].keyed};
  return t->beside ? WEIR_OK : weir_fail(WEIR_ENOMEM, "finding facts: out of host memory");
}

/* Whether a column is NULL is a number more, behind the others. */
weir_status wr_fact_add_either(wr_fact_tables *t, wr_fact table, const int64_t *row, bool null)
{
  int64_t v[WR_PACK_COLUMNS];
  const fact_spec *spec = &specs[table];
  memcpy(v, row, (size_t)spec->count * sizeof(*v));
  v[spec->count] = null;
  return wr_pack_add(&t->pack[table], v, t->beside);
}

void wr_fact_empty(wr_fact_tables *t)
{
  for (int i = 0; i < WR_FACTS; i++)
    wr_pack_free(&t->pack[i]);
}

/* ---- as SQLite sees them --------------------------------------------------------------------- */

typedef struct fact_table {
  sqlite3_vtab base;
  const fact_spec *spec;
  const wr_pack *pack;
} fact_table;

typedef struct fact_cursor {
  sqlite3_vtab_cursor base;
  wr_pack_reader reader;
  bool one, ended; /* the row of an id; it has been */
} fact_cursor;

static int code_of(weir_status s)
{
  return !s ? SQLITE_OK : s == WEIR_ENOMEM ? SQLITE_NOMEM : SQLITE_IOERR;
}

/* argv: module, database, table. One that SQLite makes of a module by itself has the module's name; one that was made is
 * temporary. */
static int connect_fact(sqlite3 *db, void *module, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **error)
{
  char sql[160];
  const wr_fact_module *m = module;
  bool named = argc == 3 && !strcmp(argv[2], specs[m->fact].name);
  if (!named || (m->made && strcmp(argv[1], "temp") != 0)) {
    *error = sqlite3_mprintf("a fact of no trace");
    return SQLITE_ERROR;
  }
  (void)snprintf(sql, sizeof(sql), "CREATE TABLE x(%s)", specs[m->fact].columns);
  m->tables->declaring = true;
  int code = sqlite3_declare_vtab(db, sql);
  m->tables->declaring = false;
  if (code != SQLITE_OK) return code;
  fact_table *t = sqlite3_malloc(sizeof(*t));
  if (!t) return SQLITE_NOMEM;
  *t = (fact_table){.spec = &specs[m->fact], .pack = &m->tables->pack[m->fact]};
  *out = &t->base;
  return SQLITE_OK;
}

static int disconnect_fact(sqlite3_vtab *table)
{
  sqlite3_free(table);
  return SQLITE_OK;
}

static int plan_fact(sqlite3_vtab *table, sqlite3_index_info *info)
{
  const fact_table *t = (const fact_table *)table;
  info->estimatedRows = (sqlite3_int64)t->pack->rows;
  info->estimatedCost = (double)t->pack->rows + 1;
  for (int i = 0; t->spec->keyed && i < info->nConstraint; i++) {
    if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn != 0 ||
        info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
      continue;
    info->aConstraintUsage[i].argvIndex = 1;
    info->idxNum = BY_ID;
    info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    info->estimatedRows = 1;
    info->estimatedCost = 2;
    break;
  }
  return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
  (void)table;
  fact_cursor *c = sqlite3_malloc(sizeof(*c));
  if (!c) return SQLITE_NOMEM;
  *c = (fact_cursor){0};
  *out = &c->base;
  return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
  wr_pack_reader_free(&((fact_cursor *)cursor)->reader);
  sqlite3_free(cursor);
  return SQLITE_OK;
}

/* SQLite compares the id again: of a value that is no whole number all rows are looked at. */
static int filter_fact(sqlite3_vtab_cursor *cursor, int number, const char *name, int argc,
                       sqlite3_value **argv)
{
  (void)name;
  fact_cursor *c = (fact_cursor *)cursor;
  const wr_pack *pack = ((fact_table *)cursor->pVtab)->pack;
  c->ended = false;
  c->one = number == BY_ID && argc == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER;
  return code_of(c->one ? wr_pack_find(&c->reader, pack, sqlite3_value_int64(argv[0]))
                        : wr_pack_first(&c->reader, pack));
}

static int next_fact(sqlite3_vtab_cursor *cursor)
{
  fact_cursor *c = (fact_cursor *)cursor;
  c->ended = c->one;
  return c->one ? SQLITE_OK : code_of(wr_pack_next(&c->reader));
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
  const fact_cursor *c = (const fact_cursor *)cursor;
  return c->ended || c->reader.over;
}

static int fact_column(sqlite3_vtab_cursor *cursor, sqlite3_context *result, int column)
{
  const fact_cursor *c = (const fact_cursor *)cursor;
  const fact_spec *spec = ((const fact_table *)cursor->pVtab)->spec;
  bool null = spec->nullable == column + 1 && c->reader.v[spec->count];
  if (!null) sqlite3_result_int64(result, c->reader.v[column]);
  return SQLITE_OK;
}

static int fact_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
  *rowid = ((const fact_cursor *)cursor)->reader.v[0];
  return SQLITE_OK;
}

#define FACT_FUNCTIONS                                                                             \
  .xConnect = connect_fact, .xBestIndex = plan_fact, .xDisconnect = disconnect_fact,               \
  .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter_fact, .xNext = next_fact,        \
  .xEof = at_end, .xColumn = fact_column, .xRowid = fact_rowid

/* Without xCreate a module is a table of its name, which SQLite makes when a statement first names it. */
static const sqlite3_module functions = {FACT_FUNCTIONS};
static const sqlite3_module making_functions = {FACT_FUNCTIONS, .xCreate = connect_fact,
                                                .xDestroy = disconnect_fact};

/* A table of the trace that has a fact's name would be found before the fact. */
static weir_status take_table_name(void *context, sqlite3_stmt *q)
{
  wr_fact_tables *t = context;
  const char *name = (const char *)sqlite3_column_text(q, 0);
  for (int i = 0; name && i < WR_FACTS; i++)
    if (!sqlite3_stricmp(name, specs[i].name)) t->module[i].made = true;
  return WEIR_OK;
}

static weir_status make_table(wr_fact_tables *t, const wr_db *db, int fact)
{
  wr_fact_module *m = &t->module[fact];
  const char *name = specs[fact].name;
  char sql[96];
  *m = (wr_fact_module){.fact = fact, .tables = t, .made = m->made};
  if (sqlite3_create_module(db->handle, name, m->made ? &making_functions : &functions, m))
    return wr_db_fail(db, "opening");
  (void)snprintf(sql, sizeof(sql), "CREATE VIRTUAL TABLE temp.%s USING %s", name, name);
  return m->made ? wr_db_exec(db, sql) : WEIR_OK;
}

weir_status wr_fact_make_tables(wr_fact_tables *t, const wr_db *db)
{
  t->db = db->handle;
  weir_status s =
      wr_db_each(db, "SELECT name FROM main.sqlite_schema WHERE type IN ('table', 'view')",
                 take_table_name, t);
  for (int i = 0; !s && i < WR_FACTS; i++)
    s = make_table(t, db, i);
  return s;
}

bool wr_fact_rows(const wr_fact_tables *t, const char *name, size_t *rows)
{
  for (int i = 0; i < WR_FACTS; i++)
    if (!strcmp(name, specs[i].name)) {
      *rows = (size_t)t->pack[i].rows;
      return true;
    }
  return false;
}

bool wr_fact_is_table(const wr_fact_tables *t, const char *name)
{
  for (int i = 0; name && i < WR_FACTS; i++)
    if (t->module[i].tables && !t->module[i].made && !sqlite3_stricmp(name, specs[i].name))
      return true;
  return false;
}

void wr_fact_close(wr_fact_tables *t)
{
  for (int i = 0; t->db && i < WR_FACTS; i++) {
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS temp.%s", specs[i].name);
    if (t->module[i].made) (void)sqlite3_exec(t->db, sql, NULL, NULL, NULL);
    if (t->module[i].tables) (void)sqlite3_create_module(t->db, specs[i].name, NULL, NULL);
  }
  wr_fact_empty(t);
  free(t->beside);
  *t = (wr_fact_tables){0};
}
