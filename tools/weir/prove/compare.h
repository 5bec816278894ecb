/* compare.h: what weir compare's two halves share: the runs (compare.c) and what is printed
 * about them (compare_print.c). */
#ifndef WEIR_TOOLS_WEIR_PROVE_COMPARE_H
#define WEIR_TOOLS_WEIR_PROVE_COMPARE_H

#include "tools/weir/prove/rounds.h"

enum { COMPARE_BARE, COMPARE_OBSERVE, COMPARE_MODES = 4 };

typedef rounds comparison; /* its ways are the modes; the first is the program without Weir */

/* Whether the runs agree, and the program did in them what it was to do. */
bool compare_good(const comparison *c);

void compare_print_text(const comparison *c);
bool compare_print_json(const comparison *c); /* false: out of memory, or stdout is full */

#endif
