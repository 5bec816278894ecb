/* recorder.h: leaves next to a spool what a recorder does. */
#ifndef WEIR_TESTS_REPORTS_RECORDER_H
#define WEIR_TESTS_REPORTS_RECORDER_H

#include <stdbool.h>

/* Tallies what is in the spool now, beyond what it tallied before: it is before the window. All of
 * it stays in the spool. `final`: its writer is gone. */
void recorder_tally(const char *spool, bool final);

/* The file that has it (static). */
const char *recorder_file(const char *spool);

#endif
