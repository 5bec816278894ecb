/* test_resolve.c: what weir resolve stores is what a report finds out, stays when the program is
 * gone, and gets into no trace that it does not belong into. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/model/resolve.h"
#include "tests/reports/own_program.h"
#include "tests/reports/synth.h"

#define NOINLINE __attribute__((noinline, noclone))

/* ---- places of this program ------------------------------------------------------------------ */

static uint64_t seen; /* a return address */
static int call_line; /* of the call in outer_function() */

static NOINLINE void note_caller(void)
{
  seen = (uint64_t)(uintptr_t)__builtin_return_address(0);
  __asm__ volatile("" ::: "memory");
}

static inline __attribute__((always_inline)) void inlined_function(void)
{
  note_caller();
  __asm__ volatile("" ::: "memory");
}

NOINLINE void outer_function(void);
NOINLINE void outer_function(void)
{
  call_line = __LINE__ + 1;
  inlined_function();
  __asm__ volatile("" ::: "memory");
}

/* ---- traces ---------------------------------------------------------------------------------- */

static char copy_path[600]; /* of this program: what ran */

/* An allocation through libcudart and an event without a stack; what ran is a copy of us. */
static const char *make_trace_of(const char *how, const unsigned char *id)
{
  const char *one[] = {NULL, NULL};
  (void)snprintf(copy_path, sizeof(copy_path), "%s/copy", synth_dir());
  run_shell_format(how, own_program.path, copy_path);
  outer_function();
  const uint64_t frames[] = {0x7000100, seen, 0x55};
  own_program_record(copy_path, id, own_program.build_id_bytes, frames, 3);
  synth_copy(0, 200, 20, WEIR_COPY_HTOD, 64, 0, (int)WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
             WEIR_MEM_PAGEABLE, 0);
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

static const char *make_trace(void)
{
  return make_trace_of("cp %s %s", own_program.build_id);
}

static weir_status resolve_with(const char *trace, const char *symbols)
{
  resolve_counts n;
  resolve_settings o = {.symbols = symbols};
  return resolve_trace(trace, &o, &n);
}

static void resolve(const char *trace)
{
  ck_assert_msg(resolve_with(trace, NULL) == WEIR_OK, "%s", weir_error_message());
}

/* The first row of a query, its columns with | between them (static). */
static const char *row_of(const char *trace, const char *query)
{
  static char row[4096];
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  row[0] = '\0';
  ck_assert_int_eq(sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  ck_assert_msg(!sqlite3_prepare_v2(db, query, -1, &q, NULL), "%s: %s", query, sqlite3_errmsg(db));
  ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
  for (int i = 0; i < sqlite3_column_count(q); i++) {
    const char *text = (const char *)sqlite3_column_text(q, i);
    (void)snprintf(row + strlen(row), sizeof(row) - strlen(row), "%s%s", i ? "|" : "",
                   text ? text : "NULL");
  }
  sqlite3_finalize(q);
  sqlite3_close(db);
  return row;
}

/* All that a trace holds (new). */
static char *contents(const char *trace)
{
  char *text = NULL;
  size_t bytes = 0;
  sqlite3 *db = NULL;
  sqlite3_stmt *names = NULL, *rows = NULL;
  FILE *f = open_memstream(&text, &bytes);
  ck_assert_int_eq(sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  ck_assert(!sqlite3_prepare_v2(db,
                                "SELECT sql, type = 'table', 'SELECT * FROM \"' || name || '\"'"
                                " FROM sqlite_schema ORDER BY name",
                                -1, &names, NULL));
  while (sqlite3_step(names) == SQLITE_ROW) {
    (void)fprintf(f, "%s\n", (const char *)sqlite3_column_text(names, 0));
    if (!sqlite3_column_int(names, 1)) continue;
    ck_assert(
        !sqlite3_prepare_v2(db, (const char *)sqlite3_column_text(names, 2), -1, &rows, NULL));
    while (sqlite3_step(rows) == SQLITE_ROW)
      for (int i = 0; i < sqlite3_column_count(rows); i++)
        (void)fprintf(f, "%s|", (const char *)sqlite3_column_text(rows, i));
    sqlite3_finalize(rows);
  }
  sqlite3_finalize(names);
  sqlite3_close(db);
  (void)fclose(f);
  return text;
}

static json_t *site_of(json_t *report, const char *list)
{
  return json_array_get(json_object_get(json_object_get(report, "sites"), list), 0);
}

/* ---- what is stored -------------------------------------------------------------------------- */

START_TEST(the_views_name_the_place_that_the_report_names)
{
  const char *t = make_trace();
  json_t *before = synth_json(t);
  resolve(t);
  json_t *after = synth_json(t), *site = site_of(after, "alloc");
  ck_assert(json_equal(before, after));
  char expected[1024];
  (void)snprintf(expected, sizeof(expected), "%s|%s|%d",
                 json_string_value(json_object_get(site, "function")),
                 json_string_value(json_object_get(site, "file")),
                 (int)json_integer_value(json_object_get(site, "line")));
  ck_assert_ptr_nonnull(strstr(expected, "test_resolve.c"));
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM allocation"), expected);
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM block"), expected);
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM call WHERE category = 'alloc'"),
                   expected);
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM copy"), "NULL|NULL|NULL");
  json_decref(before);
  json_decref(after);
}
END_TEST

START_TEST(inlined_functions_are_rows_of_one_frame)
{
  const char *t = make_trace();
  resolve(t);
  ck_assert_int_eq(synth_number(t, "SELECT count(DISTINCT frame) FROM source_line"), 1);
  ck_assert_str_eq(row_of(t, "SELECT function FROM source_line WHERE inlined = 0"),
                   "inlined_function");
  ck_assert_str_eq(row_of(t, "SELECT function FROM source_line WHERE inlined = 1"),
                   "outer_function");
  ck_assert_int_eq(synth_number(t, "SELECT line FROM source_line WHERE inlined = 1"), call_line);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM site WHERE inlined = 0 AND frame ="
                                   " (SELECT frame FROM source_line)"),
                   1);
}
END_TEST

