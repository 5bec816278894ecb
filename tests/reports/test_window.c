/* test_window.c: a spool with a tally of what came before is a trace of its window: the trace of the
 * whole spool, cut; what is cut off is in totals, so that both together are what the program did.
 * Whatever lies in place of the tally is a trace, or is refused in a sentence. */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "reports/tally/private.h"
#include "tests/reports/random_program.h"
#include "tests/reports/recorder.h"
#include "tests/reports/synth.h"

/* ---- traces ---------------------------------------------------------------------------------- */

/* A copy of the spool alone in a folder of its own: its trace is whole. */
static const char *whole_trace(const char *const *spools, const char *name)
{
  static char folder[PATH_MAX - 64], path[4][PATH_MAX], trace[PATH_MAX];
  const char *copies[5] = {NULL};
  (void)snprintf(folder, sizeof folder, "%s/whole", synth_dir());
  (void)mkdir(folder, 0700);
  for (int i = 0; spools[i]; i++) {
    char command[3 * PATH_MAX];
    (void)snprintf(path[i], sizeof path[i], "%s/%s", folder, strrchr(spools[i], '/') + 1);
    (void)snprintf(command, sizeof command, "cp '%s' '%s'", spools[i], path[i]);
    ck_assert_int_eq(system(command), 0);
    copies[i] = path[i];
  }
  (void)snprintf(trace, sizeof trace, "%s", synth_import(name, copies));
  return trace;
}

static const char *window_trace(const char *const *spools)
{
  static char trace[PATH_MAX];
  (void)snprintf(trace, sizeof trace, "%s", synth_import("window.db", spools));
  return trace;
}

/* ---- two traces side by side ----------------------------------------------------------------- */

typedef struct beside {
  sqlite3 *db; /* w: the whole trace; d: its window */
  int64_t from;
} beside;

static void run_sql_of(const beside *b, const char *sql)
{
  char *why = NULL;
  int code = sqlite3_exec(b->db, sql, NULL, NULL, &why);
  ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, why ? why : "?");
}

static int64_t number_of(const beside *b, const char *sql)
{
  sqlite3_stmt *q = NULL;
  int code = sqlite3_prepare_v2(b->db, sql, -1, &q, NULL);
  ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(b->db));
  int64_t n = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
  sqlite3_finalize(q);
  return n;
}

/* The first row of a query as text (new), NULL: it has none. */
static char *first_row(const beside *b, const char *sql)
{
  sqlite3_stmt *q = NULL;
  int code = sqlite3_prepare_v2(b->db, sql, -1, &q, NULL);
  ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(b->db));
  char *text = NULL;
  size_t bytes = 0;
  if (sqlite3_step(q) == SQLITE_ROW) {
    FILE *f = open_memstream(&text, &bytes);
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      const char *value = (const char *)sqlite3_column_text(q, i);
      (void)fprintf(f, "%s%s %s", i ? ", " : "", sqlite3_column_name(q, i), value ? value : "NULL");
    }
    (void)fclose(f);
  }
  sqlite3_finalize(q);
  return text;
}

/* The rows of a query are the same, as sets, of w and of d; @ in it is one of them. */
static char *query_of(const char *query, char schema)
{
  char *sql = sqlite3_mprintf("%s", query);
  for (char *at = sql; (at = strchr(at, '@'));)
    *at = schema;
  return sql;
}

static void expect_no_rows(const beside *b, const char *what, const char *from, const char *except)
{
  char *sql = sqlite3_mprintf("%s EXCEPT %s", from, except);
  char *row = first_row(b, sql);
  ck_assert_msg(!row, "%s: %s", what, row);
  sqlite3_free(sql);
}

static void expect_same(const beside *b, const char *what, const char *query)
{
  char *w = query_of(query, 'w'), *d = query_of(query, 'd'), text[160];
  (void)snprintf(text, sizeof text, "%s, of the whole alone", what);
  expect_no_rows(b, text, w, d);
  (void)snprintf(text, sizeof text, "%s, of the window alone", what);
  expect_no_rows(b, text, d, w);
  sqlite3_free(w);
  sqlite3_free(d);
}

