/* test_rules.c: rules as text: what is read, what is said of what cannot be, and that no text does
 * anything else. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/reroutes.h"
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

static const char fixes[] =
    "proof gain=1ms..2.5ms pairs=12 driver=13.0 date=2026-05-04 card=NVIDIA H100 #2  \n"
    "# cudaMalloc in step\n"
    "fix device module=train at=9f3c01ab+0x1a2b,00ff+0xffffffffffffffff\n"
    "fix relaxed at=9f3c+0x0 # where it is freed\n"
    "proof\n"
    "fix pool at=9f3c+0x1\n"
    "end\n";

START_TEST(fixes_have_places_and_proofs)
{
  ck_assert_msg(!fix_list_parse(&rules, "f", fixes, sizeof fixes - 1), "%s", weir_error_message());
  const rule_entry *r = rules.rule;
  ck_assert(rules.count == 3 && rules.proofs == 2);
  ck_assert(r[0].action == WEIR_RULE_FIX && r[0].fix == REROUTE_DEVICE && r[0].proof == 0);
  ck_assert_str_eq(r[0].module, "train");
  ck_assert(r[0].line == 3 && r[0].frames == 2 && r[0].frame[0].id_bytes == 4);
  ck_assert(!memcmp(r[0].frame[0].id, "\x9f\x3c\x01\xab", 4) && r[0].frame[0].offset == 0x1a2b);
  ck_assert(r[0].frame[1].id_bytes == 2 && r[0].frame[1].offset == UINT64_MAX);
  ck_assert(r[1].fix == REROUTE_RELAXED && r[1].frames == 1 && !r[1].frame[0].offset);
  ck_assert(r[2].fix == REROUTE_POOL && r[2].proof == 1);
  ck_assert_str_eq(rules.proof[0].gain, "1ms..2.5ms");
  ck_assert_str_eq(rules.proof[0].driver, "13.0");
  ck_assert_str_eq(rules.proof[0].card, "NVIDIA H100 #2");
  ck_assert_str_eq(rules.proof[1].card, "");
}
END_TEST

START_TEST(fixes_that_are_cut_short_are_refused)
{
  for (size_t n = 0; n + 2 < sizeof fixes; n++) {
    char *exact = malloc(n ? n : 1);
    memcpy(exact, fixes, n);
    ck_assert_msg(fix_list_parse(&rules, "f", exact, n) == WEIR_EINVAL, "%zu bytes", n);
    free(exact);
  }
}
END_TEST

static const struct bad bad_fixes[] = {
    {"fix device at=00+0x1\nend", "1: 'device': expected"},
    {"proof\ncache size>1\nend", "2: 'cache': expected proof, fix or end"},
    {"proof\nfix everything at=00+0x1\nend", "2: 'everything': expected what Weir does there"},
    {"proof\nfix device,pool at=00+0x1\nend", "2: 'device,pool': expected what Weir does there"},
    {"proof\nfix none at=00+0x1\nend", "2: 'none': expected what Weir does there"},
    {"proof\nfix device\nend", "2: the line ends: expected at=BUILD-ID+0xOFFSET"},
    {"proof\nfix device at=0+0x1\nend", "2: 'at=0+0x1': expected at= once"},
    {"proof\nfix device at=00+0x\nend", "expected at= once"},
    {"proof\nfix device at=00+0x11112222333344445\nend", "expected at= once"},
    {"proof\nfix device at=00+0x1,\nend", "expected at= once"},
    {"proof\nfix device at=00+0x1 at=00+0x2\nend", "2: 'at=00+0x2': expected at= once"},
    {"proof\nfix device at=00+1\nend", "expected at= once"},
    {"proof\nfix device at=00+0x1 size>1M\nend", "2: 'size>1M': expected at="},
    {"proof speed=1\nfix device at=00+0x1\nend", "1: 'speed=1': expected gain="},
    {"proof card=\nfix device at=00+0x1\nend", "expected 1 to 127 printable"},
    {"proof pairs=1 pairs=2\nfix device at=00+0x1\nend", "1: 'pairs=2': expected 1 to 127"},
    {"proof\nfix device at=00+0x1\nend\nfix device at=00+0x2", "4: 'fix': expected nothing after"},
    {"proof\nfix device at=00+0x1\n", "the file is cut short"},
    {"proof\nend\n", "there is no fix in it"},
};

START_TEST(a_bad_line_of_fixes_is_named_with_what_was_expected)
{
  const char *text = bad_fixes[_i].text;
  ck_assert_int_eq(fix_list_parse(&rules, "f", text, strlen(text)), WEIR_EINVAL);
  const char *message = weir_error_message();
  ck_assert_msg(!strncmp(message, "f:", 2) && strstr(message + 2, bad_fixes[_i].said), "%s",
                message);
}
END_TEST

START_TEST(fixes_are_no_rules_and_rules_no_fixes)
{
  ck_assert_int_eq(rule_list_parse(&rules, "f", fixes, sizeof fixes - 1), WEIR_EINVAL);
  ck_assert_int_eq(fix_list_parse(&rules, "f", "passthrough\nend\n", 16), WEIR_EINVAL);
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
                                       "0",
                                       "proof",
                                       "fix device",
                                       " at=",
                                       "0f+0x1",
                                       ",",
                                       " card=",
                                       " gain=1",
                                       "\nend"};
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
    (void)fix_list_parse(&rules, "f", exact, n);
    for (unsigned i = 0; i < rules.count; i++)
      ck_assert(rules.rule[i].frames - 1 < WEIR_RULE_FRAMES && rules.rule[i].fix &&
                rules.rule[i].proof < rules.proofs);
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
  tcase_add_test(c, fixes_have_places_and_proofs);
  tcase_add_test(c, fixes_that_are_cut_short_are_refused);
  tcase_add_loop_test(c, a_bad_line_of_fixes_is_named_with_what_was_expected, 0,
                      (int)(sizeof bad_fixes / sizeof *bad_fixes));
  tcase_add_test(c, fixes_are_no_rules_and_rules_no_fixes);
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
