/* kernel_params.h: what a kernel may do to the memory that each of its parameters points to, by its
 * name: "_Z5scalePKfPfi" is scale(float const*, float*, int), which reads what it is handed first, and
 * may write what it is handed next.
 *
 * That holds of pointers to numbers alone: what points to a structure or to a pointer, and a structure
 * that is handed by its value, may lead to other memory. A kernel with a C name has no types in it. */
#ifndef WEIR_REPORTS_FINDINGS_KERNEL_PARAMS_H
#define WEIR_REPORTS_FINDINGS_KERNEL_PARAMS_H

#include <stdint.h>
#include "reports/base/demangle.h"

enum { WR_PARAMS = 64 /* of a kernel that has more nothing is known */ };

typedef enum wr_param {
  WR_PARAM_UNKNOWN, /* it may lead to any memory */
  WR_PARAM_NUMBER,
  WR_PARAM_READS, /* a pointer to constant numbers */
  WR_PARAM_WRITES /* a pointer to numbers */
} wr_param;

typedef struct wr_params {
  int count;             /* -1: not known */
  bool plain;            /* none is WR_PARAM_UNKNOWN */
  uint8_t of[WR_PARAMS]; /* wr_param */
} wr_params;

wr_params wr_params_of(wr_demangler *d, const char *name);

#endif
