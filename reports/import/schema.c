/* schema.c: makes an empty trace. The SQL itself is schema.sql, linked in as text. */
#include "reports/import/schema.h"
#include "reports/queues/sweep.h"
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/import/event_columns.h"

__asm__(".pushsection .rodata\n"
        ".global wr_schema_sql\n"
        ".hidden wr_schema_sql\n"
        "wr_schema_sql: .incbin \"reports/import/schema.sql\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char wr_schema_sql[];

weir_status wr_db_fail(const wr_db *db, const char *doing)
{
  int code = db->handle ? sqlite3_errcode(db->handle) & 0xff : SQLITE_NOMEM;
  int system_errno = db->handle ? sqlite3_system_errno(db->handle) : 0;
  const char *why = db->handle ? sqlite3_errmsg(db->handle) : "out of memory";
  bool no_space = system_errno == ENOSPC || system_errno == EDQUOT;
  switch (code) {
  case SQLITE_FULL:
    return weir_fail(WEIR_ENOSPC, "%s %s: no space left on device", doing, db->path);
  case SQLITE_NOMEM:
    return weir_fail(WEIR_ENOMEM, "%s %s: out of host memory", doing, db->path);
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return weir_fail(WEIR_ECORRUPT, "%s %s: the trace is damaged (SQLite: %s)", doing, db->path,
                     why);
  case SQLITE_IOERR:
  case SQLITE_CANTOPEN:
    if (no_space) return weir_fail(WEIR_ENOSPC, "%s %s: no space left on device", doing, db->path);
    if (system_errno)
      return weir_fail_errno(WEIR_EIO, system_errno, "%s %s (SQLite: %s)", doing, db->path, why);
    break;
  default:
    break;
  }
  return weir_fail(WEIR_EIO, "%s %s failed (SQLite: %s)", doing, db->path, why);
}

weir_status wr_db_exec(const wr_db *db, const char *sql)
{
  if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK) return WEIR_OK;
  return wr_db_fail(db, "writing");
}

weir_status wr_db_prepare(const wr_db *db, const char *sql, sqlite3_stmt **out)
{
  if (sqlite3_prepare_v2(db->handle, sql, -1, out, NULL) == SQLITE_OK) return WEIR_OK;
  return wr_db_fail(db, "querying");
}

weir_status wr_db_run(const wr_db *db, sqlite3_stmt *statement)
{
  int code = sqlite3_step(statement);
  weir_status st = WEIR_OK;
  if (code != SQLITE_DONE && code != SQLITE_ROW) st = wr_db_fail(db, "writing");
  sqlite3_reset(statement);
  return st;
}

weir_status wr_db_run_of(const wr_db *db, const char *sql, int64_t number, const char *text)
{
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, sql, &q);
  if (st) return st;
  sqlite3_bind_int64(q, 1, number);
  sqlite3_bind_text(q, 2, text, -1, SQLITE_STATIC);
  st = wr_db_run(db, q);
  sqlite3_finalize(q);
  return st;
}

weir_status wr_db_each(const wr_db *db, const char *sql,
                       weir_status (*row)(void *context, sqlite3_stmt *q), void *context)
{
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, sql, &q);
  int code = SQLITE_DONE;
  while (!st && (code = sqlite3_step(q)) == SQLITE_ROW)
    st = row(context, q);
  if (!st && code != SQLITE_DONE) st = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  return st;
}

weir_status wr_db_number_of(const wr_db *db, const char *sql, uint64_t number, const char *text,
                            int64_t *out)
{
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, sql, &q);
  *out = 0;
  if (st) return st;
  sqlite3_bind_int64(q, 1, (int64_t)number);
  sqlite3_bind_text(q, 2, text, -1, SQLITE_STATIC);
  int code = sqlite3_step(q);
  if (code == SQLITE_ROW)
    *out = sqlite3_column_int64(q, 0);
  else if (code != SQLITE_DONE)
    st = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  return st;
}

weir_status wr_db_number(const wr_db *db, const char *sql, int64_t *out)
{
  return wr_db_number_of(db, sql, 0, NULL, out);
}

char *wr_db_text(sqlite3_stmt *q, int column)
{
  const char *text = (const char *)sqlite3_column_text(q, column);
  return wr_text(text, text ? strlen(text) : 0, true);
}

weir_status wr_db_out_of_memory(const wr_db *db)
{
  return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", db->path);
}

bool wr_db_has_table(const wr_db *db, const char *table)
{
  return sqlite3_table_column_metadata(db->handle, "main", table, NULL, NULL, NULL, NULL, NULL,
                                       NULL) == SQLITE_OK;
}

