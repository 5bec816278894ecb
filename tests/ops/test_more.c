/* test_more.c: reductions, products, convolution, joining, random numbers, precision. */
#include <math.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

/* ---- reductions ------------------------------------------------------------------------------ */

START_TEST(reductions_of_all_and_over_dimensions)
{
  static const struct {
    const char *name;
    weir_status (*all)(weir_tensor **, const weir_tensor *);
    weir_status (*dim)(weir_tensor **, const weir_tensor *, int, bool);
    weir_status (*dims)(weir_tensor **, const weir_tensor *, const int *, int, bool);
    double whole, columns[3], rows[2]; /* of [[1, 2, 3], [4, 5, 6]] */
  } rows[] = {
      {"sum", weir_sum, weir_sum_dim, weir_sum_dims, 21, {5, 7, 9}, {6, 15}},
      {"mean", weir_mean, weir_mean_dim, weir_mean_dims, 3.5, {2.5, 3.5, 4.5}, {2, 5}},
      {"prod", weir_prod, weir_prod_dim, weir_prod_dims, 720, {4, 10, 18}, {6, 120}},
      {"amax", weir_amax, weir_amax_dim, weir_amax_dims, 6, {4, 5, 6}, {3, 6}},
      {"amin", weir_amin, weir_amin_dim, weir_amin_dims, 1, {1, 2, 3}, {1, 4}},
      {"all", weir_all, weir_all_dim, weir_all_dims, 1, {1, 1, 1}, {1, 1}},
      {"any", weir_any, weir_any_dim, weir_any_dims, 1, {1, 1, 1}, {1, 1}},
  };
  WEIR_TENSOR a = NULL;
  devices(2);
  a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  weir_ok(weir_add_scalar_(a, weir_int(1)));
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    weir_tensor *r[4] = {NULL};
    int both[] = {-1, 0};
    weir_ok(rows[k].all(&r[0], a));
    elements_are(r[0], 1, &rows[k].whole);
    ck_assert_int_eq(weir_tensor_dim(r[0]), 0);
    weir_ok(rows[k].dim(&r[1], a, 0, false));
    elements_are(r[1], 3, rows[k].columns);
    shape_is(r[1], weir_shape(3));
    weir_ok(rows[k].dim(&r[2], a, -1, true));
    elements_are(r[2], 2, rows[k].rows);
    shape_is(r[2], weir_shape(2, 1));
    weir_ok(rows[k].dims(&r[3], a, both, 2, false));
    elements_are(r[3], 1, &rows[k].whole);
    is_on(r[3], device(_i));
    for (int i = 0; i < 4; i++)
      weir_tensor_drop(&r[i]);
  }
}
END_TEST

