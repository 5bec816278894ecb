/* args.h: what kernels are launched with: the one argument of each, in C and in CUDA C++.
 *
 * Indices are 32 bits wide wherever an element is looked for by division: who launches splits what
 * is larger (cuda/backend/compute.c). Numbers come as what the kernel calculates in: int64_t,
 * double, or a pair of floats for complex64.
 */
#ifndef WEIR_CUDA_KERNELS_ARGS_H
#define WEIR_CUDA_KERNELS_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/backend/compute.h"

enum {
  WEIR_THREADS = 256, /* of a block, in every kernel */
  WEIR_EACH = 4,      /* elements a thread has in hand at a time, where they are looked for */
  WEIR_TILE = 32      /* rows and columns of what is turned round in shared memory */
};

typedef union k_number {
  int64_t i;
  double d;
  float c[2]; /* real, imaginary */
} k_number;

/* ---- elementwise ------------------------------------------------------------------------------
 * WHERE's condition stands apart: no operation has more than two inputs in addition to it. */

/* All operands contiguous and of the kernel's dtype, or numbers. */
typedef struct k_flat {
  void *out;
  const void *in[2];     /* NULL: the number */
  const uint8_t *chosen; /* WHERE: bool */
  k_number number[2], alpha, p[3];
  int64_t count, first; /* elements; RANGE: the place of element 0 */
  int32_t op, has_alpha;
  int32_t out_bool; /* out is of bool, not of the kernel's dtype */
  int32_t vector;   /* pointers are aligned for whole vectors */
} k_flat;

/* x / size for x < 2^31: (x * magic >> 32) + x >> shift (k_divisor_of). */
typedef struct k_divisor {
  uint32_t size, magic, shift;
} k_divisor;

typedef struct k_operand {
  void *data; /* NULL: the number */
  int32_t dtype;
  int32_t stride[WEIR_DIMS]; /* elements */
} k_operand;

/* Operands of any dtype and strides; less than 2^31 elements, and so far apart. */
typedef struct k_strided {
  k_operand out, in[2], chosen;
  k_divisor size[WEIR_DIMS]; /* outermost first */
  k_number number[2], alpha, p[3];
  int64_t first;
  uint32_t count;
  int32_t op, compute, dims, has_alpha;
} k_strided;

/* The same of a function of up to three inputs (functions.cu). */
typedef struct k_function {
  k_operand out, in[3];
  k_divisor size[WEIR_DIMS]; /* outermost first */
  k_number number[3], p[3];
  uint32_t count;
  int32_t op, compute, dims;
} k_function;

/* Two dimensions change places: out[z][y][x] = in[z][x][y], by squares of WEIR_TILE; the others
 * (at most 6) are z. */
typedef struct k_turn {
  void *out;
  const void *in;
  uint32_t rows, columns;     /* y and x of out */
  int64_t out_row, in_column; /* elements; from x to the next is 1 in out, from y in in */
  uint32_t others;            /* product of the sizes below */
  int32_t dims;
  k_divisor size[WEIR_DIMS];
  int64_t out_stride[WEIR_DIMS], in_stride[WEIR_DIMS];
} k_turn;

/* ---- reductions -------------------------------------------------------------------------------
 */

typedef struct k_reduce {
  void *out, *index;    /* index: int64; VAR, STD: the mean, out's dtype; NULL: none */
  const void *in;       /* parts_in: accumulators, [part][output] */
  const void *elements; /* always */
  void *parts;          /* stage one of two writes accumulators here; NULL: out */
  double p;             /* of weir_reduce */
  int32_t op, compute, in_dtype, out_dtype;
  int32_t parts_in; /* stage two: how many; 0: in is elements */
  int32_t lanes;    /* threads an output has; a power of two */
  int32_t across;   /* neighbouring threads have neighbouring outputs, not elements */
  int32_t kept, dims;
  int64_t outputs, each;
  int32_t small; /* outputs and each are below 2^31 */
  k_divisor size[WEIR_DIMS];
  int64_t length[WEIR_DIMS];
  int64_t in_stride[WEIR_DIMS], out_stride[WEIR_DIMS], index_stride[WEIR_DIMS];
} k_reduce;

enum { WEIR_PART_BYTES = 32 }; /* the most an accumulator takes: see reduce.cu */

/* ---- running reductions, order ----------------------------------------------------------------
 */

/* weir_scan in three stages, or the last alone where a line is one part: what each part of a line
 * comes to; what is before each part; the elements. */
