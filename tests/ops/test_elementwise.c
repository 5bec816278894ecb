/* test_elementwise.c: elementwise operations: every form of every one, dtypes, shapes, devices. */
#include <math.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

typedef weir_status unary(weir_tensor **out, const weir_tensor *a);
typedef weir_status unary_in_place(weir_tensor *a);
typedef weir_status binary(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
typedef weir_status binary_number(weir_tensor **out, const weir_tensor *a, weir_scalar b);
typedef weir_status number_binary(weir_tensor **out, weir_scalar a, const weir_tensor *b);
typedef weir_status in_place(weir_tensor *a, const weir_tensor *b);
typedef weir_status in_place_number(weir_tensor *a, weir_scalar b);

static double reference_1(int op, double x)
{
  switch (op) {
  case WEIR_OP_NEG:
    return -x;
  case WEIR_OP_ABS:
    return fabs(x);
  case WEIR_OP_RELU:
    return x > 0 ? x : 0;
  case WEIR_OP_EXP:
    return exp(x);
  case WEIR_OP_LOG:
    return log(x);
  case WEIR_OP_SQRT:
    return sqrt(x);
  case WEIR_OP_RSQRT:
    return 1 / sqrt(x);
  case WEIR_OP_SIN:
    return sin(x);
  case WEIR_OP_COS:
    return cos(x);
  case WEIR_OP_TANH:
    return tanh(x);
  case WEIR_OP_SIGMOID:
    return 1 / (1 + exp(-x));
  case WEIR_OP_ISFINITE:
    return isfinite(x);
  default:
    return x == 0;
  }
}

static double reference_2(int op, double x, double y)
{
  switch (op) {
  case WEIR_OP_ADD:
    return x + y;
  case WEIR_OP_SUB:
    return x - y;
  case WEIR_OP_MUL:
    return x * y;
  case WEIR_OP_DIV:
    return x / y;
  case WEIR_OP_FLOOR_DIV:
    return floor(x / y);
  case WEIR_OP_POW:
    return pow(x, y);
  case WEIR_OP_MAXIMUM:
    return x > y ? x : y;
  case WEIR_OP_MINIMUM:
    return x < y ? x : y;
  case WEIR_OP_EQ:
    return x == y;
  case WEIR_OP_NE:
    return x != y;
  case WEIR_OP_LT:
    return x < y;
  case WEIR_OP_LE:
    return x <= y;
  case WEIR_OP_GT:
    return x > y;
  case WEIR_OP_GE:
    return x >= y;
  case WEIR_OP_LOGICAL_AND:
    return x != 0 && y != 0;
  default:
    return x != 0 || y != 0;
  }
}

/* All elements are `want` to the rounding of float32. */
static void near_to(const char *name, const weir_tensor *t, int count, const double *want)
{
  double got[16];
  weir_ok(weir_tensor_read(got, (size_t)count * sizeof *got, WEIR_FLOAT64, t));
  for (int i = 0; i < count; i++)
    ck_assert_msg(got[i] == want[i] || fabs(got[i] - want[i]) <= 4e-7 * fabs(want[i]),
                  "%s: element %d is %.9g, not %.9g", name, i, got[i], want[i]);
}

static weir_tensor *tensor_from_doubles(const double *values, int count, weir_dtype dtype,
                                        weir_device d)
{
  weir_tensor *t;
  weir_options o = as(dtype, d);
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, weir_shape(count), &o));
  return t;
}

static const double xs[] = {0.5, 1, 2, 3.25, 4}, ys[] = {2, 1, 0.5, 3.25, 3};
enum { COUNT = 5 };

