/* test_module.c: modules: names, walks, moving, state (row 25). Those with a loop run for the cpu
 * (0) and cuda:0 of the software device (1). */
#include "core/tensor/announce.h"
#include "tests/nn/rig.h"

static const weir_module_class plain = {.name = "Net"};

static weir_module *net(void)
{
  weir_module *m;
  weir_ok(weir_module_new(&m, &plain, NULL));
  return m;
}

/* Net(weight (2, 3), steps (1) of int64, hidden of one number outside the state,
 * part: Net(weight (4), absent)). */
static weir_module *tree(void)
{
  weir_module *m = net(), *part = net();
  weir_ok(weir_module_add_parameter(m, "weight", rig_tensor(weir_shape(2, 3), CPU, 1)));
  weir_ok(weir_module_add_buffer(m, "steps", rig_count(7, weir_shape(1)), true));
  weir_ok(weir_module_add_buffer(m, "hidden", rig_tensor(weir_shape(1), CPU, 2), false));
  weir_ok(weir_module_add_parameter(part, "weight", rig_tensor(weir_shape(4), CPU, 3)));
  weir_ok(weir_module_add_parameter(part, "absent", NULL));
  weir_ok(weir_module_add(m, "part", part));
  return m;
}

typedef struct seen {
  char text[256]; /* the paths, a blank behind each */
  int stop_at, count;
} seen;

static weir_status append_seen_path(void *user, const char *path, weir_tensor *t)
{
  seen *s = user;
  (void)t;
  size_t length = strlen(s->text);
  (void)snprintf(s->text + length, sizeof s->text - length, "%s ", *path ? path : "(root)");
  return ++s->count == s->stop_at ? weir_fail(WEIR_ELIMIT, "enough") : WEIR_OK;
}

static weir_status see_module(void *user, const char *path, weir_module *m)
{
  (void)m;
  return append_seen_path(user, path, NULL);
}

/* ---- training -------------------------------------------------------------------------------- */

/* The sum of weight * weight goes back: the gradient is 2 weight. */
static void square_back(weir_tensor *weight)
{
  WEIR_TENSOR square = NULL;
  WEIR_TENSOR sum = NULL;
  WEIR_TENSOR twice = NULL;
  weir_ok(weir_mul(&square, weight, weight));
  weir_ok(weir_sum(&sum, square));
  weir_ok(weir_backward(sum, NULL, false));
  WEIR_NO_GRAD weir_ok(weir_mul_scalar(&twice, weight, weir_float(2)));
  rig_same(weir_tensor_grad(weight), twice, 1e-6);
}

START_TEST(parameters_require_gradients_and_buffers_do_not)
{
  WEIR_MODULE m = tree();
  weir_tensor **list;
  int count;
  ck_assert(weir_tensor_requires_grad(weir_module_parameter(m, "weight")));
  ck_assert(weir_tensor_is_leaf(weir_module_parameter(m, "weight")));
  ck_assert(!weir_tensor_requires_grad(weir_module_buffer(m, "hidden")));
  weir_ok(weir_module_add_parameter(m, "places", rig_count(0, weir_shape(2))));
  ck_assert(!weir_tensor_requires_grad(weir_module_parameter(m, "places")));
  weir_ok(weir_module_add(m, "again", weir_module_retain(weir_module_child(m, "part"))));
  weir_ok(weir_module_parameters(&list, &count, m));
  ck_assert_int_eq(count, 3);
  ck_assert_ptr_eq(list[0], weir_module_parameter(m, "weight"));
  ck_assert_ptr_eq(list[1], weir_module_parameter(m, "places"));
  ck_assert_ptr_eq(list[2], weir_module_parameter(m, "part.weight"));
  free(list);
  weir_tensor *made;
  weir_ok(weir_neg(&made, weir_module_parameter(m, "weight")));
  weir_not(WEIR_EINVAL, "Cannot assign non-leaf Tensor to parameter 'made'. Model parameters must",
           weir_module_add_parameter(m, "made", made));
}
END_TEST

START_TEST(gradients_are_taken_away_frozen_and_asked_for)
{
  WEIR_MODULE m = tree();
  weir_tensor *weight = weir_module_parameter(m, "weight");
  square_back(weight);
  square_back(weir_module_parameter(m, "part.weight"));
  weir_module_zero_grad(m);
  weir_module_zero_grad(NULL);
  ck_assert_ptr_null(weir_tensor_grad(weight));
  ck_assert_ptr_null(weir_tensor_grad(weir_module_parameter(m, "part.weight")));
  weir_ok(weir_module_requires_grad_(m, false));
  ck_assert(!weir_tensor_requires_grad(weight));
  ck_assert(!weir_tensor_requires_grad(weir_module_parameter(m, "part.weight")));
  weir_ok(weir_module_requires_grad_(m, true));
  square_back(weight);
  weir_ok(weir_module_requires_grad_(m, false));
  weir_ok(weir_module_add_parameter(m, "places", rig_count(0, weir_shape(2))));
  weir_not(WEIR_EINVAL, "only Tensors of floating point dtype can require gradients",
           weir_module_requires_grad_(m, true));
  ck_assert(!weir_tensor_requires_grad(weight)); /* as before: all or none */
}
END_TEST

