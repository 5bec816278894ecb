/* kept.h: what a report has computed of a trace, kept in the trace (table `kept`, SCHEMA.md).
 *
 * A row is the model or the findings, in the bytes of shape.h. It is used while all of this holds:
 * - the same Weir wrote it: its version, its build, the shapes and the rules are hashed (`stamp`);
 * - the file was not changed since: SQLite counts its transactions in the file's header (its "File
 *   change counter"), and a row has the number that its own left (`change`). In WAL mode it does
 *   not count, so a row is used only where the file is in none;
 * - the files that names come from are as they were: the path, size and time of change of each
 *   module's and of what may have its debug information are hashed (`files`);
 * - the bytes are those that were written (`sum`), and the values in them are possible (shape.h).
 * Otherwise it is as if it was not there. */
#ifndef WEIR_REPORTS_WHOLE_KEPT_H
#define WEIR_REPORTS_WHOLE_KEPT_H

#include "reports/import/schema.h"
#include "reports/whole/shape.h"

enum { WR_KEPT_MODEL, WR_KEPT_FINDINGS, WR_KEPTS };

/* Most bytes of a row; of a small trace fewer (wr_kept_most()). */
enum { WR_KEPT_MOST = 8 << 20, WR_KEPT_LEAST_MOST = 1 << 18, WR_KEPT_SHARE = 8 };

/* What a row holds next to its bytes. */
typedef struct wr_kept_of {
  uint64_t stamp, files;
  uint32_t change;
} wr_kept_of;

/* What it has to be now. False: the trace is none that has rows, or its header cannot be read. */
bool wr_kept_find_now(const wr_db *db, wr_kept_of *now);

/* Fills *root, whose shape it is, from a row; what `root` has that is no part of the shape is set. False:
 * there is none that holds; *root can be freed. */
bool wr_kept_read(const wr_db *db, int which, const wr_shape *shape, void *root);

/* Of the bytes of a row. */
uint64_t wr_kept_sum(const unsigned char *bytes, size_t count);

/* Whether the row can be there at all: quickly. */
bool wr_kept_any(const wr_db *db);

/* Most bytes that are kept of this trace. */
size_t wr_kept_most(const wr_db *db);

/* A process that was killed while it kept figures leaves the file in WAL mode, of which nothing is
 * kept: puts it into the mode of a complete trace again. Errors: EIO, somebody else has it. */
bool wr_kept_is_in_wal(const wr_db *db);
weir_status wr_kept_leave_wal(const char *trace);

/* Puts rows into a complete trace in place of those that are there; `of`: what wr_kept_find_now()
 * found before they were computed. Errors: those of wr_change_trace(); EIO: the trace was changed
 * since. */
weir_status wr_kept_write(const char *trace, const wr_kept_of *of,
                          const wr_shape_bytes rows[WR_KEPTS]);

#endif
