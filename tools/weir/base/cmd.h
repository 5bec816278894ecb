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
  CMD_FAILED = 1,       /* import, report: it did not work, and a sentence said why */
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
