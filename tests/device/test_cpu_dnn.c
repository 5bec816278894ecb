/* test_cpu_dnn.c: convolutions by oneDNN, whose place a library of plain loops takes
 * (dnnl_plain.c): the results are those of Weir's own, which test_cpu_conv checks; what is
 * refused, what fails, who is asked. Each test is a process of its own: the library is opened
 * once in a process. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/backend/cpu/cpu.h"
#include "core/weir/blas.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"

enum { MOST = 1 << 20, PLANS = 64, PLAN = 16 /* objects of a plan, at most */ };

static char in[MOST * 4], weight[MOST * 4], bias[4096 * 4], out[MOST * 4], own[MOST * 4];

static struct {
  int (*live)(void);
  int (*convolutions)(void);
  void (*fail_in)(int calls);
  bool (*has_failed)(void);
  void (*be)(int major, unsigned runtime, const char *implementation);
  void (*in_parallel)(int is);
  int (*threads)(void);
  int (*last_threads)(void);
} plain;

static void *open_place(const char *name)
{
  char path[4096];
  const char *build = getenv("WEIR_BUILD");
  (void)snprintf(path, sizeof path, "%s/tests/device/%s", build ? build : "build", name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  return library;
}

static void open_plain(void)
{
  void *library = open_place("libdnnl-plain.so");
  *(void **)&plain.live = dlsym(library, "plain_dnnl_live");
  *(void **)&plain.convolutions = dlsym(library, "plain_dnnl_convolutions");
  *(void **)&plain.fail_in = dlsym(library, "plain_dnnl_fail_in");
  *(void **)&plain.has_failed = dlsym(library, "plain_dnnl_has_failed");
  *(void **)&plain.be = dlsym(library, "plain_dnnl_be");
  *(void **)&plain.in_parallel = dlsym(library, "plain_dnnl_in_parallel");
  *(void **)&plain.last_threads = dlsym(library, "plain_dnnl_last_threads");
  *(void **)&plain.threads = dlsym(library, "omp_get_max_threads");
}

static void fill_dnn_values(void *memory, weir_dtype d, int64_t count)
{
  ck_assert_int_le(count, MOST);
  for (int64_t i = 0; i < count; i++) {
    long double x = (long double)ref_dice(2001) / 1000 - 1;
    ref_store(d, (char *)memory + (size_t)i * ref_bytes(d), (element){.re = ref_round(x, d)});
  }
}

static int64_t results_of(const weir_conv *c)
{
  return c->n * c->groups * c->outs * c->result[0] * c->result[1];
}

static void fill_dnn_conv(weir_conv *c)
{
  int64_t planes = c->groups * c->outs;
  for (int i = 0; i < 2; i++)
    c->result[i] =
        (c->size[i] + 2 * c->pad[i] - c->dilation[i] * (c->kernel[i] - 1) - 1) / c->stride[i] + 1;
  fill_dnn_values(in, c->dtype, c->n * c->groups * c->channels * c->size[0] * c->size[1]);
  fill_dnn_values(weight, c->dtype, planes * c->channels * c->kernel[0] * c->kernel[1]);
  fill_dnn_values(bias, c->dtype, planes);
  ck_assert_int_le(results_of(c), MOST);
  c->in = in, c->weight = weight;
}

static weir_status run_by(weir_conv *c, void *to, weir_blas which)
{
  c->out = to;
  ck_assert_int_eq(weir_set_blas(which), WEIR_OK);
  return weir_cpu_backend.compute->conv(weir_cpu_backend.self, NULL, c);
}

/* Both are within the rounding of sums of as many terms. */
static void check_same(const weir_conv *c, const void *left, const void *right)
{
  int64_t terms = c->channels * c->kernel[0] * c->kernel[1];
  long double room = 2e-7L * (long double)(terms + 1);
  for (int64_t i = 0; i < results_of(c); i++) {
    size_t at = (size_t)i * ref_bytes(c->dtype);
    long double x = ref_load(c->dtype, (const char *)left + at).re;
    long double y = ref_load(c->dtype, (const char *)right + at).re;
    ck_assert_msg(fabsl(x - y) <= room + ref_ulp(fabsl(y), c->dtype),
                  "dtype %d, %lld images of %lldx%lld planes: element %lld is %Lg, not %Lg",
                  c->dtype, (long long)c->n, (long long)c->groups, (long long)c->channels,
                  (long long)i, x, y);
  }
}

/* By `which`; how many the library convolved meanwhile. */
static int library_share(weir_conv *c, weir_blas which)
{
  int before = plain.convolutions();
  fill_dnn_conv(c);
  ck_assert_int_eq(run_by(c, own, WEIR_BLAS_BUILTIN), WEIR_OK);
  ck_assert_int_eq(plain.convolutions(), before);
  memset(out, 0xff, (size_t)results_of(c) * ref_bytes(c->dtype));
  ck_assert_msg(run_by(c, out, which) == WEIR_OK, "%s", weir_error_message());
  check_same(c, out, own);
  return plain.convolutions() - before;
}

static weir_conv random_conv(weir_dtype dtype)
{
  weir_conv c = {.dtype = dtype, .n = 1 + ref_dice(3), .groups = 1 + ref_dice(2) * ref_dice(4)};
  c.channels = 1 + ref_dice(4), c.outs = 1 + ref_dice(3) * ref_dice(9);
  for (int i = 0; i < 2; i++) {
    c.kernel[i] = 1 + ref_dice(4);
    c.stride[i] = 1 + ref_dice(2) * ref_dice(4);
    c.dilation[i] = 1 + ref_dice(2) * ref_dice(3);
    c.pad[i] = ref_dice(2) * ref_dice(4);
    int64_t span = (c.kernel[i] - 1) * c.dilation[i] + 1;
    c.size[i] = (span > 2 * c.pad[i] ? span - 2 * c.pad[i] : 1) + ref_dice(12);
  }
  c.bias = ref_dice(2) ? bias : NULL;
  return c;
}

/* Large enough for "auto". */
static weir_conv large_conv(weir_dtype dtype)
{
  return (weir_conv){.dtype = dtype,
                     .bias = bias,
                     .n = 2,
                     .groups = 1,
                     .channels = 16,
                     .outs = 16,
                     .size = {12, 12},
                     .kernel = {3, 3},
                     .stride = {1, 1},
                     .pad = {1, 1},
                     .dilation = {1, 1}};
}

START_TEST(convolutions_of_any_kind_are_those_of_our_own)
{
  open_plain();
  for (int round = 0; round < 150; round++) {
    weir_conv c = random_conv(_i ? WEIR_BFLOAT16 : WEIR_FLOAT32);
    ck_assert_int_eq(weir_set_num_threads(1 + round % 4), WEIR_OK);
    ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
    ck_assert_int_eq(plain.last_threads(), 1 + round % 4);
    ck_assert_int_eq(plain.threads(), 7); /* as it was */
    ck_assert_int_le(plain.live(), 1 + PLANS * PLAN);
  }
  ck_assert_int_gt(plain.live(), PLANS * (PLAN - 2));
}
END_TEST

START_TEST(a_plan_is_made_once_while_weights_may_change)
{
  open_plain();
  weir_conv c = large_conv(WEIR_FLOAT32);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 1);
  int live = plain.live();
  for (int i = 0; i < 3; i++) /* other values each time */
    ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 1);
  ck_assert_int_eq(plain.live(), live);
}
END_TEST