bool wr_db_has_column(const wr_db *db, const char *table, const char *column)
{
  const char *const in[] = {NULL, "main"}; /* a temporary view may stand before a table */
  for (int i = 0; i < 2; i++)
    if (sqlite3_table_column_metadata(db->handle, in[i], table, column, NULL, NULL, NULL, NULL,
                                      NULL) == SQLITE_OK)
      return true;
  return false;
}

/* ---- a file of somebody else's --------------------------------------------------------------- */

void wr_db_distrust(const wr_db *db)
{
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
}

/* What readers ask: a view of such a name could be anything, for ever. */
static const char *const own_tables[] = {
    "template",     "event_row",       "graph_change",   "graph_node",     "graph_work",
    "graph_launch", "copy_hash",       "copy_hash_call", "hash_outcome",   "nvml_sample",
    "meta",         "process",         "thread",         "module",         "stack",
    "stack_frame",  "frame",           "python_frame",   "name",           "note",
    "api",          "coverage",        "unseen",         "resume",         "event_kind",
    "cache_reason", "mem_kind",        "copy_direction", "wait_kind",      "cache_fact",
    "block_end",    "range_row",       "range_name",     "range_category", "range_kind",
    "event_range",  "batch_item",      "block_row",      "tensor",         "device_operation",
    "copy_part",    "device_work",     "device_call",    "device_fact",    "memory",
    "graph_fact",   "graph_node_type", "StringIds",      "source_line",    "site",
    "wait_detail",  "wait_time",       "device_gap",     "device_idle",    "queue_full",
    "idle_cause",   "asked",           "access_set",     "access_word",    "template_access",
    "kept",         "recording",       "access_varying"};

static bool is_own_table(const char *name)
{
  for (size_t i = 0; i < sizeof(own_tables) / sizeof(own_tables[0]); i++)
    if (!sqlite3_stricmp(name, own_tables[i])) return true;
  return !sqlite3_strnicmp(name, WR_BEFORE_WINDOW, sizeof WR_BEFORE_WINDOW - 1);
}

/* Where a text has a word of SQL, in large letters or small ones; NULL: nowhere. What is part of another word is none. */
static const char *find_sql_word(const char *text, const char *word)
{
  size_t bytes = strlen(word);
  for (const char *at = text; (at = strcasestr(at, word)); at++) {
    unsigned char before = at > text ? (unsigned char)at[-1] : ' ',
                  after = (unsigned char)at[bytes];
    bool begins = !isalnum(before) && before != '_' && before != '$' && before < 128;
    if (begins && !isalnum(after) && after != '_' && after != '$' && after < 128) return at;
  }
  return NULL;
}

/* The columns of a table are the file's own, each row's as long as it is there: one that is
 * calculated could be as long as SQLite allows, in each row. Its SQL has an AS before what it is calculated from. */
static weir_status check_table(void *context, sqlite3_stmt *q)
{
  const wr_db *db = context;
  const char *name = (const char *)sqlite3_column_text(q, 0);
  const char *sql = (const char *)sqlite3_column_text(q, 1);
  const char *as_module = sql ? strcasestr(sql, "VIRTUAL") : NULL;
  if (as_module && strcasestr(as_module, "USING"))
    return weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: it has virtual tables", db->path);
  if (!name || !sql || !is_own_table(name)) return WEIR_OK;
  if (!wr_db_has_table(db, name))
    return weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: %s is no table", db->path, name);
  int64_t calculated = 0;
  if (!find_sql_word(sql, "AS")) return WEIR_OK;
  weir_status st = wr_db_number_of(db, "SELECT sum(hidden) FROM pragma_table_xinfo(?2, 'main')", 0,
                                   name, &calculated);
  if (!st && calculated)
    st = weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: a column of %s is calculated", db->path,
                   name);
  return st;
}

weir_status wr_schema_check(const wr_db *db)
{
  return wr_db_each(db, "SELECT name, sql FROM main.sqlite_schema WHERE type IN ('table', 'view')",
                    check_table, (void *)(uintptr_t)db);
}

/* ---- words ---------------------------------------------------------------------------------- */

static const char *const category_names[] = {
    [WEIR_API_NONE] = "none",       [WEIR_API_ALLOC] = "alloc",     [WEIR_API_FREE] = "free",
    [WEIR_API_COPY] = "copy",       [WEIR_API_MEMSET] = "memset",   [WEIR_API_SYNC] = "sync",
    [WEIR_API_LAUNCH] = "launch",   [WEIR_API_STREAM] = "stream",   [WEIR_API_EVENT] = "event",
    [WEIR_API_CONTEXT] = "context", [WEIR_API_HOSTREG] = "hostreg", [WEIR_API_MODULE] = "module",
    [WEIR_API_QUERY] = "query",     [WEIR_API_OTHER] = "other"};

const char *wr_api_category_name(uint32_t category)
{
  if (category >= sizeof(category_names) / sizeof(category_names[0])) return "other";
  return category_names[category];
}

