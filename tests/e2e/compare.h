/* compare.h: a victim's own tally held against the report of its trace. */
#ifndef WEIR_TESTS_COMPARE_H
#define WEIR_TESTS_COMPARE_H

#include <stdbool.h>

/* Both files are JSON. Every sum of the tally must be the report's total of that name; with
 * `names`, every function must have the tallied calls and errors, too. Fails the running test with
 * all differences. */
void compare_tally(const char *tally_path, const char *report_path, bool names);

/* With --device-times: the trace's device work must be the tally's moves, one each, and each of
 * a call that says the same; in order and one at a time in each stream; with `kernels`, all
 * launches of the tally are there too. */
void compare_device_work(const char *tally_path, const char *trace, bool kernels);

/* Adds the names of a tally's functions to a set kept by this file. */
void remember_names(const char *tally_path);
bool remembered_name(const char *name);

#endif
