/* test_linalg.c: sums of products, products added to something, distances, factorisations. */
#include <dlfcn.h>
#include <limits.h>
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
  WEIR_TENSOR none_made = NULL;
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
          weir_tensordot(&none_made, a, b, 3));
  refused(WEIR_EINVAL,
          "contracted dimensions need to match, but first has size 2 in dim 0 and second has size "
          "3 in dim 0",
          weir_tensordot_dims(&none_made, a, b, (const int[]){0}, (const int[]){0}, 1));
  refused(WEIR_EINVAL,
          "inner() the last dimension must match on both input tensors but got shapes [2, 3] and "
          "[3, 2]",
          weir_inner(&none_made, a, b));
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
  WEIR_TENSOR none_made = NULL;
  weir_ok(weir_multi_dot(&matrix, (const weir_tensor *[]){a, b, a, b}, 4));
  EXPECT(matrix, 10 * 10 + 13 * 28, 10 * 13 + 13 * 40, 28 * 10 + 40 * 28, 28 * 13 + 40 * 40);
  weir_ok(weir_multi_dot(&number, (const weir_tensor *[]){row, a, b, row}, 4));
  EXPECT(number, 40);
  shape_is(number, weir_shape_of(0, NULL));
  refused(WEIR_EINVAL, "multi_dot(): expected at least 2 tensors but got 1",
          weir_multi_dot(&none_made, (const weir_tensor *[]){a}, 1));
  refused(WEIR_EINVAL,
          "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied",
          weir_multi_dot(&none_made, (const weir_tensor *[]){a, a}, 2));
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
  WEIR_TENSOR none_made = NULL;
  weir_ok(weir_addmv(&mv, two, a, three, 3, 2));
  EXPECT(mv, 10, 3 + 28);
  weir_ok(weir_addr(&r, a, two, three, weir_int(1), weir_int(-1)));
  EXPECT(r, 0, 1, 2, 3, 3, 3);
  weir_ok(weir_addbmm(&bmm, two, x, y, 2, 1));
  EXPECT(bmm, 10 + 172, 13 + 193 + 2, 28 + 244, 40 + 274 + 2);
  weir_ok(weir_baddbmm(&batch, two, x, y, 1, 1));
  EXPECT(batch, 10, 14, 28, 41, 172, 194, 244, 275);
  refused(WEIR_EINVAL, "size mismatch, got input (3), mat (2x3), vec (3)",
          weir_addmv(&none_made, three, a, three, 1, 1));
  refused(WEIR_EINVAL, "addr: Expected 1-D argument vec1, but got 2-D",
          weir_addr(&none_made, a, a, three, weir_int(1), weir_int(1)));
  refused(WEIR_EINVAL, "Incompatible matrix sizes for bmm (2x3 and 2x3)",
          weir_addbmm(&none_made, three, x, x, 1, 1));
  refused(WEIR_EINVAL,
          "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2].",
          weir_baddbmm(&none_made, three, x, x, 1, 1));
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
  WEIR_TENSOR none_made = NULL;
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
          weir_cross(&none_made, a, b, 0));
  refused(WEIR_EINVAL, "outer: Expected 1-D argument self, but got 2-D",
          weir_outer(&none_made, a, three));
  refused(WEIR_EINVAL, "x must be a one-dimensional tensor.", weir_vander(&none_made, a, 3, true));
}
END_TEST

/* ---- factorisations: the cpu's --------------------------------------------------------------- */

enum { N = 4, BATCH = 2, ALL = BATCH * N * N };

/* A batch of matrices in which nothing is special; positive: symmetric, positive-definite. */
static weir_tensor *some_matrices(bool positive, weir_dtype dtype)
{
  double values[ALL], square[ALL];
  for (int i = 0; i < ALL; i++)
    values[i] = (double)((i * 7919 + 13) % 101) / 25 - 2;
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        double sum = i == j;
        for (int k = 0; k < N; k++)
          sum += values[(b * N + i) * N + k] * values[(b * N + j) * N + k];
        square[(b * N + i) * N + j] = sum;
      }
  return of_numbers(positive ? square : values, weir_shape(BATCH, N, N), dtype, cpu);
}

/* All elements of both are as near as that. */
static void tensors_are_near(const weir_tensor *a, const weir_tensor *b, double by)
{
  bool close = false;
  weir_ok(weir_allclose(&close, a, b, 0, by, false));
  ck_assert(close);
}

/* The one element of t. */
static double number_of(const weir_tensor *t)
{
  double out = NAN;
  weir_ok(weir_tensor_read(&out, sizeof out, WEIR_FLOAT64, t));
  return out;
}

