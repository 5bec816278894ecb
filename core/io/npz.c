/* npz.c: .npz files: zip files of .npy files (numpy.lib.npyio). */
#include "core/io/zip.h"
#include "core/stream/async_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SUFFIX ".npy"
enum { SUFFIX_BYTES = sizeof ARRAY_SUFFIX - 1, NAME_MOST = UINT16_MAX - SUFFIX_BYTES };

static weir_status read_array(weir_tensors *set, const zip_archive *z, const char *entry,
                              const weir_options *options)
{
  size_t length = strlen(entry);
  tensor_file window;
  void *owned = NULL;
  weir_tensor *t = NULL;
  char kind[NPY_KIND] = "";
  if (length < SUFFIX_BYTES || strcmp(entry + length - SUFFIX_BYTES, ARRAY_SUFFIX) != 0)
    return tensors_skip(set, entry, "no " ARRAY_SUFFIX " array");
  char *name = strndup(entry, length - SUFFIX_BYTES);
  if (!name) return weir_fail(WEIR_ENOMEM, "no host memory left for an array's name");
  weir_status st = zip_window(&window, &owned, z, entry, true);
  if (!st) st = npy_read_file(&t, &window, options, kind);
  if (st == WEIR_ENOTSUP && *kind) {
    st = tensors_skip(set, name, kind);
  } else {
    if (!st) st = weir_tensor_set_name(t, name);
    if (!st) st = weir_tensors_put(set, name, t);
  }
  weir_tensor_release(t);
  free(owned);
  free(name);
  return st;
}

weir_status weir_npz_load(weir_tensors **out, const char *path, const weir_options *options)
{
  WEIR_OP(out, path);
  tensor_file f;
  zip_archive z;
  weir_tensors *set = NULL;
  TRY(file_open(&f, path));
  weir_status st = zip_open(&z, &f);
  if (!st) st = weir_tensors_create(&set);
  for (size_t i = 0; !st && i < z.names.count; i++)
    st = read_array(set, &z, z.names.items[i].name, options);
  zip_close(&z);
  (void)file_end(&f, WEIR_OK);
  if (st)
    weir_tensors_release(set);
  else
    *out = set;
  return st;
}

static weir_status write_array(zip_writer *w, const char *name, const weir_tensor *t)
{
  WEIR_TENSOR dense = NULL;
  char header[NPY_HEADER];
  size_t bytes;
  bool fortran;
  size_t length = strlen(name);
  if (length > NAME_MOST)
    return fail_invalid("a name of %zu bytes: %d are the most in an .npz file", length, NAME_MOST);
  char *entry;
  if (asprintf(&entry, "%s" ARRAY_SUFFIX, name) < 0)
    return weir_fail(WEIR_ENOMEM, "no host memory left for an array's name");
  weir_status st = npy_header(header, &bytes, &fortran, t);
  if (!st) st = file_dense(&dense, t, fortran);
  if (!st)
    st = zip_put(w, entry, header, bytes, dense->data,
                 (uint64_t)dense->numel * itemsize(dense->dtype));
  free(entry);
  return st;
}

weir_status weir_npz_save(const char *path, const weir_tensors *set)
{
  WEIR_OP_ON(path, set);
  tensor_file f;
  zip_writer w = {.file = &f};
  weir_status st = file_begin(&f, path);
  if (st) return st;
  for (size_t i = 0; !st && i < set->tensors.count; i++)
    st = write_array(&w, set->tensors.items[i].name, set->tensors.items[i].value);
  return file_end(&f, zip_finish(&w, st));
}
