/* test_indexing.c: elements chosen by index tensors and by masks (indexing.h).
 *
 * Values are small integers, so that sums are exact in every dtype and in any order: what a device
 * gives must be what the cpu gives, and that what a plain loop here gives. */
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

static const weir_dtype every_dtype[] = {WEIR_UINT8,   WEIR_INT8,    WEIR_INT16,    WEIR_INT32,
                                         WEIR_INT64,   WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32,
                                         WEIR_FLOAT64, WEIR_BOOL,    WEIR_COMPLEX64};
enum { DTYPES_TRIED = sizeof every_dtype / sizeof *every_dtype };

static weir_tensor *numbers(const double *values, weir_shape shape, weir_dtype dtype, weir_device d)
{
  weir_tensor *t;
  weir_options o = as(dtype, d);
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, shape, &o));
  return t;
}

/* A row of places, int64. */
#define ROW(d, ...)                                                                                \
  numbers((const double[]){__VA_ARGS__},                                                           \
          weir_shape((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))),           \
          WEIR_INT64, d)
#define GIVES(call, ...)                                                                           \
  do {                                                                                             \
    weir_tensor *made_ = NULL, **out_ = &made_;                                                    \
    weir_ok(call);                                                                                 \
    EXPECT(made_, __VA_ARGS__);                                                                    \
    weir_tensor_drop(out_);                                                                        \
  } while (0)

START_TEST(slices_are_selected_added_copied_and_filled)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, d);
  weir_tensor *r = NULL;
  WEIR_TENSOR i = ROW(d, 2, 0, 2);
  WEIR_TENSOR two = ROW(d, 0, 2);
  WEIR_TENSOR narrow = NULL;
  WEIR_TENSOR whole = counting(weir_shape(2), WEIR_FLOAT32, d);
  WEIR_TENSOR s = numbers((const double[]){10, 20, 30, 40}, weir_shape(2, 2), WEIR_FLOAT32, d);
  GIVES(weir_index_select(&made_, a, 1, i), 2, 0, 2, 5, 3, 5);
  weir_ok(weir_to_dtype(&narrow, i, WEIR_INT32));
  GIVES(weir_index_select(&made_, a, -1, narrow), 2, 0, 2, 5, 3, 5);
  GIVES(weir_index_add(&made_, a, 1, two, s), 10, 1, 22, 33, 4, 45);
  GIVES(weir_index_add_alpha(&made_, a, 1, two, s, weir_int(2)), 20, 1, 42, 63, 4, 85);
  GIVES(weir_index_copy(&made_, a, 1, two, s), 10, 1, 20, 30, 4, 40);
  WEIR_TENSOR last = ROW(d, -1);
  GIVES(weir_index_fill(&made_, a, 1, last, weir_int(7)), 0, 1, 7, 3, 4, 7);
  weir_ok(weir_index_add_(a, 1, two, s));
  weir_ok(weir_index_add_alpha_(a, 1, two, s, weir_int(-1)));
  weir_ok(weir_index_copy_(a, 1, two, s));
  weir_ok(weir_index_fill_(a, 0, last, weir_int(9)));
  EXPECT(a, 10, 1, 20, 9, 9, 9);
  refused(WEIR_EINVAL, "index_select(): Expected dtype int32 or int64 for index",
          weir_index_select(&r, a, 1, whole));
  refused(WEIR_EINVAL,
          "index_add_(): self (Float) and source (Long) must have the same scalar type",
          weir_index_add_(a, 1, two, i));
}
END_TEST

