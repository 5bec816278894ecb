/* test_base.c: status, options, clock, map, version, and the table of functions. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/keep.h"
#include "core/base/map.h"
#include "core/base/options.h"
#include "core/base/rank.h"
#include "core/base/trace_name.h"
#include "core/base/trylock.h"
#include "core/trace/api.h"
#include "core/weir.h"
#include "tests/core/support.h"

/* ---- status ---------------------------------------------------------------------------------- */

START_TEST(every_status_has_a_sentence)
{
  static const weir_status all[] = {
#define VALUE(name, value, text) WEIR_##name,
      WEIR_STATUS_MAP(VALUE)
#undef VALUE
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    ck_assert_str_ne(weir_status_string(all[i]), "unknown status");
  ck_assert_str_eq(weir_status_string((weir_status)9999), "unknown status");
  ck_assert_str_eq(weir_status_string(WEIR_OK), "success");
}
END_TEST

START_TEST(fail_keeps_the_sentence_the_status_and_errno)
{
  ck_assert_str_eq(weir_error_message(), "");
  errno = ERANGE;
  ck_assert_int_eq(weir_fail(WEIR_ELIMIT, "%d of %s", 3, "four"), WEIR_ELIMIT);
  ck_assert_int_eq(errno, ERANGE);
  ck_assert_str_eq(weir_error_message(), "3 of four");
  weir_fail_errno(WEIR_EIO, ENOSPC, "cannot write %s", "x");
  ck_assert_str_eq(weir_error_message(), "cannot write x: No space left on device");
  ck_assert_int_eq(errno, ERANGE);
  weir_fail(WEIR_EIO, "again: %s", weir_error_message());
  ck_assert_str_eq(weir_error_message(), "again: cannot write x: No space left on device");
}
END_TEST

START_TEST(a_long_sentence_is_cut_at_511_bytes)
{
  char text[2000];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = 0;
  weir_fail(WEIR_EIO, "%s", text);
  ck_assert_uint_eq(strlen(weir_error_message()), 511);
  weir_fail_errno(WEIR_EIO, ENOENT, "%s", text);
  ck_assert_uint_eq(strlen(weir_error_message()), 511);
}
END_TEST

static void *fail_here(void *seen)
{
  *(bool *)seen = !strcmp(weir_error_message(), "");
  weir_fail(WEIR_EIO, "of the other thread");
  return NULL;
}

START_TEST(the_sentence_is_of_the_thread)
{
  pthread_t thread;
  bool was_empty = false;
  weir_fail(WEIR_EIO, "of this thread");
  pthread_create(&thread, NULL, fail_here, &was_empty);
  pthread_join(thread, NULL);
  ck_assert(was_empty);
  ck_assert_str_eq(weir_error_message(), "of this thread");
}
END_TEST

START_TEST(the_version_is_the_headers)
{
  ck_assert_str_eq(weir_version(), WEIR_VERSION);
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

static const struct {
  const char *text;
  uint64_t bytes;
} sizes[] = {{"0", 0},
             {"1", 1},
             {"4096", 4096},
             {"64M", 64u << 20},
             {"64m", 64 << 20},
             {"64MB", 64 << 20},
             {"2KiB", 2048},
             {"1G", 1u << 30},
             {"3T", UINT64_C(3) << 40},
             {"7B", 7},
             {"18446744073709551615", UINT64_MAX}};

START_TEST(sizes_are_parsed)
{
  uint64_t bytes = 99;
  ck_assert_int_eq(option_size(&bytes, "X", sizes[_i].text, 0), WEIR_OK);
  ck_assert_uint_eq(bytes, sizes[_i].bytes);
}
END_TEST

static const char *const bad_sizes[] = {"",
                                        "M",
                                        "-1",
                                        "64 M",
                                        " 64M",
                                        "64X",
                                        "64MX",
                                        "1.5G",
                                        "0x10",
                                        "18446744073709551616",
                                        "99999999999999999999G",
                                        "18014398509481984K",
                                        "64Mi",
                                        "64K\n",
                                        "KB"};

START_TEST(bad_sizes_are_refused_and_change_nothing)
{
  uint64_t bytes = 99;
  ck_assert_int_eq(option_size(&bytes, "WEIR_SPOOL_LIMIT", bad_sizes[_i], 0), WEIR_EINVAL);
  ck_assert_uint_eq(bytes, 99);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "WEIR_SPOOL_LIMIT="));
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "64M"));
}
END_TEST

