/* options.h: the options of all commands: one table (options.def), and what is made of it:
 * parsing and help. Completion (completion.c) and the lists in weir(1)
 * (tools/scripts/options.py) are made of it too. */
#ifndef WEIR_TOOLS_WEIR_BASE_OPTIONS_H
#define WEIR_TOOLS_WEIR_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/weir/base/cmd.h"

/* Commands that have options, as sets of them. */
enum {
  IN_RUN = 1 << 0,
  IN_REPORT = 1 << 1,
  IN_TRACE = 1 << 2,
  IN_STATS = 1 << 3,
  IN_RESOLVE = 1 << 4,
  IN_DIFF = 1 << 5,
  IN_CHECK = 1 << 6,
  IN_COMPARE = 1 << 7,
  IN_PROVE = 1 << 8,
  IN_IMPORT = 1 << 9,
  IN_REPLAY = 1 << 10,
  IN_EXPORT = 1 << 11,
  IN_COLLECT = 1 << 12,
  IN_EXPLAIN = 1 << 13,
  IN_RECOVER = 1 << 14,
  IN_PS = 1 << 15,
  IN_TOP = 1 << 16
};

typedef enum cmd_kind {
  CMD_FLAG,   /* no value */
  CMD_TEXT,   /* any text */
  CMD_NUMBER, /* decimal, from `least` to `most` */
  CMD_WORD,   /* one of `words` */
  CMD_READ,   /* whatever the command's cmd_read takes */
  CMD_MAYBE,  /* the same; the value may be left out, and is written --name=VALUE only */
  CMD_FORMER  /* an earlier spelling of what `words` is: an option, and perhaps its value */
} cmd_kind;

/* The number of each row. */
typedef enum cmd_option_id {
#define FLAG(commands, id, ...)   OPT_##id,
#define TEXT(commands, id, ...)   OPT_##id,
#define NUMBER(commands, id, ...) OPT_##id,
#define WORD(commands, id, ...)   OPT_##id,
#define READ(commands, id, ...)   OPT_##id,
#define MAYBE(commands, id, ...)  OPT_##id,
#define FORMER(commands, id, ...) OPT_##id,
#include "tools/weir/base/options.def"
  CMD_OPTIONS
} cmd_option_id;

typedef struct cmd_option {
  unsigned commands; /* which take it: IN_RUN | ... */
  cmd_kind kind;
  const char *name;  /* long name without "--"; NULL: only the letter is meant (CMD_FORMER) */
  char letter;       /* short name, 0: none */
  const char *value; /* name of the value in help; NULL: none */
  const char *help;  /* one line */
  const char
      *words; /* of the value, with blanks between them; NULL: there are none to choose from */
  const char *wrong; /* see options.def */
  long least, most;  /* of CMD_NUMBER */
} cmd_option;

extern const cmd_option cmd_options[CMD_OPTIONS];

/* Returns the next row of an option that a command takes after `after` (NULL: the first). NULL:
 * there is none. Former spellings are left out. */
const cmd_option *cmd_next_option(const cmd *c, const cmd_option *after);

/* Parsing calls it for each CMD_READ and CMD_MAYBE, in the order of the command line. `value` is
 * NULL where it was left out. Returns false after cmd_usage() when the value is no good. */
typedef bool (*cmd_read)(const cmd *c, cmd_option_id option, const char *value, void *context);

/* A command line: how it is read, and what was on it. */
typedef struct cmd_line {
  cmd_read read; /* NULL: the command has no option that needs it */
  void *context; /* for `read` */
  bool stops;    /* at the first operand: what follows is another program's */
  struct {
    bool given;
    const char *text;   /* borrowed from argv; NULL: not given, or without a value */
    long number;        /* of CMD_NUMBER; of CMD_WORD which of the words */
  } value[CMD_OPTIONS]; /* what was given last counts */
} cmd_line;

/* Parses options in front; stops at "--" (skipped) or, with `stops`, at the first operand;
 * otherwise operands may stand between options and are moved to the end. "--help" prints the
 * help and gives 0. Else returns the index of the first operand, or -1 after a sentence on
 * stderr. */
int cmd_parse(const cmd *c, int argc, char **argv, cmd_line *line);

/* Returns the number of a CMD_NUMBER or CMD_WORD, `otherwise` where it was not given. */
int cmd_number_of(const cmd_line *line, cmd_option_id option, int otherwise);

/* Returns "text, csv or jsonl" for "text csv jsonl". New. */
char *cmd_join_words(const char *words);

/* Prints the help of a command on stdout. */
void cmd_print_help(const cmd *c);

/* Prints text from `column` on, in lines of 80 columns; the next ones begin at `indent`. Lines
 * of the text are joined, but where an empty one or one that begins with a space follows. */
void cmd_print_folded(size_t column, size_t indent, const char *text);

#endif