START_TEST(functions_of_one_operand)
{
  static const struct {
    const char *name;
    unary *call;
    unary_in_place *in_place;
    int op;
  } all[] = {
#define ROW(name, op) {#name, weir_##name, weir_##name##_, WEIR_OP_##op},
      WEIR_UNARY_MAP(ROW)
#undef ROW
          {"isfinite", weir_isfinite, NULL, WEIR_OP_ISFINITE},
  };
  devices(2);
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    double want[COUNT];
    WEIR_TENSOR a = tensor_from_doubles(xs, COUNT, WEIR_FLOAT32, device(_i));
    WEIR_TENSOR b = NULL;
    for (int i = 0; i < COUNT; i++)
      want[i] = reference_1(all[k].op, xs[i]);
    weir_ok(all[k].call(&b, a));
    near_to(all[k].name, b, COUNT, want);
    is_on(b, device(_i));
    if (!all[k].in_place) continue;
    weir_ok(all[k].in_place(a));
    near_to(all[k].name, a, COUNT, want);
    ck_assert_int_eq(weir_tensor_dtype(a), WEIR_FLOAT32);
  }
}
END_TEST

START_TEST(all_forms_of_two_operands)
{
  static const struct {
    const char *name;
    binary *call;
    binary_number *number;
    number_binary *reversed;
    in_place *change;
    in_place_number *change_number;
    int op;
  } all[] = {
#define ROW(name, op)                                                                              \
  {#name,          weir_##name,           weir_##name##_scalar, weir_scalar_##name,                \
   weir_##name##_, weir_##name##_scalar_, WEIR_OP_##op},
      WEIR_BINARY_MAP(ROW)
#undef ROW
  };
  devices(2);
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    double both[COUNT], with[COUNT], from[COUNT];
    WEIR_TENSOR a = tensor_from_doubles(xs, COUNT, WEIR_FLOAT32, device(_i));
    WEIR_TENSOR b = tensor_from_doubles(ys, COUNT, WEIR_FLOAT32, device(_i));
    weir_tensor *r[3] = {NULL, NULL, NULL};
    WEIR_TENSOR c = NULL;
    for (int i = 0; i < COUNT; i++) {
      both[i] = reference_2(all[k].op, xs[i], ys[i]);
      with[i] = reference_2(all[k].op, xs[i], 2);
      from[i] = reference_2(all[k].op, 2, ys[i]);
    }
    weir_ok(all[k].call(&r[0], a, b));
    near_to(all[k].name, r[0], COUNT, both);
    weir_ok(all[k].number(&r[1], a, weir_float(2)));
    near_to(all[k].name, r[1], COUNT, with);
    weir_ok(all[k].reversed(&r[2], weir_int(2), b));
    near_to(all[k].name, r[2], COUNT, from);
    weir_ok(weir_clone(&c, a));
    weir_ok(all[k].change(c, b));
    near_to(all[k].name, c, COUNT, both);
    weir_ok(all[k].change_number(a, weir_int(2)));
    near_to(all[k].name, a, COUNT, with);
    bool truth = all[k].op >= WEIR_OP_EQ;
    ck_assert_int_eq(weir_tensor_dtype(r[0]), truth ? WEIR_BOOL : WEIR_FLOAT32);
    ck_assert_int_eq(weir_tensor_dtype(c), WEIR_FLOAT32);
    for (int i = 0; i < 3; i++)
      weir_tensor_drop(&r[i]);
  }
}
END_TEST

START_TEST(alpha_scales_the_second_operand)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR s = NULL;
  devices(2);
  a = counting(weir_shape(3), WEIR_INT64, device(_i));
  weir_ok(weir_add_alpha(&r, a, a, weir_int(2)));
  EXPECT(r, 0, 3, 6);
  weir_ok(weir_sub_alpha(&s, a, a, weir_int(3)));
  EXPECT(s, 0, -2, -4);
  weir_ok(weir_add_alpha_(r, a, weir_int(-3)));
  EXPECT(r, 0, 0, 0);
  weir_ok(weir_sub_alpha_(r, a, weir_int(2)));
  EXPECT(r, 0, -2, -4);
  weir_tensor *none = NULL;
  refused(WEIR_EINVAL,
          "For integral input tensors, argument alpha must not be a floating point number.",
          weir_add_alpha(&none, a, a, weir_float(1.5)));
  ck_assert_ptr_null(none);
}
END_TEST

