/* gpu_tensor.c: what tensors cost on a real device, through the library's public functions.
 *
 *   gpu_tensor WHAT...       a number a line
 *   gpu_tensor all           every one of them as "WHAT VALUE UNIT"
 *   gpu_tensor -s N ...      sizes and counts divided by N, to try the program itself
 *
 * tests/gpu/torch_figures.py measures the same by PyTorch, under the same names. Work on the device
 * is timed by events around bursts of it, calls by the host's clock; the median of bursts counts.
 *
 * h2d, d2h: 256 MiB, by copy_ from and to pinned and pageable memory; d2d: 256 MiB within the
 * device, bytes read and written. hit: empty + release of 1 MiB, large-hit of 32 MiB; miss: the
 * same of 32 MiB and empty_cache, so that the memory comes from the driver each time. add, mul2,
 * relu: 64 MiB of float32, bytes read and written; sum of as much; cast to float16. gemm: square
 * products of 4096, by cuBLAS and by the engine's kernels (-builtin); gemv: a row by 4096 x 4096,
 * bytes of the matrix; gemm-128: many small ones, in turn. conv: (32, 64, 56, 56) by (64, 64, 3,
 * 3). dispatch: ns of a call that adds one element; launch: of a bare cuLaunchKernel.
 *
 * Without a device it says "no GPU" on stderr, why, and ends with 3. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"
#include "tools/bench/timing.h"

enum { BURSTS = 11, NO_GPU = 3, MIB = 1 << 20 };

static const weir_device gpu = WEIR_CUDA_INIT(0), cpu = {.type = WEIR_DEVICE_CPU};
static int64_t scale = 1;  /* sizes are divided by it */
static weir_tensor *x, *y; /* operands of what is measured */

static void check_status(weir_status st, const char *what)
{
  if (!st) return;
  (void)fprintf(stderr, "gpu_tensor: %s: %s\n", what, weir_error_message());
  exit(1);
}
#define MUST(call) check_status((call), #call)

static int64_t scaled(int64_t n)
{
  return n / scale > 0 ? n / scale : 1;
}

/* ns of the device's for one of `count` calls. */
static double device_ns(void (*one)(void), int count)
{
  weir_event_options timed = {.enable_timing = true};
  weir_event *start, *end;
  double each[BURSTS], ms;
  MUST(weir_event_new(&start, &timed));
  MUST(weir_event_new(&end, &timed));
  count = (int)scaled(count);
  one();
  for (int b = 0; b < BURSTS; b++) {
    MUST(weir_synchronize(gpu));
    MUST(weir_event_record(start, NULL));
    for (int i = 0; i < count; i++)
      one();
    MUST(weir_event_record(end, NULL));
    MUST(weir_event_synchronize(end));
    MUST(weir_event_elapsed_time(&ms, start, end));
    each[b] = ms * 1e6 / count;
  }
  weir_event_release(start);
  weir_event_release(end);
  return median_of(each, BURSTS);
}

/* ns of the host's for one of `count` calls; what they enqueued is waited for behind them. */
static double host_ns(void (*one)(void), int count)
{
  double each[BURSTS];
  count = (int)scaled(count);
  one();
  for (int b = 0; b < BURSTS; b++) {
    MUST(weir_synchronize(gpu));
    double begin = now_ns();
    for (int i = 0; i < count; i++)
      one();
    each[b] = (now_ns() - begin) / count;
  }
  MUST(weir_synchronize(gpu));
  return median_of(each, BURSTS);
}

static void drop_operands(void)
{
  weir_tensor_drop(&x);
  weir_tensor_drop(&y);
}

