/* test_cpu_threads.c: work shared among threads, and the cpu's memory, copies, streams and events.
 */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/base/compiler.h"
#include "core/backend/backend.h"
#include "core/backend/threads.h"

enum { N = 10007, CALLERS = 4 };

typedef struct tally {
  _Atomic int times[N];
  int64_t grain;
  _Atomic int crooked; /* pieces that are not as promised */
} tally;

static void count_range_visits(void *arg, int64_t from, int64_t to)
{
  tally *t = arg;
  bool whole = from == 0 && to == N;
  if (!whole && (from % t->grain || to > from + t->grain)) atomic_fetch_add(&t->crooked, 1);
  for (int64_t i = from; i < to; i++)
    atomic_fetch_add(&t->times[i], 1);
}

static bool counted(tally *t, int times)
{
  for (int i = 0; i < N; i++)
    if (atomic_load(&t->times[i]) != times) return false;
  return !atomic_load(&t->crooked);
}

START_TEST(every_element_is_done_once_by_any_number_of_threads)
{
  static const int threads[] = {1, 2, 3, 8, 3};
  for (int k = 0; k < 5; k++)
    for (int64_t grain = 1; grain < 20000; grain *= 7) {
      tally *t = calloc(1, sizeof *t);
      t->grain = grain;
      ck_assert_int_eq(weir_set_num_threads(threads[k]), WEIR_OK);
      ck_assert_int_eq(weir_get_num_threads(), threads[k]);
      parallel_for(N, grain, count_range_visits, t);
      ck_assert(counted(t, 1));
      parallel_for(0, grain, count_range_visits, t);
      ck_assert(counted(t, 1));
      free(t);
    }
}
END_TEST

static void nested(void *arg, int64_t from, int64_t to)
{
  for (int64_t i = from; i < to; i++)
    parallel_for(N, 100, count_range_visits, arg);
}

START_TEST(work_within_work_is_done_too)
{
  tally *t = calloc(1, sizeof *t);
  t->grain = 100;
  ck_assert_int_eq(weir_set_num_threads(4), WEIR_OK);
  parallel_for(8, 1, nested, t);
  ck_assert(counted(t, 8));
  free(t);
}
END_TEST

/* Two threads: as many as processors, so that they spin between jobs where there are two. */
START_TEST(jobs_that_follow_at_once_are_done_once_each)
{
  enum { JOBS = 300 };
  tally *t = calloc(1, sizeof *t);
  t->grain = 1000;
  ck_assert_int_eq(weir_set_num_threads(2), WEIR_OK);
  for (int i = 0; i < JOBS; i++) {
    parallel_for(N, t->grain, count_range_visits, t);
    ck_assert_int_eq(atomic_load(&t->times[i]), i + 1);
    if (i % 50 == 0) (void)usleep(200); /* long enough for the worker to go to sleep */
  }
  ck_assert(counted(t, JOBS));
  free(t);
}
END_TEST