START_TEST(elements_are_gathered_and_scattered)
{
  devices(2);
  weir_device d = device(_i);
  weir_tensor *r = NULL;
  WEIR_TENSOR row = ROW(d, 1);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_INT32, d);
  WEIR_TENSOR i = numbers((const double[]){2, 0, 1, 1}, weir_shape(2, 2), WEIR_INT64, d);
  WEIR_TENSOR src = numbers((const double[]){10, 20, 30, 40}, weir_shape(2, 2), WEIR_INT32, d);
  GIVES(weir_gather(&made_, a, 1, i), 2, 0, 4, 4);
  GIVES(weir_scatter_value(&made_, a, 1, i, weir_int(7)), 7, 1, 7, 3, 7, 5);
  GIVES(weir_scatter_add(&made_, a, 1, i, src), 20, 1, 12, 3, 74, 5);
  weir_ok(weir_scatter_add_(a, 1, i, src));
  EXPECT(a, 20, 1, 12, 3, 74, 5);
  weir_ok(weir_scatter_value_(a, 1, i, weir_int(0)));
  EXPECT(a, 0, 1, 0, 3, 0, 5);
  WEIR_TENSOR one = numbers((const double[]){1, 0}, weir_shape(2, 1), WEIR_INT64, d);
  GIVES(weir_scatter(&made_, a, 1, one, src), 0, 10, 0, 30, 0, 5);
  weir_ok(weir_scatter_(a, 1, one, src));
  EXPECT(a, 0, 10, 0, 30, 0, 5);
  WEIR_TENSOR wrap = numbers((const double[]){-1, 0}, weir_shape(2, 1), WEIR_INT64, d);
  GIVES(weir_take_along_dim(&made_, a, wrap, 1), 0, 30);
  refused(WEIR_EINVAL, "Index tensor must have the same number of dimensions as input tensor",
          weir_gather(&r, a, 1, row));
  refused(WEIR_EINVAL, "scatter(): Expected self.dtype to be equal to src.dtype",
          weir_scatter_(a, 1, one, one));
}
END_TEST

START_TEST(a_reduction_is_of_all_that_is_scattered_to_an_element)
{
  static const struct {
    weir_scatter_op op;
    double with[3], without[3];
  } cases[] = {{WEIR_SCATTER_SUM, {9, 5, 7}, {8, 3, 7}},
               {WEIR_SCATTER_PROD, {12, 6, 7}, {12, 3, 7}},
               {WEIR_SCATTER_MEAN, {3, 2.5, 7}, {4, 3, 7}},
               {WEIR_SCATTER_AMAX, {6, 3, 7}, {6, 3, 7}},
               {WEIR_SCATTER_AMIN, {1, 2, 7}, {2, 3, 7}}};
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = numbers((const double[]){1, 2, 7}, weir_shape(3), WEIR_FLOAT32, d);
  WEIR_TENSOR i = ROW(d, 0, 1, 0);
  WEIR_TENSOR src = numbers((const double[]){2, 3, 6}, weir_shape(3), WEIR_FLOAT32, d);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
    for (int with = 0; with < 2; with++) {
      WEIR_TENSOR r = NULL;
      WEIR_TENSOR same = NULL;
      const double *want = with ? cases[n].with : cases[n].without;
      weir_ok(weir_scatter_reduce(&r, a, 0, i, src, cases[n].op, with));
      elements_are(r, 3, want);
      weir_ok(weir_clone(&same, a));
      weir_ok(weir_scatter_reduce_(same, 0, i, src, cases[n].op, with));
      elements_are(same, 3, want);
    }
  WEIR_TENSOR truth = numbers((const double[]){1, 0, 1}, weir_shape(3), WEIR_BOOL, d);
  weir_tensor *r = NULL;
  refused_with(WEIR_ENOTSUP, "reduce_mean\" not implemented for 'Bool'",
               weir_scatter_reduce(&r, truth, 0, i, truth, WEIR_SCATTER_MEAN, true));
}
END_TEST

