/* layout.h: what text is written with: headings, lines that fit, one table at a time. */
#ifndef WEIR_REPORTS_WRITE_LAYOUT_H
#define WEIR_REPORTS_WRITE_LAYOUT_H

#include <stdbool.h>
#include <stdio.h>
#include "reports/base/units.h"
#include "reports/write/grid.h"

typedef struct wr_layout {
  FILE *out; /* borrowed */
  int width; /* columns; 0: without limit */
  bool color;
  bool failed; /* there was no memory for some of it */
  wr_grid grid;
} wr_layout;

/* Turns an ANSI code on or off, where there are colours. */
void wr_layout_paint(wr_layout *p, const char *code);
/* An empty line, a title, and beside it, or below where there is no room, grey, `aside` (or NULL).
 */
void wr_layout_heading(wr_layout *p, const char *title, const char *aside);
/* One paragraph of prose; where there is a width, in lines that keep to it. */
void wr_layout_line(wr_layout *p, bool warn, const char *text);
void wr_layout_say(wr_layout *p, bool warn, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "what: a, b, c": all of a list, or, where there is a width, what two lines hold and how many more
 * there are. */
void wr_layout_list(wr_layout *p, const char *what, char *const *list, size_t count);
/* All has been written. False: not all of it, for lack of memory. */
bool wr_layout_done(wr_layout *p);

#define LINE wr_layout_say

/* A table: its columns (grid.h), its rows, its end. */
void wr_layout_begin(wr_layout *p, const char *align);
void wr_layout_end(wr_layout *p);

/* A row of texts; the first one has the titles. */
#define ROW(layout, ...)   (wr_grid_row(&(layout)->grid), CELLS(layout, __VA_ARGS__))
#define CELLS(layout, ...) WR_CELLS(&(layout)->grid, __VA_ARGS__)
#define CELL(layout, ...)  wr_grid_cell(&(layout)->grid, __VA_ARGS__)

#endif
