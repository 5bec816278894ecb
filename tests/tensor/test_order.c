/* test_order.c: errors of operations that come late, launch blocking, graphs of operations, and
 * what peer access does not make legal. */
#include <sys/wait.h>
#include <unistd.h>
#include "core/stream/async_error.h"
#include "tests/tensor/rig.h"

enum { N = 1000 };

static bool error_message_has(const char *text)
{
  return strstr(weir_error_message(), text) != NULL;
}

static weir_tensor *full(float value, weir_device d)
{
  weir_tensor *t;
  weir_options o = on(d);
  weir_ok(weir_full(&t, weir_shape(N), weir_float(value), &o));
  return t;
}

static void all_are(const weir_tensor *t, float value)
{
  float x[N];
  weir_ok(weir_tensor_read(x, sizeof x, WEIR_FLOAT32, t));
  for (int i = 0; i < N; i++)
    ck_assert_msg(x[i] == value, "element %d is %g, not %g", i, (double)x[i], (double)value);
}

/* ---- errors that come late ------------------------------------------------------------------- */

/* A tensor whose memory the device has and nobody may touch: an operation on it faults when it is
 * done, not when it is asked for. */
static weir_tensor *untouchable(void)
{
  weir_tensor *t;
  weir_options o = as(WEIR_FLOAT32, cuda0);
  CUdeviceptr space;
  ok(cuInit(0));
  ok(cuMemAddressReserve(&space, 2 << 20, 0, 0, 0));
  weir_ok(weir_tensor_over(&t, (void *)(uintptr_t)space, weir_shape(N), NULL, &o, NULL, NULL));
  return t;
}

START_TEST(a_late_error_names_the_operations_that_may_have_caused_it)
{
  devices(1);
  if (!rig_simulated()) return; /* it would end the context of the other tests */
  WEIR_TENSOR good = full(1, cuda0);
  WEIR_TENSOR bad = untouchable();
  WEIR_TENSOR sum = NULL, product = NULL, root = NULL;
  weir_ok(weir_synchronize(cuda0));
  weir_ok(weir_add(&sum, good, good));
  weir_ok(weir_mul(&product, good, bad)); /* enqueued: nothing has happened yet */
  weir_status st = weir_sqrt(&root, good);
  weir_status waited = weir_synchronize(cuda0);
  ck_assert_int_eq(waited, WEIR_ECUDA);
  ck_assert_msg(error_message_has("(700)") &&
                    error_message_has("asynchronous error, first seen at ") &&
                    error_message_has("work enqueued since the last sync: add, mul"),
                "%d: %s", (int)st, weir_error_message());
}
END_TEST

/* The host waits: each says where the error was first seen, and of what it may be. */
static void names_what_was_before(int who)
{
  static const char *const where[] = {"item", "cpu", "tensor_read", "stream_synchronize"};
  char expected[120];
  weir_scalar s;
  float x[N];
  devices(1);
  if (!rig_simulated()) return;
  WEIR_TENSOR good = full(1, cuda0);
  WEIR_TENSOR bad = untouchable();
  WEIR_TENSOR one = NULL, product = NULL, moved = NULL;
  weir_ok(weir_slice(&one, good, 0, 0, 1, 1));
  weir_ok(weir_synchronize(cuda0));
  weir_ok(weir_mul(&product, good, bad));
  weir_status st = who == 0   ? weir_item(&s, one)
                   : who == 1 ? weir_cpu(&moved, good)
                   : who == 2 ? weir_tensor_read(x, sizeof x, WEIR_FLOAT32, good)
                              : weir_stream_synchronize(NULL);
  (void)snprintf(expected, sizeof expected,
                 "first seen at %s; work enqueued since the last sync: mul", where[who]);
  ck_assert_int_eq(st, WEIR_ECUDA);
  ck_assert_msg(error_message_has("(700)") && error_message_has(expected), "%s",
                weir_error_message());
}

START_TEST(a_value_or_a_copy_for_the_host_names_the_operations_before_it)
{
  names_what_was_before(_i);
}
END_TEST

