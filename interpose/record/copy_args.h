/* copy_args.h: a copy as the program asked for it. The wrapper fills one before the original, out
 * of the call's arguments or the structure that they point to; the recorder and the rerouter read
 * it, and nobody decodes a copy a second time.
 *
 * An *end* of a copy is its destination or its source. */
#ifndef WEIR_INTERPOSE_COPY_ARGS_H
#define WEIR_INTERPOSE_COPY_ARGS_H

#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"

/* What the call itself specifies of an end. */
enum copy_end {
  COPY_HOST,     /* the function's name, its kind or a memory type names host memory */
  COPY_DEVICE,   /* and device memory */
  COPY_EITHER,   /* it is what the address points to */
  COPY_ARRAY,    /* a handle of an array */
  COPY_SYMBOL,   /* the host's shadow of a variable of the device */
  COPY_BAD_KIND, /* there is no such cudaMemcpyKind: the original refuses it */
  COPY_NONE      /* nothing: there was no structure */
};

enum copy_owners { COPY_NO_OWNERS, COPY_DEVICES, COPY_CONTEXTS }; /* that the call names */

typedef struct copy_args {
  uint64_t dst, src;               /* addresses or handles, as the call has them */
  uint64_t dst_pitch, src_pitch;   /* bytes from row to row; 0: not known */
  uint64_t dst_offset, src_offset; /* bytes from there to the first one; not of a 1-D copy */
  uint64_t dst_rows, src_rows;     /* rows from slice to slice; 0: not known */
  uint64_t width, height, depth;   /* bytes, or elements (below); rows; slices */
  uint64_t dst_owner, src_owner;   /* device's number or context's handle, by `owners` */
  uint64_t stream;                 /* as the call has it; 0: the default one */
  uint8_t dst_end, src_end;        /* enum copy_end */
  uint8_t owners;                  /* enum copy_owners */
  uint8_t dimensions;              /* of the function: 1, 2 or 3 */
  bool elements;                   /* width counts elements of the array that takes part */
  bool blocking;                   /* the synchronous form of the function */
} copy_args;

WEIR_INLINE enum copy_end copy_kind_dst(uint64_t kind)
{
  static const uint8_t ends[] = {COPY_HOST, COPY_DEVICE, COPY_HOST, COPY_DEVICE, COPY_EITHER};
  return kind <= WEIR_KIND_DEFAULT ? (enum copy_end)ends[kind] : COPY_BAD_KIND;
}

WEIR_INLINE enum copy_end copy_kind_src(uint64_t kind)
{
  static const uint8_t ends[] = {COPY_HOST, COPY_HOST, COPY_DEVICE, COPY_DEVICE, COPY_EITHER};
  return kind <= WEIR_KIND_DEFAULT ? (enum copy_end)ends[kind] : COPY_BAD_KIND;
}

/* ---- what hooks.tsv names for a copy: each gives its arguments (gen.py, COPIES) -----------------
 *
 * `arrays`: bit 0, the destination is an array; bit 1, the source is. */
WEIR_INLINE copy_args copy_args_plain(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t kind,
                                      uint64_t arrays, uint64_t stream, bool blocking)
{
  return (copy_args){.dst = dst,
                     .src = src,
                     .width = bytes,
                     .height = 1,
                     .depth = 1,
                     .stream = stream,
                     .dst_end = (uint8_t)(arrays & 1 ? COPY_ARRAY : copy_kind_dst(kind)),
                     .src_end = (uint8_t)(arrays & 2 ? COPY_ARRAY : copy_kind_src(kind)),
                     .dimensions = 1,
                     .blocking = blocking};
}

WEIR_INLINE copy_args copy_args_rows(uint64_t dst, uint64_t dst_pitch, uint64_t src,
                                     uint64_t src_pitch, uint64_t width, uint64_t height,
                                     uint64_t kind, uint64_t arrays, uint64_t stream, bool blocking)
{
  copy_args a = copy_args_plain(dst, src, width, kind, arrays, stream, blocking);
  a.dst_pitch = dst_pitch;
  a.src_pitch = src_pitch;
  a.height = height;
  a.dimensions = 2;
  return a;
}

WEIR_INLINE copy_args copy_args_to_symbol(uint64_t symbol, uint64_t src, uint64_t bytes,
                                          uint64_t kind, uint64_t stream, bool blocking)
{
  copy_args a = copy_args_plain(symbol, src, bytes, kind, 0, stream, blocking);
  a.dst_end = COPY_SYMBOL;
  return a;
}

WEIR_INLINE copy_args copy_args_from_symbol(uint64_t dst, uint64_t symbol, uint64_t bytes,
                                            uint64_t kind, uint64_t stream, bool blocking)
{
  copy_args a = copy_args_plain(dst, symbol, bytes, kind, 0, stream, blocking);
  a.src_end = COPY_SYMBOL;
  return a;
}

/* `owners`: enum copy_owners. */
WEIR_INLINE copy_args copy_args_peer(uint64_t dst, uint64_t dst_owner, uint64_t src,
                                     uint64_t src_owner, uint64_t bytes, uint64_t owners,
                                     uint64_t stream, bool blocking)
{
  copy_args a = copy_args_plain(dst, src, bytes, WEIR_KIND_DTOD, 0, stream, blocking);
  a.dst_owner = dst_owner;
  a.src_owner = src_owner;
  a.owners = (uint8_t)owners;
  return a;
}

/* A structure that is NULL is a copy without ends. */
copy_args copy_args_2d(const CUDA_MEMCPY2D *p, uint64_t stream, bool blocking);
copy_args copy_args_2d_v1(const CUDA_MEMCPY2D_v1 *p, uint64_t stream, bool blocking);
copy_args copy_args_3d(const CUDA_MEMCPY3D *p, uint64_t stream, bool blocking);
copy_args copy_args_3d_v1(const CUDA_MEMCPY3D_v1 *p, uint64_t stream, bool blocking);
copy_args copy_args_3d_peer(const CUDA_MEMCPY3D_PEER *p, uint64_t stream, bool blocking);
copy_args copy_args_3d_parms(const struct cudaMemcpy3DParms *p, uint64_t stream, bool blocking);
copy_args copy_args_3d_peer_parms(const struct cudaMemcpy3DPeerParms *p, uint64_t stream,
                                  bool blocking);
copy_args copy_args_batch_op(const CUDA_MEMCPY3D_BATCH_OP *p, uint64_t stream);

#endif
