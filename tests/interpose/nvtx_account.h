/* nvtx_account.h: what the spools of a folder say of ranges, as lines that victims print of
 * theirs. */
#ifndef TESTS_NVTX_ACCOUNT_H
#define TESTS_NVTX_ACCOUNT_H

#include <stdint.h>

/* Of all spools: "WHAT DOMAIN:TEXT COUNT" a line, sorted; range, span (start and end), mark,
 * call (by its innermost range, or "call none"), open (ranges never ended); "name KIND:TEXT of
 * BYTES bytes COUNT" of what has a handle. Borrowed until the next call. */
const char *nvtx_account(const char *directory);

/* The lines of a text, sorted. Borrowed until the next call. */
const char *sorted_lines(const char *text);

/* How many of a program's names of a kind (name_kind) the last account met. */
unsigned nvtx_names(unsigned kind);

/* RANGE_NAME records the last account met. */
unsigned nvtx_range_names(void);

/* Ranges that the spools of that account count as too deep. */
uint64_t nvtx_deep_ranges(void);

#endif
