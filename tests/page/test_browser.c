/* test_browser.c: the page of weir report --html, in Chromium. One browser serves all tests:
 * page.py opens made pages, hostile ones and one of a real trace, and writes a line for each
 * thing that must hold. Where there is no Chromium, nothing is tried, and the suite says so. */
#include <stdio.h>
#include <string.h>

#include "tests/tools/command.h"

static bool skipped;

static void look_at_pages(void)
{
  enter_scratch();
  set_names();
  sh_status(0, "$WEIR run --force --sim=2 --device-times=all -o real.db -- "
               "$BUILD/tests/e2e/graph_caller random 1");
  sh_status(0, "$WEIR run --force --sim=2 --device-times=all -o random.db -- "
               "$BUILD/tests/e2e/random_caller 1 2 400 tally.json");
  sh_status(0, "for t in real random; do $WEIR report --html -o $t.html $t.db || exit; done");
  sh_status(0, "$WEIR report --format json real.db >real.json");
  sh_status(0, "for k in made hostile; do python3 -B $WEIR_SOURCE/tests/page/sample.py real.html "
               "$k.html 1 $k || exit; done");
  sh_status(0, "python3 -B $WEIR_SOURCE/tests/page/page.py . >results");
  skipped = sh("grep -q '^skipped: ' results")->status == 0;
  if (skipped) puts("skipped: no Chromium");
}

static void must_hold(const char *what)
{
  if (skipped) return;
  outcome *o = sh("grep -E '^(ok|FAILED) %s(:|$)' results", what);
  ck_assert_msg(!strncmp(o->out, "ok ", 3), "%s", *o->out ? o->out : what);
}

#define HOLDS(what)                                                                                \
  START_TEST(what)                                                                                 \
  {                                                                                                \
    must_hold(#what);                                                                              \
  }                                                                                                \
  END_TEST

HOLDS(the_page_opens_without_an_error_or_a_request)
HOLDS(every_picture_has_marks)
HOLDS(tables_are_sums_of_the_cube)
HOLDS(tables_agree_with_the_report)
HOLDS(a_brush_filters_every_table)
HOLDS(copies_and_leaks_are_the_report_s_of_a_span)
HOLDS(copies_and_leaks_follow_a_drag_and_a_place)
HOLDS(the_brush_follows_the_keyboard)
HOLDS(the_timeline_zooms_to_one_operation_with_its_stack)
HOLDS(a_finding_leads_to_its_stacks)
HOLDS(headings_sort)
HOLDS(the_peak_tells_its_places)
HOLDS(flame_graphs_search_and_zoom)
HOLDS(colours_follow_the_theme)
HOLDS(text_has_contrast)
HOLDS(the_accessibility_tree_names_everything)
HOLDS(all_is_reached_by_the_keyboard)
HOLDS(all_is_done_by_the_keyboard)
HOLDS(what_scrolls_takes_the_keyboard)
HOLDS(links_lead_to_their_sections)
HOLDS(names_of_any_kind_are_shown_as_text)
HOLDS(a_damaged_page_says_so)
HOLDS(without_decompression_the_page_says_so)
HOLDS(every_width_fits)

int main(void)
{
  Suite *s = suite_create("page/browser");
  TCase *t = tcase_create("browser");
  tcase_set_timeout(t, 0);
  tcase_add_unchecked_fixture(t, look_at_pages, leave_scratch);
  tcase_add_test(t, the_page_opens_without_an_error_or_a_request);
  tcase_add_test(t, every_picture_has_marks);
  tcase_add_test(t, tables_are_sums_of_the_cube);
  tcase_add_test(t, tables_agree_with_the_report);
  tcase_add_test(t, a_brush_filters_every_table);
  tcase_add_test(t, copies_and_leaks_are_the_report_s_of_a_span);
  tcase_add_test(t, copies_and_leaks_follow_a_drag_and_a_place);
  tcase_add_test(t, the_brush_follows_the_keyboard);
  tcase_add_test(t, the_timeline_zooms_to_one_operation_with_its_stack);
  tcase_add_test(t, a_finding_leads_to_its_stacks);
  tcase_add_test(t, headings_sort);
  tcase_add_test(t, the_peak_tells_its_places);
  tcase_add_test(t, flame_graphs_search_and_zoom);
  tcase_add_test(t, colours_follow_the_theme);
  tcase_add_test(t, text_has_contrast);
  tcase_add_test(t, the_accessibility_tree_names_everything);
  tcase_add_test(t, all_is_reached_by_the_keyboard);
  tcase_add_test(t, all_is_done_by_the_keyboard);
  tcase_add_test(t, what_scrolls_takes_the_keyboard);
  tcase_add_test(t, links_lead_to_their_sections);
  tcase_add_test(t, names_of_any_kind_are_shown_as_text);
  tcase_add_test(t, a_damaged_page_says_so);
  tcase_add_test(t, without_decompression_the_page_says_so);
  tcase_add_test(t, every_width_fits);
  suite_add_tcase(s, t);
  return run_suite(s);
}