START_TEST(before_it_the_columns_are_there_and_empty)
{
  const char *t = make_trace();
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM allocation"), "NULL|NULL|NULL");
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM block"), "NULL|NULL|NULL");
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM sqlite_schema WHERE name IN"
                                   " ('source_line', 'site', 'call_site')"),
                   0);
}
END_TEST

START_TEST(a_second_time_changes_nothing)
{
  struct stat file;
  const char *t = make_trace();
  resolve(t);
  char *once = contents(t);
  resolve(t);
  char *twice = contents(t);
  ck_assert_str_eq(once, twice);
  ck_assert_int_eq(stat(t, &file), 0);
  ck_assert_int_eq(file.st_mode & 07777, 0600);
  ck_assert_str_eq(row_of(t, "PRAGMA journal_mode"), "delete");
  ck_assert_str_eq(row_of(t, "PRAGMA integrity_check"), "ok");
  run_shell_format("! ls %s/t.db-* %s 2>/dev/null", synth_dir(), "");
  free(once);
  free(twice);
}
END_TEST

START_TEST(a_moved_trace_names_its_places)
{
  char wanted[64];
  const char *t = make_trace();
  resolve(t);
  char *before = contents(t);
  ck_assert_int_eq(unlink(copy_path), 0);
  char *text = synth_text(t, 200);
  (void)snprintf(wanted, sizeof(wanted), "test_resolve.c:%d", call_line);
  ck_assert_msg(strstr(text, wanted) != NULL, "%s", text);
  ck_assert_msg(!strstr(text, "copy+0x"), "%s", text);
  resolve(t); /* nor does it forget them */
  char *after = contents(t);
  ck_assert_str_eq(before, after);
  free(text);
  free(before);
  free(after);
}
END_TEST

START_TEST(a_changed_program_is_not_named)
{
  unsigned char other[64];
  memcpy(other, own_program.build_id, sizeof(other));
  other[0] ^= 1;
  const char *t = make_trace_of("cp %s %s", other);
  resolve_counts n;
  resolve_settings o = {0};
  ck_assert_int_eq(resolve_trace(t, &o, &n), WEIR_OK);
  ck_assert_uint_eq(n.addresses, 3);
  ck_assert_uint_eq(n.named, 0);
  ck_assert_uint_ge(n.files_lacking, 1);
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM allocation"), "NULL|NULL|NULL");
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM source_line"), 0);
}
END_TEST

