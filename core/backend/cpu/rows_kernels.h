/* cpu/rows_kernels.h: the kernels of cpu/rows.h, for one level of processor.
 *
 * Included once by each of cpu/rows.c, cpu/rows_avx2.c and cpu/rows_avx512.c, which state the
 * table's name (ROW_LEVEL). Loops are such that a compiler makes vectors of them and the result
 * stays what it is: where a sum is made, in LANES lanes, which are added to a double after each
 * PART elements, so that its error does not grow with the row.
 *
 * softmax, in three passes: the largest; exponentials of what elements are less than it, and their
 * sum; the quotients. A NaN, an infinity that is the largest, or a row of nothing but -infinity
 * give NaN, as in torch. */
#include <math.h>
#include <string.h>
#include "core/base/compiler.h"
#include "core/backend/cpu/math.h"
#include "core/backend/cpu/rows.h"

#define ROW_INLINE static inline __attribute__((always_inline, unused))
#define EACH       WEIR_IVDEP for (int64_t i = 0; i < n; i++)

enum { LANES = 32, PART = 1024, FLUSH = 64, ABREAST = 8, SHORT = 128 };

/* e^x for x of at most some 80: 1 unit in the last place. Taken apart as 2^k e^r, |r| <= ln 2 / 2;
 * the polynomial is the minimax one of its degree. Results below the least normal number are right,
 * too: the scale is 2^k in two parts. */
ROW_INLINE float float_exp(float x)
{
  x = x < -104.0F ? -104.0F : x;
  float shifted = x * 0x1.715476p0F + 0x1.8p23F, k = shifted - 0x1.8p23F;
  float r = x - k * 0x1.62e4p-1F - k * 0x1.7f7d1cp-20F, p = 0x1.6a21acp-10F;
  p = p * r + 0x1.123b6ap-7F;
  p = p * r + 0x1.5558fap-5F;
  p = p * r + 0x1.55549p-3F;
  p = p * r + 0x1.fffffcp-2F;
  p = p * (r * r) + r + 1;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + (127 + 64)) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale * 0x1p-64F;
}

ROW_INLINE double double_exp(double x)
{
  return exp(x);
}

/* Exact to some 1e-9, which float32 does not see. */
ROW_INLINE double float_log(double x)
{
  return cpu_log(x);
}

ROW_INLINE double double_log(double x)
{
  return log(x);
}

/* What n elements come to, in lanes; m: a number all of them need. */
#define SUM_OF(T, name, ...)                                                                       \
  ROW_INLINE double T##_##name(const T *x, const T *y, T m, int64_t n)                             \
  {                                                                                                \
    double total = 0;                                                                              \
    (void)y, (void)m;                                                                              \
    for (int64_t from = 0; from < n; from += PART) {                                               \
      int64_t end = n - from < PART ? n : from + PART, i = from;                                   \
      T lane[LANES] = {0};                                                                         \
      for (; i + LANES <= end; i += LANES)                                                         \
        for (int j = 0; j < LANES; j++) {                                                          \
          int64_t k = i + j;                                                                       \
          lane[j] += (__VA_ARGS__);                                                                \
        }                                                                                          \
      for (int j = 0; j < end - i; j++) {                                                          \
        int64_t k = i + j;                                                                         \
        lane[j] += (__VA_ARGS__);                                                                  \
      }                                                                                            \
      for (int half = LANES / 2; half; half /= 2)                                                  \
        for (int j = 0; j < half; j++)                                                             \
          lane[j] += lane[j + half];                                                               \
      total += (double)lane[0];                                                                    \
    }                                                                                              \
    return total;                                                                                  \
  }

#define LARGEST(T)                                                                                 \
  ROW_INLINE T T##_largest(const T *x, int64_t n)                                                  \
  {                                                                                                \
    T lane[LANES], most = x[0];                                                                    \
    int64_t i = 0;                                                                                 \
    for (int j = 0; j < LANES; j++)                                                                \
      lane[j] = x[0];                                                                              \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int j = 0; j < LANES; j++)                                                              \
        lane[j] = lane[j] > x[i + j] ? lane[j] : x[i + j];                                         \
    for (; i < n; i++)                                                                             \
      most = most > x[i] ? most : x[i];                                                            \
    for (int half = LANES / 2; half; half /= 2)                                                    \
      for (int j = 0; j < half; j++)                                                               \
        lane[j] = lane[j] > lane[j + half] ? lane[j] : lane[j + half];                             \
    return most > lane[0] ? most : lane[0];                                                        \
  }

