/* test_devices.c: operations on eight devices: each alike, mixed ones refused, and many streams of
 * all of them at once.
 *
 * Programs are drawn from a seed: operations on integers (which wrap, and are equal on every
 * device) between variables that live in streams of all devices, copies from device to device, and
 * variables that are given up while work with them is pending. Each has a twin that is calculated
 * on the cpu. All streams are held until a program has been enqueued, so nothing of it can have
 * run, and then let go at once. */
#include <pthread.h>
#include "tests/tensor/rig.h"

enum { DEVICES = 8, STREAMS = 3, VARIABLES = 6, STEPS = 60 };

/* ---- each device alike ----------------------------------------------------------------------- */

START_TEST(every_device_calculates_whatever_is_current)
{
  weir_device d = device(_i + 1);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR m = NULL;
  WEIR_TENSOR s = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR r = NULL;
  devices(DEVICES);
  weir_ok(weir_set_device(device((_i + 3) % DEVICES + 1)));
  a = counting(weir_shape(2, 3), WEIR_FLOAT32, d);
  weir_ok(weir_add_scalar(&b, a, weir_int(1)));
  EXPECT(b, 1, 2, 3, 4, 5, 6);
  weir_ok(weir_t(&r, b));
  weir_ok(weir_mm(&m, a, r));
  EXPECT(m, 8, 17, 26, 62);
  weir_ok(weir_sum(&s, m));
  EXPECT(s, 113);
  weir_ok(weir_cat(&c, (const weir_tensor *[]){a, b}, 2, 0));
  EXPECT(c, 0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6);
  const weir_tensor *all[] = {a, b, m, s, c};
  for (int i = 0; i < 5; i++)
    is_on(all[i], d);
  weir_device now;
  weir_ok(weir_current_device(&now));
  ck_assert_int_eq(weir_device_index(now), (_i + 3) % DEVICES);
}
END_TEST

START_TEST(random_numbers_of_every_device_are_the_cpus)
{
  double here[100], there[100];
  devices(DEVICES);
  for (int k = 0; k < 2; k++) {
    WEIR_TENSOR t = NULL;
    weir_options options = on(k ? device(_i + 1) : cpu);
    weir_manual_seed(5);
    weir_ok(weir_randn(&t, weir_shape(100), &options));
    weir_ok(weir_tensor_read(k ? there : here, sizeof here, WEIR_FLOAT64, t));
  }
  ck_assert_mem_eq(here, there, sizeof here);
}
END_TEST

/* ---- mixed ones ------------------------------------------------------------------------------ */

typedef weir_status of_two(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);

static weir_status in_place(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  (void)out;
  return weir_mul_((weir_tensor *)a, b);
}

static weir_status cat_two_tensors(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_cat(out, (const weir_tensor *[]){a, b}, 2, 0);
}

static weir_status stack_two_tensors(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_stack(out, (const weir_tensor *[]){a, b}, 2, 0);
}

static weir_status choose(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_TENSOR truth = NULL;
  weir_status st = weir_gt_scalar(&truth, a, weir_int(0));
  return st ? st : weir_where(out, truth, a, b);
}

static weir_status bias(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_addmm(out, b, a, a, 1, 1);
}

static weir_status close(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_isclose(out, a, b, 0, 0, false);
}

static weir_status linear(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  return weir_linear(out, a, b, NULL);
}

static weir_status equal(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  bool same;
  (void)out;
  return weir_equal(&same, a, b);
}

static const struct mixed {
  const char *name;
  of_two *call;
  bool second_first; /* which device torch names first */
} mixed[] = {{"add", weir_add, false},
             {"maximum", weir_maximum, false},
             {"eq", weir_eq, false},
             {"mul_", in_place, false},
             {"where", choose, false},
             {"isclose", close, false},
             {"equal", equal, false},
             {"mm", weir_mm, false},
             {"matmul", weir_matmul, false},
             {"linear", linear, false},
             {"addmm", bias, true},
             {"cat", cat_two_tensors, false},
             {"stack", stack_two_tensors, false}};
