/* test_nvtx.c: what a program says by NVTX is in its spool, exactly, and another tool sees what it
 * would see without us. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/event.h"
#include "tests/interpose/loader_run.h"
#include "tests/interpose/nvtx_account.h"

static outcome run_edges(enum preload how, const char *mode, const char *const *env)
{
  const char *const argv[] = {built("tests/victims/nvtx/edges"), mode, NULL};
  outcome o = run(how, argv, env);
  ck_assert_msg(o.status == 0, "%s ended with %d: %s", mode, o.status, o.err);
  return o;
}

static char *copy_of(const char *text)
{
  char *copy = strdup(text);
  ck_assert_ptr_nonnull(copy);
  return copy;
}

START_TEST(test_random_nests_are_in_the_spool_as_the_program_counted_them)
{
  char seed[16], threads[16], steps[16];
  (void)snprintf(seed, sizeof seed, "%d", _i);
  (void)snprintf(threads, sizeof threads, "%d", 1 + _i % 5);
  (void)snprintf(steps, sizeof steps, "%d", 100 + 200 * (_i % 4));
  const char *const argv[] = {built("tests/victims/nvtx/nests"), seed, threads, steps, NULL};
  outcome plain = run(WITHOUT, argv, NULL), o = run(WITH, argv, NULL);
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.out, plain.out);
  ck_assert_str_eq(o.err, plain.err);
  char *counted = copy_of(sorted_lines(o.out)),
       *recorded = copy_of(nvtx_account(scratch("spools")));
  for (size_t i = 0; recorded[i] || counted[i]; i++)
    ck_assert_msg(recorded[i] == counted[i], "recorded \"%.80s\", counted \"%.80s\"",
                  recorded + (i < 40 ? 0 : i - 40), counted + (i < 40 ? 0 : i - 40));
  ck_assert_uint_eq(nvtx_names(WEIR_NAME_CATEGORY), 2);
  free(recorded);
  free(counted);
}
END_TEST

START_TEST(test_resources_have_the_names_that_they_were_given)
{
  outcome plain = run_edges(WITHOUT, "resources", NULL);
  ck_assert_str_eq(run_edges(WITH, "resources", NULL).out, plain.out);
  ck_assert_str_eq(nvtx_account(scratch("spools")), "name 10:a lock of 0 bytes 1\n"
                                                    "name 5:a thread of 0 bytes 1\n"
                                                    "name 7:a stream of 0 bytes 1\n"
                                                    "name 7:another of 0 bytes 1\n"
                                                    "name 9:a context of 0 bytes 1\n");
}
END_TEST

static const struct edge {
  const char *mode, *account;
} edges[] = {
    {"pops", "range :a 1\n"},
    {"threads", "open :left open 1\nrange :left open 1\nrange :main's 1\n"},
    {"fork", "range :child's 1\nrange :parent's 1\n"},
    {"deep", "range :after 1\nrange :deep 256\n"},
    {"own-choice", ""},
    {"none", ""},
};

START_TEST(test_odd_uses_of_ranges_are_defined)
{
  run_edges(WITH, edges[_i].mode, NULL);
  ck_assert_str_eq(nvtx_account(scratch("spools")), edges[_i].account);
}
END_TEST

START_TEST(test_levels_are_as_without_a_tool)
{
  ck_assert_str_eq(run_edges(WITHOUT, "bare", NULL).out, "-2 -2 -2\n");
  ck_assert_str_eq(run_edges(WITH, "bare", NULL).out, "-2 -2 -2\n");
  ck_assert_str_eq(nvtx_account(scratch("spools")), "range :a 1\n");
}
END_TEST

START_TEST(test_texts_are_cut_between_characters_and_may_be_missing)
{
  run_edges(WITH, "odd-text", NULL);
  const char *text = nvtx_account(scratch("spools"));
  ck_assert_ptr_nonnull(strstr(text, "mark :\xf4\x8f\xbf\xbf 1\n"));
  ck_assert_ptr_nonnull(strstr(text, "mark : 5\n"));
  const char *big = strstr(text, "mark :x");
  ck_assert_ptr_nonnull(big);
  ck_assert_uint_eq(strspn(big + 6, "x"), 1023);
  ck_assert_int_eq(big[6 + 1023], ' ');
}
END_TEST

/* All but the few that share their places with eight others. */
START_TEST(test_a_text_is_written_once_however_many_there_are)
{
  run_edges(WITH, "many-texts", NULL);
  const char *text = nvtx_account(scratch("spools"));
  ck_assert_ptr_nonnull(strstr(text, "range :step 0 2\n"));
  ck_assert_ptr_nonnull(strstr(text, "range :step 1499 2\n"));
  ck_assert_uint_ge(nvtx_range_names(), 1500);
  ck_assert_uint_le(nvtx_range_names(), 1550);
}
END_TEST

