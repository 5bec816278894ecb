/* test_cpu_gemm.c: matrix products on the cpu, Weir's own and a BLAS library's, against sums in
 * long double and int64; and who is asked. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/weir/blas.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"

static const weir_dtype dtypes[] = {WEIR_UINT8,   WEIR_INT8,     WEIR_INT16,    WEIR_INT32,
                                    WEIR_INT64,   WEIR_FLOAT16,  WEIR_BFLOAT16, WEIR_FLOAT32,
                                    WEIR_FLOAT64, WEIR_COMPLEX64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, MOST = 400000 };

static char a[MOST * 8], b[MOST * 8], c[MOST * 8], before[MOST * 8];

static weir_status run_cpu_gemm(const weir_gemm *g)
{
  return weir_cpu_backend.compute->gemm(weir_cpu_backend.self, NULL, g);
}

static void fill_random_matrix(void *memory, weir_dtype d, int64_t elements)
{
  ck_assert_int_le(elements, MOST);
  for (int64_t i = 0; i < elements; i++) {
    element e = {.i = (int64_t)ref_dice(200) - 100};
    if (!ref_is_int(d))
      e = (element){.re = ref_round((long double)ref_dice(2001) / 512 - 2, d),
                    .im = ref_round((long double)ref_dice(2001) / 512 - 2, d)};
    else
      e = ref_convert(e, WEIR_INT64, d);
    ref_store(d, (char *)memory + (size_t)i * ref_bytes(d), e);
  }
}

static element matrix_element(const void *memory, weir_dtype d, int64_t i)
{
  return ref_load(d, (const char *)memory + (size_t)i * ref_bytes(d));
}

/* alpha sum + beta c, and in *size what was added in magnitude. */
static element expected(const weir_gemm *g, int64_t batch, int64_t i, int64_t j, long double *size)
{
  element s = {0};
  *size = 0;
  for (int64_t p = 0; p < g->k; p++) {
    int64_t l = batch * g->stepa + (g->transa ? p * g->lda + i : i * g->lda + p);
    int64_t r = batch * g->stepb + (g->transb ? j * g->ldb + p : p * g->ldb + j);
    element x = matrix_element(a, g->dtype, l), y = matrix_element(b, g->dtype, r);
    s.re += x.re * y.re - x.im * y.im;
    s.im += x.re * y.im + x.im * y.re;
    s.i = (int64_t)((uint64_t)s.i + (uint64_t)x.i * (uint64_t)y.i);
    *size +=
        (fabsl(x.re) + fabsl(x.im)) * (fabsl(y.re) + fabsl(y.im)) * fabsl((long double)g->alpha);
  }
  element old = matrix_element(before, g->dtype, batch * g->stepc + i * g->ldc + j);
  if (g->beta == 0) old = (element){0};
  *size += (fabsl(old.re) + fabsl(old.im)) * fabsl((long double)g->beta);
  s.i = (int64_t)((uint64_t)s.i * (uint64_t)(int64_t)g->alpha +
                  (uint64_t)old.i * (uint64_t)(int64_t)g->beta);
  s.re = s.re * g->alpha + old.re * g->beta;
  s.im = s.im * g->alpha + old.im * g->beta;
  return s;
}

/* The bound that holds for any order of summation: (k + 3) units of what was added, and the
 * result's rounding. */
static void check_gemm_result(const weir_gemm *g, const char *what)
{
  weir_dtype d = g->dtype, sum = d == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = 0; j < g->n; j++) {
        long double size;
        element want = expected(g, batch, i, j, &size);
        element got = matrix_element(c, d, batch * g->stepc + i * g->ldc + j);
        long double error = fabsl(got.re - want.re) + fabsl(got.im - want.im);
        long double bound = (long double)(g->k + 3) * size * ref_ulp(1, sum) +
                            0.51L * (ref_ulp(want.re, d) + ref_ulp(want.im, d));
        bool near = ref_is_int(d) ? got.i == ref_convert(want, WEIR_INT64, d).i : error <= bound;
        ck_assert_msg(near,
                      "%s of dtype %d, %lld x %lld x %lld, transposed %d %d, batch %lld: at %lld, "
                      "%lld: %.20Lg%+.20Lgi (%lld) is not %.20Lg%+.20Lgi (%lld)",
                      what, d, (long long)g->m, (long long)g->n, (long long)g->k, g->transa,
                      g->transb, (long long)batch, (long long)i, (long long)j, got.re, got.im,
                      (long long)got.i, want.re, want.im, (long long)want.i);
      }
}

