/* test_lifetime.c: which free ends which allocation, live and peak bytes, against an oracle. */
#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/import/memory_log.h"
#include "tests/reports/synth.h"

#define HOST (int)WEIR_DEVICE_NONE

static const char *import_synth_spool(void)
{
  const char *one[] = {synth_spool(), NULL};
  return synth_import("t.db", one);
}

START_TEST(a_free_ends_its_block)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  synth_free(1, 200, 10, 0x1000);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t,
                                "SELECT count(*) FROM block WHERE how=1 AND bytes=64 AND device=0"
                                " AND start=110 AND \"end\"=200 AND alloc IS NOT NULL"
                                " AND free IS NOT NULL"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT sum(bytes) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"
                                   " WHERE memoryOperationType=1"),
                   64);
}
END_TEST

/* Thread 1's free lasts; inside it the address is free again and thread 0 gets it. */
START_TEST(an_address_reused_by_another_thread_during_a_free_is_a_new_block)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  synth_free(1, 200, 1000, 0x1000);
  synth_alloc(0, 210, 500, 0x1000, 128, 0, WEIR_MEM_DEVICE);
  synth_free(0, 5000, 10, 0x1000);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=1"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM block WHERE bytes=64"), 200);
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM block WHERE bytes=128"), 5000);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE device IS NULL AND mem IS NULL"),
                   128);
}
END_TEST

/* Thread 1 freed before thread 0 was given the address; their clocks say otherwise. */
START_TEST(a_free_that_a_clock_shows_too_late_is_still_of_the_block_before)
{
  synth_open(synth_dir());
  synth_alloc(1, 100, 10, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 200, 10, 0x1000, 128, 0, WEIR_MEM_DEVICE);
  synth_free(1, 300, 10, 0x1000);
  synth_free(0, 400, 10, 0x1000);
  synth_alloc(1, 500, 10, 0x2000, 64, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 600, 10, 0x2000, 128, 0, WEIR_MEM_DEVICE);
  synth_free(1, 700, 10, 0x2000);
  synth_alloc(1, 1000, 10, 0x3000, 64, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 1100, 10, 0x3000, 128, 0, WEIR_MEM_DEVICE);
  synth_free(1, 20001000, 10, 0x3000); /* too late for that: whoever may free, does */
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=1"), 4);
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM block WHERE bytes=64 AND pointer=4096"),
                   300);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=0"), 128);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=3 AND pointer=12288"), 64);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=4"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE device IS NULL AND mem IS NULL"),
                   256);
}
END_TEST

START_TEST(failed_and_captured_calls_change_nothing)
{
  trace_event e = {
      .kind = WEIR_EV_ALLOC, .a = 0x1000, .bytes = 64, .mem = WEIR_MEM_DEVICE, .status = 2};
  trace_event f = {.kind = WEIR_EV_FREE, .a = 0x2000, .status = 1};
  synth_open(synth_dir());
  synth_event(0, 100, 10, e);
  e.status = 0, e.flags = WEIR_EVF_CAPTURE;
  synth_event(0, 200, 10, e);
  synth_alloc(0, 300, 10, 0x2000, 32, 0, WEIR_MEM_DEVICE);
  synth_event(0, 400, 10, f);
  synth_free(0, 500, 10, 0);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=0 AND bytes=32"), 1);
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "live_at_exit_bytes"), 32);
  ck_assert_int_eq(synth_total(j, "alloc_calls"), 1);
  ck_assert_int_eq(synth_total(j, "free_calls"), 0); /* cudaFree(NULL) frees nothing */
  ck_assert_int_eq(synth_total(j, "failed_calls"), 2);
  ck_assert_int_eq(synth_total(j, "captured_events"), 1);
  json_decref(j);
}
END_TEST

START_TEST(a_reset_ends_the_blocks_of_its_device_and_no_others)
{
  synth_open(synth_dir());
  for (int i = 0; i < 6; i++)
    synth_alloc(0, 100 + 10 * (uint64_t)i, 5, 0x1000 * (uint64_t)(i + 1), 64, i % 2,
                WEIR_MEM_DEVICE);
  synth_event(1, 1000, 50, (trace_event){.kind = WEIR_EV_RESET, .device = 1, .src_device = HOST});
  synth_free(0, 2000, 5, 0x2000); /* of device 1: gone already */
  synth_alloc(0, 3000, 5, 0x4000, 8, 1, WEIR_MEM_DEVICE);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM block WHERE how=2 AND device=1 AND \"end\"=1000"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=0 AND device=0"), 3);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM block WHERE how=0 AND device=1 AND bytes=8"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=4 AND bytes IS NULL"), 1);
}
END_TEST

