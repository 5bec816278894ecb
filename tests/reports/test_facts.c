/* test_facts.c: what one pass over the calls finds is what SQL finds that sorts them, over random
 * histories of several threads. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "reports/findings/facts.h"
#include "reports/model/open.h"
#include "tests/reports/synth.h"

enum { HISTORIES = 12, CALLS = 400, PLACES = 5, UNIT = 4096, SEED = 20261123 };

static bool live[PLACES];

static uint64_t address(unsigned place)
{
  return UINT64_C(0x700000000) + (uint64_t)place * UNIT;
}

static void copy_call(int thread, uint64_t at, bool in, uint64_t device, uint64_t host)
{
  trace_event e = {.kind = WEIR_EV_COPY,
                   .api = synth_api(in ? "cuMemcpyHtoD_v2" : "cuMemcpyDtoH_v2"),
                   .copy = in ? WEIR_COPY_HTOD : WEIR_COPY_DTOH,
                   .a = in ? device : host,
                   .b = in ? host : device,
                   .bytes = 64,
                   .mem = in ? WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4
                             : WEIR_MEM_PAGEABLE | WEIR_MEM_DEVICE << 4,
                   .device = in ? 0 : WEIR_DEVICE_NONE,
                   .src_device = in ? WEIR_DEVICE_NONE : 0,
                   .stream = WEIR_STREAM_LEGACY};
  synth_event(thread, at, 4, e);
}

/* One copy, or rows of a matrix. */
static void copy_calls(int thread, uint64_t at, unsigned place)
{
  bool in = synth_below(2);
  uint64_t host = UINT64_C(0x7f0000000000) + (synth_below(3) ? at * 64 : place * 64),
           device = address(place) + synth_below(2) * 512;
  for (unsigned i = 0, rows = synth_below(4) ? 1 : 2 + synth_below(8); i < rows; i++)
    copy_call(thread, at + i * 10, in, device + (uint64_t)i * 256, host + (uint64_t)i * 128);
}

static void random_call(int thread, uint64_t at, unsigned launches)
{
  unsigned place = synth_below(PLACES), what = synth_below(10 + launches);
  trace_event e = {.device = 0, .src_device = WEIR_DEVICE_NONE, .a = address(place)};
  if (what < 2 && !live[place]) {
    synth_alloc(thread, at, 4, address(place), UNIT, 0, WEIR_MEM_DEVICE);
    live[place] = true;
  } else if (what < 4 && live[place]) {
    synth_free(thread, at, 4, address(place));
    live[place] = false;
  } else if (what < 8) {
    copy_calls(thread, at, place);
  } else if (what < 9) {
    e.kind = WEIR_EV_MEMSET, e.api = synth_api("cuMemsetD8_v2"), e.mem = WEIR_MEM_DEVICE;
    e.bytes = 64, e.stream = WEIR_STREAM_LEGACY;
    synth_event(thread, at, 4, e);
  } else if (what < 10) {
    synth_sync(thread, at, 4, WEIR_SYNC_CONTEXT);
  } else {
    e.kind = WEIR_EV_LAUNCH, e.api = synth_api("cuLaunchKernel"), e.bytes = 32;
    synth_event(thread, at, 4, e);
  }
}

