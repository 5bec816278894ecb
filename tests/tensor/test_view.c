/* test_view.c: views: their shapes, strides and elements, and what they refuse. */
#include "tests/tensor/rig.h"

START_TEST(a_view_shares_its_storage)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR v = NULL;
  weir_ok(weir_view(&v, t, weir_shape(3, -1)));
  shape_is(v, weir_shape(3, 2));
  ck_assert(weir_tensor_shares_storage(v, t));
  weir_ok(weir_fill_(v, weir_float(4)));
  weir_tensor_drop(&v);
  EXPECT(t, 4, 4, 4, 4, 4, 4);
}
END_TEST

START_TEST(a_view_keeps_the_storage_when_the_tensor_goes)
{
  devices(2);
  weir_tensor *t = counting(weir_shape(4), WEIR_INT32, device(_i)), *v;
  weir_ok(weir_slice(&v, t, 0, 1, 4, 2));
  weir_tensor_release(t);
  EXPECT(v, 1, 3);
  weir_tensor_release(v);
}
END_TEST

START_TEST(dimensions_are_exchanged)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3, 4), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR d = NULL;
  weir_ok(weir_transpose(&a, t, 0, -1));
  shape_is(a, weir_shape(4, 3, 2));
  strides_are(a, weir_shape(1, 4, 12));
  ck_assert(!weir_tensor_is_contiguous(a));
  weir_ok(weir_permute(&b, t, (const int[]){1, -1, 0}));
  shape_is(b, weir_shape(3, 4, 2));
  strides_are(b, weir_shape(4, 1, 12));
  weir_ok(weir_select(&c, t, 0, 0));
  weir_ok(weir_t(&d, c));
  EXPECT(d, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
}
END_TEST

START_TEST(parts_are_taken)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(3, 4), WEIR_INT64, device(_i));
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR d = NULL;
  WEIR_TENSOR e = NULL;
  weir_ok(weir_slice(&a, t, 1, -3, 100, 2));
  EXPECT(a, 1, 3, 5, 7, 9, 11);
  weir_ok(weir_narrow(&b, t, 0, -2, 2));
  EXPECT(b, 4, 5, 6, 7, 8, 9, 10, 11);
  weir_ok(weir_select(&c, t, -1, -1));
  EXPECT(c, 3, 7, 11);
  shape_is(c, weir_shape(3));
  weir_ok(weir_slice(&d, t, 0, 2, 1, 1));
  shape_is(d, weir_shape(0, 4));
  weir_ok(weir_slice(&e, t, 0, 1, INT64_MAX, INT64_MAX));
  EXPECT(e, 4, 5, 6, 7);
}
END_TEST

START_TEST(dimensions_of_one_come_and_go)
{
  WEIR_TENSOR t = counting(weir_shape(2, 1, 3), WEIR_FLOAT32, cpu);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR d = NULL;
  weir_ok(weir_squeeze(&a, t, 1));
  shape_is(a, weir_shape(2, 3));
  weir_ok(weir_squeeze(&b, t, 0));
  shape_is(b, weir_shape(2, 1, 3));
  weir_ok(weir_unsqueeze(&c, a, -1));
  shape_is(c, weir_shape(2, 3, 1));
  weir_ok(weir_expand(&d, t, weir_shape(4, -1, 5, 3)));
  shape_is(d, weir_shape(4, 2, 5, 3));
  strides_are(d, weir_shape(0, 3, 0, 1));
}
END_TEST

START_TEST(shapes_change_by_view_where_strides_allow_else_by_copy)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 6), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR halves = NULL;
  WEIR_TENSOR copy = NULL;
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR same = NULL;
  weir_ok(weir_t(&turned, t));
  weir_ok(weir_view(&halves, turned, weir_shape(3, 2, 2)));
  strides_are(halves, weir_shape(2, 1, 6));
  refused(WEIR_EINVAL,
          "view size is not compatible with input tensor's size and stride (at least one dimension "
          "spans across two contiguous subspaces). Use .reshape(...) instead.",
          weir_view(&copy, turned, weir_shape(12)));
  weir_ok(weir_reshape(&copy, turned, weir_shape(12)));
  EXPECT(copy, 0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11);
  ck_assert(!weir_tensor_shares_storage(copy, t));
  weir_ok(weir_flatten(&flat, t, 0, -1));
  shape_is(flat, weir_shape(12));
  ck_assert(weir_tensor_shares_storage(flat, t));
  weir_tensor_drop(&flat);
  weir_ok(weir_flatten(&flat, t, 1, -1));
  ck_assert_ptr_eq(flat, t);
  weir_ok(weir_reshape(&same, t, weir_shape(3, 4)));
  ck_assert(weir_tensor_shares_storage(same, t));
}
END_TEST

