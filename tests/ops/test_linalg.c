/* test_linalg.c: sums of products, products added to something, distances, factorisations. */
#include <math.h>
#include <stdlib.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

/* A tensor of these numbers, of float64 read as `dtype`. */
static weir_tensor *of_numbers(const double *values, weir_shape shape, weir_dtype dtype,
                               weir_device d)
{
  weir_tensor *t;
  weir_options o = as(dtype, d);
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, shape, &o));
  return t;
}

/* ---- einsum ---------------------------------------------------------------------------------- */

START_TEST(equations_sum_products_over_the_letters_that_the_output_lacks)
{
  static const struct {
    const char *text;
    int operands, count;
    double is[6];
  } rows[] = {
      {"ij,jk->ik", 2, 4, {10, 13, 28, 40}},
      {"ij,jk", 2, 4, {10, 13, 28, 40}},
      {"ij,jk->ki", 2, 4, {10, 28, 13, 40}},
      {"ij,jk->", 2, 1, {91}},
      {" i j , j k -> k ", 2, 2, {38, 53}},
      {"ij->ji", 1, 6, {0, 3, 1, 4, 2, 5}},
      {"ij->j", 1, 3, {3, 5, 7}},
      {"...j->...", 1, 2, {3, 12}},
      {"...ij,...jk->...ik", 2, 4, {10, 13, 28, 40}},
      {"...->", 1, 1, {15}},
  };
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR b = counting(weir_shape(3, 2), WEIR_FLOAT32, device(_i));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    WEIR_TENSOR out = NULL;
    weir_ok(weir_einsum(&out, rows[i].text, (const weir_tensor *[]){a, b}, rows[i].operands));
    elements_are(out, rows[i].count, rows[i].is);
    is_on(out, device(_i));
  }
}
END_TEST

