/* write_markdown.c: tables as Markdown: a heading and a table each. What Markdown or HTML would take
 * for its own is escaped. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/tables/table.h"

static bool put_markdown_row(FILE *out, const wr_named_table *t, size_t row)
{
  bool good = true;
  for (size_t c = 0; c < t->columns; c++) {
    char *words = wr_value_words(&t->value[row * t->columns + c], t->column[c].type);
    (void)fputs(c ? " | " : "| ", out);
    if (words) wr_put_markdown_text(out, words);
    good &= words != NULL;
    free(words);
  }
  (void)fputs(" |\n", out);
  return good;
}

static bool put_markdown_table(FILE *out, const wr_named_table *t, bool filtered)
{
  bool good = true;
  (void)fputs("\n## ", out);
  wr_put_markdown_text(out, t->title);
  (void)fputs("\n\n", out);
  if (filtered && t->whole_run) (void)fputs("Of the whole run.\n\n", out);
  if (!t->rows) {
    (void)fputs("None.\n", out);
    return true;
  }
  for (size_t c = 0; c < t->columns; c++) {
    (void)fputs(c ? " | " : "| ", out);
    wr_put_markdown_text(out, t->column[c].title);
  }
  (void)fputs(" |\n", out);
  for (size_t c = 0; c < t->columns; c++) {
    bool text = t->column[c].type == WR_COLUMN_TEXT || t->column[c].type == WR_COLUMN_PLACE;
    (void)fputs(text ? "|:--" : "|--:", out);
  }
  (void)fputs("|\n", out);
  for (size_t r = 0; r < t->rows; r++)
    good &= put_markdown_row(out, t, r);
  return good;
}

weir_status wr_tables_markdown(FILE *out, const wr_tables *t, const char *only)
{
  bool good = true;
  if (!only) {
    (void)fprintf(out, "# weir report %s: ", t->report);
    wr_put_markdown_text(out, t->trace);
    (void)fputc('\n', out);
    if (t->scope) {
      (void)fputs("\nOnly ", out);
      wr_put_markdown_text(out, t->scope);
      (void)fputs(".\n", out);
    }
  }
  for (size_t i = 0; i < t->count; i++)
    if (!only || !strcmp(only, t->table[i]->name))
      good &= put_markdown_table(out, t->table[i], t->scope != NULL);
  for (size_t i = 0; i < t->notes && !only; i++) {
    (void)fputc('\n', out);
    wr_put_markdown_text(out, t->note[i]);
    (void)fputc('\n', out);
  }
  return good ? WEIR_OK : wr_tables_no_memory(t);
}
