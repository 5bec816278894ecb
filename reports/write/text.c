/* text.c: tables as aligned text. Where a line would be too long columns are left out, those
 * that matter least first; then the places give way. Without a width all are there. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"
#include "reports/write/write.h"

enum { LEAST_PLACE = 24 /* columns of text */ };

static bool numeric(wr_column_type type)
{
  return type != WR_COLUMN_TEXT && type != WR_COLUMN_PLACE;
}

/* Whether a column's cells stand in rows of their own. */
static bool is_below(const wr_column *c, int width)
{
  return c->how & WR_BELOW && width > 0 && width < WR_WIDE;
}

/* The column that gives way: the one that is said to, or else a stack, the place, the last text. */
static size_t flexible_column(const wr_named_table *t, int width)
{
  size_t out = t->columns;
  for (size_t c = 0; c < t->columns; c++) {
    const wr_column *x = &t->column[c];
    if (x->how & WR_FLEXIBLE || !strcmp(x->name, "stack")) return c;
    if (numeric(x->type) || x->how & WR_RIGID || !wr_column_in_text(x) || is_below(x, width))
      continue;
    if (out == t->columns || t->column[out].type != WR_COLUMN_PLACE) out = c;
  }
  return out;
}

/* Columns of text that one column takes. */
static size_t column_width(const wr_named_table *t, size_t c, int text_width, bool *failed)
{
  size_t width = wr_text_width(t->column[c].title);
  for (size_t r = 0; r < t->rows; r++) {
    if (!wr_row_in_text(t, r)) continue;
    const wr_value *v = &t->value[r * t->columns + c];
    char *words = wr_value_words(v, &t->column[c], text_width <= 0, NULL);
    size_t n = words ? wr_text_width(words) : 0;
    if (!words) *failed = true;
    if (n > width) width = n;
    free(words);
  }
  return c == flexible_column(t, text_width) && width > LEAST_PLACE ? LEAST_PLACE : width;
}

/* Whether there is anything in it. */
static bool column_known(const wr_named_table *t, size_t c)
{
  for (size_t r = 0; r < t->rows; r++)
    if (t->value[r * t->columns + c].known) return true;
  return false;
}

static int extra_of(const wr_named_table *t, size_t c)
{
  return t->column[c].how & WR_EXTRA;
}

static bool is_shown(const wr_named_table *t, size_t c, int width)
{
  if (!wr_column_in_text(&t->column[c]) || is_below(&t->column[c], width)) return false;
  return !extra_of(t, c) || column_known(t, c);
}

/* Which columns have something, and room. */
static void choose_columns(const wr_named_table *t, int width, bool *shown, bool *failed)
{
  size_t sum = 0, count = t->columns, left = 0;
  size_t *widths = calloc(count, sizeof(*widths));
  if (!widths) *failed = true;
  for (size_t c = 0; c < count && widths; c++)
    if ((shown[c] = is_shown(t, c, width)))
      widths[c] = column_width(t, c, width, failed), sum += widths[c] + 2, left++;
  for (; widths && left > 1 && ((width > 0 && sum > (size_t)width) || left > WR_GRID_COLUMNS);
       left--) {
    size_t out = count;
    for (size_t c = 0; c < count; c++)
      if (shown[c] && extra_of(t, c) && (out == count || extra_of(t, c) >= extra_of(t, out)))
        out = c;
    if (out == count) break;
    shown[out] = false;
    sum -= widths[out] + 2;
  }
  free(widths);
}

/* What of a cell is never cut stands at its end. */
static void put_cell(wr_layout *p, const wr_value *v, const wr_column *c)
{
  size_t keep;
  char *words = wr_value_words(v, c, p->width <= 0, &keep);
  char *kept = words ? strdup(words + strlen(words) - keep) : NULL;
  if (words && kept) {
    words[strlen(words) - keep] = '\0';
    wr_grid_cell_kept(&p->grid, words, kept);
  } else {
    p->failed = true;
  }
  free(words);
  free(kept);
}

/* The cells that have rows of their own, cut as the first column is. */
static void put_below(wr_layout *p, const wr_named_table *t, const wr_value *row)
{
  for (size_t c = 0; c < t->columns; c++) {
    if (!row[c].known || !is_below(&t->column[c], p->width)) continue;
    wr_column as = t->column[c];
    as.how &= ~WR_WITH_FOLDER;
    char *words = wr_value_words(&row[c], &as, false, NULL);
    if (!words) p->failed = true;
    wr_grid_row(&p->grid);
    CELL(p, "  %s", words ? words : "");
    free(words);
  }
}

