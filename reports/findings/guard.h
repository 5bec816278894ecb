/* guard.h: a rule's SELECT runs, and can do nothing else.
 *
 * While the guard is up, statements of the connection may read the trace's own tables and the
 * temporary tables and views of this connection, and call functions; no pragma, no attached file,
 * nothing that writes, no view and no virtual table of the trace's, which in an untrusted file could
 * be anything. A statement is ended when its time is over: the processor's, which is the same on a
 * machine that others use. */
#ifndef WEIR_REPORTS_GUARD_H
#define WEIR_REPORTS_GUARD_H

#include "core/base/map.h"
#include "reports/import/schema.h"

typedef struct wr_guard {
  const wr_db *db; /* borrowed */
  hash_map tables; /* hashes of the names of the trace's tables */
  int64_t end;     /* of the statement's time (CLOCK_THREAD_CPUTIME_ID, ns) */
  int64_t paused_at;
  bool late;                   /* it was over */
  bool paused;                 /* what goes on is not the statement's */
  const volatile int *stop;    /* nonzero: end now; or NULL */
  void (*tick)(void *context); /* while a statement runs, a few 1,000 times a second; or NULL */
  void *tick_context;
  char refused[96]; /* what the last statement may not do, or "" */
} wr_guard;

/* The guard stays where it is until it is taken down. Errors: ENOMEM, those of reading. */
weir_status wr_guard_raise(wr_guard *g, const wr_db *db);
void wr_guard_lower(wr_guard *g);

/* From now on a statement has `ms`. */
void wr_guard_time(wr_guard *g, int64_t ms);

/* What is done between the two takes none of its time. */
void wr_guard_pause(wr_guard *g);
void wr_guard_go_on(wr_guard *g);

#endif
