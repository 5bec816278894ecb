/* output.h: which file a trace may be written to. */
#ifndef WEIR_TOOLS_OUTPUT_H
#define WEIR_TOOLS_OUTPUT_H

#include <stdbool.h>

/* True when `path` is free for a trace: nothing is there, an empty file of ours, or, with `force`,
 * a trace that nobody writes, which is then replaced. Otherwise says why not, and which name is
 * free. */
bool output_may_write(const char *path, bool force);

/* The same of a trace that is added to, if it is there and without `force`. */
bool output_may_extend(const char *path, bool force);

/* Says that the trace at `path` is of another run than what is to be added. */
void output_refuse_other_run(const char *path);

/* `path`, or for trace.db the first of trace-2.db, trace-3.db, ... where nothing is; made as an
 * empty file, so that it is the caller's. New; NULL after a sentence. */
char *output_reserve(const char *path);

#endif
