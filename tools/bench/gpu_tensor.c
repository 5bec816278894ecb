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
 * 3), by cuDNN where it is, and by the engine (-builtin). dispatch: ns of a call that adds one
 * element; launch: of a bare cuLaunchKernel.
 *
 * Without a device it prints "no GPU" and the reason on stderr, and ends with 3. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"
#include "tools/bench/timing.h"

enum { BURSTS = 11, NO_GPU = 3, MIB = 1 << 20 };

typedef weir_status one_operand(weir_tensor **out, const weir_tensor *a);
typedef weir_status two_operands(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);

/* A row of what can be measured. */
typedef struct what what;
struct what {
  const char *name, *unit;
  double (*measure)(const what *w);
  struct { /* copies */
    bool to_cpu, from_cpu, pinned;
  } copy;
  one_operand *op; /* elementwise work, reductions */
  int each;        /* bytes it moves for an element */
  struct {         /* products; of a row times a matrix only `blas` */
    weir_dtype dtype;
    weir_blas blas;
    int side, count;
    bool tf32;
  } product;
  void (*one)(void); /* memory: what is timed */
  int count;         /* calls in a burst, where a row has no more */
};

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

static int64_t scale_size(int64_t n)
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
  count = (int)scale_size(count);
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

/* ns of the host's for one of `count` calls; what they enqueued is waited for after them. */
static double host_ns(void (*one)(void), int count)
{
  double each[BURSTS];
  count = (int)scale_size(count);
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
  MUST(weir_zeros(&t, weir_shape(scale_size(256 * MIB)), &o));
  return t;
}

/* GB/s, of the host's time: a pageable copy is the host's work. */
static double copies(const what *w)
{
  x = bytes_on(w->copy.to_cpu ? cpu : gpu, w->copy.to_cpu && w->copy.pinned);
  y = bytes_on(w->copy.from_cpu ? cpu : gpu, w->copy.from_cpu && w->copy.pinned);
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

static double copy_on_device(const what *w)
{
  x = bytes_on(gpu, false), y = bytes_on(gpu, false);
  double moved = 2 * (double)weir_tensor_numel(x) / device_ns(copy_it, w->count);
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

static double allocations(const what *w)
{
  return host_ns(w->one, w->count);
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

static one_operand *of_one;
static two_operands *of_two;

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

/* GB/s. */
static double moved_by_one(const what *w)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(scale_size(4096), 4096));
  of_one = w->op;
  double rate = w->each * (double)weir_tensor_numel(x) / device_ns(run_one, 50);
  drop_operands();
  return rate;
}

static double moved_by_add(const what *w)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(scale_size(4096), 4096));
  y = random_tensor(WEIR_FLOAT32, weir_shape(scale_size(4096), 4096));
  of_two = weir_add;
  double rate = w->each * (double)weir_tensor_numel(x) / device_ns(run_two, 50);
  drop_operands();
  return rate;
}

/* ---- products -------------------------------------------------------------------------------- */

/* cuBLAS where the library has the choice and there is one; where there is none, one line is
 * printed about that. */
static weir_blas blas_or_default(weir_blas blas)
{
  static bool printed;
  weir_tensor *c = NULL;
  if (blas == WEIR_BLAS_BUILTIN) return blas;
  MUST(weir_set_blas(WEIR_BLAS_VENDOR));
  weir_status st = weir_matmul(&c, x, y);
  weir_tensor_release(c);
  if (!st) return WEIR_BLAS_VENDOR;
  if (!printed) (void)fprintf(stderr, "gpu_tensor: without cuBLAS: %s\n", weir_error_message());
  printed = true;
  return WEIR_BLAS_AUTO;
}

/* ns of a product (m, k) by (k, n). */
static double product_ns(weir_dtype dtype, weir_blas blas, const int64_t *mnk, int count)
{
  x = random_tensor(dtype, weir_shape(mnk[0], mnk[2]));
  y = random_tensor(dtype, weir_shape(mnk[2], mnk[1]));
  MUST(weir_set_blas(blas_or_default(blas)));
  of_two = weir_matmul;
  double ns = device_ns(run_two, count);
  MUST(weir_set_blas(WEIR_BLAS_AUTO));
  drop_operands();
  return ns;
}

/* TFLOP/s of a square product. */
static double square(const what *w)
{
  int64_t side = scale_size(w->product.side);
  const int64_t mnk[] = {side, side, side};
  weir_set_allow_tf32(w->product.tf32);
  double ns = product_ns(w->product.dtype, w->product.blas, mnk, w->product.count);
  weir_set_allow_tf32(false);
  return 2e-3 * (double)side * (double)side * (double)side / ns;
}

/* GB/s of the matrix. */
static double gemv(const what *w)
{
  const int64_t mnk[] = {1, scale_size(4096), scale_size(4096)};
  return 4 * (double)mnk[1] * (double)mnk[2] / product_ns(WEIR_FLOAT32, w->product.blas, mnk, 100);
}

