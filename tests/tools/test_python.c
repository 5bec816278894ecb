/* test_python.c: frames of Python programs in stacks, against what Python itself says of each call.
 * On every CPython 3.11 to 3.14 that is there; where there is none, the suite says so. Of
 * versions that may not be there, memory as theirs is read (fake_python.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/tools/command.h"

enum { MOST_PYTHONS = 8 };

static char pythons[MOST_PYTHONS][256];
static int python_count;

#define LOOK                                                                                       \
  "for p in python3 python3.11 python3.12 python3.13 python3.13t python3.14 python3.14t "          \
  "$HOME/.pyenv/versions/3.1[1234]*/bin/python3;"                                                  \
  " do $p 2>/dev/null -c 'import ctypes, os, sys\n"                                                \
  "if (3, 11) <= sys.version_info < (3, 15) and sys.version_info.releaselevel == \"final\""        \
  " and sys.implementation.name == \"cpython\": print(os.path.realpath(sys.executable))'; done |"  \
  " sort -u"

/* Some sandboxes forbid what the frames are read by. */
static bool can_read(void)
{
  int from = 42, to = 0;
  struct iovec local = {&to, sizeof to}, remote = {&from, sizeof from};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof to && to == 42;
}

static void find_pythons(void)
{
  FILE *f = popen(LOOK, "r");
  while (f && python_count < MOST_PYTHONS && fgets(pythons[python_count], 256, f)) {
    pythons[python_count][strcspn(pythons[python_count], "\n")] = 0;
    python_count++;
  }
  if (f) (void)pclose(f);
}

#define SCRIPT "$WEIR_SOURCE/tests/tools/python_frames.py"

/* The Python frames of each allocation, as the script prints them. */
#define FRAMES_OF(trace)                                                                           \
  "sqlite3 " trace " \"SELECT bytes, group_concat(function || '|' || file || '|' || line, ';')"    \
  " FROM (SELECT a.bytes, a.id, p.function, p.file, p.line FROM allocation a"                      \
  " JOIN stack_frame s ON s.stack = a.stack JOIN frame f ON f.id = s.frame"                        \
  " JOIN python_frame p ON p.process = f.process AND p.address = f.address"                        \
  " ORDER BY a.id, s.depth) GROUP BY bytes\" | sed 's/|/ /'"

START_TEST(each_call_has_the_frames_that_python_says)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(0,
              "$WEIR run --force --python --sim --stacks=128 -o t.db -- %s -X utf8 " SCRIPT
              " >said && " FRAMES_OF("t.db") " >seen && cmp said seen",
              pythons[i]);
    ck_assert_int_gt(atoi(sh_status(0, "wc -l <said")->out), 200);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM frame f JOIN module m ON m.id = f.module"
                                 " WHERE f.address >= 0x5059000000000000"),
                     0);
  }
}
END_TEST

/* Not one of the interpreter's own stays where its Python frames are. */
START_TEST(a_report_names_python_functions)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(0, "$WEIR run --force --python --sim -o t.db -- %s -X utf8 " SCRIPT " >/dev/null",
              pythons[i]);
    sh_status(0,
              "$WEIR report --top 500 --format json t.db | python3 -c '"
              "import json, sys; r = json.load(sys.stdin);"
              "s = r[\"alloc_places\"]; p = s[0][\"place\"]; assert p[\"function\"] == \"call\", p;"
              "assert p[\"file\"].endswith(\"python_frames.py\") and p[\"line\"] > 20;"
              "f = [x for y in s[0][\"stacks\"] for x in y[\"callers\"]];"
              "f = \"\\n\".join(f);"
              "assert \"Box.deep\" in f and \"key_function.<locals>.inner\" in f;"
              "assert \"_PyEval\" not in f'");
    sh_status(0, "$WEIR resolve t.db");
    ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM allocation WHERE caller = 'call'"
                                 " AND file LIKE '%python_frames.py' AND line > 20"),
                     200);
  }
}
END_TEST

START_TEST(a_short_stack_has_the_innermost_frames)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(0,
              "$WEIR run --force --python --sim --stacks=6 -o t.db -- %s -X utf8 " SCRIPT
              " >/dev/null",
              pythons[i]);
    ck_assert_int_le(ask("t.db", "SELECT max(depth) FROM stack"), 6);
    ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM python_frame WHERE function = 'call'"), 0);
  }
}
END_TEST

