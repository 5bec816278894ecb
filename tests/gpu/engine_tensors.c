/* engine_tensors.c: rows 1 to 12: what tensors are, where they are, and what is calculated. */
#include "tests/gpu/engine.h"

static int is_on(const weir_tensor *t, weir_device d)
{
  return weir_device_equal(weir_tensor_device(t), d);
}

void row_dtypes(void)
{
  for (int k = 1; k < WEIR_DTYPES; k++) {
    weir_dtype dtype = (weir_dtype)k, parsed;
    weir_device d;
    weir_tensor *a = numbers(dtype, weir_shape(3, 5), (unsigned)k), *b = there(a), *back, *again;
    const char *type = weir_tensor_type(b);
    HOLDS(weir_tensor_dtype(b) == dtype && weir_tensor_is_cuda(b));
    if (*type && strncmp(type, "weir.cuda.", 10) == 0) {
      MUST(weir_type_parse(&parsed, &d, type));
      HOLDS(parsed == dtype && d.type == WEIR_DEVICE_CUDA);
      MUST(weir_to_type(&again, a, type, false));
      alike(type, a, again, 0, 0);
    }
    MUST(weir_cpu(&back, b));
    alike("there and back", a, back, 0, 0);
  }
  weir_dtype dtype;
  REFUSED(WEIR_EINVAL, "float32", weir_dtype_parse(&dtype, "float33"));
}

void row_defaults(void)
{
  weir_tensor *a, *b, *c;
  REFUSED(WEIR_EINVAL, "only floating-point types are supported as the default type",
          weir_set_default_tensor_type("weir.cuda.IntTensor"));
  MUST(weir_set_default_tensor_type("weir.cuda.DoubleTensor"));
  MUST(weir_ones(&a, weir_shape(4), NULL));
  HOLDS(is_on(a, CUDA) && weir_tensor_dtype(a) == WEIR_FLOAT64 && first(a) == 1);
  MUST(weir_set_default_dtype(WEIR_FLOAT16));
  MUST(weir_randn(&b, weir_shape(4), NULL));
  HOLDS(is_on(b, CUDA) && weir_tensor_dtype(b) == WEIR_FLOAT16);
  MUST(weir_set_default_device(CPU));
  MUST(weir_ones(&c, weir_shape(4), NULL));
  HOLDS(!weir_tensor_is_cuda(c));
}

void row_device_strings(void)
{
  static const struct {
    const char *text, *why;
  } wrong[] = {{"", "Device string must not be empty"},
               {"cuda:01", "Invalid device string: 'cuda:01'"},
               {"x", "Expected one of cpu, cuda device type at start of device string: x"}};
  weir_device d;
  weir_tensor *t;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    REFUSED(WEIR_EINVAL, wrong[i].why, weir_device_parse(&d, wrong[i].text));
  MUST(weir_device_parse(&d, "cuda"));
  HOLDS(weir_device_equal(d, WEIR_CUDA));
  MUST(weir_zeros(&t, weir_shape(2), ON(d)));
  HOLDS(is_on(t, CUDA));
  MUST(weir_device_parse(&d, "cuda:63"));
  REFUSED(WEIR_EINVAL, "invalid device ordinal", weir_zeros(&t, weir_shape(2), ON(d)));
}

void row_guards(void)
{
  weir_device d, last = WEIR_CUDA_AT(device_count() - 1);
  weir_tensor *t;
  MUST(weir_current_device(&d));
  HOLDS(weir_device_index(d) == 0);
  WEIR_WITH_DEVICE(last)
  {
    MUST(weir_ones(&t, weir_shape(2), ON(WEIR_CUDA)));
    HOLDS(is_on(t, last) && first(t) == 1);
    WEIR_WITH_DEVICE(WEIR_CUDA)
    {
      MUST(weir_current_device(&d));
      HOLDS(weir_device_equal(d, last));
    }
    MUST(weir_ones(&t, weir_shape(2), NULL));
    HOLDS(!weir_tensor_is_cuda(t));
  }
  MUST(weir_current_device(&d));
  HOLDS(weir_device_index(d) == 0);
}

