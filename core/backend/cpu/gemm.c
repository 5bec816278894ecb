/* cpu/gemm.c: matrix products on the cpu: blocks, panels, tiles.
 *
 * As in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (ACM TOMS 34(3),
 * 2008): B is cut into blocks of STEPS rows by some columns and packed into panels as wide as a
 * tile, A into blocks of some rows by STEPS columns, packed into panels as high as a tile; a panel
 * of B stays in the first cache while A's block comes from the second. Packing takes care of
 * transposition and converts float16 and bfloat16 to float32, so there is one kind of tile
 * (cpu/tile.h). The threads share the packing of B, and then the blocks of A; every element of C is
 * summed in the same order whoever does it.
 *
 * Small products are not packed: what that takes is more than what it saves.
 *
 * float16 and bfloat16: C is summed in a float32 matrix of its own, and rounded once. complex64:
 * four real products, of real and imaginary parts.
 *
 * Words. product: one of real matrices, all of one batch place. step: an index of k. */
#include <complex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/least.h"
#include "core/backend/cpu/gemm.h"
#include "core/backend/threads.h"

enum {
  STEPS = 256,
  A_BYTES = 256 << 10, /* of a block of A */
  B_BYTES = 2 << 20,   /* of a block of B */
  FEW = 1 << 18,       /* multiplications one thread does as soon alone */
  MANY = 1 << 22,      /* that are worth waking another for */
  SMALL = 1 << 15      /* that are done sooner than packed */
};

typedef struct product {
  const cpu_tile_level *level;
  weir_dtype type, source; /* of the arithmetic and of C; of A and B as stored */
  int64_t m, n, k;
  const char *a, *b;
  int64_t a_row, a_step, b_column, b_step; /* elements of the source from one to the next */
  char *c;
  int64_t ldc;
  double alpha;
  bool add; /* to C */
  int threads;
  /* set by multiply_packed() */
  int64_t width;  /* of a tile, elements */
  int64_t size;   /* of an element of the arithmetic, bytes */
  int64_t height; /* of a block of A, rows */
  int64_t chunks; /* the columns of a block are shared in */
  char *panels_a, *panels_b;
  /* the block of B that is packed */
  int64_t column, columns, step, steps;
} product;

static int64_t in_units(int64_t n, int64_t unit)
{
  return (n + unit - 1) / unit;
}

/* ---- a product ------------------------------------------------------------------------------- */

static void pack_b(void *arg, int64_t from, int64_t to)
{
  const product *p = arg;
  size_t bytes = cpu_dtype_bytes(p->source);
  for (int64_t i = from; i < to; i++) {
    int64_t column = i * p->width, has = least(p->width, p->columns - column);
    const char *at =
        p->b + ((p->column + column) * p->b_column + p->step * p->b_step) * (int64_t)bytes;
    p->level->pack[p->source](p->panels_b + i * p->width * p->steps * p->size, p->width, has,
                              p->steps, at, p->b_column, p->b_step);
  }
}

/* A tile that C has not all of. */
static void edge(const product *p, const char *a, const char *b, char *c, int64_t rows,
                 int64_t columns, bool add)
{
  _Alignas(64) char whole[CPU_TILE_ROWS * CPU_TILE_BYTES];
  p->level->tile[p->type](p->steps, a, b, p->alpha, whole, p->width, false);
  for (int64_t i = 0; i < rows; i++) {
    char *to = c + i * p->ldc * p->size;
    const char *from = whole + i * p->width * p->size;
    if (!add)
      memcpy(to, from, (size_t)(columns * p->size));
    else if (p->type == WEIR_FLOAT32)
      for (int64_t j = 0; j < columns; j++)
        ((float *)to)[j] += ((const float *)from)[j];
    else
      for (int64_t j = 0; j < columns; j++)
        ((double *)to)[j] += ((const double *)from)[j];
  }
}

