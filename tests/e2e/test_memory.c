/* test_memory.c: device memory is counted once, however the program came by it. */
#include <jansson.h>
#include <stdio.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#define SEEDS AT_LEVEL(4, 12, 100)

/* What the victim has counted itself. */
typedef struct account {
  long long peak, live, copied;
} account;

static account run_segments(const char *way, int seed)
{
  account a;
  outcome *o = sh_status(0,
                         "$WEIR run --force -o t.db --mode=%s --sim=1 --stacks=8 -- "
                         "$BUILD/tests/e2e/segments %s %d",
                         seed % 2 ? "strict" : "observe", way, seed);
  ck_assert_int_eq(sscanf(o->out, "%lld %lld %lld", &a.peak, &a.live, &a.copied), 3);
  return a;
}

static void same_in_trace(const account *a)
{
  ck_assert_int_eq(ask("t.db", "select peak from memory where mem is null and device = 0"),
                   a->peak);
  ck_assert_int_eq(ask("t.db", "select sum(bytes) from block where how = 0"), a->live);
  ck_assert_int_eq(ask("t.db", "select count(*) from block where how not in (0, 1)"), 0);
  ck_assert_int_eq(ask("t.db", "select sum(bytes) from copy where direction = 'host_to_device' and "
                               "destination_memory = 'device' and destination_device = 0"),
                   a->copied);
  ck_assert_int_eq(ask("t.db", "select sum(bytes) from copy where direction = 'device_to_host' and "
                               "source_memory = 'device' and source_device = 0"),
                   a->copied);
}

static json_int_t number(const json_t *o, const char *name)
{
  ck_assert_msg(json_is_integer(json_object_get(o, name)), "no %s", name);
  return json_integer_value(json_object_get(o, name));
}

static bool is_by_nvml(const json_t *row)
{
  return !strcmp(json_string_value(json_object_get(row, "by")), "NVML");
}

/* The software device takes nothing for itself, and pages are whole: all in use is explained. */
static void all_in_use_is_explained(bool cached)
{
  sh_status(0, "$WEIR report --format json t.db > report.json");
  json_t *report = json_load_file("report.json", 0, NULL), *x;
  json_t *device = json_array_get(json_object_get(report, "devices"), 0);
  json_t *usage = json_array_get(json_object_get(report, "usage"), 0);
  json_int_t most = 0;
  size_t i;
  ck_assert_int_gt(number(usage, "samples"), 3);
  ck_assert_int_eq(number(usage, "before_bytes"), 0);
  json_array_foreach(json_object_get(report, "in_use"), i, x)
  {
    json_int_t kept = number(x, "cached_bytes"), live = number(x, "live_bytes");
    ck_assert_int_eq(number(x, "unexplained_bytes"), 0);
    ck_assert_int_eq(number(x, "used_bytes"), live + kept);
    if (!cached) ck_assert_int_eq(kept, 0);
    if (number(x, "used_bytes") > most) most = number(x, "used_bytes");
    const json_t *owner = json_array_get(json_object_get(x, "owners"), 0);
    if (live) ck_assert_str_eq(json_string_value(json_object_get(owner, "module")), "segments");
    if (live) ck_assert_int_eq(number(owner, "bytes"), live);
  }
  ck_assert_int_gt(most, 0);
  if (!cached) ck_assert_int_le(most, number(device, "peak_bytes"));
  json_decref(report);
}

#define REPORT "$WEIR report oom t.db -f csv --table "

START_TEST(segments_of_mapped_pages_count_as_those_of_malloc_do)
{
  account plain = run_segments("malloc", _i);
  same_in_trace(&plain);
  all_in_use_is_explained(_i % 2);
  account mapped = run_segments("expandable", _i);
  same_in_trace(&mapped);
  all_in_use_is_explained(false);
  ck_assert_int_eq(plain.peak, mapped.peak);
  ck_assert_int_eq(plain.live, mapped.live);
  ck_assert_int_eq(ask("t.db", "select count(*) from allocation where memory <> 'physical'"), 0);
}
END_TEST