/* x y, of batches, is that. */
static void product_is(const weir_tensor *x, const weir_tensor *y, const weir_tensor *is, double by)
{
  WEIR_TENSOR product = NULL;
  weir_ok(weir_matmul(&product, x, y));
  tensors_are_near(product, is, by);
}

/* q^T q is the identity. */
static void columns_are_orthonormal(const weir_tensor *q, double by)
{
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR wide = NULL;
  weir_options o = {.dtype = weir_tensor_dtype(q)};
  weir_ok(weir_transpose(&turned, q, -2, -1));
  weir_ok(weir_matmul(&product, turned, q));
  weir_ok(weir_eye(&one, weir_tensor_size(q, -1), weir_tensor_size(q, -1), &o));
  weir_ok(weir_expand(&wide, one, weir_tensor_shape(product)));
  tensors_are_near(product, wide, by);
}

static const struct {
  weir_dtype dtype;
  double by;
} precisions[] = {{WEIR_FLOAT32, 2e-5}, {WEIR_FLOAT64, 1e-12}};

/* By a library, whatever the size, or by the engine's own; false: there is none. */
static bool choose_library(bool vendor)
{
  weir_ok(weir_set_blas(vendor ? WEIR_BLAS_VENDOR : WEIR_BLAS_BUILTIN));
  return !vendor || (strcmp(weir_cpu_lapack_name(), "builtin") != 0 &&
                     strcmp(weir_cpu_blas_name(), "builtin") != 0);
}

START_TEST(inverses_and_solutions_solve)
{
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  double by = precisions[_i & 1].by;
  WEIR_TENSOR a = some_matrices(false, d);
  WEIR_TENSOR b = counting(weir_shape(BATCH, N, 2), d, cpu);
  WEIR_TENSOR row = counting(weir_shape(N), d, cpu);
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR inverse = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR vector = NULL;
  WEIR_TENSOR column = NULL;
  WEIR_TENSOR rows = NULL;
  weir_options o = {.dtype = d};
  weir_ok(weir_eye(&one, N, N, &o));
  weir_ok(weir_expand(&wide, one, weir_shape(BATCH, N, N)));
  weir_ok(weir_inv(&inverse, a));
  product_is(a, inverse, wide, 10 * by);
  weir_ok(weir_solve(&x, a, b));
  product_is(a, x, b, 10 * by);
  weir_ok(weir_solve(&vector, a, row));
  shape_is(vector, weir_shape(BATCH, N));
  weir_ok(weir_unsqueeze(&column, vector, -1));
  weir_ok(weir_unsqueeze(&rows, row, -1));
  WEIR_TENSOR both = NULL;
  weir_ok(weir_expand(&both, rows, weir_shape(BATCH, N, 1)));
  product_is(a, column, both, 10 * by);
}
END_TEST

START_TEST(triangles_are_solved_from_both_sides)
{
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  WEIR_TENSOR a = some_matrices(true, d);
  WEIR_TENSOR b = counting(weir_shape(BATCH, N, N), d, cpu);
  for (int kind = 0; kind < 4; kind++) {
    WEIR_TENSOR triangle = NULL;
    WEIR_TENSOR x = NULL;
    bool upper = kind & 1, left = kind & 2;
    weir_ok(upper ? weir_triu(&triangle, a, 0) : weir_tril(&triangle, a, 0));
    weir_ok(weir_solve_triangular(&x, a, b, upper, left, false));
    product_is(left ? triangle : x, left ? x : triangle, b, 100 * precisions[_i & 1].by);
  }
  WEIR_TENSOR unit = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR low = NULL;
  WEIR_TENSOR ones = NULL;
  weir_options o = {.dtype = d};
  weir_ok(weir_solve_triangular(&unit, a, b, false, true, true));
  weir_ok(weir_tril(&low, a, -1));
  weir_ok(weir_eye(&one, N, N, &o));
  weir_ok(weir_add(&ones, low, one));
  product_is(ones, unit, b, 1e5 * precisions[_i & 1].by);
}
END_TEST

