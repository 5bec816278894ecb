/* test_checkpoint.c: .safetensors opened, listed, read one by one and mapped; the shards of an
 * index; what is wrong with any of them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "tests/io/io.h"

static weir_tensor *numbers(weir_dtype dtype, weir_shape shape, double from)
{
  weir_tensor *t;
  must(weir_arange(&t, weir_float(from), weir_float(from + 24), weir_float(1),
                   &(weir_options){.dtype = dtype}));
  WEIR_TENSOR all = t;
  must(weir_narrow(&t, all, 0, 0, shape.size[0] * (shape.count > 1 ? shape.size[1] : 1)));
  WEIR_TENSOR part = t;
  must(weir_reshape(&t, part, shape));
  return t;
}

static void put_new(weir_tensors *set, const char *name, weir_tensor *t)
{
  must(weir_tensors_put(set, name, t));
  weir_tensor_release(t);
}

/* "a" float32 (2, 3) from 0; "b" int64 (4) from 100; "c" bool (2), all true. */
static void save_three(const char *path)
{
  WEIR_TENSORS set = NULL;
  weir_tensor *c;
  must(weir_tensors_create(&set));
  put_new(set, "a", numbers(WEIR_FLOAT32, weir_shape(2, 3), 0));
  put_new(set, "b", numbers(WEIR_INT64, weir_shape(4), 100));
  must(weir_ones(&c, weir_shape(2), &(weir_options){.dtype = WEIR_BOOL}));
  put_new(set, "c", c);
  must(weir_tensors_set_metadata(set, "format", "pt"));
  must(weir_safetensors_save(path, set));
}

static void save_one(const char *path, const char *name, double from)
{
  WEIR_TENSORS set = NULL;
  must(weir_tensors_create(&set));
  put_new(set, name, numbers(WEIR_FLOAT32, weir_shape(2, 3), from));
  must(weir_safetensors_save(path, set));
}

static double first_of(const weir_tensor *t)
{
  double all[24];
  size_t n = (size_t)weir_tensor_numel(t);
  must(weir_tensor_read(all, n * sizeof *all, WEIR_FLOAT64, t));
  return all[0];
}

/* ---- one file -------------------------------------------------------------------------------- */

START_TEST(a_file_is_listed_without_its_tensors)
{
  WEIR_SAFETENSORS f = NULL;
  save_three("t.safetensors");
  must(weir_safetensors_open(&f, "t.safetensors"));
  ck_assert_uint_eq(weir_safetensors_count(f), 3);
  ck_assert_str_eq(weir_safetensors_name(f, 0), "b"); /* of the largest elements */
  ck_assert_str_eq(weir_safetensors_name(f, 2), "c");
  ck_assert_ptr_null(weir_safetensors_name(f, 3));
  ck_assert_int_eq(weir_safetensors_dtype(f, "b"), WEIR_INT64);
  ck_assert_int_eq(weir_safetensors_dtype(f, "none"), WEIR_DTYPE_NONE);
  weir_shape s = weir_safetensors_shape(f, "a");
  ck_assert(s.count == 2 && s.size[0] == 2 && s.size[1] == 3);
  ck_assert_int_eq(weir_safetensors_shape(f, "none").count, -1);
  ck_assert_str_eq(weir_safetensors_metadata(f, "format"), "pt");
  ck_assert_ptr_null(weir_safetensors_metadata(f, "none"));
  ck_assert_uint_eq(weir_safetensors_count(NULL), 0);
}
END_TEST

START_TEST(tensors_are_read_one_by_one)
{
  WEIR_SAFETENSORS f = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR as_float = NULL;
  weir_tensor *none;
  save_three("t.safetensors");
  must(weir_safetensors_open(&f, "t.safetensors"));
  must(weir_safetensors_read(&b, f, "b", NULL));
  must(weir_safetensors_read(&as_float, f, "b", &(weir_options){.dtype = WEIR_FLOAT64}));
  ck_assert(first_of(b) == 100 && first_of(as_float) == 100);
  ck_assert_int_eq(weir_tensor_dtype(as_float), WEIR_FLOAT64);
  ck_assert_str_eq(weir_tensor_name(b), "b");
  must_fail(weir_safetensors_read(&none, f, "d", NULL), WEIR_EINVAL, "no tensor is called 'd'");
  must_fail(weir_safetensors_map(&none, f, "d"), WEIR_EINVAL, "no tensor is called 'd'");
  ck_assert_ptr_null(none);
}
END_TEST

START_TEST(a_mapped_tensor_outlives_what_it_was_mapped_from)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR c = NULL;
  weir_safetensors *f;
  save_three("t.safetensors");
  must(weir_safetensors_open(&f, "t.safetensors"));
  must(weir_safetensors_map(&a, f, "a"));
  must(weir_safetensors_map(&c, f, "c")); /* bools are read */
  weir_safetensors_close(f);
  ck_assert_int_eq(unlink("t.safetensors"), 0);
  ck_assert(first_of(a) == 0 && first_of(c) == 1);
  ck_assert_str_eq(weir_tensor_name(a), "a");
}
END_TEST

