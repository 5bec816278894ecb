/* rows_gpu.c: the allocator on a real device, beside the driver's own ways (bench/gpu), and tensors
 * there (bench/gpu_tensor), in children that take turns. Where there is no GPU the rows say so, and
 * nothing else. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"

enum { CHILDREN = 9, NO_GPU = 3 };

/* False, and noted, where there is none. */
static bool gpu_there(measured *m)
{
  char name[100] = "";
  FILE *f = popen(bench_text("'%s/bench/gpu' name 2>&1", bench_build), "r");
  if (!f) {
    m->failed = true;
    return false;
  }
  if (!fgets(name, sizeof name, f)) name[0] = 0;
  name[strcspn(name, "\n\"\\")] = 0;
  int status = pclose(f);
  m->absent = WIFEXITED(status) && WEXITSTATUS(status) == NO_GPU;
  if (strstr(name, "Software Device")) m->absent = true; /* no figure for a GPU */
  m->failed = !m->absent && status != 0;
  (void)snprintf(m->note, sizeof m->note, "%s%s",
                 m->absent   ? "no GPU"
                 : m->failed ? "bench/gpu failed: "
                             : "on ",
                 m->absent ? "" : name);
  return status == 0 && !m->absent;
}

static const char *program = "gpu"; /* which of the two */

static bool run(double *value, const char *what)
{
  const char *const argv[] = {bench_text("%s/bench/%s", bench_build, program), what, NULL};
  return bench_run(value, NULL, NULL, argv);
}

static void one(measured *m, const char *what)
{
  double each[CHILDREN];
  if (!gpu_there(m)) return;
  for (int i = 0; i < CHILDREN && !m->failed; i++)
    m->failed = !run(&each[i], what);
  if (!m->failed) m->value = bench_median(each, CHILDREN);
}

static void quotient(measured *m, const char *ours, const char *theirs)
{
  double with[CHILDREN] = {0}, without[CHILDREN] = {0}, ratio[CHILDREN];
  if (!gpu_there(m)) return;
  for (int i = 0; i < CHILDREN && !m->failed; i++) {
    m->failed = !run(&with[i], ours) || !run(&without[i], theirs);
    ratio[i] = m->failed ? 0 : with[i] / without[i];
  }
  if (m->failed) return;
  m->with = bench_median(with, CHILDREN);
  m->without = bench_median(without, CHILDREN);
  m->value = bench_median(ratio, CHILDREN);
}

void measure_gpu_hit(measured *m)
{
  one(m, "hit");
}

void measure_gpu_async(measured *m)
{
  quotient(m, "hit", "async");
}

void measure_gpu_malloc(measured *m)
{
  quotient(m, "large", "malloc");
}

void measure_gpu_pinned(measured *m)
{
  one(m, "pinned");
}

static void of_tensors(measured *m, const char *ours, const char *theirs)
{
  program = "gpu_tensor";
  quotient(m, ours, theirs);
  program = "gpu";
}

/* What is moved a second, by what a copy within the device moves. */
void measure_gpu_add(measured *m)
{
  of_tensors(m, "add", "d2d");
}

void measure_gpu_sum(measured *m)
{
  of_tensors(m, "sum", "d2d");
}

void measure_gpu_dispatch(measured *m)
{
  of_tensors(m, "dispatch", "launch");
}

/* The engine's kernels by cuBLAS. */
void measure_gpu_gemm(measured *m)
{
  of_tensors(m, "gemm-float32-builtin", "gemm-float32");
}

void measure_gpu_gemv(measured *m)
{
  of_tensors(m, "gemv-builtin", "d2d");
}
