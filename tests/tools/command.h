/* command.h: what the suites of the weir command share: running it, and asking its traces. */
#ifndef WEIR_TESTS_TOOLS_COMMAND_H
#define WEIR_TESTS_TOOLS_COMMAND_H

#include <check.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct outcome {
  int status;      /* as waitpid() has it */
  char out[65536]; /* what it wrote to stdout, NUL-terminated */
  char err[65536]; /* and to stderr */
} outcome;

/* A folder of the test's own, which is also its working directory; removed afterwards. What Weir
 * would remember between programs stays in there, and its caches give nothing back by time. For
 * tcase_add_checked_fixture(). */
void enter_scratch(void);
void leave_scratch(void);

/* Absolute path of a file in the build tree (borrowed until the next call). */
const char *built(const char *relative);

/* Sets $WEIR, $VICTIM, $BUILD and $WEIR_SOURCE; what runs command lines does so itself. */
void set_names(void);

/* Runs a shell command line with $WEIR, $VICTIM and $BUILD set, stdin from /dev/null.
 * The outcome is valid until leave_scratch(). */
outcome *sh(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and it must end with this exit status. */
outcome *sh_status(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Starts one in the background with these ends of pipes (-1: none); returns its pid. */
pid_t start(int in, int out, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether this machine has terminals to give, which some containers have not. */
bool has_terminals(void);

/* A collector that the preload library starts is nobody's child; after the first call, it is ours
 * once its parents are gone, and the second waits for its end. */
void adopt_collectors(void);
void wait_for_collectors(void);

/* The one number a query on a trace answers with. */
long long ask(const char *trace, const char *query);

/* Runs a suite to its end and frees it; what main() returns. */
int run_suite(Suite *suite);

/* Reads `fd` up to and with this text. */
void read_until(int fd, const char *text);

#endif