START_TEST(places_of_the_largest_and_smallest)
{
  const double values[] = {3, 9, 9, -1, 4, -1};
  WEIR_TENSOR a = NULL;
  weir_tensor *r[8] = {NULL};
  devices(2);
  weir_options o = as(WEIR_FLOAT32, device(_i));
  weir_ok(weir_tensor_from(&a, values, WEIR_FLOAT64, weir_shape(2, 3), &o));
  weir_ok(weir_argmax(&r[0], a));
  EXPECT(r[0], 1);
  weir_ok(weir_argmin(&r[1], a));
  EXPECT(r[1], 3);
  weir_ok(weir_argmax_dim(&r[2], a, 0, false));
  EXPECT(r[2], 0, 0, 0);
  weir_ok(weir_argmin_dim(&r[3], a, 1, true));
  EXPECT(r[3], 0, 0);
  weir_ok(weir_max_dim(&r[4], &r[5], a, 1, false));
  EXPECT(r[4], 9, 4);
  EXPECT(r[5], 1, 1);
  ck_assert_int_eq(weir_tensor_dtype(r[5]), WEIR_INT64);
  weir_ok(weir_min_dim(&r[6], &r[7], a, 0, true));
  EXPECT(r[6], -1, 4, -1);
  EXPECT(r[7], 1, 1, 1);
  weir_tensor_drop(&r[0]);
  weir_tensor_drop(&r[1]);
  weir_ok(weir_max(&r[0], a));
  EXPECT(r[0], 9);
  weir_ok(weir_min(&r[1], a));
  EXPECT(r[1], -1);
  for (int i = 0; i < 8; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(sums_of_integers_are_int64_and_of_nothing_their_identity)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR e = NULL;
  weir_tensor *r[5] = {NULL};
  devices(2);
  a = counting(weir_shape(300), WEIR_UINT8, device(_i));
  weir_ok(weir_sum(&r[0], a));
  ck_assert_int_eq(weir_tensor_dtype(r[0]), WEIR_INT64);
  EXPECT(r[0], 33586); /* 0 to 255, 0 to 43 */
  weir_options o = on(device(_i));
  weir_ok(weir_empty(&e, weir_shape(0, 2), &o));
  weir_ok(weir_sum_dim(&r[1], e, 0, false));
  EXPECT(r[1], 0, 0);
  weir_ok(weir_prod(&r[2], e));
  EXPECT(r[2], 1);
  weir_ok(weir_all(&r[3], e));
  EXPECT(r[3], 1);
  weir_ok(weir_mean(&r[4], e));
  weir_scalar mean;
  weir_ok(weir_item(&mean, r[4]));
  ck_assert(isnan(mean.f));
  for (int i = 0; i < 5; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(reductions_refuse_what_torchs_do)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR l = NULL;
  WEIR_TENSOR e = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *none = NULL, *index = NULL;
  int twice[] = {0, -2};
  devices(2);
  a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  l = counting(weir_shape(3), WEIR_INT64, device(_i));
  b = counting(weir_shape(3), WEIR_BOOL, device(_i));
  e = counting(weir_shape(0, 3), WEIR_FLOAT32, device(_i));
  refused(WEIR_EINVAL, "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
          weir_sum_dim(&none, a, 2, false));
  refused(WEIR_EINVAL, "dim 0 appears multiple times in the list of dims",
          weir_sum_dims(&none, a, twice, 2, false));
  refused(WEIR_ENOTSUP,
          "mean(): could not infer output dtype. Input dtype must be either a floating point or "
          "complex dtype. Got: Long",
          weir_mean(&none, l));
  refused(WEIR_ENOTSUP, "argmax(): does not support bool input", weir_argmax(&none, b));
  refused(WEIR_EINVAL,
          "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
          "reduction dim with the 'dim' argument.",
          weir_max(&none, e));
  refused(WEIR_EINVAL, "max(): Expected reduction dim 0 to have non-zero size.",
          weir_max_dim(&none, &index, e, 0, false));
  ck_assert_ptr_null(none);
  ck_assert_ptr_null(index);
}
END_TEST

START_TEST(softmax_rows_sum_to_one)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR s = NULL;
  WEIR_TENSOR l = NULL;
  double got[6], logs[6];
  devices(2);
  a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  weir_ok(weir_mul_scalar_(a, weir_float(100))); /* no exponential may overflow */
  weir_ok(weir_softmax(&s, a, 0));
  weir_ok(weir_log_softmax(&l, a, 0));
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, s));
  weir_ok(weir_tensor_read(logs, sizeof logs, WEIR_FLOAT64, l));
  for (int i = 0; i < 3; i++) {
    ck_assert_double_eq_tol(got[i] + got[i + 3], 1, 1e-6);
    ck_assert_double_eq_tol(logs[i], -300, 1e-4);
  }
}
END_TEST

/* ---- far apart ------------------------------------------------------------------------------- */

enum { FAR_ROWS = 6, FAR_COLUMNS = 5, FAR = FAR_ROWS * FAR_COLUMNS };

/* A view of `rows` rows of 2^29 bytes, elements 2^27 apart: few pages of it are ever touched. */
static weir_tensor *far_apart(weir_device d, double values[FAR])
{
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR host = NULL;
  weir_tensor *view;
  weir_options o = as(WEIR_UINT8, d);
  uint8_t bytes[FAR];
  for (int i = 0; i < FAR; i++)
    values[i] = bytes[i] = (uint8_t)(i * 37 % 101);
  weir_ok(weir_empty(&rows, weir_shape(FAR_ROWS, (INT64_C(1) << 29) + 3), &o));
  weir_ok(weir_slice(&view, rows, 1, 1, INT64_MAX, INT64_C(1) << 27));
  shape_is(view, weir_shape(FAR_ROWS, FAR_COLUMNS));
  weir_ok(weir_tensor_from(&host, bytes, WEIR_UINT8, weir_shape(FAR_ROWS, FAR_COLUMNS), NULL));
  weir_ok(weir_copy_(view, host, false));
  return view;
}

