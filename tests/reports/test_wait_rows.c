/* test_wait_rows.c: rows of `wait_detail` come back as they were, in order of ids and by id,
 * whatever the order in which they came and however many there are; SQL finds the same. What is
 * compared with is made from the row's place again. */
#include <check.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include "reports/model/wait_table.h"
#include "reports/queues/queues.h"

enum { FEW = 5000, MANY = 500000 /* more than lie in memory */, THREADS = 7 };

static const char path[] = "/tmp/weir-test-waits";

static uint64_t scatter(uint64_t n)
{
  n = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
  return n ^ n >> 31;
}

/* Numbers next to the largest that are stored in a short row, each on one side of its limit. */
static void approach_limits(wr_wait_row *v, uint64_t x)
{
  v->operations = UINT64_C(0xffff) + (x >> 28 & 1);
  v->bytes = UINT64_C(0xffffffff) + (x >> 29 & 1);
  v->streams = 255 + (x >> 30 & 1);
  v->stream = 0;
  if (v->other)
    v->other = (int64_t)((uint64_t)v->id + (UINT64_C(1) << 23) - (x >> 31 & 3) -
                         (x >> 33 & 1 ? UINT64_C(1) << 24 : 0));
}

/* The row of that id: of all kinds there are, with small numbers and with the largest. */
static wr_wait_row row_of(int64_t id)
{
  uint64_t x = scatter((uint64_t)id);
  bool known = x % 5 != 0, pending = known && x >> 8 & 1, huge = x >> 16 & 1;
  wr_wait_row v = {.id = id, .known = known, .pending = pending};
  if (!known) return v;
  v.other =
      x >> 17 & 1 ? huge ? (int64_t)scatter(x) : (int64_t)((uint64_t)id - (x >> 20 & 1023)) : 0;
  if (!pending) return v;
  v.operations = huge ? UINT64_MAX - (x & 7) : x >> 30 & 255;
  v.bytes = huge ? UINT64_MAX - (x & 3) : x >> 40 & 0xffff;
  v.streams = huge && x & 64 ? UINT32_MAX : x >> 18 & 3;
  v.stream = v.streams == 1 ? huge ? UINT64_MAX : 0x5000 + (x >> 22 & 3) : 0;
  if (x >> 34 & 1) approach_limits(&v, x);
  v.host = x >> 24 & 3;
  v.before_legacy = x >> 26 & 1;
  v.narrower = x >> 27 & 1 ? WR_NARROWER_STREAM : WR_NARROWER_NONE;
  return v;
}

static void expect_row(const wr_wait_row *got, int64_t id)
{
  wr_wait_row want = row_of(id);
  bool same = got->id == want.id && got->known == want.known && got->pending == want.pending &&
              got->operations == want.operations && got->bytes == want.bytes &&
              got->streams == want.streams && got->stream == want.stream &&
              got->other == want.other && got->host == want.host &&
              got->before_legacy == want.before_legacy && got->narrower == want.narrower;
  if (!same) ck_abort_msg("row %lld is not as it was", (long long)id);
}

/* ---- orders in which rows come --------------------------------------------------------------- */

typedef struct order {
  const char *name;
  int64_t (*id)(uint64_t n, uint64_t rows, uint32_t *thread);
} order;

static int64_t ascending(uint64_t n, uint64_t rows, uint32_t *thread)
{
  (void)rows;
  *thread = (uint32_t)(n % THREADS);
  return 3 * (int64_t)n - 50;
}

/* Threads in turn, each with the ids of a part. */
static int64_t by_threads(uint64_t n, uint64_t rows, uint32_t *thread)
{
  *thread = (uint32_t)(n % THREADS);
  return (int64_t)(n % THREADS * (rows / THREADS + 1) * 5 + n / THREADS * 5 + n / THREADS % 4);
}

/* ... each with chunks of few ids, as they would be imported. */
static int64_t by_chunks(uint64_t n, uint64_t rows, uint32_t *thread)
{
  uint64_t in_thread = n / THREADS;
  (void)rows;
  *thread = (uint32_t)(n % THREADS);
  return (int64_t)((in_thread / 9 * THREADS + *thread) * 9 + in_thread % 9);
}

static int64_t by_chance(uint64_t n, uint64_t rows, uint32_t *thread)
{
  *thread = (uint32_t)(scatter(n) % 20000);
  return (int64_t)(n * 2741 % rows) * 2;
}

static int64_t far_apart(uint64_t n, uint64_t rows, uint32_t *thread)
{
  *thread = 0;
  return (int64_t)((uint64_t)INT64_MIN + 8 + n * (INT64_MAX / rows) * 2);
}

static const order orders[] = {{"ascending", ascending},
                               {"by threads", by_threads},
                               {"by chunks", by_chunks},
                               {"by chance", by_chance},
                               {"far apart", far_apart}};
enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };

