/* test_idle.c: why devices were idle and how waits divide, against a program that knows when they
 * surely were (idler.c); and what a report shows of the examples' device times. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#define PROGRAMS AT_LEVEL(6, 40, 400)

/* Two readings of the clocks agree to a ms wherever the thread is interrupted; phases last
 * longer. */
enum { OFF = 1000000, WAITS = 256, CAUSES = 5 };

typedef struct account { /* what surely was, ns */
  int64_t zero;          /* of the trace's times */
  int64_t start[WAITS], end[WAITS];
  int64_t idle[2][CAUSES];
  int waits, lines;
} account;

static sqlite3 *db;

static int64_t number(const char *sql, int64_t a, int64_t b, int64_t c)
{
  sqlite3_stmt *q = NULL;
  ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s: %s", sql,
                sqlite3_errmsg(db));
  (void)sqlite3_bind_int64(q, 1, a);
  (void)sqlite3_bind_int64(q, 2, b);
  (void)sqlite3_bind_int64(q, 3, c);
  ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
  int64_t n = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return n;
}

static void read_waits(account *x)
{
  sqlite3_stmt *q = NULL;
  ck_assert_int_eq(sqlite3_prepare_v2(db,
                                      "SELECT start_ns, start_ns + duration_ns FROM wait"
                                      " WHERE waits_for IN ('event', 'stream', 'context')"
                                      " ORDER BY 1",
                                      -1, &q, NULL),
                   SQLITE_OK);
  for (; sqlite3_step(q) == SQLITE_ROW; x->waits++) {
    ck_assert_int_lt(x->waits, WAITS);
    x->start[x->waits] = sqlite3_column_int64(q, 0);
    x->end[x->waits] = sqlite3_column_int64(q, 1);
  }
  sqlite3_finalize(q);
}

/* How long of the nth wait is surely in [from, to]. */
static int64_t within_wait(const account *x, int n, int64_t from, int64_t to)
{
  ck_assert_int_lt(n, x->waits);
  if (x->start[n] > from) from = x->start[n];
  if (x->end[n] < to) to = x->end[n];
  return to - from > OFF ? to - from - OFF : 0;
}

/* The device is not idle in [from, to], but at its ends. */
static void expect_busy(int device, int64_t from, int64_t to)
{
  if (to - from <= 2 * OFF) return;
  ck_assert_msg(
      !number("SELECT count(*) FROM device_gap WHERE device = ? AND start < ? AND \"end\" > ?",
              device, to - OFF, from + OFF),
      "GPU %d is idle somewhere from %lld to %lld", device, (long long)from, (long long)to);
}

/* It is, in one gap. */
static void expect_idle(int device, int64_t from, int64_t to)
{
  if (to - from <= 2 * OFF) return;
  ck_assert_msg(
      number("SELECT count(*) FROM device_gap WHERE device = ? AND start <= ? AND \"end\" >= ?",
             device, from + OFF, to - OFF) == 1,
      "GPU %d is busy somewhere from %lld to %lld", device, (long long)from, (long long)to);
}

static void expect_part(const account *x, int n, const char *column, int64_t from, int64_t to)
{
  char sql[200];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT max(%s) FROM wait_time t JOIN wait w USING(id) WHERE w.start_ns = ?",
                 column);
  int64_t least = within_wait(x, n, from, to), had = number(sql, x->start[n], 0, 0);
  ck_assert_msg(had >= least, "wait %d: %s is %lld, and at least %lld", n, column, (long long)had,
                (long long)least);
}

static int cause_of(const char *name)
{
  static const char *const names[CAUSES] = {"unknown", "queued", "host_waiting", "host_elsewhere",
                                            "no_call"};
  for (int i = 0; i < CAUSES; i++)
    if (!strcmp(names[i], name)) return i;
  ck_abort_msg("no cause %s", name);
}

static void take_line(account *x, const char *line)
{
  int device, wait;
  long long from, to;
  char name[32];
  x->lines++;
  if (sscanf(line, "busy %d %lld %lld", &device, &from, &to) == 3) {
    expect_busy(device, from - x->zero, to - x->zero);
  } else if (sscanf(line, "idle %d %31s %lld %lld", &device, name, &from, &to) == 4) {
    expect_idle(device, from - x->zero, to - x->zero);
    if (to - from > OFF) x->idle[device][cause_of(name)] += to - from - OFF;
  } else if (sscanf(line, "waiting %d %d %lld %lld", &device, &wait, &from, &to) == 4) {
    x->idle[device][cause_of("host_waiting")] += within_wait(x, wait, from - x->zero, to - x->zero);
  } else if (sscanf(line, "part %d %31s %lld %lld", &wait, name, &from, &to) == 4) {
    expect_part(x, wait, name, from - x->zero, to - x->zero);
  } else {
    ck_abort_msg("what is this: %s", line);
  }
}