/* Rows of A in panels, times panels `first` to `last` of B. */
static void multiply_block(const product *p, const char *a, int64_t row, int64_t rows,
                           int64_t first, int64_t last)
{
  int64_t high = p->level->rows, panel_a = high * p->steps * p->size;
  bool add = p->add || p->step > 0;
  for (int64_t j = first; j < last; j++) {
    const char *b = p->panels_b + j * p->width * p->steps * p->size;
    int64_t column = j * p->width, columns = least(p->width, p->columns - column);
    for (int64_t i = 0; i * high < rows; i++) {
      int64_t has = least(high, rows - i * high);
      char *c = p->c + ((row + i * high) * p->ldc + p->column + column) * p->size;
      if (has == high && columns == p->width)
        p->level->tile[p->type](p->steps, a + i * panel_a, b, p->alpha, c, p->ldc, add);
      else
        edge(p, a + i * panel_a, b, c, has, columns, add);
    }
  }
}

/* Items are (block of A, chunk of B's panels). */
static void multiply_items(void *arg, int64_t from, int64_t to)
{
  const product *p = arg;
  int64_t high = p->level->rows, panels = in_units(p->columns, p->width), packed = -1;
  char *a = p->panels_a + parallel_self() * p->height * STEPS * p->size;
  for (int64_t x = from; x < to; x++) {
    int64_t block = x / p->chunks, chunk = x % p->chunks;
    int64_t row = block * p->height, rows = least(p->height, p->m - row);
    for (int64_t i = 0; i * high < rows && block != packed; i++) {
      const char *at = p->a + ((row + i * high) * p->a_row + p->step * p->a_step) *
                                  (int64_t)cpu_dtype_bytes(p->source);
      p->level->pack[p->source](a + i * high * p->steps * p->size, high,
                                least(high, rows - i * high), p->steps, at, p->a_row, p->a_step);
    }
    packed = block;
    multiply_block(p, a, row, rows, panels * chunk / p->chunks, panels * (chunk + 1) / p->chunks);
  }
}

/* Between few and many it depends on whether threads are awake. */
static bool is_shared(int64_t results, int64_t k)
{
  if (results < FEW && results * k < 2L * FEW) return false; /* B is packed before it begins */
  return results >= FEW || results * k >= MANY || parallel_at_once();
}

static void measure_gemm(product *p)
{
  int64_t high = p->level->rows;
  p->size = (int64_t)cpu_dtype_bytes(p->type);
  p->width = p->level->bytes / p->size;
  p->threads = is_shared(p->m * p->n, p->k) ? weir_get_num_threads() : 1;
  int64_t most = A_BYTES / (STEPS * p->size) / high * high;
  int64_t even = in_units(in_units(p->m, p->threads), high) * high;
  p->height = least(most, even);
  int64_t blocks = in_units(p->m, p->height);
  p->chunks = p->threads == 1 ? 1 : in_units(2L * p->threads, blocks);
}

