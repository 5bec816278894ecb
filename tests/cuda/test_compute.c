/* test_compute.c: what CUDA devices calculate is what the cpu calculates: every operation in every
 * dtype, contiguous and not, in place, with numbers in operands' places; reductions, random
 * numbers, im2col.
 *
 * A case is made twice, in host memory and on the device, and given to both backends; the results,
 * and the memory around them, are compared: integers and bool exactly, floating point to a few
 * units of the dtype. Cases are random, from fixed seeds. On the software device kernels' host
 * twins run, on a GPU the kernels. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include "core/backend/half.h"
#include "core/backend/philox.h"
#include "tests/cuda/rig.h"
#include "tests/level.h"

enum { REDUCED = 1 << 16 }; /* elements of what is reduced */
enum { ROOM = 1 << 13 /* elements of a buffer */, EDGE = 64 /* elements around what is used */ };

static rig r;
static const weir_backend *device;
static uint64_t seed = 1;

static int64_t random_int_below(int64_t n)
{
  return (int64_t)(rig_random(&seed) % (uint64_t)n);
}

/* ---- buffers --------------------------------------------------------------------------------- */

typedef struct buffer {
  char *host, *back; /* the same bytes as on the device; what came back */
  CUdeviceptr device;
  size_t bytes;
} buffer;

static buffer buffer_new(size_t bytes)
{
  buffer b = {.host = calloc(1, bytes), .back = malloc(bytes), .bytes = bytes};
  ck_assert(b.host && b.back);
  ok(cuMemAlloc(&b.device, bytes));
  ok(cuMemsetD8(b.device, 0, bytes));
  return b;
}

static void buffer_free(buffer *b)
{
  free(b->host);
  free(b->back);
  ok(cuMemFree(b->device));
}

static void buffer_send(buffer *b)
{
  ok(cuMemcpyHtoD(b->device, b->host, b->bytes));
}

static void buffer_fetch(buffer *b)
{
  ok(cuCtxSynchronize());
  ok(cuMemcpyDtoH(b->back, b->device, b->bytes));
}

/* ---- elements -------------------------------------------------------------------------------- */

static bool is_real(weir_dtype t)
{
  return t == WEIR_FLOAT16 || t == WEIR_BFLOAT16 || t == WEIR_FLOAT32 || t == WEIR_FLOAT64;
}

static size_t size_of(weir_dtype t)
{
  static const size_t sizes[WEIR_DTYPES] = {
#define ROW(name, value, text, bytes, type) [value] = bytes,
      WEIR_DTYPE_MAP(ROW)
#undef ROW
  };
  return sizes[t];
}

static void store_element(char *at, weir_dtype t, double x)
{
  float f = (float)x, c[2] = {f, (float)random_int_below(7) - 3};
  int64_t i = (int64_t)x;
  uint16_t h = float_to_float16(f), b = float_to_bfloat16(f);
  uint8_t truth = x != 0;
  const void *from = t == WEIR_FLOAT16     ? (const void *)&h
                     : t == WEIR_BFLOAT16  ? (const void *)&b
                     : t == WEIR_FLOAT32   ? (const void *)&f
                     : t == WEIR_FLOAT64   ? (const void *)&x
                     : t == WEIR_COMPLEX64 ? (const void *)c
                     : t == WEIR_BOOL      ? (const void *)&truth
                                           : (const void *)&i;
  memcpy(at, from, size_of(t));
}

/* Element `part` (0, 1: imaginary) as a double; integers by way of int64. */
static double element_as_double(const char *at, weir_dtype t, int part)
{
  float f[2];
  double d;
  uint16_t h;
  memcpy(&h, at, sizeof h);
  if (t == WEIR_FLOAT16) return (double)float16_to_float(h);
  if (t == WEIR_BFLOAT16) return (double)bfloat16_to_float(h);
  memcpy(&d, at, t == WEIR_FLOAT64 ? sizeof d : 0);
  if (t == WEIR_FLOAT64) return d;
  memcpy(f, at, t == WEIR_FLOAT32 ? sizeof *f : t == WEIR_COMPLEX64 ? sizeof f : 0);
  return (double)f[part];
}

static bool signed_zeros; /* whether 0 and -0 are unlike: where the order of work does not decide */
static bool tame; /* no zeros, no infinities: complex functions differ there, by their formulas */

static double some_number(weir_dtype t)
{
  int64_t kind = tame ? 8 : random_int_below(16);
  double sign = t == WEIR_UINT8 || t == WEIR_BOOL || random_int_below(2) ? 1 : -1;
  if (t == WEIR_BOOL) return (double)random_int_below(2);
  if (tame) return sign * (double)(1 + random_int_below(9));
  if (!is_real(t) && t != WEIR_COMPLEX64) return sign * (double)random_int_below(kind ? 9 : 120);
  if (kind == 0) return sign * 0.0;
  if (kind == 1 && is_real(t)) return random_int_below(3) ? sign * (double)INFINITY : (double)NAN;
  if (kind < 4) return sign * (double)random_int_below(5);
  return sign * (double)random_int_below(4096) / 512;
}