START_TEST(large_batches_go_in_equal_shares)
{
  open_plain();
  weir_conv c = {.dtype = WEIR_FLOAT32, .n = 6, .groups = 1, .channels = 2, .outs = 2};
  for (int i = 0; i < 2; i++)
    c.size[i] = 290, c.kernel[i] = 2, c.stride[i] = 1 + i, c.dilation[i] = 1;
  ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 2); /* 4 MiB hold 4 images: 3 divide 6 */
}
END_TEST

/* Whatever call fails, the convolution is done; nothing of a plan that failed is left. */
START_TEST(what_fails_in_the_library_is_done_by_our_own)
{
  open_plain();
  weir_conv c = large_conv(WEIR_FLOAT32);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1); /* has an engine */
  bool failed = true;
  int calls = 0, whole = 0;
  for (; failed; calls++) {
    c.size[1] = 13 + calls;
    int live = plain.live();
    plain.fail_in(calls);
    int shares = library_share(&c, WEIR_BLAS_VENDOR), more = plain.live() - live;
    failed = plain.has_failed();
    plain.fail_in(-1);
    ck_assert_msg(more == 0 || more == PLAN, "call %d: %d objects", calls, more);
    ck_assert_int_le(shares, 1);
    if (!failed) ck_assert_int_eq(shares, 1);
    whole += more == PLAN;
  }
  ck_assert_int_gt(calls, 40);
  ck_assert_int_gt(whole, 8); /* failed where it ran: the plan is kept */
}
END_TEST

