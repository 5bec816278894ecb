/* cpu/cpu.h: what the parts of the cpu device are to each other.
 *
 * Kernels (cpu/kernels.h) are loops over contiguous elements of one type, compiled once for every
 * level of processor: cpu_level_in_use() is the table for this machine. What is strided, of another
 * dtype or a number is brought into that form in blocks of CPU_BLOCK elements (cpu/walk.c), which
 * stay in the first cache. Arithmetic is the same at all levels, to the bit. */
#ifndef WEIR_BACKEND_CPU_CPU_H
#define WEIR_BACKEND_CPU_CPU_H

#include <stddef.h>
#include "core/backend/backend.h"

enum {
  CPU_BLOCK = 512,                  /* elements */
  CPU_SHORT_BLOCK = 1024,           /* elements of 4 bytes or fewer: no more bytes */
  CPU_ELEMENT = 8,                  /* bytes of the widest */
  CPU_GRAIN = 1 << 15,              /* elements a thread takes at a time */
  CPU_OP_ADD_ALPHA = WEIR_OP_COUNT, /* ADD and SUB with an alpha */
  CPU_OP_SUB_ALPHA,
  CPU_OPS
};

/* What a kernel needs in addition to its operands. */
typedef struct cpu_args {
  weir_number alpha, p[3];
  int64_t first;         /* place in the loop of element 0 */
  unsigned same;         /* bit i: input i is one number over and over */
  weir_dtype compute;    /* NEXTAFTER: of the operation, float16 and bfloat16 included */
  _Atomic bool *by_zero; /* an integer was divided by zero: the result there is 0 */
} cpu_args;

typedef void (*cpu_kernel)(void *out, const void *x, const void *y, const void *z, int64_t n,
                           const cpu_args *s);
typedef void (*cpu_cast)(void *out, const void *in, int64_t n);

/* Sum, product, extreme or count so far. Integers in i; what is exact only in i, wraps. */
typedef struct cpu_sum {
  double f[2]; /* real, imaginary */
  double c[2]; /* what f lost by rounding */
  int64_t i;
  int64_t at;    /* place of the extreme; -1: none yet */
  bool anywhere; /* nothing asks for that place: folds of float32 do not look for it */
  double p;      /* NORM: the exponent; VAR: what is taken from each element first */
} cpu_sum;

/* Takes n elements more, the first of which has the place `first`. */
typedef void (*cpu_fold)(cpu_sum *s, const void *x, int64_t n, int64_t first);

/* Kinds of reductions' elements: int64, double, complex64. */
enum { CPU_WIDE_INT, CPU_WIDE_REAL, CPU_WIDE_COMPLEX, CPU_WIDES };

typedef struct cpu_level {
  cpu_kernel
      op[CPU_OPS]
        [WEIR_DTYPES]; /* by compute dtype; NULL: there is none. Of float16 and bfloat16 those that
                                     take them as they are */
  cpu_kernel short_op[CPU_OPS];                /* of float32 that come from and become float16 or
                                                  bfloat16; NULL: op's */
  cpu_kernel number_op[CPU_OPS];               /* of float32 where inputs are one number each, which
                                                  is there once (cpu_args.same); NULL: op's */
  cpu_cast cast[WEIR_DTYPES][WEIR_DTYPES];     /* [to][from] */
  cpu_fold fold[WEIR_REDUCE_COUNT][CPU_WIDES]; /* NULL: there is none */
  cpu_fold narrow_fold[WEIR_REDUCE_COUNT];     /* of float32; NULL: there is none */
  void (*repeat)(void *to, const void *element, size_t bytes,
                 int64_t n); /* `to` may be `element` */
  void (*add_row)(double *sum, double *lost, const double *x, int64_t n); /* n sums at once */
  void (*add_narrow_row)(double *sum, const float *x, int64_t n);
  void (*add_four_rows)(double *sum, const float *const x[4], int64_t n);
  void (*add_rows_off)(double *sum, double *squares, const double *p, const float *const x[4],
                       int rows, int64_t n);

  /* of float16, of bfloat16 */
  cpu_fold half_sum[2];
  void (*add_half_rows[2])(double *sum, const uint16_t *const x[8], int64_t n);
  void (*best_of_rows)(float *best, const float *x, int64_t n, bool least);   /* NaN is better */
  void (*random)(double *out, const weir_random *r, int64_t from, int64_t n); /* from is even */
} cpu_level;

extern const cpu_level cpu_level_base, cpu_level_avx2, cpu_level_avx512;
const cpu_level *cpu_level_in_use(void); /* of this machine (borrowed, static) */
/* The highest level that is used: 0 base, 1 AVX2, 2 AVX-512. Tests lower it. */
extern int cpu_level_most;

/* ---- cpu/walk.c: operands, block by block ---------------------------------------------------- */