static void fill_random_buffer(buffer *b, weir_dtype t)
{
  for (size_t i = 0; i < b->bytes / size_of(t); i++)
    store_element(b->host + i * size_of(t), t, some_number(t));
  buffer_send(b);
}

/* How far apart results may be, relative to the larger. */
static double tolerance(weir_dtype t)
{
  return t == WEIR_FLOAT64    ? 1e-13
         : t == WEIR_FLOAT16  ? 0x1p-10
         : t == WEIR_BFLOAT16 ? 0x1p-7
                              : 2e-6;
}

static double apart = 1e-40; /* results near 0 may be, where what was added was not */

static bool numbers_are_near(double x, double y, double allowed)
{
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (x == y) return x != 0 || !signed_zeros || !signbit(x) == !signbit(y);
  double size = fmax(fabs(x), fabs(y));
  return isfinite(size) && fabs(x - y) <= allowed * size + apart;
}

/* Both parts of a complex number against the size of the whole. */
static bool same_complex(const char *x, const char *y, double allowed)
{
  double a = element_as_double(x, WEIR_COMPLEX64, 0), b = element_as_double(x, WEIR_COMPLEX64, 1);
  double c = element_as_double(y, WEIR_COMPLEX64, 0), d = element_as_double(y, WEIR_COMPLEX64, 1);
  if (!isfinite(a) || !isfinite(b) || !isfinite(c) || !isfinite(d))
    return (isfinite(a) && isfinite(b)) == (isfinite(c) && isfinite(d));
  return hypot(a - c, b - d) <= allowed * fmax(hypot(a, b), hypot(c, d)) + 1e-30;
}

static bool elements_agree(const char *x, const char *y, weir_dtype t, double factor)
{
  if (!memcmp(x, y, size_of(t))) return true;
  if (t == WEIR_COMPLEX64) return same_complex(x, y, 4 * factor * tolerance(t));
  if (!is_real(t)) return false;
  return numbers_are_near(element_as_double(x, t, 0), element_as_double(y, t, 0),
                          factor * tolerance(t));
}

static void compare(buffer *b, weir_dtype t, double factor, const char *what)
{
  buffer_fetch(b);
  for (size_t i = 0; i < b->bytes; i += size_of(t)) {
    if (elements_agree(b->host + i, b->back + i, t, factor)) continue;
    uint64_t bits[2] = {0};
    memcpy(&bits[0], b->host + i, size_of(t));
    memcpy(&bits[1], b->back + i, size_of(t));
    ck_abort_msg("%s: element %zu is %g (%llx) on the cpu, %g (%llx) on the device", what,
                 i / size_of(t), element_as_double(b->host + i, t, 0), (unsigned long long)bits[0],
                 element_as_double(b->back + i, t, 0), (unsigned long long)bits[1]);
  }
}

/* ---- loops ----------------------------------------------------------------------------------- */

static const char *const op_names[] = {
#define ROW(name, text, inputs, ...) text,
    WEIR_OPS(ROW)
#undef ROW
};
static const int op_inputs[] = {
#define ROW(name, text, inputs, ...) inputs,
    WEIR_OPS(ROW)
#undef ROW
};

static const bool gives_bool_by_op[] = {
#define ROW(name, text, inputs, gives, ...) WEIR_GIVES_##gives == WEIR_GIVES_BOOL,
    WEIR_OPS(ROW)
#undef ROW
};

static bool gives_bool(weir_op op)
{
  return gives_bool_by_op[op];
}

typedef struct mapped { /* a loop, and the memory of its operands */
  weir_loop l;
  buffer memory[4]; /* out, inputs */
} mapped;

static weir_number number_of(weir_dtype t)
{
  double x = some_number(t);
  if (t == WEIR_COMPLEX64)
    return (weir_number){.dtype = t, .f = x, .imag = (double)random_int_below(5) - 2};
  if (is_real(t)) return (weir_number){.dtype = WEIR_FLOAT64, .f = x};
  return (weir_number){.dtype = WEIR_INT64, .i = (int64_t)x};
}

/* Strides of an operand; where `may_repeat`, dimensions may be broadcast. Dimensions lie in any
 * order, with holes. */
static void random_strides(const weir_loop *l, int64_t *stride, bool may_repeat, bool packed)
{
  int order[WEIR_DIMS] = {0};
  for (int i = 0; i < l->dims; i++)
    order[i] = i;
  for (int i = l->dims - 1; i > 0 && !packed; i--) {
    int k = (int)random_int_below(i + 1), swap = order[i];
    order[i] = order[k];
    order[k] = swap;
  }
  int64_t next = packed ? 1 : 1 + random_int_below(2);
  for (int i = l->dims - 1; i >= 0; i--) {
    stride[order[i]] = next;
    next *= l->size[order[i]];
    if (!packed) next += random_int_below(2);
  }
  for (int i = 0; i < l->dims && may_repeat; i++)
    if (random_int_below(3) == 0) stride[i] = 0;
}

