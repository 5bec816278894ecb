/* weir_texture.h: textures and surfaces in a kernel that is written once (weir_kernel.h).
 *
 *   WEIR_KERNEL(blur, cudaTextureObject_t image, float *out, int width)
 *   {
 *     int x = blockIdx.x * blockDim.x + threadIdx.x;
 *     if (x < width) out[x] = weir_tex2D<float>(image, x + 1.0f, 0.5f);
 *   }
 *
 * weir_tex1Dfetch, weir_tex1D, weir_tex2D, weir_tex3D, weir_tex1DLayered, weir_tex2DLayered,
 * weir_texCubemap and weir_surf1D, 2D, 3D, 2DLayered read and write take what CUDA's functions of
 * those names take. On a GPU they are these functions. In a host twin they read the memory of
 * the object, whose handle is the address of a struct weir_texture, as the CUDA C++ Programming
 * Guide states ("Texture Fetching"): coordinates that are normalised or not, the four address modes
 * (wrap and mirror for normalised coordinates only, else they clamp), nearest and linear filtering
 * with weights of 8 fractional bits, integers of 8 and 16 bits promoted to [0, 1] or [-1, 1],
 * layers clamped. A linear texture answers 0 outside of its memory, a surface access outside of its
 * array ends the kernel with an error unless the boundary mode states otherwise ("Surface
 * Functions").
 *
 * What begins with weir_texture_ is C, for twins written by hand.
 *
 * Words: texel: one element of a texture, of 1, 2 or 4 channels. Place: a texel's integer
 * coordinates.
 */
#ifndef WEIR_SIM_TEXTURE_H
#define WEIR_SIM_TEXTURE_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_TEXTURE_MAGIC = 0x77c000f, WEIR_SURFACE_MAGIC = 0x77c0010 };
enum { WEIR_WRAP, WEIR_CLAMP, WEIR_MIRROR, WEIR_BORDER };          /* as CUaddress_mode */
enum { WEIR_UINT, WEIR_SINT, WEIR_FLOAT };                         /* what a channel is */
enum { WEIR_ZERO_OUTSIDE, WEIR_CLAMP_OUTSIDE, WEIR_TRAP_OUTSIDE }; /* as cudaSurfaceBoundaryMode */

struct weir_texture {
  uint32_t magic;    /* WEIR_TEXTURE_MAGIC or WEIR_SURFACE_MAGIC; 0: destroyed */
  uint32_t kind;     /* of a channel */
  uint32_t bits;     /* of a channel: 8, 16, 32 */
  uint32_t channels; /* 1, 2, 4 */
  char *start;       /* texel (0, 0, 0) */
  uint64_t size[3];  /* texels each way; 1 where there is no such way */
  uint64_t layers;   /* planes that are layers or cube faces; 1: none */
  uint64_t pitch;    /* bytes a row */
  uint64_t plane;    /* bytes from plane to plane, slices or layers */
  uint32_t address[3];
  uint32_t linear;     /* filter */
  uint32_t normalized; /* coordinates */
  uint32_t promoted;   /* integers become floats */
  float border[4];     /* what is outside, with WEIR_BORDER */
};

static inline const struct weir_texture *weir_texture_of(uint64_t object)
{
  return (const struct weir_texture *)(uintptr_t)object;
}

static inline uint32_t weir_texture_bytes(const struct weir_texture *t)
{
  return t->bits / 8 * t->channels;
}

