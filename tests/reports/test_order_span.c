/* test_order_span.c: which waits of streams a span needs, and how long it takes without them: spans are written operation by
 * operation. */
#include <check.h>
#include <stdlib.h>
#include "reports/findings/order_span.h"

enum { A, B, C, LEGACY };  /* streams */
enum { UP, BACK, KERNEL }; /* engines */
enum { OPS = 64, MS = 1000000, CALL = 1000 };

typedef struct written {
  wr_span s;
  wr_span_op op[OPS];
  uint32_t named[OPS];
} written;

static written begin_writing(void)
{
  written w = {.s = {.streams = 4, .blocks = 4, .events = 4}};
  for (uint32_t i = 0; i < 4; i++)
    w.s.stream[i] = (wr_span_stream){.handle = i + 10, .legacy = i == LEGACY};
  return w;
}

static wr_span_op *write_op(written *w, wr_span_kind kind, int stream, int slot)
{
  ck_assert_uint_lt(w->s.ops, OPS);
  wr_span_op *o = &w->op[w->s.ops];
  *o = (wr_span_op){.start = (int64_t)w->s.ops * CALL,
                    .ns = CALL,
                    .kind = (uint8_t)kind,
                    .stream = (uint8_t)stream,
                    .slot = (uint16_t)slot};
  w->s.ops++;
  return o;
}

/* A millisecond of work on a block. */
static void write_work(written *w, int stream, int engine, uint32_t block)
{
  wr_span_op *o = write_op(w, WR_SPAN_WORK, stream, 0);
  o->engine = (uint8_t)engine, o->device_ns = MS;
  o->first = (uint32_t)w->s.names, o->named = 1;
  w->named[w->s.names++] = block;
}

/* `stream` waits for what `of` has, at place 0. */
static void write_wait(written *w, int stream, int of)
{
  write_op(w, WR_SPAN_RECORD, of, of);
  write_op(w, WR_SPAN_STREAM_WAITS, stream, of);
}

static const wr_span *span_of(written *w)
{
  w->s.op = w->op, w->s.named = w->named, w->s.places = 1;
  return &w->s;
}

static const wr_span_without nothing = {0}, wait = {.places = 1}, legacy = {.legacy = true};

static int64_t whole_ms(const wr_span *s, wr_span_without without)
{
  return (wr_span_time(s, without) + MS / 2) / MS;
}

START_TEST(a_wait_between_works_of_other_memory_is_not_needed)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  write_wait(&w, B, A);
  write_work(&w, B, BACK, 1);
  write_op(&w, WR_SPAN_HOST_FOR_CONTEXT, 0, 0);
  ck_assert(wr_span_holds(span_of(&w), wait));
  ck_assert_int_eq(whole_ms(&w.s, nothing), 2);
  ck_assert_int_eq(whole_ms(&w.s, wait), 1);
}
END_TEST

START_TEST(a_wait_between_works_of_one_block_is_needed)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  write_wait(&w, B, A);
  write_work(&w, B, BACK, 1);
  write_work(&w, B, BACK, 0); /* later in its stream */
  ck_assert(!wr_span_holds(span_of(&w), wait));
}
END_TEST

START_TEST(a_wait_is_needed_by_a_third_stream)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  write_wait(&w, B, A);
  write_work(&w, B, BACK, 1);
  write_op(&w, WR_SPAN_RECORD, B, B);
  write_op(&w, WR_SPAN_STREAM_WAITS, C, B)->place = 1;
  write_work(&w, C, KERNEL, 0);
  ck_assert(!wr_span_holds(span_of(&w), wait));
}
END_TEST

START_TEST(a_wait_whose_order_another_makes_is_not_needed)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  write_wait(&w, B, A);
  write_op(&w, WR_SPAN_STREAM_WAITS, B, A)->place = 1;
  write_work(&w, B, BACK, 0);
  ck_assert(wr_span_holds(span_of(&w), wait));
  ck_assert(!wr_span_holds(&w.s, (wr_span_without){.places = 3}));
}
END_TEST

START_TEST(a_wait_by_which_the_host_knows_is_needed)
{
  for (int both = 0; both < 2; both++) {
    written w = begin_writing();
    write_work(&w, A, UP, 0);
    write_wait(&w, B, A);
    write_work(&w, B, BACK, 1);
    if (both) write_op(&w, WR_SPAN_HOST_FOR_STREAM, A, 0);
    write_op(&w, WR_SPAN_HOST_FOR_STREAM, B, 0);
    ck_assert_int_eq(wr_span_holds(span_of(&w), wait), both);
  }
}
END_TEST

