/* cpu/tile.h: the innermost part of a matrix product, for one level of processor.
 *
 * Included once by each of cpu/tile.c, cpu/tile_avx2.c and cpu/tile_avx512.c, which state how long
 * a vector is (TILE_BYTES), how many rows a tile has (TILE_ROWS) and the table's name (TILE_LEVEL).
 * A tile of C, TILE_ROWS rows of two vectors, is held in registers while a column of A's panel and
 * a row of B's are multiplied into it, k times. Multiplication and addition may be one instruction
 * (-ffp-contract=fast, in these files alone), so results differ between levels by rounding.
 *
 * Panels: A's has TILE_ROWS elements for each of k steps, B's two vectors; what the matrix does not
 * have is 0 there. */
#include "core/base/compiler.h"
#include "core/backend/cpu/gemm.h"
#include "core/backend/half.h"

#define UNROLL WEIR_UNROLL(32)

enum { WIDE_ROWS = TILE_ROWS < 8 ? 4 : 8 /* of a tile of three vectors */ };

/* C (rows `ldc` apart) = alpha A B, or that added to it. */
#define TILE(T)                                                                                    \
  typedef T T##_vector __attribute__((vector_size(TILE_BYTES), aligned(sizeof(T)), may_alias));    \
  static void T##_tile(int64_t k, const void *a_panel, const void *b_panel, double alpha,          \
                       void *c_tile, int64_t ldc, bool add)                                        \
  {                                                                                                \
    enum { LANES = TILE_BYTES / sizeof(T) };                                                       \
    const T *a = a_panel, *b = b_panel;                                                            \
    T##_vector sum[TILE_ROWS][2] = {{{0}}};                                                        \
    for (int64_t p = 0; p < k; p++, a += TILE_ROWS, b += 2 * LANES) {                              \
      T##_vector left = *(const T##_vector *)b, right = *(const T##_vector *)(b + LANES);          \
      UNROLL for (int i = 0; i < TILE_ROWS; i++)                                                   \
      {                                                                                            \
        sum[i][0] += a[i] * left;                                                                  \
        sum[i][1] += a[i] * right;                                                                 \
      }                                                                                            \
    }                                                                                              \
    UNROLL for (int i = 0; i < TILE_ROWS; i++)                                                     \
    {                                                                                              \
      T *row = (T *)c_tile + i * ldc;                                                              \
      T##_vector *left = (T##_vector *)row, *right = (T##_vector *)(row + LANES);                  \
      *left = add ? *left + (T)alpha * sum[i][0] : (T)alpha * sum[i][0];                           \
      *right = add ? *right + (T)alpha * sum[i][1] : (T)alpha * sum[i][1];                         \
    }                                                                                              \
  }
TILE(float)
TILE(double)

