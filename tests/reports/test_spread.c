/* test_spread.c: few operations that took far longer than the others at their place are set apart,
 * and nothing else is. */
#include <check.h>
#include "reports/findings/spread.h"

static wr_spread add_many(wr_spread s, int count, uint64_t ns, uint64_t bytes)
{
  for (int i = 0; i < count; i++)
    ck_assert(wr_spread_add(&s, ns + (uint64_t)i % 7, bytes));
  return s;
}

static wr_slow slow_of(wr_spread s)
{
  wr_slow slow = wr_spread_slow(&s, 0);
  wr_spread_free(&s);
  return slow;
}

START_TEST(one_interrupted_call_of_forty_is_set_apart)
{
  wr_slow slow = slow_of(add_many(add_many((wr_spread){0}, 39, 5000, 64), 1, 2000000, 64));
  ck_assert_uint_eq(slow.count, 1);
  ck_assert_uint_ge(slow.ns, 1990000);
  ck_assert_uint_lt(slow.ns, 2000000);
  ck_assert(slow.median >= 5000 && slow.median < 5007);
  ck_assert(slow.least > 8 * 5000 && slow.least <= 2000000);
}
END_TEST

START_TEST(a_hundredth_is_set_apart_and_no_more)
{
  wr_slow slow = slow_of(add_many(add_many((wr_spread){0}, 990, 5000, 0), 10, 900000, 0));
  ck_assert_uint_eq(slow.count, 10);
  slow = slow_of(add_many(add_many((wr_spread){0}, 980, 5000, 0), 20, 900000, 0));
  ck_assert_uint_eq(slow.count, 0);
  ck_assert_uint_eq(slow.ns, 0);
}
END_TEST

START_TEST(what_moves_more_takes_longer_with_right)
{
  wr_slow slow = slow_of(add_many(add_many((wr_spread){0}, 99, 5000, 4096), 1, 900000, 1 << 20));
  ck_assert_uint_eq(slow.count, 0);
  slow = slow_of(add_many(add_many((wr_spread){0}, 99, 5000, 4096), 1, 900000, 4096));
  ck_assert_uint_eq(slow.count, 1);
}
END_TEST

START_TEST(of_few_or_like_operations_none_is_set_apart)
{
  ck_assert_uint_eq(slow_of((wr_spread){0}).count, 0);
  ck_assert_uint_eq(slow_of(add_many(add_many((wr_spread){0}, 6, 50, 0), 1, 900000, 0)).count, 0);
  wr_spread all = {0};
  for (uint64_t i = 0; i < 1000; i++)
    ck_assert(wr_spread_add(&all, 1000 + i * 7, 0));
  ck_assert_uint_eq(slow_of(all).count, 0);
}
END_TEST

/* A tenth took three times as long: so do some by right, unless the run waited as long for a processor. */
START_TEST(what_waits_for_a_processor_explains_is_set_apart)
{
  wr_spread s = add_many(add_many((wr_spread){0}, 90, 5000, 64), 10, 16000, 64);
  ck_assert_uint_eq(wr_spread_slow(&s, 0).count, 0);
  ck_assert_uint_eq(wr_spread_slow(&s, 10 * 10000).count, 0);
  wr_slow slow = wr_spread_slow(&s, 10 * 12000);
  ck_assert_uint_eq(slow.count, 10);
  ck_assert(slow.ns > 10 * 10000 && slow.ns <= 10 * 12000);
  s = add_many(s, 10, 900000, 64);
  ck_assert_uint_eq(wr_spread_slow(&s, 10 * 12000).count, 0);
  wr_spread_free(&s);
}
END_TEST

START_TEST(numbers_that_no_run_has_do_no_harm)
{
  wr_spread all = {0};
  for (int i = 0; i < 100; i++)
    ck_assert(wr_spread_add(&all, i % 2 ? UINT64_MAX : 0, UINT64_MAX));
  ck_assert_uint_eq(slow_of(all).count, 0);
  all = add_many((wr_spread){0}, 99, 0, 0);
  ck_assert(wr_spread_add(&all, UINT64_MAX, 0));
  ck_assert_uint_eq(slow_of(all).count, 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/spread");
  TCase *t = tcase_create("spread");
  tcase_add_test(t, one_interrupted_call_of_forty_is_set_apart);
  tcase_add_test(t, a_hundredth_is_set_apart_and_no_more);
  tcase_add_test(t, what_moves_more_takes_longer_with_right);
  tcase_add_test(t, of_few_or_like_operations_none_is_set_apart);
  tcase_add_test(t, what_waits_for_a_processor_explains_is_set_apart);
  tcase_add_test(t, numbers_that_no_run_has_do_no_harm);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