enum { MIXED = sizeof mixed / sizeof *mixed };

static weir_tensor *everywhere[DEVICES];

static void refuse(const struct mixed *m, int i, int j)
{
  weir_tensor *out = NULL;
  char text[128];
  int first = m->second_first ? j : i, second = m->second_first ? i : j;
  (void)snprintf(text, sizeof text,
                 "Expected all tensors to be on the same device, but found at least two devices, "
                 "cuda:%d and cuda:%d!",
                 first, second);
  ck_assert_int_eq(m->call(&out, everywhere[i], everywhere[j]), WEIR_EINVAL);
  ck_assert_ptr_null(out);
  ck_assert_msg(strcmp(weir_error_message(), text) == 0, "%s of cuda:%d and cuda:%d: %s", m->name,
                i, j, weir_error_message());
}

START_TEST(operands_of_any_two_devices_are_refused)
{
  devices(DEVICES);
  for (int i = 0; i < DEVICES; i++)
    everywhere[i] = counting(weir_shape(2, 2), WEIR_FLOAT32, device(i + 1));
  for (int i = 0; i < DEVICES; i++)
    for (int j = 0; j < DEVICES; j++)
      for (int k = 0; i != j && k < MIXED; k++)
        refuse(&mixed[k], i, j);
  for (int i = 0; i < DEVICES; i++)
    EXPECT(everywhere[i], 0, 1, 2, 3);
}
END_TEST

START_TEST(a_convolution_says_which_type_or_device_does_not_fit)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR host = NULL;
  weir_tensor *none = NULL;
  devices(DEVICES);
  a = counting(weir_shape(1, 1, 3, 3), WEIR_FLOAT32, device(8));
  w = counting(weir_shape(1, 1, 2, 2), WEIR_FLOAT32, device(5));
  host = counting(weir_shape(1, 1, 2, 2), WEIR_FLOAT32, cpu);
  refused(WEIR_EINVAL,
          "Expected all tensors to be on the same device, but found at least two devices, cuda:7 "
          "and cuda:4!",
          weir_conv2d(&none, a, w, NULL, NULL));
  refused(
      WEIR_EINVAL,
      "Input type (weir.cuda.FloatTensor) and weight type (weir.FloatTensor) should be the same",
      weir_conv2d(&none, a, host, NULL, NULL));
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_number_of_the_cpu_joins_any_device_and_a_devices_joins_none)
{
  WEIR_TENSOR number = NULL;
  WEIR_TENSOR theirs = NULL;
  weir_tensor *none = NULL;
  devices(DEVICES);
  number = counting(weir_shape_of(0, NULL), WEIR_FLOAT32, cpu);
  theirs = counting(weir_shape_of(0, NULL), WEIR_FLOAT32, device(1));
  weir_ok(weir_add_scalar_(number, weir_float(2.5)));
  for (int i = 1; i < DEVICES; i++) {
    WEIR_TENSOR a = counting(weir_shape(3), WEIR_FLOAT32, device(i + 1));
    WEIR_TENSOR r = NULL;
    weir_ok(weir_mul(&r, number, a));
    EXPECT(r, 0, 2.5, 5);
    is_on(r, device(i + 1));
    ck_assert_int_eq(weir_mul(&none, a, theirs), WEIR_EINVAL);
    ck_assert_int_eq(weir_mul_(number, a), WEIR_EINVAL);
  }
}
END_TEST

/* ---- programs on many streams ---------------------------------------------------------------- */

typedef struct variable {
  weir_tensor *t, *twin; /* 5 x 7 int64; twin: on the cpu */
  int device, stream;    /* where its latest work is */
} variable;

typedef struct program {
  uint64_t random;
  int first, devices; /* the devices it uses */
  lane lanes[DEVICES][STREAMS];
  weir_stream *streams[DEVICES][STREAMS];
  variable v[DEVICES][VARIABLES];
} program;

static int program_random_below(program *p, int below)
{
  return (int)(rig_random(&p->random) % (uint64_t)below);
}