const char *wr_api_name(uint32_t api, char buffer[24])
{
  const api_info *info = api ? api_row(api) : NULL;
  if (info && info->name) return info->name;
  (void)snprintf(buffer, 24, "api #%u", api);
  return buffer;
}

/* Every known function: its native row, and its name where Nsight's queries look for it. */
static weir_status insert_apis(const wr_db *db)
{
  static const char *const layers[] = {"driver", "runtime", "weir"};
  static const char *const unrecorded[] = {"unreached", "", "asks", "sets", "below"};
  sqlite3_stmt *row = NULL, *string = NULL;
  weir_status st = wr_db_prepare(db, "INSERT INTO api VALUES(?,?,?,?,?,?)", &row);
  if (!st) st = wr_db_prepare(db, "INSERT INTO StringIds VALUES(?,?)", &string);
  for (uint32_t i = 1; !st && i < api_total; i++) {
    const api_info *info = api_row(i);
    if (!info) continue;
    sqlite3_bind_int(row, 1, (int)i);
    sqlite3_bind_text(row, 2, info->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 3, layers[info->layer % 3], -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 4, wr_api_category_name(info->category), -1, SQLITE_STATIC);
    sqlite3_bind_int(row, 5, info->how == WEIR_API_WRAPPED);
    if (info->layer < 2 && info->how != WEIR_API_WRAPPED)
      sqlite3_bind_text(row, 6, unrecorded[info->how % 5], -1, SQLITE_STATIC);
    else
      sqlite3_bind_null(row, 6);
    st = wr_db_run(db, row);
    sqlite3_bind_int(string, 1, (int)i);
    sqlite3_bind_text(string, 2, info->name, -1, SQLITE_STATIC);
    if (!st) st = wr_db_run(db, string);
  }
  sqlite3_finalize(row);
  sqlite3_finalize(string);
  return st;
}

#define REASON_ROW(id, value, text)         "(" #value ",'" text "'),"
#define KIND_ROW(id, value, text, extended) "(" #value ",'" text "'),"
static const char fixed_rows[] =
    "INSERT INTO StringIds VALUES(0,'[unresolved]');"
    "INSERT INTO event_kind VALUES" WEIR_EVENT_KIND_MAP(
        KIND_ROW) "(0,'none');"
                  "INSERT INTO cache_reason VALUES" WEIR_REASON_MAP(
                      REASON_ROW) "(0,'none');"
                                  /* Nsight's kind is CUPTI's less one; "host, pageable or pinned"
                                     has no number there. */
                                  "INSERT INTO mem_kind "
                                  "VALUES(0,'unknown',7),(1,'pageable',0),(2,'pinned',1),(3,'"
                                  "device',2),"
                                  "(4,'managed',4),(5,'array',3),(6,'host',7),(7,'physical',2),"
                                  "(8,'imported',7),(9,'code',7),(10,'context',7);";

#define TABLE_COLUMN(name, ...)  ", " #name " INTEGER"
#define COMMON_COLUMN(name, ...) ", t." #name
#define OWN_COLUMN(name, ...)    ", e." #name
#define TEMPLATE_TABLE           WR_TEMPLATE_MAP(TABLE_COLUMN) ");"
#define EVENT_TABLE              WR_EVENT_MAP(TABLE_COLUMN) ");"
#define EVENT_COLUMNS            WR_TEMPLATE_MAP(COMMON_COLUMN) WR_EVENT_MAP(OWN_COLUMN)

static const char event_tables[] =
    "CREATE TABLE template(id INTEGER PRIMARY KEY" TEMPLATE_TABLE
    "CREATE TABLE event_row(id INTEGER PRIMARY KEY, template INTEGER" EVENT_TABLE;

/* Events whole, as they are read. The order of the join is the cheap one whatever is asked. */
#define EVENTS                                                                                     \
  "SELECT e.id" EVENT_COLUMNS ", e.start + e.duration AS \"end\","                                 \
  " CASE WHEN t.flags & 32 THEN (SELECT call FROM batch_item x WHERE x.id = e.id) END AS call"     \
  " FROM event_row e CROSS JOIN template t ON t.id = e.template"

/* Where the program was: of a stack, as resolved; and of any, in a trace that is not resolved. */
#define PLACE_OF(stack)                                                                            \
  "(SELECT caller FROM call_site x WHERE x.stack = " stack "),"                                    \
  " (SELECT file FROM call_site x WHERE x.stack = " stack "),"                                     \
  " (SELECT line FROM call_site x WHERE x.stack = " stack ")"
#define BLOCK_PLACE PLACE_OF("t.stack AND b.how <> 4")
#define NO_PLACE    "NULL, NULL, NULL"
#define PLACE_MARK  "{place}" /* in schema.sql, where these go */