/* 1 is the primary context, 2 the program's own; what is of no known context goes too. */
START_TEST(a_reset_spares_the_contexts_that_the_program_made)
{
  synth_open(synth_dir());
  for (uint32_t c = 0; c <= 2; c++)
    synth_event(0, 100 + c * 100, 5,
                (trace_event){.kind = WEIR_EV_ALLOC,
                              .a = 0x1000 * (c + 1),
                              .bytes = 1 + c,
                              .mem = WEIR_MEM_DEVICE,
                              .stack = c << 24});
  synth_event(0, 1000, 5, (trace_event){.kind = WEIR_EV_RESET, .a = 1, .stack = 1u << 24});
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=0"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT sum(bytes) FROM block WHERE how=2"), 3);
}
END_TEST

START_TEST(the_end_of_one_context_spares_the_others)
{
  synth_open(synth_dir());
  for (uint32_t c = 1; c <= 2; c++)
    synth_event(0, c * 100, 5,
                (trace_event){.kind = WEIR_EV_ALLOC,
                              .a = 0x1000 * c,
                              .bytes = c,
                              .mem = WEIR_MEM_DEVICE,
                              .stack = c << 24});
  synth_event(0, 1000, 5,
              (trace_event){.kind = WEIR_EV_RESET, .bytes = 1, .a = 0xc0de, .stack = 2u << 24});
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=2"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=0"), 1);
}
END_TEST

START_TEST(pinned_memory_goes_with_its_contexts_device)
{
  trace_event pinned = {.kind = WEIR_EV_ALLOC, .mem = WEIR_MEM_PINNED, .device = HOST, .bytes = 10};
  synth_open(synth_dir());
  for (uint32_t c = 1; c <= 2; c++) {
    synth_event(0, c * 100, 5,
                (trace_event){.kind = WEIR_EV_ALLOC,
                              .a = 0x1000 * c,
                              .bytes = 1,
                              .mem = WEIR_MEM_DEVICE,
                              .device = (uint8_t)(c - 1),
                              .stack = c << 24});
    pinned.a = 0x8000 * c, pinned.stack = c << 24;
    synth_event(0, c * 100 + 50, 5, pinned);
  }
  synth_event(0, 1000, 5, (trace_event){.kind = WEIR_EV_RESET, .device = 1});
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=2 AND context=2"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=0 AND context=1"), 2);
}
END_TEST

START_TEST(host_memory_is_counted_apart)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 5, 0x1000, 100, HOST, WEIR_MEM_PINNED);
  synth_alloc(0, 200, 5, 0x2000, 30, HOST, WEIR_MEM_PINNED);
  synth_free(0, 300, 5, 0x1000);
  synth_alloc(0, 400, 5, 0x3000, 7, 0, WEIR_MEM_MANAGED);
  trace_event reg = {.kind = WEIR_EV_HOSTREG,
                     .api = synth_api("cudaHostRegister"),
                     .a = 0x2000,
                     .bytes = 5,
                     .device = HOST};
  synth_event(0, 500, 5, reg);
  reg.bytes = 0;
  synth_event(0, 600, 5, reg);
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "alloc_calls"), 1);
  ck_assert_int_eq(synth_total(j, "alloc_bytes"), 7);
  ck_assert_int_eq(synth_total(j, "peak_bytes"), 7);
  ck_assert_int_eq(synth_total(j, "free_calls"), 0);
  ck_assert_int_eq(synth_total(j, "pinned_alloc_calls"), 2);
  ck_assert_int_eq(synth_total(j, "pinned_free_calls"), 1);
  ck_assert_int_eq(synth_total(j, "pinned_peak_bytes"), 130);
  ck_assert_int_eq(synth_total(j, "pinned_live_at_exit_bytes"), 30);
  ck_assert_int_eq(synth_total(j, "register_calls"), 1);
  ck_assert_int_eq(synth_total(j, "register_bytes"), 5);
  json_decref(j);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE registered AND how=1"), 1);
}
END_TEST

