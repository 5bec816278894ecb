/* file.h: files of tensors: reading untrusted files, and writing so that the old file stays
 * until the new one is whole. */
#ifndef WEIR_IO_FILE_H
#define WEIR_IO_FILE_H

#include "core/tensor/tensor.h"

typedef struct tensor_file {
  int fd;         /* -1: none */
  uint64_t bytes; /* reading: its size when it was opened; writing: written so far */
  uint64_t base;  /* reading: of a window, where it begins in the file; else 0 */
  const void
      *memory;      /* reading: borrowed, a window of bytes that are in memory already; else NULL */
  const char *path; /* borrowed: the caller's */
  char *target;     /* writing, owned: the path, through symbolic links */
  char *beside;     /* writing, owned: the file that takes its place */
} tensor_file;

/* Errors: ENOENT, EIO, EINVAL: not a regular file. */
weir_status file_open(tensor_file *out, const char *path);
/* Exactly `bytes` from `at`. Errors: EIO, ECORRUPT: the file ends before. */
weir_status file_read(const tensor_file *f, void *to, uint64_t at, uint64_t bytes);

/* Begins a file next to `path`. */
weir_status file_begin(tensor_file *out, const char *path);
weir_status file_write(tensor_file *f, const void *from, uint64_t bytes);
/* `st` is what the writing came to: WEIR_OK puts the file in its place, else it is removed. Closes
 * it either way; returns st, or what went wrong here. Of a file that is read: closes it. */
weir_status file_end(tensor_file *f, weir_status st);

/* How the elements of an array lie in a file. */
typedef struct file_array {
  weir_dtype dtype;
  weir_shape shape;
  uint64_t at;     /* bytes from the start of the file; all of them are within it */
  bool fortran;    /* first dimension innermost */
  bool swapped;    /* most significant byte first */
  uint8_t foreign; /* an enum foreign_kind, where no dtype is for the elements */
  uint64_t item;   /* then: bytes of one */
} file_array;

/* The array as a tensor, by options as those of weir_npy_read(). */
weir_status file_tensor(weir_tensor **out, const tensor_file *f, const file_array *array,
                        const weir_options *options);
/* t with all its elements row by row (fortran: first dimension innermost) on the cpu; waits for the
 * device. */
weir_status file_dense(weir_tensor **out, const weir_tensor *t, bool fortran);
/* Its elements. */
weir_status file_put(tensor_file *f, const weir_tensor *t, bool fortran);

/* ---- npy.c: arrays within other files -------------------------------------------------------- */

enum { NPY_HEADER = 512, NPY_KIND = 32 };

/* The array that the file, or the window of one, begins with. Where no tensor can be made of it,
 * nor one is asked for (ENOTSUP), `kind` is what it is of, and else empty. */
weir_status npy_read_file(weir_tensor **out, const tensor_file *f, const weir_options *options,
                          char kind[NPY_KIND]);
/* The header for t, its length; and how its elements are to be put. Errors: EINVAL: a dtype the
 * format has not. */
weir_status npy_header(char out[NPY_HEADER], size_t *bytes, bool *fortran, const weir_tensor *t);

#endif