static void print_rows(wr_layout *p, const wr_named_table *t, const bool *shown)
{
  char align[WR_GRID_COLUMNS + 1] = "";
  size_t n = 0, flexible = flexible_column(t, p->width);
  for (size_t c = 0; c < t->columns; c++)
    if (shown[c] && n < WR_GRID_COLUMNS)
      align[n++] = c == flexible ? 'f' : numeric(t->column[c].type) ? 'r' : 'l';
  wr_layout_begin(p, align);
  wr_grid_row(&p->grid);
  for (size_t c = 0; c < t->columns; c++)
    if (shown[c]) CELL(p, "%s", t->column[c].title);
  for (size_t r = 0; r < t->rows; r++) {
    const wr_value *row = &t->value[r * t->columns];
    if (!wr_row_in_text(t, r)) continue;
    wr_grid_row(&p->grid);
    for (size_t c = 0; c < t->columns; c++)
      if (shown[c]) put_cell(p, &row[c], &t->column[c]);
    put_below(p, t, row);
  }
  wr_layout_end(p);
}

static bool any_in_text(const wr_named_table *t)
{
  for (size_t r = 0; r < t->rows; r++)
    if (wr_row_in_text(t, r)) return true;
  return false;
}

static void print_grid(wr_layout *p, const wr_named_table *t)
{
  bool *shown = calloc(t->columns + 1, sizeof(*shown));
  if (!shown) {
    p->failed = true;
    return;
  }
  choose_columns(t, p->width, shown, &p->failed);
  if (any_in_text(t))
    print_rows(p, t, shown);
  else if (!(t->look & (WR_QUIET | WR_UNSEEN)))
    wr_layout_line(p, false, "none");
  free(shown);
}

/* The first column in one paragraph. */
static void print_list(wr_layout *p, const wr_named_table *t)
{
  char **list = calloc(t->rows + 1, sizeof(*list)), *title = wr_format("%s:", t->title);
  size_t n = 0;
  for (size_t r = 0; r < t->rows && list; r++)
    if (wr_row_in_text(t, r) && t->value[r * t->columns].text)
      list[n++] = t->value[r * t->columns].text;
  if (!list || !title)
    p->failed = true;
  else if (n)
    wr_layout_list(p, title, list, n);
  free(list);
  free(title);
}

/* A line of a program, its number first. */
static void print_source(wr_layout *p, const char *text)
{
  const char *code = strstr(text, "| ");
  int number = code ? (int)(code + 2 - text) : 0;
  (void)fprintf(p->out, "%.*s", number, text);
  wr_put_fit(p->out, text + number, p->width > 0 ? (size_t)(p->width - number) : SIZE_MAX);
}

static void print_sentences(wr_layout *p, const wr_sentences *s)
{
  static const char *const colors[] = {[WR_STRONG] = "\033[1m", [WR_SOURCE] = "\033[2m"};
  for (size_t i = 0; i < s->count; i++) {
    int style = s->list[i].style;
    if (style > WR_WARNING) wr_layout_paint(p, colors[style]);
    if (style == WR_SOURCE)
      print_source(p, s->list[i].text);
    else
      wr_layout_line(p, style == WR_WARNING, s->list[i].text);
    if (style > WR_WARNING) wr_layout_paint(p, "\033[0m");
    if (style == WR_SOURCE) (void)fputc('\n', p->out);
  }
}

static void print_table(wr_layout *p, const wr_named_table *t, bool filtered)
{
  if (!(t->look & (WR_JOINED | WR_LIST)))
    wr_layout_heading(p, t->title, filtered && t->whole_run ? "of the whole run" : t->aside);
  print_sentences(p, &t->before);
  if (t->look & WR_LIST)
    print_list(p, t);
  else
    print_grid(p, t);
  print_sentences(p, &t->after);
}

void wr_text_head(wr_layout *p, const wr_tables *t)
{
  if (t->head) {
    wr_layout_paint(p, "\033[1m");
    wr_put_fit(p->out, t->head, p->width > 0 ? (size_t)p->width : SIZE_MAX);
    wr_layout_paint(p, "\033[0m");
  } else {
    (void)fprintf(p->out, "weir report %s  ", t->report);
    wr_layout_paint(p, "\033[2m");
    (void)wr_put_clean_text(p->out, t->trace, false);
    wr_layout_paint(p, "\033[0m");
  }
  (void)fputc('\n', p->out);
  if (t->scope) wr_layout_say(p, false, "only %s", t->scope);
}

void wr_text_tables(wr_layout *p, const wr_tables *t, size_t first, size_t count)
{
  for (size_t i = first; i < t->count && i - first < count; i++)
    print_table(p, t->table[i], t->scope != NULL);
}

weir_status wr_tables_text(FILE *out, const wr_tables *t, const report_settings *o)
{
  int width = o->width > 0 && o->width < 40 ? 40 : o->width;
  wr_layout p = {.out = out, .width = width, .color = o->color != 0};
  if (!o->table) wr_text_head(&p, t);
  for (size_t i = 0; i < t->count; i++)
    if (wr_table_is_written(t->table[i], o->table)) wr_text_tables(&p, t, i, 1);
  if (t->notes && !o->table) (void)fputc('\n', out);
  for (size_t i = 0; i < t->notes && !o->table; i++)
    wr_layout_line(&p, false, t->note[i]);
  return wr_layout_done(&p) ? WEIR_OK : wr_tables_no_memory(t);
}
