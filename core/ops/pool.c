/* pool.c: averages and extremes of windows, of one to three axes.
 *
 * All is one request, weir_pool, on planes of three axes: what has fewer gets leading ones of one
 * place. What is refused, and in which words, differs from function to function, as in torch, where
 * one axis is often two of which the first has one place.
 *
 * Words. plane: one channel of one image. window: what one output place sees. */
#include <stdio.h>
#include <string.h>
#include "core/ops/ops.h"
#include "core/tensor/format.h"

static int64_t or_1(int64_t x)
{
  return x ? x : 1;
}

/* ---- the request ----------------------------------------------------------------------------- */

static int64_t planes_of(const weir_tensor *a, int axes)
{
  return sizes_product(a->size, 0, a->dims - axes);
}

/* Runs it from `from` to `to`, both dense. */
static weir_status pool_enqueue(weir_pool *q, const pooling *p, const weir_tensor *to,
                                const weir_tensor *from)
{
  compute_target t;
  q->dtype = from->dtype;
  q->from = from->data;
  q->to = to->data;
  q->planes = planes_of(from, p->axes);
  q->adaptive = p->adaptive;
  q->count_pad = p->count_pad;
  q->divisor = p->divisor;
  memcpy(q->axis, p->axis, sizeof q->axis);
  if (!to->numel) return WEIR_OK;
  TRY(compute_target_of(&t, device_of_tensor(to)));
  if (!t.compute->pool) return compute_target_lacks(&t, p->name);
  return compute_target_done(&t, t.compute->pool(t.self, t.stream, q), p->name);
}

/* The result is the windows' largest, whose places are known, or `average`. */
static __attribute__((cold)) weir_status record_windows(weir_tensor *result, const weir_tensor *a,
                                                        const weir_tensor *places, const pooling *p,
                                                        enum record_kind average)
{
  const weir_tensor *in[3] = {a, NULL, places};
  record r = {.kind = RECORD_MAX_PLACES, .inputs = 3, .in = in, .out = {result}, .n = {p->axes}};
  int64_t *n = r.n + 1;
  if (!p->max) r.kind = average, r.inputs = 1;
  *n++ = p->adaptive;
  *n++ = p->count_pad;
  *n++ = p->divisor;
  memcpy(n, p->axis, sizeof p->axis);
  return tensor_recorder->made(&r);
}

void pool_of_record(pooling *p, const int64_t *n)
{
  *p = (pooling){.name = "avg_pool", .kernel_name = "avg_pool", .axes = (int)*n++};
  p->text_axes = p->axes;
  p->adaptive = *n++;
  p->count_pad = *n++;
  p->divisor = *n++;
  memcpy(p->axis, n, sizeof p->axis);
}

_Static_assert(sizeof(weir_axis[3]) <= (RECORD_NUMBERS - 4) * sizeof(int64_t), "a record's room");

weir_status pool_run(weir_tensor **out, weir_tensor **indices, const weir_tensor *a,
                     const pooling *p)
{
  CALC(c);
  weir_tensor *places = NULL;
  WEIR_TENSOR result = NULL;
  weir_shape shape = shape_of_tensor(a);
  weir_pool q = {.kind = p->max ? WEIR_POOL_MAX : WEIR_POOL_AVERAGE};
  for (int i = 0; i < p->axes; i++)
    shape.size[a->dims - p->axes + i] = p->axis[3 - p->axes + i].out;
  weir_tensor *dense = c_contiguous(c, a);
  c_do(c, tensor_new_beside(&result, a, shape));
  if (!c->st && (indices || (p->max && recorded(a))))
    places = c_call(c, tensor_new, WEIR_INT64, device_of_tensor(a), false, shape);
  if (places) q.index = (int64_t *)(void *)places->data;
  c_do(c, pool_enqueue(&q, p, result, dense));
  c_do(c, format_settle(&result, format_of(a)));
  if (!c->st && recorded(a)) c->st = record_windows(result, a, places, p, RECORD_AVERAGE_POOL);
  if (c->st) return c->st;
  *out = weir_tensor_retain(result);
  if (indices) *indices = weir_tensor_retain(places);
  return WEIR_OK;
}