START_TEST(a_module_that_was_moved_or_loaded_trains_on)
{
  weir_device there = device_of_case(_i);
  WEIR_MODULE m = tree();
  square_back(weir_module_parameter(m, "weight"));
  weir_ok(weir_module_requires_grad_(weir_module_child(m, "part"), false));
  weir_ok(weir_module_to(m, &(weir_options){.device = there, .dtype = WEIR_FLOAT64}));
  weir_tensor *weight = weir_module_parameter(m, "weight");
  ck_assert(weir_tensor_requires_grad(weight) && weir_tensor_is_leaf(weight));
  ck_assert(!weir_tensor_requires_grad(weir_module_parameter(m, "part.weight")));
  const weir_tensor *grad = weir_tensor_grad(weight); /* it came along */
  ck_assert(grad && rig_on(grad, there) && weir_tensor_dtype(grad) == WEIR_FLOAT64);
  WEIR_TENSOR twice = NULL;
  WEIR_NO_GRAD weir_ok(weir_mul_scalar(&twice, weight, weir_float(2)));
  rig_same(grad, twice, 1e-6);
  weir_module_zero_grad(m);
  square_back(weight);
  WEIR_MODULE other = tree();
  weir_tensors *state;
  weir_ok(weir_module_state(&state, other));
  weir_ok(weir_module_load_state(m, state, true));
  weir_tensors_release(state);
  ck_assert(weir_module_parameter(m, "weight") == weight && weir_tensor_is_leaf(weight));
  ck_assert(weir_tensor_requires_grad(weight));
  weir_module_zero_grad(m);
  square_back(weight);
}
END_TEST

START_TEST(asking_for_gradients_fails_as_a_whole_without_memory)
{
  WEIR_MODULE m = tree();
  weir_tensor **list = NULL;
  int count, nth = 0;
  for (bool failed = true; failed;) {
    weir_ok(weir_module_requires_grad_(m, false));
    rig_fail_host(++nth);
    weir_status st = weir_module_requires_grad_(m, true);
    failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert_int_eq(st, failed ? WEIR_ENOMEM : WEIR_OK);
    ck_assert(weir_tensor_requires_grad(weir_module_parameter(m, "weight")) == !failed);
    ck_assert(weir_tensor_requires_grad(weir_module_parameter(m, "part.weight")) == !failed);
  }
  ck_assert_int_gt(nth, 4);
  rig_fail_host(1);
  ck_assert_int_eq(weir_module_parameters(&list, &count, m), WEIR_ENOMEM);
  ck_assert(!list && !count);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(parameters_and_buffers_are_found_by_dotted_path)
{
  WEIR_MODULE m = tree();
  ck_assert_int_eq(weir_tensor_numel(weir_module_parameter(m, "weight")), 6);
  ck_assert_int_eq(weir_tensor_numel(weir_module_parameter(m, "part.weight")), 4);
  ck_assert_int_eq(weir_tensor_numel(weir_module_buffer(m, "steps")), 1);
  ck_assert_ptr_null(weir_module_parameter(m, "steps"));
  ck_assert_ptr_null(weir_module_buffer(m, "weight"));
  ck_assert_ptr_null(weir_module_parameter(m, "part.absent"));
  ck_assert_ptr_null(weir_module_parameter(m, "par.weight"));
  ck_assert_ptr_null(weir_module_parameter(m, "part.weight.more"));
  ck_assert_ptr_null(weir_module_parameter(m, ""));
  ck_assert_ptr_eq(weir_module_child(m, ""), m);
  ck_assert_str_eq(weir_module_name(weir_module_child(m, "part")), "Net");
  ck_assert_ptr_null(weir_module_child(m, "part.more"));
}
END_TEST

START_TEST(visits_come_in_the_order_of_named_parameters)
{
  WEIR_MODULE m = tree();
  seen all = {.stop_at = 0}, buffers = {.stop_at = 0}, modules = {.stop_at = 0},
       two = {.stop_at = 2};
  weir_ok(weir_module_visit(m, WEIR_PARAMETERS | WEIR_BUFFERS, append_seen_path, &all));
  ck_assert_str_eq(all.text, "weight steps hidden part.weight ");
  weir_ok(weir_module_visit(m, WEIR_BUFFERS, append_seen_path, &buffers));
  ck_assert_str_eq(buffers.text, "steps hidden ");
  weir_ok(weir_module_visit_modules(m, see_module, &modules));
  ck_assert_str_eq(modules.text, "(root) part ");
  weir_not(WEIR_ELIMIT, "enough", weir_module_visit(m, WEIR_PARAMETERS, append_seen_path, &two));
  ck_assert_int_eq(two.count, 2);
}
END_TEST

START_TEST(what_several_have_is_visited_once_and_counted_once)
{
  WEIR_MODULE m = tree();
  seen all = {.stop_at = 0}, modules = {.stop_at = 0};
  weir_module *part = weir_module_child(m, "part");
  weir_tensor *tied = weir_tensor_retain(weir_module_parameter(m, "weight"));
  int64_t count;
  weir_ok(weir_module_add(m, "again", weir_module_retain(part)));
  weir_ok(weir_module_add_parameter(m, "tied", tied));
  weir_ok(weir_module_visit(m, WEIR_PARAMETERS, append_seen_path, &all));
  ck_assert_str_eq(all.text, "weight part.weight ");
  weir_ok(weir_module_visit_modules(m, see_module, &modules));
  ck_assert_str_eq(modules.text, "(root) part ");
  weir_ok(weir_module_count_parameters(&count, m));
  ck_assert_int_eq(count, 10);
}
END_TEST

START_TEST(names_that_no_path_could_tell_are_refused)
{
  WEIR_MODULE m = tree();
  weir_tensor *t = rig_tensor(weir_shape(1), CPU, 1);
#define MORE weir_tensor_retain(t)
  weir_not(WEIR_EINVAL, "attribute 'weight' already exists",
           weir_module_add_parameter(m, "weight", MORE));
  weir_not(WEIR_EINVAL, "attribute 'part' already exists",
           weir_module_add_buffer(m, "part", MORE, true));
  weir_not(WEIR_EINVAL, "attribute 'steps' already exists", weir_module_add(m, "steps", net()));
  weir_not(WEIR_EINVAL, "parameter name can't contain \".\"",
           weir_module_add_parameter(m, "a.b", MORE));
  weir_not(WEIR_EINVAL, "buffer name can't be empty string \"\"",
           weir_module_add_buffer(m, "", MORE, true));
  weir_not(WEIR_EINVAL, "module name can't be empty string \"\"", weir_module_add(m, "", net()));
  weir_not(WEIR_EINVAL, "weir_module_add: name is NULL", weir_module_add(m, NULL, net()));
  weir_not(WEIR_EINVAL, "weir_module_add_buffer: m is NULL",
           weir_module_add_buffer(NULL, "x", MORE, true)); /* the tensor is stolen all the same */
  weir_not(WEIR_EINVAL, "weir_module_add: module 'none' is NULL", weir_module_add(m, "none", NULL));
#undef MORE
  weir_tensor_release(t);
  ck_assert_uint_eq(weir_module_children(m), 1);
}
END_TEST

START_TEST(a_module_is_never_within_itself)
{
  WEIR_MODULE m = tree();
  weir_module *part = weir_module_child(m, "part");
  weir_not(WEIR_EINVAL, "within itself", weir_module_add(m, "me", weir_module_retain(m)));
  weir_not(WEIR_EINVAL, "within itself", weir_module_add(part, "up", weir_module_retain(m)));
  const char *name;
  ck_assert_ptr_eq(weir_module_child_at(m, 0, &name), part);
  ck_assert_str_eq(name, "part");
  ck_assert_ptr_null(weir_module_child_at(m, 1, &name));
}
END_TEST

/* ---- modules of the program ------------------------------------------------------------------ */

typedef struct scale {
  int ended; /* times destroy was called */
  int64_t rows;
} scale;

static weir_status scale_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                 int count)
{
  const scale *s = weir_module_data(self);
  if (count != 2) return weir_fail(WEIR_EINVAL, "two tensors, not %d", count);
  return weir_narrow(out, in[1], 0, 0, s->rows);
}

