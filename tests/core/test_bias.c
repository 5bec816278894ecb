/* test_bias.c: the biased lock: one at a time, whoever has the bias, and the bias comes and goes.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/base/bias.h"

enum { THREADS = 8, LONG_RUN = 5000, SHORT_RUN = 3, TURNS = 40 };

static biased_lock lock = WEIR_BIAS_INITIALIZER;
static uint64_t count;
static int inside, strangers; /* threads in, and times that was not one */
static pthread_barrier_t start;

static void enter_lock_once(void)
{
  bias_lock(&lock);
  strangers += inside++ != 0;
  count++;
  strangers += --inside != 0;
  bias_unlock(&lock);
}

static void enter_lock_times(int times)
{
  for (int i = 0; i < times; i++)
    enter_lock_once();
}

static void *run_owner_thread(void *unused)
{
  enter_lock_times(LONG_RUN);
  return unused;
}

static bool is_owner(void)
{
  return atomic_load(&lock.owner) == bias_self;
}

START_TEST(who_takes_it_again_and_again_gets_the_bias)
{
  pthread_t other;
  enter_lock_once();
  ck_assert(!is_owner());
  enter_lock_times(LONG_RUN);
  ck_assert(is_owner()); /* every kernel since 4.14 has what it takes */
  ck_assert_int_eq(pthread_create(&other, NULL, run_owner_thread, NULL), 0);
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  ck_assert(!is_owner());
  enter_lock_times(LONG_RUN);
  ck_assert_int_eq(strangers, 0);
  ck_assert_uint_eq(count, 1 + 3 * LONG_RUN);
}
END_TEST

/* Short and long runs in turn, so that the bias moves while others are on their way in. */
static void *in_turns(void *argument)
{
  int number = (int)(intptr_t)argument;
  (void)pthread_barrier_wait(&start);
  for (int i = 0; i < TURNS; i++)
    enter_lock_times((i + number) % 4 ? SHORT_RUN : LONG_RUN);
  return NULL;
}

START_TEST(one_thread_at_a_time_is_inside_while_the_bias_moves)
{
  pthread_t thread[THREADS];
  uint64_t all = THREADS * (TURNS / 4) * (uint64_t)(LONG_RUN + 3 * SHORT_RUN);
  (void)pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, in_turns, (void *)(intptr_t)i), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  ck_assert_int_eq(strangers, 0);
  ck_assert_uint_eq(count, all);
  (void)pthread_barrier_destroy(&start);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("core/bias");
  TCase *c = tcase_create("lock");
  tcase_add_test(c, who_takes_it_again_and_again_gets_the_bias);
  tcase_add_test(c, one_thread_at_a_time_is_inside_while_the_bias_moves);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
