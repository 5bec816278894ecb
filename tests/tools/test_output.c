/* test_output.c: what a command makes of the name that its output is to have: a regular file is
 * replaced by a whole one, what is none is written as it is, a link of another user's is
 * refused, - is stdout. Each holds for every command that writes a file. Devices and links of
 * other users are made here, in the test's own folder; where that is denied, the test passes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/tools/command.h"

/* What is to be written stands for %s; begins: what the output does, as a pattern of grep's. */
static const struct {
  const char *line, *begins;
} writers[] = {
    {"$WEIR export -f csv -o %s t.db", ",start_ns,"},
    {"$WEIR export -f nsys -o %s t.db", "^SQLite format 3"},
    {"$WEIR export -f pytorch-snapshot -o %s t.db", "^{\"segments\""},
    {"$WEIR report --html -o %s t.db", "^<!doctype html>"},
    {"$WEIR stats -o %s cuda_api_sum t.db", "Time (%)"},
    {"$WEIR trace -o %s t.db", "^ *start "},
    {"$WEIR check --budget b --junit %s t.db", "^<?xml"},
    {"$WEIR check --budget b --markdown %s t.db", "weir check"},
    {"$WEIR replay --svg %s t.db", "^<svg"},
};
enum { WRITERS = sizeof writers / sizeof *writers };

static void enter_recorded(void)
{
  enter_scratch();
  sh_status(0, "$WEIR run --sim -o t.db -- $VICTIM repeat 3 && echo 'peak <= 1 GiB' >b");
}

/* Each writer has a folder of its own. */
static void enter_folder(int writer)
{
  sh_status(0, "mkdir %d && cp t.db b %d", writer, writer);
  char name[16];
  (void)snprintf(name, sizeof name, "%d", writer);
  ck_assert_int_eq(chdir(name), 0);
}

/* The command line of a writer, to be run. */
static const char *line_to(int writer, const char *name)
{
  static char line[512];
  (void)snprintf(line, sizeof line, writers[writer].line, name);
  return line;
}

static void must_hold(int writer, const char *file)
{
  sh_status(0, "head -c 4096 %s | tr -d '\\0' | grep -aiq '%s'", file, writers[writer].begins);
}

static void must_be(const char *name, mode_t type)
{
  struct stat st;
  ck_assert_int_eq(lstat(name, &st), 0);
  ck_assert_msg((st.st_mode & S_IFMT) == type, "%s is another file now", name);
}

START_TEST(a_regular_file_is_replaced_by_a_whole_one)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    sh_status(0, "echo old >out; ln out other; mkdir free; %s", line_to(w, "out"));
    must_hold(w, "out");
    sh_status(0, "grep -qx old other && %s && ls | cmp - - <<'EOF'\nb\nfree\nother\nout\nt.db\nEOF",
              line_to(w, "free/new"));
    must_hold(w, "free/new");
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_failure_leaves_what_was_there)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    sh_status(0, "echo old >out; head -c 5000 t.db >u.db && mv u.db t.db");
    outcome *o = sh("%s", line_to(w, "out"));
    ck_assert_int_ne(o->status, 0);
    sh_status(0, "grep -qx old out && ls | cmp - - <<'EOF'\nb\nout\nt.db\nEOF");
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