static inline float weir_texture_half(uint16_t h)
{
  uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023, bits;
  float f;
  if (exponent == 0) {
    f = (float)fraction / 16777216.0f; /* 2^-24 each */
    return sign ? -f : f;
  }
  bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* A channel's value, as a number; promoted where the object asks for it. */
static inline float weir_texture_channel(const struct weir_texture *t, const char *at)
{
  union {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    int8_t s8;
    int16_t s16;
    int32_t s32;
    float f;
  } v;
  float value, most;
  memcpy(&v, at, t->bits / 8);
  if (t->kind == WEIR_FLOAT) return t->bits == 16 ? weir_texture_half(v.u16) : v.f;
  if (t->kind == WEIR_UINT) {
    value = t->bits == 8 ? (float)v.u8 : t->bits == 16 ? (float)v.u16 : (float)v.u32;
    most = t->bits == 8 ? 255.0f : 65535.0f;
  } else {
    value = t->bits == 8 ? (float)v.s8 : t->bits == 16 ? (float)v.s16 : (float)v.s32;
    most = t->bits == 8 ? 127.0f : 32767.0f;
  }
  if (!t->promoted || t->bits == 32) return value;
  value /= most;
  return value < -1.0f ? -1.0f : value;
}

static inline int64_t weir_texture_floor(float x)
{
  int64_t i;
  if (!(x > -9e15f)) return INT64_C(-9000000000000000); /* and not a number */
  if (x > 9e15f) return INT64_C(9000000000000000);
  i = (int64_t)x;
  return (float)i > x ? i - 1 : i;
}

/* Place `i` of a way, brought inside by the address mode; -1: outside, the border. */
static inline int64_t weir_texture_inside(const struct weir_texture *t, unsigned way, int64_t i)
{
  int64_t n = (int64_t)t->size[way], turn;
  uint32_t mode = t->address[way];
  if (i >= 0 && i < n) return i;
  if (mode == WEIR_BORDER) return -1;
  if (mode == WEIR_CLAMP || !t->normalized) return i < 0 ? 0 : n - 1;
  turn = mode == WEIR_WRAP ? n : 2 * n;
  i %= turn;
  if (i < 0) i += turn;
  return i < n ? i : turn - 1 - i;
}

/* A texel by its place, in floats; a place outside is the border's colour. */
static inline void weir_texture_texel(const struct weir_texture *t, const int64_t place[3],
                                      uint64_t layer, float out[4])
{
  int64_t at[3];
  const char *p;
  uint32_t c;
  unsigned way;
  for (way = 0; way < 3; way++) {
    at[way] = weir_texture_inside(t, way, place[way]);
    if (at[way] >= 0) continue;
    memcpy(out, t->border, sizeof t->border);
    return;
  }
  p = t->start + ((uint64_t)at[2] + layer) * t->plane + (uint64_t)at[1] * t->pitch +
      (uint64_t)at[0] * weir_texture_bytes(t);
  for (c = 0; c < 4; c++)
    out[c] = c < t->channels ? weir_texture_channel(t, p + c * (t->bits / 8)) : 0.0f;
}

static inline uint64_t weir_texture_layer(const struct weir_texture *t, int64_t layer)
{
  return layer < 0 ? 0 : (uint64_t)layer < t->layers ? (uint64_t)layer : t->layers - 1;
}

/* Between 2, 4 or 8 texels: the weight of the farther one of each way has 8 fractional bits. */
static inline void weir_texture_filter(const struct weir_texture *t, const float at[3],
                                       unsigned ways, uint64_t layer, float out[4])
{
  int64_t low[3] = {0, 0, 0};
  float far_weight[3] = {0, 0, 0};
  unsigned way, corner, c;
  for (way = 0; way < ways; way++) {
    float x = at[way] - 0.5f;
    low[way] = weir_texture_floor(x);
    far_weight[way] = (float)(int)((x - (float)low[way]) * 256.0f + 0.5f) / 256.0f;
  }
  memset(out, 0, 4 * sizeof *out);
  for (corner = 0; corner < 1u << ways; corner++) {
    int64_t place[3] = {0, 0, 0};
    float texel[4], weight = 1.0f;
    for (way = 0; way < ways; way++) {
      unsigned beyond = corner >> way & 1;
      place[way] = low[way] + beyond;
      weight *= beyond ? far_weight[way] : 1.0f - far_weight[way];
    }
    if (weight == 0.0f) continue; /* what has no weight may be anything */
    weir_texture_texel(t, place, layer, texel);
    for (c = 0; c < 4; c++)
      out[c] += weight * texel[c];
  }
}

/* The texel or the filtered value at coordinates of `ways` dimensions. */
static inline void weir_texture_sample(uint64_t object, unsigned ways, const float coordinates[3],
                                       int64_t layer, float out[4])
{
  const struct weir_texture *t = weir_texture_of(object);
  float at[3] = {0, 0, 0};
  int64_t place[3] = {0, 0, 0};
  unsigned way;
  for (way = 0; way < ways; way++) {
    at[way] = coordinates[way];
    if (t->normalized) at[way] *= (float)t->size[way];
    place[way] = weir_texture_floor(at[way]);
  }
  if (t->linear)
    weir_texture_filter(t, at, ways, weir_texture_layer(t, layer), out);
  else
    weir_texture_texel(t, place, weir_texture_layer(t, layer), out);
}

/* The same without a filter, as the bytes that are there: `bytes` of them, which are a texel's. */
static inline void weir_texture_raw(uint64_t object, unsigned ways, const float coordinates[3],
                                    int64_t layer, void *out, uint32_t bytes)
{
  const struct weir_texture *t = weir_texture_of(object);
  uint64_t at[3] = {0, 0, 0};
  uint32_t there = weir_texture_bytes(t);
  unsigned way;
  memset(out, 0, bytes);
  for (way = 0; way < ways; way++) {
    float x = coordinates[way] * (t->normalized ? (float)t->size[way] : 1.0f);
    int64_t i = weir_texture_inside(t, way, weir_texture_floor(x));
    if (i < 0) return; /* the border of integers is 0 */
    at[way] = (uint64_t)i;
  }
  memcpy(out,
         t->start + (at[2] + weir_texture_layer(t, layer)) * t->plane + at[1] * t->pitch +
             at[0] * there,
         bytes < there ? bytes : there);
}

/* Texel `i` of a linear texture, as floats and as bytes; 0 where there is none. */
static inline void weir_texture_fetch(uint64_t object, int64_t i, float out[4])
{
  const struct weir_texture *t = weir_texture_of(object);
  const int64_t place[3] = {i, 0, 0};
  memset(out, 0, 4 * sizeof *out);
  if (i >= 0 && (uint64_t)i < t->size[0]) weir_texture_texel(t, place, 0, out);
}

static inline void weir_texture_fetch_raw(uint64_t object, int64_t i, void *out, uint32_t bytes)
{
  const struct weir_texture *t = weir_texture_of(object);
  uint32_t there = weir_texture_bytes(t);
  memset(out, 0, bytes);
  if (i >= 0 && (uint64_t)i < t->size[0])
    memcpy(out, t->start + (uint64_t)i * there, bytes < there ? bytes : there);
}

/* Which face of a cube the direction leads through, and where, from 0 to 1. */
static inline int64_t weir_texture_face(float x, float y, float z, float at[3])
{
  float ax = x < 0 ? -x : x, ay = y < 0 ? -y : y, az = z < 0 ? -z : z, m, s, u;
  int64_t face;
  if (ax >= ay && ax >= az) {
    face = x < 0;
    m = ax, s = x < 0 ? z : -z, u = -y;
  } else if (ay >= az) {
    face = 2 + (y < 0);
    m = ay, s = x, u = y < 0 ? -z : z;
  } else {
    face = 4 + (z < 0);
    m = az, s = z < 0 ? -x : x, u = -y;
  }
  at[0] = m > 0 ? (s / m + 1.0f) / 2.0f : 0.0f;
  at[1] = m > 0 ? (u / m + 1.0f) / 2.0f : 0.0f;
  at[2] = 0.0f;
  return face;
}

/* Where a surface's bytes are: x counts bytes. NULL: outside, and nothing is to be done; a trap
 * does not return. */
static inline char *weir_texture_surface(uint64_t object, int64_t x, int64_t y, int64_t z,
                                         int64_t layer, uint32_t bytes, int mode)
{
  const struct weir_texture *t = weir_texture_of(object);
  int64_t width = (int64_t)(t->size[0] * weir_texture_bytes(t)), rows = (int64_t)t->size[1];
  int64_t slices = (int64_t)t->size[2], layers = (int64_t)t->layers;
  int outside = x < 0 || x + (int64_t)bytes > width || y < 0 || y >= rows || z < 0 || z >= slices ||
                layer < 0 || layer >= layers;
  if (outside && mode == WEIR_TRAP_OUTSIDE) __builtin_trap();
  if (outside && mode == WEIR_ZERO_OUTSIDE) return NULL;
  if (outside) {
    x = x < 0 ? 0 : x + (int64_t)bytes > width ? width - (int64_t)bytes : x;
    y = y < 0 ? 0 : y >= rows ? rows - 1 : y;
    z = z < 0 ? 0 : z >= slices ? slices - 1 : z;
    layer = layer < 0 ? 0 : layer >= layers ? layers - 1 : layer;
  }
  return t->start + (uint64_t)(z + layer) * t->plane + (uint64_t)y * t->pitch + x;
}

#ifdef __cplusplus
}