START_TEST(a_list_of_indices_chooses_as_torch_places_it)
{
  devices(2);
  weir_device d = device(_i);
  weir_tensor *r = NULL;
  WEIR_TENSOR a = counting(weir_shape(2, 3, 4), WEIR_INT64, d);
  WEIR_TENSOR one = ROW(d, 0, -1);
  WEIR_TENSOR column = numbers((const double[]){2, 0}, weir_shape(2, 1), WEIR_INT64, d);
  WEIR_TENSOR mask = numbers((const double[]){0, 1, 0, 1, 0, 0}, weir_shape(2, 3), WEIR_BOOL, d);
  GIVES(weir_index(&made_, a, (const weir_tensor *[]){one, one, one}, 3), 0, 23);
  GIVES(weir_index(&made_, a, (const weir_tensor *[]){NULL, NULL, one}, 3), 0, 3, 4, 7, 8, 11, 12,
        15, 16, 19, 20, 23);
  weir_ok(weir_index(&r, a, (const weir_tensor *[]){NULL, column, one}, 3));
  shape_is(r, weir_shape(2, 2, 2));
  EXPECT(r, 8, 11, 0, 3, 20, 23, 12, 15);
  weir_tensor_drop(&r);
  weir_ok(weir_index(&r, a, (const weir_tensor *[]){one, NULL, column}, 3));
  shape_is(r, weir_shape(2, 2, 3));
  EXPECT(r, 2, 6, 10, 14, 18, 22, 0, 4, 8, 12, 16, 20);
  weir_tensor_drop(&r);
  GIVES(weir_index(&made_, a, (const weir_tensor *[]){mask}, 1), 4, 5, 6, 7, 12, 13, 14, 15);
  WEIR_TENSOR v = numbers((const double[]){-1}, weir_shape(1), WEIR_INT64, d);
  weir_ok(weir_index_put(&r, a, (const weir_tensor *[]){one, one, one}, 3, v, false));
  GIVES(weir_index(&made_, r, (const weir_tensor *[]){one, one, one}, 3), -1, -1);
  weir_tensor_drop(&r);
  WEIR_TENSOR twice = ROW(d, 1, 1);
  WEIR_TENSOR three = ROW(d, 0, 0, 0);
  weir_ok(weir_index_put_(a, (const weir_tensor *[]){twice, NULL, twice}, 3, v, true));
  GIVES(weir_index(&made_, a, (const weir_tensor *[]){twice, NULL, twice}, 3), 11, 15, 19, 11, 15,
        19);
  refused(WEIR_EINVAL,
          "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
          weir_index(&r, a, (const weir_tensor *[]){one, three}, 2));
  refused(WEIR_EINVAL,
          "The shape of the mask [2, 3] at index 0 does not match the shape of the indexed tensor "
          "[2, 3, 4] at index 1",
          weir_index(&r, a, (const weir_tensor *[]){NULL, mask}, 2));
  refused(WEIR_EINVAL, "too many indices for tensor of dimension 3 (got 4)",
          weir_index(&r, a, (const weir_tensor *[]){one, one, one, one}, 4));
  refused(WEIR_EINVAL, "at least one index must be provided",
          weir_index(&r, a, (const weir_tensor *[]){NULL}, 1));
}
END_TEST

START_TEST(masks_fill_select_and_scatter)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, d);
  WEIR_TENSOR m = numbers((const double[]){1, 0, 1}, weir_shape(3), WEIR_BOOL, d);
  WEIR_TENSOR v = numbers((const double[]){2.5}, weir_shape_of(0, NULL), WEIR_FLOAT64, d);
  WEIR_TENSOR s = counting(weir_shape(9), WEIR_FLOAT32, d);
  GIVES(weir_masked_fill(&made_, a, m, weir_int(-1)), -1, 1, -1, -1, 4, -1);
  GIVES(weir_masked_fill_tensor(&made_, a, m, v), 2.5, 1, 2.5, 2.5, 4, 2.5);
  GIVES(weir_masked_select(&made_, a, m), 0, 2, 3, 5);
  GIVES(weir_masked_scatter(&made_, a, m, s), 0, 1, 1, 2, 4, 3);
  weir_ok(weir_masked_scatter_(a, m, s));
  EXPECT(a, 0, 1, 1, 2, 4, 3);
  weir_ok(weir_masked_fill_(a, m, weir_int(8)));
  EXPECT(a, 8, 1, 8, 8, 4, 8);
  weir_ok(weir_masked_fill_tensor_(a, m, v));
  EXPECT(a, 2.5, 1, 2.5, 2.5, 4, 2.5);
  refused(WEIR_EINVAL, "masked_fill_ only supports boolean masks, but got mask with dtype float",
          weir_masked_fill_(a, a, weir_int(0)));
  WEIR_TENSOR few = counting(weir_shape(3), WEIR_FLOAT32, d);
  refused(WEIR_EINVAL, "Number of elements of source < number of ones in mask",
          weir_masked_scatter_(a, m, few));
  EXPECT(a, 2.5, 1, 2.5, 2.5, 4, 2.5);
}
END_TEST

