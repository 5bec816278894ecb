/* test_convert.c: to, cuda, cpu, type, clone, contiguous, pin_memory: what is the same object, and
 * what a new one is. */
#include "tests/tensor/rig.h"

/* Both are one object; the new count is given back. */
static void same_object(weir_tensor *out, const weir_tensor *t)
{
  ck_assert_ptr_eq(out, t);
  weir_tensor_release(out);
}

START_TEST(nothing_changes_and_it_is_the_same_object)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  weir_options o = as(WEIR_FLOAT32, device(_i)), none = {.non_blocking = true};
  weir_tensor *out;
  weir_ok(weir_to(&out, t, &o));
  same_object(out, t);
  weir_ok(weir_to(&out, t, &none));
  same_object(out, t);
  weir_ok(weir_to(&out, t, NULL));
  same_object(out, t);
  weir_ok(weir_to_dtype(&out, t, WEIR_FLOAT32));
  same_object(out, t);
  weir_ok(weir_to_type(&out, t, weir_tensor_type(t), false));
  same_object(out, t);
  weir_ok(weir_contiguous(&out, t));
  same_object(out, t);
  if (_i) {
    weir_ok(weir_cuda(&out, t, device(_i), false));
    same_object(out, t);
  } else {
    weir_ok(weir_cpu(&out, t));
    same_object(out, t);
  }
}
END_TEST

START_TEST(a_copy_that_is_asked_for_is_made)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_options o = {.copy = true};
  weir_ok(weir_to(&a, t, &o));
  weir_ok(weir_clone(&b, t));
  ck_assert(!weir_tensor_shares_storage(a, t) && !weir_tensor_shares_storage(b, t));
  is_on(a, device(_i));
  weir_ok(weir_zero_(t));
  EXPECT(a, 0, 1, 2);
  EXPECT(b, 0, 1, 2);
}
END_TEST

/* From each device to each, with 1, 2 and 8 of them. */
START_TEST(tensors_move_between_all_devices)
{
  static const int counts[] = {1, 2, 8};
  int n = counts[_i];
  devices(n);
  for (int from = 0; from <= n; from++)
    for (int to = 0; to <= n; to++) {
      WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_INT32, device(from));
      WEIR_TENSOR b = NULL;
      weir_options o = on(device(to));
      weir_ok(weir_to(&b, a, &o));
      is_on(b, device(to));
      ck_assert_int_eq(weir_tensor_dtype(b), WEIR_INT32);
      EXPECT(b, 0, 1, 2, 3, 4, 5);
      ck_assert_int_eq(a == b, from == to);
    }
}
END_TEST

START_TEST(dtype_and_device_change_at_once)
{
  devices(2);
  for (int d = 1; d < WEIR_DTYPES; d++) {
    WEIR_TENSOR a = counting(weir_shape(2), (weir_dtype)d, cpu);
    WEIR_TENSOR b = NULL;
    WEIR_TENSOR c = NULL;
    weir_options o = as(WEIR_FLOAT64, device(_i)), back = as((weir_dtype)d, cpu);
    weir_ok(weir_to(&b, a, &o));
    is_on(b, device(_i));
    ck_assert_int_eq(weir_tensor_dtype(b), WEIR_FLOAT64);
    EXPECT(b, 0, 1);
    weir_ok(weir_to(&c, b, &back));
    ck_assert_int_eq(weir_tensor_dtype(c), d);
    EXPECT(c, 0, 1);
  }
}
END_TEST

