/* row.c: see row.h. What a, b and `copy` of an event are depends on its kind (SCHEMA.md,
 * `event`). */
#include "reports/listing/row.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/model/named.h"

/* What is asked of an event, in the order of sql_number. */
#define NUMBERS                                                                                    \
  "SELECT e.id, e.start, e.duration, (SELECT pid FROM main.process x WHERE x.id = e.process),"     \
  " (SELECT tid FROM main.thread x WHERE x.id = e.thread), e.kind, e.api, e.status, e.device,"     \
  " e.src_device, e.stream, e.bytes, e.copy, e.mem, e.src_mem, e.flags, e.a, e.b, e.call,"         \
  " e.context, e.stack, (SELECT n.name FROM main.name n WHERE e.kind = 6 AND"                      \
  " n.process = e.process AND n.kind = 'kernel' AND n.handle = e.a)"

typedef enum sql_number {
  SQL_ID,
  SQL_START,
  SQL_DURATION,
  SQL_PID,
  SQL_TID,
  SQL_KIND,
  SQL_API,
  SQL_STATUS,
  SQL_DEVICE,
  SQL_SRC_DEVICE,
  SQL_STREAM,
  SQL_BYTES,
  SQL_COPY,
  SQL_MEM,
  SQL_SRC_MEM,
  SQL_FLAGS,
  SQL_A,
  SQL_B,
  SQL_CALL,
  SQL_CONTEXT,
  SQL_STACK,
  SQL_KERNEL,
  SQL_CALLER,
  SQL_FILE,
  SQL_LINE,
  SQL_RANGE,
  SQL_HASH,
  SQL_UNIFORM,
  SQL_THREAD_NAME,
  SQL_DEVICE_NAME,
  SQL_STREAM_NAME,
  SQL_MEMORY_NAME,
  SQL_HANDLE_NAME,
  SQL_DEVICE_START,
  SQL_DEVICE_NS
} sql_number;

#define PLACE                                                                                      \
  ", l.function, l.file, l.line, %s, %s, %s, %s FROM event e LEFT JOIN main.site s ON s.stack = "  \
  "e.stack"                                                                                        \
  " LEFT JOIN main.source_line l ON l.frame = s.frame AND l.inlined = s.inlined WHERE e.id = ?1"
#define NO_PLACE ", NULL, NULL, NULL, %s, %s, %s, %s FROM event e WHERE e.id = ?1"
#define INNERMOST_RANGE                                                                            \
  "(SELECT n.text FROM main.event_range x JOIN main.range_row r ON r.id = x.range"                 \
  " JOIN main.range_name n ON n.id = r.name WHERE x.event = e.id)"

/* Of copies, as people write it; the index has a row of those alone that were hashed. */
#define HASH                                                                                       \
  "(SELECT printf('%016x%016x', h.hash_high, h.hash_low) FROM main.copy_hash h"                    \
  " WHERE h.event = e.id AND h.event IS NOT NULL AND h.outcome = 1),"                              \
  " (SELECT h.uniform FROM main.copy_hash h WHERE h.event = e.id AND h.event IS NOT NULL)"

/* What the program calls a thing by NVTX: the last name it was given before the call's end. */
#define GIVEN(kinds, handle)                                                                       \
  "(SELECT n.name FROM main.name n WHERE n.process = e.process AND n.kind IN (" kinds ")"          \
  " AND n.handle = " handle " AND n.time <= e.\"end\" ORDER BY n.time DESC, n.rowid DESC LIMIT 1)"