START_TEST(what_the_library_has_only_slow_code_for_is_our_own)
{
  open_plain();
  weir_conv c = large_conv(_i ? WEIR_BFLOAT16 : WEIR_FLOAT32);
  plain.be(3, 2, _i ? "plain:avx512_core" : "ref:any");
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 0);
  ck_assert_int_eq(plain.live(), 1); /* the engine */
  plain.be(3, 2, "plain:core_bf16");
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 0); /* the refusal is kept */
  c.n = 3;
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
}
END_TEST

START_TEST(auto_takes_the_library_where_it_is_quicker)
{
  open_plain();
  weir_conv c = large_conv(WEIR_FLOAT32);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 1);
  c = large_conv(WEIR_BFLOAT16);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 1);
  c = large_conv(WEIR_FLOAT32);
  c.size[0] = c.size[1] = 4; /* too small */
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 0);
  c = large_conv(WEIR_FLOAT32);
  c.channels = 8; /* short sums */
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 0);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
  c = large_conv(WEIR_FLOAT32);
  c.groups = 64, c.channels = c.outs = 1; /* depthwise */
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 0);
  c.kernel[0] = c.kernel[1] = 5, c.pad[0] = c.pad[1] = 2;
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 1);
}
END_TEST

START_TEST(a_parallel_region_of_openmp_is_not_nested)
{
  open_plain();
  weir_conv c = large_conv(WEIR_FLOAT32);
  plain.in_parallel(1);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 0);
  plain.in_parallel(0);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
}
END_TEST

START_TEST(a_sequential_library_is_for_one_thread)
{
  open_plain();
  plain.be(3, 1, "plain:any");
  weir_conv c = large_conv(WEIR_FLOAT32);
  ck_assert_int_eq(weir_set_num_threads(2), WEIR_OK);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 0);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
  ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_AUTO), 1);
}
END_TEST

START_TEST(the_child_of_a_fork_does_without)
{
  open_plain();
  weir_conv c = large_conv(WEIR_FLOAT32);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
  int before = plain.convolutions(), status = -1;
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (!child) { /* in one thread: ThreadSanitizer knows no others of a child */
    (void)weir_set_num_threads(1);
    memset(out, 0xff, (size_t)results_of(&c) * 4);
    bool same = !run_by(&c, out, WEIR_BLAS_VENDOR) && !memcmp(out, own, (size_t)results_of(&c) * 4);
    _exit(same && plain.convolutions() == before ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(library_share(&c, WEIR_BLAS_VENDOR), 1);
}
END_TEST

static void *convolve_often(void *arg)
{
  weir_conv c = *(const weir_conv *)arg;
  char *mine = malloc((size_t)results_of(&c) * 4);
  bool same = mine != NULL;
  for (int i = 0; i < 25 && same; i++) {
    c.out = mine;
    same = !weir_cpu_backend.compute->conv(weir_cpu_backend.self, NULL, &c) &&
           !memcmp(mine, c.n == 1 ? own : out, (size_t)results_of(&c) * 4);
  }
  free(mine);
  return same ? arg : NULL;
}

START_TEST(threads_have_plans_of_their_own)
{
  open_plain();
  pthread_t thread[4];
  weir_conv shape[2] = {large_conv(WEIR_FLOAT32), large_conv(WEIR_FLOAT32)};
  for (int i = 0; i < 2; i++) /* the first image, and both */
    shape[i].n = 2 - i, shape[i].pad[1] = 1 - i;
  fill_dnn_conv(&shape[0]);
  shape[1].in = in, shape[1].weight = weight;
  shape[1].result[0] = 12, shape[1].result[1] = 10;
  ck_assert_int_eq(run_by(&shape[0], out, WEIR_BLAS_VENDOR), WEIR_OK);
  ck_assert_int_eq(run_by(&shape[1], own, WEIR_BLAS_VENDOR), WEIR_OK);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, convolve_often, &shape[i % 2]), 0);
  for (int i = 0; i < 4; i++) {
    void *same = NULL;
    ck_assert_int_eq(pthread_join(thread[i], &same), 0);
    ck_assert_ptr_nonnull(same);
  }
  ck_assert_int_eq(plain.convolutions(), 102);
}
END_TEST

