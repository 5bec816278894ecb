/* listing.c: the events of a trace in the order of time.
 *
 * A trace has its events in the order in which its processes' spools were read, and no index by
 * time. So one statement gives the numbers of the events that pass the filters, in order of their
 * beginnings: SQLite sorts two integers an event, in memory while they fit its cache and in a
 * temporary file beyond. Another reads each event by its number. */
#include "reports/listing/listing.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/listing/text.h"
#include "reports/model/open.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

#define KIND_WORD(id, value, name, extended) {name, WEIR_EV_##id, extended},

static const struct kind_word {
  const char *name;
  unsigned kind;
  bool extended; /* no event: a stack, a name */
} kind_words[] = {WEIR_EVENT_KIND_MAP(KIND_WORD){"allocation", WEIR_EV_ALLOC, false},
                  {"release", WEIR_EV_FREE, false},
                  {"wait", WEIR_EV_SYNC, false},
                  {"registration", WEIR_EV_HOSTREG, false},
                  {"cache_action", WEIR_EV_CACHE, false}};

uint64_t listing_kind(const char *name, size_t bytes)
{
  for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++) {
    const struct kind_word *k = &kind_words[i];
    if (!k->extended && strlen(k->name) == bytes && !strncmp(k->name, name, bytes))
      return UINT64_C(1) << k->kind;
  }
  return 0;
}

#define KIND_LIST_0(name)                    ", " name
#define KIND_LIST_1(name)                    ""
#define KIND_LIST(id, value, name, extended) KIND_LIST_##extended(name)

const char *listing_kinds(void)
{
  static const char list[] = WEIR_EVENT_KIND_MAP(KIND_LIST);
  return list + strlen(", ");
}

/* ---- filters --------------------------------------------------------------------------------- */

enum { ARG_KINDS = 1, ARG_FUNCTIONS, ARG_FIRST_NUMBER };

/* The filters that are one number, and what an event must be. The k-th is parameter
 * ARG_FIRST_NUMBER + k. */
static const struct number_filter {
  size_t offset; /* of a listing_number in listing_filter */
  const char *sql;
} number_filters[] = {
    {offsetof(listing_filter, device), "(e.device = ?3 OR e.src_device = ?3)"},
    {offsetof(listing_filter, stream), "e.stream = ?4 AND e.kind <> 13"},
    {offsetof(listing_filter, thread), "e.thread IN (SELECT id FROM main.thread WHERE tid = ?5)"},
    {offsetof(listing_filter, process),
     "e.process IN (SELECT id FROM main.process WHERE pid = ?6)"},
    {offsetof(listing_filter, min_bytes), "e.kind IN (1, 3, 4, 11, 13) AND e.bytes >= ?7"},
    {offsetof(listing_filter, min_ns), "e.duration >= ?8"},
    {offsetof(listing_filter, from), "e.start >= ?9"},
    {offsetof(listing_filter, to), "e.start < ?10"},
};

#define ARG_RANGES     11
#define FUNCTIONS_LIKE "SELECT id FROM main.api WHERE name GLOB ?2"

/* The ranges of that text, and all within them (UNION: each once, so it ends). */
#define RANGES_LIKE                                                                                \
  "SELECT r.id FROM main.range_row r JOIN main.range_name n ON n.id = r.name"                      \
  " WHERE n.text GLOB ?11"
#define IN_RANGE                                                                                   \
  " AND e.id IN (SELECT event FROM main.event_range WHERE range IN ("                              \
  "WITH RECURSIVE inside(id) AS (" RANGES_LIKE " UNION SELECT c.id FROM inside i"                  \
  " JOIN temp.range_child c ON c.parent = i.id) SELECT id FROM inside))"

static const listing_number *column_number_at(const listing_filter *f, size_t i)
{
  return (const listing_number *)(const void *)((const char *)f + number_filters[i].offset);
}

/* "SELECT e.id ... WHERE ..." (new, NULL: out of memory). */
static char *order_sql(const listing_filter *f)
{
  char *sql = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&sql, &bytes);
  if (!to) return NULL;
  (void)fputs("SELECT e.id FROM event e WHERE 1", to);
  if (f->kinds) (void)fputs(" AND e.kind BETWEEN 0 AND 63 AND ?1 >> e.kind & 1", to);
  if (f->functions) (void)fputs(" AND e.api IN (" FUNCTIONS_LIKE ")", to);
  if (f->ranges) (void)fputs(IN_RANGE, to);
  for (size_t i = 0; i < sizeof number_filters / sizeof *number_filters; i++)
    if (column_number_at(f, i)->asked) (void)fprintf(to, " AND %s", number_filters[i].sql);
  (void)fputs(" ORDER BY e.start, e.id", to);
  if (!fclose(to)) return sql;
  free(sql);
  return NULL;
}

