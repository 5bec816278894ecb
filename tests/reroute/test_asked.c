/* test_asked.c: what a user may ask of the caches, and what the presence of other tools asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#define RUN     "$WEIR run --force -o t.db --sim "
#define SUBJECT "$BUILD/tests/reroute/subject "
#define HITS    "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64"

static unsigned count_occurrences(const char *text, const char *part)
{
  unsigned n = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
    n++;
  return n;
}

/* ---- other tools ----------------------------------------------------------------------------- */

static const struct tool {
  const char *with, *tool; /* NULL: none that matters */
} tools[] = {
    {"CUDA_INJECTION64_PATH=/opt/cuda/compute-sanitizer/libsanitizer-collection.so",
     "compute-sanitizer"},
    {"NV_SANITIZER_INJECTION_PORT_BASE=49152", "compute-sanitizer"},
    {"CUDA_MEMCHECK=1", "cuda-memcheck"},
    {"LD_PRELOAD=/opt/cuda/lib64/libcuda-memcheck.so", "cuda-memcheck"},
    {"LD_PRELOAD=/opt/valgrind/vgpreload_core.so:/opt/valgrind/vgpreload_memcheck.so", NULL},
    {"CUDA_INJECTION64_PATH=/opt/sanitizer-results/libcupti_trace.so", NULL},
    {"NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE=uds", NULL},
};

START_TEST(under_a_tool_that_watches_memory_all_is_observed_only)
{
  const struct tool *t = &tools[_i];
  char sentence[128];
  const outcome *o = sh_status(0, "%s " RUN "--mode=strict -- " SUBJECT "churn", t->with);
  ck_assert_str_eq(o->out, "done\n");
  (void)snprintf(sentence, sizeof sentence, "%s is at work in this process: it is observed only",
                 t->tool ? t->tool : "");
  ck_assert_uint_eq(count_occurrences(o->err, sentence), t->tool != NULL);
  ck_assert_int_eq(ask("t.db", HITS), t->tool ? 0 : 3);
  char query[256];
  (void)snprintf(query, sizeof query, "SELECT count(*) FROM note WHERE text = '%s'", sentence);
  ck_assert_int_eq(ask("t.db", query), t->tool != NULL);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE mode = 'strict'"), !t->tool);
}
END_TEST

START_TEST(who_only_observes_is_told_of_no_tool)
{
  const outcome *o = sh_status(0, "CUDA_MEMCHECK=1 " RUN "--mode=observe -- " SUBJECT "churn");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note"), 0);
}
END_TEST

START_TEST(under_cuda_gdb_all_is_observed_only)
{
  const outcome *o =
      sh_status(0, RUN "--mode=relaxed -- $BUILD/tests/reroute/tracer cuda-gdb " SUBJECT "churn");
  ck_assert_uint_eq(count_occurrences(o->err, "cuda-gdb is at work"), 1);
  ck_assert_int_eq(ask("t.db", HITS), 0);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM process WHERE mode = 'observe' AND events > 0"), 1);
  o = sh_status(0, RUN "--mode=relaxed -- $BUILD/tests/reroute/tracer gdb " SUBJECT "churn");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", HITS), 3);
}
END_TEST

START_TEST(a_debugger_that_told_the_driver_is_noticed_before_the_first_cache)
{
  const outcome *o = sh_status(0, RUN "--mode=strict -- " SUBJECT "debugged");
  ck_assert_uint_eq(count_occurrences(o->err, "cuda-gdb is at work"), 1);
  ck_assert_int_eq(ask("t.db", HITS), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note"), 1);
}
END_TEST

START_TEST(who_says_nothing_gets_strict)
{
  sh_status(0, "unset WEIR_MODE; " RUN "-- " SUBJECT "churn");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE mode = 'strict'"), 1);
  ck_assert_int_eq(ask("t.db", HITS), 3);
  adopt_collectors();
  sh_status(0, "unset WEIR_MODE; WEIR_OUTPUT=p.db LD_LIBRARY_PATH=$BUILD/lib/sim "
               "LD_PRELOAD=$BUILD/lib/libweir-preload.so " SUBJECT "churn");
  wait_for_collectors();
  ck_assert_int_eq(ask("p.db", HITS), 3);
}
END_TEST

/* ---- zero and poison ------------------------------------------------------------------------- */

static const char *const modes[] = {"strict", "relaxed"};

START_TEST(what_a_cache_hands_out_again_is_zero)
{
  const outcome *o = sh_status(0, RUN "--mode=%s --zero -- " SUBJECT "recycled", modes[_i]);
  ck_assert_uint_eq(count_occurrences(o->out, ": 0 of "), 9);
  ck_assert_int_eq(ask("t.db", HITS), 6);
  o = sh_status(0, "WEIR_ZERO=1 " RUN "--mode=%s -- " SUBJECT "recycled", modes[_i]);
  ck_assert_uint_eq(count_occurrences(o->out, ": 0 of "), 9);
  o = sh_status(0, RUN "--mode=%s -- " SUBJECT "recycled", modes[_i]);
  ck_assert_uint_lt(count_occurrences(o->out, ": 0 of "), 9); /* else it tells nothing */
}
END_TEST

START_TEST(a_program_that_initialises_its_memory_sees_no_poison)
{
  char plain[65536];
  (void)snprintf(plain, sizeof plain, "%s",
                 sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim " SUBJECT "initialised")->out);
  const outcome *o = sh_status(0, RUN "--mode=%s --poison -- " SUBJECT "initialised", modes[_i]);
  ck_assert_str_eq(o->out, plain);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 13 AND copy = 4"), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note WHERE text LIKE 'poison: %'"), 1);
}
END_TEST

