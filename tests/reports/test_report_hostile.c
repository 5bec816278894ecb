/* test_report_hostile.c: files that are no traces, or broken ones, get an error that says so. A
 * trace with any byte changed or cut anywhere may give any numbers or an error, and no crash or
 * hang. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/diff/diff.h"
#include "reports/export/formats.h"
#include "reports/model/resolve.h"
#include "reports/diff/report.h"
#include "reports/stats/stats.h"
#include "reports/tables/tables.h"
#include "reports/write/report.h"
#include "tests/reports/synth.h"

static char path[512];

static const char *file(const char *name)
{
  (void)snprintf(path, sizeof(path), "%s/%s", synth_dir(), name);
  return path;
}

/* Every other time one of the reports in tables, each time another. An error must be worded. */
static void try_tables(const char *trace)
{
  static const char *const names[] = {"transfers", "waits",    "memory",   "leaks",
                                      "devices",   "idle",     "coverage", "summary",
                                      "cache",     "findings", "oom"};
  static unsigned turn;
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  const char *name = names[turn / 2 % (sizeof names / sizeof *names)];
  report_settings o = {.format = (report_format)(turn % 4), .findings.rule_ms = 1000};
  if (report_tables_by(name)) o.by = (report_by)(turn % (WEIR_BY_FUNCTION + 1));
  if (turn % 3 == 0) o.from = (report_time){true, true, 30};
  weir_status s = turn++ % 2 ? WEIR_OK : report_tables(f, name, trace, &o);
  (void)fclose(f);
  ck_assert(!s || strlen(weir_error_message()) > 0);
  free(text);
}

static weir_status report_on(const char *trace, report_format format)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  report_settings o = {.format = format};
  try_tables(trace);
  weir_status s = report_summary(f, trace, &o);
  (void)fclose(f);
  free(text);
  return s;
}

/* Beside itself; in all three formats. */
static weir_status diff_of(const char *trace)
{
  static const wr_conditions none = {0};
  wr_diff d;
  weir_status s = wr_diff_load(&d, trace, trace, &(wr_figures_settings){.findings = true}, &none);
  if (s) return s;
  for (wr_diff_format format = WR_DIFF_TEXT; format <= WR_DIFF_JSON; format++) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    ck_assert_int_eq(wr_diff_render(f, &d, &(wr_diff_settings){.format = format}), WEIR_OK);
    (void)fclose(f);
    free(text);
  }
  wr_diff_free(&d);
  return WEIR_OK;
}

static weir_status export_folded(FILE *out, const char *trace)
{
  return folded_export(out, trace, PROFILE_LIVE_AT_PEAK);
}

/* The reports of nsys stats in turn, each format and way to name kernels with each. */
static weir_status export_stats(FILE *out, const char *trace)
{
  static unsigned turn;
  size_t count = 0;
  while (stats_reports[count].name)
    count++;
  const stats_report *r = &stats_reports[turn % count];
  stats_settings o = {.format = turn % WR_ROWS_FORMATS,
                      .rows = (int)(turn % 4) - 1,
                      .names = turn % (STATS_MANGLED + 1)};
  turn++;
  weir_status s = stats_write(out, trace, r, &o);
  ck_assert(!s || strlen(weir_error_message()) > 0);
  return s == WEIR_ENOTSUP ? WEIR_OK : s; /* the trace has nothing for it */
}

/* All exports of a trace; an error of one must be worded. The last error. */
static weir_status export_all(const char *trace)
{
  static weir_status (*const exports[])(FILE *, const char *) = {
      perfetto_export, chrome_export,  export_folded, speedscope_export,
      pprof_export,    firefox_export, export_stats};
  weir_status last = WEIR_OK;
  for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    weir_status s = exports[i](f, trace);
    (void)fclose(f);
    free(text);
    ck_assert(!s || strlen(weir_error_message()) > 0);
    if (s) last = s;
  }
  return last;
}