/* By another of its names, too. */
START_TEST(a_trace_is_not_written_over)
{
  static const char *const names[] = {"t.db", "./t.db", "link.db", "hard.db"};
  for (int i = 0; i < WRITERS; i++) {
    enter_folder(i);
    sh_status(0, "cp t.db before && ln -s t.db link.db && ln t.db hard.db");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      const outcome *o = sh_status(2, "%s", line_to(i, names[k]));
      ck_assert_msg(strstr(o->err, " is the trace itself (see") ||
                        strstr(o->err, " is what is read (see"),
                    "%s", o->err);
      sh_status(0, "cmp t.db before");
    }
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_device_is_written_as_it_is)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    if (mknod("null", S_IFCHR | 0600, makedev(1, 3)) || access("null", W_OK)) return;
    if (sh("echo >null")->status) return; /* a mount without devices */
    sh_status(0, "%s", line_to(w, "null"));
    must_be("null", S_IFCHR);
    ck_assert_int_eq(mknod("full", S_IFCHR | 0600, makedev(1, 7)), 0);
    outcome *o = sh("%s", line_to(w, "full"));
    ck_assert_int_ne(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->err, "weir: "));
    must_be("full", S_IFCHR);
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_pipe_is_written_as_it_is)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    sh_status(0, "cat pipe >got & %s >/dev/null && wait", line_to(w, "pipe"));
    must_be("pipe", S_IFIFO);
    must_hold(w, "got");
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_descriptor_of_the_shells_is_written)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    sh_status(0, "{ %s 3>&1 >/dev/null; } | cat >got", line_to(w, "/dev/fd/3"));
    must_hold(w, "got");
    sh_status(0, "exec 3>got; echo first >&3; %s >/dev/null; echo last >&3",
              line_to(w, "/proc/self/fd/3"));
    sh_status(0, "test $(head -c 5 got) = first && test $(tail -c 5 got) = last");
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_dash_is_stdout)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    sh_status(0, "%s >got; test ! -e ./- && test ! -e -.part*", line_to(w, "-"));
    sh_status(0, "tr -d '\\0' <got | grep -aiq '%s'", writers[w].begins);
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_link_of_ones_own_is_followed)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    sh_status(0, "mkdir there; echo old >there/file; ln -s there folder; ln -s folder/file link;"
                 " ln -s \"$PWD/there/none\" new");
    sh_status(0, "%s", line_to(w, "link"));
    must_be("link", S_IFLNK);
    must_hold(w, "there/file");
    sh_status(0, "%s", line_to(w, "new"));
    must_be("new", S_IFLNK);
    must_hold(w, "there/none");
    sh_status(0, "test $(ls there | wc -l) = 2");
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

START_TEST(a_link_of_another_users_is_refused)
{
  for (int w = 0; w < WRITERS; w++) {
    enter_folder(w);
    sh_status(0, "mkdir -m 1777 shared; echo private >kept; mkdir mine; ln -s ../kept shared/link;"
                 " ln -s ../mine shared/folder; ln -s shared/link own");
    if (lchown("shared/link", 65534, 65534) || lchown("shared/folder", 65534, 65534)) return;
    static const char *const names[] = {"shared/link", "shared/folder/new", "own"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      outcome *o = sh("%s", line_to(w, names[i]));
      ck_assert_int_ne(o->status, 0);
      ck_assert_ptr_nonnull(strstr(o->err, ": a link on the way is another user's.\n"));
    }
    sh_status(0, "grep -qx private kept && rmdir mine");
    must_be("shared/link", S_IFLNK);
    ck_assert_int_eq(chdir(".."), 0);
  }
}
END_TEST

/* Its rows fail, for want of a build, and are written. */
START_TEST(so_is_what_the_benchmarks_measure)
{
  sh_status(1, "echo old >out; ln out other; $BUILD/bench/bench $PWD out alloc-hit");
  sh_status(0, "grep -qx old other && grep -q weir-bench out && ln -s out link");
  if (lchown("link", 65534, 65534)) return;
  outcome *o = sh_status(1, "$BUILD/bench/bench $PWD link alloc-hit");
  ck_assert_ptr_nonnull(strstr(o->err, ": a link on the way is another user's.\n"));
}
END_TEST

/* U+202E turns what follows around, U+200B and U+E0041 are not seen; = begins a formula. */
#define DECEIVES                                                                                   \
  "=SUM(A1)\xe2\x80\xae"                                                                           \
  "a\xe2\x80\x8b"                                                                                  \
  "b\xf3\xa0\x81\x81"                                                                              \
  "c"
#define SHOWN "\\\\u202ea\\\\u200bb\\\\udb40\\\\udc41c"

/* A trace whose functions, places and threads are called so. */
static void name_deceivingly(void)
{
  sh_status(0, "$WEIR resolve t.db && sqlite3 t.db \"UPDATE source_line SET function = '" DECEIVES
               "'; UPDATE api SET name = '" DECEIVES "' WHERE id IN (SELECT api FROM event);"
               " UPDATE thread SET name = '" DECEIVES "'\"");
}