/* On the cpu it is torch's error, and nothing has changed; a device does not wait to find out. */
START_TEST(integers_divided_by_zero_are_an_error_or_zero)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *r = NULL;
  devices(2);
  a = counting(weir_shape(4), WEIR_INT32, device(_i));
  b = counting(weir_shape(4), WEIR_INT64, device(_i));
  weir_ok(weir_add_scalar_(a, weir_int(-7)));
  if (_i) {
    weir_ok(weir_floor_divide(&r, a, b));
    EXPECT(r, 0, -6, -3, -2);
    weir_tensor_drop(&r);
    weir_ok(weir_floor_divide_scalar(&r, a, weir_int(0)));
    EXPECT(r, 0, 0, 0, 0);
    weir_ok(weir_floor_divide_(a, b));
    EXPECT(a, 0, -6, -3, -2);
  } else {
    refused(WEIR_EINVAL, "ZeroDivisionError", weir_floor_divide(&r, a, b));
    refused(WEIR_EINVAL, "ZeroDivisionError", weir_floor_divide_(a, b));
    refused(WEIR_EINVAL, "ZeroDivisionError", weir_floor_divide_scalar_(a, weir_int(0)));
    refused(WEIR_EINVAL, "ZeroDivisionError", weir_floor_divide_scalar(&r, a, weir_int(0)));
    EXPECT(a, -7, -6, -5, -4);
  }
  weir_tensor_drop(&r);
}
END_TEST

START_TEST(zero_negated_is_minus_zero)
{
  static const weir_dtype dtypes[] = {WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_FLOAT64};
  devices(2);
  for (int i = 0; i < 4; i++) {
    double got[3];
    WEIR_TENSOR a = counting(weir_shape(3), dtypes[i], device(_i));
    weir_ok(weir_neg_(a));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, a));
    ck_assert(signbit(got[0]) && got[0] == 0 && got[1] == -1);
  }
}
END_TEST

/* Each part to the rounding of float32; what is 0, infinite or NaN is that. */
static void part_is(float got, double want)
{
  ck_assert_msg(isnan(want)   ? isnan(got)
                : isinf(want) ? (double)got == want
                              : fabs((double)got - want) <= 4e-7 * fabs(want) + 2e-45,
                "%.9g is not %.9g", (double)got, want);
}

static void complex_is(const weir_tensor *t, double re, double im)
{
  float got[2];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_COMPLEX64, t));
  part_is(got[0], re);
  part_is(got[1], im);
}

/* Expected values: Python's cmath, of the numbers rounded to float32. */
START_TEST(functions_of_complex_numbers_lose_nothing_on_the_way)
{
  static const struct row {
    unary *function;
    double z[2], want[2];
  } rows[] = {
      {weir_sqrt, {3e38, 3e38}, {1.90297670773870e19, 7.88238761225471e18}},
      {weir_sqrt, {1e-42, 1e-42}, {1.09897363545696e-21, 4.55209784496738e-22}},
      {weir_rsqrt, {3e38, 3e38}, {4.48535910672048e-20, -1.85789657411729e-20}},
      {weir_log, {1, 1e-3}, {4.99999797497572e-7, 0.0009999997141642704}},
      {weir_log, {0.6, 0.8}, {2.38418576969934e-8, 0.9272952060806836}},
      {weir_log, {3e38, -3e38}, {88.9434194145544, -0.7853981633974483}},
      {weir_exp, {95, 1e-20}, {INFINITY, 1.81123902541030e21}},
      {weir_sin, {0, 95}, {0, INFINITY}},
      {weir_sin, {1e-30, 95}, {90561954431.633, INFINITY}},
      {weir_cos, {0, -150}, {INFINITY, 0}},
      {weir_tanh, {0, 1.5707963267948966}, {0, -22877332.42885646}},
      {weir_tanh, {30, 1}, {1, 1.59245454089827e-26}},
      {weir_tanh, {0.5, 3}, {0.46946999342588536, -0.11162105077158349}},
      {weir_sigmoid, {-95, 1}, {2.98305348516624e-42, 4.64583054085662e-42}},
  };
  weir_options d = as(WEIR_COMPLEX64, device(_i));
  devices(2);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    WEIR_TENSOR z = NULL;
    WEIR_TENSOR r = NULL;
    weir_ok(weir_full(&z, weir_shape_of(0, NULL), weir_complex(rows[i].z[0], rows[i].z[1]), &d));
    weir_ok(rows[i].function(&r, z));
    complex_is(r, rows[i].want[0], rows[i].want[1]);
  }
}
END_TEST

