/* test_access.c: access sets become rows: their words, the sets of launches by their templates, those
 * of a graph's kernels; a set whose record was lost is none of no words. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { EXEC = 0x77, KERNEL = 0x1000 };

static void write_set(int thread, uint64_t number, const uint64_t *words, size_t count)
{
  access_word of[513] = {0};
  for (size_t i = 0; words && i < count; i++)
    of[i] = (access_word){.word = words[i], .parameter = (uint16_t)i, .part = 1};
  ck_assert(synth_extended(thread, WEIR_EV_ACCESS, number, 0, of, count * sizeof *of));
}

static void launch(int thread, uint64_t at, uint32_t set)
{
  trace_event e = {.kind = WEIR_EV_LAUNCH,
                   .api = synth_api("cuLaunchKernel"),
                   .a = KERNEL,
                   .detail = (uint8_t)set,
                   .mem = (uint8_t)(set >> 8),
                   .src_device = (uint8_t)(set >> 16 ^ WEIR_DEVICE_NONE)};
  ck_assert(synth_event(thread, at, 5, e));
}

static graph_node_info kernel_node(uint64_t node, uint32_t set)
{
  return (graph_node_info){.node = node,
                           .a = KERNEL,
                           .copy = (uint8_t)set,
                           .mem = (uint8_t)(set >> 8),
                           .src_device = (uint8_t)(set >> 16 ^ WEIR_DEVICE_NONE)};
}

START_TEST(a_launch_has_the_words_of_its_set_and_nothing_else_of_it)
{
  const uint64_t one[] = {0x7000, 0x9008}, large = UINT64_C(0xfff0000000000008);
  synth_open(synth_dir());
  write_set(0, 1, one, 2);
  write_set(0, 0x10203, &large, 1);
  write_set(0, 3, NULL, 0);
  launch(0, 100, 1);
  launch(1, 200, 0x10203); /* written by another thread */
  launch(0, 300, 3);
  launch(0, 400, 0);
  launch(0, 500, 1);
  const char *t = synth_import_this();
  static const char sets[] = "SELECT count(*) FROM event e JOIN template_access x ON x.template ="
                             " (SELECT template FROM event_row r WHERE r.id = e.id) JOIN access_set"
                             " s ON s.number = x.number AND s.process = e.process";
  ck_assert_int_eq(synth_number(t, sets), 4);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM template WHERE kind = 6"), 4);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM template WHERE kind = 6 AND (copy OR mem"
                                   " OR src_mem OR src_device NOT NULL)"),
                   0);
  ck_assert_int_eq(synth_number(t, "SELECT sum(address) FROM access_word WHERE number = 1"),
                   0x7000 + 0x9008);
  ck_assert_int_eq(synth_number(t, "SELECT address FROM access_word WHERE number = 66051"),
                   (int64_t)large);
  ck_assert_int_eq(synth_number(t, "SELECT words FROM access_set WHERE number = 3"), 0);
}
END_TEST

START_TEST(kernels_of_a_graph_that_differ_in_their_sets_are_counted_apart)
{
  const uint64_t word = 0x7000;
  const graph_node_info nodes[] = {kernel_node(1, 1), kernel_node(2, 2), kernel_node(3, 1),
                                   kernel_node(4, 0)};
  trace_event run = {.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch"), .a = EXEC};
  synth_open(synth_dir());
  write_set(0, 1, &word, 1);
  write_set(0, 2, NULL, 0);
  ck_assert(synth_graph(0, 100, EXEC, nodes, 4));
  ck_assert(synth_event(0, 200, 5, run));
  const char *t = synth_import_this();
  static const char *const of[] = {"access = 1", "access = 2", "access IS NULL"};
  static const int counts[] = {2, 1, 1};
  for (int i = 0; i < 3; i++) {
    char ask[128];
    (void)snprintf(ask, sizeof ask, "SELECT sum(count) FROM graph_work WHERE kernel = 4096 AND %s",
                   of[i]);
    ck_assert_int_eq(synth_number(t, ask), counts[i]);
  }
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM graph_node WHERE access = 1 AND NOT copy"
                                   " AND NOT mem AND NOT src_mem AND src_device IS NULL"),
                   2);
}
END_TEST

static graph_node_info memory_node(uint64_t node, unsigned type, uint64_t to, uint64_t from)
{
  return (graph_node_info){.node = node,
                           .a = to,
                           .b = from,
                           .bytes = 64,
                           .type = (uint8_t)type,
                           .src_device = WEIR_DEVICE_NONE};
}

/* The second word of a memset is its value. */
START_TEST(copies_and_memsets_of_a_graph_have_their_addresses)
{
  const graph_node_info nodes[] = {
      memory_node(1, 1, 0x7000, 0x8000), memory_node(2, 1, 0x7000, 0x8000),
      memory_node(3, 1, 0x7000, 0x9000), memory_node(4, 2, 0xa000, 255)};
  trace_event run = {.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch"), .a = EXEC};
  synth_open(synth_dir());
  ck_assert(synth_graph(0, 100, EXEC, nodes, 4));
  ck_assert(synth_event(0, 200, 5, run));
  const char *t = synth_import_this();
  static const char *const of[] = {"target = 0x7000 AND source = 0x8000",
                                   "target = 0x7000 AND source = 0x9000",
                                   "type = 2 AND target = 0xa000 AND source IS NULL"};
  static const int counts[] = {2, 1, 1};
  for (int i = 0; i < 3; i++) {
    char ask[128];
    (void)snprintf(ask, sizeof ask, "SELECT sum(count) FROM graph_work WHERE %s", of[i]);
    ck_assert_int_eq(synth_number(t, ask), counts[i]);
  }
}
END_TEST

START_TEST(damaged_sets_are_left_out)
{
  static const uint64_t words[513] = {1};
  synth_open(synth_dir());
  write_set(0, 0, words, 1);
  write_set(0, UINT64_C(1) << 24, words, 1);
  write_set(0, 5, words, 513);
  launch(0, 100, 5);
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM access_set"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM access_word"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT number FROM template_access"), 5);
}
END_TEST

START_TEST(launches_of_which_nothing_is_known_are_counted)
{
  synth_open(synth_dir());
  write_set(0, 1, NULL, 0);
  for (uint64_t i = 0; i < 12; i++)
    launch(0, 100 + i * 100, i < 5 ? 0 : i < 7 ? 2 : 1); /* the set 2 is lost */
  const char *t = synth_import_this();
  json_t *report = synth_json(t);
  ck_assert_int_eq(synth_total(report, "launches"), 12);
  ck_assert_int_eq(synth_total(report, "launches_unread"), 7);
  json_decref(report);
  char *text = synth_text(t, 200);
  ck_assert_msg(strstr(text, "7 kernel launches of which it is not known") != NULL, "%s", text);
  free(text);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("reports/access");
  TCase *c = tcase_create("sets");
  tcase_add_checked_fixture(c, NULL, synth_clean);
  tcase_add_test(c, a_launch_has_the_words_of_its_set_and_nothing_else_of_it);
  tcase_add_test(c, kernels_of_a_graph_that_differ_in_their_sets_are_counted_apart);
  tcase_add_test(c, copies_and_memsets_of_a_graph_have_their_addresses);
  tcase_add_test(c, damaged_sets_are_left_out);
  tcase_add_test(c, launches_of_which_nothing_is_known_are_counted);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
