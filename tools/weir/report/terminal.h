/* terminal.h: what standard output is to a report: colours, and columns. */
#ifndef WEIR_TOOLS_WEIR_REPORT_TERMINAL_H
#define WEIR_TOOLS_WEIR_REPORT_TERMINAL_H

#include <stdbool.h>

enum { TERMINAL_NOT_ASKED = -1 }; /* of --width */

/* Colours and width are the terminal's, whose columns COLUMNS can set; in a file or a pipe there
 * are no colours, and nothing is cut. --width (`asked`; 0: no limit) holds everywhere. */
bool terminal_has_color(void);
int terminal_width(int asked);

#endif