/* Rows and columns of 4: square, tall, wide. */
START_TEST(lu_multiplies_to_the_matrix)
{
  static const struct {
    int dim;
    int64_t length;
  } parts[] = {{-1, N}, {-1, 2}, {-2, 3}};
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  WEIR_TENSOR whole = some_matrices(false, d);
  for (int i = 0; i < 3; i++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR p = NULL;
    WEIR_TENSOR l = NULL;
    WEIR_TENSOR u = NULL;
    WEIR_TENSOR pl = NULL;
    WEIR_TENSOR lu = NULL;
    WEIR_TENSOR pivots = NULL;
    WEIR_TENSOR size = NULL;
    WEIR_TENSOR most = NULL;
    weir_ok(weir_narrow(&a, whole, parts[i].dim, 0, parts[i].length));
    if (i) {
      weir_ok(weir_lu(&p, &l, &u, a, true));
    } else {
      weir_ok(weir_lu_factor(&lu, &pivots, a, true));
      weir_ok(weir_lu_unpack(&p, &l, &u, lu, pivots));
    }
    weir_ok(weir_matmul(&pl, p, l));
    product_is(pl, u, a, precisions[_i & 1].by);
    columns_are_orthonormal(p, 0);
    weir_ok(weir_abs(&size, l));
    weir_ok(weir_amax(&most, size));
    ck_assert_double_eq(number_of(most), 1);
  }
}
END_TEST

START_TEST(what_lu_has_made_solves_from_both_sides)
{
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  WEIR_TENSOR a = some_matrices(true, d);
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR b = counting(weir_shape(3, BATCH, N, N), d, cpu);
  WEIR_TENSOR lu = NULL;
  WEIR_TENSOR pivots = NULL;
  weir_ok(weir_flip(&turned, a, (const int[]){-1}, 1)); /* so that rows are exchanged */
  weir_ok(weir_lu_factor(&lu, &pivots, turned, true));
  ck_assert_int_eq(weir_tensor_dtype(pivots), WEIR_INT32);
  shape_is(pivots, weir_shape(BATCH, N));
  for (int kind = 0; kind < 4; kind++) {
    bool left = kind & 1, adjoint = kind & 2;
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR view = NULL;
    weir_ok(weir_lu_solve(&x, lu, pivots, b, left, adjoint));
    weir_ok(weir_transpose(&view, turned, -2, -1));
    const weir_tensor *by = adjoint ? view : turned;
    product_is(left ? by : x, left ? x : by, b, 100 * precisions[_i & 1].by);
  }
}
END_TEST

START_TEST(choleskys_triangle_solves_or_inverts)
{
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  double by = 100 * precisions[_i & 1].by;
  WEIR_TENSOR a = some_matrices(true, d);
  WEIR_TENSOR b = counting(weir_shape(BATCH, N, 3), d, cpu);
  WEIR_TENSOR inverse = NULL;
  weir_ok(weir_inv(&inverse, a));
  for (int upper = 0; upper < 2; upper++) {
    WEIR_TENSOR l = NULL;
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR made = NULL;
    weir_ok(weir_cholesky(&l, a, upper));
    weir_ok(weir_cholesky_solve(&x, b, l, upper));
    product_is(a, x, b, by);
    weir_ok(weir_cholesky_inverse(&made, l, upper));
    tensors_are_near(made, inverse, by);
  }
}
END_TEST

/* Of a diagonal of 1, 2, 4 and 8, whose inverse has 1, 1/2, 1/4 and 1/8; infinite of what is
 * singular. */
START_TEST(conditions_are_norms_of_both)
{
  static const struct {
    const char *p;
    double is;
  } norms[] = {{NULL, 8},     {"2", 8},   {"-2", 0.125},   {"1", 8},
               {"-1", 0.125}, {"inf", 8}, {"-inf", 0.125}, {"nuc", 15 * 1.875}};
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  WEIR_TENSOR values = of_numbers((const double[]){1, 2, 4, 8}, weir_shape(4), d, cpu);
  WEIR_TENSOR zeros = of_numbers((const double[]){1, 2, 0, 8}, weir_shape(4), d, cpu);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR singular = NULL;
  WEIR_TENSOR whole = NULL;
  weir_ok(weir_diag(&a, values, 0));
  weir_ok(weir_diag(&singular, zeros, 0));
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
    WEIR_TENSOR c = NULL;
    weir_ok(weir_cond(&c, a, norms[i].p));
    ck_assert_double_eq_tol(number_of(c), norms[i].is, 1e-4);
  }
  weir_ok(weir_cond(&whole, singular, "1"));
  ck_assert(isinf(number_of(whole)));
}
END_TEST

/* A change of the diagonal's elements by 1e-6 changes the sum of the result as the gradient
 * says. */