typedef struct k_scan {
  weir_scan of;
  void *parts;   /* accumulators, [part][line]; NULL: a line is one part */
  int64_t lines; /* outer inner */
  int64_t count; /* parts of a line */
  int64_t piece; /* elements of a part */
  int32_t stage; /* WEIR_K_SCAN_* */
} k_scan;

enum { WEIR_K_SCAN_TOTALS, WEIR_K_SCAN_STARTS, WEIR_K_SCAN_ELEMENTS };

enum {
  WEIR_SORT_TILE = 1024, /* items that a block sorts, or makes of two runs, at a time */
  WEIR_SORT_HAND = WEIR_SORT_TILE / WEIR_THREADS
};

/* weir_sort_rows, each of its steps: items of tiles in order; runs merged by pairs; what is asked
 * for of them. Items lie line by line. */
typedef struct k_sort {
  weir_sort_rows of;
  const void *from; /* items */
  void *to;
  int64_t lines; /* outer inner */
  int64_t tiles; /* of a line; where a tile has several lines: of all */
  int64_t run;   /* items that are in order already */
  int32_t slots; /* of a tile for each line: a power of two, not below length; 0: all */
  int32_t bytes; /* of an element */
} k_sort;

typedef struct k_search {
  weir_search of;
} k_search;

/* ---- indexing ---------------------------------------------------------------------------------
 */

/* An index out of bounds, in page-locked host memory; the first one that is met is noted. */
typedef struct k_index_fault {
  uint32_t taken; /* by the thread that notes */
  int32_t dim;
  int64_t index, size;
  uint32_t noted; /* written last */
} k_index_fault;

typedef struct k_indices {
  const void *at;
  int64_t size, step;
  int64_t stride[WEIR_DIMS]; /* elements; 0 after the loop's dimensions, as all strides here */
  int32_t wide;              /* int64, not int32 */
  int32_t dim;
} k_indices;

typedef struct k_indexing {
  void *self, *values; /* values NULL: the number */
  k_index_fault *fault;
  uint64_t number; /* the element's bits, lowest first */
  int32_t dtype, dims, indices, wrap;
  int32_t small; /* places are counted in 31 bits */
  int64_t count; /* elements of the loop */
  /* One after the other: the last `walked` elements of the loop (its innermost dimensions) are one
   * thread's, of which `shares`, a power of two, go through them, each doing to self's elements
   * that are its own; shares 0: all at once. */
  int64_t walked, shares;
  k_divisor size[WEIR_DIMS];
  int64_t length[WEIR_DIMS];
  int64_t self_stride[WEIR_DIMS], values_stride[WEIR_DIMS];
  k_indices index[WEIR_DIMS];
} k_indexing;

typedef struct k_places {
  weir_places of;
  int64_t chunks;
} k_places;

/* ---- the others -------------------------------------------------------------------------------
 */

typedef struct k_random { /* a kernel has the name of the bare struct */
  weir_random of;
} k_random;

typedef struct k_update {
  weir_update of;
} k_update;

typedef struct k_softmax {
  weir_softmax_request of;
  int32_t lanes; /* threads a row has; a power of two */
} k_softmax;

typedef struct k_norm {
  weir_norm_request of;
  int32_t lanes; /* threads a row has; a power of two */
} k_norm;

enum { WEIR_K_THIN = 8 }; /* rows of a thin product, at most */

typedef struct k_gemm {
  const void *a, *b;
  void *c;
  int64_t m, n, k, lda, ldb, ldc, stepa, stepb, stepc;
  int32_t transa, transb;
  int64_t first; /* of the batch: block z is matrix first + z */
  k_number alpha, beta;
  int32_t has_beta, scaled; /* beta is not 0; alpha is not 1 */
  int32_t flipped;          /* thin: C lies column by column */
  int32_t across;           /* thin: columns a block makes, a power of two up to 16 */
} k_gemm;

typedef struct k_im2col {
  const void *in;
  void *out;
  uint32_t count; /* elements of out */
  int32_t h, w;
  int32_t stride[2], pad[2], dilation[2];
  k_divisor ox, oy, s, r; /* sizes of out's dimensions but the first, innermost first */
  int64_t plane;          /* h w */
} k_im2col;

/* Planes that together have less than 2^31 elements of what is written. */
typedef struct k_pool {
  weir_pool of;
  uint32_t count;    /* elements of what is written */
  k_divisor x, y, z; /* its sizes */
} k_pool;

typedef struct k_resample {
  weir_resample of;
  double scale[3]; /* places of in to one of out */
  uint32_t count;
  k_divisor x, y, z;
} k_resample;

#endif