START_TEST(a_block_whose_free_was_not_seen_ends_when_its_address_returns)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 5, 0x1000, 100, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 200, 5, 0x1000, 40, 0, WEIR_MEM_DEVICE);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM block WHERE how=3 AND bytes=100"), 205);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE device=0 AND mem IS NULL"), 100);
  ck_assert_int_eq(synth_number(t, "SELECT live FROM memory WHERE device=0 AND mem IS NULL"), 40);
}
END_TEST

START_TEST(an_array_handle_is_no_address)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 5, 0x1000, 100, 0, WEIR_MEM_ARRAY);
  synth_alloc(0, 200, 5, 0x1000, 40, 0, WEIR_MEM_DEVICE);
  synth_event(0, 300, 5, (trace_event){.kind = WEIR_EV_FREE, .a = 0x1000, .mem = WEIR_MEM_ARRAY});
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=1"), 100);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how=0"), 40);
}
END_TEST

START_TEST(processes_do_not_free_each_others_blocks)
{
  char first[512];
  synth_open(synth_dir());
  synth_alloc(0, 100, 5, 0x1000, 100, 0, WEIR_MEM_DEVICE);
  synth_close();
  (void)snprintf(first, sizeof(first), "%s", synth_spool());
  synth_open(synth_dir());
  synth_free(0, 500, 5, 0x1000);
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  const char *t = synth_import("t.db", both);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=0 AND process=1"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how=4 AND process=2"), 1);
}
END_TEST

static const char *import_three(char spools[3][512])
{
  const char *all[] = {spools[0], spools[1], spools[2], NULL};
  return synth_import("t.db", all);
}

/* Allocates at `at`, frees nothing, ends at `until`. */
static void leaky_process(char spool[512], uint64_t at, uint64_t until, uint64_t bytes)
{
  synth_open(synth_dir());
  synth_alloc(0, at, 5, 0x1000, bytes, 0, WEIR_MEM_DEVICE);
  synth_event(0, at + 10, 5,
              (trace_event){.kind = WEIR_EV_CACHE,
                            .cache_fact = WEIR_CACHE_RESERVED,
                            .bytes = 2 * bytes,
                            .mem = WEIR_MEM_DEVICE,
                            .device = 0,
                            .src_device = HOST});
  synth_sync(0, until, 5, WEIR_SYNC_CONTEXT);
  synth_close();
  (void)snprintf(spool, 512, "%s", synth_spool());
}

/* A spool opens later than the one before it has closed, by the clock of the machine. */
START_TEST(what_a_process_leaks_is_not_there_while_the_next_ones_run)
{
  char spools[3][512];
  for (int i = 0; i < 3; i++)
    leaky_process(spools[i], 100, 200, 2 << 20);
  const char *t = import_three(spools);
  json_t *j = synth_json(t);
  json_t *gpu = json_array_get(json_object_get(j, "devices"), 0);
  ck_assert_int_eq(synth_total(j, "peak_bytes"), 2 << 20);
  ck_assert_int_eq(synth_total(j, "weir_reserved_peak_bytes"), 4 << 20);
  ck_assert_int_eq(json_integer_value(json_object_get(gpu, "peak_bytes")), 2 << 20);
  ck_assert_int_eq(json_integer_value(json_object_get(
                       json_array_get(json_object_get(gpu, "peak_owners"), 0), "bytes")),
                   2 << 20);
  ck_assert_int_eq(synth_total(j, "live_at_exit_bytes"), 6 << 20);
  ck_assert_int_eq(synth_total(j, "live_at_exit_blocks"), 3);
  json_decref(j);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how = 0 AND \"end\" IS NULL"),
                   3);
}
END_TEST

START_TEST(what_processes_have_at_one_moment_adds_up)
{
  const uint64_t second = 1000000000;
  char spools[3][512];
  leaky_process(spools[0], 100, 1000 * second, 2 << 20);
  leaky_process(spools[1], 100, 1001 * second, 2 << 20);
  leaky_process(spools[2], 9000 * second, 9001 * second, 1 << 20); /* when they are gone */
  json_t *j = synth_json(import_three(spools));
  ck_assert_int_eq(synth_total(j, "peak_bytes"), 4 << 20);
  ck_assert_int_eq(synth_total(j, "weir_reserved_peak_bytes"), 8 << 20);
  ck_assert_int_eq(synth_total(j, "live_at_exit_bytes"), 5 << 20);
  json_decref(j);
}
END_TEST

