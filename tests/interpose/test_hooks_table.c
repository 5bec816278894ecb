/* test_hooks_table.c: the table is whole, and its check sees where it is not; calls that do many
 * things at once, each of which is an event. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "interpose/record/cuda_headers.h"
#include "tests/interpose/hooks_rig.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define D(fn)  ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_DRIVER, #fn))
#define STREAM ((CUstream)0x77)

enum { ITEMS = 5 };
static CUdeviceptr dsts[ITEMS], srcs[ITEMS];
static size_t sizes[ITEMS];

static void fill_items(void)
{
  for (unsigned i = 0; i < ITEMS; i++) {
    dsts[i] = 0x10000u * (i + 1);
    srcs[i] = 0x900000u + 0x1000u * i;
    sizes[i] = 100u * i + 7;
  }
}

/* Item by item; all but the first are marked as of one call. */
static void check_items(unsigned kind, bool with_sources)
{
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, ITEMS);
  for (unsigned i = 0; i < ITEMS; i++) {
    const trace_event *e = &l->event[i];
    ck_assert_uint_eq(e->kind, kind);
    ck_assert_uint_eq(e->a, dsts[i]);
    ck_assert_uint_eq(e->bytes, sizes[i]);
    ck_assert_uint_eq(e->stream, 0x77);
    ck_assert_uint_eq(!!(e->flags & WEIR_EVF_BATCH), i > 0);
    if (with_sources) ck_assert_uint_eq(e->b, srcs[i]);
  }
}

START_TEST(each_copy_of_a_batch_is_an_event_by_either_abi)
{
  size_t failed = 0;
  D(cuMemcpyBatchAsync)(dsts, srcs, sizes, ITEMS, NULL, NULL, 0, &failed, STREAM);
  check_items(WEIR_EV_COPY, true);
  D(cuMemcpyBatchAsync_v2)(dsts, srcs, sizes, ITEMS, NULL, NULL, 0, STREAM);
  check_items(WEIR_EV_COPY, true);
}
END_TEST

START_TEST(each_range_of_a_batch_of_hints_is_an_event)
{
  D(cuMemPrefetchBatchAsync)(dsts, sizes, ITEMS, NULL, NULL, 0, 0, STREAM);
  check_items(WEIR_EV_CALL, false);
  D(cuMemDiscardBatchAsync)(dsts, sizes, ITEMS, 0, STREAM);
  check_items(WEIR_EV_CALL, false);
  D(cuMemDiscardAndPrefetchBatchAsync)(dsts, sizes, ITEMS, NULL, NULL, 0, 0, STREAM);
  check_items(WEIR_EV_CALL, false);
}
END_TEST

START_TEST(each_decompression_of_a_batch_is_an_event)
{
  CUmemDecompressParams p[ITEMS];
  memset(p, 0, sizeof p);
  for (unsigned i = 0; i < ITEMS; i++) {
    p[i].dst = (void *)(uintptr_t)dsts[i];
    p[i].src = (const void *)(uintptr_t)srcs[i];
    p[i].dstNumBytes = sizes[i];
  }
  D(cuMemBatchDecompressAsync)(p, ITEMS, 0, NULL, STREAM);
  check_items(WEIR_EV_CALL, true);
}
END_TEST

/* Of an array, and of nothing, there is no address. */
START_TEST(a_texture_is_an_event_with_the_linear_memory_that_it_reads)
{
  CUtexObject made = 0;
  CUDA_TEXTURE_DESC how = {0};
  CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR, .res.linear.devPtr = 0x10000},
                     rows = {.resType = CU_RESOURCE_TYPE_PITCH2D, .res.pitch2D.devPtr = 0x20000},
                     array = {.resType = CU_RESOURCE_TYPE_ARRAY,
                              .res.array.hArray = (CUarray)0x30000};
  const CUDA_RESOURCE_DESC *of[] = {&linear, &rows, &array, NULL};
  const uint64_t address[] = {0x10000, 0x20000, 0, 0};
  for (int i = 0; i < 4; i++) {
    D(cuTexObjectCreate)(&made, of[i], &how, NULL);
    const rig_log *l = rig_read();
    ck_assert_uint_eq(l->events, 1);
    ck_assert_uint_eq(l->event[0].kind, WEIR_EV_CALL);
    ck_assert_uint_eq(l->event[0].a, address[i]);
  }
}
END_TEST

START_TEST(a_tensor_map_is_an_event_with_the_memory_that_it_names)
{
  CUtensorMap map;
  D(cuTensorMapReplaceAddress)(&map, (void *)0x10000);
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, 1);
  ck_assert_uint_eq(l->event[0].kind, WEIR_EV_CALL);
  ck_assert_uint_eq(l->event[0].a, 0x10000);
}
END_TEST

