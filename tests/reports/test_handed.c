/* test_handed.c: blocks that launches are handed, or not, as rule 21 judges them. A run of 10 ms: a
 * block of 96 MiB is filled, some launches are handed it, and other work follows for the rest. */
#include <check.h>
#include <string.h>
#include "reports/findings/big_blocks.h"
#include "reports/findings/findings.h"
#include "reports/model/open.h"
#include "tests/reports/synth.h"

#define BLOCK UINT64_C(0x700000000000)
#define OTHER UINT64_C(0x710000000000)
#define LATE  UINT64_C(0x720000000000)

enum {
  BYTES = 96 << 20,
  FIRST = 1000000, /* ns: launches of the block before; others from here on */
  STEP = 50000,
  LAUNCHES = 200,
  OF_BLOCK = 1, /* sets: of the block, of the other one, of none, one whose words are lost */
  OF_OTHER,
  OF_NONE,
  LOST,
  STREAM = 0x44,
  KERNEL = 0x10, /* the function that is launched, and another one */
  STRANGER = 0x20
};

static void launch_function(int thread, uint64_t at, unsigned set, uint64_t stream,
                            uint64_t function)
{
  ck_assert(synth_event(thread, at, 100,
                        (trace_event){.kind = WEIR_EV_LAUNCH,
                                      .api = synth_api("cuLaunchKernel"),
                                      .a = function,
                                      .detail = (uint8_t)set,
                                      .src_device = WEIR_DEVICE_NONE,
                                      .stream = stream}));
}

static void launch(int thread, uint64_t at, unsigned set, uint64_t stream)
{
  launch_function(thread, at, set, stream, KERNEL);
}

static void move_block(uint64_t at, event_kind kind, copy_kind copy, uint64_t to)
{
  const char *name = kind == WEIR_EV_COPY ? "cuMemcpyHtoDAsync_v2" : "cuMemsetD8Async";
  ck_assert(synth_event(0, at, 100,
                        (trace_event){.kind = (uint8_t)kind,
                                      .api = synth_api(name),
                                      .flags = WEIR_EVF_ASYNC,
                                      .a = to,
                                      .b = 0x1000,
                                      .bytes = 4096,
                                      .copy_kind = (uint8_t)copy,
                                      .src_device = WEIR_DEVICE_NONE,
                                      .mem = WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4,
                                      .stream = STREAM}));
}

static void wait_for(uint64_t at, sync_type type, uint64_t stream)
{
  ck_assert(synth_event(0, at, 100,
                        (trace_event){.kind = WEIR_EV_SYNC,
                                      .api = synth_api("cuStreamSynchronize"),
                                      .sync_type = (uint8_t)type,
                                      .src_device = WEIR_DEVICE_NONE,
                                      .stream = stream}));
}

/* Blocks, sets, and what fills the block. */
static void begin_handed(void)
{
  const uint64_t words[] = {BLOCK + 4096, OTHER};
  synth_open(synth_dir());
  for (unsigned set = OF_BLOCK; set <= OF_OTHER; set++)
    ck_assert(synth_extended(0, WEIR_EV_ACCESS, set, 0, &(access_word){.word = words[set - 1]},
                             sizeof(access_word)));
  ck_assert(synth_extended(0, WEIR_EV_ACCESS, OF_NONE, 0, NULL, 0));
  synth_alloc(0, 1000, 100, BLOCK, BYTES, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 2000, 100, OTHER, 1 << 20, 0, WEIR_MEM_DEVICE);
  move_block(3000, WEIR_EV_COPY, WEIR_COPY_HTOD, BLOCK);
}

/* Launches with these sets in turn, and the peak among them. */
static void go_on_handed(unsigned one, unsigned two)
{
  synth_alloc(0, FIRST, 100, LATE, 4096, 0, WEIR_MEM_DEVICE);
  for (uint64_t i = 0; i < LAUNCHES; i++)
    launch(0, FIRST + 1000 + i * STEP, i % 10 == 5 ? two : one, STREAM);
}

