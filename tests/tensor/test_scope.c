/* test_scope.c: expressions within a scope: what is released at its end, what is kept, and what is
 * done about a failure; the same of the expressions that the engine itself is made of. */
#include <pthread.h>
#include "core/tensor/calc.h"
#include "tests/tensor/rig.h"

static int over; /* tensors over memory of the suite's that are alive */

static void count_down(void *context)
{
  (void)context;
  over--;
}

/* A tensor whose end is counted: 1, 2, 3. */
static weir_status make_counted(weir_tensor **out, double first)
{
  static float memory[3] = {1, 2, 3};
  memory[0] = (float)first;
  weir_status st = weir_tensor_over(out, memory, weir_shape(3), NULL,
                                    &(weir_options){.dtype = WEIR_FLOAT32}, count_down, NULL);
  over += !st;
  return st;
}

START_TEST(what_is_made_ends_with_the_scope)
{
  weir_status st;
  over = 0;
  WEIR_SCOPE(st)
  {
    weir_tensor *a = weir_call(make_counted, 1);
    weir_tensor *sum = weir_expr(add, weir_expr(mul, a, weir_call(make_counted, 1)), a);
    EXPECT(sum, 2, 6, 12);
    ck_assert_int_eq(over, 2);
  }
  ck_assert_int_eq(st, WEIR_OK);
  ck_assert_int_eq(over, 0);
}
END_TEST

START_TEST(what_is_kept_is_the_callers)
{
  weir_status st;
  WEIR_TENSOR kept = NULL;
  WEIR_TENSOR argument = counting(weir_shape(3), WEIR_FLOAT32, cpu);
  WEIR_TENSOR same = NULL;
  WEIR_SCOPE(st)
  {
    ck_assert_int_eq(weir_keep(&kept, weir_expr(add_scalar, argument, weir_int(1))), WEIR_OK);
    ck_assert_int_eq(weir_keep(&same, argument), WEIR_OK); /* none of the scope's */
    ck_assert_ptr_null(kept);
  }
  ck_assert_int_eq(st, WEIR_OK);
  EXPECT(kept, 1, 2, 3);
  ck_assert_ptr_eq(same, argument);
}
END_TEST