static void expect(const char *trace, weir_status status, const char *words)
{
  ck_assert_int_eq(diff_of(trace), status);
  ck_assert_msg(strstr(weir_error_message(), words) != NULL, "%s", weir_error_message());
  ck_assert_int_eq(report_on(trace, WEIR_REPORT_TEXT), status);
  ck_assert_msg(strstr(weir_error_message(), words) != NULL, "%s", weir_error_message());
  ck_assert_ptr_nonnull(strstr(weir_error_message(), trace));
}

static void write_hostile_file(const char *name, const void *bytes, size_t count)
{
  FILE *f = fopen(file(name), "w");
  ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
  (void)fclose(f);
}

static const char *make_trace(void)
{
  const uint64_t frames[] = {0x1010, 0x2010, 0x1020};
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/one.so", "ab", 2);
  synth_stack(0, 1, frames, 3);
  synth_extended(0, WEIR_EV_NOTE, 0, 0, "hello", 5);
  synth_extended(0, WEIR_EV_NAME, 0, WEIR_NAME_DEVICE, "GPU", 3);
  for (uint64_t i = 0; i < 60; i++) {
    synth_event(0, i * 100, 20,
                (trace_event){.kind = WEIR_EV_ALLOC,
                              .api = synth_api("cudaMalloc"),
                              .a = 0x1000 + i * 64,
                              .bytes = 64,
                              .mem = WEIR_MEM_DEVICE,
                              .stack = 1});
    synth_copy(0, i * 100 + 30, 20, WEIR_COPY_HTOD, 64, 0, (int)WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
               WEIR_MEM_PAGEABLE, 0);
    if (i & 1) synth_free(0, i * 100 + 60, 20, 0x1000 + i * 64);
  }
  synth_close();
  one[0] = synth_spool();
  return synth_import("trace.db", one);
}

START_TEST(what_is_no_trace_is_named_so)
{
  expect(file("absent"), WEIR_ENOENT, "cannot open");
  write_hostile_file("empty", "", 0);
  expect(file("empty"), WEIR_ECORRUPT, "neither a trace nor a spool");
  write_hostile_file("text", "hello, world, this is text", 26);
  expect(file("text"), WEIR_ECORRUPT, "neither a trace nor a spool");
  expect(synth_dir(), WEIR_ECORRUPT, "neither a trace nor a spool");
  write_hostile_file("head", "SQLite format 3", 16);
  expect(file("head"), WEIR_ECORRUPT, "");
  write_hostile_file("magic", WEIR_SPOOL_MAGIC "and nothing else", 24);
  expect(file("magic"), WEIR_ECORRUPT, "");
  synth_change(file("other.db"), "CREATE TABLE event(id)");
  expect(file("other.db"), WEIR_ECORRUPT, "no trace of Weir's");
}
END_TEST

START_TEST(other_versions_and_missing_tables_are_told)
{
  static const char *const tables[] = {
      "meta", "process",  "module",    "stack_frame", "frame",     "name",       "note",
      "api",  "coverage", "event_row", "template",    "block_row", "batch_item", "memory"};
  const char *t = make_trace();
  synth_change(t, "PRAGMA user_version = 3");
  expect(t, WEIR_EVERSION, "schema 3");
  synth_change(t, "PRAGMA user_version = 0");
  expect(t, WEIR_EVERSION, "schema 0");
  for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
    char drop[64];
    t = make_trace();
    (void)snprintf(drop, sizeof(drop), "DROP TABLE %s", tables[i]);
    synth_change(t, drop);
    expect(t, WEIR_ECORRUPT, tables[i]);
  }
  t = make_trace();
  synth_change(t, "DROP TABLE event_row; CREATE TABLE event_row(id INTEGER PRIMARY KEY, template)");
  ck_assert_int_ne(report_on(t, WEIR_REPORT_TEXT), WEIR_OK);
}
END_TEST

#define ENDLESS                                                                                    \
  "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r)"                                  \
  " SELECT n AS id, 1 AS process, 1 AS thread, 1 AS kind, 1 AS api, 1 AS start FROM r"

