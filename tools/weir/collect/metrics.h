/* metrics.h: where a page of metrics is had: a Unix socket, a port of the loopback interface, or a
 * file that is replaced every 15 s (for node_exporter's textfile collector).
 *
 * The collector serves it, never the program. A Unix socket answers this user and root alone. A port
 * is every user's of the machine: it answers who has the token of a file that only this user can
 * read. A file comes whole under its name, by rename. What is there already and is not such a file
 * or a dead socket is left, and refused. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_METRICS_H
#define WEIR_TOOLS_WEIR_COLLECT_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct metrics metrics;

typedef struct metrics_place {
  const char *where;      /* unix:PATH, textfile:PATH or 127.0.0.1:PORT */
  const char *mode;       /* of the file, octal; NULL: 0600 */
  const char *token_file; /* of a port; NULL: none */
} metrics_place;

/* Prints a page. */
typedef void (*metrics_writer)(void *context, FILE *out, bool open_metrics);

/* Opens the place. New; NULL after a message. */
metrics *metrics_open(const metrics_place *place);

/* From now on `write` prints the pages. Returns a descriptor that is readable (poll) when
 * metrics_serve() has something to do. */
int metrics_begin(metrics *m, metrics_writer write, void *context);
void metrics_serve(metrics *m);

/* A file is written for the last time; no socket answers any more. */
void metrics_finish(metrics *m);

void metrics_close(metrics *m); /* may be NULL */

#endif
