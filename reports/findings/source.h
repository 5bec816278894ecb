/* source.h: a line of the program's source, to be quoted.
 *
 * The names of files come out of a trace, which somebody else may have made to have files of the
 * reader's quoted. So lines are quoted
 * - of the reader's own trace, unless asked otherwise: its file is the reader's, and so was a
 *   process in it;
 * - of regular files whose names end as those of sources do, reached by no link of another user's
 *   (a link is what it leads to);
 * - of files as the run had them: last changed no later than the module whose debug information
 *   names them, as that was recorded, and than the run's beginning; of a Python program, than the
 *   latter. */
#ifndef WEIR_REPORTS_SOURCE_H
#define WEIR_REPORTS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include "reports/import/schema.h"

typedef enum wr_quoting {
  WR_QUOTE_OWN,
  WR_QUOTE_ANY,
  WR_QUOTE_NONE
} wr_quoting; /* of which trace */

/* Whether lines are quoted. Errors: those of reading. */
weir_status wr_sources_may_be_quoted(const wr_db *db, wr_quoting asked, bool *may);

/* Line `line` of `file` without the blanks around it, printable (new); NULL: it is not at hand, or
 * not to be quoted. `began`, `built`: ns since 1970 of the run and of the module's file; 0:
 * unknown. */
char *wr_source_line(const char *file, int line, int64_t began, int64_t built);

#endif
