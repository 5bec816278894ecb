/* copy.c: copies and memsets in one, two and three dimensions, between pointers, arrays and
 * symbols.
 *
 * The direction a caller states picks the driver call (and so what a trace states);
 * cudaMemcpyDefault and host to host leave it to the driver, which knows every address. A shape
 * that is one driver call makes one; only a copy into part of an array's rows, given as a run of
 * bytes, can need up to three. */
#include "cuda/sim/runtime/rt.h"

#define DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))

/* Where a call runs: the flavour's functions, and how. */
struct how {
  const struct rt_driver *d;
  bool async;          /* queue on `stream` and return */
  cudaStream_t stream; /* read when async */
};

#define SYNC  ((struct how){.d = d})
#define ASYNC ((struct how){.d = d, .async = true, .stream = stream})

/* The entry point that waits and the one that does not; both are a call of `function`, which takes
 * how they do it first. */
#define RT_PAIR(name, function, ...)                                                               \
  RT_BODY_BOTH(name, _ptds, function(SYNC, __VA_ARGS__))                                           \
  RT_BODY_BOTH(name##Async, _ptsz, function(ASYNC, __VA_ARGS__))

/* ---- one dimension --------------------------------------------------------------------------- */

static cudaError_t copy_linear(struct how h, void *dst, const void *src, size_t n,
                               enum cudaMemcpyKind kind)
{
  const struct rt_driver *d = h.d;
  switch (kind) {
  case cudaMemcpyHostToDevice:
    return rt_result(h.async ? d->MemcpyHtoDAsync(DEVICE(dst), src, n, h.stream)
                             : d->MemcpyHtoD(DEVICE(dst), src, n));
  case cudaMemcpyDeviceToHost:
    return rt_result(h.async ? d->MemcpyDtoHAsync(dst, DEVICE(src), n, h.stream)
                             : d->MemcpyDtoH(dst, DEVICE(src), n));
  case cudaMemcpyDeviceToDevice:
    return rt_result(h.async ? d->MemcpyDtoDAsync(DEVICE(dst), DEVICE(src), n, h.stream)
                             : d->MemcpyDtoD(DEVICE(dst), DEVICE(src), n));
  case cudaMemcpyHostToHost:
  case cudaMemcpyDefault:
    return rt_result(h.async ? d->MemcpyAsync(DEVICE(dst), DEVICE(src), n, h.stream)
                             : d->Memcpy(DEVICE(dst), DEVICE(src), n));
  default:
    return cudaErrorInvalidMemcpyDirection;
  }
}

static cudaError_t set_bytes(struct how h, void *dst, int value, size_t n)
{
  unsigned char byte = (unsigned char)value;
  return rt_result(h.async ? h.d->MemsetD8Async(DEVICE(dst), byte, n, h.stream)
                           : h.d->MemsetD8(DEVICE(dst), byte, n));
}

RT_PAIR(cudaMemcpy, copy_linear, dst, src, count, kind)
RT_PAIR(cudaMemset, set_bytes, devPtr, value, count)

/* ---- two dimensions -------------------------------------------------------------------------- */

/* The kind of memory on each side, as a direction states; false: no such direction. */
static bool sides(enum cudaMemcpyKind kind, CUmemorytype *dst, CUmemorytype *src)
{
  static const CUmemorytype table[][2] = {
      [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
      [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
      [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
      [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
      [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED}};
  if ((unsigned)kind >= sizeof table / sizeof table[0]) return false;
  *dst = table[kind][0];
  *src = table[kind][1];
  return true;
}

static cudaError_t run_2d(struct how h, const CUDA_MEMCPY2D *c)
{
  return rt_result(h.async ? h.d->Memcpy2DAsync(c, h.stream) : h.d->Memcpy2DUnaligned(c));
}

static cudaError_t copy_2d(struct how h, void *dst, size_t dpitch, const void *src, size_t spitch,
                           size_t width, size_t height, enum cudaMemcpyKind kind)
{
  CUDA_MEMCPY2D c = {.srcHost = src,
                     .srcDevice = DEVICE(src),
                     .srcPitch = spitch,
                     .dstHost = dst,
                     .dstDevice = DEVICE(dst),
                     .dstPitch = dpitch,
                     .WidthInBytes = width,
                     .Height = height};
  if (!sides(kind, &c.dstMemoryType, &c.srcMemoryType)) return cudaErrorInvalidMemcpyDirection;
  if (width > dpitch || width > spitch) return cudaErrorInvalidPitchValue;
  return run_2d(h, &c);
}

/* A direction in which one side is an array, which is device memory. */
static bool to_array(enum cudaMemcpyKind kind)
{
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

static bool from_array(enum cudaMemcpyKind kind)
{
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

static cudaError_t copy_to_array(struct how h, cudaArray_t dst, size_t x, size_t y, const void *src,
                                 size_t pitch, size_t width, size_t height,
                                 enum cudaMemcpyKind kind)
{
  CUDA_MEMCPY2D c = {.srcHost = src,
                     .srcDevice = DEVICE(src),
                     .srcPitch = pitch,
                     .dstArray = (CUarray)dst,
                     .dstXInBytes = x,
                     .dstY = y,
                     .WidthInBytes = width,
                     .Height = height};
  if (!to_array(kind)) return cudaErrorInvalidMemcpyDirection;
  sides(kind, &c.dstMemoryType, &c.srcMemoryType);
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  if (!dst) return cudaErrorInvalidResourceHandle;
  if (width > pitch) return cudaErrorInvalidPitchValue;
  return run_2d(h, &c);
}

static cudaError_t copy_from_array(struct how h, void *dst, size_t pitch, cudaArray_const_t src,
                                   size_t x, size_t y, size_t width, size_t height,
                                   enum cudaMemcpyKind kind)
{
  CUDA_MEMCPY2D c = {.srcArray = (CUarray)(uintptr_t)src,
                     .srcXInBytes = x,
                     .srcY = y,
                     .dstHost = dst,
                     .dstDevice = DEVICE(dst),
                     .dstPitch = pitch,
                     .WidthInBytes = width,
                     .Height = height};
  if (!from_array(kind)) return cudaErrorInvalidMemcpyDirection;
  sides(kind, &c.dstMemoryType, &c.srcMemoryType);
  c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  if (!src) return cudaErrorInvalidResourceHandle;
  if (width > pitch) return cudaErrorInvalidPitchValue;
  return run_2d(h, &c);
}

static cudaError_t copy_arrays(struct how h, cudaArray_t dst, size_t dx, size_t dy,
                               cudaArray_const_t src, size_t sx, size_t sy, size_t width,
                               size_t height, enum cudaMemcpyKind kind)
{
  CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                     .srcArray = (CUarray)(uintptr_t)src,
                     .srcXInBytes = sx,
                     .srcY = sy,
                     .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                     .dstArray = (CUarray)dst,
                     .dstXInBytes = dx,
                     .dstY = dy,
                     .WidthInBytes = width,
                     .Height = height};
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  if (!dst || !src) return cudaErrorInvalidResourceHandle;
  return run_2d(h, &c);
}

static cudaError_t set_2d(struct how h, void *dst, size_t pitch, int value, size_t width,
                          size_t height)
{
  unsigned char byte = (unsigned char)value;
  if (width > pitch && height > 1) return cudaErrorInvalidValue;
  return rt_result(h.async ? h.d->MemsetD2D8Async(DEVICE(dst), pitch, byte, width, height, h.stream)
                           : h.d->MemsetD2D8(DEVICE(dst), pitch, byte, width, height));
}

RT_PAIR(cudaMemcpy2D, copy_2d, dst, dpitch, src, spitch, width, height, kind)
RT_PAIR(cudaMemcpy2DToArray, copy_to_array, dst, wOffset, hOffset, src, spitch, width, height, kind)
RT_PAIR(cudaMemcpy2DFromArray, copy_from_array, dst, dpitch, src, wOffset, hOffset, width, height,
        kind)
RT_BODY_BOTH(cudaMemcpy2DArrayToArray, _ptds,
             copy_arrays(SYNC, dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width,
                         height, kind))
RT_PAIR(cudaMemset2D, set_2d, devPtr, pitch, value, width, height)

/* ---- a run of bytes in an array (deprecated, and still called) ------------------------------- */

/* Bytes of an element and of a row of an array. */
static cudaError_t array_row(cudaArray_const_t array, size_t *element, size_t *row)
{
  CUDA_ARRAY3D_DESCRIPTOR a;
  if (!array) return cudaErrorInvalidResourceHandle;
  cudaError_t e = rt_result(rt_drv->Array3DGetDescriptor(&a, (CUarray)(uintptr_t)array));
  if (e) return e;
  size_t bytes = 4;
  if (a.Format == CU_AD_FORMAT_UNSIGNED_INT8 || a.Format == CU_AD_FORMAT_SIGNED_INT8) bytes = 1;
  if (a.Format == CU_AD_FORMAT_UNSIGNED_INT16 || a.Format == CU_AD_FORMAT_SIGNED_INT16 ||
      a.Format == CU_AD_FORMAT_HALF)
    bytes = 2;
  *element = bytes * a.NumChannels;
  if (row) *row = *element * a.Width;
  return cudaSuccess;
}

/* The next rectangle of a run that begins at column x: the rest of a row, or whole rows. */
static void next_rectangle(size_t x, size_t row, size_t left, size_t *width, size_t *height)
{
  bool rows = x == 0 && left >= row;
  *width = rows ? row : left < row - x ? left : row - x;
  *height = rows ? left / row : 1;
}

static cudaError_t run_to_array(struct how h, cudaArray_t dst, size_t x, size_t y, const char *src,
                                size_t n, enum cudaMemcpyKind kind)
{
  size_t element, row, width, height;
  if (!to_array(kind)) return cudaErrorInvalidMemcpyDirection;
  cudaError_t e = array_row(dst, &element, &row);
  if (!e && x >= row) e = cudaErrorInvalidValue;
  for (; !e && n; n -= width * height, src += width * height, y += height, x = 0) {
    next_rectangle(x, row, n, &width, &height);
    e = copy_to_array(h, dst, x, y, src, width, width, height, kind);
  }
  return e;
}

static cudaError_t run_from_array(struct how h, char *dst, cudaArray_const_t src, size_t x,
                                  size_t y, size_t n, enum cudaMemcpyKind kind)
{
  size_t element, row, width, height;
  if (!from_array(kind)) return cudaErrorInvalidMemcpyDirection;
  cudaError_t e = array_row(src, &element, &row);
  if (!e && x >= row) e = cudaErrorInvalidValue;
  for (; !e && n; n -= width * height, dst += width * height, y += height, x = 0) {
    next_rectangle(x, row, n, &width, &height);
    e = copy_from_array(h, dst, width, src, x, y, width, height, kind);
  }
  return e;
}

/* Both sides wrap, each at its own row length: a row's rest of whichever ends first at a time. */
static cudaError_t run_arrays(struct how h, cudaArray_t dst, size_t dx, size_t dy,
                              cudaArray_const_t src, size_t sx, size_t sy, size_t n,
                              enum cudaMemcpyKind kind)
{
  size_t element, drow, srow, width;
  cudaError_t e = array_row(dst, &element, &drow);
  if (!e) e = array_row(src, &element, &srow);
  if (!e && (dx >= drow || sx >= srow)) e = cudaErrorInvalidValue;
  for (; !e && n; n -= width) {
    width = drow - dx < srow - sx ? drow - dx : srow - sx;
    if (width > n) width = n;
    e = copy_arrays(h, dst, dx, dy, src, sx, sy, width, 1, kind);
    if ((dx += width) == drow) dx = 0, dy++;
    if ((sx += width) == srow) sx = 0, sy++;
  }
  return e;
}

RT_PAIR(cudaMemcpyToArray, run_to_array, dst, wOffset, hOffset, src, count, kind)
RT_PAIR(cudaMemcpyFromArray, run_from_array, dst, src, wOffset, hOffset, count, kind)
RT_BODY_BOTH(cudaMemcpyArrayToArray, _ptds,
             run_arrays(SYNC, dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count,
                        kind))

/* ---- three dimensions ------------------------------------------------------------------------ */

/* What the plain and the peer form of a 3-D copy have in common, in the runtime's words. */
struct box {
  cudaArray_t src_array, dst_array;
  struct cudaPos src_pos, dst_pos;
  struct cudaPitchedPtr src, dst;
  struct cudaExtent extent;
};

/* Each side is an array or a pointer, not both and not neither. */
static bool sound(const struct box *b)
{
  return !b->src_array != !b->src.ptr && !b->dst_array != !b->dst.ptr;
}

/* Element sizes: of a side's positions (an array's element, else a byte), and of the extent (an
 * array's element where one takes part). */
static cudaError_t units(const struct box *b, size_t *src, size_t *dst, size_t *extent)
{
  cudaError_t e = cudaSuccess;
  *src = *dst = 1;
  if (b->src_array) e = array_row(b->src_array, src, NULL);
  if (!e && b->dst_array) e = array_row(b->dst_array, dst, NULL);
  *extent = b->src_array ? *src : *dst;
  return e;
}

/* Fills the fields CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have in common. */
#define FILL_3D(c, b, su, du, eu)                                                                  \
  do {                                                                                             \
    (c).srcXInBytes = (b).src_pos.x * (su);                                                        \
    (c).srcY = (b).src_pos.y;                                                                      \
    (c).srcZ = (b).src_pos.z;                                                                      \
    (c).srcHost = (b).src.ptr;                                                                     \
    (c).srcDevice = DEVICE((b).src.ptr);                                                           \
    (c).srcArray = (CUarray)(b).src_array;                                                         \
    (c).srcPitch = (b).src.pitch;                                                                  \
    (c).srcHeight = (b).src.ysize;                                                                 \
    (c).dstXInBytes = (b).dst_pos.x * (du);                                                        \
    (c).dstY = (b).dst_pos.y;                                                                      \
    (c).dstZ = (b).dst_pos.z;                                                                      \
    (c).dstHost = (b).dst.ptr;                                                                     \
    (c).dstDevice = DEVICE((b).dst.ptr);                                                           \
    (c).dstArray = (CUarray)(b).dst_array;                                                         \
    (c).dstPitch = (b).dst.pitch;                                                                  \
    (c).dstHeight = (b).dst.ysize;                                                                 \
    (c).WidthInBytes = (b).extent.width * (eu);                                                    \
    (c).Height = (b).extent.height;                                                                \
    (c).Depth = (b).extent.depth;                                                                  \
    if ((b).src_array) (c).srcMemoryType = CU_MEMORYTYPE_ARRAY;                                    \
    if ((b).dst_array) (c).dstMemoryType = CU_MEMORYTYPE_ARRAY;                                    \
  } while (0)

cudaError_t rt_copy_params(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *c)
{
  size_t su, du, eu;
  *c = (CUDA_MEMCPY3D){0};
  if (!p) return cudaErrorInvalidValue;
  if (!sides(p->kind, &c->dstMemoryType, &c->srcMemoryType)) return cudaErrorInvalidMemcpyDirection;
  struct box b = {p->srcArray, p->dstArray, p->srcPos, p->dstPos, p->srcPtr, p->dstPtr, p->extent};
  if (!sound(&b)) return cudaErrorInvalidValue;
  cudaError_t e = units(&b, &su, &du, &eu);
  if (e) return e;
  FILL_3D(*c, b, su, du, eu);
  return cudaSuccess;
}

static size_t array_element(CUarray array)
{
  size_t element = 1;
  if (array) array_row((cudaArray_const_t)array, &element, NULL);
  return element ? element : 1;
}

static struct cudaPitchedPtr pitched(CUmemorytype type, const void *host, CUdeviceptr device,
                                     size_t pitch, size_t rows, size_t width)
{
  void *p = type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)host : (void *)(uintptr_t)device;
  if (type == CU_MEMORYTYPE_ARRAY) return (struct cudaPitchedPtr){0};
  return (struct cudaPitchedPtr){p, pitch, width, rows};
}

void rt_copy_params_of(const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *p)
{
  bool from = c->srcMemoryType != CU_MEMORYTYPE_HOST, to = c->dstMemoryType != CU_MEMORYTYPE_HOST;
  bool unsaid =
      c->srcMemoryType == CU_MEMORYTYPE_UNIFIED || c->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  size_t su = array_element(c->srcArray), du = array_element(c->dstArray);
  *p = (struct cudaMemcpy3DParms){
      .srcArray = (cudaArray_t)c->srcArray,
      .srcPos = {c->srcXInBytes / su, c->srcY, c->srcZ},
      .srcPtr = pitched(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch, c->srcHeight,
                        c->WidthInBytes),
      .dstArray = (cudaArray_t)c->dstArray,
      .dstPos = {c->dstXInBytes / du, c->dstY, c->dstZ},
      .dstPtr = pitched(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstHeight,
                        c->WidthInBytes),
      .extent = {c->WidthInBytes / (c->srcArray ? su : du), c->Height, c->Depth},
      .kind = unsaid       ? cudaMemcpyDefault
              : from && to ? cudaMemcpyDeviceToDevice
              : from       ? cudaMemcpyDeviceToHost
              : to         ? cudaMemcpyHostToDevice
                           : cudaMemcpyHostToHost};
}

static cudaError_t copy_3d(struct how h, const struct cudaMemcpy3DParms *p)
{
  CUDA_MEMCPY3D c;
  cudaError_t e = rt_copy_params(p, &c);
  if (e) return e;
  return rt_result(h.async ? h.d->Memcpy3DAsync(&c, h.stream) : h.d->Memcpy3D(&c));
}

static cudaError_t copy_3d_peer(struct how h, const struct cudaMemcpy3DPeerParms *p)
{
  CUDA_MEMCPY3D_PEER c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE};
  size_t su, du, eu;
  if (!p) return cudaErrorInvalidValue;
  struct box b = {p->srcArray, p->dstArray, p->srcPos, p->dstPos, p->srcPtr, p->dstPtr, p->extent};
  if (!sound(&b)) return cudaErrorInvalidValue;
  cudaError_t e = units(&b, &su, &du, &eu);
  if (!e) e = rt_primary(p->srcDevice, &c.srcContext);
  if (!e) e = rt_primary(p->dstDevice, &c.dstContext);
  if (e) return e;
  FILL_3D(c, b, su, du, eu);
  return rt_result(h.async ? h.d->Memcpy3DPeerAsync(&c, h.stream) : h.d->Memcpy3DPeer(&c));
}

/* Slices that follow each other without a gap are one rectangle; otherwise a memset a slice. */
static cudaError_t set_3d(struct how h, struct cudaPitchedPtr p, int value, struct cudaExtent x)
{
  cudaError_t e = cudaSuccess;
  if (x.depth <= 1 || x.height == p.ysize)
    return set_2d(h, p.ptr, p.pitch, value, x.width, x.height * x.depth);
  for (size_t z = 0; !e && z < x.depth; z++)
    e = set_2d(h, (char *)p.ptr + z * p.pitch * p.ysize, p.pitch, value, x.width, x.height);
  return e;
}

RT_PAIR(cudaMemcpy3D, copy_3d, p)
RT_PAIR(cudaMemcpy3DPeer, copy_3d_peer, p)
RT_PAIR(cudaMemset3D, set_3d, pitchedDevPtr, value, extent)

/* ---- between devices ------------------------------------------------------------------------- */

static cudaError_t runtime_copy_peer(struct how h, void *dst, int dst_device, const void *src,
                                     int src_device, size_t n)
{
  CUcontext to, from;
  cudaError_t e = rt_primary(dst_device, &to);
  if (!e) e = rt_primary(src_device, &from);
  if (e) return e;
  return rt_result(h.async ? h.d->MemcpyPeerAsync(DEVICE(dst), to, DEVICE(src), from, n, h.stream)
                           : h.d->MemcpyPeer(DEVICE(dst), to, DEVICE(src), from, n));
}

/* These two have no per-thread flavour. */
RT_BODY(cudaMemcpyPeer,
        runtime_copy_peer((struct how){.d = rt_drv}, dst, dstDevice, src, srcDevice, count))
RT_BODY(cudaMemcpyPeerAsync,
        runtime_copy_peer((struct how){.d = rt_drv, .async = true, .stream = stream}, dst,
                          dstDevice, src, srcDevice, count))

/* ---- variables of device code ---------------------------------------------------------------- */

cudaError_t rt_symbol_range(const void *symbol, size_t n, size_t offset, void **address)
{
  CUdeviceptr base;
  size_t bytes;
  cudaError_t e = rt_symbol(symbol, &base, &bytes);
  if (e) return e;
  if (offset > bytes || n > bytes - offset) return cudaErrorInvalidValue;
  *address = (void *)(uintptr_t)(base + offset);
  return cudaSuccess;
}

static cudaError_t copy_to_symbol(struct how h, const void *symbol, const void *src, size_t n,
                                  size_t offset, enum cudaMemcpyKind kind)
{
  void *dst;
  if (!to_array(kind)) return cudaErrorInvalidMemcpyDirection; /* a symbol is device memory too */
  cudaError_t e = rt_symbol_range(symbol, n, offset, &dst);
  return e ? e : copy_linear(h, dst, src, n, kind);
}

static cudaError_t copy_from_symbol(struct how h, void *dst, const void *symbol, size_t n,
                                    size_t offset, enum cudaMemcpyKind kind)
{
  void *src;
  if (!from_array(kind)) return cudaErrorInvalidMemcpyDirection;
  cudaError_t e = rt_symbol_range(symbol, n, offset, &src);
  return e ? e : copy_linear(h, dst, src, n, kind);
}

RT_PAIR(cudaMemcpyToSymbol, copy_to_symbol, symbol, src, count, offset, kind)
RT_PAIR(cudaMemcpyFromSymbol, copy_from_symbol, dst, symbol, count, offset, kind)