static void begin_program(program *p, bool hold)
{
  for (int d = 0; d < p->devices; d++) {
    weir_device at = device(p->first + d + 1);
    for (int i = 0; i < VARIABLES; i++) {
      variable *v = &p->v[d][i];
      v->device = d;
      v->stream = program_random_below(p, STREAMS);
      v->twin = counting(weir_shape(5, 7), WEIR_INT64, cpu);
      weir_ok(weir_add_scalar_(v->twin, weir_int(100 * d + i)));
      weir_ok(weir_cuda(&v->t, v->twin, at, false));
    }
    weir_ok(weir_synchronize(at));
    for (int s = 0; s < STREAMS; s++) {
      if (hold)
        p->streams[d][s] = hold_stream(&p->lanes[d][s], at);
      else
        weir_ok(weir_stream_create(&p->streams[d][s], at));
    }
  }
}

/* v's work is before what is given to stream `s` of its device, and its memory lasts. */
static void wait_for_variable(program *p, const variable *v, int s)
{
  weir_stream *stream = p->streams[v->device][s];
  if (v->stream != s) weir_ok(weir_stream_wait_stream(stream, p->streams[v->device][v->stream]));
  weir_ok(weir_tensor_record_stream(v->t, stream));
}

static weir_status combined(weir_tensor **out, const weir_tensor *a, const weir_tensor *b, int how)
{
  WEIR_TENSOR part = NULL;
  weir_status st;
  switch (how) {
  case 0:
    return weir_add(out, a, b);
  case 1:
    return weir_mul(out, a, b);
  case 2:
    return weir_sub_alpha(out, a, b, weir_int(3));
  case 3: /* columns of a, turned and broadcast */
    st = weir_slice(&part, a, 1, 2, 3, 1);
    return st ? st : weir_maximum(out, part, b);
  case 4:
    st = weir_sum_dim(&part, b, 0, true);
    return st ? st : weir_sub(out, a, part);
  default:
    st = weir_ge(&part, a, b);
    return st ? st : weir_where(out, part, a, b);
  }
}

/* v becomes (t, twin), which are new, in stream `s`. */
static void become(variable *v, int s, weir_tensor *t, weir_tensor *twin)
{
  weir_tensor_release(v->t);
  weir_tensor_release(v->twin);
  v->t = t;
  v->twin = twin;
  v->stream = s;
}

static void combine(program *p, int d)
{
  variable *to = &p->v[d][program_random_below(p, VARIABLES)],
           *a = &p->v[d][program_random_below(p, VARIABLES)],
           *b = &p->v[d][program_random_below(p, VARIABLES)];
  int s = program_random_below(p, STREAMS), how = program_random_below(p, 6);
  weir_tensor *t = NULL, *twin = NULL;
  wait_for_variable(p, a, s);
  wait_for_variable(p, b, s);
  WEIR_WITH_STREAM(p->streams[d][s]) weir_ok(combined(&t, a->t, b->t, how));
  weir_ok(combined(&twin, a->twin, b->twin, how));
  become(to, s, t, twin);
}

/* From one device to another, which may be the same. */
static void copy_between_devices(program *p, int from, int to)
{
  const variable *a = &p->v[from][program_random_below(p, VARIABLES)];
  variable *b = &p->v[to][program_random_below(p, VARIABLES)];
  int s = program_random_below(p, STREAMS), of = program_random_below(p, STREAMS);
  weir_options options = {.device = device(p->first + to + 1), .non_blocking = true, .copy = true};
  weir_tensor *t = NULL, *twin = NULL;
  if (from == to) of = s;
  wait_for_variable(p, a, of);
  WEIR_WITH_STREAM(p->streams[to][s])
  WEIR_WITH_STREAM(p->streams[from][of]) weir_ok(weir_to(&t, a->t, &options));
  weir_ok(weir_clone(&twin, a->twin));
  become(b, s, t, twin);
}

static void enqueue(program *p)
{
  for (int i = 0; i < STEPS * p->devices; i++) {
    int d = program_random_below(p, p->devices);
    if (program_random_below(p, 4))
      combine(p, d);
    else
      copy_between_devices(p, d, program_random_below(p, p->devices));
  }
}

