/* test_trial.c: a program as somebody would write it, with eight wastes, run with nothing but the
 * defaults: each is found in its line, and what would show more is said in one. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/findings/found.h"
#include "tests/tools/command.h"

/* On the software device with the costs of a card, so that what is slow there is slow here. */
static void run_trial(void)
{
  enter_scratch();
  sh_status(0, "WEIR_SIM_CARD=h100 $WEIR run -o t.db --sim=2 -- $BUILD/tests/findings/trial");
  sh_status(0, "$WEIR report findings --format json t.db >t.json");
}

static const char *const wastes[] = {
    "repeated-import", "repeated-upload",     "pageable-async",   "pool-gives-back",
    "graph-made-anew", "redundant-read-back", "through-the-host", "idle-object",
};

/* How many of a buffer's copies are hashed depends on how long the run takes: where some of its last are,
 * another rule has them all. */
static bool is_rule(const char *id, const char *waste)
{
  return !strcmp(id, waste) ||
         (!strcmp(waste, "repeated-upload") && !strcmp(id, "sampled-upload-again"));
}

/* The line of the source that says "WASTE ID"; 0: none. A statement of several lines is where the
 * compiler says: in one of them. */
static bool is_near(long line, const char *id)
{
  char text[512], mark[96];
  (void)snprintf(text, sizeof text, "%s/tests/victims/trial/trial.c", getenv("WEIR_SOURCE"));
  (void)snprintf(mark, sizeof mark, "WASTE %s ", id);
  FILE *f = fopen(text, "r");
  ck_assert_ptr_nonnull(f);
  bool near = false;
  for (long n = 1; fgets(text, sizeof text, f); n++)
    near |= strstr(text, mark) && labs(n - line) <= 2;
  (void)fclose(f);
  return near;
}

static json_t *load_findings(void)
{
  json_error_t e;
  json_t *o = json_load_file("t.json", 0, &e);
  ck_assert_msg(o != NULL, "%s", e.text);
  return o;
}

START_TEST(a_planted_waste_is_found_in_its_line_with_a_fix)
{
  json_t *all = load_findings();
  const json_t *f;
  size_t i;
  bool found = false;
  json_array_foreach(json_object_get(all, "findings"), i, f)
  {
    const json_t *site = json_object_get(f, "place");
    const char *file = json_string_value(json_object_get(site, "file"));
    if (!is_rule(json_string_value(json_object_get(f, "id")), wastes[_i])) continue;
    found |= file && strstr(file, "trial.c") && *json_string_value(json_object_get(f, "fix")) &&
             is_near((long)json_integer_value(json_object_get(site, "line")), wastes[_i]);
  }
  ck_assert_msg(found, "%s is not found where it is: %.3000s", wastes[_i], sh("cat t.json")->out);
  json_decref(all);
}
END_TEST

START_TEST(a_place_in_a_function_names_the_one_that_calls_it)
{
  json_t *all = load_findings();
  const json_t *f;
  size_t i, named = 0;
  json_array_foreach(json_object_get(all, "findings"), i, f)
  {
    const json_t *site = json_array_get(json_object_get(f, "sites"), 0),
                 *caller = json_array_get(json_object_get(site, "called_from"), 0);
    const char *name =
        json_string_value(json_object_get(json_object_get(caller, "place"), "function"));
    named += name && !strcmp(name, "look_at_frames");
  }
  ck_assert_msg(named >= 6, "%zu: %.3000s", named, sh("cat t.json")->out);
  json_decref(all);
}
END_TEST

/* Where a waste was planted another rule may know more of it: that it is the same bytes, as hashes of
 * them show. */
static bool is_planted(const json_t *f)
{
  long line = (long)json_integer_value(json_object_get(json_object_get(f, "place"), "line"));
  bool planted = false;
  for (size_t w = 0; w < sizeof wastes / sizeof *wastes; w++)
    planted |= is_near(line, wastes[w]);
  return planted;
}

START_TEST(what_is_certain_was_planted)
{
  json_t *all = load_findings();
  const json_t *f;
  size_t i;
  json_array_foreach(json_object_get(all, "findings"), i, f)
  {
    const char *id = json_string_value(json_object_get(f, "id"));
    bool certain = !strcmp(json_string_value(json_object_get(f, "certainty")), "certain");
    ck_assert_msg(!certain || is_planted(f), "%s is certain", id);
  }
  json_decref(all);
}
END_TEST

START_TEST(what_would_show_more_is_said)
{
  const char *out = sh_status(0, "$WEIR report t.db")->out;
  bool hashes_asked = strstr(out, "weir run --hash finds more: ");
  ck_assert_msg(hashes_asked != FOUND_CAN_HASH &&
                    strstr(out, "weir run --device-times=all finds more: "),
                "%.3000s", out);
  sh_status(0, "$WEIR run -o h.db --sim=2 --hash=off -- $BUILD/tests/findings/trial");
  out = sh_status(0, "$WEIR report h.db")->out;
  ck_assert_msg(strstr(out, "weir run --hash finds more: ") != NULL, "%.3000s", out);
  out = sh_status(0, "$WEIR report findings h.db")->out;
  ck_assert_msg(strstr(out, "no copy was hashed (weir run --hash)"), "%.3000s", out);
  ck_assert_msg(strstr(out, "no device times (weir run --device-times=all)"), "%.3000s", out);
}
END_TEST

/* Its two processes wait for each other: the one that stops ends both. */
START_TEST(without_its_second_device_it_ends)
{
  sh_status(1, "$WEIR run -o one.db --sim=1 -- $BUILD/tests/findings/trial");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("trial");
  TCase *t = tcase_create("planted");
  tcase_set_timeout(t, 120);
  tcase_add_unchecked_fixture(t, run_trial, leave_scratch);
  tcase_add_loop_test(t, a_planted_waste_is_found_in_its_line_with_a_fix, 0,
                      sizeof wastes / sizeof *wastes);
  tcase_add_test(t, a_place_in_a_function_names_the_one_that_calls_it);
  tcase_add_test(t, what_is_certain_was_planted);
  tcase_add_test(t, what_would_show_more_is_said);
  tcase_add_test(t, without_its_second_device_it_ends);
  suite_add_tcase(s, t);
  return run_suite(s);
}