static void scale_destroy(void *data)
{
  ((scale *)data)->ended++;
}

static void scale_describe(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "rows=%d", (int)((const scale *)weir_module_data(m))->rows);
}

static const weir_module_class scaling = {.name = "Scale",
                                          .forward = scale_forward,
                                          .destroy = scale_destroy,
                                          .describe = scale_describe};

START_TEST(a_module_of_the_program_calculates_with_its_data_and_ends_it_once)
{
  scale s = {.rows = 2};
  weir_module *m;
  weir_ok(weir_module_new(&m, &scaling, &s));
  weir_tensor *x = rig_tensor(weir_shape(3, 2), CPU, 1), *out, *in[2] = {x, x};
  weir_ok(weir_module_call_many(&out, m, in, 2));
  ck_assert_int_eq(weir_tensor_size(out, 0), 2);
  weir_tensor_release(out);
  weir_not(WEIR_EINVAL, "two tensors, not 1", weir_module_call(&out, m, x));
  ck_assert_ptr_null(out);
  weir_module *again = weir_module_retain(m);
  weir_module_release(m);
  ck_assert_int_eq(s.ended, 0);
  weir_module_drop(&again);
  ck_assert_ptr_null(again);
  ck_assert_int_eq(s.ended, 1);
  weir_module_drop(&again);
  weir_tensor_release(x);
}
END_TEST

static weir_status path_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                int count)
{
  weir_module *below = weir_module_child_at(self, 0, NULL);
  module_path_text(weir_module_data(self));
  *out = below ? NULL : weir_tensor_retain(in[0]);
  return below ? weir_module_call_many(out, below, in, count) : WEIR_OK;
}

