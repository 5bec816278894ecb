/* test_places.c: fixes at places (`weir run --apply`): they are done where the file has them and
 * nowhere else, and a file that does not fit changes nothing but what is printed. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#define PLACED "$BUILD/tests/reroute/placed $BUILD/tests/reroute/libplugin.so.1"
#define OUTPUT "0 failures, 1 from the plug-in\n"
#define PROOF  "proof gain=1ms..2ms pairs=5 driver=13.0 date=2026-05-04 card=Weir Software Device\n"

enum { ALLOC = 1, FREE = 2, DEVICE = 3, PINNED = 2 };
enum { TIMES = 10, FIRST = 2 << 20, SECOND = 4 << 20, THIRD = 6 << 20, HOST = 8 << 20 };
enum { POOL = 10 << 20, PLUGIN = 3 << 20, SMALL = 1 << 17 };

/* Writes "at=ID+0xOFFSET,..." of the stack of the calls of that kind (of frees: of blocks of that
 * size) in the run that was only recorded. */
static const char *place_of(int kind, int bytes, int frames)
{
  static char text[4][1024];
  static unsigned turn;
  char *out = text[turn++ % 4], query[1024];
  sqlite3 *db;
  sqlite3_stmt *row;
  (void)snprintf(
      query, sizeof query,
      "SELECT group_concat(lower(m.build_id) || '+0x' || printf('%%x', f.address - m.base),"
      " ',') FROM (SELECT stack FROM event WHERE kind = %d AND bytes = %d LIMIT 1) e"
      " JOIN stack_frame s ON s.stack = e.stack AND s.depth < %d"
      " JOIN frame f ON f.id = s.frame JOIN module m ON m.id = f.module",
      kind, bytes, frames);
  ck_assert_int_eq(sqlite3_open("recorded.db", &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_prepare_v2(db, query, -1, &row, NULL), SQLITE_OK);
  ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
  ck_assert_ptr_nonnull(sqlite3_column_text(row, 0));
  (void)snprintf(out, 1024, "at=%s", (const char *)sqlite3_column_text(row, 0));
  (void)sqlite3_finalize(row);
  (void)sqlite3_close(db);
  return out;
}

static void record_places(void)
{
  enter_scratch();
  sh_status(0, "$WEIR run --mode=observe -o recorded.db --sim -- " PLACED);
}

static void write_fixes(const char *text)
{
  FILE *f = fopen("fixes", "w");
  ck_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Writes a file of these lines, and runs the program with it. */
static const outcome *apply_lines(const char *first, const char *second)
{
  char text[4096];
  (void)snprintf(text, sizeof text, PROOF "%s\n%s\nend\n", first, second);
  write_fixes(text);
  const outcome *o = sh_status(0, "$WEIR run --apply fixes --force -o t.db --sim -- " PLACED);
  ck_assert_str_eq(o->out, OUTPUT);
  return o;
}

static const char *fix_line(const char *action, const char *module, const char *place)
{
  static char line[4][2048];
  static unsigned turn;
  char *out = line[turn++ % 4];
  (void)snprintf(out, sizeof line[0], "fix %s module=%s %s", action, module, place);
  return out;
}

/* How many allocations of that size came out of a cache. */
static long long cached(int bytes)
{
  char query[256];
  (void)snprintf(query, sizeof query,
                 "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64 AND bytes = %d", bytes);
  return ask("t.db", query);
}

/* ---- where ----------------------------------------------------------------------------------- */

START_TEST(a_fix_is_done_at_its_place_alone)
{
  const outcome *o = apply_lines(fix_line("device", "placed", place_of(ALLOC, THIRD, 1)), "");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(cached(THIRD), TIMES - 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64"),
                   TIMES - 1);
}
END_TEST

START_TEST(a_second_frame_distinguishes_callers_of_one_function)
{
  apply_lines(fix_line("device", "placed", place_of(ALLOC, FIRST, 2)), "");
  ck_assert_int_eq(cached(FIRST), TIMES - 1);
  ck_assert_int_eq(cached(SECOND), 0);
  apply_lines(fix_line("device", "placed", place_of(ALLOC, FIRST, 1)), "");
  ck_assert_int_eq(cached(FIRST), TIMES - 1);
  ck_assert_int_eq(cached(SECOND), TIMES - 1);
}
END_TEST

START_TEST(a_place_is_found_in_a_library_that_is_opened_later)
{
  const outcome *o =
      apply_lines(fix_line("device", "libplugin.so.1", place_of(ALLOC, PLUGIN, 1)), "");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(cached(PLUGIN), 3 * TIMES - 1);
  ck_assert_int_eq(cached(THIRD), 0);
}
END_TEST

START_TEST(each_kind_of_memory_has_its_own_action)
{
  apply_lines(fix_line("device", "placed", place_of(ALLOC, HOST, 1)),
              fix_line("pinned", "placed", place_of(ALLOC, THIRD, 1)));
  ck_assert_int_eq(cached(THIRD) + cached(HOST), 0);
  apply_lines(fix_line("pinned", "placed", place_of(ALLOC, HOST, 1)), "");
  ck_assert_int_eq(cached(HOST), TIMES - 1);
  ck_assert_int_eq(cached(THIRD), 0);
}
END_TEST

/* A free with work under way keeps its block without a wait: reason 17. */
START_TEST(a_free_does_not_wait_at_its_place_alone)
{
  static const char pending[] = "SELECT count(*) FROM event WHERE kind = 2 AND copy = 17";
  const char *allocated = fix_line("device", "placed", place_of(ALLOC, THIRD, 1));
  apply_lines(allocated, fix_line("relaxed", "placed", place_of(FREE, FIRST, 2)));
  ck_assert_int_eq(ask("t.db", pending), 0);
  apply_lines(allocated, fix_line("relaxed", "placed", place_of(FREE, THIRD, 1)));
  ck_assert_int_gt(ask("t.db", pending), 0);
}
END_TEST

START_TEST(a_pool_keeps_its_memory_where_the_file_has_its_place)
{
  static const char kept[] = "SELECT count(*) FROM note WHERE text LIKE 'done by Weir: a pool%'";
  apply_lines(fix_line("pool", "placed", place_of(ALLOC, THIRD, 1)), "");
  ck_assert_int_eq(ask("t.db", kept), 0);
  apply_lines(fix_line("pool", "placed", place_of(ALLOC, POOL, 1)), "");
  ck_assert_int_eq(ask("t.db", kept), 1);
}
END_TEST

/* ---- without a trace ------------------------------------------------------------------------- */

START_TEST(nothing_is_recorded_unless_it_is_asked_for)
{
  char text[4096];
  (void)snprintf(text, sizeof text, PROOF "%s\nend\n",
                 fix_line("device", "placed", place_of(ALLOC, THIRD, 1)));
  write_fixes(text);
  const outcome *o =
      sh_status(0, "mkdir -p spools; WEIR_SPOOL_ROOT=$PWD/spools $WEIR run --apply fixes"
                   " --sim -- sh -c '" PLACED "; ls $WEIR_SPOOL_ROOT; ls *.db;"
                   " test -z \"$WEIR_SPOOL_DIR\"'");
  ck_assert_str_eq(o->out, OUTPUT "recorded.db\n");
  ck_assert_str_eq(o->err, "");
}
END_TEST

/* The program compares: a page counts as free when none of its own blocks is left in it. */
START_TEST(free_memory_is_the_programs_without_a_trace_too)
{
  char text[4096];
  const char *place = fix_line("device", "placed", place_of(ALLOC, SMALL, 1));
  ck_assert_str_eq(apply_lines(place, "")->err, "");
  ck_assert_int_eq(cached(SMALL), TIMES - 1);
  (void)snprintf(text, sizeof text, PROOF "%s\nend\n", place);
  write_fixes(text);
  ck_assert_str_eq(sh_status(0, "$WEIR run --apply fixes --sim -- " PLACED)->out, OUTPUT);
}
END_TEST

START_TEST(the_preload_library_alone_applies_fixes_too)
{
  char text[4096];
  (void)snprintf(text, sizeof text, PROOF "%s\nend\n",
                 fix_line("device", "placed", "at=00ff+0x10"));
  write_fixes(text);
  const outcome *o = sh_status(
      0, "LD_LIBRARY_PATH=$BUILD/lib/sim LD_PRELOAD=$BUILD/lib/libweir-preload.so WEIR_APPLY=fixes"
         " " PLACED "; ls *.db");
  ck_assert_str_eq(o->out, OUTPUT "recorded.db\n");
  ck_assert_ptr_nonnull(strstr(o->err, "placed is not the build that its fixes were proven on"));
}
END_TEST

/* ---- what does not fit ----------------------------------------------------------------------- */

START_TEST(another_build_is_refused_in_a_message)
{
  const outcome *o = apply_lines(fix_line("device", "placed", "at=00ff+0x10"), "");
  const char *message =
      strstr(o->err, "placed is not the build that its fixes were proven on: they "
                     "are not applied (line 2)");
  ck_assert_msg(message != NULL, "%s", o->err);
  ck_assert_ptr_null(strstr(message + 1, "placed is not the build"));
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE flags & 64"), 0);
}
END_TEST

START_TEST(a_place_that_is_gone_is_reported_once)
{
  char place[1024];
  (void)snprintf(place, sizeof place, "%s", place_of(ALLOC, THIRD, 1));
  *strchr(place, '+') = 0;
  (void)snprintf(place + strlen(place), 16, "+0x7");
  const outcome *o = apply_lines(fix_line("device", "placed", place_of(ALLOC, FIRST, 1)),
                                 fix_line("device", "placed", place));
  const char *message = strstr(o->err, "1 of 2 fixes met no call of this process (line 3)");
  ck_assert_msg(message != NULL, "%s", o->err);
  ck_assert_ptr_null(strstr(message + 1, "1 of 2 fixes"));
}
END_TEST

START_TEST(another_card_is_a_warning)
{
  char text[4096];
  (void)snprintf(text, sizeof text,
                 "proof driver=12.4 card=Tesla T4  \nfix device module=placed %s\nend\n",
                 place_of(ALLOC, THIRD, 1));
  write_fixes(text);
  const outcome *o = sh_status(0, "$WEIR run --apply fixes -o t.db --force --sim -- " PLACED);
  ck_assert_str_eq(o->out, OUTPUT);
  ck_assert_msg(strstr(o->err, "proven on Tesla T4, driver 12.4; this is Weir Software Device") !=
                    NULL,
                "%s", o->err);
  ck_assert_int_eq(cached(THIRD), TIMES - 1);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_leaves_the_program_as_it_is)
{
  static const char *const bad[] = {"", "nonsense\n", PROOF "fix device at=00ff+0x1\n",
                                    "fix device at=00ff+0x1\nend\n", PROOF "fix all at=0+1\nend\n"};
  write_fixes(bad[_i]);
  const outcome *o = sh_status(0, "$WEIR run --apply fixes --sim -- " PLACED);
  ck_assert_str_eq(o->out, OUTPUT);
  ck_assert_msg(strstr(o->err, "weir: fixes") &&
                    strstr(o->err, "; the program runs without fixes."),
                "%s", o->err);
  o = sh_status(0, "WEIR_APPLY=fixes $WEIR run -o t.db --force --sim -- " PLACED);
  ck_assert_str_eq(o->out, OUTPUT);
  ck_assert_msg(strstr(o->err, "weir: fixes") && strstr(o->err, "; no fixes are applied."), "%s",
                o->err);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE flags & 64"), 0);
}
END_TEST

START_TEST(options_that_fixes_exclude_are_refused)
{
  static const char *const options[] = {"--mode=strict", "--reroute=device", "--cache-rules=x",
                                        "--hash", "-o t.db --stacks=off"};
  const outcome *o = sh_status(2, "$WEIR run --apply fixes %s -- touch ran", options[_i]);
  ck_assert_ptr_nonnull(strstr(o->err, "--apply"));
  sh_status(1, "test -e ran");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/places");
  TCase *t = tcase_create("places");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, record_places, leave_scratch);
  tcase_add_test(t, a_fix_is_done_at_its_place_alone);
  tcase_add_test(t, a_second_frame_distinguishes_callers_of_one_function);
  tcase_add_test(t, a_place_is_found_in_a_library_that_is_opened_later);
  tcase_add_test(t, each_kind_of_memory_has_its_own_action);
  tcase_add_test(t, a_free_does_not_wait_at_its_place_alone);
  tcase_add_test(t, a_pool_keeps_its_memory_where_the_file_has_its_place);
  tcase_add_test(t, nothing_is_recorded_unless_it_is_asked_for);
  tcase_add_test(t, free_memory_is_the_programs_without_a_trace_too);
  tcase_add_test(t, the_preload_library_alone_applies_fixes_too);
  tcase_add_test(t, another_build_is_refused_in_a_message);
  tcase_add_test(t, a_place_that_is_gone_is_reported_once);
  tcase_add_test(t, another_card_is_a_warning);
  tcase_add_loop_test(t, a_file_that_cannot_be_read_leaves_the_program_as_it_is, 0, 5);
  tcase_add_loop_test(t, options_that_fixes_exclude_are_refused, 0, 5);
  suite_add_tcase(s, t);
  return run_suite(s);
}
