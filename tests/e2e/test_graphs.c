/* test_graphs.c: what launches of graphs ran is in the totals, whoever made the graphs, and
 * however: graph_caller's own account of it against the report. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#define SEEDS AT_LEVEL(8, 40, 500)

static void compare_totals(const char *account, const char *what)
{
  char name[64];
  unsigned long long count;
  int used, seen = 0;
  json_t *report = json_load_file("report.json", 0, NULL);
  ck_assert_ptr_nonnull(report);
  const json_t *totals = json_object_get(report, "totals");
  for (; sscanf(account, "%63s %llu\n%n", name, &count, &used) == 2; account += used, seen++) {
    long long got = json_integer_value(json_object_get(totals, name));
    ck_assert_msg(got == (long long)count, "%s: %s is %lld, the program counts %llu", what, name,
                  got, count);
  }
  ck_assert_int_gt(seen, 10);
  json_decref(report);
}

static json_t *graphs_of_report(void)
{
  json_t *report = json_load_file("report.json", 0, NULL), *graphs;
  ck_assert_ptr_nonnull(report);
  graphs = json_incref(json_object_get(report, "graphs"));
  json_decref(report);
  return graphs;
}

static long long number_in(const json_t *graph, const char *name)
{
  return json_integer_value(json_object_get(graph, name));
}

/* Lists by place leave nothing out. */
static void compare_places(const char *what)
{
  static const char *const names[][2] = {{"launches", "graph_launches"},
                                         {"unknown", "graph_launches_unknown"},
                                         {"kernels", "graph_kernels"},
                                         {"copies", "graph_copies"},
                                         {"copy_bytes", "graph_copy_bytes"},
                                         {"memsets", "graph_memsets"},
                                         {"may_have_run", "graph_conditional_nodes"}};
  json_t *report = json_load_file("report.json", 0, NULL);
  const json_t *graphs = json_object_get(report, "graphs"), *g;
  size_t at;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    long long sum = 0, whole = number_in(json_object_get(report, "totals"), names[i][1]);
    json_array_foreach(graphs, at, g) sum += number_in(g, names[i][0]);
    ck_assert_msg(sum == whole, "%s: %s are %lld by place, %lld in all", what, names[i][0], sum,
                  whole);
  }
  json_decref(report);
}

/* Runs a mode of the caller and holds its account against the trace. */
static void try_caller(const char *caller, const char *mode)
{
  outcome *o =
      sh_status(0, "$WEIR run --force -o t.db --sim -- $BUILD/tests/e2e/%s %s", caller, mode);
  (void)sh_status(0, "$WEIR report --format json t.db > report.json");
  compare_totals(o->out, mode);
  compare_places(mode);
}

static void try_mode(const char *mode)
{
  try_caller("graph_caller", mode);
}

START_TEST(a_loop_of_captured_graphs_has_moved_what_its_launches_moved)
{
  try_mode("loop");
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM copy WHERE NOT captured"), 450LL * 262144);
  ck_assert_int_eq(ask("t.db", "SELECT sum(count) FROM copy WHERE by_graph"), 450);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy WHERE captured"), 150);
  ck_assert_int_eq(ask("t.db", "SELECT count(DISTINCT id) FROM copy WHERE by_graph"), 450);
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY"),
                   450LL * 262144);
}
END_TEST

/* The loop captures, makes and launches in lines of their own, one behind the other. */
START_TEST(launches_of_graphs_have_the_places_of_launch_and_of_capture)
{
  int captured = 0, made = 0, launched = 0;
  try_mode("loop");
  json_t *graphs = graphs_of_report();
  ck_assert_uint_eq(json_array_size(graphs), 1);
  const json_t *g = json_array_get(graphs, 0);
  ck_assert_int_eq(number_in(g, "launches"), 450);
  ck_assert_int_eq(number_in(g, "graphs"), 150);
  ck_assert_int_eq(number_in(g, "updates") + number_in(g, "unknown"), 0);
  ck_assert_int_eq(number_in(g, "copies"), 450);
  ck_assert_int_eq(number_in(g, "copy_bytes"), 450LL * 262144);
  const char *at = json_string_value(json_object_get(g, "captured_in"));
  ck_assert_ptr_nonnull(at);
  ck_assert_msg(sscanf(at, "run_loop  graph_caller.c:%d", &captured) == 1, "%s", at);
  at = json_string_value(json_object_get(g, "made_in"));
  ck_assert_msg(sscanf(at, "run_loop  graph_caller.c:%d", &made) == 1, "%s", at);
  at = json_string_value(json_object_get(g, "launched_in"));
  ck_assert_msg(sscanf(at, "run_loop  graph_caller.c:%d", &launched) == 1, "%s", at);
  ck_assert_int_gt(made, captured);
  ck_assert_int_gt(launched, made);
  json_decref(graphs);
  ck_assert_ptr_nonnull(strstr(sh_status(0, "$WEIR report t.db")->out, "captured or made in"));
}
END_TEST

