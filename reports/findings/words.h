/* words.h: the numbers of kinds, directions, memory and flags by name in a rule's SQL: `t.kind =
 * $COPY`. README.md lists the words. */
#ifndef WEIR_REPORTS_WORDS_H
#define WEIR_REPORTS_WORDS_H

#include "core/base/status.h"

/* *out: `sql` with the number of each word in its place, which the caller frees; what is quoted,
 * and what is comment, stays. `rule` and `line`, that of the first character, are named where a
 * word is unknown. Errors: EINVAL, ENOMEM. */
weir_status wr_words_put(char **out, const char *sql, const char *rule, int line);

#endif
