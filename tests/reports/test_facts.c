/* test_facts.c: what one pass over the calls finds is what SQL finds that sorts them, over random
 * histories of several threads. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "reports/findings/facts.h"
#include "reports/model/open.h"
#include "tests/reports/synth.h"

enum {
  HISTORIES = 12,
  CALLS = 400,
  SLOW_CALLS = 600,
  DEEP_CALLS = 2600,
  PLACES = 5,
  UNIT = 4096,
  SEED = 20261123
};

static bool live[PLACES];

static uint64_t address(unsigned place)
{
  return UINT64_C(0x700000000) + (uint64_t)place * UNIT;
}

static void copy_call(int thread, uint64_t at, bool in, uint64_t device, uint64_t host,
                      uint64_t bytes)
{
  trace_event e = {.kind = WEIR_EV_COPY,
                   .api = synth_api(in ? "cuMemcpyHtoD_v2" : "cuMemcpyDtoH_v2"),
                   .copy_kind = in ? WEIR_COPY_HTOD : WEIR_COPY_DTOH,
                   .a = in ? device : host,
                   .b = in ? host : device,
                   .bytes = bytes,
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
           device = address(place) + synth_below(2) * 512, bytes = synth_below(4) ? 64 : 32;
  for (unsigned i = 0, rows = synth_below(4) ? 1 : 2 + synth_below(8); i < rows; i++)
    copy_call(thread, at + i * 10, in, device + (uint64_t)i * 256, host + (uint64_t)i * 128, bytes);
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

typedef struct fact_case {
  const char *fact, *sql;
} fact_case;

static const fact_case facts[] = {
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
    {"SELECT u.event, u.free FROM untouched u JOIN event_row e ON e.id = u.event"
     " WHERE e.template = u.template AND e.bytes = u.bytes",
     "SELECT p.alloc, p.free FROM pair p WHERE NOT EXISTS (SELECT 1 FROM step s"
     " WHERE s.start BETWEEN p.born AND ifnull(p.died, 1 << 62) AND (s.kind IN (6, 12) OR"
     " (s.kind IN (3, 4) AND (s.a BETWEEN p.a AND p.a + p.bytes - 1"
     " OR (s.kind = 3 AND s.b BETWEEN p.a AND p.a + p.bytes - 1)))))"},
    {"SELECT b.event FROM early_block b JOIN event_row e ON e.id = b.event"
     " WHERE e.template = b.template AND e.bytes = b.bytes",
     "SELECT p.alloc FROM pair p WHERE p.last IS NOT p.part AND p.part < (SELECT max(part) FROM"
     " step) AND EXISTS (SELECT 1 FROM pair o WHERE o.last = p.part AND o.part < p.part"
     " AND o.died > p.born) AND (SELECT t.thread FROM pair o JOIN event_row e ON e.id = o.free"
     " JOIN template t ON t.id = e.template WHERE o.last = p.part AND o.part < p.part"
     " ORDER BY o.died DESC LIMIT 1) = (SELECT t.thread FROM event_row e"
     " JOIN template t ON t.id = e.template WHERE e.id = p.alloc)"},
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

/* Copies, frees, memsets, waits and launches, each of which may be long, of three threads in
 * streams of their own and in one of all. */
static void slow_call(int thread, uint64_t at)
{
  static const uint64_t sizes[] = {64, 4096, 65535, 65536, 2000000, 0};
  static const uint8_t kinds[] = {WEIR_EV_COPY, WEIR_EV_COPY, WEIR_EV_COPY,   WEIR_EV_COPY,
                                  WEIR_EV_FREE, WEIR_EV_SYNC, WEIR_EV_MEMSET, WEIR_EV_LAUNCH},
                       copies[] = {WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD};
  trace_event e = {.kind = kinds[synth_below(8)],
                   .api = synth_api("cuInit"),
                   .a = address((unsigned)synth_below(PLACES)),
                   .b = UINT64_C(0x7f0000000000) + synth_below(40) * 65536,
                   .bytes = sizes[synth_below(6)],
                   .stream = synth_below(3) ? 16 + (uint64_t)thread : 20,
                   .mem = WEIR_MEM_DEVICE,
                   .flags = (uint8_t)(synth_below(4) | (synth_below(9) ? 0 : WEIR_EVF_CAPTURE) |
                                      (synth_below(9) ? 0 : WEIR_EVF_BATCH)),
                   .status = !synth_below(12)};
  if (e.kind == WEIR_EV_COPY) {
    unsigned host = 1 + (unsigned)synth_below(2);
    e.copy_kind = copies[synth_below(3)];
    e.mem = (uint8_t)(e.copy_kind == WEIR_COPY_DTOH ? host | WEIR_MEM_DEVICE << 4
                                                    : WEIR_MEM_DEVICE | host << 4);
  } else if (e.kind == WEIR_EV_SYNC) {
    e.sync_type = (uint8_t)(1 + synth_below(5));
  }
  synth_event(thread, at, 1 + synth_below(2) * synth_below(45000), e);
}