/* Blocks whole: `e` is the event, `t` what it has in common, `over` its end; `own` gives a column
 * of the event's own, or for memory of a graph the node's, `w`. */
#define BLOCKS(own, t, over, place)                                                                \
  "SELECT b.id, " t                                                                                \
  ".process, " own("e.a", "pointer") " AS pointer, CASE WHEN b.how <> 4 THEN " own(                \
      "e.bytes",                                                                                   \
      "bytes") " END AS bytes, " own(t ".device",                                                  \
                                     "device") " AS device, " own(t ".mem",                        \
                                                                  "mem") " AS mem, " t             \
                                                                         ".kind = 11 AS "          \
                                                                         "registered, b.how,"      \
                                                                         " CASE WHEN b.how <> 4 "  \
                                                                         "THEN b.event END AS "    \
                                                                         "alloc,"                  \
                                                                         " CASE b.how WHEN 4 "     \
                                                                         "THEN b.event ELSE "      \
                                                                         "b.event + b.free_after " \
                                                                         "END AS free,"            \
                                                                         " CASE WHEN b.how <> 4 "  \
                                                                         "THEN " over              \
                                                                         " END AS start,"          \
                                                                         " CASE b.how WHEN 4 "     \
                                                                         "THEN e.start ELSE " over \
                                                                         " + b.life END AS "       \
                                                                         "\"end\", b.born,"        \
                                                                         " ifnull(b.born, 0) + "   \
                                                                         "b.died_after AS died, "  \
                                                                         "CASE WHEN b.how <> 4 "   \
                                                                         "THEN " t                 \
                                                                         ".stack END AS stack,"    \
                                                                         " " t ".context" place    \
                                                                         " FROM block_row b "      \
                                                                         "CROSS JOIN "
#define OF_EVENT(column, of_node)  column
#define OF_EITHER(column, of_node) "CASE WHEN b.work IS NULL THEN " column " ELSE w." of_node " END"
#define EVENT_OF_BLOCK             "event_row e ON e.id = b.event CROSS JOIN template t ON t.id = e.template"
#define NODE_OF_BLOCK                                                                              \
  " LEFT JOIN graph_launch l ON l.event = CASE WHEN b.work IS NOT NULL THEN b.event END"           \
  " LEFT JOIN graph_work w ON w.content = l.content AND w.position = b.work"
#define BLOCKS_1            BLOCKS(OF_EVENT, "e", "e.\"end\"", "") "event e ON e.id = b.event"
#define BLOCKS_PLAIN(place) BLOCKS(OF_EVENT, "t", "e.start + e.duration", place) EVENT_OF_BLOCK
#define BLOCKS_2(place)                                                                            \
  BLOCKS(OF_EITHER, "t", "e.start + e.duration", place) EVENT_OF_BLOCK NODE_OF_BLOCK
#define BLOCK_VIEW                                                                                 \
  "CREATE VIEW block(id, process, pointer, bytes, device, mem, registered, how, alloc, free, "     \
  "start, \"end\", born, died, stack, context, caller, file, line) AS "

bool wr_schema_graph_memory(const wr_db *db)
{
  return db->schema >= 2 && wr_db_has_table(db, "graph_work") &&
         wr_db_has_table(db, "graph_launch") && wr_db_has_column(db, "graph_work", "pointer") &&
         wr_db_has_column(db, "block_row", "work");
}

weir_status wr_schema_blocks(const wr_db *db)
{
  static const char table[] = "CREATE TEMP TABLE block_row(id INTEGER PRIMARY KEY, event, how,"
                              " free_after, life, born, died_after, work)";
  weir_status st = wr_db_exec(db, table);
  if (!st && db->schema < 2) st = wr_db_exec(db, "CREATE TEMP VIEW block AS " BLOCKS_1);
  return st;
}

/* Looking for a node costs each block 1,000 instructions: not where there are none. */
static bool may_have_graph_blocks(const wr_db *db)
{
  int64_t may = 0;
  return wr_schema_graph_memory(db) &&
         !wr_db_number(db,
                       "SELECT EXISTS(SELECT 1 FROM graph_work WHERE pointer <> 0) OR NOT EXISTS("
                       "SELECT 1 FROM meta WHERE key = 'finished' AND value = 1)",
                       &may) &&
         may;
}

weir_status wr_schema_reader_views(const wr_db *db)
{
  if (db->schema < 2)
    return wr_db_exec(db, "CREATE TEMP VIEW rare_event AS"
                          " SELECT * FROM main.event WHERE kind = 10 OR kind = 13");
  weir_status st = wr_db_exec(db, "CREATE TEMP VIEW event AS " EVENTS ";"
                                  "CREATE TEMP VIEW rare_event AS " EVENTS " WHERE e.template < 0");
  if (st) return st;
  return wr_db_exec(db, may_have_graph_blocks(db) ? "CREATE TEMP VIEW block AS " BLOCKS_2("")
                                                  : "CREATE TEMP VIEW block AS " BLOCKS_PLAIN(""));
}