START_TEST(a_size_below_the_least_is_refused)
{
  uint64_t bytes = 99;
  ck_assert_int_eq(option_size(&bytes, "LIMIT", "1K", 4096), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "LIMIT=1K is 1024 bytes; the least is 4096");
}
END_TEST

START_TEST(booleans_are_parsed)
{
  static const char *const yes[] = {"on", "ON", "yes", "true", "1"};
  static const char *const no[] = {"off", "No", "false", "0"};
  bool value = false;
  for (size_t i = 0; i < 5; i++) {
    value = false;
    ck_assert_int_eq(option_bool(&value, "X", yes[i]), WEIR_OK);
    ck_assert(value);
  }
  for (size_t i = 0; i < 4; i++) {
    value = true;
    ck_assert_int_eq(option_bool(&value, "X", no[i]), WEIR_OK);
    ck_assert(!value);
  }
  ck_assert_int_eq(option_bool(&value, "X", "maybe"), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "valid: on, off"));
}
END_TEST

START_TEST(off_or_a_number)
{
  uint64_t n = 99;
  ck_assert_int_eq(option_off_or_number(&n, "WEIR_STACKS", "off", 128), WEIR_OK);
  ck_assert_uint_eq(n, 0);
  ck_assert_int_eq(option_off_or_number(&n, "WEIR_STACKS", "128", 128), WEIR_OK);
  ck_assert_uint_eq(n, 128);
  static const char *const bad[] = {"129", "0", "-1", "on", "", "12x"};
  for (size_t i = 0; i < 6; i++) {
    n = 99;
    ck_assert_int_eq(option_off_or_number(&n, "WEIR_STACKS", bad[i], 128), WEIR_EINVAL);
    ck_assert_uint_eq(n, 99);
    ck_assert_ptr_nonnull(strstr(weir_error_message(), "neither off nor a number from 1 to 128"));
  }
}
END_TEST

START_TEST(numbers_and_choices)
{
  static const char *const modes[] = {"observe", "strict", "relaxed", NULL};
  uint64_t n = 99;
  unsigned choice = 99;
  ck_assert_int_eq(option_number(&n, "N", "7", 7, 9), WEIR_OK);
  ck_assert_uint_eq(n, 7);
  ck_assert_int_eq(option_number(&n, "N", "10", 7, 9), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "N=10 is not a number from 7 to 9");
  ck_assert_int_eq(option_choice(&choice, "MODE", "strict", modes), WEIR_OK);
  ck_assert_uint_eq(choice, 1);
  ck_assert_int_eq(option_choice(&choice, "MODE", "Strict", modes), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "MODE=Strict is not known; valid: observe, strict, relaxed");
}
END_TEST

START_TEST(what_a_recorder_keeps_is_a_size_a_time_or_both)
{
  static const struct {
    const char *text;
    keep_size keep;
  } good[] = {{"64M", {UINT64_C(64) << 20, 0}},
              {"1048576", {1 << 20, 0}},
              {"2g", {UINT64_C(2) << 30, 0}},
              {"30s", {KEEP_USUAL, UINT64_C(30000000000)}},
              {"250ms", {KEEP_USUAL, UINT64_C(250000000)}},
              {"8M,5min", {8 << 20, UINT64_C(300000000000)}},
              {"1h,8MiB", {8 << 20, UINT64_C(3600000000000)}},
              {"off", {0, 0}}};
  static const char *const bad[] = {
      "",         "5m",          "1023K",
      "3G",       "0s",          "s",
      "64M,",     ",1s",         "1s ",
      "1.5s",     "-1s",         "64 M",
      "1s,1s,1s", "9999999999s", "64MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM"};
  keep_size keep;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    ck_assert_msg(keep_read(&keep, "X", good[i].text) == WEIR_OK, "%s", weir_error_message());
    ck_assert_uint_eq(keep.bytes, good[i].keep.bytes);
    ck_assert_uint_eq(keep.ns, good[i].keep.ns);
  }
  keep = (keep_size){1, 2};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_msg(keep_read(&keep, "X", bad[i]) == WEIR_EINVAL, "%s", bad[i]);
    ck_assert_msg(keep.bytes == 1 && keep.ns == 2, "%s", bad[i]);
  }
  ck_assert_int_eq(keep_read(&keep, "--keep", "5m"), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "--keep=5m is a size or a time: give 5M or 5min");
}
END_TEST

