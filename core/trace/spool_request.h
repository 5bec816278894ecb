/* spool_request.h: a spool's file from the collector, for a process that cannot open it by its
 * path.
 *
 * The folder of spools is its owner's alone. A process of the same tree that runs as another user,
 * or that has changed its root, cannot enter it. It asks whoever collects the folder, at an
 * abstract socket whose name follows from the folder's: the collector answers processes of its
 * tree only, and a process believes a collector only where that is of the user whom the folder's
 * name names. So what other user holds the socket's name gets nothing, and what asks gets the file
 * of its own spool, never the folder. Where network namespaces differ there is no answer.
 *
 * A new file is asked for by REQUEST_NEW; it gets its spool's name when the asker closes the
 * connection, its header being whole. To grow, a process asks for the file again and proves by the
 * key in the header, which it has mapped, that the spool is its own. */
#ifndef WEIR_TRACE_SPOOL_REQUEST_H
#define WEIR_TRACE_SPOOL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { REQUEST_VERSION = 1, REQUEST_NEW = 1, REQUEST_AGAIN = 2, SPOOL_KEY = 16 };

typedef struct spool_request {
  uint32_t version, what;
  uint32_t pid, n; /* of the spool PID-N.spool; for REQUEST_NEW 0 */
  uint8_t key[SPOOL_KEY];
} spool_request;

typedef struct spool_answer {
  int32_t error;   /* an errno; 0: a descriptor comes with it, open for reading and writing */
  uint32_t pid, n; /* of the spool's name */
} spool_answer;

/* A folder is given by a path and how many bytes of it are the folder's, without a slash at the
 * end. The address of who collects it; its length. */
socklen_t spool_request_address(struct sockaddr_un *out, const char *folder, size_t bytes);

/* The user whose processes make the folder, by its name weir-UID-...; false: it has no such
 * name. */
bool spool_request_owner(const char *folder, size_t bytes, uint32_t *uid);

/* Whether there is somebody to ask. Changes errno; only system calls. */
bool spool_request_possible(const char *folder, size_t bytes);

/* Asks: a descriptor, or -1 and an errno. *answer: the spool's name. *connection: of a new one, to
 * be closed when the header is whole; NULL: it is closed at once. Only system calls. */
int spool_request_file(const char *folder, size_t bytes, const spool_request *request,
                       spool_answer *answer, int *connection);

#endif
