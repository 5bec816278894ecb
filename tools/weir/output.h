/* output.h: which file a trace may be written to. */
#ifndef WEIR_TOOLS_OUTPUT_H
#define WEIR_TOOLS_OUTPUT_H

#include <stdbool.h>

/* True when `path` is free for a trace: nothing is there, an empty file, or a trace, which is then
 * replaced. Otherwise says why not. */
bool output_may_write(const char *path);

/* `path`, or the first of path.1, path.2, ... where nothing is; made as an empty file, so that it
 * is the caller's. New; NULL after a sentence. */
char *output_reserve(const char *path);

#endif