START_TEST(several_choices)
{
  static const char *const words[] = {"one", "two", "three", NULL};
  static const char *const wrong[] = {"",        "four",     "one,", ",one",  "one,,two",
                                      "one two", "none,one", "on",   "oneone"};
  unsigned bits = 99;
  ck_assert_int_eq(option_choices(&bits, "W", "three,one", words), WEIR_OK);
  ck_assert_uint_eq(bits, 5);
  ck_assert_int_eq(option_choices(&bits, "W", "two,two", words), WEIR_OK);
  ck_assert_uint_eq(bits, 2);
  ck_assert_int_eq(option_choices(&bits, "W", "none", words), WEIR_OK);
  ck_assert_uint_eq(bits, 0);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    ck_assert_msg(option_choices(&bits, "W", wrong[i], words) == WEIR_EINVAL, "%s", wrong[i]);
    ck_assert_uint_eq(bits, 0);
  }
  ck_assert_str_eq(weir_error_message(), "W=oneone is not known; valid: one, two, three");
}
END_TEST

/* ---- clock ----------------------------------------------------------------------------------- */

START_TEST(ticks_never_go_back)
{
  clock_init();
  uint64_t last = clock_ticks(), steps_back = 0;
  for (int i = 0; i < 1000000; i++) {
    uint64_t now = clock_ticks();
    steps_back += now < last;
    last = now;
  }
  ck_assert_uint_eq(steps_back, 0);
}
END_TEST

START_TEST(a_read_of_the_clock_takes_time)
{
  clock_init();
  uint64_t begin = clock_ticks(), end = begin;
  for (int i = 0; i < 100000; i++)
    end = clock_ticks();
  const double cost = clock_cost_ticks();
  ck_assert_double_gt(cost, 0);
  ck_assert_double_lt(cost, 10 * ((double)(end - begin) / 100000));
  ck_assert_double_gt(cost,
                      (double)(end - begin) / 100000 / 1000); /* other work may come between */
}
END_TEST

START_TEST(ticks_convert_to_clock_monotonic)
{
  enum { POINTS = 1000 };
  static struct {
    uint64_t before, ticks, after;
  } points[POINTS];
  clock_init();
  clock_pair first = clock_now();
  for (int i = 0; i < POINTS; i++) {
    points[i].before = clock_monotonic_ns();
    points[i].ticks = clock_ticks();
    points[i].after = clock_monotonic_ns();
    for (uint64_t until = points[i].after + 10000; clock_monotonic_ns() < until;)
      continue;
  }
  clock_map map = clock_map_make(first, clock_now(), 0);
  for (int i = 0; i < POINTS; i++) {
    int64_t ns = clock_to_mono_ns(&map, points[i].ticks);
    ck_assert_int_ge(ns, (int64_t)points[i].before - 50000);
    ck_assert_int_le(ns, (int64_t)points[i].after + 50000);
  }
}
END_TEST

START_TEST(the_map_falls_back_in_order)
{
  clock_pair base = {1000, 5000};
  clock_map map = clock_map_make(base, (clock_pair){3001000, 2005000}, 1);
  ck_assert_double_eq_tol(map.ns_per_tick, 2.0 / 3, 1e-9); /* the pairs */
  map = clock_map_make(base, (clock_pair){1010, 5020}, 2000000000);
  ck_assert_double_eq_tol(map.ns_per_tick, 0.5, 1e-9); /* too close: the hint */
  map = clock_map_make(base, (clock_pair){1010, 5020}, 0);
  ck_assert_double_eq_tol(map.ns_per_tick, 2.0, 1e-9); /* no hint: the pairs after all */
  map = clock_map_make(base, (clock_pair){0, 0}, 0);
  ck_assert_double_eq_tol(map.ns_per_tick, 1.0, 1e-9); /* nothing: ticks are ns */
  ck_assert_int_eq(clock_to_mono_ns(&map, 900), 4900);
}
END_TEST

START_TEST(the_map_survives_nonsense)
{
  static const uint64_t odd[] = {0, 1, 12345, UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX};
  int wrong = 0;
  for (int i = 0; i < 6 * 6 * 6 * 6 * 6; i++) {
    clock_pair a = {odd[i % 6], odd[i / 6 % 6]}, b = {odd[i / 36 % 6], odd[i / 216 % 6]};
    clock_map map = clock_map_make(a, b, odd[i / 1296]);
    wrong += !(map.ns_per_tick >= 1e-3 && map.ns_per_tick <= 1e3);
    for (int j = 0; j < 6; j++)
      clock_to_mono_ns(&map, odd[j]); /* UBSan judges */
  }
  ck_assert_int_eq(wrong, 0);
}
END_TEST

