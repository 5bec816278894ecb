/* test_cudnn.c: convolutions and their gradients by cuDNN are those of the cpu, whatever cuDNN
 * answers; cudnn.c is in its place.
 *
 * Tensors of random numbers are convolved on the cpu in float64 and on cuda:0 in the dtype; results
 * and gradients are compared, to some units of the dtype. */
#include <dlfcn.h>
#include <limits.h>
#include "tests/tensor/rig.h"

static void (*answer)(const char *function, int status);
static unsigned (*count)(const char *what);

static void *open_place(const char *name)
{
  char path[PATH_MAX];
  const char *build = getenv("WEIR_BUILD");
  (void)snprintf(path, sizeof path, "%s/tests/cuda/%s", build ? build : "build", name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  return library;
}

/* Products are the engine's own, and NVIDIA's cuBLAS is not opened. */
static void refuse_cublas(void)
{
  void (*refuse)(int create, int gemm);
  *(void **)&refuse = dlsym(open_place("libcublas-strict.so"), "strict_cublas_answer");
  if (refuse) refuse(1, 0);
}

/* cudnn.c in cuDNN's place; false: it was built without NVIDIA's declarations, or this is a GPU. */
static bool open_cudnn(const char *setting)
{
  if (!rig_simulated()) return false;
  ck_assert_int_eq(setenv("WEIR_CUDNN", setting, 1), 0);
  devices(1);
  refuse_cublas();
  void *library = open_place("libcudnn-strict.so");
  *(void **)&answer = dlsym(library, "strict_cudnn_answer");
  *(void **)&count = dlsym(library, "strict_cudnn_count");
  return answer && count;
}

/* ---- one convolution ------------------------------------------------------------------------- */

typedef struct shape_row {
  int axes;
  bool transposed, alone; /* alone: an image without a batch */
  int64_t n, groups, channels, outs, in[3], kernel[3], stride[3], pad[3], dilation[3], more[3];
} shape_row;

static const shape_row rows[] = {
    {1, .n = 2, .groups = 1, .channels = 3, .outs = 4, .in = {9}, .kernel = {3}, .pad = {1}},
    {1, .n = 1, .groups = 2, .channels = 2, .outs = 3, .in = {12}, .kernel = {4}, .stride = {3}},
    {2, .n = 2, .groups = 1, .channels = 3, .outs = 5, .in = {6, 7}, .kernel = {3, 3}},
    {2, .n = 3, .groups = 1, .channels = 4, .outs = 2, .in = {5, 5}, .kernel = {1, 1}},
    {2, .n = 2, .groups = 2, .channels = 2, .outs = 3, .in = {8, 6}, .kernel = {3, 2},
     .stride = {2, 1}, .pad = {1, 2}, .dilation = {1, 2}},
    {2, .n = 1, .groups = 4, .channels = 1, .outs = 1, .in = {7, 7}, .kernel = {3, 3},
     .stride = {2, 2}, .pad = {1, 1}},
    {2, .alone = true, .groups = 1, .n = 1, .channels = 2, .outs = 3, .in = {5, 8},
     .kernel = {2, 3}, .stride = {3, 2}, .pad = {0, 1}},
    {3, .n = 2, .groups = 1, .channels = 2, .outs = 3, .in = {4, 5, 6}, .kernel = {2, 3, 3},
     .stride = {1, 2, 1}, .pad = {1, 0, 1}},
    {3, .alone = true, .n = 1, .groups = 2, .channels = 1, .outs = 2, .in = {5, 4, 4},
     .kernel = {3, 2, 2}, .dilation = {2, 1, 1}},
    {1, .transposed = true, .n = 2, .groups = 1, .channels = 3, .outs = 2, .in = {6}, .kernel = {3},
     .stride = {2}, .pad = {1}, .more = {1}},
    {2, .transposed = true, .n = 2, .groups = 2, .channels = 2, .outs = 2, .in = {4, 5},
     .kernel = {3, 3}, .stride = {2, 1}, .pad = {1, 0}},
    {3, .transposed = true, .n = 1, .groups = 1, .channels = 2, .outs = 2, .in = {3, 3, 3},
     .kernel = {2, 2, 2}, .stride = {2, 1, 2}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct {
  weir_dtype dtype;
  double unit;
} kinds[] = {
    {WEIR_FLOAT32, 1e-5}, {WEIR_FLOAT64, 1e-12}, {WEIR_FLOAT16, 1e-2}, {WEIR_BFLOAT16, 6e-2}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static weir_status convolved(weir_tensor **out, const shape_row *s, weir_tensor *const t[3])
{
  typedef weir_status (*function)(weir_tensor **, const weir_tensor *, const weir_tensor *,
                                  const weir_tensor *, const weir_conv_options *);
  static const function
      plain[4] = {[1] = weir_conv1d, [3] = weir_conv3d},
      turned[4] = {
          [1] = weir_conv_transpose1d, [2] = weir_conv_transpose2d, [3] = weir_conv_transpose3d};
  weir_conv_options o = {.groups = s->groups};
  memcpy(o.stride, s->stride, sizeof o.stride);
  memcpy(o.padding, s->pad, sizeof o.padding);
  memcpy(o.dilation, s->dilation, sizeof o.dilation);
  memcpy(o.output_padding, s->more, sizeof o.output_padding);
  if (s->transposed) return turned[s->axes](out, t[0], t[1], t[2], &o);
  if (s->axes != 2) return plain[s->axes](out, t[0], t[1], t[2], &o);
  weir_conv2d_options two = {.groups = s->groups};
  memcpy(two.stride, s->stride, sizeof two.stride);
  memcpy(two.padding, s->pad, sizeof two.padding);
  memcpy(two.dilation, s->dilation, sizeof two.dilation);
  return weir_conv2d(out, t[0], t[1], t[2], &two);
}

/* Input, weights and bias on the cpu, of numbers that the dtype has. */
static void make_operands(weir_tensor *t[3], const shape_row *s, weir_dtype dtype)
{
  weir_options o = as(WEIR_FLOAT64, cpu);
  int64_t all = s->groups * s->outs, in = s->groups * s->channels;
  weir_shape shape[3] = {{.count = s->axes + 2, .size = {s->n, in}},
                         {.count = s->axes + 2, .size = {all, s->channels}},
                         {.count = 1, .size = {all}}};
  if (s->transposed) shape[1].size[0] = in, shape[1].size[1] = s->outs;
  for (int i = 0; i < s->axes; i++) {
    shape[0].size[2 + i] = s->in[i];
    shape[1].size[2 + i] = s->kernel[i];
  }
  if (s->alone) {
    memmove(shape[0].size, shape[0].size + 1, (size_t)(s->axes + 1) * sizeof *shape[0].size);
    shape[0].count--;
  }
  for (int i = 0; i < 3; i++) {
    WEIR_TENSOR wide = NULL;
    WEIR_TENSOR rounded = NULL;
    weir_ok(weir_randn(&wide, shape[i], &o));
    weir_ok(weir_to_dtype(&rounded, wide, dtype));
    weir_ok(weir_to_dtype(&t[i], rounded, WEIR_FLOAT64));
  }
}

static weir_tensor *moved_as(const weir_tensor *t, weir_dtype dtype)
{
  weir_tensor *out = NULL;
  WEIR_TENSOR cast = NULL;
  weir_ok(weir_to_dtype(&cast, t, dtype));
  weir_ok(weir_cuda(&out, cast, cuda0, false));
  return out;
}

static void is_near(const weir_tensor *own, const weir_tensor *by, double unit)
{
  WEIR_TENSOR here = NULL;
  WEIR_TENSOR wide = NULL;
  bool near = false;
  weir_ok(weir_cpu(&here, by));
  weir_ok(weir_to_dtype(&wide, here, WEIR_FLOAT64));
  weir_ok(weir_allclose(&near, own, wide, unit, 8 * unit, false));
  ck_assert(near);
}

/* The result, and with `derived` the three gradients of its sum's square. */
static void results(weir_tensor *out[4], const shape_row *s, weir_tensor *t[3], bool derived)
{
  for (int i = 0; i < 3 && derived; i++)
    weir_ok(weir_requires_grad_(t[i], true));
  weir_ok(convolved(&out[0], s, t));
  if (!derived) return;
  WEIR_TENSOR back = NULL;
  weir_ok(weir_detach(&back, out[0]));
  weir_ok(weir_grad(&out[1], (const weir_tensor *[]){out[0]}, 1,
                    (const weir_tensor *[]){t[0], t[1], t[2]}, 3,
                    &(weir_grad_options){.grad_outputs = (const weir_tensor *[]){back}}));
}

static void drop_all(weir_tensor **t, int n)
{
  for (int i = 0; i < n; i++)
    weir_tensor_drop(&t[i]);
}

static void compare_row(const shape_row *s, weir_dtype dtype, double unit, bool derived,
                        weir_memory_format format)
{
  weir_tensor *own[3], *far[3], *is[4] = {NULL}, *by[4] = {NULL};
  make_operands(own, s, dtype);
  for (int i = 0; i < 3; i++) {
    WEIR_TENSOR plain = moved_as(own[i], dtype);
    weir_ok(weir_contiguous_format(&far[i], plain, i < 2 ? format : WEIR_CONTIGUOUS_FORMAT));
  }
  results(is, s, own, derived);
  results(by, s, far, derived);
  ck_assert_int_eq(weir_tensor_dtype(by[0]), dtype);
  shape_is(by[0], weir_tensor_shape(is[0]));
  if (format != WEIR_CONTIGUOUS_FORMAT) ck_assert(weir_tensor_is_contiguous_format(by[0], format));
  /* a gradient sums products of results, which are sums of as many products as a window has */
  double window = (double)s->channels;
  for (int i = 0; i < s->axes; i++)
    window *= (double)s->kernel[i];
  for (int i = 0; i < (derived ? 4 : 1); i++)
    is_near(is[i], by[i], i ? unit * (1 + window) : unit * 2);
  drop_all(own, 3), drop_all(far, 3), drop_all(is, 4), drop_all(by, 4);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(convolutions_by_cudnn_are_the_cpus)
{
  if (!open_cudnn("on")) return;
  for (int k = 0; k < KINDS; k++) {
    unsigned before = count("runs");
    compare_row(&rows[_i], kinds[k].dtype, kinds[k].unit, false, WEIR_CONTIGUOUS_FORMAT);
    ck_assert_uint_eq(count("runs"), before + 1);
    ck_assert_uint_eq(count("math"), kinds[k].dtype == WEIR_FLOAT16   ? 1
                                     : kinds[k].dtype == WEIR_FLOAT32 ? 3
                                                                      : 0);
  }
}
END_TEST

START_TEST(gradients_by_cudnn_are_the_cpus)
{
  if (!open_cudnn("on")) return;
  for (int k = 0; k < KINDS; k++) {
    unsigned before = count("runs");
    compare_row(&rows[_i], kinds[k].dtype, kinds[k].unit, true, WEIR_CONTIGUOUS_FORMAT);
    if (!rows[_i].transposed) ck_assert_uint_ge(count("runs"), before + 3);
  }
}
END_TEST

START_TEST(channels_last_stay_so)
{
  if (rows[_i].axes < 2 || rows[_i].alone || rows[_i].transposed || !open_cudnn("on")) return;
  compare_row(&rows[_i], WEIR_FLOAT32, kinds[0].unit, false,
              rows[_i].axes == 2 ? WEIR_CHANNELS_LAST : WEIR_CHANNELS_LAST_3D);
  if (rows[_i].channels > 1) ck_assert_uint_eq(count("layout"), 1);
  if (rows[_i].axes == 2)
    compare_row(&rows[_i], WEIR_FLOAT32, kinds[0].unit, true, WEIR_CHANNELS_LAST);
}
END_TEST

/* 1.1 million products. */
static const shape_row large = {2,          .n = 1,         .groups = 1,     .channels = 16,
                                .outs = 16, .in = {24, 24}, .kernel = {3, 3}};

static void compare_large(void)
{
  compare_row(&large, WEIR_FLOAT32, 1e-4, true, WEIR_CONTIGUOUS_FORMAT);
}

START_TEST(a_plan_is_made_once_for_a_shape)
{
  if (_i || !open_cudnn("auto")) return;
  compare_row(&rows[2], WEIR_FLOAT32, 1e-5, true, WEIR_CONTIGUOUS_FORMAT);
  ck_assert_uint_eq(count("runs"), 0); /* not worth it */
  for (int again = 0; again < 3; again++)
    compare_large();
  ck_assert_uint_eq(count("runs"), 9);
  ck_assert_uint_eq(count("found"), 3);
  weir_set_deterministic(true);
  compare_large();
  ck_assert_uint_eq(count("found"), 6);
  ck_assert_uint_eq(count("algorithm"), 3);
  weir_set_deterministic(false);
  weir_set_allow_tf32(true);
  compare_large();
  ck_assert_uint_eq(count("algorithm"), 1);
  ck_assert_uint_eq(count("math"), 0);
  weir_set_allow_tf32(false);
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_BUILTIN), WEIR_OK);
  unsigned before = count("runs");
  compare_large();
  ck_assert_uint_eq(count("runs"), before);
}
END_TEST

/* More shapes than a handle has plans: descriptors do not gather. */
START_TEST(plans_are_bounded)
{
  if (_i || !open_cudnn("on")) return;
  unsigned most = 0;
  for (int64_t size = 4; size < 84; size++) {
    shape_row s = {2,         .n = 1,          .groups = 1,     .channels = 1,
                   .outs = 1, .in = {4, size}, .kernel = {2, 2}};
    compare_row(&s, WEIR_FLOAT32, 1e-5, false, WEIR_CONTIGUOUS_FORMAT);
    most = count("living") > most ? count("living") : most;
  }
  ck_assert_uint_eq(count("found"), 80);
  ck_assert_uint_eq(most, 1 + 32 * 4);
}
END_TEST

static const char *const prepared[] = {"cudnnCreateTensorDescriptor",
                                       "cudnnSetTensorNdDescriptor",
                                       "cudnnCreateFilterDescriptor",
                                       "cudnnSetFilterNdDescriptor",
                                       "cudnnCreateConvolutionDescriptor",
                                       "cudnnSetConvolutionNdDescriptor",
                                       "cudnnSetConvolutionGroupCount",
                                       "cudnnSetConvolutionMathType",
                                       "cudnnGetConvolutionForwardAlgorithm_v7",
                                       "cudnnGetConvolutionForwardWorkspaceSize",
                                       "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                       "cudnnGetConvolutionBackwardDataWorkspaceSize",
                                       "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                                       "cudnnGetConvolutionBackwardFilterWorkspaceSize"};
enum { PREPARED = sizeof prepared / sizeof *prepared };

/* Runs of three where prepared[i] fails; the engine's own gradient of the input is a
 * convolution. */
static unsigned runs_left(int i)
{
  return i < 8 ? 0 : i == 10 || i == 11 ? 3 : 2;
}

START_TEST(what_cudnn_cannot_do_is_done_without_it)
{
  static const char *const done[] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                     "cudnnConvolutionBackwardFilter"};
  if (_i || !open_cudnn("auto")) return;
  for (int i = 0; i < PREPARED; i++) {
    shape_row s = large; /* another one each time: there is no plan yet */
    s.in[0] += i;
    unsigned before = count("runs");
    answer(prepared[i], 3000);
    compare_row(&s, WEIR_FLOAT32, 1e-4, true, WEIR_CONTIGUOUS_FORMAT);
    ck_assert_uint_eq(count("runs") - before, runs_left(i));
    ck_assert_uint_le(count("living"), 1 + 32 * 4);
  }
  for (int i = 0; i < 3; i++) {
    answer(done[i], i == 1 ? 4004 : 3007);
    compare_large();
  }
  answer(NULL, 0);
  unsigned before = count("runs");
  compare_large();
  ck_assert_uint_eq(count("runs"), before + 3);
}
END_TEST

START_TEST(a_failure_of_cudnn_is_an_error)
{
  weir_tensor *t[3], *far[3], *out = NULL;
  if (_i || !open_cudnn("auto")) return;
  make_operands(t, &large, WEIR_FLOAT32);
  for (int i = 0; i < 3; i++)
    far[i] = moved_as(t[i], WEIR_FLOAT32);
  answer("cudnnConvolutionForward", 5000);
  refused_with(WEIR_ECUDA, "convolution: cuDNN failed on cuda:0: status 5000",
               convolved(&out, &large, far));
  ck_assert_ptr_null(out);
  answer("cudnnSetStream", 4000);
  refused_with(WEIR_ECUDA, "convolution: cuDNN failed on cuda:0: status 4000",
               convolved(&out, &large, far));
  answer(NULL, 0);
  weir_ok(convolved(&out, &large, far));
  weir_tensor_drop(&out);
  drop_all(t, 3), drop_all(far, 3);
}
END_TEST

/* Of 64 MiB there are no 32; the other algorithm needs no workspace. */
START_TEST(without_room_another_algorithm_is_taken)
{
  if (_i || !open_cudnn("auto")) return;
  compare_large();
  ck_assert_uint_eq(count("algorithm"), 1);
  weir_ok(weir_synchronize(cuda0));
  weir_ok(weir_memory_empty_cache(cuda0));
  weir_ok(weir_memory_set_fraction(cuda0, 0x1p-8)); /* of 8 GiB */
  compare_large();
  ck_assert_uint_eq(count("algorithm"), 3);
  ck_assert_uint_eq(count("runs"), 6);
}
END_TEST

/* What making a handle takes may be forbidden while a capture is underway; after it, it is not. */
START_TEST(a_handle_refused_in_a_capture_is_had_later)
{
  weir_tensor *t[3], *far[3];
  weir_graph *graph;
  WEIR_TENSOR made = NULL;
  WEIR_TENSOR is = NULL;
  if (_i || !open_cudnn("auto")) return;
  make_operands(t, &large, WEIR_FLOAT32);
  for (int i = 0; i < 3; i++)
    far[i] = moved_as(t[i], WEIR_FLOAT32);
  weir_ok(convolved(&is, &large, t));
  weir_stream *side;
  weir_ok(weir_stream_create(&side, cuda0));
  weir_ok(weir_graph_new(&graph));
  answer("cudnnCreate", 4000);
  weir_ok(weir_synchronize(cuda0));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_GLOBAL));
    weir_ok(convolved(&made, &large, far));
    weir_ok(weir_graph_capture_end(graph));
    weir_ok(weir_graph_replay(graph));
  }
  weir_ok(weir_synchronize(cuda0));
  is_near(is, made, 1e-4);
  answer(NULL, 0);
  ck_assert_uint_eq(count("runs"), 0);
  compare_large();
  ck_assert_uint_eq(count("runs"), 3);
  weir_graph_release(graph);
  weir_ok(weir_stream_release(side));
  drop_all(t, 3), drop_all(far, 3);
}
END_TEST

