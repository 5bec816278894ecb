/* figures.h: what reports show is computed when a trace is complete, and kept in it
 * (reports/whole/whole.h). */
#ifndef WEIR_TOOLS_WEIR_BASE_FIGURES_H
#define WEIR_TOOLS_WEIR_BASE_FIGURES_H

#include "tools/weir/base/options.h"

/* Takes --figures from the line of a command. */
void figures_ask(const cmd_line *line);

/* As --figures=later does. */
void figures_later(void);

/* Computes and keeps it, unless --figures=later was given. An interrupt meanwhile ends it, and
 * nothing else; a second one ends weir. What does not work is left to the reports: the trace is as
 * it was. */
void figures_keep(const char *trace);

#endif