START_TEST(what_is_not_seen_is_shown)
{
  static const char *const lines[] = {"report",
                                      "report findings --min-cost 0ns",
                                      "report memory",
                                      "report waits --by stack",
                                      "report memory --format csv",
                                      "report memory --format markdown",
                                      "trace",
                                      "trace -f csv",
                                      "trace -f jsonl",
                                      "stats cuda_api_sum",
                                      "stats -f csv cuda_api_sum",
                                      "stats -f tsv cuda_api_sum",
                                      "stats -f json cuda_api_sum"};
  name_deceivingly();
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    sh_status(0, "$WEIR %s t.db >out", lines[i]);
    outcome *o = sh("grep -c '\xe2\x80\xae\\|\xe2\x80\x8b\\|\xf3\xa0\x81\x81' out");
    ck_assert_msg(o->status, "%s: raw", lines[i]);
    bool markdown = strstr(lines[i], "markdown") != NULL;
    o = sh(markdown ? "sed 's/&#92;/\\\\/g' out | grep -c '" SHOWN "'" : "grep -c '" SHOWN "' out");
    ck_assert_msg(!o->status, "%s: not shown", lines[i]);
  }
}
END_TEST

START_TEST(a_cell_is_no_formula)
{
  static const char *const lines[] = {"report memory --format csv", "trace -f csv",
                                      "stats -f csv cuda_api_sum", "stats -f tsv cuda_api_sum",
                                      "export -f csv -o /dev/stdout"};
  static const char *const names[] = {"=1+1", "+1+1", "-1+1", "@A1", "-a", "\xef\xbc\x9dX"};
  name_deceivingly();
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    sh_status(0,
              "sqlite3 t.db \"UPDATE source_line SET function = '%s'; UPDATE api SET name = '%s'"
              " WHERE id IN (SELECT api FROM event)\"",
              names[n], names[n]);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
      sh_status(0, "$WEIR %s t.db >out && grep -qF \"'%s\" out", lines[i], names[n]);
      sh_status(1, "tr '\\t' , <out | grep -e '\\(^\\|,\\)\"*%s'", names[n]);
    }
  }
  sh_status(0,
            "sqlite3 t.db \"UPDATE api SET name = '-1.5e3' WHERE id IN (SELECT api FROM event)\";"
            " $WEIR trace -f csv t.db | grep -q ',-1.5e3,'");
}
END_TEST

/* JSON, which has these characters as they are where it goes to a file. */
START_TEST(a_terminal_is_sent_none)
{
  if (!has_terminals()) return;
  name_deceivingly();
  sh_status(
      0, "script -qec \"$WEIR report findings --format json --min-cost 0ns t.db\" out >/dev/null;"
         " ! grep -q '\xe2\x80\xae' out");
  sh_status(0, "script -qec \"$WEIR no-\xe2\x80\xae\" out >/dev/null; ! grep -q '\xe2\x80\xae' out;"
               " grep -q 'no-\\\\u202e' out");
}
END_TEST

START_TEST(a_trace_goes_to_no_stream)
{
  static const char *const lines[] = {"$WEIR run --sim -o - -- $VICTIM repeat 1",
                                      "$WEIR import -o - weir.1.spool"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    outcome *o = sh("%s", lines[i]);
    ck_assert_int_ne(o->status, 0);
    ck_assert_msg(strstr(o->err, "a trace is a file"), "%s", o->err);
  }
  sh_status(0, "test ! -e ./-");
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("tools/output");
  TCase *tc = tcase_create("output");
  tcase_add_checked_fixture(tc, enter_recorded, leave_scratch);
  tcase_set_timeout(tc, 0);
  tcase_add_test(tc, a_regular_file_is_replaced_by_a_whole_one);
  tcase_add_test(tc, a_failure_leaves_what_was_there);
  tcase_add_test(tc, a_trace_is_not_written_over);
  tcase_add_test(tc, a_device_is_written_as_it_is);
  tcase_add_test(tc, a_pipe_is_written_as_it_is);
  tcase_add_test(tc, a_descriptor_of_the_shells_is_written);
  tcase_add_test(tc, a_dash_is_stdout);
  tcase_add_test(tc, a_link_of_ones_own_is_followed);
  tcase_add_test(tc, a_link_of_another_users_is_refused);
  tcase_add_test(tc, so_is_what_the_benchmarks_measure);
  tcase_add_test(tc, what_is_not_seen_is_shown);
  tcase_add_test(tc, a_cell_is_no_formula);
  tcase_add_test(tc, a_terminal_is_sent_none);
  tcase_add_test(tc, a_trace_goes_to_no_stream);
  suite_add_tcase(suite, tc);
  return run_suite(suite);
}