static const struct read { /* of memory that nobody has written */
  const char *subject;
  int copies, bytes, offset; /* that read it, of it, of the first in its block */
} reads[] = {
    {"unwritten_sync", 3, 3 * (8 << 10), 32 << 10},
    {"unwritten_async", 3, 3 * (8 << 10), 32 << 10},
    {"unwritten_last", 1, 8 << 10, 32 << 10},
    {"unwritten_rows", 2, 2 * 5 * 1000, 35 * 1024},
    {"unwritten_staged", 1, 40 << 10, (5 << 20) - (40 << 10)},
    {"unwritten_scalars", 2, 16, 8},
    {"captured", 0, 0, 0},
};

START_TEST(a_copy_back_of_what_nobody_wrote_is_reported_with_its_place)
{
  const struct read *r = &reads[_i];
  for (int i = 0; i < 2; i++) {
    sh_status(0, "WEIR_STAGING=on " RUN "--mode=%s --poison -- " SUBJECT "%s", modes[i],
              r->subject);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 13 AND copy = 4"),
                     r->copies);
    ck_assert_int_eq(
        ask("t.db", "SELECT ifnull(sum(bytes), 0) FROM event WHERE kind = 13 AND copy = 4"),
        r->bytes);
    ck_assert_int_eq(
        ask("t.db", "SELECT ifnull(min(b), 0) FROM event WHERE kind = 13 AND copy = 4"), r->offset);
    const outcome *o = sh_status(0, "$WEIR report cache t.db");
    ck_assert_msg(!strstr(o->out, r->subject) == !r->copies, "%s", o->out);
    ck_assert_int_eq(!strstr(o->out, "uninitialised: "), !r->copies);
    o = sh_status(0, "$WEIR report cache --format json t.db |"
                     " python3 -c 'import json,sys; u=json.load(sys.stdin)[\"cache\"];"
                     " print(u[\"uninitialised_copies\"], u[\"uninitialised_bytes\"])'");
    char expected[64];
    (void)snprintf(expected, sizeof expected, "%d %d\n", r->copies, r->bytes);
    ck_assert_str_eq(o->out, expected);
  }
}
END_TEST

START_TEST(the_events_of_a_thread_that_has_ended_are_given_back)
{
  const outcome *o = sh_status(0, RUN "--mode=strict --poison -- " SUBJECT "threads_end");
  ck_assert_str_eq(o->out, "events: 0 of 4 left\n");
}
END_TEST

/* Programs with captures, graphs and streams that wait for nobody. */
START_TEST(no_program_that_is_right_prints_anything_else_with_a_fill)
{
  static const char *const traps[] = {"capture", "per_thread_streams", "pitches",
                                      "graph_after_free", "threads"};
  char plain[65536];
  const outcome *o = sh_status(0,
                               "WEIR_SIM_MEMORY=1G LD_LIBRARY_PATH=$BUILD/lib/sim "
                               "$BUILD/tests/reroute/trap %s",
                               traps[_i % 5]);
  (void)snprintf(plain, sizeof plain, "%s", o->out);
  o = sh_status(0, "WEIR_SIM_MEMORY=1G " RUN "--mode=%s %s -- $BUILD/tests/reroute/trap %s",
                modes[_i / 5 % 2], _i < 10 ? "--poison" : "--zero", traps[_i % 5]);
  ck_assert_str_eq(o->out, plain);
}
END_TEST

