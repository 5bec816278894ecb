/* test_safetensors.c: tensors by name, and .safetensors files. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "tests/io/io.h"

/* A file of this header and `data` bytes behind it: byte i is i. */
static void put_st(const char *name, const char *header, size_t data)
{
  static char file[1 << 16];
  size_t n = strlen(header);
  for (int i = 0; i < 8; i++)
    file[i] = (char)(n >> 8 * i);
  memcpy(file + 8, header, n + 1);
  for (size_t i = 0; i < data; i++)
    file[8 + n + i] = (char)i;
  put_file(name, file, 8 + n + data);
}

static weir_tensor *numbers(weir_dtype dtype, weir_shape shape, int from)
{
  int32_t values[3 * 2 * WEIR_DTYPES];
  weir_tensor *t;
  for (int i = 0; i < 3 * 2 * WEIR_DTYPES; i++)
    values[i] = from + i;
  must(weir_tensor_from(&t, values, WEIR_INT32, shape, &(weir_options){.dtype = dtype}));
  return t;
}

static void put_new(weir_tensors *set, const char *name, weir_tensor *t)
{
  must(weir_tensors_put(set, name, t));
  weir_tensor_release(t);
}

/* ---- by name --------------------------------------------------------------------------------- */

START_TEST(names_find_their_tensors)
{
  weir_tensors *set;
  weir_tensor *kept[300];
  char name[32];
  must(weir_tensors_create(&set));
  for (int i = 0; i < 300; i++) {
    (void)snprintf(name, sizeof name, "layer.%d.weight", i);
    kept[i] = numbers(WEIR_INT32, weir_shape(1), i);
    put_new(set, name, kept[i]);
  }
  ck_assert_uint_eq(weir_tensors_count(set), 300);
  for (int i = 0; i < 300; i++) {
    (void)snprintf(name, sizeof name, "layer.%d.weight", i);
    ck_assert_ptr_eq(weir_tensors_get(set, name), kept[i]);
    ck_assert_ptr_eq(weir_tensors_at(set, (size_t)i), kept[i]);
    ck_assert_str_eq(weir_tensors_name(set, (size_t)i), name);
  }
  ck_assert_ptr_null(weir_tensors_get(set, "layer.300.weight"));
  ck_assert_ptr_null(weir_tensors_at(set, 300));
  ck_assert_ptr_null(weir_tensors_name(set, 300));
  weir_tensor *other = numbers(WEIR_INT32, weir_shape(2), 0);
  put_new(set, "layer.7.weight", other);
  ck_assert_uint_eq(weir_tensors_count(set), 300);
  ck_assert_ptr_eq(weir_tensors_get(set, "layer.7.weight"), other);
  weir_tensors_release(set);
  weir_tensors_release(NULL);
}
END_TEST

START_TEST(metadata_is_put_and_taken_away)
{
  weir_tensors *set;
  must(weir_tensors_create(&set));
  must(weir_tensors_set_metadata(set, "format", "pt"));
  must(weir_tensors_set_metadata(set, "epoch", "3"));
  must(weir_tensors_set_metadata(set, "format", "weir"));
  ck_assert_str_eq(weir_tensors_metadata(set, "format"), "weir");
  ck_assert_uint_eq(weir_tensors_metadata_count(set), 2);
  must(weir_tensors_set_metadata(set, "format", NULL));
  must(weir_tensors_set_metadata(set, "no", NULL));
  ck_assert_ptr_null(weir_tensors_metadata(set, "format"));
  ck_assert_str_eq(weir_tensors_metadata(set, "epoch"), "3");
  ck_assert_str_eq(weir_tensors_metadata_key(set, 0), "epoch");
  ck_assert_ptr_null(weir_tensors_metadata_key(set, 1));
  weir_tensors_release(set);
}
END_TEST

