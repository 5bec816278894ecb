/* test_npy.c: .npy files, written and read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/io/io.h"

/* A file of version `major`.0 with this header and these elements. */
static void put_npy(const char *name, int major, const char *header, const void *data, size_t bytes)
{
  char file[4096] = "\x93NUMPY";
  size_t n = strlen(header), at = major == 1 ? 10 : 12;
  file[6] = (char)major;
  file[7] = 0;
  file[8] = (char)(n & 0xff);
  file[9] = (char)(n >> 8);
  memcpy(file + at, header, n);
  memcpy(file + at + n, data, bytes);
  put_file(name, file, at + n + bytes);
}

static void check_int32(const char *name, int count, const int32_t *expected)
{
  weir_tensor *t;
  int32_t values[64];
  must(weir_npy_read(&t, name, NULL));
  ck_assert_int_eq(weir_tensor_dtype(t), WEIR_INT32);
  ck_assert_int_eq(weir_tensor_numel(t), count);
  must(weir_tensor_read(values, (size_t)count * 4, WEIR_INT32, t));
  ck_assert(memcmp(values, expected, (size_t)count * 4) == 0);
  weir_tensor_release(t);
}

START_TEST(every_dtype_comes_back)
{
  static const weir_dtype all[] = {WEIR_UINT8,   WEIR_INT8,     WEIR_INT16,   WEIR_INT32,
                                   WEIR_INT64,   WEIR_BOOL,     WEIR_FLOAT16, WEIR_FLOAT32,
                                   WEIR_FLOAT64, WEIR_COMPLEX64};
  unsigned char bytes[48];
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = all[_i] == WEIR_BOOL ? i % 3 == 0 : (unsigned char)(i * 5 + 1);
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR back = NULL;
  must(weir_tensor_from(&t, bytes, all[_i], weir_shape(3, 2), NULL));
  must(weir_npy_write("t.npy", t));
  must(weir_npy_read(&back, "t.npy", NULL));
  ck_assert_int_eq(weir_tensor_dtype(back), all[_i]);
  ck_assert_int_eq(weir_tensor_dim(back), 2);
  ck_assert_int_eq(weir_tensor_size(back, 0), 3);
  ck_assert_int_eq(weir_tensor_size(back, 1), 2);
  ck_assert_mem_eq(weir_tensor_data(back), bytes, 6 * weir_dtype_size(all[_i]));
  ck_assert_int_eq(files_there(), 1);
}
END_TEST

START_TEST(shapes_of_any_rank_come_back)
{
  static const weir_shape shapes[] = {{0, {0}},
                                      {1, {5}},
                                      {1, {0}},
                                      {3, {2, 0, 3}},
                                      {3, {1, 4, 1}},
                                      {8, {1, 2, 1, 2, 1, 2, 1, 2}},
                                      {2, {0, INT64_MAX / 8}}};
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR back = NULL;
  must(weir_zeros(&t, shapes[_i], NULL));
  must(weir_npy_write("t.npy", t));
  must(weir_npy_read(&back, "t.npy", NULL));
  weir_shape s = weir_tensor_shape(back);
  ck_assert_int_eq(s.count, shapes[_i].count);
  ck_assert_mem_eq(s.size, shapes[_i].size, (size_t)s.count * sizeof *s.size);
}
END_TEST

START_TEST(views_are_written_as_they_look)
{
  int32_t values[6] = {1, 2, 3, 4, 5, 6}, turned[6] = {1, 4, 2, 5, 3, 6}, part[2] = {2, 5};
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR v = NULL;
  WEIR_TENSOR p = NULL;
  must(weir_tensor_from(&t, values, WEIR_INT32, weir_shape(2, 3), NULL));
  must(weir_t(&v, t));
  must(weir_npy_write("v.npy", v));
  check_int32("v.npy", 6, turned);
  size_t n;
  char *file = get_file("v.npy", &n);
  ck_assert_ptr_nonnull(strstr(file + 10, "'fortran_order': True, 'shape': (3, 2)"));
  free(file);
  must(weir_slice(&p, t, 1, 1, 2, 1));
  must(weir_npy_write("p.npy", p));
  check_int32("p.npy", 2, part);
}
END_TEST