/* Small copies, one after the other; a few have something between them. */
static uint64_t small_copies(int thread, uint64_t at)
{
  for (unsigned i = 0, count = (unsigned)synth_below(80); i < count; i++, at += 20000) {
    if (!synth_below(60)) at += 50000;
    copy_call(thread, at, synth_below(80) != 0, address(0), UINT64_C(0x7f0000000000), 64);
    if (!synth_below(70)) synth_sync(thread, at + 10, 4, WEIR_SYNC_QUERY);
  }
  return at;
}

static const char *make_slow_history(int history)
{
  const char *one[] = {NULL, NULL};
  synth_seed(SEED + 77 + (uint64_t)history);
  synth_open(synth_dir());
  uint64_t at = 1;
  for (int i = 0; i < SLOW_CALLS; i++) {
    int thread = (int)synth_below(history % 3 ? 3 : 1);
    slow_call(thread, at);
    if (!synth_below(40)) at = small_copies(thread, at + 50000);
    at += 10000 + synth_below(90000);
  }
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

/* A stream that is given more than it has room for, and one beside it; two waits. */
static const char *make_full_history(int history)
{
  const char *one[] = {NULL, NULL};
  synth_seed(SEED + 177 + (uint64_t)history);
  synth_open(synth_dir());
  for (uint64_t i = 0; i < DEEP_CALLS; i++) {
    int thread = (int)synth_below(history % 3 ? 3 : 1);
    trace_event e = {.kind = synth_below(20) ? WEIR_EV_LAUNCH : WEIR_EV_MEMSET,
                     .api = synth_api("cuLaunchKernel"),
                     .bytes = 32,
                     .mem = WEIR_MEM_DEVICE,
                     .stream = synth_below(30) ? 20 : 21,
                     .flags = synth_below(50) ? 0 : WEIR_EVF_CAPTURE};
    synth_event(thread, i * 50000, synth_below(3) ? 5000 : 20000 + synth_below(9000), e);
    if (i == DEEP_CALLS / 7) synth_sync(thread, i * 50000 + 30000, 4, WEIR_SYNC_CONTEXT);
    if (i == DEEP_CALLS / 4 * 3) synth_sync(thread, i * 50000 + 30000, 4, WEIR_SYNC_QUERY);
  }
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

#define PAGEABLE "t.kind = 3 AND t.flags & 1 AND 1 IN (t.mem, t.src_mem) AND t.copy IN (1, 2)"

/* What windows over all calls find. */
static const fact_case slow_facts[] = {
    {"SELECT event FROM small_copy",
     "WITH step AS (SELECT e.id, t.thread, t.kind, t.copy, e.bytes, e.start, lag(e.start + "
     "e.duration) OVER o"
     " AS before, lag(t.kind) OVER o AS kind1, lag(t.copy) OVER o AS copy1, lag(e.bytes) OVER o AS "
     "bytes1"
     " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE t.kind IN (3, 4, 5, 6, 12)"
     " AND t.status = 0 AND NOT t.flags & 48 WINDOW o AS (PARTITION BY t.thread ORDER BY e.start)),"
     " marked AS (SELECT *, kind1 IS NOT 3 OR copy1 <> copy OR bytes1 > 65535 OR start - before >= "
     "50000"
     " AS begins FROM step WHERE kind = 3 AND bytes BETWEEN 1 AND 65535),"
     " numbered AS (SELECT *, sum(begins) OVER (PARTITION BY thread ORDER BY start) AS storm FROM "
     "marked),"
     " counted AS (SELECT *, count(*) OVER (PARTITION BY thread, storm) AS copies FROM numbered)"
     " SELECT id FROM counted WHERE copies >= 32 AND NOT begins"},
    {"SELECT event, bytes FROM large_copy",
     "SELECT e.id, e.bytes FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE "
     "t.kind = 3"
     " AND t.status = 0 AND t.copy IN (1, 2, 10) AND NOT t.flags & 176 AND e.bytes >= 1048576"},
    {"SELECT event, gap FROM pageable_copy",
     "SELECT id, gap FROM (SELECT e.id, e.bytes, t.copy, " PAGEABLE
     " AS found, lead(e.start) OVER (PARTITION BY"
     " t.thread ORDER BY e.start) - e.start - e.duration AS gap FROM event_row e CROSS JOIN "
     "template t"
     " ON t.id = e.template WHERE t.status = 0 AND NOT t.flags & 16 AND (t.kind IN (2, 3, 4) AND "
     "t.flags & 2"
     " OR t.kind = 5 AND t.copy IN (1, 3, 4) OR " PAGEABLE
     ")) WHERE found AND (bytes > 65535 OR copy = 2 AND bytes >= 4096)"},
    {"SELECT event, gap FROM blocking_copy",
     "SELECT id, gap FROM (SELECT e.id, e.bytes, e.duration, t.kind, t.copy, t.flags, t.src_mem,"
     " lead(e.start) OVER (PARTITION BY t.thread ORDER BY e.start) - e.start - e.duration AS gap"
     " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE t.kind IN (2, 3, 5)"
     " AND t.status = 0 AND NOT t.flags & 48) WHERE kind = 3 AND copy = 1 AND NOT flags & 1"
     " AND src_mem = 2 AND bytes > 65535 AND duration >= 20000"},
    {"SELECT event, gap FROM hidden_wait",
     "SELECT id, gap FROM (SELECT e.id, e.duration, t.kind, lead(e.start) OVER (PARTITION BY "
     "t.thread"
     " ORDER BY e.start) - e.start - e.duration AS gap FROM event_row e CROSS JOIN template t"
     " ON t.id = e.template WHERE t.status = 0 AND NOT t.flags & 16 AND (t.kind = 5 AND t.copy IN "
     "(1, 3, 4)"
     " OR t.flags & 2 AND (t.kind = 2 OR t.kind IN (3, 4) AND e.bytes > 0)))"
     " WHERE kind IN (2, 4) AND duration >= 20000"},
    {"SELECT event, earlier FROM turned_copy",
     "WITH step AS (SELECT e.id, e.start, t.process, t.kind, t.copy, t.flags, t.mem, t.src_mem, "
     "e.a,"
     " e.b, e.bytes, lag(e.start) OVER o AS start1,"
     " lag(e.id) OVER o AS id1, lag(t.kind) OVER o AS kind1, lag(t.copy) OVER o AS copy1,"
     " lag(t.flags) OVER o AS flags1, lag(t.mem) OVER o AS mem1, lag(t.src_mem) OVER o AS src1,"
     " lag(e.a) OVER o AS a1, lag(e.b) OVER o AS b1, lag(e.bytes) OVER o AS bytes1"
     " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE t.kind IN (3, 4, 6, 12)"
     " AND t.status = 0 AND NOT t.flags & 48 WINDOW o AS (PARTITION BY t.process, t.context, "
     "t.stream"
     " ORDER BY e.start)) SELECT id, id1 FROM step WHERE kind = 3 AND kind1 = 3 AND copy + copy1 = "
     "3"
     " AND flags & flags1 & 1 AND bytes > 65535 AND bytes1 > 65535 AND 2 IN (mem, src_mem)"
     " AND 2 IN (mem1, src1) AND (a >= b1 + bytes1 OR b1 >= a + bytes) AND (b >= a1 + bytes1 OR a1 "
     ">= b + bytes) AND NOT EXISTS (SELECT 1 FROM event_row w CROSS JOIN template y ON y.id ="
     " w.template WHERE y.process = step.process AND y.status = 0"
     " AND w.start > start1 AND w.start <= step.start AND (y.kind = 5 AND y.copy <> 2"
     " OR y.kind = 3 AND y.flags & 18 = 2 AND (y.copy = 2 OR y.copy = 1 AND NOT y.flags & 1)))"}};

#define DEEP                                                                                       \
  "WITH op AS (SELECT e.id, e.start, e.duration, t.kind, t.stream, lag(e.id, 1000) OVER o AS "     \
  "ahead,"                                                                                         \
  " row_number() OVER o AS n FROM event_row e CROSS JOIN template t ON t.id = e.template"          \
  " WHERE (t.kind IN (3, 4, 6) OR (t.kind = 12 AND t.stream <> 0)) AND t.status = 0 AND NOT "      \
  "t.flags & 16"                                                                                   \
  " WINDOW o AS (PARTITION BY t.process, t.context, t.stream ORDER BY e.start)),"                  \
  " deep AS (SELECT *, ifnull(lag(n, 2) OVER (PARTITION BY stream ORDER BY start) >= n - 4, 0) "   \
  "AS again"                                                                                       \
  " FROM op WHERE kind = 6 AND duration >= 20000 AND ahead IS NOT NULL)"                           \
  " SELECT d.id, d.ahead, d.again AND NOT EXISTS (SELECT 1 FROM event_row e CROSS JOIN template "  \
  "t"                                                                                              \
  " ON t.id = e.template WHERE t.kind = 5 AND e.start BETWEEN"                                     \
  " (SELECT start FROM event_row WHERE id = d.ahead) AND d.start) AS quiet FROM deep d"

static const fact_case full_facts[] = {{"SELECT event, ahead, quiet FROM deep_launch", DEEP},
                                       {"SELECT event, ahead, quiet FROM deep_launch WHERE quiet",
                                        "SELECT * FROM (" DEEP ") WHERE quiet"}};

enum {
  FACTS = sizeof facts / sizeof *facts,
  SLOW_FACTS = sizeof slow_facts / sizeof *slow_facts,
  FULL_FACTS = sizeof full_facts / sizeof *full_facts,
  ALL_FACTS = FACTS + SLOW_FACTS + FULL_FACTS
};

static int64_t found[ALL_FACTS];

static int64_t count_of(const wr_db *db, const char *format, const char *one, const char *other)
{
  char sql[8192];
  int64_t n = -1;
  ck_assert_int_lt(snprintf(sql, sizeof sql, format, one, other), (int)sizeof sql);
  ck_assert_msg(wr_db_number(db, sql, &n) == WEIR_OK, "%s: %s", sql, weir_error_message());
  return n;
}

/* What the pass finds is put aside: the names of its tables are those of the SQL. */
static void compare_fact(const wr_db *db, const fact_case *x, const char *step, int history,
                         int64_t *count)
{
  char sql[4096];
  (void)snprintf(sql, sizeof sql,
                 "DROP TABLE IF EXISTS temp.mine; CREATE TEMP TABLE mine AS %s;"
                 "DROP TABLE IF EXISTS temp.theirs;",
                 x->fact);
  ck_assert_int_eq(wr_db_exec(db, sql), WEIR_OK);
  (void)snprintf(sql, sizeof sql, "CREATE TEMP TABLE theirs AS %s%s", step, x->sql);
  ck_assert_msg(wr_db_exec(db, sql) == WEIR_OK, "%s", weir_error_message());
  int64_t n = count_of(db, "SELECT count(*) FROM %s%s", "mine", "");
  *count += n;
  ck_assert_msg(n == count_of(db, "SELECT count(*) FROM %s%s", "theirs", "") &&
                    !count_of(db, "SELECT count(*) FROM (SELECT * FROM %s EXCEPT SELECT * FROM %s)",
                              "mine", "theirs"),
                "history %d: %s", history, x->fact);
}

/* `all`: what is found is as sorting says, in this trace; found[from + i] counts. */
static void compare_facts(const char *trace, const fact_case *all, int count, const char *step,
                          int history, int from)
{
  wr_input in;
  wr_facts f = {0};
  wr_events events;
  wr_facts_pass *pass = NULL;
  wr_facts_settings settings = {.events = &events, .timed = true};
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  ck_assert_int_eq(wr_events_open(&events, &in.db), WEIR_OK);
  ck_assert_int_eq(wr_facts_begin(&pass, &f, &in.db, &settings), WEIR_OK);
  const wr_listener listener = {.take_some = wr_facts_take, .context = pass, .in_time = true};
  ck_assert_int_eq(wr_events_listen(&events, &listener, 1), WEIR_OK);
  ck_assert_msg(wr_facts_end(pass) == WEIR_OK, "%s", weir_error_message());
  wr_facts_close(pass);
  for (int i = 0; i < count; i++)
    compare_fact(&in.db, &all[i], step, history, &found[from + i]);
  wr_facts_free(&f);
  wr_events_close(&events);
  wr_input_close(&in);
  synth_clean();
}

START_TEST(a_pass_finds_what_sorting_finds)
{
  for (int history = 0; history < HISTORIES; history++) {
    compare_facts(make_history(history), facts, FACTS, STEP, history, 0);
    compare_facts(make_slow_history(history), slow_facts, SLOW_FACTS, "", history, FACTS);
    compare_facts(make_full_history(history), full_facts, FULL_FACTS, "", history,
                  FACTS + SLOW_FACTS);
  }
  for (int i = 0; i < ALL_FACTS; i++)
    ck_assert_msg(found[i] > 0, "fact %d has no row", i);
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
