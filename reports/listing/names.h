/* names.h: the tables of a trace that give numbers names. */
#ifndef WEIR_REPORTS_LISTING_NAMES_H
#define WEIR_REPORTS_LISTING_NAMES_H

#include <stddef.h>
#include "reports/import/schema.h"

typedef enum listing_table {
  NAMES_API,
  NAMES_KIND,
  NAMES_MEMORY,
  NAMES_DIRECTION,
  NAMES_WAIT,
  NAMES_FACT,
  NAMES_REASON,
  NAMES_TABLES
} listing_table;

typedef struct listing_names {
  struct {
    char **text; /* owned; by number, as the trace has them: not clean */
    size_t count;
  } table[NAMES_TABLES];
} listing_names;

/* What the trace lacks, as one of an older Weir does, has no names. All zero before; to be freed
 * whatever comes of it. */
weir_status listing_names_load(listing_names *n, const wr_db *db);
void listing_names_free(listing_names *n);

/* Borrowed; NULL: it has none. */
const char *listing_name(const listing_names *n, listing_table table, int64_t number);

#endif
