/* test_create.c: factories: what they make, where, and what they refuse. */
#include <math.h>
#include "tests/tensor/rig.h"

START_TEST(factories_fill_on_every_device)
{
  weir_options o = on(device(_i));
  WEIR_TENSOR z = NULL;
  WEIR_TENSOR n = NULL;
  WEIR_TENSOR f = NULL;
  WEIR_TENSOR e = NULL;
  devices(2);
  weir_ok(weir_zeros(&z, weir_shape(2, 3), &o));
  EXPECT(z, 0, 0, 0, 0, 0, 0);
  weir_ok(weir_ones(&n, weir_shape(3), &o));
  EXPECT(n, 1, 1, 1);
  weir_ok(weir_full(&f, weir_shape(2), weir_float(0.5), &o));
  EXPECT(f, 0.5, 0.5);
  weir_ok(weir_empty(&e, weir_shape(4, 5, 6), &o));
  shape_is(e, weir_shape(4, 5, 6));
  strides_are(e, weir_shape(30, 6, 1));
  const weir_tensor *all[] = {z, n, f, e};
  for (int i = 0; i < 4; i++) {
    is_on(all[i], device(_i));
    ck_assert_int_eq(weir_tensor_dtype(all[i]), WEIR_FLOAT32);
    ck_assert(weir_tensor_is_contiguous(all[i]));
  }
}
END_TEST

START_TEST(every_dtype_is_filled_and_read)
{
  devices(2);
  for (int d = 1; d < WEIR_DTYPES; d++) {
    WEIR_TENSOR t = NULL;
    weir_options o = as((weir_dtype)d, device(_i));
    weir_ok(weir_full(&t, weir_shape(3), weir_int(1), &o));
    EXPECT(t, 1, 1, 1);
    ck_assert_int_eq(weir_tensor_dtype(t), d);
  }
}
END_TEST

START_TEST(values_are_copied_and_their_dtype_is_kept_or_cast)
{
  float values[] = {1.5F, -2, 3};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR none = NULL;
  devices(2);
  weir_options o = on(device(_i)), half = as(WEIR_INT8, device(_i));
  weir_ok(weir_tensor_from(&a, values, WEIR_FLOAT32, weir_shape(3), &o));
  weir_ok(weir_tensor_from(&b, values, WEIR_FLOAT32, weir_shape(3, 1), &half));
  values[0] = 9;
  EXPECT(a, 1.5, -2, 3);
  EXPECT(b, 1, -2, 3);
  ck_assert_int_eq(weir_tensor_dtype(b), WEIR_INT8);
  shape_is(b, weir_shape(3, 1));
  refused(WEIR_EINVAL, "weir_tensor_from: values is NULL",
          weir_tensor_from(&none, NULL, WEIR_FLOAT32, weir_shape(3), NULL));
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_numbers_kind_is_the_dtype_of_full)
{
  static const struct {
    weir_scalar value;
    weir_dtype dtype;
  } rows[] = {{{WEIR_BOOL, 1, 0, 0}, WEIR_BOOL},
              {{WEIR_INT64, 7, 0, 0}, WEIR_INT64},
              {{WEIR_FLOAT64, 0, 2.5, 0}, WEIR_FLOAT32},
              {{WEIR_COMPLEX64, 0, 1, 2}, WEIR_COMPLEX64}};
  for (int i = 0; i < 4; i++) {
    WEIR_TENSOR t = NULL;
    weir_ok(weir_full(&t, weir_shape(2), rows[i].value, NULL));
    ck_assert_int_eq(weir_tensor_dtype(t), rows[i].dtype);
  }
  weir_tensor *t;
  weir_scalar odd = {WEIR_FLOAT32, 0, 1, 0};
  refused(WEIR_EINVAL, "a weir_scalar is bool, int64, float64 or complex64, not float32",
          weir_full(&t, weir_shape(2), odd, NULL));
}
END_TEST

