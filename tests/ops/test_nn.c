/* test_nn.c: what neural networks are made of: windows and what they give back, normalisation,
 * dropout, distances, on every device. Beside PyTorch: tests/peers/networks.py. */
#include <math.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

/* Elements to 12 digits, in float32 to 6. */
static void near(const weir_tensor *t, int count, const double *values)
{
  double got[64], digits = weir_tensor_dtype(t) == WEIR_FLOAT64 ? 1e-12 : 1e-6;
  ck_assert_int_eq(weir_tensor_numel(t), count);
  weir_ok(weir_tensor_read(got, (size_t)count * sizeof *got, WEIR_FLOAT64, t));
  for (int i = 0; i < count; i++)
    ck_assert_msg(isnan(values[i]) ? isnan(got[i])
                                   : fabs(got[i] - values[i]) <= digits * (1 + fabs(values[i])),
                  "element %d is %.15g, not %.15g", i, got[i], values[i]);
}
#define NEAR(t, ...)                                                                               \
  near((t), (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),                         \
       (const double[]){__VA_ARGS__})

/* ---- windows --------------------------------------------------------------------------------- */

typedef weir_status (*windows_fn)(weir_tensor **, const weir_tensor *, const weir_pool_options *);

START_TEST(averages_count_the_padding_unless_it_is_excluded)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR with = NULL;
  WEIR_TENSOR without = NULL;
  WEIR_TENSOR divided = NULL;
  devices(2);
  a = counting(weir_shape(1, 4, 4), WEIR_FLOAT32, device(_i));
  weir_pool_options o = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  weir_ok(weir_avg_pool2d(&with, a, &o));
  NEAR(with, 10. / 9, 24. / 9, 51. / 9, 10);
  o.exclude_pad = true;
  weir_ok(weir_avg_pool2d(&without, a, &o));
  NEAR(without, 2.5, 4, 8.5, 10);
  is_on(without, device(_i));
  o.divisor_override = 2;
  weir_ok(weir_avg_pool2d(&divided, a, &o));
  NEAR(divided, 5, 12, 25.5, 45);
}
END_TEST

START_TEST(windows_of_every_number_of_axes)
{
  static const struct {
    windows_fn fn;
    int axes;
    double first; /* of counting elements, windows of two places */
  } rows[] = {{weir_avg_pool1d, 1, .5},
              {weir_avg_pool2d, 2, 2.5},
              {weir_avg_pool3d, 3, 10.5},
              {weir_max_pool1d, 1, 1},
              {weir_max_pool3d, 3, 21}};
  devices(2);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR b = NULL;
    WEIR_TENSOR first = NULL;
    weir_shape shape = {.count = rows[k].axes + 1};
    for (int i = 0; i < shape.count; i++)
      shape.size[i] = i ? 4 : 2;
    shape.size[0] = 1;
    a = counting(shape, WEIR_FLOAT64, device(_i));
    weir_pool_options o = {.kernel = {2, 2, 2}};
    weir_ok(rows[k].fn(&b, a, &o));
    for (int i = 1; i < shape.count; i++)
      shape.size[i] = 2;
    shape_is(b, shape);
    WEIR_TENSOR flat = NULL;
    weir_ok(weir_flatten(&flat, b, 0, -1));
    weir_ok(weir_select(&first, flat, 0, 0));
    elements_are(first, 1, &rows[k].first);
  }
}
END_TEST

START_TEST(places_of_the_largest_of_windows)
{
  const double values[] = {3, 9, 2, -1, NAN, 4, 9, 1};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR cubes = NULL;
  weir_tensor *place[3] = {NULL};
  weir_tensor *value[3] = {NULL};
  weir_options o = as(WEIR_FLOAT32, device(_i));
  devices(2);
  weir_ok(weir_tensor_from(&a, values, WEIR_FLOAT64, weir_shape(1, 2, 4), &o));
  weir_pool_options two = {.kernel = {2, 2, 2}}, line = {.kernel = {2}, .stride = {2}};
  weir_ok(weir_max_pool2d_with_indices(&value[0], &place[0], a, &two));
  NEAR(value[0], NAN, 9);
  NEAR(place[0], 4, 6);
  weir_ok(weir_max_pool1d_with_indices(&value[1], &place[1], a, &line));
  NEAR(value[1], 9, 2, NAN, 9);
  NEAR(place[1], 1, 2, 0, 2);
  weir_ok(weir_reshape(&cubes, a, weir_shape(1, 1, 2, 2, 2)));
  weir_ok(weir_max_pool3d_with_indices(&value[2], &place[2], cubes, &two));
  NEAR(place[2], 4);
  for (int i = 0; i < 3; i++) {
    weir_tensor_drop(&value[i]);
    weir_tensor_drop(&place[i]);
  }
}
END_TEST

typedef weir_status (*adaptive_fn)(weir_tensor **, const weir_tensor *, const int64_t *);

START_TEST(windows_adapt_to_what_is_asked_for)
{
  static const struct {
    adaptive_fn fn;
    int axes;
    double first;
  } rows[] = {
      {weir_adaptive_avg_pool1d, 1, 1},  {weir_adaptive_avg_pool2d, 2, 6},
      {weir_adaptive_avg_pool3d, 3, 31}, {weir_adaptive_max_pool1d, 1, 2},
      {weir_adaptive_max_pool2d, 2, 12}, {weir_adaptive_max_pool3d, 3, 62},
  };
  devices(2);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR b = NULL;
    WEIR_TENSOR flat = NULL;
    WEIR_TENSOR first = NULL;
    weir_shape shape = {.count = rows[k].axes + 1, .size = {1, 5, 5, 5}};
    a = counting(shape, WEIR_FLOAT32, device(_i));
    weir_ok(rows[k].fn(&b, a, (const int64_t[]){2, 2, 2})); /* windows 0 to 2, 2 to 4 */
    weir_ok(weir_flatten(&flat, b, 0, -1));
    weir_ok(weir_select(&first, flat, 0, 0));
    elements_are(first, 1, &rows[k].first);
  }
}
END_TEST

