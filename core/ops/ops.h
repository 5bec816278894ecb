/* ops.h: what the files of operations are to each other. */
#ifndef WEIR_OPS_OPS_H
#define WEIR_OPS_OPS_H

#include "core/tensor/loop.h"

/* ---- elementwise.c --------------------------------------------------------------------------- */

/* One operation on up to three operands, some of them numbers. */
typedef struct elementwise_call {
  weir_op op;
  uint8_t count;           /* of operands */
  uint8_t numbers;         /* bit i: operand i is number[i] */
  bool has_alpha, has_p;   /* alpha, p are filled */
  weir_tensor *self;       /* borrowed; in place, t[0] is it; NULL: out of place */
  const weir_tensor *t[3]; /* borrowed */
  weir_scalar number[3], alpha, p[3];
} elementwise_call;

/* out is not touched in place. */
weir_status elementwise_run(weir_tensor **out, const elementwise_call *e);

/* ---- matmul.c -------------------------------------------------------------------------------- */

/* Sets tf32, reduced_precision and deterministic as they are set for the process, and runs it. */
weir_status gemm_run(const compute_target *t, weir_gemm *g);

#endif
