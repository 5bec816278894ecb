/* control.h: requests to a collector that runs, at a Unix socket in its folder of spools.
 *
 * A request is one line, a verb and its words with single blanks between them, and at most
 * CONTROL_LINE bytes; a byte of a word that is a blank, a control character or '%' is written
 * %XX. The reply is the line "ok" and what the verb's handler printed, or the line "no" and a
 * sentence; then the connection is closed. So one asks by hand, too: printf 'ps\n' | nc -U
 * DIR/.control. The verbs are those that other files have registered.
 *
 * Who asks is this user or root, as the kernel has it: nobody else is answered. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_CONTROL_H
#define WEIR_TOOLS_WEIR_COLLECT_CONTROL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define CONTROL_SOCKET ".control" /* in the folder of spools */

enum {
  CONTROL_LINE = 8192, /* bytes of a request, its newline included */
  CONTROL_WORDS = 16   /* of a request, its verb included */
};

typedef struct control control;

/* Answers a request: `words` are those after the verb. Prints the reply, whole lines, or one
 * sentence and returns false. Called by control_serve(), which waits for it. */
typedef bool (*control_handler)(void *context, FILE *reply, unsigned count, char *const *words);

/* Makes the socket in `dir` (borrowed), mode 0600. New; NULL: it cannot be, and nobody can ask. */
control *control_new(const char *dir);

/* From now on requests of this verb (borrowed) go to `handler`; a NULL one: to nobody any more. */
void control_on(control *c, const char *verb, control_handler handler, void *context);

/* Returns a descriptor that is readable (poll) when control_serve() has something to do. */
int control_fd(const control *c);

/* Accepts, reads, answers, closes. Waits for nobody. */
void control_serve(control *c);

/* Removes the socket. */
void control_free(control *c); /* may be NULL */

/* ---- the asking side ------------------------------------------------------------------------- */

typedef struct control_answer {
  bool reached;    /* somebody listens, and has answered whole */
  bool good;       /* "ok" */
  char *text;      /* what follows that line, NUL-terminated; new; "" where there is none */
  pid_t collector; /* who answered; 0: not known */
} control_answer;

/* Asks the collector of a folder. `words` end with NULL, the verb is the first. Waits at most
 * timeout_ms (-1: as long as it takes) between two pieces of the reply. */
control_answer control_ask(const char *dir, const char *const *words, int timeout_ms);

/* Calls `visit` with each folder of this user's whose collector may run, and the trace that it
 * writes ("": not known), until it returns false. */
void control_each(bool (*visit)(void *context, const char *dir, const char *trace), void *context);

/* Returns the folder (new) of who is named: the pid of a program that is recorded, that of a
 * collector, or the path of a trace that is being written. NULL after a message. */
char *control_find(const char *operand);

/* Whether the collector of a folder records a program of this pid, or has. */
bool control_records(const char *dir, long pid);

/* Asks who is named, and prints the reply's text, or the sentence as a message. Returns an exit
 * status. */
int control_command(const char *operand, const char *const *words, int timeout_ms);

#endif
