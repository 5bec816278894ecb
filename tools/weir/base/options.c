/* options.c: see options.h. */
#include "tools/weir/base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weir/base/guess.h"

#define FLAG(in, id, name, letter, help)                                                           \
  [OPT_##id] = {in, CMD_FLAG, name, letter, NULL, help, NULL, NULL, 0, 0},
#define TEXT(in, id, name, letter, value, help)                                                    \
  [OPT_##id] = {in, CMD_TEXT, name, letter, value, help, NULL, NULL, 0, 0},
#define NUMBER(in, id, name, letter, value, least, most, help)                                     \
  [OPT_##id] = {in, CMD_NUMBER, name, letter, value, help, NULL, NULL, least, most},
#define WORD(in, id, name, letter, value, words, wrong, help)                                      \
  [OPT_##id] = {in, CMD_WORD, name, letter, value, help, words, wrong, 0, 0},
#define READ(in, id, name, letter, value, words, help)                                             \
  [OPT_##id] = {in, CMD_READ, name, letter, value, help, words, NULL, 0, 0},
#define MAYBE(in, id, name, letter, value, words, help)                                            \
  [OPT_##id] = {in, CMD_MAYBE, name, letter, value, help, words, NULL, 0, 0},
#define FORMER(in, id, name, letter, words)                                                        \
  [OPT_##id] = {in, CMD_FORMER, name, letter, NULL, NULL, words, NULL, 0, 0},
const cmd_option cmd_options[CMD_OPTIONS] = {
#include "tools/weir/base/options.def"
};

const cmd_option *cmd_next_option(const cmd *c, const cmd_option *after)
{
  for (const cmd_option *o = after ? after + 1 : cmd_options; o < cmd_options + CMD_OPTIONS; o++)
    if ((o->commands & c->in) && o->kind != CMD_FORMER) return o;
  return NULL;
}

char *cmd_join_words(const char *words)
{
  const char *last = strrchr(words, ' ');
  char *list = cmd_format("%s", "");
  for (const char *at = words; *at;) {
    size_t bytes = strcspn(at, " ");
    char *longer = cmd_format("%s%s%.*s", list,
                              at == words              ? ""
                              : last && at == last + 1 ? " or "
                                                       : ", ",
                              (int)bytes, at);
    free(list);
    list = longer;
    at += bytes + (at[bytes] == ' ');
  }
  return list;
}

/* ---- help ------------------------------------------------------------------------------------ */

enum { HELP_COLUMNS = 80, OPTION_COLUMN = 29, USAGE_INDENT = 11 };

/* Returns how many bytes come before the place where a line may break: a space that is not within
 * brackets, or the end of the text. */
static size_t unbroken(const char *text)
{
  int within = 0;
  size_t bytes = 0;
  for (; text[bytes] && text[bytes] != '\n' && (within > 0 || text[bytes] != ' '); bytes++)
    within += (text[bytes] == '[') - (text[bytes] == ']');
  return bytes;
}

void cmd_print_folded(size_t column, size_t indent, const char *text)
{
  const char *before = "";
  while (*text) {
    size_t bytes = unbroken(text);
    if (column > indent && column + strlen(before) + bytes > HELP_COLUMNS) {
      printf("\n%*s", (int)indent, "");
      column = indent;
      before = "";
    }
    printf("%s%.*s", before, (int)bytes, text);
    column += strlen(before) + bytes;
    text += bytes;
    before = " ";
    if (*text == '\n' && (text[1] == '\n' || text[1] == ' ')) {
      size_t ends = strspn(text, "\n");
      printf("%.*s", (int)ends, text);
      text += ends;
      column = 0;
      before = "";
    } else if (*text)
      text++;
  }
  putchar('\n');
}

static void print_option(const cmd_option *o)
{
  char left[64], letter[6] = "";
  if (o->letter) (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
  (void)snprintf(left, sizeof left, "%s--%s%s%s%s", letter, o->name,
                 o->kind == CMD_FLAG    ? ""
                 : o->kind == CMD_MAYBE ? "[="
                                        : " ",
                 o->value ? o->value : "", o->kind == CMD_MAYBE ? "]" : "");
  int columns = printf("  %-26s ", left);
  cmd_print_folded((size_t)columns, OPTION_COLUMN, o->help);
}

void cmd_print_help(const cmd *c)
{
  cmd_print_folded((size_t)printf("usage: weir %s ", c->name), USAGE_INDENT, c->synopsis);
  printf("\n%s.\n", c->summary);
  if (c->details) {
    putchar('\n');
    cmd_print_folded(0, 0, c->details);
  }
  printf("\noptions:\n");
  for (const cmd_option *o = cmd_next_option(c, NULL); o; o = cmd_next_option(c, o))
    print_option(o);
  printf("  %-26s %s\n", "-h, --help", "print this help");
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool read_option_number(const cmd *c, const cmd_option *o, const char *value, long *out)
{
  if (cmd_number(value, o->least, o->most, out)) return true;
  if (o->most == INT32_MAX)
    cmd_usage(c, "--%s takes a number from %ld on, not '%s'", o->name, o->least, value);
  else
    cmd_usage(c, "--%s takes a number from %ld to %ld, not '%s'", o->name, o->least, o->most,
              value);
  return false;
}

/* Returns which of the words the value is, from 0. -1: none of them. */
static long find_word(const char *words, const char *value)
{
  size_t bytes = strlen(value);
  long n = 0;
  for (const char *at = words;; n++) {
    size_t word = strcspn(at, " ");
    if (word == bytes && !memcmp(at, value, bytes)) return n;
    if (!at[word]) return -1;
    at += word + 1;
  }
}

static bool read_option_word(const cmd *c, const cmd_option *o, const char *value, long *out)
{
  *out = find_word(o->words, value);
  if (*out >= 0) return true;
  char *list = cmd_join_words(o->words);
  const char *wrong = o->wrong ? o->wrong : "", *mark = strstr(wrong, "%s");
  bool listed = *wrong && wrong[strlen(wrong) - 1] == ' ';
  if (mark)
    cmd_usage(c, "%.*s%s%s%s", (int)(mark - wrong), wrong, value, mark + 2, listed ? list : "");
  else
    cmd_usage(c, "--%s takes %s, not '%s'", o->name, list, value);
  free(list);
  return false;
}

/* ---- parsing --------------------------------------------------------------------------------- */

typedef struct parse {
  const cmd *c;
  int argc, at;
  char **argv;
  cmd_line *line;
  bool helped;
  char *warning; /* about the first former spelling; owned */
} parse;

static bool keep_value(parse *p, const cmd_option *o, const char *value)
{
  cmd_option_id id = (cmd_option_id)(o - cmd_options);
  p->line->value[id].given = true;
  p->line->value[id].text = value;
  if (o->kind == CMD_NUMBER) return read_option_number(p->c, o, value, &p->line->value[id].number);
  if (o->kind == CMD_WORD) return read_option_word(p->c, o, value, &p->line->value[id].number);
  if (o->kind == CMD_READ || o->kind == CMD_MAYBE)
    return p->line->read(p->c, id, value, p->line->context);
  return true;
}

/* Returns the row of a name of `bytes` bytes, former spellings included. NULL: there is none. */
static const cmd_option *find_option(const cmd *c, const char *name, size_t bytes)
{
  for (const cmd_option *o = cmd_options; o < cmd_options + CMD_OPTIONS; o++)
    if ((o->commands & c->in) && o->name && strlen(o->name) == bytes &&
        !memcmp(o->name, name, bytes))
      return o;
  return NULL;
}

/* Returns the row that a former spelling stands for. *value is set where that includes a value. */
static const cmd_option *follow_former(parse *p, const cmd_option *o, const char *shown,
                                       const char **value)
{
  const char *name = o->words + 2;
  size_t bytes = strcspn(name, " ");
  if (!p->warning)
    p->warning = cmd_format("%s is a former spelling of weir %s's %s", shown, p->c->name, o->words);
  if (name[bytes]) *value = name + bytes + 1;
  return find_option(p->c, name, bytes);
}

/* Takes one option. `given`: value written with it, NULL none; `shown`: as the user wrote it. */
static bool take_option(parse *p, const cmd_option *o, const char *given, const char *shown)
{
  bool former = o->kind == CMD_FORMER;
  const char *fixed = NULL;
  if (former) o = follow_former(p, o, shown, &fixed);
  if ((o->kind == CMD_FLAG || fixed) && given) {
    cmd_usage(p->c, "option '%s' takes no value", shown);
    return false;
  }
  if (fixed) given = fixed;
  if (o->kind != CMD_FLAG && o->kind != CMD_MAYBE && !given) {
    if (p->at + 1 >= p->argc) {
      cmd_usage(p->c, "option '%s' needs a value: %s", shown, o->value);
      return false;
    }
    given = p->argv[++p->at];
  }
  return keep_value(p, o, given);
}

/* `name`: the word without its dashes and without "=value". */
static bool refuse_unknown_option(const cmd *c, const char *word, const char *name)
{
  guess g = {.word = name};
  for (const cmd_option *o = cmd_next_option(c, NULL); o; o = cmd_next_option(c, o))
    guess_offer(&g, o->name);
  guess_offer(&g, "help");
  char *hint = guess_hint(&g, "--");
  cmd_usage(c, "weir %s has no option '%s'%s", c->name, word, hint);
  free(hint);
  return false;
}

static bool take_long(parse *p, const char *word)
{
  size_t bytes = strcspn(word + 2, "=");
  const char *value = word[2 + bytes] ? word + 3 + bytes : NULL;
  char *shown = cmd_format("%.*s", (int)bytes + 2, word);
  const cmd_option *o = find_option(p->c, word + 2, bytes);
  bool good = true;
  if (!strcmp(shown, "--help"))
    p->helped = true;
  else
    good = o ? take_option(p, o, value, shown) : refuse_unknown_option(p->c, word, shown + 2);
  free(shown);
  return good;
}

static bool take_short(parse *p, const char *word)
{
  char shown[] = {'-', word[1], 0};
  if (!strcmp(word, "-h")) return p->helped = true;
  for (const cmd_option *o = cmd_options; o < cmd_options + CMD_OPTIONS; o++)
    if ((o->commands & p->c->in) && o->letter == word[1])
      return take_option(p, o, word[2] ? word + 2 : NULL, shown);
  cmd_usage(p->c, "weir %s has no option '%s'", p->c->name, word);
  return false;
}

/* Takes options up to "--", or where the line stops. Returns how many operands were among them. */
static int take_words(parse *p, char **operands, bool *good)
{
  int count = 0;
  for (*good = true; p->at < p->argc && *good && !p->helped; p->at++) {
    char *word = p->argv[p->at];
    if (!strcmp(word, "--")) {
      p->at++;
      break;
    }
    if (word[0] == '-' && word[1] == '-')
      *good = take_long(p, word);
    else if (word[0] == '-' && word[1])
      *good = take_short(p, word);
    else if (p->line->stops)
      break;
    else
      operands[count++] = word;
  }
  return count;
}

int cmd_parse(const cmd *c, int argc, char **argv, cmd_line *line)
{
  parse p = {c, argc, 1, argv, line, false, NULL};
  char **operands = cmd_alloc(((size_t)argc + 1) * sizeof *operands);
  bool good;
  int count = take_words(&p, operands, &good);
  if (p.helped)
    cmd_print_help(c);
  else if (good && p.warning)
    cmd_message("%s.", p.warning);
  while (p.at < argc)
    operands[count++] = argv[p.at++];
  for (int i = 0; i < count; i++)
    argv[argc - count + i] = operands[i];
  free(p.warning);
  free(operands);
  return !good ? -1 : p.helped ? 0 : argc - count;
}

int cmd_number_of(const cmd_line *line, cmd_option_id option, int otherwise)
{
  return line->value[option].given ? (int)line->value[option].number : otherwise;
}