START_TEST(gradients_through_lu_are_slopes)
{
  if (_i != 1) return;
  weir_ok(weir_set_blas(WEIR_BLAS_BUILTIN));
  WEIR_TENSOR whole = some_matrices(false, WEIR_FLOAT64);
  static const int64_t rows[] = {4, 4, 3}, columns[] = {4, 3, 4};
  for (int i = 0; i < 3; i++) {
    double sums[2];
    WEIR_TENSOR part = NULL;
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR grad = NULL;
    weir_ok(weir_narrow(&part, whole, -2, 0, rows[i]));
    weir_ok(weir_narrow(&a, part, -1, 0, columns[i]));
    for (int step = -1; step <= 1; step++) {
      WEIR_TENSOR moved = NULL;
      WEIR_TENSOR lu = NULL;
      WEIR_TENSOR pivots = NULL;
      WEIR_TENSOR squares = NULL;
      WEIR_TENSOR sum = NULL;
      weir_ok(weir_add_scalar(&moved, a, weir_float(step * 1e-6)));
      if (!step) weir_ok(weir_requires_grad_(moved, true));
      weir_ok(weir_lu_factor(&lu, &pivots, moved, true));
      weir_ok(weir_mul(&squares, lu, lu));
      weir_ok(weir_sum(&sum, squares));
      if (step) {
        sums[step > 0] = number_of(sum);
        continue;
      }
      weir_ok(weir_backward(sum, NULL, false));
      weir_ok(weir_sum(&grad, weir_tensor_grad(moved)));
    }
    ck_assert_double_eq_tol((sums[1] - sums[0]) / 2e-6 / number_of(grad), 1, 1e-5);
  }
}
END_TEST

START_TEST(factors_multiply_to_the_matrix)
{
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  double by = 10 * precisions[_i & 1].by;
  WEIR_TENSOR a = some_matrices(true, d);
  WEIR_TENSOR l = NULL;
  WEIR_TENSOR u = NULL;
  WEIR_TENSOR turned = NULL;
  weir_ok(weir_cholesky(&l, a, false));
  weir_ok(weir_transpose(&turned, l, -2, -1));
  product_is(l, turned, a, by);
  weir_ok(weir_cholesky(&u, a, true));
  tensors_are_near(u, turned, by);
  for (int wide = 0; wide < 2; wide++)
    for (int complete = 0; complete < 2; complete++) {
      WEIR_TENSOR part = NULL;
      WEIR_TENSOR q = NULL;
      WEIR_TENSOR r = NULL;
      WEIR_TENSOR low = NULL;
      WEIR_TENSOR zero = NULL;
      weir_ok(weir_narrow(&part, a, wide ? -2 : -1, 0, 3));
      weir_ok(weir_qr(&q, &r, part, complete ? "complete" : NULL));
      product_is(q, r, part, by);
      columns_are_orthonormal(q, by);
      weir_ok(weir_tril(&low, r, -1));
      weir_ok(weir_zeros_like(&zero, low, NULL));
      tensors_are_near(low, zero, 0);
    }
}
END_TEST

START_TEST(eigenvectors_and_singular_vectors_turn_the_matrix_diagonal)
{
  if (!choose_library(_i >> 1)) return;
  weir_dtype d = precisions[_i & 1].dtype;
  double by = 20 * precisions[_i & 1].by;
  WEIR_TENSOR a = some_matrices(true, d);
  WEIR_TENSOR values = NULL;
  WEIR_TENSOR alone = NULL;
  WEIR_TENSOR vectors = NULL;
  WEIR_TENSOR row = NULL;
  WEIR_TENSOR scaled = NULL;
  weir_ok(weir_eigh(&values, &vectors, a, false));
  weir_ok(weir_eigvalsh(&alone, a, true));
  tensors_are_near(values, alone, by);
  columns_are_orthonormal(vectors, by);
  weir_ok(weir_unsqueeze(&row, values, -2));
  weir_ok(weir_mul(&scaled, vectors, row));
  product_is(a, vectors, scaled, by);
  for (int wide = 0; wide < 2; wide++)
    for (int full = 0; full < 2; full++) {
      WEIR_TENSOR part = NULL;
      WEIR_TENSOR u = NULL;
      WEIR_TENSOR s = NULL;
      WEIR_TENSOR vh = NULL;
      WEIR_TENSOR v = NULL;
      WEIR_TENSOR thin = NULL;
      WEIR_TENSOR rows = NULL;
      WEIR_TENSOR s_row = NULL;
      WEIR_TENSOR us = NULL;
      weir_ok(weir_narrow(&part, a, wide ? -2 : -1, 0, 2));
      weir_ok(weir_svd(&u, &s, &vh, part, full));
      ck_assert_int_eq(weir_tensor_size(u, -1), full && !wide ? N : 2);
      columns_are_orthonormal(u, by);
      weir_ok(weir_transpose(&v, vh, -2, -1));
      columns_are_orthonormal(v, by);
      weir_ok(weir_narrow(&thin, u, -1, 0, 2));
      weir_ok(weir_narrow(&rows, vh, -2, 0, 2));
      weir_ok(weir_unsqueeze(&s_row, s, -2));
      weir_ok(weir_mul(&us, thin, s_row));
      product_is(us, rows, part, by);
    }
}
END_TEST

