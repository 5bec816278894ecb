/* copy_args.c: copies that are described by a structure (copy_args.h). */
#include "interpose/record/copy_args.h"

#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))

static const copy_args no_copy = {.dst_end = COPY_NONE, .src_end = COPY_NONE};

static copy_args without_ends(uint64_t stream, bool blocking)
{
  copy_args a = no_copy;
  a.stream = stream;
  a.blocking = blocking;
  return a;
}

static enum copy_end typed_end(CUmemorytype type)
{
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    return COPY_HOST;
  case CU_MEMORYTYPE_ARRAY:
    return COPY_ARRAY;
  case CU_MEMORYTYPE_DEVICE:
    return COPY_DEVICE;
  default:
    return COPY_EITHER; /* CU_MEMORYTYPE_UNIFIED */
  }
}

/* A pitch of 0 is that of rows without a gap. */
#define TYPED_END(a, p, end)                                                                       \
  (a).end##_end = (uint8_t)typed_end((p)->end##MemoryType);                                        \
  (a).end = (a).end##_end == COPY_HOST    ? ADDRESS((p)->end##Host)                                \
            : (a).end##_end == COPY_ARRAY ? ADDRESS((p)->end##Array)                               \
                                          : (p)->end##Device;                                      \
  (a).end##_pitch = (p)->end##Pitch ? (p)->end##Pitch : (p)->WidthInBytes;                         \
  (a).end##_offset = (p)->end##Y * (a).end##_pitch + (p)->end##XInBytes

/* What three dimensions add to it. */
#define TYPED_SLICES(a, p, end)                                                                    \
  (a).end##_rows = (p)->end##Height ? (p)->end##Height : (p)->Height;                              \
  (a).end##_offset += (p)->end##Z * (a).end##_pitch * (a).end##_rows

/* CUDA_MEMCPY2D, 3D and 3D_PEER, of either ABI: the names of their fields are the same. */
#define TYPED_STRUCTURE(name, type, slices, sides, ...)                                            \
  copy_args copy_args_##name(const type *p, uint64_t stream, bool blocking)                        \
  {                                                                                                \
    copy_args a = without_ends(stream, blocking);                                                  \
    if (!p) return a;                                                                              \
    TYPED_END(a, p, dst);                                                                          \
    TYPED_END(a, p, src);                                                                          \
    a.width = p->WidthInBytes;                                                                     \
    a.height = p->Height;                                                                          \
    a.depth = slices;                                                                              \
    a.dimensions = sides;                                                                          \
    __VA_ARGS__                                                                                    \
    return a;                                                                                      \
  }

TYPED_STRUCTURE(2d, CUDA_MEMCPY2D, 1, 2, )
TYPED_STRUCTURE(2d_v1, CUDA_MEMCPY2D_v1, 1, 2, )
TYPED_STRUCTURE(3d, CUDA_MEMCPY3D, p->Depth, 3, TYPED_SLICES(a, p, dst); TYPED_SLICES(a, p, src);)
TYPED_STRUCTURE(3d_v1, CUDA_MEMCPY3D_v1, p->Depth, 3, TYPED_SLICES(a, p, dst);
                TYPED_SLICES(a, p, src);)
TYPED_STRUCTURE(3d_peer, CUDA_MEMCPY3D_PEER, p->Depth, 3, TYPED_SLICES(a, p, dst);
                TYPED_SLICES(a, p, src); a.owners = COPY_CONTEXTS;
                a.dst_owner = ADDRESS(p->dstContext); a.src_owner = ADDRESS(p->srcContext);)

/* The runtime's extent is in bytes, or in elements of the array where one takes part. */
#define PARMS(a, p, kind_of_dst, kind_of_src)                                                      \
  (a).dst = ADDRESS((p)->dstArray ? (const void *)(p)->dstArray : (p)->dstPtr.ptr);                \
  (a).src = ADDRESS((p)->srcArray ? (const void *)(p)->srcArray : (p)->srcPtr.ptr);                \
  (a).dst_end = (uint8_t)((p)->dstArray ? COPY_ARRAY : (kind_of_dst));                             \
  (a).src_end = (uint8_t)((p)->srcArray ? COPY_ARRAY : (kind_of_src));                             \
  (a).dst_pitch = (p)->dstPtr.pitch;                                                               \
  (a).src_pitch = (p)->srcPtr.pitch;                                                               \
  (a).width = (p)->extent.width;                                                                   \
  (a).height = (p)->extent.height;                                                                 \
  (a).depth = (p)->extent.depth;                                                                   \
  (a).dimensions = 3;                                                                              \
  (a).elements = (p)->dstArray || (p)->srcArray

copy_args copy_args_3d_parms(const struct cudaMemcpy3DParms *p, uint64_t stream, bool blocking)
{
  copy_args a = without_ends(stream, blocking);
  if (!p) return a;
  PARMS(a, p, copy_kind_dst(p->kind), copy_kind_src(p->kind));
  return a;
}

copy_args copy_args_3d_peer_parms(const struct cudaMemcpy3DPeerParms *p, uint64_t stream,
                                  bool blocking)
{
  copy_args a = without_ends(stream, blocking);
  if (!p) return a;
  PARMS(a, p, COPY_DEVICE, COPY_DEVICE);
  a.owners = COPY_DEVICES;
  a.dst_owner = (unsigned)p->dstDevice;
  a.src_owner = (unsigned)p->srcDevice;
  return a;
}

static uint64_t operand(const CUmemcpy3DOperand *o, uint8_t *end, uint64_t *pitch, uint64_t *rows)
{
  bool array = o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
  *end = array ? COPY_ARRAY : COPY_EITHER;
  *pitch = array ? 0 : o->op.ptr.rowLength;
  *rows = array ? 0 : o->op.ptr.layerHeight;
  return array ? ADDRESS(o->op.array.array) : o->op.ptr.ptr;
}

copy_args copy_args_batch_op(const CUDA_MEMCPY3D_BATCH_OP *p, uint64_t stream)
{
  copy_args a = without_ends(stream, false);
  a.dst = operand(&p->dst, &a.dst_end, &a.dst_pitch, &a.dst_rows);
  a.src = operand(&p->src, &a.src_end, &a.src_pitch, &a.src_rows);
  a.width = p->extent.width;
  a.height = p->extent.height;
  a.depth = p->extent.depth;
  a.dimensions = 3;
  a.elements = a.dst_end == COPY_ARRAY || a.src_end == COPY_ARRAY;
  return a;
}