/* Kernels count places in 32 bits, so such work is cut (cuda/backend/map.c). */
START_TEST(elements_may_lie_further_apart_than_32_bits_count)
{
  double values[FAR], turned[FAR], more[FAR], sums[FAR_COLUMNS] = {0}, sum = 0;
  weir_tensor *r[5] = {NULL};
  devices(2);
  WEIR_TENSOR a = far_apart(device(_i), values);
  for (int i = 0; i < FAR; i++) {
    turned[i % FAR_COLUMNS * FAR_ROWS + i / FAR_COLUMNS] = values[i];
    more[i] = values[i] + 3;
    sums[i % FAR_COLUMNS] += more[i];
    sum += more[i];
  }
  elements_are(a, FAR, values);
  weir_ok(weir_t(&r[0], a));
  weir_ok(weir_contiguous(&r[1], r[0]));
  elements_are(r[1], FAR, turned);
  weir_ok(weir_add_scalar_(a, weir_int(3)));
  elements_are(a, FAR, more);
  weir_ok(weir_to_dtype(&r[2], a, WEIR_FLOAT32));
  elements_are(r[2], FAR, more);
  weir_ok(weir_sum(&r[3], a));
  elements_are(r[3], 1, &sum);
  weir_ok(weir_sum_dim(&r[4], a, 0, false));
  elements_are(r[4], FAR_COLUMNS, sums);
  for (int i = 0; i < 5; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

/* ---- products -------------------------------------------------------------------------------- */

START_TEST(products_of_vectors_matrices_and_batches)
{
  WEIR_TENSOR m = NULL;
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR v = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *r[8] = {NULL};
  devices(2);
  m = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  v = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  b = counting(weir_shape(2, 2, 3), WEIR_FLOAT32, device(_i));
  weir_ok(weir_t(&t, m));
  weir_ok(weir_mm(&r[0], m, t));
  EXPECT(r[0], 5, 14, 14, 50);
  weir_ok(weir_matmul(&r[1], v, v));
  EXPECT(r[1], 5);
  ck_assert_int_eq(weir_tensor_dim(r[1]), 0);
  weir_ok(weir_matmul(&r[2], m, v));
  EXPECT(r[2], 5, 14);
  weir_ok(weir_matmul(&r[3], v, t));
  EXPECT(r[3], 5, 14);
  weir_ok(weir_matmul(&r[4], b, t));
  shape_is(r[4], weir_shape(2, 2, 2));
  EXPECT(r[4], 5, 14, 14, 50, 23, 86, 32, 122);
  WEIR_TENSOR bt = NULL;
  weir_ok(weir_transpose(&bt, b, 1, 2));
  weir_ok(weir_bmm(&r[5], b, bt));
  EXPECT(r[5], 5, 14, 14, 50, 149, 212, 212, 302);
  weir_ok(weir_dot(&r[6], v, v));
  EXPECT(r[6], 5);
  weir_ok(weir_mv(&r[7], m, v));
  EXPECT(r[7], 5, 14);
  for (int i = 0; i < 8; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(products_with_a_sum)
{
  WEIR_TENSOR m = NULL;
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR l = NULL;
  devices(2);
  m = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  c = counting(weir_shape(2), WEIR_FLOAT32, device(_i));
  weir_ok(weir_t(&t, m));
  weir_ok(weir_addmm(&r, c, m, t, 10, 2));
  EXPECT(r, 10, 38, 28, 110);
  weir_ok(weir_linear(&l, m, m, c));
  EXPECT(l, 5, 15, 14, 51);
}
END_TEST

START_TEST(products_refuse_what_torchs_do)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR d = NULL;
  WEIR_TENSOR v = NULL;
  WEIR_TENSOR t = NULL;
  weir_tensor *none = NULL;
  devices(2);
  a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  b = counting(weir_shape(4, 5), WEIR_FLOAT32, device(_i));
  d = counting(weir_shape(3, 2), WEIR_FLOAT64, device(_i));
  v = counting(weir_shape(4), WEIR_FLOAT32, device(_i));
  refused(WEIR_EINVAL, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
          weir_matmul(&none, a, b));
  refused(WEIR_EINVAL, "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)",
          weir_linear(&none, a, b, NULL));
  refused(WEIR_EINVAL, "expected m1 and m2 to have the same dtype, but got: float != double",
          weir_mm(&none, a, d));
  refused(WEIR_EINVAL, "size mismatch, got input (2), mat (2x3), vec (4)", weir_mv(&none, a, v));
  refused(WEIR_EINVAL, "1D tensors expected, but got 2D and 1D tensors", weir_dot(&none, a, v));
  refused(WEIR_EINVAL, "batch1 must be a 3D tensor", weir_bmm(&none, a, b));
  refused(WEIR_EINVAL, "self and mat2 must have the same dtype, but got Double and Float",
          weir_addmm(&none, d, a, b, 1, 1));
  t = counting(weir_shape(3, 2), WEIR_FLOAT32, device(_i));
  refused(WEIR_EINVAL,
          "The expanded size of the tensor (2) must match the existing size (4) at non-singleton "
          "dimension 1.  Target sizes: [2, 2].  Tensor sizes: [4]",
          weir_addmm(&none, v, a, t, 1, 1));
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(switches_of_precision_are_as_torchs_at_first)
{
  ck_assert(!weir_get_allow_tf32());
  ck_assert(weir_get_allow_reduced_precision());
  ck_assert(!weir_get_deterministic());
  weir_set_allow_tf32(true);
  weir_set_allow_reduced_precision(false);
  weir_set_deterministic(true);
  ck_assert(weir_get_allow_tf32());
  ck_assert(!weir_get_allow_reduced_precision());
  ck_assert(weir_get_deterministic());
}
END_TEST

/* ---- convolution ----------------------------------------------------------------------------- */

START_TEST(convolution_with_stride_padding_dilation_groups_and_bias)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR bias = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR g = NULL;
  WEIR_TENSOR gw = NULL;
  devices(2);
  a = counting(weir_shape(1, 2, 3, 3), WEIR_FLOAT32, device(_i));
  w = counting(weir_shape(1, 2, 2, 2), WEIR_FLOAT32, device(_i));
  bias = counting(weir_shape(2), WEIR_FLOAT32, device(_i));
  weir_ok(weir_conv2d(&r, a, w, NULL, NULL));
  shape_is(r, weir_shape(1, 1, 2, 2));
  EXPECT(r, 268, 296, 352, 380);
  gw = counting(weir_shape(2, 1, 2, 2), WEIR_FLOAT32, device(_i));
  weir_conv2d_options o = {.stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}, .groups = 2};
  weir_ok(weir_conv2d(&g, a, gw, bias, &o));
  shape_is(g, weir_shape(1, 2, 2, 2));
  EXPECT(g, 12, 8, 4, 0, 92, 79, 66, 53);
}
END_TEST

START_TEST(convolution_refuses_what_torchs_does)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR d = NULL;
  weir_tensor *none = NULL;
  weir_conv2d_options back = {.stride = {-1, 1}}, out = {.padding = {-1, 0}};
  devices(2);
  a = counting(weir_shape(1, 3, 4, 4), WEIR_FLOAT32, device(_i));
  w = counting(weir_shape(20, 1, 5, 5), WEIR_FLOAT32, device(_i));
  one = counting(weir_shape(1, 1, 4, 4), WEIR_FLOAT32, device(_i));
  d = counting(weir_shape(20, 3, 2, 2), WEIR_FLOAT64, device(_i));
  refused(WEIR_EINVAL,
          "Given groups=1, weight of size [20, 1, 5, 5], expected input[1, 3, 4, 4] to have 1 "
          "channels, but got 3 channels instead",
          weir_conv2d(&none, a, w, NULL, NULL));
  refused(WEIR_EINVAL,
          "Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size "
          "can't be greater than actual input size",
          weir_conv2d(&none, one, w, NULL, NULL));
  refused(WEIR_EINVAL,
          "Given weight of size [20, 1, 5, 5], expected bias to be 1-dimensional with 20 elements, "
          "but got bias of size [1, 1, 4, 4] instead",
          weir_conv2d(&none, one, w, one, NULL));
  refused(WEIR_EINVAL, "non-positive stride is not supported",
          weir_conv2d(&none, one, w, NULL, &back));
  refused(WEIR_EINVAL, "negative padding is not supported", weir_conv2d(&none, one, w, NULL, &out));
  refused(
      WEIR_EINVAL,
      _i ? "Input type (weir.cuda.FloatTensor) and weight type (weir.cuda.DoubleTensor) should "
           "be the same"
         : "Input type (weir.FloatTensor) and weight type (weir.DoubleTensor) should be the same",
      weir_conv2d(&none, a, d, NULL, NULL));
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(pooling_takes_the_largest_of_each_window)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR r = NULL;
  weir_tensor *none = NULL;
  weir_pool2d_options o = {.kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}},
                      far = {.kernel = {2, 2}, .padding = {2, 2}};
  devices(2);
  a = counting(weir_shape(1, 3, 3), WEIR_FLOAT32, device(_i));
  weir_ok(weir_max_pool2d(&r, a, &o));
  shape_is(r, weir_shape(1, 4, 4));
  EXPECT(r, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 6, 7, 8, 8);
  refused(WEIR_EINVAL,
          "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and "
          "dilation=1",
          weir_max_pool2d(&none, a, &far));
}
END_TEST