START_TEST(what_is_no_name_is_refused)
{
  weir_tensors *set;
  WEIR_TENSOR t = numbers(WEIR_INT32, weir_shape(1), 0);
  must(weir_tensors_create(&set));
  must_fail(weir_tensors_put(set, NULL, t), WEIR_EINVAL, "weir_tensors_put: name is NULL");
  must_fail(weir_tensors_put(set, "\xff", t), WEIR_EINVAL, "not UTF-8");
  must_fail(weir_tensors_put(set, "a", NULL), WEIR_EINVAL, "weir_tensors_put: t is NULL");
  must_fail(weir_tensors_set_metadata(set, NULL, "x"), WEIR_EINVAL,
            "weir_tensors_set_metadata: key is NULL");
  must_fail(weir_tensors_set_metadata(set, "k", "\xc0\x80"), WEIR_EINVAL, "not UTF-8");
  ck_assert_uint_eq(weir_tensors_count(set), 0);
  must(weir_tensors_put(set, "__metadata__", t));
  must_fail(weir_safetensors_save("t.safetensors", set), WEIR_EINVAL, "__metadata__");
  weir_tensors_release(set);
  must_fail(weir_safetensors_save("t.safetensors", NULL), WEIR_EINVAL,
            "weir_safetensors_save: set is NULL");
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

static void check_equal(const weir_tensors *a, const weir_tensors *b)
{
  ck_assert_uint_eq(weir_tensors_count(a), weir_tensors_count(b));
  for (size_t i = 0; i < weir_tensors_count(a); i++) {
    const weir_tensor *x = weir_tensors_at(a, i), *y = weir_tensors_get(b, weir_tensors_name(a, i));
    ck_assert_msg(y != NULL, "%s is not there", weir_tensors_name(a, i));
    ck_assert_int_eq(weir_tensor_dtype(x), weir_tensor_dtype(y));
    weir_shape s = weir_tensor_shape(x), t = weir_tensor_shape(y);
    ck_assert_int_eq(s.count, t.count);
    ck_assert_mem_eq(s.size, t.size, (size_t)s.count * sizeof *s.size);
    size_t bytes = (size_t)weir_tensor_numel(x) * weir_dtype_size(weir_tensor_dtype(x));
    if (bytes) ck_assert_mem_eq(weir_tensor_data(x), weir_tensor_data(y), bytes);
    ck_assert_str_eq(weir_tensor_name(y), weir_tensors_name(a, i));
  }
}

START_TEST(every_dtype_and_shape_comes_back)
{
  weir_tensors *set, *back;
  char name[64];
  must(weir_tensors_create(&set));
  for (int d = 1; d < WEIR_DTYPES; d++) {
    (void)snprintf(name, sizeof name, "of %s", weir_dtype_name((weir_dtype)d));
    put_new(set, name, numbers((weir_dtype)d, weir_shape(3, 2, d), 0));
  }
  put_new(set, "", numbers(WEIR_INT64, weir_shape_of(0, NULL), 42));
  put_new(set, "empty", numbers(WEIR_FLOAT32, weir_shape(2, 0), 0));
  put_new(set, "quo\"te \\ \n \xc3\xa9 \xf0\x9f\x98\x80", numbers(WEIR_FLOAT16, weir_shape(1), 5));
  must(weir_tensors_set_metadata(set, "a \"key\"", "text\tof \x01 it"));
  must(weir_safetensors_save("t.safetensors", set));
  must(weir_safetensors_load(&back, "t.safetensors", NULL));
  check_equal(set, back);
  ck_assert_str_eq(weir_tensors_metadata(back, "a \"key\""), "text\tof \x01 it");
  ck_assert_int_eq(files_there(), 1);
  weir_tensors_release(set);
  weir_tensors_release(back);
}
END_TEST

START_TEST(elements_are_aligned_in_the_file)
{
  weir_tensors *set;
  size_t n;
  must(weir_tensors_create(&set));
  put_new(set, "byte", numbers(WEIR_UINT8, weir_shape(3), 0));
  put_new(set, "double", numbers(WEIR_FLOAT64, weir_shape(1), 0));
  put_new(set, "half", numbers(WEIR_FLOAT16, weir_shape(1), 0));
  must(weir_safetensors_save("t.safetensors", set));
  char *file = get_file("t.safetensors", &n);
  ck_assert_uint_eq((unsigned char)file[0] % 8, 0);
  ck_assert_ptr_nonnull(strstr(
      file + 8, "\"double\": {\"dtype\": \"F64\", \"shape\": [1], \"data_offsets\": [0, 8]}"));
  ck_assert_ptr_nonnull(strstr(file + 8, "\"data_offsets\": [10, 13]"));
  free(file);
  weir_tensors_release(set);
}
END_TEST

START_TEST(nothing_at_all_is_a_file_too)
{
  weir_tensors *set, *back;
  must(weir_tensors_create(&set));
  must(weir_safetensors_save("t.safetensors", set));
  must(weir_safetensors_load(&back, "t.safetensors", NULL));
  ck_assert_uint_eq(weir_tensors_count(back), 0);
  weir_tensors_release(set);
  weir_tensors_release(back);
}
END_TEST

START_TEST(views_are_saved_as_they_look)
{
  weir_tensors *set, *back;
  int32_t seen[6], turned[6] = {0, 3, 1, 4, 2, 5};
  WEIR_TENSOR t = numbers(WEIR_INT32, weir_shape(2, 3), 0);
  weir_tensor *v;
  must(weir_t(&v, t));
  must(weir_tensors_create(&set));
  put_new(set, "v", v);
  must(weir_safetensors_save("t.safetensors", set));
  must(weir_safetensors_load(&back, "t.safetensors", &(weir_options){.dtype = WEIR_INT64}));
  ck_assert_int_eq(weir_tensor_dtype(weir_tensors_at(back, 0)), WEIR_INT64);
  must(weir_tensor_read(seen, sizeof seen, WEIR_INT32, weir_tensors_at(back, 0)));
  ck_assert(memcmp(seen, turned, sizeof seen) == 0);
  weir_tensors_release(set);
  weir_tensors_release(back);
}
END_TEST

START_TEST(what_the_format_lets_be_is_let_be)
{
  weir_tensors *set;
  put_st(
      "t.safetensors",
      "{\"__metadata__\":{},\"b\":{\"data_offsets\":[4,8],\"new\":[{\"x\":1.5e3},null],\"shape\":"
      "[4],\"dtype\":\"I8\"}, \"a\" : {\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
      "\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}   ",
      8);
  must(weir_safetensors_load(&set, "t.safetensors", NULL));
  ck_assert_uint_eq(weir_tensors_count(set), 3);
  ck_assert_str_eq(weir_tensors_name(set, 0), "a");
  ck_assert_str_eq(weir_tensors_name(set, 1), "none");
  ck_assert_int_eq(*(char *)weir_tensor_data(weir_tensors_get(set, "b")), 4);
  weir_tensors_release(set);
}
END_TEST

/* ---- dtypes that no tensor has --------------------------------------------------------------- */

/* Bytes 0 to 15: two of uint16, four floats of 8 bits, eight of 4 bits in four bytes, one float. */
static void put_foreign(void)
{
  put_st("t.safetensors",
         "{\"u\":{\"dtype\":\"U16\",\"shape\":[2],\"data_offsets\":[0,4]},"
         "\"q\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[4,8]},"
         "\"h\":{\"dtype\":\"F4\",\"shape\":[8],\"data_offsets\":[8,12]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}",
         16);
}

START_TEST(a_dtype_no_tensor_has_is_listed_while_the_others_are_read)
{
  WEIR_TENSORS set = NULL;
  WEIR_TENSORS mapped = NULL;
  WEIR_SAFETENSORS f = NULL;
  weir_tensor *none;
  put_foreign();
  must(weir_safetensors_load(&set, "t.safetensors", NULL));
  must(weir_safetensors_map_all(&mapped, "t.safetensors"));
  ck_assert_uint_eq(weir_tensors_count(set), 1);
  ck_assert_uint_eq(weir_tensors_count(mapped), 1);
  ck_assert_ptr_nonnull(weir_tensors_get(set, "a"));
  ck_assert_uint_eq(weir_tensors_skipped_count(set), 3);
  ck_assert_str_eq(weir_tensors_skipped_name(set, 1), "q");
  ck_assert_str_eq(weir_tensors_skipped_kind(set, 1), "F8_E4M3");
  ck_assert_ptr_null(weir_tensors_skipped_name(set, 3));
  ck_assert_ptr_null(weir_tensors_skipped_kind(set, 3));
  must(weir_safetensors_open(&f, "t.safetensors"));
  ck_assert_uint_eq(weir_safetensors_count(f), 4);
  ck_assert_int_eq(weir_safetensors_dtype(f, "h"), WEIR_DTYPE_NONE);
  ck_assert_str_eq(weir_safetensors_dtype_name(f, "h"), "F4");
  ck_assert_str_eq(weir_safetensors_dtype_name(f, "a"), "F32");
  ck_assert_ptr_null(weir_safetensors_dtype_name(f, "b"));
  ck_assert_int_eq(weir_safetensors_shape(f, "q").count, 2);
  must_fail(weir_safetensors_read(&none, f, "u", NULL), WEIR_ENOTSUP,
            "tensor 'u' is of dtype 'U16'");
  must_fail(weir_safetensors_map(&none, f, "q"), WEIR_ENOTSUP, "'F8_E4M3'");
  must_fail(weir_safetensors_read(&none, f, "h", &(weir_options){.dtype = WEIR_FLOAT32}),
            WEIR_ENOTSUP, "'F4'");
}
END_TEST

START_TEST(a_dtype_no_tensor_has_is_converted_or_had_as_bytes)
{
  WEIR_TENSORS floats = NULL;
  WEIR_TENSORS bytes = NULL;
  int32_t u[2];
  put_foreign();
  must(weir_safetensors_load(&floats, "t.safetensors", &(weir_options){.dtype = WEIR_FLOAT64}));
  ck_assert_uint_eq(weir_tensors_count(floats), 3);
  must(weir_tensor_read(u, sizeof u, WEIR_INT32, weir_tensors_get(floats, "u")));
  ck_assert(u[0] == 0x0100 && u[1] == 0x0302);
  ck_assert_int_eq(weir_tensor_dim(weir_tensors_get(floats, "q")), 2);
  must(weir_safetensors_load(&bytes, "t.safetensors", &(weir_options){.as_bytes = true}));
  ck_assert_uint_eq(weir_tensors_count(bytes), 4);
  weir_tensor *uint16 = weir_tensors_get(bytes, "u"), *half = weir_tensors_get(bytes, "h");
  ck_assert_int_eq(weir_tensor_dim(uint16), 2);
  ck_assert_int_eq(weir_tensor_size(uint16, 1), 2);
  ck_assert_int_eq(weir_tensor_size(half, 0), 4);
  ck_assert(memcmp(weir_tensor_data(half), "\10\11\12\13", 4) == 0);
  ck_assert_int_eq(weir_tensor_dtype(weir_tensors_get(bytes, "a")), WEIR_FLOAT32);
}
END_TEST

/* An e5m2 float is the upper byte of a half; an e4m3 one, one bit to the left of a half's exponent,
 * is a half of 1/256 of its value. */
START_TEST(floats_of_8_bits_have_the_values_of_halves_of_their_bits)
{
  WEIR_TENSORS set = NULL;
  WEIR_TENSOR half = NULL;
  uint16_t bits[512];
  float expected[512], read[256];
  put_st("t.safetensors",
         "{\"e4\":{\"dtype\":\"F8_E4M3\",\"shape\":[256],\"data_offsets\":[0,256]},"
         "\"e5\":{\"dtype\":\"F8_E5M2\",\"shape\":[256],\"data_offsets\":[256,512]}}",
         512);
  for (unsigned i = 0; i < 256; i++) {
    bits[i] = (uint16_t)((i & 0x80) << 8 | (i & 0x7f) << 7);
    bits[256 + i] = (uint16_t)(i << 8);
  }
  must(weir_tensor_from(&half, bits, WEIR_FLOAT16, weir_shape(512),
                        &(weir_options){.dtype = WEIR_FLOAT16}));
  must(weir_tensor_read(expected, sizeof expected, WEIR_FLOAT32, half));
  must(weir_safetensors_load(&set, "t.safetensors", &(weir_options){.dtype = WEIR_FLOAT32}));
  for (int kind = 0; kind < 2; kind++) {
    must(weir_tensor_read(read, sizeof read, WEIR_FLOAT32,
                          weir_tensors_get(set, kind ? "e5" : "e4")));
    for (int i = 0; i < 256; i++) {
      float is = read[i], should = kind ? expected[256 + i] : 256 * expected[i];
      bool nan = kind ? isnan(should) : (i & 0x7f) == 0x7f;
      ck_assert_msg(nan ? isnan(is) : is == should && signbit(is) == signbit(should),
                    "kind %d, 0x%02x: %g, not %g", kind, i, is, should);
    }
  }
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

#define ONE(dtype, shape, offsets)                                                                 \
  "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define U8(name, from, to)                                                                         \
  "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" from "," to "]}"