START_TEST(pieces_are_as_many_as_torchs)
{
  WEIR_TENSOR t = counting(weir_shape(5, 2), WEIR_INT32, cpu);
  weir_tensor *piece[8];
  int count;
  weir_ok(weir_chunk(piece, &count, t, 4, 0));
  ck_assert_int_eq(count, 3);
  shape_is(piece[2], weir_shape(1, 2));
  EXPECT(piece[1], 4, 5, 6, 7);
  for (int i = 0; i < count; i++)
    weir_tensor_release(piece[i]);
  weir_ok(weir_split(piece, &count, 8, t, 2, -2));
  ck_assert_int_eq(count, 3);
  EXPECT(piece[2], 8, 9);
  for (int i = 0; i < count; i++)
    weir_tensor_release(piece[i]);
  refused(WEIR_EINVAL, "there is room for 2 tensors, and split makes 3",
          weir_split(piece, &count, 2, t, 2, 0));
  ck_assert_int_eq(count, 0);
}
END_TEST

START_TEST(empty_tensors_and_numbers_have_views)
{
  WEIR_TENSOR none = counting(weir_shape(0, 3), WEIR_FLOAT32, cpu);
  WEIR_TENSOR one = counting(weir_shape_of(0, NULL), WEIR_FLOAT32, cpu);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  weir_tensor *piece[3];
  int count;
  weir_ok(weir_view(&a, none, weir_shape(5, 0)));
  weir_ok(weir_flatten(&b, one, 0, -1));
  shape_is(b, weir_shape(1));
  weir_ok(weir_transpose(&c, one, 0, -1));
  ck_assert_int_eq(weir_tensor_dim(c), 0);
  weir_ok(weir_chunk(piece, &count, none, 3, 0));
  ck_assert_int_eq(count, 3);
  for (int i = 0; i < count; i++) {
    shape_is(piece[i], weir_shape(0, 3));
    weir_tensor_release(piece[i]);
  }
}
END_TEST

START_TEST(shapes_that_do_not_hold_the_elements_are_refused)
{
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_FLOAT32, cpu);
  WEIR_TENSOR none = counting(weir_shape(0, 3), WEIR_FLOAT32, cpu);
  int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  weir_tensor *v;
  refused(WEIR_EINVAL, "shape '[4, 5]' is invalid for input of size 6",
          weir_view(&v, t, weir_shape(4, 5)));
  refused(WEIR_EINVAL, "shape '[-1, 4]' is invalid for input of size 6",
          weir_reshape(&v, t, weir_shape(-1, 4)));
  refused(WEIR_EINVAL, "only one dimension can be inferred", weir_view(&v, t, weir_shape(-1, -1)));
  refused(WEIR_EINVAL, "invalid shape dimension -2 at index 0 of shape [-2, 3]",
          weir_view(&v, t, weir_shape(-2, 3)));
  refused(
      WEIR_EINVAL,
      "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified dimension "
      "size -1 can be any value and is ambiguous",
      weir_view(&v, none, weir_shape(-1, 0)));
  refused(WEIR_EINVAL, "a tensor has 0 to 8 dimensions, not 9",
          weir_view(&v, t, weir_shape_of(9, nine)));
  refused(WEIR_EINVAL, "shape '[4611686018427387904, 4]' is invalid for input of size 6",
          weir_view(&v, t, weir_shape(INT64_C(1) << 62, 4)));
  refused(WEIR_EINVAL,
          "The expanded size of the tensor (4) must match the existing size (3) at non-singleton "
          "dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2, 3]",
          weir_expand(&v, t, weir_shape(2, 4)));
  refused(WEIR_EINVAL,
          "expand(weir.FloatTensor{[2, 3]}, size=[3]): the number of sizes provided (1) must be "
          "greater or equal to the number of dimensions in the tensor (2)",
          weir_expand(&v, t, weir_shape(3)));
  refused(WEIR_EINVAL,
          "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
          "0",
          weir_expand(&v, t, weir_shape(-1, 2, 3)));
  ck_assert_ptr_null(v);
}
END_TEST

