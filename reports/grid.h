/* grid.h: aligned text. A grid collects cells, then prints them in columns as wide as they need;
 * one column gives way where the line would be too long. Human units are made here too.
 */
#ifndef WEIR_REPORTS_GRID_H
#define WEIR_REPORTS_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WR_GRID_COLUMNS 9
#define WR_GRID_ROWS    48
#define WR_GRID_CELL    320 /* bytes; longer text is cut */

typedef struct wr_grid {
  const char *align; /* a character a column: 'l', 'r', or 'f': left, and gives way */
  size_t rows;
  size_t column; /* next cell of the newest row */
  char cell[WR_GRID_ROWS][WR_GRID_COLUMNS][WR_GRID_CELL];
} wr_grid;

/* Begins a row; past the last there is room for, nothing is kept. */
void wr_grid_row(wr_grid *g);
void wr_grid_cell(wr_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the rows, two blanks in front, at most `width` columns; `dim_first`: the first row is a
 * heading, grey where `color`. Empties the grid. */
void wr_grid_print(FILE *out, wr_grid *g, int width, bool dim_first, bool color);

/* Columns `text` takes on a terminal: code points. */
size_t wr_text_width(const char *text);

/* Prints text, cut with an ellipsis to `width` columns. Returns the columns printed. */
size_t wr_put_fit(FILE *out, const char *text, size_t width);

typedef struct wr_word { /* what the functions below return: a short text by value */
  char text[32];
} wr_word;

wr_word wr_bytes(uint64_t bytes);              /* 4.50 GiB */
wr_word wr_count(uint64_t n);                  /* 1,234,567 */
wr_word wr_duration(uint64_t ns);              /* 1.23 ms */
wr_word wr_speed(uint64_t bytes, uint64_t ns); /* 12.3 GB/s, "-" where ns is 0 */
wr_word wr_percent(uint64_t part, uint64_t whole);

#endif