/* C = alpha A B, or that added to it. k is not 0. */
static weir_status multiply_packed(product *p)
{
  p->level = cpu_tile_in_use();
  measure_gemm(p);
  int64_t most = B_BYTES / (STEPS * p->size) / p->width * p->width;
  int64_t wide = least(most, in_units(p->n, p->width) * p->width);
  size_t bytes_a = (size_t)(p->height * STEPS * p->size) * (size_t)p->threads;
  cpu_room *r = cpu_room_take(bytes_a + (size_t)(wide * STEPS * p->size));
  if (!r) return fail_memory("the panels of a matrix product");
  p->panels_a = r->data;
  p->panels_b = r->data + bytes_a;
  for (p->column = 0; p->column < p->n; p->column += wide) {
    p->columns = least(wide, p->n - p->column);
    for (p->step = 0; p->step < p->k; p->step += STEPS) {
      p->steps = least(STEPS, p->k - p->step);
      int64_t panels = in_units(p->columns, p->width);
      parallel_for_most(p->threads, panels, in_units(panels, 2L * p->threads), pack_b, p);
      parallel_for_most(p->threads, in_units(p->m, p->height) * p->chunks, 1, multiply_items, p);
    }
  }
  cpu_room_give(r);
  return WEIR_OK;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Rows of C times beta; beta 0: zero, whatever was there. */
static void scale(const weir_gemm *g)
{
  size_t bytes = cpu_dtype_bytes(g->dtype);
  for (int64_t i = 0; i < g->m && g->beta != 1; i++) {
    char *row = (char *)g->c + i * g->ldc * (int64_t)bytes;
    if (g->beta == 0) memset(row, 0, (size_t)g->n * bytes);
    for (int64_t j = 0; j < g->n && g->beta != 0; j++)
      switch (g->dtype) {
      case WEIR_FLOAT64:
        ((double *)row)[j] *= g->beta;
        break;
      case WEIR_COMPLEX64:
        ((float _Complex *)row)[j] *= (float)g->beta;
        break;
      case WEIR_FLOAT32:
        ((float *)row)[j] *= (float)g->beta;
        break;
      default: {
        double x;
        cpu_level_in_use()->cast[WEIR_FLOAT64][g->dtype](&x, row + (size_t)j * bytes, 1);
        x *= g->beta;
        cpu_level_in_use()->cast[g->dtype][WEIR_FLOAT64](row + (size_t)j * bytes, &x, 1);
      }
      }
  }
}

/* The product of g's matrices, `part` elements into each, `every` elements of `source` being one of
 * theirs. */
static product product_of(const weir_gemm *g, weir_dtype source, int every)
{
  product p = {.source = source, .m = g->m, .n = g->n, .k = g->k, .a = g->a, .b = g->b};
  p.a_row = every * (g->transa ? 1 : g->lda);
  p.a_step = every * (g->transa ? g->lda : 1);
  p.b_step = every * (g->transb ? 1 : g->ldb);
  p.b_column = every * (g->transb ? g->ldb : 1);
  p.type = source == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32;
  p.alpha = 1;
  return p;
}

static weir_status real_gemm(const weir_gemm *g)
{
  product p = product_of(g, g->dtype, 1);
  p.c = g->c;
  p.ldc = g->ldc;
  p.alpha = g->alpha;
  p.add = g->beta != 0;
  if (g->beta != 0) scale(g);
  if (cpu_gemm_thin(g)) return WEIR_OK;
  if (p.k > CPU_SMALL_STEPS || p.m * p.n * p.k > SMALL) return multiply_packed(&p);
  cpu_small s = {.m = p.m, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .c = p.c, .ldc = p.ldc};
  s.a_row = p.a_row, s.a_step = p.a_step, s.b_step = p.b_step, s.b_column = p.b_column;
  s.alpha = p.alpha, s.add = p.add;
  cpu_tile_in_use()->small[p.type](&s);
  return WEIR_OK;
}

/* C = alpha sum + beta C, the sum being float32. */
static weir_status half_gemm(const weir_gemm *g)
{
  const cpu_level *level = cpu_level_in_use();
  product p = product_of(g, g->dtype, 1);
  float *sum = malloc(sizeof *sum * (size_t)g->m * (size_t)g->n), one;
  if (!sum) return fail_memory("the float32 sums of a product");
  p.c = (char *)sum;
  p.ldc = g->n;
  p.alpha = g->alpha;
  weir_status st = multiply_packed(&p);
  for (int64_t i = 0; i < g->m && !st; i++) {
    uint16_t *row = (uint16_t *)g->c + i * g->ldc;
    for (int64_t j = 0; j < g->n && g->beta != 0; j++) {
      level->cast[WEIR_FLOAT32][g->dtype](&one, &row[j], 1);
      sum[i * g->n + j] += (float)g->beta * one;
    }
    level->cast[g->dtype][WEIR_FLOAT32](row, &sum[i * g->n], g->n);
  }
  free(sum);
  return st;
}

static weir_status complex_gemm(const weir_gemm *g)
{
  size_t count = (size_t)g->m * (size_t)g->n;
  float *real = malloc(2 * sizeof *real * count), *imaginary = real + count;
  if (!real) return fail_memory("the parts of a complex product");
  weir_status st = WEIR_OK;
  for (int i = 0; i < 4 && !st; i++) { /* a's part i / 2, b's part i % 2 */
    product p = product_of(g, WEIR_FLOAT32, 2);
    p.a += i / 2 * (int)sizeof(float);
    p.b += i % 2 * (int)sizeof(float);
    p.c = (char *)(i / 2 == i % 2 ? real : imaginary);
    p.ldc = g->n;
    p.alpha = i == 3 ? -1 : 1;
    p.add = i >= 2;
    st = multiply_packed(&p);
  }
  if (!st) scale(g);
  for (int64_t i = 0; i < g->m && !st; i++)
    for (int64_t j = 0; j < g->n; j++) {
      float *c = (float *)g->c + 2 * (i * g->ldc + j);
      c[0] += (float)g->alpha * real[i * g->n + j];
      c[1] += (float)g->alpha * imaginary[i * g->n + j];
    }
  free(real);
  return st;
}

static weir_status multiply_one(const weir_gemm *g)
{
  if (g->k == 0) {
    scale(g);
    return WEIR_OK;
  }
  bool done;
  weir_status st = cpu_gemm_blas(g, &done);
  if (st || done) return st;
  if (g->dtype == WEIR_COMPLEX64) return complex_gemm(g);
  return g->dtype == WEIR_FLOAT32 || g->dtype == WEIR_FLOAT64 ? real_gemm(g) : half_gemm(g);
}

typedef struct batch {
  const weir_gemm *g;
  _Atomic int st; /* of the first that failed */
  char why[512];  /* its sentence, whatever thread it failed in */
} batch;

static void some_of_batch(void *arg, int64_t from, int64_t to)
{
  batch *b = arg;
  int64_t size = (int64_t)cpu_dtype_bytes(b->g->dtype);
  for (int64_t i = from; i < to; i++) {
    weir_gemm g = *b->g;
    g.a = (const char *)g.a + i * g.stepa * size;
    g.b = (const char *)g.b + i * g.stepb * size;
    g.c = (char *)g.c + i * g.stepc * size;
    int st = (int)multiply_one(&g), none = WEIR_OK;
    if (st && atomic_compare_exchange_strong(&b->st, &none, st))
      (void)snprintf(b->why, sizeof b->why, "%s", weir_error_message());
  }
}

static bool is_float(weir_dtype d)
{
  return d == WEIR_FLOAT16 || d == WEIR_BFLOAT16 || d == WEIR_FLOAT32 || d == WEIR_FLOAT64 ||
         d == WEIR_COMPLEX64;
}

/* Small matrices are shared among the threads whole; large ones one after the other. */
weir_status cpu_gemm(void *self, void *stream, const weir_gemm *g)
{
  (void)self, (void)stream;
  if (g->dtype >= WEIR_UINT8 && g->dtype <= WEIR_INT64) return cpu_gemm_int(g);
  if (!is_float(g->dtype)) return cpu_no_kernel("addmm_impl", g->dtype);
  batch b = {.g = g};
  int64_t work = g->m * g->n * (g->k + 1);
  bool small = work < FEW * 8L && g->batch > 1;
  if (small && (work * g->batch >= MANY || (work * g->batch >= FEW && parallel_at_once())))
    parallel_for(g->batch, FEW / (work + 1) + 1, some_of_batch, &b);
  else
    some_of_batch(&b, 0, g->batch);
  int st = atomic_load(&b.st);
  return st ? weir_fail((weir_status)st, "%s", b.why) : WEIR_OK;
}