START_TEST(complex_quotients_and_powers_lose_nothing_on_the_way)
{
  static const struct row {
    binary *function;
    double x[2], y[2], want[2];
  } rows[] = {
      {weir_div, {3e38, 3e38}, {2, 2}, {1.5e38, 0}},
      {weir_div, {1e-42, 0}, {1e-42, 0}, {1, 0}},
      {weir_div, {1, 0.5}, {INFINITY, 0}, {0, 0}}, /* as in torch */
      {weir_div, {1, 0.5}, {3, -INFINITY}, {0, 0}},
      {weir_div, {1, 0}, {0, 0}, {INFINITY, NAN}},
      {weir_div, {-INFINITY, 1}, {-0.0, -0.0}, {-INFINITY, INFINITY}},
      {weir_pow, {0.25, 0.5}, {8, -20}, {-2693667.66465739, 39351070.46461319}},
  };
  weir_options d = as(WEIR_COMPLEX64, device(_i));
  devices(2);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR y = NULL;
    WEIR_TENSOR r = NULL;
    weir_ok(weir_full(&x, weir_shape_of(0, NULL), weir_complex(rows[i].x[0], rows[i].x[1]), &d));
    weir_ok(weir_full(&y, weir_shape_of(0, NULL), weir_complex(rows[i].y[0], rows[i].y[1]), &d));
    weir_ok(rows[i].function(&r, x, y));
    complex_is(r, rows[i].want[0], rows[i].want[1]);
  }
}
END_TEST

/* 0.1 is less than a tenth in float16 and more in float32. */
START_TEST(halves_are_divided_down_by_numbers_as_they_are)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR tenth = NULL;
  WEIR_TENSOR by_element = NULL;
  weir_options o = as(WEIR_FLOAT16, device(_i));
  devices(2);
  a = counting(weir_shape(4), WEIR_FLOAT16, device(_i));
  weir_ok(weir_floor_divide_scalar(&r, a, weir_float(0.1)));
  EXPECT(r, 0, 9, 19, 29);
  weir_ok(weir_full(&tenth, weir_shape(1), weir_float(0.1), &o));
  weir_ok(weir_floor_divide(&by_element, a, tenth));
  EXPECT(by_element, 0, 10, 20, 30);
}
END_TEST

/* The same on all devices, where torch promises nothing. */
START_TEST(what_no_integer_holds_becomes_the_most_negative)
{
  static const double from[] = {2.75, -2.75, 300, -1e10, 1e300, INFINITY, -INFINITY, NAN};
  static const double least = -0x1p63;
  WEIR_TENSOR f = NULL;
  WEIR_TENSOR l = NULL;
  WEIR_TENSOR u = NULL;
  WEIR_TENSOR b = NULL;
  devices(2);
  f = tensor_from_doubles(from, 8, WEIR_FLOAT64, device(_i));
  weir_ok(weir_to_dtype(&l, f, WEIR_INT64));
  EXPECT(l, 2, -2, 300, -1e10, least, least, least, least);
  weir_ok(weir_to_dtype(&u, f, WEIR_UINT8)); /* the lowest byte of that */
  EXPECT(u, 2, 254, 44, 0, 0, 0, 0, 0);
  weir_ok(weir_to_dtype(&b, f, WEIR_BOOL));
  EXPECT(b, 1, 1, 1, 1, 1, 1, 1, 1);
}
END_TEST