START_TEST(dimensions_that_are_not_there_are_refused)
{
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_FLOAT32, cpu);
  WEIR_TENSOR cube = counting(weir_shape(2, 3, 4), WEIR_FLOAT32, cpu);
  WEIR_TENSOR deep = counting(weir_shape(1, 1, 1, 1, 1, 1, 1, 1), WEIR_FLOAT32, cpu);
  weir_tensor *v[4];
  int count;
  const char *text = "Dimension out of range (expected to be in range of [-2, 1], but got 2)";
  refused(WEIR_EINVAL, text, weir_transpose(v, t, 0, 2));
  refused(WEIR_EINVAL, text, weir_squeeze(v, t, 2));
  refused(WEIR_EINVAL, text, weir_flatten(v, t, 0, 2));
  refused(WEIR_EINVAL, text, weir_narrow(v, t, 2, 0, 1));
  refused(WEIR_EINVAL, text, weir_select(v, t, 2, 0));
  refused(WEIR_EINVAL, text, weir_slice(v, t, 2, 0, 1, 1));
  refused(WEIR_EINVAL, text, weir_chunk(v, &count, t, 2, 2));
  refused(WEIR_EINVAL, text, weir_split(v, &count, 4, t, 1, 2));
  refused(WEIR_EINVAL, "Dimension out of range (expected to be in range of [-3, 2], but got 4)",
          weir_unsqueeze(v, t, 4));
  refused(WEIR_EINVAL, "a tensor has 0 to 8 dimensions, not 9", weir_unsqueeze(v, deep, 0));
  refused(WEIR_EINVAL, "permute(): duplicate dims are not allowed.",
          weir_permute(v, t, (const int[]){0, -2}));
  refused(WEIR_EINVAL, "t() expects a tensor with <= 2 dimensions, but self is 3D",
          weir_t(v, cube));
  refused(WEIR_EINVAL, "flatten() has invalid args: start_dim cannot come after end_dim",
          weir_flatten(v, t, 1, 0));
}
END_TEST

START_TEST(parts_that_are_not_there_are_refused)
{
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_FLOAT32, cpu);
  WEIR_TENSOR one = counting(weir_shape_of(0, NULL), WEIR_FLOAT32, cpu);
  weir_tensor *v[4];
  int count;
  refused(WEIR_EINVAL, "start (1) + length (2) exceeds dimension size (2).",
          weir_narrow(v, t, 0, 1, 2));
  refused(WEIR_EINVAL, "start out of range (expected to be in range of [-2, 2], but got 3)",
          weir_narrow(v, t, 0, 3, 0));
  refused(WEIR_EINVAL, "narrow(): length must be non-negative.", weir_narrow(v, t, 0, 0, -1));
  refused(WEIR_EINVAL, "narrow() cannot be applied to a 0-dim tensor.",
          weir_narrow(v, one, 0, 0, 1));
  refused(WEIR_EINVAL, "select(): index 2 out of range for tensor of size [2, 3] at dimension 0",
          weir_select(v, t, 0, 2));
  refused(WEIR_EINVAL, "select() cannot be applied to a 0-dim tensor.", weir_select(v, one, 0, 0));
  refused(WEIR_EINVAL, "slice step must be positive", weir_slice(v, t, 0, 0, 2, 0));
  refused(WEIR_EINVAL, "slice() cannot be applied to a 0-dim tensor.",
          weir_slice(v, one, 0, 0, 1, 1));
  refused(WEIR_EINVAL, "chunk expects `chunks` to be greater than 0, got: 0",
          weir_chunk(v, &count, t, 0, 0));
  refused(WEIR_EINVAL, "chunk expects at least a 1-dimensional tensor",
          weir_chunk(v, &count, one, 2, 0));
  refused(WEIR_EINVAL, "split expects split_size be non-negative, but got split_size=-1",
          weir_split(v, &count, 4, t, -1, 0));
  refused(WEIR_EINVAL,
          "split_size can only be 0 if dimension size is 0, but got dimension size of 2",
          weir_split(v, &count, 4, t, 0, 0));
  refused(WEIR_EINVAL, "split expects at least a 1-dimensional tensor",
          weir_split(v, &count, 4, one, 1, 0));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_view_shares_its_storage,
                                a_view_keeps_the_storage_when_the_tensor_goes,
                                dimensions_are_exchanged,
                                parts_are_taken,
                                dimensions_of_one_come_and_go,
                                shapes_change_by_view_where_strides_allow_else_by_copy,
                                pieces_are_as_many_as_torchs,
                                empty_tensors_and_numbers_have_views,
                                shapes_that_do_not_hold_the_elements_are_refused,
                                dimensions_that_are_not_there_are_refused,
                                parts_that_are_not_there_are_refused,
                                NULL};
  return rig_run("tensor/view", tests, DEVICES_TRIED);
}
