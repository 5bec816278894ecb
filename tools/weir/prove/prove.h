/* prove.h: what weir prove's two halves share: the runs (prove.c) and what is printed about them
 * (prove_print.c). */
#ifndef WEIR_TOOLS_WEIR_PROVE_PROVE_H
#define WEIR_TOOLS_WEIR_PROVE_PROVE_H

#include "tools/weir/prove/interval.h"
#include "tools/weir/prove/rounds.h"

typedef enum prove_verdict {
  PROVE_GAIN,    /* proven: the gain's interval is above 0 */
  PROVE_NO_GAIN, /* the interval has 0 in it, or there is none */
  PROVE_LOSS,    /* the run takes longer with the fix */
  PROVE_DIFFERS, /* stdout or the exit status is another with the fix */
  PROVE_UNUSED,  /* the fix found nothing to do in the runs */
  PROVE_CANNOT,  /* Weir cannot remove it */
  PROVE_NONE,    /* asked for by name, and not found */
  PROVE_UNJUDGED /* asked for by name, and the trace could not be judged by it */
} prove_verdict;

typedef struct proof { /* of all findings of one rule */
  const wr_rule *rule;
  const wr_finding *first; /* the one that matters most; NULL: there is none */
  uint64_t estimate_ns;    /* saving that the findings estimate */
  uint64_t count;
  unsigned way;     /* of the rounds; 0: none */
  uint64_t applied; /* calls in which the fix did something, in the median run */
  interval gain;    /* ns of the program's run, host time */
  prove_verdict verdict;
} proof;

typedef struct proving {
  rounds r;
  wr_findings findings;
  proof *proofs; /* owned; those that matter most first */
  unsigned count;
  bool reached; /* the rounds were run to their end */
} proving;

/* Returns the time of the median run of the program as it is, in ns. */
uint64_t prove_unfixed_ns(const proving *p);

void prove_print_text(const proving *p);
bool prove_print_json(const proving *p); /* false: out of memory, or stdout is full */

#endif