START_TEST(what_is_written_to_a_mapped_tensor_is_its_own)
{
  WEIR_SAFETENSORS f = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR other = NULL;
  WEIR_TENSOR again = NULL;
  WEIR_SAFETENSORS later = NULL;
  save_three("t.safetensors");
  must(weir_safetensors_open(&f, "t.safetensors"));
  must(weir_safetensors_map(&one, f, "a"));
  must(weir_fill_(one, weir_float(7)));
  must(weir_safetensors_read(&other, f, "a", NULL));
  ck_assert(first_of(one) == 7 && first_of(other) == 0);
  must(weir_safetensors_open(&later, "t.safetensors"));
  must(weir_safetensors_map(&again, later, "a"));
  ck_assert(first_of(again) == 0);
}
END_TEST

START_TEST(all_are_mapped_at_once)
{
  WEIR_TENSORS set = NULL;
  save_three("t.safetensors");
  must(weir_safetensors_map_all(&set, "t.safetensors"));
  ck_assert_uint_eq(weir_tensors_count(set), 3);
  ck_assert(first_of(weir_tensors_get(set, "b")) == 100);
  ck_assert_str_eq(weir_tensors_metadata(set, "format"), "pt");
}
END_TEST

START_TEST(what_a_file_does_not_align_is_read)
{
  WEIR_TENSORS set = NULL;
  static const char header[] =
      "{\"a\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}} "; /* 57 bytes and one */
  static const int32_t values[2] = {1, 2};
  char file[8 + sizeof header + sizeof values] = {0};
  size_t n = sizeof header - 1 - (sizeof header % 4 == 1);
  file[0] = (char)n;
  for (size_t i = 0; i < n; i++)
    file[8 + i] = header[i];
  memcpy(file + 8 + n, values, sizeof values);
  ck_assert_uint_ne((8 + n) % 4, 0);
  put_file("odd.safetensors", file, 8 + n + 8);
  must(weir_safetensors_map_all(&set, "odd.safetensors"));
  ck_assert(first_of(weir_tensors_get(set, "a")) == 1);
}
END_TEST