/* Each event with all that it has, but for numbers of rows. */
static void make_events(const beside *b, char schema)
{
  static const char sql[] =
      "CREATE TABLE @stacks AS SELECT stack AS id, group_concat(a, ' ') AS frames FROM (SELECT"
      " sf.stack, f.address AS a FROM @.stack_frame sf JOIN @.frame f ON f.id = sf.frame"
      " ORDER BY sf.stack, sf.depth) GROUP BY stack; CREATE UNIQUE INDEX @i1 ON @stacks(id);"
      "CREATE TABLE @events AS SELECT e.process, (SELECT serial FROM @.thread x WHERE x.id ="
      " e.thread) AS thread, e.kind, e.api, e.start, e.\"end\", e.status, e.context,"
      " ifnull(e.device, 255) AS device, ifnull(e.src_device, 255) AS src_device, e.copy, e.mem,"
      " e.src_mem, e.flags, e.stream, e.a, e.b, e.bytes,"
      " ifnull((SELECT frames FROM @stacks s WHERE s.id = e.stack), '') AS frames, e.id AS id,"
      " ifnull((SELECT n.text FROM @.event_range r JOIN @.range_row o ON o.id = r.range"
      " JOIN @.range_name n ON n.id = o.name WHERE r.event = e.id), '') AS text FROM @.event e;"
      "CREATE TABLE @blocks AS SELECT process, pointer, bytes, ifnull(device, 255) AS device, mem,"
      " registered, how, start, \"end\", context, ifnull((SELECT frames FROM @stacks s WHERE"
      " s.id = b.stack), '') AS frames FROM @.block b";
  char *text = query_of(sql, schema);
  run_sql_of(b, text);
  sqlite3_free(text);
}

static beside put_beside(const char *whole, const char *window)
{
  beside b = {0};
  ck_assert_int_eq(sqlite3_open(":memory:", &b.db), SQLITE_OK);
  char *attach = sqlite3_mprintf("ATTACH %Q AS w; ATTACH %Q AS d", whole, window);
  run_sql_of(&b, attach);
  sqlite3_free(attach);
  make_events(&b, 'w');
  make_events(&b, 'd');
  b.from = number_of(&b, "SELECT value FROM d.meta WHERE key = 'window_start_ns'");
  char *cut = sqlite3_mprintf("CREATE TABLE cut AS SELECT %lld AS at", (long long)b.from);
  run_sql_of(&b, cut);
  sqlite3_free(cut);
  return b;
}

#define OF_A_CALL                                                                                  \
  "process, thread, kind, api, start, \"end\", status, context, device, src_device, copy, mem,"    \
  " src_mem, flags, stream, a, b, bytes, frames"
#define OF_A_TOTAL                                                                                 \
  "process, kind, api, status, flags & 82 AS flags, device, src_device, copy, mem,"                \
  " src_mem, frames"

static void expect_events(const beside *b)
{
  expect_no_rows(b, "events that never were", "SELECT " OF_A_CALL " FROM devents",
                 "SELECT " OF_A_CALL " FROM wevents");
  expect_same(b, "events since the window began",
              "SELECT " OF_A_CALL ", text FROM @events WHERE start > (SELECT at FROM cut)");
  run_sql_of(b, "CREATE TABLE before AS SELECT process, kind, api, status, flags,"
                " ifnull(device, 255) AS device, ifnull(src_device, 255) AS src_device, copy, mem,"
                " src_mem, ifnull((SELECT frames FROM dstacks s WHERE s.id = x.stack), '') AS"
                " frames, count, bytes, ns FROM d.before_window x");
  ck_assert_int_eq(number_of(b, "SELECT count(*) FROM before WHERE count <= 0"), 0);
  run_sql_of(b, "CREATE TABLE both AS SELECT " OF_A_TOTAL ", 1 AS count, bytes, \"end\" - start"
                " AS ns FROM devents UNION ALL SELECT * FROM before");
  expect_no_rows(b, "window and before, of the whole alone",
                 "SELECT " OF_A_TOTAL ", count(*), sum(bytes), sum(\"end\" - start) FROM wevents"
                 " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
                 "SELECT process, kind, api, status, flags, device, src_device, copy, mem,"
                 " src_mem, frames, sum(count), sum(bytes), sum(ns) FROM both"
                 " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11");
  ck_assert_int_eq(number_of(b, "SELECT count(*) FROM wevents"),
                   number_of(b, "SELECT sum(count) FROM both"));
}

