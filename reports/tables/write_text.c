/* write_text.c: tables as aligned text. Where a line would be too long columns are left out, those
 * that matter least first; then the places give way. Without a width all are there. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/render/page.h"
#include "reports/tables/table.h"

enum { LEAST_PLACE = 24 /* columns of text */ };

static bool numeric(wr_column_type type)
{
  return type != WR_COLUMN_TEXT && type != WR_COLUMN_PLACE;
}

/* The column that gives way: a stack, or else the place, or else the last text. */
static size_t flexible_column(const wr_named_table *t)
{
  size_t out = t->columns;
  for (size_t c = 0; c < t->columns; c++) {
    if (!strcmp(t->column[c].name, "stack")) return c;
    if (!numeric(t->column[c].type) &&
        (out == t->columns || t->column[out].type != WR_COLUMN_PLACE))
      out = c;
  }
  return out;
}

/* Columns of text that one column takes. */
static size_t column_width(const wr_named_table *t, size_t c, bool *failed)
{
  size_t width = wr_text_width(t->column[c].title);
  for (size_t r = 0; r < t->rows; r++) {
    char *words = wr_value_words(&t->value[r * t->columns + c], t->column[c].type);
    size_t n = words ? wr_text_width(words) : 0;
    if (!words) *failed = true;
    if (n > width) width = n;
    free(words);
  }
  return c == flexible_column(t) && width > LEAST_PLACE ? LEAST_PLACE : width;
}

/* Whether there is anything in it. */
static bool column_known(const wr_named_table *t, size_t c)
{
  for (size_t r = 0; r < t->rows; r++)
    if (t->value[r * t->columns + c].known) return true;
  return false;
}

/* Which columns have something, and room. */
static void choose_columns(const wr_named_table *t, int width, bool *shown, bool *failed)
{
  size_t sum = 0, count = t->columns, left = 0;
  size_t *widths = calloc(count, sizeof(*widths));
  if (!widths) *failed = true;
  for (size_t c = 0; c < count && widths; c++)
    if ((shown[c] = !t->column[c].extra || column_known(t, c)))
      widths[c] = column_width(t, c, failed), sum += widths[c] + 2, left++;
  for (; widths && left > 1 && ((width > 0 && sum > (size_t)width) || left > WR_GRID_COLUMNS);
       left--) {
    size_t out = count;
    for (size_t c = 0; c < count; c++)
      if (shown[c] && t->column[c].extra &&
          (out == count || t->column[c].extra >= t->column[out].extra))
        out = c;
    if (out == count) break;
    shown[out] = false;
    sum -= widths[out] + 2;
  }
  free(widths);
}

static void put_cell(wr_page *p, const wr_value *v, wr_column_type type)
{
  char *words = wr_value_words(v, type);
  if (!words) p->failed = true;
  size_t function = v->text ? strlen(v->text) : 0;
  if (words && type == WR_COLUMN_PLACE && v->file && strlen(words) > function) {
    char *kept = strdup(words + function);
    words[function] = '\0';
    wr_grid_cell_kept(&p->grid, words, kept ? kept : "");
    free(kept);
  } else {
    CELL(p, "%s", words ? words : "");
  }
  free(words);
}

static void print_rows(wr_page *p, const wr_named_table *t, const bool *shown)
{
  char align[WR_GRID_COLUMNS + 1] = "";
  size_t n = 0, flexible = flexible_column(t);
  for (size_t c = 0; c < t->columns; c++)
    if (shown[c] && n < WR_GRID_COLUMNS)
      align[n++] = numeric(t->column[c].type) ? 'r' : c == flexible ? 'f' : 'l';
  wr_page_begin(p, align);
  wr_grid_row(&p->grid);
  for (size_t c = 0; c < t->columns; c++)
    if (shown[c]) CELL(p, "%s", t->column[c].title);
  for (size_t r = 0; r < t->rows; r++) {
    wr_grid_row(&p->grid);
    for (size_t c = 0; c < t->columns; c++)
      if (shown[c]) put_cell(p, &t->value[r * t->columns + c], t->column[c].type);
  }
  wr_page_end(p);
}

static void print_table(wr_page *p, const wr_named_table *t, bool filtered)
{
  bool *shown = calloc(t->columns, sizeof(*shown));
  if (!shown) {
    p->failed = true;
    return;
  }
  wr_page_heading(p, t->title, filtered && t->whole_run ? "of the whole run" : t->aside);
  choose_columns(t, p->width, shown, &p->failed);
  if (t->rows)
    print_rows(p, t, shown);
  else
    wr_page_line(p, false, "none");
  free(shown);
}

weir_status wr_tables_text(FILE *out, const wr_tables *t, const report_settings *o)
{
  int width = o->width > 0 && o->width < 40 ? 40 : o->width;
  wr_page p = {.out = out, .width = width, .color = o->color != 0};
  if (!o->table) {
    (void)fprintf(out, "weir report %s  ", t->report);
    wr_page_paint(&p, "\033[2m");
    (void)wr_put_clean_text(out, t->trace, false);
    wr_page_paint(&p, "\033[0m");
    (void)fputc('\n', out);
    if (t->scope) wr_page_say(&p, false, "only %s", t->scope);
  }
  for (size_t i = 0; i < t->count; i++)
    if (!o->table || !strcmp(o->table, t->table[i]->name))
      print_table(&p, t->table[i], t->scope != NULL);
  if (t->notes && !o->table) (void)fputc('\n', out);
  for (size_t i = 0; i < t->notes && !o->table; i++)
    wr_page_line(&p, false, t->note[i]);
  return wr_page_done(&p) ? WEIR_OK : wr_tables_no_memory(t);
}