/* ---- the oracle ------------------------------------------------------------------------------ */

#define SLOTS   300
#define DEVICES 3

typedef struct oracle {
  uint64_t pointer[SLOTS], bytes[SLOTS];
  int device[SLOTS];
  int64_t live[DEVICES + 1], peak[DEVICES + 1], peak_at[DEVICES + 1]; /* the last: all */
  int64_t allocs, frees, allocated;
} oracle;

static void oracle_change(oracle *o, int device, int64_t bytes, int64_t at)
{
  int both[] = {device, DEVICES};
  for (int i = 0; i < 2; i++) {
    o->live[both[i]] += bytes;
    if (o->live[both[i]] <= o->peak[both[i]]) continue;
    o->peak[both[i]] = o->live[both[i]];
    o->peak_at[both[i]] = at;
  }
}

/* One random operation at `at`, on a random thread; addresses are few, so they are soon reused. */
static void oracle_step(oracle *o, uint64_t at)
{
  size_t slot = synth_below(SLOTS);
  int thread = (int)synth_below(8);
  uint64_t pointer = 0x10000 + slot * 0x100;
  if (o->pointer[slot]) {
    synth_free(thread, at, 30 + synth_below(400), pointer);
    oracle_change(o, o->device[slot], -(int64_t)o->bytes[slot], (int64_t)at);
    o->pointer[slot] = 0;
    o->frees++;
    return;
  }
  uint64_t took = synth_below(40); /* returns before the next operation begins */
  o->pointer[slot] = pointer;
  o->bytes[slot] = 1 + synth_below(100000);
  o->device[slot] = (int)synth_below(DEVICES);
  synth_alloc(thread, at, took, pointer, o->bytes[slot], o->device[slot],
              synth_below(4) ? WEIR_MEM_DEVICE : WEIR_MEM_MANAGED);
  o->allocs++;
  o->allocated += (int64_t)o->bytes[slot];
  oracle_change(o, o->device[slot], (int64_t)o->bytes[slot], (int64_t)(at + took));
}

START_TEST(peaks_and_leaks_are_those_of_the_oracle)
{
  oracle o = {0};
  synth_seed(UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(_i + 1));
  synth_open(synth_dir());
  for (uint64_t i = 1; i <= 8000; i++)
    oracle_step(&o, i * 50);
  synth_close();
  const char *t = import_synth_spool();
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "alloc_calls"), o.allocs);
  ck_assert_int_eq(synth_total(j, "alloc_bytes"), o.allocated);
  ck_assert_int_eq(synth_total(j, "free_calls"), o.frees);
  ck_assert_int_eq(synth_total(j, "peak_bytes"), o.peak[DEVICES]);
  ck_assert_int_eq(synth_total(j, "peak_at_ns"), o.peak_at[DEVICES]);
  ck_assert_int_eq(synth_total(j, "live_at_exit_bytes"), o.live[DEVICES]);
  ck_assert_int_eq(synth_total(j, "unmatched_frees"), 0);
  json_t *devices = json_object_get(j, "devices");
  ck_assert_uint_eq(json_array_size(devices), DEVICES);
  for (size_t d = 0; d < DEVICES; d++) {
    json_t *row = json_array_get(devices, d);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "peak_bytes")), o.peak[d]);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "peak_at_ns")), o.peak_at[d]);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "live_at_exit_bytes")), o.live[d]);
    json_t *owner =
        json_array_get(json_object_get(row, "peak_owners"), 0); /* no stacks: one owner */
    ck_assert_int_eq(json_integer_value(json_object_get(owner, "bytes")), o.peak[d]);
  }
  json_decref(j);
}
END_TEST

/* An importer that takes all events of a trace has kept those of memory; one that finds them there
 * reads them from the rows. */
