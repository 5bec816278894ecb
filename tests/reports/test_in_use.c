/* test_in_use.c: what of a device's memory is in use is divided among those who have it, and what
 * is nobody's is said. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { OF_LIBRARY = 1, OF_PROGRAM = 2, OF_RUNTIME = 3 }; /* stacks */

static void alloc_of(const char *api, uint32_t stack, uint64_t at, uint64_t pointer, uint64_t bytes,
                     int mem)
{
  synth_event(0, at, 5,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api(api),
                            .stack = stack | 1u << 24,
                            .mem = (uint8_t)mem,
                            .a = pointer,
                            .bytes = bytes});
}

static void sample(uint64_t at, uint64_t total, uint64_t free_bytes, unsigned device)
{
  synth_event(0, at, 1,
              (trace_event){.kind = WEIR_EV_CACHE,
                            .cache_fact = WEIR_CACHE_DEVICE,
                            .mem = WEIR_MEM_DEVICE,
                            .device = (uint8_t)device,
                            .src_device = WEIR_DEVICE_NONE,
                            .b = free_bytes,
                            .bytes = total});
}

static void level(uint64_t at, int fact, uint64_t pool, uint64_t reserved, uint64_t used)
{
  synth_event(0, at, 1,
              (trace_event){.kind = WEIR_EV_CACHE,
                            .cache_fact = (uint8_t)fact,
                            .mem = WEIR_MEM_DEVICE,
                            .device = fact == WEIR_CACHE_POOL_ENDED ? WEIR_DEVICE_NONE : 0,
                            .src_device = WEIR_DEVICE_NONE,
                            .a = pool,
                            .b = used,
                            .bytes = reserved});
}

static void taken_fact(uint64_t at, uint64_t ns, uint32_t stack, int by, uint64_t handle,
                       int64_t bytes)
{
  synth_event(0, at, ns,
              (trace_event){.kind = WEIR_EV_CACHE,
                            .cache_fact = WEIR_CACHE_TAKEN,
                            .stack = stack | 1u << 24,
                            .mem = by == WEIR_TAKEN_CODE ? WEIR_MEM_CODE : WEIR_MEM_CONTEXT,
                            .device = 0,
                            .src_device = WEIR_DEVICE_NONE,
                            .a = handle,
                            .b = (uint64_t)by,
                            .bytes = (uint64_t)bytes});
}

static void open_with_stacks(void)
{
  const uint64_t library[] = {0x3010, 0x2010, 0x1020}, program[] = {0x3010, 0x1020},
                 runtime[] = {0x3010};
  synth_open(synth_dir());
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/opt/program", NULL, 0);
  synth_module(0, 0x2000, 0x2000, 0x2fff, "/usr/lib/libnccl.so.2", NULL, 0);
  synth_module(0, 0x3000, 0x3000, 0x3fff, "/usr/lib/libcudart.so.13", NULL, 0);
  synth_stack(0, OF_LIBRARY, library, 3);
  synth_stack(0, OF_PROGRAM, program, 2);
  synth_stack(0, OF_RUNTIME, runtime, 1);
}

static json_t *report_of_spool(void)
{
  const char *one[] = {synth_spool(), NULL};
  return synth_json(synth_import("t.db", one));
}

static json_t *in_use_of(json_t *report)
{
  return json_object_get(json_array_get(json_object_get(report, "devices"), 0), "in_use");
}

static void has(const json_t *o, const char *name, int64_t want)
{
  int64_t got = json_integer_value(json_object_get(o, name));
  ck_assert_msg(json_is_integer(json_object_get(o, name)) && got == want, "%s is %lld, not %lld",
                name, (long long)got, (long long)want);
}

static void has_of(const json_t *moment, const char *list, size_t i, const char *module,
                   int64_t bytes)
{
  const json_t *o = json_array_get(json_object_get(moment, list), i);
  ck_assert_ptr_nonnull(o);
  ck_assert_str_eq(json_string_value(json_object_get(o, "module")), module);
  has(o, "bytes", bytes);
}

