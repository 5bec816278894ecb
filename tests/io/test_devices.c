/* test_devices.c: files to and from a device (scripted: its memory is the test's to look at), and
 * every allocation of reading and writing failing in turn. */
#include <stdlib.h>
#include <string.h>
#include "core/io/zip.h"
#include "tests/io/io.h"
#include "tests/memory/fake.h"

#define MIB (UINT64_C(1) << 20)

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **out, size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes);

static unsigned fail_at; /* the Nth allocation from now fails; 0: none */

static bool allocation_fails(void)
{
  return fail_at && !--fail_at;
}

void *__wrap_malloc(size_t bytes)
{
  return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
  return allocation_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
  return allocation_fails() ? NULL : __real_realloc(p, bytes);
}

char *__wrap_strdup(const char *text)
{
  return allocation_fails() ? NULL : __real_strdup(text);
}

int __wrap_posix_memalign(void **out, size_t align, size_t bytes)
{
  return allocation_fails() ? 12 : __real_posix_memalign(out, align, bytes);
}

/* ---- a device whose copies are done at once -------------------------------------------------- */

static const weir_device gpu = WEIR_CUDA_INIT(0);
static const weir_options there = {.device = WEIR_CUDA_INIT(0)};
static fake f;
static int copies;

static weir_status count_and_copy(void *self, void *stream, enum weir_copy_way way, void *to,
                                  const void *from, uint64_t bytes)
{
  (void)self, (void)stream, (void)way;
  copies++;
  memcpy(to, from, bytes);
  return WEIR_OK;
}

static weir_status sync_nothing(void *self, void *stream)
{
  (void)self, (void)stream;
  return WEIR_OK;
}

static void attach_copying_fake(void)
{
  static const weir_compute nothing; /* no operation is asked for */
  enter_folder();
  fake_init(&f, 256 * MIB, 2 * MIB);
  f.backend.copy = f.backend.copy_done = count_and_copy;
  f.backend.stream_sync = sync_nothing;
  f.backend.compute = &nothing;
  must(weir_memory_attach(&f.backend, NULL));
}

static void detach_copying_fake(void)
{
  must(weir_memory_detach(gpu));
  ck_assert(fake_clean(&f));
  fake_fini(&f);
  leave_folder();
}

static weir_tensor *numbers(weir_dtype dtype, weir_shape shape)
{
  weir_tensor *t;
  must(weir_empty(&t, shape, &(weir_options){.dtype = dtype}));
  unsigned char *p = weir_tensor_data(t);
  size_t bytes = (size_t)weir_tensor_numel(t) * weir_dtype_size(dtype);
  for (size_t i = 0; i < bytes; i++)
    p[i] = dtype == WEIR_BOOL ? i % 2 : (unsigned char)(i * 7 + i / 251);
  return t;
}

START_TEST(what_is_larger_than_a_piece_arrives_whole)
{
  weir_tensor *t = numbers(WEIR_INT16, weir_shape(5, (1 << 21) + 3)), *back; /* 20 MiB and a bit */
  size_t bytes = (size_t)weir_tensor_numel(t) * 2;
  must(weir_npy_write("t.npy", t));
  must(weir_npy_read(&back, "t.npy", &there));
  ck_assert(weir_tensor_is_cuda(back));
  ck_assert_int_eq(copies, 3);
  ck_assert(memcmp(weir_tensor_data(back), weir_tensor_data(t), bytes) == 0);
  weir_tensor_release(t);
  weir_tensor_release(back);
}
END_TEST

START_TEST(a_state_goes_from_device_to_device_by_a_file)
{
  weir_tensors *set, *first, *second;
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(3, 4)), *b = numbers(WEIR_BOOL, weir_shape(9));
  must(weir_tensors_create(&set));
  must(weir_tensors_put(set, "a", a));
  must(weir_tensors_put(set, "b", b));
  must(weir_safetensors_save("1.safetensors", set));
  must(weir_safetensors_load(&first, "1.safetensors", &there));
  must(weir_safetensors_save("2.safetensors", first));
  must(weir_safetensors_load(&second, "2.safetensors", NULL));
  ck_assert_mem_eq(weir_tensor_data(weir_tensors_get(second, "a")), weir_tensor_data(a), 48);
  ck_assert_mem_eq(weir_tensor_data(weir_tensors_get(second, "b")), weir_tensor_data(b), 9);
  weir_tensor_release(a);
  weir_tensor_release(b);
  weir_tensors_release(set);
  weir_tensors_release(first);
  weir_tensors_release(second);
}
END_TEST

START_TEST(pinned_tensors_are_read_straight)
{
  weir_tensor *t = numbers(WEIR_INT64, weir_shape(100)), *back;
  must(weir_npy_write("t.npy", t));
  must(weir_npy_read(&back, "t.npy", &(weir_options){.pin_memory = true}));
  ck_assert(weir_tensor_is_pinned(back));
  ck_assert_mem_eq(weir_tensor_data(back), weir_tensor_data(t), 800);
  weir_tensor_release(t);
  weir_tensor_release(back);
}
END_TEST