START_TEST(reading_or_waiting_names_the_operations_before_it)
{
  names_what_was_before(2 + _i);
}
END_TEST

/* What is made of other functions is named itself. */
enum { MADE_OF_OTHERS = 15, PART = 64 };

static const char *call_made_of_others(int which, weir_tensor *bad, weir_tensor *square)
{
  weir_tensor *out = NULL, *four = NULL;
  const weir_tensor *both[] = {bad, bad};
  float x[PART];
  char *text = NULL;
  weir_pool2d_options window = {.kernel = {2, 2}};
  weir_ok(weir_view(&four, bad, weir_shape(1, 1, 8, 8)));
  weir_status st;
  switch (which) {
#define CALL(number, name, ...)                                                                    \
  case number:                                                                                     \
    st = weir_##name(__VA_ARGS__);                                                                 \
    ck_assert_int_eq(st, WEIR_ECUDA);                                                              \
    return #name
    CALL(0, max_pool2d, &out, four, &window);
    CALL(1, conv2d, &out, four, four, NULL, NULL);
    CALL(2, cat, &out, both, 2, 0);
    CALL(3, stack, &out, both, 2, 0);
    CALL(4, softmax, &out, bad, 0);
    CALL(5, linear, &out, square, square, NULL);
    CALL(6, mm, &out, square, square);
    CALL(7, fill_, bad, weir_int(1));
    CALL(8, clone, &out, bad);
    CALL(9, tensor_read, x, sizeof x, WEIR_FLOAT32, bad);
    CALL(10, tensor_to_string, &text, bad);
    CALL(11, uniform_, bad, 0, 1, NULL);
    CALL(12, clamp, &out, bad, &(weir_scalar){.dtype = WEIR_INT64}, NULL);
    CALL(13, cpu, &out, bad);
    CALL(14, to, &out, bad, &(weir_options){.dtype = WEIR_FLOAT64});
#undef CALL
  default:
    return "";
  }
}

/* In a process of its own, for the error stays: how its message begins. */
static void fail_in_child(int which, int to)
{
  char begins[60];
  devices(1);
  weir_set_launch_blocking(true);
  weir_tensor *all = untouchable(), *bad, *square;
  weir_ok(weir_slice(&bad, all, 0, 0, PART, 1));
  weir_ok(weir_view(&square, bad, weir_shape(8, 8)));
  const char *name = call_made_of_others(which, bad, square);
  int n = snprintf(begins, sizeof begins, "%s: ", name);
  bool so = strncmp(weir_error_message(), begins, (size_t)n) == 0;
  (void)!write(to, so ? "" : weir_error_message(), so ? 1 : strlen(weir_error_message()) + 1);
  _exit(0);
}

