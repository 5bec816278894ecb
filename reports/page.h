/* page.h: what the text reports are written with: headings, lines that fit, one table at a time. */
#ifndef WEIR_REPORTS_PAGE_H
#define WEIR_REPORTS_PAGE_H

#include <stdbool.h>
#include <stdio.h>
#include "reports/grid.h"

typedef struct wr_page {
  FILE *out;                /* borrowed */
  const struct wr_model *m; /* borrowed; what the page is of, or NULL */
  int width;                /* columns */
  bool color;
  wr_grid grid; /* big; one is enough */
} wr_page;

#define BYTES(n)    wr_bytes(n).text
#define COUNT(n)    wr_count(n).text
#define DURATION(n) wr_duration(n).text

/* Turns an ANSI code on or off, where there are colours. */
void wr_page_paint(wr_page *p, const char *code);
/* An empty line, a title, and beside it, grey, `aside` (or NULL). */
void wr_page_heading(wr_page *p, const char *title, const char *aside);
/* One line of prose, cut to the page. */
void wr_page_line(wr_page *p, bool warn, const char *text);

#define LINE(page, warn, ...)                                                                      \
  do {                                                                                             \
    char text_[1024];                                                                              \
    (void)snprintf(text_, sizeof(text_), __VA_ARGS__);                                             \
    wr_page_line(page, warn, text_);                                                               \
  } while (0)

/* A table: its columns (grid.h), its rows, its end. */
void wr_page_begin(wr_page *p, const char *align);
void wr_page_titles(wr_page *p, const char *const *names, size_t count);
void wr_page_end(wr_page *p);

#define TITLES(page, ...)                                                                          \
  wr_page_titles(page, (const char *const[]){__VA_ARGS__},                                         \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
#define CELL(page, ...) wr_grid_cell(&(page)->grid, __VA_ARGS__)

#endif
