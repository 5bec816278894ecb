/* dlpack.h: tensors to and from other libraries, without a copy: DLPack. Included by weir.h.
 *
 * The structs are those of DLPack's ABI (dlpack.h of its version 1.1; the unversioned one is that
 * of versions before 1.0), declared here so that nothing else is needed: a pointer to one may be
 * cast to a DLManagedTensorVersioned * or a DLManagedTensor * and back. A Python capsule holds them
 * under the names "dltensor_versioned" and "dltensor".
 *
 * Streams. Who takes a tensor states in which stream it will use it, and who gives it makes that
 * stream wait for the work on it: the rules of __dlpack__(stream=...) in the array API standard,
 * 2024.12. The other way round, weir_dlpack_stream() is what to ask a producer for. What the
 * consumer submitted must be complete, or waited for by the stream that the tensor's memory was
 * allocated for, when it calls the deleter. */
#ifndef WEIR_DLPACK_H
#define WEIR_DLPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DLPACK_MAJOR 1
#define WEIR_DLPACK_MINOR 1

/* DLDeviceType, those that Weir knows. Of host and managed memory the index is 0. */
enum {
  WEIR_DLPACK_CPU = 1,
  WEIR_DLPACK_CUDA = 2,
  WEIR_DLPACK_CUDA_HOST = 3, /* page-locked */
  WEIR_DLPACK_CUDA_MANAGED = 13
};

/* DLDataTypeCode, those that Weir knows. */
enum {
  WEIR_DLPACK_INT = 0,
  WEIR_DLPACK_UINT = 1,
  WEIR_DLPACK_FLOAT = 2,
  WEIR_DLPACK_BFLOAT = 4,
  WEIR_DLPACK_COMPLEX = 5,
  WEIR_DLPACK_BOOL = 6
};

/* Bits of weir_dlpack's flags. */
enum { WEIR_DLPACK_READ_ONLY = 1, WEIR_DLPACK_IS_COPIED = 2, WEIR_DLPACK_IS_SUBBYTE_PADDED = 4 };

typedef struct weir_dlpack_tensor { /* DLTensor */
  void *data;                       /* borrowed; NULL: no elements */
  struct {
    int32_t type, index;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;   /* borrowed; ndim of them */
  int64_t *strides; /* borrowed; elements; NULL: row-major (Weir's own are never NULL) */
  uint64_t byte_offset;
} weir_dlpack_tensor;

typedef struct weir_dlpack { /* DLManagedTensorVersioned */
  struct {
    uint32_t major, minor;
  } version;
  void *manager_ctx;                         /* the producer's */
  void (*deleter)(struct weir_dlpack *self); /* NULL: nobody is notified */
  uint64_t flags;                            /* WEIR_DLPACK_ bits */
  weir_dlpack_tensor tensor;
} weir_dlpack;

typedef struct weir_dlpack_unversioned { /* DLManagedTensor */
  weir_dlpack_tensor tensor;
  void *manager_ctx;
  void (*deleter)(struct weir_dlpack_unversioned *self);
} weir_dlpack_unversioned;

/* The consumer's stream, where it is not a handle. Anything above 2 is a cudaStream_t. */
enum {
  WEIR_DLPACK_STREAM_NONE = 0,   /* not given: the legacy default stream */
  WEIR_DLPACK_STREAM_LEGACY = 1, /* of the tensor's device */
  WEIR_DLPACK_STREAM_PER_THREAD = 2,
  WEIR_DLPACK_STREAM_NO_SYNC = -1 /* nothing is to wait */
};

typedef struct weir_dlpack_options {
  intptr_t stream; /* giving: the consumer's; of the cpu only NONE and NO_SYNC */
  bool copy;       /* giving: a copy that is the consumer's alone; taking: a copy of one's own */
  bool
      read_only; /* giving: the consumer must not write; taking: so it may be, we shall not write */
} weir_dlpack_options;

/* *out is new: its deleter must be called once, from any thread. The tensor's memory stays until
 * then, and on a device is neither moved nor paused. options NULL: no copy, the legacy default
 * stream. Errors: EINVAL (a stream for the cpu), ENOMEM, the device's. */
WEIR_PUBLIC weir_status weir_to_dlpack(weir_dlpack **out, const weir_tensor *t,
                                       const weir_dlpack_options *options);
/* For consumers that know only the unversioned struct, which cannot state that it is read-only.
 * Errors: also EINVAL (read_only). */
WEIR_PUBLIC weir_status weir_to_dlpack_unversioned(weir_dlpack_unversioned **out,
                                                   const weir_tensor *t,
                                                   const weir_dlpack_options *options);
/* A tensor over the same memory. Steals `from`, whose deleter is called with the last tensor of it,
 * or here where a copy is asked for; of a failed call `from` stays the caller's. Managed memory is
 * a tensor on its CUDA device. Errors: EVERSION (another major version), ENOTSUP (a device or dtype
 * that Weir has not, lanes, more than WEIR_MAX_DIMS dimensions), EINVAL (sizes or strides that
 * cannot be, negative strides, unaligned data; read-only, and neither a copy nor read_only asked
 * for), ENOMEM, the device's. */
WEIR_PUBLIC weir_status weir_from_dlpack(weir_tensor **out, weir_dlpack *from,
                                         const weir_dlpack_options *options);
WEIR_PUBLIC weir_status weir_from_dlpack_unversioned(weir_tensor **out,
                                                     weir_dlpack_unversioned *from,
                                                     const weir_dlpack_options *options);
/* What to give a producer as the stream in which the calling thread will use a tensor of `device`:
 * its current stream there; NONE for the cpu. Errors: those of weir_current_stream(). */
WEIR_PUBLIC weir_status weir_dlpack_stream(intptr_t *out, weir_device device);

/* WEIR_DLPACK given = NULL; is given back by its deleter at the end of its block, where it
 * has not been given away (and made NULL). */
typedef weir_dlpack *weir_dlpack_owned;
static inline void weir_dlpack_drop(weir_dlpack **given)
{
  if (*given && (*given)->deleter) (*given)->deleter(*given);
  *given = NULL;
}
#define WEIR_DLPACK __attribute__((cleanup(weir_dlpack_drop))) weir_dlpack_owned

/* WEIR_DLPACK_UNVERSIONED given = NULL; is given back by its deleter at the end of its block, where
 * it has not been given away (and made NULL). */
typedef weir_dlpack_unversioned *weir_dlpack_unversioned_owned;
static inline void weir_dlpack_unversioned_drop(weir_dlpack_unversioned **given)
{
  if (*given && (*given)->deleter) (*given)->deleter(*given);
  *given = NULL;
}
#define WEIR_DLPACK_UNVERSIONED                                                                    \
  __attribute__((cleanup(weir_dlpack_unversioned_drop))) weir_dlpack_unversioned_owned

#ifdef __cplusplus
}
#endif

#endif