static void expect(const variable *v, int seed)
{
  int64_t got[35], want[35];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_INT64, v->t));
  weir_ok(weir_tensor_read(want, sizeof want, WEIR_INT64, v->twin));
  ck_assert_msg(memcmp(got, want, sizeof got) == 0,
                "a variable of cuda:%d is not what the cpu says; seed %d", v->device, seed);
}

static void end_program(program *p, int seed)
{
  for (int d = 0; d < p->devices; d++)
    weir_ok(weir_synchronize(device(p->first + d + 1)));
  for (int d = 0; d < p->devices; d++)
    for (int i = 0; i < VARIABLES; i++) {
      expect(&p->v[d][i], seed);
      weir_tensor_release(p->v[d][i].t);
      weir_tensor_release(p->v[d][i].twin);
    }
}

static void nothing_is_held(void)
{
  for (int d = 0; d < DEVICES; d++)
    ck_assert_uint_eq(weir_memory_allocated(device(d + 1)), 0);
}

START_TEST(what_many_streams_of_all_devices_do_at_once_is_in_order)
{
  static program p;
  bool some = false;
  devices(DEVICES);
  p.random = (uint64_t)_i + 1;
  p.devices = DEVICES;
  begin_program(&p, true);
  enqueue(&p);
  for (int d = 0; d < DEVICES; d++)
    for (int s = 0; s < STREAMS; s++)
      some |= done(p.streams[d][s]);
  ck_assert(!some); /* all of it was enqueued, none of it ran */
  for (int d = 0; d < DEVICES; d++)
    for (int s = 0; s < STREAMS; s++)
      gate_open_all(&p.lanes[(d * 5 + _i) % DEVICES][s]);
  end_program(&p, _i + 1);
  nothing_is_held();
}
END_TEST

static void *run_program(void *arg)
{
  program *p = arg;
  begin_program(p, false);
  enqueue(p);
  return NULL;
}

START_TEST(threads_with_devices_of_their_own_do_not_meet)
{
  static program p[DEVICES];
  pthread_t thread[DEVICES];
  devices(DEVICES);
  for (int i = 0; i < DEVICES; i++) {
    p[i] = (program){.random = (uint64_t)(100 * _i + i + 1), .first = i, .devices = 1};
    ck_assert_int_eq(pthread_create(&thread[i], NULL, run_program, &p[i]), 0);
  }
  for (int i = 0; i < DEVICES; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  for (int i = 0; i < DEVICES; i++)
    end_program(&p[i], 100 * _i + i + 1);
  nothing_is_held();
}
END_TEST

/* Two threads a device, each with streams of its own. */
START_TEST(threads_share_all_devices)
{
  static program p[4];
  pthread_t thread[4];
  devices(DEVICES);
  for (int i = 0; i < 4; i++) {
    p[i] = (program){.random = (uint64_t)(10 * _i + i + 1), .first = i / 2 * 4, .devices = 4};
    ck_assert_int_eq(pthread_create(&thread[i], NULL, run_program, &p[i]), 0);
  }
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  for (int i = 0; i < 4; i++)
    end_program(&p[i], 10 * _i + i + 1);
  nothing_is_held();
}
END_TEST

int main(void)
{
  const TTest *const each[] = {every_device_calculates_whatever_is_current,
                               random_numbers_of_every_device_are_the_cpus,
                               what_many_streams_of_all_devices_do_at_once_is_in_order,
                               threads_with_devices_of_their_own_do_not_meet,
                               threads_share_all_devices,
                               NULL};
  const TTest *const once[] = {operands_of_any_two_devices_are_refused,
                               a_convolution_says_which_type_or_device_does_not_fit,
                               a_number_of_the_cpu_joins_any_device_and_a_devices_joins_none, NULL};
  int failed = rig_run("ops/devices, each", each, DEVICES);
  return rig_run("ops/devices", once, 1) || failed;
}
