/* texture.c: texture and surface objects.
 *
 * A handle is the address of a struct weir_texture (weir_texture.h), through which twins read and
 * write its memory; next to it are the descriptors it was made from. Nothing is checked
 * when a twin uses an object: memory that is gone by then is an illegal address, as it would be. */
#include "cuda/sim/internal.h"
#include "cuda/sim/weir_texture.h"

#include <string.h>

struct texture {
  struct weir_texture is; /* first: its magic is the arena's */
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC how;
  CUDA_RESOURCE_VIEW_DESC view;
  bool viewed; /* a view was given */
};

static struct sim_arena textures = SIM_ARENA(struct texture, SIM_TEXTURE);
static struct sim_arena surfaces = SIM_ARENA(struct texture, SIM_SURFACE);

_Static_assert((int)SIM_TEXTURE == (int)WEIR_TEXTURE_MAGIC &&
                   (int)SIM_SURFACE == (int)WEIR_SURFACE_MAGIC,
               "twins know an object by its magic");
_Static_assert((int)CU_TR_ADDRESS_MODE_WRAP == (int)WEIR_WRAP &&
                   (int)CU_TR_ADDRESS_MODE_CLAMP == (int)WEIR_CLAMP &&
                   (int)CU_TR_ADDRESS_MODE_MIRROR == (int)WEIR_MIRROR &&
                   (int)CU_TR_ADDRESS_MODE_BORDER == (int)WEIR_BORDER,
               "address modes are CUDA's");

/* ---- what an object is ---------------------------------------------------------------- */

static CUresult set_format(struct weir_texture *t, CUarray_format format, unsigned channels)
{
  static const struct {
    CUarray_format format;
    uint32_t kind, bits;
  } known[] = {
      {CU_AD_FORMAT_UNSIGNED_INT8, WEIR_UINT, 8},   {CU_AD_FORMAT_UNSIGNED_INT16, WEIR_UINT, 16},
      {CU_AD_FORMAT_UNSIGNED_INT32, WEIR_UINT, 32}, {CU_AD_FORMAT_SIGNED_INT8, WEIR_SINT, 8},
      {CU_AD_FORMAT_SIGNED_INT16, WEIR_SINT, 16},   {CU_AD_FORMAT_SIGNED_INT32, WEIR_SINT, 32},
      {CU_AD_FORMAT_HALF, WEIR_FLOAT, 16},          {CU_AD_FORMAT_FLOAT, WEIR_FLOAT, 32}};
  if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (known[i].format != format) continue;
    t->kind = known[i].kind;
    t->bits = known[i].bits;
    t->channels = channels;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED; /* video and compressed formats */
}

static CUresult point_at_array(struct weir_texture *t, CUarray a)
{
  if (!sim_arena_has(&sim_arrays, a)) return CUDA_ERROR_INVALID_HANDLE;
  bool layered = a->shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  t->start = (char *)a->start;
  t->size[0] = a->shape.Width;
  t->size[1] = a->rows;
  t->size[2] = layered ? 1 : a->slices;
  t->layers = layered ? a->slices : 1;
  t->pitch = a->pitch;
  t->plane = a->pitch * a->rows;
  return set_format(t, a->shape.Format, a->shape.NumChannels);
}

static int texture_attribute(CUdevice_attribute a)
{
  return sim_device_attribute(sim_current()->device, a);
}

/* Memory that a device can reach, all of it one piece. */
static bool is_memory(CUdeviceptr p, size_t bytes)
{
  uint32_t readers, writers;
  SIM_HOLD(sim_memory_lock);
  return bytes && sim_range_reach(p, bytes, &readers, &writers);
}

static CUresult point_at_memory(struct weir_texture *t, CUdeviceptr p, size_t bytes)
{
  if (p % (size_t)texture_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) || !is_memory(p, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  t->start = (char *)p;
  t->layers = 1;
  return CUDA_SUCCESS;
}

static CUresult point_at_linear(struct weir_texture *t, const CUDA_RESOURCE_DESC *r)
{
  CUresult error = set_format(t, r->res.linear.format, r->res.linear.numChannels);
  if (error) return error;
  uint64_t texels = r->res.linear.sizeInBytes / weir_texture_bytes(t);
  if (texels > (uint64_t)texture_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH))
    return CUDA_ERROR_INVALID_VALUE;
  t->size[0] = texels;
  t->size[1] = t->size[2] = 1;
  return point_at_memory(t, r->res.linear.devPtr, r->res.linear.sizeInBytes);
}

static CUresult point_at_pitch(struct weir_texture *t, const CUDA_RESOURCE_DESC *r)
{
  size_t width = r->res.pitch2D.width, height = r->res.pitch2D.height;
  size_t pitch = r->res.pitch2D.pitchInBytes;
  CUresult error = set_format(t, r->res.pitch2D.format, r->res.pitch2D.numChannels);
  if (error) return error;
  if (!width || !height ||
      width > (size_t)texture_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
      height > (size_t)texture_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
      pitch > (size_t)texture_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
      pitch % (size_t)texture_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) ||
      pitch < width * weir_texture_bytes(t))
    return CUDA_ERROR_INVALID_VALUE;
  t->size[0] = width;
  t->size[1] = height;
  t->size[2] = 1;
  t->pitch = pitch;
  return point_at_memory(t, r->res.pitch2D.devPtr,
                         (height - 1) * pitch + width * weir_texture_bytes(t));
}

