/* sheet.h: a page (page.h) that can be Markdown, too: the same headings, lines and tables. */
#ifndef WEIR_REPORTS_SHEET_H
#define WEIR_REPORTS_SHEET_H

#include "reports/write/page.h"

typedef struct wr_sheet {
  wr_page page; /* cells go in by its macros */
  bool markdown;
} wr_sheet;

/* `aside` may be NULL. */
void wr_sheet_heading(wr_sheet *s, const char *title, const char *aside);
void wr_sheet_line(wr_sheet *s, bool warn, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A table; `align` as in grid.h. Its first row has the titles. */
void wr_sheet_begin(wr_sheet *s, const char *align);
void wr_sheet_end(wr_sheet *s);

#endif