#if defined(__CUDACC__) && defined(__CUDA_ARCH__) /* device pass: CUDA's own functions */

#define WEIR_SURFACE_MODE             cudaSurfaceBoundaryMode
#define WEIR_SURFACE_MODE_TRAP        cudaBoundaryModeTrap
#define WEIR_TEXTURE_BOTH             static __device__ __forceinline__
#define WEIR_TEXTURE_DO(device, host) device

#else

#ifdef __CUDACC__
#define WEIR_SURFACE_MODE      cudaSurfaceBoundaryMode
#define WEIR_SURFACE_MODE_TRAP cudaBoundaryModeTrap
#else
#define WEIR_SURFACE_MODE      int
#define WEIR_SURFACE_MODE_TRAP WEIR_TRAP_OUTSIDE
#endif
#define WEIR_TEXTURE_BOTH             static inline
#define WEIR_TEXTURE_DO(device, host) host

#include <type_traits>

/* What the channels of T are: of a number itself, of a float4 its x. */
template <typename T, bool number = std::is_arithmetic<T>::value> struct weir_channel {
  typedef T type;
};
template <typename T> struct weir_channel<T, false> {
  typedef decltype(T::x) type;
};

template <typename T> static inline T weir_texture_value(const float *floats)
{
  T out;
  memcpy(&out, floats, sizeof out);
  return out;
}