void row_placement(void)
{
  weir_device last = WEIR_CUDA_AT(device_count() - 1);
  weir_tensor *a = full_of(2, 8), *b = NULL;
  WEIR_WITH_DEVICE(last) MUST(weir_add(&b, a, a));
  HOLDS(is_on(b, CUDA) && first(b) == 4);
}

void row_cross_device(void)
{
  weir_tensor *a = full_of(2, 8), *b = numbers(WEIR_FLOAT32, weir_shape(8), 1), *one, *out;
  REFUSED(WEIR_EINVAL,
          "Expected all tensors to be on the same device, but found at least two devices",
          weir_add(&out, a, b));
  MUST(weir_full(&one, weir_shape_of(0, NULL), weir_float(0.5), AS(WEIR_FLOAT32, CPU)));
  MUST(weir_mul(&out, a, one));
  HOLDS(is_on(out, CUDA) && first(out) == 1);
  MUST(weir_copy_(a, b, false));
  alike("copy_", b, a, 0, 0);
  if (device_count() < 2) {
    note("one device");
    return;
  }
  MUST(weir_cuda(&out, a, WEIR_CUDA_AT(1), false));
  REFUSED(WEIR_EINVAL, "found at least two devices, cuda:0 and cuda:1!", weir_add(&out, a, out));
}

void row_peers(void)
{
  bool can = true;
  MUST(weir_can_access_peer(&can, CUDA, CUDA));
  HOLDS(!can);
  if (device_count() < 2) {
    note("one device");
    return;
  }
  weir_device far = WEIR_CUDA_AT(1);
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(1000, 1000), 1), *b = there(a), *c;
  MUST(weir_can_access_peer(&can, CUDA, far));
  note(can ? "direct" : "staged");
  MUST(weir_cuda(&c, b, far, false));
  HOLDS(is_on(c, far));
  alike("from device to device", a, c, 0, 0);
}

void row_creation(void)
{
  static const float values[] = {1, 2.5F, -3};
  weir_tensor *a, *b, *c;
  MUST(weir_tensor_from(&a, values, WEIR_FLOAT32, weir_shape(3), ON(CUDA)));
  MUST(weir_tensor_from(&b, values, WEIR_FLOAT32, weir_shape(3), NULL));
  alike("tensor", a, b, 0, 0);
  for (int i = 0; i < 2; i++) {
    weir_device d = i ? CUDA : CPU;
    weir_tensor **to = i ? &b : &a;
    MUST(weir_arange(to, weir_int(3), weir_int(40000), weir_int(7), ON(d)));
  }
  alike("arange", a, b, 0, 0);
  MUST(weir_full(&b, weir_shape(5, 7), weir_complex(1, -2), ON(CUDA)));
  HOLDS(weir_tensor_dtype(b) == WEIR_COMPLEX64);
  MUST(weir_zeros_like(&c, b, &(weir_options){.dtype = WEIR_INT32}));
  HOLDS(is_on(c, CUDA) && first(c) == 0 && weir_tensor_numel(c) == 35);
  MUST(weir_new_full(&a, c, weir_shape(2), weir_int(9), NULL));
  HOLDS(is_on(a, CUDA) && weir_tensor_dtype(a) == WEIR_INT32 && first(a) == 9);
  for (int kind = 0; kind < 3; kind++) {
    for (int i = 0; i < 2; i++) {
      weir_device d = i ? CUDA : CPU;
      weir_tensor **to = i ? &b : &a;
      weir_manual_seed(77);
      if (kind == 0) MUST(weir_rand(to, weir_shape(12345), ON(d)));
      if (kind == 1) MUST(weir_randn(to, weir_shape(12345), ON(d)));
      if (kind == 2) MUST(weir_randint(to, -5, 99, weir_shape(12345), ON(d)));
    }
    alike("random", a, b, kind == 1 ? 4 : 0, kind == 1 ? 1e-6 : 0);
  }
  REFUSED(WEIR_EINVAL, "", weir_empty(&a, weir_shape(-2), ON(CUDA)));
  REFUSED(WEIR_EINVAL, "", weir_empty(&a, weir_shape(INT64_MAX, 2), ON(CUDA)));
}