START_TEST(a_thread_is_in_the_modules_it_calls_and_tensors_have_their_paths_as_names)
{
  static const weir_module_class kind = {.name = "Net", .forward = path_forward};
  char outer[WEIR_TENSOR_TEXT] = "", inner[WEIR_TENSOR_TEXT] = "", after[WEIR_TENSOR_TEXT];
  weir_module *below;
  WEIR_MODULE m = NULL;
  WEIR_MODULE top = net();
  WEIR_TENSOR x = rig_tensor(weir_shape(1), CPU, 1);
  weir_tensor *y;
  weir_ok(weir_module_new(&m, &kind, outer));
  weir_ok(weir_module_new(&below, &kind, inner));
  weir_ok(weir_module_add_parameter(below, "weight", rig_tensor(weir_shape(2), CPU, 2)));
  weir_ok(weir_module_add(m, "part", below));
  ck_assert_str_eq(weir_tensor_name(weir_module_parameter(m, "part.weight")), "part.weight");
  weir_ok(weir_module_call(&y, m, x));
  weir_tensor_release(y);
  ck_assert_str_eq(outer, "Net");
  ck_assert_str_eq(inner, "Net.part");
  module_path_text(after);
  ck_assert_str_eq(after, "");
  weir_ok(weir_module_add(top, "net", weir_module_retain(m)));
  weir_ok(weir_module_to(top, &(weir_options){.dtype = WEIR_FLOAT64}));
  ck_assert_str_eq(weir_tensor_name(weir_module_parameter(m, "part.weight")), "net.part.weight");
}
END_TEST

/* The list is filled before it is added, or after. */
START_TEST(a_list_that_is_never_called_is_in_the_paths_of_what_it_has)
{
  static const weir_module_class kind = {.name = "Net", .forward = path_forward};
  char inner[WEIR_TENSOR_TEXT] = "";
  weir_module *list, *block;
  WEIR_MODULE m = net();
  WEIR_TENSOR x = rig_tensor(weir_shape(1), CPU, 1);
  WEIR_TENSOR y = NULL;
  weir_ok(weir_module_list(&list, NULL, 0));
  weir_ok(weir_module_new(&block, &kind, inner));
  weir_ok(weir_module_add_parameter(block, "weight", rig_tensor(weir_shape(2), CPU, 2)));
  if (_i) weir_ok(weir_module_add(m, "h", list));
  weir_ok(weir_module_append(list, block));
  if (!_i) weir_ok(weir_module_add(m, "h", list));
  ck_assert_str_eq(weir_tensor_name(weir_module_parameter(m, "h.0.weight")), "h.0.weight");
  weir_ok(weir_module_call(&y, block, x));
  ck_assert_str_eq(inner, "h.0");
}
END_TEST

/* data: what the forward returns; a failed one leaves a pointer that is no tensor. */
static weir_status careless_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                    int count)
{
  (void)in, (void)count;
  weir_status st = *(const weir_status *)weir_module_data(self);
  if (st) *out = (weir_tensor *)(void *)self;
  return st ? weir_fail(st, "careless") : WEIR_OK;
}

START_TEST(a_forward_that_gives_nothing_is_an_error_that_names_its_module)
{
  static const weir_module_class kind = {.name = "Careless", .forward = careless_forward};
  weir_status says = WEIR_OK;
  weir_module *m;
  weir_tensor *out = NULL;
  WEIR_MODULE whole = NULL;
  WEIR_TENSOR x = rig_tensor(weir_shape(1), CPU, 1);
  weir_ok(weir_module_new(&m, &kind, &says));
  weir_ok(weir_module_sequential(&whole, &m, 1));
  weir_not(WEIR_EINVAL, "Module [Careless] returned success from its forward without an output (",
           weir_module_call(&out, whole, x));
  ck_assert_msg(strstr(weir_error_message(), "Sequential.0)") != NULL, "%s", weir_error_message());
  ck_assert_ptr_null(out);
  says = WEIR_EIO;
  weir_not(WEIR_EIO, "careless", weir_module_call(&out, whole, x));
  ck_assert_ptr_null(out);
}
END_TEST

