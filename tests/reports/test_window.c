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
#include "reports/model/resolve.h"
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
  ck_assert_int_eq(
      number_of(b, "SELECT count(*) FROM before WHERE count < 0 OR bytes < 0 OR ns < 0"), 0);
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

enum { WITHOUT_STACKS = 1, SEVERAL_PROCESSES = 2 };

/* `how`: what the window cannot have, or `memory` has of all processes together. */
static void expect_window(const char *whole, const char *window, int how)
{
  beside b = put_beside(whole, window);
  if (how & WITHOUT_STACKS)
    run_sql_of(&b, "UPDATE devents SET frames = '', text = ''; UPDATE wevents SET frames = '',"
                   " text = ''; UPDATE dblocks SET frames = ''; UPDATE wblocks SET frames = '';"
                   "UPDATE dstacks SET frames = ''; UPDATE wstacks SET frames = ''");
  expect_events(&b);
  expect_blocks(&b);
  if (!(how & SEVERAL_PROCESSES)) expect_memory(&b);
  if (!(how & WITHOUT_STACKS)) expect_ranges(&b);
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
  expect_window(whole_trace(one, "whole.db"), window_trace(one), 0);
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

/* ---- cut where a recorder cuts --------------------------------------------------------------- */

/* The oldest records go into the tally while the program writes on: threads are cut at different
 * times, and what one has behind that of another waits. */
START_TEST(a_window_that_a_recorder_leaves_is_the_whole_trace_cut)
{
  const wr_tally_window window = {.bytes = (uint64_t)(_i % 4) << 17};
  random_program *p = new_program(20 + _i);
  spool_reader *r;
  wr_tally *t;
  synth_open(synth_dir());
  ck_assert_int_eq(spool_reader_open(&r, synth_spool(), false), WEIR_OK);
  ck_assert_int_eq(wr_tally_open(&t, r, synth_spool(), NULL), WEIR_OK);
  for (int i = 0; i < 4 * STEPS; i++) {
    random_step(p);
    if (i % (STEPS / 2) != STEPS / 4) continue;
    ck_assert_int_eq(wr_tally_take_oldest(t, &window, NULL), WEIR_OK);
    ck_assert_int_eq(wr_tally_commit(t), WEIR_OK);
  }
  wr_tally_close(t);
  spool_reader_close(r);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  expect_window(whole_trace(one, "whole.db"), window_trace(one), 0);
}
END_TEST

/* What is beyond the bounds of a tally went: sums are the program's all the same. */
START_TEST(a_window_of_a_tally_that_forgot_has_the_sums)
{
  const wr_tally_options small = {.most_totals = 40, .most_names = 10, .most_modules = 2};
  random_program *p = new_program(30 + _i);
  synth_open(synth_dir());
  for (int i = 0; i < 10; i++) {
    spool_reader *r;
    wr_tally *t;
    for (int k = 0; k < 600; k++)
      random_step(p);
    ck_assert_int_eq(spool_reader_open(&r, synth_spool(), false), WEIR_OK);
    ck_assert_int_eq(wr_tally_open(&t, r, synth_spool(), &small), WEIR_OK);
    ck_assert_int_eq(wr_tally_drain(t, false), WEIR_OK);
    ck_assert_int_eq(wr_tally_commit(t), WEIR_OK);
    wr_tally_close(t);
    spool_reader_close(r);
  }
  for (int k = 0; k < 600; k++)
    random_step(p);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  const char *window = window_trace(one);
  ck_assert_int_gt(synth_number(window, "SELECT count(*) FROM before_window WHERE stack = 0"), 0);
  expect_window(whole_trace(one, "whole.db"), window, WITHOUT_STACKS);
}
END_TEST

/* ---- two processes --------------------------------------------------------------------------- */

/* A forked child has a spool of its own, and a tally; both are one trace. */
START_TEST(windows_of_two_processes_are_one_trace)
{
  static char first[PATH_MAX], second[PATH_MAX];
  int status;
  random_program *p = new_program(50);
  synth_open(synth_dir());
  for (int i = 0; i < STEPS; i++) {
    if (i == STEPS / 2) recorder_tally(synth_spool(), false);
    random_step(p);
  }
  synth_close();
  (void)snprintf(first, sizeof first, "%s", synth_spool());
  const pid_t pid = fork();
  if (!pid) {
    p = new_program(51);
    spool_after_fork();
    synth_open(synth_dir());
    for (int i = 0; i < STEPS; i++) {
      if (i == STEPS / 3) recorder_tally(synth_spool(), false);
      random_step(p);
    }
    synth_close();
    _exit(0);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  (void)snprintf(second, sizeof second, "%.*s/%d-0.spool", (int)(strrchr(first, '/') - first),
                 first, (int)pid);
  if (access(second, R_OK))
    (void)snprintf(second, sizeof second, "%.*s/%d-1.spool", (int)(strrchr(first, '/') - first),
                   first, (int)pid);
  const char *both[] = {first, second, NULL};
  expect_window(whole_trace(both, "whole.db"), window_trace(both), SEVERAL_PROCESSES);
}
END_TEST

/* ---- what records stand for ------------------------------------------------------------------ */

static void put_names(void)
{
  const uint64_t frames[] = {0x401010, WEIR_PYTHON_FRAME_FIRST + 1, 0x402020};
  const struct {
    python_frame_info info;
    char text[7];
  } python = {{.line = 12, .function_bytes = 4, .file_bytes = 3}, "stepa.p"};
  const struct {
    range_name name;
    char text[9];
  } range = {{.category = 3, .color = 7, .domain_bytes = 3, .text_bytes = 6}, "domepochs"};
  synth_stamp(4096, 77);
  ck_assert(synth_module(0, 0x401000, 0x401000, 0x403000, "/bin/train", "\1\2", 2));
  synth_stamp(0, 0);
  ck_assert(synth_extended(0, WEIR_EV_PYTHON_FRAME, frames[1], 0, &python,
                           sizeof python.info + sizeof python.text));
  ck_assert(synth_stack(0, 1, frames, 3));
  ck_assert(synth_extended(0, WEIR_EV_NAME, 0x900, WEIR_NAME_KERNEL, "sgemm", 5));
  ck_assert(synth_extended(0, WEIR_EV_NAME, 3, WEIR_NAME_CATEGORY, "dom\0phase", 9));
  ck_assert(synth_extended(0, WEIR_EV_THREAD, 0, 0, "loader", 6));
  ck_assert(
      synth_extended(0, WEIR_EV_RANGE_NAME, 5, 0, &range, sizeof range.name + sizeof range.text));
}

static void put_range(uint64_t at, int fact, uint64_t number, uint64_t name)
{
  ck_assert(synth_event(0, at, 0,
                        (trace_event){.kind = WEIR_EV_RANGE,
                                      .range_fact = (uint8_t)fact,
                                      .a = name,
                                      .bytes = number,
                                      .stream = 2}));
}

static void put_alloc(uint64_t at, uint64_t pointer, uint64_t bytes)
{
  ck_assert(synth_event(0, at, 10,
                        (trace_event){.kind = WEIR_EV_ALLOC,
                                      .api = synth_api("cudaMallocPitch"),
                                      .flags = WEIR_EVF_RUNTIME | WEIR_EVF_CACHED,
                                      .a = pointer,
                                      .b = 512,
                                      .bytes = bytes,
                                      .stream = 9,
                                      .mem = WEIR_MEM_DEVICE,
                                      .src_device = WEIR_DEVICE_NONE,
                                      .reason = WEIR_WHY_IN_USE,
                                      .stack = 1 | 2u << 24}));
}

static void put_pool(uint64_t at, uint64_t reserved)
{
  ck_assert(synth_event(0, at, 0,
                        (trace_event){.kind = WEIR_EV_CACHE,
                                      .cache_fact = WEIR_CACHE_POOL,
                                      .a = 0x70,
                                      .b = 1,
                                      .bytes = reserved,
                                      .stream = 4096,
                                      .src_device = WEIR_DEVICE_NONE}));
}

/* Before the window all that it refers to, some of it over by then. */
static void put_past(void)
{
  const graph_node_info nodes[] = {{.node = 1, .type = 10, .a = 0xa000, .bytes = 64, .mem = 3},
                                   {.node = 2, .type = 10, .a = 0xb000, .bytes = 32, .mem = 3}};
  put_names();
  put_range(50, WEIR_RANGE_START, 1001, 5);
  put_range(60, WEIR_RANGE_PUSH, 1, 5);
  put_alloc(100, 0x1000, 640);
  put_alloc(120, 0x2000, 64);
  synth_free(0, 140, 5, 0x2000);
  put_pool(150, 1000);
  put_pool(155, 2000);
  ck_assert(synth_graph(0, 160, 5, nodes, 2));
  ck_assert(synth_event(0, 170, 5,
                        (trace_event){.kind = WEIR_EV_CALL,
                                      .api = synth_api("cuGraphLaunch"),
                                      .src_device = WEIR_DEVICE_NONE,
                                      .a = 5}));
  synth_free(0, 190, 5, 0xb000);
  synth_sync(0, 300, 10, WEIR_SYNC_CONTEXT);
  synth_sync(1, 310, 10, WEIR_SYNC_CONTEXT);
}

static void put_present(void)
{
  put_alloc(400, 0x3000, 128);
  ck_assert(synth_event(0, 420, 5,
                        (trace_event){.kind = WEIR_EV_LAUNCH,
                                      .api = synth_api("cuLaunchKernel"),
                                      .a = 0x900,
                                      .src_device = WEIR_DEVICE_NONE,
                                      .stack = 1}));
  put_range(430, WEIR_RANGE_POP, 1, 0);
  put_range(440, WEIR_RANGE_END, 1001, 0);
  synth_free(0, 450, 5, 0xa000);
}

static void expect_text(const char *trace, const char *sql, const char *text)
{
  char *query = sqlite3_mprintf("SELECT (%s) = '%q'", sql, text);
  ck_assert_msg(synth_number(trace, query) == 1, "%s is not %s", sql, text);
  sqlite3_free(query);
}

START_TEST(a_window_knows_what_its_records_refer_to)
{
  synth_open(synth_dir());
  put_past();
  recorder_tally(synth_spool(), false);
  put_present();
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  const char *d = window_trace(one);
  expect_window(whole_trace(one, "whole.db"), d, 0);
  expect_text(d, "SELECT kernel FROM launch", "sgemm");
  expect_text(d, "SELECT group_concat(function || ' ' || file || ' ' || line) FROM python_frame",
              "step a.p 12");
  expect_text(d, "SELECT name FROM thread WHERE serial = 1", "loader");
  expect_text(d, "SELECT text || domain || category_name FROM range WHERE kind = 'push_pop'",
              "epochsdomphase");
  expect_text(d, "SELECT start_ns || ' ' || end_ns FROM range WHERE kind = 'start_end'", "50 440");
  expect_text(d, "SELECT path || bytes || mtime || build_id FROM module WHERE base = 4198400",
              "/bin/train4096770102");
  expect_text(d,
              "SELECT group_concat(m.path) FROM stack_frame f JOIN frame x ON x.id = f.frame JOIN"
              " module m ON m.id = x.module WHERE f.stack = 1",
              "/bin/train,/bin/train");
  expect_text(d,
              "SELECT pitch_bytes || ' ' || from_cache || ' ' || reason || ' ' || stream FROM"
              " allocation WHERE start_ns = 100",
              "512 1 in_use 9");
  expect_text(d,
              "SELECT group_concat(reserved_bytes || ' ' || release_threshold_bytes) FROM"
              " pool_sample",
              "2000 4096");
  expect_text(d,
              "SELECT n.text FROM event_range r JOIN range_row o ON o.id = r.range JOIN range_name"
              " n ON n.id = o.name JOIN event_row e ON e.id = r.event WHERE e.start = 100",
              "epochs");
  /* the block of the graph that was freed before is none, the other was until the end */
  expect_text(d,
              "SELECT group_concat(pointer || ' ' || bytes || ' ' || \"end\") FROM block WHERE"
              " how = 1",
              "40960 64 450");
}
END_TEST

/* ---- reports --------------------------------------------------------------------------------- */

static char *print_report(const char *name, const char *trace)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  const report_settings o = {.format = WEIR_REPORT_JSON, .width = 100};
  ck_assert_ptr_nonnull(f);
  ck_assert_msg(report_tables(f, name, trace, &o) == WEIR_OK, "%s", weir_error_message());
  (void)fclose(f);
  return text;
}

static json_t *report_of(const char *name, const char *trace)
{
  char *text = print_report(name, trace);
  json_t *report = json_loads(text, 0, NULL);
  ck_assert_ptr_nonnull(report);
  free(text);
  return report;
}

/* Blocks from several places, then an allocation that fails. */
static void run_out_of_memory(bool cut)
{
  for (uint32_t i = 1; i <= 5; i++) {
    const uint64_t frames[] = {0x401000 + i * 16};
    ck_assert(synth_stack(0, i, frames, 1));
  }
  for (uint64_t i = 0; i < 200; i++) {
    ck_assert(synth_event(0, 100 + i * 20, 10,
                          (trace_event){.kind = WEIR_EV_ALLOC,
                                        .api = synth_api("cudaMalloc"),
                                        .flags = WEIR_EVF_RUNTIME,
                                        .a = 0x10000 + i * 0x1000,
                                        .bytes = 64 + i,
                                        .mem = WEIR_MEM_DEVICE,
                                        .src_device = WEIR_DEVICE_NONE,
                                        .stack = 1 + (uint32_t)(i % 5)}));
    synth_copy(0, 111 + i * 20, 1, WEIR_COPY_HTOD, 64, 0, (int)WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
               WEIR_MEM_PINNED, 0);
    if (i % 3 == 0) synth_free(0, 112 + i * 20, 3, 0x10000 + i * 0x1000);
    if (cut && i == 150) recorder_tally(synth_spool(), false);
  }
  ck_assert(synth_event(0, 6000, 10,
                        (trace_event){.kind = WEIR_EV_ALLOC,
                                      .api = synth_api("cudaMalloc"),
                                      .flags = WEIR_EVF_RUNTIME,
                                      .status = 2,
                                      .bytes = 1 << 20,
                                      .mem = WEIR_MEM_DEVICE,
                                      .src_device = WEIR_DEVICE_NONE,
                                      .stack = 2}));
}

START_TEST(who_had_the_memory_is_in_a_window_as_in_the_whole_trace)
{
  synth_open(synth_dir());
  run_out_of_memory(true);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  json_t *window = report_of("oom", window_trace(one)),
         *whole = report_of("oom", whole_trace(one, "w.db"));
  json_t *a = json_object_get(window, "owners"), *b = json_object_get(whole, "owners");
  ck_assert_uint_eq(json_array_size(a), json_array_size(b));
  ck_assert_uint_ge(json_array_size(a), 1);
  ck_assert(json_equal(a, b));
  ck_assert(json_equal(json_object_get(window, "device_memory"),
                       json_object_get(whole, "device_memory")));
  ck_assert(json_equal(json_object_get(window, "request"), json_object_get(whole, "request")));
  json_decref(window);
  json_decref(whole);
}
END_TEST

static bool is_unjudged(const json_t *report, const char *rule)
{
  const json_t *list = json_object_get(report, "unjudged");
  bool there = false;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *id = json_string_value(json_object_get(json_array_get(list, i), "id"));
    there = there || (id && !strcmp(id, rule));
  }
  return there;
}