START_TEST(zero_and_poison_exclude_each_other)
{
  const outcome *o = sh_status(2, RUN "--zero --poison -- true");
  ck_assert_ptr_nonnull(strstr(o->err, "--zero and --poison exclude each other"));
  o = sh_status(0, "WEIR_ZERO=1 WEIR_POISON=1 " RUN "--mode=strict -- " SUBJECT "churn");
  ck_assert_uint_eq(count_occurrences(o->err, "WEIR_ZERO and WEIR_POISON exclude each other"), 1);
}
END_TEST

/* ---- rules ----------------------------------------------------------------------------------- */

/* What of the program's 9 allocations of its own, 3 in load_batch() and 3 in the plug-in was passed
 * on, by size; and its staged copies. */
#define PASSED(bytes)                                                                              \
  "SELECT count(*) FROM event WHERE kind = 1 AND NOT flags & 64 AND copy = 18 AND bytes = " #bytes
#define STAGED "SELECT count(*) FROM event WHERE kind = 3 AND flags & 128"

static const struct rules {
  const char *text, *staging;      /* rules; WEIR_STAGING */
  int small, large, batch, plugin; /* allocations that a rule passed on, of 3 each */
  int staged;                      /* copies, of 3 */
} asked[] = {
    {"", "on", 0, 0, 0, 0, 3},
    {"passthrough", "on", 3, 3, 3, 3, 3},
    {"passthrough size>=4M", "on", 0, 3, 3, 0, 3},
    {"passthrough size<=1M", "off", 3, 0, 0, 0, 0},
    {"passthrough module=libplugin.so", "on", 0, 0, 0, 3, 3},
    {"cache module=libplugin.so.1\npassthrough", "on", 3, 3, 3, 0, 3},
    {"passthrough module=subject", "on", 3, 3, 3, 0, 3},
    {"passthrough module=libplug", "on", 0, 0, 0, 0, 3},
    {"passthrough function=load_batch", "on", 0, 0, 3, 0, 3},
    {"passthrough function=load_batch module=libplugin.so", "on", 0, 0, 0, 0, 3},
    {"passthrough function=churn_there module=libplugin.so", "on", 0, 0, 0, 3, 3},
    {"staging off function=load_batch", "on", 0, 0, 0, 0, 0},
    {"staging off size<4M", "on", 0, 0, 0, 0, 3},
    {"staging on function=load_batch size>=4M", "off", 0, 0, 0, 0, 3},
    {"cache size>=4M\npassthrough size>=1M\nstaging off", "on", 3, 0, 0, 3, 0},
};

START_TEST(rules_decide_by_size_module_and_function)
{
  const struct rules *r = &asked[_i];
  sh_status(0, "printf '%s\n' >my.rules", r->text);
  for (int i = 0; i < 2; i++) {
    const outcome *o =
        sh_status(0,
                  "SUBJECT_PLUGIN=$BUILD/tests/reroute/libplugin.so.1 "
                  "WEIR_STAGING=%s " RUN "--mode=%s --cache-rules my.rules -- " SUBJECT "sites",
                  r->staging, modes[i]);
    ck_assert_str_eq(o->out, "done\n");
    ck_assert_str_eq(o->err, "");
    ck_assert_int_eq(ask("t.db", PASSED(1048576)), r->small);
    ck_assert_int_eq(ask("t.db", PASSED(8388608)), r->large);
    ck_assert_int_eq(ask("t.db", PASSED(4194304)), r->batch);
    ck_assert_int_eq(ask("t.db", PASSED(3145728)), r->plugin);
    ck_assert_int_eq(ask("t.db", STAGED), r->staged);
  }
}
END_TEST

START_TEST(bad_rules_are_said_before_the_program_starts)
{
  sh_status(0, "printf 'cache\nstagin off\n' >my.rules");
  const outcome *o = sh_status(125, RUN "--cache-rules my.rules -- touch started");
  ck_assert_str_eq(o->err, "weir: my.rules:2: 'stagin': expected passthrough, cache or staging.\n");
  o = sh_status(125, "WEIR_RULES=my.rules " RUN "-- touch started");
  ck_assert_ptr_nonnull(strstr(o->err, "my.rules:2: "));
  o = sh_status(125, RUN "--cache-rules nothing -- touch started");
  ck_assert_ptr_nonnull(strstr(o->err, "nothing cannot be read: No such file"));
  sh_status(0, "test ! -e started && test ! -e t.db");
}
END_TEST

