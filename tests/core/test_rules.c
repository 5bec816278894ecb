/* test_rules.c: rules as text: what is read, what is said of what cannot be, and that no text does
 * anything else. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/rules.h"

static rule_list rules;

static weir_status parse_rules_text(const char *text)
{
  return rule_list_parse(&rules, "my.rules", text, strlen(text));
}

START_TEST(each_line_is_a_rule_with_its_conditions)
{
  ck_assert_msg(!parse_rules_text("# all of it\n"
                                  "\n"
                                  "  passthrough size>=64M   # large\r\n"
                                  "cache\tmodule=libfoo.so\n"
                                  "passthrough function=load#batch size>1K size<=4K\n"
                                  "staging off function=_Z4loadv module=a\n"
                                  "staging on size=3\n"
                                  "staging auto size<1T\n"
                                  "passthrough"),
                "%s", weir_error_message());
  ck_assert_uint_eq(rules.count, 7);
  const rule_entry *r = rules.rule;
  ck_assert_int_eq(r[0].action, WEIR_RULE_PASSTHROUGH);
  ck_assert(r[0].least == 64 << 20 && r[0].most == UINT64_MAX && !*r[0].module && !*r[0].function);
  ck_assert_int_eq(r[1].action, WEIR_RULE_CACHE);
  ck_assert_str_eq(r[1].module, "libfoo.so");
  ck_assert_str_eq(r[2].function, "load#batch");
  ck_assert(r[2].least == 1025 && r[2].most == 4096);
  ck_assert_int_eq(r[3].action, WEIR_RULE_STAGING_OFF);
  ck_assert_str_eq(r[3].function, "_Z4loadv");
  ck_assert_str_eq(r[3].module, "a");
  ck_assert(r[4].action == WEIR_RULE_STAGING_ON && r[4].least == 3 && r[4].most == 3);
  ck_assert(r[5].action == WEIR_RULE_STAGING_AUTO && !r[5].least &&
            r[5].most == (UINT64_C(1) << 40) - 1);
  ck_assert(r[6].action == WEIR_RULE_PASSTHROUGH && !r[6].least && r[6].most == UINT64_MAX);
  ck_assert(!parse_rules_text("") && !rules.count);
}
END_TEST

static const struct bad {
  const char *text, *said; /* after "my.rules:" */
} bads[] = {
    {"passthru size>=1", "1: 'passthru': expected passthrough, cache or staging"},
    {"\n\ncache size>=1 sizes<3", "3: 'sizes<3': expected size>=BYTES"},
    {"cache size>=64X", "1: 'size>=64X': expected size, one of"},
    {"cache size>=", "1: 'size>=': expected size, one of"},
    {"cache size==3", "1: 'size==3': expected size, one of"},
    {"cache size<0", "1: 'size<0': expected a size that can be"},
    {"cache size>18446744073709551615", ": expected a size that can be"},
    {"cache size>=99999999999999999999", ": expected size, one of"},
    {"cache size>4K size<4K", "1: 'size<4K': expected a size that the one before it allows"},
    {"staging", "1: the line ends: expected on, off or auto after staging"},
    {"staging size>=1M", "1: 'size>=1M': expected on, off or auto after staging"},
    {"staging # off", "1: the line ends: expected on, off or auto"},
    {"cache module=", "1: 'module=': expected a name of 1 to 255"},
    {"cache module=a module=b", "1: 'module=b': expected each of module and function once only"},
    {"cache module=/usr/lib/libfoo.so", "expected the name of a file without its folder"},
    {"cache\nCACHE", "2: 'CACHE': expected passthrough"},
    {"cach\001\377", "1: 'cach?\?': expected passthrough"},
};

START_TEST(a_bad_line_is_named_with_what_was_expected)
{
  ck_assert_int_eq(parse_rules_text(bads[_i].text), WEIR_EINVAL);
  const char *message = weir_error_message();
  ck_assert_msg(!strncmp(message, "my.rules:", 9) && strstr(message + 9, bads[_i].said), "%s",
                message);
}
END_TEST

START_TEST(more_rules_than_there_may_be_are_refused)
{
  enum { LINE = 6 };
  char text[LINE * 65 + 1] = "";
  for (int i = 0; i < 64 * LINE; i++)
    text[i] = "cache\n"[i % LINE];
  ck_assert_int_eq(parse_rules_text(text), WEIR_OK);
  ck_assert_uint_eq(rules.count, 64);
  for (int i = 64 * LINE; i < 65 * LINE; i++)
    text[i] = "cache\n"[i % LINE];
  ck_assert_int_eq(parse_rules_text(text), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "my.rules:65: "));
}
END_TEST