/* Only places that see something are walked, and no size is calculated that does not fit. */
START_TEST(windows_may_be_of_any_size_and_sizes_that_overflow_are_refused)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR r = NULL;
  weir_tensor *none = NULL;
  const int64_t most = INT64_MAX;
  weir_pool2d_options all = {.kernel = {most, most}, .padding = {most / 2, most / 2}},
                      slow = {.kernel = {most, 2}, .padding = {most / 2, 1}, .stride = {1, 1}},
                      spread = {.kernel = {most, 1}, .dilation = {2, 1}},
                      least = {.kernel = {INT64_MIN, 1}, .dilation = {most, 1}},
                      far = {.kernel = {1, 1}, .stride = {most, most}};
  devices(2);
  a = counting(weir_shape(1, 2, 2), WEIR_FLOAT32, device(_i));
  w = counting(weir_shape(1, 1, 2, 2), WEIR_FLOAT32, device(_i));
  weir_ok(weir_max_pool2d(&r, a, &all));
  shape_is(r, weir_shape(1, 1, 1));
  EXPECT(r, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_max_pool2d(&r, a, &slow));
  shape_is(r, weir_shape(1, 2, 3));
  EXPECT(r, 2, 3, 3, 2, 3, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_max_pool2d(&r, a, &far));
  EXPECT(r, 0);
  refused_with(WEIR_EINVAL, "a size overflows", weir_max_pool2d(&none, a, &spread));
  refused_with(WEIR_EINVAL, "a size overflows", weir_max_pool2d(&none, a, &least));
  weir_conv2d_options padded = {.padding = {most / 2 + 1, 0}}, dilated = {.dilation = {most, 2}},
                      wide = {.padding = {most / 8, most / 8}}, grouped = {.groups = most};
  refused_with(WEIR_EINVAL, "a size overflows", weir_conv2d(&none, a, w, NULL, &padded));
  refused_with(WEIR_EINVAL, "a size overflows", weir_conv2d(&none, a, w, NULL, &dilated));
  refused_with(WEIR_EINVAL, "overflow", weir_conv2d(&none, a, w, NULL, &wide));
  refused_with(WEIR_EINVAL, "expected weight to be at least",
               weir_conv2d(&none, a, w, NULL, &grouped));
  ck_assert_ptr_null(none);
}
END_TEST