/* ---- map, guard ------------------------------------------------------------------------------ */

START_TEST(the_map_holds_what_was_put)
{
  hash_map map = {0};
  ck_assert_ptr_null(hash_map_get(&map, 0));
  int wrong = 0;
  for (uint64_t i = 0; i < 100000; i++)
    wrong += hash_map_put(&map, i * UINT64_C(0x100000001), i) != WEIR_OK;
  for (uint64_t i = 0; i < 100000; i += 2)
    hash_map_put(&map, i * UINT64_C(0x100000001), i + 7);
  ck_assert_uint_eq(map.count, 100000);
  for (uint64_t i = 0; i < 100000; i++) {
    uint64_t *value = hash_map_get(&map, i * UINT64_C(0x100000001));
    wrong += !value || *value != (i % 2 ? i : i + 7);
  }
  ck_assert_int_eq(wrong, 0);
  ck_assert_ptr_null(hash_map_get(&map, 5));
  hash_map_free(&map);
}
END_TEST

START_TEST(a_guard_of_a_former_epoch_is_free)
{
  trylock guard = 0;
  ck_assert(trylock_take(&guard, 1));
  ck_assert(!trylock_take(&guard, 1));
  ck_assert(trylock_take(&guard, 2));
  trylock_leave(&guard);
  ck_assert(trylock_take(&guard, 2));
}
END_TEST

/* ---- the table of functions ------------------------------------------------------------------ */

START_TEST(the_table_of_functions_is_whole)
{
  ck_assert_uint_gt(api_total, 100);
  ck_assert_uint_le(api_total, WEIR_SPOOL_MAX_APIS);
  ck_assert_ptr_null(api_row(api_total));
  ck_assert_str_eq(api_row(0)->name, "");
  for (uint32_t i = 1; i < api_total; i++) {
    const api_info *row = api_row(i);
    ck_assert_msg(row->name && row->name[0], "row %u has no name", i);
    bool runtime = !strncmp(row->name, "cuda", 4) || !strncmp(row->name, "__cuda", 6);
    int layer = !strncmp(row->name, "weir_", 5) ? 2 : runtime;
    ck_assert_msg(row->layer == layer, "%s is of another layer", row->name);
    ck_assert_msg(row->category > WEIR_API_NONE && row->category <= WEIR_API_OTHER, "%s",
                  row->name);
    ck_assert_msg(api_find_name(row->name) == i, "%s is there twice", row->name);
  }
  ck_assert_uint_eq(api_find_name("cudaMallocs"), 0);
  ck_assert_uint_eq(api_find_name(""), 0);
  ck_assert_uint_ne(api_find_name("cudaMalloc"), 0);
}
END_TEST

START_TEST(the_hash_tells_tables_apart_by_their_common_part)
{
  ck_assert_uint_eq(api_table_hash(1), UINT64_C(0xcbf29ce484222325)); /* FNV-1a of nothing */
  for (uint32_t i = 2; i < 50; i++)
    ck_assert_uint_ne(api_table_hash(i), api_table_hash(i - 1));
  ck_assert_uint_eq(api_table_hash(api_total), api_table_hash(api_total + 100));
}
END_TEST

/* ---- names of traces ------------------------------------------------------------------------- */

static const struct {
  const char *pattern, *name;
} names[] = {{"t.db", "t.db"},
             {"", ""},
             {"%p.db", "4321.db"},
             {"a%%b%%", "a%b%"},
             {"%r", "7"},
             {"%j/%r-%p", "j.1/7-4321"},
             {"%q{TRACE_NAME_TEST}.%q{TRACE_NAME_EMPTY}", "x y."}};

static void set_names(void)
{
  (void)setenv("WEIR_RANK", "7", 1);
  (void)setenv("WEIR_JOB", "j.1", 1);
  (void)setenv("TRACE_NAME_TEST", "x y", 1);
  (void)setenv("TRACE_NAME_EMPTY", "", 1);
}

START_TEST(placeholders_of_a_name_are_filled_in)
{
  char name[64];
  set_names();
  ck_assert_int_eq(trace_name_expand(name, sizeof name, names[_i].pattern, 4321), WEIR_OK);
  ck_assert_str_eq(name, names[_i].name);
}
END_TEST

static const char *const bad_names[] = {"%",   "%x", "t%",   "%q",      "%qHOME",
                                        "%q{", "%P", "%q{}", "%q{NONE", "%q{TRACE_NAME_NONE}"};