START_TEST(a_long_name_or_word_is_refused_and_cut_in_the_message)
{
  char text[70000] = "cache module=";
  memset(text + 13, 'x', 255);
  ck_assert_int_eq(parse_rules_text(text), WEIR_OK);
  text[13 + 255] = 'x';
  ck_assert_int_eq(parse_rules_text(text), WEIR_EINVAL);
  memset(text, 'y', sizeof text - 1);
  ck_assert_int_eq(parse_rules_text(text), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "yyy...': expected passthrough"));
}
END_TEST

START_TEST(files_that_cannot_be_rules_are_refused)
{
  char name[] = "/tmp/weir-rules-XXXXXX", text[1024];
  int fd = mkstemp(name);
  memset(text, '\n', sizeof text);
  for (int i = 0; i < 64; i++)
    ck_assert_int_eq(write(fd, text, sizeof text), sizeof text);
  ck_assert_int_eq(rule_list_read(&rules, name), WEIR_OK);
  ck_assert_int_eq(write(fd, "\n", 1), 1);
  ck_assert_int_eq(rule_list_read(&rules, name), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "at most 64 KiB"));
  (void)close(fd);
  (void)unlink(name);
  ck_assert_int_eq(rule_list_read(&rules, name), WEIR_EIO);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "No such file"));
  ck_assert_int_eq(rule_list_read(&rules, "/tmp"), WEIR_EIO);
}
END_TEST

static uint64_t state;

static unsigned draw_below(unsigned n)
{
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(state >> 33) % n;
}

/* Bytes of any kind, mostly pieces that belong into rules. */
static size_t random_text(char *text, size_t room)
{
  static const char *const pieces[] = {"passthrough",
                                       "cache",
                                       "staging",
                                       " on",
                                       " off",
                                       " ",
                                       "\t",
                                       "\n",
                                       "#",
                                       " size",
                                       ">=",
                                       "<",
                                       "=",
                                       ">",
                                       " size>=",
                                       "4K",
                                       "99999999999999999999",
                                       "64M",
                                       " module=",
                                       " function=",
                                       "libfoo.so",
                                       "/",
                                       "\r\n",
                                       "18446744073709551615",
                                       "0"};
  size_t n = 0;
  for (unsigned left = draw_below(40); left && n + 32 < room; left--) {
    if (!draw_below(8)) {
      text[n++] = (char)draw_below(256);
      continue;
    }
    const char *p = pieces[draw_below(sizeof pieces / sizeof *pieces)];
    while (*p)
      text[n++] = *p++;
  }
  return n;
}

START_TEST(any_text_is_rules_or_an_error_with_its_line)
{
  unsigned good = 0, bad = 0;
  for (state = 1; state && good + bad < 200000;) {
    char text[2048], *exact;
    size_t n = random_text(text, sizeof text), lines = 1;
    exact = malloc(n ? n : 1); /* so that a sanitizer sees a read past its end */
    memcpy(exact, text, n);
    for (size_t i = 0; i < n; i++)
      lines += exact[i] == '\n';
    weir_status s = rule_list_parse(&rules, "f", exact, n);
    free(exact);
    if (!s) {
      good++;
      ck_assert_uint_le(rules.count, lines);
      for (unsigned i = 0; i < rules.count; i++) {
        const rule_entry *r = &rules.rule[i];
        ck_assert(r->action != WEIR_RULE_NONE && r->least <= r->most);
        ck_assert(strlen(r->module) < WEIR_RULE_NAME && strlen(r->function) < WEIR_RULE_NAME);
      }
      continue;
    }
    bad++;
    ck_assert_int_eq(s, WEIR_EINVAL);
    unsigned line = 0;
    ck_assert_msg(sscanf(weir_error_message(), "f:%u: ", &line) == 1 && line && line <= lines, "%s",
                  weir_error_message());
    ck_assert_ptr_nonnull(strstr(weir_error_message(), ": expected "));
  }
  ck_assert(good > 1000 && bad > 1000);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("core/rules");
  TCase *c = tcase_create("rules");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, each_line_is_a_rule_with_its_conditions);
  tcase_add_loop_test(c, a_bad_line_is_named_with_what_was_expected, 0,
                      (int)(sizeof bads / sizeof *bads));
  tcase_add_test(c, more_rules_than_there_may_be_are_refused);
  tcase_add_test(c, a_long_name_or_word_is_refused_and_cut_in_the_message);
  tcase_add_test(c, files_that_cannot_be_rules_are_refused);
  tcase_add_test(c, any_text_is_rules_or_an_error_with_its_line);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