static double processor_ms(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

START_TEST(threads_without_work_leave_the_processor)
{
  tally *t = calloc(1, sizeof *t);
  t->grain = 1000;
  ck_assert_int_eq(weir_set_num_threads(2), WEIR_OK);
  for (int i = 0; i < 100; i++)
    parallel_for(N, t->grain, count_range_visits, t);
  double before = processor_ms();
  (void)usleep(300000);
  ck_assert_double_lt(processor_ms() - before, 30);
  ck_assert(counted(t, 100));
  free(t);
}
END_TEST

static void *caller(void *arg)
{
  for (int i = 0; i < 50; i++)
    parallel_for(N, 100, count_range_visits, arg);
  return NULL;
}

START_TEST(many_callers_at_once_lose_nothing)
{
  tally *t = calloc(1, sizeof *t);
  pthread_t thread[CALLERS];
  t->grain = 100;
  ck_assert_int_eq(weir_set_num_threads(3), WEIR_OK);
  for (int i = 0; i < CALLERS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, caller, t), 0);
  for (int i = 0; i < CALLERS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  ck_assert(counted(t, CALLERS * 50));
  free(t);
}
END_TEST

static _Atomic int most;

static void number(void *arg, int64_t from, int64_t to)
{
  int self = parallel_self(), seen = atomic_load(&most);
  (void)arg, (void)from, (void)to;
  while (self > seen && !atomic_compare_exchange_weak(&most, &seen, self))
    ;
}

START_TEST(threads_numbers_are_below_the_most_that_may_join)
{
  ck_assert_int_eq(weir_set_num_threads(6), WEIR_OK);
  for (int i = 0; i < 200; i++)
    parallel_for_most(3, 100, 1, number, NULL);
  ck_assert_int_lt(atomic_load(&most), 3);
  ck_assert_int_eq(parallel_self(), 0);
}
END_TEST

/* ThreadSanitizer knows no threads of a forked child; in one, AddressSanitizer's allocator stays
 * locked by a thread that only the parent has. */
#if !WEIR_TSAN && !WEIR_ASAN
START_TEST(a_forked_child_shares_work_with_threads_of_its_own)
{
  tally *t = calloc(1, sizeof *t);
  t->grain = 100;
  ck_assert_int_eq(weir_set_num_threads(3), WEIR_OK);
  parallel_for(N, 100, count_range_visits, t);
  pid_t child = fork();
  if (child == 0) {
    parallel_for(N, 100, count_range_visits, t);
    exit(counted(t, 2) ? 0 : 1); /* the destructor joins the child's threads */
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  parallel_for(N, 100, count_range_visits, t);
  ck_assert(counted(t, 2));
  free(t);
}
END_TEST
#endif

/* ---- the backend ----------------------------------------------------------------------------- */

static const weir_backend *const cpu = &weir_cpu_backend;

START_TEST(memory_comes_aligned_and_too_much_is_an_error)
{
  uint64_t at, free_now, total;
  for (uint64_t bytes = 0; bytes < 100000; bytes = bytes * 3 + 1) {
    ck_assert_int_eq(cpu->source.segment_alloc(cpu->self, bytes, &at), WEIR_OK);
    ck_assert_uint_eq(at % 512, 0);
    memset((void *)(uintptr_t)at, 1, bytes);
    ck_assert_int_eq(cpu->source.segment_free(cpu->self, at, bytes), WEIR_OK);
  }
  ck_assert_int_eq(cpu->source.segment_alloc(cpu->self, UINT64_MAX, &at), WEIR_ENOMEM);
  ck_assert(strstr(weir_error_message(), "you tried to allocate 18446744073709551615 bytes"));
  ck_assert_int_eq(cpu->source.mem_info(cpu->self, &free_now, &total), WEIR_OK);
  ck_assert(free_now > 0 && free_now <= total);
}
END_TEST

START_TEST(copies_are_done_when_they_return)
{
  enum { BYTES = 5 << 20 };
  char *from = malloc(BYTES), *to = calloc(1, BYTES);
  ck_assert_int_eq(weir_set_num_threads(3), WEIR_OK);
  for (int i = 0; i < BYTES; i++)
    from[i] = (char)(i * 7 + i / 4096);
  ck_assert_int_eq(cpu->copy(cpu->self, NULL, WEIR_COPY_WITHIN, to, from, BYTES), WEIR_OK);
  ck_assert(memcmp(to, from, BYTES) == 0);
  memset(to, 0, BYTES);
  ck_assert_int_eq(cpu->copy_peer(cpu->self, NULL, to, cpu, from, BYTES), WEIR_OK);
  ck_assert(memcmp(to, from, BYTES) == 0);
  ck_assert_int_eq(cpu->copy_to_host(cpu->self, to, (uint64_t)(uintptr_t)from + 1, 100), WEIR_OK);
  ck_assert(memcmp(to, from + 1, 100) == 0);
  ck_assert_int_eq(cpu->copy_to_device(cpu->self, (uint64_t)(uintptr_t)to, from, 100), WEIR_OK);
  ck_assert(memcmp(to, from, 100) == 0);
  free(from);
  free(to);
}
END_TEST

START_TEST(streams_and_events_are_always_complete)
{
  void *event;
  bool complete = false;
  ck_assert_int_eq(cpu->event_create(cpu->self, &event), WEIR_OK);
  ck_assert_int_eq(cpu->event_record(cpu->self, event, NULL), WEIR_OK);
  ck_assert_int_eq(cpu->event_query(cpu->self, event, &complete), WEIR_OK);
  ck_assert(complete);
  ck_assert_int_eq(cpu->event_wait(cpu->self, NULL, event), WEIR_OK);
  ck_assert_int_eq(cpu->event_sync(cpu->self, event), WEIR_OK);
  ck_assert_int_eq(cpu->event_destroy(cpu->self, event), WEIR_OK);
  complete = false;
  ck_assert_int_eq(cpu->stream_query(cpu->self, NULL, &complete), WEIR_OK);
  ck_assert(complete);
  ck_assert_int_eq(cpu->stream_sync(cpu->self, NULL), WEIR_OK);
  ck_assert_str_eq(cpu->name, "cpu");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu threads");
  TCase *c = tcase_create("threads");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, every_element_is_done_once_by_any_number_of_threads);
  tcase_add_test(c, work_within_work_is_done_too);
  tcase_add_test(c, jobs_that_follow_at_once_are_done_once_each);
  tcase_add_test(c, threads_without_work_leave_the_processor);
  tcase_add_test(c, many_callers_at_once_lose_nothing);
  tcase_add_test(c, threads_numbers_are_below_the_most_that_may_join);
#if !WEIR_TSAN && !WEIR_ASAN
  tcase_add_test(c, a_forked_child_shares_work_with_threads_of_its_own);
#endif
  tcase_add_test(c, memory_comes_aligned_and_too_much_is_an_error);
  tcase_add_test(c, copies_are_done_when_they_return);
  tcase_add_test(c, streams_and_events_are_always_complete);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