static void random_sizes(weir_loop *l, bool one)
{
  l->dims = one ? 1 : (int)random_int_below(5);
  l->count = 1;
  for (int i = 0; i < l->dims; i++) {
    l->size[i] = one ? 1 + random_int_below(3000) : 1 + random_int_below(l->dims == 2 ? 40 : 6);
    l->count *= l->size[i];
  }
}

static void operand_make(mapped *m, int which, weir_dtype t, bool packed)
{
  weir_operand *o = which ? &m->l.in[which - 1] : &m->l.out;
  o->dtype = t;
  if (which && random_int_below(6) == 0) {
    o->number = number_of(t);
    return;
  }
  random_strides(&m->l, o->stride, which && !packed, packed);
  m->memory[which] = buffer_new(ROOM * size_of(t));
  fill_random_buffer(&m->memory[which], t);
  o->data =
      m->memory[which].host + (EDGE + (packed ? 0 : random_int_below(4))) * (int64_t)size_of(t);
}

static weir_dtype input_dtype(weir_op op, int input, weir_dtype compute, bool packed)
{
  static const weir_dtype other[] = {WEIR_UINT8,   WEIR_INT8,    WEIR_INT16,    WEIR_INT32,
                                     WEIR_INT64,   WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32,
                                     WEIR_FLOAT64, WEIR_BOOL,    WEIR_COMPLEX64};
  if (op == WEIR_OP_WHERE && input == 0) return WEIR_BOOL;
  return packed || random_int_below(2) ? compute : other[random_int_below(11)];
}

static void mapped_free(mapped *m)
{
  for (int i = 0; i < 4; i++)
    if (m->memory[i].host) buffer_free(&m->memory[i]);
}

/* The same request, of the device's memory. */
static weir_loop loop_on_device(const mapped *m)
{
  weir_loop l = m->l;
  for (int i = 0; i < 4; i++) {
    weir_operand *o = i ? &l.in[i - 1] : &l.out;
    const void *host = i ? m->l.in[i - 1].data : m->l.out.data;
    const buffer *b = &m->memory[host == m->l.out.data ? 0 : i];
    if (host) o->data = (char *)(uintptr_t)b->device + ((const char *)host - b->host);
  }
  return l;
}

static void parameters(weir_loop *l)
{
  if (l->op == WEIR_OP_ADD || l->op == WEIR_OP_SUB) {
    l->has_alpha = random_int_below(2);
    l->alpha = number_of(l->compute);
    if (is_real(l->compute)) l->alpha.f = (double)random_int_below(5) - 2;
  }
  if (l->op == WEIR_OP_CLOSE)
    for (int i = 0; i < 3; i++)
      l->p[i] = i == 2 ? (weir_number){.dtype = WEIR_BOOL, .i = random_int_below(2)}
                       : (weir_number){.dtype = WEIR_FLOAT64, .f = (double)random_int_below(3) / 2};
  for (int i = 0; i < 3 && l->op >= WEIR_OP_ADDCMUL; i++)
    l->p[i] = (weir_number){.dtype = WEIR_FLOAT64, .f = (double)(1 + random_int_below(4)) / 4};
  if (l->op == WEIR_OP_ADDCMUL && !is_real(l->compute)) l->p[0] = number_of(l->compute);
  if (l->op == WEIR_OP_THRESHOLD && !is_real(l->compute)) l->p[0] = l->p[1] = number_of(WEIR_INT8);
  if (l->op == WEIR_OP_RANGE)
    for (int i = 0; i < 2; i++) {
      l->p[i] = number_of(is_real(l->compute) ? WEIR_FLOAT64 : WEIR_INT64);
      if (!isfinite(l->p[i].f)) l->p[i].f = 1;
    }
}

/* A result that either side may round to the other side of a step. */
static double slack(weir_op op)
{
  if (op >= WEIR_OP_ERF) return 64; /* functions of functions, in float there and in double here */
  return op == WEIR_OP_POW ? 16 : op == WEIR_OP_EXP || op == WEIR_OP_TANH ? 4 : 2;
}

static bool divides(weir_op op)
{
  return op == WEIR_OP_FLOOR_DIV || op == WEIR_OP_REMAINDER || op == WEIR_OP_FMOD ||
         op == WEIR_OP_TRUNC_DIV;
}