START_TEST(places_are_those_of_what_is_not_0)
{
  devices(2);
  weir_device d = device(_i);
  weir_tensor *r = NULL, *by[2] = {NULL};
  int count;
  WEIR_TENSOR a = numbers((const double[]){0, 3, 0, 0, -1, 2}, weir_shape(2, 3), WEIR_FLOAT16, d);
  weir_ok(weir_nonzero(&r, a));
  shape_is(r, weir_shape(3, 2));
  strides_are(r, weir_shape(1, 3));
  EXPECT(r, 0, 1, 1, 1, 1, 2);
  weir_tensor_drop(&r);
  GIVES(weir_argwhere(&made_, a), 0, 1, 1, 1, 1, 2);
  weir_ok(weir_nonzero_tuple(by, &count, 2, a));
  ck_assert_int_eq(count, 2);
  EXPECT(by[0], 0, 1, 1);
  EXPECT(by[1], 1, 1, 2);
  weir_tensor_drop(&by[0]);
  weir_tensor_drop(&by[1]);
  GIVES(weir_take(&made_, a, r = ROW(d, 1, -1, -2)), 3, 2, -1);
  WEIR_TENSOR s = numbers((const double[]){5, 6, 7}, weir_shape(3), WEIR_FLOAT16, d);
  GIVES(weir_put(&made_, a, r, s, false), 0, 5, 0, 0, 7, 6);
  weir_ok(weir_put_(a, r, s, true));
  EXPECT(a, 0, 8, 0, 0, 6, 8);
  weir_tensor_drop(&r);
  GIVES(weir_repeat_interleave(&made_, s, 2, 0), 5, 5, 6, 6, 7, 7);
  WEIR_TENSOR times = ROW(d, 0, 3, 1);
  GIVES(weir_repeat_interleave_tensor(&made_, s, times, 0), 6, 6, 6, 7);
  WEIR_TENSOR none = ROW(d, 0, -3, 1);
  refused(WEIR_EINVAL, "repeats can not be negative",
          weir_repeat_interleave_tensor(&r, s, none, 0));
}
END_TEST

START_TEST(tables_and_triangles_are_indexed)
{
  devices(2);
  weir_device d = device(_i);
  weir_options o = on(d);
  weir_tensor *r = NULL;
  WEIR_TENSOR w = counting(weir_shape(3, 2), WEIR_FLOAT32, d);
  WEIR_TENSOR i = numbers((const double[]){2, 0, 2, 1}, weir_shape(2, 2), WEIR_INT64, d);
  refused(WEIR_EINVAL, "Padding_idx must be within num_embeddings",
          weir_embedding_with(
              &r, i, w, &(weir_embedding_with_options){.has_padding = true, .padding_idx = 100}));
  ck_assert_ptr_null(r);
  weir_ok(weir_embedding(&r, i, w));
  shape_is(r, weir_shape(2, 2, 2));
  EXPECT(r, 4, 5, 0, 1, 4, 5, 2, 3);
  GIVES(weir_embedding_dense_backward(&made_, r, i, 3, -1, false), 0, 1, 2, 3, 8, 10);
  GIVES(weir_embedding_dense_backward(&made_, r, i, 3, 0, true), 0, 0, 2, 3, 4, 5);
  weir_tensor_drop(&r);
  WEIR_TENSOR row = ROW(d, 1, 0);
  GIVES(weir_one_hot(&made_, row, -1), 0, 1, 1, 0);
  refused(WEIR_EINVAL, "Class values must be smaller than num_classes.", weir_one_hot(&r, row, 1));
  GIVES(weir_tril_indices(&made_, 3, 2, 0, &o), 0, 1, 1, 2, 2, 0, 0, 1, 0, 1);
  GIVES(weir_triu_indices(&made_, 2, 3, 1, &o), 0, 0, 1, 1, 2, 2);
}
END_TEST

START_TEST(rows_are_put_together_by_bag)
{
  devices(2);
  weir_device d = device(_i);
  weir_tensor *r = NULL;
  WEIR_TENSOR w = counting(weir_shape(4, 2), WEIR_FLOAT32, d);
  WEIR_TENSOR i = ROW(d, 0, 1, 2, 2);
  WEIR_TENSOR pairs = numbers((const double[]){0, 1, 2, 2}, weir_shape(2, 2), WEIR_INT64, d);
  WEIR_TENSOR at = ROW(d, 0, 0, 3);
  WEIR_TENSOR ends = ROW(d, 0, 0, 3, 4);
  WEIR_TENSOR each = numbers((const double[]){1, 2, 3, 4}, weir_shape(4), WEIR_FLOAT32, d);
  weir_embedding_bag_options sum = {.mode = WEIR_BAG_SUM}, largest = {.mode = WEIR_BAG_MAX};
  GIVES(weir_embedding_bag(&made_, i, w, at, NULL, NULL), 0, 0, 2, 3, 4, 5);
  GIVES(weir_embedding_bag(&made_, i, w, at, NULL, &sum), 0, 0, 6, 9, 4, 5);
  GIVES(weir_embedding_bag(&made_, i, w, at, each, &sum), 0, 0, 16, 22, 16, 20);
  GIVES(weir_embedding_bag(&made_, i, w, at, NULL, &largest), 0, 0, 4, 5, 4, 5);
  GIVES(weir_embedding_bag(&made_, pairs, w, NULL, NULL, &sum), 2, 4, 8, 10);
  sum.include_last_offset = true;
  GIVES(weir_embedding_bag(&made_, i, w, ends, NULL, &sum), 0, 0, 6, 9, 4, 5);
  largest.has_padding = true, largest.padding_idx = -2;
  GIVES(weir_embedding_bag(&made_, i, w, at, NULL, &largest), 0, 0, 2, 3, 0, 0);
  weir_embedding_bag_options left = {.mode = WEIR_BAG_MEAN, .has_padding = true, .padding_idx = 2};
  GIVES(weir_embedding_bag(&made_, i, w, at, NULL, &left), 0, 0, 1, 2, 0, 0);
  refused(WEIR_EINVAL, "offsets has to be a 1D Tensor but got None",
          weir_embedding_bag(&r, i, w, NULL, NULL, NULL));
  refused_with(WEIR_ENOTSUP, "only supported for mode='sum' (got mode='mean')",
               weir_embedding_bag(&r, i, w, at, each, NULL));
}
END_TEST

