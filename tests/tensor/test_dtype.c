/* test_dtype.c: dtypes and tensor types by name, promotion, and the process's defaults. */
#include "tests/tensor/rig.h"

static const weir_dtype all[] = {
#define EACH(id, value, text, bytes, type) WEIR_##id,
    WEIR_DTYPE_MAP(EACH)
#undef EACH
};

enum { ALL = sizeof all / sizeof *all };

START_TEST(each_dtype_has_a_name_a_size_and_types_that_are_read_again)
{
  char text[64];
  static const char *const before[] = {"", "weir.", "torch."};
  for (int i = 0; i < ALL; i++) {
    weir_dtype back;
    for (int p = 0; p < 3; p++) {
      (void)snprintf(text, sizeof text, "%s%s", before[p], weir_dtype_name(all[i]));
      weir_ok(weir_dtype_parse(&back, text));
      ck_assert_int_eq(back, all[i]);
    }
    for (int cuda = 0; cuda < 2; cuda++) {
      weir_device d;
      weir_device_type type = cuda ? WEIR_DEVICE_CUDA : WEIR_DEVICE_CPU;
      weir_ok(weir_type_parse(&back, &d, weir_type_name(all[i], type)));
      ck_assert_int_eq(back, all[i]);
      ck_assert_int_eq(d.type, type);
    }
    ck_assert_uint_eq(weir_dtype_size(all[i]), itemsize(all[i]));
  }
  ck_assert_str_eq(weir_type_name(WEIR_FLOAT32, WEIR_DEVICE_CUDA), "weir.cuda.FloatTensor");
  ck_assert_str_eq(weir_type_name(WEIR_BFLOAT16, WEIR_DEVICE_CPU), "weir.BFloat16Tensor");
  ck_assert_uint_eq(weir_dtype_size(WEIR_COMPLEX64), 8);
}
END_TEST

START_TEST(aliases_are_read)
{
  static const struct {
    const char *name;
    weir_dtype dtype;
  } rows[] = {{"float", WEIR_FLOAT32},     {"double", WEIR_FLOAT64},  {"torch.half", WEIR_FLOAT16},
              {"byte", WEIR_UINT8},        {"char", WEIR_INT8},       {"short", WEIR_INT16},
              {"int", WEIR_INT32},         {"weir.long", WEIR_INT64}, {"bool", WEIR_BOOL},
              {"bfloat16", WEIR_BFLOAT16}, {"cfloat", WEIR_COMPLEX64}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weir_dtype back;
    weir_ok(weir_dtype_parse(&back, rows[i].name));
    ck_assert_int_eq(back, rows[i].dtype);
  }
  weir_dtype dtype;
  weir_device d;
  weir_ok(weir_type_parse(&dtype, &d, "torch.cuda.HalfTensor"));
  ck_assert_int_eq(dtype, WEIR_FLOAT16);
  ck_assert_int_eq(d.type, WEIR_DEVICE_CUDA);
}
END_TEST

