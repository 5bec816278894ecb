/* cmd.h: what all commands share: messages, memory, and the places of our siblings.
 *
 * A command is one row of the table in main.c, an option one row of options.def. Each message
 * goes to stderr, begins with "weir: ", is one sentence, and is an error unless stderr is a
 * terminal. */
#ifndef WEIR_TOOLS_WEIR_BASE_CMD_H
#define WEIR_TOOLS_WEIR_BASE_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

/* Exit statuses of our own; `weir run` otherwise ends as its program did. 125-127 as env(1) has
 * them. */
enum {
  CMD_FAILED = 1,       /* import, report: it did not work; a message has the reason */
  CMD_USAGE = 2,        /* wrong use */
  CMD_RUN_FAILED = 125, /* run: weir itself could not start */
  CMD_CANNOT_RUN = 126, /* run: the program is there and cannot be run */
  CMD_NOT_FOUND = 127   /* run: the program is not there */
};

typedef struct cmd {
  const char *name;
  const char *synopsis; /* what follows the name in a usage line */
  const char *summary;  /* one line */
  const char *details;  /* paragraphs of `weir help NAME`, or NULL */
  unsigned in;          /* its bit in the table of options (options.h), 0: it has none */
  const char *operands; /* words that its first operand may be, as in that table; NULL: none */
  bool hidden;          /* for other parts of Weir, not for people: left out of the list */
  int (*run)(const struct cmd *c, int argc, char **argv); /* argv[0] is the name */
} cmd;

/* Prints "weir: " and one sentence on stderr, or in the file of cmd_log_to(). */
void cmd_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints that a program's exec failed with this errno. Returns the exit status for that. */
int cmd_cannot_run(const char *program, int error);

/* Executes argv[0] as execvp() does, but a program that this machine cannot run is not taken for a
 * script: that is ENOEXEC. Returns the errno. */
int cmd_exec(char **argv);

/* Prints a sentence about wrong use, followed by " (see 'weir help NAME')". Returns CMD_USAGE. */
int cmd_usage(const cmd *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the thread's last error message. Returns CMD_FAILED. */
int cmd_failed(void);

/* From now on messages are appended to this file (borrowed), which the first one makes. */
void cmd_log_to(const char *path);

/* Whether stderr is a terminal: progress and a closing line are printed there only. */
bool cmd_chatty(void);

/* Reads a decimal number in [low, high]. Returns false when the text is none. */
bool cmd_number(const char *text, long low, long high, long *out);

/* Writes 1234567 as "1,234,567" into `buffer`, of 32 bytes or more. Returns it. */
char *cmd_grouped(char *buffer, uint64_t n);

/* Returns the absolute path (new) of a file of the same installation, as lib/libweir-preload.so:
 * relative to the folder above that of /proc/self/exe. NULL: that is not known. */
char *cmd_sibling(const char *relative);

/* snprintf() into new memory. Never returns NULL: out of memory ends weir with a message. */
char *cmd_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *cmd_alloc(size_t bytes); /* zeroed, never NULL */

/* Makes room in an array for one more than `count` elements of `size` bytes. Returns the array,
 * moved or not. Never NULL. */
void *cmd_grow(void *array, unsigned *room, unsigned count, size_t size);

#endif
