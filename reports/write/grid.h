/* grid.h: aligned text. A grid collects cells, then prints them in columns as wide as they need;
 * one column gives way where the line would be too long: what is in it is cut in its middle, but
 * never what a cell keeps (a file and line). Without a width nothing is cut. */
#ifndef WEIR_REPORTS_GRID_H
#define WEIR_REPORTS_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WR_GRID_COLUMNS 16

typedef struct wr_cell {
  char *text;  /* owned, NULL: empty */
  size_t keep; /* bytes at its end that are never cut */
} wr_cell;

typedef struct wr_grid { /* all zero: empty */
  const char *align;     /* a character a column: 'l', 'r', or 'f': left, and gives way */
  size_t rows;
  size_t column; /* next cell of the newest row */
  wr_cell *cell; /* owned; [rows][WR_GRID_COLUMNS] */
  size_t capacity;
  bool failed; /* there was no memory for some of it; stays */
} wr_grid;

void wr_grid_row(wr_grid *g); /* begins a row */
void wr_grid_cell(wr_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wr_grid_cells(wr_grid *g, const char *const *texts, size_t count);
#define WR_CELLS(grid, ...)                                                                        \
  wr_grid_cells(grid, (const char *const[]){__VA_ARGS__},                                          \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
/* A cell of two parts, the second of which is never cut. */
void wr_grid_cell_kept(wr_grid *g, const char *head, const char *kept);

/* Prints the rows, two blanks in front, at most `width` columns where it can be (0: without limit);
 * `dim_first`: the first row is a heading, grey where `color`. Empties the grid. */
void wr_grid_print(FILE *out, wr_grid *g, int width, bool dim_first, bool color);
void wr_grid_clear(wr_grid *g);

/* Columns `text` takes on a terminal: code points. */
size_t wr_text_width(const char *text);

/* Prints text, cut in its middle to `width` columns, which are not 0. Returns the columns printed.
 */
size_t wr_put_fit(FILE *out, const char *text, size_t width);

#endif