START_TEST(every_allocation_that_fails_is_an_error_and_no_more)
{
  weir_tensors *set, *back;
  weir_tensor *a = numbers(WEIR_INT32, weir_shape(3, 4)), *one;
  must(weir_tensors_create(&set));
  must(weir_tensors_put(set, "a", a));
  must(weir_tensors_put(set, "b", a));
  must(weir_tensors_set_metadata(set, "k", "v"));
  must(weir_safetensors_save("t.safetensors", set));
  must(weir_npy_write("t.npy", a));
  int failed = 0;
  for (unsigned n = 1; n < 60; n++) {
    const weir_options *o = n % 2 ? &there : NULL;
    fail_at = n;
    weir_status st = weir_safetensors_load(&back, "t.safetensors", o);
    fail_at = 0;
    ck_assert((back != NULL) == (st == WEIR_OK));
    weir_tensors_release(back);
    failed += st != WEIR_OK;
    fail_at = n;
    st = weir_npy_read(&one, "t.npy", o);
    fail_at = 0;
    ck_assert((one != NULL) == (st == WEIR_OK));
    weir_tensor_release(one);
    failed += st != WEIR_OK;
    fail_at = n;
    st = weir_safetensors_save("t.safetensors", set);
    fail_at = 0;
    failed += st != WEIR_OK;
    ck_assert_int_eq(files_there(), 2);
  }
  ck_assert_int_gt(failed, 10);
  must(weir_safetensors_load(&back, "t.safetensors", NULL));
  ck_assert_uint_eq(weir_tensors_count(back), 2);
  weir_tensors_release(back);
  weir_tensors_release(set);
  weir_tensor_release(a);
}
END_TEST

/* A file of torch.save({"a": torch.arange(6.).view(2, 3), "n": 7}). */
static void put_pt(const char *path)
{
  static const float values[6] = {0, 1, 2, 3, 4, 5};
  static const char pickle[] = "\x80\2}(X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\n(("
                               "X\7\0\0\0storagectorch\nFloatStorage\n"
                               "X\1\0\0\0"
                               "0X\3\0\0\0cpuK\6tQK\0(K\2K\3t(K\3K\1t\x89NtRX\1\0\0\0nK\7u.";
  tensor_file file;
  zip_writer w = {.file = &file};
  must(file_begin(&file, path));
  weir_status st = zip_put(&w, "archive/data.pkl", pickle, sizeof pickle - 1, "", 0);
  if (!st) st = zip_put(&w, "archive/data/0", "", 0, values, sizeof values);
  must(file_end(&file, zip_finish(&w, st)));
}

/* Loads a file with the nth allocation failing; 1: it failed. */
static int load_with_fault(unsigned n, const char *path)
{
  weir_tensors *set = (weir_tensors *)&set;
  fail_at = n;
  weir_status st = weir_tensors_load(&set, path, n % 2 ? &there : NULL);
  fail_at = 0;
  ck_assert_msg((set != NULL) == (st == WEIR_OK), "%s", path);
  weir_tensors_release(set);
  return st != WEIR_OK;
}

START_TEST(checkpoints_of_every_kind_survive_every_fault)
{
  static const char *const paths[] = {"t.pt", "t.npz", "i.json", "t.safetensors"};
  static const char index[] = "{\"weight_map\":{\"a\":\"t.safetensors\"}}";
  weir_tensors *set;
  weir_tensor *a = numbers(WEIR_INT32, weir_shape(3, 4)), *shared;
  int failed[6] = {0};
  must(weir_tensors_create(&set));
  must(weir_tensors_put(set, "a", a));
  must(weir_safetensors_save("t.safetensors", set));
  must(weir_npz_save("t.npz", set));
  put_file("i.json", index, sizeof index - 1);
  put_pt("t.pt");
  for (unsigned n = 1; n < 80; n++) {
    for (int i = 0; i < 4; i++)
      failed[i] += load_with_fault(n, paths[i]);
    fail_at = n;
    failed[4] += weir_npz_save("t.npz", set) != WEIR_OK;
    fail_at = n;
    weir_status st = weir_share_memory(&shared, a);
    fail_at = 0;
    failed[5] += st != WEIR_OK;
    ck_assert((shared != NULL) == (st == WEIR_OK));
    weir_tensor_release(shared);
    ck_assert_int_eq(files_there(), 4);
  }
  for (int i = 0; i < 6; i++)
    ck_assert_msg(failed[i] > 0, "%d", i);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(load_with_fault(0, paths[i]), 0);
  weir_tensors_release(set);
  weir_tensor_release(a);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/devices");
  TCase *c = tcase_create("devices");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, attach_copying_fake, detach_copying_fake);
  tcase_add_test(c, what_is_larger_than_a_piece_arrives_whole);
  tcase_add_test(c, a_state_goes_from_device_to_device_by_a_file);
  tcase_add_test(c, pinned_tensors_are_read_straight);
  tcase_add_test(c, every_allocation_that_fails_is_an_error_and_no_more);
  tcase_add_test(c, checkpoints_of_every_kind_survive_every_fault);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