START_TEST(operands_broadcast_and_may_lie_in_any_order)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR row = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR s = NULL;
  devices(2);
  a = counting(weir_shape(3, 2), WEIR_FLOAT32, device(_i));
  row = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  weir_ok(weir_t(&turned, a));
  weir_ok(weir_add(&r, turned, row));
  shape_is(r, weir_shape(2, 3));
  strides_are(r, weir_shape(1, 2)); /* as its operand's, so that the loop is one run */
  EXPECT(r, 0, 3, 6, 1, 4, 7);
  weir_ok(weir_mul_(turned, row));
  EXPECT(a, 0, 0, 2, 3, 8, 10);
  weir_ok(weir_sub(&s, row, turned));
  EXPECT(s, 0, -1, -6, 0, -2, -8);
}
END_TEST

START_TEST(choices_bounds_and_closeness)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR k = NULL;
  WEIR_TENSOR i = NULL;
  bool yes;
  devices(2);
  a = counting(weir_shape(4), WEIR_FLOAT32, device(_i));
  weir_ok(weir_gt_scalar(&c, a, weir_float(1.5)));
  weir_ok(weir_neg(&b, a));
  weir_ok(weir_where(&w, c, a, b));
  EXPECT(w, 0, -1, 2, 3);
  weir_scalar low = weir_int(1), high = weir_float(2.5);
  weir_ok(weir_clamp(&k, a, &low, &high));
  EXPECT(k, 1, 1, 2, 2.5);
  weir_ok(weir_isclose(&i, a, b, 0, 2, false));
  EXPECT(i, 1, 1, 0, 0);
  weir_ok(weir_allclose(&yes, a, a, 1e-5, 1e-8, false));
  ck_assert(yes);
  weir_ok(weir_allclose(&yes, a, b, 1e-5, 1e-8, false));
  ck_assert(!yes);
  weir_ok(weir_equal(&yes, a, a));
  ck_assert(yes);
  weir_ok(weir_equal(&yes, a, c));
  ck_assert(!yes);
}
END_TEST

START_TEST(what_is_written_may_be_read_only_in_place)
{
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR head = NULL;
  WEIR_TENSOR tail = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR wide = NULL;
  devices(2);
  t = counting(weir_shape(5), WEIR_FLOAT32, device(_i));
  weir_ok(weir_slice(&head, t, 0, 0, 4, 1));
  weir_ok(weir_slice(&tail, t, 0, 1, 5, 1));
  refused(
      WEIR_EINVAL,
      "unsupported operation: some elements of the input tensor and the written-to tensor refer "
      "to a single memory location. Please clone() the tensor before performing the operation.",
      weir_add_(tail, head));
  weir_ok(weir_add_(t, t));
  EXPECT(t, 0, 2, 4, 6, 8);
  weir_ok(weir_slice(&one, t, 0, 1, 2, 1));
  weir_ok(weir_expand(&wide, one, weir_shape(3)));
  refused(
      WEIR_EINVAL,
      "unsupported operation: more than one element of the written-to tensor refers to a single "
      "memory location. Please clone() the tensor before performing the operation.",
      weir_add_scalar_(wide, weir_int(1)));
}
END_TEST

START_TEST(elements_that_share_memory_with_holes_are_copied_first)
{
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR even = NULL;
  WEIR_TENSOR third = NULL;
  devices(2);
  t = counting(weir_shape(7), WEIR_FLOAT32, device(_i));
  weir_ok(weir_slice(&even, t, 0, 0, 5, 2));  /* 0 2 4 */
  weir_ok(weir_slice(&third, t, 0, 0, 7, 3)); /* 0 3 6 */
  weir_ok(weir_add_(even, third));
  EXPECT(t, 0, 1, 5, 3, 10, 5, 6);
}
END_TEST

