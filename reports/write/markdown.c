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

static void put_markdown_titles(FILE *out, const wr_named_table *t)
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
    if (wr_column_in_text(&t->column[c])) (void)fputs(text ? "|:--" : "|--:", out);
  }
  (void)fputs("|\n", out);
}

static bool put_markdown_rows(FILE *out, const wr_named_table *t)
{
  bool good = true, titled = false;
  for (size_t r = 0; r < t->rows; r++) {
    if (!wr_row_in_text(t, r)) continue;
    if (!titled) put_markdown_titles(out, t);
    titled = true;
    good &= put_markdown_row(out, t, r);
  }
  if (!titled && !(t->look & (WR_QUIET | WR_UNSEEN))) (void)fputs("None.\n", out);
  return good;
}

/* A paragraph each. */
static void put_markdown_sentences(FILE *out, const wr_sentences *s, bool after)
{
  for (size_t i = 0; i < s->count; i++) {
    if (after) (void)fputc('\n', out);
    wr_put_markdown_text(out, s->list[i].text + strspn(s->list[i].text, " "));
    (void)fputs(after ? "\n" : "\n\n", out);
  }
}

static bool put_markdown_table(FILE *out, const wr_named_table *t, bool filtered)
{
  (void)fputc('\n', out);
  if (!(t->look & WR_JOINED)) {
    (void)fputs("## ", out);
    wr_put_markdown_text(out, t->title);
    (void)fputs("\n\n", out);
  }
  if (filtered && t->whole_run) (void)fputs("Of the whole run.\n\n", out);
  put_markdown_sentences(out, &t->before, false);
  bool good = put_markdown_rows(out, t);
  put_markdown_sentences(out, &t->after, true);
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