static void expect_blocks(const beside *b)
{
  expect_same(b, "live blocks",
              "SELECT process, pointer, bytes, device, mem, registered, start, context, frames"
              " FROM @blocks WHERE how = 0");
  expect_same(b, "blocks that ended in the window",
              "SELECT * FROM @blocks WHERE \"end\" > (SELECT at FROM cut)");
}

/* Of one process: sums, and the most that ever was live. */
static void expect_memory(const beside *b)
{
  run_sql_of(b, "CREATE TABLE was AS SELECT device, mem, registered, sum(allocs) AS allocs,"
                " sum(bytes) AS bytes, max(peak) AS peak FROM (SELECT device, mem, registered,"
                " allocs, bytes, peak FROM d.memory UNION ALL SELECT device, mem, registered,"
                " allocs, bytes, peak FROM d.before_window_memory) GROUP BY 1, 2, 3");
  expect_no_rows(b, "memory", "SELECT device, mem, registered, allocs, bytes, peak FROM w.memory",
                 "SELECT * FROM was");
  expect_same(b, "live sums",
              "SELECT device, mem, registered, live, live_blocks FROM @.memory"
              " WHERE live_blocks > 0");
}

static void expect_ranges(const beside *b)
{
  expect_same(
      b, "ranges",
      "SELECT r.process, (SELECT serial FROM @.thread x WHERE x.id = r.thread), r.kind,"
      " n.text, n.category, n.color, r.start, r.\"end\", r.number, r.payload_type,"
      " r.payload FROM @.range_row r LEFT JOIN @.range_name n ON n.id = r.name"
      " WHERE ifnull(r.\"end\", 1 << 60) > (SELECT at FROM cut) AND (r.kind <> 2 OR r.start >"
      " (SELECT at FROM cut))");
}

static void expect_graphs(const beside *b)
{
  expect_same(b, "launches of graphs",
              "SELECT e.start, l.content IS NULL, group_concat(g.type || ' ' || g.bytes || ' ' ||"
              " g.mem || ' ' || ifnull(g.device, 'x') || ' ' || g.conditional || ' ' || g.count ||"
              " ' ' || ifnull(g.pointer, 'x') || ' ' || ifnull(g.target, 'x'), '; ') FROM"
              " @.graph_launch l JOIN @.event_row e ON e.id = l.event LEFT JOIN (SELECT * FROM"
              " @.graph_work ORDER BY content, type, bytes, mem, device, conditional, pointer,"
              " target) g ON g.content = l.content WHERE e.start > (SELECT at FROM cut)"
              " GROUP BY l.event");
}

static void expect_window(const char *whole, const char *window)
{
  beside b = put_beside(whole, window);
  expect_events(&b);
  expect_blocks(&b);
  expect_memory(&b);
  expect_ranges(&b);
  expect_graphs(&b);
  sqlite3_close(b.db);
}

/* ---- programs at random ---------------------------------------------------------------------- */

enum { STEPS = 6000, CUTS = 8 };