/* Stripped at first; then a folder has the whole. What has a line is not given up for less. */
START_TEST(a_name_without_a_line_gets_one_later)
{
  char folder[600];
  const char *t = make_trace_of("objcopy --strip-debug %s %s", own_program.build_id);
  resolve(t);
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM allocation"),
                   "outer_function|NULL|NULL");
  (void)snprintf(folder, sizeof(folder), "%s/symbols", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  run_shell_format("cp %s %s/copy", own_program.path, folder);
  ck_assert_int_eq(resolve_with(t, folder), WEIR_OK);
  ck_assert_str_eq(row_of(t, "SELECT caller FROM allocation WHERE line > 0"), "inlined_function");
  resolve(t);
  ck_assert_str_eq(row_of(t, "SELECT caller FROM allocation WHERE line > 0"), "inlined_function");
}
END_TEST

/* As a trace has them that was written before the columns were. */
START_TEST(views_of_old_are_replaced)
{
  const char *t = make_trace();
  synth_change(
      t, "DROP VIEW allocation; CREATE VIEW allocation(id) AS SELECT id FROM event_row;"
         "DROP VIEW block; CREATE VIEW block(id) AS SELECT id FROM block_row; DROP VIEW copy");
  resolve(t);
  ck_assert_str_eq(row_of(t, "SELECT caller FROM allocation"), "inlined_function");
  ck_assert_str_eq(row_of(t, "SELECT caller FROM block"), "inlined_function");
  ck_assert_str_eq(row_of(t, "SELECT caller FROM copy"), "NULL");
}
END_TEST

/* The stubs of a kernel's launch are CUDA's, and so is the function of the kernel's own name. */
START_TEST(who_launches_a_kernel_is_who_calls_it)
{
  const char *one[] = {NULL, NULL};
  const uint64_t frames[] = {0x1010, 0x1020};
  synth_open(synth_dir());
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/bin/train", NULL, 0);
  synth_stack(0, 1, frames, 2);
  synth_event(
      0, 100, 10,
      (trace_event){
          .kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .a = 7, .stack = 1});
  synth_close();
  one[0] = synth_spool();
  const char *t = synth_import("t.db", one);
  resolve(t);
  synth_change(
      t, "INSERT INTO source_line SELECT id, 0, '__cudaLaunchKernel_helper', 'f.h', 1 FROM frame"
         " WHERE address = 4112 UNION ALL"
         " SELECT id, 1, '__device_stub__Z4stepPf(float*)', 's.c', 2 FROM frame"
         " WHERE address = 4112 UNION ALL"
         " SELECT id, 0, 'step(float*)', 'train.cu', 3 FROM frame WHERE address = 4128 UNION ALL"
         " SELECT id, 1, 'train', 'train.cu', 40 FROM frame WHERE address = 4128");
  resolve(t);
  ck_assert_str_eq(row_of(t, "SELECT caller, file, line FROM launch"), "train|train.cu|40");
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

/* `what` is said, with the name, and the trace holds what it held. */
static void expect_refused(const char *trace, weir_status status, const char *what)
{
  char *before = contents(trace);
  ck_assert_int_eq(resolve_with(trace, NULL), status);
  ck_assert_msg(strstr(weir_error_message(), what) != NULL, "%s", weir_error_message());
  ck_assert_msg(strstr(weir_error_message(), trace) != NULL, "%s", weir_error_message());
  char *after = contents(trace);
  ck_assert_str_eq(before, after);
  free(before);
  free(after);
}

START_TEST(a_trace_that_is_written_or_not_complete_is_refused)
{
  trace_importer *im = NULL;
  importer_options o = {.merge = true};
  const char *t = make_trace();
  ck_assert_int_eq(importer_open(&im, t, &o), WEIR_OK);
  expect_refused(t, WEIR_EIO, "being written by another run");
  importer_close(im);
  synth_change(t, "UPDATE meta SET value = 0 WHERE key = 'finished'");
  expect_refused(t, WEIR_EIO, "not complete");
}
END_TEST

START_TEST(a_file_with_another_name_is_refused)
{
  char other[600];
  const char *t = make_trace();
  (void)snprintf(other, sizeof(other), "%s/other.db", synth_dir());
  ck_assert_int_eq(link(t, other), 0);
  expect_refused(t, WEIR_EIO, "not a plain file of ours");
  ck_assert_int_eq(unlink(other), 0);
  ck_assert_int_eq(symlink(t, other), 0);
  ck_assert_int_eq(resolve_with(other, NULL), WEIR_EIO);
  if (geteuid()) return;
  ck_assert_int_eq(chown(t, 4711, 4711), 0); /* only root can */
  expect_refused(t, WEIR_EIO, "not a plain file of ours");
}
END_TEST

START_TEST(what_is_no_trace_of_this_schema_is_refused)
{
  const char *t = make_trace();
  synth_change(t, "PRAGMA user_version = 3");
  expect_refused(t, WEIR_EVERSION, "schema 3");
  synth_change(t,
               "DROP VIEW event; DROP VIEW block; CREATE TABLE event(id); CREATE TABLE block(id);"
               "PRAGMA user_version = 1");
  expect_refused(t, WEIR_EVERSION, "schema 1");
  synth_change(t, "PRAGMA application_id = 7");
  expect_refused(t, WEIR_ECORRUPT, "no trace of Weir's");
  ck_assert_int_eq(resolve_with(synth_spool(), NULL), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "weir import"));
  ck_assert_int_eq(resolve_with(copy_path, NULL), WEIR_ECORRUPT);
  ck_assert_int_eq(resolve_with("/no/such/trace.db", NULL), WEIR_ENOENT);
}
END_TEST

