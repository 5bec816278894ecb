/* test_format.c: memory formats: strides of what is made, converted and copied, what is contiguous,
 * and operations that keep the format of what they are of. */
#include "tests/tensor/rig.h"

static weir_tensor *images(weir_device d, weir_memory_format format)
{
  weir_tensor *rows = counting(weir_shape(2, 3, 4, 5), WEIR_FLOAT32, d), *t;
  weir_ok(weir_contiguous_format(&t, rows, format));
  weir_tensor_release(rows);
  return t;
}

static void same_elements_are(const weir_tensor *a, const weir_tensor *b)
{
  bool same;
  weir_ok(weir_equal(&same, a, b));
  ck_assert(same);
}

START_TEST(channels_lie_side_by_side)
{
  WEIR_TENSOR rows = images(device(_i), WEIR_CONTIGUOUS_FORMAT);
  WEIR_TENSOR last = images(device(_i), WEIR_CHANNELS_LAST);
  WEIR_TENSOR again = NULL;
  shape_is(last, weir_shape(2, 3, 4, 5));
  strides_are(last, weir_shape(60, 1, 15, 3));
  is_on(last, device(_i));
  same_elements_are(last, rows);
  ck_assert(weir_tensor_is_contiguous_format(last, WEIR_CHANNELS_LAST));
  ck_assert(!weir_tensor_is_contiguous_format(last, WEIR_CONTIGUOUS_FORMAT));
  ck_assert(!weir_tensor_is_contiguous_format(last, WEIR_CHANNELS_LAST_3D));
  ck_assert(weir_tensor_is_contiguous_format(rows, WEIR_CONTIGUOUS_FORMAT));
  ck_assert(!weir_tensor_is_contiguous_format(NULL, WEIR_CONTIGUOUS_FORMAT));
  weir_ok(weir_contiguous_format(&again, last, WEIR_CHANNELS_LAST));
  ck_assert_ptr_eq(again, last);
}
END_TEST

START_TEST(volumes_have_a_format_of_their_own)
{
  WEIR_TENSOR t = NULL;
  weir_options o = on(device(_i));
  o.memory_format = WEIR_CHANNELS_LAST_3D;
  weir_ok(weir_zeros(&t, weir_shape(2, 3, 4, 5, 6), &o));
  strides_are(t, weir_shape(360, 1, 90, 18, 3));
  ck_assert(weir_tensor_is_contiguous_format(t, WEIR_CHANNELS_LAST_3D));
}
END_TEST

START_TEST(like_and_clone_keep_it_and_options_change_it)
{
  WEIR_TENSOR last = images(device(_i), WEIR_CHANNELS_LAST);
  WEIR_TENSOR like = NULL;
  WEIR_TENSOR copy = NULL;
  WEIR_TENSOR cast = NULL;
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR itself = NULL;
  weir_shape strides = weir_shape(60, 1, 15, 3);
  weir_ok(weir_zeros_like(&like, last, NULL));
  strides_are(like, strides);
  weir_ok(weir_clone(&copy, last));
  strides_are(copy, strides);
  weir_ok(weir_to_dtype(&cast, last, WEIR_FLOAT64));
  strides_are(cast, strides);
  weir_ok(weir_to(&rows, last, &(weir_options){.memory_format = WEIR_CONTIGUOUS_FORMAT}));
  ck_assert(weir_tensor_is_contiguous(rows));
  same_elements_are(rows, last);
  weir_ok(weir_to(&itself, last, &(weir_options){.memory_format = WEIR_CHANNELS_LAST}));
  ck_assert_ptr_eq(itself, last);
}
END_TEST

START_TEST(operations_keep_it)
{
  WEIR_TENSOR last = images(device(_i), WEIR_CHANNELS_LAST);
  WEIR_TENSOR rows = images(device(_i), WEIR_CONTIGUOUS_FORMAT);
  WEIR_TENSOR weight = counting(weir_shape(2, 3, 1, 1), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR sum = NULL;
  WEIR_TENSOR conv = NULL;
  WEIR_TENSOR plain = NULL;
  WEIR_TENSOR pool = NULL;
  weir_pool2d_options two = {.kernel = {2, 2}};
  weir_ok(weir_add(&sum, last, last));
  strides_are(sum, weir_shape(60, 1, 15, 3));
  weir_ok(weir_conv2d(&conv, last, weight, NULL, NULL));
  strides_are(conv, weir_shape(40, 1, 10, 2));
  weir_ok(weir_conv2d(&plain, rows, weight, NULL, NULL));
  strides_are(plain, weir_shape(40, 20, 5, 1));
  same_elements_are(conv, plain);
  weir_ok(weir_max_pool2d(&pool, last, &two));
  strides_are(pool, weir_shape(12, 1, 6, 3));
}
END_TEST

START_TEST(what_has_other_dimensions_is_refused)
{
  WEIR_TENSOR row = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR square = counting(weir_shape(2, 2), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR turned = NULL;
  weir_tensor *t = (weir_tensor *)&t;
  refused(WEIR_EINVAL, "required rank 4 tensor to use channels_last format",
          weir_contiguous_format(&t, row, WEIR_CHANNELS_LAST));
  ck_assert_ptr_null(t);
  refused(WEIR_EINVAL, "required rank 5 tensor to use channels_last_3d format",
          weir_to(&t, row, &(weir_options){.memory_format = WEIR_CHANNELS_LAST_3D}));
  weir_ok(weir_t(&turned, square));
  refused(WEIR_EINVAL, "preserve memory format is unsupported by the contiguous operator",
          weir_contiguous_format(&t, turned, WEIR_PRESERVE_FORMAT));
  refused(WEIR_EINVAL, "9 is not a memory format",
          weir_contiguous_format(&t, row, (weir_memory_format)9));
  refused(WEIR_EINVAL, "9 is not a memory format",
          weir_empty(&t, weir_shape(3), &(weir_options){.memory_format = 9}));
}
END_TEST

START_TEST(a_module_moves_its_kernels_alone)
{
  WEIR_MODULE m = NULL;
  weir_ok(weir_module_conv2d(&m, 3, 2, 3, NULL));
  weir_ok(weir_module_to(
      m, &(weir_options){.device = device(_i), .memory_format = WEIR_CHANNELS_LAST}));
  strides_are(weir_module_parameter(m, "weight"), weir_shape(27, 1, 9, 3));
  strides_are(weir_module_parameter(m, "bias"), weir_shape(1));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {channels_lie_side_by_side,
                                volumes_have_a_format_of_their_own,
                                like_and_clone_keep_it_and_options_change_it,
                                operations_keep_it,
                                what_has_other_dimensions_is_refused,
                                a_module_moves_its_kernels_alone,
                                NULL};
  return rig_run("tensor/format", tests, DEVICES_TRIED);
}