/* ---- a row ----------------------------------------------------------------------------------- */

#define SOFTMAX_ROW(T)                                                                             \
  static void T##_softmax_row(void *out, const void *in, int64_t n, bool logarithm)                \
  {                                                                                                \
    const T *x = in;                                                                               \
    T *r = out, part[PART], most = T##_largest(x, n);                                              \
    double sum = 0;                                                                                \
    for (int64_t from = 0; from < n; from += PART) {                                               \
      int64_t count = n - from < PART ? n - from : PART;                                           \
      T *e = logarithm ? part : r + from;                                                          \
      const T *at = x + from;                                                                      \
      WEIR_IVDEP for (int64_t i = 0; i < count; i++) e[i] = T##_exp(at[i] - most);                 \
      sum += T##_sum(e, NULL, 0, count);                                                           \
    }                                                                                              \
    T by = (T)(logarithm ? T##_log(sum) : 1 / sum);                                                \
    if (logarithm)                                                                                 \
      EACH r[i] = x[i] - most - by;                                                                \
    else                                                                                           \
      EACH r[i] *= by;                                                                             \
  }                                                                                                \
                                                                                                   \
  static void T##_softmax_row_back(void *out, const void *grad, const void *result, int64_t n,     \
                                   bool logarithm)                                                 \
  {                                                                                                \
    const T *g = grad, *y = result;                                                                \
    T *r = out, sum = (T)(logarithm ? T##_sum(g, y, 0, n) : T##_dot(g, y, 0, n));                  \
    if (logarithm)                                                                                 \
      EACH r[i] = g[i] - T##_exp(y[i]) * sum;                                                      \
    else                                                                                           \
      EACH r[i] = y[i] * (g[i] - sum);                                                             \
  }

/* ---- columns side by side -------------------------------------------------------------------- */

/* sum[j] of column j; rows are added to a double after each FLUSH of them. */
#define SOFTMAX_COLUMNS(T)                                                                         \
  static void T##_softmax_columns(void *out, const void *in, int64_t n, int64_t width,             \
                                  int64_t stride, bool logarithm)                                  \
  {                                                                                                \
    T most[CPU_COLUMNS], part[CPU_COLUMNS] = {0};                                                  \
    double sum[CPU_COLUMNS] = {0};                                                                 \
    const T *x = in;                                                                               \
    memcpy(most, x, (size_t)width * sizeof *most);                                                 \
    for (int64_t row = 1; row < n; row++) {                                                        \
      x += stride;                                                                                 \
      for (int64_t j = 0; j < width; j++)                                                          \
        most[j] = most[j] > x[j] ? most[j] : x[j];                                                 \
    }                                                                                              \
    x = in;                                                                                        \
    T *r = out;                                                                                    \
    for (int64_t row = 0; row < n; row++, x += stride, r += stride) {                              \
      T e[CPU_COLUMNS];                                                                            \
      for (int64_t j = 0; j < width; j++) {                                                        \
        e[j] = T##_exp(x[j] - most[j]);                                                            \
        part[j] += e[j];                                                                           \
      }                                                                                            \
      if (!logarithm) memcpy(r, e, (size_t)width * sizeof *e);                                     \
      for (int64_t j = 0; j < width && (row % FLUSH == FLUSH - 1 || row == n - 1); j++) {          \
        sum[j] += (double)part[j];                                                                 \
        part[j] = 0;                                                                               \
      }                                                                                            \
    }                                                                                              \
    for (int64_t j = 0; j < width; j++)                                                            \
      part[j] = (T)(logarithm ? T##_log(sum[j]) : 1 / sum[j]);                                     \
    x = in, r = out;                                                                               \
    for (int64_t row = 0; row < n; row++, x += stride, r += stride)                                \
      if (logarithm)                                                                               \
        WEIR_IVDEP for (int64_t j = 0; j < width; j++) r[j] = x[j] - most[j] - part[j];            \
      else                                                                                         \
        WEIR_IVDEP for (int64_t j = 0; j < width; j++) r[j] *= part[j];                            \
  }                                                                                                \
                                                                                                   \
  static void T##_softmax_columns_back(void *out, const void *grad, const void *result, int64_t n, \
                                       int64_t width, int64_t stride, bool logarithm)              \
  {                                                                                                \
    double sum[CPU_COLUMNS] = {0};                                                                 \
    T total[CPU_COLUMNS], *r = out;                                                                \
    const T *g = grad, *y = result;                                                                \
    for (int64_t row = 0; row < n; row++, g += stride, y += stride)                                \
      for (int64_t j = 0; j < width; j++)                                                          \
        sum[j] += (double)(logarithm ? g[j] : g[j] * y[j]);                                        \
    for (int64_t j = 0; j < width; j++)                                                            \
      total[j] = (T)sum[j];                                                                        \
    g = grad, y = result;                                                                          \
    for (int64_t row = 0; row < n; row++, g += stride, y += stride, r += stride)                   \
      if (logarithm)                                                                               \
        WEIR_IVDEP for (int64_t j = 0; j < width; j++) r[j] = g[j] - T##_exp(y[j]) * total[j];     \
      else                                                                                         \
        WEIR_IVDEP for (int64_t j = 0; j < width; j++) r[j] = y[j] * (g[j] - total[j]);            \
  }

