/* test_records.c: records are found by their keys and by no other, however many there are; sets
 * of ranges hold what a plain array of them holds, with few ranges and with many; starts of events
 * are what they were, or not known; sorted records are as qsort() has them. */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include "core/base/map.h"
#include "reports/findings/address_set.h"
#include "reports/base/sort.h"
#include "reports/findings/records.h"
#include "reports/findings/starts.h"

enum { MANY = 200000, DRAWS = 40000, SPAN = 4096, LONGEST = 64, MOST = 256 };

typedef struct record {
  uint64_t key, value;
} record;

static uint64_t state = 20261129;

static uint64_t draw_below(uint64_t n)
{
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (state >> 33) % n;
}

START_TEST(records_are_found_by_their_keys)
{
  wr_records x = {0};
  bool added;
  for (int round = 0; round < 2; round++) {
    for (uint64_t n = 0; n < MANY; n++) {
      record *r = wr_records_place(&x, hash_mix(1, n), sizeof(*r), &added);
      ck_assert(r && added);
      r->value = n;
    }
    ck_assert_uint_eq(x.count, MANY);
    for (uint64_t n = 0; n < MANY; n++) {
      const record *r = wr_records_find(&x, hash_mix(1, n), sizeof(*r));
      if (!r || r->value != n) ck_abort_msg("record %llu", (unsigned long long)n);
      if (wr_records_place(&x, hash_mix(1, n), sizeof(*r), &added) != r || added)
        ck_abort_msg("record %llu is there twice", (unsigned long long)n);
      if (wr_records_find(&x, hash_mix(1, MANY + n), sizeof(*r)))
        ck_abort_msg("a stranger is found");
    }
    wr_records_clear(&x);
    ck_assert_ptr_null(wr_records_find(&x, hash_mix(1, 0), sizeof(record)));
  }
  wr_records_free(&x);
}
END_TEST

/* Keys that share their slot and the bits that slots keep of them. */
START_TEST(keys_that_are_alike_are_told_apart)
{
  wr_records x = {0};
  bool added;
  for (uint64_t n = 0; n < MOST; n++) {
    record *r = wr_records_place(&x, n << 32 | 5, sizeof(*r), &added);
    ck_assert(r && added);
    r->value = n;
  }
  for (uint64_t n = 0; n < MOST; n++) {
    const record *r = wr_records_find(&x, n << 32 | 5, sizeof(*r));
    ck_assert(r && r->value == n);
  }
  wr_records_free(&x);
}
END_TEST

typedef struct plain { /* what the set has to hold */
  wr_range range[MOST];
  size_t count;
} plain;

static bool overlaps(const wr_range *r, uint64_t begin, uint64_t bytes)
{
  return r->begin < begin + (bytes ? bytes : 1) && r->end > begin;
}

static void drop_plain(plain *p, uint64_t begin, uint64_t bytes)
{
  size_t kept = 0;
  for (size_t i = 0; i < p->count; i++)
    if (!overlaps(&p->range[i], begin, bytes)) p->range[kept++] = p->range[i];
  p->count = kept;
}

static void compare_sets(const wr_ranges *r, const plain *p, uint64_t at)
{
  const wr_range *found = wr_ranges_find(r, at, 1);
  const wr_range *wanted = NULL;
  for (size_t i = 0; i < p->count; i++)
    if (overlaps(&p->range[i], at, 1)) wanted = &p->range[i];
  ck_assert_uint_eq(r->count, p->count);
  ck_assert_int_eq(found != NULL, wanted != NULL);
  if (found) ck_assert_int_eq(found->value, wanted->value);
  ck_assert_int_eq(wr_ranges_any(r) != NULL, p->count > 0);
}

/* `most` ranges at once: few that are near, or many of which most are in the tree. */
static void compare_with_plain(size_t most)
{
  wr_ranges r = {0};
  plain p = {.count = 0};
  for (int64_t n = 1; n <= DRAWS; n++) {
    uint64_t begin = draw_below(SPAN * most), bytes = draw_below(LONGEST);
    if (p.count < most && draw_below(3)) {
      ck_assert(wr_ranges_put(&r, begin, bytes, n));
      drop_plain(&p, begin, bytes);
      if (bytes) p.range[p.count++] = (wr_range){begin, begin + bytes, n};
    } else if (draw_below(500)) {
      uint64_t far = draw_below(4) ? bytes : bytes * SPAN;
      wr_ranges_drop(&r, begin, far);
      drop_plain(&p, begin, far);
    } else {
      wr_ranges_clear(&r);
      p.count = 0;
    }
    compare_sets(&r, &p, p.count ? p.range[draw_below(p.count)].begin : begin);
    compare_sets(&r, &p, draw_below(SPAN * most));
  }
  wr_ranges_clear(&r);
}

