/* rows_tensor.c: tensors on the cpu: bench/tensor, in children. */
#include <dlfcn.h>
#include <stdio.h>
#include "tools/bench/bench.h"

enum { CHILDREN = 5 };

static void child(measured *m, const char *what, const char *text)
{
  double each[CHILDREN];
  const char *const argv[] = {bench_text("%s/bench/tensor", bench_build), what, NULL};
  for (int i = 0; i < CHILDREN && !m->failed; i++)
    m->failed = !bench_run(&each[i], NULL, NULL, argv);
  if (!m->failed) m->value = bench_median(each, CHILDREN);
  (void)snprintf(m->note, sizeof m->note, "%s", m->failed ? "a child failed" : text);
}

void measure_tensor_add(measured *m)
{
  child(m, "add", "weir_add of one float32 and its release, bursts of 200");
}

void measure_tensor_view(measured *m)
{
  child(m, "view", "weir_view and its release, bursts of 200");
}

void measure_tensor_copy(measured *m)
{
  child(m, "copy", "64 MiB of float32, one thread, in turn");
}

void measure_tensor_stream(measured *m)
{
  child(m, "stream", "a += b of 64 MiB, the same loop in C, one thread, in turn");
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

void measure_tensor_blas(measured *m)
{
  if (has_openblas(m)) child(m, "blas", "weir_matmul, float32, 128 to 1024, the worst; one thread");
}

void measure_tensor_builtin(measured *m)
{
  if (has_openblas(m))
    child(m, "builtin", "float32, 128 to 1024, the worst; OpenBLAS told this processor's kernels");
}

/* With the program's own start, of which that is most. */
void measure_tensor_first(measured *m)
{
  double each[9];
  const char *const argv[] = {bench_text("%s/bench/tensor", bench_build), "first", NULL};
  for (int i = 0; i < 9 && !m->failed; i++)
    m->failed = !bench_run(NULL, &each[i], NULL, argv);
  if (!m->failed) m->value = bench_median(each, 9) * 1e3;
  (void)snprintf(m->note, sizeof m->note, "a program's start, three tensors, a sum, its end");
}

void measure_tensor_size(measured *m)
{
  const char *const argv[] = {
      "sh", "-c",
      bench_text("strip -o %s/stripped %s/lib/libweir.so.0 && stat -c %%s %s/stripped",
                 bench_scratch, bench_build, bench_scratch),
      NULL};
  m->failed = !bench_run(&m->value, NULL, NULL, argv);
  m->value /= 1 << 20;
  (void)snprintf(m->note, sizeof m->note, "%s",
                 m->failed ? "strip failed" : "libweir.so, stripped");
}