static double seconds(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 1 GiB in 64 tensors, as a hole in the file: nothing of it is read. The least of some tries: what
 * else the machine does is not what is measured. */
START_TEST(a_gigabyte_is_mapped_before_it_is_read)
{
  char *header = NULL, name[64];
  size_t bytes = 0;
  FILE *text = open_memstream(&header, &bytes);
  for (unsigned long i = 0; i < 64; i++)
    (void)fprintf(text,
                  "%c\"layer.%lu\":{\"dtype\":\"F32\",\"shape\":[2048,2048],\"data_offsets\":"
                  "[%lu,%lu]}",
                  i ? ',' : '{', i, i << 24, (i + 1) << 24);
  long end = ftell(text) + 1; /* as the format's own writers do, so that elements are aligned */
  (void)fprintf(text, "}%*s", (int)(7 - (end - 1) % 8), "");
  ck_assert_int_eq(fclose(text), 0);
  ck_assert_uint_eq(bytes % 8, 0);
  char length[8] = {(char)(bytes & 255), (char)(bytes >> 8)};
  put_file("big.safetensors", length, 8);
  FILE *f = fopen("big.safetensors", "ab");
  ck_assert_uint_eq(fwrite(header, 1, bytes, f), bytes);
  ck_assert_int_eq(fclose(f), 0);
  free(header);
  ck_assert_int_eq(truncate("big.safetensors", (off_t)(8 + bytes + (UINT64_C(64) << 24))), 0);
  double least = 1;
  for (int i = 0; i < 20 && least > 0.005; i++) {
    double start = seconds();
    WEIR_TENSORS set = NULL;
    must(weir_safetensors_map_all(&set, "big.safetensors"));
    double taken = seconds() - start;
    if (taken < least) least = taken;
    (void)snprintf(name, sizeof name, "layer.%d", i);
    ck_assert(((float *)weir_tensor_data(weir_tensors_get(set, name)))[5] == 0);
  }
  ck_assert_msg(least < 0.005, "%.1f ms", least * 1e3);
}
END_TEST

/* ---- shards ---------------------------------------------------------------------------------- */

#define INDEX "model.safetensors.index.json"

static void put_index(const char *text)
{
  put_file(INDEX, text, strlen(text));
}

static void put_two_shards(void)
{
  save_one("1.safetensors", "x", 1);
  save_one("2.safetensors", "y", 2);
  put_index("{\"metadata\":{\"total_size\":48},\"weight_map\":{\"y\":\"2.safetensors\",\"x\":"
            "\"1.safetensors\"}}");
}

START_TEST(shards_are_one_checkpoint)
{
  static const char *const paths[] = {INDEX, ".", ("./" INDEX)};
  put_two_shards();
  for (int i = 0; i < 3; i++) {
    WEIR_SAFETENSORS f = NULL;
    WEIR_TENSOR x = NULL;
    WEIR_TENSORS set = NULL;
    must(weir_safetensors_open(&f, paths[i]));
    ck_assert_uint_eq(weir_safetensors_count(f), 2);
    must(weir_safetensors_map(&x, f, "x"));
    ck_assert(first_of(x) == 1);
    must(weir_safetensors_load(&set, paths[i], NULL));
    ck_assert(first_of(weir_tensors_get(set, "y")) == 2);
  }
}
END_TEST

START_TEST(a_folder_with_one_file_is_that_file)
{
  WEIR_TENSORS set = NULL;
  weir_tensors *none;
  must_fail(weir_safetensors_load(&none, ".", NULL), WEIR_ENOENT, "has neither " INDEX);
  save_one("model.safetensors", "x", 3);
  must(weir_safetensors_load(&set, ".", NULL));
  ck_assert(first_of(weir_tensors_get(set, "x")) == 3);
}
END_TEST

START_TEST(every_missing_shard_is_named)
{
  weir_safetensors *f;
  put_two_shards();
  ck_assert_int_eq(unlink("1.safetensors"), 0);
  must_fail(weir_safetensors_open(&f, INDEX), WEIR_ENOENT,
            "names 2 files, of which 1 is not there: 1.safetensors");
  ck_assert_int_eq(unlink("2.safetensors"), 0);
  must_fail(weir_safetensors_open(&f, INDEX), WEIR_ENOENT,
            "of which 2 are not there: 2.safetensors, 1.safetensors");
  ck_assert_ptr_null(f);
}
END_TEST

static const struct {
  const char *text, *words;
} bad_index[] = {
    {"", "an object is expected"},
    {"[]", "an object is expected"},
    {"{}", "it has no weight_map"},
    {"{\"weight_map\":[]}", "an object is expected"},
    {"{\"weight_map\":{\"x\":1}}", "a string is expected"},
    {"{\"weight_map\":{\"x\":\"../1.safetensors\"}}", "no name of a file in the index's folder"},
    {"{\"weight_map\":{\"x\":\"/etc/passwd\"}}", "no name of a file in the index's folder"},
    {"{\"weight_map\":{\"x\":\"..\"}}", "no name of a file in the index's folder"},
    {"{\"weight_map\":{\"x\":\"\"}}", "no name of a file in the index's folder"},
    {"{\"weight_map\":{\"x\":\"1.safetensors\",\"x\":\"2.safetensors\"}}", "'x' is there twice"},
    {"{\"weight_map\":{},\"weight_map\":{}}", "weight_map is there twice"},
    {"{\"weight_map\":{\"y\":\"1.safetensors\"}}", "'y' is in 1.safetensors, which has it not"},
    {"{\"weight_map\":{\"x\":\"1.safetensors\"}}}", "nothing more is expected"},
    {"{\"weight_map\":{\"x\":\"" INDEX "\"}}", "not a .safetensors file"},
};

START_TEST(an_index_that_is_none_is_an_error)
{
  weir_safetensors *f = (weir_safetensors *)&f;
  put_two_shards();
  put_index(bad_index[_i].text);
  must_fail(weir_safetensors_open(&f, INDEX), WEIR_ECORRUPT, bad_index[_i].words);
  ck_assert_ptr_null(f);
}
END_TEST

START_TEST(a_module_loads_from_shards)
{
  WEIR_MODULE m = NULL;
  must(weir_module_linear(&m, 3, 2, NULL));
  save_one("1.safetensors", "weight", 5);
  save_one("2.safetensors", "bias", 9);
  put_index("{\"weight_map\":{\"weight\":\"1.safetensors\",\"bias\":\"2.safetensors\"}}");
  must_fail(weir_module_load(m, ".", true), WEIR_EINVAL, "size mismatch for bias");
  put_index("{\"weight_map\":{\"weight\":\"1.safetensors\"}}");
  must(weir_module_load(m, ".", false));
  ck_assert(first_of(weir_module_parameter(m, "weight")) == 5);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/checkpoint");
  TCase *c = tcase_create("checkpoint");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, enter_folder, leave_folder);
  tcase_add_test(c, a_file_is_listed_without_its_tensors);
  tcase_add_test(c, tensors_are_read_one_by_one);
  tcase_add_test(c, a_mapped_tensor_outlives_what_it_was_mapped_from);
  tcase_add_test(c, what_is_written_to_a_mapped_tensor_is_its_own);
  tcase_add_test(c, all_are_mapped_at_once);
  tcase_add_test(c, what_a_file_does_not_align_is_read);
  tcase_add_test(c, a_gigabyte_is_mapped_before_it_is_read);
  tcase_add_test(c, shards_are_one_checkpoint);
  tcase_add_test(c, a_folder_with_one_file_is_that_file);
  tcase_add_test(c, every_missing_shard_is_named);
  tcase_add_loop_test(c, an_index_that_is_none_is_an_error, 0,
                      sizeof bad_index / sizeof *bad_index);
  tcase_add_test(c, a_module_loads_from_shards);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