static void one_map(weir_op op, weir_dtype compute, bool packed, int times)
{
  signed_zeros = op < WEIR_OP_SILU; /* tails become 0 sooner in float32 */
  tame = compute == WEIR_COMPLEX64;
  apart = op < WEIR_OP_ERF ? 1e-40 : 4 * tolerance(compute);
  for (int t = 0; t < times; t++) {
    mapped m = {.l = {.op = op, .compute = compute}};
    random_sizes(&m.l, packed);
    weir_dtype out = gives_bool(op) ? WEIR_BOOL : compute;
    if (op == WEIR_OP_ABS && compute == WEIR_COMPLEX64) out = WEIR_FLOAT32;
    operand_make(&m, 0, out, packed);
    for (int i = 1; i <= op_inputs[op]; i++)
      operand_make(&m, i, input_dtype(op, i - 1, compute, packed), packed);
    if (op != WEIR_OP_WHERE && op_inputs[op] && out == compute && random_int_below(4) == 0)
      m.l.in[0] = m.l.out; /* in place */
    parameters(&m.l);
    weir_loop l = loop_on_device(&m);
    weir_status mine = device->compute->map(device->self, NULL, &l), cpu;
    cpu = weir_cpu_backend.compute->map(weir_cpu_backend.self, NULL, &m.l);
    const char *why = strdup(weir_error_message());
    bool by_zero = cpu == WEIR_EINVAL && divides(op); /* the cpu says so, torch too */
    ck_assert_msg(mine == cpu || by_zero, "%s of dtype %d: the cpu says %d, the device %d: %s",
                  op_names[op], (int)compute, cpu, mine, why);
    free((void *)why);
    char what[64];
    (void)snprintf(what, sizeof what, "%s of dtype %d, %s, case %d", op_names[op], (int)compute,
                   packed ? "contiguous" : "strided", t);
    compare(&m.memory[0], out, slack(op), what);
    mapped_free(&m);
  }
  apart = 1e-40;
}

static void open_compute_device(void)
{
  rig_open(&r);
  device = r.real;
  ck_assert(device->compute != NULL);
}

/* Kernels' threads are one thread's loop here: a race detector sees the same in every fourth. */
static bool few(int i)
{
  return WEIR_TSAN && i % 4;
}

START_TEST(every_operation_gives_what_the_cpu_gives_in_every_dtype)
{
  if (_i >= WEIR_OP_COUNT || few(_i)) return;
  open_compute_device();
  seed = (uint64_t)_i + 11;
  for (int t = 1; t < WEIR_DTYPES; t++)
    for (int packed = 0; packed < 2; packed++)
      one_map((weir_op)_i, (weir_dtype)t, packed, SANITIZED ? 4 : AT_LEVEL(4, 12, 60));
}
END_TEST

/* ---- reductions ------------------------------------------------------------------------------ */

static weir_dtype reduced_dtype(weir_reduce_op op, weir_dtype compute)
{
  if (op == WEIR_REDUCE_ALL || op == WEIR_REDUCE_ANY) return WEIR_BOOL;
  bool whole = op == WEIR_REDUCE_ARGMAX || op == WEIR_REDUCE_ARGMIN || op == WEIR_REDUCE_NONZERO;
  return whole ? WEIR_INT64 : compute;
}

/* Few outputs of many elements, many of few, several dimensions of both. */
static void reduced_sizes(weir_reduce *q, int shape)
{
  static const int64_t sizes[][4] = {{1, 7000, 1, 1}, {3000, 2, 1, 1}, {5, 6, 7, 11},
                                     {70, 100, 1, 1}, {3, 1, 40, 50},  {2, 3, 0, 4},
                                     {40, 41, 1, 3}};
  static const int kept[] = {1, 1, 2, 1, 2, 2, 2};
  shape %= 7;
  q->dims = 4;
  q->kept = kept[shape];
  q->outputs = q->each = 1;
  for (int i = 0; i < 4; i++) {
    q->size[i] = sizes[shape][i];
    *(i < q->kept ? &q->outputs : &q->each) *= q->size[i];
  }
}

static bool needs_elements(weir_reduce_op op)
{
  return op >= WEIR_REDUCE_MAX && op <= WEIR_REDUCE_MIN_INDEX;
}

/* in's strides: dimensions in any order; out's and index's: the kept ones in any order. */
static void reduced_strides(weir_reduce *q)
{
  weir_loop l = {.dims = q->dims}, k = {.dims = q->kept};
  for (int i = 0; i < q->dims; i++)
    l.size[i] = q->size[i] ? q->size[i] : 1;
  memcpy(k.size, l.size, sizeof k.size);
  random_strides(&l, q->in.stride, false, random_int_below(2));
  random_strides(&k, q->out.stride, false, random_int_below(2));
  random_strides(&k, q->index.stride, false, random_int_below(2));
  random_strides(&k, q->mean.stride, false, random_int_below(2));
}

static weir_reduce reduced_there(const weir_reduce *q, const buffer *b)
{
  weir_reduce d = *q;
  d.out.data = (void *)(uintptr_t)b[0].device;
  d.in.data = (void *)(uintptr_t)b[1].device;
  if (q->index.data) d.index.data = (void *)(uintptr_t)b[2].device;
  if (q->mean.data) d.mean.data = (void *)(uintptr_t)b[2].device;
  return d;
}