START_TEST(a_preloaded_program_goes_on_without_bad_rules_and_says_so_once)
{
  sh_status(0, "printf 'cache size>many\n' >my.rules");
  adopt_collectors();
  const outcome *o = sh_status(0, "WEIR_RULES=my.rules WEIR_MODE=strict WEIR_OUTPUT=t.db "
                                  "LD_LIBRARY_PATH=$BUILD/lib/sim "
                                  "LD_PRELOAD=$BUILD/lib/libweir-preload.so sh -c '" SUBJECT
                                  "churn; " SUBJECT "churn'");
  wait_for_collectors();
  ck_assert_str_eq(o->out, "done\ndone\n");
  ck_assert_uint_eq(count_occurrences(o->err, "my.rules:1: 'size>many': expected size"), 1);
  ck_assert_int_eq(ask("t.db", HITS), 6);
}
END_TEST

START_TEST(rules_hold_for_children_that_are_elsewhere)
{
  sh_status(0, "echo passthrough >my.rules; mkdir deep");
  sh_status(0, "WEIR_RULES=my.rules " RUN "--mode=strict -- sh -c 'cd deep; " SUBJECT "churn'");
  ck_assert_int_eq(ask("t.db", PASSED(2097152)), 4);
}
END_TEST

/* ---- memory that there is -------------------------------------------------------------------- */

static char bare[65536];
static long long bare_peak;

static void run_bare(const char *what)
{
  const outcome *o = sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim " SUBJECT "%s", what);
  memcpy(bare, o->out, sizeof bare);
  bare_peak = atoll(o->err);
}

START_TEST(what_is_cached_is_in_nobodys_way)
{
  setenv("WEIR_SIM_MEMORY", "128M", 1);
  run_bare("relief");
  ck_assert_ptr_null(strstr(bare, ": 2\n"));
  for (int i = 0; i < 2; i++) {
    const outcome *o =
        sh_status(0, "WEIR_CACHE_LIMIT=1G " RUN "--mode=%s -- " SUBJECT "relief", modes[i]);
    ck_assert_msg(!strcmp(o->out, bare), "%s: %s", modes[i], o->out);
    /* By a rule too. */
    o = sh_status(0,
                  "echo passthrough 'size<100M' >my.rules; WEIR_CACHE_LIMIT=1G " RUN
                  "--mode=%s --cache-rules my.rules -- " SUBJECT "relief",
                  modes[i]);
    ck_assert_msg(!strcmp(o->out, bare), "%s with rules: %s", modes[i], o->out);
  }
}
END_TEST

/* ---- the driver's own pools ------------------------------------------------------------------ */

static const char *const all_modes[] = {"observe", "strict", "relaxed"};

START_TEST(the_drivers_pools_are_in_the_report_as_the_driver_tells_of_them)
{
  static const char compare[] =
      "import json,sys\n"
      "pools = json.load(open('c.json'))['pools']\n"
      "lines = [l.split() for l in open('said')]\n"
      "assert len(pools) == len(lines) == 3, pools\n"
      "for what, handle, *f in lines:\n"
      "    x = [p for p in pools if p['handle'] == int(handle)][0]\n"
      "    f = [int(n) for n in f]\n"
      "    got = [x['reserved_bytes'], x['reserved_peak_bytes'], x['used_bytes'],\n"
      "           x['used_peak_bytes'], x['release_threshold_bytes']]\n"
      "    if f[4] > 1 << 62: f[4] = None\n"
      "    assert got == f, (what, got, f)\n"
      "    assert x['default'] == (what == 'default') and x['device'] == 0, x\n"
      "    assert x['destroyed'] == (what == 'destroyed'), x\n"
      "    keeps = f[1] if f[4] is None else min(f[1], f[4])\n"
      "    assert x['keeps_idle_most_bytes'] == keeps, x\n";
  FILE *f = fopen("compare.py", "w");
  ck_assert_ptr_nonnull(f);
  (void)fputs(compare, f);
  (void)fclose(f);
  sh_status(0, RUN "--mode=%s -- " SUBJECT "pools > said", all_modes[_i]);
  sh_status(0, "$WEIR report cache --format json t.db > c.json && python3 compare.py");
  const outcome *o = sh_status(0, "$WEIR report cache t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "stream-ordered pools"));
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "stream-ordered pools"));
}
END_TEST

