/* test_gains.c: time that two findings gain is the first one's, and how far the sum of one may be
 * off. */
#include <check.h>
#include "reports/findings/gains.h"

static wr_gains two_findings(void)
{
  wr_gains x;
  ck_assert(wr_gains_open(&x, 2));
  return x;
}

static void check_added(wr_gains *x, uint64_t first, uint64_t second)
{
  wr_gains_end(x);
  ck_assert_uint_eq(x->gain[0].added, first);
  ck_assert_uint_eq(x->gain[1].added, second);
  wr_gains_close(x);
}

/* Copies that return at once: 5 us of the device each, one us after another. */
START_TEST(pieces_of_a_device_follow_one_another)
{
  wr_gains x = two_findings();
  x.gain[0].queued = true;
  for (uint64_t i = 0; i < 100; i++)
    wr_gains_add(&x, 0, 1000 + i * 1000, 5000);
  wr_gains_add(&x, 1, 400000, 200000); /* the wait after them: 101 us of it are theirs */
  check_added(&x, 500000, 99000);
}
END_TEST

START_TEST(time_of_two_findings_is_the_first_ones)
{
  wr_gains x = two_findings();
  wr_gains_add(&x, 1, 100, 500);
  wr_gains_add(&x, 0, 200, 100);
  wr_gains_add(&x, 0, 550, 200);
  ck_assert_uint_eq(x.gain[1].sum, 500);
  check_added(&x, 300, 350);
}
END_TEST

START_TEST(calls_at_one_time_are_gained_once)
{
  wr_gains x = two_findings();
  for (uint64_t i = 0; i < 8; i++)
    wr_gains_add(&x, 0, 1000 + i * 10, 100);
  wr_gains_add(&x, 1, 1100, 50);
  check_added(&x, 170, 0);
}
END_TEST

START_TEST(a_finding_that_is_none_gains_nothing)
{
  wr_gains x = two_findings();
  wr_gains_add(&x, 2, 0, 100);
  wr_gains_add(&x, 0, 0, 0);
  wr_gains_add(&x, 1, 0, UINT64_MAX);
  ck_assert_uint_eq(x.gain[0].pieces, 0);
  check_added(&x, 0, UINT64_MAX);
}
END_TEST

/* The interval of so many pieces, of which each takes ns by its number. */
static bool interval_of(uint64_t pieces, uint64_t (*ns)(uint64_t i), uint64_t *low, uint64_t *high)
{
  wr_gains x = two_findings();
  for (uint64_t i = 0; i < pieces; i++)
    wr_gains_add(&x, 0, i * 1000, ns(i));
  wr_gains_end(&x);
  bool is = wr_gain_interval(&x.gain[0], low, high);
  wr_gains_close(&x);
  return is;
}

static uint64_t gain_alike(uint64_t i)
{
  (void)i;
  return 100;
}

static uint64_t by_turns(uint64_t i)
{
  return i % 2 ? 150 : 50;
}

static uint64_t slower_at_the_end(uint64_t i)
{
  return i < 500 ? 50 : 150;
}

START_TEST(few_pieces_have_no_interval)
{
  uint64_t low, high;
  ck_assert(!interval_of(WR_GAIN_LEAST_PIECES - 1, gain_alike, &low, &high));
  ck_assert(interval_of(WR_GAIN_LEAST_PIECES, gain_alike, &low, &high));
}
END_TEST

START_TEST(an_interval_is_as_wide_as_tenths_differ)
{
  uint64_t low, high;
  ck_assert(interval_of(1000, gain_alike, &low, &high));
  ck_assert(low == 100000 && high == 100000);
  ck_assert(interval_of(1000, by_turns, &low, &high));
  ck_assert(low >= 99000 && high <= 101000);
  ck_assert(interval_of(1000, slower_at_the_end, &low, &high));
  ck_assert_msg(low > 50000 && low < 80000 && high > 120000 && high < 150000, "%llu to %llu",
                (unsigned long long)low, (unsigned long long)high);
}
END_TEST

/* Sixteen tenths of two pieces: fifteen of 200 and one of 2000 have a deviation of 450, times 4 of
 * their number, times Student's 2.131. */
static uint64_t one_in_sixteen(uint64_t i)
{
  return i / 2 == 5 ? 1000 : 100;
}

START_TEST(an_interval_is_students)
{
  uint64_t low, high;
  ck_assert(interval_of(32, one_in_sixteen, &low, &high));
  ck_assert_msg(low >= 1160 && low <= 1170 && high >= 8830 && high <= 8840, "%llu to %llu",
                (unsigned long long)low, (unsigned long long)high);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/gains");
  TCase *t = tcase_create("gains");
  tcase_add_test(t, pieces_of_a_device_follow_one_another);
  tcase_add_test(t, time_of_two_findings_is_the_first_ones);
  tcase_add_test(t, calls_at_one_time_are_gained_once);
  tcase_add_test(t, a_finding_that_is_none_gains_nothing);
  tcase_add_test(t, few_pieces_have_no_interval);
  tcase_add_test(t, an_interval_is_as_wide_as_tenths_differ);
  tcase_add_test(t, an_interval_is_students);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
