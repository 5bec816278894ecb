/* output.h: which file a trace may be written to. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_OUTPUT_H
#define WEIR_TOOLS_WEIR_COLLECT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether `path` is free for a trace: nothing is there, an empty file of ours, or, with `force`, a
 * trace that nobody writes, which is then replaced. Otherwise prints why not, and which name is
 * free. */
bool output_may_write(const char *path, bool force);

/* Whether a process may have a trace of this name, or one with its rank in it, where processes that
 * are launched together are all given one name. `rank`, as launched_rank() has it: of this process.
 * *shared: there is a trace of that name already, and output_of_rank() is free for this process's.
 * With `force` the first rank replaces the trace that is there, and the others do not: it may be
 * what one of them has just written. Returns false after a message: neither name is free. */
bool output_may_share(const char *path, bool force, uint32_t rank, bool *shared);

/* Returns the absolute path (new) that dumps are named after; NULL after a message: there is no folder
 * for them, or no right to write there. */
char *output_for_dumps(const char *path);

/* Returns trace.3.db for trace.db and rank 4. New. */
char *output_of_rank(const char *path, uint32_t rank);

/* Whether `path` is free for a trace or, without `force`, holds one that can be added to. Otherwise
 * prints why not. */
bool output_may_extend(const char *path, bool force);

/* Prints that the trace at `path` is of another run than what is to be added. */
void output_refuse_other_run(const char *path);

/* Reserves `path`, or for trace.db the first of trace-2.db, trace-3.db, ... where nothing is, as an
 * empty file. Returns the name (new); NULL after a message. */
char *output_reserve(const char *path);

#endif