START_TEST(a_report_of_a_window_says_so_and_judges_what_it_can)
{
  char note[128];
  synth_open(synth_dir());
  run_out_of_memory(true);
  synth_close();
  (void)snprintf(note, sizeof note, "reason out of memory\nend_ns %llu\n",
                 (unsigned long long)spool_current()->clock_first.mono_ns + 7000);
  write_note(note);
  const char *one[] = {synth_spool(), NULL};
  const char *window = window_trace(one);
  char *text = synth_text(window, 100);
  ck_assert_msg(strstr(text, "window of the run") && strstr(text, "out of memory"), "%s", text);
  free(text);
  json_t *report = report_of("summary", window),
         *whole = report_of("summary", whole_trace(one, "w.db"));
  const json_t *run = json_object_get(report, "run");
  ck_assert_int_eq(json_integer_value(json_object_get(run, "window_start_ns")), 3112);
  ck_assert_int_eq(json_integer_value(json_object_get(run, "window_end_ns")), 7000);
  ck_assert_int_gt(json_integer_value(json_object_get(run, "before_calls")), 150);
  ck_assert(json_is_null(json_object_get(json_object_get(whole, "run"), "window_start_ns")));
  json_decref(report);
  json_decref(whole);
  report = report_of("findings", window);
  whole = report_of("findings", whole_trace(one, "w.db"));
  ck_assert(is_unjudged(report, "unused-allocation") && is_unjudged(report, "leak"));
  ck_assert(!is_unjudged(report, "repeated-allocation") && !is_unjudged(report, "dead-write"));
  ck_assert(!is_unjudged(whole, "unused-allocation") && !is_unjudged(whole, "leak"));
  json_decref(report);
  json_decref(whole);
}
END_TEST

