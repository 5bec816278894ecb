/* test_rows.c: the rows that are read from a file's pages are those that SQLite reads, in tables
 * of all kinds: of any page size, with rows deleted, columns added, texts between, rows that do
 * not fit a page; by number too. Where the file is unusual SQLite is asked, and a damaged one
 * gives rows in order, and an end. */
#include <check.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/util.h"
#include "reports/events/rows.h"
#include "tests/tools/damage.h"

enum { COLUMNS = 5, ROUNDS = 40, DAMAGED = 200 };

static const char *const columns[COLUMNS] = {"id", "b", "a", "late", "n"};
static char path[64];
static uint64_t state;
static sqlite3 *handle;

static uint64_t draw_number(uint64_t below)
{
  return damage_draw(&state, below);
}

__attribute__((format(printf, 1, 2))) static void run_sql(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list), *error = NULL;
  va_end(list);
  if (sqlite3_exec(handle, sql, NULL, NULL, &error)) ck_abort_msg("%s: %s", sql, error);
  sqlite3_free(sql);
}

/* Of any length, and of either sign; at times none. */
static void bind_number(sqlite3_stmt *q, int at)
{
  uint64_t n = draw_number(2)
                   ? draw_number(3)
                   : (draw_number(UINT64_C(1) << 53) << 11 | draw_number(2048)) >> draw_number(64);
  if (!draw_number(8))
    sqlite3_bind_null(q, at);
  else
    sqlite3_bind_int64(q, at, draw_number(3) ? (int64_t)n : -(int64_t)(n >> 1));
}

static void fill_table(int64_t first, uint64_t rows, bool long_texts)
{
  char text[9000];
  sqlite3_stmt *q = NULL;
  memset(text, 'x', sizeof(text));
  ck_assert_int_eq(sqlite3_prepare_v2(handle, "INSERT INTO t(id, a, text, b, n) VALUES(?,?,?,?,?)",
                                      -1, &q, NULL),
                   0);
  run_sql("BEGIN");
  for (uint64_t i = 0; i < rows; i++) {
    first += 1 + (int64_t)(draw_number(4) ? 0 : draw_number(1000));
    sqlite3_bind_int64(q, 1, first);
    bind_number(q, 2);
    sqlite3_bind_text(q, 3, text,
                      (int)(long_texts && !draw_number(50) ? draw_number(9000) : draw_number(20)),
                      SQLITE_STATIC);
    bind_number(q, 4);
    bind_number(q, 5);
    ck_assert_int_eq(sqlite3_step(q), SQLITE_DONE);
    sqlite3_reset(q);
  }
  run_sql("COMMIT");
  sqlite3_finalize(q);
}

static void make_table(uint64_t rows, bool long_texts)
{
  static const char *const vacuum[] = {"NONE", "FULL", "INCREMENTAL"};
  (void)unlink(path);
  ck_assert_int_eq(sqlite3_open(path, &handle), 0);
  run_sql("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA page_size = %d; PRAGMA "
          "auto_vacuum = %s",
          512 << draw_number(8), vacuum[draw_number(3)]);
  run_sql("CREATE TABLE other(x); CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, text TEXT, b "
          "INTEGER, n INTEGER)");
  fill_table(draw_number(2) ? 0 : -5000, rows, long_texts);
  run_sql("ALTER TABLE t ADD COLUMN late INTEGER");
  if (draw_number(2)) run_sql("UPDATE t SET late = id * 3 WHERE id %% 5 = 0");
  if (draw_number(2)) run_sql("DELETE FROM t WHERE id %% 7 = 1");
  if (draw_number(2)) run_sql("INSERT INTO other SELECT text FROM t");
  sqlite3_close(handle);
}

static wr_db open_again(void)
{
  wr_db db = {.path = path};
  ck_assert_int_eq(sqlite3_open_v2(path, &db.handle, SQLITE_OPEN_READONLY, NULL), 0);
  ck_assert_int_eq(
      sqlite3_exec(db.handle, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL), 0);
  return db;
}