START_TEST(the_driver_is_seldom_asked_of_its_pools_and_never_in_a_capture)
{
  const outcome *o = sh_status(0, RUN "--mode=%s -- " SUBJECT "pools_asked", all_modes[_i]);
  ck_assert_str_eq(o->out, "seldom: 1\nwhile captured: 0\n");
}
END_TEST

/* A process that was forked before there was a context; and one that was forked after. */
START_TEST(workers_that_are_forked_ahead_of_all_contexts_are_rerouted)
{
#define PROCESSES(mode) "SELECT count(*) FROM process WHERE mode = '" mode "'"
  const outcome *o = sh_status(0, RUN "--mode=strict -- " SUBJECT "workers");
  ck_assert_str_eq(o->out, "done\ndone\n");
  ck_assert_int_eq(ask("t.db", HITS), 4);
  ck_assert_int_eq(ask("t.db", PROCESSES("strict")), 3);
  ck_assert_int_eq(ask("t.db", PROCESSES("observe")), 4);
}
END_TEST

START_TEST(a_capture_that_fails_at_its_end_is_over)
{
  const outcome *o = sh_status(0, RUN "--mode=%s -- " SUBJECT "unjoined", modes[_i]);
  ck_assert_str_eq(o->out, "unjoined: 904\ndone\n");
  ck_assert_int_eq(ask("t.db", HITS), 3);
}
END_TEST

static const char *const held[] = {"held_copies", "held_peers", "held_allocations"};

/* What the driver may wait for all work in (cuMemFree) is not called where it is not the program
 * that does: the work may wait for the calling thread. */
START_TEST(nothing_waits_for_work_that_the_program_does_not_wait_for)
{
  const char *mode = modes[_i % 2], *what = held[_i / 2];
  const outcome *o =
      sh_status(0,
                "XDG_CACHE_HOME=$PWD WEIR_CACHE_DECAY_MS=1 WEIR_SIM_LINK=pageable:8G "
                "$WEIR run --force -o t.db --sim=2 --mode=%s -- " SUBJECT "%s",
                mode, what);
  ck_assert_str_eq(o->out, "done\n");
  if (_i / 2 < 2)
    ck_assert_int_ge(ask("t.db", "SELECT count(*) FROM event WHERE kind = 13 AND copy = 3"), 1);
  else
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 13 AND copy = 1"), 2);
}
END_TEST

START_TEST(a_copy_may_fault_in_memory_that_the_program_mends)
{
  const outcome *o =
      sh_status(0, "WEIR_STAGING=on " RUN "--mode=%s -- " SUBJECT "faulting", modes[_i]);
  ck_assert_str_eq(o->out, "wrong: 0, faults: 1\n");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 3 AND flags & 128"), 2);
}
END_TEST

/* Where there is no place for a spool no call is seen, nor the ends of contexts and the captures
 * among them, so that nothing is rerouted either. */
START_TEST(where_nothing_is_recorded_nothing_is_rerouted)
{
  static const char *const names[] = {"reset", "two_contexts", "graph_after_free",
                                      "forbidden_in_capture"};
  const outcome *o = sh_status(0,
                               "LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_SIM_MEMORY=1G "
                               "$BUILD/tests/reroute/trap %s",
                               names[_i]);
  memcpy(bare, o->out, sizeof bare);
  for (int i = 0; i < 2; i++) {
    o = sh_status(0,
                  "LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_SIM_MEMORY=1G WEIR_MODE=%s "
                  "WEIR_SPOOL_DIR=$PWD/gone LD_PRELOAD=$BUILD/lib/libweir-preload.so "
                  "$BUILD/tests/reroute/trap %s",
                  modes[i], names[_i]);
    ck_assert_msg(!strcmp(o->out, bare), "%s, bare:\n%s\n%s:\n%s", names[_i], bare, modes[i],
                  o->out);
  }
}
END_TEST

static const struct limit {
  const char *text;
  long long bytes;
} limits[] = {
    {"", (4LL << 30) / 10}, {"WEIR_CACHE_LIMIT=0", 0}, {"WEIR_CACHE_LIMIT=64M", 64 << 20}};

/* Blocks of more than 1 MiB: smaller ones share pages of the driver's, which lay out otherwise. */
START_TEST(a_program_near_the_capacity_runs_out_of_memory_where_it_does_bare)
{
  char seed[16];
  (void)snprintf(seed, sizeof seed, "%d", _i + 1);
  setenv("SEED", seed, 1);
  setenv("WEIR_SIM_MEMORY", "256M", 1);
  run_bare("pressure");
  ck_assert_uint_gt(count_occurrences(bare, "none of"), 500);
  for (int i = 0; i < 6; i++) {
    const outcome *o = sh_status(0, "%s " RUN "--mode=%s -- " SUBJECT "pressure",
                                 limits[i / 2].text, modes[i % 2]);
    ck_assert_msg(!strcmp(o->out, bare), "seed %s, %s, %s: %s", seed, modes[i % 2],
                  limits[i / 2].text, o->out);
    ck_assert_int_le(atoll(o->err), 256 << 20);
  }
}
END_TEST