static void has_owner(const json_t *moment, size_t i, const char *module, int64_t bytes)
{
  has_of(moment, "owners", i, module, bytes);
}

START_TEST(all_in_use_is_its_owners_what_is_idle_what_was_there_and_the_rest)
{
  open_with_stacks();
  sample(100, 10000, 9900, 0);
  alloc_of("cudaMalloc", OF_LIBRARY, 200, 0x10000, 40, WEIR_MEM_DEVICE);
  alloc_of("cuMemCreate", OF_PROGRAM, 210, 0x77, 30, WEIR_MEM_PHYSICAL);
  alloc_of("cudaMalloc", OF_RUNTIME, 220, 0x20000, 3, WEIR_MEM_DEVICE);
  alloc_of("cudaMallocManaged", OF_PROGRAM, 230, 0x30000, 7, WEIR_MEM_MANAGED);
  alloc_of("cuIpcOpenMemHandle_v2", OF_PROGRAM, 240, 0x40000, 500, WEIR_MEM_IMPORTED);
  alloc_of("weir_malloc", OF_PROGRAM, 250, 0x50000, 20, WEIR_MEM_DEVICE);
  level(260, WEIR_CACHE_RESERVED, 0, 60, 0);
  level(270, WEIR_CACHE_POOL, 0x9, 99, 9);
  level(280, WEIR_CACHE_POOL_ENDED, 0x9, 0, 0);
  level(290, WEIR_CACHE_POOL, 0xa, 25, 10);
  sample(300, 10000, 9900 - (40 + 30 + 3 + 20 + 40 + 15 + 5), 0);
  synth_free(0, 400, 5, 0x10000);
  sample(500, 10000, 9900 - (30 + 3 + 20 + 40 + 15) + 2, 0);
  synth_close();
  json_t *report = report_of_spool(), *in_use = in_use_of(report);
  const json_t *list = json_object_get(in_use, "moments");
  has(in_use, "samples", 3);
  has(in_use, "total_bytes", 10000);
  has(in_use, "before_bytes", 100);
  ck_assert_uint_eq(json_array_size(list), 3);
  has(json_array_get(list, 0), "live_bytes", 0);
  has(json_array_get(list, 0), "unexplained_bytes", 0);
  const json_t *most = json_array_get(list, 1), *last = json_array_get(list, 2);
  has(most, "live_bytes", 93);
  has(most, "managed_bytes", 7);
  has(most, "weir_idle_bytes", 40);
  has(most, "pools_idle_bytes", 15);
  has(most, "cached_bytes", 0);
  has(most, "unexplained_bytes", 5);
  has_owner(most, 0, "program", 50);
  has_owner(most, 1, "libnccl.so.2", 40);
  has_owner(most, 2, "(unknown)", 3);
  has(last, "live_bytes", 53);
  has(last, "unexplained_bytes", -2);
  json_decref(report);
}
END_TEST