static weir_tensor *random_tensor(weir_dtype dtype, weir_shape shape)
{
  weir_tensor *t;
  MUST(weir_randn(&t, shape, &(weir_options){.dtype = dtype, .device = gpu}));
  return t;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void copy_it(void)
{
  MUST(weir_copy_(x, y, true));
}

static weir_tensor *bytes_on(weir_device d, bool pinned)
{
  weir_tensor *t;
  weir_options o = {.dtype = WEIR_UINT8, .device = d, .pin_memory = pinned};
  MUST(weir_zeros(&t, weir_shape(scaled(256 * MIB)), &o));
  return t;
}

/* GB/s, of the host's time: a pageable copy is the host's work. */
static double copies(weir_device to, weir_device from, bool pinned)
{
  x = bytes_on(to, to.type == WEIR_DEVICE_CPU && pinned);
  y = bytes_on(from, from.type == WEIR_DEVICE_CPU && pinned);
  double bytes = (double)weir_tensor_numel(x), each[BURSTS];
  copy_it();
  for (int b = 0; b < BURSTS; b++) {
    MUST(weir_synchronize(gpu));
    double begin = now_ns();
    copy_it();
    MUST(weir_synchronize(gpu));
    each[b] = bytes / (now_ns() - begin);
  }
  drop_operands();
  return median_of(each, BURSTS);
}

static double h2d_pinned(void)
{
  return copies(gpu, cpu, true);
}

static double d2h_pinned(void)
{
  return copies(cpu, gpu, true);
}

static double h2d_pageable(void)
{
  return copies(gpu, cpu, false);
}

static double d2h_pageable(void)
{
  return copies(cpu, gpu, false);
}

static double d2d(void)
{
  x = bytes_on(gpu, false), y = bytes_on(gpu, false);
  double moved = 2 * (double)weir_tensor_numel(x) / device_ns(copy_it, 20);
  drop_operands();
  return moved;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void empty_of(int64_t bytes)
{
  weir_tensor *t;
  MUST(weir_empty(&t, weir_shape(bytes), &(weir_options){.dtype = WEIR_UINT8, .device = gpu}));
  weir_tensor_release(t);
}

static void empty_small(void)
{
  empty_of(MIB);
}

static void empty_large(void)
{
  empty_of(32 * MIB);
}

static void empty_new(void)
{
  empty_large();
  MUST(weir_memory_empty_cache(gpu));
}

static double measure_hit(void)
{
  return host_ns(empty_small, 10000);
}

static double large_hit(void)
{
  return host_ns(empty_large, 10000);
}

static double measure_miss(void)
{
  return host_ns(empty_new, 20);
}

/* ---- elementwise, reductions ----------------------------------------------------------------- */

static weir_status sum_last_dim(weir_tensor **out, const weir_tensor *a)
{
  return weir_sum_dim(out, a, 1, false);
}

static weir_status times_two(weir_tensor **out, const weir_tensor *a)
{
  return weir_mul_scalar(out, a, weir_float(2));
}

static weir_status half_of(weir_tensor **out, const weir_tensor *a)
{
  return weir_to_dtype(out, a, WEIR_FLOAT16);
}

static weir_status (*of_one)(weir_tensor **out, const weir_tensor *a);
static weir_status (*of_two)(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);

static void run_one(void)
{
  weir_tensor *t;
  check_status(of_one(&t, x), "an operation");
  weir_tensor_release(t);
}

static void run_two(void)
{
  weir_tensor *t;
  check_status(of_two(&t, x, y), "an operation");
  weir_tensor_release(t);
}

/* GB/s; `each`: bytes moved for an element. */
static double moved_by_one(weir_status (*op)(weir_tensor **, const weir_tensor *), int each)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(scaled(4096), 4096));
  of_one = op;
  double rate = each * (double)weir_tensor_numel(x) / device_ns(run_one, 50);
  drop_operands();
  return rate;
}

static double measure_add(void)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(scaled(4096), 4096));
  y = random_tensor(WEIR_FLOAT32, weir_shape(scaled(4096), 4096));
  of_two = weir_add;
  double rate = 12 * (double)weir_tensor_numel(x) / device_ns(run_two, 50);
  drop_operands();
  return rate;
}

static double mul2(void)
{
  return moved_by_one(times_two, 8);
}

static double relu(void)
{
  return moved_by_one(weir_relu, 8);
}

static double cast(void)
{
  return moved_by_one(half_of, 6);
}

static double measure_sum(void)
{
  return moved_by_one(weir_sum, 4);
}

static double sum_rows(void)
{
  return moved_by_one(sum_last_dim, 4);
}

/* ---- products -------------------------------------------------------------------------------- */

/* cuBLAS where the library has the choice and there is one; where there is none it is said, once.
 */