/* Of rank 1: what is no real singular value counts nowhere, and vectors are orthonormal all the
 * same. */
START_TEST(matrices_of_less_rank_have_pseudoinverses)
{
  static const double one_two[] = {1, 2, 2, 4, 3, 6};
  WEIR_TENSOR a = of_numbers(one_two, weir_shape(3, 2), WEIR_FLOAT64, cpu);
  WEIR_TENSOR b = of_numbers((const double[]){1, 2, 3}, weir_shape(3, 1), WEIR_FLOAT64, cpu);
  WEIR_TENSOR rank = NULL;
  WEIR_TENSOR inverse = NULL;
  WEIR_TENSOR is = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR least = NULL;
  WEIR_TENSOR u = NULL;
  WEIR_TENSOR s = NULL;
  WEIR_TENSOR vh = NULL;
  weir_ok(weir_matrix_rank(&rank, a, -1));
  EXPECT(rank, 1);
  weir_ok(weir_pinv(&inverse, a, -1));
  is = of_numbers((const double[]){1 / 70.0, 2 / 70.0, 3 / 70.0, 2 / 70.0, 4 / 70.0, 6 / 70.0},
                  weir_shape(2, 3), WEIR_FLOAT64, cpu);
  tensors_are_near(inverse, is, 1e-15);
  weir_ok(weir_lstsq(&x, a, b));
  least = of_numbers((const double[]){0.2, 0.4}, weir_shape(2, 1), WEIR_FLOAT64, cpu);
  tensors_are_near(x, least, 1e-15);
  weir_ok(weir_svd(&u, &s, &vh, a, true));
  columns_are_orthonormal(u, 1e-14);
  columns_are_orthonormal(vh, 1e-14);
}
END_TEST

START_TEST(determinants_powers_and_norms)
{
  if (!choose_library(_i >> 1)) return;
  static const double values[] = {0, 2, 1, 3};
  weir_dtype d = precisions[_i & 1].dtype;
  WEIR_TENSOR a = of_numbers(values, weir_shape(2, 2), d, cpu);
  WEIR_TENSOR batch = some_matrices(true, d);
  WEIR_TENSOR det = NULL;
  WEIR_TENSOR sign = NULL;
  WEIR_TENSOR log = NULL;
  WEIR_TENSOR cube = NULL;
  WEIR_TENSOR back = NULL;
  WEIR_TENSOR inverse = NULL;
  WEIR_TENSOR dets = NULL;
  WEIR_TENSOR s = NULL;
  WEIR_TENSOR product = NULL;
  weir_ok(weir_det(&det, a));
  EXPECT(det, -2);
  weir_ok(weir_slogdet(&sign, &log, a));
  EXPECT(sign, -1);
  weir_scalar size;
  weir_ok(weir_item(&size, log));
  ck_assert_double_eq_tol(size.f, log1p(1), 1e-7);
  weir_ok(weir_matrix_power(&cube, a, 3));
  EXPECT(cube, 6, 22, 11, 39);
  weir_ok(weir_matrix_power(&back, a, -1));
  weir_ok(weir_inv(&inverse, a));
  tensors_are_near(back, inverse, 0);
  static const struct {
    const char *ord;
    double is;
  } norms[] = {{"fro", 3.7416573867739413},
               {"1", 5},
               {"-1", 1},
               {"inf", 4},
               {"-inf", 2},
               {"2", 3.7024592},
               {"-2", 0.5401815},
               {"nuc", 4.2426407}};
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
    WEIR_TENSOR norm = NULL;
    weir_ok(weir_matrix_norm(&norm, a, norms[i].ord, NULL, false));
    weir_ok(weir_item(&size, norm));
    ck_assert_double_eq_tol(size.f, norms[i].is, 1e-6);
  }
  weir_ok(weir_det(&dets, batch));
  weir_ok(weir_svdvals(&s, batch));
  weir_ok(weir_prod_dim(&product, s, -1, false));
  shape_is(dets, weir_shape(BATCH));
  WEIR_TENSOR quotient = NULL;
  WEIR_TENSOR ones = NULL;
  weir_ok(weir_div(&quotient, dets, product));
  weir_ok(weir_ones_like(&ones, quotient, NULL));
  tensors_are_near(quotient, ones, 10 * precisions[_i & 1].by);
}
END_TEST