static void one_reduce(weir_reduce_op op, weir_dtype compute, int shape)
{
  bool adds = op == WEIR_REDUCE_SUM || op == WEIR_REDUCE_PROD || op == WEIR_REDUCE_NANSUM;
  bool varies = op == WEIR_REDUCE_VAR || op == WEIR_REDUCE_STD;
  bool whole = compute != WEIR_COMPLEX64 && !is_real(compute);
  if (adds && whole && compute != WEIR_INT64) return; /* never asked for */
  weir_reduce q = {.op = op, .compute = compute};
  reduced_sizes(&q, shape);
  if (!q.each && needs_elements(op)) return;
  weir_dtype in = adds && whole && random_int_below(2) ? WEIR_INT16 : compute;
  q.in.dtype = in;
  q.out.dtype = reduced_dtype(op, compute);
  q.index.dtype = WEIR_INT64;
  q.mean.dtype = compute;
  q.p = random_int_below(4);
  reduced_strides(&q);
  buffer b[3] = {buffer_new(REDUCED * 8), buffer_new(REDUCED * size_of(in)),
                 buffer_new(REDUCED * 8)};
  tame = compute == WEIR_COMPLEX64 || op == WEIR_REDUCE_PROD || shape > 7;
  fill_random_buffer(&b[1], in);
  q.out.data = b[0].host;
  q.in.data = b[1].host;
  if (op == WEIR_REDUCE_MAX_INDEX || op == WEIR_REDUCE_MIN_INDEX) q.index.data = b[2].host;
  if (varies) q.mean.data = b[2].host;
  weir_reduce d = reduced_there(&q, b);
  weir_status mine = device->compute->reduce(device->self, NULL, &d);
  weir_status cpu = weir_cpu_backend.compute->reduce(weir_cpu_backend.self, NULL, &q);
  char what[64];
  (void)snprintf(what, sizeof what, "reduction %d of dtype %d, shape %d", (int)op, (int)compute,
                 shape);
  ck_assert_msg(mine == cpu, "%s: the cpu says %d, the device %d: %s", what, cpu, mine,
                weir_error_message());
  /* what is taken away from each other leaves an error of the size of what was there */
  compare(&b[0], q.out.dtype, op == WEIR_REDUCE_PROD ? 400 : 64, what);
  compare(&b[2], varies ? compute : WEIR_INT64, varies ? 64 : 0, what);
  for (int i = 0; i < 3; i++)
    buffer_free(&b[i]);
}

START_TEST(every_reduction_gives_what_the_cpu_gives_in_every_dtype)
{
  if (_i >= WEIR_REDUCE_COUNT || few(_i)) return;
  open_compute_device();
  seed = (uint64_t)_i + 77;
  for (int t = 1; t < WEIR_DTYPES; t++)
    for (int shape = 0; shape < (SANITIZED ? 7 : 14); shape++)
      one_reduce((weir_reduce_op)_i, (weir_dtype)t, shape);
  weir_memory_stats stats;
  weir_ok(weir_memory_get_stats(&stats, WEIR_CUDA_AT(0)));
  ck_assert_int_eq(stats.allocated_bytes, 0); /* parts of sums were given back */
}
END_TEST

/* A million ones that float32 cannot count one by one; half of a pair that cancels. */
START_TEST(a_long_sum_keeps_what_rounding_loses)
{
  if (_i) return;
  open_compute_device();
  enum { COUNT = 1 << 20 };
  buffer in = buffer_new((size_t)COUNT * 4), out = buffer_new(4);
  for (int i = 0; i < COUNT; i++)
    store_element(in.host + 4 * i, WEIR_FLOAT32, i ? 0.1 : 1e8);
  buffer_send(&in);
  weir_reduce q = {.op = WEIR_REDUCE_SUM, .compute = WEIR_FLOAT32, .dims = 1, .outputs = 1};
  q.size[0] = q.each = COUNT;
  q.in = (weir_operand){.data = (void *)(uintptr_t)in.device, .dtype = WEIR_FLOAT32, .stride = {1}};
  q.out = (weir_operand){.data = (void *)(uintptr_t)out.device, .dtype = WEIR_FLOAT32};
  weir_ok(device->compute->reduce(device->self, NULL, &q));
  buffer_fetch(&out);
  double exact = 1e8 + (COUNT - 1) * (double)0.1F;
  ck_assert_msg(numbers_are_near(element_as_double(out.back, WEIR_FLOAT32, 0), exact, 1e-7),
                "%.9g, not %.9g", element_as_double(out.back, WEIR_FLOAT32, 0), exact);
  buffer_free(&in);
  buffer_free(&out);
}
END_TEST

/* ---- random numbers, im2col ------------------------------------------------------------------ */

START_TEST(random_numbers_are_the_cpus_to_the_bit)
{
  static const double from[] = {-2, 1, -5, 0.25}, to[] = {3, 2.5, 12, 0};
  static const int64_t counts[] = {1, 2, 3, 999, 20000};
  if (_i > WEIR_RANDOM_BERNOULLI) return;
  open_compute_device();
  for (int t = 1; t < WEIR_DTYPES; t++)
    for (int c = 0; c < 5; c++) {
      if (t == WEIR_COMPLEX64) continue;
      buffer b = buffer_new(20016 * 8);
      memset(b.host, 0x5a, b.bytes);
      buffer_send(&b);
      weir_random q = {.kind = (weir_random_kind)_i, .a = from[_i], .b = to[_i]};
      q.seed = 0x123456789abcdefu * (uint64_t)(t + 1), q.offset = 0xfffffff0u + (uint64_t)c;
      q.used = philox_blocks(counts[c]), q.dtype = (weir_dtype)t, q.count = counts[c];
      q.out = (void *)(uintptr_t)b.device;
      weir_ok(device->compute->random(device->self, NULL, &q));
      q.out = b.host;
      weir_ok(weir_cpu_backend.compute->random(weir_cpu_backend.self, NULL, &q));
      compare(&b, q.dtype, 0, "random");
      buffer_free(&b);
    }
}
END_TEST