static weir_blas choose(weir_blas blas)
{
  static bool said;
  weir_tensor *c = NULL;
  if (blas == WEIR_BLAS_BUILTIN) return blas;
  MUST(weir_set_blas(WEIR_BLAS_VENDOR));
  weir_status st = weir_matmul(&c, x, y);
  weir_tensor_release(c);
  if (!st) return WEIR_BLAS_VENDOR;
  if (!said) (void)fprintf(stderr, "gpu_tensor: without cuBLAS: %s\n", weir_error_message());
  said = true;
  return WEIR_BLAS_AUTO;
}

/* ns of a product (m, k) by (k, n). */
static double product_ns(weir_dtype dtype, weir_blas blas, const int64_t *mnk, int count)
{
  x = random_tensor(dtype, weir_shape(mnk[0], mnk[2]));
  y = random_tensor(dtype, weir_shape(mnk[2], mnk[1]));
  MUST(weir_set_blas(choose(blas)));
  of_two = weir_matmul;
  double ns = device_ns(run_two, count);
  MUST(weir_set_blas(WEIR_BLAS_AUTO));
  drop_operands();
  return ns;
}

/* TFLOP/s of a square product. */
static double square(weir_dtype dtype, weir_blas blas, int64_t side, int count)
{
  side = scaled(side);
  const int64_t mnk[] = {side, side, side};
  return 2e-3 * (double)side * (double)side * (double)side / product_ns(dtype, blas, mnk, count);
}

static double measure_gemm(void)
{
  return square(WEIR_FLOAT32, WEIR_BLAS_AUTO, 4096, 10);
}

static double gemm_builtin(void)
{
  return square(WEIR_FLOAT32, WEIR_BLAS_BUILTIN, 4096, 10);
}

static double gemm_tf32(void)
{
  weir_set_allow_tf32(true);
  double rate = square(WEIR_FLOAT32, WEIR_BLAS_AUTO, 4096, 20);
  weir_set_allow_tf32(false);
  return rate;
}

static double gemm_float16(void)
{
  return square(WEIR_FLOAT16, WEIR_BLAS_AUTO, 4096, 20);
}

static double gemm_float16_builtin(void)
{
  return square(WEIR_FLOAT16, WEIR_BLAS_BUILTIN, 4096, 10);
}

static double gemm_bfloat16(void)
{
  return square(WEIR_BFLOAT16, WEIR_BLAS_AUTO, 4096, 20);
}

static double gemm_float64(void)
{
  return square(WEIR_FLOAT64, WEIR_BLAS_AUTO, 2048, 10);
}

static double gemm_128(void)
{
  return square(WEIR_FLOAT32, WEIR_BLAS_AUTO, 128, 200);
}

static double gemm_128_builtin(void)
{
  return square(WEIR_FLOAT32, WEIR_BLAS_BUILTIN, 128, 200);
}

/* GB/s of the matrix. */
static double gemv_by(weir_blas blas)
{
  const int64_t mnk[] = {1, scaled(4096), scaled(4096)};
  return 4 * (double)mnk[1] * (double)mnk[2] / product_ns(WEIR_FLOAT32, blas, mnk, 100);
}

static double gemv(void)
{
  return gemv_by(WEIR_BLAS_AUTO);
}

static double gemv_builtin(void)
{
  return gemv_by(WEIR_BLAS_BUILTIN);
}

static weir_status convolve(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_conv2d(out, a, b, NULL, NULL);
}

/* TFLOP/s. */
static double conv(void)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(scaled(32), 64, 56, 56));
  y = random_tensor(WEIR_FLOAT32, weir_shape(64, 64, 3, 3));
  of_two = convolve;
  double flop = 2.0 * (double)weir_tensor_size(x, 0) * 64 * 54 * 54 * 64 * 9;
  double rate = flop / device_ns(run_two, 10) * 1e-3;
  drop_operands();
  return rate;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static double dispatch(void)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(1)), y = random_tensor(WEIR_FLOAT32, weir_shape(1));
  of_two = weir_add;
  double ns = host_ns(run_two, 500);
  drop_operands();
  return ns;
}

static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **);
static void *kernel, *native;

