/* texture.c: texture and surface objects: the driver's, in the runtime's descriptors. */
#include <string.h>
#include "cuda/sim/runtime/rt.h"

static cudaError_t resource_to_driver(const struct cudaResourceDesc *r, CUDA_RESOURCE_DESC *d)
{
  CUDA_ARRAY3D_DESCRIPTOR a = {0};
  cudaError_t e = cudaSuccess;
  memset(d, 0, sizeof *d);
  d->flags = r->flags;
  d->resType = (CUresourcetype)r->resType;
  switch ((int)r->resType) {
  case cudaResourceTypeArray:
    d->res.array.hArray = (CUarray)r->res.array.array;
    break;
  case cudaResourceTypeMipmappedArray:
    d->res.mipmap.hMipmappedArray = (CUmipmappedArray)r->res.mipmap.mipmap;
    break;
  case cudaResourceTypeLinear:
    e = rt_channels_to_driver(&r->res.linear.desc, &a);
    d->res.linear.devPtr = (CUdeviceptr)(uintptr_t)r->res.linear.devPtr;
    d->res.linear.format = a.Format;
    d->res.linear.numChannels = a.NumChannels;
    d->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
    break;
  case cudaResourceTypePitch2D:
    e = rt_channels_to_driver(&r->res.pitch2D.desc, &a);
    d->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)r->res.pitch2D.devPtr;
    d->res.pitch2D.format = a.Format;
    d->res.pitch2D.numChannels = a.NumChannels;
    d->res.pitch2D.width = r->res.pitch2D.width;
    d->res.pitch2D.height = r->res.pitch2D.height;
    d->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
    break;
  default:
    e = cudaErrorInvalidValue;
  }
  return e;
}

static cudaError_t channels_of(CUarray_format format, unsigned channels,
                               struct cudaChannelFormatDesc *out)
{
  const CUDA_ARRAY3D_DESCRIPTOR a = {.Format = format, .NumChannels = channels};
  return rt_channels_of_driver(&a, out);
}

static cudaError_t resource_of_driver(const CUDA_RESOURCE_DESC *d, struct cudaResourceDesc *r)
{
  memset(r, 0, sizeof *r);
  r->flags = d->flags;
  r->resType = (enum cudaResourceType)d->resType;
  switch ((int)d->resType) {
  case CU_RESOURCE_TYPE_ARRAY:
    r->res.array.array = (cudaArray_t)d->res.array.hArray;
    return cudaSuccess;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    r->res.mipmap.mipmap = (cudaMipmappedArray_t)d->res.mipmap.hMipmappedArray;
    return cudaSuccess;
  case CU_RESOURCE_TYPE_LINEAR:
    r->res.linear.devPtr = (void *)(uintptr_t)d->res.linear.devPtr;
    r->res.linear.sizeInBytes = d->res.linear.sizeInBytes;
    return channels_of(d->res.linear.format, d->res.linear.numChannels, &r->res.linear.desc);
  default:
    r->res.pitch2D.devPtr = (void *)(uintptr_t)d->res.pitch2D.devPtr;
    r->res.pitch2D.width = d->res.pitch2D.width;
    r->res.pitch2D.height = d->res.pitch2D.height;
    r->res.pitch2D.pitchInBytes = d->res.pitch2D.pitchInBytes;
    return channels_of(d->res.pitch2D.format, d->res.pitch2D.numChannels, &r->res.pitch2D.desc);
  }
}

static const struct {
  size_t field; /* of cudaTextureDesc, an int */
  unsigned flag, inverted;
} flags[] = {
    {offsetof(struct cudaTextureDesc, readMode), CU_TRSF_READ_AS_INTEGER, 1},
    {offsetof(struct cudaTextureDesc, normalizedCoords), CU_TRSF_NORMALIZED_COORDINATES, 0},
    {offsetof(struct cudaTextureDesc, sRGB), CU_TRSF_SRGB, 0},
    {offsetof(struct cudaTextureDesc, disableTrilinearOptimization),
     CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, 0},
    {offsetof(struct cudaTextureDesc, seamlessCubemap), CU_TRSF_SEAMLESS_CUBEMAP, 0}};

_Static_assert((int)cudaReadModeElementType == 0 && (int)cudaReadModeNormalizedFloat == 1,
               "the read mode is a flag");

static void texture_to_driver(const struct cudaTextureDesc *t, CUDA_TEXTURE_DESC *d)
{
  memset(d, 0, sizeof *d);
  for (int i = 0; i < 3; i++)
    d->addressMode[i] = (CUaddress_mode)t->addressMode[i];
  d->filterMode = (CUfilter_mode)t->filterMode;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    int set = 0;
    memcpy(&set, (const char *)t + flags[i].field, sizeof set);
    if ((set != 0) != (flags[i].inverted != 0)) d->flags |= flags[i].flag;
  }
  d->maxAnisotropy = t->maxAnisotropy;
  d->mipmapFilterMode = (CUfilter_mode)t->mipmapFilterMode;
  d->mipmapLevelBias = t->mipmapLevelBias;
  d->minMipmapLevelClamp = t->minMipmapLevelClamp;
  d->maxMipmapLevelClamp = t->maxMipmapLevelClamp;
  memcpy(d->borderColor, t->borderColor, sizeof d->borderColor);
}