/* A table that is a view could be endless. */
START_TEST(a_view_in_a_tables_place_is_refused)
{
  const char *t = make_trace();
  synth_change(t, "DROP TABLE event_row; CREATE VIEW event_row AS " ENDLESS);
  expect(t, WEIR_ECORRUPT, "event_row");
  ck_assert_int_eq(export_all(t), WEIR_ECORRUPT);
  t = make_trace();
  synth_change(t, "DROP VIEW event; CREATE VIEW event AS " ENDLESS "; PRAGMA user_version = 1");
  expect(t, WEIR_ECORRUPT, "event");
}
END_TEST

/* Each of them, as whoever reads it meets it. */
START_TEST(each_table_of_a_trace_must_be_one)
{
  char names[80][64];
  int count = 0;
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  const char *t = make_trace();
  resolve_counts counts;
  ck_assert_int_eq(resolve_trace(t, &(resolve_settings){0}, &counts), WEIR_OK);
  ck_assert_int_eq(sqlite3_open(t, &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_prepare_v2(db,
                                      "SELECT name FROM sqlite_schema WHERE type = 'table'"
                                      " AND name NOT LIKE 'ENUM_%'",
                                      -1, &q, NULL),
                   SQLITE_OK);
  while (count < 80 && sqlite3_step(q) == SQLITE_ROW)
    (void)snprintf(names[count++], sizeof names[0], "%s", sqlite3_column_text(q, 0));
  sqlite3_finalize(q);
  sqlite3_close(db);
  ck_assert_int_gt(count, 50);
  for (int i = 0; i < count; i++) {
    t = make_trace();
    char *text =
        sqlite3_mprintf("DROP TABLE IF EXISTS %s; CREATE VIEW %s AS " ENDLESS, names[i], names[i]);
    synth_change(t, text);
    sqlite3_free(text);
    expect(t, WEIR_ECORRUPT, names[i]);
  }
}
END_TEST

/* SQLite goes by the text of each, whatever the list says that it is. */
START_TEST(a_list_of_tables_that_lies_is_seen_through)
{
  const char *t = make_trace();
  synth_change(t, "DROP TABLE graph_launch; CREATE VIEW graph_launch AS " ENDLESS);
  synth_change(t, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'table', rootpage ="
                  " (SELECT max(rootpage) FROM sqlite_schema) WHERE name = 'graph_launch'");
  ck_assert_int_eq(report_on(t, WEIR_REPORT_TEXT), WEIR_ECORRUPT);
  t = make_trace();
  synth_change(t, "CREATE VIEW other AS " ENDLESS "; DROP TABLE unseen");
  synth_change(t,
               "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'other',"
               " 'unseen') WHERE name = 'other'");
  ck_assert_int_eq(report_on(t, WEIR_REPORT_TEXT), WEIR_ECORRUPT);
}
END_TEST

START_TEST(a_column_that_is_calculated_is_refused)
{
  const char *t = make_trace();
  synth_change(t, "DROP TABLE unseen; CREATE TABLE unseen(id INTEGER PRIMARY KEY, process, why,"
                  " count, path AS (hex(zeroblob(400000000))))");
  expect(t, WEIR_ECORRUPT, "a column of unseen is calculated");
  t = make_trace();
  synth_change(t, "CREATE TABLE other(x); CREATE VIRTUAL TABLE more USING rtree(id, a, b)");
  expect(t, WEIR_ECORRUPT, "virtual tables");
}
END_TEST

/* The views of a file are its own affair. */
START_TEST(what_a_file_says_its_events_are_is_not_asked)
{
  const char *t = make_trace();
  synth_change(t, "DROP VIEW event; CREATE VIEW event AS " ENDLESS);
  ck_assert_int_eq(report_on(t, WEIR_REPORT_JSON_1), WEIR_OK);
  ck_assert_int_eq(export_all(t), WEIR_OK);
}
END_TEST

static json_t *parts_of(const char *trace)
{
  json_t *j = synth_json(trace);
  json_object_del(j, "trace");
  json_object_del(j, "waits"); /* not judged in version 1 */
  return j;
}

/* Version 1 had one wide table of events. */
START_TEST(a_trace_of_version_1_gives_the_same_report)
{
  const char *t = make_trace();
  json_t *now = parts_of(t);
  synth_change(
      t, "CREATE TABLE wide(id INTEGER PRIMARY KEY, process, thread, kind, api, start, \"end\","
         " status, stack, context, device, src_device, copy, mem, src_mem, flags, a, b, bytes,"
         " stream, call)");
  synth_change(
      t, "INSERT INTO wide SELECT id, process, thread, kind, api, start, \"end\", status, stack,"
         " context, device, src_device, copy, mem, src_mem, flags, a, b, bytes, stream, call"
         " FROM event; CREATE TABLE blocks AS SELECT * FROM block");
  synth_change(t, "DROP VIEW event; DROP TABLE event_row; DROP VIEW block; DROP TABLE block_row");
  synth_change(t, "DROP TABLE template; CREATE TABLE event AS SELECT * FROM wide;"
                  "CREATE TABLE block AS SELECT * FROM blocks");
  synth_change(t, "PRAGMA user_version = 1");
  json_t *then = parts_of(t);
  ck_assert(json_equal(now, then));
  ck_assert_msg(!export_all(t), "%s", weir_error_message());
  json_decref(now);
  json_decref(then);
}
END_TEST

START_TEST(values_out_of_range_do_no_harm)
{
  static const char *const changes[] = {
      "UPDATE template SET device = 1000000, src_device = -5",
      "UPDATE template SET api = -1, mem = 99, src_mem = -3, copy = 77, kind = 3",
      "UPDATE event_row SET start = 9223372036854775807, duration = -9223372036854775808",
      "UPDATE event_row SET start = 9223372036854775807, duration = 9223372036854775807",
      "UPDATE event_row SET template = id; UPDATE event_row SET template = -id WHERE id > 5",
      "UPDATE template SET stack = 9223372036854775807",
      "UPDATE template SET kind = 'text', flags = x'00ff'; UPDATE event_row SET bytes = -1",
      "UPDATE block_row SET born = 'x', died_after = -1, life = x'00', how = 77",
      "UPDATE block_row SET event = -event, born = 9223372036854775807, died_after = born",
      "UPDATE template SET device = 400, mem = 1e300; UPDATE event_row SET bytes = -1",
      "UPDATE memory SET device = 256, peak = -1, peak_place = 1",
      "UPDATE frame SET address = 0, module = 77",
      "UPDATE frame SET address = -1",
      "UPDATE module SET start = -9223372036854775808, \"end\" = 9223372036854775807, base = 12345",
      "UPDATE module SET path = x'ff00ff', build_id = 5",
      "UPDATE process SET pid = -1, command = x'fffefd', end_detail = 1e18, end_reason = 'signal'",
      "UPDATE meta SET value = x'ff' WHERE key <> 'finished'",
      "UPDATE meta SET value = 0 WHERE key = 'finished'",
      "UPDATE name SET handle = 1e10, name = NULL",
      "UPDATE api SET name = char(27) || '[2J'",
      "DELETE FROM process; DELETE FROM api; DELETE FROM module",
      "INSERT INTO stack_frame SELECT 1, 1000 + id, 1 FROM api"};
  for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
    const char *t = make_trace();
    synth_change(t, changes[i]);
    ck_assert_msg(report_on(t, WEIR_REPORT_TEXT) == WEIR_OK, "%s: %s", changes[i],
                  weir_error_message());
    ck_assert_int_eq(report_on(t, WEIR_REPORT_JSON_1), WEIR_OK);
    (void)diff_of(t);
    (void)export_all(t);
  }
}
END_TEST