/* The sum of products of elements. */
static double inner_product(const weir_tensor *a, const weir_tensor *b)
{
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR sum = NULL;
  double out;
  weir_ok(weir_mul(&product, a, b));
  weir_ok(weir_sum(&sum, product));
  weir_ok(weir_tensor_read(&out, sizeof out, WEIR_FLOAT64, sum));
  return out;
}

/* Averages are linear: (pool(x), g) = (x, back(g)). Extremes give each to where it came from. */
START_TEST(what_windows_give_back_is_their_transpose)
{
  static const pooling rows[] = {
      {.name = "a",
       .axes = 2,
       .count_pad = true,
       .axis = {{1, 1, 1, 1, 0, 1}, {7, 4, 3, 2, 1, 1}, {6, 6, 2, 1, 1, 1}}},
      {.name = "a",
       .axes = 2,
       .axis = {{1, 1, 1, 1, 0, 1}, {7, 4, 3, 2, 1, 1}, {5, 3, 2, 2, 1, 1}}},
      {.name = "a",
       .axes = 3,
       .divisor = 5,
       .axis = {{4, 2, 3, 1, 0, 1}, {5, 2, 3, 2, 0, 1}, {3, 2, 2, 1, 0, 1}}},
      {.name = "a",
       .axes = 2,
       .adaptive = true,
       .axis = {{1, 1, 1, 1, 0, 1}, {7, 3, 1, 1, 0, 1}, {5, 8, 1, 1, 0, 1}}},
      {.name = "m",
       .axes = 2,
       .max = true,
       .axis = {{1, 1, 1, 1, 0, 1}, {9, 4, 3, 2, 1, 2}, {6, 6, 3, 1, 1, 1}}},
      {.name = "m",
       .axes = 1,
       .max = true,
       .axis = {{1, 1, 1, 1, 0, 1}, {1, 1, 1, 1, 0, 1}, {9, 4, 3, 2, 0, 1}}},
  };
  devices(2);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const pooling *p = &rows[k];
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR y = NULL;
    WEIR_TENSOR places = NULL;
    WEIR_TENSOR g = NULL;
    WEIR_TENSOR back = NULL;
    weir_options o = as(WEIR_FLOAT64, device(_i));
    weir_shape shape = {.count = p->axes + 2, .size = {2, 3}};
    for (int i = 0; i < p->axes; i++)
      shape.size[2 + i] = p->axis[3 - p->axes + i].in;
    weir_manual_seed(k);
    weir_ok(weir_randn(&x, shape, &o));
    weir_ok(pool_run(&y, p->max ? &places : NULL, x, p));
    weir_ok(weir_randn_like(&g, y, NULL));
    weir_ok(pool_back(&back, g, places, p));
    shape_is(back, shape);
    double there = inner_product(y, g), here = inner_product(x, back);
    ck_assert_msg(fabs(there - here) < 1e-9, "row %zu: %.12g, given back %.12g", k, there, here);
  }
}
END_TEST

START_TEST(windows_refuse_what_torchs_do)
{
  WEIR_TENSOR a = NULL;
  weir_tensor *r = NULL;
  a = counting(weir_shape(1, 3, 8, 8), WEIR_FLOAT32, cpu);
  refused(WEIR_EINVAL,
          "Given input size: (3x8x8). Calculated output size: (3x0x0). Output size is too small",
          weir_avg_pool2d(&r, a, &(weir_pool_options){.kernel = {20, 20}}));
  refused(WEIR_EINVAL, "stride should not be zero",
          weir_avg_pool2d(&r, a, &(weir_pool_options){.kernel = {0}}));
  refused(WEIR_EINVAL,
          "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and "
          "dilation=1",
          weir_avg_pool2d(&r, a, &(weir_pool_options){.kernel = {2, 2}, .padding = {2, 2}}));
  refused(WEIR_EINVAL,
          "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but "
          "received {-3, 2}",
          weir_adaptive_avg_pool2d(&r, a, (const int64_t[]){-3, 2}));
  weir_pool_options all = {.kernel = {INT64_MAX, 2}, .stride = {1, 1}};
  refused_with(WEIR_EINVAL, "Output size is too small", weir_avg_pool2d(&r, a, &all));
  all.ceil_mode = true;
  refused_with(WEIR_EINVAL, "overflows", weir_avg_pool2d(&r, a, &all));
  ck_assert_ptr_null(r);
}
END_TEST

