/* cpu/half.h: kernels that take float16 and bfloat16 as they are, and sums of them: a part of
 * cpu/kernels.h, for one level of processor.
 *
 * HALVES elements at a time become float32 in registers, are calculated as the loops of float32 (or
 * of SHORT_OPS) calculate, and are rounded: nothing is stored between. The last, where there are
 * fewer, go through memory of their own. An input that is one number is a float32 after its
 * pointer (cpu_args.same). */

enum { HALVES = 32 };

CPU_INLINE void widen_FLOAT16(float to[HALVES], const uint16_t *from)
{
#ifdef __F16C__
  for (int i = 0; i < HALVES; i += HALVES_AT_ONCE)
    widen_some(to + i, from + i);
#else
  for (int i = 0; i < HALVES; i++)
    to[i] = float16_to_float(from[i]);
#endif
}

CPU_INLINE void narrow_FLOAT16(uint16_t *to, const float from[HALVES])
{
#ifdef __F16C__
  for (int i = 0; i < HALVES; i += HALVES_AT_ONCE)
    narrow_some(to + i, from + i);
#else
  for (int i = 0; i < HALVES; i++)
    to[i] = float_to_float16(from[i]);
#endif
}

CPU_INLINE void widen_BFLOAT16(float to[HALVES], const uint16_t *from)
{
#ifdef __AVX512BW__
  for (int i = 0; i < HALVES; i += 16) {
    __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
    __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
    _mm512_storeu_ps(to + i, _mm512_castsi512_ps(wide));
  }
#else
  for (int i = 0; i < HALVES; i++)
    to[i] = bfloat16_to_float(from[i]);
#endif
}

CPU_INLINE void narrow_BFLOAT16(uint16_t *to, const float from[HALVES])
{
#ifdef __AVX512BW__
  const __m512i one = _mm512_set1_epi32(1), round = _mm512_set1_epi32(0x7fff);
  const __m512i sign = _mm512_set1_epi32((int)0x80000000), quiet = _mm512_set1_epi32(0x7fc00000);
  __m512i bits[2];
  for (int i = 0; i < 2; i++) {
    __m512 x = _mm512_loadu_ps(from + 16 * i);
    __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    bits[i] = _mm512_add_epi32(_mm512_add_epi32(u, round), odd);
    /* of NaN the sign: u & sign | quiet */
    u = _mm512_ternarylogic_epi32(u, sign, quiet, 0xea);
    bits[i] = _mm512_mask_mov_epi32(bits[i], _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), u);
  }
  static const uint16_t odd_words[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                         23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                         45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  __m512i words = _mm512_loadu_si512(odd_words);
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(bits[0], words, bits[1]));
#else
  for (int i = 0; i < HALVES; i++)
    to[i] = float_to_bfloat16(from[i]);
#endif
}

/* ---- functions of halves -----------------------------------------------------------------------
 * How far they are off before they are rounded, the most of all numbers of the format, in units of
 * its last place: float16: exp, sigmoid, silu 0.0014, sin, cos 0.0025, gelu 0.0045; bfloat16: exp,
 * sigmoid, silu 0.0012, sin, cos 0.0003, gelu 0.017. */

/* 2^u by a polynomial: 1.1e-7 and a rounding of u off. |u| < 126; NaN comes through. */
CPU_INLINE float cpu_half_power(float u)
{
  float k = u + CPU_MAGIC_F, f = u - (k - CPU_MAGIC_F), z = f * f;
  float low = 1 + 0x1.62e42ap-1F * f, middle = 0x1.ebf9bcp-3F + 0x1.c6b752p-5F * f;
  float p = low + z * (middle + z * (0x1.3cea88p-7F + 0x1.5bba14p-10F * f));
  return cpu_float(cpu_float_bits(p) + (cpu_float_bits(k) << 23));
}

/* The same, 2.9e-6 off. */
CPU_INLINE float cpu_half_rough_power(float u)
{
  float k = u + CPU_MAGIC_F, f = u - (k - CPU_MAGIC_F), z = f * f;
  float low = 1 + 0x1.62e12cp-1F * f, middle = 0x1.ec0378p-3F + 0x1.c9fc46p-5F * f;
  float p = low + z * (middle + z * 0x1.3a02ccp-7F);
  return cpu_float(cpu_float_bits(p) + (cpu_float_bits(k) << 23));
}

/* The root of e^x, whose square is rounded once where it is subnormal, or infinite. */
CPU_INLINE float cpu_half_root(float x)
{
  float r = cpu_half_power(x * 0x1.715476p-1F);
  return x < -170 ? 0 : r;
}

CPU_INLINE float cpu_half_exp(float x)
{
  float r = cpu_half_root(x);
  return x > 100 ? INFINITY : r * r;
}

/* times / (1 + e^-x). */
CPU_INLINE float cpu_half_sigmoid(float x, float times)
{
  float r = cpu_half_root(-fabsf(x));
  return (times * (x < 0 ? r : 1) / (1 + r * r)) * (x < 0 ? r : 1);
}

