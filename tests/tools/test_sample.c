/* test_sample.c: what a collector answers, read by weir ps and weir top. A collector is another
 * process, and may be anything: an answer that was changed becomes rows or nothing, and a screen
 * keeps within its lines and columns whatever stands in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/command.h"
#include "tools/weir/watch/screen.h"

static const char answer[] =
    "{\"time_ns\": 1700000002000000000, \"since_ns\": 0, \"trace\": \"/a/t.db\", \"own_ns\": 5000, "
    "\"processes\": [{\"pid\": 7, \"rank\": 1, \"program\": \"/a/train\", \"ended\": false, "
    "\"events\": 900, \"dropped\": 2, \"spool_bytes\": 4096, \"live_bytes\": 3000, "
    "\"peak_bytes\": 4000, \"memory\": [{\"device\": 0, \"kind\": \"device\", \"live_bytes\": "
    "3000, "
    "\"blocks\": 3, \"peak_bytes\": 4000}, {\"kind\": \"pinned\", \"live_bytes\": 10, \"blocks\": "
    "1, "
    "\"peak_bytes\": 20}], \"copies\": [{\"device\": 0, \"direction\": \"h2d\", \"count\": 30, "
    "\"bytes\": 3000}], \"waits\": [{\"cause\": \"event\", \"count\": 4, \"ns\": 500}], "
    "\"cache_hits\": [], \"failures\": [{\"kind\": \"device\", \"count\": 1, \"bytes\": 9}], "
    "\"sites\": [{\"site\": \"step \\u001b[2J (\\u00e9.py:7)\", \"live_bytes\": 2000, \"blocks\": "
    "1}], "
    "\"other_live_bytes\": 1000, \"later\": [1, {\"x\": null}]}, {\"pid\": 8, \"ended\": true}]}";

static char *copy_of(const char *text)
{
  char *copy = strdup(text);
  ck_assert_ptr_nonnull(copy);
  return copy;
}

START_TEST(an_answer_becomes_rows)
{
  sample s = {0};
  ck_assert(sample_add_top(&s, copy_of(answer)));
  ck_assert_uint_eq(s.count, 2);
  const sample_process *p = sample_find(&s, 7);
  ck_assert_ptr_nonnull(p);
  ck_assert_uint_eq(p->n[SAMPLE_RANK], 2);
  ck_assert_str_eq(p->program, "/a/train");
  ck_assert_str_eq(p->trace, "/a/t.db");
  ck_assert(!p->ended && s.process[1].ended);
  ck_assert_uint_eq(p->list[SAMPLE_MEMORY].count, 2);
  ck_assert_int_eq(p->list[SAMPLE_MEMORY].row[1].device, SAMPLE_HOST);
  ck_assert_uint_eq(p->list[SAMPLE_COPIES].row[0].n[1], 3000);
  ck_assert_uint_eq(p->n[SAMPLE_OTHER], 1000);
  ck_assert_ptr_null(sample_find(&s, 9));
  sample_clear(&s);
}
END_TEST

START_TEST(a_list_of_processes_becomes_rows)
{
  sample s = {0};
  ck_assert(sample_add_ps(&s, copy_of("{\"pid\": 1, \"events_per_second\": 5}\n{\"pid\": 2}\n")));
  ck_assert_uint_eq(s.count, 2);
  ck_assert_uint_eq(s.process[0].n[SAMPLE_RATE], 5);
  ck_assert(sample_add_ps(&s, copy_of("")));
  ck_assert(!sample_add_ps(&s, copy_of("{\"pid\": 3} {\"pid\": 4}\n")));
  sample_clear(&s);
}
END_TEST

static void expect_within(const screen *s, const char *text)
{
  unsigned lines = 0, columns = 0;
  bool within = true;
  for (const char *at = text; *at; at++) {
    const unsigned char c = (unsigned char)*at;
    lines += c == '\n';
    columns = c == '\n' ? 0 : columns + ((c & 0xc0) != 0x80);
    within = within && columns <= s->columns && (c >= ' ' || c == '\n');
  }
  ck_assert(within);
  if (s->rows) ck_assert_uint_le(lines, s->rows);
}

static void draw_within(screen *s)
{
  static const unsigned sizes[][2] = {{80, 24}, {200, 60}, {1, 1}, {20, 3}, {100, 0}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    s->columns = sizes[i][0];
    s->rows = sizes[i][1];
    s->sort = (screen_sort)(i % SORTS);
    s->blocks = i % 2;
    screen_print(out, s);
    ck_assert_int_eq(fclose(out), 0);
    expect_within(s, text);
    free(text);
  }
}

START_TEST(a_screen_keeps_within_its_bounds)
{
  sample now = {0}, before = {0};
  ck_assert(sample_add_top(&before, copy_of(answer)));
  ck_assert(sample_add_top(&now, copy_of(answer)));
  now.time_ns += 1000000000;
  screen s = {.now = &now, .history = {1, UINT64_MAX, 0}, .history_count = 3};
  draw_within(&s);
  s.before = &before;
  draw_within(&s);
  s.history_count = SCREEN_HISTORY;
  draw_within(&s);
  sample_clear(&now);
  sample_clear(&before);
}
END_TEST

/* Changes a few bytes, cuts, or puts a piece in the place of another. */
static void damage(char *text, size_t bytes)
{
  static const char signs[] = "{}[]\",:\\0123456789 truefalsn-.\x01\xff";
  for (int i = rand() % 4; i >= 0; i--)
    text[(size_t)rand() % bytes] = signs[(size_t)rand() % (sizeof signs - 1)];
  if (rand() % 5 == 0) text[(size_t)rand() % bytes] = 0;
  if (rand() % 3 == 0) {
    const size_t n = (size_t)rand() % 60, from = (size_t)rand() % (bytes - n),
                 to = (size_t)rand() % (bytes - n);
    memmove(text + to, text + from, n);
  }
}

START_TEST(a_changed_answer_becomes_rows_or_nothing)
{
  unsigned taken = 0;
  srand(7);
  for (int i = 0; i < 2000; i++) {
    sample now = {0}, before = {0};
    char *text = copy_of(answer);
    damage(text, sizeof answer - 1);
    taken += sample_add_top(&now, text);
    (void)sample_add_ps(&before, copy_of(now.count ? answer : "x"));
    screen s = {.now = &now, .before = i % 2 ? &before : NULL, .history_count = 1};
    draw_within(&s);
    sample_clear(&now);
    sample_clear(&before);
  }
  ck_assert_uint_gt(taken, 100);
  ck_assert_uint_lt(taken, 1900);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("sample");
  TCase *t = tcase_create("sample");
  tcase_set_timeout(t, 0);
  tcase_add_test(t, an_answer_becomes_rows);
  tcase_add_test(t, a_list_of_processes_becomes_rows);
  tcase_add_test(t, a_screen_keeps_within_its_bounds);
  tcase_add_test(t, a_changed_answer_becomes_rows_or_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