START_TEST(blocks_are_unfolded_as_columns_and_folded_again)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR columns = NULL;
  WEIR_TENSOR sums = NULL;
  weir_tensor *none = NULL;
  weir_unfold_options two = {.kernel = {2, 2}}, spread = {.kernel = {2, 1}, .dilation = {2, 1}};
  const int64_t size[] = {3, 3}, wrong[] = {4, 3};
  devices(2);
  a = counting(weir_shape(1, 3, 3), WEIR_FLOAT32, device(_i));
  weir_ok(weir_unfold_blocks(&columns, a, &two));
  shape_is(columns, weir_shape(4, 4));
  EXPECT(columns, 0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8);
  weir_ok(weir_fold(&sums, columns, size, &two));
  shape_is(sums, weir_shape(1, 3, 3));
  EXPECT(sums, 0, 2, 2, 6, 16, 10, 6, 14, 8); /* each as often as blocks see it */
  refused_with(WEIR_EINVAL, "to match the calculated number of sliding blocks 3 * 2 = 6",
               weir_fold(&none, columns, wrong, &two));
  weir_tensor_drop(&columns);
  weir_ok(weir_unfold_blocks(&columns, a, &spread));
  EXPECT(columns, 0, 1, 2, 6, 7, 8);
  two.kernel[0] = 4;
  refused_with(WEIR_EINVAL, "calculated shape of the array of sliding blocks as (0, 2)",
               weir_unfold_blocks(&none, a, &two));
  two.kernel[0] = 0;
  refused(WEIR_EINVAL,
          "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 2",
          weir_unfold_blocks(&none, a, &two));
}
END_TEST

START_TEST(pools_of_powers_are_roots_of_sums)
{
  typedef weir_status (*lp_fn)(weir_tensor **, const weir_tensor *, double,
                               const weir_pool_options *);
  static const lp_fn of[] = {weir_lp_pool1d, weir_lp_pool2d, weir_lp_pool3d};
  static const double want[] = {5, 10, 20};
  devices(2);
  for (int n = 1; n <= 3; n++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR r = NULL;
    weir_pool_options o = {.kernel = {4, 4, 4}};
    weir_shape shape = {.count = n + 1, .size = {1, 4, 4, 4}};
    weir_options options = as(WEIR_FLOAT64, device(_i));
    weir_ok(weir_full(&a, shape, weir_float(2.5), &options));
    weir_ok(of[n - 1](&r, a, 2, &o));
    EXPECT(r, want[n - 1]);
  }
}
END_TEST

START_TEST(transposed_convolutions_of_nothing_are_refused_as_torch_does)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR none = NULL;
  weir_tensor *r = NULL;
  weir_conv_options padded = {.padding = {1, 1, 1}};
  a = counting(weir_shape(1, 2, 1), WEIR_FLOAT32, cpu);
  w = counting(weir_shape(2, 3, 2), WEIR_FLOAT32, cpu);
  none = counting(weir_shape(2, 0), WEIR_FLOAT32, cpu);
  refused(WEIR_EINVAL,
          "Given input size per channel: (1 x 1). Calculated output size per channel: (1 x 0). "
          "Output size is too small",
          weir_conv_transpose1d(&r, a, w, NULL, &padded));
  refused(WEIR_EINVAL,
          "Only zero batch or zero channel inputs are supported, but got input shape: [1, 2, 1, 0]",
          weir_conv_transpose1d(&r, none, w, NULL, NULL));
}
END_TEST

START_TEST(channels_are_dealt_out)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR r = NULL;
  weir_tensor *none = NULL;
  devices(2);
  a = counting(weir_shape(1, 6, 1), WEIR_FLOAT32, device(_i));
  weir_ok(weir_channel_shuffle(&r, a, 2));
  EXPECT(r, 0, 3, 1, 4, 2, 5);
  refused(WEIR_EINVAL,
          "Number of channels must be divisible by groups. Got 6 channels and 4 groups.",
          weir_channel_shuffle(&none, a, 4));
}
END_TEST

static void four_nearly(const weir_tensor *t, double a, double b, double c, double d)
{
  const double want[] = {a, b, c, d};
  double got[4];
  ck_assert_int_eq(weir_tensor_numel(t), 4);
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, t));
  for (int i = 0; i < 4; i++)
    ck_assert_double_eq_tol(got[i], want[i], 1e-7);
}

START_TEST(compositions_give_what_sums_by_hand_do)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR index = NULL;
  weir_tensor *r = NULL;
  static const double rows[] = {0, 2, 4, 8, 6, 1}, far[] = {3, 4, 0, 1};
  static const int64_t first[] = {0, 0};
  devices(2);
  weir_options o = as(WEIR_FLOAT64, device(_i)), whole = as(WEIR_INT64, device(_i));
  weir_ok(weir_tensor_from(&a, rows, WEIR_FLOAT64, weir_shape(2, 3), &o));
  weir_ok(weir_tensor_from(&b, far, WEIR_FLOAT64, weir_shape(2, 2), &o));
  weir_ok(weir_tensor_from(&index, first, WEIR_INT64, weir_shape(2), &whole));
  weir_ok(weir_cov(&r, a, 1));
  EXPECT(r, 4, -7, -7, 13);
  weir_tensor_drop(&r);
  weir_ok(weir_corrcoef(&r, a));
  four_nearly(r, 1, -7 / sqrt(52), -7 / sqrt(52), 1);
  weir_tensor_drop(&r);
  weir_ok(weir_trapezoid(&r, a, 0.5, -1));
  EXPECT(r, 2, 5.25);
  weir_tensor_drop(&r);
  weir_ok(weir_cumulative_trapezoid(&r, a, 2, 1));
  EXPECT(r, 2, 8, 14, 21);
  weir_tensor_drop(&r);
  weir_ok(weir_renorm(&r, b, 2, 0, 2.5));
  four_nearly(r, 1.5, 2, 0, 1);
  weir_tensor_drop(&r);
  weir_ok(weir_block_diag(&r, (const weir_tensor *const[]){b, index}, 2));
  shape_is(r, weir_shape(3, 4));
  EXPECT(r, 3, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_cartesian_prod(&r, (const weir_tensor *const[]){index, index}, 2));
  shape_is(r, weir_shape(4, 2));
  weir_tensor_drop(&r);
  weir_ok(weir_to_dtype(&r, index, WEIR_INT32)); /* either integer finds rows */
  weir_ok(weir_embedding_renorm_(b, r, 2.5, 2)); /* the other row stays */
  weir_tensor_drop(&r);
  four_nearly(b, 1.5, 2, 0, 1);
  refused(WEIR_EINVAL, "renorm: input needs at least 2 dimensions, got 1 dimensions",
          weir_renorm(&r, index, 2, 0, 1));
}
END_TEST

