/* guard.c: see guard.h. */
#include "reports/findings/guard.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
  INSTRUCTIONS = 10000,  /* of SQLite's between two looks at the clock: well below 1 ms, mostly */
  LONGEST_PATTERN = 1000 /* of LIKE and GLOB, bytes */
};

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

/* Functions that take a few numbers, and no time. */
static bool is_brief(const char *name)
{
  static const char *const names[] = {
      "abs",    "avg",  "coalesce",   "count",      "dense_rank", "first_value", "ifnull",
      "iif",    "lag",  "last_value", "lead",       "max",        "min",         "nth_value",
      "nullif", "rank", "round",      "row_number", "sum",        "total"};
  for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

static int may_call(wr_guard *g, const char *function)
{
  if (function && !strcmp(function, "load_extension")) return refuse(g, "call", function);
  if (is_brief(function) || ++g->functions <= WR_GUARD_FUNCTIONS) return SQLITE_OK;
  return refuse(g, "call more than 100 functions", NULL);
}

static int may(void *context, int action, const char *a, const char *b, const char *database,
               const char *through)
{
  wr_guard *g = context;
  (void)through;
  if (!g->raised || (g->facts && g->facts->declaring)) return SQLITE_OK;
  switch (action) {
  case SQLITE_SELECT:
  case SQLITE_RECURSIVE:
    return SQLITE_OK;
  case SQLITE_FUNCTION:
    return may_call(g, b);
  case SQLITE_READ:
    if (!database || !strcmp(database, "temp")) return SQLITE_OK;
    if (!strcmp(database, "main") && hash_map_get(&g->tables, hash_name(a))) return SQLITE_OK;
    if (g->facts && wr_fact_is_table(g->facts, a)) return SQLITE_OK;
    return refuse(g, "read", a);
  default:
    return refuse(g, "do anything but read", NULL);
  }
}

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t now_of(clockid_t clock)
{
  struct timespec now;
  if (clock_gettime(clock, &now)) return INT64_MAX; /* the thread is gone */
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool wr_guard_late(wr_guard *g)
{
  pthread_mutex_lock(&g->lock);
  bool late = g->late;
  pthread_mutex_unlock(&g->lock);
  return late;
}

/* What SQLite asks now and then. */
static int out_of_time(void *context)
{
  wr_guard *g = context;
  if (g->stop && *g->stop) return 1;
  if (g->paused) return 0;
  if (g->tick) g->tick(g->tick_context);
  pthread_mutex_lock(&g->lock);
  g->late |= now_of(g->clock) > g->end;
  bool late = g->late;
  pthread_mutex_unlock(&g->lock);
  return late;
}

/* Waits until the statement's time can be over, which no wall clock says sooner; `lock` is held. */
static void wait_for_end(wr_guard *g)
{
  struct timespec until;
  int64_t left = g->end - now_of(g->clock);
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t at = until.tv_nsec + (left > 0 ? left : 0);
  until.tv_sec += at / 1000000000;
  until.tv_nsec = at % 1000000000;
  if (g->paused || g->late)
    (void)pthread_cond_wait(&g->changed, &g->lock);
  else
    (void)pthread_cond_timedwait(&g->changed, &g->lock, &until);
}

static void *watch_statement(void *context)
{
  wr_guard *g = context;
  pthread_mutex_lock(&g->lock);
  while (!g->ended) {
    wait_for_end(g);
    if (g->ended || g->paused || g->late || now_of(g->clock) <= g->end) continue;
    g->late = true;
    sqlite3_interrupt(g->db->handle);
  }
  pthread_mutex_unlock(&g->lock);
  return NULL;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void set_limits(wr_guard *g)
{
  g->value_bytes = sqlite3_limit(g->db->handle, SQLITE_LIMIT_LENGTH, WR_GUARD_VALUE_BYTES);
  g->pattern_bytes =
      sqlite3_limit(g->db->handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN);
  g->heap_bytes = sqlite3_hard_heap_limit64(g->heap_at);
}

static void restore_limits(const wr_guard *g)
{
  sqlite3_limit(g->db->handle, SQLITE_LIMIT_LENGTH, g->value_bytes);
  sqlite3_limit(g->db->handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, g->pattern_bytes);
  sqlite3_hard_heap_limit64(g->heap_bytes);
  sqlite3_soft_heap_limit64(0); /* which a hard limit sets as well */
}

const char *wr_guard_limit(const wr_guard *g, int code)
{
  if (code == SQLITE_TOOBIG) return "it makes or reads a value of more than 16 KiB";
  if (code == SQLITE_NOMEM && g->raised && sqlite3_memory_highwater(0) > g->heap_at / 2)
    return "it takes more than 512 MiB of memory";
  return NULL;
}

/* ---- from its raising to its lowering -------------------------------------------------------- */

void wr_guard_time(wr_guard *g, int64_t ms)
{
  pthread_mutex_lock(&g->lock);
  g->end = now_of(g->clock) + ms * 1000000;
  g->late = g->paused = false;
  pthread_cond_signal(&g->changed);
  pthread_mutex_unlock(&g->lock);
  g->functions = 0;
  g->refused[0] = '\0';
}

void wr_guard_pause(wr_guard *g)
{
  if (!g->raised) return;
  pthread_mutex_lock(&g->lock);
  g->paused = true;
  g->paused_at = now_of(g->clock);
  pthread_mutex_unlock(&g->lock);
  restore_limits(g);
}

void wr_guard_go_on(wr_guard *g)
{
  if (!g->raised) return;
  set_limits(g);
  pthread_mutex_lock(&g->lock);
  g->paused = false;
  g->end += now_of(g->clock) - g->paused_at;
  pthread_cond_signal(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

static weir_status start_watchdog(wr_guard *g)
{
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  g->ended = g->late = false;
  g->paused = true; /* until it has a time */
  sigset_t all, was;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &was); /* they are the other threads' */
  int error = pthread_getcpuclockid(pthread_self(), &g->clock);
  if (!error) error = pthread_create(&g->watchdog, NULL, watch_statement, g);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
  g->watched = !error;
  if (!error) return WEIR_OK;
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
  return weir_fail_errno(WEIR_EIO, error, "running a rule: no thread");
}

/* The authorizer stays from the first raising on: with each change of it SQLite prepares all
 * statements anew. */
static weir_status start_guard(wr_guard *g)
{
  weir_status s = wr_db_each(g->db,
                             "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
                             " AND sql NOT LIKE 'CREATE VIRTUAL%'",
                             add_table, g);
  if (!s) s = start_watchdog(g);
  if (s)
    hash_map_free(&g->tables);
  else
    sqlite3_set_authorizer(g->db->handle, may, g);
  return s;
}

weir_status wr_guard_raise(wr_guard *g, const wr_db *db)
{
  g->db = db;
  weir_status s = g->watched ? WEIR_OK : start_guard(g);
  if (s) return s;
  g->heap_at = sqlite3_memory_used() + ((int64_t)WR_GUARD_HEAP_MIB << 20);
  (void)sqlite3_memory_highwater(1);
  set_limits(g);
  g->raised = true;
  sqlite3_progress_handler(db->handle, INSTRUCTIONS, out_of_time, g);
  return WEIR_OK;
}

void wr_guard_lower(wr_guard *g)
{
  if (!g->raised) return;
  pthread_mutex_lock(&g->lock);
  g->paused = true;
  pthread_mutex_unlock(&g->lock);
  restore_limits(g);
  sqlite3_progress_handler(g->db->handle, 0, NULL, NULL);
  g->raised = false;
}

void wr_guard_free(wr_guard *g)
{
  wr_guard_lower(g);
  if (g->watched) {
    pthread_mutex_lock(&g->lock);
    g->ended = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->watchdog, NULL);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    sqlite3_set_authorizer(g->db->handle, NULL, NULL);
  }
  g->watched = false;
  hash_map_free(&g->tables);
}