START_TEST(ranges_are_torchs)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR d = NULL;
  devices(2);
  weir_options o = on(device(_i)), byte = as(WEIR_UINT8, device(_i));
  weir_ok(weir_arange(&a, weir_int(2), weir_int(11), weir_int(3), &o));
  EXPECT(a, 2, 5, 8);
  ck_assert_int_eq(weir_tensor_dtype(a), WEIR_INT64);
  weir_ok(weir_arange(&b, weir_float(1), weir_int(0), weir_float(-0.25), &o));
  EXPECT(b, 1, 0.75, 0.5, 0.25);
  ck_assert_int_eq(weir_tensor_dtype(b), WEIR_FLOAT32);
  weir_ok(weir_arange(&c, weir_int(254), weir_int(258), weir_int(1), &byte));
  EXPECT(c, 254, 255, 0, 1);
  weir_ok(weir_arange(&d, weir_int(INT64_MAX - 3), weir_int(INT64_MAX), weir_int(2), &o));
  int64_t got[2];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_INT64, d));
  ck_assert_int_eq(got[0], INT64_MAX - 3);
  ck_assert_int_eq(got[1], INT64_MAX - 1);
}
END_TEST

START_TEST(ranges_that_are_none_are_refused)
{
  weir_tensor *t;
  weir_options o = {.dtype = WEIR_BOOL};
  weir_scalar zero = weir_int(0), one = weir_int(1), ten = weir_int(10);
  refused(WEIR_EINVAL, "step must be nonzero", weir_arange(&t, zero, ten, zero, NULL));
  refused(WEIR_EINVAL, "step must be finite but got inf",
          weir_arange(&t, zero, ten, weir_float(INFINITY), NULL));
  refused(WEIR_EINVAL, "upper bound and lower bound inconsistent with step sign",
          weir_arange(&t, zero, ten, weir_int(-1), NULL));
  refused(WEIR_EINVAL, "unsupported range: 0 -> inf",
          weir_arange(&t, zero, weir_float(INFINITY), one, NULL));
  refused(WEIR_EINVAL, "invalid size, possible overflow?",
          weir_arange(&t, zero, weir_float(1e300), one, NULL));
  refused(WEIR_EINVAL, "Storage size calculation overflowed with sizes=[4611686018427387904]",
          weir_arange(&t, zero, weir_int(INT64_C(1) << 62), one, NULL));
  refused(WEIR_EINVAL, "invalid size, possible overflow?",
          weir_arange(&t, weir_int(INT64_MIN), weir_int(INT64_MAX), one, NULL));
  refused(WEIR_EINVAL, "value cannot be converted to type double without overflow",
          weir_arange(&t, zero, weir_complex(1, 2), one, NULL));
  refused(WEIR_ENOTSUP, "\"arange_cpu\" not implemented for 'Bool'",
          weir_arange(&t, zero, ten, one, &o));
  ck_assert_ptr_null(t);
}
END_TEST

START_TEST(bad_shapes_dtypes_and_devices_are_refused_with_numbers)
{
  weir_tensor *t;
  weir_options o = {.dtype = (weir_dtype)40};
  int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  refused(WEIR_EINVAL, "Trying to create tensor with negative dimension -1: [-1, 3]",
          weir_empty(&t, weir_shape(-1, 3), NULL));
  refused(WEIR_EINVAL,
          "Storage size calculation overflowed with sizes=[1099511627776, 1099511627776]",
          weir_zeros(&t, weir_shape(INT64_C(1) << 40, INT64_C(1) << 40), NULL));
  refused(WEIR_EINVAL, "Storage size calculation overflowed with sizes=[2305843009213693952]",
          weir_zeros(&t, weir_shape(INT64_C(1) << 61), NULL));
  refused(WEIR_EINVAL, "a tensor has 0 to 8 dimensions, not 9",
          weir_empty(&t, weir_shape_of(9, nine), NULL));
  refused(WEIR_EINVAL, "40 is not a dtype", weir_empty(&t, weir_shape(2), &o));
  o = on((weir_device){WEIR_DEVICE_CPU, {4}});
  refused(WEIR_EINVAL, "CPU device index must be -1 or zero, got 3",
          weir_empty(&t, weir_shape(2), &o));
  o = on((weir_device){.type = (weir_device_type)7});
  refused(WEIR_EINVAL, "7 is no device type", weir_empty(&t, weir_shape(2), &o));
  ck_assert_ptr_null(t);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_refused_at_its_use)
{
  weir_tensor *t;
  devices(1);
  weir_options o = on(WEIR_CUDA_AT(40));
  ck_assert_int_eq(weir_empty(&t, weir_shape(2), &o), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "invalid device ordinal: cuda:40"));
}
END_TEST