static const struct refusal {
  int major;
  unsigned runtime;
  int fail_in;
  const char *sentence;
} refusals[] = {{2, 2, -1, "is of version 2.2, not 3"},
                {4, 2, -1, "is of version 4.2, not 3"},
                {3, 4, -1, "neither OpenMP's nor none"},
                {3, 512, -1, "neither OpenMP's nor none"},
                {3, 2, 0, "has no engine for the cpu"}};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static void check_refused(const char *sentence)
{
  weir_conv c = large_conv(WEIR_FLOAT32);
  fill_dnn_conv(&c);
  ck_assert_int_eq(run_by(&c, own, WEIR_BLAS_BUILTIN), WEIR_OK);
  ck_assert_int_eq(run_by(&c, out, WEIR_BLAS_AUTO), WEIR_OK);
  ck_assert(memcmp(own, out, (size_t)results_of(&c) * 4) == 0);
  ck_assert_int_eq(run_by(&c, out, WEIR_BLAS_VENDOR), WEIR_ENOTSUP);
  const char *message = weir_error_message();
  ck_assert_msg(strstr(message, "oneDNN was asked for (WEIR_BLAS_VENDOR)") != NULL, "%s", message);
  ck_assert_msg(strstr(message, sentence) != NULL, "%s", message);
  c.dtype = WEIR_FLOAT64; /* always our own */
  fill_dnn_conv(&c);
  ck_assert_int_eq(run_by(&c, out, WEIR_BLAS_VENDOR), WEIR_OK);
}

START_TEST(a_library_that_does_not_serve_is_refused)
{
  open_plain();
  plain.be(refusals[_i].major, refusals[_i].runtime, "plain:any");
  plain.fail_in(refusals[_i].fail_in);
  check_refused(refusals[_i].sentence);
  ck_assert_int_eq(plain.convolutions(), 0);
}
END_TEST

START_TEST(a_library_without_the_functions_is_refused)
{
  (void)open_place("libdnnl-bare.so");
  check_refused("libdnnl.so.3 has no dnnl_engine_create");
}
END_TEST

START_TEST(no_library_is_an_error_where_it_is_asked_for)
{
  void *there = dlopen("libdnnl.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (there) {
    (void)dlclose(there); /* this machine has one */
    return;
  }
  check_refused("libdnnl.so.3: cannot open shared object file");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu dnn");
  TCase *t = tcase_create("dnn");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, convolutions_of_any_kind_are_those_of_our_own, 0, 2);
  tcase_add_test(t, a_plan_is_made_once_while_weights_may_change);
  tcase_add_test(t, large_batches_go_in_equal_shares);
  tcase_add_test(t, what_fails_in_the_library_is_done_by_our_own);
  tcase_add_loop_test(t, what_the_library_has_only_slow_code_for_is_our_own, 0, 2);
  tcase_add_test(t, auto_takes_the_library_where_it_is_quicker);
  tcase_add_test(t, a_parallel_region_of_openmp_is_not_nested);
  tcase_add_test(t, a_sequential_library_is_for_one_thread);
  tcase_add_test(t, the_child_of_a_fork_does_without);
  tcase_add_test(t, threads_have_plans_of_their_own);
  tcase_add_loop_test(t, a_library_that_does_not_serve_is_refused, 0, REFUSALS);
  tcase_add_test(t, a_library_without_the_functions_is_refused);
  tcase_add_test(t, no_library_is_an_error_where_it_is_asked_for);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