/* 4 MiB (a size that the caches do not round up), all but its first 4 KiB copied. */
START_TEST(memory_of_another_process_is_imported_and_in_no_sum_of_this_one)
{
  sh_status(0, "$WEIR run --force -o t.db --mode=%s --sim=1 -- $BUILD/tests/e2e/importer %s",
            _i % 2 ? "strict" : "observe", _i / 2 ? "leave" : "close");
  ck_assert_int_eq(ask("t.db", "select peak from memory where mem is null and device is null"),
                   4 << 20);
  ck_assert_int_eq(ask("t.db", "select sum(bytes) from allocation where memory = 'imported'"),
                   4 << 20);
  ck_assert_int_eq(ask("t.db", "select peak from memory where mem = 8"), 4 << 20);
  ck_assert_int_eq(ask("t.db", "select count(*) from block where mem = 8 and how = 0"), _i / 2);
  ck_assert_int_eq(ask("t.db", "select count(*) from block where mem <> 8 and how <> 1"), 0);
  ck_assert_int_eq(ask("t.db", "select bytes from copy where source_memory = 'device' and "
                               "source_device = 0"),
                   (4 << 20) - 4096);
  sh_status(0, "$WEIR report t.db | grep -q \"imported (another's) *1 *4.00 MiB\"");
}
END_TEST

#define LOADER                                                                                     \
  "WEIR_SIM_MODULE=2M WEIR_SIM_CONTEXT=16M $WEIR run --force -o t.db --mode=%s --sim=1 "           \
  "--stacks=8 -- $BUILD/tests/e2e/loader %d "

/* A row of `memory` is what the program has counted of that kind; none: it has counted nothing. */
static void same_of_kind(int mem, const long long counted[4])
{
  static const char *const columns[4] = {"allocs", "bytes", "peak", "live"};
  char sql[96];
  for (int i = 0; i < 4; i++) {
    (void)snprintf(sql, sizeof sql, "select ifnull(sum(%s), 0) from memory where mem = %d",
                   columns[i], mem);
    ck_assert_msg(ask("t.db", sql) == counted[i], "%s of kind %d is %lld, not %lld", columns[i],
                  mem, ask("t.db", sql), counted[i]);
  }
  (void)snprintf(sql, sizeof sql, "select ifnull(sum(bytes), 0) from block where mem = %d", mem);
  ck_assert_int_eq(ask("t.db", sql), counted[1]);
  (void)snprintf(sql, sizeof sql,
                 "select ifnull(sum(bytes), 0) from block where how = 0 and mem = %d", mem);
  ck_assert_int_eq(ask("t.db", sql), counted[3]);
}

/* The program has no memory of its own: all in use is what code and contexts took. */
static void code_is_in_use_once(void)
{
  sh_status(0, "$WEIR report --format json t.db > report.json");
  json_t *report = json_load_file("report.json", 0, NULL), *x;
  json_t *device = json_array_get(json_object_get(report, "devices"), 0);
  size_t i;
  ck_assert_int_eq(number(device, "peak_bytes"), 0);
  ck_assert_int_eq(
      number(json_array_get(json_object_get(report, "device_taken"), 0), "code_peak_bytes"),
      ask("t.db", "select peak from memory where mem = 9"));
  json_array_foreach(json_object_get(report, "in_use"), i, x)
  {
    ck_assert_int_eq(number(x, "live_bytes"), 0);
    ck_assert_int_eq(number(x, "unexplained_bytes"), 0);
  }
  const json_t *site = json_array_get(json_object_get(report, "taken_at_exit"), 0);
  if (ask("t.db", "select count(*) from block where how = 0"))
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(site, "place"), "module")),
                     "loader");
  json_decref(report);
}

