/* spool_server.h: spools for processes that cannot enter the folder of spools themselves
 * (core/trace/spool_request.h). */
#ifndef WEIR_TOOLS_WEIR_COLLECT_SPOOL_SERVER_H
#define WEIR_TOOLS_WEIR_COLLECT_SPOOL_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct spool_server spool_server;

/* Makes a server for the folder `dir` (borrowed), and for processes below `ancestor`, the one that
 * started at `start_time`. New; NULL: it cannot be, and such processes are not recorded. */
spool_server *spool_server_new(const char *dir, pid_t ancestor, uint64_t start_time);

/* Returns a descriptor that is readable (poll) when spool_server_serve() has something to do. */
int spool_server_fd(const spool_server *s);

/* Answers requests, and gives finished spools their names. Never waits. */
void spool_server_serve(spool_server *s);

void spool_server_free(spool_server *s);

#endif