/* The cut: none, at eighths, and all. */
START_TEST(a_window_is_the_whole_trace_cut)
{
  const int cut = STEPS * (_i % CUTS) / (CUTS - 1);
  random_program *p = new_program(_i / CUTS);
  synth_open(synth_dir());
  for (int i = 0; i < cut; i++)
    random_step(p);
  recorder_tally(synth_spool(), false);
  for (int i = cut; i < STEPS; i++)
    random_step(p);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  expect_window(whole_trace(one, "whole.db"), window_trace(one));
}
END_TEST

/* ---- what is no tally of this spool ---------------------------------------------------------- */

/* Whether the spool can be imported; what it says when not. */
static weir_status import_as(const char *name)
{
  char path[PATH_MAX];
  trace_importer *im = NULL;
  const importer_options o = {.overwrite = true};
  (void)snprintf(path, sizeof path, "%s/%s", synth_dir(), name);
  ck_assert_int_eq(importer_open(&im, path, &o), WEIR_OK);
  weir_status st = importer_add(im, synth_spool(), false, NULL);
  if (!st) st = importer_finish(im);
  if (st) ck_assert_str_ne(weir_error_message(), "");
  importer_close(im);
  return st;
}

typedef struct file_bytes {
  char bytes[1 << 20];
  size_t count;
} file_bytes;

static void read_bytes(file_bytes *f, const char *path)
{
  FILE *in = fopen(path, "rb");
  ck_assert_ptr_nonnull(in);
  f->count = fread(f->bytes, 1, sizeof f->bytes, in);
  ck_assert_uint_lt(f->count, sizeof f->bytes);
  (void)fclose(in);
}

static void write_bytes(const char *path, const void *bytes, size_t count)
{
  FILE *out = fopen(path, "wb");
  ck_assert_ptr_nonnull(out);
  ck_assert_uint_eq(fwrite(bytes, 1, count, out), count);
  (void)fclose(out);
}

static void make_recorded(int seed)
{
  random_program *p = new_program(seed);
  synth_open(synth_dir());
  for (int i = 0; i < 2000; i++)
    random_step(p);
  recorder_tally(synth_spool(), false);
  for (int i = 0; i < 300; i++)
    random_step(p);
  synth_close();
}

static void expect_refused(weir_status status, const char *word)
{
  ck_assert_int_eq(import_as("refused.db"), status);
  ck_assert_msg(strstr(weir_error_message(), word), "%s", weir_error_message());
}

START_TEST(what_is_no_tally_of_the_spool_is_refused)
{
  static file_bytes f;
  make_recorded(1);
  const char *path = recorder_file(synth_spool());
  read_bytes(&f, path);
  write_bytes(path, f.bytes, f.count / 2);
  expect_refused(WEIR_ECORRUPT, "cut");
  f.bytes[f.count / 2] ^= 4;
  write_bytes(path, f.bytes, f.count);
  expect_refused(WEIR_ECORRUPT, "torn");
  f.bytes[f.count / 2] ^= 4;
  const char version = f.bytes[8];
  f.bytes[8] = 77;
  write_bytes(path, f.bytes, f.count);
  expect_refused(WEIR_EVERSION, "version 77");
  f.bytes[8] = version;
  f.bytes[32] ^= 1;
  wr_tally_seal(f.bytes, f.count);
  write_bytes(path, f.bytes, f.count);
  expect_refused(WEIR_ECORRUPT, "another process");
  f.bytes[32] ^= 1;
  wr_tally_seal(f.bytes, f.count);
  unlink(path);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  expect_refused(WEIR_ECORRUPT, "tally");
  unlink(path);
  ck_assert_int_eq(symlink("/dev/zero", path), 0);
  expect_refused(WEIR_ECORRUPT, "link");
  unlink(path);
  ck_assert_int_eq(symlink("nowhere", path), 0);
  expect_refused(WEIR_ECORRUPT, "link");
  unlink(path);
  write_bytes(path, f.bytes, f.count);
  ck_assert_int_eq(import_as("good.db"), WEIR_OK);
}
END_TEST

