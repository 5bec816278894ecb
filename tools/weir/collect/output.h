/* output.h: which file a trace may be written to. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_OUTPUT_H
#define WEIR_TOOLS_WEIR_COLLECT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

/* True when `path` is free for a trace: nothing is there, an empty file of ours, or, with `force`,
 * a trace that nobody writes, which is then replaced. Otherwise prints why not, and which name is
 * free. */
bool output_may_write(const char *path, bool force);

/* Processes that are launched together may all be given one name for their traces. `rank`, as
 * launched_rank() has it: of this one. *shared: there is a trace of that name already, and
 * output_of_rank() is free for this one's. With `force` the first rank replaces the trace that is
 * there, and the others do not: it may be what one of them has just written. False after a
 * sentence: neither is free. */
bool output_may_share(const char *path, bool force, uint32_t rank, bool *shared);

/* trace.3.db for trace.db. New. */
char *output_of_rank(const char *path, uint32_t rank);

/* The same of a trace that is added to, if it is there and without `force`. */
bool output_may_extend(const char *path, bool force);

/* Prints that the trace at `path` is of another run than what is to be added. */
void output_refuse_other_run(const char *path);

/* `path`, or for trace.db the first of trace-2.db, trace-3.db, ... where nothing is; made as an
 * empty file, so that it is the caller's. New; NULL after a sentence. */
char *output_reserve(const char *path);

#endif
