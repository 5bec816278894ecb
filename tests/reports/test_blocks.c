/* test_blocks.c: the blocks that are read from a file's pages are those of the view `block`, in
 * each of the orders. */
#include <check.h>
#include <string.h>
#include "reports/events/blocks.h"
#include "reports/import/lifetime.h"
#include "reports/model/open.h"
#include "tests/reports/synth.h"

enum { BLOCKS = 12000, ADDRESSES = 700, THREADS = 5 };

typedef struct block_list {
  wr_block block[BLOCKS];
  size_t count;
} block_list;

static weir_status keep_block(void *context, const wr_block *b)
{
  block_list *l = context;
  ck_assert_uint_lt(l->count, BLOCKS);
  l->block[l->count++] = *b;
  return WEIR_OK;
}

/* Allocations of some addresses, which some are handed out again before they are freed; frees,
 * of blocks that were never there too; host memory that is registered. */
static const char *make_trace(void)
{
  const char *one[] = {NULL, NULL};
  synth_seed(17);
  synth_open(synth_dir());
  for (uint64_t i = 0; i < BLOCKS; i++) {
    int thread = (int)synth_below(THREADS), mem = (int)synth_below(5);
    uint64_t at = 100 + i * 10, pointer = 0x1000 * (1 + synth_below(ADDRESSES));
    if (synth_below(8) == 0)
      synth_event(thread, at, 5,
                  (trace_event){.kind = WEIR_EV_HOSTREG,
                                .a = pointer << 20,
                                .bytes = 64,
                                .device = WEIR_DEVICE_NONE,
                                .mem = WEIR_MEM_PAGEABLE});
    else if (synth_below(2))
      synth_alloc(thread, at, synth_below(200), pointer, 1 + synth_below(1 << 20),
                  (int)synth_below(3), mem);
    else
      synth_free(thread, at, synth_below(200), pointer);
  }
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

static void expect_same(const block_list *got, const block_list *wanted)
{
  ck_assert_uint_eq(got->count, wanted->count);
  for (size_t i = 0; i < got->count; i++) {
    const wr_block *a = &got->block[i], *b = &wanted->block[i];
    ck_assert_int_eq(a->id, b->id);
    ck_assert_int_eq(a->process, b->process);
    ck_assert_int_eq(a->stack, b->stack);
    ck_assert_int_eq(a->how, b->how);
    ck_assert_int_eq(a->born, b->born);
    ck_assert_int_eq(a->died, b->died);
    ck_assert_int_eq(a->start, b->start);
    ck_assert_int_eq(a->end, b->end);
    ck_assert_uint_eq(a->bytes, b->bytes);
    ck_assert_int_eq(a->device, b->device);
    ck_assert_int_eq(a->mem, b->mem);
    ck_assert_int_eq(a->dead, b->dead);
    ck_assert_int_eq(a->ended, b->ended);
    ck_assert_int_eq(a->registered, b->registered);
  }
}

typedef weir_status (*block_order)(wr_blocks *x, wr_block_fn take, void *context);

static weir_status hear_event(void *context, const wr_event *e)
{
  return wr_blocks_hear(context, e);
}

/* `heard`: of the events that were handed on while all were walked over. */
static void compare_order(wr_events *events, block_order walk, bool heard)
{
  static block_list got, wanted;
  wr_blocks pages, sqlite;
  got.count = wanted.count = 0;
  ck_assert_int_eq(wr_blocks_open(&pages, events), WEIR_OK);
  ck_assert_int_eq(wr_blocks_open(&sqlite, events), WEIR_OK);
  ck_assert(pages.by_pages);
  sqlite.by_pages = false;
  if (heard) {
    ck_assert_int_eq(wr_blocks_listen(&pages), WEIR_OK);
    ck_assert_int_eq(wr_events_each(events, hear_event, &pages), WEIR_OK);
    ck_assert_uint_gt(pages.heard_count, 5000);
  }
  ck_assert_int_eq(walk(&pages, keep_block, &got), WEIR_OK);
  ck_assert_int_eq(walk(&sqlite, keep_block, &wanted), WEIR_OK);
  ck_assert_uint_gt(wanted.count, 5000);
  expect_same(&got, &wanted);
  wr_blocks_close(&pages);
  wr_blocks_close(&sqlite);
}

START_TEST(blocks_of_pages_are_those_of_the_view)
{
  wr_input in;
  wr_events events;
  const char *trace = make_trace();
  ck_assert_int_eq(synth_number(trace, "SELECT count(DISTINCT how) FROM block"), 4);
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  ck_assert_int_eq(wr_events_open(&events, &in.db), WEIR_OK);
  for (int heard = 0; heard < 2; heard++) {
    compare_order(&events, wr_blocks_each, heard);
    compare_order(&events, wr_blocks_back, heard);
    compare_order(&events, wr_blocks_from_last_death, heard);
  }
  wr_events_close(&events);
  wr_input_close(&in);
}
END_TEST

/* What a launch of a graph allocates is of no event of its own: SQLite is asked. */
START_TEST(a_trace_with_blocks_of_graphs_is_left_to_sqlite)
{
  wr_input in;
  wr_events events;
  wr_blocks blocks;
  const char *trace = make_trace();
  synth_change(trace, "INSERT INTO graph_work(content, position, pointer) VALUES(1, 0, 4096)");
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  ck_assert_int_eq(wr_events_open(&events, &in.db), WEIR_OK);
  ck_assert_int_eq(wr_blocks_open(&blocks, &events), WEIR_OK);
  ck_assert(!blocks.by_pages);
  wr_blocks_close(&blocks);
  wr_events_close(&events);
  wr_input_close(&in);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("blocks");
  TCase *t = tcase_create("blocks");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, blocks_of_pages_are_those_of_the_view);
  tcase_add_test(t, a_trace_with_blocks_of_graphs_is_left_to_sqlite);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
