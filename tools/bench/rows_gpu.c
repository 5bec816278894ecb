/* rows_gpu.c: the allocator on a real device, compared with the driver's own ways (bench/gpu),
 * and tensors there (bench/gpu_tensor), in children that take turns. Where there is no GPU the
 * rows print that, and nothing else. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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

/* args: which of the two programs, and what of it. */
static void alone(measured *m, const row *r)
{
  const char *const argv[] = {bench_text("%s/bench/%s", bench_build, r->args[0]), r->args[1], NULL};
  if (gpu_there(m)) (void)bench_children(m, CHILDREN, argv);
}

/* args: the same, and what of it to compare with. */
static void compared(measured *m, const row *r)
{
  const char *const with[] = {bench_text("%s/bench/%s", bench_build, r->args[0]), r->args[1], NULL};
  const char *const without[] = {with[0], r->args[2], NULL};
  if (gpu_there(m)) (void)bench_turns(m, CHILDREN, with, without);
}

const row rows_gpu[] = {
    AT_MOST("gpu-hit", "GPU: hit, malloc + free", "ns", 15, alone, NULL, "gpu", "hit"),
    AT_MOST("gpu-async", "GPU: hit / cudaMallocAsync + FreeAsync", "x", 1, compared, NULL, "gpu",
            "hit", "async"),
    AT_MOST("gpu-malloc", "GPU: 32 MiB / cudaMalloc + cudaFree", "x", 1, compared, NULL, "gpu",
            "large", "malloc"),
    AT_MOST("gpu-pinned", "GPU: pinned hit, malloc + free", "ns", 30, alone, NULL, "gpu", "pinned"),
    AT_MOST("gpu-dispatch", "GPU: add of 1 element / a launch", "x", 1.5, compared, NULL,
            "gpu_tensor", "dispatch", "launch"),
    /* What is moved a second, by what a copy within the device moves. */
    AT_LEAST("gpu-add", "GPU: add of 64 MiB / copy there", "x", 0.9, compared, NULL, "gpu_tensor",
             "add", "d2d"),
    AT_LEAST("gpu-sum", "GPU: sum of 64 MiB / copy there", "x", 0.9, compared, NULL, "gpu_tensor",
             "sum", "d2d"),
    /* The engine's kernels by cuBLAS. */
    AT_LEAST("gpu-gemm", "GPU: matmul, built in / cuBLAS", "x", 0.4, compared, NULL, "gpu_tensor",
             "gemm-float32-builtin", "gemm-float32"),
    AT_LEAST("gpu-gemv", "GPU: vector-matrix, built in / copy", "x", 0.5, compared, NULL,
             "gpu_tensor", "gemv-builtin", "d2d"),
    {0},
};