/* ---- convolutions, interpolation ------------------------------------------------------------- */

typedef weir_status (*conv_fn)(weir_tensor **, const weir_tensor *, const weir_tensor *,
                               const weir_tensor *, const weir_conv_options *);

static weir_tensor *random_of(weir_shape shape, weir_device d)
{
  weir_options o = as(WEIR_FLOAT64, d);
  weir_tensor *t;
  weir_ok(weir_randn(&t, shape, &o));
  return t;
}

/* (conv(x), y) = (x, conv_transpose(y)), of the same weights: each proves the other. */
START_TEST(transposed_convolutions_are_the_transpose_of_convolutions)
{
  static const conv_fn transposed[] = {weir_conv_transpose1d, weir_conv_transpose2d,
                                       weir_conv_transpose3d};
  static const weir_conv_options rows[] = {
      {.groups = 1},
      {.stride = {2, 2, 2}, .padding = {1, 1, 1}, .groups = 2},
      {.stride = {3, 2, 1}, .padding = {0, 1, 2}, .dilation = {2, 3, 1}, .groups = 1},
      {.stride = {2, 3, 2}, .dilation = {2, 1, 2}, .groups = 2}};
  devices(2);
  for (int axes = 1; axes <= 3; axes++)
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      const weir_conv_options *o = &rows[k];
      WEIR_TENSOR x = NULL;
      WEIR_TENSOR w = NULL;
      WEIR_TENSOR y = NULL;
      WEIR_TENSOR g = NULL;
      WEIR_TENSOR back = NULL;
      weir_conv_options more = *o;
      weir_shape in = {.count = axes + 2, .size = {2, 4, 9, 8, 7}};
      weir_shape kernel = {.count = axes + 2, .size = {6, 4 / o->groups, 3, 2, 3}};
      weir_manual_seed(k);
      x = random_of(in, device(_i));
      w = random_of(kernel, device(_i));
      weir_conv2d_options two = {{o->stride[0], o->stride[1]},
                                 {o->padding[0], o->padding[1]},
                                 {o->dilation[0], o->dilation[1]},
                                 o->groups};
      weir_ok(axes == 1   ? weir_conv1d(&y, x, w, NULL, o)
              : axes == 2 ? weir_conv2d(&y, x, w, NULL, &two)
                          : weir_conv3d(&y, x, w, NULL, o));
      weir_ok(weir_randn_like(&g, y, NULL));
      for (int i = 0; i < axes; i++) { /* what a stride left over */
        int64_t s = o->stride[i] ? o->stride[i] : 1, d = o->dilation[i] ? o->dilation[i] : 1;
        more.output_padding[i] =
            (in.size[2 + i] + 2 * o->padding[i] - d * (kernel.size[2 + i] - 1) - 1) % s;
      }
      weir_ok(transposed[axes - 1](&back, g, w, NULL, &more));
      shape_is(back, in);
      double there = inner_product(y, g), here = inner_product(x, back);
      ck_assert_msg(fabs(there - here) < 1e-9, "%d axes, row %zu: %.12g and %.12g", axes, k, there,
                    here);
    }
}
END_TEST

/* out[z][y][x] of one channel, in double. */
static double volume_sum(const double *a, const double *w, int z, int y, int x)
{
  double sum = 0;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 2; k++) {
        int iz = z + 2 * i, iy = 2 * y + j - 1, ix = x + k;
        if (iy >= 0 && iy < 5) sum += a[(iz * 5 + iy) * 4 + ix] * w[(i * 3 + j) * 2 + k];
      }
  return sum;
}

START_TEST(volumes_are_convolved_as_their_sum_says)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  double in[80], kernel[12], out[2 * 3 * 3];
  weir_conv_options o = {.stride = {1, 2, 1}, .padding = {0, 1, 0}, .dilation = {2, 1, 1}};
  devices(2);
  weir_manual_seed(3);
  a = random_of(weir_shape(1, 1, 4, 5, 4), device(_i));
  w = random_of(weir_shape(1, 1, 2, 3, 2), device(_i));
  b = counting(weir_shape(1), WEIR_FLOAT64, device(_i));
  weir_ok(weir_add_scalar_(b, weir_float(.5)));
  weir_ok(weir_conv3d(&c, a, w, b, &o));
  shape_is(c, weir_shape(1, 1, 2, 3, 3));
  weir_ok(weir_tensor_read(in, sizeof in, WEIR_FLOAT64, a));
  weir_ok(weir_tensor_read(kernel, sizeof kernel, WEIR_FLOAT64, w));
  for (int i = 0; i < 18; i++)
    out[i] = .5 + volume_sum(in, kernel, i / 9, i / 3 % 3, i % 3);
  near(c, 18, out);
}
END_TEST

