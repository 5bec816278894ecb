/* test_shape.c: tensors cut, turned, repeated and padded (shape.h). */
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

static void drop_all(weir_tensor **t, int count)
{
  for (int i = 0; i < count; i++)
    weir_tensor_drop(&t[i]);
}

START_TEST(parts_are_views_and_all_or_none)
{
  weir_tensor *r[4] = {NULL};
  int count;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 5), WEIR_INT32, device(_i));
  weir_ok(weir_unbind(r, &count, 4, a, 0));
  ck_assert_int_eq(count, 2);
  EXPECT(r[1], 5, 6, 7, 8, 9);
  ck_assert(weir_tensor_shares_storage(r[1], a));
  drop_all(r, 2);
  refused(WEIR_EINVAL, "there is room for 4 tensors, and unbind makes 5",
          weir_unbind(r, &count, 4, a, 1));
  weir_ok(weir_split_with_sizes(r, a, (const int64_t[]){1, 0, 4}, 3, 1));
  EXPECT(r[0], 0, 5);
  shape_is(r[1], weir_shape(2, 0));
  EXPECT(r[2], 1, 2, 3, 4, 6, 7, 8, 9);
  drop_all(r, 3);
  refused(WEIR_EINVAL,
          "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at "
          "dimension -1), but got split_sizes=[1, 2]",
          weir_split_with_sizes(r, a, (const int64_t[]){1, 2}, 2, -1));
  weir_ok(weir_tensor_split(r, a, 3, 1));
  shape_is(r[0], weir_shape(2, 2));
  shape_is(r[2], weir_shape(2, 1));
  EXPECT(r[2], 4, 9);
  drop_all(r, 3);
  weir_ok(weir_tensor_split_at(r, a, (const int64_t[]){3, 1, -1}, 3, 1));
  shape_is(r[1], weir_shape(2, 0));
  EXPECT(r[2], 1, 2, 3, 6, 7, 8);
  EXPECT(r[3], 4, 9);
  drop_all(r, 4);
  refused(WEIR_EINVAL, "number of sections must be larger than 0, got 0",
          weir_tensor_split(r, a, 0, 1));
  ck_assert_ptr_null(r[0]);
}
END_TEST

START_TEST(windows_and_diagonals_are_views)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(3, 4), WEIR_FLOAT32, device(_i));
  weir_ok(weir_unfold(&r, a, 1, 2, 2));
  shape_is(r, weir_shape(3, 2, 2));
  strides_are(r, weir_shape(4, 2, 1));
  EXPECT(r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "maximum size for tensor at dimension 1 is 4 but size is 5",
          weir_unfold(&r, a, 1, 5, 1));
  weir_ok(weir_diagonal(&r, a, 1, 0, 1));
  EXPECT(r, 1, 6, 11);
  ck_assert(weir_tensor_shares_storage(r, a));
  weir_tensor_drop(&r);
  weir_ok(weir_diagonal(&r, a, -2, -2, -1));
  EXPECT(r, 8);
  weir_tensor_drop(&r);
  weir_ok(weir_diagonal(&r, a, INT64_MIN, 0, 1));
  shape_is(r, weir_shape(0));
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "diagonal dimensions cannot be identical 1, -1",
          weir_diagonal(&r, a, 0, 1, -1));
}
END_TEST

