/* array.c: CUDA arrays: memory whose layout is ours, reached by copies only.
 *
 * Here an array is rows without gaps, planes without gaps: element (x, y, z) is at
 * ((z * rows + y) * width + x) * element bytes. Layers and cube faces are planes. */
#include "cuda/sim/internal.h"

static size_t format_bytes(CUarray_format format)
{
  switch ((int)format) {
  case CU_AD_FORMAT_UNSIGNED_INT8:
  case CU_AD_FORMAT_SIGNED_INT8:
    return 1;
  case CU_AD_FORMAT_UNSIGNED_INT16:
  case CU_AD_FORMAT_SIGNED_INT16:
  case CU_AD_FORMAT_HALF:
    return 2;
  case CU_AD_FORMAT_UNSIGNED_INT32:
  case CU_AD_FORMAT_SIGNED_INT32:
  case CU_AD_FORMAT_FLOAT:
    return 4;
  default:
    return 0; /* not supported: video and compressed formats */
  }
}

CUresult sim_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
  SIM_SAFE();
  SIM_NEED_CONTEXT(c);
  if (!array || !shape || !shape->Width) return CUDA_ERROR_INVALID_VALUE;
  unsigned n = shape->NumChannels;
  if (n != 1 && n != 2 && n != 4) return CUDA_ERROR_INVALID_VALUE;
  if (shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
    return CUDA_ERROR_NOT_SUPPORTED;
  size_t element = format_bytes(shape->Format) * n;
  if (!element) return CUDA_ERROR_NOT_SUPPORTED;
  size_t rows = shape->Height ? shape->Height : 1, slices = shape->Depth ? shape->Depth : 1;
  size_t pitch, plane, bytes;
  if (__builtin_mul_overflow(shape->Width, element, &pitch) ||
      __builtin_mul_overflow(pitch, rows, &plane) || __builtin_mul_overflow(plane, slices, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  CUarray a = sim_arena_new(&sim_arrays);
  if (!a) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&sim_memory_lock);
  do
    a->start = sim_heap_alloc(c->device, bytes, &a->reserved);
  while (!a->start && sim_memory_shrink(c->device));
  pthread_mutex_unlock(&sim_memory_lock);
  if (!a->start) {
    sim_arena_free(&sim_arrays, a);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  a->context = c;
  sim_context_ref(c);
  a->shape = *shape;
  a->element = element;
  a->pitch = pitch;
  a->rows = rows;
  a->slices = slices;
  *array = a;
  return CUDA_SUCCESS;
}

CUresult sim_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape)
{
  if (!shape) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR flat = {.Width = shape->Width,
                                  .Height = shape->Height,
                                  .Format = shape->Format,
                                  .NumChannels = shape->NumChannels};
  return sim_cuArray3DCreate_v2(array, &flat);
}

CUresult sim_cuArrayDestroy(CUarray a)
{
  SIM_SAFE();
  if (!sim_arena_has(&sim_arrays, a)) return CUDA_ERROR_INVALID_HANDLE;
  CUresult error = sim_context_wait(a->context); /* as cuMemFree */
  if (error && error != CUDA_ERROR_CONTEXT_IS_DESTROYED) return error;
  pthread_mutex_lock(&sim_memory_lock);
  sim_heap_free(a->context->device, a->start, a->reserved);
  pthread_mutex_unlock(&sim_memory_lock);
  sim_context_unref(a->context);
  sim_arena_free(&sim_arrays, a);
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuArray3DGetDescriptor_v2, SIM_NEED(pArrayDescriptor);
           SIM_NEED_HANDLE(sim_arrays, hArray), *pArrayDescriptor, hArray->shape)
SIM_ASSIGN(cuArrayGetDescriptor_v2, SIM_NEED(pArrayDescriptor);
           SIM_NEED_HANDLE(sim_arrays, hArray), *pArrayDescriptor,
           (CUDA_ARRAY_DESCRIPTOR){.Width = hArray->shape.Width,
                                   .Height = hArray->shape.Height,
                                   .Format = hArray->shape.Format,
                                   .NumChannels = hArray->shape.NumChannels})