START_TEST(a_placeholder_that_is_unknown_or_has_no_value_is_refused)
{
  char name[64];
  ck_assert_int_eq(trace_name_expand(name, sizeof name, bad_names[_i], 1), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "in the name of the trace"));
}
END_TEST

START_TEST(a_rank_or_job_that_nobody_gave_is_refused)
{
  static const char *const unset[] = {RANK_VARIABLES, "WEIR_JOB", "SLURM_JOB_ID", "PBS_JOBID",
                                      "LSB_JOBID",    "JOB_ID",   "FLUX_JOB_ID"};
  char name[64];
  for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
    (void)unsetenv(unset[i]);
  ck_assert_int_eq(trace_name_expand(name, sizeof name, "%r", 1), WEIR_EINVAL);
  ck_assert_int_eq(trace_name_expand(name, sizeof name, "%j", 1), WEIR_EINVAL);
}
END_TEST

START_TEST(a_name_ends_within_its_room)
{
  char name[8];
  ck_assert_int_eq(trace_name_expand(name, sizeof name, "1234567", 1), WEIR_OK);
  ck_assert_str_eq(name, "1234567");
  ck_assert_int_eq(trace_name_expand(name, sizeof name, "12345678", 1), WEIR_EINVAL);
  ck_assert_int_eq(trace_name_expand(name, sizeof name, "123456%p", 99), WEIR_EINVAL);
}
END_TEST

START_TEST(a_number_in_a_name_is_the_first_that_is_free)
{
  char folder[] = "/tmp/weir-name-XXXXXX", pattern[64], name[64], wanted[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  (void)snprintf(pattern, sizeof pattern, "%s/t%%n.%%n", folder);
  for (int n = 1; n < 4; n++) {
    (void)snprintf(wanted, sizeof wanted, "%s/t%d.%d", folder, n, n);
    ck_assert_int_eq(trace_name_expand(name, sizeof name, pattern, 1), WEIR_OK);
    ck_assert_str_eq(name, wanted);
    ck_assert_int_eq(mkdir(name, 0700), 0);
  }
  for (int n = 1; n < 4; n++) {
    (void)snprintf(wanted, sizeof wanted, "%s/t%d.%d", folder, n, n);
    (void)rmdir(wanted);
  }
  (void)rmdir(folder);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("core/base");
  TCase *t = tcase_create("base");
  tcase_set_timeout(t, 0);
  tcase_add_test(t, every_status_has_a_sentence);
  tcase_add_test(t, fail_keeps_the_sentence_the_status_and_errno);
  tcase_add_test(t, a_long_sentence_is_cut_at_511_bytes);
  tcase_add_test(t, the_sentence_is_of_the_thread);
  tcase_add_test(t, the_version_is_the_headers);
  tcase_add_loop_test(t, sizes_are_parsed, 0, (int)(sizeof sizes / sizeof *sizes));
  tcase_add_loop_test(t, bad_sizes_are_refused_and_change_nothing, 0,
                      (int)(sizeof bad_sizes / sizeof *bad_sizes));
  tcase_add_test(t, a_size_below_the_least_is_refused);
  tcase_add_test(t, booleans_are_parsed);
  tcase_add_test(t, off_or_a_number);
  tcase_add_test(t, numbers_and_choices);
  tcase_add_test(t, what_a_recorder_keeps_is_a_size_a_time_or_both);
  tcase_add_test(t, several_choices);
  tcase_add_test(t, ticks_never_go_back);
  tcase_add_test(t, a_read_of_the_clock_takes_time);
  tcase_add_test(t, ticks_convert_to_clock_monotonic);
  tcase_add_test(t, the_map_falls_back_in_order);
  tcase_add_test(t, the_map_survives_nonsense);
  tcase_add_test(t, the_map_holds_what_was_put);
  tcase_add_test(t, a_guard_of_a_former_epoch_is_free);
  tcase_add_test(t, the_table_of_functions_is_whole);
  tcase_add_test(t, the_hash_tells_tables_apart_by_their_common_part);
  tcase_add_loop_test(t, placeholders_of_a_name_are_filled_in, 0,
                      (int)(sizeof names / sizeof *names));
  tcase_add_loop_test(t, a_placeholder_that_is_unknown_or_has_no_value_is_refused, 0,
                      (int)(sizeof bad_names / sizeof *bad_names));
  tcase_add_test(t, a_rank_or_job_that_nobody_gave_is_refused);
  tcase_add_test(t, a_name_ends_within_its_room);
  tcase_add_test(t, a_number_in_a_name_is_the_first_that_is_free);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