START_TEST(what_code_and_contexts_take_are_blocks_of_their_kinds)
{
  long long code[4], context[4];
  outcome *o = sh_status(0, LOADER "alone", _i % 2 ? "strict" : "observe", _i);
  ck_assert_int_eq(sscanf(o->out, "%lld %lld %lld %lld %lld %lld %lld %lld", &code[0], &code[1],
                          &code[2], &code[3], &context[0], &context[1], &context[2], &context[3]),
                   8);
  ck_assert_int_gt(code[0], 10);
  ck_assert_int_gt(context[0], 1);
  same_of_kind(9, code);
  same_of_kind(10, context);
  ck_assert_int_eq(ask("t.db", "select count(*) from memory where mem is null"), 0);
  ck_assert_int_eq(ask("t.db", "select count(*) from block where stack is null or device <> 0"), 0);
  code_is_in_use_once();
  sh_status(0, "$WEIR report t.db | grep -q 'GPU 0, code of modules  *%lld '", code[0]);
}
END_TEST

/* Where the other thread's blocks came or went meanwhile, what was measured is no block. */
START_TEST(what_is_taken_beside_another_threads_calls_is_a_block_only_where_it_is_certain)
{
  sh_status(0, LOADER "beside", "observe", _i);
  ck_assert_int_eq(ask("t.db", "select count(*) from block where mem = 9 and bytes not in"
                               " (2 << 20, 4 << 20)"),
                   0);
  ck_assert_int_eq(ask("t.db", "select count(*) from block where mem = 10 and bytes <> 16 << 20"),
                   0);
  ck_assert_int_eq(ask("t.db", "select peak from memory where mem is null and device = 0"),
                   6 << 20);
}
END_TEST

#define NVML_RUN                                                                                   \
  "WEIR_TEST_NVML=$PWD/answer WEIR_TEST_NVML_SAID=$PWD/said "                                      \
  "LD_LIBRARY_PATH=$BUILD/lib/sim:$BUILD/tests/e2e/nvml WEIR_SIM_DEVICES=1 "

/* What NVML is to say stands there before the program starts: it is asked once whether it can be used,
 * as soon as the program has a spool, which is before its main(). 300 MiB were in use, then 64 more
 * by the program, then 20 more by another. */
START_TEST(what_nvml_says_is_held_against_what_the_trace_knows)
{
  sh_status(0, "echo 0 10 0 1073741824 5242880 314572800 99999999 7340032 >answer");
  sh_status(0, NVML_RUN "$WEIR run --force -o t.db --stacks=8 -- $BUILD/tests/e2e/nvml_caller");
  ck_assert_int_eq(ask("t.db", "select count(distinct device) from device_usage"), 1);
  ck_assert_int_eq(ask("t.db", "select used_bytes / 1048576 from device_usage order by id"), 300);
  ck_assert_int_eq(ask("t.db", "select sum(of_run_bytes) / 1048576 from device_usage where"
                               " used_bytes = 384 * 1048576"),
                   114);
  ck_assert_int_eq(ask("t.db", "select count(*) from device_usage where reserved_bytes <> 5 << 20"),
                   0);
  sh_status(0, "$WEIR report --format json t.db > report.json");
  json_t *report = json_load_file("report.json", 0, NULL), *x;
  json_t *usage = NULL;
  size_t i, most = 0;
  json_array_foreach(json_object_get(report, "usage"), i, x) if (is_by_nvml(x)) usage = x;
  ck_assert_int_eq(number(usage, "before_bytes"), 300 << 20);
  ck_assert_int_eq(number(usage, "after_bytes"), 270 << 20);
  json_array_foreach(json_object_get(report, "in_use"), i, x)
  {
    if (!is_by_nvml(x) || number(x, "used_bytes") != 384 << 20) continue;
    ck_assert_int_eq(number(x, "live_bytes"), 64 << 20);
    ck_assert_int_eq(number(x, "others_more_bytes"), 20 << 20);
    ck_assert_int_eq(number(x, "unexplained_bytes"), 0);
    most++;
  }
  ck_assert_uint_eq(most, 1);
  json_decref(report);
  sh_status(0, "$WEIR report t.db | grep -q 'in use over time of its .*, as NVML said'");
}
END_TEST