START_TEST(im2col_gives_what_the_cpu_gives)
{
  static const weir_dtype dtypes[] = {WEIR_UINT8,   WEIR_FLOAT16,   WEIR_BFLOAT16,
                                      WEIR_FLOAT32, WEIR_COMPLEX64, WEIR_FLOAT64};
  if (_i >= 24) return;
  open_compute_device();
  seed = (uint64_t)_i + 5;
  weir_im2col q = {
      .dtype = dtypes[_i % 6], .n = 1 + random_int_below(3), .c = 1 + random_int_below(4)};
  q.h = 5 + random_int_below(9), q.w = 5 + random_int_below(9);
  for (int i = 0; i < 2; i++) {
    q.kernel[i] = 1 + random_int_below(3), q.stride[i] = 1 + random_int_below(2);
    q.pad[i] = random_int_below(3), q.dilation[i] = 1 + random_int_below(2);
  }
  q.oh = (q.h + 2 * q.pad[0] - q.dilation[0] * (q.kernel[0] - 1) - 1) / q.stride[0] + 1;
  q.ow = (q.w + 2 * q.pad[1] - q.dilation[1] * (q.kernel[1] - 1) - 1) / q.stride[1] + 1;
  size_t bytes = size_of(q.dtype), in = (size_t)(q.n * q.c * q.h * q.w);
  size_t out = (size_t)(q.n * q.c * q.kernel[0] * q.kernel[1] * q.oh * q.ow);
  buffer b[2] = {buffer_new((out + EDGE) * bytes), buffer_new(in * bytes)};
  fill_random_buffer(&b[1], q.dtype);
  q.in = (void *)(uintptr_t)b[1].device, q.out = (void *)(uintptr_t)b[0].device;
  weir_ok(device->compute->im2col(device->self, NULL, &q));
  q.in = b[1].host, q.out = b[0].host;
  weir_ok(weir_cpu_backend.compute->im2col(weir_cpu_backend.self, NULL, &q));
  compare(&b[0], q.dtype, 0, "im2col");
  buffer_free(&b[0]);
  buffer_free(&b[1]);
}
END_TEST

/* ---- products of matrices -------------------------------------------------------------------- */

typedef struct product { /* a product, and the memory of C, A and B */
  weir_gemm g;
  buffer memory[3];
} product;

/* Rows of a stored matrix lie `ld` apart, matrices of the batch `step`; 0 repeats B. */
static product product_make(weir_dtype t, int64_t m, int64_t n, int64_t k, int64_t batch)
{
  product p = {.g = {.dtype = t, .m = m, .n = n, .k = k, .batch = batch}};
  weir_gemm *g = &p.g;
  g->transa = random_int_below(2), g->transb = random_int_below(2);
  g->lda = (g->transa ? m : k) + random_int_below(4) + 1,
  g->ldb = (g->transb ? k : n) + random_int_below(4) + 1;
  g->ldc = n + random_int_below(4);
  g->stepa = g->lda * (g->transa ? k : m) + random_int_below(5);
  g->stepb = random_int_below(2) ? g->ldb * (g->transb ? n : k) : 0;
  g->stepc = g->ldc * m + random_int_below(5);
  g->alpha = (double)random_int_below(3) - 1, g->beta = (double)random_int_below(3);
  if (g->alpha == 0) g->alpha = 2;
  const int64_t sizes[] = {g->stepc * batch, g->stepa * batch,
                           g->ldb * (g->transb ? n : k) * batch};
  for (int i = 0; i < 3; i++) {
    p.memory[i] = buffer_new((size_t)(sizes[i] + EDGE) * size_of(t));
    fill_random_buffer(&p.memory[i], t);
  }
  return p;
}

static void product_aim(product *p, bool there)
{
  const char *at[3];
  for (int i = 0; i < 3; i++)
    at[i] = there ? (const char *)(uintptr_t)p->memory[i].device : p->memory[i].host;
  p->g.c = (char *)at[0], p->g.a = at[1], p->g.b = at[2];
}

static void one_product(weir_dtype t, weir_blas blas, const int64_t *size)
{
  product p = product_make(t, size[0], size[1], size[2], size[3]);
  product_aim(&p, true);
  p.g.blas = blas;
  weir_status mine = device->compute->gemm(device->self, NULL, &p.g);
  const char *why = strdup(weir_error_message());
  product_aim(&p, false);
  p.g.blas = WEIR_BLAS_BUILTIN;
  weir_status cpu = weir_cpu_backend.compute->gemm(weir_cpu_backend.self, NULL, &p.g);
  char what[96];
  (void)snprintf(what, sizeof what, "%lld x %lld x %lld of dtype %d, %s %s", (long long)size[0],
                 (long long)size[1], (long long)size[2], (int)t, p.g.transa ? "At" : "A",
                 p.g.transb ? "Bt" : "B");
  ck_assert_msg(mine == cpu, "%s: the cpu says %d, the device %d: %s", what, cpu, mine, why);
  free((void *)why);
  compare(&p.memory[0], t, 4, what);
  for (int i = 0; i < 3; i++)
    buffer_free(&p.memory[i]);
}