/* ---- joining --------------------------------------------------------------------------------- */

START_TEST(tensors_are_joined_along_a_dimension_or_a_new_one)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *r[3] = {NULL};
  weir_tensor *none = NULL;
  devices(2);
  a = counting(weir_shape(2, 2), WEIR_FLOAT32, device(_i));
  b = counting(weir_shape(2, 1), WEIR_INT64, device(_i));
  const weir_tensor *ab[] = {a, b}, *aa[] = {a, a};
  weir_ok(weir_cat(&r[0], ab, 2, 1));
  EXPECT(r[0], 0, 1, 0, 2, 3, 1);
  ck_assert_int_eq(weir_tensor_dtype(r[0]), WEIR_FLOAT32);
  weir_ok(weir_stack(&r[1], aa, 2, -1));
  shape_is(r[1], weir_shape(2, 2, 2));
  EXPECT(r[1], 0, 0, 1, 1, 2, 2, 3, 3);
  refused(WEIR_EINVAL,
          "Sizes of tensors must match except in dimension 0. Expected size 2 but got size 1 for "
          "tensor number 1 in the list.",
          weir_cat(&none, ab, 2, 0));
  refused(WEIR_EINVAL,
          "stack expects each tensor to be equal size, but got [2, 2] at entry 0 and [2, 1] at "
          "entry 1",
          weir_stack(&none, ab, 2, 0));
  refused(WEIR_EINVAL, "weir.cat(): expected a non-empty list of Tensors",
          weir_cat(&none, ab, 0, 0));
  ck_assert_ptr_null(none);
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