START_TEST(a_blocking_copy_by_which_the_host_knows_needs_the_wait)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  write_wait(&w, B, A);
  write_work(&w, B, BACK, 1);
  w.op[w.s.ops - 1].waits = true;
  ck_assert(!wr_span_holds(span_of(&w), wait));
}
END_TEST

/* A block that both had before is no matter, once the host has waited for all. */
START_TEST(what_the_host_has_waited_for_needs_no_other_order)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  write_op(&w, WR_SPAN_HOST_FOR_CONTEXT, 0, 0);
  write_wait(&w, B, A);
  write_work(&w, B, BACK, 0);
  ck_assert(wr_span_holds(span_of(&w), wait));
}
END_TEST

START_TEST(kernels_gain_nothing_next_to_each_other)
{
  written w = begin_writing();
  write_work(&w, A, KERNEL, 0);
  write_wait(&w, B, A);
  write_work(&w, B, KERNEL, 1);
  ck_assert_int_eq(whole_ms(span_of(&w), nothing), 2);
  ck_assert_int_eq(whole_ms(&w.s, wait), 2);
}
END_TEST

/* What follows step by step is at work in both already: only the first waits. */
START_TEST(a_pipeline_gains_one_step)
{
  written w = begin_writing();
  for (int i = 0; i < 8; i++) {
    write_work(&w, A, UP, 0);
    write_wait(&w, B, A);
    write_work(&w, B, BACK, 1);
  }
  ck_assert_int_eq(whole_ms(span_of(&w), nothing), 9);
  ck_assert_int_eq(whole_ms(&w.s, wait), 8);
}
END_TEST

/* An engine does not stand still for an operation that waits, where another stream's could run. */
START_TEST(an_engine_runs_what_can_begin_first)
{
  written w = begin_writing();
  write_work(&w, A, UP, 0);
  w.op[0].device_ns = 2 * MS;
  write_wait(&w, B, A);
  write_work(&w, B, BACK, 1);
  write_work(&w, C, BACK, 2);
  ck_assert_int_eq(whole_ms(span_of(&w), nothing), 3);
}
END_TEST

/* Two streams wait for the default stream's work, and it for theirs. Their next works are of other blocks. */
START_TEST(the_default_stream_orders_what_common_memory_does_not)
{
  written w = begin_writing();
  w.s.stream[A].blocking = w.s.stream[B].blocking = true;
  for (uint32_t i = 0; i < 4; i++) {
    write_work(&w, A, UP, i % 2);
    write_work(&w, LEGACY, KERNEL, i % 2);
  }
  write_op(&w, WR_SPAN_HOST_FOR_CONTEXT, 0, 0);
  ck_assert(wr_span_holds(span_of(&w), legacy));
  ck_assert_int_eq(whole_ms(&w.s, nothing), 8);
  ck_assert_int_eq(whole_ms(&w.s, legacy), 5);
}
END_TEST

START_TEST(the_host_may_know_by_the_default_stream)
{
  written w = begin_writing();
  w.s.stream[A].blocking = w.s.stream[B].blocking = true;
  write_work(&w, A, UP, 0);
  write_work(&w, LEGACY, KERNEL, 1);
  write_op(&w, WR_SPAN_HOST_FOR_STREAM, LEGACY, 0);
  ck_assert(!wr_span_holds(span_of(&w), legacy));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/order_span");
  TCase *t = tcase_create("order_span");
  tcase_set_timeout(t, 0);
  tcase_add_test(t, a_wait_between_works_of_other_memory_is_not_needed);
  tcase_add_test(t, a_wait_between_works_of_one_block_is_needed);
  tcase_add_test(t, a_wait_is_needed_by_a_third_stream);
  tcase_add_test(t, a_wait_whose_order_another_makes_is_not_needed);
  tcase_add_test(t, a_wait_by_which_the_host_knows_is_needed);
  tcase_add_test(t, a_blocking_copy_by_which_the_host_knows_needs_the_wait);
  tcase_add_test(t, what_the_host_has_waited_for_needs_no_other_order);
  tcase_add_test(t, kernels_gain_nothing_next_to_each_other);
  tcase_add_test(t, a_pipeline_gains_one_step);
  tcase_add_test(t, an_engine_runs_what_can_begin_first);
  tcase_add_test(t, the_default_stream_orders_what_common_memory_does_not);
  tcase_add_test(t, the_host_may_know_by_the_default_stream);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