static weir_status convolve_3x3(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_conv2d(out, a, b, NULL, NULL);
}

/* TFLOP/s. */
static double conv(const what *w)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(scale_size(32), 64, 56, 56));
  y = random_tensor(WEIR_FLOAT32, weir_shape(64, 64, 3, 3));
  of_two = convolve_3x3;
  double flop = 2.0 * (double)weir_tensor_size(x, 0) * 64 * 54 * 54 * 64 * 9;
  MUST(weir_set_blas(w->product.blas));
  double rate = flop / device_ns(run_two, w->count) * 1e-3;
  MUST(weir_set_blas(WEIR_BLAS_AUTO));
  drop_operands();
  return rate;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static double dispatch(const what *w)
{
  x = random_tensor(WEIR_FLOAT32, weir_shape(1)), y = random_tensor(WEIR_FLOAT32, weir_shape(1));
  of_two = weir_add;
  double ns = host_ns(run_two, w->count);
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

static double bare_launch(const what *w)
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
  return host_ns(launch_bare, w->count);
}

/* ---- all of them ----------------------------------------------------------------------------- */

#define COPY(to, from, pin)       copies, .copy = {.to_cpu = to, .from_cpu = from, .pinned = pin}
#define MOVED(of, bytes)          moved_by_one, .op = of, .each = bytes
#define SQUARE(type, by, n, runs) square, .product = {type, by, n, runs, false}

static const what whats[] = {
    {"h2d-pinned", "GB/s", COPY(false, true, true)},
    {"d2h-pinned", "GB/s", COPY(true, false, true)},
    {"h2d-pageable", "GB/s", COPY(false, true, false)},
    {"d2h-pageable", "GB/s", COPY(true, false, false)},
    {"d2d", "GB/s", copy_on_device, .count = 20},
    {"hit", "ns", allocations, .one = empty_small, .count = 10000},
    {"large-hit", "ns", allocations, .one = empty_large, .count = 10000},
    {"miss", "ns", allocations, .one = empty_new, .count = 20},
    {"add", "GB/s", moved_by_add, .each = 12},
    {"mul2", "GB/s", MOVED(times_two, 8)},
    {"relu", "GB/s", MOVED(weir_relu, 8)},
    {"cast", "GB/s", MOVED(half_of, 6)},
    {"sum", "GB/s", MOVED(weir_sum, 4)},
    {"sum-rows", "GB/s", MOVED(sum_last_dim, 4)},
    {"gemm-float32", "TFLOP/s", SQUARE(WEIR_FLOAT32, WEIR_BLAS_AUTO, 4096, 10)},
    {"gemm-float32-builtin", "TFLOP/s", SQUARE(WEIR_FLOAT32, WEIR_BLAS_BUILTIN, 4096, 10)},
    {"gemm-tf32", "TFLOP/s", square, .product = {WEIR_FLOAT32, WEIR_BLAS_AUTO, 4096, 20, true}},
    {"gemm-float16", "TFLOP/s", SQUARE(WEIR_FLOAT16, WEIR_BLAS_AUTO, 4096, 20)},
    {"gemm-float16-builtin", "TFLOP/s", SQUARE(WEIR_FLOAT16, WEIR_BLAS_BUILTIN, 4096, 10)},
    {"gemm-bfloat16", "TFLOP/s", SQUARE(WEIR_BFLOAT16, WEIR_BLAS_AUTO, 4096, 20)},
    {"gemm-float64", "TFLOP/s", SQUARE(WEIR_FLOAT64, WEIR_BLAS_AUTO, 2048, 10)},
    {"gemm-128", "TFLOP/s", SQUARE(WEIR_FLOAT32, WEIR_BLAS_AUTO, 128, 200)},
    {"gemm-128-builtin", "TFLOP/s", SQUARE(WEIR_FLOAT32, WEIR_BLAS_BUILTIN, 128, 200)},
    {"gemv", "GB/s", gemv, .product.blas = WEIR_BLAS_AUTO},
    {"gemv-builtin", "GB/s", gemv, .product.blas = WEIR_BLAS_BUILTIN},
    {"conv", "TFLOP/s", conv, .count = 10},
    {"conv-builtin", "TFLOP/s", conv, .count = 10, .product.blas = WEIR_BLAS_BUILTIN},
    {"dispatch", "ns", dispatch, .count = 500},
    {"launch", "ns", bare_launch, .count = 500}};

static void print_values(const char *name)
{
  bool all = !strcmp(name, "all"), found = all;
  for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
    if (!all && strcmp(name, whats[i].name) != 0) continue;
    found = true;
    if (all) printf("%s %.4g %s\n", whats[i].name, whats[i].measure(&whats[i]), whats[i].unit);
    if (!all) printf("%.6g\n", whats[i].measure(&whats[i]));
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