/* What a trace of an older Weir has not, and what stands for it. */
static const struct {
  const char *table, *column, *make;
} absent[] = {
    {"range_row", "id",
     "CREATE TEMP TABLE range_row(id, process, thread, kind, name, parent, start, \"end\", number,"
     " payload_type, payload); CREATE TEMP TABLE range_name(id, domain_id, domain, text, category,"
     " color); CREATE TEMP TABLE range_category(process, domain_id, category, name);"},
    {"device_work", "graph_node",
     "CREATE TEMP TABLE device_work(event, kind, copy, device, start, \"end\", bytes,"
     " graph_node);"},
    {"graph_work", "count",
     "CREATE TEMP TABLE graph_work(content, type, kernel, bytes, copy, mem, src_mem, device,"
     " src_device, conditional, count); CREATE TEMP TABLE graph_launch(event, content);"},
    {"asked", "calls",
     "CREATE TEMP TABLE asked(thread, api, address, event, calls, timed, timed_ns, about_ns,"
     " launches, followed);"},
    {"copy_part", "event",
     "CREATE TEMP TABLE copy_part(event INTEGER PRIMARY KEY, outcome, before, same, changed, tail,"
     " last)"},
    {"access_set", "parameters",
     "CREATE TEMP TABLE access_set(process, number, words, parameters); CREATE TEMP TABLE"
     " access_word(process, number, address, parameter, part); CREATE TEMP TABLE"
     " template_access(template, number);"},
    {"access_varying", "number", "CREATE TEMP TABLE access_varying(process, number, kernel);"},
    {"name", "string", "CREATE TEMP VIEW name AS SELECT *, NULL AS string FROM main.name"}};

weir_status wr_schema_stand_ins(const wr_db *db)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < sizeof(absent) / sizeof(absent[0]); i++)
    if (!wr_db_has_table(db, absent[i].table) ||
        !wr_db_has_column(db, absent[i].table, absent[i].column))
      st = wr_db_exec(db, absent[i].make);
  return st;
}

/* The same text with `place` for each mark (new, NULL: out of memory). */
static char *with_place(const char *sql, size_t bytes, const char *place)
{
  const char *end = sql + bytes, *mark;
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  for (; (mark = strstr(sql, PLACE_MARK)) && mark < end; sql = mark + strlen(PLACE_MARK))
    (void)fprintf(f, "%.*s%s", (int)(mark - sql), sql, place);
  (void)fwrite(sql, 1, (size_t)(end - sql), f);
  return fclose(f) ? NULL : text;
}

static weir_status create_with_place(const wr_db *db, const char *sql, size_t bytes,
                                     const char *place)
{
  char *text = with_place(sql, bytes, place);
  weir_status st = text ? wr_db_exec(db, text)
                        : weir_fail(WEIR_ENOMEM, "creating %s: out of host memory", db->path);
  free(text);
  return st;
}

/* The views and tables of schema.sql from `at` to `end`, as temporary ones. */
static weir_status create_temporary(const wr_db *db, const char *at, const char *end)
{
  static const char head[] = "\nCREATE ";
  char *sql = NULL;
  size_t bytes = 0;
  FILE *f = at && end ? open_memstream(&sql, &bytes) : NULL;
  if (!f) return weir_fail(WEIR_ENOMEM, "reading %s: out of host memory", db->path);
  for (const char *next; (next = strstr(at, head)) && next < end; at = next + strlen(head))
    (void)fprintf(f, "%.*s%sTEMP ", (int)(next - at), at, head);
  (void)fwrite(at, 1, (size_t)(end - at), f);
  weir_status st = fclose(f) ? weir_fail(WEIR_ENOMEM, "reading %s: out of host memory", db->path)
                             : create_with_place(db, sql, bytes, NO_PLACE);
  free(sql);
  return st;
}

/* From the first of Nsight's enumerations on, all that schema.sql has is Nsight's. */
weir_status wr_schema_nsys_views(const wr_db *db)
{
  weir_status st = wr_schema_stand_ins(db);
  const char *at = strstr(wr_schema_sql, "\nCREATE TABLE ENUM_CUDA_MEMCPY_OPER");
  return st ? st : create_temporary(db, at, wr_schema_sql + strlen(wr_schema_sql));
}

weir_status wr_schema_kind_views(const wr_db *db)
{
  weir_status st = wr_schema_stand_ins(db);
  const char *at = strstr(wr_schema_sql, "\nCREATE VIEW call(");
  return st ? st
            : create_temporary(db, at, strstr(wr_schema_sql, "\n-- ---- Nsight Systems' names"));
}

