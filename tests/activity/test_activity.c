/* test_activity.c: device times by CUPTI, against the software device's. The program is never to
 * notice: every test compares what it prints and how it ends with the same program without Weir. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/tools/command.h"

#define BARE   "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/activity/"
#define RUN    "$WEIR run --sim --force -o t.db --device-times="
#define WORKER "-- $BUILD/tests/activity/"

#define ONE(query)  ask("t.db", query)
#define FACTS(what) ONE("SELECT count(*) FROM device_fact WHERE fact = '" what "'")

/* Runs `worker words` with and without Weir, whose stderr may have lines of `weir` only. */
static void run_both(const char *how, const char *worker, const char *words)
{
  static outcome bare;
  bare = *sh(BARE "%s %s", worker, words);
  const outcome *under = sh(RUN "%s " WORKER "%s %s", how, worker, words);
  ck_assert_str_eq(under->out, bare.out);
  ck_assert_int_eq(under->status, bare.status);
}

START_TEST(every_copy_and_memset_has_its_time_on_the_device)
{
  run_both("copies", "worker", "copies 100");
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 200);
  ck_assert_int_eq(ONE("SELECT count(*) FROM memset WHERE device_ns > 0"), 100);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work WHERE event IS NOT NULL"), 300);
  /* each is of its own call: on one stream they ran in the order of the calls, to the ms that two
   * readings of the clocks agree to wherever the thread is interrupted */
  ck_assert_int_eq(ONE("SELECT count(*) FROM (SELECT start - lag(start) OVER (ORDER BY event) AS n"
                       " FROM device_work) WHERE n < -1000000"),
                   0);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work d JOIN event e ON e.id = d.event"
                       " WHERE d.bytes <> e.bytes OR (d.kind = 1) <> (e.kind = 3)"),
                   0);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work d JOIN copy c ON c.id = d.event"
                       " JOIN copy_direction x ON x.id = d.copy WHERE x.name <> c.direction"),
                   0);
  ck_assert_int_eq(FACTS("observed"), 1);
  ck_assert_int_eq(FACTS("ended"), 1);
}
END_TEST

/* A program that brings its own, as PyTorch's wheels do. */
START_TEST(a_device_s_own_cupti_is_used_whatever_the_program_brings)
{
  run_both("copies", "worker", "load $BUILD/tests/activity/other/libcupti.so.13 copies 5");
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 10);
}
END_TEST

START_TEST(threads_get_their_own)
{
  run_both("copies", "worker", "threads 200");
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 800);
  ck_assert_int_eq(ONE("SELECT count(*) FROM (SELECT event FROM device_work GROUP BY event"
                       " HAVING count(*) > 1)"),
                   0);
}
END_TEST

START_TEST(a_graph_s_nodes_are_work_of_its_launch)
{
  run_both("copies", "worker", "graphs 5");
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work WHERE graph_node IS NOT NULL"), 15);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work d JOIN call c ON c.id = d.event"
                       " WHERE c.function = 'cuGraphLaunch'"),
                   15);
  ck_assert_int_eq(ONE("SELECT count(DISTINCT event) FROM device_work"), 5);
  ck_assert_int_eq(ONE("SELECT count(DISTINCT graph_node) FROM device_work"), 3);
  ck_assert_int_eq(ONE("SELECT sum(copyCount) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN device_work d"
                       " ON d.event = m.correlationId AND d.start = m.start AND d.kind = 1"
                       " WHERE m.graphNodeId = d.graph_node AND m.bytes = d.bytes"),
                   10);
  ck_assert_int_eq(ONE("SELECT count(graphNodeId) FROM CUPTI_ACTIVITY_KIND_MEMSET"), 5);
}
END_TEST

