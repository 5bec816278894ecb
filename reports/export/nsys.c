/* nsys.c: see formats.h. The views are made anew in the reader's own connection, from the schema
 * that is linked in: no view of an untrusted file is asked. */
#include "reports/export/formats.h"
#include <stdio.h>
#include <stdlib.h>
#include "reports/base/demangle.h"
#include "reports/base/util.h"
#include "reports/import/graph.h"
#include "reports/import/lifetime.h"
#include "reports/model/open.h"
#include "reports/symbols/symbolize.h"

/* Tables that tools look for and that nothing here fills. */
static const char empty_tables[] =
    "CREATE TABLE DIAGNOSTIC_EVENT(timestamp INTEGER, timestampType INTEGER, source INTEGER,"
    " severity INTEGER, text TEXT, globalPid INTEGER);"
    "CREATE TABLE TARGET_INFO_SYSTEM_ENV(globalVid INTEGER, devStateName TEXT, name TEXT,"
    " nameEnum INTEGER, value TEXT);";

/* The compiler's name of the function is not the one that is searched for. */
static const char plain_names[] =
    "UPDATE StringIds SET value = substr(value, 3) WHERE value GLOB '__cuda*';";

/* Names of kernels as the source has them, short ones without namespaces and arguments. */
static const char kernel_names[] =
    "CREATE TEMP TABLE kernel_name(id INTEGER PRIMARY KEY, text TEXT, short TEXT, text_id INTEGER,"
    " short_id INTEGER);"
    "INSERT INTO kernel_name(id, text, short) SELECT id, demangled(value),"
    " short_name(demangled(value)) FROM StringIds"
    " WHERE id IN (SELECT DISTINCT mangledName FROM CUPTI_ACTIVITY_KIND_KERNEL);"
    "INSERT INTO StringIds(id, value) SELECT (SELECT max(id) FROM StringIds) + row_number() OVER"
    " (), text FROM (SELECT text FROM kernel_name UNION SELECT short FROM kernel_name)"
    " WHERE text NOT IN (SELECT value FROM StringIds);"
    "UPDATE kernel_name SET text_id = (SELECT min(s.id) FROM StringIds s WHERE s.value = text),"
    " short_id = (SELECT min(s.id) FROM StringIds s WHERE s.value = short);"
    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET"
    " demangledName = (SELECT text_id FROM kernel_name n WHERE n.id = mangledName),"
    " shortName = (SELECT short_id FROM kernel_name n WHERE n.id = mangledName);";

/* SQL: demangled(name), or the name itself. */
static void demangled(sqlite3_context *context, int count, sqlite3_value **argument)
{
  (void)count;
  char *text =
      wr_demangle(sqlite3_user_data(context), (const char *)sqlite3_value_text(argument[0]));
  if (text)
    sqlite3_result_text(context, text, -1, free);
  else
    sqlite3_result_value(context, argument[0]);
}

/* SQL: short_name(name): the function alone. */
static void short_name(sqlite3_context *context, int count, sqlite3_value **argument)
{
  (void)count;
  const char *text = (const char *)sqlite3_value_text(argument[0]);
  size_t length;
  if (!text) return;
  const char *begin = wr_function_name(text, &length);
  sqlite3_result_text(context, begin, (int)length, SQLITE_TRANSIENT);
}

static weir_status name_kernels(const wr_db *to)
{
  wr_demangler cxx;
  wr_demangler_open(&cxx);
  int code =
      sqlite3_create_function(to->handle, "demangled", 1, SQLITE_UTF8, &cxx, demangled, NULL, NULL);
  if (!code)
    code = sqlite3_create_function(to->handle, "short_name", 1, SQLITE_UTF8, NULL, short_name, NULL,
                                   NULL);
  weir_status st = code ? wr_db_fail(to, "creating") : wr_db_exec(to, kernel_names);
  wr_demangler_close(&cxx);
  return st;
}

typedef struct copying {
  wr_db from, to;
  wr_symbols *symbols;  /* of `from` */
  sqlite3_stmt *symbol; /* keeps the name of a frame */
} copying;