START_TEST(convolutions_that_keep_the_size)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *r = NULL;
  devices(2);
  a = counting(weir_shape(1, 5), WEIR_FLOAT64, device(_i));
  weir_options o = as(WEIR_FLOAT64, device(_i));
  weir_ok(weir_ones(&w, weir_shape(1, 1, 2), &o));
  weir_ok(weir_conv1d(&b, a, w, NULL, &(weir_conv_options){.same = true}));
  NEAR(b, 1, 3, 5, 7, 4);
  refused(WEIR_EINVAL, "padding='same' is not supported for strided convolutions",
          weir_conv1d(&r, a, w, NULL, &(weir_conv_options){.stride = {2}, .same = true}));
  refused(WEIR_EINVAL,
          "Given groups=2, expected weight to be at least 2 at dimension 0, but got weight of size "
          "[1, 1, 2] instead",
          weir_conv1d(&r, a, w, NULL, &(weir_conv_options){.groups = 2}));
  refused(WEIR_EINVAL,
          "output padding must be smaller than either stride or dilation, but got "
          "output_padding_height: 0 output_padding_width: 1 stride_height: 1 stride_width: 1 "
          "dilation_height: 1 dilation_width: 1",
          weir_conv_transpose1d(&r, a, w, NULL, &(weir_conv_options){.output_padding = {1}}));
}
END_TEST

START_TEST(images_in_other_sizes)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR line = NULL;
  weir_tensor *r[6] = {NULL};
  devices(2);
  a = counting(weir_shape(1, 1, 2, 2), WEIR_FLOAT32, device(_i));
  line = counting(weir_shape(1, 1, 3), WEIR_FLOAT32, device(_i));
  weir_interpolate_options o = {.scale = {2}};
  weir_ok(weir_interpolate(&r[0], line, &o));
  NEAR(r[0], 0, 0, 1, 1, 2, 2);
  o.mode = WEIR_INTERPOLATE_LINEAR;
  weir_ok(weir_interpolate(&r[1], line, &o));
  NEAR(r[1], 0, .25, .75, 1.25, 1.75, 2);
  o = (weir_interpolate_options){
      .size = {5}, .mode = WEIR_INTERPOLATE_LINEAR, .align_corners = true};
  weir_ok(weir_interpolate(&r[2], line, &o));
  NEAR(r[2], 0, .5, 1, 1.5, 2);
  o = (weir_interpolate_options){.size = {1, 1}, .mode = WEIR_INTERPOLATE_AREA};
  weir_ok(weir_interpolate(&r[3], a, &o));
  NEAR(r[3], 1.5);
  o = (weir_interpolate_options){
      .size = {2, 3}, .mode = WEIR_INTERPOLATE_BILINEAR, .align_corners = true};
  weir_ok(weir_interpolate(&r[4], a, &o));
  NEAR(r[4], 0, .5, 1, 2, 2.5, 3);
  o = (weir_interpolate_options){.size = {2, 2}, .mode = WEIR_INTERPOLATE_BICUBIC};
  weir_ok(weir_interpolate(&r[5], a, &o));
  NEAR(r[5], 0, 1, 2, 3);
  for (int i = 0; i < 6; i++)
    weir_tensor_drop(&r[i]);
  weir_tensor *none = NULL;
  refused(WEIR_ENOTSUP, "Got 3D input, but bilinear mode needs 4D input",
          weir_interpolate(
              &none, line,
              &(weir_interpolate_options){.scale = {2}, .mode = WEIR_INTERPOLATE_BILINEAR}));
}
END_TEST

START_TEST(what_interpolation_gives_back_is_its_transpose)
{
  static const struct {
    weir_resample_kind kind;
    bool align;
    int64_t out[3];
    double scale;
  } rows[] = {
      {WEIR_RESAMPLE_NEAREST, false, {1, 9, 4}, 0},  {WEIR_RESAMPLE_EXACT, false, {3, 3, 11}, 0},
      {WEIR_RESAMPLE_LINEAR, false, {1, 13, 2}, 0},  {WEIR_RESAMPLE_LINEAR, true, {4, 1, 9}, 0},
      {WEIR_RESAMPLE_CUBIC, false, {1, 12, 3}, 0},   {WEIR_RESAMPLE_CUBIC, true, {1, 3, 17}, 0},
      {WEIR_RESAMPLE_LINEAR, false, {1, 12, 14}, .4}};
  devices(2);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR y = NULL;
    WEIR_TENSOR g = NULL;
    WEIR_TENSOR back = NULL;
    weir_resample r = {.kind = rows[k].kind, .align = rows[k].align, .in = {2, 5, 6}};
    for (int i = 0; i < 3; i++) {
      r.out[i] = rows[k].out[i];
      r.scale[i] = rows[k].scale;
    }
    weir_manual_seed(k);
    x = random_of(weir_shape(2, 2, 5, 6), device(_i));
    weir_ok(resample_run(&y, x, &r, 3));
    weir_ok(weir_randn_like(&g, y, NULL));
    r.back = true;
    weir_ok(resample_run(&back, g, &r, 3));
    shape_is(back, weir_shape(2, 2, 5, 6));
    double there = inner_product(y, g), here = inner_product(x, back);
    ck_assert_msg(fabs(there - here) < 1e-5, "row %zu: %.12g, given back %.12g", k, there, here);
  }
}
END_TEST

/* ---- normalisation --------------------------------------------------------------------------- */

/* Whether b, wherever it is, is a to `digits`. */
static bool all_close(const weir_tensor *a, const weir_tensor *b, double digits)
{
  WEIR_TENSOR here = NULL;
  weir_options o = {.dtype = weir_tensor_dtype(a)};
  bool same = false;
  o.device = weir_tensor_device(a);
  weir_ok(weir_to(&here, b, &o));
  weir_ok(weir_allclose(&same, a, here, digits, digits, false));
  return same;
}

