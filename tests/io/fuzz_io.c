/* fuzz_io.c: the readers of .npy, .npz, .safetensors and PyTorch's files under a fuzzer
 * (clang's, or fuzz_alone.c). What is read in is written out and read again, and must be the
 * same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/weir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void read_all_elements(const weir_tensor *t)
{
  const uint8_t *p = weir_tensor_data(t);
  size_t n = (size_t)weir_tensor_numel(t) * weir_dtype_size(weir_tensor_dtype(t));
  for (size_t i = 0; i < n; i++)
    sink += p[i];
}

static void abort_unless_equal(const weir_tensor *a, const weir_tensor *b)
{
  size_t n = (size_t)weir_tensor_numel(a) * weir_dtype_size(weir_tensor_dtype(a));
  if (!b || weir_tensor_dtype(a) != weir_tensor_dtype(b) ||
      weir_tensor_numel(a) != weir_tensor_numel(b) || weir_tensor_dim(a) != weir_tensor_dim(b) ||
      (n && weir_tensor_is_contiguous(a) &&
       memcmp(weir_tensor_data(a), weir_tensor_data(b), n) != 0))
    abort();
}

static void read_dense_elements(const weir_tensor *t)
{
  if (weir_tensor_is_contiguous(t)) read_all_elements(t);
}

static void read_and_release(weir_tensors *set)
{
  for (size_t i = 0; i < weir_tensors_count(set); i++)
    read_dense_elements(weir_tensors_at(set, i));
  for (size_t i = 0; i < weir_tensors_skipped_count(set); i++)
    sink += strlen(weir_tensors_skipped_name(set, i)) + strlen(weir_tensors_skipped_kind(set, i));
  weir_tensors_release(set);
}

/* What no tensor is of, converted where the file bounds how much there is, and as bytes. */
static void foreign(const char *path)
{
  const weir_options number = {.dtype = WEIR_FLOAT32}, bytes = {.as_bytes = true};
  weir_tensors *set;
  weir_tensor *t;
  if (!weir_npy_read(&t, path, &number)) {
    read_dense_elements(t);
    weir_tensor_release(t);
  }
  if (!weir_safetensors_load(&set, path, &number)) read_and_release(set);
  if (!weir_npz_load(&set, path, &number)) read_and_release(set);
  if (!weir_tensors_load(&set, path, &bytes)) read_and_release(set);
}

static void npy(const char *path, const char *again)
{
  weir_tensor *t, *back;
  if (weir_npy_read(&t, path, NULL)) return;
  read_all_elements(t);
  if (weir_npy_write(again, t) || weir_npy_read(&back, again, NULL)) abort();
  abort_unless_equal(t, back);
  weir_tensor_release(t);
  weir_tensor_release(back);
}

static void safetensors(const char *path, const char *again)
{
  weir_tensors *set, *back;
  if (weir_safetensors_load(&set, path, NULL)) return;
  if (weir_safetensors_save(again, set) || weir_safetensors_load(&back, again, NULL)) abort();
  if (weir_tensors_count(set) != weir_tensors_count(back)) abort();
  for (size_t i = 0; i < weir_tensors_count(set); i++) {
    read_all_elements(weir_tensors_at(set, i));
    abort_unless_equal(weir_tensors_at(set, i), weir_tensors_get(back, weir_tensors_name(set, i)));
  }
  for (size_t i = 0; i < weir_tensors_metadata_count(set); i++) {
    const char *key = weir_tensors_metadata_key(set, i);
    const char *text = weir_tensors_metadata(back, key);
    if (!text || strcmp(text, weir_tensors_metadata(set, key)) != 0) abort();
  }
  weir_tensors_release(set);
  weir_tensors_release(back);
}

static void npz(const char *path, const char *again)
{
  weir_tensors *set, *back;
  if (weir_npz_load(&set, path, NULL)) return;
  if (weir_npz_save(again, set) || weir_npz_load(&back, again, NULL)) abort();
  if (weir_tensors_count(set) != weir_tensors_count(back)) abort();
  for (size_t i = 0; i < weir_tensors_count(set); i++)
    abort_unless_equal(weir_tensors_at(set, i), weir_tensors_get(back, weir_tensors_name(set, i)));
  weir_tensors_release(set);
  weir_tensors_release(back);
}

/* Elements of views of any strides are read by way of a copy. */
static void pt(const char *path)
{
  weir_tensors *set;
  if (weir_pt_load(&set, path, NULL)) return;
  for (size_t i = 0; i < weir_tensors_count(set); i++) {
    weir_tensor *dense;
    if (weir_tensor_numel(weir_tensors_at(set, i)) > 1 << 24) continue; /* strides of 0 */
    if (weir_contiguous(&dense, weir_tensors_at(set, i))) continue;
    read_all_elements(dense);
    weir_tensor_release(dense);
  }
  weir_tensors_release(set);
}

static void mapped(const char *path)
{
  weir_tensors *set;
  if (weir_safetensors_map_all(&set, path)) return;
  for (size_t i = 0; i < weir_tensors_count(set); i++)
    read_all_elements(weir_tensors_at(set, i));
  weir_tensors_release(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static char path[64], again[64];
  static int fd = -1;
  if (fd < 0) {
    fd = memfd_create("input", 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)snprintf(again, sizeof again, "/dev/shm/weir-fuzz-%d", (int)getpid());
  }
  if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
  npy(path, again);
  safetensors(path, again);
  mapped(path);
  npz(path, again);
  pt(path);
  foreign(path);
  (void)unlink(again);
  return 0;
}
