/* test_sites.c: places in the program, the callers that lead to them, and the text they are printed
 * in. Frames lie in no module, so that a frame's name is its address. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/model/sites.h"
#include "reports/base/units.h"
#include "reports/write/grid.h"
#include "tests/reports/synth.h"

#define HOST (int)WEIR_DEVICE_NONE

static const char *close_and_import(void)
{
  const char *one[] = {synth_spool(), NULL};
  synth_close();
  return synth_import("t.db", one);
}

static void record_site_stack(uint32_t id, uint64_t place, uint64_t caller, uint64_t outermost)
{
  const uint64_t frames[] = {place, caller, outermost};
  synth_stack(0, id, frames, 3);
}

static void record_site_alloc(uint64_t at, uint64_t bytes, uint32_t stack_id)
{
  synth_event(0, at, 10,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMalloc"),
                            .flags = WEIR_EVF_RUNTIME,
                            .a = 0x100000 + at,
                            .bytes = bytes,
                            .mem = WEIR_MEM_DEVICE,
                            .src_device = HOST,
                            .stack = stack_id});
}

static char *text_of(const char *path, report_settings o)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  ck_assert_ptr_nonnull(f);
  ck_assert_msg(report_summary(f, path, &o) == WEIR_OK, "%s", weir_error_message());
  (void)fclose(f);
  return text;
}

static int64_t number(const json_t *o, const char *member)
{
  const json_t *n = json_object_get(o, member);
  ck_assert_msg(json_is_integer(n), "%s is no number", member);
  return json_integer_value(n);
}

static json_t *site_list(const json_t *report, const char *name)
{
  json_t *a = json_object_get(json_object_get(report, "sites"), name);
  ck_assert(json_is_array(a));
  return a;
}

/* A helper that everybody allocates with: its callers are told apart, to the last byte. */
START_TEST(leaks_of_each_caller_are_told_apart)
{
  synth_open(synth_dir());
  record_site_stack(1, 0xa0, 0xb0, 0xc0);
  record_site_stack(2, 0xa0, 0xb1, 0xc0);
  record_site_stack(3, 0xa0, 0xb1, 0xc1);
  record_site_alloc(100, 1 << 20, 1);
  record_site_alloc(200, 2 << 20, 2);
  record_site_alloc(300, 4 << 20, 3);
  record_site_alloc(400, 8 << 20, 1);
  const char *t = close_and_import();
  json_t *j = synth_json(t), *leaks = site_list(j, "live_at_exit"), *one = json_array_get(leaks, 0);
  json_t *stacks = json_object_get(one, "stacks");
  const int64_t bytes[] = {9 << 20, 4 << 20, 2 << 20}, calls[] = {2, 1, 1};
  ck_assert_uint_eq(json_array_size(leaks), 1);
  ck_assert_int_eq(number(one, "bytes"), 15 << 20);
  ck_assert_uint_eq(json_array_size(stacks), 3);
  for (size_t i = 0; i < 3; i++) {
    const json_t *x = json_array_get(stacks, i);
    ck_assert_int_eq(number(x, "bytes"), bytes[i]);
    ck_assert_int_eq(number(x, "calls"), calls[i]);
    ck_assert_uint_eq(json_array_size(json_object_get(x, "frames")), 3); /* the whole of it */
  }
  json_decref(j);
  char *text = text_of(t, (report_settings){.width = 100});
  const char *leak = strstr(text, "Live at exit");
  ck_assert_ptr_nonnull(leak);
  ck_assert_ptr_nonnull(strstr(leak, "       4  15.0 MiB  0xa0\n"
                                     "       2  9.00 MiB  ← 0xb0\n"
                                     "                      ← 0xc0\n"
                                     "       2  6.00 MiB  ← 0xb1\n"
                                     "       1  4.00 MiB    ← 0xc1\n"
                                     "       1  2.00 MiB    ← 0xc0\n"));
  free(text);
  text = text_of(t, (report_settings){.width = 100, .depth = 1});
  ck_assert_ptr_nonnull(strstr(text, "← 0xb1"));
  ck_assert_ptr_null(strstr(text, "← 0xc1"));
  free(text);
  text = text_of(t, (report_settings){.width = 100, .depth = -1});
  ck_assert_ptr_null(strstr(text, "←"));
  free(text);
}
END_TEST

