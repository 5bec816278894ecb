/* rows_tensor.c: tensors on the cpu: bench/tensor, in children. */
#include <dlfcn.h>
#include <stdio.h>
#include "tools/bench/bench.h"

enum { CHILDREN = 5, STARTS = 9 };

static void measure_child(measured *m, const row *r)
{
  const char *const argv[] = {bench_text("%s/bench/tensor", bench_build), r->args[0], NULL};
  (void)bench_children(m, CHILDREN, argv);
}

static bool has_openblas(measured *m)
{
  void *library = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
  m->absent = !library;
  if (library)
    (void)dlclose(library);
  else
    (void)snprintf(m->note, sizeof m->note, "no libopenblas.so.0 (Debian: libopenblas0)");
  return !m->absent;
}

static void against_openblas(measured *m, const row *r)
{
  if (has_openblas(m)) measure_child(m, r);
}

/* With the program's own start, of which that is most. */
static void start(measured *m, const row *r)
{
  double each[STARTS];
  const char *const argv[] = {bench_text("%s/bench/tensor", bench_build), r->args[0], NULL};
  for (int i = 0; i < STARTS && !m->failed; i++)
    m->failed = !bench_run(NULL, &each[i], NULL, argv);
  if (!m->failed) m->value = bench_median(each, STARTS) * 1e3;
}

static void size(measured *m, const row *r)
{
  const char *const argv[] = {
      "sh", "-c",
      bench_text("strip -o %s/stripped %s/lib/libweir.so.0 && stat -c %%s %s/stripped",
                 bench_scratch, bench_build, bench_scratch),
      NULL};
  (void)r;
  if (!bench_run(&m->value, NULL, NULL, argv)) bench_give_up(m, "strip failed");
  m->value /= 1 << 20;
}

const row rows_tensor[] = {
    AT_MOST("tensor-add", "add of one element, cpu", "ns", 100, measure_child,
            "weir_add of one float32 and its release, bursts of 200", "add"),
    AT_MOST("tensor-view", "a view", "ns", 50, measure_child,
            "weir_view and its release, bursts of 200", "view"),
    AT_LEAST("tensor-copy", "copy_ of 64 MiB / memcpy", "x", 0.9, measure_child,
             "64 MiB of float32, one thread, in turn", "copy"),
    AT_LEAST("tensor-stream", "add of 64 MiB / a loop in C", "x", 0.9, measure_child,
             "a += b of 64 MiB, the same loop in C, one thread, in turn", "stream"),
    AT_LEAST("tensor-blas", "matmul / OpenBLAS called directly", "x", 0.95, against_openblas,
             "weir_matmul, float32, 128 to 1024, the worst; one thread", "blas"),
    AT_LEAST("tensor-builtin", "matmul, built in / OpenBLAS", "x", 0.4, against_openblas,
             "float32, 128 to 1024, the worst; OpenBLAS told this processor's kernels", "builtin"),
    AT_LEAST("tensor-share", "add of 131072, 2 threads / 1", "x", 1.25, measure_child,
             "bursts of 100 in turn", "share"),
    AT_LEAST("tensor-product", "matmul of 128^2, 2 threads / 1", "x", 1.25, measure_child,
             "float32, bursts of 100 in turn", "product"),
    AT_MOST("tensor-first", "a program's first tensor", "ms", 5, start,
            "a program's start, three tensors, a sum, its end", "first"),
    AT_MOST("tensor-size", "the library", "MiB", 2, size, "libweir.so, stripped", NULL),
    {0},
};