/* Sums of small whole numbers are exact, in whatever order they are added. */
START_TEST(products_are_the_cpus_in_every_dtype)
{
  static const int64_t sizes[][4] = {{1, 1, 1, 1},    {3, 5, 7, 2},      {64, 64, 8, 1},
                                     {65, 63, 9, 1},  {130, 257, 33, 1}, {1, 200, 50, 3},
                                     {200, 1, 31, 1}, {17, 4, 0, 2},     {128, 128, 16, 40},
                                     {8, 70, 300, 2}, {90, 7, 129, 3},   {1, 1, 1000, 1}};
  if (_i >= WEIR_DTYPES || !_i) return;
  open_compute_device();
  seed = (uint64_t)_i + 31;
  tame = true;
  for (int s = 0; s < 12; s++)
    for (int again = 0; again < (SANITIZED ? 1 : AT_LEVEL(2, 4, 20)); again++)
      one_product((weir_dtype)_i, WEIR_BLAS_BUILTIN, sizes[s]);
}
END_TEST

/* cuBLAS cannot run on a driver that is not NVIDIA's: who leaves the choice never notices. */
START_TEST(a_product_cublas_cannot_do_is_done_without_it)
{
  static const int64_t size[] = {128, 128, 80, 1};
  if (_i) return;
  open_compute_device();
  tame = true;
  for (int again = 0; again < 3; again++)
    one_product(WEIR_FLOAT32, WEIR_BLAS_AUTO, size);
  if (!rig_simulated()) return;
  product p = product_make(WEIR_FLOAT32, 8, 8, 8, 1);
  product_aim(&p, true);
  p.g.blas = WEIR_BLAS_VENDOR;
  ck_assert_int_eq(device->compute->gemm(device->self, NULL, &p.g), WEIR_ENOTSUP);
  ck_assert_msg(strstr(weir_error_message(), "cuBLAS was asked for") != NULL, "%s",
                weir_error_message());
  for (int i = 0; i < 3; i++)
    buffer_free(&p.memory[i]);
}
END_TEST

static int64_t allocated(void)
{
  weir_memory_stats stats;
  weir_ok(weir_memory_get_stats(&stats, WEIR_CUDA_AT(0)));
  return stats.allocated_bytes;
}

/* cublas.c in cuBLAS's place; false: it was built without NVIDIA's declarations. */
static void (*answer)(int create, int gemm);
static unsigned (*multiplied)(void);

static bool open_strict(void)
{
  char path[PATH_MAX];
  const char *build = getenv("WEIR_BUILD");
  (void)snprintf(path, sizeof path, "%s/tests/cuda/libcublas-strict.so", build ? build : "build");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  *(void **)&answer = dlsym(library, "strict_cublas_answer");
  *(void **)&multiplied = dlsym(library, "strict_cublas_products");
  return answer && multiplied;
}

static bool has_cublas(weir_dtype t)
{
  return is_real(t) || t == WEIR_COMPLEX64;
}

START_TEST(products_by_cublas_are_the_cpus)
{
  static const int64_t sizes[][4] = {{1, 1, 1, 1},    {3, 5, 7, 2},    {64, 40, 8, 1},
                                     {1, 200, 50, 3}, {200, 1, 31, 1}, {130, 57, 33, 1},
                                     {1, 1, 1000, 1}, {20, 20, 5, 12}};
  if (!has_cublas((weir_dtype)_i) || !rig_simulated() || !open_strict()) return;
  open_compute_device();
  seed = (uint64_t)_i + 97;
  tame = true;
  for (int s = 0; s < 8; s++)
    for (int again = 0; again < 4; again++)
      one_product((weir_dtype)_i, WEIR_BLAS_VENDOR, sizes[s]);
  ck_assert_uint_eq(multiplied(), 8 * 4);
}
END_TEST

