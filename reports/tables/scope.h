/* scope.h: the filters of a report: what began in a time, what a process did, what was done within
 * ranges of a text. */
#ifndef WEIR_REPORTS_SCOPE_H
#define WEIR_REPORTS_SCOPE_H

#include "core/base/map.h"
#include "reports/import/schema.h"
#include "reports/tables/settings.h"

typedef struct wr_scope {
  bool any;         /* some filter is set */
  int64_t from, to; /* ns; [from, to) */
  int64_t duration; /* of the run */
  bool by_process, by_range;
  hash_map processes; /* rows of process that are in it */
  hash_map ranges;    /* rows of range_row that are in it, or nested in one that is */
} wr_scope;

/* All zero before. Errors: EINVAL (no such process or range; nothing can lie between the times). */
weir_status wr_scope_open(wr_scope *s, const wr_db *db, const report_settings *o);
void wr_scope_close(wr_scope *s);

/* `range`: row of range_row, 0 none. */
bool wr_scope_process(const wr_scope *s, int64_t process);
bool wr_scope_has(const wr_scope *s, int64_t process, int64_t start, int64_t range);

/* The filters as a person reads them (new); NULL: out of memory. */
char *wr_scope_words(const wr_scope *s, const report_settings *o);

#endif