/* What rule 21 finds; -1: nothing. */
static int found_how(void)
{
  wr_input in;
  wr_findings f;
  const wr_findings_settings settings = {.min = {0, -1, 0}};
  int how = -1;
  ck_assert_int_eq(wr_input_open(&in, synth_import_this()), WEIR_OK);
  ck_assert_msg(wr_findings_load(&f, &in.db, &settings) == WEIR_OK, "%s", weir_error_message());
  for (size_t i = 0; i < f.count; i++)
    if (!strcmp(f.finding[i].rule->id, "idle-object")) {
      ck_assert_int_eq(how, -1);
      ck_assert_uint_eq(f.finding[i].saving_bytes, BYTES);
      how = f.finding[i].certainty;
    }
  wr_findings_free(&f);
  wr_input_close(&in);
  return how;
}

/* Two launches of the block and a wait, then others: what each kind of these makes of it. */
START_TEST(held_after_the_last_launch_that_was_handed_it)
{
  static const struct {
    unsigned one, two;
    int how;
  } after[] = {{OF_OTHER, OF_NONE, WR_LIKELY},
               {OF_OTHER, OF_BLOCK, -1},
               {OF_OTHER, 0, WR_POSSIBLE},
               {OF_OTHER, LOST, WR_POSSIBLE},
               {0, 0, WR_POSSIBLE}};
  begin_handed();
  launch(0, 10000, OF_BLOCK, STREAM);
  launch(0, 20000, OF_BLOCK, STREAM);
  wait_for(30000, WEIR_SYNC_STREAM, STREAM);
  go_on_handed(after[_i].one, after[_i].two);
  ck_assert_int_eq(found_how(), after[_i].how);
}
END_TEST

/* A kernel uses what it was handed until it ends, which only a wait for it shows. */
START_TEST(in_use_until_the_host_has_waited_for_its_launch)
{
  begin_handed();
  launch(0, 10000, OF_BLOCK, STREAM);
  launch(0, 20000, OF_BLOCK, STREAM);
  if (_i == 1) wait_for(30000, WEIR_SYNC_STREAM, STREAM + 1);
  if (_i == 2) wait_for(30000, WEIR_SYNC_QUERY, STREAM);
  if (_i == 3) wait_for(30000, WEIR_SYNC_CONTEXT, 0);
  if (_i == 4) move_block(30000, WEIR_EV_MEMSET, WEIR_COPY_UNKNOWN, BLOCK);
  go_on_handed(OF_OTHER, OF_NONE);
  ck_assert_int_eq(found_how(), _i == 3 ? WR_LIKELY : -1);
}
END_TEST

/* A stream of the thread's own is another stream in each thread. */
START_TEST(another_threads_stream_is_another)
{
  begin_handed();
  launch(1, 10000, OF_BLOCK, WEIR_STREAM_PER_THREAD);
  launch(_i, 20000, OF_BLOCK, WEIR_STREAM_PER_THREAD);
  wait_for(30000, WEIR_SYNC_STREAM, WEIR_STREAM_PER_THREAD);
  go_on_handed(OF_OTHER, OF_NONE);
  ck_assert_int_eq(found_how(), -1);
}
END_TEST

/* It may be reached by an address in other memory: that it never was a parameter proves nothing. */
START_TEST(a_block_that_was_hardly_handed_over_is_possible_at_most)
{
  begin_handed();
  if (_i) launch(0, 10000, OF_BLOCK, STREAM);
  move_block(20000, WEIR_EV_MEMSET, WEIR_COPY_UNKNOWN, BLOCK);
  wait_for(30000, WEIR_SYNC_STREAM, STREAM);
  go_on_handed(OF_OTHER, OF_NONE);
  ck_assert_int_eq(found_how(), WR_POSSIBLE);
}
END_TEST