START_TEST(a_batch_of_nothing_is_one_event)
{
  D(cuMemPrefetchBatchAsync)(dsts, sizes, 0, NULL, NULL, 0, 0, STREAM);
  ck_assert_uint_eq(rig_one()->bytes, 0);
  D(cuMemBatchDecompressAsync)(NULL, ITEMS, 0, NULL, STREAM);
  ck_assert_uint_eq(rig_one()->a, 0);
}
END_TEST

START_TEST(what_is_made_is_in_the_event_and_nothing_of_a_failure)
{
  CUgraphNode node = (CUgraphNode)0x51;
  CUgraphExec made = (CUgraphExec)0x52;
  D(cuGraphAddMemcpyNode)(&node, (CUgraph)0x41, NULL, 0, NULL, NULL);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->a, 0x41);
  ck_assert_uint_eq(e->b, (uint64_t)(uintptr_t)node);
  D(cuGraphInstantiateWithFlags)(&made, (CUgraph)0x41, 0);
  ck_assert_uint_eq(rig_one()->b, (uint64_t)(uintptr_t)made);
  rig_fake[WEIR_BANK_DRIVER]->status = CUDA_ERROR_INVALID_VALUE;
  D(cuGraphInstantiateWithFlags)(&made, (CUgraph)0x41, 0);
  e = rig_one();
  ck_assert_uint_eq(e->a, 0x41);
  ck_assert_uint_eq(e->b, 0);
}
END_TEST

/* The table's check, on a copy of the table that `change` was done to: its exit status. */
static int check_table_after(const char *change)
{
  const char *cuda = getenv("CUDA_HOME");
  char command[1024];
  int n = snprintf(
      command, sizeof command,
      "d=$(mktemp -d) && mkdir -p $d/interpose/table $d/interpose/record $d/interpose/reroute"
      " $d/core/trace && cp interpose/table/* $d/interpose/table && cp interpose/record/*.gen.h"
      " $d/interpose/record && cp interpose/reroute/*.gen.h $d/interpose/reroute &&"
      " cp core/trace/api.def $d/core/trace && (cd $d/interpose/table && %s) &&"
      " python3 $d/interpose/table/gen.py --cuda '%s'"
      " --table tests/interpose/data/cudart-13.0-lookups.tsv >$d/out 2>&1; r=$?;"
      " if grep -q 'not compared' $d/out; then r=77; fi; rm -r $d; exit $r",
      change, cuda && *cuda ? cuda : "/usr/local/cuda");
  ck_assert_int_lt(n, (int)sizeof command);
  int status = system(command);
  ck_assert(WIFEXITED(status));
  return WEXITSTATUS(status);
}

START_TEST(every_function_and_look_up_has_its_wrapper_or_its_class)
{
  int status = check_table_after("true");
  ck_assert_msg(status == 0 || status == 77, "make check-table: %d", status);
}
END_TEST

START_TEST(a_broken_table_is_found)
{
  static const char *const changes[] = {
      "sed -i '/^cuMemPoolTrimTo/d' hooks.tsv",
      "sed -i 's/cuGetErrorName//' unrecorded.tsv",
      "sed -i 's/bytes=bytesize route/bytes=0 route/' hooks.tsv",
      "sed -i 's/^cuGraphLaunch\t-/cuNothing\t-/' hooks.tsv",
  };
  if (check_table_after("true") == 77) return; /* headers of another version than the table's */
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    ck_assert_msg(check_table_after(changes[i]) == 1, "not found: %s", changes[i]);
}
END_TEST

static void set_up_items(void)
{
  rig_setup();
  fill_items();
}

int main(void)
{
  Suite *s = suite_create("table");
  TCase *c = tcase_create("table");
  tcase_add_checked_fixture(c, set_up_items, rig_teardown);
  tcase_set_timeout(c, 60);
  tcase_add_test(c, every_function_and_look_up_has_its_wrapper_or_its_class);
  tcase_add_test(c, a_broken_table_is_found);
  tcase_add_test(c, each_copy_of_a_batch_is_an_event_by_either_abi);
  tcase_add_test(c, each_range_of_a_batch_of_hints_is_an_event);
  tcase_add_test(c, each_decompression_of_a_batch_is_an_event);
  tcase_add_test(c, a_batch_of_nothing_is_one_event);
  tcase_add_test(c, a_texture_is_an_event_with_the_linear_memory_that_it_reads);
  tcase_add_test(c, a_tensor_map_is_an_event_with_the_memory_that_it_names);
  tcase_add_test(c, what_is_made_is_in_the_event_and_nothing_of_a_failure);
  suite_add_tcase(s, c);
  return rig_run(s);
}