weir_status wr_schema_streams_view(const wr_db *db)
{
  return wr_db_exec(db, "CREATE TEMP VIEW IF NOT EXISTS several_streams AS"
                        " SELECT process, device FROM main.template WHERE kind IN (3, 4, 6)"
                        " AND status = 0 AND NOT flags & 16"
                        " GROUP BY process, device HAVING count(DISTINCT stream) > 1");
}

#define GRAPH_WORK                                                                                 \
  "graph_work(content INTEGER, position INTEGER, type INTEGER, kernel INTEGER, bytes INTEGER,"     \
  " copy INTEGER, mem INTEGER, src_mem INTEGER, device INTEGER, src_device INTEGER,"               \
  " conditional INTEGER, count INTEGER, pointer INTEGER, access INTEGER, target INTEGER, source "  \
  "INTEGER,"                                                                                       \
  " PRIMARY KEY(content, position))"                                                               \
  " WITHOUT ROWID"
#define GRAPH_LAUNCH "graph_launch(event INTEGER PRIMARY KEY, change INTEGER, content INTEGER)"

static const char graph_tables[] =
    "CREATE TABLE IF NOT EXISTS graph_change(id INTEGER PRIMARY KEY, process INTEGER,"
    " thread INTEGER, time INTEGER, event INTEGER, fact INTEGER, exec INTEGER, graph INTEGER,"
    " nodes INTEGER);"
    "CREATE TABLE IF NOT EXISTS graph_node(change INTEGER, position INTEGER, node INTEGER,"
    " parent INTEGER, type INTEGER, a INTEGER, b INTEGER, bytes INTEGER, copy INTEGER, mem INTEGER,"
    " src_mem INTEGER, device INTEGER, src_device INTEGER, conditional INTEGER, access INTEGER,"
    " PRIMARY KEY(change, position)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS " GRAPH_WORK ";"
    "CREATE TABLE IF NOT EXISTS " GRAPH_LAUNCH ";";

#define OUTCOME_ROW(id, value, text) "(" #value ",'" text "'),"
static const char hash_tables[] =
    "CREATE TABLE IF NOT EXISTS copy_hash(id INTEGER PRIMARY KEY, process INTEGER, event INTEGER,"
    " number INTEGER, outcome INTEGER, hash_low INTEGER, hash_high INTEGER, bytes INTEGER,"
    " uniform INTEGER, ns INTEGER, time INTEGER, range INTEGER);"
    "CREATE INDEX IF NOT EXISTS copy_hash_by_event ON copy_hash(event) WHERE event IS NOT NULL;"
    "CREATE TABLE IF NOT EXISTS copy_hash_call(process INTEGER, number INTEGER, event INTEGER);"
    "CREATE TABLE IF NOT EXISTS copy_part(event INTEGER PRIMARY KEY, outcome INTEGER,"
    " before INTEGER, same INTEGER, changed INTEGER, tail INTEGER, last INTEGER);"
    "CREATE TABLE IF NOT EXISTS hash_outcome(id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT OR REPLACE INTO hash_outcome VALUES " WEIR_HASH_OUTCOME_MAP(
        OUTCOME_ROW) "(0,NULL);DELETE FROM hash_outcome WHERE name IS NULL;";

static const char asked_table[] =
    "CREATE TABLE IF NOT EXISTS asked(thread INTEGER, api INTEGER, address INTEGER, event INTEGER,"
    " calls INTEGER, timed INTEGER, timed_ns INTEGER, about_ns INTEGER, launches INTEGER,"
    " followed INTEGER, PRIMARY KEY(thread, api, address)) WITHOUT ROWID;";

static const char access_tables[] =
    "CREATE TABLE IF NOT EXISTS access_set(process INTEGER, number INTEGER, words INTEGER,"
    " parameters INTEGER);"
    "CREATE TABLE IF NOT EXISTS access_word(process INTEGER, number INTEGER, address INTEGER,"
    " parameter INTEGER, part INTEGER);"
    "CREATE TABLE IF NOT EXISTS access_varying(process INTEGER, number INTEGER, kernel INTEGER);"
    "CREATE TABLE IF NOT EXISTS template_access(template INTEGER PRIMARY KEY, number INTEGER);";

static const char usage_table[] =
    "CREATE TABLE IF NOT EXISTS nvml_sample(id INTEGER PRIMARY KEY, time INTEGER, bus TEXT,"
    " total INTEGER, used INTEGER, reserved INTEGER, of_run INTEGER, of_others INTEGER);"
    /* A device that has one ordinal in all processes. */
    "CREATE VIEW IF NOT EXISTS device_usage(id, time_ns, device, bus, total_bytes, used_bytes,"
    " reserved_bytes, of_run_bytes, of_others_bytes) AS WITH"
    " bus(device, bus) AS (SELECT DISTINCT handle, upper(name) FROM name WHERE kind = 'device_bus')"
    " SELECT s.id, s.time, b.device, s.bus, s.total, s.used, s.reserved, s.of_run, s.of_others"
    " FROM nvml_sample s JOIN bus b ON b.bus = s.bus WHERE (SELECT count(*) FROM bus x"
    " WHERE x.bus = b.bus OR x.device = b.device) = 1;";

