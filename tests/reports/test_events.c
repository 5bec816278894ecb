/* test_events.c: the events of a trace come in the order of their rows or of time, each once, with
 * their templates, one at a time or by batches, and to each listener: of traces of one run of rows
 * and of many, with rows that stand after later ones, starts that are the same, and rows of no
 * template. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/events/listen.h"
#include "tests/tools/damage.h"

enum { TEMPLATES = 5, ROUNDS = 6, MANY_RUNS = 300 /* more than are merged: they are sorted */ };

static char path[64];
static uint64_t state;

static uint64_t draw_below(uint64_t below)
{
  return damage_draw(&state, below);
}

static void run_sql(sqlite3 *handle, const char *sql)
{
  char *error = NULL;
  if (sqlite3_exec(handle, sql, NULL, NULL, &error)) ck_abort_msg("%s: %s", sql, error);
}

static void make_templates(sqlite3 *handle)
{
#define COLUMN(name, ...) ", " #name " INTEGER"
  run_sql(handle,
          "CREATE TABLE template(id INTEGER PRIMARY KEY" WR_TEMPLATE_MAP(
              COLUMN) "); CREATE TABLE api(id INTEGER PRIMARY KEY, name TEXT);"
                      "CREATE TABLE event_row(id INTEGER PRIMARY KEY, template INTEGER, start "
                      "INTEGER, duration INTEGER, a INTEGER, b INTEGER, bytes INTEGER)");
  for (int i = 1; i <= TEMPLATES; i++) {
    char sql[80];
    (void)snprintf(sql, sizeof(sql), "INSERT INTO template(id, kind) VALUES(%d, %d)",
                   i + (i == TEMPLATES), i);
    run_sql(handle, sql);
  }
}

/* One begins with each call; in it rows begin in order, but for some that are before up to `late` others. */
static void add_run(sqlite3_stmt *q, uint64_t rows, uint64_t late)
{
  int64_t start = (int64_t)draw_below(rows * 8), numbers[6];
  for (uint64_t i = 0; i < rows; i++) {
    start += (int64_t)draw_below(3) * (int64_t)draw_below(50);
    numbers[0] = (int64_t)draw_below(30) ? 1 + (int64_t)draw_below(TEMPLATES - 1)
                                         : 5 + (int64_t)draw_below(3);
    numbers[1] = late && !draw_below(5) ? start - (int64_t)draw_below(late) : start;
    numbers[2] = (int64_t)draw_below(2000) - 5;
    for (int k = 3; k < 6; k++)
      numbers[k] = (int64_t)(draw_below(4) ? draw_below(UINT64_C(1) << 40) >> draw_below(40)
                                           : draw_below(2));
    for (int k = 0; k < 6; k++)
      sqlite3_bind_int64(q, k + 1, numbers[k]);
    ck_assert_int_eq(sqlite3_step(q), SQLITE_DONE);
    sqlite3_reset(q);
  }
}

/* Each run has at least as many rows, and fewer than three times as many. */
static void make_trace(uint64_t runs, uint64_t least, uint64_t late)
{
  sqlite3 *handle = NULL;
  sqlite3_stmt *q = NULL;
  (void)unlink(path);
  ck_assert_int_eq(sqlite3_open(path, &handle), 0);
  run_sql(handle, "PRAGMA synchronous = OFF; PRAGMA page_size = 1024; BEGIN");
  make_templates(handle);
  ck_assert_int_eq(
      sqlite3_prepare_v2(handle,
                         "INSERT INTO event_row(template, start, duration, a, b, bytes)"
                         " VALUES(?,?,?,?,?,?)",
                         -1, &q, NULL),
      0);
  for (uint64_t i = 0; i < runs; i++)
    add_run(q, least + draw_below(least * 2), late);
  sqlite3_finalize(q);
  run_sql(handle, "COMMIT");
  sqlite3_close(handle);
}

/* ---- what comes ------------------------------------------------------------------------------ */

typedef struct expected {
  sqlite3_stmt *q; /* the events as SQLite orders them */
  uint64_t count, stop;
  bool ended;
} expected;

static weir_status expect_event(void *context, const wr_event *e)
{
  expected *x = context;
  ck_assert_int_eq(sqlite3_step(x->q), SQLITE_ROW);
  int64_t duration = sqlite3_column_int64(x->q, 3);
  ck_assert_int_eq(e->id, sqlite3_column_int64(x->q, 0));
  ck_assert_int_eq(e->t->id, sqlite3_column_int64(x->q, 1));
  ck_assert_int_eq(e->start, sqlite3_column_int64(x->q, 2));
  ck_assert_int_eq(e->ns, duration > 0 ? duration : 0);
  ck_assert_int_eq((int64_t)e->a, sqlite3_column_int64(x->q, 4));
  ck_assert_int_eq((int64_t)e->b, sqlite3_column_int64(x->q, 5));
  ck_assert_int_eq((int64_t)e->bytes, sqlite3_column_int64(x->q, 6));
  return ++x->count == x->stop ? WEIR_EIO : WEIR_OK;
}