START_TEST(all_has_kernels_too)
{
  sh_status(0, RUN "all -- $BUILD/examples/stencil");
  long long launches = ONE("SELECT count(*) FROM launch WHERE status = 0");
  ck_assert_int_gt(launches, 0);
  ck_assert_int_eq(ONE("SELECT count(*) FROM launch WHERE device_ns > 0"), launches);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work WHERE kind = 3"), launches);
  ck_assert_int_eq(ONE("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN launch l"
                       " ON l.id = k.correlationId JOIN StringIds s ON s.id = k.mangledName"
                       " WHERE k.start = l.device_start_ns AND k.gridY = l.grid_y"
                       " AND s.value = l.kernel"),
                   launches);
  /* listed with their names, grids and times */
  outcome *o =
      sh_status(0, "$WEIR trace --kind launch -f jsonl t.db | grep '\"kernel\":\"relax\"' |"
                   " grep '\"grid_x\":' | grep -o '\"device_ns\":[0-9]*' | cut -d: -f2 |"
                   " awk '{ n++; ns += $1 } END { print n, ns }'");
  long long count = 0, ns = 0;
  ck_assert_int_eq(sscanf(o->out, "%lld %lld", &count, &ns), 2);
  ck_assert_int_eq(count, launches);
  ck_assert_int_eq(ns, ONE("SELECT sum(device_ns) FROM launch"));
  o = sh_status(0, "$WEIR trace --kind launch t.db | grep -c 'device 0 for '");
  ck_assert_int_eq(atoll(o->out), launches);
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "copies and kernels, CUPTI"));
  ck_assert_ptr_nonnull(strstr(o->out, "kernels"));
}
END_TEST

/* Nothing of CUPTI is there before the first context, or at all when nobody has asked. */
START_TEST(cupti_is_opened_when_it_is_needed)
{
  outcome *o = sh_status(0, RUN "copies " WORKER "worker maps copies 1 maps");
  ck_assert_str_eq(o->out, "cupti: not mapped\ncopies: 1 0\ncupti: mapped\n");
  run_both("off", "worker", "copies 3 maps");
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work"), 0);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_fact"), 0);
}
END_TEST

START_TEST(a_forked_child_ends_as_ever)
{
  run_both("all", "worker", "copies 3 fork copies 3");
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_fact WHERE fact = 'ended'"), 1);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 12);
}
END_TEST

START_TEST(a_program_that_leaves_its_work_behind_ends_as_ever)
{
  run_both("all", "worker", "leave 200 exit 3");
  ck_assert_int_eq(FACTS("ended"), 1);
}
END_TEST

START_TEST(a_program_whose_main_thread_leaves_ends_as_ever)
{
  run_both("all", "worker", "last 50");
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 50);
  ck_assert_int_eq(FACTS("ended"), 1);
}
END_TEST

START_TEST(threads_that_fill_the_staging_ring_go_when_there_is_nothing_to_fill)
{
  ck_assert_int_eq(setenv("WEIR_STAGING", "on", 1), 0);
  run_both("off", "worker", "large 2 await-alone large 2 await-alone");
  (void)unsetenv("WEIR_STAGING");
}
END_TEST

/* No handler of atexit() runs; a vfork()ed child's end, and an exec that fails, end nothing. */
static const struct {
  const char *words;
  int copies, ended;
} ends[] = {{"copies 100 _exit 7", 200, 1},
            {"copies 100 _Exit 7", 200, 1},
            {"copies 100 quick_exit 7", 200, 1},
            {"copies 100 exec", 200, 0},
            {"copies 2 vfork copies 3 _exit 7", 10, 1}};

START_TEST(an_end_without_handlers_loses_no_time)
{
  run_both("all", "worker", ends[_i].words);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy"), ends[_i].copies);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), ends[_i].copies);
  ck_assert_int_eq(FACTS("ended"), ends[_i].ended);
}
END_TEST

/* A signal's end may cost times, which are counted, and no report advises what was done. */
START_TEST(an_end_by_a_signal_has_its_losses_counted)
{
  run_both("all", "worker", "copies 100 kill");
  long long none = ONE("SELECT count(*) FROM copy WHERE device_ns IS NULL") +
                   ONE("SELECT count(*) FROM memset WHERE device_ns IS NULL");
  outcome *o = sh_status(0, "$WEIR report -f json t.db | grep -o '\"lost_calls\": *[0-9]*'");
  ck_assert_int_eq(atoll(strchr(o->out, ':') + 1), none);
  sh_status(1, "for r in summary devices waits transfers findings; do $WEIR report $r t.db; done |"
               " grep -e '--device-times'");
}
END_TEST

/* The loader ends a program for which it finds no memory of a thread's. */
START_TEST(a_program_without_room_for_more_memory_lives)
{
  run_both("all --stacks=off", "worker", "device limit there 3");
  sh_status(1, "readelf -rW $BUILD/lib/sim/libcupti.so.13 | grep DTPMOD");
}
END_TEST