START_TEST(dimensions_are_moved_taken_apart_and_expanded)
{
  weir_tensor *r = NULL, *grid[2] = {NULL};
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 3, 4), WEIR_INT16, device(_i));
  WEIR_TENSOR row = counting(weir_shape(3), WEIR_INT16, device(_i));
  WEIR_TENSOR two = counting(weir_shape(2), WEIR_INT16, device(_i));
  weir_ok(weir_movedim(&r, a, (const int[]){0, -1}, (const int[]){1, 0}, 2));
  shape_is(r, weir_shape(4, 2, 3));
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "movedim: repeated dim in `destination` ([1, 1])",
          weir_movedim(&r, a, (const int[]){0, 1}, (const int[]){1, 1}, 2));
  weir_ok(weir_swapaxes(&r, a, 0, 2));
  shape_is(r, weir_shape(4, 3, 2));
  weir_tensor_drop(&r);
  weir_ok(weir_unflatten(&r, a, -1, weir_shape(2, -1)));
  shape_is(r, weir_shape(2, 3, 2, 2));
  weir_tensor_drop(&r);
  refused(
      WEIR_EINVAL,
      "unflatten: Provided sizes [3, 2] don't multiply up to the size of dim 2 (4) in the input "
      "tensor",
      weir_unflatten(&r, a, 2, weir_shape(3, 2)));
  weir_ok(weir_broadcast_to(&r, row, weir_shape(2, 3)));
  EXPECT(r, 0, 1, 2, 0, 1, 2);
  weir_tensor_drop(&r);
  weir_ok(weir_expand_as(&r, row, row));
  EXPECT(r, 0, 1, 2);
  weir_tensor_drop(&r);
  weir_ok(weir_meshgrid(grid, (const weir_tensor *[]){two, row}, 2, true));
  shape_is(grid[0], weir_shape(3, 2));
  EXPECT(grid[0], 0, 1, 0, 1, 0, 1);
  EXPECT(grid[1], 0, 0, 1, 1, 2, 2);
  drop_all(grid, 2);
  refused_with(WEIR_EINVAL, "Expected 0D or 1D tensor",
               weir_meshgrid(grid, (const weir_tensor *[]){two, a}, 2, false));
}
END_TEST

START_TEST(rows_columns_and_depths_are_joined)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR b = counting(weir_shape(1, 2), WEIR_INT32, device(_i));
  WEIR_TENSOR one = counting(weir_shape_of(0, NULL), WEIR_FLOAT32, device(_i));
  weir_ok(weir_hstack(&r, (const weir_tensor *[]){a, one}, 2));
  EXPECT(r, 0, 1, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_vstack(&r, (const weir_tensor *[]){a, b}, 2));
  shape_is(r, weir_shape(2, 2));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_FLOAT32);
  weir_tensor_drop(&r);
  weir_ok(weir_dstack(&r, (const weir_tensor *[]){a, b}, 2));
  shape_is(r, weir_shape(1, 2, 2));
  EXPECT(r, 0, 0, 1, 1);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "hstack expects a non-empty TensorList",
          weir_hstack(&r, (const weir_tensor *[]){a}, 0));
}
END_TEST

START_TEST(elements_are_turned_round_and_moved_on)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT16, device(_i));
  WEIR_TENSOR turned = NULL;
  weir_ok(weir_t(&turned, a));
  weir_ok(weir_flip(&r, a, (const int[]){0, -1}, 2));
  EXPECT(r, 5, 4, 3, 2, 1, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_flip(&r, turned, (const int[]){0}, 1));
  EXPECT(r, 2, 5, 1, 4, 0, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_fliplr(&r, a));
  EXPECT(r, 2, 1, 0, 5, 4, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_flipud(&r, a));
  EXPECT(r, 3, 4, 5, 0, 1, 2);
  weir_tensor_drop(&r);
  weir_ok(weir_rot90(&r, a, 5, 0, 1));
  shape_is(r, weir_shape(3, 2));
  EXPECT(r, 2, 5, 1, 4, 0, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_rot90(&r, a, -1, 0, 1));
  EXPECT(r, 3, 0, 4, 1, 5, 2);
  weir_tensor_drop(&r);
  weir_ok(weir_roll(&r, a, (const int64_t[]){1, -4}, (const int[]){0, 1}, 2));
  EXPECT(r, 4, 5, 3, 1, 2, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_roll(&r, turned, (const int64_t[]){1}, NULL, 1));
  EXPECT(r, 5, 0, 3, 1, 4, 2);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "dim 1 appears multiple times in the list of dims",
          weir_flip(&r, a, (const int[]){1, -1}, 2));
  refused(WEIR_EINVAL, "`shifts` required", weir_roll(&r, a, NULL, NULL, 0));
}
END_TEST