START_TEST(a_handle_refused_is_refused_for_good)
{
  if (_i || !open_cudnn("auto")) return;
  answer("cudnnCreate", 4003); /* a device that is full */
  compare_large();
  answer("cudnnCreate", 1001);
  compare_large();
  answer(NULL, 0);
  compare_large();
  ck_assert_uint_eq(count("runs"), 0);
}
END_TEST

START_TEST(who_wants_cudnn_gets_the_reason)
{
  weir_tensor *t[3], *far[3], *out = NULL;
  if (_i || !open_cudnn("on")) return;
  make_operands(t, &rows[2], WEIR_FLOAT32);
  for (int i = 0; i < 3; i++)
    far[i] = moved_as(t[i], WEIR_FLOAT32);
  answer("cudnnCreate", 4003);
  refused_with(WEIR_ENOTSUP, "(WEIR_CUDNN=on), and cudnnCreate failed on cuda:0: status 4003",
               convolved(&out, &rows[2], far));
  answer("cudnnSetFilterNdDescriptor", 3004);
  refused_with(WEIR_ENOTSUP, "cannot do this one on cuda:0: status 3004",
               convolved(&out, &rows[2], far));
  answer("cudnnConvolutionForward", 3007);
  refused_with(WEIR_ENOTSUP, "cannot do this one on cuda:0: status 3007",
               convolved(&out, &rows[2], far));
  ck_assert_ptr_null(out);
  drop_all(t, 3), drop_all(far, 3);
}
END_TEST