/* ---- names of functions in call chains ------------------------------------------------------- */

static const char symbol_tables[] =
    "CREATE TEMP TABLE export_symbol(frame INTEGER PRIMARY KEY, name TEXT)";
static const char symbol_view[] =
    "CREATE TEMP TABLE export_string(name TEXT PRIMARY KEY, id INTEGER);"
    "INSERT INTO export_string SELECT name, row_number() OVER () + (SELECT ifnull(max(id), 0)"
    " FROM main.StringIds) FROM (SELECT DISTINCT name FROM export_symbol);"
    "DROP VIEW temp.CUDA_CALLCHAINS;"
    "CREATE TEMP VIEW CUDA_CALLCHAINS(id, symbol, module, unresolved, originalIP, stackDepth) AS"
    " SELECT s.stack, ifnull(n.id, 0), ifnull(m.string, 0), n.id IS NULL, f.address, s.depth"
    " FROM main.stack_frame s CROSS JOIN main.frame f ON f.id = s.frame"
    " LEFT JOIN main.module m ON m.id = f.module LEFT JOIN export_symbol y ON y.frame = s.frame"
    " LEFT JOIN export_string n ON n.name = y.name;";
static const char symbol_strings[] = "INSERT INTO StringIds(id, value) SELECT id, name FROM "
                                     "export_string; DROP TABLE export_string;";

/* Of functions that are inlined at an address the outermost is kept: the one that has a symbol. */
static weir_status name_frames(void *context, sqlite3_stmt *stacks)
{
  copying *x = context;
  const wr_frame *frames;
  size_t count;
  weir_status st = wr_symbols_stack(x->symbols, sqlite3_column_int64(stacks, 0), &frames, &count);
  for (size_t i = 0; i < count && !st; i++) {
    if (!frames[i].function) continue;
    sqlite3_bind_int64(x->symbol, 1, frames[i].row);
    sqlite3_bind_text(x->symbol, 2, frames[i].function, -1, SQLITE_TRANSIENT);
    st = wr_db_run(&x->from, x->symbol);
  }
  return st;
}

static weir_status name_chains(copying *x)
{
  weir_status st = wr_symbols_open(&x->symbols, &x->from);
  if (!st) st = wr_db_exec(&x->from, symbol_tables);
  if (!st)
    st = wr_db_prepare(&x->from, "INSERT OR REPLACE INTO export_symbol VALUES(?1, ?2)", &x->symbol);
  if (!st) st = wr_db_each(&x->from, "SELECT id FROM main.stack", name_frames, x);
  if (!st) st = wr_db_exec(&x->from, symbol_view);
  sqlite3_finalize(x->symbol);
  if (x->symbols) wr_symbols_close(x->symbols);
  return st;
}

/* ---- what observing devices cost ------------------------------------------------------------- */

#define OVERHEAD                                                                                   \
  "PROFILER_OVERHEAD(start, \"end\", globalTid, correlationId, nameId, returnValue, overheadType)"

static weir_status show_overhead(const wr_db *db)
{
  bool there = wr_db_has_table(db, "device_work") && wr_db_has_column(db, "device_work", "process");
  return wr_db_exec(
      db, there ? "CREATE TEMP VIEW " OVERHEAD " AS SELECT d.start, d.\"end\","
                  " (p.pid & 0xFFFFFF) << 24, NULL, NULL, 0, NULL"
                  " FROM (SELECT * FROM main.device_work WHERE kind = 5 AND " WR_DEVICE_TIME
                  ") d CROSS JOIN main.process p ON p.id = d.process"
                : "CREATE TEMP TABLE " OVERHEAD);
}

static weir_status check_own_tables(const wr_db *db)
{
  return wr_db_has_table(db, "StringIds") && wr_db_has_table(db, "mem_kind")
             ? WEIR_OK
             : weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: it has no table StringIds",
                         db->path);
}