/* Not the libraries that an interpreter calls through. */
START_TEST(what_an_interpreter_asks_for_is_its_scripts_or_its_own)
{
  const char script[] = "load/home/train.py";
  const uint64_t python_frame = WEIR_PYTHON_FRAME_FIRST + 1;
  const uint64_t unnamed[] = {0x3010, 0x4010, 0x5010, 0x6010, 0x6020},
                 named[] = {0x3010, 0x4010, 0x5010, python_frame},
                 ruby[] = {0x3010, 0x4010, 0x7010, 0x1010};
  char payload[64];
  python_frame_info info = {.line = 3, .function_bytes = 4, .file_bytes = sizeof script - 5};
  open_with_stacks();
  synth_module(0, 0x4000, 0x4000, 0x4fff, "/usr/lib/libffi.so.8", NULL, 0);
  synth_module(0, 0x5000, 0x5000, 0x5fff, "/usr/lib/_ctypes.cpython-313.so", NULL, 0);
  synth_module(0, 0x6000, 0x6000, 0x6fff, "/usr/bin/python3.13", NULL, 0);
  synth_module(0, 0x7000, 0x7000, 0x7fff, "/usr/lib/fiddle.so", NULL, 0);
  memcpy(payload, &info, sizeof info);
  memcpy(payload + sizeof info, script, sizeof script - 1);
  synth_extended(0, WEIR_EV_PYTHON_FRAME, python_frame, 0, payload,
                 sizeof info + sizeof script - 1);
  synth_stack(0, 4, unnamed, 5);
  synth_stack(0, 5, named, 4);
  synth_stack(0, 6, ruby, 4);
  sample(100, 10000, 9900, 0);
  alloc_of("cudaMalloc", 4, 200, 0x10000, 40, WEIR_MEM_DEVICE);
  alloc_of("cudaMalloc", 5, 210, 0x20000, 30, WEIR_MEM_DEVICE);
  alloc_of("cudaMalloc", 6, 220, 0x30000, 20, WEIR_MEM_DEVICE);
  sample(300, 10000, 9810, 0);
  synth_close();
  json_t *report = report_of_spool();
  const json_t *most = json_array_get(json_object_get(in_use_of(report), "moments"), 1);
  has_owner(most, 0, "python3.13", 40);
  has_owner(most, 1, "train.py", 30);
  has_owner(most, 2, "fiddle.so", 20);
  json_decref(report);
}
END_TEST

START_TEST(what_code_contexts_and_graphs_took_is_no_part_of_the_unexplained)
{
  open_with_stacks();
  sample(100, 10000, 9900, 0);
  taken_fact(200, 10, OF_LIBRARY, WEIR_TAKEN_CODE, 0x71, 40);
  taken_fact(220, 10, OF_PROGRAM, WEIR_TAKEN_CODE, 0x72, 30);
  taken_fact(240, 10, OF_PROGRAM, WEIR_TAKEN_CODE, 0x72, -8); /* unloaded in part */
  taken_fact(260, 10, OF_PROGRAM, WEIR_TAKEN_CONTEXT, 0x73, 50);
  level(280, WEIR_CACHE_GRAPHS, 0, 20, 0);
  sample(300, 10000, 9900 - (40 + 22 + 50 + 20 + 3), 0);
  synth_event(0, 400, 5,
              (trace_event){.kind = WEIR_EV_RESET,
                            .device = 0,
                            .src_device = WEIR_DEVICE_NONE,
                            .a = 0x73,
                            .bytes = 1}); /* that context only */
  sample(500, 10000, 9900 - (40 + 22 + 20), 0);
  synth_close();
  json_t *report = report_of_spool(), *in_use = in_use_of(report);
  const json_t *list = json_object_get(in_use, "moments");
  ck_assert_uint_eq(json_array_size(list), 3);
  const json_t *most = json_array_get(list, 1), *last = json_array_get(list, 2);
  has(in_use, "before_bytes", 100);
  has(most, "live_bytes", 0);
  has(most, "modules_bytes", 62);
  has_of(most, "modules", 0, "libnccl.so.2", 40);
  has_of(most, "modules", 1, "program", 22);
  has(most, "contexts_bytes", 50);
  has(most, "graphs_idle_bytes", 20);
  has(most, "unexplained_bytes", 3);
  has(last, "modules_bytes", 62);
  has(last, "contexts_bytes", 0);
  has(last, "unexplained_bytes", 0);
  json_decref(report);
}
END_TEST

