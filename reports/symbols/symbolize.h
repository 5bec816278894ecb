/* symbolize.h: addresses of a traced process become functions, files and lines, when a report is
 * made.
 *
 * A module's file must still be the one that ran: where a build-id was recorded and the file has
 * another, where none was and its size or time of change are others, or where it is gone, a frame
 * stays "module+0xoffset", and `lacks` has the reason. db->symbols is a folder with copies of the
 * files, or of their debug information: by build-id (.build-id/ab/cdef.debug), by whole path, or
 * by name. Frames of Python programs have their names in the trace (python_frame). Others in no
 * module are looked up in what JIT compilers and `python3 -X perf` write (jit.h). Answers are
 * cached by address; strings live as long as the symbolizer.
 *
 * What a trace itself has of a frame (source_line, which `weir resolve` fills) comes first, and
 * spares the look at files; with db->want_lines only what has a line does. */
#ifndef WEIR_REPORTS_SYMBOLIZE_H
#define WEIR_REPORTS_SYMBOLIZE_H

#include <stddef.h>
#include "reports/import/schema.h"

typedef struct wr_frame {
  const char *function; /* demangled; NULL: unknown */
  const char *file;     /* NULL: unknown */
  int line;             /* 0: unknown */
  const char *module;   /* path; "" when in none */
  const char *lacks; /* "changed since", "removed": why the module's names are not known; or NULL */
  uint64_t offset;   /* of the instruction after the call, in the module (or the plain address) */
  int64_t row;       /* of table frame */
  bool script;       /* a frame of a Python program, or one that its perf map has as such */
  int64_t
      built; /* when the module's file was last changed, ns since 1970; 0: not known, or in none */
  int inlined; /* 0 the innermost function at the address, 1 the one it is inlined into, ... */
} wr_frame;

typedef struct wr_symbols wr_symbols;

/* Loads the processes and modules of a trace (*out new). */
weir_status wr_symbols_open(wr_symbols **out, const wr_db *db);
void wr_symbols_close(wr_symbols *s);
const wr_db *wr_symbols_trace(const wr_symbols *s);

/* The frames of a stack, innermost first, inlined functions as frames of their own. *frames is
 * borrowed until the next call. */
weir_status wr_symbols_stack(wr_symbols *s, int64_t stack, const wr_frame **frames, size_t *count);

/* What addresses were resolved to so far, one at a time, with the functions they are inlined into:
 * *at starts at 0. False: no more. */
bool wr_symbols_resolved(const wr_symbols *s, size_t *at, const wr_frame **frames, size_t *count);

/* The modules asked for whose names are not known, one at a time: *at starts at 0. False: no more.
 */
bool wr_symbols_lacking(const wr_symbols *s, size_t *at, const char **path, const char **why);

#endif
