/* test_live.c: what programs hold, led by the newest record: next to an importer that hands chunks
 * back it misses none; begun in the middle it is not whole, unless a recorder's state is there. */
#include <check.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/reports/synth.h"
#include "tools/weir/collect/live.h"

enum { ADDRESSES = 500, STEPS = 200000 };

static void call_at_random(uint64_t i)
{
  const int thread = (int)synth_below(8);
  const uint64_t address = 0x10000 + synth_below(ADDRESSES) * 0x100;
  if (synth_below(2))
    synth_alloc(thread, 100 + i * 10, 5, address, 1 + synth_below(4096), 0, WEIR_MEM_DEVICE);
  else
    synth_free(thread, 100 + i * 10, 5, address);
}

static void take_live(void *context)
{
  ck_assert_msg(live_take(context, synth_spool()), "%s", weir_error_message());
}

typedef struct expectation {
  const char *trace;
  unsigned shown;
  bool whole;
  uint64_t events;
} expectation;

static void expect_process(void *context, const live_process *p)
{
  expectation *x = context;
  const wr_tally_facts *facts = wr_table_at(&p->state->facts, 0);
  x->shown++;
  x->events = facts->events;
  ck_assert_int_eq(p->pid, getpid());
  ck_assert_str_eq(p->spool, synth_spool());
  ck_assert_int_eq(p->whole, x->whole);
  if (p->ended)
    ck_assert_int_eq((int64_t)facts->events, synth_number(x->trace, "SELECT count(*) FROM event"));
  if (p->ended)
    ck_assert_int_eq(p->state->block.count,
                     synth_number(x->trace, "SELECT count(*) FROM block WHERE how = 0"));
}

static const char *trace_path(void)
{
  static char path[512];
  (void)snprintf(path, sizeof path, "%s/t.db", synth_dir());
  return path;
}

START_TEST(a_tally_beside_an_importer_misses_nothing)
{
  trace_importer *im;
  uint32_t number;
  live *l = live_new();
  expectation x = {.trace = trace_path(), .whole = true};
  synth_seed(3);
  synth_open_limited(synth_dir(), UINT64_C(4) << 20);
  ck_assert_int_eq(importer_open(&im, trace_path(), NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, &number), WEIR_OK);
  importer_read_too(im, take_live, l);
  for (uint64_t i = 0; i < STEPS; i++) {
    call_at_random(i);
    if (!synth_below(3000)) ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  }
  synth_close();
  ck_assert_uint_eq(spool_current()->dropped, 0);
  live_each(l, expect_process, &x);
  ck_assert_uint_eq(x.shown, 1);
  ck_assert_uint_gt(x.events, 0);
  ck_assert_int_eq(importer_end(im, number, WEIR_END_EXIT, 0), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  live_on_end(l, expect_process, &x);
  live_end(l, synth_spool());
  ck_assert_uint_eq(x.shown, 2);
  live_each(l, expect_process, &x);
  ck_assert_uint_eq(x.shown, 2);
  live_free(l);
}
END_TEST

static void record(bool keep)
{
  spool_reader *reader;
  wr_tally *t;
  const wr_tally_window window = {.bytes = UINT64_C(1) << 20};
  ck_assert_int_eq(spool_reader_open(&reader, synth_spool(), true), WEIR_OK);
  if (keep) {
    ck_assert_int_eq(wr_tally_open(&t, reader, synth_spool(), NULL), WEIR_OK);
    ck_assert_int_eq(wr_tally_take_oldest(t, &window, NULL), WEIR_OK);
    ck_assert_int_eq(wr_tally_commit(t), WEIR_OK);
    wr_tally_close(t);
  } else {
    const spool_visitor none = {NULL, NULL, NULL};
    ck_assert_int_eq(spool_drain(reader, &none, false), WEIR_OK);
  }
  spool_reader_close(reader);
}

/* _i: a recorder has kept what it took. */
START_TEST(a_tally_that_begins_late_is_whole_where_a_state_is_there)
{
  live *l = live_new();
  expectation x = {.whole = _i};
  synth_seed(4);
  synth_open(synth_dir());
  for (uint64_t i = 0; i < STEPS; i++)
    call_at_random(i);
  record(_i);
  ck_assert(live_take(l, synth_spool()));
  live_each(l, expect_process, &x);
  ck_assert_uint_eq(x.shown, 1);
  if (_i) ck_assert_uint_eq(x.events, STEPS);
  live_free(l);
  synth_close();
}
END_TEST

START_TEST(a_spool_that_cannot_be_read_is_left_out)
{
  live *l = live_new();
  expectation x = {0};
  ck_assert(!live_take(l, "/nowhere/1-0.spool"));
  live_each(l, expect_process, &x);
  live_on_end(l, expect_process, &x);
  live_end(l, "/nowhere/1-0.spool");
  ck_assert_uint_eq(x.shown, 0);
  live_free(l);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("live");
  TCase *t = tcase_create("live");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, a_tally_beside_an_importer_misses_nothing);
  tcase_add_loop_test(t, a_tally_that_begins_late_is_whole_where_a_state_is_there, 0, 2);
  tcase_add_test(t, a_spool_that_cannot_be_read_is_left_out);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