START_TEST(switched_off_nothing_of_python_is_in_a_trace)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(0, "$WEIR run --force --python=off --sim -o t.db -- %s -X utf8 " SCRIPT " >/dev/null",
              pythons[i]);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM python_frame"), 0);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM frame WHERE address >= 0x5059000000000000"),
                     0);
  }
}
END_TEST

/* The script's main thread makes all kinds of calls and one more, three others all kinds. */
START_TEST(by_default_the_main_threads_frames_are_read)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(
        0,
        "$WEIR run --force --sim --stacks=128 -o t.db -- %s -X utf8 " SCRIPT
        " >said && " FRAMES_OF("t.db") " >seen && head -n $(wc -l <seen) said | cmp - seen"
                                       " && test $(expr $(wc -l <seen) \\* 4 - 3) = $(wc -l <said)",
        pythons[i]);
    sh_status(0,
              "$WEIR run --force --python=auto --sim --stacks=128 -o t.db -- %s -X utf8 " SCRIPT
              " >/dev/null && " FRAMES_OF("t.db") " | cmp - seen",
              pythons[i]);
  }
}
END_TEST

/* Which of its threads shuts the interpreter down is not known. */
START_TEST(by_default_no_frames_are_read_of_a_program_that_embeds_python)
{
  for (int i = 0; i < python_count; i++) {
    static const char run[] =
        "cp -f %s embedder && export PYTHONHOME=$(%s -c 'import sys; print(sys.base_prefix)')"
        " LD_LIBRARY_PATH=$(dirname $(dirname %s))/lib && "
        "$WEIR run --force %s --sim -o t.db -- ./embedder -X utf8 " SCRIPT " >/dev/null";
    sh_status(0, run, pythons[i], pythons[i], pythons[i], "");
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM python_frame"), 0);
    sh_status(0, run, pythons[i], pythons[i], pythons[i], "--python");
    ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM python_frame"), 100);
  }
}
END_TEST

/* With a note where frames were asked for, and without one where they were not. */
START_TEST(by_default_an_unreadable_python_runs_as_ever)
{
  static const char unread[] = "SELECT count(*) FROM note WHERE text LIKE '%its frames are not%'";
  outcome *o = sh_status(0, "for p in python3.8 python3.9 python3.10"
                            " $HOME/.pyenv/versions/3.[89].*/bin/python3"
                            " $HOME/.pyenv/versions/3.10.*/bin/python3; do"
                            " $p 2>/dev/null -c 'import ctypes, os, sys;"
                            " print(os.path.realpath(sys.executable))'; done | sort -u");
  char *list = strdup(o->out), *rest = NULL;
  ck_assert_ptr_nonnull(list);
  for (char *p = strtok_r(list, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
    static const char run[] = "$WEIR run --force %s --sim -o t.db -- %s -c 'import ctypes;"
                              " print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))'";
    ck_assert_str_eq(sh_status(0, run, "", p)->out, "0\n");
    ck_assert_int_eq(ask("t.db", unread), 0);
    ck_assert_str_eq(sh_status(0, run, "--python", p)->out, "0\n");
    ck_assert_int_eq(ask("t.db", unread), 1);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM python_frame"), 0);
  }
  free(list);
}
END_TEST

START_TEST(a_wrong_word_for_the_option_is_refused)
{
  outcome *o = sh_status(2, "$WEIR run --python=main -- true");
  ck_assert_ptr_nonnull(strstr(o->err, "--python takes auto, on or off, not 'main'"));
}
END_TEST

START_TEST(stacks_off_and_programs_without_python_are_as_ever)
{
  sh_status(0, "$WEIR run --force --python --sim -o t.db -- $VICTIM repeat 5");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM allocation WHERE stack IS NOT NULL"), 5);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM python_frame"), 0);
  for (int i = 0; i < python_count; i++) {
    sh_status(0,
              "$WEIR run --force --python --sim --stacks=off -o t.db -- %s -X utf8 " SCRIPT
              " >/dev/null",
              pythons[i]);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM stack"), 0);
  }
}
END_TEST