/* ---- random numbers -------------------------------------------------------------------------- */

static void read_all(double *out, int count, const weir_tensor *t)
{
  weir_ok(weir_tensor_read(out, (size_t)count * sizeof *out, WEIR_FLOAT64, t));
}

START_TEST(a_seed_gives_the_same_numbers_on_every_device)
{
  enum { N = 1000 };
  double here[4][N], there[N];
  weir_options o = on(device(_i));
  devices(2);
  for (int k = 0; k < 8; k++) {
    WEIR_TENSOR t = NULL;
    weir_options where = k < 4 ? on(cpu) : o;
    if (k % 4 == 0) weir_manual_seed(42);
    weir_ok(weir_empty(&t, weir_shape(N), &where));
    weir_ok(k % 4 == 0   ? weir_normal_(t, 1, 2, NULL)
            : k % 4 == 1 ? weir_uniform_(t, -1, 3, NULL)
            : k % 4 == 2 ? weir_random_(t, -5, 50, NULL)
                         : weir_bernoulli_(t, 0.25, NULL));
    read_all(k < 4 ? here[k] : there, N, t);
    if (k >= 4) ck_assert_mem_eq(here[k - 4], there, sizeof there);
  }
  double sum[4] = {0};
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 4; k++)
      sum[k] += here[k][i] / N;
  ck_assert_double_eq_tol(sum[0], 1, 0.3); /* 4 standard deviations of the mean are 0.25 */
  ck_assert_double_eq_tol(sum[1], 1, 0.2);
  ck_assert_double_eq_tol(sum[2], 22, 2.5);
  ck_assert_double_eq_tol(sum[3], 0.25, 0.07);
}
END_TEST

START_TEST(generators_have_a_state_of_their_own)
{
  weir_generator *g, *d;
  double first[8], second[8], again[8];
  WEIR_TENSOR t = NULL;
  weir_options o = on(device(_i));
  devices(2);
  weir_ok(weir_generator_new(&g, device(_i)));
  ck_assert(weir_device_equal(weir_generator_device(g), device(_i)));
  weir_generator_manual_seed(g, 7);
  ck_assert_uint_eq(weir_generator_initial_seed(g), 7);
  weir_ok(weir_empty(&t, weir_shape(2, 4), &o));
  weir_generator_state state = weir_generator_get_state(g);
  weir_ok(weir_normal_(t, 0, 1, g));
  read_all(first, 8, t);
  weir_ok(weir_normal_(t, 0, 1, g));
  read_all(second, 8, t);
  ck_assert_mem_ne(first, second, sizeof first);
  weir_generator_set_state(g, state);
  weir_ok(weir_normal_(t, 0, 1, g));
  read_all(again, 8, t);
  ck_assert_mem_eq(first, again, sizeof first);
  weir_ok(weir_manual_seed_device(device(_i), 7));
  weir_ok(weir_default_generator(&d, device(_i)));
  ck_assert_uint_eq(weir_generator_initial_seed(d), 7);
  weir_ok(weir_normal_(t, 0, 1, d)); /* the default one, by the same seed */
  read_all(again, 8, t);
  ck_assert_mem_eq(first, again, sizeof first);
  weir_generator_release(g);
  weir_generator_release(d);
}
END_TEST

START_TEST(strided_tensors_get_the_numbers_of_dense_ones)
{
  double dense[6], strided[6];
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR turned = NULL;
  weir_options o = on(device(_i));
  devices(2);
  weir_ok(weir_empty(&a, weir_shape(3, 2), &o));
  weir_ok(weir_empty(&b, weir_shape(2, 3), &o));
  weir_ok(weir_t(&turned, b));
  weir_manual_seed(1);
  weir_ok(weir_uniform_(a, 0, 1, NULL));
  weir_manual_seed(1);
  weir_ok(weir_uniform_(turned, 0, 1, NULL));
  read_all(dense, 6, a);
  read_all(strided, 6, turned);
  ck_assert_mem_eq(dense, strided, sizeof dense);
}
END_TEST