weir_status pool_back(weir_tensor **out, const weir_tensor *grad, const weir_tensor *indices,
                      const pooling *p)
{
  CALC(c);
  weir_shape shape = shape_of_tensor(grad);
  weir_pool q = {.kind = p->max ? WEIR_POOL_MAX_BACK : WEIR_POOL_AVERAGE_BACK};
  for (int i = 0; i < p->axes; i++)
    shape.size[grad->dims - p->axes + i] = p->axis[3 - p->axes + i].in;
  if (p->max) WEIR_NO_DERIVATIVE_AS(p->name, NULL, grad);
  weir_tensor *dense = c_contiguous(c, grad);
  weir_tensor *places = p->max ? c_contiguous(c, indices) : NULL;
  c_do(c, tensor_new_beside(out, grad, shape));
  if (places) q.index = (int64_t *)(void *)places->data;
  if (!grad->numel)
    c_do(c, weir_zero_(*out));
  else
    c_do(c, pool_enqueue(&q, p, *out, dense));
  if (!c->st && recorded(grad))
    c->st = record_windows(*out, grad, NULL, p, RECORD_AVERAGE_POOL_BACK);
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* ---- what is refused ------------------------------------------------------------------------- */

enum { FIELD = 40, FIELDS = 3 * FIELD };

/* "kH: 2 kW: 3": a letter for each axis. */
static const char *axes_text(char *out, const pooling *p, const char *letter,
                             int64_t (*of)(const weir_axis *x))
{
  static const char names[] = "THW";
  size_t at = 0;
  for (int i = 3 - p->text_axes; i < 3; i++) {
    int n = snprintf(out + at, FIELDS - at, "%s%s%c: %lld", at ? " " : "", letter, names[i],
                     (long long)of(&p->axis[i]));
    at += n > 0 ? (size_t)n : 0;
  }
  return out;
}

static int64_t kernel_of_axis(const weir_axis *x)
{
  return x->kernel;
}
static int64_t stride_of_axis(const weir_axis *x)
{
  return x->stride;
}
static int64_t dilation_of_axis(const weir_axis *x)
{
  return x->dilation;
}
static int64_t in_of_axis(const weir_axis *x)
{
  return x->in;
}

/* What is asked before an output's size can be. In ceil_mode a window may begin inside and end
 * where it likes: that place must be a number, too. */
static weir_status check_axis(const pooling *p, const weir_axis *x, bool ceil_mode)
{
  int64_t span;
  if (!x->stride) return fail_invalid("stride should not be zero");
  if (x->pad < 0)
    return fail_invalid("pad must be non-negative, but got pad: %lld", (long long)x->pad);
  if (__builtin_sub_overflow(x->kernel, 1, &span) ||
      __builtin_mul_overflow(span, x->dilation, &span) || __builtin_add_overflow(span, 1, &span) ||
      (ceil_mode && span > INT64_MAX / 4))
    return fail_invalid(
        "%s: kernel_size=%lld, padding=%lld and dilation=%lld are too large: a size overflows",
        p->name, (long long)x->kernel, (long long)x->pad, (long long)x->dilation);
  if (x->pad > span / 2)
    return fail_invalid("pad should be at most half of effective kernel size, but got pad=%lld, "
                        "kernel_size=%lld and dilation=%lld",
                        (long long)x->pad, (long long)x->kernel, (long long)x->dilation);
  return WEIR_OK;
}

static int64_t rounded_down(int64_t a, int64_t b)
{
  return a / b - (a % b && (a < 0) != (b < 0));
}

/* Output places; strides may still be negative. */
static void size_axis(weir_axis *x, bool ceil_mode)
{
  int64_t room = 2 * x->pad - x->dilation * (x->kernel - 1) - 1 + x->in;
  x->out = rounded_down(room + (ceil_mode ? x->stride - 1 : 0), x->stride) + 1;
  if (ceil_mode && (x->out - 1) * x->stride >= x->in + x->pad) x->out--;
}

static weir_status check_pool_sizes(const pooling *p)
{
  char text[FIELDS];
  bool kernel = true, stride = true, dilation = true;
  for (int i = 0; i < 3; i++) {
    kernel = kernel && p->axis[i].kernel > 0;
    stride = stride && p->axis[i].stride > 0;
    dilation = dilation && p->axis[i].dilation > 0;
  }
  if (!kernel)
    return fail_invalid("kernel size should be greater than zero, but got %s",
                        axes_text(text, p, "k", kernel_of_axis));
  if (!stride)
    return fail_invalid("stride should be greater than zero, but got %s",
                        axes_text(text, p, "d", stride_of_axis));
  if (!dilation)
    return fail_invalid("dilation should be greater than zero, but got %s",
                        axes_text(text, p, "dilation", dilation_of_axis));
  return WEIR_OK;
}

/* The input as the function with text_axes axes sees it: with an axis more where it has one. */
static weir_shape seen_shape(const pooling *p, const weir_tensor *a)
{
  weir_shape s = shape_of_tensor(a);
  if (p->text_axes == p->axes) return s;
  s.size[s.count] = s.size[s.count - 1];
  s.size[s.count - 1] = 1;
  s.count++;
  return s;
}

/* Empty dimensions but the batch's. */
static weir_status check_filled(const pooling *p, const weir_tensor *a)
{
  text_buffer text;
  weir_shape s = seen_shape(p, a);
  int from = s.count == p->text_axes + 2;
  for (int d = from; d < s.count; d++) {
    if (s.size[d]) continue;
    if (p->text_axes == 3)
      return fail_invalid("%s(): Expected input to have non-zero size for non-batch dimensions, "
                          "but input has sizes %s with dimension %d being empty",
                          p->max ? "max_pool3d_with_indices_out_cpu_template" : p->name,
                          shape_format(&text, s), d);
    return fail_invalid("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
                        "input, but got:%s",
                        shape_format(&text, s));
  }
  return WEIR_OK;
}

static weir_status check_half(const pooling *p)
{
  const weir_axis *x = p->axis;
  bool good = true;
  for (int i = 0; i < 3; i++)
    good = good && x[i].pad <= x[i].kernel / 2;
  if (good) return WEIR_OK;
  if (p->text_axes == 3)
    return fail_invalid("pad should be smaller than or equal to half of kernel size, but got kT: "
                        "%lld kW: %lld kH: %lld padT: %lld padW: %lld padH: %lld",
                        (long long)x[0].kernel, (long long)x[2].kernel, (long long)x[1].kernel,
                        (long long)x[0].pad, (long long)x[2].pad, (long long)x[1].pad);
  return fail_invalid("pad should be smaller than or equal to half of kernel size, but got padW = "
                      "%lld, padH = %lld, kW = %lld, kH = %lld",
                      (long long)x[2].pad, (long long)x[1].pad, (long long)x[2].kernel,
                      (long long)x[1].kernel);
}

static weir_status check_output(const pooling *p, const weir_tensor *a)
{
  const weir_axis *x = p->axis;
  long long c = (long long)a->size[a->dims - p->axes - 1];
  if (x[0].out > 0 && x[1].out > 0 && x[2].out > 0) return WEIR_OK;
  if (p->text_axes == 3)
    return fail_invalid("Given input size: (%lldx%lldx%lldx%lld). Calculated output size: "
                        "(%lldx%lldx%lldx%lld). Output size is too small",
                        c, (long long)x[0].in, (long long)x[1].in, (long long)x[2].in, c,
                        (long long)x[0].out, (long long)x[1].out, (long long)x[2].out);
  return fail_invalid("Given input size: (%lldx%lldx%lld). Calculated output size: "
                      "(%lldx%lldx%lld). Output size is too small",
                      c, (long long)x[1].in, (long long)x[2].in, c, (long long)x[1].out,
                      (long long)x[2].out);
}

/* avg_pool3d() alone asks this. */
static weir_status check_reach(const pooling *p)
{
  char in[FIELDS], kernel[FIELDS];
  bool good = true;
  for (int i = 0; i < 3; i++)
    good = good && p->axis[i].in >= p->axis[i].kernel;
  if (good || p->max || p->text_axes < 3) return WEIR_OK;
  return fail_invalid("input image (%s) smaller than kernel size (%s)",
                      axes_text(in, p, "", in_of_axis), axes_text(kernel, p, "k", kernel_of_axis));
}

/* The dtypes there are windows of. */
static weir_status check_pool_dtype(const pooling *p, const weir_tensor *a)
{
  weir_dtype d = a->dtype;
  bool there = dtype_is_floating(d) || (p->max ? dtype_is_integral(d) : d == WEIR_INT64);
  if (p->adaptive || (p->max && p->text_axes == 1)) there = dtype_is_floating(d);
  if (p->adaptive && !p->max && p->axes < 3 &&
      !(a->numel && p->axis[0].out && p->axis[1].out && p->axis[2].out))
    there = true;
  return there ? WEIR_OK : not_implemented(p->kernel_name, device_of_tensor(a), d);
}

/* ---- windows of one size --------------------------------------------------------------------- */

static void fill_axes(pooling *p, const weir_tensor *a, const weir_pool_options *o)
{
  for (int i = 0; i < 3; i++) {
    int from = i - (3 - p->axes);
    weir_axis *x = &p->axis[i];
    *x = (weir_axis){1, 1, 1, 1, 0, 1};
    if (from < 0) continue;
    x->in = a->size[a->dims - p->axes + from];
    x->kernel = o->kernel[from];
    x->stride = o->stride[from] ? o->stride[from] : o->kernel[from];
    x->pad = o->padding[from];
    x->dilation = p->max ? or_1(o->dilation[from]) : 1;
  }
}

static weir_status check_images(const pooling *p, const weir_tensor *a)
{
  text_buffer text;
  int n = p->axes + 1;
  if (a->dims == n || a->dims == n + 1) return WEIR_OK;
  if (p->axes == 1)
    return fail_invalid("Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 "
                        "'self' (while checking arguments for %s)",
                        a->dims, p->name);
  if (p->axes == 2 && !p->max && a->dims < 3) {
    int d;
    return dim_resolve(&d, -3, a->dims);
  }
  if (p->axes == 2 && !p->max)
    return fail_invalid("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
                        "input, but got:%s",
                        shape_format(&text, shape_of_tensor(a)));
  return fail_invalid("non-empty %dD or %dD (batch mode) tensor expected for input", n, n + 1);
}

/* All of p but its options is filled. */
static weir_status pool_windows(weir_tensor **out, weir_tensor **indices, const weir_tensor *a,
                                pooling *p, const weir_pool_options *o)
{
  p->text_axes = p->axes == 1 ? 2 : p->axes;
  p->count_pad = !o->exclude_pad;
  p->divisor = o->divisor_override;
  weir_status st = check_images(p, a);
  if (st && !(p->axes == 2 && !p->max && a->dims > 4)) return st;
  weir_status images = st;
  st = WEIR_OK;
  fill_axes(p, a, o);
  for (int i = 0; i < 3 && !st; i++)
    st = check_axis(p, &p->axis[i], o->ceil_mode);
  for (int i = 0; i < 3 && !st; i++)
    size_axis(&p->axis[i], o->ceil_mode);
  if (!st) st = check_pool_sizes(p);
  if (!st && images) st = check_images(p, a);
  if (!st) st = check_filled(p, a);
  if (!st) st = check_reach(p);
  if (!st) st = check_half(p);
  if (!st) st = check_output(p, a);
  if (!st) st = check_pool_dtype(p, a);
  return st ? st : pool_run(out, indices, a, p);
}

#define AVG_POOL(n, kernel)                                                                        \
  weir_status weir_avg_pool##n##d(weir_tensor **out, const weir_tensor *a,                         \
                                  const weir_pool_options *options)                                \
  {                                                                                                \
    WEIR_OP(out, a, options);                                                                      \
    WEIR_CASTS_WHERE((n) == 3 ? AUTOCAST_POOL_3D : AUTOCAST_NONE, a);                              \
    pooling p = {.name = "avg_pool" #n "d", .kernel_name = kernel, .axes = n};                     \
    return pool_windows(out, NULL, a, &p, options);                                                \
  }
AVG_POOL(1, "avg_pool2d")
AVG_POOL(2, "avg_pool2d")
AVG_POOL(3, "avg_pool3d_out_frame")

#define MAX_POOL_INDICES(n, kernel)                                                                \
  weir_status weir_max_pool##n##d_with_indices(weir_tensor **out, weir_tensor **indices,           \
                                               const weir_tensor *a,                               \
                                               const weir_pool_options *options)                   \
  {                                                                                                \
    WEIR_OP_BOTH(out, indices, a, options);                                                        \
    WEIR_CASTS_WHERE((n) == 3 ? AUTOCAST_POOL_3D : AUTOCAST_NONE, a);                              \
    pooling p = {.name = "max_pool" #n "d", .kernel_name = kernel, .axes = n, .max = true};        \
    return pool_windows(out, indices, a, &p, options);                                             \
  }
MAX_POOL_INDICES(1, "max_pool2d")
MAX_POOL_INDICES(2, "max_pool2d")
MAX_POOL_INDICES(3, "max_pool3d")

weir_status weir_max_pool2d(weir_tensor **out, const weir_tensor *a,
                            const weir_pool2d_options *options)
{
  WEIR_OP(out, a, options);
  pooling p = {.name = "max_pool2d", .kernel_name = "max_pool2d", .axes = 2, .max = true};
  weir_pool_options o = {.ceil_mode = false};
  for (int i = 0; i < 2; i++) {
    o.kernel[i] = options->kernel[i], o.stride[i] = options->stride[i];
    o.padding[i] = options->padding[i], o.dilation[i] = options->dilation[i];
  }
  return pool_windows(out, NULL, a, &p, &o);
}

weir_status weir_max_pool3d(weir_tensor **out, const weir_tensor *a,
                            const weir_pool_options *options)
{
  WEIR_OP(out, a, options);
  WEIR_CASTS(POOL_3D, a);
  pooling p = {.name = "max_pool3d", .kernel_name = "max_pool3d", .axes = 3, .max = true};
  return pool_windows(out, NULL, a, &p, options);
}

/* max_pool1d() states all in words of its own. */
static weir_status check_max_pool1d(const weir_tensor *a, const weir_axis *x)
{
  text_buffer text;
  bool filled = (a->dims == 2 && a->size[0]) || (a->dims == 3 && a->size[1]);
  if (!filled || !a->size[a->dims - 1])
    return fail_invalid("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                        "batch size for input, but got:%s",
                        shape_format(&text, shape_of_tensor(a)));
  if (x->kernel < 1)
    return fail_invalid("max_pool1d() kernel_size must be greater than zero, but got %lld",
                        (long long)x->kernel);
  if (x->stride < 1)
    return fail_invalid("max_pool1d() stride must be greater than zero, but got %lld",
                        (long long)x->stride);
  if (x->pad < 0)
    return fail_invalid("max_pool1d() padding must be non-negative, but got %lld",
                        (long long)x->pad);
  if (x->pad > x->kernel / 2)
    return fail_invalid("max_pool1d() padding should be at most half of kernel size, but got "
                        "padding=%lld and kernel_size=%lld",
                        (long long)x->pad, (long long)x->kernel);
  if (x->dilation < 1)
    return fail_invalid("max_pool1d() dilation must be greater than zero, but got %lld",
                        (long long)x->dilation);
  return WEIR_OK;
}

weir_status weir_max_pool1d(weir_tensor **out, const weir_tensor *a,
                            const weir_pool_options *options)
{
  WEIR_OP(out, a, options);
  pooling p = {.name = "max_pool1d", .kernel_name = "max_pool1d_impl", .axes = 1, .max = true};
  p.text_axes = 1;
  weir_axis asked = {1, 1, 1, 1, 0, 1};
  if (a->dims == 2 || a->dims == 3) {
    fill_axes(&p, a, options);
    asked = p.axis[2];
  }
  TRY(check_max_pool1d(a, &asked));
  TRY(check_axis(&p, &asked, options->ceil_mode));
  p.axis[2] = asked;
  size_axis(&p.axis[2], options->ceil_mode);
  if (p.axis[2].out < 1)
    return fail_invalid("max_pool1d() Invalid computed output size: %lld",
                        (long long)p.axis[2].out);
  weir_status st = check_pool_dtype(&p, a);
  return st ? st : pool_run(out, NULL, a, &p);
}

/* ---- outputs of one size --------------------------------------------------------------------- */

weir_status refused_average_size(const int64_t size[3], int dims)
{
  if (dims == 5)
    return fail_invalid("adaptive_avg_pool3d: elements of output_size must be greater than or "
                        "equal to 0 but received {%lld, %lld,%lld}",
                        (long long)size[0], (long long)size[1], (long long)size[2]);
  return fail_invalid("adaptive_avg_pool2d: elements of output_size must be greater than or equal "
                      "to 0 but received {%lld, %lld}",
                      (long long)size[1], (long long)size[2]);
}

/* Torch's refusal of negative sizes: of averages by name, of extremes as a tensor's. */
static weir_status check_asked(const pooling *p, const weir_tensor *a)
{
  const weir_axis *x = p->axis;
  text_buffer text;
  weir_shape s = seen_shape(p, a);
  if (x[0].out >= 0 && x[1].out >= 0 && x[2].out >= 0) return WEIR_OK;
  if (!p->max)
    return refused_average_size((const int64_t[3]){x[0].out, x[1].out, x[2].out}, p->text_axes + 2);
  int64_t least = 0;
  for (int i = 2; i >= 3 - p->text_axes; i--) {
    s.size[s.count - 3 + i] = x[i].out;
    if (x[i].out < 0) least = x[i].out;
  }
  return fail_invalid("Trying to create tensor with negative dimension %lld: %s", (long long)least,
                      shape_format(&text, s));
}

static weir_status check_adaptive_images(const pooling *p, const weir_tensor *a)
{
  text_buffer text;
  int n = p->axes + 1;
  if (a->dims == n || a->dims == n + 1) return WEIR_OK;
  if (p->axes == 1) return check_images(p, a);
  if (a->dims < n) return fail_invalid("Input dimension should be at least %d", n);
  return fail_invalid("%s(): Expected %dD or %dD tensor, but got%s %s", p->name, n, n + 1,
                      p->max ? ":" : "", shape_format(&text, shape_of_tensor(a)));
}

/* Averages of images (not of volumes) may have no channels. */
static weir_status check_adaptive_filled(const pooling *p, const weir_tensor *a)
{
  text_buffer text;
  bool one = p->axes == 1 && p->max;
  weir_shape s = one ? shape_of_tensor(a) : seen_shape(p, a);
  int from = p->max || p->axes == 3 ? 1 : s.count - p->text_axes;
  for (int d = from; d < s.count; d++)
    if (!s.size[d])
      return fail_invalid("%s(): Expected input to have non-zero size for non-batch dimensions, "
                          "but input has sizes %s with dimension %d being empty",
                          p->axes == 1 && !p->max ? "adaptive_avg_pool2d" : p->name,
                          shape_format(&text, s), d);
  return WEIR_OK;
}

/* Whether the request is quicker than a mean, and gives the same: the cpu has kernels for it. */
static bool is_quick_whole(const weir_tensor *a)
{
  return a->dense && a->numel && !recorded(a) &&
         (a->dtype == WEIR_FLOAT32 || a->dtype == WEIR_FLOAT64) &&
         device_of_tensor(a).type == WEIR_DEVICE_CPU;
}

static weir_status pool_adaptive(weir_tensor **out, const weir_tensor *a, pooling *p,
                                 const int64_t *size)
{
  p->adaptive = true;
  p->text_axes = p->axes == 1 ? 2 : p->axes;
  weir_status st = check_adaptive_images(p, a);
  if (st) return st;
  bool one = true;
  for (int i = 0; i < 3; i++) {
    int from = i - (3 - p->axes);
    p->axis[i] = (weir_axis){1, 1, 1, 1, 0, 1};
    if (from < 0) continue;
    p->axis[i].in = a->size[a->dims - p->axes + from];
    p->axis[i].out = size[from] == -1 ? p->axis[i].in : size[from];
    one = one && p->axis[i].out == 1;
  }
  if (one && !p->max && !is_quick_whole(a))
    return weir_mean_dims(out, a, (const int[]){-1, -2, -3}, p->axes, true);
  if (p->max) st = check_adaptive_filled(p, a);
  if (!st) st = check_asked(p, a);
  if (!st && !p->max) st = check_adaptive_filled(p, a);
  if (!st) st = check_pool_dtype(p, a);
  return st ? st : pool_run(out, NULL, a, p);
}

#define ADAPTIVE_POOL(n, kind, is_max, kernel)                                                     \
  weir_status weir_adaptive_##kind##_pool##n##d(weir_tensor **out, const weir_tensor *a,           \
                                                const int64_t *size)                               \
  {                                                                                                \
    WEIR_OP(out, a, size);                                                                         \
    WEIR_CASTS_WHERE((n) == 3 ? AUTOCAST_POOL_3D : AUTOCAST_NONE, a);                              \
    pooling p = {.name = "adaptive_" #kind "_pool" #n "d",                                         \
                 .kernel_name = kernel,                                                            \
                 .axes = n,                                                                        \
                 .max = is_max};                                                                   \
    return pool_adaptive(out, a, &p, size);                                                        \
  }
ADAPTIVE_POOL(1, avg, false, "adaptive_avg_pool2d")
ADAPTIVE_POOL(2, avg, false, "adaptive_avg_pool2d")
ADAPTIVE_POOL(3, avg, false, "adaptive_avg_pool3d_cpu")
ADAPTIVE_POOL(1, max, true, "adaptive_max_pool2d")
ADAPTIVE_POOL(2, max, true, "adaptive_max_pool2d")
ADAPTIVE_POOL(3, max, true, "adaptive_max_pool3d_cpu")
