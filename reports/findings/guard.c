/* guard.c: see guard.h. */
#include "reports/findings/guard.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { INSTRUCTIONS = 10000 /* of SQLite's between two looks at the clock: well below 1 ms */ };

/* Names in SQL are the same in large letters and small ones. */
static uint64_t hash_name(const char *name)
{
  uint64_t hash = 5381;
  for (; name && *name; name++)
    hash = hash_mix(hash, (unsigned char)(*name >= 'A' && *name <= 'Z' ? *name + 32 : *name));
  return hash;
}

static weir_status add_table(void *context, sqlite3_stmt *q)
{
  wr_guard *g = context;
  const char *name = (const char *)sqlite3_column_text(q, 0);
  return hash_map_put(&g->tables, hash_name(name), 1) ? wr_db_out_of_memory(g->db) : WEIR_OK;
}

static int refuse(wr_guard *g, const char *what, const char *name)
{
  (void)snprintf(g->refused, sizeof(g->refused), "%s%s%.48s", what, name ? " " : "",
                 name ? name : "");
  return SQLITE_DENY;
}

static int may(void *context, int action, const char *a, const char *b, const char *database,
               const char *through)
{
  wr_guard *g = context;
  (void)through;
  switch (action) {
  case SQLITE_SELECT:
  case SQLITE_RECURSIVE:
    return SQLITE_OK;
  case SQLITE_FUNCTION:
    return b && !strcmp(b, "load_extension") ? refuse(g, "call", b) : SQLITE_OK;
  case SQLITE_READ:
    if (!database || !strcmp(database, "temp")) return SQLITE_OK;
    if (!strcmp(database, "main") && hash_map_get(&g->tables, hash_name(a))) return SQLITE_OK;
    return refuse(g, "read", a);
  default:
    return refuse(g, "do anything but read", NULL);
  }
}

static int64_t now_ns(void)
{
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int out_of_time(void *context)
{
  wr_guard *g = context;
  if (g->stop && *g->stop) return 1;
  if (g->paused) return 0;
  if (g->tick) g->tick(g->tick_context);
  g->late = now_ns() > g->end;
  return g->late;
}

void wr_guard_time(wr_guard *g, int64_t ms)
{
  g->end = now_ns() + ms * 1000000;
  g->late = g->paused = false;
  g->refused[0] = '\0';
}

void wr_guard_pause(wr_guard *g)
{
  g->paused = true;
  g->paused_at = now_ns();
}

void wr_guard_go_on(wr_guard *g)
{
  g->paused = false;
  g->end += now_ns() - g->paused_at;
}

weir_status wr_guard_raise(wr_guard *g, const wr_db *db)
{
  g->db = db;
  weir_status s = wr_db_each(db,
                             "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
                             " AND sql NOT LIKE 'CREATE VIRTUAL%'",
                             add_table, g);
  if (s) return s;
  sqlite3_set_authorizer(db->handle, may, g);
  sqlite3_progress_handler(db->handle, INSTRUCTIONS, out_of_time, g);
  return WEIR_OK;
}

void wr_guard_lower(wr_guard *g)
{
  if (g->db) sqlite3_set_authorizer(g->db->handle, NULL, NULL);
  if (g->db) sqlite3_progress_handler(g->db->handle, 0, NULL, NULL);
  hash_map_free(&g->tables);
}