/* Of the rest of it nothing is looked at: it is not there. */
START_TEST(test_no_more_of_a_text_is_looked_at_than_is_kept)
{
  run_edges(WITH, "endless-text", NULL);
  const char *text = nvtx_account(scratch("spools"));
  ck_assert_ptr_nonnull(strstr(text, "range :yyyy"));
  ck_assert_ptr_nonnull(strstr(text, "range :zzzz"));
  ck_assert_uint_eq(nvtx_range_names(), 2);
}
END_TEST

START_TEST(test_ranges_too_deep_to_be_recorded_are_counted)
{
  run_edges(WITH, "deep", NULL);
  (void)nvtx_account(scratch("spools"));
  ck_assert_uint_eq(nvtx_deep_ranges(), 5000 - 256);
}
END_TEST

START_TEST(test_nvtx_off_leaves_the_variable_alone)
{
  static const char *const off[] = {"WEIR_NVTX=off", NULL};
  ck_assert_str_eq(run_edges(WITH, "environment", off).out, "none\n");
  run_edges(WITH, "pops", off);
  ck_assert_str_eq(nvtx_account(scratch("spools")), "");
}
END_TEST

START_TEST(test_a_child_without_the_library_does_what_it_did)
{
  outcome o = run_edges(WITH, "exec", NULL);
  ck_assert_str_eq(o.out, "");
  ck_assert_str_eq(o.err, "");
}
END_TEST

/* ---- another tool ---------------------------------------------------------------------------- */

static char *file_text(const char *path)
{
  static char text[256];
  FILE *f = fopen(path, "r");
  text[0] = 0;
  if (!f) return text;
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  (void)fclose(f);
  return text;
}

/* What the tool wrote, which goes. */
static char *tool_saw(const char *path)
{
  char *text = copy_of(file_text(path));
  (void)remove(path);
  return text;
}

START_TEST(test_a_tool_named_before_sees_what_it_would_see_bare)
{
  char library[600], output[600];
  const char *refuses = _i ? "TOOL_REFUSES=1" : NULL;
  (void)snprintf(library, sizeof library, "NVTX_INJECTION64_PATH=%s",
                 built("tests/victims/nvtx/libtool.so"));
  (void)snprintf(output, sizeof output, "TOOL_OUTPUT=%s", scratch("tool.txt"));
  const char *const env[] = {library, output, refuses, NULL};
  const char *const argv[] = {built("tests/victims/nvtx/nests"), "7", "1", "600", NULL};
  outcome plain = run(WITHOUT, argv, env);
  char *bare = tool_saw(scratch("tool.txt"));
  outcome o = run(WITH, argv, env);
  char *chained = tool_saw(scratch("tool.txt"));
  ck_assert_int_eq(plain.status, 0);
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(chained, bare);
  ck_assert_str_ne(chained, "");
  const char *said = nvtx_account(scratch("spools"));
  ck_assert_ptr_nonnull(strstr(said, "range alpha:registered "));
  char *levels = copy_of(run_edges(WITHOUT, "bare", env).out);
  ck_assert_str_eq(run_edges(WITH, "bare", env).out, levels);
  ck_assert_str_eq(levels, _i ? "-2 -2 -2\n" : "0 0 -1\n");
  free(levels);
  free(bare);
  free(chained);
}
END_TEST

START_TEST(test_a_tool_that_is_not_there_is_as_none)
{
  static const char *const env[] = {"NVTX_INJECTION64_PATH=/nonexistent/tool.so", NULL};
  run_edges(WITH, "pops", env);
  ck_assert_str_eq(nvtx_account(scratch("spools")), "range :a 1\n");
}
END_TEST

/* Another tool that is named, and the one that the program, run without us, is to be compared
 * with. */