static void launch_bare(void)
{
  if (!launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, native, NULL, NULL)) return;
  (void)fprintf(stderr, "gpu_tensor: cuLaunchKernel failed\n");
  exit(1);
}

static void *driver(const char *name)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *out = library ? dlsym(library, name) : NULL;
  if (out) return out;
  (void)fprintf(stderr, "gpu_tensor: the driver has no %s\n", name);
  exit(1);
}

static double launch(void)
{
  static const char image[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                              ".visible .entry nothing()\n{\n ret;\n}\n";
  int (*retain)(void **, int), (*set)(void *), (*load)(void **, const void *);
  int (*find)(void **, void *, const char *);
  void *context, *module;
  weir_stream *plain;
  *(void **)&retain = driver("cuDevicePrimaryCtxRetain");
  *(void **)&set = driver("cuCtxSetCurrent");
  *(void **)&load = driver("cuModuleLoadData");
  *(void **)&find = driver("cuModuleGetFunction");
  *(void **)&launch_kernel = driver("cuLaunchKernel");
  if (retain(&context, 0) || set(context) || load(&module, image) ||
      find(&kernel, module, "nothing")) {
    (void)fprintf(stderr, "gpu_tensor: the empty kernel cannot be loaded\n");
    exit(1);
  }
  MUST(weir_default_stream(&plain, gpu));
  MUST(weir_stream_native(&native, plain));
  return host_ns(launch_bare, 500);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct what {
  const char *name;
  double (*measure)(void);
  const char *unit;
} whats[] = {{"h2d-pinned", h2d_pinned, "GB/s"},
             {"d2h-pinned", d2h_pinned, "GB/s"},
             {"h2d-pageable", h2d_pageable, "GB/s"},
             {"d2h-pageable", d2h_pageable, "GB/s"},
             {"d2d", d2d, "GB/s"},
             {"hit", measure_hit, "ns"},
             {"large-hit", large_hit, "ns"},
             {"miss", measure_miss, "ns"},
             {"add", measure_add, "GB/s"},
             {"mul2", mul2, "GB/s"},
             {"relu", relu, "GB/s"},
             {"cast", cast, "GB/s"},
             {"sum", measure_sum, "GB/s"},
             {"sum-rows", sum_rows, "GB/s"},
             {"gemm-float32", measure_gemm, "TFLOP/s"},
             {"gemm-float32-builtin", gemm_builtin, "TFLOP/s"},
             {"gemm-tf32", gemm_tf32, "TFLOP/s"},
             {"gemm-float16", gemm_float16, "TFLOP/s"},
             {"gemm-float16-builtin", gemm_float16_builtin, "TFLOP/s"},
             {"gemm-bfloat16", gemm_bfloat16, "TFLOP/s"},
             {"gemm-float64", gemm_float64, "TFLOP/s"},
             {"gemm-128", gemm_128, "TFLOP/s"},
             {"gemm-128-builtin", gemm_128_builtin, "TFLOP/s"},
             {"gemv", gemv, "GB/s"},
             {"gemv-builtin", gemv_builtin, "GB/s"},
             {"conv", conv, "TFLOP/s"},
             {"dispatch", dispatch, "ns"},
             {"launch", launch, "ns"}};

static void print_values(const char *name)
{
  bool all = !strcmp(name, "all"), found = all;
  for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
    if (!all && strcmp(name, whats[i].name) != 0) continue;
    found = true;
    if (all) printf("%s %.4g %s\n", whats[i].name, whats[i].measure(), whats[i].unit);
    if (!all) printf("%.6g\n", whats[i].measure());
    (void)fflush(stdout);
  }
  if (found) return;
  (void)fprintf(stderr, "gpu_tensor: nothing is called %s\n", name);
  exit(2);
}

int main(int argc, char **argv)
{
  int first = 1;
  if (!weir_cuda_is_available()) {
    (void)fprintf(stderr, "gpu_tensor: no GPU: %s\n", weir_error_message());
    return NO_GPU;
  }
  if (argc > 3 && !strcmp(argv[1], "-s")) {
    scale = strtoll(argv[2], NULL, 10);
    first = 3;
  }
  for (int i = first; i < argc; i++)
    print_values(argv[i]);
  return 0;
}