START_TEST(lifetimes_of_what_was_kept_are_those_of_the_rows)
{
  oracle o = {0};
  trace_importer *im = NULL;
  importer_options merge = {.merge = true};
  synth_seed(UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(_i + 1));
  synth_open(synth_dir());
  for (uint64_t i = 1; i <= 2000; i++)
    oracle_step(&o, i * 50);
  synth_event(0, 120000, 10, (trace_event){.kind = WEIR_EV_RESET, .device = 1});
  for (uint64_t i = 2500; i <= 3000; i++)
    oracle_step(&o, i * 50);
  synth_close();
  const char *t = import_synth_spool();
  synth_change(t, "CREATE TABLE earlier_block AS SELECT * FROM block; CREATE TABLE sums AS SELECT "
                  "* FROM memory");
  ck_assert_int_eq(importer_open(&im, t, &merge), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_gt(synth_number(t, "SELECT count(*) FROM earlier_block WHERE how = 1"), 500);
  ck_assert_int_gt(synth_number(t, "SELECT count(*) FROM earlier_block WHERE how = 2"), 0);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) = (SELECT count(*) FROM earlier_block) FROM block"), 1);
  ck_assert_int_eq(
      synth_number(t,
                   "SELECT count(*) FROM (SELECT * FROM block EXCEPT SELECT * FROM earlier_block)"),
      0);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM (SELECT * FROM memory EXCEPT SELECT * FROM sums)"), 0);
}
END_TEST

/* ---- graphs ---------------------------------------------------------------------------------- */

enum { ALLOCATES = 10, FREES = 11 };

static graph_node_info memory_node(uint64_t node, unsigned type, uint64_t at, uint64_t bytes)
{
  return (graph_node_info){.node = node,
                           .a = at,
                           .bytes = bytes,
                           .type = (uint8_t)type,
                           .mem = WEIR_MEM_DEVICE,
                           .device = 1,
                           .src_device = WEIR_DEVICE_NONE};
}

static void launch(uint64_t at, uint64_t ns, uint64_t exec)
{
  synth_event(0, at, ns,
              (trace_event){.kind = WEIR_EV_CALL,
                            .api = synth_api("cuGraphLaunch"),
                            .a = exec,
                            .stack = 7 | UINT32_C(2) << 24,
                            .device = WEIR_DEVICE_NONE,
                            .src_device = WEIR_DEVICE_NONE});
}

/* Graph 1 allocates A (100) and B (50), frees B, allocates C (30) at B's address; graph 2 frees
 * A. */
static void graphs_with_memory(void)
{
  const graph_node_info first[] = {
      memory_node(1, ALLOCATES, 0xa000, 100), memory_node(2, ALLOCATES, 0xb000, 50),
      memory_node(3, FREES, 0xb000, 0), memory_node(4, ALLOCATES, 0xb000, 30)};
  const graph_node_info second[] = {memory_node(9, FREES, 0xa000, 0)};
  synth_graph(0, 10, 1, first, 4);
  synth_graph(0, 20, 2, second, 1);
}

START_TEST(memory_of_a_graph_is_a_block_of_each_launch)
{
  synth_open(synth_dir());
  graphs_with_memory();
  launch(100, 10, 1);
  synth_free(1, 150, 10, 0xb000);
  launch(200, 10, 2);
  launch(300, 10, 1);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE mem = 3 AND device = 1 AND"
                                   " context = 2 AND (alloc, start) IN (SELECT id, start_ns + 10"
                                   " FROM call WHERE function = 'cuGraphLaunch')"),
                   6);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how = 5 AND bytes = 50 AND"
                                   " alloc = free AND start = \"end\""),
                   2);
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM block WHERE how = 5 AND bytes = 100"), 210);
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM block WHERE how = 1"), 150);
  ck_assert_int_eq(synth_number(t, "SELECT sum(pointer) FROM block WHERE how = 0"), 0x15000);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE device = 1 AND mem IS NULL"),
                   150);
  ck_assert_int_eq(synth_number(t, "SELECT live FROM memory WHERE device = 1 AND mem = 3"), 130);
  ck_assert_int_eq(synth_number(t,
                                "SELECT count(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE deviceId"
                                " = 1 AND memKind = 2 AND bytes IN (30, 50, 100)"),
                   10);
}
END_TEST

