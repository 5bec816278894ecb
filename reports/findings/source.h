/* source.h: a line of the program's source, to be quoted. */
#ifndef WEIR_REPORTS_SOURCE_H
#define WEIR_REPORTS_SOURCE_H

#include <stdint.h>

/* Line `line` of `file` without the blanks around it, printable (new); NULL: it is not at hand. A
 * file that has changed after `time` (ns since 1970; 0: unknown) is another than what ran. */
char *wr_source_line(const char *file, int line, int64_t time);

#endif
