/* page.h: what the text reports are written with: headings, lines that fit, one table at a time. */
#ifndef WEIR_REPORTS_WRITE_PAGE_H
#define WEIR_REPORTS_WRITE_PAGE_H

#include <stdbool.h>
#include <stdio.h>
#include "reports/base/units.h"
#include "reports/write/grid.h"

typedef struct wr_page {
  FILE *out; /* borrowed */
  int width; /* columns; 0: without limit */
  int top;   /* rows of a list */
  bool top_asked;
  bool color;
  bool possible; /* findings that are possible in full, too */
  bool failed;   /* there was no memory for some of it */
  wr_grid grid;
} wr_page;

/* Turns an ANSI code on or off, where there are colours. */
void wr_page_paint(wr_page *p, const char *code);
/* An empty line, a title, and beside it, or below where there is no room, grey, `aside` (or NULL).
 */
void wr_page_heading(wr_page *p, const char *title, const char *aside);
/* One paragraph of prose; where there is a width, in lines that keep to it. */
void wr_page_line(wr_page *p, bool warn, const char *text);
void wr_page_say(wr_page *p, bool warn, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "what: a, b, c": all of a list, or, where there is a width, what two lines hold and how many more
 * there are. */
void wr_page_list(wr_page *p, const char *what, char *const *list, size_t count);
/* The page has been written. False: not all of it, for lack of memory. */
bool wr_page_done(wr_page *p);

#define LINE wr_page_say

/* A table: its columns (grid.h), its rows, its end. */
void wr_page_begin(wr_page *p, const char *align);
void wr_page_end(wr_page *p);

/* A row of texts; the first one has the titles. */
#define ROW(page, ...)   (wr_grid_row(&(page)->grid), CELLS(page, __VA_ARGS__))
#define CELLS(page, ...) WR_CELLS(&(page)->grid, __VA_ARGS__)
#define CELL(page, ...)  wr_grid_cell(&(page)->grid, __VA_ARGS__)

#endif