static weir_status prepare_order(const wr_db *db, const listing_filter *f, sqlite3_stmt **out)
{
  char *sql = order_sql(f);
  weir_status s = sql ? wr_db_prepare(db, sql, out) : wr_db_out_of_memory(db);
  free(sql);
  if (s) return s;
  if (f->kinds) sqlite3_bind_int64(*out, ARG_KINDS, (int64_t)f->kinds);
  if (f->functions) sqlite3_bind_text(*out, ARG_FUNCTIONS, f->functions, -1, SQLITE_STATIC);
  if (f->ranges) sqlite3_bind_text(*out, ARG_RANGES, f->ranges, -1, SQLITE_STATIC);
  for (size_t i = 0; i < sizeof number_filters / sizeof *number_filters; i++)
    if (column_number_at(f, i)->asked)
      sqlite3_bind_int64(*out, ARG_FIRST_NUMBER + (int)i, column_number_at(f, i)->value);
  return WEIR_OK;
}

/* A name that the trace does not know is a mistake, and not a function or a range without calls. */
static weir_status check_known(const wr_db *db, const char *sql, int parameter, const char *name,
                               const char *what)
{
  sqlite3_stmt *q = NULL;
  weir_status s = wr_db_prepare(db, sql, &q);
  if (s) return s;
  sqlite3_bind_text(q, parameter, name, -1, SQLITE_STATIC);
  int code = sqlite3_step(q);
  if (code == SQLITE_DONE)
    s = weir_fail(WEIR_EINVAL, "no %s in %s is called '%s'", what, db->path, name);
  else if (code != SQLITE_ROW)
    s = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  return s;
}

static weir_status check_ranges(const wr_db *db, const char *ranges)
{
  if (!listing_has_ranges(db))
    return weir_fail(WEIR_EINVAL, "%s has no ranges: the Weir that wrote it recorded none",
                     db->path);
  weir_status s = check_known(db, RANGES_LIKE, ARG_RANGES, ranges, "range");
  return s ? s
           : wr_db_exec(db, "CREATE TEMP TABLE range_child AS SELECT parent, id FROM main.range_row"
                            " WHERE parent IS NOT NULL;"
                            "CREATE INDEX temp.range_by_parent ON range_child(parent)");
}

static weir_status check_names(const wr_db *db, const listing_filter *f)
{
  weir_status s = WEIR_OK;
  if (f->functions) s = check_known(db, FUNCTIONS_LIKE, ARG_FUNCTIONS, f->functions, "function");
  return s || !f->ranges ? s : check_ranges(db, f->ranges);
}

/* ---- the walk -------------------------------------------------------------------------------- */

typedef struct walk {
  FILE *out;
  listing_format format;
  wr_rows rows; /* unless it is text */
  const wr_db *db;
  sqlite3_stmt *order, *event;
  listing_names names;
} walk;

static weir_status write_event(walk *w)
{
  listing_row row;
  sqlite3_bind_int64(w->event, 1, sqlite3_column_int64(w->order, 0));
  int code = sqlite3_step(w->event);
  if (code == SQLITE_ROW) {
    listing_row_read(&row, w->event, &w->names);
    if (w->format == LISTING_TEXT)
      listing_text_row(w->out, &row);
    else
      (void)wr_rows_put(&w->rows, row.at);
  }
  sqlite3_reset(w->event);
  if (code != SQLITE_ROW && code != SQLITE_DONE) return wr_db_fail(w->db, "reading");
  return ferror(w->out) ? weir_fail_errno(WEIR_EIO, errno, "writing the events") : WEIR_OK;
}

static void write_head(walk *w)
{
  if (w->format == LISTING_TEXT) {
    listing_text_head(w->out);
    return;
  }
  w->rows = (wr_rows){.out = w->out,
                      .what = "the events",
                      .format = w->format == LISTING_CSV ? WR_ROWS_CSV : WR_ROWS_JSONL,
                      .quoted = " ;\t",
                      .columns = LISTING_COLUMNS};
  memcpy(w->rows.heading, listing_columns, sizeof listing_columns);
  wr_rows_begin(&w->rows, NULL, NULL);
}

static weir_status write_events(walk *w)
{
  int code;
  weir_status s = WEIR_OK;
  while (!s && (code = sqlite3_step(w->order)) != SQLITE_DONE)
    s = code == SQLITE_ROW ? write_event(w) : wr_db_fail(w->db, "reading");
  return s;
}

weir_status listing_write(FILE *out, const char *trace, const listing_settings *settings)
{
  wr_input in;
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  walk w = {.out = out, .format = settings->format, .db = &in.db};
  s = check_names(&in.db, &settings->filter);
  if (!s) s = listing_names_load(&w.names, &in.db);
  if (!s) s = prepare_order(&in.db, &settings->filter, &w.order);
  if (!s) s = listing_row_prepare(&in.db, &w.event);
  if (!s) write_head(&w);
  if (!s) s = write_events(&w);
  sqlite3_finalize(w.order);
  sqlite3_finalize(w.event);
  listing_names_free(&w.names);
  wr_input_close(&in);
  return s;
}