START_TEST(each_function_has_the_place_that_most_of_its_time_was_in)
{
  synth_open(synth_dir());
  record_site_stack(1, 0xa0, 0xb0, 0xc0);
  record_site_stack(2, 0xa0, 0xb1, 0xc0);
  record_site_stack(3, 0xa9, 0xb1, 0xc0);
  record_site_alloc(100, 1 << 20, 3);
  record_site_alloc(200, 1 << 20, 1);
  record_site_alloc(300, 1 << 20, 2);
  record_site_alloc(400, 1 << 20, 1);
  synth_free(0, 500, 5, 0x100000 + 400); /* without a stack */
  const char *t = close_and_import();
  json_t *j = synth_json(t), *apis = json_object_get(j, "apis");
  const json_t *alloc = json_array_get(apis, 0), *place = json_object_get(alloc, "place");
  ck_assert_str_eq(json_string_value(json_object_get(place, "function")), "0xa0");
  ck_assert_int_eq(number(place, "calls"), 3);
  ck_assert_int_eq(number(place, "ns"), 30);
  ck_assert_int_eq(number(alloc, "places"), 2);
  ck_assert(json_is_null(json_object_get(json_array_get(apis, 1), "place")));
  json_decref(j);
  for (int width = 0; width <= 80; width += 80) {
    char *text = text_of(t, (report_settings){.width = width});
    const char *functions = strstr(text, "Functions\n");
    ck_assert_msg(functions && strstr(functions, "75 % in 0xa0"), "%s", text);
    free(text);
  }
}
END_TEST

static void name_python_frame(uint64_t number, uint32_t line, const char *function)
{
  char payload[64];
  const char *file = "/home/loop.py";
  python_frame_info info = {.line = line,
                            .function_bytes = (uint16_t)strlen(function),
                            .file_bytes = (uint16_t)strlen(file)};
  memcpy(payload, &info, sizeof info);
  int n = snprintf(payload + sizeof info, sizeof payload - sizeof info, "%s%s", function, file);
  ck_assert_int_lt(n, (int)(sizeof payload - sizeof info));
  synth_extended(0, WEIR_EV_PYTHON_FRAME, WEIR_PYTHON_FRAME_FIRST + number, 0, payload,
                 sizeof info + (size_t)n);
}

/* Two functions call through four of libraries; the first also through one only. */
static const char *calls_from_python(void)
{
  const uint64_t forward = WEIR_PYTHON_FRAME_FIRST + 1, backward = WEIR_PYTHON_FRAME_FIRST + 2,
                 train = WEIR_PYTHON_FRAME_FIRST + 3;
  const uint64_t deep[2][6] = {{0xa0, 0xb0, 0xc0, 0xd0, forward, train},
                               {0xa0, 0xb0, 0xc0, 0xd0, backward, train}};
  synth_open(synth_dir());
  name_python_frame(1, 11, "Model.forward");
  name_python_frame(2, 16, "Model.backward");
  name_python_frame(3, 26, "train");
  synth_stack(0, 1, deep[0], 6);
  synth_stack(0, 2, deep[1], 6);
  synth_stack(0, 3, (const uint64_t[]){0xe0, 0xf0, forward, train}, 4);
  record_site_alloc(100, 4 << 20, 1);
  record_site_alloc(200, 2 << 20, 2);
  record_site_alloc(300, 1 << 20, 3);
  return close_and_import();
}