START_TEST(a_library_without_its_functions_is_none)
{
  weir_tensor *t[3], *far[3], *out = NULL;
  if (_i > 1 || !rig_simulated()) return;
  ck_assert_int_eq(setenv("WEIR_CUDNN", _i ? "auto" : "on", 1), 0);
  devices(1);
  refuse_cublas();
  (void)open_place("libcudnn-empty.so");
  make_operands(t, &large, WEIR_FLOAT32);
  for (int i = 0; i < 3; i++)
    far[i] = moved_as(t[i], WEIR_FLOAT32);
  if (_i)
    compare_large();
  else
    refused_with(WEIR_ENOTSUP, "libcudnn.so.9 lacks a function", convolved(&out, &large, far));
  drop_all(t, 3), drop_all(far, 3);
}
END_TEST

START_TEST(off_opens_nothing)
{
  if (_i || !open_cudnn("off")) return;
  compare_large();
  ck_assert_uint_eq(count("runs"), 0);
  ck_assert_uint_eq(count("living"), 0);
}
END_TEST

int main(void)
{
  const TTest *const of_rows[] = {convolutions_by_cudnn_are_the_cpus,
                                  gradients_by_cudnn_are_the_cpus, channels_last_stay_so, NULL};
  const TTest *const once[] = {a_plan_is_made_once_for_a_shape,
                               plans_are_bounded,
                               what_cudnn_cannot_do_is_done_without_it,
                               a_failure_of_cudnn_is_an_error,
                               without_room_another_algorithm_is_taken,
                               a_handle_refused_in_a_capture_is_had_later,
                               a_handle_refused_is_refused_for_good,
                               who_wants_cudnn_gets_the_reason,
                               a_library_without_its_functions_is_none,
                               off_opens_nothing,
                               NULL};
  (void)setenv("WEIR_BLAS", "auto", 1);
  int bad = rig_run("cuda/cudnn", of_rows, ROWS);
  return bad + rig_run("cuda/cudnn_answers", once, 2);
}
