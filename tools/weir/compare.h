/* compare.h: what weir compare's two halves share: the runs (compare.c) and what is said of them
 * (compare_say.c). */
#ifndef WEIR_TOOLS_COMPARE_H
#define WEIR_TOOLS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "reports/render/report.h"

enum { COMPARE_BARE, COMPARE_OBSERVE, COMPARE_MODES = 4, COMPARE_MOST_RUNS = 1000 };

extern const char *const compare_modes[COMPARE_MODES]; /* the first is what the others must equal */

/* Where the stdout of one run first differs from that of the first bare run. */
typedef struct difference {
  bool there;
  unsigned mode, run;           /* of the run that differs; runs from 1 */
  bool status;                  /* not the output, but how it ended */
  int expected_end, found_end;  /* wait statuses */
  uint64_t offset, line;        /* bytes from 0; lines from 1 */
  char expected[80], found[80]; /* that line, printable; "" at an end */
} difference;

typedef struct comparison {
  char **argv;          /* borrowed; the program and its arguments */
  unsigned runs;        /* of each mode */
  run_figures *figures; /* [COMPARE_MODES * runs], by mode; owned */
  int end;              /* wait status of the first bare run */
  double others;        /* share of the processors' time that others had meanwhile; < 0: unknown */
  difference varies;    /* of another bare run: the program's own output is not constant */
  difference differs;   /* of another mode's */
} comparison;

/* The outputs and ends agree, as far as the program's own do. */
bool compare_agree(const comparison *c);

/* The runs agree, and the program did what it was to do in them. */
bool compare_good(const comparison *c);

void compare_print_text(const comparison *c);
bool compare_print_json(const comparison *c); /* false: out of memory, or stdout is full */

#endif
