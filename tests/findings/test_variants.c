/* test_variants.c: the wastes and their twins again, committed in other ways: by the driver's functions, by graphs, from
 * Python, and in a thread that is not the first. A rule finds them in the same lines, and not the twins. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/findings/found.h"
#include "tests/tools/command.h"

/* `not`: rules that this way's calls are no case of, each between spaces. By graphs, they count single launches, find
 * that the first launch makes a graph, or know what single launches are handed; Python takes so long to begin that nothing is idle for half of the run. */
static const struct variant {
  const char *name, *command, *options, *threads, *not ;
} variants[] = {
    {"driver", "$BUILD/tests/findings/waster_driver", "", NULL,
     " device-ping-pong "}, /* cuCtxSetCurrent() is another's */
    {"graph", "$BUILD/tests/findings/waster_graph", "", NULL,
     " launch-storm copied-instead-of-swapped managed-thrash loaded-in-a-request "
     "default-stream-between streams-serialised-by-events needless-double pinned-not-copied "},
    {"python",
     "python3 $WEIR_SOURCE/tests/victims/findings/by_python.py $BUILD/tests/findings/waster.so",
     " --python", NULL,
     " idle-object polled-in-a-loop "}, /* a stack of Python takes more than a question */
    {"thread", "$BUILD/tests/findings/waster", "", "1", ""},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static char ids[FOUND_IDS][64], options[FOUND_IDS][64];
static int id_count;

static void run_variant(const struct variant *v, FILE *runs)
{
  const char *command = sh_status(0, "echo %s", v->command)->out;
  char *end = strchr(command, '\n');
  ck_assert_ptr_nonnull(end);
  *end = '\0';
  ck_assert_int_eq(setenv("WASTER", command, 1), 0);
  if (v->threads) ck_assert_int_eq(setenv("WASTER_THREADS", v->threads, 1), 0);
  for (int i = 0; i < id_count; i++)
    for (int twin = 0; twin < 2; twin++) {
      char name[96], words[80], more[96];
      const char *how = twin ? "twin" : "waste";
      (void)snprintf(name, sizeof name, "%.63s.%s.%s", ids[i], v->name, how);
      (void)snprintf(words, sizeof words, "%.63s %s", ids[i], how);
      (void)snprintf(more, sizeof more, "--mode=observe --sim=2%s%.63s", v->options, options[i]);
      found_run(runs, name, words, more);
    }
  found_make(runs);
}

static void run_all(void)
{
  FILE *runs = found_begin();
  for (int k = 0; k < VARIANTS; k++) {
    if (k) runs = fopen("runs", "w");
    ck_assert_ptr_nonnull(runs);
    run_variant(&variants[k], runs);
  }
}

static json_t *read_variant(const char *id, const struct variant *v, const char *how)
{
  char name[128];
  (void)snprintf(name, sizeof name, "%s.%s.%s", id, v->name, how);
  return found_read(name);
}

static bool is_no_case(const struct variant *v, const char *id)
{
  char word[80];
  (void)snprintf(word, sizeof word, " %s ", id);
  return strstr(v->not, word) != NULL;
}

START_TEST(a_waste_is_found_however_it_is_committed)
{
  const struct variant *v = &variants[_i % VARIANTS];
  const char *id = ids[_i / VARIANTS];
  if (is_no_case(v, id)) return;
  if (!FOUND_CAN_HASH && strstr(options[_i / VARIANTS], "--hash=on")) return;
  json_t *all = read_variant(id, v, "waste");
  const json_t *f = found_of(all, id);
  ck_assert_msg(f != NULL, "%s is not found (%s)", id, v->name);
  const json_t *place = json_object_get(json_array_get(json_object_get(f, "sites"), 0), "place");
  const char *file = found_text(place, "file");
  long line = (long)found_number(place, "line");
  ck_assert_msg(file && found_says_waste(file, line, id), "%s is found in %s:%ld (%s)", id,
                file ? file : "?", line, v->name);
  json_decref(all);
}
END_TEST

START_TEST(a_twin_is_not_found_however_it_is_made)
{
  const struct variant *v = &variants[_i % VARIANTS];
  if (is_no_case(v, ids[_i / VARIANTS])) return;
  json_t *all = read_variant(ids[_i / VARIANTS], v, "twin");
  ck_assert_msg(!found_of(all, ids[_i / VARIANTS]), "%s is found in its twin (%s)",
                ids[_i / VARIANTS], v->name);
  json_decref(all);
}
END_TEST

int main(void)
{
  id_count = found_list(ids, options);
  Suite *s = suite_create("findings/variants");
  TCase *t = tcase_create("variants");
  tcase_set_timeout(t, 0);
  tcase_add_unchecked_fixture(t, run_all, leave_scratch);
  tcase_add_loop_test(t, a_waste_is_found_however_it_is_committed, 0, id_count * VARIANTS);
  tcase_add_loop_test(t, a_twin_is_not_found_however_it_is_made, 0, id_count * VARIANTS);
  suite_add_tcase(s, t);
  return run_suite(s);
}