START_TEST(rows_and_groups_have_no_mean_and_length_one)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  weir_tensor *r[4] = {NULL};
  const double unit = 1.3416407864998738; /* of 0 to 3 */
  devices(2);
  a = counting(weir_shape(1, 4), WEIR_FLOAT64, device(_i));
  w = counting(weir_shape(4), WEIR_FLOAT64, device(_i));
  weir_ok(weir_layer_norm(&r[0], a, weir_shape(4), NULL, NULL, 0));
  NEAR(r[0], -unit, -unit / 3, unit / 3, unit);
  weir_ok(weir_layer_norm(&r[1], a, weir_shape(4), w, w, 0));
  NEAR(r[1], 0, 1 - unit / 3, 2 + 2 * unit / 3, 3 + 3 * unit);
  weir_ok(weir_group_norm(&r[2], a, 2, NULL, NULL, 0));
  NEAR(r[2], -1, 1, -1, 1);
  weir_ok(weir_rms_norm(&r[3], a, weir_shape(4), NULL, 0));
  NEAR(r[3], 0, 1 / sqrt(3.5), 2 / sqrt(3.5), 3 / sqrt(3.5));
  is_on(r[3], device(_i));
  for (int i = 0; i < 4; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

/* The same rows on the cpu: forward, with parameters, and what comes back. */
START_TEST(long_rows_and_what_comes_back_are_the_same_on_every_device)
{
  static const weir_dtype types[] = {WEIR_FLOAT32, WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT64};
  devices(2);
  for (int k = 0; k < 12; k++) {
    weir_tensor *x[2] = {NULL}, *w[2] = {NULL}, *g[2] = {NULL}, *y[2] = {NULL}, *back[2] = {NULL};
    weir_dtype d = types[k % 4];
    int64_t groups = k % 3 + 1;
    weir_manual_seed((uint64_t)k);
    for (int i = 0; i < 2; i++) {
      weir_options o = as(d, i ? device(_i) : WEIR_CPU);
      weir_ok(i ? weir_to(&x[1], x[0], &o) : weir_randn(&x[0], weir_shape(4, 6, 70), &o));
      weir_ok(i ? weir_to(&g[1], g[0], &o) : weir_randn(&g[0], weir_shape(4, 6, 70), &o));
      weir_ok(i ? weir_to(&w[1], w[0], &o) : weir_rand(&w[0], weir_shape(6), &o));
      weir_ok(weir_group_norm(&y[i], x[i], groups, w[i], w[i], 0.5));
      int64_t n[5] = {k & 1 ? WEIR_NORM_RMS : WEIR_NORM_LAYER, 4 * groups, 420 / groups, groups,
                      70};
      weir_ok(norm_back(&back[i], g[i], x[i], w[i], n, 0.5));
    }
    is_on(back[1], device(_i));
    double digits = d == WEIR_FLOAT64 ? 1e-12 : d == WEIR_FLOAT32 ? 1e-4 : 3e-2;
    ck_assert(all_close(y[0], y[1], digits) && all_close(back[0], back[1], digits));
    for (int i = 0; i < 2; i++) {
      weir_tensor_drop(&x[i]), weir_tensor_drop(&w[i]), weir_tensor_drop(&g[i]);
      weir_tensor_drop(&y[i]), weir_tensor_drop(&back[i]);
    }
  }
}
END_TEST

START_TEST(running_statistics_follow_the_batch)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR mean = NULL;
  WEIR_TENSOR var = NULL;
  weir_tensor *r[3] = {NULL};
  weir_options o = as(WEIR_FLOAT64, device(_i));
  devices(2);
  a = counting(weir_shape(2, 2), WEIR_FLOAT64, device(_i)); /* channels 0, 2 and 1, 3 */
  weir_ok(weir_zeros(&mean, weir_shape(2), &o));
  weir_ok(weir_ones(&var, weir_shape(2), &o));
  weir_batch_norm_options train = {.training = true, .momentum = .5, .eps = 0};
  weir_ok(weir_batch_norm(&r[0], a, mean, var, NULL, NULL, &train));
  NEAR(r[0], -1, -1, 1, 1);
  NEAR(mean, .5, 1);
  NEAR(var, 1.5, 1.5); /* 2 with Bessel's correction */
  weir_batch_norm_options eval = {.eps = .75};
  weir_ok(weir_batch_norm(&r[1], a, mean, var, NULL, NULL, &eval));
  NEAR(r[1], -.5 / 1.5, 0, 1.5 / 1.5, 2 / 1.5);
  NEAR(mean, .5, 1);
  WEIR_TENSOR images = NULL;
  weir_ok(weir_reshape(&images, a, weir_shape(1, 2, 2)));
  weir_ok(weir_instance_norm(&r[2], images, mean, var, NULL, NULL, &train));
  NEAR(r[2], -1, 1, -1, 1);
  NEAR(mean, .5, 1.75);
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(normalisation_refuses_what_torchs_does)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR three = NULL;
  WEIR_TENSOR images = NULL;
  weir_tensor *r = NULL;
  weir_batch_norm_options train = {.training = true}, eval = {0};
  a = counting(weir_shape(1, 3), WEIR_FLOAT32, cpu);
  images = counting(weir_shape(1, 3, 2), WEIR_FLOAT32, cpu);
  three = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  refused(WEIR_EINVAL,
          "Expected more than 1 value per channel when training, got input size weir.Size([1, 3])",
          weir_batch_norm(&r, a, NULL, NULL, NULL, NULL, &train));
  refused(WEIR_EINVAL, "running_mean must be defined in evaluation mode",
          weir_batch_norm(&r, a, NULL, NULL, NULL, NULL, &eval));
  refused(WEIR_EINVAL, "running_mean should contain 3 elements not 2",
          weir_batch_norm(&r, a, three, three, NULL, NULL, &eval));
  refused(
      WEIR_EINVAL,
      "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[1, 3]",
      weir_layer_norm(&r, a, weir_shape(2), NULL, NULL, 0));
  refused(WEIR_EINVAL,
          "Expected more than 1 spatial element when training, got input size weir.Size([1, 3])",
          weir_instance_norm(&r, a, NULL, NULL, NULL, NULL, &train));
  refused(WEIR_EINVAL,
          "Expected number of channels in input to be divisible by num_groups, but got input of "
          "shape [1, 3, 2] and num_groups=2",
          weir_group_norm(&r, images, 2, NULL, NULL, 0));
}
END_TEST

