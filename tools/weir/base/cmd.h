/* cmd.h: what the subcommands of weir share: the table of subcommands and options, messages, and
 * the places of our siblings.
 *
 * A subcommand is one row of the table in main.c: its options are a table too, from which parsing,
 * `weir help` and the man page's test all work. Everything weir says goes to stderr with "weir: "
 * in front, is one sentence, and is an error of its own, unless stderr is a terminal. */
#ifndef WEIR_TOOLS_WEIR_BASE_CMD_H
#define WEIR_TOOLS_WEIR_BASE_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

/* Exit statuses of our own; `weir run` otherwise ends as its program did. 125-127 as env(1) has
 * them. */
enum {
  CMD_FAILED = 1,       /* import, report: it did not work, and a sentence said why */
  CMD_USAGE = 2,        /* wrong use */
  CMD_RUN_FAILED = 125, /* run: weir itself could not start */
  CMD_CANNOT_RUN = 126, /* run: the program is there and cannot be run */
  CMD_NOT_FOUND = 127   /* run: the program is not there */
};

typedef enum cmd_arg { CMD_ARG_NONE, CMD_ARG_REQUIRED, CMD_ARG_OPTIONAL } cmd_arg;

typedef struct cmd_option {
  const char *name;  /* long name without "--"; NULL ends the table */
  char letter;       /* short name, 0: none */
  cmd_arg arg;       /* OPTIONAL takes --name=VALUE only */
  const char *value; /* name of the value in help */
  const char *help;  /* one line */
  size_t sets;       /* CMD_SETS(); 0: cmd_on_option takes it */
} cmd_option;

/* An option that sets a member of the command's context, which is `type`: a bool where it takes no
 * value, else a const char *. */
#define CMD_SETS(type, member) (1 + offsetof(type, member))

typedef struct cmd cmd;

/* What parsing calls for each other option: `at` is its row, `value` its value or NULL. Returns false
 * after cmd_usage() when the value is no good. */
typedef bool (*cmd_on_option)(const cmd *c, size_t at, const char *value, void *context);

struct cmd {
  const char *name;
  const char *synopsis;      /* what follows the name in a usage line */
  const char *summary;       /* one line */
  const char *details;       /* paragraphs of `weir help NAME`, or NULL */
  const cmd_option *options; /* NULL: it has none */
  bool hidden;               /* for other parts of Weir, not for people: left out of the list */
  int (*run)(const cmd *c, int argc, char **argv); /* argv[0] is the name */
};

/* Parses options in front; stops at "--" (skipped) or, with `stop_at_word`, at the first operand;
 * otherwise operands may stand between options and are moved to the end. "--help" prints the help
 * and gives 0. Else returns the index of the first operand, or -1 after a sentence on stderr. */
int cmd_parse(const cmd *c, int argc, char **argv, bool stop_at_word, cmd_on_option on_option,
              void *context);

/* The value of --format text|json; false after cmd_usage() when it is neither. */
bool cmd_take_format(const cmd *c, const char *value, bool *json);

/* Prints text from `column` on, in lines of 80 columns; the next ones begin at `indent`. Lines of the
 * text are joined, but where an empty one or one that begins with a space follows. */
void cmd_print_folded(size_t column, size_t indent, const char *text);
/* Prints the help of a command on stdout. */
void cmd_print_help(const cmd *c);

/* "weir: " and one sentence on stderr (or where cmd_log_to() says). */
void cmd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that a program's exec fails with this errno; returns the exit status that tells so. */
int cmd_cannot_run(const char *program, int error);

/* Executes argv[0] as execvp() does, but a program that this machine cannot run is not taken for a
 * script: that is ENOEXEC. Returns the errno. */
int cmd_exec(char **argv);

/* The same, with " (see 'weir help NAME')" behind it; returns CMD_USAGE. */
int cmd_usage(const cmd *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says the thread's last error of the library; returns CMD_FAILED. */
int cmd_failed(void);

/* From now on cmd_say() appends to this file, made at the first sentence (borrowed). */
void cmd_log_to(const char *path);

/* stderr is a terminal: progress and closing lines are welcome. */
bool cmd_chatty(void);

/* A decimal number in [low, high]; false when it is none. */
bool cmd_number(const char *text, long low, long high, long *out);

/* The absolute path of the folder that --symbols names (new), NULL for NULL. False: there is none,
 * and a sentence has said so. */
bool cmd_symbols(const cmd *c, const char *given, char **folder);

/* 1234567 as "1,234,567"; `buffer` of 32 bytes or more, which is returned. */
char *cmd_grouped(char *buffer, uint64_t n);

/* Absolute path of a file beside us, e.g. cmd_sibling("lib/libweir-preload.so"): relative to the
 * folder above that of /proc/self/exe. New; NULL when we cannot tell where we are. */
char *cmd_sibling(const char *relative);

/* snprintf into new memory. Never NULL: out of memory ends weir with a sentence. */
char *cmd_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *cmd_alloc(size_t bytes); /* zeroed, never NULL */

/* Room in an array for one more than `count` elements of `size` bytes; the array, moved or not. */
void *cmd_grow(void *array, unsigned *room, unsigned count, size_t size);

#endif