void row_conversions(void)
{
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(64, 33), 5), *b = there(a), *c, *d;
  MUST(weir_cuda(&c, b, CUDA, false));
  HOLDS(c == b);
  MUST(weir_to(&c, b, &(weir_options){.device = CUDA, .copy = true}));
  HOLDS(c != b && !weir_tensor_shares_storage(b, c));
  for (int k = 1; k < WEIR_DTYPES; k++) {
    weir_dtype dtype = (weir_dtype)k;
    MUST(weir_to_dtype(&c, a, dtype));
    MUST(weir_to_dtype(&d, b, dtype));
    alike("to dtype", c, d, 0, 0);
    MUST(weir_to(&d, b, AS(dtype, CPU)));
    alike("to dtype and device", c, d, 0, 0);
  }
  REFUSED(WEIR_EINVAL, "Invalid device, must be cuda device", weir_cuda(&c, b, CPU, false));
}

void row_copies(void)
{
  for (int k = 0; k < WEIR_DTYPES * WEIR_DTYPES; k++) {
    weir_dtype from = (weir_dtype)(k / WEIR_DTYPES), to = (weir_dtype)(k % WEIR_DTYPES);
    if (!from || !to) continue;
    weir_tensor *a = numbers(from, weir_shape(5, 1), (unsigned)k), *b = there(a), *home, *off, *t,
                *u;
    MUST(weir_zeros(&home, weir_shape(7, 5), AS(to, CPU)));
    MUST(weir_zeros(&off, weir_shape(7, 5), AS(to, CUDA)));
    MUST(weir_t(&t, home));
    MUST(weir_t(&u, off));
    MUST(weir_copy_(t, a, false));
    MUST(weir_copy_(u, k & 1 ? a : b, false)); /* broadcast, cast, strided, from either */
    alike("copy_ to the device", home, off, 0, 0);
    MUST(weir_zero_(home));
    MUST(weir_copy_(t, b, false));
    alike("copy_ from the device", home, off, 0, 0);
  }
  weir_tensor *a = full_of(1, 3), *b = full_of(1, 4);
  REFUSED(
      WEIR_EINVAL,
      "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
      weir_copy_(a, b, false));
}

/* ---- operations ------------------------------------------------------------------------------ */

static const struct unary {
  const char *name;
  weir_status (*run)(weir_tensor **out, const weir_tensor *a);
} unaries[] = {
#define ENTRY(name, op) {#name, weir_##name},
    WEIR_UNARY_MAP(ENTRY)
#undef ENTRY
        {"isfinite", weir_isfinite}};

