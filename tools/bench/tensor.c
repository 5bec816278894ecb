/* tensor.c: what tensors cost on the cpu, through the library's public functions.
 *
 *   tensor first|add|view|copy|stream|blas|builtin|share|product
 *
 * Prints one number. first: does one addition and prints nothing of interest; who runs it takes the
 * time. add: ns an addition of one element, its result released. view: ns a view, released. The
 * others are quotients, bursts in turn, one thread: copy: copy_ of 64 MiB by memcpy. stream: add_
 * of 64 MiB by the same loop in C. blas: matmul by OpenBLAS called directly; builtin: Weir's own by
 * the same. Of several sizes the worst counts. share, product: an addition of 131072 elements and a
 * product of 128^2 by two threads, by the same of one: how soon a second thread joins.
 *
 * A burst in which the kernel gave the processor to somebody else is measured again. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"
#include "tools/bench/timing.h"

enum { BURSTS = 31, LARGE = 16 << 20 };

typedef void (*work)(void);

static weir_tensor *a, *b, *c;
static float *raw_a, *raw_b, *raw_c;
static int n;
static void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                     float, float *, int);

/* ns of `count` calls, undisturbed where that can be had in a few tries. */
static double ns_of_burst(work f, int count)
{
  double best = 0;
  for (int tries = 0; tries < 8; tries++) {
    long before = interruptions();
    double begin = now_ns();
    for (int i = 0; i < count; i++)
      f();
    best = now_ns() - begin;
    if (interruptions() == before) break;
  }
  return best;
}

static double median_ns(work f, int count)
{
  double each[BURSTS];
  for (int i = 0; i < BURSTS; i++)
    each[i] = ns_of_burst(f, count) / count;
  return median_of(each, BURSTS);
}

/* Speed of f / speed of g. */
static double speed_ratio(work f, work g, int count, int bursts)
{
  double each[BURSTS];
  for (int i = 0; i < bursts; i++) {
    double ours = ns_of_burst(f, count), theirs = ns_of_burst(g, count);
    each[i] = theirs / ours;
  }
  return median_of(each, (size_t)bursts);
}

static void add_one(void)
{
  weir_tensor *sum;
  if (weir_add(&sum, a, b)) exit(1);
  weir_tensor_release(sum);
}

static void view_one(void)
{
  weir_tensor *view;
  if (weir_view(&view, a, weir_shape(1, 1))) exit(1);
  weir_tensor_release(view);
}

static void copy_ours(void)
{
  if (weir_copy_(a, b, false)) exit(1);
}

static void copy_theirs(void)
{
  memcpy(raw_a, raw_b, (size_t)LARGE * sizeof *raw_a);
}

static void add_ours(void)
{
  if (weir_add_(a, b)) exit(1);
}

static void add_theirs(void)
{
  float *restrict to = raw_a;
  const float *restrict from = raw_b;
  for (long i = 0; i < LARGE; i++)
    to[i] += from[i];
}

static void gemm_ours(void)
{
  weir_tensor *product;
  if (weir_matmul(&product, a, b)) exit(1);
  weir_tensor_release(product);
}

static void gemm_theirs(void)
{
  sgemm(101, 111, 111, n, n, n, 1, raw_a, n, raw_b, n, 0, raw_c, n);
}

static void make_operands(int64_t rows, int64_t columns)
{
  weir_tensor **const of[] = {&a, &b, &c};
  float **const raw[] = {&raw_a, &raw_b, &raw_c};
  for (int i = 0; i < 3; i++) {
    weir_tensor_release(*of[i]);
    if (weir_rand(of[i], weir_shape(rows, columns), NULL)) exit(1);
    *raw[i] = weir_tensor_data(*of[i]);
  }
}

/* An OpenBLAS that does not know the processor would be an easy match. */
static double run_products(weir_blas which)
{
  static const int sizes[] = {128, 256, 512, 1024};
  double worst = 1e9;
  if (__builtin_cpu_supports("avx512f"))
    (void)setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  else if (__builtin_cpu_supports("avx2"))
    (void)setenv("OPENBLAS_CORETYPE", "Haswell", 0);
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) exit(3);
  *(void **)&sgemm = dlsym(library, "cblas_sgemm");
  void (*threads)(int);
  *(void **)&threads = dlsym(library, "openblas_set_num_threads");
  if (!sgemm || !threads) exit(3);
  threads(1);
  (void)weir_set_blas(which);
  for (int i = 0; i < 4; i++) {
    n = sizes[i];
    make_operands(n, n);
    double q = speed_ratio(gemm_ours, gemm_theirs, (int)(5e7 / ((double)n * n * n)) + 1, 15);
    if (q < worst) worst = q;
  }
  return worst;
}

static void add_shared(void)
{
  (void)weir_set_num_threads(2);
  for (int i = 0; i < 100; i++)
    add_one();
}

static void add_alone(void)
{
  (void)weir_set_num_threads(1);
  for (int i = 0; i < 100; i++)
    add_one();
}

static void products_shared(void)
{
  (void)weir_set_num_threads(2);
  for (int i = 0; i < 100; i++)
    gemm_ours();
}

static void products_alone(void)
{
  (void)weir_set_num_threads(1);
  for (int i = 0; i < 100; i++)
    gemm_ours();
}

static double measure_named(const char *what)
{
  if (strcmp(what, "first") != 0) (void)weir_set_num_threads(1);
  if (!strcmp(what, "copy") || !strcmp(what, "stream")) {
    make_operands(1, LARGE);
    bool copy = *what == 'c';
    return speed_ratio(copy ? copy_ours : add_ours, copy ? copy_theirs : add_theirs, 1, BURSTS);
  }
  if (!strcmp(what, "share")) {
    make_operands(1, 1 << 17);
    return speed_ratio(add_shared, add_alone, 1, BURSTS);
  }
  if (!strcmp(what, "product")) {
    make_operands(128, 128);
    return speed_ratio(products_shared, products_alone, 1, BURSTS);
  }
  if (!strcmp(what, "blas")) return run_products(WEIR_BLAS_VENDOR);
  if (!strcmp(what, "builtin")) return run_products(WEIR_BLAS_BUILTIN);
  make_operands(1, 1);
  if (!strcmp(what, "add")) return median_ns(add_one, 200);
  if (!strcmp(what, "view")) return median_ns(view_one, 200);
  add_one();
  return 0;
}

int main(int argc, char **argv)
{
  if (argc != 2) return 2;
  (void)printf("%g\n", measure_named(argv[1]));
  return 0;
}