template <typename T>
static inline T weir_texture_get(uint64_t o, unsigned ways, float x, float y, float z,
                                 int64_t layer)
{
  const float at[3] = {x, y, z};
  if (std::is_floating_point<typename weir_channel<T>::type>::value) {
    float out[4];
    weir_texture_sample(o, ways, at, layer, out);
    return weir_texture_value<T>(out);
  }
  T out;
  weir_texture_raw(o, ways, at, layer, &out, sizeof out);
  return out;
}

template <typename T> static inline T weir_texture_at(uint64_t o, int i)
{
  if (std::is_floating_point<typename weir_channel<T>::type>::value) {
    float out[4];
    weir_texture_fetch(o, i, out);
    return weir_texture_value<T>(out);
  }
  T out;
  weir_texture_fetch_raw(o, i, &out, sizeof out);
  return out;
}

template <typename T> static inline T weir_texture_cube(uint64_t o, float x, float y, float z)
{
  float at[3];
  int64_t face = weir_texture_face(x, y, z, at);
  if (!weir_texture_of(o)->normalized) {
    at[0] *= (float)weir_texture_of(o)->size[0];
    at[1] *= (float)weir_texture_of(o)->size[1];
  }
  return weir_texture_get<T>(o, 2, at[0], at[1], 0, face);
}

template <typename T>
static inline T weir_surface_get(uint64_t o, int64_t x, int64_t y, int64_t z, int64_t layer,
                                 int mode)
{
  T out;
  memset((void *)&out, 0, sizeof out);
  const char *at = weir_texture_surface(o, x, y, z, layer, sizeof out, mode);
  if (at) memcpy((void *)&out, at, sizeof out);
  return out;
}