static char *whole;
static size_t whole_bytes;

static void load_whole(const char *trace)
{
  struct stat s;
  int fd = open(trace, O_RDONLY);
  ck_assert_int_eq(fstat(fd, &s), 0);
  whole_bytes = (size_t)s.st_size;
  whole = malloc(whole_bytes);
  ck_assert_int_eq(read(fd, whole, whole_bytes), (ssize_t)whole_bytes);
  close(fd);
}

START_TEST(a_cut_trace_is_an_error_or_a_report)
{
  size_t damaged = 0;
  load_whole(make_trace());
  for (size_t n = 0; n < whole_bytes; n += 1 + whole_bytes / 150) {
    write_hostile_file("cut.db", whole, n);
    weir_status s = report_on(file("cut.db"), WEIR_REPORT_JSON_1);
    ck_assert_msg(!s || strlen(weir_error_message()) > 0, "%zu", n);
    damaged += s != WEIR_OK;
    if (n % 5 == 0) (void)export_all(file("cut.db"));
  }
  ck_assert_uint_gt(damaged, 100);
  free(whole);
}
END_TEST

START_TEST(a_changed_byte_is_an_error_or_a_report)
{
  uint64_t random = UINT64_C(88172645463325252) + (uint64_t)_i * 1000003;
  load_whole(make_trace());
  for (int round = 0; round < 150; round++) {
    for (int k = 0; k < 1 + round % 20; k++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      size_t limit = round % 3 ? whole_bytes : 8192; /* the schema and the header more often */
      whole[random % limit] ^= (char)(1 + (random >> 40) % 255);
    }
    whole[0] = 'S'; /* stay past the first look */
    write_hostile_file("changed.db", whole, whole_bytes);
    (void)report_on(file("changed.db"), round & 1 ? WEIR_REPORT_JSON_1 : WEIR_REPORT_TEXT);
    if (round % 5 == 0) (void)export_all(file("changed.db"));
    if (round % 25 == 1) (void)diff_of(file("changed.db"));
    if (round % 25 == 24) {
      free(whole);
      load_whole(make_trace());
    }
  }
  free(whole);
}
END_TEST