typedef struct cpu_walk {
  char *at;                 /* the next element */
  size_t bytes;             /* of an element */
  int dims;                 /* 0: elements follow each other to the end */
  int64_t left;             /* in this row */
  int64_t place[WEIR_DIMS]; /* of `at` */
  const int64_t *size, *stride;
} cpu_walk;

/* Walks `o` in a loop of `dims` sizes, from its element number `from`. */
void cpu_walk_start(cpu_walk *w, const weir_operand *o, int dims, const int64_t *size,
                    int64_t from);
/* All elements follow each other: any number is taken where they are. */
static inline bool cpu_walk_is_flat(const cpu_walk *w)
{
  return !w->dims;
}
/* How many elements follow each other from here. */
static inline int64_t cpu_walk_run(const cpu_walk *w)
{
  return !w->dims ? INT64_MAX : w->stride[w->dims - 1] == 1 ? w->left : 1;
}
/* The next n elements (as many as `room` holds), contiguous: where they are, or copied into
 * `room`. */
const void *cpu_walk_take(cpu_walk *w, int64_t n, void *room);
/* Whether the next n elements are one and the same. */
bool cpu_walk_repeats(const cpu_walk *w, int64_t n);
void cpu_walk_skip(cpu_walk *w, int64_t n); /* n elements of this row */
/* Where the next n elements can be written in place; NULL: nowhere, cpu_walk_put() them. */
void *cpu_walk_place(cpu_walk *w, int64_t n);
void cpu_walk_put(cpu_walk *w, int64_t n, const void *from);
/* A block's length: `most`, less where it is better not to cross the end of a row. */
int64_t cpu_block(int dims, const int64_t *size, int64_t from, int64_t to, int64_t most);

/* ---- cpu/copy.c: elements that become no others ---------------------------------------------- */

/* A COPY of one dtype; it has at least one dimension. */
void cpu_copy_loop(const weir_loop *l);
/* n elements of `bytes`, `ts` and `fs` elements apart. */
void cpu_move_elements(void *to, int64_t ts, const void *from, int64_t fs, int64_t n, size_t bytes);

size_t cpu_dtype_bytes(weir_dtype dtype); /* of an element */
/* What a kernel of that compute dtype takes: float32 for what is shorter. */
static inline weir_dtype cpu_kernel_dtype(weir_dtype compute)
{
  return compute == WEIR_FLOAT16 || compute == WEIR_BFLOAT16 ? WEIR_FLOAT32 : compute;
}
/* n elements (at most CPU_SHORT_BLOCK) of `from` as a kernel of compute dtype `compute` takes them:
 * x itself, or in `room`. */
const void *cpu_widen(const void *x, weir_dtype from, weir_dtype compute, int64_t n, void *room);

/* ---- the functions of weir_compute ----------------------------------------------------------- */

weir_status cpu_map(void *self, void *stream, const weir_loop *l);
weir_status cpu_reduce(void *self, void *stream, const weir_reduce *r);
weir_status cpu_scan(void *self, void *stream, const weir_scan *s);
weir_status cpu_sort_rows(void *self, void *stream, const weir_sort_rows *s);
weir_status cpu_search(void *self, void *stream, const weir_search *s);
weir_status cpu_random(void *self, void *stream, const weir_random *r);
weir_status cpu_gemm(void *self, void *stream, const weir_gemm *g);
weir_status cpu_im2col(void *self, void *stream, const weir_im2col *c);
weir_status cpu_factor(void *self, void *stream, const weir_factor *f);
bool cpu_factor_narrow(void *self, const weir_factor *f);
/* cpu/lapack.c: whether LAPACK is to do it; doing it. Errors: ENOTSUP: there is none; ENOMEM. */
bool cpu_lapack_wanted(const weir_factor *f);
weir_status cpu_lapack(const weir_factor *f);
weir_status cpu_conv(void *self, void *stream, const weir_conv *c);
/* The same by oneDNN; not done: there is none, it is not wanted, or not for this. Errors: ENOTSUP
 * (it was asked for, and there is none). */
weir_status cpu_conv_dnn(const weir_conv *c, bool *done);
weir_status cpu_update(void *self, void *stream, const weir_update *u);
weir_status cpu_softmax(void *self, void *stream, const weir_softmax_request *s);
weir_status cpu_norm(void *self, void *stream, const weir_norm_request *n);
weir_status cpu_index(void *self, void *stream, const weir_indexing *r);
weir_status cpu_places(void *self, void *stream, const weir_places *p);
weir_status cpu_pool(void *self, void *stream, const weir_pool *p);
weir_status cpu_resample(void *self, void *stream, const weir_resample *r);

/* Words that `what` is not implemented for a dtype, as torch does. */
weir_status cpu_no_kernel(const char *what, weir_dtype dtype);
void cpu_copy_bytes(void *to, const void *from, uint64_t bytes);

#endif