START_TEST(dtypes_are_promoted_by_category)
{
  WEIR_TENSOR l = NULL;
  WEIR_TENSOR zero = NULL;
  weir_tensor *r[4] = {NULL};
  weir_dtype d;
  devices(2);
  weir_options o = as(WEIR_FLOAT64, device(_i));
  l = counting(weir_shape(2), WEIR_INT32, device(_i));
  weir_ok(weir_full(&zero, weir_shape_of(0, NULL), weir_float(0.5), &o));
  weir_ok(weir_add(&r[0], l, l));
  ck_assert_int_eq(weir_tensor_dtype(r[0]), WEIR_INT32);
  weir_ok(weir_add(&r[1], l, zero)); /* of a higher kind */
  ck_assert_int_eq(weir_tensor_dtype(r[1]), WEIR_FLOAT64);
  EXPECT(r[1], 0.5, 1.5);
  weir_ok(weir_mul_scalar(&r[2], l, weir_float(1.5)));
  ck_assert_int_eq(weir_tensor_dtype(r[2]), WEIR_FLOAT32);
  weir_ok(weir_div(&r[3], l, l));
  ck_assert_int_eq(weir_tensor_dtype(r[3]), WEIR_FLOAT32);
  weir_ok(weir_result_type(&d, l, NULL, weir_int(3)));
  ck_assert_int_eq(d, WEIR_INT32);
  weir_ok(weir_result_type(&d, r[2], zero, weir_int(0))); /* of the same kind: it yields */
  ck_assert_int_eq(d, WEIR_FLOAT32);
  for (int i = 0; i < 4; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

/* https://docs.pytorch.org/docs/stable/tensor_attributes.html and torch.promote_types(). */
START_TEST(promotion_is_the_documented_table)
{
  enum { u1 = 1, i1, i2, i4, i8, f2, f4, f8, c8, b1, bf, no };
  static const uint8_t table[11][11] = {
      /* u1  i1  i2  i4  i8  f2  f4  f8  c8  b1  bf */
      {u1, i2, i2, i4, i8, f2, f4, f8, c8, u1, bf}, {i2, i1, i2, i4, i8, f2, f4, f8, c8, i1, bf},
      {i2, i2, i2, i4, i8, f2, f4, f8, c8, i2, bf}, {i4, i4, i4, i4, i8, f2, f4, f8, c8, i4, bf},
      {i8, i8, i8, i8, i8, f2, f4, f8, c8, i8, bf}, {f2, f2, f2, f2, f2, f2, f4, f8, c8, f2, f4},
      {f4, f4, f4, f4, f4, f4, f4, f8, c8, f4, f4}, {f8, f8, f8, f8, f8, f8, f8, f8, no, f8, f8},
      {c8, c8, c8, c8, c8, c8, c8, no, c8, c8, c8}, {u1, i1, i2, i4, i8, f2, f4, f8, c8, b1, bf},
      {bf, bf, bf, bf, bf, f4, f4, f8, c8, bf, bf}};
  for (int a = 0; a < 11; a++)
    for (int b = 0; b < 11; b++) {
      weir_dtype d = WEIR_DTYPE_NONE;
      weir_status st = weir_promote_types(&d, (weir_dtype)(a + 1), (weir_dtype)(b + 1));
      ck_assert_msg(table[a][b] == no ? st != WEIR_OK : !st && d == (weir_dtype)table[a][b],
                    "%s and %s gave %s", weir_dtype_name((weir_dtype)(a + 1)),
                    weir_dtype_name((weir_dtype)(b + 1)), weir_dtype_name(d));
    }
}
END_TEST

START_TEST(what_torch_refuses_is_refused_in_its_words)
{
  WEIR_TENSOR f3 = NULL;
  WEIR_TENSOR f4 = NULL;
  WEIR_TENSOR f23 = NULL;
  WEIR_TENSOR l = NULL;
  WEIR_TENSOR b = NULL;
  weir_tensor *none = NULL;
  devices(2);
  f3 = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  f4 = counting(weir_shape(4), WEIR_FLOAT32, device(_i));
  f23 = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  l = counting(weir_shape(3), WEIR_INT64, device(_i));
  b = counting(weir_shape(3), WEIR_BOOL, device(_i));
  refused(
      WEIR_EINVAL,
      "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
      weir_add(&none, f3, f4));
  refused(WEIR_EINVAL, "output with shape [3] doesn't match the broadcast shape [2, 3]",
          weir_add_(f3, f23));
  refused(WEIR_EINVAL, "result type Float can't be cast to the desired output type Long",
          weir_add_scalar_(l, weir_float(1.5)));
  refused(WEIR_EINVAL, "result type Float can't be cast to the desired output type Long",
          weir_div_(l, l));
  refused(WEIR_EINVAL, "Integers to negative integer powers are not allowed.",
          weir_pow_scalar(&none, l, weir_int(-1)));
  WEIR_TENSOR bytes = counting(weir_shape(3), WEIR_INT8, device(_i));
  WEIR_TENSOR halves = counting(weir_shape(3), WEIR_FLOAT16, device(_i));
  refused(WEIR_EINVAL, "value cannot be converted to type int8_t without overflow",
          weir_pow_scalar(&none, bytes, weir_int(128)));
  refused(WEIR_EINVAL, "value cannot be converted to type c10::Half without overflow",
          weir_pow_scalar_(halves, weir_float(70000)));
  refused(WEIR_ENOTSUP,
          "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
          "`logical_xor()` operator instead.",
          weir_sub(&none, b, b));
  refused(WEIR_ENOTSUP,
          "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
          "invert a mask, use the `~` or `logical_not()` operator instead.",
          weir_neg(&none, b));
  refused(WEIR_ENOTSUP, "Boolean inputs not supported for relu", weir_relu(&none, b));
  refused(WEIR_EINVAL,
          "where expected condition to be a boolean tensor, but got a tensor with dtype Float",
          weir_where(&none, f3, f3, f3));
  refused(WEIR_EINVAL, "weir.clamp: At least one of 'min' or 'max' must not be None",
          weir_clamp(&none, f3, NULL, NULL));
  weir_scalar yes = weir_bool(true), far = weir_int(INT64_C(1) << 31);
  refused(WEIR_EINVAL, "Clamp min value 2.14748e+09 is outside the representable range of Char",
          weir_clamp(&none, bytes, &far, NULL));
  refused(WEIR_ENOTSUP,
          _i ? "\"clamp_scalar_cuda\" not implemented for 'Bool'"
             : "\"clamp_scalar_cpu\" not implemented for 'Bool'",
          weir_clamp(&none, b, &yes, &yes));
  refused(WEIR_ENOTSUP,
          _i ? "\"clamp_scalar_cuda\" not implemented for 'Bool'"
             : "\"clamp_min_scalar_cpu\" not implemented for 'Bool'",
          weir_clamp(&none, b, &yes, NULL));
  refused(WEIR_EINVAL, "Float did not match Long", weir_isclose(&none, f3, l, 1e-5, 1e-8, false));
  refused(WEIR_EINVAL, "weir_add: b is NULL", weir_add(&none, f3, NULL));
  EXPECT(l, 0, 1, 2);
  ck_assert_ptr_null(none);
}
END_TEST

#ifndef CPU_ONLY
START_TEST(operations_across_devices_are_refused)
{
  WEIR_TENSOR here = NULL;
  WEIR_TENSOR there = NULL;
  WEIR_TENSOR host = NULL;
  weir_tensor *none = NULL;
  bool flag;
  devices(2);
  here = counting(weir_shape(2), WEIR_FLOAT32, cuda0);
  there = counting(weir_shape(2), WEIR_FLOAT32, cuda1);
  host = counting(weir_shape(2), WEIR_FLOAT32, cpu);
#define TWO(a, b)                                                                                  \
  "Expected all tensors to be on the same device, but found at least two devices, " a " and " b "!"
  refused(WEIR_EINVAL, TWO("cuda:0", "cuda:1"), weir_add(&none, here, there));
  refused(WEIR_EINVAL, TWO("cuda:1", "cuda:0"), weir_add(&none, there, here));
  refused(WEIR_EINVAL, TWO("cuda:0", "cpu"), weir_add(&none, host, here));
  refused(WEIR_EINVAL, TWO("cuda:0", "cpu"), weir_mul_(host, here));
  refused(WEIR_EINVAL, TWO("cuda:0", "cpu"), weir_dot(&none, here, host));
  refused(WEIR_EINVAL, TWO("cuda:0", "cuda:1"), weir_equal(&flag, here, there));
  const weir_tensor *both[] = {here, there};
  refused(WEIR_EINVAL, TWO("cuda:0", "cuda:1"), weir_cat(&none, both, 2, 0));
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_number_on_the_cpu_joins_cuda_operands_and_never_the_reverse)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR n = NULL;
  WEIR_TENSOR m = NULL;
  WEIR_TENSOR r = NULL;
  weir_tensor *none = NULL;
  weir_options d = as(WEIR_FLOAT64, cpu), o = on(cuda0);
  devices(2);
  a = counting(weir_shape(3), WEIR_FLOAT32, cuda0);
  weir_ok(weir_full(&n, weir_shape_of(0, NULL), weir_float(0.5), &d));
  weir_ok(weir_full(&m, weir_shape_of(0, NULL), weir_float(0.5), &o));
  weir_ok(weir_add(&r, n, a));
  EXPECT(r, 0.5, 1.5, 2.5);
  is_on(r, cuda0);
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_FLOAT32);
  weir_ok(weir_mul_(a, n));
  EXPECT(a, 0, 0.5, 1);
  WEIR_TENSOR host = counting(weir_shape(3), WEIR_FLOAT32, cpu);
  refused(WEIR_EINVAL, TWO("cuda:0", "cpu"), weir_add(&none, host, m));
  refused(WEIR_EINVAL, TWO("cuda:0", "cpu"), weir_add_(n, m));
}
END_TEST

