/* layout.c: see layout.h. */
#include "reports/write/layout.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"

void wr_layout_paint(wr_layout *p, const char *code)
{
  if (p->color) (void)fputs(code, p->out);
}

/* Each byte is a character of its own that can be seen. */
static bool is_plain(const char *text, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    if (text[i] <= ' ' || text[i] > '~') return false;
  return true;
}

/* Words, as many as a line holds. A word that is too long for any line stays whole. */
static void put_words(wr_layout *p, const char *text, size_t indent)
{
  size_t width = p->width > 0 ? (size_t)p->width : SIZE_MAX, column = 0, first = strspn(text, " ");
  for (size_t i = 0; i < indent + first; i++)
    (void)fputc(' ', p->out);
  column = indent + first;
  for (text += first; *text;) {
    size_t bytes = strcspn(text, " ");
    bool plain = is_plain(text, bytes);
    char *word = plain ? NULL : wr_show_unseen(wr_format("%.*s", (int)bytes, text));
    if (!plain && !word) p->failed = true;
    size_t n = plain ? bytes : word ? wr_text_width(word) : 0;
    bool begins = column <= indent + first;
    if (!begins && column + 1 + n > width) {
      (void)fprintf(p->out, "\n%*s", (int)indent + 2, "");
      column = indent + 2, first = 2, begins = true;
    }
    if (!begins) (void)fputc(' ', p->out);
    (void)fwrite(plain  ? text
                 : word ? word
                        : "",
                 1,
                 plain  ? bytes
                 : word ? strlen(word)
                        : 0,
                 p->out);
    column += n + !begins;
    free(word);
    text += bytes + (text[bytes] == ' ');
  }
}

void wr_layout_heading(wr_layout *p, const char *title, const char *aside)
{
  (void)fputc('\n', p->out);
  wr_layout_paint(p, "\033[1m");
  (void)fputs(title, p->out);
  wr_layout_paint(p, "\033[0m");
  if (aside && *aside) {
    size_t need = wr_text_width(title) + 2 + wr_text_width(aside);
    bool below = p->width > 0 && need > (size_t)p->width;
    wr_layout_paint(p, "\033[2m");
    if (below) (void)fputc('\n', p->out);
    put_words(p, aside, 2);
    wr_layout_paint(p, "\033[0m");
  }
  (void)fputc('\n', p->out);
}

void wr_layout_line(wr_layout *p, bool warn, const char *text)
{
  if (warn) wr_layout_paint(p, "\033[33m");
  put_words(p, text, 2);
  if (warn) wr_layout_paint(p, "\033[0m");
  (void)fputc('\n', p->out);
}

void wr_layout_say(wr_layout *p, bool warn, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = wr_vformat(format, args);
  va_end(args);
  if (text)
    wr_layout_line(p, warn, text);
  else
    p->failed = true;
  free(text);
}

void wr_layout_list(wr_layout *p, const char *what, char *const *list, size_t count)
{
  char *text = NULL;
  size_t bytes = 0, used = wr_text_width(what), shown = 0;
  size_t room = p->width > 30 ? 2 * (size_t)p->width - 30 : SIZE_MAX;
  FILE *to = open_memstream(&text, &bytes);
  if (!to) {
    p->failed = true;
    return;
  }
  (void)fputs(what, to);
  for (; shown < count; shown++) {
    used += wr_text_width(list[shown]) + 2;
    if (shown && used > room) break;
    (void)fprintf(to, "%s %s", shown ? "," : "", list[shown]);
  }
  if (shown < count) (void)fprintf(to, " … and %s more", wr_count(count - shown).text);
  if (fclose(to))
    p->failed = true;
  else
    wr_layout_line(p, false, text);
  free(text);
}

void wr_layout_begin(wr_layout *p, const char *align)
{
  wr_grid_clear(&p->grid);
  p->grid.align = align;
}

void wr_layout_end(wr_layout *p)
{
  wr_grid_print(p->out, &p->grid, p->width, true, p->color);
}

bool wr_layout_done(wr_layout *p)
{
  wr_grid_clear(&p->grid);
  return !p->failed && !p->grid.failed;
}