START_TEST(unknown_names_list_the_valid_ones)
{
  weir_dtype dtype;
  weir_device d;
  refused(WEIR_EINVAL,
          "invalid dtype: 'float33'; valid: uint8, int8, int16, int32, int64, float16, float32, "
          "float64, complex64, bool, bfloat16, float, double, half, byte, char, short, int, long, "
          "cfloat",
          weir_dtype_parse(&dtype, "float33"));
  refused(WEIR_EINVAL,
          "invalid type: 'weir.FooTensor'; valid: weir.ByteTensor weir.CharTensor "
          "weir.ShortTensor weir.IntTensor weir.LongTensor weir.HalfTensor weir.FloatTensor "
          "weir.DoubleTensor weir.ComplexFloatTensor weir.BoolTensor weir.BFloat16Tensor, and the "
          "same of weir.cuda",
          weir_type_parse(&dtype, &d, "weir.FooTensor"));
  static const char *const bad[] = {"",
                                    "weir.",
                                    "FloatTensor",
                                    "weir.cuda.",
                                    "weir.floattensor",
                                    "cuda.FloatTensor",
                                    "weir.cuda.cuda.FloatTensor"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_int_eq(weir_type_parse(&dtype, &d, bad[i]), WEIR_EINVAL);
  ck_assert_int_eq(weir_type_parse(&dtype, &d, NULL), WEIR_EINVAL);
  ck_assert_int_eq(weir_dtype_parse(&dtype, NULL), WEIR_EINVAL);
  ck_assert_int_eq(weir_dtype_parse(&dtype, "none"), WEIR_EINVAL);
  ck_assert_str_eq(weir_dtype_name((weir_dtype)77), "unknown dtype");
  ck_assert_str_eq(weir_dtype_name(WEIR_DTYPE_NONE), "none");
  ck_assert_uint_eq(weir_dtype_size((weir_dtype)77), 0);
  ck_assert_str_eq(weir_type_name((weir_dtype)77, WEIR_DEVICE_CPU), "unknown type");
}
END_TEST

START_TEST(kinds_are_told)
{
  for (int i = 0; i < ALL; i++) {
    const char *name = weir_dtype_name(all[i]);
    ck_assert_int_eq(weir_dtype_is_floating_point(all[i]), strstr(name, "float") != NULL);
    ck_assert_int_eq(weir_dtype_is_complex(all[i]), strstr(name, "complex") != NULL);
  }
}
END_TEST

/* torch.promote_types(), as its documentation prints it; u i b f c: kinds with their bits. */
START_TEST(promotion_is_torchs_table)
{
  static const char *const order[] = {"uint8",     "int8",    "int16",   "int32",
                                      "int64",     "float16", "float32", "float64",
                                      "complex64", "bool",    "bfloat16"};
  static const char *const table[11] = {
      "u1 i2 i2 i4 i8 f2 f4 f8 c8 u1 bf", "i2 i1 i2 i4 i8 f2 f4 f8 c8 i1 bf",
      "i2 i2 i2 i4 i8 f2 f4 f8 c8 i2 bf", "i4 i4 i4 i4 i8 f2 f4 f8 c8 i4 bf",
      "i8 i8 i8 i8 i8 f2 f4 f8 c8 i8 bf", "f2 f2 f2 f2 f2 f2 f4 f8 c8 f2 f4",
      "f4 f4 f4 f4 f4 f4 f4 f8 c8 f4 f4", "f8 f8 f8 f8 f8 f8 f8 f8 -- f8 f8",
      "c8 c8 c8 c8 c8 c8 c8 -- c8 c8 c8", "u1 i1 i2 i4 i8 f2 f4 f8 c8 b1 bf",
      "bf bf bf bf bf f4 f4 f8 c8 bf bf"};
  static const struct {
    char code[3];
    const char *name;
  } codes[] = {{"u1", "uint8"},     {"i1", "int8"},    {"i2", "int16"},   {"i4", "int32"},
               {"i8", "int64"},     {"f2", "float16"}, {"f4", "float32"}, {"f8", "float64"},
               {"c8", "complex64"}, {"b1", "bool"},    {"bf", "bfloat16"}};
  for (int i = 0; i < 11; i++)
    for (int k = 0; k < 11; k++) {
      weir_dtype a, b, c;
      const char *want = NULL;
      weir_ok(weir_dtype_parse(&a, order[i]));
      weir_ok(weir_dtype_parse(&b, order[k]));
      for (size_t j = 0; j < sizeof codes / sizeof *codes; j++)
        if (!strncmp(table[i] + 3L * k, codes[j].code, 2)) want = codes[j].name;
      if (want) {
        weir_ok(weir_promote_types(&c, a, b));
        ck_assert_msg(!strcmp(weir_dtype_name(c), want), "%s and %s give %s", order[i], order[k],
                      weir_dtype_name(c));
      } else {
        refused(WEIR_ENOTSUP, "complex64 and float64 promote to complex128, which is no dtype here",
                weir_promote_types(&c, a, b));
      }
    }
  weir_dtype c;
  refused(WEIR_EINVAL, "0 is not a dtype", weir_promote_types(&c, WEIR_BOOL, WEIR_DTYPE_NONE));
}
END_TEST

START_TEST(defaults_are_float32_and_the_cpu_until_they_are_set)
{
  WEIR_TENSOR t = NULL;
  ck_assert_int_eq(weir_get_default_dtype(), WEIR_FLOAT32);
  ck_assert_int_eq(weir_get_default_device().type, WEIR_DEVICE_CPU);
  weir_ok(weir_empty(&t, weir_shape(2), NULL));
  ck_assert_str_eq(weir_tensor_type(t), "weir.FloatTensor");
  weir_tensor_drop(&t);
  weir_ok(weir_set_default_dtype(WEIR_FLOAT64));
  weir_ok(weir_set_default_device(cuda_any));
  weir_ok(weir_empty(&t, weir_shape(2), NULL));
  ck_assert_str_eq(weir_tensor_type(t), "weir.cuda.DoubleTensor");
  is_on(t, cuda0);
  weir_tensor_drop(&t);
  weir_ok(weir_set_default_device((weir_device){0}));
  weir_ok(weir_set_default_dtype(WEIR_FLOAT32));
  weir_ok(weir_empty(&t, weir_shape(2), NULL));
  ck_assert_str_eq(weir_tensor_type(t), "weir.FloatTensor");
}
END_TEST

START_TEST(a_cuda_default_type_sends_factories_to_the_current_device)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  devices(2);
  weir_ok(weir_set_default_tensor_type("weir.cuda.HalfTensor"));
  weir_ok(weir_empty(&a, weir_shape(2), NULL));
  is_on(a, cuda0);
  WEIR_WITH_DEVICE(cuda1) weir_ok(weir_empty(&b, weir_shape(2), NULL));
  is_on(b, cuda1);
  ck_assert_int_eq(weir_tensor_dtype(b), WEIR_FLOAT16);
  weir_ok(weir_set_default_tensor_type("torch.FloatTensor"));
  ck_assert_int_eq(weir_get_default_device().type, WEIR_DEVICE_CPU);
}
END_TEST