#define TOOL(name) "NVTX_INJECTION64_PATH=%s/tests/victims/nvtx/lib" name ".so"
static const struct extension_case {
  const char *named, *like; /* formats of variables with the build folder, or "" */
  const char *refuses;      /* or NULL */
  const char *answers;      /* how what the program prints begins */
} extension_cases[] = {
    {"", TOOL("plain-tool"), NULL, "heap 0 region 4\nschema 0 enabled 1\n"},
    {TOOL("no-such"), TOOL("plain-tool"), NULL, "heap 0 region 4\nschema 0 enabled 1\n"},
    {TOOL("plain-tool"), TOOL("plain-tool"), NULL, "heap 0 region 4\nschema 0 enabled 1\n"},
    {TOOL("tool"), TOOL("tool"), "TOOL_REFUSES=1", "heap 0 region 4\nschema 0 enabled 0\n"},
    {TOOL("tool"), TOOL("tool"), NULL, "heap 502 region 3\nschema 702 enabled 1\nheap 507 "},
    {"WEIR_NVTX=off", "", NULL, "heap 0 region 4\nschema 0 enabled 0\n"},
};

static outcome run_extension(enum preload how, const char *tool, const char *refuses)
{
  char variable[600], output[600];
  (void)snprintf(variable, sizeof variable, tool, getenv("WEIR_BUILD"));
  (void)snprintf(output, sizeof output, "TOOL_OUTPUT=%s", scratch("tool.txt"));
  const char *const env[] = {output, *variable ? variable : refuses, refuses, NULL};
  const char *const argv[] = {built("tests/victims/nvtx/extension"), NULL};
  outcome o = run(how, argv, env);
  ck_assert_int_eq(o.status, 0);
  return o;
}

START_TEST(test_nvtxs_extensions_are_the_other_tools)
{
  const struct extension_case *c = &extension_cases[_i];
  outcome plain = run_extension(WITHOUT, c->like, c->refuses);
  char *bare = tool_saw(scratch("tool.txt"));
  outcome o = run_extension(WITH, c->named, c->refuses);
  char *chained = tool_saw(scratch("tool.txt"));
  ck_assert_str_eq(o.out, plain.out);
  ck_assert_str_eq(o.err, plain.err);
  ck_assert_str_eq(nvtx_account(scratch("spools")), strcmp(c->named, "WEIR_NVTX=off")
                                                        ? "name 11:the heap of 256 bytes 2\n"
                                                          "name 12:the region of 0 bytes 2\n"
                                                        : "");
  ck_assert_str_eq(chained, !strcmp(c->named, c->like) ? bare : "");
  ck_assert_msg(!strncmp(o.out, c->answers, strlen(c->answers)), "%s", o.out);
  free(bare);
  free(chained);
}
END_TEST

static Suite *nvtx_suite(void)
{
  Suite *s = suite_create("nvtx");
  TCase *t = tcase_create("nvtx");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_loop_test(t, test_random_nests_are_in_the_spool_as_the_program_counted_them, 0, 20);
  tcase_add_loop_test(t, test_odd_uses_of_ranges_are_defined, 0, sizeof edges / sizeof *edges);
  tcase_add_test(t, test_levels_are_as_without_a_tool);
  tcase_add_test(t, test_texts_are_cut_between_characters_and_may_be_missing);
  tcase_add_test(t, test_a_text_is_written_once_however_many_there_are);
  tcase_add_test(t, test_no_more_of_a_text_is_looked_at_than_is_kept);
  tcase_add_test(t, test_ranges_too_deep_to_be_recorded_are_counted);
  tcase_add_test(t, test_nvtx_off_leaves_the_variable_alone);
  tcase_add_test(t, test_a_child_without_the_library_does_what_it_did);
  tcase_add_loop_test(t, test_a_tool_named_before_sees_what_it_would_see_bare, 0, 2);
  tcase_add_test(t, test_a_tool_that_is_not_there_is_as_none);
  tcase_add_test(t, test_resources_have_the_names_that_they_were_given);
  tcase_add_loop_test(t, test_nvtxs_extensions_are_the_other_tools, 0,
                      sizeof extension_cases / sizeof *extension_cases);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(nvtx_suite());
  int failed;

  srunner_run_all(r, CK_ENV);
  failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