#define TID           "(SELECT tid FROM main.thread x WHERE x.id = e.thread)"
#define GIVEN_THREAD  GIVEN("'os_thread'", TID)
#define GIVEN_DEVICE  GIVEN("'device_label'", "e.device")
#define GIVEN_STREAM  GIVEN("'stream'", "e.stream")
#define GIVEN_MEMORY  GIVEN("'heap', 'region'", "e.a")
#define GIVEN_EVENT   GIVEN("'event'", "e.a")
#define GIVEN_CONTEXT GIVEN("'context'", "e.a")
/* An allocation has its name after it. */
#define NAMED_BLOCK "(SELECT b.name FROM temp.named_block b WHERE b.event = e.id LIMIT 1)"
#define GIVEN_NAMES                                                                                \
  GIVEN_THREAD ", " GIVEN_DEVICE ", CASE WHEN e.kind <> 13 THEN " GIVEN_STREAM " END,"             \
               " CASE WHEN e.kind = 1 THEN " NAMED_BLOCK                                           \
               " WHEN e.kind IN (2, 3, 4, 11) THEN " GIVEN_MEMORY                                  \
               " END, CASE WHEN e.kind IN (5, 8) THEN " GIVEN_EVENT                                \
               " WHEN e.kind IN (9, 10) THEN " GIVEN_CONTEXT " END"
#define NO_NAMES "NULL, NULL, NULL, NULL, NULL"

/* When the device began with it, and its time there: what the views copy, memset and launch
 * have. */
#define ON_DEVICE(what)                                                                            \
  "(SELECT " what " FROM main.device_work d WHERE d.event = e.id AND d.event IS NOT NULL AND ("    \
  "e.kind = 3 AND d.kind = 1 OR e.kind = 4 AND d.kind = 2 OR e.kind = 6 AND d.kind IN (3, 4)))"
#define DEVICE_TIMES    ON_DEVICE("min(d.start)") ", " ON_DEVICE("sum(d.\"end\" - d.start)")
#define NO_DEVICE_TIMES "NULL, NULL"

/* Whether the program has given names to anything: looking for them costs each row some steps. */
static weir_status has_names(const wr_db *db, int64_t *any)
{
  *any = 0;
  if (!wr_db_has_table(db, "name") || !wr_db_has_column(db, "name", "time")) return WEIR_OK;
  return wr_db_number(db,
                      "SELECT EXISTS(SELECT 1 FROM main.name WHERE kind IN ('os_thread',"
                      " 'device_label', 'stream', 'event', 'context', 'heap', 'region'))",
                      any);
}

bool listing_has_ranges(const wr_db *db)
{
  return wr_db_has_table(db, "event_range") && wr_db_has_table(db, "range_row") &&
         wr_db_has_table(db, "range_name");
}

weir_status listing_row_prepare(const wr_db *db, sqlite3_stmt **out)
{
  bool placed = wr_db_has_table(db, "site") && wr_db_has_table(db, "source_line");
  const char *range = listing_has_ranges(db) ? INNERMOST_RANGE : "NULL";
  const char *hash = wr_db_has_table(db, "copy_hash") ? HASH : "NULL, NULL";
  int64_t any = 0;
  weir_status s = has_names(db, &any);
  if (!s && any) s = wr_named_blocks(db);
  if (s) return s;
  const char *given = any ? GIVEN_NAMES : NO_NAMES;
  const char *times = wr_db_has_table(db, "device_work") ? DEVICE_TIMES : NO_DEVICE_TIMES;
  char *sql = placed ? wr_format(NUMBERS PLACE, range, hash, given, times)
                     : wr_format(NUMBERS NO_PLACE, range, hash, given, times);
  s = sql ? wr_db_prepare(db, sql, out) : wr_db_out_of_memory(db);
  free(sql);
  return s;
}

const char *const listing_columns[LISTING_COLUMNS] = {
#define LISTING_COLUMN_NAME(name) #name,
    LISTING_COLUMN_MAP(LISTING_COLUMN_NAME)
#undef LISTING_COLUMN_NAME
};

/* ---- values ---------------------------------------------------------------------------------- */

static void set_number(listing_row *row, listing_column column, int64_t number)
{
  row->at[column] = (wr_field){.type = WR_FIELD_WHOLE, .whole = number};
}

static void set_handle(listing_row *row, listing_column column, int64_t handle)
{
  if (handle) row->at[column] = (wr_field){.type = WR_FIELD_HANDLE, .whole = handle};
}

static void set_text(listing_row *row, listing_column column, const char *text)
{
  if (text) row->at[column] = (wr_field){.type = WR_FIELD_TEXT, .text = text};
}

