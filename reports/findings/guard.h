/* guard.h: a rule's SELECT runs, and can do nothing else.
 *
 * While the guard is up, statements of the connection may read the trace's own tables, the facts and
 * the temporary tables and views of this connection, and call functions; no pragma, no attached file,
 * nothing that writes, no view and no virtual table of the trace's, which in an untrusted file
 * could be anything. A statement is ended when its time is over: the processor's, which is the same
 * on a machine that others use.
 *
 * SQLite looks at neither a clock nor an interrupt within a row: all functions that it calls there
 * run to their end, and some take as long as the product of two texts. So the values that a rule
 * makes or reads are bounded, and how many functions it calls; and a thread interrupts it once its
 * time is over, as what SQLite counts between two looks of its own, instructions, may each be a
 * function. What SQLite may allocate is bounded too, in the whole process. */
#ifndef WEIR_REPORTS_GUARD_H
#define WEIR_REPORTS_GUARD_H

#include <pthread.h>
#include "core/base/map.h"
#include "reports/findings/fact_table.h"
#include "reports/import/schema.h"

enum {
  WR_GUARD_VALUE_BYTES = 16 << 10, /* of a text or blob that a rule makes or reads */
  WR_GUARD_FUNCTIONS = 100,        /* that its SQL calls, but for those of a few numbers */
  WR_GUARD_HEAP_MIB = 512          /* that SQLite has besides what it had */
};

typedef struct wr_guard {
  const wr_db *db;             /* borrowed */
  const wr_fact_tables *facts; /* borrowed; NULL: none */
  hash_map tables;             /* hashes of the names of the trace's tables */
  /* Of the thread that runs the statement and of the watchdog: */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* `end`, `paused` or `ended` */
  int64_t end;            /* of the statement's time, of `clock`, ns */
  bool late;              /* it was over */
  bool paused;            /* what goes on is not the statement's */
  bool ended;             /* the watchdog ends */
  /* Of the thread that runs the statement: */
  pthread_t watchdog;
  bool watched;    /* there is a watchdog: from the first raising on, paused while lowered */
  bool raised;     /* the limits are in force */
  clockid_t clock; /* its processor time */
  int64_t paused_at;
  int functions;                  /* that the statement calls */
  int value_bytes, pattern_bytes; /* the connection's limits otherwise */
  int64_t heap_bytes, heap_at;    /* the process's limit otherwise; the guard's */
  const volatile int *stop;       /* nonzero: end now; or NULL */
  void (*tick)(void *context);    /* while a statement runs, a few 1,000 times a second; or NULL */
  void *tick_context;
  char refused[96]; /* what the last statement may not do, or "" */
} wr_guard;

/* The guard stays where it is until it is taken down, and can be raised again, for the same
 * connection. Errors: ENOMEM, those of reading. */
weir_status wr_guard_raise(wr_guard *g, const wr_db *db);
void wr_guard_lower(wr_guard *g);

/* It is raised no more. */
void wr_guard_free(wr_guard *g);

/* Whether the statement's time was over. */
bool wr_guard_late(wr_guard *g);

/* What a statement that SQLite ended was ended for, where that is a limit of the guard's; else
 * NULL. */
const char *wr_guard_limit(const wr_guard *g, int code);

/* From now on a statement has `ms`. */
void wr_guard_time(wr_guard *g, int64_t ms);

/* What is done between the two takes none of its time. Without a guard they do nothing. */
void wr_guard_pause(wr_guard *g);
void wr_guard_go_on(wr_guard *g);

#endif
