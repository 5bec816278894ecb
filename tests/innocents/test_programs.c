/* test_programs.c: of programs without waste, as people write them, no report has a finding that is
 * certain, and all together have two at most that are likely, four where each runs three times at once. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

enum { NAMES = 96, ALL_WAYS = 7 };

/* How each is run, and how many findings may be likely. Three at once in one process wait for each other. */
static const struct way {
  const char *options, *threads;
  int likely;
} ways[ALL_WAYS] = {
    {"--mode=observe --sim=2", "1", 2},
    {"--mode=strict --sim=2", "1", 2},
    {"--mode=relaxed --sim=2", "1", 2},
    {"--mode=observe --sim=2,h100 --hash", "1", 2},
    {"--mode=strict --sim=2,a100 --device-times=all", "1", 2},
    {"--mode=observe --sim=2", "3", 4},
    {"--mode=relaxed --sim=2", "3", 4},
};

enum { WAYS = TEST_LEVEL ? ALL_WAYS : 1 };

static char names[NAMES][64];
static int count;

static void list_programs(void)
{
  FILE *f = fopen("names", "r");
  ck_assert_ptr_nonnull(f);
  for (count = 0; count < NAMES && fscanf(f, "%63s", names[count]) == 1;)
    count++;
  ck_assert_int_eq(fclose(f), 0);
}

static void run_all(void)
{
  enter_scratch();
  sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/innocents/innocents list >names");
  list_programs();
  FILE *runs = fopen("runs", "w");
  ck_assert_ptr_nonnull(runs);
  for (int i = 0; i < count; i++)
    for (int w = 0; w < WAYS; w++)
      ck_assert_int_gt(fprintf(runs, "%s.%d %s %s %s\n", names[i], w, names[i], ways[w].threads,
                               ways[w].options),
                       0);
  ck_assert_int_eq(fclose(runs), 0);
  sh_status(0,
            "xargs -P 6 -L 1 sh -c 'name=$1 threads=$2; shift 2; $WEIR run --force -o $0.db \"$@\""
            " -- $BUILD/tests/innocents/innocents $name $threads && $WEIR report findings"
            " --format json --min-cost 0ns $0.db >$0.json && rm $0.db' <runs");
}

/* Findings of one certainty, each printed. */
static int count_findings(int program, int way, const char *certainty)
{
  char path[96];
  json_error_t e;
  size_t i;
  const json_t *f;
  int n = 0;
  (void)snprintf(path, sizeof path, "%s.%d.json", names[program], way);
  json_t *all = json_load_file(path, 0, &e);
  ck_assert_msg(all != NULL, "%s: %s", path, e.text);
  const json_t *list = json_object_get(all, "findings");
  ck_assert(json_is_array(list));
  json_array_foreach(list, i, f)
  {
    if (strcmp(json_string_value(json_object_get(f, "certainty")), certainty) != 0) continue;
    printf("%s (%s %s): %s is %s\n", names[program], ways[way].options, ways[way].threads,
           json_string_value(json_object_get(f, "id")), certainty);
    (void)fflush(stdout); /* the process may end by an assertion */
    n++;
  }
  json_decref(all);
  return n;
}

START_TEST(nothing_is_certain_of_a_program_without_waste)
{
  int certain = 0;
  list_programs();
  ck_assert_int_ge(count, 30);
  for (int i = 0; i < count; i++)
    certain += count_findings(i, _i, "certain");
  ck_assert_int_eq(certain, 0);
}
END_TEST

START_TEST(next_to_nothing_is_likely_of_programs_without_waste)
{
  int likely = 0;
  list_programs();
  for (int i = 0; i < count; i++)
    likely += count_findings(i, _i, "likely");
  ck_assert_msg(likely <= ways[_i].likely, "%d are likely", likely);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("innocents/programs");
  TCase *t = tcase_create("none");
  tcase_set_timeout(t, 0);
  tcase_add_unchecked_fixture(t, run_all, leave_scratch);
  tcase_add_loop_test(t, nothing_is_certain_of_a_program_without_waste, 0, WAYS);
  tcase_add_loop_test(t, next_to_nothing_is_likely_of_programs_without_waste, 0, WAYS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
