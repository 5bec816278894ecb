/* foreign.h: elements in files of dtypes that no tensor of Weir's has: unsigned integers of several
 * bytes, floats of 8 bits, and what else a format names. They are converted to a dtype that is
 * asked for, had as bytes where these are asked for (weir_options), and else left in the file. */
#ifndef WEIR_IO_FOREIGN_H
#define WEIR_IO_FOREIGN_H

#include "core/io/file.h"

enum foreign_kind {
  FOREIGN_NONE,
  FOREIGN_UINT16,
  FOREIGN_UINT32,
  FOREIGN_UINT64,
  FOREIGN_E4M3, /* no infinity, as ONNX's and PyTorch's e4m3fn */
  FOREIGN_E5M2,
  FOREIGN_OTHER /* nothing is known but how many bytes there are */
};

enum foreign_format { FOREIGN_IN_SAFETENSORS, FOREIGN_IN_NPY, FOREIGN_IN_PT };

/* By the format's name of it; FOREIGN_NONE: it has no such name. */
enum foreign_kind foreign_find(enum foreign_format format, const char *name);
/* Bytes of an element; of NONE and OTHER 0. */
size_t foreign_size(enum foreign_kind kind);

/* Whether options ask for such elements. */
bool foreign_asked(enum foreign_kind kind, const weir_options *options);
/* ENOTSUP: what the elements are ("tensor 'a' of x.safetensors") and how they can be asked for. */
weir_status foreign_refused(enum foreign_kind kind, const char *what, const char *name);

/* The array, whose dtype is WEIR_DTYPE_NONE, as file_tensor() makes one. They are asked for.
 * Errors: those, ENOTSUP (bytes of an array of as many dimensions as there can be). */
weir_status foreign_tensor(weir_tensor **out, const tensor_file *f, const file_array *array,
                           const weir_options *options);
/* Of its bytes, a tensor on any device whose last dimension is one element's: in options->dtype. */
weir_status foreign_convert(weir_tensor **out, const weir_tensor *bytes, enum foreign_kind kind,
                            const weir_options *options);

#endif