START_TEST(headers_of_all_versions_and_orders_are_read)
{
  int32_t little[4] = {1, -2, 3, 0x01020304}, big[4];
  int32_t by_columns[4] = {1, 3, -2, 0x01020304};
  for (int i = 0; i < 4; i++)
    big[i] = (int32_t)__builtin_bswap32((uint32_t)little[i]);
  put_npy("1.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2), }   \n", little,
          16);
  put_npy("2.npy", 2, "{'descr': '>i4', 'fortran_order': False, 'shape': (4,), }\n", big, 16);
  put_npy("3.npy", 3, " { \"shape\" : ( 2L , 2 ), 'descr':'i4','fortran_order':True}", by_columns,
          16);
  check_int32("1.npy", 4, little);
  check_int32("2.npy", 4, little);
  WEIR_TENSOR t = NULL;
  must(weir_npy_read(&t, "3.npy", NULL));
  ck_assert_int_eq(weir_tensor_stride(t, 0), 1);
  ck_assert_int_eq(weir_tensor_stride(t, 1), 2);
  check_int32("3.npy", 4, little);
}
END_TEST

START_TEST(big_endian_elements_of_every_size_are_turned)
{
  unsigned char raw[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const struct {
    const char *code;
    unsigned char want[8];
  } of[] = {{"u1", {1, 2, 3, 4, 5, 6, 7, 8}}, {"i2", {2, 1, 4, 3, 6, 5, 8, 7}},
            {"f2", {2, 1, 4, 3, 6, 5, 8, 7}}, {"f4", {4, 3, 2, 1, 8, 7, 6, 5}},
            {"c8", {4, 3, 2, 1, 8, 7, 6, 5}}, {"i8", {8, 7, 6, 5, 4, 3, 2, 1}},
            {"f8", {8, 7, 6, 5, 4, 3, 2, 1}}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    char header[128];
    weir_tensor *t;
    (void)snprintf(header, sizeof header,
                   "{'descr': '>%s', 'fortran_order': False, 'shape': (%d,), }", of[i].code,
                   8 / (of[i].code[1] - '0'));
    put_npy("t.npy", 1, header, raw, 8);
    must(weir_npy_read(&t, "t.npy", NULL));
    ck_assert_mem_eq(weir_tensor_data(t), of[i].want, 8);
    weir_tensor_release(t);
  }
}
END_TEST

START_TEST(bools_are_zero_or_one_whatever_the_file_says)
{
  weir_tensor *t;
  put_npy("t.npy", 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }",
          "\x00\x01\x02\xff", 4);
  must(weir_npy_read(&t, "t.npy", NULL));
  ck_assert_mem_eq(weir_tensor_data(t), "\x00\x01\x01\x01", 4);
  weir_tensor_release(t);
}
END_TEST

START_TEST(options_say_dtype_and_place)
{
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR none = NULL;
  int32_t values[2] = {7, -1};
  double read[2];
  put_npy("t.npy", 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", values, 8);
  must(weir_npy_read(&t, "t.npy", &(weir_options){.dtype = WEIR_FLOAT64}));
  ck_assert_int_eq(weir_tensor_dtype(t), WEIR_FLOAT64);
  must(weir_tensor_read(read, sizeof read, WEIR_FLOAT64, t));
  ck_assert_double_eq(read[0], 7);
  weir_options pinned = {.device = WEIR_CUDA_AT(0), .pin_memory = true};
  must_fail(weir_npy_read(&none, "t.npy", &pinned), WEIR_EINVAL, "can be pinned");
  ck_assert_ptr_null(none);
}
END_TEST

#define PLAIN(descr, order, shape)                                                                 \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

/* NumPy reads these as well, whoever wrote them: Python 2, and writers that know dtypes by name. */
START_TEST(a_dtype_may_be_python_2_s_text_a_letter_or_a_name)
{
  static const char *const headers[] = {
      PLAIN("u'<f4'", "False", "(2,)"),
      PLAIN("'float32'", "False", "(2,)"),
      PLAIN("\"float32\"", "False", "(2,)"),
      PLAIN("'f'", "False", "(2,)"),
      PLAIN("'=f'", "False", "(2L,)"),
      "{u'descr': u'<f4', u\"fortran_order\": False, u'shape': (2,)}"};
  const float values[2] = {1.5F, -2};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    WEIR_TENSOR t = NULL;
    put_npy("t.npy", 1, headers[i], values, sizeof values);
    must(weir_npy_read(&t, "t.npy", NULL));
    ck_assert_int_eq(weir_tensor_dtype(t), WEIR_FLOAT32);
    const float *read = weir_tensor_data(t);
    ck_assert(read[0] == values[0] && read[1] == values[1]);
  }
}
END_TEST