static const struct {
  const char *header, *words;
  weir_status status;
} bad[] = {
    {"", "does not begin with {", WEIR_ECORRUPT},
    {" {}", "does not begin with {", WEIR_ECORRUPT},
    {"[]", "does not begin with {", WEIR_ECORRUPT},
    {"{", "the text ends", WEIR_ECORRUPT},
    {"{}", "no tensor has the last 8 bytes", WEIR_ECORRUPT},
    {"{}x", "nothing more is expected", WEIR_ECORRUPT},
    {"{\"a\":1}", "an object is expected", WEIR_ECORRUPT},
    {"{\"a\":{}}", "lacks dtype", WEIR_ECORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8]}}", "lacks dtype", WEIR_ECORRUPT},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[8]}}", "a key twice", WEIR_ECORRUPT},
    {ONE("U8", "[8]", "[0]"), "less than two", WEIR_ECORRUPT},
    {ONE("U8", "[8]", "[0,8,8]"), "more than two", WEIR_ECORRUPT},
    {ONE("U8", "8", "[0,8]"), "a list is expected", WEIR_ECORRUPT},
    {ONE("U8", "[-8]", "[0,8]"), "not negative", WEIR_ECORRUPT},
    {ONE("U8", "[8.0]", "[0,8]"), "an integer", WEIR_ECORRUPT},
    {ONE("U8", "[\"8\"]", "[0,8]"), "a number", WEIR_ECORRUPT},
    {ONE("U8", "[8,]", "[0,8]"), "a number", WEIR_ECORRUPT},
    {ONE("U8", "[9]", "[0,8]"), "needs 9 bytes", WEIR_ECORRUPT},
    {ONE("U8", "[9]", "[0,9]"), "data_offsets [0, 9] of 8", WEIR_ECORRUPT},
    {ONE("F32", "[8]", "[0,8]"), "needs 32 bytes", WEIR_ECORRUPT},
    {ONE("U8", "[8]", "[8,0]"), "data_offsets [8, 0]", WEIR_ECORRUPT},
    {ONE("U8", "[8]", "[18446744073709551608,0]"), "data_offsets [18446744073709551608, 0]",
     WEIR_ECORRUPT},
    {ONE("U8", "[8]", "[1,9]"), "data_offsets [1, 9] of 8", WEIR_ECORRUPT},
    {ONE("U8", "[18446744073709551615]", "[0,8]"), "too large", WEIR_ECORRUPT},
    {ONE("U8", "[99999999999999999999]", "[0,8]"), "too large", WEIR_ECORRUPT},
    {ONE("U8", "[4294967296,4294967296]", "[0,0]"), "overflows", WEIR_ECORRUPT},
    {ONE("F64", "[2305843009213693952]", "[0,0]"), "overflows", WEIR_ECORRUPT},
    {ONE("U8", "[1,1,1,1,1,1,1,1,8]", "[0,8]"), "more than 8 dimensions", WEIR_ENOTSUP},
    {ONE("F8_E5M2", "[7]", "[0,8]"), "needs 7 bytes", WEIR_ECORRUPT},
    {ONE("U16", "[8]", "[0,8]"), "needs 16 bytes", WEIR_ECORRUPT},
    {ONE("F4", "[8]", "[0,4]"), "no tensor has the last 4", WEIR_ECORRUPT},
    {ONE("F4", "[8]", "[8,4]"), "data_offsets [8, 4]", WEIR_ECORRUPT},
    {ONE("F4", "[8]", "[0,9]"), "data_offsets [0, 9]", WEIR_ECORRUPT},
    {"{" U8("a", "0", "4") "}", "no tensor has the last 4", WEIR_ECORRUPT},
    {"{" U8("a", "4", "8") "}", "behind a hole", WEIR_ECORRUPT},
    {"{" U8("a", "0", "4") "," U8("b", "0", "4") "}", "overlaps", WEIR_ECORRUPT},
    {"{" U8("a", "0", "4") "," U8("b", "2", "6") "}", "overlaps", WEIR_ECORRUPT},
    {"{" U8("a", "0", "4") "," U8("a", "4", "8") "}", "'a' is there twice", WEIR_ECORRUPT},
    {"{" U8("a", "0", "4") "," U8("\\u0061", "4", "8") "}", "'a' is there twice", WEIR_ECORRUPT},
    {"{" U8("a", "0", "4") U8("b", "4", "8") "}", "a comma", WEIR_ECORRUPT},
    {"{" U8("a\\u0000b", "0", "4") "}", "a NUL", WEIR_ECORRUPT},
    {"{" U8("\xff", "0", "4") "}", "not UTF-8", WEIR_ECORRUPT},
    {"{\"__metadata__\":[]}", "an object is expected", WEIR_ECORRUPT},
    {"{\"__metadata__\":{\"a\":1}}", "a string is expected", WEIR_ECORRUPT},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", "there twice", WEIR_ECORRUPT},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", "__metadata__ is there twice", WEIR_ECORRUPT},
};

