/* test_hooks.c: hooks of modules: the order of their calls, what they may replace, gradients of one
 * input and of several, their ends; on the cpu (loop 0) and on cuda:0 of the software device
 * (1). */
#include "core/weir/grad.h"
#include "core/weir/layers.h"
#include "tests/nn/rig.h"

static char calls[128];  /* a letter for each call of a hook */
static int ended;        /* hooks that were ended */
static int refused_hook; /* the letter of the hook that fails */

typedef struct hook_note {
  char letter;
  double factor;    /* what is replaced, times this; 1: nothing is */
  weir_module *own; /* it takes itself away from that */
  uint64_t id;
  int with;  /* gradients of inputs that were there */
  int count; /* of inputs */
} hook_note;

static weir_device hooked_device(int i)
{
  calls[0] = 0;
  ended = refused_hook = 0;
  if (i) rig_devices(1);
  return i ? CUDA(0) : CPU;
}

static void end_note(void *user)
{
  ended++;
  free(user);
}

static weir_status scale_first(weir_module *m, weir_tensor **in, int count, weir_tensor **out,
                               void *user)
{
  hook_note *n = user;
  char letter[] = {n->letter, 0};
  weir_tensor *scaled = NULL, **at = n->letter == 'F' || n->letter == 'B' ? out : in;
  if (strcmp(weir_module_name(m), "Net") != 0) abort(); /* Check allocates, which may be refused */
  strcat(calls, letter);
  n->count = count;
  for (int i = 0; i < count; i++)
    n->with += in[i] != NULL;
  if (n->letter == refused_hook) {
    (void)weir_fail(WEIR_ECUDA, "hook %c fails", n->letter);
    return WEIR_ECUDA;
  }
  if (n->own) weir_module_remove_hook(n->own, n->id);
  if (n->factor == 1 || !*at) return WEIR_OK;
  weir_status st = weir_mul_scalar(&scaled, *at, weir_float(n->factor));
  if (!st) *at = scaled;
  return st;
}

static hook_note *add_hook(weir_module *m, char letter, double factor)
{
  hook_note *n = calloc(1, sizeof *n);
  weir_module_hook_kind kind = letter == 'p' || letter == 'q'   ? WEIR_HOOK_FORWARD_PRE
                               : letter == 'F' || letter == 'f' ? WEIR_HOOK_FORWARD
                               : letter == 'B'                  ? WEIR_HOOK_BACKWARD_PRE
                                                                : WEIR_HOOK_BACKWARD;
  *n = (hook_note){.letter = letter, .factor = factor};
  weir_ok(weir_module_register_hook(&n->id, m, kind, scale_first, n, end_note));
  return n;
}

/* in[0] in[1] in[0]; of one input its square. */
static weir_status net_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in, int count)
{
  WEIR_TENSOR product = NULL;
  (void)m;
  strcat(calls, ".");
  weir_status st = weir_mul(&product, in[0], in[count > 1]);
  if (st || count < 2) {
    *out = st ? NULL : weir_tensor_retain(product);
    return st;
  }
  return weir_mul(out, product, in[0]);
}

static weir_module *hooked_net(void)
{
  static const weir_module_class kind = {.name = "Net", .forward = net_forward};
  weir_module *m;
  weir_ok(weir_module_new(&m, &kind, NULL));
  return m;
}

/* One number v that requires a gradient. */
static weir_tensor *leaf(double v, weir_device d)
{
  weir_tensor *t;
  weir_options o = {.dtype = WEIR_FLOAT64, .device = d};
  weir_ok(weir_full(&t, weir_shape(1, 1), weir_float(v), &o));
  weir_ok(weir_requires_grad_(t, true));
  return t;
}

static void go_back(const weir_tensor *y)
{
  WEIR_TENSOR sum = NULL;
  weir_ok(weir_sum(&sum, y));
  weir_ok(weir_backward(sum, NULL, false));
}