/* The first wait of a window may be for work that was called before it. */
static void put_in_context(uint64_t at, trace_event e, const char *api)
{
  e.api = synth_api(api);
  e.flags |= WEIR_EVF_RUNTIME;
  e.src_device = WEIR_DEVICE_NONE;
  e.stream = 7;
  e.stack = 1u << 24;
  ck_assert(synth_event(0, at, 50, e));
}

START_TEST(the_first_wait_of_a_window_is_not_taken_for_redundant)
{
  synth_open(synth_dir());
  const trace_event wait = {.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_STREAM};
  put_in_context(10, (trace_event){.kind = WEIR_EV_STREAM, .a = 1}, "cudaStreamCreate");
  put_in_context(100, (trace_event){.kind = WEIR_EV_LAUNCH, .a = 5}, "cudaLaunchKernel");
  recorder_tally(synth_spool(), false);
  put_in_context(200, wait, "cudaStreamSynchronize");
  put_in_context(260, (trace_event){.kind = WEIR_EV_LAUNCH, .a = 5}, "cudaLaunchKernel");
  put_in_context(320, wait, "cudaStreamSynchronize");
  put_in_context(400, wait, "cudaStreamSynchronize");
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  const char *traces[] = {window_trace(one), whole_trace(one, "w.db")};
  for (int i = 0; i < 2; i++) {
    resolve_counts n;
    const resolve_settings o = {0};
    ck_assert_int_eq(resolve_trace(traces[i], &o, &n), WEIR_OK);
  }
  const char *pending = "SELECT ifnull(pending, -1) FROM wait_detail w JOIN event_row e USING(id)"
                        " WHERE e.start = 200";
  ck_assert_int_eq(synth_number(traces[0], pending), -1);
  ck_assert_int_eq(synth_number(traces[1], pending), 1);
  const char *second = "SELECT ifnull(pending, -1) FROM wait_detail w JOIN event_row e USING(id)"
                       " WHERE e.start = 400";
  ck_assert_int_eq(synth_number(traces[0], second), 0);
  ck_assert_int_eq(synth_number(traces[1], second), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/window");
  TCase *t = tcase_create("window");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, a_window_is_the_whole_trace_cut, 0, 3 * CUTS);
  tcase_add_loop_test(t, a_window_that_a_recorder_leaves_is_the_whole_trace_cut, 0, 8);
  tcase_add_loop_test(t, a_window_of_a_tally_that_forgot_has_the_sums, 0, 2);
  tcase_add_test(t, windows_of_two_processes_are_one_trace);
  tcase_add_test(t, a_window_knows_what_its_records_refer_to);
  tcase_add_test(t, who_had_the_memory_is_in_a_window_as_in_the_whole_trace);
  tcase_add_test(t, a_report_of_a_window_says_so_and_judges_what_it_can);
  tcase_add_test(t, the_first_wait_of_a_window_is_not_taken_for_redundant);
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