/* Another thread's block began while code was loaded: how much of it was the code is not known. */
START_TEST(what_was_taken_while_blocks_came_and_went_stays_unexplained)
{
  open_with_stacks();
  sample(100, 10000, 10000, 0);
  taken_fact(200, 100, OF_LIBRARY, WEIR_TAKEN_CODE, 0x71, 70);
  alloc_of("cudaMalloc", OF_PROGRAM, 250, 0x10000, 40, WEIR_MEM_DEVICE);
  taken_fact(400, 10, OF_PROGRAM, WEIR_TAKEN_CODE, 0x72, 5);
  sample(500, 10000, 10000 - 75, 0);
  synth_close();
  json_t *report = report_of_spool();
  const json_t *last = json_array_get(json_object_get(in_use_of(report), "moments"), 1);
  has(last, "live_bytes", 40);
  has(last, "modules_bytes", 5);
  has_of(last, "modules", 0, "program", 5);
  has(last, "unexplained_bytes", 30);
  json_decref(report);
}
END_TEST

static void unload(uint64_t at, uint64_t module)
{
  synth_event(0, at, 5,
              (trace_event){.kind = WEIR_EV_CALL,
                            .api = synth_api("cuModuleUnload"),
                            .device = 0,
                            .src_device = WEIR_DEVICE_NONE,
                            .a = module});
}

static void reset_context(uint64_t at, uint64_t context, uint32_t number)
{
  synth_event(0, at, 5,
              (trace_event){.kind = WEIR_EV_RESET,
                            .stack = number << 24,
                            .device = 0,
                            .src_device = WEIR_DEVICE_NONE,
                            .a = context,
                            .bytes = 1});
}

/* Three of a module, one of which came beside a call of another thread, then its unload; one of
 * another; a context. */
START_TEST(what_was_taken_is_a_block_where_nothing_else_ran_meanwhile)
{
  open_with_stacks();
  taken_fact(200, 100, OF_LIBRARY, WEIR_TAKEN_CODE, 0x71, 70);
  taken_fact(400, 100, OF_LIBRARY, WEIR_TAKEN_CODE, 0x71, 9);
  taken_fact(600, 100, OF_LIBRARY, WEIR_TAKEN_CODE, 0x71, 30);
  synth_sync(1, 450, 10, WEIR_SYNC_STREAM);
  synth_sync(1, 501, 90, WEIR_SYNC_STREAM);
  taken_fact(800, 50, OF_PROGRAM, WEIR_TAKEN_CODE, 0x72, 5);
  taken_fact(900, 50, OF_PROGRAM, WEIR_TAKEN_CONTEXT, 0x73, 1000);
  unload(1000, 0x71);
  taken_fact(999, 20, OF_LIBRARY, WEIR_TAKEN_CODE, 0x71, -109);
  reset_context(1100, 0x73, 1);
  alloc_of("cudaMalloc", OF_PROGRAM, 1200, 0x10000, 40, WEIR_MEM_DEVICE);
  alloc_of("cudaMalloc", OF_PROGRAM, 1300, 0x20000, 8,
           WEIR_MEM_CODE); /* damaged: of unknown kind */
  synth_close();
  const char *one[] = {synth_spool(), NULL}, *t = synth_import("t.db", one);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM memory WHERE mem = 9"), 105);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE mem = 9 AND device = 0"), 105);
  ck_assert_int_eq(synth_number(t, "SELECT live FROM memory WHERE mem = 9"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE mem = 10"), 1000);
  ck_assert_int_eq(synth_number(t, "SELECT live FROM memory WHERE mem = 10"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE mem IS NULL AND device = 0"), 48);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE pointer = 113 AND how = 1"
                                   " AND \"end\" = 1000"),
                   2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE mem = 10 AND how = 2"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM memory_taken WHERE certainty = 'possible'"),
                   9);
  ck_assert_int_eq(
      synth_number(t, "SELECT sum(bytes) FROM memory_taken WHERE certainty = 'certain'"), 1105);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"
                                   " WHERE bytes > 40"),
                   0);
  json_t *report = synth_json(t), *device = json_array_get(json_object_get(report, "devices"), 0);
  has(device, "code_blocks", 3);
  has(device, "code_frees", 3);
  has(device, "context_peak_bytes", 1000);
  has(device, "peak_bytes", 48);
  has(device, "free_calls", 0);
  json_decref(report);
}
END_TEST