START_TEST(every_rule_of_the_format_is_kept)
{
  weir_tensors *set = (weir_tensors *)&set;
  put_st("t.safetensors", bad[_i].header, 8);
  must_fail(weir_safetensors_load(&set, "t.safetensors", NULL), bad[_i].status, bad[_i].words);
  ck_assert_ptr_null(set);
}
END_TEST

START_TEST(a_length_that_cannot_be_is_an_error)
{
  weir_tensors *set;
  static const char *const heads[] = {"\xff\xff\xff\xff\xff\xff\xff\xff{}",
                                      "\xf8\xff\xff\xff\xff\xff\xff\x7f{}", "\x03\0\0\0\0\0\0\0{}",
                                      "\x01\xe1\xf5\x05\0\0\0\0{}"};
  for (int i = 0; i < 4; i++) {
    put_file("t.safetensors", heads[i], 10);
    must_fail(weir_safetensors_load(&set, "t.safetensors", NULL), WEIR_ECORRUPT,
              "100000000 are the most");
  }
  put_file("t.safetensors", "1234567", 7);
  must_fail(weir_safetensors_load(&set, "t.safetensors", NULL), WEIR_ECORRUPT, "it has 7 bytes");
  must_fail(weir_safetensors_load(&set, "none", NULL), WEIR_ENOENT, "none");
}
END_TEST