START_TEST(a_set_of_ranges_holds_what_an_array_holds)
{
  compare_with_plain(WR_RANGES_NEAR / 2);
  compare_with_plain(MOST);
}
END_TEST

/* ---- starts ---------------------------------------------------------------------------------- */

START_TEST(starts_are_what_they_were_or_not_known)
{
  wr_starts x;
  int64_t start = 0, at = 1;
  size_t known = 0;
  ck_assert(wr_starts_open(&x, MANY));
  int64_t *plain = calloc(MANY + 1, sizeof(*plain));
  ck_assert_ptr_nonnull(plain);
  for (int64_t n = 0; n < MANY; n++, at += (int64_t)draw_below(n % 1000 ? 1000 : INT64_C(1) << 33))
    wr_starts_add(&x, n / 8 + n % 8 * (MANY / 8), plain[n / 8 + n % 8 * (MANY / 8)] = at);
  for (int64_t n = 0; n < MANY; n++) {
    if (!wr_starts_find(&x, n, &start)) continue;
    ck_assert_int_eq(start, plain[n]);
    known++;
  }
  ck_assert_uint_gt(known, MANY / 2);
  ck_assert_uint_lt(known, MANY); /* some are too far from the first that is near them */
  ck_assert_uint_eq(wr_starts_places(&x), known);
  for (size_t i = 1; i < known; i++)
    ck_assert_int_le(plain[wr_starts_at(&x, i - 1)], plain[wr_starts_at(&x, i)]);
  ck_assert(!wr_starts_find(&x, -1, &start));
  ck_assert(!wr_starts_find(&x, MANY + 1, &start));
  wr_starts_add(&x, MANY + 1, 5);
  wr_starts_close(&x);
  ck_assert(wr_starts_open(&x, WR_STARTS_MOST));
  wr_starts_add(&x, 5, 5);
  ck_assert(!wr_starts_find(&x, 5, &start));
  wr_starts_close(&x);
  free(plain);
}
END_TEST

/* ---- sorting --------------------------------------------------------------------------------- */

typedef struct sorted_one {
  uint64_t place; /* before they are sorted */
  int64_t number;
  uint32_t rest;
} sorted_one;

static int by_number_and_place(const void *left, const void *right)
{
  const sorted_one *a = left, *b = right;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return a->place < b->place ? -1 : a->place > b->place;
}

/* How numbers lie: all over, in order but for some, nearly all in one place, few of them, at the
 * ends. */
static int64_t number_of_kind(int kind, uint64_t n)
{
  switch (kind) {
  case 0:
    return (int64_t)draw_below(1U << 30) - 1000;
  case 1:
    return (int64_t)(n * 3 + draw_below(100));
  case 2:
    return n % 1000 ? (int64_t)draw_below(50000) : (int64_t)draw_below(1U << 30) << 12;
  case 3:
    return (int64_t)draw_below(3);
  default:
    return n % 2 ? INT64_MAX - (int64_t)draw_below(1000) : INT64_MIN + (int64_t)draw_below(1000);
  }
}

START_TEST(sorted_records_are_as_qsort_has_them)
{
  static const size_t counts[] = {0, 255, 256, 300, 5000, 70000};
  for (int i = 0; i < 30; i++) {
    size_t count = counts[i % 6];
    sorted_one *a = calloc(count + 1, sizeof(*a)), *b = calloc(count + 1, sizeof(*b));
    ck_assert(a && b);
    for (size_t n = 0; n < count; n++)
      a[n] = b[n] = (sorted_one){n, number_of_kind(i / 6, n), (uint32_t)n};
    bool sorted = wr_sort_records(a, count, sizeof(*a), offsetof(sorted_one, number));
    ck_assert(sorted == (count >= 256));
    if (sorted) qsort(b, count, sizeof(*b), by_number_and_place);
    for (size_t n = 0; n < count; n++)
      ck_assert(a[n].place == b[n].place && a[n].number == b[n].number && a[n].rest == b[n].rest);
    free(a);
    free(b);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/records");
  TCase *t = tcase_create("records");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, records_are_found_by_their_keys);
  tcase_add_test(t, keys_that_are_alike_are_told_apart);
  tcase_add_test(t, a_set_of_ranges_holds_what_an_array_holds);
  tcase_add_test(t, starts_are_what_they_were_or_not_known);
  tcase_add_test(t, sorted_records_are_as_qsort_has_them);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
