/* cpu/gemm_int.c: matrix products of integers.
 *
 * A tile of C is summed in int64, which wraps. Each row of B in the tile's columns is converted
 * once and added, times an element of A, to all rows of the tile. */
#include <string.h>
#include "core/backend/cpu/gemm.h"
#include "core/backend/threads.h"

enum { ROWS = 32, COLUMNS = CPU_BLOCK };

typedef struct tile {
  const weir_gemm *g;
  const char *a, *b;
  char *c;
  int64_t row, rows, column, columns;
} tile;

/* n elements from `from`, `step` elements apart. */
static void load_elements(uint64_t *to, const char *from, int64_t step, int64_t n, weir_dtype dtype)
{
  char room[CPU_BLOCK * CPU_ELEMENT];
  cpu_walk w;
  weir_operand o = {.data = (void *)from, .dtype = dtype, .stride = {step}};
  cpu_walk_start(&w, &o, 1, &n, 0);
  const void *x = cpu_walk_take(&w, n, room);
  cpu_level_in_use()->cast[WEIR_INT64][dtype](to, x, n);
}

static void sum_tile(uint64_t *sum, const tile *t)
{
  const weir_gemm *g = t->g;
  int64_t size = (int64_t)cpu_dtype_bytes(g->dtype);
  int64_t up = g->transb ? 1 : g->ldb, across = g->transb ? g->ldb : 1;
  int64_t down = g->transa ? 1 : g->lda, along = g->transa ? g->lda : 1;
  uint64_t a[ROWS], b[COLUMNS];
  memset(sum, 0, sizeof *sum * (size_t)(t->rows * COLUMNS));
  for (int64_t p = 0; p < g->k; p++) {
    load_elements(b, t->b + (p * up + t->column * across) * size, across, t->columns, g->dtype);
    load_elements(a, t->a + (t->row * down + p * along) * size, down, t->rows, g->dtype);
    for (int64_t i = 0; i < t->rows; i++)
      for (int64_t j = 0; j < t->columns; j++)
        sum[i * COLUMNS + j] += a[i] * b[j];
  }
}

/* alpha and beta of an integer product are integers. */
static void store_tile(uint64_t *sum, const tile *t)
{
  const weir_gemm *g = t->g;
  size_t size = cpu_dtype_bytes(g->dtype);
  uint64_t alpha = (uint64_t)(int64_t)g->alpha, beta = (uint64_t)(int64_t)g->beta;
  uint64_t before[COLUMNS] = {0};
  for (int64_t i = 0; i < t->rows; i++) {
    char *c = t->c + ((t->row + i) * g->ldc + t->column) * (int64_t)size;
    uint64_t *s = sum + i * COLUMNS;
    if (beta) load_elements(before, c, 1, t->columns, g->dtype);
    for (int64_t j = 0; j < t->columns; j++)
      s[j] = alpha * s[j] + beta * before[j];
    cpu_level_in_use()->cast[g->dtype][WEIR_INT64](c, s, t->columns);
  }
}

static void some_int_tiles(void *arg, int64_t from, int64_t to)
{
  const weir_gemm *g = arg;
  int64_t down = (g->m - 1) / ROWS + 1, across = (g->n - 1) / COLUMNS + 1;
  int64_t size = (int64_t)cpu_dtype_bytes(g->dtype);
  uint64_t sum[ROWS * COLUMNS];
  for (int64_t x = from; x < to; x++) {
    int64_t b = x / (down * across), row = x / across % down * ROWS, column = x % across * COLUMNS;
    tile t = {.g = g, .row = row, .column = column};
    t.a = (const char *)g->a + b * g->stepa * size;
    t.b = (const char *)g->b + b * g->stepb * size;
    t.c = (char *)g->c + b * g->stepc * size;
    t.rows = g->m - row < ROWS ? g->m - row : ROWS;
    t.columns = g->n - column < COLUMNS ? g->n - column : COLUMNS;
    sum_tile(sum, &t);
    store_tile(sum, &t);
  }
}

weir_status cpu_gemm_int(const weir_gemm *g)
{
  weir_gemm mine = *g;
  int64_t tiles = g->batch * ((g->m - 1) / ROWS + 1) * ((g->n - 1) / COLUMNS + 1);
  int64_t work = g->k * ROWS * (g->n < COLUMNS ? g->n : COLUMNS) + 1;
  parallel_for(tiles, CPU_GRAIN * 4 / work + 1, some_int_tiles, &mine);
  return WEIR_OK;
}