/* ---- dropout --------------------------------------------------------------------------------- */

START_TEST(dropout_leaves_the_same_elements_on_every_device)
{
  WEIR_TENSOR here = NULL;
  WEIR_TENSOR there = NULL;
  WEIR_TENSOR back = NULL;
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR channels = NULL;
  WEIR_TENSOR sums = NULL;
  WEIR_TENSOR mean = NULL;
  weir_options o = on(device(_i));
  double average;
  bool same;
  devices(2);
  weir_ok(weir_ones(&here, weir_shape(100, 100), NULL));
  weir_ok(weir_to(&there, here, &o));
  weir_manual_seed(7);
  weir_ok(weir_dropout(&a, here, .25, true, NULL));
  weir_manual_seed(7);
  weir_ok(weir_dropout(&b, there, .25, true, NULL));
  weir_ok(weir_cpu(&back, b));
  weir_ok(weir_equal(&same, a, back));
  ck_assert(same);
  weir_ok(weir_mean(&mean, back));
  weir_ok(weir_tensor_read(&average, sizeof average, WEIR_FLOAT64, mean));
  ck_assert(fabs(average - 1) < .03);
  weir_ok(weir_feature_dropout(&channels, there, .5, true, NULL));
  weir_ok(weir_sum(&sums, channels));
  is_on(sums, device(_i));
}
END_TEST

START_TEST(dropout_that_leaves_all_is_its_operand)
{
  WEIR_TENSOR a = NULL;
  weir_tensor *r[3] = {NULL};
  a = counting(weir_shape(2, 2), WEIR_FLOAT32, cpu);
  weir_ok(weir_dropout(&r[0], a, .5, false, NULL));
  ck_assert_ptr_eq(r[0], a);
  weir_ok(weir_dropout(&r[1], a, 0, true, NULL));
  ck_assert_ptr_eq(r[1], a);
  weir_ok(weir_dropout(&r[2], a, 1, true, NULL));
  NEAR(r[2], 0, 0, 0, 0);
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&r[i]);
  refused(WEIR_EINVAL, "dropout probability has to be between 0 and 1, but got 1.5",
          weir_dropout(&r[0], a, 1.5, true, NULL));
}
END_TEST

/* ---- distances, pixels ----------------------------------------------------------------------- */

