/* sheet.c: see sheet.h. */
#include "reports/write/sheet.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"

void wr_sheet_heading(wr_sheet *s, const char *title, const char *aside)
{
  if (!s->markdown) {
    wr_page_heading(&s->page, title, aside);
    return;
  }
  (void)fputs("\n### ", s->page.out);
  wr_put_markdown_text(s->page.out, title);
  if (aside && *aside) {
    (void)fputs("\n\n", s->page.out);
    wr_put_markdown_text(s->page.out, aside);
  }
  (void)fputc('\n', s->page.out);
}

void wr_sheet_line(wr_sheet *s, bool warn, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = wr_vformat(format, args);
  va_end(args);
  if (!text) {
    s->page.failed = true;
  } else if (s->markdown) {
    (void)fputc('\n', s->page.out);
    wr_put_markdown_text(s->page.out, text + strspn(text, " "));
    (void)fputc('\n', s->page.out);
  } else {
    wr_page_line(&s->page, warn, text);
  }
  free(text);
}

void wr_sheet_begin(wr_sheet *s, const char *align)
{
  wr_page_begin(&s->page, align);
}

static void put_markdown_row(FILE *out, const wr_cell *cell, size_t columns)
{
  for (size_t c = 0; c < columns; c++) {
    (void)fputs("| ", out);
    wr_put_markdown_text(out, cell[c].text ? cell[c].text : "");
    (void)fputc(' ', out);
  }
  (void)fputs("|\n", out);
}

void wr_sheet_end(wr_sheet *s)
{
  wr_grid *g = &s->page.grid;
  size_t columns = strlen(g->align);
  if (!s->markdown) {
    wr_page_end(&s->page);
    return;
  }
  (void)fputc('\n', s->page.out);
  for (size_t r = 0; r < g->rows; r++) {
    put_markdown_row(s->page.out, &g->cell[r * WR_GRID_COLUMNS], columns);
    for (size_t c = 0; r == 0 && c < columns; c++)
      (void)fputs(g->align[c] == 'r' ? "|--:" : "|---", s->page.out);
    if (r == 0) (void)fputs("|\n", s->page.out);
  }
  wr_grid_clear(g);
}