/* Large enough for threads to share the elimination, with a result that is known. */
START_TEST(a_large_matrix_is_solved)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR got = NULL;
  weir_options o = {.dtype = WEIR_FLOAT64};
  weir_manual_seed(3);
  weir_ok(weir_randn(&a, weir_shape(300, 300), &o));
  weir_ok(weir_randn(&x, weir_shape(300), &o));
  weir_ok(weir_mv(&b, a, x));
  weir_ok(weir_solve(&got, a, b));
  tensors_are_near(got, x, 1e-8);
}
END_TEST

/* What factorisations of a make, those that are free in sign squared. */
enum { MADE = 17 };
static void factorise(weir_tensor *made[MADE], const weir_tensor *a, const weir_tensor *positive)
{
  weir_tensor *t[5] = {NULL};
  weir_ok(weir_inv(&made[0], positive));
  weir_ok(weir_solve(&made[1], positive, a));
  weir_ok(weir_solve_triangular(&made[2], positive, a, true, true, false));
  weir_ok(weir_solve_triangular(&made[3], made[0], a, false, true, true));
  weir_ok(weir_cholesky(&made[4], positive, true));
  weir_ok(weir_cholesky(&made[5], positive, false));
  weir_ok(weir_qr(&made[6], &made[7], a, "complete"));
  weir_ok(weir_slogdet(&made[8], &made[9], positive));
  weir_ok(weir_eigh(&made[10], &t[0], positive, true));
  weir_ok(weir_mul_(t[0], t[0]));
  weir_ok(weir_unsqueeze(&t[1], made[10], -2));
  weir_ok(weir_mul(&made[13], t[0], t[1]));
  weir_ok(weir_svd(&t[2], &made[11], &t[3], a, false));
  weir_ok(weir_mul_(t[3], t[3]));
  weir_ok(weir_mul_(t[2], t[2]));
  weir_ok(weir_matmul(&made[12], t[2], t[3]));
  weir_ok(weir_lu_factor(&made[14], &t[4], a, true));
  weir_ok(weir_cholesky_inverse(&made[15], made[5], false));
  weir_ok(weir_cond(&made[16], positive, "-1"));
  for (int i = 0; i < 5; i++)
    weir_tensor_release(t[i]);
}

START_TEST(a_library_factorises_as_the_engine_does)
{
  weir_tensor *own[MADE] = {NULL}, *by[MADE] = {NULL};
  static const int batches[] = {1, 5};
  for (int i = 0; i < 2; i++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR turned = NULL;
    WEIR_TENSOR positive = NULL;
    WEIR_TENSOR places = NULL;
    WEIR_TENSOR apart = NULL; /* no eigenvalue twice */
    weir_options o = {.dtype = WEIR_FLOAT64};
    ck_assert(choose_library(false)); /* where there is none, the batch before left it refused */
    weir_manual_seed(7);
    weir_ok(weir_randn(&a, weir_shape(batches[i], 40, 30), &o));
    weir_ok(weir_transpose(&turned, a, -1, -2));
    weir_ok(weir_matmul(&positive, a, turned));
    weir_ok(weir_arange(&places, weir_int(1), weir_int(41), weir_int(1), &o));
    weir_ok(weir_diag_embed(&apart, places, 0, -2, -1));
    weir_ok(weir_add_(positive, apart));
    ck_assert_str_eq(weir_cpu_lapack_name(), "builtin");
    factorise(own, a, positive);
    if (choose_library(true)) {
      factorise(by, a, positive);
      for (int m = 0; m < MADE; m++)
        tensors_are_near(own[m], by[m], 1e-9);
    } else if (!strcmp(weir_cpu_lapack_name(), "builtin")) {
      refused_with(WEIR_ENOTSUP, "a LAPACK library was asked for (WEIR_BLAS_VENDOR)",
                   weir_inv(&by[0], positive));
    }
    for (int m = 0; m < MADE; m++) {
      weir_tensor_drop(&own[m]);
      weir_tensor_drop(&by[m]);
    }
  }
}
END_TEST