START_TEST(hooks_are_called_in_torchs_order_and_replace_what_they_see)
{
  weir_device d = hooked_device(_i);
  WEIR_MODULE m = hooked_net();
  WEIR_TENSOR x = leaf(3, d);
  WEIR_TENSOR y = NULL;
  (void)add_hook(m, 'b', 7);  /* gradient of the input, times 7 */
  (void)add_hook(m, 'F', 5);  /* output, times 5 */
  (void)add_hook(m, 'p', 2);  /* input, times 2 */
  (void)add_hook(m, 'B', 3);  /* gradient of the output, times 3 */
  (void)add_hook(m, 'b', 11); /* and times 11 */
  hook_note *seen = add_hook(m, 'q', 1);
  weir_ok(weir_module_call(&y, m, x));
  ck_assert_double_eq(rig_number(y, 0), 6 * 6 * 5);
  ck_assert_str_eq(calls, "pq.F");
  go_back(y);
  ck_assert_str_eq(calls, "pq.FBbb");
  /* y = 5 (2x)^2: of the hooked input, 6: 5 * 12 * 3 * 7 * 11; times 2. */
  ck_assert_double_eq(rig_number(weir_tensor_grad(x), 0), 5 * 12 * 3 * 7 * 11 * 2);
  ck_assert_int_eq(seen->count, 1);
}
END_TEST

START_TEST(gradients_of_several_inputs_are_shown_together)
{
  weir_device d = hooked_device(_i);
  WEIR_MODULE m = hooked_net();
  WEIR_TENSOR a = leaf(3, d);
  WEIR_TENSOR b = leaf(5, d);
  WEIR_TENSOR y = NULL;
  hook_note *n = add_hook(m, 'b', 10); /* of the first input alone */
  weir_ok(weir_module_call_many(&y, m, (weir_tensor *[]){a, b}, 2));
  ck_assert_double_eq(rig_number(y, 0), 45);
  go_back(y);
  ck_assert_str_eq(calls, ".b");
  ck_assert_int_eq(n->with, 2);
  ck_assert_double_eq(rig_number(weir_tensor_grad(a), 0), 10 * 30);
  ck_assert_double_eq(rig_number(weir_tensor_grad(b), 0), 9);
  ck_assert_int_eq(weir_tensor_dim(weir_tensor_grad(b)), 2);
}
END_TEST

START_TEST(without_gradients_hooks_of_gradients_are_not_called)
{
  weir_device d = hooked_device(_i);
  WEIR_MODULE m = hooked_net();
  WEIR_TENSOR x = leaf(3, d);
  WEIR_TENSOR y = NULL;
  (void)add_hook(m, 'b', 2);
  (void)add_hook(m, 'B', 2);
  (void)add_hook(m, 'f', 1);
  WEIR_NO_GRAD weir_ok(weir_module_call(&y, m, x));
  ck_assert_str_eq(calls, ".f");
  ck_assert(!weir_tensor_requires_grad(y));
}
END_TEST

/* y = x weight, of which only the weight requires a gradient. */
static weir_status weight_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                  int count)
{
  (void)count;
  return weir_mul(out, in[0], weir_module_parameter(m, "weight"));
}

START_TEST(of_inputs_without_gradients_the_outputs_is_shown)
{
  static const weir_module_class kind = {.name = "Net", .forward = weight_forward};
  weir_device d = hooked_device(_i);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR x = leaf(3, d);
  weir_ok(weir_requires_grad_(x, false));
  weir_ok(weir_module_new(&m, &kind, NULL));
  weir_ok(weir_module_add_parameter(m, "weight", leaf(4, d)));
  hook_note *n = add_hook(m, 'b', 1);
  weir_ok(weir_module_call(&y, m, x));
  go_back(y);
  ck_assert_str_eq(calls, "b");
  ck_assert_int_eq(n->with, 0);
  ck_assert_int_eq(n->count, 1);
  ck_assert_double_eq(rig_number(weir_tensor_grad(weir_module_parameter(m, "weight")), 0), 3);
}
END_TEST