template <typename T>
static inline void weir_surface_put(T value, uint64_t o, int64_t x, int64_t y, int64_t z,
                                    int64_t layer, int mode)
{
  char *at = weir_texture_surface(o, x, y, z, layer, sizeof value, mode);
  if (at) memcpy(at, (const void *)&value, sizeof value);
}

#endif

/* F(name, CUDA's parameters, its arguments, the host's). */
#define WEIR_TEXTURE_FUNCTIONS(F)                                                                  \
  F(tex1Dfetch, (unsigned long long o, int i), (o, i), weir_texture_at<T>(o, i))                   \
  F(tex1D, (unsigned long long o, float x), (o, x), weir_texture_get<T>(o, 1, x, 0, 0, 0))         \
  F(tex2D, (unsigned long long o, float x, float y), (o, x, y),                                    \
    weir_texture_get<T>(o, 2, x, y, 0, 0))                                                         \
  F(tex3D, (unsigned long long o, float x, float y, float z), (o, x, y, z),                        \
    weir_texture_get<T>(o, 3, x, y, z, 0))                                                         \
  F(tex1DLayered, (unsigned long long o, float x, int layer), (o, x, layer),                       \
    weir_texture_get<T>(o, 1, x, 0, 0, layer))                                                     \
  F(tex2DLayered, (unsigned long long o, float x, float y, int layer), (o, x, y, layer),           \
    weir_texture_get<T>(o, 2, x, y, 0, layer))                                                     \
  F(texCubemap, (unsigned long long o, float x, float y, float z), (o, x, y, z),                   \
    weir_texture_cube<T>(o, x, y, z))

#define WEIR_TEXTURE_FUNCTION(name, parameters, arguments, host)                                   \
  template <typename T> WEIR_TEXTURE_BOTH T weir_##name parameters                                 \
  {                                                                                                \
    return WEIR_TEXTURE_DO(name<T> arguments, host);                                               \
  }
WEIR_TEXTURE_FUNCTIONS(WEIR_TEXTURE_FUNCTION)

/* F(name, CUDA's coordinates as parameters, as arguments, the host's x, y, z, layer). */
#define WEIR_SURFACE_FUNCTIONS(F)                                                                  \
  F(surf1D, (int x), (x), (x, 0, 0, 0))                                                            \
  F(surf2D, (int x, int y), (x, y), (x, y, 0, 0))                                                  \
  F(surf3D, (int x, int y, int z), (x, y, z), (x, y, z, 0))                                        \
  F(surf2DLayered, (int x, int y, int layer), (x, y, layer), (x, y, 0, layer))

#define WEIR_BARE(...)    __VA_ARGS__
#define WEIR_UNPACK(list) WEIR_BARE list
#define WEIR_SURFACE_FUNCTION(name, parameters, arguments, host)                                   \
  template <typename T>                                                                            \
  WEIR_TEXTURE_BOTH T weir_##name##read(unsigned long long o, WEIR_UNPACK(parameters),             \
                                        WEIR_SURFACE_MODE mode = WEIR_SURFACE_MODE_TRAP)           \
  {                                                                                                \
    return WEIR_TEXTURE_DO((name##read<T>(o, WEIR_UNPACK(arguments), mode)),                       \
                           (weir_surface_get<T>(o, WEIR_UNPACK(host), (int)mode)));                \
  }                                                                                                \
  template <typename T>                                                                            \
  WEIR_TEXTURE_BOTH void weir_##name##write(T value, unsigned long long o,                         \
                                            WEIR_UNPACK(parameters),                               \
                                            WEIR_SURFACE_MODE mode = WEIR_SURFACE_MODE_TRAP)       \
  {                                                                                                \
    WEIR_TEXTURE_DO((name##write(value, o, WEIR_UNPACK(arguments), mode)),                         \
                    (weir_surface_put(value, o, WEIR_UNPACK(host), (int)mode)));                   \
  }
WEIR_SURFACE_FUNCTIONS(WEIR_SURFACE_FUNCTION)

#endif /* __cplusplus */
#endif
