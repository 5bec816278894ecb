/* test_pack.c: rows of whole numbers come back as they were, the extremes of 64 bits among them,
 * from memory and from a file, and each by its id; as virtual tables of SQLite's too. Records of
 * a log of runs come back in order. */
#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/findings/fact_table.h"
#include "reports/findings/pack.h"
#include "reports/import/run_log.h"

enum { FEW = 3000, MANY = 300000 /* beyond what is in memory */, COLUMNS = 5 };

static uint64_t scatter(uint64_t x)
{
  x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
  return x ^ x >> 29;
}

/* Ids in steps of 1 to 3; the others small, large and of any sign. */
static void row_of(int64_t v[COLUMNS], uint64_t n, int64_t *id)
{
  static const int64_t extremes[] = {0, INT64_MAX, INT64_MIN, -1, 1};
  *id += 1 + (int64_t)(scatter(n) % 3);
  v[0] = *id;
  v[1] = (int64_t)(n % 100);
  v[2] = extremes[scatter(n + 7) % 5];
  v[3] = (int64_t)scatter(n + 11);
  v[4] = -(int64_t)n;
}

static void fill_pack(wr_pack *p, uint64_t rows)
{
  int64_t id = INT64_MIN + 5, v[COLUMNS];
  p->columns = COLUMNS;
  for (uint64_t n = 0; n < rows; n++) {
    row_of(v, n, &id);
    if (wr_pack_add(p, v, "/tmp/weir-test-pack")) ck_abort_msg("%s", weir_error_message());
  }
}

static void compare_all(uint64_t rows)
{
  wr_pack p = {0};
  wr_pack_reader r = {0};
  uint64_t n = 0;
  fill_pack(&p, rows);
  ck_assert_uint_eq(p.rows, rows);
  ck_assert_int_eq(p.in_file > 0, rows == MANY);
  for (int walk = 0; walk < 2; walk++) {
    int64_t id = INT64_MIN + 5, v[COLUMNS];
    ck_assert_int_eq(wr_pack_first(&r, &p), WEIR_OK);
    for (n = 0; !r.over; n++) {
      row_of(v, n, &id);
      if (memcmp(r.v, v, sizeof(v)) != 0) ck_abort_msg("row %llu", (unsigned long long)n);
      if (wr_pack_next(&r)) ck_abort_msg("%s", weir_error_message());
    }
    ck_assert_uint_eq(n, rows);
  }
  wr_pack_reader_free(&r);
  wr_pack_free(&p);
}

START_TEST(rows_come_back_from_memory_as_they_were)
{
  compare_all(0);
  compare_all(1);
  compare_all(FEW);
}
END_TEST

START_TEST(rows_come_back_from_a_file_as_they_were)
{
  compare_all(MANY);
}
END_TEST

/* Forwards, backwards, from anywhere; and ids that are between, before and behind those there. */
static void find_all(uint64_t rows, bool keyed)
{
  wr_pack p = {.keyed = keyed};
  wr_pack_reader r = {0};
  int64_t *ids = calloc(rows, sizeof(*ids)), id = INT64_MIN + 5, v[COLUMNS];
  fill_pack(&p, rows);
  for (uint64_t n = 0; n < rows; n++) {
    row_of(v, n, &id);
    ids[n] = id;
  }
  for (uint64_t i = 0; i < 6 * (uint64_t)FEW; i++) {
    uint64_t at = i < FEW                 ? i
                  : i < 2 * (uint64_t)FEW ? 2 * (uint64_t)FEW - 1 - i
                                          : scatter(i) % rows;
    bool found = !wr_pack_find(&r, &p, ids[at]) && !r.over && r.v[0] == ids[at];
    if (!found || r.v[4] != -(int64_t)at) ck_abort_msg("row %llu", (unsigned long long)at);
    if (!at || ids[at] - ids[at - 1] == 1) continue;
    if (wr_pack_find(&r, &p, ids[at] - 1) || !r.over) ck_abort_msg("no row has that id");
  }
  ck_assert(wr_pack_find(&r, &p, INT64_MIN) == WEIR_OK && r.over);
  ck_assert(wr_pack_find(&r, &p, INT64_MAX) == WEIR_OK && r.over);
  wr_pack_reader_free(&r);
  wr_pack_free(&p);
  free(ids);
}

