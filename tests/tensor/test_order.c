/* test_order.c: errors of operations that come late, launch blocking, graphs of operations, and
 * what peer access does not make legal. */
#include "core/device/late.h"
#include "tests/tensor/rig.h"

enum { N = 1000 };

static bool says(const char *text)
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

/* ---- errors that come late --------------------------------------------------------------------
 */

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
  ck_assert_msg(says("(700)") && says("asynchronous error, first seen at ") &&
                    says("work enqueued since the last sync: add, mul"),
                "%d: %s", (int)st, weir_error_message());
}
END_TEST

/* The host waits: each says where the error was first seen, and of what it may be. */
static void names_what_was_before(int who)
{
  static const char *const where[] = {"item", "copy_", "copy_", "synchronize"};
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
  ck_assert_msg(says("(700)") && says(expected), "%s", weir_error_message());
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
  ck_assert_msg(strncmp(weir_error_message(), "mul: ", 5) == 0 && says("(700)") &&
                    says("(launch blocking: the error is of this operation)"),
                "%s", weir_error_message());
}
END_TEST

/* ---- graphs -----------------------------------------------------------------------------------
 */

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

/* ---- peers ------------------------------------------------------------------------------------
 */

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
  static const TTest *tests[8];
  int n = 0;
  tests[n++] = a_late_error_names_the_operations_that_may_have_caused_it;
  tests[n++] = a_value_or_a_copy_for_the_host_names_the_operations_before_it;
  tests[n++] = reading_or_waiting_names_the_operations_before_it;
  tests[n++] = launch_blocking_makes_it_the_operations_own;
  tests[n++] = operations_are_captured_and_replayed;
  tests[n++] = a_capture_refuses_to_wait_and_goes_on;
  tests[n] = peer_access_makes_copies_direct_and_no_operation_legal;
  return rig_run("tensor/order", tests, 2);
}
