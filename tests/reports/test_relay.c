/* test_relay.c: listeners that take events in threads of their own take all of them, in order and at
 * the same time; what one of them fails with is what the walk fails with; a report is the same
 * on one processor and on several. */
#include <check.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/status.h"
#include "reports/events/relay.h"
#include "tests/reports/synth.h"

enum { EVENTS = 200000, AT_ONCE = 250, FAILS_AT = 30000, PLACES = 64, UNIT = 4096, CALLS = 40000 };

typedef struct taker {
  int64_t next;                         /* id of the event that comes */
  int64_t fails_at, waits_at, posts_at; /* 0: never */
  sem_t *meeting;
} taker;

static weir_status take_event(void *context, const wr_event *e)
{
  taker *t = context;
  if (e->id != t->next++) return weir_fail(WEIR_ECORRUPT, "event %lld", (long long)e->id);
  if (e->id == t->posts_at) (void)sem_post(t->meeting);
  if (e->id == t->waits_at) (void)sem_wait(t->meeting);
  return e->id == t->fails_at ? weir_fail(WEIR_EIO, "no room for event %d", (int)e->id) : WEIR_OK;
}

static weir_status take_events(void *context, const wr_event events[], size_t count)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < count; i++)
    st = take_event(context, &events[i]);
  return st;
}

/* How many were sent. */
static int64_t send_events(wr_relay *x)
{
  wr_event events[AT_ONCE] = {0};
  for (int64_t id = 1; id <= EVENTS; id += AT_ONCE) {
    for (int64_t i = 0; i < AT_ONCE; i++)
      events[i].id = id + i;
    if (!wr_relay_send(x, events, AT_ONCE)) return id + AT_ONCE - 1;
  }
  return EVENTS;
}

/* The first one waits in the first of its events until the other has taken some of later batches,
 * which it never has where one listener takes a batch after the other. */
START_TEST(listeners_take_all_events_in_order_at_the_same_time)
{
  sem_t meeting;
  ck_assert_int_eq(sem_init(&meeting, 0, 0), 0);
  taker one = {.next = 1, .waits_at = 1, .meeting = &meeting},
        other = {.next = 1, .posts_at = 3000, .meeting = &meeting};
  const wr_listener both[] = {{.take = take_event, .context = &one, .apart = true},
                              {.take_some = take_events, .context = &other, .apart = true}};
  wr_relay *x = wr_relay_open(both, 2);
  ck_assert_ptr_nonnull(x);
  ck_assert_int_eq(send_events(x), EVENTS);
  ck_assert_int_eq(wr_relay_close(x), WEIR_OK);
  ck_assert_int_eq(one.next, EVENTS + 1);
  ck_assert_int_eq(other.next, EVENTS + 1);
  (void)sem_destroy(&meeting);
}
END_TEST

START_TEST(a_listener_that_fails_ends_the_walk_with_its_message)
{
  taker good = {.next = 1}, fails = {.next = 1, .fails_at = FAILS_AT};
  const wr_listener both[] = {{.take_some = take_events, .context = &good, .apart = true},
                              {.take_some = take_events, .context = &fails, .apart = true}};
  wr_relay *x = wr_relay_open(both, 2);
  ck_assert_ptr_nonnull(x);
  ck_assert_int_lt(send_events(x), EVENTS);
  ck_assert_int_eq(wr_relay_close(x), WEIR_EIO);
  ck_assert_str_eq(weir_error_message(), "no room for event 30000");
  ck_assert_int_eq(fails.next, FAILS_AT + 1);
  ck_assert_int_gt(good.next, FAILS_AT);
}
END_TEST

START_TEST(the_last_batch_may_be_the_one_that_fails)
{
  taker fails = {.next = 1, .fails_at = EVENTS};
  const wr_listener one = {.take = take_event, .context = &fails, .apart = true};
  wr_relay *x = wr_relay_open(&one, 1);
  ck_assert_ptr_nonnull(x);
  ck_assert_int_eq(send_events(x), EVENTS);
  ck_assert_int_eq(wr_relay_close(x), WEIR_EIO);
  ck_assert_str_eq(weir_error_message(), "no room for event 200000");
}
END_TEST

/* ---- a whole report --------------------------------------------------------------------------- */

static void one_random_call(int thread, uint64_t at, bool live[PLACES])
{
  unsigned place = (unsigned)synth_below(PLACES);
  uint64_t address = UINT64_C(0x700000000) + (uint64_t)place * UNIT;
  if (synth_below(9) == 0) {
    synth_sync(thread, at, 40 + synth_below(100), WEIR_SYNC_CONTEXT);
  } else if (!live[place]) {
    synth_alloc(thread, at, 20, address, UNIT, 0, WEIR_MEM_DEVICE);
    live[place] = true;
  } else if (synth_below(3) == 0) {
    synth_free(thread, at, 15, address);
    live[place] = false;
  } else {
    trace_event e = {.kind = WEIR_EV_COPY,
                     .api = synth_api("cuMemcpyHtoD_v2"),
                     .copy_kind = WEIR_COPY_HTOD,
                     .a = address,
                     .b = UINT64_C(0x7f0000000000) + place,
                     .bytes = UNIT,
                     .mem = WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4,
                     .src_device = WEIR_DEVICE_NONE,
                     .stream = WEIR_STREAM_LEGACY,
                     .flags = WEIR_EVF_IMPLICIT_SYNC};
    synth_event(thread, at, 10 + synth_below(50), e);
  }
}

/* Text of its summary and findings, which the caller frees. */
static char *print_reports(const char *trace)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  report_settings o = {.width = 100, .findings = {.min = {.ns = 1, .share = -1, .bytes = 1}}};
  ck_assert_int_eq(report_summary(out, trace, &o), WEIR_OK);
  ck_assert_int_eq(report_findings(out, trace, &o), WEIR_OK);
  ck_assert_int_eq(fclose(out), 0);
  return text;
}

START_TEST(a_report_is_the_same_on_one_processor_and_on_several)
{
  bool live[PLACES] = {0};
  cpu_set_t all, one;
  synth_seed(20261130);
  synth_open(synth_dir());
  for (uint64_t at = 1; at <= CALLS; at++)
    one_random_call((int)synth_below(3), at * 300, live);
  const char *trace = synth_import_this();
  ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
  char *several = print_reports(trace);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
  char *single = print_reports(trace);
  ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
  ck_assert_ptr_nonnull(strstr(several, "likely"));
  ck_assert_str_eq(several, single);
  free(several);
  free(single);
  synth_clean();
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/relay");
  TCase *t = tcase_create("relay");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, listeners_take_all_events_in_order_at_the_same_time);
  tcase_add_test(t, a_listener_that_fails_ends_the_walk_with_its_message);
  tcase_add_test(t, the_last_batch_may_be_the_one_that_fails);
  tcase_add_test(t, a_report_is_the_same_on_one_processor_and_on_several);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