static const char *make_history(int history)
{
  const char *one[] = {NULL, NULL};
  unsigned threads = history % 3 ? 1 : 3, launches = (unsigned)history % 4;
  synth_seed(SEED + (uint64_t)history);
  for (int i = 0; i < PLACES; i++)
    live[i] = false;
  synth_open(synth_dir());
  for (uint64_t at = 1; at <= CALLS; at++)
    random_call((int)synth_below(threads), at * 100, launches);
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

#define STEP                                                                                       \
  "WITH step AS (SELECT e.id, e.start, t.thread, t.stack, t.device, t.kind, t.copy, t.mem, "       \
  "t.src_mem, e.a, e.b,"                                                                           \
  " e.bytes, sum(t.kind IN (6, 12) OR (t.kind = 3 AND t.src_mem NOT IN (1, 2, 6))) OVER o AS r,"   \
  " sum(t.kind IN (2, 6, 12) OR (t.kind = 3 AND t.src_mem NOT IN (1, 2, 6))) OVER o AS f,"         \
  " sum(t.kind <> 5 AND (t.kind <> 3 OR t.mem NOT IN (1, 2, 6))) OVER o AS w,"                     \
  " sum(t.kind IN (3, 4, 6, 12)) OVER o AS part, sum(t.kind = 1) OVER o AS allocs"                 \
  " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE t.status = 0"                \
  " AND t.kind IN (1, 2, 3, 4, 5, 6, 12) WINDOW o AS (ORDER BY e.start)),"                         \
  " pair AS (SELECT x.id AS alloc, y.id AS free, x.start AS born, y.start AS died, x.part AS"      \
  " part, y.part AS last, x.a, x.bytes, x.stack, x.device, y.allocs - x.allocs AS others FROM "    \
  "step x LEFT JOIN"                                                                               \
  " step y ON y.kind = 2 AND y.id = (SELECT z.id FROM step z WHERE z.kind = 2 AND z.a = x.a AND"   \
  " z.start > x.start ORDER BY z.start LIMIT 1) WHERE x.kind = 1) "

static const struct {
  const char *fact, *sql;
} facts[] = {
    {"SELECT event FROM overwritten",
     "SELECT x.id FROM step x WHERE x.kind IN (3, 4) AND x.mem = 3 AND EXISTS (SELECT 1 FROM step y"
     " WHERE y.kind IN (3, 4) AND y.mem = 3 AND y.a = x.a AND y.bytes = x.bytes AND y.f = x.f"
     " AND y.start > x.start)"},
    {"SELECT event, free FROM unread",
     "SELECT x.id, (SELECT y.id FROM step y WHERE y.kind = 2 AND y.a = x.a AND y.r = x.r"
     " AND y.start > x.start ORDER BY y.start LIMIT 1) AS free FROM step x WHERE x.copy = 1"
     " AND x.kind = 3 AND free IS NOT NULL"},
    {"SELECT event, earlier FROM reread",
     "SELECT x.id, (SELECT y.id FROM step y WHERE y.kind = 3 AND y.copy = 2 AND y.b = x.b"
     " AND y.bytes = x.bytes AND y.w = x.w AND y.start < x.start ORDER BY y.start DESC LIMIT 1)"
     " AS earlier FROM step x WHERE x.kind = 3 AND x.copy = 2 AND earlier IS NOT NULL"},
    {"SELECT event, free FROM untouched",
     "SELECT p.alloc, p.free FROM pair p WHERE NOT EXISTS (SELECT 1 FROM step s"
     " WHERE s.start BETWEEN p.born AND ifnull(p.died, 1 << 62) AND (s.kind IN (6, 12) OR"
     " (s.kind IN (3, 4) AND (s.a BETWEEN p.a AND p.a + p.bytes - 1"
     " OR (s.kind = 3 AND s.b BETWEEN p.a AND p.a + p.bytes - 1)))))"},
    {"SELECT event FROM early_block",
     "SELECT p.alloc FROM pair p WHERE p.last IS NOT p.part AND p.part < (SELECT max(part) FROM"
     " step) AND EXISTS (SELECT 1 FROM pair o WHERE o.last = p.part AND o.part < p.part"
     " AND o.died > p.born)"},
    {"SELECT event, alloc FROM late_free",
     "SELECT p.free, p.alloc FROM pair p WHERE p.part < p.last AND EXISTS (SELECT 1 FROM pair o"
     " WHERE o.part = p.last AND o.born < p.died)"},
    {"SELECT alloc, free, others FROM temp.pair",
     "SELECT alloc, free, others FROM pair WHERE free IS NOT NULL"},
    {"SELECT alloc FROM temp.pair WHERE again",
     "SELECT alloc FROM (SELECT *, max(live) OVER (PARTITION BY stack, device, bytes ORDER BY born"
     " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS most FROM (SELECT *, (SELECT count(*)"
     " FROM pair o WHERE o.stack IS p.stack AND o.device IS p.device AND o.bytes = p.bytes"
     " AND o.born <= p.born AND ifnull(o.died > p.born, 1)) AS live FROM pair p))"
     " WHERE free IS NOT NULL AND live <= most"},
    {"SELECT m.event FROM row_copy m JOIN row_matrix r ON r.id = m.matrix WHERE r.rows >= 4",
     "SELECT id FROM (SELECT id, count(*) OVER (PARTITION BY thread, matrix) AS rows FROM ("
     " SELECT *, sum(begins) OVER (PARTITION BY thread ORDER BY id) AS matrix FROM ("
     " SELECT *, ifnull(NOT (alike AND da = lag(da) OVER p AND db = lag(db) OVER p), 1) AS begins"
     " FROM (SELECT *, a - lag(a) OVER o AS da, b - lag(b) OVER o AS db,"
     " copy = lag(copy) OVER o AND bytes = lag(bytes) OVER o AS alike FROM step"
     " WHERE kind IN (3, 4, 6, 12) WINDOW o AS (PARTITION BY thread ORDER BY id))"
     " WHERE bytes > 0 WINDOW p AS (PARTITION BY thread ORDER BY id))"
     " WHERE alike AND copy IN (1, 2) AND abs(da) >= bytes AND abs(db) >= bytes))"
     " WHERE rows >= 4"},
    {"SELECT event, earlier FROM sent_back",
     "SELECT id, earlier FROM (SELECT id, copy, bytes, lag(id) OVER h AS earlier, lag(copy) OVER h"
     " AS copy1, lag(bytes) OVER h AS bytes1 FROM step WHERE kind = 3 AND copy IN (1, 2)"
     " WINDOW h AS (PARTITION BY CASE copy WHEN 2 THEN a ELSE b END ORDER BY start))"
     " WHERE copy = 1 AND copy1 = 2 AND bytes1 = bytes"}};

enum { FACTS = sizeof facts / sizeof *facts };

static int64_t found[FACTS];

static int64_t count_of(const wr_db *db, const char *format, const char *one, const char *other)
{
  char sql[8192];
  int64_t n = -1;
  ck_assert_int_lt(snprintf(sql, sizeof sql, format, one, other), (int)sizeof sql);
  ck_assert_msg(wr_db_number(db, sql, &n) == WEIR_OK, "%s: %s", sql, weir_error_message());
  return n;
}

/* What the pass finds is put aside: the names of its tables are those of the SQL. */
static void compare_fact(const wr_db *db, int i, int history)
{
  char sql[4096];
  (void)snprintf(sql, sizeof sql,
                 "DROP TABLE IF EXISTS temp.mine; CREATE TEMP TABLE mine AS %s;"
                 "DROP TABLE IF EXISTS temp.theirs;",
                 facts[i].fact);
  ck_assert_int_eq(wr_db_exec(db, sql), WEIR_OK);
  (void)snprintf(sql, sizeof sql, "CREATE TEMP TABLE theirs AS " STEP "%s", facts[i].sql);
  ck_assert_msg(wr_db_exec(db, sql) == WEIR_OK, "%s", weir_error_message());
  int64_t n = count_of(db, "SELECT count(*) FROM %s%s", "mine", "");
  found[i] += n;
  ck_assert_msg(n == count_of(db, "SELECT count(*) FROM %s%s", "theirs", "") &&
                    !count_of(db, "SELECT count(*) FROM (SELECT * FROM %s EXCEPT SELECT * FROM %s)",
                              "mine", "theirs"),
                "history %d: %s", history, facts[i].fact);
}

START_TEST(a_pass_finds_what_sorting_finds)
{
  for (int history = 0; history < HISTORIES; history++) {
    wr_input in;
    wr_facts f = {0};
    wr_facts_settings settings = {0};
    ck_assert_int_eq(wr_input_open(&in, make_history(history)), WEIR_OK);
    ck_assert_msg(wr_facts_make(&f, &in.db, &settings) == WEIR_OK, "%s", weir_error_message());
    for (int i = 0; i < FACTS; i++)
      compare_fact(&in.db, i, history);
    wr_facts_free(&f);
    wr_input_close(&in);
    synth_clean();
  }
  for (int i = 0; i < FACTS; i++)
    ck_assert_msg(found[i] > 0, "%s has no row", facts[i].fact);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/facts");
  TCase *t = tcase_create("facts");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, a_pass_finds_what_sorting_finds);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