static void read_doubles(double *out, size_t bytes, const char *path, weir_dtype by)
{
  WEIR_TENSOR t = NULL;
  must(weir_npy_read(&t, path, &(weir_options){.dtype = by}));
  ck_assert_int_eq(weir_tensor_dtype(t), by);
  must(weir_tensor_read(out, bytes, WEIR_FLOAT64, t));
}

/* First dimension innermost, most significant byte first: elements 1, 65535, 258 by rows. */
START_TEST(unsigned_elements_are_converted_or_had_as_bytes)
{
  WEIR_TENSOR t = NULL;
  double read[6];
  uint8_t bytes[12];
  static const char elements[] = "\0\1\0\2\xff\xff\0\3\1\2\0\4";
  put_npy("t.npy", 1, PLAIN("'>u2'", "True", "(2, 3)"), elements, 12);
  must_fail(weir_npy_read(&t, "t.npy", NULL), WEIR_ENOTSUP, "'>u2'");
  read_doubles(read, sizeof read, "t.npy", WEIR_FLOAT32);
  ck_assert(read[0] == 1 && read[1] == 65535 && read[2] == 258 && read[3] == 2 && read[5] == 4);
  must(weir_npy_read(&t, "t.npy", &(weir_options){.as_bytes = true}));
  ck_assert_int_eq(weir_tensor_dtype(t), WEIR_UINT8);
  ck_assert_int_eq(weir_tensor_dim(t), 3);
  ck_assert_int_eq(weir_tensor_size(t, 2), 2);
  must(weir_tensor_read(bytes, sizeof bytes, WEIR_UINT8, t));
  ck_assert(memcmp(bytes, "\1\0\xff\xff\2\1\2\0\3\0\4\0", 12) == 0);
}
END_TEST

/* Whether this processor converts a 64-bit integer to float by one rounding; valgrind's does it by
 * way of a double. */
static bool converts_by_one_rounding(void)
{
  volatile int64_t tie = INT64_C(0x4000004000000001);
  return (float)tie == 0x1.000002p62F;
}