/* A kernel that never was handed the block may find its address in the other memory, which a table
 * of addresses is, or in a variable of its module; one that was takes such memory as a parameter. */
START_TEST(possible_where_a_kernel_is_launched_that_never_was_handed_it)
{
  begin_handed();
  launch(0, 10000, OF_BLOCK, STREAM);
  launch(0, 20000, OF_BLOCK, STREAM);
  if (_i == 2) launch_function(0, 25000, OF_BLOCK, STREAM, STRANGER);
  wait_for(30000, WEIR_SYNC_STREAM, STREAM);
  go_on_handed(OF_OTHER, OF_OTHER);
  if (_i) launch_function(0, FIRST + 1000 + LAUNCHES * STEP, OF_OTHER, STREAM, STRANGER);
  ck_assert_int_eq(found_how(), _i == 1 ? WR_POSSIBLE : WR_LIKELY);
}
END_TEST

/* Kernels use it by the texture's handle, or by the words of a tensor map. */
START_TEST(possible_where_a_texture_or_a_tensor_map_was_made_of_it)
{
  static const char *const makes[] = {"cuTexObjectCreate", "cuTexRefSetAddress_v2",
                                      "cuTensorMapEncodeTiled", "cuTensorMapReplaceAddress"};
  bool other = _i % 2;
  begin_handed();
  ck_assert(synth_event(0, 5000, 100,
                        (trace_event){.kind = WEIR_EV_CALL,
                                      .api = synth_api(makes[_i / 2]),
                                      .a = other ? OTHER : BLOCK + 4096,
                                      .src_device = WEIR_DEVICE_NONE}));
  launch(0, 10000, OF_BLOCK, STREAM);
  launch(0, 20000, OF_BLOCK, STREAM);
  wait_for(30000, WEIR_SYNC_STREAM, STREAM);
  go_on_handed(OF_OTHER, OF_NONE);
  ck_assert_int_eq(found_how(), other ? WR_LIKELY : WR_POSSIBLE);
}
END_TEST

/* Of so many kernels as are kept; what the others are handed proves nothing. */
START_TEST(possible_where_more_kernels_were_handed_it_than_are_kept)
{
  uint64_t last = STRANGER + WR_BIG_KERNELS - 1 + (uint64_t)_i;
  begin_handed();
  for (uint64_t f = STRANGER; f <= last; f++)
    launch_function(0, 10000 + (f - STRANGER) * 200, OF_BLOCK, STREAM, f);
  wait_for(30000, WEIR_SYNC_STREAM, STREAM);
  synth_alloc(0, FIRST, 100, LATE, 4096, 0, WEIR_MEM_DEVICE);
  for (uint64_t i = 0; i < LAUNCHES; i++)
    launch_function(0, FIRST + 1000 + i * STEP, OF_OTHER, STREAM, last);
  ck_assert_int_eq(found_how(), _i ? WR_POSSIBLE : WR_LIKELY);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("reports/handed");
  TCase *c = tcase_create("idle");
  tcase_add_checked_fixture(c, NULL, synth_clean);
  tcase_add_loop_test(c, held_after_the_last_launch_that_was_handed_it, 0, 5);
  tcase_add_loop_test(c, in_use_until_the_host_has_waited_for_its_launch, 0, 5);
  tcase_add_loop_test(c, another_threads_stream_is_another, 0, 2);
  tcase_add_loop_test(c, a_block_that_was_hardly_handed_over_is_possible_at_most, 0, 2);
  tcase_add_loop_test(c, possible_where_a_kernel_is_launched_that_never_was_handed_it, 0, 3);
  tcase_add_loop_test(c, possible_where_a_texture_or_a_tensor_map_was_made_of_it, 0, 8);
  tcase_add_loop_test(c, possible_where_more_kernels_were_handed_it_than_are_kept, 0, 2);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