static CUresult point_at(struct weir_texture *t, const CUDA_RESOURCE_DESC *r)
{
  if (r->flags) return CUDA_ERROR_INVALID_VALUE;
  switch ((int)r->resType) {
  case CU_RESOURCE_TYPE_ARRAY:
    return point_at_array(t, r->res.array.hArray);
  case CU_RESOURCE_TYPE_LINEAR:
    return point_at_linear(t, r);
  case CU_RESOURCE_TYPE_PITCH2D:
    return point_at_pitch(t, r);
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/* How it is read. Of a linear texture nothing but the promotion counts. */
static CUresult set_reading(struct weir_texture *t, const CUDA_TEXTURE_DESC *how, bool linear)
{
  const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                         CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
  if (how->flags & ~known || (unsigned)how->filterMode > CU_TR_FILTER_MODE_LINEAR)
    return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; i++)
    if ((unsigned)how->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
  if (how->flags & CU_TRSF_SRGB) return CUDA_ERROR_NOT_SUPPORTED;
  t->promoted = t->kind != WEIR_FLOAT && t->bits < 32 && !(how->flags & CU_TRSF_READ_AS_INTEGER);
  if (linear) return CUDA_SUCCESS;
  t->normalized = (how->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  t->linear = how->filterMode == CU_TR_FILTER_MODE_LINEAR;
  /* "only ... if the texture is configured to return floating-point data" */
  if (t->linear && t->kind != WEIR_FLOAT && !t->promoted) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; i++)
    t->address[i] = how->addressMode[i];
  memcpy(t->border, how->borderColor, sizeof t->border);
  return CUDA_SUCCESS;
}

/* A view that shows all of the resource as it is; what changes its format is not done. */
static CUresult check_view(const CUDA_RESOURCE_DESC *r, const CUDA_RESOURCE_VIEW_DESC *view)
{
  if (!view) return CUDA_SUCCESS;
  if (r->resType != CU_RESOURCE_TYPE_ARRAY && r->resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  return view->format == CU_RES_VIEW_FORMAT_NONE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- texture objects ------------------------------------------------------------------------- */

CUresult sim_cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view)
{
  SIM_NEED_CURRENT();
  if (!object || !resource || !how) return CUDA_ERROR_INVALID_VALUE;
  struct texture t = {.resource = *resource, .how = *how, .viewed = view != NULL};
  if (view) t.view = *view;
  CUresult error = check_view(resource, view);
  if (!error) error = point_at(&t.is, resource);
  if (!error) error = set_reading(&t.is, how, resource->resType == CU_RESOURCE_TYPE_LINEAR);
  if (error) return error;
  struct texture *made = sim_arena_new(&textures);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  t.is.magic = SIM_TEXTURE;
  *made = t;
  *object = (CUtexObject)(uintptr_t)made;
  return CUDA_SUCCESS;
}

#define NEED_OBJECT(arena, t, object)                                                              \
  SIM_NEED_CONTEXT(c);                                                                             \
  (void)c;                                                                                         \
  struct texture *t = (struct texture *)(uintptr_t)(object);                                       \
  if (!sim_arena_has(arena, t)) return CUDA_ERROR_INVALID_VALUE

CUresult sim_cuTexObjectDestroy(CUtexObject object)
{
  NEED_OBJECT(&textures, t, object);
  sim_arena_free(&textures, t);
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuTexObjectGetResourceDesc, NEED_OBJECT(&textures, t, texObject);
           SIM_NEED(pResDesc), *pResDesc, t->resource)
SIM_ASSIGN(cuTexObjectGetTextureDesc, NEED_OBJECT(&textures, t, texObject);
           SIM_NEED(pTexDesc), *pTexDesc, t->how)

/* "If no resource view was specified, the ::CUDA_RESOURCE_VIEW_DESC" cannot be returned. */
SIM_ASSIGN(cuTexObjectGetResourceViewDesc, NEED_OBJECT(&textures, t, texObject);
           SIM_NEED(pResViewDesc && t->viewed), *pResViewDesc, t->view)

CUresult sim_cuDeviceGetTexture1DLinearMaxWidth(size_t *texels, CUarray_format format,
                                                unsigned channels, CUdevice dev)
{
  struct weir_texture t;
  struct sim_device *d = sim_device(dev);
  if (!texels) return CUDA_ERROR_INVALID_VALUE;
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  CUresult error = set_format(&t, format, channels);
  if (error) return CUDA_ERROR_INVALID_VALUE;
  *texels = (size_t)sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
  return CUDA_SUCCESS;
}

/* ---- surface objects ------------------------------------------------------------------------- */

/* CUDA_ARRAY3D_SURFACE_LDST: "must be set in order to bind a surface reference to the CUDA array".
 */
CUresult sim_cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
  SIM_NEED_CURRENT();
  if (!object || !resource || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  struct texture t = {.resource = *resource};
  CUresult error = point_at(&t.is, resource);
  if (error) return error;
  if (!(resource->res.array.hArray->shape.Flags & CUDA_ARRAY3D_SURFACE_LDST))
    return CUDA_ERROR_INVALID_VALUE;
  struct texture *made = sim_arena_new(&surfaces);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  t.is.magic = SIM_SURFACE;
  *made = t;
  *object = (CUsurfObject)(uintptr_t)made;
  return CUDA_SUCCESS;
}

CUresult sim_cuSurfObjectDestroy(CUsurfObject object)
{
  NEED_OBJECT(&surfaces, t, object);
  sim_arena_free(&surfaces, t);
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuSurfObjectGetResourceDesc, NEED_OBJECT(&surfaces, t, surfObject);
           SIM_NEED(pResDesc), *pResDesc, t->resource)