/* Small blocks (odd seeds' programs have none) share the driver's pages: what is cached of them is
 * bounded in bytes, and may hold a few pages more. */
START_TEST(the_driver_gives_no_more_than_bare_and_the_bound)
{
  char seed[16];
  const char *what = _i % 2 ? "pressure_small" : "pressure";
  (void)snprintf(seed, sizeof seed, "%d", _i + 1);
  setenv("SEED", seed, 1);
  setenv("WEIR_SIM_MEMORY", "4G", 1);
  run_bare(what);
  ck_assert_int_gt(bare_peak, 100 << 20);
  long long pages = _i % 2 ? bare_peak / 20 : 0;
  for (int i = 0; i < 6; i++) {
    const outcome *o = sh_status(0, "%s " RUN "--mode=%s -- " SUBJECT "%s", limits[i / 2].text,
                                 modes[i % 2], what);
    ck_assert_str_eq(o->out, bare);
    ck_assert_msg(atoll(o->err) <= bare_peak + limits[i / 2].bytes + pages,
                  "seed %s, %s, %s: %s, bare %lld", seed, modes[i % 2], limits[i / 2].text, o->err,
                  bare_peak);
    if (i != 2 && i != 3) ck_assert_int_gt(ask("t.db", HITS), 0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/asked");
  TCase *c = tcase_create("asked");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, under_a_tool_that_watches_memory_all_is_observed_only, 0,
                      (int)(sizeof tools / sizeof *tools));
  tcase_add_test(c, who_only_observes_is_told_of_no_tool);
  tcase_add_loop_test(c, nothing_waits_for_work_that_the_program_does_not_wait_for, 0, 6);
  tcase_add_test(c, workers_that_are_forked_ahead_of_all_contexts_are_rerouted);
  tcase_add_loop_test(c, a_capture_that_fails_at_its_end_is_over, 0, 2);
  tcase_add_loop_test(c, a_copy_may_fault_in_memory_that_the_program_mends, 0, 2);
  tcase_add_loop_test(c, where_nothing_is_recorded_nothing_is_rerouted, 0, 4);
  tcase_add_test(c, who_says_nothing_gets_strict);
  tcase_add_test(c, under_cuda_gdb_all_is_observed_only);
  tcase_add_test(c, a_debugger_that_told_the_driver_is_noticed_before_the_first_cache);
  tcase_add_loop_test(c, what_a_cache_hands_out_again_is_zero, 0, 2);
  tcase_add_loop_test(c, a_program_that_initialises_its_memory_sees_no_poison, 0, 2);
  tcase_add_loop_test(c, a_copy_back_of_what_nobody_wrote_is_reported_with_its_place, 0,
                      (int)(sizeof reads / sizeof *reads));
  tcase_add_loop_test(c, no_program_that_is_right_prints_anything_else_with_a_fill, 0, 20);
  tcase_add_test(c, the_events_of_a_thread_that_has_ended_are_given_back);
  tcase_add_test(c, zero_and_poison_exclude_each_other);
  tcase_add_loop_test(c, rules_decide_by_size_module_and_function, 0,
                      (int)(sizeof asked / sizeof *asked));
  tcase_add_test(c, bad_rules_are_said_before_the_program_starts);
  tcase_add_test(c, a_preloaded_program_goes_on_without_bad_rules_and_says_so_once);
  tcase_add_test(c, rules_hold_for_children_that_are_elsewhere);
  tcase_add_loop_test(c, the_drivers_pools_are_in_the_report_as_the_driver_tells_of_them, 0, 3);
  tcase_add_loop_test(c, the_driver_is_seldom_asked_of_its_pools_and_never_in_a_capture, 0, 3);
  tcase_add_test(c, what_is_cached_is_in_nobodys_way);
  tcase_add_loop_test(c, a_program_near_the_capacity_runs_out_of_memory_where_it_does_bare, 0, 4);
  tcase_add_loop_test(c, the_driver_gives_no_more_than_bare_and_the_bound, 0, 4);
  suite_add_tcase(s, c);
  return run_suite(s);
}