START_TEST(what_cannot_be_factorised_is_refused_in_torchs_words)
{
  WEIR_TENSOR zero = NULL;
  WEIR_TENSOR batch = NULL;
  WEIR_TENSOR nan = NULL;
  WEIR_TENSOR flat = counting(weir_shape(3, 2), WEIR_FLOAT32, cpu);
  WEIR_TENSOR whole = counting(weir_shape(3, 3), WEIR_INT64, cpu);
  WEIR_TENSOR half = counting(weir_shape(3, 3), WEIR_FLOAT16, cpu);
  weir_tensor *out = NULL, *other = NULL, *third = NULL;
  weir_ok(weir_zeros(&zero, weir_shape(2, 2), NULL));
  weir_ok(weir_zeros(&batch, weir_shape(3, 2, 2), NULL));
  weir_ok(weir_full(&nan, weir_shape(2, 2), weir_float((double)NAN), NULL));
  refused(WEIR_EINVAL,
          "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed "
          "because the input matrix is singular.",
          weir_inv(&out, zero));
  refused(WEIR_EINVAL,
          "weir.linalg.solve: (Batch element 0): The solver failed because the input matrix is "
          "singular.",
          weir_solve(&out, batch, batch));
  refused(WEIR_EINVAL,
          "linalg.cholesky: The factorization could not be completed because the input is not "
          "positive-definite (the leading minor of order 1 is not positive-definite).",
          weir_cholesky(&out, zero, false));
  refused(WEIR_EINVAL,
          "linalg.svd: The algorithm failed to converge because the input matrix contained "
          "non-finite values.",
          weir_svd(&out, &other, &third, nan, true));
  refused_with(WEIR_EINVAL, "linalg.eigh: The algorithm failed to converge",
               weir_eigh(&out, &other, nan, true));
  refused(WEIR_EINVAL,
          "linalg.det: A must be batches of square matrices, but they are 3 by 2 matrices",
          weir_det(&out, flat));
  refused(WEIR_ENOTSUP,
          "linalg.inv: Expected a floating point or complex tensor as input. Got Long",
          weir_inv(&out, whole));
  refused(WEIR_ENOTSUP, "linalg.inv: Low precision dtypes not supported. Got Half",
          weir_inv(&out, half));
  refused(WEIR_EINVAL,
          "weir.linalg.lu_factor: (Batch element 0): U[1,1] is zero and using it on lu_solve would "
          "result in a division by zero. If you still want to perform the factorization, consider "
          "calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
          weir_lu_factor(&out, &other, batch, true));
  refused(WEIR_EINVAL,
          "cholesky_inverse: The diagonal element 1 is zero, the inversion could not be completed "
          "because the input matrix is singular.",
          weir_cholesky_inverse(&out, zero, false));
  refused(WEIR_EINVAL, "linalg.cond got an invalid norm type: 3", weir_cond(&out, zero, "3"));
  refused(
      WEIR_EINVAL,
      "linalg.cond(ord=fro): A must be batches of square matrices, but they are 3 by 2 matrices",
      weir_cond(&out, flat, "fro"));
  refused(WEIR_EINVAL, "linalg.lu_solve: pivots should be a Tensor of scalar type weir.int32",
          weir_lu_solve(&out, zero, whole, zero, true, false));
  refused(WEIR_EINVAL, "linalg.matrix_norm: Order 3 not supported.",
          weir_matrix_norm(&out, flat, "3", NULL, false));
  ck_assert_ptr_null(out);
}
END_TEST

#ifndef CPU_ONLY
static void (*answer)(int create);
static unsigned (*calls)(void);