START_TEST(repeated_letters_take_diagonals_and_batches_stay)
{
  devices(2);
  WEIR_TENSOR square = counting(weir_shape(3, 3), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR batch = counting(weir_shape(2, 2, 3), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR row = counting(weir_shape(3), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR diagonal = NULL;
  WEIR_TENSOR trace = NULL;
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR three = NULL;
  weir_ok(weir_einsum(&diagonal, "ii->i", (const weir_tensor *[]){square}, 1));
  EXPECT(diagonal, 0, 4, 8);
  ck_assert(weir_tensor_shares_storage(diagonal, square));
  weir_ok(weir_einsum(&trace, "ii", (const weir_tensor *[]){square}, 1));
  EXPECT(trace, 12);
  weir_ok(weir_einsum(&rows, "bij,j->bi", (const weir_tensor *[]){batch, row}, 2));
  EXPECT(rows, 5, 14, 23, 32);
  shape_is(rows, weir_shape(2, 2));
  weir_ok(weir_einsum(&three, "bij,jk,k->bi", (const weir_tensor *[]){batch, square, row}, 3));
  EXPECT(three, 5 * 0 + 14 + 2 * 23, 3 * 5 + 4 * 14 + 5 * 23, 6 * 5 + 7 * 14 + 8 * 23,
         9 * 5 + 10 * 14 + 11 * 23);
}
END_TEST

START_TEST(equations_that_do_not_fit_are_refused_in_torchs_words)
{
  static const struct {
    const char *text, *says;
    int operands;
  } rows[] = {
      {"ij,jk", "einsum(): more operands were provided than specified in the equation", 3},
      {"ij,jk,kl,lm", "einsum(): fewer operands were provided than specified in the equation", 2},
      {"i1,jk",
       "einsum(): invalid subscript given at index 1 in the equation string, subscripts "
       "must be in [a-zA-Z]",
       2},
      {"ij,jk->i?",
       "einsum(): invalid subscript given at index 8 in the equation string, "
       "subscripts must be in [a-zA-Z]",
       2},
      {"i.j,jk", "einsum(): found '.' for operand 0 that is not part of any ellipsis", 2},
      {"...i...,jk", "einsum(): found '.' for operand 0 for which an ellipsis was already found",
       2},
      {"ijk,jk",
       "einsum(): the number of subscripts in the equation (3) does not match the number "
       "of dimensions (2) for operand 0 and no ellipsis was given",
       2},
      {"...ijk,jk",
       "einsum(): the number of subscripts in the equation (3) is more than the "
       "number of dimensions (2) for operand 0",
       2},
      {"ij,jk->ii", "einsum(): output subscript i appears more than once in the output", 2},
      {"ij,jk->x",
       "einsum(): output subscript x does not appear in the equation for any input "
       "operand",
       2},
      {"ij,ik->jk",
       "einsum(): subscript i has size 3 for operand 1 which does not broadcast with "
       "previously seen size 2",
       2},
      {"ii,jk", "einsum(): subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
       2},
      {"ij", "einsum(): must provide at least one operand", 0},
  };
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR b = counting(weir_shape(3, 2), WEIR_FLOAT32, device(_i));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weir_tensor *out = a;
    refused(WEIR_EINVAL, rows[i].says,
            weir_einsum(&out, rows[i].text, (const weir_tensor *[]){a, b, b}, rows[i].operands));
    ck_assert_ptr_null(out);
  }
}
END_TEST

/* ---- contractions ---------------------------------------------------------------------------- */

START_TEST(dimensions_are_contracted_by_place_or_from_the_ends)
{
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR b = counting(weir_shape(3, 2), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR both = NULL;
  WEIR_TENSOR none = NULL;
  WEIR_TENSOR within = NULL;
  weir_ok(weir_tensordot(&one, a, b, 1));
  EXPECT(one, 10, 13, 28, 40);
  weir_ok(weir_tensordot_dims(&turned, a, b, (const int[]){0}, (const int[]){-1}, 1));
  EXPECT(turned, 3, 9, 15, 4, 14, 24, 5, 19, 33);
  weir_ok(weir_tensordot_dims(&both, a, b, (const int[]){0, 1}, (const int[]){1, 0}, 2));
  EXPECT(both, 0 + 2 + 8 + 3 + 12 + 25);
  shape_is(both, weir_shape_of(0, NULL));
  weir_ok(weir_tensordot(&none, a, b, 0));
  shape_is(none, weir_shape(2, 3, 3, 2));
  weir_ok(weir_inner(&within, a, a));
  EXPECT(within, 5, 14, 14, 50);
  refused(WEIR_EINVAL, "tensordot expects dims < ndim_a or ndim_b, but got dims=3",
          weir_tensordot(&one, a, b, 3));
  refused(WEIR_EINVAL,
          "contracted dimensions need to match, but first has size 2 in dim 0 and second has size "
          "3 in dim 0",
          weir_tensordot_dims(&one, a, b, (const int[]){0}, (const int[]){0}, 1));
  refused(WEIR_EINVAL,
          "inner() the last dimension must match on both input tensors but got shapes [2, 3] and "
          "[3, 2]",
          weir_inner(&one, a, b));
}
END_TEST

START_TEST(a_chain_is_multiplied_whatever_its_order)
{
  devices(2);
  WEIR_TENSOR row = counting(weir_shape(2), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR b = counting(weir_shape(3, 2), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR matrix = NULL;
  WEIR_TENSOR number = NULL;
  weir_ok(weir_multi_dot(&matrix, (const weir_tensor *[]){a, b, a, b}, 4));
  EXPECT(matrix, 10 * 10 + 13 * 28, 10 * 13 + 13 * 40, 28 * 10 + 40 * 28, 28 * 13 + 40 * 40);
  weir_ok(weir_multi_dot(&number, (const weir_tensor *[]){row, a, b, row}, 4));
  EXPECT(number, 40);
  shape_is(number, weir_shape_of(0, NULL));
  refused(WEIR_EINVAL, "multi_dot(): expected at least 2 tensors but got 1",
          weir_multi_dot(&matrix, (const weir_tensor *[]){a}, 1));
  refused(WEIR_EINVAL,
          "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied",
          weir_multi_dot(&matrix, (const weir_tensor *[]){a, a}, 2));
}
END_TEST

/* ---- added ----------------------------------------------------------------------------------- */

START_TEST(products_are_added_to_what_broadcasts)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR two = counting(weir_shape(2), WEIR_FLOAT32, d);
  WEIR_TENSOR three = counting(weir_shape(3), WEIR_FLOAT32, d);
  WEIR_TENSOR a = counting(weir_shape(2, 3), WEIR_FLOAT32, d);
  WEIR_TENSOR x = counting(weir_shape(2, 2, 3), WEIR_FLOAT32, d);
  WEIR_TENSOR y = counting(weir_shape(2, 3, 2), WEIR_FLOAT32, d);
  WEIR_TENSOR mv = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR bmm = NULL;
  WEIR_TENSOR batch = NULL;
  weir_ok(weir_addmv(&mv, two, a, three, 3, 2));
  EXPECT(mv, 10, 3 + 28);
  weir_ok(weir_addr(&r, a, two, three, weir_int(1), weir_int(-1)));
  EXPECT(r, 0, 1, 2, 3, 3, 3);
  weir_ok(weir_addbmm(&bmm, two, x, y, 2, 1));
  EXPECT(bmm, 10 + 172, 13 + 193 + 2, 28 + 244, 40 + 274 + 2);
  weir_ok(weir_baddbmm(&batch, two, x, y, 1, 1));
  EXPECT(batch, 10, 14, 28, 41, 172, 194, 244, 275);
  refused(WEIR_EINVAL, "size mismatch, got input (3), mat (2x3), vec (3)",
          weir_addmv(&mv, three, a, three, 1, 1));
  refused(WEIR_EINVAL, "addr: Expected 1-D argument vec1, but got 2-D",
          weir_addr(&mv, a, a, three, weir_int(1), weir_int(1)));
  refused(WEIR_EINVAL, "Incompatible matrix sizes for bmm (2x3 and 2x3)",
          weir_addbmm(&mv, three, x, x, 1, 1));
  refused(WEIR_EINVAL,
          "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2].",
          weir_baddbmm(&mv, three, x, x, 1, 1));
}
END_TEST

/* ---- of vectors ------------------------------------------------------------------------------ */

START_TEST(distances_of_all_pairs_of_rows)
{
  static const double one[] = {0, 0, 3, 4}, other[] = {0, 0, 3, 0, 6, 8};
  devices(2);
  WEIR_TENSOR a = of_numbers(one, weir_shape(2, 2), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR b = of_numbers(other, weir_shape(3, 2), WEIR_FLOAT64, device(_i));
  static const struct {
    double p, is[6];
  } rows[] = {{2, {0, 3, 10, 5, 4, 5}},
              {1, {0, 3, 14, 7, 4, 7}},
              {0, {0, 1, 2, 2, 1, 2}},
              {(double)INFINITY, {0, 3, 8, 4, 4, 4}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    WEIR_TENSOR out = NULL;
    weir_ok(weir_cdist(&out, a, b, rows[i].p));
    shape_is(out, weir_shape(2, 3));
    elements_are(out, 6, rows[i].is);
  }
  weir_tensor *none = NULL;
  refused(WEIR_EINVAL, "cdist only supports non-negative p values", weir_cdist(&none, a, b, -1));
}
END_TEST

/* Rows enough for a product of matrices, and for several blocks of differences. */
START_TEST(distances_of_many_rows_are_those_of_few)
{
  devices(2);
  WEIR_TENSOR line = counting(weir_shape(3000, 1), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR few = counting(weir_shape(400, 1), WEIR_FLOAT64, device(_i));
  double *got = malloc(sizeof *got * 3000 * 400);
  ck_assert_ptr_nonnull(got);
  for (int p = 1; p <= 2; p++) {
    WEIR_TENSOR out = NULL;
    weir_ok(weir_cdist(&out, line, few, p));
    weir_ok(weir_tensor_read(got, sizeof *got * 3000 * 400, WEIR_FLOAT64, out));
    double worst = 0;
    for (int i = 0; i < 3000 * 400; i++)
      worst = fmax(worst, fabs(got[i] - abs(i / 400 - i % 400)));
    ck_assert_double_le(worst, p == 1 ? 1e-12 : 1e-4);
  }
  free(got);
}
END_TEST

START_TEST(products_of_vectors_and_powers)
{
  static const double unit[] = {1, 0, 0, 0, 1, 0}, next[] = {0, 1, 0, 0, 0, 1};
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR a = of_numbers(unit, weir_shape(2, 3), WEIR_FLOAT32, d);
  WEIR_TENSOR b = of_numbers(next, weir_shape(2, 3), WEIR_FLOAT32, d);
  WEIR_TENSOR three = counting(weir_shape(3), WEIR_INT32, d);
  WEIR_TENSOR two = counting(weir_shape(1, 2), WEIR_FLOAT32, d);
  WEIR_TENSOR cross = NULL;
  WEIR_TENSOR outer = NULL;
  WEIR_TENSOR kron = NULL;
  WEIR_TENSOR vander = NULL;
  weir_ok(weir_cross(&cross, a, b, -1));
  EXPECT(cross, 0, 0, 1, 1, 0, 0);
  weir_ok(weir_outer(&outer, three, three));
  EXPECT(outer, 0, 0, 0, 0, 1, 2, 0, 2, 4);
  weir_ok(weir_kron(&kron, two, a));
  EXPECT(kron, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0);
  shape_is(kron, weir_shape(2, 6));
  weir_ok(weir_vander(&vander, three, 3, false));
  EXPECT(vander, 0, 0, 1, 1, 1, 1, 4, 2, 1);
  ck_assert_int_eq(weir_tensor_dtype(vander), WEIR_INT64);
  refused(WEIR_EINVAL, "linalg.cross: inputs dimension 0 must have length 3. Got 2 and 2",
          weir_cross(&vander, a, b, 0));
  refused(WEIR_EINVAL, "outer: Expected 1-D argument self, but got 2-D",
          weir_outer(&vander, a, three));
  refused(WEIR_EINVAL, "x must be a one-dimensional tensor.", weir_vander(&vander, a, 3, true));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {equations_sum_products_over_the_letters_that_the_output_lacks,
                                repeated_letters_take_diagonals_and_batches_stay,
                                equations_that_do_not_fit_are_refused_in_torchs_words,
                                dimensions_are_contracted_by_place_or_from_the_ends,
                                a_chain_is_multiplied_whatever_its_order,
                                products_are_added_to_what_broadcasts,
                                distances_of_all_pairs_of_rows,
                                distances_of_many_rows_are_those_of_few,
                                products_of_vectors_and_powers,
                                NULL};
  return rig_run("ops/linalg", tests, TRIED);
}