/* CREATE TABLE of the columns that `rows` has, and (out, new) the statement that fills it. */
static weir_status make_table(const wr_db *to, const char *name, sqlite3_stmt *rows,
                              sqlite3_stmt **insert)
{
  char *columns = NULL, *marks = NULL;
  size_t a, b;
  FILE *c = open_memstream(&columns, &a), *m = open_memstream(&marks, &b);
  for (int i = 0; c && m && i < sqlite3_column_count(rows); i++) {
    (void)fprintf(c, "%s\"%s\"", i ? "," : "", sqlite3_column_name(rows, i));
    (void)fputs(i ? ",?" : "?", m);
  }
  bool whole = c && m;
  if (c && fclose(c)) whole = false;
  if (m && fclose(m)) whole = false;
  char *create = whole ? wr_format("CREATE TABLE \"%s\"(%s)", name, columns) : NULL;
  char *fill = whole ? wr_format("INSERT INTO \"%s\" VALUES(%s)", name, marks) : NULL;
  weir_status st = create && fill ? wr_db_exec(to, create)
                                  : weir_fail(WEIR_ENOMEM, "exporting: out of host memory");
  if (!st) st = wr_db_prepare(to, fill, insert);
  free(columns);
  free(marks);
  free(create);
  free(fill);
  return st;
}

/* name: a table of the export */
static weir_status copy_table(void *context, sqlite3_stmt *names)
{
  copying *x = context;
  const char *name = (const char *)sqlite3_column_text(names, 0);
  char *sql = wr_format("SELECT * FROM \"%s\"", name);
  sqlite3_stmt *rows = NULL, *insert = NULL;
  weir_status st = sql ? wr_db_prepare(&x->from, sql, &rows)
                       : weir_fail(WEIR_ENOMEM, "exporting: out of host memory");
  free(sql);
  if (!st) st = make_table(&x->to, name, rows, &insert);
  int code = SQLITE_DONE;
  while (!st && (code = sqlite3_step(rows)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(rows); i++)
      sqlite3_bind_value(insert, i + 1, sqlite3_column_value(rows, i));
    st = wr_db_run(&x->to, insert);
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(&x->from, "reading");
  sqlite3_finalize(rows);
  sqlite3_finalize(insert);
  return st;
}

static weir_status copy_all(copying *x)
{
  weir_status st = wr_db_exec(&x->to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  if (!st)
    st = wr_db_each(
        &x->from,
        "SELECT 'StringIds' UNION ALL SELECT name FROM temp.sqlite_schema"
        " WHERE type IN ('table', 'view')"
        " AND name NOT IN ('export_symbol', 'event', 'rare_event', 'block', 'block_row', 'memory', "
        "'range_row',"
        " 'range_name', 'range_category', 'graph_work', 'graph_launch', 'device_work', 'name')",
        copy_table, x);
  if (!st) st = wr_db_exec(&x->to, empty_tables);
  if (!st) st = wr_db_exec(&x->to, symbol_strings);
  if (!st) st = wr_db_exec(&x->to, plain_names);
  if (!st) st = name_kernels(&x->to);
  return st ? st : wr_db_exec(&x->to, "COMMIT");
}

weir_status nsys_export(const char *trace, const char *output)
{
  wr_input in;
  int64_t finished = 0;
  weir_status st = wr_input_open(&in, trace);
  if (st) return st;
  copying x = {.from = in.db, .to = {.path = output}};
  st = check_own_tables(&in.db);
  if (!st) st = wr_db_number(&in.db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!st && finished != 1 && wr_schema_graph_memory(&in.db))
    st = wr_graph_launches_temporary(&in.db);
  if (!st && finished != 1) st = wr_lifetimes_temporary(&in.db);
  if (!st) st = wr_schema_nsys_views(&in.db);
  if (!st) st = name_chains(&x);
  if (!st) st = show_overhead(&in.db);
  if (!st &&
      sqlite3_open_v2(output, &x.to.handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL))
    st = wr_db_fail(&x.to, "creating");
  if (!st) st = copy_all(&x);
  sqlite3_close(x.to.handle);
  wr_input_close(&in);
  return st;
}