START_TEST(distances_and_lengths)
{
  const double values[] = {3, 4, 0, 5};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *r[3] = {NULL};
  weir_options o = as(WEIR_FLOAT64, device(_i));
  devices(2);
  weir_ok(weir_tensor_from(&a, values, WEIR_FLOAT64, weir_shape(2, 2), &o));
  weir_ok(weir_ones(&b, weir_shape(2, 2), &o));
  weir_ok(weir_normalize(&r[0], a, 2, 1, 1e-12));
  NEAR(r[0], .6, .8, 0, 1);
  weir_ok(weir_cosine_similarity(&r[1], a, b, 1, 1e-8));
  NEAR(r[1], 7 / (5 * sqrt(2)), 1 / sqrt(2));
  weir_ok(weir_pairwise_distance(&r[2], a, b, 2, 0, false));
  NEAR(r[2], sqrt(13), sqrt(17));
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(pixels_are_shuffled_there_and_back)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  bool same;
  devices(2);
  a = counting(weir_shape(8, 1, 2), WEIR_FLOAT32, device(_i));
  weir_ok(weir_pixel_shuffle(&b, a, 2));
  shape_is(b, weir_shape(2, 2, 4));
  NEAR(b, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  weir_ok(weir_pixel_unshuffle(&c, b, 2));
  weir_ok(weir_equal(&same, a, c));
  ck_assert(same);
}
END_TEST

/* ---- losses ---------------------------------------------------------------------------------- */

START_TEST(losses_of_classes_are_of_those_that_count)
{
  const double scores[] = {0, 0, 0, log(2), log(3), log(5)};
  const int64_t places[] = {2, 1};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR target = NULL;
  weir_tensor *r[4] = {NULL};
  weir_options o = as(WEIR_FLOAT64, device(_i)), whole = as(WEIR_INT64, device(_i));
  devices(2);
  weir_ok(weir_tensor_from(&a, scores, WEIR_FLOAT64, weir_shape(2, 3), &o));
  weir_ok(weir_tensor_from(&target, places, WEIR_INT64, weir_shape(2), &whole));
  weir_class_options none = {.reduction = WEIR_REDUCTION_NONE};
  weir_ok(weir_cross_entropy(&r[0], a, target, &none));
  NEAR(r[0], log(3), log(10. / 3));
  weir_ok(weir_nll_loss(&r[1], a, target, NULL));
  NEAR(r[1], -log(3) / 2);
  weir_class_options ignore = {.ignore = true, .ignore_index = 1};
  weir_ok(weir_cross_entropy(&r[2], a, target, &ignore));
  NEAR(r[2], log(3));
  is_on(r[2], device(_i));
  weir_ok(weir_cross_entropy(&r[3], a, target, &(weir_class_options){.label_smoothing = 1}));
  NEAR(r[3], (log(3) + log(10) - log(30) / 3) / 2);
  for (int i = 0; i < 4; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(losses_of_differences_and_probabilities)
{
  const double left[] = {.5, .25}, right[] = {1, 0};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR sign = NULL;
  weir_tensor *r[12] = {NULL};
  weir_options o = as(WEIR_FLOAT64, device(_i));
  const weir_reduction sum = WEIR_REDUCTION_SUM;
  devices(2);
  weir_ok(weir_tensor_from(&a, left, WEIR_FLOAT64, weir_shape(2), &o));
  weir_ok(weir_tensor_from(&b, right, WEIR_FLOAT64, weir_shape(2), &o));
  weir_ok(weir_ones(&sign, weir_shape(2), &o));
  weir_ok(weir_mse_loss(&r[0], a, b, sum));
  NEAR(r[0], .3125);
  weir_ok(weir_l1_loss(&r[1], a, b, WEIR_REDUCTION_MEAN));
  NEAR(r[1], .375);
  weir_ok(weir_smooth_l1_loss(&r[2], a, b, sum, .4));
  NEAR(r[2], .5 - .2 + .0625 / .8);
  weir_ok(weir_huber_loss(&r[3], a, b, sum, .4));
  NEAR(r[3], .4 * .3 + .03125);
  weir_ok(weir_binary_cross_entropy(&r[4], a, b, NULL, sum));
  NEAR(r[4], log(2) - log(.75));
  weir_ok(weir_binary_cross_entropy_with_logits(&r[5], a, b, NULL, NULL, sum));
  NEAR(r[5], log(1 + exp(-.5)) + log(1 + exp(.25)));
  weir_ok(weir_kl_div(&r[6], a, b, sum, false));
  NEAR(r[6], -.5);
  weir_ok(weir_margin_ranking_loss(&r[7], a, b, sign, 0, sum));
  NEAR(r[7], .5);
  weir_ok(weir_hinge_embedding_loss(&r[8], a, sign, 1, sum));
  NEAR(r[8], .75);
  weir_ok(weir_soft_margin_loss(&r[9], a, sign, sum));
  NEAR(r[9], log(1 + exp(-.5)) + log(1 + exp(-.25)));
  weir_ok(weir_triplet_margin_loss(&r[10], a, a, b, 1, 2, sum));
  ck_assert_int_eq(weir_tensor_dim(r[10]), 0);
  WEIR_TENSOR one = NULL;
  weir_ok(weir_ones(&one, (weir_shape){0, {0}}, &o));
  weir_ok(weir_cosine_embedding_loss(&r[11], a, b, one, 0, sum));
  NEAR(r[11], 1 - .5 / sqrt((.3125 + 1e-12) * (1 + 1e-12))); /* torch adds to what it divides by */
  for (int i = 0; i < 12; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(losses_refuse_what_torchs_do)
{
  const int64_t five[] = {5, 0};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR target = NULL;
  WEIR_TENSOR three = NULL;
  weir_tensor *r = NULL;
  a = counting(weir_shape(2, 3), WEIR_FLOAT32, cpu);
  three = counting(weir_shape(3), WEIR_INT64, cpu);
  weir_ok(weir_tensor_from(&target, five, WEIR_INT64, weir_shape(2), NULL));
  refused(WEIR_EINVAL, "Target 5 is out of bounds.", weir_cross_entropy(&r, a, target, NULL));
  refused(WEIR_EINVAL, "Expected input batch_size (2) to match target batch_size (3).",
          weir_nll_loss(&r, a, three, NULL));
  refused(WEIR_EINVAL, "all elements of input should be between 0 and 1",
          weir_binary_cross_entropy(&r, a, a, NULL, WEIR_REDUCTION_MEAN));
  ck_assert_ptr_null(r);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {averages_count_the_padding_unless_it_is_excluded,
                                windows_of_every_number_of_axes,
                                places_of_the_largest_of_windows,
                                windows_adapt_to_what_is_asked_for,
                                what_windows_give_back_is_their_transpose,
                                windows_refuse_what_torchs_do,
                                blocks_are_unfolded_as_columns_and_folded_again,
                                pools_of_powers_are_roots_of_sums,
                                channels_are_dealt_out,
                                transposed_convolutions_of_nothing_are_refused_as_torch_does,
                                compositions_give_what_sums_by_hand_do,
                                transposed_convolutions_are_the_transpose_of_convolutions,
                                volumes_are_convolved_as_their_sum_says,
                                convolutions_that_keep_the_size,
                                images_in_other_sizes,
                                what_interpolation_gives_back_is_its_transpose,
                                rows_and_groups_have_no_mean_and_length_one,
                                long_rows_and_what_comes_back_are_the_same_on_every_device,
                                running_statistics_follow_the_batch,
                                normalisation_refuses_what_torchs_does,
                                dropout_leaves_the_same_elements_on_every_device,
                                dropout_that_leaves_all_is_its_operand,
                                distances_and_lengths,
                                pixels_are_shuffled_there_and_back,
                                losses_of_classes_are_of_those_that_count,
                                losses_of_differences_and_probabilities,
                                losses_refuse_what_torchs_do,
                                NULL};
  return rig_run("ops/nn", tests, TRIED);
}