/* x times the normal distribution's share below x: that of a tail is e^(-x^2 / 2) by t times a
 * polynomial of t = 1 / (1 + 0.36 |x|). The square of what has 11 digits or fewer is exact; e is
 * 2^64 times its exponential, so that what is subnormal is rounded once. */
CPU_INLINE float cpu_half_gelu(float x)
{
  float a = fabsf(x), t = 1 / (1 + 0.36F * a), z = t * t;
  float e = cpu_half_power(x * x * -0x1.715476p-1F + 64);
  float low = 0x1.265378p-3F + 0x1.22534ep-3F * t, middle = 0x1.1e47a8p-3F + 0x1.b006f4p-6F * t;
  float high = 0x1.73217cp-3F - 0x1.708d76p-3F * t;
  float p = low + z * (middle + z * (high + z * 0x1.81f222p-5F));
  e = a > 13.8F ? 0 : e * (t * p);
  return x < 0 ? x * e * 0x1p-64F : x * (1 - e * 0x1p-64F);
}

/* Of bfloat16. */
CPU_INLINE float cpu_half_rough_gelu(float x)
{
  float a = fabsf(x), t = 1 / (1 + 0.38F * a), z = t * t;
  float e = cpu_half_rough_power(x * x * -0x1.715476p-1F + 64);
  float low = 0x1.35b586p-3F + 0x1.433c18p-3F * t, middle = 0x1.78bfccp-4F + 0x1.82d1a2p-3F * t;
  float p = low + z * (middle - z * 0x1.7058aep-4F);
  e = a > 13.8F ? 0 : e * (t * p);
  return x < 0 ? x * e * 0x1p-64F : x * (1 - e * 0x1p-64F);
}

/* sin(x), or cos(x), |x| <= HALF_CIRCLES: of x less a multiple of pi (and half of it), which is
 * taken off in three parts, the first two exactly. */
#define HALF_CIRCLES 800.0F
CPU_INLINE float cpu_half_sine(float x, bool cosine)
{
  float k = x * 0x1.45f306p-2F + (cosine ? -0.5F : 0) + CPU_MAGIC_F;
  float n = (k - CPU_MAGIC_F) + (cosine ? 0.5F : 0);
  float r = x - n * 0x1.921cp1F - n * 0x1.daap-14F - n * 0x1.10b462p-29F;
  float z = r * r, p = -0x1.84dbccp-13F;
  p = p * z + 0x1.107132p-7F;
  p = p * z - 0x1.555112p-3F;
  r = r * (p * z + 1); /* -0 stays -0 */
  uint32_t sign = (cpu_float_bits(k) + (cosine ? 1 : 0)) << 31;
  return cpu_float(cpu_float_bits(r) ^ sign);
}

/* Of n elements, whichever their sizes. `r` may be `a`. */
CPU_INLINE void half_sines(float *r, const float *a, int64_t n, bool cosine)
{
  int large = 0, larger = 0;
  for (int64_t i = 0; i < n; i++) {
    large |= fabsf(a[i]) > HALF_CIRCLES;
    larger |= fabsf(a[i]) > 0x1p20F;
  }
  if (!large)
    LOOP r[i] = cpu_half_sine(a[i], cosine);
  else if (!larger)
    LOOP
    {
      float any = (float)cpu_sine(a[i], cosine), some = cpu_half_sine(a[i], cosine);
      r[i] = fabsf(a[i]) > HALF_CIRCLES ? any : some;
    }
  else
    for (int64_t i = 0; i < n; i++)
      r[i] =
          fabsf(a[i]) > HALF_CIRCLES ? (float)any_sine(a[i], cosine) : cpu_half_sine(a[i], cosine);
}

/* Of halves that have become float32, and become halves. */
#define SHORT_OPS(X, E)                                                                            \
  X(E, EXP, T, cpu_half_exp(x))                                                                    \
  X(E, LOG, T, cpu_short_log(x))                                                                   \
  X(E, SIGMOID, T, cpu_half_sigmoid(x, 1))                                                         \
  X(E, SILU, T, cpu_half_sigmoid(x, x))                                                            \
  X(E, GELU, T, s->compute == WEIR_FLOAT16 ? cpu_half_gelu(x) : cpu_half_rough_gelu(x))

SHORT_OPS(KERNEL, SHORT)