START_TEST(a_row_is_found_by_its_id)
{
  for (int keyed = 0; keyed < 2; keyed++) {
    find_all(FEW, keyed);
    find_all(MANY, keyed);
  }
}
END_TEST

START_TEST(where_there_can_be_no_file_a_row_is_refused)
{
  wr_pack p = {.columns = COLUMNS};
  weir_status s = WEIR_OK;
  int64_t id = 0, v[COLUMNS];
  for (uint64_t n = 0; !s && n < MANY; n++) {
    row_of(v, n, &id);
    s = wr_pack_add(&p, v, "/nowhere/at/all");
  }
  ck_assert_int_eq(s, WEIR_EIO);
  wr_pack_free(&p);
}
END_TEST

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct logged {
  wr_logged at;
  uint64_t number; /* of those kept */
} logged;

static weir_status take_logged(void *context, const void *record)
{
  logged *last = context;
  const logged *x = record;
  bool order =
      last->at.time < x->at.time || (last->at.time == x->at.time && last->at.id < x->at.id);
  if (!order) return weir_fail(WEIR_EINTERNAL, "row %lld", (long long)x->at.id);
  *last = (logged){x->at, last->number + 1};
  return WEIR_OK;
}

typedef int64_t time_fn(uint64_t n, uint64_t back);

/* Times go back by less than `back`. */
static int64_t near_time(uint64_t n, uint64_t back)
{
  return (int64_t)(n - scatter(n) % back);
}

/* As many records have one time. */
static int64_t equal_time(uint64_t n, uint64_t back)
{
  return (int64_t)(scatter(n) % (FEW / back + 1));
}

/* Any time at all. */
static int64_t any_time(uint64_t n, uint64_t back)
{
  return (int64_t)(scatter(n) * back);
}

/* So many records are in memory. */
static void log_runs(time_fn *time_of, uint64_t back, size_t most)
{
  wr_run_log log = {.trace = "/tmp/weir-test-pack", .size = sizeof(logged), .most = most};
  logged last = {{INT64_MIN, INT64_MIN}, 0};
  for (uint64_t n = 0; n < FEW; n++) {
    logged x = {{(int64_t)(FEW - n), time_of(n, back)}, n};
    wr_run_keep(&log, &x.at);
  }
  ck_assert_msg(wr_run_each(&log, take_logged, &last) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(last.number, FEW);
  wr_run_drop(&log);
}

START_TEST(records_come_back_in_order_of_time_and_row)
{
  static const uint64_t back[] = {1, 2, 30, 200, 100000};
  for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
    log_runs(near_time, back[i], 0);
    log_runs(near_time, back[i], 100);
    log_runs(equal_time, back[i], 0);
    log_runs(equal_time, back[i], 500);
    log_runs(any_time, back[i], 0);
    log_runs(any_time, back[i], 500);
  }
}
END_TEST

/* ---- tables ---------------------------------------------------------------------------------- */