/* The rows from `id` on are SQLite's. How many. */
static uint64_t compare_rows(const wr_db *db, wr_row_walk *r, int64_t id)
{
  sqlite3_stmt *q = NULL;
  uint64_t rows = 0;
  ck_assert_int_eq(sqlite3_prepare_v2(db->handle,
                                      "SELECT id, b, a, late, n FROM t WHERE id >= ? ORDER BY id",
                                      -1, &q, NULL),
                   0);
  sqlite3_bind_int64(q, 1, id);
  for (; sqlite3_step(q) == SQLITE_ROW; rows++) {
    ck_assert(wr_rows_next(r));
    ck_assert_int_eq(r->id, sqlite3_column_int64(q, 0));
    for (int i = 1; i < COLUMNS; i++) {
      ck_assert_int_eq(r->v[i - 1], sqlite3_column_int64(q, i));
      ck_assert_int_eq(r->nulls >> (i - 1) & 1, sqlite3_column_type(q, i) == SQLITE_NULL);
    }
  }
  ck_assert(!wr_rows_next(r));
  ck_assert_int_eq(r->status, WEIR_OK);
  sqlite3_finalize(q);
  return rows;
}

/* Several at once, of some columns, and of a walk that another was the model of: the same rows. */
static void compare_some(const wr_db *db)
{
  enum { SOME = 7, STRIDE = COLUMNS + 2 };
  for (int count = 1; count <= COLUMNS; count++) {
    wr_row_walk model, r, one;
    int64_t rows[SOME][STRIDE];
    ck_assert_int_eq(wr_rows_open(&model, db, "t", columns, count), WEIR_OK);
    ck_assert_int_eq(wr_rows_again(&r, &model), WEIR_OK);
    ck_assert_int_eq(wr_rows_open(&one, db, "t", columns, count), WEIR_OK);
    memset(rows, 1, sizeof(rows));
    for (size_t n; (n = wr_rows_apart(&r, rows[0], STRIDE, SOME)) != 0;) {
      ck_assert_uint_le(n, SOME);
      for (size_t i = 0; i < n; i++) {
        ck_assert(wr_rows_next(&one));
        ck_assert_int_eq(rows[i][0], one.id);
        for (int k = 1; k < count; k++)
          ck_assert_int_eq(rows[i][k], one.v[k - 1]);
      }
    }
    ck_assert(!wr_rows_next(&one));
    ck_assert_int_eq(rows[SOME - 1][STRIDE - 1], 0x0101010101010101); /* between rows */
    ck_assert_int_eq(wr_rows_close(&one), WEIR_OK);
    ck_assert_int_eq(wr_rows_close(&r), WEIR_OK);
    ck_assert_int_eq(wr_rows_close(&model), WEIR_OK);
  }
}

/* Some rows by their numbers, which are there or not. */
static void compare_found(const wr_db *db)
{
  wr_row_walk r;
  ck_assert_int_eq(wr_rows_open(&r, db, "t", columns, COLUMNS), WEIR_OK);
  for (int i = 0; i < 300; i++) {
    sqlite3_stmt *q = NULL;
    int64_t id = (int64_t)draw_number(20000) - 6000;
    ck_assert_int_eq(sqlite3_prepare_v2(db->handle, "SELECT id, b, a, late, n FROM t WHERE id = ?",
                                        -1, &q, NULL),
                     0);
    sqlite3_bind_int64(q, 1, id);
    bool there = sqlite3_step(q) == SQLITE_ROW;
    ck_assert_int_eq(wr_rows_find(&r, id), there);
    for (int k = 1; there && k < COLUMNS; k++)
      ck_assert_int_eq(r.v[k - 1], sqlite3_column_int64(q, k));
    sqlite3_finalize(q);
  }
  ck_assert_int_eq(wr_rows_close(&r), WEIR_OK);
}

static void compare_table(bool by_pages)
{
  wr_row_walk r;
  wr_db db = open_again();
  ck_assert_int_eq(wr_rows_open(&r, &db, "t", columns, COLUMNS), WEIR_OK);
  ck_assert_int_eq(r.by_pages, by_pages);
  (void)compare_rows(&db, &r, INT64_MIN);
  for (int i = 0; i < 10; i++) {
    int64_t id = (int64_t)draw_number(20000) - 6000;
    wr_rows_seek(&r, id);
    (void)compare_rows(&db, &r, id);
  }
  ck_assert_int_eq(wr_rows_close(&r), WEIR_OK);
  compare_found(&db);
  compare_some(&db);
  sqlite3_close(db.handle);
}

START_TEST(rows_of_any_table_are_those_of_sqlite)
{
  for (uint64_t round = 1; round <= ROUNDS; round++) {
    state = round * 7919;
    make_table(round < 4 ? round - 1 : draw_number(2500), false);
    compare_table(true);
  }
}
END_TEST

