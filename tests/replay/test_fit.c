/* test_fit.c: whether a list fits on a device, what size it needs, why it does not fit. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/replay/rig.h"
#include "tests/tools/command.h"
#include "tools/replay/fit.h"

enum { SEEDS = AT_LEVEL(10, 40, 400) };

static rp_ops list;

static void clear_list(void)
{
  rp_ops_clear(&list);
}

static void append_alloc(uint64_t address, uint64_t bytes, uint64_t time)
{
  uint16_t heap;
  ck_assert_int_eq(rp_ops_heap(&list, 0, &heap), WEIR_OK);
  rp_op op = {.address = address, .bytes = bytes, .time = time, .heap = heap};
  ck_assert_int_eq(rp_ops_alloc(&list, op), WEIR_OK);
}

static void append_free(uint64_t address, uint64_t time)
{
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = address, .time = time}), WEIR_OK);
}

static rp_fit try_on(const rp_policy *policy, uint64_t capacity)
{
  rp_fit f;
  rp_options o = {.capacity = capacity};
  ck_assert_int_eq(rp_fit_try(&f, &list, policy, &o), WEIR_OK);
  return f;
}

/* Segments of 20 MiB: of the second one 18 MiB are left, of the first 12, and 20 MiB fit into
 * neither, though 30 MiB are free. */
START_TEST(a_list_that_does_not_fit_says_where_it_failed_with_what_left)
{
  append_alloc(1, 8 * RP_MIB, 0);
  append_alloc(2, 9 * RP_MIB, 1000);
  append_alloc(3, 9 * RP_MIB, 2000);
  append_free(2, 3000);
  append_alloc(4, 20 * RP_MIB, 4000);
  rp_fit f = try_on(&rp_pytorch, 40 * RP_MIB);
  ck_assert(!f.fits);
  ck_assert_uint_eq(f.number, 4);
  ck_assert_uint_eq(f.at_ns, 4000);
  ck_assert_uint_eq(f.bytes, 20 * RP_MIB);
  ck_assert_uint_eq(f.live, 17 * RP_MIB);
  ck_assert_uint_eq(f.largest, 12 * RP_MIB);
  ck_assert_uint_gt(f.needs, 58 * RP_MIB);
  ck_assert_uint_le(f.needs, 60 * RP_MIB);
}
END_TEST

START_TEST(a_list_that_fits_needs_no_more_than_there_is)
{
  append_alloc(1, 8 * RP_MIB, 0);
  rp_fit f = try_on(&rp_malloc, 8 * RP_MIB);
  ck_assert(f.fits);
  ck_assert_uint_eq(f.needs, 8 * RP_MIB);
  f = try_on(&rp_malloc, 6 * RP_MIB);
  ck_assert(!f.fits);
  ck_assert_uint_eq(f.needs, 8 * RP_MIB);
  ck_assert_uint_eq(f.largest, 6 * RP_MIB);
}
END_TEST

static uint64_t failures_on(const rp_policy *policy, uint64_t capacity)
{
  rp_result r;
  rp_options o = {.capacity = capacity};
  ck_assert_int_eq(rp_replay(&r, &list, policy, &o), WEIR_OK);
  return r.failed;
}

/* What is said is held by whole replays: none fails on what it needs, and what is asked for beyond
 * the largest piece is more than that. */
START_TEST(no_allocation_fails_on_the_device_that_a_list_needs)
{
  rig_random(&list, (uint64_t)_i + 1, 600, 2, 2);
  for (const rp_policy *const *p = rp_policies; *p; p++) {
    rp_result r;
    ck_assert_int_eq(rp_replay(&r, &list, *p, &(rp_options){0}), WEIR_OK);
    rp_fit f = try_on(*p, r.peak_live / 2 + 1);
    if (f.fits) continue;
    ck_assert_msg(failures_on(*p, f.needs) == 0, "%s, seed %d", (*p)->name, _i);
    ck_assert_msg(failures_on(*p, f.capacity) > 0, "%s, seed %d", (*p)->name, _i);
    ck_assert_uint_lt(f.largest, f.bytes);
    ck_assert_uint_gt(f.needs, f.capacity);
  }
}
END_TEST