START_TEST(a_graph_made_node_by_node_and_its_clone_are_counted_at_each_launch)
{
  try_mode("explicit");
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM copy WHERE direction = 'host_to_device'"),
                   6LL << 20);
  ck_assert_int_eq(ask("t.db", "SELECT sum(count) FROM launch WHERE kernel LIKE '%victim_touch%'"),
                   12);
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM memset WHERE by_graph"), 6 * (4096 + 8));
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET"),
                   6 * (4096 + 8));
  ck_assert_int_eq(ask("t.db", "SELECT sum(copyCount) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE"
                               " copyKind = 1 AND srcKind = 1 AND dstKind = 2"),
                   6);
  ck_assert_int_eq(ask("t.db", "SELECT sum(w.count) FROM graph_launch l JOIN graph_work w ON"
                               " w.content = l.content JOIN access_set s ON s.number = w.access"
                               " JOIN access_word a ON a.number = s.number JOIN block b ON"
                               " a.address >= b.pointer AND a.address < b.pointer + b.bytes"
                               " WHERE w.type = 0 AND s.words = 1 AND b.mem = 3"),
                   12);
}
END_TEST

/* A block a launch, and the two buffers. */
START_TEST(what_nodes_allocate_is_counted_at_each_launch)
{
  try_mode("memory");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block b JOIN call c ON c.id = b.alloc AND"
                               " c.id = b.free WHERE c.function LIKE 'cu%GraphLaunch%' AND"
                               " b.bytes = 1 << 20 AND b.mem = 3 AND b.device = 0 AND b.how = 5"),
                   5);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block WHERE mem = 3"), 7);
}
END_TEST

/* Whoever frees them: the graph itself, its next launch, another graph, cudaFreeAsync, cudaFree. */
START_TEST(blocks_of_graphs_are_live_until_anything_frees_them)
{
  char mode[32];
  (void)snprintf(mode, sizeof(mode), "blocks %d", _i);
  try_mode(mode);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block WHERE how IN (2, 3, 4)"), 0);
}
END_TEST

START_TEST(the_body_of_a_conditional_node_is_in_no_total_and_the_report_says_so)
{
  try_mode("condition");
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM memset WHERE NOT conditional"), 4 * 512);
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM memset WHERE conditional"), 4 * 4096);
  ck_assert_int_eq(ask("t.db", "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMSET"), 4 * 512);
  json_t *graphs = graphs_of_report();
  ck_assert_int_eq(number_in(json_array_get(graphs, 0), "may_have_run"), 4);
  ck_assert_int_eq(number_in(json_array_get(graphs, 0), "memsets"), 4);
  json_decref(graphs);
  outcome *o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "may have run"));
  ck_assert_ptr_nonnull(strstr(o->out, "4 graph nodes in bodies of conditional nodes"));
}
END_TEST

START_TEST(a_large_graph_is_counted_to_its_last_node)
{
  try_mode("large 20000");
  ck_assert_int_eq(ask("t.db", "SELECT nodes FROM graph_change"), 20000);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM graph_work"), 7);
}
END_TEST

START_TEST(random_graphs_changed_and_launched_in_any_order_are_counted_exactly)
{
  char mode[32];
  (void)snprintf(mode, sizeof(mode), "random %d", _i);
  try_mode(mode);
}
END_TEST

/* Its functions are then seen as the driver's that they call. */
START_TEST(a_program_with_the_runtime_linked_in_has_the_same_account)
{
  static const char *const modes[] = {"loop",      "explicit", "memory",
                                      "condition", "blocks 3", "random 5"};
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
    try_caller("graph_caller_static", modes[i]);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM call WHERE layer = 'runtime'"), 0);
    ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM call WHERE function LIKE 'cuGraphLaunch%'"),
                     0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("graphs");
  TCase *t = tcase_create("launched");
  tcase_set_timeout(t, 600);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_loop_of_captured_graphs_has_moved_what_its_launches_moved);
  tcase_add_test(t, launches_of_graphs_have_the_places_of_launch_and_of_capture);
  tcase_add_test(t, a_graph_made_node_by_node_and_its_clone_are_counted_at_each_launch);
  tcase_add_test(t, what_nodes_allocate_is_counted_at_each_launch);
  tcase_add_loop_test(t, blocks_of_graphs_are_live_until_anything_frees_them, 0, SEEDS);
  tcase_add_test(t, the_body_of_a_conditional_node_is_in_no_total_and_the_report_says_so);
  tcase_add_test(t, a_large_graph_is_counted_to_its_last_node);
  tcase_add_loop_test(t, random_graphs_changed_and_launched_in_any_order_are_counted_exactly, 0,
                      SEEDS);
  tcase_add_test(t, a_program_with_the_runtime_linked_in_has_the_same_account);
  suite_add_tcase(s, t);
  return run_suite(s);
}