/* The draws of a row, by category; each is one of the row's. */
static void count_draws(double *seen, int categories, const weir_tensor *t, int row)
{
  static int64_t drawn[2 * 20000];
  weir_ok(weir_tensor_read(drawn, sizeof drawn, WEIR_INT64, t));
  memset(seen, 0, (size_t)categories * sizeof *seen);
  for (int i = 0; i < 20000; i++) {
    int64_t at = drawn[20000 * row + i];
    ck_assert(at >= 0 && at < categories);
    seen[at]++;
  }
}

/* Chi square of 3 degrees of freedom: above 30 once in 700,000 times; the seed is always the
 * same. */
START_TEST(categories_are_drawn_by_their_probabilities)
{
  static const float p[2][6] = {{1, 0, 2, 3, 4, 0}, {0, 40, 0, 10, 30, 20}};
  WEIR_TENSOR t = NULL;
  devices(2);
  weir_options o = on(device(_i));
  weir_manual_seed(7);
  weir_ok(weir_tensor_from(&t, p, WEIR_FLOAT32, weir_shape(2, 6), &o));
  for (int once = 0; once < 2; once++) {
    WEIR_TENSOR drawn = NULL;
    WEIR_TENSOR rows = NULL;
    WEIR_TENSOR flat = NULL;
    if (once) { /* a race of its own for each draw */
      weir_ok(weir_repeat_interleave(&rows, t, 20000, 0));
      weir_ok(weir_multinomial(&flat, rows, 1, false, NULL));
      weir_ok(weir_view(&drawn, flat, weir_shape(2, 20000)));
    } else {
      weir_ok(weir_multinomial(&drawn, t, 20000, true, NULL));
    }
    is_on(drawn, device(_i));
    for (int row = 0; row < 2; row++) {
      double seen[6], sum = 0, chi = 0;
      count_draws(seen, 6, drawn, row);
      for (int i = 0; i < 6; i++)
        sum += p[row][i];
      for (int i = 0; i < 6; i++) {
        double want = 20000 * p[row][i] / sum;
        ck_assert(want > 0 || seen[i] == 0);
        if (want > 0) chi += (seen[i] - want) * (seen[i] - want) / want;
      }
      ck_assert_double_lt(chi, 30);
    }
  }
}
END_TEST

/* Pairs (i, j) come with probability p[i] p[j] / (1 - p[i]). */
START_TEST(no_category_is_drawn_twice_without_replacement)
{
  static const double p[] = {.1, .2, .3, .4};
  static int64_t drawn[20000][2];
  double seen[4][4] = {{0}}, chi = 0;
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR pairs = NULL;
  devices(2);
  weir_options o = on(device(_i));
  weir_manual_seed(8);
  weir_ok(weir_tensor_from(&t, p, WEIR_FLOAT64, weir_shape(4), &o));
  weir_ok(weir_expand(&rows, t, weir_shape(20000, 4)));
  weir_ok(weir_multinomial(&pairs, rows, 2, false, NULL));
  shape_is(pairs, weir_shape(20000, 2));
  weir_ok(weir_tensor_read(drawn, sizeof drawn, WEIR_INT64, pairs));
  for (int i = 0; i < 20000; i++)
    seen[drawn[i][0]][drawn[i][1]]++;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      double want = 20000 * p[i] * p[j] / (1 - p[i]);
      ck_assert(i != j || seen[i][j] == 0);
      if (i != j) chi += (seen[i][j] - want) * (seen[i][j] - want) / want;
    }
  ck_assert_double_lt(chi, 50); /* of 11 degrees of freedom: once in two million times */
}
END_TEST