START_TEST(parts_are_replaced_in_a_copy)
{
  devices(2);
  weir_device d = device(_i);
  weir_tensor *r = NULL;
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, d);
  WEIR_TENSOR s = numbers((const double[]){7, 8}, weir_shape(2), WEIR_INT32, d);
  WEIR_TENSOR two = numbers((const double[]){7, 8, 9, 6}, weir_shape(2, 2), WEIR_FLOAT32, d);
  GIVES(weir_diagonal_scatter(&made_, a, s, 1, 0, 1), 0, 7, 2, 3, 4, 8);
  GIVES(weir_select_scatter(&made_, a, s, 1, -1), 0, 1, 7, 3, 4, 8);
  GIVES(weir_slice_scatter(&made_, a, two, 1, 0, 3, 2), 7, 1, 8, 9, 4, 6);
  EXPECT(a, 0, 1, 2, 3, 4, 5);
  refused(
      WEIR_EINVAL,
      "expected src to have a size equal to the slice of self. src size = [2], slice size = [3]",
      weir_select_scatter(&r, a, s, 0, 0));
}
END_TEST

/* As many of each number as there shall be. */
static void is_permutation(const weir_tensor *t, int64_t n)
{
  int64_t *place = malloc((size_t)(n + 1) * sizeof *place);
  char *seen = calloc((size_t)n + 1, 1);
  ck_assert(place && seen);
  weir_ok(weir_tensor_read(place, (size_t)n * sizeof *place, WEIR_INT64, t));
  for (int64_t i = 0; i < n; i++) {
    ck_assert(place[i] >= 0 && place[i] < n && !seen[place[i]]);
    seen[place[i]] = 1;
  }
  free(place);
  free(seen);
}

START_TEST(a_permutation_has_every_number_once_and_is_its_seeds)
{
  static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, 1 << 16, 100003};
  devices(2);
  weir_device d = device(_i);
  weir_options o = on(d), here = on(cpu), small = as(WEIR_FLOAT16, d);
  weir_tensor *r = NULL;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    WEIR_TENSOR one = NULL;
    WEIR_TENSOR same = NULL;
    WEIR_TENSOR back = NULL;
    bool equal;
    weir_manual_seed(i + 5);
    weir_ok(weir_randperm(&one, counts[i], &o));
    is_permutation(one, counts[i]);
    weir_manual_seed(i + 5);
    weir_ok(weir_randperm(&same, counts[i], &here));
    weir_ok(weir_cpu(&back, one));
    weir_ok(weir_equal(&equal, same, back));
    ck_assert(equal);
  }
  weir_ok(weir_randperm(&r, 2049, &small));
  is_permutation(r, 2049);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "n cannot be greater than 2049 for Half type.",
          weir_randperm(&r, 2050, &small));
  refused(WEIR_EINVAL, "Trying to create tensor with negative dimension -1: [-1]",
          weir_randperm(&r, -1, &o));
}
END_TEST