START_TEST(types_by_name)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_WITH_DEVICE(cuda1) weir_ok(weir_to_type(&a, t, "weir.cuda.HalfTensor", false));
  is_on(a, cuda1);
  ck_assert_str_eq(weir_tensor_type(a), "weir.cuda.HalfTensor");
  weir_ok(weir_to_type(&b, a, "torch.cuda.FloatTensor", false)); /* stays where it is */
  is_on(b, cuda1);
  weir_ok(weir_to_type(&c, a, "weir.LongTensor", false));
  is_on(c, cpu);
  EXPECT(c, 0, 1);
  weir_tensor *none;
  ck_assert_int_eq(weir_to_type(&none, t, "weir.cuda.Tensor", false), WEIR_EINVAL);
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(cuda_without_an_index_is_the_current_device)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  weir_device none = {.type = WEIR_DEVICE_UNSET};
  weir_ok(weir_cuda(&a, t, none, false));
  is_on(a, cuda0);
  WEIR_WITH_DEVICE(cuda1)
  {
    weir_ok(weir_cuda(&b, t, cuda_any, false));
    weir_ok(weir_cuda(&c, a, none, false)); /* it is elsewhere: it moves */
  }
  is_on(b, cuda1);
  is_on(c, cuda1);
}
END_TEST

/* Row 5: results are where their operand is, whatever is current. */
START_TEST(results_are_where_their_operand_is)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 2), WEIR_FLOAT32, device(_i));
  weir_tensor *out[5] = {NULL};
  WEIR_WITH_DEVICE(cuda1)
  {
    weir_ok(weir_clone(&out[0], t));
    weir_ok(weir_t(&out[1], t));
    weir_ok(weir_contiguous(&out[2], out[1]));
    weir_ok(weir_to_dtype(&out[3], t, WEIR_INT32));
    weir_ok(weir_reshape(&out[4], out[1], weir_shape(4)));
  }
  for (int i = 0; i < 5; i++) {
    is_on(out[i], device(_i));
    weir_tensor_release(out[i]);
  }
}
END_TEST

START_TEST(order_in_memory_is_kept_by_all_but_contiguous)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  weir_options there = on(cuda0), wide = {.dtype = WEIR_FLOAT64};
  weir_ok(weir_t(&turned, t));
  weir_ok(weir_to(&a, turned, &wide));
  strides_are(a, weir_shape(1, 3));
  EXPECT(a, 0, 3, 1, 4, 2, 5);
  weir_ok(weir_to(&b, turned, &there));
  strides_are(b, weir_shape(1, 3));
  EXPECT(b, 0, 3, 1, 4, 2, 5);
  weir_ok(weir_contiguous(&c, turned));
  strides_are(c, weir_shape(2, 1));
  EXPECT(c, 0, 3, 1, 4, 2, 5);
}
END_TEST

START_TEST(what_is_no_cuda_device_is_refused)
{
  devices(1);
  WEIR_TENSOR t = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  weir_tensor *out;
  weir_options bad = {.dtype = (weir_dtype)50}, far = on(WEIR_CUDA_AT(44));
  refused(WEIR_EINVAL, "Invalid device, must be cuda device", weir_cuda(&out, t, cpu, false));
  refused(WEIR_EINVAL, "50 is not a dtype", weir_to(&out, t, &bad));
  ck_assert_int_eq(weir_to(&out, t, &far), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "invalid device ordinal"));
  ck_assert_ptr_null(out);
  EXPECT(t, 0, 1);
}
END_TEST

START_TEST(page_locked_copies_are_made_once)
{
  devices(1);
  WEIR_TENSOR t = counting(weir_shape(3, 2), WEIR_INT16, cpu);
  WEIR_TENSOR p = NULL;
  WEIR_TENSOR v = NULL;
  weir_tensor *again;
  ck_assert(!weir_tensor_is_pinned(t));
  weir_ok(weir_pin_memory(&p, t));
  ck_assert(weir_tensor_is_pinned(p) && !weir_tensor_shares_storage(p, t));
  is_on(p, cpu);
  EXPECT(p, 0, 1, 2, 3, 4, 5);
  weir_ok(weir_pin_memory(&again, p));
  same_object(again, p);
  weir_ok(weir_t(&v, p));
  ck_assert(weir_tensor_is_pinned(v));
  weir_options pin = {.pin_memory = true}, there = {.pin_memory = true, .device = cuda0};
  weir_ok(weir_to(&again, p, &pin));
  same_object(again, p);
  refused(WEIR_EINVAL, "Only dense CPU tensors can be pinned", weir_to(&again, t, &there));
}
END_TEST

