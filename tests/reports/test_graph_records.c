/* test_graph_records.c: what a spool says of executable graphs may be anything: what makes no sense
 * makes a launch one of which nothing is known, and harms no other. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { GRAPH_NODE = 4, NODES = 12, STEPS = 400 };

typedef struct graph_record {
  uint64_t at, exec, b;
  uint8_t fact, last;
} graph_record;

static void write_graph(graph_record r, const void *nodes, size_t bytes)
{
  const trace_event head = {.start = spool_current()->clock_first.ticks + r.at,
                            .a = r.exec,
                            .b = r.b,
                            .graph_fact = r.fact,
                            .mem = r.last};
  ck_assert(spool_writer_extended(synth_thread(0), WEIR_EV_GRAPH, &head, nodes, bytes));
}

static graph_node_info copy_node(uint64_t node, uint64_t parent, uint64_t bytes)
{
  return (graph_node_info){.node = node,
                           .parent = parent,
                           .bytes = bytes,
                           .type = 1,
                           .copy = WEIR_COPY_HTOD,
                           .mem = WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4,
                           .src_device = WEIR_DEVICE_NONE};
}

static void make_graph(uint64_t at, uint64_t exec, const graph_node_info *nodes, size_t count)
{
  write_graph((graph_record){at, exec, 1, WEIR_GRAPH_MADE, 1}, nodes, count * sizeof(*nodes));
}

static void launch_at(uint64_t at, uint64_t exec)
{
  const trace_event e = {.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch"), .a = exec};
  ck_assert(synth_event(0, at, 1, e));
}

/* Bytes that the launch at a time copied; -1: not known. */
static int64_t copied(const char *trace, int at)
{
  char sql[256];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT CASE WHEN l.content IS NULL THEN -1 ELSE ifnull((SELECT sum(w.bytes *"
                 " w.count) FROM graph_work w WHERE w.content = l.content), 0) END"
                 " FROM graph_launch l JOIN event e ON e.id = l.event WHERE e.start = %d",
                 at);
  return synth_number(trace, sql);
}

static json_t *whole_report(const char *trace)
{
  json_t *report = synth_json(trace);
  ck_assert_ptr_nonnull(report);
  free(synth_text(trace, 100));
  return report;
}

START_TEST(a_graph_that_is_not_all_there_is_not_known)
{
  const graph_node_info n[] = {copy_node(1, 0, 10), copy_node(2, 0, 20)};
  synth_open(synth_dir());
  write_graph((graph_record){1, 1, 0, WEIR_GRAPH_MORE, 1}, n, sizeof(n)); /* of nothing */
  launch_at(10, 1);
  write_graph((graph_record){11, 2, 1, WEIR_GRAPH_MADE, 0}, n, sizeof(n)); /* goes on */
  launch_at(20, 2);
  write_graph((graph_record){21, 3, 1, WEIR_GRAPH_MADE, 0}, n, sizeof(n));
  write_graph((graph_record){21, 3, 1, WEIR_GRAPH_MORE, 1}, n, sizeof(n)); /* with a gap */
  launch_at(30, 3);
  write_graph((graph_record){31, 4, 1, WEIR_GRAPH_MADE, 0}, n, sizeof(n));
  write_graph((graph_record){31, 4, 2, WEIR_GRAPH_MORE, 1}, n, sizeof(n));
  launch_at(40, 4);
  write_graph((graph_record){41, 4, 1, WEIR_GRAPH_MADE, 1}, n, sizeof(n[0]) + 9); /* and a bit */
  launch_at(50, 4);
  launch_at(60, UINT64_MAX);
  const char *t = synth_import_this();
  ck_assert_int_eq(copied(t, 10), -1);
  ck_assert_int_eq(copied(t, 20), -1);
  ck_assert_int_eq(copied(t, 30), -1);
  ck_assert_int_eq(copied(t, 40), 60);
  ck_assert_int_eq(copied(t, 50), 10);
  ck_assert_int_eq(copied(t, 60), -1);
  json_t *report = whole_report(t);
  ck_assert_int_eq(synth_total(report, "graph_launches"), 6);
  ck_assert_int_eq(synth_total(report, "graph_launches_unknown"), 4);
  json_decref(report);
}
END_TEST

/* A file can state anything: a kernel of two graphs that ran more often in each than a sum can
 * count. */
START_TEST(more_kernels_than_can_be_counted_fail_no_report)
{
  const graph_node_info n[] = {{.node = 1, .a = 0x77}, copy_node(2, 0, 10)};
  synth_open(synth_dir());
  ck_assert(synth_extended(0, WEIR_EV_NAME, 0x77, WEIR_NAME_KERNEL, "touch", 5));
  make_graph(1, 1, n, 1);
  make_graph(2, 2, n, 2);
  launch_at(10, 1);
  launch_at(20, 2);
  const char *t = synth_import_this();
  char *text = synth_text(t, 0);
  ck_assert_msg(strstr(text, "  touch          2\n") != NULL, "%s", text);
  free(text);
  synth_change(t, "UPDATE graph_work SET count = 9223372036854775807");
  json_decref(whole_report(t));
}
END_TEST

START_TEST(a_change_of_what_a_graph_has_not_makes_it_unknown_until_it_is_made_again)
{
  const graph_node_info n = copy_node(1, 0, 10), other = copy_node(9, 0, 7);
  static const graph_record changes[] = {{.b = 5, .fact = WEIR_GRAPH_ENABLED, .last = 1},
                                         {.b = 5, .fact = WEIR_GRAPH_DISABLED, .last = 1},
                                         {.b = 5, .fact = WEIR_GRAPH_SET, .last = 1},
                                         {.b = 1, .fact = WEIR_GRAPH_SET, .last = 0},
                                         {.b = 1, .fact = WEIR_GRAPH_UPDATED, .last = 0}};
  enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };
  synth_open(synth_dir());
  for (uint64_t i = 0; i < CHANGES; i++) {
    graph_record r = changes[i];
    r.at = 100 * i + 2, r.exec = 1;
    make_graph(100 * i + 1, 1, &n, 1);
    write_graph(r, &other, r.fact == WEIR_GRAPH_ENABLED ? 0 : sizeof(other));
    launch_at(100 * i + 10, 1);
    make_graph(100 * i + 20, 1, &n, 1);
    launch_at(100 * i + 30, 1);
  }
  write_graph((graph_record){900, 1, 1, 0, 1}, &other, sizeof(other)); /* no facts: left out */
  write_graph((graph_record){901, 1, 1, 200, 1}, &other, sizeof(other));
  launch_at(910, 1);
  const char *t = synth_import_this();
  for (int i = 0; i < CHANGES; i++) {
    ck_assert_int_eq(copied(t, 100 * i + 10), -1);
    ck_assert_int_eq(copied(t, 100 * i + 30), 10);
  }
  ck_assert_int_eq(copied(t, 910), 10);
  json_t *report = whole_report(t);
  const json_t *graphs = json_object_get(report, "graphs"), *g = json_array_get(graphs, 0);
  ck_assert_uint_eq(json_array_size(graphs), 1);
  ck_assert_int_eq(json_integer_value(json_object_get(g, "launches")), 2 * CHANGES + 1);
  ck_assert_int_eq(json_integer_value(json_object_get(g, "unknown")), CHANGES);
  ck_assert_int_eq(json_integer_value(json_object_get(g, "graphs")), 2 * CHANGES);
  ck_assert_int_eq(json_integer_value(json_object_get(g, "updates")), CHANGES);
  ck_assert(json_is_null(json_object_get(g, "captured_in")));
  json_decref(report);
}
END_TEST

START_TEST(nodes_within_themselves_or_each_other_are_counted_once)
{
  graph_node_info n[] = {copy_node(1, 1, 10), copy_node(2, 3, 20), copy_node(3, 2, 40),
                         copy_node(3, 3, 80), copy_node(0, 0, 160)};
  graph_node_info set[] = {copy_node(3, 0, 7), copy_node(3, 3, 1000)};
  synth_open(synth_dir());
  make_graph(1, 1, n, 5);
  launch_at(10, 1);
  n[1].type = GRAPH_NODE; /* what stands behind it is in it, as far as it says so */
  make_graph(11, 1, n, 5);
  write_graph((graph_record){12, 1, 2, WEIR_GRAPH_DISABLED, 1}, NULL, 0);
  launch_at(20, 1);
  set[0].type = GRAPH_NODE;
  write_graph((graph_record){21, 1, 3, WEIR_GRAPH_SET, 1}, set, sizeof(set));
  write_graph((graph_record){22, 1, 2, WEIR_GRAPH_ENABLED, 1}, NULL, 0);
  launch_at(30, 1);
  n[0].type = n[0].copy = n[0].mem = 255;
  make_graph(31, 1, n, 1);
  launch_at(40, 1);
  const char *t = synth_import_this();
  ck_assert_int_eq(copied(t, 10), 310);
  ck_assert_int_eq(copied(t, 20), 170); /* 2 with 3, and that with the other 3 */
  ck_assert_int_eq(copied(t, 30), 1250);
  ck_assert_int_eq(copied(t, 40), 10);
  json_t *report = whole_report(t);
  ck_assert_int_eq(synth_total(report, "graph_launches_unknown"), 0);
  json_decref(report);
}
END_TEST

/* Of a change's own nodes none is in what was there. */
START_TEST(a_child_graph_that_is_set_to_nodes_within_it_takes_none_of_them)
{
  graph_node_info was[] = {copy_node(1, 0, 0), copy_node(2, 1, 100), copy_node(3, 0, 1000)};
  graph_node_info becomes[] = {copy_node(1, 2, 0), copy_node(4, 1, 10), copy_node(5, 4, 1)};
  was[0].type = becomes[0].type = GRAPH_NODE;
  synth_open(synth_dir());
  make_graph(10, 1, was, 2);
  write_graph((graph_record){20, 1, 1, WEIR_GRAPH_SET, 1}, becomes, sizeof becomes);
  launch_at(30, 1);
  make_graph(40, 2, was, 3);
  write_graph((graph_record){50, 2, 1, WEIR_GRAPH_SET, 1}, becomes, sizeof becomes);
  launch_at(60, 2);
  const char *t = synth_import_this();
  ck_assert_int_eq(copied(t, 30), 11);
  ck_assert_int_eq(copied(t, 60), 1011);
}
END_TEST

static uint64_t state;

static uint64_t draw(uint64_t below)
{
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (state >> 33) % below;
}

static void write_random_record(uint64_t at)
{
  graph_node_info n[NODES];
  size_t count = draw(NODES + 1);
  for (size_t i = 0; i < count; i++) {
    n[i] = copy_node(draw(8), draw(8), draw(3) ? draw(100) : UINT64_MAX >> draw(2));
    n[i].type = (uint8_t)(draw(9) ? draw(15) : draw(256));
    n[i].conditional = (uint8_t)draw(3);
    if (!draw(9)) n[i].copy = (uint8_t)draw(256), n[i].device = (uint8_t)draw(256);
  }
  size_t bytes = count * sizeof(n[0]);
  if (bytes && !draw(8)) bytes -= draw(sizeof(n[0]));
  const graph_record r = {at, draw(3), draw(8), (uint8_t)(draw(20) ? draw(7) : draw(256)),
                          draw(6) != 0};
  write_graph(r, n, bytes);
}

START_TEST(any_records_at_all_are_imported_and_reported)
{
  state = (uint64_t)_i;
  synth_open(synth_dir());
  for (uint64_t i = 0; i < STEPS; i++)
    if (draw(3))
      write_random_record(i);
    else
      launch_at(i, draw(4));
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM graph_launch"),
                   synth_number(t, "SELECT count(*) FROM event WHERE kind = 12"));
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM graph_work WHERE count < 1 OR count >"
                                   " (SELECT count(*) FROM graph_node)"),
                   0);
  ck_assert_int_ge(synth_number(t, "SELECT count(*) FROM copy"), 0);
  ck_assert_int_ge(synth_number(t, "SELECT count(*) FROM launch"), 0);
  json_decref(whole_report(t));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("graph records");
  TCase *t = tcase_create("hostile");
  tcase_set_timeout(t, 300);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, a_graph_that_is_not_all_there_is_not_known);
  tcase_add_test(t, more_kernels_than_can_be_counted_fail_no_report);
  tcase_add_test(t, a_change_of_what_a_graph_has_not_makes_it_unknown_until_it_is_made_again);
  tcase_add_test(t, nodes_within_themselves_or_each_other_are_counted_once);
  tcase_add_test(t, a_child_graph_that_is_set_to_nodes_within_it_takes_none_of_them);
  tcase_add_loop_test(t, any_records_at_all_are_imported_and_reported, 0, 20);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