static const struct binary {
  const char *name;
  weir_status (*run)(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
  weir_status (*scalar)(weir_tensor **out, const weir_tensor *a, weir_scalar b);
} binaries[] = {
#define ENTRY(name, op) {#name, weir_##name, weir_##name##_scalar},
    WEIR_BINARY_MAP(ENTRY)
#undef ENTRY
};

static const struct reduction {
  const char *name;
  weir_status (*all)(weir_tensor **out, const weir_tensor *a);
  weir_status (*dim)(weir_tensor **out, const weir_tensor *a, int dim, bool keepdim);
} reductions[] = {
#define ENTRY(name, op) {#name, weir_##name, weir_##name##_dim},
    WEIR_REDUCE_MAP(ENTRY)
#undef ENTRY
        {"argmax", weir_argmax, weir_argmax_dim},
    {"argmin", weir_argmin, weir_argmin_dim}};

static int compared;

/* Both did it, and alike, or neither could. */
static void both(const char *what, weir_status here, weir_tensor *a, weir_status far,
                 weir_tensor *b, double factor)
{
  if (here != far)
    fail_row(__FILE__, __LINE__, "%s: status %d on the cpu, %d on the device: %s", what, (int)here,
             (int)far, weir_error_message());
  if (here) return;
  alike(what, a, b, factor, weir_tensor_dtype(a) == WEIR_FLOAT16 ? 1e-7 : 1e-40);
  weir_tensor_release(a);
  weir_tensor_release(b);
  compared++;
}

/* The same call on the cpu, into p, and on the device, into q. */
#define BOTH(what, here_call, far_call, factor)                                                    \
  do {                                                                                             \
    weir_status here_ = (here_call), far_ = (far_call);                                            \
    both(what, here_, p, far_, q, factor);                                                         \
  } while (0)

static void elementwise(weir_dtype dtype)
{
  weir_tensor *a = numbers(dtype, weir_shape(31, 67), 1), *b = numbers(dtype, weir_shape(67), 2);
  weir_tensor *x = there(a), *y = there(b), *p = NULL, *q = NULL, *strided, *strided_there;
  for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++) {
    BOTH(unaries[i].name, unaries[i].run(&p, a), unaries[i].run(&q, x), 4);
  }
  MUST(weir_t(&strided, a));
  MUST(weir_t(&strided_there, x));
  for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) {
    const struct binary *op = &binaries[i];
    BOTH(op->name, op->run(&p, a, b), op->run(&q, x, y), 4);
    BOTH(op->name, op->run(&p, a, a), op->run(&q, x, x), 4);
    BOTH(op->name, op->scalar(&p, strided, weir_int(2)), op->scalar(&q, strided_there, weir_int(2)),
         4);
  }
}

static void reduce(weir_dtype dtype)
{
  weir_tensor *a = numbers(dtype, weir_shape(37, 501), 3), *x = there(a), *p = NULL, *q = NULL;
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    const struct reduction *r = &reductions[i];
    int product = !strcmp(r->name, "prod");
    weir_tensor *less = a, *less_there = x;
    if (product) { /* few enough not to leave what the dtype holds */
      MUST(weir_narrow(&less, a, 1, 0, 3));
      MUST(weir_narrow(&less_there, x, 1, 0, 3));
    }
    /* a sum's error follows its terms, not its result: 18,537 terms of up to 2 */
    double factor = !strcmp(r->name, "sum") || !strcmp(r->name, "mean") ? 64 : 16;
    if (!product) BOTH(r->name, r->all(&p, a), r->all(&q, x), factor);
    for (int dim = 0; dim < 2; dim++)
      BOTH(r->name, r->dim(&p, less, dim, dim), r->dim(&q, less_there, dim, dim), factor);
  }
}

static void others(void)
{
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(9, 40), 3),
              *b = numbers(WEIR_FLOAT32, weir_shape(40), 4);
  weir_tensor *x = there(a), *y = there(b), *c, *z, *p, *q;
  weir_scalar low = weir_float(-0.5), high = weir_float(0.75);
  MUST(weir_gt_scalar(&c, a, weir_float(0)));
  MUST(weir_gt_scalar(&z, x, weir_float(0)));
  BOTH("where", weir_where(&p, c, a, b), weir_where(&q, z, x, y), 0);
  BOTH("clamp", weir_clamp(&p, a, &low, &high), weir_clamp(&q, x, &low, &high), 0);
  BOTH("softmax", weir_softmax(&p, a, 1), weir_softmax(&q, x, 1), 8);
  BOTH("log_softmax", weir_log_softmax(&p, a, 0), weir_log_softmax(&q, x, 0), 8);
  const weir_tensor *here[] = {a, a}, *far[] = {x, x};
  BOTH("cat", weir_cat(&p, here, 2, 1), weir_cat(&q, far, 2, 1), 0);
  BOTH("stack", weir_stack(&p, here, 2, 0), weir_stack(&q, far, 2, 0), 0);
  bool same = false;
  MUST(weir_cuda(&q, a, CUDA, false));
  MUST(weir_allclose(&same, x, q, 1e-5, 1e-8, false));
  HOLDS(same);
  MUST(weir_slice(&q, x, 1, 3, 40, 5));
  HOLDS(weir_tensor_shares_storage(q, x) && weir_tensor_size(q, 1) == 8);
  MUST(weir_fill_(q, weir_float(5)));
  MUST(weir_slice(&p, a, 1, 3, 40, 5));
  MUST(weir_fill_(p, weir_float(5)));
  alike("a view's elements are the tensor's", a, x, 0, 0);
}