static int64_t number_of(sqlite3 *db, const char *sql)
{
  sqlite3_stmt *q = NULL;
  ck_assert_msg(!sqlite3_prepare_v2(db, sql, -1, &q, NULL), "%s: %s", sql, sqlite3_errmsg(db));
  ck_assert_msg(sqlite3_step(q) == SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
  int64_t n = sqlite3_column_type(q, 0) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return n;
}

START_TEST(facts_are_tables_while_they_are_open)
{
  wr_db db = {.path = "memory"};
  wr_fact_tables t;
  ck_assert_int_eq(sqlite3_open(":memory:", &db.handle), SQLITE_OK);
  ck_assert_int_eq(wr_fact_open(&t), WEIR_OK);
  for (int64_t i = -5; i < 500; i++)
    ck_assert(!wr_fact_add(&t, WR_FACT_COPY_FAMILY, (const int64_t[]){i * 2, i + 7, i}));
  ck_assert(!wr_fact_add_either(&t, WR_FACT_UNTOUCHED, (const int64_t[]){3, 9, 1, 64}, false));
  ck_assert(!wr_fact_add_either(&t, WR_FACT_UNTOUCHED, (const int64_t[]){4, 9, 1, 64}, true));
  ck_assert_int_eq(wr_fact_make_tables(&t, &db), WEIR_OK);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM temp.copy_family"), 505);
  ck_assert_int_eq(number_of(db.handle, "SELECT sum(first) FROM copy_family"), 499 * 250 - 15);
  ck_assert_int_eq(number_of(db.handle, "SELECT times FROM copy_family WHERE id = 44"), 29);
  ck_assert_int_eq(number_of(db.handle, "SELECT times FROM copy_family WHERE id = 44.0"), 29);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM copy_family WHERE id = 45"), 0);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM copy_family WHERE id = NULL"), 0);
  ck_assert_int_eq(number_of(db.handle, "SELECT sum(a.id = b.first * 2) FROM copy_family a"
                                        " JOIN copy_family b ON b.id = a.id"),
                   505);
  ck_assert_int_eq(number_of(db.handle, "SELECT free FROM untouched WHERE event = 3"), 9);
  ck_assert_int_eq(number_of(db.handle, "SELECT free FROM untouched WHERE event = 4"), -1);
  wr_fact_close(&t);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM temp.sqlite_schema"), 0);
  ck_assert_int_eq(sqlite3_exec(db.handle, "SELECT * FROM copy_family", NULL, NULL, NULL),
                   SQLITE_ERROR);
  ck_assert_int_eq(sqlite3_close(db.handle), SQLITE_OK);
}
END_TEST

/* What a trace names as a fact is not found in its place, and its schema gets no table of one. */
START_TEST(a_schema_of_a_file_has_no_facts)
{
  wr_db db = {.path = "memory"};
  wr_fact_tables t;
  ck_assert_int_eq(sqlite3_open(":memory:", &db.handle), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db.handle,
                                "CREATE TABLE Storm(event); INSERT INTO storm VALUES(7);"
                                "CREATE VIEW grown AS SELECT event FROM storm",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  ck_assert_int_eq(wr_fact_open(&t), WEIR_OK);
  ck_assert_int_eq(wr_fact_make_tables(&t, &db), WEIR_OK);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM storm"), 0);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM grown"), 0);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM main.storm"), 1);
  ck_assert(wr_fact_is_table(&t, "unread") && wr_fact_is_table(&t, "UNREAD"));
  ck_assert(!wr_fact_is_table(&t, "storm") && !wr_fact_is_table(&t, "grown"));
  static const char *const refused[] = {
      "CREATE VIRTUAL TABLE main.x USING unread", "CREATE VIRTUAL TABLE temp.x USING unread",
      "CREATE VIRTUAL TABLE main.x USING storm", "CREATE VIRTUAL TABLE temp.x USING storm",
      "CREATE VIRTUAL TABLE temp.x USING storm(1)"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    ck_assert_int_eq(sqlite3_exec(db.handle, refused[i], NULL, NULL, NULL), SQLITE_ERROR);
  wr_fact_close(&t);
  ck_assert_int_eq(number_of(db.handle, "SELECT count(*) FROM temp.sqlite_schema"), 0);
  ck_assert_int_eq(number_of(db.handle, "SELECT event FROM storm"), 7);
  ck_assert_int_eq(sqlite3_close(db.handle), SQLITE_OK);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/pack");
  TCase *t = tcase_create("pack");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, rows_come_back_from_memory_as_they_were);
  tcase_add_test(t, rows_come_back_from_a_file_as_they_were);
  tcase_add_test(t, a_row_is_found_by_its_id);
  tcase_add_test(t, where_there_can_be_no_file_a_row_is_refused);
  tcase_add_test(t, records_come_back_in_order_of_time_and_row);
  tcase_add_test(t, facts_are_tables_while_they_are_open);
  tcase_add_test(t, a_schema_of_a_file_has_no_facts);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
