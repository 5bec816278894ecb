/* open.h: opens what a person gives as a trace: a trace, complete or not, or a spool. */
#ifndef WEIR_REPORTS_OPEN_H
#define WEIR_REPORTS_OPEN_H

#include "reports/import/schema.h"

typedef enum wr_file_kind { WR_FILE_TRACE, WR_FILE_SPOOL, WR_FILE_OTHER } wr_file_kind;

/* What a file is by its first bytes. TRACE: some SQLite file. Errors: ENOENT, EIO. */
weir_status wr_file_look(const char *path, wr_file_kind *kind);

typedef struct wr_input {
  wr_db db;     /* read-only; path is the one that was given (borrowed) */
  char *folder; /* owned: of the temporary trace made from a spool, or NULL */
} wr_input;

/* Opens a trace, or a spool, which is imported to a temporary trace first. To be closed only when
 * this succeeded. Errors: ENOENT, EIO, ECORRUPT ("... is neither a trace nor a spool"), EVERSION.
 */
weir_status wr_input_open(wr_input *in, const char *path);
void wr_input_close(wr_input *in);

/* Opens db->path, a complete trace, to be written. db->handle is to be closed, whatever comes of
 * it. Errors as above; EVERSION for one of an older schema, EIO for one that is not complete. */
weir_status wr_finished_open(wr_db *db);

#endif