START_TEST(more_than_there_is_is_an_error)
{
  weir_tensor *t;
  devices(1);
  weir_options o = on(cuda0);
  ck_assert_int_eq(weir_empty(&t, weir_shape(INT64_C(1) << 50), &o), WEIR_EOOM);
  ck_assert_int_eq(strncmp(weir_error_message(), "CUDA out of memory. Tried to allocate ", 38), 0);
  refused(WEIR_ENOMEM,
          "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4611686018427387904 "
          "bytes",
          weir_empty(&t, weir_shape(INT64_C(1) << 60), NULL));
  ck_assert_ptr_null(t);
}
END_TEST

/* Row 5's side of factories, and torch's rule for guards. */
START_TEST(a_guard_moves_cuda_and_never_a_default_of_cpu)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  weir_options any = on(cuda_any), zero = on(cuda0);
  devices(2);
  WEIR_WITH_DEVICE(cuda1)
  {
    weir_ok(weir_zeros(&a, weir_shape(2), NULL));
    weir_ok(weir_zeros(&b, weir_shape(2), &any));
    weir_ok(weir_zeros(&c, weir_shape(2), &zero));
  }
  is_on(a, cpu);
  is_on(b, cuda1);
  is_on(c, cuda0);
}
END_TEST

/* What is not written in a struct is zero, and zero is no device's index. */
START_TEST(a_type_alone_is_the_current_device_and_every_index_can_be_said)
{
  weir_options alone = {.device = {.type = WEIR_DEVICE_CUDA}}, first = {.device = WEIR_CUDA_AT(0)};
  weir_tensor *t[6] = {NULL};
  weir_stream *s;
  weir_device d;
  devices(2);
  WEIR_WITH_DEVICE(WEIR_CUDA_AT(1))
  {
    weir_ok(weir_zeros(&t[0], weir_shape(2), &alone));
    weir_ok(weir_zeros(&t[1], weir_shape(2), &(weir_options){.device = WEIR_CUDA}));
    weir_ok(weir_zeros(&t[2], weir_shape(2), &first));
    weir_ok(weir_cuda(&t[3], t[2], alone.device, false));
    weir_ok(weir_to(&t[4], t[0], &first));
    weir_ok(weir_current_stream(&s, alone.device));
    weir_ok(weir_stream_device(&d, s));
    ck_assert_int_eq(weir_device_index(d), 1);
    ck_assert_uint_gt(weir_memory_allocated(alone.device), 0);
    weir_ok(weir_set_default_device(alone.device));
    weir_ok(weir_zeros(&t[5], weir_shape(2), NULL));
    weir_ok(weir_set_default_device(cpu));
    WEIR_WITH_DEVICE(alone.device)
    weir_ok(weir_current_device(&d));
    ck_assert_str_eq(weir_device_name(d), "cuda:1");
  }
  for (int i = 0; i < 6; i++)
    is_on(t[i], i == 2 || i == 4 ? cuda0 : cuda1);
  ck_assert_str_eq(weir_device_name(weir_tensor_device(t[2])), "cuda:0");
  for (int i = 0; i < 6; i++)
    weir_tensor_release(t[i]);
}
END_TEST

START_TEST(the_cpu_is_cpu_however_it_was_named)
{
  static const char *const names[] = {"cpu", "cpu:0"};
  for (int i = 0; i < 3; i++) {
    weir_options o = on(WEIR_CPU);
    WEIR_TENSOR t = NULL;
    if (i < 2) weir_ok(weir_device_parse(&o.device, names[i]));
    weir_ok(weir_zeros(&t, weir_shape(2), i < 2 ? &o : NULL));
    ck_assert_str_eq(weir_device_name(weir_tensor_device(t)), "cpu");
    ck_assert(weir_device_equal(weir_tensor_device(t), WEIR_CPU));
    weir_ok(weir_set_default_device(o.device));
    ck_assert_str_eq(weir_device_name(weir_get_default_device()), "cpu");
  }
}
END_TEST