static void set_flag(listing_row *row, listing_column column, bool set)
{
  if (set) set_number(row, column, 1);
}

static void copy_number(listing_row *row, listing_column column, sqlite3_stmt *q, sql_number from)
{
  if (sqlite3_column_type(q, (int)from) != SQLITE_NULL)
    set_number(row, column, sqlite3_column_int64(q, (int)from));
}

static int64_t number_sql(sqlite3_stmt *q, sql_number from)
{
  return sqlite3_column_int64(q, (int)from);
}

/* ---- by kind --------------------------------------------------------------------------------- */

static void read_copy(listing_row *row, sqlite3_stmt *q, const listing_names *names)
{
  copy_number(row, LISTING_source_device, q, SQL_SRC_DEVICE);
  set_text(row, LISTING_direction, listing_name(names, NAMES_DIRECTION, number_sql(q, SQL_COPY)));
  set_text(row, LISTING_source_memory,
           listing_name(names, NAMES_MEMORY, number_sql(q, SQL_SRC_MEM)));
  set_handle(row, LISTING_source, number_sql(q, SQL_B));
  set_text(row, LISTING_hash, (const char *)sqlite3_column_text(q, SQL_HASH));
  set_flag(row, LISTING_uniform, number_sql(q, SQL_UNIFORM) != 0);
}

static void read_launch(listing_row *row, sqlite3_stmt *q)
{
  uint64_t grid = (uint64_t)number_sql(q, SQL_B);
  set_text(row, LISTING_kernel, (const char *)sqlite3_column_text(q, SQL_KERNEL));
  set_number(row, LISTING_grid_x, (int64_t)(grid & UINT32_MAX));
  set_number(row, LISTING_grid_y, (int64_t)(grid >> 32 & UINT16_MAX));
  set_number(row, LISTING_grid_z, (int64_t)(grid >> 48));
  copy_number(row, LISTING_threads, q, SQL_BYTES);
}

static void read_fact(listing_row *row, sqlite3_stmt *q, const listing_names *names)
{
  int64_t fact = number_sql(q, SQL_COPY);
  set_text(row, LISTING_action, listing_name(names, NAMES_FACT, fact));
  if (fact == WEIR_CACHE_GIVEN_BACK || fact == WEIR_CACHE_TAINTED)
    set_text(row, LISTING_reason, listing_name(names, NAMES_REASON, number_sql(q, SQL_B)));
}

/* Why a rerouted allocation or free was no hit. */
static void read_reason(listing_row *row, sqlite3_stmt *q, const listing_names *names)
{
  int64_t reason = number_sql(q, SQL_COPY);
  if (reason) set_text(row, LISTING_reason, listing_name(names, NAMES_REASON, reason));
}

enum { NOT_READY = 600 /* of a poll: others of it may be the same event */ };

static bool has_size(int64_t kind)
{
  return kind == WEIR_EV_ALLOC || kind == WEIR_EV_COPY || kind == WEIR_EV_MEMSET ||
         kind == WEIR_EV_HOSTREG || kind == WEIR_EV_CACHE;
}

static bool has_pointer(int64_t kind)
{
  return has_size(kind) || kind == WEIR_EV_FREE;
}