static void one_product(weir_dtype dtype, const int64_t *size, weir_blas blas)
{
  weir_tensor *a = numbers(dtype, weir_shape(size[0], size[2]), 5);
  weir_tensor *b = numbers(dtype, weir_shape(size[1], size[2]), 6), *p, *q, *t, *x = there(a), *y;
  char what[80];
  MUST(weir_t(&t, b));
  MUST(weir_set_blas(WEIR_BLAS_BUILTIN));
  MUST(weir_matmul(&p, a, t));
  MUST(weir_t(&y, there(b)));
  MUST(weir_set_blas(blas));
  weir_status far = weir_matmul(&q, x, y);
  if (far == WEIR_ENOTSUP && blas == WEIR_BLAS_VENDOR) {
    note("no cuBLAS: %s; ", weir_error_message());
    return;
  }
  if (far) fail_row(__FILE__, __LINE__, "matmul: %s", weir_error_message());
  (void)snprintf(what, sizeof what, "matmul %lldx%lldx%lld, %s", (long long)size[0],
                 (long long)size[1], (long long)size[2],
                 blas == WEIR_BLAS_BUILTIN ? "built in" : "cuBLAS");
  /* each of k products is at most 4, and sums are kept in float32 or better */
  double unit = dtype == WEIR_FLOAT64 ? 0x1p-52 : 0x1p-23;
  alike(what, p, q, 2, 8 * unit * (double)size[2]);
  compared++;
}

static void products(void)
{
  static const int64_t sizes[][3] = {{1, 1, 1},       {3, 5, 7},       {65, 63, 9},
                                     {128, 128, 128}, {1, 300, 257},   {300, 1, 257},
                                     {257, 129, 300}, {8, 1000, 4096}, {999, 5, 513}};
  static const weir_dtype dtypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16,
                                      WEIR_COMPLEX64};
  weir_set_allow_reduced_precision(false);
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      one_product(dtypes[d], sizes[s], WEIR_BLAS_BUILTIN);
      if (!simulated()) one_product(dtypes[d], sizes[s], WEIR_BLAS_VENDOR);
    }
  MUST(weir_set_blas(WEIR_BLAS_AUTO));
  weir_tensor *a, *b, *out;
  MUST(weir_zeros(&a, weir_shape(2, 3), ON(CUDA)));
  MUST(weir_zeros(&b, weir_shape(4, 5), ON(CUDA)));
  REFUSED(WEIR_EINVAL, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
          weir_matmul(&out, a, b));
}

/* A convolution and its three gradients, of so many products that cuDNN is asked; built in, and
 * by it. */
static void large_convolution(weir_dtype dtype, const weir_conv2d_options *o, int64_t side)
{
  weir_shape shapes[3] = {weir_shape(4, 32, side, side), weir_shape(64, 32 / o->groups, 3, 3),
                          weir_shape(64)};
  weir_tensor *here[3], *own[4], *by[4];
  for (int i = 0; i < 3; i++)
    here[i] = numbers(dtype, shapes[i], 20 + i);
  for (int blas = 0; blas < 2; blas++) {
    weir_tensor *t[3], **out = blas ? by : own;
    char what[80];
    MUST(weir_set_blas(blas ? WEIR_BLAS_AUTO : WEIR_BLAS_BUILTIN));
    for (int i = 0; i < 3; i++) {
      t[i] = there(here[i]);
      MUST(weir_requires_grad_(t[i], true));
    }
    MUST(weir_conv2d(&out[0], t[0], t[1], t[2], o));
    weir_tensor *back;
    MUST(weir_ones_like(&back, out[0], NULL));
    weir_grad_options ones = {.grad_outputs = (const weir_tensor *[]){back}};
    MUST(weir_grad(&out[1], (const weir_tensor *[]){out[0]}, 1,
                   (const weir_tensor *[]){t[0], t[1], t[2]}, 3, &ones));
    for (int i = 0; i < 4 && blas; i++) {
      (void)snprintf(what, sizeof what, "conv2d in %s by cuDNN, %s", weir_dtype_name(dtype),
                     i ? "a gradient" : "forward");
      /* sums of up to 4 x side x side products of at most 4; float16's are kept in float32 */
      alike(what, own[i], by[i], 8,
            16 * (double)(side * side) * (dtype == WEIR_FLOAT64 ? 0x1p-50 : 0x1p-21));
      compared++;
    }
  }
}

