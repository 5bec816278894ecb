/* compare.h: a victim's own tally held against the report of its trace. */
#ifndef WEIR_TESTS_COMPARE_H
#define WEIR_TESTS_COMPARE_H

#include <stdbool.h>

/* Both files are JSON. Every sum of the tally must be the report's total of that name; with
 * `names`, every function must have the tallied calls and errors, too. Fails the running test with
 * all differences. */
void compare_tally(const char *tally_path, const char *report_path, bool names);

/* Adds the names of a tally's functions to a set kept by this file. */
void remember_names(const char *tally_path);
bool remembered_name(const char *name);

#endif
