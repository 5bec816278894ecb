/* explain.c: weir explain: the pages about rules (reports/findings/explain.h), for people.
 *
 * A page is laid out for the terminal, or for 80 columns: headings bold, paragraphs filled, code as
 * it is. As Markdown it is printed below a heading of its own, so that all of them are one
 * document. */
#include "reports/findings/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/findings/rule.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/guess.h"
#include "tools/weir/report/pager.h"
#include "tools/weir/report/terminal.h"

enum {
  FORMAT_TEXT,
  FORMAT_MARKDOWN,
  PIPE_COLUMNS = 80,  /* where there is no terminal */
  MOST_COLUMNS = 100, /* of a terminal: longer lines are hard to read */
  INDENT = 2          /* of paragraphs; of code twice as many */
};

typedef struct sheet {
  FILE *to;
  size_t width; /* 0: no limit */
  bool bold;
} sheet;

/* ---- text ------------------------------------------------------------------------------------ */

/* Prints a word without its marks, `code` as 'code', where `to` is not NULL. Returns its columns.
 */
static size_t put_word(FILE *to, const char *word, size_t bytes)
{
  size_t columns = 0;
  for (size_t i = 0; i < bytes; i++) {
    if (word[i] == '*' && *word == '*') continue;
    if (to) (void)putc(word[i] == '`' ? '\'' : word[i], to);
    columns += ((unsigned char)word[i] & 0xC0) != 0x80;
  }
  return columns;
}

/* Prints the words of a text as one paragraph, from `column` on; next lines begin at `indent`. */
static void put_paragraph(const sheet *s, size_t column, size_t indent, const char *text,
                          size_t bytes)
{
  const char *end = text + bytes;
  bool first = true;
  while ((text += strspn(text, " \n")) < end) {
    size_t word = strcspn(text, " \n"), columns = put_word(NULL, text, word);
    if (!first && s->width && column + 1 + columns > s->width) {
      (void)fprintf(s->to, "\n%*s", (int)indent, "");
      column = indent;
    } else if (!first) {
      (void)putc(' ', s->to);
      column++;
    }
    column += put_word(s->to, text, word);
    text += word;
    first = false;
  }
  (void)putc('\n', s->to);
}

/* Returns how many bytes of text the paragraph has that begins there. */
static size_t paragraph_bytes(const char *text)
{
  const char *at = text;
  while (*at && *at != '\n' && strncmp(at, "```", 3) != 0 && strncmp(at, "## ", 3) != 0) {
    at += strcspn(at, "\n");
    at += *at == '\n';
  }
  return (size_t)(at - text);
}

/* Prints code, from the line after the fence on. Returns what follows the closing one. */
static const char *put_code(const sheet *s, const char *at)
{
  (void)putc('\n', s->to);
  while (*at && strncmp(at, "```", 3) != 0) {
    size_t line = strcspn(at, "\n");
    (void)fprintf(s->to, "%*s%.*s\n", 2 * INDENT, "", (int)line, at);
    at += line + (at[line] == '\n');
  }
  at += strcspn(at, "\n");
  at += *at == '\n';
  if (*at && *at != '\n') (void)putc('\n', s->to);
  return at;
}

static void put_heading(const sheet *s, const char *text, size_t bytes)
{
  (void)fprintf(s->to, "%s%.*s%s\n", s->bold ? "\033[1m" : "", (int)bytes, text,
                s->bold ? "\033[0m" : "");
}

static void put_text(const sheet *s, const wr_rule *rule, const char *page)
{
  char *title = cmd_format("%s (%d): %s", rule->id, rule->number, rule->title);
  if (s->bold) (void)fputs("\033[1m", s->to);
  put_paragraph(s, 0, INDENT, title, strlen(title));
  if (s->bold) (void)fputs("\033[0m", s->to);
  (void)putc('\n', s->to);
  free(title);
  for (const char *at = page; *at;) {
    size_t line = strcspn(at, "\n");
    const char *next = at + line + (at[line] == '\n');
    if (!strncmp(at, "```", 3)) {
      next = put_code(s, next);
    } else if (!strncmp(at, "## ", 3)) {
      put_heading(s, at + 3, line - 3);
    } else if (!line) {
      (void)putc('\n', s->to);
    } else {
      size_t bytes = paragraph_bytes(at);
      (void)fprintf(s->to, "%*s", INDENT, "");
      put_paragraph(s, INDENT, INDENT, at, bytes);
      next = at + bytes;
    }
    at = next;
  }
}

