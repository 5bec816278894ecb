/* checkpoint.h: files of trained models, as they are found: opened and listed, read one tensor at a
 * time or mapped, in one file or in shards. Included by weir.h.
 *
 * What io.h states of files holds: they may have been made to do harm, and every number is checked
 * before it is used. Nothing of a file is ever run: of PyTorch's pickles only what makes tensors is
 * understood, all else is named and skipped.
 *
 * Formats: safetensors with the index of its shards, as Hugging Face's tools write them; the zip
 * files of torch.save() (since PyTorch 1.6); numpy.savez() and numpy.savez_compressed(). Errors: as
 * io.h's. */
#ifndef WEIR_CHECKPOINT_H
#define WEIR_CHECKPOINT_H

#include <stddef.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/io.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- safetensors, opened ----------------------------------------------------------------------
 * What is opened is read by as many threads as like, and closed by one. */

typedef struct weir_safetensors weir_safetensors;

/* path: a .safetensors file, an index of shards (.json, with its weight_map), or a folder that
 * holds model.safetensors.index.json or model.safetensors. Headers are read, no tensor is. Shards
 * are files in the index's own folder. *out is new. Errors: also ENOENT "... names 3 files, of
 * which 1 is not there: model-00002-of-00003.safetensors"; ECORRUPT (a tensor of the index that its
 * shard has not). */
WEIR_PUBLIC weir_status weir_safetensors_open(weir_safetensors **out, const char *path);
/* Steals it; NULL is nothing. Tensors that were read or mapped stay. */
WEIR_PUBLIC void weir_safetensors_close(weir_safetensors *f);
/* WEIR_SAFETENSORS f = NULL; is closed at the end of its block. */
typedef weir_safetensors *weir_safetensors_owned;
static inline void weir_safetensors_drop(weir_safetensors **f)
{
  weir_safetensors_close(*f);
  *f = NULL;
}
#define WEIR_SAFETENSORS __attribute__((cleanup(weir_safetensors_drop))) weir_safetensors_owned
/* How many tensors; their names in the order of their bytes, shard by shard (borrowed, as long as
 * it is open); NULL beyond the last. */
WEIR_PUBLIC size_t weir_safetensors_count(const weir_safetensors *f);
WEIR_PUBLIC const char *weir_safetensors_name(const weir_safetensors *f, size_t place);
/* Of a tensor by name, as the header states; of one there is not: WEIR_DTYPE_NONE, and a shape
 * whose count is -1. One that no tensor can be of is WEIR_DTYPE_NONE too, and has its shape; what
 * the file names it (borrowed) is "F8_E4M3", of float32 "F32"; NULL: there is no such tensor. */
WEIR_PUBLIC weir_dtype weir_safetensors_dtype(const weir_safetensors *f, const char *name);
WEIR_PUBLIC const char *weir_safetensors_dtype_name(const weir_safetensors *f, const char *name);
WEIR_PUBLIC weir_shape weir_safetensors_shape(const weir_safetensors *f, const char *name);
/* Text of a key of the first file's __metadata__ (borrowed); NULL: there is none. */
WEIR_PUBLIC const char *weir_safetensors_metadata(const weir_safetensors *f, const char *key);
/* One tensor, which has its name; options as of weir_npy_read(). Errors: also EINVAL (no tensor has
 * the name). */
WEIR_PUBLIC weir_status weir_safetensors_read(weir_tensor **out, const weir_safetensors *f,
                                              const char *name, const weir_options *options);
/* One tensor on the cpu over the file's own pages, which are read where they are touched: no memory
 * is taken and no byte is copied until then. It holds the mapping alive. What is written to it is
 * its own from then on and never the file's. A file that somebody shortens meanwhile is a SIGBUS
 * where it is touched: weir_safetensors_read() has no such end. Bools, and tensors that the file
 * does not align, are read. */
WEIR_PUBLIC weir_status weir_safetensors_map(weir_tensor **out, const weir_safetensors *f,
                                             const char *name);
/* All of them, mapped (*out is new). path as of weir_safetensors_open(). */
WEIR_PUBLIC weir_status weir_safetensors_map_all(weir_tensors **out, const char *path);

/* ---- PyTorch's ------------------------------------------------------------------------------- */

/* The tensors of a file of torch.save() (*out is new): those of a state_dict by their names; of
 * dicts and lists within one another by the path, parts joined by dots ("model.conv1.weight",
 * "optimizer.state.0.exp_avg"); one tensor alone by "". Numbers, truths and text among them become
 * metadata by their paths, as Python prints them; what else there is (objects of classes, sets,
 * bytes) is skipped, and listed with its class (weir_tensors_skipped_count()). Tensors that share a
 * storage in the file share it here; strides and offsets are the file's. options as of
 * weir_npy_read(): a dtype makes each a tensor of its own. Nothing of Python's is run: what makes
 * tensors is understood, an object of a class that is a dict or a list is one, and of all else the
 * name is kept. Errors: ENOTSUP "...: the pickle calls os.system, which makes no tensor", where
 * that is all there is; a file from before PyTorch 1.6. */
WEIR_PUBLIC weir_status weir_pt_load(weir_tensors **out, const char *path,
                                     const weir_options *options);

/* ---- NumPy's --------------------------------------------------------------------------------- */

/* The arrays of an .npz file by name, ".npy" taken off; stored or deflated. Arrays of text, objects
 * or structures, and what is no array, are skipped (weir_tensors_skipped_count()). Checked by their
 * sums as numpy.load() does. options as of weir_npy_read(). */
WEIR_PUBLIC weir_status weir_npz_load(weir_tensors **out, const char *path,
                                      const weir_options *options);
/* Writes them as numpy.savez() would: stored, not compressed. Waits for the device. Errors: EINVAL:
 * bfloat16, which the format has not; a name with a NUL, or of more than 65531 bytes. */
WEIR_PUBLIC weir_status weir_npz_save(const char *path, const weir_tensors *set);

/* ---- any of them ----------------------------------------------------------------------------- */

/* By what the file is: safetensors (also an index or a folder), PyTorch's, .npz, or an .npy file
 * under the name "". */
WEIR_PUBLIC weir_status weir_tensors_load(weir_tensors **out, const char *path,
                                          const weir_options *options);

#ifdef __cplusplus
}
#endif

#endif