weir_status wr_schema_graph_launches(const wr_db *db)
{
  return wr_db_exec(db, "CREATE TEMP TABLE " GRAPH_WORK "; CREATE TEMP TABLE " GRAPH_LAUNCH);
}

/* A trace from before blocks could be a graph's, or NVML was asked. */
weir_status wr_schema_extend(const wr_db *db)
{
  weir_status st = wr_db_exec(db, graph_tables);
  if (!st) st = wr_db_exec(db, hash_tables);
  if (!st) st = wr_db_exec(db, asked_table);
  if (!st) st = wr_db_exec(db, access_tables);
  if (!st) st = wr_db_exec(db, usage_table);
  if (!st)
    st = wr_db_exec(db, "INSERT OR IGNORE INTO mem_kind VALUES(9, 'code', 7),"
                        " (10, 'context', 7)");
  if (!st && !wr_db_has_column(db, "process", "rank"))
    st = wr_db_exec(db, "ALTER TABLE process ADD COLUMN rank INTEGER");
  if (!st && !wr_db_has_column(db, "process", "starved_ns"))
    st = wr_db_exec(db, "ALTER TABLE process ADD COLUMN preempted INTEGER;"
                        "ALTER TABLE process ADD COLUMN starved_ns INTEGER");
  if (!st && !wr_db_has_column(db, "process", "unrecorded_spans"))
    st = wr_db_exec(db, "ALTER TABLE process ADD COLUMN unrecorded_calls INTEGER;"
                        "ALTER TABLE process ADD COLUMN unrecorded_spans INTEGER;"
                        "CREATE TABLE IF NOT EXISTS recording(id INTEGER PRIMARY KEY,"
                        " process INTEGER, time INTEGER, recorded TEXT, unrecorded_calls INTEGER)");
  bool pointers = wr_db_has_column(db, "graph_work", "pointer");
  if (!st && !pointers) st = wr_db_exec(db, "ALTER TABLE graph_work ADD COLUMN pointer INTEGER");
  if (!st && !wr_db_has_column(db, "graph_node", "access"))
    st = wr_db_exec(db, "ALTER TABLE graph_node ADD COLUMN access INTEGER;"
                        "ALTER TABLE graph_work ADD COLUMN access INTEGER");
  if (!st && !wr_db_has_column(db, "access_set", "parameters"))
    st = wr_db_exec(db, "ALTER TABLE access_set ADD COLUMN parameters INTEGER;"
                        "ALTER TABLE access_word ADD COLUMN parameter INTEGER;"
                        "ALTER TABLE access_word ADD COLUMN part INTEGER");
  if (!st && !wr_db_has_column(db, "graph_work", "target"))
    st = wr_db_exec(db, "ALTER TABLE graph_work ADD COLUMN target INTEGER;"
                        "ALTER TABLE graph_work ADD COLUMN source INTEGER");
  if (st || wr_db_has_column(db, "block_row", "work")) return st;
  st = wr_db_exec(db, "INSERT OR IGNORE INTO block_end VALUES(5, 'freed_by_graph');"
                      "INSERT OR IGNORE INTO cache_fact VALUES(10, 'graph_memory'), (11, 'taken')");
  if (st) return st;
  st = wr_db_exec(db, "ALTER TABLE block_row ADD COLUMN work INTEGER;"
                      "DROP VIEW IF EXISTS main.block");
  if (st) return st;
  return wr_db_exec(db, wr_db_has_table(db, "site") ? BLOCK_VIEW BLOCKS_2(", " BLOCK_PLACE)
                                                    : BLOCK_VIEW BLOCKS_2(", " NO_PLACE));
}

weir_status wr_schema_create(const wr_db *db)
{
  char pragmas[128];
  (void)snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id=%d; PRAGMA user_version=%d;",
                 WR_APPLICATION_ID, WR_SCHEMA_VERSION);
  weir_status st = wr_db_exec(db, "BEGIN IMMEDIATE");
  if (!st) st = wr_db_exec(db, pragmas);
  if (!st) st = wr_db_exec(db, event_tables);
  if (!st) st = wr_db_exec(db, graph_tables);
  if (!st) st = wr_db_exec(db, hash_tables);
  if (!st) st = wr_db_exec(db, asked_table);
  if (!st) st = wr_db_exec(db, access_tables);
  if (!st) st = wr_db_exec(db, usage_table);
  if (!st) st = create_with_place(db, wr_schema_sql, strlen(wr_schema_sql), NO_PLACE);
  if (!st)
    st = wr_db_exec(db, "CREATE VIEW event AS " EVENTS ";" BLOCK_VIEW BLOCKS_2(", " NO_PLACE));
  if (!st) st = wr_db_exec(db, fixed_rows);
  if (!st) st = insert_apis(db);
  if (!st) st = wr_db_exec(db, "COMMIT");
  return st;
}