/* ---- rows with a mean of 0 and a variance of 1 ----------------------------------------------- */

#define NORM(T)                                                                                    \
  SUM_OF(T, squares, (x[k] - m) * (x[k] - m))                                                      \
  SUM_OF(T, centred, x[k] * (y[k] - m))                                                            \
                                                                                                   \
  /* What x is less by, and times. */                                                              \
  ROW_INLINE T T##_statistics(const T *x, const cpu_norm_row *p, T *times)                         \
  {                                                                                                \
    bool layer = p->kind == WEIR_NORM_LAYER;                                                       \
    T mean = layer ? (T)(T##_sum(x, NULL, 0, p->n) / (double)p->n) : 0;                            \
    *times = 1;                                                                                    \
    if (p->kind != WEIR_NORM_AFFINE)                                                               \
      *times = (T)(1 / sqrt(T##_squares(x, NULL, mean, p->n) / (double)p->n + p->eps));            \
    return mean;                                                                                   \
  }                                                                                                \
                                                                                                   \
  static void T##_norm_row(void *out, const void *in, const cpu_norm_row *p)                       \
  {                                                                                                \
    const T *x = in, *w = p->weight, *b = p->bias;                                                 \
    int64_t n = p->n;                                                                              \
    T *r = out, times, mean = T##_statistics(x, p, &times);                                        \
    if (p->inner > 1 || (!w && !b))                                                                \
      for (int64_t c = 0, from = 0, each = w || b ? p->inner : n; from < n; c++, from += each) {   \
        T scale = w ? times * w[c] : times, more = b ? b[c] : 0;                                   \
        WEIR_IVDEP for (int64_t i = from; i < from + each; i++) r[i] =                             \
            (x[i] - mean) * scale + more;                                                          \
      }                                                                                            \
    else if (w && b)                                                                               \
      EACH r[i] = (x[i] - mean) * times * w[i] + b[i];                                             \
    else if (w)                                                                                    \
      EACH r[i] = (x[i] - mean) * times * w[i];                                                    \
    else                                                                                           \
      EACH r[i] = (x[i] - mean) * times + b[i];                                                    \
  }                                                                                                \
                                                                                                   \
  static void T##_norm_row_back(void *out, const void *grad, const void *in,                       \
                                const cpu_norm_row *p)                                             \
  {                                                                                                \
    const T *g = grad, *x = in, *w = p->weight;                                                    \
    int64_t n = p->n;                                                                              \
    T *r = out, times, mean = T##_statistics(x, p, &times);                                        \
    if (!w)                                                                                        \
      memmove(r, g, (size_t)n * sizeof *r);                                                        \
    else if (p->inner == 1)                                                                        \
      EACH r[i] = g[i] * w[i];                                                                     \
    else                                                                                           \
      for (int64_t c = 0, from = 0; from < n; c++, from += p->inner)                               \
        WEIR_IVDEP for (int64_t i = from; i < from + p->inner; i++) r[i] = g[i] * w[c];            \
    double by = T##_centred(r, x, mean, n) * (double)times / (double)n;                            \
    T less = p->kind == WEIR_NORM_LAYER ? (T)(T##_sum(r, NULL, 0, n) / (double)n) : 0;             \
    T slope = (T)(by * (double)times);                                                             \
    EACH r[i] = times * (r[i] - less - (x[i] - mean) * slope);                                     \
  }                                                                                                \
                                                                                                   \
  static void T##_affine(void *out, const void *in, const weir_norm_request *q, int64_t first,     \
                         int64_t rows)                                                             \
  {                                                                                                \
    const T *x = in, *w = q->weight, *b = q->bias;                                                 \
    int64_t n = q->each, c = first % q->groups;                                                    \
    T *r = out;                                                                                    \
    for (int64_t row = 0; row < rows; row++, x += n, r += n, c = c + 1 < q->groups ? c + 1 : 0) {  \
      T scale = w ? w[c] : 1, more = b ? b[c] : 0;                                                 \
      EACH r[i] = x[i] * scale + more;                                                             \
    }                                                                                              \
  }

/* ---- lines of planes ------------------------------------------------------------------------- */

#define LINE(T)                                                                                    \
  static void T##_line_add(void *to, const void *from, int64_t n)                                  \
  {                                                                                                \
    T *r = to;                                                                                     \
    const T *x = from;                                                                             \
    EACH r[i] += x[i];                                                                             \
  }                                                                                                \
  /* Of ABREAST rows at once, in as many lanes: neighbours are added until a row has one. \
   * Rows that are not there are the last one again. */        \
  ROW_INLINE void T##_sum_abreast(T sum[ABREAST], const T *x, int64_t rows, int64_t n)             \
  {                                                                                                \
    typedef T lanes __attribute__((vector_size(ABREAST * sizeof(T))));                             \
    lanes part[ABREAST], next;                                                                     \
    int64_t whole = n / ABREAST * ABREAST;                                                         \
    for (int j = 0; j < ABREAST; j++) {                                                            \
      const T *at = x + (j < rows ? j : rows - 1) * n;                                             \
      part[j] = (lanes){0};                                                                        \
      for (int64_t i = 0; i < whole; i += ABREAST) {                                               \
        memcpy(&next, at + i, sizeof next);                                                        \
        part[j] += next;                                                                           \
      }                                                                                            \
    }                                                                                              \
    for (int half = ABREAST / 2; half; half /= 2)                                                  \
      for (int j = 0; j < half; j++)                                                               \
        part[j] =                                                                                  \
            __builtin_shufflevector(part[2 * j], part[2 * j + 1], 0, 2, 4, 6, 8, 10, 12, 14) +     \
            __builtin_shufflevector(part[2 * j], part[2 * j + 1], 1, 3, 5, 7, 9, 11, 13, 15);      \
    memcpy(sum, part, sizeof *part);                                                               \
    for (int j = 0; j < rows; j++)                                                                 \
      for (int64_t i = whole; i < n; i++)                                                          \
        sum[j] += x[j * n + i];                                                                    \
  }                                                                                                \
  static void T##_line_means(void *to, const void *from, int64_t rows, int64_t n, double by)       \
  {                                                                                                \
    T *r = to, sum[ABREAST];                                                                       \
    const T *x = from;                                                                             \
    for (int64_t row = 0; row < rows && n > SHORT; row++)                                          \
      r[row] = (T)(T##_sum(x + row * n, NULL, 0, n) / by);                                         \
    for (int64_t row = 0; row < rows && n <= SHORT; row += ABREAST, x += ABREAST * n) {            \
      int64_t has = rows - row < ABREAST ? rows - row : ABREAST;                                   \
      T##_sum_abreast(sum, x, has, n);                                                             \
      for (int j = 0; j < has; j++)                                                                \
        r[row + j] = (T)((double)sum[j] / by);                                                     \
    }                                                                                              \
  }

#define SOFTMAX(T)                                                                                 \
  SUM_OF(T, sum, x[k])                                                                             \
  SUM_OF(T, dot, x[k] * y[k])                                                                      \
  LARGEST(T)                                                                                       \
  SOFTMAX_ROW(T)                                                                                   \
  SOFTMAX_COLUMNS(T)                                                                               \
  NORM(T)                                                                                          \
  LINE(T)
#define SOFTMAX_KERNELS(T)                                                                         \
  T##_softmax_row, T##_softmax_columns, T##_softmax_row_back, T##_softmax_columns_back

SOFTMAX(float)
SOFTMAX(double)

const cpu_row_level ROW_LEVEL = {
    .softmax = {{SOFTMAX_KERNELS(float)}, {SOFTMAX_KERNELS(double)}},
    .norm = {{float_norm_row, float_norm_row_back, float_affine},
             {double_norm_row, double_norm_row_back, double_affine}},
    .line = {{float_line_add, float_line_means}, {double_line_add, double_line_means}}};
