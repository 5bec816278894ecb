/* change.h: a complete trace is changed: in one transaction, which a reader passes over until it is
 * whole, by whoever holds the trace's lock. */
#ifndef WEIR_REPORTS_CHANGE_H
#define WEIR_REPORTS_CHANGE_H

#include "reports/import/schema.h"

typedef struct wr_change {
  const char *trace;
  const char *symbols; /* for the connection: wr_db.symbols, or NULL */
  bool want_lines;     /* wr_db.want_lines */
  int longest;         /* bytes of a text or blob that is read or written */
  int patience_ms;     /* how long others who have the file open are waited for */
  weir_status (*make)(void *context, const wr_db *db); /* in the transaction */
  void *context;
} wr_change;

/* Errors: ENOENT, EIO (one that is written, another's, incomplete), ECORRUPT, EVERSION, ENOSPC,
 * ENOMEM, those of `make`. After a failure the trace is as it was. */
weir_status wr_change_trace(const wr_change *c);

#endif