/* {t}: what kind of table, {of}: of which database. */
#define WAIT_TABLES(t, of)                                                                         \
  "CREATE " t of "wait_detail(id INTEGER PRIMARY KEY, pending INTEGER, operations INTEGER,"        \
  " bytes INTEGER, streams INTEGER, stream INTEGER, youngest INTEGER, narrower INTEGER,"           \
  " covered_by INTEGER, host INTEGER, before_legacy INTEGER);"                                     \
  "CREATE " t of "wait_time(id INTEGER PRIMARY KEY, working_ns INTEGER, other_ns INTEGER,"         \
  " idle_ns INTEGER, unknown_ns INTEGER);"                                                         \
  "CREATE " t of                                                                                   \
  "device_gap(id INTEGER PRIMARY KEY, device INTEGER, start INTEGER, \"end\" INTEGER,"             \
  " unknown_ns INTEGER, queued_ns INTEGER, host_waiting_ns INTEGER, host_elsewhere_ns INTEGER,"    \
  " no_call_ns INTEGER, api INTEGER, work INTEGER, queue_full_ns INTEGER);"                        \
  "CREATE " t of "device_idle(device INTEGER, cause INTEGER, api INTEGER, ns INTEGER);"            \
  "CREATE " t of "queue_full(device INTEGER, api INTEGER, ns INTEGER);"                            \
  "CREATE " t of "idle_cause(id INTEGER PRIMARY KEY, name TEXT);"

#define CAUSE_ROW(id, value, name) "(" #value ",'" name "'),"

weir_status wr_schema_waits(const wr_db *db, bool temporary)
{
  static const char drop[] = "DROP TABLE IF EXISTS main.wait_detail;"
                             "DROP TABLE IF EXISTS main.wait_time;"
                             "DROP TABLE IF EXISTS main.device_gap;"
                             "DROP TABLE IF EXISTS main.device_idle;"
                             "DROP TABLE IF EXISTS main.queue_full;"
                             "DROP TABLE IF EXISTS main.idle_cause;";
  weir_status st = temporary ? WEIR_OK : wr_db_exec(db, drop);
  if (!st)
    st =
        wr_db_exec(db, temporary ? WAIT_TABLES("TEMP TABLE ", "") : WAIT_TABLES("TABLE ", "main."));
  static const char causes[] = "INSERT INTO idle_cause VALUES " WR_IDLE_MAP(
      CAUSE_ROW) "(NULL,NULL);"
                 "DELETE FROM idle_cause WHERE name IS NULL;";
  return st ? st : wr_db_exec(db, causes);
}

/* ---- places ---------------------------------------------------------------------------------- */

static const char place_tables[] =
    "CREATE TABLE source_line(frame INTEGER, inlined INTEGER, function TEXT, file TEXT,"
    " line INTEGER, PRIMARY KEY(frame, inlined)) WITHOUT ROWID;"
    "CREATE TABLE site(stack INTEGER PRIMARY KEY, frame INTEGER, inlined INTEGER);"
    "CREATE VIEW call_site(stack, caller, file, line) AS"
    " SELECT s.stack, l.function, l.file, l.line FROM site s CROSS JOIN source_line l"
    " ON l.frame = s.frame AND l.inlined = s.inlined;";

static weir_status drop_view(const wr_db *db, const char *name, int bytes)
{
  char drop[96];
  (void)snprintf(drop, sizeof(drop), "DROP VIEW IF EXISTS \"%.*s\"", bytes, name);
  return wr_db_exec(db, drop);
}

weir_status wr_schema_add_places(const wr_db *db)
{
  static const char head[] = "\nCREATE VIEW ";
  weir_status st = wr_db_exec(db, place_tables);
  for (const char *at = wr_schema_sql; !st && (at = strstr(at, head)); at++) {
    const char *name = at + strlen(head), *end = strchr(at, ';'), *mark = strstr(at, PLACE_MARK);
    if (!end || !mark || mark > end) continue;
    st = drop_view(db, name, (int)strcspn(name, "("));
    if (!st) st = create_with_place(db, at, (size_t)(end - at), PLACE_OF("t.stack"));
  }
  if (!st) st = drop_view(db, "block", 5);
  if (st) return st;
  return wr_db_exec(db, wr_schema_graph_memory(db) ? BLOCK_VIEW BLOCKS_2(", " BLOCK_PLACE)
                                                   : BLOCK_VIEW BLOCKS_PLAIN(", " BLOCK_PLACE));
}
