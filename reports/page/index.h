/* index.h: the index of a page: what the run was, its totals, all texts, and what each column
 * is. */
#ifndef WEIR_REPORTS_PAGE_INDEX_H
#define WEIR_REPORTS_PAGE_INDEX_H

#include <stdio.h>
#include "reports/findings/findings.h"
#include "reports/model/model.h"
#include "reports/page/memory.h"

typedef struct page_parts { /* all borrowed, and put in order */
  const wr_model *model;
  page_places *places;
  page_calls *calls;
  page_memory *memory;
  page_columns *columns; /* filled here */
  const wr_db *db;
  const wr_findings *findings;
  bool quoted; /* lines of source may be in it */
} page_parts;

/* JSON ("weir-page/1") that can stand in a script of HTML. Errors: ENOMEM. */
weir_status page_index_write(FILE *out, page_parts *parts);

#endif