START_TEST(a_module_without_forward_cannot_be_called_nor_one_without_name_made)
{
  WEIR_MODULE m = net();
  WEIR_TENSOR x = rig_tensor(weir_shape(1), CPU, 1);
  weir_tensor *out;
  weir_not(WEIR_ENOTSUP, "Module [Net] is missing the required \"forward\" function",
           weir_module_call(&out, m, x));
  static const weir_module_class nameless = {.destroy = scale_destroy};
  scale s = {.rows = 1};
  weir_module *none;
  weir_not(WEIR_EINVAL, "no name", weir_module_new(&none, &nameless, &s));
  ck_assert_int_eq(s.ended, 1);
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(training_is_set_for_all_below)
{
  WEIR_MODULE m = tree();
  weir_module *part = weir_module_child(m, "part");
  ck_assert(weir_module_is_training(m) && weir_module_is_training(part));
  weir_module_train(m, false);
  ck_assert(!weir_module_is_training(m) && !weir_module_is_training(part));
  weir_module_train(part, true);
  ck_assert(!weir_module_is_training(m) && weir_module_is_training(part));
}
END_TEST

START_TEST(a_module_prints_as_torch_prints_it)
{
  WEIR_MODULE m = tree();
  scale s = {.rows = 5};
  weir_module *child;
  char *text;
  weir_ok(weir_module_new(&child, &scaling, &s));
  weir_ok(weir_module_add(weir_module_child(m, "part"), "s", child));
  weir_ok(weir_module_to_string(&text, m));
  ck_assert_str_eq(text, "Net(\n  (part): Net(\n    (s): Scale(rows=5)\n  )\n)");
  free(text);
}
END_TEST

/* ---- a table of it --------------------------------------------------------------------------- */

static weir_module *small_net(void)
{
  weir_module *parts[3], *m;
  weir_ok(weir_module_conv2d(&parts[0], 1, 20, 5, NULL));
  weir_ok(weir_module_flatten(&parts[1], 1, -1));
  weir_ok(weir_module_linear(&parts[2], 20 * 24 * 24, 100, NULL));
  weir_ok(weir_module_sequential(&m, parts, 3));
  return m;
}

START_TEST(a_summary_has_layers_shapes_and_parameters)
{
  WEIR_MODULE m = small_net();
  WEIR_TENSOR in = rig_tensor(weir_shape(8, 1, 28, 28), CPU, 1);
  char *text;
  weir_ok(weir_summary(&text, m, &(weir_tensor *){in}, 1));
  ck_assert_str_eq(text, "=========================================\n"
                         "Layer         Output shape     Parameters\n"
                         "=========================================\n"
                         "Sequential    [8, 100]                  -\n"
                         "  0: Conv2d   [8, 20, 24, 24]         520\n"
                         "  1: Flatten  [8, 11520]                -\n"
                         "  2: Linear   [8, 100]          1,152,100\n"
                         "=========================================\n"
                         "Parameters: 1,152,620 (4,610,480 bytes)\n"
                         "Outputs of layers: 740,480 bytes\n");
  free(text);
  ck_assert(weir_module_is_training(m));
}
END_TEST

START_TEST(a_summary_without_a_call_has_no_shapes)
{
  WEIR_MODULE m = small_net();
  char *text;
  weir_ok(weir_summary(&text, m, NULL, 0));
  ck_assert_str_eq(text, "========================\n"
                         "Layer         Parameters\n"
                         "========================\n"
                         "Sequential             -\n"
                         "  0: Conv2d          520\n"
                         "  1: Flatten           -\n"
                         "  2: Linear    1,152,100\n"
                         "========================\n"
                         "Parameters: 1,152,620 (4,610,480 bytes)\n");
  free(text);
  WEIR_TENSOR wrong = rig_tensor(weir_shape(8, 3, 28, 28), CPU, 1);
  weir_not(WEIR_EINVAL, "to have 1 channels", weir_summary(&text, m, &(weir_tensor *){wrong}, 1));
  ck_assert_ptr_null(text);
  ck_assert(weir_module_is_training(m));
}
END_TEST

/* ---- moving ---------------------------------------------------------------------------------- */

START_TEST(a_move_goes_to_all_below_and_casts_floating_point_alone)
{
  weir_device there = device_of_case(_i);
  WEIR_MODULE m = tree();
  WEIR_TENSOR before = weir_tensor_retain(weir_module_parameter(m, "part.weight"));
  weir_ok(weir_module_to(m, &(weir_options){.dtype = WEIR_FLOAT64, .device = there}));
  const weir_tensor *w = weir_module_parameter(m, "part.weight"),
                    *steps = weir_module_buffer(m, "steps");
  ck_assert_int_eq(weir_tensor_dtype(w), WEIR_FLOAT64);
  ck_assert(rig_on(w, there) && rig_on(steps, there));
  ck_assert(rig_on(weir_module_buffer(m, "hidden"), there));
  ck_assert_int_eq(weir_tensor_dtype(steps), WEIR_INT64);
  ck_assert(rig_number(steps, 0) == 7);
  rig_same(w, before, 0);
  ck_assert(rig_on(before, CPU)); /* who held it still has it */
  ck_assert_int_eq(weir_tensor_dtype(before), WEIR_FLOAT32);
}
END_TEST

START_TEST(a_move_that_changes_nothing_keeps_the_tensors)
{
  weir_device there = device_of_case(_i);
  WEIR_MODULE m = tree();
  weir_ok(weir_module_to(m, &(weir_options){.device = there}));
  const weir_tensor *w = weir_module_parameter(m, "weight");
  weir_ok(weir_module_to(m, &(weir_options){.device = there, .dtype = WEIR_FLOAT32}));
  weir_ok(weir_module_to(m, NULL));
  ck_assert_ptr_eq(weir_module_parameter(m, "weight"), w);
}
END_TEST

START_TEST(a_tensor_that_several_have_stays_common)
{
  weir_device there = device_of_case(_i);
  WEIR_MODULE m = tree();
  weir_tensor *w = weir_module_parameter(m, "weight");
  weir_ok(weir_module_add_parameter(weir_module_child(m, "part"), "tied", weir_tensor_retain(w)));
  weir_ok(weir_module_to(m, &(weir_options){.device = there, .dtype = WEIR_FLOAT64}));
  w = weir_module_parameter(m, "weight");
  ck_assert_ptr_eq(weir_module_parameter(m, "part.tied"), w);
  ck_assert(rig_on(w, there) && weir_tensor_dtype(w) == WEIR_FLOAT64);
}
END_TEST

START_TEST(cuda_and_cpu_move_to_the_device_meant)
{
  rig_devices(2);
  WEIR_MODULE m = tree();
  weir_ok(weir_module_cuda(m, (weir_device){0}));
  ck_assert(rig_on(weir_module_parameter(m, "part.weight"), CUDA(0)));
  weir_ok(weir_module_cuda(m, CUDA(1)));
  ck_assert(rig_on(weir_module_parameter(m, "part.weight"), CUDA(1)));
  WEIR_WITH_DEVICE(CUDA(0))
  weir_ok(weir_module_to(m, &(weir_options){.device = WEIR_CUDA}));
  ck_assert(rig_on(weir_module_buffer(m, "steps"), CUDA(0)));
  weir_ok(weir_module_cpu(m));
  ck_assert(rig_on(weir_module_buffer(m, "steps"), CPU));
  ck_assert(rig_number(weir_module_buffer(m, "steps"), 0) == 7);
}
END_TEST

START_TEST(a_module_is_not_moved_to_integers_nor_copied_nor_pinned)
{
  WEIR_MODULE m = tree();
  weir_not(WEIR_EINVAL,
           "nn.Module.to only accepts floating point or complex dtypes, but got desired "
           "dtype=weir.int64",
           weir_module_to(m, &(weir_options){.dtype = WEIR_INT64}));
  weir_not(WEIR_EINVAL, "in place", weir_module_to(m, &(weir_options){.copy = true}));
  weir_not(WEIR_EINVAL, "in place", weir_module_to(m, &(weir_options){.pin_memory = true}));
  weir_not(WEIR_EINVAL, "Invalid device, must be cuda device", weir_module_cuda(m, CPU));
}
END_TEST

START_TEST(without_cuda_a_move_there_says_so_and_changes_nothing)
{
  rig_devices(0);
  WEIR_MODULE m = tree();
  const weir_tensor *w = weir_module_parameter(m, "weight");
  ck_assert_int_ne(weir_module_cuda(m, CUDA(0)), WEIR_OK);
  ck_assert_int_ne(weir_module_to(m, &(weir_options){.device = CUDA(0)}), WEIR_OK);
  ck_assert_ptr_eq(weir_module_parameter(m, "weight"), w);
}
END_TEST

/* The last tensor finds no room on the device. */
START_TEST(a_move_that_fails_half_way_leaves_the_module_whole)
{
  rig_devices(1);
  WEIR_MODULE m = tree();
  weir_tensor *big = NULL;
  weir_ok(weir_empty(&big, weir_shape(25 << 20), NULL));
  weir_ok(weir_module_add_parameter(m, "zbig", big));
  const weir_tensor *w = weir_module_parameter(m, "weight");
  ck_assert_int_eq(setenv("WEIR_SIM_MEMORY", "64M", 1), 0);
  weir_not(WEIR_EOOM, "CUDA out of memory", weir_module_cuda(m, CUDA(0)));
  ck_assert_ptr_eq(weir_module_parameter(m, "weight"), w);
  ck_assert(rig_on(weir_module_parameter(m, "zbig"), CPU));
  ck_assert(rig_on(weir_module_buffer(m, "steps"), CPU));
}
END_TEST

/* The nth copy to the device fails, and then the device's memory. */
START_TEST(a_driver_that_fails_leaves_the_module_whole_and_a_later_move_succeeds)
{
  char list[64];
  rig_devices(1);
  WEIR_MODULE m = tree();
  const weir_tensor *w = weir_module_parameter(m, "weight");
  ck_assert(weir_cuda_is_available());
  for (int nth = 1; nth <= 5; nth++) {
    (void)snprintf(list, sizeof list, "cuMemcpyHtoDAsync_v2:%d=1", nth);
    rig_fail_driver(nth == 5 ? "cuMemCreate:*=2,cuMemAlloc_v2:*=2" : list);
    if (nth == 5) weir_ok(weir_memory_empty_cache(CUDA(0)));
    ck_assert_int_eq(weir_module_cuda(m, CUDA(0)), nth == 5 ? WEIR_EOOM : WEIR_ECUDA);
    rig_fail_driver(NULL);
    ck_assert_ptr_eq(weir_module_parameter(m, "weight"), w);
    ck_assert(rig_on(weir_module_parameter(m, "part.weight"), CPU));
    ck_assert(rig_on(weir_module_buffer(m, "hidden"), CPU));
  }
  weir_ok(weir_module_cuda(m, CUDA(0)));
  ck_assert(rig_number(weir_module_buffer(m, "steps"), 0) == 7);
}
END_TEST

/* ---- state ----------------------------------------------------------------------------------- */

START_TEST(a_state_has_the_tensors_themselves_by_path)
{
  WEIR_MODULE m = tree();
  weir_tensors *state;
  weir_ok(weir_module_state(&state, m));
  ck_assert_uint_eq(weir_tensors_count(state), 3);
  ck_assert_str_eq(weir_tensors_name(state, 0), "weight");
  ck_assert_str_eq(weir_tensors_name(state, 1), "steps");
  ck_assert_str_eq(weir_tensors_name(state, 2), "part.weight");
  ck_assert_ptr_eq(weir_tensors_at(state, 2), weir_module_parameter(m, "part.weight"));
  weir_tensors_release(state);
}
END_TEST

START_TEST(what_is_saved_is_loaded_into_the_devices_and_dtypes_that_are_there)
{
  weir_device there = device_of_case(_i);
  WEIR_MODULE m = tree();
  WEIR_MODULE other = tree();
  weir_ok(weir_module_to(m, &(weir_options){.device = there}));
  WEIR_NO_GRAD
  {
    weir_ok(weir_zero_(weir_module_parameter(other, "weight")));
    weir_ok(weir_zero_(weir_module_buffer(other, "steps")));
    weir_ok(weir_zero_(weir_module_parameter(other, "part.weight")));
  }
  weir_ok(weir_module_to(other, &(weir_options){.device = there, .dtype = WEIR_FLOAT64}));
  const weir_tensor *kept = weir_module_parameter(other, "weight");
  weir_ok(weir_module_save(m, rig_file("net.safetensors")));
  weir_ok(weir_module_load(other, rig_file("net.safetensors"), true));
  ck_assert_ptr_eq(weir_module_parameter(other, "weight"), kept);
  ck_assert(rig_on(kept, there) && weir_tensor_dtype(kept) == WEIR_FLOAT64);
  rig_same(kept, weir_module_parameter(m, "weight"), 0);
  rig_same(weir_module_parameter(other, "part.weight"), weir_module_parameter(m, "part.weight"), 0);
  ck_assert(rig_number(weir_module_buffer(other, "steps"), 0) == 7);
  rig_forget();
}
END_TEST

/* Another net with a weight of another shape, no steps, and something more. */
static weir_module *stranger(void)
{
  weir_module *m = net(), *part = net();
  weir_ok(weir_module_add_parameter(m, "weight", rig_tensor(weir_shape(2, 5), CPU, 4)));
  weir_ok(weir_module_add_parameter(m, "extra", rig_tensor(weir_shape(1), CPU, 5)));
  weir_ok(weir_module_add_parameter(part, "weight", rig_tensor(weir_shape(4), CPU, 6)));
  weir_ok(weir_module_add(m, "part", part));
  return m;
}

START_TEST(a_strict_load_says_what_is_missing_unexpected_and_of_another_size)
{
  WEIR_MODULE m = tree();
  WEIR_MODULE from = stranger();
  WEIR_TENSOR before = NULL;
  weir_ok(weir_clone(&before, weir_module_parameter(m, "part.weight")));
  weir_tensors *state;
  weir_ok(weir_module_state(&state, from));
  ck_assert_int_eq(weir_module_load_state(m, state, true), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "Error(s) in loading state_dict for Net:\n"
                   "\tMissing key(s) in state_dict: \"steps\". \n"
                   "\tUnexpected key(s) in state_dict: \"extra\". \n"
                   "\tsize mismatch for weight: copying a param with shape weir.Size([2, 5]) from "
                   "checkpoint, the shape in current model is weir.Size([2, 3]).");
  rig_same(weir_module_parameter(m, "part.weight"), before, 0);
  weir_tensors_release(state);
}
END_TEST

START_TEST(a_lenient_load_minds_sizes_only)
{
  WEIR_MODULE m = tree();
  WEIR_MODULE from = stranger();
  weir_tensors *state;
  weir_ok(weir_module_state(&state, from));
  ck_assert_int_eq(weir_module_load_state(m, state, false), WEIR_EINVAL);
  ck_assert_ptr_null(strstr(weir_error_message(), "Missing"));
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "size mismatch for weight"));
  WEIR_TENSOR right = rig_tensor(weir_shape(2, 3), CPU, 9);
  weir_ok(weir_tensors_put(state, "weight", right));
  weir_ok(weir_module_load_state(m, state, false));
  rig_same(weir_module_parameter(m, "weight"), right, 0);
  rig_same(weir_module_parameter(m, "part.weight"), weir_module_parameter(from, "part.weight"), 0);
  weir_tensors_release(state);
}
END_TEST

