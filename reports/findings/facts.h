/* facts.h: what rules would otherwise each sort all calls for: one pass takes the calls of a trace, in
 * order of time, and leaves what it sees in temporary tables (fact_table.h).
 *
 * A table has rows only of the calls to which the thing happened, so that a rule which asks for it
 * takes time for what it finds. README.md says what is in which table. */
#ifndef WEIR_REPORTS_FACTS_H
#define WEIR_REPORTS_FACTS_H

#include "core/base/map.h"
#include "reports/events/events.h"
#include "reports/findings/fact_table.h"
#include "reports/findings/given.h"
#include "reports/import/schema.h"

enum { WR_SMALL_BYTES = 65535 /* of a small copy, at most */ };

typedef enum wr_handle_kind {
  WR_HANDLE_NONE,
  WR_HANDLE_STREAM,
  WR_HANDLE_EVENT,
  WR_HANDLE_POOL,
  WR_HANDLE_GRAPH,
  WR_HANDLE_CONTEXT
} wr_handle_kind;

/* What the calls of a row of `template` have in common. */
typedef struct wr_common {
  int64_t id, process, thread, stack; /* stack 0: none */
  uint64_t stream;
  int device;     /* of the call, or of a copy's source; -1 none */
  int own_device; /* of the call; -1 none */
  int context;    /* number in the process */
  int kind, copy, mem, src_mem;
  wr_giving giving;      /* of a CALL */
  bool times;            /* it asks how long it was between two events */
  wr_handle_kind object; /* that it makes or ends */
  bool ends;             /* the object; of a stream its event decides */
  bool orders;           /* it succeeded, is not captured, and queues something or waits */
  int64_t flags;
  bool succeeded;
  bool asked; /* a wait that the program asked for */
  uint64_t calls, small, ns, bytes, most, longest;
  int64_t first;                                    /* the first call with bytes, 0 none */
  size_t process_index, thread_index, stream_index; /* of the pass, SIZE_MAX: not seen yet */
} wr_common;

typedef struct wr_facts {
  const wr_events *events; /* borrowed */
  wr_common *common;       /* owned, in the order of their templates */
  size_t count;
  wr_fact_tables tables;
} wr_facts;

typedef struct wr_facts_settings {
  const wr_events *events; /* open; borrowed while the facts are there */
  bool timed;              /* the trace has device times */
} wr_facts_settings;

/* Begin, each event of `settings->events` in order of start, end: then `f` has the tables, which are there until it is
 * freed, and it stays where it is. The pass is closed whatever became of it. Errors: ENOMEM, EIO, ECORRUPT. */
typedef struct wr_facts_pass wr_facts_pass;
weir_status wr_facts_begin(wr_facts_pass **out, wr_facts *f, const wr_db *db,
                           const wr_facts_settings *settings);
weir_status wr_facts_take(void *p, const wr_event *e); /* a wr_event_fn */
weir_status wr_facts_end(wr_facts_pass *p);
void wr_facts_close(wr_facts_pass *p);
void wr_facts_free(wr_facts *f);

/* NULL: the trace has no such template. */
const wr_common *wr_facts_common(const wr_facts *f, int64_t id);

#endif