START_TEST(a_hostile_trace_is_an_error)
{
  static const struct {
    const char *change, *says;
  } changes[] = {
      {"DROP TABLE stack; CREATE VIEW stack AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL"
       " SELECT id + 1 FROM r) SELECT id FROM r",
       "stack"},
      {"CREATE VIEW source_line AS SELECT 1 AS function", "source_line"},
      {"CREATE TABLE site(stack)", "site"},
      {"CREATE TABLE source_line(a); CREATE TABLE site(b)", "no such column"},
      {"DROP VIEW copy; CREATE TABLE copy(id)", "copy"},
      {"UPDATE module SET path = '/' || hex(zeroblob(3000000))", "too big"},
  };
  const char *t = make_trace();
  synth_change(t, changes[_i].change);
  expect_refused(t, _i > 1 ? WEIR_EIO : WEIR_ECORRUPT, changes[_i].says);
}
END_TEST

START_TEST(a_hostile_trace_runs_nothing_of_its_own)
{
  const char *t = make_trace();
  resolve(t);
  synth_change(
      t, "CREATE TRIGGER mine AFTER INSERT ON site BEGIN DELETE FROM event_row; END;"
         "CREATE TRIGGER too BEFORE INSERT ON source_line BEGIN SELECT RAISE(ABORT, 'no'); END;"
         "DROP VIEW allocation; CREATE VIEW allocation AS SELECT * FROM allocation");
  resolve(t);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event_row"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM source_line"), 2);
}
END_TEST

/* Names out of a trace reach a terminal no more than those out of a file do. */
START_TEST(stored_names_are_printable)
{
  const char *t = make_trace();
  resolve(t);
  synth_change(
      t, "UPDATE source_line SET function = char(27) || '[2Jx', file = 'a' || char(10) || 'b',"
         " line = -5");
  char *text = synth_text(t, 200);
  ck_assert_msg(!strchr(text, 27) && strstr(text, "[2Jx") && !strstr(text, "a\nb"), "%s", text);
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/resolve");
  TCase *t = tcase_create("resolve");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, own_program_find, synth_clean);
  tcase_add_test(t, the_views_name_the_place_that_the_report_names);
  tcase_add_test(t, inlined_functions_are_rows_of_one_frame);
  tcase_add_test(t, before_it_the_columns_are_there_and_empty);
  tcase_add_test(t, a_second_time_changes_nothing);
  tcase_add_test(t, a_moved_trace_names_its_places);
  tcase_add_test(t, a_changed_program_is_not_named);
  tcase_add_test(t, a_name_without_a_line_gets_one_later);
  tcase_add_test(t, views_of_old_are_replaced);
  tcase_add_test(t, who_launches_a_kernel_is_who_calls_it);
  tcase_add_test(t, a_trace_that_is_written_or_not_complete_is_refused);
  tcase_add_test(t, a_file_with_another_name_is_refused);
  tcase_add_test(t, what_is_no_trace_of_this_schema_is_refused);
  tcase_add_loop_test(t, a_hostile_trace_is_an_error, 0, 6);
  tcase_add_test(t, a_hostile_trace_runs_nothing_of_its_own);
  tcase_add_test(t, stored_names_are_printable);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
