/* page.c: see page.h. */
#include "reports/page.h"

void wr_page_paint(wr_page *p, const char *code)
{
  if (p->color) (void)fputs(code, p->out);
}

void wr_page_heading(wr_page *p, const char *title, const char *aside)
{
  (void)fputc('\n', p->out);
  wr_page_paint(p, "\033[1m");
  (void)fputs(title, p->out);
  wr_page_paint(p, "\033[0m");
  if (aside && *aside) {
    wr_page_paint(p, "\033[2m");
    (void)fputs("  ", p->out);
    wr_put_fit(p->out, aside, (size_t)p->width - wr_text_width(title) - 2);
    wr_page_paint(p, "\033[0m");
  }
  (void)fputc('\n', p->out);
}

void wr_page_line(wr_page *p, bool warn, const char *text)
{
  if (warn) wr_page_paint(p, "\033[33m");
  (void)fputs("  ", p->out);
  wr_put_fit(p->out, text, (size_t)p->width - 2);
  if (warn) wr_page_paint(p, "\033[0m");
  (void)fputc('\n', p->out);
}

void wr_page_begin(wr_page *p, const char *align)
{
  p->grid.align = align;
  p->grid.rows = 0;
}

void wr_page_titles(wr_page *p, const char *const *names, size_t count)
{
  wr_grid_row(&p->grid);
  for (size_t i = 0; i < count; i++)
    wr_grid_cell(&p->grid, "%s", names[i]);
}

void wr_page_end(wr_page *p)
{
  wr_grid_print(p->out, &p->grid, p->width, true, p->color);
}