/* CUBLAS_STATUS_NOT_SUPPORTED, of a device that cannot; ALLOC_FAILED, of a full one. */
START_TEST(what_cublas_cannot_do_now_is_done_without_it)
{
  static const int64_t size[] = {128, 128, 80, 1};
  if (_i || !rig_simulated() || !open_strict()) return;
  open_compute_device();
  tame = true;
  product p = product_make(WEIR_FLOAT16, 8, 8, 8, 1);
  product_aim(&p, true);
  p.g.blas = WEIR_BLAS_VENDOR;
  answer(3, 0);
  one_product(WEIR_FLOAT16, WEIR_BLAS_AUTO, size);
  ck_assert_int_eq(device->compute->gemm(device->self, NULL, &p.g), WEIR_ENOTSUP);
  ck_assert_msg(strstr(weir_error_message(), "cublasCreate failed on cuda:0: status 3") != NULL,
                "%s", weir_error_message());
  answer(0, 15);
  one_product(WEIR_FLOAT16, WEIR_BLAS_AUTO, size);
  ck_assert_uint_eq(multiplied(), 0);
  ck_assert_int_eq(device->compute->gemm(device->self, NULL, &p.g), WEIR_ECUDA);
  ck_assert_msg(strstr(weir_error_message(), "on cuda:0: status 15") != NULL, "%s",
                weir_error_message());
  answer(0, 0);
  one_product(WEIR_FLOAT16, WEIR_BLAS_AUTO, size);
  ck_assert_uint_eq(multiplied(), 1);
  ck_assert_int_eq((int)allocated(), 0);
  for (int i = 0; i < 3; i++)
    buffer_free(&p.memory[i]);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

/* A sum in two launches, with memory between them. */
static weir_status long_sum(const buffer *in, const buffer *out)
{
  weir_reduce q = {.op = WEIR_REDUCE_SUM, .compute = WEIR_FLOAT32, .dims = 1, .outputs = 1};
  q.size[0] = q.each = 1 << 16;
  q.in =
      (weir_operand){.data = (void *)(uintptr_t)in->device, .dtype = WEIR_FLOAT32, .stride = {1}};
  q.out = (weir_operand){.data = (void *)(uintptr_t)out->device, .dtype = WEIR_FLOAT32};
  return device->compute->reduce(device->self, NULL, &q);
}

START_TEST(a_call_that_fails_names_the_operation_and_leaves_nothing_behind)
{
  static const char *const calls[] = {"cuLibraryLoadData", "cuLibraryGetKernel", "cuLaunchKernel",
                                      "cuThreadExchangeStreamCaptureMode"};
  if (_i >= 4 || !rig_simulated()) return;
  open_compute_device();
  buffer in = buffer_new(4 << 16), out = buffer_new(4);
  fill_random_buffer(&in, WEIR_FLOAT32);
  void *first;
  weir_ok(weir_malloc(&first, 8, WEIR_CUDA_AT(0), NULL));
  weir_ok(weir_free(first));
  int failed = 0;
  for (bool met = true; met; failed += met) {
    char list[64];
    uint64_t before = rig_calls(calls[_i]);
    (void)snprintf(list, sizeof list, "%s:%d=999", calls[_i], failed + 1);
    rig_fail(list);
    weir_status st = long_sum(&in, &out);
    met = rig_calls(calls[_i]) - before > (uint64_t)failed;
    rig_fail(NULL);
    if (_i < 3 && met) {
      ck_assert_int_eq(st, WEIR_ECUDA);
      ck_assert_msg(strncmp(weir_error_message(), "sum: ", 5) == 0, "%s", weir_error_message());
    }
    ck_assert_int_eq((int)allocated(), 0);
    if (_i < 2) break; /* the next sum loads it; later ones do not */
  }
  ck_assert(failed > 0 || _i < 2);
  weir_ok(long_sum(&in, &out));
  buffer_free(&in);
  buffer_free(&out);
}
END_TEST

/* By whichever call looks at the code: loading is lazy, unless somebody asked for it. */
START_TEST(a_driver_older_than_the_kernels_compiler_is_told_of)
{
  static const int errors[] = {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NO_BINARY_FOR_GPU};
  if (_i >= 4 || !rig_simulated()) return;
  ck_assert_int_eq(setenv("WEIR_SIM_DRIVER", "12040", 1), 0);
  open_compute_device();
  buffer in = buffer_new(4 << 16), out = buffer_new(4);
  char list[64], words[128];
  (void)snprintf(list, sizeof list, "%s:1=%d", _i < 2 ? "cuLibraryLoadData" : "cuLaunchKernel",
                 errors[_i % 2]);
  (void)snprintf(words, sizeof words, "by CUDA %d.%d, and the driver of cuda:0 is of CUDA 12.4",
                 CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  rig_fail(list);
  ck_assert_int_eq(long_sum(&in, &out), WEIR_ECUDA);
  ck_assert_msg(strstr(weir_error_message(), words) != NULL, "%s", weir_error_message());
  rig_fail(NULL);
  weir_ok(long_sum(&in, &out));
  buffer_free(&in);
  buffer_free(&out);
}
END_TEST

int main(void)
{
  static const TTest *tests[12];
  tests[7] = a_call_that_fails_names_the_operation_and_leaves_nothing_behind;
  tests[8] = a_driver_older_than_the_kernels_compiler_is_told_of;
  tests[5] = products_are_the_cpus_in_every_dtype;
  tests[6] = a_product_cublas_cannot_do_is_done_without_it;
  tests[9] = products_by_cublas_are_the_cpus;
  tests[10] = what_cublas_cannot_do_now_is_done_without_it;
  tests[0] = every_operation_gives_what_the_cpu_gives_in_every_dtype;
  tests[1] = every_reduction_gives_what_the_cpu_gives_in_every_dtype;
  tests[2] = a_long_sum_keeps_what_rounding_loses;
  tests[3] = random_numbers_are_the_cpus_to_the_bit;
  tests[4] = im2col_gives_what_the_cpu_gives;
  return rig_run("cuda/compute", tests, WEIR_OP_COUNT);
}