/* What libraries do for a script is where the script calls them, at any depth. */
START_TEST(a_call_from_python_is_where_the_users_script_makes_it)
{
  const char *t = calls_from_python();
  for (int depth = 1; depth <= 4; depth++) {
    char *text = text_of(t, (report_settings){.width = 100, .depth = depth});
    ck_assert_msg(strstr(text, "       2  5.00 MiB  Model.forward  home/loop.py:11\n") &&
                      strstr(text, "       1  2.00 MiB  Model.backward  home/loop.py:16\n"),
                  "%d: %s", depth, text);
    ck_assert_msg(!strstr(text, "0xa0"), "%d: %s", depth, text);
    free(text);
  }
}
END_TEST

#define LIBRARY "/usr/lib/python3/dist-packages/"

/* Blocks that nothing has used, at two places. */
START_TEST(the_advice_of_a_rule_is_printed_once)
{
  synth_open(synth_dir());
  record_site_stack(1, 0xa0, 0xb0, 0xc0);
  record_site_stack(2, 0xa1, 0xb0, 0xc0);
  record_site_alloc(100, 1 << 20, 1);
  record_site_alloc(4 << 20, 2 << 20, 2);
  char *text = text_of(close_and_import(), (report_settings){.width = 200});
  const char *advice = strstr(text, "\n    Delete the allocation: ");
  ck_assert_msg(advice && !strstr(advice + 8, "Delete the allocation: "), "%s", text);
  ck_assert_msg(strstr(advice, "\n  2. Device memory") && strstr(advice, "\n    As 1.\n"), "%s",
                text);
  free(text);
}
END_TEST

/* Each stack is innermost first; `at`: the frame that is its place. */
START_TEST(what_a_library_does_is_at_the_users_frame)
{
  static const char exe[] = "/home/me/prog", runtime[] = "/opt/cuda/lib64/libcudart.so.13";
  const struct {
    size_t at, count;
    wr_frame frame[5];
  } stacks[] = {
      /* a header's template, inlined into the program */
      {2,
       4,
       {{.function = "cudaMalloc", .module = runtime},
        {.function = "allocate<int>", .file = "/usr/include/c++/12/bits/a.h", .module = exe},
        {.function = "fill", .file = "/home/me/prog.cu", .module = exe},
        {.function = "main", .file = "/home/me/prog.cu", .module = exe}}},
      {2,
       3,
       {{.function = "cudaMalloc", .module = runtime},
        {.function = "thrust::x", .file = "/opt/cuda/include/thrust/x.h", .module = exe},
        {.function = "main", .file = "/home/me/prog.cu", .module = exe}}},
      /* a library of the system's */
      {2,
       3,
       {{.function = "cuMemAlloc_v2", .module = "/usr/lib/libcuda.so.1"},
        {.function = "cublasCreate", .module = "/usr/local/cuda/lib64/libcublas.so.13"},
        {.function = "main", .module = exe}}},
      /* packages of Python, in C and in Python */
      {3,
       4,
       {{.function = "cuMemAlloc_v2", .module = "/usr/lib/libcuda.so.1"},
        {.module = LIBRARY "x/_driver.so"},
        {.function = "array", .file = LIBRARY "x/api.py", .module = "", .script = true},
        {.function = "train", .file = "/home/me/t.py", .module = "", .script = true}}},
      /* a script of a package alone: the innermost of scripts */
      {2,
       3,
       {{.function = "cuMemAlloc_v2", .module = "/usr/lib/libcuda.so.1"},
        {.module = "/usr/lib/libffi.so.8"},
        {.function = "array", .file = LIBRARY "x/api.py", .module = "", .script = true}}},
      /* templates of C++ that are built into the program, whose debug information has no file */
      {3,
       5,
       {{.function = "cudaMalloc", .module = runtime},
        {.function = "at::cuda::take(unsigned long)", .module = exe},
        {.function = "void std::__invoke_impl<void, work>(work&&)", .module = exe},
        {.function = "work()", .file = "/home/me/prog.cu", .module = exe},
        {.function = "start_thread", .module = "/lib/x86_64-linux-gnu/libc.so.6"}}},
      /* the user's own library */
      {1,
       3,
       {{.function = "cudaMalloc", .module = runtime},
        {.function = "grow", .module = "/home/me/libgrow.so"},
        {.function = "main", .file = "/home/me/prog.cu", .module = exe}}},
  };
  const wr_db innermost = {.innermost_sites = true};
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
    ck_assert_msg(wr_site_at(stacks[i].frame, stacks[i].count) == stacks[i].at, "stack %zu", i);
    ck_assert_uint_le(wr_site_in(&innermost, stacks[i].frame, stacks[i].count), stacks[i].at);
  }
  ck_assert_uint_eq(wr_site_in(&innermost, stacks[0].frame, stacks[0].count), 1);
}
END_TEST