/* The driver frees it then; it launches no such graph that does not free on launch. */
START_TEST(a_graph_that_is_launched_again_frees_first_what_it_left)
{
  synth_open(synth_dir());
  graphs_with_memory();
  launch(100, 10, 1);
  launch(200, 10, 1);
  launch(300, 10, 2);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how = 5 AND alloc <> free AND"
                                   " \"end\" = 210"),
                   2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how NOT IN (0, 5)"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT bytes FROM block WHERE how = 0"), 30);
  ck_assert_int_eq(synth_number(t, "SELECT peak FROM memory WHERE device = 1 AND mem IS NULL"),
                   150);
}
END_TEST

START_TEST(a_free_by_a_graph_of_what_no_graph_allocated_is_none)
{
  synth_open(synth_dir());
  graphs_with_memory();
  synth_alloc(0, 50, 10, 0xa000, 64, 1, WEIR_MEM_DEVICE);
  launch(100, 10, 2);
  synth_free(0, 200, 10, 0xa000);
  launch(300, 10, 2);
  synth_close();
  const char *t = import_synth_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block WHERE how = 1 AND \"end\" = 200"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM block"), 1);
}
END_TEST

/* Of the schema's version, from before a block could be a graph's. */
static void make_older(const char *t)
{
  synth_change(
      t, "CREATE TABLE was AS SELECT * FROM block_row; DROP TABLE block_row;"
         "CREATE TABLE block_row(id INTEGER PRIMARY KEY, event INTEGER, how INTEGER,"
         " free_after INTEGER, life INTEGER, born INTEGER, died_after INTEGER);"
         "INSERT INTO block_row SELECT id, event, how, free_after, life, born, died_after FROM"
         " was; DROP TABLE was; DROP VIEW block;"
         "DROP TABLE graph_work; DROP TABLE graph_launch; DROP TABLE graph_node;"
         "DROP TABLE graph_change; CREATE VIEW block(id) AS SELECT id FROM block_row");
}