START_TEST(a_hook_is_ended_when_it_is_taken_away_or_with_its_module)
{
  weir_device d = hooked_device(_i);
  weir_module *m = hooked_net();
  WEIR_TENSOR x = leaf(3, d);
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR z = NULL;
  hook_note *once = add_hook(m, 'p', 1);
  uint64_t second = add_hook(m, 'q', 1)->id;
  (void)add_hook(m, 'b', 1);
  once->own = m;
  weir_ok(weir_module_call(&y, m, x));
  ck_assert_str_eq(calls, "pq.");
  weir_module_remove_hook(m, second);
  ck_assert_int_eq(ended, 2);
  weir_module_remove_hook(m, second);
  ck_assert_int_eq(ended, 2);
  weir_tensor_drop(&y);
  weir_ok(weir_module_call(&z, m, x));
  ck_assert_str_eq(calls, "pq..");
  weir_module_release(m); /* which the graph of z still has */
  ck_assert_int_eq(ended, 2);
  go_back(z);
  ck_assert_str_eq(calls, "pq..b");
  weir_tensor_drop(&z);
  ck_assert_int_eq(ended, 3);
}
END_TEST

START_TEST(what_a_hook_says_ends_the_call_or_the_backward)
{
  static const char letters[] = "pfBb";
  weir_device d = hooked_device(_i);
  WEIR_MODULE m = hooked_net();
  for (int i = 0; letters[i]; i++)
    (void)add_hook(m, letters[i], 1);
  for (int i = 0; letters[i]; i++) {
    WEIR_TENSOR x = leaf(3, d);
    WEIR_TENSOR sum = NULL;
    weir_tensor *y = NULL;
    char words[] = "hook ? fails";
    words[5] = letters[i];
    refused_hook = (unsigned char)letters[i];
    weir_status st = weir_module_call(&y, m, x);
    ck_assert_int_eq(st, i < 2 ? WEIR_ECUDA : WEIR_OK);
    ck_assert((y == NULL) == (i < 2));
    if (i < 2) continue;
    weir_ok(weir_sum(&sum, y));
    weir_tensor_release(y);
    weir_not(WEIR_ECUDA, words, weir_backward(sum, NULL, false));
  }
}
END_TEST

START_TEST(every_request_of_memory_is_refused_once)
{
  WEIR_MODULE m = hooked_net();
  WEIR_TENSOR a = leaf(3, CPU);
  WEIR_TENSOR b = leaf(5, CPU);
  hooked_device(0);
  (void)add_hook(m, 'p', 1);
  (void)add_hook(m, 'B', 1);
  (void)add_hook(m, 'b', 2);
  int failures = 0;
  for (int64_t nth = 1;; nth++) {
    WEIR_TENSOR y = NULL;
    WEIR_TENSOR sum = NULL;
    calls[0] = 0;
    rig_fail_host(nth);
    weir_status st = weir_module_call_many(&y, m, (weir_tensor *[]){a, b}, 2);
    if (!st) st = weir_sum(&sum, y);
    if (!st) st = weir_backward(sum, NULL, false);
    bool failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert_msg(st == WEIR_OK || (st == WEIR_ENOMEM && failed), "%s", weir_error_message());
    failures += st != WEIR_OK;
    if (!failed) break;
  }
  ck_assert_int_gt(failures, 10);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("hooks");
  TCase *c = rig_case(suite);
  tcase_add_loop_test(c, hooks_are_called_in_torchs_order_and_replace_what_they_see, 0, 2);
  tcase_add_loop_test(c, gradients_of_several_inputs_are_shown_together, 0, 2);
  tcase_add_loop_test(c, without_gradients_hooks_of_gradients_are_not_called, 0, 2);
  tcase_add_loop_test(c, of_inputs_without_gradients_the_outputs_is_shown, 0, 2);
  tcase_add_loop_test(c, a_hook_is_ended_when_it_is_taken_away_or_with_its_module, 0, 2);
  tcase_add_loop_test(c, what_a_hook_says_ends_the_call_or_the_backward, 0, 2);
  tcase_add_test(c, every_request_of_memory_is_refused_once);
  return rig_run(suite);
}