/* What std:: and the system have between the user's frames is no caller, unless it is asked for. */
START_TEST(callers_are_the_users)
{
  synth_open(synth_dir());
  synth_module(0, 0x10000, 0x10000, 0x20000, "/home/me/app", NULL, 0);
  synth_module(0, 0x30000, 0x30000, 0x40000, "/lib/x86_64-linux-gnu/libstdc++.so.6", NULL, 0);
  synth_stack(0, 1, (const uint64_t[]){0xa0, 0x10010, 0x30010, 0x10020}, 4);
  record_site_alloc(100, 4 << 20, 1);
  const char *trace = close_and_import();
  char *text = text_of(trace, (report_settings){.width = 100});
  ck_assert_msg(strstr(text, "← app+0x20") && !strstr(text, "libstdc++"), "%s", text);
  free(text);
  text = text_of(trace, (report_settings){.width = 100, .innermost_sites = true});
  ck_assert_msg(strstr(text, "← libstdc++.so.6+0x10"), "%s", text);
  free(text);
}
END_TEST

static char *text_of_interpreted(uint64_t caller)
{
  synth_open(synth_dir());
  name_python_frame(1, 11, "train");
  synth_module(0, 0x10000, 0x10000, 0x20000, "/usr/lib/libffi.so.8", NULL, 0);
  synth_stack(0, 1, (const uint64_t[]){0x10010, caller}, 2);
  record_site_alloc(100, 4 << 20, 1);
  return text_of(close_and_import(), (report_settings){.width = 100});
}

START_TEST(places_in_an_interpreter_name_the_option_that_reads_its_program)
{
  static const char advice[] = "weir run --python reads";
  char *text = text_of_interpreted(0x10020);
  ck_assert_msg(strstr(text, advice) != NULL, "%s", text);
  free(text);
  synth_clean();
  text = text_of_interpreted(WEIR_PYTHON_FRAME_FIRST + 1);
  ck_assert_msg(strstr(text, "train") && !strstr(text, advice), "%s", text);
  free(text);
}
END_TEST

/* Where the program's own code is shown, it stays, though Python is behind it. */
START_TEST(the_programs_own_frames_give_way_to_no_frame_of_python)
{
  synth_open(synth_dir());
  name_python_frame(1, 11, "plug");
  synth_module(0, 0x10000, 0x10000, 0x20000, "/opt/app", NULL, 0);
  synth_stack(0, 1, (const uint64_t[]){0xa0, 0x10010, 0xc0, WEIR_PYTHON_FRAME_FIRST + 1}, 4);
  record_site_alloc(100, 4 << 20, 1);
  char *text = text_of(close_and_import(), (report_settings){.width = 100});
  ck_assert_msg(strstr(text, "app+0x10 (removed)\n"
                             "                    ← 0xc0\n") != NULL,
                "%s", text);
  free(text);
}
END_TEST

