/* beside_trace.h: a tally held against the trace that an importer made of the same spool. */
#ifndef WEIR_TESTS_REPORTS_BESIDE_TRACE_H
#define WEIR_TESTS_REPORTS_BESIDE_TRACE_H

#include "reports/tally/tally.h"

/* What is compared besides the live set, totals and open ranges. */
enum {
  BESIDE_TIMES = 1, /* a tick of the spool is a ns of the trace */
  BESIDE_PEAKS = 2, /* the trace has this process alone, and the tally read the spool in one go */
  BESIDE_STACKS = 4 /* no stack was forgotten */
};

/* Fails the test with what differs; `process`: a row of the trace's, `opened`: ticks of the spool's
 * opening. */
void expect_as_trace(const wr_tally *t, const char *trace, int process, uint64_t opened, int what);

#endif