static void run_gemm_case(weir_gemm *g, const char *what)
{
  int64_t rows_a = g->transa ? g->k : g->m, rows_b = g->transb ? g->n : g->k;
  g->lda = (g->transa ? g->m : g->k) + ref_dice(3);
  g->ldb = (g->transb ? g->k : g->n) + ref_dice(3);
  g->ldc = g->n + ref_dice(3);
  g->stepa = ref_dice(4) ? rows_a * g->lda + ref_dice(3) : 0;
  g->stepb = ref_dice(4) ? rows_b * g->ldb + ref_dice(3) : 0;
  g->stepc = g->m * g->ldc + ref_dice(3);
  g->a = a, g->b = b, g->c = c;
  fill_random_matrix(a, g->dtype, rows_a * g->lda + g->stepa * (g->batch - 1) + 1);
  fill_random_matrix(b, g->dtype, rows_b * g->ldb + g->stepb * (g->batch - 1) + 1);
  fill_random_matrix(c, g->dtype, g->stepc * g->batch);
  size_t bytes = (size_t)(g->stepc * g->batch) * ref_bytes(g->dtype);
  if (g->beta == 0) memset(c, 0xff, bytes); /* NaN, never to be read */
  memcpy(before, c, bytes);
  ck_assert_msg(run_cpu_gemm(g) == WEIR_OK, "%s", weir_error_message());
  check_gemm_result(g, what);
  for (int64_t x = 0; x < g->stepc; x++) /* nothing between the rows was touched */
    if (x % g->ldc >= g->n || x / g->ldc >= g->m)
      ck_assert(memcmp(c + (size_t)x * ref_bytes(g->dtype),
                       before + (size_t)x * ref_bytes(g->dtype), ref_bytes(g->dtype)) == 0);
}

static void random_product(weir_dtype d, const char *what)
{
  static const int64_t lengths[] = {1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 31, 33, 64, 70};
  weir_gemm g = {.dtype = d, .batch = 1 + ref_dice(3) * ref_dice(2)};
  g.m = lengths[ref_dice(14)], g.n = lengths[ref_dice(14)], g.k = lengths[ref_dice(14)];
  if (ref_dice(10) == 0) g.k = 0;
  g.transa = ref_dice(2), g.transb = ref_dice(2);
  g.alpha = ref_dice(2) ? 1 : (double)ref_dice(7) - 3;
  g.beta = ref_dice(2) ? 0 : (double)ref_dice(5) - 2;
  run_gemm_case(&g, what);
}

START_TEST(products_of_every_dtype_are_those_of_plain_sums)
{
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_BUILTIN), WEIR_OK);
  ck_assert_str_eq(weir_cpu_blas_name(), "builtin");
  for (int round = 0; round < 45; round++) {
    cpu_level_most = round % 3;
    random_product(dtypes[_i], "builtin");
  }
}
END_TEST

/* More than one block of rows, of columns and of steps, and threads to share them. */
START_TEST(large_products_are_put_together_from_blocks)
{
  static const weir_dtype some[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_BFLOAT16};
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_BUILTIN), WEIR_OK);
  ck_assert_int_eq(weir_set_num_threads(3), WEIR_OK);
  weir_gemm tall = {.dtype = some[_i], .m = 601, .n = 33, .k = 290, .batch = 1, .alpha = 1};
  weir_gemm wide = {.dtype = some[_i], .m = 15, .n = 2101, .k = 140, .batch = 1, .alpha = 1};
  wide.transb = tall.transa = true;
  run_gemm_case(&tall, "tall");
  run_gemm_case(&wide, "wide");
}
END_TEST