/* NVIDIA's cuDNN refuses the software device; WEIR_CUDNN there: another one is in its place. */
static void large_convolutions(void)
{
  static const weir_dtype dtypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16};
  static const weir_conv2d_options options[] = {
      {.padding = {1, 1}, .groups = 1},
      {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2}};
  int64_t side = simulated() ? 4 : 28;
  if (simulated() && !getenv("WEIR_CUDNN")) return;
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (size_t o = 0; o < sizeof options / sizeof *options; o++)
      large_convolution(dtypes[d], &options[o], side);
  MUST(weir_set_blas(WEIR_BLAS_AUTO));
}

static void convolutions(void)
{
  large_convolutions();
  weir_conv2d_options options = {
      .stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
  weir_pool2d_options pool = {.kernel = {2, 3}};
  weir_tensor *in = numbers(WEIR_FLOAT32, weir_shape(3, 4, 17, 19), 7), *p, *q;
  weir_tensor *w = numbers(WEIR_FLOAT32, weir_shape(6, 2, 3, 3), 8),
              *b = numbers(WEIR_FLOAT32, weir_shape(6), 9);
  weir_tensor *x = there(in);
  MUST(weir_conv2d(&p, in, w, b, &options));
  MUST(weir_conv2d(&q, x, there(w), there(b), &options));
  alike("conv2d", p, q, 4, 1e-5);
  MUST(weir_max_pool2d(&p, in, &pool));
  MUST(weir_max_pool2d(&q, x, &pool));
  alike("max_pool2d", p, q, 0, 0);
}

static void random_numbers(void)
{
  for (int kind = 0; kind < 4; kind++) {
    weir_tensor *t[2];
    for (int i = 0; i < 2; i++) {
      weir_device d = i ? CUDA : CPU;
      weir_generator *g;
      MUST(weir_generator_new(&g, d));
      weir_generator_manual_seed(g, 1234567 + (uint64_t)kind);
      MUST(weir_empty(&t[i], weir_shape(100003), AS(WEIR_FLOAT32, d)));
      if (kind == 0) MUST(weir_uniform_(t[i], -2, 5, g));
      if (kind == 1) MUST(weir_normal_(t[i], 1, 2, g));
      if (kind == 2) MUST(weir_random_(t[i], -100, 1000, g));
      if (kind == 3) MUST(weir_bernoulli_(t[i], 0.25, g));
    }
    alike("the stream of random numbers", t[0], t[1], kind == 1 ? 4 : 0, kind == 1 ? 1e-6 : 0);
  }
}

void row_operations(void)
{
  for (int k = 1; k < WEIR_DTYPES; k++) {
    elementwise((weir_dtype)k);
    reduce((weir_dtype)k);
  }
  others();
  products();
  convolutions();
  random_numbers();
  note("%d results compared", compared);
}

void row_printing(void)
{
  static const float values[] = {0.3F, 0.3F, -1.5F, 2};
  weir_tensor *t;
  char *text;
  MUST(weir_tensor_from(&t, values, WEIR_FLOAT32, weir_shape(2, 2), ON(CUDA)));
  MUST(weir_tensor_to_string(&text, t));
  HOLDS(
      !strcmp(text, "tensor([[ 0.3000,  0.3000],\n        [-1.5000,  2.0000]], device='cuda:0')"));
  MUST(weir_zeros(&t, weir_shape(2000), ON(CUDA)));
  MUST(weir_tensor_to_string(&text, t));
  HOLDS(strstr(text, "...") != NULL);
}