START_TEST(what_is_no_part_of_the_state_is_unexpected_in_it)
{
  WEIR_MODULE m = tree();
  weir_tensors *state;
  weir_ok(weir_module_state(&state, m));
  weir_ok(weir_tensors_put(state, "hidden", weir_module_buffer(m, "hidden")));
  weir_ok(weir_tensors_put(state, "part.absent", weir_module_buffer(m, "hidden")));
  weir_not(WEIR_EINVAL, "\tUnexpected key(s) in state_dict: \"hidden\", \"part.absent\". ",
           weir_module_load_state(m, state, true));
  weir_tensors_release(state);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_an_error)
{
  WEIR_MODULE m = tree();
  ck_assert_int_eq(weir_module_load(m, "/nowhere/net.safetensors", true), WEIR_ENOENT);
  ck_assert_int_ne(weir_module_save(m, "/nowhere/net.safetensors"), WEIR_OK);
}
END_TEST

/* ---- want of memory -------------------------------------------------------------------------- */

/* All that is done with a module; what was made is gone at the end. *whole: what two modules share
 * they still share, however far it came. (Check's own assertions ask for memory, too.) */
static weir_status all_of_it(bool *whole, weir_device there)
{
  static const weir_module_class kind = {.name = "Net"};
  weir_module *m = NULL, *part = NULL;
  weir_tensor *t = NULL, *u = NULL;
  weir_tensors *state = NULL;
  char *text = NULL;
  weir_status st = weir_module_new(&m, &kind, NULL);
  if (!st) st = weir_module_new(&part, &kind, NULL);
  if (!st) st = weir_zeros(&t, weir_shape(5), NULL);
  if (!st) st = weir_module_add_parameter(m, "weight", weir_tensor_retain(t));
  if (!st) st = weir_module_add_buffer(part, "tied", weir_tensor_retain(t), true);
  if (!st) st = weir_module_add(m, "part", weir_module_retain(part));
  if (!st) st = weir_module_to(m, &(weir_options){.dtype = WEIR_FLOAT64, .device = there});
  if (!st) st = weir_module_state(&state, m);
  if (!st) st = weir_ones(&u, weir_shape(5), NULL);
  if (!st) st = weir_tensors_put(state, "weight", u);
  if (!st) st = weir_module_load_state(m, state, true);
  if (!st) st = weir_module_to_string(&text, m);
  const weir_tensor *weight = m ? weir_module_parameter(m, "weight") : NULL,
                    *tied = m ? weir_module_buffer(m, "part.tied") : NULL;
  *whole = !tied || tied == weight;
  weir_module_release(m);
  weir_module_release(part);
  weir_tensor_release(t);
  weir_tensor_release(u);
  weir_tensors_release(state);
  free(text);
  return st;
}