START_TEST(what_is_no_distribution_is_refused)
{
  static const float bad[][2] = {{1, -1}, {1, INFINITY}, {NAN, 1}, {0, 0}};
  static const char *const raced[] = {
      "probability tensor contains either `inf`, `nan` or element < 0",
      "probability tensor contains either `inf`, `nan` or element < 0",
      "probability tensor contains either `inf`, `nan` or element < 0",
      "invalid multinomial distribution (sum of probabilities <= 0)"};
  static const char *const replaced[] = {
      "invalid multinomial distribution (encountering probability entry < 0)",
      "invalid multinomial distribution (encountering probability entry = infinity or NaN)",
      "invalid multinomial distribution (encountering probability entry < 0)",
      "invalid multinomial distribution (sum of probabilities <= 0)"};
  weir_tensor *out = NULL;
  WEIR_TENSOR good = NULL;
  devices(2);
  weir_options o = on(device(_i));
  for (int i = 0; i < 4; i++) {
    WEIR_TENSOR t = NULL;
    weir_ok(weir_tensor_from(&t, bad[i], WEIR_FLOAT32, weir_shape(2), &o));
    refused(WEIR_EINVAL, raced[i], weir_multinomial(&out, t, 1, true, NULL));
    refused(WEIR_EINVAL, replaced[i], weir_multinomial(&out, t, 3, true, NULL));
  }
  good = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  refused(WEIR_EINVAL, "cannot sample n_sample <= 0 samples",
          weir_multinomial(&out, good, 0, true, NULL));
  refused(WEIR_EINVAL, "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
          weir_multinomial(&out, good, 4, false, NULL));
}
END_TEST

START_TEST(random_numbers_refuse_what_torchs_do)
{
  WEIR_TENSOR f = NULL;
  WEIR_TENSOR u = NULL;
  weir_generator *g;
  devices(2);
  f = counting(weir_shape(2), WEIR_FLOAT32, device(_i));
  u = counting(weir_shape(2), WEIR_UINT8, device(_i));
  refused(WEIR_EINVAL, "normal expects std >= 0.0, but found std -1", weir_normal_(f, 0, -1, NULL));
  refused(WEIR_ENOTSUP,
          _i ? "\"normal_kernel_cuda\" not implemented for 'Byte'"
             : "\"normal_kernel_cpu\" not implemented for 'Byte'",
          weir_normal_(u, 0, 1, NULL));
  refused(WEIR_EINVAL, "uniform_ expects to return a [from, to) range, but found from=1 > to=0",
          weir_uniform_(f, 1, 0, NULL));
  refused(WEIR_EINVAL, "random_ expects 'from' to be less than 'to', but got from=3 >= to=3",
          weir_random_(f, 3, 3, NULL));
  refused(WEIR_EINVAL, "to - 1 is out of bounds for unsigned char", weir_random_(u, 0, 500, NULL));
  refused(WEIR_EINVAL, "bernoulli_ expects p to be in [0, 1], but got p=2",
          weir_bernoulli_(f, 2, NULL));
  weir_ok(weir_generator_new(&g, _i ? cpu : cuda0));
  refused(WEIR_EINVAL,
          _i ? "Expected a 'cuda' device type for generator but found 'cpu'"
             : "Expected a 'cpu' device type for generator but found 'cuda'",
          weir_normal_(f, 0, 1, g));
  weir_generator_release(g);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {reductions_of_all_and_over_dimensions,
                                places_of_the_largest_and_smallest,
                                sums_of_integers_are_int64_and_of_nothing_their_identity,
                                reductions_refuse_what_torchs_do,
                                softmax_rows_sum_to_one,
                                elements_may_lie_further_apart_than_32_bits_count,
                                products_of_vectors_matrices_and_batches,
                                products_with_a_sum,
                                products_refuse_what_torchs_do,
                                switches_of_precision_are_as_torchs_at_first,
                                convolution_with_stride_padding_dilation_groups_and_bias,
                                convolution_refuses_what_torchs_does,
                                pooling_takes_the_largest_of_each_window,
                                windows_may_be_of_any_size_and_sizes_that_overflow_are_refused,
                                tensors_are_joined_along_a_dimension_or_a_new_one,
                                a_seed_gives_the_same_numbers_on_every_device,
                                generators_have_a_state_of_their_own,
                                strided_tensors_get_the_numbers_of_dense_ones,
                                random_numbers_refuse_what_torchs_do,
                                categories_are_drawn_by_their_probabilities,
                                no_category_is_drawn_twice_without_replacement,
                                what_is_no_distribution_is_refused,
                                NULL};
  return rig_run("ops/more", tests, TRIED);
}