START_TEST(the_command_answers_in_sentences_or_json)
{
  sh_status(
      0, "printf "
         "'Thread,Time,Action,Pointer,Size,Stream\\n1,00:00:00:000000,allocate,0x100,8388608,0\\n"
         "1,00:00:00:000001,allocate,0x200,9437184,0\\n' >two.csv");
  const outcome *o = sh_status(0, "$WEIR replay --capacity 16M two.csv");
  ck_assert_ptr_nonnull(strstr(o->out,
                               "With malloc it needs 18.0 MiB, and does not fit on 16.0 MiB:"
                               " allocation 2"));
  ck_assert_ptr_nonnull(strstr(o->out, "asked for 9.0 MiB; of 8.0 MiB that were free the largest "
                                       "piece was 8.0 MiB."));
  o = sh_status(0, "$WEIR replay --capacity 18M --policy malloc two.csv");
  ck_assert_ptr_nonnull(strstr(o->out, "\nFits on 18.0 MiB with malloc.\n"));
  json_t *j =
      json_loads(sh_status(0, "$WEIR replay -f json -c 16M -p malloc two.csv")->out, 0, NULL);
  ck_assert(json_is_false(json_object_get(j, "fits")));
  ck_assert_int_eq(json_integer_value(json_object_get(j, "needs")), 18 << 20);
  const json_t *failure = json_object_get(j, "first_failure");
  ck_assert_int_eq(json_integer_value(json_object_get(failure, "allocation")), 2);
  ck_assert_int_eq(json_integer_value(json_object_get(failure, "largest_piece")), 8 << 20);
  json_decref(j);
}
END_TEST

/* The record of a run that ended at a request of 8 GiB, with 1 MiB from before it. */
START_TEST(the_request_that_ended_a_run_decides_whether_it_fits)
{
  sh_status(
      0,
      "printf 'Thread,Time,Action,Pointer,Size,Stream\\n1,00:00:00:000000,free,0x100,1048576,0\\n"
      "1,00:00:00:000001,allocate,0x200,2097152,0\\n"
      "1,00:00:00:000002,allocate failure,(nil),8589934592,0\\n' >end.csv");
  const outcome *o = sh_status(0, "$WEIR replay --capacity 4G -p malloc end.csv");
  ck_assert_ptr_null(strstr(o->out, "Fits"));
  ck_assert_ptr_nonnull(strstr(o->out, "With malloc it needs 8.0 GiB, and does not fit on 4.0 GiB:"
                                       " allocation 2 "));
  ck_assert_ptr_nonnull(strstr(o->out, ", which failed when it was recorded, too, asked for 8.0"));
  ck_assert_ptr_nonnull(strstr(o->out, "\nFrom before the record began: 1 block, 1.0 MiB"));
  ck_assert_ptr_nonnull(
      strstr(o->out, "\nFailed when it was recorded: 1 request, the largest of 8"));
  o = sh_status(0, "$WEIR replay -p malloc end.csv");
  ck_assert_ptr_nonnull(strstr(o->out, "not in the table"));
  json_t *j =
      json_loads(sh_status(0, "$WEIR replay -f json -c 4G -p malloc end.csv")->out, 0, NULL);
  ck_assert_int_eq(json_integer_value(json_object_get(j, "held_before_bytes")), 1 << 20);
  ck_assert_int_eq(json_integer_value(json_object_get(j, "largest_failed_request")), 1LL << 33);
  ck_assert(
      json_is_true(json_object_get(json_object_get(j, "first_failure"), "failed_when_recorded")));
  json_decref(j);
}
END_TEST

START_TEST(the_place_of_the_allocation_that_failed_is_named)
{
  const outcome *o = sh_status(0, "$WEIR run -o t.db --sim -- $BUILD/examples/train >/dev/null && "
                                  "$WEIR replay --capacity 4K --policy malloc t.db");
  ck_assert_msg(strstr(o->out, " train.cu:") || strstr(o->out, "/train.cu:"), "%s", o->out);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("replay/fit");
  TCase *c = tcase_create("fit");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, NULL, clear_list);
  tcase_add_test(c, a_list_that_does_not_fit_says_where_it_failed_with_what_left);
  tcase_add_test(c, a_list_that_fits_needs_no_more_than_there_is);
  tcase_add_loop_test(c, no_allocation_fails_on_the_device_that_a_list_needs, 0, SEEDS);
  TCase *k = tcase_create("command");
  tcase_set_timeout(k, 0);
  tcase_add_checked_fixture(k, enter_scratch, leave_scratch);
  tcase_add_test(k, the_command_answers_in_sentences_or_json);
  tcase_add_test(k, the_request_that_ended_a_run_decides_whether_it_fits);
  tcase_add_test(k, the_place_of_the_allocation_that_failed_is_named);
  suite_add_tcase(s, c);
  suite_add_tcase(s, k);
  return run_suite(s);
}