START_TEST(every_request_of_host_memory_may_fail)
{
  weir_device there = device_of_case(_i);
  bool whole = false;
  weir_ok(all_of_it(&whole, there)); /* what is made once is made */
  int64_t nth = 0;
  for (bool failed = true; failed;) {
    rig_fail_host(++nth);
    weir_status st = all_of_it(&whole, there);
    failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert(!st || failed);
    ck_assert(whole);
  }
  ck_assert_int_gt(nth, 20);
  weir_ok(all_of_it(&whole, there));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("module");
  TCase *c = rig_case(suite);
  tcase_add_test(c, parameters_require_gradients_and_buffers_do_not);
  tcase_add_test(c, gradients_are_taken_away_frozen_and_asked_for);
  tcase_add_loop_test(c, a_module_that_was_moved_or_loaded_trains_on, 0, 2);
  tcase_add_test(c, asking_for_gradients_fails_as_a_whole_without_memory);
  tcase_add_test(c, parameters_and_buffers_are_found_by_dotted_path);
  tcase_add_test(c, visits_come_in_the_order_of_named_parameters);
  tcase_add_test(c, what_several_have_is_visited_once_and_counted_once);
  tcase_add_test(c, names_that_no_path_could_tell_are_refused);
  tcase_add_test(c, a_module_is_never_within_itself);
  tcase_add_test(c, a_module_of_the_program_calculates_with_its_data_and_ends_it_once);
  tcase_add_test(c, a_thread_is_in_the_modules_it_calls_and_tensors_have_their_paths_as_names);
  tcase_add_loop_test(c, a_list_that_is_never_called_is_in_the_paths_of_what_it_has, 0, 2);
  tcase_add_test(c, a_forward_that_gives_nothing_is_an_error_that_names_its_module);
  tcase_add_test(c, a_module_without_forward_cannot_be_called_nor_one_without_name_made);
  tcase_add_test(c, training_is_set_for_all_below);
  tcase_add_test(c, a_module_prints_as_torch_prints_it);
  tcase_add_test(c, a_summary_has_layers_shapes_and_parameters);
  tcase_add_test(c, a_summary_without_a_call_has_no_shapes);
  tcase_add_loop_test(c, a_move_goes_to_all_below_and_casts_floating_point_alone, 0, 2);
  tcase_add_loop_test(c, a_move_that_changes_nothing_keeps_the_tensors, 0, 2);
  tcase_add_loop_test(c, a_tensor_that_several_have_stays_common, 0, 2);
  tcase_add_test(c, cuda_and_cpu_move_to_the_device_meant);
  tcase_add_test(c, a_module_is_not_moved_to_integers_nor_copied_nor_pinned);
  tcase_add_test(c, without_cuda_a_move_there_says_so_and_changes_nothing);
  tcase_add_test(c, a_move_that_fails_half_way_leaves_the_module_whole);
  tcase_add_test(c, a_driver_that_fails_leaves_the_module_whole_and_a_later_move_succeeds);
  tcase_add_test(c, a_state_has_the_tensors_themselves_by_path);
  tcase_add_loop_test(c, what_is_saved_is_loaded_into_the_devices_and_dtypes_that_are_there, 0, 2);
  tcase_add_test(c, a_strict_load_says_what_is_missing_unexpected_and_of_another_size);
  tcase_add_test(c, a_lenient_load_minds_sizes_only);
  tcase_add_test(c, what_is_no_part_of_the_state_is_unexpected_in_it);
  tcase_add_test(c, a_file_that_is_not_there_is_an_error);
  tcase_add_loop_test(c, every_request_of_host_memory_may_fail, 0, 2);
  return rig_run(suite);
}