START_TEST(all_permutations_of_few_come_equally_often)
{
  enum { TIMES = 12000, FEW = 4, ALL = 24 };
  int seen[256] = {0}, kinds = 0;
  weir_options o = on(cpu);
  weir_manual_seed(1);
  for (int i = 0; i < TIMES; i++) {
    WEIR_TENSOR t = NULL;
    int64_t p[FEW];
    weir_ok(weir_randperm(&t, FEW, &o));
    weir_ok(weir_tensor_read(p, sizeof p, WEIR_INT64, t));
    seen[p[0] | p[1] << 2 | p[2] << 4 | p[3] << 6]++;
  }
  double far = 0, mean = (double)TIMES / ALL;
  for (int i = 0; i < 256; i++) {
    if (!seen[i]) continue;
    kinds++;
    far += (seen[i] - mean) * (seen[i] - mean) / mean;
  }
  ck_assert_int_eq(kinds, ALL);
  ck_assert_msg(far < 60, "chi-square of 23 degrees of freedom is %g", far);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

static void the_wait_says(weir_device d, const char *sentence)
{
  refused(WEIR_EINVAL, sentence, weir_synchronize(d));
  weir_ok(weir_synchronize(d));
}

START_TEST(an_index_out_of_bounds_writes_nothing)
{
  devices(2);
  weir_device d = device(_i);
  weir_tensor *r = NULL;
  static const char out[] = "index 5 is out of bounds for dimension 0 with size 3";
  WEIR_TENSOR a = counting(weir_shape(3), WEIR_FLOAT32, d);
  WEIR_TENSOR i = ROW(d, 0, 5);
  WEIR_TENSOR s = numbers((const double[]){7, 8}, weir_shape(2), WEIR_FLOAT32, d);
  if (!_i) {
    refused(WEIR_EINVAL, out, weir_gather(&r, a, 0, i));
    ck_assert_ptr_null(r);
    refused(WEIR_EINVAL, out, weir_scatter_(a, 0, i, s));
    refused(WEIR_EINVAL, out, weir_scatter_add_(a, 0, i, s));
    refused(WEIR_EINVAL, out, weir_index_put_(a, (const weir_tensor *[]){i}, 1, s, true));
    refused(WEIR_EINVAL, out, weir_index_fill_(a, 0, i, weir_int(1)));
    refused(WEIR_EINVAL, "index out of range in self", weir_index_select(&r, a, 0, i));
    refused(WEIR_EINVAL, "out of range: tried to access index 5 on a tensor of 3 elements.",
            weir_take(&r, a, i));
    EXPECT(a, 0, 1, 2);
    return;
  }
  weir_ok(weir_gather(&r, a, 0, i));
  the_wait_says(d, out);
  EXPECT(r, 0, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_scatter_(a, 0, i, s));
  the_wait_says(d, out);
  EXPECT(a, 7, 1, 2);
  weir_ok(weir_scatter_add_(a, 0, i, s));
  double first;
  WEIR_TENSOR part = NULL;
  weir_ok(weir_narrow(&part, a, 0, 0, 1));
  refused(WEIR_EINVAL, out, weir_tensor_read(&first, sizeof first, WEIR_FLOAT64, part));
  EXPECT(a, 14, 1, 2);
  weir_set_launch_blocking(true);
  refused_with(WEIR_EINVAL, out, weir_gather(&r, a, 0, i));
  weir_set_launch_blocking(false);
  ck_assert_ptr_null(r);
}
END_TEST

START_TEST(what_shares_memory_with_its_index_or_values_is_refused)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = counting(weir_shape(3), WEIR_INT64, d);
  WEIR_TENSOR one = ROW(d, 0);
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR wide = NULL;
  refused_with(WEIR_EINVAL, "refer to a single memory location", weir_index_copy_(a, 0, a, a));
  refused_with(WEIR_EINVAL, "refer to a single memory location", weir_scatter_add_(a, 0, a, a));
  weir_ok(weir_narrow(&flat, a, 0, 1, 1));
  weir_ok(weir_expand(&wide, flat, weir_shape(3)));
  refused_with(WEIR_EINVAL, "more than one element of the written-to tensor",
               weir_scatter_value_(wide, 0, one, weir_int(1)));
  EXPECT(a, 0, 1, 2);
}
END_TEST

/* ---- devices and threads --------------------------------------------------------------------- */

static uint64_t seed = 1;

static int64_t number_below(int64_t n)
{
  return (int64_t)(rig_random(&seed) % (uint64_t)n);
}

