/* test_savings.c: of a waste that is repeated, each round is found, at no more than it costs; of
 * the same work without the waste, none. How near what is predicted comes to what the fix gains
 * depends on the machine: `make bench` measures it (tools/bench/rows_findings.c). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#if __has_include(<xxhash.h>)
enum { CAN_HASH = 1 };
#else
enum { CAN_HASH = 0 };
#endif

/* What is found of a waste whose calls only look wasteful by when they come is not counted. */
enum { BY_TIME = -1 };

static const struct saving {
  const char *id;
  int rounds, found;
  const char *options;
} savings[] = {
    {"duplicate-transfer", 12, 11, " --hash=on"},
    {"round-trip", 12, 12, " --hash=on"},
    {"pageable-async", 12, 12, ""},
    {"blocking-copy", 4, 4, ""},
    {"tiny-copies", 64, BY_TIME, ""},
    {"rows-one-by-one", 2, 2 * 255, ""},
    {"hidden-wait", 6, BY_TIME, ""},
    {"repeated-allocation", 12, 11 * 8, ""},
    {"pinned-churn", 12, 11, ""},
    {"constant-payload", 12, 12, " --hash=on"},
    {"graph-made-anew", 12, 11, ""},
    {"pool-gives-back", 12, 12 * 8, ""},
    {"launch-storm", 64, BY_TIME, ""},
    {"handle-churn", 20, 2 * 19, ""},
};

enum { SAVINGS = sizeof(savings) / sizeof(savings[0]) };

static void run_all(void)
{
  enter_scratch();
  FILE *f = fopen("runs", "w");
  ck_assert_ptr_nonnull(f);
  for (int i = 0; i < SAVINGS; i++) {
    const struct saving *s = &savings[i];
    if (!CAN_HASH && *s->options) continue;
    (void)fprintf(f, "%s unfixed %d%s\n%s fixed %d%s\n", s->id, s->rounds, s->options, s->id,
                  s->rounds, s->options);
  }
  ck_assert_int_eq(fclose(f), 0);
  sh_status(0, "xargs -P 6 -L 1 sh -c '$WEIR run --force -o $0.$1.db --mode=observe --sim=1,h100 $3"
               " -- $BUILD/tests/findings/waster $0 $1 $2 >/dev/null && $WEIR report findings"
               " --format json --min-cost 0ns $0.$1.db >$0.$1.json' <runs");
}

/* How often the waste is found in a run, each time at no more than its cost. */
static int times_found(const char *id, const char *how)
{
  char path[128];
  json_error_t e;
  const json_t *f;
  size_t i;
  int times = 0;
  (void)snprintf(path, sizeof path, "%s.%s.json", id, how);
  json_t *all = json_load_file(path, 0, &e);
  ck_assert_msg(all != NULL, "%s: %s", path, e.text);
  json_array_foreach(json_object_get(all, "findings"), i, f)
  {
    if (strcmp(json_string_value(json_object_get(f, "id")), id) != 0) continue;
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
  const struct saving *s = &savings[_i];
  if (!CAN_HASH && *s->options) return;
  int times = times_found(s->id, "unfixed");
  if (s->found != BY_TIME) ck_assert_int_eq(times, s->found);
}
END_TEST

START_TEST(the_same_work_without_the_waste_has_none)
{
  const struct saving *s = &savings[_i];
  if (!CAN_HASH && *s->options) return;
  ck_assert_int_eq(times_found(s->id, "fixed"), 0);
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