START_TEST(a_report_never_writes_into_the_trace)
{
  load_whole(make_trace());
  const char *t = file("trace.db");
  ck_assert_int_eq(chmod(t, 0400), 0);
  ck_assert_int_eq(report_on(t, WEIR_REPORT_TEXT), WEIR_OK);
  char *before = whole;
  size_t bytes = whole_bytes;
  load_whole(t);
  ck_assert_uint_eq(bytes, whole_bytes);
  ck_assert_int_eq(memcmp(before, whole, bytes), 0);
  free(before);
  free(whole);
}
END_TEST

START_TEST(a_report_that_cannot_be_written_is_an_error)
{
  const char *t = make_trace();
  FILE *full = fopen("/dev/full", "w");
  report_settings o = {.format = WEIR_REPORT_TEXT};
  ck_assert_ptr_nonnull(full);
  ck_assert_int_eq(report_summary(full, t, &o), WEIR_EIO);
  o.format = WEIR_REPORT_JSON_1;
  ck_assert_int_eq(report_summary(full, t, &o), WEIR_EIO);
  (void)fclose(full);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/report_hostile");
  TCase *t = tcase_create("hostile");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, what_is_no_trace_is_named_so);
  tcase_add_test(t, other_versions_and_missing_tables_are_told);
  tcase_add_test(t, a_view_in_a_tables_place_is_refused);
  tcase_add_test(t, each_table_of_a_trace_must_be_one);
  tcase_add_test(t, a_list_of_tables_that_lies_is_seen_through);
  tcase_add_test(t, a_column_that_is_calculated_is_refused);
  tcase_add_test(t, what_a_file_says_its_events_are_is_not_asked);
  tcase_add_test(t, a_trace_of_version_1_gives_the_same_report);
  tcase_add_test(t, values_out_of_range_do_no_harm);
  tcase_add_test(t, a_cut_trace_is_an_error_or_a_report);
  tcase_add_loop_test(t, a_changed_byte_is_an_error_or_a_report, 0, 4);
  tcase_add_test(t, a_report_never_writes_into_the_trace);
  tcase_add_test(t, a_report_that_cannot_be_written_is_an_error);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