/* Equal stacks of several processes are one. */
START_TEST(stacks_of_a_tree_of_processes_are_added_up)
{
  char first[512];
  synth_open(synth_dir());
  record_site_stack(7, 0xa0, 0xb0, 0xc0);
  record_site_alloc(100, 10, 7);
  synth_close();
  (void)snprintf(first, sizeof first, "%s", synth_spool());
  synth_open(synth_dir());
  record_site_stack(9, 0xa0, 0xb0, 0xc0);
  record_site_alloc(100, 20, 9);
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  json_t *j = synth_json(synth_import("t.db", both));
  json_t *one = json_array_get(site_list(j, "alloc"), 0), *stacks = json_object_get(one, "stacks");
  ck_assert_uint_eq(json_array_size(stacks), 1);
  ck_assert_int_eq(number(json_array_get(stacks, 0), "bytes"), 30);
  ck_assert_int_eq(number(json_array_get(stacks, 0), "calls"), 2);
  json_decref(j);
}
END_TEST

static void record_site_copy(uint64_t at, uint64_t bytes, int direction, int mem, int src_mem)
{
  synth_event(0, at, 10,
              (trace_event){.kind = WEIR_EV_COPY,
                            .api = synth_api("cudaMemcpyAsync"),
                            .flags = WEIR_EVF_RUNTIME | WEIR_EVF_ASYNC,
                            .bytes = bytes,
                            .copy_kind = (uint8_t)direction,
                            .mem = (uint8_t)(mem | src_mem << 4),
                            .stack = 1});
}

START_TEST(copies_of_one_line_are_split_by_direction_and_memory)
{
  synth_open(synth_dir());
  record_site_stack(1, 0xa0, 0xb0, 0xc0);
  for (uint64_t i = 0; i < 3; i++) {
    record_site_copy(1000 * i + 100, 1000, WEIR_COPY_HTOD, WEIR_MEM_DEVICE, WEIR_MEM_PAGEABLE);
    record_site_copy(1000 * i + 200, 200, WEIR_COPY_HTOD, WEIR_MEM_DEVICE, WEIR_MEM_PINNED);
    record_site_copy(1000 * i + 300, 50, WEIR_COPY_DTOH, WEIR_MEM_PINNED, WEIR_MEM_DEVICE);
    record_site_copy(1000 * i + 400, 1, WEIR_COPY_HTOH, WEIR_MEM_PINNED, WEIR_MEM_PAGEABLE);
  }
  const char *t = close_and_import();
  json_t *j = synth_json(t), *copies = site_list(j, "copy");
  static const struct {
    const char *direction, *from, *to, *text;
    int64_t bytes;
  } want[] = {{"h2d", "pageable", "device", "h2d pageable ", 3000},
              {"h2d", "pinned", "device", "h2d pinned ", 600},
              {"d2h", "device", "pinned", "d2h pinned ", 150},
              {"h2h", "pageable", "pinned", "h2h pageable → pinned ", 3}};
  ck_assert_uint_eq(json_array_size(copies), 4);
  char *text = text_of(t, (report_settings){.width = 100});
  for (size_t i = 0; i < 4; i++) {
    const json_t *x = json_array_get(copies, i);
    ck_assert_int_eq(number(x, "bytes"), want[i].bytes);
    ck_assert_int_eq(number(x, "calls"), 3);
    ck_assert_str_eq(json_string_value(json_object_get(x, "direction")), want[i].direction);
    ck_assert_str_eq(json_string_value(json_object_get(x, "src_memory")), want[i].from);
    ck_assert_str_eq(json_string_value(json_object_get(x, "dst_memory")), want[i].to);
    ck_assert_msg(strstr(text, want[i].text) != NULL, "%s in\n%s", want[i].text, text);
  }
  free(text);
  json_decref(j);
}
END_TEST

static size_t count_of(const char *text, const char *part)
{
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
    n++;
  return n;
}

/* 60 places, the n-th of which allocates n KiB once. */
static const char *sixty_places(void)
{
  synth_open(synth_dir());
  for (uint32_t i = 1; i <= 60; i++) {
    record_site_stack(i, 0xa000 + i, 0xb0, 0xc0);
    record_site_alloc(100 * i, UINT64_C(1024) * i, i);
  }
  return close_and_import();
}

