/* reading.h: the options that several of the commands that read a trace have: --width,
 * --symbols, --rules, --min-cost, and files to write that must not be what is read. */
#ifndef WEIR_TOOLS_WEIR_REPORT_READING_H
#define WEIR_TOOLS_WEIR_REPORT_READING_H

#include <stdbool.h>

#include "reports/diff/figures.h"
#include "tools/weir/base/commands.h"

typedef struct reading {
  wr_min_cost min;   /* --min-cost; all 0: not given */
  const char *rules; /* --rules, or NULL; borrowed */
  bool anew;         /* --anew */
  char *symbols;     /* --symbols: the folder's absolute path, or NULL; owned */
  int width;         /* columns of text: --width, else the terminal's; 0: no limit */
  bool color;        /* standard output is a terminal that has colours */
} reading;

/* Reads the value of --min-cost, "2ms,0.1%,10MiB": a kind of cost that is not in it does not count.
 * Returns false after cmd_usage(). */
bool reading_min_cost(const cmd *c, wr_min_cost *out, const char *value);

/* The cmd_read of a command whose only such option is --min-cost; `context`: a reading. */
bool reading_read(const cmd *c, cmd_option_id option, const char *value, void *context);

/* Takes the other options. Returns false after cmd_usage(): there is no folder of --symbols.
 * reading_clear() is to follow. */
bool reading_take(const cmd *c, const cmd_line *line, reading *r);
void reading_clear(reading *r);

/* Returns how the figures of a trace are loaded. `findings`: whether they are asked for. */
wr_figures_settings reading_figures(const reading *r, bool findings);

/* Prints the last error message. Returns the exit status of diff and check for no answer,
 * CMD_USAGE. */
int reading_failed(void);

/* Whether the file that an option names may be written (NULL: it was not given). Returns false
 * after cmd_usage(): it is what is read. */
bool reading_may_write(const cmd *c, cmd_option_id option, const char *output, const char *input);

#endif
