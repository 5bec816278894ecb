/* markdown.c: tables as Markdown: a heading and a table each. What Markdown or HTML would take
 * for its own is escaped. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/write/write.h"

static bool put_markdown_row(FILE *out, const wr_named_table *t, size_t row)
{
  bool good = true;
  for (size_t c = 0; c < t->columns; c++) {
    if (!wr_column_in_text(&t->column[c])) continue;
    char *words = wr_value_words(&t->value[row * t->columns + c], &t->column[c], false, NULL);
    (void)fputs("| ", out);
    if (words) wr_put_markdown_text(out, words);
    (void)fputc(' ', out);
    good &= words != NULL;
    free(words);
  }
  (void)fputs("|\n", out);
  return good;
}

static void put_markdown_titles(FILE *out, const wr_named_table *t, bool part)
{
  for (size_t c = 0; c < t->columns; c++) {
    if (!wr_column_in_text(&t->column[c])) continue;
    (void)fputs("| ", out);
    wr_put_markdown_text(out, t->column[c].title);
    (void)fputc(' ', out);
  }
  (void)fputs("|\n", out);
  for (size_t c = 0; c < t->columns; c++) {
    bool text = t->column[c].type == WR_COLUMN_TEXT || t->column[c].type == WR_COLUMN_PLACE;
    if (wr_column_in_text(&t->column[c])) (void)fputs(!text ? "|--:" : part ? "|---" : "|:--", out);
  }
  (void)fputs("|\n", out);
}

static bool put_markdown_rows(FILE *out, const wr_named_table *t, bool part)
{
  bool good = true, titled = false;
  for (size_t r = 0; r < t->rows; r++) {
    if (!wr_row_in_text(t, r)) continue;
    if (!titled) {
      (void)fputc('\n', out);
      put_markdown_titles(out, t, part);
    }
    titled = true;
    good &= put_markdown_row(out, t, r);
  }
  if (!titled && !(t->look & (WR_QUIET | WR_UNSEEN))) (void)fputs("\nNone.\n", out);
  return good;
}

static void put_paragraph(FILE *out, const char *text)
{
  (void)fputc('\n', out);
  wr_put_markdown_text(out, text + strspn(text, " "));
  (void)fputc('\n', out);
}

static void put_paragraphs(FILE *out, const wr_sentences *s)
{
  for (size_t i = 0; i < s->count; i++)
    put_paragraph(out, s->list[i].text);
}

/* `part`: of a page of other things, where headings are a level lower and have their asides
 * below. */
static bool put_markdown_table(FILE *out, const wr_named_table *t, bool filtered, bool part)
{
  if (!(t->look & WR_JOINED)) {
    (void)fputs(part ? "\n### " : "\n## ", out);
    wr_put_markdown_text(out, t->title);
    (void)fputc('\n', out);
    if (part && t->aside) put_paragraph(out, t->aside);
  }
  if (filtered && t->whole_run) put_paragraph(out, "Of the whole run.");
  put_paragraphs(out, &t->before);
  bool good = put_markdown_rows(out, t, part);
  put_paragraphs(out, &t->after);
  return good;
}

weir_status wr_markdown_parts(FILE *out, const wr_tables *t)
{
  bool good = true;
  (void)fprintf(out, "## %s\n", t->report);
  for (size_t i = 0; i < t->count; i++)
    good &= put_markdown_table(out, t->table[i], false, true);
  return good ? WEIR_OK : wr_tables_no_memory(t);
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
    if (wr_table_is_written(t->table[i], only))
      good &= put_markdown_table(out, t->table[i], t->scope != NULL, false);
  for (size_t i = 0; i < t->notes && !only; i++)
    put_paragraph(out, t->note[i]);
  return good ? WEIR_OK : wr_tables_no_memory(t);
}