/* Rows of B lie anywhere; ROWS rows of WIDE vectors. */
#define VIRTUAL_TILE(T, name, ROWS, WIDE)                                                          \
  static void T##_##name(int64_t k, const void *a_panel, const void *matrix,                       \
                         const int64_t *offset, void *c_tile, int64_t ldc, bool add)               \
  {                                                                                                \
    enum { LANES = TILE_BYTES / sizeof(T) };                                                       \
    const T *a = a_panel, *b = matrix;                                                             \
    T##_vector sum[ROWS][WIDE] = {{{0}}};                                                          \
    for (int64_t p = 0; p < k; p++, a += (ROWS)) {                                                 \
      const T *at = b + offset[p];                                                                 \
      T##_vector row[WIDE];                                                                        \
      UNROLL for (int j = 0; j < (WIDE); j++) row[j] =                                             \
          *(const T##_vector *)(at + (int64_t)(j * LANES));                                        \
      UNROLL for (int i = 0; i < (ROWS); i++) UNROLL for (int j = 0; j < (WIDE); j++) sum[i][j] += \
          a[i] * row[j];                                                                           \
    }                                                                                              \
    UNROLL for (int i = 0; i < (ROWS); i++) UNROLL for (int j = 0; j < (WIDE); j++)                \
    {                                                                                              \
      T##_vector *to = (T##_vector *)((T *)c_tile + i * ldc + (int64_t)(j * LANES));               \
      if (add) sum[i][j] += *to;                                                                   \
      *to = sum[i][j];                                                                             \
    }                                                                                              \
  }

/* One row of A. */
#define THIN_TILE(T)                                                                               \
  static void T##_thin_tile(int64_t k, const void *a_row, const void *matrix,                      \
                            const int64_t *offset, void *c_row, bool add)                          \
  {                                                                                                \
    enum { LANES = TILE_BYTES / sizeof(T), WIDE = 2 * CPU_THIN_TILES };                            \
    const T *a = a_row, *b = matrix;                                                               \
    T##_vector sum[WIDE] = {{0}};                                                                  \
    for (int64_t p = 0; p < k; p++)                                                                \
      UNROLL for (int i = 0; i < WIDE; i++) sum[i] +=                                              \
          a[p] * *(const T##_vector *)(b + offset[p] + (int64_t)(i * LANES));                      \
    UNROLL for (int i = 0; i < WIDE; i++)                                                          \
    {                                                                                              \
      T##_vector *to = (T##_vector *)((T *)c_row + i * LANES);                                     \
      if (add) sum[i] += *to;                                                                      \
      *to = sum[i];                                                                                \
    }                                                                                              \
  }
/* Four vectors of sums, then halves of these, then what is left. */
#define DOT(T)                                                                                     \
  static double T##_dot(int64_t n, const void *left, const void *right)                            \
  {                                                                                                \
    enum { LANES = TILE_BYTES / sizeof(T) };                                                       \
    const T *x = left, *y = right;                                                                 \
    T##_vector sum[4] = {{0}};                                                                     \
    int64_t i = 0;                                                                                 \
    for (; i + 4 * LANES <= n; i += 4 * LANES)                                                     \
      UNROLL for (int k = 0; k < 4; k++) sum[k] +=                                                 \
          *(const T##_vector *)(x + i + (int64_t)(k * LANES)) *                                    \
          *(const T##_vector *)(y + i + (int64_t)(k * LANES));                                     \
    T##_vector all = (sum[0] + sum[1]) + (sum[2] + sum[3]);                                        \
    double total = 0;                                                                              \
    for (int k = 0; k < LANES; k++)                                                                \
      total += (double)all[k];                                                                     \
    for (; i < n; i++)                                                                             \
      total += (double)x[i] * (double)y[i];                                                        \
    return total;                                                                                  \
  }
DOT(float)
DOT(double)
VIRTUAL_TILE(float, virtual_tile, TILE_ROWS, 2)
VIRTUAL_TILE(double, virtual_tile, TILE_ROWS, 2)
VIRTUAL_TILE(float, wide_tile, WIDE_ROWS, 3)
VIRTUAL_TILE(double, wide_tile, WIDE_ROWS, 3)
THIN_TILE(float)
THIN_TILE(double)

/* One panel: `width` rows (columns of B), `has` of them there, k steps; element (i, p) of the
 * matrix is at i * across + p * along. */
#define PACK(name, T, S, LOAD)                                                                     \
  static void name(void *panel, int64_t width, int64_t has, int64_t k, const void *matrix,         \
                   int64_t across, int64_t along)                                                  \
  {                                                                                                \
    T *to = panel;                                                                                 \
    const S *from = matrix;                                                                        \
    for (int64_t first = 0; first < k && along == 1; first += 16)                                  \
      for (int64_t i = 0; i < width; i++)                                                          \
        for (int64_t p = first; p < k && p < first + 16; p++)                                      \
          to[p * width + i] = i < has ? LOAD(from[i * across + p]) : 0;                            \
    for (int64_t p = 0; p < k && along != 1; p++)                                                  \
      for (int64_t i = 0; i < width; i++)                                                          \
        to[p * width + i] = i < has ? LOAD(from[i * across + p * along]) : 0;                      \
  }
#define SELF(x) (x)

/* A product so small that packing would take longer than it: elements of A are read where they are,
 * and rows of B, but for a copy of those that lie apart or are no vector wide. Each element of C is
 * summed as a tile sums it. */
#define SMALL(T)                                                                                   \
  static void T##_small_rows(const cpu_small *s, const T *b, int64_t b_step, int64_t row,          \
                             int64_t column, int64_t width)                                        \
  {                                                                                                \
    enum { LANES = TILE_BYTES / sizeof(T), ROWS = TILE_ROWS < 8 ? 4 : 8 };                         \
    int64_t has = s->m - row < ROWS ? s->m - row : ROWS;                                           \
    const T *a[ROWS];                                                                              \
    T##_vector sum[ROWS] = {{0}};                                                                  \
    for (int64_t i = 0; i < ROWS; i++)                                                             \
      a[i] = (const T *)s->a + (row + (i < has ? i : 0)) * s->a_row;                               \
    for (int64_t p = 0; p < s->k; p++) {                                                           \
      T##_vector at = *(const T##_vector *)(b + p * b_step);                                       \
      UNROLL for (int i = 0; i < ROWS; i++) sum[i] += a[i][p * s->a_step] * at;                    \
    }                                                                                              \
    for (int64_t i = 0; i < has; i++) {                                                            \
      T *to = (T *)s->c + (row + i) * s->ldc + column;                                             \
      T##_vector r = (T)s->alpha * sum[i];                                                         \
      if (width == LANES && s->add) r += *(T##_vector *)to;                                        \
      if (width == LANES)                                                                          \
        *(T##_vector *)to = r;                                                                     \
      else                                                                                         \
        for (int64_t j = 0; j < width; j++)                                                        \
          to[j] = s->add ? to[j] + r[j] : r[j];                                                    \
    }                                                                                              \
  }                                                                                                \
                                                                                                   \
  static void T##_small(const cpu_small *s)                                                        \
  {                                                                                                \
    enum { LANES = TILE_BYTES / sizeof(T), ROWS = TILE_ROWS < 8 ? 4 : 8 };                         \
    _Alignas(64) T panel[CPU_SMALL_STEPS * LANES];                                                 \
    for (int64_t column = 0; column < s->n; column += LANES) {                                     \
      int64_t width = s->n - column < LANES ? s->n - column : LANES, step = s->b_step;             \
      const T *b = (const T *)s->b + column * s->b_column;                                         \
      if (width < LANES || s->b_column != 1) {                                                     \
        for (int64_t p = 0; p < s->k; p++)                                                         \
          for (int64_t j = 0; j < LANES; j++)                                                      \
            panel[p * LANES + j] = j < width ? b[j * s->b_column + p * s->b_step] : 0;             \
        b = panel, step = LANES;                                                                   \
      }                                                                                            \
      for (int64_t row = 0; row < s->m; row += ROWS)                                               \
        T##_small_rows(s, b, step, row, column, width);                                            \
    }                                                                                              \
  }
SMALL(float)
SMALL(double)

PACK(pack_any_float, float, float, SELF)
PACK(pack_double, double, double, SELF)
PACK(pack_float16, float, uint16_t, float16_to_float)
PACK(pack_bfloat16, float, uint16_t, bfloat16_to_float)

/* Four rows of four elements, `across` apart, to four columns, `width` apart. */
typedef float four_floats __attribute__((vector_size(16), aligned(sizeof(float)), may_alias));
static inline void turn_four(float *to, int64_t width, const float *from, int64_t across)
{
  four_floats a = *(const four_floats *)from, b = *(const four_floats *)(from + across);
  four_floats c = *(const four_floats *)(from + 2 * across),
              d = *(const four_floats *)(from + 3 * across);
  four_floats ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  four_floats cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  four_floats ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  four_floats cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(four_floats *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(four_floats *)(to + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *(four_floats *)(to + 2 * width) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
  *(four_floats *)(to + 3 * width) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

/* Rows whose elements follow each other are turned four by four; of the last four rows some may
 * have been turned before. */
static void pack_float(void *panel, int64_t width, int64_t has, int64_t k, const void *matrix,
                       int64_t across, int64_t along)
{
  float *to = panel;
  const float *from = matrix;
  int64_t whole = along == 1 && has >= 4 ? k / 4 * 4 : 0;
  for (int64_t first = 0; first < whole; first += 16)
    for (int64_t i = 0; i < has; i += 4) {
      int64_t row = i < has - 4 ? i : has - 4;
      for (int64_t p = first; p < whole && p < first + 16; p += 4)
        turn_four(to + p * width + row, width, from + row * across + p, across);
    }
  for (int64_t p = 0; p < whole && has < width; p++)
    for (int64_t i = has; i < width; i++)
      to[p * width + i] = 0;
  pack_any_float(to + whole * width, width, has, k - whole, from + whole * along, across, along);
}

const cpu_tile_level TILE_LEVEL = {
    .rows = TILE_ROWS,
    .bytes = 2 * TILE_BYTES,
    .wide_rows = WIDE_ROWS,
    .wide_bytes = 3 * TILE_BYTES,
    .tile = {[WEIR_FLOAT32] = float_tile, [WEIR_FLOAT64] = double_tile},
    .pack = {[WEIR_FLOAT32] = pack_float,
             [WEIR_FLOAT64] = pack_double,
             [WEIR_FLOAT16] = pack_float16,
             [WEIR_BFLOAT16] = pack_bfloat16},
    .virtual_tile = {[WEIR_FLOAT32] = float_virtual_tile, [WEIR_FLOAT64] = double_virtual_tile},
    .wide_tile = {[WEIR_FLOAT32] = float_wide_tile, [WEIR_FLOAT64] = double_wide_tile},
    .small = {[WEIR_FLOAT32] = float_small, [WEIR_FLOAT64] = double_small},
    .dot = {[WEIR_FLOAT32] = float_dot, [WEIR_FLOAT64] = double_dot},
    .thin_tile = {[WEIR_FLOAT32] = float_thin_tile, [WEIR_FLOAT64] = double_thin_tile}};