START_TEST(only_floating_point_is_a_default)
{
  const char *text = "only floating-point types are supported as the default type";
  refused(WEIR_EINVAL, text, weir_set_default_dtype(WEIR_INT64));
  refused(WEIR_EINVAL, text, weir_set_default_dtype(WEIR_COMPLEX64));
  refused(WEIR_EINVAL, text, weir_set_default_dtype(WEIR_DTYPE_NONE));
  refused(WEIR_EINVAL, text, weir_set_default_tensor_type("weir.cuda.LongTensor"));
  ck_assert_int_eq(weir_set_default_tensor_type("weir.cuda.NoTensor"), WEIR_EINVAL);
  refused(WEIR_EINVAL, "CPU device index must be -1 or zero, got 1",
          weir_set_default_device((weir_device){WEIR_DEVICE_CPU, {2}}));
  refused(WEIR_EINVAL, "9 is no device type",
          weir_set_default_device((weir_device){.type = (weir_device_type)9}));
  ck_assert_int_eq(weir_get_default_dtype(), WEIR_FLOAT32);
  ck_assert_int_eq(weir_get_default_device().type, WEIR_DEVICE_CPU);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {each_dtype_has_a_name_a_size_and_types_that_are_read_again,
                                aliases_are_read,
                                unknown_names_list_the_valid_ones,
                                kinds_are_told,
                                promotion_is_torchs_table,
                                defaults_are_float32_and_the_cpu_until_they_are_set,
                                a_cuda_default_type_sends_factories_to_the_current_device,
                                only_floating_point_is_a_default,
                                NULL};
  return rig_run("tensor/dtype", tests, 1);
}