START_TEST(a_result_is_where_its_operands_are_whatever_is_current)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR r = NULL;
  devices(2);
  a = counting(weir_shape(3), WEIR_FLOAT32, cuda0);
  weir_ok(weir_set_device(cuda1));
  weir_ok(weir_add(&r, a, a));
  is_on(r, cuda0);
  EXPECT(r, 0, 2, 4);
}
END_TEST
#endif

int main(void)
{
  const TTest *const tests[] = {functions_of_one_operand,
                                all_forms_of_two_operands,
                                alpha_scales_the_second_operand,
                                integers_divided_by_zero_are_an_error_or_zero,
                                zero_negated_is_minus_zero,
                                functions_of_complex_numbers_lose_nothing_on_the_way,
                                complex_quotients_and_powers_lose_nothing_on_the_way,
                                halves_are_divided_down_by_numbers_as_they_are,
                                what_no_integer_holds_becomes_the_most_negative,
                                operands_broadcast_and_may_lie_in_any_order,
                                choices_bounds_and_closeness,
                                what_is_written_may_be_read_only_in_place,
                                elements_that_share_memory_with_holes_are_copied_first,
                                dtypes_are_promoted_by_category,
                                promotion_is_the_documented_table,
                                what_torch_refuses_is_refused_in_its_words,
#ifndef CPU_ONLY
                                operations_across_devices_are_refused,
                                a_number_on_the_cpu_joins_cuda_operands_and_never_the_reverse,
                                a_result_is_where_its_operands_are_whatever_is_current,
#endif
                                NULL};
  return rig_run("ops/elementwise", tests, TRIED);
}
