/* output_file.h: the one way in which a command writes a file that it was given the name of.
 *
 * - "-", /dev/stdout, /dev/stderr and /dev/fd/N are what weir has open, also `>(command)` of a
 *   shell.
 * - A regular file is written under another name in the same folder and renamed when it is
 *   whole: no one reads half of it, and a failure or a signal leaves what was there.
 * - What is no regular file (a device, a pipe) is written as it is, never replaced.
 * - A link is followed, to the same rules, if it is the caller's or root's. One of another user's
 *   is refused. */
#ifndef WEIR_TOOLS_WEIR_BASE_OUTPUT_FILE_H
#define WEIR_TOOLS_WEIR_BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/status.h"

/* Writes `path` by `write`; a new file has these permissions, less the umask. Errors: EIO,
 * ENOSPC, those of `write`. A pipe whose reader is gone ends weir as it ends any program, once
 * what it made is removed. */
weir_status output_write(const char *path, unsigned mode,
                         weir_status (*write)(FILE *out, const void *context), const void *context);

/* The same for what needs the name of a regular file, empty yet: SQLite. What is to be written
 * elsewhere is made in TMPDIR. */
weir_status output_make(const char *path, unsigned mode,
                        weir_status (*make)(const char *file, const void *context),
                        const void *context);

/* Whether the name is "-", which is no file's. */
bool output_is_stdout(const char *path);

/* Whether both are names of one file; "-" is none. */
bool output_is_same(const char *path, const char *other);

#endif
