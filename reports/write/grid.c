/* grid.c: see grid.h. */
#include "reports/write/grid.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"

#define LEAST 6 /* columns of text that gives way */

void wr_grid_row(wr_grid *g)
{
  size_t need = (g->rows + 1) * WR_GRID_COLUMNS;
  g->column = WR_GRID_COLUMNS; /* takes no cell */
  if (!wr_grow(&g->cell, &g->capacity, need, sizeof(wr_cell))) {
    g->failed = true;
    return;
  }
  memset(&g->cell[g->rows * WR_GRID_COLUMNS], 0, WR_GRID_COLUMNS * sizeof(wr_cell));
  g->rows++;
  g->column = 0;
}

static void add_cell(wr_grid *g, char *text, size_t keep)
{
  if (!text) g->failed = true;
  if (g->rows && g->column < WR_GRID_COLUMNS)
    g->cell[(g->rows - 1) * WR_GRID_COLUMNS + g->column++] = (wr_cell){text, keep};
  else
    free(text);
}

void wr_grid_cell(wr_grid *g, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = wr_show_unseen(wr_vformat(format, args));
  va_end(args);
  add_cell(g, text, 0);
}

void wr_grid_cells(wr_grid *g, const char *const *texts, size_t count)
{
  for (size_t i = 0; i < count; i++)
    wr_grid_cell(g, "%s", texts[i]);
}

void wr_grid_cell_kept(wr_grid *g, const char *head, const char *kept)
{
  char *first = wr_show_unseen(wr_format("%s", head)),
       *last = wr_show_unseen(wr_format("%s", kept));
  add_cell(g, first && last ? wr_format("%s%s", first, last) : NULL, last ? strlen(last) : 0);
  free(first);
  free(last);
}

void wr_grid_clear(wr_grid *g)
{
  for (size_t i = 0; i < g->rows * WR_GRID_COLUMNS; i++)
    free(g->cell[i].text);
  free(g->cell);
  g->cell = NULL;
  g->rows = g->capacity = g->column = 0;
}

static bool begins_character(char c)
{
  return ((unsigned char)c & 0xc0) != 0x80;
}

size_t wr_text_width(const char *text)
{
  size_t n = 0;
  for (; *text; text++)
    n += begins_character(*text);
  return n;
}

/* Prints the first `bytes` of text, without `skip` columns from column `from` on: "…" is there. */
static void put_without(FILE *out, const char *text, size_t bytes, size_t from, size_t skip)
{
  size_t column = 0;
  for (size_t i = 0; i < bytes; i++) {
    column += begins_character(text[i]);
    size_t at = column ? column - 1 : 0;
    if (skip && at == from && begins_character(text[i])) (void)fputs("…", out);
    if (!skip || at < from || at >= from + skip) (void)fputc(text[i], out);
  }
}

/* As wr_put_fit(), of text whose last `keep` bytes stay. */
static size_t put_kept(FILE *out, const char *text, size_t keep, size_t width)
{
  size_t bytes = strlen(text) - keep;
  size_t need = wr_text_width(text), kept = wr_text_width(text + bytes), head = need - kept;
  if (need <= width) {
    (void)fputs(text, out);
    return need;
  }
  size_t room = width > kept + LEAST ? width - kept : LEAST;
  if (!kept) room = width;
  if (room > head) room = head;
  size_t skip = head - room;
  put_without(out, text, bytes, (room - (skip > 0)) - (room - (skip > 0)) / 2, skip ? skip + 1 : 0);
  (void)fputs(text + bytes, out);
  return room + kept;
}

size_t wr_put_fit(FILE *out, const char *text, size_t width)
{
  char *shown = width ? wr_show_unseen(wr_format("%s", text)) : NULL;
  size_t columns = shown ? put_kept(out, shown, 0, width) : 0;
  free(shown);
  return columns;
}

static void blanks(FILE *out, size_t n)
{
  while (n--)
    (void)fputc(' ', out);
}

static const wr_cell *cell_at(const wr_grid *g, size_t row, size_t column)
{
  return &g->cell[row * WR_GRID_COLUMNS + column];
}

static const char *text_at(const wr_grid *g, size_t row, size_t column)
{
  const char *text = cell_at(g, row, column)->text;
  return text ? text : "";
}

/* What a cell takes when all that may be cut of it is. */
static size_t least_width(const wr_cell *c)
{
  if (!c->text) return 0;
  size_t n = wr_text_width(c->text);
  size_t kept = c->keep ? wr_text_width(c->text + strlen(c->text) - c->keep) : 0;
  return n < kept + LEAST ? n : kept + LEAST;
}

/* The widths of the columns; the one that gives way gets what the others leave. */
static void measure_columns(const wr_grid *g, size_t columns, int width, size_t *out)
{
  size_t sum = 2 + (columns - 1) * 2, flexible = columns, least = 0;
  for (size_t c = 0; c < columns; c++) {
    out[c] = 0;
    for (size_t r = 0; r < g->rows; r++) {
      size_t n = wr_text_width(text_at(g, r, c));
      if (n > out[c]) out[c] = n;
    }
    sum += out[c];
    if (g->align[c] == 'f') flexible = c;
  }
  size_t limit = width > 20 ? (size_t)width : 20;
  if (width <= 0 || flexible == columns || sum <= limit) return;
  for (size_t r = 0; r < g->rows; r++) {
    size_t n = least_width(cell_at(g, r, flexible));
    if (n > least) least = n;
  }
  sum -= out[flexible];
  size_t over = sum + least > limit ? sum + least - limit : 0;
  out[flexible] = over ? least : limit - sum;
  for (size_t c = columns; c-- && over;) { /* names in other columns are next */
    if (g->align[c] != 'l' || out[c] <= LEAST) continue;
    size_t less = out[c] - LEAST < over ? out[c] - LEAST : over;
    out[c] -= less;
    over -= less;
  }
}

static void print_row(FILE *out, const wr_grid *g, size_t r, size_t columns, const size_t *widths)
{
  size_t last = 0;
  for (size_t c = 0; c < columns; c++)
    if (*text_at(g, r, c)) last = c;
  blanks(out, 2);
  for (size_t c = 0; c <= last; c++) {
    const char *text = text_at(g, r, c);
    size_t n = wr_text_width(text);
    if (n > widths[c]) n = widths[c];
    if (g->align[c] == 'r') blanks(out, widths[c] - n);
    n = put_kept(out, text, cell_at(g, r, c)->keep, widths[c]);
    if (c == last) break;
    if (g->align[c] != 'r' && n < widths[c]) blanks(out, widths[c] - n);
    blanks(out, 2);
  }
}

void wr_grid_print(FILE *out, wr_grid *g, int width, bool dim_first, bool color)
{
  size_t widths[WR_GRID_COLUMNS] = {0}, columns = strlen(g->align);
  if (columns > WR_GRID_COLUMNS) columns = WR_GRID_COLUMNS;
  measure_columns(g, columns, width, widths);
  for (size_t r = 0; r < g->rows; r++) {
    bool dim = color && dim_first && r == 0;
    if (dim) (void)fputs("\033[2m", out);
    print_row(out, g, r, columns, widths);
    (void)fputs(dim ? "\033[0m\n" : "\n", out);
  }
  wr_grid_clear(g);
}