/* A program from 0 to 1005 that has 40 bytes from 200 on, device 0 on bus 1A, and NVML's word on
 * that bus each 10 ns up to 1200: 18 bytes are in use, with its context 30, then 70, 75 once,
 * and 25 when it has gone. `more`: of another CUDA program, from 500 on. */
static const char *trace_with_nvml(int64_t total, int more)
{
  char sql[768];
  open_with_stacks();
  synth_extended(0, WEIR_EV_NAME, 0, WEIR_NAME_DEVICE_BUS, "0000:1a:00.0", 12);
  sample(100, 10000, 9970, 0);
  alloc_of("cudaMalloc", OF_PROGRAM, 200, 0x10000, 40, WEIR_MEM_DEVICE);
  synth_close();
  const char *one[] = {synth_spool(), NULL}, *trace = synth_import("t.db", one);
  (void)snprintf(sql, sizeof sql,
                 "UPDATE process SET \"end\" = 1005; WITH RECURSIVE t(n) AS (SELECT 10 UNION ALL"
                 " SELECT n + 10 FROM t WHERE n < 1200) INSERT INTO nvml_sample(time, bus, total,"
                 " used, of_run, of_others) SELECT n, '0000:1A:00.0', %lld, CASE WHEN n > 1000 THEN"
                 " 25 WHEN n <= 100 THEN 18 WHEN n < 200 THEN 30 WHEN n = 440 THEN 75 ELSE 70 END "
                 "+ (n >= 500) * %d, 1,"
                 " 5 + (n >= 500) * %d FROM t",
                 (long long)total, more, more);
  synth_change(trace, sql);
  return trace;
}

START_TEST(what_nvml_says_over_time_is_divided_as_the_drivers_word_is)
{
  json_t *report = synth_json(trace_with_nvml(10100, 20)), *x;
  json_t *device = json_array_get(json_object_get(report, "devices"), 0);
  json_t *in_use = json_object_get(device, "in_use_nvml");
  size_t i, once = 0;
  int64_t before = -1;
  has(in_use, "samples", 90);
  has(in_use, "ahead_bytes", 18);
  has(in_use, "before_bytes", 30);
  has(in_use, "after_bytes", 45);
  ck_assert_uint_eq(json_array_size(json_object_get(in_use, "moments")), 7);
  json_array_foreach(json_object_get(in_use, "moments"), i, x)
  {
    int64_t at = json_integer_value(json_object_get(x, "at_ns"));
    ck_assert_int_gt(at, before);
    has(x, "live_bytes", at >= 200 ? 40 : 0);
    has(x, "others_more_bytes", at >= 500 ? 20 : 0);
    has(x, "unexplained_bytes", at == 440 ? 5 : 0);
    if (at >= 200) has_owner(x, 0, "program", 40);
    before = at;
    if (i == 6) ck_assert_int_eq(at, 1000);
  }
  json_array_foreach(json_object_get(json_object_get(device, "in_use"), "moments"), i, x) once++;
  ck_assert_uint_eq(once, 1);
  json_decref(report);
}
END_TEST

START_TEST(the_moment_with_the_most_is_among_those_of_nvml)
{
  json_t *report = synth_json(trace_with_nvml(10100, 0)), *x;
  json_t *device = json_array_get(json_object_get(report, "devices"), 0);
  size_t i, most = 0;
  json_array_foreach(json_object_get(json_object_get(device, "in_use_nvml"), "moments"), i,
                     x) if (json_integer_value(json_object_get(x, "used_bytes")) == 75)
  {
    has(x, "at_ns", 440);
    has(x, "unexplained_bytes", 5);
    most++;
  }
  ck_assert_uint_eq(most, 1);
  json_decref(report);
}
END_TEST

