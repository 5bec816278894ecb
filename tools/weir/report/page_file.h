/* page_file.h: weir report --html: the file around reports/page/page.h. */
#ifndef WEIR_TOOLS_WEIR_REPORT_PAGE_FILE_H
#define WEIR_TOOLS_WEIR_REPORT_PAGE_FILE_H

#include "reports/write/report.h"

/* Writes the page of a trace to `output`, whole or not at all, on a terminal with a line of
 * progress. Returns the exit status, after a message where it is not 0. */
int page_file_write(const char *trace, const char *output, const report_settings *options);

#endif