static void write_note(const char *text)
{
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s/.window", synth_dir());
  write_bytes(path, text, strlen(text));
}

START_TEST(a_note_gives_reason_and_end_or_is_refused)
{
  char path[PATH_MAX], text[256];
  make_recorded(2);
  (void)snprintf(path, sizeof path, "%s/.window", synth_dir());
  (void)snprintf(text, sizeof text, "reason out of memory\nrequested_ns 1\nend_ns %llu\nnumber 3\n",
                 (unsigned long long)spool_current()->clock_first.mono_ns + 5000);
  write_note(text);
  ck_assert_int_eq(import_as("noted.db"), WEIR_OK);
  char *trace = sqlite3_mprintf("%s/noted.db", synth_dir());
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM meta WHERE key = 'window_reason' AND"
                                       " value = 'out of memory'"),
                   1);
  ck_assert_int_eq(synth_number(trace, "SELECT value FROM meta WHERE key = 'window_end_ns'"), 5000);
  sqlite3_free(trace);
  write_note("reason out of mem");
  expect_refused(WEIR_ECORRUPT, "cut");
  write_note("end_ns 12x\n");
  expect_refused(WEIR_ECORRUPT, "number");
  write_note("end_ns -12\n");
  expect_refused(WEIR_ECORRUPT, "number");
  write_note("nonsense\n");
  expect_refused(WEIR_ECORRUPT, "key value");
  unlink(path);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  expect_refused(WEIR_ECORRUPT, "no file");
  unlink(path);
  ck_assert_int_eq(symlink("/dev/zero", path), 0);
  expect_refused(WEIR_ECORRUPT, "no file");
  unlink(path);
}
END_TEST

/* The check word is made right, so that each number is looked at for itself. */
START_TEST(a_tally_that_was_made_up_does_no_harm)
{
  static file_bytes f, damaged;
  int taken = 0;
  make_recorded(3 + _i);
  const char *path = recorder_file(synth_spool());
  read_bytes(&f, path);
  for (int i = 0; i < 150; i++) {
    damaged = f;
    for (uint64_t n = 1 + synth_below(6); n--;) {
      const size_t at = 8 + (size_t)synth_below(f.count - 8);
      const uint32_t value = synth_below(3) ? (uint32_t)synth_below(64) : UINT32_MAX;
      if (at % 3 && at + 4 <= f.count)
        memcpy(damaged.bytes + (at & ~(size_t)3), &value, 4);
      else
        damaged.bytes[at] = (char)synth_below(256);
    }
    wr_tally_seal(damaged.bytes, f.count);
    write_bytes(path, damaged.bytes, f.count);
    taken += import_as("made-up.db") == WEIR_OK;
  }
  ck_assert_int_gt(taken, 10);
}
END_TEST

/* A trace that has a window of the spool has no place for another. */
START_TEST(a_second_window_goes_into_a_trace_of_its_own)
{
  trace_importer *im = NULL;
  const importer_options o = {.merge = true};
  make_recorded(9);
  ck_assert_int_eq(import_as("first.db"), WEIR_OK);
  char *trace = sqlite3_mprintf("%s/first.db", synth_dir());
  const int64_t events = synth_number(trace, "SELECT count(*) FROM event_row");
  ck_assert_int_eq(importer_open(&im, trace, &o), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "a file of its own"));
  importer_close(im);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM event_row"), events);
  sqlite3_free(trace);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/window");
  TCase *t = tcase_create("window");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, a_window_is_the_whole_trace_cut, 0, 3 * CUTS);
  tcase_add_test(t, what_is_no_tally_of_the_spool_is_refused);
  tcase_add_test(t, a_note_gives_reason_and_end_or_is_refused);
  tcase_add_loop_test(t, a_tally_that_was_made_up_does_no_harm, 0, 2);
  tcase_add_test(t, a_second_window_goes_into_a_trace_of_its_own);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