static weir_status expect_events(void *context, const wr_event events[], size_t count)
{
  weir_status st = WEIR_OK;
  ck_assert_uint_gt(count, 0);
  for (size_t i = 0; !st && i < count; i++)
    st = expect_event(context, &events[i]);
  return st;
}

static weir_status end_expected(void *context)
{
  expected *x = context;
  ck_assert_int_eq(sqlite3_step(x->q), SQLITE_DONE);
  x->ended = true;
  return WEIR_OK;
}

static void begin_expected(const wr_db *db, expected *x, bool by_time)
{
  const char *sql = by_time ? "SELECT * FROM event_row WHERE template IN (SELECT id FROM template)"
                              " ORDER BY start, id"
                            : "SELECT * FROM event_row WHERE template IN (SELECT id FROM template)"
                              " ORDER BY id";
  *x = (expected){.count = 0};
  ck_assert_int_eq(sqlite3_prepare_v2(db->handle, sql, -1, &x->q, NULL), 0);
}

static void compare_listeners(const wr_db *db, bool by_time)
{
  wr_events events;
  expected one, some;
  ck_assert_int_eq(wr_events_open(&events, db), WEIR_OK);
  begin_expected(db, &one, by_time);
  begin_expected(db, &some, by_time);
  const wr_listener all[] = {
      {.take = expect_event, .end = end_expected, .context = &one},
      {.take_some = expect_events, .end = end_expected, .context = &some, .in_time = by_time}};
  ck_assert_int_eq(wr_events_listen(&events, all, 2), WEIR_OK);
  ck_assert(one.ended && some.ended);
  sqlite3_finalize(one.q);
  sqlite3_finalize(some.q);
  wr_events_close(&events);
}

/* A status ends the walk; the next one has all events again. */
static void compare_walks(const wr_db *db, bool by_time)
{
  wr_events events;
  ck_assert_int_eq(wr_events_open(&events, db), WEIR_OK);
  for (uint64_t stop = 3; stop <= 3; stop--) {
    expected x;
    begin_expected(db, &x, by_time);
    x.stop = stop;
    weir_status st = by_time ? wr_events_by_time(&events, expect_event, &x)
                             : wr_events_each(&events, expect_event, &x);
    bool ends = stop && x.count == stop;
    ck_assert_int_eq(st, ends ? WEIR_EIO : WEIR_OK);
    if (!ends) ck_assert_int_eq(end_expected(&x), WEIR_OK);
    sqlite3_finalize(x.q);
  }
  wr_events_close(&events);
}

static void compare_trace(void)
{
  wr_db db = {.path = path, .schema = 2};
  ck_assert_int_eq(sqlite3_open_v2(path, &db.handle, SQLITE_OPEN_READONLY, NULL), 0);
  run_sql(db.handle, "BEGIN; SELECT count(*) FROM sqlite_schema");
  for (int by_time = 0; by_time < 2; by_time++) {
    compare_walks(&db, by_time);
    compare_listeners(&db, by_time);
  }
  sqlite3_close(db.handle);
}

START_TEST(events_come_in_order_however_many_runs_there_are)
{
  for (uint64_t round = 1; round <= ROUNDS; round++) {
    state = round * 7919;
    make_trace(draw_below(round < 5 ? 2 : 40), 1 + draw_below(200),
               draw_below(2) ? draw_below(60) : 0);
    compare_trace();
  }
}
END_TEST

START_TEST(more_runs_than_are_merged_are_sorted)
{
  state = 31;
  make_trace(MANY_RUNS, 70, 0);
  compare_trace();
  state = 37;
  make_trace(MANY_RUNS, 70, 200); /* so late that rows begin runs of their own */
  compare_trace();
}
END_TEST

static void make_path(void)
{
  (void)snprintf(path, sizeof(path), "/tmp/weir-test-events-%d.db", getpid());
}

static void remove_path(void)
{
  (void)unlink(path);
}

int main(void)
{
  Suite *s = suite_create("reports/events");
  TCase *t = tcase_create("events");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, make_path, remove_path);
  tcase_add_test(t, events_come_in_order_however_many_runs_there_are);
  tcase_add_test(t, more_runs_than_are_merged_are_sorted);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