static void put_list(const sheet *s, const wr_rules *rules)
{
  size_t longest = 0;
  for (size_t i = 0; i < rules->count; i++)
    if (strlen(rules->rule[i].id) > longest) longest = strlen(rules->rule[i].id);
  for (size_t i = 0; i < rules->count; i++) {
    const wr_rule *r = &rules->rule[i];
    size_t indent = 4 + longest + 2;
    (void)fprintf(s->to, "%2d  %s%-*s%s  ", r->number, s->bold ? "\033[1m" : "", (int)longest,
                  r->id, s->bold ? "\033[0m" : "");
    put_paragraph(s, indent, indent, r->title, strlen(r->title));
  }
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* Prints a page with its headings one level down, below one of its own. */
static void put_markdown(const sheet *s, const wr_rule *rule, const char *page)
{
  (void)fprintf(s->to, "## %s\n\n**%s.** Rule %d, severity %s.\n\n", rule->id, rule->title,
                rule->number, wr_severity_name(rule->severity));
  for (const char *at = page; *at;) {
    size_t line = strcspn(at, "\n");
    (void)fprintf(s->to, "%s%.*s\n", strncmp(at, "## ", 3) ? "" : "#", (int)line, at);
    at += line + (at[line] == '\n');
  }
}

static void put_document(const sheet *s, const wr_rules *rules)
{
  (void)fputs("# What findings mean\n\n"
              "A page for each rule of `weir report findings`, in the order of their numbers, as "
              "`weir explain RULE` prints it.\n\n"
              "The cost of a finding is the time that its operations take of a thread; the saving "
              "is what the run gains without them, at most. Operations that several rules find "
              "count once. Of a place the slowest hundredth counts as the median, where these take "
              "eight times the median or longer.\n",
              s->to);
  for (size_t i = 0; i < rules->count; i++) {
    (void)putc('\n', s->to);
    put_markdown(s, &rules->rule[i], wr_explanation(rules->rule[i].id));
  }
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Prints the pages of the rules of that id or number. Returns how many there are. */
static unsigned put_rules(const sheet *s, const wr_rules *rules, const char *name, int format)
{
  long number = 0;
  unsigned count = 0;
  bool is_number = cmd_number(name, 1, 999999, &number);
  for (size_t i = 0; i < rules->count; i++) {
    const wr_rule *r = &rules->rule[i];
    const char *page = wr_explanation(r->id);
    if (!page || !(is_number ? r->number == number : !strcmp(r->id, name))) continue;
    if (ftell(s->to) > 0) (void)putc('\n', s->to);
    (format == FORMAT_MARKDOWN ? put_markdown : put_text)(s, r, page);
    count++;
  }
  return count;
}

static int refuse_rule(const cmd *c, const wr_rules *rules, const char *name)
{
  guess g = {.word = name};
  for (size_t i = 0; i < rules->count; i++)
    guess_offer(&g, rules->rule[i].id);
  return guess_refuse(c, &g, "rule", "; 'weir explain' lists them");
}

/* Prints what the command line asks for. Returns an exit status. */
static int put_asked(const cmd *c, const sheet *s, const wr_rules *rules, int count, char **names,
                     int format)
{
  if (!count && format == FORMAT_MARKDOWN) put_document(s, rules);
  if (!count && format == FORMAT_TEXT) put_list(s, rules);
  for (int i = 0; i < count; i++)
    if (!put_rules(s, rules, names[i], format)) return refuse_rule(c, rules, names[i]);
  return 0;
}

static sheet lay_out(FILE *to, const cmd_line *line)
{
  int asked = cmd_number_of(line, OPT_WIDTH, TERMINAL_NOT_ASKED), width = terminal_width(asked);
  if (asked == TERMINAL_NOT_ASKED) {
    if (!width) width = PIPE_COLUMNS;
    if (width > MOST_COLUMNS) width = MOST_COLUMNS;
  }
  return (sheet){.to = to, .width = (size_t)width, .bold = terminal_has_color()};
}

int explain_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  wr_rules rules;
  if (wr_rules_load(&rules, NULL)) return cmd_failed();
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  int exit_status = CMD_FAILED;
  if (to) {
    sheet s = lay_out(to, &line);
    exit_status = put_asked(c, &s, &rules, argc - at, argv + at,
                            cmd_number_of(&line, OPT_EXPLAIN_FORMAT, FORMAT_TEXT));
  }
  if (!to || fclose(to) != 0) {
    cmd_message("out of memory.");
    exit_status = CMD_FAILED;
  }
  if (!exit_status) pager_show(text, bytes);
  free(text);
  wr_rules_free(&rules);
  return exit_status;
}
