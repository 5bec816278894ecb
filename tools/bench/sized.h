/* sized.h: traces of a given size, which rows that import, report and export share. */
#ifndef WEIR_TOOLS_BENCH_SIZED_H
#define WEIR_TOOLS_BENCH_SIZED_H

#include <stdbool.h>
#include "tools/bench/bench.h"

enum { SIZED_EVENTS = 1000000 /* of a spool */ };

/* What the events of a spool are. */
typedef enum sized_mix {
  /* a training loop of one thread and one stream; a tenth of it allocates, a tenth frees */
  MIX_STEPS,
  MIX_HALF, /* half of it allocates and frees; 8 threads, 3 streams, copies to and fro */
  MIXES
} sized_mix;

/* A trace of so many processes, SIZED_EVENTS each. */
typedef struct sized_trace {
  int millions;
  char path[256];
  double import_cpu, import_wall; /* seconds */
  long import_kib;                /* peak resident */
  bool made;
} sized_trace;

/* Writes `count` spools into a folder, which it makes; false: it could not. */
bool sized_spools(const char *folder, int count, sized_mix mix);

/* Returns the trace of so many million events (borrowed), made by the first row that asks. NULL:
 * the row cannot have it, and there is a message: it could not be made, or is larger than what
 * is made unless the row is asked for by name. */
const sized_trace *sized_trace_of(measured *m, const row *r, int millions, sized_mix mix);

#endif
