/* io.h: tensors in files: one as .npy, many by name as .safetensors. Included by weir.h.
 *
 * What is read may have been made to do harm: every number of a file is checked before it is used,
 * and a file that is not what its format states is an error that names the place. Bytes are read by
 * pread straight into the tensor's memory, never mapped: a file that somebody shortens meanwhile is
 * an error as well. What is written stands in a file of its own next to the path until it is whole,
 * and takes the path's place then: where writing fails, the old file is still there.
 *
 * Formats: NumPy's "numpy.lib.format" (versions 1.0, 2.0 and 3.0), and safetensors' "Format" as of
 * 0.5. Errors of all: EINVAL (an argument, a dtype the format has not), ENOENT, EIO, ENOMEM, those
 * of the device; of reading ECORRUPT (the file is not of its format), ENOTSUP (it is, and holds
 * what no tensor can; or it is compressed by gzip); of writing ENOSPC.
 *
 * Elements of uint16, uint32 and uint64, and floats of 8 bits (e4m3 and e5m2), which no tensor has,
 * are converted where options have a dtype: integers to floats with one rounding, to integers as
 * C's casts do. Where options have as_bytes and no dtype they are uint8, in one more dimension
 * where an element has several bytes, least significant first; so are elements of other dtypes,
 * where the file has their size. Where neither is asked for, such a tensor alone is ENOTSUP, and
 * one among others is skipped and listed: weir_tensors_skipped_count(). */
#ifndef WEIR_IO_H
#define WEIR_IO_H

#include <stddef.h>
#include "core/base/status.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The array in an .npy file: C order or Fortran order (which gives a tensor with such strides) of
 * either byte order. options as those of a creation, but a dtype not given is the file's and a
 * device not given the default device; NULL gives none. Bytes after the array are not looked at,
 * as numpy.load() does not. */
WEIR_PUBLIC weir_status weir_npy_read(weir_tensor **out, const char *path,
                                      const weir_options *options);
/* Writes t (any device, any strides) as numpy.save() would; waits for the device. Errors: EINVAL:
 * bfloat16, which the format has not. */
WEIR_PUBLIC weir_status weir_npy_write(const char *path, const weir_tensor *t);

/* Tensors by name, in the order they were put, and text by key that goes with them: a module's
 * state, the contents of a .safetensors file. For one thread at a time. */
typedef struct weir_tensors weir_tensors;

/* *out is new. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_tensors_create(weir_tensors **out);
/* Steals it, and gives back its count of each tensor; NULL is nothing. */
WEIR_PUBLIC void weir_tensors_release(weir_tensors *set);
/* WEIR_TENSORS set = NULL; is released at the end of its block. */
typedef weir_tensors *weir_tensors_owned;
static inline void weir_tensors_drop(weir_tensors **set)
{
  weir_tensors_release(*set);
  *set = NULL;
}
#define WEIR_TENSORS __attribute__((cleanup(weir_tensors_drop))) weir_tensors_owned
/* Puts t there (borrowed: counted once more) under a copy of the name; in the place of a tensor
 * that has that name. Errors: EINVAL (no name, name that is not UTF-8), ENOMEM. */
WEIR_PUBLIC weir_status weir_tensors_put(weir_tensors *set, const char *name, weir_tensor *t);
/* By name; NULL: there is none (borrowed, as long as the set has it). */
WEIR_PUBLIC weir_tensor *weir_tensors_get(const weir_tensors *set, const char *name);
WEIR_PUBLIC size_t weir_tensors_count(const weir_tensors *set);
/* By place, from 0; NULL beyond the last (borrowed). */
WEIR_PUBLIC const char *weir_tensors_name(const weir_tensors *set, size_t place);
WEIR_PUBLIC weir_tensor *weir_tensors_at(const weir_tensors *set, size_t place);
/* Text of a key (copied); NULL takes it away. Errors: EINVAL (no key, not UTF-8), ENOMEM. */
WEIR_PUBLIC weir_status weir_tensors_set_metadata(weir_tensors *set, const char *key,
                                                  const char *text);
/* NULL: there is none (borrowed). */
WEIR_PUBLIC const char *weir_tensors_metadata(const weir_tensors *set, const char *key);
WEIR_PUBLIC size_t weir_tensors_metadata_count(const weir_tensors *set);
/* The key by place, from 0; NULL beyond the last (borrowed). */
WEIR_PUBLIC const char *weir_tensors_metadata_key(const weir_tensors *set, size_t place);

/* What a file held in addition to the tensors that were read from it, and no tensor was made of: by
 * place, from 0, its name in the file and what it is ("F8_E4M3", "argparse.Namespace"); NULL beyond
 * the last (borrowed). */
WEIR_PUBLIC size_t weir_tensors_skipped_count(const weir_tensors *set);
WEIR_PUBLIC const char *weir_tensors_skipped_name(const weir_tensors *set, size_t place);
WEIR_PUBLIC const char *weir_tensors_skipped_kind(const weir_tensors *set, size_t place);

/* All tensors of a .safetensors file (*out is new), in the order of their bytes; each has its name
 * (weir_tensor_name). options as of weir_npy_read(): a dtype is given to all of them. path may be
 * an index of shards or a folder, too: weir_safetensors_open() of checkpoint.h. */
WEIR_PUBLIC weir_status weir_safetensors_load(weir_tensors **out, const char *path,
                                              const weir_options *options);
/* Writes all of the set (any devices, any strides); waits for the devices, and takes host memory
 * for one tensor at a time. */
WEIR_PUBLIC weir_status weir_safetensors_save(const char *path, const weir_tensors *set);

#ifdef __cplusplus
}
#endif

#endif