static int by_number(const void *left, const void *right)
{
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* *ids: in order; the caller frees them. */
static wr_wait_rows *fill(const order *o, uint64_t rows, int64_t **ids)
{
  int64_t last = 0;
  for (uint64_t n = 0; n < rows; n++) {
    uint32_t thread;
    int64_t id = o->id(n, rows, &thread);
    if (id > last) last = id;
  }
  wr_wait_rows *r = wr_wait_rows_new(path, last);
  ck_assert(r && (*ids = calloc(rows + 1, sizeof(**ids))));
  for (uint64_t n = 0; n < rows; n++) {
    uint32_t thread;
    wr_wait_row row = row_of((*ids)[n] = o->id(n, rows, &thread));
    if (wr_wait_rows_add(r, thread, &row)) ck_abort_msg("%s", weir_error_message());
  }
  ck_assert_int_eq(wr_wait_rows_order(r), WEIR_OK);
  ck_assert_uint_eq(wr_wait_rows_count(r), rows);
  if (rows) qsort(*ids, rows, sizeof(**ids), by_number);
  return r;
}

static void walk_all(const wr_wait_rows *r, const int64_t *ids, uint64_t rows)
{
  wr_wait_reader x = {.rows = r};
  for (int walk = 0; walk < 2; walk++) {
    uint64_t n = 0;
    ck_assert_int_eq(wr_wait_first(&x), WEIR_OK);
    for (; !x.over; n++) {
      ck_assert_uint_lt(n, rows);
      expect_row(&x.row, ids[n]);
      ck_assert_int_eq(wr_wait_next(&x), WEIR_OK);
    }
    ck_assert_uint_eq(n, rows);
  }
  wr_wait_reader_free(&x);
}

static void expect_found(wr_wait_reader *x, int64_t id, bool there)
{
  if (wr_wait_find(x, id)) ck_abort_msg("%s", weir_error_message());
  if (x->over == there) ck_abort_msg("id %lld", (long long)id);
  if (there) expect_row(&x->row, id);
}

/* Upwards with all that is between, downwards, from anywhere. */
static void find_all(const wr_wait_rows *r, const int64_t *ids, uint64_t rows)
{
  wr_wait_reader x = {.rows = r};
  uint64_t step = rows / FEW ? rows / FEW : 1;
  expect_found(&x, INT64_MAX, false);
  for (uint64_t i = 0; i < rows; i += i % 64 ? 1 : step) {
    bool gap = i && ids[i] - 1 > ids[i - 1];
    if (gap) expect_found(&x, ids[i] - 1, false);
    expect_found(&x, ids[i], true);
    if (i % 3 == 0) expect_found(&x, ids[i], true);
  }
  for (uint64_t i = rows; i--; i -= i < step ? i : step - 1)
    expect_found(&x, ids[i], true);
  for (uint64_t i = 0; rows && i < FEW; i++)
    expect_found(&x, ids[scatter(i) % rows], true);
  expect_found(&x, rows ? ids[0] - 1 : 0, false);
  expect_found(&x, rows ? ids[rows - 1] + 1 : 0, false);
  wr_wait_reader_free(&x);
}

/* What the bits of a row are, without a row being read. */
static unsigned expected_bits(int64_t id)
{
  wr_wait_row row = row_of(id);
  if (!row.known) return 0;
  return WR_WAIT_KNOWN | (row.pending ? WR_WAIT_PENDING : 0) |
         (row.before_legacy ? WR_WAIT_BEFORE_LEGACY : 0) |
         (row.host & WR_HOST_RESULT ? WR_WAIT_RESULT : 0) |
         (row.host & WR_HOST_SOURCE ? WR_WAIT_SOURCE : 0) | (row.narrower ? WR_WAIT_NARROWER : 0) |
         (row.other ? WR_WAIT_OTHER : 0);
}

enum { ALL_BITS = 63 | WR_WAIT_OTHER };

static void expect_bits(wr_wait_reader *x, int64_t id, unsigned want)
{
  unsigned bits;
  ck_assert_int_eq(wr_wait_bits(x, id, &bits), WEIR_OK);
  if ((bits & ALL_BITS) != want) ck_abort_msg("id %lld: %x, not %x", (long long)id, bits, want);
}

static void bits_of_all(const wr_wait_rows *r, const int64_t *ids, uint64_t rows)
{
  wr_wait_reader x = {.rows = r};
  for (uint64_t i = 0; i < rows; i++) {
    expect_bits(&x, ids[i], expected_bits(ids[i]));
    if (i && ids[i] - 1 > ids[i - 1]) expect_bits(&x, ids[i] - 1, 0);
  }
  expect_bits(&x, rows ? ids[rows - 1] + 1 : 0, 0);
  expect_bits(&x, INT64_MIN, 0);
  wr_wait_reader_free(&x);
}

static void walk_by_bits(const wr_wait_rows *r, const int64_t *ids, uint64_t rows, unsigned mask,
                         unsigned bits)
{
  wr_wait_reader x = {.rows = r};
  bool first = true;
  for (uint64_t i = 0; i < rows; i++) {
    if ((expected_bits(ids[i]) & mask) != bits) continue;
    ck_assert_int_eq(wr_wait_next_of(&x, mask, bits, first), WEIR_OK);
    ck_assert(!x.over);
    expect_row(&x.row, ids[i]);
    first = false;
  }
  ck_assert_int_eq(wr_wait_next_of(&x, mask, bits, first), WEIR_OK);
  ck_assert(x.over);
  wr_wait_reader_free(&x);
}

START_TEST(rows_are_known_and_found_by_their_bits)
{
  int64_t *ids = NULL;
  wr_wait_rows *r = fill(&orders[_i], FEW, &ids);
  bits_of_all(r, ids, FEW);
  for (unsigned mask = 1; mask < 64; mask++)
    walk_by_bits(r, ids, FEW, mask, mask & 21 ? mask & 21 : mask);
  walk_by_bits(r, ids, FEW, WR_WAIT_KNOWN | WR_WAIT_OTHER, WR_WAIT_KNOWN | WR_WAIT_OTHER);
  wr_wait_rows_free(r);
  free(ids);
}
END_TEST

static void try_order(const order *o, uint64_t rows)
{
  int64_t *ids = NULL;
  wr_wait_rows *r = fill(o, rows, &ids);
  walk_all(r, ids, rows);
  find_all(r, ids, rows);
  wr_wait_rows_free(r);
  free(ids);
}

START_TEST(rows_come_back_in_order_and_by_id)
{
  try_order(&orders[_i], 0);
  try_order(&orders[_i], 1);
  try_order(&orders[_i], 33);
  try_order(&orders[_i], FEW);
}
END_TEST

START_TEST(so_do_rows_that_lie_in_a_file)
{
  try_order(&orders[_i], orders[_i].id == by_chance ? 20 * FEW : MANY);
}
END_TEST

START_TEST(where_there_can_be_no_file_a_row_is_refused)
{
  wr_wait_rows *r = wr_wait_rows_new("/nowhere/weir-test-waits", 0);
  weir_status st = WEIR_OK;
  for (int64_t id = 1; !st && id < 4 * MANY; id++) {
    wr_wait_row row = row_of(id);
    st = wr_wait_rows_add(r, 0, &row);
  }
  ck_assert_int_eq(st, WEIR_EIO);
  wr_wait_rows_free(r);
}
END_TEST

/* ---- by SQL ---------------------------------------------------------------------------------- */

static int64_t number(const wr_db *db, const char *sql)
{
  int64_t n = 0;
  if (wr_db_number(db, sql, &n)) ck_abort_msg("%s: %s", sql, weir_error_message());
  return n;
}

static weir_status expect_columns(void *context, sqlite3_stmt *q)
{
  wr_wait_row want = row_of(sqlite3_column_int64(q, 0));
  for (int i = 0; i < 11; i++) {
    int64_t value;
    bool there = wr_wait_row_value(&want, i, &value);
    ck_assert_int_eq(sqlite3_column_type(q, i) != SQLITE_NULL, there);
    if (there) ck_assert_int_eq(sqlite3_column_int64(q, i), value);
  }
  ++*(uint64_t *)context;
  return WEIR_OK;
}

START_TEST(sql_has_them_as_a_table_by_id)
{
  wr_db db = {.path = "memory"};
  ck_assert_int_eq(sqlite3_open(":memory:", &db.handle), 0);
  ck_assert_ptr_null(wr_wait_rows_of(&db));
  for (int i = 0; i < ORDERS; i++) {
    int64_t *ids = NULL;
    uint64_t seen = 0;
    wr_wait_rows *r = fill(&orders[i], FEW, &ids);
    ck_assert_int_eq(wr_wait_rows_table(r, &db), WEIR_OK);
    ck_assert_ptr_eq(wr_wait_rows_of(&db), r);
    ck_assert_int_eq(wr_db_each(&db, "SELECT * FROM wait_detail", expect_columns, &seen), WEIR_OK);
    ck_assert_uint_eq(seen, FEW);
    ck_assert_int_eq(
        number(&db, "SELECT sum(a.rowid = b.id AND a.pending IS b.pending) FROM wait_detail a"
                    " JOIN wait_detail b ON b.id = a.id"),
        FEW);
    ck_assert_int_eq(number(&db, "SELECT sum(id <= before) FROM (SELECT id, lag(id) OVER () AS"
                                 " before FROM wait_detail)"),
                     0);
    ck_assert_int_eq(number(&db, "SELECT count(*) FROM wait_detail WHERE id = 0.5 OR id = 'x'"), 0);
    free(ids);
  }
  ck_assert_int_eq(sqlite3_close(db.handle), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/wait_rows");
  TCase *t = tcase_create("wait_rows");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, rows_come_back_in_order_and_by_id, 0, ORDERS);
  tcase_add_loop_test(t, so_do_rows_that_lie_in_a_file, 0, ORDERS);
  tcase_add_loop_test(t, rows_are_known_and_found_by_their_bits, 0, ORDERS);
  tcase_add_test(t, where_there_can_be_no_file_a_row_is_refused);
  tcase_add_test(t, sql_has_them_as_a_table_by_id);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