START_TEST(like_and_new_keep_dtype_and_device_whatever_is_current)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_INT16, device(_i));
  weir_options other = as(WEIR_FLOAT64, cpu);
  int64_t values[] = {5, 6};
  weir_tensor *out[9] = {NULL};
  WEIR_WITH_DEVICE(cuda1)
  {
    weir_ok(weir_empty_like(&out[0], t, NULL));
    weir_ok(weir_zeros_like(&out[1], t, NULL));
    weir_ok(weir_ones_like(&out[2], t, NULL));
    weir_ok(weir_full_like(&out[3], t, weir_float(7), NULL));
    weir_ok(weir_new_empty(&out[4], t, weir_shape(4), NULL));
    weir_ok(weir_new_zeros(&out[5], t, weir_shape(2), NULL));
    weir_ok(weir_new_ones(&out[6], t, weir_shape(2), NULL));
    weir_ok(weir_new_full(&out[7], t, weir_shape(2), weir_int(-3), NULL));
    weir_ok(weir_new_tensor(&out[8], t, values, WEIR_INT64, weir_shape(2), NULL));
  }
  for (int i = 0; i < 9; i++) {
    is_on(out[i], device(_i));
    ck_assert_int_eq(weir_tensor_dtype(out[i]), WEIR_INT16);
  }
  shape_is(out[0], weir_shape(2, 3));
  EXPECT(out[1], 0, 0, 0, 0, 0, 0);
  EXPECT(out[2], 1, 1, 1, 1, 1, 1);
  EXPECT(out[3], 7, 7, 7, 7, 7, 7);
  shape_is(out[4], weir_shape(4));
  EXPECT(out[5], 0, 0);
  EXPECT(out[6], 1, 1);
  EXPECT(out[7], -3, -3);
  EXPECT(out[8], 5, 6);
  for (int i = 0; i < 9; i++)
    weir_tensor_drop(&out[i]);
  weir_ok(weir_ones_like(&out[0], t, &other));
  is_on(out[0], cpu);
  ck_assert_int_eq(weir_tensor_dtype(out[0]), WEIR_FLOAT64);
  weir_tensor_drop(&out[0]);
}
END_TEST

START_TEST(like_keeps_the_order_of_dimensions_in_memory)
{
  WEIR_TENSOR t = counting(weir_shape(4, 6), WEIR_FLOAT32, cpu);
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR holes = NULL;
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_ok(weir_t(&turned, t));
  weir_ok(weir_slice(&holes, turned, 0, 0, 6, 2));
  weir_ok(weir_zeros_like(&a, turned, NULL));
  strides_are(a, weir_shape(1, 6));
  weir_ok(weir_empty_like(&b, holes, NULL));
  shape_is(b, weir_shape(3, 4));
  strides_are(b, weir_shape(1, 3));
}
END_TEST

START_TEST(only_the_cpus_tensors_are_made_page_locked)
{
  weir_options pin = {.pin_memory = true}, bad = {.pin_memory = true, .device = cuda0};
  WEIR_TENSOR t = NULL;
  weir_tensor *out;
  devices(1);
  weir_ok(weir_ones(&t, weir_shape(3), &pin));
  is_on(t, cpu);
  ck_assert(weir_tensor_is_pinned(t));
  EXPECT(t, 1, 1, 1);
  refused(WEIR_EINVAL, "Only dense CPU tensors can be pinned",
          weir_zeros(&out, weir_shape(3), &bad));
}
END_TEST

START_TEST(a_number_that_does_not_fit_is_refused)
{
  weir_tensor *t;
  weir_options o = {.dtype = WEIR_INT8};
  refused(WEIR_EINVAL, "value cannot be converted to type int8_t without overflow",
          weir_full(&t, weir_shape(2), weir_int(300), &o));
  o.dtype = WEIR_FLOAT32;
  refused(WEIR_EINVAL, "value cannot be converted to type float without overflow",
          weir_full(&t, weir_shape(2), weir_complex(1, 2), &o));
  o.dtype = WEIR_INT64;
  refused(WEIR_EINVAL, "value cannot be converted to type int64_t without overflow",
          weir_full(&t, weir_shape(2), weir_float(NAN), &o));
  ck_assert_ptr_null(t);
  o.dtype = WEIR_UINT8; /* wraps, as torch lets it */
  weir_ok(weir_full(&t, weir_shape(2), weir_int(-1), &o));
  EXPECT(t, 255, 255);
  weir_tensor_drop(&t);
}
END_TEST

