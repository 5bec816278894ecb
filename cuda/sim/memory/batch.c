/* batch.c: several copies in one call. "The batch as a whole executes in stream order but copies
 * within a batch are not guaranteed to execute in any specific order": here they do, one operation
 * each. All are checked before the first is queued; a batch that is captured is a node each. */
#include "cuda/sim/internal.h"

#include <stdlib.h>

struct batch {
  CUstream stream;
  struct sim_op **op; /* of the copies, not queued yet */
  size_t count;
};

static CUresult batch_start(struct batch *b, CUstream handle, size_t count)
{
  *b = (struct batch){0};
  CUresult error = sim_stream_find(handle, &b->stream);
  if (error) return error;
  /* "The stream to enqueue the operations in. Must not be legacy NULL stream." */
  if (!count || b->stream == b->stream->context->legacy) return CUDA_ERROR_INVALID_VALUE;
  b->op = calloc(count, sizeof(void *));
  return b->op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult batch_add(struct batch *b, const CUDA_MEMCPY3D *p, CUmemcpySrcAccessOrder order,
                          unsigned flags)
{
  if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
      flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)
    return CUDA_ERROR_INVALID_VALUE;
  if (sim_capturing(b->stream)) {
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    node.memcpy.copyCtx = b->stream->context;
    node.memcpy.copyParams = *p;
    return sim_capture_add(b->stream, &node);
  }
  bool now = order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  CUresult error = sim_copy_op(p, b->stream, now, &b->op[b->count]);
  if (!error) b->count++;
  return error;
}

/* Queues the batch, or, after an error, forgets it. */
static CUresult batch_end(struct batch *b, CUresult error)
{
  for (size_t i = 0; i < b->count; i++) {
    if (error)
      sim_op_free(b->op[i]);
    else
      error = sim_copy_submit(b->op[i], b->stream);
  }
  free(b->op);
  return error;
}

static CUDA_MEMCPY3D line_params(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
  return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = src,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = dst,
                         .WidthInBytes = bytes,
                         .Height = 1,
                         .Depth = 1};
}

/* "The first entry in attrsIdxs must always be 0. Also, each entry must be greater than the
 * previous entry and the last entry should be less than count." */
static bool indices_fit(const size_t *index, size_t indices, size_t count)
{
  if (!indices || indices > count || !index || index[0]) return false;
  for (size_t i = 1; i < indices; i++)
    if (index[i] <= index[i - 1] || index[i] >= count) return false;
  return true;
}

CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attrs, size_t *index, size_t indices,
                                size_t *failed, CUstream stream)
{
  struct batch b;
  if (failed) *failed = SIZE_MAX;
  if (!dsts || !srcs || !sizes || !attrs || !indices_fit(index, indices, count))
    return CUDA_ERROR_INVALID_VALUE;
  CUresult error = batch_start(&b, stream, count);
  for (size_t i = 0, a = 0; i < count && !error; i++) {
    if (a + 1 < indices && index[a + 1] == i) a++;
    CUDA_MEMCPY3D p = line_params(dsts[i], srcs[i], sizes[i]);
    error = batch_add(&b, &p, attrs[a].srcAccessOrder, attrs[a].flags);
    if (error && failed) *failed = i;
  }
  return batch_end(&b, error);
}

SIM_ENTRY(cuMemcpyBatchAsync_v2, sim_cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs,
                                                        numAttrs, NULL, hStream))

/* ---- boxes ----------------------------------------------------------------------------------- */

struct operand { /* as CUDA_MEMCPY3D states it */
  CUmemorytype type;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z, pitch, rows;
};

/* "When either of these values is zero, that aspect of the operand is considered to be tightly
 * packed according to the copy extent." */
static bool read_operand(const CUmemcpy3DOperand *o, const CUextent3D *e, size_t element,
                         struct operand *out)
{
  *out = (struct operand){.type = CU_MEMORYTYPE_UNIFIED};
  if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    out->type = CU_MEMORYTYPE_ARRAY;
    out->array = o->op.array.array;
    out->x = o->op.array.offset.x * element;
    out->y = o->op.array.offset.y;
    out->z = o->op.array.offset.z;
    return true;
  }
  size_t row = o->op.ptr.rowLength, layer = o->op.ptr.layerHeight;
  if (o->type != CU_MEMCPY_OPERAND_TYPE_POINTER || (row && row < e->width) ||
      (layer && layer < e->height))
    return false;
  out->device = o->op.ptr.ptr;
  out->pitch = (row ? row : e->width) * element;
  out->rows = layer ? layer : e->height;
  return true;
}

static size_t batch_element(const CUmemcpy3DOperand *o)
{
  bool array =
      o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY && sim_arena_has(&sim_arrays, o->op.array.array);
  return array ? o->op.array.array->element : 0;
}

static CUresult read_box(const CUDA_MEMCPY3D_BATCH_OP *b, CUDA_MEMCPY3D *p)
{
  struct operand src, dst;
  size_t from = batch_element(&b->src), to = batch_element(&b->dst);
  size_t element = from ? from : to ? to : 1;
  if (from && to && from != to) return CUDA_ERROR_INVALID_VALUE;
  if (!b->extent.width || !b->extent.height || !b->extent.depth) return CUDA_ERROR_INVALID_VALUE;
  if (!read_operand(&b->src, &b->extent, element, &src) ||
      !read_operand(&b->dst, &b->extent, element, &dst))
    return CUDA_ERROR_INVALID_VALUE;
  *p = (CUDA_MEMCPY3D){.srcXInBytes = src.x,
                       .srcY = src.y,
                       .srcZ = src.z,
                       .srcMemoryType = src.type,
                       .srcDevice = src.device,
                       .srcArray = src.array,
                       .srcPitch = src.pitch,
                       .srcHeight = src.rows,
                       .dstXInBytes = dst.x,
                       .dstY = dst.y,
                       .dstZ = dst.z,
                       .dstMemoryType = dst.type,
                       .dstDevice = dst.device,
                       .dstArray = dst.array,
                       .dstPitch = dst.pitch,
                       .dstHeight = dst.rows,
                       .WidthInBytes = b->extent.width * element,
                       .Height = b->extent.height,
                       .Depth = b->extent.depth};
  return CUDA_SUCCESS;
}

CUresult sim_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                                  unsigned long long flags, CUstream stream)
{
  struct batch b;
  if (failed) *failed = SIZE_MAX;
  if (!list || flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = batch_start(&b, stream, count);
  for (size_t i = 0; i < count && !error; i++) {
    CUDA_MEMCPY3D p;
    error = read_box(&list[i], &p);
    if (!error) error = batch_add(&b, &p, list[i].srcAccessOrder, list[i].flags);
    if (error && failed) *failed = i;
  }
  return batch_end(&b, error);
}

SIM_ENTRY(cuMemcpy3DBatchAsync_v2, sim_cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream))
