/* sort.h: many records in order of a number, by the number's digits. */
#ifndef WEIR_REPORTS_SORT_H
#define WEIR_REPORTS_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* `count` records of `size` bytes each, in order of the int64_t that is `key` bytes from a record's
 * begin; those with the same number stay in their order. False: they are so few that comparisons take
 * less, or memory is short: then they are in any order. */
bool wr_sort_records(void *records, size_t count, size_t size, size_t key);

#endif