/* tests/cuda/NAME in the place of a library of NVIDIA's. */
static void *open_strict_library(const char *name)
{
  char path[PATH_MAX];
  const char *build = getenv("WEIR_BUILD");
  (void)snprintf(path, sizeof path, "%s/tests/cuda/%s", build ? build : "build", name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  return library;
}

/* On the software device, which NVIDIA's refuse; false: it was built without declarations. */
static bool open_solvers(void)
{
  devices(1);
  if (!rig_simulated()) return true;
  (void)open_strict_library("libcublas-strict.so");
  void *library = open_strict_library("libcusolver-strict.so");
  *(void **)&answer = dlsym(library, "strict_cusolver_answer");
  *(void **)&calls = dlsym(library, "strict_cusolver_calls");
  return answer && calls;
}

static weir_tensor *moved_to_cuda(const weir_tensor *t, weir_dtype dtype)
{
  weir_tensor *out = NULL;
  WEIR_TENSOR cast = NULL;
  weir_ok(weir_to_dtype(&cast, t, dtype));
  weir_ok(weir_cuda(&out, cast, cuda0, false));
  return out;
}

START_TEST(cusolver_factorises_as_the_cpu_does)
{
  weir_tensor *own[MADE] = {NULL}, *by[MADE] = {NULL};
  weir_dtype d = _i ? WEIR_FLOAT64 : WEIR_FLOAT32;
  if (!open_solvers()) return;
  WEIR_TENSOR a = some_matrices(false, WEIR_FLOAT64);
  WEIR_TENSOR part = NULL;
  WEIR_TENSOR positive = some_matrices(true, WEIR_FLOAT64);
  weir_ok(weir_narrow(&part, a, -1, 0, 3));
  WEIR_TENSOR there_a = moved_to_cuda(part, d);
  WEIR_TENSOR there_positive = moved_to_cuda(positive, d);
  factorise(own, part, positive);
  factorise(by, there_a, there_positive);
  for (int m = 0; m < MADE; m++) {
    WEIR_TENSOR here = NULL;
    WEIR_TENSOR wide = NULL;
    ck_assert_int_eq(weir_tensor_dtype(by[m]), d);
    ck_assert(weir_device_equal(weir_tensor_device(by[m]), cuda0));
    weir_ok(weir_cpu(&here, by[m]));
    weir_ok(weir_to_dtype(&wide, here, WEIR_FLOAT64));
    tensors_are_near(own[m], wide, 200 * precisions[_i].by);
    weir_tensor_drop(&own[m]);
    weir_tensor_drop(&by[m]);
  }
  if (calls) ck_assert_uint_gt(calls(), 10);
}
END_TEST

START_TEST(a_cuda_device_refuses_in_torchs_words_what_cannot_be_factorised)
{
  weir_tensor *out = NULL;
  WEIR_TENSOR zero = NULL;
  weir_options o = {.dtype = WEIR_FLOAT32, .device = cuda0};
  if (!open_solvers()) return;
  weir_ok(weir_zeros(&zero, weir_shape(3, 2, 2), &o));
  refused(WEIR_EINVAL,
          "linalg.inv: (Batch element 0): The diagonal element 1 is zero, the inversion could not "
          "be completed because the input matrix is singular.",
          weir_inv(&out, zero));
  refused_with(WEIR_EINVAL, "(the leading minor of order 1 is not positive-definite)",
               weir_cholesky(&out, zero, true));
}
END_TEST

START_TEST(without_cusolver_a_cuda_device_says_what_is_missing)
{
  WEIR_TENSOR a = NULL;
  weir_options o = {.dtype = WEIR_FLOAT32, .device = cuda0};
  weir_tensor *out = NULL;
  if (!open_solvers() || !answer) return;
  answer(1);
  weir_ok(weir_ones(&a, weir_shape(2, 2), &o));
  refused_with(WEIR_ENOTSUP, "cuSOLVER's, and cusolverDnCreate failed on cuda:0: status 1",
               weir_inv(&out, a));
  ck_assert_ptr_null(out);
  answer(0);
}
END_TEST
#endif

int main(void)
{
  const TTest *const one[] = {a_library_factorises_as_the_engine_does,
                              matrices_of_less_rank_have_pseudoinverses,
                              a_large_matrix_is_solved,
                              what_cannot_be_factorised_is_refused_in_torchs_words,
#ifndef CPU_ONLY
                              a_cuda_device_refuses_in_torchs_words_what_cannot_be_factorised,
                              without_cusolver_a_cuda_device_says_what_is_missing,
#endif
                              NULL};
  const TTest *const of_dtypes[] = {inverses_and_solutions_solve,
                                    triangles_are_solved_from_both_sides,
                                    factors_multiply_to_the_matrix,
                                    eigenvectors_and_singular_vectors_turn_the_matrix_diagonal,
                                    determinants_powers_and_norms,
                                    lu_multiplies_to_the_matrix,
                                    what_lu_has_made_solves_from_both_sides,
                                    choleskys_triangle_solves_or_inverts,
                                    conditions_are_norms_of_both,
                                    gradients_through_lu_are_slopes,
                                    NULL};
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
  int bad = rig_run("ops/linalg", tests, TRIED);
#ifndef CPU_ONLY
  const TTest *const by_cusolver[] = {cusolver_factorises_as_the_cpu_does, NULL};
  bad += rig_run("ops/cusolver", by_cusolver, 2);
#endif
  bad += rig_run("ops/factorisations", of_dtypes, 4);
  return bad + rig_run("ops/matrices", one, 1);
}