START_TEST(many_are_held)
{
  weir_status st;
  WEIR_TENSOR last = NULL;
  over = 0;
  WEIR_SCOPE(st)
  {
    weir_tensor *sum = weir_call(make_counted, 0);
    for (int i = 0; i < 1000; i++)
      sum = weir_expr(add, sum, weir_call(make_counted, 0));
    weir_keep(&last, sum);
    ck_assert_int_eq(over, 1001);
  }
  ck_assert_int_eq(st, WEIR_OK);
  ck_assert_int_eq(over, 0);
  EXPECT(last, 0, 2002, 3003);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

static int calls;

static weir_status count_call(weir_tensor **out, const weir_tensor *t)
{
  calls++;
  return weir_clone(out, t);
}

START_TEST(the_first_failure_is_the_scopes)
{
  weir_status st;
  WEIR_TENSOR kept = (weir_tensor *)&kept;
  WEIR_TENSOR early = NULL;
  WEIR_TENSOR two = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  over = calls = 0;
  WEIR_SCOPE(st)
  {
    weir_tensor *a = weir_call(make_counted, 1);
    weir_keep(&early, a);
    weir_tensor *b = weir_call(count_call, weir_expr(add, a, two)); /* 3 and 2 */
    ck_assert_ptr_null(b);
    ck_assert(!weir_scope_ok());
    ck_assert_int_eq(calls, 1); /* it was reached, with NULL; its own failure is not the scope's */
    ck_assert_ptr_null(weir_call(count_call, a));
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(weir_do(weir_fill_(two, weir_int(9))), WEIR_EINVAL);
    ck_assert_int_ne(weir_keep(&kept, b), WEIR_OK);
    ck_assert_ptr_null(kept);
    (void)weir_fail(WEIR_EIO, "something else");
  }
  ck_assert_int_eq(st, WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "The size of tensor a (3) must match the size of tensor b "
                                         "(2) at non-singleton dimension 0");
  ck_assert_int_eq(over, 0);
  ck_assert_ptr_null(early); /* whole or not at all */
  EXPECT(two, 0, 1);
}
END_TEST

START_TEST(calls_without_a_tensor_are_part_of_it)
{
  weir_status st;
  WEIR_TENSOR two = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  WEIR_TENSOR three = counting(weir_shape(3), WEIR_FLOAT32, cpu);
  WEIR_SCOPE(st)
  {
    ck_assert_int_eq(weir_do(weir_add_(two, two)), WEIR_OK);
  }
  ck_assert_int_eq(st, WEIR_OK);
  EXPECT(two, 0, 2);
  WEIR_SCOPE(st)
  {
    ck_assert_int_eq(weir_do(weir_add_(two, three)), WEIR_EINVAL);
  }
  ck_assert_int_eq(st, WEIR_EINVAL);
}
END_TEST

START_TEST(what_is_taken_is_the_scopes)
{
  weir_status st;
  over = 0;
  WEIR_SCOPE(st)
  {
    weir_tensor *t;
    weir_ok(make_counted(&t, 1));
    ck_assert_ptr_eq(weir_scope_take(t), t);
    ck_assert_ptr_null(weir_scope_take(NULL));
    ck_assert_int_eq(weir_scope_check(WEIR_OK), WEIR_OK);
  }
  ck_assert(!st && !over);
}
END_TEST

/* ---- how it is left -------------------------------------------------------------------------- */

static weir_status leave_early(int how)
{
  weir_status st = WEIR_OK;
  for (int i = 0; i < 2; i++) {
    WEIR_SCOPE(st)
    {
      ck_assert_ptr_nonnull(weir_call(make_counted, i));
      if (how == 0) break;
      if (how == 1) goto out;
      if (how == 2) return st;
    }
  }
out:
  return st;
}

START_TEST(however_it_is_left_it_ends)
{
  for (int how = 0; how < 4; how++) {
    over = 0;
    ck_assert_int_eq(leave_early(how), WEIR_OK);
    ck_assert_int_eq(over, 0);
    ck_assert(!weir_scope_ok()); /* none is open */
  }
}
END_TEST

START_TEST(scopes_nest_and_fail_alone)
{
  weir_status outer, inner;
  over = 0;
  WEIR_SCOPE(outer)
  {
    weir_tensor *a = weir_call(make_counted, 1);
    WEIR_SCOPE(inner)
    {
      ck_assert_ptr_nonnull(weir_call(make_counted, 1));
      ck_assert_ptr_null(weir_expr(view, a, weir_shape(7)));
    }
    ck_assert_int_eq(inner, WEIR_EINVAL);
    ck_assert_int_eq(over, 1);
    ck_assert(weir_scope_ok());
    EXPECT(weir_expr(neg, a), -1, -2, -3);
  }
  ck_assert(!outer && !over);
}
END_TEST

static void *other_thread(void *unused)
{
  (void)unused;
  weir_tensor *t = NULL;
  ck_assert(!weir_scope_ok());
  weir_ok(weir_zeros(&t, weir_shape(1), NULL));
  ck_assert_ptr_null(weir_scope_take(t));
  weir_tensor *kept = NULL;
  WEIR_TENSOR one = counting(weir_shape(1), WEIR_FLOAT32, cpu);
  ck_assert_int_eq(weir_keep(&kept, one), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "no WEIR_SCOPE is open in this thread");
  return NULL;
}

START_TEST(a_scope_is_its_threads)
{
  weir_status st;
  pthread_t thread;
  WEIR_SCOPE(st)
  {
    ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(weir_scope_ok());
  }
  ck_assert_int_eq(st, WEIR_OK);
}
END_TEST

/* ---- expressions of the engine's own (core/tensor/calc.h) ------------------------------------ */

/* Makes a tensor and fails all the same. */
static weir_status make_and_fail(weir_tensor **out)
{
  weir_status st = make_counted(out, 1);
  return st ? st : weir_fail(WEIR_EIO, "made, and failed");
}

static weir_status twice_plus(weir_tensor **out, double plus)
{
  CALC(c);
  const weir_tensor *a = c_call(c, make_counted, 1);
  return calc_give(c, out, c_add_s(c, c_mul_s(c, a, 2), plus));
}

START_TEST(an_expression_releases_all_but_what_it_gives)
{
  WEIR_TENSOR got = NULL;
  over = 0;
  weir_ok(twice_plus(&got, 3));
  ck_assert_int_eq(over, 0);
  EXPECT(got, 5, 7, 9);
  ck_assert_int_eq(got->refs, 1);
}
END_TEST

START_TEST(an_expression_keeps_its_first_error_and_does_nothing_more)
{
  WEIR_TENSOR got = NULL;
  int evaluated = 0;
  over = 0;
  {
    CALC(c);
    const weir_tensor *a = c_call(c, make_counted, 1);
    const weir_tensor *bad = c_reshape(c, a, weir_shape(2));
    ck_assert_ptr_null(bad);
    ck_assert_ptr_null(c_add(c, a, c_neg(c, bad)));
    ck_assert_ptr_null(c_call(c, make_counted, ++evaluated));
    c_do(c, weir_fail(WEIR_EIO, "call %d", ++evaluated));
    ck_assert_int_eq(calc_give(c, &got, a), WEIR_EINVAL);
  }
  ck_assert_int_eq(over, 0);
  ck_assert_int_eq(evaluated, 0);
  ck_assert_ptr_null(got);
  ck_assert_str_eq(weir_error_message(), "shape '[2]' is invalid for input of size 3");
}
END_TEST

START_TEST(what_a_failed_call_has_made_is_released)
{
  weir_tensor *made = NULL;
  CALC(c);
  over = 0;
  weir_status st = make_and_fail(&made);
  ck_assert_ptr_null(calc_keep(c, st, &made));
  ck_assert_ptr_null(made);
  ck_assert_int_eq(c->st, WEIR_EIO);
  ck_assert_int_eq(over, 0);
}
END_TEST

START_TEST(an_expression_of_too_many_parts_is_an_error)
{
  over = 0;
  {
    CALC(c);
    const weir_tensor *a = c_call(c, make_counted, 1);
    for (int i = 0; i < CALC_ROOM; i++)
      a = c_narrow(c, a, 0, 0, 3);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(c->st, WEIR_ENOTSUP);
    ck_assert_int_eq(c->count, CALC_ROOM);
  }
  ck_assert_int_eq(over, 0);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {what_is_made_ends_with_the_scope,
                                what_is_kept_is_the_callers,
                                many_are_held,
                                the_first_failure_is_the_scopes,
                                calls_without_a_tensor_are_part_of_it,
                                what_is_taken_is_the_scopes,
                                however_it_is_left_it_ends,
                                scopes_nest_and_fail_alone,
                                a_scope_is_its_threads,
                                an_expression_releases_all_but_what_it_gives,
                                an_expression_keeps_its_first_error_and_does_nothing_more,
                                what_a_failed_call_has_made_is_released,
                                an_expression_of_too_many_parts_is_an_error,
                                NULL};
  return rig_run("tensor/scope", tests, DEVICES_TRIED);
}