START_TEST(an_older_trace_is_read_and_added_to)
{
  trace_importer *im = NULL;
  importer_options merge = {.merge = true};
  synth_open(synth_dir());
  synth_alloc(0, 50, 10, 0xa000, 64, 1, WEIR_MEM_DEVICE);
  synth_close();
  const char *t = import_synth_spool();
  make_older(t);
  json_t *report = synth_json(t);
  ck_assert_int_eq(synth_total(report, "live_at_exit_bytes"), 64);
  json_decref(report);
  synth_open(synth_dir());
  graphs_with_memory();
  launch(100, 10, 1);
  synth_close();
  ck_assert_int_eq(importer_open(&im, t, &merge), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  ck_assert_msg(importer_finish(im) == WEIR_OK, "%s", weir_error_message());
  importer_close(im);
  ck_assert_int_eq(synth_number(t, "SELECT sum(bytes) FROM block WHERE how = 0"), 64 + 130);
  report = synth_json(t);
  ck_assert_int_eq(synth_total(report, "live_at_exit_bytes"), 64 + 130);
  ck_assert_int_eq(synth_total(report, "free_calls"), 0);
  json_decref(report);
}
END_TEST

/* As while the program runs: what is made at the end is not there. */
START_TEST(a_reader_of_an_unfinished_trace_makes_graphs_blocks_itself)
{
  synth_open(synth_dir());
  graphs_with_memory();
  launch(100, 10, 1);
  synth_close();
  const char *t = import_synth_spool();
  synth_change(t, "DELETE FROM block_row; DELETE FROM memory; DELETE FROM graph_work;"
                  "DELETE FROM graph_launch; UPDATE meta SET value = 0 WHERE key = 'finished'");
  json_t *report = synth_json(t);
  ck_assert_int_eq(synth_total(report, "live_at_exit_bytes"), 130);
  ck_assert_int_eq(synth_total(report, "peak_bytes"), 150);
  json_decref(report);
}
END_TEST

/* ---- the log of memory events --------------------------------------------------------------- */

enum { KEPT_EVENTS = 5000 };

/* Several processes' events, one after the other, as spools are imported: each ascends by
 * itself. */
static void keep_some(wr_memory_log *log)
{
  for (int i = 0; i < KEPT_EVENTS; i++) {
    trace_event e = {.kind = i % 2 ? WEIR_EV_FREE : WEIR_EV_ALLOC, .a = 4096 + (uint64_t)i};
    int64_t time = i % 1000 * 10 + i / 1000;
    wr_taken x = {.id = i + 1, .start = time, .end = time, .who = {1 + i / 1000, 1, 0}, .e = &e};
    wr_memory_keep(log, &x);
  }
}

typedef struct kept_order {
  int64_t time, id, count, sum;
  bool ascends;
} kept_order;

static weir_status look_at_order(void *context, const void *kept)
{
  kept_order *o = context;
  const wr_memory_event *e = kept;
  bool after = e->time > o->time || (e->time == o->time && e->id > o->id);
  o->ascends = o->ascends && (!o->count || after);
  o->time = e->time;
  o->id = e->id;
  o->count++;
  o->sum += e->id * e->pointer;
  return WEIR_OK;
}

static kept_order order_of(size_t most, const char *beside, bool twice)
{
  wr_memory_log log = {.trace = beside, .most = most};
  kept_order o = {.ascends = true}, again = {.ascends = true};
  keep_some(&log);
  ck_assert_int_eq(wr_memory_each(&log, look_at_order, &o), WEIR_OK);
  if (twice) {
    ck_assert_int_eq(wr_memory_each(&log, look_at_order, &again), WEIR_OK);
    ck_assert_mem_eq(&again, &o, sizeof(o));
  }
  wr_memory_drop(&log);
  return o;
}

START_TEST(events_kept_in_a_file_come_back_in_order_of_time)
{
  static const size_t most[] = {7, 100, 1024, 4999, 5000};
  char beside[4200];
  (void)snprintf(beside, sizeof(beside), "%s/t.db", synth_dir());
  kept_order whole = order_of(0, beside, false);
  ck_assert_int_eq(whole.count, KEPT_EVENTS);
  kept_order parts = order_of(most[_i], beside, true);
  ck_assert(whole.ascends && parts.ascends);
  ck_assert_int_eq(parts.count, KEPT_EVENTS);
  ck_assert_int_eq(parts.sum, whole.sum);
}
END_TEST

START_TEST(where_no_file_can_be_no_memory_event_is_kept)
{
  char beside[4200];
  (void)snprintf(beside, sizeof(beside), "%s/no/such/folder", synth_dir());
  wr_memory_log log = {.trace = beside, .most = 100};
  keep_some(&log);
  ck_assert(log.incomplete && !log.event && !log.count);
  wr_memory_drop(&log);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/lifetime");
  TCase *t = tcase_create("lifetime");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, a_free_ends_its_block);
  tcase_add_test(t, an_address_reused_by_another_thread_during_a_free_is_a_new_block);
  tcase_add_test(t, a_free_that_a_clock_shows_too_late_is_still_of_the_block_before);
  tcase_add_test(t, failed_and_captured_calls_change_nothing);
  tcase_add_test(t, a_reset_ends_the_blocks_of_its_device_and_no_others);
  tcase_add_test(t, a_reset_spares_the_contexts_that_the_program_made);
  tcase_add_test(t, the_end_of_one_context_spares_the_others);
  tcase_add_test(t, pinned_memory_goes_with_its_contexts_device);
  tcase_add_test(t, host_memory_is_counted_apart);
  tcase_add_test(t, a_block_whose_free_was_not_seen_ends_when_its_address_returns);
  tcase_add_test(t, an_array_handle_is_no_address);
  tcase_add_test(t, processes_do_not_free_each_others_blocks);
  tcase_add_test(t, what_a_process_leaks_is_not_there_while_the_next_ones_run);
  tcase_add_test(t, what_processes_have_at_one_moment_adds_up);
  tcase_add_loop_test(t, peaks_and_leaks_are_those_of_the_oracle, 0, 25);
  tcase_add_loop_test(t, lifetimes_of_what_was_kept_are_those_of_the_rows, 0, 5);
  tcase_add_test(t, memory_of_a_graph_is_a_block_of_each_launch);
  tcase_add_test(t, a_graph_that_is_launched_again_frees_first_what_it_left);
  tcase_add_test(t, a_free_by_a_graph_of_what_no_graph_allocated_is_none);
  tcase_add_test(t, an_older_trace_is_read_and_added_to);
  tcase_add_test(t, a_reader_of_an_unfinished_trace_makes_graphs_blocks_itself);
  tcase_add_loop_test(t, events_kept_in_a_file_come_back_in_order_of_time, 0, 5);
  tcase_add_test(t, where_no_file_can_be_no_memory_event_is_kept);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