START_TEST(tensors_are_repeated)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 2), WEIR_BFLOAT16, device(_i));
  WEIR_TENSOR deep = counting(weir_shape(2, 1, 2, 1, 2), WEIR_UINT8, device(_i));
  weir_ok(weir_repeat(&r, a, weir_shape(2, 1, 2)));
  shape_is(r, weir_shape(2, 2, 4));
  EXPECT(r, 0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_tile(&r, a, weir_shape(2)));
  EXPECT(r, 0, 1, 0, 1, 2, 3, 2, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_repeat(&r, a, weir_shape(0, 1)));
  shape_is(r, weir_shape(0, 2));
  weir_tensor_drop(&r);
  /* eleven dimensions, of which a request has room for eight */
  weir_ok(weir_repeat(&r, deep, weir_shape(2, 2, 2, 2, 2, 2, 2, 2)));
  ck_assert_int_eq(weir_tensor_numel(r), 8 * 256);
  weir_scalar v;
  for (int i = 0; i < 8; i++) {
    WEIR_TENSOR part = NULL;
    int64_t at[] = {i & 1, i >> 1 & 1,  1, 2 * (i & 1) + (i >> 2), 1, 2 * (i >> 1 & 1) + (i & 1),
                    1,     2 + (i >> 2)};
    weir_ok(weir_narrow(&part, r, 0, at[0], 1));
    for (int d = 1; d < 8; d++) {
      weir_tensor *next;
      weir_ok(weir_narrow(&next, part, d, at[d], 1));
      weir_tensor_release(part);
      part = next;
    }
    weir_ok(weir_item(&v, part));
    ck_assert_int_eq(v.i, 4 * (at[3] % 2) + 2 * (at[5] % 2) + at[7] % 2);
  }
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL,
          "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
          "tensor",
          weir_repeat(&r, a, weir_shape(2)));
}
END_TEST

START_TEST(borders_are_of_four_kinds)
{
  static const struct {
    weir_pad_mode mode;
    double row[6];
  } kinds[] = {{WEIR_PAD_CONSTANT, {9, 9, 0, 1, 2, 9}},
               {WEIR_PAD_REFLECT, {2, 1, 0, 1, 2, 1}},
               {WEIR_PAD_REPLICATE, {0, 0, 0, 1, 2, 2}},
               {WEIR_PAD_CIRCULAR, {1, 2, 0, 1, 2, 0}}};
  static const int64_t by[] = {2, 1}, cut[] = {-1, 2, 1, 0};
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(1, 3), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR b = counting(weir_shape(1, 2, 3), WEIR_INT64, device(_i));
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    weir_ok(weir_pad(&r, a, by, 2, kinds[k].mode, weir_int(9)));
    elements_are(r, 6, kinds[k].row);
    weir_tensor_drop(&r);
  }
  weir_ok(weir_pad(&r, b, cut, 4, WEIR_PAD_CONSTANT, weir_float(7.5)));
  EXPECT(r, 7, 7, 7, 7, 1, 2, 7, 7, 4, 5, 7, 7);
  weir_tensor_drop(&r);
  weir_ok(weir_pad(&r, b, cut, 4, WEIR_PAD_REFLECT, weir_int(0)));
  EXPECT(r, 4, 5, 4, 3, 1, 2, 1, 0, 4, 5, 4, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_pad(&r, b, cut, 4, WEIR_PAD_CIRCULAR, weir_int(0)));
  EXPECT(r, 4, 5, 4, 5, 1, 2, 1, 2, 4, 5, 4, 5);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "Padding length must be divisible by 2",
          weir_pad(&r, a, by, 1, WEIR_PAD_CONSTANT, weir_int(0)));
  refused(WEIR_EINVAL,
          "Argument #4: Padding size should be less than the corresponding input dimension, but "
          "got: padding (3, 0) at dimension 1 of input [1, 3]",
          weir_pad(&r, a, (const int64_t[]){3, 0}, 2, WEIR_PAD_REFLECT, weir_int(0)));
  refused(WEIR_EINVAL, "Padding value causes wrapping around more than once.",
          weir_pad(&r, a, (const int64_t[]){4, 0}, 2, WEIR_PAD_CIRCULAR, weir_int(0)));
  refused(WEIR_ENOTSUP, "Padding size 4 is not supported for 2D input tensor.",
          weir_pad(&r, a, cut, 4, WEIR_PAD_REPLICATE, weir_int(0)));
}
END_TEST