START_TEST(a_cuda_tensor_is_not_pinned)
{
  devices(1);
  WEIR_TENSOR t = counting(weir_shape(3), WEIR_FLOAT32, cuda0);
  weir_tensor *out;
  ck_assert(!weir_tensor_is_pinned(t));
  refused(WEIR_EINVAL, "cannot pin 'weir.cuda.FloatTensor' only dense CPU tensors can be pinned",
          weir_pin_memory(&out, t));
  ck_assert_ptr_null(out);
}
END_TEST

START_TEST(memory_that_others_locked_is_pinned)
{
  devices(1);
  WEIR_TENSOR warm = counting(weir_shape(1), WEIR_FLOAT32, cuda0);
  WEIR_TENSOR t = NULL;
  void *memory;
  ck_assert(!weir_tensor_is_pinned(warm));
  weir_ok(weir_pinned_malloc(&memory, 4096));
  weir_ok(weir_tensor_over(&t, memory, weir_shape(8), NULL, NULL, NULL, NULL));
  ck_assert(weir_tensor_is_pinned(t));
  weir_tensor_drop(&t);
  weir_ok(weir_pinned_free(memory));
}
END_TEST

START_TEST(one_element_is_a_number)
{
  devices(2);
  weir_scalar v;
  WEIR_TENSOR a = counting(weir_shape(4), WEIR_FLOAT16, device(_i));
  WEIR_TENSOR b = NULL;
  weir_ok(weir_select(&b, a, 0, 3));
  weir_ok(weir_item(&v, b));
  ck_assert_int_eq(v.dtype, WEIR_FLOAT64);
  ck_assert(v.f == 3);
  refused(WEIR_EINVAL, "a Tensor with 4 elements cannot be converted to Scalar", weir_item(&v, a));
  for (int d = 1; d < WEIR_DTYPES; d++) {
    WEIR_TENSOR one = NULL;
    weir_options o = as((weir_dtype)d, device(_i));
    weir_ok(weir_full(&one, weir_shape(1, 1), weir_bool(true), &o));
    weir_ok(weir_item(&v, one));
    bool whole = d <= WEIR_INT64 || d == WEIR_BOOL;
    ck_assert(whole ? v.i == 1 : v.f == 1);
    ck_assert_int_eq(v.dtype, d == WEIR_BOOL        ? WEIR_BOOL
                              : d == WEIR_COMPLEX64 ? WEIR_COMPLEX64
                              : whole               ? WEIR_INT64
                                                    : WEIR_FLOAT64);
  }
}
END_TEST

START_TEST(reading_says_how_many_bytes_it_needs)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(3), WEIR_INT32, device(_i));
  double x[3];
  refused(WEIR_EINVAL, "3 elements of float64 are 24 bytes, not 12",
          weir_tensor_read(x, 12, WEIR_FLOAT64, t));
  refused(WEIR_EINVAL, "0 is not a dtype", weir_tensor_read(x, 12, WEIR_DTYPE_NONE, t));
  weir_ok(weir_tensor_read(x, sizeof x, WEIR_FLOAT64, t));
  ck_assert(x[2] == 2);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {nothing_changes_and_it_is_the_same_object,
                                a_copy_that_is_asked_for_is_made,
                                tensors_move_between_all_devices,
                                dtype_and_device_change_at_once,
                                types_by_name,
                                cuda_without_an_index_is_the_current_device,
                                results_are_where_their_operand_is,
                                order_in_memory_is_kept_by_all_but_contiguous,
                                what_is_no_cuda_device_is_refused,
                                page_locked_copies_are_made_once,
                                a_cuda_tensor_is_not_pinned,
                                memory_that_others_locked_is_pinned,
                                one_element_is_a_number,
                                reading_says_how_many_bytes_it_needs,
                                NULL};
  return rig_run("tensor/convert", tests, DEVICES_TRIED);
}
