/* test_json.c: the reader of JSON takes what RFC 8259 has and nothing else. */
#include <string.h>
#include "core/base/json.h"
#include "tests/io/io.h"

static char text[1 << 16];

/* A reader over a copy that ends where the text ends: a byte more is past the buffer's use. */
static json_reader reader_of_copy(const char *from)
{
  size_t n = strlen(from);
  memcpy(text, from, n + 1);
  text[n] = '"'; /* whoever reads on would find an end */
  return json_reader_of(text, n);
}

static weir_status skip_all(const char *from)
{
  json_reader j = reader_of_copy(from);
  weir_status st = json_reader_skip(&j);
  return st ? st : json_reader_finish(&j);
}

START_TEST(what_is_json_is_taken)
{
  static const char *const good[] = {"{}",
                                     "[]",
                                     " [ ] ",
                                     "[1,2]",
                                     "[[],{}]",
                                     "true",
                                     "false",
                                     "null",
                                     "0",
                                     "-0",
                                     "-12.50e+3",
                                     "1E9",
                                     "\"\"",
                                     "{\"a\":[{\"b\":{}}],\"c\":\"d\"}",
                                     "\"\\u00e9\\n\\/\\ud83d\\ude00\"",
                                     "\"\xc3\xa9\"",
                                     "\"\xf0\x9f\x98\x80\"",
                                     "\t\r\n 1 ",
                                     "[true,false,null,\"x\",-1]"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    ck_assert_msg(!skip_all(good[i]), "%s: %s", good[i], weir_error_message());
}
END_TEST

START_TEST(what_is_not_json_is_refused)
{
  static const char *const bad[] = {"",
                                    " ",
                                    "{",
                                    "[",
                                    "}",
                                    "]",
                                    "[1,]",
                                    "[,1]",
                                    "[1 2]",
                                    "{\"a\"}",
                                    "{\"a\":}",
                                    "{\"a\":1,}",
                                    "{a:1}",
                                    "{\"a\":1]",
                                    "[1}",
                                    "tru",
                                    "nul",
                                    "+1",
                                    "01",
                                    "-",
                                    "1.",
                                    ".5",
                                    "1e",
                                    "1e+",
                                    "0x1",
                                    "NaN",
                                    "\"",
                                    "\"\\\"",
                                    "\"\\x\"",
                                    "\"\\u12\"",
                                    "\"\\u12g4\"",
                                    "\"\\ud800\"",
                                    "\"\\ud800\\u0041\"",
                                    "\"\\udc00\"",
                                    "\"\\u0000\"",
                                    "\"\n\"",
                                    "\"\x01\"",
                                    "\"\xff\"",
                                    "\"\xc0\x80\"",
                                    "\"\xed\xa0\x80\"",
                                    "\"\xf4\x90\x80\x80\"",
                                    "\"\xe2\x82\"",
                                    "'a'",
                                    "1 1",
                                    "{} {}",
                                    "[1]x",
                                    "// c\n1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_msg(skip_all(bad[i]) == WEIR_ECORRUPT, "%s was taken", bad[i]);
    ck_assert_ptr_nonnull(strstr(weir_error_message(), "JSON, byte "));
  }
}
END_TEST

START_TEST(depth_has_a_bound)
{
  static char deep[40000];
  memset(deep, '[', 64);
  memset(deep + 64, ']', 64);
  deep[128] = 0;
  ck_assert_int_eq(skip_all(deep), WEIR_OK);
  memset(deep, '[', sizeof deep - 1);
  must_fail(skip_all(deep), WEIR_ECORRUPT, "nested too deeply");
}
END_TEST

START_TEST(strings_are_decoded_where_they_stand)
{
  char *s;
  json_reader j = reader_of_copy("\"a\\\"\\u00e9\\u20ac\\ud83d\\ude00\\t\"");
  must(json_reader_string(&j, &s));
  ck_assert_str_eq(s, "a\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\t");
  must(json_reader_finish(&j));
}
END_TEST

START_TEST(numbers_go_to_the_last_bit)
{
  uint64_t n;
  json_reader j = reader_of_copy("18446744073709551615");
  must(json_reader_unsigned(&j, &n));
  ck_assert(n == UINT64_MAX);
  static const char *const bad[] = {"18446744073709551616",
                                    "99999999999999999999",
                                    "-1",
                                    "1.0",
                                    "1e3",
                                    "00",
                                    "\"1\"",
                                    "",
                                    "true"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    j = reader_of_copy(bad[i]);
    ck_assert_msg(json_reader_unsigned(&j, &n) == WEIR_ECORRUPT, "%s was taken", bad[i]);
  }
}
END_TEST

START_TEST(objects_are_read_piece_by_piece)
{
  json_reader j = reader_of_copy("{\"a\": [1, 2 ,3], \"b\" : {\"c\":[]} }");
  char *key;
  uint64_t n, sum = 0;
  bool more, inner;
  must(json_reader_open(&j, '{'));
  must(json_reader_next(&j, '}', &more));
  ck_assert(more);
  must(json_reader_key(&j, &key));
  ck_assert_str_eq(key, "a");
  must(json_reader_open(&j, '['));
  while (!json_reader_next(&j, ']', &inner) && inner) {
    must(json_reader_unsigned(&j, &n));
    sum += n;
  }
  ck_assert_uint_eq(sum, 6);
  must(json_reader_next(&j, '}', &more));
  ck_assert(more);
  must(json_reader_key(&j, &key));
  ck_assert_str_eq(key, "b");
  must(json_reader_skip(&j));
  must(json_reader_next(&j, '}', &more));
  ck_assert(!more);
  must(json_reader_finish(&j));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/json");
  TCase *c = tcase_create("json");
  tcase_add_test(c, what_is_json_is_taken);
  tcase_add_test(c, what_is_not_json_is_refused);
  tcase_add_test(c, depth_has_a_bound);
  tcase_add_test(c, strings_are_decoded_where_they_stand);
  tcase_add_test(c, numbers_go_to_the_last_bit);
  tcase_add_test(c, objects_are_read_piece_by_piece);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