START_TEST(nvml_is_not_asked_where_that_is_off_or_the_device_is_software)
{
  sh_status(0, NVML_RUN
            "WEIR_NVML=off $WEIR run --force -o t.db -- $BUILD/tests/e2e/segments malloc 1");
  ck_assert_int_eq(ask("t.db", "select count(*) from nvml_sample"), 0);
  sh_status(0, "echo 0 10 0 1000000 1 2 >answer");
  sh_status(0, NVML_RUN "$WEIR run --sim=1 --force -o t.db -- $BUILD/tests/e2e/segments malloc 1");
  ck_assert_int_eq(ask("t.db", "select count(*) from nvml_sample"), 0);
  sh_status(0, NVML_RUN "$WEIR run --force -o t.db -- $BUILD/tests/e2e/segments malloc 1");
  ck_assert_int_gt(ask("t.db", "select count(*) from nvml_sample"), 0);
  ck_assert_int_eq(ask("t.db", "select count(of_run) from nvml_sample"), 0); /* no process listed */
  sh_status(0, "echo 0 11 0 1000000 1 2 >answer"); /* a device that the program has not used */
  sh_status(0, NVML_RUN "$WEIR run --force -o t.db -- $BUILD/tests/e2e/segments malloc 1");
  ck_assert_int_eq(ask("t.db", "select count(*) from nvml_sample"), 0);
}
END_TEST

/* A device of 300 MiB, of which 220 are live when 100 are asked for: 20 are missing, and the
 * smallest block that has as many is the cache of 30. */
START_TEST(a_run_out_of_memory_says_who_had_it_and_what_to_release)
{
  const char *mode = _i ? "strict" : "observe";
  sh_status(0,
            "WEIR_SIM_MEMORY=300M $WEIR run -o t.db --sim --mode=%s -- $BUILD/tests/e2e/shortage "
            "100",
            mode);
  ck_assert_ptr_nonnull(strstr(sh_status(0, REPORT "request")->out, "104857600,"));
  const outcome *o = sh_status(0, REPORT "device_memory | cut -d, -f 1,2");
  ck_assert_msg(strstr(o->out, "live blocks of the run,230686720\n") &&
                    strstr(o->out, "free,83886080\n"),
                "%s", o->out);
  ck_assert_str_eq(sh_status(0, REPORT "owners | cut -d, -f 1,2,4")->out,
                   "bytes,blocks,place\n125829120,3,fill_caches\n104857600,1,load_weights\n");
  ck_assert_str_eq(sh_status(0, REPORT "releases | cut -d, -f 1,3")->out,
                   "bytes,place\n31457280,fill_caches\n");
}
END_TEST

START_TEST(all_failures_are_listed_and_the_first_is_described_in_full)
{
  sh_status(0, "WEIR_SIM_MEMORY=300M $WEIR run -o t.db --sim -- $BUILD/tests/e2e/shortage "
               "100,400,200");
  ck_assert_str_eq(sh_status(0, REPORT "request | cut -d, -f 1")->out, "asked_bytes\n104857600\n");
  ck_assert_str_eq(sh_status(0, REPORT "failures | cut -d, -f 1,6")->out,
                   "asked_bytes,place\n104857600,load_batch\n419430400,load_batch\n"
                   "209715200,load_batch\n");
  ck_assert_str_eq(sh_status(0, REPORT "releases | cut -d, -f 1,3")->out,
                   "bytes,place\n31457280,fill_caches\n");
  const outcome *o = sh_status(0, "$WEIR report oom t.db");
  ck_assert_msg(strstr(o->out, "the first of 3 that did") != NULL, "%s", o->out);
  const char *last =
      sh_status(0, REPORT "failures | sed -n '4s/^[0-9]*,\\([0-9]*\\),.*/\\1/p'")->out;
  ck_assert_str_eq(
      sh_status(0, REPORT "request --from %.*sns | cut -d, -f 1", (int)strcspn(last, "\n"), last)
          ->out,
      "asked_bytes\n209715200\n");
}
END_TEST