START_TEST(an_error_names_the_function_that_was_called)
{
  if (!rig_simulated()) return;
  for (int which = _i; which < MADE_OF_OTHERS; which += 2) {
    char said[600] = "nothing was said";
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (!child) fail_in_child(which, ends[1]);
    (void)close(ends[1]);
    (void)!read(ends[0], said, sizeof said - 1);
    (void)close(ends[0]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_msg(!said[0], "%d: %s", which, said);
  }
}
END_TEST

START_TEST(launch_blocking_makes_it_the_operations_own)
{
  devices(1);
  if (!rig_simulated()) return;
  if (_i) ck_assert_int_eq(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
  WEIR_TENSOR good = full(1, cuda0);
  WEIR_TENSOR bad = untouchable();
  WEIR_TENSOR sum = NULL, product = NULL;
  if (!_i) weir_set_launch_blocking(true);
  weir_ok(weir_add(&sum, good, good));
  ck_assert_int_eq(weir_mul(&product, good, bad), WEIR_ECUDA);
  ck_assert_ptr_null(product);
  ck_assert_msg(strncmp(weir_error_message(), "mul: ", 5) == 0 && error_message_has("(700)") &&
                    error_message_has("(launch blocking: the error is of this operation)"),
                "%s", weir_error_message());
}
END_TEST

/* ---- graphs ---------------------------------------------------------------------------------- */

START_TEST(operations_are_captured_and_replayed)
{
  devices(1);
  weir_graph *g;
  weir_stream *side;
  WEIR_TENSOR x = full(1, cuda0);
  WEIR_TENSOR y = NULL;
  weir_ok(weir_stream_new(&side, cuda0, 0));
  weir_ok(weir_graph_new(&g));
  weir_ok(weir_stream_wait_stream(side, NULL));
  WEIR_WITH_STREAM(side)
  {
    WEIR_TENSOR warm = NULL; /* what is made once is made ahead of the capture */
    weir_ok(weir_mul_scalar(&warm, x, weir_float(2)));
    weir_ok(weir_stream_synchronize(NULL));
    weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
    WEIR_TENSOR twice = NULL;
    weir_ok(weir_mul_scalar(&twice, x, weir_float(2)));
    weir_ok(weir_add_scalar(&y, twice, weir_float(1)));
    weir_ok(weir_graph_capture_end(g));
  }
  for (int i = 0; i < 5; i++) {
    weir_ok(weir_fill_(x, weir_float(i)));
    weir_ok(weir_graph_replay(g));
    all_are(y, 2.0F * (float)i + 1);
  }
  weir_graph_release(g);
  all_are(y, 9); /* the tensor outlives the graph */
}
END_TEST

START_TEST(a_capture_refuses_to_wait_and_goes_on)
{
  devices(1);
  weir_graph *g;
  weir_stream *side;
  weir_scalar s;
  float host[N];
  WEIR_TENSOR x = full(1, cuda0);
  WEIR_TENSOR y = NULL, one = NULL, moved = NULL;
  weir_ok(weir_stream_new(&side, cuda0, 0));
  weir_ok(weir_graph_new(&g));
  weir_ok(weir_synchronize(cuda0));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
    weir_ok(weir_neg(&y, x));
    weir_ok(weir_slice(&one, y, 0, 0, 1, 1));
    ck_assert_int_eq(weir_item(&s, one), WEIR_EINVAL);
    ck_assert_int_eq(weir_tensor_read(host, sizeof host, WEIR_FLOAT32, y), WEIR_EINVAL);
    ck_assert_int_eq(weir_cpu(&moved, y), WEIR_EINVAL);
    weir_ok(weir_graph_capture_end(g));
  }
  weir_ok(weir_graph_replay(g));
  all_are(y, -1);
  weir_graph_release(g);
}
END_TEST

/* ---- peers ----------------------------------------------------------------------------------- */

START_TEST(peer_access_makes_copies_direct_and_no_operation_legal)
{
  devices(2);
  bool can;
  weir_ok(weir_can_access_peer(&can, cuda0, cuda1));
  WEIR_TENSOR a = full(1, cuda0);
  WEIR_TENSOR b = full(2, cuda1);
  WEIR_TENSOR c = NULL;
  weir_ok(weir_copy_(a, b, false));
  if (rig_simulated()) ck_assert_uint_eq(rig_calls("cuCtxEnablePeerAccess"), 2);
  all_are(a, 2);
  refused(WEIR_EINVAL,
          "Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
          "and cuda:1!",
          weir_add(&c, a, b));
  ck_assert_ptr_null(c);
}
END_TEST

int main(void)
{
  static const TTest *tests[9];
  int n = 0;
  tests[n++] = a_late_error_names_the_operations_that_may_have_caused_it;
  tests[n++] = a_value_or_a_copy_for_the_host_names_the_operations_before_it;
  tests[n++] = reading_or_waiting_names_the_operations_before_it;
  tests[n++] = an_error_names_the_function_that_was_called;
  tests[n++] = launch_blocking_makes_it_the_operations_own;
  tests[n++] = operations_are_captured_and_replayed;
  tests[n++] = a_capture_refuses_to_wait_and_goes_on;
  tests[n] = peer_access_makes_copies_direct_and_no_operation_legal;
  return rig_run("tensor/order", tests, 2);
}
