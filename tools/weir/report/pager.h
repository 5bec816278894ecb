/* pager.h: text that is longer than the terminal goes through a pager. */
#ifndef WEIR_TOOLS_WEIR_REPORT_PAGER_H
#define WEIR_TOOLS_WEIR_REPORT_PAGER_H

#include <stddef.h>

/* Writes `text` to standard output: through PAGER, or "less", where that is a terminal, and the
 * text has more lines than it; else, or where there is no pager, as it is. */
void pager_show(const char *text, size_t bytes);

#endif