START_TEST(uint64_becomes_a_float_by_one_rounding_and_an_integer_by_its_bits)
{
  WEIR_TENSOR t = NULL;
  double read[3];
  const uint64_t elements[3] = {UINT64_MAX, (UINT64_C(1) << 53) + 1, UINT64_C(0x8000008000000001)};
  put_npy("t.npy", 1, PLAIN("'uint64'", "False", "(3,)"), elements, sizeof elements);
  read_doubles(read, sizeof read, "t.npy", WEIR_FLOAT64);
  ck_assert(read[0] == 0x1p64 && read[1] == 0x1p53 && read[2] == 0x1.000001p63);
  read_doubles(read, sizeof read, "t.npy", WEIR_FLOAT32);
  if (converts_by_one_rounding())
    ck_assert(read[2] == 0x1.000002p63); /* 0x1.000001p63, a tie, if it were a double before */
  must(weir_npy_read(&t, "t.npy", &(weir_options){.dtype = WEIR_INT64}));
  ck_assert_int_eq(((int64_t *)weir_tensor_data(t))[0], -1);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static const struct {
  const char *header, *words;
  weir_status status;
} bad[] = {
    {"", "a dict is expected", WEIR_ECORRUPT},
    {"{", "a string is expected", WEIR_ECORRUPT},
    {"{}", "a key is missing", WEIR_ECORRUPT},
    {"[]", "a dict is expected", WEIR_ECORRUPT},
    {"{'descr': '<i4', 'shape': (1,)}", "a key is missing", WEIR_ECORRUPT},
    {"{'descr': '<i4', 'descr': '<i4'}", "a key twice", WEIR_ECORRUPT},
    {"{'descr': '<i4', 'evil': 1}", "an unknown key", WEIR_ECORRUPT},
    {"{'descr': '<i4' 'shape': (1,)}", "a comma is expected", WEIR_ECORRUPT},
    {"{'descr' '<i4'}", "a colon is expected", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(1,)") "x", "nothing more", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "0", "(1,)"), "True or False", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(1)"), "a number, where a tuple", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "1"), "a tuple is expected", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(-1,)"), "a size is expected", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(1 1)"), "a comma is expected", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(,)"), "a size is expected", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(1"), "a size is expected", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(9223372036854775808,)"), "too large", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(4611686018427387904, 4)"), "overflow", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(0, 4611686018427387904, 4)"), "overflow", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(5,)"), "its header says 20", WEIR_ECORRUPT},
    {PLAIN("'<i4'", "False", "(1,1,1,1,1,1,1,1,1)"), "more than 8 dimensions", WEIR_ENOTSUP},
    {PLAIN("'|O'", "False", "(1,)"), "type '|O'", WEIR_ENOTSUP},
    {PLAIN("'<u4'", "False", "(1,)"), "dtype '<u4'", WEIR_ENOTSUP},
    {PLAIN("'<u4'", "False", "(5,)"), "its header says 20", WEIR_ECORRUPT},
    {PLAIN("'<float32'", "False", "(1,)"), "type '<float32'", WEIR_ENOTSUP},
    {PLAIN("u<f4", "False", "(1,)"), "a string is expected", WEIR_ECORRUPT},
    {PLAIN("'<c16'", "False", "(1,)"), "type '<c16'", WEIR_ENOTSUP},
    {PLAIN("'<U8'", "False", "(1,)"), "type '<U8'", WEIR_ENOTSUP},
    {PLAIN("[('a', '<i4')]", "False", "(1,)"), "an array of structures", WEIR_ENOTSUP},
    {"{'descr': '<i4", "the string does not end", WEIR_ECORRUPT},
    {PLAIN("'\\x3ci4'", "False", "(1,)"), "no such character", WEIR_ECORRUPT},
    {PLAIN("__import__('os')", "False", "(1,)"), "a string is expected", WEIR_ECORRUPT},
};

START_TEST(a_header_that_is_none_is_an_error)
{
  weir_tensor *t = (weir_tensor *)&t;
  put_npy("t.npy", 1, bad[_i].header, "0123456789abcdef", 16);
  must_fail(weir_npy_read(&t, "t.npy", NULL), bad[_i].status, bad[_i].words);
  ck_assert_ptr_null(t);
}
END_TEST

START_TEST(a_file_that_is_none_is_an_error)
{
  weir_tensor *t;
  put_file("empty.npy", "", 0);
  must_fail(weir_npy_read(&t, "empty.npy", NULL), WEIR_ECORRUPT, "is not an .npy file");
  put_file("other.npy", "PK\3\4 this is an archive", 24);
  must_fail(weir_npy_read(&t, "other.npy", NULL), WEIR_ECORRUPT, "is not an .npy file");
  put_file("new.npy", "\x93NUMPY\4\0\x10\0{}", 12);
  must_fail(weir_npy_read(&t, "new.npy", NULL), WEIR_EVERSION, "version 4.0");
  put_file("long.npy", "\x93NUMPY\2\0\xff\xff\xff\x7f{}", 14);
  must_fail(weir_npy_read(&t, "long.npy", NULL), WEIR_ECORRUPT, "goes beyond the end");
  put_file("t.npy.gz", "\x1f\x8b\x08\0\0\0\0\0\2\3", 10);
  must_fail(weir_npy_read(&t, "t.npy.gz", NULL), WEIR_ENOTSUP, "compressed by gzip");
  must_fail(weir_npy_read(&t, "none.npy", NULL), WEIR_ENOENT, "none.npy");
  must_fail(weir_npy_read(&t, ".", NULL), WEIR_EINVAL, "not a regular file");
  must_fail(weir_npy_read(&t, NULL, NULL), WEIR_EINVAL, "weir_npy_read: path is NULL");
  ck_assert_int_eq(mkfifo("pipe.npy", 0600), 0);
  must_fail(weir_npy_read(&t, "pipe.npy", NULL), WEIR_EINVAL, "not a regular file");
}
END_TEST