START_TEST(a_list_has_as_many_places_as_were_asked_for_or_says_how_many_there_are)
{
  const char *t = sixty_places();
  char *all = text_of(t, (report_settings){.top = 60, .depth = -1});
  ck_assert_uint_eq(count_of(strstr(all, "Places that allocate"), "  0xa0"), 2 * 60); /* leaks */
  ck_assert_ptr_null(strstr(all, "more place"));
  free(all);
  char *most = text_of(t, (report_settings){.top = 50, .depth = -1});
  const char *list_there = strstr(most, "Places that allocate  the first 50 of 60");
  ck_assert_ptr_nonnull(list_there);
  ck_assert_uint_eq(count_of(list_there, "  0xa0"), 2 * 50);
  ck_assert_ptr_nonnull(
      strstr(list_there, "      10  55.0 KiB     100 ns              … in 10 more places\n"));
  ck_assert_ptr_nonnull(strstr(list_there, "; the first 50 of 60\n"));
  free(most);
  json_t *j = synth_json(t);
  json_t *more = json_object_get(json_object_get(json_object_get(j, "sites"), "more"), "alloc");
  ck_assert_uint_eq(json_array_size(site_list(j, "alloc")), 20);
  ck_assert_int_eq(number(more, "sites"), 40);
  ck_assert_int_eq(number(more, "calls"), 40);
  ck_assert_int_eq(number(more, "bytes"), INT64_C(1024) * 40 * 41 / 2);
  json_decref(j);
}
END_TEST

/* Many callers: so many are shown, and the sums of the rest. */
START_TEST(callers_that_are_left_out_are_added_up)
{
  synth_open(synth_dir());
  for (uint32_t i = 1; i <= 30; i++) {
    record_site_stack(i, 0xa0, 0xb000 + i, 0xc0);
    record_site_alloc(100 * i, UINT64_C(1024) * i, i);
  }
  const char *t = close_and_import();
  char *text = text_of(t, (report_settings){.top = 3, .depth = 1, .width = 100});
  const char *leak = strstr(text, "Live at exit");
  ck_assert_ptr_nonnull(strstr(leak, "      30   465 KiB  0xa0\n"
                                     "       1  30.0 KiB  ← 0xb01e\n"
                                     "       1  29.0 KiB  ← 0xb01d\n"
                                     "       1  28.0 KiB  ← 0xb01c\n"
                                     "      27   378 KiB  ← … 27 more callers\n"));
  free(text);
}
END_TEST

/* ---- width ----------------------------------------------------------------------------------- */

static char *grid_text(int width, const char *name, const char *kept)
{
  wr_grid g = {.align = "rf"};
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  ck_assert_ptr_nonnull(f);
  wr_grid_row(&g);
  wr_grid_cell(&g, "12345678");
  wr_grid_cell_kept(&g, name, kept);
  wr_grid_print(f, &g, width, false, false);
  (void)fclose(f);
  return text;
}

START_TEST(names_are_cut_in_the_middle_and_files_and_lines_never)
{
  const char *kept = "  examples/train.cu:226";
  static const struct {
    int width;
    const char *line;
  } want[] = {{0, "  12345678  a_function_with_a_long_name  examples/train.cu:226\n"},
              {63, "  12345678  a_function_with_a_long_name  examples/train.cu:226\n"},
              {50, "  12345678  a_funct…ng_name  examples/train.cu:226\n"},
              {20, "  12345678  a_f…me  examples/train.cu:226\n"}};
  for (size_t i = 0; i < 4; i++) {
    char *text = grid_text(want[i].width, "a_function_with_a_long_name", kept);
    ck_assert_str_eq(text, want[i].line);
    free(text);
  }
  char *text = grid_text(24, "größer_als_nötig", "  ü.c:1"); /* characters are not cut in pieces */
  ck_assert_str_eq(text, "  12345678  grö…ig  ü.c:1\n");
  free(text);
}
END_TEST