START_TEST(threads_change_no_bit_of_a_product)
{
  static char one[200 * 200 * 4];
  weir_gemm g = {.dtype = WEIR_FLOAT32, .m = 200, .n = 190, .k = 300, .batch = 1, .alpha = 1};
  g.lda = 300, g.ldb = g.ldc = 190, g.a = a, g.b = b, g.c = c;
  fill_random_matrix(a, WEIR_FLOAT32, 200 * 300);
  fill_random_matrix(b, WEIR_FLOAT32, 300 * 190);
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_BUILTIN), WEIR_OK);
  ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
  ck_assert_int_eq(run_cpu_gemm(&g), WEIR_OK);
  memcpy(one, c, 200 * 190 * 4);
  ck_assert_int_eq(weir_set_num_threads(4), WEIR_OK);
  ck_assert_int_eq(run_cpu_gemm(&g), WEIR_OK);
  ck_assert(memcmp(one, c, 200 * 190 * 4) == 0);
}
END_TEST

/* Where a library is installed; else the error says what was looked for. */
START_TEST(a_library_s_products_are_those_of_plain_sums_too)
{
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_VENDOR), WEIR_OK);
  ck_assert_int_eq(weir_get_blas(), WEIR_BLAS_VENDOR);
  if (!strcmp(weir_cpu_blas_name(), "builtin")) {
    float x[3] = {1, 2, 3};
    weir_gemm g = {.dtype = WEIR_FLOAT32,
                   .m = 1,
                   .n = 1,
                   .k = 1,
                   .batch = 1,
                   .a = x,
                   .b = x,
                   .c = x,
                   .lda = 1,
                   .ldb = 1,
                   .ldc = 1,
                   .alpha = 1};
    ck_assert_int_eq(run_cpu_gemm(&g), WEIR_ENOTSUP);
    ck_assert(strstr(weir_error_message(), "libopenblas.so.0") != NULL);
    return;
  }
  static const weir_dtype some[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64, WEIR_FLOAT16};
  for (int round = 0; round < 120; round++)
    random_product(some[round % 4], weir_cpu_blas_name());
}
END_TEST

START_TEST(what_is_not_there_says_so)
{
  weir_gemm g = {.dtype = WEIR_BOOL, .m = 1, .n = 1, .k = 1, .batch = 1, .a = a, .b = b, .c = c};
  ck_assert_int_eq(run_cpu_gemm(&g), WEIR_ENOTSUP);
  ck_assert_str_eq(weir_error_message(), "\"addmm_impl_cpu\" not implemented for 'Bool'");
  ck_assert_int_eq(weir_set_blas((weir_blas)3), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "weir_set_blas: 3 is none of auto (0), builtin (1), vendor (2)");
  ck_assert_int_eq(weir_set_num_threads(0), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "expected positive number of threads, got 0");
}
END_TEST

START_TEST(the_environment_chooses_until_somebody_does)
{
  ck_assert_int_eq(setenv("WEIR_BLAS", "builtin", 1), 0);
  ck_assert_int_eq(setenv("WEIR_NUM_THREADS", "3", 1), 0);
  ck_assert_int_eq(weir_get_blas(), WEIR_BLAS_BUILTIN);
  ck_assert_int_eq(weir_get_num_threads(), 3);
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_AUTO), WEIR_OK);
  ck_assert_int_eq(weir_set_num_threads(2), WEIR_OK);
  ck_assert_int_eq(weir_get_blas(), WEIR_BLAS_AUTO);
  ck_assert_int_eq(weir_get_num_threads(), 2);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu gemm");
  TCase *t = tcase_create("gemm");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, products_of_every_dtype_are_those_of_plain_sums, 0, DTYPES);
  tcase_add_loop_test(t, large_products_are_put_together_from_blocks, 0, 3);
  tcase_add_test(t, threads_change_no_bit_of_a_product);
  tcase_add_test(t, a_library_s_products_are_those_of_plain_sums_too);
  tcase_add_test(t, what_is_not_there_says_so);
  tcase_add_test(t, the_environment_chooses_until_somebody_does);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