static void texture_of_driver(const CUDA_TEXTURE_DESC *d, struct cudaTextureDesc *t)
{
  memset(t, 0, sizeof *t);
  for (int i = 0; i < 3; i++)
    t->addressMode[i] = (enum cudaTextureAddressMode)d->addressMode[i];
  t->filterMode = (enum cudaTextureFilterMode)d->filterMode;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    int set = ((d->flags & flags[i].flag) != 0) != (flags[i].inverted != 0);
    memcpy((char *)t + flags[i].field, &set, sizeof set);
  }
  t->maxAnisotropy = d->maxAnisotropy;
  t->mipmapFilterMode = (enum cudaTextureFilterMode)d->mipmapFilterMode;
  t->mipmapLevelBias = d->mipmapLevelBias;
  t->minMipmapLevelClamp = d->minMipmapLevelClamp;
  t->maxMipmapLevelClamp = d->maxMipmapLevelClamp;
  memcpy(t->borderColor, d->borderColor, sizeof t->borderColor);
}

/* The two views' descriptors have the same fields. */
_Static_assert(sizeof(struct cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC) &&
                   offsetof(struct cudaResourceViewDesc, lastLayer) ==
                       offsetof(CUDA_RESOURCE_VIEW_DESC, lastLayer),
               "views");

static cudaError_t create_texture(cudaTextureObject_t *object,
                                  const struct cudaResourceDesc *resource,
                                  const struct cudaTextureDesc *how,
                                  const struct cudaResourceViewDesc *view)
{
  CUDA_RESOURCE_DESC r;
  CUDA_TEXTURE_DESC t;
  CUDA_RESOURCE_VIEW_DESC v;
  CUtexObject made = 0;
  if (!object || !resource || !how) return cudaErrorInvalidValue;
  cudaError_t e = resource_to_driver(resource, &r);
  if (e) return e;
  texture_to_driver(how, &t);
  if (view) memcpy(&v, view, sizeof v);
  e = rt_result(rt_drv->TexObjectCreate(&made, &r, &t, view ? &v : NULL));
  if (!e) *object = made;
  return e;
}

static cudaError_t create_surface(cudaSurfaceObject_t *object,
                                  const struct cudaResourceDesc *resource)
{
  CUDA_RESOURCE_DESC r;
  CUsurfObject made = 0;
  if (!object || !resource) return cudaErrorInvalidValue;
  cudaError_t e = resource_to_driver(resource, &r);
  if (!e) e = rt_result(rt_drv->SurfObjectCreate(&made, &r));
  if (!e) *object = made;
  return e;
}

static cudaError_t resource_of(struct cudaResourceDesc *out, CUresult error,
                               const CUDA_RESOURCE_DESC *r)
{
  if (error) return rt_result(error);
  return out ? resource_of_driver(r, out) : cudaErrorInvalidValue;
}

static cudaError_t texture_resource(struct cudaResourceDesc *out, cudaTextureObject_t object)
{
  CUDA_RESOURCE_DESC r;
  CUresult error = rt_drv->TexObjectGetResourceDesc(&r, object);
  return resource_of(out, error, &r);
}

static cudaError_t surface_resource(struct cudaResourceDesc *out, cudaSurfaceObject_t object)
{
  CUDA_RESOURCE_DESC r;
  CUresult error = rt_drv->SurfObjectGetResourceDesc(&r, object);
  return resource_of(out, error, &r);
}

static cudaError_t texture_how(struct cudaTextureDesc *out, cudaTextureObject_t object)
{
  CUDA_TEXTURE_DESC t;
  cudaError_t e = rt_result(rt_drv->TexObjectGetTextureDesc(&t, object));
  if (e || !out) return e ? e : cudaErrorInvalidValue;
  texture_of_driver(&t, out);
  return cudaSuccess;
}

static cudaError_t linear_width(size_t *texels, const struct cudaChannelFormatDesc *channels,
                                int device)
{
  CUDA_ARRAY3D_DESCRIPTOR a;
  CUdevice handle;
  if (!texels || !channels) return cudaErrorInvalidValue;
  cudaError_t e = rt_channels_to_driver(channels, &a);
  if (!e) e = rt_handle(device, &handle);
  if (e) return e;
  return rt_result(
      rt_drv->DeviceGetTexture1DLinearMaxWidth(texels, a.Format, a.NumChannels, handle));
}

RT_BODY(cudaCreateTextureObject, create_texture(pTexObject, pResDesc, pTexDesc, pResViewDesc))
RT_BODY(cudaGetTextureObjectResourceDesc, texture_resource(pResDesc, texObject))
RT_BODY(cudaGetTextureObjectTextureDesc, texture_how(pTexDesc, texObject))
RT_BODY(cudaCreateSurfaceObject, create_surface(pSurfObject, pResDesc))
RT_BODY(cudaGetSurfaceObjectResourceDesc, surface_resource(pResDesc, surfObject))
RT_BODY(cudaDeviceGetTexture1DLinearMaxWidth, linear_width(maxWidthInElements, fmtDesc, device))