#define SHORT_SINE(op, cosine)                                                                     \
  MAP_KERNEL(SHORT_##op)                                                                           \
  {                                                                                                \
    half_sines(out, in, n, cosine);                                                                \
  }
SHORT_SINE(SIN, false)
SHORT_SINE(COS, true)

/* ---- element by element ---------------------------------------------------------------------- */

/* Operands of a step: in place, or the last ones and room for their results. */
typedef struct half_step {
  const uint16_t *x, *y;
  uint16_t *out;
  uint16_t room[3][HALVES];
} half_step;

/* The last n. `out` may be an input. */
__attribute__((noinline, unused)) static void last_halves(half_step *h, int64_t n, bool two)
{
  memset(h->room, 0, sizeof h->room);
  memcpy(h->room[0], h->x, (size_t)n * sizeof *h->x);
  if (two) memcpy(h->room[1], h->y, (size_t)n * sizeof *h->y);
  h->x = h->room[0], h->y = h->room[1], h->out = h->room[2];
}

/* `two` and `number`: y is there and one number: known where this is expanded. The statements make
 * vr of vx and vy. */
#define HALF_LOOP(type, op, ...)                                                                   \
  CPU_INLINE void type##_##op##_by(uint16_t *r, const uint16_t *a, const void *in2, int64_t n,     \
                                   const cpu_args *s, bool two, bool number)                       \
  {                                                                                                \
    typedef float T __attribute__((unused));                                                       \
    const uint16_t *b = in2;                                                                       \
    float same = number ? *(const float *)in2 : 0;                                                 \
    (void)s, (void)same;                                                                           \
    for (int64_t i = 0; i < n; i += HALVES) {                                                      \
      half_step h;                                                                                 \
      float vx[HALVES], vy[HALVES], vr[HALVES];                                                    \
      (void)vy;                                                                                    \
      h.x = a + i, h.y = two && !number ? b + i : NULL, h.out = r + i;                             \
      if (n - i < HALVES) last_halves(&h, n - i, two && !number);                                  \
      widen_##type(vx, h.x);                                                                       \
      if (two && !number) widen_##type(vy, h.y);                                                   \
      __VA_ARGS__                                                                                  \
      narrow_##type(h.out, vr);                                                                    \
      if (n - i < HALVES) memcpy(r + i, h.out, (size_t)(n - i) * sizeof *r);                       \
    }                                                                                              \
  }                                                                                                \
  MAP_KERNEL(type##_##op)                                                                          \
  {                                                                                                \
    (void)in3;                                                                                     \
    if (INPUTS_##op == 1)                                                                          \
      type##_##op##_by(out, in, NULL, n, s, false, false);                                         \
    else if (s->same & 2)                                                                          \
      type##_##op##_by(out, in, in2, n, s, true, true);                                            \
    else                                                                                           \
      type##_##op##_by(out, in, in2, n, s, true, false);                                           \
  }

#define HALF_KERNEL(type, op, ...)                                                                 \
  HALF_LOOP(                                                                                       \
      type, op, for (int k = 0; k < HALVES; k++) {                                                 \
        float x = vx[k], y = number ? same : two ? vy[k] : 0;                                      \
        (void)y;                                                                                   \
        vr[k] = (__VA_ARGS__);                                                                     \
      })
#define HALF_SINE(type, op, cosine) HALF_LOOP(type, op, half_sines(vr, vx, HALVES, cosine);)

/* X(type, op, expression): those of FLOAT_OPS that are worth it, and SHORT_OPS. */
#define HALF_OPS(X, type)                                                                          \
  X(type, RELU, x < 0 ? 0 : x)                                                                     \
  X(type, SQRT, sqrtf(x))                                                                          \
  X(type, ADD, x + y)                                                                              \
  X(type, SUB, x - y)                                                                              \
  X(type, ADD_ALPHA, x + y * (T)s->alpha.f)                                                        \
  X(type, SUB_ALPHA, x - y * (T)s->alpha.f)                                                        \
  X(type, MUL, x *y)                                                                               \
  X(type, DIV, x / y)                                                                              \
  X(type, MAXIMUM, LARGER(x, y))                                                                   \
  X(type, MINIMUM, LESSER(x, y))                                                                   \
  X(type, LOG, cpu_short_log(x))                                                                   \
  X(type, EXP, cpu_half_exp(x))                                                                    \
  X(type, SIGMOID, cpu_half_sigmoid(x, 1))                                                         \
  X(type, SILU, cpu_half_sigmoid(x, x))
#define HALF_SINES(X, type) X(type, SIN, false) X(type, COS, true)

#ifdef __F16C__ /* else they are but larger code than blocks of float32 */
HALF_OPS(HALF_KERNEL, FLOAT16)
HALF_OPS(HALF_KERNEL, BFLOAT16)
HALF_SINES(HALF_SINE, FLOAT16)
HALF_SINES(HALF_SINE, BFLOAT16)
HALF_KERNEL(FLOAT16, GELU, cpu_half_gelu(x))
HALF_KERNEL(BFLOAT16, GELU, cpu_half_rough_gelu(x))

#define HALF_ENTRY(type, op, ...) ENTRY(type, op)
#define HALF_ENTRIES(type)        HALF_OPS(HALF_ENTRY, type) HALF_SINES(HALF_ENTRY, type) ENTRY(type, GELU)
#else
#define HALF_ENTRIES(type)
#endif