START_TEST(every_cut_of_a_file_is_an_error)
{
  int32_t values[3] = {1, 2, 3};
  weir_tensor *t, *back;
  size_t bytes;
  must(weir_tensor_from(&t, values, WEIR_INT32, weir_shape(3), NULL));
  must(weir_npy_write("t.npy", t));
  weir_tensor_release(t);
  char *file = get_file("t.npy", &bytes);
  for (size_t n = 0; n < bytes; n++) {
    put_file("cut.npy", file, n);
    ck_assert_int_ne(weir_npy_read(&back, "cut.npy", NULL), WEIR_OK);
    ck_assert_ptr_null(back);
  }
  free(file);
}
END_TEST

/* ---- writing --------------------------------------------------------------------------------- */

START_TEST(bfloat16_is_refused)
{
  WEIR_TENSOR t = NULL;
  must(weir_zeros(&t, weir_shape(2), &(weir_options){.dtype = WEIR_BFLOAT16}));
  must_fail(weir_npy_write("t.npy", t), WEIR_EINVAL, "has no bfloat16");
  ck_assert_int_eq(files_there(), 0);
}
END_TEST

START_TEST(a_write_that_fails_leaves_the_old_file)
{
  WEIR_TENSOR t = NULL;
  must(weir_zeros(&t, weir_shape(2), NULL));
  must_fail(weir_npy_write("no/such/folder.npy", t), WEIR_ENOENT, "folder.npy");
  must_fail(weir_npy_write("", t), WEIR_EINVAL, "name is needed");
  must_fail(weir_npy_write(".", t), WEIR_EINVAL, "not a regular file");
  must_fail(weir_npy_write("t.npy", NULL), WEIR_EINVAL, "weir_npy_write: t is NULL");
  ck_assert_int_eq(files_there(), 0);
}
END_TEST

START_TEST(a_link_stays_a_link_and_a_mode_stays)
{
  struct stat s;
  WEIR_TENSOR t = NULL;
  must(weir_zeros(&t, weir_shape(2), NULL));
  put_file("real.npy", "old", 3);
  ck_assert_int_eq(chmod("real.npy", 0640), 0);
  ck_assert_int_eq(symlink("real.npy", "link.npy"), 0);
  must(weir_npy_write("link.npy", t));
  ck_assert_int_eq(lstat("link.npy", &s), 0);
  ck_assert(S_ISLNK(s.st_mode));
  ck_assert_int_eq(stat("real.npy", &s), 0);
  ck_assert_int_eq(s.st_mode & 0777, 0640);
  ck_assert_int_gt(s.st_size, 64);
  ck_assert_int_eq(files_there(), 2);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/npy");
  TCase *c = tcase_create("npy");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, enter_folder, leave_folder);
  tcase_add_loop_test(c, every_dtype_comes_back, 0, 10);
  tcase_add_loop_test(c, shapes_of_any_rank_come_back, 0, 7);
  tcase_add_test(c, views_are_written_as_they_look);
  tcase_add_test(c, headers_of_all_versions_and_orders_are_read);
  tcase_add_test(c, big_endian_elements_of_every_size_are_turned);
  tcase_add_test(c, bools_are_zero_or_one_whatever_the_file_says);
  tcase_add_test(c, options_say_dtype_and_place);
  tcase_add_test(c, a_dtype_may_be_python_2_s_text_a_letter_or_a_name);
  tcase_add_test(c, unsigned_elements_are_converted_or_had_as_bytes);
  tcase_add_test(c, uint64_becomes_a_float_by_one_rounding_and_an_integer_by_its_bits);
  tcase_add_loop_test(c, a_header_that_is_none_is_an_error, 0, sizeof bad / sizeof *bad);
  tcase_add_test(c, a_file_that_is_none_is_an_error);
  tcase_add_test(c, every_cut_of_a_file_is_an_error);
  tcase_add_test(c, bfloat16_is_refused);
  tcase_add_test(c, a_write_that_fails_leaves_the_old_file);
  tcase_add_test(c, a_link_stays_a_link_and_a_mode_stays);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