/* A child's numbers are its own. */
START_TEST(a_forked_childs_frames_are_named_in_its_own_part)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(0,
              "cat >fork.py <<'END'\n"
              "import ctypes, os\n"
              "cuda = ctypes.CDLL('libcuda.so.1')\n"
              "def both(): return cuda.cuInit(0)\n"
              "both()\n"
              "if os.fork() == 0:\n"
              "    both()\n"
              "    os._exit(0)\n"
              "os.wait()\n"
              "END\n"
              "$WEIR run --force --python --sim -o t.db -- %s fork.py",
              pythons[i]);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process"), 2);
    ck_assert_int_eq(ask("t.db", "SELECT count(DISTINCT process) FROM python_frame WHERE"
                                 " function = 'both' AND line = 3"),
                     2);
    ck_assert_int_eq(ask("t.db",
                         "SELECT count(*) FROM frame f WHERE f.address >= 0x5059000000000000"
                         " AND NOT EXISTS (SELECT 1 FROM python_frame p WHERE p.process ="
                         " f.process AND p.address = f.address)"),
                     0);
  }
}
END_TEST

/* 3.13 and 3.14, with the interpreter's lock and without: other sizes of objects, references with
 * tags, a thread's own copy of the bytecode. */
START_TEST(frames_are_read_where_the_table_of_offsets_says)
{
  static const char *const versions[] = {"3.13", "3.13t", "3.14", "3.14t"};
  if (!can_read()) return;
  sh_status(0,
            "$WEIR run --force --python --sim -o t.db -- $BUILD/tests/tools/fake_python_%s >said &&"
            " " FRAMES_OF("t.db") " >seen && cmp said seen && test $(wc -l <seen) = 80",
            versions[_i]);
}
END_TEST

/* Its trampolines, which are in no object, stand beside the frames that they are made for. */
START_TEST(perf_trampolines_double_no_frame)
{
  for (int i = 0; i < python_count; i++) {
    sh_status(0,
              "$WEIR run --force --python --sim --stacks=128 -o t.db -- %s -X utf8 -X %s " SCRIPT
              " >said && " FRAMES_OF("t.db") " >seen && cmp said seen",
              pythons[i], i + 1 < python_count ? "perf" : "perf_jit");
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM frame WHERE module IS NULL"
                                 " AND address < 0x5059000000000000"),
                     0);
  }
}
END_TEST

/* What the example is for: Python's functions and lines, and the ranges by name. */
START_TEST(the_python_examples_report_names_functions_lines_and_ranges)
{
  for (int i = 0; i < python_count; i++) {
    outcome *o =
        sh_status(0, "$WEIR run --force --python --sim -o t.db -- %s $BUILD/examples/ranges.py 7",
                  pythons[i]);
    ck_assert_str_eq(o->out, "ranges: ok\n");
    sh_status(0, "$WEIR report t.db >report &&"
                 " grep -E '← Model.forward .*/ranges.py:[0-9]+$' report &&"
                 " grep -E '← train .*/ranges.py:[0-9]+$' report && ! grep -q PyEval report");
    sh_status(0, "$WEIR report --format json t.db | python3 -c '"
                 "import json, sys; r = {x[\"text\"]: x for x in json.load(sys.stdin)[\"ranges\"]};"
                 "assert {x: r[x][\"calls\"] for x in r} == "
                 "{\"train\": 35, \"batch\": 35, \"forward\": 14, \"backward\": 21}, r;"
                 "assert r[\"forward\"][\"ranges\"] == r[\"forward\"][\"copies\"] == 7, r'");
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/python");
  TCase *t = tcase_create("python");
  if (can_read()) find_pythons();
  if (!python_count)
    printf("no CPython 3.11 to 3.14 whose frames can be read is here: none were tried.\n");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, each_call_has_the_frames_that_python_says);
  tcase_add_test(t, a_report_names_python_functions);
  tcase_add_test(t, a_short_stack_has_the_innermost_frames);
  tcase_add_test(t, by_default_the_main_threads_frames_are_read);
  tcase_add_test(t, by_default_no_frames_are_read_of_a_program_that_embeds_python);
  tcase_add_test(t, by_default_an_unreadable_python_runs_as_ever);
  tcase_add_test(t, a_wrong_word_for_the_option_is_refused);
  tcase_add_test(t, switched_off_nothing_of_python_is_in_a_trace);
  tcase_add_test(t, stacks_off_and_programs_without_python_are_as_ever);
  tcase_add_test(t, a_forked_childs_frames_are_named_in_its_own_part);
  tcase_add_loop_test(t, frames_are_read_where_the_table_of_offsets_says, 0, 4);
  tcase_add_test(t, perf_trampolines_double_no_frame);
  tcase_add_test(t, the_python_examples_report_names_functions_lines_and_ranges);
  suite_add_tcase(s, t);
  return run_suite(s);
}