/* When its nodes run is not known, so neither is how long such a block lived. */
START_TEST(what_a_launch_allocates_and_frees_lived_within_it)
{
  sh_status(0, "$WEIR run -o t.db --sim -- $BUILD/tests/e2e/graph_caller blocks 4");
  long long within = ask("t.db", "select count(*) from block where how = 5 and start = \"end\"");
  ck_assert_int_gt(within, 0);
  const char *lived =
      "$WEIR report memory t.db -f csv --table lifetimes | sed -n 's/^%s,\\([0-9]*\\),.*/\\1/p'";
  ck_assert_int_eq(atoll(sh_status(0, lived, "within one launch of a graph")->out), within);
  ck_assert_int_eq(atoll(sh_status(0, lived, "below 1.00 µs")->out),
                   ask("t.db", "select count(*) from block where \"end\" - start < 1000 and not"
                               " (how = 5 and start = \"end\") and mem in (3, 4, 5, 7)"));
}
END_TEST

START_TEST(what_is_missing_is_released_by_the_fewest_blocks)
{
  sh_status(0, "WEIR_SIM_MEMORY=300M $WEIR run -o t.db --sim -- $BUILD/tests/e2e/shortage 200");
  ck_assert_str_eq(sh_status(0, REPORT "releases | cut -d, -f 1,3")->out,
                   "bytes,place\n104857600,load_weights\n31457280,fill_caches\n");
  sh_status(0, "WEIR_SIM_MEMORY=300M $WEIR run -o u.db --sim -- $BUILD/tests/e2e/shortage 400");
  ck_assert_ptr_nonnull(
      strstr(sh_status(0, "$WEIR report oom u.db")->out, "All live blocks together are less than"));
}
END_TEST

START_TEST(a_killed_run_says_what_was_live_and_a_good_one_that_nothing_failed)
{
  sh_status(137,
            "WEIR_SIM_MEMORY=300M $WEIR run -o t.db --sim -- $BUILD/tests/e2e/shortage 1 kill");
  const outcome *o = sh_status(0, "$WEIR report oom t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "ended by SIGKILL"));
  ck_assert_ptr_nonnull(strstr(o->out, "220 MiB"));
  sh_status(0, "WEIR_SIM_MEMORY=300M $WEIR run -o u.db --sim -- $BUILD/tests/e2e/shortage 60");
  ck_assert_ptr_nonnull(strstr(sh_status(0, "$WEIR report oom u.db")->out, "No allocation"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("memory");
  TCase *t = tcase_create("kinds");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, segments_of_mapped_pages_count_as_those_of_malloc_do, 0, SEEDS);
  tcase_add_loop_test(t, memory_of_another_process_is_imported_and_in_no_sum_of_this_one, 0, 4);
  tcase_add_loop_test(t, what_code_and_contexts_take_are_blocks_of_their_kinds, 0,
                      AT_LEVEL(6, 24, 200));
  tcase_add_loop_test(
      t, what_is_taken_beside_another_threads_calls_is_a_block_only_where_it_is_certain, 0,
      AT_LEVEL(2, 6, 40));
  tcase_add_loop_test(t, a_run_out_of_memory_says_who_had_it_and_what_to_release, 0, 2);
  tcase_add_test(t, all_failures_are_listed_and_the_first_is_described_in_full);
  tcase_add_test(t, what_a_launch_allocates_and_frees_lived_within_it);
  tcase_add_test(t, what_is_missing_is_released_by_the_fewest_blocks);
  tcase_add_test(t, a_killed_run_says_what_was_live_and_a_good_one_that_nothing_failed);
  tcase_add_test(t, what_nvml_says_is_held_against_what_the_trace_knows);
  tcase_add_test(t, nvml_is_not_asked_where_that_is_off_or_the_device_is_software);
  suite_add_tcase(s, t);
  return run_suite(s);
}