START_TEST(a_header_beyond_the_cap_is_an_error)
{
  /* 100,000,001 bytes of header are there, as a hole in the file: only the cap is in the way */
  weir_tensors *set;
  FILE *f = fopen("t.safetensors", "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite("\x01\xe1\xf5\x05\0\0\0\0{}", 1, 10, f), 10);
  ck_assert_int_eq(fseek(f, 8 + 100000000, SEEK_SET), 0);
  ck_assert_int_ne(fputc(' ', f), EOF);
  ck_assert_int_eq(fclose(f), 0);
  must_fail(weir_safetensors_load(&set, "t.safetensors", NULL), WEIR_ECORRUPT,
            "a header of 100000001");
}
END_TEST

START_TEST(deep_nesting_is_an_error)
{
  static char header[60000];
  weir_tensors *set;
  int n = snprintf(header, sizeof header, "{\"a\":{\"x\":");
  memset(header + n, '[', 50000);
  put_st("t.safetensors", header, 0);
  must_fail(weir_safetensors_load(&set, "t.safetensors", NULL), WEIR_ECORRUPT, "nested too deeply");
}
END_TEST

static char *small_file(size_t *bytes)
{
  weir_tensors *set;
  must(weir_tensors_create(&set));
  put_new(set, "w", numbers(WEIR_FLOAT32, weir_shape(2, 2), 0));
  put_new(set, "b", numbers(WEIR_INT8, weir_shape(3), 0));
  must(weir_tensors_set_metadata(set, "k", "v"));
  must(weir_safetensors_save("t.safetensors", set));
  weir_tensors_release(set);
  return get_file("t.safetensors", bytes);
}

START_TEST(every_cut_of_a_file_is_an_error)
{
  weir_tensors *set;
  size_t bytes;
  char *file = small_file(&bytes);
  for (size_t n = 0; n < bytes; n++) {
    put_file("cut.safetensors", file, n);
    must_fail(weir_safetensors_load(&set, "cut.safetensors", NULL), WEIR_ECORRUPT, "");
    ck_assert_ptr_null(set);
  }
  free(file);
}
END_TEST

/* A changed byte is an error or another file; never a crash, never memory that is nobody's. */
START_TEST(every_changed_byte_is_survived)
{
  weir_tensors *set;
  size_t bytes;
  char *file = small_file(&bytes);
  for (size_t n = 0; n < bytes; n++)
    for (int bit = 0; bit < 8; bit++) {
      file[n] ^= (char)(1 << bit);
      put_file("odd.safetensors", file, bytes);
      file[n] ^= (char)(1 << bit);
      if (!weir_safetensors_load(&set, "odd.safetensors", NULL)) weir_tensors_release(set);
    }
  free(file);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file)
{
  weir_tensors *set, *back;
  size_t bytes, after;
  char *old = small_file(&bytes);
  must(weir_tensors_create(&set));
  weir_tensor *t;
  must(weir_zeros(&t, weir_shape(1 << 20), NULL));
  put_new(set, "large", t);
  struct rlimit none = {1 << 16, RLIM_INFINITY};
  ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
  must_fail(weir_safetensors_save("t.safetensors", set), WEIR_ENOSPC, "cannot write t.safetensors");
  char *now = get_file("t.safetensors", &after);
  ck_assert_uint_eq(after, bytes);
  ck_assert_mem_eq(now, old, bytes);
  ck_assert_int_eq(files_there(), 1);
  must(weir_safetensors_load(&back, "t.safetensors", NULL));
  weir_tensors_release(back);
  weir_tensors_release(set);
  free(old);
  free(now);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/safetensors");
  TCase *c = tcase_create("safetensors");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, enter_folder, leave_folder);
  tcase_add_test(c, names_find_their_tensors);
  tcase_add_test(c, metadata_is_put_and_taken_away);
  tcase_add_test(c, what_is_no_name_is_refused);
  tcase_add_test(c, every_dtype_and_shape_comes_back);
  tcase_add_test(c, elements_are_aligned_in_the_file);
  tcase_add_test(c, nothing_at_all_is_a_file_too);
  tcase_add_test(c, views_are_saved_as_they_look);
  tcase_add_test(c, what_the_format_lets_be_is_let_be);
  tcase_add_test(c, a_dtype_no_tensor_has_is_listed_while_the_others_are_read);
  tcase_add_test(c, a_dtype_no_tensor_has_is_converted_or_had_as_bytes);
  tcase_add_test(c, floats_of_8_bits_have_the_values_of_halves_of_their_bits);
  tcase_add_loop_test(c, every_rule_of_the_format_is_kept, 0, sizeof bad / sizeof *bad);
  tcase_add_test(c, a_length_that_cannot_be_is_an_error);
  tcase_add_test(c, a_header_beyond_the_cap_is_an_error);
  tcase_add_test(c, deep_nesting_is_an_error);
  tcase_add_test(c, every_cut_of_a_file_is_an_error);
  tcase_add_test(c, every_changed_byte_is_survived);
  tcase_add_test(c, a_full_disk_leaves_the_old_file);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