static void expect_sums(account *x)
{
  static const char of_cause[] =
      "SELECT ifnull(sum(ns), 0) FROM device_idle WHERE device = ? AND cause = ?";
  x->idle[0][3] = number("SELECT ifnull(sum(max(duration_ns - ?, 0)), 0) FROM call"
                         " WHERE function = 'cudaHostRegister'",
                         OFF, 0, 0);
  x->idle[1][3] = x->idle[0][3];
  for (int d = 0; d < 2; d++) {
    for (int i = 0; i < CAUSES; i++)
      ck_assert_msg(number(of_cause, d, i, 0) >= x->idle[d][i],
                    "GPU %d: cause %d is %lld, and at least %lld", d, i,
                    (long long)number(of_cause, d, i, 0), (long long)x->idle[d][i]);
    ck_assert_int_eq(number(of_cause, d, 0, 0), 0);
    ck_assert_int_eq(number("SELECT (SELECT sum(ns) FROM device_idle WHERE device = ?1) ="
                            " (SELECT sum(\"end\" - start) FROM device_gap WHERE device = ?1)",
                            d, 0, 0),
                     1);
  }
  /* no function has more than its calls took */
  ck_assert_int_eq(number("SELECT count(*) FROM (SELECT i.ns AS ns, (SELECT sum(duration_ns) FROM"
                          " call c JOIN api a ON a.name = c.function WHERE a.id = i.api) AS most"
                          " FROM device_idle i WHERE i.api IS NOT NULL) WHERE ns > most",
                          0, 0, 0),
                   0);
  ck_assert_int_eq(number("SELECT count(*) FROM wait_time WHERE unknown_ns > 0", 0, 0, 0), 0);
}

START_TEST(idle_time_and_waits_are_what_a_program_knows_of_them)
{
  account x = {0};
  char line[128];
  sh_status(0,
            "$WEIR run --force -o t.db --mode=observe --sim=2,h100 --device-times=all --"
            " $BUILD/tests/e2e/idler %d known",
            1 + _i);
  sh_status(0, "$WEIR resolve t.db");
  FILE *f = fopen("known", "r");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_eq(sqlite3_open_v2("t.db", &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  x.zero = number("SELECT value FROM meta WHERE key = 'start_monotonic_ns'", 0, 0, 0);
  read_waits(&x);
  while (fgets(line, sizeof(line), f))
    take_line(&x, line);
  expect_sums(&x);
  ck_assert_int_gt(x.lines, 30);
  sqlite3_close(db);
  (void)fclose(f);
}
END_TEST

/* ---- the examples ---------------------------------------------------------------------------- */

/* Columns of a line, which has no tab and no colour: code points. */
static int columns(const char *line)
{
  int n = 0;
  for (; *line && *line != '\n'; line++)
    n += ((unsigned char)*line & 0xc0) != 0x80;
  return n;
}

static void expect_narrow(const char *text, int width)
{
  for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
    ck_assert_msg(columns(at) <= width, "more than %d columns: %.150s", width, at);
}

static void expect_said(const char *text, const char *what)
{
  ck_assert_msg(strstr(text, what) != NULL, "no \"%s\" in: %s", what, text);
}

static const char *const examples[] = {"stencil 30", "pipeline 8"};

START_TEST(a_report_of_an_example_shows_what_devices_did)
{
  static const char *const said[] = {"Device time  copies and kernels",
                                     "device time", /* host and device times by name */
                                     "host time",
                                     "host → device",
                                     "kernels",
                                     "B/s",
                                     "GPU 0: busy ",
                                     "overlap",
                                     "Why devices were idle",
                                     "What devices did in waits"};
  sh_status(0,
            "$WEIR run --force -o t.db --mode=observe --sim=2,h100 --device-times=all --"
            " $BUILD/examples/%s",
            examples[_i]);
  for (int width = 80; width <= 120; width += 40) {
    const outcome *o = sh_status(0, "$WEIR report --width %d t.db", width);
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
      expect_said(o->out, said[i]);
    expect_narrow(o->out, width);
  }
  sh_status(0, "$WEIR report --format json t.db > r.json");
  sh_status(0, "grep -q '\"undivided\": null' r.json");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("idle");
  TCase *t = tcase_create("idle");
  tcase_set_timeout(t, 300);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, idle_time_and_waits_are_what_a_program_knows_of_them, 0, PROGRAMS);
  tcase_add_loop_test(t, a_report_of_an_example_shows_what_devices_did, 0,
                      (int)(sizeof(examples) / sizeof(examples[0])));
  suite_add_tcase(s, t);
  return run_suite(s);
}
