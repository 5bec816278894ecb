/* test_gains.c: time that two findings gain is the first one's, and how far the sum of one may be
 * off; claims are added up in order of time, however many there are. */
#include <check.h>
#include <stdlib.h>
#include "reports/findings/claims.h"
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

/* ---- claims ---------------------------------------------------------------------------------- */

enum {
  CLAIM_EVENTS = 4000,
  CLAIM_GROUPS = 3,
  NOT_PASSED = 97, /* of so many events one is not in the walk */
  FEW_CLAIMS = 3000,
  MANY_CLAIMS = 1100000 /* more than memory takes */
};

/* Eight threads, whose events follow each other in time and not by number. */
static int64_t start_of(int64_t event)
{
  const int64_t each = CLAIM_EVENTS / 8;
  return 1000 + (event % each * 8 + event / each) * 500;
}

static weir_status find_start(void *context, int64_t event, int64_t *start)
{
  (void)context;
  *start = start_of(event);
  return WEIR_OK;
}

typedef struct made_claim {
  const wr_claim *claim;
} made_claim;

/* In order of time, then of events, then of groups, then as they were made. */
static int by_claim(const void *left, const void *right)
{
  const wr_claim *a = ((const made_claim *)left)->claim, *b = ((const made_claim *)right)->claim;
  int64_t x = start_of(a->event), y = start_of(b->event);
  if (x != y) return x < y ? -1 : 1;
  if (a->event != b->event) return a->event < b->event ? -1 : 1;
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  return a < b ? -1 : a > b;
}

static wr_claim *make_claims(size_t count)
{
  wr_claim *c = calloc(count, sizeof(*c));
  uint64_t state = 20261130;
  ck_assert_ptr_nonnull(c);
  for (size_t i = 0; i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    c[i] = (wr_claim){.event = (int64_t)(state >> 33) % CLAIM_EVENTS,
                      .group = i * CLAIM_GROUPS / count,
                      .saving = state >> 20 & 511,
                      .rest = state >> 40 & 63,
                      .bytes = state >> 50 & 1023};
  }
  return c;
}

/* Adds the claims up one by one. */
static uint64_t add_plainly(wr_gains *gains, const wr_claim *claims, size_t count)
{
  made_claim *order = calloc(count, sizeof(*order));
  uint64_t moved = 0, bytes = 0;
  ck_assert_ptr_nonnull(order);
  for (size_t i = 0; i < count; i++)
    order[i].claim = &claims[i];
  qsort(order, count, sizeof(*order), by_claim);
  for (size_t i = 0; i < count; i++) {
    const wr_claim *c = order[i].claim;
    if (i && c->event != order[i - 1].claim->event) moved += bytes, bytes = 0;
    if (c->bytes > bytes) bytes = c->bytes;
    wr_gains_add(gains, c->group, (uint64_t)start_of(c->event), c->saving);
  }
  free(order);
  wr_gains_end(gains);
  return moved + bytes;
}

static void compare_claims(size_t count)
{
  wr_claims x;
  wr_gains gains, plain;
  static const size_t rank[] = {0, 0, 1, 2};
  ck_assert_int_eq(wr_claims_open(&x, CLAIM_EVENTS), WEIR_OK);
  ck_assert(wr_gains_open(&gains, CLAIM_GROUPS) && wr_gains_open(&plain, CLAIM_GROUPS));
  for (int64_t i = 0, each = CLAIM_EVENTS / 8; i < CLAIM_EVENTS; i++) {
    int64_t event = i / 8 + i % 8 * each;
    if (event % NOT_PASSED) wr_starts_add(&x.starts, event, start_of(event));
  }
  for (size_t i = 0; i < CLAIM_GROUPS; i++) {
    ck_assert_uint_eq(wr_claims_group(&x), i);
    x.group[i].finding = i + 1;
  }
  wr_claim *claims = make_claims(count);
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(wr_claims_add(&x, &claims[i]), WEIR_OK);
  wr_claims_end end = {
      .rank = rank, .gains = &gains, .duration = 1000000000, .find_start = find_start};
  ck_assert_int_eq(wr_claims_add_up(&x, &end), WEIR_OK);
  wr_gains_end(&gains);
  ck_assert_uint_eq(end.moved_bytes, add_plainly(&plain, claims, count));
  ck_assert_mem_eq(gains.gain, plain.gain, CLAIM_GROUPS * sizeof(*gains.gain));
  free(claims);
  wr_gains_close(&gains);
  wr_gains_close(&plain);
  wr_claims_close(&x);
}

START_TEST(claims_are_added_up_in_order_of_time)
{
  compare_claims(FEW_CLAIMS);
  compare_claims(MANY_CLAIMS);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/gains");
  TCase *t = tcase_create("gains");
  tcase_set_timeout(t, 0);
  tcase_add_test(t, pieces_of_a_device_follow_one_another);
  tcase_add_test(t, time_of_two_findings_is_the_first_ones);
  tcase_add_test(t, calls_at_one_time_are_gained_once);
  tcase_add_test(t, a_finding_that_is_none_gains_nothing);
  tcase_add_test(t, few_pieces_have_no_interval);
  tcase_add_test(t, an_interval_is_as_wide_as_tenths_differ);
  tcase_add_test(t, an_interval_is_students);
  tcase_add_test(t, claims_are_added_up_in_order_of_time);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