static void read_by_kind(listing_row *row, sqlite3_stmt *q, const listing_names *names)
{
  int64_t kind = number_sql(q, SQL_KIND), flags = number_sql(q, SQL_FLAGS);
  if (has_size(kind)) copy_number(row, LISTING_bytes, q, SQL_BYTES);
  set_handle(row, has_pointer(kind) ? LISTING_pointer : LISTING_handle, number_sql(q, SQL_A));
  if (has_pointer(kind))
    set_text(row, LISTING_memory, listing_name(names, NAMES_MEMORY, number_sql(q, SQL_MEM)));
  if (kind == WEIR_EV_ALLOC || kind == WEIR_EV_FREE) read_reason(row, q, names);
  if (kind == WEIR_EV_FREE && number_sql(q, SQL_B)) copy_number(row, LISTING_waited_ns, q, SQL_B);
  if (kind == WEIR_EV_COPY) read_copy(row, q, names);
  if (kind == WEIR_EV_MEMSET) copy_number(row, LISTING_value, q, SQL_B);
  if (kind == WEIR_EV_SYNC && number_sql(q, SQL_STATUS) == NOT_READY &&
      number_sql(q, SQL_BYTES) > 0)
    set_number(row, LISTING_count, (int64_t)((uint64_t)number_sql(q, SQL_BYTES) + 1));
  if (kind == WEIR_EV_SYNC)
    set_text(row, LISTING_waits_for, listing_name(names, NAMES_WAIT, number_sql(q, SQL_COPY)));
  if (kind == WEIR_EV_LAUNCH) read_launch(row, q);
  if (kind == WEIR_EV_CACHE) read_fact(row, q, names);
  set_flag(row, LISTING_asynchronous, flags & WEIR_EVF_ASYNC);
  set_flag(row, LISTING_captured, flags & WEIR_EVF_CAPTURE);
  set_flag(row, LISTING_cached, flags & WEIR_EVF_CACHED);
  set_flag(row, LISTING_staged, kind == WEIR_EV_COPY && flags & WEIR_EVF_STAGED);
}

/* The default streams by name: their handles are the same numbers in every program. */
static void read_stream(listing_row *row, sqlite3_stmt *q)
{
  uint64_t stream = (uint64_t)number_sql(q, SQL_STREAM);
  if (number_sql(q, SQL_KIND) == WEIR_EV_CACHE) return;
  if (stream == WEIR_STREAM_LEGACY)
    set_text(row, LISTING_stream, "legacy");
  else if (stream == WEIR_STREAM_PER_THREAD)
    set_text(row, LISTING_stream, "per-thread");
  else
    set_handle(row, LISTING_stream, (int64_t)stream);
}

void listing_row_read(listing_row *row, sqlite3_stmt *q, const listing_names *names)
{
  static const struct {
    listing_column to;
    sql_number from;
  } plain[] = {{LISTING_id, SQL_ID},
               {LISTING_start_ns, SQL_START},
               {LISTING_duration_ns, SQL_DURATION},
               {LISTING_pid, SQL_PID},
               {LISTING_tid, SQL_TID},
               {LISTING_status, SQL_STATUS},
               {LISTING_device, SQL_DEVICE},
               {LISTING_call, SQL_CALL},
               {LISTING_context, SQL_CONTEXT},
               {LISTING_stack, SQL_STACK},
               {LISTING_line, SQL_LINE},
               {LISTING_device_start_ns, SQL_DEVICE_START},
               {LISTING_device_ns, SQL_DEVICE_NS}};
  memset(row, 0, sizeof *row);
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    copy_number(row, plain[i].to, q, plain[i].from);
  set_text(row, LISTING_kind, listing_name(names, NAMES_KIND, number_sql(q, SQL_KIND)));
  if (number_sql(q, SQL_API))
    set_text(row, LISTING_function, listing_name(names, NAMES_API, number_sql(q, SQL_API)));
  read_stream(row, q);
  read_by_kind(row, q, names);
  set_text(row, LISTING_caller, (const char *)sqlite3_column_text(q, SQL_CALLER));
  set_text(row, LISTING_file, (const char *)sqlite3_column_text(q, SQL_FILE));
  set_text(row, LISTING_range, (const char *)sqlite3_column_text(q, SQL_RANGE));
  set_text(row, LISTING_thread_name, (const char *)sqlite3_column_text(q, SQL_THREAD_NAME));
  set_text(row, LISTING_device_name, (const char *)sqlite3_column_text(q, SQL_DEVICE_NAME));
  set_text(row, LISTING_stream_name, (const char *)sqlite3_column_text(q, SQL_STREAM_NAME));
  set_text(row, LISTING_memory_name, (const char *)sqlite3_column_text(q, SQL_MEMORY_NAME));
  set_text(row, LISTING_handle_name, (const char *)sqlite3_column_text(q, SQL_HANDLE_NAME));
}
