/* test_savings.c: of a waste that is repeated, each round is found, at no more than it costs; of
 * the same work without the waste, none. How near what is predicted comes to what the fix gains
 * depends on the machine: `make bench` measures it (tools/bench/rows_findings.c). */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#if __has_include(<xxhash.h>)
enum { CAN_HASH = 1 };
#else
enum { CAN_HASH = 0 };
#endif

typedef struct saving {
  const char *work, *rule, *options;
  int devices;
} saving;

static const saving savings[] = {
#define SAVING(work, rule, rounds, link, options, devices) {#work, rule, options, devices},
#include "tools/bench/savings.def"
};

enum { SAVINGS = sizeof(savings) / sizeof(savings[0]), ROUNDS = 12 };

/* What is found of a waste whose calls only look wasteful by when they come is not counted. */
enum { BY_TIME = -1 };

/* Rounds of a waste, and how often it is found in them; of one without a line it is ROUNDS in ROUNDS. */
static const struct expected {
  const char *work;
  int rounds, found;
} expected[] = {
    {"duplicate_transfer", 12, 11},
    {"duplicate_pinned", 12, 11},
    {"pageable_back", 12, 13}, /* and the one before */
    {"blocking_copy", 4, 4},
    {"tiny_copies", 64, BY_TIME},
    {"tiny_results", 64, BY_TIME},
    {"small_copies_in_a_step", 40, BY_TIME},
    {"tail_through_the_host", 24, 23},
    {"grown_history", 12, 11},
    {"changed_table", 12, 11},
    {"changed_large", 24, BY_TIME},
    {"rows_one_by_one", 2, 2 * 255},
    {"hidden_wait", 6, BY_TIME},
    {"hidden_memset", 6, BY_TIME},
    {"premature_wait", 12, BY_TIME},
    {"wait_each_step", 12, 11},
    {"wait_between", 12, BY_TIME},
    {"devices_in_turn", 12, BY_TIME},
    {"streams_in_turn", 20, BY_TIME},
    {"chunks_in_turn", 12, BY_TIME},
    {"chunks_of_pageable", 12, BY_TIME},
    {"host_and_device_in_turn", 40, BY_TIME},
    {"polled_with_pauses", 64, BY_TIME},
    {"redundant_wait", 100, 99},
    {"read_between", 12, 11},
    {"cleared_between", 12, 11},
    {"repeated_launch", 12, 11},
    {"repeated_allocation", 12, 11 * 8},
    {"repeated_busy", 12, 11 * 8},
    {"temporary_allocation", 24, 23},
    {"pinned_churn", 12, 11},
    {"registered_churn", 12, 11},
    {"pool_gives_back", 12, 12 * 8},
    {"graph_made_anew", 12, 11},
    {"graph_captured_anew", 12, 11},
    {"graph_of_new_memory", 12, 11},
    {"launch_storm", 64, BY_TIME},
    {"step_of_short_kernels", 64, BY_TIME},
    {"handle_churn", 20, 2 * 19},
    {"asked_in_a_loop", 100, 99},
    {"named_in_a_loop", 100, 99},
    {"copied_instead_of_swapped", 20, 20},
    {"number_in_each_step", 40, 39},
    {"device_ping_pong", 12, 12 * 33 - 1},
    {"array_for_a_scalar", 20, BY_TIME},
    {"results_each_step", 40, BY_TIME},
    {"resized_allocation", 20, 19},
    {"recorded_for_nothing", 12, 12 * 8},
    {"fails_again", 12, 12 * 8},
    {"context_made_anew", 12, 11},
    {"pool_trimmed", 12, 12 * 2 - 1},
    {"prefetched_in_each_step", 12, 12 * 4 - 1},
    {"handles_left", 12, 12 * 8},
};

/* What is found by how long copies take, in runs with slow ones. */
static const struct {
  const char *work, *link;
} slow[] = {{"serialised_by_events", "h2d:1G,d2h:1G"},
            {"default_between", "h2d:1G,d2h:1G,d2d:1G"},
            {"host_and_device_in_turn", "d2d:1G"}};

static const char *link_of(const saving *s)
{
  for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
    if (!strcmp(slow[i].work, s->work)) return slow[i].link;
  return "card";
}

static struct expected expected_of(const saving *s)
{
  for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
    if (!strcmp(expected[i].work, s->work)) return expected[i];
  return (struct expected){s->work, ROUNDS, ROUNDS};
}

static bool can_run(const saving *s)
{
  return CAN_HASH || !strstr(s->options, "--hash=");
}

static void run_all(void)
{
  enter_scratch();
  FILE *f = fopen("runs", "w");
  ck_assert_ptr_nonnull(f);
  for (int i = 0; i < SAVINGS; i++) {
    const saving *s = &savings[i];
    int rounds = expected_of(s).rounds;
    if (!can_run(s)) continue;
    for (int fixed = 0; fixed < 2; fixed++)
      (void)fprintf(f, "%s %s %d %d %s %s\n", s->work, fixed ? "fixed" : "unfixed", rounds,
                    s->devices, *s->options ? s->options : "--hash=off", link_of(s));
  }
  ck_assert_int_eq(fclose(f), 0);
  sh_status(0, "xargs -P 6 -L 1 sh -c '[ $5 = card ] || export WEIR_SIM_LINK=$5; $WEIR run --force "
               "-o $0.$1.db --mode=observe --sim=$3,h100 $4"
               " -- $BUILD/tests/findings/waster $0 $1 $2 >/dev/null && $WEIR report findings"
               " --format json --min-cost 0ns $0.$1.db >$0.$1.json' <runs");
}

/* How often the waste is found in a run, each time at no more than its cost. */
static int times_found(const saving *s, const char *how)
{
  char path[128];
  json_error_t e;
  const json_t *f;
  size_t i;
  int times = 0;
  (void)snprintf(path, sizeof path, "%s.%s.json", s->work, how);
  json_t *all = json_load_file(path, 0, &e);
  ck_assert_msg(all != NULL, "%s: %s", path, e.text);
  json_array_foreach(json_object_get(all, "findings"), i, f)
  {
    if (strcmp(json_string_value(json_object_get(f, "id")), s->rule) != 0) continue;
    long long saving = json_integer_value(json_object_get(f, "saving_host_ns"));
    ck_assert_int_gt(saving, 0);
    ck_assert_int_le(saving, json_integer_value(json_object_get(f, "cost_host_ns")));
    times += (int)json_integer_value(json_object_get(f, "count"));
  }
  json_decref(all);
  return times;
}

START_TEST(each_round_of_a_waste_is_found)
{
  const saving *s = &savings[_i];
  if (!can_run(s)) return;
  int times = times_found(s, "unfixed"), found = expected_of(s).found;
  if (found != BY_TIME) ck_assert_msg(times == found, "%s: %d, not %d", s->work, times, found);
}
END_TEST

START_TEST(the_same_work_without_the_waste_has_none)
{
  const saving *s = &savings[_i];
  if (can_run(s)) ck_assert_msg(times_found(s, "fixed") == 0, "%s", s->work);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("savings");
  TCase *t = tcase_create("fixed");
  tcase_add_unchecked_fixture(t, run_all, leave_scratch);
  tcase_add_loop_test(t, each_round_of_a_waste_is_found, 0, SAVINGS);
  tcase_add_loop_test(t, the_same_work_without_the_waste_has_none, 0, SAVINGS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