/* What WEIR_SIM_CUPTI says; what a trace must have then. */
static const struct {
  const char *fault, *query;
} faults[] = {
    {"zero-times", "SELECT count(*) = 6 FROM copy WHERE device_ns IS NOT NULL"},
    {"reversed-times", "SELECT sum(count) >= 9 FROM device_fact WHERE fact = 'untimed'"},
    {"lost-device-syncs", "SELECT count(*) = 6 FROM copy WHERE device_ns IS NOT NULL"},
    {"finalize-crashes", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'ended'"},
    {"version:24,null-buffer-crashes", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'ended'"},
    {"subscribed", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'unavailable'"},
    {"enable:35", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'unavailable'"},
    {"version:16", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'unavailable'"},
    {"drop:3", "SELECT sum(count) >= 3 FROM device_fact WHERE fact = 'dropped'"},
    {"version:130000,disable-hangs",
     "SELECT count(*) = 1 FROM device_fact WHERE fact = 'observed' AND text LIKE '%no kernels%'"},
    {"flush-hangs", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'incomplete'"},
    /* the gates of library.c, at their edges */
    {"version:17", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'unavailable'"},
    {"version:18,null-buffer-crashes", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'ended'"},
    {"version:26,null-buffer-crashes", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'ended'"},
    {"version:27", "SELECT count(*) = 6 FROM copy WHERE device_ns IS NOT NULL"},
    {"version:130001", "SELECT text LIKE 'copies and kernels%' AND text NOT LIKE '%beside%'"
                       " FROM device_fact WHERE fact = 'observed'"},
    {"version:130101", "SELECT text NOT LIKE '%beside%' FROM device_fact WHERE fact = 'observed'"},
    {"version:130200", "SELECT text LIKE '%beside%' FROM device_fact WHERE fact = 'observed'"},
    /* one of several subscribers meets the same */
    {"version:130200,zero-times", "SELECT count(*) = 6 FROM copy WHERE device_ns IS NOT NULL"},
    {"version:130300,reversed-times",
     "SELECT sum(count) >= 9 FROM device_fact WHERE fact = 'untimed'"},
    {"version:130300,subscribed",
     "SELECT count(*) = 1 FROM device_fact WHERE fact = 'unavailable'"},
    {"version:130300,enable:35", "SELECT count(*) = 1 FROM device_fact WHERE fact = 'unavailable'"},
    {"version:130300,drop:3", "SELECT sum(count) >= 3 FROM device_fact WHERE fact = 'dropped'"},
    {"version:130300,disable-hangs",
     "SELECT count(*) = 1 FROM device_fact WHERE fact = 'incomplete'"},
};

START_TEST(no_fault_of_cupti_is_the_program_s)
{
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", faults[_i].fault, 1), 0);
  run_both("all", "worker", "copies 3 fork exit 4");
  (void)unsetenv("WEIR_SIM_CUPTI");
  ck_assert_msg(ONE("SELECT count(*) FROM device_fact") > 0, "%s", faults[_i].fault);
  ck_assert_msg(ask("t.db", faults[_i].query) == 1, "%s", faults[_i].fault);
}
END_TEST

/* A trace that is being made may have no tables yet, or be locked: then -1. */
static long long ask_early(const char *query)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  long long answer = -1;
  if (sqlite3_open_v2("t.db", &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
      sqlite3_prepare_v2(db, query, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    answer = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return answer;
}

/* Waits until the trace, which is being written, answers with `least` or more. */
static void await_trace(const char *query, long long least)
{
  while (ask_early(query) < least)
    (void)usleep(20000);
}

static void let_go(const char *fifo)
{
  (void)close(open(fifo, O_WRONLY));
}

/* From 13.2 on ours is one of several until then; CUPTI may hold that against the program. */
static const struct {
  const char *worker, *cupti;
} clients_alone[] = {{"worker", ""},
                     {"worker_linked", ""},
                     {"worker", "version:130200"},
                     {"worker_linked", "version:130300"},
                     {"worker", "version:130300,sharing-stays"}};

/* The program as a client that is alone: it gets what it gets without Weir, and the
 * trace says from when to when ours was away. */
START_TEST(a_client_in_the_program_gets_what_it_would_get)
{
  const char *worker = clients_alone[_i].worker;
  static outcome bare;
  int status;
  ck_assert_int_eq(mkfifo("gone", 0600), 0);
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", clients_alone[_i].cupti, 1), 0);
  bare = *sh_status(0, BARE "%s copies 5 begin-client copies 7 end-client copies 3", worker);
  pid_t pid = start(-1, -1,
                    "exec " RUN "copies " WORKER
                    "%s copies 5 begin-client copies 7 end-client await gone copies 3 >out",
                    worker);
  (void)unsetenv("WEIR_SIM_CUPTI");
  await_trace("SELECT count(*) FROM device_fact WHERE fact = 'observed'", 2);
  let_go("gone");
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_str_eq(sh_status(0, "cat out")->out, bare.out);
  ck_assert_int_eq(FACTS("yielded"), 1);
  ck_assert_int_eq(FACTS("observed"), 2);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy"), 30);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 16);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns IS NULL AND start_ns BETWEEN"
                       " (SELECT time FROM device_fact WHERE fact = 'yielded') AND"
                       " (SELECT max(time) FROM device_fact WHERE fact = 'observed')"),
                   14);
  outcome *o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "the program used CUPTI itself"));
}
END_TEST

/* Also by a thread of CUPTI's; whoever its client is. */
START_TEST(memory_that_cupti_takes_for_itself_is_not_the_program_s)
{
  static const char *const modes[] = {"observe", "relaxed"};
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", "allocates", 1), 0);
  ck_assert_int_eq(setenv("WEIR_SIM_COUNTS", "counts", 1), 0);
  for (int ours = 0; ours < 2; ours++) {
    sh_status(0, RUN "%s --mode=%s " WORKER "worker copies 3 begin-client copies 1 end-client",
              ours ? "copies" : "off", modes[_i]);
    /* its own: 4 of 3.2 MB */
    sh_status(0, "awk '$1 == \"cuMemAlloc_v2\" && $2 >= 5 { n++ } END { exit n != 1 }' counts");
    ck_assert_int_eq(ONE("SELECT count(*) FROM allocation"), 1);
    ck_assert_int_eq(ONE("SELECT max(bytes) FROM allocation"), 4096);
    ck_assert_int_eq(ONE("SELECT count(*) FROM call WHERE function = 'cuCtxSetCurrent'"), 3);
  }
  (void)unsetenv("WEIR_SIM_CUPTI");
  (void)unsetenv("WEIR_SIM_COUNTS");
}
END_TEST

/* Of 13.2 and of 13.3, which reads records by subscriber; and before the first context. */
static const struct {
  const char *cupti, *worker, *words;
} clients_beside[] = {
    {"version:130200", "worker", "copies 5 begin-beside copies 7 end-beside copies 3"},
    {"version:130300", "worker", "copies 5 begin-beside copies 7 end-beside copies 3"},
    {"version:130300", "worker_linked", "copies 5 begin-beside copies 7 end-beside copies 3"},
    {"version:130300", "worker", "begin-beside copies 12 end-beside copies 3"},
    {"version:130300,sharing-stays", "worker_linked", "begin-beside copies 15 end-beside"}};

/* Both get all: the program what it would get, the trace a time for each, and no gap. */
START_TEST(a_client_that_allows_others_and_ours_both_get_all)
{
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", clients_beside[_i].cupti, 1), 0);
  run_both("copies", clients_beside[_i].worker, clients_beside[_i].words);
  (void)unsetenv("WEIR_SIM_CUPTI");
  ck_assert_int_eq(FACTS("yielded"), 0);
  ck_assert_int_eq(FACTS("observed"), 1);
  ck_assert_int_eq(FACTS("ended"), 1);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 30);
  ck_assert_int_eq(ONE("SELECT count(*) FROM memset WHERE device_ns > 0"), 15);
}
END_TEST

/* Before 13.2 such a client has the place alone, as any other. */
START_TEST(before_13_2_who_allows_others_is_alone)
{
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", "version:130101", 1), 0);
  outcome *o = sh(RUN "copies " WORKER "worker copies 5 begin-beside copies 7");
  (void)unsetenv("WEIR_SIM_CUPTI");
  ck_assert_ptr_nonnull(strstr(o->out, "client begins beside: 0 0"));
  ck_assert_int_eq(FACTS("yielded"), 1);
  ck_assert_int_eq(ONE("SELECT count(*) FROM copy WHERE device_ns > 0"), 10);
}
END_TEST

/* What only sets something does not go with several either: CUPTI would refuse it. */
START_TEST(a_client_that_sets_a_clock_first_is_not_refused)
{
  static const char *const versions[] = {"", "version:130300"};
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", versions[_i], 1), 0);
  run_both("copies", "worker", "copies 2 set-clock begin-client copies 3 end-client");
  run_both("copies", "worker_linked", "set-clock copies 1 begin-client copies 3 end-client");
  (void)unsetenv("WEIR_SIM_CUPTI");
  ck_assert_int_eq(FACTS("yielded"), 1);
}
END_TEST

/* Before 13.1 Update 1 the numbers of graphs' work are wrong after the first session: it has times,
 * and is of no call. */
START_TEST(work_of_graphs_in_a_later_session_is_of_the_right_launch_or_none)
{
  static const struct {
    const char *cupti;
    int of_launches;
  } versions[] = {{"version:130100", 6}, {"version:130101", 15}};
  int status;
  ck_assert_int_eq(mkfifo("gone", 0600), 0);
  ck_assert_int_eq(setenv("WEIR_SIM_CUPTI", versions[_i].cupti, 1), 0);
  pid_t pid = start(-1, -1,
                    "exec " RUN "copies " WORKER
                    "worker graphs 2 begin-client end-client await gone graphs 3 >out");
  (void)unsetenv("WEIR_SIM_CUPTI");
  await_trace("SELECT count(*) FROM device_fact WHERE fact = 'observed'", 2);
  let_go("gone");
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work WHERE graph_node IS NOT NULL"), 15);
  ck_assert_int_eq(ONE("SELECT count(event) FROM device_work WHERE graph_node IS NOT NULL"),
                   versions[_i].of_launches);
}
END_TEST

/* It has set its functions once, and only enables the second time. */
START_TEST(a_client_that_comes_again_gets_its_records)
{
  run_both("copies", "worker", "begin-client copies 2 end-client again copies 1 again");
  run_both("copies", "worker_linked", "copies 2 begin-client copies 2 end-client again finalize");
}
END_TEST

START_TEST(a_tool_that_is_injected_has_the_place)
{
  outcome *o = sh_status(0, "CUDA_INJECTION64_PATH=/no/such/tool.so " RUN "copies " WORKER
                            "worker copies 2");
  ck_assert_ptr_nonnull(strstr(o->err, "CUDA_INJECTION64_PATH"));
  ck_assert_int_eq(FACTS("unavailable"), 1);
  o = sh_status(0,
                "NVTX_INJECTION64_PATH=/x/libcupti.so.13 " RUN "copies " WORKER "worker copies 2");
  ck_assert_ptr_nonnull(strstr(o->err, "NVTX_INJECTION64_PATH"));
  ck_assert_int_eq(ONE("SELECT count(*) FROM device_work"), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("activity");
  TCase *t = tcase_create("activity");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, every_copy_and_memset_has_its_time_on_the_device);
  tcase_add_test(t, a_device_s_own_cupti_is_used_whatever_the_program_brings);
  tcase_add_test(t, threads_get_their_own);
  tcase_add_test(t, a_graph_s_nodes_are_work_of_its_launch);
  tcase_add_test(t, all_has_kernels_too);
  tcase_add_test(t, cupti_is_opened_when_it_is_needed);
  tcase_add_test(t, a_forked_child_ends_as_ever);
  tcase_add_test(t, a_program_that_leaves_its_work_behind_ends_as_ever);
  tcase_add_test(t, a_program_whose_main_thread_leaves_ends_as_ever);
  tcase_add_test(t, threads_that_fill_the_staging_ring_go_when_there_is_nothing_to_fill);
  tcase_add_loop_test(t, an_end_without_handlers_loses_no_time, 0,
                      (int)(sizeof ends / sizeof *ends));
  tcase_add_test(t, an_end_by_a_signal_has_its_losses_counted);
  tcase_add_test(t, a_program_without_room_for_more_memory_lives);
  tcase_add_loop_test(t, no_fault_of_cupti_is_the_program_s, 0,
                      (int)(sizeof faults / sizeof *faults));
  tcase_add_loop_test(t, a_client_in_the_program_gets_what_it_would_get, 0,
                      (int)(sizeof clients_alone / sizeof *clients_alone));
  tcase_add_loop_test(t, a_client_that_allows_others_and_ours_both_get_all, 0,
                      (int)(sizeof clients_beside / sizeof *clients_beside));
  tcase_add_test(t, before_13_2_who_allows_others_is_alone);
  tcase_add_loop_test(t, memory_that_cupti_takes_for_itself_is_not_the_program_s, 0, 2);
  tcase_add_loop_test(t, a_client_that_sets_a_clock_first_is_not_refused, 0, 2);
  tcase_add_loop_test(t, work_of_graphs_in_a_later_session_is_of_the_right_launch_or_none, 0, 2);
  tcase_add_test(t, a_client_that_comes_again_gets_its_records);
  tcase_add_test(t, a_tool_that_is_injected_has_the_place);
  suite_add_tcase(s, t);
  return run_suite(s);
}
