/* cpu/thin.c: products of a matrix and a vector on the cpu: nothing is packed, as each element of
 * the matrix is read once.
 *
 * Where the matrix is dense along the sum each result is a dot product of two rows; where it is
 * dense along the results they are taken some side by side (cpu/gemm.h: thin_tile), in steps of
 * TERMS terms. Threads share the results. How a sum is put together does not depend on them. */
#include <string.h>
#include "core/backend/cpu/gemm.h"
#include "core/backend/threads.h"

enum { TERMS = 32 };

typedef struct thin {
  const weir_gemm *g;
  const cpu_tile_level *level;
  int64_t size; /* of an element, bytes */
  int64_t results, terms;
  const char *vector, *matrix;
  char *out;
  int64_t vector_step;   /* elements from a term to the next */
  int64_t across, along; /* the matrix's elements from a result to the next, from a term */
  int64_t out_step;      /* elements from a result to the next */
  int64_t width;         /* results side by side */
} thin;

/* Terms from `first` of the vector times alpha, side by side. */
static void take_terms(const thin *t, void *to, int64_t first, int64_t terms)
{
  for (int64_t p = 0; p < terms; p++) {
    const char *at = t->vector + (first + p) * t->vector_step * t->size;
    if (t->size == sizeof(float))
      ((float *)to)[p] = (float)t->g->alpha * *(const float *)(const void *)at;
    else
      ((double *)to)[p] = t->g->alpha * *(const double *)(const void *)at;
  }
}

/* Results `at` to `at` + count * width: so many tiles side by side. Each takes some terms, then the
 * next tile as many: the matrix is read row by row. */
static void tiles_of_results(const thin *t, int64_t at, int64_t count, char *to, bool add)
{
  _Alignas(64) double vector[TERMS];
  int64_t offset[TERMS];
  for (int64_t p = 0; p < TERMS && p < t->terms; p++)
    offset[p] = p * t->along;
  for (int64_t first = 0; first < t->terms; first += TERMS) {
    int64_t terms = t->terms - first < TERMS ? t->terms - first : TERMS;
    take_terms(t, vector, first, terms);
    for (int64_t i = 0; i < count; i++)
      t->level->thin_tile[t->g->dtype](terms, vector,
                                       t->matrix + (at + i * t->width + first * t->along) * t->size,
                                       offset, to + i * t->width * t->size, add || first > 0);
  }
}

/* The last tile begins where it still has its width: what it shares with the one before is the same
 * twice. */
static void some_tiles_of_results(void *arg, int64_t from, int64_t to)
{
  const thin *t = arg;
  _Alignas(64) char again[CPU_TILE_BYTES * CPU_THIN_TILES];
  int64_t whole = t->results / t->width;
  if (from < whole)
    tiles_of_results(t, from * t->width, (to < whole ? to : whole) - from,
                     t->out + from * t->width * t->size, t->g->beta != 0);
  if (to > whole) {
    int64_t at = whole * t->width, begin = t->results - t->width, has = t->results - at;
    memcpy(again + (at - begin) * t->size, t->out + at * t->size, (size_t)(has * t->size));
    memset(again, 0, (size_t)((at - begin) * t->size));
    tiles_of_results(t, begin, 1, again, t->g->beta != 0);
    memcpy(t->out + at * t->size, again + (at - begin) * t->size, (size_t)(has * t->size));
  }
}

static void some_dots(void *arg, int64_t from, int64_t to)
{
  const thin *t = arg;
  for (int64_t i = from; i < to; i++) {
    const char *row = t->matrix + i * t->across * t->size;
    double sum = t->g->alpha * t->level->dot[t->g->dtype](t->terms, row, t->vector);
    char *out = t->out + i * t->out_step * t->size;
    if (t->size == sizeof(float)) {
      float *f = (float *)(void *)out;
      *f = (float)(sum + (t->g->beta != 0 ? (double)*f : 0));
    } else {
      double *d = (double *)(void *)out;
      *d = sum + (t->g->beta != 0 ? *d : 0);
    }
  }
}

/* The vector's and the matrix's parts of g, one of whose sides is 1. */
static thin thin_of(const weir_gemm *g)
{
  bool column = g->n == 1; /* B is the vector */
  thin t = {.g = g,
            .level = cpu_tile_in_use(),
            .size = (int64_t)cpu_dtype_bytes(g->dtype),
            .results = column ? g->m : g->n,
            .terms = g->k,
            .vector = column ? g->b : g->a,
            .matrix = column ? g->a : g->b,
            .out = g->c,
            .out_step = column ? g->ldc : 1};
  if (column) {
    t.vector_step = g->transb ? 1 : g->ldb;
    t.across = g->transa ? 1 : g->lda;
    t.along = g->transa ? g->lda : 1;
  } else {
    t.vector_step = g->transa ? g->lda : 1;
    t.across = g->transb ? g->ldb : 1;
    t.along = g->transb ? 1 : g->ldb;
  }
  t.width = t.level->bytes / t.size * CPU_THIN_TILES;
  return t;
}

bool cpu_gemm_thin(const weir_gemm *g)
{
  if ((g->m != 1 && g->n != 1) || (g->dtype != WEIR_FLOAT32 && g->dtype != WEIR_FLOAT64))
    return false;
  thin t = thin_of(g);
  int64_t grain = CPU_GRAIN / t.terms + 1;
  if (t.along == 1 && t.vector_step == 1)
    parallel_for(t.results, grain, some_dots, &t);
  else if (t.across == 1 && t.out_step == 1 && t.results >= t.width)
    parallel_for((t.results + t.width - 1) / t.width, grain / t.width + 1, some_tiles_of_results,
                 &t);
  else
    return false;
  return true;
}