START_TEST(of_a_divided_device_and_of_an_ordinal_of_two_devices_nvml_is_not_heard)
{
  json_t *report = synth_json(trace_with_nvml(80000, 0)); /* the program has an eighth of it */
  json_t *device = json_array_get(json_object_get(report, "devices"), 0);
  ck_assert(json_is_null(json_object_get(device, "in_use_nvml")));
  ck_assert(json_is_object(json_object_get(device, "in_use")));
  json_decref(report);
  synth_clean();
  const char *trace = trace_with_nvml(10100, 0);
  synth_change(trace, "INSERT INTO name(process, kind, handle, name) VALUES(2, 'device_bus', 0,"
                      " '0000:1B:00.0')");
  report = synth_json(trace);
  device = json_array_get(json_object_get(report, "devices"), 0);
  ck_assert(json_is_null(json_object_get(device, "in_use_nvml")));
  json_decref(report);
}
END_TEST

START_TEST(moments_that_are_one_stand_once_and_damaged_samples_not_at_all)
{
  open_with_stacks();
  sample(100, 10, 11, 0);               /* more free than there is */
  sample(110, 10, 5, WEIR_DEVICE_NONE); /* of no device */
  sample(120, UINT64_MAX, 0, 3);        /* much */
  alloc_of("cudaMalloc", OF_PROGRAM, 200, 0x10000, 40, WEIR_MEM_DEVICE);
  sample(300, 10000, 9000, 0);
  synth_close();
  json_t *report = report_of_spool(), *in_use = in_use_of(report);
  const json_t *list = json_object_get(in_use, "moments");
  has(in_use, "samples", 1);
  has(in_use, "before_bytes", 960);
  ck_assert_uint_eq(json_array_size(list), 1);
  has_owner(json_array_get(list, 0), 0, "program", 40);
  json_decref(report);
}
END_TEST

START_TEST(a_trace_without_samples_says_so)
{
  open_with_stacks();
  alloc_of("cudaMalloc", OF_PROGRAM, 200, 0x10000, 40, WEIR_MEM_DEVICE);
  synth_close();
  json_t *report = report_of_spool();
  ck_assert(json_is_null(in_use_of(report)));
  json_decref(report);
}
END_TEST

START_TEST(the_page_shows_who_has_what_is_in_use)
{
  open_with_stacks();
  sample(100, 1 << 30, (1 << 30) - (5 << 20), 0);
  alloc_of("cudaMalloc", OF_LIBRARY, 200, 0x10000, 3 << 20, WEIR_MEM_DEVICE);
  sample(300, 1 << 30, (1 << 30) - (9 << 20), 0);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  char *text = synth_text(synth_import("t.db", one), 100);
  ck_assert_ptr_nonnull(strstr(text, "in use of its 1.00 GiB, as the driver said 2 times"));
  ck_assert_ptr_nonnull(strstr(text, "libnccl.so.2"));
  ck_assert_ptr_nonnull(strstr(text, "there before: contexts, modules, other programs  5.00 MiB"));
  ck_assert_ptr_nonnull(strstr(text, "unexplained"));
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/in_use");
  TCase *t = tcase_create("in use");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, all_in_use_is_its_owners_what_is_idle_what_was_there_and_the_rest);
  tcase_add_test(t, what_code_contexts_and_graphs_took_is_no_part_of_the_unexplained);
  tcase_add_test(t, what_an_interpreter_asks_for_is_its_scripts_or_its_own);
  tcase_add_test(t, what_was_taken_while_blocks_came_and_went_stays_unexplained);
  tcase_add_test(t, what_was_taken_is_a_block_where_nothing_else_ran_meanwhile);
  tcase_add_test(t, what_nvml_says_over_time_is_divided_as_the_drivers_word_is);
  tcase_add_test(t, the_moment_with_the_most_is_among_those_of_nvml);
  tcase_add_test(t, of_a_divided_device_and_of_an_ordinal_of_two_devices_nvml_is_not_heard);
  tcase_add_test(t, moments_that_are_one_stand_once_and_damaged_samples_not_at_all);
  tcase_add_test(t, a_trace_without_samples_says_so);
  tcase_add_test(t, the_page_shows_who_has_what_is_in_use);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