/* Small numbers, perhaps with their dimensions in another order in memory; on both devices. */
static void make_pair(weir_tensor *t[2], weir_shape shape, weir_dtype dtype, int64_t low,
                      int64_t high, weir_device d)
{
  double values[512];
  int64_t n = 1;
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  ck_assert(n <= 512);
  for (int64_t i = 0; i < n; i++)
    values[i] = (double)(low + number_below(high - low));
  bool turned = shape.count == 2 && number_below(2);
  weir_shape lies = turned ? weir_shape(shape.size[1], shape.size[0]) : shape;
  for (int i = 0; i < 2; i++) {
    t[i] = numbers(values, lies, dtype, i ? d : cpu);
    if (!turned) continue;
    weir_tensor *was = t[i];
    weir_ok(weir_transpose(&t[i], was, 0, 1));
    weir_tensor_release(was);
  }
}

static void drop_pair(weir_tensor *t[2])
{
  weir_tensor_release(t[0]);
  weir_tensor_release(t[1]);
}

static void compare_and_drop(weir_tensor *t[2])
{
  bool same;
  weir_tensor *back;
  weir_ok(weir_cpu(&back, t[1]));
  weir_ok(weir_equal(&same, t[0], back));
  ck_assert(same);
  weir_tensor_release(back);
  drop_pair(t);
}

static weir_status one_of(int kind, weir_tensor **out, weir_tensor *a, weir_tensor *i,
                          weir_tensor *s, weir_tensor *m, int dim)
{
  switch (kind) {
  case 0:
    return weir_gather(out, a, dim, i);
  case 1:
    return weir_scatter_add(out, a, dim, i, s);
  case 2:
  case 3:
  case 4:
  case 5:
    return weir_scatter_reduce(out, a, dim, i, s, (weir_scatter_op)(kind - 1), kind % 2);
  case 6:
    return weir_scatter_value(out, a, dim, i, weir_int(1));
  case 7:
    return weir_masked_select(out, a, m);
  case 8:
    return weir_nonzero(out, a);
  case 9:
    return weir_index(out, a, (const weir_tensor *[]){dim ? NULL : i, dim ? i : NULL}, 2);
  default:
    return weir_masked_scatter(out, a, m, a);
  }
}

START_TEST(every_device_gives_what_the_cpu_gives_in_every_dtype)
{
  devices(2);
  weir_device d = device(_i);
  for (int n = 0; n < 12 * DTYPES_TRIED; n++) {
    weir_dtype dtype = every_dtype[n % DTYPES_TRIED];
    int kind = n / DTYPES_TRIED % 11, dim = (int)number_below(2);
    bool ordered = number_below(2), extremes = kind == 4 || kind == 5;
    if (dtype == WEIR_COMPLEX64 && extremes) continue;
    if (dtype == WEIR_BOOL && kind == 3) continue;
    weir_shape shape = weir_shape(1 + number_below(20), 1 + number_below(20)), of = shape;
    weir_tensor *a[2], *i[2], *s[2], *m[2], *r[2] = {NULL};
    of.size[dim] = 1 + number_below(24);
    make_pair(a, shape, dtype, 0, 3, d);
    make_pair(i, of, number_below(2) ? WEIR_INT64 : WEIR_INT32, 0, shape.size[dim], d);
    make_pair(s, of, dtype, 0, 3, d);
    make_pair(m, shape, WEIR_BOOL, 0, 2, d);
    weir_set_deterministic(ordered);
    for (int k = 0; k < 2; k++)
      weir_ok(one_of(kind, &r[k], a[k], i[k], s[k], m[k], dim));
    weir_set_deterministic(false);
    compare_and_drop(r);
    drop_pair(a);
    drop_pair(i);
    drop_pair(s);
    drop_pair(m);
  }
}
END_TEST

START_TEST(in_order_the_last_of_several_values_stays)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = counting(weir_shape(2, 70), WEIR_INT32, d);
  WEIR_TENSOR i = NULL;
  WEIR_TENSOR s = counting(weir_shape(2, 300), WEIR_INT32, d);
  weir_options o = as(WEIR_INT64, d);
  weir_ok(weir_zeros(&i, weir_shape(2, 300), &o));
  weir_set_deterministic(true);
  weir_ok(weir_scatter_(a, 1, i, s));
  weir_set_deterministic(false);
  WEIR_TENSOR first = NULL;
  weir_ok(weir_select(&first, a, 1, 0));
  EXPECT(first, 299, 599);
}
END_TEST

/* i -> a place below n, many to each, none in order. */
static int64_t spread(int64_t i, int64_t n)
{
  return (int64_t)((uint64_t)i * 2654435761U % (uint64_t)n);
}