START_TEST(triangles_and_diagonals_of_matrices)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 2, 2), WEIR_COMPLEX64, device(_i));
  WEIR_TENSOR b = counting(weir_shape(2, 3), WEIR_INT8, device(_i));
  WEIR_TENSOR row = counting(weir_shape(2), WEIR_INT8, device(_i));
  weir_ok(weir_tril(&r, a, 0));
  EXPECT(r, 0, 0, 2, 3, 4, 0, 6, 7);
  weir_tensor_drop(&r);
  weir_ok(weir_triu(&r, b, 1));
  EXPECT(r, 0, 1, 2, 0, 0, 5);
  weir_tensor_drop(&r);
  weir_ok(weir_triu(&r, b, INT64_MIN));
  EXPECT(r, 0, 1, 2, 3, 4, 5);
  weir_tensor_drop(&r);
  weir_ok(weir_diag(&r, b, -1));
  EXPECT(r, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_diag(&r, row, 1));
  EXPECT(r, 0, 0, 0, 0, 0, 1, 0, 0, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_diag_embed(&r, b, 0, 0, -1));
  shape_is(r, weir_shape(3, 2, 3));
  EXPECT(r, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 4, 0, 0, 0, 2, 0, 0, 5);
  weir_tensor_drop(&r);
  weir_ok(weir_trace(&r, b));
  EXPECT(r, 4);
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_INT64);
  weir_tensor_drop(&r);
  weir_ok(weir_tril_(b, -1));
  EXPECT(b, 0, 0, 0, 3, 0, 0);
  weir_ok(weir_triu_(b, 0));
  EXPECT(b, 0, 0, 0, 0, 0, 0);
  weir_options o = as(WEIR_BOOL, device(_i));
  weir_ok(weir_eye(&r, 2, 3, &o));
  EXPECT(r, 1, 0, 0, 0, 1, 0);
  is_on(r, device(_i));
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "tril: input tensor must have at least 2 dimensions", weir_tril(&r, row, 0));
  refused(WEIR_EINVAL, "diag(): Supports 1D or 2D tensors. Got 3D", weir_diag(&r, a, 0));
  refused(WEIR_EINVAL, "n must be greater or equal to 0, got -1", weir_eye(&r, -1, 2, &o));
}
END_TEST

START_TEST(numbers_at_equal_distances_meet_both_ends)
{
  weir_tensor *r = NULL;
  weir_options o = on(device(_i)), whole = as(WEIR_INT32, device(_i)),
               truth = as(WEIR_BOOL, device(_i)), half = as(WEIR_FLOAT16, device(_i));
  devices(2);
  weir_ok(weir_linspace(&r, weir_int(0), weir_int(1), 5, &o));
  EXPECT(r, 0, 0.25, 0.5, 0.75, 1);
  weir_tensor_drop(&r);
  weir_ok(weir_linspace(&r, weir_int(-10), weir_float(10.7), 7, &whole));
  EXPECT(r, -10, -6, -3, 0, 3, 6, 10);
  weir_tensor_drop(&r);
  weir_ok(weir_linspace(&r, weir_int(4), weir_int(9), 1, &o));
  EXPECT(r, 4);
  weir_tensor_drop(&r);
  weir_ok(weir_logspace(&r, weir_int(0), weir_int(4), 5, 2, &whole));
  EXPECT(r, 1, 2, 4, 8, 16);
  weir_tensor_drop(&r);
  weir_ok(weir_logspace(&r, weir_int(7), weir_int(0), 1, 10, &half)); /* one that is too large */
  EXPECT(r, INFINITY);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "value cannot be converted to type c10::Half without overflow",
          weir_linspace(&r, weir_float(1e6), weir_int(0), 2, &half));
  weir_ok(weir_logspace(&r, weir_int(1), weir_int(4), 0, 2, &o));
  shape_is(r, weir_shape(0));
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "number of steps must be non-negative",
          weir_linspace(&r, weir_int(0), weir_int(1), -1, &o));
  refused(WEIR_ENOTSUP,
          _i ? "\"linspace_cuda\" not implemented for 'Bool'"
             : "\"linspace_cpu\" not implemented for 'Bool'",
          weir_linspace(&r, weir_int(0), weir_int(1), 3, &truth));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {parts_are_views_and_all_or_none,
                                windows_and_diagonals_are_views,
                                dimensions_are_moved_taken_apart_and_expanded,
                                rows_columns_and_depths_are_joined,
                                elements_are_turned_round_and_moved_on,
                                tensors_are_repeated,
                                borders_are_of_four_kinds,
                                triangles_and_diagonals_of_matrices,
                                numbers_at_equal_distances_meet_both_ends,
                                NULL};
  return rig_run("ops/shape", tests, TRIED);
}