START_TEST(without_a_width_nothing_is_cut)
{
  static char long_text[6000], name[2000];
  memset(long_text, 'x', sizeof(long_text) - 1);
  memset(name, 'k', sizeof(name) - 1);
  synth_open(synth_dir());
  synth_extended(0, WEIR_EV_NOTE, 0, 0, long_text, strlen(long_text));
  synth_extended(0, WEIR_EV_NAME, 0, WEIR_NAME_DEVICE, name, strlen(name));
  record_site_alloc(100, 64, 0);
  char *text = text_of(close_and_import(), (report_settings){0});
  ck_assert_ptr_null(strstr(text, "…"));
  ck_assert_ptr_nonnull(strstr(text, long_text));
  ck_assert_ptr_nonnull(strstr(text, name));
  free(text);
}
END_TEST

/* " 1 things": a word after a lone one that ends in s, but for those that do by themselves. */
static void expect_singular(const char *text)
{
  for (const char *at = text; (at = strstr(at, "1 ")); at++) {
    if (at > text && strchr("0123456789,.", at[-1])) continue;
    const char *word = at + 2;
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    ck_assert_msg(n < 3 || word[n - 1] != 's' || !strncmp(word, "process", 7) ||
                      !strncmp(word, "passes", 6),
                  "%.40s", at);
  }
}

START_TEST(one_is_singular)
{
  synth_open(synth_dir());
  record_site_alloc(100, 64, 0);
  synth_sync(0, 200, 10, WEIR_SYNC_CONTEXT);
  synth_free(0, 300, 10, 0x999);
  synth_copy(0, 400, 10, WEIR_COPY_DTOH, 64, HOST, 0, WEIR_MEM_PAGEABLE, WEIR_MEM_DEVICE,
             WEIR_EVF_IMPLICIT_SYNC);
  synth_copy(0, 500, 10, WEIR_COPY_HTOD, 64, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PINNED,
             WEIR_EVF_CAPTURE);
  synth_event(0, 600, 10,
              (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch"), .stack = 1});
  synth_event(
      0, 700, 10,
      (trace_event){.kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .stack = 1});
  synth_event(0, 800, 10,
              (trace_event){.kind = WEIR_EV_MEMSET, .api = synth_api("cudaMemset"), .status = 1});
  spool_drop(1, 28);
  char *text = text_of(close_and_import(), (report_settings){.width = 100});
  static const char *const said[] = {"explicit 10 ns in 1 call · implicit 20 ns in 2 calls\n",
                                     "1 kernel launch\n",
                                     "1 block, never freed",
                                     "1 event was dropped",
                                     "1 call returned an error and counts nowhere else",
                                     "1 operation, of them 1 copy (64 B), 0 memsets, 0 kernels",
                                     "1 graph launch:",
                                     "1 free of blocks"};
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
    ck_assert_msg(strstr(text, said[i]) != NULL, "%s is not in\n%s", said[i], text);
  expect_singular(text);
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/sites");
  TCase *t = tcase_create("sites");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, leaks_of_each_caller_are_told_apart);
  tcase_add_test(t, each_function_has_the_place_that_most_of_its_time_was_in);
  tcase_add_test(t, a_call_from_python_is_where_the_users_script_makes_it);
  tcase_add_test(t, what_a_library_does_is_at_the_users_frame);
  tcase_add_test(t, the_advice_of_a_rule_is_printed_once);
  tcase_add_test(t, callers_are_the_users);
  tcase_add_test(t, places_in_an_interpreter_name_the_option_that_reads_its_program);
  tcase_add_test(t, the_programs_own_frames_give_way_to_no_frame_of_python);
  tcase_add_test(t, stacks_of_a_tree_of_processes_are_added_up);
  tcase_add_test(t, copies_of_one_line_are_split_by_direction_and_memory);
  tcase_add_test(t, a_list_has_as_many_places_as_were_asked_for_or_says_how_many_there_are);
  tcase_add_test(t, callers_that_are_left_out_are_added_up);
  tcase_add_test(t, names_are_cut_in_the_middle_and_files_and_lines_never);
  tcase_add_test(t, without_a_width_nothing_is_cut);
  tcase_add_test(t, one_is_singular);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