/* From the first that is no integer or has no room in its page on, SQLite gives the rows. */
START_TEST(odd_rows_are_left_to_sqlite)
{
  for (uint64_t round = 1; round <= 10; round++) {
    state = round * 104729;
    make_table(1500, true);
    compare_table(true);
  }
  state = 11;
  make_table(1000, false);
  ck_assert_int_eq(sqlite3_open(path, &handle), 0);
  run_sql(
      "UPDATE t SET b = 'text' WHERE id > 700 AND id %% 2; UPDATE t SET n = 0.5 WHERE id > 800");
  sqlite3_close(handle);
  compare_table(true);
}
END_TEST

/* A WAL, other tables, a transaction that has written. */
START_TEST(unusual_files_are_left_to_sqlite)
{
  wr_row_walk r;
  state = 5;
  make_table(500, false);
  ck_assert_int_eq(sqlite3_open(path, &handle), 0);
  run_sql("PRAGMA journal_mode = WAL; UPDATE t SET a = 5 WHERE id < 100");
  compare_table(false);
  run_sql("PRAGMA journal_mode = DELETE");
  compare_table(true);
  wr_db db = {.path = path, .handle = handle};
  run_sql("BEGIN; UPDATE t SET a = 6");
  ck_assert_int_eq(wr_rows_open(&r, &db, "t", columns, COLUMNS), WEIR_OK);
  ck_assert(!r.by_pages);
  (void)compare_rows(&db, &r, INT64_MIN);
  ck_assert_int_eq(wr_rows_close(&r), WEIR_OK);
  run_sql("COMMIT; DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, a, b INTEGER, n INTEGER, "
          "late INTEGER DEFAULT 5)");
  run_sql("INSERT INTO t(id, a, b, n) VALUES(1, 2, 3, 4)");
  sqlite3_close(handle);
  compare_table(false);
}
END_TEST

/* All rows, and those from a number on; none is before the one that it follows. */
static void read_damaged(const wr_db *db, uint64_t most)
{
  wr_row_walk r;
  ck_assert_int_eq(wr_rows_open(&r, db, "t", columns, COLUMNS), WEIR_OK);
  for (int walk = 0; walk < 2; walk++) {
    uint64_t rows = 0;
    int64_t last = INT64_MIN;
    for (; wr_rows_next(&r); rows++, last = r.id)
      ck_assert(!rows || r.id > last || !r.by_pages);
    ck_assert_uint_le(rows, most);
    wr_rows_seek(&r, (int64_t)draw_number(3000));
  }
  (void)wr_rows_close(&r);
}

/* Bytes of it are changed, or its end is cut off. */
static void damage_file(int fd, const uint8_t *good, size_t size)
{
  uint8_t bytes[1024];
  size_t at = draw_number(size), n = draw_number(2) ? 8 : 1 + draw_number(sizeof(bytes));
  if (n > size - at) n = size - at;
  for (size_t i = 0; i < n; i++)
    bytes[i] = draw_number(3) ? (uint8_t)draw_number(256) : good[at + i];
  ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)at), n);
  if (!draw_number(8)) ck_assert_int_eq(ftruncate(fd, (off_t)at), 0);
}

START_TEST(a_damaged_file_has_an_end)
{
  static uint8_t good[4 << 20];
  for (uint64_t round = 1; round <= DAMAGED; round++) {
    state = round * 15485863;
    if (round % 20 == 1) make_table(1000 + draw_number(1000), round % 40 == 1);
    wr_db db = open_again();
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t size = pread(fd, good, sizeof(good), 0);
    ck_assert(size > 0 && size < (ssize_t)sizeof(good));
    damage_file(fd, good, (size_t)size);
    read_damaged(&db, (uint64_t)size);
    sqlite3_close(db.handle);
    ck_assert_int_eq(pwrite(fd, good, (size_t)size, 0), size);
    (void)close(fd);
  }
}
END_TEST

static void make_path(void)
{
  (void)snprintf(path, sizeof(path), "/tmp/weir-test-rows-%d.db", getpid());
}

static void remove_path(void)
{
  (void)unlink(path);
}

int main(void)
{
  Suite *s = suite_create("reports/rows");
  TCase *t = tcase_create("rows");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, make_path, remove_path);
  tcase_add_test(t, rows_of_any_table_are_those_of_sqlite);
  tcase_add_test(t, odd_rows_are_left_to_sqlite);
  tcase_add_test(t, unusual_files_are_left_to_sqlite);
  tcase_add_test(t, a_damaged_file_has_an_end);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
