/* array.c: CUDA arrays: a channel description is the driver's format and channel count. */
#include "cuda/sim/runtime/rt.h"

/* Formats: F(bits of a channel, kind of the runtime, format of the driver). */
#define FORMAT_MAP(F)                                                                              \
  F(8, Unsigned, UNSIGNED_INT8)                                                                    \
  F(16, Unsigned, UNSIGNED_INT16)                                                                  \
  F(32, Unsigned, UNSIGNED_INT32)                                                                  \
  F(8, Signed, SIGNED_INT8)                                                                        \
  F(16, Signed, SIGNED_INT16)                                                                      \
  F(32, Signed, SIGNED_INT32)                                                                      \
  F(16, Float, HALF)                                                                               \
  F(32, Float, FLOAT)

/* Channels of one width, x first, none between unused: 1, 2 or 4 of them. */
cudaError_t rt_channels_to_driver(const struct cudaChannelFormatDesc *c, CUDA_ARRAY3D_DESCRIPTOR *a)
{
  const int width[4] = {c->x, c->y, c->z, c->w};
  unsigned int n = 0;
  while (n < 4 && width[n] == c->x && c->x > 0)
    n++;
  for (unsigned int i = n; i < 4; i++)
    if (width[i] != 0) return cudaErrorInvalidChannelDescriptor;
  if (n != 1 && n != 2 && n != 4) return cudaErrorInvalidChannelDescriptor;
  a->NumChannels = n;
#define F(bits, kind, format)                                                                      \
  if (c->x == bits && c->f == cudaChannelFormatKind##kind) {                                       \
    a->Format = CU_AD_FORMAT_##format;                                                             \
    return cudaSuccess;                                                                            \
  }
  FORMAT_MAP(F)
#undef F
  return cudaErrorInvalidChannelDescriptor;
}

cudaError_t rt_channels_of_driver(const CUDA_ARRAY3D_DESCRIPTOR *a, struct cudaChannelFormatDesc *c)
{
  int n = (int)a->NumChannels;
  switch ((int)a->Format) {
#define F(bits, kind, format)                                                                      \
  case CU_AD_FORMAT_##format:                                                                      \
    *c = (struct cudaChannelFormatDesc){bits, n > 1 ? bits : 0, n > 2 ? bits : 0,                  \
                                        n > 3 ? bits : 0, cudaChannelFormatKind##kind};            \
    return cudaSuccess;
    FORMAT_MAP(F)
#undef F
  default:
    return cudaErrorInvalidChannelDescriptor;
  }
}

static cudaError_t allocate_array(cudaArray_t *out, const struct cudaChannelFormatDesc *channels,
                                  struct cudaExtent extent, unsigned int flags)
{
  CUDA_ARRAY3D_DESCRIPTOR a = {
      .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
  CUarray array = NULL;
  if (!out || !channels) return cudaErrorInvalidValue;
  cudaError_t e = rt_channels_to_driver(channels, &a);
  if (e) return e;
  if (flags == 0 && extent.depth == 0) {
    CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = a.Width, .Height = a.Height, .Format = a.Format, .NumChannels = a.NumChannels};
    e = rt_result(rt_drv->ArrayCreate(&array, &flat));
  } else {
    e = rt_result(rt_drv->Array3DCreate(&array, &a));
  }
  if (!e) *out = (cudaArray_t)array;
  return e;
}

static cudaError_t describe_array(struct cudaChannelFormatDesc *channels, struct cudaExtent *extent,
                                  unsigned int *flags, cudaArray_const_t array)
{
  CUDA_ARRAY3D_DESCRIPTOR a;
  if (!array) return cudaErrorInvalidResourceHandle;
  cudaError_t e = rt_result(rt_drv->Array3DGetDescriptor(&a, (CUarray)(uintptr_t)array));
  if (e) return e;
  if (extent) *extent = (struct cudaExtent){a.Width, a.Height, a.Depth};
  if (flags) *flags = a.Flags;
  return channels ? rt_channels_of_driver(&a, channels) : cudaSuccess;
}

RT_BODY(cudaMallocArray, allocate_array(array, desc, (struct cudaExtent){width, height, 0}, flags))
RT_BODY(cudaMalloc3DArray, allocate_array(array, desc, extent, flags))
RT_BODY(cudaFreeArray, array ? rt_result(rt_drv->ArrayDestroy((CUarray)array)) : cudaSuccess)
RT_BODY(cudaArrayGetInfo, describe_array(desc, extent, flags, array))
RT_BODY(cudaGetChannelDesc, desc ? describe_array(desc, NULL, NULL, array) : cudaErrorInvalidValue)

RT_API struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                    enum cudaChannelFormatKind f)
{
  return (struct cudaChannelFormatDesc){x, y, z, w, f};
}