START_TEST(threads_change_nothing)
{
  enum { MANY = 300000, PLACES = 1000, WIDE = 40 };
  devices(2);
  weir_device d = device(_i);
  int64_t *index = malloc(MANY * sizeof *index), *sum = calloc(PLACES, sizeof *sum),
          *got = malloc(MANY * sizeof *got);
  ck_assert(index && sum && got);
  for (int64_t i = 0; i < MANY; i++) {
    index[i] = spread(i, PLACES);
    sum[index[i]] += i;
  }
  weir_options o = as(WEIR_INT64, d);
  WEIR_TENSOR places = NULL;
  WEIR_TENSOR sums = NULL;
  WEIR_TENSOR back = NULL;
  WEIR_TENSOR values = counting(weir_shape(MANY), WEIR_INT64, d);
  weir_ok(weir_tensor_from(&places, index, WEIR_INT64, weir_shape(MANY), &o));
  weir_ok(weir_zeros(&sums, weir_shape(PLACES), &o));
  weir_ok(weir_scatter_add_(sums, 0, places, values));
  weir_ok(weir_tensor_read(got, PLACES * sizeof *got, WEIR_INT64, sums));
  ck_assert_int_eq(memcmp(got, sum, PLACES * sizeof *got), 0);
  weir_ok(weir_index_select(&back, sums, 0, places));
  weir_ok(weir_tensor_read(got, MANY * sizeof *got, WEIR_INT64, back));
  for (int64_t i = 0; i < MANY; i++)
    ck_assert_int_eq(got[i], sum[index[i]]);
  WEIR_TENSOR rows = counting(weir_shape(MANY / WIDE, WIDE), WEIR_INT64, d);
  WEIR_TENSOR some = NULL;
  WEIR_TENSOR table = NULL;
  weir_ok(weir_narrow(&some, places, 0, 0, MANY / WIDE));
  weir_ok(weir_zeros(&table, weir_shape(PLACES, WIDE), &o));
  weir_ok(weir_index_add_(table, 0, some, rows));
  weir_ok(weir_tensor_read(got, (size_t)PLACES * WIDE * sizeof *got, WEIR_INT64, table));
  for (int64_t i = 0; i < MANY / WIDE; i++)
    for (int64_t k = 0; k < WIDE; k++)
      got[index[i] * WIDE + k] -= i * WIDE + k;
  for (int64_t i = 0; i < (int64_t)PLACES * WIDE; i++)
    ck_assert_int_eq(got[i], 0);
  free(index);
  free(sum);
  free(got);
}
END_TEST

START_TEST(places_of_many_chunks_are_all_there)
{
  enum { MANY = 50000 };
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = counting(weir_shape(50, 1000), WEIR_INT32, d);
  WEIR_TENSOR rest = NULL;
  WEIR_TENSOR odd = NULL;
  WEIR_TENSOR places = NULL;
  int64_t *got = malloc(2 * MANY * sizeof *got);
  ck_assert_ptr_nonnull(got);
  weir_ok(weir_floor_divide_scalar(&rest, a, weir_int(7)));
  weir_ok(weir_mul_scalar_(rest, weir_int(7)));
  weir_ok(weir_eq(&odd, rest, a)); /* multiples of 7 */
  weir_ok(weir_nonzero(&places, odd));
  int64_t n = weir_tensor_size(places, 0);
  ck_assert_int_eq(n, (MANY + 6) / 7);
  weir_ok(weir_tensor_read(got, (size_t)n * 2 * sizeof *got, WEIR_INT64, places));
  for (int64_t i = 0; i < n; i++)
    ck_assert_int_eq(got[2 * i] * 1000 + got[2 * i + 1], 7 * i);
  free(got);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {slices_are_selected_added_copied_and_filled,
                                elements_are_gathered_and_scattered,
                                a_reduction_is_of_all_that_is_scattered_to_an_element,
                                a_list_of_indices_chooses_as_torch_places_it,
                                masks_fill_select_and_scatter,
                                places_are_those_of_what_is_not_0,
                                tables_and_triangles_are_indexed,
                                rows_are_put_together_by_bag,
                                parts_are_replaced_in_a_copy,
                                a_permutation_has_every_number_once_and_is_its_seeds,
                                all_permutations_of_few_come_equally_often,
                                an_index_out_of_bounds_writes_nothing,
                                what_shares_memory_with_its_index_or_values_is_refused,
                                every_device_gives_what_the_cpu_gives_in_every_dtype,
                                in_order_the_last_of_several_values_stays,
                                threads_change_nothing,
                                places_of_many_chunks_are_all_there,
                                NULL};
  return rig_run("ops/indexing", tests, TRIED);
}
