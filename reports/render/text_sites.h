/* text_sites.h: tables of places in the program, each with the callers that lead to it. */
#ifndef WEIR_REPORTS_TEXT_SITES_H
#define WEIR_REPORTS_TEXT_SITES_H

#include "reports/model/model.h"
#include "reports/write/page.h"

typedef struct wr_site_columns {
  const char *unit;  /* heading of the counts: "copies" */
  const char *first; /* heading of a first column, or NULL */
  bool bytes, time, function, direction;
  const char *where; /* heading of the places: "called in" */
} wr_site_columns;

/* The columns' letters for wr_page_begin(); and their titles, the first row. */
const char *wr_site_align(const wr_site_columns *c);
void wr_site_titles(wr_page *p, const wr_site_columns *c);

/* Rows of the first `most` places of a list, `first` in the first column, each with its callers;
 * and a row of the sums of those left out. */
void wr_site_rows(wr_page *p, const wr_site_columns *c, const wr_sites *s, size_t most,
                  const char *first);

/* A cell: a function and its file and line, which are never cut; where nothing is cut, the whole path. */
void wr_where_cell(wr_page *p, const char *before, const wr_frame_name *f);

/* A table of its own, with its heading. */
void wr_site_table(wr_page *p, const char *title, const char *aside, const wr_site_columns *c,
                   const wr_sites *s);

#endif