START_TEST(random_numbers_are_a_seeds_whatever_device)
{
  devices(2);
  weir_options o = on(device(_i)), home = on(cpu);
  weir_status (*const make[])(weir_tensor **, weir_shape, const weir_options *) = {weir_rand,
                                                                                   weir_randn};
  for (int kind = 0; kind < 2; kind++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR b = NULL;
    WEIR_TENSOR c = NULL;
    float x[64], y[64];
    weir_manual_seed(7);
    weir_ok(make[kind](&a, weir_shape(8, 8), &o));
    weir_manual_seed(7);
    weir_ok(make[kind](&b, weir_shape(64), &home));
    weir_ok(make[kind](&c, weir_shape(64), &home));
    is_on(a, device(_i));
    weir_ok(weir_tensor_read(x, sizeof x, WEIR_FLOAT32, a));
    weir_ok(weir_tensor_read(y, sizeof y, WEIR_FLOAT32, b));
    for (int i = 0; i < 64; i++)
      ck_assert(x[i] == y[i]);
    for (int i = 0; i < 64; i++)
      ck_assert(kind ? fabsf(x[i]) < 7 : x[i] >= 0 && x[i] < 1);
    weir_ok(weir_tensor_read(y, sizeof y, WEIR_FLOAT32, c));
    int equal = 0;
    for (int i = 0; i < 64; i++)
      equal += x[i] == y[i];
    ck_assert_int_lt(equal, 64);
  }
}
END_TEST

START_TEST(random_integers_and_likes_are_in_range)
{
  devices(2);
  weir_options o = on(device(_i));
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  int64_t x[100];
  weir_ok(weir_randint(&a, -3, 4, weir_shape(100), &o));
  ck_assert_int_eq(weir_tensor_dtype(a), WEIR_INT64);
  weir_ok(weir_tensor_read(x, sizeof x, WEIR_INT64, a));
  for (int i = 0; i < 100; i++)
    ck_assert(x[i] >= -3 && x[i] < 4);
  o.dtype = WEIR_FLOAT16;
  weir_ok(weir_rand_like(&b, a, &o));
  weir_ok(weir_randn_like(&c, b, NULL));
  ck_assert_int_eq(weir_tensor_dtype(c), WEIR_FLOAT16);
  is_on(c, device(_i));
  shape_is(c, weir_shape(100));
  weir_tensor *t;
  refused(WEIR_EINVAL, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
          weir_randint(&t, 5, 5, weir_shape(2), NULL));
  ck_assert_ptr_null(t);
}
END_TEST

START_TEST(random_factories_in_a_guard_stay_on_the_cpu)
{
  WEIR_TENSOR t = NULL;
  devices(2);
  WEIR_WITH_DEVICE(cuda1) weir_ok(weir_randn(&t, weir_shape(3), NULL));
  is_on(t, cpu);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {factories_fill_on_every_device,
                                every_dtype_is_filled_and_read,
                                values_are_copied_and_their_dtype_is_kept_or_cast,
                                a_numbers_kind_is_the_dtype_of_full,
                                ranges_are_torchs,
                                ranges_that_are_none_are_refused,
                                bad_shapes_dtypes_and_devices_are_refused_with_numbers,
                                a_device_that_is_not_there_is_refused_at_its_use,
                                more_than_there_is_is_an_error,
                                a_guard_moves_cuda_and_never_a_default_of_cpu,
                                a_type_alone_is_the_current_device_and_every_index_can_be_said,
                                the_cpu_is_cpu_however_it_was_named,
                                like_and_new_keep_dtype_and_device_whatever_is_current,
                                like_keeps_the_order_of_dimensions_in_memory,
                                only_the_cpus_tensors_are_made_page_locked,
                                a_number_that_does_not_fit_is_refused,
                                random_numbers_are_a_seeds_whatever_device,
                                random_integers_and_likes_are_in_range,
                                random_factories_in_a_guard_stay_on_the_cpu,
                                NULL};
  return rig_run("tensor/create", tests, DEVICES_TRIED);
}
